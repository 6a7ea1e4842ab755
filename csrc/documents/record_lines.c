/*
Reads JSON lines for the cleaning of a corpus, which needs the texts of records, and writes most records again. A
record is written in one form: one space after a colon or a comma, and no space elsewhere between names and values. A
text has the escapes that Python's json writes with ensure_ascii=False. All other values stay as they are spelled.
*/
#include "documents/record.h"

/* Whether Python's json would spell the text in the same way: a character has one spelling, except by \u and \/. */
static bool is_usual(const json_spelling *string) {
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
        const uint8_t *const stop = json_special(at, end);
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

/* Whether a field has this name. */
static bool is_named(const record_field *field, const uint8_t *name, size_t n) {
    return field->name.n == n && memcmp(field->name.at, name, n) == 0;
}

/* Whether a record repeats a name. */
static bool names_repeat(const json_record *found) {
    for (size_t i = 1; i < found->count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (is_named(&found->fields[k], found->fields[i].name.at, found->fields[i].name.n)) {
                return true;
            }
        }
    }
    return false;
}

/* Writes a record whose text has n bytes in UTF-8, perhaps without its cluster. Returns the place after its line. */
static uint8_t *record_write(const json_record *found, const uint8_t *text, size_t n, bool no_cluster, uint8_t *to) {
    *to++ = '{';
    for (const record_field *field = found->fields; field < found->fields + found->count; field++) {
        if (no_cluster && is_named(field, (const uint8_t *)RECORD_CLUSTER, sizeof RECORD_CLUSTER - 1)) {
            continue;
        }
        if (to[-1] != '{') { /* not the first: no value ends in a brace that opens */
            *to++ = ',';
            *to++ = ' ';
        }
        to = bytes_write(field->name.at - 1, field->name.at + field->name.n + 1, to);
        *to++ = ':';
        *to++ = ' ';
        const bool is_text = field->value + 1 == found->text.at;
        to = is_text && !is_usual(&found->text) ? string_write(text, n, to) : bytes_write(field->value, field->end, to);
    }
    *to++ = '}';
    *to++ = '\n';
    return to;
}

/* Adds a record to the lists of texts and lines, unless its text is empty. */
static bool record_add_to(pybpe_records *out, const json_record *found, bool no_cluster) {
    uint8_t *const text = out->texts + out->text_offsets[out->count];
    uint8_t *const line = out->lines + out->line_offsets[out->count];
    size_t n;
    if (!json_unescape(&found->text, text, &n) || (n > 0 && names_repeat(found))) {
        return false;
    }
    if (n > 0) {
        uint8_t *const end = record_write(found, text, n, no_cluster, line);
        out->count += 1;
        out->text_offsets[out->count] = (uint64_t)(text - out->texts) + n;
        out->line_offsets[out->count] = (uint64_t)(end - out->lines);
    }
    return true;
}

int pybpe_records_read(pybpe_records *out, const uint8_t *lines, size_t n, const uint8_t *key, size_t key_n,
                       int no_cluster, pybpe_error *err) {
    record_field fields[RECORD_FIELDS];
    json_record found = {.fields = fields};
    json rest = {lines, lines + n};
    bool ok = pybpe_utf8_valid(lines, n) == n;
    out->count = out->records = out->line_ends = 0;
    out->text_offsets[0] = out->line_offsets[0] = 0;
    while (ok && rest.at < rest.end) {
        const uint8_t *const line = rest.at;
        ok = record_read(&rest, key, key_n, &found) && (found.blank || record_add_to(out, &found, no_cluster != 0));
        rest.at = ok ? rest.at : line;
        out->records += ok && !found.blank;
        out->line_ends += ok && rest.at[-1] == '\n'; /* only the last line may lack one */
    }
    if (!ok) {
        return error_set(err, PYBPE_ERR_FORMAT, (uint64_t)(rest.at - lines),
                         "this line needs a complete parser of JSON");
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
