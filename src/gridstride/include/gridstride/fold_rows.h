// `fold_rows`: folds along several axes of which the innermost lies closest. A group of threads takes the packets of all
// its rows, one after another.
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

    arriving<__length, typename line::stored> others[__count];
    unsigned past[__count];  // bytes that a word has before the packet

    GRIDSTRIDE_INLINED rows_input(const __operand& __source) : line(__source), row(nullptr) {}
    GRIDSTRIDE_INLINED const char* at(long long __element) const { return row + __element * int(sizeof(typename line::stored)); }
    GRIDSTRIDE_INLINED int move_row(long long __bytes) {
        row += __bytes;
        return 0;
    }
    template <bool __are_words>
    GRIDSTRIDE_INLINED int load(int __k, long long __element, int __last) {
        if (__are_words) return this->words[__k].load(at(__element));
        if (!is_arriving(__last)) {
            load_packet<__length>(this->packets[__k], row + __element * this->source.step, this->source.step, 0, __last);
            return 0;
        }
        past[__k] = bytes_past<16>(at(__element));
        if (sizeof(typename line::stored) >= 4) others[__k].load_cached(at(__element), past[__k]);
        else others[__k].load(at(__element), past[__k]);
        return 0;
    }
    template <bool __are_words>
    GRIDSTRIDE_INLINED int unpack(int __k, int __last) {
        if (__are_words) return this->words[__k].unpack(this->packets[__k]);
        if (!is_arriving(__last)) return 0;
        if (sizeof(typename line::stored) >= 4) others[__k].join_cached(past[__k]);
        else others[__k].join(past[__k]);
        others[__k].unpack(this->packets[__k]);
        return 0;
    }

private:
    // Whether a packet comes by the words that it touches.
    GRIDSTRIDE_INLINED bool is_arriving(int __last) const {
        return __last == __length && this->source.step == sizeof(typename line::stored);
    }
};

// Where a thread is among the packets of its rows, which are along `__outer` axes, or along any number where that is 0.
template <int __outer, class __counter>
struct rows_place {
    int packets, packet;               // of a row
    int packets_apart, rows_apart;     // to the thread's next packet
    int at[__outer + 1], apart[__outer + 1];  // the same along each axis of rows
    long long row, number;
    counted_from<__counter> from;

    template <int __axes, class... __inputs>
    GRIDSTRIDE_INLINED rows_place(const fold_space<__axes>& __space, long long __number, long long __first, __inputs&... __all)
        : packets(int(__space.fold.length[0])), packet(0), rows_apart(__space.group / packets), row(__first), number(__number),
          from(__space, __number) {
        packets_apart = __space.group - rows_apart * packets;
        int __rest = rows_apart;
#pragma unroll
        for (int __axis = 1; __axis < __outer; ++__axis) {
            apart[__axis] = __rest % int(__space.fold.length[__axis]);
            __rest /= int(__space.fold.length[__axis]);
        }
        apart[__outer] = __rest;
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
            const long long __own = __axis + 1 < __space.fold.ndim ? taken_off(__space.fold, __rest, __axis) : __rest;
            if (__axis <= __outer) at[__axis] = int(__own);
            move(__space, __axis, __own, __all...);
        }
    }
    template <int __axes, class... __inputs>
    GRIDSTRIDE_INLINED void move(const fold_space<__axes>& __space, int __axis, long long __count, __inputs&... __all) {
        from.number += __count * __space.fold_numbers.strides[__axis];
        from.position += __count * __space.position.strides[__axis];
        swallow(__all.move_row(__count * __all.source.strides[__axis])...);
    }
    template <int __axes, class... __inputs>
    GRIDSTRIDE_INLINED void step(const fold_space<__axes>& __space, __inputs&... __all) {
        packet += packets_apart;
        int __carry = packet >= packets;
        if (__carry) packet -= packets;
        if (rows_apart + __carry == 0) return;
        if (__outer == 0) {
            row += rows_apart + __carry;
            go_to_row(__space, __all...);
        } else {
            count_on(__space, __carry, __all...);
        }
    }

private:
    // Go on by as many rows as are apart, and one more where packets carry.
    template <int __axes, class... __inputs>
    GRIDSTRIDE_INLINED void count_on(const fold_space<__axes>& __space, int __carry, __inputs&... __all) {
#pragma unroll
        for (int __axis = 1; __axis <= __outer; ++__axis) {
            int __count = apart[__axis] + __carry;
            if (__axis < __outer) {
                const int __length = int(__space.fold.length[__axis]);
                at[__axis] += __count;
                __carry = at[__axis] >= __length;
                if (__carry) at[__axis] -= __length, __count -= __length;
            }
            move(__space, __axis, __count, __all...);
        }
    }
};

// Packets `__first`, that and `group`, and so on, before `__end`, `__count` at once; the number of the first that is left.
// Where they need be no words, the last of a row begins so early that it is whole.
template <int __length, int __count, bool __are_words, int __outer, int __sums_count, class __counter, class __folding, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED long long add_packets_of_rows(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                                 const fold_space<__axes>& __space, rows_place<__outer, __counter>& __at, long long __first,
                                                 long long __end, __inputs&... __all) {
    typedef whole_line<is_costly<__folding, __reduce>::value> whole_packet;
    const int __last = __are_words || __space.fold_row > __length ? __length : int(__space.fold_row);
    for (; __first + (__count - 1) * __space.group < __end; __first += __count * __space.group) {
        counted_from<__counter> __from = __at.from;
        long long __numbers[__count], __positions[__count];
        int __packets[__count], __missing[__count];
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            const long long __element = static_cast<long long>(__at.packet) * __length;
            const long long __left = __space.fold_row - __element;
            __packets[__k] = __at.packet;
            __numbers[__k] = __at.from.number;
            __positions[__k] = __at.from.position;
            __missing[__k] = __are_words || __left >= __last ? 0 : __last - int(__left);
            swallow(__all.template load<__are_words>(__k, __element - __missing[__k], __last)...);
            __at.step(__space, __all...);
        }
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            swallow(__all.template unpack<__are_words>(__k, __last)...);
            __from.number = __numbers[__k];
            __from.position = __positions[__k];
            if (__are_words || (__missing[__k] == 0 && __last == __length))
                whole_packet::template add<__length>(__do_map, __do, __sums, __from, __packets[__k], __k, __all...);
            else if (__missing[__k] == 0)
                add_line<__length>(__do_map, __do, __sums, __from, __packets[__k], __last, __k, __all...);
            else
                add_end_of_line<__length>(__do_map, __do, __sums, __from, static_cast<long long>(__packets[__k]) * __length - __missing[__k], __missing[__k], __k, __all...);
        }
    }
    return __first;
}

template <int __length, int __count, bool __are_words, int __outer, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
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
    rows_place<__outer, typename counter_of<__counter, is_costly<__folding, __reduce>::value>::type> __at(__space, __number, __first < __end ? __first : 0, __all...);
    __folding __sums[__sums_count];
#pragma unroll
    for (int __j = 0; __j < __sums_count; ++__j) __sums[__j] = __start;
    __first = add_packets_of_rows<__length, __count, __are_words, __outer>(__do_map, __do, __sums, __space, __at, __first, __end, __all...);
    add_packets_of_rows<__length, 1, __are_words, __outer>(__do_map, __do, __sums, __space, __at, __first, __end, __all...);
    join_own(__do, __sums);
    join_group(__do, __sums[0], __group, __shared);
    if (__lane == 0 && __is_inside) __do_finish(__result, int(blockIdx.y), __sums[0]);
}

// `__are_words`: whether all packets of all rows are; along how many axes they are, or 0.
template <int __count, bool __are_words, int __outer, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_rows(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                  const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    // Packets that take two words are fewer at once.
    constexpr int __at_once = __are_words || __length <= 4 ? __count : 2;
    fold_rows_of_packets<__length, __at_once, __are_words, __outer, __counter>(
        __do_map, __do, __do_finish, __start, __space, __shared, rows_input<__operands, __length, __at_once>(__inputs)...);
}

}

#endif
