/*
Merging a long word block by block. Internal. See apply_blocks.c.
*/
#ifndef PYBPE_APPLY_BLOCKS_H
#define PYBPE_APPLY_BLOCKS_H

#include "apply.h"

/* A token, and the merge that makes it. */
typedef struct apply_token {
    uint32_t left, right; /* what that merge joins */
    uint32_t made;        /* its rank + 1; 0 for a single byte; APPLY_NEVER if merges never make the token */
    uint32_t length;      /* in bytes */
} apply_token;

#define APPLY_NEVER UINT32_MAX

/* The bytes of a block, and the most places of pairs in it: one per byte and two per merge; the first is not used. */
enum { APPLY_BLOCK = 8192, APPLY_PLACES = 3 * APPLY_BLOCK + 1 };
_Static_assert(APPLY_PLACES <= UINT16_MAX, "a place is numbered with 16 bits");

/* A position where a pair starts, and the next place of the same rank, or 0. */
typedef struct apply_place {
    uint16_t at, next;
} apply_place;

/* A block while it is merged. */
typedef struct apply_block {
    size_t ranks;
    uint32_t *ids; /* at the first and the last position of each token */
    apply_place *places;
    size_t places_used;
    uint64_t *starts;  /* a bit for each position where a token starts */
    uint16_t *joined;  /* where pairs of the current rank were */
    uint16_t *lists;   /* rank -> its first place, or 0; and one for pairs that do not merge */
    uint64_t *waiting; /* a bit for each list that has places */
} apply_block;

/* A table of a vocabulary's tokens. Zero it to start. */
typedef struct apply_blocks_table {
    bool tried;  /* to fill it */
    bool usable; /* and it worked */
    bool in_order;
    apply_token *tokens;
    size_t count;
    const uint32_t *merges;              /* the vocabulary's */
    apply_block block;                   /* if the merges are in order; otherwise: */
    apply_word found;                    /* a block and its tokens */
    apply_scratch scratch, pair_scratch; /* of the block, and of two tokens */
    size_t block_bytes;                  /* up to APPLY_BLOCK; fewer in tests */
    uint32_t *ids;                       /* the result */
    size_t room;                         /* bytes of a word for which there is room in it */
    uint64_t steps;                      /* the bytes of all blocks so far; tests limit the steps per byte of a word */
} apply_blocks_table;

/* Fills the table for the merges of `v`, which are those of `t`. If memory is out, it stays unusable. */
void apply_blocks_fill(apply_blocks_table *c, const pybpe_vocab_spec *v, const merge_table *t,
                       const pybpe_allocator *mem);
void apply_blocks_free(apply_blocks_table *c, const pybpe_allocator *mem);

/* Frees the memory that only the last words needed, if one of them had `most` bytes or more. */
void apply_blocks_trim(apply_blocks_table *c, size_t most, const pybpe_allocator *mem);

/* Merges a word. Returns true, with the tokens at c->ids and their number; or false if that would take too long or
   memory is out: then use apply_long. The table must be usable. */
bool apply_blocks(apply_blocks_table *c, const merge_table *t, const uint8_t *w, size_t n, size_t *count,
                  const pybpe_allocator *mem);

#endif
