#ifndef GRIDSTRIDE_CUDA_STD_MATH_H
#define GRIDSTRIDE_CUDA_STD_MATH_H

#include <cmath>

#endif
