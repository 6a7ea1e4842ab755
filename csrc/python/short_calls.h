/*
Python functions for short texts, written with Python's own API instead of cffi's: a call through cffi takes longer than the
encoding of a sentence. For cffi's module only.

    encode(text) -> list of ids             encode_array(text) -> numpy.ndarray         count(text) -> int
    encode_ordinary(text) -> list of ids    decode(list of ids) -> str                  decode_bytes(list of ids) -> bytes

They return None for anything else than a short str or bytes, or a short list of ints, and after an error of their own.
Then the caller takes the long way, which knows what to say about it. An error while numpy is imported is raised. The
functions of a tokenizer share a cache of words, so only one of them can run at a time. With a GIL, that is so anyway.
Without one, a call that meets another one returns None.
*/
#ifndef PYBPE_PYTHON_SHORT_CALLS_H
#define PYBPE_PYTHON_SHORT_CALLS_H

#include "id_lists.h"
#include "pybpe.h"

/* Part of the stable ABI since CPython 3.7. cffi asks for the declarations of an older one. */
PyAPI_FUNC(Py_ssize_t) PyUnicode_GetLength(PyObject *);

/* pybpe: begin cdef */

/* Puts the functions above into a dict, which is at this address. All that encode, except encode_ordinary, look for the
   special tokens `s`, which may be NULL. `ints` has room for all ids, and `id_bytes` is the size of an id in an array: 2
   or 4. Whoever calls the functions keeps e, s, v and ints alive. Returns 0, or -1 if memory ran out. */
static int short_calls_add(uintptr_t dict, const pybpe_encoder *e, const pybpe_specials *s, const pybpe_vocab *v,
                           id_ints *ints, int id_bytes);

/* pybpe: end cdef */

enum { SHORT_TEXT = 8192, SHORT_IDS = 1024 }; /* bytes, ids. What a call needs for them is on the stack */

typedef struct short_calls {
    const pybpe_encoder *encoder;
    const pybpe_specials *specials;
    const pybpe_vocab *vocab;
    pybpe_cache *cache;
    id_ints *ints;
    int id_bytes;
    _Atomic(void **) numpy; /* its C functions. NULL before the first array */
    atomic_flag busy;
} short_calls;

static void short_calls_free(PyObject *capsule) {
    short_calls *calls = (short_calls *)PyCapsule_GetPointer(capsule, NULL);
    pybpe_cache_free(calls->cache);
    free(calls);
}

/* Returns a new reference to None, and forgets the error: the long way meets it again. Python code must not have run, as
   its errors are the caller's: KeyboardInterrupt comes only once. */
static PyObject *short_none(void) {
    PyErr_Clear();
    Py_INCREF(Py_None);
    return Py_None;
}

/* Encodes a short text to ids of id_bytes. There is room for SHORT_TEXT ids. Returns their number, or -1. */
static Py_ssize_t short_encode(short_calls *calls, const pybpe_specials *specials, PyObject *text, void *ids,
                               int id_bytes) {
    PyObject *bytes = NULL;
    if (PyUnicode_Check(text) && PyUnicode_GetLength(text) <= SHORT_TEXT) {
        bytes = PyUnicode_AsUTF8String(text); /* not PyUnicode_AsUTF8AndSize, which would keep it as long as the str */
    } else if (PyBytes_Check(text)) {
        bytes = text;
        Py_INCREF(bytes);
    }
    char *start = NULL;
    Py_ssize_t n = 0, found = -1;
    if (bytes != NULL && PyBytes_AsStringAndSize(bytes, &start, &n) == 0 && n <= SHORT_TEXT &&
        !atomic_flag_test_and_set_explicit(&calls->busy, memory_order_acquire)) {
        size_t count = 0;
        pybpe_error err;
        int code = pybpe_encode(calls->encoder, calls->cache, specials, (const uint8_t *)start, (size_t)n, ids,
                                id_bytes, SHORT_TEXT, &count, &err);
        atomic_flag_clear_explicit(&calls->busy, memory_order_release);
        found = code == PYBPE_OK ? (Py_ssize_t)count : -1;
    }
    Py_XDECREF(bytes);
    return found;
}

/* Returns the ids of a text as a list, or None. */
static PyObject *short_list(short_calls *calls, const pybpe_specials *specials, PyObject *text) {
    uint32_t ids[SHORT_TEXT];
    Py_ssize_t n = short_encode(calls, specials, text, ids, 4);
    PyObject *list = n < 0 ? NULL : id_list(calls->ints, ids, (size_t)n);
    return list != NULL ? list : short_none();
}

static PyObject *short_encode_all(PyObject *self, PyObject *text) {
    short_calls *calls = (short_calls *)PyCapsule_GetPointer(self, NULL);
    return short_list(calls, calls->specials, text);
}

static PyObject *short_encode_ordinary(PyObject *self, PyObject *text) {
    return short_list((short_calls *)PyCapsule_GetPointer(self, NULL), NULL, text);
}

/* The C functions of numpy that short_array uses have fixed places in a table: PyArray_GetNDArrayCVersion,
   PyArray_Type, PyArray_New and PyArray_GetPtr. numpy's own headers would tie the module to the Python that compiles it.
   The upper half of the version changes when a place does. */
enum { NUMPY_VERSION = 0, NUMPY_TYPE = 2, NUMPY_NEW = 93, NUMPY_AT = 160, NUMPY_UINT16 = 4, NUMPY_UINT32 = 6 };
typedef unsigned (*numpy_version_fn)(void);
typedef PyObject *(*numpy_new_fn)(void *type, int dimensions, const Py_ssize_t *shape, int number_type,
                                  const Py_ssize_t *strides, void *data, int item_size, int flags, PyObject *like);
typedef void *(*numpy_at_fn)(PyObject *array, const Py_ssize_t *index);

/* Returns a module, or NULL: without an exception if it cannot be found, with one after any other error. */
static PyObject *short_import(const char *name) {
    PyObject *module = PyImport_ImportModule(name);
    if (module == NULL && PyErr_ExceptionMatches(PyExc_ImportError)) {
        PyErr_Clear();
    }
    return module;
}

/* Returns the C functions of numpy 1 or 2, or NULL, with or without an exception like short_import. Imports numpy itself
   first. By the full name of a module in it, Python would lock that module and then numpy, while a thread that imports
   numpy locks them in the other order. Python then shows one of them an incomplete module, and after that nobody can
   import numpy any more. */
static void **short_numpy(short_calls *calls) {
    void **numpy = atomic_load_explicit(&calls->numpy, memory_order_acquire);
    if (numpy != NULL) {
        return numpy;
    }
    PyObject *package = short_import("numpy");
    PyObject *module = package == NULL ? NULL : short_import("numpy._core._multiarray_umath");
    if (package != NULL && module == NULL && PyErr_Occurred() == NULL) {
        module = short_import("numpy.core._multiarray_umath");
    }
    PyObject *table = module == NULL ? NULL : PyObject_GetAttrString(module, "_ARRAY_API");
    numpy = table == NULL ? NULL : (void **)PyCapsule_GetPointer(table, NULL);
    const unsigned version = numpy == NULL ? 0 : ((numpy_version_fn)numpy[NUMPY_VERSION])() >> 24;
    numpy = version == 1 || version == 2 ? numpy : NULL;
    atomic_store_explicit(&calls->numpy, numpy, memory_order_release);
    Py_XDECREF(table);
    Py_XDECREF(module); /* sys.modules keeps it */
    Py_XDECREF(package);
    return numpy;
}

/* Returns a new array of n ids, or NULL, with or without an exception like short_import. */
static PyObject *short_array(short_calls *calls, const void *ids, Py_ssize_t n) {
    void **numpy = short_numpy(calls);
    const int type = calls->id_bytes == 2 ? NUMPY_UINT16 : NUMPY_UINT32;
    const Py_ssize_t first = 0;
    PyObject *array =
        numpy == NULL ? NULL : ((numpy_new_fn)numpy[NUMPY_NEW])(numpy[NUMPY_TYPE], 1, &n, type, NULL, NULL, 0, 0, NULL);
    if (array != NULL) {
        memcpy(((numpy_at_fn)numpy[NUMPY_AT])(array, &first), ids, (size_t)n * (size_t)calls->id_bytes);
    }
    return array;
}

static PyObject *short_encode_array(PyObject *self, PyObject *text) {
    short_calls *calls = (short_calls *)PyCapsule_GetPointer(self, NULL);
    uint32_t ids[SHORT_TEXT];
    Py_ssize_t n = short_encode(calls, calls->specials, text, ids, calls->id_bytes);
    if (n < 0) {
        return short_none();
    }
    PyObject *array = short_array(calls, ids, n);
    return array != NULL || PyErr_Occurred() != NULL ? array : short_none();
}

static PyObject *short_count(PyObject *self, PyObject *text) {
    short_calls *calls = (short_calls *)PyCapsule_GetPointer(self, NULL);
    uint32_t ids[SHORT_TEXT];
    Py_ssize_t n = short_encode(calls, calls->specials, text, ids, 4);
    PyObject *count = n < 0 ? NULL : PyLong_FromSsize_t(n);
    return count != NULL ? count : short_none();
}

/* Returns a new reference to an item of a list, or NULL. Without a GIL, another thread can change the list meanwhile. */
static PyObject *short_item(PyObject *list, Py_ssize_t i) {
#if defined(Py_GIL_DISABLED)
    return PyList_GetItemRef(list, i);
#else
    PyObject *item = PyList_GetItem(list, i);
    Py_XINCREF(item);
    return item;
#endif
}

/* Decodes a short list of ints to at most SHORT_TEXT bytes. Returns their number, or -1. */
static Py_ssize_t short_decode(PyObject *self, PyObject *list, uint8_t *bytes) {
    short_calls *calls = (short_calls *)PyCapsule_GetPointer(self, NULL);
    Py_ssize_t n = PyList_Check(list) ? PyList_Size(list) : SHORT_IDS + 1;
    uint32_t ids[SHORT_IDS];
    if (n > SHORT_IDS) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *number = short_item(list, i);
        unsigned long id = number != NULL && PyLong_Check(number) ? PyLong_AsUnsignedLong(number) : calls->ints->tokens;
        Py_XDECREF(number);
        if (id >= calls->ints->tokens) { /* as is the -1 of an error */
            return -1;
        }
        ids[i] = (uint32_t)id;
    }
    size_t length = 0;
    pybpe_error err;
    int code = pybpe_decode(calls->vocab, ids, 4, (size_t)n, bytes, SHORT_TEXT, &length, &err);
    return code == PYBPE_OK ? (Py_ssize_t)length : -1;
}

static PyObject *short_decode_str(PyObject *self, PyObject *list) {
    uint8_t bytes[SHORT_TEXT];
    Py_ssize_t n = short_decode(self, list, bytes);
    PyObject *text = n < 0 ? NULL : PyUnicode_DecodeUTF8((const char *)bytes, n, "replace");
    return text != NULL ? text : short_none();
}

static PyObject *short_decode_bytes(PyObject *self, PyObject *list) {
    uint8_t bytes[SHORT_TEXT];
    Py_ssize_t n = short_decode(self, list, bytes);
    PyObject *found = n < 0 ? NULL : PyBytes_FromStringAndSize((const char *)bytes, n);
    return found != NULL ? found : short_none();
}

static PyMethodDef short_functions[] = {
    {"encode", short_encode_all, METH_O, NULL},         {"encode_ordinary", short_encode_ordinary, METH_O, NULL},
    {"encode_array", short_encode_array, METH_O, NULL}, {"count", short_count, METH_O, NULL},
    {"decode", short_decode_str, METH_O, NULL},         {"decode_bytes", short_decode_bytes, METH_O, NULL},
};

/* Returns a capsule that owns new short_calls, or NULL. */
static PyObject *short_calls_new(const pybpe_encoder *e) {
    short_calls *calls = (short_calls *)calloc(1, sizeof *calls);
    PyObject *capsule = calls == NULL ? NULL : PyCapsule_New(calls, NULL, short_calls_free);
    if (capsule == NULL) {
        free(calls);
        return NULL;
    }
    pybpe_error err;
    if (pybpe_cache_new(&calls->cache, e, NULL, &err) != PYBPE_OK) {
        Py_DECREF(capsule);
        return NULL;
    }
    return capsule;
}

static int short_calls_add(uintptr_t dict, const pybpe_encoder *e, const pybpe_specials *s, const pybpe_vocab *v,
                           id_ints *ints, int id_bytes) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *capsule = short_calls_new(e);
    int failed = capsule == NULL;
    if (!failed) {
        short_calls *calls = (short_calls *)PyCapsule_GetPointer(capsule, NULL);
        calls->encoder = e;
        calls->specials = s;
        calls->vocab = v;
        calls->ints = ints;
        calls->id_bytes = id_bytes;
        atomic_init(&calls->numpy, NULL);
        atomic_flag_clear(&calls->busy);
    }
    for (size_t i = 0; i < sizeof short_functions / sizeof *short_functions && !failed; i++) {
        PyObject *function = PyCFunction_NewEx(&short_functions[i], capsule, NULL);
        failed = function == NULL || PyDict_SetItemString((PyObject *)dict, short_functions[i].ml_name, function) != 0;
        Py_XDECREF(function);
    }
    Py_XDECREF(capsule);
    PyErr_Clear();
    PyGILState_Release(state);
    return failed ? -1 : 0;
}

#endif
