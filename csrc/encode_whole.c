/*
Tokens that merges do not reach.

tiktoken, and Hugging Face's models with ignore_merges, look up the whole word before they merge anything. For the
vocabulary of a single training this changes nothing: merging the bytes of a token gives that token. It matters if
tokens were added later, as in Llama 3's vocabulary. The few such tokens are found here, once; all other words are
encoded as usual, with the same result.
*/
#include "encode_whole.h"

void whole_table_free(whole_table *w, const pybpe_allocator *mem) { mem_free(mem, w->bits); }

/* Whether merging gives the token itself. */
static int token_is_reached(const pybpe_vocab *v, uint32_t id, const merge_table *merges, merge_scratch *scratch,
                            const pybpe_allocator *mem, bool *reached, pybpe_error *err) {
    uint32_t small[MERGE_SHORT_MAX];
    const uint8_t *bytes = vocab_token(v, id);
    size_t n = vocab_token_length(v, id);
    size_t parts;
    int code = PYBPE_OK;
    if (n <= MERGE_SHORT_MAX) {
        parts = merge_short(merges, bytes, n, small);
    } else {
        code = merge_long(merges, scratch, bytes, n, &parts, mem, err);
    }
    *reached = code == PYBPE_OK && parts == 1;
    return code;
}

static int whole_table_fill(whole_table *w, const pybpe_vocab *v, const merge_table *merges, merge_scratch *scratch,
                            const pybpe_allocator *mem, pybpe_error *err) {
    for (uint32_t id = 0; id < v->count; id++) {
        const uint8_t *bytes = vocab_token(v, id);
        size_t n = vocab_token_length(v, id);
        bool reached;
        if (n < 2 || pybpe_vocab_find(v, bytes, n, 0) != id) { /* unused, or a special */
            continue;
        }
        int code = token_is_reached(v, id, merges, scratch, mem, &reached, err);
        if (code != PYBPE_OK) {
            return code;
        }
        if (!reached) {
            w->bits[id / 8] |= (uint8_t)(1u << id % 8);
            w->longest = n > w->longest ? n : w->longest;
        }
    }
    return PYBPE_OK;
}

int whole_table_new(whole_table *w, const pybpe_vocab *v, const merge_table *merges, const pybpe_allocator *mem,
                    pybpe_error *err) {
    w->longest = 0;
    w->bits = mem_alloc_zeroed(mem, v->count / 8 + 1, 1);
    if (w->bits == NULL) {
        return error_set_memory(err, "the tokens that are taken whole", v->count / 8 + 1);
    }
    merge_scratch scratch = {0};
    int code = whole_table_fill(w, v, merges, &scratch, mem, err);
    merge_scratch_free(&scratch, mem);
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
