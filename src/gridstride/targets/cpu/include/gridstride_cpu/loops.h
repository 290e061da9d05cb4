// Loops over elements on a processor: tiles of rows, in which the innermost loop goes over consecutive memory and
// is left to the compiler to vectorize. Operands that do not lie so pass through buffers that stay in a cache.
//
// A launch has blocks of one thread; each takes an equal share of the tiles.
#ifndef GRIDSTRIDE_CPU_LOOPS_H
#define GRIDSTRIDE_CPU_LOOPS_H

#include <gridstride_cpu/word_pairs.h>

namespace gridstride {

// What an elementwise kernel walks. The first `row_axes` axes make rows, the next one columns, and where tiles have layers
// the one behind that these; `strides[k]` of operands and numbers are those of axis k, `step` that of axis 0.
template <int __axes>
struct tile_space {
    long long size;    // of all elements
    long long tiles;
    int ndim;
    int row_axes;      // in a tile all but the last of them are whole
    int is_streamed;   // whether results are stored past the caches
    int piece;         // elements along the last of them in a tile
    int width;         // elements of a row in a tile
    int height;        // rows in a layer
    int depth;         // layers in a tile
    int stacked;       // tiles along columns that come one after another, before those next to them
    long long length[__axes];
    numbering<__axes> numbers;
};

// Elements that are handled at once where buffers are needed, since all lie on the stack.
template <class... __operands>
constexpr int buffered_up_to(int __most) {
    return larger(smaller(__most, smaller(buffer_bytes / larger(int(sizeof(typename __operands::stored))...),
                                          all_buffers_bytes / larger(sum_of(int(sizeof(typename __operands::stored))...)))));
}

// What lies on the stack, unless there are too many operands for it.
constexpr int most_on_stack = 48;

template <class __type, bool __is_apart>
struct placed_value {
    __type value;
    GRIDSTRIDE_INLINED __type& get() { return value; }
};
template <class __type>
struct placed_value<__type, true> {
    char* memory = static_cast<char*>(__builtin_calloc(1, sizeof(__type) + alignof(__type)));
    GRIDSTRIDE_INLINED __type& get() {
        const unsigned long long __address = reinterpret_cast<unsigned long long>(memory);
        return *reinterpret_cast<__type*>(memory + (alignof(__type) - __address % alignof(__type)) % alignof(__type));
    }
    ~placed_value() { __builtin_free(memory); }
};
template <int __bytes>
struct alignas(line_bytes) buffer_memory {
    char bytes[__bytes];
};

// An operand on its way along rows: `items` points to consecutive elements.
template <class __operand, int __buffered, bool __is_apart>
struct carried : passage {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int bytes = sizeof(stored);

    stored* items;
    placed_value<buffer_memory<__buffered * bytes + 2 * line_bytes>, __is_apart> memory;

    GRIDSTRIDE_INLINED carried(const __operand& __source) {
        data = next = __source.data;
        step = __source.step;
        strides = __source.strides;
        size = bytes;
        alignment = alignof(stored);
        is_read = __operand::is_read;
        is_written = __operand::is_written;
        buffer = memory.get().bytes;
        repeated = nullptr;
    }
    GRIDSTRIDE_INLINED int bring(const tile_shape& __tiles, int __width, int __height, int __depth) {
        if (has_tile()) bring_tile<bytes>(*this, __tiles, __width, __height, __depth);
        return 0;
    }
    GRIDSTRIDE_INLINED int put_back(int __width, int __height, int __depth) {
        if (__operand::is_written && has_tile()) put_tile<bytes>(*this, __width, __height, __depth);
        return 0;
    }
    GRIDSTRIDE_INLINED int fetch_ahead(int __y, long long __from, int __count) const {
        if (is_read && how == way::direct)
            for (int __k = 0; __k < __count * bytes; __k += line_bytes)
                __builtin_prefetch(row(__y) + __from * bytes + bytes_ahead + __k);
        return 0;
    }
    GRIDSTRIDE_INLINED int begin(const tile_shape& __tiles, int __y, int __width, long long __from, int __count) {
        items = is_direct() ? reinterpret_cast<stored*>(row(__y)) + __from
                            : reinterpret_cast<stored*>(fetched<bytes>(*this, __tiles, __y, __width, __from, __count));
        return 0;
    }
    GRIDSTRIDE_INLINED int end(const tile_shape& __tiles, int __y, long long __from, int __count) const {
        if (__operand::is_written && !is_direct()) put<bytes>(*this, __tiles, __y, __from, __count);
        return 0;
    }
};

// ---- rows ----

template <class __stored> struct is_bool { static constexpr bool value = false; };
template <> struct is_bool<bool> { static constexpr bool value = true; };

// The numbers of elements along a row.
struct one_by_one {
    long long first;
    GRIDSTRIDE_INLINED long long of(long long __element) const { return first + __element; }
};
struct in_steps {
    long long first, step;
    GRIDSTRIDE_INLINED long long of(long long __element) const { return first + __element * step; }
};

template <class... __operands, class __operation, class __numbers>
GRIDSTRIDE_INLINED void run_numbered(const __operation& __do, const __numbers& __its, long long __count,
                                     typename __operands::stored* const... __items) {
    auto __do_one = [&](long long __k) { __do(__its.of(__k), element<__operands>(__items[__k]).get()...); };
    if constexpr (all_of(is_bfloat16<typename __operands::stored>::value...)) {
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __count / 2; ++__k)
            do_pair(__do, __its.of(2 * __k), __its.of(2 * __k + 1), word_pair<__operands>(__items + 2 * __k)...);
        if (__count % 2) __do_one(__count - 1);
    } else {
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __count; ++__k) __do_one(__k);
    }
}

template <class... __operands, class __operation>
GRIDSTRIDE_INLINED void run_consecutive(const __operation& __do, long long __number, long long __step, long long __count,
                                        typename __operands::stored* const... __items) {
    if (__step == 1) run_numbered<__operands...>(__do, one_by_one{__number}, __count, __items...);
    else run_numbered<__operands...>(__do, in_steps{__number, __step}, __count, __items...);
}

// A row of a tile, all at once or in chunks.
template <int __buffered, class __operation, class... __carried>
GRIDSTRIDE_INLINED void run_row(const __operation& __do, const tile_shape& __tiles, long long __number, long long __step,
                                int __y, int __width, int __count, __carried&... __all) {
    const bool __are_direct = all_of(__all.is_direct()...);
    int __some = __count;
    if (!__are_direct && __count > __buffered) __some = __buffered - largest(__all.excess(__y)...) % __buffered;
    for (int __from = 0; __from < __count; __from += __some, __some = smaller(__buffered, __count - __from)) {
        // What a bool chooses is loaded under a mask, which no processor fetches ahead.
        if (!all_of(!is_bool<typename __carried::stored>::value...)) swallow(__all.fetch_ahead(__y, __from, __some)...);
        swallow(__all.begin(__tiles, __y, __width, __from, __some)...);
        run_consecutive<typename __carried::operand...>(
            __do, __number + __from * __step, __step, __some, __all.items...);
        swallow(__all.end(__tiles, __y, __from, __some)...);
    }
}

// ---- tiles ----

// A tile's corner in each operand is `next` there.
template <int __axes, class... __carried>
GRIDSTRIDE_INLINED found_tile find_tile(const tile_space<__axes>& __space, long long __index, __carried&... __all) {
    long long __number = 0;
    swallow((__all.next = __all.data)...);
    auto __move = [&](int __axis, long long __at) {
        __number += __at * (__axis ? __space.numbers.strides[__axis] : __space.numbers.step);
        swallow((__all.next += __at * __all.stride(__axis))...);
        return __space.length[__axis] - __at;
    };
    int __cut[3] = {__space.piece, __space.height, __space.depth};
    const tile_place __place = place_of_tile(__index, __space.length + __space.row_axes - 1, __cut, __space.stacked);
    for (int __axis = __space.row_axes - 1, __k = 0; __axis < __space.ndim; ++__axis, ++__k) {
        const int __every = __k < 3 ? __cut[__k] : 1;
        const long long __at = __k < 2 ? __place.at[__k] : take_off(__index, __space.length[__axis], __every);
        const long long __left = __move(__axis, __at);
        if (__left < __every) __cut[__k] = int(__left);
    }
    return {__number, __space.width / __space.piece * __cut[0], __cut[1], __cut[2], __place.above};
}

template <int __buffered, class __operation, int __axes, class... __carried>
GRIDSTRIDE_INLINED void run_tile(const __operation& __do, const tile_space<__axes>& __space, const tile_shape& __tiles,
                                 const found_tile& __its, passage* const* __passages, __carried&... __all) {
    swallow(__all.bring(__tiles, __its.width, __its.height, __its.depth)...);
    const long long __down = __space.numbers.strides[__space.row_axes], __step = __space.numbers.step;
    const long long __deep = __its.depth > 1 ? __space.numbers.strides[__space.row_axes + 1] : 0;
    const tile_rows __rows = rows_of_tile(__passages, __tiles, __its, __step, __down, __deep);
    long long __number = __its.number;
    for (int __y = 0, __left = __rows.layers * __rows.rows; __left > 0; --__left) {
        if (__rows.are_narrow) swallow((fetch_row_ahead(__all, __y, __its.width, __its.height), 0)...);
        run_row<__buffered>(__do, __tiles, __number + __y * __down, __step, __y, __its.width, __rows.count, __all...);
        if (++__y < __rows.rows) continue;
        __y = 0;
        __number += __deep;
        swallow(__all.go_deeper()...);
    }
    swallow(__all.put_back(__its.width, __its.height, __its.depth)...);
}

template <int __buffered, class __operation, int __axes, class... __carried>
GRIDSTRIDE_INLINED void run_tiles(const __operation& __do, const tile_space<__axes>& __space, __carried&&... __all) {
    const tile_shape __tiles = {__space.ndim, __space.row_axes, __space.width, __space.height, __space.depth, __space.stacked, __space.length};
    placed_value<tile_memory, (sizeof...(__carried) > most_on_stack)> __memory;
    passage* const __passages[] = {&__all..., nullptr};
    settle(__passages, sizeof...(__all), __tiles, __space.is_streamed, __memory.get());
    const share_of_pieces __share(__space.tiles);
    // A tile is run when the next one is found, which is fetched meanwhile.
    found_tile __next = {};
    for (long long __tile = __share.first; __tile <= __share.last; ++__tile) {
        const found_tile __now = __next;
        swallow((__all.corner = __all.next)..., (__all.layers_done = 0)..., (__all.above = __now.above)...);
        if (__tile < __share.last) __next = find_tile(__space, __tile, __all...);
        if (__tile > __share.first) run_tile<__buffered>(__do, __space, __tiles, __now, __passages, __all...);
    }
    if (__space.is_streamed) {
        swallow((finish_lines(__all), 0)...);
        finish_streams();
    }
}

template <class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shared_tiles(const __operation& __do, const tile_space<__axes>& __space,
                                     const __operands&... __all) {
    constexpr int __largest = larger(int(sizeof(typename __operands::stored))...);
    constexpr int __buffered = buffered_up_to<__operands...>(chunk_bytes / __largest);
    run_tiles<__buffered>(__do, __space, carried<__operands, __buffered, (sizeof...(__all) > most_on_stack)>(__all)...);
}

}

#endif
