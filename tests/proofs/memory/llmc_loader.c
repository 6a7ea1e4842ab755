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
static struct {
    unsigned batches;
} llmc_state;

#include "llmc/dataloader.h"

#include <base/base.c>

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

enum { SAMPLES = 3, TOKENS = 2, WORLD = 2 };

/* Any state of the generator, as a damaged checkpoint may hold it, is read inside the array. */
void prove_number(size_t n) {
    static mt19937_state rng;
    rng.left_ = (int)(uint32_t)any_between(0, any_bool() ? (uint32_t)MERSENNE_STATE_N : UINT32_MAX);
    rng.next_ = (uint32_t)any_between(0, any_bool() ? (uint32_t)MERSENNE_STATE_N : UINT32_MAX);
    rng.MATRIX_A[1] = any_bool() ? 0x9908b0dfu : (uint32_t)any_u64();
    (void)randint32(&rng);
    CHECK(rng.next_ > 0 && rng.next_ <= MERSENNE_STATE_N);
    (void)n;
}

unsigned int any_number(mt19937_state *rng) { return (uint32_t)any_u64() ^ rng->next_; }

/* A permutation of n items stays one of n items. */
void prove_shuffle(size_t n) {
    static mt19937_state rng;
    int *items = (int *)any_bytes(n * sizeof *items);
    init_identity_permutation(items, (int)n);
    random_permutation(items, (int)n, &rng);
    dataloader_check_order_(items, n);
    free(items);
}

/* What that shows. */
void any_permutation(int *items, int n, mt19937_state *rng) {
    any_fill(items, (size_t)n * sizeof *items);
    for (int i = 0; i < n; i++) {
        items[i] = (int)any_between(0, (uint64_t)n - 1);
    }
    rng->next_ = (uint32_t)any_u64();
}

/* A loader of n shards at any place of one of them, whose permutations may have been restored wrongly. */
static DataLoader *any_loader(size_t n) {
    static DataLoader loader;
    static char *paths[SHARDS] = {shard_paths[0], shard_paths[1], shard_paths[2]};
    static uint32_t buffer[TOKENS + 1];
    static int inputs[TOKENS], targets[TOKENS], order[SHARDS];
    for (size_t i = 0; i < SHARDS; i++) {
        order[i] = (int)(uint32_t)any_between(0, any_bool() ? n - 1 : UINT32_MAX);
        shard_counts[i] = any_between(0, TOKENS * WORLD * (SAMPLES + 1));
    }
    loader = (DataLoader){.num_processes = WORLD, .B = 1, .T = TOKENS, .should_shuffle = any_bool()};
    loader.process_rank = (int)any_between(0, WORLD - 1);
    loader.glob_result.gl_pathc = n;
    loader.glob_result.gl_pathv = paths;
    loader.shard_indices = order;
    loader.buffer = buffer;
    loader.inputs = inputs;
    loader.targets = targets;
    loader.current_shard_idx = (size_t)any_between(0, n - 1);
    loader.current_sample_idx = (size_t)any_between(0, any_bool() ? SAMPLES : SIZE_MAX);
    dataloader_load_shard_(&loader, (int)loader.current_shard_idx);
    if (loader.should_shuffle) {
        loader.intra_shard_indices = (int *)llmc_alloc(loader.shard_num_samples, sizeof(int));
        for (size_t i = 0; i < loader.shard_num_samples; i++) {
            loader.intra_shard_indices[i] = (int)any_between(0, loader.shard_num_samples - 1);
        }
    }
    return &loader;
}

static void check_place(const DataLoader *loader) {
    CHECK(loader->shard_num_samples > 0 && loader->current_shard_idx < loader->glob_result.gl_pathc);
    CHECK(pybpe_shard_count(loader->shard) > loader->shard_num_samples * WORLD * TOKENS);
    for (size_t i = 0; loader->should_shuffle && i < loader->shard_num_samples; i++) {
        CHECK((size_t)loader->intra_shard_indices[i] < loader->shard_num_samples);
    }
}

static void drop(DataLoader *loader) {
    free(loader->intra_shard_indices);
    pybpe_shard_free(loader->shard);
}

/* After the last sample of any of n shards comes the first of another. */
void prove_advance(size_t n) {
    DataLoader *loader = any_loader(n);
    dataloader_advance_(loader);
    check_place(loader);
    drop(loader);
}

void any_advance(DataLoader *loader) { ASSUME(loader->current_sample_idx < loader->shard_num_samples); }

/* The tokens of the next batch are in its shard. */
void prove_next(size_t n) {
    DataLoader *loader = any_loader(n);
    dataloader_next_batch(loader);
    check_place(loader);
    drop(loader);
}

/* Any place is resumed, with what the loader drew or with what the caller restored, or refused. */
void prove_resume(size_t n) {
    DataLoader *loader = any_loader(n);
    loader->epoch_known_ = any_bool();
    dataloader_resume(loader, (size_t)any_between(0, n), (size_t)any_between(0, SAMPLES));
    check_place(loader);
    drop(loader);
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

PROOFS(PROOF(number, 0, 0, 3, "next_state.0:625,manual_seed.0:624") PROOF(shuffle, 0, 4, 3, "", "randint32:any_number")
           PROOF(advance, 1, 2, 4, "", "random_permutation:any_permutation error_fill:any_error")
               PROOF(next, 1, 3, 4, "", "dataloader_advance_:any_advance error_fill:any_error")
                   PROOF(resume, 1, 2, 4, "",
                         "random_permutation:any_permutation memcmp:any_comparison error_fill:any_error")
                       DRAWN(batches, 0, 20, 4))
