/* Look at arrays: of NumPy here, of other libraries in cupy_arrays.c and torch_tensors.c. */
#include "native.h"
#include "numpy_abi.h"

enum { MOST_TYPES = 32, NUMPY_NUMBERS = 24 };

const unsigned char dtype_sizes[DTYPES] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};

static struct known_type known_types[MOST_TYPES];
static int known_count;

static PyObject *recognize; /* recognition.recognize */
static PyObject *bfloat16;  /* the dtype that stands for it */
static PyObject *numpy_dtype_type;
static enum dtype numpy_dtypes[NUMPY_NUMBERS]; /* by NumPy's number; NO_DTYPE elsewhere */

const struct known_type *met_type_of(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    for (int k = 0; k < known_count; ++k)
        if (known_types[k].type == type)
            return &known_types[k];
    return NULL;
}

int ask_about(PyObject *type, PyObject *value)
{
    PyObject *recognized = recognize == NULL ? NULL : PyObject_CallFunctionObjArgs(recognize, type, value, NULL);
    int is_known = recognized == Py_True;
    Py_XDECREF(recognized);
    PyErr_Clear();
    return is_known;
}

const struct known_type *known_type_of(PyObject *value)
{
    const struct known_type *met = met_type_of(value);
    if (met != NULL)
        return met;
    PyTypeObject *type = Py_TYPE(value);
    int is_known = ask_about((PyObject *)type, value);
    return is_known && known_types[known_count - 1].type == type ? &known_types[known_count - 1] : NULL;
}

int remember_type(PyObject *type, enum library library, enum dtype dtype)
{
    if (known_count == MOST_TYPES)
        return 0;
    Py_INCREF(type);
    known_types[known_count].type = (PyTypeObject *)type;
    known_types[known_count].library = library;
    known_types[known_count].dtype = dtype;
    ++known_count;
    return 1;
}

/* ---- NumPy ---- */

/* Every dtype of NumPy is of a class whose own class is NumPy's. */
int is_numpy_dtype(PyObject *object)
{
    return numpy_dtype_type != NULL && Py_TYPE((PyObject *)Py_TYPE(object)) == Py_TYPE(numpy_dtype_type);
}

enum dtype dtype_of_numpy(PyObject *dtype)
{
    if (dtype == bfloat16)
        return BFLOAT16;
    const struct numpy_dtype *fields = (const struct numpy_dtype *)dtype;
    int is_native = fields->byte_order == '=' || fields->byte_order == '|';
    if (!is_native || fields->number < 0)
        return NO_DTYPE;
    if (fields->number < NUMPY_NUMBERS)
        return numpy_dtypes[fields->number];
    /* Another library's, which may have been loaded just now. */
    ask_about((PyObject *)Py_TYPE(dtype), dtype);
    return dtype == bfloat16 ? BFLOAT16 : NO_DTYPE;
}

static int view_numpy(PyObject *object, struct array_view *seen)
{
    const struct numpy_array *array = (const struct numpy_array *)object;
    seen->device_type = HOST;
    seen->device = 0;
    seen->dtype = dtype_of_numpy(array->dtype);
    seen->contiguous = (array->flags & NUMPY_C_CONTIGUOUS) != 0;
    seen->writable = (array->flags & NUMPY_WRITEABLE) != 0;
    seen->address = (uintptr_t)array->data;
    return 1;
}

static size_t size_of_numpy(PyObject *object)
{
    const struct numpy_array *array = (const struct numpy_array *)object;
    size_t size = 1;
    for (int k = 0; k < array->ndim; ++k)
        size *= (size_t)array->shape[k];
    return size;
}

static int read_axes_of_numpy(PyObject *object, struct array_axes *axes)
{
    const struct numpy_array *array = (const struct numpy_array *)object;
    axes->count = array->ndim;
    axes->lengths = array->shape;
    axes->steps = array->strides;
    return 1;
}

/* ---- every library ---- */

int view_array(const struct known_type *known, PyObject *array, struct array_view *seen)
{
    seen->library = known->library;
    switch (known->library) {
    case NUMPY: return view_numpy(array, seen);
    case TORCH: return view_torch(array, seen);
    case CUPY: return view_cupy(array, seen);
    default: return 0;
    }
}

int array_size(PyObject *array, struct array_view *seen)
{
    switch (seen->library) {
    case NUMPY: seen->size = size_of_numpy(array); return 1;
    case CUPY: return size_of_cupy(array, &seen->size);
    default: return 1;
    }
}

int read_axes(PyObject *array, const struct array_view *seen, struct array_axes *axes)
{
    int is_read = seen->library == NUMPY   ? read_axes_of_numpy(array, axes)
                  : seen->library == TORCH ? read_axes_of_torch(array, axes)
                  : seen->library == CUPY  ? read_axes_of_cupy(array, axes)
                                           : 0;
    return is_read && axes->count <= MOST_AXES;
}

int library_stream(enum library library, int device, unsigned long long *stream)
{
    switch (library) {
    case TORCH: return torch_stream(device, stream);
    case CUPY: return cupy_stream(device, stream);
    default: return 0;
    }
}

/* ---- functions for recognition.py ---- */

static PyObject *set_recognizer(PyObject *module, PyObject *function)
{
    set_reference(&recognize, function);
    Py_RETURN_NONE;
}

static PyObject *know_bfloat16(PyObject *module, PyObject *dtype)
{
    set_reference(&bfloat16, dtype);
    Py_RETURN_NONE;
}

/* array_fields(array) -> (address, number of axes, flags, identity of the dtype), as this file reads them */
static PyObject *array_fields(PyObject *module, PyObject *object)
{
    const struct numpy_array *array = (const struct numpy_array *)object;
    return Py_BuildValue("(KiiK)", (unsigned long long)(uintptr_t)array->data, array->ndim, array->flags,
                         (unsigned long long)(uintptr_t)array->dtype);
}

static PyObject *tuple_of(const Py_ssize_t *numbers, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int k = 0; tuple != NULL && k < count; ++k)
        if (PyTuple_SetItem(tuple, k, PyLong_FromSsize_t(numbers[k])) < 0)
            Py_CLEAR(tuple);
    return tuple;
}

/* array_shape(array) -> (lengths, steps), as this file reads them */
static PyObject *array_shape(PyObject *module, PyObject *object)
{
    const struct numpy_array *array = (const struct numpy_array *)object;
    return Py_BuildValue("(NN)", tuple_of(array->shape, array->ndim), tuple_of(array->strides, array->ndim));
}

/* axes_of(array) -> (lengths, steps or None where they are contiguous), or None, as this file reads them */
static PyObject *axes_of(PyObject *module, PyObject *array)
{
    const struct known_type *known = known_type_of(array);
    struct array_view seen;
    struct array_axes axes;
    if (known == NULL || !view_array(known, array, &seen) || !read_axes(array, &seen, &axes))
        Py_RETURN_NONE;
    PyObject *lengths = tuple_of(axes.lengths, axes.count);
    PyObject *steps = seen.contiguous ? Py_NewRef(Py_None) : tuple_of(axes.steps, axes.count);
    return Py_BuildValue("(NN)", lengths, steps);
}

/* dtype_fields(dtype) -> (number, byte order), as this file reads them */
static PyObject *dtype_fields(PyObject *module, PyObject *object)
{
    const struct numpy_dtype *dtype = (const struct numpy_dtype *)object;
    return Py_BuildValue("(iC)", dtype->number, dtype->byte_order);
}

/* scalar_bytes(scalar, size) -> bytes, as this file reads them */
static PyObject *scalar_bytes(PyObject *module, PyObject *arguments)
{
    PyObject *scalar;
    int size;
    if (!PyArg_ParseTuple(arguments, "Oi", &scalar, &size))
        return NULL;
    return PyBytes_FromStringAndSize(((const struct numpy_scalar *)scalar)->value, size);
}

/* know_numpy(class of arrays, class of dtypes, our dtype codes by NumPy's numbers) */
static PyObject *know_numpy(PyObject *module, PyObject *arguments)
{
    PyObject *array_type, *dtype_type, *codes;
    if (!PyArg_ParseTuple(arguments, "OOO", &array_type, &dtype_type, &codes))
        return NULL;
    for (int k = 0; k < NUMPY_NUMBERS; ++k) {
        long code = PyLong_AsLong(PyTuple_GetItem(codes, k));
        if (code == -1 && PyErr_Occurred())
            return NULL;
        numpy_dtypes[k] = (enum dtype)code;
    }
    set_reference(&numpy_dtype_type, dtype_type);
    return PyBool_FromLong(remember_type(array_type, NUMPY, NO_DTYPE));
}

/* know_scalar(class, our dtype code) */
static PyObject *know_scalar(PyObject *module, PyObject *arguments)
{
    PyObject *type;
    int code;
    if (!PyArg_ParseTuple(arguments, "Oi", &type, &code))
        return NULL;
    return PyBool_FromLong(remember_type(type, NUMPY_SCALAR, (enum dtype)code));
}

PyMethodDef array_functions[] = {
    {"set_recognizer", set_recognizer, METH_O, "Set the function that is asked about types met for the first time."},
    {"know_bfloat16", know_bfloat16, METH_O, "Set the dtype that stands for bfloat16."},
    {"array_fields", array_fields, METH_O, "Return address, axes, flags and dtype identity of a NumPy array."},
    {"array_shape", array_shape, METH_O, "Return lengths and steps of the axes of a NumPy array."},
    {"axes_of", axes_of, METH_O, "Return lengths and steps of an array of a library that is known."},
    {"dtype_fields", dtype_fields, METH_O, "Return number and byte order of a NumPy dtype."},
    {"scalar_bytes", scalar_bytes, METH_VARARGS, "Return the bytes of a NumPy scalar."},
    {"know_numpy", know_numpy, METH_VARARGS, "Take NumPy's arrays from now on."},
    {"know_scalar", know_scalar, METH_VARARGS, "Take a class of NumPy scalars from now on."},
    {NULL, NULL, 0, NULL},
};
