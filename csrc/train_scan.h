/*
The two ways to scan, for train_scan.c. Internal.

Both process sequences of symbols: the pairs (ids[at], ids[at + 1]) for from <= at < to, all of one weight. A pair with
a separator does not count.
*/
#ifndef PYBPE_TRAIN_SCAN_H
#define PYBPE_TRAIN_SCAN_H

#include "train.h"

typedef struct stretch {
    uint32_t from, to;
    uint64_t weight;
} stretch;

/* train_scan_exact.c: a cell for each pair of tokens, if they are few. */
bool exact_fits(const pybpe_trainer *t);
int exact_alloc(pybpe_trainer *t, pybpe_error *err);
void exact_count(pybpe_trainer *t, stretch s);
uint64_t exact_largest(const pybpe_trainer *t);
int exact_keep(pybpe_trainer *t, pybpe_error *err); /* the frequent pairs: lists for exact_note */
void exact_note(pybpe_trainer *t, stretch s);

/* train_scan_filter.c: cells that many pairs share, then a table of the pairs that may be frequent. */
int filter_alloc(pybpe_trainer *t, pybpe_error *err);
void filter_add(pybpe_trainer *t, stretch s);
uint64_t filter_largest(const pybpe_trainer *t); /* at least the count of the most frequent pair */
int filter_count(pybpe_trainer *t, stretch s, pybpe_error *err);
int filter_keep(pybpe_trainer *t, pybpe_error *err);
void filter_note(pybpe_trainer *t, stretch s);

#endif
