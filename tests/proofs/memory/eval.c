/*
llmc_compat/include/llmc/dataloader.h: eval files, as llm.c's programs read them.
*/
#define fread any_fread
#define fseek any_fseek
#define snprintf no_snprintf
#define LLMC_FAULT_H /* llmc_fail ends the program: here, the draw */

#include "prove.h"

#include <stdio.h>

int no_snprintf(char *to, size_t n, const char *format, ...) { return (int)n + *format + *to; }

static void llmc_fail(const char *where, const char *message) {
    (void)where;
    (void)message;
    ASSUME(false);
}
static void llmc_fail_message(const char *message) { llmc_fail("", message); }
static void *llmc_alloc(size_t count, size_t size) {
    void *memory = calloc(count, size);
    ASSUME(memory != NULL);
    return memory;
}
static unsigned *llmc_batches_served(void) {
    static unsigned count;
    return &count;
}

#include "llmc/dataloader.h"

enum { EXAMPLES = 3 };

/* Any file. */
size_t any_fread(void *data, size_t size, size_t n, FILE *file) {
    (void)file;
    if (any_bool()) {
        return 0;
    }
    any_fill(data, size * n);
    return n;
}

int any_fseek(FILE *file, long offset, int whence) {
    (void)file;
    (void)whence;
    CHECK(offset >= 0);
    return any_bool() ? 0 : -1;
}

/* Any header, and any number of processes: the examples of a process are in the file. */
void prove_header(size_t n) {
    EvalLoader loader = {.B = (size_t)any_u64(), .T = (size_t)any_u64(), .filename_ = (char *)""};
    loader.process_rank = (int)(uint32_t)any_u64();
    loader.num_processes = (int)(uint32_t)any_u64();
    dataloader_check_arguments_(loader.B, loader.T, loader.process_rank, loader.num_processes);
    evalloader_check_header_(&loader);
    ASSUME(loader.num_examples <= EXAMPLES);
    evalloader_reset(&loader);
    CHECK(loader.start_example_index >= 0 && loader.start_example_index <= loader.end_example_index);
    CHECK(loader.end_example_index <= loader.num_examples);
    (void)n;
}

PROOFS(PROOF(header, 0, 0, 5, "evalloader_read_u16_.0:513"))
