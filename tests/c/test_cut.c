/*
Cuts of a text that has specials, some of them with flags: the two parts have the words and specials of the whole,
regardless of what follows.
*/
#include "check.h"
#include "naive_automaton.h"
#include "pybpe_train.h"
#include "random_state.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 60, ENDS = 256, NO_SPECIAL = 0xFFFF };

/* Specials of ASCII, of a whole character, and of parts of characters: at the front, in the middle, across the end. */
static const char *const special_strings[] = {"<|a|>", "\xE4\xBD\xA0", "\xE5\xA5", "\x9F\x98", "\x80\x80",
                                              "\xA0",  "\xC3",         "\xBD x",   "a ",       "|>b"};
static const char *const pieces[] = {"<|a|>",
                                     "\xE4\xBD\xA0",
                                     "\xE5\xA5\xBD",
                                     "\xF0\x9F\x98\x80",
                                     "\xBD",
                                     "\xE3\x80\x80",
                                     "\xC2\xA0",
                                     "\xC3\xA0",
                                     "a",
                                     "b",
                                     " ",
                                     "1",
                                     "'",
                                     "\n",
                                     "|>",
                                     "\xFF"};
enum { SPECIALS = sizeof special_strings / sizeof *special_strings, PIECES = sizeof pieces / sizeof *pieces };

/* The matcher for the first `count` of a random order of the specials; in every second round with flags. */
static pybpe_specials *random_specials(size_t count) {
    uint8_t flags[SPECIALS];
    const unsigned most = random_below(2) ? PYBPE_SPECIAL_LATE * 2 : 1;
    uint8_t bytes[64];
    uint64_t offsets[SPECIALS + 1] = {0};
    uint32_t ids[SPECIALS];
    size_t first = random_below(SPECIALS);
    for (size_t i = 0; i < count; i++) {
        const char *string = special_strings[(first + 3 * i) % SPECIALS];
        memcpy(bytes + offsets[i], string, strlen(string));
        offsets[i + 1] = offsets[i] + strlen(string);
        ids[i] = (uint32_t)i;
        flags[i] = (uint8_t)(random_below(2) ? 0 : random_below(most));
    }
    const pybpe_strings strings = {bytes, offsets, count};
    pybpe_specials *s = NULL;
    int code = pybpe_specials_new(&s, &strings, ids, flags, NULL, NULL);
    if (code == PYBPE_ERR_VALUE) { /* RSTRIP, and a special that begins inside a character, which may be white space */
        for (size_t i = 0; i < count; i++) {
            flags[i] &= (uint8_t)~PYBPE_SPECIAL_RSTRIP;
        }
        code = pybpe_specials_new(&s, &strings, ids, flags, NULL, NULL);
    }
    CHECK_EQ(code, PYBPE_OK);
    return s;
}

static size_t random_text(uint8_t *text) {
    size_t n = 0;
    while (n < TEXT_BYTES - 5) {
        const char *piece = pieces[random_below(PIECES)];
        memcpy(text + n, piece, strlen(piece));
        n += strlen(piece);
    }
    return n;
}

/* The parts of a text by definition: the end of each word or special, and which special it is. */
typedef struct parts {
    size_t ends[ENDS];
    uint32_t specials[ENDS];
    size_t count;
} parts;

static void parts_add_words(parts *to, const pybpe_pretok *p, const uint8_t *text, size_t from, size_t until) {
    size_t ends[ENDS];
    for (size_t pos = 0; pos < until - from;) {
        size_t count = pybpe_pretok_split(p, text + from, until - from, pos, ends, ENDS);
        for (size_t i = 0; i < count; i++) {
            to->ends[to->count] = from + ends[i];
            to->specials[to->count++] = NO_SPECIAL;
        }
        pos = ends[count - 1];
    }
}

/* Appends the parts of text[from..until). */
static void parts_add(parts *to, const pybpe_pretok *p, const pybpe_specials *s, const uint8_t *text, size_t from,
                      size_t until) {
    size_t spans[2 * ENDS];
    uint32_t ids[ENDS];
    size_t count = pybpe_specials_find_all(s, text + from, until - from, 0, spans, ids, ENDS);
    CHECK(count < ENDS);
    for (size_t i = 0, pos = 0; i <= count; i++) {
        size_t start = i < count ? spans[2 * i] : until - from;
        parts_add_words(to, p, text, from + pos, from + start);
        if (i < count) {
            to->ends[to->count] = from + spans[2 * i + 1];
            to->specials[to->count++] = ids[i];
            pos = spans[2 * i + 1];
        }
    }
}

static int parts_equal(const parts *a, const parts *b) {
    return a->count == b->count && memcmp(a->ends, b->ends, a->count * sizeof *a->ends) == 0 &&
           memcmp(a->specials, b->specials, a->count * sizeof *a->specials) == 0;
}

/* Checks every cut of text[0..n), which continues up to `whole`, and returns how many there are. */
static size_t check_cuts(const pybpe_pretok *p, const pybpe_specials *s, const uint8_t *text, size_t n, size_t whole) {
    static parts expected;
    static parts divided;
    size_t found = 0;
    expected.count = 0;
    parts_add(&expected, p, s, text, 0, whole);
    for (size_t from = 0; from <= n; from++) {
        size_t cut = pybpe_text_cut(p, s, text, n, from);
        CHECK(cut == n || (cut >= from && cut < n));
        divided.count = 0;
        if (cut < n) {
            parts_add(&divided, p, s, text, 0, cut);
            parts_add(&divided, p, s, text, cut, whole);
            CHECK(parts_equal(&divided, &expected));
            found += cut > 0;
        }
    }
    return found;
}

static void check_splitter(const pybpe_pretok *p) {
    uint8_t text[2 * TEXT_BYTES];
    size_t found = 0;
    for (int round = 0; round < 400; round++) {
        pybpe_specials *s = random_specials(1 + random_below(SPECIALS));
        size_t n = random_text(text);
        size_t whole = n + random_text(text + n);
        found += check_cuts(p, s, text, n, whole);
        pybpe_specials_free(s);
    }
    CHECK(found > 1000);
}

static void test_pattern(int pattern) {
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new(&p, pattern, NULL, NULL), PYBPE_OK);
    check_splitter(p);
    pybpe_pretok_free(p);
}

/* Each character, or each byte, is a word. */
static pybpe_pretok *splitter_of_characters(int bytes) {
    uint16_t next[3 * NAIVE_COLUMNS];
    for (unsigned i = 0; i < NAIVE_COLUMNS; i++) {
        next[NAIVE_COLUMNS + i] = 2;
        next[2 * NAIVE_COLUMNS + i] = NAIVE_ACCEPT;
    }
    pybpe_automaton a = naive_automaton(next, 3);
    a.bytes = (uint8_t)bytes;
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new_automaton(&p, &a, NULL, NULL), PYBPE_OK);
    return p;
}

static void test_characters(void) {
    for (int bytes = 0; bytes < 2; bytes++) {
        pybpe_pretok *p = splitter_of_characters(bytes);
        check_splitter(p);
        pybpe_pretok_free(p);
    }
}

/* The first cut at `from` or later in a text, if a special with these flags may occur. */
static size_t cut_with(const pybpe_pretok *p, const char *special, unsigned flags, const char *text, size_t from) {
    const uint64_t offsets[] = {0, strlen(special)};
    const uint32_t id = 0;
    const uint8_t flag = (uint8_t)flags;
    const pybpe_strings strings = {(const uint8_t *)special, offsets, 1};
    pybpe_specials *s = NULL;
    CHECK_EQ(pybpe_specials_new(&s, &strings, &id, &flag, NULL, NULL), PYBPE_OK);
    const size_t cut = pybpe_text_cut(p, s, (const uint8_t *)text, strlen(text), from);
    pybpe_specials_free(s);
    return cut;
}

/* A cut may be next to a special, but with flags not next to what its match may depend on. */
static void test_next_to_specials(void) {
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_text_cut(p, NULL, (const uint8_t *)"! a", 3, 1), 1);
    CHECK_EQ(cut_with(p, "ab", 0, "xab 1", 1), 3);
    CHECK_EQ(cut_with(p, " 1", 0, "ab 1", 1), 2);
    for (unsigned flags = 0; flags <= PYBPE_SPECIAL_LATE; flags++) {
        const bool before = (flags & (PYBPE_SPECIAL_RSTRIP | PYBPE_SPECIAL_SINGLE_WORD)) != 0;
        const bool after = (flags & (PYBPE_SPECIAL_LSTRIP | PYBPE_SPECIAL_SINGLE_WORD)) != 0;
        CHECK_EQ(cut_with(p, "q", flags, "ab 1", 1), 2);
        CHECK_EQ(cut_with(p, "b", flags, "ab 1", 1), before ? 4 : 2);
        CHECK_EQ(cut_with(p, "!", flags, "a! 1", 1), !after ? 1 : !before ? 2 : 4);
    }
    pybpe_pretok_free(p);
}

/* With flags, a cut is never between two white spaces, which one match may include, nor inside a character. */
static void test_inside_white_space(void) {
    pybpe_pretok *p = splitter_of_characters(0);
    CHECK_EQ(cut_with(p, "q", 0, "a  b", 2), 2);
    CHECK_EQ(cut_with(p, "q", PYBPE_SPECIAL_SINGLE_WORD, "a  b", 2), 2);
    CHECK_EQ(cut_with(p, "q", PYBPE_SPECIAL_LSTRIP, "a  b", 2), 3);
    CHECK_EQ(cut_with(p, "q", PYBPE_SPECIAL_RSTRIP, "a  b", 2), 3);
    CHECK_EQ(cut_with(p, "q", PYBPE_SPECIAL_RSTRIP, "a  b", 1), 1);
    CHECK_EQ(cut_with(p, "q", PYBPE_SPECIAL_RSTRIP, "a\xFF b", 2), 2);
    pybpe_pretok_free(p);
    p = splitter_of_characters(1);
    CHECK_EQ(cut_with(p, "q", 0, "\xC3\xA9x", 1), 1);
    CHECK_EQ(cut_with(p, "q", PYBPE_SPECIAL_SINGLE_WORD, "\xC3\xA9x", 1), 2);
    pybpe_pretok_free(p);
}

/* Bytes after the end of a text do not complete its last character. */
static void test_incomplete_at_end(void) {
    pybpe_pretok *p = splitter_of_characters(0);
    CHECK_EQ(pybpe_text_cut(p, NULL, (const uint8_t *)"a\xC3\xA9", 3, 1), 1);
    CHECK_EQ(pybpe_text_cut(p, NULL, (const uint8_t *)"a\xC3\xA9", 2, 1), 2);
    pybpe_pretok_free(p);
}

/* Specials forbid the cuts that they touch, and no others, even next to characters of several bytes. */
static void test_where(void) {
    static const char text[] = "\xE5\xA5\xBD x 1\xE5\xA5\xBD<|a|>     ";
    pybpe_pretok *p = NULL;
    pybpe_specials *s = NULL;
    const uint64_t offsets[] = {0, 5, 7};
    const uint32_t ids[] = {0, 1};
    const pybpe_strings strings = {(const uint8_t *)"<|a|>\xE5\xA5", offsets, 1};
    const pybpe_strings with_part = {strings.bytes, offsets, 2};
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_specials_new(&s, &strings, ids, NULL, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_text_cut(p, s, (const uint8_t *)text, sizeof text - 1, 1), 3);
    CHECK_EQ(pybpe_text_cut(p, s, (const uint8_t *)text, sizeof text - 1, 6), 7);
    CHECK_EQ(pybpe_text_cut(p, NULL, (const uint8_t *)text, sizeof text - 1, 6), 7);
    pybpe_specials_free(s);
    CHECK_EQ(pybpe_specials_new(&s, &with_part, ids, NULL, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_text_cut(p, s, (const uint8_t *)text, sizeof text - 1, 1), 5); /* the character is divided */
    pybpe_specials_free(s);
    pybpe_pretok_free(p);
}

/* A special of 60 kB that occurs at every second place, so that it crosses each place where words could be cut. If each
   of them cost the length of the special, this would take hours. */
static void test_covered_everywhere(void) {
    enum { LONG = 60000, TEXT = 2000000 };
    uint8_t *text = malloc(TEXT);
    for (size_t i = 0; i < TEXT; i++) {
        text[i] = i % 2 ? ' ' : 'a';
    }
    const uint64_t offsets[] = {0, LONG};
    const uint32_t id = 7;
    const pybpe_strings strings = {text, offsets, 1};
    pybpe_pretok *p = NULL;
    pybpe_specials *s = NULL;
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_specials_new(&s, &strings, &id, NULL, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_text_cut(p, s, text, TEXT, 1), TEXT);
    for (size_t i = TEXT - 8; i < TEXT; i += 2) {
        text[i] = 'b'; /* here no special can end or begin */
    }
    CHECK_EQ(pybpe_text_cut(p, s, text, TEXT, 1), TEXT - 7);
    pybpe_specials_free(s);
    pybpe_pretok_free(p);
    free(text);
}

int main(void) {
    test_where();
    test_next_to_specials();
    test_inside_white_space();
    test_incomplete_at_end();
    test_characters();
    test_pattern(PYBPE_PATTERN_GPT2);
    test_pattern(PYBPE_PATTERN_CL100K);
    test_pattern(PYBPE_PATTERN_O200K);
    test_pattern(PYBPE_PATTERN_GPT2 + PYBPE_PATTERN_DIGITS1);
    test_pattern(PYBPE_PATTERN_CL100K + PYBPE_PATTERN_DIGITS3);
    test_covered_everywhere();
    return check_report("cut");
}
