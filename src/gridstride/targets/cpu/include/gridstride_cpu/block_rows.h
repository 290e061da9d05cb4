// The inputs of folds of blocks of short rows: of those that lack axes of a block elements are repeated, in memory of their
// own, where they follow each other as those of the others do.
#ifndef GRIDSTRIDE_CPU_BLOCK_ROWS_H
#define GRIDSTRIDE_CPU_BLOCK_ROWS_H

#include <gridstride_cpu/folds_across.h>
#include <gridstride_cpu/pieces.h>

namespace gridstride {

// An axis of a block: how far apart its neighbors are in columns, numbers and positions.
struct block_axis {
    long long length, columns, number, position;
    bool is_folded;
    int place;  // among the axes of its kind
};

constexpr int repeated_bytes = 32768;  // of several rows of an input
constexpr int spare_values = 64;       // behind a block, at which lanes may look

template <class __operand, int __rows, int __width, bool __may_repeat>
struct block_rows : input_rows<__operand, __rows, __width> {
    typedef input_rows<__operand, __rows, __width> in_memory;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored);

    repeated_axis axes[2 * sizeof(__operand::kept_strides) / sizeof(long long) + 1];
    int count;
    bool are_repeated;  // else elements lie as those of a block
    char* memory;       // of those that are repeated, or of a block behind which there is nothing
    const char* first;  // of the row that is repeated there, or null
    long long known;    // elements of it
    long long stride_of_rows, pitch;
    int most_rows;

    GRIDSTRIDE_INLINED block_rows(const __operand& __source) : in_memory(__source) {}
    // Return how many bytes the memory takes.
    template <class __block>
    GRIDSTRIDE_APART long long plan(const __block& __its, bool __has_rows) {
        count = __its.count;
        first = nullptr;
        bool __follows = true;
        for (int __k = 0; __k < count; ++__k) {
            const block_axis& __axis = __its.axis[__k];
            axes[__k] = {__axis.columns, (__axis.is_folded ? this->source.strides : this->source.kept_strides)[__axis.place]};
            __follows = __follows && axes[__k].stride == __axis.columns * size;
        }
        are_repeated = __may_repeat && !__follows;
        if (!are_repeated && __has_rows) return 0;
        // What lies behind a row is overwritten, as far as a vector reaches.
        pitch = ((__its.columns * __its.together + spare_values) * size + 2 * line_bytes - 1) / line_bytes * line_bytes;
        stride_of_rows = __has_rows ? this->source.strides[0] : 0;
        most_rows = stride_of_rows ? smaller(16, larger(int(repeated_bytes / pitch))) : 1;
        return most_rows * pitch;
    }
    GRIDSTRIDE_INLINED int take(char*& __memory, long long __bytes) {
        memory = __memory;
        __memory += __bytes;
        return 0;
    }
    GRIDSTRIDE_INLINED bool is_repeated() const { return __may_repeat && are_repeated; }
    GRIDSTRIDE_INLINED bool is_direct() const { return is_repeated() || in_memory::is_direct(); }
    GRIDSTRIDE_INLINED int held(int __all) const { return is_repeated() && stride_of_rows ? smaller(__all, most_rows) : __all; }
    GRIDSTRIDE_INLINED int begin(long long __row, int __together, int __rows_ahead, long long __element, int __width_ahead) {
        if (!is_repeated()) return in_memory::begin(__row, __together, __rows_ahead, __element, __width_ahead);
        const long long __apart = stride_of_rows * __together, __elements = __element + __width_ahead;
        repeat_rows(this->row + __row * __apart, __apart, __apart ? __rows_ahead : 1, __elements);
        this->items = memory + __element * size;
        this->stride = __apart ? pitch : 0;
        this->are_fetched = false;
        return 0;
    }

    // Return where so many elements of a block lie in order, and spare ones behind them.
    GRIDSTRIDE_INLINED const stored* whole_block(long long __elements, bool __is_followed) {
        if (!is_repeated() && __is_followed && reinterpret_cast<unsigned long>(this->base) % alignof(stored) == 0)
            return reinterpret_cast<const stored*>(this->base);
        bring_block(__elements);
        return reinterpret_cast<const stored*>(memory);
    }

private:
    GRIDSTRIDE_APART void bring_block(long long __elements) {
        if (is_repeated() && !repeat_rows(this->base, 0, 1, __elements)) return;
        if (!is_repeated()) __builtin_memcpy(memory, this->base, __elements * size);
        char* const __last = memory + (__elements - 1) * size;
        for (int __k = 1; __k <= spare_values; ++__k) __builtin_memcpy(__last + __k * size, __last, size);
    }
    // Return whether it was not done before.
    GRIDSTRIDE_APART bool repeat_rows(const char* __at, long long __apart, int __rows_ahead, long long __elements) {
        if (first == __at && __rows_ahead == 1 && __elements <= known) return false;
        first = __rows_ahead == 1 ? __at : nullptr;
        known = __elements;
        for (int __k = 0; __k < __rows_ahead; ++__k) repeat_elements<size>(memory + __k * pitch, __at + __k * __apart, axes, count, __elements);
        return true;
    }
};

}

#endif
