/*
csrc/tokenizer_json.c: the tokens and merges of a tokenizer.json. json.c shows what the functions of json.h return.
*/
#include "prove.h"

#include <base.c>
#include <json.c>
#include <tokenizer_json.c>
#include <vocab.c>

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
    uint8_t bytes[SPECIALS];
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
    r.bytes = any_bytes(n + SPECIALS + 1); /* as pybpe_vocab_new_json allocates these */
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
        tokens[i] = (json_token){r.bytes_count, length, (uint32_t)any_between(0, any_bool() ? 4 : (1 << 24) - 1)};
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

/* Merges of a text of n bytes fit in the memory for them. */
void prove_merges(size_t n) {
    uint8_t *text = any_bytes(n);
    uint32_t *merges = (uint32_t *)any_bytes(most_merges(n) * 2 * sizeof *merges);
    pybpe_vocab v = {.count = 2, .merges = merges};
    json_reader r = {.bytes = any_bytes(n + 1)};
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
           PROOF(tokens, 0, 7, 3, "read_tokens.0:4,special_of.0:4",
                 "json_peek:any_peek json_string:any_string json_id:any_id byte_level_bytes:any_converted "
                 "memcmp:any_comparison")
               PROOF(merges, 0, 7, 3, "read_merges.0:4,byte_level_fill.0:257",
                     "json_peek:any_peek json_string:any_string byte_level_bytes:any_converted memchr:any_place")
                   PROOF(differ, 0, 3, 3) DRAWN(vocab, 0, 2, 8, "", "byte_level_bytes:any_converted")
                       DRAWN(tokens, 8, 20, 3) DRAWN(merges, 8, 20, 3))
