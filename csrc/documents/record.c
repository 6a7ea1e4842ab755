/*
Reads JSON lines without making an object for each value. Everything in the line is checked as RFC 8259 defines it, so
that no line is accepted that Python's json refuses. In addition, NaN and the infinities are accepted, as in Python.

Strings are most of a corpus, so they are read 8 bytes at a time. `special` bytes end a step: quotes, backslashes, and
the control characters that a string must not contain.
*/
#include "documents/record.h"
#include "unicode/unicode.h"
#include "json/json.h"

enum {
    MAX_DEPTH = 64,   /* of brackets; a line with more is left to the caller */
    MAX_NUMBER = 300, /* bytes; Python refuses some longer integers */
    HIGH_FIRST = 0xD800,
    LOW_FIRST = 0xDC00,
    LOW_LAST = 0xDFFF
};

/* The high bit of the first byte that is special, and perhaps of bytes after it. */
static uint64_t special_bytes(uint64_t x) {
    uint64_t control = (x - UINT64_C(0x2020202020202020)) & ~x & UINT64_C(0x8080808080808080);
    return bytes_equal(x, '"') | bytes_equal(x, '\\') | control;
}

const uint8_t *record_special(const uint8_t *at, const uint8_t *end) {
    for (; end - at >= 8; at += 8) {
        uint64_t found = special_bytes(load_u64(at));
        if (found != 0) {
            return at + __builtin_ctzll(found) / 8;
        }
    }
    while (at < end && *at != '"' && *at != '\\' && *at >= 0x20) {
        at += 1;
    }
    return at;
}

/* Reads a string whose opening quote is before `at`. Returns the place after its closing quote, or NULL. */
static const uint8_t *string_read(const uint8_t *at, const uint8_t *end, record_string *string) {
    string->at = at;
    string->escaped = false;
    while ((at = record_special(at, end)) < end) {
        if (*at == '"') {
            string->n = (size_t)(at - string->at);
            return at + 1;
        }
        if (*at != '\\' || end - at < 2) {
            return NULL;
        }
        string->escaped = true;
        if (at[1] == 'u') {
            if (json_unit(at + 2, end) < 0) {
                return NULL;
            }
            at += 6;
        } else if (json_escaped_char(at[1]) != 0) {
            at += 2;
        } else {
            return NULL;
        }
    }
    return NULL;
}

/* The character at \uXXXX, which string_read has checked, or at two of these that are a surrogate pair. Moves *at past
   them. Returns -1 for half of a pair. */
static int32_t unicode_escape(const uint8_t **at, const uint8_t *end) {
    int32_t c = json_unit(*at + 2, end);
    *at += 6;
    if (c < HIGH_FIRST || c > LOW_LAST) {
        return c;
    }
    if (c >= LOW_FIRST || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u') {
        return -1;
    }
    int32_t low = json_unit(*at + 2, end);
    *at += 6;
    if (low < LOW_FIRST || low > LOW_LAST) {
        return -1;
    }
    return 0x10000 + ((c - HIGH_FIRST) << 10 | (low - LOW_FIRST));
}

bool record_unescape(const record_string *string, uint8_t *out, size_t *n) {
    const uint8_t *at = string->at;
    const uint8_t *const end = at + string->n;
    uint8_t *to = out;
    while (at < end) {
        const uint8_t *stop = memchr(at, '\\', (size_t)(end - at));
        size_t run = (size_t)((stop == NULL ? end : stop) - at);
        memcpy(to, at, run);
        to += run;
        if (stop == NULL) {
            break;
        }
        at = stop;
        if (at[1] != 'u') {
            *to++ = json_escaped_char(at[1]);
            at += 2;
            continue;
        }
        int32_t c = unicode_escape(&at, end);
        if (c < 0) {
            return false;
        }
        to += unicode_write(to, (uint32_t)c);
    }
    *n = (size_t)(to - out);
    return true;
}

static const uint8_t *skip_space(const uint8_t *at, const uint8_t *end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) {
        at += 1;
    }
    return at;
}

static const uint8_t *skip_digits(const uint8_t *at, const uint8_t *end) {
    while (at < end && *at >= '0' && *at <= '9') {
        at += 1;
    }
    return at;
}

/* Moves past at least one digit; NULL if there is none. */
static const uint8_t *some_digits(const uint8_t *at, const uint8_t *end) {
    const uint8_t *stop = skip_digits(at, end);
    return stop > at ? stop : NULL;
}

static const uint8_t *number_read(const uint8_t *at, const uint8_t *end) {
    const uint8_t *const start = at;
    at += at < end && *at == '-'; /* LCOV_EXCL_BR_LINE: the callers have seen a byte; make prove has not */
    at = at < end && *at == '0' ? at + 1 : some_digits(at, end);
    if (at != NULL && at < end && *at == '.') {
        at = some_digits(at + 1, end);
    }
    if (at != NULL && at < end && (*at == 'e' || *at == 'E')) {
        at += 1;
        at += at < end && (*at == '-' || *at == '+');
        at = some_digits(at, end);
    }
    return at != NULL && at - start <= MAX_NUMBER ? at : NULL;
}

/* Reads a number or a word such as null. Returns the place after it, or NULL. */
static const uint8_t *scalar_read(const uint8_t *at, const uint8_t *end) {
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(end - at) >= n && *at == (uint8_t)words[i][0] && memcmp(at, words[i], n) == 0) {
            return at + n;
        }
    }
    return number_read(at, end);
}

/* Moves past a name and its colon; NULL if they are not there. */
static const uint8_t *name_read(const uint8_t *at, const uint8_t *end, record_string *name) {
    at = skip_space(at, end);
    if (at == end || *at != '"' || (at = string_read(at + 1, end, name)) == NULL) {
        return NULL;
    }
    at = skip_space(at, end);
    return at < end && *at == ':' ? skip_space(at + 1, end) : NULL;
}

/* Whether the value after `at` belongs to an object, for which its name is read, too. */
static const uint8_t *member_read(const uint8_t *at, const uint8_t *end, uint8_t opened) {
    record_string name;
    return opened == '{' ? name_read(at, end, &name) : skip_space(at, end);
}

/* Reads any value. Returns the place after it, or NULL. */
static const uint8_t *value_read(const uint8_t *at, const uint8_t *end) {
    uint8_t opened[MAX_DEPTH];
    size_t depth = 0;
    record_string string;
    while (at != NULL && at < end) {
        bool opens = *at == '{' || *at == '[';
        if (opens) {
            if (depth == MAX_DEPTH) {
                return NULL;
            }
            opened[depth++] = *at;
            at = skip_space(at + 1, end);
            if (at == end) {
                return NULL;
            }
            if (*at != opened[depth - 1] + 2) { /* ASCII has ] two after [, and } two after { */
                at = member_read(at, end, opened[depth - 1]);
                continue;
            }
        } else {
            at = *at == '"' ? string_read(at + 1, end, &string) : scalar_read(at, end);
        }
        /* A value or an empty bracket has just ended: close what ends with it. */
        while (at != NULL && depth > 0) {
            at = opens ? at : skip_space(at, end);
            opens = false;
            if (at == end || *at != opened[depth - 1] + 2) {
                break;
            }
            at += 1;
            depth -= 1;
        }
        if (depth == 0 || at == NULL) {
            return at;
        }
        if (at == end || *at != ',') {
            return NULL;
        }
        at = member_read(at + 1, end, opened[depth - 1]);
    }
    return NULL;
}

static bool string_is(const record_string *string, const uint8_t *text, size_t n) {
    return string->n == n && memcmp(string->at, text, n) == 0;
}

/* Reads the value of a member, and keeps it in `to` if it is a string; to->at is NULL otherwise. */
static const uint8_t *wanted_read(const uint8_t *at, const uint8_t *end, record_string *to) {
    if (at < end && *at == '"') {
        return string_read(at + 1, end, to);
    }
    to->at = NULL;
    return value_read(at, end);
}

/* Reads the members of an object after its opening brace. Returns the place after its closing brace, or NULL. */
static const uint8_t *members_read(const uint8_t *at, const uint8_t *end, const uint8_t *key, size_t key_n,
                                   json_record *found) {
    for (;;) {
        record_string name;
        record_string other;
        at = name_read(at, end, &name);
        if (at == NULL || name.escaped) {
            return NULL;
        }
        const bool is_cluster = string_is(&name, (const uint8_t *)RECORD_CLUSTER, sizeof RECORD_CLUSTER - 1);
        record_string *to = string_is(&name, key, key_n) ? &found->text : is_cluster ? &found->cluster : &other;
        at = wanted_read(at, end, to);
        if (at == NULL) {
            return NULL;
        }
        at = skip_space(at, end);
        if (at == end || (*at != ',' && *at != '}')) {
            return NULL;
        }
        if (*at++ == '}') {
            return at;
        }
    }
}

bool record_read(const uint8_t *at, const uint8_t *end, const uint8_t *key, size_t key_n, json_record *found) {
    *found = (json_record){.blank = false};
    at = skip_space(at, end);
    if (at == end || *at == '\n') {
        found->blank = true;
    } else {
        if (*at != '{' || (at = members_read(at + 1, end, key, key_n, found)) == NULL || found->text.at == NULL) {
            return false;
        }
        at = skip_space(at, end);
        if (at < end && *at != '\n') {
            return false;
        }
    }
    found->end = at < end ? at + 1 : end;
    return true;
}
