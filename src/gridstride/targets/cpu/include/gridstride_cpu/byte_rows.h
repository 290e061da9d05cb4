// Sums of short rows of bytes, where a processor adds eight neighbors by one instruction.
#ifndef GRIDSTRIDE_CPU_BYTE_ROWS_H
#define GRIDSTRIDE_CPU_BYTE_ROWS_H

#include <gridstride_cpu/row_lanes.h>

namespace gridstride {

#if defined(__AVX512BW__)
constexpr int bytes_at_once = 64;
#elif defined(__AVX2__)
constexpr int bytes_at_once = 32;
#else
constexpr int bytes_at_once = 0;
#endif

#if defined(__AVX2__)
// The lanes of a row are sums of eight bytes, counted from the least one; the last vector shows what follows the row.
template <class __type, class __input>
struct lanes_of_bytes {
    typedef unsigned long long lane;
    typedef char bytes __attribute__((vector_size(bytes_at_once)));
    typedef lane lanes __attribute__((vector_size(bytes_at_once)));
    static constexpr bool has_sign = typename __input::stored(-1) < typename __input::stored(0);
    static constexpr int count = bytes_at_once / 8;
    long long whole;
    lane start;
    alignas(64) unsigned char left[bytes_at_once], least[bytes_at_once];

    GRIDSTRIDE_INLINED lanes_of_bytes(long long __length)
        : whole((__length - 1) / bytes_at_once * bytes_at_once), start(has_sign ? 128 * __length : 0) {
        for (int __k = 0; __k < bytes_at_once; ++__k) {
            left[__k] = whole + __k < __length ? 255 : 0;
            least[__k] = has_sign ? 128 : 0;
        }
    }
    // Rows that what is shown may reach into.
    GRIDSTRIDE_INLINED static long long reach(long long __length) { return (bytes_at_once - 1 + __length) / __length; }
    template <class __reduce>
    GRIDSTRIDE_INLINED static adding reduce(const __reduce&) { return adding(); }
    template <class __map, class __reduce>
    GRIDSTRIDE_INLINED void fold(lane* __some, const __map&, const __reduce&, const __input& __its) const {
        bytes __mask, __flipped;
        __builtin_memcpy(&__mask, left, sizeof(bytes));
        __builtin_memcpy(&__flipped, least, sizeof(bytes));
        lanes __sums = sums((at(__its, whole) ^ __flipped) & __mask);
        GRIDSTRIDE_ROLLED
        for (long long __from = 0; __from < whole; __from += bytes_at_once) __sums += sums(at(__its, __from) ^ __flipped);
        __builtin_memcpy(__some, &__sums, sizeof(lanes));
    }
    GRIDSTRIDE_INLINED __type result(lane __sum) const { return static_cast<__type>(__sum - start); }

private:
    GRIDSTRIDE_INLINED static bytes at(const __input& __its, long long __from) {
        bytes __some;
        fetch_ahead(__its.items + __from, bytes_at_once, __its.ahead);
        __builtin_memcpy(&__some, __its.items + __from, sizeof(bytes));
        return __some;
    }
    GRIDSTRIDE_INLINED static lanes sums(bytes __some) {
#if defined(__AVX512BW__)
        return (lanes)__builtin_ia32_psadbw512(__some, bytes{});
#else
        return (lanes)__builtin_ia32_psadbw256(__some, bytes{});
#endif
    }
};
#endif

}

#endif
