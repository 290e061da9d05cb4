// `fold_short`: folds of short rows that lie one after another. A block brings neighboring rows into shared memory as
// one stretch, so that loads are whole words wherever rows begin, and folds each row there.
#ifndef GRIDSTRIDE_FOLD_SHORT_H
#define GRIDSTRIDE_FOLD_SHORT_H

#include <gridstride/fold_parts.h>
#include <gridstride/line_packets.h>

namespace gridstride {

// So many bytes of each stretch lie next to each other; then a gap makes rows of whole words start in other banks. Other
// rows do so anyway.
constexpr unsigned bank_row = 128;

// Words between those that threads begin with which would meet in a bank, as the writer has it.
constexpr int words_apart = 8;

__device__ constexpr int gap_of(int __size) { return __size < 4 ? 4 : __size; }
// Room for so many bytes that begin between two words.
__device__ constexpr int stretch_bytes(int __bytes, int __gap) {
    return (__bytes + 32 + int(bank_row) - 1) / int(bank_row) * (int(bank_row) + __gap) / 16 * 16 + 16;
}
// Elements that a block folds at once, of so many bytes.
template <int __room, class... __inputs>
__device__ constexpr int stretch_elements() { return __room / sum_of(int(sizeof(typename __inputs::stored))...); }

// An input in shared memory. `__word`: bytes of words of which rows are made, or 0.
template <bool __has_gaps, int __word, class __operand, int __elements>
struct stretch {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored), word = __word, gap = larger(__word, gap_of(size));
    static constexpr int bytes = stretch_bytes(__elements * size, __has_gaps ? gap : 0);

    const __operand& source;
    const char* base;
    char* memory;
    int shift;  // bytes from the beginning of a word to the first element

    GRIDSTRIDE_INLINED stretch(const __operand& __source) : source(__source), base(__source.data), memory(nullptr), shift(0) {}
    GRIDSTRIDE_INLINED char* place_in(char* __shared) {
        memory = __shared;
        return __shared + bytes;
    }
    static GRIDSTRIDE_INLINED unsigned spread(unsigned __byte) {
        return __has_gaps ? __byte + __byte / bank_row * gap : __byte;
    }
    // Bring so many elements, from a number on.
    GRIDSTRIDE_INLINED int bring(long long __first, int __count) {
        const char* __at = base + __first * size;
        shift = int(bytes_past<16>(__at));
        const uint4* __words = reinterpret_cast<const uint4*>(__at - shift);
        const int __whole = (shift + __count * size + 15) / 16;
        constexpr int __at_once = 4;
        for (int __w = threadIdx.x; __w < __whole; __w += __at_once * fold_threads) {
            uint4 __bits[__at_once];
#pragma unroll
            for (int __k = 0; __k < __at_once; ++__k)
                if (__w + __k * fold_threads < __whole) __bits[__k] = __words[__w + __k * fold_threads];
#pragma unroll
            for (int __k = 0; __k < __at_once; ++__k)
                if (__w + __k * fold_threads < __whole) put(spread((__w + __k * fold_threads) * 16), __bits[__k]);
        }
        return 0;
    }
    GRIDSTRIDE_INLINED void put(unsigned __at, const uint4& __bits) {
        if (!__has_gaps) {
            *reinterpret_cast<uint4*>(memory + __at) = __bits;
            return;
        }
        typedef typename gridstride::word<gap>::type __piece;
        __piece __pieces[16 / gap];
        memcpy(__pieces, &__bits, 16);
#pragma unroll
        for (int __k = 0; __k < 16 / gap; ++__k) reinterpret_cast<__piece*>(memory + __at)[__k] = __pieces[__k];
    }
    GRIDSTRIDE_INLINED stored& at(int __element) const {
        return *reinterpret_cast<stored*>(memory + spread(shift + __element * size));
    }
    GRIDSTRIDE_INLINED unsigned four_bytes(unsigned __byte) const {
        return *reinterpret_cast<const unsigned*>(memory + spread(__byte));
    }
    template <int __count>
    GRIDSTRIDE_INLINED void take_word(unsigned (&__to)[__count], unsigned __byte) const {
        const auto __bits = *reinterpret_cast<const typename gridstride::word<4 * __count>::type*>(memory + spread(__byte));
        memcpy(__to, &__bits, 4 * __count);
    }

    // Elements one after another, four bytes at a time.
    typedef packet<stored, size < 4 ? 4 / size : 1> quad;
    unsigned rest, done;  // four bytes that are not all used, and how many bits of them are
    unsigned next_byte;   // where the next four lie, without gaps `next`
    const unsigned* next;
    GRIDSTRIDE_INLINED int begin_quads(int __element) {
        const unsigned __byte = shift + __element * size;
        next_byte = __byte / 4 * 4;
        next = reinterpret_cast<const unsigned*>(memory + next_byte);
        done = __byte % 4 * 8;
        rest = take_four();
        return 0;
    }
    GRIDSTRIDE_INLINED unsigned take_four() {
        if (!__has_gaps) return *next++;
        const unsigned __bits = *reinterpret_cast<const unsigned*>(memory + spread(next_byte));
        next_byte += 4;
        return __bits;
    }
    GRIDSTRIDE_INLINED void take_quad(quad& __to) {
        const unsigned __bits = take_four(), __whole = __funnelshift_r(rest, __bits, done);
        rest = __bits;
        memcpy(&__to, &__whole, 4);
    }
};

// Whether four bytes of each input hold the same number of elements, more than one.
template <class... __inputs>
__device__ constexpr bool are_in_quads() {
    return sizeof...(__inputs) == 1 && larger(int(sizeof(typename __inputs::stored))...) <= 2;
}

GRIDSTRIDE_INLINED void place_stretches(char*) {}
template <class __first, class... __rest>
GRIDSTRIDE_INLINED void place_stretches(char* __shared, __first& __one, __rest&... __others) {
    place_stretches(__one.place_in(__shared), __others...);
}

// Where costly values of elements `__apart` are folded, the compiler knows which of two comes first.
template <class __map, class __counted, class __place, class... __inputs>
GRIDSTRIDE_INLINED auto stretched_value(const __map& __do_map, const __counted& __from, int __begin, int __element, __place __first,
                                        int __later, __inputs&... __all) {
    return __do_map(__from.number + (__element + __later) * __from.number_step, __from.place(__first, __later),
                    element<typename __inputs::operand>(__all.at(__begin + __element + __later)).get()...);
}

// Elements `__first`, that and `__apart`, and so on, before `__end`, of a row that begins with element `__begin`.
template <int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_each(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                 const __counted& __from, int __begin, int __first, int __end, int __apart,
                                 __inputs&... __all) {
    constexpr bool __are_costly = is_costly<__folding, __reduce>::value;
    for (; __first + (most_sums - 1) * __apart < __end; __first += most_sums * __apart) {
        const auto __place = __from.first_place(__first);
        added_values<__are_costly>::template to<most_sums>(__do, __sums, [&](int __j) {
            return stretched_value(__do_map, __from, __begin, __first, __place, __j * __apart, __all...);
        });
    }
#pragma unroll
    for (int __j = 0; __j < most_sums - 1; ++__j)
        if (__first + __j * __apart < __end)
            __sums[__j % __sums_count].add(__do, stretched_value(__do_map, __from, __begin, __first, __from.first_place(__first), __j * __apart, __all...));
}

// Elements of a row that begins with element `__begin`, by `__apart` threads of which this has number `__first`: each has
// neighboring ones.
template <class __input>
struct short_row {
    template <int __sums_count, class __folding, class __map, class __reduce, class __counted>
    static GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                       const __counted& __from, int __begin, int __first, int __end, int __apart, __input& __one) {
        constexpr int __length = sizeof(typename __input::quad) / sizeof(typename __input::stored);
        const int __quads = (__end + __length - 1) / __length, __own = (__quads + __apart - 1) >> (__ffs(__apart) - 1);
        int __element = __first * __own * __length;
        const int __left = __end - __element, __last = __left < __own * __length ? __left : __own * __length;
        if (__last <= 0) return;
        __one.begin_quads(__begin + __element);
        constexpr bool __are_costly = is_costly<__folding, __reduce>::value;
        packet<typename __input::stored, most_sums> __few;
        int __k = 0;
        for (; __k + most_sums <= __last; __k += most_sums) {
            const auto __place = __from.first_place(__element + __k);
            take(__one, __few, most_sums);
            added_values<__are_costly>::template to<most_sums>(__do, __sums, [&](int __j) { return value(__do_map, __from, __element + __k, __place, __j, __few); });
        }
        take(__one, __few, __last - __k);
#pragma unroll
        for (int __j = 0; __j < most_sums - 1; ++__j)
            if (__k + __j < __last)
                __sums[__j % __sums_count].add(__do, value(__do_map, __from, __element + __k, __from.first_place(__element + __k), __j, __few));
    }
    // The next few elements, `__last` of them at most.
    static GRIDSTRIDE_INLINED void take(__input& __one, packet<typename __input::stored, most_sums>& __few, int __last) {
        constexpr int __length = sizeof(typename __input::quad) / sizeof(typename __input::stored);
#pragma unroll
        for (int __j = 0; __j < most_sums; __j += __length) {
            typename __input::quad __items;
            if (__j < __last) __one.take_quad(__items);
#pragma unroll
            for (int __i = 0; __i < __length; ++__i) __few.items[__j + __i] = __items.items[__i];
        }
    }
    template <class __map, class __counted, class __place, class __items>
    static GRIDSTRIDE_INLINED auto value(const __map& __do_map, const __counted& __from, int __element, __place __first, int __j, __items& __few) {
        return __do_map(__from.number + (__element + __j) * __from.number_step, __from.place(__first, __j),
                        item_of<typename __input::operand>(__few, __j));
    }
};

template <bool __are_quads, class... __inputs> struct short_rows {
    template <int __sums_count, class __folding, class __map, class __reduce, class __counted>
    static GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                       const __counted& __from, int __begin, int __first, int __end, int __apart, __inputs&... __all) {
        add_each(__do_map, __do, __sums, __from, __begin, __first, __end, __apart, __all...);
    }
};
template <class __input> struct short_rows<true, __input> : short_row<__input> {};

template <int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_short_row(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                      const __counted& __from, int __begin, int __first, int __end, int __apart, int,
                                      __inputs&... __all) {
    short_rows<are_in_quads<__inputs...>(), __inputs...>::add(__do_map, __do, __sums, __from, __begin, __first, __end, __apart, __all...);
}

// The fold of small integers in bytes of a stretch, by words: those at the ends hold bytes of other rows too. It goes round
// the words between them, from a few times `__turn` on.
template <class __reduce, class __input>
GRIDSTRIDE_INLINED int fold_of_bytes(unsigned __byte, unsigned __bytes, unsigned __first, unsigned __apart, int __turn, __input& __one) {
    word_fold<__reduce, typename __input::stored> __fold;
    const unsigned __begin = __byte & ~3u, __end = __byte + __bytes, __last = (__end - 1) & ~3u;
    const unsigned __after_begin = ~0u << __byte % 4 * 8, __before_end = ~0u >> (3 - (__end - 1) % 4) * 8;
    unsigned __bits[most_sums] = {}, __at_begin = 0, __at_end = 0;
    if (__first == 0) __at_begin = __one.four_bytes(__begin);
    if (__first == __apart - 1) __at_end = __one.four_bytes(__last);
    const int __from = int(__begin + 4 + __first * 4), __past = int(__last) - (most_sums - 1) * int(__apart) * 4;
    const int __step = most_sums * int(__apart) * 4;
    int __at = __from + __turn * __step, __rest = __from;
    if (__at >= __past) __at = __from;
    for (; __rest < __past; __rest += __step) {
#pragma unroll
        for (int __j = 0; __j < most_sums; ++__j) __bits[__j] = __one.four_bytes(__at + __j * __apart * 4);
#pragma unroll
        for (int __j = 0; __j < most_sums; ++__j) __fold.add(__bits[__j]);
        __at += __step;
        if (__at >= __past) __at = __from;
    }
#pragma unroll
    for (int __j = 0; __j < most_sums - 1; ++__j) {
        const int __own = __rest + __j * int(__apart) * 4;
        __bits[__j] = __own < int(__last) ? __one.four_bytes(__own) : __fold.only(0, 0);
    }
#pragma unroll
    for (int __j = 0; __j < most_sums - 1; ++__j) __fold.add(__bits[__j]);
    __fold.add(__fold.only(__at_begin, __first != 0 ? 0 : __last == __begin ? __after_begin & __before_end : __after_begin));
    __fold.add(__fold.only(__at_end, __first == __apart - 1 && __last != __begin ? __before_end : 0));
    return __fold.value();
}

template <int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_integers_of_row(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                            const __counted& __from, int __begin, int __first, int __end, int __apart,
                                            int __turn, __input& __one) {
    constexpr int __size = sizeof(typename __input::stored);
    if (__end <= 0) return;
    if (__one.shift % __size == 0)
        __sums[0].add(__do, static_cast<typename __folding::type>(fold_of_bytes<__reduce>(
                                __one.shift + __begin * __size, __end * __size, __first, __apart, __turn, __one)));
    else
        add_each(__do_map, __do, __sums, __from, __begin, __first, __end, __apart, __one);
}
template <int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_short_row(const __map& __do_map, const integer_sum<__reduce>& __do, __folding (&__sums)[__sums_count],
                                      const __counted& __from, int __begin, int __first, int __end, int __apart, int __turn, __input& __one) {
    add_integers_of_row(__do_map, __do, __sums, __from, __begin, __first, __end, __apart, __turn, __one);
}
template <int __sums_count, class __folding, class __map, class __reduce, bool __is_largest, class __counted, class __input>
GRIDSTRIDE_INLINED void add_short_row(const __map& __do_map, const byte_extreme<__reduce, __is_largest>& __do, __folding (&__sums)[__sums_count],
                                      const __counted& __from, int __begin, int __first, int __end, int __apart, int __turn, __input& __one) {
    add_integers_of_row(__do_map, __do, __sums, __from, __begin, __first, __end, __apart, __turn, __one);
}

template <bool __is_alone, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_stretch(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                     const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                     __inputs&&... __all) {
    constexpr bool __is_costly = is_costly<__folding, __reduce>::value;
    // `part` rows a block, `width` elements from a row to the next, `group` threads a row; where a thread takes a row, so many begin with different words of it.
    const int __row = int(__space.fold_row), __pitch = int(__space.width), __group = __is_alone ? 1 : __space.group, __lane = threadIdx.x & (__group - 1);
    const int __turn = __is_alone ? (threadIdx.x & (__space.group - 1)) * words_apart / most_sums : 0;
    const long long __first = blockIdx.x * __space.part, __left = __space.outputs - __first;
    const int __rows = __left < __space.part ? int(__left) : int(__space.part);
    place_stretches(__shared, __all...);
    swallow(__all.bring(__first * __pitch, (__rows - 1) * __pitch + __row)...);
    __syncthreads();
    const int __own = threadIdx.x >> (__ffs(__group) - 1), __apart = fold_threads >> (__ffs(__group) - 1);
    // All threads of a group come as often, whether there is a row for them or not.
    for (int __begin = 0; __begin < __rows; __begin += __apart) {
        const int __result = __begin + __own, __end = __result < __rows ? __row : 0;
        const counted_along<typename counter_of<int, __is_costly>::type> __from(__space, (__first + __result) * __space.kept_numbers.strides[0]);
        __folding __sums[__is_costly ? 1 : most_sums];
#pragma unroll
        for (__folding& __sum : __sums) __sum = __start;
        add_short_row(__do_map, __do, __sums, __from, __result * __pitch, __lane, __end, __group, __turn, __all...);
        join_own(__do, __sums);
        join_warp(__do, __sums[0], __group);
        if (__lane == 0 && __result < __rows) __do_finish(__first + __result, 0, __sums[0]);
    }
}

// `__is_alone`: whether a thread folds a row; `__word`: bytes of words of which rows are made, if it takes these, or 0.
template <bool __has_gaps, int __room, bool __is_alone, int __word = 0>
struct fold_short {
    template <class __folding, class... __inputs>
    static __device__ constexpr int shared_bytes() {
        return sum_of(stretch<__has_gaps, __word, __inputs, stretch_elements<__room, __inputs...>()>::bytes...);
    }
    template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
        constexpr int __elements = stretch_elements<__room, __operands...>();
        fold_stretch<__is_alone>(__do_map, __do, __do_finish, __start, __space, __shared,
                     stretch<__has_gaps, __word, __operands, __elements>(__inputs)...);
    }
};

}

#endif
