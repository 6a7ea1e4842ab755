/*
.tiktoken files: what a vocabulary of one has, what is refused, every cut of a file, failing memory.
*/
#include "check.h"
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
static size_t write_ranks(char *out, size_t room, const char *more) {
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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

int main(void) {
    test_tokens_and_merges();
    test_place_of_special();
    test_refusals();
    test_cuts();
    test_failing_memory();
    return check_report("tiktoken_read");
}
