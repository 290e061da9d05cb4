// Packets of a line that is folded: how they are loaded, and how their elements are added.
#ifndef GRIDSTRIDE_LINE_PACKETS_H
#define GRIDSTRIDE_LINE_PACKETS_H

#include <gridstride/value_pairs.h>

namespace gridstride {

// A packet of consecutive elements that begins between two words of 16 bytes, as elements, small ones four bytes at once.
template <int __length, class __stored, bool = is_one_word<__stored, __length>::bytes == 16 && sizeof(__stored) <= 8>
struct in_pieces {
    typedef typename word<sizeof(__stored) < 4 ? 4 : sizeof(__stored)>::type piece;
    static constexpr int count = 16 / sizeof(piece);
    piece bits[count];
    static GRIDSTRIDE_INLINED bool fits(const char* __at) {
        return sizeof(__stored) >= 4 || reinterpret_cast<unsigned long long>(__at) % 4 == 0;
    }
    GRIDSTRIDE_INLINED void load(const char* __at) {
#pragma unroll
        for (int __j = 0; __j < count; ++__j) bits[__j] = reinterpret_cast<const piece*>(__at)[__j];
    }
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>& __to) const { memcpy(&__to, bits, 16); }
};
template <int __length, class __stored>
struct in_pieces<__length, __stored, false> {
    static GRIDSTRIDE_INLINED bool fits(const char*) { return false; }
    GRIDSTRIDE_INLINED void load(const char*) {}
    GRIDSTRIDE_INLINED void unpack(packet<__stored, __length>&) const {}
};
// The same from the two words that it touches, of elements that are no pieces.
template <int __length, class __stored, bool = kind_between<__length, __stored>::value == 16 && (sizeof(__stored) < 4 || __length == 1)>
struct between_two {
    uint4 low, high;
    static __device__ constexpr bool fits() { return true; }
    // From a word on, of which so many bytes are not of the packet.
    GRIDSTRIDE_INLINED void load(const char* __word, unsigned __off) {
        low = reinterpret_cast<const uint4*>(__word)[0];
        if (__off) high = reinterpret_cast<const uint4*>(__word)[1];
    }
    GRIDSTRIDE_INLINED void unpack(unsigned __off, packet<__stored, __length>& __to) const {
        whole<__length, __stored>::unpack(__to, between<__length, __stored>::joined(low, high, __off));
    }
};
template <int __length, class __stored>
struct between_two<__length, __stored, false> {
    static __device__ constexpr bool fits() { return false; }
    GRIDSTRIDE_INLINED void load(const char*, unsigned) {}
    GRIDSTRIDE_INLINED void unpack(unsigned, packet<__stored, __length>&) const {}
};

// How the packets of a tile are loaded.
enum loading { by_words, by_pieces, by_shifting, by_elements };

// What a thread holds of an input: packets of it, and where the elements of its result begin. `__are_words`: whether all
// packets are known to be words.
template <class __operand, int __length, int __count, bool __are_words = false>
struct line_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    word_of<stored, __length> words[__count];
    in_pieces<__length, stored> pieces[__count];
    between_two<__length, stored> pairs[__count];
    packet<stored, __length> packets[__count];

    GRIDSTRIDE_INLINED line_input(const __operand& __source) : source(__source), base(__source.data) {}
    GRIDSTRIDE_INLINED const char* at(long long __packet) const {
        return base + __packet * int(__length * sizeof(stored));
    }
    GRIDSTRIDE_INLINED bool has_words() const { return __are_words || word_of<stored, __length>::is_at(base, source.step); }
    GRIDSTRIDE_INLINED int load_word(int __k, long long __packet) {
        return words[__k].load(at(__packet));
    }
    GRIDSTRIDE_INLINED bool has_pieces() const {
        return __are_words || (source.step == sizeof(stored) && in_pieces<__length, stored>::fits(base));
    }
    // Whether packets of elements one after another come by these, wherever they begin.
    static __device__ constexpr bool are_pieces() { return is_one_word<stored, __length>::bytes == 16 && sizeof(stored) >= 4 && sizeof(stored) <= 8; }
    static __device__ constexpr bool are_pairs() { return between_two<__length, stored>::fits(); }
    GRIDSTRIDE_INLINED bool is_between() const {
        return source.step == sizeof(stored) && between_two<__length, stored>::fits();
    }
    // The same for all packets where they are words long.
    GRIDSTRIDE_INLINED unsigned past_word() const {
        return __are_words ? 0 : bytes_past<16>(base);
    }
    template <loading __how>
    GRIDSTRIDE_INLINED int load_as(int __k, long long __packet) {
        if (__are_words || __how == by_words) words[__k].load(at(__packet));
        else if (__how == by_pieces) pieces[__k].load(at(__packet));
        else if (__how == by_elements) load(__k, __packet, __length);
        else pairs[__k].load(at(__packet) - past_word(), past_word());
        return 0;
    }
    template <loading __how>
    GRIDSTRIDE_INLINED int unpack_as(int __k) {
        if (__are_words || __how == by_words) words[__k].unpack(packets[__k]);
        else if (__how == by_pieces) pieces[__k].unpack(packets[__k]);
        else if (__how == by_elements) unpack(__k);
        else pairs[__k].unpack(past_word(), packets[__k]);
        return 0;
    }
    // Elements wait as one word where they make one, whichever way they came: so they are taken apart in one place.
    GRIDSTRIDE_INLINED int unpack(int __k) {
        return is_one_word<stored, __length>::value ? words[__k].unpack(packets[__k]) : 0;
    }
    GRIDSTRIDE_INLINED int load(int __k, long long __packet, int __last) {
        load_packet<__length>(packets[__k], base + __packet * __length * source.step, source.step, 0, __last);
        if (is_one_word<stored, __length>::value) words[__k].pack(packets[__k]);
        return 0;
    }
};

// More sums than this would only take registers: so many additions are under way at once.
constexpr int most_sums = 4;

// Where a thread's elements begin, as the user's expressions count them. Where `__counter` is int, places ascend by one.
template <class __counter>
struct counted_from {
    static constexpr bool by_one = sizeof(__counter) == sizeof(int);
    long long number, number_step, position, position_step;
    template <int __axes>
    GRIDSTRIDE_INLINED counted_from(const fold_space<__axes>& __space, long long __number)
        : number(__number), number_step(__space.fold_numbers.step), position(0), position_step(__space.position.step) {}
    GRIDSTRIDE_INLINED __counter first_place(long long __element) const {
        return places<__counter>::first(position + __element * (by_one ? 1 : position_step));
    }
    GRIDSTRIDE_INLINED long long place(__counter __first, int __j) const {
        return by_one ? places<__counter>::after(__first, __j) : __first + __j * position_step;
    }
};
// The same where one axis is folded, along which places ascend by one.
template <class __counter = long long>
struct counted_along {
    long long number, number_step;
    template <int __axes>
    GRIDSTRIDE_INLINED counted_along(const fold_space<__axes>& __space, long long __number)
        : number(__number), number_step(__space.fold_numbers.step) {}
    GRIDSTRIDE_INLINED __counter first_place(long long __element) const { return places<__counter>::first(__element); }
    GRIDSTRIDE_INLINED long long place(__counter __first, int __j) const { return places<__counter>::after(__first, __j); }
};

template <class __map, class __counted, class __counter, class... __inputs>
GRIDSTRIDE_INLINED auto value_of_line(const __map& __do_map, const __counted& __from, long long __element, __counter __place,
                                      int __k, int __j, __inputs&... __all) {
    return __do_map(__from.number + (__element + __j) * __from.number_step, __from.place(__place, __j),
                    item_of<typename __inputs::operand>(__all.packets[__k], __j)...);
}

// Add elements of a packet.
template <int __length, int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                 const __counted& __from, long long __packet, int __last, int __k,
                                 __inputs&... __all) {
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__j < __last)
            __sums[__j % __sums_count].add(__do, value_of_line(__do_map, __from, __packet * __length, __from.first_place(__packet * __length), __k, __j, __all...));
}

// Add elements of a packet from one on, of which the first is, or would be, number `__element` of the line.
template <int __length, int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_end_of_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                        const __counted& __from, long long __element, int __first, int __k,
                                        __inputs&... __all) {
#pragma unroll
    for (int __j = 1; __j < __length; ++__j)
        if (__j >= __first)
            __sums[__j % __sums_count].add(__do, value_of_line(__do_map, __from, __element, __from.first_place(__element), __k, __j, __all...));
}

// Add all elements of a packet.
template <bool>
struct whole_line {
    template <int __length, class __map, class __reduce, class __sums, class __counted, class... __inputs>
    static GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, __sums& __all_sums, const __counted& __from,
                                       long long __packet, int __k, __inputs&... __all) {
        add_line<__length>(__do_map, __do, __all_sums, __from, __packet, __length, __k, __all...);
    }
};
template <>
struct whole_line<true> {
    template <int __length, class __map, class __reduce, class __sums, class __counted, class... __inputs>
    static GRIDSTRIDE_INLINED void add(const __map& __do_map, const __reduce& __do, __sums& __all_sums, const __counted& __from,
                                       long long __packet, int __k, __inputs&... __all) {
        const long long __element = __packet * __length;
        const auto __place = __from.first_place(__element);
        __all_sums[0].add(__do, in_pairs<0, __length>::fold(__do, [&](int __j) {
            return value_of_line(__do_map, __from, __element, __place, __k, __j, __all...);
        }));
    }
};

// Of small integers, by words.
template <int __length, int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_line(const __map&, const integer_sum<__reduce>& __do, __folding (&__sums)[__sums_count],
                                 const __counted&, long long, int __last, int __k, __input& __one) {
    add_integers<false>(__do, __sums[__k % __sums_count], __one.packets[__k], 0, __last);
}
template <int __length, int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_end_of_line(const __map&, const integer_sum<__reduce>& __do, __folding (&__sums)[__sums_count],
                                        const __counted&, long long, int __first, int __k, __input& __one) {
    add_integers<false>(__do, __sums[__k % __sums_count], __one.packets[__k], __first, __length);
}
template <int __length, int __sums_count, class __folding, class __map, class __reduce, bool __is_largest, class __counted, class __input>
GRIDSTRIDE_INLINED void add_line(const __map&, const byte_extreme<__reduce, __is_largest>& __do, __folding (&__sums)[__sums_count],
                                 const __counted&, long long, int __last, int __k, __input& __one) {
    add_integers<false>(__do, __sums[__k % __sums_count], __one.packets[__k], 0, __last);
}

template <int __length, int __sums_count, class __folding, class __map, class __reduce, bool __is_largest, class __counted, class __input>
GRIDSTRIDE_INLINED void add_end_of_line(const __map&, const byte_extreme<__reduce, __is_largest>& __do, __folding (&__sums)[__sums_count],
                                        const __counted&, long long, int __first, int __k, __input& __one) {
    add_integers<false>(__do, __sums[__k % __sums_count], __one.packets[__k], __first, __length);
}
}

#endif
