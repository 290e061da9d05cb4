#ifndef GRIDSTRIDE_STD_STDDEF_H
#define GRIDSTRIDE_STD_STDDEF_H

#include <cstddef>

#endif
