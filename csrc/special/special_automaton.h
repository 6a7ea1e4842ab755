/*
The automaton of Aho and Corasick (1975) over a set of strings. Internal to special.c.

The strings form a trie. A state is a prefix of some of them. `fail` leads from a state to the longest
proper suffix of it that is a state too, so that no byte of the text is read twice:

    strings  "he" "she"          root -h-> h -e-> HE
                                 root -s-> s -h-> sh -e-> SHE
                                 fail: sh -> h, SHE -> HE

`match` is the longest string that ends where the state ends: the state itself, or the match of its fail state.

Edges are in one hash table (state, byte) -> state, so that building takes O(total length) time and memory for any set
of strings.
*/
#ifndef PYBPE_SPECIAL_AUTOMATON_H
#define PYBPE_SPECIAL_AUTOMATON_H

#include "hash/hash.h"

enum { ROOT = 0, NO_STATE = 0 }; /* no edge leads to the root */

typedef struct special_state {
    uint32_t fail;
    uint32_t depth;
    uint32_t match_length; /* 0: no string ends here */
    uint32_t match_id;
} special_state;

typedef struct special_edge {
    uint64_t key; /* state * 256 + byte */
    uint32_t to;  /* NO_STATE: the slot is empty */
} special_edge;

typedef struct special_automaton {
    special_state *states;
    size_t states_count;
    special_edge *edges;
    size_t edges_mask;
    hash_seed seed;
    size_t max_length; /* of a string */
    size_t look_ahead; /* the most bytes that are read after a match to see whether a longer string matches */
} special_automaton;

/* Makes an automaton for strings[i] -> ids[i], whose offsets have been checked. With `backward` it reads a string
   from its end to its start. Returns PYBPE_ERR_VALUE for an empty or repeated string. */
int automaton_init(special_automaton *a, const pybpe_strings *strings, const uint32_t *ids, bool backward,
                   const pybpe_allocator *mem, pybpe_error *err);
void automaton_free(special_automaton *a, const pybpe_allocator *mem);

static inline size_t edge_slot(const special_automaton *a, uint32_t state, uint8_t byte) {
    uint64_t key = (uint64_t)state << 8 | byte;
    size_t i = (size_t)hash_mix(key ^ a->seed.a, a->seed.b | 1) & a->edges_mask;
    while (a->edges[i].to != NO_STATE && a->edges[i].key != key) {
        i = (i + 1) & a->edges_mask;
    }
    return i;
}

/* The next state: the longest suffix of the bytes read that is a state. */
static inline uint32_t state_next(const special_automaton *a, uint32_t state, uint8_t byte) {
    uint32_t next = a->edges[edge_slot(a, state, byte)].to;
    while (next == NO_STATE && state != ROOT) {
        state = a->states[state].fail;
        next = a->edges[edge_slot(a, state, byte)].to;
    }
    return next;
}

#endif
