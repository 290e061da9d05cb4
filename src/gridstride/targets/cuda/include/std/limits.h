#ifndef GRIDSTRIDE_CUDA_STD_LIMITS_H
#define GRIDSTRIDE_CUDA_STD_LIMITS_H

#include <climits>

#endif
