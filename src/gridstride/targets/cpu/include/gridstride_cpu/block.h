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
    unsigned live_threads, arrived_threads;  // at the barrier; 1 and 0 while the block is sequential
    unsigned barrier_generation;
    unsigned true_votes;                     // of the threads that arrived
    gridstride_vote votes[2];                // by the parity of the generation
    gridstride_thread* polling_thread;       // who called gridstride_spin_hint last, and how often in a row
    unsigned polling_count;
    gridstride_warp warps[GRIDSTRIDE_MAX_WARPS];
    gridstride_exchange* exchanges;
    const char *code_begin, *code_end;       // of the kernel library: a thread is only interrupted in there
    volatile unsigned is_scheduling;         // between two threads: `current_thread` may not be the one that runs
};

// Functions of the runtime. Those that return a thread return the one to switch to, perhaps the current one.
struct gridstride_services {
    long block_offset;  // of the thread-local `gridstride_block*`, from the thread pointer
    gridstride_thread* (*choose)(gridstride_block*);  // after the current thread's ready bit was cleared
    gridstride_thread* (*yield)(gridstride_block*);   // every other thread that can go on comes first
    gridstride_thread* (*complete_barrier)(gridstride_block*);  // as many threads arrived as are alive
    gridstride_thread* (*end_thread)(gridstride_block*);  // null: it was the last one
    void (*end_block)(gridstride_block*);                 // does not return
    gridstride_thread* (*gather)(gridstride_block*, unsigned kind, unsigned mask);
    gridstride_thread* (*ask_active_lanes)(gridstride_block*);
    gridstride_thread* (*synchronize_grid)(gridstride_block*);
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

// From `enter` until a thread leaves, the block belongs to the scheduler: nobody is preempted, and messages say
// where the thread waits. Whatever makes a thread run ends it: `leave`, the start of a fiber, the end of a poke.
__attribute__((always_inline)) inline void gridstride_enter_wait(
    gridstride_block* __block, gridstride_thread* __self, const char* __file, unsigned __line) {
    __block->is_scheduling = 1;
    __self->waiting_line = __line;
    __self->waiting_file = __file;
    gridstride_compiler_fence();
}

__attribute__((always_inline)) inline void gridstride_leave_wait(gridstride_block* __block, gridstride_thread* __self) {
    gridstride_compiler_fence();
    __self->waiting_file = nullptr;
    __block->is_scheduling = 0;
}

// Give the processor to another thread, whose stack pointer is known.
__attribute__((always_inline)) inline void gridstride_switch_to(
    gridstride_block* __block, gridstride_thread* __self, gridstride_thread* __next) {
    if (__next == __self) return;
    __block->current_thread = __next;
    gridstride_switch(&__self->stack_pointer, __next->stack_pointer);
}

// Suspend the current thread until somebody sets its ready bit. Mostly the next lane goes on; that it does is
// a matter of branch prediction, where computing the next thread from the mask would take a chain of loads.
// The runtime only chooses: a switch in there would make the processor mispredict its return.
__attribute__((always_inline)) inline void gridstride_suspend(
    gridstride_block* __block, gridstride_thread* __self, unsigned __rank) {
    unsigned& __ready_lanes = __block->warps[__rank / GRIDSTRIDE_WARP_SIZE].ready_lanes;
    const unsigned __bit = 1u << __rank % GRIDSTRIDE_WARP_SIZE, __ready = __ready_lanes & ~__bit;
    gridstride_thread* __next = __self + 1;
    __ready_lanes = __ready;
    if (__builtin_expect(!(__ready & (__bit << 1)) || !__next->stack_pointer, 0)) {
        __next = gridstride_runtime->choose(__block);
        if (__next == __self) return;
    }
    __block->current_thread = __next;
    gridstride_switch(&__self->stack_pointer, __next->stack_pointer);
}

#endif
