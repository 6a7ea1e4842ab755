/*
UTF-8 by its definition: characters are what encoding a code point gives.
*/
#ifndef NAIVE_UTF8_H
#define NAIVE_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Writes the UTF-8 of a code point, and returns its length; 0 for those that have none. */
static inline size_t naive_utf8(uint32_t c, uint8_t out[4]) {
    static const uint32_t ends[] = {0x80, 0x800, 0x10000, 0x110000};
    size_t n = 1;
    while (n <= 4 && c >= ends[n - 1]) {
        n += 1;
    }
    if (n > 4 || (c >= 0xD800 && c < 0xE000)) {
        return 0;
    }
    for (size_t i = n; i-- > 1; c >>= 6) {
        out[i] = (uint8_t)(0x80 | (c & 0x3F));
    }
    out[0] = (uint8_t)(n == 1 ? c : (0xF00U >> n & 0xFF) | c);
    return n;
}

/* Returns the length of the character at the start of n bytes, or 0 if none is there; sets *c to its code point. */
static inline size_t naive_character(const uint8_t *bytes, size_t n, uint32_t *c) {
    static const uint8_t mask[] = {0x7F, 0x1F, 0x0F, 0x07};
    for (size_t length = 1; length <= 4 && length <= n; length++) {
        uint8_t again[4];
        *c = bytes[0] & mask[length - 1];
        for (size_t i = 1; i < length; i++) {
            *c = *c << 6 | (bytes[i] & 0x3F);
        }
        if (naive_utf8(*c, again) == length && memcmp(again, bytes, length) == 0) {
            return length;
        }
    }
    return 0;
}

#endif
