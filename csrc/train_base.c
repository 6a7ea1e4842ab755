/*
Continuing the training of a tokenizer: its merges are repeated as if they had been learned here, and words start as
these merges leave them.
*/
#include "train.h"

int train_base_apply(pybpe_trainer *t, const pybpe_train_config *config, merge_table *base, pybpe_error *err) {
    uint32_t byte_ids[256];
    for (uint32_t i = 0; i < 256; i++) {
        byte_ids[i] = i;
    }
    size_t count = config->base_merges_count;
    int code = merge_table_new(base, 256 + count, count, byte_ids, &t->mem, err);
    for (size_t i = 0; i < count && code == PYBPE_OK; i++) {
        uint32_t left = config->base_merges[2 * i], right = config->base_merges[2 * i + 1], merged;
        if (left >= t->tokens_count || right >= t->tokens_count) {
            return error_set(err, PYBPE_ERR_VALUE, i, "base merge %zu: tokens %u and %u must both exist before it", i,
                             left, right);
        }
        code = train_token_concat(t, left, right, &merged, err);
        if (code == PYBPE_OK) {
            code = train_merges_append(t, left, right, merged, err);
            merge_table_add(base, left, right, (uint32_t)i, merged);
            if (left < 256 && right < 256) {
                merge_table_add_bytes(base, (uint8_t)left, (uint8_t)right, (uint32_t)i);
            }
        }
    }
    return code;
}
