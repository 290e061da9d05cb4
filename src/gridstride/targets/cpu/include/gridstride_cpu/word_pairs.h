// Neighboring bfloat16 of a row, taken two at once from a word: vectors of floats are then made by a shift and by a mask,
// where numbers loaded one by one are first spread over two vectors and their results packed again.
#ifndef GRIDSTRIDE_CPU_WORD_PAIRS_H
#define GRIDSTRIDE_CPU_WORD_PAIRS_H

#include <gridstride_cpu/passages.h>

namespace gridstride {

struct bfloat16;
template <class __stored> struct is_bfloat16 { static constexpr bool value = false; };
template <> struct is_bfloat16<bfloat16> { static constexpr bool value = true; };

template <class __operand>
struct word_pair {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    stored* place;
    stored first, second;

    GRIDSTRIDE_INLINED word_pair(stored* __at) : place(__at) {
        if (!__operand::is_read) return;
        unsigned __word;
        __builtin_memcpy(&__word, place, sizeof __word);
        first.__bits = static_cast<unsigned short>(__word);
        second.__bits = static_cast<unsigned short>(__word >> 16);
    }
    GRIDSTRIDE_INLINED int put() const {
        if (!__operand::is_written) return 0;
        const unsigned __word = first.__bits | static_cast<unsigned>(second.__bits) << 16;
        __builtin_memcpy(place, &__word, sizeof __word);
        return 0;
    }
};

template <class __operation, class... __pairs>
GRIDSTRIDE_INLINED void do_pair(const __operation& __do, long long __number, long long __next, __pairs... __all) {
    __do(__number, element<typename __pairs::operand>(__all.first).get()...);
    __do(__next, element<typename __pairs::operand>(__all.second).get()...);
    swallow(__all.put()...);
}

}

#endif
