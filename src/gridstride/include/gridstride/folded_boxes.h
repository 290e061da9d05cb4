// What a thread of `fold_boxes` holds: the values of its columns, and packets of its inputs.
#ifndef GRIDSTRIDE_FOLDED_BOXES_H
#define GRIDSTRIDE_FOLDED_BOXES_H

#include <gridstride/fold_parts.h>
#include <gridstride/integer_sums.h>

namespace gridstride {

// Bytes of the values of a box at most, without gaps.
constexpr int largest_box = 46 * 1024;
// Values of a box at most, with gaps: fewer of large elements, and where so many bytes are kept of small ones.
__device__ constexpr int box_values(int __kept, int __size) {
    return larger(__kept, __size) > 8 || (__size > 1 && __kept > 2 * __size) ? 2048 : 4096;
}

// What a thread holds of the columns of a packet.
template <class __folding, int __length>
struct box_columns {
    __folding sums[__length];
    GRIDSTRIDE_INLINED void begin(const __folding& __start) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) sums[__j] = __start;
    }
    template <class __map, class __reduce, class... __inputs>
    GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, int __k, __inputs&... __all) {
        add_some(__do_map, __do, __k, __length, __all...);
    }
    template <class __map, class __reduce, class... __inputs>
    GRIDSTRIDE_INLINED void add_some(const __map& __do_map, const __reduce& __do, int __k, int __last, __inputs&... __all) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            if (__j < __last) sums[__j].add(__do, __do_map(0, 0, item_of<typename __inputs::operand>(__all.packets[__k], __j)...));
    }
    GRIDSTRIDE_INLINED int fill(const char*, int) { return 0; }
    GRIDSTRIDE_INLINED __folding value(int __j, int) const { return sums[__j]; }
};
template <class __columns>
GRIDSTRIDE_INLINED void fill_columns(__columns&, const char*, int) {}
// Of bytes that are folded in words, which have room for the rows of a part, and of extremes whose rows are told.
template <class __columns, int __length>
struct box_byte_columns {
    __columns columns;
    template <class __folding>
    GRIDSTRIDE_INLINED void begin(const __folding&) { columns = __columns(); }
    template <class __map, class __reduce, class __input>
    GRIDSTRIDE_INLINED void add(const __map&, const __reduce&, int __k, __input& __one) { columns.add(__one.packets[__k]); }
    template <class __map, class __reduce, class __input>
    GRIDSTRIDE_INLINED void add_some(const __map&, const __reduce&, int __k, int __last, __input& __one) {
        columns.add_last(__one.packets[__k], __last);
    }
    // With elements of the first row, of which there are so many, where none is better than the worst.
    GRIDSTRIDE_INLINED int fill(const char* __at, int __last) {
        fill_columns(columns, __at, __last);
        return 0;
    }
    // Whose rows are so many places apart.
    GRIDSTRIDE_INLINED typename __columns::kept value(int __j, int __apart) const { return columns.value(__j, 0, __apart); }
};
template <bool __are_bytes, int __length, class __folding, class __reduce, class... __operands>
struct columns_of_box {
    typedef box_columns<__folding, __length> type;
    typedef __folding value;
};
template <int __length, class __folding, class __reduce, class __operand>
struct columns_of_box<true, __length, __folding, __reduce, __operand> {
    typedef typename columns_of_few<__reduce, typename __operand::stored, __length>::type columns;
    typedef box_byte_columns<columns, __length> type;
    typedef typename columns::kept value;
};

// A packet on its way: a word, or the words in which it lies; those of small elements are of four bytes, as are elements of
// as many.
template <class __stored, int __length, bool __is_word, int __size = sizeof(__stored)>
struct box_bits {
    static constexpr int count = __length * __size / 4;
    unsigned words[count + 1], shift;
    GRIDSTRIDE_INLINED void load(const char* __at) {
        const unsigned __past = __size < 4 ? bytes_past<4>(__at) : 0;
        const unsigned* __from = reinterpret_cast<const unsigned*>(__at - __past);
        shift = __past * 8;
#pragma unroll
        for (int __k = 0; __k < count; ++__k) words[__k] = __from[__k];
        if (__size < 4 && __past) words[count] = __from[count];
    }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to) {
        if (__size < 4) shift_words<count>(words, shift);
        memcpy(&__to, words, 4 * count);
    }
};
template <class __stored, int __length, int __size>
struct box_bits<__stored, __length, true, __size> : word_of<__stored, __length> {};
// Those of bytes are of 16: smaller ones would be asked for too often.
template <class __stored, int __length>
struct box_bits<__stored, __length, false, 1> : arriving_anywhere<__stored, __length, false> {};

// An input of which rows of boxes are folded.
template <class __operand, int __length, int __count, bool __are_words>
struct box_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char *base, *row;  // where the box begins, in the first row and in the thread's
    box_bits<stored, __length, __are_words> bits[__count];
    packet<stored, __length> packets[__count];

    GRIDSTRIDE_INLINED box_input(const __operand& __source) : source(__source), base(__source.data), row(nullptr) {}
    GRIDSTRIDE_INLINED const char* at(int __element) const { return row + __element * int(sizeof(stored)); }
    GRIDSTRIDE_INLINED int move_row(long long __bytes) {
        row += __bytes;
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __k, int __element, long long __further) {
        bits[__k].load(at(__element) + __further);
        return 0;
    }
    GRIDSTRIDE_INLINED int unpack(int __k) {
        bits[__k].unpack(packets[__k]);
        return 0;
    }
    // The first few elements of a packet, one after another: this happens seldom. Bytes move up to their places, since words
    // that are chosen by a number lie in local memory, and all packets with them. Of larger elements fewer packets are under
    // way, to which the registers that local memory saves are worth more.
    GRIDSTRIDE_INLINED int load_some(int __element, int __last) {
        constexpr int __size = sizeof(stored), __step = __size < 4 ? __size : 4, __words = (__length * __size + 3) / 4;
        unsigned __bits[__words] = {};
        if (__size == 1) {
#pragma unroll 1
            for (int __byte = __last - 1; __byte >= 0; --__byte) {
#pragma unroll
                for (int __k = __words - 1; __k > 0; --__k) __bits[__k] = __funnelshift_l(__bits[__k - 1], __bits[__k], 8);
                __bits[0] = __bits[0] << 8 | static_cast<unsigned char>(at(__element)[__byte]);
            }
        } else {
#pragma unroll 1
            for (int __byte = 0; __byte < __last * __size; __byte += __step) {
                unsigned __some = 0;
                memcpy(&__some, at(__element) + __byte, __step);
#pragma unroll
                for (int __k = 0; __k < __words; ++__k)
                    if (__byte / 4 == __k) __bits[__k] |= __some << __byte % 4 * 8;
            }
        }
        memcpy(&packets[0], __bits, __length * __size);
        return 0;
    }
};

}

#endif
