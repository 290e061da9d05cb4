/* A call of a raw kernel: its arguments are read, and bound to the parameters of an entry. */
#include "native.h"

#include <string.h>

enum { USUAL_BYTES = 64 /* of packed arguments */ };

static PyObject *names[5]; /* of the arguments, in their order */

/* ---- reading the call ---- */

static int read_count(PyObject *value, unsigned *count)
{
    if (!PyLong_CheckExact(value))
        return 0;
    int overflow;
    long number = PyLong_AsLongAndOverflow(value, &overflow);
    *count = (unsigned)number;
    return overflow == 0 && number >= 0 && number <= 0xffffffffL;
}

static int read_extent(PyObject *value, unsigned extent[3])
{
    extent[1] = extent[2] = 1;
    if (!PyTuple_CheckExact(value))
        return read_count(value, &extent[0]) && extent[0] > 0;
    Py_ssize_t size = PyTuple_Size(value);
    if (size < 1 || size > 3)
        return 0;
    for (Py_ssize_t k = 0; k < size; ++k)
        if (!read_count(PyTuple_GetItem(value, k), &extent[k]) || extent[k] == 0)
            return 0;
    return 1;
}

static int read_given_extent(struct given_extent *last, PyObject *value, unsigned extent[3])
{
    if (value != last->value) {
        unsigned read[3];
        if (!read_extent(value, read))
            return 0;
        memcpy(last->extent, read, sizeof read);
        set_reference(&last->value, value);
    }
    memcpy(extent, last->extent, sizeof last->extent);
    return 1;
}

static int read_keywords(PyObject *keywords, PyObject **values, Py_ssize_t positional)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t k = positional; k < 5; ++k) {
        PyObject *value = PyDict_GetItemWithError(keywords, names[k]);
        if (value != NULL) {
            values[k] = value;
            ++found;
        }
    }
    return found == PyDict_Size(keywords);
}

/* Make `tuple` a new reference to the arguments as a tuple, which keeps them alive during the call. */
static int read_arguments(PyObject *arguments, PyObject **tuple)
{
    if (arguments != NULL && PyTuple_CheckExact(arguments)) {
        *tuple = Py_NewRef(arguments);
        return 1;
    }
    if (arguments == NULL)
        *tuple = PyTuple_New(0);
    else if (PyList_CheckExact(arguments))
        *tuple = PyList_AsTuple(arguments);
    PyErr_Clear();
    return *tuple != NULL;
}

int read_raw_call(struct given_extents *given, PyObject *positional, PyObject *keywords, struct raw_call *call)
{
    PyObject *values[5] = {NULL};
    call->arguments = NULL;
    Py_ssize_t count = PyTuple_Size(positional);
    if (count > 5)
        return 0;
    for (Py_ssize_t k = 0; k < count; ++k)
        values[k] = PyTuple_GetItem(positional, k);
    if (keywords != NULL && !read_keywords(keywords, values, count))
        return 0;
    call->stream = values[4];
    call->configuration.shared_mem = 0;
    call->configuration.flags = 0;
    return values[0] != NULL && values[1] != NULL &&
           read_given_extent(&given->grid, values[0], call->configuration.grid) &&
           read_given_extent(&given->block, values[1], call->configuration.block) &&
           (values[3] == NULL || read_count(values[3], &call->configuration.shared_mem)) &&
           read_arguments(values[2], &call->arguments);
}

/* ---- place: the first array's device ---- */

int find_first_array(struct raw_call *call, type_finder find_type)
{
    Py_ssize_t count = PyTuple_Size(call->arguments);
    call->first.library = NO_LIBRARY;
    call->first.device_type = NO_DEVICE;
    call->first.device = 0;
    call->first_type = NULL;
    call->first_position = -1;
    for (Py_ssize_t k = 0; k < count; ++k) {
        PyObject *value = PyTuple_GetItem(call->arguments, k);
        if (is_plain_number(value))
            continue;
        const struct known_type *known = find_type(value);
        if (known == NULL)
            return 0;
        if (known->library == NUMPY_SCALAR)
            continue;
        call->first_type = known;
        call->first_position = k;
        return view_array(known, value, &call->first);
    }
    return 1;
}

/* ---- check and bind ---- */

static int is_allowed(const struct entry *entry, const struct gridstride_configuration *configuration)
{
    for (int k = 0; k < 3; ++k)
        if (configuration->grid[k] > entry->max_grid[k] || configuration->block[k] > entry->max_block[k])
            return 0;
    unsigned long long threads = (unsigned long long)configuration->block[0] * configuration->block[1];
    return threads <= entry->max_threads && threads * configuration->block[2] <= entry->max_threads &&
           configuration->shared_mem <= entry->max_shared_mem;
}

static int bind_array(const struct parameter *parameter, PyObject *array, struct array_view *seen,
                      unsigned char *packed)
{
    if (seen->dtype == NO_DTYPE || !(parameter->dtypes >> seen->dtype & 1) || !seen->contiguous)
        return 0;
    if (parameter->written && !seen->writable)
        return 0;
    if (seen->address & parameter->unaligned_bits)
        return 0;
    if (parameter->unit > 0 &&
        (!array_size(array, seen) || seen->size * dtype_sizes[seen->dtype] % parameter->unit != 0))
        return 0;
    uint64_t address = seen->address;
    memcpy(packed, &address, sizeof address);
    return 1;
}

/* Return what is known of the type of an array that lies beside the first one, or null. */
static const struct known_type *type_beside_first(PyObject *value, const struct raw_call *call)
{
    const struct known_type *first = call->first_type;
    return first != NULL && Py_IS_TYPE(value, first->type) ? first : known_type_of(value);
}

static int bind_pointer(const struct parameter *parameter, PyObject *value, struct raw_call *call,
                        Py_ssize_t position, unsigned char *packed)
{
    if (value == Py_None)
        return 1; /* the bytes are zero */
    if (position == call->first_position)
        return bind_array(parameter, value, &call->first, packed);
    const struct known_type *known = type_beside_first(value, call);
    struct array_view seen;
    return known != NULL && known->library == call->first.library && view_array(known, value, &seen) &&
           seen.device_type == call->first.device_type && seen.device == call->first.device &&
           bind_array(parameter, value, &seen, packed);
}

/* What no argument writes is zero: null pointers, and the space between arguments. */
static void clear_packed(unsigned char *packed, size_t size)
{
    memset(packed, 0, USUAL_BYTES); /* of constant size: a few instructions */
    if (size > USUAL_BYTES)
        memset(packed + USUAL_BYTES, 0, size - USUAL_BYTES);
}

int bind_raw_call(const struct entry *entry, struct raw_call *call)
{
    if (PyTuple_Size(call->arguments) != entry->parameter_count || !is_allowed(entry, &call->configuration))
        return 0;
    clear_packed(call->packed, entry->packed_size);
    for (Py_ssize_t k = 0; k < entry->parameter_count; ++k) {
        const struct parameter *parameter = &entry->parameters[k];
        PyObject *value = PyTuple_GetItem(call->arguments, k);
        unsigned char *packed = call->packed + parameter->offset;
        if (!(parameter->is_pointer ? bind_pointer(parameter, value, call, k, packed)
                                    : pack_scalar(parameter->dtype, value, packed)))
            return 0;
    }
    call->configuration.flags = entry->is_cooperative ? 1 : 0;
    return 1;
}

const struct name raw_call_names[] = {
    {&names[0], "grid"},
    {&names[1], "block"},
    {&names[2], "args"},
    {&names[3], "shared_mem"},
    {&names[4], "stream"},
    {NULL, NULL},
};
