/*
Training: worked examples, hostile words, failing memory, and vocabularies. test_train_random.c compares trainings with
their definition.
*/
#include "check.h"
#include "naive_train.h"
#include "pybpe_train.h"
#include "random_state.h"
#include "small_vocab.h"

static pybpe_train_config config_of(uint32_t vocab_size) {
    return (pybpe_train_config){.vocab_size = vocab_size, .max_token_length = 255};
}

/* Trains in steps of `budget`; the merges are copied to `merges`. Returns their number, or SIZE_MAX. */
static size_t run(const corpus *c, const pybpe_train_config *config, size_t budget, uint32_t *merges, size_t cap) {
    pybpe_trainer *t;
    pybpe_error err;
    if (pybpe_trainer_new(&t, &c->strings, c->counts, config, NULL, &err) != PYBPE_OK) {
        return SIZE_MAX;
    }
    int done = 0;
    while (!done) {
        CHECK_EQ(pybpe_trainer_step(t, budget, &done, &err), PYBPE_OK);
    }
    const uint32_t *found;
    size_t count = pybpe_trainer_merges(t, &found);
    CHECK(count <= cap);
    for (size_t i = 0; i < 3 * count && count <= cap; i++) {
        merges[i] = found[i];
    }
    pybpe_trainer_free(t);
    return count;
}

static void expect_merges(const corpus *c, const pybpe_train_config *config, const uint32_t *want, size_t count) {
    uint32_t merges[3 * MAX_MERGES];
    for (size_t budget = 0; budget <= 1000000; budget = 1000 * budget + 1) {
        CHECK_EQ(run(c, config, budget, merges, MAX_MERGES), count);
        CHECK(memcmp(merges, want, count * 3 * sizeof *want) == 0);
    }
}

#define EXPECT(c, config, ...)                                                                                         \
    do {                                                                                                               \
        const uint32_t want[] = {__VA_ARGS__};                                                                         \
        expect_merges((c), (config), want, sizeof want / sizeof *want / 3);                                            \
    } while (0)

/* ---------------------------------------------------------------------------------------------------
By hand
*/

static void test_worked(void) {
    corpus c;
    pybpe_train_config config = config_of(258);
    corpus_start(&c);
    corpus_word(&c, "aa", 1);
    corpus_word(&c, " bb", 1);
    corpus_word(&c, " aa", 1);
    EXPECT(&c, &config, 'a', 'a', 256, 'b', 'b', 257);

    config.vocab_size = 1000; /* the rest: (' ', "bb") and (' ', "aa") once each, the greater first; then nothing */
    EXPECT(&c, &config, 'a', 'a', 256, 'b', 'b', 257, ' ', 257, 258, ' ', 256, 259);
    config.tie_break = PYBPE_TIE_HUGGINGFACE; /* the lower ids first; a blank counts as the 221st character */
    EXPECT(&c, &config, 'a', 'a', 256, 'b', 'b', 257, ' ', 256, 258, ' ', 257, 259);
}

static void test_runs(void) {
    corpus c;
    pybpe_train_config config = config_of(300);
    corpus_start(&c);
    corpus_word(&c, "aaaaa", 1); /* aa aa a, then (aa, aa), then (aaaa, a) */
    EXPECT(&c, &config, 'a', 'a', 256, 256, 256, 257, 257, 'a', 258);
    corpus_start(&c);
    corpus_word(&c, "ababab", 1); /* (a, b) three times, (b, a) twice */
    EXPECT(&c, &config, 'a', 'b', 256, 256, 256, 257, 257, 256, 258);
}

static void test_limits(void) {
    corpus c;
    pybpe_train_config config = config_of(300);
    corpus_start(&c);
    EXPECT(&c, &config, 0); /* no words: no merges (the 0 represents an empty list) */
    corpus_word(&c, "", 5);
    corpus_word(&c, "x", 5);
    corpus_word(&c, "yz", 0);
    EXPECT(&c, &config, 0);
    corpus_start(&c);
    corpus_word(&c, "abc", 3);
    corpus_word(&c, "bc", 2);
    config.max_token_length = 2;
    EXPECT(&c, &config, 'b', 'c', 256);
    config.max_token_length = 255;
    config.min_frequency = 4;
    EXPECT(&c, &config, 'b', 'c', 256);
    config.min_frequency = 3;
    EXPECT(&c, &config, 'b', 'c', 256, 'a', 256, 257);
}

/* 2,200 x ("a" x 10^6) has 2.2 x 10^9 pairs of a: with 32-bit counts "bc", 150 times, looks more frequent. */
static void test_large_counts(void) {
    corpus c;
    pybpe_train_config config = config_of(258);
    corpus_start(&c);
    corpus_word(&c, "aaaa", UINT64_C(3) << 32);
    corpus_word(&c, "bcbcbc", 50);
    EXPECT(&c, &config, 'a', 'a', 256, 256, 256, 257);
    corpus_word(&c, "x", UINT64_MAX); /* words without pairs do not matter */
    corpus_word(&c, "y", UINT64_MAX);
    EXPECT(&c, &config, 'a', 'a', 256, 256, 256, 257);

    corpus_word(&c, "overflow", UINT64_MAX / 4);
    pybpe_trainer *t = NULL;
    pybpe_error err;
    CHECK_EQ(pybpe_trainer_new(&t, &c.strings, c.counts, &config, NULL, &err), PYBPE_ERR_LIMIT);
    CHECK(t == NULL && err.offset == 4);
    corpus_start(&c);
    corpus_word(&c, "ab", UINT64_C(1) << 62); /* 2^63 symbols, and again */
    corpus_word(&c, "cd", UINT64_C(1) << 62);
    CHECK_EQ(pybpe_trainer_new(&t, &c.strings, c.counts, &config, NULL, &err), PYBPE_ERR_LIMIT);
    CHECK(t == NULL && err.offset == 1);
    c.counts[0] -= 1;
    c.counts[1] -= 1; /* equal counts: in the order of the words */
    EXPECT(&c, &config, 'c', 'd', 256, 'a', 'b', 257);
}

/* Base merges (a, b), (ab, c), (b, c) leave "abc" as one token, and "xbc" as x bc. Where an a ends up before a bc, the
   merge (a, bc) spells "abc" again: it must become the same token. */
static void test_existing_token(void) {
    const uint32_t base[] = {'b', 'c', 'a', 'b', 257, 'c'}; /* 256 bc, 257 ab, 258 abc */
    corpus c;
    pybpe_train_config config = config_of(260);
    config.base_merges = base;
    config.base_merges_count = 3;
    corpus_start(&c);
    corpus_word(&c, "abc", 10); /* bc first: a bc */
    corpus_word(&c, "abcd", 4);
    EXPECT(&c, &config, 'b', 'c', 256, 'a', 'b', 257, 257, 'c', 258, 'a', 256, 258, 258, 'd', 259);
}

/* The same when the index of tokens has grown. */
static void test_existing_token_of_many(void) {
    enum { BASE = 1000 };
    static uint32_t base[2 * BASE];
    corpus c;
    pybpe_trainer *t = NULL;
    const uint32_t *merges, first[] = {'b', 'c', 'a', 'b', 257, 'c'}; /* 258 is abc */
    pybpe_train_config config = config_of(256 + BASE);
    config.base_merges = base;
    config.base_merges_count = BASE;
    for (uint32_t i = 0; i < BASE; i++) {
        base[2 * i] = i < 3 ? first[2 * i] : 128 + i / 100;
        base[2 * i + 1] = i < 3 ? first[2 * i + 1] : i % 100;
    }
    base[2 * BASE - 2] = 'a';
    base[2 * BASE - 1] = 256;
    corpus_start(&c);
    CHECK_EQ(pybpe_trainer_new(&t, &c.strings, c.counts, &config, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_trainer_merges(t, &merges), BASE);
    CHECK(merges[3 * BASE - 4] == 256 + BASE - 2 && merges[3 * BASE - 1] == 258);
    CHECK_EQ(pybpe_trainer_tokens(t), 256 + BASE - 1);
    pybpe_trainer_free(t);
}

static void test_base(void) {
    corpus c;
    corpus_start(&c);
    corpus_word(&c, "the cat sat on the mat", 3);
    corpus_word(&c, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 2);
    corpus_word(&c, "that hat", 5);
    uint32_t whole[3 * MAX_MERGES], again[3 * MAX_MERGES], base[2 * MAX_MERGES];
    pybpe_train_config config = config_of(280);
    size_t count = run(&c, &config, 1000, whole, MAX_MERGES);
    CHECK_EQ(count, 24);
    for (size_t first = 0; first <= count; first += 4) {
        for (size_t i = 0; i < first; i++) {
            base[2 * i] = whole[3 * i];
            base[2 * i + 1] = whole[3 * i + 1];
        }
        config.base_merges = base;
        config.base_merges_count = first;
        CHECK_EQ(run(&c, &config, 1000, again, MAX_MERGES), count);
        CHECK(memcmp(whole, again, count * 3 * sizeof *whole) == 0);
    }
    for (int side = 0; side < 2; side++) { /* a token that does not exist */
        const uint32_t missing[] = {side == 0 ? 999 : 'a', side == 1 ? 999 : 'a'};
        config.base_merges = missing;
        config.base_merges_count = 1;
        CHECK_EQ(run(&c, &config, 1000, again, MAX_MERGES), SIZE_MAX);
    }
}

static void expect_refused(const pybpe_train_config *config, int code) {
    corpus c;
    pybpe_trainer *t = (pybpe_trainer *)1;
    pybpe_error err = {.offset = 7};
    corpus_start(&c);
    CHECK_EQ(pybpe_trainer_new(&t, &c.strings, c.counts, config, NULL, &err), code);
    CHECK(t == NULL && err.code == code && err.offset == 0 && err.msg[0] != '\0');
    CHECK_EQ(pybpe_trainer_new_parity(&t, NULL, 1, config, NULL, NULL), code);
}

static void test_refused(void) {
    pybpe_train_config config = config_of(255);
    expect_refused(&config, PYBPE_ERR_VALUE);
    config = config_of(UINT32_MAX / 2);
    expect_refused(&config, PYBPE_ERR_LIMIT);
    config = config_of(300);
    config.max_token_length = 0;
    expect_refused(&config, PYBPE_ERR_VALUE);
    config = config_of(300);
    config.tie_break = 7;
    expect_refused(&config, PYBPE_ERR_VALUE);
    config = config_of(300);
    config.rules = 4;
    expect_refused(&config, PYBPE_ERR_VALUE);
    config = config_of(300);
    config.base_merges_count = 1;
    expect_refused(&config, PYBPE_ERR_VALUE);
}

static void test_rules(void) {
    corpus c;
    uint32_t merges[3 * MAX_MERGES];
    corpus_start(&c);
    corpus_word(&c, "a b c d e", 9); /* five words */
    corpus_word(&c, "x: y", 5);
    pybpe_train_config config = config_of(300);
    size_t all = run(&c, &config, 1000, merges, MAX_MERGES);
    config.rules = PYBPE_RULE_SUPERWORDS;
    size_t allowed = run(&c, &config, 1000, merges, MAX_MERGES);
    CHECK_EQ(all, 8 + 3);
    CHECK_EQ(allowed, 7 + 2); /* not the fifth word, and not ":" with " " */
    config.base_merges = (const uint32_t[]){':', ' '};
    config.base_merges_count = 1;
    corpus_start(&c);
    corpus_word(&c, "a: b", 9); /* nothing is added to what the base has made */
    corpus_word(&c, "xy", 1);
    EXPECT(&c, &config, ':', ' ', 256, 'x', 'y', 257);
    config.base_merges_count = 0;
    corpus_start(&c);
    corpus_word(&c, "\xE4\xB8\xAD\xE4\xB8\xAD", 9); /* twice the same character */
    corpus_word(&c, "\xFF\x80", 9);                 /* not UTF-8 */
    config.rules = PYBPE_RULE_WHOLE_CHARACTERS;
    EXPECT(&c, &config, 0xE4, 0xB8, 256, 256, 0xAD, 257, 257, 257, 258);
}

/* A character of four bytes, bytes that continue one, and characters next to bytes that are not UTF-8. */
static void test_rules_for_parts(void) {
    corpus c;
    pybpe_train_config config = config_of(300);
    config.rules = PYBPE_RULE_WHOLE_CHARACTERS;
    corpus_start(&c);
    corpus_word(&c, "\xF0\x9F\x98\x80", 1);
    EXPECT(&c, &config, 0xF0, 0x9F, 256, 256, 0x98, 257, 257, 0x80, 258);
    corpus_start(&c);
    corpus_word(&c, "\x80\x80\x80\x80\x80", 1);
    EXPECT(&c, &config, 0x80, 0x80, 256, 256, 0x80, 257); /* four of them are part of no character */
    corpus_start(&c);
    corpus_word(&c,
                "a\xFF"
                "a",
                1);
    EXPECT(&c, &config, 0);
}

/* The base merge (:, space) makes a token that no other may be merged with; "x:" may precede a word without a space. */
static void test_rules_for_colons(void) {
    const uint32_t base[] = {':', ' '};
    corpus c;
    pybpe_train_config config = config_of(300);
    config.rules = PYBPE_RULE_SUPERWORDS;
    corpus_start(&c);
    corpus_word(&c, "x:y", 1);
    EXPECT(&c, &config, 'x', ':', 256, 256, 'y', 257);
    config.base_merges = base;
    config.base_merges_count = 1;
    corpus_start(&c);
    corpus_word(&c, "x: y", 1);
    EXPECT(&c, &config, ':', ' ', 256);
}

/* The development text of language a costs 4 tokens, then 2; that of b costs 3. */
static void test_parity(void) {
    static corpus words[2], measured[2];
    for (int i = 0; i < 2; i++) {
        corpus_start(&words[i]);
        corpus_start(&measured[i]);
    }
    corpus_word(&words[0], "ab", 5);
    corpus_word(&words[0], "ax", 9);
    corpus_word(&words[1], "cd", 1);
    corpus_word(&measured[0], "ax", 2);
    corpus_word(&measured[1], "cd", 1);
    corpus_word(&measured[1], "e", 1);
    pybpe_language languages[2];
    for (int i = 0; i < 2; i++) {
        languages[i] = (pybpe_language){words[i].strings, words[i].counts, measured[i].strings, measured[i].counts, 1};
    }
    const uint32_t want[] = {'a', 'x', 256, 'c', 'd', 257, 'a', 'b', 258};
    pybpe_train_config config = config_of(300);
    pybpe_trainer *t = NULL;
    const uint32_t *merges;
    int done = 0;
    CHECK_EQ(pybpe_trainer_new_parity(&t, languages, 2, &config, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_trainer_step(t, SIZE_MAX, &done, NULL), PYBPE_OK);
    CHECK(done && pybpe_trainer_merges(t, &merges) == 3 && memcmp(merges, want, sizeof want) == 0);
    pybpe_trainer_free(t);
    pybpe_error err;
    CHECK_EQ(pybpe_trainer_new_parity(&t, languages, 0, &config, NULL, &err), PYBPE_ERR_VALUE);
    languages[1].size = 0;
    CHECK_EQ(pybpe_trainer_new_parity(&t, languages, 2, &config, NULL, &err), PYBPE_ERR_LIMIT);
    CHECK(t == NULL && err.offset == 1);
    languages[1].size = 1;
    corpus *const texts[] = {&words[0], &measured[1]};
    for (int i = 0; i < 2; i++) {
        const uint64_t end = texts[i]->offsets[1];
        texts[i]->offsets[1] = 100; /* after the next word */
        CHECK_EQ(pybpe_trainer_new_parity(&t, languages, 2, &config, NULL, &err), PYBPE_ERR_VALUE);
        CHECK(t == NULL && err.offset == 1);
        texts[i]->offsets[1] = end;
    }
}

/* Trains on two languages whose development texts have the size 1. */
static void expect_parity(const corpus words[2], const corpus measured[2], const uint32_t *want, size_t count) {
    pybpe_language languages[2];
    for (int i = 0; i < 2; i++) {
        languages[i] = (pybpe_language){words[i].strings, words[i].counts, measured[i].strings, measured[i].counts, 1};
    }
    const pybpe_train_config config = config_of(300);
    pybpe_trainer *t = NULL;
    const uint32_t *merges;
    CHECK_EQ(pybpe_trainer_new_parity(&t, languages, 2, &config, NULL, NULL), PYBPE_OK);
    for (int done = 0; !done;) {
        CHECK_EQ(pybpe_trainer_step(t, 1, &done, NULL), PYBPE_OK);
    }
    CHECK_EQ(pybpe_trainer_merges(t, &merges), count);
    CHECK(memcmp(merges, want, 3 * count * sizeof *want) == 0);
    CHECK_EQ(pybpe_trainer_tokens(t), 256 + count);
    pybpe_trainer_free(t);
}

/* Language a is the worst until its text is "ab" and "cd". Its second pair is so much rarer than the first that only a
   later scan keeps it; meanwhile the heap of language b still has a pair that occurs `often`, or is empty. */
static void check_parity_of_rare_pairs(uint64_t often) {
    static corpus words[2], measured[2];
    const uint32_t want[] = {'a', 'b', 256, 'c', 'd', 257, 'e', 'f', 258, 'g', 'h', 259};
    for (int i = 0; i < 2; i++) {
        corpus_start(&words[i]);
        corpus_start(&measured[i]);
    }
    corpus_word(&words[0], "ab", 1000000);
    corpus_word(&words[0], "cd", 10);
    corpus_word(&words[1], "ef", 1000000);
    corpus_word(&words[1], "gh", often);
    corpus_word(&measured[0], "ab", 1);
    corpus_word(&measured[0], "cd", 9);
    corpus_word(&measured[1], "ef", 1);
    expect_parity(words, measured, want, often > 0 ? 4 : 3);
}

static void test_parity_thresholds(void) {
    check_parity_of_rare_pairs(0);
    check_parity_of_rare_pairs(10);
    check_parity_of_rare_pairs(1000);
    check_parity_of_rare_pairs(900000);
}

/* After all pairs of b have become tokens, its heap is empty while that of a is refilled. */
static void test_parity_empty_heap(void) {
    static corpus words[2], measured[2];
    const uint32_t want[] = {'e', 'f', 256, 'a', 'b', 257, 'c', 'd', 258};
    for (int i = 0; i < 2; i++) {
        corpus_start(&words[i]);
        corpus_start(&measured[i]);
    }
    corpus_word(&words[0], "ab", 1000000);
    corpus_word(&words[0], "cd", 10);
    corpus_word(&words[1], "ef", 1000000);
    corpus_word(&measured[0], "ab", 1);
    corpus_word(&measured[0], "cd", 9);
    corpus_word(&measured[1], "ef", 15); /* 30 tokens, then 15: less than the 20, then 19, of a */
    expect_parity(words, measured, want, 3);
}

/* So many symbols that the filter of pairs has its largest size. */
static void test_parity_of_a_long_word(void) {
    enum { LETTERS = 1 << 20 };
    uint8_t *word = malloc(LETTERS);
    memset(word, 'a', LETTERS);
    const uint64_t offsets[] = {0, LETTERS}, count = 1;
    const pybpe_strings words = {word, offsets, 1}, measured = {word, (const uint64_t[]){0, 8}, 1};
    const pybpe_language language = {words, &count, measured, &count, 1};
    const pybpe_train_config config = config_of(300);
    pybpe_trainer *t = NULL;
    const uint32_t *merges;
    int done = 0;
    CHECK_EQ(pybpe_trainer_new_parity(&t, &language, 1, &config, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_trainer_step(t, SIZE_MAX, &done, NULL), PYBPE_OK);
    CHECK(done && pybpe_trainer_merges(t, &merges) == 7); /* tokens of up to 128 letters; 256 are too many */
    for (uint32_t i = 0; i < 7; i++) {
        const uint32_t part = i == 0 ? 'a' : 255 + i;
        CHECK(merges[3 * i] == part && merges[3 * i + 1] == part && merges[3 * i + 2] == 256 + i);
    }
    pybpe_trainer_free(t);
    free(word);
}

/* The thresholds of scans depend on the size of the vocabulary, the merges do not. "cd" is much rarer than "ab", and
   thousands of pairs are much rarer than "cd". */
static void test_thresholds(void) {
    static corpus c;
    static uint32_t few[3 * 1000], many[3 * 1000];
    corpus_start(&c);
    corpus_word(&c, "ab", 1000000);
    corpus_word(&c, "cd", 30000);
    for (int i = 0; i < 60; i++) {
        uint8_t word[120];
        for (size_t k = 0; k < sizeof word; k++) {
            word[k] = (uint8_t)random_below(256);
        }
        corpus_add(&c, word, sizeof word, 5);
    }
    pybpe_train_config config = config_of(300);
    CHECK_EQ(run(&c, &config, 1000, few, 1000), 44);
    config.vocab_size = 700;
    CHECK_EQ(run(&c, &config, 1000, many, 1000), 444);
    CHECK(memcmp(few, many, 3 * 44 * sizeof *few) == 0);
    CHECK(few[0] == 'a' && few[1] == 'b' && few[3] == 'c' && few[4] == 'd');
    config.vocab_size = 1200; /* scans with more tokens than a table of all pairs may have */
    CHECK_EQ(run(&c, &config, 1000, many, 1000), 944);
    CHECK(memcmp(few, many, 3 * 44 * sizeof *few) == 0);
}

/* Tokens that have their first eight bytes in common: the greater one is merged first. */
static void test_ties_of_long_tokens(void) {
    const uint32_t base[] = {'a', 'b', 256, 'c', 257, 'd', 258, 'e', 259, 'f', 260, 'g', 261, 'h', 262, 'i', 262, 'k'};
    corpus c;
    pybpe_train_config config = config_of(300);
    config.base_merges = base;
    config.base_merges_count = 9;
    corpus_start(&c);
    corpus_word(&c, "abcdefghi1", 3);
    corpus_word(&c, "abcdefghk1", 3);
    EXPECT(&c, &config, 'a', 'b', 256, 256, 'c', 257, 257, 'd', 258, 258, 'e', 259, 259, 'f', 260, 260, 'g', 261, 261,
           'h', 262, 262, 'i', 263, 262, 'k', 264, 264, '1', 265, 263, '1', 266);
}

/* A filter of pairs has fewer cells than merges are wanted. */
static void test_more_merges_than_cells(void) {
    corpus c;
    corpus_start(&c);
    corpus_word(&c, "ab", 1000000);
    corpus_word(&c, "cd", 10);
    corpus_word(&c, "ef", 1);
    pybpe_train_config config = config_of(100000);
    EXPECT(&c, &config, 'a', 'b', 256, 'c', 'd', 257, 'e', 'f', 258);
}

/* The second scan of a text that is much longer than the number of pairs follows a merge that spells a token again. */
static void test_existing_token_in_a_long_text(void) {
    const uint32_t base[] = {'b', 'c', 'a', 'b', 257, 'c'}; /* as in test_existing_token */
    enum { LETTERS = 20000 };
    static uint8_t bytes[7 + LETTERS];
    const uint64_t offsets[] = {0, 3, 7, sizeof bytes}, counts[] = {100000, 40000, 1};
    const pybpe_strings words = {bytes, offsets, 3};
    const uint32_t want[] = {'b', 'c', 256, 'a', 'b', 257, 257, 'c', 258, 'a', 256, 258, 258, 'd', 259};
    memcpy(bytes, "abcabcd", 7);
    memset(bytes + 7, 'x', LETTERS);
    pybpe_train_config config = config_of(260);
    config.base_merges = base;
    config.base_merges_count = 3;
    pybpe_trainer *t = NULL;
    const uint32_t *merges;
    int done = 0;
    CHECK_EQ(pybpe_trainer_new(&t, &words, counts, &config, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_trainer_step(t, SIZE_MAX, &done, NULL), PYBPE_OK);
    CHECK(done && pybpe_trainer_merges(t, &merges) == 5 && memcmp(merges, want, sizeof want) == 0);
    pybpe_trainer_free(t);
}

static int parity_code(const corpus *words, const corpus *measured, uint64_t size, size_t count, uint64_t *offset) {
    const pybpe_language language = {words->strings, words->counts, measured->strings, measured->counts, size};
    const pybpe_language languages[] = {language, language};
    const pybpe_train_config config = config_of(256);
    pybpe_trainer *t = (pybpe_trainer *)1;
    pybpe_error err = {.offset = 99};
    int code = pybpe_trainer_new_parity(&t, languages, count, &config, NULL, &err);
    CHECK(code == PYBPE_OK ? t != NULL : t == NULL && err.code == code && err.msg[0] != '\0');
    *offset = err.offset;
    pybpe_trainer_free(t);
    return code;
}

/* The largest numbers that the costs and the weights of pairs can have. */
static void test_parity_limits(void) {
    static corpus words, measured;
    const uint64_t half = (UINT64_C(1) << 42) - 1; /* "ab" has two bytes */
    uint64_t offset;
    corpus_start(&words);
    corpus_start(&measured);
    corpus_word(&words, "ab", half);
    corpus_word(&measured, "abc", UINT32_MAX / 3);
    CHECK_EQ(parity_code(&words, &measured, 1, 1, &offset), PYBPE_OK);
    CHECK_EQ(parity_code(&words, &measured, UINT32_MAX, 1, &offset), PYBPE_OK);
    CHECK_EQ(parity_code(&words, &measured, UINT64_C(1) << 32, 1, &offset), PYBPE_ERR_LIMIT);
    CHECK_EQ(offset, 0);
    CHECK_EQ(parity_code(&words, &measured, 1, 2, &offset), PYBPE_ERR_LIMIT); /* twice as much */
    CHECK_EQ(offset, 1);
    words.counts[0] = half + 1;
    CHECK_EQ(parity_code(&words, &measured, 1, 1, &offset), PYBPE_ERR_LIMIT);
    words.counts[0] = half / 2;
    CHECK_EQ(parity_code(&words, &measured, 1, 2, &offset), PYBPE_OK);
    corpus_word(&measured, "d", 1); /* one token more */
    CHECK_EQ(parity_code(&words, &measured, 1, 1, &offset), PYBPE_ERR_LIMIT);
    CHECK_EQ(parity_code(&words, &measured, 1, UINT32_MAX / 2, &offset), PYBPE_ERR_VALUE);
    CHECK_EQ(parity_code(&words, &measured, 1, SIZE_MAX, &offset), PYBPE_ERR_VALUE);
    CHECK_EQ(offset, 0);
    /* Sums of 2^64 do not wrap, of words and of single bytes. */
    static corpus large;
    corpus_start(&large);
    corpus_word(&large, "d", UINT64_C(1) << 63);
    corpus_word(&large, "e", UINT64_C(1) << 63);
    CHECK_EQ(parity_code(&words, &large, 1, 1, &offset), PYBPE_ERR_LIMIT);
}

/* ---------------------------------------------------------------------------------------------------
Memory
*/

/* Trains, for two languages or for none, and frees everything. */
static int train_once(const corpus *c, const pybpe_train_config *config, bool parity, const pybpe_allocator *mem,
                      pybpe_error *err) {
    const pybpe_language language = {c->strings, c->counts, c->strings, c->counts, 1};
    const pybpe_language languages[] = {language, language};
    pybpe_trainer *t = (pybpe_trainer *)1;
    int code = parity ? pybpe_trainer_new_parity(&t, languages, 2, config, mem, err)
                      : pybpe_trainer_new(&t, &c->strings, c->counts, config, mem, err);
    CHECK((code == PYBPE_OK) == (t != NULL));
    for (int done = 0; code == PYBPE_OK && !done;) {
        code = pybpe_trainer_step(t, 10, &done, err);
    }
    pybpe_trainer_free(t);
    return code;
}

/* Fails each allocation in turn, and no other. There are so many base merges that the tables of tokens grow. */
static void test_failing_memory(void) {
    enum { BASE = 800 };
    static corpus c;
    static uint32_t base[2 * BASE];
    corpus_start(&c);
    corpus_word(&c, "abcbcaabcab", 7);
    corpus_word(&c, "enough different letters for several merges, 0123456789", 3);
    base[0] = 'e';
    base[1] = 'n';
    for (uint32_t i = 1; i < BASE; i++) {
        base[2 * i] = 128 + i / 100;
        base[2 * i + 1] = i % 100;
    }
    pybpe_train_config config = config_of(256 + BASE + 33);
    config.base_merges = base;
    config.base_merges_count = BASE;
    for (int parity = 0; parity < 2; parity++) {
        int code = PYBPE_ERR_MEMORY;
        long grant = 0;
        for (; grant < 2000 && code != PYBPE_OK; grant++) {
            failing_memory m = {.left = grant};
            const pybpe_allocator mem = {failing_once, &m};
            pybpe_error err = {0};
            code = train_once(&c, &config, parity != 0, &mem, &err);
            CHECK(code == PYBPE_OK || (code == PYBPE_ERR_MEMORY && err.code == code && err.msg[0] != '\0'));
            CHECK_EQ(m.blocks, 0);
            CHECK((code == PYBPE_OK) == (m.left >= 0)); /* no failure is forgotten */
        }
        CHECK(code == PYBPE_OK && grant > 20);
    }
}

/* The places of a pair are freed when it is merged. */
static void test_memory_of_places(void) {
    enum { PAIRS = 20 };
    long blocks[PAIRS + 1];
    corpus c;
    corpus_start(&c);
    for (uint8_t i = 0; i < PAIRS; i++) {
        corpus_add(&c, (uint8_t[]){(uint8_t)('A' + i), (uint8_t)('a' + i)}, 2, 9);
    }
    for (uint32_t merges = 1; merges <= PAIRS; merges++) {
        failing_memory m = {.left = -1};
        const pybpe_allocator mem = {failing_resize, &m};
        const pybpe_train_config config = config_of(256 + merges);
        pybpe_trainer *t = NULL;
        int done = 0;
        CHECK_EQ(pybpe_trainer_new(&t, &c.strings, c.counts, &config, &mem, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_trainer_step(t, SIZE_MAX, &done, NULL), PYBPE_OK);
        blocks[merges] = m.blocks;
        CHECK(done && (merges == 1 || blocks[merges] == blocks[merges - 1] - 1));
        pybpe_trainer_free(t);
        CHECK_EQ(m.blocks, 0);
    }
}

/* Of equally frequent pairs, Hugging Face merges the one with the lowest ids first. The first 256 ids are
   GPT-2's, and include bytes that never occur in UTF-8. */
static void test_huggingface_bytes(void) {
    static const uint32_t known[][2] = {{'!', 0}, {'~', 93},   {0xA1, 94}, {0xAC, 105}, {0xAE, 106}, {0xFF, 187},
                                        {0, 188}, {'\n', 198}, {' ', 220}, {0x7F, 221}, {0xA0, 254}, {0xAD, 255}};
    uint8_t bytes[512];
    uint64_t offsets[257], counts[256];
    for (unsigned byte = 0; byte < 256; byte++) {
        bytes[2 * byte] = bytes[2 * byte + 1] = (uint8_t)byte;
        offsets[byte] = 2 * byte;
        counts[byte] = 7;
    }
    offsets[256] = sizeof bytes;
    const pybpe_strings words = {bytes, offsets, 256};
    pybpe_train_config config = config_of(512);
    config.tie_break = PYBPE_TIE_HUGGINGFACE;
    pybpe_trainer *t = NULL;
    const uint32_t *merges;
    int done = 0;
    CHECK_EQ(pybpe_trainer_new(&t, &words, counts, &config, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_trainer_step(t, SIZE_MAX, &done, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_trainer_merges(t, &merges), 256);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        CHECK_EQ(merges[3 * known[i][1]], known[i][0]);
    }
    pybpe_trainer_free(t);
}

/* ---------------------------------------------------------------------------------------------------
Vocabularies
*/

/* "ab" and "abc", trained with bytes and one tie: ids 256 and 257 of the trainer. */
static pybpe_trainer *trainer_of_two(int tie_break, const pybpe_allocator *mem) {
    static const uint64_t offsets[] = {0, 3}, counts[] = {2};
    const pybpe_strings words = {(const uint8_t *)"abc", offsets, 1};
    const pybpe_train_config config = {.vocab_size = 258, .max_token_length = 9, .tie_break = tie_break};
    pybpe_trainer *t = NULL;
    CHECK_EQ(pybpe_trainer_new(&t, &words, counts, &config, mem, NULL), PYBPE_OK);
    for (int done = 0; !done;) {
        CHECK_EQ(pybpe_trainer_step(t, 1000, &done, NULL), PYBPE_OK);
    }
    return t;
}

static pybpe_vocab_layout two_specials(int special_ids) {
    static const uint64_t offsets[] = {0, 3, 7};
    return (pybpe_vocab_layout){.specials = {(const uint8_t *)"<a><bb>", offsets, 2},
                                .special_ids = special_ids,
                                .eot = 1,
                                .pattern = PYBPE_PATTERN_CL100K,
                                .normalizer = PYBPE_NORMALIZER_NFC};
}

static void expect_token(const pybpe_vocab_spec *spec, size_t id, const char *bytes, size_t n) {
    const uint64_t *at = &spec->tokens.offsets[id];
    CHECK(at[1] - at[0] == n && memcmp(spec->tokens.bytes + at[0], bytes, n) == 0);
}

static void test_vocab_places(void) {
    static const uint32_t starts[] = {0, 256, 258}; /* of the specials */
    for (int place = 0; place < 3; place++) {
        for (int tie = 0; tie < 2; tie++) {
            pybpe_trainer *t = trainer_of_two(tie, NULL);
            pybpe_vocab_layout layout = two_specials(place);
            pybpe_vocab *v = NULL;
            CHECK_EQ(pybpe_trainer_vocab(&v, t, &layout, NULL, NULL), PYBPE_OK);
            pybpe_vocab_spec spec = pybpe_vocab_get_spec(v);
            uint32_t byte = place == 0 ? 2 : 0, merged = place == 2 ? 256 : 258;
            CHECK(spec.tokens.count == 260 && spec.merges_count == 2 && spec.specials_count == 2);
            CHECK(spec.specials[0] == starts[place] && spec.specials[1] == starts[place] + 1);
            CHECK_EQ(spec.eot_id, starts[place] + 1);
            CHECK(spec.pattern == PYBPE_PATTERN_CL100K && spec.normalizer == PYBPE_NORMALIZER_NFC);
            expect_token(&spec, starts[place], "<a>", 3);
            expect_token(&spec, starts[place] + 1, "<bb>", 4);
            expect_token(&spec, byte, tie ? "!" : "\0", 1); /* the first byte in Hugging Face's order is "!" */
            expect_token(&spec, byte + (tie ? 'a' - '!' : 'a'), "a", 1);
            expect_token(&spec, byte + (tie ? 188 : 173), tie ? "\0" : "\xAD", 1);
            expect_token(&spec, merged, tie ? "ab" : "bc", 2);
            expect_token(&spec, merged + 1, "abc", 3);
            CHECK_EQ(spec.merges[tie ? 2 : 3], merged);
            pybpe_vocab_free(v);
            pybpe_trainer_free(t);
        }
    }
}

static void test_vocab_refused(void) {
    pybpe_trainer *t = trainer_of_two(0, NULL);
    static const uint64_t empty[] = {0, 3, 3}, empty_first[] = {0, 0, 3}, descending[] = {0, 3, 2}, twice[] = {0, 1, 2};
    static const uint64_t offsets_of_errors[] = {1, 1, 1, 0, 0, 0, 0};
    pybpe_vocab_layout wrong[7];
    for (size_t i = 0; i < 7; i++) {
        wrong[i] = two_specials(0);
    }
    wrong[0].specials.offsets = empty;
    wrong[1].specials.offsets = descending;
    wrong[2].specials = (pybpe_strings){(const uint8_t *)"xx", twice, 2};
    wrong[3].eot = 2;
    wrong[4].special_ids = 3;
    wrong[5].pattern = 77;
    wrong[6].specials.offsets = empty_first;
    for (size_t i = 0; i < 7; i++) {
        pybpe_vocab *v = (pybpe_vocab *)1;
        pybpe_error err;
        CHECK_EQ(pybpe_trainer_vocab(&v, t, &wrong[i], NULL, &err), PYBPE_ERR_VALUE);
        CHECK(v == NULL && err.msg[0] != '\0');
        CHECK_EQ(err.offset, offsets_of_errors[i]);
        CHECK((strstr(err.msg, "is empty") != NULL) == (i == 0 || i == 6));
    }
    const pybpe_vocab_layout bare = {.eot = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
    pybpe_vocab *v = NULL;
    CHECK_EQ(pybpe_trainer_vocab(&v, t, &bare, NULL, NULL), PYBPE_OK);
    CHECK(pybpe_vocab_get_spec(v).tokens.count == 258 && pybpe_vocab_get_spec(v).eot_id == PYBPE_NO_ID);
    pybpe_vocab_free(v);
    pybpe_trainer_free(t);
}

static void test_vocab_without_memory(void) {
    int passed = 0, failures = 0;
    for (long grant = 0; grant < 40; grant++) {
        failing_memory m = {.left = -1};
        const pybpe_allocator mem = {failing_resize, &m};
        pybpe_trainer *t = trainer_of_two(0, &mem);
        pybpe_vocab_layout layout = two_specials(1);
        pybpe_vocab *v = NULL;
        m.left = grant;
        int code = pybpe_trainer_vocab(&v, t, &layout, &mem, NULL);
        passed += code == PYBPE_OK;
        failures += code != PYBPE_OK && (code != PYBPE_ERR_MEMORY || v != NULL);
        pybpe_vocab_free(v);
        pybpe_trainer_free(t);
        failures += m.blocks != 0;
    }
    CHECK_EQ(failures, 0);
    CHECK(passed > 0 && passed < 40);
}

int main(void) {
    test_huggingface_bytes();
    test_worked();
    test_runs();
    test_limits();
    test_large_counts();
    test_existing_token();
    test_existing_token_of_many();
    test_base();
    test_refused();
    test_rules();
    test_rules_for_parts();
    test_rules_for_colons();
    test_parity();
    test_parity_thresholds();
    test_parity_empty_heap();
    test_parity_of_a_long_word();
    test_thresholds();
    test_ties_of_long_tokens();
    test_more_merges_than_cells();
    test_existing_token_in_a_long_text();
    test_parity_limits();
    test_failing_memory();
    test_memory_of_places();
    test_vocab_places();
    test_vocab_refused();
    test_vocab_without_memory();
    return check_report("train");
}
