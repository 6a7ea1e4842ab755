/*
Splitting a text into words. Internal.
*/
#ifndef PYBPE_PRETOK_H
#define PYBPE_PRETOK_H

#include "pretok/boundary.h"
#include "pretok/dfa.h"

/* The facts about a block of text that the next one needs. In a mask, bit 0 concerns the last character. */
typedef struct pretok_carry {
    uint64_t letter, number, space, blank; /* its class. `blank` is U+0020 */
    uint64_t joined;                       /* bits of the next block that are in a contraction: no word starts there */
    uint64_t forced;                       /* bits of the next block where a word starts: a contraction ended */
    /* For the patterns other than gpt2: */
    uint64_t newline, other;
    uint64_t absorbed; /* a newline, or o200k's slash, that ends a word of others */
    uint64_t joins;    /* letters that follow belong to the same word */
    uint64_t lower, cased, caseless;
    unsigned group; /* the numbers in the last word, 1 to 3, if `number` */
} pretok_carry;

/* How far numbers have been grouped. */
typedef struct number_groups {
    size_t end;     /* of the group that begins with the last word, or 0 before the first word */
    size_t run_end; /* the end of the numbers around it */
} number_groups;

typedef struct sequence_room sequence_room;
typedef struct pretok_place pretok_place;

/* Splits text[0..n) from `place` on, where the last call with the same text stopped. Writes the ends of words to
   `ends`, which has room for `cap`, at least 64, and returns their number: 0 only after the end of the text. If the
   table is not NULL, words are also cut at those hard boundaries that are next to non-ASCII characters. */
typedef size_t pretok_cut_fn(pretok_place *place, const boundary_table *t, const uint8_t *text, size_t n, size_t *ends,
                             size_t cap);

/* How far a text has been split (up to `base`), and what the next call needs to know. */
struct pretok_place {
    size_t base;
    size_t readable;    /* of a text in a longer one, the bytes from its start on that may be read, otherwise 0 */
    uint64_t ends_none; /* 1 until the first word starts, because that start does not end a word */
    bool ended;         /* the end of the last word has been written */
    pretok_carry carry;
    /* For the patterns other than gpt2: */
    size_t word;                   /* the start of the last word that starts before `base` */
    size_t resume;                 /* no word starts between base and here. One starts here */
    size_t space_end, newline_end; /* the end of a run of whitespace that lookahead has read, and of its last newline */
    dfa_place own;                 /* for a compiled regular expression. Nothing else is used then */
    number_groups groups;          /* for PYBPE_PATTERN_DIGITS3 */
    const struct pretok_sequence *sequence; /* for splitters in sequence, as is `room` */
    sequence_room *room;
    pretok_cut_fn *singly; /* for PYBPE_PATTERN_DIGITS3: makes every number a word */
};

enum { SEQUENCE_MAX = 16, SEQUENCE_ENDS = 64 };

/* The state of one of several splitters in sequence: see pretok_sequence.c. */
typedef struct sequence_level {
    pretok_place place;
    size_t piece_end;           /* of the piece that it cuts */
    size_t start;               /* of its next word */
    size_t ends[SEQUENCE_ENDS]; /* its next words: used to count */
    size_t used, count;
} sequence_level;

struct sequence_room {
    sequence_level levels[SEQUENCE_MAX];
};

/* Sets a place to the start of the word at text[pos]. pretok_place_end frees its memory. `room` is used only by
   splitters in sequence, and must live as long as the place. */
void pretok_place_start(pretok_place *place, const pybpe_pretok *p, size_t pos, size_t n, sequence_room *room);
void pretok_place_end(pretok_place *place);

/* The seed for all tables of words from this splitter: tables with the same seed are added faster. */
hash_seed pretok_seed(const pybpe_pretok *p);

pretok_cut_fn *pretok_cutter(const pybpe_pretok *p);

#endif
