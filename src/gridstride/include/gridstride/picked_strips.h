// `picked_strips`: as `strips`, where all inputs lie along y and then along x: their stretches wait in shared memory as they
// lie in memory, and a thread picks the elements of one word of the last operand after the other from there.
#ifndef GRIDSTRIDE_PICKED_STRIPS_H
#define GRIDSTRIDE_PICKED_STRIPS_H

#include <gridstride/picked_tiles.h>

namespace gridstride {

template <class __operand, int __length>
struct picked_strip : picking<__operand, __length> {
    using picking<__operand, __length>::waits;
    using picking<__operand, __length>::from;
    typedef plane_part<false> part;
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored), word = size < 4 ? 4 : size, apart = turning_threads * __length;

    const __operand& source;
    char* corner;  // of the part
    char* waiting;
    char* from_word;  // in memory, in which the stretch begins
    int before;       // elements along x before the part
    unsigned first, pitch, end, gap;  // bytes: of the first element, from one x to the next, of all; and after 32 words
    int step;

    GRIDSTRIDE_INLINED picked_strip(const __operand& __source) : source(__source), corner(__source.data) {}

    GRIDSTRIDE_INLINED int enter(const part& __part) {
        corner += __part.x * source.step;
        return 0;
    }
    GRIDSTRIDE_INLINED row_starts<__length> row_starts_of() const {
        const row_starts<__length> __all = {static_cast<unsigned>(reinterpret_cast<unsigned long long>(corner)),
                                            static_cast<unsigned>(source.strides[0]), size};
        return __all;
    }
    GRIDSTRIDE_INLINED char* at(int __x, int __y) const { return corner + __x * source.step + __y * source.strides[0]; }
    // Threads read a word's elements apart: that is in different banks, unless it is an even number of words.
    GRIDSTRIDE_INLINED int begin(const part& __part, char*& __shared) {
        if (!waits) return 0;
        pitch = static_cast<unsigned>(source.step);
        before = __part.x > 0 ? __length - 1 : 0;
        gap = pitch * __length / word % 2 ? 0 : word;
        char* const __at = at(-before, 0);
        first = bytes_past<16>(__at);
        from_word = __at - first;
        end = __part.to + before <= 0 ? 0 : first + (__part.to + before - 1) * pitch + __part.height * size;
        step = int(apart * pitch + apart * pitch / (32 * word) * gap);
        waiting = __shared;
        const unsigned __all = (__part.width + __length) * pitch + 16;
        __shared += (__all + __all / 32 + 32) / 16 * 16;
        return 0;
    }
    GRIDSTRIDE_INLINED unsigned with_gaps(unsigned __byte) const { return __byte + __byte / (32 * word) * gap; }
    GRIDSTRIDE_INLINED int bring() const {
        if (!waits) return 0;
        if (gap) bring_stretch<word>();
        else bring_stretch<16>();
        return 0;
    }
    template <int __bytes>
    GRIDSTRIDE_INLINED void bring_stretch() const {
        // The bytes of one round are whole times 32 words.
        constexpr unsigned __round = turning_threads * __bytes;
        const unsigned __own = threadIdx.x * __bytes, __further = __round + __round / (32 * word) * gap;
        const char* __from = from_word + __own;
        char* __to = waiting + with_gaps(__own);
#pragma unroll 4
        for (unsigned __at = __own; __at < end; __at += __round, __from += __round, __to += __further)
            bring_word<__bytes>(__to, __from);
    }
    // Stand at the word that begins at `__x`.
    GRIDSTRIDE_INLINED int stand(int __x, int __y) {
        if (!waits) return this->stand_at(at(__x, __y));
        const unsigned __byte = first + (__x + before) * pitch + __y * size;
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) from[__j] = waiting + with_gaps(__byte + __j * pitch);
        return 0;
    }
    GRIDSTRIDE_INLINED int descend() { return this->go_on(apart * size, step); }
};

template <int __length, class __operation, int __axes, class... __picked>
GRIDSTRIDE_INLINED void pick_row(const __operation& __do, const element_space<__axes>& __space,
                                 const plane_part<false>& __part, int __y, int __phase, __picked&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    const long long __number = __part.number + __part.x * __numbers.step + __y * __numbers.strides[0];
    // The words that begin in this part: the next has the rest of the last one.
    const int __last = __part.to < __part.width - __phase ? __part.to : __part.width - __phase;
    const int __head = __part.from == 0 && __phase ? __length - __phase : -__phase;
    const int __tail = __head + (__last > __head ? (__last - __head) / __length * __length : 0);
    int __x = __head + threadIdx.x * __length;
    swallow(__all.stand(__x, __y)...);
#pragma unroll 4
    for (; __x < __tail; __x += turning_threads * __length) {
        swallow(__all.pick()...);
#pragma unroll
        for (int __j = 0; __j < __length; ++__j)
            __do(__number + (__x + __j) * __numbers.step,
                 element<typename __picked::operand>(__all.items.items[__j]).get()...);
        swallow(__all.store()...);
        swallow(__all.descend()...);
    }
#pragma unroll 1
    for (int __k = threadIdx.x; __k < 2 * __length; __k += turning_threads) {
        const int __at = __k < __length ? __k : __tail + __k - __length;
        if (__k < __length ? __at < __head && __at < __last : __at < __last)
            __do(__number + __at * __numbers.step,
                 element<typename __picked::operand>(
                     *reinterpret_cast<typename __picked::stored*>(__all.at(__at, __y))).get()...);
    }
}

template <int __length, class __operation, int __axes, class... __picked>
GRIDSTRIDE_INLINED void pick_strip(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                   __picked&&... __all) {
    plane_part<false> __part(__space, int(__space.width));
    enter_plane(__part, __space, __space.column, __all...);
    swallow(__all.begin(__part, __shared)...);
    const row_starts<__length> __starts = last_of(__all...).row_starts_of();
    swallow(__all.bring()...);
    await_words();
#pragma unroll 1
    for (int __y = 0; __y < __part.height; ++__y)
        pick_row<__length>(__do, __space, __part, __y, __starts.phase(__y), __all...);
}

// Length: the elements of a word of the last operand.
template <int __length, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void picked_strips(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                      const __operands&... __all) {
    pick_strip<__length>(__do, __space, __shared, picked_strip<__operands, __length>(__all)...);
}

}

#endif
