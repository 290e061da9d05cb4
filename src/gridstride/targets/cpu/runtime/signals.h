// Signal handlers: faults in kernels, the monitor's pokes, Ctrl-C.
//
// A fault or a stop takes a thread out of its kernel: the handler changes the registers so that the thread
// goes on in its worker, as if the block had left the processor. Nothing is unwound.
#ifndef GRIDSTRIDE_RUNTIME_SIGNALS_H
#define GRIDSTRIDE_RUNTIME_SIGNALS_H

#include <signal.h>

#include "scheduler.h"

namespace gridstride {

// Ignored by default, so that one that comes late does no harm.
constexpr int POKE = SIGURG;
constexpr int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};  // __builtin_trap: one of the last two

static struct sigaction previous_actions[_NSIG];
static bool was_chained[_NSIG];
static siginfo_t* chained_now[_NSIG];
static unsigned is_interrupted;  // Ctrl-C was pressed; for the monitor
static Lock handlers_lock;

inline bool is_fault(int signal) {
    for (int fault : FAULTS)
        if (fault == signal) return true;
    return false;
}

// ---- the handlers that were there before ----

inline void restore_default(int signal) {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
}

// Do what would have happened without us.
inline void chain(int signal, siginfo_t* info, void* context) {
    const struct sigaction& previous = previous_actions[signal];
    const bool was_sent = info->si_code <= 0;
    // Python's faulthandler restores the handler before it, which may be ours, and sends the signal again. And
    // where handlers were installed in turns, each may take the other for the one before it.
    const bool comes_back = (was_sent && was_chained[signal] && is_fault(signal)) || chained_now[signal] == info;
    was_chained[signal] = true;
    chained_now[signal] = info;
    if (previous.sa_flags & SA_SIGINFO && !comes_back) {
        previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN && !comes_back) {
        previous.sa_handler(signal);
    } else if (is_fault(signal) && previous.sa_handler != SIG_IGN) {
        restore_default(signal);
        if (was_sent) syscall(SYS_tgkill, getpid(), thread_id(), signal);  // a fault occurs again by itself
    }
    chained_now[signal] = nullptr;
}

// ---- faults ----

inline Fault classify(const Block* block, int signal, const siginfo_t* info) {
    const char* address = static_cast<const char*>(info->si_addr);
    switch (signal) {
        case SIGFPE:  // only x86-64 faults; aarch64 divides by zero to 0
            return {GRIDSTRIDE_ARITHMETIC, false, 0};
        case SIGILL:
        case SIGTRAP: return {GRIDSTRIDE_ILLEGAL, false, 0};
        case SIGBUS: return {GRIDSTRIDE_BUS, true, reinterpret_cast<unsigned long>(address)};
        default: break;
    }
    if (block->stacks.is_overflow(address)) return {GRIDSTRIDE_STACK_OVERFLOW, false, 0};
    // An address that no pointer can have is not reported by the processor.
    return {GRIDSTRIDE_SEGMENTATION, info->si_code != SI_KERNEL, reinterpret_cast<unsigned long>(address)};
}

inline void take_out(Block* block, void* context) {
    block->outcome = Outcome::failed;
    redirect(static_cast<ucontext_t*>(context), block->worker_stack_pointer);
}

inline void on_fault(int signal, siginfo_t* info, void* context) {
    Block* block = gridstride_running_block;
    if (!block || info->si_code <= 0) {
        chain(signal, info, context);
        return;
    }
    block->fault = classify(block, signal, info);
    take_out(block, context);
}

// ---- pokes ----

// Let the other threads of the block run, and other blocks if none got to its end for long; the handler's frame
// stays on the interrupted thread's stack.
inline void preempt(Block* block) {
    if (block->is_scheduling || block->is_flat) return;
    block->is_scheduling = 1;
    gridstride_thread* self = block->current_thread;
    if (!block->is_interleaved) interleave(block);
    gridstride_thread* next = next_ready(block, self, false);
    if (__atomic_load_n(&block->launch->is_stalled, __ATOMIC_RELAXED)) {
        if (next != self) block->current_thread = startable(block, next);
        block->is_preempted = true;
        leave(block, Outcome::polls, &self->stack_pointer);
    } else if (next != self) {
        gridstride_switch_to(block, self, startable(block, next));
    }
    block->is_scheduling = 0;
}

inline void on_poke(int signal, siginfo_t* info, void* context) {
    Block* block = gridstride_running_block;
    if (!block) {
        chain(signal, info, context);
        return;
    }
    const char* at = interrupted_at(static_cast<ucontext_t*>(context));
    if (at < block->code_begin || at >= block->code_end) return;  // in a library, perhaps with a lock: next time
    const int saved_errno = errno;
    if (block->launch->is_stopped()) take_out(block, context);
    else preempt(block);
    errno = saved_errno;
}

// Ends the launches of the main thread, which is where Python raises KeyboardInterrupt.
inline void on_interrupt(int signal, siginfo_t* info, void* context) {
    chain(signal, info, context);
    __atomic_store_n(&is_interrupted, 1u, __ATOMIC_RELEASE);  // any thread may get the signal
}

// ---- installing ----

typedef void (*Handler)(int, siginfo_t*, void*);

inline bool is_installed(int signal, Handler handler) {
    struct sigaction current;
    sigaction(signal, nullptr, &current);
    return current.sa_flags & SA_SIGINFO && current.sa_sigaction == handler;
}

inline void install(int signal, Handler handler, int flags) {
    if (is_installed(signal, handler)) return;
    struct sigaction action = {};
    sigaction(signal, nullptr, &previous_actions[signal]);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigemptyset(&action.sa_mask);
    was_chained[signal] = false;
    sigaction(signal, &action, nullptr);
}

// Others install handlers at any time (faulthandler.enable()): looked at again at every launch.
inline void install_handlers() {
    if (is_installed(SIGSEGV, on_fault)) return;
    Locked locked(handlers_lock);
    for (int signal : FAULTS) install(signal, on_fault, SA_ONSTACK);
    install(POKE, on_poke, SA_RESTART | SA_NODEFER);
}

// Python's handler goes on being called; without one Ctrl-C ends the process, or does nothing, as before.
inline void install_interrupt_handler() {
    struct sigaction current;
    sigaction(SIGINT, nullptr, &current);
    const bool is_ours = current.sa_flags & SA_SIGINFO && current.sa_sigaction == on_interrupt;
    if (is_ours || current.sa_handler == SIG_DFL || current.sa_handler == SIG_IGN) return;
    Locked locked(handlers_lock);
    install(SIGINT, on_interrupt, current.sa_flags);
}

// A stack for handlers while a thread runs kernels: the kernel's own may be used up.
class HandlerStack {
public:
    explicit HandlerStack(char* memory) {
        stack_t stack = {};
        stack.ss_sp = memory;
        stack.ss_size = SIZE;
        is_set = sigaltstack(&stack, &previous) == 0;
    }
    ~HandlerStack() {
        if (is_set) sigaltstack(&previous, nullptr);
    }

    static constexpr unsigned long SIZE = 64 << 10;

private:
    stack_t previous;
    bool is_set;
};

}  // namespace gridstride
#endif
