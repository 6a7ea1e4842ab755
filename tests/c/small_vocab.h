/*
Vocabularies laid out by hand, and an allocator that fails on demand, for the tests in C.

A small_vocab starts with the 256 bytes as ids 0-255; tokens, merges and specials are added one by one.
*/
#ifndef SMALL_VOCAB_H
#define SMALL_VOCAB_H

#include "pybpe.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_TOKENS = 600, SMALL_BYTES = 8192 };

typedef struct small_vocab {
    uint8_t bytes[SMALL_BYTES];
    uint64_t offsets[SMALL_TOKENS + 1];
    size_t count;
    uint32_t merges[2 * SMALL_TOKENS];
    uint32_t merged[SMALL_TOKENS]; /* the id that each merge makes */
    size_t merges_count;
    uint32_t specials[8];
    size_t specials_count;
} small_vocab;

static inline uint32_t small_add_token(small_vocab *v, const void *bytes, size_t n) {
    memcpy(v->bytes + v->offsets[v->count], bytes, n);
    v->offsets[v->count + 1] = v->offsets[v->count] + n;
    return (uint32_t)v->count++;
}

static inline void small_start(small_vocab *v) {
    memset(v, 0, sizeof *v);
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t b = (uint8_t)byte;
        small_add_token(v, &b, 1);
    }
}

static inline size_t small_length(const small_vocab *v, uint32_t id) {
    return (size_t)(v->offsets[id + 1] - v->offsets[id]);
}

/* Adds a merge, and the token left + right unless there is one with these bytes. Returns its id. */
static inline uint32_t small_add_merge(small_vocab *v, uint32_t left, uint32_t right) {
    uint8_t both[SMALL_BYTES];
    size_t n = small_length(v, left);
    size_t m = small_length(v, right);
    memcpy(both, v->bytes + v->offsets[left], n);
    memcpy(both + n, v->bytes + v->offsets[right], m);
    uint32_t id = 0;
    while (id < v->count && (small_length(v, id) != n + m || memcmp(v->bytes + v->offsets[id], both, n + m) != 0)) {
        id += 1;
    }
    if (id == v->count) {
        small_add_token(v, both, n + m);
    }
    v->merges[2 * v->merges_count] = left;
    v->merges[2 * v->merges_count + 1] = right;
    v->merged[v->merges_count++] = id;
    return id;
}

static inline uint32_t small_add_special(small_vocab *v, const char *s) {
    uint32_t id = small_add_token(v, s, strlen(s));
    v->specials[v->specials_count++] = id;
    return id;
}

static inline pybpe_vocab_spec small_spec(const small_vocab *v) {
    pybpe_vocab_spec spec = {.tokens = {v->bytes, v->offsets, v->count},
                             .merges = v->merges,
                             .merges_count = v->merges_count,
                             .specials = v->specials,
                             .specials_count = v->specials_count,
                             .eot_id = v->specials_count > 0 ? v->specials[0] : PYBPE_NO_ID,
                             .pattern = PYBPE_PATTERN_GPT2};
    return spec;
}

/* An allocator that grants `left` allocations of `least` bytes or more, and counts blocks that are not freed. With
   `once` it refuses only one. */
typedef struct failing_memory {
    long left;
    long blocks;
    size_t least;
    int once;
    size_t refused; /* bytes, the last time */
} failing_memory;

static inline void *failing_resize(void *context, void *ptr, size_t size) {
    failing_memory *m = context;
    if (size == 0) {
        m->blocks -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (size >= m->least) {
        if (m->left == 0) {
            m->left -= m->once != 0;
            m->refused = size;
            return NULL;
        }
        m->left -= 1;
    }
    m->blocks += ptr == NULL;
    return realloc(ptr, size);
}

/* The same, but only one allocation fails: an error must not be forgotten when memory comes back. */
static inline void *failing_once(void *context, void *ptr, size_t size) {
    failing_memory *m = context;
    if (size > 0 && m->left == 0) {
        m->left = -1;
        return NULL;
    }
    return failing_resize(context, ptr, size);
}

#endif
