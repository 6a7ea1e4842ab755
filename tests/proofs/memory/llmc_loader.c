/*
llmc_compat/include/llmc/dataloader.h: batches of any shards, and any order of calls.
*/
#include "any_shards.h"

#include <stdio.h>

#define LLMC_FAULT_H /* llmc_fail ends the program: here, the draw */
#define glob(pattern, flags, failed, found) any_glob(found)
#define globfree(found) free((found)->gl_pathv)

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

#include <base.c>

/* A number below a limit; sometimes the limit itself, or any number. */
static uint64_t any_below(uint64_t limit) {
    switch (any_between(0, 15)) {
    case 0:
        return limit;
    case 1:
        return any_between(0, UINT32_MAX);
    default:
        return any_between(0, limit - 1);
    }
}

/* What a trainer restores from a checkpoint: any generator, and any permutations. */
static void any_restored(DataLoader *loader) {
    loader->shuffle_rng.state_[any_between(0, 623)] += (unsigned)any_between(0, 1);
    for (size_t i = 0; i < loader->glob_result.gl_pathc; i++) {
        loader->shard_indices[i] = (int)any_below(loader->glob_result.gl_pathc);
    }
    for (size_t i = 0; loader->should_shuffle && i < loader->shard_num_samples; i++) {
        loader->intra_shard_indices[i] = (int)any_below(loader->shard_num_samples);
    }
}

static void any_call(DataLoader *loader) {
    switch (any_between(0, 7)) {
    case 0:
        dataloader_reset(loader);
        break;
    case 1:
        any_restored(loader);
        __attribute__((fallthrough));
    case 2:
        dataloader_resume(loader, (size_t)any_below(loader->glob_result.gl_pathc), (size_t)any_between(0, 4));
        break;
    default:
        dataloader_next_batch(loader);
    }
}

/* The tokens of each batch are in its shard, and fit in its rows. */
void prove_batches(size_t n) {
    DataLoader loader;
    size_t B = (size_t)any_between(0, 3), T = (size_t)any_between(0, 3);
    int world = (int)any_between(0, 2), rank = (int)any_between(0, 2);
    any_shards((uint64_t)world * B * T);
    dataloader_init(&loader, "", B, T, rank, world, any_bool());
    for (size_t i = 0; i < n; i++) {
        any_call(&loader);
    }
    dataloader_free(&loader);
}

PROOFS(DRAWN(batches, 0, 20, 4))
