// cooperative_groups::memcpy_async: the threads of a group copy together, at once; `wait` lets all see it.
#ifndef GRIDSTRIDE_CPU_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define GRIDSTRIDE_CPU_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#include <cooperative_groups.h>

namespace cooperative_groups {

template <class __group>
void gridstride_copy_together(const __group& __g, void* __to, const void* __from, size_t __bytes) {
    const size_t __part = 16, __step = __g.num_threads() * __part;
    for (size_t __start = __g.thread_rank() * __part; __start < __bytes; __start += __step) {
        const size_t __left = __bytes - __start;
        __builtin_memcpy(static_cast<char*>(__to) + __start, static_cast<const char*>(__from) + __start, __left < __part ? __left : __part);
    }
}

// A number of bytes.
template <class __group, class __element, class __size>
void memcpy_async(const __group& __g, __element* __to, const __element* __from, const __size& __bytes) {
    gridstride_copy_together(__g, __to, __from, static_cast<size_t>(__bytes));
}
// Numbers of elements at the destination and at the source; the smaller one counts.
template <class __group, class __element, class __there, class __here>
void memcpy_async(const __group& __g, __element* __to, const __there& __room, const __element* __from, const __here& __count) {
    const size_t __most = static_cast<size_t>(__room), __wanted = static_cast<size_t>(__count);
    gridstride_copy_together(__g, __to, __from, (__wanted < __most ? __wanted : __most) * sizeof(__element));
}

template <class __group> void wait(const __group& __g, GRIDSTRIDE_SITE) { __g.sync(__file, __line); }
template <unsigned __stage, class __group> void wait_prior(const __group& __g, GRIDSTRIDE_SITE) { __g.sync(__file, __line); }

}

#endif
