#ifndef GRIDSTRIDE_STD_STDLIB_H
#define GRIDSTRIDE_STD_STDLIB_H

#include <cstdlib>

#endif
