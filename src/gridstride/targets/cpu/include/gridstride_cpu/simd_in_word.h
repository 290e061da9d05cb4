// SIMD in a word: a 32-bit word as two 16-bit or four 8-bit lanes (__vadd2, __vcmpgtu4, __viaddmax_s16x2 ...).
//
// Names end in the number of lanes; s and u mark signed and unsigned lanes, ss and us saturate. Each operation
// is one template over the kind of lanes, which costs nothing where it is not used.
#ifndef GRIDSTRIDE_CPU_SIMD_IN_WORD_H
#define GRIDSTRIDE_CPU_SIMD_IN_WORD_H

#include "math_functions.h"

// ---- lanes ----

typedef signed char gridstride_s4 __attribute__((vector_size(4)));
typedef unsigned char gridstride_u4 __attribute__((vector_size(4)));
typedef short gridstride_s2 __attribute__((vector_size(4)));
typedef unsigned short gridstride_u2 __attribute__((vector_size(4)));

gridstride_u4 gridstride_unsigned_lanes(gridstride_s4);
gridstride_u4 gridstride_unsigned_lanes(gridstride_u4);
gridstride_u2 gridstride_unsigned_lanes(gridstride_s2);
gridstride_u2 gridstride_unsigned_lanes(gridstride_u2);

// Where a comparison of lanes holds, its result has all bits set.
template <class __lanes> GRIDSTRIDE_DEVICE __lanes gridstride_where(__lanes __mask, __lanes __first, __lanes __second) {
    return (__mask & __first) | (~__mask & __second);
}
// The largest value a lane can have, and its lowest where `__negative` is set.
template <class __lanes> GRIDSTRIDE_DEVICE __lanes gridstride_limit(__lanes __negative) {
    const __lanes __ones = ~(__lanes)0u;
    return __negative ^ (__lanes)((__ones << (8 * sizeof(__ones[0]) - 1)) ^ __ones);
}

// `name<lanes>` of words is `expression` of their lanes __x (and __y).
#define GRIDSTRIDE_LANES_1(name, expression) \
    template <class __lanes> GRIDSTRIDE_DEVICE unsigned name(unsigned __word) { \
        const __lanes __x = (__lanes)__word; \
        return (unsigned)(expression); \
    }
#define GRIDSTRIDE_LANES_2(name, expression) \
    template <class __lanes> GRIDSTRIDE_DEVICE unsigned name(unsigned __first, unsigned __second) { \
        const __lanes __x = (__lanes)__first, __y = (__lanes)__second; \
        return (unsigned)(expression); \
    }

// ---- sums and differences ----

GRIDSTRIDE_LANES_2(gridstride_vadd, __x + __y)
GRIDSTRIDE_LANES_2(gridstride_vsub, __x - __y)
GRIDSTRIDE_LANES_2(gridstride_vaddus, (__x + __y) | (__lanes)((__lanes)(__x + __y) < __x))
GRIDSTRIDE_LANES_2(gridstride_vsubus, (__x - __y) & (__lanes)(__x > __y))
GRIDSTRIDE_LANES_2(gridstride_vaddss, gridstride_where<__lanes>(((__x ^ (__x + __y)) & (__y ^ (__x + __y))) < 0, gridstride_limit<__lanes>(__x < 0), __x + __y))
GRIDSTRIDE_LANES_2(gridstride_vsubss, gridstride_where<__lanes>(((__x ^ __y) & (__x ^ (__x - __y))) < 0, gridstride_limit<__lanes>(__x < 0), __x - __y))

#define __vadd2 gridstride_vadd<gridstride_u2>
#define __vadd4 gridstride_vadd<gridstride_u4>
#define __vsub2 gridstride_vsub<gridstride_u2>
#define __vsub4 gridstride_vsub<gridstride_u4>
#define __vaddus2 gridstride_vaddus<gridstride_u2>
#define __vaddus4 gridstride_vaddus<gridstride_u4>
#define __vsubus2 gridstride_vsubus<gridstride_u2>
#define __vsubus4 gridstride_vsubus<gridstride_u4>
#define __vaddss2 gridstride_vaddss<gridstride_s2>
#define __vaddss4 gridstride_vaddss<gridstride_s4>
#define __vsubss2 gridstride_vsubss<gridstride_s2>
#define __vsubss4 gridstride_vsubss<gridstride_s4>

// ---- negation, absolute value, absolute difference ----

GRIDSTRIDE_LANES_1(gridstride_vneg, -__x)
GRIDSTRIDE_LANES_1(gridstride_vnegss, -__x + ((__x & -__x) < 0))
GRIDSTRIDE_LANES_1(gridstride_vabs, (__x ^ (__x < 0)) - (__x < 0))
GRIDSTRIDE_LANES_1(gridstride_vabsss, gridstride_where<__lanes>(__x < 0, (__lanes)gridstride_vnegss<__lanes>(__word), __x))
GRIDSTRIDE_LANES_2(gridstride_vabsdiff, gridstride_where<__lanes>((__lanes)(__x > __y), __x - __y, __y - __x))

#define __vneg2 gridstride_vneg<gridstride_s2>
#define __vneg4 gridstride_vneg<gridstride_s4>
#define __vnegss2 gridstride_vnegss<gridstride_s2>
#define __vnegss4 gridstride_vnegss<gridstride_s4>
#define __vabs2 gridstride_vabs<gridstride_s2>
#define __vabs4 gridstride_vabs<gridstride_s4>
#define __vabsss2 gridstride_vabsss<gridstride_s2>
#define __vabsss4 gridstride_vabsss<gridstride_s4>
#define __vabsdiffs2 gridstride_vabsdiff<gridstride_s2>
#define __vabsdiffs4 gridstride_vabsdiff<gridstride_s4>
#define __vabsdiffu2 gridstride_vabsdiff<gridstride_u2>
#define __vabsdiffu4 gridstride_vabsdiff<gridstride_u4>

// ---- averages: rounded down (__vhaddu), up (__vavgu), away from zero (__vavgs) ----

GRIDSTRIDE_LANES_2(gridstride_vhadd, (__x & __y) + ((__x ^ __y) >> 1))
GRIDSTRIDE_LANES_2(gridstride_vavgu, (__x | __y) - ((__x ^ __y) >> 1))
GRIDSTRIDE_LANES_2(gridstride_vavgs, (__x & __y) + ((__x ^ __y) >> 1) + ((__x ^ __y) & 1 & (((__x & __y) + ((__x ^ __y) >> 1)) >= 0)))

#define __vhaddu2 gridstride_vhadd<gridstride_u2>
#define __vhaddu4 gridstride_vhadd<gridstride_u4>
#define __vavgu2 gridstride_vavgu<gridstride_u2>
#define __vavgu4 gridstride_vavgu<gridstride_u4>
#define __vavgs2 gridstride_vavgs<gridstride_s2>
#define __vavgs4 gridstride_vavgs<gridstride_s4>

// ---- extrema ----

GRIDSTRIDE_LANES_2(gridstride_vmax, gridstride_where<__lanes>((__lanes)(__x > __y), __x, __y))
GRIDSTRIDE_LANES_2(gridstride_vmin, gridstride_where<__lanes>((__lanes)(__x < __y), __x, __y))

#define __vmaxs2 gridstride_vmax<gridstride_s2>
#define __vmaxs4 gridstride_vmax<gridstride_s4>
#define __vmaxu2 gridstride_vmax<gridstride_u2>
#define __vmaxu4 gridstride_vmax<gridstride_u4>
#define __vmins2 gridstride_vmin<gridstride_s2>
#define __vmins4 gridstride_vmin<gridstride_s4>
#define __vminu2 gridstride_vmin<gridstride_u2>
#define __vminu4 gridstride_vmin<gridstride_u4>

// ---- comparisons: all bits of a lane (__vcmp) or its lowest (__vset) where they hold ----

GRIDSTRIDE_LANES_2(gridstride_vcmpeq, (__lanes)(__x == __y))
GRIDSTRIDE_LANES_2(gridstride_vcmpne, (__lanes)(__x != __y))
GRIDSTRIDE_LANES_2(gridstride_vcmpge, (__lanes)(__x >= __y))
GRIDSTRIDE_LANES_2(gridstride_vcmpgt, (__lanes)(__x > __y))
GRIDSTRIDE_LANES_2(gridstride_vcmple, (__lanes)(__x <= __y))
GRIDSTRIDE_LANES_2(gridstride_vcmplt, (__lanes)(__x < __y))
GRIDSTRIDE_LANES_2(gridstride_vseteq, (__lanes)(__x == __y) & 1)
GRIDSTRIDE_LANES_2(gridstride_vsetne, (__lanes)(__x != __y) & 1)
GRIDSTRIDE_LANES_2(gridstride_vsetge, (__lanes)(__x >= __y) & 1)
GRIDSTRIDE_LANES_2(gridstride_vsetgt, (__lanes)(__x > __y) & 1)
GRIDSTRIDE_LANES_2(gridstride_vsetle, (__lanes)(__x <= __y) & 1)
GRIDSTRIDE_LANES_2(gridstride_vsetlt, (__lanes)(__x < __y) & 1)

#define __vcmpeq2 gridstride_vcmpeq<gridstride_u2>
#define __vcmpeq4 gridstride_vcmpeq<gridstride_u4>
#define __vcmpne2 gridstride_vcmpne<gridstride_u2>
#define __vcmpne4 gridstride_vcmpne<gridstride_u4>
#define __vseteq2 gridstride_vseteq<gridstride_u2>
#define __vseteq4 gridstride_vseteq<gridstride_u4>
#define __vsetne2 gridstride_vsetne<gridstride_u2>
#define __vsetne4 gridstride_vsetne<gridstride_u4>
#define __vcmpges2 gridstride_vcmpge<gridstride_s2>
#define __vcmpges4 gridstride_vcmpge<gridstride_s4>
#define __vcmpgeu2 gridstride_vcmpge<gridstride_u2>
#define __vcmpgeu4 gridstride_vcmpge<gridstride_u4>
#define __vcmpgts2 gridstride_vcmpgt<gridstride_s2>
#define __vcmpgts4 gridstride_vcmpgt<gridstride_s4>
#define __vcmpgtu2 gridstride_vcmpgt<gridstride_u2>
#define __vcmpgtu4 gridstride_vcmpgt<gridstride_u4>
#define __vcmples2 gridstride_vcmple<gridstride_s2>
#define __vcmples4 gridstride_vcmple<gridstride_s4>
#define __vcmpleu2 gridstride_vcmple<gridstride_u2>
#define __vcmpleu4 gridstride_vcmple<gridstride_u4>
#define __vcmplts2 gridstride_vcmplt<gridstride_s2>
#define __vcmplts4 gridstride_vcmplt<gridstride_s4>
#define __vcmpltu2 gridstride_vcmplt<gridstride_u2>
#define __vcmpltu4 gridstride_vcmplt<gridstride_u4>
#define __vsetges2 gridstride_vsetge<gridstride_s2>
#define __vsetges4 gridstride_vsetge<gridstride_s4>
#define __vsetgeu2 gridstride_vsetge<gridstride_u2>
#define __vsetgeu4 gridstride_vsetge<gridstride_u4>
#define __vsetgts2 gridstride_vsetgt<gridstride_s2>
#define __vsetgts4 gridstride_vsetgt<gridstride_s4>
#define __vsetgtu2 gridstride_vsetgt<gridstride_u2>
#define __vsetgtu4 gridstride_vsetgt<gridstride_u4>
#define __vsetles2 gridstride_vsetle<gridstride_s2>
#define __vsetles4 gridstride_vsetle<gridstride_s4>
#define __vsetleu2 gridstride_vsetle<gridstride_u2>
#define __vsetleu4 gridstride_vsetle<gridstride_u4>
#define __vsetlts2 gridstride_vsetlt<gridstride_s2>
#define __vsetlts4 gridstride_vsetlt<gridstride_s4>
#define __vsetltu2 gridstride_vsetlt<gridstride_u2>
#define __vsetltu4 gridstride_vsetlt<gridstride_u4>

// ---- sums of absolute differences ----

template <class __lanes> GRIDSTRIDE_DEVICE unsigned gridstride_vsad(unsigned __first, unsigned __second) {
    typedef decltype(gridstride_unsigned_lanes(__lanes())) __unsigned;
    const __unsigned __differences = (__unsigned)gridstride_vabsdiff<__lanes>(__first, __second);
    unsigned __sum = 0;
    for (unsigned __i = 0; __i < sizeof __differences / sizeof(__differences[0]); ++__i) __sum += __differences[__i];
    return __sum;
}

#define __vsads2 gridstride_vsad<gridstride_s2>
#define __vsads4 gridstride_vsad<gridstride_s4>
#define __vsadu2 gridstride_vsad<gridstride_u2>
#define __vsadu4 gridstride_vsad<gridstride_u4>

// ---- extrema of three, of a sum and another, or of two but not below zero (relu): whole words ----

template <class __word> GRIDSTRIDE_DEVICE __word gridstride_vimax3(__word __x, __word __y, __word __z) { return max(max(__x, __y), __z); }
template <class __word> GRIDSTRIDE_DEVICE __word gridstride_vimin3(__word __x, __word __y, __word __z) { return min(min(__x, __y), __z); }
template <class __word> GRIDSTRIDE_DEVICE __word gridstride_viaddmax(__word __x, __word __y, __word __z) {
    return max(static_cast<__word>(static_cast<unsigned>(__x) + static_cast<unsigned>(__y)), __z);
}
template <class __word> GRIDSTRIDE_DEVICE __word gridstride_viaddmin(__word __x, __word __y, __word __z) {
    return min(static_cast<__word>(static_cast<unsigned>(__x) + static_cast<unsigned>(__y)), __z);
}

#define __vimax3_s32 gridstride_vimax3<int>
#define __vimax3_u32 gridstride_vimax3<unsigned>
#define __vimin3_s32 gridstride_vimin3<int>
#define __vimin3_u32 gridstride_vimin3<unsigned>
#define __viaddmax_s32 gridstride_viaddmax<int>
#define __viaddmax_u32 gridstride_viaddmax<unsigned>
#define __viaddmin_s32 gridstride_viaddmin<int>
#define __viaddmin_u32 gridstride_viaddmin<unsigned>

GRIDSTRIDE_DEVICE int __vimax_s32_relu(int __x, int __y) { return max(max(__x, __y), 0); }
GRIDSTRIDE_DEVICE int __vimin_s32_relu(int __x, int __y) { return max(min(__x, __y), 0); }
GRIDSTRIDE_DEVICE int __vimax3_s32_relu(int __x, int __y, int __z) { return max(__vimax3_s32(__x, __y, __z), 0); }
GRIDSTRIDE_DEVICE int __vimin3_s32_relu(int __x, int __y, int __z) { return max(__vimin3_s32(__x, __y, __z), 0); }
GRIDSTRIDE_DEVICE int __viaddmax_s32_relu(int __x, int __y, int __z) { return max(__viaddmax_s32(__x, __y, __z), 0); }
GRIDSTRIDE_DEVICE int __viaddmin_s32_relu(int __x, int __y, int __z) { return max(__viaddmin_s32(__x, __y, __z), 0); }

// ---- the same of 16-bit lanes ----

template <class __lanes> GRIDSTRIDE_DEVICE unsigned gridstride_vimax3_lanes(unsigned __x, unsigned __y, unsigned __z) {
    return gridstride_vmax<__lanes>(gridstride_vmax<__lanes>(__x, __y), __z);
}
template <class __lanes> GRIDSTRIDE_DEVICE unsigned gridstride_vimin3_lanes(unsigned __x, unsigned __y, unsigned __z) {
    return gridstride_vmin<__lanes>(gridstride_vmin<__lanes>(__x, __y), __z);
}
template <class __lanes> GRIDSTRIDE_DEVICE unsigned gridstride_viaddmax_lanes(unsigned __x, unsigned __y, unsigned __z) {
    return gridstride_vmax<__lanes>(gridstride_vadd<__lanes>(__x, __y), __z);
}
template <class __lanes> GRIDSTRIDE_DEVICE unsigned gridstride_viaddmin_lanes(unsigned __x, unsigned __y, unsigned __z) {
    return gridstride_vmin<__lanes>(gridstride_vadd<__lanes>(__x, __y), __z);
}

#define __vimax3_s16x2 gridstride_vimax3_lanes<gridstride_s2>
#define __vimax3_u16x2 gridstride_vimax3_lanes<gridstride_u2>
#define __vimin3_s16x2 gridstride_vimin3_lanes<gridstride_s2>
#define __vimin3_u16x2 gridstride_vimin3_lanes<gridstride_u2>
#define __viaddmax_s16x2 gridstride_viaddmax_lanes<gridstride_s2>
#define __viaddmax_u16x2 gridstride_viaddmax_lanes<gridstride_u2>
#define __viaddmin_s16x2 gridstride_viaddmin_lanes<gridstride_s2>
#define __viaddmin_u16x2 gridstride_viaddmin_lanes<gridstride_u2>

template <unsigned (*__operation)(unsigned, unsigned, unsigned)>
GRIDSTRIDE_DEVICE unsigned gridstride_relu_lanes(unsigned __x, unsigned __y, unsigned __z) {
    return gridstride_vmax<gridstride_s2>(__operation(__x, __y, __z), 0);
}
#define __vimax3_s16x2_relu gridstride_relu_lanes<__vimax3_s16x2>
#define __vimin3_s16x2_relu gridstride_relu_lanes<__vimin3_s16x2>
#define __viaddmax_s16x2_relu gridstride_relu_lanes<__viaddmax_s16x2>
#define __viaddmin_s16x2_relu gridstride_relu_lanes<__viaddmin_s16x2>
GRIDSTRIDE_DEVICE unsigned __vimax_s16x2_relu(unsigned __x, unsigned __y) { return __vimax3_s16x2(__x, __y, 0); }
GRIDSTRIDE_DEVICE unsigned __vimin_s16x2_relu(unsigned __x, unsigned __y) { return __vmaxs2(__vmins2(__x, __y), 0); }

// ---- extrema of two with a verdict: whether the first was chosen ----

template <class __word> GRIDSTRIDE_DEVICE __word gridstride_vibmax(__word __x, __word __y, bool* __first) {
    *__first = __x >= __y;
    return *__first ? __x : __y;
}
template <class __word> GRIDSTRIDE_DEVICE __word gridstride_vibmin(__word __x, __word __y, bool* __first) {
    *__first = __x <= __y;
    return *__first ? __x : __y;
}
template <class __half> GRIDSTRIDE_DEVICE unsigned gridstride_vibmax_halves(unsigned __x, unsigned __y, bool* __high, bool* __low) {
    const int __upper = gridstride_vibmax<int>(static_cast<__half>(__x >> 16), static_cast<__half>(__y >> 16), __high);
    const int __lower = gridstride_vibmax<int>(static_cast<__half>(__x), static_cast<__half>(__y), __low);
    return static_cast<unsigned>(__upper) << 16 | (static_cast<unsigned>(__lower) & 0xffff);
}
template <class __half> GRIDSTRIDE_DEVICE unsigned gridstride_vibmin_halves(unsigned __x, unsigned __y, bool* __high, bool* __low) {
    const int __upper = gridstride_vibmin<int>(static_cast<__half>(__x >> 16), static_cast<__half>(__y >> 16), __high);
    const int __lower = gridstride_vibmin<int>(static_cast<__half>(__x), static_cast<__half>(__y), __low);
    return static_cast<unsigned>(__upper) << 16 | (static_cast<unsigned>(__lower) & 0xffff);
}

#define __vibmax_s32 gridstride_vibmax<int>
#define __vibmax_u32 gridstride_vibmax<unsigned>
#define __vibmin_s32 gridstride_vibmin<int>
#define __vibmin_u32 gridstride_vibmin<unsigned>
#define __vibmax_s16x2 gridstride_vibmax_halves<short>
#define __vibmax_u16x2 gridstride_vibmax_halves<unsigned short>
#define __vibmin_s16x2 gridstride_vibmin_halves<short>
#define __vibmin_u16x2 gridstride_vibmin_halves<unsigned short>

#undef GRIDSTRIDE_LANES_2
#undef GRIDSTRIDE_LANES_1

#endif
