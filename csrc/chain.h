/*
Merging a long word block by block. Internal. See chain.c.
*/
#ifndef PYBPE_CHAIN_H
#define PYBPE_CHAIN_H

#include "merge.h"
#include "vocab.h"

/* A token, and the merge that makes it. */
typedef struct chain_token {
    uint32_t left, right; /* what that merge joins */
    uint32_t made;        /* its rank + 1; 0 for a single byte; CHAIN_NEVER if merges never make the token */
    uint32_t length;      /* in bytes */
} chain_token;

#define CHAIN_NEVER UINT32_MAX

/* The bytes of a block, and the most places of pairs in it: one per byte and two per merge; the first is not used. */
enum { CHAIN_BLOCK = 8192, CHAIN_PLACES = 3 * CHAIN_BLOCK + 1 };
_Static_assert(CHAIN_PLACES <= UINT16_MAX, "a place is numbered with 16 bits");

/* A position where a pair starts, and the next place of the same rank, or 0. */
typedef struct chain_place {
    uint16_t at, next;
} chain_place;

/* A block while it is merged. */
typedef struct chain_block {
    size_t ranks;
    uint32_t *ids; /* at the first and the last position of each token */
    chain_place *places;
    size_t places_used;
    uint64_t *starts;  /* a bit for each position where a token starts */
    uint16_t *joined;  /* where pairs of the current rank were */
    uint16_t *lists;   /* rank -> its first place, or 0; and one for pairs that do not merge */
    uint64_t *waiting; /* a bit for each list that has places */
} chain_block;

/* A table of a vocabulary's tokens. Zero it to start. */
typedef struct chain_table {
    bool tried;  /* to fill it */
    bool usable; /* and it worked */
    chain_token *tokens;
    size_t count;
    const uint32_t *merges; /* the vocabulary's */
    chain_block block;
    size_t block_bytes; /* up to CHAIN_BLOCK; fewer in tests */
    uint32_t *ids;      /* the result */
    size_t room;        /* bytes of a word for which there is room in it */
} chain_table;

/* Fills the table if the merges allow it. If memory is out, it stays unusable. */
void chain_fill(chain_table *c, const pybpe_vocab *v, const merge_table *t, const pybpe_allocator *mem);
void chain_free(chain_table *c, const pybpe_allocator *mem);

/* Frees the memory that only the last words needed, if one of them had `most` bytes or more. */
void chain_trim(chain_table *c, size_t most, const pybpe_allocator *mem);

/* Merges a word. Returns true, with the tokens at c->ids and their number; or false if that would take too long or
   memory is out: then use merge_long. The table must be usable. */
bool chain_merge(chain_table *c, const merge_table *t, const uint8_t *w, size_t n, size_t *count,
                 const pybpe_allocator *mem);

#endif
