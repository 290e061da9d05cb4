// Loads and stores with cache hints, byte copies, the device heap, clocks.
#ifndef GRIDSTRIDE_CPU_MEMORY_H
#define GRIDSTRIDE_CPU_MEMORY_H

#include <gridstride/fixed_width.h>

#include "execution.h"
#include "vectors.h"

// ---- cache hints: plain loads and stores, for the types that CUDA accepts and no others ----

template <class __value>
struct gridstride_is_hintable { static constexpr bool value = false; };

#define GRIDSTRIDE_HINTABLE(type) \
    template <> struct gridstride_is_hintable<type> { static constexpr bool value = true; };

GRIDSTRIDE_HINTABLE(char) GRIDSTRIDE_HINTABLE(signed char) GRIDSTRIDE_HINTABLE(unsigned char)
GRIDSTRIDE_HINTABLE(short) GRIDSTRIDE_HINTABLE(unsigned short)
GRIDSTRIDE_HINTABLE(int) GRIDSTRIDE_HINTABLE(unsigned)
GRIDSTRIDE_HINTABLE(long) GRIDSTRIDE_HINTABLE(unsigned long)
GRIDSTRIDE_HINTABLE(long long) GRIDSTRIDE_HINTABLE(unsigned long long)
GRIDSTRIDE_HINTABLE(float) GRIDSTRIDE_HINTABLE(double)
GRIDSTRIDE_HINTABLE(char2) GRIDSTRIDE_HINTABLE(char4) GRIDSTRIDE_HINTABLE(uchar2) GRIDSTRIDE_HINTABLE(uchar4)
GRIDSTRIDE_HINTABLE(short2) GRIDSTRIDE_HINTABLE(short4) GRIDSTRIDE_HINTABLE(ushort2) GRIDSTRIDE_HINTABLE(ushort4)
GRIDSTRIDE_HINTABLE(int2) GRIDSTRIDE_HINTABLE(int4) GRIDSTRIDE_HINTABLE(uint2) GRIDSTRIDE_HINTABLE(uint4)
GRIDSTRIDE_HINTABLE(longlong2) GRIDSTRIDE_HINTABLE(ulonglong2)
GRIDSTRIDE_HINTABLE(float2) GRIDSTRIDE_HINTABLE(float4) GRIDSTRIDE_HINTABLE(double2)

#define GRIDSTRIDE_LOAD(function) \
    template <class __value> \
    GRIDSTRIDE_DEVICE __value function(const __value* __address) { \
        static_assert(gridstride_is_hintable<__value>::value, #function " takes a pointer to a built-in type"); \
        return *__address; \
    }
#define GRIDSTRIDE_STORE(function) \
    template <class __value> \
    GRIDSTRIDE_DEVICE void function(__value* __address, __value __new) { \
        static_assert(gridstride_is_hintable<__value>::value, #function " takes a pointer to a built-in type"); \
        *__address = __new; \
    }

GRIDSTRIDE_LOAD(__ldg)
GRIDSTRIDE_LOAD(__ldca)
GRIDSTRIDE_LOAD(__ldcg)
GRIDSTRIDE_LOAD(__ldcs)
GRIDSTRIDE_LOAD(__ldlu)
GRIDSTRIDE_STORE(__stwb)
GRIDSTRIDE_STORE(__stcg)
GRIDSTRIDE_STORE(__stcs)
GRIDSTRIDE_STORE(__stwt)
#undef GRIDSTRIDE_LOAD
#undef GRIDSTRIDE_STORE

// "Fetch again": code that polls uses it.
template <class __value>
GRIDSTRIDE_DEVICE __value __ldcv(const __value* __address, GRIDSTRIDE_SITE) {
    static_assert(gridstride_is_hintable<__value>::value, "__ldcv takes a pointer to a built-in type");
    gridstride_spin_hint(__file, __line);
    asm volatile("" : : : "memory");
    return *__address;
}

// ---- bytes, heap ----

extern "C" void* memcpy(void*, const void*, size_t) noexcept;
extern "C" void* memset(void*, int, size_t) noexcept;
extern "C" void* malloc(size_t) noexcept;
extern "C" void free(void*) noexcept;

// Inline, so that a library without `new` carries none of them.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winline-new-delete"
#endif
inline void* operator new(size_t __bytes) { return malloc(__bytes); }
inline void* operator new[](size_t __bytes) { return malloc(__bytes); }
inline void* operator new(size_t, void* __place) noexcept { return __place; }
inline void* operator new[](size_t, void* __place) noexcept { return __place; }
inline void operator delete(void* __memory) noexcept { free(__memory); }
inline void operator delete[](void* __memory) noexcept { free(__memory); }
inline void operator delete(void* __memory, size_t) noexcept { free(__memory); }
inline void operator delete[](void* __memory, size_t) noexcept { free(__memory); }
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

// ---- clocks ----

// Ticks of the processor's steady counter. Reading a clock is how code waits, so other threads run meanwhile.
GRIDSTRIDE_DEVICE long long clock64(GRIDSTRIDE_SITE) {
    gridstride_spin_hint(__file, __line);
#if defined(__x86_64__)
    return static_cast<long long>(__builtin_ia32_rdtsc());
#else
    long long __ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(__ticks));
    return __ticks;
#endif
}
// As on a GPU, `clock_t` is long; the low word of the counter wraps.
typedef long clock_t;
GRIDSTRIDE_DEVICE clock_t clock(GRIDSTRIDE_SITE) { return static_cast<int>(clock64(__file, __line)); }

// ---- hints for profilers and optimizers ----

GRIDSTRIDE_DEVICE void __prof_trigger(int) {}
GRIDSTRIDE_DEVICE void __pm0() {}
GRIDSTRIDE_DEVICE void __pm1() {}
GRIDSTRIDE_DEVICE void __pm2() {}
GRIDSTRIDE_DEVICE void __pm3() {}
#if !defined(__clang__)
#define __builtin_assume(condition) ((condition) ? static_cast<void>(0) : __builtin_unreachable())
#endif
#define __assume(condition) __builtin_assume(condition)

#endif
