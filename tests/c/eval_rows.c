/*
Prints the rows that llm.c's EvalLoader makes from an eval file: eval_rows FILE B T RANK PROCESSES. One line per
completion: its example's label, the inputs up to the last token, a bar, and the targets where the mask is 1. The same
source compiles against llm.c's own llmc/dataloader.h. tests/py/test_llmc_evals.py compares the lines with Python's.
*/
#include <stdio.h>
#include <stdlib.h>

#include "llmc/dataloader.h"

static void print_row(const EvalLoader *loader, int label, size_t row) {
    size_t T = loader->T, end = 0;
    for (size_t t = 0; t < T; t++) {
        end = loader->mask[row * T + t] ? t + 1 : end;
    }
    printf("%d", label);
    for (size_t t = 0; t <= end; t++) {
        printf(" %d", loader->inputs[row * T + t]);
    }
    printf(" |");
    for (size_t t = 0; t < end; t++) {
        if (loader->mask[row * T + t]) {
            printf(" %d", loader->targets[row * T + t]);
        }
    }
    printf("\n");
}

int main(int argc, char **argv) {
    EvalLoader loader;
    if (argc != 6) {
        fprintf(stderr, "usage: eval_rows FILE B T RANK PROCESSES\n");
        return 2;
    }
    evalloader_init(&loader, argv[1], (size_t)atoi(argv[2]), (size_t)atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
    for (int batch = 0; batch < loader.num_batches; batch++) {
        int before = loader.current_example_index;
        evalloader_next_batch(&loader);
        for (int i = 0; i < loader.current_example_index - before; i++) {
            for (int c = 0; c < ASSUMED_NUM_COMPLETIONS; c++) {
                print_row(&loader, loader.label[i], (size_t)(i * ASSUMED_NUM_COMPLETIONS + c));
            }
        }
    }
    evalloader_free(&loader);
    return 0;
}
