// The driver's own share of the calls that runtime_objects.py times: each function makes the driver's calls of one
// row `count` times and returns the first error code. The driver's functions are found by name, so no header of CUDA
// is needed.
#include <dlfcn.h>
#include <string.h>

template <class... Values> static int call(const char *name, Values... values) {
    static void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    return ((int (*)(Values...))dlsym(driver, name))(values...);
}

template <class... Values> static auto find(const char *name) -> int (*)(Values...) {
    return (int (*)(Values...))dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}

#define REPEAT(count, ...)                                                                                             \
    for (int k = 0; k < count; ++k) {                                                                                  \
        int code = __VA_ARGS__;                                                                                        \
        if (code) return code;                                                                                         \
    }                                                                                                                  \
    return 0

struct PoolProperties { // CUmemPoolProps
    int allocation_type, handle_types, location_type, location;
    void *security_attributes;
    unsigned char reserved[64];
};

extern "C" {

int current_context(int count) {
    void *context;
    auto get = find<void **>("cuCtxGetCurrent");
    REPEAT(count, get(&context));
}

int switch_context(int count) {
    void *context;
    auto get = find<void **>("cuCtxGetCurrent");
    auto set = find<void *>("cuCtxSetCurrent");
    REPEAT(count, get(&context) || set(context));
}

int create_event(int count) {
    void *event;
    auto create = find<void **, unsigned>("cuEventCreate");
    auto destroy = find<void *>("cuEventDestroy_v2");
    REPEAT(count, create(&event, 0) || destroy(event));
}

int record_event(int count, void *event, void *stream) {
    auto record = find<void *, void *>("cuEventRecord");
    REPEAT(count, record(event, stream));
}

int wait_event(int count, void *event, void *stream) {
    auto wait = find<void *, void *, unsigned>("cuStreamWaitEvent");
    REPEAT(count, wait(stream, event, 0));
}

int allocate_and_free(int count, void *pool, void *stream, size_t size) {
    void *address;
    auto allocate = find<void **, size_t, void *, void *>("cuMemAllocFromPoolAsync");
    auto free = find<void *, void *>("cuMemFreeAsync");
    REPEAT(count, allocate(&address, size, pool, stream) || free(address, stream));
}

int launch_graph(int count, void *graph, void *stream) {
    auto launch = find<void *, void *>("cuGraphLaunch");
    REPEAT(count, launch(graph, stream));
}

// The same from a thread of Python that gives its lock up for each call: to be called with the lock.
int launch_graph_without_lock(int count, void *graph, void *stream) {
    auto launch = find<void *, void *>("cuGraphLaunch");
    auto give_up = (void *(*)())dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    auto take = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
    REPEAT(count, [&] {
        void *thread = give_up();
        int code = launch(graph, stream);
        take(thread);
        return code;
    }());
}

// Make a pool of device 0 that keeps what is given back.
int create_pool(void **pool) {
    PoolProperties properties;
    memset(&properties, 0, sizeof properties);
    properties.allocation_type = properties.location_type = 1; // pinned, on a device
    unsigned long long everything = ~0ull;
    int code = call<void **, PoolProperties *>("cuMemPoolCreate", pool, &properties);
    return code ? code : call<void *, int, void *>("cuMemPoolSetAttribute", *pool, 4, &everything);
}
}
