/* Launcher: the base class of kernels. A call is a hit, made here, or a miss, left to the pipeline. */
#include "native.h"

#include <string.h>

enum { MOST_ENTRIES = 16 };

struct launcher {
    PyObject_HEAD
    struct given_extents given;
    struct entry *entries[MOST_ENTRIES];
    int entry_count, oldest;
    int is_foreseen; /* `_foresee` was asked already */
};

static PyObject *launch_name, *foresee_name, *native_entry_name, *replayed_name;

/* ---- place: the first array's device ---- */

static int is_exactly(const struct entry *entry, const struct gridstride_configuration *configuration)
{
    return !entry->is_exact ||
           (memcmp(entry->exact.grid, configuration->grid, sizeof configuration->grid) == 0 &&
            memcmp(entry->exact.block, configuration->block, sizeof configuration->block) == 0 &&
            entry->exact.shared_mem == configuration->shared_mem);
}

/* Return a held entry, or null. */
static struct entry *find_entry(const struct launcher *self, const struct raw_call *call)
{
    for (int k = 0; k < self->entry_count; ++k) {
        struct entry *entry = self->entries[k];
        hold_entry(entry);
        if (entry->device_type == call->first.device_type && entry->device == call->first.device &&
            is_exactly(entry, &call->configuration) && is_chosen_target(&entry->choice))
            return entry;
        release_entry(entry);
    }
    return NULL;
}

/* ---- hit ---- */

static PyObject *replayed_form(const struct entry *entry, const struct raw_call *call)
{
    const struct gridstride_configuration *of = &call->configuration;
    return Py_BuildValue("(O(III)(III)IIy#K)", entry->choice.target, of->grid[0], of->grid[1], of->grid[2], of->block[0],
                         of->block[1], of->block[2], of->shared_mem, of->flags, (const char *)call->packed,
                         (Py_ssize_t)entry->packed_size, call->stream_handle);
}

void report_refusal(PyObject *replayed)
{
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
        !PyErr_ExceptionMatches(PyExc_OverflowError))
        return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_Format(PyExc_AssertionError, "the fast path would launch %R, the pipeline says: %S", replayed, value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* Let the pipeline do a call that is a hit, and compare what both made of it. */
static enum outcome verify(PyObject *self, PyObject *positional, PyObject *keywords, const struct entry *entry,
                           const struct raw_call *call)
{
    PyObject *replayed = replayed_form(entry, call);
    PyObject *launch = PyObject_GetAttr(self, launch_name);
    PyObject *made = replayed && launch ? PyObject_Call(launch, positional, keywords) : NULL;
    if (launch != NULL && made == NULL)
        report_refusal(replayed);
    PyObject *expected = made == NULL ? NULL : PyObject_CallMethodObjArgs(made, replayed_name, NULL);
    int is_same = expected == NULL ? -1 : PyObject_RichCompareBool(expected, replayed, Py_EQ);
    if (is_same == 0)
        PyErr_Format(PyExc_AssertionError, "the pipeline launched %R, the fast path would launch %R", expected, replayed);
    Py_XDECREF(replayed);
    Py_XDECREF(launch);
    Py_XDECREF(made);
    Py_XDECREF(expected);
    return is_same == 1 ? HIT : RAISED;
}

static int keep_arguments(const struct entry *entry, const struct raw_call *call)
{
    if (keeper == NULL || call->first.device_type != CUDA)
        return 1;
    PyObject *kept = PyObject_CallFunction(keeper, "OiKO", entry->choice.target, call->first.device, call->stream_handle,
                                           call->arguments);
    Py_XDECREF(kept);
    return kept != NULL;
}

static enum outcome launch(PyObject *self, PyObject *positional, PyObject *keywords, struct entry *entry,
                           struct raw_call *call)
{
    if (entry->is_verified)
        return verify(self, positional, keywords, entry, call);
    int code = launch_entry(entry->routine, entry->context, &call->configuration, call->packed, entry->packed_size,
                            call->stream_handle);
    if (code == 0)
        return keep_arguments(entry, call) ? HIT : RAISED;
    if (code == -1)
        return MISS;
    raise_failure(entry->function, code);
    return RAISED;
}

static enum outcome replay_call(PyObject *self, PyObject *positional, PyObject *keywords, struct raw_call *call)
{
    if (!find_first_array(call, known_type_of))
        return MISS;
    struct entry *entry = find_entry((struct launcher *)self, call);
    if (entry == NULL)
        return UNKNOWN_PLACE;
    enum outcome outcome = MISS;
    if (bind_raw_call(entry, call) && find_launch_stream(entry->choice.target, &call->first, call->stream, &call->stream_handle))
        outcome = launch(self, positional, keywords, entry, call);
    release_entry(entry);
    return outcome;
}

/* ---- first call ---- */

static int remember(struct launcher *self, PyObject *description)
{
    struct entry *entry = make_entry(description);
    if (entry == NULL)
        return 0;
    if (self->entry_count < MOST_ENTRIES) {
        self->entries[self->entry_count++] = entry;
        return 1;
    }
    struct entry *replaced = self->entries[self->oldest];
    self->entries[self->oldest] = entry;
    self->oldest = (self->oldest + 1) % MOST_ENTRIES;
    release_entry(replaced);
    return 1;
}

/* Ask the pipeline what would replay such a call, which also finds or compiles the function. */
static enum outcome foresee(PyObject *self, const struct raw_call *call)
{
    const struct gridstride_configuration *of = &call->configuration;
    PyObject *foresee = PyObject_GetAttr(self, foresee_name);
    PyObject *description =
        foresee == NULL ? NULL
                        : PyObject_CallFunction(foresee, "ii(III)(III)I", call->first.device_type, call->first.device,
                                                of->grid[0], of->grid[1], of->grid[2], of->block[0], of->block[1],
                                                of->block[2], of->shared_mem);
    Py_XDECREF(foresee);
    if (description == NULL)
        return RAISED;
    enum outcome outcome =
        description == Py_None ? UNKNOWN_PLACE : remember((struct launcher *)self, description) ? HIT : RAISED;
    Py_DECREF(description);
    return outcome;
}

/* A device's array of a class that was met before decides alone where the call runs. */
static enum outcome replay_foreseen(PyObject *self, PyObject *positional, PyObject *keywords, struct raw_call *call)
{
    if (!find_first_array(call, met_type_of) || call->first.device_type != CUDA || call->first.dtype == NO_DTYPE)
        return UNKNOWN_PLACE;
    enum outcome outcome = foresee(self, call);
    return outcome == HIT ? replay_call(self, positional, keywords, call) : outcome;
}

static enum outcome replay_first(PyObject *self, PyObject *positional, PyObject *keywords)
{
    struct launcher *launcher = (struct launcher *)self;
    struct raw_call call;
    if (launcher->is_foreseen || !read_raw_call(&launcher->given, positional, keywords, &call))
        return UNKNOWN_PLACE;
    launcher->is_foreseen = 1;
    enum outcome outcome = replay_foreseen(self, positional, keywords, &call);
    Py_DECREF(call.arguments);
    return outcome;
}

static enum outcome replay(PyObject *self, PyObject *positional, PyObject *keywords)
{
    struct raw_call call;
    if (watchers > 0)
        return MISS;
    if (((struct launcher *)self)->entry_count == 0)
        return replay_first(self, positional, keywords);
    if (!read_raw_call(&((struct launcher *)self)->given, positional, keywords, &call))
        return MISS;
    enum outcome outcome = replay_call(self, positional, keywords, &call);
    Py_DECREF(call.arguments);
    return outcome;
}

/* ---- miss ---- */

static PyObject *launch_in_pipeline(PyObject *self, PyObject *positional, PyObject *keywords, int is_new)
{
    ++misses;
    PyObject *launch = PyObject_GetAttr(self, launch_name);
    PyObject *made = launch == NULL ? NULL : PyObject_Call(launch, positional, keywords);
    Py_XDECREF(launch);
    if (made == NULL)
        return NULL;
    PyObject *description = is_new ? PyObject_CallMethodObjArgs(made, native_entry_name, NULL) : Py_NewRef(Py_None);
    Py_DECREF(made);
    if (description == NULL)
        return NULL;
    int is_done = description == Py_None || remember((struct launcher *)self, description);
    Py_DECREF(description);
    if (!is_done)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- the type ---- */

static PyObject *launcher_call(PyObject *self, PyObject *positional, PyObject *keywords)
{
    enum outcome outcome = replay(self, positional, keywords);
    if (outcome == RAISED)
        return NULL;
    if (outcome != HIT)
        return launch_in_pipeline(self, positional, keywords, outcome == UNKNOWN_PLACE);
    ++hits;
    Py_RETURN_NONE;
}

static int launcher_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct launcher *launcher = (struct launcher *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(launcher->given.grid.value);
    Py_VISIT(launcher->given.block.value);
    for (int k = 0; k < launcher->entry_count; ++k) {
        int stopped = visit_entry(launcher->entries[k], visit, arg);
        if (stopped)
            return stopped;
    }
    return 0;
}

static int launcher_clear(PyObject *self)
{
    struct launcher *launcher = (struct launcher *)self;
    while (launcher->entry_count > 0)
        release_entry(launcher->entries[--launcher->entry_count]);
    launcher->oldest = 0;
    Py_CLEAR(launcher->given.grid.value);
    Py_CLEAR(launcher->given.block.value);
    return 0;
}

static PyObject *launcher_forget(PyObject *self, PyObject *unused)
{
    launcher_clear(self);
    ((struct launcher *)self)->is_foreseen = 0;
    Py_RETURN_NONE;
}

static void launcher_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    launcher_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef launcher_methods[] = {
    {"_forget", launcher_forget, METH_NOARGS, "Forget the launches that could be replayed."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot launcher_slots[] = {
    {Py_tp_doc, "Launch a kernel: replay an earlier launch where the call looks like it, else ask `_launch`."},
    {Py_tp_call, launcher_call},
    {Py_tp_methods, launcher_methods},
    {Py_tp_traverse, launcher_traverse},
    {Py_tp_clear, launcher_clear},
    {Py_tp_dealloc, launcher_dealloc},
    {0, NULL},
};

PyType_Spec launcher_spec = {
    .name = "gridstride._native._launcher.Launcher",
    .basicsize = sizeof(struct launcher),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = launcher_slots,
};

const struct name launcher_names[] = {
    {&launch_name, "_launch"},
    {&foresee_name, "_foresee"},
    {&native_entry_name, "native_entry"},
    {&replayed_name, "replayed_form"},
    {NULL, NULL},
};
