// The stacks of a block's fibers: mapped when first needed, each above a guard area.
#ifndef GRIDSTRIDE_RUNTIME_STACKS_H
#define GRIDSTRIDE_RUNTIME_STACKS_H

#include "system.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

namespace gridstride {

class Stacks {
public:
    static constexpr unsigned long SIZE = 192 << 10, GUARD = 64 << 10, STRIDE = SIZE + GUARD;

    // Where a fiber's stack begins (it grows downwards); null if there is no memory.
    char* top(unsigned fiber) {
        char*& chunk = chunks[fiber / PER_CHUNK];
        if (!chunk) chunk = map_chunk();
        if (!chunk) return nullptr;
        // Fibers that run in turn must not all use the same sets of the caches.
        return chunk + (fiber % PER_CHUNK + 1) * STRIDE - fiber * 192 % (16 << 10);
    }

    // Whether a faulting address means that a fiber used up its stack.
    bool is_overflow(const char* address) const {
        for (const char* chunk : chunks)
            if (chunk && address >= chunk && address < chunk + CHUNK)
                return static_cast<unsigned long>(address - chunk) % STRIDE < GUARD;
        return false;
    }

    void release() {
        for (char*& chunk : chunks) {
            unmap_pages(chunk, CHUNK);
            chunk = nullptr;
        }
    }

private:
    static constexpr unsigned PER_CHUNK = 32;
    static constexpr unsigned long CHUNK = PER_CHUNK * STRIDE;
    // Kernels before 6.13 need a mapping of its own for a guard area; a process may have 65530 of them.
    static constexpr unsigned MAX_PROTECTED = 8192;

    char* chunks[32];

    static char* map_chunk() {
        char* chunk = static_cast<char*>(map_pages(CHUNK));
        if (!chunk) return nullptr;
        madvise(chunk, CHUNK, MADV_NOHUGEPAGE);
        for (unsigned i = 0; i < PER_CHUNK; ++i) guard(chunk + i * STRIDE);
        return chunk;
    }

    static void guard(char* area) {
        static unsigned protected_areas = 0;
        constexpr int NO_ADVICE = 9999;  // accepted by emulators that ignore advice
        if (madvise(area, GUARD, MADV_GUARD_INSTALL) == 0 && madvise(area, GUARD, NO_ADVICE) != 0) return;
        if (__atomic_fetch_add(&protected_areas, 1u, __ATOMIC_RELAXED) < MAX_PROTECTED) mprotect(area, GUARD, PROT_NONE);
    }
};

}  // namespace gridstride
#endif
