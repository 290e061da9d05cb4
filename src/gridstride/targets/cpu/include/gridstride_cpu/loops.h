// Loops over elements on a processor: tiles of rows, in which the innermost loop goes over consecutive memory and
// is left to the compiler to vectorize. Operands that do not lie so are gathered into buffers that stay in the
// first-level cache, and scattered from there.
//
// A launch has blocks of one thread; each takes an equal share of the tiles.
#ifndef GRIDSTRIDE_CPU_LOOPS_H
#define GRIDSTRIDE_CPU_LOOPS_H

#include <gridstride/operands.h>

namespace gridstride {

#define GRIDSTRIDE_INLINED inline __attribute__((always_inline))
#if defined(__clang__)
#define GRIDSTRIDE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define GRIDSTRIDE_INDEPENDENT _Pragma("GCC ivdep")
#endif
// A short loop with a constant count is to become vectors, not a list of statements.
#if defined(__clang__)
#define GRIDSTRIDE_LANES GRIDSTRIDE_INDEPENDENT
#else
#define GRIDSTRIDE_LANES _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

// Elements of a row that are handled at once where buffers are needed: at most 4 KiB of each operand, since all lie on
// the stack.
constexpr int buffer_bytes = 4096;
constexpr int larger() { return 1; }
template <class... __rest>
constexpr int larger(int __first, __rest... __others) {
    return __first > larger(__others...) ? __first : larger(__others...);
}
template <class... __operands>
constexpr int buffered_up_to(int __most) {
    return larger(int(sizeof(typename __operands::stored))...) > buffer_bytes ? 1
           : buffer_bytes / larger(int(sizeof(typename __operands::stored))...) < __most
               ? buffer_bytes / larger(int(sizeof(typename __operands::stored))...)
               : __most;
}

template <int __axes>
GRIDSTRIDE_INLINED long long taken_off(const axes<__axes>& __space, long long& __index, int __axis) {
    const long long __length = __space.length[__axis], __quotient = __index / __length;
    const long long __rest = __index - __quotient * __length;
    __index = __quotient;
    return __rest;
}

// Elements between memory and a buffer. The arguments are variables of their own, which nothing that is stored changes.
template <class __stored, int __times>
GRIDSTRIDE_INLINED void gather_every(__stored* __to, const char* __from, int __count) {
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __count; ++__k)
        __builtin_memcpy(__to + __k, __from + __k * (__times * (long long)sizeof(__stored)), sizeof(__stored));
}
template <class __stored>
GRIDSTRIDE_INLINED void gather(__stored* __to, const char* __from, long long __step, int __count) {
    switch (__step) {
    case 2 * sizeof(__stored): return gather_every<__stored, 2>(__to, __from, __count);
    case 3 * sizeof(__stored): return gather_every<__stored, 3>(__to, __from, __count);
    case 4 * sizeof(__stored): return gather_every<__stored, 4>(__to, __from, __count);
    }
    for (int __k = 0; __k < __count; ++__k, __from += __step) __builtin_memcpy(__to + __k, __from, sizeof(__stored));
}
template <class __stored>
GRIDSTRIDE_INLINED void repeat(__stored* __to, const char* __from, int __count) {
    __stored __same;
    __builtin_memcpy(&__same, __from, sizeof(__stored));
    for (int __k = 0; __k < __count; ++__k) __to[__k] = __same;
}
template <class __stored>
GRIDSTRIDE_INLINED void scatter(char* __to, long long __step, const __stored* __from, int __count) {
    for (int __k = 0; __k < __count; ++__k, __to += __step) __builtin_memcpy(__to, __from + __k, sizeof(__stored));
}

// An operand on its way along a row: `items` points to consecutive elements, its own or the buffer's.
template <class __operand, int __buffered>
struct streamed {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    char* corner;
    stored* items;
    const char* repeated;  // the element of an input that does not step, and how much of the buffer it fills
    int filled;
    alignas(64) char buffer[__buffered * sizeof(stored)];

    GRIDSTRIDE_INLINED streamed(const __operand& __source) : source(__source), corner(__source.data), repeated(nullptr), filled(0) {}
    GRIDSTRIDE_INLINED bool is_direct() const {
        return source.step == sizeof(stored) && reinterpret_cast<unsigned long>(corner) % alignof(stored) == 0;
    }
    GRIDSTRIDE_INLINED int begin(char* __at, int __count) {
        if (is_direct()) {
            items = reinterpret_cast<stored*>(__at);
            return 0;
        }
        items = reinterpret_cast<stored*>(buffer);
        if (!__operand::is_read) return 0;
        if (source.step != 0) {
            gather(reinterpret_cast<stored*>(buffer), __at, source.step, __count);
        } else if (__operand::is_written || repeated != __at || filled < __count) {
            repeat(reinterpret_cast<stored*>(buffer), __at, __count);
            repeated = __at;
            filled = __count;
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int end(char* __at, int __count) const {
        if (__operand::is_written && !is_direct())
            scatter(__at, source.step, reinterpret_cast<const stored*>(buffer), __count);
        return 0;
    }
};

template <class __operation, class... __operands>
GRIDSTRIDE_INLINED void run_consecutive(const __operation& __do, long long __number, long long __step, long long __count,
                                        typename __operands::stored* const... __items) {
    if (__step == 1) {
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __count; ++__k) __do(__number + __k, element<__operands>(__items[__k]).get()...);
    } else {
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __count; ++__k)
            __do(__number + __k * __step, element<__operands>(__items[__k]).get()...);
    }
}

GRIDSTRIDE_INLINED bool all_of() { return true; }
template <class... __rest>
GRIDSTRIDE_INLINED bool all_of(bool __first, __rest... __others) { return __first && all_of(__others...); }

template <int __buffered, class __operation, class... __streamed>
GRIDSTRIDE_INLINED void run_row(const __operation& __do, long long __number, long long __step, long long __count,
                                long long __down, bool __are_direct, __streamed&... __all) {
    (void)__down;
    if (__are_direct) {
        run_consecutive<__operation, typename __streamed::operand...>(
            __do, __number, __step, __count,
            reinterpret_cast<typename __streamed::stored*>(__all.corner + __down * __all.source.strides[0])...);
        return;
    }
    for (long long __from = 0; __from < __count; __from += __buffered) {
        const int __some = int(__count - __from < __buffered ? __count - __from : __buffered);
        swallow(__all.begin(__all.corner + __down * __all.source.strides[0] + __from * __all.source.step, __some)...);
        run_consecutive<__operation, typename __streamed::operand...>(__do, __number + __from * __step, __step, __some,
                                                                      __all.items...);
        swallow(__all.end(__all.corner + __down * __all.source.strides[0] + __from * __all.source.step, __some)...);
    }
}

template <int __buffered, class __operation, int __axes, class... __streamed>
GRIDSTRIDE_INLINED void run_tiles(const __operation& __do, const element_space<__axes>& __space,
                                  __streamed&&... __all) {
    const long long __tiles = __space.outer.count, __share = __tiles / gridDim.x, __more = __tiles % gridDim.x;
    const long long __block = blockIdx.x;
    const long long __first = __block * __share + (__block < __more ? __block : __more);
    const long long __last = __first + __share + (__block < __more);
    for (long long __tile = __first; __tile < __last; ++__tile) {
        long long __rest = __tile, __number = 0;
        const long long __x = taken_off(__space.outer, __rest, 0) * __space.width;
        const long long __y = taken_off(__space.outer, __rest, 1) * __space.height;
        swallow((__all.corner = __all.source.data + __x * __all.source.step + __y * __all.source.strides[0])...);
        __number += __x * __space.numbers.step + __y * __space.numbers.strides[0];
        for (int __axis = 2; __axis < __space.outer.ndim; ++__axis) {
            const long long __at = taken_off(__space.outer, __rest, __axis);
            __number += __at * __space.numbers.strides[__axis];
            swallow((__all.corner += __at * __all.source.strides[__axis])...);
        }
        const long long __width = __space.row - __x < __space.width ? __space.row - __x : __space.width;
        const long long __height = __space.column - __y < __space.height ? __space.column - __y : __space.height;
        const bool __are_direct = all_of(__all.is_direct()...);
        for (long long __down = 0; __down < __height; ++__down)
            run_row<__buffered>(__do, __number + __down * __space.numbers.strides[0], __space.numbers.step, __width, __down,
                    __are_direct, __all...);
    }
}

template <class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shared_tiles(const __operation& __do, const element_space<__axes>& __space,
                                     const __operands&... __all) {
    constexpr int __buffered = buffered_up_to<__operands...>(512);
    run_tiles<__buffered>(__do, __space, streamed<__operands, __buffered>(__all)...);
}

}

#endif
