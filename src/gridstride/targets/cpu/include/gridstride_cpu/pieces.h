// Short pieces of memory that rows are made of, or one element in place of each: copied and repeated by few vectors.
#ifndef GRIDSTRIDE_CPU_PIECES_H
#define GRIDSTRIDE_CPU_PIECES_H

#include <gridstride_cpu/gathering.h>
#include <gridstride_cpu/shares.h>

namespace gridstride {

// Repeat an element; what follows so many may be overwritten, as far as a vector reaches.
template <int __size>
struct repeating {
    static GRIDSTRIDE_INLINED void run(char* __to, const char* __from, int __count) { repeat_bytes<__size>(__to, __from, __count); }
};
template <class __word>
struct repeating_words {
    static GRIDSTRIDE_INLINED void run(char* __to, const char* __from, int __count) {
        typedef __word __vector __attribute__((vector_size(sizeof(longest_vector))));
        __word __one;
        __builtin_memcpy(&__one, __from, sizeof(__word));
        const __vector __same = __one - __vector{};
        for (; __count > 0; __count -= sizeof(__vector) / sizeof(__word), __to += sizeof(__vector))
            __builtin_memcpy(__to, &__same, sizeof(__vector));
    }
};
template <> struct repeating<1> : repeating_words<signed char> {};
template <> struct repeating<2> : repeating_words<short> {};
template <> struct repeating<4> : repeating_words<int> {};
template <> struct repeating<8> : repeating_words<long long> {};

// Pieces of as many elements.
struct equal_pieces {
    long long step;   // from element to element
    long long apart;  // from piece to piece
    long long ahead;  // to what is fetched meanwhile
    int length;
};

// Copy so many pieces of as many bytes as a word has, or up to twice as many.
template <class __word>
GRIDSTRIDE_INLINED void copy_pieces(char* __to, long long __to_apart, const char* __from, long long __from_apart, int __pieces,
                                    long long __bytes, const char* __later, long long __later_apart) {
    for (; __pieces > 0; --__pieces, __to += __to_apart, __from += __from_apart, __later += __later_apart) {
        __builtin_prefetch(__later);
        copy_ends<__word>(__to, __from, __bytes);
    }
}

// Bring so many pieces, or so many elements of one, to where they are consecutive, where there is room for a vector behind
// them; or put them to memory from there.
template <int __size, bool __puts>
GRIDSTRIDE_INLINED void move_each(char* __items, char* __at, const equal_pieces& __its, int __pieces, int __count) {
    const long long __bytes = (long long)__count * __size, __step = __its.step, __apart = __its.apart;
    if (!__puts && __step == 0) {
        for (; __pieces > 0; --__pieces, __items += __bytes, __at += __apart) repeating<__size>::run(__items, __at, __count);
        return;
    }
    if (__puts && __step != __size) {  // of results that lie in another order than others
        for (; __pieces > 0; --__pieces, __items += __bytes, __at += __apart) scatter_bytes<__size>(__at, __step, __items, __count);
        return;
    }
    if (__puts && spread(__at, __apart, __items, __bytes, __pieces, __its.ahead)) return;
    if ((__puts || __step == __size) && 2 <= __bytes && __bytes < 16) {
        auto __copy = [&](auto __word) __attribute__((always_inline)) {
            typedef decltype(__word) __words;
            if (__puts) copy_pieces<__words>(__at, __apart, __items, __bytes, __pieces, __bytes, __at + __its.ahead, __apart);
            else copy_pieces<__words>(__items, __bytes, __at, __apart, __pieces, __bytes, __at + __its.ahead, __apart);
        };
        return __bytes >= 8 ? __copy(0ll) : __bytes >= 4 ? __copy(0) : __copy(short());
    }
    const long long __between = __step < 0 ? -__step : __step;
    const long long __span = __between < line_bytes ? __count * __between : __bytes, __lowest = __step < 0 ? (__count - 1) * __step : 0;
    for (; __pieces > 0; --__pieces, __items += __bytes, __at += __apart) {
        for (long long __k = 0; __k < __span; __k += line_bytes) __builtin_prefetch(__at + __its.ahead + __lowest + __k);
        if (__puts)
            copy_short(__at, __items, __bytes);
        else if (__step == __size)
            copy_short(__items, __at, __bytes);
        else
            gather_bytes<__size>(__items, __at, __step, __count);
    }
}

// Move so many elements of pieces, of the first of which some are left out.
template <int __size, bool __puts>
GRIDSTRIDE_APART void move_pieces(char* __items, char* __at, const equal_pieces& __its, int __begun, int __count) {
    while (__count > 0) {
        const bool __is_whole = !__begun && __count >= __its.length;
        const int __pieces = __is_whole ? __count / __its.length : 1;
        const int __some = __is_whole ? __its.length : smaller(__its.length - __begun, __count);
        move_each<__size, __puts>(__items, __at, __its, __pieces, __some);
        __items += (long long)__pieces * __some * __size;
        __at += __pieces * __its.apart - __begun * __its.step;
        __count -= __pieces * __some;
        __begun = 0;
    }
}

// Repeat the first bytes of memory, as many as lie `period` apart, up to its end.
GRIDSTRIDE_APART void repeat_period(char* __memory, long long __period, long long __bytes) {
    for (long long __done = __period; __done < __bytes; __done *= 2)
        __builtin_memcpy(__memory + __done, __memory, __done * 2 <= __bytes ? __done : __bytes - __done);
}

// Axes of elements that are repeated along some of them, where the stride is 0; neighbors are so many elements apart there.
struct repeated_axis {
    long long columns, stride;
};

// Bring so many elements along the first axes; what lies behind them may be overwritten, as far as a vector reaches.
template <int __size>
__attribute__((noinline)) void repeat_elements(char* __to, const char* __from, const repeated_axis* __axes, int __count, long long __elements) {
    if (__count == 0) {
        __builtin_memcpy(__to, __from, __size);
        return;
    }
    const long long __columns = __axes[__count - 1].columns, __stride = __axes[__count - 1].stride;
    const long long __length = (__elements + __columns - 1) / __columns;
    if (__stride == 0 && __columns == 1) {
        repeating<__size>::run(__to, __from, int(__length));
    } else if (__stride == 0) {
        repeat_elements<__size>(__to, __from, __axes, __count - 1, __columns);
        repeat_period(__to, __columns * __size, __columns * __length * __size);
    } else if (__columns == 1) {
        gather_bytes<__size>(__to, __from, __stride, int(__length));
    } else if (__count == 2 && __axes[0].stride == 0) {
        for (long long __k = 0; __k < __length; ++__k) repeating<__size>::run(__to + __k * __columns * __size, __from + __k * __stride, int(__columns));
    } else {
        for (long long __k = 0; __k < __length; ++__k) repeat_elements<__size>(__to + __k * __columns * __size, __from + __k * __stride, __axes, __count - 1, __columns);
    }
}
#define GRIDSTRIDE_REPEATING(start, size) start template void repeat_elements<size>(char*, const char*, const repeated_axis*, int, long long);
GRIDSTRIDE_LINKED(GRIDSTRIDE_REPEATING)

}

#endif
