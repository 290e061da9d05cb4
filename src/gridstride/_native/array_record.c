/* Records: what an array kernel remembers of a call so that calls with the same key can be replayed. */
#include "native.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading a description, an `ArrayCall` of entry.py ---- */

static void *room_for(Py_ssize_t count, size_t size)
{
    void *room = calloc((size_t)count + 1, size);
    if (room == NULL)
        PyErr_NoMemory();
    return room;
}

static int read_patches(PyObject *descriptions, struct array_step *step)
{
    Py_ssize_t count = PyTuple_Size(descriptions);
    step->patches = room_for(count, sizeof *step->patches);
    if (step->patches == NULL)
        return 0;
    for (; step->patch_count < count; ++step->patch_count) {
        struct array_patch *patch = &step->patches[step->patch_count];
        if (!PyArg_ParseTuple(PyTuple_GetItem(descriptions, step->patch_count), "Iii", &patch->offset, &patch->operand,
                              &patch->dtype))
            return 0;
    }
    return 1;
}

static int read_step(PyObject *description, struct array_step *step)
{
    unsigned long long routine, context;
    PyObject *function, *packed, *patches;
    struct gridstride_configuration *to = &step->configuration;
    if (!PyArg_ParseTuple(description, "KKO(III)(III)IIO!O!", &routine, &context, &function, &to->grid[0], &to->grid[1],
                          &to->grid[2], &to->block[0], &to->block[1], &to->block[2], &to->shared_mem, &to->flags,
                          &PyBytes_Type, &packed, &PyTuple_Type, &patches))
        return 0;
    step->routine = (gridstride_launch_routine)(uintptr_t)routine;
    step->context = (void *)(uintptr_t)context;
    step->function = Py_NewRef(function);
    step->packed = Py_NewRef(packed);
    if (PyBytes_Size(packed) > MOST_BYTES) {
        PyErr_SetString(PyExc_ValueError, "more bytes of arguments than can be replayed");
        return 0;
    }
    return read_patches(patches, step);
}

static int read_steps(PyObject *descriptions, struct array_record *record)
{
    Py_ssize_t count = PyTuple_Size(descriptions);
    if (count > MOST_STEPS) {
        PyErr_SetString(PyExc_ValueError, "more launches than can be replayed");
        return 0;
    }
    for (; record->step_count < count; ++record->step_count)
        if (!read_step(PyTuple_GetItem(descriptions, record->step_count), &record->steps[record->step_count]))
            return 0;
    return 1;
}

static int read_makings(PyObject *descriptions, struct array_record *record)
{
    Py_ssize_t count = PyTuple_Size(descriptions);
    if (count > MOST_MADE) {
        PyErr_SetString(PyExc_ValueError, "more arrays to make than can be replayed");
        return 0;
    }
    record->makings = room_for(count, sizeof *record->makings);
    if (record->makings == NULL)
        return 0;
    for (; record->making_count < count; ++record->making_count) {
        struct array_making *making = &record->makings[record->making_count];
        PyObject *call, *arguments, *keywords, *wrap;
        if (!PyArg_ParseTuple(PyTuple_GetItem(descriptions, record->making_count), "(OO!O!O)I", &call, &PyTuple_Type,
                              &arguments, &PyDict_Type, &keywords, &wrap, &making->start))
            return 0;
        making->call = Py_NewRef(call);
        making->arguments = Py_NewRef(arguments);
        making->keywords = Py_NewRef(keywords);
        making->wrap = wrap == Py_None ? NULL : Py_NewRef(wrap);
    }
    return 1;
}

static int read_pairs(PyObject *descriptions, struct array_record *record)
{
    Py_ssize_t count = PyTuple_Size(descriptions);
    record->pairs = room_for(count, sizeof *record->pairs);
    if (record->pairs == NULL)
        return 0;
    for (; record->pair_count < count; ++record->pair_count) {
        struct array_pair *pair = &record->pairs[record->pair_count];
        if (!PyArg_ParseTuple(PyTuple_GetItem(descriptions, record->pair_count), "inninni", &pair->one, &pair->low,
                              &pair->high, &pair->other, &pair->other_low, &pair->other_high, &pair->may_be_same))
            return 0;
    }
    return 1;
}

static int read_record(PyObject *description, struct array_record *record)
{
    PyObject *target, *choose, *steps, *makings, *pairs;
    if (!PyArg_ParseTuple(description, "OOpiiiO!O!O!", &target, &choose, &record->is_verified, &record->nin,
                          &record->form, &record->output_count, &PyTuple_Type, &steps, &PyTuple_Type, &makings,
                          &PyTuple_Type, &pairs))
        return 0;
    make_choice(&record->choice, target, choose);
    return read_steps(steps, record) && read_makings(makings, record) && read_pairs(pairs, record);
}

/* Keep the objects that the key names; not the arrays and streams of the first call. */
static int keep_keywords(struct array_record *record, PyObject *keywords)
{
    record->keywords = PyDict_Copy(keywords);
    if (record->keywords == NULL)
        return 0;
    static const char *const passing[] = {"out", "stream"};
    for (int k = 0; k < 2; ++k)
        if (PyDict_DelItemString(record->keywords, passing[k]) < 0)
            PyErr_Clear();
    return 1;
}

struct array_record *make_array_record(PyObject *description, const struct array_call *call, PyObject *keywords)
{
    struct array_record *record = room_for(1, sizeof *record);
    if (record == NULL)
        return NULL;
    record->references = 1;
    record->hash = call->hash;
    record->key_size = call->key_size;
    record->key = room_for(call->key_size, sizeof *record->key);
    if (record->key != NULL)
        memcpy(record->key, call->key, call->key_size * sizeof *record->key);
    if (record->key == NULL || !read_record(description, record) ||
        (keywords != NULL && !keep_keywords(record, keywords))) {
        release_array_record(record);
        return NULL;
    }
    return record;
}

/* ---- its end ---- */

static void drop_step(struct array_step *step)
{
    Py_XDECREF(step->function);
    Py_XDECREF(step->packed);
    free(step->patches);
}

void release_array_record(struct array_record *record)
{
    if (--record->references > 0)
        return;
    for (int k = 0; k < MOST_STEPS; ++k)
        drop_step(&record->steps[k]);
    for (int k = 0; k < record->making_count; ++k) {
        Py_XDECREF(record->makings[k].call);
        Py_XDECREF(record->makings[k].arguments);
        Py_XDECREF(record->makings[k].keywords);
        Py_XDECREF(record->makings[k].wrap);
    }
    drop_choice(&record->choice);
    Py_XDECREF(record->keywords);
    free(record->makings);
    free(record->pairs);
    free(record->key);
    free(record);
}

int visit_array_record(const struct array_record *record, visitproc visit, void *arg)
{
    Py_VISIT(record->choice.target);
    Py_VISIT(record->choice.choose);
    Py_VISIT(record->keywords);
    for (int k = 0; k < record->step_count; ++k)
        Py_VISIT(record->steps[k].function);
    for (int k = 0; k < record->making_count; ++k) {
        Py_VISIT(record->makings[k].call);
        Py_VISIT(record->makings[k].arguments);
        Py_VISIT(record->makings[k].keywords);
        Py_VISIT(record->makings[k].wrap);
    }
    return 0;
}

/* ---- a call ---- */

int is_record_of(const struct array_record *record, const struct array_call *call)
{
    return record->hash == call->hash && record->key_size == call->key_size &&
           memcmp(record->key, call->key, call->key_size * sizeof *call->key) == 0;
}

/* Return whether no operand shares memory with an output otherwise than the record's call allows. */
int lie_apart(const struct array_record *record, const struct array_call *call)
{
    for (int k = 0; k < record->pair_count; ++k) {
        const struct array_pair *pair = &record->pairs[k];
        uintptr_t one = call->addresses[pair->one], other = call->addresses[pair->other];
        if (pair->may_be_same && one == other)
            continue;
        if (one + pair->low < other + pair->other_high && other + pair->other_low < one + pair->high)
            return 0;
    }
    return 1;
}

int fill_step(const struct array_step *step, const struct array_call *call, const uintptr_t *made,
              unsigned char *packed)
{
    memcpy(packed, PyBytes_AsString(step->packed), (size_t)PyBytes_Size(step->packed));
    for (int k = 0; k < step->patch_count; ++k) {
        const struct array_patch *patch = &step->patches[k];
        unsigned char *to = packed + patch->offset;
        if (patch->dtype != NO_DTYPE) {
            if (!pack_scalar((enum dtype)patch->dtype, call->operands[patch->operand], to))
                return 0;
            continue;
        }
        uint64_t address; /* so far how far it is from the argument's own */
        memcpy(&address, to, sizeof address);
        address += patch->operand < call->count ? call->addresses[patch->operand] : made[patch->operand - call->count];
        memcpy(to, &address, sizeof address);
    }
    return 1;
}
