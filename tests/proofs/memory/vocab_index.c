/*
csrc/vocab/vocab_index.c and csrc/vocab/vocab_merges.c: what is made of the tokens of a tokenizer.bin or a tokenizer.json, with hash
tables of any content. tokenizer_bin.c and tokenizer_json.c are about reading the tokens.
*/
#include "any_entropy.h"

#include <base/base.c>
#include <pretok/pattern.c>
#include <vocab/vocab.c>
#include <vocab/vocab_index.c>
#include <vocab/vocab_merges.c>

enum { TOKENS = 4, BYTES = 20, SLOTS = 8, ID_MASK = 7 };

static const vocab_source nowhere = {.is_file = true};
static pybpe_vocab vocab; /* one for all: CBMC takes long for a structure of this size that is local */

/* n tokens with these many bytes together. Some have no bytes: their ids are unused. */
static pybpe_vocab *any_vocab(size_t n, size_t bytes) {
    static uint64_t offsets[TOKENS + 1];
    static uint32_t specials[TOKENS];
    static token_record records[TOKENS + 1];
    static uint8_t lengths[TOKENS + 1];
    for (size_t id = 0; id < n; id++) {
        offsets[id + 1] = id + 1 == n ? bytes : any_between(offsets[id], bytes);
        specials[id] = (uint32_t)any_between(0, any_bool() ? TOKENS : UINT32_MAX);
    }
    vocab = (pybpe_vocab){.mem = mem_of(NULL), .offsets = offsets, .specials = specials, .count = n};
    vocab.specials_count = (size_t)any_between(0, n);
    vocab.bytes = any_bytes(bytes + VOCAB_PADDING);
    vocab.records = records;
    vocab.lengths = lengths;
    fill_records(&vocab);
    return &vocab;
}

/* An index of these tokens that is not full. */
static void any_index(token_index *index) {
    static uint32_t slots[SLOTS];
    for (size_t i = 0; i < SLOTS; i++) {
        const uint32_t id = (uint32_t)any_between(0, vocab.count);
        slots[i] = id > 0 ? id | ((uint32_t)any_u64() & ~(uint32_t)ID_MASK) : 0;
    }
    slots[any_between(0, SLOTS - 1)] = 0;
    *index = (token_index){slots, SLOTS - 1, ID_MASK};
}

/* The records of n tokens are read from their bytes and the padding. */
void prove_records(size_t n) {
    pybpe_vocab *v = any_vocab(n, BYTES);
    v->records = (token_record *)any_bytes((n + 1) * sizeof *v->records);
    v->lengths = any_bytes(n + 1);
    fill_records(v);
    CHECK(v->records[n].length == RECORD_NONE && v->lengths[n] == RECORD_NONE);
    free(v->records);
    free(v->lengths);
    free(v->bytes);
}

/* Any settings are accepted or refused. */
void prove_settings(size_t n) {
    pybpe_vocab *v = any_vocab(n, BYTES);
    char custom[2] = {(char)any_bool(), 0};
    v->custom = any_bool() ? custom : NULL;
    v->pattern = (int32_t)(uint32_t)(any_bool() ? any_u64() : any_between(0, 5));
    v->normalizer = (int32_t)(uint32_t)(any_bool() ? any_u64() : any_between(0, 2));
    v->whole_words = (int32_t)(uint32_t)(any_bool() ? any_u64() : any_between(0, 1));
    v->eot_id = (uint32_t)(any_bool() ? any_u64() : any_between(0, n));
    if (check_settings(v, &nowhere, NULL) == PYBPE_OK) {
        CHECK(v->eot_id == PYBPE_NO_ID || v->eot_id < n);
        CHECK(v->pattern != PYBPE_PATTERN_CUSTOM || v->custom != NULL);
    }
    free(v->bytes);
}

/* An index for any number of tokens has at least twice as many slots, and room for the ids in each. Random draws take up to n tokens. */
void prove_index(size_t n) {
#if defined(PROVE)
    n = (size_t)any_between(0, UINT32_MAX);
#endif
    const pybpe_allocator mem = mem_of(NULL);
    token_index index;
    if (index_new(&index, n, n, &mem, NULL) == PYBPE_OK) {
        CHECK(index.id_mask >= n && (index.id_mask & (index.id_mask + 1)) == 0);
        CHECK(index.mask > 0 && index.mask + 1 >= 2 * n);
        CHECK((index.mask & (index.mask + 1)) == 0);
        check_readable(index.slots, (index.mask + 1) * sizeof *index.slots);
        free(index.slots);
    }
}

uint64_t any_hash(uint64_t a, uint64_t b) { return any_u64() ^ a ^ b; }

/* The hash of a token of n bytes is read from them, and from what is readable after them. */
void prove_hash(size_t n) {
    size_t more = any_bool() ? VOCAB_PADDING : 0;
    uint8_t *bytes = any_bytes(n + more);
    vocab.seed = (hash_seed){any_u64(), any_u64()};
    (void)vocab_key(&vocab, bytes, n, bytes + n + more);
    free(bytes);
}

token_key any_key(const pybpe_vocab *v, const uint8_t *bytes, size_t n, const uint8_t *end) {
    (void)v;
    check_readable(bytes, n);
    check_readable(end, 0);
    return (token_key){.bytes = bytes, .n = n, .word = {any_u64(), any_u64()}, .hash = any_u64()};
}

/* The search for any bytes in an index that is not full ends in one of its slots. */
void prove_slot(size_t n) {
    pybpe_vocab *v = any_vocab(TOKENS, BYTES);
    uint8_t *bytes = any_bytes(n);
    any_index(&v->ordinary_index);
    uint32_t *slots = v->ordinary_index.slots;
    token_key key = vocab_key(v, bytes, n, bytes + n);
    key.hash = any_u64();
    uint32_t *slot = index_slot(v, &v->ordinary_index, &key);
    CHECK(slot >= slots && slot < slots + SLOTS);
    CHECK(*slot == 0 || vocab_token_length(v, slot_id(&v->ordinary_index, *slot)) == n);
    free(bytes);
    free(v->bytes);
}

/* What that shows. */
uint32_t *any_slot(const pybpe_vocab *v, const token_index *index, const token_key *key) {
    size_t place = (size_t)any_between(0, SLOTS - 1), empty = 0;
    CHECK(key->n > 0 && index->mask + 1 == SLOTS);
    check_readable(key->bytes, key->n);
    for (size_t i = 0; i < SLOTS; i++) {
        CHECK((index->slots[i] & index->id_mask) <= v->count);
        empty += index->slots[i] == 0;
    }
    CHECK(empty > 0);
    return &index->slots[place];
}

/* What is found is a token. */
void prove_find(size_t n) {
    pybpe_vocab *v = any_vocab(TOKENS, BYTES);
    uint8_t *bytes = any_bytes(n);
    any_index(&v->ordinary_index);
    uint32_t id = pybpe_vocab_find(v, bytes, n, 0);
    CHECK(id == PYBPE_NO_ID || id < TOKENS);
    free(bytes);
    free(v->bytes);
}

/* Only ids of tokens are ordinary. */
void prove_ordinary(size_t n) {
    pybpe_vocab *v = any_vocab(n, BYTES);
    uint32_t id = (uint32_t)(any_bool() ? any_u64() : any_between(0, TOKENS));
    CHECK(!token_is_ordinary(v, id) || id < n);
    free(v->bytes);
}

bool any_ordinary(const pybpe_vocab *v, uint32_t id) {
    return any_bool() && id < v->count && vocab_token_length(v, id) > 0;
}

/* Indexes that can hold at most half as many tokens as they have slots. */
int any_index_new(token_index *index, size_t tokens, size_t ids, const pybpe_allocator *mem, pybpe_error *err) {
    static uint32_t slots[SLOTS];
    (void)mem;
    (void)err;
    CHECK(tokens <= ids && ids <= TOKENS);
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = 0;
    }
    *index = (token_index){slots, SLOTS - 1, ID_MASK};
    return any_bool() ? PYBPE_OK : PYBPE_ERR_MEMORY;
}

static void index_drop(token_index *index) {
#if !defined(PROVE)
    free(index->slots);
#else
    (void)index;
#endif
}

/* n tokens and any specials: the indexes that are made of them are not full. */
void prove_specials(size_t n) {
    pybpe_vocab *v = any_vocab(n, BYTES);
    if (index_specials(v, &nowhere, NULL) == PYBPE_OK) {
        for (size_t i = 0; i < v->specials_count; i++) {
            CHECK(v->specials[i] < n && (i == 0 || v->specials[i] > v->specials[i - 1]));
        }
    }
    index_drop(&v->special_index);
    free(v->bytes);
}

void prove_tokens(size_t n) {
    pybpe_vocab *v = any_vocab(n, BYTES);
    (void)index_ordinary(v, &nowhere, NULL);
    for (size_t byte = 0; byte < 256; byte++) {
        CHECK(v->byte_ids[byte] == PYBPE_NO_ID || v->byte_ids[byte] < n);
    }
    index_drop(&v->ordinary_index);
    free(v->bytes);
}

/* Tokens are compared with the bytes of two others without reading after them. */
void prove_joined(size_t n) {
    pybpe_vocab *v = any_vocab(n, BYTES);
    (void)token_is_concatenation(v, (size_t)any_between(0, n - 1), (uint32_t)any_between(0, n - 1),
                                 (uint32_t)any_between(0, n - 1));
    free(v->bytes);
}

bool any_joined(const pybpe_vocab *v, size_t id, uint32_t left, uint32_t right) {
    CHECK(id < v->count && left < v->count && right < v->count);
    return any_bool();
}

uint32_t any_found(const pybpe_vocab *v, const uint8_t *bytes, size_t n, int special) {
    check_readable(bytes, n);
    CHECK(special == 0);
    return any_bool() ? (uint32_t)any_between(0, v->count - 1) : PYBPE_NO_ID;
}

/* Two tokens are joined only if the result fits in the memory for the longest token. */
void prove_join(size_t n) {
    pybpe_vocab *v = any_vocab(TOKENS, BYTES);
    any_index(&v->ordinary_index);
    uint8_t *room = any_bytes(n);
    uint32_t id = find_concatenation(v, (uint32_t)any_between(0, TOKENS - 1), (uint32_t)any_between(0, TOKENS - 1),
                                     (uint32_t)any_u64(), room, n);
    CHECK(id == PYBPE_NO_ID || id < TOKENS);
    free(room);
    free(v->bytes);
}

/* What that shows. */
uint32_t any_join(const pybpe_vocab *v, uint32_t left, uint32_t right, uint32_t guess, uint8_t *room, size_t longest) {
    (void)guess;
    CHECK(left < v->count && right < v->count);
    any_fill(room, longest);
    return any_bool() ? (uint32_t)any_between(0, v->count - 1) : PYBPE_NO_ID;
}

/* n merges of any ids are accepted only if each makes a token. */
void prove_merges(size_t n) {
    pybpe_vocab *v = any_vocab(TOKENS, BYTES);
    any_index(&v->ordinary_index);
    v->merges_count = n;
    v->merges = (uint32_t *)any_bytes(2 * n * sizeof *v->merges);
    v->merged = (uint32_t *)any_bytes(n * sizeof *v->merged);
    if (vocab_resolve_merges(v, &nowhere, NULL) == PYBPE_OK) {
        for (size_t i = 0; i < n; i++) {
            CHECK(v->merged[i] < TOKENS && v->merges[2 * i] < TOKENS && v->merges[2 * i + 1] < TOKENS);
        }
    }
    free(v->merges);
    free(v->merged);
    free(v->bytes);
}

PROOFS(PROOF(records, 0, 4, 2) PROOF(settings, 1, 2, 7) PROOF(index, 0, 0, 35)
           PROOF(hash, 1, 33, 4, "", "hash_mix:any_hash") PROOF(slot, 1, 4, 9, "", "memcmp:any_comparison")
               PROOF(find, 0, 2, 9, "", "vocab_key:any_key index_slot:any_slot") PROOF(ordinary, 1, 4, 2)
                   PROOF(specials, 1, 4, 9, "", "index_new:any_index_new vocab_key:any_key index_slot:any_slot")
                       PROOF(tokens, 1, 3, 9, "vocab_lacks_byte.0:257,prove_tokens.0:257",
                             "index_new:any_index_new vocab_key:any_key index_slot:any_slot "
                             "token_is_ordinary:any_ordinary") PROOF(joined, 1, 4, 9, "", "memcmp:any_comparison")
                           PROOF(join, 1, 20, 9, "",
                                 "token_is_concatenation:any_joined token_is_ordinary:any_ordinary "
                                 "pybpe_vocab_find:any_found memcpy:any_copy")
                               PROOF(merges, 0, 3, 9, "", "find_concatenation:any_join token_is_ordinary:any_ordinary"))
