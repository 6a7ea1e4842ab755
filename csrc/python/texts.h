/*
The bytes of Python's strings, for cffi's module only. The C library itself does not depend on Python.

cffi cannot give C access to a str. These functions take the address of an object instead, which is what id() returns.
The caller keeps the object alive. cffi has released the GIL when it calls them, so they take it again.
*/
#ifndef PYBPE_PYTHON_TEXTS_H
#define PYBPE_PYTHON_TEXTS_H

#include <stdint.h>
#include <string.h>

/* Part of the stable ABI since CPython 3.10; cffi asks for the declarations of an older one. */
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *, Py_ssize_t *);

/* pybpe: begin cdef */

/* Returns the UTF-8 of a str, and stores its length. For an ASCII str this is the memory of the str. For any other str
   CPython makes the UTF-8 in the first such call, and keeps it as long as the str. Returns NULL if the object is not a
   str, if UTF-8 cannot represent it (lone surrogates), or if memory ran out. */
static const uint8_t *str_utf8(uintptr_t str, size_t *n);

/* Copies the bytes of all items of a list, end to end; each item must be bytes or a str (see str_utf8). Stores the offset at
   which each begins and the last ends. Returns the total length; if it is above `room`, nothing was copied. Returns -1
   if an item is neither. */
static int64_t texts_join(uintptr_t list, uint8_t *to, size_t room, uint64_t *offsets);

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

static int64_t texts_measure(PyObject *list, uint64_t *offsets) {
    Py_ssize_t count = PyList_Size(list);
    uint64_t total = 0;
    offsets[0] = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t n;
        if (text_bytes(PyList_GetItem(list, i), &n) == NULL) {
            return -1;
        }
        total += (uint64_t)n;
        offsets[i + 1] = total;
    }
    return (int64_t)total;
}

static int64_t texts_join(uintptr_t texts, uint8_t *to, size_t room, uint64_t *offsets) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *list = (PyObject *)texts;
    int64_t total = texts_measure(list, offsets);
    Py_ssize_t count = total >= 0 && (uint64_t)total <= room ? PyList_Size(list) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t n;
        const char *bytes = text_bytes(PyList_GetItem(list, i), &n);
        memcpy(to + offsets[i], bytes, (size_t)n);
    }
    PyGILState_Release(state);
    return total;
}

#endif
