/* What is current for the calling thread: the default target, devices, and our streams. For `with stream` see
   with_stream.c. */
#include "objects.h"

static struct target_method current_device_method, set_device_method;
static PyObject *found_name, *chosen_name, *get_name, *streams_key;

int is_same_number(PyObject *one, PyObject *other)
{
    if (one == other)
        return 1;
    return PyLong_CheckExact(one) && PyLong_CheckExact(other) && PyObject_RichCompareBool(one, other, Py_EQ) == 1;
}

/* Places in `current_shortcuts`. */
enum { DEFAULT, CURRENT_STREAM, DEVICE_ENTER, DEVICE_EXIT };

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

PyObject *exchange_stream(PyObject *target, PyObject *device, PyObject *stream)
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

int is_plain_stream(const struct stream_record *stream)
{
    return stream->target != NULL && stream->handle != NULL && stream->device != NULL && is_entries(stream->entries) &&
           stream->per_thread == Py_False;
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
    {NULL},
};

PyMethodDef current_functions[] = {
    {"thread_streams", thread_streams, METH_NOARGS, "Return the calling thread's streams, by target and device."},
    {"know_null_streams", know_null_streams, METH_O, "Set the dictionary of each target's default stream."},
    {NULL, NULL, 0, NULL},
};

const struct name current_names[] = {
    {&found_name, "_found"},
    {&chosen_name, "_chosen"},
    {&get_name, "get"},
    {&streams_key, "gridstride streams"},
    {&current_device_method.name, "current_device"},
    {&set_device_method.name, "set_device"},
    {NULL, NULL},
};
