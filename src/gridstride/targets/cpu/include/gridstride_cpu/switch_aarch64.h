// What is specific to aarch64 (AAPCS64) in kernels: the fiber switch and the thread pointer.
#ifndef GRIDSTRIDE_CPU_SWITCH_AARCH64_H
#define GRIDSTRIDE_CPU_SWITCH_AARCH64_H

// The asm statements below end with this list: the compiler spills what lives across a switch, and no more.
// x29 cannot be listed where it is the frame pointer, so the switch saves it itself.
#ifdef __ARM_FEATURE_SVE
#define GRIDSTRIDE_CLOBBERED_SVE \
    , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "ffr"
#else
#define GRIDSTRIDE_CLOBBERED_SVE
#endif
#define GRIDSTRIDE_CLOBBERED_BY_SWITCH \
    "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", \
        "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "memory", "cc", "v0", "v1", "v2", "v3", \
        "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", \
        "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31" GRIDSTRIDE_CLOBBERED_SVE

// Suspend the running fiber, leaving its stack pointer in `*__save`, and go on where `__load` was suspended.
// A suspended fiber's stack holds the address to go on at, then x29. AAPCS64 has no red zone.
__attribute__((always_inline)) inline void gridstride_switch(void** __save, void* __load) {
    register void** __saved asm("x0") = __save;
    register void* __loaded asm("x1") = __load;
    asm volatile(
        "adr x17, 1f\n\t"
        "stp x17, x29, [sp, #-16]!\n\t"
        "mov x17, sp\n\t"
        "str x17, [x0]\n\t"
        "mov sp, x1\n\t"
        "ldp x17, x29, [sp], #16\n\t"
        "br x17\n\t"  // by this register branch protection also lets a function be entered
        ".p2align 4\n"
        "1:\n\t"
        "hint #36\n\t"  // bti j
        : "+r"(__saved), "+r"(__loaded)
        :
        : GRIDSTRIDE_CLOBBERED_BY_SWITCH);
}

// Read the pointer-sized thread-local variable that lies at an offset from the thread pointer. It never
// changes while a fiber runs, so that the compiler may keep what it read.
__attribute__((always_inline)) inline void* gridstride_thread_local(long __offset) {
    char* __thread_pointer;
    asm("mrs %0, tpidr_el0" : "=r"(__thread_pointer));
    return *reinterpret_cast<void**>(__thread_pointer + __offset);
}

#endif
