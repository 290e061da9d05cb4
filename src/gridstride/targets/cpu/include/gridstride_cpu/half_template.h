// One of the 16-bit floating-point types with its pair: the classes, their conversions, atomics and shuffles.
//
// Included once for each type, with these macros:
//
//     GRIDSTRIDE_HALF, GRIDSTRIDE_HALF_RAW    the type, and the plain struct of its bits
//     GRIDSTRIDE_HALF2, GRIDSTRIDE_HALF2_RAW  two of them
//     GRIDSTRIDE_OTHER_HALF                   the other type, which may be incomplete
//     GRIDSTRIDE_HALF_WORD                    how function names call it: half, bfloat16
//     GRIDSTRIDE_HALF_FORMAT                  a format of half_formats.h

#define GRIDSTRIDE_PASTED(before, word, after) before##word##after
#define GRIDSTRIDE_NAMED(before, word, after) GRIDSTRIDE_PASTED(before, word, after)
// before##word##after with the type's word in the middle, for example __float2half_rn
#define GRIDSTRIDE_HALF_NAME(before, after) GRIDSTRIDE_NAMED(before, GRIDSTRIDE_HALF_WORD, after)

// ---- the types ----

struct __align__(2) GRIDSTRIDE_HALF_RAW {
    unsigned short x;
};
struct __align__(4) GRIDSTRIDE_HALF2_RAW {
    unsigned short x, y;
};

struct __align__(2) GRIDSTRIDE_HALF : gridstride_half_operations<GRIDSTRIDE_HALF> {
    GRIDSTRIDE_HALF() = default;
    constexpr GRIDSTRIDE_HALF(const GRIDSTRIDE_HALF_RAW& __raw) : __x(__raw.x) {}
    GRIDSTRIDE_HALF(float __value) : __x(GRIDSTRIDE_HALF_FORMAT::__encode(__value)) {}
    GRIDSTRIDE_HALF(double __value) : GRIDSTRIDE_HALF(gridstride_float_to_odd(__value)) {}
    GRIDSTRIDE_HALF(short __value) : GRIDSTRIDE_HALF(static_cast<float>(__value)) {}
    GRIDSTRIDE_HALF(unsigned short __value) : GRIDSTRIDE_HALF(static_cast<float>(__value)) {}
    GRIDSTRIDE_HALF(int __value) : GRIDSTRIDE_HALF(static_cast<double>(__value)) {}
    GRIDSTRIDE_HALF(unsigned __value) : GRIDSTRIDE_HALF(static_cast<double>(__value)) {}
    GRIDSTRIDE_HALF(long long __value) : GRIDSTRIDE_HALF(gridstride_double_to_odd(__value)) {}
    GRIDSTRIDE_HALF(unsigned long long __value) : GRIDSTRIDE_HALF(gridstride_double_to_odd(__value)) {}
    GRIDSTRIDE_HALF(long __value) : GRIDSTRIDE_HALF(static_cast<long long>(__value)) {}
    GRIDSTRIDE_HALF(unsigned long __value) : GRIDSTRIDE_HALF(static_cast<unsigned long long>(__value)) {}
    explicit GRIDSTRIDE_HALF(const GRIDSTRIDE_OTHER_HALF __value);  // in cuda_bf16.h

    GRIDSTRIDE_HALF& operator=(const GRIDSTRIDE_HALF_RAW& __raw) { __x = __raw.x; return *this; }

    operator GRIDSTRIDE_HALF_RAW() const { return GRIDSTRIDE_HALF_RAW{__x}; }
    operator GRIDSTRIDE_HALF_RAW() const volatile { return GRIDSTRIDE_HALF_RAW{__x}; }
    operator float() const { return __get(); }
    operator bool() const { return (__x & 0x7fff) != 0; }
    operator signed char() const { return gridstride_to_integer<signed char>(__get()); }
    operator unsigned char() const { return gridstride_to_integer<unsigned char>(__get()); }
    operator char() const { return gridstride_to_integer<char>(__get()); }
    operator short() const { return gridstride_to_integer<short>(__get()); }
    operator unsigned short() const { return gridstride_to_integer<unsigned short>(__get()); }
    operator int() const { return gridstride_to_integer<int>(__get()); }
    operator unsigned() const { return gridstride_to_integer<unsigned>(__get()); }
    operator long() const { return gridstride_to_integer<long>(__get()); }
    operator unsigned long() const { return gridstride_to_integer<unsigned long>(__get()); }
    operator long long() const { return gridstride_to_integer<long long>(__get()); }
    operator unsigned long long() const { return gridstride_to_integer<unsigned long long>(__get()); }

    float __get() const { return GRIDSTRIDE_HALF_FORMAT::__decode(__x); }
    unsigned short __bits() const { return __x; }
    static GRIDSTRIDE_HALF __round(float __value) { return __of_bits(GRIDSTRIDE_HALF_FORMAT::__encode(__value)); }
    static GRIDSTRIDE_HALF __of_bits(int __value) {
        return GRIDSTRIDE_HALF_RAW{static_cast<unsigned short>(__value)};
    }

  protected:
    unsigned short __x;
};

struct __align__(4) GRIDSTRIDE_HALF2 : gridstride_half_pair_operations<GRIDSTRIDE_HALF2, GRIDSTRIDE_HALF> {
    GRIDSTRIDE_HALF x, y;

    GRIDSTRIDE_HALF2() = default;
    constexpr GRIDSTRIDE_HALF2(const GRIDSTRIDE_HALF& __low, const GRIDSTRIDE_HALF& __high) : x(__low), y(__high) {}
    GRIDSTRIDE_HALF2(const GRIDSTRIDE_HALF2_RAW& __raw) : x(GRIDSTRIDE_HALF::__of_bits(__raw.x)), y(GRIDSTRIDE_HALF::__of_bits(__raw.y)) {}
    operator GRIDSTRIDE_HALF2_RAW() const {
        return GRIDSTRIDE_HALF2_RAW{x.__bits(), y.__bits()};
    }
};

// ---- bits and pairs ----

GRIDSTRIDE_DEVICE unsigned short GRIDSTRIDE_HALF_NAME(__, _as_ushort)(const GRIDSTRIDE_HALF __h) { return __h.__bits(); }
GRIDSTRIDE_DEVICE short GRIDSTRIDE_HALF_NAME(__, _as_short)(const GRIDSTRIDE_HALF __h) { return static_cast<short>(__h.__bits()); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF GRIDSTRIDE_HALF_NAME(__ushort_as_, )(unsigned short __bits) { return GRIDSTRIDE_HALF::__of_bits(__bits); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF GRIDSTRIDE_HALF_NAME(__short_as_, )(short __bits) { return GRIDSTRIDE_HALF::__of_bits(__bits); }

GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_HALF_NAME(make_, 2)(GRIDSTRIDE_HALF __low, GRIDSTRIDE_HALF __high) { return GRIDSTRIDE_HALF2(__low, __high); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_HALF_NAME(__halves2, 2)(GRIDSTRIDE_HALF __low, GRIDSTRIDE_HALF __high) { return GRIDSTRIDE_HALF2(__low, __high); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF GRIDSTRIDE_HALF_NAME(__low2, )(GRIDSTRIDE_HALF2 __p) { return __p.x; }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF GRIDSTRIDE_HALF_NAME(__high2, )(GRIDSTRIDE_HALF2 __p) { return __p.y; }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_HALF_NAME(__low2, 2)(GRIDSTRIDE_HALF2 __p) { return GRIDSTRIDE_HALF2(__p.x, __p.x); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_HALF_NAME(__high2, 2)(GRIDSTRIDE_HALF2 __p) { return GRIDSTRIDE_HALF2(__p.y, __p.y); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_HALF_NAME(__lows2, 2)(GRIDSTRIDE_HALF2 __p, GRIDSTRIDE_HALF2 __q) { return GRIDSTRIDE_HALF2(__p.x, __q.x); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_HALF_NAME(__highs2, 2)(GRIDSTRIDE_HALF2 __p, GRIDSTRIDE_HALF2 __q) { return GRIDSTRIDE_HALF2(__p.y, __q.y); }

// ---- conversions from and to float and double ----

GRIDSTRIDE_DEVICE float GRIDSTRIDE_HALF_NAME(__, 2float)(GRIDSTRIDE_HALF __h) { return __h.__get(); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF GRIDSTRIDE_HALF_NAME(__float2, )(float __v) { return GRIDSTRIDE_HALF::__round(__v); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF GRIDSTRIDE_HALF_NAME(__float2, _rn)(float __v) { return GRIDSTRIDE_HALF::__round(__v); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF GRIDSTRIDE_HALF_NAME(__double2, )(double __v) { return GRIDSTRIDE_HALF::__round(gridstride_float_to_odd(__v)); }
GRIDSTRIDE_DEVICE float2 GRIDSTRIDE_NAMED(GRIDSTRIDE_HALF_NAME(__, 2), 2, float2)(GRIDSTRIDE_HALF2 __p) { return float2{__p.x.__get(), __p.y.__get()}; }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_HALF_NAME(__float22, 2_rn)(float2 __v) { return GRIDSTRIDE_HALF2(GRIDSTRIDE_HALF::__round(__v.x), GRIDSTRIDE_HALF::__round(__v.y)); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_HALF_NAME(__floats2, 2_rn)(float __low, float __high) { return GRIDSTRIDE_HALF2(GRIDSTRIDE_HALF::__round(__low), GRIDSTRIDE_HALF::__round(__high)); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_HALF_NAME(__float2, 2_rn)(float __v) { return GRIDSTRIDE_HALF2(GRIDSTRIDE_HALF::__round(__v), GRIDSTRIDE_HALF::__round(__v)); }
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 GRIDSTRIDE_NAMED(GRIDSTRIDE_HALF_NAME(__, 2), GRIDSTRIDE_HALF_WORD, 2)(GRIDSTRIDE_HALF __h) { return GRIDSTRIDE_HALF2(__h, __h); }

// ---- conversions with a stated rounding ----

#define GRIDSTRIDE_ENCODED(name, type, exact, rounding) \
    GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF name(type __v) { \
        return GRIDSTRIDE_HALF::__of_bits(gridstride_encode<GRIDSTRIDE_HALF_FORMAT>(exact, rounding)); \
    }
#define GRIDSTRIDE_ENCODED_EACH_WAY(word, type, exact) \
    GRIDSTRIDE_ENCODED(GRIDSTRIDE_HALF_NAME(__##word##2, _rz), type, exact, GRIDSTRIDE_HALF_RZ) \
    GRIDSTRIDE_ENCODED(GRIDSTRIDE_HALF_NAME(__##word##2, _ru), type, exact, GRIDSTRIDE_HALF_RU) \
    GRIDSTRIDE_ENCODED(GRIDSTRIDE_HALF_NAME(__##word##2, _rd), type, exact, GRIDSTRIDE_HALF_RD)
#define GRIDSTRIDE_FROM_INTEGER(word, type, exact) \
    GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF GRIDSTRIDE_HALF_NAME(__##word##2, _rn)(type __v) { return __v; } \
    GRIDSTRIDE_ENCODED_EACH_WAY(word, type, exact)

GRIDSTRIDE_ENCODED_EACH_WAY(float, float, __v)
GRIDSTRIDE_FROM_INTEGER(short, short, __v)
GRIDSTRIDE_FROM_INTEGER(ushort, unsigned short, __v)
GRIDSTRIDE_FROM_INTEGER(int, int, __v)
GRIDSTRIDE_FROM_INTEGER(uint, unsigned, __v)
GRIDSTRIDE_FROM_INTEGER(ll, long long, gridstride_double_to_odd(__v))
GRIDSTRIDE_FROM_INTEGER(ull, unsigned long long, gridstride_double_to_odd(__v))

#define GRIDSTRIDE_TO_INTEGER(word, type) \
    GRIDSTRIDE_DEVICE type GRIDSTRIDE_HALF_NAME(__, 2##word##_rn)(GRIDSTRIDE_HALF __h) { return gridstride_float_to_nearest<type>(__h.__get()); } \
    GRIDSTRIDE_DEVICE type GRIDSTRIDE_HALF_NAME(__, 2##word##_rz)(GRIDSTRIDE_HALF __h) { return gridstride_float_toward_zero<type>(__h.__get()); } \
    GRIDSTRIDE_DEVICE type GRIDSTRIDE_HALF_NAME(__, 2##word##_ru)(GRIDSTRIDE_HALF __h) { return gridstride_float_upward<type>(__h.__get()); } \
    GRIDSTRIDE_DEVICE type GRIDSTRIDE_HALF_NAME(__, 2##word##_rd)(GRIDSTRIDE_HALF __h) { return gridstride_float_downward<type>(__h.__get()); }

GRIDSTRIDE_TO_INTEGER(short, short)
GRIDSTRIDE_TO_INTEGER(ushort, unsigned short)
GRIDSTRIDE_TO_INTEGER(int, int)
GRIDSTRIDE_TO_INTEGER(uint, unsigned)
GRIDSTRIDE_TO_INTEGER(ll, long long)
GRIDSTRIDE_TO_INTEGER(ull, unsigned long long)
GRIDSTRIDE_DEVICE signed char GRIDSTRIDE_HALF_NAME(__, 2char_rz)(GRIDSTRIDE_HALF __h) { return gridstride_float_toward_zero<signed char>(__h.__get()); }
GRIDSTRIDE_DEVICE unsigned char GRIDSTRIDE_HALF_NAME(__, 2uchar_rz)(GRIDSTRIDE_HALF __h) { return gridstride_float_toward_zero<unsigned char>(__h.__get()); }

#undef GRIDSTRIDE_TO_INTEGER
#undef GRIDSTRIDE_FROM_INTEGER
#undef GRIDSTRIDE_ENCODED_EACH_WAY
#undef GRIDSTRIDE_ENCODED

// ---- friends, made visible to calls without an argument of the type: `hsqrt(2.0f)` ----

#define GRIDSTRIDE_VISIBLE_1(name) GRIDSTRIDE_HALF name(const GRIDSTRIDE_HALF);
#define GRIDSTRIDE_VISIBLE_2(name) GRIDSTRIDE_HALF name(const GRIDSTRIDE_HALF, const GRIDSTRIDE_HALF);
GRIDSTRIDE_VISIBLE_1(hsqrt)
GRIDSTRIDE_VISIBLE_1(hrsqrt)
GRIDSTRIDE_VISIBLE_1(hrcp)
GRIDSTRIDE_VISIBLE_1(hexp)
GRIDSTRIDE_VISIBLE_1(hexp2)
GRIDSTRIDE_VISIBLE_1(hexp10)
GRIDSTRIDE_VISIBLE_1(hlog)
GRIDSTRIDE_VISIBLE_1(hlog2)
GRIDSTRIDE_VISIBLE_1(hlog10)
GRIDSTRIDE_VISIBLE_1(hsin)
GRIDSTRIDE_VISIBLE_1(hcos)
GRIDSTRIDE_VISIBLE_1(htanh)
GRIDSTRIDE_VISIBLE_1(htanh_approx)
GRIDSTRIDE_VISIBLE_1(hceil)
GRIDSTRIDE_VISIBLE_1(hfloor)
GRIDSTRIDE_VISIBLE_1(htrunc)
GRIDSTRIDE_VISIBLE_1(hrint)
GRIDSTRIDE_VISIBLE_1(__hneg)
GRIDSTRIDE_VISIBLE_1(__habs)
GRIDSTRIDE_VISIBLE_2(__hsub)
GRIDSTRIDE_VISIBLE_2(__hmul)
GRIDSTRIDE_VISIBLE_2(__hdiv)
GRIDSTRIDE_VISIBLE_2(__hmax)
GRIDSTRIDE_VISIBLE_2(__hmin)
GRIDSTRIDE_HALF __hfma(const GRIDSTRIDE_HALF, const GRIDSTRIDE_HALF, const GRIDSTRIDE_HALF);
bool __hisnan(const GRIDSTRIDE_HALF);
int __hisinf(const GRIDSTRIDE_HALF);
#undef GRIDSTRIDE_VISIBLE_2
#undef GRIDSTRIDE_VISIBLE_1

// ---- atomics, shuffles, cache hints ----

GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF gridstride_atomic_add(GRIDSTRIDE_HALF* __address, GRIDSTRIDE_HALF __operand, const char* __file, unsigned __line) {
    return gridstride_atomic_update(__address, [=](GRIDSTRIDE_HALF __old) { return __old + __operand; }, __file, __line);
}
GRIDSTRIDE_DEVICE GRIDSTRIDE_HALF2 gridstride_atomic_add(GRIDSTRIDE_HALF2* __address, GRIDSTRIDE_HALF2 __operand, const char* __file, unsigned __line) {
    return gridstride_atomic_update(__address, [=](GRIDSTRIDE_HALF2 __old) { return __old + __operand; }, __file, __line);
}

template <> struct gridstride_shuffled<GRIDSTRIDE_HALF> { typedef GRIDSTRIDE_HALF type; };
template <> struct gridstride_shuffled<GRIDSTRIDE_HALF2> { typedef GRIDSTRIDE_HALF2 type; };

GRIDSTRIDE_HINTABLE(GRIDSTRIDE_HALF)
GRIDSTRIDE_HINTABLE(GRIDSTRIDE_HALF2)

#undef GRIDSTRIDE_HALF_NAME
#undef GRIDSTRIDE_NAMED
#undef GRIDSTRIDE_PASTED
#undef GRIDSTRIDE_HALF
#undef GRIDSTRIDE_HALF_RAW
#undef GRIDSTRIDE_HALF2
#undef GRIDSTRIDE_HALF2_RAW
#undef GRIDSTRIDE_OTHER_HALF
#undef GRIDSTRIDE_HALF_WORD
#undef GRIDSTRIDE_HALF_FORMAT
