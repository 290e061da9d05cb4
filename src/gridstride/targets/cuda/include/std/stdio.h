#ifndef GRIDSTRIDE_CUDA_STD_STDIO_H
#define GRIDSTRIDE_CUDA_STD_STDIO_H

#include <cstdio>

#endif
