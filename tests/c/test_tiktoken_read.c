/*
.tiktoken files: what a vocabulary of one has, what is refused, every cut of a file, failing memory.
*/
#include "check.h"
#include "encode/encode.h"
#include "random_state.h"
#include "small_vocab.h"

#include <stdbool.h>
#include <stdio.h>

/* <|e|> is special 300. */
static const uint64_t SPECIAL_OFFSETS[] = {0, 5};
static const pybpe_strings SPECIAL_TEXTS = {(const uint8_t *)"<|e|>", SPECIAL_OFFSETS, 1};
static const uint32_t SPECIAL_IDS[] = {300};
static const pybpe_vocab_spec SPEC = {
    .specials = SPECIAL_IDS, .specials_count = 1, .eot_id = 300, .pattern = PYBPE_PATTERN_GPT2};

/* The ranks of the 256 bytes, and some lines more. */
static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t write_ranks(char *out, size_t room, const char *more) {
    size_t n = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        n += (size_t)snprintf(out + n, room - n, "%c%c== %u\n", DIGITS[byte >> 2], DIGITS[(byte & 3) << 4], byte);
    }
    return n + (size_t)snprintf(out + n, room - n, "%s", more);
}

/* From memory of exactly the size of the text, so that sanitizers see reads beyond it. */
static int make(pybpe_vocab **out, const char *text, size_t n, const pybpe_vocab_spec *spec, const pybpe_allocator *mem,
                pybpe_error *err) {
    uint8_t *exact = malloc(n + (n == 0));
    memcpy(exact, text, n);
    int code = pybpe_vocab_new_ranks(out, exact, n, &SPECIAL_TEXTS, spec, mem, err);
    free(exact);
    return code;
}

/* " t", "th", " the" by " t" and "he", then "he" is missing: ids 256, 257, 258; 259 is unused. */
static const char *const MORE = "IHQ= 256\naGU= 257\nIHRoZQ== 260\n";

static void test_tokens_and_merges(void) {
    char text[8192];
    size_t n = write_ranks(text, sizeof text, MORE);
    for (size_t last = 0; last < 2; last++) { /* with and without the last line end */
        pybpe_vocab *v;
        pybpe_error err;
        CHECK_EQ(make(&v, text, n - last, &SPEC, NULL, &err), PYBPE_OK);
        pybpe_vocab_spec spec = pybpe_vocab_get_spec(v);
        const uint32_t want[] = {32, 't', 'h', 'e', 256, 257};
        CHECK_EQ(spec.tokens.count, 301);
        CHECK_EQ(spec.merges_count, 3);
        CHECK(memcmp(spec.merges, want, sizeof want) == 0);
        CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)" the", 4, 0), 260);
        CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"<|e|>", 5, 1), 300);
        CHECK_EQ(spec.tokens.offsets[260] - spec.tokens.offsets[258], 0);
        CHECK_EQ(spec.eot_id, 300);
        pybpe_vocab_free(v);
    }
}

/* A special may be between the ranks, and may have no place there. */
static void test_place_of_special(void) {
    char text[8192];
    size_t n = write_ranks(text, sizeof text, MORE);
    static const struct {
        uint32_t id;
        int code;
    } cases[] = {{258, PYBPE_OK},         {259, PYBPE_OK},       {261, PYBPE_OK},
                 {257, PYBPE_ERR_FORMAT}, {0, PYBPE_ERR_FORMAT}, {UINT32_MAX, PYBPE_ERR_FORMAT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pybpe_vocab_spec spec = SPEC;
        pybpe_vocab *v;
        spec.specials = &cases[i].id;
        spec.eot_id = PYBPE_NO_ID;
        CHECK_EQ(make(&v, text, n, &spec, NULL, NULL), cases[i].code);
        CHECK((v != NULL) == (cases[i].code == PYBPE_OK));
        CHECK(v == NULL || pybpe_vocab_find(v, (const uint8_t *)"<|e|>", 5, 1) == cases[i].id);
        pybpe_vocab_free(v);
    }
}

static void test_refusals(void) {
    static const char *const lines[] = {
        "\n",
        " 256\n",
        "IHQ=\n",
        "IHQ= \n",
        "IHQ=  256\n",
        "IHQ= +256\n",
        "IHQ= 0256\n",
        "IHQ= 256 \n",
        "IHQ= 256\r\n",
        "IHQ= 256\n\n",
        "IHQ 256\n",
        "IHR= 256\n", /* bits after the last byte */
        "IH== 256\n",
        "IHQ== 256\n",
        "IHQ=I 256\n",
        "I=== 256\n",
        "==== 256\n",
        "IH*= 256\n",
        "IHQ= 255\n",
        "IHQ= 256\naGU= 256\n",
        "IHQ= 257\naGU= 256\n",
        "IHQ= 256\nIHQ= 257\n", /* twice */
        "IHQ= 4000000000\n",
        "IHQ= 16777215\n", /* far beyond the others */
        "IHRoZQ== 256\n",  /* merging does not make it */
        "IHQ= 256\n\xC3\xA9= 257\n",
    };
    char text[8192];
    pybpe_vocab *v;
    pybpe_error err;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        size_t n = write_ranks(text, sizeof text, lines[i]);
        int code = make(&v, text, n, &SPEC, NULL, &err);
        if (v != NULL || (code != PYBPE_ERR_FORMAT && code != PYBPE_ERR_VALUE)) {
            fprintf(stderr, "line %zu: code %d\n", i, code);
            CHECK(false);
        }
    }
    size_t n = write_ranks(text, sizeof text, "");
    CHECK_EQ(make(&v, text + 7, n - 7, &SPEC, NULL, &err), PYBPE_ERR_FORMAT); /* no token for the byte 0 */
    CHECK_EQ(make(&v, "", 0, &SPEC, NULL, &err), PYBPE_ERR_FORMAT);
}

/* Every beginning of a file is refused or a vocabulary. */
static void test_cuts(void) {
    char text[8192];
    size_t n = write_ranks(text, sizeof text, MORE);
    for (size_t cut = 0; cut <= n; cut++) {
        pybpe_vocab *v;
        int code = make(&v, text, cut, &SPEC, NULL, NULL);
        CHECK((code == PYBPE_OK) == (v != NULL));
        pybpe_vocab_free(v);
    }
}

static void test_failing_memory(void) {
    char text[8192];
    size_t n = write_ranks(text, sizeof text, MORE);
    int code = PYBPE_ERR_MEMORY;
    for (long left = 0; code != PYBPE_OK; left++) {
        failing_memory state = {.left = left};
        const pybpe_allocator mem = {failing_resize, &state};
        pybpe_vocab *v;
        pybpe_error err;
        code = make(&v, text, n, &SPEC, &mem, &err);
        CHECK(code == PYBPE_OK || (code == PYBPE_ERR_MEMORY && v == NULL));
        pybpe_vocab_free(v);
        CHECK_EQ(state.blocks, 0);
    }
}

enum { OWN_TOKENS = 60, OWN_ROUNDS = 300, OWN_LONGEST = 6 };

/* Writes the line of a token of up to 6 bytes. */
static size_t write_line(char *out, size_t room, const char *token, size_t n, unsigned id) {
    char digits[9];
    size_t count = 0;
    for (size_t i = 0; i < n; i += 3) {
        const unsigned b[3] = {(uint8_t)token[i], i + 1 < n ? (uint8_t)token[i + 1] : 0,
                               i + 2 < n ? (uint8_t)token[i + 2] : 0};
        const unsigned all = b[0] << 16 | b[1] << 8 | b[2];
        digits[count++] = DIGITS[all >> 18];
        digits[count++] = DIGITS[all >> 12 & 63];
        digits[count++] = i + 1 < n ? DIGITS[all >> 6 & 63] : '=';
        digits[count++] = i + 2 < n ? DIGITS[all & 63] : '=';
    }
    digits[count] = 0;
    return (size_t)snprintf(out, room, "%s %u\n", digits, id);
}

/* Encodes words with a new cache, which may look them up, and compares the ids with those of merging. Returns how many
   words differ. */
static unsigned words_that_differ(const pybpe_vocab *v, const pybpe_encoder *e) {
    unsigned wrong = 0;
    pybpe_cache *c;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    for (unsigned i = 0; i < 200; i++) {
        char word[3 * OWN_LONGEST];
        size_t n = 0;
        for (size_t parts = 1 + random_below(2); parts > 0; parts--) { /* one token, or two */
            const uint32_t id = (uint32_t)random_below(256 + OWN_TOKENS);
            memcpy(word + n, vocab_token(v, id), vocab_token_length(v, id));
            n += vocab_token_length(v, id);
        }
        uint32_t want[sizeof word], ids[sizeof word];
        size_t count = 0;
        const size_t expected = apply_short(&e->table, (const uint8_t *)word, n, want);
        CHECK_EQ(pybpe_encode_words(e, c, (const uint8_t *)word, &n, 1, ids, 4, n, &count, NULL), PYBPE_OK);
        wrong += count != expected || memcmp(ids, want, 4 * count) != 0;
    }
    pybpe_cache_free(c);
    return wrong;
}

/* Ranks of random tokens. If merges reach all of them, words are looked up as tokens: the ids stay the same. */
static void test_tokens_of_their_own(void) {
    unsigned own = 0;
    for (unsigned round = 0; round < OWN_ROUNDS; round++) {
        char text[16384], tokens[OWN_TOKENS][OWN_LONGEST + 1];
        size_t lengths[OWN_TOKENS];
        size_t n = write_ranks(text, sizeof text, "");
        for (unsigned i = 0; i < OWN_TOKENS;) {
            size_t length = 0;
            if (round % 2 == 0 && i > 2) { /* two earlier tokens, so that a merge is likely to make it */
                const size_t a = random_below(i);
                const size_t b = random_below(i);
                length = lengths[a] + lengths[b] <= OWN_LONGEST ? lengths[a] + lengths[b] : 0;
                memcpy(tokens[i], tokens[a], length > 0 ? lengths[a] : 0);
                memcpy(tokens[i] + lengths[a], tokens[b], length > 0 ? lengths[b] : 0);
            }
            if (length == 0) {
                length = 2 + random_below(round % 3 == 0 ? 1 : OWN_LONGEST - 1);
                for (size_t k = 0; k < length; k++) {
                    tokens[i][k] = (char)('a' + random_below(round % 3 == 0 ? 12 : 4));
                }
            }
            bool is_new = true;
            for (unsigned k = 0; k < i; k++) {
                is_new = is_new && (lengths[k] != length || memcmp(tokens[k], tokens[i], length) != 0);
            }
            if (is_new) {
                n += write_line(text + n, sizeof text - n, tokens[i], length, 256 + i);
                lengths[i++] = length;
            }
        }
        const pybpe_vocab_spec spec = {.eot_id = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
        const pybpe_strings none = {0};
        pybpe_vocab *v;
        pybpe_encoder *e;
        if (pybpe_vocab_new_ranks(&v, (const uint8_t *)text, n, &none, &spec, NULL, NULL) == PYBPE_OK) {
            own += 1;
            CHECK_EQ(pybpe_encoder_new(&e, v, NULL, 0, NULL, NULL), PYBPE_OK);
            for (uint32_t id = 256; id < 256 + OWN_TOKENS; id++) {
                uint32_t ids[OWN_LONGEST];
                CHECK(apply_short(&e->table, vocab_token(v, id), vocab_token_length(v, id), ids) == 1 && ids[0] == id);
            }
            CHECK(v->all_own);
            CHECK_EQ(words_that_differ(v, e), 0);
            pybpe_encoder_free(e);
            pybpe_vocab_free(v);
        }
    }
    CHECK(own > OWN_ROUNDS / 20 && own < OWN_ROUNDS);
}

int main(void) {
    test_tokens_of_their_own();
    test_tokens_and_merges();
    test_place_of_special();
    test_refusals();
    test_cuts();
    test_failing_memory();
    return check_report("tiktoken_read");
}
