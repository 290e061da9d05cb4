// Floating-point numbers of which only is known between which bounds they lie: a compiler that contracts may leave
// out the rounding of any product that is added or subtracted. Every operation rounds to nearest, which keeps
// the order of numbers, so the bounds of a result are among the results of the operands' bounds.

// Whether a thread did something that other numbers within the bounds would not have made it do.
__device__ int undecided;

template <typename T> struct Bounds {
    T low, high;
    bool is_empty, is_nan;
    __device__ Bounds() : low(0), high(0), is_empty(true), is_nan(false) {}
    __device__ void add(T number) {
        if (number != number) { is_nan = true; return; }
        if (is_empty || number < low) low = number;
        if (is_empty || number > high) high = number;
        is_empty = false;
    }
};

// A conversion as the CPU target writes it, which g++ takes for nothing else.
template <typename U, typename T> __device__ U whole(T number) {
    if constexpr ((U)2 == (U)1) return number != 0;  // bool
    else return gridstride_cast<U>(number);
}

template <typename T> struct Fusing {
    T low, high;
    // The factors, if it is a product whose rounding may be left out.
    T first[2], second[2];
    bool is_product;

    Fusing() = default;
    template <typename U> __device__ Fusing(U number) : low((T)number), high((T)number), is_product(false) {}
    template <typename U> __device__ Fusing(const Fusing<U>& other) : low((T)other.low), high((T)other.high), is_product(false) {}
    __device__ Fusing(T low, T high) : low(low), high(high), is_product(false) {}
    __device__ Fusing(const Bounds<T>& bounds) : low(bounds.low), high(bounds.high), is_product(false) {
        if (bounds.is_nan && !bounds.is_empty) undecided = 1;
        if (bounds.is_nan) low = high = (T)__int_as_float(0x7fc00000);
    }
    template <typename U> __device__ explicit operator U() const {
        const U least = whole<U>(low), most = whole<U>(high);
        if (least != most || (low < 0 && high > 0 && least != (U)0)) undecided = 1;
        return least;
    }
    template <typename U> __device__ Fusing& operator+=(const U& other) { return *this = Fusing(*this + other); }
    template <typename U> __device__ Fusing& operator-=(const U& other) { return *this = Fusing(*this - other); }
    template <typename U> __device__ Fusing& operator*=(const U& other) { return *this = Fusing(*this * other); }
    __device__ Fusing operator-() const {
        Fusing result(-high, -low);
        result.is_product = is_product;
        result.first[0] = -first[1], result.first[1] = -first[0];
        result.second[0] = second[0], result.second[1] = second[1];
        return result;
    }
};

__device__ float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ double fused(double a, double b, double c) { return fma(a, b, c); }

template <typename T> __device__ void add_fused(Bounds<T>& bounds, const Fusing<T>& product, const Fusing<T>& other) {
    if (!product.is_product) return;
    for (int k = 0; k < 8; ++k)
        bounds.add(fused(product.first[k & 1], product.second[k >> 1 & 1], k & 4 ? other.high : other.low));
}
template <typename T> __device__ Fusing<T> sum(const Fusing<T>& a, const Fusing<T>& b) {
    Bounds<T> bounds;
    bounds.add(a.low + b.low);
    bounds.add(a.high + b.high);
    add_fused(bounds, a, b);
    add_fused(bounds, b, a);
    return bounds;
}
template <typename T> __device__ Fusing<T> difference(const Fusing<T>& a, const Fusing<T>& b) { return sum(a, -b); }
template <typename T> __device__ Fusing<T> product(const Fusing<T>& a, const Fusing<T>& b) {
    Bounds<T> bounds;
    for (int k = 0; k < 4; ++k) bounds.add((k & 1 ? a.high : a.low) * (k & 2 ? b.high : b.low));
    Fusing<T> result(bounds);
    result.is_product = true;
    result.first[0] = a.low, result.first[1] = a.high, result.second[0] = b.low, result.second[1] = b.high;
    return result;
}
template <typename T> __device__ Fusing<T> quotient(const Fusing<T>& a, const Fusing<T>& b) {
    Bounds<T> bounds;
    if (b.low <= 0 && b.high >= 0 && (b.low != 0 || b.high != 0)) undecided = 1;
    for (int k = 0; k < 4; ++k) bounds.add((k & 1 ? a.high : a.low) / (k & 2 ? b.high : b.low));
    return bounds;
}
template <typename T> __device__ bool decided(bool always, bool possible, T) {
    if (always != possible) undecided = 1;
    return always;
}
template <typename T> __device__ bool less(const Fusing<T>& a, const Fusing<T>& b) { return decided(a.high < b.low, a.low < b.high, T()); }
template <typename T> __device__ bool less_equal(const Fusing<T>& a, const Fusing<T>& b) { return decided(a.high <= b.low, a.low <= b.high, T()); }
template <typename T> __device__ bool greater(const Fusing<T>& a, const Fusing<T>& b) { return less(b, a); }
template <typename T> __device__ bool greater_equal(const Fusing<T>& a, const Fusing<T>& b) { return less_equal(b, a); }
template <typename T> __device__ bool equal(const Fusing<T>& a, const Fusing<T>& b) {
    return decided(a.low == a.high && b.low == b.high && a.low == b.low, a.low <= b.high && b.low <= a.high, T());
}
template <typename T> __device__ bool unequal(const Fusing<T>& a, const Fusing<T>& b) { return !equal(a, b); }

// As C++ promotes: the wider of two floating-point types, the floating-point one of two others.
#define FUSING_OPERATOR(symbol, function) \
    template <typename T, typename U> __device__ auto operator symbol(const Fusing<T>& a, const Fusing<U>& b) { \
        using R = decltype(T() + U()); return function(Fusing<R>(a), Fusing<R>(b)); } \
    template <typename T, typename U> __device__ auto operator symbol(const Fusing<T>& a, U b) { \
        using R = decltype(T() + U()); return function(Fusing<R>(a), Fusing<R>(b)); } \
    template <typename T, typename U> __device__ auto operator symbol(U a, const Fusing<T>& b) { \
        using R = decltype(T() + U()); return function(Fusing<R>(a), Fusing<R>(b)); }
FUSING_OPERATOR(+, sum)
FUSING_OPERATOR(-, difference)
FUSING_OPERATOR(*, product)
FUSING_OPERATOR(/, quotient)
FUSING_OPERATOR(<, less)
FUSING_OPERATOR(<=, less_equal)
FUSING_OPERATOR(>, greater)
FUSING_OPERATOR(>=, greater_equal)
FUSING_OPERATOR(==, equal)
FUSING_OPERATOR(!=, unequal)

// Functions that keep the order of numbers; `fabs` does on both sides of zero.
#define FUSING_FUNCTIONS(T, suffix) \
    __device__ Fusing<T> floor##suffix(const Fusing<T>& x) { return Fusing<T>(floor(x.low), floor(x.high)); } \
    __device__ Fusing<T> rint##suffix(const Fusing<T>& x) { return Fusing<T>(rint(x.low), rint(x.high)); } \
    __device__ Fusing<T> sqrt##suffix(const Fusing<T>& x) { return Fusing<T>(sqrt(x.low), sqrt(x.high)); } \
    __device__ Fusing<T> fmin##suffix(const Fusing<T>& x, const Fusing<T>& y) { return Fusing<T>(fmin(x.low, y.low), fmin(x.high, y.high)); } \
    __device__ Fusing<T> fmax##suffix(const Fusing<T>& x, const Fusing<T>& y) { return Fusing<T>(fmax(x.low, y.low), fmax(x.high, y.high)); } \
    __device__ Fusing<T> fabs##suffix(const Fusing<T>& x) { \
        const T a = fabs(x.low), b = fabs(x.high); \
        return x.low < 0 && x.high > 0 ? Fusing<T>((T)0, a < b ? b : a) : a < b ? Fusing<T>(a, b) : Fusing<T>(b, a); } \
    __device__ Fusing<T> fma##suffix(const Fusing<T>& a, const Fusing<T>& b, const Fusing<T>& c) { \
        Fusing<T> exact = product(a, b); Bounds<T> bounds; add_fused(bounds, exact, c); return bounds; }
FUSING_FUNCTIONS(float, f)
FUSING_FUNCTIONS(double, )

template <typename T> struct Fusing2 { T x, y; };
template <typename T> struct Fusing3 { T x, y, z; };
template <typename T> struct Fusing4 { T x, y, z, w; };
template <typename T> __device__ Fusing2<T> make_fusing2(T x, T y) { return {x, y}; }
template <typename T> __device__ Fusing3<T> make_fusing3(T x, T y, T z) { return {x, y, z}; }
template <typename T> __device__ Fusing4<T> make_fusing4(T x, T y, T z, T w) { return {x, y, z, w}; }
