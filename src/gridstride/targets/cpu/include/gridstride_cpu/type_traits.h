// What entry.h cannot see of a type by itself: whether a class is a vector, a half or a complex number.
//
// A device header specializes `gridstride_type_traits` for its types, for example
//
//     template <> struct gridstride_type_traits<float4> {
//         static constexpr unsigned kind = GRIDSTRIDE_VECTOR, components = 4, component_kind = GRIDSTRIDE_FLOAT;
//     };
//     template <> struct gridstride_type_traits<__half> {
//         static constexpr unsigned kind = GRIDSTRIDE_FLOAT, components = 1, component_kind = GRIDSTRIDE_FLOAT;
//     };
//     template <class T> struct gridstride_type_traits<complex<T>> {
//         static constexpr unsigned kind = GRIDSTRIDE_COMPLEX, components = 1, component_kind = GRIDSTRIDE_FLOAT;
//     };
//
// `kind` GRIDSTRIDE_VOID, the default, leaves the answer to entry.h. A component's size is the type's size
// divided by `components`.
#ifndef GRIDSTRIDE_CPU_TYPE_TRAITS_H
#define GRIDSTRIDE_CPU_TYPE_TRAITS_H

#include "abi.h"

template <class __type>
struct gridstride_type_traits {
    static constexpr unsigned kind = GRIDSTRIDE_VOID, components = 1, component_kind = GRIDSTRIDE_VOID;
};

#endif
