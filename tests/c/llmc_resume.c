/*
Stops a walk through shards at every step, as llm.c's trainer does with -n 1, and resumes from there, as it does with
-y 1: with llm.c's own DataLoader or with the drop-in header, depending on which "llmc/dataloader.h" is found. A struct
holds what save_state in train_gpt2.cu writes; what load_state asserts is checked.

    llmc_resume PATTERN B T PROCESSES

Prints a line, and exits with 0 if every resumed walk returns the same batches as the uninterrupted walk.
Run by tests/py/test_equal_shards.py.
*/
#include "llmc/dataloader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AFTER = 24 }; /* batches that are compared at each step; of those at the ends of shards, an epoch */

typedef struct state {
    size_t shard, sample, shards, samples;
    int *shard_indices, *sample_indices;
    mt19937_state rng;
} state;

static int *copy_indices(const int *from, size_t n) {
    int *to = (int *)malloc(n * sizeof *to);
    return to == NULL ? NULL : (int *)memcpy(to, from, n * sizeof *to);
}

static state save(const DataLoader *loader) {
    state s;
    s.shard = loader->current_shard_idx;
    s.sample = loader->current_sample_idx;
    s.shards = loader->glob_result.gl_pathc;
    s.samples = loader->shard_num_samples;
    s.shard_indices = copy_indices(loader->shard_indices, s.shards);
    s.sample_indices = copy_indices(loader->intra_shard_indices, s.samples);
    s.rng = loader->shuffle_rng;
    return s;
}

/* Restores the arrays of the state. Returns 0 where load_state would abort. */
static int load(DataLoader *loader, state s) {
    if (s.shards != loader->glob_result.gl_pathc || s.samples != loader->shard_num_samples) {
        free(s.shard_indices);
        free(s.sample_indices);
        return 0;
    }
    free(loader->shard_indices);
    free(loader->intra_shard_indices);
    loader->shard_indices = s.shard_indices;
    loader->intra_shard_indices = s.sample_indices;
    loader->shuffle_rng = s.rng;
    dataloader_resume(loader, s.shard, s.sample);
    return 1;
}

static unsigned long long next_hash(DataLoader *loader) {
    unsigned long long h = 14695981039346656037u;
    dataloader_next_batch(loader);
    for (size_t i = 0; i < loader->B * loader->T; i++) {
        h = (h ^ (unsigned)loader->inputs[i]) * 1099511628211u;
        h = (h ^ (unsigned)loader->targets[i]) * 1099511628211u;
    }
    return h;
}

/* The number of batches in an epoch. */
static int epoch_batches(DataLoader *loader) {
    int batches = 0;
    for (size_t i = 0; i < loader->glob_result.gl_pathc; i++) {
        dataloader_load_shard_(loader, (int)i);
        batches += (int)loader->shard_num_samples;
    }
    return batches;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: llmc_resume PATTERN B T PROCESSES\n");
        return 2;
    }
    size_t B = (size_t)atoi(argv[2]), T = (size_t)atoi(argv[3]);
    int world = atoi(argv[4]), resumes = 0, aborts = 0, different = 0;
    for (int rank = 0; rank < world; rank++) {
        DataLoader loader, walker;
        dataloader_init(&loader, argv[1], B, T, rank, world, 1);
        int epoch = epoch_batches(&loader), batches = 3 * epoch;
        dataloader_free(&loader);
        unsigned long long *expected = (unsigned long long *)calloc((size_t)batches, sizeof *expected);
        if (expected == NULL) {
            return 2;
        }
        dataloader_init(&loader, argv[1], B, T, rank, world, 1);
        for (int i = 0; i < batches; i++) {
            expected[i] = next_hash(&loader);
        }
        dataloader_free(&loader);
        dataloader_init(&walker, argv[1], B, T, rank, world, 1);
        for (int step = 0; step <= 2 * epoch; step++) {
            DataLoader resumed;
            dataloader_init(&resumed, argv[1], B, T, rank, world, 1);
            resumes += 1;
            if (load(&resumed, save(&walker))) {
                int at_end = walker.current_sample_idx + 1 >= walker.shard_num_samples;
                int last = step + (at_end ? epoch : AFTER) < batches ? step + (at_end ? epoch : AFTER) : batches;
                for (int i = step; i < last; i++) {
                    different += next_hash(&resumed) != expected[i];
                }
            } else {
                aborts += 1;
            }
            dataloader_free(&resumed);
            next_hash(&walker);
        }
        dataloader_free(&walker);
        free(expected);
    }
    printf("%d resumed, %d aborts, %d other batches\n", resumes, aborts, different);
    return aborts > 0 || different > 0;
}
