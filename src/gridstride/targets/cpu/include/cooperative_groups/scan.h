// cooperative_groups::inclusive_scan and exclusive_scan: running folds in the order of ranks.
#ifndef GRIDSTRIDE_CPU_COOPERATIVE_GROUPS_SCAN_H
#define GRIDSTRIDE_CPU_COOPERATIVE_GROUPS_SCAN_H

#include <gridstride_cpu/group_operations.h>

namespace cooperative_groups {

template <class __t, class __function = plus<__t>>
__t inclusive_scan(const gridstride_lane_group& __group, __t __value, __function __fold = __function(), GRIDSTRIDE_SITE) {
    gridstride_group_values<__t> __values(__group, __value, __file, __line);
    __values.accumulate(__fold);
    return __values[__group.thread_rank()];
}

// The first thread gets a value made without arguments: zero for numbers.
template <class __t, class __function = plus<__t>>
__t exclusive_scan(const gridstride_lane_group& __group, __t __value, __function __fold = __function(), GRIDSTRIDE_SITE) {
    gridstride_group_values<__t> __values(__group, __value, __file, __line);
    __values.accumulate(__fold);
    return __group.thread_rank() == 0 ? __t{} : __values[__group.thread_rank() - 1];
}

template <unsigned __size, class __t, class __function = plus<__t>>
__t inclusive_scan(const gridstride_large_tile<__size>& __tile, __t __value, __function __fold = __function(), GRIDSTRIDE_SITE) {
    return gridstride_fold_large<false>(__tile, __value, __fold, false, __file, __line);
}
template <unsigned __size, class __t, class __function = plus<__t>>
__t exclusive_scan(const gridstride_large_tile<__size>& __tile, __t __value, __function __fold = __function(), GRIDSTRIDE_SITE) {
    return gridstride_fold_large<false>(__tile, __value, __fold, true, __file, __line);
}

}

#endif
