#ifndef GRIDSTRIDE_STD_MATH_H
#define GRIDSTRIDE_STD_MATH_H

#include <cmath>

#endif
