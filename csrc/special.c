/*
Special tokens: finding many strings in a text at once, with the automaton of Aho and Corasick (1975).

The strings form a trie; each state is a prefix of some of them. `fail` leads from a state to the longest
proper suffix of it that is a state too, so that no byte of the text is ever read again:

    strings  "he" "she"          root -h-> h -e-> HE
                                 root -s-> s -h-> sh -e-> SHE
                                 fail: sh -> h, SHE -> HE

`match` is the longest string that ends where the state ends: the state itself, or what its fail has.

The leftmost longest match is wanted, as in Hugging Face's added tokens. So a match is kept while the state
still begins no later than it does, since a longer string may yet end from there, and is returned as soon as
the state begins behind it.

Edges stand in one hash table (state, byte) -> state, so that building costs O(total length) whatever the
strings are. Nearly all of a text is passed at the root, where only the first two bytes of each string
matter: with one first byte, usually "<", by memchr.
*/
#include "special.h"

#include "wordkey.h"

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

struct pybpe_specials {
    pybpe_allocator mem;
    special_state *states;
    size_t states_count;
    special_edge *edges;
    size_t edges_mask;
    hash_seed seed;
    size_t max_length;
    int only_first;   /* the byte that all strings begin with, or -1 */
    bool first[256];  /* whether a string begins with this byte */
    bool second[256]; /* whether a string has this second byte; all true if one has none */
};

/* What only building needs: how each state was reached. */
typedef struct trie_step {
    uint32_t parent;
    uint8_t byte;
} trie_step;

/* ---------------------------------------------------------------------------------------------------
Edges
*/

static size_t edge_slot(const pybpe_specials *s, uint32_t state, uint8_t byte) {
    uint64_t key = (uint64_t)state << 8 | byte;
    size_t i = (size_t)hash_mix(key ^ s->seed.a, s->seed.b | 1) & s->edges_mask;
    while (s->edges[i].to != NO_STATE && s->edges[i].key != key) {
        i = (i + 1) & s->edges_mask;
    }
    return i;
}

static uint32_t edge_follow(const pybpe_specials *s, uint32_t state, uint8_t byte) {
    return s->edges[edge_slot(s, state, byte)].to;
}

/* The next state of the automaton: the longest suffix of what was read that is a state. */
static uint32_t state_next(const pybpe_specials *s, uint32_t state, uint8_t byte) {
    uint32_t next = edge_follow(s, state, byte);
    while (next == NO_STATE && state != ROOT) {
        state = s->states[state].fail;
        next = edge_follow(s, state, byte);
    }
    return next;
}

/* ---------------------------------------------------------------------------------------------------
Building
*/

static int trie_insert(pybpe_specials *s, trie_step *steps, const uint8_t *bytes, size_t n, uint32_t id, size_t index,
                       pybpe_error *err) {
    uint32_t state = ROOT;
    for (size_t i = 0; i < n; i++) {
        special_edge *edge = &s->edges[edge_slot(s, state, bytes[i])];
        if (edge->to == NO_STATE) {
            uint32_t fresh = (uint32_t)s->states_count++;
            *edge = (special_edge){(uint64_t)state << 8 | bytes[i], fresh};
            s->states[fresh] = (special_state){.depth = (uint32_t)i + 1};
            steps[fresh] = (trie_step){state, bytes[i]};
        }
        state = edge->to;
    }
    if (s->states[state].match_length != 0) {
        return error_set(err, PYBPE_ERR_VALUE, index, "special token %zu is given twice: leave one of them out", index);
    }
    s->states[state].match_length = (uint32_t)n;
    s->states[state].match_id = id;
    s->max_length = n > s->max_length ? n : s->max_length;
    s->first[bytes[0]] = true;
    if (n > 1) {
        s->second[bytes[1]] = true;
    } else {
        memset(s->second, true, sizeof s->second);
    }
    return PYBPE_OK;
}

/* Sets the fail links and inherited matches, shallow states first, since each needs shallower ones. */
static int fails_set(pybpe_specials *s, const trie_step *steps, pybpe_error *err) {
    uint32_t *starts = mem_alloc_zeroed(&s->mem, s->max_length + 2, sizeof *starts);
    uint32_t *by_depth = mem_alloc_array(&s->mem, s->states_count, sizeof *by_depth);
    if (starts == NULL || by_depth == NULL) {
        mem_free(&s->mem, starts);
        mem_free(&s->mem, by_depth);
        return error_set_memory(err, "special tokens", s->states_count * sizeof *by_depth);
    }
    for (size_t i = 0; i < s->states_count; i++) {
        starts[s->states[i].depth + 1] += 1;
    }
    for (size_t depth = 1; depth <= s->max_length; depth++) {
        starts[depth + 1] += starts[depth];
    }
    for (size_t i = 0; i < s->states_count; i++) {
        by_depth[starts[s->states[i].depth]++] = (uint32_t)i;
    }
    for (size_t i = 1; i < s->states_count; i++) {
        special_state *state = &s->states[by_depth[i]];
        trie_step step = steps[by_depth[i]];
        state->fail = step.parent == ROOT ? ROOT : state_next(s, s->states[step.parent].fail, step.byte);
        if (state->match_length == 0) {
            state->match_length = s->states[state->fail].match_length;
            state->match_id = s->states[state->fail].match_id;
        }
    }
    mem_free(&s->mem, starts);
    mem_free(&s->mem, by_depth);
    return PYBPE_OK;
}

static int strings_insert(pybpe_specials *s, trie_step *steps, const pybpe_strings *strings, const uint32_t *ids,
                          pybpe_error *err) {
    for (size_t i = 0; i < strings->count; i++) {
        size_t n = (size_t)(strings->offsets[i + 1] - strings->offsets[i]);
        if (n == 0) {
            return error_set(err, PYBPE_ERR_VALUE, i, "special token %zu is empty: leave it out", i);
        }
        int code = trie_insert(s, steps, strings->bytes + strings->offsets[i], n, ids[i], i, err);
        if (code != PYBPE_OK) {
            return code;
        }
    }
    int firsts = 0;
    for (int b = 0; b < 256; b++) {
        firsts += s->first[b];
        s->only_first = s->first[b] ? b : s->only_first;
    }
    s->only_first = firsts == 1 ? s->only_first : -1;
    return PYBPE_OK;
}

int pybpe_specials_new(pybpe_specials **out, const pybpe_strings *strings, const uint32_t *ids,
                       const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    uint64_t total = strings->offsets[strings->count];
    if (total >= UINT32_MAX) {
        return error_set(err, PYBPE_ERR_LIMIT, 0, "special tokens of %llu bytes in all are too many: 4 GiB is the most",
                         (unsigned long long)total);
    }
    pybpe_specials *s = mem_alloc(mem, sizeof *s);
    if (s == NULL) {
        return error_set_memory(err, "special tokens", sizeof *s);
    }
    *s = (pybpe_specials){.mem = mem_of(mem), .states_count = 1, .seed = hash_seed_draw(), .only_first = -1};
    size_t slots = 16;
    while (slots < 2 * (total + 1) && slots <= SIZE_MAX / 2) { /* as many more fit no memory of 32 bits */
        slots *= 2;
    }
    s->edges_mask = slots - 1;
    s->edges = mem_alloc_zeroed(mem, slots, sizeof *s->edges);
    s->states = mem_alloc_zeroed(mem, (size_t)total + 1, sizeof *s->states);
    trie_step *steps = mem_alloc_array(mem, (size_t)total + 1, sizeof *steps);
    int code = s->edges == NULL || s->states == NULL || steps == NULL
                   ? error_set_memory(err, "special tokens", slots * sizeof *s->edges)
                   : strings_insert(s, steps, strings, ids, err);
    if (code == PYBPE_OK) {
        code = fails_set(s, steps, err);
    }
    mem_free(mem, steps);
    if (code != PYBPE_OK) {
        pybpe_specials_free(s);
        return code;
    }
    *out = s;
    return PYBPE_OK;
}

void pybpe_specials_free(pybpe_specials *s) {
    if (s != NULL) {
        pybpe_allocator mem = s->mem;
        mem_free(&mem, s->states);
        mem_free(&mem, s->edges);
        mem_free(&mem, s);
    }
}

/* ---------------------------------------------------------------------------------------------------
Finding
*/

/* The first place at or after `at` where a special can begin, judged by two bytes; n if there is none. */
static size_t candidate_find(const pybpe_specials *s, const uint8_t *text, size_t n, size_t at) {
    for (; at < n; at++) {
        if (s->only_first >= 0) {
            const uint8_t *found = memchr(text + at, s->only_first, n - at);
            if (found == NULL) {
                return n;
            }
            at = (size_t)(found - text);
        } else if (!s->first[text[at]]) {
            continue;
        }
        if (at + 1 == n || s->second[text[at + 1]]) {
            return at;
        }
    }
    return n;
}

int pybpe_specials_find(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, size_t *start, size_t *end,
                        uint32_t *id) {
    uint32_t state = ROOT;
    size_t found_start = 0, found_end = 0; /* equal: nothing yet */
    uint32_t found_id = 0;
    for (size_t at = from; at < n; at++) {
        if (state == ROOT) {
            at = candidate_find(s, text, n, at);
            if (at == n) {
                break;
            }
        }
        state = state_next(s, state, text[at]);
        const special_state *now = &s->states[state];
        if (found_end > found_start && at + 1 - now->depth > found_start) {
            break;
        }
        size_t match_start = at + 1 - now->match_length;
        if (now->match_length > 0 && (found_end == found_start || match_start <= found_start)) {
            found_start = match_start;
            found_end = at + 1;
            found_id = now->match_id;
        }
    }
    if (found_end == found_start) {
        return 0;
    }
    *start = found_start;
    *end = found_end;
    *id = found_id;
    return 1;
}

size_t special_max_length(const pybpe_specials *s) { return s == NULL ? 0 : s->max_length; }

bool special_covers(const pybpe_specials *s, const uint8_t *text, size_t n, size_t cut) {
    size_t reach = special_max_length(s);
    uint32_t state = ROOT;
    if (reach < 2) { /* one byte is never cut */
        return false;
    }
    /* Behind the cut only states that begin before it can still end in a string that covers it. */
    for (size_t at = cut < reach ? 0 : cut - reach + 1; at < n && (at < cut || at - s->states[state].depth < cut);
         at++) {
        state = state_next(s, state, text[at]);
        if (at + 1 > cut && at + 1 - s->states[state].match_length < cut) {
            return true;
        }
    }
    return false;
}
