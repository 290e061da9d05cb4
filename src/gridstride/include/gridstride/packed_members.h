// Complex numbers and floats of two bytes that are members of structures at places where their own types cannot lie:
// classes keep their alignment in a packed structure.
#ifndef GRIDSTRIDE_PACKED_MEMBERS_H
#define GRIDSTRIDE_PACKED_MEMBERS_H

namespace gridstride {

template <class __number, int __size = sizeof(__number)>
struct packed_member;

template <class __type>
__host__ __device__ inline const __type& unpacked(const __type& __value) { return __value; }
template <class __number, int __size>
__host__ __device__ inline __number unpacked(const packed_member<__number, __size>& __value) { return __value.get(); }

#define GRIDSTRIDE_COMPOUND(operation) \
    template <class __other> __host__ __device__ packed_member& operator operation##=(const __other& __value) { \
        return *this = get() operation unpacked(__value); \
    }
#define GRIDSTRIDE_MEMBERS \
    unsigned char __bytes[sizeof(__number)]; \
    packed_member() = default; \
    template <class __other> __host__ __device__ packed_member(const __other& __value) { *this = __value; } \
    template <class __other> __host__ __device__ packed_member& operator=(const __other& __value) { \
        const __number __copy = static_cast<__number>(unpacked(__value)); \
        memcpy(__bytes, &__copy, sizeof(__number)); \
        return *this; \
    } \
    __host__ __device__ __number get() const { \
        __number __copy; \
        memcpy(&__copy, __bytes, sizeof(__number)); \
        return __copy; \
    } \
    GRIDSTRIDE_COMPOUND(+) GRIDSTRIDE_COMPOUND(-) GRIDSTRIDE_COMPOUND(*) GRIDSTRIDE_COMPOUND(/)

// Of a complex number.
template <class __number, int __size>
struct packed_member {
    GRIDSTRIDE_MEMBERS
    __host__ __device__ operator __number() const { return get(); }
    __host__ __device__ typename __number::value_type real() const { return get().real(); }
    __host__ __device__ typename __number::value_type imag() const { return get().imag(); }
    __host__ __device__ void real(typename __number::value_type __re) { *this = __number(__re, imag()); }
    __host__ __device__ void imag(typename __number::value_type __im) { *this = __number(real(), __im); }
};

// Of a float of two bytes, which is a float to every expression.
template <class __number>
struct packed_member<__number, 2> {
    GRIDSTRIDE_MEMBERS
    __host__ __device__ operator float() const { return get(); }
};

#define GRIDSTRIDE_OPERATION(operation) \
    template <class __a, int __size, class __b> \
    __host__ __device__ inline auto operator operation(const packed_member<__a, __size>& __x, const __b& __y) \
        -> decltype(unpacked(__x) operation unpacked(__y)) { return unpacked(__x) operation unpacked(__y); } \
    template <class __a, class __b, int __size> \
    __host__ __device__ inline auto operator operation(const __a& __x, const packed_member<__b, __size>& __y) \
        -> decltype(unpacked(__x) operation unpacked(__y)) { return unpacked(__x) operation unpacked(__y); } \
    template <class __a, int __size, class __b, int __other> \
    __host__ __device__ inline auto operator operation(const packed_member<__a, __size>& __x, \
                                                       const packed_member<__b, __other>& __y) \
        -> decltype(unpacked(__x) operation unpacked(__y)) { return unpacked(__x) operation unpacked(__y); }
GRIDSTRIDE_OPERATION(+)
GRIDSTRIDE_OPERATION(-)
GRIDSTRIDE_OPERATION(*)
GRIDSTRIDE_OPERATION(/)
GRIDSTRIDE_OPERATION(==)
GRIDSTRIDE_OPERATION(!=)
template <class __number, int __size>
__host__ __device__ inline auto operator-(const packed_member<__number, __size>& __x) -> decltype(-unpacked(__x)) {
    return -unpacked(__x);
}

#undef GRIDSTRIDE_OPERATION
#undef GRIDSTRIDE_MEMBERS
#undef GRIDSTRIDE_COMPOUND

}

#endif
