#ifndef GRIDSTRIDE_CUDA_NAME_CUDA_RUNTIME_H
#define GRIDSTRIDE_CUDA_NAME_CUDA_RUNTIME_H

// What kernels use of it is known to NVRTC; its host functions have no place in a kernel.

#endif
