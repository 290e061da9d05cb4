/* What the parts of the extension share.
 *
 * The extension replays a launch that the Python pipeline made before. A step that meets anything out
 * of the ordinary says so by returning 0, with no exception set; the call is then left to the pipeline,
 * which does it or raises. Nothing here words an error about an argument. */
#ifndef GRIDSTRIDE_NATIVE_H
#define GRIDSTRIDE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "launch_abi.h"

/* Order and names as in entry.py. */
enum dtype {
    NO_DTYPE = -1,
    BOOL, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64,
    FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128,
    DTYPES
};

extern const unsigned char dtype_sizes[DTYPES];

/* ---- arrays.c ---- */

enum library { NO_LIBRARY, NUMPY, TORCH, CUPY, NUMPY_SCALAR };

enum { NO_DEVICE = 0, HOST = 1, CUDA = 2 }; /* DLPack's numbers */

struct known_type {
    PyTypeObject *type;
    enum library library;
    enum dtype dtype; /* of a NumPy scalar */
};

struct array_view {
    enum library library;
    int device_type, device;
    enum dtype dtype; /* NO_DTYPE: none that a parameter takes */
    int contiguous, writable;
    uintptr_t address;
    size_t size; /* elements; of NumPy's and CuPy's arrays after `array_size` */
};

enum { MOST_AXES = 32 };

/* Where the elements of an array lie, as its library tells it. */
struct array_axes {
    int count;
    const Py_ssize_t *lengths;
    const Py_ssize_t *steps; /* in bytes, of PyTorch in elements; only where the array is not contiguous */
    Py_ssize_t held[2 * MOST_AXES];
};

/* Return what is known of a value's type, or null. */
const struct known_type *known_type_of(PyObject *value);
/* The same without a look at types that were not met before, which can take long. */
const struct known_type *met_type_of(PyObject *value);
int view_array(const struct known_type *known, PyObject *array, struct array_view *seen);
int array_size(PyObject *array, struct array_view *seen);
/* Read the axes of an array that was viewed; they are valid as long as it is not changed. */
int read_axes(PyObject *array, const struct array_view *seen, struct array_axes *axes);
int is_numpy_dtype(PyObject *object);
enum dtype dtype_of_numpy(PyObject *dtype);
int library_stream(enum library library, int device, unsigned long long *stream);
/* Look at arrays of a class from now on. */
int remember_type(PyObject *type, enum library library, enum dtype dtype);
/* Return whether the objects of a class, or the arrays of another library's dtype, can be looked at from now on;
   the value is None where there is no object yet. */
int ask_about(PyObject *type, PyObject *value);

/* ---- cupy_arrays.c ---- */

int view_cupy(PyObject *object, struct array_view *seen);
/* The same for memory that is no array yet. */
int view_cupy_memory(PyObject *memory, struct array_view *seen);
int size_of_cupy(PyObject *array, size_t *size);
int read_axes_of_cupy(PyObject *array, struct array_axes *axes);
int cupy_stream(int device, unsigned long long *stream);
/* The same where CuPy is loaded though none of its arrays may have been seen yet. */
int loaded_cupy_stream(PyObject *cupy, int device, unsigned long long *stream);

/* ---- torch_tensors.c ---- */

int view_torch(PyObject *object, struct array_view *seen);
int read_axes_of_torch(PyObject *object, struct array_axes *axes);
int torch_stream(int device, unsigned long long *stream);

/* ---- scalars.c ---- */

/* None or a number of Python's: nothing to look up. */
int is_plain_number(PyObject *value);
int pack_scalar(enum dtype dtype, PyObject *value, unsigned char *packed);

/* ---- entry.c ---- */

enum { MOST_BYTES = 4096 }; /* of packed arguments */

struct parameter {
    int is_pointer, written;
    unsigned dtypes;         /* a pointer: bit k is set where arrays of dtype k are taken */
    enum dtype dtype;        /* a scalar */
    unsigned unaligned_bits; /* those that an aligned address has not */
    unsigned unit;           /* the array's bytes are a multiple of it; 0: not asked */
    unsigned offset;
};

/* The target that a call chose, and under which circumstances. */
struct choice {
    PyObject *target, *choose, *environment;
    int is_by_block; /* made while a block chose a target */
    long generation;
};

/* Take new references to a target and to what chooses it now. */
void make_choice(struct choice *choice, PyObject *target, PyObject *choose);
void drop_choice(struct choice *choice);
/* Return whether such arrays still choose the target. */
int is_chosen_target(const struct choice *choice);

/* A launch to replay. Kept by its kernel; calls in progress hold it too. */
struct entry {
    int references;
    gridstride_launch_routine routine;
    void *context;
    int device_type, device;
    int is_exact; /* only for this very configuration */
    struct gridstride_configuration exact;
    unsigned max_grid[3], max_block[3], max_threads, max_shared_mem;
    int is_cooperative, is_verified;
    struct choice choice;
    unsigned packed_size;
    int parameter_count;
    struct parameter *parameters;
    PyObject *function;
};

struct entry *make_entry(PyObject *description);
void hold_entry(struct entry *entry);
void release_entry(struct entry *entry);
int visit_entry(struct entry *entry, visitproc visit, void *arg);
/* What the environment says of the default target (borrowed; null: nothing), once the extension may look there. */
int knows_environment(void);
PyObject *chosen_environment(void);
int is_environment(PyObject *before);

/* Launch with the GIL released. Returns the routine's code. */
int launch_entry(gridstride_launch_routine routine, void *context, const struct gridstride_configuration *configuration,
                 const void *packed, size_t size, unsigned long long stream);
/* Raise what a function says of a code. */
PyObject *raise_failure(PyObject *function, int code);

/* ---- contexts.c, driver_call.c: what a target's methods can be ---- */

int is_method_of_contexts(PyObject *callable);
int is_call_of_driver(PyObject *callable);
/* Return the DriverFunction whose `call` this is, where it is one without a result (borrowed); else null. */
PyObject *driver_function_behind(PyObject *callable);
int read_driver_value(PyObject *argument, unsigned long long *read);
/* Call a DriverFunction without a result. */
PyObject *call_with_handles(PyObject *function, unsigned long long first, unsigned long long second);

/* ---- raw_call.c ---- */

/* An extent as it was last given. Loops give the same object again; tuples and ints do not change. */
struct given_extent {
    PyObject *value;
    unsigned extent[3];
};

struct given_extents {
    struct given_extent grid, block;
};

/* A call of a raw kernel as it goes through the steps. */
struct raw_call {
    PyObject *arguments, *stream; /* a new reference, a borrowed one */
    struct gridstride_configuration configuration;
    struct array_view first; /* the first array; library NO_LIBRARY where there is none */
    const struct known_type *first_type;
    Py_ssize_t first_position;
    unsigned long long stream_handle;
    unsigned char packed[MOST_BYTES];
};

typedef const struct known_type *(*type_finder)(PyObject *value);

int read_raw_call(struct given_extents *given, PyObject *positional, PyObject *keywords, struct raw_call *call);
int find_first_array(struct raw_call *call, type_finder find_type);
/* Check the call against the entry, and pack its arguments. */
int bind_raw_call(const struct entry *entry, struct raw_call *call);

/* ---- launch_stream.c ---- */

/* Find the handle of the stream for a launch beside its first array; `stream` as it was passed, or null. */
int find_launch_stream(PyObject *target, const struct array_view *first, PyObject *stream, unsigned long long *handle);

/* ---- launcher.c ---- */

enum outcome { HIT, MISS, UNKNOWN_PLACE, RAISED };

/* Turn an exception about the arguments into an AssertionError: the fast path had none. */
void report_refusal(PyObject *replayed);

/* ---- array_key.c ---- */

enum { MOST_OPERANDS = 24, MOST_WORDS = 224 };

/* A call of an array kernel. Its key is all that its meaning depends on but addresses and values of numbers. */
struct array_call {
    PyObject *operands[MOST_OPERANDS]; /* borrowed: arguments, then those passed as out= */
    uintptr_t addresses[MOST_OPERANDS];
    int count;
    PyObject *stream; /* borrowed, or null */
    struct array_view first;
    uint64_t key[MOST_WORDS];
    int key_size;
    uint64_t hash;
};

int read_array_call(PyObject *positional, PyObject *keywords, struct array_call *call);

/* ---- array_record.c ---- */

enum { MOST_STEPS = 2, MOST_MADE = 8 };

struct array_step {
    gridstride_launch_routine routine;
    void *context;
    PyObject *function;
    struct gridstride_configuration configuration;
    PyObject *packed; /* bytes, in which addresses and numbers are still to be filled in */
    struct array_patch {
        unsigned offset;
        int operand;
        int dtype; /* of a number; NO_DTYPE: an address */
    } *patches;
    int patch_count;
};

/* A call to replay. */
struct array_record {
    int references;
    uint64_t hash, *key;
    int key_size;
    PyObject *keywords; /* whose objects the key names; null: none */
    struct choice choice;
    int is_verified;
    int nin, form;
    struct array_step steps[MOST_STEPS];
    int step_count;
    struct array_making {
        PyObject *call, *arguments, *keywords;
        PyObject *wrap; /* makes an array of the memory that `call` allocates; null: `call` makes the array */
        unsigned start; /* where its memory begins between two words */
    } *makings; /* of the outputs, then of a workspace */
    int making_count, output_count;
    struct array_pair {
        int one, other;
        Py_ssize_t low, high, other_low, other_high;
        int may_be_same;
    } *pairs; /* operands that must not share memory */
    int pair_count;
};

struct array_record *make_array_record(PyObject *description, const struct array_call *call, PyObject *keywords);
void release_array_record(struct array_record *record);
int visit_array_record(const struct array_record *record, visitproc visit, void *arg);
int is_record_of(const struct array_record *record, const struct array_call *call);
int lie_apart(const struct array_record *record, const struct array_call *call);
/* Write the argument bytes of a step. `made` are the addresses of what was made. */
int fill_step(const struct array_step *step, const struct array_call *call, const uintptr_t *made,
              unsigned char *packed);

/* ---- array_memory.c ---- */

struct array_memory;
struct array_record *find_array_record(const struct array_memory *memory, const struct array_call *call);
void keep_array_record(struct array_memory *memory, struct array_record *record);
int was_met(struct array_memory **made, const struct array_call *call);
int visit_array_memory(const struct array_memory *memory, visitproc visit, void *arg);
void free_array_memory(struct array_memory *memory);

/* ---- cuda_launch.c ---- */

int launch_cuda(void *context, const struct gridstride_configuration *configuration, const void *packed,
                unsigned long packed_size, unsigned long long stream);

/* ---- current.c ---- */

int has_entered_stream(PyObject *target);

/* ---- module.c ---- */

/* Counts of what is going on anywhere in the process that a replay could miss. */
extern long watchers, streams_entered, targets_chosen, target_generation;
extern int targets_were_chosen; /* ever */
extern unsigned long long hits, misses;
/* Called after every replay on a GPU with what must live until the stream is done; NULL while there is one stream. */
extern PyObject *keeper;

/* Put a new reference into a slot and drop the one it held. */
void set_reference(PyObject **slot, PyObject *value);

/* A string of Python's, made with the module. A table of them ends with nulls. */
struct name {
    PyObject **string;
    const char *text;
};

extern const struct name raw_call_names[], launch_stream_names[], launcher_names[], array_key_names[],
    array_launcher_names[], cupy_names[];

/* ---- types ---- */

extern PyType_Spec launcher_spec, array_launcher_spec, prepared_launch_spec, buffer_spec, driver_function_spec, contexts_spec;
extern PyMethodDef array_functions[], cupy_functions[], torch_functions[], entry_functions[], allocation_functions[];

#endif
