#ifndef GRIDSTRIDE_CUDA_NAME_CUDA_H
#define GRIDSTRIDE_CUDA_NAME_CUDA_H

// What kernels use of it is known to NVRTC; its host functions have no place in a kernel.

#endif
