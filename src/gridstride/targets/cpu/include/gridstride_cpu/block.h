// The state of a block while an OS thread runs it, and what the runtime offers kernels.
//
// Every thread of a block is a fiber. One that waits (at a barrier, in a warp collective) switches straight to
// the next thread that can go on: later lanes of its warp first, then earlier ones, then the next warp. The
// code for the common case is inline here and in execution.h and warp.h; the rest is the runtime's.
//
// A block starts "sequential": one fiber runs its threads one after the other, and no lane masks are kept. The
// first thread that waits makes it "interleaved". A thread that ends keeps its fiber for the next block, where it
// is the same thread again.
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

// The line at which threads wait that have ended.
enum : unsigned { GRIDSTRIDE_ENDED = ~0u };

struct gridstride_thread {
    void* stack_pointer;      // of a suspended thread, or of the fiber kept for it; null if it has none
    const char* waiting_file; // where it waits, or waited last
    unsigned waiting_line;
    unsigned short index_x, index_y, index_z, linear_rank;
    unsigned fiber_number;    // of its stack, unless the stack pointer is null
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

// Who took part in a collective, and `slot_choice` then.
struct gridstride_participation {
    unsigned lanes, slot_choice;
};

// What the collectives of a warp share. A lane publishes in one of its two slots in turn: it cannot publish
// twice before all lanes of an earlier collective have read, because a released lane runs and reads before
// any lane runs for the second time.
struct gridstride_exchange {
    unsigned gathering_limit;  // those from here on were never used
    unsigned slot_choice;      // a bit per lane: the slot it published last
    unsigned asking_lanes;     // wait to learn which lanes are active
    unsigned asked_at;         // the round in which the first of them asked
    gridstride_gathering gatherings[GRIDSTRIDE_WARP_SIZE];
    gridstride_participation participations[GRIDSTRIDE_WARP_SIZE];  // of the last collective of each lane
    gridstride_slot slots[2][GRIDSTRIDE_WARP_SIZE];
};

struct gridstride_vote {
    unsigned true_count, participant_count;
};

// The barriers that a block has besides that of __syncthreads: those of __barrier_sync by their numbers, that of
// thread_block::barrier_arrive, and those of tiles larger than a warp, 1024 threads first, then twice 512 ...
enum : unsigned { GRIDSTRIDE_BLOCK_BARRIER = 16, GRIDSTRIDE_TILE_BARRIERS = 16, GRIDSTRIDE_NAMED_BARRIERS = 48 };
struct gridstride_named_barrier {
    unsigned arrived, generation;
};

struct gridstride_block {
    gridstride_thread* current_thread;
    gridstride_thread* last_thread;
    const char* argument_bytes;
    char* static_shared;
    char* dynamic_shared;
    char* shared_end;
    uint3 block_index;
    dim3 block_shape, grid_shape;
    unsigned thread_count;
    unsigned is_interleaved;
    unsigned live_threads, arrived_threads;  // at the barrier; 1 and 0 while the block is sequential
    unsigned barrier_generation;
    unsigned gathering_count;                // collectives that go on in all warps
    unsigned true_votes;                     // of the threads that arrived
    gridstride_vote votes[2];                // by the parity of the generation
    unsigned barriers_used;                  // any of the following
    gridstride_named_barrier named_barriers[GRIDSTRIDE_NAMED_BARRIERS];
    gridstride_thread* polling_thread;       // who called gridstride_spin_hint last, and how often in a row
    unsigned polling_count;
    gridstride_warp warps[GRIDSTRIDE_MAX_WARPS];
    gridstride_exchange* exchanges;
    volatile unsigned is_scheduling;         // between two threads: `current_thread` may not be the one that runs
    void* published[GRIDSTRIDE_MAX_THREADS]; // what threads show others of tiles that are larger than a warp
};

// Functions of the runtime. Those that return a thread return the one to switch to, perhaps the current one.
struct gridstride_services {
    long block_offset;  // of the thread-local `gridstride_block*`, from the thread pointer
    gridstride_thread* (*choose)(gridstride_block*);  // after the current thread's ready bit was cleared
    gridstride_thread* (*yield)(gridstride_block*);   // every other thread that can go on comes first
    gridstride_thread* (*complete_barrier)(gridstride_block*);  // as many threads arrived as are alive
    gridstride_thread* (*successor)(gridstride_block*);  // of a thread that ended, after counts and masks were updated
    void (*end_sequential)(gridstride_block*);        // the last thread ended; returns as the next block's first
    void (*end_thread)(gridstride_block*);            // all of gridstride_end_thread
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

__attribute__((always_inline)) inline void gridstride_leave_wait(gridstride_block* __block) {
    gridstride_compiler_fence();
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
    const unsigned __bit = 1u << __rank % GRIDSTRIDE_WARP_SIZE;
    unsigned& __lanes = __block->warps[__rank / GRIDSTRIDE_WARP_SIZE].ready_lanes;
    const unsigned __ready = __lanes & ~__bit;
    gridstride_thread* __next = __self + 1;
    __lanes = __ready;
    if (__builtin_expect(!(__ready & (__bit << 1)) || !__next->stack_pointer, 0)) {
        __next = gridstride_runtime->choose(__block);
        if (__next == __self) return;
    }
    __block->current_thread = __next;
    gridstride_switch(&__self->stack_pointer, __next->stack_pointer);
}

// Go on with the next thread of a sequential block, if there is one. A poke in between would start the next thread on a
// fiber of its own, and the interrupted one would become it, too.
__attribute__((always_inline)) inline bool gridstride_go_on(gridstride_block* __block) {
    __block->is_scheduling = 1;
    gridstride_compiler_fence();
    gridstride_thread* __self = __block->current_thread;
    if (__builtin_expect(__block->is_interleaved || __self == __block->last_thread, 0)) return false;
    __block->current_thread = __self + 1;
    gridstride_leave_wait(__block);
    return true;
}

// End the current thread; returns as another one of the block, or as the same one of the worker's next block.
__attribute__((always_inline)) inline void gridstride_end_thread(gridstride_block* __block) {
    if (gridstride_go_on(__block)) return;
    gridstride_thread* __self = __block->current_thread;
    gridstride_enter_wait(__block, __self, "", GRIDSTRIDE_ENDED);
    if (__builtin_expect(!__block->is_interleaved, 1)) {
        gridstride_runtime->end_sequential(__block);
        gridstride_leave_wait(__block);
        return;
    }
    const unsigned __rank = __self->linear_rank, __bit = 1u << __rank % GRIDSTRIDE_WARP_SIZE;
    gridstride_warp& __warp = __block->warps[__rank / GRIDSTRIDE_WARP_SIZE];
    const unsigned __live = __block->live_threads - 1, __ready = __warp.ready_lanes & ~__bit;
    gridstride_thread* __next = __self + 1;
    __warp.live_lanes &= ~__bit;
    __warp.ready_lanes = __ready;
    __block->live_threads = __live;
    const bool __may_be_awaited = __block->arrived_threads | __block->gathering_count | !__live;
    if (__builtin_expect(__may_be_awaited || !(__ready & (__bit << 1)) || !__next->stack_pointer, 0))
        __next = gridstride_runtime->successor(__block);
    if (__next != __self) {
        __block->current_thread = __next;
        if (__next->stack_pointer) gridstride_switch(&__self->stack_pointer, __next->stack_pointer);
    }
    __block->current_thread->waiting_line = 0;
    gridstride_leave_wait(__block);
}

// The same for kernels whose threads wait for nobody: a switch in them would take longer to compile than all the rest.
__attribute__((always_inline)) inline void gridstride_end_lone_thread(gridstride_block* __block) {
    if (!gridstride_go_on(__block)) gridstride_runtime->end_thread(__block);
}

#endif
