/*
NULL with a count: every function that creates a handle from arrays refuses it, and names the array. A test compares the
functions here with the header (tests/py/test_structure.py).
*/
#include "base/base.h"
#include "check.h"

static const uint8_t bytes[] = "ab";
static const uint64_t offsets[] = {0, 1, 2}, counts[] = {1, 1};
static const pybpe_strings two = {.bytes = bytes, .offsets = offsets, .count = 2};
static const pybpe_train_config config = {.vocab_size = 300, .max_token_length = 9};
static pybpe_error err;

/* Checks the last error, and that no handle was made. */
static void expect_named(int code, const void *handle, const char *what, int line) {
    CHECK_EQ(code, PYBPE_ERR_VALUE);
    if (handle != NULL || strstr(err.msg, what) == NULL || strstr(err.msg, "are NULL, but") == NULL) {
        printf("line %d: %s\n", line, err.msg);
        CHECK(false);
    }
    err = (pybpe_error){0};
}

static void test_strings(void) {
    pybpe_specials *s = NULL;
    const uint32_t ids[] = {0, 1};
    const pybpe_strings no_offsets = {.bytes = bytes, .count = 2}, no_bytes = {.offsets = offsets, .count = 2};
    expect_named(pybpe_specials_new(&s, &no_offsets, ids, NULL, NULL, &err), s, "the offsets of special tokens",
                 __LINE__);
    expect_named(pybpe_specials_new(&s, &no_bytes, ids, NULL, NULL, &err), s, "the bytes of special tokens", __LINE__);
    expect_named(pybpe_specials_new(&s, &two, NULL, NULL, NULL, &err), s, "the ids of special tokens", __LINE__);
    const pybpe_strings none = {.count = 0};
    CHECK_EQ(pybpe_specials_new(&s, &none, NULL, NULL, NULL, &err), PYBPE_OK);
    pybpe_specials_free(s);
}

static void test_splitters(void) {
    pybpe_pretok *p = NULL;
    static const uint32_t first[] = {0};
    static const uint8_t classes[] = {0};
    static const uint16_t next[9] = {0};
    pybpe_automaton tables = {
        .first = first, .class_of = classes, .next = next, .ranges = 1, .classes = 1, .states = 3};
    tables.first = NULL;
    expect_named(pybpe_pretok_new_automaton(&p, &tables, NULL, &err), p, "the first code points", __LINE__);
    tables.first = first;
    tables.class_of = NULL;
    expect_named(pybpe_pretok_new_automaton(&p, &tables, NULL, &err), p, "the classes of ranges", __LINE__);
    tables.class_of = classes;
    tables.next = NULL;
    expect_named(pybpe_pretok_new_automaton(&p, &tables, NULL, &err), p, "the rows of states", __LINE__);
    expect_named(pybpe_pretok_new_sequence(&p, NULL, 2, NULL, &err), p, "the splitters of a sequence", __LINE__);
}

static void test_vocabularies(void) {
    pybpe_vocab *v = NULL;
    uint8_t all[256];
    uint64_t ends[257];
    for (size_t i = 0; i < 257; i++) {
        all[i % 256] = (uint8_t)i;
        ends[i] = i;
    }
    all[0] = 0;
    const pybpe_vocab_spec good = {
        .tokens = {.bytes = all, .offsets = ends, .count = 256}, .eot_id = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
    pybpe_vocab_spec spec = good;
    spec.merges_count = 1;
    expect_named(pybpe_vocab_new(&v, &spec, NULL, &err), v, "the merges", __LINE__);
    spec = good;
    spec.specials_count = 1;
    expect_named(pybpe_vocab_new(&v, &spec, NULL, &err), v, "the specials", __LINE__);
    const pybpe_strings one = {.bytes = bytes, .offsets = offsets, .count = 1};
    expect_named(pybpe_vocab_new_json(&v, bytes, 2, bytes, 2, &one, &spec, NULL, &err), v, "the specials", __LINE__);
    spec = good;
    const pybpe_strings no = {.count = 0};
    expect_named(pybpe_vocab_new_json(&v, NULL, 2, bytes, 2, &no, &spec, NULL, &err), v, "the vocabulary", __LINE__);
    expect_named(pybpe_vocab_new_json(&v, bytes, 2, NULL, 2, &no, &spec, NULL, &err), v, "the merges", __LINE__);
    expect_named(pybpe_vocab_new_ranks(&v, NULL, 2, &no, &spec, NULL, &err), v, "a .tiktoken file", __LINE__);
    expect_named(pybpe_vocab_load_mem(&v, NULL, 2000, NULL, &err), v, "the bytes of a tokenizer", __LINE__);
    CHECK_EQ(pybpe_vocab_load_mem(&v, NULL, 0, NULL, &err), PYBPE_ERR_FORMAT);
    pybpe_tokenizer *t = NULL;
    expect_named(pybpe_tokenizer_load_mem(&t, NULL, 2000, NULL, &err), t, "the bytes of a tokenizer", __LINE__);
    CHECK_EQ(pybpe_vocab_new(&v, &good, NULL, &err), PYBPE_OK);
    pybpe_vocab_free(v);
}

static void test_shards(void) {
    pybpe_shard *s = NULL;
    expect_named(pybpe_shard_open_mem(&s, NULL, 2000, NULL, &err), s, "the bytes of a shard", __LINE__);
    CHECK_EQ(pybpe_shard_open_mem(&s, NULL, 0, NULL, &err), PYBPE_ERR_FORMAT);
}

static void test_trainers(void) {
    pybpe_trainer *t = NULL;
    expect_named(pybpe_trainer_new(&t, &two, NULL, &config, NULL, &err), t, "the counts of words", __LINE__);
    pybpe_train_config bad = config;
    bad.base_merges_count = 1;
    expect_named(pybpe_trainer_new(&t, &two, counts, &bad, NULL, &err), t, "base_merges", __LINE__);
    expect_named(pybpe_trainer_new_parity(&t, NULL, 1, &config, NULL, &err), t, "the languages", __LINE__);
    pybpe_language l = {.words = two, .measured = two, .measured_counts = counts};
    expect_named(pybpe_trainer_new_parity(&t, &l, 1, &config, NULL, &err), t, "the counts of a language's", __LINE__);
    l = (pybpe_language){.words = two, .counts = counts, .measured = two};
    expect_named(pybpe_trainer_new_parity(&t, &l, 1, &config, NULL, &err), t, "the counts of a development", __LINE__);
    const pybpe_strings none = {.count = 0};
    CHECK_EQ(pybpe_trainer_new(&t, &none, NULL, &config, NULL, &err), PYBPE_OK);
    pybpe_vocab *v = NULL;
    const pybpe_vocab_layout layout = {.specials = {.count = 1}, .eot = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
    CHECK_EQ(pybpe_trainer_vocab(&v, t, &layout, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(v == NULL && strstr(err.msg, "special") != NULL);
    pybpe_trainer_free(t);
}

static void test_divisions(void) {
    pybpe_divider *d = NULL;
    static const uint64_t last[] = {UINT64_MAX};
    const pybpe_division key = {.key_n = 1, .last = last, .splits = 1};
    expect_named(pybpe_divider_new(&d, &key, NULL, &err), d, "the bytes of the key", __LINE__);
    const pybpe_division separator = {.separator_n = 1, .last = last, .splits = 1};
    expect_named(pybpe_divider_new(&d, &separator, NULL, &err), d, "the bytes of the separator", __LINE__);
    const pybpe_division hashes = {.splits = 1};
    expect_named(pybpe_divider_new(&d, &hashes, NULL, &err), d, "the last hashes of splits", __LINE__);
}

static void test_measures(void) {
    uint64_t out[1];
    const pybpe_characters *tables = NULL;
    const pybpe_measuring what = {.count = 2};
    expect_named(pybpe_texts_measure(out, &two, tables, &what, NULL, &err), NULL, "the lengths of n-grams", __LINE__);
}

int main(void) {
    test_strings();
    test_splitters();
    test_vocabularies();
    test_shards();
    test_trainers();
    test_divisions();
    test_measures();
    return check_report("NULL");
}
