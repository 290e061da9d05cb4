// What a device compiler has of the C++ library without any header: std::move, std::forward,
// std::initializer_list, and the macro offsetof.
#ifndef GRIDSTRIDE_CPU_CORE_LANGUAGE_H
#define GRIDSTRIDE_CPU_CORE_LANGUAGE_H

#include <gridstride/fixed_width.h>

// Variadic: a type may have commas.
#define offsetof(...) __builtin_offsetof(__VA_ARGS__)

template <class __t> struct gridstride_without_reference { typedef __t type; };
template <class __t> struct gridstride_without_reference<__t&> { typedef __t type; };
template <class __t> struct gridstride_without_reference<__t&&> { typedef __t type; };

namespace std {
template <class __t>
constexpr typename gridstride_without_reference<__t>::type&& move(__t&& __value) noexcept {
    return static_cast<typename gridstride_without_reference<__t>::type&&>(__value);
}
template <class __t>
constexpr __t&& forward(typename gridstride_without_reference<__t>::type& __value) noexcept {
    return static_cast<__t&&>(__value);
}
template <class __t>
constexpr __t&& forward(typename gridstride_without_reference<__t>::type&& __value) noexcept {
    return static_cast<__t&&>(__value);
}

// Compilers build it from a list in braces: an address and a count.
template <class __t>
class initializer_list {
    const __t* __first;
    size_t __count;
    constexpr initializer_list(const __t* __start, size_t __length) : __first(__start), __count(__length) {}

  public:
    typedef __t value_type;
    typedef const __t& reference;
    typedef const __t& const_reference;
    typedef size_t size_type;
    typedef const __t* iterator;
    typedef const __t* const_iterator;
    constexpr initializer_list() noexcept : __first(nullptr), __count(0) {}
    constexpr size_t size() const noexcept { return __count; }
    constexpr const __t* begin() const noexcept { return __first; }
    constexpr const __t* end() const noexcept { return __first + __count; }
};
}

// What a table of virtual functions has in the place of one without a body.
extern "C" __attribute__((weak, used)) void __cxa_pure_virtual() { __builtin_trap(); }

#endif
