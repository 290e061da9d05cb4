// A block and the launch it belongs to, as the runtime sees them.
#ifndef GRIDSTRIDE_RUNTIME_BLOCK_H
#define GRIDSTRIDE_RUNTIME_BLOCK_H

#include <gridstride_cpu/block.h>

#include "launch_abi.h"
#include "output.h"
#include "stacks.h"
#include "system.h"

namespace gridstride {

// One launch, on its caller's stack.
struct Launch {
    unsigned long serial;           // differs between launches, not 0
    const gridstride_function* function;
    const gridstride_configuration* configuration;
    const char* argument_bytes;
    unsigned long block_count;
    bool is_flat;                   // workers take portions: neighboring blocks of one row of the grid
    unsigned portion_blocks;        // at most so many in a portion
    unsigned long piece_count;      // portions of the flat tier, else blocks
    unsigned long next_piece = 0;   // the first that nobody took
    unsigned long chunk = 1;        // pieces taken at once
    bool is_cooperative;
    bool wants_helpers = false;
    bool is_tried = false;          // with helpers and without
    unsigned is_for_caller = 0;     // who is faster without helpers
    bool is_closed = false;         // no more helpers may come
    bool is_on_main_thread = false;
    unsigned helper_count = 0;      // pool threads that work on it
    unsigned stop_code = 0;         // gridstride_failure_code of what ended it; no block goes on after that
    unsigned is_described = 0;      // somebody wrote, or writes, the failure
    gridstride_failure failure;
    Output output;

    unsigned long finished_blocks = 0;
    unsigned long blocks_at_grid_barrier = 0;
    unsigned grid_generation = 0;   // of the grid barrier; a futex

    unsigned long seen_progress = 0;  // by the monitor, and when
    long seen_at = 0;
    unsigned is_stalled = 0;          // no block finished for a while: perhaps they wait for one that is not running
    Launch* next = nullptr;         // in the pool's list

    bool may_have_helpers() const {
        return wants_helpers && !is_closed && !__atomic_load_n(&is_for_caller, __ATOMIC_RELAXED);
    }

    bool has_pieces() const { return __atomic_load_n(&next_piece, __ATOMIC_RELAXED) < piece_count; }

    // Leave what nobody took undone.
    void drop_pieces() { __atomic_store_n(&next_piece, piece_count, __ATOMIC_RELAXED); }

    bool can_use_helpers(unsigned thread_limit) const { return piece_count > 1 && thread_limit > 1; }

    // Whether it takes longer than waking a thread, as far as one can know.
    bool is_large() const {
        constexpr unsigned long MANY_THREADS = 4096;
        const unsigned* block = configuration->block;
        return is_cooperative || block_count * block[0] * block[1] * block[2] >= MANY_THREADS;
    }

    bool is_stopped() const { return __atomic_load_n(&stop_code, __ATOMIC_RELAXED) != 0; }

    // End the launch for this reason, unless another one came first.
    bool stop(unsigned code) {
        unsigned running = 0;
        return __atomic_compare_exchange_n(&stop_code, &running, code, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }

    // Return whether the caller is the one to write the failure.
    bool claim_description() { return __atomic_exchange_n(&is_described, 1u, __ATOMIC_ACQ_REL) == 0; }
};

// How a block left the processor.
enum class Outcome : unsigned {
    finished,
    waits_for_grid,
    polls,  // no thread got further
    failed
};

// A synchronous fault, noted by the signal handler.
struct Fault {
    unsigned code;  // 0: none
    bool has_address;
    unsigned long address;
};

void run_portions();  // portion.h

struct Block : gridstride_block {
    Launch* launch;
    unsigned long launch_serial; // it is prepared for
    bool is_flat;                // holds a portion
    bool is_refused;             // nothing of the portion ran, fibers must do it
    unsigned portion_blocks;     // that run together, along x from `block_index` on; else 0
    gridstride_thread* threads;  // as many as the capacity says
    Stacks stacks;
    unsigned capacity;           // threads, whole warps
    char* arena;                 // shared memory
    unsigned long arena_size;
    Outcome outcome;
    Fault fault;
    void* worker_stack_pointer;  // of the worker that runs it
    void (*run)();               // what fibers begin with
    const char *code_begin, *code_end;  // of the kernel library: a thread is only interrupted in there
    bool is_started;
    bool is_preempted;           // taken off the processor although it would go on
    unsigned grid_arrivals;      // threads that wait for the grid
    unsigned grid_generation;    // that they wait to see changed
    unsigned rounds;             // returns to the start of a warp
    unsigned yields;             // since a thread last waited or ended
    unsigned asking_warps;       // a bit per warp with `asking_lanes`
    unsigned fiber_count;        // fibers numbered so far
    unsigned idle_count;
    unsigned short idle_fibers[GRIDSTRIDE_MAX_THREADS];
    Block* next;                 // in its worker's list

    unsigned warp_count() const { return (thread_count + GRIDSTRIDE_WARP_SIZE - 1) / GRIDSTRIDE_WARP_SIZE; }

    // Become a block of a launch; false if there is no memory.
    bool prepare(Launch& its_launch, unsigned long number) {
        if (!belong_to(its_launch, false)) return false;
        begin_at(its_launch, number % its_launch.configuration->grid[0], number / its_launch.configuration->grid[0]);
        portion_blocks = 0;
        return true;
    }

    // Become a portion of a launch; false if there is no memory.
    bool prepare_portion(Launch& its_launch, unsigned long number) {
        if (!belong_to(its_launch, true)) return false;
        const unsigned width = its_launch.configuration->grid[0], most = its_launch.portion_blocks;
        const unsigned long portions = (width + most - 1ul) / most, first = number % portions * most;
        begin_at(its_launch, first, number / portions);
        portion_blocks = unsigned(minimum<unsigned long>(most, width - first));
        is_refused = false;
        return true;
    }

    // Number of the first block.
    unsigned long number() const {
        return block_index.x + grid_shape.x * (block_index.y + 1ul * grid_shape.y * block_index.z);
    }

    // Forget threads that did not end.
    void abandon() {
        forget_fibers();
        memset(static_cast<void*>(exchanges), 0, warp_count() * sizeof(gridstride_exchange));
        asking_warps = 0;
        gathering_count = 0;
    }

    void release() {
        stacks.release();
        unmap_pages(threads, thread_bytes(capacity));
        unmap_pages(arena, arena_size);
    }

private:
    static constexpr unsigned long SHARED_ALIGNMENT = 128;

    static unsigned long thread_bytes(unsigned capacity) {
        return capacity * sizeof(gridstride_thread) + capacity / GRIDSTRIDE_WARP_SIZE * sizeof(gridstride_exchange);
    }

    void forget_fibers() {
        for (unsigned rank = 0; rank < thread_count; ++rank) threads[rank].stack_pointer = nullptr;
        fiber_count = idle_count = 0;
    }

    void begin_at(const Launch& its_launch, unsigned long x, unsigned long row) {
        const unsigned height = its_launch.configuration->grid[1];
        block_index = uint3{unsigned(x), unsigned(row % height), unsigned(row / height)};
        current_thread = threads;
        is_scheduling = 1;
        is_interleaved = 0;
        live_threads = 1;
        arrived_threads = 0;
        true_votes = 0;
        if (barriers_used) memset(named_barriers, 0, sizeof named_barriers);
        barriers_used = 0;
        is_started = is_preempted = false;
        outcome = Outcome::polls;
        fault.code = 0;
    }

    bool belong_to(Launch& its_launch, bool as_portion) {
        return (launch_serial == its_launch.serial && is_flat == as_portion) || adopt(its_launch, as_portion);
    }

    bool adopt(Launch& its_launch, bool as_portion) {
        launch_serial = 0;
        forget_fibers();  // they are in the middle of another kernel's loop
        launch = &its_launch;
        is_flat = as_portion;
        const gridstride_kernel* kernel = its_launch.function->kernel;
        run = is_flat ? run_portions : kernel->run;
        code_begin = kernel->code_begin;
        code_end = kernel->code_end;
        argument_bytes = its_launch.argument_bytes;
        const unsigned* grid = its_launch.configuration->grid;
        grid_shape = dim3(grid[0], grid[1], grid[2]);
        const unsigned* block = its_launch.configuration->block;
        const dim3 shape(block[0], block[1], block[2]);
        if (!reserve_threads(shape) || !reserve_shared(its_launch) || !stacks.top(0)) return false;
        launch_serial = its_launch.serial;
        return true;
    }

    bool reserve_threads(dim3 shape) {
        const unsigned count = shape.x * shape.y * shape.z;
        if (count > capacity) {
            unmap_pages(threads, thread_bytes(capacity));
            capacity = unsigned(align_up(count, GRIDSTRIDE_WARP_SIZE));
            threads = static_cast<gridstride_thread*>(map_pages(thread_bytes(capacity)));
            if (!threads) return capacity = 0, false;
            exchanges = reinterpret_cast<gridstride_exchange*>(threads + capacity);
            thread_count = 0;
        }
        if (thread_count == count && block_shape.x == shape.x && block_shape.y == shape.y) return true;
        block_shape = shape;
        thread_count = count;
        last_thread = threads + count - 1;
        for (unsigned rank = 0; rank < count; ++rank) {
            const unsigned row = rank / shape.x;
            threads[rank].index_x = (unsigned short)(rank % shape.x);
            threads[rank].index_y = (unsigned short)(row % shape.y);
            threads[rank].index_z = (unsigned short)(row / shape.y);
            threads[rank].linear_rank = (unsigned short)rank;
        }
        return true;
    }

    bool reserve_shared(const Launch& its_launch) {
        const unsigned long fixed = align_up(its_launch.function->static_shared_bytes, SHARED_ALIGNMENT);
        const unsigned long wanted = fixed + its_launch.configuration->shared_mem;
        if (wanted > arena_size) {
            unmap_pages(arena, arena_size);
            arena_size = align_up(wanted, 4096);
            arena = static_cast<char*>(map_pages(arena_size));
            if (!arena) return arena_size = 0, false;
        }
        static_shared = arena;
        dynamic_shared = arena + fixed;
        shared_end = arena + wanted;
        return true;
    }
};

inline unsigned warp_of(const gridstride_thread* thread) { return thread->linear_rank / GRIDSTRIDE_WARP_SIZE; }
inline unsigned lane_of(const gridstride_thread* thread) { return thread->linear_rank % GRIDSTRIDE_WARP_SIZE; }
inline unsigned bit_of(const gridstride_thread* thread) { return 1u << lane_of(thread); }

}  // namespace gridstride

// The block that the OS thread runs; null outside of kernels. The library's only thread-local variable:
// kernels find it by its offset from the thread pointer.
extern "C" __thread gridstride::Block* gridstride_running_block __attribute__((tls_model("initial-exec")));

#endif
