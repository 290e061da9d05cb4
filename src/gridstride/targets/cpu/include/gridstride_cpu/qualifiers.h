// CUDA's qualifiers and the macros a device compiler predefines. `__shared__` never reaches the compiler:
// the source pass turns its declarations into places of the block's arena.
#ifndef GRIDSTRIDE_CPU_QUALIFIERS_H
#define GRIDSTRIDE_CPU_QUALIFIERS_H

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __block_size__(...)
#define __maxnreg__(...)
#define __nv_pure__ __attribute__((pure))

#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __inline_hint__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#define __cudart_builtin__
#define __device_builtin__
#define CUDARTAPI

#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900
#endif
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 0

// Every function of the device headers: local to the kernel library and inlined, so that loops over
// threads can be vectorized across it.
#define GRIDSTRIDE_DEVICE static inline __attribute__((always_inline))

#endif
