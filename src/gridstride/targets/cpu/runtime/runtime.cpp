// The runtime of the CPU target: runs launches of kernel libraries on a pool of threads, every CUDA thread a
// fiber. One translation unit, without the C++ library, so that the kernel compiler can build it at once.
//
//   system.h output.h text.h     what the rest stands on
//   stacks.h machine.h block.h   fibers and the state of a block and a launch
//   scheduler.h                  which thread of a block goes on
//   failures.h                   what went wrong, as text
//   worker.h pool.h              which block runs on which OS thread
//   signals.h monitor.h          faults, Ctrl-C, time-outs, preemption
#include "monitor.h"
#include "processors.h"

gridstride::Block __thread* gridstride_running_block __attribute__((tls_model("initial-exec")));

namespace gridstride {

// ---- services that kernels call ----

static void fail_service(gridstride_block* block, int code, const char* what, const char* file, unsigned line,
                         const char* function) {
    fail(runtime_block(block), unsigned(code), what, file, line, function);
}

static void print_service(gridstride_block* block, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    runtime_block(block)->launch->output.print(format, arguments);
    va_end(arguments);
}

static void end_thread(gridstride_block* block) { gridstride_end_thread(block); }

static gridstride_services services = {
    0, choose, yield, complete_barrier, successor, end_sequential, end_thread, gather, ask_active_lanes, synchronize_grid,
    fail_service, print_service};

// ---- the last failure of each OS thread ----

static pthread_key_t failure_key;
static pthread_once_t failure_key_once = PTHREAD_ONCE_INIT;

static gridstride_failure* last_failure() {
    pthread_once(&failure_key_once, [] { pthread_key_create(&failure_key, free); });
    auto* failure = static_cast<gridstride_failure*>(pthread_getspecific(failure_key));
    if (failure) return failure;
    failure = static_cast<gridstride_failure*>(calloc(1, sizeof(gridstride_failure)));
    pthread_setspecific(failure_key, failure);
    return failure;
}

// ---- launches ----

constexpr unsigned long MAX_RESIDENT_THREADS = 1 << 17;
constexpr unsigned long MAX_RESIDENT_SHARED = 1ul << 30;

static unsigned long max_resident_blocks(unsigned long threads, unsigned long shared_bytes) {
    if (!threads || threads > GRIDSTRIDE_MAX_THREADS) return 0;
    return minimum(MAX_RESIDENT_THREADS / threads, MAX_RESIDENT_SHARED / maximum(shared_bytes, 1ul));
}

static int check(Launch& launch) {
    const gridstride_configuration& configuration = *launch.configuration;
    const unsigned long threads = 1ul * configuration.block[0] * configuration.block[1] * configuration.block[2];
    if (threads > GRIDSTRIDE_MAX_THREADS)
        return refuse(launch, GRIDSTRIDE_UNSUPPORTED, "a block can have at most 1024 threads");
    const unsigned long shared = launch.function->static_shared_bytes + 1ul * configuration.shared_mem;
    const unsigned long most = max_resident_blocks(threads, shared);
    if (launch.is_cooperative && launch.block_count > most) {
        char reason[200];
        snprintf(reason, sizeof reason,
                 "a cooperative launch keeps all its blocks resident: of blocks with %lu threads and %lu bytes of shared "
                 "memory at most %lu, not %lu",
                 threads, shared, most, launch.block_count);
        return refuse(launch, GRIDSTRIDE_TOO_MANY_BLOCKS, reason);
    }
    return GRIDSTRIDE_OK;
}

static void run(Launch& launch) {
    pool.start();
    launch.is_on_main_thread = is_main_thread();
    if (launch.is_on_main_thread) install_interrupt_handler();
    if (!pool.run(launch)) refuse(launch, GRIDSTRIDE_OUT_OF_MEMORY, "no memory for a worker");
    report_stop(launch, nullptr);
    launch.output.flush();
}

constexpr unsigned long CHUNKS_PER_THREAD = 16;

static unsigned long chunk_of(unsigned long pieces) {
    constexpr unsigned long LARGEST = 64;
    return maximum(1ul, minimum(LARGEST, pieces / (CHUNKS_PER_THREAD * pool.get_thread_limit())));
}

// Indices along x are ints in the flat tier.
static bool can_be_flat(const gridstride_kernel* kernel, const gridstride_configuration& configuration) {
    constexpr unsigned FIBERS = 2;
    const unsigned long threads_along_x = 1ul * configuration.grid[0] * configuration.block[0];
    return kernel->run_row && !(configuration.flags & FIBERS) && threads_along_x < 0x7ffffffful;
}

// Large enough that its start costs nothing, small enough that all workers have something to do to the end.
static unsigned portion_blocks_of(const gridstride_configuration& configuration, unsigned long blocks) {
    constexpr unsigned long MOST_THREADS = 1 << 14;
    const unsigned long threads = maximum(1ul, 1ul * configuration.block[0] * configuration.block[1] * configuration.block[2]);
    const unsigned long share = blocks / (CHUNKS_PER_THREAD * pool.get_thread_limit());
    return unsigned(maximum(1ul, minimum(minimum(share, MOST_THREADS / threads), 1ul * configuration.grid[0])));
}

static void cut(Launch& launch) {
    const gridstride_configuration& configuration = *launch.configuration;
    const unsigned* grid = configuration.grid;
    launch.block_count = launch.piece_count = 1ul * grid[0] * grid[1] * grid[2];
    launch.is_cooperative = configuration.flags & 1;
    launch.is_flat = launch.block_count && can_be_flat(launch.function->kernel, configuration);
    if (launch.is_flat) {
        launch.portion_blocks = portion_blocks_of(configuration, launch.block_count);
        launch.piece_count = (grid[0] + launch.portion_blocks - 1ul) / launch.portion_blocks * grid[1] * grid[2];
    }
    launch.chunk = launch.is_cooperative ? 1 : chunk_of(launch.piece_count);
}

__attribute__((constructor)) static void initialize() {
    services.block_offset = reinterpret_cast<char*>(&gridstride_running_block) -
                            static_cast<char*>(__builtin_thread_pointer());
    gridstride_runtime = &services;
    pool.set_thread_limit(usable_processors());
}

}  // namespace gridstride

#define GRIDSTRIDE_EXPORT extern "C" __attribute__((visibility("default")))

using namespace gridstride;

GRIDSTRIDE_EXPORT const gridstride_services* gridstride_runtime_services() { return &services; }

GRIDSTRIDE_EXPORT int gridstride_cpu_launch(void* function, const gridstride_configuration* configuration,
                                            const void* packed, unsigned long, unsigned long long) {
    static unsigned long launches = 0;
    Launch launch;
    launch.serial = __atomic_add_fetch(&launches, 1ul, __ATOMIC_RELAXED);
    launch.function = static_cast<const gridstride_function*>(function);
    launch.configuration = configuration;
    launch.argument_bytes = static_cast<const char*>(packed);
    cut(launch);
    if (check(launch) == GRIDSTRIDE_OK && launch.block_count) run(launch);
    if (launch.is_stopped())
        if (gridstride_failure* failure = last_failure()) *failure = launch.failure;
    return int(launch.stop_code);
}

GRIDSTRIDE_EXPORT const gridstride_failure* gridstride_last_failure() { return last_failure(); }

GRIDSTRIDE_EXPORT void gridstride_set_num_threads(int count) { pool.set_thread_limit(count > 0 ? unsigned(count) : 1); }

GRIDSTRIDE_EXPORT int gridstride_get_num_threads() { return int(pool.get_thread_limit()); }

GRIDSTRIDE_EXPORT void gridstride_set_launch_timeout(double seconds) {
    __atomic_store_n(&launch_timeout, seconds > 0 ? long(seconds * NANOSECONDS) : 0, __ATOMIC_RELAXED);
}

GRIDSTRIDE_EXPORT int gridstride_max_resident_blocks(unsigned threads, unsigned shared_bytes) {
    return int(minimum(max_resident_blocks(threads, shared_bytes), 0x7ffffffful));
}
