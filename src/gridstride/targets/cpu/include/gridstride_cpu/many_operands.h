// Many operands on their way along rows. Loops go over them, and what moves their elements is looked up by size: code for
// each of them would take a compiler time that grows with the square of their number.
#ifndef GRIDSTRIDE_CPU_MANY_OPERANDS_H
#define GRIDSTRIDE_CPU_MANY_OPERANDS_H

#include <gridstride_cpu/carried.h>
#include <gridstride_cpu/entry.h>

namespace gridstride {

// From how many on operands are handled so.
constexpr int many = 13;

// What lies on the stack, unless there are too many operands for it.
constexpr int most_on_stack = 48;

template <class __type, bool __is_apart>
struct placed_value {
    __type value;
    GRIDSTRIDE_INLINED __type& get() { return value; }
};
template <class __type>
struct placed_value<__type, true> {
    char* memory = static_cast<char*>(__builtin_calloc(1, sizeof(__type) + alignof(__type)));
    GRIDSTRIDE_INLINED __type& get() {
        const unsigned long long __address = reinterpret_cast<unsigned long long>(memory);
        return *reinterpret_cast<__type*>(memory + (alignof(__type) - __address % alignof(__type)) % alignof(__type));
    }
    ~placed_value() { __builtin_free(memory); }
};

// What moves elements of a size.
struct movements {
    char* (*fetch)(passage&, const tile_shape&, int, int, long long, int);
    void (*put)(const passage&, const tile_shape&, int, long long, int);
    void (*bring_tile)(passage&, const tile_shape&, int, int, int);
    void (*put_tile)(passage&, int, int, int);
};
template <int __size>
movements movements_of() {
    return {&fetched<__size>, &put<__size>, &bring_tile<__size>, &put_tile<__size>};
}

// All operands of a kernel at once, as `carried` has one: `items` points to consecutive elements of each.
template <int __buffered, class... __operands>
struct many_operands {
    static constexpr int count = sizeof...(__operands);
    static constexpr int memory_bytes = __buffered * larger(int(sizeof(typename __operands::stored))...) + 2 * line_bytes;
    static constexpr bool has_bools = !all_of(!is_bool<typename __operands::stored>::value...);

    passage its[count];
    movements movements_for[count];
    char* items[count];
    alignas(line_bytes) char memory[count][memory_bytes];

    GRIDSTRIDE_INLINED many_operands&& of(const __operands&... __all) {
        int __k = 0;
        const int __followed[] = {follow(__k++, __all)...};
        (void)__followed;
        return static_cast<many_operands&&>(*this);
    }
    template <class __operand>
    GRIDSTRIDE_APART int follow(int __k, const __operand& __source) {
        its[__k].follow(__source, memory[__k]);
        movements_for[__k] = movements_of<sizeof(typename __operand::stored)>();
        return 0;
    }
    GRIDSTRIDE_APART int list(passage**& __end) {
        for (passage& __one : its) *__end++ = &__one;
        return 0;
    }
    GRIDSTRIDE_APART bool is_direct() const {
        for (const passage& __one : its)
            if (!__one.is_direct()) return false;
        return true;
    }
    GRIDSTRIDE_APART int excess(int __y) const {
        int __most = 0;
        for (const passage& __one : its) __most = largest(__most, __one.excess(__y));
        return __most;
    }
    GRIDSTRIDE_APART int start() {
        for (passage& __one : its) __one.start();
        return 0;
    }
    GRIDSTRIDE_APART int move(int __axis, long long __steps) {
        for (passage& __one : its) __one.move(__axis, __steps);
        return 0;
    }
    GRIDSTRIDE_APART int stand(int __above) {
        for (passage& __one : its) __one.stand(__above);
        return 0;
    }
    GRIDSTRIDE_APART int go_deeper() {
        for (passage& __one : its) __one.go_deeper();
        return 0;
    }
    GRIDSTRIDE_APART int bring(const tile_shape& __tiles, int __width, int __height, int __depth) {
        for (int __k = 0; __k < count; ++__k)
            if (its[__k].has_tile()) movements_for[__k].bring_tile(its[__k], __tiles, __width, __height, __depth);
        return 0;
    }
    GRIDSTRIDE_APART int put_back(int __width, int __height, int __depth) {
        for (int __k = 0; __k < count; ++__k)
            if (its[__k].is_written && its[__k].has_tile()) movements_for[__k].put_tile(its[__k], __width, __height, __depth);
        return 0;
    }
    GRIDSTRIDE_APART int fetch_ahead(int __y, long long __from, int __count) const {
        for (const passage& __one : its) __one.fetch_ahead(__y, __from, __count);
        return 0;
    }
    GRIDSTRIDE_APART int begin(const tile_shape& __tiles, int __y, int __width, long long __from, int __count) {
        for (int __k = 0; __k < count; ++__k)
            items[__k] = its[__k].is_direct() ? its[__k].row(__y) + __from * its[__k].size
                                              : movements_for[__k].fetch(its[__k], __tiles, __y, __width, __from, __count);
        return 0;
    }
    GRIDSTRIDE_APART int end(const tile_shape& __tiles, int __y, long long __from, int __count) const {
        for (int __k = 0; __k < count; ++__k)
            if (its[__k].is_written && !its[__k].is_direct()) movements_for[__k].put(its[__k], __tiles, __y, __from, __count);
        return 0;
    }
};

template <int __buffered, class... __operands>
GRIDSTRIDE_APART void fetch_row_ahead(const many_operands<__buffered, __operands...>& __all, int __y, int __width, int __height) {
    for (const passage& __one : __all.its) fetch_row_ahead(__one, __y, __width, __height);
}
template <int __buffered, class... __operands>
GRIDSTRIDE_APART void finish_lines(const many_operands<__buffered, __operands...>& __all) {
    for (const passage& __one : __all.its) finish_lines(__one);
}

}

#endif
