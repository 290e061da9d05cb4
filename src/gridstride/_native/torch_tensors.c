/* Look at PyTorch's tensors: at their fields where these were found, else through its functions.
 *
 * What PyTorch told of one tensor holds for every tensor whose `kind` and `keys` are the same bytes: they
 * hold dtype, device and contiguity, and whether values are the bytes of a strided tensor. Address, size and
 * the wish for a gradient are read from each tensor. `torch_shortcuts.py` finds the fields. */
#include "dlpack_abi.h"
#include "native.h"

#include <string.h>

enum { MOST_KINDS = 16 };

struct tensor_kind {
    uint64_t kind, keys;
    int device_type, device, contiguous;
    enum dtype dtype;
};

/* Where fields are, as in torch_shortcuts.py; with `implementation` 0 this is not known. */
static struct {
    Py_ssize_t implementation;                                      /* in the Python object */
    Py_ssize_t storage, record, first, size, kind, keys, place;     /* in the tensor */
    Py_ssize_t data, guarded;                                       /* in its storage */
    Py_ssize_t axes, lengths; /* in the tensor: how many, and the lengths of few before their steps; 0: not known */
} layout;

enum { FEW_AXES = 5 };

static struct tensor_kind kinds[MOST_KINDS];
static int kind_count, oldest_kind;

/* What PyTorch's function for the current stream returns in two registers: c10::Stream. */
struct current_stream {
    int8_t device_type, device;
    int64_t id; /* 0: the default stream, whose handle is 0 */
};
typedef struct current_stream (*current_stream_function)(uintptr_t device, uintptr_t same_device);

static struct {
    const struct dlpack_exchange *exchange;
    PyObject *requires_grad; /* the descriptor */
    descrgetfunc get_requires_grad;
    PyCFunction is_neg, is_conj;
    PyObject *learn_stream; /* torch_shortcuts.learn_stream; null once it was called */
    current_stream_function current_stream; /* null: not known */
} torch;

static const char *pointer_at(const void *object, Py_ssize_t offset)
{
    const char *pointer;
    memcpy(&pointer, (const char *)object + offset, sizeof pointer);
    return pointer;
}

static uint64_t word_at(const void *object, Py_ssize_t offset)
{
    uint64_t word;
    memcpy(&word, (const char *)object + offset, sizeof word);
    return word;
}

/* ---- through PyTorch's functions ---- */

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

static int is_complex(enum dtype dtype)
{
    return dtype == COMPLEX64 || dtype == COMPLEX128;
}

/* Gradients are of floating point. */
static int can_want_gradient(enum dtype dtype)
{
    return is_complex(dtype) || (dtype >= FLOAT16 && dtype <= FLOAT64);
}

static int wants_no_gradient(PyObject *tensor)
{
    return is_false(torch.get_requires_grad(torch.requires_grad, tensor, (PyObject *)Py_TYPE(tensor)));
}

/* Whether a tensor's values are its bytes and no gradient is asked for: DLPack's view tells neither. */
static int is_plain_tensor(PyObject *tensor, const struct array_view *seen)
{
    return (!can_want_gradient(seen->dtype) || wants_no_gradient(tensor)) && is_false(torch.is_neg(tensor, NULL)) &&
           (!is_complex(seen->dtype) || is_false(torch.is_conj(tensor, NULL)));
}

static int ask_torch(PyObject *object, struct array_view *seen)
{
    struct dlpack_tensor tensor;
    if (torch.exchange->view(object, &tensor) != 0) {
        PyErr_Clear();
        return 0;
    }
    seen->device_type = tensor.device_type;
    seen->device = tensor.device;
    seen->dtype = dtype_of_dlpack(&tensor);
    seen->address = (uintptr_t)tensor.data + tensor.byte_offset;
    read_shape(&tensor, seen);
    int has_memory = tensor.data != NULL || seen->size == 0;
    return has_memory && is_plain_tensor(object, seen);
}

/* ---- at its fields ---- */

static const struct tensor_kind *find_kind(uint64_t kind, uint64_t keys)
{
    for (int k = 0; k < kind_count; ++k)
        if (kinds[k].kind == kind && kinds[k].keys == keys)
            return &kinds[k];
    return NULL;
}

/* Read address and size; 0 where PyTorch must be asked, as it must before memory that is shared until it is
 * written to is written to. */
static int read_memory(const char *tensor, enum dtype dtype, struct array_view *seen)
{
    const char *storage = pointer_at(tensor, layout.storage);
    uint64_t size = word_at(tensor, layout.size);
    if (storage == NULL || size == 0 || storage[layout.guarded] != 0)
        return 0;
    uint64_t data = word_at(storage, layout.data);
    seen->address = (uintptr_t)(data + word_at(tensor, layout.first) * dtype_sizes[dtype]);
    seen->size = (size_t)size;
    return data != 0;
}

static int view_fields(PyObject *object, struct array_view *seen)
{
    if (layout.implementation == 0)
        return 0;
    const char *tensor = pointer_at(object, layout.implementation);
    const struct tensor_kind *known =
        tensor == NULL ? NULL : find_kind(word_at(tensor, layout.kind), word_at(tensor, layout.keys));
    if (known == NULL || !read_memory(tensor, known->dtype, seen))
        return 0;
    seen->device_type = known->device_type;
    seen->device = known->device;
    seen->dtype = known->dtype;
    seen->contiguous = known->contiguous;
    int has_record = pointer_at(tensor, layout.record) != NULL;
    return !has_record || !can_want_gradient(known->dtype) || wants_no_gradient(object);
}

/* Remember what PyTorch told of a tensor. The fields must say the same; otherwise they are not trusted again. */
static void learn_kind(PyObject *object, const struct array_view *told)
{
    const char *tensor = layout.implementation == 0 ? NULL : pointer_at(object, layout.implementation);
    struct array_view read;
    if (tensor == NULL || told->dtype == NO_DTYPE || !read_memory(tensor, told->dtype, &read))
        return;
    int is_same_device = told->device_type != CUDA || (signed char)tensor[layout.place + 1] == told->device;
    if (read.address != told->address || read.size != told->size || !is_same_device) {
        layout.implementation = 0;
        return;
    }
    int at = kind_count < MOST_KINDS ? kind_count++ : oldest_kind++ % MOST_KINDS;
    kinds[at] = (struct tensor_kind){word_at(tensor, layout.kind), word_at(tensor, layout.keys), told->device_type,
                                     told->device, told->contiguous, told->dtype};
}

int view_torch(PyObject *object, struct array_view *seen)
{
    seen->writable = 1;
    if (view_fields(object, seen))
        return 1;
    if (!ask_torch(object, seen))
        return 0;
    learn_kind(object, seen);
    return 1;
}

/* ---- axes ---- */

static int read_axis_fields(PyObject *object, struct array_axes *axes)
{
    const char *tensor = layout.implementation == 0 || layout.axes == 0 ? NULL : pointer_at(object, layout.implementation);
    if (tensor == NULL || word_at(tensor, layout.axes) > FEW_AXES)
        return 0;
    axes->count = (int)word_at(tensor, layout.axes);
    axes->lengths = (const Py_ssize_t *)(tensor + layout.lengths);
    axes->steps = axes->lengths + FEW_AXES;
    return 1;
}

int read_axes_of_torch(PyObject *object, struct array_axes *axes)
{
    struct dlpack_tensor tensor;
    if (read_axis_fields(object, axes))
        return 1;
    if (torch.exchange->view(object, &tensor) != 0) {
        PyErr_Clear();
        return 0;
    }
    axes->count = tensor.ndim;
    axes->lengths = (const Py_ssize_t *)tensor.shape;
    axes->steps = (const Py_ssize_t *)tensor.strides;
    return tensor.ndim == 0 || tensor.strides != NULL;
}

/* ---- stream ---- */

static void learn_stream(int device)
{
    PyObject *learn = torch.learn_stream;
    torch.learn_stream = NULL;
    PyObject *result = PyObject_CallFunction(learn, "i", device);
    Py_XDECREF(result);
    Py_DECREF(learn);
    PyErr_Clear();
}

int torch_stream(int device, unsigned long long *stream)
{
    if (torch.learn_stream != NULL)
        learn_stream(device);
    *stream = 0;
    if (torch.current_stream != NULL && torch.current_stream((uintptr_t)device, (uintptr_t)device).id == 0)
        return 1;
    void *handle = NULL;
    if (torch.exchange->current_stream(CUDA, device, &handle) != 0) {
        PyErr_Clear();
        return 0;
    }
    *stream = (unsigned long long)(uintptr_t)handle;
    return 1;
}

/* ---- functions for torch_shortcuts.py and recognition.py ---- */

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

/* know_torch(class, a tensor of it, torch_shortcuts.learn_stream) -> whether it can be looked at from C */
static PyObject *know_torch(PyObject *module, PyObject *arguments)
{
    PyObject *type, *tensor, *learn;
    if (!PyArg_ParseTuple(arguments, "OOO", &type, &tensor, &learn))
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
    if (torch.current_stream == NULL)
        set_reference(&torch.learn_stream, learn);
    int is_complete = torch.get_requires_grad && torch.is_neg && torch.is_conj && torch.exchange;
    return PyBool_FromLong(is_complete && remember_type(type, TORCH, NO_DTYPE));
}

/* know_torch_layout(a Layout of torch_shortcuts.py or None) */
static PyObject *know_torch_layout(PyObject *module, PyObject *found)
{
    layout.implementation = 0;
    kind_count = 0;
    if (found != Py_None &&
        !PyArg_ParseTuple(found, "nnnnnnnnnnnn", &layout.implementation, &layout.storage, &layout.record, &layout.first,
                          &layout.size, &layout.kind, &layout.keys, &layout.place, &layout.data, &layout.guarded,
                          &layout.axes, &layout.lengths))
        return NULL;
    Py_RETURN_NONE;
}

/* torch_stream_fields(address of PyTorch's function, device) -> (type of device, device, id), or None
 *
 * A trial that is safe also where the function returns its result in memory, whose address it would take as
 * its first argument: that is an address whose last byte is the device. */
static PyObject *torch_stream_fields(PyObject *module, PyObject *arguments)
{
    unsigned long long address;
    int device;
    if (!PyArg_ParseTuple(arguments, "Ki", &address, &device))
        return NULL;
#ifdef __x86_64__
    _Alignas(256) static char memory[512];
    current_stream_function function = (current_stream_function)(uintptr_t)address;
    struct current_stream found = function((uintptr_t)memory + (unsigned char)device, (uintptr_t)device);
    return Py_BuildValue("(iiL)", found.device_type, found.device, (long long)found.id);
#else
    Py_RETURN_NONE;
#endif
}

/* know_torch_stream(address of a function that passed the trial; 0: none) */
static PyObject *know_torch_stream(PyObject *module, PyObject *address)
{
    torch.current_stream = (current_stream_function)PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef torch_functions[] = {
    {"know_torch", know_torch, METH_VARARGS, "Take a class of PyTorch's tensors from now on."},
    {"know_torch_layout", know_torch_layout, METH_O, "Read the fields of PyTorch's tensors at these places."},
    {"know_torch_stream", know_torch_stream, METH_O, "Ask this function of PyTorch's for the stream."},
    {"torch_stream_fields", torch_stream_fields, METH_VARARGS, "Try a function for the stream."},
    {NULL, NULL, 0, NULL},
};
