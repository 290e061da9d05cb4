// Whether a type that a preamble declares is what an argument's elements are.
#ifndef GRIDSTRIDE_DECLARED_TYPES_H
#define GRIDSTRIDE_DECLARED_TYPES_H

namespace gridstride {

// Floating 2, signed 1, unsigned 0; what is no number may be anything: -1.
template <class __type, bool __is_number = !(__is_class(__type) || __is_union(__type) || __is_enum(__type))>
struct number_kind {
    static constexpr int value = __type(0.5) != __type(0) ? 2 : __type(-1) < __type(0);
};
template <class __type>
struct number_kind<__type, false> {
    static constexpr int value = -1;
};

// Of a member: floating 1, of integers 0; what is no number may be anything: -1.
template <class __type, bool __is_number = !(__is_class(__type) || __is_union(__type) || __is_enum(__type))>
struct member_kind {
    static constexpr int value = __type(0.5) != __type(0);
};
template <class __type>
struct member_kind<__type, false> {
    static constexpr int value = -1;
};
template <class __type>
struct member_kind<__type*, true> {
    static constexpr int value = -1;
};
template <class __type, unsigned long __length>
struct member_kind<__type[__length], true> : member_kind<__type> {};
template <>
struct member_kind<bool, true> {
    static constexpr int value = 0;
};
template <>
struct member_kind<void, true> {
    static constexpr int value = -1;
};

template <class __declared, class __given, unsigned long long __size>
struct is_member {
    static constexpr int declared = member_kind<__declared>::value, given = member_kind<__given>::value;
    static constexpr bool value =
        sizeof(__declared) == __size && (declared < 0 || given < 0 || declared == given);
};

template <class __type>
const __type& given_as();

// Whether one is made of the other.
template <class __from, class __to, class = void>
struct is_converted {
    static constexpr bool value = false;
};
template <class __from, class __to>
struct is_converted<__from, __to, decltype(static_cast<void>(static_cast<__to>(given_as<__from>())))> {
    static constexpr bool value = true;
};

// A class is given floating or signed numbers only if it is a number itself: made of one, or one of it. Unsigned numbers
// may be the bits of any class, and complex ones a pair; a union says that its bytes are several things.
template <class __declared, class __given, bool = __is_class(__declared) && (number_kind<__given>::value > 0)>
struct is_number_of {
    static constexpr bool value = is_converted<__declared, __given>::value || is_converted<__given, __declared>::value;
};
template <class __declared, class __given>
struct is_number_of<__declared, __given, false> {
    static constexpr int declared = number_kind<__declared>::value, given = number_kind<__given>::value;
    static constexpr bool value = declared < 0 || given < 0 || declared == given;
};

template <class __declared, class __given>
struct stands_for {
    static constexpr bool value = sizeof(__declared) == sizeof(__given) && is_number_of<__declared, __given>::value;
};

}

#endif
