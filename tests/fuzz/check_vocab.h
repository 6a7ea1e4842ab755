/*
What holds for every vocabulary that a loader accepts: it decodes, encodes any text whose bytes have tokens, and can be laid
out again.
*/
#ifndef CHECK_VOCAB_H
#define CHECK_VOCAB_H

#include "fuzz.h"
#include "fuzz_memory.h"

static inline void decode_all(const pybpe_vocab *v) {
    pybpe_vocab_spec spec = pybpe_vocab_get_spec(v);
    for (size_t i = 0; i < spec.tokens.count; i++) {
        uint32_t id = (uint32_t)i;
        size_t length = 0;
        uint8_t bytes[256];
        pybpe_error err;
        size_t want = (size_t)(spec.tokens.offsets[i + 1] - spec.tokens.offsets[i]);
        REQUIRE(pybpe_decode(v, &id, 4, 1, NULL, 0, &length, &err) == PYBPE_OK || want == 0);
        if (want > 0 && want <= sizeof bytes) {
            REQUIRE(pybpe_decode(v, &id, 4, 1, bytes, sizeof bytes, &length, &err) == PYBPE_OK);
            REQUIRE(length == want && memcmp(bytes, spec.tokens.bytes + spec.tokens.offsets[i], want) == 0);
        }
    }
}

/* A text may be refused only at a byte for which the vocabulary has no token. */
static inline void expect_unknown_byte(const pybpe_vocab *v, const uint8_t *text, size_t n, int code,
                                       const pybpe_error *err) {
    fuzz_expect_error(code, err);
    REQUIRE(code == PYBPE_ERR_VALUE && err->offset < n);
    REQUIRE(pybpe_vocab_find(v, text + err->offset, 1, 0) == PYBPE_NO_ID);
}

static inline void round_trip(const pybpe_vocab *v, const uint8_t *text, size_t n) {
    pybpe_encoder *e;
    pybpe_cache *c;
    pybpe_error err;
    const pybpe_vocab_spec spec = pybpe_vocab_get_spec(v); /* white space that specials take is lost */
    if (spec.pattern == PYBPE_PATTERN_CUSTOM || spec.special_flags != NULL ||
        pybpe_encoder_new(&e, v, NULL, PYBPE_ENCODER_NORMALIZED, &fuzz_memory, &err) != PYBPE_OK) {
        return;
    }
    REQUIRE(pybpe_cache_new(&c, e, &fuzz_memory, &err) == PYBPE_OK);
    uint32_t *ids = malloc(4 * n + 4);
    uint8_t *back = malloc(n + 1);
    size_t count = 0, length = 0;
    REQUIRE(ids != NULL && back != NULL);
    int code = pybpe_encode(e, c, pybpe_encoder_specials(e), text, n, ids, 4, n, &count, &err);
    if (code == PYBPE_OK) {
        REQUIRE(pybpe_decode(v, ids, 4, count, back, n, &length, &err) == PYBPE_OK);
        REQUIRE(length == n && memcmp(text, back, n) == 0);
    } else {
        expect_unknown_byte(v, text, n, code, &err);
    }
    free(ids);
    free(back);
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
}

static inline void lay_out_again(const pybpe_vocab *v) {
    pybpe_vocab *again = NULL;
    pybpe_error err;
    pybpe_vocab_spec spec = pybpe_vocab_get_spec(v);
    REQUIRE(pybpe_vocab_new(&again, &spec, &fuzz_memory, &err) == PYBPE_OK);
    pybpe_vocab_free(again);
}

static inline void check_vocab(const pybpe_vocab *v, const uint8_t *text, size_t n) {
    decode_all(v);
    round_trip(v, text, n);
    lay_out_again(v);
}

#endif
