/*
The starts of gpt2's words in a block. Internal to the splitters.

    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

    text       I t ' s   1 9 9 9 . _ _ O h !      _ is a blank
    starts     1 . 1 . 1 . . . . 1 1 1 . . 1

A word starts
 1. where the class changes, except after a blank (U+0020), which belongs to the word after it,
 2. at the last whitespace character of a run that something else follows: \s+(?!\S) leaves it, and it is a separate
    word or, if it is a blank, begins the next one,
 3. after a contraction, but not between its apostrophe and its letters. An apostrophe begins a contraction only if it
    begins a word, so there are few candidates, which are checked one by one,
 4. with digits1, at every number.

A block depends on the text before it only through one character and a contraction, and rule 2 looks one character
ahead. So only the block where a call stopped is scanned twice, on any text.
*/
#ifndef PYBPE_PRETOK_GPT2_H
#define PYBPE_PRETOK_GPT2_H

#include "pretok/pretok_block.h"

/* The length of the contraction at text[pos], an apostrophe, or 0 if there is none. */
static inline unsigned contraction_length_gpt2(const uint8_t *text, size_t n, size_t pos) {
    uint8_t a = n - pos > 1 ? text[pos + 1] : 0;
    uint8_t b = n - pos > 2 ? text[pos + 2] : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') {
        return 2;
    }
    return (a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e') ? 3 : 0;
}

/* Rule 3. A contraction may reach into the next block. */
static void starts_add_contractions(uint64_t *starts, const block *b, pretok_carry *next, const uint8_t *text, size_t n,
                                    size_t base) {
    uint64_t candidates = *starts & b->apostrophe;
    while (candidates != 0) {
        unsigned at = (unsigned)__builtin_ctzll(candidates);
        candidates &= candidates - 1;
        unsigned length = contraction_length_gpt2(text, n, base + at);
        if (length == 0) {
            continue;
        }
        if (at + 1 < b->length) {
            *starts &= ~(UINT64_C(1) << (at + 1));
        } else {
            next->joined |= 1;
        }
        if (at + length < b->length) {
            *starts |= UINT64_C(1) << (at + length);
        } else {
            next->forced |= UINT64_C(1) << (at + length - b->length);
        }
    }
}

/* Rules 1, 2 and 4, and the effect of earlier contractions. `space_follows` says whether whitespace follows the block.
   The end of the text counts as whitespace, as for \s+(?!\S). */
static inline uint64_t starts_by_class(const block *b, const pretok_carry *c, bool space_follows, bool digits1) {
    unsigned last = b->length - 1;
    uint64_t changes = (b->letter ^ (b->letter << 1 | c->letter)) | (b->number ^ (b->number << 1 | c->number)) |
                       (b->space ^ (b->space << 1 | c->space));
    uint64_t starts = changes & ~(b->blank << 1 | c->blank);
    uint64_t before_space = b->space >> 1 | (uint64_t)space_follows << last;
    starts |= first_bytes(b->space & ~before_space, b->inner);
    if (digits1) {
        starts |= b->number & ~b->inner;
    }
    return ((starts & ~c->joined) | c->forced) & bits_below(b->length);
}

/* The starts of words in the block b at text[place->base]. */
PRETOK_INLINE uint64_t block_starts_gpt2(pretok_place *place, const block *b, const uint8_t *text, size_t n,
                                         bool digits1) {
    unsigned last = b->length - 1;
    bool space_follows = whitespace_follows(b, text, n, place->base + b->length);
    uint64_t starts = starts_by_class(b, &place->carry, space_follows, digits1);
    pretok_carry *next = &place->carry; /* gcc zeroes a whole one with an instruction that takes long to begin */
    next->letter = b->letter >> last & 1;
    next->number = b->number >> last & 1;
    next->space = b->space >> last & 1;
    next->blank = b->blank >> last & 1;
    next->joined = next->forced = 0;
    if ((starts & b->apostrophe) != 0) {
        starts_add_contractions(&starts, b, next, text, n, place->base);
    }
    return starts;
}

#endif
