// What the folds of a processor share. Values are folded in lanes that the compiler turns into vectors, blocks of them
// in pairs or in blocks of blocks, so that rounding errors stay as small as NumPy's.
//
// A launch has blocks of one thread; each takes an equal share of the pieces, a piece being one part of one result
// (along) or of neighboring results (across). How a fold is cut does not depend on how many threads there are.
#ifndef GRIDSTRIDE_CPU_FOLDS_H
#define GRIDSTRIDE_CPU_FOLDS_H

#include <gridstride_cpu/gathering.h>
#include <gridstride_cpu/shares.h>
#include <gridstride/folding.h>

namespace gridstride {

// As wide as vectors are that compilers make. Wider ones would lie across lines of the cache wherever arrays do not
// begin one.
#if defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

constexpr int power_of_two_up_to(int __number) { return __number < 2 ? 1 : 2 * power_of_two_up_to(__number / 2); }
template <class... __operands>
constexpr int largest_stored() { return larger(int(sizeof(typename __operands::stored))...); }
template <class... __operands>
constexpr int smallest_stored() { return smaller(64, int(sizeof(typename __operands::stored))...); }

// As `taken_off`, without a division for the last axis.
template <int __axes>
GRIDSTRIDE_INLINED long long digit_of(const axes<__axes>& __space, long long& __index, int __axis) {
    if (__axis + 1 < __space.ndim) return taken_off(__space, __index, __axis);
    const long long __digit = __index;
    __index = 0;
    return __digit;
}

// Set the bases to a result's first elements; return the first one's number.
template <int __axes, class... __inputs>
GRIDSTRIDE_INLINED long long settle(const fold_space<__axes>& __space, long long __index, int __from, __inputs&... __all) {
    long long __number = 0;
    swallow((__all.base = __all.source.data)...);
    for (int __axis = __from; __axis < __space.kept.ndim; ++__axis) {
        const long long __at = digit_of(__space.kept, __index, __axis);
        __number += __at * __space.kept_numbers.strides[__axis];
        swallow((__all.base += __at * __all.source.kept_strides[__axis])...);
    }
    return __number;
}

// Set the rows to where an index along the folded axes leads.
template <int __axes, class... __inputs>
GRIDSTRIDE_INLINED void step_into(const fold_space<__axes>& __space, long long __index, int __from, long long& __number,
                                  long long& __position, __inputs&... __all) {
    swallow((__all.row = __all.base)...);
    for (int __axis = __from; __axis < __space.fold.ndim; ++__axis) {
        const long long __at = digit_of(__space.fold, __index, __axis);
        __number += __at * __space.fold_numbers.strides[__axis];
        __position += __at * __space.position.strides[__axis];
        swallow((__all.row += __at * __all.source.strides[__axis])...);
    }
}

// Where elements of a row have no numbers a step apart, numbers say in which column they are.
constexpr long long number_of_column = 1ll << 47;

// More than there may be room for on a stack.
struct block_memory {
    char* const bytes;
    GRIDSTRIDE_INLINED block_memory(long long __count) : bytes(__count ? static_cast<char*>(__builtin_malloc(__count)) : nullptr) {}
    GRIDSTRIDE_INLINED ~block_memory() { __builtin_free(bytes); }
};

// Unsigned integers by their size.
template <int __size> struct word_of { static constexpr bool exists = false; };
template <> struct word_of<1> { static constexpr bool exists = true; typedef unsigned char type; };
template <> struct word_of<2> { static constexpr bool exists = true; typedef unsigned short type; };
template <> struct word_of<4> { static constexpr bool exists = true; typedef unsigned type; };
template <> struct word_of<8> { static constexpr bool exists = true; typedef unsigned long long type; };

// ---- values that are folded for a while in another type ----

// Sums of small integers need not be as wide as their results before there are many: so many may be added in lanes of
// twice the bytes of what is stored.
template <int __bytes, bool __has_sign> struct twice_as_wide {};
template <> struct twice_as_wide<1, true> { typedef short type; };
template <> struct twice_as_wide<1, false> { typedef unsigned short type; };
template <> struct twice_as_wide<2, true> { typedef int type; };
template <> struct twice_as_wide<2, false> { typedef unsigned type; };

struct adding {
    template <class __type>
    GRIDSTRIDE_INLINED __type operator()(__type __first, __type __second) const { return static_cast<__type>(__first + __second); }
};

template <class __type, class __reduce, class... __operands>
struct brief {
    typedef __type type;
    static constexpr int most = 1 << 30;
    GRIDSTRIDE_INLINED static const __reduce& reduce(const __reduce& __do) { return __do; }
};
template <class __type, bool __is_worth_it, class __reduce, class __operand>
struct brief_sum : brief<__type, __reduce, __operand> {};
template <class __type, class __reduce, class __operand>
struct brief_sum<__type, true, __reduce, __operand> {
    typedef typename __operand::stored stored;
    typedef typename twice_as_wide<sizeof(stored), (stored(-1) < stored(0))>::type type;
    static constexpr int most = sizeof(stored) == 1 ? 256 : 1 << 16;
    GRIDSTRIDE_INLINED static adding reduce(const integer_sum<__reduce>&) { return adding(); }
};
template <class __type, class __reduce, class __operand>
struct brief<__type, integer_sum<__reduce>, __operand>
    : brief_sum<__type, (sizeof(__type) > 2 * sizeof(typename __operand::stored)), __reduce, __operand> {};
template <class __type, class __reduce, class __operand>
struct brief_sum<__type, false, __reduce, __operand> {
    typedef __type type;
    static constexpr int most = 1 << 30;
    GRIDSTRIDE_INLINED static const integer_sum<__reduce>& reduce(const integer_sum<__reduce>& __do) { return __do; }
};

// Truth values are integers as large as what they are asked of, of which a comparison makes whole vectors.
template <bool __is_any>
struct joining_flags {
    template <class __type>
    GRIDSTRIDE_INLINED __type operator()(__type __first, __type __second) const { return __type(__is_any ? __first | __second : __first & __second); }
};
template <class __reduce, bool __is_any, class... __operands>
struct brief<bool, flag_fold<__reduce, __is_any>, __operands...> {
    typedef typename word_of<power_of_two_up_to(smaller(8, largest_stored<__operands...>()))>::type type;
    static constexpr int most = 1 << 30;
    GRIDSTRIDE_INLINED static joining_flags<__is_any> reduce(const flag_fold<__reduce, __is_any>&) { return joining_flags<__is_any>(); }
};

template <class __map> struct asks_for_numbers { static constexpr bool value = true; };
template <class __map> struct asks_for_numbers<numberless<__map>> { static constexpr bool value = false; };

// ---- the order in which several values join one ----

template <class __first, class __second> struct is_same { static constexpr bool value = false; };
template <class __type> struct is_same<__type, __type> { static constexpr bool value = true; };
template <class __type, class... __operands> struct is_stored { static constexpr bool value = false; };
template <class __type, class __first, class... __rest>
struct is_stored<__type, __first, __rest...> {
    static constexpr bool value = is_same<__type, typename __first::value>::value || is_stored<__type, __rest...>::value;
};

// Numbers join each other first, which shortens chains of operations. Structures that are not what is stored may have
// to ask which of two to take: they join one by one, since the answer is easy to foretell where much is folded already.
template <class __type, class... __operands>
constexpr bool joins_in_trees() { return !__is_class(__type) || is_stored<__type, __operands...>::value; }

template <int __count, bool __in_tree>
struct several {
    // `__value(k)` for k from `__first` on.
    template <class __type, class __reduce, class __value>
    GRIDSTRIDE_INLINED static __type fold(const __reduce& __do, const __value& __value_at, int __first) {
        return __do(several<__count / 2, __in_tree>::template fold<__type>(__do, __value_at, __first),
                    several<__count / 2, __in_tree>::template fold<__type>(__do, __value_at, __first + __count / 2));
    }
    template <class __type, class __reduce, class __value>
    GRIDSTRIDE_INLINED static __type join(const __reduce& __do, __type __sum, const __value& __value_at, int __first) {
        if (__in_tree) return __do(__sum, fold<__type>(__do, __value_at, __first));
        __sum = several<__count / 2, __in_tree>::join(__do, __sum, __value_at, __first);
        return several<__count / 2, __in_tree>::join(__do, __sum, __value_at, __first + __count / 2);
    }
};
template <bool __in_tree>
struct several<1, __in_tree> {
    template <class __type, class __reduce, class __value>
    GRIDSTRIDE_INLINED static __type fold(const __reduce&, const __value& __value_at, int __first) {
        return static_cast<__type>(__value_at(__first));
    }
    template <class __type, class __reduce, class __value>
    GRIDSTRIDE_INLINED static __type join(const __reduce& __do, const __type& __sum, const __value& __value_at, int __first) {
        return __do(__sum, static_cast<__type>(__value_at(__first)));
    }
};

// ---- neighboring results ----

// Where they are, or of structures where their members are.
template <class __folding, bool __parts_outermost = true, class __values = const typename __folding::type*>
struct neighbors {
    __values values;
    int count;
};

template <class __stored>
GRIDSTRIDE_INLINED bool is_direct(const char* __at, long long __step) {
    return __step == sizeof(__stored) && reinterpret_cast<unsigned long>(__at) % alignof(__stored) == 0;
}

template <class __stored>
GRIDSTRIDE_INLINED int fetch_for_writing(__stored* __at, long long __count) {
    for (long long __k = 0; __k < __count * int(sizeof(__stored)); __k += 64) __builtin_prefetch(reinterpret_cast<char*>(__at) + __k, 1);
    return 0;
}
template <class... __operands, class __post, class __values>
GRIDSTRIDE_INLINED void assign_consecutive(const __post& __do_post, const __values& __folded, long long __number,
                                           long long __step, int __count, typename __operands::stored* const... __items) {
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __count; ++__k)
        __do_post(__number + __k * __step, __folded[__k], element<__operands>(__items[__k]).get()...);
}

template <class __post, class __values, int __axes, class... __placed>
GRIDSTRIDE_INLINED void assign_neighbors(const __post& __do_post, const __values& __folded, int __count,
                                         const fold_space<__axes>& __space, long long __result, __placed&&... __outputs) {
    long long __within;
    const long long __row = find_result(__space, __result, __within, __outputs...);
    const long long __step = __space.result.step, __number = __row + __within * __step;
    if (all_of(is_direct<typename __placed::stored>(__outputs.base, __outputs.source.step)...)) {
        assign_consecutive<typename __placed::operand...>(__do_post, __folded, __number, __step, __count, &__outputs.at(__within)...);
        swallow(fetch_for_writing(&__outputs.at(__within + __count), __count)...);
        return;
    }
    for (int __k = 0; __k < __count; ++__k)
        __do_post(__number + __k * __step, __folded[__k], element<typename __placed::operand>(__outputs.at(__within + __k)).get()...);
}

template <class __post, class __folding, bool __parts_outermost, class __values, int __axes, class... __operands>
GRIDSTRIDE_INLINED void assign(const __post& __do_post, const neighbors<__folding, __parts_outermost, __values>& __folded,
                               const fold_space<__axes>& __space, long long __result, const __operands&... __outputs) {
    // Where parts are joined, results of several rows are handed over at once.
    for (int __done = 0; __done < __folded.count;) {
        const long long __next = __result + __done, __left = __space.kept_row - __next % __space.kept_row;
        const int __some = int(__left < __folded.count - __done ? __left : __folded.count - __done);
        assign_neighbors(__do_post, __folded.values + __done, __some, __space, __next, placed<__operands>(__outputs)...);
        __done += __some;
    }
}

// The parts of a result lie next to each other, or those of neighboring results.
template <class __folding, bool __parts_outermost, class __values, int __axes>
GRIDSTRIDE_INLINED void keep(const neighbors<__folding, __parts_outermost, __values>& __folded, const fold_space<__axes>& __space,
                             long long __result, int __part) {
    __folding* const __to = reinterpret_cast<__folding*>(__space.workspace) +
                            (__parts_outermost ? __part * __space.outputs + __result : __result * __space.parts + __part);
    const long long __step = __parts_outermost ? 1 : __space.parts;
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __folded.count; ++__k) __to[__k * __step] = __folding(__folded.values[__k]);
}

}

#endif
