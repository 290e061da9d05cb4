// `fold_pairs`: folds of each row of some inputs with each row of others, as the distances of all pairs of points are.
//
// A block has a tile of results, 32 times `across` columns and 8 times `down` rows of them. What is folded of the rows of
// inputs waits in shared memory, a chunk after the other, of which a thread takes an element of each of its columns and rows:
// so each is loaded for many results. In `fold_space`, `part` and `width` are the numbers of columns and rows of results, and
// `group` is how many tiles lie beside each other; axis 0 of `kept` counts the tiles of a plane of results.
#ifndef GRIDSTRIDE_FOLD_PAIRS_H
#define GRIDSTRIDE_FOLD_PAIRS_H

#include <gridstride/fold_blocks.h>
#include <gridstride/outer_results.h>

namespace gridstride {

// Elements of rows that wait in shared memory at once.
__device__ constexpr int pairs_chunk(int __size) { return __size <= 4 ? 32 : 128 / __size; }

// What a thread holds of an input: an element of each of its columns, or of its rows, which are neighbors.
template <class __operand, int __chunk, int __across, int __down, bool __is_of_columns>
struct paired {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored), own = __is_of_columns ? __across : __down;
    static constexpr int rows = own * (__is_of_columns ? 32 : fold_threads / 32);
    // Words of 16 bytes, one more than of the rows: neighboring elements of a row are in different banks.
    static constexpr int pitch = (rows * size + 15) / 16 * 16 + 16, bytes = __chunk * pitch;

    const __operand& source;
    const char* base;
    char* waiting;
    packet<stored, own> items;

    GRIDSTRIDE_INLINED paired(const __operand& __source) : source(__source), base(__source.data) {}
    GRIDSTRIDE_INLINED int take_memory(char*& __shared) {
        waiting = __shared;
        __shared += bytes;
        return 0;
    }
    GRIDSTRIDE_INLINED int move(int __axis, long long __steps) {
        base += __steps * source.kept_strides[__axis];
        return 0;
    }
    GRIDSTRIDE_INLINED long long row_step() const { return source.kept_strides[__is_of_columns ? 0 : 1]; }
    // Bring so many elements of the rows, of which the tile has as many as there are columns or rows of results left.
    // Neighboring threads take those that are closest.
    GRIDSTRIDE_INLINED int bring(int __first, int __count, int __columns, int __rows) const {
        const char* const __from = base + __first * source.step;
        const int __last = (__is_of_columns ? __columns : __rows) - 1;
        if (llabs(source.step) < llabs(row_step())) bring_each<true>(__from, __count, __last);
        else bring_each<false>(__from, __count, __last);
        return 0;
    }
    template <bool __is_along>
    GRIDSTRIDE_INLINED void bring_each(const char* __from, int __count, int __last) const {
        constexpr int __all = rows * __chunk, __each = (__all + fold_threads - 1) / fold_threads, __at_once = __each < 8 ? __each : 8;
        const int __step = int(source.step), __row_step = int(row_step());
#pragma unroll 1
        for (int __begin = threadIdx.x; __begin < __all; __begin += __at_once * fold_threads) {
            stored __waiting[__at_once];
#pragma unroll
            for (int __u = 0; __u < __at_once; ++__u) {
                const int __row = row_of<__is_along>(__begin, __u), __k = place_of<__is_along>(__begin, __u);
                if (__k < __count) copy(__waiting[__u], *reinterpret_cast<const stored*>(__from + __k * __step + static_cast<long long>(__row < __last ? __row : __last) * __row_step));
            }
#pragma unroll
            for (int __u = 0; __u < __at_once; ++__u)
                copy(*reinterpret_cast<stored*>(waiting + place_of<__is_along>(__begin, __u) * pitch + row_of<__is_along>(__begin, __u) * size), __waiting[__u]);
        }
    }
    // Which element of which row is `__u` times as many behind one as a block has threads.
    template <bool __is_along>
    static GRIDSTRIDE_INLINED int row_of(int __begin, int __u) {
        return __is_along ? __begin / __chunk + __u * (fold_threads / __chunk) : rows > fold_threads ? (__begin + __u * fold_threads) % rows : __begin % rows;
    }
    template <bool __is_along>
    static GRIDSTRIDE_INLINED int place_of(int __begin, int __u) {
        return __is_along ? __begin % __chunk : rows > fold_threads ? (__begin + __u * fold_threads) / rows : __begin / rows + __u * (fold_threads / rows);
    }
    GRIDSTRIDE_INLINED int take(int __k) {
        const char* const __at = waiting + __k * pitch + (__is_of_columns ? threadIdx.x % 32 : threadIdx.x / 32) * (own * size);
        if (own * size > 16) {
            uint4 __words[(own * size + 15) / 16];
#pragma unroll
            for (int __j = 0; __j < own * size / 16; ++__j) __words[__j] = reinterpret_cast<const uint4*>(__at)[__j];
            memcpy(&items, &__words, own * size);
        } else {
            whole<own, stored>::load(items, __at);
        }
        return 0;
    }
    GRIDSTRIDE_INLINED decltype(auto) of(int __column, int __row) {
        return element<__operand>(items.items[__is_of_columns ? __column : __row]).get();
    }
};

// Add so many elements, of which the first has a number and a place, of each pair of a thread's rows.
template <int __across, int __down, class __folding, class __map, class __reduce, int __axes, class... __paired>
GRIDSTRIDE_INLINED void add_pairs(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__down][__across],
                                  const fold_space<__axes>& __space, long long __number, int __first, int __count, __paired&... __all) {
#pragma unroll 2
    for (int __k = 0; __k < __count; ++__k) {
        swallow(__all.take(__k)...);
        const long long __here = __number + (__first + __k) * __space.fold_numbers.step;
#pragma unroll
        for (int __a = 0; __a < __down; ++__a)
#pragma unroll
            for (int __b = 0; __b < __across; ++__b)
                __sums[__a][__b].add(__do, __do_map(__here + __b * __space.kept_numbers.step + __a * __space.kept_numbers.strides[1],
                                                    __first + __k, __all.of(__b, __a)...));
    }
}

// Hand over the results of so many rows and columns of a thread.
template <int __across, int __down, class __folding, class __finish, int __axes>
GRIDSTRIDE_INLINED void hand_over_pairs(const __finish& __do_finish, __folding (&__sums)[__down][__across], const fold_space<__axes>& __space,
                                        const outer_place<__axes>& __place, int __rows, int __columns) {
    auto __make = [&](const auto& __do_post, auto&&... __outputs) {
        long long __result = move_to(__space, __place, __outputs...);
#pragma unroll 1
        for (int __a = 0; __a < __rows; ++__a, __result += __space.result.strides[1]) {
            assign_outer<false>(__do_post, __sums[0], __result, __space.result.step, __columns, __outputs...);
            swallow(__outputs.move(1, 1)...);
#pragma unroll
            for (int __k = 1; __k < __down; ++__k)
#pragma unroll
                for (int __b = 0; __b < __across; ++__b) __sums[__k - 1][__b] = __sums[__k][__b];
        }
    };
    __do_finish(0, 0, outer_results<decltype(__make)>{__make});
}

template <int __across, int __down, int __chunk, class __folding, class __map, class __reduce, class __finish, int __axes, class... __paired>
GRIDSTRIDE_INLINED void fold_tile_of_pairs(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                           const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                           __paired&&... __all) {
    unsigned __rest = blockIdx.x;
    long long __number = 0;
    const unsigned __tile = remainder_of(__space.kept, __rest, 0), __tile_row = __tile / static_cast<unsigned>(__space.group);
    const long long __column = (__tile - __tile_row * __space.group) * (32ll * __across);
    const long long __row = __tile_row * (fold_threads / 32ll * __down);
    outer_place<__axes> __place;
    swallow(__all.take_memory(__shared)...);
    swallow(__all.move(0, __column)...);
    swallow(__all.move(1, __row)...);
#pragma unroll
    for (int __axis = 2; __axis < __axes; ++__axis) {
        __place.at[__axis] = 0;
        if (__axis >= __space.kept.ndim) continue;
        __place.at[__axis] = remainder_of(__space.kept, __rest, __axis);
        __number += __place.at[__axis] * __space.kept_numbers.strides[__axis];
        swallow(__all.move(__axis, __place.at[__axis])...);
    }
    const int __left = threadIdx.x % 32 * __across, __above = threadIdx.x / 32 * __down;
    const int __columns = __space.part - __column < 32 * __across ? int(__space.part - __column) : 32 * __across;
    const int __rows = __space.width - __row < fold_threads / 32 * __down ? int(__space.width - __row) : fold_threads / 32 * __down;
    __number += (__column + __left) * __space.kept_numbers.step + (__row + __above) * __space.kept_numbers.strides[1];
    __folding __sums[__down][__across];
#pragma unroll
    for (int __a = 0; __a < __down; ++__a)
#pragma unroll
        for (int __b = 0; __b < __across; ++__b) __sums[__a][__b] = __start;
    const int __length = int(__space.fold_row);
#pragma unroll 1
    for (int __done = 0; __done < __length; __done += __chunk) {
        const int __count = __length - __done < __chunk ? __length - __done : __chunk;
        if (__done) __syncthreads();
        swallow(__all.bring(__done, __count, __columns, __rows)...);
        __syncthreads();
        add_pairs(__do_map, __do, __sums, __space, __number, __done, __count, __all...);
    }
    __place.at[0] = __column + __left;
    __place.at[1] = __row + __above;
    const int __last = __columns - __left < __across ? __columns - __left : __across;
    const int __some = __rows - __above < __down ? __rows - __above : __down;
    if (__last <= 0) return;
    hand_over_pairs(__do_finish, __sums, __space, __place, __some, __last);
}

// Which inputs have rows for the columns of results; the others have rows for rows of them.
template <int __across, int __down, bool... __are_of_columns>
struct fold_pairs {
    template <class... __operands>
    static __device__ constexpr int chunk() { return pairs_chunk(larger(int(sizeof(typename __operands::stored))...)); }
    template <class __folding, class... __operands>
    static __device__ constexpr int shared_bytes() {
        return sum_of(paired<__operands, chunk<__operands...>(), __across, __down, __are_of_columns>::bytes...);
    }
    template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
        constexpr int __chunk = chunk<__operands...>();
        fold_tile_of_pairs<__across, __down, __chunk>(
            __do_map, __do, __do_finish, __start, __space, __shared,
            paired<__operands, __chunk, __across, __down, __are_of_columns>(__inputs)...);
    }
};

}

#endif
