/*
Vocabularies, and tokenizer.bin, the file they live in.

llm.c reads a header and the tokens, and ignores spare header fields and whatever follows the last
token. There we keep what llm.c has no place for: merges, pattern, specials. All integers are
little-endian.

    0     int32 x 256   header: [0] 20240328  [1] version 1 or 2  [2] V  [3] eot id (version 2)
                                [4] "PYBP" if a trailer follows the tokens  [5], [6] its length, low, high
    1024  V times       u8 length 1..255, bytes
    ...   trailer:
      0   8 bytes       "PYBPETRL"
      8   u32           layout of the trailer: 1
      12  u32           pattern (enum pybpe_pattern)
      16  u32           normalizer (enum pybpe_normalizer)
      20  u32           eot id, or 0xFFFFFFFF
      24  u32           number of merges      M
      28  u32           number of specials    S
      32  u32           length of the custom regular expression   C
      36  u32           1 if a word that is a token is taken whole, else 0
      40  M x (u32, u32)  left id, right id, in rank order
          S x u32       ids of the specials, ascending
          C bytes       the custom regular expression
          u64           checksum of everything before it

The trailer ends the file, so a cut or a glued-on tail is noticed. The checksum is FNV-1a over 8-byte words
(the last one filled up with zeros): every step is a bijection, so damage to any one word is always
detected.
http://www.isthe.com/chongo/tech/comp/fnv/

Without a trailer (files of llm.c) the merges are recovered from the order of the ids: see
pybpe_vocab_recover_merges.
*/
#include "vocab.h"
#include "merge.h"

#include <stdio.h>

#define FILE_MAGIC 20240328u
#define TRAILER_MARK 0x50425950u /* "PYBP" */
static const uint8_t TRAILER_MAGIC[8] = {'P', 'Y', 'B', 'P', 'E', 'T', 'R', 'L'};
enum {
    FILE_HEADER = 1024,
    FILE_TOKEN_MAX = 255,
    TRAILER_LAYOUT = 1,
    TRAILER_FIXED = 40, /* bytes before the merges */
    TRAILER_CHECKSUM = 8,
    GPT2_TOKENS = 50257, /* the only vocabulary that version 1 of the file is for */
    GPT2_EOT = 50256
};

/* Where a vocabulary comes from: decides the code and the offsets of errors. In a spec an offset is an id
   or an index; in a file it is a place in the file. */
typedef struct vocab_source {
    bool is_file;
    uint64_t trailer; /* offset in the file; 0 if it has none */
} vocab_source;

static int source_code(const vocab_source *from) { return from->is_file ? PYBPE_ERR_FORMAT : PYBPE_ERR_VALUE; }

static uint64_t source_token(const vocab_source *from, const pybpe_vocab *v, size_t id) {
    /* Every token before it has a length byte of its own. */
    return from->is_file ? FILE_HEADER + v->offsets[id] + id : id;
}

static uint64_t source_merge(const vocab_source *from, size_t i) {
    return from->is_file ? from->trailer + TRAILER_FIXED + 8 * (uint64_t)i : i;
}

static uint64_t source_special(const vocab_source *from, const pybpe_vocab *v, size_t i) {
    return from->is_file && from->trailer > 0
               ? from->trailer + TRAILER_FIXED + 8 * (uint64_t)v->merges_count + 4 * (uint64_t)i
               : (from->is_file ? 12 : i);
}

static uint64_t source_setting(const vocab_source *from, unsigned place) {
    return from->is_file ? from->trailer + place : 0;
}

/* ---------------------------------------------------------------------------------------------------
The index: bytes -> id
*/

/* The end of what may be read of the tokens. */
static const uint8_t *vocab_end(const pybpe_vocab *v) { return v->bytes + v->offsets[v->count] + VOCAB_PADDING; }

/* `end` is that of the readable bytes. */
static uint64_t token_hash(const pybpe_vocab *v, const uint8_t *bytes, size_t n, const uint8_t *end) {
    return n <= WORD_INLINE_MAX ? word_key_hash(word_key_load(bytes, n, end), v->seed)
                                : word_hash_long(bytes, n, v->seed);
}

static int index_new(token_index *index, size_t tokens, const pybpe_allocator *mem, pybpe_error *err) {
    size_t slots = 2;
    while (slots < 2 * tokens) {
        slots *= 2;
    }
    index->slots = mem_alloc_zeroed(mem, slots, sizeof *index->slots);
    index->mask = slots - 1;
    return index->slots != NULL ? PYBPE_OK : error_set_memory(err, "the index of a vocabulary", slots * 4);
}

/* The slot that holds the token, or the empty one where it belongs. */
static uint32_t *index_slot(const pybpe_vocab *v, const token_index *index, const uint8_t *bytes, size_t n,
                            const uint8_t *end) {
    size_t i = (size_t)token_hash(v, bytes, n, end) & index->mask;
    while (index->slots[i] != 0) {
        size_t id = index->slots[i] - 1;
        if (vocab_token_length(v, id) == n && memcmp(vocab_token(v, id), bytes, n) == 0) {
            break;
        }
        i = (i + 1) & index->mask;
    }
    return &index->slots[i];
}

uint32_t pybpe_vocab_find(const pybpe_vocab *v, const uint8_t *bytes, size_t n, int special) {
    if (n == 0) {
        return PYBPE_NO_ID;
    }
    uint32_t slot = *index_slot(v, special ? &v->special_index : &v->ordinary_index, bytes, n, bytes + n);
    return slot != 0 ? slot - 1 : PYBPE_NO_ID;
}

/* ---------------------------------------------------------------------------------------------------
Making a vocabulary: room for it, its content, then checks and indexes
*/

/* How large the parts of a vocabulary are. */
typedef struct vocab_sizes {
    size_t tokens;
    size_t bytes;
    size_t merges;
    size_t specials;
    size_t custom; /* without the terminating NUL */
    bool has_custom;
} vocab_sizes;

void pybpe_vocab_free(pybpe_vocab *v) {
    if (v == NULL) {
        return;
    }
    pybpe_allocator mem = v->mem;
    mem_free(&mem, v->bytes);
    mem_free(&mem, v->offsets);
    mem_free(&mem, v->merges);
    mem_free(&mem, v->merged);
    mem_free(&mem, v->specials);
    mem_free(&mem, v->custom);
    mem_free(&mem, v->ordinary_index.slots);
    mem_free(&mem, v->special_index.slots);
    mem_free(&mem, v);
}

/* A vocabulary with memory for its parts, which the caller fills. */
static int vocab_alloc(pybpe_vocab **out, const vocab_sizes *sizes, const pybpe_allocator *mem, pybpe_error *err) {
    size_t bytes;
    if (sizes->tokens >= PYBPE_NO_ID || sizes->merges > UINT32_MAX || sizes->custom > UINT32_MAX) {
        return error_set(err, PYBPE_ERR_LIMIT, 0,
                         "a vocabulary may have up to 4,294,967,294 tokens and as many merges");
    }
    if (!size_add(sizes->bytes, VOCAB_PADDING, &bytes)) {
        return error_set_memory(err, "the tokens of a vocabulary", sizes->bytes);
    }
    pybpe_vocab *v = mem_alloc(mem, sizeof *v);
    if (v == NULL) {
        return error_set_memory(err, "a vocabulary", sizeof *v);
    }
    *v = (pybpe_vocab){.mem = mem_of(mem),
                       .count = sizes->tokens,
                       .merges_count = sizes->merges,
                       .specials_count = sizes->specials,
                       .seed = hash_seed_draw()};
    /* One element more than needed where a part may be empty, since no memory is an allocation failure. */
    v->bytes = mem_alloc(mem, bytes);
    v->offsets = mem_alloc_array(mem, sizes->tokens + 1, sizeof *v->offsets);
    v->merges = mem_alloc_array(mem, sizes->merges + 1, 2 * sizeof *v->merges);
    v->merged = mem_alloc_array(mem, sizes->merges + 1, sizeof *v->merged);
    v->specials = mem_alloc_array(mem, sizes->specials + 1, sizeof *v->specials);
    v->custom = sizes->has_custom ? mem_alloc(mem, sizes->custom + 1) : NULL;
    if (v->bytes == NULL || v->offsets == NULL || v->merges == NULL || v->merged == NULL || v->specials == NULL ||
        (sizes->has_custom && v->custom == NULL)) {
        pybpe_vocab_free(v);
        return error_set_memory(err, "the parts of a vocabulary", bytes);
    }
    memset(v->bytes + sizes->bytes, 0, VOCAB_PADDING);
    v->offsets[0] = 0;
    *out = v;
    return PYBPE_OK;
}

static int check_settings(const pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    if (v->pattern != PYBPE_PATTERN_CUSTOM && pybpe_pattern_regex(v->pattern) == NULL) {
        return error_set(err, source_code(from), source_setting(from, 12),
                         "pattern %d is unknown; it comes from a newer version of pybpe, or is a mistake",
                         (int)v->pattern);
    }
    if ((v->pattern == PYBPE_PATTERN_CUSTOM) != (v->custom != NULL && v->custom[0] != '\0')) {
        return error_set(err, source_code(from), source_setting(from, 12),
                         "pattern %d %s; only pattern 0 (custom) has one of its own", (int)v->pattern,
                         v->custom == NULL ? "has no regular expression" : "comes with a regular expression");
    }
    if (v->normalizer < PYBPE_NORMALIZER_NONE || v->normalizer > PYBPE_NORMALIZER_NFKC) {
        return error_set(err, source_code(from), source_setting(from, 16),
                         "normalizer %d is unknown; expected 0 (none), 1 (NFC) or 2 (NFKC)", (int)v->normalizer);
    }
    if (v->whole_words != 0 && v->whole_words != 1) {
        return error_set(err, source_code(from), source_setting(from, 36), "whole_words is %d; expected 0 or 1",
                         v->whole_words);
    }
    if (v->eot_id != PYBPE_NO_ID && (v->eot_id >= v->count || vocab_token_length(v, v->eot_id) == 0)) {
        return error_set(err, source_code(from), from->is_file && from->trailer == 0 ? 12 : source_setting(from, 20),
                         "the end-of-text id %u is not a token; there are %zu ids", v->eot_id, v->count);
    }
    return PYBPE_OK;
}

/* Needs nothing but the specials, which ascend: so it asks them by halving. */
static bool token_is_ordinary(const pybpe_vocab *v, uint32_t id) {
    size_t low = 0;
    size_t high = v->specials_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->specials[middle] == id) {
            return false;
        }
        if (v->specials[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return id < v->count && vocab_token_length(v, id) > 0;
}

/* Checks the specials and fills their index. */
static int index_specials(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    int code = index_new(&v->special_index, v->specials_count, &v->mem, err);
    for (size_t i = 0; code == PYBPE_OK && i < v->specials_count; i++) {
        uint32_t id = v->specials[i];
        if (id >= v->count || vocab_token_length(v, id) == 0) {
            return error_set(err, source_code(from), source_special(from, v, i),
                             "special %zu has id %u, which is not a token; there are %zu ids", i, id, v->count);
        }
        if (i > 0 && id <= v->specials[i - 1]) {
            return error_set(err, source_code(from), source_special(from, v, i),
                             "special %zu has id %u, which is not greater than the one before it, %u", i, id,
                             v->specials[i - 1]);
        }
        uint32_t *slot = index_slot(v, &v->special_index, vocab_token(v, id), vocab_token_length(v, id), vocab_end(v));
        if (*slot != 0) {
            return error_set(err, source_code(from), source_special(from, v, i),
                             "specials %u and %u have the same bytes; specials must be distinct", *slot - 1, id);
        }
        *slot = id + 1;
    }
    return code;
}

/* Fills the index of ordinary tokens, and finds the tokens of the single bytes. */
static int index_ordinary(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    int code = index_new(&v->ordinary_index, v->count, &v->mem, err);
    memset(v->byte_ids, 0xFF, sizeof v->byte_ids);
    for (size_t id = 0; code == PYBPE_OK && id < v->count; id++) {
        const uint8_t *bytes = vocab_token(v, id);
        size_t n = vocab_token_length(v, id);
        if (!token_is_ordinary(v, (uint32_t)id)) {
            continue;
        }
        uint32_t *slot = index_slot(v, &v->ordinary_index, bytes, n, vocab_end(v));
        if (*slot != 0) {
            return error_set(err, source_code(from), source_token(from, v, id),
                             "tokens %u and %zu have the same bytes; ordinary tokens must be distinct", *slot - 1, id);
        }
        *slot = (uint32_t)id + 1;
        if (n == 1) {
            v->byte_ids[bytes[0]] = (uint32_t)id;
        }
    }
    for (unsigned byte = 0; code == PYBPE_OK && byte < 256; byte++) {
        if (v->byte_ids[byte] == PYBPE_NO_ID) {
            return error_set(err, source_code(from), from->is_file ? FILE_HEADER : byte,
                             "no token is the single byte 0x%02X; a byte-level vocabulary has all 256", byte);
        }
    }
    return code;
}

static bool token_is_concatenation(const pybpe_vocab *v, size_t id, uint32_t left, uint32_t right) {
    size_t n = vocab_token_length(v, left);
    size_t m = vocab_token_length(v, right);
    return vocab_token_length(v, id) == n + m && memcmp(vocab_token(v, id), vocab_token(v, left), n) == 0 &&
           memcmp(vocab_token(v, id) + n, vocab_token(v, right), m) == 0;
}

/* The ordinary token left + right, or PYBPE_NO_ID. `guess` is tried first: merges mostly make tokens in
   the order of their ids, and then no hashing is needed. `room` holds the longest token. */
static uint32_t find_concatenation(const pybpe_vocab *v, uint32_t left, uint32_t right, uint32_t guess, uint8_t *room,
                                   size_t longest) {
    if (guess < v->count && token_is_concatenation(v, guess, left, right) && token_is_ordinary(v, guess)) {
        return guess;
    }
    size_t n = vocab_token_length(v, left);
    size_t m = vocab_token_length(v, right);
    if (n + m > longest) {
        return PYBPE_NO_ID;
    }
    memcpy(room, vocab_token(v, left), n);
    memcpy(room + n, vocab_token(v, right), m);
    return pybpe_vocab_find(v, room, n + m, 0);
}

/* Checks the merges and finds what each of them makes. */
static int resolve_merges(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    size_t longest = 1;
    for (size_t id = 0; id < v->count; id++) {
        size_t n = vocab_token_length(v, id);
        longest = n > longest ? n : longest;
    }
    uint8_t *room = mem_alloc(&v->mem, longest);
    if (room == NULL) {
        return error_set_memory(err, "a token", longest);
    }
    int code = PYBPE_OK;
    uint32_t made = PYBPE_NO_ID;
    for (size_t i = 0; code == PYBPE_OK && i < v->merges_count; i++) {
        uint32_t left = v->merges[2 * i];
        uint32_t right = v->merges[2 * i + 1];
        if (!token_is_ordinary(v, left) || !token_is_ordinary(v, right)) {
            code = error_set(err, source_code(from), source_merge(from, i),
                             "merge %zu joins ids %u and %u, which are not both ordinary tokens", i, left, right);
            break;
        }
        made = find_concatenation(v, left, right, made + 1, room, longest);
        if (made == PYBPE_NO_ID) {
            code = error_set(err, source_code(from), source_merge(from, i),
                             "merge %zu joins ids %u and %u, but no ordinary token has their joined bytes", i, left,
                             right);
        }
        v->merged[i] = made;
    }
    mem_free(&v->mem, room);
    return code;
}

/* Checks everything but the merges. */
static int vocab_index(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    int code = check_settings(v, from, err);
    if (code == PYBPE_OK) {
        code = index_specials(v, from, err);
    }
    return code == PYBPE_OK ? index_ordinary(v, from, err) : code;
}

/* ---------------------------------------------------------------------------------------------------
From and to a spec
*/

static int check_layout(const pybpe_strings *tokens, pybpe_error *err) {
    if (tokens->count > 0 && tokens->offsets[0] != 0) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "the offsets of tokens start at %llu; expected 0",
                         (unsigned long long)tokens->offsets[0]);
    }
    for (size_t i = 0; i < tokens->count; i++) {
        if (tokens->offsets[i + 1] < tokens->offsets[i] || tokens->offsets[i + 1] > SIZE_MAX) {
            return error_set(err, PYBPE_ERR_VALUE, i, "the offsets of tokens descend behind token %zu", i);
        }
    }
    return PYBPE_OK;
}

int pybpe_vocab_new(pybpe_vocab **out, const pybpe_vocab_spec *spec, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    int code = check_layout(&spec->tokens, err);
    if (code != PYBPE_OK) {
        return code;
    }
    vocab_sizes sizes = {.tokens = spec->tokens.count,
                         .bytes = spec->tokens.count > 0 ? (size_t)spec->tokens.offsets[spec->tokens.count] : 0,
                         .merges = spec->merges_count,
                         .specials = spec->specials_count,
                         .custom = spec->custom != NULL ? strlen(spec->custom) : 0,
                         .has_custom = spec->custom != NULL};
    pybpe_vocab *v;
    code = vocab_alloc(&v, &sizes, mem, err);
    if (code != PYBPE_OK) {
        return code;
    }
    if (sizes.tokens > 0) {
        memcpy(v->offsets, spec->tokens.offsets, (sizes.tokens + 1) * sizeof *v->offsets);
    }
    if (sizes.bytes > 0) {
        memcpy(v->bytes, spec->tokens.bytes, sizes.bytes);
    }
    if (sizes.merges > 0) {
        memcpy(v->merges, spec->merges, 2 * sizes.merges * sizeof *v->merges);
    }
    if (sizes.specials > 0) {
        memcpy(v->specials, spec->specials, sizes.specials * sizeof *v->specials);
    }
    if (spec->custom != NULL) {
        memcpy(v->custom, spec->custom, sizes.custom + 1);
    }
    v->eot_id = spec->eot_id;
    v->pattern = spec->pattern;
    v->normalizer = spec->normalizer;
    v->whole_words = spec->whole_words;
    const vocab_source from = {.is_file = false};
    code = vocab_index(v, &from, err);
    if (code == PYBPE_OK) {
        code = resolve_merges(v, &from, err);
    }
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
                              .custom = v->custom};
}

/* ---------------------------------------------------------------------------------------------------
Merges from the order of ids
*/

/* Merges one token with the merges of all lower ones. *parts is their number, and ids their ids. */
static int token_parts(const merge_table *table, merge_scratch *scratch, const uint8_t *bytes, size_t n,
                       const uint32_t **ids, size_t *parts, uint32_t *small, const pybpe_allocator *mem,
                       pybpe_error *err) {
    if (n <= MERGE_SHORT_MAX) {
        *parts = merge_short(table, bytes, n, small);
        *ids = small;
        return PYBPE_OK;
    }
    int code = merge_long(table, scratch, bytes, n, parts, mem, err);
    *ids = scratch->ids;
    return code;
}

static int recover_with(const pybpe_vocab *v, merge_table *table, merge_scratch *scratch, uint32_t *merges,
                        size_t *count, pybpe_error *err) {
    uint32_t small[MERGE_SHORT_MAX];
    uint32_t found = 0;
    for (uint32_t id = 0; id < v->count; id++) {
        const uint8_t *bytes = vocab_token(v, id);
        size_t n = vocab_token_length(v, id);
        if (n < 2 || !token_is_ordinary(v, id)) {
            continue;
        }
        const uint32_t *ids;
        size_t parts;
        int code = token_parts(table, scratch, bytes, n, &ids, &parts, small, &v->mem, err);
        if (code != PYBPE_OK) {
            return code;
        }
        if (parts == 2) {
            uint32_t *parents = merges + 2 * (size_t)found;
            parents[0] = ids[0];
            parents[1] = ids[1];
            merge_table_add(table, parents[0], parents[1], found, id);
            if (n == 2) {
                merge_table_add_bytes(table, bytes[0], bytes[1], found);
            }
            found += 1;
        }
    }
    *count = found;
    return PYBPE_OK;
}

/* The merges of an indexed vocabulary, from the order of its ids. */
static int vocab_recover(const pybpe_vocab *v, uint32_t *merges, size_t *count, pybpe_error *err) {
    merge_table table;
    int code = merge_table_new(&table, v->count, v->count, v->byte_ids, &v->mem, err);
    if (code != PYBPE_OK) {
        return code;
    }
    merge_scratch scratch = {0};
    code = recover_with(v, &table, &scratch, merges, count, err);
    merge_scratch_free(&scratch, &v->mem);
    merge_table_free(&table, &v->mem);
    return code;
}

int pybpe_vocab_recover_merges(const pybpe_vocab_spec *spec, uint32_t *merges, size_t *count,
                               const pybpe_allocator *mem, pybpe_error *err) {
    pybpe_vocab_spec bare = *spec;
    bare.merges_count = 0;
    pybpe_vocab *v;
    int code = pybpe_vocab_new(&v, &bare, mem, err);
    if (code == PYBPE_OK) {
        code = vocab_recover(v, merges, count, err);
        pybpe_vocab_free(v);
    }
    return code;
}

/* ---------------------------------------------------------------------------------------------------
Reading tokenizer.bin
*/

static uint64_t checksum(const uint8_t *data, size_t n) {
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        h = (h ^ load_u64(data + i)) * UINT64_C(0x100000001B3);
    }
    if (i < n) {
        uint8_t last[8] = {0};
        memcpy(last, data + i, n - i);
        h = (h ^ load_u64(last)) * UINT64_C(0x100000001B3);
    }
    return h;
}

static void store_u64(uint8_t *p, uint64_t x) {
    store_u32(p, (uint32_t)x);
    store_u32(p + 4, (uint32_t)(x >> 32));
}

/* A file in memory, and what its header and trailer say. */
typedef struct vocab_file {
    const uint8_t *data;
    size_t n;
    uint32_t version;
    uint32_t count;
    size_t trailer; /* where the tokens end */
    bool has_trailer;
} vocab_file;

static int file_check_header(vocab_file *f, pybpe_error *err) {
    if (f->n < FILE_HEADER) {
        return error_set(err, PYBPE_ERR_FORMAT, f->n, "tokenizer.bin ends at offset %zu; its header has 1024 bytes",
                         f->n);
    }
    uint32_t magic = load_u32(f->data);
    if (magic != FILE_MAGIC) {
        return error_set(err, PYBPE_ERR_FORMAT, 0,
                         "not a tokenizer.bin: it starts with %u; expected 20240328 (0x0134D7C8)", magic);
    }
    f->version = load_u32(f->data + 4);
    if (f->version != 1 && f->version != 2) {
        return error_set(err, PYBPE_ERR_FORMAT, 4, "tokenizer.bin has version %u at offset 4; expected 1 or 2",
                         f->version);
    }
    f->count = load_u32(f->data + 8);
    if (f->count == 0 || f->count > (f->n - FILE_HEADER) / 2) { /* a token takes two bytes at least */
        return error_set(err, PYBPE_ERR_FORMAT, 8,
                         "tokenizer.bin claims %u tokens at offset 8; its %zu bytes hold 1 to %zu", f->count, f->n,
                         (f->n - FILE_HEADER) / 2);
    }
    return PYBPE_OK;
}

/* Walks over the tokens to find where they end, and the sum of their lengths. */
static int file_check_tokens(vocab_file *f, size_t *bytes, pybpe_error *err) {
    size_t at = FILE_HEADER;
    for (uint32_t id = 0; id < f->count; id++) {
        if (at >= f->n || f->n - at - 1 < f->data[at]) {
            return error_set(err, PYBPE_ERR_FORMAT, at,
                             "tokenizer.bin ends inside token %u of %u, which starts at offset %zu", id, f->count, at);
        }
        if (f->data[at] == 0) {
            return error_set(err, PYBPE_ERR_FORMAT, at, "token %u at offset %zu has length 0; expected 1 to 255", id,
                             at);
        }
        at += (size_t)1 + f->data[at];
    }
    f->trailer = at;
    *bytes = at - FILE_HEADER - f->count;
    return PYBPE_OK;
}

/* Checks length, magic and checksum of the trailer and takes the sizes of its parts. */
static int file_check_trailer(vocab_file *f, vocab_sizes *sizes, pybpe_error *err) {
    const uint8_t *t = f->data + f->trailer;
    uint64_t length = load_u64(f->data + 20);
    uint64_t have = f->n - f->trailer;
    f->has_trailer = load_u32(f->data + 16) == TRAILER_MARK ||
                     (have >= sizeof TRAILER_MAGIC && memcmp(t, TRAILER_MAGIC, sizeof TRAILER_MAGIC) == 0);
    if (!f->has_trailer) {
        return PYBPE_OK;
    }
    if (length != have || length < TRAILER_FIXED + TRAILER_CHECKSUM) {
        return error_set(err, PYBPE_ERR_FORMAT, f->trailer,
                         "tokenizer.bin has %llu bytes behind its tokens at offset %zu; its header announces %llu",
                         (unsigned long long)have, f->trailer, (unsigned long long)length);
    }
    if (memcmp(t, TRAILER_MAGIC, sizeof TRAILER_MAGIC) != 0 || load_u32(t + 8) != TRAILER_LAYOUT) {
        return error_set(err, PYBPE_ERR_FORMAT, f->trailer,
                         "the trailer at offset %zu is not \"PYBPETRL\" of layout 1; it is damaged or of a newer pybpe",
                         f->trailer);
    }
    if (checksum(f->data, f->n - TRAILER_CHECKSUM) != load_u64(f->data + f->n - TRAILER_CHECKSUM)) {
        return error_set(err, PYBPE_ERR_FORMAT, f->n - TRAILER_CHECKSUM,
                         "the checksum at offset %zu does not match: tokenizer.bin was damaged or edited",
                         f->n - TRAILER_CHECKSUM);
    }
    uint32_t merges = load_u32(t + 24);
    uint32_t specials = load_u32(t + 28);
    uint32_t custom = load_u32(t + 32);
    uint64_t want = TRAILER_FIXED + 8 * (uint64_t)merges + 4 * (uint64_t)specials + custom + TRAILER_CHECKSUM;
    if (want != length) {
        return error_set(err, PYBPE_ERR_FORMAT, f->trailer + 24,
                         "%u merges, %u specials and %u bytes of pattern make a trailer of %llu bytes; it has %llu",
                         merges, specials, custom, (unsigned long long)want, (unsigned long long)length);
    }
    if (memchr(f->data + f->n - TRAILER_CHECKSUM - custom, '\0', custom) != NULL) {
        return error_set(err, PYBPE_ERR_FORMAT, f->n - TRAILER_CHECKSUM - custom,
                         "the regular expression at offset %zu contains a NUL byte", f->n - TRAILER_CHECKSUM - custom);
    }
    sizes->merges = merges;
    sizes->specials = specials;
    sizes->custom = custom;
    sizes->has_custom = custom > 0;
    return PYBPE_OK;
}

static void vocab_copy_tokens(pybpe_vocab *v, const vocab_file *f) {
    const uint8_t *at = f->data + FILE_HEADER;
    for (size_t id = 0; id < f->count; id++) {
        size_t n = *at;
        memcpy(v->bytes + v->offsets[id], at + 1, n);
        v->offsets[id + 1] = v->offsets[id] + n;
        at += 1 + n;
    }
}

static void vocab_copy_trailer(pybpe_vocab *v, const vocab_file *f) {
    const uint8_t *t = f->data + f->trailer;
    v->pattern = (int32_t)load_u32(t + 12);
    v->normalizer = (int32_t)load_u32(t + 16);
    v->eot_id = load_u32(t + 20);
    v->whole_words = (int32_t)load_u32(t + 36);
    t += TRAILER_FIXED;
    for (size_t i = 0; i < 2 * v->merges_count; i++) {
        v->merges[i] = load_u32(t + 4 * i);
    }
    t += 8 * v->merges_count;
    for (size_t i = 0; i < v->specials_count; i++) {
        v->specials[i] = load_u32(t + 4 * i);
    }
    t += 4 * v->specials_count;
    if (v->custom != NULL) {
        size_t n = f->n - TRAILER_CHECKSUM - (size_t)(t - f->data);
        memcpy(v->custom, t, n);
        v->custom[n] = '\0';
    }
}

/* What a file without a trailer does not say. */
static void vocab_assume_defaults(pybpe_vocab *v, const vocab_file *f) {
    v->pattern = PYBPE_PATTERN_GPT2;
    v->normalizer = PYBPE_NORMALIZER_NONE;
    v->eot_id = f->version == 2 ? load_u32(f->data + 12) : f->count == GPT2_TOKENS ? GPT2_EOT : PYBPE_NO_ID;
    v->merges_count = 0;
    v->specials_count = v->eot_id != PYBPE_NO_ID;
    v->specials[0] = v->eot_id;
}

static int vocab_fill(pybpe_vocab *v, const vocab_file *f, pybpe_error *err) {
    const vocab_source from = {.is_file = true, .trailer = f->has_trailer ? f->trailer : 0};
    vocab_copy_tokens(v, f);
    if (f->has_trailer) {
        vocab_copy_trailer(v, f);
    } else {
        vocab_assume_defaults(v, f);
    }
    int code = vocab_index(v, &from, err);
    if (code == PYBPE_OK && !f->has_trailer) {
        code = vocab_recover(v, v->merges, &v->merges_count, err);
    }
    return code == PYBPE_OK ? resolve_merges(v, &from, err) : code;
}

int pybpe_vocab_load_mem(pybpe_vocab **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                         pybpe_error *err) {
    *out = NULL;
    vocab_file f = {.data = data, .n = n};
    vocab_sizes sizes = {0};
    int code = file_check_header(&f, err);
    if (code == PYBPE_OK) {
        sizes.tokens = f.count;
        code = file_check_tokens(&f, &sizes.bytes, err);
    }
    if (code == PYBPE_OK) {
        code = file_check_trailer(&f, &sizes, err);
    }
    if (code != PYBPE_OK) {
        return code;
    }
    if (!f.has_trailer) { /* room for what will be recovered */
        sizes.merges = f.count;
        sizes.specials = 1;
    }
    pybpe_vocab *v;
    code = vocab_alloc(&v, &sizes, mem, err);
    if (code != PYBPE_OK) {
        return code;
    }
    code = vocab_fill(v, &f, err);
    if (code != PYBPE_OK) {
        pybpe_vocab_free(v);
        return code;
    }
    *out = v;
    return PYBPE_OK;
}

int pybpe_vocab_load(pybpe_vocab **out, const char *path, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    uint8_t *data;
    size_t n;
    int code = file_read_all(path, &data, &n, mem, err);
    if (code != PYBPE_OK) {
        return code;
    }
    pybpe_error inner;
    code = pybpe_vocab_load_mem(out, data, n, mem, &inner);
    mem_free(mem, data);
    return code == PYBPE_OK ? PYBPE_OK : error_set(err, code, inner.offset, "%s: %s", path, inner.msg);
}

/* ---------------------------------------------------------------------------------------------------
Writing tokenizer.bin
*/

static int check_savable(const pybpe_vocab *v, const char *path, int version, pybpe_error *err) {
    if (version != 1 && version != 2) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "%s: tokenizer.bin has no version %d; choose 2, or 1 for old readers",
                         path, version);
    }
    for (size_t id = 0; id < v->count; id++) {
        size_t n = vocab_token_length(v, id);
        if (n == 0) {
            return error_set(err, PYBPE_ERR_LIMIT, id, "%s: id %zu is unused, which tokenizer.bin cannot express", path,
                             id);
        }
        if (n > FILE_TOKEN_MAX) {
            return error_set(err, PYBPE_ERR_LIMIT, id,
                             "%s: token %zu has %zu bytes; tokenizer.bin holds tokens of up to 255", path, id, n);
        }
    }
    return PYBPE_OK;
}

static uint8_t *put_u32s(uint8_t *at, const uint32_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        store_u32(at + 4 * i, values[i]);
    }
    return at + 4 * n;
}

static uint8_t *put_tokens(uint8_t *at, const pybpe_vocab *v) {
    for (size_t id = 0; id < v->count; id++) {
        size_t n = vocab_token_length(v, id);
        *at = (uint8_t)n;
        memcpy(at + 1, vocab_token(v, id), n);
        at += 1 + n;
    }
    return at;
}

/* Lays the whole file out in data[0..n). */
static void put_file(uint8_t *data, size_t n, size_t trailer, const pybpe_vocab *v, int version) {
    size_t custom = v->custom != NULL ? strlen(v->custom) : 0;
    memset(data, 0, FILE_HEADER);
    uint64_t length = n - trailer;
    const uint32_t header[7] = {FILE_MAGIC,   (uint32_t)version, (uint32_t)v->count,      version == 2 ? v->eot_id : 0,
                                TRAILER_MARK, (uint32_t)length,  (uint32_t)(length >> 32)};
    put_u32s(data, header, 7);
    uint8_t *at = put_tokens(data + FILE_HEADER, v);
    memcpy(at, TRAILER_MAGIC, sizeof TRAILER_MAGIC);
    const uint32_t fixed[8] = {TRAILER_LAYOUT,   (uint32_t)v->pattern,      (uint32_t)v->normalizer,
                               v->eot_id,        (uint32_t)v->merges_count, (uint32_t)v->specials_count,
                               (uint32_t)custom, (uint32_t)v->whole_words};
    at = put_u32s(at + sizeof TRAILER_MAGIC, fixed, 8);
    at = put_u32s(at, v->merges, 2 * v->merges_count);
    at = put_u32s(at, v->specials, v->specials_count);
    if (custom > 0) {
        memcpy(at, v->custom, custom);
    }
    store_u64(at + custom, checksum(data, n - TRAILER_CHECKSUM));
}

int pybpe_vocab_save(const pybpe_vocab *v, const char *path, int version, pybpe_error *err) {
    int code = check_savable(v, path, version, err);
    if (code != PYBPE_OK) {
        return code;
    }
    /* No sum here can overflow: each part is in memory already, several times larger. */
    size_t trailer = FILE_HEADER + (size_t)v->offsets[v->count] + v->count;
    size_t custom = v->custom != NULL ? strlen(v->custom) : 0;
    size_t n = trailer + TRAILER_FIXED + 8 * v->merges_count + 4 * v->specials_count + custom + TRAILER_CHECKSUM;
    uint8_t *data = mem_alloc(&v->mem, n);
    if (data == NULL) {
        return error_set_memory(err, path, n);
    }
    put_file(data, n, trailer, v, version);
    pybpe_output *o;
    code = pybpe_output_open(&o, path, &v->mem, err);
    if (code == PYBPE_OK) {
        code = pybpe_output_write(o, data, n, err);
        if (code == PYBPE_OK) {
            code = pybpe_output_commit(o, err);
        } else {
            pybpe_output_discard(o);
        }
    }
    mem_free(&v->mem, data);
    return code;
}
