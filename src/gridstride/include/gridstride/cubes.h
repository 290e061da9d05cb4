// `cubes`: a loop over elements of arrays that lie along three different axes, cut into cubes along these: what is turned is
// brought in runs along its own axis, and waits in shared memory.
#ifndef GRIDSTRIDE_CUBES_H
#define GRIDSTRIDE_CUBES_H

#include <gridstride/indices.h>

namespace gridstride {

// How an operand lies: along x, as outputs do, or anyhow; along y; along z.
constexpr int cubes_along_x = 0, cubes_along_y = 1, cubes_along_z = 2;
constexpr int cube_threads = 256;

// Where an element is in its cube, of `__edge` elements along each axis.
template <int __edge>
struct cube_place {
    static constexpr int count = __edge * __edge * __edge;
    // Shifted so that neighbors along any axis are in different banks.
    static constexpr int pitch = __edge + 1, layer = __edge * pitch + 1, waiting = __edge * layer;
    int x, y, z;
    // The element of a number that counts fastest along the axis of a kind.
    GRIDSTRIDE_INLINED cube_place(int __kind, int __n) {
        const int __a = __n % __edge, __b = __n / __edge % __edge, __c = __n / (__edge * __edge);
        x = __kind == cubes_along_x ? __a : __b;
        y = __kind == cubes_along_y ? __a : __kind == cubes_along_x ? __b : __c;
        z = __kind == cubes_along_z ? __a : __c;
    }
    GRIDSTRIDE_INLINED int in_shared() const { return z * layer + y * pitch + x; }
};

// How much of a cube there is.
struct cube_extent {
    int x, y, z;
    template <int __edge>
    GRIDSTRIDE_INLINED bool has(const cube_place<__edge>& __at) const { return __at.x < x && __at.y < y && __at.z < z; }
};

template <class __operand, int __edge, int __kind>
struct cubed {
    typedef __operand operand;
    typedef typename __operand::stored stored;
    typedef cube_place<__edge> place;
    static constexpr bool is_turned = __kind != cubes_along_x;
    // Elements of a thread that are on their way together.
    static constexpr int at_once = place::count / cube_threads < 8 ? place::count / cube_threads : 8;

    const __operand& source;
    char* base;
    stored* waiting;
    stored items[at_once];

    GRIDSTRIDE_INLINED cubed(const __operand& __source) : source(__source), base(__source.data) {}
    GRIDSTRIDE_INLINED int take_memory(char*& __shared) {
        waiting = reinterpret_cast<stored*>(__shared);
        if (is_turned) __shared += (place::waiting * int(sizeof(stored)) + 15) / 16 * 16;
        return 0;
    }
    GRIDSTRIDE_INLINED int move(long long __x, long long __y, long long __z) {
        base += __x * source.step + __y * source.strides[0] + __z * source.strides[1];
        return 0;
    }
    GRIDSTRIDE_INLINED stored& in_memory(const place& __at) const {
        return *reinterpret_cast<stored*>(base + __at.x * source.step + __at.y * source.strides[0] + __at.z * source.strides[1]);
    }
    GRIDSTRIDE_INLINED int bring(const cube_extent& __extent) {
        if (!is_turned) return 0;
#pragma unroll 1
        for (int __first = threadIdx.x; __first < place::count; __first += at_once * cube_threads) {
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k) {
                const place __at(__kind, __first + __k * cube_threads);
                if (__extent.has(__at)) copy(items[__k], in_memory(__at));
            }
#pragma unroll
            for (int __k = 0; __k < at_once; ++__k) {
                const place __at(__kind, __first + __k * cube_threads);
                if (__extent.has(__at)) copy(waiting[__at.in_shared()], items[__k]);
            }
        }
        return 0;
    }
    GRIDSTRIDE_INLINED int load(int __k, const place& __at) {
        if (__operand::is_read) copy(items[__k], is_turned ? waiting[__at.in_shared()] : in_memory(__at));
        return 0;
    }
    GRIDSTRIDE_INLINED int store(int __k, const place& __at) {
        if (__operand::is_written) copy(in_memory(__at), items[__k]);
        return 0;
    }
};

template <int __edge, class __operation, int __axes, class... __cubed>
GRIDSTRIDE_INLINED void run_cubes(const __operation& __do, const element_space<__axes>& __space, char* __shared, __cubed&&... __all) {
    typedef cube_place<__edge> place;
    constexpr int __at_once = place::count / cube_threads < 8 ? place::count / cube_threads : 8;
    const axes<__axes>& __outer = __space.outer;
    const numbering<__axes>& __numbers = __space.numbers;
    unsigned __rest = blockIdx.x;
    const long long __x = remainder_of(__outer, __rest, 0) * __edge, __y = remainder_of(__outer, __rest, 1) * __edge;
    const long long __z = (__outer.ndim > 3 ? remainder_of(__outer, __rest, 2) : __rest) * __edge;
    long long __number = __x * __numbers.step + __y * __numbers.strides[0] + __z * __numbers.strides[1];
#pragma unroll
    for (int __axis = 3; __axis < __axes; ++__axis) {
        if (__axis >= __outer.ndim) break;
        const long long __at = __axis + 1 < __outer.ndim ? remainder_of(__outer, __rest, __axis) : __rest;
        __number += __at * __numbers.strides[__axis];
        swallow((__all.base += __at * __all.source.strides[__axis])...);
    }
    const cube_extent __extent = {int(__space.row - __x), int(__space.column - __y), int(__space.width - __z)};
    swallow(__all.take_memory(__shared)...);
    swallow(__all.move(__x, __y, __z)...);
    swallow(__all.bring(__extent)...);
    __syncthreads();
#pragma unroll 1
    for (int __first = threadIdx.x; __first < place::count; __first += __at_once * cube_threads) {
#pragma unroll
        for (int __k = 0; __k < __at_once; ++__k) {
            const place __at(cubes_along_x, __first + __k * cube_threads);
            if (__extent.has(__at)) swallow(__all.load(__k, __at)...);
        }
#pragma unroll
        for (int __k = 0; __k < __at_once; ++__k) {
            const place __at(cubes_along_x, __first + __k * cube_threads);
            if (!__extent.has(__at)) continue;
            __do(__number + __at.x * __numbers.step + __at.y * __numbers.strides[0] + __at.z * __numbers.strides[1],
                 element<typename __cubed::operand>(__all.items[__k]).get()...);
            swallow(__all.store(__k, __at)...);
        }
    }
}

// `row`, `column` and `width` are the lengths of x, y and z, along which an operand's strides are `step` and the first two;
// axes 0 to 2 count cubes along them.
template <int __edge, int... __kinds, class __operation, int __axes, class... __operands>
GRIDSTRIDE_INLINED void cubes(const __operation& __do, const element_space<__axes>& __space, char* __shared, const __operands&... __all) {
    run_cubes<__edge>(__do, __space, __shared, cubed<__operands, __edge, __kinds>(__all)...);
}

}

#endif
