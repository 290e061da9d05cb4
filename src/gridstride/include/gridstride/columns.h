// What a thread of a block has of neighboring columns: packets of its inputs, and where they are among those of the block.
#ifndef GRIDSTRIDE_COLUMNS_H
#define GRIDSTRIDE_COLUMNS_H

#include <gridstride/fold_parts.h>

namespace gridstride {

// Bytes of values that a thread folds at once; more would only take registers.
constexpr int most_column_bytes = 64;

// How many columns a thread takes: a packet, or a part of one, so that values which are folded stay in registers.
__device__ constexpr int columns_taken(int __length, int __least, int __bytes) {
    return __length > __least && __length * __bytes > most_column_bytes ? columns_taken(__length / 2, __least, __bytes) : __length;
}
template <class __folding, class... __operands>
__device__ constexpr int column_length() {
    return columns_taken(packet_length<__operands...>(), (packet_length<__operands...>() + 3) / 4,
                         int(sizeof(typename __folding::type)));
}
// Values for all columns of all threads; of bytes that are added, sums.
template <class __folding, class... __operands>
__device__ constexpr int columns_bytes() {
    return fold_threads *
           larger(int(sizeof(__folding)) > largest_folding ? 1 : column_length<__folding, __operands...>() * int(sizeof(__folding)),
                  packet_length<__operands...>() == 16 ? 64 : 1);
}

// The place in a word of one element for all columns.
constexpr int anywhere = -2;

// What a thread holds of an input: packets of neighboring columns, one from each of several rows. `__may_repeat`: whether
// the input may have one element for a row.
template <class __operand, int __length, int __count, bool __may_repeat = false>
struct column_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int bytes = __length * int(sizeof(stored));

    const __operand& source;
    const char* base;
    word_of<stored, __length> words[__count];
    packet<stored, __length> packets[__count];

    GRIDSTRIDE_INLINED column_input(const __operand& __source) : source(__source), base(__source.data) {}
    GRIDSTRIDE_INLINED bool is_repeated() const { return __may_repeat && source.step == 0; }
    // How many elements of the word where the base is come before it, as in all rows that are so many apart; else -1.
    GRIDSTRIDE_INLINED int past_word(int __apart) const {
        const unsigned __off = static_cast<unsigned>(reinterpret_cast<unsigned long long>(base) % bytes);
        if (is_repeated()) return anywhere;
        const bool __are_alike = is_one_word<stored, __length>::value && source.step == sizeof(stored) &&
                                 source.strides[0] * __apart % bytes == 0 && __off % sizeof(stored) == 0;
        return __are_alike ? int(__off / sizeof(stored)) : -1;
    }
    GRIDSTRIDE_INLINED int move(long long __rows) {
        base += __rows * source.strides[0];
        return 0;
    }
    GRIDSTRIDE_INLINED int load_word(int __k, int __apart) {
        if (is_repeated()) return load_element(__k, __apart);
        return words[__k].load(base + __k * (__apart * source.strides[0]));
    }
    GRIDSTRIDE_INLINED int unpack(int __k) {
        if (!is_repeated()) return words[__k].unpack(packets[__k]);
#pragma unroll
        for (int __j = 1; __j < __length; ++__j) packets[__k].items[__j] = packets[__k].items[0];
        return 0;
    }
    GRIDSTRIDE_INLINED int load_element(int __k, int __apart) {
        part_of<stored>::take(packets[__k].items[0], *reinterpret_cast<const stored*>(base + __k * (__apart * source.strides[0])));
        return 0;
    }
};

GRIDSTRIDE_INLINED int in_common(int __a) { return __a == anywhere ? 0 : __a; }
template <class... __rest>
GRIDSTRIDE_INLINED int in_common(int __a, int __b, __rest... __others) {
    return in_common(__a == __b || __b == anywhere ? __a : __a == anywhere ? __b : -1, __others...);
}

// Where a thread's packet is among the columns of its block, and how the user's expressions count its elements. Where
// the text says how many threads lie next to each other (else 0), the compiler knows which of two rows comes first.
template <bool __is_stacked, int __wide, class __counter>
struct column_place {
    int width, inner;    // columns of the block, and of a result
    int group, height;   // threads next to each other, and above each other
    int x, y;            // the thread's place
    int first, apart;    // its first column, before 0 where a word begins in front of the row, and to the next
    long long number, step, inner_step, inner_position;  // of the thread's first row
    __counter position;
    long long row_step;                                  // to its next one
    __counter row_position;

    template <int __axes>
    GRIDSTRIDE_INLINED column_place(const fold_space<__axes>& __space, int __group, long long __stretch)
        : inner(__is_stacked ? int(__space.fold_row) : 1), group(__wide ? __wide : __group),
          height(__wide ? fold_threads / (__wide ? __wide : 1) : fold_threads >> (__ffs(__group) - 1)),
          x(threadIdx.x & (group - 1)), y(threadIdx.x >> (__ffs(group) - 1)), number(0),
          step(__space.kept_numbers.step), inner_step(__space.fold_numbers.step), inner_position(__space.position.step), position(0),
          row_step(height * __space.fold_numbers.strides[__is_stacked]),
          row_position(static_cast<__counter>(__is_stacked ? height * __space.position.strides[1] : height)) {
        const long long __left = __space.kept_row - __stretch * __space.width;
        width = int(__left < __space.width ? __left : __space.width) * inner;
    }
    // Beyond the block there are values that nobody asks for, of numbers that exist.
    GRIDSTRIDE_INLINED int column(int __j, int __apart) const {
        const int __column = first + __j * __apart < width ? first + __j * __apart : width - 1;
        return __column < 0 ? 0 : __column;
    }
    GRIDSTRIDE_INLINED long long number_of(int __j, int __apart) const {
        const int __column = column(__j, __apart), __result = __is_stacked ? __column / inner : __column;
        return number + __result * step + (__is_stacked ? (__column - __result * inner) * inner_step : 0);
    }
    // The place of the row, and of an element in a row so many rows after that.
    GRIDSTRIDE_INLINED __counter first_place() const { return places<__counter>::first(position); }
    GRIDSTRIDE_INLINED long long place(__counter __first, int __rows, int __j, int __apart) const {
        if (!__is_stacked) return places<__counter>::after(__first, __rows * height);
        return __first + __rows * row_position + column(__j, __apart) % inner * inner_position;
    }
    GRIDSTRIDE_INLINED void skip_rows(int __count) {
        number += __count * row_step;
        position += __count * row_position;
    }
    GRIDSTRIDE_INLINED bool has(int __j) const { return unsigned(first + __j * apart) < unsigned(width); }
    // Where a column of a row of threads stands in shared memory.
    template <int __length>
    GRIDSTRIDE_INLINED int slot(int __of_row, int __column) const {
        return __of_row * group * __length + __column;
    }
};

}

#endif
