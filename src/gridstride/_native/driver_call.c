/* Functions of a driver called without ctypes: integers and addresses of bytes in, an error code out. */
#include "native.h"

enum { MOST_VALUES = 5 };

typedef unsigned long long value;
typedef int (*function_of_values)(value, value, value, value, value);

struct driver_function {
    PyObject_HEAD
    function_of_values function;
    PyObject *fail;
    int has_result;
};

/* DriverFunction(address, has_result, fail) */
static int function_init(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    struct driver_function *self = (struct driver_function *)object;
    unsigned long long address;
    PyObject *fail;
    if (!PyArg_ParseTuple(arguments, "KpO", &address, &self->has_result, &fail))
        return -1;
    self->function = (function_of_values)(uintptr_t)address;
    set_reference(&self->fail, fail);
    return 0;
}

int read_driver_value(PyObject *argument, value *read)
{
    if (argument == Py_None)
        *read = 0;
    else if (PyBytes_Check(argument))
        *read = (value)(uintptr_t)PyBytes_AsString(argument);
    else
        *read = PyLong_AsUnsignedLongLongMask(argument);
    return *read != (value)-1 || !PyErr_Occurred();
}

static int read_values(PyObject *const *arguments, Py_ssize_t count, value *values, Py_ssize_t room)
{
    if (count > room) {
        PyErr_Format(PyExc_TypeError, "a driver function takes at most %zd values, got %zd", room, count);
        return 0;
    }
    for (Py_ssize_t k = 0; k < count; ++k)
        if (!read_driver_value(arguments[k], &values[k]))
            return 0;
    return 1;
}

/* The GIL is given up: a driver whose queue is full waits for a GPU, whose work may wait for a Python function. */
static int call_driver(const struct driver_function *self, const value *values)
{
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = self->function(values[0], values[1], values[2], values[3], values[4]);
    Py_END_ALLOW_THREADS
    return code;
}

/* Return what the driver wrote behind its first argument, or None. */
static PyObject *result_of(const struct driver_function *self, const value *result)
{
    if (self->has_result)
        return PyLong_FromUnsignedLongLong(*result);
    Py_RETURN_NONE;
}

/* Return what `fail(code)` returns. NotImplemented: what was missing is there now, so the driver is asked once more. */
static PyObject *recover(const struct driver_function *self, const value *values, const value *result, int code)
{
    PyObject *answer = PyObject_CallFunction(self->fail, "i", code);
    if (answer != Py_NotImplemented)
        return answer;
    Py_DECREF(answer);
    code = call_driver(self, values);
    return code == 0 ? result_of(self, result) : PyObject_CallFunction(self->fail, "i", code);
}

static PyObject *function_call(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    const struct driver_function *self = (struct driver_function *)object;
    value values[MOST_VALUES] = {0}, result = 0;
    if (self->function == NULL)
        return PyErr_Format(PyExc_RuntimeError, "this driver has no such function");
    if (!read_values(arguments, count, values + self->has_result, MOST_VALUES - self->has_result))
        return NULL;
    if (self->has_result)
        values[0] = (value)(uintptr_t)&result;
    int code = call_driver(self, values);
    return code == 0 ? result_of(self, &result) : recover(self, values, &result, code);
}

int is_call_of_driver(PyObject *callable)
{
    PyCFunction call = (PyCFunction)(void (*)(void))function_call;
    return Py_TYPE(callable) == &PyCFunction_Type && PyCFunction_GetFunction(callable) == call;
}

PyObject *driver_function_behind(PyObject *callable)
{
    if (!is_call_of_driver(callable))
        return NULL;
    PyObject *function = PyCFunction_GetSelf(callable);
    const struct driver_function *found = (struct driver_function *)function;
    return found->function == NULL || found->has_result ? NULL : function;
}

PyObject *call_with_handles(PyObject *function, unsigned long long first, unsigned long long second)
{
    const struct driver_function *self = (struct driver_function *)function;
    const value values[MOST_VALUES] = {first, second};
    int code = call_driver(self, values);
    if (code != 0)
        return recover(self, values, NULL, code);
    Py_RETURN_NONE;
}

static int function_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((struct driver_function *)object)->fail);
    return 0;
}

static int function_clear(PyObject *object)
{
    Py_CLEAR(((struct driver_function *)object)->fail);
    return 0;
}

static void function_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    function_clear(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* A method, not `__call__`: its arguments come without a tuple around them. */
static PyMethodDef function_methods[] = {
    {"call", (PyCFunction)(void (*)(void))function_call, METH_FASTCALL, "Call the function with integers and bytes; None: 0."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot function_slots[] = {
    {Py_tp_doc, "DriverFunction(address, has_result, fail): call a C function that returns a code."},
    {Py_tp_init, function_init},
    {Py_tp_methods, function_methods},
    {Py_tp_traverse, function_traverse},
    {Py_tp_clear, function_clear},
    {Py_tp_dealloc, function_dealloc},
    {0, NULL},
};

PyType_Spec driver_function_spec = {
    .name = "gridstride._native._launcher.DriverFunction",
    .basicsize = sizeof(struct driver_function),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = function_slots,
};
