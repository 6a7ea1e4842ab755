/*
The result of a merge of a vocabulary: the ordinary token whose bytes are the concatenation of its two parts.
*/
#include "vocab/vocab.h"

static bool token_is_concatenation(const pybpe_vocab *v, size_t id, uint32_t left, uint32_t right) {
    size_t n = vocab_token_length(v, left);
    size_t m = vocab_token_length(v, right);
    return vocab_token_length(v, id) == n + m && memcmp(vocab_token(v, id), vocab_token(v, left), n) == 0 &&
           memcmp(vocab_token(v, id) + n, vocab_token(v, right), m) == 0;
}

/* The ordinary token left + right, or PYBPE_NO_ID. Tries `guess` first: most merges make tokens in the order of their
   ids, and then no hashing is needed. `room` has space for the longest token. */
static uint32_t find_concatenation(const pybpe_vocab *v, uint32_t left, uint32_t right, uint32_t guess, uint8_t *room,
                                   size_t longest) {
    if (guess < v->count && token_is_concatenation(v, guess, left, right) && token_is_ordinary(v, guess)) {
        return guess;
    }
    size_t n = vocab_token_length(v, left);
    size_t m = vocab_token_length(v, right);
    if (n + m > longest) {
        return PYBPE_NO_ID;
    }
    memcpy(room, vocab_token(v, left), n);
    memcpy(room + n, vocab_token(v, right), m);
    return pybpe_vocab_find(v, room, n + m, 0);
}

/* Checks the merges and finds what they make. */
int vocab_resolve_merges(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    size_t longest = 1;
    for (size_t id = 0; id < v->count; id++) {
        size_t n = vocab_token_length(v, id);
        longest = n > longest ? n : longest;
    }
    uint8_t *room = mem_alloc(&v->mem, longest);
    PYBPE_TRY(memory_check(room, "a token", longest, err));
    int code = PYBPE_OK;
    uint32_t made = PYBPE_NO_ID;
    for (size_t i = 0; code == PYBPE_OK && i < v->merges_count; i++) {
        uint32_t left = v->merges[2 * i];
        uint32_t right = v->merges[2 * i + 1];
        if (!token_is_ordinary(v, left) || !token_is_ordinary(v, right)) {
            code = error_set(err, source_code(from), source_at(from->merges, i),
                             "merge %zu joins ids %u and %u, which are not both ordinary tokens", i, left, right);
            break;
        }
        made = find_concatenation(v, left, right, made + 1, room, longest);
        if (made == PYBPE_NO_ID) {
            code = error_set(err, source_code(from), source_at(from->merges, i),
                             "merge %zu joins ids %u and %u, but no ordinary token has their joined bytes", i, left,
                             right);
        }
        v->merged[i] = made;
    }
    mem_free(&v->mem, room);
    return code;
}
