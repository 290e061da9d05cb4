// Types that a kernel's own includes bring, as signatures tell of them: halves and complex numbers. They are
// described here, before the user's text, because a macro of the user's could spoil the description later.
#ifndef GRIDSTRIDE_CPU_LATER_TYPES_H
#define GRIDSTRIDE_CPU_LATER_TYPES_H

#include "type_traits.h"
#include "vectors.h"

struct __half;
struct __half2;
struct __nv_bfloat16;
struct __nv_bfloat162;
namespace thrust {
template <class __t> struct complex;
}

template <unsigned __kind, unsigned __component_kind>
struct gridstride_number_traits {
    static constexpr unsigned kind = __kind, components = 1, component_kind = __component_kind;
};

template <> struct gridstride_type_traits<__half> : gridstride_number_traits<GRIDSTRIDE_FLOAT, GRIDSTRIDE_FLOAT> {};
template <> struct gridstride_type_traits<__nv_bfloat16> : gridstride_number_traits<GRIDSTRIDE_BFLOAT16, GRIDSTRIDE_BFLOAT16> {};
template <> struct gridstride_type_traits<__half2> : gridstride_vector_traits<2, GRIDSTRIDE_FLOAT> {};
template <> struct gridstride_type_traits<__nv_bfloat162> : gridstride_vector_traits<2, GRIDSTRIDE_BFLOAT16> {};
template <class __t>
struct gridstride_type_traits<thrust::complex<__t>> : gridstride_number_traits<GRIDSTRIDE_COMPLEX, GRIDSTRIDE_FLOAT> {};

#endif
