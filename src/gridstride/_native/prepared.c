/* PreparedLaunch: one launch with its argument bytes, made again at every call. */
#include "native.h"

struct prepared_launch {
    PyObject_HEAD
    gridstride_launch_routine routine; /* null: always `run` */
    void *context;
    struct gridstride_configuration configuration;
    unsigned long long stream;
    PyObject *packed, *function, *run;
};

static int prepared_init(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    struct prepared_launch *self = (struct prepared_launch *)object;
    struct gridstride_configuration *to = &self->configuration;
    PyObject *run, *record, *packed, *function;
    unsigned long long routine, context;
    if (!PyArg_ParseTuple(arguments, "OO:PreparedLaunch", &run, &record))
        return -1;
    set_reference(&self->run, run);
    if (record == Py_None)
        return 0;
    if (!PyArg_ParseTuple(record, "KKO(III)(III)IIO!K", &routine, &context, &function, &to->grid[0], &to->grid[1],
                          &to->grid[2], &to->block[0], &to->block[1], &to->block[2], &to->shared_mem, &to->flags,
                          &PyBytes_Type, &packed, &self->stream))
        return -1;
    set_reference(&self->packed, packed);
    set_reference(&self->function, function);
    self->routine = (gridstride_launch_routine)(uintptr_t)routine;
    self->context = (void *)(uintptr_t)context;
    return 0;
}

static PyObject *run_in_pipeline(const struct prepared_launch *self)
{
    ++misses;
    PyObject *result = PyObject_CallNoArgs(self->run);
    if (result == NULL)
        return NULL;
    Py_DECREF(result);
    Py_RETURN_NONE;
}

static PyObject *prepared_call(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    const struct prepared_launch *self = (struct prepared_launch *)object;
    if (PyTuple_Size(arguments) != 0 || (keywords != NULL && PyDict_Size(keywords) != 0))
        return PyErr_Format(PyExc_TypeError, "a prepared launch takes no arguments");
    if (self->run == NULL)
        return PyErr_Format(PyExc_TypeError, "a prepared launch is made by kernel.prepare(...)");
    if (self->routine == NULL || watchers > 0)
        return run_in_pipeline(self);
    int code = launch_entry(self->routine, self->context, &self->configuration, PyBytes_AsString(self->packed),
                            (size_t)PyBytes_Size(self->packed), self->stream);
    if (code == -1)
        return run_in_pipeline(self);
    if (code != 0)
        return raise_failure(self->function, code);
    ++hits;
    Py_RETURN_NONE;
}

static int prepared_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct prepared_launch *self = (struct prepared_launch *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->packed);
    Py_VISIT(self->function);
    Py_VISIT(self->run);
    return 0;
}

static int prepared_clear(PyObject *object)
{
    struct prepared_launch *self = (struct prepared_launch *)object;
    self->routine = NULL;
    Py_CLEAR(self->packed);
    Py_CLEAR(self->function);
    Py_CLEAR(self->run);
    return 0;
}

static void prepared_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    prepared_clear(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyType_Slot prepared_slots[] = {
    {Py_tp_doc, "Make one launch again at every call, with the arguments and the stream it was prepared with.\n\n"
                "Made by ``kernel.prepare(...)``; it keeps the arrays alive."},
    {Py_tp_init, prepared_init},
    {Py_tp_call, prepared_call},
    {Py_tp_traverse, prepared_traverse},
    {Py_tp_clear, prepared_clear},
    {Py_tp_dealloc, prepared_dealloc},
    {0, NULL},
};

PyType_Spec prepared_launch_spec = {
    .name = "gridstride._native._launcher.PreparedLaunch",
    .basicsize = sizeof(struct prepared_launch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = prepared_slots,
};
