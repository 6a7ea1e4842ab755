/*
Characters of UTF-8 text and their classes. Internal.

A class is a set of bits, in a two-stage table, so that the 1,114,112 code points fit in 39 KB:

    code point   | index: which block | place in the block |
                       20 ... 7              6 ... 0
    pybpe_unicode_index[code point >> 7]  ->  number of a block of 128 classes  ->  class

The tables (unicode_data.h) follow the Python package `regex` for all code points: the patterns must split text exactly
as it does.

A byte that is not part of a well-formed sequence (Unicode 15, Table 3-7: nothing overlong, no surrogates, nothing
above U+10FFFF) is decoded as one character of class "other".
A lead byte is never part of another character, and a continuation byte belongs to a lead byte at most three bytes
before it, so a few nearby bytes are enough to find where characters begin.
*/
#ifndef PYBPE_UNICODE_H
#define PYBPE_UNICODE_H

#include "base/base.h"

enum {
    UNICODE_UPPER = 1,    /* Lu, Lt */
    UNICODE_LOWER = 2,    /* Ll */
    UNICODE_CASELESS = 4, /* Lm, Lo */
    UNICODE_MARK = 8,     /* Mn, Mc, Me */
    UNICODE_NUMBER = 16,  /* Nd, Nl, No */
    UNICODE_SPACE = 32,   /* White_Space */
    UNICODE_NEWLINE = 64, /* CR and LF, which are UNICODE_SPACE too */
    UNICODE_LETTER = UNICODE_UPPER | UNICODE_LOWER | UNICODE_CASELESS
};

enum { UNICODE_BLOCK_BITS = 7 };

/* These are the only internal names that need a prefix: functions can become static in a single file (amalgamate.py),
   but arrays of unknown size cannot. */
extern const uint8_t pybpe_unicode_index[];
extern const uint8_t pybpe_unicode_blocks[];

/* One character of a text. */
typedef struct unicode_char {
    uint8_t class;  /* the bits above, 0: other */
    uint8_t length; /* in bytes. 0 only at the end of the text */
    bool valid;     /* false for a byte that is not UTF-8 */
} unicode_char;

static inline uint8_t unicode_class(uint32_t code_point) {
    uint32_t block = pybpe_unicode_index[code_point >> UNICODE_BLOCK_BITS];
    uint32_t place = code_point & ((1U << UNICODE_BLOCK_BITS) - 1);
    return pybpe_unicode_blocks[block << UNICODE_BLOCK_BITS | place];
}

/* The code point of a byte that is not UTF-8. */
#define UNICODE_INVALID UINT32_MAX

/* The code point of three or four bytes at p, if the lead byte announces as many and the second byte continues it. */
static inline uint32_t unicode_read_three(const uint8_t *p, size_t left) {
    if (left < 3 || !byte_is_continuation(p[2])) {
        return UNICODE_INVALID;
    }
    uint32_t code_point = (p[0] & 0x0FU) << 12 | (p[1] & 0x3FU) << 6 | (p[2] & 0x3FU);
    return code_point >= 0x800 && code_point >> 11 != 0xD800 >> 11 ? code_point : UNICODE_INVALID;
}

static inline uint32_t unicode_read_four(const uint8_t *p, size_t left) {
    if (left < 4 || !byte_is_continuation(p[2]) || !byte_is_continuation(p[3])) {
        return UNICODE_INVALID;
    }
    uint32_t code_point = (p[0] & 0x07U) << 18 | (p[1] & 0x3FU) << 12 | (p[2] & 0x3FU) << 6 | (p[3] & 0x3FU);
    return code_point >= 0x10000 && code_point <= 0x10FFFF ? code_point : UNICODE_INVALID;
}

/* The code point at p, and its length in bytes. UNICODE_INVALID with length 1 for a byte that is not UTF-8. p[0] >=
   0x80; p[0..left) is the rest of the text, and left >= 1. */
static inline uint32_t unicode_read_multibyte(const uint8_t *p, size_t left, uint8_t *length) {
    uint32_t lead = p[0];
    uint32_t code_point = UNICODE_INVALID;
    *length = 1;
    if (left < 2 || !byte_is_continuation(p[1])) {
        return UNICODE_INVALID;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        *length = 2;
        return (lead & 0x1F) << 6 | (p[1] & 0x3FU);
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        code_point = unicode_read_three(p, left);
        *length = code_point != UNICODE_INVALID ? 3 : 1;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        code_point = unicode_read_four(p, left);
        *length = code_point != UNICODE_INVALID ? 4 : 1;
    }
    return code_point;
}

/* The code point that ends before text[at], and its length. UNICODE_INVALID with length 1 if no well-formed character
   ends there, or at == 0. */
static inline uint32_t unicode_read_before(const uint8_t *text, size_t at, uint8_t *length) {
    for (size_t back = 1; back <= 4 && back <= at; back++) {
        const uint8_t *p = text + at - back;
        if (*p < 0x80 && back == 1) {
            *length = 1;
            return *p;
        }
        if (!byte_is_continuation(*p)) {
            uint32_t code_point = unicode_read_multibyte(p, back, length);
            if (*length == back) {
                return code_point;
            }
            break;
        }
    }
    *length = 1;
    return UNICODE_INVALID;
}

/* Writes a code point as UTF-8. Returns its length in bytes, 1 to 4. `out` must have room. */
static inline size_t unicode_write(uint8_t *out, uint32_t code_point) {
    static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    size_t n = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    out[0] = (uint8_t)(leads[n] | code_point);
    return n;
}

/* The character at p, with p[0] >= 0x80, as above. */
static inline unicode_char unicode_decode_multibyte(const uint8_t *p, size_t left) {
    uint8_t length;
    uint32_t code_point = unicode_read_multibyte(p, left, &length);
    bool valid = code_point != UNICODE_INVALID;
    return (unicode_char){valid ? unicode_class(code_point) : 0, length, valid};
}

/* The character at text[pos]. Length 0 at the end of the text. */
static inline unicode_char unicode_decode(const uint8_t *text, size_t n, size_t pos) {
    if (PYBPE_UNLIKELY(pos >= n)) {
        return (unicode_char){0, 0, false};
    }
    if (PYBPE_LIKELY(text[pos] < 0x80)) {
        return (unicode_char){pybpe_unicode_blocks[text[pos]], 1, true}; /* ASCII is block 0, the first one seen */
    }
    return unicode_decode_multibyte(text + pos, n - pos);
}

enum { UNICODE_MAX = 4 }; /* bytes of a character */

/* Whether 0 < n < UNICODE_MAX bytes are the beginning of a character: whether some bytes complete it. The second byte has
   the narrowest range after E0, ED, F0 and F4, and 80 or BF is always in it. */
bool unicode_begins(const uint8_t *bytes, size_t n);

#endif
