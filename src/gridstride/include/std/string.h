#ifndef GRIDSTRIDE_STD_STRING_H
#define GRIDSTRIDE_STD_STRING_H

#include <cstring>

#endif
