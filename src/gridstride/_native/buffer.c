/* Buffer: a base class whose objects show a range of memory through the buffer protocol.
 *
 * Classes written in Python can do so only from Python 3.12 on. */
#include "native.h"

#include <stddef.h>

struct buffer {
    PyObject_HEAD
    void *address;
    Py_ssize_t size;
};

static int get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct buffer *self = (struct buffer *)object;
    return PyBuffer_FillInfo(view, object, self->address, self->size, 0, flags);
}

/* _show(address, size) */
static PyObject *show(PyObject *object, PyObject *arguments)
{
    struct buffer *self = (struct buffer *)object;
    unsigned long long address;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "Kn", &address, &size))
        return NULL;
    self->address = (void *)(uintptr_t)address;
    self->size = size;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"_show", show, METH_VARARGS, "Set the range; whoever derives from this keeps it valid."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Show a range of memory through the buffer protocol."},
    {Py_tp_methods, methods},
    {Py_bf_getbuffer, get_buffer},
    {0, NULL},
};

PyType_Spec buffer_spec = {
    .name = "gridstride._native._launcher.Buffer",
    .basicsize = sizeof(struct buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
