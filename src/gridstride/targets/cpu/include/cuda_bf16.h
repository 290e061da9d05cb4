// bfloat16, a float cut to its upper half: __nv_bfloat16 and __nv_bfloat162 with operators and intrinsics.
#ifndef GRIDSTRIDE_CPU_CUDA_BF16_H
#define GRIDSTRIDE_CPU_CUDA_BF16_H

#include <cuda_fp16.h>

#define GRIDSTRIDE_HALF __nv_bfloat16
#define GRIDSTRIDE_HALF_RAW __nv_bfloat16_raw
#define GRIDSTRIDE_HALF2 __nv_bfloat162
#define GRIDSTRIDE_HALF2_RAW __nv_bfloat162_raw
#define GRIDSTRIDE_OTHER_HALF __half
#define GRIDSTRIDE_HALF_WORD bfloat16
#define GRIDSTRIDE_HALF_FORMAT gridstride_brain16
#include <gridstride_cpu/half_template.h>

inline __half::__half(const __nv_bfloat16 __value) : __half(static_cast<float>(__value)) {}
inline __nv_bfloat16::__nv_bfloat16(const __half __value) : __nv_bfloat16(static_cast<float>(__value)) {}

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat16_raw nv_bfloat16_raw;
typedef __nv_bfloat162 nv_bfloat162;
typedef __nv_bfloat162_raw nv_bfloat162_raw;

#endif
