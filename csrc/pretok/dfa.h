/*
Splitters for custom patterns, as compiled regular expressions. Internal.
*/
#ifndef PYBPE_DFA_H
#define PYBPE_DFA_H

#include "pretok/boundary.h"

typedef struct dfa dfa;

/* The states that lead to no match, and the places in the text where they were seen: see dfa.c. */
typedef struct dfa_memo {
    uint64_t *bits;
    size_t from, until; /* the places that it has bits for */
} dfa_memo;

/* How far a text has been split. */
typedef struct dfa_place {
    const dfa *dfa; /* NULL for the place of another splitter */
    size_t at;
    uint32_t row; /* of the state at that place */
    bool ended;   /* the end of the last word has been written */
    dfa_memo memo;
} dfa_place;

int dfa_new(dfa **out, const pybpe_automaton *tables, const pybpe_allocator *mem, pybpe_error *err);
void dfa_free(dfa *a, const pybpe_allocator *mem);

dfa_place dfa_place_at(const dfa *a, size_t pos, size_t n);
void dfa_place_end(dfa_place *place);

/* As a pretok_cut_fn. */
size_t dfa_cut(dfa_place *place, const boundary_table *t, const uint8_t *text, size_t n, size_t *ends, size_t cap);

/* The class of the character at p[0..left), left > 0, and its length in bytes. `valid` is false for a byte that is not
   UTF-8. */
uint32_t dfa_class(const dfa *a, const uint8_t *p, size_t left, uint8_t *length, bool *valid);

/* Whether a text can be cut between characters of any two classes. */
bool dfa_has_cuts(const dfa *a);

/* Whether a text can be cut between any two characters of these classes, in this order. */
bool dfa_divides(const dfa *a, uint32_t before, uint32_t after);

/* Whether such a cut either leaves the words as they are, or divides one word in two and changes nothing else. */
bool dfa_passes(const dfa *a, uint32_t before, uint32_t after);

/* Whether it reads bytes rather than characters. */
bool dfa_reads_bytes(const dfa *a);

#endif
