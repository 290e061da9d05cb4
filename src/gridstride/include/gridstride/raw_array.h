// A raw parameter: a whole array that the kernel's body indexes. `x[k]` is element k in the order of its axes, last
// axis fastest; `x[{i, j}]` and `x[_ind.get()]` have an index for each axis.
// Indices are checked as `bounds.h` says.
#ifndef GRIDSTRIDE_RAW_ARRAY_H
#define GRIDSTRIDE_RAW_ARRAY_H

#include <gridstride/bounds.h>

namespace gridstride {

// One number for each axis: a pointer to `ptrdiff_t` as CuPy has it, whichever integer of 8 bytes that is, or to `long long`.
struct axis_numbers {
    const long long* __numbers;
    const long* __same;

    __host__ __device__ operator const long long*() const { return __numbers; }
    __host__ __device__ operator const long*() const { return __same; }
    __host__ __device__ const long long& operator*() const { return *__numbers; }
    template <class __index>
    __host__ __device__ const long long& operator[](__index __axis) const { return __numbers[__axis]; }
    template <class __index>
    __host__ __device__ const long long* operator+(__index __axes) const { return __numbers + __axes; }
};

// What messages call an array whose text says nothing else.
struct unnamed_array {
    __host__ __device__ static const char* kernel() { return ""; }
    __host__ __device__ static const char* parameter() { return "raw array"; }
};

template <class __type, int __axes, bool __is_contiguous, class __name = unnamed_array>
struct raw_array {
    static constexpr int ndim = __axes;
    typedef __type value_type;

    char* __data;
    long long __size;
    long long __shape[__axes ? __axes : 1];
    long long __strides[__axes ? __axes : 1];  // in bytes

    __host__ __device__ long long size() const { return __size; }
    __host__ __device__ axis_numbers shape() const { return __numbers(__shape); }
    __host__ __device__ axis_numbers strides() const { return __numbers(__strides); }

    template <class __index>
    __host__ __device__ __type& operator[](const __index& __k) const {
        return __at(static_cast<long long>(__k));
    }
    __host__ __device__ __type& operator[](const long long* __indices) const { return __at(__indices); }
    __host__ __device__ __type& operator[](const axis_numbers& __indices) const { return __at(__indices.__numbers); }
    __host__ __device__ __type& operator[](const long long (&__indices)[__axes ? __axes : 1]) const {
        const long long* __first = __indices;
        return __at(__first);
    }
    template <class __index>
    __host__ __device__ __type& operator[](const __index (&__indices)[__axes ? __axes : 1]) const {
        long long __wide[__axes ? __axes : 1];
        for (int __axis = 0; __axis < __axes; ++__axis) __wide[__axis] = static_cast<long long>(__indices[__axis]);
        const long long* __first = __wide;
        return __at(__first);
    }

  private:
    __host__ __device__ static axis_numbers __numbers(const long long* __each) {
        static_assert(sizeof(long) == sizeof(long long), "the host wrote them, so any integer of 8 bytes reads them");
        return axis_numbers{__each, reinterpret_cast<const long*>(__each)};
    }
    __host__ __device__ __type& __at(long long __k) const {
        check_index(__name::kernel(), __name::parameter(), __k, __size, -1);
        if (__is_contiguous) return reinterpret_cast<__type*>(__data)[__k];
        char* __place = __data;
        for (int __axis = __axes - 1; __axis > 0; --__axis) {
            const long long __rest = __k / __shape[__axis];
            __place += (__k - __rest * __shape[__axis]) * __strides[__axis];
            __k = __rest;
        }
        return *reinterpret_cast<__type*>(__place + __k * __strides[0]);
    }
    __host__ __device__ __type& __at(const long long* __indices) const {
        char* __place = __data;
        for (int __axis = 0; __axis < __axes; ++__axis) {
            check_index(__name::kernel(), __name::parameter(), __indices[__axis], __shape[__axis], __axis);
            __place += __indices[__axis] * __strides[__axis];
        }
        return *reinterpret_cast<__type*>(__place);
    }
};

// `_ind`: the number of an element, and its index along each axis.
template <int __axes>
struct extents {
    long long lengths[__axes ? __axes : 1];
};
template <int __axes>
struct index_of {
    static constexpr int ndim = __axes;
    long long __number, __size;
    long long __indices[__axes ? __axes : 1];
    long __same[__axes ? __axes : 1];

    __host__ __device__ index_of(long long __i, long long __n, const extents<__axes>& __of) : __number(__i), __size(__n) {
        for (int __axis = __axes - 1; __axis >= 0; --__axis) {
            const long long __rest = __i / __of.lengths[__axis];
            __indices[__axis] = __same[__axis] = __i - __rest * __of.lengths[__axis];
            __i = __rest;
        }
    }
    __host__ __device__ long long size() const { return __size; }
    __host__ __device__ axis_numbers get() const { return axis_numbers{__indices, __same}; }
};

}

#endif
