/*
Ids as Python's lists of ints, for cffi's module only. An int that exists costs a tenth of a new one, so the ints of ids that
occurred are kept, by id. Lists then share them.
*/
#ifndef PYBPE_PYTHON_ID_LISTS_H
#define PYBPE_PYTHON_ID_LISTS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* pybpe: begin cdef */

typedef struct id_ints id_ints;

/* Returns room for the ints of the ids below `tokens`, or NULL if memory ran out. */
static id_ints *id_ints_new(size_t tokens);
static void id_ints_free(id_ints *ints);

/* Appends a list of ids to the Python list at this address for every one of n texts. The ids of a text end at the index
   `ends` of it. All are below `tokens`. Returns 0, or -1 if memory ran out. */
static int id_lists_append(id_ints *ints, uintptr_t list, const uint32_t *ids, const uint64_t *ends, size_t n);

/* pybpe: end cdef */

struct id_ints {
    size_t tokens;
    atomic_flag busy; /* a thread without a GIL makes new ints while another thread has the kept ones */
    PyObject *of[];   /* id -> its int, or NULL until the id occurs */
};

static id_ints *id_ints_new(size_t tokens) {
    id_ints *ints = (id_ints *)calloc(1, sizeof *ints + tokens * sizeof ints->of[0]);
    if (ints != NULL) {
        ints->tokens = tokens;
        atomic_flag_clear(&ints->busy);
    }
    return ints;
}

static void id_ints_free(id_ints *ints) {
    PyGILState_STATE state = PyGILState_Ensure();
    for (size_t i = 0; ints != NULL && i < ints->tokens; i++) {
        Py_XDECREF(ints->of[i]);
    }
    free(ints);
    PyGILState_Release(state);
}

/* Returns a new reference to the int of an id, or NULL. */
static PyObject *id_int(id_ints *ints, uint32_t id, int keeps) {
    if (!keeps) {
        return PyLong_FromUnsignedLong(id);
    }
    if (ints->of[id] == NULL) {
        ints->of[id] = PyLong_FromUnsignedLong(id);
    }
    Py_XINCREF(ints->of[id]);
    return ints->of[id];
}

/* Returns a new list of n ids, or NULL. The caller has the GIL. */
static PyObject *id_list(id_ints *ints, const uint32_t *ids, size_t n) {
    PyObject *list = PyList_New((Py_ssize_t)n);
    int keeps = !atomic_flag_test_and_set_explicit(&ints->busy, memory_order_acquire);
    for (size_t i = 0; i < n && list != NULL; i++) {
        PyObject *number = id_int(ints, ids[i], keeps);
        if (number == NULL || PyList_SetItem(list, (Py_ssize_t)i, number) != 0) {
            Py_CLEAR(list);
        }
    }
    if (keeps) {
        atomic_flag_clear_explicit(&ints->busy, memory_order_release);
    }
    return list;
}

static int id_lists_append(id_ints *ints, uintptr_t lists, const uint32_t *ids, const uint64_t *ends, size_t n) {
    PyGILState_STATE state = PyGILState_Ensure();
    int failed = 0;
    for (size_t i = 0, start = 0; i < n && !failed; start = (size_t)ends[i++]) {
        PyObject *list = id_list(ints, ids + start, (size_t)ends[i] - start);
        failed = list == NULL || PyList_Append((PyObject *)lists, list) != 0;
        Py_XDECREF(list);
    }
    PyErr_Clear();
    PyGILState_Release(state);
    return failed ? -1 : 0;
}

#endif
