/*
csrc/vocab/tokenizer_json.c: the tokens and merges of a tokenizer.json. json.c shows what the functions of json.h return.
*/
#include "any_entropy.h"

#include <base/base.c>
#include <json/json.c>
#include <vocab/tokenizer_json.c>
#include <vocab/vocab.c>

enum { SPECIALS = 2 };

/* These are in other files. */
int vocab_index(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    return any_bool() ? PYBPE_OK : error_set(err, PYBPE_ERR_VALUE, source_at(from->merges, v->count), "any error");
}
int vocab_resolve_merges(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    return vocab_index(v, from, err);
}
uint32_t pybpe_vocab_find(const pybpe_vocab *v, const uint8_t *bytes, size_t n, int special) {
    (void)special;
    check_readable(bytes, n);
    return n > 0 && any_bool() ? (uint32_t)any_between(0, v->count - 1) : PYBPE_NO_ID;
}
uint32_t vocab_find(const pybpe_vocab *v, const token_index *index, const token_key *key) {
    CHECK(index == &v->ordinary_index);
    return pybpe_vocab_find(v, key->bytes, key->n, 0);
}

uint8_t any_peek(json *j) {
    CHECK(j->at <= j->end);
    j->at += any_between(0, (size_t)(j->end - j->at));
    return j->at < j->end ? *j->at : 0;
}

bool any_string(json *j, uint8_t *out, size_t *n) {
    CHECK(j->at <= j->end);
    size_t moved = (size_t)any_between(0, (size_t)(j->end - j->at));
    bool read = moved >= 2 && any_bool();
    j->at += moved;
    *n = read ? (size_t)any_between(0, moved - 2) : 0;
    any_fill(out, moved > 2 ? moved - 2 : 0);
    return read;
}

bool any_id(json *j, uint32_t limit, uint32_t *id) {
    CHECK(j->at <= j->end && limit > 0);
    size_t moved = (size_t)any_between(0, (size_t)(j->end - j->at));
    j->at += moved;
    *id = (uint32_t)any_between(0, limit - 1);
    return moved > 0 && any_bool();
}

/* The bytes that characters represent replace them, and are not more. */
void prove_bytes(size_t n) {
    int16_t byte_of[BYTE_LEVEL_END];
    byte_level_fill(byte_of);
    uint8_t *text = any_bytes(n);
    size_t length = n;
    bool read = byte_level_bytes(byte_of, text, &length);
    CHECK(length <= n && (!read || n == 0 || length > 0));
    free(text);
}

bool any_converted(const int16_t byte_of[BYTE_LEVEL_END], uint8_t *text, size_t *n) {
    (void)byte_of;
    any_fill(text, *n);
    bool read = any_bool();
    *n = read ? (size_t)any_between(*n > 0, *n) : *n;
    return read;
}

/* The specials that the caller passes: any ids, and texts of one byte. */
typedef struct specials {
    uint32_t ids[SPECIALS];
    uint8_t bytes[2 * SPECIALS];
    uint64_t offsets[SPECIALS + 1];
    pybpe_strings texts;
    pybpe_vocab_spec spec;
} specials;

static void any_specials(specials *s) {
    *s = (specials){.offsets = {0, 1, 2}};
    for (size_t i = 0; i < SPECIALS; i++) {
        s->ids[i] = any_bool() ? (uint32_t)any_between(0, 3) : (uint32_t)any_u64();
    }
    s->texts = (pybpe_strings){s->bytes, s->offsets, SPECIALS};
    s->spec = (pybpe_vocab_spec){.specials = s->ids, .specials_count = SPECIALS};
}

/* Tokens of a text of n bytes fit in the memory for them. */
void prove_tokens(size_t n) {
    specials known;
    uint8_t found[SPECIALS + 1] = {0};
    any_specials(&known);
    uint8_t *text = any_bytes(n);
    json_reader r = {.spec = &known.spec, .special_texts = &known.texts};
    r.bytes = any_bytes(n + READ_AHEAD + SPECIALS); /* as pybpe_vocab_new_json allocates these */
    r.tokens = (json_token *)any_bytes(most_tokens(n) * sizeof *r.tokens);
    r.found = found;
    json j = {text, text + n};
    (void)read_tokens(&r, &j, UINT32_C(1) << 24);
    CHECK(r.tokens_count <= most_tokens(n) && r.bytes_count <= n);
    free(text);
    free(r.bytes);
    free(r.tokens);
}

/* Any n tokens, with any ids, fit in the vocabulary that is made of them. */
void prove_vocab(size_t n) {
    specials known;
    uint8_t found[SPECIALS + 1] = {0};
    json_token tokens[4];
    pybpe_vocab *v = NULL;
    any_specials(&known);
    json_reader r = {.spec = &known.spec, .special_texts = &known.texts, .tokens = tokens, .found = found};
    for (size_t i = 0; i < n; i++) {
        size_t length = (size_t)any_between(1, 2);
        tokens[i] = (json_token){(uint32_t)length, (uint32_t)any_between(0, any_bool() ? 4 : (1 << 24) - 1)};
        r.bytes_count += length;
    }
    r.tokens_count = n;
    byte_level_fill(r.byte_of);
    r.bytes = any_bytes(r.bytes_count + SPECIALS + 1);
    if (make_vocab(&r, 0, &v, NULL, NULL) == PYBPE_OK) {
        CHECK(v->count > 0 && v->offsets[v->count] <= r.bytes_count + SPECIALS);
    }
    pybpe_vocab_free(v);
    free(r.bytes);
}

/* n tokens and the specials, with any ids and 0 to 2 bytes each, before a vocabulary is made of them. */
static json_reader *any_reader(size_t n) {
    static specials known;
    static json_token tokens[4];
    static uint8_t found[SPECIALS + 1];
    static json_reader r;
    any_specials(&known);
    for (size_t i = 0; i < SPECIALS; i++) {
        known.offsets[i + 1] = known.offsets[i] + any_between(0, 2);
    }
    r = (json_reader){.spec = &known.spec, .special_texts = &known.texts, .tokens = tokens, .found = found};
    for (size_t i = 0; i < n; i++) {
        size_t length = (size_t)any_between(0, 2);
        tokens[i] = (json_token){(uint32_t)length, (uint32_t)any_between(0, any_bool() ? 4 : (1 << 24) - 1)};
        r.bytes_count += length;
    }
    for (size_t i = 0; i < SPECIALS; i++) {
        found[i] = any_bool();
    }
    r.tokens_count = n;
    return &r;
}

/* n tokens are counted, and are fewer than all of them and the specials, twice over. */
void prove_count(size_t n) {
    const json_reader *r = any_reader(n);
    size_t count = count_ids(r);
    CHECK(count <= 2 * (n + SPECIALS));
    for (size_t i = 0; i < n && count > 0; i++) {
        CHECK(r->tokens[i].id < count);
    }
    for (size_t i = 0; i < SPECIALS && count > 0; i++) {
        CHECK(r->spec->specials[i] < count);
    }
    (void)specials_follow(r);
}

/* n tokens and the specials are laid out in the memory for as many bytes, and copied there. */
void prove_lay(size_t n) {
    enum { IDS = 2 * (4 + SPECIALS) };
    uint64_t offsets[IDS + 1];
    uint32_t ids[SPECIALS];
    json_reader *r = any_reader(n);
    const size_t room = r->bytes_count + (size_t)strings_total(r->special_texts);
    pybpe_vocab v = {.offsets = offsets, .specials = ids, .count = count_ids(r)};
    r->bytes = any_bytes(r->bytes_count);
    v.bytes = any_bytes(room);
    if (v.count > 0 && lay_offsets(r, &v)) {
        CHECK(offsets[0] == 0 && offsets[v.count] <= room);
        for (size_t i = 0; i < v.count; i++) {
            CHECK(offsets[i] <= offsets[i + 1]);
        }
        copy_tokens(r, &v);
    }
    free(r->bytes);
    free(v.bytes);
}

/* The texts of specials fit in the memory for the tokens, where they are compared with them. */
void prove_spellings(size_t n) {
    json_reader *r = any_reader(n);
    const pybpe_vocab v = {.count = 1};
    r->bytes = any_bytes((size_t)strings_total(r->special_texts) + 1);
    (void)spellings_differ(r, &v);
    free(r->bytes);
}

bool any_laid(const json_reader *r, pybpe_vocab *v) {
    (void)r;
    CHECK(v->count > 0);
    any_fill(v->offsets, (v->count + 1) * sizeof *v->offsets);
    return any_bool();
}

void any_copied(const json_reader *r, pybpe_vocab *v) {
    any_fill(v->bytes, r->bytes_count + (size_t)strings_total(r->special_texts));
    any_fill(v->specials, r->spec->specials_count * sizeof *v->specials);
}

bool any_spelled(json_reader *r, const pybpe_vocab *v) {
    (void)r;
    (void)v;
    return any_bool();
}

/* A vocabulary of n tokens has memory for what is copied there. */
void prove_make(size_t n) {
    char custom[2] = {(char)any_bool(), 0};
    pybpe_vocab *v = NULL;
    json_reader *r = any_reader(n);
    pybpe_vocab_spec spec = *r->spec;
    spec.custom = any_bool() ? custom : NULL;
    r->spec = &spec;
    byte_level_fill(r->byte_of);
    r->bytes = any_bytes(r->bytes_count + (size_t)strings_total(r->special_texts) + 1);
    int code = make_vocab(r, (size_t)any_between(0, 2), &v, NULL, NULL);
    CHECK(code != PYBPE_OK || v->count > 0);
    pybpe_vocab_free(v);
    free(r->bytes);
}

bool any_tokens(json_reader *r, json *j, uint32_t limit) {
    size_t n = (size_t)(j->end - j->at);
    CHECK(limit > 0);
    any_fill(r->bytes, n + READ_AHEAD + (size_t)strings_total(r->special_texts));
    any_fill(r->tokens, most_tokens(n) * sizeof *r->tokens);
    any_fill(r->found, r->spec->specials_count);
    return any_bool();
}

int any_vocab(json_reader *r, size_t merges, pybpe_vocab **out, const pybpe_allocator *mem, pybpe_error *err) {
    const vocab_sizes sizes = {.tokens = 1, .merges = merges, .specials = r->spec->specials_count};
    int code = vocab_alloc(out, &sizes, mem, err);
    return code != PYBPE_OK || any_bool() ? code : PYBPE_ERR_FORMAT;
}

bool any_merges(const json_reader *r, json *j, pybpe_vocab *v) {
    size_t n = (size_t)(j->end - j->at);
    any_fill(r->bytes, n + READ_AHEAD);
    any_fill(v->merges, 2 * most_merges(n) * sizeof *v->merges);
    v->merges_count = (size_t)any_between(0, most_merges(n));
    return any_bool();
}

int any_differ(const pybpe_vocab *v, bool *differ, pybpe_error *err) {
    (void)err;
    check_readable(v->merged, v->merges_count * sizeof *v->merged);
    *differ = any_bool();
    return any_bool() ? PYBPE_OK : PYBPE_ERR_MEMORY;
}

/* The parts of a tokenizer.json, of 0 to n bytes each, become a vocabulary, or everything that was allocated for it is
   freed. */
void prove_whole(size_t n) {
    specials known;
    pybpe_vocab *v;
    any_specials(&known);
    uint8_t *vocab = any_bytes(n), *merges = any_bytes(n);
    int code =
        pybpe_vocab_new_json(&v, vocab, n, merges, (size_t)any_between(0, n), &known.texts, &known.spec, NULL, NULL);
    CHECK((code == PYBPE_OK) == (v != NULL));
    pybpe_vocab_free(v);
    free(vocab);
    free(merges);
}

/* Merges of a text of n bytes fit in the memory for them. */
void prove_merges(size_t n) {
    uint8_t *text = any_bytes(n);
    uint32_t *merges = (uint32_t *)any_bytes(most_merges(n) * 2 * sizeof *merges);
    uint32_t slots[2] = {(uint32_t)any_u64(), (uint32_t)any_u64()};
    token_record records[3];
    pybpe_vocab v = {.count = 2, .merges = merges, .records = records, .ordinary_index = {slots, 1, 3}};
    json_reader r = {.bytes = any_bytes(n + READ_AHEAD), .room = n + READ_AHEAD};
    byte_level_fill(r.byte_of);
    json j = {text, text + n};
    if (read_merges(&r, &j, &v)) {
        CHECK(v.merges_count <= most_merges(n));
    }
    free(text);
    free(merges);
    free(r.bytes);
}

/* n merges of any ids are compared with all that make the same token, and that ends. */
void prove_differ(size_t n) {
    enum { TOKENS = 3 };
    uint32_t merges[2 * TOKENS], merged[TOKENS];
    pybpe_vocab v = {.mem = mem_of(NULL), .count = TOKENS, .merges = merges, .merged = merged, .merges_count = n};
    for (size_t i = 0; i < n; i++) {
        merges[2 * i] = (uint32_t)any_between(0, TOKENS - 1);
        merges[2 * i + 1] = (uint32_t)any_between(0, TOKENS - 1);
        merged[i] = (uint32_t)any_between(0, TOKENS - 1);
    }
    bool differ;
    (void)merges_differ(&v, &differ, NULL);
}

PROOFS(PROOF(bytes, 0, 4, 2, "byte_level_fill.0:257")
           PROOF(tokens, 0, 7, 3, "read_tokens.0:4,special_find.0:4",
                 "json_peek:any_peek json_string:any_string json_id:any_id byte_level_bytes:any_converted "
                 "memcmp:any_comparison")
               PROOF(merges, 0, 7, 3, "read_merges.0:4,read_merges.1:4,byte_level_fill.0:257",
                     "json_peek:any_peek json_string:any_string byte_level_bytes:any_converted memchr:any_place")
                   PROOF(differ, 0, 3, 3) DRAWN(vocab, 0, 2, 8, "", "byte_level_bytes:any_converted")
                       DRAWN(tokens, 8, 20, 3) DRAWN(merges, 8, 20, 3) PROOF(count, 0, 3, 4) PROOF(lay, 0, 2, 8, "")
                           DRAWN(lay, 3, 4, 8) PROOF(spellings, 0, 0, 4, "", "byte_level_bytes:any_converted")
                               PROOF(make, 0, 2, 4, "byte_level_fill.0:257",
                                     "lay_offsets:any_laid copy_tokens:any_copied spellings_differ:any_spelled")
                                   PROOF(whole, 0, 8, 4, "byte_level_fill.0:257",
                                         "read_tokens:any_tokens make_vocab:any_vocab read_merges:any_merges "
                                         "merges_differ:any_differ"))
