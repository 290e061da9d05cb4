/* What the parts share that make the runtime's objects fast.
 *
 * An object of ours keeps its fields in a *record*, a base class whose fields lie at fixed places. A *shortcut*
 * stands in front of a Python function, its *definition*: it does the call where nothing is out of the ordinary,
 * and hands it to the definition anywhere else. Nothing here words an error. */
#ifndef GRIDSTRIDE_OBJECTS_H
#define GRIDSTRIDE_OBJECTS_H

#include "native.h"

/* ---- records.c: fields are objects, or null before they are set ---- */

struct device_record {
    PyObject_HEAD
    PyObject *id, *target, *entries;
};

struct stream_record {
    PyObject_HEAD
    PyObject *target, *handle;
    PyObject *device;     /* None: a default stream, of any device */
    PyObject *per_thread; /* True: the handle is another one for each thread */
    PyObject *entries;
    PyObject *twins; /* hidden: the switches of libraries, and what stands for the stream there */
};

struct event_record {
    PyObject_HEAD
    PyObject *target, *device_id, *handle;
    PyObject *times, *recorded; /* booleans */
};

struct memory_record {
    PyObject_HEAD
    PyObject *ptr, *size, *device_id, *target;
    PyObject *is_held; /* by itself: True until it has gone back */
    PyObject *pool;    /* that it goes back to */
    PyObject *block;   /* of a pool; None: it has gone back */
    PyObject *stream;  /* handle of the stream in whose order it goes back; None: in no order */
};

struct pointer_record {
    PyObject_HEAD
    PyObject *mem, *owner, *ptr, *size;
};

struct block_record {
    PyObject_HEAD
    PyObject *ptr, *size, *arena, *segment, *is_free, *previous, *following;
};

struct device_pool_record {
    PyObject_HEAD
    PyObject *target, *device;
    PyObject *has_streams; /* True: memory is handed out in the order of a stream */
    PyObject *arenas;      /* a dictionary by stream */
    PyObject *returned;    /* a list of blocks */
};

struct pool_record {
    PyObject_HEAD
    PyObject *target;
    PyObject *devices; /* a dictionary of what there is on each device */
};

struct async_pool_record {
    PyObject_HEAD
    PyObject *target;
    PyObject *handles, *limits; /* dictionaries by device */
};

struct graph_record {
    PyObject_HEAD
    PyObject *target, *content, *capture; /* None: there is none */
};

struct content_record {
    PyObject_HEAD
    PyObject *target, *device, *executable;
    PyObject *streams; /* a dictionary of where it was launched */
    /* Hidden: the launch in the last of them, ready to be made again. */
    PyObject *latest;        /* the stream */
    PyObject *latest_handle; /* its handle and the executable then, from which the numbers were read */
    PyObject *latest_executable;
    PyObject *function; /* a driver's; null: the target's method must be looked up */
    /* No objects from here on. */
    unsigned long long handle_number, executable_number;
};

/* The type of a record, and the class derived from it that was met last: of most there is one. */
struct record_type {
    PyTypeObject *type, *met;
};

extern struct record_type device_type, stream_type, event_type, memory_type, pointer_type, block_type,
    device_pool_type, pool_type, async_pool_type, graph_type, content_type;

int is_record_of_other_class(PyObject *object, struct record_type *of);
int add_records(PyObject *module);

/* Return whether an object is of a record's type or one derived from it. */
static inline int is_record(PyObject *object, struct record_type *of)
{
    return Py_TYPE(object) == of->met || is_record_of_other_class(object, of);
}

/* ---- module.c ---- */

extern PyObject *zero; /* the number */
extern const struct name current_names[], event_names[], pool_names[], graph_names[];

/* ---- entries.c ---- */

int add_entries(PyObject *module);
int is_entries(PyObject *object);
int push_entry(PyObject *entries, PyObject *value);
/* Return the calling thread's last entry, which stays (borrowed); null without an exception for none. */
PyObject *last_entry(PyObject *entries);
/* Forget it. */
void drop_entry(PyObject *entries);

/* ---- target_methods.c ---- */

enum { MOST_OF_TARGET_METHOD = 3 }; /* arguments */

/* A method of targets, and what it is on the last target that has a function of C that we know there. */
struct target_method {
    PyObject *name, *target, *self;
    PyCFunction function;
    int flags;
};

PyObject *call_target(struct target_method *method, PyObject *target, PyObject *const *arguments, Py_ssize_t count);

/* ---- shortcuts.c ---- */

struct shortcut {
    const char *name; /* of the definition: __qualname__ */
    struct record_type *owner; /* of a method; null for a function */
    PyMethodDef method;
    PyObject *definition;
};

/* Whether shortcuts do anything; tests drive the definitions too. */
extern int shortcuts_are_on;
int prepare_shortcuts(void);
extern PyMethodDef shortcut_functions[];

/* Call the definition; `self` is null for a function. */
PyObject *call_definition(const struct shortcut *shortcut, PyObject *self, PyObject *const *arguments,
                          Py_ssize_t count, PyObject *names);

#define WITH_KEYWORDS (METH_FASTCALL | METH_KEYWORDS)
#define FUNCTION(function) (PyCFunction)(void (*)(void))function

/* ---- current.c ---- */

extern struct shortcut current_shortcuts[];
extern PyMethodDef current_functions[];

/* Return the default target (borrowed); null without an exception where the definition must be asked. */
PyObject *default_target(void);
/* Return the current device as a new reference. */
PyObject *current_device(PyObject *target);
/* Return our current stream of a device (borrowed); null without an exception for the default stream. */
PyObject *entered_stream(PyObject *target, PyObject *device);
/* The same, or the default stream; device null: the current one. Null without an exception: ask the definition. */
PyObject *stream_of_thread(PyObject *target, PyObject *device);
/* Make a stream (None: the default one) the thread's; return what was (a new reference). */
PyObject *exchange_stream(PyObject *target, PyObject *device, PyObject *stream);
int is_same_number(PyObject *one, PyObject *other);
/* Return whether a stream has one handle for all threads, and all fields. */
int is_plain_stream(const struct stream_record *stream);

/* ---- with_stream.c ---- */

extern struct shortcut with_stream_shortcuts[];
extern PyMethodDef with_stream_functions[];

/* ---- events.c, pools.c, graphs.c, files.c ---- */

extern struct shortcut event_shortcuts[], pool_shortcuts[], graph_shortcuts[], file_shortcuts[];
extern PyMethodDef pool_functions[];
extern long hooks_entered; /* memory hooks, in all threads */
/* Return whether the interpreter is ending: handles are not given back any more. */
int is_ending(void);

#endif
