/*
Merging a long word from left to right, as a chain of tokens that go together. Internal. See chain.c.
*/
#ifndef PYBPE_CHAIN_H
#define PYBPE_CHAIN_H

#include "merge.h"
#include "vocab.h"

/* A token that merges can make. */
typedef struct chain_token {
    uint32_t left, right; /* what the merge that makes it joins */
    uint32_t made;        /* rank of that merge + 1; 0 for a single byte; CHAIN_NEVER if merges never make it */
    uint32_t length;      /* in bytes */
    uint32_t shorter;     /* the longest token that is a proper prefix of it, or CHAIN_NONE */
} chain_token;

#define CHAIN_NONE UINT32_MAX
#define CHAIN_NEVER UINT32_MAX

/* The tokens of a vocabulary, and their prefixes as a tree. Zero it to start. */
typedef struct chain_table {
    bool tried;  /* to fill it */
    bool usable; /* and it worked */
    chain_token *tokens;
    size_t count;
    uint32_t *ends; /* node -> the token that ends there, or CHAIN_NONE. Nodes 0 to 255 are the single bytes. */
    size_t nodes, nodes_cap;
    uint64_t *edges; /* (node, byte) -> node: (node << 8 | byte) + 1 in the high half, 0 is empty; at most half full */
    unsigned edges_shift; /* 64 - log2(size) */
    uint64_t *known;      /* which tokens go together, of pairs that were looked at lately */
    uint32_t *ids;        /* the result */
    uint64_t *dead;       /* a bit for each position */
    size_t room;          /* bytes of a word for which there is room in both */
} chain_table;

/* Fills the table, if the merges allow it. Out of memory, it stays unusable. */
void chain_fill(chain_table *c, const pybpe_vocab *v, const merge_table *t, const pybpe_allocator *mem);
void chain_free(chain_table *c, const pybpe_allocator *mem);

/* Frees what only the last words needed, if there was one of `most` bytes or more. */
void chain_trim(chain_table *c, size_t most, const pybpe_allocator *mem);

/* Merges a word: true, with the tokens at c->ids and their number; or false if that would take too long, or memory is
   out, and the word is left to merge_long. The table must be usable. */
bool chain_merge(chain_table *c, const merge_table *t, const uint8_t *w, size_t n, size_t *count,
                 const pybpe_allocator *mem);

#endif
