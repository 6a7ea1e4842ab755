/*
Tokens that merges do not reach.

tiktoken, and Hugging Face's models with ignore_merges, look up the whole word before they merge anything. For the
vocabulary of a single training this changes nothing: merging the bytes of a token gives that token. It matters if
tokens were added later, as in Llama 3's vocabulary. The few such tokens are found here, once. All other words are
encoded as usual, with the same result.
*/
#include "encode/encode.h"

void whole_table_free(whole_table *w, const pybpe_allocator *mem) { mem_free(mem, w->bits); }

static int whole_table_fill(whole_table *w, const pybpe_vocab *v, const merge_table *merges, apply_scratch *scratch,
                            const pybpe_allocator *mem, pybpe_error *err) {
    for (uint32_t id = 0; id < v->count; id++) {
        apply_word word = {.bytes = vocab_token(v, id), .n = vocab_token_length(v, id)};
        if (word.n < 2 || pybpe_vocab_find(v, word.bytes, word.n, 0) != id) { /* unused, or a special */
            continue;
        }
        PYBPE_TRY(apply_merges(merges, scratch, &word, mem, err));
        if (word.count != 1) { /* merges do not give the token itself */
            w->bits[id / 8] |= (uint8_t)(1u << id % 8);
            w->longest = word.n > w->longest ? word.n : w->longest;
        }
    }
    return PYBPE_OK;
}

int whole_table_new(whole_table *w, const pybpe_vocab *v, const merge_table *merges, const pybpe_allocator *mem,
                    pybpe_error *err) {
    *w = (whole_table){.bits = mem_alloc_zeroed(mem, v->count / 8 + 1, 1)};
    PYBPE_TRY(memory_check(w->bits, "the tokens that are taken whole", v->count / 8 + 1, err));
    apply_scratch scratch = {0};
    int code = whole_table_fill(w, v, merges, &scratch, mem, err);
    apply_scratch_free(&scratch, mem);
    if (w->longest == 0) {
        whole_table_free(w, mem);
        w->bits = NULL;
    }
    return code;
}

uint32_t whole_table_find(const whole_table *w, const pybpe_vocab *v, const uint8_t *word, size_t n) {
    uint32_t id = n <= w->longest ? pybpe_vocab_find(v, word, n, 0) : PYBPE_NO_ID;
    return id != PYBPE_NO_ID && (w->bits[id / 8] >> id % 8 & 1) != 0 ? id : PYBPE_NO_ID;
}
