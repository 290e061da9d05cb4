// The records of failed launches and their texts: what happened where, and which threads wait at which lines.
#ifndef GRIDSTRIDE_RUNTIME_FAILURES_H
#define GRIDSTRIDE_RUNTIME_FAILURES_H

#include <gridstride_cpu/collective_kinds.h>

#include "block.h"
#include "text.h"

namespace gridstride {

// ---- places ----

GRIDSTRIDE_COLD inline void write_index(Text& text, unsigned x, unsigned y, unsigned z) {
    text << "(" << x << ", " << y << ", " << z << ")";
}

GRIDSTRIDE_COLD inline void write_thread(Text& text, const Block* block, const gridstride_thread* thread) {
    text << "block ";
    write_index(text, block->block_index.x, block->block_index.y, block->block_index.z);
    text << ", thread ";
    write_index(text, thread->index_x, thread->index_y, thread->index_z);
}

GRIDSTRIDE_COLD inline void write_site(Text& text, const char* file, unsigned line) {
    text << file << ":" << line;
}

// ---- groups of threads ----

// What a thread of an interleaved block does; equal for all threads of a group in a message.
struct Activity {
    enum Kind : unsigned { exited, not_started, running, at_barrier, at_grid_barrier, in_collective, asking } kind;
    const char* file;
    unsigned line;
    unsigned collective, mask;

    bool operator==(const Activity& other) const {
        return kind == other.kind && file == other.file && line == other.line && collective == other.collective &&
               mask == other.mask;
    }
};

GRIDSTRIDE_COLD inline Activity activity_of(const Block* block, const gridstride_thread* thread) {
    const gridstride_warp& warp = block->warps[warp_of(thread)];
    if (!(warp.live_lanes & bit_of(thread))) return {Activity::exited, nullptr, 0, 0, 0};
    if (warp.ready_lanes & bit_of(thread)) {
        const bool has_ended = thread->waiting_line == GRIDSTRIDE_ENDED;  // in the block before
        const bool started = thread == block->current_thread || (thread->stack_pointer && !has_ended);
        return {started ? Activity::running : Activity::not_started, nullptr, 0, 0, 0};
    }
    const char* file = thread->waiting_file;
    const unsigned line = thread->waiting_line;
    const gridstride_exchange& exchange = block->exchanges[warp_of(thread)];
    if (exchange.asking_lanes & bit_of(thread)) return {Activity::asking, file, line, 0, 0};
    for (const gridstride_gathering& gathering : exchange.gatherings)
        if (gathering.arrived_lanes & bit_of(thread))
            return {Activity::in_collective, file, line, gathering.collective_kind, gathering.lane_mask};
    // Both barriers hold all threads of the block: which one this thread waits at follows from the counts.
    const bool is_grid = block->grid_arrivals && !block->arrived_threads;
    return {is_grid ? Activity::at_grid_barrier : Activity::at_barrier, file, line, 0, 0};
}

GRIDSTRIDE_COLD inline void write_activity(Text& text, const Activity& activity) {
    switch (activity.kind) {
        case Activity::exited: text << "exited"; return;
        case Activity::not_started: text << "not started"; return;
        case Activity::running: text << "running"; return;
        case Activity::at_barrier: text << "waiting at __syncthreads"; break;
        case Activity::at_grid_barrier: text << "waiting for the grid to synchronize"; break;
        case Activity::asking: text << "waiting in __activemask"; break;
        case Activity::in_collective:
            text << "waiting in " << gridstride_collective_name(activity.collective) << " with mask ";
            text.hexadecimal(activity.mask);
    }
    text << ", ";
    write_site(text, activity.file, activity.line);
}

// Write the threads with one activity as ranges of their indices.
GRIDSTRIDE_COLD inline void write_ranges(Text& text, const Block* block, const Activity& activity) {
    constexpr unsigned MAX_RANGES = 6;
    unsigned ranges = 0;
    const gridstride_thread *thread = block->threads, *end = thread + block->thread_count;
    while (thread < end) {
        if (!(activity_of(block, thread) == activity)) {
            ++thread;
            continue;
        }
        const gridstride_thread* first = thread;
        while (thread < end && activity_of(block, thread) == activity) ++thread;
        if (ranges++) text << ", ";
        if (ranges > MAX_RANGES) {
            text << "...";
            return;
        }
        write_index(text, first->index_x, first->index_y, first->index_z);
        if (thread - first == 1) continue;
        const gridstride_thread* last = thread - 1;
        text << " to ";
        write_index(text, last->index_x, last->index_y, last->index_z);
    }
}

// One line for each group of threads that do the same.
GRIDSTRIDE_COLD inline void write_groups(Text& text, const Block* block) {
    constexpr unsigned MAX_GROUPS = 16;
    Activity seen[MAX_GROUPS];
    unsigned groups = 0;
    for (unsigned rank = 0; rank < block->thread_count; ++rank) {
        const Activity activity = activity_of(block, block->threads + rank);
        bool is_new = true;
        for (unsigned i = 0; i < groups; ++i) is_new = is_new && !(seen[i] == activity);
        if (!is_new) continue;
        if (groups == MAX_GROUPS) {
            text << "\n  ...";
            return;
        }
        seen[groups++] = activity;
        unsigned count = 0;
        for (unsigned other = rank; other < block->thread_count; ++other)
            count += activity_of(block, block->threads + other) == activity;
        text << "\n  " << count << (count == 1 ? " thread " : " threads ");
        write_activity(text, activity);
        text << ": ";
        write_ranges(text, block, activity);
    }
}

// ---- records ----

GRIDSTRIDE_COLD inline Text begin_failure(Launch& launch, unsigned code) {
    launch.failure = gridstride_failure{};
    launch.failure.code = int(code);
    Text text(launch.failure.message);
    text << "kernel `" << launch.function->name << "`: ";
    return text;
}

GRIDSTRIDE_COLD inline void record_block(gridstride_failure& failure, const Block* block) {
    failure.block[0] = block->block_index.x;
    failure.block[1] = block->block_index.y;
    failure.block[2] = block->block_index.z;
}

GRIDSTRIDE_COLD inline void record_thread(gridstride_failure& failure, const gridstride_thread* thread) {
    failure.has_thread = 1;
    failure.thread[0] = thread->index_x;
    failure.thread[1] = thread->index_y;
    failure.thread[2] = thread->index_z;
}

// A failure that the current thread's code asked for.
GRIDSTRIDE_COLD inline void report_failure(Block* block, unsigned code, const char* what, const char* file, unsigned line,
                           const char* function) {
    Launch& launch = *block->launch;
    if (!launch.stop(code) || !launch.claim_description()) return;
    Text text = begin_failure(launch, code);
    record_block(launch.failure, block);
    record_thread(launch.failure, block->current_thread);
    if (code == GRIDSTRIDE_ASSERTION) text << "assertion `" << what << "` failed";
    else text << what;
    if (file) {
        text << " at ";
        write_site(text, file, line);
    }
    if (function) text << " in " << function;
    text << ", ";
    write_thread(text, block, block->current_thread);
}

GRIDSTRIDE_COLD inline void report_divergence(Block* block) {
    Launch& launch = *block->launch;
    if (!launch.stop(GRIDSTRIDE_DIVERGENCE) || !launch.claim_description()) return;
    Text text = begin_failure(launch, GRIDSTRIDE_DIVERGENCE);
    record_block(launch.failure, block);
    text << "no thread of block ";
    write_index(text, block->block_index.x, block->block_index.y, block->block_index.z);
    text << " can go on: they wait for each other at different places. A barrier needs all threads of the block that "
            "have not exited, a warp function all lanes named in its mask, with the same mask";
    write_groups(text, block);
}

GRIDSTRIDE_COLD inline void report_foreign_mask(Block* block, unsigned kind, unsigned mask) {
    char what[256];
    Text text(what);
    text << gridstride_collective_name(kind) << " was called with mask ";
    text.hexadecimal(mask) << ", which does not name the calling lane " << lane_of(block->current_thread);
    const gridstride_thread* self = block->current_thread;
    report_failure(block, GRIDSTRIDE_DIVERGENCE, what, self->waiting_file, self->waiting_line, nullptr);
}

GRIDSTRIDE_COLD inline void write_fault(Text& text, const Fault& fault) {
    switch (fault.code) {
        case GRIDSTRIDE_STACK_OVERFLOW:
            text << "a thread used up its stack of " << Stacks::SIZE / 1024 << " KiB (large local arrays, deep recursion)";
            return;
        case GRIDSTRIDE_ARITHMETIC: text << "integer division by zero, or its result cannot be represented"; return;
        case GRIDSTRIDE_ILLEGAL: text << "illegal instruction"; return;
        case GRIDSTRIDE_BUS: text << "bus error"; break;
        default: text << "invalid memory access"; break;
    }
    if (!fault.has_address) {
        text << " (segmentation fault) at an unknown address";
        return;
    }
    text << " (segmentation fault) at address ";
    text.hexadecimal(fault.address);
    if (fault.address < 4096) text << " (a null pointer)";
}

constexpr const char* DAMAGE =
    "The kernel did not finish, and what it wrote before, perhaps outside of its arrays, stays: memory of this process "
    "may be damaged";

// What the signal handler noted about the current thread of a block.
GRIDSTRIDE_COLD inline void report_fault(Block* block) {
    Launch& launch = *block->launch;
    const Fault& fault = block->fault;
    if (!launch.stop(fault.code) || !launch.claim_description()) return;
    Text text = begin_failure(launch, fault.code);
    record_block(launch.failure, block);
    record_thread(launch.failure, block->current_thread);
    launch.failure.has_address = fault.has_address;
    launch.failure.address = fault.address;
    write_fault(text, fault);
    text << " in ";
    write_thread(text, block, block->current_thread);
    text << ". " << DAMAGE;
}

// A fault in the flat tier that did not come back when its threads ran one by one.
GRIDSTRIDE_COLD inline void report_portion_fault(Launch& launch, const Fault& fault, unsigned long begin, unsigned long end) {
    if (!launch.stop(fault.code) || !launch.claim_description()) return;
    Text text = begin_failure(launch, fault.code);
    launch.failure.has_address = fault.has_address;
    launch.failure.address = fault.address;
    write_fault(text, fault);
    text << " in a thread of blocks " << begin << " to " << end - 1 << " (counted along x, then y, then z). "
         << DAMAGE;
}

GRIDSTRIDE_COLD inline void report_unreachable_grid_barrier(Launch& launch, unsigned long waiting, unsigned long finished) {
    if (!launch.stop(GRIDSTRIDE_DIVERGENCE) || !launch.claim_description()) return;
    begin_failure(launch, GRIDSTRIDE_DIVERGENCE)
        << waiting << " blocks wait for the grid to synchronize, but " << finished << " blocks have ended without it";
}

// Why a launch was ended from outside, if it was; `block` is one that ran or waited then, or null.
GRIDSTRIDE_COLD inline void report_stop(Launch& launch, const Block* block) {
    const bool is_from_outside = launch.stop_code == GRIDSTRIDE_INTERRUPTED || launch.stop_code == GRIDSTRIDE_TIMEOUT;
    if (!is_from_outside || !launch.claim_description()) return;
    Text text = begin_failure(launch, launch.stop_code);
    if (launch.stop_code == GRIDSTRIDE_INTERRUPTED) text << "interrupted";
    else text << "ended because no block finished within the launch time-out";
    text << "; not all blocks ran";
    if (!block) return;
    record_block(launch.failure, block);
    text << ". Block ";
    write_index(text, block->block_index.x, block->block_index.y, block->block_index.z);
    if (block->is_flat) {
        text << " and the " << block->portion_blocks - 1 << " behind it were running";
    } else if (block->is_interleaved) {
        text << " had";
        write_groups(text, block);
    } else {
        text << " was running its thread ";
        const gridstride_thread* thread = block->current_thread;
        write_index(text, thread->index_x, thread->index_y, thread->index_z);
    }
}

// A launch that could not begin.
GRIDSTRIDE_COLD inline int refuse(Launch& launch, unsigned code, const char* why) {
    launch.stop(code);
    if (launch.claim_description()) begin_failure(launch, code) << why;
    return int(code);
}

}  // namespace gridstride
#endif
