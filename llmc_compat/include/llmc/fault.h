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

/* Counts the batches that the DataLoaders have returned. llm.c's trainers load a batch between two samples of text, and
   safe_printf has no other way to notice that a new text begins. */
static inline unsigned *llmc_batches_served(void) {
    static unsigned count = 0;
    return &count;
}

#endif
