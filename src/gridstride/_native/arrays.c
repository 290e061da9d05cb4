/* Look at arrays: NumPy's fields, CuPy's fields or attributes; for PyTorch's see torch_tensors.c. */
#include "native.h"
#include "numpy_abi.h"

#include <string.h>

enum { MOST_TYPES = 32, NUMPY_NUMBERS = 24 };

const unsigned char dtype_sizes[DTYPES] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};

static struct known_type known_types[MOST_TYPES];
static int known_count;

static PyObject *recognize;                 /* recognition.recognize */
static PyObject *bfloat16;                  /* the dtype that stands for it */
static PyObject *numpy_dtype_type;
static enum dtype numpy_dtypes[NUMPY_NUMBERS]; /* by NumPy's number; NO_DTYPE elsewhere */

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

const struct known_type *met_type_of(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    for (int k = 0; k < known_count; ++k)
        if (known_types[k].type == type)
            return &known_types[k];
    return NULL;
}

static int ask_about(PyObject *type, PyObject *value)
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

static enum dtype dtype_of_numpy(PyObject *dtype)
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

/* ---- CuPy ---- */

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

/* Every dtype of NumPy is of a class whose own class is NumPy's. */
int is_numpy_dtype(PyObject *object)
{
    return Py_TYPE((PyObject *)Py_TYPE(object)) == Py_TYPE(numpy_dtype_type);
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

static int view_cupy(PyObject *object, struct array_view *seen)
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

static int size_of_cupy(PyObject *array, size_t *size)
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

static int read_axes_of_cupy(PyObject *array, struct array_axes *axes)
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
static int find_cupy_stream(int device, unsigned long long *stream)
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
    if (cupy.current_stream == NULL && recognize != NULL) {
        PyObject *kind = PyObject_GetAttrString(module, "ndarray");
        if (kind != NULL)
            ask_about(kind, Py_None);
        Py_XDECREF(kind);
        PyErr_Clear();
    }
    return cupy.current_stream != NULL && find_cupy_stream(device, stream);
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
    case CUPY: return find_cupy_stream(device, stream);
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

/* know_cupy(class, cupy.cuda.get_current_stream) */
static PyObject *know_cupy(PyObject *module, PyObject *arguments)
{
    PyObject *type, *current_stream;
    if (!PyArg_ParseTuple(arguments, "OO", &type, &current_stream))
        return NULL;
    struct {
        PyObject **name;
        const char *text;
    } names[] = {{&cupy.data, "data"},   {&cupy.ptr, "ptr"},   {&cupy.device_id, "device_id"},
                 {&cupy.dtype, "dtype"}, {&cupy.size, "size"}, {&cupy.c_contiguous, "_c_contiguous"},
                 {&cupy.shape, "shape"}, {&cupy.strides, "strides"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        if (*names[k].name == NULL && (*names[k].name = PyUnicode_InternFromString(names[k].text)) == NULL)
            return NULL;
    set_reference(&cupy.current_stream, current_stream);
    return PyBool_FromLong(numpy_dtype_type != NULL && remember_type(type, CUPY, NO_DTYPE));
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
static PyObject *cupy_stream(PyObject *module, PyObject *device)
{
    int index = (int)PyLong_AsLong(device);
    unsigned long long stream;
    if (PyErr_Occurred())
        return NULL;
    if (!find_cupy_stream(index, &stream))
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(stream);
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
    {"know_cupy", know_cupy, METH_VARARGS, "Take CuPy's arrays from now on."},
    {"know_cupy_layout", know_cupy_layout, METH_O, "Read the fields of CuPy's arrays at these places."},
    {"know_cupy_stream", know_cupy_stream, METH_O, "Ask this function of CuPy's for the stream, or the public one."},
    {"cupy_stream", cupy_stream, METH_O, "Return the handle of CuPy's current stream on a device."},
    {NULL, NULL, 0, NULL},
};
