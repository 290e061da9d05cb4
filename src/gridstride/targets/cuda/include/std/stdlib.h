#ifndef GRIDSTRIDE_CUDA_STD_STDLIB_H
#define GRIDSTRIDE_CUDA_STD_STDLIB_H

#include <cstdlib>

#endif
