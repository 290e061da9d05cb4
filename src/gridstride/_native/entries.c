/* Entries: what a context manager has to put back, for each thread and each time it was entered. */
#include "objects.h"

#include <stdlib.h>

struct entry_of_thread {
    unsigned long thread;
    PyObject *value;
};

static PyTypeObject *entries_type;

struct entries {
    PyObject_HEAD
    struct entry_of_thread *items;
    Py_ssize_t count, room;
};

int push_entry(PyObject *object, PyObject *value)
{
    struct entries *self = (struct entries *)object;
    if (self->count == self->room) {
        Py_ssize_t room = 2 * self->room + 2;
        struct entry_of_thread *items = realloc(self->items, room * sizeof *items);
        if (items == NULL)
            return PyErr_NoMemory() != NULL;
        self->items = items;
        self->room = room;
    }
    self->items[self->count++] = (struct entry_of_thread){PyThread_get_thread_ident(), Py_NewRef(value)};
    return 1;
}

static Py_ssize_t place_of_last(const struct entries *self)
{
    unsigned long thread = PyThread_get_thread_ident();
    Py_ssize_t at = self->count - 1;
    while (at >= 0 && self->items[at].thread != thread)
        --at;
    return at;
}

PyObject *last_entry(PyObject *object)
{
    const struct entries *self = (struct entries *)object;
    Py_ssize_t at = place_of_last(self);
    return at < 0 ? NULL : self->items[at].value;
}

static PyObject *take_entry(struct entries *self)
{
    Py_ssize_t at = place_of_last(self);
    if (at < 0)
        return NULL;
    PyObject *value = self->items[at].value;
    --self->count;
    for (; at < self->count; ++at)
        self->items[at] = self->items[at + 1];
    return value;
}

void drop_entry(PyObject *object)
{
    Py_XDECREF(take_entry((struct entries *)object));
}

static PyObject *entries_push(PyObject *object, PyObject *value)
{
    if (!push_entry(object, value))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *entries_pop(PyObject *object, PyObject *unused)
{
    PyObject *value = take_entry((struct entries *)object);
    if (value == NULL)
        PyErr_SetString(PyExc_RuntimeError, "this thread is not inside a block of this object");
    return value;
}

static int entries_traverse(PyObject *object, visitproc visit, void *arg)
{
    const struct entries *self = (struct entries *)object;
    Py_VISIT(Py_TYPE(object));
    for (Py_ssize_t k = 0; k < self->count; ++k)
        Py_VISIT(self->items[k].value);
    return 0;
}

static int entries_clear(PyObject *object)
{
    struct entries *self = (struct entries *)object;
    while (self->count > 0)
        Py_DECREF(self->items[--self->count].value);
    return 0;
}

static void entries_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    entries_clear(object);
    free(((struct entries *)object)->items);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyMethodDef entries_methods[] = {
    {"push", entries_push, METH_O, "Remember a value at entry."},
    {"pop", entries_pop, METH_NOARGS, "Return the value of the calling thread's last entry and forget it."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot entries_slots[] = {
    {Py_tp_doc, "Keep what a context manager has to put back, for each thread and each time it was entered."},
    {Py_tp_methods, entries_methods},
    {Py_tp_traverse, entries_traverse},
    {Py_tp_clear, entries_clear},
    {Py_tp_dealloc, entries_dealloc},
    {0, NULL},
};

static PyType_Spec entries_spec = {
    .name = "gridstride._native._launcher.Entries",
    .basicsize = sizeof(struct entries),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = entries_slots,
};

int is_entries(PyObject *object)
{
    return object != NULL && Py_IS_TYPE(object, entries_type);
}

int add_entries(PyObject *module)
{
    entries_type = (PyTypeObject *)PyType_FromSpec(&entries_spec);
    return entries_type != NULL && PyModule_AddType(module, entries_type) == 0;
}
