/*
The DataLoader: the batches that llm.c's llmc/dataloader.h serves, in the same order.

A shard is cut into samples of world * B * T tokens; process `rank` takes its B * T of each, and one token
more for the last target. Samples overlap by that token only:

    tokens    0 ........ BT ........ 2BT ........ 3BT ........ 4BT ...
    sample 0  [rank 0     ][rank 1     ]                                   world = 2
    sample 1                            [rank 0     ][rank 1     ]

With shuffling llm.c draws from one generator, seeded with 42 + rank: a permutation of the shards at every
start of an epoch, and one of the samples whenever a shard is entered. The permutations are shuffled on from
what they were: the shards' one is never reset, the samples' one always is. This order of draws is all that
makes the sequence, so _seek repeats the draws without reading any token.
*/
#define _DEFAULT_SOURCE /* glob */
#include "random.h"
#include "shard.h"

#include <glob.h>

static const uint32_t SEED = 42;

enum { SEEK_EPOCHS_MAX = 1000000 }; /* each costs a shuffle: a mistaken number must not hang */

struct pybpe_loader {
    pybpe_allocator mem;
    pybpe_shard **shards; /* in glob order */
    size_t shards_count;
    size_t B, T;
    uint64_t rank, world;
    bool shuffle;
    mt19937 rng;
    uint32_t *shard_order;  /* with shuffle: which shard is the i-th of this epoch */
    uint32_t *sample_order; /* with shuffle: which sample of the current shard is the i-th */
    size_t shard_at;        /* the current shard, as a place in the order */
    uint64_t sample_at;     /* the next sample, as a place in the order */
    uint32_t *buffer;       /* B * T + 1 tokens */
};

/* ---------------------------------------------------------------------------------------------------
Order
*/

static const pybpe_shard *current_shard(const pybpe_loader *l) {
    return l->shards[l->shuffle ? l->shard_order[l->shard_at] : l->shard_at];
}

static uint64_t shard_samples(const pybpe_loader *l, const pybpe_shard *s) {
    return (pybpe_shard_count(s) - 1) / (l->world * l->B * l->T);
}

static void order_reset(uint32_t *order, size_t n) {
    for (size_t i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
    }
}

static void enter_shard(pybpe_loader *l, size_t shard_at) {
    l->shard_at = shard_at;
    l->sample_at = 0;
    if (l->shuffle) {
        size_t samples = (size_t)shard_samples(l, current_shard(l));
        order_reset(l->sample_order, samples);
        mt19937_shuffle(&l->rng, l->sample_order, samples);
    }
}

static void start_epoch(pybpe_loader *l) {
    if (l->shuffle) {
        mt19937_shuffle(&l->rng, l->shard_order, l->shards_count);
    }
    enter_shard(l, 0);
}

/* Moves on to the next shard or epoch if the current shard is used up. */
static void advance(pybpe_loader *l) {
    if (l->sample_at < shard_samples(l, current_shard(l))) {
        return;
    }
    if (l->shard_at + 1 == l->shards_count) {
        start_epoch(l);
    } else {
        enter_shard(l, l->shard_at + 1);
    }
}

static void loader_rewind(pybpe_loader *l) {
    mt19937_seed(&l->rng, SEED + (uint32_t)l->rank);
    if (l->shuffle) {
        order_reset(l->shard_order, l->shards_count);
    }
    start_epoch(l);
}

/* ---------------------------------------------------------------------------------------------------
Opening
*/

static int open_shards(pybpe_loader *l, const char *pattern, const glob_t *found, pybpe_error *err) {
    l->shards = mem_alloc_zeroed(&l->mem, found->gl_pathc, sizeof *l->shards);
    if (l->shards == NULL) {
        return error_set_memory(err, pattern, found->gl_pathc * sizeof *l->shards);
    }
    uint64_t least = l->world * l->B * l->T + 1;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        int code = pybpe_shard_open(&l->shards[i], found->gl_pathv[i], &l->mem, err);
        if (code != PYBPE_OK) {
            return code;
        }
        l->shards_count += 1;
        if (pybpe_shard_count(l->shards[i]) < least) {
            return error_set(err, PYBPE_ERR_LIMIT, i,
                             "%s: %llu tokens, but %llu processes x B %zu x T %zu + 1 = %llu are needed in every shard; "
                             "lower B or T, or write larger shards",
                             found->gl_pathv[i], (unsigned long long)pybpe_shard_count(l->shards[i]),
                             (unsigned long long)l->world, l->B, l->T, (unsigned long long)least);
        }
    }
    return PYBPE_OK;
}

static int open_pattern(pybpe_loader *l, const char *pattern, pybpe_error *err) {
    glob_t found;
    int status = glob(pattern, 0, NULL, &found);
    if (status == GLOB_NOSPACE) {
        return error_set_memory(err, pattern, 0);
    }
    if (status != 0) {
        return error_set_errno(err, 2 /* ENOENT */, "%s: no shard matches this pattern", pattern);
    }
    int code = open_shards(l, pattern, &found, err);
    globfree(&found);
    return code;
}

static int alloc_orders(pybpe_loader *l, pybpe_error *err) {
    uint64_t samples = 0;
    for (size_t i = 0; i < l->shards_count; i++) {
        uint64_t here = shard_samples(l, l->shards[i]);
        samples = here > samples ? here : samples;
    }
    l->buffer = mem_alloc_array(&l->mem, l->B * l->T + 1, sizeof *l->buffer);
    bool failed = l->buffer == NULL;
    if (l->shuffle) {
        l->shard_order = mem_alloc_array(&l->mem, l->shards_count, sizeof *l->shard_order);
        l->sample_order = mem_alloc_array(&l->mem, (size_t)samples, sizeof *l->sample_order);
        failed = failed || l->shard_order == NULL || l->sample_order == NULL;
    }
    return failed ? error_set_memory(err, "a DataLoader", (l->B * l->T + 1) * sizeof *l->buffer) : PYBPE_OK;
}

static int check_arguments(size_t B, size_t T, int rank, int world, pybpe_error *err) {
    size_t tokens;
    if (B < 1 || T < 1 || world < 1 || rank < 0 || rank >= world) {
        return error_set(err, PYBPE_ERR_VALUE, 0,
                         "B %zu, T %zu, rank %d of %d: B and T must be at least 1, and the rank from 0 to below the "
                         "number of processes",
                         B, T, rank, world);
    }
    if (!size_mul(B, T, &tokens) || !size_mul(tokens, (size_t)world, &tokens) || tokens > INT32_MAX) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "%d processes x B %zu x T %zu is more than a shard can hold", world, B,
                         T);
    }
    return PYBPE_OK;
}

int pybpe_loader_new(pybpe_loader **out, const char *pattern, size_t B, size_t T, int rank, int world, int shuffle,
                     const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    int code = check_arguments(B, T, rank, world, err);
    if (code != PYBPE_OK) {
        return code;
    }
    pybpe_loader *l = mem_alloc_zeroed(mem, 1, sizeof *l);
    if (l == NULL) {
        return error_set_memory(err, "a DataLoader", sizeof *l);
    }
    l->mem = mem_of(mem);
    l->B = B;
    l->T = T;
    l->rank = (uint64_t)rank;
    l->world = (uint64_t)world;
    l->shuffle = shuffle != 0;
    code = open_pattern(l, pattern, err);
    if (code == PYBPE_OK) {
        code = alloc_orders(l, err);
    }
    if (code != PYBPE_OK) {
        pybpe_loader_free(l);
        return code;
    }
    loader_rewind(l);
    *out = l;
    return PYBPE_OK;
}

void pybpe_loader_free(pybpe_loader *l) {
    if (l == NULL) {
        return;
    }
    pybpe_allocator mem = l->mem;
    for (size_t i = 0; i < l->shards_count; i++) {
        pybpe_shard_free(l->shards[i]);
    }
    mem_free(&mem, l->shards);
    mem_free(&mem, l->shard_order);
    mem_free(&mem, l->sample_order);
    mem_free(&mem, l->buffer);
    mem_free(&mem, l);
}

/* ---------------------------------------------------------------------------------------------------
Serving
*/

static int check_ids(const pybpe_loader *l, size_t n, pybpe_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (l->buffer[i] > INT32_MAX) {
            return error_set(err, PYBPE_ERR_FORMAT, i, "%s: id %u does not fit int32, as training wants it",
                             shard_path(current_shard(l)), l->buffer[i]);
        }
    }
    return PYBPE_OK;
}

int pybpe_loader_next(pybpe_loader *l, int32_t *inputs, int32_t *targets, pybpe_error *err) {
    advance(l);
    size_t tokens = l->B * l->T;
    uint64_t sample = l->shuffle ? l->sample_order[l->sample_at] : l->sample_at;
    uint64_t start = (sample * l->world + l->rank) * tokens;
    int code = pybpe_shard_read(current_shard(l), start, tokens + 1, l->buffer, err);
    if (code == PYBPE_OK) {
        code = check_ids(l, tokens + 1, err);
    }
    if (code != PYBPE_OK) {
        return code;
    }
    for (size_t i = 0; i < tokens; i++) {
        inputs[i] = (int32_t)l->buffer[i];
        targets[i] = (int32_t)l->buffer[i + 1];
    }
    l->sample_at += 1;
    return PYBPE_OK;
}

int pybpe_loader_reset(pybpe_loader *l, pybpe_error *err) {
    (void)err;
    start_epoch(l);
    return PYBPE_OK;
}

int pybpe_loader_seek(pybpe_loader *l, uint64_t batches, pybpe_error *err) {
    uint64_t epoch = pybpe_loader_batches(l);
    if (!l->shuffle) {
        batches %= epoch; /* every epoch is the same */
    } else if (batches / epoch > SEEK_EPOCHS_MAX) {
        return error_set(err, PYBPE_ERR_VALUE, batches, "cannot seek to batch %llu: that is epoch %llu, and %d is the last",
                         (unsigned long long)batches, (unsigned long long)(batches / epoch), SEEK_EPOCHS_MAX);
    }
    loader_rewind(l);
    while (batches > 0) {
        advance(l);
        uint64_t left = shard_samples(l, current_shard(l)) - l->sample_at;
        uint64_t now = batches < left ? batches : left;
        l->sample_at += now;
        batches -= now;
    }
    return PYBPE_OK;
}

uint64_t pybpe_loader_tokens(const pybpe_loader *l) {
    uint64_t tokens = 0;
    for (size_t i = 0; i < l->shards_count; i++) {
        tokens += pybpe_shard_count(l->shards[i]);
    }
    return tokens;
}

uint64_t pybpe_loader_batches(const pybpe_loader *l) {
    uint64_t batches = 0;
    for (size_t i = 0; i < l->shards_count; i++) {
        batches += shard_samples(l, l->shards[i]);
    }
    return batches;
}

size_t pybpe_loader_shards(const pybpe_loader *l) { return l->shards_count; }
