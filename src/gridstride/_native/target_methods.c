/* Methods of targets. Where one is a function of C that we know, it is called without a detour. */
#include "objects.h"

typedef PyObject *(*function_of_many)(PyObject *self, PyObject *const *arguments, Py_ssize_t count);

/* Of a target these methods never change; `launch_graph` does, and is not asked for here. */
static void remember(struct target_method *method, PyObject *target, PyObject *callable)
{
    if (!is_call_of_driver(callable) && !is_method_of_contexts(callable))
        return;
    set_reference(&method->target, target);
    set_reference(&method->self, PyCFunction_GetSelf(callable));
    method->function = PyCFunction_GetFunction(callable);
    method->flags = PyCFunction_GetFlags(callable);
}

static PyObject *look_up_and_call(struct target_method *method, PyObject *target, PyObject *const *arguments,
                                  Py_ssize_t count)
{
    PyObject *given[MOST_OF_TARGET_METHOD] = {NULL}, *result = NULL;
    for (Py_ssize_t k = 0; k < count; ++k)
        given[k] = Py_NewRef(arguments[k]);
    Py_INCREF(target);
    PyObject *callable = PyObject_GetAttr(target, method->name);
    if (callable != NULL) {
        remember(method, target, callable);
        result = PyObject_CallFunctionObjArgs(callable, given[0], given[1], given[2], NULL);
        Py_DECREF(callable);
    }
    Py_DECREF(target);
    for (Py_ssize_t k = 0; k < count; ++k)
        Py_DECREF(given[k]);
    return result;
}

PyObject *call_target(struct target_method *method, PyObject *target, PyObject *const *arguments, Py_ssize_t count)
{
    if (target != method->target)
        return look_up_and_call(method, target, arguments, count);
    PyObject *self = Py_NewRef(method->self), *result;
    if (method->flags == METH_FASTCALL)
        result = ((function_of_many)(void (*)(void))method->function)(self, arguments, count);
    else
        result = method->function(self, method->flags == METH_O ? arguments[0] : NULL);
    Py_DECREF(self);
    return result;
}
