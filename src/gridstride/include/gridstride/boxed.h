// What a thread of the loop over boxes (see boxes.h) holds of an operand: runs in memory, or cells in shared memory.
#ifndef GRIDSTRIDE_BOXED_H
#define GRIDSTRIDE_BOXED_H

#include <gridstride/async_words.h>
#include <gridstride/box_layers.h>
#include <gridstride/box_space.h>

namespace gridstride {

// How an operand lies: in the order of outputs, or in the other; or it repeats elements, of which a table says where they
// are: the one that writes the table, and others that lie as it does.
constexpr int in_order_x = 0, in_order_y = 1, repeated = 2, repeated_alike = 3;

// Words that a thread does at once, and bytes of what it holds of them.
template <int __layers>
struct box_words { static constexpr int at_once = __layers == 1 ? 4 : 1, items = at_once * __layers; };

// What a thread holds of an operand. Gap: cells after which one is left out. Squares: that it turns at once.
template <class __operand, int __layers, int __gap, int __squares, int __kind>
struct boxed {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef layers_of<stored, __layers> squares;
    typedef typename squares::cell cell;
    static constexpr int size = sizeof(stored), kind = __kind;
    static constexpr bool is_turned = __kind == in_order_y, is_repeated = __kind >= repeated;

    const __operand& source;
    char* base;       // the first layer's box
    long long apart;  // from a layer to the next
    long long* runs;  // where they begin
    char* here;       // the run at which it stands
    char* waiting;  // cells, and before them the runs of layers as they lie in memory
    const unsigned short* table;     // for each element in order x the element of one that repeats them
    const unsigned short* repeats;   // the part of the run at which it stands
    int run_length;
    packet<stored, __layers> items[box_words<__layers>::items];

    GRIDSTRIDE_INLINED boxed(const __operand& __source) : source(__source), base(__source.data) {}
    template <int __axes>
    GRIDSTRIDE_INLINED int begin(const box_space<__axes>& __space, char*& __shared) {
        apart = __space.distance * source.strides[0];
        run_length = __space.x.length;
        if (is_repeated) return 0;
        const int __elements = __space.elements, __runs = is_turned ? __space.y.runs : __space.x.runs;
        runs = reinterpret_cast<long long*>(__shared);
        __shared += (__runs + 1) / 2 * 16;
        waiting = __shared;
        if (is_turned)
            __shared += larger(((__elements + __elements / __gap + 1) * int(sizeof(cell)) + 15) / 16 * 16,
                               __layers > 1 ? __runs * __layers * bytes_of_run(__space) : 0);
#pragma unroll 1
        for (int __run = is_turned ? threadIdx.x : blockDim.x - 1 - threadIdx.x; __run < __runs; __run += blockDim.x) {
            unsigned __rest = static_cast<unsigned>(__run);
            long long __offset = 0;
#pragma unroll 1
            for (int __k = is_turned ? __space.y.axes : __space.x.axes; __k < __space.box.ndim; ++__k)
                __offset += remainder_of(is_turned ? __space.y_box : __space.box, __rest, __k) *
                            stride_along<__axes>(is_turned ? __space.y_way[__k] : __space.x_way[__k]);
            runs[__run] = __offset;
        }
        return 0;
    }
    // Chosen among registers: an index that is not known when a kernel is compiled would put the operand on the stack.
    template <int __axes>
    GRIDSTRIDE_INLINED long long stride_along(int __axis) const {
        long long __stride = source.strides[0];
#pragma unroll
        for (int __k = 1; __k < __axes; ++__k) __stride = __axis == __k ? source.strides[__k] : __stride;
        return __stride;
    }
    GRIDSTRIDE_INLINED int move(int __axis, int __steps) {
        base += __steps * source.strides[__axis];
        return 0;
    }
    static GRIDSTRIDE_INLINED int place(int __y) { return __y + static_cast<unsigned>(__y) / __gap; }
    GRIDSTRIDE_INLINED int stand_at(int __run) {
        if (is_repeated) repeats = table + __run * run_length;
        else if (!is_turned) here = base + runs[__run];
        return 0;
    }
    template <int __axes>
    GRIDSTRIDE_INLINED int bring(const box_space<__axes>& __space, const box_part& __part) const {
        if (!is_turned) return 0;
        const box_lengths __first = __part.lengths(__space, 0);
        if (__layers == 1) bring_elements(__space.y, __first);
        else bring_runs(__space, __part, __first);
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
    // Bring all words of 16 bytes that the runs of layers touch, neighboring threads those of a run.
    template <int __axes>
    GRIDSTRIDE_INLINED void bring_runs(const box_space<__axes>& __space, const box_part& __part, const box_lengths& __first) const {
        constexpr int __at_once = 4;
        const int __bytes = bytes_of_run(__space), __together = 1 << __space.together;
#pragma unroll 1
        for (int __n = threadIdx.x >> __space.together; __n < __first.y_runs * __layers; __n += blockDim.x >> __space.together) {
            const int __f = __n % __layers, __run = __n / __layers;
            int __length = __first.y_run;
            if (!__part.are_even) {
                const box_lengths __own = __part.lengths(__space, __f);
                __length = __run < __own.y_runs ? __own.y_run : 0;
            }
            const char* __from = base + runs[__run] + __f * apart;
            const int __skipped = beyond_word(__from), __end = __length ? __skipped + __length * size : 0;
            __from -= __skipped;
            char* __to = waiting + __n * __bytes;
            const int __own = threadIdx.x % __together * 16, __step = __together * 16;
            __from += __own;
            __to += __own;
#pragma unroll 1
            for (int __left = __end - __own; __left > 0; __left -= __at_once * __step)
#pragma unroll
                for (int __u = 0; __u < __at_once; ++__u, __from += __step, __to += __step)
                    if (__u * __step < __left) bring_word<16>(__to, __from);
        }
    }
    // Turn words of all layers into cells, which then lie where the words did. The first and the last of a run have elements
    // that are none of it.
    template <int __axes>
    GRIDSTRIDE_INLINED int form_cells(const box_space<__axes>& __space, const box_part& __part) const {
        if (!is_turned) return 0;
        const box_lengths __lengths = __part.lengths(__space, 0);
        const int __bytes = bytes_of_run(__space), __length = __lengths.y_run, __count = __lengths.y_runs * __space.y.pieces;
        // At so many places of 16 bytes layers may begin, one after another.
        constexpr int __places = 16 / int(sizeof(cell)) < __layers ? 16 / int(sizeof(cell)) : __layers;
        cell __words[__squares][__layers];
        int __first[__squares], __to[__squares];
#pragma unroll
        for (int __k = 0; __k < __squares; ++__k) {
            int __word = threadIdx.x + __k * blockDim.x;
            __first[__k] = __length;
            if (__word >= __count) continue;
            const int __run = __space.y.run_of(__word);
            const unsigned __begin = static_cast<unsigned>(reinterpret_cast<unsigned long long>(base)) + static_cast<unsigned>(runs[__run]);
            const int __e = __word * __layers - int(__begin / size % __layers);
            if (__e >= __length) continue;
            const char* const __from = waiting + __run * __layers * __bytes + __e * size;
            const char* __layer[__places];
#pragma unroll
            for (int __f = 0; __f < __places; ++__f) __layer[__f] = __from + int((__begin + __f * static_cast<unsigned>(apart)) % 16);
#pragma unroll
            for (int __f = 0; __f < __layers; ++__f)
                __words[__k][__f] = *reinterpret_cast<const cell*>(__layer[__f % __places] + __f * __bytes);
            squares::turn(__words[__k]);
            __first[__k] = __e;
            __to[__k] = __run * __space.y.length + __e;
        }
        __syncthreads();
#pragma unroll
        for (int __k = 0; __k < __squares; ++__k) {
            if (__first[__k] >= 0 && __first[__k] + __layers <= __length) {
#pragma unroll
                for (int __j = 0; __j < __layers; ++__j) *cell_at(__to[__k] + __j) = __words[__k][__j];
            } else {
#pragma unroll
                for (int __j = 0; __j < __layers; ++__j)
                    if (__first[__k] + __j >= 0 && __first[__k] + __j < __length) *cell_at(__to[__k] + __j) = __words[__k][__j];
            }
        }
        return 0;
    }
    GRIDSTRIDE_INLINED cell* cell_at(int __y) const { return reinterpret_cast<cell*>(waiting) + place(__y); }
    static GRIDSTRIDE_INLINED int beyond_word(const char* __at) { return int(bytes_past<16>(__at)); }
    template <int __axes>
    static GRIDSTRIDE_INLINED int bytes_of_run(const box_space<__axes>& __space) { return (__space.y.length * size + 30) / 16 * 16; }
    GRIDSTRIDE_INLINED char* at(int __layer, int __e) const { return here + __layer * apart + __e * size; }
    GRIDSTRIDE_INLINED char* picked(int __place) const { return waiting + __place * int(sizeof(cell)); }
    GRIDSTRIDE_INLINED stored& repeated_at(int __layer, int __e) const {
        return *reinterpret_cast<stored*>(base + __layer * apart + repeats[__e] * size);
    }
    GRIDSTRIDE_INLINED stored& in_place(int __layer, int __e, int __place) const {
        if (is_repeated) return repeated_at(__layer, __e);
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
        // They are taken apart for the body anyway, so words of layers need not be made of them.
#pragma unroll
        for (int __j = 0; __j < __layers; ++__j) {
            packet<stored, __layers> __across;
            whole<__layers, stored>::unpack(__across, __cells[__j]);
#pragma unroll
            for (int __f = 0; __f < __layers; ++__f) copy(items[__first + __f].items[__j], __across.items[__f]);
        }
    }
    GRIDSTRIDE_INLINED int load(int __to, int __layer, int __e) {
        if (is_repeated)
#pragma unroll
            for (int __j = 0; __j < __layers; ++__j) copy(items[__to].items[__j], repeated_at(__layer, __e + __j));
        else if (__operand::is_read && !is_turned) load_packet<__layers>(items[__to], at(__layer, __e), size, 0, __layers);
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

}

#endif
