/*
Special tokens by their definition: look at each place for each string. Slow and obvious: the matchers must find the same.
*/
#ifndef NAIVE_SPECIAL_H
#define NAIVE_SPECIAL_H

#include "special/special.h"

#include <string.h>

/* Strings as the tests write them. */
typedef struct string_list {
    uint8_t bytes[4096];
    uint64_t offsets[65];
    uint32_t ids[64];
    pybpe_strings strings;
} string_list;

static inline void list_start(string_list *l) {
    l->offsets[0] = 0;
    l->strings = (pybpe_strings){l->bytes, l->offsets, 0};
}

static inline void list_add(string_list *l, const void *string, size_t n) {
    size_t i = l->strings.count++;
    memcpy(l->bytes + l->offsets[i], string, n);
    l->offsets[i + 1] = l->offsets[i] + n;
    l->ids[i] = (uint32_t)(1000 + i);
}

static inline void list_string(string_list *l, const char *string) { list_add(l, string, strlen(string)); }

static inline int occurs_at(const string_list *l, size_t i, const uint8_t *text, size_t n, size_t at) {
    size_t length = (size_t)(l->offsets[i + 1] - l->offsets[i]);
    return length <= n - at && memcmp(text + at, l->bytes + l->offsets[i], length) == 0;
}

/* The leftmost longest string in text[from..n). */
static inline int naive_find(const string_list *l, const uint8_t *text, size_t n, size_t from, size_t *start,
                             size_t *end, uint32_t *id) {
    for (size_t at = from; at < n; at++) {
        size_t longest = 0;
        for (size_t i = 0; i < l->strings.count; i++) {
            size_t length = (size_t)(l->offsets[i + 1] - l->offsets[i]);
            if (length > longest && occurs_at(l, i, text, n, at)) {
                longest = length;
                *id = l->ids[i];
            }
        }
        if (longest > 0) {
            *start = at;
            *end = at + longest;
            return 1;
        }
    }
    return 0;
}

/* The characters of texts with flags: those of words, white space, and others. */
static const char *const characters[] = {"a", "b",   "c", "_", "\xC3\xA9", " ", "\n", "\xC2\xA0", "\xE3\x80\x80",
                                         "<", "\xFF"};
enum { WORD_CHARACTERS = 5, FIRST_SPACE = 5, LAST_SPACE = 8, CHARACTERS = sizeof characters / sizeof *characters };

/* The character that begins at `at`, or with `back` the one that ends there; CHARACTERS if there is none. */
static inline size_t character_at(const uint8_t *text, size_t n, size_t at, int back) {
    for (size_t i = 0; i < CHARACTERS; i++) {
        size_t length = strlen(characters[i]);
        if (length <= (back ? at : n - at) && memcmp(text + at - (back ? length : 0), characters[i], length) == 0) {
            return i;
        }
    }
    return CHARACTERS;
}

static inline size_t space_length(size_t character) {
    return character >= FIRST_SPACE && character <= LAST_SPACE ? strlen(characters[character]) : 0;
}

/* The matches of one pass in text[from..n), by definition. Appends them to `found`. */
static inline size_t naive_pass(const string_list *l, const uint8_t *flags, int late, const uint8_t *text, size_t n,
                                special_match *found) {
    size_t count = 0, done = 0;
    string_list own;
    list_start(&own);
    uint8_t own_flags[64];
    for (size_t i = 0; i < l->strings.count; i++) {
        if (!(flags[i] & PYBPE_SPECIAL_LATE) == !late) {
            own_flags[own.strings.count] = flags[i];
            list_add(&own, l->bytes + l->offsets[i], (size_t)(l->offsets[i + 1] - l->offsets[i]));
            own.ids[own.strings.count - 1] = (uint32_t)(own.strings.count - 1);
        }
    }
    size_t start = 0, end = 0;
    uint32_t k = 0;
    for (size_t from = 0; naive_find(&own, text, n, from, &start, &end, &k);) {
        from = end;
        if ((own_flags[k] & PYBPE_SPECIAL_SINGLE_WORD) &&
            (character_at(text, n, start, 1) < WORD_CHARACTERS || character_at(text, n, end, 0) < WORD_CHARACTERS)) {
            continue;
        }
        for (size_t space = 1; space > 0 && (own_flags[k] & PYBPE_SPECIAL_LSTRIP) && start > done; start -= space) {
            space = space_length(character_at(text, n, start, 1));
        }
        for (size_t space = 1; space > 0 && (own_flags[k] & PYBPE_SPECIAL_RSTRIP) && end < n; end += space) {
            space = space_length(character_at(text, n, end, 0));
        }
        for (uint32_t i = 0; i < l->strings.count; i++) {
            size_t length = (size_t)(own.offsets[k + 1] - own.offsets[k]);
            if (l->offsets[i + 1] - l->offsets[i] == length && occurs_at(l, i, own.bytes + own.offsets[k], length, 0)) {
                found[count] = (special_match){start, end, l->ids[i]};
            }
        }
        done = end;
        count++;
    }
    return count;
}

/* The matches of both passes; `found` has room for one for each byte. */
static inline size_t naive_flags(const string_list *l, const uint8_t *flags, const uint8_t *text, size_t n,
                                 special_match *found) {
    special_match early[128];
    size_t count = 0, begin = 0, earlies = naive_pass(l, flags, 0, text, n, early);
    for (size_t i = 0; i <= earlies; i++) {
        size_t stop = i < earlies ? early[i].start : n;
        size_t lates = naive_pass(l, flags, 1, text + begin, stop - begin, found + count);
        for (size_t k = 0; k < lates; k++, count++) {
            found[count].start += begin;
            found[count].end += begin;
        }
        if (i < earlies) {
            found[count++] = early[i];
            begin = early[i].end;
        }
    }
    return count;
}

#endif
