// `turn_words`: squares of as many words as a word of four bytes has elements, one from each line, are turned.
#ifndef GRIDSTRIDE_WORD_SQUARES_H
#define GRIDSTRIDE_WORD_SQUARES_H

#include <gridstride/packets.h>

namespace gridstride {

template <class __word>
GRIDSTRIDE_INLINED void turn_words(__word (&)[1]) {}
GRIDSTRIDE_INLINED void turn_words(unsigned (&__words)[2]) {
    const unsigned __a = __words[0], __b = __words[1];
    __words[0] = __byte_perm(__a, __b, 0x5410);
    __words[1] = __byte_perm(__a, __b, 0x7632);
}
GRIDSTRIDE_INLINED void turn_words(unsigned (&__words)[4]) {
    const unsigned __ab = __byte_perm(__words[0], __words[1], 0x5140), __cd = __byte_perm(__words[2], __words[3], 0x5140);
    const unsigned __ab2 = __byte_perm(__words[0], __words[1], 0x7362), __cd2 = __byte_perm(__words[2], __words[3], 0x7362);
    __words[0] = __byte_perm(__ab, __cd, 0x5410);
    __words[1] = __byte_perm(__ab, __cd, 0x7632);
    __words[2] = __byte_perm(__ab2, __cd2, 0x5410);
    __words[3] = __byte_perm(__ab2, __cd2, 0x7632);
}

}

#endif
