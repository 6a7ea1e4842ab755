/*
csrc/special/special_automaton.c: the functions that build the automaton of special tokens, and its steps, with any trie and any
table of edges that is not full. specials.c is about what uses the automaton.
*/
#include "any_entropy.h"

#include <base/base.c>
#include <special/special_automaton.c>

enum { STATES = 4, ROOM = STATES + 4, SLOTS = 16 };

static special_state states[ROOM];
static special_edge edges[SLOTS];
static trie_step steps[ROOM];
static special_automaton automaton;

/* A trie of n states. Some of the edges that lead to them may be missing from the table. */
static void any_trie(size_t n) {
    memset(states, 0, sizeof states);
    memset(edges, 0, sizeof edges);
    for (size_t i = 1; i < n; i++) {
        uint32_t parent = (uint32_t)any_between(0, i - 1);
        uint8_t byte = (uint8_t)any_between('a', any_bool() ? 'b' : 0xFF);
        steps[i] = (trie_step){parent, byte};
        states[i].depth = states[parent].depth + 1;
        edges[any_between(0, SLOTS - 1)] = (special_edge){(uint64_t)parent << 8 | byte, (uint32_t)i};
    }
    automaton = (special_automaton){.states = states, .states_count = n, .edges = edges, .edges_mask = SLOTS - 1};
    automaton.max_length = n - 1;
    automaton.seed = (hash_seed){any_u64(), any_u64()};
}

/* The strings of some states end there. */
static void any_matches(size_t n) {
    for (size_t i = 1; i < n; i++) {
        states[i].match_length = any_bool() ? states[i].depth : 0;
    }
}

/* Each state but the root fails to one of less depth. */
static void any_fails(size_t n) {
    for (size_t i = 1; i < n; i++) {
        states[i].fail = (uint32_t)any_between(0, n - 1);
        ASSUME(states[states[i].fail].depth < states[i].depth);
    }
}

/* All states, the root first, and none before one of less depth. */
static void any_order(uint32_t *by_depth, size_t n) {
    bool taken[ROOM] = {false};
    for (size_t i = 0; i < n; i++) {
        by_depth[i] = (uint32_t)any_between(0, n - 1);
        ASSUME(!taken[by_depth[i]] && (i == 0 || states[by_depth[i]].depth >= states[by_depth[i - 1]].depth));
        taken[by_depth[i]] = true;
    }
}

static bool edge_is_sound(const special_edge *edge) {
    const trie_step *step = &steps[edge->to];
    return edge->to == NO_STATE ||
           (edge->to < automaton.states_count && edge->key == ((uint64_t)step->parent << 8 | step->byte));
}

uint64_t any_hash(uint64_t a, uint64_t b) { return any_u64() ^ a ^ b; }

/* The search for any edge ends in a slot, which is empty or has the edge. */
void prove_slot(size_t n) {
    any_trie(n);
    uint32_t state = (uint32_t)any_between(0, n - 1);
    uint8_t byte = (uint8_t)any_u64();
    size_t slot = edge_slot(&automaton, state, byte);
    CHECK(slot < SLOTS && (edges[slot].to == NO_STATE || edges[slot].key == ((uint64_t)state << 8 | byte)));
}

/* What that shows. */
size_t any_slot(const special_automaton *a, uint32_t state, uint8_t byte) {
    size_t slot = (size_t)any_between(0, SLOTS - 1), empty = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        empty += a->edges[i].to == NO_STATE;
    }
    CHECK(state < a->states_count && empty > 0);
    ASSUME(a->edges[slot].to == NO_STATE || a->edges[slot].key == ((uint64_t)state << 8 | byte));
    return slot;
}

/* A string of n bytes adds at most n states to four, and each is one byte longer than the one before it. */
void prove_insert(size_t n) {
    bool backward = any_bool();
    uint8_t *bytes = any_bytes(n);
    uint32_t last;
    any_trie(STATES);
    automaton.states = (special_state *)any_bytes((STATES + n) * sizeof *states);
    memcpy(automaton.states, states, STATES * sizeof *states);
    (void)trie_insert(&automaton, steps, bytes, n, backward, &last);
    CHECK(automaton.states_count <= STATES + n && last < automaton.states_count);
    CHECK(automaton.states[last].depth == n);
    for (size_t i = 1; i < automaton.states_count; i++) {
        CHECK(steps[i].parent < i && automaton.states[i].depth == automaton.states[steps[i].parent].depth + 1);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        CHECK(edge_is_sound(&edges[i]));
    }
    free(automaton.states);
    free(bytes);
}

/* What that shows. */
int any_insertion(special_automaton *a, trie_step *unused, const uint8_t *bytes, size_t n, bool backward,
                  uint32_t *last) {
    (void)unused;
    (void)backward;
    CHECK(n > 0 && a->states_count + n <= ROOM);
    check_readable(bytes, n);
    a->states_count += any_between(0, n);
    *last = (uint32_t)any_between(0, a->states_count - 1);
    a->states[*last].depth = (uint32_t)n;
    return any_bool();
}

/* Up to n strings, with as many bytes together as there is room for states. */
void prove_strings(size_t n) {
    enum { STRINGS = 3 };
    uint64_t offsets[STRINGS + 1] = {0};
    uint32_t ids[STRINGS] = {0};
    uint8_t *bytes = any_bytes(ROOM - 1);
    for (size_t i = 0; i < n; i++) {
        offsets[i + 1] = any_between(offsets[i], ROOM - 1);
    }
    const pybpe_strings strings = {bytes, offsets, n};
    any_trie(1);
    if (strings_insert(&automaton, steps, &strings, ids, any_bool(), NULL) == PYBPE_OK) {
        CHECK(automaton.max_length <= ROOM - 1 && (n == 0 || automaton.max_length > 0));
        for (size_t i = 0; i < automaton.states_count; i++) {
            CHECK(states[i].match_length <= automaton.max_length);
        }
    }
    free(bytes);
}

/* n states are sorted by depth. */
void prove_sort(size_t n) {
    any_trie(n);
    uint32_t *starts = calloc(n + 1, sizeof *starts), *by_depth = malloc(n * sizeof *by_depth);
    ASSUME(starts != NULL && by_depth != NULL);
    states_sort(&automaton, by_depth, starts);
    CHECK(by_depth[0] == ROOT);
    for (size_t i = 1; i < n; i++) {
        CHECK(by_depth[i] < n && states[by_depth[i]].depth >= states[by_depth[i - 1]].depth);
    }
    free(starts);
    free(by_depth);
}

/* A step leads to a state with at most one byte more. */
void prove_next(size_t n) {
    any_trie(n);
    any_fails(n);
    uint32_t state = (uint32_t)any_between(0, n - 1);
    uint32_t next = state_next(&automaton, state, (uint8_t)any_u64());
    CHECK(next < n && states[next].depth <= states[state].depth + 1);
}

/* What that shows. */
uint32_t any_next(const special_automaton *a, uint32_t state, uint8_t byte) {
    uint32_t next = (uint32_t)any_between(0, a->states_count - 1);
    (void)byte;
    CHECK(state < a->states_count);
    for (size_t i = 1; i < a->states_count; i++) {
        CHECK(a->states[i].depth > a->states[state].depth || a->states[a->states[i].fail].depth < a->states[i].depth);
    }
    ASSUME(a->states[next].depth <= a->states[state].depth + 1);
    return next;
}

/* Each of n states fails to one of less depth, and no match is longer than its state. */
void prove_fails(size_t n) {
    uint32_t by_depth[ROOM];
    any_trie(n);
    any_matches(n);
    any_order(by_depth, n);
    fails_set(&automaton, steps, by_depth);
    for (size_t i = 1; i < n; i++) {
        CHECK(states[i].fail < n && states[states[i].fail].depth < states[i].depth);
        CHECK(states[i].match_length <= states[i].depth);
    }
}

/* No more bytes are read after a match than a string has. */
void prove_look_ahead(size_t n) {
    uint32_t by_depth[ROOM];
    any_trie(n);
    any_matches(n);
    any_order(by_depth, n);
    uint32_t *deepest = calloc(n, sizeof *deepest);
    ASSUME(deepest != NULL);
    look_ahead_set(&automaton, steps, by_depth, deepest);
    CHECK(automaton.look_ahead < n);
    free(deepest);
}

void any_sorting(const special_automaton *a, uint32_t *by_depth, uint32_t *starts) {
    any_fill(by_depth, a->states_count * sizeof *by_depth);
    check_readable(starts, (a->max_length + 2) * sizeof *starts);
}

void any_failing(special_automaton *a, const trie_step *all, const uint32_t *by_depth) {
    check_readable(all, a->states_count * sizeof *all);
    check_readable(by_depth, a->states_count * sizeof *by_depth);
}

void any_looking(special_automaton *a, const trie_step *all, const uint32_t *by_depth, uint32_t *deepest) {
    any_failing(a, all, by_depth);
    any_fill(deepest, a->states_count * sizeof *deepest);
}

/* There is memory for what these functions need of n states. */
void prove_finish(size_t n) {
    const pybpe_allocator mem = mem_of(NULL);
    any_trie(n);
    int code = trie_finish(&automaton, steps, &mem, NULL);
    CHECK(code == PYBPE_OK || code == PYBPE_ERR_MEMORY);
}

int any_strings(special_automaton *a, trie_step *all, const pybpe_strings *strings, const uint32_t *ids, bool backward,
                pybpe_error *err) {
    size_t total = (size_t)strings_total(strings);
    (void)ids;
    (void)backward;
    (void)err;
    CHECK(a->states_count == 1 && a->edges_mask + 1 >= 2 * (total + 1));
    CHECK((a->edges_mask & (a->edges_mask + 1)) == 0);
    check_readable(a->edges, (a->edges_mask + 1) * sizeof *a->edges);
    check_readable(a->states, (total + 1) * sizeof *a->states);
    any_fill(all, (total + 1) * sizeof *all);
    return any_bool() ? PYBPE_OK : PYBPE_ERR_VALUE;
}

int any_finish(special_automaton *a, const trie_step *all, const pybpe_allocator *mem, pybpe_error *err) {
    (void)a;
    (void)mem;
    (void)err;
    check_readable(all, sizeof *all);
    return any_bool() ? PYBPE_OK : PYBPE_ERR_MEMORY;
}

/* There is memory for the states and edges of strings of any length below 4 GiB. Random draws take n bytes. */
void prove_init(size_t n) {
    const pybpe_allocator mem = mem_of(NULL);
    const uint32_t ids[] = {1, 2};
#if defined(PROVE)
    const uint64_t offsets[] = {0, 0, any_between(0, UINT32_MAX - 1)};
#else
    const uint64_t offsets[] = {0, any_between(0, n), n};
#endif
    uint8_t *bytes = any_bytes(n);
    const pybpe_strings strings = {bytes, offsets, 2};
    if (automaton_init(&automaton, &strings, ids, any_bool(), &mem, NULL) == PYBPE_OK) {
        automaton_free(&automaton, &mem);
    }
    CHECK(automaton.states == NULL && automaton.edges == NULL);
    free(bytes);
}

PROOFS(PROOF(slot, 1, 4, 16, "", "hash_mix:any_hash") PROOF(insert, 0, 4, 17, "", "edge_slot:any_slot")
           PROOF(strings, 0, 3, 17, "", "trie_insert:any_insertion") PROOF(sort, 1, 5, 17)
               PROOF(next, 1, 4, 17, "", "edge_slot:any_slot") PROOF(fails, 1, 4, 17, "", "state_next:any_next")
                   PROOF(look_ahead, 1, 5, 17)
                       PROOF(finish, 1, 4, 17, "",
                             "states_sort:any_sorting fails_set:any_failing look_ahead_set:any_looking")
                           PROOF(init, 0, 0, 35, "", "strings_insert:any_strings trie_finish:any_finish")
                               DRAWN(init, 1, 8, 35))
