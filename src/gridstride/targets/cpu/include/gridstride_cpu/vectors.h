// Built-in vector types with CUDA's sizes and alignments, and their make_* functions.
#ifndef GRIDSTRIDE_CPU_VECTORS_H
#define GRIDSTRIDE_CPU_VECTORS_H

#include "dim3.h"
#include "qualifiers.h"
#include "type_traits.h"

template <unsigned __count, unsigned __kind>
struct gridstride_vector_traits {
    static constexpr unsigned kind = GRIDSTRIDE_VECTOR, components = __count, component_kind = __kind;
};

#define GRIDSTRIDE_VECTOR(vector, kind, count, bytes, members, parameters, values) \
    struct __align__(bytes) vector { members; }; \
    template <> struct gridstride_type_traits<vector> : gridstride_vector_traits<count, kind> {}; \
    GRIDSTRIDE_DEVICE vector make_##vector parameters { return vector values; }

#define GRIDSTRIDE_LIST(...) __VA_ARGS__
#define GRIDSTRIDE_VECTOR_1(vector, component, kind, bytes) \
    GRIDSTRIDE_VECTOR(vector, kind, 1, bytes, component x, (component __x), {__x})
#define GRIDSTRIDE_VECTOR_2(vector, component, kind, bytes) \
    GRIDSTRIDE_VECTOR(vector, kind, 2, bytes, GRIDSTRIDE_LIST(component x, y), (component __x, component __y), \
                      GRIDSTRIDE_LIST({__x, __y}))
#define GRIDSTRIDE_VECTOR_3(vector, component, kind, bytes) \
    GRIDSTRIDE_VECTOR(vector, kind, 3, bytes, GRIDSTRIDE_LIST(component x, y, z), \
                      (component __x, component __y, component __z), GRIDSTRIDE_LIST({__x, __y, __z}))
#define GRIDSTRIDE_VECTOR_4(vector, component, kind, bytes) \
    GRIDSTRIDE_VECTOR(vector, kind, 4, bytes, GRIDSTRIDE_LIST(component x, y, z, w), \
                      (component __x, component __y, component __z, component __w), GRIDSTRIDE_LIST({__x, __y, __z, __w}))

// name, component, its kind, alignments of the vectors of 1, 2, 3 and 4 components
#define GRIDSTRIDE_VECTORS(name, component, kind, one, two, three, four) \
    GRIDSTRIDE_VECTOR_1(name##1, component, kind, one) \
    GRIDSTRIDE_VECTOR_2(name##2, component, kind, two) \
    GRIDSTRIDE_VECTOR_3(name##3, component, kind, three) \
    GRIDSTRIDE_VECTOR_4(name##4, component, kind, four)

GRIDSTRIDE_VECTORS(char, signed char, GRIDSTRIDE_SIGNED, 1, 2, 1, 4)
GRIDSTRIDE_VECTORS(uchar, unsigned char, GRIDSTRIDE_UNSIGNED, 1, 2, 1, 4)
GRIDSTRIDE_VECTORS(short, short, GRIDSTRIDE_SIGNED, 2, 4, 2, 8)
GRIDSTRIDE_VECTORS(ushort, unsigned short, GRIDSTRIDE_UNSIGNED, 2, 4, 2, 8)
GRIDSTRIDE_VECTORS(int, int, GRIDSTRIDE_SIGNED, 4, 8, 4, 16)
GRIDSTRIDE_VECTORS(long, long, GRIDSTRIDE_SIGNED, 8, 16, 8, 16)
GRIDSTRIDE_VECTORS(ulong, unsigned long, GRIDSTRIDE_UNSIGNED, 8, 16, 8, 16)
GRIDSTRIDE_VECTORS(longlong, long long, GRIDSTRIDE_SIGNED, 8, 16, 8, 16)
GRIDSTRIDE_VECTORS(ulonglong, unsigned long long, GRIDSTRIDE_UNSIGNED, 8, 16, 8, 16)
GRIDSTRIDE_VECTORS(float, float, GRIDSTRIDE_FLOAT, 4, 8, 4, 16)
GRIDSTRIDE_VECTORS(double, double, GRIDSTRIDE_FLOAT, 8, 16, 8, 16)

// dim3.h has uint3 already.
GRIDSTRIDE_VECTOR_1(uint1, unsigned int, GRIDSTRIDE_UNSIGNED, 4)
GRIDSTRIDE_VECTOR_2(uint2, unsigned int, GRIDSTRIDE_UNSIGNED, 8)
GRIDSTRIDE_VECTOR_4(uint4, unsigned int, GRIDSTRIDE_UNSIGNED, 16)
template <> struct gridstride_type_traits<uint3> : gridstride_vector_traits<3, GRIDSTRIDE_UNSIGNED> {};
GRIDSTRIDE_DEVICE uint3 make_uint3(unsigned int __x, unsigned int __y, unsigned int __z) { return uint3{__x, __y, __z}; }

// CUDA 13 spells the alignment of four 64-bit components in the name.
#define GRIDSTRIDE_VECTORS_OF_ALIGNMENT(name, component, kind) \
    GRIDSTRIDE_VECTOR_4(name##4_16a, component, kind, 16) \
    GRIDSTRIDE_VECTOR_4(name##4_32a, component, kind, 32)

GRIDSTRIDE_VECTORS_OF_ALIGNMENT(long, long, GRIDSTRIDE_SIGNED)
GRIDSTRIDE_VECTORS_OF_ALIGNMENT(ulong, unsigned long, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_VECTORS_OF_ALIGNMENT(longlong, long long, GRIDSTRIDE_SIGNED)
GRIDSTRIDE_VECTORS_OF_ALIGNMENT(ulonglong, unsigned long long, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_VECTORS_OF_ALIGNMENT(double, double, GRIDSTRIDE_FLOAT)

#undef GRIDSTRIDE_VECTORS_OF_ALIGNMENT
#undef GRIDSTRIDE_VECTORS
#undef GRIDSTRIDE_VECTOR_4
#undef GRIDSTRIDE_VECTOR_3
#undef GRIDSTRIDE_VECTOR_2
#undef GRIDSTRIDE_VECTOR_1
#undef GRIDSTRIDE_VECTOR
#undef GRIDSTRIDE_LIST

#endif
