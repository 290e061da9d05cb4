// Warp functions: shuffles, votes, matches, reductions, __syncwarp, __activemask.
//
// All stand on `gridstride_collective`, which device headers use for theirs:
//
//     gridstride_collective(kind, mask, value, file, line, read)
//
// waits until every lane of `mask` that has not exited waits with the same kind and mask (a value of
// gridstride_collective_kind), then returns `read(gathered)`, where `gathered.participants` are the lanes that
// took part, `gathered.lane` is the caller's and `gathered.value<T>(lane)` is what a participant brought, at
// most 16 bytes that can be copied. `read` runs at once, before any lane of the warp can bring its next value;
// it must not wait, fail or touch the kernel's memory.
//
// Where CUDA leaves a shuffled value undefined (the source lane is absent, exited or outside of the mask) it
// is 0, as an H200 gives.
#ifndef GRIDSTRIDE_CPU_WARP_H
#define GRIDSTRIDE_CPU_WARP_H

#include "collective_kinds.h"
#include "execution.h"

#define GRIDSTRIDE_FULL_MASK 0xffffffffu

struct gridstride_gathered {
    const gridstride_exchange* warp_exchange;
    unsigned lane, participants, slot_choice;

    template <class __type>
    __attribute__((always_inline)) __type value(unsigned __lane) const {
        __type __value;
        __builtin_memcpy(
            &__value, warp_exchange->slots[slot_choice >> __lane & 1][__lane].value_bytes, sizeof(__type));
        return __value;
    }
};

// Bring a value, wait for the lanes of the mask, and return what they brought; the caller is between
// gridstride_enter_wait and gridstride_leave_wait.
template <class __type>
GRIDSTRIDE_INLINE gridstride_gathered gridstride_gather(
    gridstride_block* __block, gridstride_thread* __self, unsigned __kind, unsigned __mask, const __type& __value) {
    static_assert(sizeof(__type) <= sizeof(gridstride_slot), "a lane can bring at most 16 bytes");
    const unsigned __rank = __self->linear_rank, __warp = __rank / GRIDSTRIDE_WARP_SIZE;
    const unsigned __lane = __rank % GRIDSTRIDE_WARP_SIZE, __bit = 1u << __lane;
    gridstride_exchange* __exchange = &__block->exchanges[__warp];
    const unsigned __choice = __exchange->slot_choice ^ __bit;
    __exchange->slot_choice = __choice;
    __builtin_memcpy(__exchange->slots[__choice >> __lane & 1][__lane].value_bytes, &__value, sizeof(__type));
    // Usually there is one gathering going on, and this is neither its first nor its last lane.
    gridstride_gathering& __usual = __exchange->gatherings[0];
    const unsigned __arrived = __usual.arrived_lanes | __bit, __live = __block->warps[__warp].live_lanes;
    const bool __joins = __usual.lane_mask == __mask && __usual.collective_kind == __kind && (__mask & __bit);
    if (__builtin_expect(__joins && (__mask & __live & ~__arrived), 1)) {
        __usual.arrived_lanes = __arrived;
        gridstride_suspend(__block, __self, __rank);
    } else {
        gridstride_switch_to(__block, __self, gridstride_runtime->gather(__block, __kind, __mask));
    }
    const gridstride_participation __participation = __exchange->participations[__lane];
    return {__exchange, __lane, __participation.lanes, __participation.slot_choice};
}

template <class __type, class __function>
GRIDSTRIDE_INLINE auto gridstride_collective(
    unsigned __kind, unsigned __mask, const __type& __value, const char* __file, unsigned __line, __function __read)
    -> decltype(__read(gridstride_gathered())) {
    gridstride_block* __block = gridstride_current_block();
    gridstride_thread* __self = __block->current_thread;
    gridstride_enter_wait(__block, __self, __file, __line);
    const auto __result = __read(gridstride_gather(__block, __self, __kind, __mask, __value));
    gridstride_leave_wait(__block);
    return __result;
}

// ---- __syncwarp, __activemask ----

GRIDSTRIDE_INLINE void __syncwarp(unsigned __mask = GRIDSTRIDE_FULL_MASK, GRIDSTRIDE_SITE) {
    gridstride_collective(
        GRIDSTRIDE_COLLECTIVE_SYNCWARP, __mask, char(), __file, __line, [](const gridstride_gathered&) { return 0; });
}

// The lanes that are at this call: waits until the others of the warp wait elsewhere or have exited.
GRIDSTRIDE_INLINE unsigned __activemask(GRIDSTRIDE_SITE) {
    gridstride_block* __block = gridstride_current_block();
    gridstride_thread* __self = __block->current_thread;
    gridstride_enter_wait(__block, __self, __file, __line);
    gridstride_switch_to(__block, __self, gridstride_runtime->ask_active_lanes(__block));
    const unsigned __lanes =
        __block->exchanges[__self->linear_rank / GRIDSTRIDE_WARP_SIZE].participations[gridstride_lane()].lanes;
    gridstride_leave_wait(__block);
    return __lanes;
}

// ---- shuffles ----

// Whoever asks beyond the end of its segment gets its own value: `source` is then `lane`.
template <class __type>
GRIDSTRIDE_INLINE __type gridstride_shuffle(
    unsigned __kind, unsigned __mask, __type __value, unsigned __source, const char* __file, unsigned __line) {
    return gridstride_collective(
        __kind, __mask, __value, __file, __line, [=](const gridstride_gathered& __all) {
            return __all.participants >> __source & 1 ? __all.template value<__type>(__source) : __type{};
        });
}

// Lane numbers of shuffles, computed as the instruction does, also for widths that are no power of two.
GRIDSTRIDE_INLINE unsigned gridstride_segment_bits(int __width) { return (GRIDSTRIDE_WARP_SIZE - __width) & 31; }
GRIDSTRIDE_INLINE unsigned gridstride_segment_end(unsigned __lane, int __width) {
    const unsigned __bits = gridstride_segment_bits(__width);
    return (__lane & __bits) | (31 & ~__bits);
}
GRIDSTRIDE_INLINE unsigned gridstride_source_of__shfl(int __source, int __width) {
    const unsigned __bits = gridstride_segment_bits(__width);
    return (gridstride_lane() & __bits) | (__source & 31 & ~__bits);
}
GRIDSTRIDE_INLINE unsigned gridstride_source_of__shfl_up(unsigned __delta, int __width) {
    const unsigned __lane = gridstride_lane(), __first = __lane & gridstride_segment_bits(__width);
    const int __source = int(__lane) - int(__delta & 31);
    return __source >= int(__first) ? unsigned(__source) : __lane;
}
GRIDSTRIDE_INLINE unsigned gridstride_source_of__shfl_down(unsigned __delta, int __width) {
    const unsigned __lane = gridstride_lane(), __source = __lane + (__delta & 31);
    return __source <= gridstride_segment_end(__lane, __width) ? __source : __lane;
}
GRIDSTRIDE_INLINE unsigned gridstride_source_of__shfl_xor(int __lanes, int __width) {
    const unsigned __lane = gridstride_lane(), __source = __lane ^ (__lanes & 31);
    return __source <= gridstride_segment_end(__lane, __width) ? __source : __lane;
}

// `type` exists for the types that can be shuffled and matched. Device headers add theirs (half, ...); what
// is narrower than int travels as int. Templates, because one that is not used costs a kernel nothing.
template <class __type> struct gridstride_shuffled {};
template <> struct gridstride_shuffled<int> { typedef int type; };
template <> struct gridstride_shuffled<unsigned> { typedef unsigned type; };
template <> struct gridstride_shuffled<long> { typedef long type; };
template <> struct gridstride_shuffled<unsigned long> { typedef unsigned long type; };
template <> struct gridstride_shuffled<long long> { typedef long long type; };
template <> struct gridstride_shuffled<unsigned long long> { typedef unsigned long long type; };
template <> struct gridstride_shuffled<float> { typedef float type; };
template <> struct gridstride_shuffled<double> { typedef double type; };

template <class __type>
using gridstride_shuffled_t = typename gridstride_shuffled<decltype(+*static_cast<__type*>(nullptr))>::type;

#define GRIDSTRIDE_SHUFFLE(__name, __kind, __parameter) \
    template <class __type> \
    GRIDSTRIDE_INLINE gridstride_shuffled_t<__type> __name##_sync( \
        unsigned __mask, __type __value, __parameter, int __width = 32, GRIDSTRIDE_SITE) { \
        return gridstride_shuffle<gridstride_shuffled_t<__type>>( \
            __kind, __mask, __value, gridstride_source_of##__name(__operand, __width), __file, __line); \
    }
GRIDSTRIDE_SHUFFLE(__shfl, GRIDSTRIDE_COLLECTIVE_SHFL, int __operand)
GRIDSTRIDE_SHUFFLE(__shfl_up, GRIDSTRIDE_COLLECTIVE_SHFL_UP, unsigned __operand)
GRIDSTRIDE_SHUFFLE(__shfl_down, GRIDSTRIDE_COLLECTIVE_SHFL_DOWN, unsigned __operand)
GRIDSTRIDE_SHUFFLE(__shfl_xor, GRIDSTRIDE_COLLECTIVE_SHFL_XOR, int __operand)
#undef GRIDSTRIDE_SHUFFLE

// ---- votes ----

// The participants whose value is not 0, and all participants.
struct gridstride_ballot_result {
    unsigned true_lanes, participants;
};

// The lanes that, in `all`, brought what `holds` accepts.
template <class __type, class __function>
GRIDSTRIDE_INLINE unsigned gridstride_lanes_where(const gridstride_gathered& __all, __function __holds) {
    unsigned __lanes = 0;
    for (unsigned __rest = __all.participants; __rest; __rest &= __rest - 1)
        if (__holds(__all.template value<__type>(unsigned(__builtin_ctz(__rest))))) __lanes |= __rest & -__rest;
    return __lanes;
}

GRIDSTRIDE_INLINE gridstride_ballot_result gridstride_ballot(
    unsigned __kind, unsigned __mask, int __predicate, const char* __file, unsigned __line) {
    return gridstride_collective(
        __kind, __mask, char(__predicate != 0), __file, __line, [](const gridstride_gathered& __all) {
            const unsigned __lanes = gridstride_lanes_where<char>(__all, [](char __value) { return __value != 0; });
            return gridstride_ballot_result{__lanes, __all.participants};
        });
}

GRIDSTRIDE_INLINE unsigned __ballot_sync(unsigned __mask, int __predicate, GRIDSTRIDE_SITE) {
    return gridstride_ballot(GRIDSTRIDE_COLLECTIVE_BALLOT, __mask, __predicate, __file, __line).true_lanes;
}
GRIDSTRIDE_INLINE int __any_sync(unsigned __mask, int __predicate, GRIDSTRIDE_SITE) {
    return gridstride_ballot(GRIDSTRIDE_COLLECTIVE_ANY, __mask, __predicate, __file, __line).true_lanes != 0;
}
GRIDSTRIDE_INLINE int __all_sync(unsigned __mask, int __predicate, GRIDSTRIDE_SITE) {
    const auto __vote = gridstride_ballot(GRIDSTRIDE_COLLECTIVE_ALL, __mask, __predicate, __file, __line);
    return __vote.true_lanes == __vote.participants;
}
GRIDSTRIDE_INLINE int __uni_sync(unsigned __mask, int __predicate, GRIDSTRIDE_SITE) {
    const auto __vote = gridstride_ballot(GRIDSTRIDE_COLLECTIVE_UNI, __mask, __predicate, __file, __line);
    return __vote.true_lanes == 0 || __vote.true_lanes == __vote.participants;
}

// ---- matches ----

template <class __type>
GRIDSTRIDE_INLINE unsigned gridstride_match(
    unsigned __kind, unsigned __mask, __type __value, const char* __file, unsigned __line, bool __all_or_none) {
    return gridstride_collective(
        __kind, __mask, __value, __file, __line, [=](const gridstride_gathered& __all) {
            const unsigned __equal = gridstride_lanes_where<__type>(__all, [=](const __type& __other) {
                return __builtin_memcmp(&__other, &__value, sizeof(__type)) == 0;  // bits, also of numbers
            });
            return __all_or_none && __equal != __all.participants ? 0u : __equal;
        });
}

template <class __type>
GRIDSTRIDE_INLINE auto __match_any_sync(unsigned __mask, __type __value, GRIDSTRIDE_SITE)
    -> decltype(gridstride_shuffled_t<__type>(), 0u) {
    return gridstride_match<gridstride_shuffled_t<__type>>(
        GRIDSTRIDE_COLLECTIVE_MATCH_ANY, __mask, __value, __file, __line, false);
}
template <class __type>
GRIDSTRIDE_INLINE auto __match_all_sync(unsigned __mask, __type __value, int* __matches, GRIDSTRIDE_SITE)
    -> decltype(gridstride_shuffled_t<__type>(), 0u) {
    const unsigned __lanes = gridstride_match<gridstride_shuffled_t<__type>>(
        GRIDSTRIDE_COLLECTIVE_MATCH_ALL, __mask, __value, __file, __line, true);
    *__matches = __lanes != 0;
    return __lanes;
}

// ---- reductions ----

// Folds what the participants brought, in the order of their lanes.
template <class __type, class __function>
GRIDSTRIDE_INLINE __type gridstride_reduce(
    unsigned __kind, unsigned __mask, __type __value, const char* __file, unsigned __line, __function __fold) {
    return gridstride_collective(
        __kind, __mask, __value, __file, __line, [=](const gridstride_gathered& __all) {
            __type __result = __all.template value<__type>(unsigned(__builtin_ctz(__all.participants)));
            for (unsigned __rest = __all.participants & (__all.participants - 1); __rest; __rest &= __rest - 1)
                __result = __fold(__result, __all.template value<__type>(unsigned(__builtin_ctz(__rest))));
            return __result;
        });
}

// int and unsigned; what is narrower becomes int.
template <class __type> struct gridstride_reduced {};
template <> struct gridstride_reduced<int> { typedef int type; };
template <> struct gridstride_reduced<unsigned> { typedef unsigned type; };
template <class __type>
using gridstride_reduced_t = typename gridstride_reduced<decltype(+*static_cast<__type*>(nullptr))>::type;

#define GRIDSTRIDE_REDUCTION(__name, __kind, __reduced, __expression) \
    template <class __type> \
    GRIDSTRIDE_INLINE __reduced __name(unsigned __mask, __type __value, GRIDSTRIDE_SITE) { \
        return gridstride_reduce<__reduced>( \
            GRIDSTRIDE_COLLECTIVE_##__kind, __mask, __value, __file, __line, \
            [](__reduced __a, __reduced __b) { return __reduced(__expression); }); \
    }

GRIDSTRIDE_REDUCTION(__reduce_add_sync, REDUCE_ADD, gridstride_reduced_t<__type>, unsigned(__a) + unsigned(__b))
GRIDSTRIDE_REDUCTION(__reduce_min_sync, REDUCE_MIN, gridstride_reduced_t<__type>, __a < __b ? __a : __b)
GRIDSTRIDE_REDUCTION(__reduce_max_sync, REDUCE_MAX, gridstride_reduced_t<__type>, __a < __b ? __b : __a)
GRIDSTRIDE_REDUCTION(__reduce_and_sync, REDUCE_AND, unsigned, __a & __b)
GRIDSTRIDE_REDUCTION(__reduce_or_sync, REDUCE_OR, unsigned, __a | __b)
GRIDSTRIDE_REDUCTION(__reduce_xor_sync, REDUCE_XOR, unsigned, __a ^ __b)

#undef GRIDSTRIDE_REDUCTION

// ---- forms that compute capability 7.0 removed ----

#define GRIDSTRIDE_REMOVED(__name, __replacement) \
    template <class... __types> \
    void __name(__types...) __attribute__((error(#__name " does not exist on compute capability 7.0 and later: use " #__replacement)));
#ifdef __clang__
#undef GRIDSTRIDE_REMOVED
#define GRIDSTRIDE_REMOVED(__name, __replacement) \
    template <class... __types> \
    void __name(__types...) __attribute__((unavailable(#__name " does not exist on compute capability 7.0 and later: use " #__replacement)));
#endif
GRIDSTRIDE_REMOVED(__shfl, __shfl_sync)
GRIDSTRIDE_REMOVED(__shfl_up, __shfl_up_sync)
GRIDSTRIDE_REMOVED(__shfl_down, __shfl_down_sync)
GRIDSTRIDE_REMOVED(__shfl_xor, __shfl_xor_sync)
GRIDSTRIDE_REMOVED(__any, __any_sync)
GRIDSTRIDE_REMOVED(__all, __all_sync)
GRIDSTRIDE_REMOVED(__ballot, __ballot_sync)
#undef GRIDSTRIDE_REMOVED

#endif
