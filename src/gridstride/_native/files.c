/* Read a file of the compile cache in one call: what is no ordinary file of ours in a folder of ours is left to the
 * definition in _store.py. */
#include "objects.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_PRIVATE };

/* A file that is open, or what kept it from being opened. */
struct opened {
    int descriptor; /* -1: none */
    int is_absent;
    struct stat status;
};

static int is_private(const struct stat *status)
{
    return status->st_uid == getuid() && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static int is_private_folder(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && is_private(&status);
}

static struct opened open_private(const char *folder, const char *path)
{
    struct opened file = {-1, 0};
    if (!is_private_folder(folder))
        return file;
    /* A pipe in its place would keep a reader waiting. */
    file.descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    file.is_absent = file.descriptor < 0 && errno == ENOENT;
    if (file.descriptor >= 0 &&
        (fstat(file.descriptor, &file.status) != 0 || !S_ISREG(file.status.st_mode) || !is_private(&file.status))) {
        close(file.descriptor);
        file.descriptor = -1;
    }
    return file;
}

/* Return the content and the time of the last change; null without an exception where less can be read. */
static PyObject *read_and_close(const struct opened *file)
{
    Py_ssize_t size = (Py_ssize_t)file->status.st_size, count = -1;
    PyObject *content = PyBytes_FromStringAndSize(NULL, size);
    char *bytes = content == NULL ? NULL : PyBytes_AsString(content);
    Py_BEGIN_ALLOW_THREADS
    if (bytes != NULL)
        count = read(file->descriptor, bytes, (size_t)size);
    close(file->descriptor);
    Py_END_ALLOW_THREADS
    if (content == NULL)
        return NULL;
    if (count != size) {
        Py_DECREF(content);
        return NULL;
    }
    double changed = (double)file->status.st_mtim.tv_sec + 1e-9 * (double)file->status.st_mtim.tv_nsec;
    return Py_BuildValue("(Nd)", content, changed);
}

static PyObject *read_private(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    const struct shortcut *shortcut = &file_shortcuts[READ_PRIVATE];
    if (!shortcuts_are_on || count != 2 || names != NULL || !PyUnicode_Check(arguments[0]) ||
        !PyUnicode_Check(arguments[1]))
        return call_definition(shortcut, NULL, arguments, count, names);
    PyObject *folder = PyUnicode_EncodeFSDefault(arguments[0]);
    PyObject *path = folder == NULL ? NULL : PyUnicode_EncodeFSDefault(arguments[1]);
    struct opened file = {-1, 0};
    if (path != NULL) {
        const char *folder_name = PyBytes_AsString(folder), *file_name = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS
        file = open_private(folder_name, file_name);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(folder);
    Py_XDECREF(path);
    if (file.is_absent)
        Py_RETURN_NONE;
    PyObject *found = file.descriptor < 0 ? NULL : read_and_close(&file);
    if (found != NULL)
        return found;
    PyErr_Clear();
    return call_definition(shortcut, NULL, arguments, count, names);
}

struct shortcut file_shortcuts[] = {
    [READ_PRIVATE] = {"_read_private", NULL, {"_read_private", FUNCTION(read_private), WITH_KEYWORDS, NULL}, NULL},
    {NULL},
};
