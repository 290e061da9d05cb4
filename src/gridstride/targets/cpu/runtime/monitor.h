// The monitor: a thread that, while there are launches, looks every few milliseconds whether they get on.
#ifndef GRIDSTRIDE_RUNTIME_MONITOR_H
#define GRIDSTRIDE_RUNTIME_MONITOR_H

#include "pool.h"

namespace gridstride {

constexpr long TICK = NANOSECONDS / 100;
constexpr unsigned QUIET_TICKS = 100;  // without a launch, before the monitor goes to sleep
constexpr long STALL = NANOSECONDS / 5;  // without a finished block, before blocks are made to take turns

static long launch_timeout;  // nanoseconds; 0: never

inline void poke(const Worker& worker) { syscall(SYS_tgkill, getpid(), worker.thread, POKE); }

// A thread that ran since the last look gives way to the others of its block; a stopped one ends.
inline void look_at(Worker& worker, const Launch& launch) {
    const Block* block = __atomic_load_n(&worker.running, __ATOMIC_RELAXED);
    const gridstride_thread* thread = block ? block->current_thread : nullptr;
    if (launch.is_stopped() || (thread && thread == worker.seen)) poke(worker);
    worker.seen = thread;
}

inline void look_at(Launch& launch, unsigned long progress, long now) {
    if (launch.is_stopped()) {
        futex_wake(&launch.grid_generation, 1 << 30);
        return;
    }
    if (!launch.seen_at || progress != launch.seen_progress) {
        launch.seen_progress = progress;
        launch.seen_at = now;
    }
    __atomic_store_n(&launch.is_stalled, now - launch.seen_at > STALL, __ATOMIC_RELAXED);
    const long limit = __atomic_load_n(&launch_timeout, __ATOMIC_RELAXED);
    if (limit && now - launch.seen_at > limit) launch.stop(GRIDSTRIDE_TIMEOUT);
}

inline void look_at_all(Pool& pool, Launch* launches, Worker* workers) {
    const long now = monotonic_time();
    const bool interrupt = __atomic_exchange_n(&is_interrupted, 0u, __ATOMIC_ACQUIRE);
    for (Launch* launch = launches; launch; launch = launch->next) {
        if (interrupt && launch->is_on_main_thread) launch->stop(GRIDSTRIDE_INTERRUPTED);
        unsigned long progress = 0;
        for (Worker* worker = workers; worker; worker = worker->next) {
            if (__atomic_load_n(&worker->launch, __ATOMIC_ACQUIRE) != launch) continue;
            progress += worker->progress;
            look_at(*worker, *launch);
        }
        look_at(*launch, progress, now);
        // It looked small, but it is not done yet.
        if (!launch->wants_helpers && !launch->is_closed && launch->can_use_helpers(pool.get_thread_limit())) pool.invite(*launch);
    }
}

inline void* Pool::monitor(void* pool_pointer) {
    auto& pool = *static_cast<Pool*>(pool_pointer);
    for (unsigned quiet = 0;; ++quiet) {
        if (quiet >= QUIET_TICKS) pool.wait_for_launches();
        const timespec tick = {0, TICK};
        nanosleep(&tick, nullptr);
        pool.inspect([&](Launch* launches, Worker* workers) {
            if (launches) quiet = 0;
            look_at_all(pool, launches, workers);
        });
    }
}

}  // namespace gridstride
#endif
