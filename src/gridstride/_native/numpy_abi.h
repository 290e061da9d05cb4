/* NumPy's arrays, dtypes and scalars as its binary interface lays them out, behind the object header.
 * Every compiled user of NumPy reads these fields directly; `recognition.py` compares them with the
 * attributes of real arrays before they are trusted. */
#ifndef GRIDSTRIDE_NUMPY_ABI_H
#define GRIDSTRIDE_NUMPY_ABI_H

#include <Python.h>

enum { NUMPY_C_CONTIGUOUS = 0x1, NUMPY_WRITEABLE = 0x400 };

struct numpy_array {
    PyObject head;
    char *data;
    int ndim;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    PyObject *base;
    PyObject *dtype;
    int flags;
};

struct numpy_dtype {
    PyObject head;
    PyTypeObject *scalar;
    char kind, character, byte_order, reserved;
    int number;
};

struct numpy_scalar {
    PyObject head;
    char value[16];
};

#endif
