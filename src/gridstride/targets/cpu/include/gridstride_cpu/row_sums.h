// The rows of sums into which rows are folded across, and how they are handed over.
#ifndef GRIDSTRIDE_CPU_ROW_SUMS_H
#define GRIDSTRIDE_CPU_ROW_SUMS_H

#include <gridstride_cpu/folds_joined.h>
#include <gridstride_cpu/members.h>

namespace gridstride {

// Rows of sums: of a batch of rows, of a batch of those, and of all batches of those.
template <class __type, class __batch_row>
struct sums_of_rows {
    typedef row_of_values<__type> row;
    static constexpr int batch = 64;
    __batch_row batched;
    row joined, whole;
    int batches = 0;  // that are in `joined`
    bool has_whole = false;

    GRIDSTRIDE_INLINED static long long bytes(long long __width, bool __has_joined, bool __has_whole) {
        return __batch_row::bytes(__width) + (__has_joined + __has_whole) * row::bytes(__width) + row::alignment;
    }
    GRIDSTRIDE_INLINED sums_of_rows(char* __room, long long __width)
        : sums_of_rows(__room + (row::alignment - reinterpret_cast<unsigned long>(__room) % row::alignment), __width,
                       __batch_row::bytes(__width), row::bytes(__width)) {}

    template <class __reduce>
    GRIDSTRIDE_INLINED void join(const __reduce& __do, int __count) {
        add(__do, joined, batched, batches == 0, __count);
        if (++batches < batch) return;
        add(__do, whole, joined, !has_whole, __count);
        batches = 0;
        has_whole = true;
    }
    // Of all batches that were joined, of so many values.
    template <class __reduce>
    GRIDSTRIDE_INLINED row of_batches(const __reduce& __do, int __count) {
        if (has_whole && batches) add(__do, whole, joined, false, __count);
        return has_whole ? whole : joined;
    }
    // Of rows that were folded together, and perhaps of a last batch of others.
    template <class __reduce>
    GRIDSTRIDE_INLINED row result(const __reduce& __do, int __count, int __together, bool __has_rest) {
        const row __values = of_batches(__do, __count * __together);
        for (int __half = __together / 2; __half > 0; __half /= 2)
            add(__do, __values, __values.from(__half * __count), false, __half * __count);
        if (__has_rest) add(__do, __values, batched, false, __count);
        return __values;
    }

    // It stands apart, so that it is compiled once: it runs seldom.
    template <class __reduce, class __from>
    static inline __attribute__((noinline)) void add(const __reduce& __do, row __to, __from __values, bool __is_first, int __count) {
        if (__is_first) {
            GRIDSTRIDE_INDEPENDENT
            for (long long __k = 0; __k < __count; ++__k) __to.set(__k, static_cast<__type>(__values.get(__k)));
        } else {
            GRIDSTRIDE_INDEPENDENT
            for (long long __k = 0; __k < __count; ++__k) __to.set(__k, __do(__to.get(__k), static_cast<__type>(__values.get(__k))));
        }
    }

private:
    GRIDSTRIDE_INLINED sums_of_rows(char* __start, long long __width, long long __brief_bytes, long long __bytes)
        : batched(__start, __width), joined(__start + __brief_bytes, __width), whole(__start + __brief_bytes + __bytes, __width) {}
};

// Hand the sums over.
template <class __folding, class __finish, class __type, class __reduce>
GRIDSTRIDE_INLINED void finish_row(const __finish& __do_finish, const __reduce&, long long __result, int __part, int __count, bool __is_joined,
                                   const row_of_values<__type, false>& __joined, const row_of_values<__type, false>& __batched) {
    __do_finish(__result, __part, neighbors<__folding>{(__is_joined ? __joined : __batched).values, __count});
}
template <class __folding, class __finish, class __type>
GRIDSTRIDE_APART void finish_structures(const __finish& __do_finish, long long __result, int __part, int __count, row_of_values<__type, true> __row) {
    __do_finish(__result, __part, neighbors<__folding, true, row_of_values<__type, true>>{__row, __count});
}
// Structures are made in the room of joined ones, a few at once.
template <class __folding, class __finish, class __type, class __reduce, class __batch_row>
GRIDSTRIDE_INLINED void finish_row(const __finish& __do_finish, const __reduce& __do, long long __result, int __part, int __count, bool __is_joined,
                                   const row_of_values<__type, true>& __joined, const __batch_row& __batched) {
    constexpr int __most = 512;
    for (int __from = 0; __from < __count; __from += __most) {
        const int __some = smaller(__most, __count - __from);
        row_of_values<__type, true> __row = __joined.from(__is_joined ? __from : 0);
        if (!__is_joined) sums_of_rows<__type, __batch_row>::add(__do, __row, __batched.from(__from), true, __some);
        finish_structures<__folding>(__do_finish, __result + __from, __part, __some, __row);
    }
}
// Of brief sums that were joined with others, or not.
template <class __folding, class __finish, class __type, class __reduce, class __batch_row>
GRIDSTRIDE_INLINED void finish_row(const __finish& __do_finish, const __reduce&, long long __result, int __part, int __count, bool __is_joined,
                                   const row_of_values<__type, false>& __joined, const __batch_row& __batched) {
    constexpr int __most = buffer_bytes / int(sizeof(__type));
    for (int __from = 0; __from < __count; __from += __most) {
        const int __some = __count - __from < __most ? __count - __from : __most;
        __type __values[__most];
        if (!__is_joined) {
            GRIDSTRIDE_INDEPENDENT
            for (long long __k = 0; __k < __some; ++__k) __values[__k] = static_cast<__type>(__batched.get(__from + __k));
        }
        __do_finish(__result + __from, __part, neighbors<__folding>{__is_joined ? __joined.values + __from : __values, __some});
    }
}

}

#endif
