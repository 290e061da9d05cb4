// The types of threadIdx, blockIdx, blockDim and gridDim.
#ifndef GRIDSTRIDE_CPU_DIM3_H
#define GRIDSTRIDE_CPU_DIM3_H

struct uint3 {
    unsigned int x, y, z;
};

struct dim3 {
    unsigned int x, y, z;

    constexpr dim3(unsigned int __x = 1, unsigned int __y = 1, unsigned int __z = 1) : x(__x), y(__y), z(__z) {}
    constexpr dim3(uint3 __v) : x(__v.x), y(__v.y), z(__v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

#endif
