/* A libcuda that runs nothing and remembers everything: the tests' stand-in for the NVIDIA driver.
 *
 * Memory is host memory and copies are real. A kernel is "found" where its name stands in the loaded
 * image. Each call is one line of JSON in a buffer; `stub_fail` makes a call fail. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, NOT_FOUND = 500 };
enum { DEVICES = 2, STATIC_SHARED = 1, MAX_DYNAMIC = 8, OPT_IN_BYTES = 232448, FREE_SHARED = 49152 };

typedef int Result;
typedef unsigned long long Address;

typedef struct { int device; } Context;
/* What a capture records: copies and fills are done again by every launch of the graph, the rest is counted. */
typedef struct { char kind; Address to, from; size_t size; void (*function)(void *); } Node;
typedef struct { Node *nodes; int count, status; unsigned long long number; void *last; } Graph;
typedef struct Stream { Graph *capture; unsigned flags; struct Stream *next; } Stream;
typedef struct { Graph *capture; } Event;
typedef struct { char *image; size_t size; Address variable; } Module;
typedef struct { char name[256]; Context *context; int max_dynamic; } Function;
typedef struct { unsigned grid[3], block[3], shared; void *stream; struct Attribute *attributes; unsigned count; } Extended;
struct Attribute { unsigned id, padding; unsigned value[16]; };

typedef struct { unsigned long long used, reserved, threshold; } Pool;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *lines;
static size_t length, capacity;
static char failing[64];
static int failure, calls_before_failure;
static int static_shared;
static Context contexts[DEVICES] = {{0}, {1}};
static Pool device_pools[DEVICES];
static _Thread_local Context *current;

/* ---- what tests call ---- */

void stub_clear(void) {
    pthread_mutex_lock(&lock);
    length = 0;
    failing[0] = 0;
    static_shared = 0;
    for (int k = 0; k < DEVICES; ++k) device_pools[k].reserved = device_pools[k].used;
    pthread_mutex_unlock(&lock);
}

const char *stub_lines(void) { return length ? lines : ""; }

void stub_fail(const char *function, int code, int successes_before) {
    snprintf(failing, sizeof failing, "%s", function);
    failure = code;
    calls_before_failure = successes_before;
}

void stub_set_static_shared(int bytes) { static_shared = bytes; }

/* ---- recording ---- */

static void append(const char *format, va_list arguments) {
    char line[70000];
    int size = vsnprintf(line, sizeof line, format, arguments);
    if (size > (int)sizeof line - 1) size = sizeof line - 1;
    if (length + size + 1 > capacity) {
        capacity = 2 * (length + size + 1);
        lines = realloc(lines, capacity);
    }
    memcpy(lines + length, line, size + 1);
    length += size;
}

static void write_text(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(format, arguments);
    va_end(arguments);
}

/* Record a call with its arguments as JSON members; return the code it shall answer with. */
static Result record(const char *function, const char *members, ...) {
    pthread_mutex_lock(&lock);
    write_text("{\"call\": \"%s\", \"device\": %d", function, current ? current->device : -1);
    if (*members) {
        va_list arguments;
        va_start(arguments, members);
        write_text(", ");
        append(members, arguments);
        va_end(arguments);
    }
    write_text("}\n");
    Result code = SUCCESS;
    if (!strcmp(function, failing) && calls_before_failure-- <= 0) {
        code = failure;
        failing[0] = 0;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

#define CALL(...)                                                                                           \
    do {                                                                                                    \
        Result code_ = record(__func__, __VA_ARGS__);                                                       \
        if (code_) return code_;                                                                            \
    } while (0)
/* Comes first: what is refused for want of a context is called once more when there is one. */
#define NEED_CONTEXT                                                                                        \
    if (!current) return INVALID_CONTEXT

/* ---- the driver ---- */

Result cuGetErrorName(Result code, const char **name) {
    switch (code) {
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case INVALID_DEVICE: *name = "CUDA_ERROR_INVALID_DEVICE"; break;
    case INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
    case 401: *name = "CUDA_ERROR_ILLEGAL_STATE"; break;
    case 900: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; break;
    case 901: *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"; break;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    default: *name = 0; return INVALID_VALUE;
    }
    return SUCCESS;
}

Result cuGetErrorString(Result code, const char **text) {
    *text = code == 700 ? "an illegal memory access was encountered" : "stub error";
    return SUCCESS;
}

Result cuInit(unsigned flags) { CALL("\"flags\": %u", flags); return SUCCESS; }
Result cuDriverGetVersion(int *version) { CALL(""); *version = 13000; return SUCCESS; }
Result cuDeviceGetCount(int *count) { CALL(""); *count = DEVICES; return SUCCESS; }

Result cuDeviceGet(int *device, int ordinal) {
    CALL("\"ordinal\": %d", ordinal);
    if (ordinal < 0 || ordinal >= DEVICES) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

Result cuDeviceGetName(char *name, int size, int device) {
    CALL("\"of\": %d", device);
    snprintf(name, size, "Stub %d", device);
    return SUCCESS;
}

Result cuDeviceTotalMem_v2(size_t *bytes, int device) { CALL("\"of\": %d", device); *bytes = 1ull << 30; return SUCCESS; }

Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    if (attribute > 140) return INVALID_VALUE; /* newer than this driver */
    switch (attribute) {
    case 1: *value = 1024; break;
    case 2: case 3: *value = 1024; break;
    case 4: *value = 64; break;
    case 5: *value = 2147483647; break;
    case 6: case 7: *value = 65535; break;
    case 8: *value = FREE_SHARED; break;
    case 10: *value = 32; break;
    case 16: *value = 132; break;
    case 75: *value = 9; break;
    case 76: *value = 0; break;
    case 97: *value = OPT_IN_BYTES; break;
    default: *value = attribute; break;
    }
    return SUCCESS;
}

Result cuDevicePrimaryCtxRetain(void **context, int device) {
    CALL("\"of\": %d", device);
    *context = &contexts[device];
    return SUCCESS;
}

Result cuCtxGetCurrent(void **context) { *context = current; return SUCCESS; }
Result cuCtxSetCurrent(void *context) {
    CALL("\"to\": %d", context ? ((Context *)context)->device : -1);
    current = context;
    return SUCCESS;
}
Result cuCtxGetDevice(int *device) { NEED_CONTEXT; *device = current->device; return SUCCESS; }
Result cuCtxSynchronize(void) { NEED_CONTEXT; CALL(""); return SUCCESS; }

Result cuMemAlloc_v2(Address *address, size_t size) {
    NEED_CONTEXT;
    CALL("\"size\": %zu", size);
    *address = (Address)calloc(1, size);
    return SUCCESS;
}
Result cuMemFree_v2(Address address) { NEED_CONTEXT; CALL("\"address\": %llu", address); free((void *)address); return SUCCESS; }
Result cuMemGetInfo_v2(size_t *available, size_t *total) {
    NEED_CONTEXT;
    CALL("");
    *available = 1ull << 29;
    *total = 1ull << 30;
    return SUCCESS;
}

Result cuMemAllocManaged(Address *address, size_t size, unsigned flags) {
    NEED_CONTEXT;
    CALL("\"size\": %zu, \"flags\": %u", size, flags);
    *address = (Address)calloc(1, size);
    return SUCCESS;
}
Result cuMemHostAlloc(void **address, size_t size, unsigned flags) {
    NEED_CONTEXT;
    CALL("\"size\": %zu, \"flags\": %u", size, flags);
    *address = calloc(1, size);
    return SUCCESS;
}
Result cuMemFreeHost(void *address) { NEED_CONTEXT; CALL("\"address\": %llu", (Address)address); free(address); return SUCCESS; }

/* ---- pools ---- */

enum { MOST_PIECES = 64, RESERVED_NOW = 5, USED_NOW = 7 };
static struct { void *address; size_t size; Pool *pool; } pieces[MOST_PIECES];

Result cuMemPoolCreate(Pool **pool, const int properties[6]) {
    CALL("\"type\": %d, \"location\": [%d, %d]", properties[0], properties[2], properties[3]);
    *pool = calloc(1, sizeof **pool);
    return SUCCESS;
}
Result cuMemPoolDestroy(Pool *pool) { CALL("\"pool\": %llu", (Address)pool); return SUCCESS; }
Result cuDeviceGetMemPool(Pool **pool, int device) { *pool = &device_pools[device]; return SUCCESS; }
Result cuMemPoolSetAttribute(Pool *pool, int attribute, unsigned long long *value) {
    CALL("\"attribute\": %d, \"value\": %llu", attribute, *value);
    pool->threshold = *value;
    return SUCCESS;
}
Result cuMemPoolGetAttribute(Pool *pool, int attribute, unsigned long long *value) {
    CALL("\"attribute\": %d", attribute);
    *value = attribute == RESERVED_NOW ? pool->reserved : attribute == USED_NOW ? pool->used : 0;
    return SUCCESS;
}
Result cuMemPoolTrimTo(Pool *pool, size_t keep) {
    CALL("\"keep\": %zu", keep);
    unsigned long long least = pool->used > keep ? pool->used : keep;
    if (pool->reserved > least) pool->reserved = least;
    return SUCCESS;
}
Result cuMemAllocFromPoolAsync(Address *address, size_t size, Pool *pool, void *stream) {
    NEED_CONTEXT;
    CALL("\"size\": %zu, \"pool\": %llu, \"stream\": %llu", size, (Address)pool, (Address)stream);
    for (int k = 0; k < MOST_PIECES; ++k)
        if (!pieces[k].address) {
            pieces[k].address = calloc(1, size);
            pieces[k].size = size;
            pieces[k].pool = pool;
            pool->used += size;
            if (pool->reserved < pool->used) pool->reserved = pool->used;
            *address = (Address)pieces[k].address;
            return SUCCESS;
        }
    return OUT_OF_MEMORY;
}
Result cuMemAllocAsync(Address *address, size_t size, void *stream) {
    NEED_CONTEXT;
    return cuMemAllocFromPoolAsync(address, size, &device_pools[current->device], stream);
}
Result cuMemFreeAsync(Address address, void *stream) {
    NEED_CONTEXT;
    CALL("\"address\": %llu, \"stream\": %llu", address, (Address)stream);
    for (int k = 0; k < MOST_PIECES; ++k)
        if (pieces[k].address == (void *)address) {
            pieces[k].pool->used -= pieces[k].size;
            free(pieces[k].address);
            pieces[k].address = 0;
            return SUCCESS;
        }
    return INVALID_VALUE;
}

/* ---- capture ---- */

static Stream *streams;

/* The stream behind a handle; 0 for the default streams and for those that tests made up. */
static Stream *find_stream(void *handle) {
    for (Stream *stream = streams; stream; stream = stream->next)
        if (stream == handle) return stream;
    return 0;
}

enum { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED };

static Graph *capture_of(void *handle) {
    Stream *stream = find_stream(handle);
    return stream ? stream->capture : 0;
}

static void run_node(const Node *node) {
    if (node->kind == 'c') memmove((void *)node->to, (void *)node->from, node->size);
    if (node->kind == 'f') memset((void *)node->to, (int)node->from, node->size);
    if (node->kind == 'h') node->function((void *)node->to);
}

static Result issue(void *stream, Node node) {
    Graph *graph = capture_of(stream);
    if (!graph) {
        run_node(&node);
        return SUCCESS;
    }
    graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof node);
    graph->nodes[graph->count++] = node;
    return SUCCESS;
}

static Result refuse_capture(void *stream) {
    Graph *graph = capture_of(stream);
    if (!graph) return SUCCESS;
    graph->status = CAPTURE_INVALIDATED;
    return 900;
}

Result cuThreadExchangeStreamCaptureMode(int *mode) {
    static _Thread_local int own;
    CALL("\"mode\": %d", *mode);
    int previous = own;
    own = *mode;
    *mode = previous;
    return SUCCESS;
}

Result cuStreamBeginCapture_v2(Stream *stream, int mode) {
    static unsigned long long captures;
    CALL("\"stream\": %llu, \"mode\": %d", (Address)stream, mode);
    if (!find_stream(stream)) return 900;
    if (stream->capture) return 401;
    stream->capture = calloc(1, sizeof *stream->capture);
    stream->capture->status = CAPTURE_ACTIVE;
    stream->capture->number = ++captures;
    return SUCCESS;
}

Result cuStreamEndCapture(Stream *stream, Graph **graph) {
    CALL("\"stream\": %llu", (Address)stream);
    Graph *ended = capture_of(stream);
    if (!ended) return 401;
    *graph = ended->status == CAPTURE_ACTIVE ? ended : 0;
    stream->capture = 0;
    ended->status = CAPTURE_NONE;
    return *graph ? SUCCESS : 901;
}

Result cuStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *number, void **graph, void **nodes,
                                 size_t *count) {
    Graph *capture = capture_of(stream);
    *status = capture ? capture->status : CAPTURE_NONE;
    if (*status != CAPTURE_ACTIVE) return SUCCESS;
    *number = capture->number;
    if (graph) *graph = capture;
    if (nodes) *nodes = &capture->last;
    if (count) *count = capture->last != 0;
    return SUCCESS;
}

Result cuGraphAddChildGraphNode(void **node, Graph *graph, void **dependencies, size_t count, Graph *child) {
    CALL("\"graph\": %llu, \"dependencies\": %zu, \"child\": %llu", (Address)graph, count, (Address)child);
    if (count && dependencies[0] != graph->last) return INVALID_VALUE;
    graph->nodes = realloc(graph->nodes, (graph->count + child->count) * sizeof *graph->nodes);
    memcpy(graph->nodes + graph->count, child->nodes, child->count * sizeof *graph->nodes);
    graph->count += child->count;
    *node = malloc(1);
    return SUCCESS;
}

Result cuStreamUpdateCaptureDependencies(void *stream, void **nodes, size_t count, unsigned flags) {
    CALL("\"stream\": %llu, \"count\": %zu, \"flags\": %u", (Address)stream, count, flags);
    if (!capture_of(stream)) return 401;
    capture_of(stream)->last = nodes[0];
    return SUCCESS;
}

Result cuLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
    CALL("\"stream\": %llu", (Address)stream);
    return issue(stream, (Node){'h', (Address)data, 0, 0, function});
}

Result cuGraphInstantiateWithFlags(Graph **executable, Graph *graph, unsigned long long flags) {
    CALL("\"graph\": %llu, \"flags\": %llu", (Address)graph, flags);
    *executable = malloc(sizeof **executable);
    **executable = *graph;
    return SUCCESS;
}
Result cuGraphUpload(Graph *executable, void *stream) {
    CALL("\"executable\": %llu, \"stream\": %llu", (Address)executable, (Address)stream);
    return SUCCESS;
}
Result cuGraphLaunch(Graph *executable, void *stream) {
    CALL("\"executable\": %llu, \"stream\": %llu", (Address)executable, (Address)stream);
    Result refused = refuse_capture(stream);
    for (int index = 0; !refused && index < executable->count; index++) run_node(&executable->nodes[index]);
    return refused;
}
Result cuGraphDebugDotPrint(Graph *graph, const char *path, unsigned flags) {
    CALL("\"flags\": %u", flags);
    FILE *file = fopen(path, "w");
    if (!file) return INVALID_VALUE;
    fprintf(file, "digraph stub { /* %d nodes */ }\n", graph->count);
    fclose(file);
    return SUCCESS;
}
Result cuGraphDestroy(Graph *graph) { CALL("\"graph\": %llu", (Address)graph); return SUCCESS; }
Result cuGraphExecDestroy(Graph *executable) { CALL("\"executable\": %llu", (Address)executable); free(executable); return SUCCESS; }

/* ---- between devices and processes ---- */

Result cuMemcpyPeer(Address to, Context *to_context, Address from, Context *from_context, size_t size) {
    CALL("\"to\": %d, \"from\": %d, \"size\": %zu", to_context->device, from_context->device, size);
    memmove((void *)to, (void *)from, size);
    return SUCCESS;
}
Result cuMemcpyPeerAsync(Address to, Context *to_context, Address from, Context *from_context, size_t size, void *stream) {
    CALL("\"to\": %d, \"from\": %d, \"size\": %zu, \"stream\": %llu", to_context->device, from_context->device, size,
         (Address)stream);
    return issue(stream, (Node){'c', to, from, size, 0});
}

typedef struct { Address content[8]; } IpcHandle;

Result cuIpcGetMemHandle(IpcHandle *handle, Address address) {
    CALL("\"address\": %llu", address);
    *handle = (IpcHandle){{0, address}};
    return SUCCESS;
}
Result cuIpcOpenMemHandle_v2(Address *address, IpcHandle handle, unsigned flags) {
    CALL("\"flags\": %u", flags);
    *address = handle.content[1];
    return SUCCESS;
}
Result cuIpcCloseMemHandle(Address address) { CALL("\"address\": %llu", address); return SUCCESS; }
Result cuIpcGetEventHandle(IpcHandle *handle, void *event) {
    CALL("\"event\": %llu", (Address)event);
    *handle = (IpcHandle){{0, (Address)event}};
    return SUCCESS;
}
Result cuIpcOpenEventHandle(void **event, IpcHandle handle) {
    (void)handle;
    CALL("");
    *event = calloc(1, sizeof(Event));
    return SUCCESS;
}

Result cuProfilerStart(void) { CALL(""); return SUCCESS; }
Result cuProfilerStop(void) { CALL(""); return SUCCESS; }

/* ---- copies, streams, events ---- */

#define COPY(name)                                                                                          \
    Result name(Address to, Address from, size_t size) {                                                    \
        NEED_CONTEXT;                                                                                       \
        CALL("\"to\": %llu, \"from\": %llu, \"size\": %zu", to, from, size);                                \
        memmove((void *)to, (void *)from, size);                                                            \
        return SUCCESS;                                                                                     \
    }
#define COPY_ASYNC(name)                                                                                    \
    Result name(Address to, Address from, size_t size, void *stream) {                                      \
        NEED_CONTEXT;                                                                                       \
        CALL("\"to\": %llu, \"from\": %llu, \"size\": %zu, \"stream\": %llu", to, from, size, (Address)stream); \
        return issue(stream, (Node){'c', to, from, size, 0});                                               \
    }
COPY(cuMemcpyHtoD_v2)
COPY(cuMemcpyDtoH_v2)
COPY(cuMemcpyDtoD_v2)
COPY_ASYNC(cuMemcpyHtoDAsync_v2)
COPY_ASYNC(cuMemcpyDtoHAsync_v2)
COPY_ASYNC(cuMemcpyDtoDAsync_v2)

Result cuMemsetD8_v2(Address to, unsigned char value, size_t size) {
    NEED_CONTEXT;
    CALL("\"to\": %llu, \"value\": %u, \"size\": %zu", to, value, size);
    memset((void *)to, value, size);
    return SUCCESS;
}
Result cuMemsetD8Async(Address to, unsigned char value, size_t size, void *stream) {
    NEED_CONTEXT;
    CALL("\"to\": %llu, \"value\": %u, \"size\": %zu, \"stream\": %llu", to, value, size, (Address)stream);
    return issue(stream, (Node){'f', to, value, size, 0});
}

Result cuStreamCreate(void **stream, unsigned flags) {
    NEED_CONTEXT;
    CALL("\"flags\": %u", flags);
    Stream *made = calloc(1, sizeof *made);
    made->flags = flags;
    made->next = streams;
    *stream = streams = made;
    return SUCCESS;
}
Result cuStreamGetFlags(void *stream, unsigned *flags) {
    CALL("\"stream\": %llu", (Address)stream);
    *flags = find_stream(stream) ? find_stream(stream)->flags : 0;
    return refuse_capture(stream);
}
Result cuStreamDestroy_v2(void *stream) { CALL("\"stream\": %llu", (Address)stream); return SUCCESS; }
Result cuStreamSynchronize(void *stream) { NEED_CONTEXT; CALL("\"stream\": %llu", (Address)stream); return refuse_capture(stream); }
Result cuStreamQuery(void *stream) { NEED_CONTEXT; CALL("\"stream\": %llu", (Address)stream); return refuse_capture(stream); }
Result cuStreamWaitEvent(void *stream, Event *event, unsigned flags) {
    CALL("\"stream\": %llu, \"event\": %llu, \"flags\": %u", (Address)stream, (Address)event, flags);
    if (event->capture && find_stream(stream)) find_stream(stream)->capture = event->capture;
    return SUCCESS;
}
Result cuEventCreate(void **event, unsigned flags) {
    NEED_CONTEXT;
    CALL("\"flags\": %u", flags);
    *event = calloc(1, sizeof(Event));
    return SUCCESS;
}
Result cuEventDestroy_v2(void *event) { CALL("\"event\": %llu", (Address)event); free(event); return SUCCESS; }
Result cuEventRecord(Event *event, void *stream) {
    if (!stream) NEED_CONTEXT;
    CALL("\"event\": %llu, \"stream\": %llu", (Address)event, (Address)stream);
    event->capture = capture_of(stream);
    return SUCCESS;
}
Result cuEventSynchronize(void *event) { CALL("\"event\": %llu", (Address)event); return SUCCESS; }
Result cuEventQuery(void *event) { CALL("\"event\": %llu", (Address)event); return SUCCESS; }
Result cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    CALL("\"start\": %llu, \"end\": %llu", (Address)start, (Address)end);
    *milliseconds = 1.5f;
    return SUCCESS;
}

/* The size of an image: of an ELF file, the end of its last table; anything else is text. */
static size_t table_end(const char *image, int place_of_offset, int place_of_size) {
    unsigned long long offset;
    unsigned short size, count;
    memcpy(&offset, image + place_of_offset, 8);
    memcpy(&size, image + place_of_size, 2);
    memcpy(&count, image + place_of_size + 2, 2);
    return offset + (size_t)size * count;
}

static size_t image_size(const char *image) {
    if (memcmp(image, "\177ELF", 4)) return strlen(image);
    size_t programs = table_end(image, 32, 54), sections = table_end(image, 40, 58);
    return programs > sections ? programs : sections;
}

Result cuModuleLoadDataEx(void **module, const char *image, unsigned options, int *names, void **values) {
    (void)options, (void)names, (void)values;
    size_t size = image_size(image);
    NEED_CONTEXT;
    CALL("\"size\": %zu", size);
    Module *loaded = calloc(1, sizeof *loaded);
    loaded->image = malloc(size + 1);
    loaded->size = size;
    memcpy(loaded->image, image, size);
    loaded->image[size] = 0;
    *module = loaded;
    return SUCCESS;
}

Result cuModuleUnload(Module *module) {
    NEED_CONTEXT;
    CALL("\"module\": %llu", (Address)module);
    free(module->image);
    free(module);
    return SUCCESS;
}

static int is_in_image(Module *module, const char *name) {
    return memmem(module->image, module->size, name, strlen(name)) != 0;
}

Result cuModuleGetFunction(void **function, Module *module, const char *name) {
    NEED_CONTEXT;
    CALL("\"name\": \"%s\"", name);
    if (!is_in_image(module, name)) return NOT_FOUND;
    Function *found = calloc(1, sizeof *found);
    snprintf(found->name, sizeof found->name, "%s", name);
    found->context = current;
    found->max_dynamic = FREE_SHARED - static_shared;
    *function = found;
    return SUCCESS;
}

/* An image that is no ELF file, read as a fatbin: a number of four bytes, then the name of its one kernel. */
Result cuModuleGetFunctionCount(unsigned *count, Module *module) {
    (void)module;
    *count = 1;
    return SUCCESS;
}

Result cuModuleEnumerateFunctions(void **functions, unsigned count, Module *module) {
    return count == 1 ? cuModuleGetFunction(functions, module, module->image + 4) : INVALID_VALUE;
}

Result cuFuncGetName(const char **name, Function *function) {
    *name = function->name;
    return SUCCESS;
}

/* A pointer and an int. */
Result cuFuncGetParamInfo(Function *function, size_t index, size_t *offset, size_t *size) {
    (void)function;
    if (index > 1) return INVALID_VALUE;
    *offset = index == 0 ? 0 : 8;
    *size = index == 0 ? 8 : 4;
    return SUCCESS;
}

Result cuModuleGetGlobal_v2(Address *address, size_t *size, Module *module, const char *name) {
    CALL("\"name\": \"%s\"", name);
    if (!is_in_image(module, name)) return NOT_FOUND;
    if (!module->variable) module->variable = (Address)calloc(1, 16);
    *address = module->variable;
    *size = 16;
    return SUCCESS;
}

Result cuFuncGetAttribute(int *value, int attribute, Function *function) {
    NEED_CONTEXT;
    switch (attribute) {
    case 0: *value = 1024; break;
    case STATIC_SHARED: *value = static_shared; break;
    case MAX_DYNAMIC: *value = function->max_dynamic; break;
    default: *value = 10 + attribute; break;
    }
    return SUCCESS;
}

Result cuFuncSetAttribute(Function *function, int attribute, int value) {
    CALL("\"name\": \"%s\", \"attribute\": %d, \"value\": %d", function->name, attribute, value);
    if (attribute == MAX_DYNAMIC) {
        if (value + static_shared > OPT_IN_BYTES) return INVALID_VALUE;
        function->max_dynamic = value;
    }
    return SUCCESS;
}

static Result launch(const char *call, Function *function, const Extended *configuration, void **extra) {
    static const char digits[] = "0123456789abcdef";
    static _Thread_local char hexadecimal[65536];
    const unsigned char *data = 0;
    size_t size = 0;
    int cooperative = 0;
    for (; extra && *extra; extra += 2) {
        if (*extra == (void *)1) data = extra[1];
        if (*extra == (void *)2) size = *(size_t *)extra[1];
    }
    for (size_t byte = 0; byte < size; byte++) {
        hexadecimal[2 * byte] = digits[data[byte] >> 4];
        hexadecimal[2 * byte + 1] = digits[data[byte] & 15];
    }
    hexadecimal[2 * size] = 0;
    for (unsigned index = 0; index < configuration->count; index++)
        if (configuration->attributes[index].id == 2) cooperative = configuration->attributes[index].value[0];
    Result code = record(
        call, "\"name\": \"%s\", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u, \"stream\": %llu, "
        "\"cooperative\": %d, \"arguments\": \"%s\"",
        function->name, configuration->grid[0], configuration->grid[1], configuration->grid[2],
        configuration->block[0], configuration->block[1], configuration->block[2], configuration->shared,
        (Address)configuration->stream, cooperative, hexadecimal);
    if (code) return code;
    if (function->context != current) return 400;
    issue(configuration->stream, (Node){'k', 0, 0, 0, 0});
    return (int)configuration->shared > function->max_dynamic ? INVALID_VALUE : SUCCESS;
}

Result cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
    if (parameters) return INVALID_VALUE;
    Extended configuration = {{gx, gy, gz}, {bx, by, bz}, shared, stream, 0, 0};
    return launch("cuLaunchKernel", function, &configuration, extra);
}

Result cuLaunchKernelEx(const Extended *configuration, Function *function, void **parameters, void **extra) {
    if (parameters) return INVALID_VALUE;
    return launch("cuLaunchKernelEx", function, configuration, extra);
}
