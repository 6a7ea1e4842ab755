/*
Building the automaton: first the trie, then, shallow states first, what a state inherits from its fail state.
*/
#include "special/special_automaton.h"

/* Data that only building needs: how a state was reached. */
typedef struct trie_step {
    uint32_t parent;
    uint8_t byte;
} trie_step;

static int trie_insert(special_automaton *a, trie_step *steps, const uint8_t *bytes, size_t n, bool backward,
                       uint32_t *last) {
    uint32_t state = ROOT;
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = bytes[backward ? n - 1 - i : i];
        special_edge *edge = &a->edges[edge_slot(a, state, byte)];
        if (edge->to == NO_STATE) {
            uint32_t fresh = (uint32_t)a->states_count++;
            *edge = (special_edge){(uint64_t)state << 8 | byte, fresh};
            a->states[fresh] = (special_state){.depth = (uint32_t)i + 1};
            steps[fresh] = (trie_step){state, byte};
        }
        state = edge->to;
    }
    *last = state;
    return a->states[state].match_length == 0;
}

static int strings_insert(special_automaton *a, trie_step *steps, const pybpe_strings *strings, const uint32_t *ids,
                          bool backward, pybpe_error *err) {
    for (size_t i = 0; i < strings->count; i++) {
        size_t n = string_length(strings, i);
        uint32_t last;
        if (n == 0) {
            return error_set(err, PYBPE_ERR_VALUE, i, "special token %zu is empty: remove it", i);
        }
        if (!trie_insert(a, steps, string_at(strings, i), n, backward, &last)) {
            return error_set(err, PYBPE_ERR_VALUE, i, "special token %zu is given twice: remove one of them", i);
        }
        a->states[last].match_length = (uint32_t)n;
        a->states[last].match_id = ids[i];
        a->max_length = n > a->max_length ? n : a->max_length;
    }
    return PYBPE_OK;
}

/* All states by depth, by counting sort. `starts` has room for max_length + 2. */
static void states_sort(const special_automaton *a, uint32_t *by_depth, uint32_t *starts) {
    for (size_t i = 0; i < a->states_count; i++) {
        starts[a->states[i].depth + 1] += 1;
    }
    for (size_t depth = 1; depth <= a->max_length; depth++) {
        starts[depth + 1] += starts[depth];
    }
    for (size_t i = 0; i < a->states_count; i++) {
        by_depth[starts[a->states[i].depth]++] = (uint32_t)i;
    }
}

/* Sets the fail links and the inherited matches, shallow states first, since a state needs shallower ones. */
static void fails_set(special_automaton *a, const trie_step *steps, const uint32_t *by_depth) {
    for (size_t i = 1; i < a->states_count; i++) {
        special_state *state = &a->states[by_depth[i]];
        trie_step step = steps[by_depth[i]];
        state->fail = step.parent == ROOT ? ROOT : state_next(a, a->states[step.parent].fail, step.byte);
        if (state->match_length == 0) {
            state->match_length = a->states[state->fail].match_length;
            state->match_id = a->states[state->fail].match_id;
        }
    }
}

/* How far below a state with a match the trie extends. `deepest` has room for all states. */
static void look_ahead_set(special_automaton *a, const trie_step *steps, const uint32_t *by_depth, uint32_t *deepest) {
    for (size_t i = a->states_count - 1; i > 0; i--) { /* deep states first */
        uint32_t index = by_depth[i];
        uint32_t depth = a->states[index].depth;
        uint32_t most = deepest[index] > depth ? deepest[index] : depth;
        uint32_t *above = &deepest[steps[index].parent];
        *above = most > *above ? most : *above;
        if (a->states[index].match_length > 0 && most - depth > a->look_ahead) {
            a->look_ahead = most - depth;
        }
    }
}

static int trie_finish(special_automaton *a, const trie_step *steps, const pybpe_allocator *mem, pybpe_error *err) {
    uint32_t *starts = mem_alloc_zeroed(mem, a->max_length + 2, sizeof *starts);
    uint32_t *by_depth = mem_alloc_array(mem, a->states_count, sizeof *by_depth);
    uint32_t *deepest = mem_alloc_zeroed(mem, a->states_count, sizeof *deepest);
    bool there = starts != NULL && by_depth != NULL && deepest != NULL;
    if (there) {
        states_sort(a, by_depth, starts);
        fails_set(a, steps, by_depth);
        look_ahead_set(a, steps, by_depth, deepest);
    }
    mem_free(mem, starts);
    mem_free(mem, by_depth);
    mem_free(mem, deepest);
    return there ? PYBPE_OK : error_set_memory(err, "special tokens", a->states_count * sizeof *by_depth);
}

int automaton_init(special_automaton *a, const pybpe_strings *strings, const uint32_t *ids, bool backward,
                   const pybpe_allocator *mem, pybpe_error *err) {
    uint64_t total = strings_total(strings);
    *a = (special_automaton){.states_count = 1, .seed = hash_seed_draw()};
    size_t slots = 16;
    while (slots < 2 * (total + 1) && slots <= SIZE_MAX / 2) { /* LCOV_EXCL_BR_LINE: only 32-bit memory is too small */
        slots *= 2;
    }
    a->edges_mask = slots - 1;
    a->edges = mem_alloc_zeroed(mem, slots, sizeof *a->edges);
    a->states = mem_alloc_zeroed(mem, (size_t)total + 1, sizeof *a->states);
    trie_step *steps = mem_alloc_array(mem, (size_t)total + 1, sizeof *steps);
    int code = a->edges == NULL || a->states == NULL || steps == NULL
                   ? error_set_memory(err, "special tokens", slots * sizeof *a->edges)
                   : strings_insert(a, steps, strings, ids, backward, err);
    code = code == PYBPE_OK ? trie_finish(a, steps, mem, err) : code;
    mem_free(mem, steps);
    if (code != PYBPE_OK) {
        automaton_free(a, mem);
    }
    return code;
}

void automaton_free(special_automaton *a, const pybpe_allocator *mem) {
    mem_free(mem, a->states);
    mem_free(mem, a->edges);
    *a = (special_automaton){0};
}
