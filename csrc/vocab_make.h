/*
Making a vocabulary: allocate it, fill in its content, then check and index it. Internal.
*/
#ifndef PYBPE_VOCAB_MAKE_H
#define PYBPE_VOCAB_MAKE_H

#include "vocab.h"
#include "vocab_source.h"

/* How large the parts of a vocabulary are. */
typedef struct vocab_sizes {
    size_t tokens;
    size_t bytes;
    size_t merges;
    size_t specials;
    size_t custom; /* without the terminating NUL */
    bool has_custom;
} vocab_sizes;

/* A vocabulary with memory for its parts, which the caller fills. */
int vocab_alloc(pybpe_vocab **out, const vocab_sizes *sizes, const pybpe_allocator *mem, pybpe_error *err);

/* Checks everything except the merges, and fills the indexes. */
int vocab_index(pybpe_vocab *v, const vocab_source *from, pybpe_error *err);

/* Checks the merges and finds what each of them makes. */
int vocab_resolve_merges(pybpe_vocab *v, const vocab_source *from, pybpe_error *err);

/* Recovers the merges of an indexed vocabulary from the order of its ids. Room for v->count merges is enough. */
int vocab_recover(const pybpe_vocab *v, uint32_t *merges, size_t *count, pybpe_error *err);

/* Whether an id is an ordinary token. Needs only the tokens and the specials. */
bool token_is_ordinary(const pybpe_vocab *v, uint32_t id);

#endif
