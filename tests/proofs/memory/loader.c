/*
csrc/llmc/loader.c: batches of any shards, and any order of calls.
*/
#include "any_shards.h"

#define glob(pattern, flags, failed, found) any_glob(found)
#define globfree(found) free((found)->gl_pathv)

#include <base/base.c>
#include <llmc/loader.c>
#include <llmc/mt19937.c>

static void any_call(pybpe_loader *l, int32_t *inputs, int32_t *targets) {
    switch (any_between(0, 3)) {
    case 0:
        (void)pybpe_loader_reset(l, NULL);
        break;
    case 1:
        (void)pybpe_loader_seek(l, any_between(0, 40), NULL);
        break;
    default:
        (void)pybpe_loader_next(l, inputs, targets, NULL);
    }
}

/* ---------------------------------------------------------------------------------------------------
Random numbers
*/

/* The state of the generator is read and renewed inside its array. */
void prove_number(size_t n) {
    static mt19937 rng;
    for (size_t i = 0; i < n; i++) {
        rng.state[any_between(0, MT19937_N - 1)] = (uint32_t)any_u64();
    }
    rng.next = (uint32_t)any_between(0, MT19937_N);
    (void)mt19937_next(&rng);
    CHECK(rng.next > 0 && rng.next <= MT19937_N);
}

void any_renewal(mt19937 *rng) {
    CHECK(rng->next == MT19937_N);
    rng->next = 0;
}

/* Skipping up to n states of the generator ends inside one. */
void prove_skip(size_t n) {
    static mt19937 rng;
    rng.next = (uint32_t)any_between(0, MT19937_N);
    mt19937_skip(&rng, any_between(0, n * MT19937_N));
    CHECK(rng.next <= MT19937_N);
}

uint32_t any_number(mt19937 *rng) { return (uint32_t)any_u64() ^ rng->next; }

/* n items stay the same set. */
void prove_shuffle(size_t n) {
    static mt19937 rng;
    uint32_t *items = (uint32_t *)any_bytes(n * sizeof *items);
    order_reset(items, n);
    mt19937_seed(&rng, SEED);
    mt19937_shuffle(&rng, items, n);
    for (size_t i = 0; i < n; i++) {
        CHECK(items[i] < n);
    }
    free(items);
}

/* What that shows. */
void any_shuffle(mt19937 *rng, uint32_t *items, size_t n) {
    CHECK(rng->next <= MT19937_N);
    any_fill(items, n * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        items[i] = (uint32_t)any_between(0, n - 1);
        for (size_t k = 0; k < i; k++) {
            ASSUME(items[k] != items[i]);
        }
    }
}

void any_seed(mt19937 *rng, uint32_t seed) { rng->next = seed != 0 ? MT19937_N : 0; }

void any_skip(mt19937 *rng, uint64_t n) { rng->next = (uint32_t)any_between(0, n > 0 ? MT19937_N : 0); }

/* ---------------------------------------------------------------------------------------------------
Order
*/

enum { SAMPLES = 3, TOKENS = 2, WORLD = 2 };

static pybpe_loader loader;
static uint64_t counts[SHARDS];
static uint32_t shard_order[SHARDS], sample_order[SAMPLES];

/* A loader of n shards with any number of samples each, in any order and at any place. */
static pybpe_loader *any_loader(size_t n) {
    for (size_t i = 0; i < n; i++) {
        counts[i] = any_between(TOKENS * WORLD + 1, TOKENS * WORLD * (SAMPLES + 1));
        shard_order[i] = (uint32_t)any_between(0, n - 1);
    }
    loader = (pybpe_loader){.counts = counts, .shards_count = n, .B = 1, .T = TOKENS, .world = WORLD};
    loader.mem = mem_of(NULL);
    loader.rank = any_between(0, WORLD - 1);
    loader.shuffle = any_bool();
    loader.shard_order = shard_order;
    loader.sample_order = sample_order;
    loader.rng.next = MT19937_N;
    loader.shard_at = (size_t)any_between(0, n - 1);
    uint64_t samples = shard_samples(&loader, current_shard(&loader));
    loader.sample_at = any_between(0, samples);
    for (size_t i = 0; i < samples; i++) {
        sample_order[i] = (uint32_t)any_between(0, samples - 1);
    }
    return &loader;
}

static void check_place(const pybpe_loader *l, bool has_next) {
    CHECK(l->shard_at < l->shards_count);
    uint64_t samples = shard_samples(l, current_shard(l));
    CHECK(l->sample_at + has_next <= samples);
    for (size_t i = 0; l->shuffle && i < samples; i++) {
        CHECK(l->sample_order[i] < samples);
    }
}

/* After the last sample of any of n shards comes the first of the next. */
void prove_advance(size_t n) {
    pybpe_loader *l = any_loader(n);
    advance(l);
    check_place(l, true);
}

/* Every batch of several epochs of n shards is found. */
void prove_seek(size_t n) {
    pybpe_loader *l = any_loader(n);
    (void)pybpe_loader_seek(l, any_between(0, 2 * SAMPLES * n + 1), NULL);
    check_place(l, false);
}

void any_advance(pybpe_loader *l) { ASSUME(l->sample_at < shard_samples(l, current_shard(l))); }

/* The tokens of the next batch are in its shard, which may have become shorter or longer. */
void prove_next(size_t n) {
    int32_t inputs[TOKENS], targets[TOKENS];
    uint32_t buffer[TOKENS + 1];
    pybpe_loader *l = any_loader(n);
    char *paths[SHARDS] = {shard_paths[0], shard_paths[1], shard_paths[2]};
    for (size_t i = 0; i < SHARDS; i++) {
        shard_counts[i] = counts[i];
    }
    l->found.gl_pathv = paths;
    l->buffer = buffer;
    l->open_index = (size_t)any_between(0, n - 1);
    if (pybpe_shard_open(&l->open, paths[l->open_index], NULL, NULL) == PYBPE_OK) {
        (void)pybpe_loader_next(l, inputs, targets, NULL);
        check_place(l, false);
        pybpe_shard_free(l->open);
    }
}

/* ---------------------------------------------------------------------------------------------------
Making
*/

void any_sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *)) {
    (void)compare;
    check_readable(items, count * size);
}

void any_epoch(pybpe_loader *l) {
    for (size_t i = 0; l->shuffle && i < l->shards_count; i++) {
        check_readable(l->shard_order, l->shards_count * sizeof *l->shard_order);
        check_readable(l->sample_order, (size_t)shard_samples(l, i) * sizeof *l->sample_order);
    }
}

/* There is memory for the orders of any shards, or everything that was allocated is freed. */
void prove_new(size_t n) {
    pybpe_loader *l;
    any_shards(TOKENS * WORLD);
    int code = pybpe_loader_new(&l, "", 1, TOKENS, (int)any_between(0, WORLD - 1), WORLD, any_bool(), NULL, NULL);
    CHECK((code == PYBPE_OK) == (l != NULL));
    pybpe_loader_free(l);
    (void)n;
}

/* ---------------------------------------------------------------------------------------------------
All together
*/

/* The tokens of each batch are in its shard, and fit in its rows. */
void prove_batches(size_t n) {
    pybpe_loader *l;
    size_t B = (size_t)any_between(0, 3), T = (size_t)any_between(0, 3);
    int world = (int)any_between(0, 2), rank = (int)any_between(0, 2);
    int32_t *inputs = malloc(B * T * sizeof *inputs), *targets = malloc(B * T * sizeof *targets);
    ASSUME(inputs != NULL && targets != NULL);
    any_shards((uint64_t)world * B * T);
    if (pybpe_loader_new(&l, "", B, T, rank, world, any_bool(), NULL, NULL) == PYBPE_OK) {
        for (size_t i = 0; i < n; i++) {
            any_call(l, inputs, targets);
        }
        CHECK(pybpe_loader_shards(l) > 0 && pybpe_loader_tokens(l) > pybpe_loader_batches(l));
        pybpe_loader_free(l);
    }
    free(inputs);
    free(targets);
}

PROOFS(PROOF(number, 0, 1, 2, "mt19937_renew.0:625") PROOF(skip, 1, 3, 3, "", "mt19937_renew:any_renewal")
           PROOF(shuffle, 0, 4, 3, "", "mt19937_next:any_number mt19937_seed:any_seed")
               PROOF(advance, 1, 3, 5, "", "mt19937_shuffle:any_shuffle")
                   PROOF(seek, 1, 2, 9, "", "mt19937_shuffle:any_shuffle mt19937_skip:any_skip mt19937_seed:any_seed")
                       PROOF(next, 1, 3, 5, "", "advance:any_advance")
                           PROOF(new, 0, 0, 4, "", "qsort:any_sort start_epoch:any_epoch mt19937_seed:any_seed")
                               DRAWN(batches, 0, 20, 4))
