// What is specific to a processor in the runtime: the first frame of a fiber, and the registers of a thread
// that a signal interrupted. The switch itself is in gridstride_cpu/switch_*.h.
#ifndef GRIDSTRIDE_RUNTIME_MACHINE_H
#define GRIDSTRIDE_RUNTIME_MACHINE_H

#include <ucontext.h>

namespace gridstride {

// A suspended fiber's stack holds the address to go on at and the frame pointer.
struct SuspendedFrame {
    void* resume_address;
    void* frame_pointer;
};

#if defined(__x86_64__)

// Return the stack pointer of a fiber that, switched to, enters `function` on an empty stack.
inline void* new_fiber(char* stack_top, void (*function)()) {
    auto* frame = reinterpret_cast<SuspendedFrame*>(stack_top - sizeof(void*)) - 1;  // above: no return address
    *frame = {reinterpret_cast<void*>(function), nullptr};
    return frame;
}

inline const char* interrupted_at(const ucontext_t* context) {
    return reinterpret_cast<const char*>(context->uc_mcontext.gregs[REG_RIP]);
}

// Make the interrupted thread go on where the fiber with this stack pointer was suspended.
inline void redirect(ucontext_t* context, void* stack_pointer) {
    const auto* frame = static_cast<SuspendedFrame*>(stack_pointer);
    auto* registers = context->uc_mcontext.gregs;
    registers[REG_RIP] = reinterpret_cast<greg_t>(frame->resume_address);
    registers[REG_RBP] = reinterpret_cast<greg_t>(frame->frame_pointer);
    registers[REG_RSP] = reinterpret_cast<greg_t>(frame + 1);
}

inline void relax_processor() { __builtin_ia32_pause(); }

#elif defined(__aarch64__)

inline void* new_fiber(char* stack_top, void (*function)()) {
    auto* frame = reinterpret_cast<SuspendedFrame*>(stack_top) - 1;
    *frame = {reinterpret_cast<void*>(function), nullptr};
    return frame;
}

inline const char* interrupted_at(const ucontext_t* context) {
    return reinterpret_cast<const char*>(context->uc_mcontext.pc);
}

inline void redirect(ucontext_t* context, void* stack_pointer) {
    const auto* frame = static_cast<SuspendedFrame*>(stack_pointer);
    context->uc_mcontext.pc = reinterpret_cast<unsigned long>(frame->resume_address);
    context->uc_mcontext.regs[29] = reinterpret_cast<unsigned long>(frame->frame_pointer);
    context->uc_mcontext.sp = reinterpret_cast<unsigned long>(frame + 1);
}

inline void relax_processor() { asm volatile("yield"); }

#endif

}  // namespace gridstride
#endif
