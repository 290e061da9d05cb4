/* The shortcut of graphs: launch one again. */
#include "objects.h"

static PyObject *launch_name;

/* ---- a launch like the one before ---- */

/* Return the content (borrowed) where the last launch was in this stream and its numbers still hold; else null.
   A graph that may come into a capture is not launched so: while there is one, somebody watches. */
static inline struct content_record *content_launched_in(const struct graph_record *graph, PyObject *stream)
{
    struct content_record *content = (struct content_record *)graph->content;
    if (content == NULL || !is_record(graph->content, &content_type) || content->latest != stream ||
        content->function == NULL || content->executable != content->latest_executable ||
        ((struct stream_record *)stream)->handle != content->latest_handle || graph->capture != Py_None)
        return NULL;
    return content;
}

/* Launch once more. The content is held because another thread may meanwhile replace it, and the function because
   it may remember another one. */
static inline PyObject *launch_again(struct content_record *content)
{
    PyObject *held = Py_NewRef((PyObject *)content), *function = Py_NewRef(content->function);
    PyObject *done = call_with_handles(function, content->executable_number, content->handle_number);
    Py_DECREF(function);
    Py_DECREF(held);
    return done;
}

/* ---- any other launch in a stream of ours ---- */

/* Return the stream of our own that a launch goes to (borrowed); null where the definition must look. */
static PyObject *stream_to_launch_in(const struct graph_record *graph, PyObject *given)
{
    PyObject *stream = given == Py_None ? stream_of_thread(graph->target, NULL) : given;
    if (stream == NULL || !is_record(stream, &stream_type))
        return NULL;
    const struct stream_record *found = (const struct stream_record *)stream;
    return is_plain_stream(found) && found->target == graph->target ? stream : NULL;
}

static int is_ready(const struct graph_record *graph)
{
    const struct content_record *content = (const struct content_record *)graph->content;
    return graph->target != NULL && graph->capture == Py_None && content != NULL &&
           is_record(graph->content, &content_type) && content->executable != NULL && content->streams != NULL;
}

/* Remember a launch, for the next one and because the work may have to be waited for. */
static int remember(struct content_record *content, PyObject *stream, PyObject *handle, PyObject *executable,
                    PyObject *launch)
{
    PyObject *function = driver_function_behind(launch);
    unsigned long long handle_number = 0, executable_number = 0;
    if (PyDict_SetItem(content->streams, handle, stream) != 0)
        return 0;
    if (function != NULL && !(read_driver_value(handle, &handle_number) && read_driver_value(executable, &executable_number)))
        return 0;
    content->handle_number = handle_number;
    content->executable_number = executable_number;
    set_reference(&content->latest_handle, handle);
    set_reference(&content->latest_executable, executable);
    set_reference(&content->function, function);
    set_reference(&content->latest, stream);
    return 1;
}

static PyObject *launch_in(const struct graph_record *graph, PyObject *stream)
{
    struct content_record *content = (struct content_record *)Py_NewRef(graph->content);
    PyObject *handle = Py_NewRef(((struct stream_record *)stream)->handle);
    PyObject *executable = Py_NewRef(content->executable);
    Py_INCREF(stream);
    PyObject *launch = PyObject_GetAttr(graph->target, launch_name);
    PyObject *done = launch == NULL ? NULL : PyObject_CallFunctionObjArgs(launch, executable, handle, NULL);
    if (done != NULL && !remember(content, stream, handle, executable, launch))
        Py_CLEAR(done);
    Py_XDECREF(launch);
    Py_DECREF(stream);
    Py_DECREF(executable);
    Py_DECREF(handle);
    Py_DECREF(content);
    return done;
}

static PyObject *launch_otherwise(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    const struct graph_record *self = (struct graph_record *)object;
    PyObject *stream = NULL;
    if (shortcuts_are_on && watchers == 0 && names == NULL && count <= 1 && is_ready(self))
        stream = stream_to_launch_in(self, count == 0 ? Py_None : arguments[0]);
    if (stream == NULL)
        return PyErr_Occurred() ? NULL : call_definition(&graph_shortcuts[0], object, arguments, count, names);
    struct content_record *content = content_launched_in(self, stream);
    return content != NULL ? launch_again(content) : launch_in(self, stream);
}

/* launch(stream=None) */
static PyObject *graph_launch(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    if (shortcuts_are_on && watchers == 0 && names == NULL && count == 1) {
        struct content_record *content = content_launched_in((struct graph_record *)object, arguments[0]);
        if (content != NULL)
            return launch_again(content);
    }
    return launch_otherwise(object, arguments, count, names);
}

struct shortcut graph_shortcuts[] = {
    {"Graph.launch", &graph_type, {"launch", FUNCTION(graph_launch), WITH_KEYWORDS, NULL}, NULL},
    {NULL},
};

const struct name graph_names[] = {
    {&launch_name, "launch_graph"},
    {NULL, NULL},
};
