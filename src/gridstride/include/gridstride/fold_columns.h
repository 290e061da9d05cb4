// `fold_columns`: folds along one axis across which threads take packets of results.
#ifndef GRIDSTRIDE_FOLD_COLUMNS_H
#define GRIDSTRIDE_FOLD_COLUMNS_H

#include <gridstride/fold_lines.h>

namespace gridstride {

// What a thread holds of an input: packets of neighboring results, one from each of several rows.
template <class __operand, int __length, int __count>
struct column_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    word_of<stored, __length> words[__count];
    packet<stored, __length> packets[__count];

    GRIDSTRIDE_INLINED column_input(const __operand& __source) : source(__source), base(__source.data) {}
    // Whether all rows that are so many apart have words where this one has one.
    GRIDSTRIDE_INLINED bool has_words(int __apart) const {
        return word_of<stored, __length>::is_at(base, source.step) && source.strides[0] * __apart % (__length * sizeof(stored)) == 0;
    }
    GRIDSTRIDE_INLINED int move(long long __rows) {
        base += __rows * source.strides[0];
        return 0;
    }
    GRIDSTRIDE_INLINED int load_word(int __k, int __apart) {
        return words[__k].load(base + static_cast<long long>(__k * __apart) * source.strides[0]);
    }
    // Elements wait as one word where they make one, whichever way they came: so they are taken apart in one place.
    GRIDSTRIDE_INLINED int unpack(int __k) {
        return is_one_word<stored, __length>::value ? words[__k].unpack(packets[__k]) : 0;
    }
    GRIDSTRIDE_INLINED int load(int __k, int __apart, int __last) {
        load_packet<__length>(packets[__k], base + static_cast<long long>(__k * __apart) * source.strides[0], source.step, 0,
                              __last);
        if (is_one_word<stored, __length>::value) words[__k].pack(packets[__k]);
        return 0;
    }
};

// Beyond the end of a row there are values of nothing, whose sums nobody asks for.
template <int __length, class __folding, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void add_row(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                const fold_space<__axes>& __space, long long __number, long long __row, int __k,
                                __inputs&... __all) {
    __number += __row * __space.fold_numbers.strides[0];
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        __sums[__j].add(__do, __do_map(__number + __j * __space.kept_numbers.step, __row * __space.position.strides[0],
                                       element<typename __inputs::operand>(__all.packets[__k].items[__j]).get()...));
}

// Rows `__first`, that and `__apart`, and so on, before `__end`; the number of the first that is left.
template <int __length, int __count, bool __are_words, class __folding, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED long long add_rows(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                      const fold_space<__axes>& __space, long long __number, long long __first,
                                      long long __end, int __apart, int __last, __inputs&... __all) {
    for (; __first + (__count - 1) * __apart < __end; __first += __count * __apart) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__are_words) swallow(__all.load_word(__k, __apart)...);
            else swallow(__all.load(__k, __apart, __last)...);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            swallow(__all.unpack(__k)...);
            add_row<__length>(__do_map, __do, __sums, __space, __number, __first + __k * __apart, __k, __all...);
        }
        swallow(__all.move(__count * __apart)...);
    }
    return __first;
}

template <int __length, int __count, bool __are_words, class __folding, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void add_all_rows(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                     const fold_space<__axes>& __space, long long __number, long long __first,
                                     long long __end, int __apart, int __last, __inputs&... __all) {
    __first = add_rows<__length, __count, __are_words>(__do_map, __do, __sums, __space, __number, __first, __end, __apart, __last, __all...);
    if (__count > 1)
        add_rows<__length, 1, __are_words>(__do_map, __do, __sums, __space, __number, __first, __end, __apart, __last, __all...);
}

template <int __length, int __count, bool __are_words, class __input>
GRIDSTRIDE_INLINED long long add_byte_rows(byte_columns<typename __input::stored, __length>& __columns, long long __first,
                                           long long __end, int __apart, int __last, __input& __one) {
    for (; __first + (__count - 1) * __apart < __end; __first += __count * __apart) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) __are_words ? __one.load_word(__k, __apart) : __one.load(__k, __apart, __last);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            __one.unpack(__k);
            __columns.add(__one.packets[__k]);
        }
        __one.move(__count * __apart);
        __columns.make_room(__count);
    }
    return __first;
}

// The same for integers that are added, in bytes of words.
template <int __length, int __count, bool __are_words, class __folding, class __map, class __reduce, int __axes, class __input>
GRIDSTRIDE_INLINED enable_for_bytes<__input, __length> add_all_rows(
    const __map&, const integer_sum<__reduce>& __do, __folding (&__sums)[__length], const fold_space<__axes>&, long long,
    long long __first, long long __end, int __apart, int __last, __input& __one) {
    byte_columns<typename __input::stored, __length> __columns;
    __first = add_byte_rows<__length, __count, __are_words>(__columns, __first, __end, __apart, __last, __one);
    if (__count > 1) add_byte_rows<__length, 1, __are_words>(__columns, __first, __end, __apart, __last, __one);
    __columns.give(__do, __sums);
}

template <int __length, int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_column(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                    const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                    __inputs&&... __all) {
    // `group` threads lie next to each other along the packets of results, the others of the block share the fold.
    const int __group = __space.group, __x = threadIdx.x & (__group - 1), __y = threadIdx.x >> (__ffs(__group) - 1);
    const int __height = fold_threads >> (__ffs(__group) - 1);
    const long long __packet = static_cast<long long>(blockIdx.x) * __group + __x;
    const bool __is_inside = __packet < __space.kept.count;
    long long __outer = __is_inside ? __packet : 0, __within = __outer;
    if (__space.kept.ndim > 1) __within = taken_off(__space.kept, __outer, 0);
    else __outer = 0;
    const long long __element = __within * __length, __left = __space.kept_row - __element;
    const int __last = __left < __length ? int(__left) : __length;
    const long long __number = settle(__space, __outer, 1, __all...) + __element * __space.kept_numbers.step;
    swallow((__all.base += __element * __all.source.step)...);
    const long long __begin = blockIdx.y * __space.part;
    long long __end = __begin + __space.part;
    if (__end > __space.fold.count) __end = __space.fold.count;
    if (!__is_inside) __end = 0;
    __folding __sums[__length];
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) __sums[__j] = __start;
    long long __row = __begin + __y;
    swallow(__all.move(__row)...);
    if (__last == __length && all_of(__all.has_words(__height)...))
        add_all_rows<__length, __count, true>(__do_map, __do, __sums, __space, __number, __row, __end, __height, __last, __all...);
    else
        add_all_rows<__length, 1, false>(__do_map, __do, __sums, __space, __number, __row, __end, __height, __last, __all...);
    join_columns(__do, __sums, __group, __y, __height, __shared);
    hand_over(__do_finish, __sums, __space, __shared);
}

template <int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_columns(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                     const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                     const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_column<__length, __count>(__do_map, __do, __do_finish, __start, __space, __shared,
                                   column_input<__operands, __length, __count>(__inputs)...);
}

}

#endif
