#ifndef GRIDSTRIDE_CUDA_STD_ASSERT_H
#define GRIDSTRIDE_CUDA_STD_ASSERT_H

#include <cassert>

#endif
