// A strided array as a kernel sees it, passed by value: `gridstride::view<float, 2> v`, then `v(i, j)`.
//
// The layout is the same on every target and is what the launch fills in:
//
//     T* data;                 8 bytes, the address of element (0, ..., 0)
//     long long shape[N];      the length of each axis
//     long long strides[N];    from one element to the next along each axis, in elements; may be negative or zero
//
// so a view takes 8 + 16 * N bytes, aligned to 8. Read-only arrays go to `gridstride::view<const float, 2>`.
// With GRIDSTRIDE_DEBUG defined, an index out of bounds prints where and stops the launch.
#ifndef GRIDSTRIDE_VIEW_H
#define GRIDSTRIDE_VIEW_H

#include <gridstride/bounds.h>

namespace gridstride {

template <class __t, int __n>
struct view {
    static_assert(__n >= 1, "a view has at least one axis");

    __t* data;
    long long __shape[__n];
    long long __strides[__n];

    typedef __t value_type;
    static constexpr int ndim = __n;

    template <class... __indices>
    __host__ __device__ __t& operator()(__indices... __index) const {
        static_assert(sizeof...(__indices) == __n, "a view takes one index for each axis");
        return data[__offset(0, __index...)];
    }

    __host__ __device__ __t& operator[](long long __index) const {
        static_assert(__n == 1, "square brackets index views of one axis; write v(i, j) for more");
        return data[__offset(0, __index)];
    }

    __host__ __device__ long long shape(int __axis) const { return __shape[__axis]; }
    __host__ __device__ long long stride(int __axis) const { return __strides[__axis]; }

    __host__ __device__ long long size() const {
        long long __product = 1;
        for (int __axis = 0; __axis < __n; ++__axis) __product *= __shape[__axis];
        return __product;
    }

  private:
    __host__ __device__ long long __offset(int) const { return 0; }

    template <class... __indices>
    __host__ __device__ long long __offset(int __axis, long long __index, __indices... __rest) const {
        check_index("", "gridstride::view", __index, __shape[__axis], __axis);
        return __index * __strides[__axis] + __offset(__axis + 1, __rest...);
    }
};

}

#endif
