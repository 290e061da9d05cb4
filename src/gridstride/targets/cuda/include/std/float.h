#ifndef GRIDSTRIDE_CUDA_STD_FLOAT_H
#define GRIDSTRIDE_CUDA_STD_FLOAT_H

#include <cfloat>

#endif
