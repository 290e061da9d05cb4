// `permuted_tiles`: a loop over elements of tiles whose sides are any number of axes: x those along which the outputs are
// consecutive, y those along which turned inputs are. Where lines and rows begin does not matter.
//
// Where the lines and rows of a tile begin is written into tables in shared memory first. Lines of turned inputs, one for
// each x, are loaded in words along y, and stored as rows along x, of which packets are taken wherever they begin. Each row
// of a tile begins so many elements before it, its phase, that what is written are whole sectors of memory.
//
// In `element_space`, `row` and `column` are the lengths of the sides. `outer` has the numbers of tiles along y and along x,
// then the axes of x, those of y, and those that are walked one by one.
#ifndef GRIDSTRIDE_PERMUTED_TILES_H
#define GRIDSTRIDE_PERMUTED_TILES_H

#include <gridstride/async_words.h>
#include <gridstride/kept_packets.h>
#include <gridstride/packet_edges.h>
#include <gridstride/waiting_packets.h>
#include <gridstride/word_squares.h>

namespace gridstride {

// How an operand lies.
constexpr int lies_along_x = 0, lies_along_y = 1, lies_anywhere = 2;

template <int __threads, int __phases, int __width, int __height, int __x_axes, int __y_axes>
struct permuted_shape {
    static constexpr int threads = __threads, phases = __phases, width = __width, height = __height;
    static constexpr int before = __phases > 1 ? __phases : 0, lines = __width + before;  // lines before a tile; all
    static constexpr int x_begin = 2, y_begin = x_begin + __x_axes, rest_begin = y_begin + __y_axes;  // axes
};

// The tile that a block has.
struct permuted_tile {
    int x, y;   // where it begins
    int y_end;  // of the plane, seen from there
};

// How far an index along some axes leads; behind the last one there are none.
template <int __first, int __end, int __axes>
GRIDSTRIDE_INLINED long long offset_along(const axes<__axes>& __space, unsigned __index, const long long* __strides) {
    long long __offset = 0;
#pragma unroll
    for (int __axis = __first; __axis < __end; ++__axis) {
        if (__end == __axes && __axis >= __space.ndim) break;
        const bool __is_last = __end < __axes && __axis + 1 == __end;
        __offset += (__is_last ? __index : remainder_of(__space, __index, __axis)) * __strides[__axis];
    }
    return __offset;
}

// The word that begins so many bits into the first.
GRIDSTRIDE_INLINED unsigned word_between(unsigned __low, unsigned __high, unsigned __bits) {
    return __funnelshift_r(__low, __high, __bits);
}
template <class __word>
GRIDSTRIDE_INLINED __word word_between(const __word& __low, const __word&, unsigned) { return __low; }

template <class __operand, int __length, class __shape, int __kind>
struct permuted {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    // Small elements are turned: lines that make a square, words of a line, those that a thread takes, and squares.
    static constexpr int size = sizeof(stored), bytes = size < 4 ? 4 : size, lines = bytes / size, words = __shape::height / lines;
    static constexpr int deep = words > 32 ? 2 : 1, group = words / deep, beside = __shape::threads / group, apart = beside * lines;
    static constexpr int trips = (__shape::lines + apart - 1) / apart;
    static constexpr bool are_even = __shape::lines % apart == 0 && __shape::threads % group == 0;  // all threads have as many
    static constexpr bool are_small = size < 4;
    static constexpr int pitch = (are_small ? __shape::lines / lines | 1 : __shape::height | 1) * bytes;
    // Of lines as they lie: their words of 16 bytes, the threads that bring one, and turns in which these do that.
    static constexpr int line_words = (__shape::height * size + 15) / 16, line_pitch = (line_words + 1) * 16;
    static constexpr int sharing = line_words > 16 ? 32 : line_words > 8 ? 16 : line_words > 4 ? 8 : 4;
    static constexpr int cache_line = 128, turns = (cache_line + __shape::height * size + sharing * 16 - 1) / (sharing * 16);
    typedef typename word<bytes>::type word_type;

    static constexpr bool is_turned = __kind == lies_along_y, is_anywhere = __kind == lies_anywhere;
    static constexpr int turned_bytes = are_small ? __shape::height * pitch + __shape::height / 32 * bytes : __shape::lines * pitch;
    static constexpr int lying_bytes = are_small ? __shape::lines * line_pitch + 16 : 0;
    static constexpr int waiting_bytes = ((turned_bytes < lying_bytes ? lying_bytes : turned_bytes) + 23) / 16 * 16;

    const __operand& source;
    char* corner;  // of the plane
    char *begin, *row;  // of the row that is put into the table, and of that at which the thread stands
    long long *xs, *ys;  // where lines begin, seen from the corner unless they are turned, and rows, from the first element
    char *waiting, *here;  // in shared memory: the turned rows, and a packet of them or of the places along x
    int standing;    // where a row is there
    unsigned bits;   // after which a packet begins in a word
    packet<stored, __length> items;

    GRIDSTRIDE_INLINED permuted(const __operand& __source) : source(__source), corner(__source.data) {}
    static GRIDSTRIDE_INLINED int row_at(int __y) { return __y * pitch + static_cast<unsigned>(__y) / 32 * bytes; }
    template <int __axes>
    GRIDSTRIDE_INLINED int enter(const element_space<__axes>& __space, const permuted_tile& __tile, unsigned __rest) {
        corner += offset_along<__shape::rest_begin, __axes>(__space.outer, __rest, source.strides);
        if (is_turned) corner += static_cast<long long>(__tile.y) * size;
        else if (!is_anywhere) corner += static_cast<long long>(__tile.x) * size;
        return 0;
    }
    GRIDSTRIDE_INLINED int take_memory(char*& __shared) {
        xs = ys = reinterpret_cast<long long*>(__shared);
        if (is_turned || is_anywhere) __shared += __shape::lines * sizeof(long long);
        if (!is_turned) {
            ys = reinterpret_cast<long long*>(__shared);
            __shared += __shape::height * sizeof(long long);
        }
        waiting = __shared;
        if (is_turned) __shared += waiting_bytes;
        return 0;
    }
    template <int __axes>
    GRIDSTRIDE_INLINED int put_line(const element_space<__axes>& __space, int __line, unsigned __x) const {
        if (is_turned || is_anywhere)
            xs[__line] = (is_turned ? reinterpret_cast<long long>(corner) : 0) +
                         offset_along<__shape::x_begin, __shape::y_begin>(__space.outer, __x, source.strides);
        return 0;
    }
    template <int __axes>
    GRIDSTRIDE_INLINED int find_row(const element_space<__axes>& __space, unsigned __y) {
        if (!is_turned)
            begin = corner + offset_along<__shape::y_begin, __shape::rest_begin>(__space.outer, __y, source.strides);
        return 0;
    }
    GRIDSTRIDE_INLINED int phase() const {
        return int(static_cast<unsigned>(reinterpret_cast<unsigned long long>(begin)) / size % __shape::phases);
    }
    GRIDSTRIDE_INLINED int put_row(int __row, int __phase) const {
        if (!is_turned) ys[__row] = begin - source.data - (is_anywhere ? 0 : __phase * size);
        return 0;
    }
    GRIDSTRIDE_INLINED int bring(const permuted_tile& __tile) const {
        if (!is_turned) return 0;
        const int __end = (__tile.y_end < __shape::height ? __tile.y_end : __shape::height) * size;
        if (are_small) bring_lines(__end);
        else bring_elements(__end);
        return 0;
    }
    GRIDSTRIDE_INLINED void bring_elements(int __end) const {
        const int __own = threadIdx.x % group, __first = threadIdx.x / group;
        if (__first >= beside) return;
        char* __to = waiting + __first * pitch + __own * size;
#pragma unroll 4
        for (int __line = __first; __line < __shape::lines; __line += apart, __to += apart * pitch) {
            const char* const __from = line(__line) + __own * size;
#pragma unroll
            for (int __d = 0; __d < deep; ++__d)
                if ((__own + __d * group) * size < __end)
                    bring_word<bytes>(__to + __d * group * size, __from + __d * group * size);
        }
    }
    // Bring lines as they lie, by words of 16 bytes: threads begin where lines of the cache do.
    GRIDSTRIDE_INLINED void bring_lines(int __end) const {
        const int __own = threadIdx.x % sharing * 16;
#pragma unroll 4
        for (int __line = threadIdx.x / sharing; __line < __shape::lines; __line += __shape::threads / sharing) {
            const char* __from = line(__line);
            const int __past = int(bytes_past<cache_line>(__from));
            const int __first = __past / 16 * 16;
            char* const __to = waiting + __line * line_pitch + __own - __first;
            __from += __own - __past;
#pragma unroll
            for (int __k = 0; __k < turns; ++__k) {
                const int __at = __own + __k * sharing * 16;
                if ((__k * sharing * 16 >= cache_line || __at >= __first) && __at < __past + __end)
                    bring_word<16>(__to + __k * sharing * 16, __from + __k * sharing * 16);
            }
        }
    }
    GRIDSTRIDE_INLINED const char* line(int __line) const { return reinterpret_cast<const char*>(xs[__line]); }
    // Turn them, a word of each of neighboring ones: all are taken before the first is stored.
    GRIDSTRIDE_INLINED int turn() const {
        if (!is_turned || !are_small) return 0;
        const int __own = threadIdx.x % group, __begin = threadIdx.x / group * lines;
        word_type __turned[trips][deep][lines];
#pragma unroll
        for (int __k = 0; __k < trips; ++__k)
#pragma unroll
            for (int __l = 0; __l < lines; ++__l) {
                const int __line = __begin + __k * apart + __l;
                if (!are_even && __begin + __k * apart >= __shape::lines) continue;
                const unsigned __begin_at = static_cast<unsigned>(xs[__line]);
                const char* const __at = waiting + __line * line_pitch + __own * bytes + __begin_at % 16 / 4 * 4;
#pragma unroll
                for (int __d = 0; __d < deep; ++__d) {
                    const word_type* const __from = reinterpret_cast<const word_type*>(__at) + __d * group;
                    __turned[__k][__d][__l] = word_between(__from[0], __from[1], __begin_at * 8);
                }
            }
        __syncthreads();
#pragma unroll
        for (int __k = 0; __k < trips; ++__k)
#pragma unroll
            for (int __d = 0; __d < deep; ++__d) {
                if (!are_even && __begin + __k * apart >= __shape::lines) continue;
                turn_words(__turned[__k][__d]);
                char* const __to = waiting + row_at((__own + __d * group) * lines) + (__begin + __k * apart) * size;
#pragma unroll
                for (int __r = 0; __r < lines; ++__r) *reinterpret_cast<word_type*>(__to + __r * pitch) = __turned[__k][__d][__r];
            }
        __syncthreads();
        return 0;
    }
    // Go to a row of the tile, and so many rows on.
    GRIDSTRIDE_INLINED int go_to(int __y) {
        standing = row_at(__y);
        return 0;
    }
    template <int __rows>
    GRIDSTRIDE_INLINED int go_on(int __y) {
        standing = __rows % 32 == 0 ? standing + row_at(__rows) : row_at(__y + __rows);
        return 0;
    }
    // Stand at it: it begins a phase before the tile.
    GRIDSTRIDE_INLINED int stand(int __y, int __phase, int __x) {
        if (is_turned) {
            const int __skipped = (__shape::before - __phase) * step;
            here = waiting + (are_small ? standing + int(static_cast<unsigned>(__skipped) / 4 * 4) : __y * size + __skipped) + __x * step;
            bits = __skipped * 8;
        } else {
            row = source.data + (ys[__y] + (is_anywhere ? 0 : __x * size));
        }
        if (is_anywhere) here = reinterpret_cast<char*>(xs + __shape::before - __phase + __x);
        return 0;
    }
    static constexpr int step = are_small ? size : pitch;  // from a turned element to the next
    GRIDSTRIDE_INLINED char* at(int __j) const {
        return row + (is_anywhere ? reinterpret_cast<const long long*>(here)[__j] : __j * size);
    }
    GRIDSTRIDE_INLINED stored& in_place(int __j) const {
        return *reinterpret_cast<stored*>(is_turned ? here + __j * step + (are_small ? bits / 8 % 4 : 0) : at(__j));
    }
    GRIDSTRIDE_INLINED int load() {
        typedef whole<__length, stored> words_of;
        if (!__operand::is_read) return 0;
        typename words_of::type __bits;
        if (is_turned) {
            __bits = waiting_packet<__length, stored>::load(here, bits);
        } else {
            packet<stored, __length> __loaded;
            if (!is_anywhere) load_packet<__length>(__loaded, row, size, 0, __length);
            else
#pragma unroll
                for (int __j = 0; __j < __length; ++__j) copy(__loaded.items[__j], *reinterpret_cast<const stored*>(at(__j)));
            __bits = words_of::packed(__loaded);
        }
        words_of::unpack(items, __bits);
        return 0;
    }
    GRIDSTRIDE_INLINED int store() const {
        if (__operand::is_written) kept<__length, stored>::store(items, row);
        return 0;
    }
};

// The number of an element, at a place in a plane.
template <class __shape, int __axes>
GRIDSTRIDE_INLINED long long permuted_number(const element_space<__axes>& __space, unsigned __rest, unsigned __x, unsigned __y) {
    const long long* const __strides = __space.numbers.strides;
    return offset_along<__shape::rest_begin, __axes>(__space.outer, __rest, __strides) +
           offset_along<__shape::x_begin, __shape::y_begin>(__space.outer, __x, __strides) +
           offset_along<__shape::y_begin, __shape::rest_begin>(__space.outer, __y, __strides);
}

// Do a packet of the row at which all operands stand, if it is a whole one; `__first` is where it begins in the plane.
template <class __shape, int __length, class __operation, int __axes, class... __permuted>
GRIDSTRIDE_INLINED void do_permuted(const __operation& __do, const element_space<__axes>& __space, unsigned __rest, int __first,
                                    int __y, __permuted&... __all) {
    if (__first < 0 || __first + __length > int(__space.row)) return;
    swallow(__all.load()...);
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        __do(permuted_number<__shape>(__space, __rest, __first + __j, __y),
             element<typename __permuted::operand>(__all.items.items[__j]).get()...);
    swallow(__all.store()...);
}

template <class __shape, int __length, class __operation, int __axes, class... __permuted>
GRIDSTRIDE_INLINED void do_permuted_edges(const __operation& __do, const element_space<__axes>& __space, unsigned __rest,
                                          const permuted_tile& __tile, int __rows, const int* __phases, __permuted&... __all) {
    typedef packet_edges<__length> edges;
#pragma unroll 1
    for (int __k = threadIdx.x; __k < __rows * edges::most; __k += __shape::threads) {
        const int __y = __k / edges::most, __own = __k % edges::most, __phase = __phases[__y], __first = __tile.x - __phase;
        const edges __edges(__first, __shape::width, 0, int(__space.row));
        const int __x = __edges.element(__own);
        if (!__edges.has(__own)) continue;
        swallow(__all.go_to(__y)...);
        swallow(__all.stand(__y, __phase, __x - __first)...);
        __do(permuted_number<__shape>(__space, __rest, __x, __tile.y + __y),
             element<typename __permuted::operand>(__all.in_place(0)).get()...);
    }
}

template <class __shape, int __length, class __operation, int __axes, class... __permuted>
GRIDSTRIDE_INLINED void run_permuted(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                     __permuted&&... __all) {
    const axes<__axes>& __outer = __space.outer;
    unsigned __rest = blockIdx.x;
    permuted_tile __tile;
    __tile.y = int(remainder_of(__outer, __rest, 0)) * __shape::height;
    __tile.x = int(remainder_of(__outer, __rest, 1)) * __shape::width;
    __tile.y_end = int(__space.column) - __tile.y;
    swallow(__all.enter(__space, __tile, __rest)...);
    int* __phases = reinterpret_cast<int*>(__shared);
    __shared += __shape::height * sizeof(int);
    swallow(__all.take_memory(__shared)...);
#pragma unroll 1
    for (int __k = threadIdx.x; __k < __shape::lines; __k += __shape::threads) {
        const int __x = __tile.x + __k - __shape::before, __end = int(__space.row) - 1;
        swallow(__all.put_line(__space, __k, __x < 0 ? 0 : __x > __end ? __end : __x)...);
    }
    const int __rows = __tile.y_end < __shape::height ? __tile.y_end : __shape::height;
#pragma unroll 1
    for (int __k = __shape::threads - 1 - int(threadIdx.x); __k < __rows; __k += __shape::threads) {
        swallow(__all.find_row(__space, __tile.y + __k)...);
        const int __phase = last_of(__all...).phase();
        __phases[__k] = __phase;
        swallow(__all.put_row(__k, __phase)...);
    }
    __syncthreads();
    swallow(__all.bring(__tile)...);
    await_words();
    swallow(__all.turn()...);
    constexpr int __packets = __shape::width / __length, __step = __shape::threads / __packets;
    const int __x = threadIdx.x % __packets * __length, __first = threadIdx.x / __packets;
    swallow(__all.go_to(__first)...);
#pragma unroll (__length > 1 ? 1 : 4)
    for (int __y = __first; __y < __rows; __y += __step) {
        const int __phase = __phases[__y];
        swallow(__all.stand(__y, __phase, __x)...);
        do_permuted<__shape, __length>(__do, __space, __rest, __tile.x + __x - __phase, __tile.y + __y, __all...);
        swallow(__all.template go_on<__step>(__y)...);
    }
    const bool __has_edges = __length > 1 && (__shape::phases > 1 || __space.row % __length != 0);
    if (__has_edges && (__tile.x == 0 || __tile.x + __shape::width >= int(__space.row)))
        do_permuted_edges<__shape, __length>(__do, __space, __rest, __tile, __rows, __phases, __all...);
}

// Threads: of a block. Phases: elements of the last operand in a sector of memory. Width and height: of a tile. Kinds: how
// each operand lies.
template <int __threads, int __phases, int __width, int __height, int __x_axes, int __y_axes, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void permuted_tiles(const __operation& __do, const element_space<__axes>& __space, char* __shared,
                                       const __operands&... __all) {
    typedef permuted_shape<__threads, __phases, __width, __height, __x_axes, __y_axes> __shape;
    constexpr int __longest = packet_length<__operands...>(), __length = __longest > 4 ? __longest : 1;
    run_permuted<__shape, __length>(__do, __space, __shared, permuted<__operands, __length, __shape, __kinds>(__all)...);
}

}

#endif
