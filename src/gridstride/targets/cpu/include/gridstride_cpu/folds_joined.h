// The folds of what the parts of results became, which lie in order: little work, so little code.
#ifndef GRIDSTRIDE_CPU_FOLDS_JOINED_H
#define GRIDSTRIDE_CPU_FOLDS_JOINED_H

#include <gridstride_cpu/folds.h>

namespace gridstride {

// Values are joined as the digits of a counter carry: in pairs of equally many.
template <class __type>
struct pairs {
    unsigned long count = 0;
    __type levels[48];

    template <class __reduce>
    GRIDSTRIDE_INLINED void push(const __reduce& __do, __type __value) {
        int __level = 0;
        for (unsigned long __rest = count++; __rest & 1; __rest >>= 1, ++__level)
            __value = __do(levels[__level], __value);
        levels[__level] = __value;
    }
    template <class __reduce>
    GRIDSTRIDE_INLINED __type whole(const __reduce& __do) const {
        int __level = __builtin_ctzl(count);
        __type __value = levels[__level];
        for (unsigned long __rest = count >> __level >> 1; ++__level, __rest; __rest >>= 1)
            if (__rest & 1) __value = __do(levels[__level], __value);
        return __value;
    }
};

constexpr int parts_of_batch = 8;  // joined before they are joined with others

// Join values one by one with those there, or put them there first.
template <class __type, class __reduce, class __value>
GRIDSTRIDE_INLINED void join_values(__type* __to, bool __is_first, const __reduce& __do, int __count, const __value& __value_at) {
    if (__is_first) {
        GRIDSTRIDE_LANES
        for (long long __k = 0; __k < __count; ++__k) __to[__k] = __value_at(__k);
    } else {
        GRIDSTRIDE_LANES
        for (long long __k = 0; __k < __count; ++__k) __to[__k] = __do(__to[__k], __value_at(__k));
    }
}

// Join the parts of so many results: those of a result are one stride apart, those of neighbors lie next to each other.
template <class __folding, class __reduce, class __type = typename __folding::type>
GRIDSTRIDE_INLINED void join_parts(__type* __sums, __type* __batch, const __reduce& __do, const char* __from,
                                   long long __stride, int __parts, int __count) {
    for (int __part = 0; __part < __parts; ++__part) {
        const __folding* const __values = reinterpret_cast<const __folding*>(__from + __part * __stride);
        const int __in_batch = __part % parts_of_batch;
        join_values(__batch, __in_batch == 0, __do, __count, [&](long long __k) -> const __type& { return __values[__k].value; });
        if (__in_batch == parts_of_batch - 1 || __part == __parts - 1)
            join_values(__sums, __part < parts_of_batch, __do, __count, [&](long long __k) -> const __type& { return __batch[__k]; });
    }
}

// Where parts of neighboring results lie next to each other.
template <class __map, class __reduce, class __finish, class __folding, int __axes, class __operand>
GRIDSTRIDE_INLINED void joined_across(const __map&, const __reduce& __do, const __finish& __do_finish, const __folding&,
                                      const fold_space<__axes>& __space, const __operand& __parts) {
    typedef typename __folding::type __type;
    constexpr int __most = larger(buffer_bytes / int(sizeof(__type)), 1);
    alignas(__type) alignas(64) char __memory[2][__most * sizeof(__type)];
    __type *const __sums = reinterpret_cast<__type*>(__memory[0]), *const __batch = reinterpret_cast<__type*>(__memory[1]);
    const share_of_pieces __share(__space.kept.count);
    for (long long __piece = __share.first; __piece < __share.last; ++__piece) {
        const long long __first = __piece * __space.group, __left = __space.kept_row - __first;
        const long long __last = __first + (__left < __space.group ? __left : __space.group);
        for (long long __result = __first; __result < __last; __result += __most) {
            const int __count = int(__last - __result < __most ? __last - __result : __most);
            join_parts<__folding>(__sums, __batch, __do, __parts.data + __result * __parts.step, __parts.strides[0],
                                  int(__space.fold_row), __count);
            __do_finish(__result, 0, neighbors<__folding>{__sums, __count});
        }
    }
}

// Where the parts of a result lie next to each other.
template <class __map, class __reduce, class __finish, class __folding, int __axes, class __operand>
GRIDSTRIDE_INLINED void joined_along(const __map&, const __reduce& __do, const __finish& __do_finish, const __folding&,
                                     const fold_space<__axes>& __space, const __operand& __parts) {
    typedef typename __folding::type __type;
    const share_of_pieces __share(__space.kept.count);
    for (long long __result = __share.first; __result < __share.last; ++__result) {
        const char* const __from = __parts.data + __result * __parts.kept_strides[0];
        pairs<__type> __joined;
        for (long long __part = 0; __part < __space.fold_row; ++__part)
            __joined.push(__do, reinterpret_cast<const __folding*>(__from + __part * __parts.step)->value);
        const __type __value = __joined.whole(__do);
        __do_finish(__result, 0, neighbors<__folding, false>{&__value, 1});
    }
}

}

#endif
