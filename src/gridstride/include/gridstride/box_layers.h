// Cells of boxes (see boxes.h), which are elements of all layers, and as many words of layers: each is made of the other.
#ifndef GRIDSTRIDE_BOX_LAYERS_H
#define GRIDSTRIDE_BOX_LAYERS_H

#include <gridstride/word_squares.h>

namespace gridstride {

// Of four or eight bytes each.
template <class __stored, int __layers, bool = __layers != 1 && sizeof(__stored) < 4 && (sizeof(__stored) * __layers) % 4 == 0>
struct layers_of {
    typedef typename whole<__layers, __stored>::type cell;
    static GRIDSTRIDE_INLINED void turn(cell (&__cells)[__layers]) {
        constexpr int __square = 4 / sizeof(__stored), __words = __layers / __square;
        unsigned __from[__layers][__words], __to[__layers][__words];
        memcpy(__from, __cells, sizeof(__from));
#pragma unroll
        for (int __a = 0; __a < __words; ++__a)
#pragma unroll
            for (int __b = 0; __b < __words; ++__b) {
                unsigned __some[__square];
#pragma unroll
                for (int __j = 0; __j < __square; ++__j) __some[__j] = __from[__a * __square + __j][__b];
                turn_words(__some);
#pragma unroll
                for (int __j = 0; __j < __square; ++__j) __to[__b * __square + __j][__a] = __some[__j];
            }
        memcpy(__cells, __to, sizeof(__to));
    }
};
template <class __stored, int __layers>
struct layers_of<__stored, __layers, false> {
    typedef typename whole<__layers, __stored>::type cell;
    static GRIDSTRIDE_INLINED void turn(cell (&__cells)[__layers]) {
        packet<__stored, __layers> __from[__layers], __to[__layers];
#pragma unroll
        for (int __j = 0; __j < __layers; ++__j) whole<__layers, __stored>::unpack(__from[__j], __cells[__j]);
#pragma unroll
        for (int __j = 0; __j < __layers; ++__j)
#pragma unroll
            for (int __k = 0; __k < __layers; ++__k) copy(__to[__k].items[__j], __from[__j].items[__k]);
#pragma unroll
        for (int __j = 0; __j < __layers; ++__j) __cells[__j] = whole<__layers, __stored>::packed(__to[__j]);
    }
};

}

#endif
