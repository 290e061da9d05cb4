/* Look at CuPy's arrays: at their fields where these were found, else at their attributes. */
#include "native.h"

static struct {
    PyObject *current_stream;
    PyObject *data, *ptr, *device_id, *dtype, *c_contiguous, *size, *shape, *strides; /* names */
    intptr_t (*stream_of_device)(int device); /* CuPy's own function; null: not known */
} cupy;

/* Where CuPy's fields are, as in cupy_shortcuts.py; without an array class this is not known. */
static struct {
    PyObject *array_class, *pointer_class;
    Py_ssize_t data, dtype, size, c_contiguous; /* in an array */
    Py_ssize_t ptr, device_id;                  /* in its pointer */
    Py_ssize_t lengths, steps;                  /* in an array: pointers to the first and behind the last; 0: not known */
} cupy_layout;

static int read_number(PyObject *object, PyObject *name, unsigned long long *number)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (value != NULL && PyLong_Check(value))
        *number = PyLong_AsUnsignedLongLong(value);
    int is_read = value != NULL && PyLong_Check(value) && !PyErr_Occurred();
    Py_XDECREF(value);
    if (!is_read)
        PyErr_Clear();
    return is_read;
}

static enum dtype dtype_of_cupy(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttr(array, cupy.dtype);
    enum dtype known = NO_DTYPE;
    if (dtype == NULL)
        PyErr_Clear();
    else if (is_numpy_dtype(dtype))
        known = dtype_of_numpy(dtype);
    Py_XDECREF(dtype);
    return known;
}

static const void *field(PyObject *object, Py_ssize_t offset)
{
    return (const char *)object + offset;
}

int view_cupy_memory(PyObject *memory, struct array_view *seen)
{
    unsigned long long address, device;
    seen->device_type = CUDA;
    if (cupy_layout.pointer_class != NULL && (PyObject *)Py_TYPE(memory) == cupy_layout.pointer_class) {
        seen->device = *(const int *)field(memory, cupy_layout.device_id);
        seen->address = *(const uintptr_t *)field(memory, cupy_layout.ptr);
        return 1;
    }
    if (!read_number(memory, cupy.ptr, &address) || !read_number(memory, cupy.device_id, &device))
        return 0;
    seen->device = (int)device;
    seen->address = (uintptr_t)address;
    return 1;
}

static int view_cupy_attributes(PyObject *object, struct array_view *seen)
{
    unsigned long long contiguous;
    PyObject *memory = PyObject_GetAttr(object, cupy.data);
    if (memory == NULL) {
        PyErr_Clear();
        return 0;
    }
    int is_placed = view_cupy_memory(memory, seen);
    Py_DECREF(memory);
    if (!is_placed || !read_number(object, cupy.c_contiguous, &contiguous))
        return 0;
    seen->dtype = dtype_of_cupy(object);
    seen->contiguous = contiguous != 0;
    return 1;
}

static int has_known_layout(PyObject *array)
{
    return (PyObject *)Py_TYPE(array) == cupy_layout.array_class;
}

int view_cupy(PyObject *object, struct array_view *seen)
{
    seen->device_type = CUDA;
    seen->writable = 1;
    if (!has_known_layout(object))
        return view_cupy_attributes(object, seen);
    PyObject *pointer = *(PyObject *const *)field(object, cupy_layout.data);
    PyObject *dtype = *(PyObject *const *)field(object, cupy_layout.dtype);
    if ((PyObject *)Py_TYPE(pointer) != cupy_layout.pointer_class || !is_numpy_dtype(dtype))
        return view_cupy_attributes(object, seen);
    seen->device = *(const int *)field(pointer, cupy_layout.device_id);
    seen->dtype = dtype_of_numpy(dtype);
    seen->contiguous = *(const int *)field(object, cupy_layout.c_contiguous) != 0;
    seen->address = *(const uintptr_t *)field(pointer, cupy_layout.ptr);
    return 1;
}

int size_of_cupy(PyObject *array, size_t *size)
{
    if (has_known_layout(array)) {
        *size = *(const size_t *)field(array, cupy_layout.size);
        return 1;
    }
    unsigned long long number;
    int is_read = read_number(array, cupy.size, &number);
    *size = is_read ? (size_t)number : 0;
    return is_read;
}

static int read_tuple(PyObject *array, PyObject *name, Py_ssize_t *numbers)
{
    PyObject *tuple = PyObject_GetAttr(array, name);
    Py_ssize_t count = tuple != NULL && PyTuple_CheckExact(tuple) ? PyTuple_Size(tuple) : -1;
    if (count > MOST_AXES)
        count = -1;
    for (Py_ssize_t k = 0; k < count; ++k)
        numbers[k] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, k));
    Py_XDECREF(tuple);
    if (!PyErr_Occurred())
        return (int)count;
    PyErr_Clear();
    return -1;
}

int read_axes_of_cupy(PyObject *array, struct array_axes *axes)
{
    if (has_known_layout(array) && cupy_layout.lengths > 0) {
        const Py_ssize_t *const *lengths = field(array, cupy_layout.lengths);
        axes->lengths = lengths[0];
        axes->count = (int)(lengths[1] - lengths[0]);
        axes->steps = *(const Py_ssize_t *const *)field(array, cupy_layout.steps);
        return 1;
    }
    axes->lengths = axes->held;
    axes->steps = axes->held + MOST_AXES;
    axes->count = read_tuple(array, cupy.shape, axes->held);
    return axes->count >= 0 && read_tuple(array, cupy.strides, axes->held + MOST_AXES) == axes->count;
}

static int ask_cupy_for_stream(int device, unsigned long long *stream)
{
    PyObject *number = PyLong_FromLong(device);
    PyObject *current = number ? PyObject_CallFunctionObjArgs(cupy.current_stream, number, NULL) : NULL;
    Py_XDECREF(number);
    if (current == NULL) {
        PyErr_Clear();
        return 0;
    }
    int is_read = read_number(current, cupy.ptr, stream);
    Py_DECREF(current);
    return is_read;
}

/* A device was launched on before, so CuPy's own function, which checks nothing, can be asked about it. */
int cupy_stream(int device, unsigned long long *stream)
{
    if (cupy.stream_of_device == NULL)
        return ask_cupy_for_stream(device, stream);
    *stream = (unsigned long long)cupy.stream_of_device(device);
    if (!PyErr_Occurred())
        return 1;
    PyErr_Clear();
    return 0;
}

int loaded_cupy_stream(PyObject *module, int device, unsigned long long *stream)
{
    PyObject *kind = cupy.current_stream == NULL ? PyObject_GetAttrString(module, "ndarray") : NULL;
    if (kind != NULL)
        ask_about(kind, Py_None);
    Py_XDECREF(kind);
    PyErr_Clear();
    return cupy.current_stream != NULL && cupy_stream(device, stream);
}

/* ---- functions for recognition.py and cupy_shortcuts.py ---- */

/* know_cupy(class, cupy.cuda.get_current_stream) */
static PyObject *know_cupy(PyObject *module, PyObject *arguments)
{
    PyObject *type, *current_stream;
    if (!PyArg_ParseTuple(arguments, "OO", &type, &current_stream))
        return NULL;
    set_reference(&cupy.current_stream, current_stream);
    return PyBool_FromLong(remember_type(type, CUPY, NO_DTYPE));
}

/* know_cupy_layout(a Layout of cupy_shortcuts.py) */
static PyObject *know_cupy_layout(PyObject *module, PyObject *layout)
{
    PyObject *array_class, *pointer_class;
    if (!PyArg_ParseTuple(layout, "OOnnnnnnnn", &array_class, &pointer_class, &cupy_layout.data, &cupy_layout.dtype,
                          &cupy_layout.size, &cupy_layout.c_contiguous, &cupy_layout.ptr, &cupy_layout.device_id,
                          &cupy_layout.lengths, &cupy_layout.steps))
        return NULL;
    set_reference(&cupy_layout.array_class, array_class);
    set_reference(&cupy_layout.pointer_class, pointer_class);
    Py_RETURN_NONE;
}

/* know_cupy_stream(CuPy's own function as a capsule) -> whether it is what C code can call */
static PyObject *know_cupy_stream(PyObject *module, PyObject *capsule)
{
    static const char signature[] = "intptr_t (int)"; /* a capsule's name */
    int is_ours = PyCapsule_IsValid(capsule, signature);
    cupy.stream_of_device = is_ours ? (intptr_t(*)(int))PyCapsule_GetPointer(capsule, signature) : NULL;
    return PyBool_FromLong(is_ours);
}

/* cupy_stream(device) -> handle of CuPy's current stream, or None */
static PyObject *show_cupy_stream(PyObject *module, PyObject *device)
{
    int index = (int)PyLong_AsLong(device);
    unsigned long long stream;
    if (PyErr_Occurred())
        return NULL;
    if (!cupy_stream(index, &stream))
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(stream);
}

PyMethodDef cupy_functions[] = {
    {"know_cupy", know_cupy, METH_VARARGS, "Take CuPy's arrays from now on."},
    {"know_cupy_layout", know_cupy_layout, METH_O, "Read the fields of CuPy's arrays at these places."},
    {"know_cupy_stream", know_cupy_stream, METH_O, "Ask this function of CuPy's for the stream, or the public one."},
    {"cupy_stream", show_cupy_stream, METH_O, "Return the handle of CuPy's current stream on a device."},
    {NULL, NULL, 0, NULL},
};

const struct name cupy_names[] = {
    {&cupy.data, "data"},
    {&cupy.ptr, "ptr"},
    {&cupy.device_id, "device_id"},
    {&cupy.dtype, "dtype"},
    {&cupy.size, "size"},
    {&cupy.c_contiguous, "_c_contiguous"},
    {&cupy.shape, "shape"},
    {&cupy.strides, "strides"},
    {NULL, NULL},
};
