/*
Splitters in sequence. Internal to the splitters.
*/
#ifndef PYBPE_PRETOK_SEQUENCE_H
#define PYBPE_PRETOK_SEQUENCE_H

#include "pretok.h"
#include "unicode.h"

enum { SEQUENCE_MAX = 16, SEQUENCE_ENDS = 64 };

/* The state of one splitter. */
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

typedef struct pretok_sequence {
    const pybpe_pretok *steps[SEQUENCE_MAX];
    size_t count;
    bool has_cuts;
} pretok_sequence;

/* Prepares the levels in `room` for text[pos..n). */
void sequence_start(const pretok_sequence *s, sequence_room *room, size_t pos, size_t n);

/* Frees the memory of the levels. */
void sequence_end(const pretok_sequence *s, sequence_room *room);

/* As a pretok_cut_fn, for all levels. */
size_t sequence_cut(const pretok_sequence *s, sequence_room *room, const boundary_table *t, const uint8_t *text,
                    size_t *ends, size_t cap);

/* Whether the words on both sides of text[at] are the same if the text is cut there. `a` and `b` are the characters
   before and after that place. */
bool sequence_divides(const pretok_sequence *s, const uint8_t *text, size_t n, size_t at, unicode_char a,
                      unicode_char b);

/* The same for a named pattern; b_lead is the first byte of `b`. */
bool pretok_named_divides(unicode_char a, unicode_char b, uint8_t b_lead);

/* Whether a text can be cut between any two ASCII characters. */
bool sequence_finds_cuts(const pretok_sequence *s);

#endif
