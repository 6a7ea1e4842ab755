/*
How the drop-in headers handle errors: they print one line on stderr and exit, as llm.c does.
*/
#ifndef LLMC_FAULT_H
#define LLMC_FAULT_H

#include <stdio.h>
#include <stdlib.h>

/* llm.c's sources expect its headers to define fopenCheck and similar functions. Include these if they can be found: on
   the include path, or next to this file if it was copied into llm.c. */
#if __has_include("llmc/utils.h")
#include "llmc/utils.h"
#elif __has_include("../llmc/utils.h")
#include "../llmc/utils.h"
#endif

/* Ends the program. `where` is a file or function. */
static inline void llmc_fail(const char *where, const char *message) {
    fflush(stdout);
    fprintf(stderr, "Error: %s: %s\n", where, message);
    exit(EXIT_FAILURE);
}

/* Does the same for a message of the library, which already names the file. */
static inline void llmc_fail_message(const char *message) {
    fflush(stdout);
    fprintf(stderr, "Error: %s\n", message);
    exit(EXIT_FAILURE);
}

/* Allocates zeroed memory for count items, or ends the program. */
static inline void *llmc_alloc(size_t count, size_t size) {
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL) {
        llmc_fail_message("there is not enough memory");
    }
    return memory;
}

/* The state of these headers. Every source file that includes them defines it, and the linker keeps one, so that all
   files of a program share it. */
typedef struct {
    unsigned batches;      /* that the DataLoaders have returned */
    unsigned char kept[8]; /* the beginning of a character that safe_printf has not printed yet */
    size_t kept_length;
    unsigned kept_batches; /* `batches` when the last piece was printed */
} LlmcState;

#if defined(__cplusplus)
extern "C" {
#endif
#if defined(_WIN32)
__attribute__((selectany)) LlmcState llmc_state = {0, {0}, 0, 0};
#else
__attribute__((weak)) LlmcState llmc_state = {0, {0}, 0, 0};
#endif
#if defined(__cplusplus)
}
#endif

#endif
