// `picked_tiles`: a loop over elements of tiles whose inputs wait in shared memory as they lie in memory, word by word and
// wherever words begin; a thread picks the elements of one word of the last operand after the other from there.
//
// Nothing is shifted, and no register holds what is on its way. A turned operand lies along y, with a line for each x; all
// others lie along x. Sides, parts and strides are those of turning.h. Where rows of the last operand begin between two
// sectors of memory, each row of a part begins so many elements before it, its phase: what is written are whole sectors. In
// every so-many-th row phases are the same, and inputs begin at the same place of a word.
#ifndef GRIDSTRIDE_PICKED_TILES_H
#define GRIDSTRIDE_PICKED_TILES_H

#include <gridstride/async_words.h>
#include <gridstride/turning.h>

namespace gridstride {

template <int __length, class __stored>
GRIDSTRIDE_INLINED void store_picked(const packet<__stored, __length>& __items, char* __to, bool __is_word) {
    if (__is_word)
        whole<__length, __stored>::store(__items, __to);
    else
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) copy(reinterpret_cast<__stored*>(__to)[__j], __items.items[__j]);
}

// Where rows of the last operand begin, in bytes; all that is asked is where in a word.
template <int __phases>
struct row_starts {
    unsigned first, pitch;
    int size;
    GRIDSTRIDE_INLINED int phase(int __y) const { return int((first + __y * pitch) / size % __phases); }
};

// What a thread stands at: a word of memory that is written, or as many elements that wait in shared memory.
template <class __operand, int __length>
struct picking {
    typedef typename __operand::stored stored;
    // What is written too is read where it is.
    static constexpr bool waits = !__operand::is_written;

    char* to;
    const char* from[__length];
    bool is_word;
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED picking() : is_word(false) {}
    GRIDSTRIDE_INLINED int stand_at(char* __to) {
        to = __to;
        is_word = whole<__length, stored>::fits(to);
        return 0;
    }
    GRIDSTRIDE_INLINED int go_on(long long __in_memory, int __waiting) {
        if (!waits) to += __in_memory;
        else
#pragma unroll
            for (int __j = 0; __j < __length; ++__j) from[__j] += __waiting;
        return 0;
    }
    GRIDSTRIDE_INLINED int pick() {
        if (!__operand::is_read) return 0;
        if (__operand::is_written) {
            load_packet<__length>(items, to, sizeof(stored), 0, __length);
        } else {
#pragma unroll
            for (int __j = 0; __j < __length; ++__j) copy(items.items[__j], *reinterpret_cast<const stored*>(from[__j]));
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int store() const {
        if (__operand::is_written) store_picked<__length>(items, to, is_word);
        return 0;
    }
};

// One operand. `x` and `y` are places in the part, before it too.
template <class __operand, int __length, int __phases, int __width, int __height>
struct picked : picking<__operand, __length> {
    using picking<__operand, __length>::waits;
    using picking<__operand, __length>::from;
    typedef plane_part<false> part;
    typedef row_starts<__phases> starts;
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored), word = size < 4 ? 4 : size, warps = turning_threads / 32;
    static constexpr int lines = __width + __phases - 1, line_words = __height * size / word, row_words = __width * size / word;
    static constexpr int apart = __phases > warps ? __phases : warps;  // rows with the same phase
    // One word more, in which lines may end, and for which neighboring lines begin in different banks; and one for each 32
    // lines, for which lines do so that are a word's elements apart.
    static constexpr int line_bytes = (line_words + 1) * word, row_bytes = (row_words + 1) * word, gap = __length > 1 ? word : 0;
    static constexpr int turned_bytes = (lines * line_bytes + (lines / 32 + 1) * gap + 15) / 16 * 16;
    static constexpr int straight_bytes = (__height * row_bytes + 15) / 16 * 16, same_bytes = (__height * size + 15) / 16 * 16;

    const __operand& source;
    char* corner;  // of the part
    char* waiting;
    int step;

    GRIDSTRIDE_INLINED picked(const __operand& __source) : source(__source), corner(__source.data) {}

    GRIDSTRIDE_INLINED bool is_turned() const { return source.strides[3] != 0; }
    GRIDSTRIDE_INLINED bool is_same() const { return source.step == 0; }
    GRIDSTRIDE_INLINED int enter(const part& __part) {
        corner += __part.x * source.step + __part.y * source.strides[0];
        return 0;
    }
    GRIDSTRIDE_INLINED starts row_starts_of() const {
        const starts __all = {static_cast<unsigned>(reinterpret_cast<unsigned long long>(corner)),
                              static_cast<unsigned>(source.strides[0]), size};
        return __all;
    }
    GRIDSTRIDE_INLINED char* at(int __x, int __y) const { return corner + __x * source.step + __y * source.strides[0]; }
    static GRIDSTRIDE_INLINED int past_word(const char* __at) {
        return word == size ? 0 : int(static_cast<unsigned>(reinterpret_cast<unsigned long long>(__at)) % word);
    }
    GRIDSTRIDE_INLINED char* waiting_line(int __line) const {
        return waiting + __line * line_bytes + static_cast<unsigned>(__line) / 32 * gap;
    }

    GRIDSTRIDE_INLINED int take_memory(char*& __shared) {
        waiting = __shared;
        if (waits) __shared += is_turned() ? turned_bytes : is_same() ? same_bytes : straight_bytes;
        return 0;
    }
    // All: the whole part, and what is before it, is in the plane.
    template <bool __all>
    GRIDSTRIDE_INLINED int bring(const part& __part, const starts& __starts) const {
        if (!waits) return 0;
        if (is_turned()) bring_lines<__all>(__part);
        else if (is_same()) bring_column(__part);
        else bring_rows<__all>(__part, __starts);
        return 0;
    }
    template <bool __all>
    GRIDSTRIDE_INLINED void bring_lines(const part& __part) const {
        const int __lane = threadIdx.x % 32, __end = __part.height * size;
        const char* __line = at(int(threadIdx.x / 32) - (__phases - 1), 0);
        const long long __further = warps * source.step;
#pragma unroll 4
        for (int __i = threadIdx.x / 32; __i < lines; __i += warps, __line += __further) {
            if (!__all && !__part.has(__i - (__phases - 1))) continue;
            const int __past = past_word(__line);
            char* const __to = waiting_line(__i) + __lane * word;
            const char* const __from = __line - __past + __lane * word;
#pragma unroll
            for (int __k = 0; __k < line_words; __k += 32)
                if ((line_words % 32 == 0 || __k + __lane < line_words) &&
                    (__all || (__k + __lane) * word < __past + __end))
                    bring_word<word>(__to + __k * word, __from + __k * word);
        }
        if (word > size)
#pragma unroll 1
            for (int __i = threadIdx.x; __i < lines; __i += turning_threads) {
                if (!__part.has(__i - (__phases - 1))) continue;
                const char* const __ending = at(__i - (__phases - 1), 0);
                const int __past = past_word(__ending), __last = line_words * word;
                if (__last < __past + __end) bring_word<word>(waiting_line(__i) + __last, __ending - __past + __last);
            }
    }
    template <bool __all>
    GRIDSTRIDE_INLINED void bring_rows(const part& __part, const starts& __starts) const {
        const int __lane = threadIdx.x % 32;
        constexpr bool have_one_phase = __phases <= warps;
        const char* __row = at(0, threadIdx.x / 32);
        const int __own = __starts.phase(threadIdx.x / 32), __own_past = past_word(__row - __own * size);
        const long long __further = warps * source.strides[0];
#pragma unroll 4
        for (int __i = threadIdx.x / 32; __i < __height; __i += warps, __row += __further) {
            if (!__all && __i >= __part.height) break;
            const int __phase = have_one_phase ? __own : __starts.phase(__i);
            const int __past = have_one_phase ? __own_past : past_word(__row - __phase * size);
            const char* const __from = __row + (__lane * word - __phase * size - __past);
            char* const __to = waiting + __i * row_bytes + __lane * word;
#pragma unroll
            for (int __k = 0; __k < row_words; __k += 32)
                if ((row_words % 32 == 0 || __k + __lane < row_words) &&
                    (__all || is_of_row(__part, (__k + __lane) * word - __past, __phase)))
                    bring_word<word>(__to + __k * word, __from + __k * word);
        }
        if (word > size)
#pragma unroll 1
            for (int __i = threadIdx.x; __i < __part.height; __i += turning_threads) {
                const int __own = __starts.phase(__i), __last = row_words * word;
                const char* const __ending = at(-__own, __i);
                const int __over = past_word(__ending);
                if (__over && is_of_row(__part, __last - __over, __own))
                    bring_word<word>(waiting + __i * row_bytes + __last, __ending - __over + __last);
            }
    }
    // Bring the one element of each row.
    GRIDSTRIDE_INLINED void bring_column(const part& __part) const {
#pragma unroll 1
        for (int __y = threadIdx.x; __y < __part.height; __y += turning_threads)
            copy(reinterpret_cast<stored*>(waiting)[__y], *reinterpret_cast<const stored*>(at(0, __y)));
    }
    // Whether a word has an element of a row; it begins so many bytes after the row of the part.
    static GRIDSTRIDE_INLINED bool is_of_row(const part& __part, int __byte, int __phase) {
        return __byte + word > (__part.from < 0 ? 0 : __phase * size) && __byte < (__part.to + __phase) * size;
    }

    // Stand at the word that begins a phase before `__x`.
    GRIDSTRIDE_INLINED int stand(int __x, int __y, int __phase) {
        if (!waits) return this->stand_at(at(__x - __phase, __y));
        step = apart * (is_turned() || is_same() ? size : row_bytes);
        const int __past = past_word(at(-__phase, __y));
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) {
            const int __i = __x + __j - __phase;
            from[__j] = is_turned() ? waiting_line(__i + __phases - 1) + past_word(at(__i, 0)) + __y * size
                        : is_same() ? waiting + __y * size
                                    : waiting + __y * row_bytes + __past + (__x + __j) * size;
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int descend() { return this->go_on(apart * source.strides[0], step); }
};

// Do a word of every so-many-th row from one on, which begins at `__from`: a phase before `__x`.
template <int __length, int __apart, class __operation, int __axes, class... __picked>
GRIDSTRIDE_INLINED void pick_rows(const __operation& __do, const element_space<__axes>& __space,
                                  const plane_part<false>& __part, int __from, int __first, int __x, __picked&... __all) {
    const numbering<__axes>& __numbers = __space.numbers;
    const long long __number = __part.number + (__part.x + __from) * __numbers.step;
    if (__part.has(__from, __length)) {
        swallow(__all.stand(__x, __first, __x - __from)...);
#pragma unroll 4
        for (int __y = __first; __y < __part.height; __y += __apart) {
            swallow(__all.pick()...);
#pragma unroll
            for (int __j = 0; __j < __length; ++__j)
                __do(__number + (__part.y + __y) * __numbers.strides[0] + __j * __numbers.step,
                     element<typename __picked::operand>(__all.items.items[__j]).get()...);
            swallow(__all.store()...);
            swallow(__all.descend()...);
        }
        return;
    }
#pragma unroll 1
    for (int __y = __first; __y < __part.height; __y += __apart)
#pragma unroll 1
        for (int __j = 0; __j < __length; ++__j)
            if (__part.has(__from + __j))
                __do(__number + (__part.y + __y) * __numbers.strides[0] + __j * __numbers.step,
                     element<typename __picked::operand>(
                         *reinterpret_cast<typename __picked::stored*>(__all.at(__from + __j, __y))).get()...);
}

template <int __length, int __phases, int __width, int __height, class __operation, int __axes, class... __picked>
GRIDSTRIDE_INLINED void pick_tile(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                  __picked&&... __all) {
    constexpr int __warps = turning_threads / 32, __apart = __phases > __warps ? __phases : __warps;
    plane_part<false> __part(__space, __width);
    enter_plane(__part, __space, __height, __all...);
    swallow(__all.take_memory(__shared)...);
    const row_starts<__phases> __starts = last_of(__all...).row_starts_of();
    if (__part.x > 0 && __part.to == __width && __part.height == __height)
        swallow(__all.template bring<true>(__part, __starts)...);
    else
        swallow(__all.template bring<false>(__part, __starts)...);
    await_words();
#pragma unroll 1
    for (int __x = threadIdx.x % 32 * __length; __x < __width; __x += 32 * __length)
#pragma unroll 1
        for (int __y = threadIdx.x / 32; __y < __apart; __y += __warps)
            pick_rows<__length, __apart>(__do, __space, __part, __x - __starts.phase(__y), __y, __x, __all...);
}

// Length: the elements of a word of the last operand; phases: those of a sector.
template <int __length, int __phases, int __width, int __height, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void picked_tiles(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                     const __operands&... __all) {
    pick_tile<__length, __phases, __width, __height>(
        __do, __space, __shared, picked<__operands, __length, __phases, __width, __height>(__all)...);
}

}

#endif
