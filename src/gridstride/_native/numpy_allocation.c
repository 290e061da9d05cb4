/* NumPy's own allocations, left to functions of Python (NEP 49).
 *
 * NumPy hands its table of functions out in a capsule; the places in it and the layouts below are part
 * of its binary interface, so none of its headers is needed. */
#include "native.h"

#include <stdlib.h>
#include <string.h>

enum { SET_HANDLER = 304 }; /* place of PyDataMem_SetHandler in the table */

typedef PyObject *(*set_handler_function)(PyObject *handler);

struct handler {
    char name[127];
    uint8_t version;
    void *context;
    void *(*allocate)(void *context, size_t size);
    void *(*allocate_zeros)(void *context, size_t count, size_t size);
    void *(*reallocate)(void *context, void *memory, size_t size);
    void (*release)(void *context, void *memory, size_t size);
};

struct functions {
    PyObject *allocate, *reallocate, *release;
};

/* What a call must leave as it found it: arrays go also while an exception is on its way. */
struct surroundings {
    PyGILState_STATE gil;
    PyObject *type, *value, *traceback;
};

static struct surroundings enter_python(void)
{
    struct surroundings before;
    before.gil = PyGILState_Ensure();
    PyErr_Fetch(&before.type, &before.value, &before.traceback);
    return before;
}

static void leave_python(const struct surroundings *before)
{
    PyErr_Restore(before->type, before->value, before->traceback);
    PyGILState_Release(before->gil);
}

/* Consume what a function returned; the functions keep what they raise for themselves. */
static void *read_address(PyObject *result)
{
    void *address = result == NULL ? NULL : PyLong_AsVoidPtr(result);
    Py_XDECREF(result);
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(NULL);
        return NULL;
    }
    return address;
}

static void *allocate(void *context, size_t size)
{
    const struct functions *functions = context;
    struct surroundings before = enter_python();
    void *memory = read_address(PyObject_CallFunction(functions->allocate, "n", (Py_ssize_t)size));
    leave_python(&before);
    return memory;
}

static void *allocate_zeros(void *context, size_t count, size_t size)
{
    if (size != 0 && count > PY_SSIZE_T_MAX / size)
        return NULL;
    void *memory = allocate(context, count * size);
    return memory == NULL ? NULL : memset(memory, 0, count * size);
}

static void *reallocate(void *context, void *memory, size_t size)
{
    const struct functions *functions = context;
    struct surroundings before = enter_python();
    unsigned long long address = (uintptr_t)memory;
    void *moved = read_address(PyObject_CallFunction(functions->reallocate, "Kn", address, (Py_ssize_t)size));
    leave_python(&before);
    return moved;
}

static void release(void *context, void *memory, size_t size)
{
    const struct functions *functions = context;
    struct surroundings before = enter_python();
    PyObject *result = PyObject_CallFunction(functions->release, "K", (unsigned long long)(uintptr_t)memory);
    if (result == NULL)
        PyErr_WriteUnraisable(functions->release);
    Py_XDECREF(result);
    leave_python(&before);
}

static void forget_handler(PyObject *capsule)
{
    struct handler *handler = PyCapsule_GetPointer(capsule, "mem_handler");
    struct functions *functions = handler->context;
    Py_DECREF(functions->allocate);
    Py_DECREF(functions->reallocate);
    Py_DECREF(functions->release);
    free(functions);
    free(handler);
}

/* numpy_handler(allocate, reallocate, release) -> what NumPy takes as handler of its memory */
static PyObject *numpy_handler(PyObject *module, PyObject *arguments)
{
    struct functions given;
    if (!PyArg_ParseTuple(arguments, "OOO", &given.allocate, &given.reallocate, &given.release))
        return NULL;
    struct functions *functions = malloc(sizeof *functions);
    struct handler *handler = calloc(1, sizeof *handler);
    PyObject *capsule = NULL;
    if (functions != NULL && handler != NULL) {
        *functions = given;
        strcpy(handler->name, "gridstride");
        handler->version = 1;
        handler->context = functions;
        handler->allocate = allocate;
        handler->allocate_zeros = allocate_zeros;
        handler->reallocate = reallocate;
        handler->release = release;
        capsule = PyCapsule_New(handler, "mem_handler", forget_handler);
    } else
        PyErr_NoMemory();
    if (capsule == NULL) {
        free(functions);
        free(handler);
        return NULL;
    }
    Py_INCREF(given.allocate);
    Py_INCREF(given.reallocate);
    Py_INCREF(given.release);
    return capsule;
}

/* exchange_numpy_handler(NumPy's table, handler or None for NumPy's own) -> the one before */
static PyObject *exchange_numpy_handler(PyObject *module, PyObject *arguments)
{
    PyObject *capsule, *handler;
    if (!PyArg_ParseTuple(arguments, "OO", &capsule, &handler))
        return NULL;
    void **table = PyCapsule_GetPointer(capsule, NULL);
    if (table == NULL)
        return NULL;
    return ((set_handler_function)table[SET_HANDLER])(handler == Py_None ? NULL : handler);
}

PyMethodDef allocation_functions[] = {
    {"numpy_handler", numpy_handler, METH_VARARGS, "Return a handler of NumPy's memory that calls functions."},
    {"exchange_numpy_handler", exchange_numpy_handler, METH_VARARGS, "Set NumPy's handler; return the one before."},
    {NULL, NULL, 0, NULL},
};
