/*
The starts of the words of cl100k, llama3, qwen2, nanochat and o200k in a block. Internal to the splitters.

    (?i:'s|'t|'re|'ve|'m|'ll|'d)             contractions; in o200k they end a word of letters instead
    [^\r\n\p{L}\p{N}]?\p{L}+                 letters, after one character that is not a newline, letter or number
    \p{N}{1,3}                               numbers; nanochat takes at most two, qwen2 one
     ?[^\s\p{L}\p{N}]+[\r\n]*                others; in o200k slashes may be among the newlines
    \s++$ (cl100k only) | \s*[\r\n]+ | \s+(?!\S) | \s+

    text       i f _ ( a ) { N _ _ _ _ r ( " x " ) ;      _ is a blank, N a newline
    starts     1 . 1 . 1 1 . . 1 . . 1 . 1 . . 1 . .
    absorbed   . . . . . . . 1 . . . . . . . . . . .

 1. Others absorb the newlines after them. The other rules do not count these as whitespace.
 2. Whitespace starts a word where its run starts, after the last newline of the run, and at its last character if that
    is not a newline and something follows.
 3. Others start a word where their run starts, except after a blank, which starts it.
 4. Letters start a word where their run starts, except after whitespace that is not a newline, and after a run of one
    other without a blank before it: these start the word. In o200k a capital after a lowercase letter also starts a
    word.
 5. Numbers start a word where their run starts, and at every third number, or second one.
 6. A word starts after a contraction.

Rare blocks go to pretok_scan.c: those with numbers of several bytes, which have to be counted, and in o200k those with
marks, which are both letters and others, or with letters without case next to letters with case.

A block depends on the text before it only through one character, a contraction, and how many numbers are in a group.
Rule 2 looks ahead to the end of the whitespace, once. A word that is scanned is scanned once, to its end. So every text
takes linear time.
*/
#ifndef PYBPE_PRETOK_CL100K_H
#define PYBPE_PRETOK_CL100K_H

#include "pretok/pretok_block.h"

/* The masks of a block as the rules need them, and the result. */
typedef struct split_state {
    uint64_t valid;                    /* the bytes to process */
    uint64_t space, newline;           /* except for absorbed ones */
    uint64_t plain;                    /* whitespace, except for newlines */
    uint64_t other;                    /* except for absorbed ones */
    uint64_t joins;                    /* characters that letters after them belong to */
    uint64_t next_joined, next_forced; /* see pretok_carry */
    unsigned next_group;
} split_state;

static inline uint64_t bit_at(uint64_t mask, unsigned at) { return mask >> at & 1; }

/* Rule 1. From a newline after an other, a run of newlines and slashes. */
static inline uint64_t absorbed_by_others(uint64_t newline, uint64_t slash, uint64_t other, const pretok_carry *c) {
    uint64_t run = newline | slash;
    uint64_t first = (newline & (other << 1 | c->other)) | (run & c->absorbed);
    uint64_t absorbed = 0;
    while (first != 0) {
        uint64_t lowest = first & (0 - first);
        uint64_t reached = run & ~(run + lowest); /* a carry clears the run's bits from there on */
        absorbed |= reached;
        first &= ~reached;
    }
    return absorbed;
}

/* Whether whitespace, or the end, is at text[pos], after a block that ends with whitespace. Sets *hides if that
   whitespace has a newline, or is cl100k's end, so that no word starts after an earlier newline. */
static inline bool space_follows(pretok_place *place, const uint8_t *text, size_t n, size_t pos, bool end_is_one,
                                 bool *hides) {
    *hides = false;
    if (pos < n && byte_is_ascii(text[pos]) && (pybpe_unicode_blocks[text[pos]] & UNICODE_SPACE) == 0) {
        return false;
    }
    if (pos >= place->space_end) {
        pretok_scan_spaces(place, text, n, pos);
    }
    *hides = place->newline_end > pos || (end_is_one && place->space_end == n);
    return place->space_end > pos || pos == n;
}

/* The bits of `after` that are not followed, in the same run of whitespace, by one of the newlines `hidden`. */
static inline uint64_t drop_hidden(uint64_t after, uint64_t hidden) {
    for (; hidden != 0; hidden &= hidden - 1) {
        uint64_t before = after & ((hidden & (0 - hidden)) - 1);
        after &= ~(UINT64_C(1) << (63 - __builtin_clzll(before)));
    }
    return after;
}

/* The bytes below the last run of `space`, which ends with bit `last`. */
static inline uint64_t bits_before_run(uint64_t space, unsigned last) {
    uint64_t outside = ~space & bits_below(last + 1);
    return outside == 0 ? 0 : bits_below(64 - (unsigned)__builtin_clzll(outside));
}

/* Rule 2. */
static inline uint64_t starts_of_spaces(pretok_place *place, const block *b, const split_state *s, const uint8_t *text,
                                        size_t n, bool end_is_one) {
    const pretok_carry *c = &place->carry;
    unsigned last = b->length - 1;
    uint64_t starts = s->space & ~(s->space << 1 | c->space);
    uint64_t after = s->plain & (s->newline << 1 | c->newline);
    uint64_t hidden = (s->plain + after) & s->newline; /* a carry runs to the end of the plain bytes */
    uint64_t before_space = s->space >> 1;
    if (PYBPE_UNLIKELY(hidden != 0)) {
        after = drop_hidden(after, hidden);
    }
    if (bit_at(s->space, last)) {
        bool hides;
        before_space |= (uint64_t)space_follows(place, text, n, place->base + b->length, end_is_one, &hides) << last;
        after &= hides ? bits_before_run(s->space, last) : ~UINT64_C(0);
    }
    return starts | after | first_bytes(s->plain & ~before_space, b->inner);
}

/* Rule 3, and which others the letters after them belong to. */
static inline uint64_t starts_of_others(const block *b, split_state *s, const pretok_carry *c) {
    uint64_t not_alone = s->other << 1 | c->other | b->blank << 1 | c->blank;
    uint64_t apart = s->other & not_alone & ~b->inner; /* first bytes of characters that take no letters */
    if (b->inner != 0) {
        apart |= apart << 1 & b->inner;
        apart |= (apart << 1 & b->inner) | (apart << 2 & b->inner & b->inner << 1);
    }
    s->joins = s->plain | (s->other & ~apart);
    return s->other & ~not_alone;
}

/* Rule 4. */
static inline uint64_t starts_of_letters(const block *b, const split_state *s, const pretok_carry *c, bool cased) {
    uint64_t starts = b->letter & ~(b->letter << 1 | c->letter) & ~(s->joins << 1 | c->joins);
    if (cased) {
        starts |= b->upper & ~b->inner & (b->lower << 1 | c->lower);
    }
    return starts;
}

/* Rule 5, for numbers of one byte. A word has at most `most` of them: 2 or 3. */
static inline uint64_t starts_of_numbers(const block *b, split_state *s, const pretok_carry *c, unsigned most) {
    uint64_t number = b->number;
    if (number == 0) {
        return 0;
    }
    uint64_t starts = number & ~(number << 1 | c->number);
    if ((number & c->number) != 0) {
        uint64_t rest = bits_below(most + 1 - c->group); /* of the group that the previous block began, and one more */
        starts |= (number & rest) == rest ? UINT64_C(1) << (most - c->group) : 0;
    }
    uint64_t after_most = number & number << 1 & number << 2 & (most == 3 ? number << 3 : number);
    for (uint64_t next = starts << most & after_most; next != 0; next = next << most & after_most) {
        starts |= next;
    }
    unsigned last = b->length - 1;
    if (bit_at(number, last)) {
        s->next_group = starts != 0 ? last + 1 - (63 - (unsigned)__builtin_clzll(starts)) : c->group + last + 1;
    }
    return starts;
}

/* Sets bit `at` of the block, or of the next one. */
static inline void set_bit(uint64_t *mask, uint64_t *next, unsigned at, unsigned length) {
    *(at < length ? mask : next) |= UINT64_C(1) << (at < length ? at : at - length);
}

/* Rule 6. In o200k an apostrophe after a letter does not start a word if it begins a contraction, and neither does a
   capital inside the contraction, but after a contraction it does, since a word has only one. */
static inline uint64_t with_contractions(uint64_t starts, split_state *s, const block *b, const pretok_place *place,
                                         const uint8_t *text, size_t n, bool cased) {
    const pretok_carry *c = &place->carry;
    uint64_t candidates = b->apostrophe & (cased ? b->letter << 1 | c->letter : starts);
    uint64_t forced = c->forced;
    uint64_t joined = c->joined;
    for (; candidates != 0; candidates &= candidates - 1) {
        unsigned at = (unsigned)__builtin_ctzll(candidates);
        unsigned length = cased && bit_at(forced, at) ? 0 : contraction_length(text, n, place->base + at);
        if (length != 0) {
            set_bit(&forced, &s->next_forced, at + length, b->length);
        }
        if (length != 0 && cased) {
            set_bit(&joined, &s->next_joined, at, b->length);
            set_bit(&joined, &s->next_joined, at + length - 1, b->length);
        }
    }
    return (starts & ~joined) | forced;
}

/* Stores the facts about this block that the next one needs. The members are written one by one: a copy of a whole
   structure would read it in larger parts right after it was written, and the processor would wait for the writes. */
static inline void carry_put(pretok_carry *next, const block *b, const split_state *s, uint64_t absorbed, bool cased) {
    unsigned last = b->length - 1;
    next->letter = bit_at(b->letter, last);
    next->number = bit_at(b->number, last);
    next->space = bit_at(s->space, last);
    next->blank = bit_at(b->blank, last);
    next->newline = bit_at(s->newline, last);
    next->other = bit_at(s->other, last);
    next->absorbed = bit_at(absorbed, last);
    next->joins = bit_at(s->joins, last);
    if (cased) {
        next->lower = bit_at(b->lower, last);
        next->cased = bit_at(b->upper | b->lower, last);
        next->caseless = bit_at(b->letter & ~(b->upper | b->lower), last);
    }
    next->joined = s->next_joined;
    next->forced = s->next_forced;
    next->group = s->next_group;
}

/* Whether the masks are not enough to find the starts of words. */
static inline bool block_is_rare(const block *b, const pretok_carry *c, pretok_rules r) {
    uint64_t rare = r.numbers > 1 ? b->number & b->high : 0;
    if (r.cased) {
        uint64_t cased = b->upper | b->lower;
        uint64_t caseless = b->letter & ~cased;
        rare |= b->mark | (cased & (caseless << 1 | c->caseless)) | (caseless & (cased << 1 | c->cased));
    }
    return rare != 0;
}

/* Forgets the bytes of the block before place->resume, where a word starts. Returns whether there are others. */
static inline bool block_resume(pretok_place *place, block *b, uint64_t *valid) {
    size_t skipped = place->resume - place->base;
    place->carry = (pretok_carry){0};
    if (skipped >= b->length) {
        return false;
    }
    uint64_t kept = ~UINT64_C(0) << skipped;
    *valid &= kept;
    for (uint64_t *masks[] = {&b->letter, &b->number, &b->space, &b->blank, &b->newline, &b->apostrophe, &b->slash,
                              &b->upper, &b->lower, &b->mark, NULL},
                  **mask = masks;
         *mask != NULL; mask++) {
        **mask &= kept;
    }
    place->carry.forced = UINT64_C(1) << skipped;
    return true;
}

/* The starts of words in the block b at text[place->base]. */
PRETOK_INLINE uint64_t block_starts_cl100k(pretok_place *place, block *b, const uint8_t *text, size_t n,
                                           pretok_rules r) {
    split_state s = {.valid = bits_below(b->length)};
    if (PYBPE_UNLIKELY(place->resume >= place->base) && !block_resume(place, b, &s.valid)) {
        return 0;
    }
    const pretok_carry *c = &place->carry;
    uint64_t starts;
    if (PYBPE_UNLIKELY(block_is_rare(b, c, r))) {
        starts = pretok_scan_starts(place, text, n, place->base, b->length, r);
        place->carry = (pretok_carry){0};
    } else {
        uint64_t others = ~(b->letter | b->number | b->space) & s.valid;
        uint64_t absorbed = absorbed_by_others(b->newline, r.cased ? b->slash : 0, others, c);
        s.space = b->space & ~absorbed;
        s.newline = b->newline & ~absorbed;
        s.plain = s.space & ~s.newline;
        s.other = others & ~absorbed;
        starts = starts_of_spaces(place, b, &s, text, n, r.end_is_one) | starts_of_others(b, &s, c) |
                 (r.numbers > 1 ? starts_of_numbers(b, &s, c, r.numbers) : b->number & ~b->inner);
        starts |= starts_of_letters(b, &s, c, r.cased);
        starts = with_contractions(starts, &s, b, place, text, n, r.cased) & s.valid;
        carry_put(&place->carry, b, &s, absorbed, r.cased);
    }
    place->word = starts != 0 ? place->base + 63 - (unsigned)__builtin_clzll(starts) : place->word;
    return starts;
}

#endif
