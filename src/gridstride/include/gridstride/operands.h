// What the loops of elementwise and reduction kernels are handed: where elements lie, how they are seen, and the
// space of indices that is walked. The layouts are filled in by the launch, in this order of members.
#ifndef GRIDSTRIDE_OPERANDS_H
#define GRIDSTRIDE_OPERANDS_H

namespace gridstride {

// Evaluate an expression for each operand: swallow((expression of the pack)...).
template <class... __anything>
__host__ __device__ inline void swallow(const __anything&...) {}

// An array of elements stored as `__stored` that the user's text sees as `__value`. Strides are in bytes, those of
// the outer axes in the order of `axes::length`.
template <class __stored, class __value, int __axes>
struct operand {
    typedef __stored stored;
    typedef __value value;

    char* data;
    long long step;  // along the innermost axis
    long long strides[__axes];
};
template <class __stored, class __value, int __axes>
struct input : operand<__stored, __value, __axes> { static constexpr bool is_read = true, is_written = false; };
// An output that the user's text assigns before anything else, and one whose earlier value it may use or keep.
template <class __stored, class __value, int __axes>
struct output : operand<__stored, __value, __axes> { static constexpr bool is_read = false, is_written = true; };
template <class __stored, class __value, int __axes>
struct updated : operand<__stored, __value, __axes> { static constexpr bool is_read = true, is_written = true; };

// An input of a reduction: `strides` and `step` along the folded axes, `kept_strides` along the others.
template <class __stored, class __value, int __axes>
struct folded : input<__stored, __value, __axes> { long long kept_strides[__axes]; };

// Axes that are walked as one index, the first one fastest. Division by a length is a multiplication: for an index
// below 2^31, index / length == (high half of index * multiplier + index) >> shift.
template <int __axes>
struct axes {
    long long count;  // of indices: the product of the lengths
    int ndim;
    int is_wide;      // whether an index may be 2^31 or more
    long long length[__axes];
    unsigned multiplier[__axes];
    unsigned shift[__axes];
};

// The number of an element in the order of the arrays' axes, last axis fastest, whatever order the loops have.
template <int __axes>
struct numbering {
    long long step;
    long long strides[__axes];
};

// What an elementwise kernel walks.
template <int __axes>
struct element_space {
    long long size;      // of all elements
    long long row;       // length of the innermost axis
    long long column;    // length of the next one
    long long width, height;  // of a tile of both, where the loop takes tiles
    axes<__axes> outer;  // axis 0: pieces of the innermost axis
    numbering<__axes> numbers;
};

// What a reduction walks, and how the fold is cut: `parts` parts of `part` indices of `fold`.
template <int __axes>
struct fold_space {
    long long size;        // of all elements that are folded
    long long outputs;     // number of results
    long long fold_row;    // length of the innermost folded axis
    long long kept_row;    // length of the innermost axis that is kept
    long long part;
    int parts;
    int group;             // threads that share a result, or a packet of results
    char* workspace;       // for the results of the parts
    long long width;       // results of a block, where that takes a stretch of neighboring ones
    axes<__axes> kept;     // axis 0 may count packets of the innermost axis that is kept
    axes<__axes> fold;     // axis 0 may count packets of the innermost folded axis
    numbering<__axes> kept_numbers, fold_numbers;  // in the order of the input's axes
    numbering<__axes> position;                    // among the folded elements of one result
    numbering<__axes> result;                      // in the order of the output's axes
};

// ---- large structures ----

// NVRTC (13.5 too) takes what is read of a copy of 128 bytes or more from the original, and as if it were aligned
// there. So larger structures are seen where they are, and are copied by bytes where they have to be copied.
constexpr int largest_copy = 16;

template <class __type, bool = (sizeof(__type) > largest_copy)>
struct seen { typedef __type type; };
template <class __type>
struct seen<__type, true> { typedef const __type& type; };

template <class __type>
__host__ __device__ inline void copy(__type& __to, const __type& __from) {
#ifdef __CUDA_ARCH__
    if (sizeof(__type) > largest_copy) {
        const volatile unsigned char* __bytes = reinterpret_cast<const volatile unsigned char*>(&__from);
#pragma unroll 1
        for (int __k = 0; __k < int(sizeof(__type)); ++__k) reinterpret_cast<unsigned char*>(&__to)[__k] = __bytes[__k];
        return;
    }
#endif
    __to = __from;
}

template <class __type>
__host__ __device__ inline void convert(__type& __to, const __type& __from) { copy(__to, __from); }
template <class __value, class __stored>
__host__ __device__ inline void convert(__value& __to, const __stored& __from) { __to = static_cast<__value>(__from); }

// A structure passed by value, wherever its bytes may stand.
template <class __type>
struct bytes_of {
    unsigned char __bytes[sizeof(__type)];
    __host__ __device__ __type value() const {
        __type __copy;
        copy(__copy, *reinterpret_cast<const __type*>(__bytes));
        return __copy;
    }
};

// ---- a value as the user's text sees it ----

template <class __stored>
__host__ __device__ inline const __stored& loaded(const __stored& __place) { return __place; }
#ifdef GRIDSTRIDE_CPU_ABI_VERSION
// g++ 12 makes no vectors of what depends on a bool that it loads as one.
inline bool loaded(const bool& __place) { return reinterpret_cast<const unsigned char&>(__place) != 0; }
#endif

// An input is converted; an output is a variable that is stored when the element is done.
template <class __operand, bool __is_read = __operand::is_read, bool __is_written = __operand::is_written>
struct element {
    typedef typename __operand::stored stored;
    const stored& __place;
    __host__ __device__ element(stored& __at) : __place(__at) {}
    typedef typename seen<typename __operand::value>::type type;
    __host__ __device__ type get() const { return static_cast<type>(loaded(__place)); }
};
template <class __operand>
struct element<__operand, true, true> {
    typedef typename __operand::stored stored;
    stored& __place;
    typename __operand::value __kept;
    __host__ __device__ element(stored& __at) : __place(__at) { convert(__kept, __at); }
    __host__ __device__ ~element() { __place = static_cast<stored>(__kept); }
    __host__ __device__ typename __operand::value& get() { return __kept; }
};
template <class __operand>
struct element<__operand, false, true> {
    typedef typename __operand::stored stored;
    stored& __place;
    typename __operand::value __kept;
    __host__ __device__ element(stored& __at) : __place(__at) {}
    __host__ __device__ ~element() { __place = static_cast<stored>(__kept); }
    __host__ __device__ typename __operand::value& get() { return __kept; }
};

}

#endif
