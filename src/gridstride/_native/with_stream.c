/* `with stream`: make a stream current, for us and in the array libraries that are loaded. */
#include "objects.h"

/* Places in `with_stream_shortcuts`. */
enum { ENTER, EXIT };

/* ---- streams of array libraries ---- */

enum { MOST_LIBRARIES = 4 };

/* The libraries that follow, the modules they were when `switches` were made, and these by target. */
static struct {
    PyObject *names, *find, *switches;
    PyObject *modules[MOST_LIBRARIES];
} libraries;

/* follow_libraries(names, find): find(target) returns the switches of those that are loaded */
static PyObject *follow_libraries(PyObject *module, PyObject *arguments)
{
    PyObject *names, *find;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyTuple_Type, &names, &find))
        return NULL;
    if (PyTuple_Size(names) > MOST_LIBRARIES)
        return PyErr_Format(PyExc_ValueError, "at most %d libraries can be followed", MOST_LIBRARIES);
    set_reference(&libraries.names, names);
    set_reference(&libraries.find, find);
    Py_RETURN_NONE;
}

static int forget_switches_of_other_modules(void)
{
    PyObject *loaded = PyImport_GetModuleDict();
    int are_same = libraries.switches != NULL;
    for (Py_ssize_t k = 0; k < PyTuple_Size(libraries.names); ++k) {
        PyObject *library = PyDict_GetItemWithError(loaded, PyTuple_GetItem(libraries.names, k));
        if (library != libraries.modules[k]) {
            set_reference(&libraries.modules[k], library);
            are_same = 0;
        }
    }
    if (are_same)
        return 1;
    PyObject *none = PyDict_New();
    set_reference(&libraries.switches, none);
    Py_XDECREF(none);
    return none != NULL;
}

/* What there is for each library to switch. */
enum { WAY_CURRENT, WAY_OF, WAY_USE, WAY_ENTER, WAY_LEAVE };

/* Return a tuple of these tuples, as a new reference. */
static PyObject *switches_of(PyObject *target)
{
    if (libraries.names == NULL || !forget_switches_of_other_modules())
        return libraries.names == NULL ? PyTuple_New(0) : NULL;
    PyObject *switches = PyDict_GetItemWithError(libraries.switches, target);
    if (switches != NULL || PyErr_Occurred())
        return Py_XNewRef(switches);
    PyObject *by_target = Py_NewRef(libraries.switches); /* what is found now goes there, even if there is another */
    switches = PyObject_CallFunctionObjArgs(libraries.find, target, NULL);
    if (switches != NULL && (!PyTuple_CheckExact(switches) || PyDict_SetItem(by_target, target, switches) != 0))
        Py_CLEAR(switches);
    Py_DECREF(by_target);
    return switches;
}

/* An entry of a stream: the device, what was current there, a place for the definition, and for each library what
   puts its stream back: `use` and the stream that was current, `leave` and the one that was entered. */
enum { ENTRY_DEVICE, ENTRY_PREVIOUS, ENTRY_CAPTURE, ENTRY_SWITCHED, PER_LIBRARY = 4 };

/* Put back in reverse order what stands before a place of the entry. */
static int put_back(PyObject *entry, Py_ssize_t end)
{
    for (Py_ssize_t k = end - 2; k >= ENTRY_SWITCHED; k -= 2) {
        PyObject *function = PyTuple_GetItem(entry, k);
        if (function == Py_None)
            continue;
        PyObject *done = PyObject_CallFunctionObjArgs(function, PyTuple_GetItem(entry, k + 1), NULL);
        if (done == NULL)
            return 0;
        Py_DECREF(done);
    }
    return 1;
}

/* Return the switches followed by each library's object for a stream; remembered for a stream of one device. */
static PyObject *twins_of(struct stream_record *stream, PyObject *switches, PyObject *device)
{
    if (stream->twins != NULL && PyTuple_GetItem(stream->twins, 0) == switches)
        return Py_NewRef(stream->twins);
    Py_ssize_t count = PyTuple_Size(switches);
    PyObject *twins = PyTuple_New(count + 1);
    if (twins != NULL)
        PyTuple_SetItem(twins, 0, Py_NewRef(switches));
    for (Py_ssize_t k = 0; k < count && twins != NULL; ++k) {
        PyObject *of = PyTuple_GetItem(PyTuple_GetItem(switches, k), WAY_OF);
        PyObject *twin = PyObject_CallFunctionObjArgs(of, stream->handle, device, NULL);
        if (twin == NULL)
            Py_CLEAR(twins);
        else
            PyTuple_SetItem(twins, k + 1, twin);
    }
    if (twins != NULL && stream->device != Py_None)
        set_reference(&stream->twins, twins);
    return twins;
}

/* Make a stream of the current device a library's current one; write what puts back into an entry. */
static int switch_library(PyObject *ways, PyObject *twin, PyObject *device, PyObject *entry, Py_ssize_t place)
{
    PyObject *before = PyObject_CallFunctionObjArgs(PyTuple_GetItem(ways, WAY_CURRENT), device, NULL);
    PyObject *done =
        before == NULL ? NULL : PyObject_CallFunctionObjArgs(PyTuple_GetItem(ways, WAY_ENTER), twin, NULL);
    if (done != NULL) {
        PyTuple_SetItem(entry, place, Py_NewRef(PyTuple_GetItem(ways, WAY_USE)));
        PyTuple_SetItem(entry, place + 1, Py_NewRef(before));
        PyTuple_SetItem(entry, place + 2, Py_NewRef(PyTuple_GetItem(ways, WAY_LEAVE)));
        PyTuple_SetItem(entry, place + 3, Py_NewRef(twin));
        Py_DECREF(done);
    }
    Py_XDECREF(before);
    return done != NULL;
}

/* Switch every library, and write what puts them back into an entry. Where one fails, none is switched. */
static int switch_libraries(struct stream_record *stream, PyObject *switches, PyObject *device, PyObject *entry)
{
    Py_ssize_t count = PyTuple_Size(switches), place = ENTRY_SWITCHED;
    PyObject *twins = count == 0 ? NULL : twins_of(stream, switches, device);
    if (twins == NULL)
        return count == 0;
    Py_ssize_t k = 0;
    for (; k < count; ++k, place += PER_LIBRARY)
        if (!switch_library(PyTuple_GetItem(switches, k), PyTuple_GetItem(twins, k + 1), device, entry, place))
            break;
    Py_DECREF(twins);
    if (k < count) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        put_back(entry, place);
        PyErr_Restore(type, value, traceback);
    }
    return k == count;
}

/* ---- with stream ---- */

/* Return the stream's device, unless libraries switch and another device is current: then None. */
static PyObject *device_to_switch(const struct stream_record *stream, PyObject *switches)
{
    int has_device = stream->device != Py_None;
    if (has_device && PyTuple_Size(switches) == 0)
        return Py_NewRef(stream->device);
    PyObject *current = current_device(stream->target);
    if (current == NULL || !has_device || is_same_number(current, stream->device))
        return current;
    Py_DECREF(current);
    return Py_NewRef(Py_None);
}

/* Make the stream current and remember what was: the entry is that of the definition. */
static int enter_on(PyObject *object, PyObject *switches, PyObject *device)
{
    struct stream_record *self = (struct stream_record *)object;
    PyObject *entry = PyTuple_New(ENTRY_SWITCHED + PER_LIBRARY * PyTuple_Size(switches));
    if (entry == NULL)
        return 0;
    PyTuple_SetItem(entry, ENTRY_DEVICE, Py_NewRef(device));
    PyTuple_SetItem(entry, ENTRY_CAPTURE, Py_NewRef(Py_None));
    PyObject *previous =
        switch_libraries(self, switches, device, entry) ? exchange_stream(self->target, device, object) : NULL;
    int is_done = 0;
    if (previous != NULL) {
        PyTuple_SetItem(entry, ENTRY_PREVIOUS, previous);
        is_done = push_entry(self->entries, entry);
    }
    Py_DECREF(entry);
    return is_done;
}

static PyObject *stream_enter(PyObject *object, PyObject *unused)
{
    const struct stream_record *self = (struct stream_record *)object;
    const struct shortcut *shortcut = &with_stream_shortcuts[ENTER];
    if (!shortcuts_are_on || watchers > 0 || !is_plain_stream(self))
        return call_definition(shortcut, object, NULL, 0, NULL);
    PyObject *switches = switches_of(self->target);
    PyObject *device = switches == NULL ? NULL : device_to_switch(self, switches);
    PyObject *entered = NULL;
    if (device == Py_None)
        entered = call_definition(shortcut, object, NULL, 0, NULL);
    else if (device != NULL && enter_on(object, switches, device))
        entered = Py_NewRef(object);
    Py_XDECREF(switches);
    Py_XDECREF(device);
    return entered;
}

/* Return whether leaving needs nothing that the definition would do besides. */
static int can_leave(const struct stream_record *self, PyObject *entry)
{
    if (!PyTuple_CheckExact(entry) || PyTuple_Size(entry) < ENTRY_SWITCHED)
        return 0;
    if (PyTuple_Size(entry) == ENTRY_SWITCHED)
        return 1;
    PyObject *current = current_device(self->target);
    int is_there = current != NULL && is_same_number(current, PyTuple_GetItem(entry, ENTRY_DEVICE));
    Py_XDECREF(current);
    PyErr_Clear();
    return is_there;
}

static PyObject *stream_exit(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    const struct stream_record *self = (struct stream_record *)object;
    int is_quiet = shortcuts_are_on && watchers == 0 && count == 3 && arguments[0] == Py_None && is_plain_stream(self);
    PyObject *entry = is_quiet ? last_entry(self->entries) : NULL;
    if (entry == NULL || !can_leave(self, entry))
        return call_definition(&with_stream_shortcuts[EXIT], object, arguments, count, NULL);
    Py_INCREF(entry);
    drop_entry(self->entries);
    PyObject *left =
        exchange_stream(self->target, PyTuple_GetItem(entry, ENTRY_DEVICE), PyTuple_GetItem(entry, ENTRY_PREVIOUS));
    int is_done = left != NULL && put_back(entry, PyTuple_Size(entry));
    Py_XDECREF(left);
    Py_DECREF(entry);
    if (!is_done)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- what Python sees ---- */

struct shortcut with_stream_shortcuts[] = {
    [ENTER] = {"BaseStream.__enter__", &stream_type, {"__enter__", stream_enter, METH_NOARGS, NULL}},
    [EXIT] = {"BaseStream.__exit__", &stream_type, {"__exit__", FUNCTION(stream_exit), METH_FASTCALL, NULL}},
    {NULL},
};

PyMethodDef with_stream_functions[] = {
    {"follow_libraries", follow_libraries, METH_VARARGS, "Set which libraries have streams, and how they switch."},
    {NULL, NULL, 0, NULL},
};
