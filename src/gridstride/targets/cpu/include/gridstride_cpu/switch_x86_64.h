// What is specific to x86-64 (System V) in kernels: the fiber switch and the thread pointer.
#ifndef GRIDSTRIDE_CPU_SWITCH_X86_64_H
#define GRIDSTRIDE_CPU_SWITCH_X86_64_H

// The asm statements below end with this list: the compiler spills what lives across a switch, and no more.
// rbp cannot be listed where it is the frame pointer, so the switch saves it itself.
#ifdef __AVX512F__
#define GRIDSTRIDE_CLOBBERED_AVX512 \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
        "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define GRIDSTRIDE_CLOBBERED_AVX512
#endif
#define GRIDSTRIDE_CLOBBERED_BY_SWITCH \
    "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1", \
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", \
        "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)" GRIDSTRIDE_CLOBBERED_AVX512

// Suspend the running fiber, leaving its stack pointer in `*__save`, and go on where `__load` was suspended.
// A suspended fiber's stack holds the address to go on at, then rbp. The jump, unlike a return, is predicted.
// The pushes would overwrite a red zone: code with this function is compiled with -mno-red-zone.
__attribute__((always_inline)) inline void gridstride_switch(void** __save, void* __load) {
    asm volatile(
        "leaq 1f(%%rip), %%rax\n\t"
        "pushq %%rbp\n\t"
        "pushq %%rax\n\t"
        "movq %%rsp, (%%rdi)\n\t"
        "movq %%rsi, %%rsp\n\t"
        "popq %%rax\n\t"
        "popq %%rbp\n\t"
        "jmpq *%%rax\n\t"
        ".p2align 4\n"
        "1:\n\t"
        : "+D"(__save), "+S"(__load)
        :
        : GRIDSTRIDE_CLOBBERED_BY_SWITCH);
}

// Read the pointer-sized thread-local variable that lies at an offset from the thread pointer. It never
// changes while a fiber runs, so that the compiler may keep what it read.
__attribute__((always_inline)) inline void* gridstride_thread_local(long __offset) {
    void* __value;
    asm("movq %%fs:(%1), %0" : "=r"(__value) : "r"(__offset));
    return __value;
}

#endif
