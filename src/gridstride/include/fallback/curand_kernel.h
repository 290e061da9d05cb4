// cuRAND's device functions for its Philox generator, with cuRAND's own sequence, for where cuRAND is not installed.
//
// Philox4x32-10 (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011): ten rounds turn a counter of
// 128 bits and a key of 64 into 128 random bits. The seed is the key; a subsequence is a value of the counter's upper
// half. Integers and uniform numbers are cuRAND's to the bit; normal ones differ by a few units in the last place, since
// cuRAND uses approximations there. `curand_poisson` follows cuRAND's sequence for a mean below 64 or above 4000; between
// them it draws from the same distribution in another way.
#ifndef GRIDSTRIDE_CURAND_KERNEL_H
#define GRIDSTRIDE_CURAND_KERNEL_H

#ifdef __EDG__  // NVRTC; CUDA 13 deprecates double4, which cuRAND returns
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1444
#endif

#define GRIDSTRIDE_CURAND static inline __device__

// As large as cuRAND's, so that the same allocation holds it on every target.
struct curandStatePhilox4_32_10 {
    uint4 __counter, __block;  // of the numbers to come, and four of them
    uint2 __key;
    unsigned __used;           // how many of the four were handed out
    int __float_kind, __double_kind;  // what is kept for the next call: a curand_kept
    float __float_kept;
    double __double_kept;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

enum gridstride_curand_kept { GRIDSTRIDE_CURAND_NOTHING, GRIDSTRIDE_CURAND_NORMAL, GRIDSTRIDE_CURAND_LOG_NORMAL };

// ---- the generator ----

GRIDSTRIDE_CURAND uint4 gridstride_philox(uint4 __c, uint2 __key) {
    for (int __round = 0; __round < 10; ++__round) {
        const unsigned long long __first = 0xD2511F53ull * __c.x, __second = 0xCD9E8D57ull * __c.z;
        __c = uint4{static_cast<unsigned>(__second >> 32) ^ __c.y ^ __key.x, static_cast<unsigned>(__second),
                    static_cast<unsigned>(__first >> 32) ^ __c.w ^ __key.y, static_cast<unsigned>(__first)};
        __key.x += 0x9E3779B9u;
        __key.y += 0xBB67AE85u;
    }
    return __c;
}

// Add to the counter's lower half, with the carry into the upper one.
GRIDSTRIDE_CURAND void gridstride_philox_advance(curandStatePhilox4_32_10_t* __state, unsigned long long __blocks) {
    uint4& __c = __state->__counter;
    const unsigned long long __before = static_cast<unsigned long long>(__c.y) << 32 | __c.x, __low = __before + __blocks;
    __c.x = static_cast<unsigned>(__low);
    __c.y = static_cast<unsigned>(__low >> 32);
    if (__low < __before && ++__c.z == 0) ++__c.w;
    __state->__block = gridstride_philox(__c, __state->__key);
}

GRIDSTRIDE_CURAND void skipahead(unsigned long long __n, curandStatePhilox4_32_10_t* __state) {
    const unsigned __used = __state->__used + static_cast<unsigned>(__n & 3);
    __state->__used = __used & 3;
    gridstride_philox_advance(__state, __n / 4 + __used / 4);
}
GRIDSTRIDE_CURAND void skipahead_sequence(unsigned long long __n, curandStatePhilox4_32_10_t* __state) {
    uint4& __c = __state->__counter;
    const unsigned long long __high = (static_cast<unsigned long long>(__c.w) << 32 | __c.z) + __n;
    __c.z = static_cast<unsigned>(__high);
    __c.w = static_cast<unsigned>(__high >> 32);
    __state->__block = gridstride_philox(__c, __state->__key);
}
GRIDSTRIDE_CURAND void curand_init(
    unsigned long long __seed, unsigned long long __subsequence, unsigned long long __offset, curandStatePhilox4_32_10_t* __state) {
    *__state = curandStatePhilox4_32_10_t();
    __state->__key = uint2{static_cast<unsigned>(__seed), static_cast<unsigned>(__seed >> 32)};
    skipahead_sequence(__subsequence, __state);
    skipahead(__offset, __state);
}

GRIDSTRIDE_CURAND unsigned curand(curandStatePhilox4_32_10_t* __state) {
    const uint4 __four = __state->__block;
    const unsigned __which = __state->__used++;
    if (__state->__used == 4) {
        __state->__used = 0;
        gridstride_philox_advance(__state, 1);
    }
    return __which == 0 ? __four.x : __which == 1 ? __four.y : __which == 2 ? __four.z : __four.w;
}
GRIDSTRIDE_CURAND uint4 curand4(curandStatePhilox4_32_10_t* __state) {
    const uint4 __a = __state->__block;
    gridstride_philox_advance(__state, 1);
    const uint4 __b = __state->__block;
    switch (__state->__used) {
        case 1: return uint4{__a.y, __a.z, __a.w, __b.x};
        case 2: return uint4{__a.z, __a.w, __b.x, __b.y};
        case 3: return uint4{__a.w, __b.x, __b.y, __b.z};
        default: return __a;
    }
}

// ---- uniform in (0, 1] ----

GRIDSTRIDE_CURAND float gridstride_curand_float(unsigned __bits) {
    return static_cast<float>(__bits) * 2.3283064e-10f + 1.1641532e-10f;
}
GRIDSTRIDE_CURAND double gridstride_curand_double(unsigned __low, unsigned __high) {
    const unsigned long long __bits = static_cast<unsigned long long>(__low) ^ static_cast<unsigned long long>(__high) << 21;
    return static_cast<double>(__bits) * 1.1102230246251565e-16 + 5.5511151231257827e-17;
}

GRIDSTRIDE_CURAND float curand_uniform(curandStatePhilox4_32_10_t* __state) { return gridstride_curand_float(curand(__state)); }
GRIDSTRIDE_CURAND float4 curand_uniform4(curandStatePhilox4_32_10_t* __state) {
    const uint4 __r = curand4(__state);
    return float4{gridstride_curand_float(__r.x), gridstride_curand_float(__r.y), gridstride_curand_float(__r.z),
                  gridstride_curand_float(__r.w)};
}
// From 32 bits alone, as cuRAND does.
GRIDSTRIDE_CURAND double curand_uniform_double(curandStatePhilox4_32_10_t* __state) {
    return static_cast<double>(curand(__state)) * 2.3283064365386963e-10 + 2.3283064365386963e-10;
}
GRIDSTRIDE_CURAND double2 curand_uniform2_double(curandStatePhilox4_32_10_t* __state) {
    const uint4 __r = curand4(__state);
    return double2{gridstride_curand_double(__r.x, __r.y), gridstride_curand_double(__r.z, __r.w)};
}
GRIDSTRIDE_CURAND double4 curand_uniform4_double(curandStatePhilox4_32_10_t* __state) {
    const double2 __first = curand_uniform2_double(__state), __second = curand_uniform2_double(__state);
    return double4{__first.x, __first.y, __second.x, __second.y};
}

// ---- normal, by the transformation of Box and Muller ----

GRIDSTRIDE_CURAND float2 gridstride_curand_normals(unsigned __first, unsigned __second) {
    const float __turn = 2.3283064e-10f * 6.2831855f;
    const float __radius = sqrtf(-2.0f * logf(gridstride_curand_float(__first)));
    const float __angle = static_cast<float>(__second) * __turn + __turn / 2;
    float __sine, __cosine;
    sincosf(__angle, &__sine, &__cosine);
    return float2{__sine * __radius, __cosine * __radius};
}
GRIDSTRIDE_CURAND double2 gridstride_curand_normals(const uint4& __bits) {
    const double __radius = sqrt(-2.0 * log(gridstride_curand_double(__bits.x, __bits.y)));
    double __sine, __cosine;
    sincospi(2.0 * gridstride_curand_double(__bits.z, __bits.w), &__sine, &__cosine);
    return double2{__sine * __radius, __cosine * __radius};
}

GRIDSTRIDE_CURAND float2 curand_normal2(curandStatePhilox4_32_10_t* __state) {
    const unsigned __first = curand(__state), __second = curand(__state);
    return gridstride_curand_normals(__first, __second);
}
GRIDSTRIDE_CURAND float4 curand_normal4(curandStatePhilox4_32_10_t* __state) {
    const uint4 __r = curand4(__state);
    const float2 __first = gridstride_curand_normals(__r.x, __r.y), __second = gridstride_curand_normals(__r.z, __r.w);
    return float4{__first.x, __first.y, __second.x, __second.y};
}
GRIDSTRIDE_CURAND double2 curand_normal2_double(curandStatePhilox4_32_10_t* __state) {
    return gridstride_curand_normals(curand4(__state));
}
GRIDSTRIDE_CURAND double4 curand_normal4_double(curandStatePhilox4_32_10_t* __state) {
    const double2 __first = curand_normal2_double(__state), __second = curand_normal2_double(__state);
    return double4{__first.x, __first.y, __second.x, __second.y};
}

GRIDSTRIDE_CURAND float2 curand_log_normal2(curandStatePhilox4_32_10_t* __state, float __mean, float __deviation) {
    const float2 __v = curand_normal2(__state);
    return float2{expf(__mean + __deviation * __v.x), expf(__mean + __deviation * __v.y)};
}
GRIDSTRIDE_CURAND float4 curand_log_normal4(curandStatePhilox4_32_10_t* __state, float __mean, float __deviation) {
    const float4 __v = curand_normal4(__state);
    return float4{expf(__mean + __deviation * __v.x), expf(__mean + __deviation * __v.y), expf(__mean + __deviation * __v.z),
                  expf(__mean + __deviation * __v.w)};
}
GRIDSTRIDE_CURAND double2 curand_log_normal2_double(curandStatePhilox4_32_10_t* __state, double __mean, double __deviation) {
    const double2 __v = curand_normal2_double(__state);
    return double2{exp(__mean + __deviation * __v.x), exp(__mean + __deviation * __v.y)};
}
GRIDSTRIDE_CURAND double4 curand_log_normal4_double(curandStatePhilox4_32_10_t* __state, double __mean, double __deviation) {
    const double2 __first = curand_log_normal2_double(__state, __mean, __deviation);
    const double2 __second = curand_log_normal2_double(__state, __mean, __deviation);
    return double4{__first.x, __first.y, __second.x, __second.y};
}

// One number at a time: the second of a pair is kept for the next call of the same kind.
#define GRIDSTRIDE_CURAND_ONE(function, type, kind, kept, of_kind, parameters, pair) \
    GRIDSTRIDE_CURAND type function parameters { \
        if (__state->kind == of_kind) { \
            __state->kind = GRIDSTRIDE_CURAND_NOTHING; \
            return __state->kept; \
        } \
        const type##2 __two = pair; \
        __state->kept = __two.y; \
        __state->kind = of_kind; \
        return __two.x; \
    }
GRIDSTRIDE_CURAND_ONE(curand_normal, float, __float_kind, __float_kept, GRIDSTRIDE_CURAND_NORMAL,
                      (curandStatePhilox4_32_10_t* __state), curand_normal2(__state))
GRIDSTRIDE_CURAND_ONE(curand_normal_double, double, __double_kind, __double_kept, GRIDSTRIDE_CURAND_NORMAL,
                      (curandStatePhilox4_32_10_t* __state), curand_normal2_double(__state))
GRIDSTRIDE_CURAND_ONE(curand_log_normal, float, __float_kind, __float_kept, GRIDSTRIDE_CURAND_LOG_NORMAL,
                      (curandStatePhilox4_32_10_t* __state, float __mean, float __deviation),
                      curand_log_normal2(__state, __mean, __deviation))
GRIDSTRIDE_CURAND_ONE(curand_log_normal_double, double, __double_kind, __double_kept, GRIDSTRIDE_CURAND_LOG_NORMAL,
                      (curandStatePhilox4_32_10_t* __state, double __mean, double __deviation),
                      curand_log_normal2_double(__state, __mean, __deviation))
#undef GRIDSTRIDE_CURAND_ONE

// ---- Poisson ----

// Knuth's method: how many uniform factors bring exp(mean) down to one.
GRIDSTRIDE_CURAND unsigned gridstride_curand_poisson_small(curandStatePhilox4_32_10_t* __state, float __mean) {
    float __product = expf(__mean);
    for (unsigned __count = 0;; ++__count) {
        __product *= curand_uniform(__state);
        if (!(__product > 1.0)) return __count;
    }
}
// Transformed rejection (Hoermann, "The transformed rejection method for generating Poisson random variables", 1993).
GRIDSTRIDE_CURAND unsigned gridstride_curand_poisson_middle(curandStatePhilox4_32_10_t* __state, double __mean) {
    const double __b = 0.931 + 2.53 * sqrt(__mean), __a = -0.059 + 0.02483 * __b;
    const double __scale = log(1.1239 + 1.1328 / (__b - 3.4)), __limit = 0.9277 - 3.6224 / (__b - 2.0);
    for (;;) {
        const double2 __r = curand_uniform2_double(__state);
        const double __u = __r.x - 0.5, __near = 0.5 - fabs(__u);
        const double __k = floor((2.0 * __a / __near + __b) * __u + __mean + 0.43);
        if (__near >= 0.07 && __r.y <= __limit) return static_cast<unsigned>(__k);
        if (__k < 0.0 || (__near < 0.013 && __r.y > __near)) continue;
        const double __density = -__mean + __k * log(__mean) - lgamma(__k + 1.0);
        if (log(__r.y) + __scale - log(__a / (__near * __near) + __b) <= __density) return static_cast<unsigned>(__k);
    }
}
GRIDSTRIDE_CURAND unsigned gridstride_curand_poisson_large(double __mean, double __normal) {
    return static_cast<unsigned>(sqrt(__mean) * __normal + __mean + 0.5);
}

GRIDSTRIDE_CURAND unsigned curand_poisson(curandStatePhilox4_32_10_t* __state, double __mean) {
    if (__mean < 64) return gridstride_curand_poisson_small(__state, static_cast<float>(__mean));
    if (__mean > 4000) return gridstride_curand_poisson_large(__mean, curand_normal_double(__state));
    return gridstride_curand_poisson_middle(__state, __mean);
}
GRIDSTRIDE_CURAND uint4 curand_poisson4(curandStatePhilox4_32_10_t* __state, double __mean) {
    if (__mean > 4000) {
        const double4 __n = curand_normal4_double(__state);
        return uint4{gridstride_curand_poisson_large(__mean, __n.x), gridstride_curand_poisson_large(__mean, __n.y),
                     gridstride_curand_poisson_large(__mean, __n.z), gridstride_curand_poisson_large(__mean, __n.w)};
    }
    const unsigned __x = curand_poisson(__state, __mean), __y = curand_poisson(__state, __mean);
    const unsigned __z = curand_poisson(__state, __mean), __w = curand_poisson(__state, __mean);
    return uint4{__x, __y, __z, __w};
}

#undef GRIDSTRIDE_CURAND
#ifdef __EDG__
#pragma nv_diagnostic pop
#endif

#endif
