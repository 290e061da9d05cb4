/* Look at arrays: NumPy's fields, DLPack's exchange functions, CuPy's fields or attributes. */
#include "dlpack_abi.h"
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
    const struct dlpack_exchange *exchange;
    PyObject *requires_grad; /* the descriptor */
    descrgetfunc get_requires_grad;
    Py_ssize_t implementation, autograd; /* offsets of a tensor's pointers, see learn_autograd; 0: not known */
    PyCFunction is_neg, is_conj;
} torch;

static struct {
    PyObject *current_stream;
    PyObject *data, *ptr, *device_id, *dtype, *c_contiguous, *size; /* names */
    intptr_t (*stream_of_device)(int device); /* CuPy's own function; null: not known */
} cupy;

/* Where CuPy's fields are, as in cupy_shortcuts.py; without an array class this is not known. */
static struct {
    PyObject *array_class, *pointer_class;
    Py_ssize_t data, dtype, size, c_contiguous; /* in an array */
    Py_ssize_t ptr, device_id;                  /* in its pointer */
} cupy_layout;

const struct known_type *known_type_of(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    for (int k = 0; k < known_count; ++k)
        if (known_types[k].type == type)
            return &known_types[k];
    if (recognize == NULL)
        return NULL;
    PyObject *recognized = PyObject_CallFunctionObjArgs(recognize, (PyObject *)type, value, NULL);
    int is_known = recognized == Py_True;
    Py_XDECREF(recognized);
    if (recognized == NULL)
        PyErr_Clear();
    return is_known && known_types[known_count - 1].type == type ? &known_types[known_count - 1] : NULL;
}

static int remember_type(PyObject *type, enum library library, enum dtype dtype)
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
    if (!is_native || fields->number < 0 || fields->number >= NUMPY_NUMBERS)
        return NO_DTYPE;
    return numpy_dtypes[fields->number];
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

/* ---- PyTorch ---- */

static enum dtype dtype_of_dlpack(const struct dlpack_tensor *tensor)
{
    enum { MOST_BITS = 128, CODES = DLPACK_BOOL + 1, KNOWN = 1 /* added, so that 0 is none */ };
    static const unsigned char dtypes[CODES][MOST_BITS + 1] = {
        [DLPACK_BOOL] = {[8] = BOOL + KNOWN},
        [DLPACK_INT] = {[8] = INT8 + KNOWN, [16] = INT16 + KNOWN, [32] = INT32 + KNOWN, [64] = INT64 + KNOWN},
        [DLPACK_UINT] = {[8] = UINT8 + KNOWN, [16] = UINT16 + KNOWN, [32] = UINT32 + KNOWN, [64] = UINT64 + KNOWN},
        [DLPACK_BFLOAT] = {[16] = BFLOAT16 + KNOWN},
        [DLPACK_FLOAT] = {[16] = FLOAT16 + KNOWN, [32] = FLOAT32 + KNOWN, [64] = FLOAT64 + KNOWN},
        [DLPACK_COMPLEX] = {[64] = COMPLEX64 + KNOWN, [128] = COMPLEX128 + KNOWN},
    };
    if (tensor->lanes != 1 || tensor->code >= CODES || tensor->bits > MOST_BITS)
        return NO_DTYPE;
    return (enum dtype)(dtypes[tensor->code][tensor->bits] - KNOWN);
}

/* Read the size, and whether elements lie side by side in the order of the axes. */
static void read_shape(const struct dlpack_tensor *tensor, struct array_view *seen)
{
    int64_t size = 1;
    int is_contiguous = 1;
    for (int k = tensor->ndim - 1; k >= 0; --k) {
        int64_t length = tensor->shape[k];
        if (length != 1 && tensor->strides != NULL && tensor->strides[k] != size)
            is_contiguous = 0;
        size *= length;
    }
    seen->size = (size_t)size;
    seen->contiguous = is_contiguous || size == 0;
}

static int is_false(PyObject *answer)
{
    Py_XDECREF(answer);
    if (answer == NULL)
        PyErr_Clear();
    return answer == Py_False;
}

/* Whether a tensor may want a gradient: without a record of automatic differentiation it does not. */
static int may_have_gradient(PyObject *tensor)
{
    if (torch.autograd == 0)
        return 1;
    const char *implementation = *(const char **)((const char *)tensor + torch.implementation);
    return *(void *const *)(implementation + torch.autograd) != NULL;
}

/* Whether a tensor's values are its bytes and no gradient is asked for: DLPack's view tells neither.
 *
 * Each question costs as much as the view, so it is asked only where the answer can be yes. Gradients are
 * of floating point. Negated views are imaginary parts of conjugated arrays; their strides are even, and
 * so are those of views of them: two elements that lie side by side are of no such view, unless
 * as_strided made it. */
static int is_plain_tensor(PyObject *tensor, const struct array_view *seen)
{
    int is_complex = seen->dtype == COMPLEX64 || seen->dtype == COMPLEX128;
    int is_real = seen->dtype >= FLOAT16 && seen->dtype <= FLOAT64;
    int may_want_gradients = (is_complex || is_real) && may_have_gradient(tensor);
    int may_be_negated = seen->size < 2 || !seen->contiguous;
    PyObject *type = (PyObject *)Py_TYPE(tensor);
    return (!may_want_gradients || is_false(torch.get_requires_grad(torch.requires_grad, tensor, type))) &&
           (!may_be_negated || is_false(torch.is_neg(tensor, NULL))) &&
           (!is_complex || is_false(torch.is_conj(tensor, NULL)));
}

static int view_torch(PyObject *object, struct array_view *seen)
{
    struct dlpack_tensor tensor;
    if (torch.exchange->view(object, &tensor) != 0) {
        PyErr_Clear();
        return 0;
    }
    seen->device_type = tensor.device_type;
    seen->device = tensor.device;
    seen->dtype = dtype_of_dlpack(&tensor);
    seen->writable = 1;
    seen->address = (uintptr_t)tensor.data + tensor.byte_offset;
    read_shape(&tensor, seen);
    int has_memory = tensor.data != NULL || seen->size == 0;
    return has_memory && is_plain_tensor(object, seen);
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
static int is_numpy_dtype(PyObject *object)
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

static int view_cupy_attributes(PyObject *object, struct array_view *seen)
{
    unsigned long long address, device, contiguous;
    PyObject *memory = PyObject_GetAttr(object, cupy.data);
    if (memory == NULL) {
        PyErr_Clear();
        return 0;
    }
    int is_placed = read_number(memory, cupy.ptr, &address) && read_number(memory, cupy.device_id, &device);
    Py_DECREF(memory);
    if (!is_placed || !read_number(object, cupy.c_contiguous, &contiguous))
        return 0;
    seen->device = (int)device;
    seen->dtype = dtype_of_cupy(object);
    seen->contiguous = contiguous != 0;
    seen->address = (uintptr_t)address;
    return 1;
}

static int has_known_layout(PyObject *array)
{
    return (PyObject *)Py_TYPE(array) == cupy_layout.array_class;
}

static const void *field(PyObject *object, Py_ssize_t offset)
{
    return (const char *)object + offset;
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

int library_stream(enum library library, int device, unsigned long long *stream)
{
    if (library == CUPY)
        return find_cupy_stream(device, stream);
    void *handle = NULL;
    if (library != TORCH || torch.exchange->current_stream(CUDA, device, &handle) != 0) {
        PyErr_Clear();
        return 0;
    }
    *stream = (unsigned long long)(uintptr_t)handle;
    return 1;
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

/* array_shape(array) -> tuple, as this file reads it */
static PyObject *array_shape(PyObject *module, PyObject *object)
{
    const struct numpy_array *array = (const struct numpy_array *)object;
    PyObject *shape = PyTuple_New(array->ndim);
    for (int k = 0; shape != NULL && k < array->ndim; ++k)
        if (PyTuple_SetItem(shape, k, PyLong_FromSsize_t(array->shape[k])) < 0)
            Py_CLEAR(shape);
    return shape;
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

static PyCFunction method_without_arguments(PyObject *object, const char *name)
{
    PyObject *method = PyObject_GetAttrString(object, name);
    PyCFunction function = NULL;
    if (method != NULL && PyCFunction_Check(method) && PyCFunction_GetFlags(method) == METH_NOARGS)
        function = PyCFunction_GetFunction(method);
    Py_XDECREF(method);
    PyErr_Clear();
    return function;
}

static const struct dlpack_exchange *exchange_of(PyObject *type)
{
    PyObject *capsule = PyObject_GetAttrString(type, DLPACK_EXCHANGE_ATTRIBUTE);
    const struct dlpack_exchange *exchange = NULL;
    if (capsule != NULL && PyCapsule_IsValid(capsule, DLPACK_EXCHANGE_CAPSULE))
        exchange = PyCapsule_GetPointer(capsule, DLPACK_EXCHANGE_CAPSULE);
    Py_XDECREF(capsule);
    PyErr_Clear();
    int is_ours = exchange != NULL && exchange->major == 1 && exchange->minor >= 3 && exchange->view != NULL &&
                  exchange->current_stream != NULL;
    return is_ours ? exchange : NULL;
}

/* know_torch(class, a tensor of it) -> whether it can be looked at from C */
static PyObject *know_torch(PyObject *module, PyObject *arguments)
{
    PyObject *type, *tensor;
    if (!PyArg_ParseTuple(arguments, "OO", &type, &tensor))
        return NULL;
    PyObject *requires_grad = PyObject_GetAttrString(type, "requires_grad");
    if (requires_grad == NULL) {
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    set_reference(&torch.requires_grad, requires_grad);
    Py_DECREF(requires_grad);
    torch.get_requires_grad = (descrgetfunc)PyType_GetSlot(Py_TYPE(requires_grad), Py_tp_descr_get);
    torch.is_neg = method_without_arguments(tensor, "is_neg");
    torch.is_conj = method_without_arguments(tensor, "is_conj");
    torch.exchange = exchange_of(type);
    int is_complete = torch.get_requires_grad && torch.is_neg && torch.is_conj && torch.exchange;
    return PyBool_FromLong(is_complete && remember_type(type, TORCH, NO_DTYPE));
}

static uintptr_t word_at(const void *object, Py_ssize_t offset)
{
    uintptr_t word;
    memcpy(&word, (const char *)object + offset, sizeof word);
    return word;
}

/* Whether a word is null in the implementation of every tensor of a list, or (`wanted`) in that of none. */
static int all_words(PyObject *addresses, Py_ssize_t offset, int wanted)
{
    for (Py_ssize_t k = 0; k < PyList_Size(addresses); ++k) {
        const void *implementation = PyLong_AsVoidPtr(PyList_GetItem(addresses, k));
        if ((word_at(implementation, offset) != 0) != wanted)
            return 0;
    }
    return 1;
}

/* learn_autograd(tensor, its size as an object, addresses of the implementations of tensors that want no
 * gradient, of others that want one): find where a tensor's record of automatic differentiation is, which
 * PyTorch has a function for that takes longer than all the rest. Nothing is learned unless just one place
 * agrees with all tensors. */
static PyObject *learn_autograd(PyObject *module, PyObject *arguments)
{
    enum { FIRST = 16, SMALLEST_IMPLEMENTATION = 64 };
    PyObject *tensor, *plain, *others;
    Py_ssize_t object_size;
    if (!PyArg_ParseTuple(arguments, "OnO!O!", &tensor, &object_size, &PyList_Type, &plain, &PyList_Type, &others))
        return NULL;
    uintptr_t address = (uintptr_t)PyLong_AsVoidPtr(PyList_GetItem(plain, 0));
    Py_ssize_t pointers = 0, records = 0;
    for (Py_ssize_t offset = FIRST; offset + (Py_ssize_t)sizeof address <= object_size; offset += sizeof address)
        if (word_at(tensor, offset) == address) {
            torch.implementation = offset;
            ++pointers;
        }
    for (Py_ssize_t offset = sizeof address; offset < SMALLEST_IMPLEMENTATION; offset += sizeof address)
        if (all_words(plain, offset, 0) && all_words(others, offset, 1)) {
            torch.autograd = offset;
            ++records;
        }
    if (PyErr_Occurred() || pointers != 1 || records != 1) {
        PyErr_Clear();
        torch.autograd = 0;
    }
    return PyBool_FromLong(torch.autograd != 0);
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
                 {&cupy.dtype, "dtype"}, {&cupy.size, "size"}, {&cupy.c_contiguous, "_c_contiguous"}};
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
    if (!PyArg_ParseTuple(layout, "OOnnnnnn", &array_class, &pointer_class, &cupy_layout.data, &cupy_layout.dtype,
                          &cupy_layout.size, &cupy_layout.c_contiguous, &cupy_layout.ptr, &cupy_layout.device_id))
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
    {"array_shape", array_shape, METH_O, "Return the shape of a NumPy array."},
    {"dtype_fields", dtype_fields, METH_O, "Return number and byte order of a NumPy dtype."},
    {"scalar_bytes", scalar_bytes, METH_VARARGS, "Return the bytes of a NumPy scalar."},
    {"know_numpy", know_numpy, METH_VARARGS, "Take NumPy's arrays from now on."},
    {"know_scalar", know_scalar, METH_VARARGS, "Take a class of NumPy scalars from now on."},
    {"know_torch", know_torch, METH_VARARGS, "Take a class of PyTorch's tensors from now on."},
    {"learn_autograd", learn_autograd, METH_VARARGS, "Find where tensors say that they may want a gradient."},
    {"know_cupy", know_cupy, METH_VARARGS, "Take CuPy's arrays from now on."},
    {"know_cupy_layout", know_cupy_layout, METH_O, "Read the fields of CuPy's arrays at these places."},
    {"know_cupy_stream", know_cupy_stream, METH_O, "Ask this function of CuPy's for the stream, or the public one."},
    {"cupy_stream", cupy_stream, METH_O, "Return the handle of CuPy's current stream on a device."},
    {NULL, NULL, 0, NULL},
};
