// The places of the largest or smallest elements of short rows, which lie in order: an element of up to four bytes and
// its place are one number of twice the bytes, so that one comparison keeps both.
#ifndef GRIDSTRIDE_CPU_SHORT_PLACES_H
#define GRIDSTRIDE_CPU_SHORT_PLACES_H

#include <gridstride_cpu/row_extremes.h>
#include <gridstride_cpu/short_rows.h>

namespace gridstride {

// Integers in the order of elements, and those of twice the bytes.
template <class __half, class __whole>
struct key_and_word {
    static constexpr bool exists = true;
    typedef __half half;
    typedef __whole word;
    static constexpr int count = 32 / sizeof(word), elements = 2 * count;
    typedef half halves __attribute__((vector_size(32)));
    typedef word vector __attribute__((vector_size(32)));
};
template <class __key> constexpr bool has_negatives() { return __key(-1) < __key(0); }
template <class __stored, int __size = sizeof(__stored), bool __has_sign = has_negatives<typename key_of<__stored>::type>()>
struct placed_word { static constexpr bool exists = false; };
template <class __stored> struct placed_word<__stored, 1, true> : key_and_word<signed char, short> {};
template <class __stored> struct placed_word<__stored, 1, false> : key_and_word<unsigned char, unsigned short> {};
template <class __stored> struct placed_word<__stored, 2, true> : key_and_word<short, int> {};
template <class __stored> struct placed_word<__stored, 2, false> : key_and_word<unsigned short, unsigned> {};
template <class __stored> struct placed_word<__stored, 4, true> : key_and_word<int, long long> {};
template <class __stored> struct placed_word<__stored, 4, false> : key_and_word<unsigned, unsigned long long> {};

template <class __stored> constexpr bool has_magnitude() { return false; }
template <> constexpr bool has_magnitude<float16>() { return true; }
template <> constexpr bool has_magnitude<bfloat16>() { return true; }
template <> constexpr bool has_magnitude<float>() { return true; }

// Of pairs of elements the first ones and the second ones, each above its place: of equal ones that with the place that
// is kept is the better number.
template <bool __is_largest, bool __is_first, class __stored>
struct placed_lanes : placed_word<__stored> {
    typedef placed_word<__stored> words;
    typedef typename words::half half;
    typedef typename words::word word;
    typedef typename words::halves halves;
    typedef typename words::vector vector;
    static constexpr int count = words::count, elements = words::elements, bits = 8 * sizeof(__stored);
    static constexpr long long most = 1ll << bits;
    static constexpr bool ascends = __is_largest != __is_first;
    long long whole;
    vector places, left[2], others[2];  // what is none of the row's elements is no better

    GRIDSTRIDE_INLINED placed_lanes(long long __length) : whole((__length - 1) / elements * elements) {
        for (int __k = 0; __k < elements; ++__k) {
            const bool __is_left = whole + __k < __length;
            if (__k % 2 == 0) places[__k / 2] = word(ascends ? __k : most - 1 - __k);
            left[__k % 2][__k / 2] = word(__is_left ? -1 : 0);
            others[__k % 2][__k / 2] = __is_left ? word(0) : worst_key<__is_largest, word>();
        }
    }
    GRIDSTRIDE_INLINED static long long place_of(word __best) {
        const long long __place = (long long)__best & (most - 1);
        return ascends ? __place : most - 1 - __place;
    }
    GRIDSTRIDE_INLINED void fold(word* __to, const __stored* __items, long long __ahead) const {
        vector __first, __second;
        take(__first, __second, __items, whole, __ahead);
        vector __best = better((__first & left[0]) | others[0], (__second & left[1]) | others[1]);
        GRIDSTRIDE_ROLLED
        for (long long __from = 0; __from < whole; __from += elements) {
            take(__first, __second, __items, __from, __ahead);
            __best = better(__best, better(__first, __second));
        }
        __builtin_memcpy(__to, &__best, sizeof(vector));
    }

private:
    GRIDSTRIDE_INLINED static vector better(vector __one, vector __other) {
        return (__is_largest ? __one > __other : __one < __other) ? __one : __other;
    }
    GRIDSTRIDE_INLINED void take(vector& __first, vector& __second, const __stored* __items, long long __from, long long __ahead) const {
        halves __some;
        __builtin_memcpy(&__some, __items + __from, sizeof(__some));
        fetch_ahead(__items + __from, elements, __ahead);
        if (has_magnitude<__stored>()) __some = in_order(__some);
        const vector __pairs = (vector)__some, __at = places + word(ascends ? __from : -__from);
        __first = (__pairs << bits) + __at;
        __second = (__pairs & word(~(word)(most - 1))) + (__at + word(ascends ? 1 : -1));
    }
    // Floats have a sign and a magnitude. A NaN of four bytes is not better than any number.
    GRIDSTRIDE_INLINED static halves in_order(halves __some) {
        const halves __sign = __some >> (bits - 1), __magnitude = __some & half(most / 2 - 1);
        const halves __keys = (__magnitude ^ __sign) - __sign;
        if (sizeof(__stored) < 4) return __keys;
        const halves __is_none = (halves)(__magnitude > half(0x7f800000));
        return (__keys & ~__is_none) | (half(__is_largest ? -most / 2 : most / 2 - 1) & __is_none);
    }
};

template <class __type, class __map, class __reduce, bool __is_largest, bool __is_first, class __input>
struct short_rows<__type, __map, found_extreme<__reduce, __is_largest, __is_first>, __input> {
    typedef typename __input::stored stored;
    typedef key_of<stored> keys;
    typedef extreme_key<__is_largest, stored> extreme;
    static constexpr bool are_placed = placed_word<stored>::exists, may_repeat = false;
    static constexpr int lanes = are_placed ? 2 : extreme::lanes, longest = buffer_bytes / sizeof(stored), longest_placed = are_placed ? 256 : 0;

    // What was found in each row.
    struct found {
        alignas(64) typename keys::kept elements[neighbors_along];
        alignas(64) int at[neighbors_along];
    };
    template <int __axes>
    GRIDSTRIDE_INLINED static void fold(row_of_values<__type> __values, int __rows, long long __followed, const __map& __do_map,
                                        const found_extreme<__reduce, __is_largest, __is_first>&, const fold_space<__axes>& __space, long long, __input& __its) {
        found __found;
        if (__space.fold_row > longest_placed) find(places<0>(), __found, __rows, __followed, __space.fold_row, __its);
        else find(places<are_placed>(), __found, __rows, __followed, __space.fold_row, __its);
        const long long __step = __space.position.step;
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __rows; ++__k) {
            stored __element = keys::element(__found.elements[__k]);
            __values.set(__k, __do_map(0, __found.at[__k] * __step, element<typename __input::operand>(__element).get()));
        }
    }

private:
    // The element first, then its place. Among nothing but NaNs it is not defined.
    static GRIDSTRIDE_APART void find(places<0>, found& __found, int __rows, long long, long long __length, __input& __its) {
        for (int __k = 0; __k < __rows; ++__k) {
            __its.find_row(__k);
            const int __place = extreme::template place<__is_first>(__its.items, int(__length), extreme::of(__its, int(__length)));
            __found.at[__k] = __place < 0 ? 0 : __place;
            __found.elements[__k] = keys::kept_of(__its.items[__found.at[__k]]);
        }
    }
    static GRIDSTRIDE_APART void find(places<1>, found& __found, int __rows, long long __followed, long long __length, __input& __its) {
        typedef placed_lanes<__is_largest, __is_first, stored> __lanes;
        typedef typename __lanes::word word;
        constexpr int __count = __lanes::count;
        const long long __stride = __its.source.kept_strides[0];
        // Rows behind which are enough others that may be looked at.
        const long long __seen = __stride < __length * long(sizeof(stored)) ? 0 : __followed - (__lanes::elements - 1 + __length) / __length;
        const long long __ahead = __its.ahead;
        const __lanes __folded(__length);
        alignas(64) word __best[__count * __count] = {};
        const char* __row = __its.base;
        for (int __first = 0; __first < __rows; __first += __count, __row += __count * __stride) {
            const int __some = smaller(__count, __rows - __first);
            for (int __k = 0; __k < __some; ++__k) {
                const stored* __items = reinterpret_cast<const stored*>(__row + __k * __stride);
                if (__first + __k >= __seen) {
                    __builtin_memcpy(__its.buffer, __items, __length * sizeof(stored));
                    __items = reinterpret_cast<const stored*>(__its.buffer);
                }
                __folded.fold(__best + __k * __count, __items, __ahead);
            }
            rows_of_lanes<word, __count>::join(keeping<__is_largest>(), __best);
            int* const __at = __found.at + __first;
            GRIDSTRIDE_LANES
            for (long long __k = 0; __k < __count; ++__k) __at[__k] = int(__lanes::place_of(__best[__k]));
            take_elements(places<(sizeof(stored) == 1)>(), __found.elements + __first, __best, __at, __row, __stride, __some);
        }
    }
    // Bytes are part of the words; of floats zeros of both signs are one there.
    template <class __word>
    GRIDSTRIDE_INLINED static void take_elements(places<1>, stored* __elements, const __word* __best, const int*, const char*, long long, int) {
        GRIDSTRIDE_LANES
        for (long long __k = 0; __k < placed_word<stored>::count; ++__k) __elements[__k] = stored(__best[__k] >> 8);
    }
    template <class __kept, class __word>
    GRIDSTRIDE_INLINED static void take_elements(places<0>, __kept* __elements, const __word*, const int* __at, const char* __row, long long __stride, int __some) {
        for (int __k = 0; __k < __some; ++__k) __elements[__k] = keys::kept_of(reinterpret_cast<const stored*>(__row + __k * __stride)[__at[__k]]);
    }
};

}

#endif
