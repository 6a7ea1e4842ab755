/*
Scanning: finds all pairs that occur at least `threshold` times, with their places.

Only such pairs are kept. The count of an existing pair only falls (new pairs contain the newest token), so a rarer pair
cannot be the best before the best kept one has also fallen below the threshold. Then the threshold is lowered and the
array is scanned again. Most of the millions of pairs in a large corpus are never close to being merged, and cost
nothing except in these scans. The exception is a merge that spells an existing token, whose pairs may rise. A scan
follows it.

Places do not outlive a scan, so the symbols may be moved before it: then the scan goes from slot to slot.
*/
#include "train/train.h"

enum { THRESHOLD_STEP = 32, PAIRS_PER_MERGE = 4 };

static void scan_rewind(pybpe_trainer *t, train_stage stage) {
    t->stage = stage;
    t->scan.at = 1;
    t->scan.to = 1;
    t->scan.run = 0;
}

int train_scan_start(pybpe_trainer *t, bool lower, pybpe_error *err) {
    pair_table_clear(&t->pairs);
    t->scan.lower = lower;
    int code = exact_fits(t) ? exact_alloc(t, err) : filter_alloc(t, err);
    if (code == PYBPE_OK) {
        scan_rewind(t, t->tokens_count > 256 || t->scan.cells == NULL ? STAGE_COMPACT : STAGE_EXACT_COUNT);
    }
    return code;
}

void train_scan_free(pybpe_trainer *t) {
    mem_free(&t->mem, t->scan.cells);
    mem_free(&t->mem, t->scan.filter);
    t->scan.cells = NULL;
    t->scan.filter = NULL;
}

/* The next symbols of one weight, at most `most`. */
static symbol_range scan_next(pybpe_trainer *t, size_t most) {
    while (t->scan.at >= t->runs[t->scan.run + 1].start) {
        t->scan.run += 1;
    }
    const run *in = &t->runs[t->scan.run];
    symbol_range s = {t->scan.at, in[1].start, in->weight, in};
    s.to = s.to < t->slots ? s.to : t->slots - 1; /* the last separator has no right neighbor */
    if (s.to - s.from > most) {
        s.to = s.from + (uint32_t)most;
    }
    t->scan.at = s.to;
    return s;
}

/* Continues the current stage for about `*budget` symbols. */
static int scan_walk(pybpe_trainer *t, size_t *budget, pybpe_error *err) {
    int code = PYBPE_OK;
    while (t->scan.at + 1 < t->slots && *budget > 0 && code == PYBPE_OK) {
        symbol_range s = scan_next(t, *budget);
        *budget -= s.to - s.from;
        switch (t->stage) { /* LCOV_EXCL_BR_LINE: there are no other stages */
        case STAGE_EXACT_COUNT:
            exact_count(t, s);
            break;
        case STAGE_EXACT_PLACES:
            exact_note(t, s);
            break;
        case STAGE_FILTER:
            filter_add(t, s);
            break;
        case STAGE_FILTER_COUNT:
            code = filter_count(t, s, err);
            break;
        case STAGE_FILTER_PLACES:
            filter_note(t, s);
            break;
        case STAGE_COMPACT: /* LCOV_EXCL_START: only the stages above walk */
        case STAGE_MERGE:
            break; /* LCOV_EXCL_STOP */
        }
    }
    return code;
}

/* The next threshold: a fraction of the upper bound for the most frequent pair. `enough` is a count that several pairs
   reach for every merge to come, or 0. A lower threshold would only keep more pairs. A higher one needs more scans: so
   when most tokens are known, and with them most pairs, the threshold is `enough` at once. */
static void threshold_lower(pybpe_trainer *t, uint64_t largest, uint64_t enough) {
    const bool most_known = t->vocab_size - t->tokens_count <= t->tokens_count;
    const uint64_t most = t->threshold > 0 && t->threshold < largest ? t->threshold : largest;
    uint64_t lower = most / THRESHOLD_STEP;
    if (enough <= most / 2 && (enough > lower || (enough > 0 && most_known))) {
        lower = enough;
    }
    t->threshold = lower > t->min_frequency ? lower : t->min_frequency;
}

/* Ends a stage and begins the next. */
static int stage_end(pybpe_trainer *t, pybpe_error *err) {
    int code = PYBPE_OK;
    switch (t->stage) { /* LCOV_EXCL_BR_LINE: there are no other stages */
    case STAGE_COMPACT:
        scan_rewind(t, t->scan.cells != NULL ? STAGE_EXACT_COUNT : STAGE_FILTER);
        break;
    case STAGE_EXACT_COUNT:
        if (t->scan.lower) {
            threshold_lower(t, exact_largest(t), 0);
        }
        code = exact_keep(t, err);
        scan_rewind(t, STAGE_EXACT_PLACES);
        break;
    case STAGE_FILTER:
        if (t->scan.lower) {
            const uint64_t merges = t->vocab_size - t->tokens_count;
            threshold_lower(t, filter_largest(t), filter_reached_by(t, PAIRS_PER_MERGE * merges));
        }
        scan_rewind(t, STAGE_FILTER_COUNT);
        break;
    case STAGE_FILTER_COUNT:
        code = filter_keep(t, err);
        scan_rewind(t, STAGE_FILTER_PLACES);
        break;
    case STAGE_EXACT_PLACES:
    case STAGE_FILTER_PLACES:
        train_scan_free(t);
        t->stage = STAGE_MERGE;
        break;
    case STAGE_MERGE: /* LCOV_EXCL_START: no stage of a scan */
        break;        /* LCOV_EXCL_STOP */
    }
    return code;
}

int train_scan_step(pybpe_trainer *t, size_t *budget, pybpe_error *err) {
    if (t->stage == STAGE_COMPACT) {
        return train_compact(t, budget) ? stage_end(t, err) : PYBPE_OK;
    }
    int code = scan_walk(t, budget, err);
    return code == PYBPE_OK && t->scan.at + 1 >= t->slots ? stage_end(t, err) : code;
}
