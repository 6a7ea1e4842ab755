/*
How the drop-in headers handle errors: they print one line on stderr and exit, as llm.c does.
*/
#ifndef LLMC_FAULT_H
#define LLMC_FAULT_H

#include <stdio.h>
#include <stdlib.h>

/* llm.c's sources expect its headers to define fopenCheck and similar functions. Include them if llm.c can be found: on
   the include path, or because this file was copied into its folder. */
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

/* The same for messages of the library, which already name the file. */
static inline void llmc_fail_message(const char *message) {
    fflush(stdout);
    fprintf(stderr, "Error: %s\n", message);
    exit(EXIT_FAILURE);
}

/* Allocates zeroed memory for count items, or ends the program. */
static inline void *llmc_alloc(size_t count, size_t size) {
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL) {
        llmc_fail("memory", "not enough");
    }
    return memory;
}

/* How many batches the DataLoaders have returned. llm.c's trainers load a batch between two samples of text; this is
   the only way for safe_printf to notice that a new text begins. */
static inline unsigned *llmc_batches_served(void) {
    static unsigned count = 0;
    return &count;
}

#endif
