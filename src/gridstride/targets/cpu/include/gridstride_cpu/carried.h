// Operands on their way along rows, each with code of its own.
#ifndef GRIDSTRIDE_CPU_CARRIED_H
#define GRIDSTRIDE_CPU_CARRIED_H

#include <gridstride_cpu/passages.h>

namespace gridstride {

template <class __stored> struct is_bool { static constexpr bool value = false; };
template <> struct is_bool<bool> { static constexpr bool value = true; };

// An operand on its way along rows: `items` points to consecutive elements.
template <class __operand, int __buffered>
struct carried : passage {
    typedef typename __operand::stored stored;
    static constexpr int bytes = sizeof(stored), count = 1;
    static constexpr bool has_bools = is_bool<stored>::value;

    stored* items;
    alignas(line_bytes) char memory[__buffered * bytes + 2 * line_bytes];

    GRIDSTRIDE_INLINED carried(const __operand& __source) { follow(__source, memory); }
    GRIDSTRIDE_INLINED int list(passage**& __end) { return *__end++ = this, 0; }
    GRIDSTRIDE_INLINED int bring(const tile_shape& __tiles, int __width, int __height, int __depth) {
        if (has_tile()) bring_tile<bytes>(*this, __tiles, __width, __height, __depth);
        return 0;
    }
    GRIDSTRIDE_INLINED int put_back(int __width, int __height, int __depth) {
        if (__operand::is_written && has_tile()) put_tile<bytes>(*this, __width, __height, __depth);
        return 0;
    }
    GRIDSTRIDE_INLINED int begin(const tile_shape& __tiles, int __y, int __width, long long __from, int __count) {
        items = is_direct() ? reinterpret_cast<stored*>(row(__y)) + __from
                            : reinterpret_cast<stored*>(fetched<bytes>(*this, __tiles, __y, __width, __from, __count));
        return 0;
    }
    GRIDSTRIDE_INLINED int end(const tile_shape& __tiles, int __y, long long __from, int __count) const {
        if (__operand::is_written && !is_direct()) put<bytes>(*this, __tiles, __y, __from, __count);
        return 0;
    }
};

}

#endif
