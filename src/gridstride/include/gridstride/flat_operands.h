// Operands of `flat_rows`: where the packets of a thread are, and how they come.
#ifndef GRIDSTRIDE_FLAT_OPERANDS_H
#define GRIDSTRIDE_FLAT_OPERANDS_H

#include <gridstride/flat_packets.h>

namespace gridstride {

// How an operand lies: consecutive as the outputs; or anyhow. Where innermost axes are at least as long as packets:
// consecutive along these; or one element for each; and the same in all rows. Where small elements have shorter ones: the
// same row again and again; one element for each row, one after another; or, of bytes, packets of four, close to each other.
constexpr int is_flat = 0, is_of_rows = 1, is_gathered = 2, is_one_row = 3, is_column = 4, is_of_pairs = 5, is_close = 6, is_of_ones = 7;
constexpr int is_same = 8;  // added to others

// The place of an element: the row, where in the row and where along its axes; how many elements are left along the
// innermost one, and where it goes on then.
template <int __inner>
struct flat_place {
    static constexpr int further = __inner > 1 ? __inner - 1 : 1;
    long long row;
    int within, left;
    int at[further], next[further];  // along the axes of a row after the innermost one, on which `within` is
    bool ends;                       // whether it goes on in the next row

    template <class __index, int __axes>
    GRIDSTRIDE_INLINED flat_place(const element_space<__axes>& __space, __index __element) {
        const unsigned __n = static_cast<unsigned>(__element);
        row = sizeof(__index) == 4 ? (__umulhi(__n, static_cast<unsigned>(__space.width)) + __n) >> int(__space.height)
                                   : static_cast<long long>(__element / __space.column);
        within = int(__element - row * __space.column);
        left = int(__space.column) - within;
        ends = true;
        if (__inner == 0) return;
        unsigned __rest = static_cast<unsigned>(within);
        within = int(remainder_of(__space.outer, __rest, 2));
        left = int(__space.outer.length[2]) - within;
#pragma unroll
        for (int __k = 0; __k < further; ++__k) {
            at[__k] = int(__k + 2 < __inner ? remainder_of(__space.outer, __rest, __k + 3) : __rest);
            next[__k] = at[__k] + ends;
            ends = ends && next[__k] == int(__space.outer.length[__k + 3]);
            if (ends) next[__k] = 0;
        }
    }
    // In bytes or numbers, by strides of which those of the axes of a row come from the fourth on.
    template <class __strides>
    GRIDSTRIDE_INLINED long long offset(const __strides& __by) const {
        long long __all = row * __by.strides[0] + within * __by.step;
        if (__inner > 0)
#pragma unroll
            for (int __k = 0; __k < further; ++__k) __all += at[__k] * __by.strides[__k + 3];
        return __all;
    }
    // How much further than its steps it is to where the innermost axis goes on.
    template <class __strides>
    GRIDSTRIDE_INLINED long long gap(const __strides& __by) const {
        long long __all = -(within + left) * __by.step + (ends ? __by.strides[0] : 0);
        if (__inner > 0)
#pragma unroll
            for (int __k = 0; __k < further; ++__k) __all += (next[__k] - at[__k]) * __by.strides[__k + 3];
        return __all;
    }
};

template <class __operand, int __length, int __count, int __kind>
struct flat {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef of_two_rows<__length, stored> by_words;

    const __operand& source;
    char* row;      // where element 0 is
    char* here;     // where that is with which the packet begins that is one before those that are taken
    long long apart;  // from a packet to the next that covers the same elements; places are seen from one before
    long long gap;
    arriving<__length, stored> words[__count];
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED flat(const __operand& __source, int __times)
        : source(__source), row(__source.data), here(row), apart(__times > 1 ? __source.strides[1] / __times : 0), gap(0) {}
    GRIDSTRIDE_INLINED int phase() const {
        return is_one_word<stored, __length>::value
                   ? int(reinterpret_cast<unsigned long long>(row) / sizeof(stored) % __length) : 0;
    }
    GRIDSTRIDE_INLINED char* at(int __k) const { return here + __k * apart; }
    GRIDSTRIDE_INLINED int go_on() {
        here += __count * apart;
        return 0;
    }
    template <class __place>
    GRIDSTRIDE_INLINED stored& in_memory(const __place& __at, int __k) const {
        return *reinterpret_cast<stored*>(row + __at.offset(source) + (__k - 1) * apart);
    }
    template <class __place>
    GRIDSTRIDE_INLINED int begin(const __place& __at, int) {
        here = row + __at.offset(source) - apart;
        if (__kind != is_flat) gap = __at.gap(source);
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __left, int __row, int __k) {
        if (!__operand::is_read) return 0;
        const char* __at = at(__k);
        if (__kind == is_flat) {
            words[__k].load(__at);
            return 0;
        }
        packet<stored, __length> __gathered;
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) {
            copy(__gathered.items[__j], *reinterpret_cast<const stored*>(__at));
            __at += source.step;
            if (--__left == 0) {
                __left = __row;
                __at += gap;
            }
        }
        words[__k].pack(__gathered);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int, int __k) {
        if (!__operand::is_read) return 0;
        if (__kind == is_flat) words[__k].join(at(__k));
        words[__k].unpack(items);
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int __k) const {
        if (__operand::is_written) store_packet<__length>(items, at(__k), sizeof(stored), 0, __length);
        return 0;
    }
    // Of the last operand, by whose words packets are counted.
    GRIDSTRIDE_INLINED void store_last(int __k) const {
        constexpr bool __is_word = is_one_word<stored, __length>::value && alignof(stored) == sizeof(stored);
        if (__is_word && __operand::is_written) whole<__length, stored>::store(items, at(__k));
        else store(__k);
    }
};

// Small elements that are consecutive in two rows.
template <class __operand, int __length, int __count, bool = of_two_rows<__length, typename __operand::stored>::is_made>
struct flat_of_rows : flat<__operand, __length, __count, is_gathered> {
    typedef flat<__operand, __length, __count, is_gathered> base;
    GRIDSTRIDE_INLINED flat_of_rows(const __operand& __source, int __times) : base(__source, __times) {}
};
template <class __operand, int __length, int __count>
struct flat_of_rows<__operand, __length, __count, true> : flat<__operand, __length, __count, is_gathered> {
    typedef flat<__operand, __length, __count, is_gathered> base;
    unsigned waiting[__count][2][5];
    GRIDSTRIDE_INLINED flat_of_rows(const __operand& __source, int __times) : base(__source, __times) {}
    GRIDSTRIDE_INLINED int load(int __left, int, int __k) {
        base::by_words::load(waiting[__k], this->at(__k), __left, this->gap);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __left, int __k) {
        whole<__length, typename base::stored>::unpack(this->items, base::by_words::joined(waiting[__k], this->at(__k), __left, this->gap));
        return 0;
    }
};
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_of_rows> : flat_of_rows<__operand, __length, __count> {
    GRIDSTRIDE_INLINED flat(const __operand& __source, int __times) : flat_of_rows<__operand, __length, __count>(__source, __times) {}
};
// One element for each innermost row, of which a packet covers two at most, or one.
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_of_pairs> : flat<__operand, __length, __count, is_gathered> {
    typedef flat<__operand, __length, __count, is_gathered> base;
    two_elements<__length, typename base::stored> waiting[__count];
    GRIDSTRIDE_INLINED flat(const __operand& __source, int __times) : base(__source, __times) {}
    template <class __place>
    GRIDSTRIDE_INLINED int begin(const __place& __at, int __row) {
        base::begin(__at, __row);
        if (__at.left >= __length) this->gap = 0;  // to nothing else
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __left, int, int __k) {
        waiting[__k].load(this->at(__k), __left, this->gap);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __left, int __k) {
        waiting[__k].unpack(this->items, __left);
        return 0;
    }
};
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_of_ones> : flat<__operand, __length, __count, is_gathered> {
    typedef flat<__operand, __length, __count, is_gathered> base;
    typename base::stored waiting[__count];
    GRIDSTRIDE_INLINED flat(const __operand& __source, int __times) : base(__source, __times) {}
    GRIDSTRIDE_INLINED int load(int, int, int __k) {
        copy(waiting[__k], *reinterpret_cast<const typename base::stored*>(this->at(__k)));
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int, int __k) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) copy(this->items.items[__j], waiting[__k]);
        return 0;
    }
};
// What is the same for all packets of a thread is loaded once.
template <class __operand, int __length, int __kind>
struct flat_once : flat<__operand, __length, 1, __kind> {
    typedef flat<__operand, __length, 1, __kind> base;
    GRIDSTRIDE_INLINED flat_once(const __operand& __source) : base(__source, 1) {}
    template <class __place>
    GRIDSTRIDE_INLINED int begin(const __place& __at, int __row) {
        base::begin(__at, __row);
        base::load(__at.left, __row, 0);
        return base::unpack(__at.left, 0);
    }
    GRIDSTRIDE_INLINED int load(int, int, int) { return 0; }
    GRIDSTRIDE_INLINED int unpack(int, int) { return 0; }
    template <class __place>
    GRIDSTRIDE_INLINED typename base::stored& in_memory(const __place& __at, int) const { return base::in_memory(__at, 0); }
};
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_same + is_flat> : flat_once<__operand, __length, is_flat> {
    GRIDSTRIDE_INLINED flat(const __operand& __source, int) : flat_once<__operand, __length, is_flat>(__source) {}
};
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_same + is_of_rows> : flat_once<__operand, __length, is_of_rows> {
    GRIDSTRIDE_INLINED flat(const __operand& __source, int) : flat_once<__operand, __length, is_of_rows>(__source) {}
};
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_same + is_of_pairs> : flat_once<__operand, __length, is_of_pairs> {
    GRIDSTRIDE_INLINED flat(const __operand& __source, int) : flat_once<__operand, __length, is_of_pairs>(__source) {}
};
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_same + is_of_ones> : flat_once<__operand, __length, is_of_ones> {
    GRIDSTRIDE_INLINED flat(const __operand& __source, int) : flat_once<__operand, __length, is_of_ones>(__source) {}
};
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_one_row> : flat_once<__operand, __length, is_gathered> {
    typedef flat_once<__operand, __length, is_gathered> base;
    GRIDSTRIDE_INLINED flat(const __operand& __source, int) : base(__source) {}
    template <class __place>
    GRIDSTRIDE_INLINED int begin(const __place& __first, int __row) {
        const int __step = int(this->source.step), __end = __row * __step;
        int __at = __first.within * __step;
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) {
            copy(this->items.items[__j], *reinterpret_cast<const typename base::stored*>(this->row + __at));
            __at += __step;
            if (__at == __end) __at = 0;
        }
        return 0;
    }
};
template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_column> : flat<__operand, __length, __count, is_gathered> {
    typedef flat<__operand, __length, __count, is_gathered> base;
    bytes_of_column<__length, typename base::stored> column;
    unsigned waiting[__count][3];
    GRIDSTRIDE_INLINED flat(const __operand& __source, int __times) : base(__source, __times) {}
    // Packets are whole words of a column apart.
    template <class __place>
    GRIDSTRIDE_INLINED int begin(const __place& __first, int __row) {
        base::begin(__first, __row);
        column.begin(this->at(1), __first.left, __row);
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int, int, int __k) {
        column.load(waiting[__k], this->at(__k));
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int, int __k) {
        column.unpack(this->items, waiting[__k]);
        return 0;
    }
};

template <class __operand, int __length, int __count>
struct flat<__operand, __length, __count, is_close> : flat<__operand, __length, __count, is_gathered> {
    typedef flat<__operand, __length, __count, is_gathered> base;
    close_bytes bytes;
    unsigned waiting[__count][3];
    GRIDSTRIDE_INLINED flat(const __operand& __source, int __times) : base(__source, __times) {}
    // Packets are whole words apart.
    template <class __place>
    GRIDSTRIDE_INLINED int begin(const __place& __first, int __row) {
        base::begin(__first, __row);
        const int __step = int(this->source.step), __further = int(this->gap);
        int __left = __first.left, __offset = 0;
        bytes.begin(this->at(1), [&](int __j) {
            if (__j > 0) {
                __offset += __step;
                if (--__left == 0) {
                    __left = __row;
                    __offset += __further;
                }
            }
            return __offset;
        });
        this->here += bytes.begin_at;
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int, int, int __k) {
        bytes.load(waiting[__k], this->at(__k));
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int, int __k) {
        const unsigned __bits = bytes.picked(waiting[__k]);
        memcpy(&this->items, &__bits, sizeof(this->items));
        return 0;
    }
};

}

#endif
