/*
Blocks: 64 bytes of text as bit masks, one bit per byte. Internal to the splitters.

A scanner that looks for word ends one at a time mispredicts a branch at almost every end. Here a block of text becomes
bit masks, and a few operations on whole masks give the starts of all its words (the idea is from simdjson: Langdale and
Lemire 2019):

    text       I t ' s   1 9 9 9 . _ _ O h !      _ is a blank
    letter     1 1 . 1 . . . . . . . . 1 1 .
    number     . . . . . 1 1 1 1 . . . . . .
    space      . . . . 1 . . . . . 1 1 . . .      all the others are "other": ' . !

Non-ASCII characters are looked up and then set the bits of all their bytes, so that the same operations work for them.
The mask `inner` marks the bytes that do not begin a character. A block ends between two characters, so it may be a few
bytes shorter than 64.

pretok_gpt2.h and pretok_cl100k.h find the starts. pretok_kernel.h puts the parts together for one instruction set.
*/
#ifndef PYBPE_PRETOK_BLOCK_H
#define PYBPE_PRETOK_BLOCK_H

#include "pretok/pretok_splitter.h"

#define PRETOK_INLINE __attribute__((always_inline)) static inline

enum {
    BLOCK = 64,
    BLOCK_AHEAD = 1024 /* The text this far ahead is prefetched: while the encoder also reads tables and writes ids, the
                          processor does not do that by itself soon enough */
};

/* One bit per byte of the block, the first byte's lowest. */
typedef struct block {
    uint64_t letter, number, space; /* the classes */
    uint64_t blank;                 /* U+0020 */
    uint64_t newline;               /* CR and LF */
    uint64_t apostrophe;            /* U+0027 */
    uint64_t slash;                 /* U+002F */
    uint64_t upper, lower;          /* letters. The ones in neither mask have no case */
    uint64_t mark;
    uint64_t high;   /* bytes >= 0x80 */
    uint64_t inner;  /* bytes of a character except its first */
    uint64_t known;  /* bytes >= 0x80 whose class is known */
    unsigned length; /* in bytes, 1 to 64 */
} block;

/* The first bytes of common characters of two and three bytes. */
typedef struct common_chars {
    uint64_t letters2;       /* if case does not matter */
    uint64_t upper2, lower2; /* if it does */
    uint64_t letters3;       /* without case */
    uint64_t others3;        /* punctuation */
} common_chars;

/* The functions that differ between the instruction sets. */
typedef struct block_ops {
    /* The masks of p[0..64) of ASCII, and `high`. */
    void (*classify)(block *b, const uint8_t *p);
    /* Classifies the common non-ASCII characters in p[0..64). */
    common_chars (*common)(const uint8_t *p);
    common_chars (*common_cased)(const uint8_t *p);
    /* Of some places in a block, returns the ones that no merge can cross. */
    uint64_t (*hard)(uint64_t places, const boundary_table *t, const uint8_t *text, size_t n, size_t base);
    /* Writes the set bits as offsets from the text and returns how many there are. May overwrite ends[0..64). */
    size_t (*emit)(size_t *ends, size_t base, uint64_t starts);
} block_ops;

/* The bytes of p[0..64) that are in low..high. */
typedef uint64_t range_fn(const uint8_t *p, int low, int high);

/* The bits below `count`, which is 1 to 64. */
static inline uint64_t bits_below(unsigned count) { return ~UINT64_C(0) >> (BLOCK - count); }

/* ---------------------------------------------------------------------------------------------------
Characters beyond ASCII
*/

/* Most Han letters: U+4E00 to U+9FFF are E4 B8 80 to E9 BF BF. */
PRETOK_INLINE uint64_t common_han(const uint8_t *p, range_fn *in) {
    uint64_t continuation = in(p, 0x80, 0xBF);
    uint64_t lead = in(p, 0xE4, 0xE9) & ~(in(p, 0xE4, 0xE4) & ~(in(p, 0xB8, 0xBF) >> 1));
    return lead & continuation >> 1 & continuation >> 2;
}

/* Latin letters with accents: U+00C0 to U+00FF, except for two signs (C3 97, C3 B7), and U+0100 to U+027F; Greek ones:
   U+03A3 to U+03FF, except for a sign (CF B6); Cyrillic ones: U+0400 to U+047F. */
PRETOK_INLINE uint64_t common_letters2(const uint8_t *p, range_fn *in) {
    uint64_t continuation = in(p, 0x80, 0xBF) >> 1;
    uint64_t signs = (in(p, 0x97, 0x97) | in(p, 0xB7, 0xB7)) >> 1;
    uint64_t latin = (in(p, 0xC3, 0xC3) & ~signs) | in(p, 0xC4, 0xC9);
    uint64_t greek = (in(p, 0xCE, 0xCE) & in(p, 0xA3, 0xBF) >> 1) | (in(p, 0xCF, 0xCF) & ~(in(p, 0xB6, 0xB6) >> 1));
    return (latin | greek | in(p, 0xD0, 0xD1)) & continuation;
}

/* Capitals among Latin letters with accents, U+00C0 to U+00DE except for a sign; Greek ones, U+03A3 to U+03AB; Cyrillic
   ones, U+0400 to U+042F. */
PRETOK_INLINE uint64_t common_upper2(const uint8_t *p, range_fn *in) {
    uint64_t latin = in(p, 0xC3, 0xC3) & (in(p, 0x80, 0x9E) & ~in(p, 0x97, 0x97)) >> 1;
    uint64_t greek = in(p, 0xCE, 0xCE) & in(p, 0xA3, 0xAB) >> 1;
    return latin | greek | (in(p, 0xD0, 0xD0) & in(p, 0x80, 0xAF) >> 1);
}

/* Lowercase ones: U+00DF to U+00FF except for a sign; U+03AC to U+03CE; U+0430 to U+045F. */
PRETOK_INLINE uint64_t common_lower2(const uint8_t *p, range_fn *in) {
    uint64_t latin = in(p, 0xC3, 0xC3) & (in(p, 0x9F, 0xBF) & ~in(p, 0xB7, 0xB7)) >> 1;
    uint64_t greek = (in(p, 0xCE, 0xCE) & in(p, 0xAC, 0xBF) >> 1) | (in(p, 0xCF, 0xCF) & in(p, 0x80, 0x8E) >> 1);
    uint64_t cyrillic = (in(p, 0xD0, 0xD0) & in(p, 0xB0, 0xBF) >> 1) | (in(p, 0xD1, 0xD1) & in(p, 0x80, 0x9F) >> 1);
    return latin | greek | cyrillic;
}

/* Dashes and quotation marks, U+2010 to U+2027; Chinese punctuation, U+3001 to U+3004 and U+3008 to U+3020; wide forms
   of ASCII's, U+FF01 to U+FF0F and U+FF1A to U+FF20. */
PRETOK_INLINE uint64_t common_others3(const uint8_t *p, range_fn *in) {
    uint64_t second_80 = in(p, 0x80, 0x80) >> 1;
    uint64_t second_bc = in(p, 0xBC, 0xBC) >> 1;
    uint64_t third = in(p, 0x81, 0xA0) >> 2;
    uint64_t third_e2 = in(p, 0x90, 0xA7) >> 2;
    uint64_t third_e3 = third & ~(in(p, 0x85, 0x87) >> 2);
    uint64_t third_ef = third & ~(in(p, 0x90, 0x99) >> 2);
    return (in(p, 0xE2, 0xE2) & second_80 & third_e2) | (in(p, 0xE3, 0xE3) & second_80 & third_e3) |
           (in(p, 0xEF, 0xEF) & second_bc & third_ef);
}

/* All of these. */
PRETOK_INLINE common_chars common_all(const uint8_t *p, bool cased, range_fn *in) {
    common_chars c = {.letters3 = common_han(p, in), .others3 = common_others3(p, in)};
    if (in(p, 0xC3, 0xD1) == 0) { /* the first bytes of the letters of two bytes: there are none in most Chinese text */
        return c;
    }
    if (cased) {
        c.upper2 = common_upper2(p, in);
        c.lower2 = common_lower2(p, in);
    } else {
        c.letters2 = common_letters2(p, in);
    }
    return c;
}

/* Only Han letters: where ranges take long to find, the others are faster one by one. */
PRETOK_INLINE common_chars common_few(const uint8_t *p, bool cased, range_fn *in) {
    (void)cased;
    return (common_chars){.letters3 = common_han(p, in)};
}

/* Adds common characters to a block, all at once. */
static inline void block_add_common(block *b, common_chars c) {
    uint64_t letters2 = c.letters2 | c.upper2 | c.lower2;
    uint64_t inner2 = letters2 << 1;
    uint64_t inner3 = c.letters3 << 1 | c.letters3 << 2;
    uint64_t others = c.others3 << 1 | c.others3 << 2;
    b->inner = inner2 | inner3 | others;
    b->letter |= letters2 | inner2 | c.letters3 | inner3;
    b->upper |= c.upper2 | c.upper2 << 1;
    b->lower |= c.lower2 | c.lower2 << 1;
    b->known = b->letter | b->inner | c.others3;
}

/* Ends a full block before its last character if that does not fit. A byte of 0xC0 or more begins a character. */
static inline void block_fit(block *b, const uint8_t *p) {
    b->length -= p[BLOCK - 1] >= 0xC0 ? 1 : p[BLOCK - 2] >= 0xE0 ? 2 : p[BLOCK - 3] >= 0xF0 ? 3 : 0;
}

/* The other non-ASCII characters, one by one. */
PRETOK_INLINE void block_add_multibyte(block *b, const uint8_t *text, size_t n, size_t base, bool cased) {
    uint64_t rest = b->high & ~b->known & bits_below(b->length);
    while (rest != 0) {
        unsigned at = (unsigned)__builtin_ctzll(rest);
        unicode_char c = unicode_decode_multibyte(text + base + at, n - base - at);
        uint64_t bits = bits_below(c.length) << at;
        rest &= ~bits;
        b->inner |= bits & bits << 1;
        b->letter |= (c.class & UNICODE_LETTER) != 0 ? bits : 0;
        b->number |= (c.class & UNICODE_NUMBER) != 0 ? bits : 0;
        b->space |= (c.class & UNICODE_SPACE) != 0 ? bits : 0;
        if (cased) {
            b->upper |= (c.class & UNICODE_UPPER) != 0 ? bits : 0;
            b->lower |= (c.class & UNICODE_LOWER) != 0 ? bits : 0;
            b->mark |= (c.class & UNICODE_MARK) != 0 ? bits : 0;
        }
    }
}

/* ---------------------------------------------------------------------------------------------------
A block, and the character after it
*/

/* Clears the bits after the end of the text. */
static inline void block_end(block *b) {
    uint64_t *const masks[] = {&b->letter, &b->number,     &b->space, &b->blank, &b->newline,
                               &b->upper,  &b->apostrophe, &b->slash, &b->high};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        *masks[i] &= bits_below(b->length);
    }
}

/* The masks of the block at text[base]. Bytes after the end of the text count as zeros. With `cased` it also computes
   `upper`, `lower` and `mark`. */
PRETOK_INLINE block block_load(const uint8_t *text, size_t n, size_t base, size_t readable, block_ops ops, bool cased) {
    uint8_t rest[BLOCK] = {0};
    const uint8_t *p = text + base;
    block b = {.length = BLOCK};
    if (PYBPE_UNLIKELY(n - base < BLOCK)) {
        b.length = (unsigned)(n - base);
        p = readable < base + BLOCK ? memcpy(rest, p, b.length) : p;
    }
    ops.classify(&b, p);
    if (PYBPE_UNLIKELY(b.length < BLOCK)) {
        block_end(&b);
        p = b.high != 0 ? memcpy(rest, text + base, b.length) : p;
    }
    b.lower = b.letter & ~b.upper;
    if (b.high != 0) {
        if (PYBPE_LIKELY(b.length == BLOCK)) {
            block_fit(&b, p);
        }
        block_add_common(&b, cased ? ops.common_cased(p) : ops.common(p));
        block_add_multibyte(&b, text, n, base, cased);
    }
    return b;
}

/* The first bytes of the characters whose last bytes are given. They have at most 3 bytes. */
static inline uint64_t first_bytes(uint64_t last, uint64_t inner) {
    uint64_t second = (last & inner) >> 1;
    uint64_t third = (second & inner) >> 1;
    return (last | second | third) & ~inner;
}

/* Whether whitespace, or the end, is at text[pos], after the block. That matters only if the block ends with
   whitespace; otherwise a character that is expensive to look up is not looked up. */
static inline bool whitespace_follows(const block *b, const uint8_t *text, size_t n, size_t pos) {
    if (pos < n && !byte_is_ascii(text[pos]) && (b->space >> (b->length - 1) & 1) == 0) {
        return false;
    }
    unicode_char c = unicode_decode(text, n, pos);
    return c.length == 0 || (c.class & UNICODE_SPACE) != 0;
}

/* ---------------------------------------------------------------------------------------------------
Hard boundaries

The encoder needs long words cut further, where no merge can cross (encode_boundary.c). Between ASCII characters there
are few such places. Elsewhere most places are such, and the masks show which places to check, so they are found here
too.
*/

/* The places in a block to check, other than starts of words: between two characters, unless both are ASCII. */
static inline uint64_t block_places(const block *b, const uint8_t *text, size_t base, uint64_t starts) {
    uint64_t high_before = base > 0 && !byte_is_ascii(text[base - 1]);
    return (b->high | b->high << 1 | high_before) & ~b->inner & ~starts & bits_below(b->length);
}

/* Returns the `places` in the block at text[base] that no merge can cross. */
PRETOK_INLINE uint64_t places_hard(uint64_t places, const boundary_table *t, const uint8_t *text, size_t n,
                                   size_t base) {
    bool at_edge = base < 4 || n - base < BLOCK + 4;
    uint64_t soft = 0;
    for (uint64_t rest = places; rest != 0; rest &= rest - 1) {
        unsigned at = (unsigned)__builtin_ctzll(rest);
        uint64_t around =
            PYBPE_UNLIKELY(at_edge) ? boundary_around_careful(text, n, base + at) : boundary_around(text + base + at);
        soft |= (uint64_t)boundary_is_soft(t, around) << at;
    }
    return places & ~soft;
}

/* Writes the set bits as offsets from the text, and returns how many there are. */
PRETOK_INLINE size_t emit_bits(size_t *ends, size_t base, uint64_t starts) {
    size_t count = 0;
    for (; starts != 0; starts &= starts - 1) {
        ends[count++] = base + (unsigned)__builtin_ctzll(starts);
    }
    return count;
}

#endif
