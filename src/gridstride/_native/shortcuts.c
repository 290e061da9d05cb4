/* The decorator that puts a shortcut in front of a Python function. */
#include "objects.h"

#include <string.h>

int shortcuts_are_on = 1;

static struct shortcut *const tables[] = {current_shortcuts, with_stream_shortcuts, event_shortcuts, pool_shortcuts,
                                          graph_shortcuts,   file_shortcuts,        NULL};

static struct shortcut *find_shortcut(const char *name)
{
    for (int table = 0; tables[table] != NULL; ++table)
        for (struct shortcut *one = tables[table]; one->name != NULL; ++one)
            if (strcmp(one->name, name) == 0)
                return one;
    return NULL;
}

/* ---- methods ---- */

/* Stands for a method until its class is made. The interpreter calls a method of C without a detour only on objects
   of the very class that it was made for, so it is made for that class and not for the record. */
struct method_to_be {
    PyObject_HEAD
    struct shortcut *shortcut;
};

static PyTypeObject *method_to_be_type;

static PyObject *new_method_to_be(struct shortcut *shortcut)
{
    struct method_to_be *made = PyObject_New(struct method_to_be, method_to_be_type);
    if (made != NULL)
        made->shortcut = shortcut;
    return (PyObject *)made;
}

/* __set_name__(owner, name) */
static PyObject *make_method(PyObject *object, PyObject *arguments)
{
    struct shortcut *shortcut = ((struct method_to_be *)object)->shortcut;
    PyTypeObject *owner;
    PyObject *name;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyType_Type, &owner, &name))
        return NULL;
    if (!PyType_IsSubtype(owner, shortcut->owner->type))
        return PyErr_Format(PyExc_TypeError, "%s is a shortcut of other objects than those of %R", shortcut->name, owner);
    PyObject *method = PyDescr_NewMethod(owner, &shortcut->method);
    int failed = method == NULL || PyObject_SetAttr((PyObject *)owner, name, method) != 0;
    Py_XDECREF(method);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static void free_method_to_be(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyMethodDef method_to_be_methods[] = {
    {"__set_name__", make_method, METH_VARARGS, "Put the method into the class that is being made."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot method_to_be_slots[] = {
    {Py_tp_doc, "A method with a shortcut in a class that is still to be made."},
    {Py_tp_methods, method_to_be_methods},
    {Py_tp_dealloc, free_method_to_be},
    {0, NULL},
};

static PyType_Spec method_to_be_spec = {
    .name = "gridstride._native._launcher.MethodToBe",
    .basicsize = sizeof(struct method_to_be),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = method_to_be_slots,
};

int prepare_shortcuts(void)
{
    method_to_be_type = (PyTypeObject *)PyType_FromSpec(&method_to_be_spec);
    return method_to_be_type != NULL;
}

/* ---- the decorator ---- */

/* shortcut(definition): the definition's docstring becomes that of the C function. */
static PyObject *make_shortcut(PyObject *module, PyObject *definition)
{
    PyObject *name = PyObject_GetAttrString(definition, "__qualname__");
    PyObject *doc = PyObject_GetAttrString(definition, "__doc__");
    const char *text = name == NULL ? NULL : PyUnicode_AsUTF8AndSize(name, NULL);
    struct shortcut *shortcut = text == NULL ? NULL : find_shortcut(text);
    PyObject *made = NULL;
    if (text != NULL && shortcut == NULL)
        PyErr_Format(PyExc_KeyError, "there is no shortcut for %U", name);
    if (shortcut != NULL && doc != NULL) {
        set_reference(&shortcut->definition, definition); /* whose docstring lives as long */
        shortcut->method.ml_doc = doc == Py_None ? NULL : PyUnicode_AsUTF8AndSize(doc, NULL);
        made = shortcut->owner == NULL ? PyCFunction_NewEx(&shortcut->method, NULL, NULL)
                                       : new_method_to_be(shortcut);
    }
    Py_XDECREF(name);
    Py_XDECREF(doc);
    return made;
}

/* definition_of(name) */
static PyObject *definition_of(PyObject *module, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    const struct shortcut *shortcut = text == NULL ? NULL : find_shortcut(text);
    if (shortcut == NULL || shortcut->definition == NULL)
        return PyErr_Format(PyExc_KeyError, "there is no shortcut for %S", name);
    return Py_NewRef(shortcut->definition);
}

static PyObject *use_shortcuts(PyObject *module, PyObject *flag)
{
    int before = shortcuts_are_on, after = PyObject_IsTrue(flag);
    if (after < 0)
        return NULL;
    shortcuts_are_on = after;
    return PyBool_FromLong(before);
}

PyMethodDef shortcut_functions[] = {
    {"shortcut", make_shortcut, METH_O, "Return a C function in front of a Python function of a known name."},
    {"definition_of", definition_of, METH_O, "Return the Python function behind a shortcut by its qualified name."},
    {"use_shortcuts", use_shortcuts, METH_O, "Let shortcuts do something or nothing; return what was set before."},
    {NULL, NULL, 0, NULL},
};

static PyObject *keywords_of(PyObject *const *values, PyObject *names)
{
    PyObject *keywords = PyDict_New();
    for (Py_ssize_t k = 0; keywords != NULL && k < PyTuple_Size(names); ++k)
        if (PyDict_SetItem(keywords, PyTuple_GetItem(names, k), values[k]) != 0)
            Py_CLEAR(keywords);
    return keywords;
}

PyObject *call_definition(const struct shortcut *shortcut, PyObject *self, PyObject *const *arguments,
                          Py_ssize_t count, PyObject *names)
{
    Py_ssize_t before = self != NULL;
    PyObject *positional = PyTuple_New(count + before);
    PyObject *keywords = names == NULL ? NULL : keywords_of(arguments + count, names);
    PyObject *result = NULL;
    if (positional != NULL && (names == NULL || keywords != NULL)) {
        if (self != NULL)
            PyTuple_SetItem(positional, 0, Py_NewRef(self));
        for (Py_ssize_t k = 0; k < count; ++k)
            PyTuple_SetItem(positional, k + before, Py_NewRef(arguments[k]));
        result = PyObject_Call(shortcut->definition, positional, keywords);
    }
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}
