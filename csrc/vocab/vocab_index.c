/*
The two indexes of a vocabulary, bytes -> id: one for the ordinary tokens and one for the specials, and the checks of
tokens, specials and settings that are made while filling them.
*/
#include "vocab/vocab.h"

static token_key vocab_key_of(const pybpe_vocab *v, uint32_t id) {
    return vocab_key(v, vocab_token(v, id), vocab_token_length(v, id), v->bytes + v->offsets[v->count] + VOCAB_PADDING);
}

static bool token_is(const pybpe_vocab *v, size_t id, const token_key *key) {
    if (key->n <= RECORD_MAX) { /* a record has the length and the bytes in one place */
        return record_is(&v->records[id], key->word);
    }
    return vocab_token_length(v, id) == key->n && memcmp(vocab_token(v, id), key->bytes, key->n) == 0;
}

/* An index of `tokens` of the ids below `ids`. */
static int index_new(token_index *index, size_t tokens, size_t ids, const pybpe_allocator *mem, pybpe_error *err) {
    size_t slots = 2;
    while (slots < 2 * tokens) {
        slots *= 2;
    }
    index->slots = mem_alloc_zeroed(mem, slots, sizeof *index->slots);
    index->mask = slots - 1;
    for (index->id_mask = 1; index->id_mask < ids;) {
        index->id_mask = 2 * index->id_mask + 1;
    }
    return memory_check(index->slots, "the index of a vocabulary", slots * 4, err);
}

/* The id in a slot, or PYBPE_NO_ID. */
static uint32_t slot_id(const token_index *index, uint32_t slot) { return (slot & index->id_mask) - 1; }

/* The slot that holds the token, or the empty one where it belongs. */
static uint32_t *index_slot(const pybpe_vocab *v, const token_index *index, const token_key *key) {
    const uint32_t tag = slot_tag(index, key->hash);
    size_t i = (size_t)key->hash & index->mask;
    while (index->slots[i] != 0 &&
           ((index->slots[i] & ~index->id_mask) != tag || !token_is(v, slot_id(index, index->slots[i]), key))) {
        i = (i + 1) & index->mask;
    }
    return &index->slots[i];
}

uint32_t vocab_find(const pybpe_vocab *v, const token_index *index, const token_key *key) {
    return key->n == 0 ? PYBPE_NO_ID : slot_id(index, *index_slot(v, index, key));
}

uint32_t pybpe_vocab_find(const pybpe_vocab *v, const uint8_t *bytes, size_t n, int special) {
    const token_key key = vocab_key(v, bytes, n, bytes + n);
    return vocab_find(v, special ? &v->special_index : &v->ordinary_index, &key);
}

static int check_settings(const pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    if (v->pattern != PYBPE_PATTERN_CUSTOM && pybpe_pattern_regex(v->pattern) == NULL) {
        return error_set(err, source_code(from), from->pattern,
                         "pattern %d is unknown; it comes from a newer version of pybpe, or is a mistake",
                         (int)v->pattern);
    }
    if ((v->pattern == PYBPE_PATTERN_CUSTOM) != (v->custom != NULL && v->custom[0] != '\0')) {
        return error_set(
            err, source_code(from), from->pattern, "pattern %d %s; only pattern 0 (custom) has one", (int)v->pattern,
            v->pattern == PYBPE_PATTERN_CUSTOM ? "has no regular expression" : "comes with a regular expression");
    }
    if (v->normalizer < PYBPE_NORMALIZER_NONE || v->normalizer > PYBPE_NORMALIZER_NFKC) {
        return error_set(err, source_code(from), from->normalizer,
                         "normalizer %d is unknown; expected 0 (none), 1 (NFC) or 2 (NFKC)", (int)v->normalizer);
    }
    if (v->whole_words != 0 && v->whole_words != 1) {
        return error_set(err, source_code(from), from->whole_words, "whole_words is %d; expected 0 or 1",
                         v->whole_words);
    }
    if (v->prefix_space != 0 && v->prefix_space != 1) {
        return error_set(err, source_code(from), 0, "prefix_space is %d; expected 0 or 1", (int)v->prefix_space);
    }
    if (v->eot_id != PYBPE_NO_ID && (v->eot_id >= v->count || vocab_token_length(v, v->eot_id) == 0)) {
        return error_set(err, source_code(from), from->eot, "the end-of-text id %u is not a token; there are %zu ids",
                         v->eot_id, v->count);
    }
    return PYBPE_OK;
}

bool token_is_ordinary(const pybpe_vocab *v, uint32_t id) {
    return id < v->count && vocab_token_length(v, id) > 0 &&
           special_find(v->specials, v->specials_count, id) == v->specials_count;
}

/* Checks the specials and fills their index. */
static int index_specials(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    int code = index_new(&v->special_index, v->specials_count, v->count, &v->mem, err);
    for (size_t i = 0; code == PYBPE_OK && i < v->specials_count; i++) {
        uint32_t id = v->specials[i];
        if (id >= v->count || vocab_token_length(v, id) == 0) {
            return error_set(err, source_code(from), source_at(from->specials, i),
                             "special %zu has id %u, which is not a token; there are %zu ids", i, id, v->count);
        }
        if (i > 0 && id <= v->specials[i - 1]) {
            return error_set(err, source_code(from), source_at(from->specials, i),
                             "special %zu has id %u, which is not greater than the one before it, %u", i, id,
                             v->specials[i - 1]);
        }
        const token_key key = vocab_key_of(v, id);
        uint32_t *slot = index_slot(v, &v->special_index, &key);
        if (*slot != 0) {
            return error_set(err, source_code(from), source_at(from->specials, i),
                             "specials %u and %u have the same bytes; specials must be distinct",
                             slot_id(&v->special_index, *slot), id);
        }
        *slot = slot_tag(&v->special_index, key.hash) | (id + 1);
    }
    return code;
}

bool vocab_lacks_byte(const pybpe_vocab *v, unsigned *byte) {
    for (*byte = 0; *byte < 256; *byte += 1) {
        if (v->byte_ids[*byte] == PYBPE_NO_ID) {
            return true;
        }
    }
    return false;
}

enum { INDEX_AHEAD = 16 };

/* Fills the index of ordinary tokens, and finds the tokens of the single bytes. */
static int index_ordinary(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    int code = index_new(&v->ordinary_index, v->count, v->count, &v->mem, err);
    bool has_byte = false;
    token_key keys[INDEX_AHEAD]; /* of the next tokens, whose slots are on their way from memory */
    memset(v->byte_ids, 0xFF, sizeof v->byte_ids);
    for (size_t id = 0; code == PYBPE_OK && id < v->count && id < INDEX_AHEAD; id++) {
        keys[id] = vocab_key_of(v, (uint32_t)id);
        vocab_prefetch(v, keys[id].hash);
    }
    for (size_t id = 0; code == PYBPE_OK && id < v->count; id++) {
        const token_key key = keys[id % INDEX_AHEAD];
        if (id + INDEX_AHEAD < v->count) {
            keys[id % INDEX_AHEAD] = vocab_key_of(v, (uint32_t)(id + INDEX_AHEAD));
            vocab_prefetch(v, keys[id % INDEX_AHEAD].hash);
        }
        if (!token_is_ordinary(v, (uint32_t)id)) {
            continue;
        }
        uint32_t *slot = index_slot(v, &v->ordinary_index, &key);
        if (*slot != 0) {
            return error_set(err, source_code(from), source_token(from, v, id),
                             "tokens %u and %zu have the same bytes; ordinary tokens must be distinct",
                             slot_id(&v->ordinary_index, *slot), id);
        }
        *slot = slot_tag(&v->ordinary_index, key.hash) | ((uint32_t)id + 1);
        if (key.n == 1) {
            has_byte = true;
            v->byte_ids[*key.bytes] = (uint32_t)id;
        }
    }
    unsigned byte;
    if (code == PYBPE_OK && vocab_lacks_byte(v, &byte) && (from->is_file || !has_byte)) {
        return error_set(err, source_code(from), from->is_file ? source_token(from, v, 0) : byte,
                         "no token is the single byte 0x%02X; a byte-level vocabulary has all 256", byte);
    }
    return code;
}

/* Lays out the short tokens for decoding. */
static void fill_records(pybpe_vocab *v) {
    for (size_t id = 0; id < v->count; id++) {
        size_t n = vocab_token_length(v, id);
        token_record *r = &v->records[id];
        *r = (token_record){.length = RECORD_NONE};
        if (n > 0 && n <= RECORD_MAX) {
            const word_key key = word_key_fast(vocab_token(v, id), n); /* the padding lets it read 16 bytes */
            store_u64(r->bytes, key.lo);
            store_u64((uint8_t *)r + 8, key.hi);
        }
        v->lengths[id] = r->length;
    }
    v->records[v->count] = (token_record){.length = RECORD_NONE};
    v->lengths[v->count] = RECORD_NONE;
}

/* Checks everything but the merges. */
int vocab_index(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    fill_records(v);
    PYBPE_TRY(check_settings(v, from, err));
    PYBPE_TRY(index_specials(v, from, err));
    return index_ordinary(v, from, err);
}
