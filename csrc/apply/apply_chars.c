/*
The tables for words that start as characters: see apply_chars.h.
*/
#include "apply/apply_chars.h"
#include "apply/apply.h"

/* Whether the merges that make the parts of a merge always come before it. */
static bool merges_are_in_order(const merge_table *t, const uint32_t *merges, size_t count) {
    bool in_order = t->consecutive;
    for (size_t i = 0; i < 2 * count; i++) {
        const uint32_t made = merges[i] - t->first_merged; /* the rank that makes it. `count` or more: none */
        in_order &= made >= count || made < i / 2;
    }
    return in_order;
}

/* Whether a token is the last bytes of some character. */
static bool is_end_of_char(const uint8_t *token, size_t n) {
    return byte_is_continuation(token[0]) && (n == 1 || (n == 2 && byte_is_continuation(token[1])));
}

/* Whether a token begins or ends within a character. Few do. Only their parts need a look. */
static inline bool has_part_of_char(const uint8_t *token, size_t n) {
    return byte_is_continuation(token[0]) || apply_char_length(token[n - 1]) > 1 || apply_char_length(token[n - 2]) > 2;
}

/* Enters the guard for a merge whose left part ends at byte `place` of the token that it makes. */
static void guard_enter(merge_table *t, const uint8_t *token, size_t n, size_t place, uint32_t rank) {
    const uint8_t *right = token + place;
    if (n - place < apply_char_length(*right) || is_end_of_char(token, place)) {
        uint32_t *known = &t->char_guards[right[-1] << 8 | right[0]];
        *known = rank < *known ? rank : *known;
    }
}

/* Enters a token that is a character, if merging its bytes gives one token. */
static void char_enter(merge_table *t, uint32_t *ranks, const uint8_t *token, size_t n) {
    uint32_t ids[APPLY_CHAR_BYTES];
    if (n != apply_char_length(token[0])) { /* n is at least 2: a merge made the token */
        return;
    }
    const size_t number = apply_char_number(token, n);
    if (number > 0 && apply_short_bytes(t, token, n, ids) == 1) {
        ranks[number] = ids[0] - t->first_merged;
    }
}

static size_t token_length(const pybpe_vocab_spec *v, uint32_t id) {
    return (size_t)(v->tokens.offsets[id + 1] - v->tokens.offsets[id]);
}

int apply_chars_fill(merge_table *t, const pybpe_vocab_spec *v, const pybpe_allocator *mem, pybpe_error *err) {
    if (!merges_are_in_order(t, v->merges, v->merges_count)) {
        return PYBPE_OK;
    }
    const size_t entries = APPLY_CHARS + 65536;
    uint32_t *ranks = mem_alloc_array(mem, entries, sizeof *ranks);
    PYBPE_TRY(memory_check(ranks, "the characters of an encoder", entries * sizeof *ranks, err));
    memset(ranks, 0xFF, entries * sizeof *ranks);
    t->char_guards = ranks + APPLY_CHARS;
    for (size_t m = 0; m < v->merges_count; m++) {
        const uint32_t id = t->first_merged + (uint32_t)m;
        const uint8_t *token = string_at(&v->tokens, id);
        const size_t n = token_length(v, id);
        if (has_part_of_char(token, n)) {
            guard_enter(t, token, n, token_length(v, v->merges[2 * m]), (uint32_t)m);
        }
        char_enter(t, ranks, token, n);
    }
    t->char_ranks = ranks;
    return PYBPE_OK;
}
