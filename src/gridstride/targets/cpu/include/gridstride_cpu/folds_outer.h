// Folds of elements of which some inputs have the same for all rows of results, or for all columns, as the distances of
// all pairs of points are: `shared_outer`. A piece is some rows of results, as wide as what is folded of the inputs that lie
// along columns fits the nearest cache, where it is brought once; what lies along rows is a few numbers for each.
//
// In `fold_space`, `part` and `width` are the rows and columns of a piece, axes 0 and 1 of `kept` count those, `fold` has the
// numbers of columns and rows, and `group` says whether results are stored past the caches.
#ifndef GRIDSTRIDE_CPU_FOLDS_OUTER_H
#define GRIDSTRIDE_CPU_FOLDS_OUTER_H

#include <gridstride_cpu/folds.h>
#include <gridstride_cpu/streaming.h>
#include <gridstride_cpu/untangling.h>

namespace gridstride {

// How an input lies, as in the header for blocks of threads.
constexpr int outer_columns = 0, outer_rows = 1, outer_both = 2;
// Elements of a result that are folded at once, those of longer ones but the first ones.
constexpr int outer_group = 8;

// Some elements of a row: by place in the fold and column.
template <class __operand, int __count, int __how>
struct outer_row {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    const stored* items[__count];
    GRIDSTRIDE_INLINED outer_row(const char* __from, long long __pitch) {
        for (int __k = 0; __k < __count; ++__k) items[__k] = reinterpret_cast<const stored*>(__from + __k * __pitch);
    }
    GRIDSTRIDE_INLINED stored& at(int __k, long long __column) const { return const_cast<stored&>(items[__k][__column]); }
};
template <class __operand, int __count>
struct outer_row<__operand, __count, outer_rows> {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    stored values[__count];
    GRIDSTRIDE_INLINED outer_row(const char* __from, long long __pitch) {
        for (int __k = 0; __k < __count; ++__k) copy(values[__k], *reinterpret_cast<const stored*>(__from + __k * __pitch));
    }
    GRIDSTRIDE_INLINED stored& at(int __k, long long) const { return const_cast<stored&>(values[__k]); }
};

// An input, of which the elements with the same place in the fold lie one after another, or are brought to where they do.
template <class __operand, int __how>
struct outer_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    const __operand& source;
    const char* base;
    const char* items;
    long long pitch;
    char* room;

    GRIDSTRIDE_INLINED outer_input(const __operand& __source) : source(__source) {}
    static constexpr long long pitch_of(int __width) { return (__width * long(sizeof(stored)) + line_bytes - 1) / line_bytes * line_bytes; }
    static constexpr long long bytes(int __length, int __width) {
        return __how == outer_rows ? 0 : larger(__length, square<sizeof(stored)>::side) * pitch_of(__width);
    }
    GRIDSTRIDE_INLINED int take_room(char*& __memory, int __length, int __width) {
        room = __memory;
        __memory += bytes(__length, __width);
        return 0;
    }
    GRIDSTRIDE_INLINED int move(int __axis, long long __steps) {
        base += __steps * source.kept_strides[__axis];
        return 0;
    }
    GRIDSTRIDE_INLINED void bring(int __length, int __width) {
        const long long __step = source.kept_strides[0];
        items = base;
        pitch = source.step;
        if (__how == outer_rows || (is_direct<stored>(base, __step) && pitch % long(alignof(stored)) == 0)) return;
        items = room;
        pitch = pitch_of(__width);
        untangle<sizeof(stored)>({base, __step, source.step, __length, room, pitch}, __width);
    }
    GRIDSTRIDE_INLINED int begin(int __length, int __width) {
        if (__how == outer_columns) bring(__length, __width);
        return 0;
    }
    // Go to the row that `base` is at, and move it to the next one.
    GRIDSTRIDE_INLINED int begin_row(int __length, int __width) {
        if (__how == outer_columns) return 0;
        bring(__length, __width);
        return move(1, 1);
    }
    template <int __count>
    GRIDSTRIDE_INLINED outer_row<__operand, __count, __how> row(int __place, int) const { return {items + __place * pitch, pitch}; }
};

// The same of an input that lies in any of these ways: the few numbers of a row are repeated for its columns.
template <class __operand>
struct any_outer_input : outer_input<__operand, outer_both> {
    typedef outer_input<__operand, outer_both> of_both;
    typedef typename __operand::stored stored;
    const bool is_of_columns, is_of_rows;
    const char* of_row;

    GRIDSTRIDE_INLINED any_outer_input(const __operand& __source)
        : of_both(__source), is_of_columns(__source.kept_strides[1] == 0 && __source.kept_strides[0] != 0), is_of_rows(__source.kept_strides[0] == 0) {}
    GRIDSTRIDE_INLINED long long bytes(int __length, int __width) const { return of_both::bytes(is_of_rows ? outer_group : __length, __width); }
    GRIDSTRIDE_INLINED int take_room(char*& __memory, int __length, int __width) {
        return of_both::take_room(__memory, is_of_rows ? outer_group : __length, __width);
    }
    GRIDSTRIDE_INLINED int begin(int __length, int __width) {
        if (is_of_columns) this->bring(__length, __width);
        return 0;
    }
    GRIDSTRIDE_INLINED int begin_row(int __length, int __width) {
        of_row = this->base;
        if (!is_of_rows && !is_of_columns) this->bring(__length, __width);
        return this->move(1, 1);
    }
    template <int __count>
    GRIDSTRIDE_INLINED outer_row<__operand, __count, outer_both> row(int __place, int __width) const {
        if (!is_of_rows) return of_both::template row<__count>(__place, __width);
        const long long __pitch = this->pitch_of(__width);
        for (int __k = 0; __k < __count; ++__k)
            repeat_bytes<sizeof(stored)>(this->room + __k * __pitch, of_row + (__place + __k) * this->source.step, __width);
        return {this->room, __pitch};
    }
};

// An output: rows in memory, or in a buffer from which they are stored past the caches or element by element.
template <class __operand>
struct outer_output {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    const __operand& source;
    char* base;
    char* room;
    stored* items;
    bool is_streamed;
    unfinished_line unfinished = {nullptr, 0, 0};
    alignas(64) char line[line_bytes];

    GRIDSTRIDE_INLINED outer_output(const __operand& __source, bool __is_streamed)
        : source(__source), is_streamed(can_stream && __is_streamed && !__operand::is_read && is_direct<stored>(__source.data, __source.step)) {}
    GRIDSTRIDE_INLINED bool has_rows() const { return is_direct<stored>(base, source.step); }
    static constexpr long long bytes(int __width) { return (__width * long(sizeof(stored)) + 3 * line_bytes - 1) / line_bytes * line_bytes; }
    GRIDSTRIDE_INLINED int take_room(char*& __memory, int __width) {
        room = __memory;
        __memory += bytes(__width);
        return 0;
    }
    GRIDSTRIDE_INLINED int move(int __axis, long long __steps) {
        base += __steps * (__axis ? source.strides[__axis] : source.step);
        return 0;
    }
    GRIDSTRIDE_INLINED int begin_row(int __width) {
        if (is_streamed) items = reinterpret_cast<stored*>(room + go_on(unfinished, line, room, base));
        else if (has_rows()) items = reinterpret_cast<stored*>(base);
        else {
            items = reinterpret_cast<stored*>(room);
            if (__operand::is_read) gather_bytes<sizeof(stored)>(room, base, source.step, __width);
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int end_row(int __width) {
        if (is_streamed) stream(unfinished, line, room, base, __width * long(sizeof(stored)));
        else if (!has_rows())
            for (int __k = 0; __k < __width; ++__k) copy_short(base + __k * source.step, room + __k * sizeof(stored), sizeof(stored));
        return move(1, 1);
    }
    GRIDSTRIDE_INLINED int end() {
        if (is_streamed) finish(unfinished, line);
        return 0;
    }
};

// The fold of so many elements, `__value_at(place, column)`, joined with those before.
template <int __count, class __type, class __reduce, class __value>
GRIDSTRIDE_INLINED __type fold_of_column(const __reduce& __do, const __value& __value_at, const __type* __before, long long __column) {
    __type __sum = __value_at(0, __column);
#pragma GCC unroll 8
    for (int __k = 1; __k < __count; ++__k) __sum = __do(__sum, __value_at(__k, __column));
    return __before ? __do(__before[__column], __sum) : __sum;
}
// Assign it for a row of results.
template <int __count, class __type, class... __outputs, class __reduce, class __post, class __value>
GRIDSTRIDE_INLINED void assign_outer_row(const __reduce& __do, const __post& __do_post, const __value& __value_at, const __type* __before,
                                         long long __number, long long __step, int __width, typename __outputs::stored* const... __items) {
    GRIDSTRIDE_INDEPENDENT
    for (long long __column = 0; __column < __width; ++__column)
        __do_post(__number + __column * __step, fold_of_column<__count>(__do, __value_at, __before, __column),
                  element<__outputs>(__items[__column]).get()...);
}
// Keep it.
template <int __count, bool __is_first, class __type, class __reduce, class __value>
GRIDSTRIDE_INLINED void keep_outer_row(const __reduce& __do, const __value& __value_at, __type* __sums, int __width) {
    GRIDSTRIDE_INDEPENDENT
    for (long long __column = 0; __column < __width; ++__column)
        __sums[__column] = fold_of_column<__count>(__do, __value_at, __is_first ? nullptr : __sums, __column);
}

// Call `__do(function of a place and a column)`, which maps the elements of a row from a place on.
template <class __type, class __map, int __axes, class __body, class... __rows>
GRIDSTRIDE_INLINED void with_values(const __map& __do_map, const fold_space<__axes>& __space, long long __number, int __place, const __body& __do,
                                    const __rows... __all) {
    const long long __step = __space.kept_numbers.step, __next = __space.fold_numbers.step, __position = __space.position.step;
    __number += __place * __next;
    __do([&](int __k, long long __column) -> __type {
        return static_cast<__type>(__do_map(__number + __column * __step + __k * __next, (__place + __k) * __position,
                                            element<typename __rows::operand>(__all.at(__k, __column)).get()...));
    });
}

template <class __output> struct outer_operand;
template <class __operand> struct outer_operand<outer_output<__operand>&&> { typedef __operand type; };
template <class __operand> struct outer_operand<outer_output<__operand>&> { typedef __operand type; };

// What a text hands over instead of results: how all of them are made, once it is known where they are stored.
template <class __making>
struct outer_results {
    const __making& make;
};
template <class __post, class __making, int __axes, class... __operands>
GRIDSTRIDE_INLINED void assign(const __post& __do_post, const outer_results<__making>& __all, const fold_space<__axes>& __space, long long,
                               const __operands&... __outputs) {
    __all.make(__do_post, outer_output<__operands>(__outputs, __space.group != 0)...);
}
template <class __making, int __axes>
GRIDSTRIDE_INLINED void keep(const outer_results<__making>&, const fold_space<__axes>&, long long, int) {}

// So many elements of a result are folded first, and then others if there are more; 0: one, groups, and then one by one.
template <int __first, bool __has_more, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_outer_pieces(const __map& __do_map, const __reduce& __do, const __finish& __do_finish, const fold_space<__axes>& __space,
                                          __inputs&&... __all) {
    typedef typename __folding::type __type;
    const int __most = int(__space.width), __length = __has_more ? int(__space.fold_row) : __first;
    auto __make = [&](const auto& __do_post, auto&&... __to) {
        const int __kept = __has_more ? (__most * int(sizeof(__type)) + line_bytes - 1) / line_bytes * line_bytes : 0;
        const block_memory __memory(line_bytes + __kept + sum_of(int(__all.bytes(__length, __most))..., int(__to.bytes(__most))...));
        char* __room = __memory.bytes;
        __room += line_bytes - reinterpret_cast<unsigned long>(__room) % line_bytes;
        __type* const __sums = __has_more ? reinterpret_cast<__type*>(__room) : nullptr;
        __room += __kept;
        swallow(__all.take_room(__room, __length, __most)...);
        swallow(__to.take_room(__room, __most)...);
        const share_of_pieces __share(__space.kept.count);
        for (long long __piece = __share.first; __piece < __share.last; ++__piece) {
            long long __rest = __piece, __number = 0, __result = 0;
            swallow((__all.base = __all.source.data)...);
            swallow((__to.base = __to.source.data)...);
            auto __move = [&](int __axis, long long __at) {
                __number += __at * __space.kept_numbers.strides[__axis];
                __result += __at * (__axis ? __space.result.strides[__axis] : __space.result.step);
                swallow(__all.move(__axis, __at)...);
                swallow(__to.move(__axis, __at)...);
            };
            const long long __column = digit_of(__space.kept, __rest, 0) * __space.width, __row = digit_of(__space.kept, __rest, 1) * __space.part;
            __move(0, __column);
            __move(1, __row);
            for (int __axis = 2; __axis < __space.kept.ndim; ++__axis) __move(__axis, digit_of(__space.kept, __rest, __axis));
            const int __width = int(__space.fold.length[0] - __column < __space.width ? __space.fold.length[0] - __column : __space.width);
            const long long __rows = __space.fold.length[1] - __row < __space.part ? __space.fold.length[1] - __row : __space.part;
            swallow(__all.begin(__length, __width)...);
            for (long long __y = 0; __y < __rows; ++__y) {
                const long long __of_row = __number + __y * __space.kept_numbers.strides[1];
                swallow(__all.begin_row(__length, __width)...);
                swallow(__to.begin_row(__width)...);
                if (__has_more) {
                    constexpr int __begun = __first ? __first : 1;
                    with_values<__type>(__do_map, __space, __of_row, 0, [&](const auto& __value_at) {
                        keep_outer_row<__begun, true>(__do, __value_at, __sums, __width);
                    }, __all.template row<__begun>(0, __width)...);
                    int __k = __begun;
                    for (; __k + outer_group < __length; __k += outer_group)
                        with_values<__type>(__do_map, __space, __of_row, __k, [&](const auto& __value_at) {
                            keep_outer_row<outer_group, false>(__do, __value_at, __sums, __width);
                        }, __all.template row<outer_group>(__k, __width)...);
                    for (; __first == 0 && __k + 1 < __length; ++__k)
                        with_values<__type>(__do_map, __space, __of_row, __k, [&](const auto& __value_at) {
                            keep_outer_row<1, false>(__do, __value_at, __sums, __width);
                        }, __all.template row<1>(__k, __width)...);
                }
                constexpr int __count = __first == 0 ? 1 : __has_more ? outer_group : __first;
                with_values<__type>(__do_map, __space, __of_row, __length - __count, [&](const auto& __value_at) {
                    assign_outer_row<__count, __type, typename outer_operand<decltype(__to)>::type...>(
                        __do, __do_post, __value_at, __has_more ? __sums : nullptr, __result + __y * __space.result.strides[1], __space.result.step,
                        __width, __to.items...);
                }, __all.template row<__count>(__length - __count, __width)...);
                swallow(__to.end_row(__width)...);
            }
        }
        swallow(__to.end()...);
        finish_streams();
    };
    __do_finish(0, 0, outer_results<decltype(__make)>{__make});
}

template <int __first, bool __has_more, int... __how>
struct outer {
    template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish, const __folding&,
                                        const fold_space<__axes>& __space, const __operands&... __inputs) {
        fold_outer_pieces<__first, __has_more, __folding>(__do_map, __do, __do_finish, __space, outer_input<__operands, __how>(__inputs)...);
    }
};

// Folds of any length, of inputs that lie in any way.
template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void any_outer(const __map& __do_map, const __reduce& __do, const __finish& __do_finish, const __folding&,
                                  const fold_space<__axes>& __space, const __operands&... __inputs) {
    fold_outer_pieces<0, true, __folding>(__do_map, __do, __do_finish, __space, any_outer_input<__operands>(__inputs)...);
}

}

#endif
