// With GRIDSTRIDE_DEBUG defined, an index out of bounds prints where and stops the launch.
#ifndef GRIDSTRIDE_BOUNDS_H
#define GRIDSTRIDE_BOUNDS_H

namespace gridstride {

// An index along an axis of what a text names so; among all elements where the axis is below 0.
#ifdef GRIDSTRIDE_DEBUG
__host__ __device__ inline void check_index(const char* __indexed, long long __index, long long __length, int __axis) {
    if (__index >= 0 && __index < __length) return;
    if (__axis < 0) printf("%s: index %lld is out of bounds for size %lld\n", __indexed, __index, __length);
    else printf("%s: index %lld is out of bounds for axis %d with length %lld\n", __indexed, __index, __axis, __length);
    __trap();
}
#else
__host__ __device__ inline void check_index(const char*, long long, long long, int) {}
#endif

}

#endif
