/*
The bytes of Python's objects, for cffi's module only. The C library itself does not depend on Python.

cffi cannot give C access to a str. These functions take the address of an object instead, which is what id() returns.
The caller keeps the object alive. cffi has released the GIL when it calls them, so they take it again.
*/
#ifndef PYBPE_PYTHON_TEXTS_H
#define PYBPE_PYTHON_TEXTS_H

#include <stdint.h>
#include <string.h>

/* Part of the stable ABI since CPython 3.10. cffi asks for the declarations of an older one. */
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *, Py_ssize_t *);

/* pybpe: begin cdef */

/* Returns the UTF-8 of a str, and stores its length. For an ASCII str this is the memory of the str. For any other str
   CPython makes the UTF-8 in the first such call, and keeps it as long as the str. Returns NULL if the object is not a
   str, if UTF-8 cannot represent it (lone surrogates), or if memory ran out. */
static const uint8_t *str_utf8(uintptr_t str, size_t *n);

/* Finds the bytes of all items of a list. An item must be bytes or a str (see str_utf8). Stores where their bytes
   begin, and how many there are. Returns the total number, or -1 if an item is neither. */
static int64_t texts_find(uintptr_t list, const uint8_t **starts, size_t *lengths);

/* Copies n bytes. Python's own ways to copy into a buffer keep the GIL, also while the system clears its pages. */
static void bytes_copy_unlocked(uint8_t *to, const uint8_t *from, size_t n);

/* pybpe: end cdef */

/* As str_utf8, for bytes as well, with the GIL held. */
static const char *text_bytes(PyObject *text, Py_ssize_t *n) {
    char *bytes = NULL;
    const char *utf8 = NULL;
    if (PyBytes_Check(text)) {
        utf8 = PyBytes_AsStringAndSize(text, &bytes, n) == 0 ? bytes : NULL;
    } else if (PyUnicode_Check(text)) {
        utf8 = PyUnicode_AsUTF8AndSize(text, n);
    }
    PyErr_Clear();
    return utf8;
}

static const uint8_t *str_utf8(uintptr_t str, size_t *n) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *text = (PyObject *)str;
    Py_ssize_t length = 0;
    const char *utf8 = PyUnicode_Check(text) ? text_bytes(text, &length) : NULL;
    *n = (size_t)length;
    PyGILState_Release(state);
    return (const uint8_t *)utf8;
}

static int64_t texts_find(uintptr_t texts, const uint8_t **starts, size_t *lengths) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *list = (PyObject *)texts;
    Py_ssize_t count = PyList_Size(list);
    int64_t total = 0;
    for (Py_ssize_t i = 0; i < count && total >= 0; i++) {
        Py_ssize_t n = 0;
        starts[i] = (const uint8_t *)text_bytes(PyList_GetItem(list, i), &n);
        lengths[i] = (size_t)n;
        total = starts[i] != NULL ? total + n : -1;
    }
    PyGILState_Release(state);
    return total;
}

static void bytes_copy_unlocked(uint8_t *to, const uint8_t *from, size_t n) { memcpy(to, from, n); }

#endif
