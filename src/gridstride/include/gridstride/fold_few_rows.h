// `fold_few_rows`: folds of a few rows, in which a thread takes a packet of neighboring results from all of them.
#ifndef GRIDSTRIDE_FOLD_FEW_ROWS_H
#define GRIDSTRIDE_FOLD_FEW_ROWS_H

#include <gridstride/fold_blocks.h>
#include <gridstride/integer_sums.h>
#include <gridstride/results.h>

namespace gridstride {

// How packets are loaded: as words, as elements one after another between words, or in any steps; or some of their elements.
// Those that are `few_into_words` lie between words, too, but begin where words of results do.
enum few_loading { few_words, few_between, few_elements, few_of_packet, few_into_words };
__device__ constexpr bool are_between(few_loading __how) { return __how == few_between || __how == few_into_words; }
// Rows on their way to a thread at once where packets are no words.
__device__ constexpr int few_at_once(few_loading __how) { return __how == few_elements ? 2 : 4; }

// What a thread holds of an input: packets of a few rows.
template <class __operand, int __length, int __count>
struct few_rows_input {
    typedef __operand operand;
    typedef typename __operand::stored stored;

    const __operand& source;
    const char *base, *first;
    word_of<stored, __length> words[__count];
    arriving<__length, stored> others[__count];
    packet<stored, __length> packets[__count];

    GRIDSTRIDE_INLINED few_rows_input(const __operand& __source) : source(__source), base(__source.data), first(base) {}
    GRIDSTRIDE_INLINED int begin() {
        base = source.data;
        return 0;
    }
    GRIDSTRIDE_INLINED const char* at(int __k) const { return base + __k * source.strides[0]; }
    GRIDSTRIDE_INLINED unsigned past_word(int __k) const { return static_cast<unsigned>(reinterpret_cast<unsigned long long>(at(__k)) % 16); }
    template <few_loading __how>
    GRIDSTRIDE_INLINED int load_whole(int __k) {
        if (__how == few_words) return words[__k].load(at(__k));
        if (are_between(__how)) {
            if (sizeof(stored) >= 4) others[__k].load_cached(at(__k), past_word(__k));
            else others[__k].load(at(__k), past_word(__k));
        } else {
#pragma unroll
            for (int __j = 0; __j < __length; ++__j)
                copy(packets[__k].items[__j], *reinterpret_cast<const stored*>(at(__k) + __j * source.step));
        }
        return 0;
    }
    template <few_loading __how>
    GRIDSTRIDE_INLINED int unpack_whole(int __k) {
        if (__how == few_words) return words[__k].unpack(packets[__k]);
        if (are_between(__how)) {
            if (sizeof(stored) >= 4) others[__k].join_cached(past_word(__k));
            else others[__k].join(past_word(__k));
            others[__k].unpack(packets[__k]);
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int load_some(int __last) {
        load_packet<__length>(packets[0], base, source.step, 0, __last);
        return 0;
    }
    GRIDSTRIDE_INLINED int move(int __rows) {
        base += __rows * source.strides[0];
        return 0;
    }
    // Go from the first rows to those that are so many further along the second axis.
    GRIDSTRIDE_INLINED int stand() {
        first = base;
        return 0;
    }
    GRIDSTRIDE_INLINED int move_further(int __further) {
        base = first + __further * source.strides[1];
        return 0;
    }
};

// Rows that are folded one after another: where there are two axes, those along the first one.
template <bool __has_further, int __axes>
GRIDSTRIDE_INLINED int rows_at_once(const fold_space<__axes>& __space) {
    return int(__has_further ? __space.fold.length[0] : __space.fold.count);
}

// Where rows are along the second axis, if there is one.
struct few_further {
    long long number, position;
    template <int __axes>
    GRIDSTRIDE_INLINED few_further(const fold_space<__axes>& __space, long long __number, int __at)
        : number(__number + __at * __space.fold_numbers.strides[1]), position(__at * __space.position.strides[1]) {}
    GRIDSTRIDE_INLINED explicit few_further(long long __number) : number(__number), position(0) {}
};

// Add rows, `__count` at a time, of which the first is number `__row`; return the first that is left.
template <int __length, int __count, few_loading __how, class __folding, class __map, class __reduce, int __axes, class... __inputs>
GRIDSTRIDE_INLINED int add_few_rows(const __map& __do_map, const __reduce& __do, __folding (&__sums)[__length],
                               const fold_space<__axes>& __space, const few_further& __from, int __row, int __rows, int __last,
                               __inputs&... __all) {
    // Where packets are no words, so many texts of them would be long: so the last turn has fewer.
    constexpr bool __is_full = !are_between(__how) && __how != few_elements;
    for (; __is_full ? __row + __count <= __rows : __row < __rows; __row += __count) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k)
            if (!__is_full && __row + __k >= __rows) break;
            else if (__how == few_of_packet) swallow(__all.load_some(__last)...);
            else swallow(__all.template load_whole<__how>(__k)...);
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            if (!__is_full && __row + __k >= __rows) break;
            if (__how != few_of_packet) swallow(__all.template unpack_whole<__how>(__k)...);
            // Beyond the end of a row there are values of nothing, whose sums nobody asks for.
#pragma unroll
            for (int __j = 0; __j < __length; ++__j)
                __sums[__j].add(__do, __do_map(__from.number + (__row + __k) * __space.fold_numbers.strides[0] +
                                                   (__j < __last ? __j : 0) * __space.kept_numbers.step,
                                               __from.position + (__row + __k) * __space.position.strides[0],
                                               element<typename __inputs::operand>(__all.packets[__k].items[__j]).get()...));
        }
        swallow(__all.move(__count)...);
    }
    return __row;
}

// Which results a packet has: from number `first` on, those from `begin` to before `last`. Where results are counted as
// one row, all packets of rows are whole. Where packets need be no words, the last of a row begins so early that it is
// whole, too, and has results that are of the one before. Where they begin with words of results, of which the first
// row begins `width` elements behind one, the first of a row is whole and leaves results to the next one.
template <int __length, few_loading __how>
struct few_results {
    long long first, outer, element;
    int begin, last;
    int loaded;  // elements of the packet there are

    template <int __axes>
    GRIDSTRIDE_INLINED few_results(const fold_space<__axes>& __space, long long __packet)
        : first(__packet * __length), outer(__packet), element(__packet), begin(0) {
        if (__space.kept.ndim > 1) element = taken_off(__space.kept, outer, 0);
        else outer = 0;
        element *= __length;
        if (__how == few_into_words) {
            begin_with_words(__space);
            return;
        }
        long long __left = __space.outputs - first;
        if (__space.kept_row < __space.outputs) {
            first = outer * __space.kept_row + element;
            __left = __space.kept_row - element;
        }
        loaded = last = __left < __length ? int(__left) : __length;
        if (__how == few_words || last == __length || element == 0) return;
        begin = __length - last;
        loaded = last = __length;
        first -= begin;
        element -= begin;
    }

private:
    template <int __axes>
    GRIDSTRIDE_INLINED void begin_with_words(const fold_space<__axes>& __space) {
        const int __behind = int((__space.width + outer * __space.kept_row) % __length);
        loaded = last = __length;
        if (element < __behind) {
            last = __length - __behind;
            element = 0;
        } else {
            element -= __behind;
            const long long __left = __space.kept_row - element;
            if (__left < __length) {
                begin = __left < 0 ? __length : int(__length - __left);
                element = __space.kept_row - __length;
            }
        }
        first = outer * __space.kept_row + element;
    }
};

// The values of a thread's packet of results. `__how` whole packets are loaded.
template <bool __are_bytes>
struct few_values {
    template <few_loading __how, bool __has_further, int __length, int __count, class __folding, class __map, class __reduce, int __axes, class... __inputs>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __folding& __start,
                                        const fold_space<__axes>& __space, long long __number, int __last,
                                        __folding (&__sums)[__length], __inputs&... __all) {
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) __sums[__j] = __start;
        const int __rows = rows_at_once<__has_further>(__space);
        const auto __fold_rows = [&](const few_further& __from) {
            int __row = 0;
            if (__last < __length) {
                add_few_rows<__length, 1, few_of_packet>(__do_map, __do, __sums, __space, __from, __row, __rows, __last, __all...);
            } else if (__how == few_words) {
                __row = add_few_rows<__length, __count, few_words>(__do_map, __do, __sums, __space, __from, __row, __rows, __length, __all...);
                if (__count > 4) __row = add_few_rows<__length, 4, few_words>(__do_map, __do, __sums, __space, __from, __row, __rows, __length, __all...);
                if (__count > 2) __row = add_few_rows<__length, 2, few_words>(__do_map, __do, __sums, __space, __from, __row, __rows, __length, __all...);
                add_few_rows<__length, 1, few_words>(__do_map, __do, __sums, __space, __from, __row, __rows, __length, __all...);
            } else {
                add_few_rows<__length, few_at_once(__how), __how>(__do_map, __do, __sums, __space, __from, __row, __rows, __length, __all...);
            }
        };
        if (!__has_further) {
            __fold_rows(few_further(__number));
            return;
        }
        swallow(__all.stand()...);
#pragma unroll 1
        for (int __at = 0; __at < int(__space.fold.length[1]); ++__at) {
            swallow(__all.move_further(__at)...);
            __fold_rows(few_further(__space, __number, __at));
        }
    }
};
// Of bytes that are folded in words.
template <int __count, few_loading __how, class __columns_type, class __input>
GRIDSTRIDE_INLINED void add_few_words(__columns_type& __columns, int __rows, __input& __one) {
    for (int __row = 0; __row < __rows; __row += __count) {
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            if (__row + __k >= __rows) break;
            __one.template load_whole<__how>(__k);
        }
#pragma unroll
        for (int __k = 0; __k < __count; ++__k) {
            if (__row + __k >= __rows) break;
            __one.template unpack_whole<__how>(__k);
            __columns.add(__one.packets[__k]);
        }
        __one.move(__count);
    }
}
template <>
struct few_values<true> {
    template <few_loading __how, bool __has_further, int __length, int __count, class __folding, class __map, class __reduce, int __axes, class __input>
    static GRIDSTRIDE_INLINED void fold(const __map&, const __reduce&, const __folding&, const fold_space<__axes>& __space,
                                        long long, int __last,
                                        typename columns_in_words<__reduce, typename __input::stored, __length>::type::kept (&__sums)[__length],
                                        __input& __one) {
        typedef typename columns_in_words<__reduce, typename __input::stored, __length>::type __columns_type;
        __columns_type __columns;
        const int __rows = rows_at_once<__has_further>(__space), __times = __has_further ? int(__space.fold.length[1]) : 1;
        const char* const __begin = __one.base;
        if (__last == __length) {
            if (__has_further) __one.stand();
#pragma unroll 1
            for (int __at = 0; __at < __times; ++__at) {
                if (__has_further) __one.move_further(__at);
                add_few_words<__count, __how>(__columns, __rows, __one);
            }
#pragma unroll
            for (int __j = 0; __j < __length; ++__j) __sums[__j] = with_any(__columns.value(__j, 0, 1), __begin + __j * __one.source.step, 0);
            return;
        }
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) {
            const char* __from = __begin + (__j < __last ? __j : 0) * __one.source.step;
            const char* const __first = __from;
            __sums[__j] = __columns_type::nothing();
#pragma unroll 1
            for (int __row = 0; __row < __rows * __times; ++__row) {
                __columns_type::add_one(__sums[__j], *reinterpret_cast<const typename __input::stored*>(__from), __row);
                __from += __one.source.strides[0];
                if (__has_further && (__row + 1) % __rows == 0) __from += __one.source.strides[1] - __rows * __one.source.strides[0];
            }
            __sums[__j] = with_any(__sums[__j], __first, 0);
        }
    }
};

template <bool __are_bytes, int __length, class __folding, class __reduce, class... __operands> struct few_value { typedef __folding type; };
template <int __length, class __folding, class __reduce, class __operand>
struct few_value<true, __length, __folding, __reduce, __operand> {
    typedef typename columns_in_words<__reduce, typename __operand::stored, __length>::type::kept type;
};

// Store what a thread has, in words; where there is shared memory for it, what the threads of a warp have, so that they
// store neighboring words.
template <bool __has_room>
struct few_handed {
    template <few_loading __how, int __length, int __stored, class __folding, class __value, class __reduce, class __finish, int __axes>
    static GRIDSTRIDE_INLINED void hand(const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                        const fold_space<__axes>& __space, const __value (&__sums)[__length],
                                        const few_results<__length, __how>& __own, long long __packet, __value*) {
        if (__packet >= __space.kept.count) return;
#pragma unroll
        for (int __at = 0; __at < __length; __at += __stored) {
            packet_of_results<__folding, __stored> __results;
            __results.first = __own.begin > __at ? __own.begin - __at : 0;
            __results.last = __own.last - __at < __stored ? __own.last - __at : __stored;
#pragma unroll
            for (int __j = 0; __j < __stored; ++__j) __results.values[__j] = as_folded(__do, __start, __sums[__at + __j], 0);
            if (__results.first < __results.last) __do_finish(__own.first + __at, 0, __results);
        }
    }
};
template <>
struct few_handed<true> {
    template <few_loading __how, int __length, int __stored, class __folding, class __value, class __reduce, class __finish, int __axes>
    static GRIDSTRIDE_INLINED void hand(const __reduce& __do, const __finish& __do_finish, const __folding& __start,
                                        const fold_space<__axes>& __space, const __value (&__sums)[__length],
                                        const few_results<__length, __how>&, long long __packet, __value* __table) {
        const int __lane = threadIdx.x % 32;
#pragma unroll
        for (int __j = 0; __j < __length; ++__j) __table[__lane * __length + __j] = __sums[__j];
        __syncwarp();
#pragma unroll 1
        for (int __i = 0; __i < __length / __stored; ++__i) {
            const int __at = (__i * 32 + __lane) * __stored;
            long long __first = (__packet - __lane) * __length + __at, __left = __space.outputs - __first;
            int __begin = 0;
            if (__how != few_words || __space.kept_row < __space.outputs) {
                const long long __from = __packet - __lane + __at / __length;
                if (__from >= __space.kept.count) break;
                const few_results<__length, __how> __other(__space, __from);
                __first = __other.first + __at % __length;
                __left = __other.last - __at % __length;
                __begin = __other.begin - __at % __length;
            }
            if (__left <= 0 || __begin >= __stored) continue;
            packet_of_results<__folding, __stored> __results;
            __results.first = __begin > 0 ? __begin : 0;
            __results.last = __left < __stored ? int(__left) : __stored;
#pragma unroll
            for (int __j = 0; __j < __stored; ++__j) __results.values[__j] = as_folded(__do, __start, __table[__at + __j], 0);
            __do_finish(__first, 0, __results);
        }
        __syncwarp();
    }
};

// A thread takes packets of `__length` results and stores packets of `__stored`, as many as make a word.
template <few_loading __how, bool __has_further, int __length, int __stored, int __count, bool __are_bytes, bool __has_room, class __folding, class __map, class __reduce, class __finish, int __axes, class... __inputs>
GRIDSTRIDE_INLINED void fold_packets_of_results(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                                const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                                __inputs&&... __all) {
    typedef typename few_value<__are_bytes, __length, __folding, __reduce, typename __inputs::operand...>::type value;
    const int __lane = threadIdx.x % 32;
    value* __table = reinterpret_cast<value*>(__shared) + (threadIdx.x - __lane) * __length;
    // A thread has `part` packets, one after another.
    long long __packet = blockIdx.x * __space.part * fold_threads + threadIdx.x;
#pragma unroll 1
    for (int __k = 0; __k < int(__space.part); ++__k, __packet += fold_threads) {
        if (__packet - __lane >= __space.kept.count) return;
        value __sums[__length];
        const few_results<__length, __how> __own(__space, __packet < __space.kept.count ? __packet : 0);
        if (__packet < __space.kept.count) {
            swallow(__all.begin()...);
            const long long __number = settle(__space, __own.outer, 1, __all...) + __own.element * __space.kept_numbers.step;
            swallow((__all.base += __own.element * __all.source.step)...);
            few_values<__are_bytes>::template fold<__how, __has_further, __length, __count>(__do_map, __do, __start, __space, __number,
                                                                                  __own.loaded, __sums, __all...);
        }
        few_handed<__has_room>::template hand<__how, __length, __stored>(__do, __do_finish, __start, __space, __sums, __own,
                                                                  __packet, __table);
    }
}

// Bytes of rows that are on their way to a thread at once.
constexpr int few_bytes = 64;
// Shared memory in which values are handed on, if there is that much.
constexpr int most_few_bytes = 32768;

// `__has_further`: whether rows lie along two axes.
template <int __length, int __stored, few_loading __how, bool __has_further = false>
struct fold_few_rows {
    template <class __value>
    __device__ static constexpr bool has_room() {
        return __stored < __length && fold_threads * __length * int(sizeof(__value)) <= most_few_bytes;
    }
    template <class __folding, class... __operands>
    __device__ static constexpr int shared_bytes() {
        constexpr bool __may_find = larger(int(sizeof(typename __operands::stored))...) > 1 && sizeof(typename __folding::type) > 8;
        return has_room<__folding>() ? fold_threads * __length * larger(int(sizeof(__folding)), 4)
             : __may_find && has_room<long long>() ? fold_threads * __length * 8
             : has_room<int>() ? fold_threads * __length * 4 : 1;
    }
    template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
    static GRIDSTRIDE_INLINED void fold(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                        const __folding& __start, const fold_space<__axes>& __space, char* __shared,
                                        const __operands&... __inputs) {
        constexpr int __bytes = __length * larger(int(sizeof(typename __operands::stored))...);
        constexpr int __count = __bytes >= few_bytes / 2 ? 2 : __bytes * 16 <= few_bytes ? 16 : few_bytes / __bytes;
        constexpr bool __are_bytes = folds_bytes<__reduce, __operands...>::value &&
                                     (__length % 4 == 0 || larger(int(sizeof(typename __operands::stored))...) > 1);
        fold_packets_of_results<__how, __has_further, __length, __stored, __count, __are_bytes,
                                has_room<typename few_value<__are_bytes, __length, __folding, __reduce, __operands...>::type>()>(
            __do_map, __do, __do_finish, __start, __space, __shared, few_rows_input<__operands, __length, larger(__count, few_at_once(__how))>(__inputs)...);
    }
};

}

#endif
