/*
Parity-aware training: every merge helps the language that is worst off (Foroutan et al. 2025, arXiv 2508.04796).

A language has words to learn from, and a development text. It costs the tokens of its development text, divided by a
size that the caller gives. A step takes the language that costs the most (of several the first) and merges the pair
that is most frequent in its words, everywhere. If no pair of that language is frequent enough, the next language has
its turn. The authors' program stops there. Both kinds of words are laid out as texts 0 ... n - 1 and n ... 2n - 1:

    ids    SEP  words of language 0  ...  words of language n - 1  development text of 0  ...  of n - 1
    runs        text 0                    text n - 1               text n                      text 2n - 1

So a pair has one list of places, and a merge rewrites all texts at once. Only the counts differ: a pair has one per
language, and every language has a heap that its counts order. The count of a pair in a language only falls, as in
ordinary training, so the same scans work. A language has its own threshold. Scans keep a pair if it reaches the
threshold of any language. They use one sum for that:

    weight of a pair = sum over languages of its count * ceil(KEPT / threshold)    at least KEPT if one is reached

When a heap is empty, the thresholds are lowered, and a scan fills all heaps again.
*/
#include "train/train_parity.h"

#define KEPT (UINT64_C(1) << 20)
#define WEIGHT_MAX (UINT64_C(1) << 43) /* of all words. Times KEPT, it fits in 64 bits */

enum { PARITY_FIRST_SHARE = 16384, PARITY_STEP = 32 };

static uint64_t divide_up(uint64_t x, uint64_t by) { return x / by + (x % by != 0); }

static uint64_t threshold_at_least(const pybpe_trainer *t, uint64_t threshold) {
    return threshold > t->min_frequency ? threshold : t->min_frequency;
}

/* Computes what the words contribute to the weights of pairs. Development texts contribute nothing. */
static void runs_weigh(pybpe_trainer *t) {
    for (size_t i = 0; i < t->runs_count; i++) {
        run *r = &t->runs[i];
        r->weight = r->text < t->languages_count ? r->count * divide_up(KEPT, t->languages[r->text].threshold) : 0;
    }
}

/* Adds n * count to a sum, which stays at UINT64_MAX if it gets there. */
static void add_up(uint64_t *sum, uint64_t n, uint64_t count) {
    uint64_t product;
    if (__builtin_mul_overflow(n, count, &product) || __builtin_add_overflow(*sum, product, sum)) {
        *sum = UINT64_MAX;
    }
}

/* Adds the tokens in words of one byte, which are not laid out. */
static void add_single_bytes(uint64_t *tokens, const pybpe_strings *words, const uint64_t *counts) {
    for (size_t i = 0; i < words->count; i++) {
        add_up(tokens, words->offsets[i + 1] - words->offsets[i] == 1, counts[i]);
    }
}

/* Adds up the symbols of every text, weighted: the tokens of development texts, and as thresholds, for now, the size of
   the others. */
static void runs_add_up(pybpe_trainer *t) {
    for (size_t i = 0; i < t->runs_count; i++) {
        const run *r = &t->runs[i];
        uint64_t symbols = 0;
        for (uint32_t at = r->start; at < t->runs[i + 1].start; at++) {
            symbols += slot_get(t->ids, at) != TRAIN_SEP;
        }
        const bool is_measured = r->text >= t->languages_count;
        parity_language *l = &t->languages[r->text - (is_measured ? t->languages_count : 0)];
        add_up(is_measured ? &l->tokens : &l->threshold, symbols, r->count);
    }
}

int train_parity_start(pybpe_trainer *t, const pybpe_language *languages, pybpe_error *err) {
    runs_add_up(t);
    uint64_t all = 0;
    for (size_t i = 0; i < t->languages_count; i++) {
        parity_language *l = &t->languages[i];
        add_single_bytes(&l->tokens, &languages[i].measured, languages[i].measured_counts);
        l->size = languages[i].size;
        if (l->size == 0 || l->size > UINT32_MAX || l->tokens > UINT32_MAX) {
            return error_set(err, PYBPE_ERR_LIMIT, i,
                             "the development text of language %zu is empty or larger than 4 GiB", i);
        }
        all += l->threshold < WEIGHT_MAX ? l->threshold : WEIGHT_MAX;
        l->threshold = threshold_at_least(t, l->threshold / PARITY_FIRST_SHARE);
        if (all >= WEIGHT_MAX) {
            return error_set(
                err, PYBPE_ERR_LIMIT, i,
                "word counts are too large: their sum over all bytes of all languages must be less than 2^43");
        }
    }
    t->threshold = KEPT;
    runs_weigh(t);
    return PYBPE_OK;
}

/* The language that costs the most among the languages that are not exhausted, or NULL. The products fit, as no factor exceeds 32
   bits. */
static parity_language *language_worst(pybpe_trainer *t) {
    parity_language *worst = NULL;
    for (size_t i = 0; i < t->languages_count; i++) {
        parity_language *l = &t->languages[i];
        if (!l->exhausted && (worst == NULL || l->tokens * worst->size > worst->tokens * l->size)) {
            worst = l;
        }
    }
    return worst;
}

/* Removes the next pair to merge from a heap, or returns PAIR_NONE. A language whose threshold could be lower is then
   marked as exhausted, or all languages are. */
uint32_t train_parity_next(pybpe_trainer *t) {
    for (size_t i = 0; i < t->languages_count; i++) {
        t->languages[i].exhausted = false;
    }
    for (parity_language *l; (l = language_worst(t)) != NULL;) {
        uint32_t index = pair_heap_pop(&t->pairs, (size_t)(l - t->languages), l->threshold);
        if (index != PAIR_NONE) {
            return index;
        }
        l->exhausted = true;
        if (l->threshold > t->min_frequency) {
            return PAIR_NONE;
        }
    }
    return PAIR_NONE;
}

/* Lowers the threshold of the language whose heap train_parity_next found empty, and of all others whose heaps will
   soon be, for the next scan. Returns false if that is impossible: training is done. */
bool train_parity_lower(pybpe_trainer *t) {
    bool lowered = false;
    for (size_t i = 0; i < t->languages_count; i++) {
        parity_language *l = &t->languages[i];
        const pair_heap *heap = &t->pairs.heaps[i];
        uint64_t lower = l->threshold / PARITY_STEP;
        if (!l->exhausted) {
            uint64_t top = heap->count > 0 ? heap->entries[0].count / PARITY_STEP : lower;
            lower = top < l->threshold ? top : l->threshold;
        }
        lower = threshold_at_least(t, lower);
        lowered |= lower < l->threshold;
        l->threshold = lower;
    }
    if (lowered) {
        runs_weigh(t);
    }
    return lowered;
}

int train_parity_push(pybpe_trainer *t, uint32_t index, pybpe_error *err) {
    int code = PYBPE_OK;
    for (size_t i = 0; i < t->languages_count && code == PYBPE_OK; i++) {
        if (pair_counts(&t->pairs, index)[i] >= t->languages[i].threshold) {
            code = pair_heap_push(&t->pairs, i, index, err);
        }
    }
    return code;
}

void train_parity_count(const pybpe_trainer *t, uint64_t *counts, const run *r) {
    if (r->text < t->languages_count) {
        counts[r->text] += r->count;
    }
}

void train_parity_merged(pybpe_trainer *t, const run *r) {
    if (r->text >= t->languages_count) {
        t->languages[r->text - t->languages_count].tokens -= r->count;
    }
}

void train_parity_neighbor(pybpe_trainer *t, side *s, const neighbor *n, const run *r) {
    uint64_t *counts = side_counts(t, s, n);
    if (n->places_count == 1) {
        memset(counts, 0, t->languages_count * sizeof *counts);
    }
    train_parity_count(t, counts, r);
}

void train_parity_subtract(const pybpe_trainer *t, uint64_t *from, const uint64_t *counts) {
    for (size_t i = 0; i < t->languages_count; i++) {
        from[i] -= counts[i];
    }
}
