/*
Making an encoder from a vocabulary.
*/
#include "encode/encode.h"
#include "encode/encode_stages.h"
#include "special/special.h"

static int add_merges(merge_table *t, const pybpe_vocab *v, const pybpe_allocator *mem, pybpe_error *err) {
    const size_t ahead = 16;
    int code = merge_table_new(t, v->count, v->merges_count, v->byte_ids, mem, err);
    for (size_t i = 0; code == PYBPE_OK && i < v->merges_count; i++) {
        if (i + ahead < v->merges_count) {
            merge_table_prefetch(t, v->merges[2 * (i + ahead)], v->merges[2 * (i + ahead) + 1]);
        }
        uint32_t left = v->merges[2 * i];
        uint32_t right = v->merges[2 * i + 1];
        merge_table_add(t, left, right, (uint32_t)i, v->merged[i]);
        if (vocab_token_length(v, left) == 1 && vocab_token_length(v, right) == 1) {
            merge_table_add_bytes(t, *vocab_token(v, left), *vocab_token(v, right), (uint32_t)i);
        }
    }
    return code;
}

/* A matcher for the specials of v. */
static int make_specials(pybpe_specials **out, const pybpe_vocab *v, const pybpe_allocator *mem, pybpe_error *err) {
    size_t total = 0;
    for (size_t i = 0; i < v->specials_count; i++) {
        total += vocab_token_length(v, v->specials[i]);
    }
    uint8_t *bytes = mem_alloc(mem, total);
    uint64_t *offsets = mem_alloc_array(mem, v->specials_count + 1, sizeof *offsets);
    int code = bytes == NULL || offsets == NULL ? error_set_memory(err, "the specials of an encoder", total) : PYBPE_OK;
    if (code == PYBPE_OK) {
        offsets[0] = 0;
        for (size_t i = 0; i < v->specials_count; i++) {
            size_t n = vocab_token_length(v, v->specials[i]);
            memcpy(bytes + offsets[i], vocab_token(v, v->specials[i]), n);
            offsets[i + 1] = offsets[i] + n;
        }
        const pybpe_strings strings = {bytes, offsets, v->specials_count};
        code = pybpe_specials_new(out, &strings, v->specials, v->special_flags, mem, err);
    }
    mem_free(mem, bytes);
    mem_free(mem, offsets);
    return code;
}

/* Frees the parts of an encoder with one stage, and the encoder. */
static void encoder_unmake(pybpe_encoder *e) {
    if (e != NULL) {
        pybpe_allocator mem = e->mem;
        merge_table_free(&e->table, &mem);
        boundary_table_free(&e->boundaries, &mem);
        whole_table_free(&e->whole, &mem);
        mem_free(&mem, e->reached);
        pybpe_specials_free(e->specials);
        pybpe_pretok_free(e->named);
        mem_free(&mem, e);
    }
}

static int encoder_fill(pybpe_encoder *e, const pybpe_pretok *p, pybpe_error *err) {
    const pybpe_vocab *v = e->vocab;
    const pybpe_allocator *mem = &e->mem;
    const pybpe_vocab_spec spec = pybpe_vocab_get_spec(v);
    PYBPE_TRY(add_merges(&e->table, v, mem, err));
    PYBPE_TRY(apply_chars_fill(&e->table, &spec, mem, err));
    PYBPE_TRY(boundary_table_new(&e->boundaries, v, mem, err));
    PYBPE_TRY(v->whole_words ? whole_table_new(&e->whole, v, &e->table, mem, err) : PYBPE_OK);
    PYBPE_TRY(reached_new(e, err));
    PYBPE_TRY(v->specials_count > 0 ? make_specials(&e->specials, v, mem, err) : PYBPE_OK);
    if (p == NULL && v->pattern != PYBPE_PATTERN_CUSTOM) {
        PYBPE_TRY(pybpe_pretok_new(&e->named, v->pattern, mem, err));
    } else if (p == NULL && v->custom != NULL) {
        const int code = pybpe_pretok_new_regex(&e->named, v->custom, mem, err);
        PYBPE_TRY(code == PYBPE_ERR_VALUE ? PYBPE_OK : code); /* then it takes words */
    }
    e->pretok = p != NULL ? p : e->named;
    return PYBPE_OK;
}

/* Makes an encoder that applies all merges at once. */
static int encoder_make(pybpe_encoder **out, const pybpe_vocab *v, const pybpe_pretok *p, const pybpe_allocator *mem,
                        pybpe_error *err) {
    *out = NULL;
    pybpe_encoder *e = mem_alloc(mem, sizeof *e);
    PYBPE_TRY(memory_check(e, "an encoder", sizeof *e, err));
    unsigned byte;
    *e = (pybpe_encoder){
        .mem = mem_of(mem), .vocab = v, .narrow = v->count <= 65536, .lacks_bytes = vocab_lacks_byte(v, &byte)};
    const int code = encoder_fill(e, p, err);
    if (code != PYBPE_OK) {
        encoder_unmake(e);
        return code;
    }
    *out = e;
    return PYBPE_OK;
}

int encoder_divide(pybpe_encoder *e, size_t merges, pybpe_error *err) {
    int code = stages_new(&e->stages, e->vocab, merges, &e->mem, err);
    if (code == PYBPE_OK && e->stages != NULL) {
        code = encoder_make(&e->stages->first, &e->stages->vocab, NULL, &e->mem, err);
    }
    return code;
}

void encoder_unite(pybpe_encoder *e) {
    if (e->stages != NULL) {
        encoder_unmake(e->stages->first);
        stages_free(e->stages, &e->mem);
        e->stages = NULL;
    }
}

void pybpe_encoder_free(pybpe_encoder *e) {
    if (e != NULL) {
        encoder_unite(e);
        encoder_unmake(e);
    }
}

int pybpe_encoder_new(pybpe_encoder **out, const pybpe_vocab *v, const pybpe_pretok *p, int flags,
                      const pybpe_allocator *mem, pybpe_error *err) {
    int code = encoder_make(out, v, p, mem, err);
    if (code == PYBPE_OK && (*out)->whole.bits == NULL) {
        code = encoder_divide(*out, stages_first_merges(v), err);
    }
    if (code != PYBPE_OK) {
        pybpe_encoder_free(*out);
        *out = NULL;
        return code;
    }
    const bool changes = v->normalizer != PYBPE_NORMALIZER_NONE || v->prefix_space;
    (*out)->prepares = changes && (flags & PYBPE_ENCODER_NORMALIZED) == 0;
    return PYBPE_OK;
}

const pybpe_specials *pybpe_encoder_specials(const pybpe_encoder *e) { return e->specials; }

const pybpe_pretok *pybpe_encoder_pretok(const pybpe_encoder *e) { return e->pretok; }
