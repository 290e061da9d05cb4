// `boxes`: a loop over elements of boxes of permuted axes, in which outputs, and turned inputs, lie in a few long runs.
//
// A box has an extent along each axis. Order x is that of the outputs, order y that of the turned inputs; in either, the box
// is so many runs of consecutive elements. Which element of order y is where in order x is the same for all boxes: a table in
// shared memory says so, which a block makes while its box is on its way there. A block does one box, so that neighboring
// blocks are at neighboring boxes. Elements of less than four bytes come from as many boxes at once as a word has elements,
// its layers: those at the same place of each become neighbors in shared memory, a cell, and words of cells are turned into
// words of layers.
#ifndef GRIDSTRIDE_BOXES_H
#define GRIDSTRIDE_BOXES_H

#include <gridstride/boxed.h>

namespace gridstride {

// Take the elements that are in no word that all layers have: at the ends of runs a thread one of each layer, and of a run
// that only some layers have, a warp.
template <int __layers, int __size, int __axes, class __body>
GRIDSTRIDE_INLINED void for_rest(const box_space<__axes>& __space, const box_part& __part, const char* __base, const long long* __offsets,
                                 const __body& __do) {
    constexpr int __ends = 2 * __layers;
    const box_lengths __least = __part.lengths(__space, __layers - 1);
#pragma unroll 1
    for (int __run = threadIdx.x / __ends; __run < __least.x_runs; __run += blockDim.x / __ends) {
        const words_of_run<__layers, __size> __words(__least.x_run, __base + __offsets[__run]);
        const int __k = threadIdx.x % __ends, __e = __k < __words.begin ? __k : __words.end + __k - __words.begin;
        if (__e >= __least.x_run) continue;
#pragma unroll
        for (int __f = 0; __f < __layers; ++__f) __do(__f, __run, __e);
    }
    if (__part.are_even) return;
    const int __end = __layers * __part.lengths(__space, 0).x_runs;
#pragma unroll 1
    for (int __n = threadIdx.x / 32; __n < __end; __n += blockDim.x / 32) {
        const int __f = __n % __layers, __run = __n / __layers;
        const box_lengths __own = __part.lengths(__space, __f);
        if (__run >= __own.x_runs) continue;
#pragma unroll 1
        for (int __e = (__run < __least.x_runs ? __least.x_run : 0) + threadIdx.x % 32; __e < __own.x_run; __e += 32)
            __do(__f, __run, __e);
    }
}

template <class __only>
GRIDSTRIDE_INLINED void store_boxed(int __from, int __layer, int __e, const __only& __last) { __last.store_word(__from, __layer, __e); }
template <class __first, class __second, class... __rest>
GRIDSTRIDE_INLINED void store_boxed(int __from, int __layer, int __e, const __first& __one, const __second& __next, const __rest&... __others) {
    __one.store(__from, __layer, __e);
    store_boxed(__from, __layer, __e, __next, __others...);
}

template <class __type> struct plain { typedef __type type; };
template <class __type> struct plain<const __type&> { typedef __type type; };

// The number of an element, at a place in order x.
template <int __axes>
GRIDSTRIDE_INLINED long long boxed_number(const box_space<__axes>& __space, long long __first, int __layer, int __x) {
    unsigned __rest = static_cast<unsigned>(__x);
    long long __number = __first + __layer * __space.distance * __space.numbers.strides[0];
#pragma unroll 1
    for (int __k = 0; __k < __space.box.ndim; ++__k)
        __number += remainder_of(__space.box, __rest, __k) * __space.numbers.strides[__space.x_way[__k]];
    return __number;
}

// Go to where boxes begin along the first axis of the way, and see how far the part goes.
template <int __axes, class... __boxed>
GRIDSTRIDE_INLINED void begin_way(const box_space<__axes>& __space, box_part& __part, unsigned __rest, __boxed&... __all) {
    __part.number = 0;
    __part.x_cut = __part.y_cut = 1;
#pragma unroll
    for (int __k = 1; __k < __axes; ++__k) {
        if (__k >= __space.ways) break;
        const int __extent = __space.extent[__k], __at = int(remainder_of(__space.boxes_along, __rest, __k)) * __extent;
        const int __left = __space.length[__k] - __at;
        swallow(__all.move(__k, __at)...);
        __part.number += __at * __space.numbers.strides[__k];
        if (__k == __space.x.cut) __part.x_cut = __left < __extent ? __left : __extent;
        if (__k == __space.y.cut) __part.y_cut = __left < __extent ? __left : __extent;
    }
}

// Do so many words of the run at which all operands stand.
template <int __layers, int __count, class __operation, int __axes, class... __boxed>
GRIDSTRIDE_INLINED void do_words(const __operation& __do, const box_space<__axes>& __space, long long __number,
                                 const unsigned short* __places, int __x, int __e, __boxed&... __all) {
    constexpr int __step = 32 * __layers;
    int __from[__count][__layers];
#pragma unroll
    for (int __u = 0; __u < __count; ++__u)
#pragma unroll
        for (int __j = 0; __j < __layers; ++__j) __from[__u][__j] = __places[__x + __e + __u * __step + __j];
#pragma unroll
    for (int __u = 0; __u < __count; ++__u)
#pragma unroll
        for (int __f = 0; __f < __layers; ++__f) swallow(__all.load(__u * __layers + __f, __f, __e + __u * __step)...);
#pragma unroll
    for (int __u = 0; __u < __count; ++__u) swallow(__all.pick(__u * __layers, __from[__u])...);
#pragma unroll
    for (int __u = 0; __u < __count; ++__u)
#pragma unroll
        for (int __f = 0; __f < __layers; ++__f) {
#pragma unroll
            for (int __j = 0; __j < __layers; ++__j)
                __do(boxed_number(__space, __number, __f, __x + __e + __u * __step + __j),
                     element<typename __boxed::operand>(__all.items[__u * __layers + __f].items[__j]).get()...);
            store_boxed(__u * __layers + __f, __f, __e + __u * __step, __all...);
        }
}

// Do a box, whose turned operands are in shared memory, a warp a piece of a run.
template <class __operation, int __axes, class... __boxed>
GRIDSTRIDE_INLINED void do_elements(const __operation& __do, const box_space<__axes>& __space, const box_part& __part, long long __number,
                                    const unsigned short* __places, __boxed&... __all) {
    constexpr int __at_once = box_words<1>::at_once;
    const auto& __last = last_of(__all...);
    typedef typename plain<decltype(last_of(__all...))>::type last;
    const box_lengths __lengths = __part.lengths(__space, 0);
#pragma unroll 1
    for (int __n = threadIdx.x / 32; __n < __lengths.x_runs * __space.x.pieces; __n += blockDim.x / 32) {
        int __piece = __n;
        const int __run = __space.x.run_of(__piece), __x = __run * __space.x.length;
        swallow(__all.stand_at(__run)...);
        const words_of_run<1, last::size> __words(__lengths.x_run, __last.here);
        const int __end = __words.last_of(__space.x, __piece), __first = __words.first_of(__space.x, __piece);
        int __e = __first + int(threadIdx.x % 32);
        if (__first < 0) {
            if (__e >= 0 && __e < __end) do_words<1, 1>(__do, __space, __number, __places, __x, __e, __all...);
            __e += 32;
        }
#pragma unroll 1
        for (; __e + (__at_once - 1) * 32 < __end; __e += __at_once * 32)
            do_words<1, __at_once>(__do, __space, __number, __places, __x, __e, __all...);
#pragma unroll 1
        for (; __e < __end; __e += 32) do_words<1, 1>(__do, __space, __number, __places, __x, __e, __all...);
    }
}

// The same with words of all layers, a thread a word of each.
template <int __layers, class __operation, int __axes, class... __boxed>
GRIDSTRIDE_INLINED void do_layers(const __operation& __do, const box_space<__axes>& __space, const box_part& __part, long long __number,
                                  const unsigned short* __places, __boxed&... __all) {
    swallow(__all.form_cells(__space, __part)...);
    __syncthreads();
    const auto& __last = last_of(__all...);
    typedef typename plain<decltype(last_of(__all...))>::type last;
    const box_lengths __least = __part.lengths(__space, __layers - 1);
#pragma unroll 1
    for (int __n = threadIdx.x; __n < __least.x_runs * __space.x.pieces; __n += blockDim.x) {
        int __word = __n;
        const int __run = __space.x.run_of(__word);
        swallow(__all.stand_at(__run)...);
        const words_of_run<__layers, last::size> __words(__least.x_run, __last.here);
        const int __e = __words.begin + __word * __layers;
        if (__e < __words.end)
            do_words<__layers, 1>(__do, __space, __number, __places, __run * __space.x.length, __e, __all...);
    }
    for_rest<__layers, last::size>(__space, __part, __last.base, __last.runs, [&](int __layer, int __run, int __e) {
        const int __x = __run * __space.x.length + __e, __place = __places[__x];
        swallow(__all.stand_at(__run)...);
        __do(boxed_number(__space, __number, __layer, __x),
             element<typename __boxed::operand>(__all.in_place(__layer, __e, __place)).get()...);
    });
}

template <bool __have_layers> struct box_loop {
    template <int __layers, class... __arguments>
    static GRIDSTRIDE_INLINED void run(__arguments&... __all) { do_layers<__layers>(__all...); }
};
template <> struct box_loop<false> {
    template <int __layers, class... __arguments>
    static GRIDSTRIDE_INLINED void run(__arguments&... __all) { do_elements(__all...); }
};

// Write a table: for each element in order x what is said of the sum of its steps along the axes.
template <int __axes, class __step, class __said>
GRIDSTRIDE_INLINED void write_table(const box_space<__axes>& __space, unsigned short* __table, const __step& __step_along, const __said& __say) {
    const int __row = int(__space.box.length[0]), __step_of_row = __step_along(0);
#pragma unroll 1
    for (unsigned __k = threadIdx.x; __k < static_cast<unsigned>(__space.written); __k += blockDim.x) {
        unsigned __rest = (__umulhi(__k, __space.multiplier) + __k) >> __space.shift;
        const int __first = int(__k - __rest * __space.parts) * __space.part;
        const int __end = __row < __first + __space.part ? __row : __first + __space.part;
        unsigned short* const __to = __table + __rest * __row;
        int __sum = __first * __step_of_row;
#pragma unroll
        for (int __axis = 1; __axis < __axes; ++__axis) {
            if (__axis >= __space.box.ndim) break;
            __sum += int(remainder_of(__space.box, __rest, __axis)) * __step_along(__axis);
        }
#pragma unroll 4
        for (int __e = __first; __e < __end; ++__e, __sum += __step_of_row) __to[__e] = static_cast<unsigned short>(__say(__sum));
    }
}

// The table of where cells are, as `boxed::picked` takes them.
template <class __boxed, int __axes>
GRIDSTRIDE_INLINED void write_places(const box_space<__axes>& __space, unsigned short* __places) {
    write_table(__space, __places, [&](int __axis) { return __space.y_step[__axis]; }, [](int __y) { return __boxed::place(__y); });
}

// The table of where an operand is that repeats elements.
template <class __boxed, int __axes>
GRIDSTRIDE_INLINED int take_table(const box_space<__axes>& __space, unsigned short* __table, __boxed& __one) {
    __one.table = __table;
    if (__boxed::kind == repeated)
        write_table(
            __space, __table,
            [&](int __axis) { return int(__one.template stride_along<__axes>(__space.x_way[__axis])) / __boxed::size; },
            [](int __elements) { return __elements; });
    return 0;
}

template <int __layers, bool __has_table, class __operation, int __axes, class... __boxed>
GRIDSTRIDE_INLINED void run_boxes(const __operation& __do, const box_space<__axes>& __space, char* __shared, __boxed&&... __all) {
    unsigned short* const __places = reinterpret_cast<unsigned short*>(__shared);
    const int __table = (__space.elements + 7) / 8 * 8;
    __shared += (__has_table ? 4 : 2) * __table;
    swallow(__all.begin(__space, __shared)...);
    box_part __part;
    unsigned __rest = blockIdx.x;
    const int __at = int(remainder_of(__space.boxes_along, __rest, 0)), __distance = int(__space.distance);
    begin_way(__space, __part, __rest, __all...);
    const int __first = __layers == 1 ? __at * __space.extent[0]
                                      : (__at >> __space.between) * __layers * __distance +
                                            (__at & ((1 << __space.between) - 1)) * __space.extent[0];
    __part.left = __space.length[0] - __first;
    __part.are_even = __layers == 1 || __part.left >= (__layers - 1) * __distance + __space.extent[0];
    swallow(__all.move(0, __first)...);
    __syncthreads();
    swallow(__all.bring(__space, __part)...);
    write_places<typename plain<decltype(last_of(__all...))>::type>(__space, __places);
    if (__has_table) swallow(take_table(__space, __places + __table, __all)...);
    await_words();
    const long long __number = __part.number + __first * __space.numbers.strides[0];
    box_loop<(__layers > 1)>::template run<__layers>(__do, __space, __part, __number, __places, __all...);
}

// Kinds: how each operand lies.
template <int __layers, int __gap, int __squares, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void boxes(const __operation& __do, const box_space<__axes>& __space, char* __shared, const __operands&... __all) {
    run_boxes<__layers, (larger(__kinds...) >= repeated)>(__do, __space, __shared, boxed<__operands, __layers, __gap, __squares, __kinds>(__all)...);
}

}

#endif
