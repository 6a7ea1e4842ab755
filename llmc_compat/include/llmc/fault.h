/*
What the drop-in headers do when something is wrong: one line on stderr, then exit, as llm.c does.
*/
#ifndef LLMC_FAULT_H
#define LLMC_FAULT_H

#include <stdio.h>
#include <stdlib.h>

/* llm.c's sources expect fopenCheck and its kin to come with its headers. They do if llm.c is in reach: on the
   include path, or because this file was copied into its folder. */
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

/* The same for messages of the library, which name the file themselves. */
static inline void llmc_fail_message(const char *message) {
    fflush(stdout);
    fprintf(stderr, "Error: %s\n", message);
    exit(EXIT_FAILURE);
}

/* Cleared memory for count items, or the end of the program. */
static inline void *llmc_alloc(size_t count, size_t size) {
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL) {
        llmc_fail("memory", "not enough");
    }
    return memory;
}

/* How many batches the DataLoaders have served. llm.c's trainers load one between two samples of text, which is all that
   tells safe_printf that a new text begins. */
static inline unsigned *llmc_batches_served(void) {
    static unsigned count = 0;
    return &count;
}

#endif
