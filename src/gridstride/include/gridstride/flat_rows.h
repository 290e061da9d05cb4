// `flat_rows`: a loop over elements of rows that are short or begin between words, one after another in the outputs: a thread
// takes a packet of them whatever rows it covers. Inputs are consecutive as well, or their elements are gathered one by one.
//
// In `element_space`, `row` is the length of all rows together, `column` that of each, `width` and `height` are its
// multiplier and shift; an operand's strides are `step` along a row and `strides[0]` from one to the next. Of every so many
// rows packets cover the same elements: axis 0 counts these, axis 1 the times that a thread takes `__count` of them.
#ifndef GRIDSTRIDE_FLAT_ROWS_H
#define GRIDSTRIDE_FLAT_ROWS_H

#include <gridstride/elementwise.h>

namespace gridstride {

// How an operand lies: consecutive as the outputs; consecutive along each row, which have a packet or more; or anyhow.
// Where a thread takes several packets of small elements: the same row again and again; or one element for each row.
constexpr int is_flat = 0, is_of_rows = 1, is_gathered = 2, is_one_row = 3, is_column = 4;

// The place of an element: its row, and where in the row.
struct flat_place {
    long long row;
    int within;
    template <class __index, int __axes>
    GRIDSTRIDE_INLINED flat_place(const element_space<__axes>& __space, __index __element) {
        const unsigned __n = static_cast<unsigned>(__element);
        row = sizeof(__index) == 4 ? (__umulhi(__n, static_cast<unsigned>(__space.width)) + __n) >> int(__space.height)
                                   : static_cast<long long>(__element / __space.column);
        within = int(__element - row * __space.column);
    }
};

// A packet of small elements that are consecutive in one row, and in the next from `__left` elements on: both from the words
// of four bytes that they touch. Nothing is read of other words.
template <int __length, class __stored, bool = sizeof(__stored) <= 2 && sizeof(__stored) * __length == 16>
struct of_two_rows {
    static constexpr bool is_made = false;
    typedef typename whole<__length, __stored>::type type;
    static GRIDSTRIDE_INLINED type load(const char*, int, long long) { return type(); }
};
template <int __length, class __stored>
struct of_two_rows<__length, __stored, true> {
    static constexpr bool is_made = true;
    // The bytes from one on to another, not included, of 16.
    static GRIDSTRIDE_INLINED void load_part(unsigned (&__bits)[5], const char* __at, int __from, int __to) {
        const int __past = int(static_cast<unsigned>(reinterpret_cast<unsigned long long>(__at)) % 4);
        const unsigned* __words = reinterpret_cast<const unsigned*>(__at - __past);
#pragma unroll
        for (int __k = 0; __k < 5; ++__k)
            if (4 * __k - __past < __to && 4 * __k + 4 - __past > __from) __bits[__k] = __words[__k];
        shift_words<4>(__bits, __past * 8);
    }
    static GRIDSTRIDE_INLINED uint4 load(const char* __at, int __left, long long __back) {
        const int __end = __left * int(sizeof(__stored));
        unsigned __bits[5] = {};
        load_part(__bits, __at, 0, __end < 16 ? __end : 16);
        if (__end < 16) {
            unsigned __next[5] = {};
            load_part(__next, __at + __back, __end, 16);
#pragma unroll
            for (int __k = 0; __k < 4; ++__k) {
                const int __own = __end - 4 * __k;
                const unsigned __mask = __own >= 4 ? ~0u : __own <= 0 ? 0u : ~(~0u << __own * 8);
                __bits[__k] = (__bits[__k] & __mask) | (__next[__k] & ~__mask);
            }
        }
        const uint4 __whole = {__bits[0], __bits[1], __bits[2], __bits[3]};
        return __whole;
    }
};

// The elements of a column that a packet covers, of which each is there for a row: at most eight bytes.
template <int __length, class __stored>
struct of_column {
    static constexpr int size = sizeof(__stored), each = 4 / size;
    unsigned which[__length / each];  // bytes of eight make a word of the packet
    int end;                          // bytes that are needed

    GRIDSTRIDE_INLINED void begin(int __left, int __row) {
        int __at = 0;
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) {
            if (__j % each == 0) which[__j / each] = 0;
            which[__j / each] |= static_cast<unsigned>(size == 1 ? __at : __at * 0x11 + 0x10) << __j % each * size * 4;
            end = __at + size;
            if (--__left == 0) {
                __left = __row;
                __at += size;
            }
        }
    }
    GRIDSTRIDE_INLINED void load(unsigned (&__words)[3], const char* __at) const {
        const int __past = int(static_cast<unsigned>(reinterpret_cast<unsigned long long>(__at)) % 4);
        const unsigned* const __from = reinterpret_cast<const unsigned*>(__at - __past);
        __words[0] = __from[0];
        if (__past + end > 4) __words[1] = __from[1];
        if (__past + end > 8) __words[2] = __from[2];
    }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to, const unsigned (&__words)[3], const char* __at) const {
        const unsigned __past = static_cast<unsigned>(reinterpret_cast<unsigned long long>(__at)) % 4 * 8;
        const unsigned __low = __funnelshift_r(__words[0], __words[1], __past), __high = __funnelshift_r(__words[1], __words[2], __past);
        unsigned __all[__length / each];
#pragma unroll
        for (int __k = 0; __k < __length / each; ++__k) __all[__k] = __byte_perm(__low, __high, which[__k]);
        memcpy(&__to, __all, __length * size);
    }
};

template <class __operand, int __length, int __count, int __kind>
struct flat {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    char* row;  // where element 0 is
    arriving<__length, stored> words[__count];
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED flat(const __operand& __source) : source(__source), row(__source.data) {}
    GRIDSTRIDE_INLINED int phase() const {
        return is_one_word<stored, __length>::value
                   ? int(reinterpret_cast<unsigned long long>(row) / sizeof(stored) % __length) : 0;
    }
    // From a packet to the next that covers the same elements; places are seen from one before.
    GRIDSTRIDE_INLINED long long apart() const { return __count > 1 ? source.strides[1] / __count : 0; }
    GRIDSTRIDE_INLINED char* at(const flat_place& __place, int __k) const {
        return row + __place.row * source.strides[0] + __place.within * source.step + (__k - 1) * apart();
    }
    GRIDSTRIDE_INLINED stored& in_memory(const flat_place& __place, int __k) const {
        return *reinterpret_cast<stored*>(at(__place, __k));
    }
    GRIDSTRIDE_INLINED int begin(const flat_place&, int) { return 0; }
    GRIDSTRIDE_INLINED int load(const flat_place& __place, int __k, int __row) {
        if (!__operand::is_read) return 0;
        const char* __at = at(__place, __k);
        if (__kind == is_flat) {
            words[__k].load(__at);
            return 0;
        }
        const long long __back = source.strides[0] - __row * source.step;
        int __left = __row - __place.within;
        packet<stored, __length> __gathered;
        typedef of_two_rows<__length, stored> by_words;
        if (by_words::is_made && __kind == is_of_rows) {
            whole<__length, stored>::unpack(__gathered, by_words::load(__at, __left, __back));
            words[__k].pack(__gathered);
            return 0;
        }
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) {
            copy(__gathered.items[__j], *reinterpret_cast<const stored*>(__at));
            __at += source.step;
            if (--__left == 0) {
                __left = __row;
                __at += __back;
            }
        }
        words[__k].pack(__gathered);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(const flat_place& __place, int __k) {
        if (!__operand::is_read) return 0;
        if (__kind == is_flat) words[__k].join(at(__place, __k));
        words[__k].unpack(items);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(const flat_place& __place, int __k) const {
        if (__operand::is_written) store_packet<__length>(items, at(__place, __k), sizeof(stored), 0, __length);
        return 0;
    }
};

template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_one_row> : flat<__operand, __length, 1, is_gathered> {
    typedef flat<__operand, __length, 1, is_gathered> base;
    GRIDSTRIDE_INLINED flat(const __operand& __source) : base(__source) {}
    GRIDSTRIDE_INLINED int begin(const flat_place& __place, int __row) { return base::load(__place, 0, __row); }
    GRIDSTRIDE_INLINED int load(const flat_place&, int, int) { return 0; }
    GRIDSTRIDE_INLINED int unpack(const flat_place& __place, int) { return base::unpack(__place, 0); }
    GRIDSTRIDE_INLINED typename base::stored& in_memory(const flat_place& __place, int) const { return base::in_memory(__place, 0); }
    GRIDSTRIDE_INLINED int store(const flat_place&, int) const { return 0; }
};
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_column> : flat<__operand, __length, __count, is_gathered> {
    typedef flat<__operand, __length, __count, is_gathered> base;
    of_column<__length, typename base::stored> column;
    unsigned waiting[__count][3];
    GRIDSTRIDE_INLINED flat(const __operand& __source) : base(__source) {}
    GRIDSTRIDE_INLINED int begin(const flat_place& __place, int __row) {
        column.begin(__row - __place.within, __row);
        return 0;
    }
    GRIDSTRIDE_INLINED int load(const flat_place& __place, int __k, int) {
        column.load(waiting[__k], this->at(__place, __k));
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(const flat_place& __place, int __k) {
        column.unpack(this->items, waiting[__k], this->at(__place, __k));
        return 0;
    }
};

template <int __length, class __operation, int __axes, class... __flat>
GRIDSTRIDE_INLINED void do_flat(const __operation& __do, const element_space<__axes>& __space, long long __number,
                                const flat_place& __place, int __k, __flat&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    const int __row = int(__space.column);
    swallow(__all.unpack(__place, __k)...);
    long long __n = __number + __place.row * __numbers.strides[0] + __place.within * __numbers.step;
    int __left = __row - __place.within;
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) {
        __do(__n, element<typename __flat::operand>(__all.items.items[__j]).get()...);
        __n += __numbers.step;
        if (--__left == 0) {
            __left = __row;
            __n += __numbers.strides[0] - __row * __numbers.step;
        }
    }
    swallow(__all.store(__place, __k)...);
}

template <class __index, int __length, int __count, class __operation, int __axes, class... __flat>
GRIDSTRIDE_INLINED void run_flat(const __operation& __do, const element_space<__axes>& __space, __index __packet,
                                 __flat&&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    const __index __within = remainder_of(__space.outer, __packet, 0);
    __index __times = __packet;
    if (__space.outer.ndim > 2) __times = remainder_of(__space.outer, __times, 1);
    long long __number = enter_row(__space, __packet, __all...);
    // Elements from a packet to the next that covers the same ones, before which places are seen from.
    const long long __apart = __space.outer.length[0] * __length, __before = __count > 1 ? __apart : 0;
    const long long __first = static_cast<long long>(__within) * __length - last_phase(__all...);
    const long long __numbers_apart = __count > 1 ? __numbers.strides[1] / __count : 0;
    const long long __begin = __first + static_cast<long long>(__times) * __count * __apart;
    const flat_place __place(__space, static_cast<__index>(__first + __before < 0 ? 0 : __first + __before));
    const int __row = int(__space.column);
    const auto __is_inside = [&](int __k) {
        return __begin + __k * __apart >= 0 && __begin + __k * __apart + __length <= __space.row;
    };
    __number -= __numbers_apart;
    swallow(__all.begin(__place, __row)...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k)
        if (__is_inside(__k)) swallow(__all.load(__place, __k, __row)...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k)
        if (__is_inside(__k)) do_flat<__length>(__do, __space, __number + __k * __numbers_apart, __place, __k, __all...);
    if (__is_inside(0) && __is_inside(__count - 1)) return;
#pragma unroll 1
    for (int __j = 0; __j < __count * __length; ++__j) {
        const int __k = __j / __length, __l = __j % __length;
        const long long __element = __begin + __k * __apart + __l;
        if (__is_inside(__k) || __element < 0 || __element >= __space.row) continue;
        const flat_place __at(__space, static_cast<__index>(__first + __l + __before));
        __do(__number + __k * __numbers_apart + __at.row * __numbers.strides[0] + __at.within * __numbers.step,
             element<typename __flat::operand>(__all.in_memory(__at, __k)).get()...);
    }
}

// `__index` has room for the number of packets and of elements of a row. Count: of packets that a thread takes. Kinds: how each
// operand lies.
template <class __index, int __count, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void flat_rows(const __operation& __do, const element_space<__axes>& __space,
                                  const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    const __index __packet = static_cast<__index>(blockIdx.x) * block_threads + threadIdx.x;
    if (__packet >= __space.outer.count) return;
    run_flat<__index, __length, __count>(__do, __space, __packet, flat<__operands, __length, __count, __kinds>(__all)...);
}

}

#endif
