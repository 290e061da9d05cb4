/* Entries: what a kernel remembers of a launch so that it can be replayed. */
#include "native.h"

#include <stdlib.h>
#include <string.h>

static PyObject *environment_values; /* what os.environ keeps its values in */
static PyObject *environment_name;   /* of the variable that chooses the target */

static int read_parameter(PyObject *description, struct parameter *parameter)
{
    unsigned alignment; /* a power of two, or 0 where it is not known */
    if (!PyArg_ParseTuple(description, "ppIiIII", &parameter->is_pointer, &parameter->written, &parameter->dtypes,
                          (int *)&parameter->dtype, &alignment, &parameter->unit, &parameter->offset))
        return 0;
    parameter->unaligned_bits = alignment == 0 ? 0 : alignment - 1;
    return 1;
}

static int read_parameters(PyObject *descriptions, struct entry *entry)
{
    entry->parameter_count = (int)PyTuple_Size(descriptions);
    entry->parameters = calloc(entry->parameter_count + 1, sizeof *entry->parameters);
    if (entry->parameters == NULL)
        return PyErr_NoMemory() != NULL;
    for (int k = 0; k < entry->parameter_count; ++k)
        if (!read_parameter(PyTuple_GetItem(descriptions, k), &entry->parameters[k]))
            return 0;
    return 1;
}

static int read_exact(PyObject *exact, struct entry *entry)
{
    struct gridstride_configuration *only = &entry->exact;
    entry->is_exact = exact != Py_None;
    return !entry->is_exact ||
           PyArg_ParseTuple(exact, "(III)(III)I", &only->grid[0], &only->grid[1], &only->grid[2], &only->block[0],
                            &only->block[1], &only->block[2], &only->shared_mem);
}

/* Take the dictionary's own key: it is found by its identity, another one byte by byte. */
static void adopt_key(void)
{
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(environment_values, &at, &key, &value);)
        if (key != environment_name && PyObject_RichCompareBool(key, environment_name, Py_EQ) == 1) {
            set_reference(&environment_name, key);
            return;
        }
}

int knows_environment(void)
{
    return environment_values != NULL;
}

PyObject *chosen_environment(void)
{
    return environment_values == NULL ? NULL : PyDict_GetItemWithError(environment_values, environment_name);
}

void make_choice(struct choice *choice, PyObject *target, PyObject *choose)
{
    choice->target = Py_NewRef(target);
    choice->choose = Py_NewRef(choose);
    choice->is_by_block = targets_chosen > 0;
    choice->generation = target_generation;
    if (environment_values != NULL)
        adopt_key();
    choice->environment = chosen_environment();
    Py_XINCREF(choice->environment);
}

void drop_choice(struct choice *choice)
{
    Py_CLEAR(choice->target);
    Py_CLEAR(choice->choose);
    Py_CLEAR(choice->environment);
}

static int read_description(PyObject *description, struct entry *entry)
{
    unsigned long long routine, context;
    PyObject *exact, *parameters, *target, *choose;
    if (!PyArg_ParseTuple(description, "KKiiO(III)(III)IIppIO!OOO", &routine, &context, &entry->device_type,
                          &entry->device, &exact, &entry->max_grid[0], &entry->max_grid[1], &entry->max_grid[2],
                          &entry->max_block[0], &entry->max_block[1], &entry->max_block[2], &entry->max_threads,
                          &entry->max_shared_mem, &entry->is_cooperative, &entry->is_verified, &entry->packed_size,
                          &PyTuple_Type, &parameters, &target, &entry->function, &choose)) {
        entry->function = NULL;
        return 0;
    }
    Py_INCREF(entry->function);
    make_choice(&entry->choice, target, choose);
    entry->routine = (gridstride_launch_routine)(uintptr_t)routine;
    entry->context = (void *)(uintptr_t)context;
    if (entry->packed_size > MOST_BYTES) {
        PyErr_SetString(PyExc_ValueError, "more bytes of arguments than can be replayed");
        return 0;
    }
    return read_exact(exact, entry) && read_parameters(parameters, entry);
}

struct entry *make_entry(PyObject *description)
{
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    entry->references = 1;
    if (!read_description(description, entry)) {
        release_entry(entry);
        return NULL;
    }
    return entry;
}

void hold_entry(struct entry *entry)
{
    ++entry->references;
}

void release_entry(struct entry *entry)
{
    if (--entry->references > 0)
        return;
    drop_choice(&entry->choice);
    Py_XDECREF(entry->function);
    free(entry->parameters);
    free(entry);
}

int visit_entry(struct entry *entry, visitproc visit, void *arg)
{
    Py_VISIT(entry->choice.target);
    Py_VISIT(entry->choice.choose);
    Py_VISIT(entry->function);
    return 0;
}

int is_environment(PyObject *before)
{
    PyObject *now = chosen_environment();
    return now == before || (now != NULL && before != NULL && PyObject_RichCompareBool(now, before, Py_EQ) == 1);
}

int is_chosen_target(const struct choice *choice)
{
    if (choice->generation != target_generation)
        return 0;
    if (targets_chosen == 0)
        return !choice->is_by_block && is_environment(choice->environment);
    PyObject *target = PyObject_CallNoArgs(choice->choose);
    int is_same = target == choice->target;
    Py_XDECREF(target);
    PyErr_Clear();
    return is_same;
}

int launch_entry(gridstride_launch_routine routine, void *context, const struct gridstride_configuration *configuration,
                 const void *packed, size_t size, unsigned long long stream)
{
    int code;
    Py_BEGIN_ALLOW_THREADS
    code = routine(context, configuration, packed, size, stream);
    Py_END_ALLOW_THREADS
    return code;
}

PyObject *raise_failure(PyObject *function, int code)
{
    PyObject *failure = PyObject_CallMethod(function, "failure", "i", code);
    if (failure != NULL)
        PyErr_SetObject((PyObject *)Py_TYPE(failure), failure);
    Py_XDECREF(failure);
    return NULL;
}

/* watch_environment(values, name): the dictionary behind os.environ, and the variable in it */
static PyObject *watch_environment(PyObject *module, PyObject *arguments)
{
    PyObject *values, *name;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyDict_Type, &values, &name))
        return NULL;
    set_reference(&environment_values, values);
    set_reference(&environment_name, name);
    Py_RETURN_NONE;
}

PyMethodDef entry_functions[] = {
    {"watch_environment", watch_environment, METH_VARARGS, "Replay only under the same value of a variable."},
    {NULL, NULL, 0, NULL},
};
