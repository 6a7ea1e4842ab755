/*
The inside of a vocabulary, for decode.c and encode.c. Internal.
*/
#ifndef PYBPE_VOCAB_H
#define PYBPE_VOCAB_H

#include "base.h"
#include "wordkey.h"

/* This many readable zeros follow the last token, so that a token can be copied as 16 bytes at once. */
enum { VOCAB_PADDING = 16 };

/* bytes -> id, open addressing. A slot holds id + 1; 0 is empty. At most half of the slots are taken. */
typedef struct token_index {
    uint32_t *slots;
    size_t mask; /* slots - 1 */
} token_index;

/* A token as decoding copies it: 16 bytes at once, of which `length` are used. */
enum { RECORD_MAX = 15, RECORD_NONE = 128 };
typedef struct token_record {
    uint8_t bytes[RECORD_MAX];
    uint8_t length; /* RECORD_NONE: the id is unused, or its token is longer */
} token_record;

struct pybpe_vocab {
    pybpe_allocator mem;
    uint8_t *bytes;        /* all tokens end to end, then VOCAB_PADDING zeros */
    uint64_t *offsets;     /* count + 1: token id is bytes[offsets[id]..offsets[id + 1]) */
    token_record *records; /* count + 1: the last one represents all ids outside the vocabulary */
    size_t count;
    uint32_t *merges; /* (left, right) in rank order */
    uint32_t *merged; /* the id that merge i makes */
    size_t merges_count;
    uint32_t *specials; /* ascending */
    size_t specials_count;
    char *custom;
    uint32_t eot_id;
    int32_t pattern;
    int32_t normalizer;
    int32_t whole_words; /* 0 or 1 */
    hash_seed seed;      /* of both indexes */
    token_index ordinary_index;
    token_index special_index;
    uint32_t byte_ids[256]; /* the ordinary token of each single byte, or PYBPE_NO_ID */
};

/* Whether some byte has no token, and which byte is the first. */
bool vocab_lacks_byte(const pybpe_vocab *v, unsigned *byte);

static inline const uint8_t *vocab_token(const pybpe_vocab *v, size_t id) { return v->bytes + v->offsets[id]; }
static inline size_t vocab_token_length(const pybpe_vocab *v, size_t id) {
    return (size_t)(v->offsets[id + 1] - v->offsets[id]);
}

#endif
