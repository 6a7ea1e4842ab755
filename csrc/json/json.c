/*
Reads JSON without making an object per value. A function returns false for JSON that it does not read.

Strings are most of a corpus, so they are read 8 bytes at a time. Special bytes end a step: quotes, backslashes, and the
control characters that a string must not contain.
*/
#include "json/json.h"
#include "unicode/unicode.h"

enum {
    JSON_MAX_DEPTH = 64,   /* of brackets */
    JSON_MAX_NUMBER = 300, /* bytes. Python refuses some longer integers */
    HIGH_FIRST = 0xD800,
    LOW_FIRST = 0xDC00,
    LOW_LAST = 0xDFFF
};

/* The loops keep their position in a variable: through `j` it would be stored and reloaded for every character, since
   bytes may alias anything. */

/* The high bit of the first byte that is special, and perhaps of bytes after it. */
static uint64_t special_bytes(uint64_t x) {
    const uint64_t control = (x - EACH_BYTE(0x20)) & ~x & EACH_BYTE(0x80);
    return bytes_equal(x, '"') | bytes_equal(x, '\\') | control;
}

const uint8_t *json_special(const uint8_t *at, const uint8_t *end) {
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

/* Whether the next character is this one. Moves past it then. */
static bool take_here(json *j, uint8_t wanted) {
    const bool is_here = j->at < j->end && *j->at == wanted;
    j->at += is_here;
    return is_here;
}

bool json_read(json *j, json_spelling *string) {
    if (!json_take(j, '"')) {
        return false;
    }
    const uint8_t *at = j->at;
    *string = (json_spelling){.at = at};
    while ((at = json_special(at, j->end)) < j->end && *at == '\\') {
        const uint8_t letter = j->end - at > 1 ? at[1] : 0;
        if (letter == 'u' ? json_unit(at + 2, j->end) < 0 : json_escaped_char(letter) == 0) {
            return false;
        }
        string->escaped = true;
        at += letter == 'u' ? 6 : 2;
    }
    string->n = (size_t)(at - string->at);
    j->at = at;
    return take_here(j, '"');
}

static bool take_digits(json *j) {
    const uint8_t *start = j->at;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9') {
        j->at += 1;
    }
    return j->at > start;
}

/* Moves past a number or a word. */
static bool json_check_scalar(json *j) {
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    const uint8_t *const start = j->at;
    const bool is_digit = j->at < j->end && *j->at >= '0' && *j->at <= '9'; /* as in most large files */
    for (size_t i = 0; !is_digit && i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(j->end - j->at) >= n && memcmp(j->at, words[i], n) == 0) {
            j->at += n;
            return true;
        }
    }
    (void)take_here(j, '-');
    bool valid = take_here(j, '0') || take_digits(j);
    valid = valid && (!take_here(j, '.') || take_digits(j));
    if (valid && (take_here(j, 'e') || take_here(j, 'E'))) {
        (void)(take_here(j, '-') || take_here(j, '+'));
        valid = take_digits(j);
    }
    return valid && j->at - start <= JSON_MAX_NUMBER;
}

/* Moves past a name and its colon. */
static bool json_check_name(json *j) {
    json_spelling name;
    return json_read(j, &name) && json_take(j, ':');
}

bool json_check_value(json *j) {
    uint64_t kinds = 0; /* of the open brackets, the innermost in bit 0: 1 for an object */
    unsigned depth = 0;
    json_spelling string;
    for (;;) {
        const uint8_t c = json_peek(j);
        if (c == '{' || c == '[') {
            if (depth == JSON_MAX_DEPTH) {
                return false;
            }
            j->at += 1;
            depth += 1;
            kinds = kinds << 1 | (c == '{');
            if (json_peek(j) != c + 2) { /* ASCII has ] two after [, and } two after { */
                if (c == '{' && !json_check_name(j)) {
                    return false;
                }
                continue;
            }
        } else if (!(c == '"' ? json_read(j, &string) : json_check_scalar(j))) {
            return false;
        }
        while (depth > 0 && json_take(j, kinds & 1 ? '}' : ']')) {
            depth -= 1;
            kinds >>= 1;
        }
        if (depth == 0) {
            return true;
        }
        if (!json_take(j, ',') || ((kinds & 1) && !json_check_name(j))) {
            return false;
        }
    }
}

int json_next(json *j, size_t i, json_member *item) {
    if (json_take(j, ']')) {
        return j->at == j->end ? 0 : -1;
    }
    if (i > 0 && !json_take(j, ',')) {
        return -1;
    }
    json_peek(j);
    item->begin = j->at;
    if (!json_check_value(j)) {
        return -1;
    }
    item->end = j->at;
    return 1;
}

static json_member *member_named(json_member *members, size_t count, const json_spelling *name) {
    for (size_t i = 0; i < count; i++) {
        if (name->n == strlen(members[i].name) && memcmp(name->at, members[i].name, name->n) == 0) {
            return &members[i];
        }
    }
    return NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): only as deep as the nesting of the members that the caller asks for */
bool json_find(json *j, json_member *members, size_t count) {
    if (!json_take(j, '{')) {
        return false;
    }
    if (json_take(j, '}')) {
        return true;
    }
    do {
        json_spelling name;
        if (!json_read(j, &name) || name.escaped || !json_take(j, ':')) {
            return false;
        }
        json_member *member = member_named(members, count, &name);
        if (member != NULL && member->begin != NULL) {
            return false;
        }
        json_peek(j);
        const uint8_t *begin = j->at;
        bool inner = member != NULL && member->inner_count > 0;
        if (!(inner ? json_find(j, member->inner, member->inner_count) : json_check_value(j))) {
            return false;
        }
        if (member != NULL) {
            member->begin = begin;
            member->end = j->at;
        }
    } while (json_take(j, ','));
    return json_take(j, '}');
}

/* The character at \uXXXX, or at two of these that are a surrogate pair. Moves *at past them. Returns -1 for half of a
   pair. */
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

bool json_unescape(const json_spelling *string, uint8_t *out, size_t *n) {
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

bool json_string(json *j, uint8_t *out, size_t *n) {
    json_spelling string;
    return json_read(j, &string) && json_unescape(&string, out, n);
}

bool json_id(json *j, uint32_t limit, uint32_t *id) {
    uint8_t first = json_peek(j);
    uint64_t value = 0;
    size_t digits = 0;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9' && digits < 10) {
        value = 10 * value + (uint64_t)(*j->at++ - '0');
        digits += 1;
    }
    if (digits == 0 || (first == '0' && digits > 1) || value >= limit) {
        return false;
    }
    *id = (uint32_t)value;
    return true;
}
