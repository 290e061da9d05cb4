/* Records: base classes that keep fields where C code finds them. To Python they are like slots. */
#include "objects.h"

#include <stddef.h>
#include <structmember.h>

struct record_type device_type, stream_type, event_type, memory_type, pointer_type, block_type, device_pool_type,
    pool_type, async_pool_type, graph_type, content_type;

static PyObject **fields_of(PyObject *record)
{
    return (PyObject **)((char *)record + sizeof(PyObject));
}

static int visit_fields(PyObject *record, int count, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(record));
    for (int k = 0; k < count; ++k)
        Py_VISIT(fields_of(record)[k]);
    return 0;
}

static int clear_fields(PyObject *record, int count)
{
    for (int k = 0; k < count; ++k)
        Py_CLEAR(fields_of(record)[k]);
    return 0;
}

static void free_record(PyObject *record, int count)
{
    PyTypeObject *type = Py_TYPE(record);
    PyObject_GC_UnTrack(record);
    clear_fields(record, count);
    PyObject_GC_Del(record);
    Py_DECREF(type);
}

/* Define the type of a record with the fields of a struct, which end after `size` bytes; `members` names them. */
#define RECORD_OF_SIZE(kind, size, python_name, text)                                                      \
    enum { kind##_fields = ((size) - sizeof(PyObject)) / sizeof(PyObject *) };                             \
    static int kind##_traverse(PyObject *record, visitproc visit, void *arg)                               \
    {                                                                                                      \
        return visit_fields(record, kind##_fields, visit, arg);                                            \
    }                                                                                                      \
    static int kind##_clear(PyObject *record) { return clear_fields(record, kind##_fields); }              \
    static void kind##_dealloc(PyObject *record) { free_record(record, kind##_fields); }                   \
    static PyType_Slot kind##_slots[] = {                                                                  \
        {Py_tp_doc, text},                                                                                 \
        {Py_tp_members, kind##_members},                                                                   \
        {Py_tp_traverse, kind##_traverse},                                                                 \
        {Py_tp_clear, kind##_clear},                                                                       \
        {Py_tp_dealloc, kind##_dealloc},                                                                   \
        {0, NULL},                                                                                         \
    };                                                                                                     \
    static PyType_Spec kind##_spec = {                                                                     \
        .name = "gridstride._native._launcher." python_name,                                               \
        .basicsize = sizeof(struct kind##_record),                                                         \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,                            \
        .slots = kind##_slots,                                                                             \
    }
#define RECORD(kind, python_name, text) RECORD_OF_SIZE(kind, sizeof(struct kind##_record), python_name, text)

#define FIELD(kind, field, name) {name, T_OBJECT_EX, offsetof(struct kind##_record, field), 0, NULL}

static PyMemberDef device_members[] = {
    FIELD(device, id, "id"),
    FIELD(device, target, "target"),
    FIELD(device, entries, "_entries"),
    {NULL},
};
RECORD(device, "DeviceRecord", "Keep the fields of a device.");

static PyMemberDef stream_members[] = {
    FIELD(stream, target, "target"),
    FIELD(stream, handle, "_handle"),
    FIELD(stream, device, "_device"),
    FIELD(stream, per_thread, "_per_thread"),
    FIELD(stream, entries, "_entries"),
    {NULL},
};
RECORD(stream, "StreamRecord", "Keep the fields of a stream.");

static PyMemberDef event_members[] = {
    FIELD(event, target, "target"),
    FIELD(event, device_id, "device_id"),
    FIELD(event, handle, "_handle"),
    FIELD(event, times, "_times"),
    FIELD(event, recorded, "_recorded"),
    {NULL},
};
RECORD(event, "EventRecord", "Keep the fields of an event.");

static PyMemberDef memory_members[] = {
    FIELD(memory, ptr, "ptr"),
    FIELD(memory, size, "size"),
    FIELD(memory, device_id, "device_id"),
    FIELD(memory, target, "target"),
    FIELD(memory, is_held, "_is_held"),
    FIELD(memory, pool, "pool"),
    FIELD(memory, block, "_block"),
    FIELD(memory, stream, "_stream"),
    {NULL},
};
RECORD(memory, "MemoryRecord", "Keep the fields of memory.");

static PyMemberDef pointer_members[] = {
    FIELD(pointer, mem, "mem"),
    FIELD(pointer, owner, "owner"),
    FIELD(pointer, ptr, "ptr"),
    FIELD(pointer, size, "size"),
    {NULL},
};
RECORD(pointer, "PointerRecord", "Keep the fields of a pointer to memory.");

static PyMemberDef block_members[] = {
    FIELD(block, ptr, "ptr"),
    FIELD(block, size, "size"),
    FIELD(block, arena, "arena"),
    FIELD(block, segment, "segment"),
    FIELD(block, is_free, "is_free"),
    FIELD(block, previous, "previous"),
    FIELD(block, following, "following"),
    {NULL},
};
RECORD(block, "BlockRecord", "Keep the fields of a block of a pool.");

static PyMemberDef device_pool_members[] = {
    FIELD(device_pool, target, "target"),
    FIELD(device_pool, device, "device"),
    FIELD(device_pool, has_streams, "_has_streams"),
    FIELD(device_pool, arenas, "_arenas"),
    FIELD(device_pool, returned, "returned"),
    {NULL},
};
RECORD(device_pool, "DevicePoolRecord", "Keep those fields of the pool of a device that a request looks at.");

static PyMemberDef pool_members[] = {
    FIELD(pool, target, "target"),
    FIELD(pool, devices, "_devices"),
    {NULL},
};
RECORD(pool, "PoolRecord", "Keep the fields of a pool.");

static PyMemberDef async_pool_members[] = {
    FIELD(async_pool, target, "target"),
    FIELD(async_pool, handles, "_handles"),
    FIELD(async_pool, limits, "_limits"),
    {NULL},
};
RECORD(async_pool, "AsyncPoolRecord", "Keep the fields of an asynchronous pool.");

static PyMemberDef graph_members[] = {
    FIELD(graph, target, "target"),
    FIELD(graph, content, "_content"),
    FIELD(graph, capture, "_capture"),
    {NULL},
};
RECORD(graph, "GraphRecord", "Keep the fields of a graph.");

static PyMemberDef content_members[] = {
    FIELD(content, target, "target"),
    FIELD(content, device, "device"),
    FIELD(content, executable, "executable"),
    FIELD(content, streams, "streams"),
    {NULL},
};
RECORD_OF_SIZE(content, offsetof(struct content_record, handle_number), "ContentRecord",
               "Keep those fields of what a graph holds that a launch looks at.");

int is_record_of_other_class(PyObject *object, struct record_type *of)
{
    if (!PyObject_TypeCheck(object, of->type))
        return 0;
    set_reference((PyObject **)&of->met, (PyObject *)Py_TYPE(object));
    return 1;
}

static int add_record(PyObject *module, PyType_Spec *spec, struct record_type *made)
{
    made->type = (PyTypeObject *)PyType_FromSpec(spec);
    return made->type != NULL && PyModule_AddType(module, made->type) == 0;
}

int add_records(PyObject *module)
{
    return add_record(module, &device_spec, &device_type) &&
           add_record(module, &stream_spec, &stream_type) &&
           add_record(module, &event_spec, &event_type) &&
           add_record(module, &memory_spec, &memory_type) &&
           add_record(module, &pointer_spec, &pointer_type) &&
           add_record(module, &block_spec, &block_type) &&
           add_record(module, &device_pool_spec, &device_pool_type) &&
           add_record(module, &pool_spec, &pool_type) &&
           add_record(module, &async_pool_spec, &async_pool_type) &&
           add_record(module, &graph_spec, &graph_type) &&
           add_record(module, &content_spec, &content_type);
}
