// Built-in vector types with CUDA's sizes and alignments, and their make_* functions.
#ifndef GRIDSTRIDE_CPU_VECTORS_H
#define GRIDSTRIDE_CPU_VECTORS_H

#include "dim3.h"
#include "qualifiers.h"

#define GRIDSTRIDE_VECTOR_1(vector, component, bytes) \
    struct __align__(bytes) vector { component x; }; \
    GRIDSTRIDE_DEVICE vector make_##vector(component __x) { return vector{__x}; }
#define GRIDSTRIDE_VECTOR_2(vector, component, bytes) \
    struct __align__(bytes) vector { component x, y; }; \
    GRIDSTRIDE_DEVICE vector make_##vector(component __x, component __y) { return vector{__x, __y}; }
#define GRIDSTRIDE_VECTOR_3(vector, component, bytes) \
    struct __align__(bytes) vector { component x, y, z; }; \
    GRIDSTRIDE_DEVICE vector make_##vector(component __x, component __y, component __z) \
    { return vector{__x, __y, __z}; }
#define GRIDSTRIDE_VECTOR_4(vector, component, bytes) \
    struct __align__(bytes) vector { component x, y, z, w; }; \
    GRIDSTRIDE_DEVICE vector make_##vector(component __x, component __y, component __z, component __w) \
    { return vector{__x, __y, __z, __w}; }

// name, component, alignments of the vectors of 1, 2, 3 and 4 components
#define GRIDSTRIDE_VECTORS(name, component, one, two, three, four) \
    GRIDSTRIDE_VECTOR_1(name##1, component, one) \
    GRIDSTRIDE_VECTOR_2(name##2, component, two) \
    GRIDSTRIDE_VECTOR_3(name##3, component, three) \
    GRIDSTRIDE_VECTOR_4(name##4, component, four)

GRIDSTRIDE_VECTORS(char, signed char, 1, 2, 1, 4)
GRIDSTRIDE_VECTORS(uchar, unsigned char, 1, 2, 1, 4)
GRIDSTRIDE_VECTORS(short, short, 2, 4, 2, 8)
GRIDSTRIDE_VECTORS(ushort, unsigned short, 2, 4, 2, 8)
GRIDSTRIDE_VECTORS(int, int, 4, 8, 4, 16)
GRIDSTRIDE_VECTOR_1(uint1, unsigned int, 4)
GRIDSTRIDE_VECTOR_2(uint2, unsigned int, 8)
GRIDSTRIDE_DEVICE uint3 make_uint3(unsigned int __x, unsigned int __y, unsigned int __z) { return uint3{__x, __y, __z}; }
GRIDSTRIDE_VECTOR_4(uint4, unsigned int, 16)
GRIDSTRIDE_VECTORS(long, long, 8, 16, 8, 16)
GRIDSTRIDE_VECTORS(ulong, unsigned long, 8, 16, 8, 16)
GRIDSTRIDE_VECTORS(longlong, long long, 8, 16, 8, 16)
GRIDSTRIDE_VECTORS(ulonglong, unsigned long long, 8, 16, 8, 16)
GRIDSTRIDE_VECTORS(float, float, 4, 8, 4, 16)
GRIDSTRIDE_VECTORS(double, double, 8, 16, 8, 16)

// CUDA 13 spells the alignment of four 64-bit components in the name.
#define GRIDSTRIDE_VECTORS_OF_ALIGNMENT(name, component) \
    GRIDSTRIDE_VECTOR_4(name##4_16a, component, 16) \
    GRIDSTRIDE_VECTOR_4(name##4_32a, component, 32)

GRIDSTRIDE_VECTORS_OF_ALIGNMENT(long, long)
GRIDSTRIDE_VECTORS_OF_ALIGNMENT(ulong, unsigned long)
GRIDSTRIDE_VECTORS_OF_ALIGNMENT(longlong, long long)
GRIDSTRIDE_VECTORS_OF_ALIGNMENT(ulonglong, unsigned long long)
GRIDSTRIDE_VECTORS_OF_ALIGNMENT(double, double)

#undef GRIDSTRIDE_VECTORS_OF_ALIGNMENT
#undef GRIDSTRIDE_VECTORS
#undef GRIDSTRIDE_VECTOR_4
#undef GRIDSTRIDE_VECTOR_3
#undef GRIDSTRIDE_VECTOR_2
#undef GRIDSTRIDE_VECTOR_1

#endif
