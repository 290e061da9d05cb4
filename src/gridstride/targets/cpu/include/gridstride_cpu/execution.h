// What the language gives every kernel: its indices, barriers, shared memory, assertions and printf.
//
// For the source pass: `__shared__ T name` becomes
//
//     struct tag { static const char* function() { return "enclosing function"; } };
//     T& name = gridstride_shared<tag, T>();
//
// where `tag` is a local type, hence a different variable in every instance of a template; its alignment, if
// larger, is the variable's. `extern __shared__ T name[]` becomes `gridstride_dynamic_shared<T[]>()`.
#ifndef GRIDSTRIDE_CPU_EXECUTION_H
#define GRIDSTRIDE_CPU_EXECUTION_H

#include "block.h"

// The call site, as default arguments of whatever waits.
#define GRIDSTRIDE_SITE const char *__file = __builtin_FILE(), unsigned __line = __builtin_LINE()

#define GRIDSTRIDE_INLINE static inline __attribute__((always_inline))

// ---- indices ----

GRIDSTRIDE_INLINE uint3 gridstride_thread_index() {
    const gridstride_thread* __self = gridstride_current_block()->current_thread;
    return uint3{__self->index_x, __self->index_y, __self->index_z};
}

GRIDSTRIDE_INLINE const uint3& gridstride_block_index() { return gridstride_current_block()->block_index; }
GRIDSTRIDE_INLINE const dim3& gridstride_block_shape() { return gridstride_current_block()->block_shape; }
GRIDSTRIDE_INLINE const dim3& gridstride_grid_shape() { return gridstride_current_block()->grid_shape; }

#define threadIdx (gridstride_thread_index())
#define blockIdx (gridstride_block_index())
#define blockDim (gridstride_block_shape())
#define gridDim (gridstride_grid_shape())
static constexpr int warpSize = GRIDSTRIDE_WARP_SIZE;

// x fastest, from 0
GRIDSTRIDE_INLINE unsigned gridstride_thread_rank() { return gridstride_current_block()->current_thread->linear_rank; }
GRIDSTRIDE_INLINE unsigned gridstride_thread_count() { return gridstride_current_block()->thread_count; }
GRIDSTRIDE_INLINE unsigned gridstride_lane() { return gridstride_thread_rank() % GRIDSTRIDE_WARP_SIZE; }

// ---- barriers ----

GRIDSTRIDE_INLINE void gridstride_arrive_and_wait(gridstride_block* __block, gridstride_thread* __self) {
    const unsigned __arrived = __block->arrived_threads + 1;
    __block->arrived_threads = __arrived;
    if (__builtin_expect(__arrived == __block->live_threads, 0))
        gridstride_switch_to(__block, __self, gridstride_runtime->complete_barrier(__block));
    else
        gridstride_suspend(__block, __self, __self->linear_rank);
}

GRIDSTRIDE_INLINE void __syncthreads(GRIDSTRIDE_SITE) {
    gridstride_block* __block = gridstride_current_block();
    gridstride_thread* __self = __block->current_thread;
    gridstride_enter_wait(__block, __self, __file, __line);
    gridstride_arrive_and_wait(__block, __self);
    gridstride_leave_wait(__block);
}

GRIDSTRIDE_INLINE gridstride_vote gridstride_syncthreads_vote(int __predicate, const char* __file, unsigned __line) {
    gridstride_block* __block = gridstride_current_block();
    gridstride_thread* __self = __block->current_thread;
    gridstride_enter_wait(__block, __self, __file, __line);
    const unsigned __generation = __block->barrier_generation;
    __block->true_votes += __predicate != 0;
    gridstride_arrive_and_wait(__block, __self);
    const gridstride_vote __vote = __block->votes[__generation % 2];
    gridstride_leave_wait(__block);
    return __vote;
}

GRIDSTRIDE_INLINE int __syncthreads_count(int __predicate, GRIDSTRIDE_SITE) {
    return gridstride_syncthreads_vote(__predicate, __file, __line).true_count;
}
GRIDSTRIDE_INLINE int __syncthreads_and(int __predicate, GRIDSTRIDE_SITE) {
    const gridstride_vote __vote = gridstride_syncthreads_vote(__predicate, __file, __line);
    return __vote.true_count == __vote.participant_count;
}
GRIDSTRIDE_INLINE int __syncthreads_or(int __predicate, GRIDSTRIDE_SITE) {
    return gridstride_syncthreads_vote(__predicate, __file, __line).true_count != 0;
}

// Wait for all threads of all blocks; fails in a launch that is not cooperative.
GRIDSTRIDE_INLINE void gridstride_grid_sync(GRIDSTRIDE_SITE) {
    gridstride_block* __block = gridstride_current_block();
    gridstride_thread* __self = __block->current_thread;
    gridstride_enter_wait(__block, __self, __file, __line);
    gridstride_switch_to(__block, __self, gridstride_runtime->synchronize_grid(__block));
    gridstride_leave_wait(__block);
}

// ---- letting others run, memory order ----

GRIDSTRIDE_INLINE void gridstride_yield(GRIDSTRIDE_SITE) {
    gridstride_block* __block = gridstride_current_block();
    gridstride_thread* __self = __block->current_thread;
    gridstride_enter_wait(__block, __self, __file, __line);
    gridstride_switch_to(__block, __self, gridstride_runtime->yield(__block));
    gridstride_leave_wait(__block);
}

// Come to one of a block's other barriers; the result is what to wait for.
GRIDSTRIDE_INLINE unsigned gridstride_arrive_at(unsigned __number) {
    gridstride_block* __block = gridstride_current_block();
    volatile gridstride_named_barrier& __barrier = __block->named_barriers[__number];
    __block->barriers_used = 1;
    __barrier.arrived = __barrier.arrived + 1;
    return __barrier.generation;
}
// Threads of these warps that have not exited.
GRIDSTRIDE_INLINE unsigned gridstride_live_threads(unsigned __first, unsigned __threads) {
    const gridstride_block* __block = gridstride_current_block();
    const unsigned __end = __first + __threads < __block->thread_count ? __first + __threads : __block->thread_count;
    if (!__block->is_interleaved) return __end - __first;
    unsigned __live = 0;
    for (unsigned __warp = __first / 32; __warp * 32 < __end; ++__warp) __live += unsigned(__builtin_popcount(__block->warps[__warp].live_lanes));
    return __live;
}
// Wait until as many threads came as are expected: `__count`, or for 0 all of some warps. The others run until then.
GRIDSTRIDE_INLINE void gridstride_wait_at(
    unsigned __number, unsigned __generation, unsigned __count, unsigned __first, unsigned __threads, const char* __file, unsigned __line) {
    volatile gridstride_named_barrier& __barrier = gridstride_current_block()->named_barriers[__number];
    while (__barrier.generation == __generation) {
        if (__barrier.arrived >= (__count ? __count : gridstride_live_threads(__first, __threads))) {
            __barrier.arrived = 0;
            __barrier.generation = __generation + 1;
        } else {
            gridstride_yield(__file, __line);
        }
    }
}
GRIDSTRIDE_INLINE void gridstride_named_barrier_sync(unsigned __number, unsigned __count, const char* __file, unsigned __line) {
    gridstride_wait_at(__number % 16, gridstride_arrive_at(__number % 16), __count, 0, GRIDSTRIDE_MAX_THREADS, __file, __line);
}
GRIDSTRIDE_INLINE void __barrier_sync_count(unsigned __number, unsigned __count, GRIDSTRIDE_SITE) {
    gridstride_named_barrier_sync(__number, __count, __file, __line);
}
GRIDSTRIDE_INLINE void __barrier_sync(unsigned __number, GRIDSTRIDE_SITE) {
    if (__number == 0) __syncthreads(__file, __line);
    else gridstride_named_barrier_sync(__number, 0, __file, __line);
}

// Called where code may be polling memory; a thread that calls it often, with nobody in between, yields.
GRIDSTRIDE_INLINE void gridstride_spin_hint(GRIDSTRIDE_SITE) {
    gridstride_block* __block = gridstride_current_block();
    gridstride_thread* __self = __block->current_thread;
    if (__block->polling_thread != __self) {
        __block->polling_thread = __self;
        __block->polling_count = 0;
    } else if (__builtin_expect(++__block->polling_count >= 32, 0)) {
        __block->polling_count = 0;
        gridstride_yield(__file, __line);
    }
}

GRIDSTRIDE_INLINE void __nanosleep(unsigned, GRIDSTRIDE_SITE) { gridstride_yield(__file, __line); }

GRIDSTRIDE_INLINE void __threadfence(GRIDSTRIDE_SITE) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    gridstride_spin_hint(__file, __line);
}
GRIDSTRIDE_INLINE void __threadfence_block(GRIDSTRIDE_SITE) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    gridstride_spin_hint(__file, __line);
}
GRIDSTRIDE_INLINE void __threadfence_system(GRIDSTRIDE_SITE) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    gridstride_spin_hint(__file, __line);
}

// ---- shared memory ----

static gridstride_shared_slot* gridstride_shared_slots;
static unsigned gridstride_static_shared_bytes;

template <class __tag>
auto gridstride_function_of(int) -> decltype(__tag::function()) {
    return __tag::function();
}
template <class>
const char* gridstride_function_of(long) {
    return "";
}

// Its constructor runs while the library loads and finds the variable a place in the arena.
struct gridstride_shared_place : gridstride_shared_slot {
    gridstride_shared_place(const char* __function, unsigned __size, unsigned __alignment) {
        function = __function;
        size = __size;
        alignment = __alignment;
        offset = (gridstride_static_shared_bytes + __alignment - 1) / __alignment * __alignment;
        gridstride_static_shared_bytes = offset + __size;
        next = gridstride_shared_slots;
        gridstride_shared_slots = this;
    }
};

template <class __tag, class __type>
struct gridstride_shared_variable {
    static gridstride_shared_place place;
};

template <class __tag, class __type>
gridstride_shared_place gridstride_shared_variable<__tag, __type>::place{
    gridstride_function_of<__tag>(0), sizeof(__type),
    unsigned(alignof(__type) > alignof(__tag) ? alignof(__type) : alignof(__tag))};

template <class __tag, class __type>
GRIDSTRIDE_INLINE __type& gridstride_shared() {
    return *reinterpret_cast<__type*>(
        gridstride_current_block()->static_shared + gridstride_shared_variable<__tag, __type>::place.offset);
}

template <class __type>
GRIDSTRIDE_INLINE __type& gridstride_dynamic_shared() {
    return *reinterpret_cast<__type*>(gridstride_current_block()->dynamic_shared);
}

// ---- failures and output ----

[[noreturn]] GRIDSTRIDE_INLINE void gridstride_fail(
    int __code, const char* __what, const char* __file, unsigned __line, const char* __function) {
    gridstride_runtime->fail(gridstride_current_block(), __code, __what, __file, __line, __function);
    __builtin_unreachable();
}

[[noreturn]] GRIDSTRIDE_INLINE void __trap(GRIDSTRIDE_SITE) {
    gridstride_fail(GRIDSTRIDE_TRAP, "__trap()", __file, __line, nullptr);
}
[[noreturn]] GRIDSTRIDE_INLINE void __brkpt(GRIDSTRIDE_SITE) {
    gridstride_fail(GRIDSTRIDE_TRAP, "__brkpt()", __file, __line, nullptr);
}

#ifdef NDEBUG
#define assert(expression) (static_cast<void>(0))
#else
#define assert(...) \
    (static_cast<bool>(__VA_ARGS__) \
         ? static_cast<void>(0) \
         : gridstride_fail(GRIDSTRIDE_ASSERTION, #__VA_ARGS__, __FILE__, __LINE__, __func__))
#endif

// The text appears on C's stdout when the launch ends. Returns the number of arguments, as on the device.
template <class... __types>
GRIDSTRIDE_INLINE int gridstride_printf(const char* __format, __types... __arguments) {
    if (!__format) return -1;
    gridstride_runtime->print(gridstride_current_block(), __format, __arguments...);
    return sizeof...(__types);
}
#define printf gridstride_printf

#endif
