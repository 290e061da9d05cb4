// The loop of a check: one thread folds a few elements in several orders, which give the same where a reduction keeps
// its rules. Results are numbered as `_array_pipeline/checking.py` names them.
#ifndef GRIDSTRIDE_FOLD_ORDERS_H
#define GRIDSTRIDE_FOLD_ORDERS_H

#include <gridstride/fold_blocks.h>

namespace gridstride {

template <class __reduce, class __type>
__host__ __device__ inline __type behind_start(const __reduce& __do, const folding<__type, true>& __start,
                                               const __type& __value) {
    return __do(__start.value, __value);
}
template <class __reduce, class __type>
__host__ __device__ inline __type before_start(const __reduce& __do, const folding<__type, true>& __start,
                                               const __type& __value) {
    return __do(__value, __start.value);
}
template <class __reduce, class __type>
__host__ __device__ inline __type behind_start(const __reduce&, const folding<__type, false>&, const __type& __value) {
    return __value;
}
template <class __reduce, class __type>
__host__ __device__ inline __type before_start(const __reduce&, const folding<__type, false>&, const __type& __value) {
    return __value;
}

template <class __operand>
__host__ __device__ inline typename __operand::stored& element_at(const __operand& __input, long long __k) {
    return *reinterpret_cast<typename __operand::stored*>(__input.data + __k * __input.step);
}

template <class __folding, class __map, class __reduce, class __finish, int __axes, class... __operands>
__host__ __device__ inline void fold_orders(const __map& __do_map, const __reduce& __do, const __finish& __do_finish,
                                            const __folding& __start, const fold_space<__axes>& __space,
                                            const __operands&... __inputs) {
    typedef typename __folding::type __type;
    const auto __mapped = [&](long long __k) -> __type {
        __k %= __space.fold_row;
        return __do_map(__k * __space.fold_numbers.step, __k * __space.position.step,
                        element<__operands>(element_at(__inputs, __k)).get()...);
    };
    const __type __a = __mapped(0), __b = __mapped(1), __c = __mapped(2), __d = __mapped(3);
    __do_finish(0, 0, __folding(__do(__do(__do(__a, __b), __c), __d)));
    __do_finish(1, 0, __folding(__do(__a, __do(__b, __do(__c, __d)))));
    __do_finish(2, 0, __folding(__do(__do(__do(__d, __c), __b), __a)));
    __do_finish(3, 0, __folding(__a));
    __do_finish(4, 0, __folding(behind_start(__do, __start, __a)));
    __do_finish(5, 0, __folding(before_start(__do, __start, __a)));
    // How large the others are bounds rounding errors.
    __do_finish(6, 0, __folding(__b));
    __do_finish(7, 0, __folding(__c));
    __do_finish(8, 0, __folding(__d));
}

}

#endif
