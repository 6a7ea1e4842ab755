/*
The first byte that is not valid UTF-8, against Unicode's Table 3-7 spelled out, on buffers of exactly the promised size.
*/
#include "check.h"
#include "pybpe_corpus.h"
#include "random_state.h"

#include <stdlib.h>
#include <string.h>

/* Table 3-7, "Well-Formed UTF-8 Byte Sequences". */
static const struct {
    uint8_t length, first[2], second[2];
} table[] = {
    {1, {0x00, 0x7F}, {0}},          {2, {0xC2, 0xDF}, {0x80, 0xBF}}, {3, {0xE0, 0xE0}, {0xA0, 0xBF}},
    {3, {0xE1, 0xEC}, {0x80, 0xBF}}, {3, {0xED, 0xED}, {0x80, 0x9F}}, {3, {0xEE, 0xEF}, {0x80, 0xBF}},
    {4, {0xF0, 0xF0}, {0x90, 0xBF}}, {4, {0xF1, 0xF3}, {0x80, 0xBF}}, {4, {0xF4, 0xF4}, {0x80, 0x8F}},
};

static size_t char_length(const uint8_t *p, size_t left) {
    for (size_t row = 0; row < sizeof table / sizeof table[0]; row++) {
        size_t length = table[row].length;
        if (p[0] < table[row].first[0] || p[0] > table[row].first[1] || length > left) {
            continue;
        }
        if (length > 1 && (p[1] < table[row].second[0] || p[1] > table[row].second[1])) {
            continue;
        }
        if ((length > 2 && (p[2] & 0xC0) != 0x80) || (length > 3 && (p[3] & 0xC0) != 0x80)) {
            continue;
        }
        return length;
    }
    return 0;
}

static size_t by_table(const uint8_t *text, size_t n) {
    size_t at = 0;
    while (at < n) {
        size_t length = char_length(text + at, n - at);
        if (length == 0) {
            break;
        }
        at += length;
    }
    return at;
}

static void expect_table(const uint8_t *text, size_t n) {
    uint8_t *copy = malloc(n + (n == 0)); /* so that sanitizers see reads beyond it */
    memcpy(copy, text, n);
    CHECK_EQ(pybpe_utf8_valid(copy, n), by_table(text, n));
    free(copy);
}

/* Every pair of bytes, and every third and fourth that matters, at every place in a block. */
static void test_all_pairs(void) {
    static const uint8_t edges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xE1, 0xFF};
    enum { EDGES = sizeof edges };
    uint8_t text[100];
    for (unsigned pair = 0; pair < 1U << 16; pair++) {
        size_t at = pair % 67;
        memset(text, pair % 3 ? ' ' : 'a', sizeof text);
        text[at] = (uint8_t)(pair >> 8);
        text[at + 1] = (uint8_t)pair;
        for (size_t i = 0; i < EDGES; i++) {
            text[at + 2] = edges[i];
            text[at + 3] = edges[(i * 5 + pair) % EDGES];
            expect_table(text, sizeof text - pair % 5);
        }
    }
}

/* Valid text with some bytes changed, and all ends of it. */
static void test_random(void) {
    static const char *const chars[] = {
        "a", " ", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xef\xbf\xbd"};
    uint8_t text[400];
    for (int round = 0; round < 3000; round++) {
        size_t n = 0;
        while (n < sizeof text - 4) {
            const char *c = chars[random_below(round % 2 ? 7 : 4)];
            memcpy(text + n, c, strlen(c));
            n += strlen(c);
        }
        for (uint32_t changes = random_below(3); changes > 0; changes--) {
            text[random_below((uint32_t)n)] = (uint8_t)random_below(256);
        }
        expect_table(text, n - random_below(40));
        size_t begin = random_below(40);
        expect_table(text + begin, n - begin);
    }
    for (size_t size = 0; size <= sizeof text; size++) {
        expect_table(text, size < 396 ? size : 396);
    }
}

static void test_classes(void) {
    CHECK(strcmp(pybpe_unicode_version(), "18.0.0") == 0);
    CHECK(pybpe_unicode_class('a') != 0 && pybpe_unicode_class('a') != pybpe_unicode_class('1'));
    CHECK_EQ(pybpe_unicode_class(0x10FFFF), pybpe_unicode_class(0x10FFFE)); /* not assigned */
    CHECK_EQ(pybpe_unicode_class(0x110000), 0);
    CHECK_EQ(pybpe_unicode_class(UINT32_MAX), 0);
}

int main(void) {
    test_classes();
    test_all_pairs();
    test_random();
    return check_report("test_utf8");
}
