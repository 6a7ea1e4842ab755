/*
An eval file from hostile bytes, through the drop-in EvalLoader: either one line and an exit, or batches that are
exactly the file's examples, in order. Instead of exiting, the program jumps back to here.
*/
#include "fuzz.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

static const uint8_t *file;
static size_t file_size;
static jmp_buf ended;

/* The functions that the header calls: the file is the fuzzer's bytes, and a message and exit jump back. */
static FILE *fuzz_open(void) { return fmemopen((void *)file, file_size, "rb"); }

static int fuzz_print(const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    REQUIRE(n > 1 && n < (int)sizeof line && strchr(line, '\n') == line + n - 1);
    return n;
}

_Noreturn static void fuzz_exit(int code) {
    REQUIRE(code == EXIT_FAILURE);
    longjmp(ended, 1);
}

/* clang-format off */
#define fopen(path, mode) fuzz_open()
#define fprintf(stream, ...) fuzz_print(__VA_ARGS__)
#define exit(code) fuzz_exit(code)
#include "llmc/dataloader.h"
/* clang-format on */

enum { MOST_B = 20, MOST_T = 256 };

/* The fields of an example. The loader has already read all fields before it. */
static const uint8_t *example_at(int index) {
    const uint8_t *at = file + HEADER_SIZE * sizeof(int32_t);
    while (index-- > 0) {
        at += at[2] | at[3] << 8;
    }
    return at;
}

static int field(const uint8_t *example, size_t i) { return example[2 * i] | example[2 * i + 1] << 8; }

/* The rows of one example are its context and completions, and the mask is 1 before each token of a completion. */
static void check_example(const EvalLoader *loader, int group, int index) {
    const uint8_t *example = example_at(index);
    size_t context = (size_t)field(example, 5), at = 6 + context;
    REQUIRE(field(example, 2) == index && field(example, 3) == loader->label[group]);
    for (size_t c = 0; c < ASSUMED_NUM_COMPLETIONS; c++) {
        size_t length = (size_t)field(example, at++), ones = 0;
        size_t row = ((size_t)group * ASSUMED_NUM_COMPLETIONS + c) * loader->T;
        for (size_t i = 0; i < context; i++) {
            REQUIRE(loader->inputs[row + i] == field(example, 6 + i));
        }
        for (size_t i = 0; i < length; i++, at++) {
            REQUIRE(loader->inputs[row + context + i] == field(example, at));
            REQUIRE(loader->targets[row + context + i - 1] == field(example, at));
            REQUIRE(loader->mask[row + context + i - 1] == 1);
        }
        for (size_t i = 0; i < loader->T; i++) {
            ones += loader->mask[row + i] == 1;
        }
        REQUIRE(ones == length && length > 0);
    }
}

static void check_batches(EvalLoader *loader) {
    static float losses[MOST_B * MOST_T];
    losses[3] = NAN;
    for (int next = loader->start_example_index, b = 0; b <= loader->num_batches && b < 20; b++) {
        evalloader_next_batch(loader);
        int groups = evalloader_examples_per_batch_(loader), served = loader->current_example_index - next;
        REQUIRE(served >= 0 && served <= groups);
        for (int i = 0; i < served; i++) {
            check_example(loader, i, next++);
        }
        REQUIRE(next == loader->end_example_index || served == groups);
        int correct = evalloader_stat_losses(loader, losses);
        REQUIRE(correct >= 0 && correct <= served);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static EvalLoader loader;
    fuzz_input in = {data, size};
    size_t B = fuzz_below(&in, MOST_B), T = fuzz_byte(&in);
    int processes = (int)fuzz_below(&in, 4), rank = (int)fuzz_below(&in, 4);
    uint8_t *copy = fuzz_bytes(&in, in.size, &file_size);
    file = copy;
    memset(&loader, 0, sizeof loader);
    if (setjmp(ended) == 0) {
        evalloader_init(&loader, "file", B, T, rank, processes);
        check_batches(&loader);
        evalloader_reset(&loader);
        evalloader_next_batch(&loader);
    }
    if (loader.eval_file != NULL) {
        evalloader_free(&loader);
    } else {
        free(loader.filename_);
    }
    free(copy);
    return 0;
}
