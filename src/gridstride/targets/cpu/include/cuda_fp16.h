// Half precision: __half and __half2 with their operators, conversions and intrinsics.
#ifndef GRIDSTRIDE_CPU_CUDA_FP16_H
#define GRIDSTRIDE_CPU_CUDA_FP16_H

#include <gridstride_cpu/half_operations.h>
#include <gridstride_cpu/warp.h>

#define GRIDSTRIDE_HALF __half
#define GRIDSTRIDE_HALF_RAW __half_raw
#define GRIDSTRIDE_HALF2 __half2
#define GRIDSTRIDE_HALF2_RAW __half2_raw
#define GRIDSTRIDE_OTHER_HALF __nv_bfloat16
#define GRIDSTRIDE_HALF_WORD half
#define GRIDSTRIDE_HALF_FORMAT gridstride_binary16
#include <gridstride_cpu/half_template.h>

typedef __half half;
typedef __half nv_half;
typedef __half __nv_half;
typedef __half_raw __nv_half_raw;
typedef __half2 half2;
typedef __half2 nv_half2;
typedef __half2 __nv_half2;
typedef __half2_raw __nv_half2_raw;

#endif
