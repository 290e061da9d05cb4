// A worker runs blocks of a launch on one OS thread: a pool thread's own, or one that a caller borrowed.
//
// Usually it runs one block after the other. A block that waits for the grid, or whose threads only poll, stays
// resident while the worker starts other blocks; once there are no new ones, resident blocks take turns.
#ifndef GRIDSTRIDE_RUNTIME_WORKER_H
#define GRIDSTRIDE_RUNTIME_WORKER_H

#include "portion.h"
#include "scheduler.h"

namespace gridstride {

class Worker {
public:
    // Read by the monitor.
    Launch* launch;
    Block* running;
    int thread;
    unsigned long progress;          // blocks finished in this launch
    const gridstride_thread* seen;   // the monitor's: current thread of the running block at its last look
    Worker* next;                    // in the pool's list of all workers
    Worker* next_idle;

    // Run blocks of a launch until none is left or it is stopped.
    void work(Launch& its_launch) {
        begin(its_launch, false);
        while (step()) {}
        end();
    }

    void begin(Launch& its_launch, bool as_caller) {
        is_caller = as_caller;
        chunk_begin = chunk_end = again_begin = again_end = 0;
        portion_fault.code = 0;
        progress = 0;
        seen = nullptr;
        thread = thread_id();
        __atomic_store_n(&launch, &its_launch, __ATOMIC_RELEASE);
    }

    // False if there is nothing left to do.
    bool step() {
        if (launch->is_stopped()) return false;
        if (Block* block = choose())
            settle(block, resume(block));
        else if (resident_count)
            futex_wait(&launch->grid_generation, residents->grid_generation);
        else
            return false;
        return true;
    }

    // Work for at least so many nanoseconds of processor time; return what a finished piece took of it.
    long cost(long nanoseconds) {
        const long start = processor_time();
        const unsigned long before = progress;
        long used = 0;
        while ((used < nanoseconds || progress == before) && step()) used = processor_time() - start;
        return used / long(maximum(progress - before, 1ul));
    }

    void end() {
        if (resident_count) report_stop(*launch, residents);
        if (portion_fault.code) report_portion_fault(*launch, portion_fault, fault_begin, fault_end);
        while (resident_count) retire(residents);
        trim();
        __atomic_store_n(&launch, nullptr, __ATOMIC_RELEASE);
    }

private:
    static constexpr unsigned MAX_POLLING = 64;  // resident blocks of a launch that is not cooperative
    static constexpr unsigned MAX_SPARE = 2;     // blocks kept between launches

    Block* residents;  // a ring; the next to run
    unsigned resident_count;
    unsigned stalled_turns;      // given while a resident block was preempted
    Block* spares;
    bool is_caller;
    unsigned long chunk_begin, chunk_end;
    unsigned long again_begin, again_end;  // blocks of a portion that fibers must run, since its flat form could not
    Fault portion_fault;                   // whose thread is not known yet; code 0: none
    unsigned long fault_begin, fault_end;  // the blocks of its portion

    // ---- which block ----

    Block* choose() {
        if (Block* block = choose_while_stalled()) return block;
        if (Block* block = admit_new()) return block;
        return next_resident();
    }

    // Start a block that nobody took; null if there is none, or no place.
    Block* admit_new() {
        const bool has_place = resident_count == 0 || launch->is_cooperative || resident_count < MAX_POLLING;
        if (has_place && again_begin < again_end) return admit(again_begin++, false);
        return has_place && take_chunk() ? admit(chunk_begin++, launch->is_flat) : nullptr;
    }

    // The next block of the ring that can go on.
    Block* next_resident() {
        for (unsigned i = 0; i < resident_count; ++i) {
            Block* block = residents;
            residents = block->next;
            if (is_runnable(block)) return block;
        }
        return nullptr;
    }

    // Blocks that were preempted may wait for others, or just be slow. So the first of them has every other turn, and
    // new blocks come in slowly.
    Block* choose_while_stalled() {
        Block* first = first_preempted();
        if (!first) return nullptr;
        constexpr unsigned TURNS_FOR_A_NEW_BLOCK = 16;
        if (++stalled_turns % 2) return first;
        Block* block = stalled_turns % TURNS_FOR_A_NEW_BLOCK == 0 ? admit_new() : nullptr;
        return block ? block : next_resident();
    }

    Block* first_preempted() const {
        Block* first = nullptr;
        Block* block = residents;
        for (unsigned i = 0; i < resident_count; ++i, block = block->next)
            if (block->is_preempted && (!first || block->number() < first->number())) first = block;
        return first;
    }

    bool take_chunk() {
        if (chunk_begin < chunk_end) return true;
        if (!launch->has_pieces() || (!is_caller && !launch->may_have_helpers())) return false;
        const unsigned long chunk = __atomic_load_n(&launch->chunk, __ATOMIC_RELAXED);
        chunk_begin = __atomic_fetch_add(&launch->next_piece, chunk, __ATOMIC_RELAXED);
        chunk_end = minimum(chunk_begin + chunk, launch->piece_count);
        return chunk_begin < launch->piece_count;
    }

    bool is_runnable(const Block* block) const {
        return block->outcome != Outcome::waits_for_grid ||
               block->grid_generation != __atomic_load_n(&launch->grid_generation, __ATOMIC_ACQUIRE);
    }

    // ---- running one ----

    Outcome resume(Block* block) {
        if (!block->is_started) begin(block);
        else if (block->outcome == Outcome::waits_for_grid) leave_grid_barrier(block);
        block->is_preempted = false;
        void* stack_pointer = block->current_thread->stack_pointer;
        Block* interrupted = gridstride_running_block;  // of a launch that this one is nested in
        running = block;
        gridstride_running_block = block;
        gridstride_switch(&block->worker_stack_pointer, stack_pointer);
        gridstride_running_block = interrupted;
        running = nullptr;
        return block->outcome;
    }

    static void begin(Block* block) {
        block->is_started = true;
        if (!block->threads->stack_pointer) start(block, block->threads);
    }

    static void leave_grid_barrier(Block* block) {
        release_from_grid(block);
        unsigned warp = 0;
        while (!block->warps[warp].ready_lanes) ++warp;
        block->current_thread = first_of(block, warp);
    }

    void settle(Block* block, Outcome outcome) {
        switch (outcome) {
            case Outcome::finished:
                ++progress;
                if (block->is_flat && block->is_refused) run_again(block);
                retire(block);
                if (launch->is_cooperative) {
                    __atomic_fetch_add(&launch->finished_blocks, 1ul, __ATOMIC_ACQ_REL);
                    check_grid_barrier(0);
                }
                break;
            case Outcome::waits_for_grid:
                block->grid_generation = __atomic_load_n(&launch->grid_generation, __ATOMIC_ACQUIRE);
                check_grid_barrier(1);
                break;
            case Outcome::polls:
                break;
            case Outcome::failed:
                if (block->fault.code && block->is_flat) locate_fault(block);
                else if (block->fault.code) report_fault(block);
                else report_stop(*launch, block);
        }
    }

    void run_again(const Block* portion) {
        again_begin = portion->number();
        again_end = again_begin + portion->portion_blocks;
    }

    // Find the thread whose fault ended a portion: run its threads one by one. Memory is damaged anyhow.
    void locate_fault(Block* portion) {
        portion_fault = portion->fault;
        launch->drop_pieces();
        chunk_begin = chunk_end;
        run_again(portion);
        fault_begin = again_begin;
        fault_end = again_end;
        retire(portion);
    }

    // Add blocks to the grid barrier and open it if all are there.
    void check_grid_barrier(unsigned long arriving) {
        Launch& grid = *launch;
        const unsigned generation = __atomic_load_n(&grid.grid_generation, __ATOMIC_ACQUIRE);
        const unsigned long waiting = __atomic_add_fetch(&grid.blocks_at_grid_barrier, arriving, __ATOMIC_ACQ_REL);
        const unsigned long finished = __atomic_load_n(&grid.finished_blocks, __ATOMIC_ACQUIRE);
        if (waiting == 0 || waiting + finished < grid.block_count) return;
        if (finished) {
            // Those that finished may have come through this very barrier, after the others had arrived.
            if (generation != __atomic_load_n(&grid.grid_generation, __ATOMIC_ACQUIRE)) return;
            report_unreachable_grid_barrier(grid, waiting, finished);
            return;
        }
        __atomic_store_n(&grid.blocks_at_grid_barrier, 0ul, __ATOMIC_RELAXED);
        __atomic_fetch_add(&grid.grid_generation, 1u, __ATOMIC_RELEASE);
        futex_wake(&grid.grid_generation, 1 << 30);
    }

    // ---- resident blocks ----

    Block* admit(unsigned long number, bool as_portion) {
        Block* block = spares;
        if (block) spares = block->next;
        else block = static_cast<Block*>(map_pages(sizeof(Block)));
        if (!block || !(as_portion ? block->prepare_portion(*launch, number) : block->prepare(*launch, number))) {
            refuse(*launch, GRIDSTRIDE_OUT_OF_MEMORY, "no memory for the threads and the shared memory of its blocks");
            if (block) keep(block);
            return nullptr;
        }
        block->next = resident_count ? residents->next : block;
        if (resident_count) residents->next = block;
        residents = block->next;
        ++resident_count;
        return block;
    }

    void retire(Block* block) {
        Block* before = block;
        while (before->next != block) before = before->next;
        before->next = block->next;
        residents = --resident_count ? before->next : nullptr;
        if (block->outcome != Outcome::finished) block->abandon();
        keep(block);
    }

    void keep(Block* block) {
        block->next = spares;
        spares = block;
    }

    void trim() {
        unsigned kept = 0;
        for (Block** link = &spares; *link;) {
            Block* block = *link;
            if (++kept <= MAX_SPARE) {
                link = &block->next;
                continue;
            }
            *link = block->next;
            block->release();
            unmap_pages(block, sizeof(Block));
        }
    }
};

}  // namespace gridstride
#endif
