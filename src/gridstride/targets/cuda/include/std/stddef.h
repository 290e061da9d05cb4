#ifndef GRIDSTRIDE_CUDA_STD_STDDEF_H
#define GRIDSTRIDE_CUDA_STD_STDDEF_H

#include <cstddef>

#endif
