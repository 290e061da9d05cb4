// Which thread of a block goes on: the parts of waiting that kernels do not have inline, the end of threads,
// and what remains when no thread can go on.
//
// Everything here runs on the fiber of the current thread. A block leaves the processor by switching to the
// worker that resumed it, with an `Outcome`.
#ifndef GRIDSTRIDE_RUNTIME_SCHEDULER_H
#define GRIDSTRIDE_RUNTIME_SCHEDULER_H

#include "block.h"
#include "failures.h"
#include "machine.h"

namespace gridstride {

inline Block* runtime_block(gridstride_block* block) { return static_cast<Block*>(block); }

inline gridstride_thread* first_of(Block* block, unsigned warp) {
    return block->threads + warp * GRIDSTRIDE_WARP_SIZE + __builtin_ctz(block->warps[warp].ready_lanes);
}

// ---- switching ----

// Leave the processor; returns if the block is resumed with the calling thread.
__attribute__((noinline)) inline void leave(Block* block, Outcome outcome, void** save) {
    block->outcome = outcome;
    gridstride_switch(save, block->worker_stack_pointer);
}

[[noreturn]] inline void leave_for_good(Block* block, Outcome outcome) {
    void* abandoned;
    leave(block, outcome, &abandoned);
    __builtin_unreachable();
}

[[noreturn]] inline void fail(Block* block, unsigned code, const char* what, const char* file, unsigned line,
                              const char* function) {
    report_failure(block, code, what, file, line, function);
    leave_for_good(block, Outcome::failed);
}

inline unsigned take_fiber(Block* block) {
    return block->idle_count ? block->idle_fibers[--block->idle_count] : block->fiber_count++;
}

// Find a thread that was not started a stack that begins with it.
inline void start(Block* block, gridstride_thread* thread) {
    thread->fiber_number = take_fiber(block);
    char* top = block->stacks.top(thread->fiber_number);
    if (!top) fail(block, GRIDSTRIDE_OUT_OF_MEMORY, "no memory for the stacks of its threads", nullptr, 0, nullptr);
    thread->stack_pointer = new_fiber(top, block->run);
}

inline gridstride_thread* startable(Block* block, gridstride_thread* thread) {
    if (!thread->stack_pointer && thread != block->current_thread) start(block, thread);
    return thread;
}

// ---- the active lanes of a warp ----

// Release the lanes that asked who is active: those that asked at the same place are.
__attribute__((noinline)) inline void answer_asking(Block* block, unsigned warp) {
    gridstride_exchange& exchange = block->exchanges[warp];
    const gridstride_thread* lanes = block->threads + warp * GRIDSTRIDE_WARP_SIZE;
    for (unsigned asking = exchange.asking_lanes; asking;) {
        const gridstride_thread& first = lanes[__builtin_ctz(asking)];
        unsigned together = 0;
        for (unsigned rest = asking; rest; rest &= rest - 1) {
            const gridstride_thread& other = lanes[__builtin_ctz(rest)];
            if (other.waiting_line == first.waiting_line && other.waiting_file == first.waiting_file)
                together |= rest & -rest;
        }
        for (unsigned rest = together; rest; rest &= rest - 1) exchange.participations[__builtin_ctz(rest)] = {together, 0};
        asking &= ~together;
    }
    block->warps[warp].ready_lanes |= exchange.asking_lanes;
    exchange.asking_lanes = 0;
    block->asking_warps &= ~(1u << warp);
}

inline bool is_asking(const Block* block, unsigned warp) { return block->asking_warps >> warp & 1; }

// ---- choosing ----

// The next thread that can go on, in ring order from `self`, which comes last; null if there is none.
// A warp is left for the next one when none of its threads can go on, after many rounds, or if so wanted.
inline gridstride_thread* next_ready(Block* block, gridstride_thread* self, bool stay_in_warp) {
    constexpr unsigned ROUNDS = 64;
    const unsigned own = warp_of(self), warps = block->warp_count();
    const unsigned later = block->warps[own].ready_lanes & (~1u << lane_of(self));
    if (later) return self + (__builtin_ctz(later) - lane_of(self));
    const bool has_ready = block->warps[own].ready_lanes, is_left = !has_ready || !stay_in_warp;
    if (!has_ready || ++block->rounds % ROUNDS == 0) stay_in_warp = false;
    // Lanes that are ready may be on their way to ask too.
    if (is_asking(block, own) && (is_left || block->rounds - block->exchanges[own].asked_at >= ROUNDS)) {
        answer_asking(block, own);
        stay_in_warp = true;
    }
    if (stay_in_warp) return first_of(block, own);
    for (unsigned step = 1; step <= warps; ++step) {
        const unsigned warp = (own + step) % warps;
        if (block->warps[warp].ready_lanes) return first_of(block, warp);
    }
    return nullptr;
}

// No thread can go on: the block waits for the grid, or for ever.
inline Outcome stuck(Block* block) {
    if (block->grid_arrivals && block->grid_arrivals == block->live_threads) return Outcome::waits_for_grid;
    report_divergence(block);
    return Outcome::failed;
}

// ---- services ----

// A thread goes on with the fiber that was another one's.
inline void take_over(Block* block, gridstride_thread* thread, gridstride_thread* from) {
    if (thread->stack_pointer) block->idle_fibers[block->idle_count++] = (unsigned short)thread->fiber_number;
    thread->fiber_number = from->fiber_number;
    from->stack_pointer = nullptr;
}

__attribute__((noinline)) inline void interleave(Block* block) {
    gridstride_thread* self = block->current_thread;
    const unsigned started = self->linear_rank;
    for (unsigned warp = 0; warp < block->warp_count(); ++warp) {
        const unsigned first = warp * GRIDSTRIDE_WARP_SIZE;
        unsigned lanes = ~0u;
        if (first + GRIDSTRIDE_WARP_SIZE > block->thread_count) lanes = (1u << (block->thread_count - first)) - 1;
        if (first + GRIDSTRIDE_WARP_SIZE <= started) lanes = 0;
        else if (first < started) lanes &= ~0u << (started - first);
        block->warps[warp] = {lanes, lanes};
    }
    block->live_threads = block->thread_count - started;
    block->arrived_threads = 0;
    block->true_votes = 0;
    block->grid_arrivals = 0;
    block->yields = 0;
    if (self != block->threads) take_over(block, self, block->threads);
    block->is_interleaved = 1;
}

// The thread to go on with, in ring order. If there is none, the block leaves the processor in here, and the
// current thread goes on when it is its turn.
__attribute__((noinline)) inline gridstride_thread* choose(gridstride_block* of_kernel) {
    Block* block = runtime_block(of_kernel);
    gridstride_thread* self = block->current_thread;
    block->yields = 0;
    if (gridstride_thread* next = next_ready(block, self, true)) return startable(block, next);
    leave(block, stuck(block), &self->stack_pointer);
    return self;
}

inline gridstride_thread* yield(gridstride_block* of_kernel) {
    Block* block = runtime_block(of_kernel);
    gridstride_thread* self = block->current_thread;
    if (block->is_flat) return self;
    if (!block->is_interleaved) interleave(block);
    gridstride_thread* next = next_ready(block, self, false);
    const bool all_yield = ++block->yields > 2 * block->thread_count;
    if (next != self && !all_yield) return startable(block, next);
    block->yields = 0;
    leave(block, Outcome::polls, &self->stack_pointer);
    return self;
}

// ---- the barrier ----

inline void release_barrier(Block* block) {
    block->votes[block->barrier_generation % 2] = {block->true_votes, block->arrived_threads};
    ++block->barrier_generation;
    block->arrived_threads = 0;
    block->true_votes = 0;
    for (unsigned warp = 0; warp < block->warp_count(); ++warp)
        block->warps[warp].ready_lanes = block->warps[warp].live_lanes;
}

// The last thread arrived, or the first one of a sequential block.
inline gridstride_thread* complete_barrier(gridstride_block* of_kernel) {
    Block* block = runtime_block(of_kernel);
    gridstride_thread* self = block->current_thread;
    if (!block->is_interleaved) {
        const unsigned votes = block->true_votes;
        interleave(block);
        block->arrived_threads = 1;
        block->true_votes = votes;
        if (block->live_threads > 1) {
            block->warps[warp_of(self)].ready_lanes &= ~bit_of(self);
            return choose(block);
        }
    }
    release_barrier(block);
    return self;
}

// ---- collectives of a warp ----

inline bool is_complete(const gridstride_gathering& gathering, unsigned live_lanes) {
    return (gathering.lane_mask & live_lanes & ~gathering.arrived_lanes) == 0;
}

inline void release_gathering(Block* block, unsigned warp, gridstride_gathering& gathering) {
    gridstride_exchange& exchange = block->exchanges[warp];
    const unsigned arrived = gathering.arrived_lanes;
    const gridstride_participation participation = {arrived, exchange.slot_choice};
    if (arrived == ~0u)
        for (gridstride_participation& lane : exchange.participations) lane = participation;
    else
        for (unsigned lanes = arrived; lanes; lanes &= lanes - 1)
            exchange.participations[__builtin_ctz(lanes)] = participation;
    block->warps[warp].ready_lanes |= arrived;
    gathering = {};
    --block->gathering_count;
}

// The gathering of this kind and mask that is going on, or else an unused one.
inline gridstride_gathering& gathering_for(Block* block, unsigned warp, unsigned kind, unsigned mask) {
    gridstride_exchange& exchange = block->exchanges[warp];
    unsigned unused = exchange.gathering_limit;  // less than 32: each of the other lanes waits in at most one
    for (unsigned i = 0; i < exchange.gathering_limit; ++i) {
        const gridstride_gathering& gathering = exchange.gatherings[i];
        if (gathering.lane_mask == mask && gathering.collective_kind == kind) return exchange.gatherings[i];
        if (!gathering.lane_mask) unused = minimum(unused, i);
    }
    exchange.gathering_limit = maximum(exchange.gathering_limit, unused + 1);
    exchange.gatherings[unused] = {kind, mask, 0};
    ++block->gathering_count;
    return exchange.gatherings[unused];
}

inline gridstride_thread* gather(gridstride_block* of_kernel, unsigned kind, unsigned mask) {
    Block* block = runtime_block(of_kernel);
    gridstride_thread* self = block->current_thread;
    if (!block->is_interleaved) interleave(block);
    if (!mask) mask = ~0u;  // undefined, but in use: nobody means none of them
    if (!(mask & bit_of(self))) {
        report_foreign_mask(block, kind, mask);
        leave_for_good(block, Outcome::failed);
    }
    gridstride_warp& warp = block->warps[warp_of(self)];
    gridstride_gathering& gathering = gathering_for(block, warp_of(self), kind, mask);
    gathering.arrived_lanes |= bit_of(self);
    // Even the last one waits for its turn: so all lanes read before one publishes twice.
    if (is_complete(gathering, warp.live_lanes)) release_gathering(block, warp_of(self), gathering);
    else warp.ready_lanes &= ~bit_of(self);
    return choose(block);
}

inline gridstride_thread* ask_active_lanes(gridstride_block* of_kernel) {
    Block* block = runtime_block(of_kernel);
    gridstride_thread* self = block->current_thread;
    if (!block->is_interleaved) interleave(block);
    gridstride_exchange& exchange = block->exchanges[warp_of(self)];
    if (!exchange.asking_lanes) exchange.asked_at = block->rounds;
    exchange.asking_lanes |= bit_of(self);
    block->asking_warps |= 1u << warp_of(self);
    block->warps[warp_of(self)].ready_lanes &= ~bit_of(self);
    return choose(block);
}

// ---- the grid barrier ----

inline gridstride_thread* synchronize_grid(gridstride_block* of_kernel) {
    Block* block = runtime_block(of_kernel);
    gridstride_thread* self = block->current_thread;
    if (!block->launch->is_cooperative)
        fail(block, GRIDSTRIDE_UNSUPPORTED, "the grid can only synchronize in a cooperative launch",
             self->waiting_file, self->waiting_line, nullptr);
    if (!block->is_interleaved) interleave(block);
    ++block->grid_arrivals;
    block->warps[warp_of(self)].ready_lanes &= ~bit_of(self);
    return choose(block);
}

inline void release_from_grid(Block* block) {
    block->grid_arrivals = 0;
    for (unsigned warp = 0; warp < block->warp_count(); ++warp)
        block->warps[warp].ready_lanes = block->warps[warp].live_lanes;
}

// ---- the end of a thread ----

// What waits only for threads that are still to come may be complete without the one that ended.
inline void release_completed(Block* block, unsigned warp) {
    if (block->arrived_threads && block->arrived_threads == block->live_threads) release_barrier(block);
    if (!block->gathering_count) return;
    gridstride_exchange& exchange = block->exchanges[warp];
    for (unsigned i = 0; i < exchange.gathering_limit; ++i) {
        gridstride_gathering& gathering = exchange.gatherings[i];
        if (gathering.lane_mask && is_complete(gathering, block->warps[warp].live_lanes))
            release_gathering(block, warp, gathering);
    }
}

// The thread to go on with: on the current fiber if it has none of its own.
inline gridstride_thread* successor(gridstride_block* of_kernel) {
    Block* block = runtime_block(of_kernel);
    gridstride_thread* self = block->current_thread;
    block->yields = 0;
    if (block->live_threads == 0) {
        leave(block, Outcome::finished, &self->stack_pointer);
        return self;
    }
    release_completed(block, warp_of(self));
    gridstride_thread* next = next_ready(block, self, true);
    if (!next) {
        leave(block, stuck(block), &self->stack_pointer);
        return self;
    }
    if (!next->stack_pointer) take_over(block, next, self);
    return next;
}

inline void end_sequential(gridstride_block* of_kernel) {
    Block* block = runtime_block(of_kernel);
    leave(block, Outcome::finished, &block->threads->stack_pointer);
}

}  // namespace gridstride
#endif
