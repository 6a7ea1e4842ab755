/*
Hard boundaries: places inside a word that no merge can ever cross.

A Chinese "word" is a whole clause, and clauses do not repeat, so a cache of words is of no use for it. But
hardly any vocabulary has a token for every two characters that stand side by side. Where no token reaches
across, the word can be cut, and the pieces, single characters and common phrases, repeat all the time.

Why a cut is exact. Take a place in a word, and the first merge that crosses it. Before it nothing crossed, so it
joins a token that ends at the place with one that begins there. If no merge of the vocabulary joins such two tokens,
with these bytes before and behind the place, there is no first merge, so none ever crosses. The pairs on
the left and those on the right then never touch: whatever the order in which the merges of both sides
interleave by rank, each side takes the same steps in the same order as it would alone. So the tokens of the
word are the tokens of the left part followed by those of the right part. (This needs no property of
the vocabulary, and no valid UTF-8.)

Finding such places. For a place between bytes l and r, where r does not continue a character, we look at the
window (k, l | r, s): the two bytes on each side, or one where l or r is ASCII. A merge whose tokens are long enough
to cover the window enters it in the set `wide`, any other enters (l, r) in the set `near`, and so does any
between two ASCII bytes, for which the window is (l, r). If neither set has a place, no merge joins there.

`wide` is a bit set indexed by a hash, so it may say yes for no. That only makes a piece longer.
*/
#include "encode_boundary.h"
#include "vocab.h"

/* Enters the place where each merge joins. Returns the number of windows for `wide`; while that is not
   allocated yet, they are only counted. */
static size_t enter_merges(boundary_table *t, const pybpe_vocab *v) {
    size_t windows = 0;
    for (size_t m = 0; m < v->merges_count; m++) {
        const uint8_t *token = vocab_token(v, v->merged[m]);
        size_t n = vocab_token_length(v, v->merged[m]);
        size_t i = vocab_token_length(v, v->merges[2 * m]);
        if (byte_is_continuation(token[i])) {
            continue;
        }
        if ((byte_is_ascii(token[i - 1]) && byte_is_ascii(token[i])) || !boundary_has_window(token, n, i)) {
            uint32_t pair = (uint32_t)token[i - 1] << 8 | token[i];
            t->near[pair / 64] |= UINT64_C(1) << (pair % 64);
            continue;
        }
        windows += 1;
        if (t->wide != NULL) {
            uint32_t index = boundary_wide_index(t, boundary_window(token, i));
            t->wide[index / 64] |= UINT64_C(1) << (index % 64);
        }
    }
    return windows;
}

int boundary_table_new(boundary_table *t, const pybpe_vocab *v, const pybpe_allocator *mem, pybpe_error *err) {
    /* 16 bits a window keep false alarms rare. More than 2^22 bits would not stay in a level 2 cache. */
    const unsigned log2_min = 12;
    const unsigned log2_max = 22;
    *t = (boundary_table){.wide = NULL};
    size_t windows = enter_merges(t, v);
    unsigned log2_bits = log2_min;
    while (log2_bits < log2_max && (size_t)1 << log2_bits < 16 * windows) {
        log2_bits += 1;
    }
    t->wide_shift = 32 - log2_bits;
    size_t words = ((size_t)1 << log2_bits) / 64;
    t->wide = mem_alloc_zeroed(mem, words, sizeof *t->wide);
    if (t->wide == NULL) {
        return error_set_memory(err, "the boundaries of an encoder", words * sizeof *t->wide);
    }
    enter_merges(t, v);
    return PYBPE_OK;
}

void boundary_table_free(boundary_table *t, const pybpe_allocator *mem) {
    mem_free(mem, t->wide);
    t->wide = NULL;
}
