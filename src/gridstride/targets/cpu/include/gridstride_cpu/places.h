// Lists of places, as of the lanes of a vector, that templates take apart.
#ifndef GRIDSTRIDE_CPU_PLACES_H
#define GRIDSTRIDE_CPU_PLACES_H

#include <gridstride_cpu/inlining.h>

namespace gridstride {

template <int... __k> struct places {};
template <int __count, int... __k> struct places_up_to : places_up_to<__count - 1, __count - 1, __k...> {};
template <int... __k> struct places_up_to<0, __k...> { typedef places<__k...> type; };

}

#endif
