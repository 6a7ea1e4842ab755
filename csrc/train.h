/*
The inside of a trainer, for the modules train*.c. Internal. train.c explains how they work together.
*/
#ifndef PYBPE_TRAIN_H
#define PYBPE_TRAIN_H

#include "merge.h"
#include "pairs.h"

#define TRAIN_SEP UINT32_C(0xFFFFFFFF)  /* a slot between words */
#define TRAIN_HOLE UINT32_C(0xFFFFFFFE) /* a slot inside a token */

/* What is known of one token. `order` is its place in the order of ties by id. */
typedef struct token {
    uint64_t prefix; /* its first 8 bytes, the first in the high bits: compares like the bytes do */
    size_t offset;   /* in token_bytes */
    uint32_t order;
} token;

/* The neighbours of one side in the merge under way, by token. */
typedef struct neighbour {
    uint64_t weight;
    uint32_t places_count;
    uint32_t *places; /* where the list of the new pair is being written; NULL if it is not kept */
} neighbour;

typedef struct side {
    neighbour *by_token; /* all zero between merges */
    uint32_t *touched;   /* the tokens that are not zero */
    size_t touched_count;
} side;

/* The words of one count lie from `start` up to the next run's start. */
typedef struct run {
    uint32_t start;
    uint64_t weight;
} run;

/* A scan of all pairs goes through three stages, interruptible between any two tokens; then pairs are merged. */
typedef enum train_stage { STAGE_FILTER, STAGE_COUNT, STAGE_PLACES, STAGE_MERGE } train_stage;

struct pybpe_trainer {
    pybpe_allocator mem;
    uint32_t vocab_size, max_token_length;
    uint64_t min_frequency;
    bool done;

    mem_table ids_table;
    uint32_t *ids;
    uint32_t slots; /* in ids */
    run *runs;      /* a last one starts at `slots` */
    size_t runs_count;

    token *tokens;
    uint32_t *lengths; /* of the tokens in bytes; apart, because every step from token to token reads one */
    uint32_t tokens_count, tokens_cap;
    uint8_t *token_bytes;
    size_t token_bytes_count, token_bytes_cap;
    uint32_t *index_slots; /* bytes -> token + 1 */
    size_t index_mask;
    hash_seed seed;

    pair_table pairs;
    uint64_t threshold;   /* 0 before the first scan */
    bool lower_threshold; /* after this scan's first stage */
    side left, right;
    uint32_t *merges; /* (left, right, merged) */
    size_t merges_count, merges_cap;

    train_stage stage;
    uint32_t scan_at; /* the position where the scan goes on: the start of a token */
    size_t scan_run;
    uint32_t *filter; /* hash of a pair -> its weight, with those of all pairs of that hash, or UINT32_MAX */
    size_t filter_mask;
};

static inline bool pair_is_short(const pybpe_trainer *t, uint32_t left, uint32_t right) {
    return (uint64_t)t->lengths[left] + t->lengths[right] <= t->max_token_length;
}

/* train_tokens.c: the 256 bytes as tokens; the token of left + right, a new one or one that has the same bytes. */
int train_tokens_init(pybpe_trainer *t, pybpe_error *err);
int train_token_concat(pybpe_trainer *t, uint32_t left, uint32_t right, uint32_t *merged, pybpe_error *err);
void train_tokens_free(pybpe_trainer *t);

/* train_ties.c: which of two pairs that are equally frequent comes first. `context` is the trainer. */
bool order_lexicographic(const void *context, const pair *x, const pair *y);
bool order_huggingface(const void *context, const pair *x, const pair *y);

/* The places of the 256 bytes in Hugging Face's order. */
void huggingface_byte_order(uint32_t order[256]);

/* train_base.c: makes the merges of a base anew, and a table of them for words to be laid out with. */
int train_base_apply(pybpe_trainer *t, const pybpe_train_config *config, merge_table *base, pybpe_error *err);

/* train_words.c: lays the words out as symbols, with the merges of `base` made unless it is NULL. */
int train_words_lay_out(pybpe_trainer *t, const pybpe_strings *words, const uint64_t *counts, const merge_table *base,
                        pybpe_error *err);

/* train_scan.c: starts a scan for all pairs above the threshold, or, with `lower`, above a new one; goes on with it,
   about `*budget` symbols far. */
int train_scan_start(pybpe_trainer *t, bool lower, pybpe_error *err);
int train_scan_step(pybpe_trainer *t, size_t *budget, pybpe_error *err);

/* train_merge.c: merges one pair everywhere; adds a merge to the list of what was made. */
int train_merge_pair(pybpe_trainer *t, uint32_t index, pybpe_error *err);
int train_merges_append(pybpe_trainer *t, uint32_t left, uint32_t right, uint32_t merged, pybpe_error *err);

#endif
