/*
csrc/unicode/unicode.c and csrc/unicode/unicode.h: decoding UTF-8, compared with table 3-7 of the Unicode Standard. The tables of classes
do not matter here, so they are zeros; class.c is about the true ones.
*/
#include "prove.h"
#include "unicode/unicode.h"

const uint8_t pybpe_unicode_index[(0x10FFFF >> UNICODE_BLOCK_BITS) + 1];
const uint8_t pybpe_unicode_blocks[1 << UNICODE_BLOCK_BITS];

#define pybpe_unicode_index true_index
#define pybpe_unicode_blocks true_blocks
#include <unicode/unicode.c>

/* The length of the character at p[0..left) according to the table, or 0. */
static size_t table_length(const uint8_t *p, size_t left) {
    static const uint8_t rows[][5] = {
        /* first byte from, to; second byte from, to; length */
        {0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint8_t *row = rows[i];
        bool fits = left >= row[4] && p[0] >= row[0] && p[0] <= row[1];
        fits = fits && (row[4] < 2 || (p[1] >= row[2] && p[1] <= row[3]));
        fits = fits && (row[4] < 3 || byte_is_continuation(p[2])) && (row[4] < 4 || byte_is_continuation(p[3]));
        if (fits) {
            return row[4];
        }
    }
    return 0;
}

/* The code point of a character that the table allows, from the bits that its bytes carry. */
static uint32_t table_code_point(const uint8_t *p, size_t length) {
    static const uint8_t leads[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code_point = p[0] & leads[length];
    for (size_t i = 1; i < length; i++) {
        code_point = code_point << 6 | (p[i] & 0x3FU);
    }
    return code_point;
}

/* unicode_read_multibyte finds the characters of the table, unicode_class has a class for each, and a byte that begins
   none is passed alone. */
void prove_decode(size_t n) {
    uint8_t *text = any_bytes(n);
    size_t pos = (size_t)any_between(0, n);
    unicode_char c = unicode_decode(text, n, pos);
    size_t length = pos < n ? table_length(text + pos, n - pos) : 0;
    CHECK(c.valid == (length > 0));
    CHECK(c.length == (pos == n ? 0 : length > 0 ? length : 1));
    if (pos < n && text[pos] >= 0x80) {
        uint8_t read;
        uint32_t code_point = unicode_read_multibyte(text + pos, n - pos, &read);
        CHECK(read == c.length);
        CHECK(code_point == (length > 0 ? table_code_point(text + pos, length) : UNICODE_INVALID));
        CHECK(code_point <= 0x10FFFF || code_point == UNICODE_INVALID);
    }
    free(text);
}

/* unicode_read_before finds the character that ends at a place, and never reads before the text. */
void prove_read_before(size_t n) {
    uint8_t *text = any_bytes(n);
    uint8_t length;
    uint32_t code_point = unicode_read_before(text, n, &length);
    CHECK(length >= 1 && length <= 4);
    if (code_point != UNICODE_INVALID) {
        CHECK(length <= n && table_length(text + n - length, length) == length);
        CHECK(code_point == table_code_point(text + n - length, length));
    } else {
        CHECK(length == 1);
        for (size_t back = 1; back <= 4 && back <= n; back++) {
            CHECK(table_length(text + n - back, back) != back);
        }
    }
    free(text);
}

/* pybpe_utf8_valid, without vector instructions, finds the first byte that is not part of a character. */
void prove_valid(size_t n) {
    uint8_t *text = any_bytes(n);
    size_t found = pybpe_utf8_valid(text, n);
    CHECK(found <= n);
    size_t at = 0;
    while (at < n && table_length(text + at, n - at) > 0) {
        at += table_length(text + at, n - at);
    }
    CHECK(found == at);
    free(text);
}

/* The complete characters of a text end inside it. */
void prove_complete(size_t n) {
    uint8_t *text = any_bytes(n);
    size_t complete = pybpe_utf8_complete(text, n);
    CHECK(complete <= n && n - complete <= 3);
    free(text);
}

PROOFS(PROOF(decode, 0, 5, 10) PROOF(read_before, 0, 5, 10) PROOF(valid, 0, 10, 2, "table_length.0:10")
           PROOF(complete, 0, 6, 9))
