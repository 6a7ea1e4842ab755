/*
JSON, as far as a tokenizer.json needs it. Every function returns false for what it does not read.
*/
#include "json/json.h"
#include "unicode/unicode.h"

enum { JSON_MAX_DEPTH = 64 /* of brackets */, JSON_MAX_NUMBER = 300 /* bytes */ };

/* The loops keep their position in a variable: through `j` it would be stored and reloaded for every character, since
   bytes may alias anything. */

/* The first quote or backslash, or the end. */
static const uint8_t *find_quote(const uint8_t *at, const uint8_t *end) {
    for (; end - at >= 8; at += 8) {
        uint64_t x = load_u64(at);
        uint64_t found = bytes_equal(x, '"') | bytes_equal(x, '\\');
        if (found != 0) {
            return at + __builtin_ctzll(found) / 8;
        }
    }
    while (at < end && *at != '"' && *at != '\\') {
        at += 1;
    }
    return at;
}

/* The first quote or bracket, or the end. Setting bit 5 turns [ and ] into { and }. */
static const uint8_t *find_bracket(const uint8_t *at, const uint8_t *end) {
    for (; end - at >= 8; at += 8) {
        uint64_t x = load_u64(at);
        uint64_t lower = x | UINT64_C(0x2020202020202020);
        uint64_t found = bytes_equal(x, '"') | bytes_equal(lower, '{') | bytes_equal(lower, '}');
        if (found != 0) {
            return at + __builtin_ctzll(found) / 8;
        }
    }
    while (at < end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}') {
        at += 1;
    }
    return at;
}

/* The closing quote of the string whose first character, after the opening quote, is at `at`; NULL if there is none. */
static const uint8_t *string_end(const uint8_t *at, const uint8_t *end, bool *escaped) {
    *escaped = false;
    while ((at = find_quote(at, end)) < end && *at != '"') {
        *escaped = true;
        if (end - at < 2) {
            return NULL;
        }
        at += 2;
    }
    return at < end ? at : NULL;
}

/* Whether a character is part of a number or of a word such as null. */
static bool is_plain(uint8_t c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' ||
           c == '.';
}

/* Skips a value. Its brackets are counted, not checked. */
static bool json_skip_value(json *j) {
    json_peek(j);
    const uint8_t *at = j->at;
    const uint8_t *const end = j->end;
    size_t depth = 0;
    bool escaped;
    do {
        if (at == end) {
            return false;
        }
        uint8_t c = *at++;
        if (c == '"') {
            at = string_end(at, end, &escaped);
            if (at == NULL) {
                return false;
            }
            at += 1;
        } else if (c == '{' || c == '[') {
            depth += 1;
        } else if (depth == 0) { /* neither a string nor in brackets */
            if (!is_plain(c)) {
                return false;
            }
            while (at < end && is_plain(*at)) {
                at += 1;
            }
        } else if (c == '}' || c == ']') {
            depth -= 1;
        }
        at = depth > 0 ? find_bracket(at, end) : at;
    } while (depth > 0);
    j->at = at;
    return true;
}

/* Moves past a string, and checks it. */
static bool json_check_string(json *j) {
    if (!json_take(j, '"')) {
        return false;
    }
    const uint8_t *at = j->at;
    while (at < j->end && *at != '"') {
        const uint8_t c = *at++;
        if (c == '\\') {
            const uint8_t letter = at < j->end ? *at++ : 0;
            if (letter == 'u' ? json_unit(at, j->end) < 0 : json_escaped_char(letter) == 0) {
                return false;
            }
        } else if (c < 0x20) {
            return false;
        }
    }
    j->at = at;
    return json_take(j, '"');
}

static bool take_digits(json *j) {
    const uint8_t *start = j->at;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9') {
        j->at += 1;
    }
    return j->at > start;
}

/* Whether the next character is this one; moves past it then. */
static bool take_here(json *j, uint8_t wanted) {
    const bool is_here = j->at < j->end && *j->at == wanted;
    j->at += is_here;
    return is_here;
}

/* Moves past a number or a word, and checks it. Python refuses some longer numbers. */
static bool json_check_scalar(json *j) {
    static const char *const words[] = {"true", "false", "null"};
    const uint8_t *const start = j->at;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(j->end - j->at) >= n && memcmp(j->at, words[i], n) == 0) {
            j->at += n;
            return j->at == j->end || !is_plain(*j->at);
        }
    }
    (void)take_here(j, '-');
    bool valid = take_here(j, '0') || take_digits(j);
    valid = valid && (!take_here(j, '.') || take_digits(j));
    if (valid && (take_here(j, 'e') || take_here(j, 'E'))) {
        (void)(take_here(j, '-') || take_here(j, '+'));
        valid = take_digits(j);
    }
    return valid && (j->at == j->end || !is_plain(*j->at)) && j->at - start <= JSON_MAX_NUMBER;
}

static bool json_check_name(json *j) { return json_check_string(j) && json_take(j, ':'); }

/* Moves past a value, and checks it. */
static bool json_check_value(json *j) {
    uint64_t kinds = 0; /* of the open brackets, the innermost in bit 0: 1 for an object */
    unsigned depth = 0;
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
        } else if (!(c == '"' ? json_check_string(j) : json_check_scalar(j))) {
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

/* Reads a name without escapes. */
static bool json_name(json *j, const uint8_t **name, size_t *n) {
    json_peek(j);
    const uint8_t *quote = j->at;
    if (!json_check_string(j)) {
        return false;
    }
    *name = quote + 1;
    *n = (size_t)(j->at - quote) - 2;
    return memchr(*name, '\\', *n) == NULL;
}

static json_member *member_named(json_member *members, size_t count, const uint8_t *name, size_t n) {
    for (size_t i = 0; i < count; i++) {
        if (n == strlen(members[i].name) && memcmp(name, members[i].name, n) == 0) {
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
        const uint8_t *name;
        size_t n;
        if (!json_name(j, &name, &n) || !json_take(j, ':')) {
            return false;
        }
        json_member *member = member_named(members, count, name, n);
        if (member != NULL && member->begin != NULL) {
            return false;
        }
        json_peek(j);
        const uint8_t *begin = j->at;
        bool inner = member != NULL && member->inner_count > 0;
        const bool unchecked = member != NULL && member->unchecked;
        if (!(inner       ? json_find(j, member->inner, member->inner_count)
              : unchecked ? json_skip_value(j)
                          : json_check_value(j))) {
            return false;
        }
        if (member != NULL) {
            member->begin = begin;
            member->end = j->at;
        }
    } while (json_take(j, ','));
    return json_take(j, '}');
}

/* Reads the escape after a backslash. Refuses surrogates. */
static bool json_escape(json *j, uint32_t *c) {
    if (j->at >= j->end) {
        return false;
    }
    uint8_t letter = *j->at++;
    *c = json_escaped_char(letter);
    if (*c != 0) {
        return true;
    }
    int32_t unit = letter == 'u' ? json_unit(j->at, j->end) : -1;
    if (unit < 0 || (unit >= 0xD800 && unit <= 0xDFFF)) {
        return false;
    }
    *c = (uint32_t)unit;
    j->at += 4;
    return true;
}

bool json_string(json *j, uint8_t *out, size_t *n) {
    if (!json_take(j, '"')) {
        return false;
    }
    const uint8_t *at = j->at;
    size_t length = 0;
    while (at < j->end && *at != '"') {
        uint32_t c = *at++;
        if (c < 0x20) {
            return false;
        }
        if (c != '\\') {
            out[length++] = (uint8_t)c;
            continue;
        }
        j->at = at;
        if (!json_escape(j, &c)) {
            return false;
        }
        at = j->at;
        length += unicode_write(out + length, c);
    }
    j->at = at;
    *n = length;
    return json_take(j, '"');
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
