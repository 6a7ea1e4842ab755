/*
Hard boundaries: places inside a word that no merge can ever cross. Internal.
*/
#ifndef PYBPE_BOUNDARY_H
#define PYBPE_BOUNDARY_H

#include "base/base.h"

/* Two sets, of the pairs and of the windows of bytes that some merge may join: see encode_boundary.c. */
typedef struct boundary_table {
    uint64_t pairs[65536 / 64]; /* a bit per right byte * 256 + left byte */
    uint64_t window_masks[128]; /* boundary_shape -> which of the bytes around a place form its window */
    uint64_t *windows;          /* two bits in one of its words per window */
    unsigned windows_shift;     /* 64 - log2(words of windows) - 12 */
} boundary_table;

/* The four bytes before a place and the four after it, in the order of the text, the first in the low bits. */
static inline uint64_t boundary_around(const uint8_t *place) { return load_u64(place - 4); }

/* The same for place i of w[0..n), with zeros for bytes outside of it. */
static inline uint64_t boundary_around_careful(const uint8_t *w, size_t n, size_t i) {
    uint64_t around = 0;
    for (size_t k = 0; k < 8; k++) {
        if (i + k >= 4 && i + k - 4 < n) {
            around |= (uint64_t)w[i + k - 4] << (8 * k);
        }
    }
    return around;
}

/* Gathers the bits around a place that show how many bytes the characters on both sides have: bits 22, 23, 30, 31 and
   37 to 39 become the top bits of the product. */
static inline uint64_t boundary_shape(uint64_t around) {
    const uint64_t bits = UINT64_C(0xE0C0C00000);
    const uint64_t factor = UINT64_C(1) << 35 | UINT64_C(1) << 29 | UINT64_C(1) << 24;
    return (around & bits) * factor >> 57;
}

static inline uint64_t boundary_pair_index(uint64_t around) { return around >> 24 & 0xFFFF; }

/* Where the window is in `windows`: the index of a 64-bit word, then 6 bits for either of two bits in it. */
static inline uint64_t boundary_window_index(const boundary_table *t, uint64_t around) {
    uint64_t window = around & t->window_masks[boundary_shape(around)];
    return window * UINT64_C(0x9E3779B97F4A7C15) >> t->windows_shift; /* Knuth's multiplicative hashing */
}

static inline bool boundary_has_pair(const boundary_table *t, uint64_t around) {
    uint64_t pair = boundary_pair_index(around);
    return t->pairs[pair / 64] >> pair % 64 & 1;
}

static inline bool boundary_has_window(const boundary_table *t, uint64_t around) {
    uint64_t index = boundary_window_index(t, around);
    uint64_t bits = t->windows[index >> 12];
    return bits >> (index & 63) & bits >> (index >> 6 & 63) & 1;
}

/* Whether some merge may cross a place, so that a word must not be cut there. The bytes outside the word do not matter:
   they can only make this true. */
static inline bool boundary_is_soft(const boundary_table *t, uint64_t around) {
    /* No branch, since it would be hard to predict. */
    return ((int)boundary_has_pair(t, around) | (int)boundary_has_window(t, around)) != 0;
}

/* Whether no merge can cross place `at` of a word in text[0..n), 0 < at < n, so that the word may be cut there. Between
   ASCII characters, the pair decides. */
static inline bool boundary_is_hard(const boundary_table *t, const uint8_t *text, size_t n, size_t at) {
    if (byte_is_ascii(text[at - 1]) && byte_is_ascii(text[at])) {
        return !boundary_has_pair(t, (uint64_t)text[at] << 32 | (uint64_t)text[at - 1] << 24);
    }
    const bool roomy = at >= 4 && n - at >= 4;
    return !byte_is_continuation(text[at]) &&
           !boundary_is_soft(t, roomy ? boundary_around(text + at) : boundary_around_careful(text, n, at));
}

#endif
