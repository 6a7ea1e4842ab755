/*
Words that start as characters instead of bytes. Internal.

A Chinese character has three bytes, so the first two merges for a character only put it together. Most characters
of a text are tokens of the vocabulary, and do not depend on their neighbors: such a character can start as this token.

Why that is exact: suppose that every merge has a higher rank than the merges that make its two parts. Then the ranks of
the merges in a word never decrease. Let the bytes of a character become one token, alone, by merges up to rank R. In a
word, these merges take place as well, and before any merge of a rank above R, unless a merge of a lower rank joins a
part of the character with bytes outside of it. Such a merge joins tokens x and y at the start of the character, y being
its first bytes, or at its end, x being its last bytes. apply_chars.c enters the ranks of merges with such an x or y
in a table of *guards*: last byte of x, first byte of y -> the lowest rank. If the guards at both ends of a character
are above R, nothing touches the character before it is complete. And no merge with the complete character has a rank
below R, so the other merges are the same, in the same order, if it is complete from the start.

    w          E4 BD A0 E5 A5 BD          as bytes:       6 tokens, 5 merges to "ni hao"
    characters ni       hao               as characters:  2 tokens, 1 merge
*/
#ifndef PYBPE_APPLY_CHARS_H
#define PYBPE_APPLY_CHARS_H

#include "apply/merges.h"

enum {
    APPLY_CHARS = 1 << 16,     /* characters of two or three bytes are below */
    APPLY_CHARS_THREE = 0x800, /* the first one of three bytes */
    APPLY_CHAR_BYTES = 3
};

/* The length of a character of two or three bytes that begins with a byte, or 1 for any other byte. */
static inline size_t apply_char_length(uint8_t first) {
    return first < 0xC2 || first >= 0xF0 ? 1 : first < 0xE0 ? 2 : 3;
}

/* The number of a character of two or three bytes, or 0 if its other bytes do not continue it. */
static inline size_t apply_char_number(const uint8_t *w, size_t length) {
    if (length == 2) {
        return byte_is_continuation(w[1]) ? (w[0] & 0x1Fu) << 6 | (w[1] & 0x3Fu) : 0;
    }
    size_t number = (w[0] & 0x0Fu) << 12 | (w[1] & 0x3Fu) << 6 | (w[2] & 0x3Fu);
    bool whole = byte_is_continuation(w[1]) && byte_is_continuation(w[2]) && number >= APPLY_CHARS_THREE;
    return whole ? number : 0;
}

/* The lowest rank of a merge that may join part of a character at place i of w[0..n). */
static inline uint32_t apply_guard(const merge_table *t, const uint8_t *w, size_t n, size_t i) {
    return i > 0 && i < n ? t->char_guards[w[i - 1] << 8 | w[i]] : MERGE_NONE;
}

/* A token that a word can start with, and its length. */
typedef struct apply_char {
    uint32_t id;
    uint32_t length;
} apply_char;

/* The character at w[i], i < n, if it may start as a token, otherwise the byte. */
static inline apply_char apply_char_at(const merge_table *t, const uint8_t *w, size_t n, size_t i) {
    const size_t length = apply_char_length(w[i]);
    if (length > 1 && length <= n - i) {
        uint32_t rank = t->char_ranks[apply_char_number(w + i, length)];
        if (rank < apply_guard(t, w, n, i) && rank < apply_guard(t, w, n, i + length)) {
            return (apply_char){merge_result(t, rank), (uint32_t)length};
        }
    }
    return (apply_char){t->byte_ids[w[i]], 1};
}

#endif
