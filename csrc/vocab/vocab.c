/*
Vocabularies: tokens, merges, specials and settings, which a caller passes and gets back as a spec.

    vocab_index.c       finds tokens by their bytes; checks everything but the merges
    vocab_merges.c      checks the merges, and finds what they make
    vocab_recover.c     recovers merges from the order of ids, for vocabularies without merges
    vocab.h             how the others make one, and how errors name a position in a spec or in a file
    tokenizer_json.c    from the large parts of a tokenizer.json; llmc/tokenizer_bin_read.c does it from a tokenizer.bin
    tokenizer_json_read.c   from a whole tokenizer.json
    tiktoken_read.c     from the lines of a .tiktoken file
    decode.c            ids -> bytes
*/
#include "vocab/vocab.h"

void pybpe_vocab_free(pybpe_vocab *v) {
    if (v == NULL) {
        return;
    }
    pybpe_allocator mem = v->mem;
    mem_free(&mem, v->bytes);
    mem_free(&mem, v->offsets);
    mem_free(&mem, v->records);
    mem_free(&mem, v->lengths);
    mem_free(&mem, v->merges);
    mem_free(&mem, v->merged);
    mem_free(&mem, v->specials);
    mem_free(&mem, v->special_flags);
    mem_free(&mem, v->custom);
    mem_free(&mem, v->ordinary_index.slots);
    mem_free(&mem, v->special_index.slots);
    mem_free(&mem, v);
}

int special_texts_check(const pybpe_strings *texts, const pybpe_vocab_spec *spec, pybpe_error *err) {
    int code = strings_check(texts, "special tokens", err);
    code = code == PYBPE_OK ? array_check(spec->specials, spec->specials_count, "the specials", err) : code;
    if (code == PYBPE_OK && texts->count != spec->specials_count) {
        code = error_set(err, PYBPE_ERR_VALUE, 0, "%zu texts of special tokens; expected one for each of the %zu ids",
                         texts->count, spec->specials_count);
    }
    return code;
}

int vocab_alloc(pybpe_vocab **out, const vocab_sizes *sizes, const pybpe_allocator *mem, pybpe_error *err) {
    size_t bytes;
    if (sizes->tokens >= PYBPE_NO_ID || sizes->merges > UINT32_MAX ||
        sizes->custom > UINT32_MAX) { /* LCOV_EXCL_BR_LINE: more than 4 GiB */
        return error_set(err, PYBPE_ERR_LIMIT, 0,
                         "a vocabulary may have up to 4,294,967,294 tokens and as many merges");
    }
    if (!size_add(sizes->bytes, VOCAB_PADDING, &bytes)) {
        return error_set_memory(err, "the tokens of a vocabulary", sizes->bytes);
    }
    pybpe_vocab *v = mem_alloc(mem, sizeof *v);
    PYBPE_TRY(memory_check(v, "a vocabulary", sizeof *v, err));
    *v = (pybpe_vocab){.mem = mem_of(mem),
                       .count = sizes->tokens,
                       .merges_count = sizes->merges,
                       .specials_count = sizes->specials,
                       .seed = hash_seed_draw()};
    /* One extra element where a part may be empty, since a NULL result means that the allocation failed. */
    v->bytes = mem_alloc(mem, bytes);
    v->offsets = mem_alloc_array(mem, sizes->tokens + 1, sizeof *v->offsets);
    v->records = mem_alloc_array(mem, sizes->tokens + 1, sizeof *v->records);
    v->lengths = mem_alloc(mem, sizes->tokens + 1);
    v->merges = mem_alloc_array(mem, sizes->merges + 1, 2 * sizeof *v->merges);
    v->merged = mem_alloc_array(mem, sizes->merges + 1, sizeof *v->merged);
    v->specials = mem_alloc_array(mem, sizes->specials + 1, sizeof *v->specials);
    v->custom = sizes->has_custom ? mem_alloc(mem, sizes->custom + 1) : NULL;
    v->special_flags = sizes->has_flags ? mem_alloc(mem, sizes->specials + 1) : NULL;
    if (v->bytes == NULL || v->offsets == NULL || v->records == NULL || v->lengths == NULL || v->merges == NULL ||
        v->merged == NULL || v->specials == NULL || (sizes->has_custom && v->custom == NULL) ||
        (sizes->has_flags && v->special_flags == NULL)) {
        pybpe_vocab_free(v);
        return error_set_memory(err, "the parts of a vocabulary", bytes);
    }
    memset(v->bytes + sizes->bytes, 0, VOCAB_PADDING);
    v->offsets[0] = 0;
    *out = v;
    return PYBPE_OK;
}

static vocab_sizes spec_sizes(const pybpe_vocab_spec *spec) {
    return (vocab_sizes){.tokens = spec->tokens.count,
                         .bytes = (size_t)strings_total(&spec->tokens),
                         .merges = spec->merges_count,
                         .specials = spec->specials_count,
                         .custom = spec->custom != NULL ? strlen(spec->custom) : 0,
                         .has_custom = spec->custom != NULL,
                         .has_flags = spec->special_flags != NULL};
}

void vocab_copy_settings(pybpe_vocab *v, const pybpe_vocab_spec *spec) {
    if (spec->custom != NULL) {
        memcpy(v->custom, spec->custom, strlen(spec->custom) + 1);
    }
    if (spec->special_flags != NULL && spec->specials_count > 0) {
        memcpy(v->special_flags, spec->special_flags, spec->specials_count);
    }
    v->eot_id = spec->eot_id;
    v->pattern = spec->pattern;
    v->normalizer = spec->normalizer;
    v->whole_words = spec->whole_words;
    v->prefix_space = spec->prefix_space;
}

static void vocab_copy_spec(pybpe_vocab *v, const pybpe_vocab_spec *spec, const vocab_sizes *sizes) {
    if (sizes->tokens > 0) {
        memcpy(v->offsets, spec->tokens.offsets, (sizes->tokens + 1) * sizeof *v->offsets);
    }
    if (sizes->bytes > 0) {
        memcpy(v->bytes, spec->tokens.bytes, sizes->bytes);
    }
    if (sizes->merges > 0) {
        memcpy(v->merges, spec->merges, 2 * sizes->merges * sizeof *v->merges);
    }
    if (sizes->specials > 0) {
        memcpy(v->specials, spec->specials, sizes->specials * sizeof *v->specials);
    }
    vocab_copy_settings(v, spec);
}

int pybpe_vocab_new(pybpe_vocab **out, const pybpe_vocab_spec *spec, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    PYBPE_TRY(strings_check(&spec->tokens, "tokens", err));
    PYBPE_TRY(array_check(spec->merges, spec->merges_count, "the merges", err));
    PYBPE_TRY(array_check(spec->specials, spec->specials_count, "the specials", err));
    const vocab_sizes sizes = spec_sizes(spec);
    pybpe_vocab *v;
    PYBPE_TRY(vocab_alloc(&v, &sizes, mem, err));
    vocab_copy_spec(v, spec, &sizes);
    const vocab_source from = source_spec();
    int code = vocab_index(v, &from, err);
    code = code == PYBPE_OK ? vocab_resolve_merges(v, &from, err) : code;
    if (code != PYBPE_OK) {
        pybpe_vocab_free(v);
        return code;
    }
    *out = v;
    return PYBPE_OK;
}

pybpe_vocab_spec pybpe_vocab_get_spec(const pybpe_vocab *v) {
    return (pybpe_vocab_spec){.tokens = {v->bytes, v->offsets, v->count},
                              .merges = v->merges,
                              .merges_count = v->merges_count,
                              .specials = v->specials,
                              .specials_count = v->specials_count,
                              .eot_id = v->eot_id,
                              .pattern = v->pattern,
                              .normalizer = v->normalizer,
                              .whole_words = v->whole_words,
                              .prefix_space = v->prefix_space,
                              .special_flags = v->special_flags,
                              .custom = v->custom};
}
