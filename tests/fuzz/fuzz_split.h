/*
Splitting a whole text, for the targets that compare splitters.
*/
#ifndef FUZZ_SPLIT_H
#define FUZZ_SPLIT_H

#include "fuzz.h"
#include "pybpe_train.h"

enum { SPLIT_MOST_TEXT = 1024 };

/* All ends of words of text[0..n), asked for `cap` at a time; each plus `add`. Both n and cap - 64
   are at most SPLIT_MOST_TEXT. */
static size_t split(const pybpe_pretok *p, const uint8_t *text, size_t n, size_t cap, size_t *all, size_t add) {
    size_t ends[SPLIT_MOST_TEXT + 64];
    size_t count = 0;
    for (size_t pos = 0; pos < n;) {
        size_t words = pybpe_pretok_split(p, text, n, pos, ends, cap);
        REQUIRE(words > 0 && words <= cap);
        for (size_t i = 0; i < words; i++) {
            REQUIRE(ends[i] > pos && ends[i] <= n);
            pos = ends[i];
            all[count++] = pos + add;
        }
    }
    return count;
}

#endif
