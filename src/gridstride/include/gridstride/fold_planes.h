// `fold_planes`: folds of which the elements of neighboring results, a plane, lie next to each other, but not those of one
// result. A block brings planes into shared memory as they lie, and a thread, or a few, fold the elements of a result there.
#ifndef GRIDSTRIDE_FOLD_PLANES_H
#define GRIDSTRIDE_FOLD_PLANES_H

#include <gridstride/async_words.h>
#include <gridstride/fold_blocks.h>
#include <gridstride/integer_sums.h>

namespace gridstride {

// Elements of each input for which a block has room, in so many bytes.
template <int __room, class... __operands>
__device__ constexpr int elements_of_planes() { return __room / sum_of(int(sizeof(typename __operands::stored))...); }
// Bytes between planes, if there are any.
constexpr int plane_gap = 16;
// Bytes of so many elements that begin between two words.
__device__ constexpr int bytes_of_planes(int __elements, int __size) { return (__elements * __size + 34) / 16 * 16; }

// An input in shared memory, and where a thread's elements begin in it.
template <class __operand, int __elements>
struct plane_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored);

    const __operand& source;
    char* memory;
    unsigned begins, own;  // where the elements begin, and those of the thread that come next

    GRIDSTRIDE_INLINED plane_input(const __operand& __source) : source(__source), memory(nullptr), begins(0), own(0) {}
    // Bring so many elements, from a number on; return where there is room for others. Where planes are whole words, those
    // of which all begin in the same banks are brought with a gap after each: number `__plane_axis` of `fold` is their words.
    template <int __plane_axis, int __axes>
    GRIDSTRIDE_INLINED char* bring(char* __to, long long __first, int __count, const fold_space<__axes>& __space) {
        memory = __to;
        const char* __at = source.data + __first * size;
        begins = bytes_past<16>(__at);
        const char* __words = __at - begins;
        const int __bytes = int(begins) + __count * size;
#pragma unroll 4
        for (int __byte = threadIdx.x * 16; __byte < __bytes; __byte += fold_threads * 16) {
            unsigned __plane = __plane_axis ? __byte / 16 : 0;
            if (__plane_axis) remainder_of(__space.fold, __plane, __plane_axis);
            bring_word<16, false>(memory + __byte + __plane * plane_gap, __words + __byte);
        }
        return __to + bytes_of_planes(__elements, size);
    }
    GRIDSTRIDE_INLINED int begin() {
        own = begins;
        return 0;
    }
    GRIDSTRIDE_INLINED int move(unsigned __bytes) {
        own += __bytes;
        return 0;
    }
    // An element of those that are so far apart from the next on: where `__j` elements later is, is the same for all threads.
    GRIDSTRIDE_INLINED stored& at(int __j, unsigned __apart) const { return *reinterpret_cast<stored*>((memory + __j * __apart) + own); }
};

template <int __plane_axis, int __axes>
GRIDSTRIDE_INLINED void bring_planes(const fold_space<__axes>&, char*, long long, int) {}
template <int __plane_axis, int __axes, class __first_input, class... __rest>
GRIDSTRIDE_INLINED void bring_planes(const fold_space<__axes>& __space, char* __shared, long long __first, int __count,
                                     __first_input& __one, __rest&... __others) {
    char* const __next = __one.template bring<__plane_axis>(__shared, __first, __count, __space);
    bring_planes<__plane_axis>(__space, __next, __first, __count, __others...);
}

// What a thread folds: values, or elements and where they are in the fold.
template <bool __are_elements, class __folding, class __reduce, class... __inputs>
struct plane_sum {
    __folding sum;

    GRIDSTRIDE_INLINED plane_sum(const __folding& __start, const __inputs&...) : sum(__start) {}
    template <class __map>
    GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, long long __number, long long __place, int __j, int __apart, const __inputs&... __all) {
        sum.add(__do, __do_map(__number, __place, element<typename __inputs::operand>(__all.at(__j, __apart * unsigned(__all.source.strides[0]))).get()...));
    }
    GRIDSTRIDE_INLINED void join(const __reduce& __do, int __group) { join_warp(__do, sum, __group); }
    GRIDSTRIDE_INLINED const __folding& value(const __reduce&, const __folding&) const { return sum; }
};
template <class __folding, class __reduce, class __input>
struct plane_sum<true, __folding, __reduce, __input> {
    typedef typename columns_in_words<__reduce, typename __input::stored, 4>::type columns;
    typename columns::kept kept;
    const char* first;

    GRIDSTRIDE_INLINED plane_sum(const __folding&, const __input& __one) : kept(columns::nothing()), first(reinterpret_cast<const char*>(&__one.at(0, 0))) {}
    template <class __map>
    GRIDSTRIDE_INLINED void add(const __map&, const __reduce&, long long, long long __place, int __j, int __apart, const __input& __one) {
        columns::add_one(kept, __one.at(__j, __apart * unsigned(__one.source.strides[0])), int(__place));
    }
    GRIDSTRIDE_INLINED void join(const __reduce& __do, int __group) {
        for (int __distance = __group / 2; __distance > 0; __distance /= 2) joined(__do, kept, from_lane_below(kept, __distance, __group));
    }
    GRIDSTRIDE_INLINED __folding value(const __reduce& __do, const __folding& __start) const {
        return as_folded(__do, __start, with_any(kept, first, 0), 0);
    }
};

// Whether bytes that lie one after another are folded in words, and how: those of a packet that begins between words.
template <class __reduce> struct folds_words { static constexpr bool value = false; };
template <class __reduce> struct folds_words<integer_sum<__reduce>> { static constexpr bool value = true; };
template <class __reduce, bool __is_largest> struct folds_words<byte_extreme<__reduce, __is_largest>> { static constexpr bool value = true; };
template <bool>
struct plane_words {
    template <class __sum, class __reduce, class... __inputs>
    static GRIDSTRIDE_INLINED void add(__sum&, const __reduce&, int, const __inputs&...) {}
};
template <>
struct plane_words<true> {
    template <class __sum, class __reduce, class __input>
    static GRIDSTRIDE_INLINED void add(__sum& __own, const __reduce& __do, int __count, const __input& __one) {
        word_fold<__reduce, typename __input::stored> __fold;
        const unsigned __begin = __one.own & ~3u, __shift = __one.own * 8;
        const unsigned* __words = reinterpret_cast<const unsigned*>(__one.memory + __begin);
        unsigned __low = *__words;
#pragma unroll
        for (int __left = __count; __left > 0; __left -= 4) {
            const unsigned __high = *++__words, __bits = __funnelshift_r(__low, __high, __shift);
            __low = __high;
            __fold.add(__left >= 4 ? __bits : __fold.only(__bits, ~bytes_from(__left)));
        }
        joined(__do, __own.kept, __fold.value());
    }
};

// Where a thread's elements are, as the user's expressions count them: along the innermost axis, from a number and a place on.
template <bool __is_only>
struct plane_place {
    long long number, number_step, place, place_step;
    GRIDSTRIDE_INLINED long long number_of(int __k) const { return number + __k * number_step; }
    GRIDSTRIDE_INLINED long long place_of(int __k) const { return __is_only ? __k : place + __k * place_step; }
};

// Add so many elements of the innermost axis, `__apart` from one to the next, of which the first is number `__k`.
template <int __count, class __sum, class __map, class __reduce, class __places, class... __inputs>
GRIDSTRIDE_INLINED void add_few_of_plane(__sum& __own, const __map& __do_map, const __reduce& __do, const __places& __at, int __k, int __apart,
                                         __inputs&... __all) {
#pragma unroll
    for (int __j = 0; __j < __count; ++__j)
        __own.add(__do_map, __do, __at.number_of(__k + __j * __apart), __at.place_of(__k + __j * __apart), __j, __apart, __all...);
}

// The same, and go to those that are left; return the number of the first.
template <int __count, class __sum, class __map, class __reduce, class __places, class... __inputs>
GRIDSTRIDE_INLINED int add_some_of_plane(__sum& __own, const __map& __do_map, const __reduce& __do, const __places& __at, int __k, int __apart,
                                         __inputs&... __all) {
    add_few_of_plane<__count>(__own, __do_map, __do, __at, __k, __apart, __all...);
    swallow(__all.move(__count * __apart * unsigned(__all.source.strides[0]))...);
    return __k + __count * __apart;
}

// Add every `__apart`th element of the innermost axis, from one on. `__rows`: how many there are, if known, all of them.
template <int __rows, class __sum, class __map, class __reduce, class __places, class... __inputs>
GRIDSTRIDE_INLINED void add_along_plane(__sum& __own, const __map& __do_map, const __reduce& __do, const __places& __at, int __first, int __count,
                                        int __apart, __inputs&... __all) {
    if (__rows) return add_few_of_plane<__rows>(__own, __do_map, __do, __at, 0, 1, __all...);
    int __k = __first;
    while (__k + 7 * __apart < __count) __k = add_some_of_plane<8>(__own, __do_map, __do, __at, __k, __apart, __all...);
    if (__k + 3 * __apart < __count) __k = add_some_of_plane<4>(__own, __do_map, __do, __at, __k, __apart, __all...);
    while (__k < __count) __k = add_some_of_plane<1>(__own, __do_map, __do, __at, __k, __apart, __all...);
}

// Add the elements of a result that a thread of a group takes: every so many along the outermost folded axis.
template <int __rows, int __fold_axes, bool __are_words, class __sum, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void add_own(__sum& __own, const __map& __do_map, const __reduce& __do, const fold_space<__axes>& __space,
                                long long __number, int __lane, int __group, __inputs&... __all) {
    constexpr int __last = __fold_axes - 1;
    const int __count = int(__space.fold.length[0]);
    plane_place<__last == 0> __at = {__number, __space.fold_numbers.strides[0], 0, __space.position.strides[0]};
    swallow(__all.move(__lane * unsigned(__all.source.strides[__last]))...);
    if (__last == 0) add_along_plane<__rows>(__own, __do_map, __do, __at, __lane, __count, __group, __all...);
    for (int __row = __lane; __last && __row < int(__space.fold.length[__last]); __row += __group) {
        __at.number = __number + __row * __space.fold_numbers.strides[__last];
        __at.place = __row * __space.position.strides[__last];
        if (__are_words) plane_words<__are_words>::add(__own, __do, __rows ? __rows : __count, __all...);
        else add_along_plane<__rows>(__own, __do_map, __do, __at, 0, __count, 1, __all...);
        const unsigned __moved = __rows || __are_words ? 0 : __count;
        swallow(__all.move(__group * unsigned(__all.source.strides[__last]) - __moved * unsigned(__all.source.strides[0]))...);
    }
}

// `width` planes a block, of `part` results, each of which `group` threads fold.
template <bool __has_gaps, bool __is_alone, int __rows, int __kept_axes, int __fold_axes, bool __are_elements, bool __are_words, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_brought_planes(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                            const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                            __inputs&&... __all) {
    const long long __first = blockIdx.x * __space.part, __left = __space.outputs - __first;
    const int __results = __left < __space.part ? int(__left) : int(__space.part), __each = int(__space.fold.count);
    bring_planes<__has_gaps ? __fold_axes : 0>(__space, __shared, __first * __each, __results * __each, __all...);
    await_words();
    const int __group = __is_alone ? 1 : __space.group, __shift = __is_alone ? 0 : __ffs(__group) - 1;
    const int __lane = threadIdx.x & (__group - 1);
    const int __apart = fold_threads >> __shift, __own = threadIdx.x >> __shift;
    for (int __begin = 0; __begin < __results; __begin += __apart) {
        // All threads of a group come as often, whether there is a result for them or not.
        const int __result = __begin + __own;
        const bool __is_any = __result < __results;
        if (__is_alone && !__is_any) break;
        unsigned __rest = __is_alone || __is_any ? __result : 0;
        long long __number = blockIdx.x * __space.width * __space.kept_numbers.strides[__kept_axes - 1];
        swallow(__all.begin()...);
#pragma unroll
        for (int __axis = 0; __axis < __kept_axes; ++__axis) {
            const unsigned __at = __axis + 1 < __kept_axes ? remainder_of(__space.kept, __rest, __axis) : __rest;
            __number += __at * __space.kept_numbers.strides[__axis];
            const unsigned __gap = __has_gaps && __axis + 1 == __kept_axes ? plane_gap : 0;
            swallow(__all.move(__at * (unsigned(__all.source.kept_strides[__axis]) + __gap))...);
        }
        plane_sum<__are_elements, __folding, __reduce, __inputs...> __sum(__start, __all...);
        if (__is_alone || __is_any) add_own<__rows, __fold_axes, __are_words>(__sum, __do_map, __do, __space, __number, __lane, __group, __all...);
        if (!__is_alone) __sum.join(__do, __group);
        if (__is_alone || (__lane == 0 && __is_any)) __do_finish(__first + __result, 0, __sum.value(__do, __start));
    }
}

// `__is_alone`: whether a thread folds a result; `__rows`: the length of the innermost folded axis, if it is short, and not
// shared by threads; else 0. `__is_dense`: whether its elements lie one after another.
template <int __room, bool __has_gaps, bool __is_alone, bool __is_dense, int __rows, int __kept_axes, int __fold_axes>
struct fold_planes {
    template <class __folding, class... __inputs>
    static __device__ constexpr int shared_bytes() {
        constexpr int __elements = elements_of_planes<__room, __inputs...>();
        return sum_of(bytes_of_planes(__elements, int(sizeof(typename __inputs::stored)))...);
    }
    template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
        constexpr int __elements = elements_of_planes<__room, __operands...>();
        constexpr bool __are_bytes = folds_bytes<__reduce, __operands...>::value;
        fold_brought_planes<__has_gaps, __is_alone, __rows, __kept_axes, __fold_axes, __are_bytes, __is_dense && __are_bytes && folds_words<__reduce>::value>(
            __do_map, __do, __do_finish, __start, __space, __shared, plane_input<__operands, __elements>(__inputs)...);
    }
};

}

#endif
