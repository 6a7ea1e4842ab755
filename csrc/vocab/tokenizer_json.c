/*
Reading the large parts of a tokenizer.json, the vocabulary and the merges: a hundred times faster than with a general
JSON reader and dictionaries.

    "vocab": {"!": 0, "\"": 1, "Ġt": 256}        spelled with a printable character per byte (byte_level)
    "merges": ["Ġ t", ["h", "e"]]                older files have strings, newer ones have pairs

This reader accepts typical files and refuses everything else with a short error: the caller then uses a general reader,
which either explains what is wrong or can read the file. So this reader may be strict, but if it accepts a file, it
must find exactly the same as a general reader.
*/
#include "vocab/vocab.h"
#include "json/json.h"

int pybpe_tokenizer_json_find(const uint8_t *text, size_t n, size_t spans[4]) {
    json_member parts[2] = {{.name = "vocab"}, {.name = "merges"}};
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

/* Converts printable UTF-8 to the bytes that it represents, in place. Returns false if a character represents no
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
    uint32_t length;
    uint32_t id;
} json_token;

typedef struct json_reader {
    const uint8_t *file; /* offsets of errors count from here. NULL: they are 0 */
    const pybpe_vocab_spec *spec;
    const pybpe_strings *special_texts; /* in the order of spec->specials */
    int16_t byte_of[BYTE_LEVEL_END];
    uint8_t *bytes; /* of the tokens, in file order. Room for all */
    size_t bytes_count, room;
    json_token *tokens; /* of the ordinary tokens, in file order. Room for all */
    size_t tokens_count;
    uint8_t *found; /* for every special, whether the vocabulary has it */
} json_reader;

static const uint8_t *special_text(const json_reader *r, size_t i, size_t *n) {
    *n = (size_t)(r->special_texts->offsets[i + 1] - r->special_texts->offsets[i]);
    return r->special_texts->bytes + r->special_texts->offsets[i];
}

/* The number of bytes before the first of 8 that does not represent itself in a JSON string. */
static size_t plain_bytes(uint64_t x) {
    const uint64_t below = (x - EACH_BYTE(0x21)) & ~x; /* the high bit of the first byte below "!" */
    const uint64_t others = below | x | bytes_equal(x, '"') | bytes_equal(x, '\\') | bytes_equal(x, 0x7F);
    const uint64_t highs = others & EACH_BYTE(0x80);
    return highs != 0 ? (size_t)__builtin_ctzll(highs) / 8 : 8;
}

enum { READ_AHEAD = 8 };

/* Reads the bytes that printable characters represent up to `stop`, and moves past that: without escapes, as nearly all
   tokens are spelled. Otherwise returns false, also near the end of the text. There must be room for READ_AHEAD more. */
static bool read_printable(const json_reader *r, json *j, uint8_t stop, uint8_t *out, size_t *n) {
    const uint8_t *at = j->at;
    for (*n = 0; j->end - at >= READ_AHEAD;) {
        const size_t plain = plain_bytes(load_u64(at));
        memcpy(out + *n, at, READ_AHEAD);
        *n += plain;
        at += plain;
        if (plain == READ_AHEAD) {
            continue;
        }
        if (*at == stop) {
            j->at = at + 1;
            return true;
        }
        if (j->end - at < 2 || *at < 0xC2 || *at >= 0xE0 || !byte_is_continuation(at[1])) {
            break;
        }
        const uint32_t c = (uint32_t)(*at & 0x1F) << 6 | (at[1] & 0x3F);
        if (c >= BYTE_LEVEL_END || r->byte_of[c] < 0) {
            break;
        }
        out[(*n)++] = (uint8_t)r->byte_of[c];
        at += 2;
    }
    return false;
}

/* Reads a string without escapes as the bytes that its characters represent, otherwise leaves j where it was. */
static bool read_plain(const json_reader *r, json *j, uint8_t *out, size_t *n) {
    json after = *j;
    const bool is_plain = json_take(&after, '"') && read_printable(r, &after, '"', out, n);
    *j = is_plain ? after : *j;
    return is_plain;
}

/* Reads `"text": id`. The id of a special, which is already known, must have the text of that special. */
static bool read_token(json_reader *r, json *j, uint32_t limit) {
    uint8_t *text = r->bytes + r->bytes_count;
    size_t n;
    uint32_t id;
    json again = *j;
    const bool plain = read_plain(r, j, text, &n);
    if ((!plain && !json_string(j, text, &n)) || n == 0 || !json_take(j, ':') || !json_id(j, limit, &id)) {
        return false;
    }
    size_t special = special_find(r->spec->specials, r->spec->specials_count, id);
    if (special < r->spec->specials_count) {
        size_t m;
        const uint8_t *known = special_text(r, special, &m);
        r->found[special] = 1;
        return json_string(&again, text, &n) && m == n && memcmp(text, known, n) == 0;
    }
    if (!plain && !byte_level_bytes(r->byte_of, text, &n)) {
        return false;
    }
    r->tokens[r->tokens_count++] = (json_token){(uint32_t)n, id};
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

/* The most tokens that a text can contain: one takes at least six characters, as in `"a":1,`. */
static size_t most_tokens(size_t n) { return n / 6 + 1; }

/* The number of ids, including unused ones, or 0 if there are more unused ids than in any sound file. */
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

/* Stores lengths at offsets[id + 1], then adds them up. Returns false if an id occurs twice. */
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
    const uint8_t *from = r->bytes;
    for (size_t i = 0; i < r->tokens_count; i++) {
        memcpy(v->bytes + v->offsets[r->tokens[i].id], from, r->tokens[i].length);
        from += r->tokens[i].length;
    }
}

/* No ordinary token may have the same text as a special: a vocabulary has only one id per text. */
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

/* A merge that has been read but not looked up. */
typedef struct spelled_merge {
    token_key parts[2];
    const uint8_t *end; /* in the file */
} spelled_merge;

/* Merges are looked up some at a time, so that the memory for one is on its way while others are read. */
enum { MERGES_AHEAD = 16 };

/* Reads a string as the bytes that its characters represent. */
static bool read_spelled(const json_reader *r, json *j, uint8_t *out, size_t *n) {
    return read_plain(r, j, out, n) || (json_string(j, out, n) && byte_level_bytes(r->byte_of, out, n));
}

/* Hugging Face drops a merge that begins like this, as if it were the first line of a merges.txt. */
static bool is_dropped(const uint8_t *text, size_t n) { return n >= 8 && memcmp(text, "#version", 8) == 0; }

/* Reads "left right" to `out`, the bytes of both one after the other. */
static bool read_joined(const json_reader *r, json *j, uint8_t *out, size_t *n, size_t *m) {
    size_t both;
    json plain = *j;
    if (json_take(&plain, '"') && read_printable(r, &plain, ' ', out, n) &&
        read_printable(r, &plain, '"', out + *n, m) && !is_dropped(out, *n)) {
        *j = plain;
        return true;
    }
    if (!json_string(j, out, &both)) {
        return false;
    }
    uint8_t *space = memchr(out, ' ', both); /* no byte is spelled as a space, so a second space is refused */
    if (space == NULL || is_dropped(out, both)) {
        return false;
    }
    *n = (size_t)(space - out);
    *m = both - *n - 1;
    if (!byte_level_bytes(r->byte_of, out, n) || !byte_level_bytes(r->byte_of, space + 1, m)) {
        return false;
    }
    memmove(out + *n, space + 1, *m);
    return true;
}

/* Reads ["left", "right"], as read_joined. */
static bool read_pair(const json_reader *r, json *j, uint8_t *out, size_t *n, size_t *m) {
    return json_take(j, '[') && read_spelled(r, j, out, n) && json_take(j, ',') && read_spelled(r, j, out + *n, m) &&
           json_take(j, ']');
}

/* Adds merges to v. If a part is no token, returns false, with j after that merge. */
static bool find_merges(pybpe_vocab *v, const spelled_merge *merges, size_t count, json *j) {
    for (size_t i = 0; i < 2 * count; i++) {
        vocab_prefetch_token(v, merges[i / 2].parts[i % 2].hash);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t *ids = v->merges + 2 * v->merges_count++;
        for (size_t part = 0; part < 2; part++) {
            ids[part] = vocab_find(v, &v->ordinary_index, &merges[i].parts[part]);
            if (ids[part] == PYBPE_NO_ID) {
                j->at = merges[i].end;
                return false;
            }
        }
    }
    return true;
}

static bool read_merges(const json_reader *r, json *j, pybpe_vocab *v) {
    spelled_merge merges[MERGES_AHEAD];
    const uint8_t *const end = r->bytes + r->room;
    bool more = true;
    v->merges_count = 0;
    if (!json_take(j, '[')) {
        return false;
    }
    if (json_take(j, ']')) {
        return j->at == j->end;
    }
    while (more) {
        uint8_t *out = r->bytes;
        size_t count = 0;
        bool sound = true;
        while (sound && more && count < MERGES_AHEAD) {
            size_t n, m;
            sound = json_peek(j) == '[' ? read_pair(r, j, out, &n, &m) : read_joined(r, j, out, &n, &m);
            if (sound) {
                merges[count] = (spelled_merge){{vocab_key(v, out, n, end), vocab_key(v, out + n, m, end)}, j->at};
                vocab_prefetch(v, merges[count].parts[0].hash);
                vocab_prefetch(v, merges[count].parts[1].hash);
                count += 1;
                out += n + m;
                more = json_take(j, ',');
            }
        }
        if (!find_merges(v, merges, count, j) || !sound) {
            return false;
        }
    }
    return json_take(j, ']') && j->at == j->end;
}

/* The most merges that a text can contain: one takes at least six characters, as in `"a b",`. */
static size_t most_merges(size_t n) { return n / 6 + 1; }

/* Whether no pair is merged twice. Merges that make the same token are compared with each other. There are few: a token
   of n bytes can be made in at most n - 1 ways, and many of them only if all its prefixes are tokens. */
static int merges_differ(const pybpe_vocab *v, bool *differ, pybpe_error *err) {
    /* The last merge + 1 that made an id, and for every merge, the previous one + 1 that made the same id. */
    uint32_t *last = mem_alloc_zeroed(&v->mem, v->count, sizeof *last);
    uint32_t *before = mem_alloc_array(&v->mem, v->merges_count + 1, sizeof *before);
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

/* Refuses the value at `place`, or if that is NULL, the whole file. */
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
    PYBPE_TRY(vocab_alloc(out, &sizes, mem, err));
    pybpe_vocab *v = *out;
    if (!lay_offsets(r, v)) {
        return refuse(r, NULL, BAD_IDS, err);
    }
    copy_tokens(r, v);
    vocab_copy_settings(v, r->spec);
    const vocab_source from = source_spec();
    int code = vocab_index(v, &from, err);
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
    code = code == PYBPE_OK ? merges_differ(*out, &differ, err) : code;
    return differ ? code : refuse(r, NULL, BAD_REPEAT, err);
}

int tokenizer_json_parts(pybpe_vocab **out, tokenizer_parts parts, const pybpe_strings *special_texts,
                         const pybpe_vocab_spec *spec, const pybpe_allocator *mem, pybpe_error *err) {
    const size_t vocab_n = (size_t)(parts.vocab.end - parts.vocab.at);
    const size_t merges_n = (size_t)(parts.merges.end - parts.merges.at);
    *out = NULL;
    int code = special_texts_check(special_texts, spec, err);
    if (code == PYBPE_OK && vocab_n > UINT32_MAX) { /* LCOV_EXCL_BR_LINE: more than 4 GiB */
        code = error_set(err, PYBPE_ERR_LIMIT, 0, "model.vocab may have up to 4,294,967,295 bytes");
    }
    if (code != PYBPE_OK) {
        return code;
    }
    json_reader r = {.file = parts.file, .spec = spec, .special_texts = special_texts};
    byte_level_fill(r.byte_of);
    size_t room = vocab_n > merges_n ? vocab_n : merges_n;
    const size_t specials = (size_t)strings_total(special_texts);
    if (!size_add(room, READ_AHEAD, &room) || !size_add(room, specials, &room)) {
        return error_set_memory(err, "the parts of a tokenizer.json", room);
    }
    r.bytes = mem_alloc(mem, room);
    r.room = room;
    r.tokens = mem_alloc_array(mem, most_tokens(vocab_n), sizeof *r.tokens);
    r.found = mem_alloc_zeroed(mem, spec->specials_count + 1, 1);
    const bool is_ready = r.bytes != NULL && r.tokens != NULL && r.found != NULL;
    code = is_ready ? PYBPE_OK : error_set_memory(err, "the parts of a tokenizer.json", room);
    pybpe_vocab *v = NULL;
    code = code == PYBPE_OK ? read_all(&r, &parts.vocab, &parts.merges, &v, mem, err) : code;
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
    *out = NULL;
    int code = array_check(vocab, vocab_n, "the bytes of the vocabulary", err);
    code = code == PYBPE_OK ? array_check(merges, merges_n, "the bytes of the merges", err) : code;
    if (code != PYBPE_OK || vocab_n == 0 || merges_n == 0) {
        return code != PYBPE_OK ? code : error_set(err, PYBPE_ERR_FORMAT, 0, "there is no vocabulary, or no merges");
    }
    const tokenizer_parts parts = {NULL, {vocab, vocab + vocab_n}, {merges, merges + merges_n}};
    return tokenizer_json_parts(out, parts, special_texts, spec, mem, err);
}
