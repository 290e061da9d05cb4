#ifndef GRIDSTRIDE_STD_LIMITS_H
#define GRIDSTRIDE_STD_LIMITS_H

#include <climits>

#endif
