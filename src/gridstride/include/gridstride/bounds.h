// With GRIDSTRIDE_DEBUG defined, an index out of bounds prints where and stops the launch, with an error that says so
// where errors have words.
#ifndef GRIDSTRIDE_BOUNDS_H
#define GRIDSTRIDE_BOUNDS_H

namespace gridstride {

// An index along an axis of what a text names so; among all elements where the axis is below 0. `__kernel` comes before it.
#ifdef GRIDSTRIDE_DEBUG
#define GRIDSTRIDE_OUT_OF_SIZE "%s%s: index %lld is out of bounds for size %lld"
#define GRIDSTRIDE_OUT_OF_AXIS "%s%s: index %lld is out of bounds for axis %d with length %lld"
__host__ __device__ inline void check_index(const char* __kernel, const char* __indexed, long long __index, long long __length, int __axis) {
    if (__index >= 0 && __index < __length) return;
    if (__axis < 0) printf(GRIDSTRIDE_OUT_OF_SIZE "\n", __kernel, __indexed, __index, __length);
    else printf(GRIDSTRIDE_OUT_OF_AXIS "\n", __kernel, __indexed, __index, __axis, __length);
#ifdef GRIDSTRIDE_CPU_ABI_VERSION
    char __what[512];  // the error names the kernel itself
    if (__axis < 0) __builtin_snprintf(__what, sizeof __what, GRIDSTRIDE_OUT_OF_SIZE, "", __indexed, __index, __length);
    else __builtin_snprintf(__what, sizeof __what, GRIDSTRIDE_OUT_OF_AXIS, "", __indexed, __index, __axis, __length);
    gridstride_fail(GRIDSTRIDE_TRAP, __what, nullptr, 0, nullptr);
#else
    __trap();
#endif
}
#undef GRIDSTRIDE_OUT_OF_AXIS
#undef GRIDSTRIDE_OUT_OF_SIZE
#else
__host__ __device__ inline void check_index(const char*, const char*, long long, long long, int) {}
#endif

}

#endif
