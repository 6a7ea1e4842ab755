/*
Splitters: what pretok.c chooses from. Internal.
*/
#ifndef PYBPE_PRETOK_H
#define PYBPE_PRETOK_H

#include "dfa.h"

/* The differences between the patterns other than gpt2. */
typedef struct pretok_rules {
    unsigned numbers; /* how many numbers a word may have: 3 or 1 */
    bool cased;       /* o200k */
    bool end_is_one;  /* cl100k's \s++$: whitespace up to the end of the text is one word */
} pretok_rules;

/* What the next block needs to know about a block of text. In each mask, bit 0 concerns the last character. */
typedef struct pretok_carry {
    uint64_t letter, number, space, blank; /* its class; `blank` is U+0020 */
    uint64_t joined;                       /* bits of the next block that are in a contraction: no word starts there */
    uint64_t forced;                       /* bits of the next block where a word starts: a contraction ended */
    /* For the patterns other than gpt2: */
    uint64_t newline, other;
    uint64_t absorbed; /* a newline, or o200k's slash, that ends a word of others */
    uint64_t joins;    /* letters that follow belong to the same word */
    uint64_t lower, cased, caseless;
    unsigned group; /* the numbers in the last word, 1 to 3, if `number` */
} pretok_carry;

/* The length of the contraction at text[pos], in upper or lower case; 0 if there is none. As Unicode folds
   cases, the long s (U+017F: C5 BF) is an s. */
static inline unsigned contraction_length(const uint8_t *text, size_t n, size_t pos) {
    if (n - pos < 2 || text[pos] != '\'') {
        return 0;
    }
    int a = text[pos + 1] | 0x20;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') {
        return 2;
    }
    if (n - pos < 3) {
        return 0;
    }
    int b = text[pos + 2] | 0x20;
    bool found = (a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e') ||
                 (text[pos + 1] == 0xC5 && text[pos + 2] == 0xBF);
    return found ? 3 : 0;
}

/* How far numbers have been grouped. */
typedef struct number_groups {
    size_t end;     /* of the group that begins with the last word; 0 before the first word */
    size_t run_end; /* the end of the numbers around it */
} number_groups;

/* How far a text has been split (up to `base`), and what the next call needs to know. */
typedef struct sequence_room sequence_room;
typedef struct pretok_place pretok_place;

/* Splits text[0..n) from `place` on, where the last call with the same text stopped. Writes the ends of words to
   `ends`, which has room for `cap`, at least 64, and returns their number: 0 only after the end of the text. If the
   table is not NULL, words are also cut at those hard boundaries that are next to non-ASCII characters. */
typedef size_t pretok_cut_fn(pretok_place *place, const boundary_table *t, const uint8_t *text, size_t n, size_t *ends,
                             size_t cap);

struct pretok_place {
    size_t base;
    uint64_t ends_none; /* 1 until the first word starts, because that start does not end a word */
    bool ended;         /* the end of the last word has been written */
    pretok_carry carry;
    /* For the patterns other than gpt2: */
    size_t word;                   /* the start of the last word that starts before `base` */
    size_t resume;                 /* no word starts between base and here; one starts here */
    size_t space_end, newline_end; /* the end of a run of whitespace that lookahead has read, and of its last newline */
    dfa_place own;                 /* for a compiled regular expression; nothing else is used then */
    number_groups groups;          /* for PYBPE_PATTERN_DIGITS3 */
    const struct pretok_sequence *sequence; /* for splitters in sequence, as is `room` */
    sequence_room *room;
    pretok_cut_fn *singly; /* for PYBPE_PATTERN_DIGITS3: makes every number a word */
};

/* At the start of the word at text[pos]. pretok_place_end frees the memory of the place. `room` is used
   only by splitters in sequence, and must live as long as the place. */
pretok_place pretok_place_at(const pybpe_pretok *p, size_t pos, size_t n, sequence_room *room);
void pretok_place_end(pretok_place *place);

/* The patterns that have a cutter, each once. */
enum {
    CUT_GPT2,
    CUT_GPT2_DIGITS1,
    CUT_CL100K,
    CUT_CL100K_DIGITS1,
    CUT_O200K,
    CUT_O200K_DIGITS1,
    CUT_LLAMA3,
    CUT_QWEN2, /* llama3 with DIGITS1 is the same */
    CUT_COUNT
};

/* The cutters for one instruction set. */
typedef struct pretok_kernel {
    const char *name;
    bool (*supported)(void); /* whether this processor has the instructions */
    pretok_cut_fn *cut[CUT_COUNT];
    dfa_plain_fn *plain;
} pretok_kernel;

/* One file each. NULL if the library is compiled for another kind of processor. */
const pretok_kernel *pretok_avx512(void);
const pretok_kernel *pretok_avx2(void);
const pretok_kernel *pretok_neon(void);
const pretok_kernel *pretok_swar(void);

/* The seed for all tables of words from this splitter: tables with the same seed are added faster. */
hash_seed pretok_seed(const pybpe_pretok *p);

pretok_cut_fn *pretok_cutter(const pybpe_pretok *p);

/* The automaton of a compiled regular expression; NULL for any other splitter, and for none. */
const dfa *pretok_dfa(const pybpe_pretok *p);

/* The splitters in sequence; NULL for any other splitter, and for none. */
const struct pretok_sequence *pretok_steps(const pybpe_pretok *p);

/* pretok_scan.c: one word at a time, for the rare blocks that masks cannot split. */

/* The starts of words in the block text[base..base + length), as bits; place->resume gets the first start after it. */
uint64_t pretok_scan_starts(pretok_place *place, const uint8_t *text, size_t n, size_t base, unsigned length,
                            pretok_rules r);

/* Finds the end of the whitespace from text[pos] on, and of its last newline: place->space_end and newline_end. */
void pretok_scan_spaces(pretok_place *place, const uint8_t *text, size_t n, size_t pos);

#endif
