/*
New words that are tokens: looked up among the tokens instead of merged from bytes.

Most new words of natural text are tokens. For such a word, a look-up takes a tenth of the time of merging. But the token
is only right if it is *reached*: if merging its bytes gives this token. A vocabulary whose merges were found by merging
tokens, as for .tiktoken files, has only such tokens (all_own). For others, this file finds it out, token by token:

The merge that makes a token joins `left` and `right`. The token is reached if both of these are, and if no merge of a
lower rank crosses the border where they meet. Suppose that a merge has a higher rank than those that make its parts, so
that the ranks of the merges in a word never decrease (see apply_chars.h). Then the first merge to cross the border
would join the last part of `left` and the first part of `right` at the time of that merge. So go back in time: undo
the later of the two merges, and keep the half that touches the border:

    left | right      the rank of the token itself
    a  b | right      lower than the rank of a + b? Then b + right crosses
    a  b | c  d       not higher than the rank of c + d? Then b + c crosses: of equal pairs, the left one merges first

So each pair is one look-up. A token has few of them, and its parts are parts of other tokens too. Only tokens that occur
are looked at, because for all tokens it would take longer than many texts.
*/
#include "encode/encode.h"

int reached_new(pybpe_encoder *e, pybpe_error *err) {
    if (e->vocab->all_own || e->table.char_ranks == NULL) { /* no need, or merges are not in order */
        return PYBPE_OK;
    }
    e->reached = mem_alloc_zeroed(&e->mem, e->vocab->count, sizeof *e->reached);
    return memory_check(e->reached, "the tokens that merges reach", e->vocab->count, err);
}

/* One more than the rank of the merge that makes a token, or 0. */
static inline uint32_t token_made(const pybpe_encoder *e, uint32_t id) {
    const uint32_t rank = id - e->table.first_merged;
    return rank < e->vocab->merges_count ? rank + 1 : 0;
}

/* The tokens that merge `made` - 1 joins. */
static inline const uint32_t *parts_of(const pybpe_encoder *e, uint32_t made) {
    return &e->vocab->merges[2 * ((size_t)made - 1)];
}

/* Whether no merge of a rank below `limit` crosses the place where two tokens meet that are reached. */
static inline bool tokens_are_apart(const pybpe_encoder *e, uint32_t left, uint32_t right, uint32_t limit) {
    while (merge_rank(&e->table, left, right) >= limit) {
        const uint32_t left_made = token_made(e, left);
        const uint32_t right_made = token_made(e, right);
        const bool is_left = left_made > right_made; /* arithmetic: a branch would be hard to predict */
        const uint32_t made = is_left ? left_made : right_made;
        if (made == 0) {
            return true;
        }
        limit = made - is_left;
        const uint32_t part = parts_of(e, made)[is_left];
        left = is_left ? part : left;
        right = is_left ? right : part;
    }
    return false;
}

/* Threads that find out the same thing store the same byte. */
/* NOLINTNEXTLINE(misc-no-recursion): only as deep as the token is long */
bool token_is_reached(const pybpe_encoder *e, uint32_t id) {
    uint8_t known = __atomic_load_n(&e->reached[id], __ATOMIC_RELAXED);
    if (known == REACHED_UNKNOWN) {
        const uint32_t made = token_made(e, id);
        bool is = vocab_token_length(e->vocab, id) == 1;
        if (made > 0) {
            const uint32_t *parts = parts_of(e, made);
            is = tokens_are_apart(e, parts[0], parts[1], made - 1) && token_is_reached(e, parts[0]) &&
                 token_is_reached(e, parts[1]);
        }
        known = is ? REACHED : REACHED_NEVER;
        __atomic_store_n(&e->reached[id], known, __ATOMIC_RELAXED);
    }
    return known == REACHED;
}
