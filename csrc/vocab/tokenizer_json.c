/*
Reading the large parts of a tokenizer.json, the vocabulary and the merges: a hundred times faster than with a general
JSON reader and dictionaries.

    "vocab": {"!": 0, "\"": 1, "Ġt": 256}        spelled with a printable character for each byte (byte_level)
    "merges": ["Ġ t", ["h", "e"]]                older files have strings, newer ones have pairs

This reader accepts typical files and refuses everything else with a short error: the caller then uses a general reader,
which either explains what is wrong or can read the file. So this reader may be strict, but if it accepts a file, it
must find exactly what a general reader finds.
*/
#include "vocab/vocab.h"
#include "json/json.h"

int pybpe_tokenizer_json_find(const uint8_t *text, size_t n, size_t spans[4]) {
    json_member parts[2] = {{.name = "vocab", .unchecked = true}, {.name = "merges", .unchecked = true}};
    json_member model = {.name = "model", .inner = parts, .inner_count = 2};
    json whole = {text, n > 0 ? text + n : text}; /* adding even 0 to NULL is undefined */
    if (!json_find(&whole, &model, 1) || json_peek(&whole) != 0 || whole.at < whole.end || model.begin == NULL ||
        parts[0].begin == NULL || parts[1].begin == NULL) {
        return 0;
    }
    for (size_t i = 0; i < 2; i++) {
        spans[2 * i] = (size_t)(parts[i].begin - text);
        spans[2 * i + 1] = (size_t)(parts[i].end - text);
    }
    return 1;
}

/* ---------------------------------------------------------------------------------------------------
Tokens as printable characters
*/

enum { BYTE_LEVEL_END = 0x144 }; /* one more than the last code point that represents a byte */

/* code point -> byte, or -1: the printable characters of Latin-1 represent themselves, and U+0100 and so on represent
   the other bytes in ascending order. Source: bytes_to_unicode() in OpenAI's GPT-2 encoder.py. */
static void byte_level_fill(int16_t byte_of[BYTE_LEVEL_END]) {
    int next = 0x100;
    memset(byte_of, 0xFF, BYTE_LEVEL_END * sizeof *byte_of);
    for (int byte = 0; byte < 256; byte++) {
        bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        byte_of[printable ? byte : next++] = (int16_t)byte;
    }
}

/* Converts printable UTF-8 to the bytes that it represents, in place; returns false if a character represents no
   byte. */
static bool byte_level_bytes(const int16_t byte_of[BYTE_LEVEL_END], uint8_t *text, size_t *n) {
    size_t length = 0;
    for (size_t i = 0; i < *n;) {
        uint32_t c = text[i++];
        if (c >= 0xC2 && c < 0xE0 && i < *n && byte_is_continuation(text[i])) { /* C0 and C1 are not UTF-8 */
            c = (c & 0x1F) << 6 | (text[i++] & 0x3F);
        } else if (c >= 0x80) {
            return false;
        }
        if (c >= BYTE_LEVEL_END || byte_of[c] < 0) {
            return false;
        }
        text[length++] = (uint8_t)byte_of[c];
    }
    *n = length;
    return true;
}

bool byte_level_decode(uint8_t *text, size_t *n) {
    int16_t byte_of[BYTE_LEVEL_END];
    byte_level_fill(byte_of);
    return byte_level_bytes(byte_of, text, n);
}

/* ---------------------------------------------------------------------------------------------------
The vocabulary
*/

typedef struct json_token {
    size_t start; /* in the reader's bytes */
    size_t length;
    uint32_t id;
} json_token;

typedef struct json_reader {
    const uint8_t *file; /* offsets of errors count from here; NULL: they are 0 */
    const pybpe_vocab_spec *spec;
    bool plain[256];                    /* bytes that represent themselves, in a JSON string too */
    const pybpe_strings *special_texts; /* in the order of spec->specials */
    int16_t byte_of[BYTE_LEVEL_END];
    uint8_t *bytes; /* of the tokens, in file order; room for all */
    size_t bytes_count, room;
    json_token *tokens; /* of the ordinary tokens, in file order; room for all */
    size_t tokens_count;
    uint8_t *found; /* for each special, whether the vocabulary has it */
} json_reader;

/* The index of the special with this id, or specials_count. */
static size_t special_of(const pybpe_vocab_spec *spec, uint32_t id) {
    size_t low = 0;
    size_t high = spec->specials_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spec->specials[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < spec->specials_count && spec->specials[low] == id ? low : spec->specials_count;
}

static const uint8_t *special_text(const json_reader *r, size_t i, size_t *n) {
    *n = (size_t)(r->special_texts->offsets[i + 1] - r->special_texts->offsets[i]);
    return r->special_texts->bytes + r->special_texts->offsets[i];
}

/* Reads the bytes that printable characters represent, up to the first other one, which the caller looks at. */
static const uint8_t *read_printable(const json_reader *r, const uint8_t *at, const uint8_t *end, uint8_t *out,
                                     size_t *n) {
    size_t length = 0;
    for (;;) {
        while (at < end && r->plain[*at]) {
            out[length++] = *at++;
        }
        if (end - at < 2 || *at < 0xC2 || *at >= 0xE0 || !byte_is_continuation(at[1])) {
            break;
        }
        uint32_t c = (uint32_t)(*at & 0x1F) << 6 | (at[1] & 0x3F);
        if (c >= BYTE_LEVEL_END || r->byte_of[c] < 0) {
            break;
        }
        out[length++] = (uint8_t)r->byte_of[c];
        at += 2;
    }
    *n = length;
    return at;
}

/* Reads `"text": id` of an ordinary token without escapes, as nearly all are; otherwise leaves j where it was. */
static bool read_plain_token(json_reader *r, json *j, uint32_t limit) {
    json after = *j;
    size_t n;
    uint32_t id;
    if (!json_take(&after, '"')) {
        return false;
    }
    after.at = read_printable(r, after.at, after.end, r->bytes + r->bytes_count, &n);
    if (n == 0 || after.at == after.end || *after.at++ != '"' || !json_take(&after, ':') ||
        !json_id(&after, limit, &id) || special_of(r->spec, id) < r->spec->specials_count) {
        return false;
    }
    r->tokens[r->tokens_count++] = (json_token){r->bytes_count, n, id};
    r->bytes_count += n;
    *j = after;
    return true;
}

/* Reads `"text": id`. The id of a special, which is already known, must have the text of that special. */
static bool read_token(json_reader *r, json *j, uint32_t limit) {
    if (read_plain_token(r, j, limit)) {
        return true;
    }
    uint8_t *text = r->bytes + r->bytes_count;
    size_t n;
    uint32_t id;
    if (!json_string(j, text, &n) || n == 0 || !json_take(j, ':') || !json_id(j, limit, &id)) {
        return false;
    }
    size_t special = special_of(r->spec, id);
    if (special < r->spec->specials_count) {
        size_t m;
        const uint8_t *known = special_text(r, special, &m);
        r->found[special] = 1;
        return m == n && memcmp(text, known, n) == 0;
    }
    if (!byte_level_bytes(r->byte_of, text, &n)) {
        return false;
    }
    r->tokens[r->tokens_count++] = (json_token){r->bytes_count, n, id};
    r->bytes_count += n;
    return true;
}

static bool read_tokens(json_reader *r, json *j, uint32_t limit) {
    if (!json_take(j, '{')) {
        return false;
    }
    do {
        if (!read_token(r, j, limit)) {
            return false;
        }
    } while (json_take(j, ','));
    return json_take(j, '}') && j->at == j->end;
}

/* Whether the specials that the vocabulary lacks have the ids that Hugging Face would give them: consecutive ids,
   starting at the number of tokens in the vocabulary. */
static bool specials_follow(const json_reader *r) {
    size_t next = r->tokens_count;
    for (size_t i = 0; i < r->spec->specials_count; i++) {
        next += r->found[i];
    }
    for (size_t i = 0; i < r->spec->specials_count; i++) {
        if (!r->found[i] && r->spec->specials[i] != next++) {
            return false;
        }
    }
    return true;
}

/* The most tokens that a text can contain: each takes at least six characters, as in `"a":1,`. */
static size_t most_tokens(size_t n) { return n / 6 + 1; }

/* The number of ids, including unused ones; 0 if there are more unused ids than in any sound file. */
static size_t count_ids(const json_reader *r) {
    size_t count = 0;
    size_t specials = r->spec->specials_count;
    for (size_t i = 0; i < r->tokens_count; i++) {
        count = r->tokens[i].id >= count ? (size_t)r->tokens[i].id + 1 : count;
    }
    for (size_t i = 0; i < specials; i++) { /* checked for ascending order after allocation */
        count = r->spec->specials[i] >= count ? (size_t)r->spec->specials[i] + 1 : count;
    }
    return count <= 2 * (r->tokens_count + specials) ? count : 0;
}

/* Stores lengths at offsets[id + 1], then adds them up; returns false if an id occurs twice. */
static bool lay_offsets(const json_reader *r, pybpe_vocab *v) {
    memset(v->offsets, 0, (v->count + 1) * sizeof *v->offsets);
    for (size_t i = 0; i < r->spec->specials_count; i++) {
        size_t n;
        special_text(r, i, &n);
        v->offsets[r->spec->specials[i] + 1] = n;
    }
    for (size_t i = 0; i < r->tokens_count; i++) {
        uint64_t *length = &v->offsets[r->tokens[i].id + 1];
        if (*length != 0) {
            return false;
        }
        *length = r->tokens[i].length;
    }
    for (size_t id = 0; id < v->count; id++) {
        v->offsets[id + 1] += v->offsets[id];
    }
    return true;
}

static void copy_tokens(const json_reader *r, pybpe_vocab *v) {
    for (size_t i = 0; i < r->spec->specials_count; i++) {
        size_t n;
        const uint8_t *text = special_text(r, i, &n);
        memcpy(v->bytes + v->offsets[r->spec->specials[i]], text, n);
        v->specials[i] = r->spec->specials[i];
    }
    for (size_t i = 0; i < r->tokens_count; i++) {
        memcpy(v->bytes + v->offsets[r->tokens[i].id], r->bytes + r->tokens[i].start, r->tokens[i].length);
    }
}

/* No ordinary token may have the same text as a special: a vocabulary has only one id for each text. */
static bool spellings_differ(json_reader *r, const pybpe_vocab *v) {
    for (size_t i = 0; i < r->spec->specials_count; i++) {
        size_t n;
        const uint8_t *text = special_text(r, i, &n);
        memcpy(r->bytes, text, n); /* the tokens of the spec are copied */
        if (byte_level_bytes(r->byte_of, r->bytes, &n) && pybpe_vocab_find(v, r->bytes, n, 0) != PYBPE_NO_ID) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------
Merges
*/

/* The id of the ordinary token spelled in text[0..n), which is overwritten. */
static bool find_spelled(const json_reader *r, const pybpe_vocab *v, uint8_t *text, size_t n, uint32_t *id) {
    if (!byte_level_bytes(r->byte_of, text, &n)) {
        return false;
    }
    *id = pybpe_vocab_find(v, text, n, 0);
    return *id != PYBPE_NO_ID;
}

/* Hugging Face drops a merge that begins like this, as if it were the first line of a merges.txt. */
static bool is_dropped(const uint8_t *text, size_t n) { return n >= 8 && memcmp(text, "#version", 8) == 0; }

/* Reads "left right" without escapes, as nearly all are; otherwise leaves j where it was. */
static bool read_plain_joined(const json_reader *r, json *j, const pybpe_vocab *v, uint32_t merge[2]) {
    json after = *j;
    size_t n;
    size_t m;
    if (!json_take(&after, '"')) {
        return false;
    }
    after.at = read_printable(r, after.at, after.end, r->bytes, &n);
    if (after.at == after.end || *after.at++ != ' ') {
        return false;
    }
    after.at = read_printable(r, after.at, after.end, r->bytes + n, &m);
    if (after.at == after.end || *after.at++ != '"' || is_dropped(r->bytes, n)) {
        return false;
    }
    merge[0] = vocab_find(v, r->bytes, n, r->bytes + r->room);
    merge[1] = vocab_find(v, r->bytes + n, m, r->bytes + r->room);
    if (merge[0] == PYBPE_NO_ID || merge[1] == PYBPE_NO_ID) {
        return false;
    }
    *j = after;
    return true;
}

/* Reads "left right". */
static bool read_joined(const json_reader *r, json *j, const pybpe_vocab *v, uint32_t merge[2]) {
    if (read_plain_joined(r, j, v, merge)) {
        return true;
    }
    size_t n;
    if (!json_string(j, r->bytes, &n)) {
        return false;
    }
    uint8_t *space = memchr(r->bytes, ' ', n); /* no byte is spelled as a space, so a second space is refused */
    if (space == NULL || is_dropped(r->bytes, n)) {
        return false;
    }
    size_t left = (size_t)(space - r->bytes);
    return find_spelled(r, v, r->bytes, left, &merge[0]) && find_spelled(r, v, space + 1, n - left - 1, &merge[1]);
}

/* Reads ["left", "right"]. */
static bool read_pair(const json_reader *r, json *j, const pybpe_vocab *v, uint32_t merge[2]) {
    for (size_t i = 0; i < 2; i++) {
        size_t n;
        if (!json_take(j, i == 0 ? '[' : ',') || !json_string(j, r->bytes, &n) ||
            !find_spelled(r, v, r->bytes, n, &merge[i])) {
            return false;
        }
    }
    return json_take(j, ']');
}

static bool read_merges(const json_reader *r, json *j, pybpe_vocab *v) {
    v->merges_count = 0;
    if (!json_take(j, '[')) {
        return false;
    }
    if (json_take(j, ']')) {
        return j->at == j->end;
    }
    do {
        uint32_t *merge = v->merges + 2 * v->merges_count++;
        if (!(json_peek(j) == '[' ? read_pair(r, j, v, merge) : read_joined(r, j, v, merge))) {
            return false;
        }
    } while (json_take(j, ','));
    return json_take(j, ']') && j->at == j->end;
}

/* The most merges that a text can contain: each takes at least six characters, as in `"a b",`. */
static size_t most_merges(size_t n) { return n / 6 + 1; }

/* Whether no pair is merged twice. Merges that make the same token are compared with each other. There are few: a token
   of n bytes can be made in at most n - 1 ways, and many of them only if all its prefixes are tokens. */
static int merges_differ(const pybpe_vocab *v, bool *differ, pybpe_error *err) {
    uint32_t *last = mem_alloc_zeroed(&v->mem, v->count, sizeof *last);               /* the last merge + 1 that made an
    id */
    uint32_t *before = mem_alloc_array(&v->mem, v->merges_count + 1, sizeof *before); /* the previous one that made the
    same id */
    *differ = true;
    for (size_t i = 0; last != NULL && before != NULL && *differ && i < v->merges_count; i++) {
        before[i] = last[v->merged[i]];
        for (uint32_t other = before[i]; other != 0; other = before[other - 1]) {
            *differ = *differ && v->merges[2 * ((size_t)other - 1)] != v->merges[2 * i];
        }
        last[v->merged[i]] = (uint32_t)i + 1;
    }
    int code =
        last != NULL && before != NULL ? PYBPE_OK : error_set_memory(err, "the merges of a vocabulary", v->count);
    mem_free(&v->mem, last);
    mem_free(&v->mem, before);
    return code;
}

/* ---------------------------------------------------------------------------------------------------
All together
*/

/* Refuses what is at `place`, or if that is NULL, all of it. */
static int refuse(const json_reader *r, const uint8_t *place, const char *what, pybpe_error *err) {
    const uint64_t offset = r->file != NULL && place != NULL ? (uint64_t)(place - r->file) : 0;
    return error_set(err, PYBPE_ERR_FORMAT, offset, "%s", what);
}

static const char BAD_VOCAB[] =
    "model.vocab must have from here on \"token\": id, each token spelled with the characters "
    "of byte-level BPE unless it is an added token with this id, and ids below 16777216";
static const char BAD_IDS[] = "model.vocab has an id twice, or more unused ids than tokens";
static const char BAD_SPECIALS[] =
    "the added tokens that model.vocab lacks do not have the ids after it, so Hugging Face "
    "gives them others: put each with its id in model.vocab";
static const char BAD_SPELLING[] = "model.vocab has an added token under another id";
static const char BAD_MERGES[] =
    "model.merges must have from here on pairs of tokens, such as \"t h\" or [\"t\", \"h\"]";
static const char BAD_REPEAT[] = "model.merges has a merge twice";

/* Makes a vocabulary of the tokens that were read, without merges but with room for them. */
static int make_vocab(json_reader *r, size_t merges, pybpe_vocab **out, const pybpe_allocator *mem, pybpe_error *err) {
    const size_t specials = r->spec->specials_count;
    const size_t special_bytes = (size_t)strings_total(r->special_texts);
    const vocab_sizes sizes = {.tokens = count_ids(r),
                               .bytes = r->bytes_count + special_bytes,
                               .merges = merges,
                               .specials = specials,
                               .custom = r->spec->custom != NULL ? strlen(r->spec->custom) : 0,
                               .has_custom = r->spec->custom != NULL,
                               .has_flags = r->spec->special_flags != NULL};
    if (sizes.tokens == 0) {
        return refuse(r, NULL, BAD_IDS, err);
    }
    int code = vocab_alloc(out, &sizes, mem, err);
    if (code != PYBPE_OK) {
        return code;
    }
    pybpe_vocab *v = *out;
    if (!lay_offsets(r, v)) {
        return refuse(r, NULL, BAD_IDS, err);
    }
    copy_tokens(r, v);
    vocab_copy_settings(v, r->spec);
    const vocab_source from = source_spec();
    code = vocab_index(v, &from, err);
    return code != PYBPE_OK || spellings_differ(r, v) ? code : refuse(r, NULL, BAD_SPELLING, err);
}

static int read_all(json_reader *r, json *vocab, json *merges, pybpe_vocab **out, const pybpe_allocator *mem,
                    pybpe_error *err) {
    size_t most = most_merges((size_t)(merges->end - merges->at));
    if (!read_tokens(r, vocab, UINT32_C(1) << 24)) {
        return refuse(r, vocab->at, BAD_VOCAB, err);
    }
    int code = make_vocab(r, most, out, mem, err);
    if (code == PYBPE_OK && !specials_follow(r)) {
        return refuse(r, NULL, BAD_SPECIALS, err);
    }
    if (code == PYBPE_OK && !read_merges(r, merges, *out)) {
        return refuse(r, merges->at, BAD_MERGES, err);
    }
    if (code == PYBPE_OK) {
        const vocab_source from = source_spec();
        code = vocab_resolve_merges(*out, &from, err);
    }
    bool differ = true;
    if (code == PYBPE_OK) {
        code = merges_differ(*out, &differ, err);
    }
    return differ ? code : refuse(r, NULL, BAD_REPEAT, err);
}

int tokenizer_json_parts(pybpe_vocab **out, tokenizer_parts parts, const pybpe_strings *special_texts,
                         const pybpe_vocab_spec *spec, const pybpe_allocator *mem, pybpe_error *err) {
    const size_t vocab_n = (size_t)(parts.vocab.end - parts.vocab.at);
    const size_t merges_n = (size_t)(parts.merges.end - parts.merges.at);
    *out = NULL;
    int code = special_texts_check(special_texts, spec, err);
    if (code != PYBPE_OK) {
        return code;
    }
    json_reader r = {.file = parts.file, .spec = spec, .special_texts = special_texts};
    byte_level_fill(r.byte_of);
    for (int byte = 0x21; byte < 0x7F; byte++) {
        r.plain[byte] = byte != '"' && byte != '\\';
    }
    size_t room = vocab_n > merges_n ? vocab_n : merges_n;
    const size_t specials = (size_t)strings_total(special_texts);
    if (!size_add(room, specials + 1, &room)) {
        return error_set_memory(err, "the parts of a tokenizer.json", room);
    }
    r.bytes = mem_alloc(mem, room);
    r.room = room;
    r.tokens = mem_alloc_array(mem, most_tokens(vocab_n), sizeof *r.tokens);
    r.found = mem_alloc_zeroed(mem, spec->specials_count + 1, 1);
    const bool is_ready = r.bytes != NULL && r.tokens != NULL && r.found != NULL;
    code = is_ready ? PYBPE_OK : error_set_memory(err, "the parts of a tokenizer.json", room);
    pybpe_vocab *v = NULL;
    if (code == PYBPE_OK) {
        code = read_all(&r, &parts.vocab, &parts.merges, &v, mem, err);
    }
    mem_free(mem, r.bytes);
    mem_free(mem, r.tokens);
    mem_free(mem, r.found);
    if (code != PYBPE_OK) {
        pybpe_vocab_free(v);
        return code;
    }
    *out = v;
    return PYBPE_OK;
}

int pybpe_vocab_new_json(pybpe_vocab **out, const uint8_t *vocab, size_t vocab_n, const uint8_t *merges,
                         size_t merges_n, const pybpe_strings *special_texts, const pybpe_vocab_spec *spec,
                         const pybpe_allocator *mem, pybpe_error *err) {
    const tokenizer_parts parts = {NULL, {vocab, vocab + vocab_n}, {merges, merges + merges_n}};
    return tokenizer_json_parts(out, parts, special_texts, spec, mem, err);
}
