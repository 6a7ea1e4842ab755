/*
Training by its definition: count all pairs, merge the best, repeat. Slow and obvious: the trainer must give the same
merges. Only the lexicographic tie break.
*/
#ifndef NAIVE_TRAIN_H
#define NAIVE_TRAIN_H

#include <string.h>

#include "pybpe.h"

enum { MAX_MERGES = 64 };

/* Words as the tests write them: "aa", 1, " bb", 2, ..., NULL. */
typedef struct corpus {
    uint8_t bytes[8192];
    uint64_t offsets[65];
    uint64_t counts[64];
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

enum { NAIVE_TOKENS = 256 + MAX_MERGES, NAIVE_WORD = 32 }; /* words are at most 32 bytes */

typedef struct naive {
    uint8_t bytes[NAIVE_TOKENS][NAIVE_WORD];
    size_t lengths[NAIVE_TOKENS];
    uint32_t tokens;
    uint32_t words[64][NAIVE_WORD];
    size_t sizes[64];
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

static inline uint64_t naive_count(const naive *n, const corpus *c, uint32_t left, uint32_t right) {
    uint64_t count = 0;
    for (size_t i = 0; i < c->strings.count; i++) {
        for (size_t j = 0; j + 1 < n->sizes[i]; j++) {
            count += n->words[i][j] == left && n->words[i][j + 1] == right ? c->counts[i] : 0;
        }
    }
    return count;
}

/* The best pair; 0 if there is none. */
static inline int naive_best(const naive *n, const corpus *c, const pybpe_train_config *config, uint32_t best[2]) {
    uint64_t most = 0;
    for (size_t i = 0; i < c->strings.count; i++) {
        for (size_t j = 0; j + 1 < n->sizes[i]; j++) {
            uint32_t left = n->words[i][j], right = n->words[i][j + 1];
            uint64_t count = naive_count(n, c, left, right);
            if (count == 0 || count < config->min_frequency || count < most ||
                n->lengths[left] + n->lengths[right] > config->max_token_length) {
                continue;
            }
            int order = count > most ? 1 : naive_compare(n, left, best[0]);
            order = order != 0 ? order : naive_compare(n, right, best[1]);
            if (order > 0) {
                most = count;
                best[0] = left;
                best[1] = right;
            }
        }
    }
    return most > 0;
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
