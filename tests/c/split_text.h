/*
Random texts for the tests of splitters, and all words of a text.
*/
#ifndef SPLIT_TEXT_H
#define SPLIT_TEXT_H

#include "check.h"
#include "pybpe_train.h"
#include "random_state.h"

#include <string.h>

/* Splits all of the text with calls that have room for `cap` words each. Returns how many words there are. */
static inline size_t split_all(const pybpe_pretok *p, const uint8_t *text, size_t n, size_t cap, size_t *ends) {
    size_t count = 0;
    for (size_t pos = 0; pos < n; pos = ends[count - 1]) {
        size_t found = pybpe_pretok_split(p, text, n, pos, ends + count, cap);
        CHECK(found > 0 && found <= cap);
        if (found == 0 || found > cap) {
            return 0;
        }
        count += found;
    }
    return count;
}

/* Writes random ones of the first `kinds` pieces until there are at least `least` bytes. Returns how many there are. */
static inline size_t random_pieces(const char *const *pieces, uint32_t kinds, size_t least, uint8_t *text) {
    size_t n = 0;
    while (n < least) {
        const char *piece = pieces[random_below(kinds)];
        memcpy(text + n, piece, strlen(piece));
        n += strlen(piece);
    }
    return n;
}

#endif
