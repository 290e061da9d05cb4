// `fold_lines`: folds along one axis, in which threads take packets. The order of the operations depends on the shape
// alone, not on where the elements lie.
#ifndef GRIDSTRIDE_FOLD_LINES_H
#define GRIDSTRIDE_FOLD_LINES_H

#include <gridstride/fold_blocks.h>
#include <gridstride/integer_sums.h>

namespace gridstride {

// What a thread holds of an input: packets of it, and where the elements of its result begin.
template <class __operand, int __length, int __count>
struct line_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    word_of<stored, __length> words[__count];
    packet<stored, __length> packets[__count];

    GRIDSTRIDE_INLINED line_input(const __operand& __source) : source(__source), base(__source.data) {}
    GRIDSTRIDE_INLINED bool has_words() const { return word_of<stored, __length>::is_at(base, source.step); }
    GRIDSTRIDE_INLINED int load_word(int __k, long long __packet) {
        return words[__k].load(base + __packet * int(__length * sizeof(stored)));
    }
    // Elements wait as one word where they make one, whichever way they came: so they are taken apart in one place.
    GRIDSTRIDE_INLINED int unpack(int __k) {
        return is_one_word<stored, __length>::value ? words[__k].unpack(packets[__k]) : 0;
    }
    GRIDSTRIDE_INLINED int load(int __k, long long __packet, int __last) {
        load_packet<__length>(packets[__k], base + __packet * __length * source.step, source.step, 0, __last);
        if (is_one_word<stored, __length>::value) words[__k].pack(packets[__k]);
        return 0;
    }
};

// More sums than this would only take registers: so many additions are under way at once.
constexpr int most_sums = 4;

// Where a thread's elements begin, as the user's expressions count them.
struct counted_from {
    long long number, number_step, position, position_step;
    template <int __axes>
    GRIDSTRIDE_INLINED counted_from(const fold_space<__axes>& __space, long long __number)
        : number(__number), number_step(__space.fold_numbers.step), position(0), position_step(__space.position.step) {}
};

// Add elements of a packet.
template <int __length, int __sums_count, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED void add_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                 const counted_from& __from, long long __packet, int __last, int __k,
                                 __inputs&... __all) {
    const long long __element = __packet * __length;
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__j < __last)
            __sums[__j % __sums_count].add(
                __do, __do_map(__from.number + (__element + __j) * __from.number_step,
                               __from.position + (__element + __j) * __from.position_step,
                               element<typename __inputs::operand>(__all.packets[__k].items[__j]).get()...));
}

template <int __length, int __sums_count, class __folding, class __map, class __reduce, class __input>
GRIDSTRIDE_INLINED void add_line(const __map&, const integer_sum<__reduce>& __do, __folding (&__sums)[__sums_count],
                                 const counted_from&, long long, int __last, int __k, __input& __one) {
    packet<typename __input::stored, __length>& __items = __one.packets[__k];
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__j >= __last) __items.items[__j] = 0;
    __sums[__k % __sums_count].add(__do, static_cast<typename __folding::type>(sum_of(__items)));
}

// Packets `__first`, that and `__apart`, and so on, before `__end`; the number of the first that is left.
template <int __length, int __count, bool __are_words, int __sums_count, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED long long add_lines(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                       const counted_from& __from, long long __first, long long __end, int __apart,
                                       __inputs&... __all) {
    for (; __first + (__count - 1) * __apart < __end; __first += __count * __apart) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__are_words) swallow(__all.load_word(__k, __first + __k * __apart)...);
            else swallow(__all.load(__k, __first + __k * __apart, __length)...);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            swallow(__all.unpack(__k)...);
            add_line<__length>(__do_map, __do, __sums, __from, __first + __k * __apart, __length, __k, __all...);
        }
    }
    return __first;
}

// Packets `__packet`, that and `__apart`, and so on, before `__end`, of a line of so many elements.
template <int __length, int __count, int __sums_count, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED void add_part_of_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                         const counted_from& __from, long long __packet, long long __end, int __apart,
                                         long long __elements, __inputs&... __all) {
    const long long __whole = __elements / __length, __words_end = __end < __whole ? __end : __whole;
    if (all_of(__all.has_words()...)) {
        __packet = add_lines<__length, __count, true>(__do_map, __do, __sums, __from, __packet, __words_end, __apart, __all...);
        __packet = add_lines<__length, 1, true>(__do_map, __do, __sums, __from, __packet, __words_end, __apart, __all...);
    } else {
        __packet = add_lines<__length, 1, false>(__do_map, __do, __sums, __from, __packet, __words_end, __apart, __all...);
    }
    if (__packet == __whole && __packet < __end) {
        const int __last = int(__elements - __whole * __length);
        swallow(__all.load(0, __packet, __last)...);
        swallow(__all.unpack(0)...);
        add_line<__length>(__do_map, __do, __sums, __from, __packet, __last, 0, __all...);
    }
}

template <int __length, int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_line(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                  __inputs&&... __all) {
    constexpr int __sums_count = __length < most_sums ? __length : most_sums;
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1);
    const long long __result = (static_cast<long long>(blockIdx.x) * fold_threads + threadIdx.x) >> (__ffs(__group) - 1);
    const bool __is_inside = __result < __space.outputs;
    const counted_from __from(__space, settle(__space, __is_inside ? __result : 0, 0, __all...));
    const long long __begin = blockIdx.y * __space.part;
    long long __end = __begin + __space.part;
    if (__end > __space.fold.count) __end = __space.fold.count;
    if (!__is_inside) __end = 0;
    __folding __sums[__sums_count];
#pragma unroll
    for (int __j = 0; __j < __sums_count; ++__j) __sums[__j] = __start;
    add_part_of_line<__length, __count>(__do_map, __do, __sums, __from, __begin + __lane, __end, __group, __space.fold_row, __all...);
    join_own(__do, __sums);
    join_group(__do, __sums[0], __group, __shared);
    if (__lane == 0 && __is_inside) __do_finish(__result, int(blockIdx.y), __sums[0]);
}

template <int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_lines(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_line<__length, __count>(__do_map, __do, __do_finish, __start, __space, __shared,
                                 line_input<__operands, __length, __count>(__inputs)...);
}

}

#endif
