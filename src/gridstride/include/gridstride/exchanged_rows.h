// `exchanged_rows`: a loop over elements of short rows that change places along two axes: one row after another along axis 1
// in the outputs, and along axis 2 in turned inputs.
//
// A block has a box of rows, which is a few long stretches of memory on both sides. Those of turned inputs are brought into
// shared memory as they lie, by words of 16 bytes; packets are words of the outputs' stretches, and begin anywhere in shared
// memory. Every so many stretches begin at the same place of a word: a thread takes the same packet of all of these, and
// finds out once where its elements are.
//
// In `element_space`, `column` and `width` are the numbers of rows along axes 1 and 2, of which a box has `row` and `height`.
// `outer` has the boxes along axes 1 and 2, the length of a row, the packets of a stretch, and the axes that are walked one by
// one; an operand's strides are those of axes 1 and 2, two that are not used, and of these.
#ifndef GRIDSTRIDE_EXCHANGED_ROWS_H
#define GRIDSTRIDE_EXCHANGED_ROWS_H

#include <gridstride/async_words.h>
#include <gridstride/waiting_packets.h>

namespace gridstride {

constexpr int exchanged_threads = 256;

// Whether rows are as long as a packet, shorter, or of a few bytes.
enum row_length { long_exchanged, short_exchanged, tiny_exchanged };

// The box that a block has, the rows of it along both axes, and the length of these.
struct row_box {
    int first, second;  // where it begins
    int ones, others;
    int row;
};

// Where the elements of a packet are, of which the last ones are in the next row: at two places, or of rows shorter than a
// packet each at its own.
template <int __length, class __stored, bool __are_short>
struct waiting_rows {
    const char *own, *next;
    unsigned masks[4];
    bool are_two;
    template <class __row_at>
    GRIDSTRIDE_INLINED void stand(const __row_at& __row, int __which, int __within, int __length_of_row) {
        const int __end = (__length_of_row - __within) * int(sizeof(__stored));
        own = __row(__which) + __within * int(sizeof(__stored));
        are_two = __end < 16;
        if (are_two) next = __row(__which + 1) - __end;
#pragma unroll
        for (int __k = 0; __k < 4; ++__k) masks[__k] = mask_of(__end - 4 * __k);
    }
    GRIDSTRIDE_INLINED void load(packet<__stored, __length>& __to, int __from) const {
        typedef waiting_packet<__length, __stored> words;
        uint4 __own = words::load(own + __from);
        if (are_two) {
            const uint4 __next = words::load(next + __from);
            __own.x = (__own.x & masks[0]) | (__next.x & ~masks[0]);
            __own.y = (__own.y & masks[1]) | (__next.y & ~masks[1]);
            __own.z = (__own.z & masks[2]) | (__next.z & ~masks[2]);
            __own.w = (__own.w & masks[3]) | (__next.w & ~masks[3]);
        }
        whole<__length, __stored>::unpack(__to, __own);
    }
};
template <int __length, class __stored>
struct waiting_rows<__length, __stored, true> {
    const char* places[__length];
    template <class __row_at>
    GRIDSTRIDE_INLINED void stand(const __row_at& __row, int __which, int __within, int __length_of_row) {
        const char* __at = __row(__which) + __within * int(sizeof(__stored));
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) {
            places[__j] = __at;
            __at += sizeof(__stored);
            if (++__within == __length_of_row) {
                __within = 0;
                __at = __row(++__which);
            }
        }
    }
    GRIDSTRIDE_INLINED void load(packet<__stored, __length>& __to, int __from) const {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) copy(__to.items[__j], *reinterpret_cast<const __stored*>(places[__j] + __from));
    }
};

template <class __operand, int __length, row_length __rows, bool __is_turned>
struct exchanged {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored);

    const __operand& source;
    char* corner;  // of the box
    char* waiting;
    int pitch, skew;  // skew: see `begin_of`
    int from;         // a stretch on, of those that the thread takes
    waiting_rows<__length, stored, (__rows != long_exchanged)> rows;
    char* place;
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED exchanged(const __operand& __source) : source(__source), corner(__source.data) {}
    GRIDSTRIDE_INLINED int move(int __axis, unsigned __index) {
        corner += __index * source.strides[__axis];
        return 0;
    }
    GRIDSTRIDE_INLINED int take_memory(char*& __shared, int __ones, int __others, int __row) {
        if (!__is_turned) return 0;
        const int __bytes = __others * __row * size + 30;
        waiting = __shared;
        pitch = __rows == tiny_exchanged ? (__bytes + 127) / 128 * 128 : (__bytes / 16 | 1) * 16;
        skew = __rows == tiny_exchanged ? __row * size : 0;
        __shared = begin_of(__ones) + 32;
        return 0;
    }
    // Neighboring stretches begin in different banks, since they are an odd number of words apart. A packet comes from many
    // rows of a few bytes: these are in the banks in which it is in the outputs.
    GRIDSTRIDE_INLINED char* begin_of(int __row) const { return waiting + __row * pitch + __row * skew / 16 * 16; }
    static GRIDSTRIDE_INLINED int past_word(const char* __at) { return int(bytes_past<16>(__at)); }
    GRIDSTRIDE_INLINED char* row_at(int __row) const {
        const unsigned __past = static_cast<unsigned>(reinterpret_cast<unsigned long long>(corner)) + __row * static_cast<unsigned>(source.strides[0]);
        return begin_of(__row) + __past % 16;
    }
    GRIDSTRIDE_INLINED int bring(const row_box& __box) const {
        if (!__is_turned) return 0;
#pragma unroll 1
        for (int __row = threadIdx.x / 32; __row < __box.ones; __row += exchanged_threads / 32) {
            const char* __from = corner + __row * source.strides[0];
            const int __past = past_word(__from), __end = __past + __box.others * __box.row * size;
            __from -= __past;
            char* const __to = begin_of(__row);
#pragma unroll 2
            for (int __at = threadIdx.x % 32 * 16; __at < __end; __at += 32 * 16) bring_word<16>(__to + __at, __from + __at);
        }
        return 0;
    }
    // Elements from the beginning of a stretch to the first word.
    GRIDSTRIDE_INLINED int before_word(int __stretch) const {
        const unsigned __at = static_cast<unsigned>(reinterpret_cast<unsigned long long>(corner)) + __stretch * static_cast<unsigned>(source.strides[1]);
        return int((0 - __at) % 16 / size);
    }
    GRIDSTRIDE_INLINED int stand(const row_box& __box, int __stretch, int __element, int __row, int __within) {
        if (__is_turned) {
            from = __stretch * __box.row * size;
            rows.stand([&](int __which) { return row_at(__which); }, __row, __within, __box.row);
        } else {
            place = corner + __stretch * source.strides[1] + __element * size;
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int go_on(const row_box& __box) {
        if (__is_turned) from += __length * __box.row * size;
        else place += __length * source.strides[1];
        return 0;
    }
    GRIDSTRIDE_INLINED int load() {
        if (__is_turned) rows.load(items, from);
        else if (__operand::is_read) load_packet<__length>(items, place, size, 0, __length);
        return 0;
    }
    GRIDSTRIDE_INLINED int store() const {
        if (__operand::is_written) store_packet<__length>(items, place, size, 0, __length);
        return 0;
    }
    GRIDSTRIDE_INLINED stored& in_place(const row_box& __box, int __stretch, int __element, int __row, int __within) const {
        char* const __at = __is_turned ? row_at(__row) + (__stretch * __box.row + __within) * size
                                       : corner + __stretch * source.strides[1] + __element * size;
        return *reinterpret_cast<stored*>(__at);
    }
};

// Do a packet of every so many stretches.
template <int __length, class __operation, int __axes, class... __exchanged>
GRIDSTRIDE_INLINED void do_exchanged(const __operation& __do, const element_space<__axes>& __space, long long __number,
                                     const row_box& __box, int __stretch, int __row, int __within, __exchanged&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    __number += __row * __numbers.strides[0] + __stretch * __numbers.strides[1] + __within * __numbers.step;
#pragma unroll 1
    for (; __stretch < __box.others; __stretch += __length, __number += __length * __numbers.strides[1]) {
        swallow(__all.load()...);
        long long __n = __number;
        int __left = __box.row - __within;
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) {
            __do(__n, element<typename __exchanged::operand>(__all.items.items[__j]).get()...);
            __n += __numbers.step;
            if (--__left == 0) {
                __left = __box.row;
                __n += __numbers.strides[0] - __box.row * __numbers.step;
            }
        }
        swallow(__all.store()...);
        swallow(__all.go_on(__box)...);
    }
}

// Do the elements of stretches that are no whole packets, before the first and behind the last.
template <int __length, class __operation, int __axes, class... __exchanged>
GRIDSTRIDE_INLINED void do_ends(const __operation& __do, const element_space<__axes>& __space, long long __number, const row_box& __box,
                                __exchanged&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    const int __end = __box.ones * __box.row;
#pragma unroll 1
    for (int __k = threadIdx.x; __k < __box.others * 2 * __length; __k += exchanged_threads) {
        const int __stretch = __k / (2 * __length), __j = __k % (2 * __length);
        const int __before = last_of(__all...).before_word(__stretch);
        const int __inner = __before >= __end ? 0 : (__end - __before) / __length * __length;
        const int __element = __j < __length ? __j : __before + __inner + __j - __length;
        if (__element >= (__j < __length && __before < __end ? __before : __end) || (__j >= __length && __before >= __end)) continue;
        unsigned __row = static_cast<unsigned>(__element);
        const int __within = int(remainder_of(__space.outer, __row, 2));
        __do(__number + __row * __numbers.strides[0] + __stretch * __numbers.strides[1] + __within * __numbers.step,
             element<typename __exchanged::operand>(__all.in_place(__box, __stretch, __element, int(__row), __within)).get()...);
    }
}

// Beside: packets of a stretch that neighboring threads have, or 1 for all of it.
template <int __length, int __beside, class __operation, int __axes, class... __exchanged>
GRIDSTRIDE_INLINED void run_exchanged(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                      __exchanged&&... __all) {
    const axes<__axes>& __outer = __space.outer;
    const numbering<__axes>& __numbers = __space.numbers;
    constexpr int __walked = 4;
    unsigned __rest = blockIdx.x;
    row_box __box;
    __box.first = int(remainder_of(__outer, __rest, 0)) * int(__space.row);
    __box.second = int(remainder_of(__outer, __rest, 1)) * int(__space.height);
    __box.ones = int(__space.column) - __box.first < __space.row ? int(__space.column) - __box.first : int(__space.row);
    __box.others = int(__space.width) - __box.second < __space.height ? int(__space.width) - __box.second : int(__space.height);
    __box.row = int(__outer.length[2]);
    long long __number = __box.first * __numbers.strides[0] + __box.second * __numbers.strides[1];
    swallow(__all.move(0, __box.first)...);
    swallow(__all.move(1, __box.second)...);
#pragma unroll
    for (int __axis = __walked; __axis < __axes; ++__axis) {
        if (__axis >= __outer.ndim) break;
        const unsigned __at = remainder_of(__outer, __rest, __axis);
        __number += __at * __numbers.strides[__axis];
        swallow(__all.move(__axis, __at)...);
    }
    swallow(__all.take_memory(__shared, int(__space.row), int(__space.height), __box.row)...);
    swallow(__all.bring(__box)...);
    await_words();
    const int __end = __box.ones * __box.row;
    const unsigned __in_stretch = (static_cast<unsigned>(__outer.length[3]) + __beside - 1) / __beside * __beside;
    const unsigned __packets = __in_stretch * (__beside > 1 || __box.others > __length ? __length : __box.others);
#pragma unroll 1
    for (unsigned __k = threadIdx.x; __k < __packets; __k += exchanged_threads) {
        unsigned __stretch = __k, __packet = __k / (__beside * __length) * __beside + __k % __beside;
        if (__beside > 1) __stretch = __k / __beside % __length;
        else __packet = remainder_of(__outer, __stretch, 3);
        if (__beside > 1 && static_cast<int>(__stretch) >= __box.others) continue;
        const int __element = last_of(__all...).before_word(int(__stretch)) + int(__packet) * __length;
        if (__element + __length > __end) continue;
        unsigned __row = static_cast<unsigned>(__element);
        const int __within = int(remainder_of(__outer, __row, 2));
        swallow(__all.stand(__box, int(__stretch), __element, int(__row), __within)...);
        do_exchanged<__length>(__do, __space, __number, __box, int(__stretch), int(__row), __within, __all...);
    }
    do_ends<__length>(__do, __space, __number, __box, __all...);
}

// How long rows are; which operands are turned.
template <row_length __rows, bool... __turned, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void exchanged_rows(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                       const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    // Bytes of short rows meet in banks where neighboring packets are from many of them.
    constexpr int __beside = __rows != long_exchanged && __length == 16 ? 8 : 1;
    run_exchanged<__length, __beside>(__do, __space, __shared, exchanged<__operands, __length, __rows, __turned>(__all)...);
}

}

#endif
