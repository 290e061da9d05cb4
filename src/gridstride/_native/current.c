/* What is current for the calling thread: the default target, devices, and our streams. */
#include "objects.h"

static struct target_method current_device_method = {"current_device"}, set_device_method = {"set_device"};
static PyObject *found_name, *chosen_name, *get_name, *streams_key;

int is_same_number(PyObject *one, PyObject *other)
{
    if (one == other)
        return 1;
    return PyLong_CheckExact(one) && PyLong_CheckExact(other) && PyObject_RichCompareBool(one, other, Py_EQ) == 1;
}

/* Places in `current_shortcuts`. */
enum { DEFAULT, CURRENT_STREAM, DEVICE_ENTER, DEVICE_EXIT, STREAM_ENTER, STREAM_EXIT };

/* ---- the default target ---- */

/* What the definition said last, and under which circumstances. */
static struct {
    PyObject *target, *found, *environment, *registry;
    long generation;
} known;

/* A context of asyncio may remember a choice after its block has ended, so it is asked once there was a block. */
static int is_chosen_by_block(void)
{
    if (!targets_were_chosen)
        return 0;
    PyObject *chosen = PyDict_GetItemWithError(known.registry, chosen_name);
    PyObject *name = chosen == NULL ? NULL : PyObject_CallMethodObjArgs(chosen, get_name, NULL);
    int is_chosen = name != Py_None;
    Py_XDECREF(name);
    PyErr_Clear();
    return is_chosen;
}

PyObject *default_target(void)
{
    if (!shortcuts_are_on || known.target == NULL || known.generation != target_generation ||
        PyDict_GetItemWithError(known.registry, found_name) != known.found || !is_environment(known.environment) ||
        is_chosen_by_block())
        return NULL;
    return known.target;
}

/* default() of the registry, whose variables tell when its answer may be another one. */
static PyObject *find_default(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *target = default_target();
    if (target != NULL && count == 0 && names == NULL)
        return Py_NewRef(target);
    const struct shortcut *shortcut = &current_shortcuts[DEFAULT];
    target = call_definition(shortcut, NULL, arguments, count, names);
    if (target == NULL || !knows_environment())
        return target;
    PyObject *registry = PyObject_GetAttrString(shortcut->definition, "__globals__");
    if (registry != NULL) {
        set_reference(&known.registry, registry);
        Py_DECREF(registry);
        set_reference(&known.target, is_chosen_by_block() ? NULL : target);
        set_reference(&known.found, PyDict_GetItemWithError(registry, found_name));
        set_reference(&known.environment, chosen_environment());
        known.generation = target_generation;
    }
    PyErr_Clear();
    return target;
}

/* ---- devices ---- */

PyObject *current_device(PyObject *target)
{
    return call_target(&current_device_method, target, NULL, 0);
}

static int set_device(PyObject *target, PyObject *device)
{
    PyObject *done = call_target(&set_device_method, target, &device, 1);
    Py_XDECREF(done);
    return done != NULL;
}

static int is_whole_device(const struct device_record *device)
{
    return device->id != NULL && device->target != NULL && is_entries(device->entries);
}

static PyObject *device_enter(PyObject *object, PyObject *unused)
{
    const struct device_record *self = (struct device_record *)object;
    if (!shortcuts_are_on || !is_whole_device(self))
        return call_definition(&current_shortcuts[DEVICE_ENTER], object, NULL, 0, NULL);
    PyObject *previous = current_device(self->target);
    if (previous == NULL)
        return NULL;
    int is_done = (is_same_number(previous, self->id) || set_device(self->target, self->id)) &&
                  push_entry(self->entries, previous);
    Py_DECREF(previous);
    return is_done ? Py_NewRef(object) : NULL;
}

static PyObject *device_exit(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    const struct device_record *self = (struct device_record *)object;
    PyObject *previous = shortcuts_are_on && is_whole_device(self) ? last_entry(self->entries) : NULL;
    if (previous == NULL)
        return call_definition(&current_shortcuts[DEVICE_EXIT], object, arguments, count, NULL);
    Py_INCREF(previous);
    drop_entry(self->entries);
    int is_done = set_device(self->target, previous);
    Py_DECREF(previous);
    if (!is_done)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- our streams: of each thread, by target and device ---- */

static PyObject *null_streams; /* the default stream of each target */

/* Return the thread's streams (borrowed); null without an exception where it has none yet. */
static PyObject *streams_of_thread(void)
{
    PyObject *state = PyThreadState_GetDict();
    return state == NULL ? NULL : PyDict_GetItemWithError(state, streams_key);
}

/* Return the dictionary under a key (borrowed), made where there is none. */
static PyObject *dictionary_at(PyObject *dictionary, PyObject *key)
{
    PyObject *found = PyDict_GetItemWithError(dictionary, key);
    if (found != NULL || PyErr_Occurred())
        return found;
    PyObject *made = PyDict_New();
    int is_kept = made != NULL && PyDict_SetItem(dictionary, key, made) == 0;
    Py_XDECREF(made);
    return is_kept ? made : NULL;
}

static PyObject *thread_streams(PyObject *module, PyObject *unused)
{
    PyObject *state = PyThreadState_GetDict();
    PyObject *streams = state == NULL ? PyErr_NoMemory() : dictionary_at(state, streams_key);
    return Py_XNewRef(streams);
}

/* Return the thread's streams of a target by device (borrowed); null without an exception for none. */
static PyObject *streams_of_target(PyObject *target)
{
    PyObject *streams = streams_entered == 0 ? NULL : streams_of_thread();
    PyObject *of_target = streams == NULL ? NULL : PyDict_GetItemWithError(streams, target);
    return of_target != NULL && PyDict_Size(of_target) > 0 ? of_target : NULL;
}

/* Whether the calling thread has made a stream of a target current; of other threads, ended ones too, the count
   in `streams_entered` may hold some. */
int has_entered_stream(PyObject *target)
{
    int is_entered = streams_of_target(target) != NULL || PyErr_Occurred() != NULL;
    PyErr_Clear();
    return is_entered;
}

PyObject *entered_stream(PyObject *target, PyObject *device)
{
    PyObject *of_target = streams_of_target(target);
    return of_target == NULL ? NULL : PyDict_GetItemWithError(of_target, device);
}

PyObject *stream_of_thread(PyObject *target, PyObject *device)
{
    PyObject *of_target = streams_of_target(target), *stream = NULL;
    if (of_target != NULL) {
        PyObject *where = device == NULL ? current_device(target) : Py_NewRef(device);
        if (where == NULL)
            return NULL;
        stream = PyDict_GetItemWithError(of_target, where);
        Py_DECREF(where);
    }
    if (stream == NULL && !PyErr_Occurred() && null_streams != NULL)
        stream = PyDict_GetItemWithError(null_streams, target);
    return stream;
}

/* Make a stream (None: the default one) the thread's; return what was (a new reference). */
static PyObject *exchange(PyObject *target, PyObject *device, PyObject *stream)
{
    PyObject *state = PyThreadState_GetDict();
    PyObject *streams = state == NULL ? NULL : dictionary_at(state, streams_key);
    PyObject *of_target = streams == NULL ? NULL : dictionary_at(streams, target);
    if (of_target == NULL)
        return NULL;
    PyObject *previous = PyDict_GetItemWithError(of_target, device);
    if (previous == NULL && PyErr_Occurred())
        return NULL;
    previous = Py_NewRef(previous == NULL ? Py_None : previous);
    int failed = 0;
    if (stream != Py_None)
        failed = PyDict_SetItem(of_target, device, stream);
    else if (previous != Py_None)
        failed = PyDict_DelItem(of_target, device);
    if (failed)
        Py_CLEAR(previous);
    else
        streams_entered += (stream != Py_None) - (previous != Py_None);
    return previous;
}

/* get_current_stream(device_id=None, *, target=None) */
static PyObject *get_current_stream(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *target = count == 0 && names == NULL ? default_target() : NULL;
    PyObject *stream = target == NULL ? NULL : stream_of_thread(target, NULL);
    if (stream != NULL)
        return Py_NewRef(stream);
    if (PyErr_Occurred())
        return NULL;
    return call_definition(&current_shortcuts[CURRENT_STREAM], NULL, arguments, count, names);
}

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

/* Return a tuple of (current, of, use) for each library to switch, as a new reference. */
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
   puts its stream back: `use`, and the stream that was current. */
enum { ENTRY_DEVICE, ENTRY_PREVIOUS, ENTRY_CAPTURE, ENTRY_SWITCHED };

/* Put back in reverse order what stands before a place of the entry. */
static int put_back(PyObject *entry, Py_ssize_t end)
{
    for (Py_ssize_t k = end - 2; k >= ENTRY_SWITCHED; k -= 2) {
        PyObject *done = PyObject_CallFunctionObjArgs(PyTuple_GetItem(entry, k), PyTuple_GetItem(entry, k + 1), NULL);
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
        PyObject *of = PyTuple_GetItem(PyTuple_GetItem(switches, k), 1);
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
    PyObject *use = PyTuple_GetItem(ways, 2);
    PyObject *before = PyObject_CallFunctionObjArgs(PyTuple_GetItem(ways, 0), device, NULL);
    PyObject *done = before == NULL ? NULL : PyObject_CallFunctionObjArgs(use, twin, NULL);
    if (done != NULL) {
        PyTuple_SetItem(entry, place, Py_NewRef(use));
        PyTuple_SetItem(entry, place + 1, Py_NewRef(before));
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
    for (; k < count; ++k, place += 2)
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

int is_plain_stream(const struct stream_record *stream)
{
    return stream->target != NULL && stream->handle != NULL && stream->device != NULL && is_entries(stream->entries) &&
           stream->per_thread == Py_False;
}

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
    PyObject *entry = PyTuple_New(ENTRY_SWITCHED + 2 * PyTuple_Size(switches));
    if (entry == NULL)
        return 0;
    PyTuple_SetItem(entry, ENTRY_DEVICE, Py_NewRef(device));
    PyTuple_SetItem(entry, ENTRY_CAPTURE, Py_NewRef(Py_None));
    PyObject *previous =
        switch_libraries(self, switches, device, entry) ? exchange(self->target, device, object) : NULL;
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
    const struct shortcut *shortcut = &current_shortcuts[STREAM_ENTER];
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
        return call_definition(&current_shortcuts[STREAM_EXIT], object, arguments, count, NULL);
    Py_INCREF(entry);
    drop_entry(self->entries);
    PyObject *left =
        exchange(self->target, PyTuple_GetItem(entry, ENTRY_DEVICE), PyTuple_GetItem(entry, ENTRY_PREVIOUS));
    int is_done = left != NULL && put_back(entry, PyTuple_Size(entry));
    Py_XDECREF(left);
    Py_DECREF(entry);
    if (!is_done)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- what Python sees ---- */

static PyObject *know_null_streams(PyObject *module, PyObject *streams)
{
    set_reference(&null_streams, streams);
    Py_RETURN_NONE;
}

struct shortcut current_shortcuts[] = {
    [DEFAULT] = {"default", NULL, {"default", FUNCTION(find_default), WITH_KEYWORDS, NULL}},
    [CURRENT_STREAM] = {"get_current_stream", NULL,
                        {"get_current_stream", FUNCTION(get_current_stream), WITH_KEYWORDS, NULL}},
    [DEVICE_ENTER] = {"Device.__enter__", &device_type, {"__enter__", device_enter, METH_NOARGS, NULL}},
    [DEVICE_EXIT] = {"Device.__exit__", &device_type, {"__exit__", FUNCTION(device_exit), METH_FASTCALL, NULL}},
    [STREAM_ENTER] = {"BaseStream.__enter__", &stream_type, {"__enter__", stream_enter, METH_NOARGS, NULL}},
    [STREAM_EXIT] = {"BaseStream.__exit__", &stream_type, {"__exit__", FUNCTION(stream_exit), METH_FASTCALL, NULL}},
    {NULL},
};

PyMethodDef current_functions[] = {
    {"thread_streams", thread_streams, METH_NOARGS, "Return the calling thread's streams, by target and device."},
    {"know_null_streams", know_null_streams, METH_O, "Set the dictionary of each target's default stream."},
    {"follow_libraries", follow_libraries, METH_VARARGS, "Set which libraries have streams, and how they switch."},
    {NULL, NULL, 0, NULL},
};

int prepare_current(void)
{
    static const struct {
        PyObject **name;
        const char *text;
    } wanted[] = {
        {&found_name, "_found"},
        {&chosen_name, "_chosen"},
        {&get_name, "get"},
        {&streams_key, "gridstride streams"},
    };
    struct target_method *const methods[] = {&current_device_method, &set_device_method, NULL};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; ++k)
        if ((*wanted[k].name = PyUnicode_InternFromString(wanted[k].text)) == NULL)
            return 0;
    return name_target_methods(methods);
}
