/*
Training by its definition: count all pairs, merge the best, repeat. Slow and obvious: the trainer must give the same
merges.
*/
#ifndef NAIVE_TRAIN_H
#define NAIVE_TRAIN_H

#include <string.h>

#include "naive_rules.h"
#include "pybpe_train.h"

enum { MAX_MERGES = 64, CORPUS_WORDS = 1200, CORPUS_BYTES = 36000 };

/* Words as the tests write them: "aa", 1, " bb", 2, ... */
typedef struct corpus {
    uint8_t bytes[CORPUS_BYTES];
    uint64_t offsets[CORPUS_WORDS + 1];
    uint64_t counts[CORPUS_WORDS];
    pybpe_strings strings;
} corpus;

static inline void corpus_start(corpus *c) {
    c->offsets[0] = 0;
    c->strings = (pybpe_strings){c->bytes, c->offsets, 0};
}

static inline void corpus_add(corpus *c, const void *word, size_t n, uint64_t count) {
    size_t i = c->strings.count++;
    memcpy(c->bytes + c->offsets[i], word, n);
    c->offsets[i + 1] = c->offsets[i] + n;
    c->counts[i] = count;
}

static inline void corpus_word(corpus *c, const char *word, uint64_t count) {
    corpus_add(c, word, strlen(word), count);
}

enum { NAIVE_TOKENS = 1280, NAIVE_WORD = 32 }; /* words are at most 32 bytes */

typedef struct naive {
    uint8_t bytes[NAIVE_TOKENS][NAIVE_WORD];
    size_t lengths[NAIVE_TOKENS];
    uint32_t tokens;
    uint32_t words[CORPUS_WORDS][NAIVE_WORD];
    size_t sizes[CORPUS_WORDS];
    uint64_t pairs[NAIVE_TOKENS][NAIVE_TOKENS]; /* counts; all 0 except in naive_best_of */
} naive;

static inline void naive_start(naive *n, const corpus *c) {
    n->tokens = 256;
    for (uint32_t i = 0; i < 256; i++) {
        n->bytes[i][0] = (uint8_t)i;
        n->lengths[i] = 1;
    }
    for (size_t i = 0; i < c->strings.count; i++) {
        n->sizes[i] = (size_t)(c->offsets[i + 1] - c->offsets[i]);
        for (size_t j = 0; j < n->sizes[i]; j++) {
            n->words[i][j] = c->bytes[c->offsets[i] + j];
        }
    }
}

static inline int naive_compare(const naive *n, uint32_t x, uint32_t y) {
    size_t a = n->lengths[x], b = n->lengths[y];
    int order = memcmp(n->bytes[x], n->bytes[y], a < b ? a : b);
    return order != 0 ? order : (a > b) - (a < b);
}

/* The number of a token. In Hugging Face, GPT-2 gives each byte a character, and bytes are numbered by these. */
static inline uint32_t naive_order(uint32_t id, int tie_break) {
    bool printable = (id >= 0x21 && id <= 0x7E) || (id >= 0xA1 && id <= 0xFF && id != 0xAD);
    printable |= tie_break == PYBPE_TIE_RUSTBPE;
    return id < 256 && !printable ? 256 + id : id < 256 ? id : 512 + id;
}

/* Returns whether pair x is merged before pair y if both are equally frequent. */
static inline bool naive_before(const naive *n, int tie_break, const uint32_t x[2], const uint32_t y[2]) {
    const size_t differ = x[0] == y[0];
    return tie_break == PYBPE_TIE_LEXICOGRAPHIC ? naive_compare(n, x[differ], y[differ]) > 0
                                                : naive_order(x[differ], tie_break) < naive_order(y[differ], tie_break);
}

static inline bool naive_allows(const naive *n, const pybpe_train_config *config, uint32_t left, uint32_t right) {
    return n->lengths[left] + n->lengths[right] <= config->max_token_length &&
           naive_rules_allow(config->rules, n->bytes[left], n->lengths[left], n->bytes[right], n->lengths[right]);
}

/* Adds the counts of the words from `from` to n->pairs, or sets these pairs to 0. */
static inline void naive_count(naive *n, const corpus *c, size_t from, size_t to, bool clear) {
    for (size_t i = from; i < to; i++) {
        for (size_t j = 0; j + 1 < n->sizes[i]; j++) {
            uint64_t *count = &n->pairs[n->words[i][j]][n->words[i][j + 1]];
            *count = clear ? 0 : *count + c->counts[i];
        }
    }
}

/* The best pair of the words from `from` to before `to`; 0 if there is none. */
static inline int naive_best_of(naive *n, const corpus *c, size_t from, size_t to, const pybpe_train_config *config,
                                uint32_t best[2]) {
    uint64_t most = 0;
    naive_count(n, c, from, to, false);
    for (size_t i = from; i < to; i++) {
        for (size_t j = 0; j + 1 < n->sizes[i]; j++) {
            const uint32_t *pair = &n->words[i][j];
            uint64_t count = n->pairs[pair[0]][pair[1]];
            if (count == 0 || count < config->min_frequency || count < most ||
                (count == most && !naive_before(n, config->tie_break, pair, best)) ||
                !naive_allows(n, config, pair[0], pair[1])) {
                continue;
            }
            most = count;
            best[0] = pair[0];
            best[1] = pair[1];
        }
    }
    naive_count(n, c, from, to, true);
    return most > 0;
}

static inline int naive_best(naive *n, const corpus *c, const pybpe_train_config *config, uint32_t best[2]) {
    return naive_best_of(n, c, 0, c->strings.count, config, best);
}

static inline uint32_t naive_merge(naive *n, const corpus *c, const uint32_t pair[2]) {
    uint32_t merged = n->tokens;
    size_t length = n->lengths[pair[0]] + n->lengths[pair[1]];
    memcpy(n->bytes[merged], n->bytes[pair[0]], n->lengths[pair[0]]);
    memcpy(n->bytes[merged] + n->lengths[pair[0]], n->bytes[pair[1]], n->lengths[pair[1]]);
    n->lengths[merged] = length;
    for (uint32_t i = 0; i < n->tokens; i++) {
        if (n->lengths[i] == length && memcmp(n->bytes[i], n->bytes[n->tokens], length) == 0) {
            merged = i;
        }
    }
    n->tokens += merged == n->tokens;
    for (size_t i = 0; i < c->strings.count; i++) {
        size_t to = 0;
        for (size_t j = 0; j < n->sizes[i]; to++) {
            int here = j + 1 < n->sizes[i] && n->words[i][j] == pair[0] && n->words[i][j + 1] == pair[1];
            n->words[i][to] = here ? merged : n->words[i][j];
            j += here ? 2 : 1;
        }
        n->sizes[i] = to;
    }
    return merged;
}

#endif
