/*
Applying the merges of a vocabulary to one word. Internal.

    merges.h, merges.c    the merges as a table
    apply_short.c         words of up to APPLY_SHORT_MAX bytes
    apply_long.c          longer words, in O(n log n)
    apply_blocks.c        the same, twice as fast for words of megabytes, with a table of the vocabulary's tokens
    apply_chars.c         words that start as characters instead of bytes
*/
#ifndef PYBPE_APPLY_H
#define PYBPE_APPLY_H

#include "apply/merges.h"

/* Words up to this length are merged by apply_short, longer ones by apply_long. */
enum { APPLY_SHORT_MAX = 62 };

/* Merges w[0..n), 1 <= n <= APPLY_SHORT_MAX. Writes the tokens to ids (room for n) and returns their number. */
size_t apply_short(const merge_table *t, const uint8_t *w, size_t n, uint32_t *ids);

/* The same, but the word starts as bytes in any case: apply_chars.c makes the characters by it. */
size_t apply_short_bytes(const merge_table *t, const uint8_t *w, size_t n, uint32_t *ids);

/* The scratch space for merging words. It grows on demand and is kept between calls. Zero it to start. */
typedef struct apply_scratch {
    uint32_t short_ids[APPLY_SHORT_MAX]; /* the tokens of a short word */
    mem_table symbols;                   /* of struct apply_symbol. Large. Its contents are not kept when it grows */
    size_t symbols_cap;
    uint64_t *heap; /* the pairs that merge */
    size_t heap_cap;
    uint32_t *ids; /* the tokens of a long word */
    size_t ids_cap;
    uint64_t steps; /* the pairs that long words took from the heap. Tests limit the steps per byte */
} apply_scratch;
void apply_scratch_free(apply_scratch *s, const pybpe_allocator *mem);

/* The bytes allocated. */
size_t apply_scratch_memory(const apply_scratch *s);

/* Merges a word of any length up to 2^32 - 2 bytes in O(n log n). Writes the tokens to s->ids and sets *count to their
   number. */
int apply_long(const merge_table *t, apply_scratch *s, const uint8_t *w, size_t n, size_t *count,
               const pybpe_allocator *mem, pybpe_error *err);

/* The same for n tokens, up to 2^32 - 2, instead of bytes. */
int apply_long_ids(const merge_table *t, apply_scratch *s, const uint32_t *ids, size_t n, size_t *count,
                   const pybpe_allocator *mem, pybpe_error *err);

/* A word, and the tokens that it becomes. */
typedef struct apply_word {
    const uint8_t *bytes;
    size_t n;
    const uint32_t *ids; /* in the scratch space, until the next word */
    size_t count;
} apply_word;

/* Merges a word of at least one byte, with apply_short or apply_long, and sets its ids and count. */
static inline int apply_merges(const merge_table *t, apply_scratch *s, apply_word *word, const pybpe_allocator *mem,
                               pybpe_error *err) {
    if (word->n <= APPLY_SHORT_MAX) {
        word->count = apply_short(t, word->bytes, word->n, s->short_ids);
        word->ids = s->short_ids;
        return PYBPE_OK;
    }
    int code = apply_long(t, s, word->bytes, word->n, &word->count, mem, err);
    word->ids = s->ids;
    return code;
}

/* apply_chars.c: fills the tables of t, which has the merges of `v`, so that words start as characters. Does nothing
   if a merge has a lower rank than one that makes a part of it, or if the merges do not make consecutive ids, as merges
   that training learned do. */
int apply_chars_fill(merge_table *t, const pybpe_vocab_spec *v, const pybpe_allocator *mem, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Merging a long word block by block: see apply_blocks.c
*/

/* A token, and the merge that makes it. */
typedef struct apply_token {
    uint32_t left, right; /* what that merge joins */
    uint32_t made;        /* its rank + 1, or 0 for a single byte. APPLY_NEVER if merges never make the token */
    uint32_t length;      /* in bytes */
} apply_token;

#define APPLY_NEVER UINT32_MAX

/* The bytes of a block, and the most places of pairs in it: one per byte and two per merge. The first is not used. */
enum { APPLY_BLOCK = 8192, APPLY_PLACES = 3 * APPLY_BLOCK + 1 };
_Static_assert(APPLY_PLACES <= UINT16_MAX, "a place is numbered with 16 bits");

/* A position where a pair starts, and the next place of the same rank, or 0. */
typedef struct apply_place {
    uint16_t at, next;
} apply_place;

/* A block while it is merged. */
typedef struct apply_block {
    size_t ranks;
    uint32_t *ids; /* at the first and the last position of a token */
    apply_place *places;
    size_t places_used;
    uint64_t *starts;  /* a bit for every position where a token starts */
    uint16_t *joined;  /* where pairs of the current rank were */
    uint16_t *lists;   /* rank -> its first place, or 0, and one for pairs that do not merge */
    uint64_t *waiting; /* a bit for every list that has places */
} apply_block;

/* A table of a vocabulary's tokens. Zero it to start. */
typedef struct apply_blocks_table {
    bool tried;  /* to fill it */
    bool usable; /* and it worked: the merges are in order */
    apply_token *tokens;
    size_t count;
    const uint32_t *merges; /* the vocabulary's */
    apply_block block;
    size_t block_bytes; /* up to APPLY_BLOCK. Fewer in tests */
    uint32_t *ids;      /* the result */
    size_t room;        /* bytes of a word for which there is room in it */
    uint64_t steps;     /* the bytes of all blocks so far. Tests limit the steps per byte of a word */
} apply_blocks_table;

/* Fills the table for the merges of `v`, which are also the merges of `t`. If they are not in order, or memory is out, it
   stays unusable. */
void apply_blocks_fill(apply_blocks_table *c, const pybpe_vocab_spec *v, const merge_table *t,
                       const pybpe_allocator *mem);
void apply_blocks_free(apply_blocks_table *c, const pybpe_allocator *mem);

/* Frees the memory that only the last words needed, if one of them had `most` bytes or more. */
void apply_blocks_trim(apply_blocks_table *c, size_t most, const pybpe_allocator *mem);

/* Merges a word. Returns true, with the tokens at c->ids and their number, or false if that would take too long or
   memory is out: then use apply_long. The table must be usable. */
bool apply_blocks(apply_blocks_table *c, const merge_table *t, const uint8_t *w, size_t n, size_t *count,
                  const pybpe_allocator *mem);

#endif
