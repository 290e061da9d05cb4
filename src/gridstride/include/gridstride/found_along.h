// The places of extremes along lines and in short rows, by the words in which they lie, wherever they begin.
#ifndef GRIDSTRIDE_FOUND_ALONG_H
#define GRIDSTRIDE_FOUND_ALONG_H

#include <gridstride/fold_lines.h>
#include <gridstride/found_packets.h>

namespace gridstride {

// ---- along lines, by the words in which they lie, wherever the line begins ----

// Packets, so many threads apart, of elements that do not lie one after another.
template <int __length, class __found, class __input>
GRIDSTRIDE_INLINED void find_apart(__found& __best, long long __begin, long long __end, int __apart, long long __elements, __input& __one) {
#pragma unroll 1
    for (long long __packet = __begin; __packet < __end; __packet += __apart) {
        const long long __left = __elements - __packet * __length;
        const int __last = __left < __length ? int(__left) : __length;
        __one.load(0, __packet, __last);
        __one.unpack(0);
        __best.add_some(__one.packets[0], decltype(__best.place)(__packet * __length), 0, __last);
    }
}

template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, bool __is_largest, bool __is_first, class __value, class __own_map, class __counted, class __input>
GRIDSTRIDE_INLINED void add_some_of_line(const __map&, const found_extreme<__reduce, __is_largest, __is_first, __value, __own_map>& __do,
                                         __folding (&__sums)[__sums_count], const __counted& __from, long long __begin, long long __end,
                                         int __lane, int __group, long long __elements, __input& __one) {
    typedef typename __input::stored __stored;
    typedef decltype(__from.first_place(0)) __place;
    if (__begin >= __end) return;
    found_packet<__stored, __length, __place, __is_largest, __is_first, true> __found;
    const char* const __row = __one.base;
    if (__one.source.step != sizeof(__stored) || sizeof(__stored) * __length != 16) {
        find_apart<__length>(__found, __begin + __lane, __end, __group, __elements, __one);
    } else {
        const words_of_line<__length> __line(int(__one.past_word() / sizeof(__stored)), __elements);
        const bool __is_last_part = __end * __length >= __elements;
        const bool __takes_first = __line.before != 0 && __begin == 0 && __lane == 0;
        const bool __takes_last = __line.after != 0 && __is_last_part && __lane == __group - 1 && (__line.words > 0 || __line.before == 0);
        __one.base -= __line.before * int(sizeof(__stored));
        word_of<__stored, __length> __first, __last;
        if (__takes_first) __first.load(__one.base);
        if (__takes_last) __last.load(__one.at(__line.words));
        if (__is_last_part) __end = __line.words;
        line_tiles<__count, __lanes> __tile(__begin + (__line.before != 0 && __begin == 0), __end, __lane, __group);
        packet<__stored, __length> __items;
        if (__takes_first) {
            __first.unpack(__items);
            __found.add_some(__items, __place(-__line.before), __line.before, __line.words > 0 ? __length : __line.after);
        }
        for (bool __is_full = true; __is_full; __tile.first += __tile.step) {
            __is_full = __tile.first <= __tile.full;
#pragma unroll
            for (int __k = 0; __k < __count; ++__k)
                if (__is_full || __tile.at(__k) < __tile.end) __one.template load_as<by_words>(__k, __tile.at(__k));
#pragma unroll
            for (int __k = 0; __k < __count; ++__k)
                if (__is_full || __tile.at(__k) < __tile.end) {
                    __one.template unpack_as<by_words>(__k);
                    __found.add(__one.packets[__k], __place(__tile.at(__k) * __length - __line.before));
                }
        }
        if (__takes_last) {
            __last.unpack(__items);
            __found.add_some(__items, __place(__line.words * __length - __line.before), 0, __line.after);
        }
    }
    if (!__found.any) return;
    __stored __item;
    const int __at = __found.find(!__is_first, __item);
    add_found(__do, __sums[0], __found, __found.place + __at, __elements, __item, [&](long long __j) {
        return *reinterpret_cast<const __stored*>(__row + __j * __one.source.step);
    });
}

// ---- short rows, by words of which they are made, or those of four bytes in which they lie ----

template <int __sums_count, class __folding, class __map, class __reduce, bool __is_largest, bool __is_first, class __value, class __own_map, class __counted, class __input>
GRIDSTRIDE_INLINED void add_short_row(const __map&, const found_extreme<__reduce, __is_largest, __is_first, __value, __own_map>& __do,
                                      __folding (&__sums)[__sums_count], const __counted&, int __begin, int __first, int __end,
                                      int __apart, int, __input& __one) {
    typedef typename __input::stored __stored;
    constexpr int __size = sizeof(__stored), __bytes = larger(4, __input::word), __in_word = __bytes / __size;
    constexpr int __at_once = 16 / __bytes, __parts = __bytes / 4;
    constexpr bool __is_whole = __size == 4 || __input::word > 0;
    const unsigned __byte = __one.shift + __begin * __size, __word = __is_whole ? __byte : __byte / 4 * 4;
    const int __before = int(__byte - __word) / __size;
    const int __words = (__before + __end + __in_word - 1) / __in_word, __after = __words * __in_word - __before - __end;
    const int __own = (__words - __first + __apart - 1) >> (__ffs(__apart) - 1);
    if (__end <= 0 || __own <= 0) return;
    const unsigned __first_own = ~0u << 8 * __before * __size, __last_own = ~0u >> 8 * __after * __size;
    packet<__stored, __in_word * __at_once> __items;
    unsigned __none;
#pragma unroll
    for (int __j = 0; __j < __in_word; ++__j) __items.items[__j] = compared<__stored>::worst(__is_largest);
    memcpy(&__none, __items.items, 4);
    // A row may begin and end between words.
    const auto __take = [&](int __k, int __w, bool __is_own, bool __may_begin, bool __may_end) {
        unsigned __bits[__parts];
#pragma unroll
        for (int __p = 0; __p < __parts; ++__p) __bits[__p] = __none;
        if (__is_own) __one.take_word(__bits, __word + __bytes * __w);
        if (!__is_whole && __is_own) {
            unsigned __mask = ~0u;
            if (__may_begin && __w == 0) __mask &= __first_own;
            if (__may_end && __w == __words - 1) __mask &= __last_own;
            __bits[0] = (__bits[0] & __mask) | (__none & ~__mask);
        }
        memcpy(&__items.items[__k * __in_word], __bits, __bytes);
    };
    found_packet<__stored, __in_word * __at_once, int, __is_largest, __is_first, true> __found;
    const int __begun = (__own - 1) % __at_once + 1;
#pragma unroll
    for (int __k = 0; __k < __at_once; ++__k) __take(__k, __first + __k * __apart, __k < __begun, __k == 0, true);
    __found.add(__items, __first);
#pragma unroll (__at_once < 4 ? 4 : 1)
    for (int __w = __first + __begun * __apart; __w < __words; __w += __at_once * __apart) {
#pragma unroll
        for (int __k = 0; __k < __at_once; ++__k) __take(__k, __w + __k * __apart, true, false, __k == __at_once - 1);
        __found.add(__items, __w);
    }
    __stored __item;
    const int __j = __found.find(!__is_first, __item);
    const int __at = (__found.place + __j / __in_word * __apart) * __in_word + __j % __in_word - __before;
    add_found(__do, __sums[0], __found, __at, __end, __item,
                                         [&](long long __k) { return __one.at(__begin + int(__k)); });
}

}

#endif
