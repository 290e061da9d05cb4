#ifndef GRIDSTRIDE_CUDA_STD_STRING_H
#define GRIDSTRIDE_CUDA_STD_STRING_H

#include <cstring>

#endif
