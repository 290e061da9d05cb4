// `fold_narrow`: folds of many short rows that lie one after another, into one result for each column. Threads take
// packets whatever rows they belong to, at such distances that a thread's packets always have the same columns.
#ifndef GRIDSTRIDE_FOLD_NARROW_H
#define GRIDSTRIDE_FOLD_NARROW_H

#include <gridstride/fold_columns.h>
#include <gridstride/line_packets.h>

namespace gridstride {

// Where the elements of a thread are: `threads` packets make a round, which has a whole number of rows.
struct narrow_place {
    int row, threads;                   // columns there are, also in gaps, and packets of a round
    int first_row, first_column, rows;  // of the thread's packet of a round; rows of a round
    long long number, number_step, number_row, position_row;
    int kept;  // columns that are no gap

    // Whether element `__j` of the thread's packets is none of a gap.
    GRIDSTRIDE_INLINED bool keeps(int __j) const { return (first_column + __j) % row < kept; }
    GRIDSTRIDE_INLINED long long packet(long long __round) const { return __round * threads + threadIdx.x; }
    // Which row of a round has element `__j` of the thread's packet.
    GRIDSTRIDE_INLINED int row_of(int __j) const { return first_row + (first_column + __j) / row; }
    // Call `__add(number of the element, position in the fold)` for element `__j` of the thread's packet of a round.
    template <class __add>
    GRIDSTRIDE_INLINED void at(long long __round, int __j, const __add& __do_add) const {
        const int __below = (first_column + __j) / row;
        const long long __row = __round * rows + first_row + __below;
        __do_add(number + __row * number_row + (first_column + __j - __below * row) * number_step, __row * position_row);
    }
};

template <bool __has_gaps, int __length, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED void add_narrow(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                   const narrow_place& __place, long long __round, int __last, int __k,
                                   __inputs&... __all) {
#pragma unroll
    for (int __j = 0; __j < __length; ++__j)
        if (__j < __last && (!__has_gaps || __place.keeps(__j)))
            __place.at(__round, __j, [&](long long __number, long long __position) {
                __sums[__j].add(__do, __do_map(__number, __position,
                                               element<typename __inputs::operand>(__all.packets[__k].items[__j]).get()...));
            });
}

// The thread's packets of rounds from `__first` to before `__end`; the first round that is left.
template <bool __has_gaps, int __length, int __count, loading __how, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED long long add_rounds(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                        const narrow_place& __place, long long __first, long long __end,
                                        __inputs&... __all) {
    for (; __first + __count <= __end; __first += __count) {
        const long long __packet = __place.packet(__first);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            swallow(__all.template load_as<__how>(__k, __packet + __k * __place.threads)...);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            swallow(__all.template unpack_as<__how>(__k)...);
            add_narrow<__has_gaps, __length>(__do_map, __do, __sums, __place, __first + __k, __length, __k, __all...);
        }
    }
    return __first;
}

// All of the thread's whole packets of rounds from `__first` to before `__end`; `__end`, or `__first` where that is more.
template <bool __has_gaps, int __length, int __count, loading __how, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED long long add_all_rounds(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                            const narrow_place& __place, long long __first, long long __end,
                                            __inputs&... __all) {
    __first = add_rounds<__has_gaps, __length, __count, __how>(__do_map, __do, __sums, __place, __first, __end, __all...);
    return __count == 1 ? __first : add_rounds<__has_gaps, __length, 1, __how>(__do_map, __do, __sums, __place, __first, __end, __all...);
}

template <int __length, int __count, loading __how, class __columns_type, class __input>
GRIDSTRIDE_INLINED long long add_byte_rounds(__columns_type& __columns, const narrow_place& __place, long long __first,
                                             long long __end, __input& __one) {
    for (; __first + __count <= __end; __first += __count) {
        const long long __packet = __place.packet(__first);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) __one.template load_as<__how>(__k, __packet + __k * __place.threads);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            __one.template unpack_as<__how>(__k);
            __columns.add(__one.packets[__k]);
        }
    }
    return __first;
}

// Join what threads hold of each column in `__columns`: first those whose packets have the same columns.
template <int __length, class __folding, class __reduce>
GRIDSTRIDE_INLINED void join_narrow(const __reduce& __do, __folding (&__sums)[__length], int __row, int __period,
                                    int __threads, __folding* __columns) {
    const int __x = threadIdx.x;
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) {
        __syncthreads();
        if (__x < __threads) __columns[__x] = __sums[__j];
        for (int __left = __threads / __period; __left > 1;) {
            const int __half = (__left + 1) / 2;
            __syncthreads();
            if (__x < (__left - __half) * __period) {
                __sums[__j].add(__do, __columns[__x + __half * __period]);
                __columns[__x] = __sums[__j];
            }
            __left = __half;
        }
    }
    // Elements of as many numbers as the columns and the packets have a factor in common are in different columns.
#pragma unroll
    for (int __j = 0; __j < __length; ++__j) {
        __syncthreads();
        if (__x >= __period) continue;
        __folding& __column = __columns[(__x * __length + __j) % __row];
        if (__j < __row / __period) __column = __sums[__j];
        else __column.add(__do, __sums[__j]);
    }
    __syncthreads();
}

// Where all threads' values lie in a row in shared memory, those of a column are as many apart as there are columns.
template <int __length, class __value, class __reduce>
GRIDSTRIDE_INLINED __value joined_columns(const __reduce& __do, int __row, int __threads, __value* __table) {
    const int __x = threadIdx.x, __taken = fold_threads / __row * __row, __values = __threads * __length;
    __syncthreads();
    __value __sum = __table[__x < __taken ? __x : 0];
    if (__x < __taken)
        for (int __at = __x + __taken; __at < __values; __at += __taken) joined(__do, __sum, __table[__at]);
    for (int __left = __taken / __row; __left > 1;) {
        const int __half = (__left + 1) / 2;
        if (__x < __left * __row) __table[__x] = __sum;
        __syncthreads();
        if (__x < (__left - __half) * __row) joined(__do, __sum, __table[__x + __half * __row]);
        __left = __half;
        __syncthreads();
    }
    return __sum;
}

// The rounds of a thread, its packets, and those of the block's part.
struct narrow_rounds {
    long long first, words_end, end, whole, elements;
    bool has_last;  // whether the thread has the last packet, which is not whole
};

// How packets are loaded that are words, or may begin between words.
template <bool __are_words, class... __inputs>
__device__ constexpr loading loading_of() {
    return __are_words ? by_words
         : all_of(__inputs::are_pieces()...) ? by_pieces
         : all_of(__inputs::are_pairs()...) ? by_shifting : by_elements;
}

template <bool __are_words, bool __has_gaps, int __length, int __count, class __folding, class __map, class __reduce, class... __inputs>
GRIDSTRIDE_INLINED void add_thread(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                                   const narrow_place& __place, const narrow_rounds& __rounds, __inputs&... __all) {
    constexpr loading __how = loading_of<__are_words, __inputs...>();
    long long __round = __rounds.first;
    if (__how == by_words || (__how == by_elements && all_of(__all.has_words()...)))
        __round = add_all_rounds<__has_gaps, __length, __count, by_words>(__do_map, __do, __sums, __place, __round, __rounds.words_end, __all...);
    else
        __round = add_all_rounds<__has_gaps, __length, __how == by_pieces ? __count : __how == by_shifting ? 2 : 1, __how>(
            __do_map, __do, __sums, __place, __round, __rounds.words_end, __all...);
    if (__rounds.has_last && __round < __rounds.end && __place.packet(__round) == __rounds.whole) {
        const int __last = int(__rounds.elements - __rounds.whole * __length);
        swallow(__all.load(0, __rounds.whole, __last)...);
        swallow(__all.unpack(0)...);
        add_narrow<__has_gaps, __length>(__do_map, __do, __sums, __place, __round, __last, 0, __all...);
    }
}

// The value of the thread's column.
template <bool __are_bytes>
struct narrow_block {
    template <bool __are_words, bool __has_gaps, int __length, int __count, class __folding, class __map, class __reduce, class... __inputs>
    static GRIDSTRIDE_INLINED __folding fold(const __map& __do_map, const __reduce& __do, const __folding& __start,
                                             const narrow_place& __place, const narrow_rounds& __rounds, int __period,
                                             char* __shared, __inputs&... __all) {
        __folding __sums[__length];
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) __sums[__j] = __start;
        add_thread<__are_words, __has_gaps, __length, __count>(__do_map, __do, __sums, __place, __rounds, __all...);
        __folding* __columns = reinterpret_cast<__folding*>(__shared);
        join_narrow<__length>(__do, __sums, __place.row, __period, __place.threads, __columns);
        return __columns[threadIdx.x];
    }
};
// Of bytes that are folded in words, which have room for the rounds of a part.
template <>
struct narrow_block<true> {
    template <bool __are_words, bool, int __length, int __count, class __folding, class __map, class __reduce, class __input>
    static GRIDSTRIDE_INLINED __folding fold(const __map&, const __reduce& __do, __folding __start, const narrow_place& __place,
                                             const narrow_rounds& __rounds, int, char* __shared, __input& __one) {
        typedef typename columns_in_words<__reduce, typename __input::stored, __length>::type __columns_type;
        __columns_type __columns;
        typedef typename __columns_type::kept __kept;
        long long __round = __rounds.first;
        const char* const __begin = __round < __rounds.words_end ? __one.at(__place.packet(__round)) : nullptr;
        constexpr loading __how = loading_of<__are_words, __input>();
        __round = add_byte_rounds<__length, __count, __how>(__columns, __place, __round, __rounds.words_end, __one);
        __round = add_byte_rounds<__length, 1, __how>(__columns, __place, __round, __rounds.words_end, __one);
        if (__rounds.has_last && __round < __rounds.end && __place.packet(__round) == __rounds.whole) {
            const int __last = int(__rounds.elements - __rounds.whole * __length);
            __one.load(0, __rounds.whole, __last);
            __one.unpack(0);
            __columns.add_last(__one.packets[0], __last);
        }
        __kept* __table = reinterpret_cast<__kept*>(__shared);
        if (threadIdx.x < __place.threads)
#pragma unroll
            for (int __j = 0; __j < __length; ++__j) {
                const __kept __own = __columns.value(__j, __place.row_of(__j), __place.rows);
                __table[threadIdx.x * __length + __j] =
                    __begin ? with_any(__own, __begin + __j * sizeof(typename __input::stored), __place.row_of(__j)) : __own;
            }
        return as_folded(__do, __start, joined_columns<__length>(__do, __place.row, __place.threads, __table),
                         __rounds.first * __place.rows);
    }
};

// A value of each thread, or a sum of each byte of its packets, or an element of a structure and its row.
template <class __folding, class... __operands>
__device__ constexpr int narrow_bytes() {
    return larger(fold_bytes<__folding>(),
                  packet_length<__operands...>() == 16 || sizeof(typename __folding::type) > 8 ? fold_threads * 64 : 1);
}

template <bool __are_outermost, bool __are_words, bool __has_gaps, bool __are_bytes, int __length, int __count, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_narrow_block(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                          const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                          __inputs&&... __all) {
    // `group` threads see all columns; as many such groups as fit take part.
    const int __kept = int(__space.kept_row), __row = __has_gaps ? int(__space.width) : __kept, __period = __space.group, __threads = fold_threads / __period * __period;
    const int __x = threadIdx.x, __first_row = __x * __length / __row;
    const narrow_place __place = {
        __row, __threads, __first_row, __x * __length - __first_row * __row, __threads * __length / __row,
        settle(__space, blockIdx.x, 1, __all...), __space.kept_numbers.step, __space.fold_numbers.strides[0],
        __space.position.strides[0], __kept};
    const long long __elements = __space.fold.length[0] * __row - (__row - __kept), __whole = __elements / __length;
    const long long __round = blockIdx.y * __space.part, __end = __round + __space.part;
    // Rounds in which all of the thread's packet exists.
    const long long __full = __x < __threads && __x < __whole ? (__whole - __x - 1) / __threads + 1 : 0;
    const narrow_rounds __rounds = {__round, __end < __full ? __end : __full, __end, __whole, __elements,
                                    __x < __threads && __whole * __length < __elements};
    const __folding __column = narrow_block<__are_bytes>::template fold<__are_words, __has_gaps, __length, __count>(
        __do_map, __do, __start, __place, __rounds, __period, __shared, __all...);
    const long long __result = static_cast<long long>(blockIdx.x) * __kept + __x;
    if (__x >= __kept) return;
    if (__are_outermost) __do_finish(__result, int(blockIdx.y), one_result(__column));
    else __do_finish(__result, int(blockIdx.y), __column);
}

// `__are_outermost`: whether parts of neighboring results lie next to each other; whether all packets are words; whether there
// are gaps between rows, which begin `width` elements apart.
template <int __count, bool __are_outermost, bool __are_words, bool __has_gaps = false, class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void fold_narrow(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                    const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                    const __operands&... __inputs) {
    constexpr int __length = packet_length<__operands...>();
    fold_narrow_block<__are_outermost, __are_words, __has_gaps, folds_bytes<__reduce, __operands...>::value, __length, __count>(__do_map, __do, __do_finish, __start, __space, __shared,
                                         line_input<__operands, __length, __count>(__inputs)...);
}

}

#endif
