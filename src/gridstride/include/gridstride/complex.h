// Complex numbers, the same on every target: `thrust::complex<T>` and `complex<T>`, for float and double.
//
// Operators mix real and complex operands of both precisions; the result has the wider one. Products
// are the textbook formula, quotients and absolute values are scaled against overflow.
#ifndef GRIDSTRIDE_COMPLEX_H
#define GRIDSTRIDE_COMPLEX_H

namespace thrust {

template <class T> struct complex;

// Types that may stand beside a complex number as a real one.
template <class T> struct gridstride_is_real { enum : bool { value = false }; };
#define GRIDSTRIDE_REAL(type) \
    template <> struct gridstride_is_real<type> { enum : bool { value = true }; };
GRIDSTRIDE_REAL(bool)
GRIDSTRIDE_REAL(char)
GRIDSTRIDE_REAL(signed char)
GRIDSTRIDE_REAL(unsigned char)
GRIDSTRIDE_REAL(short)
GRIDSTRIDE_REAL(unsigned short)
GRIDSTRIDE_REAL(int)
GRIDSTRIDE_REAL(unsigned int)
GRIDSTRIDE_REAL(long)
GRIDSTRIDE_REAL(unsigned long)
GRIDSTRIDE_REAL(long long)
GRIDSTRIDE_REAL(unsigned long long)
GRIDSTRIDE_REAL(float)
GRIDSTRIDE_REAL(double)
#undef GRIDSTRIDE_REAL

// The type of a sum of a complex number over T and of R, where R is a real type.
template <class T, class R, bool = gridstride_is_real<R>::value> struct gridstride_mixed {};
template <class T, class R> struct gridstride_mixed<T, R, true> { typedef complex<decltype(T() + R())> type; };

template <class T> struct alignas(2 * sizeof(T)) complex {
    typedef T value_type;

    __host__ __device__ constexpr complex(T real = T(), T imaginary = T()) : real_(real), imaginary_(imaginary) {}
    template <class U>
    __host__ __device__ constexpr complex(const complex<U>& other) : real_(T(other.real())), imaginary_(T(other.imag())) {}

    __host__ __device__ constexpr T real() const { return real_; }
    __host__ __device__ constexpr T imag() const { return imaginary_; }
    __host__ __device__ void real(T value) { real_ = value; }
    __host__ __device__ void imag(T value) { imaginary_ = value; }

    template <class U> __host__ __device__ complex& operator+=(const U& other) { return *this = complex(*this + other); }
    template <class U> __host__ __device__ complex& operator-=(const U& other) { return *this = complex(*this - other); }
    template <class U> __host__ __device__ complex& operator*=(const U& other) { return *this = complex(*this * other); }
    template <class U> __host__ __device__ complex& operator/=(const U& other) { return *this = complex(*this / other); }

  private:
    T real_, imaginary_;
};

template <class T> __host__ __device__ constexpr T real(const complex<T>& z) { return z.real(); }
template <class T> __host__ __device__ constexpr T imag(const complex<T>& z) { return z.imag(); }

// ---- arithmetic ----

template <class T> __host__ __device__ complex<T> operator+(const complex<T>& z) { return z; }
template <class T> __host__ __device__ complex<T> operator-(const complex<T>& z) { return complex<T>(-z.real(), -z.imag()); }

template <class A, class B>
__host__ __device__ complex<decltype(A() + B())> operator+(const complex<A>& a, const complex<B>& b) {
    return complex<decltype(A() + B())>(a.real() + b.real(), a.imag() + b.imag());
}
template <class A, class B>
__host__ __device__ complex<decltype(A() + B())> operator-(const complex<A>& a, const complex<B>& b) {
    return complex<decltype(A() + B())>(a.real() - b.real(), a.imag() - b.imag());
}
template <class A, class B>
__host__ __device__ complex<decltype(A() + B())> operator*(const complex<A>& a, const complex<B>& b) {
    return complex<decltype(A() + B())>(a.real() * b.real() - a.imag() * b.imag(),
                                        a.real() * b.imag() + a.imag() * b.real());
}
template <class A, class B>
__host__ __device__ complex<decltype(A() + B())> operator/(const complex<A>& a, const complex<B>& b) {
    typedef decltype(A() + B()) T;
    const T scale = T(1) / (::fabs(T(b.real())) + ::fabs(T(b.imag())));
    const T ar = T(a.real()) * scale, ai = T(a.imag()) * scale, br = T(b.real()) * scale, bi = T(b.imag()) * scale;
    const T divisor = br * br + bi * bi;
    return complex<T>((ar * br + ai * bi) / divisor, (ai * br - ar * bi) / divisor);
}

template <class T, class R>
__host__ __device__ typename gridstride_mixed<T, R>::type operator+(const complex<T>& z, const R& r) {
    return typename gridstride_mixed<T, R>::type(z.real() + r, z.imag());
}
template <class T, class R>
__host__ __device__ typename gridstride_mixed<T, R>::type operator+(const R& r, const complex<T>& z) {
    return typename gridstride_mixed<T, R>::type(r + z.real(), z.imag());
}
template <class T, class R>
__host__ __device__ typename gridstride_mixed<T, R>::type operator-(const complex<T>& z, const R& r) {
    return typename gridstride_mixed<T, R>::type(z.real() - r, z.imag());
}
template <class T, class R>
__host__ __device__ typename gridstride_mixed<T, R>::type operator-(const R& r, const complex<T>& z) {
    return typename gridstride_mixed<T, R>::type(r - z.real(), -z.imag());
}
template <class T, class R>
__host__ __device__ typename gridstride_mixed<T, R>::type operator*(const complex<T>& z, const R& r) {
    return typename gridstride_mixed<T, R>::type(z.real() * r, z.imag() * r);
}
template <class T, class R>
__host__ __device__ typename gridstride_mixed<T, R>::type operator*(const R& r, const complex<T>& z) {
    return typename gridstride_mixed<T, R>::type(r * z.real(), r * z.imag());
}
template <class T, class R>
__host__ __device__ typename gridstride_mixed<T, R>::type operator/(const complex<T>& z, const R& r) {
    return typename gridstride_mixed<T, R>::type(z.real() / r, z.imag() / r);
}
template <class T, class R>
__host__ __device__ typename gridstride_mixed<T, R>::type operator/(const R& r, const complex<T>& z) {
    return complex<T>(T(r)) / z;
}

// ---- comparison ----

template <class A, class B> __host__ __device__ bool operator==(const complex<A>& a, const complex<B>& b) {
    return a.real() == b.real() && a.imag() == b.imag();
}
template <class A, class B> __host__ __device__ bool operator!=(const complex<A>& a, const complex<B>& b) {
    return !(a == b);
}
template <class T, class R>
__host__ __device__ decltype(typename gridstride_mixed<T, R>::type(), bool()) operator==(const complex<T>& z, const R& r) {
    return z.real() == r && z.imag() == T(0);
}
template <class T, class R>
__host__ __device__ decltype(typename gridstride_mixed<T, R>::type(), bool()) operator==(const R& r, const complex<T>& z) {
    return z == r;
}
template <class T, class R>
__host__ __device__ decltype(typename gridstride_mixed<T, R>::type(), bool()) operator!=(const complex<T>& z, const R& r) {
    return !(z == r);
}
template <class T, class R>
__host__ __device__ decltype(typename gridstride_mixed<T, R>::type(), bool()) operator!=(const R& r, const complex<T>& z) {
    return !(z == r);
}

// ---- functions ----

template <class T> __host__ __device__ T abs(const complex<T>& z) { return ::hypot(z.real(), z.imag()); }
template <class T> __host__ __device__ T arg(const complex<T>& z) { return ::atan2(z.imag(), z.real()); }
template <class T> __host__ __device__ T norm(const complex<T>& z) { return z.real() * z.real() + z.imag() * z.imag(); }
template <class T> __host__ __device__ complex<T> conj(const complex<T>& z) { return complex<T>(z.real(), -z.imag()); }
template <class T> __host__ __device__ complex<T> polar(const T& radius, const T& angle = T()) {
    return complex<T>(radius * ::cos(angle), radius * ::sin(angle));
}

template <class T> __host__ __device__ complex<T> exp(const complex<T>& z) { return polar(::exp(z.real()), z.imag()); }
template <class T> __host__ __device__ complex<T> log(const complex<T>& z) { return complex<T>(::log(abs(z)), arg(z)); }
template <class T> __host__ __device__ complex<T> log10(const complex<T>& z) { return log(z) / T(2.302585092994045684); }

template <class T> __host__ __device__ complex<T> sqrt(const complex<T>& z) {
    if (z.real() == T(0) && z.imag() == T(0)) return complex<T>(T(0), z.imag());
    const T half = ::sqrt((::fabs(z.real()) + abs(z)) / T(2));
    const T other = z.imag() / (T(2) * half);
    return z.real() >= T(0) ? complex<T>(half, other) : complex<T>(::fabs(other), ::copysign(half, z.imag()));
}

template <class T> __host__ __device__ complex<T> pow(const complex<T>& base, const complex<T>& exponent) {
    if (base.real() == T(0) && base.imag() == T(0)) return complex<T>(exponent == complex<T>() ? T(1) : T(0));
    return exp(exponent * log(base));
}
template <class T, class R>
__host__ __device__ decltype(typename gridstride_mixed<T, R>::type(), complex<T>()) pow(const complex<T>& base, const R& exponent) {
    return pow(base, complex<T>(T(exponent)));
}
template <class T, class R>
__host__ __device__ decltype(typename gridstride_mixed<T, R>::type(), complex<T>()) pow(const R& base, const complex<T>& exponent) {
    return pow(complex<T>(T(base)), exponent);
}

template <class T> __host__ __device__ complex<T> sinh(const complex<T>& z) {
    return complex<T>(::sinh(z.real()) * ::cos(z.imag()), ::cosh(z.real()) * ::sin(z.imag()));
}
template <class T> __host__ __device__ complex<T> cosh(const complex<T>& z) {
    return complex<T>(::cosh(z.real()) * ::cos(z.imag()), ::sinh(z.real()) * ::sin(z.imag()));
}
template <class T> __host__ __device__ complex<T> tanh(const complex<T>& z) { return sinh(z) / cosh(z); }
template <class T> __host__ __device__ complex<T> sin(const complex<T>& z) {
    return complex<T>(::sin(z.real()) * ::cosh(z.imag()), ::cos(z.real()) * ::sinh(z.imag()));
}
template <class T> __host__ __device__ complex<T> cos(const complex<T>& z) {
    return complex<T>(::cos(z.real()) * ::cosh(z.imag()), -::sin(z.real()) * ::sinh(z.imag()));
}
template <class T> __host__ __device__ complex<T> tan(const complex<T>& z) { return sin(z) / cos(z); }

}  // namespace thrust

using thrust::complex;
using thrust::conj;
using thrust::polar;

#endif
