/* Launcher: the base class of kernels. A call is a hit, made here, or a miss, left to the pipeline. */
#include "native.h"

#include <string.h>

enum { MOST_ENTRIES = 16, USUAL_BYTES = 64 /* of packed arguments */ };

/* An extent as it was last given. Loops give the same object again; tuples and ints do not change. */
struct given_extent {
    PyObject *value;
    unsigned extent[3];
};

struct launcher {
    PyObject_HEAD
    struct given_extent grid, block;
    struct entry *entries[MOST_ENTRIES];
    int entry_count, oldest;
    int is_foreseen; /* `_foresee` was asked already */
};

/* A call as it goes through the steps. */
struct call {
    PyObject *arguments, *stream; /* a new reference, a borrowed one */
    struct gridstride_configuration configuration;
    struct array_view first; /* the first array; library NO_LIBRARY where there is none */
    const struct known_type *first_type;
    Py_ssize_t first_position;
    unsigned long long stream_handle;
    unsigned char packed[MOST_BYTES];
};

static PyObject *names[5]; /* of the arguments, in their order */
static PyObject *launch_name, *foresee_name, *native_entry_name, *replayed_name, *target_name, *ptr_name;

/* ---- reading the call ---- */

static int read_count(PyObject *value, unsigned *count)
{
    if (!PyLong_CheckExact(value))
        return 0;
    int overflow;
    long number = PyLong_AsLongAndOverflow(value, &overflow);
    *count = (unsigned)number;
    return overflow == 0 && number >= 0 && number <= 0xffffffffL;
}

static int read_extent(PyObject *value, unsigned extent[3])
{
    extent[1] = extent[2] = 1;
    if (!PyTuple_CheckExact(value))
        return read_count(value, &extent[0]) && extent[0] > 0;
    Py_ssize_t size = PyTuple_Size(value);
    if (size < 1 || size > 3)
        return 0;
    for (Py_ssize_t k = 0; k < size; ++k)
        if (!read_count(PyTuple_GetItem(value, k), &extent[k]) || extent[k] == 0)
            return 0;
    return 1;
}

static int read_given_extent(struct given_extent *last, PyObject *value, unsigned extent[3])
{
    if (value != last->value) {
        unsigned read[3];
        if (!read_extent(value, read))
            return 0;
        memcpy(last->extent, read, sizeof read);
        set_reference(&last->value, value);
    }
    memcpy(extent, last->extent, sizeof last->extent);
    return 1;
}

static int read_keywords(PyObject *keywords, PyObject **values, Py_ssize_t positional)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t k = positional; k < 5; ++k) {
        PyObject *value = PyDict_GetItemWithError(keywords, names[k]);
        if (value != NULL) {
            values[k] = value;
            ++found;
        }
    }
    return found == PyDict_Size(keywords);
}

/* Make `tuple` a new reference to the arguments as a tuple, which keeps them alive during the call. */
static int read_arguments(PyObject *arguments, PyObject **tuple)
{
    if (arguments != NULL && PyTuple_CheckExact(arguments)) {
        *tuple = Py_NewRef(arguments);
        return 1;
    }
    if (arguments == NULL)
        *tuple = PyTuple_New(0);
    else if (PyList_CheckExact(arguments))
        *tuple = PyList_AsTuple(arguments);
    PyErr_Clear();
    return *tuple != NULL;
}

static int read_call(struct launcher *self, PyObject *positional, PyObject *keywords, struct call *call)
{
    PyObject *values[5] = {NULL};
    call->arguments = NULL;
    Py_ssize_t count = PyTuple_Size(positional);
    if (count > 5)
        return 0;
    for (Py_ssize_t k = 0; k < count; ++k)
        values[k] = PyTuple_GetItem(positional, k);
    if (keywords != NULL && !read_keywords(keywords, values, count))
        return 0;
    call->stream = values[4];
    call->configuration.shared_mem = 0;
    call->configuration.flags = 0;
    return values[0] != NULL && values[1] != NULL &&
           read_given_extent(&self->grid, values[0], call->configuration.grid) &&
           read_given_extent(&self->block, values[1], call->configuration.block) &&
           (values[3] == NULL || read_count(values[3], &call->configuration.shared_mem)) &&
           read_arguments(values[2], &call->arguments);
}

/* ---- place: the first array's device ---- */

typedef const struct known_type *(*type_finder)(PyObject *value);

static int find_first_array(struct call *call, type_finder find_type)
{
    Py_ssize_t count = PyTuple_Size(call->arguments);
    call->first.library = NO_LIBRARY;
    call->first.device_type = NO_DEVICE;
    call->first.device = 0;
    call->first_type = NULL;
    call->first_position = -1;
    for (Py_ssize_t k = 0; k < count; ++k) {
        PyObject *value = PyTuple_GetItem(call->arguments, k);
        if (is_plain_number(value))
            continue;
        const struct known_type *known = find_type(value);
        if (known == NULL)
            return 0;
        if (known->library == NUMPY_SCALAR)
            continue;
        call->first_type = known;
        call->first_position = k;
        return view_array(known, value, &call->first);
    }
    return 1;
}

static int is_exactly(const struct entry *entry, const struct gridstride_configuration *configuration)
{
    return !entry->is_exact ||
           (memcmp(entry->exact.grid, configuration->grid, sizeof configuration->grid) == 0 &&
            memcmp(entry->exact.block, configuration->block, sizeof configuration->block) == 0 &&
            entry->exact.shared_mem == configuration->shared_mem);
}

/* Return a held entry, or null. */
static struct entry *find_entry(const struct launcher *self, const struct call *call)
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

/* ---- check and bind ---- */

static int is_allowed(const struct entry *entry, const struct gridstride_configuration *configuration)
{
    for (int k = 0; k < 3; ++k)
        if (configuration->grid[k] > entry->max_grid[k] || configuration->block[k] > entry->max_block[k])
            return 0;
    unsigned long long threads = (unsigned long long)configuration->block[0] * configuration->block[1];
    return threads <= entry->max_threads && threads * configuration->block[2] <= entry->max_threads &&
           configuration->shared_mem <= entry->max_shared_mem;
}

static int bind_array(const struct parameter *parameter, PyObject *array, struct array_view *seen,
                      unsigned char *packed)
{
    if (seen->dtype == NO_DTYPE || !(parameter->dtypes >> seen->dtype & 1) || !seen->contiguous)
        return 0;
    if (parameter->written && !seen->writable)
        return 0;
    if (seen->address & parameter->unaligned_bits)
        return 0;
    if (parameter->unit > 0 &&
        (!array_size(array, seen) || seen->size * dtype_sizes[seen->dtype] % parameter->unit != 0))
        return 0;
    uint64_t address = seen->address;
    memcpy(packed, &address, sizeof address);
    return 1;
}

/* Return what is known of the type of an array that lies beside the first one, or null. */
static const struct known_type *type_beside_first(PyObject *value, const struct call *call)
{
    const struct known_type *first = call->first_type;
    return first != NULL && Py_IS_TYPE(value, first->type) ? first : known_type_of(value);
}

static int bind_pointer(const struct parameter *parameter, PyObject *value, struct call *call,
                        Py_ssize_t position, unsigned char *packed)
{
    if (value == Py_None)
        return 1; /* the bytes are zero */
    if (position == call->first_position)
        return bind_array(parameter, value, &call->first, packed);
    const struct known_type *known = type_beside_first(value, call);
    struct array_view seen;
    return known != NULL && known->library == call->first.library && view_array(known, value, &seen) &&
           seen.device_type == call->first.device_type && seen.device == call->first.device &&
           bind_array(parameter, value, &seen, packed);
}

/* What no argument writes is zero: null pointers, and the space between arguments. */
static void clear_packed(unsigned char *packed, size_t size)
{
    memset(packed, 0, USUAL_BYTES); /* of constant size: a few instructions */
    if (size > USUAL_BYTES)
        memset(packed + USUAL_BYTES, 0, size - USUAL_BYTES);
}

static int bind(const struct entry *entry, struct call *call)
{
    if (PyTuple_Size(call->arguments) != entry->parameter_count || !is_allowed(entry, &call->configuration))
        return 0;
    clear_packed(call->packed, entry->packed_size);
    for (Py_ssize_t k = 0; k < entry->parameter_count; ++k) {
        const struct parameter *parameter = &entry->parameters[k];
        PyObject *value = PyTuple_GetItem(call->arguments, k);
        unsigned char *packed = call->packed + parameter->offset;
        if (!(parameter->is_pointer ? bind_pointer(parameter, value, call, k, packed)
                                    : pack_scalar(parameter->dtype, value, packed)))
            return 0;
    }
    call->configuration.flags = entry->is_cooperative ? 1 : 0;
    return 1;
}

/* ---- stream ---- */

static int read_handle(PyObject *number, unsigned long long *handle)
{
    if (number == NULL || !PyLong_CheckExact(number)) {
        PyErr_Clear();
        return 0;
    }
    *handle = PyLong_AsUnsignedLongLong(number);
    int is_read = !PyErr_Occurred();
    PyErr_Clear();
    return is_read;
}

static int read_stream_object(PyObject *target, PyObject *stream, unsigned long long *handle)
{
    PyObject *own = PyObject_GetAttr(stream, target_name);
    int is_of_target = own == target;
    Py_XDECREF(own);
    PyErr_Clear();
    if (!is_of_target)
        return 0;
    PyObject *number = PyObject_GetAttr(stream, ptr_name);
    int is_read = read_handle(number, handle);
    Py_XDECREF(number);
    return is_read;
}

int find_launch_stream(PyObject *target, const struct array_view *first, PyObject *stream, unsigned long long *handle)
{
    int is_on_gpu = first->device_type == CUDA;
    *handle = 0;
    int is_read;
    if (stream == NULL || stream == Py_None)
        is_read = is_on_gpu ? library_stream(first->library, first->device, handle) : !has_entered_stream(target);
    else
        is_read = PyLong_CheckExact(stream) ? read_handle(stream, handle) : read_stream_object(target, stream, handle);
    /* The pipeline knows which streams of a host target exist, and begins to keep arguments for a second stream. */
    return is_read && (*handle == 0 || (is_on_gpu && keeper != NULL));
}

/* ---- hit ---- */

static PyObject *replayed_form(const struct entry *entry, const struct call *call)
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
                           const struct call *call)
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

static int keep_arguments(const struct entry *entry, const struct call *call)
{
    if (keeper == NULL || call->first.device_type != CUDA)
        return 1;
    PyObject *kept = PyObject_CallFunction(keeper, "OiKO", entry->choice.target, call->first.device, call->stream_handle,
                                           call->arguments);
    Py_XDECREF(kept);
    return kept != NULL;
}

static enum outcome launch(PyObject *self, PyObject *positional, PyObject *keywords, struct entry *entry,
                           struct call *call)
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

static enum outcome replay_call(PyObject *self, PyObject *positional, PyObject *keywords, struct call *call)
{
    if (!find_first_array(call, known_type_of))
        return MISS;
    struct entry *entry = find_entry((struct launcher *)self, call);
    if (entry == NULL)
        return UNKNOWN_PLACE;
    enum outcome outcome = MISS;
    if (bind(entry, call) && find_launch_stream(entry->choice.target, &call->first, call->stream, &call->stream_handle))
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
static enum outcome foresee(PyObject *self, const struct call *call)
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
static enum outcome replay_foreseen(PyObject *self, PyObject *positional, PyObject *keywords, struct call *call)
{
    if (!find_first_array(call, met_type_of) || call->first.device_type != CUDA || call->first.dtype == NO_DTYPE)
        return UNKNOWN_PLACE;
    enum outcome outcome = foresee(self, call);
    return outcome == HIT ? replay_call(self, positional, keywords, call) : outcome;
}

static enum outcome replay_first(PyObject *self, PyObject *positional, PyObject *keywords)
{
    struct launcher *launcher = (struct launcher *)self;
    struct call call;
    if (launcher->is_foreseen || !read_call(launcher, positional, keywords, &call))
        return UNKNOWN_PLACE;
    launcher->is_foreseen = 1;
    enum outcome outcome = replay_foreseen(self, positional, keywords, &call);
    Py_DECREF(call.arguments);
    return outcome;
}

static enum outcome replay(PyObject *self, PyObject *positional, PyObject *keywords)
{
    struct call call;
    if (watchers > 0)
        return MISS;
    if (((struct launcher *)self)->entry_count == 0)
        return replay_first(self, positional, keywords);
    if (!read_call((struct launcher *)self, positional, keywords, &call))
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
    Py_VISIT(launcher->grid.value);
    Py_VISIT(launcher->block.value);
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
    Py_CLEAR(launcher->grid.value);
    Py_CLEAR(launcher->block.value);
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

int intern_names(void)
{
    static const struct {
        PyObject **name;
        const char *text;
    } wanted[] = {
        {&names[0], "grid"},        {&names[1], "block"},          {&names[2], "args"},
        {&names[3], "shared_mem"},  {&names[4], "stream"},         {&launch_name, "_launch"},
        {&target_name, "target"},   {&ptr_name, "ptr"},            {&native_entry_name, "native_entry"},
        {&foresee_name, "_foresee"}, {&replayed_name, "replayed_form"},
    };
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; ++k)
        if ((*wanted[k].name = PyUnicode_InternFromString(wanted[k].text)) == NULL)
            return 0;
    return 1;
}
