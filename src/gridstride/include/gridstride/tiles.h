// `tiles`: a loop over elements in which operands that lie along y are turned by tiles of `__width` by `__height` elements.
// Lines of a turned operand are loaded in packets along y; small squares of them are turned in registers, so that what
// is stored in shared memory are words of four bytes or more.
#ifndef GRIDSTRIDE_TILES_H
#define GRIDSTRIDE_TILES_H

#include <gridstride/turning.h>

namespace gridstride {

// Turn the squares of lines, number `__at` of each: of four bytes by four lines, two elements of two bytes by two lines,
// or one element.
template <class __stored, int __length, int __lines, int = sizeof(__stored) * __length>
struct squares {
    static GRIDSTRIDE_INLINED void turn(const arriving<__length, __stored> (&__from)[__lines], int __at,
                                        packet<__stored, __lines> (&__to)[__lines]) {
#pragma unroll
        for (int __l = 0; __l < __lines; ++__l) {
            packet<__stored, __length> __line;
            __from[__l].unpack(__line);
#pragma unroll
            for (int __r = 0; __r < __lines; ++__r) copy(__to[__r].items[__l], __line.items[__at * __lines + __r]);
        }
    }
};
GRIDSTRIDE_INLINED unsigned part_of(const uint4& __word, int __at) {
    return __at == 0 ? __word.x : __at == 1 ? __word.y : __at == 2 ? __word.z : __word.w;
}
template <class __stored>
struct squares<__stored, 8, 2, 16> {
    static GRIDSTRIDE_INLINED void turn(const arriving<8, __stored> (&__from)[2], int __at, packet<__stored, 2> (&__to)[2]) {
        const unsigned __a = part_of(__from[0].low, __at), __b = part_of(__from[1].low, __at);
        whole<2, __stored>::unpack(__to[0], __byte_perm(__a, __b, 0x5410));
        whole<2, __stored>::unpack(__to[1], __byte_perm(__a, __b, 0x7632));
    }
};
template <class __stored>
struct squares<__stored, 16, 4, 16> {
    static GRIDSTRIDE_INLINED void turn(const arriving<16, __stored> (&__from)[4], int __at, packet<__stored, 4> (&__to)[4]) {
        const unsigned __a = part_of(__from[0].low, __at), __b = part_of(__from[1].low, __at);
        const unsigned __c = part_of(__from[2].low, __at), __d = part_of(__from[3].low, __at);
        const unsigned __ab = __byte_perm(__a, __b, 0x5140), __cd = __byte_perm(__c, __d, 0x5140);
        const unsigned __ab2 = __byte_perm(__a, __b, 0x7362), __cd2 = __byte_perm(__c, __d, 0x7362);
        whole<4, __stored>::unpack(__to[0], __byte_perm(__ab, __cd, 0x5410));
        whole<4, __stored>::unpack(__to[1], __byte_perm(__ab, __cd, 0x7632));
        whole<4, __stored>::unpack(__to[2], __byte_perm(__ab2, __cd2, 0x5410));
        whole<4, __stored>::unpack(__to[3], __byte_perm(__ab2, __cd2, 0x7632));
    }
};

// Where the elements of a turned operand are: rows along x, with room for a packet before the tile, and with gaps for
// which threads that store words below each other do so in different banks.
template <class __operand, int __width, int __height, int __length>
struct tile_memory {
    typedef typename __operand::stored stored;
    typedef packet<stored, __length> items;
    static constexpr int size = sizeof(stored), row_bytes = (__width + __length) * size, gap = __length > 1 ? 16 : 0;
    static constexpr int bytes = (__height * row_bytes + __height / __length * gap + 15) / 16 * 16;
    // A unit is what a thread takes at once: so many lines of a packet each. Neighboring threads take units below and
    // beside each other.
    static constexpr int lines = __length >= 16 ? 4 : __length == 8 ? 2 : 1;
    static constexpr int down = __height / __length, across = __width / lines, units = down * across;
    static constexpr int below = down < 8 ? down : 8, beside = 32 / below, at_once = 4 / lines;

    char* base;

    template <class __turned, class __part>
    GRIDSTRIDE_INLINED int begin(char* __shared, const __part&, const __turned&) {
        base = __shared;
        return bytes;
    }
    GRIDSTRIDE_INLINED char* at(int __x, int __y) const {
        return base + __y * row_bytes + __y / __length * gap + (__x + __length) * size;
    }
    GRIDSTRIDE_INLINED void load(items& __to, int __x, int __y) const {
        load_packet<__length>(__to, at(__x, __y), size, 0, __length);
    }
    GRIDSTRIDE_INLINED void store(const items& __from, int __x, int __y) const {
        store_packet<__length>(__from, at(__x, __y), size, 0, __length);
    }
    // Units of the tile, then those of the room before it.
    static GRIDSTRIDE_INLINED int unit_x(int __unit) {
        if (__unit >= units) return (-1 - (__unit - units) / down) * lines;
        return (__unit / below % beside + __unit / 32 / (down / below) * beside) * lines;
    }
    static GRIDSTRIDE_INLINED int unit_y(int __unit) {
        if (__unit >= units) return (__unit - units) % down * __length;
        return (__unit % below + __unit / 32 % (down / below) * below) * __length;
    }
    template <class __turned, class __part>
    static GRIDSTRIDE_INLINED bool has_packets(const __turned& __all, const __part& __plane) {
        return __plane.y_side.has_packets(__length, size, __all.source.strides[0], __all.source.strides[2], false);
    }
    template <class __part>
    static GRIDSTRIDE_INLINED bool is_whole(const __part& __plane, int __unit) {
        return __plane.has(unit_x(__unit), lines) && unit_y(__unit) + __length <= __plane.height;
    }

    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void bring(const __turned& __all, const __part& __plane) const {
        const int __count = units + (__plane.is_shifted ? __length / lines * down : 0);
        const bool __has_packets = has_packets(__all, __plane);
#pragma unroll 1
        for (int __first = threadIdx.x; __first < __count; __first += turning_threads * at_once) {
            arriving<__length, stored> __packets[at_once][lines];
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k)
                if (__has_packets && is_whole(__plane, __first + __k * turning_threads))
                    load_unit(__all, __plane, __packets[__k], __first + __k * turning_threads);
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k) {
                const int __unit = __first + __k * turning_threads;
                if (__unit >= __count) break;
                if (__has_packets && is_whole(__plane, __unit)) put_unit(__all, __plane, __packets[__k], __unit);
                else bring_elements(__all, __plane, __unit);
            }
        }
    }
    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void load_unit(const __turned& __all, const __part& __plane,
                                      arriving<__length, stored> (&__to)[lines], int __unit) const {
        const long long __down = __all.down(__plane, unit_y(__unit));
#pragma unroll
        for (int __l = 0; __l < lines; ++__l) __to[__l].load(__all.line_at(__plane, unit_x(__unit) + __l) + __down);
    }
    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void put_unit(const __turned& __all, const __part& __plane,
                                     arriving<__length, stored> (&__from)[lines], int __unit) const {
        const long long __down = __all.down(__plane, unit_y(__unit));
        char* __to = at(unit_x(__unit), unit_y(__unit));
#pragma unroll
        for (int __l = 0; __l < lines; ++__l)
            __from[__l].join(__all.line_at(__plane, unit_x(__unit) + __l) + __down);
#pragma unroll
        for (int __at = 0; __at < __length / lines; ++__at) {
            packet<stored, lines> __turned_words[lines];
            squares<stored, __length, lines>::turn(__from, __at, __turned_words);
#pragma unroll
            for (int __r = 0; __r < lines; ++__r)
                store_packet<lines>(__turned_words[__r], __to + (__at * lines + __r) * row_bytes, size, 0, lines);
        }
    }
    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void bring_elements(const __turned& __all, const __part& __plane, int __unit) const {
        const int __x = unit_x(__unit), __y = unit_y(__unit);
#pragma unroll 1
        for (int __k = 0; __k < lines * __length; ++__k) {
            const int __i = __x + __k / __length, __j = __y + __k % __length;
            if (__plane.has(__i) && __j < __plane.height)
                copy(*reinterpret_cast<stored*>(at(__i, __j)), *reinterpret_cast<const stored*>(__all.at(__plane, __i, __j)));
        }
    }

    template <class __turned, class __part>
    GRIDSTRIDE_INLINED void take_away(const __turned& __all, const __part& __plane) const {
        const bool __has_packets = has_packets(__all, __plane);
#pragma unroll 1
        for (int __unit = threadIdx.x; __unit < units; __unit += turning_threads) {
            const int __x = unit_x(__unit), __y = unit_y(__unit);
            if (__has_packets && is_whole(__plane, __unit)) {
#pragma unroll
                for (int __l = 0; __l < lines; ++__l) {
                    items __line;
#pragma unroll
                    for (int __j = 0; __j < __length; ++__j)
                        copy(__line.items[__j], *reinterpret_cast<const stored*>(at(__x + __l, __y + __j)));
                    store_packet<__length>(__line, __all.at(__plane, __x + __l, __y), size, 0, __length);
                }
                continue;
            }
#pragma unroll 1
            for (int __k = 0; __k < lines * __length; ++__k) {
                const int __i = __x + __k / __length, __j = __y + __k % __length;
                if (__plane.has(__i) && __j < __plane.height)
                    *reinterpret_cast<stored*>(__all.at(__plane, __i, __j)) = *reinterpret_cast<const stored*>(at(__i, __j));
            }
        }
    }
};

template <bool __is_split, int __width, int __height, int __length, class __operation, int __axes, class... __turned>
GRIDSTRIDE_INLINED void run_tile(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                 __turned&&... __all) {
    plane_part<__is_split> __part(__space, __width);
    enter_plane(__part, __space, __height, __all...);
    run_plane<__length>(__do, __space, __part, __width / __length, __shared, __all...);
}

template <bool __is_split, int __width, int __height, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void tiles(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                              const __operands&... __all) {
    constexpr int __length = packet_length<__operands...>();
    run_tile<__is_split, __width, __height, __length>(
        __do, __space, __shared,
        turned<__operands, __length, __is_split, tile_memory<__operands, __width, __height, __length>>(__all)...);
}

}

#endif
