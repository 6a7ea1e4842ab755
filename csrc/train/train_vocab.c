/*
From a trainer to a vocabulary: final ids for the trainer's tokens and for special tokens.

    trainer              0 ... 255         256 ...
    first           S S  0 ... 255         256 ...         S: the special tokens
    after bytes          0 ... 255   S S   256 ...
    last                 0 ... 255         256 ...   S S

The bytes are in ascending order, or in Hugging Face's order if ties were broken as in Hugging Face.
*/
#include "train/train.h"

/* The vocabulary while it is built, in the order of its final ids. */
typedef struct vocab_draft {
    const pybpe_trainer *t;
    const pybpe_strings *specials;
    uint32_t special_start; /* the first special's id */
    uint32_t byte_ids[256]; /* positions among the bytes */
    uint8_t *bytes;
    uint64_t *offsets;
    uint32_t *merges; /* pairs */
    uint32_t *special_ids;
    size_t count; /* tokens so far */
} vocab_draft;

static int draft_check(const pybpe_vocab_layout *config, pybpe_error *err) {
    int code = strings_check(&config->specials, "special tokens", err);
    for (size_t i = 0; code == PYBPE_OK && i < config->specials.count; i++) {
        if (config->specials.offsets[i] == config->specials.offsets[i + 1]) {
            code = error_set(err, PYBPE_ERR_VALUE, i, "special token %zu is empty: remove it", i);
        }
    }
    if (code == PYBPE_OK && config->eot != PYBPE_NO_ID && config->eot >= config->specials.count) {
        code = error_set(err, PYBPE_ERR_VALUE, 0, "eot is special token %u, but there are %zu", config->eot,
                         config->specials.count);
    }
    if (code == PYBPE_OK && config->specials.count >= PYBPE_NO_ID) { /* LCOV_EXCL_START: their offsets take 32 GiB */
        code = error_set(err, PYBPE_ERR_LIMIT, 0, "a vocabulary may have up to 4,294,967,294 tokens");
    } /* LCOV_EXCL_STOP */
    return code;
}

static int special_start_find(const pybpe_trainer *t, int place, uint32_t *start, pybpe_error *err) {
    switch (place) {
    case PYBPE_SPECIALS_FIRST:
        *start = 0;
        return PYBPE_OK;
    case PYBPE_SPECIALS_AFTER_BYTES:
        *start = 256;
        return PYBPE_OK;
    case PYBPE_SPECIALS_LAST:
        *start = t->tokens_count;
        return PYBPE_OK;
    default:
        return error_set(err, PYBPE_ERR_VALUE, 0, "special_ids %d is not a pybpe_special_ids", place);
    }
}

static bool draft_alloc(vocab_draft *d) {
    const pybpe_allocator *mem = &d->t->mem;
    const size_t tokens = (size_t)d->t->tokens_count + d->specials->count;
    d->bytes = mem_alloc(mem, d->t->token_bytes_count + (size_t)strings_total(d->specials));
    d->offsets = mem_alloc_array(mem, tokens + 1, sizeof *d->offsets);
    d->merges = mem_alloc_array(mem, d->t->merges_count + 1, 2 * sizeof *d->merges);
    d->special_ids = mem_alloc_array(mem, d->specials->count + 1, sizeof *d->special_ids);
    return d->bytes != NULL && d->offsets != NULL && d->merges != NULL && d->special_ids != NULL;
}

static void draft_free(vocab_draft *d) {
    const pybpe_allocator *mem = &d->t->mem;
    mem_free(mem, d->bytes);
    mem_free(mem, d->offsets);
    mem_free(mem, d->merges);
    mem_free(mem, d->special_ids);
}

static void draft_token(vocab_draft *d, const uint8_t *bytes, size_t n) {
    memcpy(d->bytes + d->offsets[d->count], bytes, n);
    d->offsets[d->count + 1] = d->offsets[d->count] + n;
    d->count++;
}

static void draft_specials(vocab_draft *d) {
    for (size_t i = 0; i < d->specials->count; i++) {
        const uint64_t *ends = &d->specials->offsets[i];
        d->special_ids[i] = (uint32_t)d->count;
        draft_token(d, d->specials->bytes + ends[0], (size_t)(ends[1] - ends[0]));
    }
}

/* The final id of one of the trainer's tokens. */
static uint32_t final_id(const vocab_draft *d, uint32_t id) {
    uint32_t place = id < 256 ? d->byte_ids[id] : id;
    return place < d->special_start ? place : place + (uint32_t)d->specials->count;
}

static void draft_fill(vocab_draft *d) {
    uint8_t bytes[256];
    for (unsigned byte = 0; byte < 256; byte++) {
        bytes[d->byte_ids[byte]] = (uint8_t)byte;
    }
    d->offsets[0] = 0;
    for (uint32_t i = 0; i < d->t->tokens_count; i++) {
        const token *made = &d->t->tokens[i];
        if (i == d->special_start) {
            draft_specials(d);
        }
        draft_token(d, i < 256 ? &bytes[i] : d->t->token_bytes + made->offset, made->length);
    }
    if (d->special_start == d->t->tokens_count) {
        draft_specials(d);
    }
    for (size_t i = 0; i < d->t->merges_count; i++) {
        d->merges[2 * i] = final_id(d, d->t->merges[3 * i]);
        d->merges[2 * i + 1] = final_id(d, d->t->merges[3 * i + 1]);
    }
}

int pybpe_trainer_vocab(pybpe_vocab **out, const pybpe_trainer *t, const pybpe_vocab_layout *config,
                        const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    vocab_draft d = {.t = t, .specials = &config->specials};
    PYBPE_TRY(t->failed == PYBPE_OK ? draft_check(config, err) : error_set_failed(err, t->failed, "this trainer"));
    PYBPE_TRY(special_start_find(t, config->special_ids, &d.special_start, err));
    train_byte_order(t, d.byte_ids);
    if (!draft_alloc(&d)) {
        draft_free(&d);
        return error_set_memory(err, "a vocabulary", t->token_bytes_count);
    }
    draft_fill(&d);
    const pybpe_vocab_spec spec = {.tokens = {d.bytes, d.offsets, d.count},
                                   .merges = d.merges,
                                   .merges_count = t->merges_count,
                                   .specials = d.special_ids,
                                   .specials_count = config->specials.count,
                                   .eot_id = config->eot == PYBPE_NO_ID ? PYBPE_NO_ID : d.special_ids[config->eot],
                                   .pattern = config->pattern,
                                   .normalizer = config->normalizer,
                                   .custom = config->custom};
    int code = pybpe_vocab_new(out, &spec, mem, err);
    draft_free(&d);
    return code;
}
