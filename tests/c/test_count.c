/*
Counting words: by hand, against a naive table, growth, merging, overflow, failing memory.
*/
#include "check.h"
#include "count/count_table.h"
#include "hash/hash.h"
#include "pretok/pretok.h"
#include "random_state.h"
#include "small_vocab.h"

/* The counts of a counter, copied out. */
typedef struct table {
    uint8_t *bytes;
    uint64_t *offsets;
    uint64_t *counts;
    pybpe_counter_stats stats;
} table;

/* What a counter has allocated: its slots, and the blocks of its arena. */
static uint64_t memory_of(const pybpe_counter *c) {
    uint64_t memory = (c->mask + 1) * sizeof(count_slot);
    for (const count_block *block = c->blocks; block != NULL; block = block->next) {
        memory += sizeof *block + block->cap;
    }
    return memory;
}

static table table_of(const pybpe_counter *c) {
    table t = {.stats = pybpe_counter_get_stats(c)};
    CHECK_EQ(t.stats.memory, memory_of(c));
    t.bytes = malloc((size_t)t.stats.bytes + 1);
    t.offsets = malloc(((size_t)t.stats.words + 1) * sizeof *t.offsets);
    t.counts = malloc(((size_t)t.stats.words + 1) * sizeof *t.counts);
    pybpe_counter_export(c, t.bytes, t.offsets, t.counts);
    CHECK_EQ(t.offsets[t.stats.words], t.stats.bytes);
    return t;
}

static void table_free(table *t) {
    free(t->bytes);
    free(t->offsets);
    free(t->counts);
}

static uint64_t table_find(const table *t, const void *word, size_t n) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < t->stats.words; i++) {
        if (t->offsets[i + 1] - t->offsets[i] == n && memcmp(t->bytes + t->offsets[i], word, n) == 0) {
            CHECK_EQ(count, 0); /* each word occurs there once */
            count = t->counts[i];
        }
    }
    return count;
}

static pybpe_counter *counter_of(const pybpe_pretok *p, const pybpe_specials *s) {
    pybpe_counter *c = NULL;
    CHECK_EQ(pybpe_counter_new(&c, p, s, NULL, NULL), PYBPE_OK);
    return c;
}

static void add_text(pybpe_counter *c, const char *text) {
    size_t n = strlen(text);
    uint8_t *copy = malloc(n + (n == 0)); /* of the exact size, so that sanitizers see reads beyond it */
    memcpy(copy, text, n);
    CHECK_EQ(pybpe_counter_add(c, copy, n, NULL), PYBPE_OK);
    free(copy);
}

static void test_by_hand(void) {
    pybpe_pretok *p = NULL;
    pybpe_specials *s = NULL;
    const uint64_t offsets[] = {0, 5};
    const uint32_t id = 0;
    const pybpe_strings strings = {(const uint8_t *)"<|x|>", offsets, 1};
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_specials_new(&s, &strings, &id, NULL, NULL, NULL), PYBPE_OK);
    pybpe_counter *c = counter_of(p, s);
    const uint64_t nothing[] = {0, 0, 0};
    const pybpe_strings empty = {NULL, nothing, 2};
    CHECK_EQ(pybpe_counter_add(c, NULL, 0, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add_words(c, &empty, NULL, NULL), PYBPE_OK);
    add_text(c, "the the<|x|>the fifteen_letters sixteen--letters");
    add_text(c, "<|x|><|x|>the<|x|>the<|x|> the");
    table t = table_of(c);
    CHECK_EQ(table_find(&t, "the", 3), 4);
    CHECK_EQ(table_find(&t, " the", 4), 2);
    CHECK_EQ(table_find(&t, " fifteen", 8), 1);
    CHECK_EQ(table_find(&t, "<|", 2), 0);
    CHECK_EQ(t.stats.total, 12);
    table_free(&t);
    pybpe_counter_free(c);

    c = counter_of(NULL, NULL); /* without a pattern words only, or texts without words */
    pybpe_error err;
    CHECK_EQ(pybpe_counter_add(c, (const uint8_t *)"x", 1, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_counter_add_texts(c, &empty, NULL, NULL), PYBPE_OK);
    pybpe_counter_free(c);
    pybpe_specials_free(s);
    pybpe_pretok_free(p);
}

static void test_counted_texts(void) {
    pybpe_pretok *p;
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    pybpe_counter *c = counter_of(p, NULL);
    const uint64_t offsets[] = {0, 5, 5, 10, 12}, counts[] = {3, 7, 2, 0};
    const pybpe_strings texts = {(const uint8_t *)"a b aa b bx ", offsets, 4};
    CHECK_EQ(pybpe_counter_add_texts(c, &texts, counts, NULL), PYBPE_OK);
    add_text(c, "a"); /* counts once again */
    table t = table_of(c);
    CHECK_EQ(table_find(&t, "a", 1), 3 + 2 + 1);
    CHECK_EQ(table_find(&t, " a", 2), 3);
    CHECK_EQ(table_find(&t, " b", 2), 3 + 2 + 2);
    CHECK_EQ(t.stats.words, 3); /* "x" counts zero times, so it is not a word */
    CHECK_EQ(t.stats.total, 3 * 3 + 2 * 3 + 1);
    table_free(&t);
    const uint64_t large[] = {UINT64_MAX, 1, 1, 1};
    pybpe_error err;
    CHECK_EQ(pybpe_counter_add_texts(c, &texts, large, &err), PYBPE_ERR_LIMIT);
    pybpe_counter_free(c);
    pybpe_pretok_free(p);
}

/* Both hold the same words with the same counts: subtracts each count from that of the other. */
static void expect_equal(const pybpe_counter *x, const pybpe_counter *y) {
    const pybpe_counter_stats a = pybpe_counter_get_stats(x), b = pybpe_counter_get_stats(y);
    CHECK(a.words == b.words && a.bytes == b.bytes && a.total == b.total);
    table t = table_of(x), u = table_of(y);
    const pybpe_strings words = {u.bytes, u.offsets, (size_t)u.stats.words};
    pybpe_counter *difference = counter_of(NULL, NULL);
    for (uint64_t i = 0; i < t.stats.words; i++) {
        t.counts[i] = UINT64_MAX - t.counts[i];
    }
    const pybpe_strings others = {t.bytes, t.offsets, (size_t)t.stats.words};
    CHECK_EQ(pybpe_counter_add_words(difference, &others, t.counts, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add_words(difference, &words, u.counts, NULL), PYBPE_OK);
    table d = table_of(difference);
    CHECK_EQ(d.stats.words, t.stats.words);
    for (uint64_t i = 0; i < d.stats.words; i++) {
        if (d.counts[i] != UINT64_MAX) {
            CHECK_EQ(d.counts[i], UINT64_MAX);
            break;
        }
    }
    table_free(&t);
    table_free(&u);
    table_free(&d);
    pybpe_counter_free(difference);
}

enum { LENGTHS = 40, KINDS = 8 };

/* Word number `kind` of a length: words of all lengths around 15, where the two kinds of slots meet. */
static void make_word(uint8_t *word, size_t length, uint32_t kind) {
    for (size_t i = 0; i < length; i++) {
        word[i] = (uint8_t)(i + 1 == length ? kind : 0); /* zeros: only the length distinguishes them */
    }
}

/* Random words with random counts, against an array of sums; then the same, split and merged. */
static void test_random(void) {
    static uint64_t want[LENGTHS][KINDS];
    pybpe_counter *whole = counter_of(NULL, NULL), *parts[2] = {counter_of(NULL, NULL), counter_of(NULL, NULL)};
    for (int i = 0; i < 20000; i++) {
        uint8_t word[LENGTHS];
        size_t length = 1 + random_below(LENGTHS - 1);
        uint32_t kind = random_below(KINDS);
        uint64_t count = random_below(1000);
        make_word(word, length, kind);
        want[length][kind] += count;
        const uint64_t offsets[] = {0, length};
        const pybpe_strings strings = {word, offsets, 1};
        CHECK_EQ(pybpe_counter_add_words(whole, &strings, &count, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_counter_add_words(parts[i % 2], &strings, &count, NULL), PYBPE_OK);
    }
    CHECK_EQ(pybpe_counter_merge(parts[0], parts[1], NULL), PYBPE_OK);
    const pybpe_counter *counters[] = {whole, parts[0]};
    for (size_t k = 0; k < 2; k++) {
        table t = table_of(counters[k]);
        int wrong = 0;
        for (size_t length = 1; length < LENGTHS; length++) {
            for (uint32_t kind = 0; kind < KINDS; kind++) {
                uint8_t word[LENGTHS];
                make_word(word, length, kind);
                wrong += table_find(&t, word, length) != want[length][kind];
            }
        }
        CHECK_EQ(wrong, 0);
        table_free(&t);
    }
    pybpe_counter_free(whole);
    pybpe_counter_free(parts[0]);
    pybpe_counter_free(parts[1]);
}

/* Texts counted separately and then moved into one table give the counts of the whole, with equal seeds and with
   different ones. The emptied table can count again. */
static void test_absorb(void) {
    enum { TEXT = 200000, PARTS = 4 };
    static char text[TEXT];
    pybpe_pretok *patterns[2] = {NULL, NULL};
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(pybpe_pretok_new(&patterns[i], PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    }
    for (size_t i = 0; i < TEXT; i++) {
        text[i] = (char)(random_below(12) == 0 ? ' ' : 'a' + (int)random_below(2));
    }
    for (size_t other = 0; other < 2; other++) {
        pybpe_counter *whole = counter_of(patterns[0], NULL), *sum = counter_of(patterns[0], NULL);
        pybpe_counter *part = counter_of(patterns[other], NULL);
        for (size_t i = 0; i < PARTS; i++) {
            const uint8_t *start = (const uint8_t *)text + i * (TEXT / PARTS);
            CHECK_EQ(pybpe_counter_add(whole, start, TEXT / PARTS, NULL), PYBPE_OK);
            CHECK_EQ(pybpe_counter_add(part, start, TEXT / PARTS, NULL), PYBPE_OK);
            CHECK_EQ(pybpe_counter_absorb(sum, part, NULL), PYBPE_OK);
            CHECK_EQ(pybpe_counter_get_stats(part).words, 0);
            CHECK_EQ(pybpe_counter_get_stats(part).total, 0);
        }
        expect_equal(whole, sum);
        pybpe_counter_free(whole);
        pybpe_counter_free(sum);
        pybpe_counter_free(part);
    }
    pybpe_pretok_free(patterns[0]);
    pybpe_pretok_free(patterns[1]);
}

/* Tables with different seeds and no words in common, each as full as the one that it is added to. */
static void test_merging_strangers(void) {
    enum { WORDS = 8000, COUNTERS = 4 };
    pybpe_counter *all = NULL;
    CHECK_EQ(pybpe_counter_new(&all, NULL, NULL, NULL, NULL), PYBPE_OK);
    for (size_t i = 0; i < COUNTERS; i++) {
        pybpe_counter *c = NULL;
        CHECK_EQ(pybpe_counter_new(&c, NULL, NULL, NULL, NULL), PYBPE_OK);
        for (size_t k = i * WORDS; k < (i + 1) * WORDS; k++) {
            char word[16];
            const uint64_t offsets[] = {0, (uint64_t)snprintf(word, sizeof word, "%zu", k)};
            const pybpe_strings words = {(const uint8_t *)word, offsets, 1};
            CHECK_EQ(pybpe_counter_add_words(c, &words, NULL, NULL), PYBPE_OK);
        }
        CHECK_EQ(pybpe_counter_merge(all, c, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_counter_get_stats(all).words, (i + 1) * WORDS);
        CHECK_EQ(memory_of(all), (all->mask + 1) * sizeof(count_slot)); /* short words need no more */
        pybpe_counter_free(c);
    }
    pybpe_counter_free(all);
}

/* So many words that the table grows several times; each stays what it was. */
static void test_growth(void) {
    enum { WORDS = 200000, LENGTH = 20 };
    pybpe_counter *c = counter_of(NULL, NULL), *copy = counter_of(NULL, NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < WORDS; i++) {
            char word[LENGTH + 1];
            int n = snprintf(word, sizeof word, i % 2 == 0 ? "%d" : "a longer word %d", i);
            const uint64_t offsets[] = {0, (uint64_t)n};
            const pybpe_strings strings = {(const uint8_t *)word, offsets, 1};
            CHECK_EQ(pybpe_counter_add_words(c, &strings, NULL, NULL), PYBPE_OK);
        }
    }
    CHECK_EQ(pybpe_counter_get_stats(c).words, WORDS);
    CHECK_EQ(pybpe_counter_get_stats(c).total, 2 * WORDS);
    CHECK_EQ(pybpe_counter_merge(copy, c, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_merge(copy, c, NULL), PYBPE_OK);
    table t = table_of(copy);
    int wrong = t.stats.words != WORDS;
    for (uint64_t i = 0; i < t.stats.words; i++) {
        wrong += t.counts[i] != 4;
    }
    CHECK_EQ(wrong, 0);
    table_free(&t);
    pybpe_counter_free(c);
    pybpe_counter_free(copy);
}

/* Adds words that no other call has added; each takes one slot. */
static void add_new_words(pybpe_counter *c, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        const uint64_t number = i + 1, offsets[] = {0, sizeof number};
        const pybpe_strings word = {(const uint8_t *)&number, offsets, 1};
        CHECK_EQ(pybpe_counter_add_words(c, &word, NULL, NULL), PYBPE_OK);
    }
}

/* The table doubles its size when it holds as many words as it says, and not before. */
static void test_room(void) {
    pybpe_counter *c = counter_of(NULL, NULL);
    const pybpe_counter_stats empty = pybpe_counter_get_stats(c);
    add_new_words(c, 0, (size_t)empty.room);
    CHECK_EQ(pybpe_counter_get_stats(c).memory, empty.memory);
    add_new_words(c, (size_t)empty.room, (size_t)empty.room + 1);
    CHECK_EQ(pybpe_counter_get_stats(c).memory, 2 * empty.memory);
    CHECK_EQ(pybpe_counter_get_stats(c).room, 2 * empty.room);
    CHECK_EQ(pybpe_counter_reserve(c, (size_t)empty.room * 2, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_get_stats(c).room, 2 * empty.room);
    const size_t too_many[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / sizeof(count_slot)};
    for (size_t i = 0; i < sizeof too_many / sizeof *too_many; i++) {
        CHECK_EQ(pybpe_counter_reserve(c, too_many[i], NULL), PYBPE_ERR_MEMORY);
        CHECK_EQ(count_table_reserve(c, too_many[i], NULL), PYBPE_ERR_MEMORY); /* besides those that are there */
    }
    pybpe_counter_free(c);
}

/* The code that 32-bit machines use for the upper half of a product, with values computed by hand. */
static void test_products(void) {
    const uint64_t most = UINT64_MAX, half = UINT64_C(1) << 32;
    CHECK_EQ(product_high(0, most), 0);
    CHECK_EQ(product_high(1, most), 0);
    CHECK_EQ(product_high(2, most), 1);
    CHECK_EQ(product_high(half, half), 1);
    CHECK_EQ(product_high(half - 1, half + 1), 0);
    CHECK_EQ(product_high(most, most), most - 1);
    for (int i = 0; i < 1000; i++) {
        uint64_t a = random_state;
        (void)random_below(1);
        CHECK_EQ(hash_mix(a, random_state), a * random_state ^ product_high(a, random_state));
    }
}

/* After an error a counter is empty, and refuses everything with the code of that error. */
static void expect_failed(pybpe_counter *c) {
    static const uint64_t one[] = {0, 1};
    const pybpe_strings word = {(const uint8_t *)"w", one, 1};
    pybpe_counter *other = counter_of(NULL, NULL);
    pybpe_error err;
    uint64_t offset = 9;
    CHECK_EQ(pybpe_counter_add_words(c, &word, NULL, &err), PYBPE_ERR_LIMIT);
    CHECK(strstr(err.msg, "this counter failed in an earlier call") != NULL);
    CHECK_EQ(pybpe_counter_reserve(c, 9, NULL), PYBPE_ERR_LIMIT);
    CHECK_EQ(pybpe_counter_merge(c, other, NULL), PYBPE_ERR_LIMIT);
    CHECK_EQ(pybpe_counter_merge(other, c, NULL), PYBPE_ERR_LIMIT);
    CHECK_EQ(pybpe_counter_absorb(other, c, NULL), PYBPE_ERR_LIMIT);
    CHECK_EQ(pybpe_counter_add_words(other, &word, NULL, NULL), PYBPE_OK); /* which was only to take from it */
    const pybpe_counter_stats stats = pybpe_counter_get_stats(c);
    CHECK(stats.words == 0 && stats.bytes == 0 && stats.total == 0);
    pybpe_counter_export(c, NULL, &offset, NULL);
    CHECK_EQ(offset, 0);
    pybpe_counter_free(other);
}

/* The first text is counted so often that the second one fails; what follows its special is not counted. */
static void overflow_before_a_special(const pybpe_pretok *p) {
    static const uint64_t offsets[] = {0, 3}, text_offsets[] = {0, 1, 6}, most[] = {UINT64_MAX, 1};
    const pybpe_strings specials = {(const uint8_t *)"<s>", offsets, 1};
    const pybpe_strings texts = {(const uint8_t *)"ww<s>b", text_offsets, 2};
    pybpe_specials *s = NULL;
    CHECK_EQ(pybpe_specials_new(&s, &specials, (const uint32_t[]){0}, NULL, NULL, NULL), PYBPE_OK);
    pybpe_counter *c = counter_of(p, s);
    CHECK_EQ(pybpe_counter_add_texts(c, &texts, NULL, NULL), PYBPE_OK);
    pybpe_counter_free(c);
    c = counter_of(p, s);
    CHECK_EQ(pybpe_counter_add_texts(c, &texts, most, NULL), PYBPE_ERR_LIMIT);
    expect_failed(c);
    pybpe_counter_free(c);
    pybpe_specials_free(s);
}

static void test_overflow(void) {
    pybpe_counter *c = counter_of(NULL, NULL), *d = counter_of(NULL, NULL);
    const uint64_t offsets[] = {0, 1}, most = UINT64_MAX;
    const pybpe_strings strings = {(const uint8_t *)"w", offsets, 1};
    CHECK_EQ(pybpe_counter_add_words(c, &strings, &most, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add_words(c, &strings, NULL, NULL), PYBPE_ERR_LIMIT);
    CHECK_EQ(pybpe_counter_add_words(d, &strings, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add_words(d, &strings, &most, NULL), PYBPE_ERR_LIMIT);
    pybpe_counter_free(c);
    pybpe_counter_free(d);
    c = counter_of(NULL, NULL);
    d = counter_of(NULL, NULL);
    CHECK_EQ(pybpe_counter_add_words(c, &strings, &most, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add_words(d, &strings, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_merge(c, d, NULL), PYBPE_ERR_LIMIT);
    pybpe_counter_free(c);
    pybpe_counter_free(d);
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    overflow_before_a_special(p);
    /* moving a short word and a long one */
    for (uint64_t length = 1; length <= 30; length += 29) {
        const uint64_t ends[] = {0, length};
        const pybpe_strings word = {(const uint8_t *)"wwwwwwwwwwwwwwwwwwwwwwwwwwwwww", ends, 1};
        c = counter_of(p, NULL);
        d = counter_of(p, NULL);
        CHECK_EQ(pybpe_counter_add_words(c, &word, &most, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_counter_add_words(d, &word, NULL, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_counter_absorb(c, d, NULL), PYBPE_ERR_LIMIT);
        pybpe_counter_free(c);
        pybpe_counter_free(d);
    }
    pybpe_pretok_free(p);
}

static void test_failing_memory(void) {
    enum { WORDS = 30000, LENGTH = 24 }; /* enough for the table to grow and the arena to need a block */
    static uint8_t bytes[WORDS * LENGTH];
    static uint64_t offsets[WORDS + 1];
    for (size_t i = 0; i < WORDS; i++) {
        char word[LENGTH + 1];
        snprintf(word, sizeof word, "word number %012zu", i);
        memcpy(bytes + i * LENGTH, word, LENGTH);
        offsets[i + 1] = (i + 1) * LENGTH;
    }
    const pybpe_strings strings = {bytes, offsets, WORDS};
    pybpe_pretok *p = NULL; /* every other time the seeds are equal, and words are moved */
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    int passed = 0, failures = 0;
    for (long grant = 0; grant < 32; grant++) {
        const int same = grant % 2 != 0;
        failing_memory m = {.left = grant / 2};
        pybpe_allocator mem = {failing_resize, &m};
        pybpe_counter *c = NULL, *d = NULL;
        pybpe_error err;
        int code = pybpe_counter_new(&c, same ? p : NULL, NULL, &mem, &err);
        if (code == PYBPE_OK) {
            code = pybpe_counter_new(&d, same ? p : NULL, NULL, &mem, &err);
        }
        if (code == PYBPE_OK) {
            code = pybpe_counter_add_words(c, &strings, NULL, &err);
        }
        if (code == PYBPE_OK) {
            code = same ? pybpe_counter_absorb(d, c, &err) : pybpe_counter_merge(d, c, &err);
        }
        passed += code == PYBPE_OK;
        failures += code != PYBPE_OK && code != PYBPE_ERR_MEMORY;
        pybpe_counter_free(c);
        pybpe_counter_free(d);
        failures += m.blocks != 0;
    }
    pybpe_pretok_free(p);
    CHECK_EQ(failures, 0);
    CHECK(passed > 0 && passed < 32);
}

/* Texts, with the n-th allocation failing: short words, for which the table grows, and long ones, which need an arena. */
static void test_texts_without_memory(void) {
    enum { WORDS = 20000, LENGTH = 8, LONG = 40 };
    static uint8_t text[WORDS * LENGTH + LONG];
    pybpe_pretok *p = NULL;
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < WORDS; i++) {
        text[i * LENGTH] = ' ';
        for (size_t k = 1, number = i; k < LENGTH; k++, number /= 26) {
            text[i * LENGTH + k] = (uint8_t)('a' + number % 26);
        }
    }
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    long grant = 0;
    for (int code = PYBPE_ERR_MEMORY; code != PYBPE_OK && grant < 20; grant++) {
        failing_memory m = {.left = grant};
        const pybpe_allocator mem = {failing_resize, &m};
        pybpe_counter *c = (pybpe_counter *)1;
        code = pybpe_counter_new(&c, p, NULL, &mem, NULL);
        CHECK(code == PYBPE_OK ? grant >= 2 : code == PYBPE_ERR_MEMORY && c == NULL);
        code = code == PYBPE_OK ? pybpe_counter_add(c, text, sizeof text, NULL) : code;
        CHECK(code == PYBPE_OK || code == PYBPE_ERR_MEMORY);
        CHECK(code != PYBPE_OK || pybpe_counter_get_stats(c).words == WORDS);
        pybpe_counter_free(c);
        CHECK_EQ(m.blocks, 0);
    }
    CHECK(grant >= 4 && grant < 20); /* the counter, its table, the next table, and a block of the arena */
    pybpe_pretok_free(p);
}

/* Merging words of another seed into a table that must grow on the way, and cannot. */
static void test_merging_without_memory(void) {
    enum { WORDS = 8000 };
    failing_memory m = {.left = 2};
    const pybpe_allocator mem = {failing_resize, &m};
    pybpe_counter *some = NULL, *others = counter_of(NULL, NULL);
    CHECK_EQ(pybpe_counter_new(&some, NULL, NULL, &mem, NULL), PYBPE_OK);
    add_new_words(some, 0, WORDS);
    add_new_words(others, WORDS, 2 * WORDS);
    CHECK_EQ(pybpe_counter_merge(some, others, NULL), PYBPE_ERR_MEMORY);
    pybpe_counter_free(some);
    pybpe_counter_free(others);
    CHECK_EQ(m.blocks, 0);
}

/* Nobody can predict which words collide: each counter has its own seed, or that of its splitter. */
static void test_seeds(void) {
    pybpe_pretok *p = NULL;
    pybpe_counter *own[2] = {NULL}, *shared[2] = {NULL};
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pybpe_counter_new(&own[i], NULL, NULL, NULL, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_counter_new(&shared[i], p, NULL, NULL, NULL), PYBPE_OK);
    }
    CHECK(own[0]->seed.a != own[1]->seed.a && own[0]->seed.b != own[1]->seed.b);
    CHECK(shared[0]->seed.a == pretok_seed(p).a && shared[0]->seed.b == shared[1]->seed.b);
    CHECK(shared[0]->seed.a != 0 && shared[0]->seed.a != own[0]->seed.a);
    for (int i = 0; i < 2; i++) {
        pybpe_counter_free(own[i]);
        pybpe_counter_free(shared[i]);
    }
    pybpe_pretok_free(p);
}

/* Makes a counter with one word, which seems to have the hash of `like`, as if both collided. */
static pybpe_counter *counter_with_hash_of(const pybpe_pretok *p, const char *word, const char *like) {
    pybpe_counter *c = counter_of(p, NULL);
    const uint64_t offsets[] = {0, strlen(word)};
    const pybpe_strings words = {(const uint8_t *)word, offsets, 1};
    CHECK_EQ(pybpe_counter_add_words(c, &words, NULL, NULL), PYBPE_OK);
    size_t i = 0;
    while (c->slots[i].key.hi == 0) {
        i += 1;
    }
    pending other;
    pending_set(&other, c, (const uint8_t *)like, strlen(like), (const uint8_t *)like + strlen(like));
    count_slot slot = c->slots[i];
    c->slots[i] = (count_slot){0};
    slot.key.lo = other.hash;
    c->slots[other.hash & c->mask] = slot;
    return c;
}

/* Words whose 64-bit hashes are equal: a long one of the same length, a longer one, and a short one. */
static void test_equal_hashes(void) {
    static const char like[] = "a word of more than 15 bytes";
    static const char *const words[] = {"a word of more than 16 bytes", "a word of many more than 15 bytes", "short"};
    const uint64_t offsets[] = {0, sizeof like - 1};
    const pybpe_strings one = {(const uint8_t *)like, offsets, 1};
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    for (size_t i = 0; i < 3; i++) {
        for (int absorbs = 0; absorbs < 2; absorbs++) {
            pybpe_counter *c = counter_with_hash_of(p, words[i], like), *d = counter_of(p, NULL);
            CHECK_EQ(pybpe_counter_add_words(absorbs ? d : c, &one, NULL, NULL), PYBPE_OK);
            CHECK_EQ(pybpe_counter_absorb(c, d, NULL), PYBPE_OK);
            CHECK_EQ(pybpe_counter_add_words(c, &one, NULL, NULL), PYBPE_OK);
            CHECK_EQ(pybpe_counter_get_stats(c).words, 2);
            table t = table_of(c);
            CHECK_EQ(table_find(&t, like, sizeof like - 1), 2);
            table_free(&t);
            pybpe_counter_free(c);
            pybpe_counter_free(d);
        }
    }
    pybpe_pretok_free(p);
}

/* A word that is longer than a block of the arena, between two shorter ones. */
static void test_word_of_a_block(void) {
    enum { LENGTH = (1 << 20) + 1 };
    uint8_t *bytes = malloc(LENGTH + 40);
    memset(bytes, 'x', LENGTH + 40);
    const uint64_t offsets[] = {0, 20, 20 + LENGTH, 20 + LENGTH + 19};
    const pybpe_strings words = {bytes, offsets, 3};
    pybpe_counter *c = counter_of(NULL, NULL);
    CHECK_EQ(pybpe_counter_add_words(c, &words, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_reserve(c, 2, NULL), PYBPE_OK); /* fewer than there are */
    table t = table_of(c);
    CHECK(table_find(&t, bytes, 20) == 1 && table_find(&t, bytes, LENGTH) == 1 && table_find(&t, bytes, 19) == 1);
    CHECK_EQ(t.stats.words, 3);
    table_free(&t);
    pybpe_counter_free(c);
    free(bytes);
}

int main(void) {
    test_equal_hashes();
    test_word_of_a_block();
    test_seeds();
    test_by_hand();
    test_counted_texts();
    test_random();
    test_absorb();
    test_merging_strangers();
    test_growth();
    test_room();
    test_products();
    test_overflow();
    test_failing_memory();
    test_texts_without_memory();
    test_merging_without_memory();
    return check_report("count");
}
