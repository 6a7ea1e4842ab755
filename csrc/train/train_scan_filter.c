/*
Scanning when there are many tokens: few of their pairs are frequent, so a filter eliminates most.

    filter   cells, found by a hash of the pair, hold the total weight of all pairs with that hash
    count    pairs whose cells reach the threshold are counted in the pair table
    note     pairs that reach it have lists, and their places are written there

Cells and pairs are scattered over memory. So a walk goes in batches: it first finds and prefetches the cells of a
batch, and then processes them.
*/
#include "train/train_parity.h"

enum { FILTER_LOG2_MIN = 12, FILTER_LOG2_MAX = 21, FILTER_BATCH = 128 };

static inline uint32_t saturate(uint64_t x) { return x < UINT32_MAX ? (uint32_t)x : UINT32_MAX; }

int filter_alloc(pybpe_trainer *t, pybpe_error *err) {
    unsigned log2_cells = FILTER_LOG2_MIN;
    while (log2_cells < FILTER_LOG2_MAX && (size_t)1 << log2_cells < 2 * (size_t)t->slots) {
        log2_cells += 1;
    }
    size_t cells = (size_t)1 << log2_cells;
    t->scan.filter_mask = cells - 1;
    t->scan.filter = mem_alloc_zeroed(&t->mem, cells, sizeof *t->scan.filter);
    return memory_check(t->scan.filter, "the counting of pairs", cells * sizeof *t->scan.filter, err);
}

/* Some pairs of a sequence. */
typedef struct filter_batch {
    uint32_t at[FILTER_BATCH];
    uint32_t *cells[FILTER_BATCH];
    size_t count;
} filter_batch;

/* The next pairs from `*at` on, moves it forward. */
INLINE_ALWAYS void gather(symbol_slots ids, const pybpe_trainer *t, filter_batch *batch, uint32_t *at, uint32_t end) {
    const uint64_t factor = t->seed.a | 1;
    uint32_t stop = end - *at < FILTER_BATCH ? end : *at + FILTER_BATCH;
    batch->count = 0;
    for (uint32_t i = *at; i < stop; i++) {
        uint32_t left = slot_get(ids, i), right = slot_get(ids, i + 1);
        uint64_t product = ((uint64_t)left << 32 | right) * factor;
        uint32_t *cell = &t->scan.filter[(size_t)(product >> 40) & t->scan.filter_mask];
        PYBPE_PREFETCH(cell);
        batch->at[batch->count] = i;
        batch->cells[batch->count] = cell;
        batch->count += left != TRAIN_SEP && right != TRAIN_SEP;
    }
    *at = stop;
}

static void filter_gather(const pybpe_trainer *t, filter_batch *batch, uint32_t *at, uint32_t end) {
    SLOTS_CALL(gather, t, batch, at, end);
}

void filter_add(pybpe_trainer *t, symbol_range s) {
    const uint64_t weight = saturate(s.weight);
    filter_batch batch;
    while (s.from < s.to) {
        filter_gather(t, &batch, &s.from, s.to);
        for (size_t i = 0; i < batch.count; i++) {
            *batch.cells[i] = saturate(*batch.cells[i] + weight);
        }
    }
}

uint64_t filter_largest(const pybpe_trainer *t) {
    uint32_t largest = 0;
    for (size_t i = 0; i <= t->scan.filter_mask; i++) {
        largest = t->scan.filter[i] > largest ? t->scan.filter[i] : largest;
    }
    return largest;
}

/* Which of the classes of counts a cell is in: four per power of two. */
static unsigned cell_class(uint32_t count) {
    if (count < 4) {
        return count;
    }
    unsigned log2 = 31 - (unsigned)__builtin_clz(count);
    return 4 * (log2 - 1) + (count >> (log2 - 2) & 3);
}

uint64_t filter_reached_by(const pybpe_trainer *t, uint64_t cells) {
    enum { CELL_CLASSES = 4 * 31 };
    uint64_t sizes[CELL_CLASSES] = {0};
    for (size_t i = 0; i <= t->scan.filter_mask; i++) {
        sizes[cell_class(t->scan.filter[i])] += 1;
    }
    uint64_t reached = 0;
    unsigned class = CELL_CLASSES;
    while (class > 0 && reached < cells) {
        reached += sizes[--class];
    }
    if (reached < cells || class < 4) {
        return 0;
    }
    return (uint64_t)(4 + class % 4) << (class / 4 - 1); /* the least count of the class */
}

/* The next pairs whose cells reach the threshold. Prefetches memory for finding them. */
static void filter_select(const pybpe_trainer *t, filter_batch *batch, uint32_t *at, uint32_t end) {
    const uint32_t threshold = saturate(t->threshold);
    filter_gather(t, batch, at, end);
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++) {
        batch->at[kept] = batch->at[i];
        kept += *batch->cells[i] >= threshold;
    }
    batch->count = kept;
    for (size_t i = 0; i < kept; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): there are `kept` of them */
        pair_table_prefetch(&t->pairs, slot_get(t->ids, batch->at[i]), slot_get(t->ids, batch->at[i] + 1));
    }
    for (size_t i = 0; i < kept; i++) {
        pair_table_prefetch_pair(&t->pairs, slot_get(t->ids, batch->at[i]), slot_get(t->ids, batch->at[i] + 1));
    }
}

int filter_count(pybpe_trainer *t, symbol_range s, pybpe_error *err) {
    filter_batch batch;
    while (s.from < s.to) {
        filter_select(t, &batch, &s.from, s.to);
        for (size_t i = 0; i < batch.count; i++) {
            uint32_t left = slot_get(t->ids, batch.at[i]), right = slot_get(t->ids, batch.at[i] + 1), index;
            if (!pair_is_allowed(t, left, right)) {
                continue;
            }
            PYBPE_TRY(pair_table_add(&t->pairs, left, right, &index, err));
            t->pairs.pairs[index].count += s.weight;
            t->pairs.pairs[index].places_count += 1;
            if (t->languages != NULL) {
                train_parity_count(t, pair_counts(&t->pairs, index), s.in);
            }
        }
    }
    return PYBPE_OK;
}

int filter_keep(pybpe_trainer *t, pybpe_error *err) {
    int code = PYBPE_OK;
    for (size_t i = 0; i < t->pairs.count && code == PYBPE_OK; i++) {
        pair *p = &t->pairs.pairs[i];
        uint32_t n = p->places_count;
        p->places_count = 0;
        if (p->count < t->threshold) {
            continue;
        }
        code = pair_places_alloc(&t->pairs, (uint32_t)i, n, err);
        code = code == PYBPE_OK ? train_pair_push(t, (uint32_t)i, err) : code;
    }
    return code;
}

void filter_note(pybpe_trainer *t, symbol_range s) {
    filter_batch batch;
    while (s.from < s.to) {
        filter_select(t, &batch, &s.from, s.to);
        for (size_t i = 0; i < batch.count; i++) {
            uint32_t at = batch.at[i];
            uint32_t index = pair_table_find(&t->pairs, slot_get(t->ids, at), slot_get(t->ids, at + 1));
            if (index != PAIR_NONE && t->pairs.pairs[index].places != NULL) {
                pair *p = &t->pairs.pairs[index];
                p->places[p->places_count++] = at;
            }
        }
    }
}
