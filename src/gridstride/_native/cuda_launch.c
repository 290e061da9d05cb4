/* The CUDA target's launch routine. It is given the driver's functions, so nothing of CUDA is needed
 * to build it. */
#include "native.h"

typedef int (*get_current_context)(void **context);
typedef int (*launch_kernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared_mem, void *stream, void **parameters,
                             void **extra);

struct launch_attribute { /* CUlaunchAttribute */
    int number;
    int padding;
    union {
        char space[64];
        int cooperative;
    } value;
};

struct launch_configuration { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared_mem;
    void *stream;
    struct launch_attribute *attributes;
    unsigned attribute_count;
};

typedef int (*launch_kernel_extended)(const struct launch_configuration *configuration, void *function,
                                      void **parameters, void **extra);

enum { COOPERATIVE_FLAG = 1, LAUNCH_ATTRIBUTE_COOPERATIVE = 2, NOT_HERE = -1 };

/* How cuLaunchKernel is told that arguments come as one buffer: CU_LAUNCH_PARAM_*. */
#define PARAMETER_BUFFER ((void *)1)
#define PARAMETER_SIZE ((void *)2)
#define PARAMETER_END ((void *)0)

static int launch_cooperatively(const struct gridstride_cuda_function *function,
                                const struct gridstride_configuration *wanted, void *stream, void **extra)
{
    struct launch_attribute cooperative = {.number = LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    struct launch_configuration configuration = {
        {wanted->grid[0], wanted->grid[1], wanted->grid[2]},
        {wanted->block[0], wanted->block[1], wanted->block[2]},
        wanted->shared_mem,
        stream,
        &cooperative,
        1,
    };
    return ((launch_kernel_extended)function->launch_extended)(&configuration, function->function, NULL, extra);
}

int launch_cuda(void *context, const struct gridstride_configuration *wanted, const void *packed,
                unsigned long packed_size, unsigned long long stream)
{
    const struct gridstride_cuda_function *function = context;
    void *current = NULL;
    int code = ((get_current_context)function->get_current_context)(&current);
    if (code != 0 || current != function->context || wanted->shared_mem > function->dynamic_shared_limit)
        return NOT_HERE;
    size_t size = packed_size;
    void *extra[] = {PARAMETER_BUFFER, (void *)packed, PARAMETER_SIZE, &size, PARAMETER_END};
    void **arguments = size ? extra : NULL;
    void *handle = (void *)(uintptr_t)stream;
    if (wanted->flags & COOPERATIVE_FLAG)
        return launch_cooperatively(function, wanted, handle, arguments);
    return ((launch_kernel)function->launch)(function->function, wanted->grid[0], wanted->grid[1], wanted->grid[2],
                                             wanted->block[0], wanted->block[1], wanted->block[2], wanted->shared_mem,
                                             handle, NULL, arguments);
}
