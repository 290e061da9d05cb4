// What memory a pointer leads to, and pointers as numbers within a space.
//
// Shared memory is the block's arena, local memory the stack of the thread's fiber; all the rest is global. Numbers
// of shared memory count from the arena's start, so that they fit in 32 bits, as on the device.
#ifndef GRIDSTRIDE_CPU_ADDRESS_SPACES_H
#define GRIDSTRIDE_CPU_ADDRESS_SPACES_H

#include <gridstride/fixed_width.h>

#include "execution.h"

GRIDSTRIDE_INLINE unsigned __isShared(const void* __pointer) {
    const gridstride_block* __block = gridstride_current_block();
    return static_cast<const char*>(__pointer) >= __block->static_shared && static_cast<const char*>(__pointer) < __block->shared_end;
}
GRIDSTRIDE_INLINE unsigned __isCtaShared(const void* __pointer) { return __isShared(__pointer); }
// Everything on the stack lies between the place of this frame and the stack's end, less than its size away. So may shared memory.
GRIDSTRIDE_INLINE unsigned __isLocal(const void* __pointer) {
    const char* __frame = static_cast<const char*>(__builtin_frame_address(0));
    const char* __address = static_cast<const char*>(__pointer);
    return __address > __frame - (256 << 10) && __address < __frame + (256 << 10) && !__isShared(__pointer);
}
GRIDSTRIDE_INLINE unsigned __isGlobal(const void* __pointer) { return !__isShared(__pointer) && !__isLocal(__pointer); }

GRIDSTRIDE_INLINE size_t __cvta_generic_to_shared(const void* __pointer) {
    return static_cast<size_t>(static_cast<const char*>(__pointer) - gridstride_current_block()->static_shared);
}
GRIDSTRIDE_INLINE void* __cvta_shared_to_generic(size_t __number) { return gridstride_current_block()->static_shared + __number; }

#define GRIDSTRIDE_SPACE(space) \
    GRIDSTRIDE_INLINE size_t __cvta_generic_to_##space(const void* __pointer) { return reinterpret_cast<size_t>(__pointer); } \
    GRIDSTRIDE_INLINE void* __cvta_##space##_to_generic(size_t __number) { return reinterpret_cast<void*>(__number); }
GRIDSTRIDE_SPACE(global)
GRIDSTRIDE_SPACE(local)
GRIDSTRIDE_SPACE(constant)
GRIDSTRIDE_SPACE(grid_constant)
#undef GRIDSTRIDE_SPACE

#endif
