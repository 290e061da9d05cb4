// `boxes`: a loop over elements of boxes of permuted axes, in which outputs, and turned inputs, lie in a few long runs.
//
// A box has an extent along each axis. Order x is that of the outputs, order y that of the turned inputs; in either, the box
// is so many runs of consecutive elements. Which element of order y is where in order x is the same for all boxes: a table in
// shared memory says so, which a block makes once for all of its boxes. Elements of less than four bytes come from as many
// boxes at once as a word has elements, its layers: those at the same place of each are neighbors in shared memory, a cell,
// and words of cells are turned into words of layers.
#ifndef GRIDSTRIDE_BOXES_H
#define GRIDSTRIDE_BOXES_H

#include <gridstride/async_words.h>
#include <gridstride/word_squares.h>

namespace gridstride {

constexpr int in_order_x = 0, in_order_y = 1;

// The runs of a box in one order. Along axis `cut`, the last that runs have, boxes may end before their extent. A warp takes
// pieces of runs.
struct box_runs {
    int unit;   // elements for a step along `cut`
    int rows;   // runs for a step along the other order's `cut`, where that is another axis
    int cut, axes;
    int length;         // of a run of a whole box
    int pieces, piece;  // of a run; words of one
    unsigned multiplier, shift;  // to divide by `pieces`
    GRIDSTRIDE_INLINED int run_of(int& __piece) const {
        const unsigned __n = static_cast<unsigned>(__piece), __run = (__umulhi(__n, multiplier) + __n) >> shift;
        __piece = int(__n - __run * pieces);
        return int(__run);
    }
};

// Boxes follow each other along the axes `way`, of which the first `ways` have several boxes; layers along the first one.
template <int __axes>
struct box_space {
    long long size;      // of all elements
    long long distance;  // from a layer to the next
    int between;         // the logarithm of how many boxes there are from a layer to the next
    int boxes, each;     // of all layers; that a block does
    int ways, elements, unused;  // elements: of a whole box
    box_runs x, y;
    int length[__axes], extent[__axes];  // along the way
    int y_step[__axes];                  // from an element to the next one in order y, for the axes in order x
    int x_way[__axes], y_way[__axes];    // where the axes in order x, and in order y, are on the way
    axes<__axes> box, y_box, boxes_along;  // extents in order x and in order y; boxes along the way
    numbering<__axes> numbers;             // along the way
};

// How long the runs of a box are, and how many.
struct box_lengths { int x_run, x_runs, y_run, y_runs; };

// A box in each layer. Later layers have no more of it.
struct box_part {
    long long number;  // of its first element
    int x_cut, y_cut;  // how long it is along the axes at which runs end
    int left;          // from where it begins along the first axis of the way
    bool are_even;     // whether all layers have the same of it

    template <int __axes>
    GRIDSTRIDE_INLINED box_lengths lengths(const box_space<__axes>& __space, int __layer) const {
        const int __rest = left - __layer * int(__space.distance), __extent = __space.extent[0];
        const int __along = __rest < 0 ? 0 : __rest < __extent ? __rest : __extent, __some = __rest > 0;
        const int __x = __space.x.cut == 0 ? __along : x_cut, __y = __space.y.cut == 0 ? __along : y_cut;
        const bool __are_one = __space.x.cut == __space.y.cut;
        return box_lengths{__space.x.unit * __x, __some * __space.x.rows * (__are_one ? 1 : __y), __space.y.unit * __y,
                           __some * __space.y.rows * (__are_one ? 1 : __x)};
    }
};

// Where the words of a run are that all layers have, and how many before them a line of the cache begins.
template <int __layers, int __size>
struct words_of_run {
    int begin, end, before;
    GRIDSTRIDE_INLINED words_of_run(int __length, const char* __run) {
        const unsigned __at = static_cast<unsigned>(reinterpret_cast<unsigned long long>(__run)) / __size;
        begin = __layers == 1 ? 0 : (__layers - int(__at % __layers)) % __layers;
        begin = begin < __length ? begin : __length;
        end = begin + (__length - begin) / __layers * __layers;
        before = int((__at + begin) / __layers % line);
    }
    static constexpr int line = 128 / (__layers * __size) < 32 ? 128 / (__layers * __size) : 32;
    // The first element of a thread in a piece, or the last one; pieces begin where the line does.
    GRIDSTRIDE_INLINED int first_of(const box_runs& __runs, int __piece) const { return begin + (__piece * __runs.piece - before) * __layers; }
    GRIDSTRIDE_INLINED int last_of(const box_runs& __runs, int __piece) const {
        const int __stop = first_of(__runs, __piece + 1);
        return __stop < end ? __stop : end;
    }
};

// Cells, which are elements of all layers, and as many words of layers, of four or eight bytes.
template <class __stored, int __layers, bool = __layers != 1 && sizeof(__stored) < 4 && (sizeof(__stored) * __layers) % 4 == 0>
struct layers_of {
    typedef typename whole<__layers, __stored>::type cell;
    static GRIDSTRIDE_INLINED void turn(cell (&__cells)[__layers]) {
        constexpr int __square = 4 / sizeof(__stored), __words = __layers / __square;
        unsigned __from[__layers][__words], __to[__layers][__words];
        memcpy(__from, __cells, sizeof(__from));
#pragma unroll
        for (int __a = 0; __a < __words; ++__a)
#pragma unroll
            for (int __b = 0; __b < __words; ++__b) {
                unsigned __some[__square];
#pragma unroll
                for (int __j = 0; __j < __square; ++__j) __some[__j] = __from[__a * __square + __j][__b];
                turn_words(__some);
#pragma unroll
                for (int __j = 0; __j < __square; ++__j) __to[__b * __square + __j][__a] = __some[__j];
            }
        memcpy(__cells, __to, sizeof(__to));
    }
};
template <class __stored, int __layers>
struct layers_of<__stored, __layers, false> {
    typedef typename whole<__layers, __stored>::type cell;
    static GRIDSTRIDE_INLINED void turn(cell (&__cells)[__layers]) {
        packet<__stored, __layers> __from[__layers], __to[__layers];
#pragma unroll
        for (int __j = 0; __j < __layers; ++__j) whole<__layers, __stored>::unpack(__from[__j], __cells[__j]);
#pragma unroll
        for (int __j = 0; __j < __layers; ++__j)
#pragma unroll
            for (int __k = 0; __k < __layers; ++__k) copy(__to[__k].items[__j], __from[__j].items[__k]);
#pragma unroll
        for (int __j = 0; __j < __layers; ++__j) __cells[__j] = whole<__layers, __stored>::packed(__to[__j]);
    }
};

// Take the elements that are in no word that all layers have: a thread for one at the ends of runs, and a warp for a run that
// only some layers have.
template <int __layers, int __size, int __axes, class __body>
GRIDSTRIDE_INLINED void for_rest(const box_space<__axes>& __space, const box_part& __part, const char* __base, const long long* __offsets,
                                 const __body& __do) {
    if (__layers == 1) return;
    const box_lengths __least = __part.lengths(__space, __layers - 1);
#pragma unroll 1
    for (int __trip = 0; __trip < (__part.are_even ? 1 : 2); ++__trip) {
        const int __together = __trip ? 32 : 2 * __layers;
        const int __end = __layers * (__trip ? __part.lengths(__space, 0).x_runs : __least.x_runs);
#pragma unroll 1
        for (int __n = threadIdx.x / __together; __n < __end; __n += blockDim.x / __together) {
            const int __f = __n % __layers, __run = __n / __layers;
            const words_of_run<__layers, __size> __words(__least.x_run, __base + __offsets[__run]);
            int __head = __words.begin, __begin = __words.end, __stop = __least.x_run;
            if (__trip) {
                const box_lengths __own = __part.lengths(__space, __f);
                __head = 0;
                __begin = __run < __least.x_runs ? __least.x_run : 0;
                __stop = __run < __own.x_runs ? __own.x_run : __begin;
            }
            const int __count = __head + __stop - __begin;
#pragma unroll 1
            for (int __k = threadIdx.x % __together; __k < __count; __k += __together)
                __do(__f, __run, __k < __head ? __k : __begin + __k - __head);
        }
    }
}

// Words that a thread does at once, and bytes of what it holds of them.
template <int __layers>
struct box_words { static constexpr int at_once = __layers == 1 ? 4 : 1, items = at_once * __layers; };

// What a thread holds of an operand. Gap: cells after which one is left out.
template <class __operand, int __layers, int __gap, int __kind>
struct boxed {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef layers_of<stored, __layers> squares;
    typedef typename squares::cell cell;
    static constexpr int size = sizeof(stored), banks = 128, largest_cell = banks / __gap;
    static constexpr bool is_turned = __kind == in_order_y;

    const __operand& source;
    char *origin, *base;  // where boxes begin along the first axis, and the first layer's box
    long long apart;  // layers
    long long* runs;  // where they begin
    char* here;       // the run at which it stands
    char* waiting;
    packet<stored, __layers> items[box_words<__layers>::items];

    GRIDSTRIDE_INLINED boxed(const __operand& __source) : source(__source) {}
    template <int __axes>
    GRIDSTRIDE_INLINED int begin(const box_space<__axes>& __space, char*& __shared) {
        apart = __space.distance * source.strides[0];
        const int __elements = __space.elements;
        runs = reinterpret_cast<long long*>(__shared);
        __shared += (__elements / (is_turned ? __space.y.length : __space.x.length) + 1) / 2 * 16;
        waiting = __shared;
        if (is_turned) __shared += ((__elements + __elements / __gap + 1) * int(sizeof(cell)) + 15) / 16 * 16;
#pragma unroll 1
        for (int __run = threadIdx.x; __run < __elements / (is_turned ? __space.y.length : __space.x.length); __run += blockDim.x) {
            unsigned __rest = static_cast<unsigned>(__run);
            long long __offset = 0;
#pragma unroll 1
            for (int __k = is_turned ? __space.y.axes : __space.x.axes; __k < __space.box.ndim; ++__k)
                __offset += remainder_of(is_turned ? __space.y_box : __space.box, __rest, __k) *
                            source.strides[is_turned ? __space.y_way[__k] : __space.x_way[__k]];
            runs[__run] = __offset;
        }
        return 0;
    }
    // Go to where boxes begin along the first axis, and to one of them.
    GRIDSTRIDE_INLINED int begin_way() {
        origin = source.data;
        return 0;
    }
    GRIDSTRIDE_INLINED int move(int __axis, int __steps) {
        origin += __steps * source.strides[__axis];
        return 0;
    }
    GRIDSTRIDE_INLINED int stand(int __steps) {
        base = origin + __steps * source.strides[0];
        return 0;
    }
    static GRIDSTRIDE_INLINED int place(int __y) { return __y + static_cast<unsigned>(__y) / __gap; }
    GRIDSTRIDE_INLINED int stand_at(int __run) {
        if (!is_turned) here = base + runs[__run];
        return 0;
    }
    template <int __axes>
    GRIDSTRIDE_INLINED int bring(const box_space<__axes>& __space, const box_part& __part) const {
        if (!is_turned) return 0;
        const box_lengths __first = __part.lengths(__space, 0);
        if (__layers == 1) bring_elements(__space.y, __first);
        else if (__part.are_even) bring_words<false>(__space, __part, __first);
        else bring_words<true>(__space, __part, __first);
        return 0;
    }
    // Bring elements as they lie, a warp a piece of a run.
    GRIDSTRIDE_INLINED void bring_elements(const box_runs& __y, const box_lengths& __lengths) const {
        constexpr int __at_once = 4, __word = size < 4 ? 4 : size;
#pragma unroll 1
        for (int __n = threadIdx.x / 32; __n < __lengths.y_runs * __y.pieces; __n += blockDim.x / 32) {
            int __piece = __n;
            const int __run = __y.run_of(__piece);
            const char* __from = base + runs[__run];
            const words_of_run<__layers, size> __words(__lengths.y_run, __from);
            const int __end = __words.last_of(__y, __piece), __first = __words.first_of(__y, __piece);
            int __e = __first + threadIdx.x % 32;
            __from += __e * size;
            char* __to = waiting + place(__run * __y.length + __e) * size;
            if (__first < 0) {
                if (__e >= 0 && __e < __end) bring_word<__word>(__to, __from);
                __e += 32;
                __from += 32 * size;
                __to = waiting + place(__run * __y.length + __e) * size;
            }
#pragma unroll 1
            for (; __e + (__at_once - 1) * 32 < __end; __e += __at_once * 32) {
#pragma unroll
                for (int __u = 0; __u < __at_once; ++__u) bring_word<__word>(__to + __u * beyond, __from + __u * 32 * size);
                __from += __at_once * 32 * size;
                __to += __at_once * beyond;
            }
#pragma unroll 1
            for (; __e < __end; __e += 32, __from += 32 * size, __to += beyond) bring_word<__word>(__to, __from);
        }
    }
    static constexpr int beyond = (32 + 32 / __gap) * size;  // to the cell of the 32nd element from here
    // Bring words of all layers, and turn them. The first and the last of a run have elements that are none of it.
    template <bool __may_end, int __axes>
    GRIDSTRIDE_INLINED void bring_words(const box_space<__axes>& __space, const box_part& __part, const box_lengths& __lengths) const {
        constexpr int __at_once = 8 / __layers;
        const int __length = __lengths.y_run, __count = __lengths.y_runs * __space.y.pieces;
#pragma unroll 1
        for (int __n = threadIdx.x; __n < __count; __n += __at_once * blockDim.x) {
            cell __words[__at_once][__layers];
            int __first[__at_once], __start[__at_once];
#pragma unroll
            for (int __u = 0; __u < __at_once; ++__u) {
                int __word = __n + __u * blockDim.x;
                const int __run = __space.y.run_of(__word);
                __first[__u] = __length;
                __start[__u] = __run * __space.y.length;
                if (__run >= __lengths.y_runs) continue;
                const char* const __from = base + runs[__run];
                __first[__u] = __word * __layers - int(static_cast<unsigned>(reinterpret_cast<unsigned long long>(__from)) / size % __layers);
                const char* const __at = __from + __first[__u] * size;
#pragma unroll
                for (int __f = 0; __f < __layers; ++__f) {
                    const box_lengths __own = __may_end ? __part.lengths(__space, __f) : __lengths;
                    if (__first[__u] < __own.y_run && (!__may_end || __run < __own.y_runs))
                        __words[__u][__f] = *reinterpret_cast<const cell*>(__at + __f * apart);
                }
            }
#pragma unroll
            for (int __u = 0; __u < __at_once; ++__u) {
                squares::turn(__words[__u]);
                const int __to = __start[__u] + __first[__u];
                if (__first[__u] >= 0 && __first[__u] + __layers <= __length) {
#pragma unroll
                    for (int __j = 0; __j < __layers; ++__j)
                        *reinterpret_cast<cell*>(waiting + place(__to + __j) * int(sizeof(cell))) = __words[__u][__j];
                } else {
#pragma unroll
                    for (int __j = 0; __j < __layers; ++__j)
                        if (__first[__u] + __j >= 0 && __first[__u] + __j < __length)
                            *reinterpret_cast<cell*>(waiting + place(__to + __j) * int(sizeof(cell))) = __words[__u][__j];
                }
            }
        }
    }
    GRIDSTRIDE_INLINED char* at(int __layer, int __e) const { return here + __layer * apart + __e * size; }
    GRIDSTRIDE_INLINED char* picked(int __place) const { return waiting + static_cast<unsigned>(__place) * sizeof(cell) / (banks / __gap); }
    GRIDSTRIDE_INLINED stored& in_place(int __layer, int __e, int __place) const {
        return *(is_turned ? reinterpret_cast<stored*>(picked(__place)) + __layer : reinterpret_cast<stored*>(at(__layer, __e)));
    }
    // Take words from shared memory, or load one of them.
    GRIDSTRIDE_INLINED int pick(int __first, const int (&__from)[__layers]) {
        if (is_turned) pick_cells(__first, __from);
        return 0;
    }
    GRIDSTRIDE_INLINED void pick_cells(int __first, const int (&__from)[__layers]) {
        cell __cells[__layers];
#pragma unroll
        for (int __j = 0; __j < __layers; ++__j) __cells[__j] = *reinterpret_cast<const cell*>(picked(__from[__j]));
        squares::turn(__cells);
#pragma unroll
        for (int __f = 0; __f < __layers; ++__f) whole<__layers, stored>::unpack(items[__first + __f], __cells[__f]);
    }
    GRIDSTRIDE_INLINED int load(int __to, int __layer, int __e) {
        if (__operand::is_read && !is_turned) load_packet<__layers>(items[__to], at(__layer, __e), size, 0, __layers);
        return 0;
    }
    GRIDSTRIDE_INLINED void store(int __from, int __layer, int __e) const {
        if (__operand::is_written) store_packet<__layers>(items[__from], at(__layer, __e), size, 0, __layers);
    }
    // Of the last operand, by whose words the others go.
    GRIDSTRIDE_INLINED void store_word(int __from, int __layer, int __e) const {
        if (__operand::is_written) whole<__layers, stored>::store(items[__from], at(__layer, __e));
    }
};

template <class __only>
GRIDSTRIDE_INLINED void store_boxed(int __from, int __layer, int __e, const __only& __last) { __last.store_word(__from, __layer, __e); }
template <class __first, class __second, class... __rest>
GRIDSTRIDE_INLINED void store_boxed(int __from, int __layer, int __e, const __first& __one, const __second& __next, const __rest&... __others) {
    __one.store(__from, __layer, __e);
    store_boxed(__from, __layer, __e, __next, __others...);
}

template <class __only>
GRIDSTRIDE_INLINED const __only& last_boxed(const __only& __last) { return __last; }
template <class __first, class __second, class... __rest>
GRIDSTRIDE_INLINED const auto& last_boxed(const __first&, const __second& __next, const __rest&... __others) {
    return last_boxed(__next, __others...);
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

// Go to where boxes begin along the first axis of the way; return how many are walked one by one there.
template <int __axes, class... __boxed>
GRIDSTRIDE_INLINED void begin_way(const box_space<__axes>& __space, box_part& __part, unsigned __rest, __boxed&... __all) {
    __part.number = 0;
    __part.x_cut = __part.y_cut = 1;
    swallow(__all.begin_way()...);
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

// Do a box, whose turned operands are in shared memory.
template <int __layers, class __operation, int __axes, class... __boxed>
GRIDSTRIDE_INLINED void do_box(const __operation& __do, const box_space<__axes>& __space, const box_part& __part, long long __number,
                               const unsigned short* __places, __boxed&... __all) {
    constexpr int __at_once = box_words<__layers>::at_once, __step = 32 * __layers;
    const auto& __last = last_boxed(__all...);
    typedef typename plain<decltype(last_boxed(__all...))>::type last;
    const box_lengths __least = __part.lengths(__space, __layers - 1);
    const int __pieces = __least.x_runs * __space.x.pieces;
#pragma unroll 1
    for (int __n = threadIdx.x / 32; __n < __pieces; __n += blockDim.x / 32) {
        int __piece = __n;
        const int __run = __space.x.run_of(__piece), __x = __run * __space.x.length;
        swallow(__all.stand_at(__run)...);
        const words_of_run<__layers, last::size> __words(__least.x_run, __last.here);
        const int __end = __words.last_of(__space.x, __piece), __first = __words.first_of(__space.x, __piece);
        int __e = __first + int(threadIdx.x % 32) * __layers;
        if (__at_once > 1) {
            if (__first < __words.begin) {
                if (__e >= __words.begin && __e < __end)
                    do_words<__layers, 1>(__do, __space, __number, __places, __x, __e, __all...);
                __e += __step;
            }
#pragma unroll 1
            for (; __e + (__at_once - 1) * __step < __end; __e += __at_once * __step)
                do_words<__layers, __at_once>(__do, __space, __number, __places, __x, __e, __all...);
        }
#pragma unroll 1
        for (; __e < __end; __e += __step)
            if (__at_once > 1 || __e >= __words.begin) do_words<__layers, 1>(__do, __space, __number, __places, __x, __e, __all...);
    }
    for_rest<__layers, last::size>(__space, __part, __last.base, __last.runs, [&](int __layer, int __run, int __e) {
        const int __x = __run * __space.x.length + __e, __place = __places[__x];
        swallow(__all.stand_at(__run)...);
        __do(boxed_number(__space, __number, __layer, __x),
             element<typename __boxed::operand>(__all.in_place(__layer, __e, __place)).get()...);
    });
}

template <int __layers, class __operation, int __axes, class... __boxed>
GRIDSTRIDE_INLINED void run_boxes(const __operation& __do, const box_space<__axes>& __space, char* __shared, __boxed&&... __all) {
    unsigned short* const __places = reinterpret_cast<unsigned short*>(__shared);
    __shared += (__space.elements + 7) / 8 * 16;
    swallow(__all.begin(__space, __shared)...);
    const auto& __last = last_boxed(__all...);
    constexpr int __most = 32;  // places that a thread writes at once
    const int __row = int(__space.box.length[0]), __parts = (__row + __most - 1) / __most, __step = __space.y_step[0];
#pragma unroll 1
    for (int __k = threadIdx.x; __k < __space.elements / __row * __parts; __k += blockDim.x) {
        unsigned __rest = static_cast<unsigned>(__k / __parts);
        const int __first = __k % __parts * __most, __end = __row < __first + __most ? __row : __first + __most;
        unsigned short* const __to = __places + __rest * __row;
        int __y = __first * __step;
#pragma unroll
        for (int __axis = 1; __axis < __axes; ++__axis) {
            if (__axis >= __space.box.ndim) break;
            __y += int(remainder_of(__space.box, __rest, __axis)) * __space.y_step[__axis];
        }
#pragma unroll 4
        for (int __e = __first; __e < __end; ++__e, __y += __step)
            __to[__e] = static_cast<unsigned short>(__last.place(__y) * __last.largest_cell);
    }
    __syncthreads();
    box_part __part;
    const int __begin = blockIdx.x * __space.each, __end = __begin + __space.each;
#pragma unroll 1
    for (int __box = __begin; __box < __end && __box < __space.boxes; ++__box) {
        unsigned __rest = static_cast<unsigned>(__box);
        const int __at = int(remainder_of(__space.boxes_along, __rest, 0)), __distance = int(__space.distance);
        if (__box == __begin || __at == 0) begin_way(__space, __part, __rest, __all...);
        const int __first = __layers == 1 ? __at * __space.extent[0]
                                          : (__at >> __space.between) * __layers * __distance +
                                                (__at & ((1 << __space.between) - 1)) * __space.extent[0];
        __part.left = __space.length[0] - __first;
        __part.are_even = __layers == 1 || __part.left >= (__layers - 1) * __distance + __space.extent[0];
        swallow(__all.stand(__first)...);
        swallow(__all.bring(__space, __part)...);
        await_words();
        do_box<__layers>(__do, __space, __part, __part.number + __first * __space.numbers.strides[0], __places, __all...);
        __syncthreads();
    }
}

// Kinds: in which order each operand lies.
template <int __layers, int __gap, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void boxes(const __operation& __do, const box_space<__axes>& __space, char* __shared, const __operands&... __all) {
    run_boxes<__layers>(__do, __space, __shared, boxed<__operands, __layers, __gap, __kinds>(__all)...);
}

}

#endif
