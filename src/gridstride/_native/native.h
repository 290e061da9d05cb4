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

/* Return what is known of a value's type, or null. */
const struct known_type *known_type_of(PyObject *value);
/* The same without a look at types that were not met before, which can take long. */
const struct known_type *met_type_of(PyObject *value);
int view_array(const struct known_type *known, PyObject *array, struct array_view *seen);
int array_size(PyObject *array, struct array_view *seen);
int library_stream(enum library library, int device, unsigned long long *stream);
/* The same for CuPy, which is loaded though none of its arrays may have been seen yet. */
int loaded_cupy_stream(PyObject *cupy, int device, unsigned long long *stream);
/* Look at arrays of a class from now on. */
int remember_type(PyObject *type, enum library library, enum dtype dtype);

/* ---- torch_tensors.c ---- */

int view_torch(PyObject *object, struct array_view *seen);
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
    int is_chosen; /* made while a block chose a target */
    long target_generation;
    unsigned packed_size;
    int parameter_count;
    struct parameter *parameters;
    PyObject *target, *function, *choose, *environment;
};

struct entry *make_entry(PyObject *description);
void hold_entry(struct entry *entry);
void release_entry(struct entry *entry);
int visit_entry(struct entry *entry, visitproc visit, void *arg);
/* What the environment says of the default target (borrowed; null: nothing), once the extension may look there. */
int knows_environment(void);
PyObject *chosen_environment(void);
int is_environment(PyObject *before);
/* Return whether the target that arrays choose is still the entry's. */
int is_chosen_target(const struct entry *entry);

/* Launch with the GIL released. Returns the routine's code. */
int launch_entry(gridstride_launch_routine routine, void *context, const struct gridstride_configuration *configuration,
                 const void *packed, size_t size, unsigned long long stream);
/* Raise what a function says of a code. */
PyObject *raise_failure(PyObject *function, int code);

/* ---- contexts.c, driver_call.c: what a target's attributes are called with, without a detour for known functions ---- */

PyObject *call_without_arguments(PyObject *function);
PyObject *call_with_handles(PyObject *function, PyObject *first, PyObject *second);

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

/* ---- types ---- */

extern PyType_Spec launcher_spec, prepared_launch_spec, buffer_spec, driver_function_spec, contexts_spec;
extern PyMethodDef array_functions[], torch_functions[], entry_functions[], allocation_functions[];
int intern_names(void);

#endif
