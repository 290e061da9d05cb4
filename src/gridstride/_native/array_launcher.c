/* ArrayLauncher: the base class of array kernels. A call is a hit, made here, or a miss, left to the pipeline. */
#include "native.h"

#include <string.h>

enum { RETURNS_NOTHING, RETURNS_ONE, RETURNS_TUPLE }; /* as in entry.py */

struct array_launcher {
    PyObject_HEAD
    struct array_memory *memory; /* null before the first call */
};

/* What a call makes: outputs, then a workspace. */
struct made {
    PyObject *arrays[MOST_MADE];
    uintptr_t addresses[MOST_MADE + 1]; /* one more where the outputs are as many and there is a workspace */
    int count;
};

static PyObject *launch_name, *record_name, *result_name, *outputs_name, *workspace_name, *replayed_name;

/* ---- hit ---- */

static void drop_made(struct made *made)
{
    for (int k = 0; k < made->count; ++k)
        Py_DECREF(made->arrays[k]);
    made->count = 0;
}

/* Look at what was made: an array, or memory that becomes one after the launch. */
static int view_made(const struct array_making *making, PyObject *array, struct array_view *seen)
{
    if (making->wrap != NULL)
        return view_cupy_memory(array, seen);
    const struct known_type *known = known_type_of(array);
    return known != NULL && view_array(known, array, seen) && seen->contiguous;
}

static int make_one(const struct array_making *making, const struct array_call *call, struct made *made)
{
    PyObject *array = PyObject_Call(making->call, making->arguments, making->keywords);
    if (array == NULL) {
        PyErr_Clear(); /* the pipeline meets the same, and words it */
        return 0;
    }
    made->arrays[made->count++] = array;
    struct array_view seen;
    if (!view_made(making, array, &seen) || seen.device != call->first.device ||
        seen.device_type != call->first.device_type || seen.address % 16 != making->start)
        return 0;
    made->addresses[made->count - 1] = seen.address;
    return 1;
}

/* Memory is made in the order of the library's current stream. */
static int can_make(const struct array_call *call, unsigned long long stream)
{
    unsigned long long current = 0;
    if (call->stream == NULL || call->stream == Py_None || call->first.device_type != CUDA)
        return 1;
    return library_stream(call->first.library, call->first.device, &current) && current == stream;
}

static int make_all(const struct array_record *record, const struct array_call *call, unsigned long long stream,
                    struct made *made)
{
    if (record->making_count > 0 && !can_make(call, stream))
        return 0;
    for (int k = 0; k < record->making_count; ++k)
        if (!make_one(&record->makings[k], call, made))
            return 0;
    return 1;
}

/* Make arrays of memory, which takes the host some time: the device is at work meanwhile. */
static int wrap_made(const struct array_record *record, struct made *made)
{
    for (int k = 0; k < made->count; ++k) {
        PyObject *wrap = record->makings[k].wrap, *memory = made->arrays[k];
        PyObject *array = wrap == NULL ? Py_NewRef(memory) : PyObject_CallFunctionObjArgs(wrap, memory, NULL);
        if (array == NULL)
            return 0;
        made->arrays[k] = array;
        Py_DECREF(memory);
    }
    return 1;
}

static PyObject *output_of(const struct array_record *record, const struct array_call *call, const struct made *made,
                           int number)
{
    return Py_NewRef(record->nin < call->count ? call->operands[record->nin + number] : made->arrays[number]);
}

static PyObject *result_of(const struct array_record *record, const struct array_call *call, const struct made *made)
{
    if (record->form == RETURNS_NOTHING)
        return Py_NewRef(Py_None);
    if (record->form == RETURNS_ONE)
        return output_of(record, call, made, 0);
    PyObject *outputs = PyTuple_New(record->output_count);
    for (int k = 0; outputs != NULL && k < record->output_count; ++k)
        PyTuple_SetItem(outputs, k, output_of(record, call, made, k));
    return outputs;
}

/* Let what the launches touch live until the stream is done. */
static int keep_operands(const struct array_record *record, const struct array_call *call, const struct made *made,
                         unsigned long long stream)
{
    if (keeper == NULL || call->first.device_type != CUDA)
        return 1;
    PyObject *used = PyTuple_New(call->count + made->count);
    for (int k = 0; used != NULL && k < call->count; ++k)
        PyTuple_SetItem(used, k, Py_NewRef(call->operands[k]));
    for (int k = 0; used != NULL && k < made->count; ++k)
        PyTuple_SetItem(used, call->count + k, Py_NewRef(made->arrays[k]));
    PyObject *kept = used == NULL ? NULL
                                  : PyObject_CallFunction(keeper, "OiKO", record->choice.target, call->first.device,
                                                          stream, used);
    Py_XDECREF(used);
    Py_XDECREF(kept);
    return kept != NULL;
}

static enum outcome launch_steps(const struct array_record *record, const struct array_call *call,
                                 const struct made *made, unsigned long long stream)
{
    unsigned char packed[MOST_BYTES];
    for (int k = 0; k < record->step_count; ++k) {
        const struct array_step *step = &record->steps[k];
        if (!fill_step(step, call, made->addresses, packed))
            return MISS;
        int code = launch_entry(step->routine, step->context, &step->configuration, packed,
                                (size_t)PyBytes_Size(step->packed), stream);
        if (code == -1)
            return MISS; /* what an earlier step did is done again */
        if (code != 0) {
            raise_failure(step->function, code);
            return RAISED;
        }
    }
    return HIT;
}

static enum outcome replay_here(const struct array_record *record, const struct array_call *call,
                                unsigned long long stream, PyObject **result)
{
    struct made made = {.count = 0};
    enum outcome outcome = MISS;
    if (make_all(record, call, stream, &made))
        outcome = launch_steps(record, call, &made, stream);
    if (outcome == HIT && !wrap_made(record, &made))
        outcome = RAISED;
    if (outcome == HIT && !keep_operands(record, call, &made, stream))
        outcome = RAISED;
    if (outcome == HIT)
        *result = result_of(record, call, &made);
    drop_made(&made);
    return outcome == HIT && *result == NULL ? RAISED : outcome;
}

/* ---- verify ---- */

static int do_numbers_fit(const struct array_record *record, const struct array_call *call)
{
    unsigned char packed[MOST_BYTES];
    const uintptr_t nowhere[MOST_MADE + 1] = {0};
    for (int k = 0; k < record->step_count; ++k)
        if (!fill_step(&record->steps[k], call, nowhere, packed))
            return 0;
    return 1;
}

static PyObject *replayed_form(const struct array_record *record, const struct array_call *call,
                               const struct made *made, unsigned long long stream)
{
    unsigned char packed[MOST_BYTES];
    PyObject *launches = PyTuple_New(record->step_count);
    for (int k = 0; launches != NULL && k < record->step_count; ++k) {
        const struct array_step *step = &record->steps[k];
        const struct gridstride_configuration *of = &step->configuration;
        if (!fill_step(step, call, made->addresses, packed))
            continue; /* `do_numbers_fit` was asked before */
        PyTuple_SetItem(launches, k,
                        Py_BuildValue("((III)(III)IIy#)", of->grid[0], of->grid[1], of->grid[2], of->block[0],
                                      of->block[1], of->block[2], of->shared_mem, of->flags,
                                      (const char *)packed, PyBytes_Size(step->packed)));
    }
    return launches == NULL ? NULL : Py_BuildValue("(OKN)", record->choice.target, stream, launches);
}

/* Take over what the pipeline made; an array that cannot be viewed has no address, which shows. */
static int read_made(const struct array_record *record, PyObject *finished, int is_given, struct made *made)
{
    PyObject *outputs = PyObject_GetAttr(finished, outputs_name);
    PyObject *workspace = PyObject_GetAttr(finished, workspace_name);
    int count = is_given ? 0 : record->output_count;
    for (int k = 0; outputs != NULL && k < count; ++k) {
        PyObject *array = PyTuple_GetItem(outputs, k);
        struct array_view seen = {.address = 0};
        const struct known_type *known = array == NULL ? NULL : known_type_of(array);
        made->addresses[k] = known != NULL && view_array(known, array, &seen) ? seen.address : 0;
    }
    if (workspace != NULL)
        made->addresses[count] = (uintptr_t)PyLong_AsUnsignedLongLong(workspace);
    Py_XDECREF(outputs);
    Py_XDECREF(workspace);
    return !PyErr_Occurred();
}

/* Let the pipeline do a call that is a hit, and compare what both made of it. */
static enum outcome verify(PyObject *self, PyObject *positional, PyObject *keywords, const struct array_record *record,
                           const struct array_call *call, unsigned long long stream, PyObject **result)
{
    struct made made = {.count = 0};
    PyObject *launch = PyObject_GetAttr(self, launch_name);
    PyObject *finished = launch == NULL ? NULL : PyObject_Call(launch, positional, keywords);
    if (launch != NULL && finished == NULL)
        report_refusal(self);
    PyObject *expected = finished == NULL ? NULL : PyObject_CallMethodObjArgs(finished, replayed_name, NULL);
    PyObject *replayed = NULL;
    if (expected != NULL && read_made(record, finished, record->nin < call->count, &made))
        replayed = replayed_form(record, call, &made, stream);
    int is_same = replayed == NULL ? -1 : PyObject_RichCompareBool(expected, replayed, Py_EQ);
    if (is_same == 0)
        PyErr_Format(PyExc_AssertionError, "the pipeline launched %R, the fast path would launch %R", expected, replayed);
    if (is_same == 1)
        *result = PyObject_GetAttr(finished, result_name);
    Py_XDECREF(launch);
    Py_XDECREF(finished);
    Py_XDECREF(expected);
    Py_XDECREF(replayed);
    return is_same == 1 && *result != NULL ? HIT : RAISED;
}

static enum outcome replay(PyObject *self, PyObject *positional, PyObject *keywords, const struct array_record *record,
                           const struct array_call *call, PyObject **result)
{
    unsigned long long stream;
    if (!is_chosen_target(&record->choice))
        return UNKNOWN_PLACE;
    if (!lie_apart(record, call) || !find_launch_stream(record->choice.target, &call->first, call->stream, &stream))
        return MISS;
    if (!record->is_verified)
        return replay_here(record, call, stream, result);
    return do_numbers_fit(record, call) ? verify(self, positional, keywords, record, call, stream, result) : MISS;
}

/* ---- miss ---- */

static int remember(struct array_launcher *self, PyObject *finished, const struct array_call *call, PyObject *keywords)
{
    PyObject *description = PyObject_CallMethodObjArgs(finished, record_name, NULL);
    if (description == NULL)
        return 0;
    int is_done = description == Py_None;
    if (!is_done && self->memory != NULL) {
        struct array_record *record = make_array_record(description, call, keywords);
        if (record != NULL)
            keep_array_record(self->memory, record);
        is_done = record != NULL;
    }
    Py_DECREF(description);
    return is_done;
}

/* `call` is null where the call has no key, or its record could not be used. */
static PyObject *launch_in_pipeline(PyObject *self, PyObject *positional, PyObject *keywords,
                                    const struct array_call *call)
{
    ++misses;
    PyObject *launch = PyObject_GetAttr(self, launch_name);
    PyObject *finished = launch == NULL ? NULL : PyObject_Call(launch, positional, keywords);
    Py_XDECREF(launch);
    if (finished == NULL)
        return NULL;
    int is_done = 1;
    if (call != NULL && was_met(&((struct array_launcher *)self)->memory, call))
        is_done = remember((struct array_launcher *)self, finished, call, keywords);
    PyObject *result = is_done ? PyObject_GetAttr(finished, result_name) : NULL;
    Py_DECREF(finished);
    return result;
}

/* ---- the type ---- */

static PyObject *array_launcher_call(PyObject *self, PyObject *positional, PyObject *keywords)
{
    struct array_call call;
    PyObject *result = NULL;
    if (watchers > 0 || !read_array_call(positional, keywords, &call))
        return launch_in_pipeline(self, positional, keywords, NULL);
    struct array_record *record = find_array_record(((struct array_launcher *)self)->memory, &call);
    enum outcome outcome = UNKNOWN_PLACE;
    if (record != NULL) {
        outcome = replay(self, positional, keywords, record, &call, &result);
        release_array_record(record);
    }
    if (outcome == MISS || outcome == UNKNOWN_PLACE)
        return launch_in_pipeline(self, positional, keywords, outcome == UNKNOWN_PLACE ? &call : NULL);
    hits += outcome == HIT;
    return result;
}

static int array_launcher_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return visit_array_memory(((struct array_launcher *)self)->memory, visit, arg);
}

static int array_launcher_clear(PyObject *self)
{
    struct array_memory *memory = ((struct array_launcher *)self)->memory;
    ((struct array_launcher *)self)->memory = NULL;
    free_array_memory(memory);
    return 0;
}

static void array_launcher_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    array_launcher_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_doc, "Call an array kernel: replay an earlier call where this one looks like it, else ask `_launch`."},
    {Py_tp_call, array_launcher_call},
    {Py_tp_traverse, array_launcher_traverse},
    {Py_tp_clear, array_launcher_clear},
    {Py_tp_dealloc, array_launcher_dealloc},
    {0, NULL},
};

PyType_Spec array_launcher_spec = {
    .name = "gridstride._native._launcher.ArrayLauncher",
    .basicsize = sizeof(struct array_launcher),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

const struct name array_launcher_names[] = {
    {&launch_name, "_launch"},
    {&record_name, "native_record"},
    {&result_name, "result"},
    {&outputs_name, "outputs"},
    {&workspace_name, "workspace"},
    {&replayed_name, "replayed_form"},
    {NULL, NULL},
};
