// Folds on a processor. Values are folded in lanes that the compiler turns into vectors, blocks of them in pairs, so
// that rounding errors grow with the logarithm of the count.
//
// A launch has blocks of one thread; each takes an equal share of the pieces, a piece being one part of one result
// (along) or of neighboring results (across). How a fold is cut does not depend on how many threads there are.
#ifndef GRIDSTRIDE_CPU_FOLDS_H
#define GRIDSTRIDE_CPU_FOLDS_H

#include <gridstride_cpu/loops.h>
#include <gridstride/folding.h>

namespace gridstride {

constexpr int fold_chunk = 1024;  // elements that are folded before they are joined with others

// An input on its way along a row.
template <class __operand, int __buffered>
struct streamed_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    const char* row;
    stored* items;
    alignas(64) char buffer[__buffered * sizeof(stored)];

    GRIDSTRIDE_INLINED streamed_input(const __operand& __source) : source(__source) {}
    GRIDSTRIDE_INLINED int begin(long long __element, int __count) {
        const char* __at = row + __element * source.step;
        const long long __step = source.step;
        if (__step == sizeof(stored) && reinterpret_cast<unsigned long>(__at) % alignof(stored) == 0) {
            items = reinterpret_cast<stored*>(const_cast<char*>(__at));
            return 0;
        }
        items = reinterpret_cast<stored*>(buffer);
        gather(reinterpret_cast<stored*>(buffer), __at, __step, __count);
        return 0;
    }
};

// Values are joined as the digits of a counter carry: in pairs of equally many.
template <class __type>
struct pairs {
    unsigned long count = 0;
    __type levels[48];

    template <class __reduce>
    GRIDSTRIDE_INLINED void push(const __reduce& __do, __type __value) {
        int __level = 0;
        for (unsigned long __rest = count++; __rest & 1; __rest >>= 1, ++__level)
            __value = __do(levels[__level], __value);
        levels[__level] = __value;
    }
    template <class __reduce>
    GRIDSTRIDE_INLINED __type whole(const __reduce& __do) const {
        int __level = __builtin_ctzl(count);
        __type __value = levels[__level];
        for (unsigned long __rest = count >> __level >> 1; ++__level, __rest; __rest >>= 1)
            if (__rest & 1) __value = __do(levels[__level], __value);
        return __value;
    }
};

struct share_of_pieces {
    long long first, last;
    GRIDSTRIDE_INLINED share_of_pieces(long long __pieces) {
        const long long __blocks = gridDim.x, __block = blockIdx.x, __share = __pieces / __blocks;
        const long long __more = __pieces % __blocks;
        first = __block * __share + (__block < __more ? __block : __more);
        last = first + __share + (__block < __more);
    }
};

// Set the bases to a result's first elements; return the first one's number.
template <int __axes, class... __inputs>
GRIDSTRIDE_INLINED long long settle(const fold_space<__axes>& __space, long long __index, int __from, __inputs&... __all) {
    long long __number = 0;
    swallow((__all.base = __all.source.data)...);
    for (int __axis = __from; __axis < __space.kept.ndim; ++__axis) {
        const long long __at = taken_off(__space.kept, __index, __axis);
        __number += __at * __space.kept_numbers.strides[__axis];
        swallow((__all.base += __at * __all.source.kept_strides[__axis])...);
    }
    return __number;
}

// Set the rows to where an index along the folded axes leads.
template <int __axes, class... __inputs>
GRIDSTRIDE_INLINED void step_into(const fold_space<__axes>& __space, long long __index, int __from, long long& __number,
                                  long long& __position, __inputs&... __all) {
    swallow((__all.row = __all.base)...);
    for (int __axis = __from; __axis < __space.fold.ndim; ++__axis) {
        const long long __at = taken_off(__space.fold, __index, __axis);
        __number += __at * __space.fold_numbers.strides[__axis];
        __position += __at * __space.position.strides[__axis];
        swallow((__all.row += __at * __all.source.strides[__axis])...);
    }
}

// ---- along ----

// Values that are folded side by side, in vectors; those of one lane only with each other until all is folded.
template <class __type>
struct lanes {
    static constexpr int count = sizeof(__type) <= 16 ? 128 / int(sizeof(__type)) : 1;
    // Vectors across lines of the cache would wait for each other.
    alignas(sizeof(__type) <= 16 ? 64 : alignof(__type)) __type values[count];
};
template <class __reduce>
struct by_lanes {
    const __reduce& reduce;
    template <class __type>
    GRIDSTRIDE_INLINED lanes<__type> operator()(const lanes<__type>& __first, const lanes<__type>& __second) const {
        lanes<__type> __both;
        GRIDSTRIDE_LANES
        for (int __lane = 0; __lane < lanes<__type>::count; ++__lane)
            __both.values[__lane] = reduce(__first.values[__lane], __second.values[__lane]);
        return __both;
    }
};
template <class __type, class __reduce>
GRIDSTRIDE_INLINED __type joined_lanes(lanes<__type> __all, const __reduce& __do) {
    for (int __half = lanes<__type>::count / 2; __half > 0; __half /= 2)
        for (int __lane = 0; __lane < __half; ++__lane)
            __all.values[__lane] = __do(__all.values[__lane], __all.values[__lane + __half]);
    return __all.values[0];
}

// Pairs of lanes; of nothing where there is one lane, since large structures lie on the stack.
template <class __type, bool __are_many = (lanes<__type>::count > 1)>
struct pairs_of_lanes : pairs<lanes<__type>> {};
template <class __type>
struct pairs_of_lanes<__type, false> {
    static constexpr unsigned long count = 0;
    template <class __reduce>
    GRIDSTRIDE_INLINED void push(const __reduce&, const lanes<__type>&) {}
    template <class __reduce>
    GRIDSTRIDE_INLINED lanes<__type> whole(const __reduce&) const { return lanes<__type>(); }
};

// What is folded of one result: most of it in lanes, what is too short for them apart.
template <class __type, class __map, class __reduce>
struct folded_along {
    const __map& do_map;
    const __reduce& reduce;
    pairs_of_lanes<__type> in_lanes;
    pairs<__type> apart;

    GRIDSTRIDE_INLINED folded_along(const __map& __do_map, const __reduce& __do) : do_map(__do_map), reduce(__do) {}

    template <class... __operands>
    GRIDSTRIDE_INLINED void add(long long __number, long long __step, long long __position, long long __position_step,
                                int __count, typename __operands::stored* const... __items) {
        auto __value = [&](long long __k) {
            return do_map(__number + __k * __step, __position + __k * __position_step,
                          element<__operands>(__items[__k]).get()...);
        };
        constexpr int __lanes = lanes<__type>::count;
        if (__lanes == 1 || __count < __lanes) {
            __type __sum = __value(0);
            for (long long __k = 1; __k < __count; ++__k) __sum = reduce(__sum, __value(__k));
            apart.push(reduce, __sum);
            return;
        }
        lanes<__type> __sums;
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < __lanes; ++__lane) __sums.values[__lane] = __value(__lane);
        long long __k = __lanes;  // 32 bits may wrap, so they would not be seen to be consecutive
        for (; __k + 4 * __lanes <= __count; __k += 4 * __lanes) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane) {
                const __type __first = reduce(__value(__k + __lane), __value(__k + __lanes + __lane));
                const __type __second = reduce(__value(__k + 2 * __lanes + __lane), __value(__k + 3 * __lanes + __lane));
                __sums.values[__lane] = reduce(__sums.values[__lane], reduce(__first, __second));
            }
        }
        for (; __k + __lanes <= __count; __k += __lanes) {
            GRIDSTRIDE_LANES
            for (long long __lane = 0; __lane < __lanes; ++__lane)
                __sums.values[__lane] = reduce(__sums.values[__lane], __value(__k + __lane));
        }
        for (long long __lane = 0; __k < __count; ++__k, ++__lane)
            __sums.values[__lane] = reduce(__sums.values[__lane], __value(__k));
        in_lanes.push(by_lanes<__reduce>{reduce}, __sums);
    }
    GRIDSTRIDE_INLINED __type whole() const {
        if (!in_lanes.count) return apart.whole(reduce);
        const __type __most = joined_lanes(in_lanes.whole(by_lanes<__reduce>{reduce}), reduce);
        return apart.count ? reduce(__most, apart.whole(reduce)) : __most;
    }
};

template <int __buffered, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void run_along(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, __inputs&&... __all) {
    // Axis 0 of the fold counts chunks of its row.
    const share_of_pieces __share(__space.outputs * __space.parts);
    for (long long __piece = __share.first; __piece < __share.last; ++__piece) {
        const long long __result = __piece / __space.parts, __part = __piece % __space.parts;
        const long long __number = settle(__space, __result, 0, __all...);
        const long long __begin = __part * __space.part, __whole = __space.fold.count;
        const long long __end = __begin + __space.part < __whole ? __begin + __space.part : __whole;
        if (__begin >= __end) {
            __do_finish(__result, int(__part), __start);
            continue;
        }
        folded_along<typename __folding::type, __map, __reduce> __sums(__do_map, __do);
        for (long long __q = __begin; __q < __end; ++__q) {
            long long __rest = __q, __numbers = __number, __position = 0;
            const long long __chunk = taken_off(__space.fold, __rest, 0) * fold_chunk;
            step_into(__space, __rest, 1, __numbers, __position, __all...);
            const long long __left = __space.fold_row - __chunk, __end_of_chunk = __chunk + (__left < fold_chunk ? __left : fold_chunk);
            for (long long __element = __chunk; __element < __end_of_chunk; __element += __buffered) {
                const long long __more = __end_of_chunk - __element;
                const int __count = int(__more < __buffered ? __more : __buffered);
                swallow(__all.begin(__element, __count)...);
                __sums.template add<typename __inputs::operand...>(
                    __numbers + __element * __space.fold_numbers.step, __space.fold_numbers.step,
                    __position + __element * __space.position.step, __space.position.step, __count, __all.items...);
            }
        }
        __do_finish(__result, int(__part), __folding(__sums.whole()));
    }
}

template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shared_along(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                     const __folding& __start, const fold_space<__axes>& __space,
                                     const __operands&... __all) {
    constexpr int __buffered = buffered_up_to<__operands...>(fold_chunk);
    run_along<__buffered>(__do_map, __do, __do_finish, __start, __space,
                          streamed_input<__operands, __buffered>(__all)...);
}

// ---- across ----

template <class __map, class __reduce, class __type, class... __operands>
GRIDSTRIDE_INLINED void fold_row_into(__type* __sums, bool __is_first, const __map& __do_map, const __reduce& __do,
                                      long long __number, long long __step, long long __position, int __count,
                                      typename __operands::stored* const... __items) {
    if (__is_first) {
        for (int __k = 0; __k < __count; ++__k)
            __sums[__k] = __do_map(__number + __k * __step, __position, element<__operands>(__items[__k]).get()...);
    } else {
        GRIDSTRIDE_INDEPENDENT
        for (int __k = 0; __k < __count; ++__k)
            __sums[__k] = __do(__sums[__k], __do_map(__number + __k * __step, __position,
                                                     element<__operands>(__items[__k]).get()...));
    }
}

template <int __buffered, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void run_across(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, __inputs&&... __all) {
    // Axis 0 of the results counts pieces of their row, `group` results each.
    typedef typename __folding::type __type;
    constexpr int __fitting = sizeof(__type) < 1024 ? 1024 / int(sizeof(__type)) : 1;
    constexpr int __most = __fitting < __buffered ? __fitting : __buffered;  // of neighboring results at once
    constexpr int __batch = 64, __levels = 44;  // rows that are folded one after the other, and pairs of batches
    alignas(64) __type __sums[__most], __joined[__levels][__most];
    const share_of_pieces __share(__space.kept.count * __space.parts);
    for (long long __piece = __share.first; __piece < __share.last; ++__piece) {
        const long long __part = __piece % __space.parts;
        long long __row = __piece / __space.parts;
        const long long __piece_begin = taken_off(__space.kept, __row, 0) * __space.group;
        const long long __piece_length = __space.kept_row - __piece_begin < __space.group
                                             ? __space.kept_row - __piece_begin : __space.group;
        const long long __corner = settle(__space, __row, 1, __all...);
        const long long __begin = __part * __space.part, __whole = __space.fold.count;
        const long long __end = __begin + __space.part < __whole ? __begin + __space.part : __whole;
        for (long long __some = 0; __some < __piece_length; __some += __most) {
            const long long __element = __piece_begin + __some;
            const int __count = int(__piece_length - __some < __most ? __piece_length - __some : __most);
            const long long __number = __corner + __element * __space.kept_numbers.step;
            unsigned long __batches = 0;
            for (long long __from = __begin; __from < __end; __from += __batch) {
                for (long long __f = __from; __f < __end && __f < __from + __batch; ++__f) {
                    long long __numbers = __number, __position = 0;
                    step_into(__space, __f, 0, __numbers, __position, __all...);
                    swallow(__all.begin(__element, __count)...);
                    fold_row_into<__map, __reduce, __type, typename __inputs::operand...>(
                        __sums, __f == __from, __do_map, __do, __numbers, __space.kept_numbers.step, __position, __count,
                        __all.items...);
                }
                int __level = 0;
                for (unsigned long __rest = __batches++; __rest & 1; __rest >>= 1, ++__level)
                    for (int __k = 0; __k < __count; ++__k) __sums[__k] = __do(__joined[__level][__k], __sums[__k]);
                for (int __k = 0; __k < __count; ++__k) __joined[__level][__k] = __sums[__k];
            }
            for (int __k = 0; __k < __count; ++__k) {
                const long long __result = __row * __space.kept_row + __element + __k;
                if (!__batches) {
                    __do_finish(__result, int(__part), __start);
                    continue;
                }
                int __level = __builtin_ctzl(__batches);
                __type __value = __joined[__level][__k];
                for (unsigned long __rest = __batches >> __level >> 1; ++__level, __rest; __rest >>= 1)
                    if (__rest & 1) __value = __do(__joined[__level][__k], __value);
                __do_finish(__result, int(__part), __folding(__value));
            }
        }
    }
}

template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shared_across(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                      const __folding& __start, const fold_space<__axes>& __space,
                                      const __operands&... __all) {
    constexpr int __buffered = buffered_up_to<__operands...>(fold_chunk);
    run_across<__buffered>(__do_map, __do, __do_finish, __start, __space,
                           streamed_input<__operands, __buffered>(__all)...);
}

}

#endif
