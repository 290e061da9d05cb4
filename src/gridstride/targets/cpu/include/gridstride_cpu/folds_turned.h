// Folds in which some operands lie along one of two folded axes and some along the other: `shared_turned`. Rows along the
// first axis are folded across, where squares of those that lie otherwise are turned, and then what they became.
#ifndef GRIDSTRIDE_CPU_FOLDS_TURNED_H
#define GRIDSTRIDE_CPU_FOLDS_TURNED_H

#include <gridstride_cpu/folds_across.h>

namespace gridstride {

constexpr int results_together = 512;  // of a row, as in turned_folds.py

// Hands over what becomes of a row of sums, as a part of a result. Rows are cut into pieces of `group`.
template <class __folding, class __reduce, class __finish>
struct folding_rows {
    typedef typename __folding::type type;
    const __reduce& reduce;
    const __finish& finish;
    long long row, group;
    int parts;

    template <bool __parts_outermost, class __values>
    GRIDSTRIDE_INLINED void operator()(long long __result, int __part, const neighbors<__folding, __parts_outermost, __values>& __folded) const {
        type __some[results_together];
        int __left = __folded.count;
        for (int __k = 0; __k < __left; ++__k) __some[__k] = __folded.values[__k];
        for (; __left > 1; __left -= __left / 2) {
            const type* const __others = __some + (__left - __left / 2);
            GRIDSTRIDE_INDEPENDENT
            for (long long __k = 0; __k < __left / 2; ++__k) __some[__k] = reduce(__some[__k], __others[__k]);
        }
        const long long __piece = __result % row / group;
        finish(__result / row, int(__piece * parts) + __part, neighbors<__folding, false>{__some, 1});
    }
    // There are no empty parts.
    GRIDSTRIDE_INLINED void operator()(long long, int, const __folding&) const {}
};

template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
GRIDSTRIDE_INLINED void shared_turned(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                      const __folding& __start, const fold_space<__axes>& __space, const __operands&... __all) {
    typedef brought<__operands...> __brought;
    fold_space<__axes> __rows = __space;
    __rows.kept_row = __space.fold_row;
    __rows.parts = int((__space.fold.count + __space.part - 1) / __space.part);
    const folding_rows<__folding, __reduce, __finish> __finish_rows{__do, __do_finish, __space.fold_row, __space.group, __rows.parts};
    run_across<__brought>(__do_map, __do, __finish_rows, __start, __rows, input_rows<__operands, __brought::rows, __brought::width>(__all)...);
}

}

#endif
