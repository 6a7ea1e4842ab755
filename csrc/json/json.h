/*
JSON, as far as a tokenizer.json needs it: finding members of an object, strings, and small integers. Also what an
escape in a string means, which record.c needs too. Internal.
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
    struct json_member *inner; /* what to find in the value, which must then be an object */
    size_t inner_count;
    bool unchecked; /* the brackets of the value are counted, not checked: the caller reads all of it */
} json_member;

/* Finds members of an object, each of which may occur only once, and moves past the object. All values are checked. */
bool json_find(json *j, json_member *members, size_t count);

/* Finds item i of an array whose bracket and earlier items have been read; j ends with the array. Returns 1, 0 after the
   last item, or -1. */
int json_next(json *j, size_t i, json_member *item);

/* Reads a string as UTF-8. The result is never longer than the string in the text. */
bool json_string(json *j, uint8_t *out, size_t *n);

/* The character that a letter means after a backslash; 0 if none, or if it is u. */
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

/* The letter that means a character after a backslash; 0 if only \u does, or if the character needs no escape. */
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

/* The UTF-16 code unit of the 4 hexadecimal digits at `at`; -1 if they are not there. */
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
