// `tiles`: a loop over elements in which operands that lie along y are turned by tiles of `__width` by `__height` elements.
// Lines of a turned operand are loaded in packets along y; small squares of them are turned in registers, so that what
// is stored in shared memory are words of four bytes or more.
#ifndef GRIDSTRIDE_TILES_H
#define GRIDSTRIDE_TILES_H

#include <gridstride/turning.h>
#include <gridstride/word_squares.h>

namespace gridstride {

GRIDSTRIDE_INLINED unsigned four_bytes(unsigned __word, int) { return __word; }
GRIDSTRIDE_INLINED unsigned four_bytes(const uint2& __word, int __at) { return __at == 0 ? __word.x : __word.y; }
GRIDSTRIDE_INLINED unsigned four_bytes(const uint4& __word, int __at) {
    return __at == 0 ? __word.x : __at == 1 ? __word.y : __at == 2 ? __word.z : __word.w;
}

// Turn the squares of lines, number `__at` of each: of four bytes by four lines, two elements of two bytes by two lines,
// or one element.
template <class __stored, int __length, int __lines, bool = __lines != 1 && sizeof(__stored) * __lines == 4>
struct squares {
    template <class __words>
    static GRIDSTRIDE_INLINED void turn(const __words (&__from)[__lines], int __at, packet<__stored, __lines> (&__to)[__lines]) {
#pragma unroll
        for (int __l = 0; __l < __lines; ++__l) {
            packet<__stored, __length> __line;
            __from[__l].unpack(__line);
#pragma unroll
            for (int __r = 0; __r < __lines; ++__r) copy(__to[__r].items[__l], __line.items[__at * __lines + __r]);
        }
    }
};
template <class __stored, int __length, int __lines>
struct squares<__stored, __length, __lines, true> {
    template <class __words>
    static GRIDSTRIDE_INLINED void turn(const __words (&__from)[__lines], int __at, packet<__stored, __lines> (&__to)[__lines]) {
        unsigned __bits[__lines];
#pragma unroll
        for (int __l = 0; __l < __lines; ++__l) __bits[__l] = four_bytes(__from[__l].low, __at);
        turn_words(__bits);
#pragma unroll
        for (int __r = 0; __r < __lines; ++__r) whole<__lines, __stored>::unpack(__to[__r], __bits[__r]);
    }
};

// Where the elements of a turned operand are: rows along x, with room for a packet before the tile, and with gaps for
// which threads that store words below each other do so in different banks.
template <class __operand, int __width, int __height, int __length, int __lines, bool __are_words>
struct tile_memory {
    typedef typename __operand::stored stored;
    typedef packet<stored, __length> items;
    static constexpr int size = sizeof(stored), row_bytes = (__width + __length) * size;
    static constexpr int gap = __length > 1 ? __length * size : 0;
    static constexpr int bytes = (__height * row_bytes + __height / __length * gap + 15) / 16 * 16;
    // A thread takes a packet of so many lines at once, the same packet of lines that are `apart` in each round.
    // Neighboring threads take packets below each other, of a line of the cache, then those beside.
    static constexpr int lines = __lines, packet_bytes = __length * size;
    // A part of a warp, also where structures are of other sizes than words.
    static constexpr int most_below = packet_bytes <= 4 ? 32 : packet_bytes <= 8 ? 16 : 8;
    static constexpr int down = __height / __length, below = down < most_below ? down : most_below, beside = 32 / below;
    static constexpr int apart = turning_threads / down * lines, rounds = (__width + apart - 1) / apart;
    static constexpr int most_at_once = (packet_bytes < 4 ? 16 : 64 / packet_bytes) / lines;
    static constexpr int at_once = rounds < most_at_once ? rounds : most_at_once;

    char* base;
    char* here;

    template <class __turned, class __part>
    GRIDSTRIDE_INLINED int begin(char* __shared, const __part&, const __turned&) {
        base = __shared;
        return bytes;
    }
    GRIDSTRIDE_INLINED char* at(int __x, int __y) const {
        return base + __y * row_bytes + static_cast<unsigned>(__y) / __length * gap + (__x + __length) * size;
    }
    GRIDSTRIDE_INLINED void stand(int __x, int __y) { here = at(__x, __y); }
    // Rows that are whole packets.
    GRIDSTRIDE_INLINED void descend(int __rows) { here += __rows * row_bytes + __rows / __length * gap; }
    GRIDSTRIDE_INLINED void load(items& __to, int __phase) const {
        if (__are_words) whole<__length, stored>::load(__to, here);
        else load_packet<__length>(__to, here - __phase * size, size, 0, __length);
    }
    GRIDSTRIDE_INLINED void store(const items& __from, int __phase) const {
        if (__are_words) whole<__length, stored>::store(__from, here);
        else store_packet<__length>(__from, here - __phase * size, size, 0, __length);
    }
    static GRIDSTRIDE_INLINED int first_x() {
        const unsigned __own = threadIdx.x;
        return (__own / below % beside + __own / 32 / (down / below) * beside) * lines;
    }
    static GRIDSTRIDE_INLINED int first_y() {
        const unsigned __own = threadIdx.x;
        return (__own % below + __own / 32 % (down / below) * below) * __length;
    }
    template <class __turned, class __part>
    static GRIDSTRIDE_INLINED bool has_packets(const __turned& __all, const __part& __plane) {
        return __plane.y_side.has_packets(__length, size, __all.source.strides[0], __all.source.strides[2], false);
    }

    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void bring(const __turned& __all, const __part& __plane) const {
        if (__are_words) {
            if (first_y() < __plane.height)
#pragma unroll 1
                for (int __x = first_x(); __x < __width; __x += apart * at_once) bring_lines(__all, __plane, __x, __width);
            return;
        }
        const int __packets = has_packets(__all, __plane) ? __plane.height / __length * __length : 0;
        if (first_y() < __packets)
            // The last trip is to a packet before the tile.
#pragma unroll 1
            for (int __x = first_x(), __end = __width;;) {
                if (__x < __end) bring_lines(__all, __plane, __x, __end);
                __x += apart * at_once;
                if (__x < __width) continue;
                if (__end == 0 || !__plane.is_shifted) break;
                __x = first_x() - __length;
                __end = 0;
            }
        bring_elements(__all, __plane, __packets);
    }
    // Bring packets of lines before an end.
    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void bring_lines(const __turned& __all, const __part& __plane, int __x, int __end) const {
        row_words<__length, stored, __are_words> __packets[at_once][lines];
        const char* const __below = __all.corner + __all.down(__plane, first_y());
        const char* const __line = __below + __all.along(__plane, __x);
        const line_steps __steps(__all, __plane);
        // Most tiles are inside of the plane: nothing is asked of single lines then.
        const int __last = (at_once - 1) * apart + lines;
        if (__part::is_split && __are_words && __steps.are_even && __plane.has(__x, __last) && __x + __last <= __end) {
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k)
#pragma unroll
                for (int __l = 0; __l < lines; ++__l)
                    __packets[__k][__l].load(__line + __k * __steps.round + __l * __all.source.step);
        } else {
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k)
#pragma unroll
                for (int __l = 0; __l < lines; ++__l)
                    if (has_line(__plane, __x + __k * apart, __l) && __x + __k * apart < __end)
                        __packets[__k][__l].load(line_at(__all, __plane, __steps, __below, __line, __x, __k, __l));
        }
#pragma unroll
        for (int __k = 0; __k < at_once; ++__k)
#pragma unroll
            for (int __l = 0; __l < lines; ++__l)
                if (!__are_words && has_line(__plane, __x + __k * apart, __l) && __x + __k * apart < __end)
                    __packets[__k][__l].join(line_at(__all, __plane, __steps, __below, __line, __x, __k, __l));
        char* __to = at(__x, first_y());
#pragma unroll
        for (int __k = 0; __k < at_once; ++__k)
            if (__x + __k * apart < __end) put_lines(__packets[__k], __to + __k * apart * size);
    }
    // A plane of words has all lines of a packet, or none.
    template <class __part>
    static GRIDSTRIDE_INLINED bool has_line(const __part& __plane, int __x, int __l) {
        return __plane.has(__are_words ? __x : __x + __l);
    }
    // How far apart lines are from one round to the next, where that is the same for all.
    struct line_steps {
        long long round;
        bool are_even;
        template <class __turned, class __part>
        GRIDSTRIDE_INLINED line_steps(const __turned& __all, const __part& __plane)
            : round(apart * __all.source.step), are_even(true) {
            if (!__plane.x_side.has_two_axes()) return;
            const int __inner = __plane.x_side.inner;
            are_even = (__inner & (__inner - 1)) == 0 && __inner >= lines && __inner <= apart;
            round = (apart >> __plane.x_side.shift) * __all.source.strides[1];
        }
    };
    template <class __turned, class __part>
    static GRIDSTRIDE_INLINED const char* line_at(const __turned& __all, const __part& __plane, const line_steps& __steps,
                                                  const char* __below, const char* __line, int __x, int __k, int __l) {
        if (!__part::is_split) return __line + (__k * apart + __l) * __all.source.step;
        return __steps.are_even ? __line + __k * __steps.round + __l * __all.source.step
                                : __below + __all.along(__plane, __x + __k * apart + __l);
    }
    static GRIDSTRIDE_INLINED void put_lines(const row_words<__length, stored, __are_words> (&__from)[lines], char* __to) {
#pragma unroll
        for (int __at = 0; __at < __length / lines; ++__at) {
            packet<stored, lines> __words[lines];
            squares<stored, __length, lines>::turn(__from, __at, __words);
#pragma unroll
            for (int __r = 0; __r < lines; ++__r) put_word(__words[__r], __to + (__at * lines + __r) * row_bytes);
        }
    }
    static GRIDSTRIDE_INLINED void put_word(const packet<stored, lines>& __word, char* __to) {
        if (is_one_word<stored, lines>::value) whole<lines, stored>::store(__word, __to);
        else copy(*reinterpret_cast<stored*>(__to), __word.items[0]);
    }
    // Bring elements of rows that make no packets, from a row on.
    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void bring_elements(const __turned& __all, const __part& __plane, int __row) const {
        const int __rows = __plane.height - __row, __first = __plane.is_shifted ? -__length : 0;
        if (__rows == 0) return;
#pragma unroll 2
        for (int __k = threadIdx.x; __k < (__width - __first) * __rows; __k += turning_threads) {
            const int __x = __first + static_cast<unsigned>(__k) / __rows, __y = __row + static_cast<unsigned>(__k) % __rows;
            if (__plane.has(__x))
                copy(*reinterpret_cast<stored*>(at(__x, __y)), *reinterpret_cast<const stored*>(__all.at(__plane, __x, __y)));
        }
    }

    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void take_away(const __turned& __all, const __part& __plane) const {
        const bool __has_packets = has_packets(__all, __plane);
        const int __y = first_y();
#pragma unroll 1
        for (int __x = first_x(); __x < __width; __x += apart)
#pragma unroll 1
            for (int __l = 0; __l < lines; ++__l)
                if (__plane.has(__x + __l)) take_line(__all, __plane, __x + __l, __y, __has_packets);
    }
    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void take_line(const __turned& __all, const __part& __plane, int __x, int __y,
                                      bool __has_packets) const {
        if (__has_packets && __y + __length <= __plane.height) {
            items __line;
#pragma unroll
            for (int __j = 0; __j < __length; ++__j)
                copy(__line.items[__j], *reinterpret_cast<const stored*>(at(__x, __y) + __j * row_bytes));
            store_packet<__length>(__line, __all.at(__plane, __x, __y), size, 0, __length);
            return;
        }
#pragma unroll 1
        for (int __j = __y; __j < __y + __length && __j < __plane.height; ++__j)
            copy(*reinterpret_cast<stored*>(__all.at(__plane, __x, __j)), *reinterpret_cast<const stored*>(at(__x, __j)));
    }
};

// A thread goes down the packets of a column.
template <int __width, int __length>
struct way_down {
    static constexpr unsigned packets = __width / __length;
    static constexpr int rows = turning_threads / packets;
    int x, y;
    GRIDSTRIDE_INLINED way_down() : x(threadIdx.x % packets * __length), y(threadIdx.x / packets) {}
    template <class __part>
    GRIDSTRIDE_INLINED bool is_inside(const __part& __plane) const {
        return y < __plane.height && (__plane.is_shifted || __plane.has(x));
    }
    template <class __part, class... __turned>
    GRIDSTRIDE_INLINED bool stand(const __part& __plane, __turned&... __all) {
        swallow(__all.stand(__plane, x, y)...);
        return is_inside(__plane);
    }
    template <class __part, class... __turned>
    GRIDSTRIDE_INLINED bool go_on(const __part& __plane, __turned&... __all) {
        y += rows;
        swallow(__all.descend(__plane, rows, x, y)...);
        return is_inside(__plane);
    }
};

template <bool __are_words, int __height, int __length, bool __is_split, class __operation, int __axes, class __path,
          class... __turned>
GRIDSTRIDE_INLINED void run_tile(const __operation& __do, const element_space<__axes>& __space, int __width, __path __way,
                                 char* __shared, __turned&&... __all) {
    plane_part<__is_split> __part(__space, __width);
    enter_plane(__part, __space, __height, __all...);
    run_plane<__are_words, __length>(__do, __space, __part, __way, __shared, __all...);
}

// Are words: packets of a length of all operands are whole words, and sides whole packets.
template <bool __is_split, bool __are_words, int __length, int __width, int __height, class __operation, int __axes,
          class... __operands>
GRIDSTRIDE_INLINED void tiles(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                              const __operands&... __all) {
    // Squares of small elements have four bytes by as many lines.
    constexpr int __longest = packet_length<__operands...>(), __lines = __longest < 8 ? 1 : __longest / 4;
    run_tile<__are_words, __height, __length, __is_split>(
        __do, __space, __width, way_down<__width, __length>(), __shared,
        turned<__operands, __length, __is_split, __are_words,
               tile_memory<__operands, __width, __height, __length, __lines, __are_words>>(__all)...);
}

}

#endif
