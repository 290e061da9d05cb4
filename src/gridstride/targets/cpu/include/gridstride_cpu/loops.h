// Loops over elements on a processor: tiles of rows, in which the innermost loop goes over consecutive memory and
// is left to the compiler to vectorize. Operands that do not lie so pass through buffers that stay in a cache.
//
// A launch has blocks of one thread; each takes an equal share of the tiles.
#ifndef GRIDSTRIDE_CPU_LOOPS_H
#define GRIDSTRIDE_CPU_LOOPS_H

#include <gridstride_cpu/many_operands.h>
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

// ---- rows ----

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

template <int __buffered, class __operation, class... __operands>
GRIDSTRIDE_INLINED void run_elements(const __operation& __do, long long __number, long long __step, long long __count,
                                     const carried<__operands, __buffered>&... __all) {
    run_consecutive<__operands...>(__do, __number, __step, __count, __all.items...);
}
template <int __buffered, class __operation, class... __operands, unsigned... __k>
GRIDSTRIDE_APART void run_each(const __operation& __do, long long __number, long long __step, long long __count,
                               const many_operands<__buffered, __operands...>& __all, gridstride_indices<__k...>) {
    run_consecutive<__operands...>(__do, __number, __step, __count,
                                   reinterpret_cast<typename __operands::stored*>(__all.items[__k])...);
}
template <int __buffered, class __operation, class... __operands>
GRIDSTRIDE_INLINED void run_elements(const __operation& __do, long long __number, long long __step, long long __count,
                                     const many_operands<__buffered, __operands...>& __all) {
    run_each(__do, __number, __step, __count, __all, typename gridstride_indices_below<sizeof...(__operands)>::__list());
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
        if (!all_of(!__carried::has_bools...)) swallow(__all.fetch_ahead(__y, __from, __some)...);
        swallow(__all.begin(__tiles, __y, __width, __from, __some)...);
        run_elements<__buffered>(__do, __number + __from * __step, __step, __some, __all...);
        swallow(__all.end(__tiles, __y, __from, __some)...);
    }
}

// ---- tiles ----

// A tile's corner in each operand is `next` there.
template <int __axes, class... __carried>
GRIDSTRIDE_INLINED found_tile find_tile(const tile_space<__axes>& __space, long long __index, __carried&... __all) {
    long long __number = 0;
    swallow(__all.start()...);
    auto __move = [&](int __axis, long long __at) {
        __number += __at * (__axis ? __space.numbers.strides[__axis] : __space.numbers.step);
        swallow(__all.move(__axis, __at)...);
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
    constexpr int __count = sum_of(__carried::count...);
    placed_value<tile_memory, (__count > most_on_stack)> __memory;
    passage *__passages[__count + 1] = {}, **__end = __passages;
    const int __listed[] = {__all.list(__end)...};
    (void)__listed;
    settle(__passages, __count, __tiles, __space.is_streamed, __memory.get());
    const share_of_pieces __share(__space.tiles);
    // A tile is run when the next one is found, which is fetched meanwhile.
    found_tile __next = {};
    for (long long __tile = __share.first; __tile <= __share.last; ++__tile) {
        const found_tile __now = __next;
        swallow(__all.stand(__now.above)...);
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
    if constexpr (sizeof...(__all) >= many) {
        placed_value<many_operands<__buffered, __operands...>, (sizeof...(__all) > most_on_stack)> __many;
        run_tiles<__buffered>(__do, __space, __many.get().of(__all...));
    } else
        run_tiles<__buffered>(__do, __space, carried<__operands, __buffered>(__all)...);
}

}

#endif
