// The places of the largest or smallest elements of folds that blocks of short rows hold whole.
#ifndef GRIDSTRIDE_CPU_FOUND_MIXED_H
#define GRIDSTRIDE_CPU_FOUND_MIXED_H

#include <gridstride_cpu/folds_mixed.h>
#include <gridstride_cpu/found_across.h>
#include <gridstride_cpu/short_places.h>

namespace gridstride {

// An element and its place in a fold as one number, of which the better one is kept: the place is below the element.
template <bool __is_largest, bool __is_first, class __stored>
struct placed_element : placed_word<__stored> {
    typedef key_of<__stored> keys;
    typedef typename keys::kept kept;
    typedef typename placed_word<__stored>::word word;
    static constexpr int bits = 8 * sizeof(__stored), sign_bits = has_magnitude<__stored>() ? 1 : 0;
    static constexpr long long most = 1ll << (bits - sign_bits);
    static constexpr bool ascends = __is_largest != __is_first;

    GRIDSTRIDE_INLINED static word lower(long long __at) { return word((ascends ? __at : most - 1 - __at) << sign_bits); }
    GRIDSTRIDE_INLINED static long long place_of(word __best) {
        const long long __place = ((long long)__best & ((1ll << bits) - 1)) >> sign_bits;
        return ascends ? __place : most - 1 - __place;
    }
    template <int __lanes>
    GRIDSTRIDE_INLINED static auto from(const __stored* __elements, const word* __lower) {
        auto __keys = widened<word, __lanes>(reinterpret_cast<const half*>(__elements));
        auto __below = vector_of<word, __lanes>::from(__lower);
        take_signs(places<sign_bits>(), __keys, __below);
        return (__keys << bits) | __below;
    }
    GRIDSTRIDE_INLINED static kept element_of(word __best) { return element_of(places<sign_bits>(), __best); }

private:
    typedef typename placed_word<__stored>::half half;
    static constexpr half magnitude = half((1ull << (bits - 1)) - 1);
    // No number is worse.
    static constexpr half no_number = half(__is_largest ? ~magnitude : magnitude);
    template <class __words>
    GRIDSTRIDE_INLINED static void take_signs(places<0>, __words&, __words&) {}
    // Zeros of both signs are equal, so the sign of one is below its place. A NaN of four bytes is not better than any number.
    template <class __words>
    GRIDSTRIDE_INLINED static void take_signs(places<1>, __words& __elements, __words& __below) {
        const __words __size = __elements & word(magnitude), __is_none = (__words)(__size > word(0x7f800000));
        // Processors without AVX-512 shift no signs of 8-byte words.
        __elements ^= (__words)(__elements < word(0)) & word(magnitude);
        const __words __is_below = (__words)(__elements == word(-1));
        __elements -= __is_below;
        __below -= __is_below;
        if (bits == 32) __elements = (__elements & ~__is_none) | (word(no_number) & __is_none);
    }
    GRIDSTRIDE_INLINED static kept element_of(places<0>, word __best) { return kept(__best >> bits); }
    GRIDSTRIDE_INLINED static kept element_of(places<1>, word __best) {
        const half __key = half(__best >> bits), __is_below = half((__key == 0) & __best);
        half __bits = half((__key ^ ((__key >> (bits - 1)) & magnitude)) | half((unsigned long long)__is_below << (bits - 1)));
        if (bits == 32) __bits = __key == no_number ? half(0x7fc00000) : __bits;
        kept __element;
        __builtin_memcpy(&__element, &__bits, sizeof(__bits));
        return __element;
    }
};

// Of the best elements and their places, structures.
template <class __operand, class __placed, class __map>
struct row_of_found {
    const __map& map;
    const typename __placed::word* words;
    GRIDSTRIDE_INLINED row_of_found from(long long __k) const { return {map, words + __k}; }
    GRIDSTRIDE_INLINED auto get(long long __k) const {
        typename __operand::stored __element = key_of<typename __operand::stored>::element(__placed::element_of(words[__k]));
        return map(0, __placed::place_of(words[__k]), element<__operand>(__element).get());
    }
};
template <class __operand, class __placed, class __map>
GRIDSTRIDE_INLINED row_of_found<__operand, __placed, __map> found_in(const __map& __do_map, const typename __placed::word* __words) { return {__do_map, __words}; }

// Elements of a block above their places.
template <class __placed, class __stored>
struct placed_row {
    const __stored* items;
    const typename __placed::word* lower;
    GRIDSTRIDE_INLINED placed_row from(long long __k) const { return {items + __k, lower + __k}; }
};
template <int __lanes, class __placed, class __stored>
GRIDSTRIDE_INLINED auto lanes_at(const placed_row<__placed, __stored>& __row) { return __placed::template from<__lanes>(__row.items, __row.lower); }
template <class __placed, class __stored>
GRIDSTRIDE_INLINED void fetch_from(const placed_row<__placed, __stored>& __row, long long __k, long long __count) {
    fetch_far(reinterpret_cast<const char*>(__row.items + __k), __count * sizeof(__stored));
}
template <bool __is_largest> struct takes_vectors<keeping<__is_largest>> { static constexpr int value = 1; };

// A block's elements are numbered by their places in folds once.
template <class __folding, class __batches>
struct whole_folds<__folding, __batches, true> {
    typedef typename __batches::row row;
    typedef placed_element<__batches::is_largest, __batches::is_first, typename row::stored> placed;
    typedef row_of_values<typename placed::word> words_row;
    words_row words, lower;

    static constexpr int bytes(long long __width) { return int(2 * words_row::bytes(__width + spare_values) + 64); }
    template <class __map>
    GRIDSTRIDE_INLINED whole_folds(const __map& __do_map, char* __room, long long __width)
        : words(__room + (64 - reinterpret_cast<unsigned long>(__room) % 64), 0), lower(reinterpret_cast<char*>(words.values) + words_row::bytes(__width + spare_values), 0) {
        for (long long __k = 0; __k < __width; ++__k) lower.set(__k, placed::lower(__do_map.positions[__k]));
    }
    template <class __operand, class __finish, class __map, class __reduce, int __axes, class __sums>
    GRIDSTRIDE_INLINED void run(const __finish& __do_finish, const __map& __do_map, const __reduce& __do, const mixed_block<__axes>& __block, __sums& __its,
                                long long __result, int __part, long long __columns, long long, long long, const typename row::stored* __items) const {
        const placed_row<placed, typename row::stored> __elements = {__items, lower.values};
        const int __count = fold_block(__block, words, __elements, __columns, keeping<__batches::is_largest>());
        finish_row<__folding>(__do_finish, __do, __result, __part, __count, false, __its.joined,
                              found_in<typename row::operand, placed>(__do_map.map, words.values));
    }
};

}

#endif
