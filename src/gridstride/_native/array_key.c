/* The key of a call of an array kernel: all that its meaning depends on, as a row of numbers.
 *
 * Calls with the same key differ in addresses, in the values of numbers and in the stream. Objects stand in a key
 * by their address; the record of a key holds them. */
#include "native.h"

static PyObject *stream_name, *out_name;

enum { OF_NONE = 1, OF_BOOLEAN, OF_INTEGER, OF_TUPLE, OF_OBJECT };

enum { WORD = 16 /* loops tell apart where in so many bytes an array starts */ };

static int push(struct array_call *call, uint64_t word)
{
    if (call->key_size == MOST_WORDS)
        return 0;
    call->key[call->key_size++] = word;
    return 1;
}

static int push_object(struct array_call *call, PyObject *object)
{
    return push(call, (uint64_t)(uintptr_t)object);
}

/* ---- keywords ---- */

static int push_integer(struct array_call *call, PyObject *value)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0 && push(call, OF_INTEGER) && push(call, (uint64_t)number);
}

static int push_tuple(struct array_call *call, PyObject *tuple)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    if (!push(call, OF_TUPLE) || !push(call, (uint64_t)count))
        return 0;
    for (Py_ssize_t k = 0; k < count; ++k) {
        PyObject *item = PyTuple_GetItem(tuple, k);
        if (!PyLong_CheckExact(item) || !push_integer(call, item))
            return 0;
    }
    return 1;
}

/* Objects that never change stand for themselves. */
static int push_value(struct array_call *call, PyObject *value)
{
    if (value == Py_None)
        return push(call, OF_NONE);
    if (PyBool_Check(value))
        return push(call, OF_BOOLEAN) && push(call, value == Py_True);
    if (PyLong_CheckExact(value))
        return push_integer(call, value);
    if (PyTuple_CheckExact(value))
        return push_tuple(call, value);
    int is_constant = PyUnicode_CheckExact(value) || PyType_Check(value) || is_numpy_dtype(value);
    return is_constant && push(call, OF_OBJECT) && push_object(call, value);
}

static int add_operand(struct array_call *call, PyObject *operand)
{
    if (call->count == MOST_OPERANDS)
        return 0;
    call->operands[call->count++] = operand;
    return 1;
}

static int read_out(struct array_call *call, PyObject *out)
{
    if (out == Py_None)
        return 1;
    if (!PyTuple_CheckExact(out))
        return add_operand(call, out);
    for (Py_ssize_t k = 0; k < PyTuple_Size(out); ++k)
        if (!add_operand(call, PyTuple_GetItem(out, k)))
            return 0;
    return 1;
}

static int read_keywords(PyObject *keywords, struct array_call *call)
{
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(keywords, &at, &name, &value);) {
        if (name == stream_name)
            call->stream = value;
        else if (name == out_name) {
            if (!read_out(call, value))
                return 0;
        }
        else if (!push_object(call, name) || !push_value(call, value))
            return 0;
    }
    return 1;
}

/* ---- operands ---- */

static int push_axes(struct array_call *call, PyObject *array, const struct array_view *seen)
{
    struct array_axes axes;
    if (!read_axes(array, seen, &axes) || !push(call, (uint64_t)axes.count << 1 | (seen->contiguous != 0)))
        return 0;
    for (int k = 0; k < axes.count; ++k)
        if (!push(call, (uint64_t)axes.lengths[k]) || (!seen->contiguous && !push(call, (uint64_t)axes.steps[k])))
            return 0;
    return 1;
}

static int is_beside(const struct array_view *first, const struct array_view *seen)
{
    return first->library == seen->library && first->device_type == seen->device_type && first->device == seen->device;
}

static int push_array(struct array_call *call, int position, const struct known_type *known)
{
    struct array_view seen;
    PyObject *array = call->operands[position];
    if (!view_array(known, array, &seen) || seen.dtype == NO_DTYPE)
        return 0;
    if (call->first.library == NO_LIBRARY)
        call->first = seen;
    else if (!is_beside(&call->first, &seen))
        return 0;
    call->addresses[position] = seen.address;
    uint64_t form = (uint64_t)seen.dtype << 5 | (uint64_t)(seen.address % WORD) << 1 | (seen.writable != 0);
    return push_object(call, (PyObject *)known->type) && push(call, form) && push_axes(call, array, &seen);
}

static int push_operand(struct array_call *call, int position)
{
    PyObject *operand = call->operands[position];
    if (operand == Py_None)
        return 0;
    if (is_plain_number(operand))
        return push_object(call, (PyObject *)Py_TYPE(operand));
    const struct known_type *known = known_type_of(operand);
    if (known == NULL)
        return 0;
    return known->library == NUMPY_SCALAR ? push_object(call, (PyObject *)known->type)
                                          : push_array(call, position, known);
}

static uint64_t hash_of(const uint64_t *words, int count)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (int k = 0; k < count; ++k) {
        hash = (hash ^ words[k]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

int read_array_call(PyObject *positional, PyObject *keywords, struct array_call *call)
{
    Py_ssize_t count = PyTuple_Size(positional);
    call->count = call->key_size = 0;
    call->stream = NULL;
    call->first.library = NO_LIBRARY;
    for (Py_ssize_t k = 0; k < count; ++k)
        if (!add_operand(call, PyTuple_GetItem(positional, k)))
            return 0;
    if (keywords != NULL && !read_keywords(keywords, call))
        return 0;
    if (!push(call, (uint64_t)count) || !push(call, (uint64_t)call->count))
        return 0;
    for (int k = 0; k < call->count; ++k)
        if (!push_operand(call, k))
            return 0;
    if (call->first.library == NO_LIBRARY)
        return 0;
    uint64_t place = (uint64_t)call->first.device_type << 32 | (uint32_t)call->first.device;
    if (!push(call, place))
        return 0;
    call->hash = hash_of(call->key, call->key_size);
    return 1;
}

const struct name array_key_names[] = {
    {&stream_name, "stream"},
    {&out_name, "out"},
    {NULL, NULL},
};
