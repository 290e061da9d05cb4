// What the runtime needs from Linux: futexes and locks on them, the clock, pages, signals to threads.
#ifndef GRIDSTRIDE_RUNTIME_SYSTEM_H
#define GRIDSTRIDE_RUNTIME_SYSTEM_H

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace gridstride {

constexpr long NANOSECONDS = 1000000000;

// Wait while `*address` is `expected`, for at most `nanoseconds` (negative: for ever); may wake early.
inline void futex_wait(unsigned* address, unsigned expected, long nanoseconds = -1) {
    timespec limit = {nanoseconds / NANOSECONDS, nanoseconds % NANOSECONDS};
    syscall(SYS_futex, address, FUTEX_WAIT_PRIVATE, expected, nanoseconds < 0 ? nullptr : &limit, nullptr, 0);
}

inline void futex_wake(unsigned* address, int count) {
    syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// A mutex that is fit for static storage and can be reset after a fork.
class Lock {
public:
    void acquire() {
        unsigned free = 0;
        if (__atomic_compare_exchange_n(&state, &free, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        while (__atomic_exchange_n(&state, 2u, __ATOMIC_ACQUIRE) != 0) futex_wait(&state, 2);
    }
    void release() {
        if (__atomic_exchange_n(&state, 0u, __ATOMIC_RELEASE) == 2) futex_wake(&state, 1);
    }
    void reset() { state = 0; }

private:
    unsigned state = 0;  // 0: free, 1: held, 2: held and waited for
};

class Locked {
public:
    explicit Locked(Lock& lock) : lock(lock) { lock.acquire(); }
    ~Locked() { lock.release(); }

private:
    Lock& lock;
};

inline long monotonic_time() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NANOSECONDS + now.tv_nsec;
}

// That the calling thread has used: it stands still while others use the processor.
inline long processor_time() {
    timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * NANOSECONDS + used.tv_nsec;
}

inline int thread_id() { return int(syscall(SYS_gettid)); }

inline bool is_main_thread() { return thread_id() == getpid(); }

// Zeroed pages that cost memory when they are touched; null if there is no address space left.
inline void* map_pages(unsigned long size) {
    void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? nullptr : pages;
}

inline void unmap_pages(void* pages, unsigned long size) {
    if (pages) munmap(pages, size);
}

constexpr unsigned long align_up(unsigned long size, unsigned long alignment) {
    return (size + alignment - 1) / alignment * alignment;
}

template <class T>
T minimum(T a, T b) {
    return a < b ? a : b;
}
template <class T>
T maximum(T a, T b) {
    return a < b ? b : a;
}

}  // namespace gridstride
#endif
