// Rows that are made of short chunks of memory, each of which has its elements in another order or some of them: the
// bytes of several chunks at once are permuted in registers, or elements are taken by a table of their places.
#ifndef GRIDSTRIDE_CPU_CHUNKS_H
#define GRIDSTRIDE_CPU_CHUNKS_H

#include <gridstride_cpu/shares.h>

namespace gridstride {

// Vectors of permuted bytes, and how many bytes one instruction picks them from; 0: there is none.
#if defined(__AVX512VBMI__)
constexpr int permuted_bytes = 64, window_bytes = 128;
#elif defined(__SSSE3__)
constexpr int permuted_bytes = 16, window_bytes = 16;
#else
constexpr int permuted_bytes = 0, window_bytes = 1;
#endif
constexpr int most_chunk_bytes = 384, most_permutations = 32;
constexpr int window_of_chunks = 4096;  // bytes of permuted chunks that are kept

// The chunks of a row: element k of one comes from `places[k]` bytes behind its first byte in memory.
struct permuted_chunks {
    int count;          // of elements
    long long start;    // of a chunk's bytes, from its first element
    long long step;     // from chunk to chunk
    long long ahead;    // of a chunk, to that which is fetched meanwhile
    int extent;         // bytes in memory
    const long long* places;
    int group;          // chunks that are permuted together, or 0
    int vectors, windows;
    char* table;        // for each vector and window which bytes come from there, and masks of these
    const char* end;    // of readable memory
    int some;           // chunks that are permuted at once
    const char* row;    // of which these are permuted, or null
    int first, last;
};

// Make the table of a group; `room` bytes suffice for it, else there is none.
GRIDSTRIDE_APART int plan_group(permuted_chunks& __its, int __size, char* __table, int __room) {
    const int __chunk = __its.count * __size;
    int __group = 1;
    while (__its.step >= 0 && (__group + 1) * __chunk <= window_bytes && __its.extent + __group * __its.step <= window_bytes) ++__group;
    const int __bytes = __group * __chunk, __reach = __its.extent + int((__group - 1) * __its.step);
    __its.group = 0;
    __its.vectors = permuted_bytes ? (__bytes + permuted_bytes - 1) / permuted_bytes : most_permutations + 1;
    __its.windows = (__reach + window_bytes - 1) / window_bytes;
    const int __all = __its.vectors * __its.windows * 2 * permuted_bytes;
    if (__its.vectors * __its.windows > most_permutations || __all > __room) return 0;
    __builtin_memset(__table, 0, __all);
    int __vector = 0, __lane = 0;
    for (int __chunk = 0; __chunk < __group; ++__chunk)
        for (int __k = 0; __k < __its.count; ++__k)
            for (int __byte = 0; __byte < __size; ++__byte) {
                const int __place = int(__chunk * __its.step + __its.places[__k]) + __byte;
                char* const __its_table = __table + (__vector * __its.windows + __place / window_bytes) * 2 * permuted_bytes;
                __its_table[__lane] = char(__place % window_bytes);
                __its_table[permuted_bytes + __lane] = char(255);
                if (++__lane == permuted_bytes) __lane = 0, ++__vector;
            }
    __its.group = __group;
    __its.table = __table;
    return __all;
}

#if defined(__SSSE3__)
typedef char permuted_vector __attribute__((vector_size(permuted_bytes)));
GRIDSTRIDE_INLINED permuted_vector vector_at(const char* __from) {
    permuted_vector __some;
    __builtin_memcpy(&__some, __from, sizeof(__some));
    return __some;
}
GRIDSTRIDE_INLINED permuted_vector permuted(const char* __window, permuted_vector __places) {
#if !defined(__AVX512VBMI__)
    return __builtin_ia32_pshufb128(vector_at(__window), __places);
#elif defined(__clang__)
    return (permuted_vector)__builtin_ia32_vpermi2varqi512(vector_at(__window), __places, vector_at(__window + permuted_bytes));
#else
    return __builtin_shuffle(vector_at(__window), vector_at(__window + permuted_bytes), __places);
#endif
}
// A vector of each of several groups, whose bytes come from one window or more.
GRIDSTRIDE_INLINED void permute_vectors(char* __to, const char* __from, const permuted_chunks& __its, const char* __table,
                                        int __groups, long long __bytes, long long __step, bool __fetches) {
    const permuted_vector __places = vector_at(__table);
    const long long __ahead = __its.ahead;
    const int __windows = __its.windows;
    for (int __k = 0; __k < __groups; ++__k, __to += __bytes, __from += __step) {
        permuted_vector __some = permuted(__from, __places);
        if (__fetches) __builtin_prefetch(__from + __ahead);
        for (int __k = 1; __k < __windows; ++__k) {
            if (__fetches) __builtin_prefetch(__from + __ahead + __k * window_bytes);
            const char* const __others = __table + __k * 2 * permuted_bytes;
            const permuted_vector __mask = vector_at(__others + permuted_bytes);
            __some = (__some & ~__mask) | (permuted(__from + __k * window_bytes, vector_at(__others)) & __mask);
        }
        __builtin_memcpy(__to, &__some, sizeof(__some));
    }
}
#endif

// Permute whole groups of chunks; return how many chunks that were.
GRIDSTRIDE_APART int permute_groups(char* __to, const char* __from, const permuted_chunks& __its, int __chunks, int __bytes) {
#if defined(__SSSE3__)
    const long long __step = __its.group * __its.step, __window = __its.windows * window_bytes, __room = __its.end - __window - __from;
    const int __all = __chunks / __its.group, __group = __its.group * __bytes;
    int __groups = __all;
    if (__room < 0)
        __groups = 0;
    else if (__room < (__groups - 1) * __step)
        __groups = int(__room / __step) + 1;
    // Backwards: what follows a group's last vector is overwritten by the next group's first one.
    auto __permute = [&](char* __to, const char* __from, int __groups, bool __fetches) {
        for (int __k = __its.vectors - 1; __k >= 0; --__k)
            permute_vectors(__to + __k * permuted_bytes, __from, __its, __its.table + __k * __its.windows * 2 * permuted_bytes,
                            __groups, __group, __step, __fetches && __k == __its.vectors - 1);
    };
    __permute(__to, __from, __groups, true);
    // Behind the last ones there may be nothing.
    char __last[most_chunk_bytes + window_bytes];
    for (int __k = __groups; __k < __all; ++__k) {
        const char* const __at = __from + __k * __step;
        __builtin_memcpy(__last, __at, __its.end - __at < __window ? __its.end - __at : __window);
        __permute(__to + (long long)__k * __group, __last, 1, false);
    }
    return __all * __its.group;
#else
    return 0;
#endif
}

// Bring a row of chunks to where elements are consecutive; there is room for a vector behind them.
template <int __size>
GRIDSTRIDE_INLINED void permute_row(char* __to, const char* __from, const permuted_chunks& __its, int __chunks) {
    const int __bytes = __its.count * __size;
    int __done = __its.group ? permute_groups(__to, __from, __its, __chunks, __bytes) : 0;
    __to += __done * __bytes;
    __from += __done * __its.step;
    for (; __done < __chunks; ++__done, __from += __its.step)
        for (int __k = 0; __k < __its.count; ++__k, __to += __size) __builtin_memcpy(__to, __from + __its.places[__k], __size);
}

// Some elements of a row of chunks, in a window of those that were permuted last.
template <int __size>
GRIDSTRIDE_INLINED char* permuted_window(char* __window, const char* __row, permuted_chunks& __its, long long __from, int __count,
                                         int __width) {
    const int __first = int(__from) / __its.count, __last = (int(__from) + __count - 1) / __its.count + 1;
    if (__its.row != __row || __first < __its.first || __last > __its.last) {
        __its.row = __row;
        __its.first = __first;
        __its.last = smaller(__first + __its.some, __width / __its.count);
        permute_row<__size>(__window, __row + __its.start + __first * __its.step, __its, __its.last - __first);
    }
    return __window + (__from - (long long)__its.first * __its.count) * __size;
}

}

#endif
