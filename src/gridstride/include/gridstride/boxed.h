// What a thread of the loop over boxes (see boxes.h) holds of an operand: runs in memory, or cells in shared memory.
#ifndef GRIDSTRIDE_BOXED_H
#define GRIDSTRIDE_BOXED_H

#include <gridstride/async_words.h>
#include <gridstride/box_layers.h>
#include <gridstride/box_space.h>

namespace gridstride {

constexpr int in_order_x = 0, in_order_y = 1;

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
    long long apart;  // from a layer to the next
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

}

#endif
