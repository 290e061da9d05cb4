// `fold_rows`: folds along several axes of which the innermost is long. A group of threads takes the packets of all its
// rows, one after another; a row has at least as many as the group has threads.
#ifndef GRIDSTRIDE_FOLD_ROWS_H
#define GRIDSTRIDE_FOLD_ROWS_H

#include <gridstride/fold_parts.h>
#include <gridstride/line_packets.h>

namespace gridstride {

// An input of which several rows are folded, one after another.
template <class __operand, int __length, int __count>
struct rows_input : line_input<__operand, __length, __count> {
    typedef line_input<__operand, __length, __count> line;
    const char* row;  // where the thread's row begins

    GRIDSTRIDE_INLINED rows_input(const __operand& __source) : line(__source), row(nullptr) {}
    GRIDSTRIDE_INLINED bool has_words(int __ndim) const {
        bool __have = line::has_words();
        for (int __axis = 1; __axis < __ndim; ++__axis)
            __have = __have && this->source.strides[__axis] % (__length * sizeof(typename line::stored)) == 0;
        return __have;
    }
    GRIDSTRIDE_INLINED int load_word(int __k, int __packet) {
        return this->words[__k].load(row + static_cast<long long>(__packet) * int(__length * sizeof(typename line::stored)));
    }
    GRIDSTRIDE_INLINED int next_row() {
        row += this->source.strides[1];
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __k, long long __packet, int __last) {
        load_packet<__length>(this->packets[__k], row + __packet * __length * this->source.step, this->source.step, 0, __last);
        if (is_one_word<typename line::stored, __length>::value) this->words[__k].pack(this->packets[__k]);
        return 0;
    }
};

// Where a thread is among the packets of its rows.
template <class __counter>
struct rows_place {
    int packets, packet;  // of a row
    long long row, number;
    counted_from<__counter> from;

    template <int __axes, class... __inputs>
    GRIDSTRIDE_INLINED rows_place(const fold_space<__axes>& __space, long long __number, long long __first, __inputs&... __all)
        : packets(int(__space.fold.length[0])), packet(0), row(__first), number(__number), from(__space, __number) {
        packet = int(taken_off(__space.fold, row, 0));
        go_to_row(__space, __all...);
    }
    template <int __axes, class... __inputs>
    GRIDSTRIDE_INLINED void go_to_row(const fold_space<__axes>& __space, __inputs&... __all) {
        long long __rest = row;
        from.number = number;
        from.position = 0;
        swallow((__all.row = __all.base)...);
#pragma unroll
        for (int __axis = 1; __axis < __axes; ++__axis) {
            if (__axis >= __space.fold.ndim) break;
            const long long __at = __axis + 1 < __space.fold.ndim ? taken_off(__space.fold, __rest, __axis) : __rest;
            from.number += __at * __space.fold_numbers.strides[__axis];
            from.position += __at * __space.position.strides[__axis];
            swallow((__all.row += __at * __all.source.strides[__axis])...);
        }
    }
    // Rows of two axes are all equally far apart.
    template <bool __are_two, int __axes, class... __inputs>
    GRIDSTRIDE_INLINED void step(const fold_space<__axes>& __space, int __apart, __inputs&... __all) {
        packet += __apart;
        if (packet < packets) return;
        packet -= packets;
        if (__are_two) {
            from.number += __space.fold_numbers.strides[1];
            from.position += __space.position.strides[1];
            swallow(__all.next_row()...);
        } else {
            ++row;
            go_to_row(__space, __all...);
        }
    }
};

// Packets `__first`, that and `__apart`, and so on, before `__end`, that are words; the number of the first that is left.
template <int __length, int __count, bool __are_two, int __sums_count, class __counter, class __folding, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED long long add_words_of_rows(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                               const fold_space<__axes>& __space, rows_place<__counter>& __at, long long __first,
                                               long long __end, int __apart, __inputs&... __all) {
    for (; __first + (__count - 1) * __apart < __end; __first += __count * __apart) {
        counted_from<__counter> __from = __at.from;
        long long __numbers[__count], __positions[__count];
        int __packets[__count];
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            __packets[__k] = __at.packet;
            __numbers[__k] = __at.from.number;
            __positions[__k] = __at.from.position;
            swallow(__all.load_word(__k, __at.packet)...);
            __at.template step<__are_two>(__space, __apart, __all...);
        }
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            swallow(__all.unpack(__k)...);
            __from.number = __numbers[__k];
            __from.position = __positions[__k];
            whole_line<is_costly<__folding, __reduce>::value>::template add<__length>(__do_map, __do, __sums, __from, __packets[__k], __k, __all...);
        }
    }
    return __first;
}

// The same for elements that make no words.
template <int __length, bool __are_two, int __sums_count, class __counter, class __folding, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void add_packets_of_rows(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                            const fold_space<__axes>& __space, rows_place<__counter>& __at, long long __first,
                                            long long __end, int __apart, __inputs&... __all) {
    for (; __first < __end; __first += __apart) {
        const long long __left = __space.fold_row - static_cast<long long>(__at.packet) * __length;
        const int __last = __left > __length ? __length : int(__left);
        swallow(__all.load(0, __at.packet, __last)...);
        swallow(__all.unpack(0)...);
        add_line<__length>(__do_map, __do, __sums, __at.from, __at.packet, __last, 0, __all...);
        __at.template step<__are_two>(__space, __apart, __all...);
    }
}

template <int __length, int __count, bool __are_two, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_rows_of_packets(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                             const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                             __inputs&&... __all) {
    constexpr int __sums_count = is_costly<__folding, __reduce>::value ? 1 : __length < most_sums ? __length : most_sums;
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1);
    const long long __result = (static_cast<long long>(blockIdx.x) * fold_threads + threadIdx.x) >> (__ffs(__group) - 1);
    const bool __is_inside = __result < __space.outputs;
    const long long __number = settle(__space, __is_inside ? __result : 0, 0, __all...);
    long long __first = blockIdx.y * __space.part, __end = __first + __space.part;
    if (__end > __space.fold.count) __end = __space.fold.count;
    if (!__is_inside) __end = 0;
    __first += __lane;
    rows_place<typename counter_of<__counter, is_costly<__folding, __reduce>::value>::type> __at(__space, __number, __first < __end ? __first : 0, __all...);
    __folding __sums[__sums_count];
#pragma unroll
    for (int __j = 0; __j < __sums_count; ++__j) __sums[__j] = __start;
    if (__space.fold_row % __length == 0 && all_of(__all.has_words(__are_two ? 2 : __space.fold.ndim)...)) {
        __first = add_words_of_rows<__length, __count, __are_two>(__do_map, __do, __sums, __space, __at, __first, __end, __group, __all...);
        add_words_of_rows<__length, 1, __are_two>(__do_map, __do, __sums, __space, __at, __first, __end, __group, __all...);
    } else {
        add_packets_of_rows<__length, __are_two>(__do_map, __do, __sums, __space, __at, __first, __end, __group, __all...);
    }
    join_own(__do, __sums);
    join_group(__do, __sums[0], __group, __shared);
    if (__lane == 0 && __is_inside) __do_finish(__result, int(blockIdx.y), __sums[0]);
}

// `__are_two`: whether the folded axes are two.
template <int __count, bool __are_two, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_rows(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                  const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_rows_of_packets<__length, __count, __are_two, __counter>(__do_map, __do, __do_finish, __start, __space, __shared,
                                            rows_input<__operands, __length, __count>(__inputs)...);
}

}

#endif
