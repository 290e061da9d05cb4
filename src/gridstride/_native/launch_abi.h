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
 * Returns 0; -1 where nothing was launched and the readable pipeline shall do the call; or a code for
 * `Function.failure`. Called without the GIL, from any thread. */
typedef int (*gridstride_launch_routine)(void *context, const struct gridstride_configuration *configuration,
                                         const void *packed, unsigned long packed_size, unsigned long long stream);

/* The context of the CUDA target's launch routine. The functions are the driver's. */
struct gridstride_cuda_function {
    void *launch;                  /* cuLaunchKernel */
    void *launch_extended;         /* cuLaunchKernelEx, for cooperative launches */
    void *get_current_context;     /* cuCtxGetCurrent */
    void *context;                 /* of the device that the function is loaded on: a CUcontext */
    void *function;                /* a CUfunction */
    unsigned dynamic_shared_limit; /* bytes of dynamic shared memory that need no new attribute */
};

#endif
