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

template <class __declared, class __given>
struct stands_for {
    static constexpr int declared = number_kind<__declared>::value, given = number_kind<__given>::value;
    static constexpr bool value =
        sizeof(__declared) == sizeof(__given) && (declared < 0 || given < 0 || declared == given);
};

}

#endif
