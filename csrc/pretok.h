/*
Splitters: what pretok.c chooses from. Internal.
*/
#ifndef PYBPE_PRETOK_H
#define PYBPE_PRETOK_H

#include "encode_boundary.h"

/* The instructions that a splitter may use, narrowest first. */
enum pretok_simd { PRETOK_SWAR, PRETOK_AVX2, PRETOK_AVX512 };

/* The contract of pybpe_pretok_split, for one pattern. */
typedef size_t pretok_split_fn(const uint8_t *text, size_t n, size_t pos, size_t *ends, size_t cap);

/* What a block of text leaves to the next one: bits of the next one's first bytes. */
typedef struct pretok_carry {
    uint64_t letter, number, space, blank; /* bit 0: the class of the character before */
    uint64_t joined;                       /* no word starts here: the letter of a contraction */
    uint64_t forced;                       /* a word starts here: a contraction ended before */
} pretok_carry;

/* How far a text is cut: before `base`, and what the next call needs to know. */
typedef struct pretok_place {
    size_t base;
    uint64_t ends_none; /* 1 until the first word starts, whose start ends none */
    bool ended;         /* the end of the last word was given */
    pretok_carry carry;
} pretok_place;

/* At the start of the word at text[pos]. */
static inline pretok_place pretok_place_at(size_t pos, size_t n) {
    return (pretok_place){.base = pos, .ends_none = 1, .ended = pos == n, .carry = {.forced = 1}};
}

/* Cuts text[0..n) from `place` on, where the last call with the same text stopped. The ends of words go to `ends`, which
   has room for `cap`, at least 64; returns their number, 0 only behind the end of the text. With a table, not NULL,
   words are also cut at those hard boundaries that are next to characters beyond ASCII. */
typedef size_t pretok_cut_fn(pretok_place *place, const boundary_table *t, const uint8_t *text, size_t n, size_t *ends,
                             size_t cap);

/* The seed of all tables of words that this splitter cuts: tables with the same seed are added faster. */
hash_seed pretok_seed(const pybpe_pretok *p);

/* pretok_gpt2.c: 64 bytes at a time, as bit masks. */
pretok_cut_fn *pretok_gpt2_cutter(enum pretok_simd simd, bool digits1);

/* The cutter of p, or NULL if its pattern has none. */
pretok_cut_fn *pretok_cutter(const pybpe_pretok *p);

/* pretok_scan.c: character by character. */
pretok_split_fn *pretok_scan_splitter(int pattern);

#endif
