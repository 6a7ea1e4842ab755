/*
Words as symbols: the array that all other parts of the trainer work on.

All words are stored end to end in one array of ids, with a separator before, between and after them. At first, a
byte, or a token of a base, has one slot. Merges leave the slots in place: a token that spans several slots has its
id in the first and the last of them, so that both neighbors of a token can be found without links in a word of any
length:

    bytes        t    h    e         t    h    e    n
    ids     SEP 260 HOLE  260  SEP  260 HOLE  260   n   SEP       260 is "the"
                 p         |         p         |    |
                           last slot           |    next token: p + 3
                                               last slot, seen from n as the slot before it

A place in a list may be outdated, since its tokens may have become part of longer ones. It is live if and only if
ids[p] is still the left token and ids[p + span] is still the right one: a token never shrinks, so slot p holds either
the id that it had when the place was added, or the id of a longer token, or HOLE.

Words are laid out by descending count, so that a short table of runs (first position, count) gives the weight of a
place. The places of a list ascend, and so do their runs.
*/
#include "train/train.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------------------------------------
Continuing the training of a tokenizer: its merges are repeated as if they had been learned here, and words start as
these merges leave them. An encoder applies them, because words can be long and many, as for superwords.
*/

int train_base_apply(pybpe_trainer *t, const pybpe_train_config *config, pybpe_error *err) {
    size_t count = config->base_merges_count;
    int code = PYBPE_OK;
    for (size_t i = 0; i < count && code == PYBPE_OK; i++) {
        uint32_t left = config->base_merges[2 * i], right = config->base_merges[2 * i + 1], merged;
        if (left >= t->tokens_count || right >= t->tokens_count) {
            return error_set(err, PYBPE_ERR_VALUE, i, "base merge %zu: tokens %u and %u must both exist before it", i,
                             left, right);
        }
        code = train_merge_add(t, left, right, &merged, err);
    }
    return code;
}

/* The tokens and merges of a trainer as a vocabulary, and an encoder for it. */
typedef struct base_coder {
    pybpe_vocab *vocab;
    pybpe_encoder *encoder;
    pybpe_cache *cache;
} base_coder;

static void base_coder_free(base_coder *base) {
    pybpe_cache_free(base->cache);
    pybpe_encoder_free(base->encoder);
    pybpe_vocab_free(base->vocab);
}

static int base_vocab_new(pybpe_vocab **out, const pybpe_trainer *t, const pybpe_train_config *config,
                          pybpe_error *err) {
    uint64_t *offsets = mem_alloc_array(&t->mem, (size_t)t->tokens_count + 1, sizeof *offsets);
    PYBPE_TRY(memory_check(offsets, "the tokens of a base", t->tokens_count * sizeof *offsets, err));
    for (uint32_t i = 0; i < t->tokens_count; i++) {
        offsets[i] = t->tokens[i].offset;
    }
    offsets[t->tokens_count] = t->token_bytes_count;
    const pybpe_vocab_spec spec = {.tokens = {t->token_bytes, offsets, t->tokens_count},
                                   .merges = config->base_merges,
                                   .merges_count = config->base_merges_count,
                                   .eot_id = PYBPE_NO_ID,
                                   .pattern = PYBPE_PATTERN_GPT2}; /* unused: the words are given */
    int code = pybpe_vocab_new(out, &spec, &t->mem, err);
    mem_free(&t->mem, offsets);
    return code;
}

/* Frees what it made if it fails. */
static int base_coder_new(base_coder *base, const pybpe_trainer *t, const pybpe_train_config *config,
                          pybpe_error *err) {
    *base = (base_coder){NULL, NULL, NULL};
    if (config->base_merges_count == 0) {
        return PYBPE_OK;
    }
    int code = base_vocab_new(&base->vocab, t, config, err);
    code = code == PYBPE_OK ? pybpe_encoder_new(&base->encoder, base->vocab, NULL, 0, &t->mem, err) : code;
    code = code == PYBPE_OK ? pybpe_cache_new(&base->cache, base->encoder, &t->mem, err) : code;
    if (code != PYBPE_OK) {
        base_coder_free(base);
    }
    return code;
}

/* ---------------------------------------------------------------------------------------------------
Words
*/

enum { SMALL_COUNTS = 1 << 16 };

/* A word with a large count. */
typedef struct counted_word {
    uint64_t count;
    uint32_t word;
} counted_word;

/* The more frequent word comes first. The order of equally frequent ones does not matter. */
static int counted_word_compare(const void *x, const void *y) {
    const counted_word *a = x, *b = y;
    return (a->count < b->count) - (a->count > b->count);
}

static uint64_t word_length(const pybpe_strings *words, size_t i) { return words->offsets[i + 1] - words->offsets[i]; }

/* A word of one byte has no pair, and a word that never occurs has no weight: neither is laid out. */
static bool word_matters(const word_text *text, size_t i) {
    return text->counts[i] > 0 && word_length(text->words, i) > 1;
}

/* The sizes of the words that matter. */
typedef struct words_size {
    uint64_t slots, weight;
    size_t used; /* words of a text, at most */
} words_size;

/* Adds up the slots that the words of a text need, and checks that no sum of counts can overflow. */
static int words_measure(const word_text *text, words_size *size, pybpe_error *err) {
    const pybpe_strings *words = text->words;
    size_t used = 0;
    for (size_t i = 0; i < words->count; i++) {
        if (!word_matters(text, i)) {
            continue;
        }
        uint64_t pairs;
        if (__builtin_mul_overflow(text->counts[i], word_length(words, i), &pairs) ||
            __builtin_add_overflow(size->weight, pairs, &size->weight)) {
            return error_set(err, PYBPE_ERR_LIMIT, i,
                             "word counts are too large: their sum over all bytes exceeds 2^64 - 1");
        }
        size->slots += word_length(words, i) + 1;
        used += 1;
    }
    size->used = used > size->used ? used : size->used;
    if (size->slots >= TRAIN_HOLE ||
        words->count >= TRAIN_HOLE) { /* LCOV_EXCL_BR_LINE: the offsets of so many words take 32 GiB */
        return error_set(
            err, PYBPE_ERR_LIMIT, 0,
            "%llu bytes of distinct words are too many to train on; the limit is 4 GiB: train on a sample of "
            "the corpus, or drop the words that occur once",
            (unsigned long long)size->slots);
    }
    return PYBPE_OK;
}

/* The words that matter, by descending count: a counting sort for small counts, since nearly all are small. Sets *used
   to their number. */
static int words_sort(const word_text *text, uint32_t *sorted, size_t *used, const pybpe_allocator *mem,
                      pybpe_error *err) {
    uint32_t *starts = mem_alloc_zeroed(mem, SMALL_COUNTS + 1, sizeof *starts);
    PYBPE_TRY(memory_check(starts, "the sorting of words", (SMALL_COUNTS + 1) * sizeof *starts, err));
    uint32_t end = 0, large_count = 0;
    for (size_t i = 0; i < text->words->count; i++) {
        if (word_matters(text, i)) {
            starts[text->counts[i] < SMALL_COUNTS ? text->counts[i] : SMALL_COUNTS] += 1;
            end += 1;
        }
    }
    counted_word *large = mem_alloc_array(mem, (size_t)starts[SMALL_COUNTS] + 1, sizeof *large);
    if (large == NULL) {
        mem_free(mem, starts);
        return error_set_memory(err, "the sorting of words", end * sizeof *large);
    }
    *used = end;
    for (size_t count = 1; count < SMALL_COUNTS; count++) { /* the rarest words are at the end of the list */
        end -= starts[count];
        starts[count] = end;
    }
    for (size_t i = 0; i < text->words->count; i++) {
        if (word_matters(text, i) && text->counts[i] < SMALL_COUNTS) {
            sorted[starts[text->counts[i]]++] = (uint32_t)i;
        } else if (word_matters(text, i)) {
            large[large_count++] = (counted_word){text->counts[i], (uint32_t)i};
        }
    }
    qsort(large, large_count, sizeof *large, counted_word_compare);
    for (uint32_t i = 0; i < large_count; i++) {
        sorted[i] = large[i].word;
    }
    mem_free(mem, large);
    mem_free(mem, starts);
    return PYBPE_OK;
}

/* Lays out one word in the slots from t->slots on, as the base merges leave it, or as bytes if there are none, and a
   separator after it. */
static int word_lay_out(pybpe_trainer *t, const base_coder *base, const uint8_t *bytes, size_t n, pybpe_error *err) {
    const symbol_slots to = {(uint8_t *)t->ids.data + (size_t)t->ids.bytes * t->slots, t->ids.bytes};
    size_t count = n;
    if (base->encoder != NULL) {
        PYBPE_TRY(pybpe_encode_words(base->encoder, base->cache, bytes, &n, 1, to.data, to.bytes, n, &count, err));
    }
    for (size_t i = 0; i < count; i++) {
        slot_set(to, i, base->encoder == NULL ? bytes[i] : id_at(to.data, to.bytes, i));
    }
    slot_set(to, count, TRAIN_SEP);
    t->slots += (uint32_t)count + 1;
    return PYBPE_OK;
}

/* Makes room for the runs of a text, one per count that occurs, and for the end after them. */
static int runs_room(pybpe_trainer *t, const word_text *text, const uint32_t *sorted, size_t used, pybpe_error *err) {
    size_t runs = t->runs_count + 1;
    for (size_t i = 0; i < used; i++) {
        runs += i == 0 || text->counts[sorted[i]] != text->counts[sorted[i - 1]];
    }
    run *grown = mem_resize_array(&t->mem, t->runs, runs, sizeof *t->runs);
    PYBPE_TRY(memory_check(grown, "the counts of words", runs * sizeof *t->runs, err));
    t->runs = grown;
    return PYBPE_OK;
}

static int layout_fill(pybpe_trainer *t, const uint32_t *sorted, size_t used, const base_coder *base,
                       const word_text *text, uint32_t number, pybpe_error *err) {
    const pybpe_strings *words = text->words;
    int code = PYBPE_OK;
    for (size_t i = 0; i < used && code == PYBPE_OK; i++) {
        uint64_t count = text->counts[sorted[i]];
        if (i == 0 || count != text->counts[sorted[i - 1]]) {
            t->runs[t->runs_count++] = (run){t->slots, number, count, count};
        }
        code = word_lay_out(t, base, string_at(words, sorted[i]), (size_t)word_length(words, sorted[i]), err);
    }
    t->runs[t->runs_count] = (run){.start = t->slots};
    return code;
}

/* Lays out all texts. `sorted` has room for the words of any. */
static int texts_lay_out(pybpe_trainer *t, const word_text *texts, size_t texts_count, uint32_t *sorted,
                         const base_coder *base, pybpe_error *err) {
    slot_set(t->ids, 0, TRAIN_SEP);
    t->slots = 1;
    int code = PYBPE_OK;
    for (size_t i = 0; i < texts_count && code == PYBPE_OK; i++) {
        size_t used;
        code = words_sort(&texts[i], sorted, &used, &t->mem, err);
        code = code == PYBPE_OK ? runs_room(t, &texts[i], sorted, used, err) : code;
        code = code == PYBPE_OK ? layout_fill(t, sorted, used, base, &texts[i], (uint32_t)i, err) : code;
    }
    return code;
}

int train_words_lay_out(pybpe_trainer *t, const word_text *texts, size_t texts_count, const pybpe_train_config *config,
                        pybpe_error *err) {
    words_size size = {1, 0, 0};
    int code = PYBPE_OK;
    for (size_t i = 0; i < texts_count && code == PYBPE_OK; i++) {
        code = words_measure(&texts[i], &size, err);
    }
    if (code != PYBPE_OK) {
        return code;
    }
    const bool narrow = t->vocab_size < UINT16_MAX && t->tokens_count < UINT16_MAX;
    t->ids.bytes = narrow ? 2 : 4;
    uint32_t *sorted = mem_alloc_array(&t->mem, size.used + 1, sizeof *sorted);
    if (sorted == NULL || !mem_table_alloc(&t->ids_table, &t->mem, (size_t)size.slots, (size_t)t->ids.bytes)) {
        mem_free(&t->mem, sorted);
        return error_set_memory(err, "the words of a training", (size_t)size.slots * (size_t)t->ids.bytes);
    }
    t->ids.data = t->ids_table.data;
    base_coder base;
    code = base_coder_new(&base, t, config, err);
    if (code == PYBPE_OK) {
        code = texts_lay_out(t, texts, texts_count, sorted, &base, err);
        base_coder_free(&base);
    }
    mem_free(&t->mem, sorted);
    return code;
}
