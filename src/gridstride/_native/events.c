/* Shortcuts of events: make one, record it, and let a stream wait for it. */
#include "objects.h"

static struct target_method create_method, destroy_method, record_method, wait_method;

/* Places in `event_shortcuts`. */
enum { CREATE, DESTROY, RECORD, WAIT };

int is_ending(void)
{
    return !Py_IsInitialized(); /* as soon as sys.is_finalizing() says so */
}

static int fill_event(struct event_record *self, PyObject *target, PyObject *device)
{
    PyObject *handle = call_target(&create_method, target, &zero /* no flags */, 1);
    if (handle == NULL)
        return -1;
    set_reference(&self->target, target);
    set_reference(&self->device_id, device);
    set_reference(&self->times, Py_True);
    set_reference(&self->recorded, Py_False);
    set_reference(&self->handle, handle);
    Py_DECREF(handle);
    return 0;
}

/* __init__(): an event that keeps time, on the current device of the default target */
static PyObject *event_init(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    struct event_record *self = (struct event_record *)object;
    PyObject *target = count == 0 && names == NULL && self->handle == NULL ? default_target() : NULL;
    if (target == NULL)
        return call_definition(&event_shortcuts[CREATE], object, arguments, count, names);
    Py_INCREF(target);
    PyObject *device = current_device(target);
    int failed = device == NULL ? -1 : fill_event(self, target, device);
    Py_DECREF(target);
    Py_XDECREF(device);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *event_del(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    struct event_record *self = (struct event_record *)object;
    if (!shortcuts_are_on || count != 0)
        return call_definition(&event_shortcuts[DESTROY], object, arguments, count, NULL);
    PyObject *handle = self->handle;
    if (handle == NULL || handle == Py_None || is_ending())
        Py_RETURN_NONE;
    self->handle = Py_NewRef(Py_None);
    PyObject *done = call_target(&destroy_method, self->target, &handle, 1);
    Py_DECREF(handle);
    return done;
}

/* Return the stream of our own to record in (borrowed); null without an exception where the definition must look. */
static const struct stream_record *stream_to_record_in(const struct event_record *event, PyObject *given)
{
    PyObject *stream = given == Py_None ? stream_of_thread(event->target, event->device_id) : given;
    if (stream == NULL || !is_record(stream, &stream_type))
        return NULL;
    const struct stream_record *found = (const struct stream_record *)stream;
    if (!is_plain_stream(found) || found->target != event->target)
        return NULL;
    if (found->device != Py_None)
        return is_same_number(found->device, event->device_id) ? found : NULL;
    PyObject *current = current_device(event->target);
    int is_there = current != NULL && is_same_number(current, event->device_id);
    Py_XDECREF(current);
    return is_there ? found : NULL;
}

static int is_whole_event(const struct event_record *event)
{
    return event->target != NULL && event->device_id != NULL && event->handle != NULL && event->handle != Py_None;
}

/* record(stream=None) */
static PyObject *event_record(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    struct event_record *self = (struct event_record *)object;
    const struct stream_record *stream = NULL;
    if (shortcuts_are_on && watchers == 0 && names == NULL && count <= 1 && is_whole_event(self))
        stream = stream_to_record_in(self, count == 0 ? Py_None : arguments[0]);
    if (stream == NULL)
        return PyErr_Occurred() ? NULL : call_definition(&event_shortcuts[RECORD], object, arguments, count, names);
    PyObject *held = Py_NewRef((PyObject *)stream);
    PyObject *const handles[] = {self->handle, stream->handle};
    PyObject *done = call_target(&record_method, self->target, handles, 2);
    Py_DECREF(held);
    if (done != NULL)
        set_reference(&self->recorded, Py_True);
    return done;
}

/* wait_event(event) of a stream */
static PyObject *stream_wait(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    const struct stream_record *self = (struct stream_record *)object;
    const struct event_record *event = NULL;
    if (shortcuts_are_on && watchers == 0 && names == NULL && count == 1 && is_plain_stream(self) &&
        is_record(arguments[0], &event_type))
        event = (const struct event_record *)arguments[0];
    if (event == NULL || !is_whole_event(event) || event->target != self->target)
        return call_definition(&event_shortcuts[WAIT], object, arguments, count, names);
    PyObject *const handles[] = {self->handle, event->handle};
    return call_target(&wait_method, self->target, handles, 2);
}

struct shortcut event_shortcuts[] = {
    [CREATE] = {"Event.__init__", &event_type, {"__init__", FUNCTION(event_init), WITH_KEYWORDS, NULL}, NULL},
    [DESTROY] = {"Event.__del__", &event_type, {"__del__", FUNCTION(event_del), METH_FASTCALL, NULL}, NULL},
    [RECORD] = {"Event.record", &event_type, {"record", FUNCTION(event_record), WITH_KEYWORDS, NULL}, NULL},
    [WAIT] = {"BaseStream.wait_event", &stream_type, {"wait_event", FUNCTION(stream_wait), WITH_KEYWORDS, NULL}, NULL},
    {NULL},
};

const struct name event_names[] = {
    {&create_method.name, "create_event"},
    {&destroy_method.name, "destroy_event"},
    {&record_method.name, "record_event"},
    {&wait_method.name, "wait_event"},
    {NULL, NULL},
};
