#ifndef GRIDSTRIDE_THRUST_COMPLEX_H
#define GRIDSTRIDE_THRUST_COMPLEX_H

#include <gridstride/complex.h>

#endif
