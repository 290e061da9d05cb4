#ifndef GRIDSTRIDE_STD_ASSERT_H
#define GRIDSTRIDE_STD_ASSERT_H

#include <cassert>

#endif
