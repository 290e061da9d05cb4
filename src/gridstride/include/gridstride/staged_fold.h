// What threads of `fold_along` and `fold_across` hold of inputs, and how they add it.
#ifndef GRIDSTRIDE_STAGED_FOLD_H
#define GRIDSTRIDE_STAGED_FOLD_H

#include <gridstride/fold_parts.h>
#include <gridstride/integer_sums.h>

namespace gridstride {

// What a thread holds of an input: packets of it, and where the elements of its result begin.
template <class __operand, int __length, int __count>
struct staged_fold {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    const char* places[__count];
    word_of<stored, __length> words[__count];
    packet<stored, __length> packets[__count];

    GRIDSTRIDE_INLINED staged_fold(const __operand& __source) : source(__source), base(__source.data) {}
    GRIDSTRIDE_INLINED bool is_word(int __k) const {
        return word_of<stored, __length>::is_at(places[__k], source.step);
    }
    GRIDSTRIDE_INLINED int load_word(int __k) { return words[__k].load(places[__k]); }
    GRIDSTRIDE_INLINED int unpack(int __k) { return words[__k].unpack(packets[__k]); }
    GRIDSTRIDE_INLINED int load(int __k, int __last) {
        load_packet<__length>(packets[__k], places[__k], source.step, 0, __last);
        return 0;
    }
};

// Go along the folded axes from one on to where the remaining index says, with the number of a packet's first element and
// its place in the fold. (A structure of both arrays would be other instructions.)
template <int __from, int __count, int __axes, class... __staged>
GRIDSTRIDE_INLINED void go_along_fold(const fold_space<__axes>& __space, long long (&__numbers)[__count], long long (&__positions)[__count],
                                      int __k, long long __rest, __staged&... __inputs) {
#pragma unroll
    for (int __axis = __from; __axis < __axes; ++__axis) {
        if (__axis >= __space.fold.ndim) break;
        const long long __at = __axis + 1 < __space.fold.ndim ? taken_off(__space.fold, __rest, __axis) : __rest;
        __numbers[__k] += __at * __space.fold_numbers.strides[__axis];
        __positions[__k] += __at * __space.position.strides[__axis];
        swallow((__inputs.places[__k] += __at * __inputs.source.strides[__axis])...);
    }
}

// Add so many elements of a packet, whose numbers and places are so far apart.
template <int __length, int __count, class __folding, class __map, class __reduce, class... __staged>
GRIDSTRIDE_INLINED void add_some_of_packet(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                           const long long (&__numbers)[__count], const long long (&__positions)[__count],
                                           long long __number_step, long long __position_step, int __k, int __last,
                                           __staged&... __inputs) {
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__j < __last)
            __sums[__j].add(__do, __do_map(__numbers[__k] + __j * __number_step, __positions[__k] + __j * __position_step,
                                           element<typename __staged::operand>(__inputs.packets[__k].items[__j]).get()...));
}

// Add packets that are words, all of which are loaded before one is taken apart.
template <int __length, int __count, class __folding, class __map, class __reduce, class... __staged>
GRIDSTRIDE_INLINED void add_word_packets(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                         const long long (&__numbers)[__count], const long long (&__positions)[__count],
                                         long long __number_step, long long __position_step, __staged&... __inputs) {
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) swallow(__inputs.load_word(__k)...);
#pragma unroll
    for (int __k = 0; __k < __count; ++__k) {
        swallow(__inputs.unpack(__k)...);
        add_some_of_packet(__do_map, __do, __sums, __numbers, __positions, __number_step, __position_step, __k, __length, __inputs...);
    }
}

}

#endif
