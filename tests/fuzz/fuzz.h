/*
Shared by the fuzz targets: a reader of the fuzzer's bytes, and checks that end the process.

Each target is one file with LLVMFuzzerTestOneInput, as libFuzzer and OSS-Fuzz require. `make fuzz` builds them with
clang, libFuzzer and sanitizers. `make test-all` builds them with replay.c instead, and runs the kept inputs.
*/
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pybpe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Freed memory does not have to be quarantined for longer than one input, and new pages cost more than everything
   else. */
__attribute__((weak)) const char *__asan_default_options(void);
__attribute__((weak)) const char *__asan_default_options(void) { return "quarantine_size_mb=8"; }

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #condition);                                  \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The fuzzer's bytes, taken from the front. After the end there are zeros. */
typedef struct fuzz_input {
    const uint8_t *data;
    size_t size;
} fuzz_input;

static inline unsigned fuzz_byte(fuzz_input *in) {
    if (in->size == 0) {
        return 0;
    }
    in->size -= 1;
    return *in->data++;
}

static inline unsigned fuzz_below(fuzz_input *in, unsigned n) { return fuzz_byte(in) % n; }

/* At most n bytes, in memory of exactly their size, so that a sanitizer sees each read beyond them. The caller frees
   them. */
static inline uint8_t *fuzz_bytes(fuzz_input *in, size_t n, size_t *size) {
    *size = n < in->size ? n : in->size;
    uint8_t *copy = malloc(*size + (*size == 0));
    REQUIRE(copy != NULL);
    if (*size > 0) {
        memcpy(copy, in->data, *size);
    }
    in->data += *size;
    in->size -= *size;
    return copy;
}

/* An error must have one of the codes and a message. */
static inline void fuzz_expect_error(int code, const pybpe_error *err) {
    REQUIRE(code < 0 && code >= PYBPE_ERR_LIMIT && err->code == code);
    REQUIRE(err->msg[0] != '\0' && memchr(err->msg, '\0', sizeof err->msg) != NULL && strchr(err->msg, '\n') == NULL);
}

#endif
