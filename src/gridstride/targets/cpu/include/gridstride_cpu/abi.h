// What a kernel library, the CPU runtime and Python agree on. No headers, C++11, any compiler.
//
// Python compiles a kernel library from the user's text and the entries of `entry.h`, loads it, reads
// `gridstride_library` (below) and hands it the runtime's services through `gridstride_bind`.
#ifndef GRIDSTRIDE_CPU_ABI_H
#define GRIDSTRIDE_CPU_ABI_H

#define GRIDSTRIDE_CPU_ABI_VERSION 3

struct gridstride_block;     // state of the block an OS thread runs (execution.h)
struct gridstride_services;  // what the runtime offers kernels beyond inline code (execution.h)
struct gridstride_row;       // of threads that the flat tier runs together (flat.h)

// ---- types and signatures: filled by the compiler, read by Python ----

enum gridstride_kind : unsigned {
    GRIDSTRIDE_VOID = 0, GRIDSTRIDE_BOOL, GRIDSTRIDE_CHAR, GRIDSTRIDE_SIGNED, GRIDSTRIDE_UNSIGNED,  // integers by size
    GRIDSTRIDE_FLOAT, GRIDSTRIDE_BFLOAT16, GRIDSTRIDE_COMPLEX, GRIDSTRIDE_VECTOR, GRIDSTRIDE_STRUCT,
    GRIDSTRIDE_POINTER, GRIDSTRIDE_FUNCTION, GRIDSTRIDE_ENUM
};

struct gridstride_type {
    unsigned kind;             // gridstride_kind
    unsigned is_const;
    unsigned size, alignment;  // 0 where unknown (void, function, incomplete struct)
    unsigned components;       // of a vector, else 1
    unsigned component_kind;   // the kind of a vector's or complex number's component, an enumeration's integers
    const gridstride_type* pointee;
    const char* pretty;        // how the compiler spells a function with the type as `__type`: "... [with __type = name]"
};

struct gridstride_parameter {
    unsigned offset;  // in the packed argument bytes
    const gridstride_type* type;
};

// ---- tables of a kernel library ----

struct gridstride_kernel {
    const char* name;                    // the spelling that was asked for
    void (*run)();                       // runs threads of the current block; entered on a new stack, never returns
    unsigned (*run_row)(const gridstride_row*, const char* packed, unsigned phase);  // flat tier (flat.h), or null
    unsigned is_merged;                  // rows of the flat tier reach over neighboring blocks
    unsigned may_contend;                // its threads may meet at the same memory, with atomics
    unsigned parameter_count;
    unsigned parameter_bytes;
    const gridstride_parameter* parameters;
    const char *code_begin, *code_end;   // of the library: a thread is only interrupted in there
};

struct gridstride_global {
    const char* name;
    void* address;
    unsigned long size;
};

struct gridstride_constant {
    const char* name;
    long long value;
};

// A `__shared__` variable, one for each instance of a template it is declared in. Each has a place of its own in the
// block's static arena when the library is loaded; Python then lets variables of different kernels share places.
struct gridstride_shared_slot {
    const char* function;  // number of the declaration and the kernel it is in: "3 ns::f", "3 " outside of kernels
    unsigned size, alignment, offset;
    gridstride_shared_slot* next;
};

struct gridstride_library_table {
    unsigned abi_version;
    unsigned kernel_count, global_count, constant_count;
    const gridstride_kernel* kernels;
    const gridstride_global* globals;
    const gridstride_constant* constants;
    gridstride_shared_slot* const* shared_slots;  // address of the list's head
    const unsigned* static_shared_bytes;          // of all slots together
};

// extern "C" const gridstride_library_table gridstride_library;
// extern "C" void gridstride_bind(const gridstride_services*);

// ---- exports of the runtime ----

// The context of a launch routine (launch_abi.h) on this target; made by Python, lives as long as the library.
struct gridstride_function {
    const gridstride_kernel* kernel;
    const char* name;               // for messages
    unsigned static_shared_bytes;
    const char* source_path;        // file name messages use for the user's text
};

struct gridstride_failure {
    int code;                 // gridstride_failure_code
    unsigned block[3], thread[3];
    unsigned has_thread;
    unsigned has_address;
    unsigned long address;
    char message[4000];       // complete text: what, where, which threads wait at which lines
};

enum gridstride_failure_code {
    GRIDSTRIDE_OK = 0, GRIDSTRIDE_SEGMENTATION = 1, GRIDSTRIDE_BUS, GRIDSTRIDE_ARITHMETIC, GRIDSTRIDE_ILLEGAL,
    GRIDSTRIDE_STACK_OVERFLOW, GRIDSTRIDE_DIVERGENCE, GRIDSTRIDE_ASSERTION, GRIDSTRIDE_TRAP,
    GRIDSTRIDE_TIMEOUT, GRIDSTRIDE_INTERRUPTED, GRIDSTRIDE_TOO_MANY_BLOCKS, GRIDSTRIDE_OUT_OF_MEMORY,
    GRIDSTRIDE_UNSUPPORTED
};

// extern "C":
//   const gridstride_services* gridstride_runtime_services();
//   (flags of a configuration: 1 cooperative launch, 2 fibers whatever the kernel has)
//   int  gridstride_cpu_launch(void* function, const gridstride_configuration*, const void* packed,
//                              unsigned long packed_size, unsigned long long stream);   // gridstride_launch_routine
//   const gridstride_failure* gridstride_last_failure();        // of the calling thread
//   void gridstride_set_num_threads(int);  int gridstride_get_num_threads();
//   void gridstride_set_launch_timeout(double seconds);         // 0: never
//   int  gridstride_max_resident_blocks(unsigned threads, unsigned shared_bytes);  // for cooperative launches
#endif
