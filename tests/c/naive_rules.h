/*
The rules that forbid merges by their definitions: what a token may be, from its bytes. Slow and obvious: the trainer
must allow the same merges.
*/
#ifndef NAIVE_RULES_H
#define NAIVE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "naive_utf8.h"
#include "pybpe_train.h"

enum { NAIVE_TOKEN_BYTES = 64 };

static inline bool naive_is_whole(const uint8_t *bytes, size_t n) {
    size_t at = 0, length = 1;
    uint32_t c;
    while (at < n && length > 0) {
        length = naive_character(bytes + at, n - at, &c);
        at += length;
    }
    return at == n;
}

/* The bytes of up to three that are some, not all, of the bytes of a character: a bit for each. */
static inline uint8_t *naive_parts(size_t n) {
    static uint8_t parts[3][1 << 21];
    return parts[n - 1];
}

static inline uint32_t naive_number(const uint8_t *bytes, size_t n) {
    uint32_t number = 0;
    for (size_t i = 0; i < n; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

/* Finds the parts of all characters; naive_is_part needs them. */
static inline void naive_parts_find(void) {
    for (uint32_t c = 0x80; c < 0x110000; c++) {
        uint8_t bytes[4];
        size_t length = naive_utf8(c, bytes);
        for (size_t n = 1; n < length; n++) {
            for (size_t at = 0; at + n <= length; at++) {
                uint32_t number = naive_number(bytes + at, n);
                naive_parts(n)[number / 8] |= (uint8_t)(1 << number % 8);
            }
        }
    }
}

static inline bool naive_is_part(const uint8_t *bytes, size_t n) {
    uint32_t number = n < 4 ? naive_number(bytes, n) : 0;
    return n < 4 && (naive_parts(n)[number / 8] >> number % 8 & 1) != 0;
}

/* At most four words between spaces, and no colon before a space. */
static inline bool naive_is_superword(const uint8_t *bytes, size_t n) {
    size_t words = 0;
    bool colon_space = false;
    for (size_t i = 0; i < n; i++) {
        words += bytes[i] != ' ' && (i + 1 == n || bytes[i + 1] == ' ');
        colon_space = colon_space || (i + 1 < n && bytes[i] == ':' && bytes[i + 1] == ' ');
    }
    return words <= 4 && !colon_space;
}

static inline bool naive_rules_allow(uint32_t rules, const uint8_t *left, size_t n, const uint8_t *right, size_t m) {
    uint8_t both[NAIVE_TOKEN_BYTES];
    memcpy(both, left, n);
    memcpy(both + n, right, m);
    if ((rules & PYBPE_RULE_SUPERWORDS) != 0 && !naive_is_superword(both, n + m)) {
        return false;
    }
    bool whole = naive_is_whole(left, n);
    uint32_t c;
    return (rules & PYBPE_RULE_WHOLE_CHARACTERS) == 0 ||
           (whole == naive_is_whole(right, m) &&
            (whole || naive_is_part(both, n + m) || naive_character(both, n + m, &c) == n + m));
}

#endif
