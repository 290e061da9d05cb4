// The tail of every kernel library: tables of its kernels, globals and constants, as abi.h describes them.
//
// The macros are used behind the user's text, whose own macros may have any name: they use reserved names only.
// A generated text looks like this (indices count from 0 in each table; expressions may contain commas):
//
//     #include <gridstride_cpu/entry.h>
//     GRIDSTRIDE_KERNEL(0, "f<float, 3>", f<float, 3>)
//     GRIDSTRIDE_GLOBAL(0, "counters", counters)
//     GRIDSTRIDE_CONSTANT(0, "sizeof(Point)", sizeof(Point))
//     GRIDSTRIDE_LIBRARY(1, 1, 1)
//
// `gridstride_parameter_t<decltype(&f), 2>` is the type of the third parameter of `f`.
#ifndef GRIDSTRIDE_CPU_ENTRY_H
#define GRIDSTRIDE_CPU_ENTRY_H

#include "execution.h"
#include "flat.h"
#include "type_traits.h"

#define GRIDSTRIDE_KERNEL(__index, __name, ...) \
    template <> struct gridstride_kernel_entry<__index> { \
        static constexpr gridstride_kernel __make() { \
            return gridstride_entry<decltype(&__VA_ARGS__), &__VA_ARGS__, gridstride_flat_entry<__index>::__is_taken>::__make( \
                __name, gridstride_flat_entry<__index>::__make(), gridstride_contention<__index>::__value); \
        } \
    };

// Stands before the entry of the kernel whose flat form this function is.
#define GRIDSTRIDE_FLAT(__index, ...) \
    template <> struct gridstride_flat_entry<__index> { \
        static constexpr bool __is_taken = true; \
        static constexpr gridstride_flat_form __make() { \
            return gridstride_flat_row<decltype(&__VA_ARGS__), &__VA_ARGS__>::__make(); \
        } \
    };

// Stands before the entry of a kernel whose threads may meet at the same memory.
#define GRIDSTRIDE_CONTENDS(__index) \
    template <> struct gridstride_contention<__index> { static constexpr unsigned __value = 1; };

#define GRIDSTRIDE_GLOBAL(__index, __name, ...) \
    template <> struct gridstride_global_entry<__index> { \
        static gridstride_global __make() { return {__name, (void*)&(__VA_ARGS__), sizeof(__VA_ARGS__)}; } \
    };

#define GRIDSTRIDE_CONSTANT(__index, __text, ...) \
    template <> struct gridstride_constant_entry<__index> { \
        static gridstride_constant __make() { return {__text, (long long)(__VA_ARGS__)}; } \
    };

#define GRIDSTRIDE_LIBRARY(__kernel_count, __global_count, __constant_count) \
    typedef gridstride_tables< \
        gridstride_indices_below<__kernel_count>::__list, gridstride_indices_below<__global_count>::__list, \
        gridstride_indices_below<__constant_count>::__list> gridstride_library_tables; \
    extern "C" __attribute__((visibility("default"))) const gridstride_library_table gridstride_library = { \
        GRIDSTRIDE_CPU_ABI_VERSION, __kernel_count, __global_count, __constant_count, \
        gridstride_library_tables::__kernels, gridstride_library_tables::__globals, \
        gridstride_library_tables::__constants, &gridstride_shared_slots, &gridstride_static_shared_bytes}; \
    extern "C" __attribute__((visibility("default"))) void gridstride_bind(const gridstride_services* __services) { \
        gridstride_use_services(__services); \
    }

static inline void gridstride_use_services(const gridstride_services* __services) {
    gridstride_runtime = __services;
    gridstride_block_offset = __services->block_offset;
}

// ---- lists of indices ----

template <unsigned... __index>
struct gridstride_indices {};

template <unsigned __count, unsigned... __index>
struct gridstride_indices_below : gridstride_indices_below<__count - 1, __count - 1, __index...> {};
template <unsigned... __index>
struct gridstride_indices_below<0, __index...> {
    typedef gridstride_indices<__index...> __list;
};

// ---- tables ----

struct gridstride_flat_form {
    unsigned (*run_row)(const gridstride_row*, const char* packed, unsigned phase);
    unsigned is_merged;
};

template <unsigned __index>
struct gridstride_kernel_entry;
template <unsigned __index>
struct gridstride_flat_entry {
    static constexpr bool __is_taken = false;
    static constexpr gridstride_flat_form __make() { return {nullptr, 0}; }
};
template <unsigned __index>
struct gridstride_contention {
    static constexpr unsigned __value = 0;
};
template <unsigned __index>
struct gridstride_global_entry;
template <unsigned __index>
struct gridstride_constant_entry;

template <class __kernels, class __globals, class __constants>
struct gridstride_tables;

// One entry more than needed: an array cannot be empty.
template <unsigned... __kernel, unsigned... __global, unsigned... __constant>
struct gridstride_tables<
    gridstride_indices<__kernel...>, gridstride_indices<__global...>, gridstride_indices<__constant...>> {
    static const gridstride_kernel __kernels[sizeof...(__kernel) + 1];
    static const gridstride_global __globals[sizeof...(__global) + 1];
    static const gridstride_constant __constants[sizeof...(__constant) + 1];
};

template <unsigned... __kernel, unsigned... __global, unsigned... __constant>
const gridstride_kernel gridstride_tables<
    gridstride_indices<__kernel...>, gridstride_indices<__global...>,
    gridstride_indices<__constant...>>::__kernels[sizeof...(__kernel) + 1] = {
    gridstride_kernel_entry<__kernel>::__make()..., gridstride_kernel{}};
template <unsigned... __kernel, unsigned... __global, unsigned... __constant>
const gridstride_global gridstride_tables<
    gridstride_indices<__kernel...>, gridstride_indices<__global...>,
    gridstride_indices<__constant...>>::__globals[sizeof...(__global) + 1] = {
    gridstride_global_entry<__global>::__make()..., gridstride_global{}};
template <unsigned... __kernel, unsigned... __global, unsigned... __constant>
const gridstride_constant gridstride_tables<
    gridstride_indices<__kernel...>, gridstride_indices<__global...>,
    gridstride_indices<__constant...>>::__constants[sizeof...(__constant) + 1] = {
    gridstride_constant_entry<__constant>::__make()..., gridstride_constant{}};

// ---- types ----

template <class __type>
struct gridstride_unqualified {
    typedef __type type;
    static constexpr unsigned is_const = 0;
};
template <class __type>
struct gridstride_unqualified<const __type> {
    typedef __type type;
    static constexpr unsigned is_const = 1;
};
template <class __type>
struct gridstride_unqualified<volatile __type> : gridstride_unqualified<__type> {};
template <class __type>
struct gridstride_unqualified<const volatile __type> : gridstride_unqualified<const __type> {};

// The compiler spells the type in the name of a function: "... [with __type = name; ...]" or "... [__type = name]".
template <class __type>
struct gridstride_pretty {
    static constexpr const char* make() { return __PRETTY_FUNCTION__; }
};

// Kinds of types that are not classes; the trait answers for classes it knows.
template <class __type>
constexpr unsigned gridstride_kind_of() {
    return gridstride_type_traits<__type>::kind != GRIDSTRIDE_VOID ? gridstride_type_traits<__type>::kind
           : __is_enum(__type)                                     ? GRIDSTRIDE_ENUM
                                                                   : GRIDSTRIDE_STRUCT;
}

#define GRIDSTRIDE_KIND_OF(__type, __kind) \
    template <> constexpr unsigned gridstride_kind_of<__type>() { return __kind; }
GRIDSTRIDE_KIND_OF(void, GRIDSTRIDE_VOID)
GRIDSTRIDE_KIND_OF(bool, GRIDSTRIDE_BOOL)
GRIDSTRIDE_KIND_OF(char, GRIDSTRIDE_CHAR)
GRIDSTRIDE_KIND_OF(signed char, GRIDSTRIDE_SIGNED)
GRIDSTRIDE_KIND_OF(unsigned char, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_KIND_OF(wchar_t, GRIDSTRIDE_SIGNED)
GRIDSTRIDE_KIND_OF(char16_t, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_KIND_OF(char32_t, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_KIND_OF(short, GRIDSTRIDE_SIGNED)
GRIDSTRIDE_KIND_OF(unsigned short, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_KIND_OF(int, GRIDSTRIDE_SIGNED)
GRIDSTRIDE_KIND_OF(unsigned int, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_KIND_OF(long, GRIDSTRIDE_SIGNED)
GRIDSTRIDE_KIND_OF(unsigned long, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_KIND_OF(long long, GRIDSTRIDE_SIGNED)
GRIDSTRIDE_KIND_OF(unsigned long long, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_KIND_OF(__int128, GRIDSTRIDE_SIGNED)
GRIDSTRIDE_KIND_OF(unsigned __int128, GRIDSTRIDE_UNSIGNED)
GRIDSTRIDE_KIND_OF(float, GRIDSTRIDE_FLOAT)
GRIDSTRIDE_KIND_OF(double, GRIDSTRIDE_FLOAT)
GRIDSTRIDE_KIND_OF(long double, GRIDSTRIDE_FLOAT)
#undef GRIDSTRIDE_KIND_OF

// Size and alignment; 0 where unknown (an incomplete class).
struct gridstride_extent {
    unsigned size, alignment;
};
template <class __type>
constexpr gridstride_extent gridstride_extent_of(decltype(sizeof(__type))) {
    return {sizeof(__type), alignof(__type)};
}
template <class>
constexpr gridstride_extent gridstride_extent_of(...) {
    return {0, 0};
}

template <class __type>
struct gridstride_type_record {
    static const gridstride_type value;
};

// The kind of a vector's or complex number's component, or of the integers that an enumeration consists of.
template <class __type, bool __is_enumeration>
struct gridstride_component_kind_of {
    static constexpr unsigned value = gridstride_type_traits<__type>::component_kind;
};
template <class __type>
struct gridstride_component_kind_of<__type, true> {
    static constexpr unsigned value = gridstride_kind_of<__underlying_type(__type)>();
};

template <class __type>
struct gridstride_description {
    typedef typename gridstride_unqualified<__type>::type bare;
    typedef gridstride_type_traits<bare> traits;
    static constexpr gridstride_type make() {
        return {gridstride_kind_of<bare>(),
                gridstride_unqualified<__type>::is_const,
                gridstride_extent_of<bare>(0).size,
                gridstride_extent_of<bare>(0).alignment,
                traits::components,
                gridstride_component_kind_of<bare, __is_enum(bare)>::value,
                nullptr,
                gridstride_pretty<bare>::make()};
    }
};
template <class __type>
struct gridstride_unsized_description {
    static constexpr gridstride_type make(unsigned __kind) {
        return {__kind, gridstride_unqualified<__type>::is_const, 0, 0, 1, 0, nullptr, gridstride_pretty<__type>::make()};
    }
};
template <>
struct gridstride_description<void> {
    static constexpr gridstride_type make() { return gridstride_unsized_description<void>::make(GRIDSTRIDE_VOID); }
};
template <>
struct gridstride_description<const void> {
    static constexpr gridstride_type make() { return gridstride_unsized_description<const void>::make(GRIDSTRIDE_VOID); }
};
template <class __result, class... __types>
struct gridstride_description<__result(__types...)> {
    static constexpr gridstride_type make() {
        return gridstride_unsized_description<__result(__types...)>::make(GRIDSTRIDE_FUNCTION);
    }
};
template <class __pointee>
struct gridstride_pointer_description {
    static constexpr gridstride_type make(unsigned __constness) {
        return {GRIDSTRIDE_POINTER, __constness, sizeof(void*), alignof(void*), 1, 0,
                &gridstride_type_record<__pointee>::value, gridstride_pretty<__pointee*>::make()};
    }
};
template <class __pointee>
struct gridstride_description<__pointee*> {
    static constexpr gridstride_type make() { return gridstride_pointer_description<__pointee>::make(0); }
};
template <class __pointee>
struct gridstride_description<__pointee* const> {
    static constexpr gridstride_type make() { return gridstride_pointer_description<__pointee>::make(1); }
};

template <class __type>
const gridstride_type gridstride_type_record<__type>::value = gridstride_description<__type>::make();

// ---- parameters and the loop over threads ----

template <unsigned __index, class __first, class... __rest>
struct gridstride_nth_type : gridstride_nth_type<__index - 1, __rest...> {};
template <class __first, class... __rest>
struct gridstride_nth_type<0, __first, __rest...> {
    typedef __first type;
};

template <class... __types>
struct gridstride_signature {
    static constexpr unsigned count = sizeof...(__types);

    // Offset of a parameter in the packed bytes; with `__index` equal to `count`, where the last one ends.
    static constexpr unsigned offset(unsigned __index) {
        const unsigned __sizes[] = {unsigned(sizeof(__types))..., 0};
        const unsigned __alignments[] = {unsigned(alignof(__types))..., 1};
        unsigned __offset = 0;
        for (unsigned __i = 0; __i < __index; ++__i)
            __offset = align(__offset, __alignments[__i]) + __sizes[__i];
        return align(__offset, __alignments[__index]);
    }
    static constexpr unsigned align(unsigned __offset, unsigned __alignment) {
        return (__offset + __alignment - 1) / __alignment * __alignment;
    }
};

template <class __indices, class... __types>
struct gridstride_parameter_table;
template <unsigned... __index, class... __types>
struct gridstride_parameter_table<gridstride_indices<__index...>, __types...> {
    static const gridstride_parameter value[sizeof...(__types) + 1];
};
template <unsigned... __index, class... __types>
const gridstride_parameter gridstride_parameter_table<gridstride_indices<__index...>, __types...>::value[] = {
    gridstride_parameter{gridstride_signature<__types...>::offset(__index), &gridstride_type_record<__types>::value}...,
    gridstride_parameter{0, nullptr}};

// A copy of an argument, aligned as its type wants it.
template <class __type>
struct gridstride_argument {
    alignas(__type) char value_bytes[sizeof(__type)];

    explicit gridstride_argument(const char* __packed) { __builtin_memcpy(value_bytes, __packed, sizeof(__type)); }
    const __type& value() const { return *reinterpret_cast<const __type*>(value_bytes); }
};

// The linker's names for the ends of this library's code.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[], etext[];

template <bool __is_lone>
struct gridstride_end {
    __attribute__((always_inline)) static void thread(gridstride_block* __block) { gridstride_end_thread(__block); }
};
template <>
struct gridstride_end<true> {
    __attribute__((always_inline)) static void thread(gridstride_block* __block) { gridstride_end_lone_thread(__block); }
};

template <class __function, __function __kernel, bool __has_lone_threads>
struct gridstride_entry;
template <class... __types, void (*__kernel)(__types...), bool __has_lone_threads>
struct gridstride_entry<void (*)(__types...), __kernel, __has_lone_threads> {
    typedef typename gridstride_indices_below<sizeof...(__types)>::__list indices;
    typedef gridstride_signature<__types...> signature;

    static constexpr gridstride_kernel __make(const char* __name, gridstride_flat_form __flat, unsigned __may_contend) {
        return {__name, &run, __flat.run_row, __flat.is_merged, __may_contend, signature::count, signature::offset(signature::count),
                gridstride_parameter_table<indices, __types...>::value, __ehdr_start, etext};
    }
    static void run() { unpack(gridstride_current_block(), indices()); }
    template <unsigned... __index>
    static void unpack(gridstride_block* __block, gridstride_indices<__index...>) {
        loop(__block, gridstride_argument<__types>(__block->argument_bytes + signature::offset(__index))...);
    }
    static void loop(gridstride_block* __block, gridstride_argument<__types>... __arguments) {
        __block->is_scheduling = 0;
        for (;;) {
            __kernel(__arguments.value()...);
            gridstride_end<__has_lone_threads>::thread(__block);
        }
    }
};

// The flat form of a kernel, for a row of threads.
template <class __function, __function __form>
struct gridstride_flat_row;
template <class __row, class... __types, bool (*__form)(__row, gridstride_phase, __types...)>
struct gridstride_flat_row<bool (*)(__row, gridstride_phase, __types...), __form> {
    typedef typename gridstride_indices_below<sizeof...(__types)>::__list indices;
    typedef gridstride_signature<__types...> signature;

    static constexpr gridstride_flat_form __make() { return {&run, __row::__is_merged}; }
    static unsigned run(const gridstride_row* __threads, const char* __packed, unsigned __phase) {
        return unpack(__threads, __packed, __phase, indices());
    }
    template <unsigned... __index>
    static bool unpack(const gridstride_row* __threads, const char* __packed, unsigned __phase, gridstride_indices<__index...>) {
        return __form(
            static_cast<const __row&>(*__threads), gridstride_phase(__phase),
            gridstride_argument<__types>(__packed + signature::offset(__index)).value()...);
    }
};

template <class __function, unsigned __index>
struct gridstride_parameter_of;
template <class... __types, unsigned __index>
struct gridstride_parameter_of<void (*)(__types...), __index> : gridstride_nth_type<__index, __types...> {};
template <class __function, unsigned __index>
using gridstride_parameter_t = typename gridstride_parameter_of<__function, __index>::type;

#endif
