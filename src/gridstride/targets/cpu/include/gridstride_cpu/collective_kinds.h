// The collectives of a warp: lanes that wait in different ones never release each other.
#ifndef GRIDSTRIDE_CPU_COLLECTIVE_KINDS_H
#define GRIDSTRIDE_CPU_COLLECTIVE_KINDS_H

// Numbers are part of the interface between kernels and runtime: new ones go to the end.
#define GRIDSTRIDE_COLLECTIVES(__each) \
    __each(SYNCWARP, "__syncwarp") \
    __each(SHFL, "__shfl_sync") \
    __each(SHFL_UP, "__shfl_up_sync") \
    __each(SHFL_DOWN, "__shfl_down_sync") \
    __each(SHFL_XOR, "__shfl_xor_sync") \
    __each(ALL, "__all_sync") \
    __each(ANY, "__any_sync") \
    __each(UNI, "__uni_sync") \
    __each(BALLOT, "__ballot_sync") \
    __each(MATCH_ANY, "__match_any_sync") \
    __each(MATCH_ALL, "__match_all_sync") \
    __each(REDUCE_ADD, "__reduce_add_sync") \
    __each(REDUCE_MIN, "__reduce_min_sync") \
    __each(REDUCE_MAX, "__reduce_max_sync") \
    __each(REDUCE_AND, "__reduce_and_sync") \
    __each(REDUCE_OR, "__reduce_or_sync") \
    __each(REDUCE_XOR, "__reduce_xor_sync") \
    __each(GROUP_SYNC, "a cooperative group's sync()") \
    __each(GROUP_EXCHANGE, "a cooperative group's collective")

enum gridstride_collective_kind : unsigned {
#define GRIDSTRIDE_ENUMERATOR(__name, __text) GRIDSTRIDE_COLLECTIVE_##__name,
    GRIDSTRIDE_COLLECTIVES(GRIDSTRIDE_ENUMERATOR)
#undef GRIDSTRIDE_ENUMERATOR
};

inline const char* gridstride_collective_name(unsigned __kind) {
    static const char* const __names[] = {
#define GRIDSTRIDE_TEXT(__name, __text) __text,
        GRIDSTRIDE_COLLECTIVES(GRIDSTRIDE_TEXT)
#undef GRIDSTRIDE_TEXT
    };
    return __kind < sizeof(__names) / sizeof(__names[0]) ? __names[__kind] : "a collective";
}

#endif
