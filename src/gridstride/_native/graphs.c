/* The shortcut of graphs: launch one again. */
#include "objects.h"

static PyObject *launch_name;

/* Return the stream of our own that a launch goes to (borrowed); null where the definition must look. */
static PyObject *stream_to_launch_in(const struct graph_record *graph, PyObject *given)
{
    PyObject *stream = given == Py_None ? stream_of_thread(graph->target, NULL) : given;
    if (stream == NULL || !is_record(stream, stream_type))
        return NULL;
    const struct stream_record *found = (const struct stream_record *)stream;
    return is_plain_stream(found) && found->target == graph->target ? stream : NULL;
}

static int is_ready(const struct graph_record *graph)
{
    const struct content_record *content = (const struct content_record *)graph->content;
    return graph->target != NULL && graph->capture == Py_None && content != NULL &&
           is_record(graph->content, content_type) && content->executable != NULL && content->streams != NULL;
}

/* Launch, and remember the stream, because the work may have to be waited for there. */
static PyObject *launch_in(const struct graph_record *graph, PyObject *stream)
{
    struct content_record *content = (struct content_record *)Py_NewRef(graph->content);
    PyObject *handle = ((struct stream_record *)stream)->handle;
    Py_INCREF(stream);
    PyObject *launch = PyObject_GetAttr(graph->target, launch_name);
    PyObject *done = launch == NULL ? NULL : call_with_handles(launch, content->executable, handle);
    if (done != NULL && stream != content->latest) {
        if (PyDict_SetItem(content->streams, handle, stream) != 0)
            Py_CLEAR(done);
        else
            set_reference(&content->latest, stream);
    }
    Py_XDECREF(launch);
    Py_DECREF(content);
    Py_DECREF(stream);
    return done;
}

/* launch(stream=None) */
static PyObject *graph_launch(PyObject *object, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    const struct graph_record *self = (struct graph_record *)object;
    PyObject *stream = NULL;
    if (shortcuts_are_on && watchers == 0 && names == NULL && count <= 1 && is_ready(self))
        stream = stream_to_launch_in(self, count == 0 ? Py_None : arguments[0]);
    if (stream != NULL)
        return launch_in(self, stream);
    return PyErr_Occurred() ? NULL : call_definition(&graph_shortcuts[0], object, arguments, count, names);
}

struct shortcut graph_shortcuts[] = {
    {"Graph.launch", &graph_type, {"launch", FUNCTION(graph_launch), WITH_KEYWORDS, NULL}, NULL},
    {NULL},
};

int prepare_graphs(void)
{
    launch_name = PyUnicode_InternFromString("launch_graph");
    return launch_name != NULL;
}
