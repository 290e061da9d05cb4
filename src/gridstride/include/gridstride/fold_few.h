// `fold_few`: folds of a few elements each, which lie one after another. A thread takes words that make neighboring
// results, and stores these at once.
#ifndef GRIDSTRIDE_FOLD_FEW_H
#define GRIDSTRIDE_FOLD_FEW_H

#include <gridstride/fold_parts.h>
#include <gridstride/line_packets.h>
#include <gridstride/results.h>

namespace gridstride {

__device__ constexpr int largest_word_in(int __bytes) {
    return __bytes % 16 == 0 ? 16 : __bytes % 8 == 0 ? 8 : __bytes % 4 == 0 ? 4 : __bytes % 2 == 0 ? 2 : 1;
}

// More words of one thread than this are far from its neighbors' words: so a warp brings all of its packets by words of
// 16 bytes in order, and hands them on in shared memory.
constexpr int most_own_words = 3;

// The elements of neighboring results, as the words they make.
template <class __operand, int __length, int __count>
struct few_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int bytes = __length * sizeof(stored), size = largest_word_in(bytes), pieces = bytes / size;
    static constexpr bool is_handed = pieces > most_own_words;
    static constexpr int brought = is_handed ? (bytes + 15) / 16 : pieces;
    static constexpr int shared_bytes = is_handed ? fold_threads * bytes : 0;
    typedef typename word<size>::type piece;
    typedef typename word<is_handed ? 16 : size>::type brought_word;

    const __operand& source;
    char* memory;  // of the warp
    brought_word words[__count][brought];
    packet<stored, __length> packets[1];

    GRIDSTRIDE_INLINED few_input(const __operand& __source) : source(__source), memory(nullptr) {}
    GRIDSTRIDE_INLINED char* place_in(char* __shared) {
        memory = __shared + threadIdx.x / 32 * 32 * bytes;
        return __shared + (shared_bytes + 15) / 16 * 16;
    }
    // Load a packet, of which there are so many.
    GRIDSTRIDE_INLINED int load(int __k, long long __packet, long long __end) {
        const int __lane = threadIdx.x % 32;
        const brought_word* __from = reinterpret_cast<const brought_word*>(source.data + (is_handed ? __packet - __lane : __packet) * bytes);
        const long long __left = (__end - __packet + __lane) * bytes;
#pragma unroll
        for (int __j = 0; __j < brought; ++__j) {
            const int __at = is_handed ? __j * 32 + __lane : __j;
            if (is_handed ? __at < 2 * bytes && __at * 16 < __left : __packet < __end) words[__k][__j] = __from[__at];
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int hand_on(int __k) {
        if (is_handed) {
            const int __lane = threadIdx.x % 32;
            __syncwarp();
#pragma unroll
            for (int __j = 0; __j < brought; ++__j)
                if (__j * 32 + __lane < 2 * bytes) reinterpret_cast<brought_word*>(memory)[__j * 32 + __lane] = words[__k][__j];
            __syncwarp();
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __k) {
        if (is_handed) {
            piece __own[pieces];
#pragma unroll
            for (int __j = 0; __j < pieces; ++__j) __own[__j] = reinterpret_cast<const piece*>(memory)[threadIdx.x % 32 * pieces + __j];
            memcpy(&packets[0], &__own, bytes);
        } else {
            memcpy(&packets[0], &words[__k], bytes);
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int load_some(long long __element, int __last) {
        const char* __from = source.data + __element * int(sizeof(stored));
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            if (__j < __last) copy(packets[0].items[__j], reinterpret_cast<const stored*>(__from)[__j]);
        return 0;
    }
};

GRIDSTRIDE_INLINED void place_few(char*) {}
template <class __first, class... __rest>
GRIDSTRIDE_INLINED void place_few(char* __shared, __first& __one, __rest&... __others) {
    place_few(__one.place_in(__shared), __others...);
}

// The fold of the elements of a packet from one of them on.
template <int __row, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED __folding fold_of_few(const __map& __do_map, const __reduce& __do, const __folding& __start,
                                         const counted_along<>& __from, int __first, __inputs&... __all) {
    constexpr bool __are_costly = is_costly<__folding, __reduce>::value;
    __folding __sums[__are_costly ? 1 : most_sums];
#pragma unroll
    for (__folding& __sum : __sums) __sum = __start;
    added_values<__are_costly>::template to<__row>(__do, __sums, [&](int __j) {
        return __do_map(__from.number + __j * __from.number_step, __from.place(0, __j),
                        item_of<typename __inputs::operand>(__all.packets[0], __first + __j)...);
    });
    join_own(__do, __sums);
    return __sums[0];
}

// The same of small integers, by words.
template <int __row, class __folding, class __map, class __reduce, class __input>
GRIDSTRIDE_INLINED __folding fold_of_few(const __map&, const integer_sum<__reduce>& __do, __folding __sum,
                                         const counted_along<>&, int __first, __input& __one) {
    add_integers<true>(__do, __sum, __one.packets[0], __first, __first + __row);
    return __sum;
}
template <int __row, class __folding, class __map, class __reduce, bool __is_largest, class __input>
GRIDSTRIDE_INLINED __folding fold_of_few(const __map& __do_map, const byte_extreme<__reduce, __is_largest>& __do, __folding __sum,
                                         const counted_along<>& __from, int __first, __input& __one) {
    if (__row <= 4) return fold_of_few<__row>(__do_map, static_cast<const __reduce&>(__do), __sum, __from, __first, __one);
    add_integers<true>(__do, __sum, __one.packets[0], __first, __first + __row);
    return __sum;
}

// Results of `__row` elements, so many for a thread's packet, and packets that a thread loads at once.
template <int __row, int __results, int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_few_packets(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                         const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                         __inputs&&... __all) {
    place_few(__shared, __all...);
    const long long __first = static_cast<long long>(blockIdx.x) * (fold_threads * __count) + threadIdx.x;
    const long long __whole = __space.outputs / __results;
#pragma unroll
    for (int __k = 0; __k < __count; ++__k)
        swallow(__all.load(__k, __first + __k * fold_threads, __whole)...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        const long long __packet = __first + __k * fold_threads, __result = __packet * __results;
        counted_along<> __from(__space, __result * __space.kept_numbers.strides[0]);
        swallow(__all.hand_on(__k)...);
        if (__packet >= __whole) continue;
        swallow(__all.unpack(__k)...);
        packet_of_results<__folding, __results> __folded;
        __folded.last = __results;
#pragma unroll
        for (int __j = 0; __j < __results; ++__j) {
            __folded.values[__j] = fold_of_few<__row>(__do_map, __do, __start, __from, __j * __row, __all...);
            __from.number += __space.kept_numbers.strides[0];
        }
        __do_finish(__result, 0, __folded);
    }
    // Results that are too few for a packet.
    const long long __at = __whole * __results + threadIdx.x;
    if (blockIdx.x == 0 && __at < __space.outputs) {
        swallow(__all.load_some(__at * __row, __row)...);
        const counted_along<> __from(__space, __at * __space.kept_numbers.strides[0]);
        __do_finish(__at, 0, fold_of_few<__row>(__do_map, __do, __start, __from, 0, __all...));
    }
}

template <int __row, int __results>
struct fold_few {
    template <class... __operands>
    static __device__ constexpr int count() {
        return __row * __results * larger(int(sizeof(typename __operands::stored))...) <= 16 ? 4
             : __row * __results * larger(int(sizeof(typename __operands::stored))...) <= 32 ? 2
                                                                                              : 1;
    }
    template <class __folding, class... __operands>
    static __device__ constexpr int shared_bytes() {
        return 16 + sum_of((few_input<__operands, __row * __results, 1>::shared_bytes + 15) / 16 * 16 ...);
    }
    template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
        constexpr int __count = count<__operands...>();
        fold_few_packets<__row, __results, __count>(__do_map, __do, __do_finish, __start, __space, __shared,
                                                    few_input<__operands, __row * __results, __count>(__inputs)...);
    }
};

}

#endif
