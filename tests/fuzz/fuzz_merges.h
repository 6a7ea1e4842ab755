/*
Random vocabularies and texts, for the targets that compare encoders.
*/
#ifndef FUZZ_MERGES_H
#define FUZZ_MERGES_H

#include "fuzz.h"
#include "small_vocab.h"

/* Merges of bytes and of earlier tokens. */
static inline void read_vocab(small_vocab *v, fuzz_input *in) {
    small_start(v);
    unsigned merges = fuzz_below(in, 60);
    for (unsigned m = 0; m < merges; m++) {
        uint32_t pair[2];
        for (int side = 0; side < 2; side++) {
            unsigned x = fuzz_byte(in);
            pair[side] = x < 128 || v->count == 256 ? x : 256 + (x - 128) % (uint32_t)(v->count - 256);
        }
        if (small_length(v, pair[0]) + small_length(v, pair[1]) <= 40) {
            small_add_merge(v, pair[0], pair[1]);
        }
    }
}

/* Bytes, and then a part of them again and again, at most `most` in all: long words, and more words than are handled at
   once. In memory of exactly their size; the caller frees it. */
static inline uint8_t *read_text(fuzz_input *in, size_t most, size_t *n) {
    size_t given, period = 1 + fuzz_byte(in), again = 4 * fuzz_byte(in);
    uint8_t *read = fuzz_bytes(in, most, &given);
    *n = given > 0 && given + again <= most ? given + again : given;
    period = period < given ? period : given;
    uint8_t *text = malloc(*n + (*n == 0));
    REQUIRE(text != NULL);
    for (size_t i = 0; i < *n; i++) {
        text[i] = i < given ? read[i] : text[i - period];
    }
    free(read);
    return text;
}

#endif
