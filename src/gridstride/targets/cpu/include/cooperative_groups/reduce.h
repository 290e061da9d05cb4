// cooperative_groups::reduce: every thread of the group gets the fold of all values.
#ifndef GRIDSTRIDE_CPU_COOPERATIVE_GROUPS_REDUCE_H
#define GRIDSTRIDE_CPU_COOPERATIVE_GROUPS_REDUCE_H

#include <gridstride_cpu/group_operations.h>

namespace cooperative_groups {

template <class __t, class __function>
__t reduce(const gridstride_lane_group& __group, __t __value, __function __fold, GRIDSTRIDE_SITE) {
    gridstride_group_values<__t> __values(__group, __value, __file, __line);
    const unsigned __count = __values.__count;
    if ((__count & (__count - 1)) == 0) return __values.total(__fold);
    __values.accumulate(__fold);
    return __values[__count - 1];
}

template <unsigned __size, class __t, class __function>
__t reduce(const gridstride_large_tile<__size>& __tile, __t __value, __function __fold, GRIDSTRIDE_SITE) {
    return gridstride_fold_large<true>(__tile, __value, __fold, false, __file, __line);
}

}

#endif
