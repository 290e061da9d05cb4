#ifndef GRIDSTRIDE_CUDA_STD_STDINT_H
#define GRIDSTRIDE_CUDA_STD_STDINT_H

#include <cstdint>

#endif
