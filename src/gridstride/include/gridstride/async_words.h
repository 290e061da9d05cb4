// Words that go from memory to shared memory past the registers, where a device can do that.
#ifndef GRIDSTRIDE_ASYNC_WORDS_H
#define GRIDSTRIDE_ASYNC_WORDS_H

#include <gridstride/packets.h>

namespace gridstride {

// `__are_parts`: whether words are brought of parts of lines, and other blocks bring the rest of them soon. The cache gets
// the whole of lines at once, of which neighbors want what is left.
template <int __bytes, bool __are_parts = true>
GRIDSTRIDE_INLINED void bring_word(char* __to, const char* __from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(GRIDSTRIDE_CPU_ABI_VERSION)
    const unsigned __shared_to = static_cast<unsigned>(__cvta_generic_to_shared(__to));
    if (__bytes == 16 && !__are_parts) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(__shared_to), "l"(__from) : "memory");
    } else if (__bytes == 16) {
        unsigned long long __policy;
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(__policy));
        asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(__shared_to), "l"(__from),
                     "l"(__policy)
                     : "memory");
    } else
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;" ::"r"(__shared_to), "l"(__from), "n"(__bytes) : "memory");
#else
    typedef typename word<__bytes>::type type;
    *reinterpret_cast<type*>(__to) = *reinterpret_cast<const type*>(__from);
#endif
}
GRIDSTRIDE_INLINED void await_words() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(GRIDSTRIDE_CPU_ABI_VERSION)
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}

}

#endif
