/*
The DataLoader: the same batches as llm.c's llmc/dataloader.h, in the same order.

A shard is divided into samples of world * B * T tokens. Process `rank` reads its B * T tokens of a sample, and one more
token for the last target. Samples overlap only by that token:

    tokens    0 ........ BT ........ 2BT ........ 3BT ........ 4BT ...
    sample 0  [rank 0     ][rank 1     ]                                   world = 2
    sample 1                            [rank 0     ][rank 1     ]

With shuffling, llm.c draws from one generator, seeded with 42 + rank: a permutation of the shards at the start of every
epoch, and one of the samples whenever it opens a shard. The shards' permutation is shuffled further every time. The
samples' permutation always starts from the identity. The order of draws determines the whole sequence, so _seek
repeats the draws without reading any tokens. If the result of a shuffle is not needed, _seek drops as many numbers as
the shuffle would draw.
*/
#include "base/base.h"
#include "llmc/mt19937.h"

#include <errno.h>
#include <stdlib.h>
#if defined(_WIN32)
#include "win32/win32.h"
#else
#include <glob.h>
#endif

static const uint32_t SEED = 42;

/* Seeking draws about one number per batch, at about 10^9 per second: a wrong argument must not hang. */
static const uint64_t SEEK_BATCHES_MAX = 1000000000;

struct pybpe_loader {
    pybpe_allocator mem;
    glob_t found;     /* the names of the shards, in ascending order of bytes */
    uint64_t *counts; /* tokens in every shard */
    size_t shards_count;
    pybpe_shard *open; /* the only open one: there may be more shards than a process may open files */
    size_t open_index;
    size_t B, T;
    uint64_t rank, world;
    bool shuffle;
    mt19937 rng;
    uint32_t *shard_order;  /* with shuffle: the index of the i-th shard of this epoch */
    uint32_t *sample_order; /* with shuffle: the index of the i-th sample of the current shard */
    size_t shard_at;        /* the current shard, as a position in the order */
    uint64_t sample_at;     /* the next sample, as a position in the order */
    uint32_t *buffer;       /* B * T + 1 tokens */
};

/* ---------------------------------------------------------------------------------------------------
Order
*/

static size_t current_shard(const pybpe_loader *l) { return l->shuffle ? l->shard_order[l->shard_at] : l->shard_at; }

static uint64_t shard_samples(const pybpe_loader *l, size_t shard) {
    return (l->counts[shard] - 1) / (l->world * l->B * l->T);
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

static void shuffle_shards(pybpe_loader *l) {
    if (l->shuffle) {
        mt19937_shuffle(&l->rng, l->shard_order, l->shards_count);
    }
}

static void start_epoch(pybpe_loader *l) {
    shuffle_shards(l);
    enter_shard(l, 0);
}

/* Moves to the next shard or epoch if the current shard is finished. */
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

/* Goes back to the state before the first draw. The next step must be to start an epoch. */
static void rewind_draws(pybpe_loader *l) {
    mt19937_seed(&l->rng, SEED + (uint32_t)l->rank);
    if (l->shuffle) {
        order_reset(l->shard_order, l->shards_count);
    }
}

/* ---------------------------------------------------------------------------------------------------
Opening
*/

static int open_shard(pybpe_loader *l, size_t shard, pybpe_error *err) {
    pybpe_shard *opened;
    int code = pybpe_shard_open(&opened, l->found.gl_pathv[shard], &l->mem, err);
    if (code == PYBPE_OK) {
        pybpe_shard_free(l->open);
        l->open = opened;
        l->open_index = shard;
    }
    return code;
}

/* All shards are opened once at the start, so that a damaged one is reported before hours of training. */
static int inspect_shards(pybpe_loader *l, pybpe_error *err) {
    l->counts = mem_alloc_array(&l->mem, l->shards_count, sizeof *l->counts);
    PYBPE_TRY(memory_check(l->counts, "a DataLoader", l->shards_count * sizeof *l->counts, err));
    uint64_t least = l->world * l->B * l->T + 1;
    for (size_t i = 0; i < l->shards_count; i++) {
        PYBPE_TRY(open_shard(l, i, err));
        l->counts[i] = pybpe_shard_count(l->open);
        if (l->counts[i] < least) {
            return error_set(
                err, PYBPE_ERR_LIMIT, i,
                "%s: %llu tokens, but %llu processes x B %zu x T %zu + 1 = %llu are needed in every shard; "
                "lower B or T, or write larger shards",
                l->found.gl_pathv[i], (unsigned long long)l->counts[i], (unsigned long long)l->world, l->B, l->T,
                (unsigned long long)least);
        }
    }
    return PYBPE_OK;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* glob sorts according to the locale of the process, which llm.c leaves at "C": the order of bytes. */
static int find_shards(pybpe_loader *l, const char *pattern, pybpe_error *err) {
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): glob is safe while no thread changes the environment or the locale */
    int status = glob(pattern, GLOB_NOSORT, NULL, &l->found);
    if (status == GLOB_NOSPACE) {
        return error_set(err, PYBPE_ERR_MEMORY, 0, "out of memory while the shards of %s were listed", pattern);
    }
    if (status != 0) {
        return error_set_errno(err, ENOENT, "%s: no shard matches this pattern", pattern);
    }
    l->shards_count = l->found.gl_pathc;
    qsort(l->found.gl_pathv, l->shards_count, sizeof *l->found.gl_pathv, compare_names);
    return PYBPE_OK;
}

static int alloc_orders(pybpe_loader *l, pybpe_error *err) {
    uint64_t samples = 0;
    for (size_t i = 0; i < l->shards_count; i++) {
        uint64_t here = shard_samples(l, i);
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
        return error_set(err, PYBPE_ERR_VALUE, 0, "%d processes x B %zu x T %zu is more than a shard can hold", world,
                         B, T);
    }
    return PYBPE_OK;
}

int pybpe_loader_new(pybpe_loader **out, const char *pattern, size_t B, size_t T, int rank, int world, int shuffle,
                     const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    PYBPE_TRY(check_arguments(B, T, rank, world, err));
    pybpe_loader *l = mem_alloc_zeroed(mem, 1, sizeof *l);
    PYBPE_TRY(memory_check(l, "a DataLoader", sizeof *l, err));
    l->mem = mem_of(mem);
    l->B = B;
    l->T = T;
    l->rank = (uint64_t)rank;
    l->world = (uint64_t)world;
    l->shuffle = shuffle != 0;
    int code = find_shards(l, pattern, err);
    code = code == PYBPE_OK ? inspect_shards(l, err) : code;
    code = code == PYBPE_OK ? alloc_orders(l, err) : code;
    if (code != PYBPE_OK) {
        pybpe_loader_free(l);
        return code;
    }
    rewind_draws(l);
    start_epoch(l);
    *out = l;
    return PYBPE_OK;
}

void pybpe_loader_free(pybpe_loader *l) {
    if (l == NULL) {
        return;
    }
    pybpe_allocator mem = l->mem;
    pybpe_shard_free(l->open);
    if (l->shards_count > 0) {
        globfree(&l->found);
    }
    mem_free(&mem, l->counts);
    mem_free(&mem, l->shard_order);
    mem_free(&mem, l->sample_order);
    mem_free(&mem, l->buffer);
    mem_free(&mem, l);
}

/* ---------------------------------------------------------------------------------------------------
Serving
*/

/* Opens the current shard unless it is open. On an error the next call tries again. */
static int open_current(pybpe_loader *l, pybpe_error *err) {
    size_t shard = current_shard(l);
    if (l->open_index != shard) {
        PYBPE_TRY(open_shard(l, shard, err));
    }
    if (pybpe_shard_count(l->open) != l->counts[shard]) {
        return error_set(err, PYBPE_ERR_FORMAT, 8,
                         "%s: %llu tokens, but it had %llu when the DataLoader was created: it was replaced; create a "
                         "new DataLoader",
                         l->found.gl_pathv[shard], (unsigned long long)pybpe_shard_count(l->open),
                         (unsigned long long)l->counts[shard]);
    }
    return PYBPE_OK;
}

static int check_ids(const pybpe_loader *l, uint64_t start, size_t n, pybpe_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (l->buffer[i] > INT32_MAX) {
            uint64_t offset = PYBPE_SHARD_HEADER_BYTES + (start + i) * sizeof(uint32_t);
            return error_set(err, PYBPE_ERR_FORMAT, offset,
                             "%s: id %u at offset %llu does not fit int32, which training takes",
                             l->found.gl_pathv[l->open_index], l->buffer[i], (unsigned long long)offset);
        }
    }
    return PYBPE_OK;
}

int pybpe_loader_next(pybpe_loader *l, int32_t *inputs, int32_t *targets, pybpe_error *err) {
    advance(l);
    size_t tokens = l->B * l->T;
    uint64_t sample = l->shuffle ? l->sample_order[l->sample_at] : l->sample_at;
    uint64_t start = (sample * l->world + l->rank) * tokens;
    PYBPE_TRY(open_current(l, err));
    PYBPE_TRY(pybpe_shard_read(l->open, start, tokens + 1, l->buffer, err));
    PYBPE_TRY(check_ids(l, start, tokens + 1, err));
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

/* Starts an epoch and skips `batches` batches, at most to its end. */
static void seek_in_epoch(pybpe_loader *l, uint64_t batches) {
    shuffle_shards(l);
    l->shard_at = 0;
    for (uint64_t samples; batches > (samples = shard_samples(l, current_shard(l))); batches -= samples) {
        mt19937_skip(&l->rng, samples - 1);
        l->shard_at += 1;
    }
    enter_shard(l, l->shard_at);
    l->sample_at = batches;
}

int pybpe_loader_seek(pybpe_loader *l, uint64_t batches, pybpe_error *err) {
    uint64_t epoch = pybpe_loader_batches(l);
    if (l->shuffle && batches > SEEK_BATCHES_MAX) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "cannot seek to batch %llu: with shuffling, %llu is the last",
                         (unsigned long long)batches, (unsigned long long)SEEK_BATCHES_MAX);
    }
    /* An epoch starts only when its first batch is requested: at its end, an epoch is still the current one. */
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): inspect_shards found at least one batch in every shard */
    uint64_t passed = batches == 0 ? 0 : (batches - 1) / epoch;
    rewind_draws(l);
    for (uint64_t i = 0; l->shuffle && i < passed; i++) {
        shuffle_shards(l);
        mt19937_skip(&l->rng, epoch - l->shards_count); /* a shuffle draws one number fewer than it has items */
    }
    seek_in_epoch(l, batches - passed * epoch);
    return PYBPE_OK;
}

uint64_t pybpe_loader_tokens(const pybpe_loader *l) {
    uint64_t tokens = 0;
    for (size_t i = 0; i < l->shards_count; i++) {
        tokens += l->counts[i];
    }
    return tokens;
}

uint64_t pybpe_loader_batches(const pybpe_loader *l) {
    uint64_t batches = 0;
    for (size_t i = 0; i < l->shards_count; i++) {
        batches += shard_samples(l, i);
    }
    return batches;
}

size_t pybpe_loader_shards(const pybpe_loader *l) { return l->shards_count; }
