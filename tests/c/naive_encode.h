/*
Encoding a word by its definition: look at all pairs, merge the first of lowest rank, repeat. Slow and obvious: the
encoder must give the same ids.
*/
#ifndef NAIVE_ENCODE_H
#define NAIVE_ENCODE_H

#include "small_vocab.h"

/* rank + 1 of each pair of ids, or 0; of the vocabulary between naive_prepare and naive_forget. */
static uint16_t naive_ranks[SMALL_TOKENS][SMALL_TOKENS];

static inline void naive_prepare(const small_vocab *v) {
    for (size_t m = v->merges_count; m-- > 0;) {
        naive_ranks[v->merges[2 * m]][v->merges[2 * m + 1]] = (uint16_t)(m + 1);
    }
}

static inline void naive_forget(const small_vocab *v) {
    for (size_t m = 0; m < v->merges_count; m++) {
        naive_ranks[v->merges[2 * m]][v->merges[2 * m + 1]] = 0;
    }
}

/* Merges n ids in place, and returns how many remain. */
static inline size_t merge_naive_ids(const small_vocab *v, uint32_t *ids, size_t n) {
    for (;;) {
        unsigned best = UINT16_MAX;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            unsigned rank = naive_ranks[ids[i]][ids[i + 1]];
            if (rank > 0 && rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == UINT16_MAX) {
            return n;
        }
        ids[at] = v->merged[best - 1];
        n -= 1;
        memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
    }
}

/* Writes at most n ids and returns their number. */
static inline size_t merge_naive(const small_vocab *v, const uint8_t *w, size_t n, uint32_t *ids) {
    for (size_t i = 0; i < n; i++) {
        ids[i] = w[i];
    }
    return merge_naive_ids(v, ids, n);
}

#endif
