// The largest or the smallest element of a row, and where it is.
#ifndef GRIDSTRIDE_CPU_ROW_EXTREMES_H
#define GRIDSTRIDE_CPU_ROW_EXTREMES_H

#include <gridstride_cpu/extreme_keys.h>
#include <gridstride_cpu/row_lanes.h>
#include <gridstride_cpu/widening.h>

namespace gridstride {

template <bool __is_largest, class __stored>
struct extreme_key {
    typedef key_of<__stored> keys;
    typedef typename keys::type key;
    static constexpr int lanes = 128 / sizeof(key);

    GRIDSTRIDE_INLINED static void add(key* __best, const __stored* __items) {
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < lanes; ++__lane) __best[__lane] = keeping<__is_largest>()(__best[__lane], keys::from(__items[__lane]));
    }
    // Of so many elements.
    template <class __input>
    GRIDSTRIDE_INLINED static key of(const __input& __its, int __count) {
        key __kept = worst_key<__is_largest, key>();
        if (__count < lanes) {
            GRIDSTRIDE_ROLLED
            for (int __k = 0; __k < __count; ++__k) __kept = keeping<__is_largest>()(__kept, keys::from(__its.items[__k]));
            return __kept;
        }
        alignas(64) key __best[lanes];
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < lanes; ++__lane) __best[__lane] = __kept;
        GRIDSTRIDE_ROLLED
        for (int __k = 0; __k + lanes < __count; __k += lanes) {
            fetch_ahead(__its.items + __k, lanes, __its.ahead);
            add(__best, __its.items + __k);
        }
        // Some come twice, which makes no difference.
        fetch_ahead(__its.items + __count - lanes, lanes, __its.ahead);
        add(__best, __its.items + __count - lanes);
        return halves<key, lanes>::join(keeping<__is_largest>(), __best);
    }
    // The first or the last of so many elements that has a key; -1 for none.
    template <bool __is_first>
    static GRIDSTRIDE_APART int place(const __stored* __items, int __count, key __key) {
        int __k = __is_first ? 0 : __count - 1;
        if (__count < in_line) {
            while (0 <= __k && __k < __count && keys::from(__items[__k]) != __key) __k += __is_first ? 1 : -1;
            return __k < __count ? __k : -1;
        }
        // The last line begins with elements of the one before.
        const int __last = __count - in_line, __lines = (__count + in_line - 1) / in_line;
        auto __begin = [&](int __line) {
            const int __done = smaller(__line * in_line, __last);
            return __is_first ? __done : __last - __done;
        };
        // Nobody can foretell in which line it is, so none of a few is jumped over.
        for (int __from = 0; __from < __lines; __from += together) {
            unsigned long long __bits[together];
            unsigned __any = 0;
            const int __some = smaller(together, __lines - __from);
            GRIDSTRIDE_ROLLED
            for (int __k = 0; __k < __some; ++__k) {
                __bits[__k] = bytes_with(__items + __begin(__from + __k), __key);
                __any |= unsigned(__bits[__k] != 0) << __k;
            }
            if (!__any) continue;
            const int __line = __builtin_ctz(__any), __byte = __is_first ? __builtin_ctzll(__bits[__line]) : 63 - __builtin_clzll(__bits[__line]);
            return __begin(__from + __line) + __byte / int(sizeof(key));
        }
        return -1;
    }

private:
    static constexpr int in_line = line_bytes / sizeof(key), together = 8;
    // Which bytes of a line of elements belong to some that have a key.
    GRIDSTRIDE_INLINED static unsigned long long bytes_with(const __stored* __items, key __key) {
        typedef typename word_of<sizeof(key)>::type __word;
        alignas(line_bytes) __word __has_key[in_line];
        GRIDSTRIDE_LANES
        for (long long __lane = 0; __lane < in_line; ++__lane) __has_key[__lane] = keys::from(__items[__lane]) == __key ? __word(~__word(0)) : __word(0);
        unsigned long long __bits = 0;
#if defined(__AVX512BW__)
        __bits = __builtin_ia32_cvtb2mask512(bytes_at<64>(__has_key, 0));
#elif defined(__AVX2__)
        for (int __k = 0; __k < line_bytes; __k += 32)
            __bits |= (unsigned long long)(unsigned)__builtin_ia32_pmovmskb256(bytes_at<32>(__has_key, __k)) << __k;
#elif defined(__SSE2__)
        for (int __k = 0; __k < line_bytes; __k += 16)
            __bits |= (unsigned long long)(unsigned)__builtin_ia32_pmovmskb128(bytes_at<16>(__has_key, __k)) << __k;
#else
        for (int __k = 0; __k < line_bytes; ++__k) __bits |= (unsigned long long)(reinterpret_cast<const unsigned char*>(__has_key)[__k] & 1) << __k;
#endif
        return __bits;
    }
    template <int __count>
    GRIDSTRIDE_INLINED static auto bytes_at(const void* __bytes, int __k) { return vector_of<char, __count>::from(static_cast<const char*>(__bytes) + __k); }
};

}

#endif
