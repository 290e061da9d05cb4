// `fold_lines`: folds along one axis, in which threads take packets. The order of the operations depends on the shape
// alone, not on where the elements lie.
#ifndef GRIDSTRIDE_FOLD_LINES_H
#define GRIDSTRIDE_FOLD_LINES_H

#include <gridstride/fold_blocks.h>
#include <gridstride/integer_sums.h>

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
    static GRIDSTRIDE_INLINED bool fits() { return true; }
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
    static GRIDSTRIDE_INLINED bool fits() { return false; }
    GRIDSTRIDE_INLINED void load(const char*, unsigned) {}
    GRIDSTRIDE_INLINED void unpack(unsigned, packet<__stored, __length>&) const {}
};

// How the packets of a tile are loaded.
enum loading { by_words, by_pieces, by_shifting };

// What a thread holds of an input: packets of it, and where the elements of its result begin.
template <class __operand, int __length, int __count>
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
    GRIDSTRIDE_INLINED bool has_words() const { return word_of<stored, __length>::is_at(base, source.step); }
    GRIDSTRIDE_INLINED int load_word(int __k, long long __packet) {
        return words[__k].load(at(__packet));
    }
    GRIDSTRIDE_INLINED bool has_pieces() const {
        return source.step == sizeof(stored) && in_pieces<__length, stored>::fits(base);
    }
    GRIDSTRIDE_INLINED bool is_between() const {
        return source.step == sizeof(stored) && between_two<__length, stored>::fits();
    }
    // The same for all packets where they are words long.
    GRIDSTRIDE_INLINED unsigned past_word() const { return static_cast<unsigned>(reinterpret_cast<unsigned long long>(base) % 16); }
    template <loading __how>
    GRIDSTRIDE_INLINED int load_as(int __k, long long __packet) {
        if (__how == by_words) words[__k].load(at(__packet));
        else if (__how == by_pieces) pieces[__k].load(at(__packet));
        else pairs[__k].load(at(__packet) - past_word(), past_word());
        return 0;
    }
    template <loading __how>
    GRIDSTRIDE_INLINED int unpack_as(int __k) {
        if (__how == by_words) words[__k].unpack(packets[__k]);
        else if (__how == by_pieces) pieces[__k].unpack(packets[__k]);
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

// The fold of neighbors in pairs: `__value_of(number)` is one of them. A loop would be unrolled only after the compiler has
// compared what it knows of the places of two neighbors.
template <int __first, int __count>
struct in_pairs {
    template <class __reduce, class __value>
    static GRIDSTRIDE_INLINED auto fold(const __reduce& __do, const __value& __value_of) {
        return __do(in_pairs<__first, __count / 2>::fold(__do, __value_of),
                    in_pairs<__first + __count / 2, __count - __count / 2>::fold(__do, __value_of));
    }
};
template <int __first>
struct in_pairs<__first, 1> {
    template <class __reduce, class __value>
    static GRIDSTRIDE_INLINED auto fold(const __reduce&, const __value& __value_of) { return __value_of(__first); }
};

// Values that take more than an instruction to add to: elements of a packet are folded among themselves first.
template <class __folding, class __reduce> struct is_costly;
template <class __type, bool __has_identity, class __reduce>
struct is_costly<folding<__type, __has_identity>, __reduce> {
    static constexpr bool value = !__has_identity || sizeof(__type) > 8;
};
template <class __type, bool __has_identity, class __reduce>
struct is_costly<folding<__type, __has_identity>, integer_sum<__reduce>> { static constexpr bool value = false; };
template <class __type, bool __has_identity, class __reduce, bool __is_largest>
struct is_costly<folding<__type, __has_identity>, byte_extreme<__reduce, __is_largest>> { static constexpr bool value = false; };

// Add a few values, `__value_of(number)`, to sums in turn, or their fold in pairs to the only one.
template <bool __are_costly>
struct added_values {
    template <int __count, int __sums_count, class __folding, class __reduce, class __value>
    static GRIDSTRIDE_INLINED void to(const __reduce& __do, __folding (&__sums)[__sums_count], const __value& __value_of) {
#pragma unroll
        for (int __j = 0; __j < __count; ++__j) __sums[__j % __sums_count].add(__do, __value_of(__j));
    }
};
template <>
struct added_values<true> {
    template <int __count, class __folding, class __reduce, class __value>
    static GRIDSTRIDE_INLINED void to(const __reduce& __do, __folding (&__sums)[1], const __value& __value_of) {
        __sums[0].add(__do, in_pairs<0, __count>::fold(__do, __value_of));
    }
};

// In which places are counted: others need not be known so well.
template <class __counter, bool __is_costly> struct counter_of { typedef long long type; };
template <class __counter> struct counter_of<__counter, true> { typedef __counter type; };

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
template <int __length, int __sums_count, class __folding, class __map, class __reduce, bool __is_largest, class __counted, class __input>
GRIDSTRIDE_INLINED void add_line(const __map&, const byte_extreme<__reduce, __is_largest>& __do, __folding (&__sums)[__sums_count],
                                 const __counted&, long long, int __last, int __k, __input& __one) {
    add_integers<false>(__do, __sums[__k % __sums_count], __one.packets[__k], 0, __last);
}

// A thread's packets of a tile: `apart` lies between two, so their addresses differ by a constant where that is one. All
// are loaded before the first is used.
struct line_tile {
    long long first, end;
    int apart;
    GRIDSTRIDE_INLINED long long at(int __k) const { return first + __k * apart; }
};

template <int __length, int __count, loading __how, bool __are_all, int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_tile(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                 const __counted& __from, const line_tile& __tile, __inputs&... __all) {
    // Packets that take two words are fewer at once, beside values that take registers too.
    constexpr int __room = sizeof(__folding) > 24 ? 1 : sizeof(__folding) > 4 || !__are_all ? 2 : __count;
    constexpr int __at_once = __how == by_shifting && __count > __room ? __room : __count;
#pragma unroll 1
    for (int __begin = 0; __begin < __count; __begin += __at_once) {
#pragma unroll
        for (int __k = 0; __k < __at_once; ++__k)
            if (__are_all || __tile.at(__begin + __k) < __tile.end)
                swallow(__all.template load_as<__how>(__k, __tile.at(__begin + __k))...);
#pragma unroll
        for (int __k = 0; __k < __at_once; ++__k)
            if (__are_all || __tile.at(__begin + __k) < __tile.end) {
                swallow(__all.template unpack_as<__how>(__k)...);
                whole_line<is_costly<__folding, __reduce>::value>::template add<__length>(__do_map, __do, __sums, __from, __tile.at(__begin + __k), __k, __all...);
            }
    }
}

// Packets of a line, by `__group` threads of which this has number `__lane`: each so many neighbors (`__lanes`, or all of
// the group) take tiles one after another.
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_tiles(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                  const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                  __inputs&... __all) {
    const int __apart = __lanes ? __lanes : __group, __own = __lane & (__apart - 1), __step = __group * __count;
    line_tile __tile = {__begin + (__lane - __own) * __count + __own, __end, __apart};
    const long long __full = __end - __apart * __count + __own;  // where the last tile of which there is all begins
    // Where a fold is a long text it is there once for each way to load, for tiles of which there is not all.
    constexpr bool __is_short = !is_costly<__folding, __reduce>::value;
    const bool __have_pieces = all_of(__all.has_pieces()...);
    if (all_of(__all.has_words()...)) {
        for (; __tile.first <= __full; __tile.first += __step)
            add_tile<__length, __count, by_words, true>(__do_map, __do, __sums, __from, __tile, __all...);
    } else if (__is_short && __have_pieces) {
        for (; __tile.first <= __full; __tile.first += __step)
            add_tile<__length, __count, by_pieces, true>(__do_map, __do, __sums, __from, __tile, __all...);
    }
    if (__have_pieces) {
        for (; __tile.first < __end; __tile.first += __step) {
            add_tile<__length, __count, by_pieces, false>(__do_map, __do, __sums, __from, __tile, __all...);
            if (__is_short) break;
        }
    } else if (all_of(__all.is_between()...)) {
        for (; __is_short && __tile.first <= __full; __tile.first += __step)
            add_tile<__length, __count, by_shifting, true>(__do_map, __do, __sums, __from, __tile, __all...);
        for (; __tile.first < __end; __tile.first += __step) {
            add_tile<__length, __count, by_shifting, false>(__do_map, __do, __sums, __from, __tile, __all...);
            if (__is_short) break;
        }
    } else {
        for (; __tile.first < __end; __tile.first += __step)
#pragma unroll 1
            for (int __k = 0; __k < __count && __tile.at(__k) < __end; ++__k) {
                swallow(__all.load(0, __tile.at(__k), __length)...);
                swallow(__all.unpack(0)...);
                whole_line<is_costly<__folding, __reduce>::value>::template add<__length>(__do_map, __do, __sums, __from, __tile.at(__k), 0, __all...);
            }
    }
}

// The same where all packets are words.
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_words_of_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                          const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                          __input& __one) {
    const int __apart = __lanes ? __lanes : __group, __own = __lane & (__apart - 1), __step = __group * __count;
    line_tile __tile = {__begin + (__lane - __own) * __count + __own, __end, __apart};
    const long long __full = __end - __apart * __count + __own;
    for (; __tile.first <= __full; __tile.first += __step)
        add_tile<__length, __count, by_words, true>(__do_map, __do, __sums, __from, __tile, __one);
    if (__tile.first < __end) add_tile<__length, __count, by_words, false>(__do_map, __do, __sums, __from, __tile, __one);
}

// Packets from `__begin` to before `__end` of a line of so many elements.
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class... __inputs>
GRIDSTRIDE_INLINED void add_some_of_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                         const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                         long long __elements, __inputs&... __all) {
    const long long __whole = __elements / __length;
    add_tiles<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin, __end < __whole ? __end : __whole, __lane, __group, __all...);
    if (__lane == 0 && __whole < __end) {
        const int __last = int(__elements - __whole * __length);
        swallow(__all.load(0, __whole, __last)...);
        swallow(__all.unpack(0)...);
        add_line<__length>(__do_map, __do, __sums, __from, __whole, __last, 0, __all...);
    }
}

// Of small integers, which are folded in whichever order: by the words in which they lie, wherever the line begins.
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_integers_of_line(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__sums_count],
                                             const __counted& __from, long long __begin, long long __end, int __lane,
                                             int __group, long long __elements, __input& __one) {
    typedef typename __input::stored __stored;
    if (__begin >= __end) return;
    if (__one.source.step != sizeof(__stored) || __one.past_word() % sizeof(__stored) != 0) {
#pragma unroll 1
        for (long long __packet = __begin + __lane; __packet < __end; __packet += __group) {
            const long long __left = __elements - __packet * __length;
            const int __last = __left < __length ? int(__left) : __length;
            __one.load(0, __packet, __last);
            __one.unpack(0);
            add_line<__length>(__do_map, __do, __sums, __from, __packet, __last, 0, __one);
        }
        return;
    }
    // Words of which all elements are the line's, and those at its ends.
    const int __before = int(__one.past_word() / sizeof(__stored));
    const long long __words = (__before + __elements) / __length;
    const int __after = int(__before + __elements - __words * __length);
    const bool __has_first = __before != 0 && __begin == 0, __has_last = __after != 0 && __end * __length >= __elements;
    __one.base -= __before * int(sizeof(__stored));
    word_of<__stored, __length> __first, __last;
    const bool __takes_first = __has_first && __lane == 0;
    const bool __takes_last = __has_last && __lane == __group - 1 && (__words > 0 || __before == 0);
    if (__takes_first) __first.load(__one.base);
    if (__takes_last) __last.load(__one.at(__words));
    add_words_of_line<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin + __has_first,
                                                  __end * __length >= __elements ? __words : __end, __lane, __group, __one);
    if (__takes_first) add_integers<false>(__do, __sums[0], __first, __before, __words > 0 ? __length : __after);
    if (__takes_last) add_integers<false>(__do, __sums[0], __last, 0, __after);
}
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, class __counted, class __input>
GRIDSTRIDE_INLINED void add_some_of_line(const __map& __do_map, const integer_sum<__reduce>& __do, __folding (&__sums)[__sums_count],
                                         const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                         long long __elements, __input& __one) {
    add_integers_of_line<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin, __end, __lane, __group, __elements, __one);
}
template <int __length, int __count, int __lanes, int __sums_count, class __folding, class __map, class __reduce, bool __is_largest, class __counted, class __input>
GRIDSTRIDE_INLINED void add_some_of_line(const __map& __do_map, const byte_extreme<__reduce, __is_largest>& __do, __folding (&__sums)[__sums_count],
                                         const __counted& __from, long long __begin, long long __end, int __lane, int __group,
                                         long long __elements, __input& __one) {
    add_integers_of_line<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin, __end, __lane, __group, __elements, __one);
}

template <int __length, int __count, int __lanes, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_line(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                  const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                  __inputs&&... __all) {
    constexpr int __sums_count = is_costly<__folding, __reduce>::value ? 1 : __length < most_sums ? __length : most_sums;
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1);
    // Blocks that run at the same time take parts of one result after another: other results may lie in the same banks.
    unsigned __block = blockIdx.x, __part = 0;
    if (__space.parts > 1) {
        const unsigned __number = blockIdx.y * gridDim.x + blockIdx.x;
        __block = __number / __space.parts;
        __part = __number - __block * __space.parts;
    }
    const long long __result = (static_cast<long long>(__block) * fold_threads + threadIdx.x) >> (__ffs(__group) - 1);
    const bool __is_inside = __result < __space.outputs;
    const counted_along<typename counter_of<__counter, is_costly<__folding, __reduce>::value>::type> __from(__space, settle(__space, __is_inside ? __result : 0, 0, __all...));
    const long long __begin = __part * __space.part;
    long long __end = __begin + __space.part;
    if (__end > __space.fold.count) __end = __space.fold.count;
    if (!__is_inside) __end = 0;
    __folding __sums[__sums_count];
#pragma unroll
    for (int __j = 0; __j < __sums_count; ++__j) __sums[__j] = __start;
    add_some_of_line<__length, __count, __lanes>(__do_map, __do, __sums, __from, __begin, __end, __lane, __group, __space.fold_row, __all...);
    join_own(__do, __sums);
    join_group(__do, __sums[0], __group, __shared);
    if (__lane == 0 && __is_inside) __do_finish(__result, int(__part), __sums[0]);
}

// For results that a warp or more share, which have the more to load at once.
template <int __count, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_long_lines(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_line<__length, __count, 32, __counter>(__do_map, __do, __do_finish, __start, __space, __shared,
                                     line_input<__operands, __length, __count>(__inputs)...);
}

template <int __count, class __counter, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_lines(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_line<__length, __count, 0, __counter>(__do_map, __do, __do_finish, __start, __space, __shared,
                                    line_input<__operands, __length, __count>(__inputs)...);
}

// Take a value from memory, by words where it is made of them.
template <class __type, bool = sizeof(__type) % 4 == 0 && alignof(__type) % 4 == 0>
struct part_of {
    static GRIDSTRIDE_INLINED void take(__type& __to, const __type& __from) { copy(__to, __from); }
};
template <class __type>
struct part_of<__type, true> {
    static GRIDSTRIDE_INLINED void take(__type& __to, const __type& __from) {
        unsigned __bits[sizeof(__type) / 4];
#pragma unroll
        for (int __k = 0; __k < int(sizeof(__type) / 4); ++__k) __bits[__k] = reinterpret_cast<const unsigned*>(&__from)[__k];
        memcpy(&__to, __bits, sizeof(__type));
    }
};

// The parts of each result, which lie one after another.
template <class __folding, class __map, class __reduce, class __finish, int __axes, class __operand>
GRIDSTRIDE_INLINED void fold_parts(const __map&, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                   const __operand& __parts) {
    constexpr int __count = 4;
    const int __group = __space.group, __lane = threadIdx.x & (__group - 1), __row = int(__space.fold_row);
    const long long __result = (static_cast<long long>(blockIdx.x) * fold_threads + threadIdx.x) >> (__ffs(__group) - 1);
    const __folding* __from = reinterpret_cast<const __folding*>(__parts.data) + __result * __row;
    __folding __sum = __start;
    for (int __part = __result < __space.outputs ? __lane : __row; __part < __row; __part += __count * __group) {
        __folding __some[__count];
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__part + __k * __group < __row) part_of<__folding>::take(__some[__k], __from[__part + __k * __group]);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (__part + __k * __group < __row) __sum.add(__do, __some[__k]);
    }
    join_group(__do, __sum, __group, __shared);
    if (__lane == 0 && __result < __space.outputs) __do_finish(__result, 0, __sum);
}

}

#endif
