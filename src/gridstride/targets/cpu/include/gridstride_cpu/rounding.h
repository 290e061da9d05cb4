// Arithmetic with a stated rounding: __fadd_rz, __dmul_ru, __fsqrt_rd ...
//
// `_rn` is the default direction, but never contracted with its neighbors. The other three run one
// operation with the processor's rounding direction changed around it; that is exact and not vectorized.
#ifndef GRIDSTRIDE_CPU_ROUNDING_H
#define GRIDSTRIDE_CPU_ROUNDING_H

#include "math_functions.h"
#include "special_functions.h"

// ---- the processor's rounding direction: all that is specific to a machine ----

#if defined(__x86_64__)

#define GRIDSTRIDE_FLOAT_REGISTER "x"
#define GRIDSTRIDE_DIRECTION_MASK 0x6000u
enum gridstride_direction : unsigned {
    GRIDSTRIDE_DOWNWARD = 0x2000u, GRIDSTRIDE_UPWARD = 0x4000u, GRIDSTRIDE_TOWARD_ZERO = 0x6000u
};
typedef unsigned gridstride_float_control;

GRIDSTRIDE_DEVICE gridstride_float_control gridstride_get_float_control() {
    gridstride_float_control __control;
    asm volatile("stmxcsr %0" : "=m"(__control));
    return __control;
}
GRIDSTRIDE_DEVICE void gridstride_set_float_control(gridstride_float_control __control) {
    asm volatile("ldmxcsr %0" : : "m"(__control));
}

#elif defined(__aarch64__)

#define GRIDSTRIDE_FLOAT_REGISTER "w"
#define GRIDSTRIDE_DIRECTION_MASK 0xc00000ul
enum gridstride_direction : unsigned {
    GRIDSTRIDE_UPWARD = 0x400000u, GRIDSTRIDE_DOWNWARD = 0x800000u, GRIDSTRIDE_TOWARD_ZERO = 0xc00000u
};
typedef unsigned long gridstride_float_control;

GRIDSTRIDE_DEVICE gridstride_float_control gridstride_get_float_control() {
    gridstride_float_control __control;
    asm volatile("mrs %0, fpcr" : "=r"(__control));
    return __control;
}
GRIDSTRIDE_DEVICE void gridstride_set_float_control(gridstride_float_control __control) {
    asm volatile("msr fpcr, %0" : : "r"(__control));
}

#else
#error "gridstride's CPU target knows x86-64 and aarch64"
#endif

// ---- one operation in a direction ----

// Makes a value one that the compiler can neither fold nor move across a change of direction.
GRIDSTRIDE_DEVICE void gridstride_pin(float& __x) { asm volatile("" : "+" GRIDSTRIDE_FLOAT_REGISTER(__x)); }
GRIDSTRIDE_DEVICE void gridstride_pin(double& __x) { asm volatile("" : "+" GRIDSTRIDE_FLOAT_REGISTER(__x)); }
template <class __integer>
GRIDSTRIDE_DEVICE void gridstride_pin(__integer& __x) { asm volatile("" : "+r"(__x)); }

// Rounds in a direction for as long as it lives.
struct gridstride_rounding {
    gridstride_float_control __saved;
    explicit gridstride_rounding(gridstride_direction __direction) : __saved(gridstride_get_float_control()) {
        gridstride_set_float_control((__saved & ~GRIDSTRIDE_DIRECTION_MASK) | __direction);
    }
    ~gridstride_rounding() { gridstride_set_float_control(__saved); }
};

// Defines a template over the direction: `expression` of __x (and __y, __z).
#define GRIDSTRIDE_ROUNDED_1(result, name, type, expression) \
    GRIDSTRIDE_ROUNDED(result, name, (type __x), gridstride_pin(__x), expression)
#define GRIDSTRIDE_ROUNDED_2(result, name, type, expression) \
    GRIDSTRIDE_ROUNDED(result, name, (type __x, type __y), (gridstride_pin(__x), gridstride_pin(__y)), expression)
#define GRIDSTRIDE_ROUNDED_3(result, name, type, expression) \
    GRIDSTRIDE_ROUNDED(result, name, (type __x, type __y, type __z), \
                       (gridstride_pin(__x), gridstride_pin(__y), gridstride_pin(__z)), expression)
#define GRIDSTRIDE_ROUNDED(result, name, parameters, pin, expression) \
    template <gridstride_direction __direction> \
    GRIDSTRIDE_DEVICE result name parameters { \
        const gridstride_rounding __scope(__direction); \
        pin; \
        result __result = expression; \
        gridstride_pin(__result); \
        return __result; \
    }

// ---- to nearest, kept apart from neighboring operations ----

#if defined(__clang__) || !(defined(__FMA__) || defined(__aarch64__))

// Clang contracts whatever it sees; an empty assembly statement is opaque to it.
GRIDSTRIDE_DEVICE float gridstride_apart(float __x) { asm("" : "+" GRIDSTRIDE_FLOAT_REGISTER(__x)); return __x; }
GRIDSTRIDE_DEVICE double gridstride_apart(double __x) { asm("" : "+" GRIDSTRIDE_FLOAT_REGISTER(__x)); return __x; }
GRIDSTRIDE_DEVICE float __fadd_rn(float __x, float __y) { return gridstride_apart(gridstride_apart(__x) + gridstride_apart(__y)); }
GRIDSTRIDE_DEVICE float __fsub_rn(float __x, float __y) { return gridstride_apart(gridstride_apart(__x) - gridstride_apart(__y)); }
GRIDSTRIDE_DEVICE float __fmul_rn(float __x, float __y) { return gridstride_apart(__x * __y); }
GRIDSTRIDE_DEVICE double __dadd_rn(double __x, double __y) { return gridstride_apart(gridstride_apart(__x) + gridstride_apart(__y)); }
GRIDSTRIDE_DEVICE double __dsub_rn(double __x, double __y) { return gridstride_apart(gridstride_apart(__x) - gridstride_apart(__y)); }
GRIDSTRIDE_DEVICE double __dmul_rn(double __x, double __y) { return gridstride_apart(__x * __y); }

#else

// g++ does not look into a fused operation: these are single rounded sums and products that still vectorize.
GRIDSTRIDE_DEVICE float __fadd_rn(float __x, float __y) { return fmaf(__x, 1.0f, __y); }
GRIDSTRIDE_DEVICE float __fsub_rn(float __x, float __y) { return fmaf(__y, -1.0f, __x); }
GRIDSTRIDE_DEVICE float __fmul_rn(float __x, float __y) { return fmaf(__x, __y, -0.0f); }
GRIDSTRIDE_DEVICE double __dadd_rn(double __x, double __y) { return fma(__x, 1.0, __y); }
GRIDSTRIDE_DEVICE double __dsub_rn(double __x, double __y) { return fma(__y, -1.0, __x); }
GRIDSTRIDE_DEVICE double __dmul_rn(double __x, double __y) { return fma(__x, __y, -0.0); }

#endif

GRIDSTRIDE_DEVICE float __fmaf_rn(float __x, float __y, float __z) { return fmaf(__x, __y, __z); }
GRIDSTRIDE_DEVICE float __fdiv_rn(float __x, float __y) { return __x / __y; }
GRIDSTRIDE_DEVICE float __frcp_rn(float __x) { return 1.0f / __x; }
GRIDSTRIDE_DEVICE float __fsqrt_rn(float __x) { return sqrtf(__x); }
GRIDSTRIDE_DEVICE float __frsqrt_rn(float __x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(__x))); }
GRIDSTRIDE_DEVICE double __fma_rn(double __x, double __y, double __z) { return fma(__x, __y, __z); }
GRIDSTRIDE_DEVICE double __ddiv_rn(double __x, double __y) { return __x / __y; }
GRIDSTRIDE_DEVICE double __drcp_rn(double __x) { return 1.0 / __x; }
GRIDSTRIDE_DEVICE double __dsqrt_rn(double __x) { return sqrt(__x); }

// ---- toward zero, up, down ----

GRIDSTRIDE_ROUNDED_2(float, gridstride_fadd, float, __x + __y)
GRIDSTRIDE_ROUNDED_2(float, gridstride_fsub, float, __x - __y)
GRIDSTRIDE_ROUNDED_2(float, gridstride_fmul, float, __x * __y)
GRIDSTRIDE_ROUNDED_2(float, gridstride_fdiv, float, __x / __y)
GRIDSTRIDE_ROUNDED_1(float, gridstride_frcp, float, 1.0f / __x)
GRIDSTRIDE_ROUNDED_1(float, gridstride_fsqrt, float, sqrtf(__x))
GRIDSTRIDE_ROUNDED_3(float, gridstride_fmaf, float, fmaf(__x, __y, __z))
GRIDSTRIDE_ROUNDED_2(double, gridstride_dadd, double, __x + __y)
GRIDSTRIDE_ROUNDED_2(double, gridstride_dsub, double, __x - __y)
GRIDSTRIDE_ROUNDED_2(double, gridstride_dmul, double, __x * __y)
GRIDSTRIDE_ROUNDED_2(double, gridstride_ddiv, double, __x / __y)
GRIDSTRIDE_ROUNDED_1(double, gridstride_drcp, double, 1.0 / __x)
GRIDSTRIDE_ROUNDED_1(double, gridstride_dsqrt, double, sqrt(__x))
GRIDSTRIDE_ROUNDED_3(double, gridstride_fma, double, fma(__x, __y, __z))

#define __fadd_rz gridstride_fadd<GRIDSTRIDE_TOWARD_ZERO>
#define __fadd_ru gridstride_fadd<GRIDSTRIDE_UPWARD>
#define __fadd_rd gridstride_fadd<GRIDSTRIDE_DOWNWARD>
#define __fsub_rz gridstride_fsub<GRIDSTRIDE_TOWARD_ZERO>
#define __fsub_ru gridstride_fsub<GRIDSTRIDE_UPWARD>
#define __fsub_rd gridstride_fsub<GRIDSTRIDE_DOWNWARD>
#define __fmul_rz gridstride_fmul<GRIDSTRIDE_TOWARD_ZERO>
#define __fmul_ru gridstride_fmul<GRIDSTRIDE_UPWARD>
#define __fmul_rd gridstride_fmul<GRIDSTRIDE_DOWNWARD>
#define __fdiv_rz gridstride_fdiv<GRIDSTRIDE_TOWARD_ZERO>
#define __fdiv_ru gridstride_fdiv<GRIDSTRIDE_UPWARD>
#define __fdiv_rd gridstride_fdiv<GRIDSTRIDE_DOWNWARD>
#define __frcp_rz gridstride_frcp<GRIDSTRIDE_TOWARD_ZERO>
#define __frcp_ru gridstride_frcp<GRIDSTRIDE_UPWARD>
#define __frcp_rd gridstride_frcp<GRIDSTRIDE_DOWNWARD>
#define __fsqrt_rz gridstride_fsqrt<GRIDSTRIDE_TOWARD_ZERO>
#define __fsqrt_ru gridstride_fsqrt<GRIDSTRIDE_UPWARD>
#define __fsqrt_rd gridstride_fsqrt<GRIDSTRIDE_DOWNWARD>
#define __fmaf_rz gridstride_fmaf<GRIDSTRIDE_TOWARD_ZERO>
#define __fmaf_ru gridstride_fmaf<GRIDSTRIDE_UPWARD>
#define __fmaf_rd gridstride_fmaf<GRIDSTRIDE_DOWNWARD>
#define __dadd_rz gridstride_dadd<GRIDSTRIDE_TOWARD_ZERO>
#define __dadd_ru gridstride_dadd<GRIDSTRIDE_UPWARD>
#define __dadd_rd gridstride_dadd<GRIDSTRIDE_DOWNWARD>
#define __dsub_rz gridstride_dsub<GRIDSTRIDE_TOWARD_ZERO>
#define __dsub_ru gridstride_dsub<GRIDSTRIDE_UPWARD>
#define __dsub_rd gridstride_dsub<GRIDSTRIDE_DOWNWARD>
#define __dmul_rz gridstride_dmul<GRIDSTRIDE_TOWARD_ZERO>
#define __dmul_ru gridstride_dmul<GRIDSTRIDE_UPWARD>
#define __dmul_rd gridstride_dmul<GRIDSTRIDE_DOWNWARD>
#define __ddiv_rz gridstride_ddiv<GRIDSTRIDE_TOWARD_ZERO>
#define __ddiv_ru gridstride_ddiv<GRIDSTRIDE_UPWARD>
#define __ddiv_rd gridstride_ddiv<GRIDSTRIDE_DOWNWARD>
#define __drcp_rz gridstride_drcp<GRIDSTRIDE_TOWARD_ZERO>
#define __drcp_ru gridstride_drcp<GRIDSTRIDE_UPWARD>
#define __drcp_rd gridstride_drcp<GRIDSTRIDE_DOWNWARD>
#define __dsqrt_rz gridstride_dsqrt<GRIDSTRIDE_TOWARD_ZERO>
#define __dsqrt_ru gridstride_dsqrt<GRIDSTRIDE_UPWARD>
#define __dsqrt_rd gridstride_dsqrt<GRIDSTRIDE_DOWNWARD>
#define __fma_rz gridstride_fma<GRIDSTRIDE_TOWARD_ZERO>
#define __fma_ru gridstride_fma<GRIDSTRIDE_UPWARD>
#define __fma_rd gridstride_fma<GRIDSTRIDE_DOWNWARD>

// Denormals are never flushed here, which is all that the `_ieee` forms promise beyond the plain ones.
#define __fmaf_ieee_rn __fmaf_rn
#define __fmaf_ieee_rz __fmaf_rz
#define __fmaf_ieee_ru __fmaf_ru
#define __fmaf_ieee_rd __fmaf_rd

// ---- fast approximations: the accurate function, so at least as close as a GPU's ----

GRIDSTRIDE_DEVICE float __expf(float __x) { return expf(__x); }
GRIDSTRIDE_DEVICE float __exp10f(float __x) { return exp10f(__x); }
GRIDSTRIDE_DEVICE float __logf(float __x) { return logf(__x); }
GRIDSTRIDE_DEVICE float __log2f(float __x) { return log2f(__x); }
GRIDSTRIDE_DEVICE float __log10f(float __x) { return log10f(__x); }
GRIDSTRIDE_DEVICE float __powf(float __x, float __y) { return powf(__x, __y); }
GRIDSTRIDE_DEVICE float __sinf(float __x) { return sinf(__x); }
GRIDSTRIDE_DEVICE float __cosf(float __x) { return cosf(__x); }
GRIDSTRIDE_DEVICE float __tanf(float __x) { return tanf(__x); }
GRIDSTRIDE_DEVICE float __tanhf(float __x) { return tanhf(__x); }
GRIDSTRIDE_DEVICE void __sincosf(float __x, float* __sine, float* __cosine) { sincosf(__x, __sine, __cosine); }
GRIDSTRIDE_DEVICE float __sin2pif(float __x) { return sinpif(2.0f * __x); }
GRIDSTRIDE_DEVICE float __cos2pif(float __x) { return cospif(2.0f * __x); }
GRIDSTRIDE_DEVICE void __sincos2pif(float __x, float* __sine, float* __cosine) { sincospif(2.0f * __x, __sine, __cosine); }
GRIDSTRIDE_DEVICE float __fdividef(float __x, float __y) { return __x / __y; }
GRIDSTRIDE_DEVICE float fdividef(float __x, float __y) { return __x / __y; }
GRIDSTRIDE_DEVICE double fdivide(double __x, double __y) { return __x / __y; }
GRIDSTRIDE_DEVICE float fdivide(float __x, float __y) { return __x / __y; }

// A NaN saturates to zero.
GRIDSTRIDE_DEVICE float __saturatef(float __x) { return fminf(fmaxf(__x, 0.0f), 1.0f); }

#endif
