/*
Applying merges to one word. Internal.
*/
#ifndef PYBPE_APPLY_H
#define PYBPE_APPLY_H

#include "merges.h"

/* Words up to this length are merged by apply_short, longer ones by apply_long. */
enum { APPLY_SHORT_MAX = 62 };

/* Merges w[0..n), 1 <= n <= APPLY_SHORT_MAX. Writes the tokens to ids (room for n) and returns their number. */
size_t apply_short(const merge_table *t, const uint8_t *w, size_t n, uint32_t *ids);

/* The scratch space for merging words. It grows on demand and is kept between calls. Zero it to start. */
typedef struct apply_scratch {
    uint32_t short_ids[APPLY_SHORT_MAX]; /* the tokens of a short word */
    mem_table symbols;                   /* of struct apply_symbol; large; its contents are not kept when it grows */
    size_t symbols_cap;
    struct apply_run_block *blocks;
    size_t blocks_cap;
    struct apply_run *runs;
    size_t runs_cap;
    struct apply_head *heap;
    size_t heap_cap;
    uint32_t *open_runs; /* rank -> run */
    size_t open_runs_cap;
    uint32_t *ids; /* the tokens of a long word */
    size_t ids_cap;
    uint64_t steps; /* the pairs that long words took from the queue; tests limit the steps per byte */
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

#endif
