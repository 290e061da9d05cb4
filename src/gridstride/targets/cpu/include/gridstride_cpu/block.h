// The state of a block while an OS thread runs it, and what the runtime offers kernels.
//
// Every thread of a block is a fiber. One that waits (at a barrier, in a warp collective) switches straight to
// the next thread that can go on: later lanes of its warp first, then earlier ones, then the next warp. The
// code for the common case is inline here and in execution.h and warp.h; the rest is the runtime's.
//
// A block starts "sequential": one fiber runs its threads one after the other, and no lane masks are kept. The
// first thread that waits makes it "interleaved".
//
// Parameters and locals have reserved names in all headers that kernels see: users define macros with -D.
#ifndef GRIDSTRIDE_CPU_BLOCK_H
#define GRIDSTRIDE_CPU_BLOCK_H

#include "abi.h"
#include "dim3.h"

#if defined(__x86_64__)
#include "switch_x86_64.h"
#elif defined(__aarch64__)
#include "switch_aarch64.h"
#else
#error "gridstride runs kernels on x86-64 and aarch64 processors"
#endif

enum gridstride_limit : unsigned {
    GRIDSTRIDE_WARP_SIZE = 32,
    GRIDSTRIDE_MAX_THREADS = 1024,
    GRIDSTRIDE_MAX_WARPS = GRIDSTRIDE_MAX_THREADS / GRIDSTRIDE_WARP_SIZE
};

struct gridstride_thread {
    void* stack_pointer;      // of a thread that was suspended; null before that
    const char* waiting_file; // where it waits; null while it runs the kernel's own code
    unsigned waiting_line;
    unsigned short index_x, index_y, index_z, linear_rank;
    unsigned fiber_number;    // of the stack it runs on; valid once the block is interleaved
};

struct gridstride_warp {
    unsigned live_lanes;   // not exited
    unsigned ready_lanes;  // can go on: running, suspended but released, or not started
};

// Lanes of a warp that wait in one collective. Unused: mask 0.
struct gridstride_gathering {
    unsigned collective_kind, lane_mask, arrived_lanes;
};

struct gridstride_slot {
    alignas(16) char value_bytes[16];
};

// What the collectives of a warp share. A lane publishes in one of its two slots in turn: it cannot publish
// twice before all lanes of an earlier collective have read, because a released lane runs and reads before
// any lane runs for the second time.
struct gridstride_exchange {
    unsigned gathering_count;  // of those in use
    unsigned slot_choice;      // a bit per lane: the slot it published last
    unsigned asking_lanes;     // wait to learn which lanes are active
    gridstride_gathering gatherings[GRIDSTRIDE_WARP_SIZE];
    unsigned participants[GRIDSTRIDE_WARP_SIZE];        // per lane: who took part in its last collective
    unsigned participant_slots[GRIDSTRIDE_WARP_SIZE];   // and `slot_choice` then
    gridstride_slot slots[2][GRIDSTRIDE_WARP_SIZE];
};

struct gridstride_vote {
    unsigned true_count, participant_count;
};

struct gridstride_block {
    gridstride_thread* current_thread;
    gridstride_thread* last_thread;
    const char* argument_bytes;
    char* static_shared;
    char* dynamic_shared;
    uint3 block_index;
    dim3 block_shape, grid_shape;
    unsigned thread_count;
    unsigned is_interleaved;
    unsigned live_threads, arrived_threads;  // at the barrier
    unsigned barrier_generation;
    unsigned true_votes;                     // of the threads that arrived
    gridstride_vote votes[2];                // by the parity of the generation
    gridstride_thread* polling_thread;       // who called gridstride_spin_hint last, and how often in a row
    unsigned polling_count;
    gridstride_warp warps[GRIDSTRIDE_MAX_WARPS];
    gridstride_exchange* exchanges;
    const char *code_begin, *code_end;       // of the kernel library: a thread is only interrupted in there
};

// Functions of the runtime. Those that wait return when the calling thread goes on.
struct gridstride_services {
    long block_offset;  // of the thread-local `gridstride_block*`, from the thread pointer
    void (*interleave)(gridstride_block*);
    void (*suspend)(gridstride_block*);          // the current thread, whose ready bit is cleared
    void (*yield)(gridstride_block*);            // lets every other thread that can go on run first
    void (*release_barrier)(gridstride_block*);  // all live threads have arrived
    int (*next_thread)(gridstride_block*);       // ends the current thread; 0: no thread is left to start
    void (*gather)(gridstride_block*, unsigned kind, unsigned mask);
    unsigned (*active_lanes)(gridstride_block*);
    void (*synchronize_grid)(gridstride_block*);
    void (*fail)(gridstride_block*, int code, const char* what, const char* file, unsigned line, const char* function);
    void (*print)(gridstride_block*, const char* format, ...);
};

// ---- the current block ----

static long gridstride_block_offset;
static const gridstride_services* gridstride_runtime;

__attribute__((always_inline)) inline gridstride_block* gridstride_current_block() {
    return static_cast<gridstride_block*>(gridstride_thread_local(gridstride_block_offset));
}

// Keep the compiler from moving memory accesses across.
__attribute__((always_inline)) inline void gridstride_compiler_fence() { asm volatile("" ::: "memory"); }

// ---- waiting ----

// From `enter` to `leave` the current thread belongs to the scheduler: it is not preempted, and messages say
// where it waits.
__attribute__((always_inline)) inline void gridstride_enter_wait(
    gridstride_block* __block, gridstride_thread* __self, const char* __file, unsigned __line) {
    __self->waiting_line = __line;
    __self->waiting_file = __file;
    gridstride_compiler_fence();
    if (__builtin_expect(!__block->is_interleaved, 0)) gridstride_runtime->interleave(__block);
}

__attribute__((always_inline)) inline void gridstride_leave_wait(gridstride_thread* __self) {
    gridstride_compiler_fence();
    __self->waiting_file = nullptr;
}

// Suspend the current thread until somebody sets its ready bit.
__attribute__((always_inline)) inline void gridstride_suspend(gridstride_block* __block, gridstride_thread* __self) {
    gridstride_warp& __warp = __block->warps[__self->linear_rank / GRIDSTRIDE_WARP_SIZE];
    const unsigned __lane = __self->linear_rank % GRIDSTRIDE_WARP_SIZE;
    const unsigned __ready = __warp.ready_lanes &= ~(1u << __lane);
    const unsigned __later = __ready & (~1u << __lane);
    if (__builtin_expect(__later != 0, 1)) {
        gridstride_thread* __next = __self + (__builtin_ctz(__later) - __lane);
        if (__builtin_expect(__next->stack_pointer != nullptr, 1)) {
            __block->current_thread = __next;
            gridstride_switch(&__self->stack_pointer, __next->stack_pointer);
            return;
        }
    }
    gridstride_runtime->suspend(__block);
}

#endif
