/*
tokenizer.json from hostile bytes, whole, and only its vocabulary and merges: refused, or a vocabulary that decodes, encodes,
and can be laid out again. The first byte chooses the id of a special token for the latter, or that there is none.
*/
#include "check_vocab.h"
#include "pybpe_corpus.h"

static void encode_whole(const pybpe_vocab *v, const uint8_t *text, size_t n) {
    pybpe_encoder *e;
    pybpe_cache *c;
    pybpe_error err;
    size_t count = 0;
    if (pybpe_encoder_new(&e, v, NULL, 0, &fuzz_memory, &err) != PYBPE_OK) {
        return;
    }
    REQUIRE(pybpe_encoder_pretok(e) != NULL && pybpe_cache_new(&c, e, &fuzz_memory, &err) == PYBPE_OK);
    uint32_t *ids = malloc(48 * n + 4);
    int code = pybpe_encode(e, c, pybpe_encoder_specials(e), text, n, ids, 4, 12 * n, &count, &err);
    REQUIRE(code == PYBPE_OK ? count <= 12 * n : code == PYBPE_ERR_VALUE);
    free(ids);
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
}

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
    int code = pybpe_vocab_load_mem(&v, text, n, &fuzz_memory, &err);
    if (code == PYBPE_OK) {
        check_vocab(v, text, n < 2048 ? n : 2048);
        encode_whole(v, text, n < 2048 ? n : 2048);
        pybpe_vocab_free(v);
    } else {
        REQUIRE(v == NULL && err.offset <= n);
        fuzz_expect_error(code, &err);
    }
    free(text);
    return 0;
}
