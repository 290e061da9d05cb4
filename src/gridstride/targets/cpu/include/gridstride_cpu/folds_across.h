// Folds in which the innermost axis is kept: `shared_across`. Rows are added to a row of sums, several at once; rows of
// sums of equally many are added up, and rows of those.
#ifndef GRIDSTRIDE_CPU_FOLDS_ACROSS_H
#define GRIDSTRIDE_CPU_FOLDS_ACROSS_H

#include <gridstride_cpu/row_sums.h>
#include <gridstride_cpu/untangling.h>

namespace gridstride {

constexpr int elements_together = 2048;  // at most, of rows that lie one after another
constexpr int fewest_together = 4;       // rows

// How many rows, and how much of them, is brought to where it can be folded, where it does not lie so.
template <class... __operands>
struct brought {
    static constexpr int largest = largest_stored<__operands...>(), count = sizeof...(__operands);
    static constexpr int rows = largest > 16 ? 1 : 16;
    static constexpr int bytes = count > 2 ? buffer_bytes_of(count) : 2 * buffer_bytes;
    static constexpr int width = larger(bytes / (rows * largest), 1);

    // How many of so many rows are brought at once: about equally many each time, in multiples of four.
    GRIDSTRIDE_INLINED static int height(int __all) {
        const int __times = (__all + rows - 1) / rows, __each = (__all + __times - 1) / __times;
        return rows > 1 ? (__each + 3) / 4 * 4 : 1;
    }
};

// An input on its way: rows of consecutive elements, its own or the buffer's.
template <class __operand, int __rows, int __width>
struct input_rows {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char* base;
    const char* row;
    const char* items;
    long long stride;  // between rows
    bool are_fetched;  // ahead
    alignas(64) char buffer[__rows * __width * sizeof(stored)];

    GRIDSTRIDE_INLINED input_rows(const __operand& __source) : source(__source) {}
    // Whether rows of so many elements lie one after another.
    GRIDSTRIDE_INLINED bool is_continuous(long long __elements) const {
        return is_direct() && source.strides[0] == __elements * long(sizeof(stored));
    }
    GRIDSTRIDE_INLINED bool is_direct() const {
        return (source.strides[0] % long(alignof(stored)) == 0) & gridstride::is_direct<stored>(base, source.step) &
               gridstride::is_direct<stored>(row, source.step);
    }
    // How many of so many rows there is room for.
    GRIDSTRIDE_INLINED int held(int __all) const { return __all; }
    // Go to rows of elements, of which there are at most so many where `is_direct` is false.
    GRIDSTRIDE_INLINED int begin(long long __row, int __together, int __rows_ahead, long long __element, int __width_ahead) {
        const long long __apart = source.strides[0] * __together;
        const char* const __at = row + __row * __apart + __element * source.step;
        if (is_direct()) {
            items = __at;
            stride = __apart;
            are_fetched = true;
            return 0;
        }
        items = buffer;
        stride = __width * sizeof(stored);
        are_fetched = false;
        untangle<sizeof(stored)>({__at, source.step, __apart, __rows_ahead, buffer, stride}, __width_ahead);
        return 0;
    }
};

template <class __operand>
struct rows_at {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    static constexpr int size = sizeof(stored);
    const char* items;
    long long stride;
    bool are_fetched;
    long long ahead;

    GRIDSTRIDE_INLINED stored& at(int __row, long long __k) const {
        return reinterpret_cast<stored*>(const_cast<char*>(items + __row * stride))[__k];
    }
    // Whether it is worth it to take rows of so many elements one by one: little lies between them.
    GRIDSTRIDE_INLINED bool is_stream(int __count) const {
        return are_fetched && __count >= 256 && 0 < stride && stride <= 4 * __count * size;
    }
    // Fetch whole times so many rows ahead, unless that is too far.
    GRIDSTRIDE_INLINED int look_ahead(int __rows) {
        const long long __bytes = __rows * stride;
        ahead = are_fetched && 0 < __bytes && __bytes <= bytes_ahead / 2 ? (bytes_ahead + __bytes - 1) / __bytes * __bytes : 0;
        return 0;
    }
    // The same for rows that are taken one by one, of so many elements.
    GRIDSTRIDE_INLINED void look_rows_ahead(int __count) {
        ahead = are_fetched ? (bytes_ahead + __count * size - 1) / (__count * size) * stride : 0;
    }
    GRIDSTRIDE_INLINED int fetch(int __rows, long long __from, int __count) const {
        for (int __row = 0; ahead != 0 && __row < __rows; ++__row)
            for (int __k = 0; __k < __count * size; __k += line_bytes) __builtin_prefetch(items + ahead + __row * stride + __from * size + __k);
        return 0;
    }
    // It stands apart, so that it is compiled once.
    static GRIDSTRIDE_APART int fetch(rows_at __its, int __rows, int __count) { return __its.fetch(__rows, 0, __count); }
};

// Fold so many rows at once into the sums, or only where these are the first ones.
template <int __rows, bool __in_trees, bool __joins, class __type, class __reduce, class __value>
GRIDSTRIDE_INLINED void fold_rows_into(row_of_values<__type> __sums, bool __is_first, const __reduce& __do, int __count,
                                       const __value& __value_at) {
    typedef several<__rows, __in_trees> __several;
    auto __at = [&](long long __k) { return [&__value_at, __k](int __row) { return __value_at(__row, __k); }; };
    if (__is_first || !__joins) {
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __count; ++__k) __sums.set(__k, __several::template fold<__type>(__do, __at(__k), 0));
    } else {
        GRIDSTRIDE_INDEPENDENT
        for (long long __k = 0; __k < __count; ++__k) __sums.set(__k, __several::template join<__type>(__do, __sums.get(__k), __at(__k), 0));
    }
}

// Fold rows into the sums, the first of which may be the first of all.
template <class __type, class __map, class __reduce, class... __rows_at>
GRIDSTRIDE_INLINED void fold_some_rows(row_of_values<__type> __sums, bool __is_first, const __map& __do_map, const __reduce& __do,
                                       long long __number, long long __step, long long __number_stride,
                                       long long __position, long long __position_stride, int __count, int __rows,
                                       __rows_at... __all) {
    constexpr bool __are_halves = !__is_class(__type) && sizeof(__type) == 4 && largest_stored<typename __rows_at::operand...>() == 2;
    constexpr int __inputs = sizeof...(__rows_at), __few = lanes_of_members<__type>() > 1 ? 8 : __are_halves ? 8 : 4;
    constexpr int __at_once = __inputs < 3 ? __few : __inputs < 5 ? 2 : 1;
    constexpr bool __in_trees = joins_in_trees<__type, typename __rows_at::operand...>();
    auto __value = [&](int __row, long long __k) -> __type {
        return static_cast<__type>(__do_map(__number + __row * __number_stride + __k * __step,
                                            __position + __row * __position_stride,
                                            element<typename __rows_at::operand>(__all.at(__row, __k)).get()...));
    };
    // Of long rows sums take too much of the nearest cache to come back to them for each row.
    const bool __are_stream = __are_halves && __count <= elements_together && all_of(__all.is_stream(__count)...);
    swallow(__all.look_ahead(__are_stream ? 1 : __at_once)...);
    for (int __row = 0; __row < __rows;) {
        const int __left = __rows - __row;
        const bool __takes_two = __at_once > 2 && (!__are_halves || __is_first);
        const int __done = __are_stream ? 1 : __left >= __at_once ? __at_once : __left > 1 && __takes_two ? 2 : 1;
        swallow(__rows_at::fetch(__all, __done, __count)...);
        if (__done == __at_once) fold_rows_into<__at_once, __in_trees, true>(__sums, __is_first, __do, __count, __value);
        else if (__done == 2) fold_rows_into<2, __in_trees, !__are_halves>(__sums, __is_first, __do, __count, __value);
        else fold_rows_into<1, __in_trees, true>(__sums, __is_first, __do, __count, __value);
        __is_first = false;
        __row += __done;
        __number += __done * __number_stride;
        __position += __done * __position_stride;
        swallow((__all.items += __done * __all.stride)...);
    }
}

// Small integers are added as they are stored: row by row in the order of memory, since sums are in the nearest cache.
template <int __rows, class __type, class __stored>
GRIDSTRIDE_APART void add_rows(__type* __sums, const __stored* __items, long long __stride, int __count) {
    GRIDSTRIDE_INDEPENDENT
    for (long long __k = 0; __k < __count; ++__k) {
        __type __sum = __sums[__k];
        for (int __row = 0; __row < __rows; ++__row) __sum = __type(__sum + __items[__row * __stride + __k]);
        __sums[__k] = __sum;
    }
}
constexpr int stretch_of_row = 2048;
template <class __type, class __map, class __rows_at>
GRIDSTRIDE_INLINED void fold_some_rows(row_of_values<__type> __sums, bool __is_first, const __map&, const adding&, long long, long long,
                                       long long, long long, long long, int __count, int __rows, __rows_at __its) {
    const bool __are_stream = __its.is_stream(__count);
    if (__are_stream) __its.look_rows_ahead(__count);
    else __its.look_ahead(4);
    if (__is_first) __builtin_memset(__sums.values, 0, __count * sizeof(__type));
    for (int __row = 0; __row < __rows;) {
        const int __done = __are_stream || __rows - __row < 4 ? 1 : 4;
        for (int __from = 0; __from < __count; __from += stretch_of_row) {
            const int __some = smaller(stretch_of_row, __count - __from);
            __its.fetch(__done, __from, __some);
            if (__done == 1) add_rows<1>(__sums.values + __from, &__its.at(0, __from), 0, __some);
            else add_rows<4>(__sums.values + __from, &__its.at(0, __from), __its.stride / __its.size, __some);
        }
        __row += __done;
        __its.items += __done * __its.stride;
    }
}

// What a batch of rows is folded into: how many rows, of how many values, and up to how many are folded together.
template <class __type, class __map, class __reduce, class... __operands>
struct batch_of_rows : brief<__type, __reduce, __operands...> {
    typedef typename brief<__type, __reduce, __operands...>::type value;
    typedef row_of_values<value> row;
    static constexpr bool is_brief = sizeof(value) < sizeof(__type), is_one_run = false;
    static constexpr int rows = is_brief ? 256 : 64, width = larger((is_brief ? 16384 : 32768) / int(sizeof(value)), 1);
    static constexpr int together = is_brief ? 256 : 128;
};

// Fold rows that are one step of the first folded axis apart into the sums; several together are one row.
template <class __inputs_brought, class __row_of_sums, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_run(__row_of_sums __sums, bool __is_first, const __map& __do_map, const __reduce& __do,
                                 const fold_space<__axes>& __space, long long __number, long long __position,
                                 long long __element, int __count, int __rows, int __together, __inputs&... __all) {
    const long long __number_stride = __space.fold_numbers.strides[0] * __together;
    const long long __position_stride = __space.position.strides[0] * __together;
    const bool __are_direct = all_of(__all.is_direct()...);
    const int __width = __are_direct ? __count : __inputs_brought::width;
    const int __height = smaller(__are_direct ? __rows : __inputs_brought::height(__rows), __all.held(__rows)...);
    for (int __from = 0; __from < __count; __from += __width) {
        const int __some = __count - __from < __width ? __count - __from : __width;
        for (int __row = 0; __row < __rows; __row += __height) {
            const int __some_rows = __rows - __row < __height ? __rows - __row : __height;
            swallow(__all.begin(__row, __together, __some_rows, __element + __from, __some)...);
            fold_some_rows(__sums.from(__from), __is_first && __row == 0, __do_map, __do,
                           __number + __from * __space.kept_numbers.step + __row * __number_stride,
                           __space.kept_numbers.step, __number_stride, __position + __row * __position_stride,
                           __position_stride, __some, __some_rows,
                           rows_at<typename __inputs::operand>{__all.items, __all.stride, __all.are_fetched, 0}...);
        }
    }
}

// Fold the rows from one index along the folded axes to another into the sums.
template <class __inputs_brought, class __row_of_sums, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_batch(__row_of_sums __sums, const __map& __do_map, const __reduce& __do,
                                   const fold_space<__axes>& __space, long long __number, long long __element,
                                   int __count, long long __begin, long long __end, int __together, __inputs&... __all) {
    for (long long __f = __begin; __f < __end;) {
        long long __numbers = __number, __position = 0, __rest = __f;
        step_into(__space, __f, 0, __numbers, __position, __all...);
        const long long __left = __space.fold.length[0] - digit_of(__space.fold, __rest, 0);
        const int __rows = int(__end - __f < __left ? __end - __f : __left);
        fold_run<__inputs_brought>(__sums, __f == __begin, __do_map, __do, __space, __numbers, __position, __element,
                                   __count * __together, __rows / __together, __together, __all...);
        __f += __rows;
    }
}

// How many rows are folded as one: of few elements that lie one after another so many that loops are worth it. Then
// elements have no numbers. What is folded together is joined as batches are, so there are several of these.
template <class __map, class __batches, int __elements, int __axes, class... __inputs>
GRIDSTRIDE_INLINED int rows_together(const fold_space<__axes>& __space, long long __rows, __inputs&... __all) {
    const long long __width = __space.kept_row;
    if (asks_for_numbers<__map>::value || __space.fold.ndim > 1 || __width > __batches::together || __rows <= __batches::rows)
        return 1;
    long long __number = 0, __position = 0;
    step_into(__space, 0, 0, __number, __position, __all...);
    const int __most = __rows < 8 * 256 ? power_of_two_up_to(int(__rows / 8)) : 256;
    // Those that are left are no more than sums of small integers have room for.
    const int __fitting = smaller(power_of_two_up_to(__elements / int(__width)), __most);
    return __fitting < fewest_together || !all_of(__all.is_continuous(__width)...) ? 1 : __fitting;
}

template <class __inputs_brought, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void run_across(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                   const __folding& __start, const fold_space<__axes>& __space, __inputs&&... __all) {
    // Axis 0 of the results counts pieces of their row, `group` results each.
    typedef typename __folding::type __type;
    typedef batch_of_rows<__type, __map, __reduce, typename __inputs::operand...> __batches;
    typedef sums_of_rows<__type, typename __batches::row> __rows_of_sums;
    constexpr long long __largest_batch = __batches::rows;
    // Whole steps of the second folded axis, so that what has to be brought is brought at once.
    const long long __step = __space.fold.ndim > 1 && __space.fold.length[0] < __largest_batch ? __space.fold.length[0] : 1;
    const long long __batch = __largest_batch / __step * __step;
    constexpr int __elements = smaller(elements_together, __batches::width);
    const bool __are_runs = __batches::is_one_run && __space.fold.ndim > 1;
    const bool __is_joined = __space.part > __batch || __are_runs;
    const bool __has_whole = __space.part > __batch * (__rows_of_sums::batch - 1) || __are_runs;
    const long long __most = __batches::is_one_run && __has_whole ? __batches::width / 2 : __batches::width;
    const long long __width = __space.group < __most ? __space.group : __most, __whole = __space.fold.count;
    // On the stack as much as is needed, since each page of a frame is touched.
    const long long __room_width = __width < __elements ? __elements : __width;
    char* const __room = static_cast<char*>(__builtin_alloca(__rows_of_sums::bytes(__room_width, __is_joined || lanes_of_members<__type>() > 1, __has_whole)));
    const share_of_pieces __share(__space.kept.count * __space.parts);
    for (long long __piece = __share.first; __piece < __share.last; ++__piece) {
        const long long __part = __piece % __space.parts;
        long long __row = __piece / __space.parts;
        const long long __first = digit_of(__space.kept, __row, 0) * __space.group;
        const long long __last = __space.kept_row - __first < __space.group ? __space.kept_row : __first + __space.group;
        const long long __corner = settle(__space, __row, 1, __all...);
        const long long __begin = __part * __space.part;
        const long long __end = __begin + __space.part < __whole ? __begin + __space.part : __whole;
        const int __together = rows_together<__map, __batches, __elements>(__space, __end - __begin, __all...);
        const long long __end_of_together = __end - (__end - __begin) % __together;
        for (long long __element = __first; __element < __last; __element += __width) {
            const int __count = int(__last - __element < __width ? __last - __element : __width);
            const long long __result = __row * __space.kept_row + __element;
            if (__begin >= __end) {
                for (int __k = 0; __k < __count; ++__k) __do_finish(__result + __k, int(__part), __start);
                continue;
            }
            __rows_of_sums __sums(__room, __room_width);
            for (long long __from = __begin; __from < __end;) {
                // Fewer rows than are folded together are a batch of their own.
                const bool __is_rest = __from == __end_of_together;
                const int __as_one = __is_rest ? 1 : __together;
                const long long __run = __space.fold.length[0];
                const long long __ahead = __are_runs && __run - __from % __run < __batch ? __from + __run - __from % __run : __from + __batch * __as_one;
                const long long __to = __is_rest ? __end : __ahead < __end_of_together ? __ahead : __end_of_together;
                fold_batch<__inputs_brought>(__sums.batched, __do_map, __batches::reduce(__do), __space,
                                             __corner + __element * __space.kept_numbers.step, __element, __count, __from, __to,
                                             __as_one, __all...);
                if (__is_joined && !__is_rest) __sums.join(__do, __count * __as_one);
                __from = __to;
            }
            const auto __joined = __is_joined ? __sums.result(__do, __count, __together, __end_of_together < __end) : __sums.joined;
            finish_row<__folding>(__do_finish, __do, __result, int(__part), __count, __is_joined, __joined, __sums.batched);
        }
    }
}

template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shared_across(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                      const __folding& __start, const fold_space<__axes>& __space,
                                      const __operands&... __all) {
    typedef brought<__operands...> __brought;
    run_across<__brought>(__do_map, __do, __do_finish, __start, __space,
                          input_rows<__operands, __brought::rows, __brought::width>(__all)...);
}

}

#endif
