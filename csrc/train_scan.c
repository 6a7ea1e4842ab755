/*
Scanning: finds all pairs that occur at least `threshold` times, with their places.

Only such pairs are kept. After it is made the count of a pair only falls (what is new contains the newest
token), so a rarer one cannot be the best before the best kept one has fallen below the threshold too. Then the
threshold is lowered and the array is scanned anew. Of the millions of pairs of a large corpus most never come
near being merged, and cost nothing but a part in these scans. The exception is a merge that spells an existing
token, whose pairs may rise; it is followed by a scan.

A scan goes over all symbols three times. The first time it adds weights to a filter, an array of cells found
by a hash of the pair: the cell of a frequent pair is large, and few others are. Pairs of large cells are counted
the second time, and those that are frequent get lists, which are filled the third time.
*/
#include "train.h"

enum { FILTER_LOG2_MAX = 22, THRESHOLD_STEP = 32, SCAN_BATCH = 128 };

static inline uint32_t *filter_cell(const pybpe_trainer *t, uint32_t left, uint32_t right) {
    uint64_t product = ((uint64_t)left << 32 | right) * (t->seed.a | 1);
    return &t->filter[(size_t)(product >> 40) & t->filter_mask];
}

static inline uint32_t saturate(uint64_t x) { return x < UINT32_MAX ? (uint32_t)x : UINT32_MAX; }

/* Two neighbouring tokens, met by the scan. */
typedef struct adjacency {
    uint32_t at, left, right;
    uint32_t *cell;
    uint64_t weight;
} adjacency;

/* Collects the next adjacencies and asks the processor to fetch their cells, which lie all over the filter. */
static size_t scan_gather(pybpe_trainer *t, adjacency batch[SCAN_BATCH]) {
    const uint32_t *ids = t->ids;
    const uint32_t *lengths = t->lengths;
    uint32_t at = t->scan_at;
    size_t count = 0;
    while (at < t->slots && count < SCAN_BATCH) {
        uint32_t left = ids[at], next = at + lengths[left], right = ids[next];
        if (right != TRAIN_SEP) {
            uint32_t *cell = filter_cell(t, left, right);
            PYBPE_PREFETCH(cell);
            batch[count++] = (adjacency){at, left, right, cell, t->runs[t->scan_run].weight};
            at = next;
        } else {
            at = next + 1;
            t->scan_run += at >= t->runs[t->scan_run + 1].start && t->scan_run + 1 < t->runs_count;
        }
    }
    t->scan_at = at;
    return count;
}

static void scan_filter(const adjacency *batch, size_t count) {
    for (size_t i = 0; i < count; i++) {
        *batch[i].cell = saturate(*batch[i].cell + (uint64_t)saturate(batch[i].weight));
    }
}

/* Keeps the adjacencies whose cells reach the threshold, and fetches the slots of their pairs. */
static size_t scan_select(pybpe_trainer *t, adjacency *batch, size_t count) {
    const uint32_t threshold = saturate(t->threshold);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (*batch[i].cell >= threshold) {
            batch[kept++] = batch[i];
            pair_table_prefetch(&t->pairs, batch[i].left, batch[i].right);
        }
    }
    return kept;
}

static int scan_count(pybpe_trainer *t, const adjacency *batch, size_t count, pybpe_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (!pair_is_short(t, batch[i].left, batch[i].right)) {
            continue;
        }
        uint32_t index;
        int code = pair_table_add(&t->pairs, batch[i].left, batch[i].right, &index, err);
        if (code != PYBPE_OK) {
            return code;
        }
        t->pairs.pairs[index].count += batch[i].weight;
        t->pairs.pairs[index].places_count += 1;
    }
    return PYBPE_OK;
}

static void scan_note_places(pybpe_trainer *t, const adjacency *batch, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t index = pair_table_find(&t->pairs, batch[i].left, batch[i].right);
        if (index != PAIR_NONE && t->pairs.pairs[index].places != NULL) {
            pair *p = &t->pairs.pairs[index];
            p->places[p->places_count++] = batch[i].at;
        }
    }
}

/* Goes on with the scan of the current stage, about `*budget` adjacencies far. */
static int scan_walk(pybpe_trainer *t, size_t *budget, pybpe_error *err) {
    adjacency batch[SCAN_BATCH];
    int code = PYBPE_OK;
    while (t->scan_at < t->slots && *budget > 0 && code == PYBPE_OK) {
        size_t count = scan_gather(t, batch);
        *budget -= count < *budget ? count : *budget;
        if (t->stage == STAGE_FILTER) {
            scan_filter(batch, count);
            continue;
        }
        count = scan_select(t, batch, count);
        if (t->stage == STAGE_COUNT) {
            code = scan_count(t, batch, count, err);
        } else {
            scan_note_places(t, batch, count);
        }
    }
    return code;
}

static void scan_rewind(pybpe_trainer *t, train_stage stage) {
    t->stage = stage;
    t->scan_at = 1;
    t->scan_run = 0;
}

/* Starts a scan for the pairs above the threshold, or, with `lower`, above a new one. */
int train_scan_start(pybpe_trainer *t, bool lower, pybpe_error *err) {
    pair_table_clear(&t->pairs);
    t->lower_threshold = lower;
    /* Pairs of bytes are few: a filter of their number stays in the near caches. */
    const unsigned most = t->tokens_count == 256 ? 16 : FILTER_LOG2_MAX;
    unsigned log2_cells = 12;
    while (log2_cells < most && (size_t)1 << log2_cells < 2 * (size_t)t->slots) {
        log2_cells += 1;
    }
    t->filter_mask = ((size_t)1 << log2_cells) - 1;
    t->filter = mem_alloc_zeroed(&t->mem, t->filter_mask + 1, sizeof *t->filter);
    if (t->filter == NULL) {
        return error_set_memory(err, "the counting of pairs", (t->filter_mask + 1) * sizeof *t->filter);
    }
    scan_rewind(t, STAGE_FILTER);
    return PYBPE_OK;
}

/* The threshold after the filter has seen all pairs: a fraction of the largest cell, which is at least the
   count of the best pair. */
static void threshold_choose(pybpe_trainer *t) {
    uint32_t largest = 0;
    for (size_t i = 0; i <= t->filter_mask; i++) {
        largest = t->filter[i] > largest ? t->filter[i] : largest;
    }
    uint64_t lower = largest / THRESHOLD_STEP;
    if (t->threshold > 0 && t->threshold / THRESHOLD_STEP < lower) {
        lower = t->threshold / THRESHOLD_STEP;
    }
    t->threshold = lower > t->min_frequency ? lower : t->min_frequency;
}

/* Gives each pair that was counted its list, and puts it into the heap. */
static int scan_allocate(pybpe_trainer *t, pybpe_error *err) {
    for (size_t i = 0; i < t->pairs.count; i++) {
        pair *p = &t->pairs.pairs[i];
        uint32_t n = p->places_count;
        p->places_count = 0;
        if (p->count < t->threshold) {
            continue;
        }
        int code = pair_places_alloc(&t->pairs, (uint32_t)i, n, err);
        if (code == PYBPE_OK) {
            code = pair_heap_push(&t->pairs, (uint32_t)i, err);
        }
        if (code != PYBPE_OK) {
            return code;
        }
    }
    return PYBPE_OK;
}

/* Works on the scan; goes to the next stage when one is complete. */
int train_scan_step(pybpe_trainer *t, size_t *budget, pybpe_error *err) {
    int code = scan_walk(t, budget, err);
    if (code != PYBPE_OK || t->scan_at < t->slots) {
        return code;
    }
    if (t->stage == STAGE_FILTER) {
        if (t->lower_threshold) {
            threshold_choose(t);
        }
        scan_rewind(t, STAGE_COUNT);
    } else if (t->stage == STAGE_COUNT) {
        code = scan_allocate(t, err);
        scan_rewind(t, STAGE_PLACES);
    } else {
        mem_free(&t->mem, t->filter);
        t->filter = NULL;
        t->stage = STAGE_MERGE;
    }
    return code;
}
