// Stands before a header of the CUDA C++ core libraries, which then take themselves for a plain C++ library without
// a C++ library below: what a device compiler defines is out of sight until core_library_end.h.
#pragma push_macro("__CUDACC__")
#pragma push_macro("__CUDACC_RTC__")
#pragma push_macro("__CUDA_ARCH__")
#pragma push_macro("clock_t")
#pragma push_macro("exit")
#undef __CUDACC__
#undef __CUDACC_RTC__
#undef __CUDA_ARCH__
// Theirs is another type than a device's.
#undef clock_t
#define clock_t gridstride_core_library_clock_t
// A program that ends itself is a kernel that stops.
#undef exit
#define exit(code) __trap()

#ifndef GRIDSTRIDE_CPU_CORE_LIBRARY_H
#define GRIDSTRIDE_CPU_CORE_LIBRARY_H

#include <gridstride_cpu/ptx.h>

#define _CCCL_ENABLE_FREESTANDING
#define CCCL_DISABLE_LONG_DOUBLE
// Even so they want to know.
#define LDBL_MANT_DIG __LDBL_MANT_DIG__
#define LDBL_DIG __LDBL_DIG__
#define LDBL_MIN_EXP __LDBL_MIN_EXP__
#define LDBL_MAX_EXP __LDBL_MAX_EXP__
#define LDBL_MIN_10_EXP __LDBL_MIN_10_EXP__
#define LDBL_MAX_10_EXP __LDBL_MAX_10_EXP__
#define LDBL_MIN __LDBL_MIN__
#define LDBL_MAX __LDBL_MAX__
#define LDBL_EPSILON __LDBL_EPSILON__

extern "C" {
typedef struct { int quot, rem; } div_t;
typedef struct { long quot, rem; } ldiv_t;
typedef struct { long long quot, rem; } lldiv_t;
void* calloc(size_t, size_t);
void* aligned_alloc(size_t, size_t);
int memcmp(const void*, const void*, size_t);
void* memchr(const void*, int, size_t);
void* memmove(void*, const void*, size_t);
char* strcpy(char*, const char*);
char* strncpy(char*, const char*, size_t);
int strcmp(const char*, const char*);
int strncmp(const char*, const char*, size_t);
char* strchr(const char*, int);
char* strrchr(const char*, int);
size_t strlen(const char*);
long double erfcl(long double);
}

// What is in a C++ library, and their clock asks of a host.
namespace std {
#ifdef __cpp_aligned_new
enum class align_val_t : size_t {};
#endif
namespace chrono {
struct nanoseconds { long long count() const { return nanoseconds_since; } long long nanoseconds_since; };
template <class __duration> __duration duration_cast(const __duration& __value) { return __value; }
struct system_clock {
    struct time_point { nanoseconds time_since_epoch() const { return nanoseconds{nanoseconds_since}; } long long nanoseconds_since; };
    static time_point now() { return time_point{static_cast<long long>(gridstride_ptx_globaltimer())}; }
};
}
}

#include <cuda/std/__exception/terminate.h>

#endif
