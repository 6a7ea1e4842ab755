/*
Parity-aware training, for the modules train*.c. Internal. See train_parity.c.
*/
#ifndef PYBPE_TRAIN_PARITY_H
#define PYBPE_TRAIN_PARITY_H

#include "train/train.h"

/* Prepares the first scan, when the words are laid out; chooses the next pair to merge; lowers
   thresholds, and returns false if training is done. */
int train_parity_start(pybpe_trainer *t, const pybpe_language *languages, pybpe_error *err);
uint32_t train_parity_next(pybpe_trainer *t);
bool train_parity_lower(pybpe_trainer *t);
int train_parity_push(pybpe_trainer *t, uint32_t index, pybpe_error *err);

/* Adds a place in a run to the counts of a pair, or of a neighbor that it has just been added to; subtracts counts;
   notes that two tokens of a run became one. */
void train_parity_count(const pybpe_trainer *t, uint64_t *counts, const run *r);
void train_parity_neighbor(pybpe_trainer *t, side *s, const neighbor *n, const run *r);
void train_parity_subtract(const pybpe_trainer *t, uint64_t *from, const uint64_t *counts);
void train_parity_merged(pybpe_trainer *t, const run *r);

/* The counts of a neighbor, by language. */
static inline uint64_t *side_counts(const pybpe_trainer *t, const side *s, const neighbor *n) {
    return &s->counts[n->slot * t->languages_count];
}

/* Puts a pair into the heap, or into the heaps of the languages where it is frequent. */
static inline int train_pair_push(pybpe_trainer *t, uint32_t index, pybpe_error *err) {
    return t->languages == NULL ? pair_heap_push(&t->pairs, 0, index, err) : train_parity_push(t, index, err);
}

#endif
