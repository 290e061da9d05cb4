#ifndef GRIDSTRIDE_STD_FLOAT_H
#define GRIDSTRIDE_STD_FLOAT_H

#include <cfloat>

#endif
