// What threads of `fold_along` and `fold_across` hold of inputs.
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

}

#endif
