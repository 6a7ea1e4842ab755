/*
Reads JSON lines for the cleaning of a corpus, which needs the text of each record, and writes most records again. A
record is written in one form: one space after each colon and comma, and no space elsewhere between names and values. A
text has the escapes that Python's json writes with ensure_ascii=False; all other values stay as they are spelled.
*/
#include "documents/record.h"
#include "json/json.h"

enum { MAX_NAMES = 64 }; /* a record with more is left to the caller */

/* Whether Python's json would spell the text in the same way: each character has one spelling, except by \u and \/. */
static bool is_usual(const record_string *string) {
    const uint8_t *at = string->at;
    const uint8_t *const end = at + string->n;
    while (string->escaped && (at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
        if (at[1] == 'u' || at[1] == '/') {
            return false;
        }
        at += 2; /* an escape is complete */
    }
    return true;
}

static const char hex_digits[] = "0123456789abcdef";

static uint8_t *bytes_write(const uint8_t *from, const uint8_t *end, uint8_t *to) {
    memcpy(to, from, (size_t)(end - from));
    return to + (end - from);
}

/* Writes a string with its quotes. Returns the place after it. */
static uint8_t *string_write(const uint8_t *at, size_t n, uint8_t *to) {
    const uint8_t *const end = at + n;
    *to++ = '"';
    for (;; at++) {
        const uint8_t *const stop = record_special(at, end);
        to = bytes_write(at, stop, to);
        at = stop;
        if (at == end) {
            break;
        }
        const uint8_t c = *at;
        const uint8_t letter = json_escape_letter(c);
        if (letter != 0) {
            *to++ = '\\';
            *to++ = letter;
        } else {
            memcpy(to, "\\u00", 4);
            to[4] = (uint8_t)hex_digits[c >> 4];
            to[5] = (uint8_t)hex_digits[c & 15];
            to += 6;
        }
    }
    *to++ = '"';
    return to;
}

/* From here on, record_read has checked the line. */

static const uint8_t *space_skip(const uint8_t *at) {
    while (*at == ' ' || *at == '\t' || *at == '\r') {
        at += 1;
    }
    return at;
}

/* The closing quote of the string whose opening quote is at `at`. */
static const uint8_t *quote_after(const uint8_t *at) {
    do {
        at += 1 + (*at == '\\');
    } while (*at != '"');
    return at;
}

/* The end of a value in an object, without the space after it. */
static const uint8_t *value_end(const uint8_t *at) {
    size_t depth = 0;
    for (; depth > 0 || (*at != ',' && *at != '}'); at++) {
        if (*at == '"') {
            at = quote_after(at);
        }
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
    }
    while (at[-1] == ' ' || at[-1] == '\t' || at[-1] == '\r') {
        at -= 1;
    }
    return at;
}

/* Adds a name to a record's names. Returns false if the record has it, or has too many. */
static bool name_add(record_string *names, size_t *count, const uint8_t *at, size_t n) {
    for (size_t i = 0; i < *count; i++) {
        if (names[i].n == n && memcmp(names[i].at, at, n) == 0) {
            return false;
        }
    }
    if (*count == MAX_NAMES) {
        return false;
    }
    names[(*count)++] = (record_string){.at = at, .n = n};
    return true;
}

/* Writes the record at `at`, whose text has n bytes in UTF-8, without the field whose name is spelled `without`.
   Returns the place after its line; NULL if a name is repeated or there are too many. */
static uint8_t *record_write(const uint8_t *at, const json_record *found, const uint8_t *text, size_t n,
                             record_string without, uint8_t *to) {
    record_string names[MAX_NAMES];
    size_t count = 0;
    *to++ = '{';
    for (at = space_skip(at); *at != '}';) { /* at the opening brace, or the comma after a value */
        const uint8_t *const name = space_skip(at + 1);
        const uint8_t *const stop = quote_after(name) + 1;
        if (!name_add(names, &count, name, (size_t)(stop - name))) {
            return NULL;
        }
        const uint8_t *const value = space_skip(space_skip(stop) + 1);
        const bool is_text = value + 1 == found->text.at;
        const uint8_t *const end = is_text ? found->text.at + found->text.n + 1 : value_end(value);
        at = space_skip(end);
        if ((size_t)(stop - name) == without.n && memcmp(name, without.at, without.n) == 0) {
            continue;
        }
        if (to[-1] != '{') { /* not the first: no value ends in a brace that opens */
            *to++ = ',';
            *to++ = ' ';
        }
        to = bytes_write(name, stop, to);
        *to++ = ':';
        *to++ = ' ';
        to = is_text && !is_usual(&found->text) ? string_write(text, n, to) : bytes_write(value, end, to);
    }
    *to++ = '}';
    *to++ = '\n';
    return to;
}

/* Adds a record to the lists of texts and lines, unless its text is empty. */
static bool record_add_to(pybpe_records *out, const uint8_t *at, const json_record *found, record_string without) {
    uint8_t *const text = out->texts + out->text_offsets[out->count];
    uint8_t *const line = out->lines + out->line_offsets[out->count];
    size_t n = found->text.n;
    if (!found->text.escaped) {
        memcpy(text, found->text.at, n);
    } else if (!record_unescape(&found->text, text, &n)) {
        return false;
    }
    if (n == 0) {
        return true;
    }
    uint8_t *const end = record_write(at, found, text, n, without, line);
    if (end == NULL) {
        return false;
    }
    out->count += 1;
    out->text_offsets[out->count] = (uint64_t)(text - out->texts) + n;
    out->line_offsets[out->count] = (uint64_t)(end - out->lines);
    return true;
}

int pybpe_records_read(pybpe_records *out, const uint8_t *lines, size_t n, const uint8_t *key, size_t key_n,
                       int no_cluster, pybpe_error *err) {
    static const uint8_t cluster[] = "\"" RECORD_CLUSTER "\"";
    const record_string without = {.at = cluster, .n = no_cluster != 0 ? sizeof cluster - 1 : 0};
    const uint8_t *const end = lines + n;
    const uint8_t *at = lines;
    bool ok = pybpe_utf8_valid(lines, n) == n;
    out->count = out->records = out->line_ends = 0;
    out->text_offsets[0] = out->line_offsets[0] = 0;
    while (ok && at < end) {
        json_record found;
        ok = record_read(at, end, key, key_n, &found);
        if (ok && !found.blank) {
            ok = record_add_to(out, at, &found, without);
            out->records += 1;
        }
        at = ok ? found.end : at;
        out->line_ends += ok && at[-1] == '\n'; /* only the last line may lack one */
    }
    if (!ok) {
        return error_set(err, PYBPE_ERR_FORMAT, (uint64_t)(at - lines), "this line needs a complete parser of JSON");
    }
    return PYBPE_OK;
}

int pybpe_records_write(uint8_t *lines, uint64_t *offsets, const pybpe_strings *texts, const uint8_t *name,
                        size_t name_n, pybpe_error *err) {
    const int code = strings_check(texts, "texts", err);
    uint8_t *to = lines;
    offsets[0] = 0;
    for (size_t i = 0; code == PYBPE_OK && i < texts->count; i++) {
        const uint8_t *const text = string_at(texts, i);
        const size_t n = string_length(texts, i);
        if (pybpe_utf8_valid(text, n) != n) {
            return error_set(err, PYBPE_ERR_FORMAT, i, "text %zu is not UTF-8", i);
        }
        *to++ = '{';
        to = bytes_write(name, name + name_n, to);
        *to++ = ':';
        *to++ = ' ';
        to = string_write(text, n, to);
        *to++ = '}';
        *to++ = '\n';
        offsets[i + 1] = (uint64_t)(to - lines);
    }
    return code;
}

/* Writes the end of a record with its cluster. */
static uint8_t *cluster_write(const uint8_t *cluster, uint8_t *to) {
    static const uint8_t field[] = ", \"" RECORD_CLUSTER "\": \"";
    to = bytes_write(field, field + sizeof field - 1, to);
    for (size_t i = 0; i < PYBPE_DIGEST_SIZE; i++) {
        *to++ = (uint8_t)hex_digits[cluster[i] >> 4];
        *to++ = (uint8_t)hex_digits[cluster[i] & 15];
    }
    memcpy(to, "\"}\n", 3);
    return to + 3;
}

int pybpe_records_keep(uint8_t *out, size_t *n, const pybpe_strings *lines, const uint8_t *keeps,
                       const uint8_t *clusters, pybpe_error *err) {
    const int code = strings_check(lines, "lines", err);
    uint8_t *to = out;
    for (size_t i = 0; code == PYBPE_OK && i < lines->count; i++) {
        const uint8_t *const line = string_at(lines, i);
        const uint8_t *const end = line + string_length(lines, i);
        if (end - line < 2) {
            return error_set(err, PYBPE_ERR_VALUE, i, "line %zu is not a record", i);
        }
        if (keeps[i] != 0) {
            to = bytes_write(line, clusters != NULL ? end - 2 : end, to);
            to = clusters != NULL ? cluster_write(clusters + i * PYBPE_DIGEST_SIZE, to) : to;
        }
    }
    *n = (size_t)(to - out);
    return code;
}
