// What the loops of reductions share: values that are folded, and the results they become.
#ifndef GRIDSTRIDE_FOLDING_H
#define GRIDSTRIDE_FOLDING_H

#include <gridstride/operands.h>

namespace gridstride {

// How a value is handed on. What `a < b ? a : b` chooses of structures is a copy of one of them where it is handed by value,
// else NVRTC keeps both in memory to choose a place.
#ifdef GRIDSTRIDE_CPU_ABI_VERSION
template <class __type> struct handed { typedef const __type& type; };
#else
template <class __type, bool = (!__is_class(__type) || sizeof(__type) > largest_copy)>
struct handed { typedef __type type; };
template <class __type>
struct handed<__type, true> { typedef const __type& type; };
#endif

// `value_of<T>::from(expression)` is a T from whatever the expression is, also a list in braces.
template <class __type>
struct value_of {
    __host__ __device__ static __type from(typename handed<__type>::type __value) { return __value; }
    template <class __other>
    __host__ __device__ static __type from(const __other& __value) { return static_cast<__type>(__value); }
};

// Whether values can wait in memory before there is any.
template <class __type, class = void>
struct is_made {
    static constexpr bool value = false;
};
template <class __type>
struct is_made<__type, decltype(static_cast<void>(__type()))> {
    static constexpr bool value = true;
};

// `_in_ind` and `_out_ind`.
struct counted {
    long long __size;
    __host__ __device__ long long size() const { return __size; }
};

// What is folded so far. Without an identity the first value starts it.
template <class __type, bool __has_identity>
struct folding {
    typedef __type type;
    __type value;
    folding() = default;
    __host__ __device__ folding(const __type& __start) : value(__start) {}
    template <class __reduce>
    __host__ __device__ void add(const __reduce& __do, const __type& __next) { value = __do(value, __next); }
    template <class __reduce>
    __host__ __device__ void add(const __reduce& __do, const folding& __next) { value = __do(value, __next.value); }
};
template <class __type>
struct folding<__type, false> {
    typedef __type type;
    __type value;
    int any;
    __host__ __device__ folding() : value(), any(0) {}
    __host__ __device__ folding(const __type& __start) : value(__start), any(1) {}
    template <class __reduce>
    __host__ __device__ void add(const __reduce& __do, const __type& __next) {
        value = any ? __do(value, __next) : __next;
        any = 1;
    }
    template <class __reduce>
    __host__ __device__ void add(const __reduce& __do, const folding& __next) {
        if (__next.any) add(__do, __next.value);
    }
};

// A reduction that adds what is stored, integers: a target may add several by one instruction.
template <class __reduce>
struct integer_sum : __reduce {
    __host__ __device__ explicit integer_sum(const __reduce& __do) : __reduce(__do) {}
};
template <class __reduce>
__host__ __device__ inline integer_sum<__reduce> as_integer_sum(const __reduce& __do) {
    return integer_sum<__reduce>(__do);
}

// A reduction that keeps the largest or the smallest of what is stored, bytes: a target may compare several at once.
template <class __reduce, bool __is_largest>
struct byte_extreme : __reduce {
    __host__ __device__ explicit byte_extreme(const __reduce& __do) : __reduce(__do) {}
};
template <bool __is_largest, class __reduce>
__host__ __device__ inline byte_extreme<__reduce, __is_largest> as_byte_extreme(const __reduce& __do) {
    return byte_extreme<__reduce, __is_largest>(__do);
}

// A reduction of truth values that asks whether any of them holds, or whether all do: a target may fold them as integers.
template <class __reduce, bool __is_any>
struct flag_fold : __reduce {
    __host__ __device__ explicit flag_fold(const __reduce& __do) : __reduce(__do) {}
    __host__ __device__ bool operator()(bool __first, bool __second) const { return __is_any ? __first | __second : __first & __second; }
};
template <bool __is_any, class __reduce>
__host__ __device__ inline flag_fold<__reduce, __is_any> as_flag_fold(const __reduce& __do) {
    return flag_fold<__reduce, __is_any>(__do);
}

// Call a loop, given the map, unless the values that are folded are too large for it: then it is not even compiled.
template <bool>
struct calling {
    template <class __map, class __body>
    __host__ __device__ static void call(const __map& __do_map, const __body& __do) { __do(__do_map); }
};
template <>
struct calling<false> {
    template <class __map, class __body>
    __host__ __device__ static void call(const __map&, const __body&) {}
};
template <class __folding, int __most, class __map, class __body>
__host__ __device__ inline void where_small(const __map& __do_map, const __body& __do) {
    calling<(int(sizeof(__folding)) <= __most)>::call(__do_map, __do);
}

// A map that does not ask for the number of an element or its place in the fold.
template <class __map>
struct numberless : __map {
    __host__ __device__ explicit numberless(const __map& __do_map) : __map(__do_map) {}
};
template <class __map>
__host__ __device__ inline numberless<__map> as_numberless(const __map& __do_map) { return numberless<__map>(__do_map); }

// Where results are stored.
template <class __operand>
struct placed {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    const __operand& source;
    char* base;
    __host__ __device__ placed(const __operand& __source) : source(__source), base(__source.data) {}
    __host__ __device__ stored& at(long long __element) const {
        return *reinterpret_cast<stored*>(base + __element * source.step);
    }
};

// Move the bases to the row of a result of the walk; return the row's number, and the place in it in `__within`.
template <int __axes, class... __placed>
__host__ __device__ inline long long find_result(const fold_space<__axes>& __space, long long __result,
                                                 long long& __within, __placed&... __outputs) {
    __within = __result;
    if (__space.kept_row >= __space.outputs) return 0;
    long long __number = 0, __rest = __space.outputs < (1ll << 31) ? unsigned(__result) / unsigned(__space.kept_row)
                                                                   : __result / __space.kept_row;
    __within = __result - __rest * __space.kept_row;
#pragma unroll
    for (int __axis = 1; __axis < __axes; ++__axis) {
        if (__axis >= __space.kept.ndim) break;
        const long long __at = __axis + 1 < __space.kept.ndim ? taken_off(__space.kept, __rest, __axis) : __rest;
        __number += __at * __space.result.strides[__axis];
        swallow((__outputs.base += __at * __outputs.source.strides[__axis])...);
    }
    return __number;
}

// Call `__post(number of the result, value, element of each output...)` for a result of the walk.
template <class __post, class __folding, int __axes, class... __placed>
__host__ __device__ inline void assign_placed(const __post& __do_post, const __folding& __folded,
                                              const fold_space<__axes>& __space, long long __result,
                                              __placed&&... __outputs) {
    long long __within;
    const long long __row = find_result(__space, __result, __within, __outputs...);
    __do_post(__row + __within * __space.result.step, __folded.value,
              element<typename __placed::operand>(__outputs.at(__within)).get()...);
}

template <class __post, class __folding, int __axes, class... __operands>
__host__ __device__ inline void assign(const __post& __do_post, const __folding& __folded,
                                       const fold_space<__axes>& __space, long long __result,
                                       const __operands&... __outputs) {
    assign_placed(__do_post, __folded, __space, __result, placed<__operands>(__outputs)...);
}

// The number of a result beside which there is no other, and which is in one part.
struct only_result {};
template <class __post, class __folding, int __axes, class... __operands>
__host__ __device__ inline void assign(const __post& __do_post, const __folding& __folded, const fold_space<__axes>&,
                                       only_result, const __operands&... __outputs) {
    __do_post(0, __folded.value, element<__operands>(placed<__operands>(__outputs).at(0)).get()...);
}
template <class __folding, int __axes>
__host__ __device__ inline void keep(const __folding&, const fold_space<__axes>&, only_result, int) {}

// Keep what is folded in a part of a result for the launch that joins the parts.
template <class __folding, int __axes>
__host__ __device__ inline void keep(const __folding& __folded, const fold_space<__axes>& __space, long long __result,
                                     int __part) {
    reinterpret_cast<__folding*>(__space.workspace)[__result * __space.parts + __part] = __folded;
}

}

#endif
