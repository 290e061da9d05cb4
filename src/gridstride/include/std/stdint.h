#ifndef GRIDSTRIDE_STD_STDINT_H
#define GRIDSTRIDE_STD_STDINT_H

#include <cstdint>

#endif
