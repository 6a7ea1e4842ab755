/*
Training against its definition: random words with all tie breaks, rules and bases, several languages, thousands of
symbols, all pairs of bytes.
*/
#include "check.h"
#include "naive_train.h"
#include "pybpe_train.h"
#include "random_state.h"

#include <stdlib.h>

static pybpe_trainer *trainer_of(const corpus *c, const pybpe_train_config *config) {
    pybpe_trainer *t = NULL;
    CHECK_EQ(pybpe_trainer_new(&t, &c->strings, c->counts, config, NULL, NULL), PYBPE_OK);
    return t;
}

/* Trains to the end in steps of `budget`, and returns their number. */
static size_t finish(pybpe_trainer *t, size_t budget) {
    size_t steps = 0;
    for (int done = 0; !done; steps++) {
        CHECK_EQ(pybpe_trainer_step(t, budget, &done, NULL), PYBPE_OK);
    }
    return steps;
}

/* A merge of the definition is the next one of the trainer. */
static bool is_next(const pybpe_trainer *t, size_t *made, const uint32_t pair[2], uint32_t merged) {
    const uint32_t *merges;
    const size_t i = (*made)++;
    return i < pybpe_trainer_merges(t, &merges) && merges[3 * i] == pair[0] && merges[3 * i + 1] == pair[1] &&
           merges[3 * i + 2] == merged;
}

static void expect_definition(const corpus *c, const pybpe_train_config *config, size_t budget) {
    static naive n;
    pybpe_trainer *t = trainer_of(c, config);
    const uint32_t *merges, *base = config->base_merges;
    finish(t, budget);
    naive_start(&n, c);
    size_t made = 0;
    bool same = true;
    for (size_t i = 0; i < config->base_merges_count; i++) {
        same = is_next(t, &made, base + 2 * i, naive_merge(&n, c, base + 2 * i)) && same;
    }
    uint32_t pair[2] = {0, 0};
    while (same && n.tokens < config->vocab_size && naive_best(&n, c, config, pair)) {
        same = is_next(t, &made, pair, naive_merge(&n, c, pair));
    }
    CHECK(same && made == pybpe_trainer_merges(t, &merges) && n.tokens == pybpe_trainer_tokens(t));
    pybpe_trainer_free(t);
}

/* ---------------------------------------------------------------------------------------------------
Few words
*/

/* Random words of a few letters: what texts have, or what the rules distinguish. */
static void random_words(corpus *c, uint32_t words, bool hostile) {
    static const uint8_t bytes[] = "a :\xF0\x90\x8F\x9F\xF4\xE4\xB8\xAD\xED\xA0\xE0\xC2\x80\xBF\xC1\xF5\xFF";
    uint8_t letters[5];
    uint32_t count = 1 + random_below(hostile ? 5 : 4);
    for (uint32_t i = 0; i < count; i++) {
        letters[i] = hostile ? bytes[random_below(sizeof bytes - 1)] : (uint8_t)('a' + i);
    }
    for (uint32_t i = 0; i < words; i++) {
        uint8_t word[NAIVE_WORD];
        size_t n = random_below(NAIVE_WORD - 6);
        for (size_t j = 0; j < n; j++) {
            word[j] = letters[random_below(count)];
        }
        corpus_add(c, word, n, random_below(4) != 0 ? 1 + random_below(5) : random_below(100000));
    }
}

/* Some first merges of random words, without any that makes an existing token: a base. Returns their number. */
static size_t random_base(uint32_t *base) {
    static naive n;
    static corpus c;
    const pybpe_train_config config = {.max_token_length = 1 + random_below(9)};
    corpus_start(&c);
    random_words(&c, 1 + random_below(4), false);
    naive_start(&n, &c);
    size_t count = 0;
    for (size_t most = random_below(12); count < most && naive_best(&n, &c, &config, base + 2 * count);) {
        const uint32_t next = n.tokens;
        if (naive_merge(&n, &c, base + 2 * count) != next) {
            break;
        }
        count += 1;
    }
    return count;
}

static pybpe_train_config random_config(uint32_t merges) {
    return (pybpe_train_config){.vocab_size = 256 + random_below(merges),
                                .max_token_length = random_below(3) != 0 ? 255 : 1 + random_below(6),
                                .min_frequency = random_below(5),
                                .tie_break = (int32_t)random_below(3)};
}

static void test_few_words(void) {
    static corpus c;
    for (int round = 0; round < 500; round++) {
        pybpe_train_config config = random_config(40);
        uint32_t base[24];
        if (round % 4 == 1) {
            config.rules = 1 + random_below(3);
        }
        if (round % 4 == 2) {
            config.base_merges = base;
            config.base_merges_count = random_base(base);
        }
        corpus_start(&c);
        random_words(&c, 1 + random_below(8), config.rules != 0);
        expect_definition(&c, &config, 1 + random_below(2) * 1000);
    }
}

/* ---------------------------------------------------------------------------------------------------
Many words, so that the tables grow, and scans take all their forms
*/

/* Random words in which the first letters, and some words, are much more frequent than others. */
static void many_words(corpus *c, uint32_t letters) {
    corpus_start(c);
    random_state = 7;
    for (uint32_t i = 0; i < CORPUS_WORDS; i++) {
        uint8_t word[NAIVE_WORD];
        size_t n = 8 + random_below(NAIVE_WORD - 8);
        for (size_t j = 0; j < n; j++) {
            word[j] = (uint8_t)('a' + random_below(1 + random_below(letters)));
        }
        corpus_add(c, word, n, random_below(2) != 0 ? 1 : 1 + (UINT64_C(1) << random_below(30)) / (i + 1));
    }
}

static void test_many_words(void) {
    static corpus c;
    const pybpe_train_config long_tokens = {.vocab_size = NAIVE_TOKENS, .max_token_length = 255};
    const pybpe_train_config short_tokens = {.vocab_size = 400, .max_token_length = 3};
    many_words(&c, 3);
    expect_definition(&c, &short_tokens, 10000);
    many_words(&c, 12);
    expect_definition(&c, &long_tokens, 10000);
}

/* Small steps show how often a training walks over all symbols. A scan keeps only frequent pairs, so one is not enough,
   but few are. */
static void test_walks(void) {
    enum { BUDGET = 10 };
    static corpus c;
    static const struct {
        uint32_t vocab_size, max_token_length;
        size_t least, most;
    } cases[] = {{257, 255, 2, 2}, {400, 255, 4, 5}, {400, 2, 12, 15}, {NAIVE_TOKENS, 255, 6, 8}};
    many_words(&c, 12);
    const size_t slots = (size_t)c.offsets[c.strings.count] + c.strings.count + 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pybpe_train_config config = {.vocab_size = cases[i].vocab_size,
                                           .max_token_length = cases[i].max_token_length};
        pybpe_trainer *t = trainer_of(&c, &config);
        const size_t walks = finish(t, BUDGET) * BUDGET / slots;
        CHECK(walks >= cases[i].least && walks <= cases[i].most);
        pybpe_trainer_free(t);
    }
}

/* ---------------------------------------------------------------------------------------------------
Languages
*/

enum { LANGUAGES = 3 };

/* The words of all texts in one corpus: those of text k start at word starts[k]. */
typedef struct parity_corpus {
    corpus all, texts[2 * LANGUAGES];
    size_t starts[2 * LANGUAGES + 1];
    pybpe_language languages[LANGUAGES];
} parity_corpus;

static void random_languages(parity_corpus *p, size_t count) {
    corpus_start(&p->all);
    for (size_t k = 0; k < 2 * count; k++) {
        corpus *text = &p->texts[k];
        corpus_start(text);
        random_words(text, random_below(5), false);
        p->starts[k] = p->all.strings.count;
        for (size_t i = 0; i < text->strings.count; i++) {
            corpus_add(&p->all, text->bytes + text->offsets[i], (size_t)(text->offsets[i + 1] - text->offsets[i]),
                       text->counts[i]);
        }
    }
    p->starts[2 * count] = p->all.strings.count;
    for (size_t i = 0; i < count; i++) {
        const corpus *words = &p->texts[i], *measured = &p->texts[count + i];
        p->languages[i] = (pybpe_language){words->strings, words->counts, measured->strings, measured->counts,
                                           1 + random_below(1000)};
    }
}

/* The tokens of a development text. */
static uint64_t naive_tokens(const naive *n, const parity_corpus *p, size_t text) {
    uint64_t tokens = 0;
    for (size_t i = p->starts[text]; i < p->starts[text + 1]; i++) {
        tokens += n->sizes[i] * p->all.counts[i];
    }
    return tokens;
}

/* The best pair of the language that costs the most and has one; 0 if there is none. */
static int naive_parity_best(naive *n, const parity_corpus *p, size_t count, const pybpe_train_config *config,
                             uint32_t pair[2]) {
    bool tried[LANGUAGES] = {false};
    for (size_t round = 0; round < count; round++) {
        size_t worst = LANGUAGES;
        uint64_t most = 0;
        for (size_t i = 0; i < count; i++) {
            uint64_t tokens = naive_tokens(n, p, count + i);
            if (!tried[i] && (worst == LANGUAGES || tokens * p->languages[worst].size > most * p->languages[i].size)) {
                worst = i;
                most = tokens;
            }
        }
        tried[worst] = true;
        if (naive_best_of(n, &p->all, p->starts[worst], p->starts[worst + 1], config, pair)) {
            return 1;
        }
    }
    return 0;
}

static void test_languages(void) {
    static parity_corpus p;
    static naive n;
    for (int round = 0; round < 400; round++) {
        const size_t count = 1 + random_below(LANGUAGES);
        const pybpe_train_config config = random_config(40);
        const uint32_t *merges;
        pybpe_trainer *t = NULL;
        random_languages(&p, count);
        CHECK_EQ(pybpe_trainer_new_parity(&t, p.languages, count, &config, NULL, NULL), PYBPE_OK);
        finish(t, 1 + random_below(2) * 1000);
        naive_start(&n, &p.all);
        size_t made = 0;
        bool same = true;
        uint32_t pair[2] = {0, 0};
        while (same && n.tokens < config.vocab_size && naive_parity_best(&n, &p, count, &config, pair)) {
            same = is_next(t, &made, pair, naive_merge(&n, &p.all, pair));
        }
        CHECK(same && made == pybpe_trainer_merges(t, &merges));
        pybpe_trainer_free(t);
    }
}

/* ---------------------------------------------------------------------------------------------------
All pairs of bytes
*/

/* Each pair of bytes is a word: those that the rules allow are merged, and only those, the greatest first. */
static void test_all_pairs(void) {
    static uint8_t bytes[2 << 16];
    static uint64_t offsets[(1 << 16) + 1], counts[1 << 16];
    for (size_t i = 0; i < 1 << 16; i++) {
        bytes[2 * i] = (uint8_t)(i >> 8);
        bytes[2 * i + 1] = (uint8_t)i;
        offsets[i + 1] = 2 * (i + 1);
        counts[i] = 1;
    }
    const pybpe_strings words = {bytes, offsets, 1 << 16};
    const pybpe_train_config config = {
        .vocab_size = 1 << 17, .max_token_length = 2, .rules = PYBPE_RULE_WHOLE_CHARACTERS};
    pybpe_trainer *t = NULL;
    CHECK_EQ(pybpe_trainer_new(&t, &words, counts, &config, NULL, NULL), PYBPE_OK);
    finish(t, SIZE_MAX);
    size_t made = 0, wrong = 0;
    for (size_t i = 1 << 16; i-- > 0;) {
        const uint32_t pair[2] = {bytes[2 * i], bytes[2 * i + 1]};
        if (naive_rules_allow(config.rules, &bytes[2 * i], 1, &bytes[2 * i + 1], 1)) {
            uint32_t next = 256 + (uint32_t)made;
            wrong += !is_next(t, &made, pair, next);
        }
    }
    CHECK(wrong == 0 && made > 128 * 128);
    CHECK_EQ(pybpe_trainer_tokens(t), 256 + made);
    pybpe_trainer_free(t);
}

int main(void) {
    naive_parts_find();
    test_few_words();
    test_many_words();
    test_walks();
    test_languages();
    test_all_pairs();
    return check_report("train_random");
}
