/*
Sizes beyond the library's limits: given only by offsets, never allocated, and refused before any byte is read.
*/
#include "apply/apply.h"
#include "check.h"
#include "small_vocab.h"
#include "vocab/vocab.h"

#include <string.h>

static const uint64_t HUGE_SIZE = UINT64_C(1) << 33;
static const int WIDE = sizeof(size_t) > 4; /* otherwise a size may meet another limit first */

static pybpe_error err;

/* ---------------------------------------------------------------------------------------------------
Vocabularies
*/

static void expect_vocab(const pybpe_vocab_spec *spec, int code) {
    pybpe_vocab *v = (pybpe_vocab *)1;
    CHECK_EQ(pybpe_vocab_new(&v, spec, NULL, &err), code);
    CHECK(v == NULL && err.code == code && err.msg[0] != '\0');
}

static void test_vocab_sizes(void) {
    static small_vocab v;
    small_start(&v);
    small_add_merge(&v, 'a', 'b');
    pybpe_vocab_spec spec = small_spec(&v);
    pybpe_vocab *made = NULL;
    const pybpe_allocator mem = mem_of(NULL);
    CHECK_EQ(vocab_alloc(&made, &(vocab_sizes){.tokens = PYBPE_NO_ID}, &mem, &err), PYBPE_ERR_LIMIT);
    CHECK(made == NULL);
    spec.merges_count = SIZE_MAX / 4;
    expect_vocab(&spec, WIDE ? PYBPE_ERR_LIMIT : PYBPE_ERR_MEMORY);
    spec = small_spec(&v);
    v.offsets[v.count] = UINT64_MAX - 1;
    expect_vocab(&spec, WIDE ? PYBPE_ERR_MEMORY : PYBPE_ERR_LIMIT);
    v.offsets[0] = 1;
    expect_vocab(&spec, PYBPE_ERR_VALUE);
}

/* Ids and ranks of a pair are packed into 64 bits: 2^23 tokens with 2^18 merges do not fit. */
static void test_encoder_bits(void) {
    enum { TOKENS = 1 << 23, MERGES = 1 << 18 };
    static small_vocab v;
    small_start(&v);
    small_add_merge(&v, 'a', 'a');
    uint64_t *offsets = malloc((TOKENS + 1) * sizeof *offsets);
    uint32_t *merges = malloc(2 * MERGES * sizeof *merges);
    for (size_t i = 0; i <= TOKENS; i++) { /* ids after the last token are unused */
        offsets[i] = v.offsets[i < v.count ? i : v.count];
    }
    for (size_t i = 0; i < 2 * (size_t)MERGES; i++) {
        merges[i] = 'a';
    }
    pybpe_vocab_spec spec = small_spec(&v);
    spec.tokens = (pybpe_strings){v.bytes, offsets, TOKENS};
    spec.merges = merges;
    spec.merges_count = MERGES;
    pybpe_vocab *large = NULL;
    pybpe_encoder *e = (pybpe_encoder *)1;
    CHECK_EQ(pybpe_vocab_new(&large, &spec, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, large, NULL, 0, NULL, &err), PYBPE_ERR_LIMIT);
    CHECK(e == NULL && strstr(err.msg, "8388608 tokens") != NULL);
    pybpe_vocab_free(large);
    free(offsets);
    free(merges);
}

static void test_specials(void) {
    const uint64_t offsets[] = {0, HUGE_SIZE};
    const pybpe_strings strings = {(const uint8_t *)"x", offsets, 1};
    const uint32_t id = 7;
    pybpe_specials *s = (pybpe_specials *)1;
    CHECK_EQ(pybpe_specials_new(&s, &strings, &id, NULL, NULL, &err), PYBPE_ERR_LIMIT);
    CHECK(s == NULL);
}

/* ---------------------------------------------------------------------------------------------------
Encoding
*/

/* Only the length of this word is looked at. */
static void test_huge_word(void) {
    const merge_table none = {0};
    apply_scratch scratch = {0};
    size_t count = 77;
    CHECK_EQ(apply_long(&none, &scratch, (const uint8_t *)"x", UINT32_MAX, &count, NULL, &err), PYBPE_ERR_LIMIT);
    CHECK_EQ(count, 77);
}

/* Long words, of which the first finds no memory: that later ones do find some must not hide the error. */
static void test_memory_comes_back(const pybpe_encoder *e) {
    enum { LONG = 5000 };
    static uint8_t text[3 * LONG];
    const size_t ends[] = {LONG, 2 * LONG, 3 * LONG};
    failing_memory memory = {.left = -1};
    const pybpe_allocator mem = {failing_once, &memory};
    pybpe_cache *c = NULL;
    size_t count = 77;
    memset(text, 'a', sizeof text);
    CHECK_EQ(pybpe_cache_new(&c, e, &mem, NULL), PYBPE_OK);
    memory.left = 0;
    CHECK_EQ(pybpe_encode_words(e, c, text, ends, 3, NULL, 4, 0, &count, &err), PYBPE_ERR_MEMORY);
    CHECK_EQ(count, 77);
    CHECK_EQ(pybpe_encode_words(e, c, text, ends, 3, NULL, 4, 0, &count, &err), PYBPE_OK);
    CHECK_EQ(count, 3 * LONG / 2);
    pybpe_cache_free(c);
    CHECK_EQ(memory.blocks, 0);
}

/* A long word for which there is no memory, in the first batch of words or in a later one. The last word is taken whole,
   or in three. */
static void test_word_without_memory(int whole_words) {
    enum { WORDS = 1000, LONG = 5000, BYTES = WORDS + LONG + 2 };
    static small_vocab v;
    small_start(&v);
    small_add_merge(&v, 'a', 'a');
    small_add_token(&v, "bbb", 3);
    static uint8_t text[BYTES];
    size_t ends[WORDS];
    memset(text, 'a', BYTES - 3);
    memset(text + BYTES - 3, 'b', 3);
    pybpe_vocab_spec spec = small_spec(&v);
    spec.whole_words = whole_words;
    pybpe_vocab *vocab = NULL;
    pybpe_encoder *e = NULL;
    CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, vocab, NULL, 0, NULL, NULL), PYBPE_OK);
    for (size_t at = 0; at < WORDS - 1; at += 333) {
        failing_memory memory = {.left = -1};
        const pybpe_allocator mem = {failing_resize, &memory};
        pybpe_cache *c = NULL;
        size_t count = 77;
        CHECK_EQ(pybpe_cache_new(&c, e, &mem, NULL), PYBPE_OK);
        for (size_t i = 0; i < WORDS; i++) {
            ends[i] = i + 1 + (i >= at ? LONG : 0);
        }
        ends[WORDS - 1] = BYTES;
        memory.left = 0;
        CHECK_EQ(pybpe_encode_words(e, c, text, ends, WORDS, NULL, 4, 0, &count, &err), PYBPE_ERR_MEMORY);
        CHECK_EQ(count, 77);
        memory.left = -1;
        CHECK_EQ(pybpe_encode_words(e, c, text, ends, WORDS, NULL, 4, 0, &count, &err), PYBPE_OK);
        CHECK_EQ(count, WORDS - 2 + (LONG + 2) / 2 + (whole_words ? 1 : 3));
        uint32_t id;
        CHECK_EQ(pybpe_encode_words(e, c, text, ends, WORDS, &id, 4, 1, &count, &err), PYBPE_ERR_VALUE);
        pybpe_cache_free(c);
        CHECK_EQ(memory.blocks, 0);
    }
    test_memory_comes_back(e);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
}

/* ---------------------------------------------------------------------------------------------------
Counting and training
*/

static void expect_trainer(const pybpe_strings *words, const uint64_t *counts, pybpe_train_config config, int code) {
    pybpe_trainer *t = (pybpe_trainer *)1;
    CHECK_EQ(pybpe_trainer_new(&t, words, counts, &config, NULL, &err), code);
    CHECK(t == NULL && err.code == code && err.msg[0] != '\0');
}

static void test_training(void) {
    const uint64_t offsets[] = {0, HUGE_SIZE};
    const pybpe_strings words = {(const uint8_t *)"x", offsets, 1};
    const uint64_t once = 1;
    const uint64_t often = UINT64_MAX;
    const pybpe_train_config config = {.vocab_size = 300, .max_token_length = 16};
    expect_trainer(&words, &once, config, PYBPE_ERR_LIMIT);
    CHECK_EQ(err.offset, 0);
    const uint64_t least[] = {0, UINT32_MAX - 3}; /* too large with the separators before and after it */
    const pybpe_strings large = {(const uint8_t *)"x", least, 1};
    expect_trainer(&large, &once, config, PYBPE_ERR_LIMIT);
    expect_trainer(&words, &often, config, PYBPE_ERR_LIMIT);
    pybpe_trainer *t = (pybpe_trainer *)1;
    const pybpe_language language = {words, &once, words, &once, 1};
    const pybpe_language languages[] = {language, language};
    CHECK_EQ(pybpe_trainer_new_parity(&t, languages, 2, &config, NULL, &err), PYBPE_ERR_LIMIT);
    CHECK(t == NULL && strstr(err.msg, "8589934594 bytes of distinct words") != NULL); /* of the first language */
    pybpe_train_config many = config;
    many.vocab_size = UINT32_MAX;
    expect_trainer(&words, &once, many, PYBPE_ERR_LIMIT);
}

static void test_counting_nothing(void) {
    const uint64_t offsets[] = {0, 0, 2, 2};
    const pybpe_strings none = {NULL, offsets, 0};
    const pybpe_strings words = {(const uint8_t *)"ab", offsets, 3};
    pybpe_counter *c = NULL;
    CHECK_EQ(pybpe_counter_new(&c, NULL, NULL, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add_words(c, &none, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_get_stats(c).words, 0);
    CHECK_EQ(pybpe_counter_add_words(c, &words, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_get_stats(c).words, 1);
    pybpe_counter_free(c);
}

/* A table for more words than memory has addresses. */
static void test_counting_everything(void) {
    pybpe_counter *c = NULL;
    CHECK_EQ(pybpe_counter_new(&c, NULL, NULL, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_reserve(c, SIZE_MAX, &err), PYBPE_ERR_MEMORY);
    CHECK(err.msg[0] != '\0');
    CHECK_EQ(pybpe_counter_get_stats(c).words, 0);
    pybpe_counter_free(c);
}

/* ---------------------------------------------------------------------------------------------------
Lists of strings whose offsets are wrong
*/

static void expect_refused(const pybpe_strings *strings, uint64_t offset) {
    const uint32_t ids[] = {7, 8};
    const uint64_t counts[] = {3, 4};
    const pybpe_train_config config = {.vocab_size = 300, .max_token_length = 16};
    const pybpe_vocab_spec spec = {.tokens = *strings, .eot_id = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
    const pybpe_vocab_spec specials = {.specials = ids, .specials_count = strings->count, .eot_id = PYBPE_NO_ID};
    pybpe_specials *s = (pybpe_specials *)1;
    pybpe_vocab *v = (pybpe_vocab *)1;
    pybpe_counter *c = NULL;
    CHECK_EQ(pybpe_specials_new(&s, strings, ids, NULL, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(s == NULL && err.offset == offset);
    expect_vocab(&spec, PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, offset);
    expect_trainer(strings, counts, config, PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, offset);
    CHECK_EQ(
        pybpe_vocab_new_json(&v, (const uint8_t *)"{}", 2, (const uint8_t *)"[]", 2, strings, &specials, NULL, &err),
        PYBPE_ERR_VALUE);
    CHECK(v == NULL && err.offset == offset);
    CHECK_EQ(pybpe_counter_new(&c, NULL, NULL, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add_words(c, strings, counts, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, offset);
    CHECK_EQ(pybpe_counter_get_stats(c).words, 0);
    pybpe_counter_free(c);
}

/* The bytes have exactly the length of the last offset, so that the sanitizer sees any read beyond them. */
static void test_offsets(void) {
    static const struct {
        uint64_t offsets[3];
        uint64_t index;
        size_t bytes;
    } wrong[] = {{{5, 1, 2}, 0, 2}, {{0, 6, 3}, 1, 3}, {{1, 2, 3}, 0, 3}, {{0, UINT64_MAX, 1}, 1, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint8_t *bytes = calloc(wrong[i].bytes, 1);
        const pybpe_strings strings = {bytes, wrong[i].offsets, 2};
        expect_refused(&strings, wrong[i].index);
        free(bytes);
    }
    const uint64_t right[] = {0, 1, 2};
    const pybpe_strings missing = {NULL, right, 2};
    expect_refused(&missing, 0);
}

/* A tokenizer.json with fewer texts of special tokens than ids. */
static void test_special_texts(void) {
    const uint64_t offsets[] = {0, 1};
    const uint32_t ids[] = {1, 2};
    const pybpe_strings texts = {(const uint8_t *)"x", offsets, 1};
    const pybpe_vocab_spec spec = {.specials = ids, .specials_count = 2, .eot_id = PYBPE_NO_ID};
    pybpe_vocab *v = (pybpe_vocab *)1;
    CHECK_EQ(pybpe_vocab_new_json(&v, (const uint8_t *)"{}", 2, (const uint8_t *)"[]", 2, &texts, &spec, NULL, &err),
             PYBPE_ERR_VALUE);
    CHECK(v == NULL);
}

int main(void) {
    test_offsets();
    test_special_texts();
    test_vocab_sizes();
    test_encoder_bits();
    test_specials();
    test_huge_word();
    test_word_without_memory(0);
    test_word_without_memory(1);
    test_training();
    test_counting_nothing();
    test_counting_everything();
    return check_report("limits");
}
