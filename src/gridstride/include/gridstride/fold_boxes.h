// `fold_boxes`: folds of which folded axes lie between kept ones. A block folds rows of boxes, stretches of memory, into
// one box of values, in which it finds those of each result.
#ifndef GRIDSTRIDE_FOLD_BOXES_H
#define GRIDSTRIDE_FOLD_BOXES_H

#include <gridstride/folded_boxes.h>

namespace gridstride {

// What a block folds: rows, from one to before another, of segments.
struct box_rows {
    int first, end;
    int segment, packets;  // elements of a segment; packets of a row
    int last, elements;    // the first row of which segments may have fewer, and how many
};

// A thread's packet of a row: the element of its segment with which it begins, that of memory, and of the box of values.
struct box_packet {
    int within, element, column;
};

// Move the inputs to a row, along so many axes.
template <int __row_axes, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void go_to_box(const fold_space<__axes>& __space, unsigned __row, __inputs&... __all) {
    swallow((__all.row = __all.base)...);
#pragma unroll
    for (int __axis = 1; __axis < __row_axes; ++__axis) {
        const unsigned __at = remainder_of(__space.fold, __row, __axis);
        swallow(__all.move_row(__at * __all.source.strides[__axis])...);
    }
    swallow(__all.move_row(__row * __all.source.strides[__row_axes])...);
}

// Add the rows, `__high` at once, of `__wide` packets of a thread.
template <int __length, int __wide, int __high, int __row_axes, class __columns, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void add_boxes(const __map& __do_map, const __reduce& __do, __columns (&__sums)[__wide], const fold_space<__axes>& __space,
                                  const box_rows& __rows, const box_packet (&__packets)[__wide], __inputs&... __all) {
    // Rows of which all packets of the thread are whole.
    int __whole = __rows.end;
#pragma unroll
    for (int __w = 0; __w < __wide; ++__w) {
        if (__rows.last < __whole && __packets[__w].within + __length > __rows.elements) __whole = __rows.last;
        if (__packets[__w].within + __length > __rows.segment) __whole = __rows.first;
    }
    int __row = __rows.first;
    go_to_box<__row_axes>(__space, __row, __all...);
#pragma unroll 1
    for (; __row < __whole; __row += __high) {
#pragma unroll
        for (int __h = 0; __h < __high; ++__h)
            if (__row + __h < __whole) {
                if (__row_axes > 1 && __h > 0) go_to_box<__row_axes>(__space, __row + __h, __all...);
#pragma unroll
                for (int __w = 0; __w < __wide; ++__w)
                    swallow(__all.load(__h * __wide + __w, __packets[__w].element, __row_axes > 1 ? 0 : __h * __all.source.strides[1])...);
            }
        if (__row_axes > 1) go_to_box<__row_axes>(__space, __row + __high, __all...);
        else swallow(__all.move_row(__high * __all.source.strides[1])...);
#pragma unroll
        for (int __h = 0; __h < __high; ++__h)
            if (__row + __h < __whole)
#pragma unroll
                for (int __w = 0; __w < __wide; ++__w) {
                    swallow(__all.unpack(__h * __wide + __w)...);
                    __sums[__w].add(__do_map, __do, __h * __wide + __w, __all...);
                }
    }
    if (__whole == __rows.end) return;
#pragma unroll
    for (int __w = 0; __w < __wide; ++__w)
#pragma unroll 1
        for (__row = __whole; __row < __rows.end; ++__row) {
            const int __left = (__row >= __rows.last ? __rows.elements : __rows.segment) - __packets[__w].within;
            if (__left <= 0) continue;
            go_to_box<__row_axes>(__space, __row, __all...);
            swallow(__all.load_some(__packets[__w].element, __left < __length ? __left : __length)...);
            __sums[__w].add_some(__do_map, __do, 0, __left < __length ? __left : __length, __all...);
        }
}

// Where in the box of values the one of an index is, along the axes from one on; or which place it has in the fold, which
// stands behind other numbers.
template <int __from, int __behind = 0, int __axes>
GRIDSTRIDE_INLINED int place_in_box(const axes<__axes>& __lengths, const numbering<__axes>& __places, unsigned __index) {
    int __place = 0;
#pragma unroll
    for (int __axis = __from; __axis < __axes - __behind; ++__axis) {
        if (__axis >= __lengths.ndim) break;
        const unsigned __at = __axis + 1 < __lengths.ndim ? remainder_of(__lengths, __index, __axis) : __index;
        __place += int(__at) * int(__places.strides[__axis + __behind]);
    }
    return __place;
}

// Where `position` has the places of axes, of which there is one of rows.
constexpr int behind_numbers = 2;
// What is kept of a value so many places further in the fold.
template <class __reduce, class __value>
GRIDSTRIDE_INLINED __value moved(const __reduce&, const __value& __kept, int) { return __kept; }

// Fold the values of each result, and hand them over. `__are_placed`: whether these have places.
template <bool __are_placed, int __row_axes, class __folding, class __value, class __reduce, class __finish, int __axes>
GRIDSTRIDE_INLINED void fold_box(const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                 const fold_space<__axes>& __space, int __first, int __results, const __value* __table,
                                 long long __place_of_rows) {
    constexpr int __axis = __row_axes + 1;
    const int __further = __are_placed ? int(__space.position.strides[__axis + behind_numbers]) : 0;
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1), __at_once = fold_threads >> (__ffs(__group) - 1);
    const int __run = int(__space.fold.length[__axis]), __step = int(__space.fold_numbers.strides[__axis]), __runs = int(__space.fold_row);
    for (int __begin = 0; __begin < __results; __begin += __at_once) {
        const int __own = __begin + (threadIdx.x >> (__ffs(__group) - 1));
        const int __base = (__own < __results ? place_in_box<0>(__space.kept, __space.kept_numbers, __own) : 0) + __lane * __step;
        const int __first_place = __are_placed ? __lane * __further : 0;
        __value __sum = moved(__do, __table[between_gaps(__base)], __first_place);
        int __at = __base + __step * __group, __left = __run - __lane - __group, __place = __first_place + __further * __group;
        for (int __k = 0;;) {
#pragma unroll 4
            for (; __left > 0; __left -= __group, __at += __step * __group, __place += __further * __group)
                joined(__do, __sum, moved(__do, __table[between_gaps(__at)], __place));
            if (++__k == __runs) break;
            __at = __base + place_in_box<__axis + 1>(__space.fold, __space.fold_numbers, __k);
            if (__are_placed) __place = __first_place + place_in_box<__axis + 1, behind_numbers>(__space.fold, __space.position, __k);
            __left = __run - __lane;
        }
        for (int __distance = __group / 2; __distance > 0; __distance /= 2) joined(__do, __sum, from_lane_below(__sum, __distance, __group));
        if (__lane == 0 && __own < __results) __do_finish(__first + __own, int(blockIdx.y), as_folded(__do, __start, __sum, __place_of_rows));
    }
}

// `position` says how many elements segments of the last rows have; its strides, how many results a box has, how many boxes
// those have that lie next to each other (`kept.count`), which row is the first of the last ones, how many threads take
// packets, and the places of axes, where values have any: those of rows are strides of `fold_numbers`.

// Set how many segments of how many elements the rows of a box have, of those that lie next to each other; return how many
// results it has, which are fewer in the last one.
template <int __length, int __axes>
GRIDSTRIDE_INLINED int begin_box(const fold_space<__axes>& __space, int __box, int __boxes, int __of_box, box_rows& __rows) {
    __rows.segment = int(__space.kept_numbers.step);
    int __results = __of_box, __segments = 1;
    if (__box + 1 == __boxes) {
        __results = int(__space.kept.count) - __box * __of_box;
        const int __all_elements = int(__space.width) / __of_box * __results;
        if (__all_elements < __rows.segment) __rows.segment = __all_elements;
        __segments = __all_elements / __rows.segment;
    } else if (__rows.segment < __space.width) {
        __segments = int(__space.width) / __rows.segment;
    }
    __rows.packets = __segments * ((__rows.segment + __length - 1) / __length);
    return __results;
}

// Move the inputs to where a result begins.
template <int __axes, class... __inputs>
GRIDSTRIDE_INLINED void go_to_result(const fold_space<__axes>& __space, unsigned __result, __inputs&... __all) {
#pragma unroll
    for (int __axis = 0; __axis < __axes; ++__axis) {
        if (__axis >= __space.kept.ndim) break;
        const unsigned __at = __axis + 1 < __space.kept.ndim ? remainder_of(__space.kept, __result, __axis) : __result;
        swallow((__all.base += __at * __all.source.kept_strides[__axis])...);
    }
}

// Set which rows a block has, a part of all.
template <int __axes>
GRIDSTRIDE_INLINED void begin_rows(const fold_space<__axes>& __space, box_rows& __rows) {
    __rows.first = int(blockIdx.y * __space.part);
    __rows.end = int(__rows.first + __space.part < __space.fold.count ? __rows.first + __space.part : __space.fold.count);
    __rows.last = larger(__rows.first, int(__space.position.strides[2]));  // a part may have nothing but last rows
    __rows.elements = __space.position.step < __rows.segment ? int(__space.position.step) : __rows.segment;
}

// Find the packets of a thread, so many apart; those that a row does not have are like the first.
template <int __length, bool __are_words, int __wide, int __axes>
GRIDSTRIDE_INLINED void find_packet(const fold_space<__axes>& __space, const box_rows& __rows, box_packet (&__own)[__wide], int __w, int __packet) {
    unsigned __segment = __packet;
    const bool __is_inside = int(__segment) < __rows.packets;
    __own[__w].within = int(remainder_of(__space.fold, __segment, 0)) * __length;
    // The last packet of a segment begins so early that it is whole.
    if (!__are_words && __rows.segment >= __length && __own[__w].within + __length > __rows.segment)
        __own[__w].within = __rows.segment - __length;
    __own[__w].element = __segment * int(__space.fold_numbers.step) + __own[__w].within;
    __own[__w].column = __segment * __rows.segment + __own[__w].within;
    if (!__is_inside) __own[__w] = __own[0];
}

template <bool __are_bytes, bool __are_placed, int __length, int __wide, int __high, bool __are_words, int __row_axes, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_rows_of_boxes(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                           const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                           box_input<__operands, __length, __high * __wide, __are_words>&&... __all) {
    typedef columns_of_box<__are_bytes, __length, __folding, __reduce, __operands...> __columns_type;
    typedef typename __columns_type::value __value;
    const int __of_box = int(__space.position.strides[0]), __boxes = int(__space.position.strides[1]), __apart = int(__space.position.strides[3]);
    int __outer = 0, __box = blockIdx.x;
    if (__boxes < int(gridDim.x)) __outer = __box / __boxes, __box -= __outer * __boxes;
    const int __first_result = __outer * int(__space.kept.count) + __box * __of_box;
    box_rows __rows;
    const int __results = begin_box<__length>(__space, __box, __boxes, __of_box, __rows);
    go_to_result(__space, unsigned(__first_result), __all...);
    begin_rows(__space, __rows);
    __value* __table = reinterpret_cast<__value*>(__shared);
    const int __row_place = __are_placed ? int(__space.fold_numbers.strides[1]) : 0;
    const int __elements = __rows.first < __rows.last ? __rows.segment : __rows.elements;  // of a segment of the first row
#pragma unroll 1
    for (int __packet = threadIdx.x; int(threadIdx.x) < __apart && __packet < __rows.packets; __packet += __wide * __apart) {
        typename __columns_type::type __sums[__wide];
        box_packet __own[__wide];
#pragma unroll
        for (int __w = 0; __w < __wide; ++__w) {
            __sums[__w].begin(__start);
            find_packet<__length, __are_words>(__space, __rows, __own, __w, __packet + __w * __apart);
        }
        add_boxes<__length, __wide, __high, __row_axes>(__do_map, __do, __sums, __space, __rows, __own, __all...);
        if (__are_placed) go_to_box<__row_axes>(__space, __rows.first, __all...);
#pragma unroll
        for (int __w = 0; __w < __wide; ++__w)
            if (__packet + __w * __apart < __rows.packets) {
                if (__are_placed) swallow(__sums[__w].fill(__all.at(__own[__w].element), __elements - __own[__w].within)...);
#pragma unroll
                for (int __j = 0; __j < __length; ++__j)
                    __table[__are_words ? between_gaps(__own[__w].column) + __j : between_gaps(__own[__w].column + __j)] =
                        __sums[__w].value(__j, __row_place);
            }
    }
    __syncthreads();
    fold_box<__are_placed, __row_axes>(__do, __do_finish, __start, __space, __first_result, __results, __table,
                                       static_cast<long long>(__rows.first) * __row_place);
}

// `__length`: elements of a packet, of all of which `__wide` are taken at once from `__high` rows. `__are_words`: whether
// they are words; `__kept`: bytes of what is kept of values that have places, or 0.
template <int __length, int __wide, int __high, bool __are_words, int __row_axes, int __kept = 0>
struct fold_boxes {
    template <class __folding, class... __inputs>
    static __device__ constexpr int shared_bytes() {
        constexpr int __values = box_values(__kept, larger(int(sizeof(typename __inputs::stored))...)), __bytes = __kept ? __kept : int(sizeof(__folding));
        return between_gaps(__values + 16) * (__values * __bytes > largest_box ? 4 : larger(4, __bytes));
    }
    template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
        constexpr bool __are_bytes = folds_bytes<__reduce, __operands...>::value && (__kept || __length % 4 == 0);
        fold_rows_of_boxes<__are_bytes, (__kept > 0), __length, __wide, __high, __are_words, __row_axes>(
            __do_map, __do, __do_finish, __start, __space, __shared, box_input<__operands, __length, __high * __wide, __are_words>(__inputs)...);
    }
};

}

#endif
