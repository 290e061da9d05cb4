/* The module: counters, and what the other files define. */
#include "objects.h"

#include <string.h>

long watchers, streams_entered, targets_chosen, target_generation;
int targets_were_chosen;
unsigned long long hits, misses;
PyObject *keeper, *zero;

void set_reference(PyObject **slot, PyObject *value)
{
    PyObject *previous = *slot;
    Py_XINCREF(value);
    *slot = value;
    Py_XDECREF(previous);
}

static PyObject *change(long *count, PyObject *delta)
{
    long step = PyLong_AsLong(delta);
    if (step == -1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromLong(*count += step);
}

static PyObject *change_watchers(PyObject *module, PyObject *delta)
{
    return change(&watchers, delta);
}

static PyObject *change_streams_entered(PyObject *module, PyObject *delta)
{
    return change(&streams_entered, delta);
}

static PyObject *change_targets_chosen(PyObject *module, PyObject *delta)
{
    targets_were_chosen = 1;
    return change(&targets_chosen, delta);
}

static PyObject *change_hooks_entered(PyObject *module, PyObject *delta)
{
    return change(&hooks_entered, delta);
}

static PyObject *set_keeper(PyObject *module, PyObject *callable)
{
    set_reference(&keeper, callable);
    Py_RETURN_NONE;
}

static PyObject *targets_forgotten(PyObject *module, PyObject *unused)
{
    ++target_generation;
    Py_RETURN_NONE;
}

static PyObject *statistics(PyObject *module, PyObject *unused)
{
    return Py_BuildValue("(KK)", hits, misses);
}

static PyObject *cuda_launch_routine(PyObject *module, PyObject *unused)
{
    return PyLong_FromVoidPtr((void *)launch_cuda);
}

static int do_nothing(void)
{
    return 0;
}

static PyObject *nothing_routine(PyObject *module, PyObject *unused)
{
    return PyLong_FromVoidPtr((void *)do_nothing);
}

static PyMethodDef functions[] = {
    {"watchers", change_watchers, METH_O, "Add to the count of watchers; while it is above 0 nothing is replayed."},
    {"streams_entered", change_streams_entered, METH_O, "Add to the count of streams of ours that are current."},
    {"targets_chosen", change_targets_chosen, METH_O, "Add to the count of blocks that choose a target."},
    {"hooks_entered", change_hooks_entered, METH_O, "Add to the count of memory hooks that are entered."},
    {"set_keeper", set_keeper, METH_O, "Call keeper(target, device, stream, arguments) after every replay on a GPU."},
    {"targets_forgotten", targets_forgotten, METH_NOARGS, "Replay nothing that was launched on a target until now."},
    {"statistics", statistics, METH_NOARGS, "Return how many calls were hits and how many misses."},
    {"cuda_launch_routine", cuda_launch_routine, METH_NOARGS, "Return the address of CUDA's launch routine."},
    {"nothing_routine", nothing_routine, METH_NOARGS, "Return the address of a function that does nothing and returns 0."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_launcher", .m_doc = "The compiled fast path.", .m_size = -1, .m_methods = functions,
};

static int make_constants(void)
{
    static const struct name *const tables[] = {
        raw_call_names, launch_stream_names, launcher_names, array_key_names, array_launcher_names,
        cupy_names,     current_names,       event_names,    pool_names,      graph_names,
    };
    for (size_t table = 0; table < sizeof tables / sizeof *tables; ++table)
        for (const struct name *name = tables[table]; name->string != NULL; ++name)
            if ((*name->string = PyUnicode_InternFromString(name->text)) == NULL)
                return 0;
    zero = PyLong_FromLong(0);
    return zero != NULL;
}

static int add_types(PyObject *module)
{
    static PyType_Spec *const specs[] = {
        &launcher_spec, &array_launcher_spec, &prepared_launch_spec, &buffer_spec, &driver_function_spec, &contexts_spec,
    };
    for (size_t k = 0; k < sizeof specs / sizeof *specs; ++k) {
        PyObject *type = PyType_FromSpec(specs[k]);
        int is_added = type != NULL && PyModule_AddType(module, (PyTypeObject *)type) == 0;
        Py_XDECREF(type);
        if (!is_added)
            return 0;
    }
    return add_entries(module) && add_records(module);
}

static int add_functions(PyObject *module)
{
    static PyMethodDef *const tables[] = {
        shortcut_functions, current_functions, with_stream_functions, pool_functions,       array_functions,
        cupy_functions,     torch_functions,   entry_functions,       allocation_functions,
    };
    for (size_t k = 0; k < sizeof tables / sizeof *tables; ++k)
        if (PyModule_AddFunctions(module, tables[k]) != 0)
            return 0;
    return 1;
}

PyMODINIT_FUNC PyInit__launcher(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && make_constants() && prepare_shortcuts() && add_types(module) && add_functions(module))
        return module;
    Py_XDECREF(module);
    return NULL;
}
