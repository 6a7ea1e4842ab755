/*
Hash flooding. Each object draws its own secret numbers; so keys that collide in one object, or in one whose numbers
were 0, are spread in another. The test counts the steps of linear probing, with the hash functions of csrc. (A cache of
words needs no such test: it looks at four slots at most, and a word that has no room is merged, as any new word is.)
*/
#include "apply/merges.h"
#include "base/base.h" /* before any system header */
#include "check.h"
#include "count/count_table.h"
#include "encode/encode_cache.h"
#include "encode/encode_stages.h"
#include "random_state.h"
#include "shingles/shingles.h"
#include "small_vocab.h"
#include "special/special_automaton.h"
#include "train/train_pairs.h"
#include "vocab/vocab.h"

enum { KEYS = 400, SLOTS = 1024, KEY_BITS = 20, SEEDS = 200 };

/* The secret numbers of an object, and the slot, below SLOTS, in which it looks for a key first. */
typedef struct subject {
    hash_seed seed;
    size_t (*home)(hash_seed seed, uint64_t key);
} subject;

/* A key is a number of up to 40 bits: a pair of ids, each of up to KEY_BITS, or it is spelled as a word. */
static uint32_t key_left(uint64_t key) { return (uint32_t)(key >> KEY_BITS); }
static uint32_t key_right(uint64_t key) { return (uint32_t)key & ((1U << KEY_BITS) - 1); }

static void key_spell(uint64_t key, uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)('0' + (key >> (i < 8 ? 6 * i : 0) & 63));
    }
}

static size_t short_word_home(hash_seed seed, uint64_t key) {
    uint8_t word[WORD_INLINE_MAX];
    key_spell(key, word, sizeof word);
    return (size_t)word_key_hash(word_key_careful(word, sizeof word), seed) & (SLOTS - 1);
}

static size_t long_word_home(hash_seed seed, uint64_t key) {
    uint8_t word[40];
    key_spell(key, word, sizeof word);
    return (size_t)word_hash_long(word, sizeof word, seed) & (SLOTS - 1);
}

static size_t merge_home(hash_seed seed, uint64_t key) {
    merge_table t = {.shift = 64 - 10, .factor = seed.a};
    return merge_bucket(&t, key * t.factor);
}

static size_t stages_home(hash_seed seed, uint64_t key) {
    encode_stages s = {.pairs_shift = 64 - 10, .pairs_factor = seed.a};
    return stages_bucket(&s, stages_key(key_left(key), key_right(key)));
}

static size_t edge_home(hash_seed seed, uint64_t key) {
    static special_edge none[SLOTS];
    special_automaton a = {.edges = none, .edges_mask = SLOTS - 1, .seed = seed};
    return edge_slot(&a, (uint32_t)(key >> 8), (uint8_t)key);
}

static size_t pair_home(hash_seed seed, uint64_t key) {
    pair_table t = {.seed = seed, .mask = SLOTS - 1};
    return pair_table_slot(&t, key_left(key), key_right(key));
}

static size_t ngram_home(hash_seed seed, uint64_t key) { return (size_t)shingle_ngram_place(seed, key) & (SLOTS - 1); }

static size_t line_home(hash_seed seed, uint64_t key) {
    uint8_t line[WORD_INLINE_MAX];
    key_spell(key, line, sizeof line);
    return (size_t)shingle_line_hash(seed, line, sizeof line) & (SLOTS - 1);
}

static size_t short_line_home(hash_seed seed, uint64_t key) {
    uint8_t line[7];
    key_spell(key, line, sizeof line);
    return (size_t)shingle_line_hash(seed, line, sizeof line) & (SLOTS - 1);
}

/* ---------------------------------------------------------------------------------------------------
Objects
*/

static pybpe_vocab *vocab_of(void) {
    static small_vocab small;
    small_start(&small);
    small_add_special(&small, "<s>");
    small_add_merge(&small, 'a', 'b');
    pybpe_vocab_spec spec = small_spec(&small);
    pybpe_vocab *v = NULL;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    return v;
}

enum { COUNTER, VOCAB, MERGES, AUTOMATON, PAIRS, CACHE, MEASURE, KINDS };

/* The secret numbers of a new object. */
static hash_seed object_seed(int kind) {
    hash_seed seed = {0, 0};
    pybpe_vocab *v = vocab_of();
    const uint64_t offsets[] = {0, 3};
    const uint32_t id = 0;
    const pybpe_strings strings = {(const uint8_t *)"<s>", offsets, 1};
    if (kind == COUNTER) {
        pybpe_counter *c = NULL;
        CHECK_EQ(pybpe_counter_new(&c, NULL, NULL, NULL, NULL), PYBPE_OK);
        seed = c->seed;
        pybpe_counter_free(c);
    } else if (kind == VOCAB) {
        seed = v->seed;
    } else if (kind == MERGES) {
        merge_table t;
        CHECK_EQ(merge_table_new(&t, 300, 10, v->byte_ids, &v->mem, NULL), PYBPE_OK);
        seed = (hash_seed){t.factor, t.factor};
        merge_table_free(&t, &v->mem);
    } else if (kind == AUTOMATON) {
        special_automaton a;
        CHECK_EQ(automaton_init(&a, &strings, &id, false, &v->mem, NULL), PYBPE_OK);
        seed = a.seed;
        automaton_free(&a, &v->mem);
    } else if (kind == PAIRS) {
        pair_table t;
        CHECK_EQ(pair_table_init(&t, NULL, NULL, NULL, 0, NULL), PYBPE_OK);
        seed = t.seed;
        pair_table_free(&t);
    } else if (kind == MEASURE) {
        seed = hash_seed_draw(); /* pybpe_texts_measure draws the numbers of its tables when it is called */
    } else {
        pybpe_encoder *e = NULL;
        pybpe_cache *c = NULL;
        CHECK_EQ(pybpe_encoder_new(&e, v, NULL, 0, NULL, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
        seed = c->seed;
        pybpe_cache_free(c);
        pybpe_encoder_free(e);
    }
    pybpe_vocab_free(v);
    return seed;
}

static void test_each_object_has_its_own_numbers(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        hash_seed seeds[8];
        for (size_t i = 0; i < 8; i++) {
            seeds[i] = object_seed(kind);
            CHECK(seeds[i].a != 0 && seeds[i].b != 0);
            for (size_t k = 0; k < i; k++) {
                CHECK(seeds[k].a != seeds[i].a && seeds[k].b != seeds[i].b);
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------------
Floods
*/

/* The steps that adding all keys takes, with linear probing. */
static size_t probe_steps(const subject *s, const uint64_t *keys) {
    static bool used[SLOTS];
    memset(used, 0, sizeof used);
    size_t steps = 0;
    for (size_t i = 0; i < KEYS; i++) {
        size_t at = s->home(s->seed, keys[i]);
        for (steps += 1; used[at]; steps += 1) {
            at = (at + 1) & (SLOTS - 1);
        }
        used[at] = true;
    }
    return steps;
}

static uint64_t random_odd(void) { return (uint64_t)random_below(UINT32_MAX) << 32 | random_below(UINT32_MAX) | 1; }

/* The steps for a key, on average over objects whose secret numbers nobody knows. */
static double average_steps(const subject *s, const uint64_t *keys) {
    size_t steps = 0;
    for (size_t i = 0; i < SEEDS; i++) {
        subject other = {{random_odd(), random_odd()}, s->home};
        steps += probe_steps(&other, keys);
    }
    return (double)steps / (SEEDS * KEYS);
}

/* Keys that all have the same home in an object. */
static void keys_flood(const subject *s, uint64_t *keys) {
    const size_t home = s->home(s->seed, 1);
    size_t n = 0;
    for (uint64_t i = 1; n < KEYS; i++) {
        uint64_t key = i * UINT64_C(0x9E3779B97F4A7C15) >> 24; /* 40 bits */
        if (s->home(s->seed, key) == home) {
            keys[n++] = key;
        }
    }
}

typedef struct table_kind {
    const char *name;
    int object;
    bool linear; /* multiplies by one odd number: if that is 0 or 1, it is not secret */
    size_t (*home)(hash_seed seed, uint64_t key);
} table_kind;

static const table_kind TABLES[] = {
    {"words of a counter", COUNTER, false, short_word_home},
    {"long words of a counter", COUNTER, false, long_word_home},
    {"tokens of a vocabulary", VOCAB, false, short_word_home},
    {"long tokens of a vocabulary", VOCAB, false, long_word_home},
    {"merges", MERGES, true, merge_home},
    {"pairs of superwords", MERGES, true, stages_home},
    {"edges of special tokens", AUTOMATON, false, edge_home},
    {"pairs in training", PAIRS, true, pair_home},
    {"n-grams of a text", MEASURE, false, ngram_home},
    {"lines of a text", MEASURE, false, line_home},
    {"short lines of a text", MEASURE, false, short_line_home},
};
enum { TABLES_COUNT = sizeof TABLES / sizeof *TABLES };
#define MOST_STEPS (3 * 1.3) /* three times those of random keys */

static void test_a_flood_of_one_object_does_not_flood_another(void) {
    static uint64_t keys[KEYS];
    for (size_t i = 0; i < TABLES_COUNT; i++) {
        subject known = {object_seed(TABLES[i].object), TABLES[i].home};
        keys_flood(&known, keys);
        CHECK(probe_steps(&known, keys) > KEYS * KEYS / 2); /* the attack works on the object that is known */
        CHECK(average_steps(&known, keys) < MOST_STEPS);
        known.seed = (hash_seed){TABLES[i].linear ? 1 : 0, 0};
        keys_flood(&known, keys);
        CHECK(average_steps(&known, keys) < MOST_STEPS);
    }
}

/* Keys in arithmetic progressions could collide for every multiplier, if a hash used the wrong bits of the product. */
static void test_regular_keys_do_not_collide(void) {
    static uint64_t keys[KEYS];
    for (size_t i = 0; i < TABLES_COUNT; i++) {
        const subject any = {{0, 0}, TABLES[i].home};
        for (unsigned shift = 0; shift <= 2 * KEY_BITS - 9; shift++) { /* 400 keys take 9 bits */
            for (size_t k = 0; k < KEYS; k++) {
                keys[k] = (uint64_t)k << shift;
            }
            double steps = average_steps(&any, keys);
            CHECK(steps < MOST_STEPS);
            if (steps >= MOST_STEPS) {
                printf("%s, shift %u: %.1f steps a key\n", TABLES[i].name, shift, steps);
            }
        }
    }
}

int main(void) {
    test_each_object_has_its_own_numbers();
    test_a_flood_of_one_object_does_not_flood_another();
    test_regular_keys_do_not_collide();
    return check_report("flood");
}
