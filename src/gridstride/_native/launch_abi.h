/* How a function is launched from C: shared by the compiled fast path and the targets' runtimes.
 * Plain C, no headers, so that every compiler of every target can read it. */
#ifndef GRIDSTRIDE_LAUNCH_ABI_H
#define GRIDSTRIDE_LAUNCH_ABI_H

struct gridstride_configuration {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_mem; /* dynamic, bytes */
    unsigned flags;      /* 1: cooperative */
};

/* Launch `context` (the target's own record of a function). `packed` holds the argument bytes at the
 * parameters' offsets and is copied before the routine returns where the launch outlives it.
 * Returns 0 or a code for `Function.failure`. Called without the GIL, from any thread. */
typedef int (*gridstride_launch_routine)(void *context, const struct gridstride_configuration *configuration,
                                         const void *packed, unsigned long packed_size, unsigned long long stream);

/* The context of the CUDA target's launch routine; the pointers are functions of libcuda. A launch with
 * more dynamic shared memory than `dynamic_shared_limit` first calls
 * set_attribute(function, 8 (MAX_DYNAMIC_SHARED_SIZE_BYTES), shared_mem) and then raises the limit to it. */
struct gridstride_cuda_function {
    void *launch;          /* cuLaunchKernel */
    void *launch_extended; /* cuLaunchKernelEx, for cooperative launches */
    void *set_attribute;   /* cuFuncSetAttribute */
    void *function;        /* CUfunction */
    unsigned dynamic_shared_limit;
};

#endif
