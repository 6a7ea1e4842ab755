/*
NFC and NFKC by hand, at the ends of memory, with bytes that are not UTF-8, and without memory.
tests/py/test_normalization.py compares all characters with Hugging Face's results.
*/
#include "check.h"
#include "pybpe_train.h"
#include "random_state.h"
#include "small_vocab.h"

enum { MARKS_MOST = 300 };

/* The text is in memory of exactly its length, so that a sanitizer sees each read beyond it. */
static void expect(int form, const char *text, const char *want) {
    size_t n = strlen(text), length = 99;
    uint8_t *copy = malloc(n + (n == 0));
    uint8_t *out = (uint8_t *)1;
    memcpy(copy, text, n);
    CHECK_EQ(pybpe_normalize(&out, &length, form, copy, n, NULL, NULL), PYBPE_OK);
    CHECK_EQ(length, strlen(want));
    CHECK(length == strlen(want) && memcmp(out == NULL ? copy : out, want, length) == 0);
    pybpe_normalize_free(out, NULL);
    free(copy);
}

static void expect_both(const char *text, const char *want) {
    expect(PYBPE_NORMALIZER_NFC, text, want);
    expect(PYBPE_NORMALIZER_NFKC, text, want);
}

static void test_by_hand(void) {
    expect_both("", "");
    expect_both("plain ASCII of more than eight bytes", "plain ASCII of more than eight bytes");
    expect_both("e\xCC\x81", "\xC3\xA9");
    expect_both("cafe\xCC\x81 e\xCC\x81", "caf\xC3\xA9 \xC3\xA9");
    expect_both("e\xCC\x81\xE2\x84\xAB", "\xC3\xA9\xC3\x85");            /* a character that changes follows */
    expect_both("\xCC\x81x", "\xCC\x81x");                               /* a mark comes first */
    expect_both("x\xCC\x95\xCC\xB4", "x\xCC\xB4\xCC\x95");               /* order, though none composes */
    expect_both("a\xCC\x81\xCC\xA3", "\xE1\xBA\xA1\xCC\x81");            /* order, then compose */
    expect_both("a\xCC\x8D\xCC\x81", "a\xCC\x8D\xCC\x81");               /* a mark of the same class is between */
    expect_both("a\xCC\xA7\xCC\x81", "\xC3\xA1\xCC\xA7");                /* one of another class is, and stays */
    expect_both("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81"); /* three jamo */
    expect_both("\xEA\xB0\x80\xE1\x86\xA8", "\xEA\xB0\x81");             /* a syllable and its last one */
    expect_both("\xEA\xB0\x81\xE1\x86\xA8", "\xEA\xB0\x81\xE1\x86\xA8"); /* which it has already */
    expect_both("\xE1\x85\xA1", "\xE1\x85\xA1");                         /* a vowel alone */
    expect_both("\xE1\x84\x80\xE1\x86\xA8", "\xE1\x84\x80\xE1\x86\xA8"); /* a leading consonant and a final one */
    expect_both("\xEA\xB0\x80\xE1\x85\xA1", "\xEA\xB0\x80\xE1\x85\xA1"); /* a syllable and a vowel */
    expect_both("\xE2\x84\xAB", "\xC3\x85");                             /* the sign for angstrom */
    expect_both("\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC");             /* excluded from composing */
    expect_both("\xF0\x9D\x85\x9E", "\xF0\x9D\x85\x97\xF0\x9D\x85\xA5"); /* the same, of four bytes */
    expect_both("\xF0\xAF\xA8\x9D", "\xF0\xAA\x98\x80");                 /* U+2FA1D, the last that changes */
    expect_both("\xF0\xAF\xAA\x80", "\xF0\xAF\xAA\x80");                 /* U+2FA80, after the end of the tables */
    expect(PYBPE_NORMALIZER_NFC, "\xEF\xAC\x81", "\xEF\xAC\x81");        /* the ligature fi */
    expect(PYBPE_NORMALIZER_NFKC, "\xEF\xAC\x81", "fi");
    expect(PYBPE_NORMALIZER_NFKC, "\xEF\xBD\xB6\xEF\xBE\x9E", "\xE3\x82\xAC"); /* halfwidth, a mark only then */
}

/* Writes a character of three bytes. */
static char *three_bytes(char *to, unsigned code_point) {
    *to++ = (char)(0xE0 | code_point >> 12);
    *to++ = (char)(0x80 | (code_point >> 6 & 0x3F));
    *to++ = (char)(0x80 | (code_point & 0x3F));
    *to = '\0';
    return to;
}

/* Each leading consonant, vowel and final consonant, and the first characters after them: The Unicode Standard, 3.12. */
static void test_hangul(void) {
    enum { L = 19, V = 21, T = 28 };
    for (unsigned l = 0; l <= L; l++) {
        for (unsigned v = 0; v <= V; v++) {
            for (unsigned t = 1; t <= T; t++) {
                char text[16], want[16];
                three_bytes(three_bytes(three_bytes(text, 0x1100 + l), 0x1161 + v), 0x11A7 + t);
                const unsigned syllable = 0xAC00 + (l * V + v) * T;
                if (l == L || v == V) {
                    strcpy(want, text);
                } else if (t == T) {
                    three_bytes(three_bytes(want, syllable), 0x11A7 + t);
                } else {
                    three_bytes(want, syllable + t);
                }
                expect_both(text, want);
            }
        }
    }
    expect_both("\xED\x9E\xA4\xE1\x86\xA8", "\xED\x9E\xA4\xE1\x86\xA8"); /* U+D7A4 is not a syllable */
}

/* Runs of marks, on both sides of the lengths at which another method sorts them: by class, and stable. */
static void test_runs_of_marks(void) {
    static const struct {
        const char *bytes;
        unsigned class; /* of the Unicode Character Database */
    } marks[] = {{"\xCC\xB4", 1},   {"\xE0\xA4\xBC", 7}, {"\xE3\x82\x99", 8},   {"\xE0\xA5\x8D", 9}, {"\xD6\xB0", 10},
                 {"\xCC\xA7", 202}, {"\xCC\x9B", 216},   {"\xE3\x80\xAA", 218}, {"\xCC\xA3", 220},   {"\xCC\xB1", 220},
                 {"\xCC\x81", 230}, {"\xCC\x88", 230},   {"\xCC\x95", 232},     {"\xCD\x9C", 233},   {"\xCD\x85", 240}};
    enum { KINDS = sizeof marks / sizeof *marks };
    for (int round = 0; round < 400; round++) {
        static char text[3 * MARKS_MOST + 8], want[3 * MARKS_MOST + 8];
        unsigned run[MARKS_MOST];
        const size_t count = round % 8 != 0 ? random_below(40) : random_below(MARKS_MOST);
        strcpy(text, "\xE4\xBD\xA0"); /* nothing composes with it */
        strcpy(want, text);
        for (size_t i = 0; i < count; i++) {
            run[i] = random_below(KINDS);
            strcat(text, marks[run[i]].bytes);
        }
        for (unsigned class = 1; class <= 240; class++) {
            for (size_t i = 0; i < count; i++) {
                strcat(want, marks[run[i]].class == class ? marks[run[i]].bytes : "");
            }
        }
        expect_both(text, want);
    }
}

static void test_other_bytes(void) {
    expect_both("\xFF", "\xFF");
    expect_both("e\xFF\xCC\x81", "e\xFF\xCC\x81");        /* nothing composes across it */
    expect_both("e\xCC\x81\xE4\xB8", "\xC3\xA9\xE4\xB8"); /* the end of the text cut it */
    expect_both("\xCC\x81\xCC\xA3\xFF", "\xCC\xA3\xCC\x81\xFF");
    expect_both("\xFF\xCC\x81\xCC\xA3\x80", "\xFF\xCC\xA3\xCC\x81\x80");
    expect_both("e\xCC\x81\xED\xA0\x80\xCC\xA3", "\xC3\xA9\xED\xA0\x80\xCC\xA3"); /* a surrogate is three of them */
}

static void test_refused(void) {
    for (int form = -1; form < 4; form++) {
        uint8_t *out = (uint8_t *)1;
        size_t length = 99;
        pybpe_error err;
        int code = pybpe_normalize(&out, &length, form, (const uint8_t *)"x", 1, NULL, &err);
        CHECK_EQ(code, form == 1 || form == 2 ? PYBPE_OK : PYBPE_ERR_VALUE);
        CHECK(out == NULL && length == (code == PYBPE_OK ? 1 : 99));
    }
    CHECK(pybpe_normalizer_unicode_version()[0] == '9');
    pybpe_normalize_free(NULL, NULL);
}

/* Each run of marks, of any length, is sorted and kept; the output grows several times. */
static void test_failing_memory(void) {
    enum { MARKS = 3000 };
    static uint8_t text[1 + 2 * MARKS + 300];
    size_t n = 0;
    text[n++] = 'z';
    for (size_t i = 0; i < MARKS; i++) {
        text[n++] = 0xCC;
        text[n++] = i % 2 ? 0xA3 : 0x81; /* of classes 220 and 230 */
    }
    for (size_t i = 0; i < 300; i++) {
        text[n++] = (uint8_t)"\xEF\xB7\xBA"[i % 3]; /* eleven times as long in NFKC */
    }
    int passed = 0, failures = 0;
    for (long grant = 0; grant < 24; grant++) {
        failing_memory m = {.left = grant};
        pybpe_allocator mem = {failing_resize, &m};
        uint8_t *out = NULL;
        size_t length = 99;
        pybpe_error err;
        int code = pybpe_normalize(&out, &length, PYBPE_NORMALIZER_NFKC, text, n, &mem, &err);
        failures += code != PYBPE_OK && (code != PYBPE_ERR_MEMORY || out != NULL || length != 99);
        if (code == PYBPE_OK) {
            passed++;
            failures += length != 1 + 2 * MARKS + 3300;
            for (size_t i = 0; i < MARKS - 1; i++) { /* z took one of the lower class, and has three bytes now */
                failures += out[4 + 2 * i] != (i < MARKS / 2 - 1 ? 0xA3 : 0x81);
            }
        }
        pybpe_normalize_free(out, &mem);
        failures += m.blocks != 0;
    }
    CHECK_EQ(failures, 0);
    CHECK(passed > 0 && passed < 24);
}

/* Memory ends while each kind of output is written: after characters that become eleven times as long and each number
   of letters, a character with marks, a byte that is not UTF-8, and more letters. */
static void test_failing_memory_anywhere(void) {
    enum { LETTERS = 400, LONG = 60 };
    static const char middle[] = "z\xCC\x81\xCC\xA3\xCC\x81\xFFz\xCC\xA3";
    uint8_t text[3 * LONG + 2 * LETTERS + sizeof middle];
    int passed = 0, failed = 0;
    for (size_t letters = 0; letters < LETTERS; letters++) {
        memset(text, 'a', sizeof text);
        for (size_t i = 0; i < 3 * LONG; i++) {
            text[i] = (uint8_t)"\xEF\xB7\xBA"[i % 3];
        }
        memcpy(text + 3 * LONG + letters, middle, sizeof middle - 1);
        for (long grant = 0; grant < 8; grant++) {
            failing_memory m = {.left = grant};
            const pybpe_allocator mem = {failing_resize, &m};
            uint8_t *out = NULL;
            size_t length = 0;
            int code = pybpe_normalize(&out, &length, PYBPE_NORMALIZER_NFKC, text, sizeof text, &mem, NULL);
            passed += code == PYBPE_OK && out[length - 1] == 'a';
            failed += code == PYBPE_ERR_MEMORY && out == NULL;
            pybpe_normalize_free(out, &mem);
            CHECK_EQ(m.blocks, 0);
        }
    }
    CHECK(passed > 0 && failed > LETTERS && passed + failed == 8 * LETTERS);
}

int main(void) {
    test_failing_memory_anywhere();
    test_by_hand();
    test_hangul();
    test_runs_of_marks();
    test_other_bytes();
    test_refused();
    test_failing_memory();
    return check_report("normalize");
}
