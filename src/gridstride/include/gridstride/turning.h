// What `tiles` and `strips` share: loops over elements in which operands that lie along another axis than the others are
// turned in shared memory.
//
// A block has a part of a plane with sides `x` and `y`. Packets are taken along x. An operand that is turned lies along y:
// it waits in shared memory of its own, into which it is brought first, or from which it is taken last. Each side is one
// axis of the walk or two of which the inner one is short. In `element_space`, `row` and `column` are the lengths of the
// sides, `width` is the length of a part along x where the loop does not know it, and `height` says whether parts are
// shifted. `outer` has the numbers of parts along each side, the lengths of the sides' inner axes, and then the axes that
// are walked one by one. An operand's strides are `step` along the inner axis of x, `strides[0]` along that of y,
// `strides[1]` and `strides[2]` along the outer ones; `strides[3]` says whether it is turned.
//
// Where rows of the last operand begin between two words, parts are shifted: each row of a part begins so many elements
// before it, its phase, that packets of the last operand are words.
#ifndef GRIDSTRIDE_TURNING_H
#define GRIDSTRIDE_TURNING_H

#include <gridstride/packets.h>

namespace gridstride {

constexpr int turning_threads = 256;

// One side of the plane: how far an index along it leads.
template <bool __is_split>
struct plane_side {
    long long length;
    int inner;  // length of its inner axis, where it has two
    unsigned multiplier, shift;

    template <int __axes>
    GRIDSTRIDE_INLINED plane_side(const element_space<__axes>& __space, long long __length, int __axis)
        : length(__length), inner(int(__space.outer.length[__axis])),
          multiplier(__space.outer.multiplier[__axis]), shift(__space.outer.shift[__axis]) {}
    GRIDSTRIDE_INLINED plane_side() : length(0), inner(0), multiplier(0), shift(0) {}
    GRIDSTRIDE_INLINED long long offset(long long __index, long long __inner_stride, long long __outer_stride) const {
        if (!__is_split) return __index * __inner_stride;
        const unsigned __n = static_cast<unsigned>(__index), __outer = (__umulhi(__n, multiplier) + __n) >> shift;
        return static_cast<long long>(__n - __outer * inner) * __inner_stride + __outer * __outer_stride;
    }
    GRIDSTRIDE_INLINED bool has_two_axes() const { return __is_split && inner != length; }
    // Whether packets are consecutive in memory; they begin at multiples of their length, or anywhere.
    GRIDSTRIDE_INLINED bool has_packets(int __length, int __size, long long __inner_stride, long long __outer_stride,
                                        bool __begin_anywhere) const {
        if (__inner_stride != __size) return false;
        return !has_two_axes() || __length == 1 || __outer_stride == inner * __inner_stride ||
               (inner % __length == 0 && !__begin_anywhere);
    }
};

// The part of the plane that a block has.
template <bool __is_split>
struct plane_part {
    static constexpr bool is_split = __is_split;
    plane_side<__is_split> x_side, y_side;
    long long x, y;     // where it begins
    int width, height;  // height: as far as the plane goes
    int from, to;       // as far as the plane goes along x, seen from where the part begins
    bool is_shifted;
    long long number;   // of the element where the plane begins

    template <int __axes>
    GRIDSTRIDE_INLINED plane_part(const element_space<__axes>& __space, int __width)
        : x_side(__space, __space.row, 2), y_side(__space, __space.column, 3), x(0), y(0), width(__width), height(0),
          from(0), to(0), is_shifted(__space.height != 0), number(0) {}
    GRIDSTRIDE_INLINED void begin(long long __x, long long __y, long long __height) {
        const long long __right = x_side.length - __x, __below = y_side.length - __y;
        x = __x;
        y = __y;
        height = int(__below < __height ? __below : __height);
        from = __x > 0 ? -width : 0;
        to = int(__right < width ? __right : width);
    }
    GRIDSTRIDE_INLINED bool has(int __x, int __count = 1) const { return __x >= from && __x + __count <= to; }
};

// The words of a packet of a row. Where all rows and lines are whole words, no more is made for others.
template <int __length, class __stored, bool __are_words>
struct row_words : arriving<__length, __stored> {};
template <int __length, class __stored>
struct row_words<__length, __stored, true> {
    typename whole<__length, __stored>::type low;
    GRIDSTRIDE_INLINED void load(const char* __at) {
        low = *reinterpret_cast<const typename whole<__length, __stored>::type*>(__at);
    }
    GRIDSTRIDE_INLINED void join(const char*) {}
    GRIDSTRIDE_INLINED void pack(const packet<__stored, __length>& __from) { low = whole<__length, __stored>::packed(__from); }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to) const { whole<__length, __stored>::unpack(__to, low); }
};

// How an operand lies, where a loop is told: one element for a row; in packets of its rows, which begin between words where
// those of the last operand are words, or are words as those.
constexpr int one_for_a_row = 0, between_words = 1, in_words = 2;

// Packets that a thread has under way in rows of an operand, and what it does with them at their places. Kind: how these lie.
template <class __operand, int __length, int __kind, int __count>
struct row_packets {
    typedef typename __operand::stored stored;
    row_words<__length, stored, __kind == in_words> words[__operand::is_read ? __count : 1];

    GRIDSTRIDE_INLINED int load(int __k, const char* __at) {
        if (__operand::is_read) words[__k].load(__at);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(packet<stored, __length>& __to, int __k, const char* __at) {
        if (!__operand::is_read) return 0;
        words[__k].join(__at);
        words[__k].unpack(__to);
        return 0;
    }
    static GRIDSTRIDE_INLINED int store(const packet<stored, __length>& __from, char* __at) {
        if (!__operand::is_written) return 0;
        if (__kind == in_words) whole<__length, stored>::store(__from, __at);
        else store_packet<__length>(__from, __at, sizeof(stored), 0, __length);
        return 0;
    }
};

// What a thread holds of an operand. `__memory` knows where the elements of a turned one are in shared memory.
template <class __operand, int __length, bool __is_split, bool __are_words, class __memory>
struct turned {
    typedef plane_part<__is_split> part;
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored);
    static constexpr bool are_words = __are_words;

    const __operand& source;
    char* corner;  // of the part
    char* place;   // of a packet, were there no phase
    __memory memory;
    row_words<__length, stored, __are_words> words;
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED turned(const __operand& __source) : source(__source), corner(__source.data), place(__source.data) {}

    GRIDSTRIDE_INLINED bool is_turned() const { return source.strides[3] != 0; }
    GRIDSTRIDE_INLINED bool is_same() const {
        return __operand::is_read && !__operand::is_written && source.step == 0 && (!__is_split || source.strides[1] == 0);
    }
    GRIDSTRIDE_INLINED bool has_packets(const part& __part) const {
        return __are_words || is_turned() || is_same() ||
               __part.x_side.has_packets(__length, size, source.step, source.strides[1], __part.is_shifted);
    }
    // Move to the part, or to a plane: a side of two axes is entered from its beginning.
    GRIDSTRIDE_INLINED int enter(const part& __part) {
        if (!__part.x_side.has_two_axes()) corner += __part.x * source.step;
        if (!__part.y_side.has_two_axes()) corner += __part.y * source.strides[0];
        return 0;
    }
    GRIDSTRIDE_INLINED long long along(const part& __part, int __x) const {
        return __part.x_side.has_two_axes() ? __part.x_side.offset(__part.x + __x, source.step, source.strides[1])
                                            : __x * source.step;
    }
    GRIDSTRIDE_INLINED long long down(const part& __part, int __y) const {
        return __part.y_side.has_two_axes() ? __part.y_side.offset(__part.y + __y, source.strides[0], source.strides[2])
                                            : __y * source.strides[0];
    }
    GRIDSTRIDE_INLINED char* at(const part& __part, int __x, int __y) const {
        return corner + along(__part, __x) + down(__part, __y);
    }
    GRIDSTRIDE_INLINED stored& in_place(const part& __part, int __x, int __y) const {
        return *reinterpret_cast<stored*>(is_turned() ? memory.at(__x, __y) : at(__part, __x, __y));
    }
    GRIDSTRIDE_INLINED int stand(const part& __part, int __x, int __y) {
        if (is_turned()) memory.stand(__x, __y);
        else place = at(__part, __x, __y);
        return 0;
    }
    // Go down so many rows to a row, where memory knows how.
    GRIDSTRIDE_INLINED int descend(const part& __part, int __rows, int __x, int __y) {
        if (is_turned()) memory.descend(__rows);
        else if (__part.y_side.has_two_axes()) place = at(__part, __x, __y);
        else place += __rows * source.strides[0];
        return 0;
    }
    // How many elements before the part its row begins.
    GRIDSTRIDE_INLINED int phase() const { return int(reinterpret_cast<unsigned long long>(place) / size % __length); }
    GRIDSTRIDE_INLINED char* packet_at(int __phase) const { return place - __phase * size; }
    GRIDSTRIDE_INLINED int load(int __phase) {
        if (!__operand::is_read || is_turned()) return 0;
        if (is_same()) {
            packet<stored, __length> __repeated;
            load_packet<__length>(__repeated, place, 0, 0, __length);
            words.pack(__repeated);
        } else {
            words.load(packet_at(__phase));
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __phase) {
        if (!__operand::is_read) return 0;
        if (is_turned()) {
            memory.load(items, __phase);
        } else {
            if (!is_same()) words.join(packet_at(__phase));
            words.unpack(items);
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int store_word() const {
        if (!__operand::is_written) return 0;
        if (is_turned()) memory.store(items, 0);
        else whole<__length, stored>::store(items, place);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int __phase) const {
        if (!__operand::is_written) return 0;
        if (is_turned()) memory.store(items, __phase);
        else store_packet<__length>(items, packet_at(__phase), size, 0, __length);
        return 0;
    }
    // Take the next shared memory, where the operand is turned.
    GRIDSTRIDE_INLINED int take_memory(const part& __part, char*& __shared) {
        if (is_turned()) __shared += memory.begin(__shared, __part, *this);
        return 0;
    }
    GRIDSTRIDE_INLINED int bring(const part& __part) const {
        if (__operand::is_read && is_turned()) memory.bring(*this, __part);
        return 0;
    }
    GRIDSTRIDE_INLINED int take_away(const part& __part) const {
        if (__operand::is_written && is_turned()) memory.take_away(*this, __part);
        return 0;
    }
};

// The phase of the last operand, an output where there is one.
GRIDSTRIDE_INLINED int last_row_phase() { return 0; }
template <class __only>
GRIDSTRIDE_INLINED int last_row_phase(const __only& __last) { return __last.phase(); }
template <class __first, class __second, class... __rest>
GRIDSTRIDE_INLINED int last_row_phase(const __first&, const __second& __next, const __rest&... __others) {
    return last_row_phase(__next, __others...);
}

// Move to the block's part; `__height` is how long it may be along y.
template <bool __is_split, int __axes, class... __turned>
GRIDSTRIDE_INLINED void enter_plane(plane_part<__is_split>& __part, const element_space<__axes>& __space, long long __height,
                                    __turned&... __all) {
    constexpr int __walked = 4;
    long long __rest = blockIdx.x;
    const long long __x = taken_off(__space.outer, __rest, 0);
    const long long __y = __space.outer.ndim > __walked ? taken_off(__space.outer, __rest, 1) : __rest;
    __part.begin(__x * __part.width, __y * __height, __height);
    swallow(__all.enter(__part)...);
#pragma unroll
    for (int __axis = __walked; __axis < __axes; ++__axis) {
        if (__axis >= __space.outer.ndim) break;
        const long long __at = __axis + 1 < __space.outer.ndim ? taken_off(__space.outer, __rest, __axis) : __rest;
        __part.number += __at * __space.numbers.strides[__axis];
        swallow((__all.corner += __at * __all.source.strides[__axis])...);
    }
}

template <int __axes, class __part>
GRIDSTRIDE_INLINED long long number_of_row(const element_space<__axes>& __space, const __part& __plane, int __y) {
    const numbering<__axes>& __numbers = __space.numbers;
    return __plane.number + __plane.y_side.offset(__plane.y + __y, __numbers.strides[0], __numbers.strides[2]);
}
template <int __length, class __operation, class __part, int __axes, class... __turned>
GRIDSTRIDE_INLINED void do_items(const __operation& __do, const element_space<__axes>& __space, const __part& __plane, int __x,
                                 int __y, __turned&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    const long long __line = number_of_row(__space, __plane, __y);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        __do(__line + __plane.x_side.offset(__plane.x + __x + __j, __numbers.step, __numbers.strides[1]),
             element<typename __turned::operand>(__all.items.items[__j]).get()...);
}

// Do the packet at whose place all operands stand, which begins a phase before `__x`; or its elements one by one.
template <int __length, class __operation, class __part, int __axes, class... __turned>
GRIDSTRIDE_INLINED void do_turned(const __operation& __do, const element_space<__axes>& __space, const __part& __plane,
                                  int __x, int __y, bool __are_packets, __turned&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    const int __phase = __plane.is_shifted ? last_row_phase(__all...) : 0, __first = __x - __phase;
    if (__are_packets && __plane.has(__first, __length)) {
        swallow(__all.load(__phase)...);
        swallow(__all.unpack(__phase)...);
        do_items<__length>(__do, __space, __plane, __first, __y, __all...);
        swallow(__all.store(__phase)...);
        return;
    }
    const long long __line = number_of_row(__space, __plane, __y);
#pragma unroll 1
    for (int __j = __first; __j < __first + __length; ++__j)
        if (__plane.has(__j))
            __do(__line + __plane.x_side.offset(__plane.x + __j, __numbers.step, __numbers.strides[1]),
                 element<typename __turned::operand>(__all.in_place(__plane, __j, __y)).get()...);
}

// Do all packets of a thread, whose operands are whole words.
template <int __length, class __operation, class __part, class __path, int __axes, class... __turned>
GRIDSTRIDE_INLINED void run_words(const __operation& __do, const element_space<__axes>& __space, const __part& __plane,
                                  __path& __way, bool __has_one, __turned&... __all) {
#pragma unroll 1
    for (; __has_one; __has_one = __way.go_on(__plane, __all...)) {
        swallow(__all.load(0)...);
        swallow(__all.unpack(0)...);
        do_items<__length>(__do, __space, __plane, __way.x, __way.y, __all...);
        swallow(__all.store_word()...);
    }
}

// The same for any operands.
template <int __length, class __operation, class __part, class __path, int __axes, class... __turned>
GRIDSTRIDE_INLINED void run_any(const __operation& __do, const element_space<__axes>& __space, const __part& __plane,
                                __path& __way, bool __has_one, __turned&... __all) {
    const bool __are_packets = all_of(__all.has_packets(__plane)...);
#pragma unroll 1
    for (; __has_one; __has_one = __way.go_on(__plane, __all...))
        do_turned<__length>(__do, __space, __plane, __way.x, __way.y, __are_packets, __all...);
}

template <bool __are_words, int __length, class __operation, class __part, class __path, int __axes, class... __turned>
GRIDSTRIDE_INLINED void run_plane(const __operation& __do, const element_space<__axes>& __space, const __part& __plane,
                                  __path __way, char* __shared, __turned&... __all) {
    swallow(__all.take_memory(__plane, __shared)...);
    const bool __has_one = __way.stand(__plane, __all...);  // so early that nobody waits for it
    swallow(__all.bring(__plane)...);
    __syncthreads();
    if (__are_words) run_words<__length>(__do, __space, __plane, __way, __has_one, __all...);
    else run_any<__length>(__do, __space, __plane, __way, __has_one, __all...);
    __syncthreads();
    swallow(__all.take_away(__plane)...);
}

}

#endif
