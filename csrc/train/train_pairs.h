/*
The pairs that a trainer may merge: how often they occur, where, and which one is next. Internal.
*/
#ifndef PYBPE_TRAIN_PAIRS_H
#define PYBPE_TRAIN_PAIRS_H

#include "hash/hash.h"

#define PAIR_NONE UINT32_MAX

/* One pair of adjacent tokens. */
typedef struct pair {
    uint32_t left, right;
    uint64_t count;   /* weighted occurrences, now */
    uint32_t *places; /* ascending positions of the left token. Some may be outdated */
    uint32_t places_count;
} pair;

/* An entry of the heap: a pair, and its count when it was pushed. */
typedef struct pair_entry {
    uint64_t count;
    uint32_t index;
} pair_entry;

/* The pairs that may be merged, the most frequent first, lazy: see train_pairs.c. */
typedef struct pair_heap {
    pair_entry *entries;
    size_t count, cap;
} pair_heap;

/* Whether pair x is merged before pair y if both are equally frequent. */
typedef bool pair_order(const void *context, const pair *x, const pair *y);

/* pairs[] with a hash table of indices into it, and a heap of those that may be merged. In parity-aware training a pair
   also has a count per language, its column, and every language has a heap, ordered by these counts. */
typedef struct pair_table {
    pybpe_allocator mem;
    hash_seed seed;
    pair *pairs;
    size_t count, cap;
    uint32_t *slots; /* index + 1, 0 is empty. At most half full */
    size_t mask;
    size_t columns;   /* 0 without languages. There is one heap then */
    uint64_t *counts; /* of pair i in column c: counts[i * columns + c] */
    size_t counts_cap;
    pair_heap *heaps;
    pair_order *order;
    const void *order_context;
} pair_table;

/* Initializes an empty table. `order` gets `context`. On failure, pair_table_free must still be called. */
int pair_table_init(pair_table *t, const pybpe_allocator *mem, pair_order *order, const void *context, size_t columns,
                    pybpe_error *err);
void pair_table_free(pair_table *t);

/* Forgets all pairs and keeps the memory. */
void pair_table_clear(pair_table *t);

/* Prefetches the first memory that finding a pair needs. */
static inline size_t pair_table_slot(const pair_table *t, uint32_t left, uint32_t right) {
    return (size_t)hash_mix((uint64_t)left << 32 | right, t->seed.a | 1) & t->mask;
}
static inline void pair_table_prefetch(const pair_table *t, uint32_t left, uint32_t right) {
    PYBPE_PREFETCH(&t->slots[pair_table_slot(t, left, right)]);
}

/* Prefetches the second, when the first has arrived. */
static inline void pair_table_prefetch_pair(const pair_table *t, uint32_t left, uint32_t right) {
    uint32_t slot = t->slots[pair_table_slot(t, left, right)];
    PYBPE_PREFETCH(slot > 0 ? &t->pairs[slot - 1] : NULL);
}

/* The index of a pair, or PAIR_NONE. */
static inline uint32_t pair_table_find(const pair_table *t, uint32_t left, uint32_t right) {
    for (size_t i = pair_table_slot(t, left, right); t->slots[i] != 0; i = (i + 1) & t->mask) {
        const pair *p = &t->pairs[t->slots[i] - 1];
        if (p->left == left && p->right == right) {
            return t->slots[i] - 1;
        }
    }
    return PAIR_NONE;
}

/* The index of a pair, added with count 0 and no places if it is new. */
int pair_table_add(pair_table *t, uint32_t left, uint32_t right, uint32_t *index, pybpe_error *err);

/* The counts of a pair, by column. */
static inline uint64_t *pair_counts(const pair_table *t, uint32_t index) { return &t->counts[index * t->columns]; }

/* Allocates memory for exactly n places of a pair, at least one. */
int pair_places_alloc(pair_table *t, uint32_t index, uint32_t n, pybpe_error *err);
void pair_places_free(pair_table *t, uint32_t index);

/* Puts a pair into the heap of a column with its current count. Without columns, it is the heap of column 0. */
int pair_heap_push(pair_table *t, size_t column, uint32_t index, pybpe_error *err);

/* Removes the most frequent pair and returns it if its count is at least `threshold`, otherwise returns PAIR_NONE. */
uint32_t pair_heap_pop(pair_table *t, size_t column, uint64_t threshold);

#endif
