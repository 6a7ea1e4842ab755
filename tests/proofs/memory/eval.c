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
static struct {
    unsigned batches;
} llmc_state;

#include "llmc/dataloader.h"

enum { EXAMPLES = 3, BUFFER = 32768 /* as evalloader_init allocates it */ };

#if defined(PROVE)
enum { ROOM = 14, MOST_NUMBERS = ROOM }; /* CBMC takes long for a large buffer, so its examples are short */
#else
enum { ROOM = BUFFER, MOST_NUMBERS = UINT16_MAX / 2 - 3 };
#endif

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

/* The numbers that follow the first fields of an example fit in the buffer. */
void prove_begin(size_t n) {
    EvalLoader loader = {.filename_ = (char *)"", .current_example_index = (int)any_between(0, INT32_MAX)};
    size_t bytes = evalloader_begin_example_(&loader);
    CHECK(bytes > 0 && bytes % 2 == 0 && bytes <= BUFFER * sizeof(uint16_t));
    (void)n;
}

/* What prove_begin shows, and any numbers. */
size_t any_begin(EvalLoader *loader) {
    (void)loader;
    return 2 * (size_t)any_between(1, MOST_NUMBERS);
}

void any_u16(EvalLoader *loader, uint16_t *to, size_t count) {
    (void)loader;
    any_fill(to, count * sizeof *to);
}

/* An example with any contents stays in its rows of n tokens. */
void prove_example(size_t n) {
    enum { EXAMPLES_IN_BATCH = 2 };
    size_t rows = EXAMPLES_IN_BATCH * ASSUMED_NUM_COMPLETIONS;
    EvalLoader loader = {.B = rows, .T = n, .filename_ = (char *)""};
    loader.current_example_index = (int)any_between(0, INT32_MAX - 1);
    loader.buffer = malloc(ROOM * sizeof *loader.buffer);
    loader.inputs = malloc(rows * n * sizeof *loader.inputs);
    loader.targets = malloc(rows * n * sizeof *loader.targets);
    loader.mask = malloc(rows * n * sizeof *loader.mask);
    loader.label = malloc(EXAMPLES_IN_BATCH * sizeof *loader.label);
    ASSUME(loader.buffer && loader.inputs && loader.targets && loader.mask && loader.label);
    evalloader_next_example_(&loader, (int)any_between(0, EXAMPLES_IN_BATCH - 1));
    CHECK(loader.num_completions == ASSUMED_NUM_COMPLETIONS);
    free(loader.buffer);
    free(loader.inputs);
    free(loader.targets);
    free(loader.mask);
    free(loader.label);
}

PROOFS(PROOF(header, 0, 0, 5, "evalloader_read_u16_.0:513") PROOF(begin, 0, 0, 4)
           PROOF(example, 1, 4, 1, "evalloader_next_example_.2:5",
                 "evalloader_begin_example_:any_begin evalloader_read_u16_:any_u16") DRAWN(example, 5, 8, 1))
