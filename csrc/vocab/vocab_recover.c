/*
Recovering merges from the order of ids, for vocabularies that consist only of ranks: tiktoken's files, and
tokenizer.bin as llm.c writes it.

Ids ascend with the ranks of merges. So if the merges of all lower ids are applied to the bytes of a token, the result
is the two tokens that it was merged from. If more than two tokens are left, the token can't be reached and has no
merge.
*/
#include "apply/apply.h"
#include "vocab/vocab.h"

static int recover_with(const pybpe_vocab *v, merge_table *table, apply_scratch *scratch, uint32_t *merges,
                        size_t *count, pybpe_error *err) {
    uint32_t found = 0;
    for (uint32_t id = 0; id < v->count; id++) {
        apply_word word = {.bytes = vocab_token(v, id), .n = vocab_token_length(v, id)};
        if (word.n < 2 || !token_is_ordinary(v, id)) {
            continue;
        }
        PYBPE_TRY(apply_merges(table, scratch, &word, &v->mem, err)); /* the merges of all lower tokens */
        if (word.count == 2 && word.ids[0] != table->outside && word.ids[1] != table->outside) {
            uint32_t *parents = merges + 2 * (size_t)found;
            parents[0] = word.ids[0];
            parents[1] = word.ids[1];
            merge_table_add(table, parents[0], parents[1], found, id);
            if (word.n == 2) {
                merge_table_add_bytes(table, word.bytes[0], word.bytes[1], found);
            }
            found += 1;
        }
    }
    *count = found;
    return PYBPE_OK;
}

/* Recovers the merges of an indexed vocabulary from the order of its ids. */
int vocab_recover(const pybpe_vocab *v, uint32_t *merges, size_t *count, pybpe_error *err) {
    merge_table table;
    PYBPE_TRY(merge_table_new(&table, v->count, v->count, v->byte_ids, &v->mem, err));
    apply_scratch scratch = {0};
    int code = recover_with(v, &table, &scratch, merges, count, err);
    apply_scratch_free(&scratch, &v->mem);
    merge_table_free(&table, &v->mem);
    return code;
}

int pybpe_vocab_recover_merges(const pybpe_vocab_spec *spec, uint32_t *merges, size_t *count,
                               const pybpe_allocator *mem, pybpe_error *err) {
    pybpe_vocab_spec bare = *spec;
    bare.merges_count = 0;
    pybpe_vocab *v;
    PYBPE_TRY(pybpe_vocab_new(&v, &bare, mem, err));
    const int code = vocab_recover(v, merges, count, err);
    pybpe_vocab_free(v);
    return code;
}
