/* The stream of a launch: the one that was passed, else the current one of the library of the first array. */
#include "native.h"

static PyObject *target_name, *ptr_name;

static int read_handle(PyObject *number, unsigned long long *handle)
{
    if (number == NULL || !PyLong_CheckExact(number)) {
        PyErr_Clear();
        return 0;
    }
    *handle = PyLong_AsUnsignedLongLong(number);
    int is_read = !PyErr_Occurred();
    PyErr_Clear();
    return is_read;
}

static int read_stream_object(PyObject *target, PyObject *stream, unsigned long long *handle)
{
    PyObject *own = PyObject_GetAttr(stream, target_name);
    int is_of_target = own == target;
    Py_XDECREF(own);
    PyErr_Clear();
    if (!is_of_target)
        return 0;
    PyObject *number = PyObject_GetAttr(stream, ptr_name);
    int is_read = read_handle(number, handle);
    Py_XDECREF(number);
    return is_read;
}

int find_launch_stream(PyObject *target, const struct array_view *first, PyObject *stream, unsigned long long *handle)
{
    int is_on_gpu = first->device_type == CUDA;
    *handle = 0;
    int is_read;
    if (stream == NULL || stream == Py_None)
        is_read = is_on_gpu ? library_stream(first->library, first->device, handle) : !has_entered_stream(target);
    else
        is_read = PyLong_CheckExact(stream) ? read_handle(stream, handle) : read_stream_object(target, stream, handle);
    /* The pipeline knows which streams of a host target exist, and begins to keep arguments for a second stream. */
    return is_read && (*handle == 0 || (is_on_gpu && keeper != NULL));
}

const struct name launch_stream_names[] = {
    {&target_name, "target"},
    {&ptr_name, "ptr"},
    {NULL, NULL},
};
