/*
Encoding with dropout: what it refuses, its memory, and words of all lengths. tests/py/test_dropout.py has the distribution.
*/
#include "base.h" /* before any system header */
#include "check.h"
#include "encode.h"
#include "naive_encode.h"
#include "random_state.h"

#include <math.h>

enum { LONGEST = 3000 };

static void fill(small_vocab *v) {
    small_start(v);
    uint32_t ab = small_add_merge(v, 'a', 'b');
    uint32_t aa = small_add_merge(v, 'a', 'a');
    small_add_merge(v, ab, ab);
    small_add_merge(v, aa, ab);
    small_add_merge(v, ab, 'a');
    small_add_merge(v, aa, aa);
}

/* Whether the tokens have the bytes of the text. */
static bool spells(const small_vocab *v, const uint32_t *ids, size_t count, const uint8_t *text, size_t n) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = small_length(v, ids[i]);
        if (n - at < length || memcmp(text + at, v->bytes + v->offsets[ids[i]], length) != 0) {
            return false;
        }
        at += length;
    }
    return at == n;
}

static void test_words_of_all_lengths(const small_vocab *v, const pybpe_encoder *e) {
    const double rates[] = {0, 0.1, 0.5, 0.99, 0.9999999999999999, 1};
    static uint32_t ids[LONGEST];
    static uint32_t want[LONGEST];
    naive_prepare(v);
    for (size_t round = 0; round < 300; round++) {
        size_t n = random_below(round % 10 == 0 ? LONGEST : 20);
        uint8_t *text = malloc(n + (n == 0)); /* of the exact size, so that a sanitizer sees reads outside it */
        for (size_t i = 0; i < n; i++) {
            text[i] = (uint8_t)"ab"[random_below(2)];
        }
        size_t least = merge_naive(v, text, n, want);
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
            const pybpe_dropout how = {rates[r], round, 0};
            size_t count = 0;
            CHECK_EQ(pybpe_encode_dropout(e, &how, text, n, ids, &count, NULL), PYBPE_OK);
            CHECK(spells(v, ids, count, text, n));
            CHECK(r > 0 || (count == least && memcmp(ids, want, 4 * count) == 0));
            CHECK(rates[r] < 1 || count == n);
        }
        free(text);
    }
    naive_forget(v);
}

/* A word that one merge completes stays in two parts as often as the rate says: within five standard deviations. */
static void test_rates(const pybpe_encoder *e) {
    enum { WORDS = 10000 };
    static uint8_t text[3 * WORDS];
    static uint32_t ids[3 * WORDS];
    for (size_t i = 0; i < WORDS; i++) {
        memcpy(text + 3 * i, " ab", 3); /* no merge takes the space */
    }
    for (int tenths = 1; tenths < 10; tenths++) {
        const double rate = tenths / 10.0;
        const pybpe_dropout how = {rate, 7, 0};
        size_t count = 0;
        CHECK_EQ(pybpe_encode_dropout(e, &how, text, sizeof text, ids, &count, NULL), PYBPE_OK);
        CHECK(fabs((double)count - WORDS * (2 + rate)) < 5 * sqrt(WORDS * rate * (1 - rate)));
    }
}

static void test_refusals(const pybpe_encoder *e) {
    const double wrong[] = {-0.1, 1.1, (double)NAN, (double)INFINITY};
    uint32_t ids[4] = {7, 7, 7, 7};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const pybpe_dropout how = {wrong[i], 1, 0};
        size_t count = 5;
        pybpe_error err;
        CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)"abab", 4, ids, &count, &err), PYBPE_ERR_VALUE);
        CHECK(count == 5 && ids[0] == 7);
    }
}

/* A word whose pairs have no numbers of 32 bits. It is refused before it is read. */
static void test_too_long(const small_vocab *v) {
    const pybpe_dropout how = {0.5, 1, 0};
    pybpe_vocab_spec spec = small_spec(v);
    spec.pattern = PYBPE_PATTERN_CUSTOM;
    spec.custom = ".";
    pybpe_vocab *vocab;
    pybpe_encoder *e;
    pybpe_error err;
    uint32_t ids[1];
    size_t count = 5;
    CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, vocab, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)"a", UINT32_MAX / 3, ids, &count, &err), PYBPE_ERR_LIMIT);
    CHECK_EQ(count, 5);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
}

static void test_bytes_without_tokens(void) {
    const uint8_t bytes[] = "ab";
    const uint64_t offsets[] = {0, 1, 2};
    const pybpe_vocab_spec spec = {.tokens = {bytes, offsets, 2}, .eot_id = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
    const pybpe_dropout how = {0.5, 1, 100};
    pybpe_vocab *v;
    pybpe_encoder *e;
    pybpe_error err;
    uint32_t ids[4];
    size_t count = 0;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, v, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)"abba", 4, ids, &count, &err), PYBPE_OK);
    CHECK_EQ(count, 4);
    CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)"abca", 4, ids, &count, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 2);
    pybpe_encoder_free(e);
    pybpe_vocab_free(v);
}

/* With a custom pattern, the text is one word. */
static void test_custom_pattern(const small_vocab *v) {
    const char *texts[] = {"", "ab", "ab ab a"};
    pybpe_vocab_spec spec = small_spec(v);
    spec.pattern = PYBPE_PATTERN_CUSTOM;
    spec.custom = ".";
    const pybpe_dropout how = {0, 1, 0};
    pybpe_vocab *vocab;
    pybpe_encoder *e;
    CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, vocab, NULL, NULL), PYBPE_OK);
    naive_prepare(v);
    for (size_t i = 0; i < 3; i++) {
        uint32_t ids[8], want[8];
        size_t n = strlen(texts[i]), count = 9;
        CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)texts[i], n, ids, &count, NULL), PYBPE_OK);
        CHECK_EQ(count, n > 0 ? merge_naive(v, (const uint8_t *)texts[i], n, want) : 0);
        CHECK(memcmp(ids, want, 4 * count) == 0);
    }
    naive_forget(v);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
}

/* Every allocation fails in turn. */
static void test_failing_memory(const pybpe_vocab *v) {
    const pybpe_dropout how = {0.5, 1, 0};
    const uint8_t text[] = "a aa aab abab abababababababababab b";
    int passed = 0;
    int wrong = 0;
    for (long grant = 0; grant < 40; grant++) {
        failing_memory m = {.left = grant};
        pybpe_allocator mem = {failing_resize, &m};
        pybpe_encoder *e;
        pybpe_error err;
        uint32_t ids[sizeof text];
        size_t count;
        int code = pybpe_encoder_new(&e, v, &mem, &err);
        code = code == PYBPE_OK ? pybpe_encode_dropout(e, &how, text, sizeof text - 1, ids, &count, &err) : code;
        pybpe_encoder_free(e);
        passed += code == PYBPE_OK;
        wrong += (code != PYBPE_OK && code != PYBPE_ERR_MEMORY) || m.blocks != 0;
    }
    CHECK_EQ(wrong, 0);
    CHECK(passed > 0 && passed < 35);
}

int main(void) {
    static small_vocab v;
    fill(&v);
    const pybpe_vocab_spec spec = small_spec(&v);
    pybpe_vocab *vocab;
    pybpe_encoder *e;
    CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, vocab, NULL, NULL), PYBPE_OK);
    test_words_of_all_lengths(&v, e);
    test_rates(e);
    test_refusals(e);
    test_too_long(&v);
    test_bytes_without_tokens();
    test_custom_pattern(&v);
    test_failing_memory(vocab);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return check_report("dropout");
}
