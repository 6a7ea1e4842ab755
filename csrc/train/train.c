/*
Training: words and counts -> merges.

The textbook loop recounts all pairs for every merge. Here a pair has its count and a list of the places where it
occurs, and a merge touches only those places and their neighbors. The parts, in the order in which they work:

    train_tokens.c   tokens and their bytes, and the order of equally frequent pairs
    train_rules.c    the rules that forbid merges
    train_words.c    words -> symbols, after the merges of the tokenizer that training continues
    train_compact.c  compacts the symbols before a scan
    train_scan*.c    symbols -> frequent pairs with their places
    train_pairs.c    the pairs: a hash table, and the heap that gives the most frequent one
    train_merge.c    one merge, everywhere
    train_parity.c   which language the next merge helps, if there are several
    train.c          the trainer, and the loop
*/
#include "train/train_parity.h"

static int config_check(const pybpe_train_config *config, pybpe_error *err) {
    if (config->vocab_size < 256) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "vocab_size %u is too small: the 256 bytes are always tokens",
                         config->vocab_size);
    }
    if (config->vocab_size >= TRAIN_HOLE / 2) {
        return error_set(err, PYBPE_ERR_LIMIT, 0, "vocab_size %u is too large", config->vocab_size);
    }
    if (config->max_token_length < 1) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "max_token_length must be at least 1");
    }
    if (config->tie_break < PYBPE_TIE_LEXICOGRAPHIC || config->tie_break > PYBPE_TIE_RUSTBPE) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "tie_break %d is not a pybpe_tie_break", config->tie_break);
    }
    if ((config->rules & ~(uint32_t)(PYBPE_RULE_WHOLE_CHARACTERS | PYBPE_RULE_SUPERWORDS)) != 0) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "rules %u is not a sum of pybpe_train_rule", config->rules);
    }
    return array_check(config->base_merges, config->base_merges_count, "base_merges", err);
}

static int trainer_init(pybpe_trainer *t, const word_text *texts, size_t texts_count, const pybpe_train_config *config,
                        pybpe_error *err) {
    pair_order *order = config->tie_break == PYBPE_TIE_LEXICOGRAPHIC ? order_lexicographic : order_ids;
    PYBPE_TRY(pair_table_init(&t->pairs, &t->mem, order, t, t->languages_count, err));
    PYBPE_TRY(train_tokens_init(t, err));
    PYBPE_TRY(train_base_apply(t, config, err));
    return train_words_lay_out(t, texts, texts_count, config, err);
}

/* Returns a trainer with these settings that must still be initialized, or NULL. */
static pybpe_trainer *trainer_alloc(const pybpe_train_config *config, const pybpe_allocator *mem, pybpe_error *err) {
    pybpe_trainer *t = mem_alloc_zeroed(mem, 1, sizeof *t);
    if (t == NULL) {
        error_set_memory(err, "a trainer", sizeof *t);
        return NULL;
    }
    t->mem = mem_of(mem);
    t->vocab_size = config->vocab_size;
    t->max_token_length = config->max_token_length;
    t->min_frequency = config->min_frequency > 0 ? config->min_frequency : 1;
    t->rules = config->rules;
    t->huggingface_bytes = config->tie_break == PYBPE_TIE_HUGGINGFACE;
    t->seed = hash_seed_draw();
    t->alias = UINT32_MAX;
    return t;
}

/* Returns a finished trainer, or frees it if `code` is an error. */
static int trainer_finish(pybpe_trainer **out, pybpe_trainer *t, int code) {
    if (code != PYBPE_OK) {
        pybpe_trainer_free(t);
        return code;
    }
    *out = t;
    return PYBPE_OK;
}

int pybpe_trainer_new(pybpe_trainer **out, const pybpe_strings *words, const uint64_t *counts,
                      const pybpe_train_config *config, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    PYBPE_TRY(config_check(config, err));
    PYBPE_TRY(strings_check(words, "words", err));
    PYBPE_TRY(array_check(counts, words->count, "the counts of words", err));
    pybpe_trainer *t = trainer_alloc(config, mem, err);
    if (t == NULL) {
        return PYBPE_ERR_MEMORY;
    }
    const word_text text = {words, counts};
    int code = trainer_init(t, &text, 1, config, err);
    code = code == PYBPE_OK ? train_scan_start(t, true, err) : code;
    return trainer_finish(out, t, code);
}

static int languages_check(const pybpe_language *languages, size_t count, pybpe_error *err) {
    if (count < 1 || count >= TRAIN_HOLE / 2) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "%zu languages: there must be at least one", count);
    }
    int code = array_check(languages, count, "the languages", err);
    for (size_t i = 0; i < count && code == PYBPE_OK; i++) {
        const pybpe_language *l = &languages[i];
        code = strings_check(&l->words, "words of a language", err);
        code = code == PYBPE_OK ? strings_check(&l->measured, "words of a development text", err) : code;
        if (code == PYBPE_OK) {
            code = array_check(l->counts, l->words.count, "the counts of a language's words", err);
        }
        if (code == PYBPE_OK) {
            code = array_check(l->measured_counts, l->measured.count, "the counts of a development text's words", err);
        }
    }
    return code;
}

static int languages_init(pybpe_trainer *t, const pybpe_language *languages, size_t count,
                          const pybpe_train_config *config, pybpe_error *err) {
    t->languages_count = count;
    t->languages = mem_alloc_zeroed(&t->mem, count, sizeof *t->languages);
    word_text *texts = mem_alloc_array(&t->mem, count, 2 * sizeof *texts);
    if (t->languages == NULL || texts == NULL) {
        mem_free(&t->mem, texts);
        return error_set_memory(err, "the languages of a training", count * (sizeof *texts + sizeof *t->languages));
    }
    for (size_t i = 0; i < count; i++) {
        texts[i] = (word_text){&languages[i].words, languages[i].counts};
        texts[count + i] = (word_text){&languages[i].measured, languages[i].measured_counts};
    }
    int code = trainer_init(t, texts, 2 * count, config, err);
    mem_free(&t->mem, texts);
    code = code == PYBPE_OK ? train_parity_start(t, languages, err) : code;
    return code == PYBPE_OK ? train_scan_start(t, false, err) : code;
}

int pybpe_trainer_new_parity(pybpe_trainer **out, const pybpe_language *languages, size_t count,
                             const pybpe_train_config *config, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    PYBPE_TRY(config_check(config, err));
    PYBPE_TRY(languages_check(languages, count, err));
    pybpe_trainer *t = trainer_alloc(config, mem, err);
    if (t == NULL) {
        return PYBPE_ERR_MEMORY;
    }
    return trainer_finish(out, t, languages_init(t, languages, count, config, err));
}

void pybpe_trainer_free(pybpe_trainer *t) {
    if (t == NULL) {
        return;
    }
    pybpe_allocator mem = t->mem;
    mem_table_free(&t->ids_table, &mem);
    mem_free(&mem, t->runs);
    mem_free(&mem, t->languages);
    train_tokens_free(t);
    mem_free(&mem, t->merges);
    train_scan_free(t);
    pair_table_free(&t->pairs);
    mem_free(&mem, t);
}

/* Merges the best pair, or lowers the threshold, or detects that nothing is left to do. */
static int merge_step(pybpe_trainer *t, size_t *budget, pybpe_error *err) {
    const bool ordinary = t->languages == NULL;
    uint32_t index = ordinary ? pair_heap_pop(&t->pairs, 0, t->threshold) : train_parity_next(t);
    if (index != PAIR_NONE) {
        size_t places = t->pairs.pairs[index].places_count;
        *budget -= places < *budget ? places : *budget;
        bool rescan = false;
        int code = train_merge_pair(t, index, &rescan, err);
        return code == PYBPE_OK && rescan ? train_scan_start(t, false, err) : code;
    }
    if (ordinary ? t->threshold <= t->min_frequency : !train_parity_lower(t)) {
        t->done = true;
        return PYBPE_OK;
    }
    return train_scan_start(t, ordinary, err);
}

int pybpe_trainer_step(pybpe_trainer *t, size_t budget, int *done, pybpe_error *err) {
    if (t->failed != PYBPE_OK) {
        return error_set_failed(err, t->failed, "this trainer");
    }
    int code = PYBPE_OK;
    budget = budget > 0 ? budget : 1;
    while (!t->done && budget > 0 && code == PYBPE_OK) {
        if (t->tokens_count >= t->vocab_size) {
            t->done = true;
        } else if (t->stage == STAGE_MERGE) {
            code = merge_step(t, &budget, err);
        } else {
            code = train_scan_step(t, &budget, err);
        }
    }
    if (code == PYBPE_OK) {
        *done = t->done;
    }
    t->failed = code;
    return code;
}

size_t pybpe_trainer_merges(const pybpe_trainer *t, const uint32_t **merges) {
    *merges = t->merges;
    return t->merges_count;
}

uint32_t pybpe_trainer_tokens(const pybpe_trainer *t) { return t->tokens_count; }
