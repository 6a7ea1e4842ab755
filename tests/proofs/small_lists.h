/*
Every small vocabulary and every short word, for the programs that check arguments about merging.

An alphabet has a few bytes. It has all lists of up to `merges` merges: a list may contain any pair of
tokens that exist at this point, also pairs that no trainer would choose, and two merges that make the same token. Its
words are all words of up to `length` bytes.
*/
#ifndef SMALL_LISTS_H
#define SMALL_LISTS_H

#include "small_vocab.h"

#include <stdbool.h>

enum { MOST_LETTERS = 4, MOST_LENGTH = 8, MOST_WORDS = 6000 };

typedef struct alphabet {
    const char *what;
    uint8_t letters[MOST_LETTERS];
    size_t count;
    size_t merges;
    size_t length;
} alphabet;

/* A word, and the tokens that it becomes. */
typedef struct word {
    uint8_t bytes[MOST_LENGTH];
    size_t n;
    uint32_t ids[MOST_LENGTH];
    size_t count;
} word;

/* The number of words that are shorter than n. */
static inline size_t words_before(const alphabet *a, size_t n) {
    size_t before = 0;
    for (size_t k = 1, power = a->count; k < n; k++, power *= a->count) {
        before += power;
    }
    return before;
}

/* Writes all words of an alphabet; returns their number. They are numbered by length, and words of the same length as
   numbers in base `count`. */
static inline size_t words_write(const alphabet *a, word *words) {
    size_t total = 0;
    for (size_t n = 1, power = a->count; n <= a->length; n++, power *= a->count) {
        for (size_t number = 0; number < power; number++) {
            word *w = &words[total++];
            w->n = n;
            for (size_t k = n, rest = number; k-- > 0; rest /= a->count) {
                w->bytes[k] = a->letters[rest % a->count];
            }
        }
    }
    return total;
}

/* The id of token number k: first the letters, then the tokens that merges made. */
static inline uint32_t list_token(const alphabet *a, size_t k) {
    return k < a->count ? a->letters[k] : (uint32_t)(256 + k - a->count);
}

typedef void list_visitor(const alphabet *a, const small_vocab *list);

/* Visits a list and all its continuations by up to `more` merges. */
static inline void lists_visit(const alphabet *a, const small_vocab *list, size_t more, list_visitor *visit) {
    visit(a, list);
    size_t tokens = a->count + list->count - 256;
    for (size_t pair = 0; more > 0 && pair < tokens * tokens; pair++) {
        uint32_t left = list_token(a, pair / tokens);
        uint32_t right = list_token(a, pair % tokens);
        bool known = false;
        for (size_t m = 0; m < list->merges_count; m++) {
            known |= list->merges[2 * m] == left && list->merges[2 * m + 1] == right;
        }
        if (!known) {
            small_vocab next = *list;
            small_add_merge(&next, left, right);
            lists_visit(a, &next, more - 1, visit);
        }
    }
}

#endif
