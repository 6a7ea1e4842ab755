/*
JSON, as far as a tokenizer.json and JSON lines need it: strings, small integers, members of an object, and whether
anything else is right. It is checked as RFC 8259 defines it, so that no text is accepted that Python's json refuses. As
in Python, NaN and the infinities are accepted, too. Internal.
*/
#ifndef PYBPE_JSON_H
#define PYBPE_JSON_H

#include "base/base.h"

/* The rest of a text. */
typedef struct json {
    const uint8_t *at;
    const uint8_t *end;
} json;

/* The next character that is not white space, or 0 at the end. */
static inline uint8_t json_peek(json *j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t')) {
        j->at += 1;
    }
    return j->at < j->end ? *j->at : 0;
}

static inline bool json_take(json *j, uint8_t wanted) {
    if (json_peek(j) != wanted) {
        return false;
    }
    j->at += 1;
    return true;
}

/* A member of an object: where its value is in the text. */
typedef struct json_member {
    const char *name;
    const uint8_t *begin; /* NULL if it is not there */
    const uint8_t *end;
    struct json_member *inner; /* members to find in the value, which must then be an object */
    size_t inner_count;
} json_member;

/* Finds members of an object, which may occur only once, and moves past the object. All values are checked. */
bool json_find(json *j, json_member *members, size_t count);

/* Finds item i of an array whose bracket and earlier items have been read. `j` ends with the array. Returns 1, 0 after the
   last item, or -1. */
int json_next(json *j, size_t i, json_member *item);

/* A string as the text spells it. */
typedef struct json_spelling {
    const uint8_t *at; /* its first character, after the quote */
    size_t n;
    bool escaped; /* whether there is a backslash in it */
} json_spelling;

/* Moves past a string, and checks it. */
bool json_read(json *j, json_spelling *string);

/* Writes the UTF-8 of a string that was read, whose n bytes `out` must have room for. Returns false for a surrogate
   without its other half. */
bool json_unescape(const json_spelling *string, uint8_t *out, size_t *n);

/* Reads a string as UTF-8: both of these. */
bool json_string(json *j, uint8_t *out, size_t *n);

/* Moves past any value, and checks it. Refuses brackets more than 64 deep and numbers of more than 300 bytes. */
bool json_check_value(json *j);

/* The first byte that a string must escape: a quote, a backslash or a control character. `end` if there is none. */
const uint8_t *json_special(const uint8_t *at, const uint8_t *end);

/* The character that a letter means after a backslash, or 0 if none, or if it is u. */
static inline uint8_t json_escaped_char(uint8_t letter) {
    switch (letter) {
    case '"':
    case '\\':
    case '/':
        return letter;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return 0;
    }
}

/* The letter that means a character after a backslash, or 0 if only \u does, or if the character needs no escape. */
static inline uint8_t json_escape_letter(uint8_t c) {
    switch (c) {
    case '"':
    case '\\':
        return c;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

static inline int json_hex_digit(uint8_t c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The UTF-16 code unit of the 4 hexadecimal digits at `at`, or -1 if they are not there. */
static inline int32_t json_unit(const uint8_t *at, const uint8_t *end) {
    if (end - at < 4) {
        return -1;
    }
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = json_hex_digit(at[i]);
        if (digit < 0) {
            return -1;
        }
        unit = unit << 4 | digit;
    }
    return unit;
}

/* Reads an integer from 0 to limit - 1. The caller checks what follows its digits. */
bool json_id(json *j, uint32_t limit, uint32_t *id);

#endif
