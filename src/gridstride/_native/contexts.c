/* Contexts: which device is current, by the driver's contexts. Asking for them waits for nothing: the GIL is kept. */
#include "native.h"

enum { MOST_DEVICES = 64 };

typedef int (*get_current_context)(void **context);
typedef int (*set_current_context)(void *context);

struct contexts {
    PyObject_HEAD
    get_current_context get;
    set_current_context set;
    PyObject *find, *enter; /* what to do where a context or a device is not known */
    void *of_device[MOST_DEVICES];
    long count;
};

/* Contexts(get, set, find, enter) */
static int contexts_init(PyObject *object, PyObject *arguments, PyObject *keywords)
{
    struct contexts *self = (struct contexts *)object;
    unsigned long long get, set;
    PyObject *find, *enter;
    if (!PyArg_ParseTuple(arguments, "KKOO", &get, &set, &find, &enter))
        return -1;
    self->get = (get_current_context)(uintptr_t)get;
    self->set = (set_current_context)(uintptr_t)set;
    set_reference(&self->find, find);
    set_reference(&self->enter, enter);
    return 0;
}

/* know(device, context) */
static PyObject *contexts_know(PyObject *object, PyObject *arguments)
{
    struct contexts *self = (struct contexts *)object;
    long device;
    unsigned long long context;
    if (!PyArg_ParseTuple(arguments, "lK", &device, &context))
        return NULL;
    if (device >= 0 && device < MOST_DEVICES) {
        self->of_device[device] = (void *)(uintptr_t)context;
        self->count = device < self->count ? self->count : device + 1;
    }
    Py_RETURN_NONE;
}

static PyObject *contexts_current_device(PyObject *object, PyObject *unused)
{
    const struct contexts *self = (struct contexts *)object;
    void *context = NULL;
    if (self->get(&context) == 0 && context != NULL)
        for (long device = 0; device < self->count; ++device)
            if (self->of_device[device] == context)
                return PyLong_FromLong(device);
    return PyObject_CallNoArgs(self->find);
}

static PyObject *contexts_set_device(PyObject *object, PyObject *number)
{
    const struct contexts *self = (struct contexts *)object;
    int overflow;
    long device = PyLong_CheckExact(number) ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
    void *context = NULL, *wanted = device >= 0 && device < self->count ? self->of_device[device] : NULL;
    if (wanted == NULL)
        return PyObject_CallFunctionObjArgs(self->enter, number, NULL);
    if ((self->get(&context) == 0 && context == wanted) || self->set(wanted) == 0)
        Py_RETURN_NONE;
    return PyObject_CallFunctionObjArgs(self->enter, number, NULL); /* which fails as well, and says how */
}

int is_method_of_contexts(PyObject *callable)
{
    PyCFunction function = Py_TYPE(callable) == &PyCFunction_Type ? PyCFunction_GetFunction(callable) : NULL;
    return function == contexts_current_device || function == contexts_set_device;
}

static int contexts_traverse(PyObject *object, visitproc visit, void *arg)
{
    const struct contexts *self = (struct contexts *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->find);
    Py_VISIT(self->enter);
    return 0;
}

static int contexts_clear(PyObject *object)
{
    Py_CLEAR(((struct contexts *)object)->find);
    Py_CLEAR(((struct contexts *)object)->enter);
    return 0;
}

static void contexts_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    contexts_clear(object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyMethodDef contexts_methods[] = {
    {"know", contexts_know, METH_VARARGS, "Remember the context of a device."},
    {"current_device", contexts_current_device, METH_NOARGS, "Return the calling thread's current device."},
    {"set_device", contexts_set_device, METH_O, "Make a device the calling thread's current one."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot contexts_slots[] = {
    {Py_tp_doc, "Contexts(get, set, find, enter): know devices by their contexts, which functions of a driver tell."},
    {Py_tp_init, contexts_init},
    {Py_tp_methods, contexts_methods},
    {Py_tp_traverse, contexts_traverse},
    {Py_tp_clear, contexts_clear},
    {Py_tp_dealloc, contexts_dealloc},
    {0, NULL},
};

PyType_Spec contexts_spec = {
    .name = "gridstride._native._launcher.Contexts",
    .basicsize = sizeof(struct contexts),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = contexts_slots,
};
