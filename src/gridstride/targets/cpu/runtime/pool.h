// The launches that go on, the workers, and the threads that help callers with their launches.
//
// A launch is the business of its caller, who runs blocks until none is left. Launches with enough work
// invite pool threads; these take whichever launch has blocks that nobody took.
#ifndef GRIDSTRIDE_RUNTIME_POOL_H
#define GRIDSTRIDE_RUNTIME_POOL_H

#include <pthread.h>
#include <signal.h>

#include "signals.h"
#include "worker.h"

namespace gridstride {

class Pool {
public:
    // Get ready, before every launch: others install signal handlers, and after a fork no thread is there.
    void start() {
        if (__atomic_load_n(&process, __ATOMIC_ACQUIRE) != getpid()) restart();
        install_handlers();
    }

    // Run a launch to its end; false if there is no memory to begin.
    bool run(Launch& launch) {
        Worker* worker = borrow();
        if (!worker) return false;
        enter(launch);
        {
            HandlerStack stack(handler_stack(worker));
            worker->begin(launch, true);
            if (launch.is_tried) try_out(launch, *worker);
            while (worker->step()) {}
            worker->end();
        }
        withdraw(launch);
        give_back(worker);
        return true;
    }

    void set_thread_limit(unsigned count) { __atomic_store_n(&thread_limit, count, __ATOMIC_RELAXED); }
    unsigned get_thread_limit() const { return __atomic_load_n(&thread_limit, __ATOMIC_RELAXED); }

    // Call `look` with all launches and all workers, undisturbed.
    template <class Look>
    void inspect(Look look) {
        Locked locked(lock);
        look(launches, workers);
    }

    // Ask pool threads to help; they come if they have nothing else to do. The caller inspects.
    void invite(Launch& launch) {
        const unsigned long wanted = minimum<unsigned long>(get_thread_limit(), launch.piece_count) - 1;
        launch.wants_helpers = true;
        while (helper_threads < wanted && start_thread(&Pool::help)) ++helper_threads;
        __atomic_fetch_add(&invitations, 1u, __ATOMIC_RELEASE);
        futex_wake(&invitations, int(wanted));
    }

    // Sleep until there are launches, if there are none.
    void wait_for_launches() {
        {
            Locked locked(lock);
            if (launches) return;
            monitor_sleeps = 1;
        }
        while (__atomic_load_n(&monitor_sleeps, __ATOMIC_ACQUIRE)) futex_wait(&monitor_sleeps, 1);
    }

private:
    Lock lock;
    Launch* launches = nullptr;
    Worker* workers = nullptr;       // all; they are never freed
    Worker* idle_workers = nullptr;  // that callers can borrow
    unsigned helper_threads = 0;
    unsigned thread_limit = 1;
    unsigned invitations = 0;        // a futex
    unsigned monitor_sleeps = 0;     // a futex
    int process = 0;                 // that the threads belong to

    void restart() {
        static Lock starting;
        static int starting_process = 0;
        if (starting_process != getpid()) {  // only the one thread that a fork leaves gets here
            starting.reset();
            starting_process = getpid();
        }
        Locked locked(starting);
        if (process == getpid()) return;
        lock.reset();
        handlers_lock.reset();
        launches = nullptr;
        workers = idle_workers = nullptr;
        helper_threads = 0;
        monitor_sleeps = 0;
        start_thread(&Pool::monitor);
        __atomic_store_n(&process, getpid(), __ATOMIC_RELEASE);
    }

    bool start_thread(void* (*function)(void*)) {
        sigset_t all, before;
        sigfillset(&all);
        for (int signal : FAULTS) sigdelset(&all, signal);
        sigdelset(&all, POKE);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 256 << 10);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_t thread;
        const bool is_started = pthread_create(&thread, &attributes, function, this) == 0;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_attr_destroy(&attributes);
        return is_started;
    }

    static void* monitor(void* pool);  // monitor.h

    static void* help(void* pool) {
        static_cast<Pool*>(pool)->help_for_ever();
        return nullptr;
    }

    void help_for_ever() {
        Worker* worker = borrow();
        if (!worker) return;
        HandlerStack stack(handler_stack(worker));
        for (;;) {
            const unsigned seen = __atomic_load_n(&invitations, __ATOMIC_ACQUIRE);
            if (Launch* launch = join()) {
                worker->work(*launch);
                part(*launch);
            } else {
                futex_wait(&invitations, seen);
            }
        }
    }

    // ---- launches ----

    void enter(Launch& launch) {
        Locked locked(lock);
        launch.next = launches;
        launches = &launch;
        if (launch.is_on_main_thread) __atomic_store_n(&is_interrupted, 0u, __ATOMIC_RELAXED);
        const bool is_nested = gridstride_running_block != nullptr;
        if (!is_nested && launch.can_use_helpers(get_thread_limit()) && launch.is_large()) {
            launch.is_tried = launch.function->kernel->may_contend && !launch.is_cooperative;
            if (!launch.is_tried) invite(launch);
        }
        if (!monitor_sleeps) return;
        __atomic_store_n(&monitor_sleeps, 0u, __ATOMIC_RELEASE);
        futex_wake(&monitor_sleeps, 1);
    }

    // Where threads meet at the same memory, helpers may make them slower: compare what pieces take of the processor's
    // time with helpers and without. Pieces that only happen to take longer do so without helpers as well.
    void try_out(Launch& launch, Worker& worker) {
        constexpr long LONG_ENOUGH = NANOSECONDS / 10000;
        constexpr int PATIENCE = 10;
        const unsigned long chunk = launch.chunk;
        __atomic_store_n(&launch.chunk, 1ul, __ATOMIC_RELAXED);
        const long alone = worker.cost(LONG_ENOUGH);
        invite_again(launch);
        unsigned helpers = 0;
        for (int i = 0; i < PATIENCE && !helpers && launch.has_pieces(); ++i) {
            worker.cost(LONG_ENOUGH / PATIENCE);
            helpers = __atomic_load_n(&launch.helper_count, __ATOMIC_RELAXED);
        }
        const long together = helpers ? worker.cost(LONG_ENOUGH) : 0;
        if (together > alone * (1 + helpers)) {
            __atomic_store_n(&launch.is_for_caller, 1u, __ATOMIC_RELAXED);
            worker.cost(LONG_ENOUGH);  // while the helpers finish theirs
            const long again = worker.cost(LONG_ENOUGH);
            if (together <= again * (1 + helpers)) invite_again(launch);
        }
        __atomic_store_n(&launch.chunk, chunk, __ATOMIC_RELAXED);
    }

    void invite_again(Launch& launch) {
        Locked locked(lock);
        __atomic_store_n(&launch.is_for_caller, 0u, __ATOMIC_RELAXED);
        invite(launch);
    }

    Launch* join() {
        Locked locked(lock);
        for (Launch* launch = launches; launch; launch = launch->next) {
            if (!launch->may_have_helpers() || !launch->has_pieces()) continue;
            if (launch->helper_count + 1 >= get_thread_limit()) continue;
            __atomic_fetch_add(&launch->helper_count, 1u, __ATOMIC_RELAXED);
            return launch;
        }
        return nullptr;
    }

    void part(Launch& launch) {
        unsigned* count = &launch.helper_count;
        if (__atomic_sub_fetch(count, 1u, __ATOMIC_RELEASE) == 0) futex_wake(count, 1);
    }

    // Wait for those that still work on a launch, then take it off the list: until then the monitor sees it.
    void withdraw(Launch& launch) {
        {
            Locked locked(lock);
            launch.is_closed = true;
        }
        for (int i = 0; i < 1000 && __atomic_load_n(&launch.helper_count, __ATOMIC_ACQUIRE); ++i) relax_processor();
        while (const unsigned count = __atomic_load_n(&launch.helper_count, __ATOMIC_ACQUIRE))
            futex_wait(&launch.helper_count, count);
        Locked locked(lock);
        Launch** link = &launches;
        while (*link != &launch) link = &(*link)->next;
        *link = launch.next;
    }

    // ---- workers ----

    static char* handler_stack(Worker* worker) { return reinterpret_cast<char*>(worker + 1); }

    Worker* borrow() {
        {
            Locked locked(lock);
            if (Worker* worker = idle_workers) {
                idle_workers = worker->next_idle;
                return worker;
            }
        }
        auto* worker = static_cast<Worker*>(map_pages(sizeof(Worker) + HandlerStack::SIZE));
        if (!worker) return nullptr;
        Locked locked(lock);
        worker->next = workers;
        workers = worker;
        return worker;
    }

    void give_back(Worker* worker) {
        Locked locked(lock);
        worker->next_idle = idle_workers;
        idle_workers = worker;
    }
};

static Pool pool;

}  // namespace gridstride
#endif
