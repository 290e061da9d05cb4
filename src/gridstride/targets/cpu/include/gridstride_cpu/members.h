// Arrays of the members of structures in the place of arrays of structures: compilers make vectors of those.
//
// It works for aggregates of a few scalars. How many there are is found by initializing one with so many of what turns
// into whatever is asked for; where anything else fits as well, it is left alone.
#ifndef GRIDSTRIDE_CPU_MEMBERS_H
#define GRIDSTRIDE_CPU_MEMBERS_H

#include <gridstride_cpu/places.h>

namespace gridstride {

// In small_floats.h.
struct float16;
struct bfloat16;
template <class __small> struct as_float;

#if defined(__cpp_structured_bindings) && defined(__cpp_if_constexpr)

template <bool> struct only_if {};
template <> struct only_if<true> { typedef int type; };

// Not into a base class, since that has members of its own.
template <class __structure>
struct anything {
    template <class __type, typename only_if<!__is_base_of(__type, __structure)>::type = 0>
    operator __type() const;
};

// Whether a structure is made of so many; of those and one more; of those and two in the place of one.
template <class __type, int... __k, class = decltype(__type{(void(__k), anything<__type>())...})>
constexpr bool takes(places<__k...>, int) { return true; }
template <class __type, class __places>
constexpr bool takes(__places, long) { return false; }
template <class __type, int... __k, class = decltype(__type{(void(__k), anything<__type>())..., {}})>
constexpr bool takes_more(places<__k...>, int) { return true; }
template <class __type, class __places>
constexpr bool takes_more(__places, long) { return false; }
template <class __type, int... __k, class = decltype(__type{(void(__k), anything<__type>())..., {anything<__type>(), anything<__type>()}})>
constexpr bool nests(places<__k...>, int) { return true; }
template <class __type, class __places>
constexpr bool nests(__places, long) { return false; }

template <int __count> using up_to = typename places_up_to<__count>::type;
template <class __type, int __count, int... __k>
constexpr bool has_scalars(places<__k...>) {
    return takes<__type>(up_to<__count>(), 0) && !takes_more<__type>(up_to<__count>(), 0) &&
           !(nests<__type>(up_to<__k>(), 0) || ...);
}
template <class __type>
constexpr int count_members() {
    if constexpr (!__is_aggregate(__type) || __is_union(__type) || !__is_trivially_constructible(__type, const __type&) || !__is_standard_layout(__type)) return 0;
    else return has_scalars<__type, 1>(up_to<1>()) ? 1 : has_scalars<__type, 2>(up_to<2>()) ? 2 :
                has_scalars<__type, 3>(up_to<3>()) ? 3 : has_scalars<__type, 4>(up_to<4>()) ? 4 : 0;
}

template <class __type> struct is_scalar { static constexpr bool value = !__is_class(__type) && !__is_union(__type); };
template <class __type, int __count> struct is_scalar<__type[__count]> { static constexpr bool value = false; };
template <class __small> struct is_scalar<as_float<__small>> { static constexpr bool value = true; };
template <> struct is_scalar<float16> { static constexpr bool value = true; };
template <> struct is_scalar<bfloat16> { static constexpr bool value = true; };
constexpr int smallest_of(int __first) { return __first; }
template <class... __rest>
constexpr int smallest_of(int __first, int __second, __rest... __others) { return smallest_of(__first < __second ? __first : __second, __others...); }
template <class... __members>
struct member_types {
    static constexpr bool are_scalars = (is_scalar<__members>::value && ...);
    static constexpr int smallest = smallest_of(int(sizeof(__members))...);
};

template <class __type>
auto types_of_members(const __type& __value) {
    constexpr int __count = count_members<__type>();
    if constexpr (__count == 1) { auto [__a] = __value; return member_types<decltype(__a)>(); }
    else if constexpr (__count == 2) { auto [__a, __b] = __value; return member_types<decltype(__a), decltype(__b)>(); }
    else if constexpr (__count == 3) { auto [__a, __b, __c] = __value; return member_types<decltype(__a), decltype(__b), decltype(__c)>(); }
    else if constexpr (__count == 4) { auto [__a, __b, __c, __d] = __value; return member_types<decltype(__a), decltype(__b), decltype(__c), decltype(__d)>(); }
}
template <class __type> using members_of = decltype(types_of_members(*(const __type*)nullptr));
template <class __type>
constexpr bool is_split() {
    if constexpr (!__is_class(__type)) return false;
    else if constexpr (count_members<__type>() == 0) return false;
    else return members_of<__type>::are_scalars;
}

// Arrays of so many, or, of length 0, pointers to arrays.
template <int __length, class __member> struct member_array { alignas(64) __member values[__length]; };
template <class __member> struct member_array<0, __member> { __member* values; };
template <int __length, class... __members>
struct member_arrays {
    GRIDSTRIDE_INLINED void set(long long) {}
    GRIDSTRIDE_INLINED void place(char*, long long) {}
    GRIDSTRIDE_INLINED void advance(long long) {}
};
template <int __length, class __first, class... __rest>
struct member_arrays<__length, __first, __rest...> : member_array<__length, __first> {
    member_arrays<__length, __rest...> others;
    GRIDSTRIDE_INLINED void set(long long __k, __first __value, __rest... __values) {
        this->values[__k] = __value;
        others.set(__k, __values...);
    }
    GRIDSTRIDE_INLINED void place(char* __room, long long __count) {
        this->values = reinterpret_cast<__first*>(__room);
        others.place(__room + __count * sizeof(__first), __count);
    }
    GRIDSTRIDE_INLINED void advance(long long __count) {
        this->values += __count;
        others.advance(__count);
    }
};
template <int __length, class... __members>
member_arrays<__length, __members...> arrays_of(member_types<__members...>);
// How many operations are under way at once: whole vectors of the smallest member, and a few of larger ones. Of what has
// no members, one.
template <class __type>
constexpr int lanes_of_members() {
    if constexpr (!is_split<__type>()) return 1;
    else return members_of<__type>::smallest > 3 ? 32 : 128 / members_of<__type>::smallest;
}

template <class __type, int __length>
struct split_structures {
    static constexpr int count = count_members<__type>();
    decltype(arrays_of<__length>(members_of<__type>())) arrays;

    GRIDSTRIDE_INLINED __type get(long long __k) const {
        const auto& __all = arrays;
        if constexpr (count == 1) return __type{__all.values[__k]};
        else if constexpr (count == 2) return __type{__all.values[__k], __all.others.values[__k]};
        else if constexpr (count == 3) return __type{__all.values[__k], __all.others.values[__k], __all.others.others.values[__k]};
        else return __type{__all.values[__k], __all.others.values[__k], __all.others.others.values[__k], __all.others.others.others.values[__k]};
    }
    GRIDSTRIDE_INLINED void set(long long __k, const __type& __value) {
        if constexpr (count == 1) { auto [__a] = __value; arrays.set(__k, __a); }
        else if constexpr (count == 2) { auto [__a, __b] = __value; arrays.set(__k, __a, __b); }
        else if constexpr (count == 3) { auto [__a, __b, __c] = __value; arrays.set(__k, __a, __b, __c); }
        else { auto [__a, __b, __c, __d] = __value; arrays.set(__k, __a, __b, __c, __d); }
    }
};

#else

template <class __type, int __length> struct split_structures;
template <class __type> constexpr int lanes_of_members() { return 1; }

#endif

// A row of so many values in memory; of structures arrays of their members. `shown` is what results are made of.
template <class __type, bool __is_split = (lanes_of_members<__type>() > 1)>
struct row_of_values {
    static constexpr long long alignment = alignof(__type) < 64 ? 64 : alignof(__type);
    static constexpr int smallest = sizeof(__type);
    typedef const __type* shown_type;
    __type* values;
    GRIDSTRIDE_INLINED row_of_values(char* __room, long long) : values(reinterpret_cast<__type*>(__room)) {}
    static constexpr long long bytes(long long __count) { return (__count * sizeof(__type) + alignment - 1) / alignment * alignment; }
    GRIDSTRIDE_INLINED const __type& get(long long __k) const { return values[__k]; }
    GRIDSTRIDE_INLINED void set(long long __k, const __type& __value) const { values[__k] = __value; }
    GRIDSTRIDE_INLINED row_of_values from(long long __k) const { return row_of_values(reinterpret_cast<char*>(values + __k), 0); }
    GRIDSTRIDE_INLINED shown_type shown() const { return values; }
};
#if defined(__cpp_structured_bindings) && defined(__cpp_if_constexpr)
template <class __type>
struct row_of_values<__type, true> : split_structures<__type, 0> {
    static constexpr long long alignment = 64;
    static constexpr int smallest = members_of<__type>::smallest;
    typedef row_of_values shown_type;
    GRIDSTRIDE_INLINED row_of_values(char* __room, long long __count) { this->arrays.place(__room, padded(__count)); }
    static constexpr long long padded(long long __count) { return (__count + alignment - 1) / alignment * alignment; }
    static constexpr long long bytes(long long __count) { return padded(__count) * sizeof(__type); }
    GRIDSTRIDE_INLINED row_of_values from(long long __k) const {
        row_of_values __row = *this;
        __row.arrays.advance(__k);
        return __row;
    }
    GRIDSTRIDE_INLINED shown_type shown() const { return *this; }
    GRIDSTRIDE_INLINED __type operator[](long long __k) const { return this->get(__k); }
    GRIDSTRIDE_INLINED row_of_values operator+(long long __k) const { return from(__k); }
};
#endif

}

#endif
