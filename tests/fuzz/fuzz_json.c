/*
tokenizer.json from hostile bytes: its vocabulary and merges are refused, or are a vocabulary that decodes, encodes, and
can be laid out again. The first byte chooses the id of a special token, or that there is none.
*/
#include "check_vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t special[] = "<|endoftext|>";
    static const uint64_t offsets[] = {0, sizeof special - 1};
    fuzz_input in = {data, size};
    pybpe_vocab *v = NULL;
    pybpe_error err;
    size_t n, at[4];
    uint32_t id = fuzz_byte(&in);
    pybpe_strings texts = {special, offsets, id != 255};
    pybpe_vocab_spec spec = {.specials = &id,
                             .specials_count = texts.count,
                             .eot_id = id != 255 ? id : PYBPE_NO_ID,
                             .pattern = PYBPE_PATTERN_GPT2};
    uint8_t *text = fuzz_bytes(&in, size, &n);
    if (pybpe_tokenizer_json_find(text, n, at)) {
        REQUIRE(at[0] < at[1] && at[1] <= n && at[2] < at[3] && at[3] <= n && (at[1] <= at[2] || at[3] <= at[0]));
        int code = pybpe_vocab_new_json(&v, text + at[0], at[1] - at[0], text + at[2], at[3] - at[2], &texts, &spec,
                                        &fuzz_memory, &err);
        if (code == PYBPE_OK) {
            check_vocab(v, text, n < 2048 ? n : 2048);
            pybpe_vocab_free(v);
        } else {
            REQUIRE(v == NULL);
            fuzz_expect_error(code, &err);
        }
    }
    free(text);
    return 0;
}
