#ifndef GRIDSTRIDE_STD_STDIO_H
#define GRIDSTRIDE_STD_STDIO_H

#include <cstdio>

#endif
