// Kernels as the source pass would hand them to the compiler; used by test_execution.py.
#include <gridstride_cpu/entry.h>
#include <gridstride_cpu/warp.h>

#define SHARED(tag, ...) gridstride_shared<tag, __VA_ARGS__>()

struct Scratch {
    static const char* function() { return "scratch"; }
};

static unsigned thread_in_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" void indices(uint3* thread, uint3* block, unsigned* rank) {
    const unsigned size = blockDim.x * blockDim.y * blockDim.z;
    const unsigned number = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned i = number * size + threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    thread[i] = threadIdx;
    block[i] = blockIdx;
    rank[i] = gridstride_thread_rank();
}

// Every round moves all values of the block by one thread.
extern "C" void rotate(const int* in, int* out, int rounds) {
    int(&values)[1024] = SHARED(Scratch, int[1024]);
    const unsigned t = gridstride_thread_rank(), n = gridstride_thread_count();
    values[t] = in[blockIdx.x * n + t];
    for (int round = 0; round < rounds; ++round) {
        __syncthreads();
        const int neighbor = values[(t + 1) % n];
        __syncthreads();
        values[t] = neighbor;
    }
    out[blockIdx.x * n + t] = values[t];
}

// Sums in dynamic shared memory; threads from `limit` on leave before the barriers.
extern "C" void sum_of_first(int* out, int limit) {
    int* values = gridstride_dynamic_shared<int[]>();
    const int t = threadIdx.x;
    if (t >= limit) return;
    values[t] = t;
    if (blockIdx.x % 2) __syncthreads();
    for (int k = 1; k < limit; k *= 2) {
        __syncthreads();
        const int other = t + k < limit ? values[t + k] : 0;
        __syncthreads();
        values[t] += other;
    }
    if (t == 0) out[blockIdx.x] = values[0];
}

extern "C" void block_votes(const int* predicate, int* out, int limit) {
    const int t = threadIdx.x;
    if (t >= limit) return;
    for (int round = 0; round < 3; ++round) {
        const int count = __syncthreads_count(predicate[t] > round);
        const int all = __syncthreads_and(predicate[t] > round);
        const int any = __syncthreads_or(predicate[t] > round);
        out[round * limit + t] = count * 4 + all * 2 + any;
    }
}

template <class T>
void shuffles(const T* in, T* out, unsigned mask, int argument, int width, int exited) {
    const int t = threadIdx.x, n = blockDim.x;
    if (t < exited || !(mask >> t % 32 & 1)) return;
    out[t] = __shfl_sync(mask, in[t], argument, width);
    out[n + t] = __shfl_up_sync(mask, in[t], argument, width);
    out[2 * n + t] = __shfl_down_sync(mask, in[t], argument, width);
    out[3 * n + t] = __shfl_xor_sync(mask, in[t], argument, width);
}

struct Pair {
    double first;
    int second;
};

extern "C" void shuffle_pairs(const Pair* in, Pair* out) {
    const int t = threadIdx.x;
    out[t] = gridstride_shuffle(
        GRIDSTRIDE_COLLECTIVE_SHFL, GRIDSTRIDE_FULL_MASK, in[t], (t + 1) % 32, __builtin_FILE(), __builtin_LINE());
}

extern "C" void warp_votes(const int* values, unsigned* out, unsigned mask) {
    const int t = threadIdx.x, n = blockDim.x;
    if (!(mask >> t % 32 & 1)) return;
    const int v = values[t];
    int matches = 2;
    const unsigned results[] = {
        __ballot_sync(mask, v & 1),
        unsigned(__any_sync(mask, v > 5)),
        unsigned(__all_sync(mask, v >= 0)),
        unsigned(__uni_sync(mask, v > 100)),
        __match_any_sync(mask, v),
        __match_all_sync(mask, v, &matches),
        __match_all_sync(mask, t / 32, &matches),
        unsigned(__reduce_add_sync(mask, v)),
        unsigned(__reduce_min_sync(mask, v)),
        unsigned(__reduce_max_sync(mask, v)),
        __reduce_and_sync(mask, unsigned(v)),
        __reduce_or_sync(mask, unsigned(v)),
        __reduce_xor_sync(mask, unsigned(v)),
        unsigned(matches)};
    for (int i = 0; i < 14; ++i) out[i * n + t] = results[i];
    __syncwarp(mask);
}

// Pairs of lanes exchange at a pace of their own between meetings in eights.
extern "C" void overlapping_groups(int* out, int rounds) {
    const int t = threadIdx.x, lane = t % 32;
    const unsigned pair = 3u << lane / 2 * 2, eight = 0xffu << lane / 8 * 8;
    int value = t;
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i <= lane / 2 % 4; ++i) value = __shfl_sync(pair, value, lane ^ 1) + 1;
        value += __shfl_xor_sync(eight, value, 7);
    }
    out[t] = value;
}

extern "C" void active_lanes(unsigned* out) {
    const int t = threadIdx.x, n = blockDim.x;
    if (t % 3 == 0) {
        out[t] = __activemask();
    } else {
        out[t] = __activemask();
        if (t % 3 == 1) return;
    }
    out[n + t] = __activemask();
    __syncthreads();
}

extern "C" void diverge(int how) {
    const int t = threadIdx.x;
    if (t == 5) return;
    if (how == 0) {
        if (t < 40) __syncthreads();
        else __syncwarp();
    } else if (how == 1) {
        if (t % 32 < 4) __shfl_sync(0xf, t, 0);
        if (t % 32 < 4) __syncthreads();
        else __ballot_sync(0xff, t);
    } else {
        __shfl_sync(0x1, t, 0);
    }
}

extern "C" void store_at(unsigned long address, unsigned block, unsigned thread, int* done) {
    if (blockIdx.x == block && threadIdx.x == thread) *reinterpret_cast<volatile int*>(address) = 1;
    __syncthreads();
    if (threadIdx.x == 0) __atomic_fetch_add(done, 1, __ATOMIC_SEQ_CST);
}

extern "C" void divide(const int* divisor, int* out) { out[threadIdx.x] = 7 / divisor[threadIdx.x]; }

__attribute__((noinline)) static int recurse(volatile int* depth) {
    volatile int here = *depth + 1;
    return here > 0 ? recurse(&here) + here : 0;
}
extern "C" void overflow_stack(int* out) {
    volatile int depth = threadIdx.x == 3 ? 1 : -5;
    out[threadIdx.x] = recurse(&depth);
}

extern "C" void stop(int how, int at) {
    if (int(threadIdx.x) != at) return;
    if (how == 0) __trap();
    if (how == 1) __brkpt();
    if (how == 2) __builtin_trap();
    assert(how < 0 && "told to");
}

extern "C" void print(const char* format, int* counts) {
    const int t = thread_in_grid();
    counts[t] = printf(format, t, 0.5 * t, "text");
    if (t == 0) printf("no arguments\n");
}

extern "C" void spin_for_ever(volatile int* flag) {
    while (!*flag) {
    }
}

// Work that takes long, and waits for nobody.
// In a register: processors that keep what is just stored take a cycle or five for a round in memory, by where it lies.
extern "C" void count_slowly(long rounds, int* is_done) {
    for (long i = 0; i < rounds; ++i) asm volatile("" : "+r"(i));
    is_done[blockIdx.x] = 1;
}

extern "C" void wait_for_ever(int* flag) {
    if (threadIdx.x > 0) __syncthreads();
    else
        while (!__atomic_load_n(flag, __ATOMIC_RELAXED)) gridstride_spin_hint();
}

// A lock that every thread of the block takes; the holder gives the others every chance to run.
extern "C" void count_locked(int* lock, int* count, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        int free = 0;
        while (!__atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            free = 0;
            gridstride_spin_hint();
        }
        const int seen = *count;
        __nanosleep(20);
        *count = seen + 1;
        __threadfence();
        __atomic_store_n(lock, 0, __ATOMIC_SEQ_CST);
    }
}

// Each thread waits for the one after it, without any hint.
extern "C" void volatile_chain(volatile int* flags) {
    const int t = threadIdx.x;
    if (t + 1 < int(blockDim.x))
        while (!flags[t + 1]) {
        }
    flags[t] = 1;
}

// Each block waits for the one after it.
extern "C" void chain_of_blocks(int* flags) {
    const unsigned b = blockIdx.x;
    if (threadIdx.x == 0 && b + 1 < gridDim.x)
        while (!__atomic_load_n(flags + b + 1, __ATOMIC_ACQUIRE)) gridstride_spin_hint();
    __syncthreads();
    __atomic_store_n(flags + b, 1, __ATOMIC_RELEASE);
}

extern "C" void grid_rotate(int* values, int rounds) {
    const unsigned i = thread_in_grid(), n = gridDim.x * blockDim.x;
    for (int round = 0; round < rounds; ++round) {
        const int neighbor = values[(i + 1) % n];
        gridstride_grid_sync();
        values[i] = neighbor;
        gridstride_grid_sync();
    }
}

extern "C" void grid_sync_of_some(int) {
    if (blockIdx.x) gridstride_grid_sync();
}

typedef int (*Launch)(const void*, const void*, const void*, unsigned long, unsigned long long);
struct Call {
    Launch launch;
    const void *function, *configuration;
    const void* arguments;
};
extern "C" void launch_inside(Call call, int* codes) {
    codes[blockIdx.x] = call.launch(call.function, call.configuration, call.arguments, 64, 0);
}

extern "C" void add_one(int* values, int n) {
    const int i = thread_in_grid();
    if (i < n) values[i] += 1;
}

GRIDSTRIDE_KERNEL(0, "indices", indices)
GRIDSTRIDE_KERNEL(1, "rotate", rotate)
GRIDSTRIDE_KERNEL(2, "sum_of_first", sum_of_first)
GRIDSTRIDE_KERNEL(3, "block_votes", block_votes)
GRIDSTRIDE_KERNEL(4, "shuffles<int>", shuffles<int>)
GRIDSTRIDE_KERNEL(5, "shuffles<double>", shuffles<double>)
GRIDSTRIDE_KERNEL(6, "shuffle_pairs", shuffle_pairs)
GRIDSTRIDE_KERNEL(7, "warp_votes", warp_votes)
GRIDSTRIDE_KERNEL(8, "overlapping_groups", overlapping_groups)
GRIDSTRIDE_KERNEL(9, "active_lanes", active_lanes)
GRIDSTRIDE_KERNEL(10, "diverge", diverge)
GRIDSTRIDE_KERNEL(11, "store_at", store_at)
GRIDSTRIDE_KERNEL(12, "divide", divide)
GRIDSTRIDE_KERNEL(13, "overflow_stack", overflow_stack)
GRIDSTRIDE_KERNEL(14, "stop", stop)
GRIDSTRIDE_KERNEL(15, "print", print)
GRIDSTRIDE_KERNEL(16, "spin_for_ever", spin_for_ever)
GRIDSTRIDE_KERNEL(17, "wait_for_ever", wait_for_ever)
GRIDSTRIDE_KERNEL(18, "count_locked", count_locked)
GRIDSTRIDE_KERNEL(19, "volatile_chain", volatile_chain)
GRIDSTRIDE_KERNEL(20, "chain_of_blocks", chain_of_blocks)
GRIDSTRIDE_KERNEL(21, "grid_rotate", grid_rotate)
GRIDSTRIDE_KERNEL(22, "grid_sync_of_some", grid_sync_of_some)
GRIDSTRIDE_KERNEL(23, "launch_inside", launch_inside)
GRIDSTRIDE_KERNEL(24, "add_one", add_one)
GRIDSTRIDE_KERNEL(25, "count_slowly", count_slowly)
GRIDSTRIDE_LIBRARY(26, 0, 0)
