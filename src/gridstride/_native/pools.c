/* Shortcuts of the memory pools: hand out again what came back a moment ago, and memory in stream order.
 *
 * The books of a pool are in Python. Between two looks at them, blocks lie in the list `returned`; taking one out
 * changes no books, because it counts as handed out until the list is taken up. */
#include "objects.h"

enum { UNIT = 512, MOST_LOOKED_AT = 16 };

long hooks_entered;
static PyTypeObject *pooled_memory, *memory_pointer, *async_memory;
static PyObject *streams_of_memory; /* by address: in whose order memory goes back */
static struct target_method allocate_method, of_pool_method, free_method;
static PyObject *after_failure_name, *cupy_name;

/* Places in `pool_shortcuts`. */
enum { MALLOC, RETURN, ASYNC_MALLOC, ASYNC_RETURN };

/* Return the size of a request; -1 where the definition must look at it. */
static long long size_of_request(PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int overflow;
    if (!shortcuts_are_on || hooks_entered > 0 || count != 1 || names != NULL || !PyLong_CheckExact(arguments[0]))
        return -1;
    long long size = PyLong_AsLongLongAndOverflow(arguments[0], &overflow);
    return overflow || size <= 0 || size > (1LL << 62) ? -1 : size;
}

/* Return a pointer to all of the memory that was asked for; takes over the reference to `memory`. */
static PyObject *point_to(PyObject *memory, PyObject *size)
{
    PyObject *object = memory == NULL ? NULL : PyType_GenericAlloc(memory_pointer, 0);
    if (object == NULL) {
        Py_XDECREF(memory);
        return NULL;
    }
    struct pointer_record *pointer = (struct pointer_record *)object;
    pointer->mem = memory;
    pointer->owner = Py_NewRef(Py_None);
    pointer->ptr = Py_NewRef(((struct memory_record *)memory)->ptr);
    pointer->size = Py_NewRef(size);
    return object;
}

/* ---- the pool ---- */

/* Return the handle of the stream in whose order memory is handed out (a new reference), CuPy's where it is loaded. */
static PyObject *stream_of_request(const struct device_pool_record *pool)
{
    if (pool->has_streams != Py_True)
        return Py_NewRef(zero);
    PyObject *cupy = PyDict_GetItemWithError(PyImport_GetModuleDict(), cupy_name);
    if (cupy != NULL) {
        unsigned long long handle;
        int is_found = loaded_cupy_stream(cupy, (int)PyLong_AsLong(pool->device), &handle);
        return is_found ? PyLong_FromUnsignedLongLong(handle) : NULL;
    }
    const struct stream_record *stream = (const struct stream_record *)entered_stream(pool->target, pool->device);
    if (stream == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(zero);
    return is_plain_stream(stream) ? Py_NewRef(stream->handle) : NULL;
}

static int fits(PyObject *object, long long rounded, PyObject *arena)
{
    const struct block_record *block = (const struct block_record *)object;
    return is_record(object, &block_type) && block->size != NULL && block->arena == arena &&
           PyLong_AsLongLong(block->size) == rounded;
}

/* Take the last block that fits out of those that came back (a new reference); null without an exception for none. */
static PyObject *take_returned(const struct device_pool_record *pool, long long rounded, PyObject *arena)
{
    Py_ssize_t count = PyList_Size(pool->returned);
    Py_ssize_t end = count > MOST_LOOKED_AT ? count - MOST_LOOKED_AT : 0;
    for (Py_ssize_t at = count - 1; at >= end; --at) {
        PyObject *block = PyList_GetItem(pool->returned, at);
        if (!fits(block, rounded, arena))
            continue;
        Py_INCREF(block);
        if (PyList_SetSlice(pool->returned, at, at + 1, NULL) == 0)
            return block;
        Py_DECREF(block);
        return NULL;
    }
    return NULL;
}

/* Return the memory of a block, which it takes over. */
static PyObject *memory_of_block(PyObject *pool, PyObject *block)
{
    PyObject *object = PyType_GenericAlloc(pooled_memory, 0);
    if (object == NULL) {
        Py_DECREF(block);
        return NULL;
    }
    const struct device_pool_record *of = (const struct device_pool_record *)pool;
    struct memory_record *memory = (struct memory_record *)object;
    memory->block = block;
    memory->ptr = Py_NewRef(((struct block_record *)block)->ptr);
    memory->size = Py_NewRef(((struct block_record *)block)->size);
    memory->device_id = Py_NewRef(of->device);
    memory->target = Py_NewRef(of->target);
    memory->pool = Py_NewRef(pool);
    return object;
}

/* Return memory that came back a moment ago; null without an exception where there is none. */
static PyObject *memory_again(PyObject *pool, long long size)
{
    const struct device_pool_record *of = (const struct device_pool_record *)pool;
    long long rounded = (size + UNIT - 1) & -UNIT;
    if (PyList_Size(of->returned) == 0)
        return NULL;
    PyObject *stream = stream_of_request(of);
    PyObject *arena = stream == NULL ? NULL : PyDict_GetItemWithError(of->arenas, stream);
    PyObject *block = arena == NULL ? NULL : take_returned(of, rounded, arena);
    Py_XDECREF(stream);
    return block == NULL ? NULL : memory_of_block(pool, block);
}

/* malloc(size) of a pool */
static PyObject *pool_malloc(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    const struct pool_record *self = (struct pool_record *)object;
    long long size = self->target == NULL || self->devices == NULL ? -1 : size_of_request(arguments, count, names);
    if (size > 0) {
        PyObject *device = current_device(self->target);
        PyObject *pool = device == NULL ? NULL : PyDict_GetItemWithError(self->devices, device);
        PyObject *memory = NULL;
        if (pool != NULL) {
            Py_INCREF(pool);
            memory = memory_again(pool, size);
            Py_DECREF(pool);
        }
        Py_XDECREF(device);
        if (memory != NULL)
            return point_to(memory, arguments[0]);
        if (PyErr_Occurred())
            return NULL;
    }
    return call_definition(&pool_shortcuts[MALLOC], object, arguments, count, names);
}

/* __del__() of memory of a pool */
static PyObject *pooled_del(PyObject *object, PyObject *unused)
{
    struct memory_record *self = (struct memory_record *)object;
    PyObject *block = self->block;
    if (block == NULL || block == Py_None)
        Py_RETURN_NONE;
    if (!shortcuts_are_on || hooks_entered > 0 || self->pool == NULL || !is_record(self->pool, &device_pool_type))
        return call_definition(&pool_shortcuts[RETURN], object, NULL, 0, NULL);
    self->block = Py_NewRef(Py_None);
    int failed = PyList_Append(((struct device_pool_record *)self->pool)->returned, block);
    Py_DECREF(block);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- the asynchronous pool ---- */

/* Return memory at an address, which it takes over, and remember the stream in whose order it goes back. */
static PyObject *async_memory_at(PyObject *pool, PyObject *device, PyObject *address, PyObject *size, PyObject *stream)
{
    PyObject *object = PyType_GenericAlloc(async_memory, 0);
    if (object == NULL || PyDict_SetItem(streams_of_memory, address, stream) != 0) {
        Py_XDECREF(object);
        Py_DECREF(address);
        return NULL;
    }
    struct memory_record *memory = (struct memory_record *)object;
    memory->ptr = address;
    memory->size = Py_NewRef(size);
    memory->device_id = Py_NewRef(device);
    memory->target = Py_NewRef(((struct async_pool_record *)pool)->target);
    memory->is_held = Py_NewRef(Py_True);
    memory->pool = Py_NewRef(pool);
    memory->stream = Py_NewRef(((struct stream_record *)stream)->handle);
    return object;
}

/* Let the pool do what it does where the target refused: raise, or make room and try again. */
static PyObject *recover(PyObject *pool, PyObject *device, PyObject *handle, PyObject *size)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(value, traceback);
    PyObject *memory = PyObject_CallMethodObjArgs(pool, after_failure_name, value, size, device, handle, NULL);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return memory;
}

static PyObject *allocate(PyObject *pool, PyObject *device, PyObject *handle, PyObject *size)
{
    const struct async_pool_record *self = (struct async_pool_record *)pool;
    PyObject *stream = stream_of_thread(self->target, device);
    if (stream == NULL || !is_record(stream, &stream_type) || !is_plain_stream((struct stream_record *)stream))
        return NULL;
    Py_INCREF(stream);
    PyObject *order = ((struct stream_record *)stream)->handle;
    PyObject *const for_device[] = {size, order}, *const for_pool[] = {size, handle, order};
    PyObject *address = is_same_number(handle, zero) ? call_target(&allocate_method, self->target, for_device, 2)
                                                     : call_target(&of_pool_method, self->target, for_pool, 3);
    PyObject *memory = address == NULL ? recover(pool, device, handle, size)
                                       : async_memory_at(pool, device, address, size, stream);
    Py_DECREF(stream);
    return memory;
}

/* malloc(size) of an asynchronous pool */
static PyObject *async_malloc(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    const struct async_pool_record *self = (struct async_pool_record *)object;
    int is_plain = self->target != NULL && self->handles != NULL && self->limits != NULL && watchers == 0 &&
                   size_of_request(arguments, count, names) > 0 && PyDict_Size(self->limits) == 0;
    if (is_plain) {
        PyObject *device = current_device(self->target);
        PyObject *handle = device == NULL ? NULL : PyDict_GetItemWithError(self->handles, device);
        PyObject *memory = handle == NULL ? NULL : allocate(object, device, handle, arguments[0]);
        Py_XDECREF(device);
        if (memory != NULL)
            return point_to(memory, arguments[0]);
        if (PyErr_Occurred())
            return NULL;
    }
    return call_definition(&pool_shortcuts[ASYNC_MALLOC], object, arguments, count, names);
}

static int is_on_current_device(const struct memory_record *memory)
{
    PyObject *current = current_device(memory->target);
    int is_there = current != NULL && is_same_number(current, memory->device_id);
    Py_XDECREF(current);
    PyErr_Clear();
    return is_there;
}

/* __del__() of memory of an asynchronous pool */
static PyObject *async_del(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    struct memory_record *self = (struct memory_record *)object;
    if (self->is_held != Py_True || is_ending())
        Py_RETURN_NONE;
    PyObject *kept = self->stream == NULL || self->ptr == NULL ? NULL : PyDict_GetItemWithError(streams_of_memory, self->ptr);
    if (!shortcuts_are_on || hooks_entered > 0 || kept == NULL || !is_on_current_device(self))
        return call_definition(&pool_shortcuts[ASYNC_RETURN], object, arguments, count, NULL);
    set_reference(&self->is_held, Py_False);
    Py_INCREF(kept); /* until the memory has gone back */
    PyObject *done = NULL;
    PyObject *const what[] = {self->ptr, self->stream};
    if (PyDict_DelItem(streams_of_memory, self->ptr) == 0)
        done = call_target(&free_method, self->target, what, 2);
    Py_DECREF(kept);
    return done;
}

/* ---- what Python sees ---- */

struct shortcut pool_shortcuts[] = {
    [MALLOC] = {"MemoryPool.malloc", &pool_type, {"malloc", FUNCTION(pool_malloc), WITH_KEYWORDS, NULL}, NULL},
    [RETURN] = {"PooledMemory.__del__", &memory_type, {"__del__", pooled_del, METH_NOARGS, NULL}, NULL},
    [ASYNC_MALLOC] = {"MemoryAsyncPool.malloc", &async_pool_type,
                      {"malloc", FUNCTION(async_malloc), WITH_KEYWORDS, NULL}, NULL},
    [ASYNC_RETURN] = {"AsyncPoolMemory.__del__", &memory_type,
                      {"__del__", FUNCTION(async_del), METH_FASTCALL, NULL}, NULL},
    {NULL},
};

/* know_pooled_memory(memory, pointer): the classes of what a pool hands out */
static PyObject *know_pooled_memory(PyObject *module, PyObject *arguments)
{
    PyObject *memory, *pointer;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyType_Type, &memory, &PyType_Type, &pointer))
        return NULL;
    set_reference((PyObject **)&pooled_memory, memory);
    set_reference((PyObject **)&memory_pointer, pointer);
    Py_RETURN_NONE;
}

/* know_async_memory(memory, streams): the class of what an asynchronous pool hands out, and the streams by address */
static PyObject *know_async_memory(PyObject *module, PyObject *arguments)
{
    PyObject *memory, *streams;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyType_Type, &memory, &PyDict_Type, &streams))
        return NULL;
    set_reference((PyObject **)&async_memory, memory);
    set_reference(&streams_of_memory, streams);
    Py_RETURN_NONE;
}

PyMethodDef pool_functions[] = {
    {"know_pooled_memory", know_pooled_memory, METH_VARARGS, "Set the classes of what a pool hands out."},
    {"know_async_memory", know_async_memory, METH_VARARGS, "Set the class of what an asynchronous pool hands out."},
    {NULL, NULL, 0, NULL},
};

const struct name pool_names[] = {
    {&after_failure_name, "_after_failure"},
    {&cupy_name, "cupy"},
    {&allocate_method.name, "allocate_async"},
    {&of_pool_method.name, "allocate_from_pool"},
    {&free_method.name, "free_async"},
    {NULL, NULL},
};
