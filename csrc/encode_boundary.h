/*
Hard boundaries: places inside a word that no merge can ever cross. Internal.
*/
#ifndef PYBPE_ENCODE_BOUNDARY_H
#define PYBPE_ENCODE_BOUNDARY_H

#include "base.h"

/* Two bit sets over what lies around a place between two bytes; see encode_boundary.c. */
typedef struct boundary_table {
    uint64_t near[65536 / 64]; /* indexed by left byte * 256 + right byte */
    uint64_t *wide;            /* indexed by a hash of two bytes on each side */
    unsigned wide_shift;       /* 32 - log2(bits of wide) */
} boundary_table;

static inline bool boundary_bit(const uint64_t *bits, uint32_t i) { return bits[i / 64] >> (i % 64) & 1; }

static inline uint32_t boundary_wide_index(const boundary_table *t, uint32_t window) {
    return window * UINT32_C(0x9E3779B1) >> t->wide_shift; /* Knuth's multiplicative hashing */
}

static inline bool byte_is_ascii(uint8_t byte) { return byte < 0x80; }
static inline bool byte_is_continuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* The bytes around place i of w, those that lie inside a neighbouring character: 0 if it is ASCII. */
static inline uint32_t boundary_window(const uint8_t *w, size_t i) {
    uint32_t left = byte_is_ascii(w[i - 1]) ? 0 : w[i - 2];
    uint32_t right = byte_is_ascii(w[i]) ? 0 : w[i + 1];
    return left << 24 | (uint32_t)w[i - 1] << 16 | (uint32_t)w[i] << 8 | right;
}

/* Whether boundary_window(w, i) stays inside w[0..n). */
static inline bool boundary_has_window(const uint8_t *w, size_t n, size_t i) {
    return (byte_is_ascii(w[i - 1]) || i >= 2) && (byte_is_ascii(w[i]) || i + 2 <= n);
}

/* Whether the word w[0..n) can be cut at i, 0 < i < n, without changing its tokens. Only places before a
   byte that is not a continuation byte may be asked. */
static inline bool boundary_is_hard(const boundary_table *t, const uint8_t *w, size_t n, size_t i) {
    if (boundary_bit(t->near, (uint32_t)w[i - 1] << 8 | w[i])) {
        return false;
    }
    if (byte_is_ascii(w[i - 1]) && byte_is_ascii(w[i])) {
        return true;
    }
    return boundary_has_window(w, n, i) && !boundary_bit(t->wide, boundary_wide_index(t, boundary_window(w, i)));
}

/* From the merges of v. */
int boundary_table_new(boundary_table *t, const pybpe_vocab *v, const pybpe_allocator *mem, pybpe_error *err);
void boundary_table_free(boundary_table *t, const pybpe_allocator *mem);

#endif
