/*
Hard boundaries: every place that a merge crosses is soft, and nearly all other places are hard.
*/
#include "check.h"
#include "encode/encode.h"
#include "pretok/boundary.h"
#include "random_state.h"
#include "small_vocab.h"

/* Characters of one to four bytes, many with the same first or last bytes. None continues another one. */
static const char *const CHARS[] = {"a",
                                    "b",
                                    "e",
                                    "\xC2\xA9",
                                    "\xC3\xA8",
                                    "\xC3\xA9",
                                    "\xE2\xA9\xA0",
                                    "\xE4\xA9\xA0",
                                    "\xE4\xBC\xA0",
                                    "\xE4\xBD\xA0",
                                    "\xE4\xBD\xA1",
                                    "\xE4\xBD\xA9",
                                    "\xF0\x9F\x98\x80",
                                    "\xF0\x9F\x99\x81",
                                    "\xF0\xA0\x98\x80"};
enum { COUNT = sizeof CHARS / sizeof *CHARS };

typedef struct subject {
    pybpe_vocab *v;
    boundary_table table;
} subject;

static subject subject_new(const small_vocab *v) {
    subject s;
    const pybpe_vocab_spec spec = small_spec(v);
    CHECK_EQ(pybpe_vocab_new(&s.v, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(boundary_table_new(&s.table, s.v, NULL, NULL), PYBPE_OK);
    return s;
}

static void subject_free(subject *s) {
    boundary_table_free(&s->table, NULL);
    pybpe_vocab_free(s->v);
}

/* The token that is a character, after the merges of its bytes. */
static uint32_t add_char(small_vocab *v, const char *c) {
    uint32_t id = (uint8_t)c[0];
    for (size_t i = 1; c[i] != '\0'; i++) {
        id = small_add_merge(v, id, (uint8_t)c[i]);
    }
    return id;
}

/* Whether a merge may cross the place between two characters. Random ones are around them. */
static bool is_soft(const subject *s, const char *left, const char *right) {
    uint8_t text[32] = {0};
    size_t n = 0;
    size_t place = 0;
    const char *const row[] = {CHARS[random_below(COUNT)], left, right, CHARS[random_below(COUNT)], "...."};
    for (size_t i = 0; i < 5; i++) {
        place = i == 2 ? n : place;
        memcpy(text + 4 + n, row[i], strlen(row[i]));
        n += strlen(row[i]);
    }
    const uint64_t around = boundary_around(text + 4 + place);
    CHECK_EQ(around, boundary_around_careful(text, sizeof text, 4 + place));
    return boundary_is_soft(&s->table, around);
}

/* Merges of some pairs of characters. */
static void test_pairs_of_characters(void) {
    size_t places = 0;
    size_t mistaken = 0;
    for (uint32_t round = 0; round < 60; round++) {
        static small_vocab v;
        bool merged[COUNT][COUNT] = {{false}};
        uint32_t ids[COUNT];
        small_start(&v);
        for (size_t i = 0; i < COUNT; i++) {
            ids[i] = add_char(&v, CHARS[i]);
        }
        for (uint32_t i = 0; i <= round; i++) {
            const uint32_t left = random_below(COUNT);
            const uint32_t right = random_below(COUNT);
            merged[left][right] = true;
            small_add_merge(&v, ids[left], ids[right]);
        }
        subject s = subject_new(&v);
        for (size_t left = 0; left < COUNT; left++) {
            for (size_t right = 0; right < COUNT; right++) {
                const bool soft = is_soft(&s, CHARS[left], CHARS[right]);
                CHECK(soft || !merged[left][right]);
                mistaken += soft && !merged[left][right];
                places += 1;
            }
        }
        subject_free(&s);
    }
    CHECK(mistaken < places / 100); /* false positives of a Bloom filter */
}

/* Merges of parts of characters: what lacks bytes of the window makes all places soft that it may be part of. */
static void test_parts_of_characters(void) {
    for (size_t left = 0; left < COUNT; left++) {
        for (size_t right = 0; right < COUNT; right++) {
            static small_vocab v;
            const size_t before = strlen(CHARS[left]);
            const size_t after = strlen(CHARS[right]);
            for (size_t skipped = 0; skipped < before; skipped++) {
                for (size_t kept = 1; kept <= after; kept++) {
                    char part[5] = {0};
                    small_start(&v);
                    const uint32_t x = add_char(&v, CHARS[left] + skipped);
                    memcpy(part, CHARS[right], kept);
                    small_add_merge(&v, x, add_char(&v, part));
                    subject s = subject_new(&v);
                    CHECK(is_soft(&s, CHARS[left], CHARS[right]));
                    subject_free(&s);
                }
            }
        }
    }
}

/* A character is never cut. */
static void test_continuations(void) {
    static small_vocab v;
    small_start(&v);
    subject s = subject_new(&v);
    for (unsigned right = 0; right < 256; right++) {
        for (unsigned left = 0; left < 256; left++) {
            const uint64_t around = (uint64_t)right << 32 | (uint64_t)left << 24;
            CHECK_EQ(boundary_has_pair(&s.table, around), byte_is_continuation((uint8_t)right));
        }
    }
    subject_free(&s);
}

/* A table has 16 bits or more for each window, and 2^12 or more; 256 windows for each merge that lacks one byte. */
static void test_sizes(void) {
    static const unsigned bits[] = {12, 12, 13, 14, 14, 15, 15, 15, 15, 16};
    for (size_t merges = 0; merges < sizeof bits / sizeof *bits; merges++) {
        static small_vocab v;
        small_start(&v);
        for (size_t i = 0; i < merges; i++) {
            small_add_merge(&v, (uint32_t)('a' + i), 0xC3);
        }
        subject s = subject_new(&v);
        CHECK_EQ(s.table.windows_shift, 64 - (bits[merges] - 6) - 12);
        subject_free(&s);
    }
}

int main(void) {
    test_pairs_of_characters();
    test_parts_of_characters();
    test_continuations();
    test_sizes();
    return check_report("boundary");
}
