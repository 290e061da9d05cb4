// Stands before every text that the CUDA target compiles: names that need no include, and the traits
// through which the compiler tells Python the types and sizes of a kernel's parameters.
// C++14, because users may ask for it. Nothing here but the names of fixed_width.h, of <cmath> and offsetof
// lacks our prefix.
#ifndef GRIDSTRIDE_CUDA_PRELUDE_H
#define GRIDSTRIDE_CUDA_PRELUDE_H

#ifdef __CUDACC_RTC__
#include <gridstride/fixed_width.h>
#ifndef offsetof
#define offsetof(type, member) __INTADDR__(&((type*)0)->member)
#endif
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#endif
#else
#include <cstddef>
#include <cstdint>
#endif

// A parameter of a deprecated type (double4 in CUDA 13) is the user's affair, not a warning about this file.
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1444

// What stands behind all pointers and array bounds of a type.
template <class T> struct gridstride_innermost { typedef T type; };
template <class T> struct gridstride_innermost<T*> : gridstride_innermost<T> {};
template <class T> struct gridstride_innermost<T* const> : gridstride_innermost<T> {};
template <class T> struct gridstride_innermost<T* volatile> : gridstride_innermost<T> {};
template <class T> struct gridstride_innermost<T* const volatile> : gridstride_innermost<T> {};
template <class T> struct gridstride_innermost<T[]> : gridstride_innermost<T> {};
template <class T, unsigned long N> struct gridstride_innermost<T[N]> : gridstride_innermost<T> {};

// Size and alignment; 0 for incomplete types, functions and void.
template <class T> struct gridstride_is_object { enum : bool { value = true }; };
template <> struct gridstride_is_object<void> { enum : bool { value = false }; };
template <> struct gridstride_is_object<const void> { enum : bool { value = false }; };
template <> struct gridstride_is_object<volatile void> { enum : bool { value = false }; };
template <class R, class... P> struct gridstride_is_object<R(P...)> { enum : bool { value = false }; };
template <class T, class = void> struct gridstride_extent {
    enum : unsigned long { size = 0, alignment = 0 };
};
template <class T> struct gridstride_extent<T, decltype(void(sizeof(T)))> {
    enum : unsigned long {
        size = gridstride_is_object<T>::value ? sizeof(T) : 0,
        alignment = gridstride_is_object<T>::value ? alignof(T) : 0
    };
};

// The integer type of an enumeration; any other type itself.
template <class T, bool = __is_enum(T)> struct gridstride_value { typedef T type; };
template <class T> struct gridstride_value<T, true> { typedef __underlying_type(T) type; };

// One parameter: its type, its size and alignment, and the same of what stands behind its pointers.
template <class T, unsigned long Size, unsigned long Alignment, class InnermostValue,
          unsigned long InnermostSize, unsigned long InnermostAlignment>
struct gridstride_argument;
template <class T, class Innermost = typename gridstride_innermost<T>::type> struct gridstride_argument_of {
    typedef gridstride_argument<T, sizeof(T), alignof(T), typename gridstride_value<Innermost>::type,
                                gridstride_extent<Innermost>::size, gridstride_extent<Innermost>::alignment>
        type;
};
template <class... Arguments> struct gridstride_arguments;
template <class Kernel> struct gridstride_arguments_of;
template <class... P> struct gridstride_arguments_of<void (*)(P...)> {
    typedef gridstride_arguments<typename gridstride_argument_of<P>::type...> type;
};
#if defined(__cpp_noexcept_function_type)
template <class... P> struct gridstride_arguments_of<void (*)(P...) noexcept>
    : gridstride_arguments_of<void (*)(P...)> {};
#endif
// Asked for behind the user's text, where `type` may be a macro.
template <class Kernel> using gridstride_arguments_t = typename gridstride_arguments_of<Kernel>::type;

// The type of parameter `Index` of a kernel: gridstride_parameter_t<decltype(&kernel), 0>.
template <unsigned Index, class... P> struct gridstride_nth;
template <class First, class... P> struct gridstride_nth<0, First, P...> { typedef First type; };
template <unsigned Index, class First, class... P> struct gridstride_nth<Index, First, P...>
    : gridstride_nth<Index - 1, P...> {};
template <class Kernel, unsigned Index> struct gridstride_parameter;
template <class... P, unsigned Index> struct gridstride_parameter<void (*)(P...), Index>
    : gridstride_nth<Index, P...> {};
#if defined(__cpp_noexcept_function_type)
template <class... P, unsigned Index> struct gridstride_parameter<void (*)(P...) noexcept, Index>
    : gridstride_nth<Index, P...> {};
#endif
template <class Kernel, unsigned Index>
using gridstride_parameter_t = typename gridstride_parameter<Kernel, Index>::type;

// Variables that exist for their names: the mangled name spells the template arguments.
#ifdef __CUDACC_RTC__
// Kernels, since a module with variables takes the driver longer to load.
template <class Arguments> __global__ void gridstride_signature() {}
template <long long Value> __global__ void gridstride_constant() {}
#endif
// nvcc lowers no name expressions: its instances also carry which expression they answer.
template <int Index, class Arguments> __device__ char gridstride_signature_at;
template <int Index, long long Value> __device__ char gridstride_constant_at;
template <int Index, class Pointer, Pointer Entity> __device__ char gridstride_entity_at;

#pragma nv_diagnostic pop

#endif
