/*
Tokens that merges do not reach, for vocabularies in which a word that is a token becomes that token. Internal.
*/
#ifndef PYBPE_ENCODE_WHOLE_H
#define PYBPE_ENCODE_WHOLE_H

#include "merge.h"
#include "vocab.h"

/* A zeroed table has no such tokens. */
typedef struct whole_table {
    uint8_t *bits;  /* bit `id` is set if merges do not give that token; NULL if they give all tokens */
    size_t longest; /* the length of the longest one */
} whole_table;

/* Merges the bytes of every ordinary token of v, and marks those that do not become one id. */
int whole_table_new(whole_table *w, const pybpe_vocab *v, const merge_table *merges, const pybpe_allocator *mem,
                    pybpe_error *err);
void whole_table_free(whole_table *w, const pybpe_allocator *mem);

/* The id of a word that is such a token, or PYBPE_NO_ID. */
uint32_t whole_table_find(const whole_table *w, const pybpe_vocab *v, const uint8_t *word, size_t n);

#endif
