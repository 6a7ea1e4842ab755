/*
Special tokens: by hand, against a naive search, hostile sets, failing memory.
*/
#include "check.h"
#include "naive_special.h"
#include "random_state.h"
#include "small_vocab.h"
#include "special/special.h"

static pybpe_specials *specials_of(const string_list *l) {
    pybpe_specials *s = NULL;
    CHECK_EQ(pybpe_specials_new(&s, &l->strings, l->ids, NULL, NULL, NULL), PYBPE_OK);
    return s;
}

static void expect_find(const pybpe_specials *s, const char *text, size_t from, size_t start, size_t end, uint32_t id) {
    size_t got_start = 99, got_end = 99;
    uint32_t got_id = 99;
    CHECK_EQ(pybpe_specials_find(s, (const uint8_t *)text, strlen(text), from, &got_start, &got_end, &got_id), 1);
    CHECK(got_start == start && got_end == end && got_id == id);
}

static void expect_none(const pybpe_specials *s, const char *text, size_t from) {
    size_t start = 99, end = 99;
    uint32_t id = 99;
    CHECK_EQ(pybpe_specials_find(s, (const uint8_t *)text, strlen(text), from, &start, &end, &id), 0);
    CHECK(start == 99 && end == 99 && id == 99);
}

static void test_by_hand(void) {
    string_list l;
    list_start(&l);
    list_string(&l, "<|a|>");
    list_string(&l, "<|a|><|b|>");
    list_string(&l, "<|b|>");
    pybpe_specials *s = specials_of(&l);
    expect_find(s, "<|a|>", 0, 0, 5, 1000);
    expect_find(s, "x<|a|><|b|>y", 0, 1, 11, 1001); /* the longest */
    expect_find(s, "x<|a|><|b y", 0, 1, 6, 1000);   /* the longest was not to be */
    expect_find(s, "<|<|b|>", 0, 2, 7, 1002);
    expect_find(s, "<|a|><|b|>", 1, 5, 10, 1002);
    expect_none(s, "<|a|", 0);
    expect_none(s, "", 0);
    expect_none(s, "<|a|>", 5);
    pybpe_specials_free(s);

    list_start(&l);
    list_string(&l, "abcd");
    list_string(&l, "bc");
    list_string(&l, "bcdef");
    s = specials_of(&l);
    expect_find(s, "abcdef", 0, 0, 4, 1000); /* leftmost before longest */
    expect_find(s, "abcx", 0, 1, 3, 1001);
    expect_find(s, "xbcdeg", 0, 1, 3, 1001);
    pybpe_specials_free(s);

    for (int last = 0; last < 2; last++) { /* both ends of what may be a first byte */
        size_t start = 99, end = 99;
        uint32_t id = 99;
        list_start(&l);
        list_string(&l, "<a");
        list_add(&l, last ? "\xFFz" : "\0z", 2);
        s = specials_of(&l);
        CHECK_EQ(pybpe_specials_find(s, (const uint8_t *)(last ? "x\xFFz" : "x\0z"), 3, 0, &start, &end, &id), 1);
        CHECK(start == 1 && end == 3 && id == 1001);
        pybpe_specials_free(s);
    }
    list_start(&l);
    s = specials_of(&l); /* none at all */
    expect_none(s, "<|a|>", 0);
    pybpe_specials_free(s);
    special_match match;
    special_scan none;
    special_scan_start(&none, NULL, (const uint8_t *)"ab", 2, 0);
    CHECK(!special_scan_next(&none, &match));
    special_scan_end(&none);
}

/* The text ends with the first byte of a special; nothing may be read after it. */
static void test_end_of_text(void) {
    uint8_t *text = malloc(2);
    memcpy(text, "x<", 2);
    for (int single = 0; single < 2; single++) {
        size_t start, end;
        uint32_t id = 99;
        string_list l;
        list_start(&l);
        list_string(&l, "<a");
        if (single) {
            list_string(&l, "<");
        }
        pybpe_specials *s = specials_of(&l);
        CHECK_EQ(pybpe_specials_find(s, text, 2, 0, &start, &end, &id), single);
        CHECK_EQ(id, single ? 1001 : 99);
        pybpe_specials_free(s);
    }
    free(text);
}

static void test_refused(void) {
    string_list l;
    pybpe_specials *s = NULL;
    pybpe_error err;
    list_start(&l);
    list_string(&l, "one");
    list_string(&l, "two");
    list_string(&l, "one");
    CHECK_EQ(pybpe_specials_new(&s, &l.strings, l.ids, NULL, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(s == NULL && err.offset == 2);
    list_start(&l);
    list_string(&l, "one");
    list_string(&l, "");
    CHECK_EQ(pybpe_specials_new(&s, &l.strings, l.ids, NULL, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(s == NULL && err.offset == 1);
    list_start(&l);
    list_string(&l, "one");
    const uint8_t flag = 0x80;
    CHECK_EQ(pybpe_specials_new(&s, &l.strings, l.ids, &flag, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(s == NULL && err.offset == 0);
}

/* Part of a character of white space, here U+00A0 and U+2003, would match inside the white space after an RSTRIP. */
static void test_refused_parts(void) {
    static const char *const parts[] = {"\xC2", "\xA0", "\xE2", "\xE2\x80", "\x80\x83"};
    const uint8_t flags[] = {PYBPE_SPECIAL_RSTRIP, 0, PYBPE_SPECIAL_LATE};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        string_list l;
        pybpe_specials *s = NULL;
        list_start(&l);
        list_string(&l, "one");
        list_string(&l, parts[i]);
        list_string(&l, "two");
        CHECK_EQ(pybpe_specials_new(&s, &l.strings, l.ids, flags, NULL, NULL), PYBPE_ERR_VALUE);
        CHECK(s == NULL);
    }
}

/* A single word may be next to the last code point, which is after all characters of words. */
static void test_last_code_point(void) {
    string_list l;
    list_start(&l);
    list_string(&l, "one");
    const uint8_t flag = PYBPE_SPECIAL_SINGLE_WORD;
    pybpe_specials *s = NULL;
    CHECK_EQ(pybpe_specials_new(&s, &l.strings, l.ids, &flag, NULL, NULL), PYBPE_OK);
    expect_find(s, "one\xF4\x8F\xBF\xBF", 0, 0, 3, l.ids[0]);
    expect_none(s, "one\xC3\xA9", 0);
    pybpe_specials_free(s);
}

/* ---------------------------------------------------------------------------------------------------
Against a naive search
*/

/* Whether a special touches text[low..high), or might if the text continued. */
static int naive_touches(const string_list *l, const uint8_t *text, size_t n, size_t low, size_t high) {
    int answer = SPECIAL_NONE;
    for (size_t i = 0; i < l->strings.count; i++) {
        size_t length = (size_t)(l->offsets[i + 1] - l->offsets[i]);
        for (size_t at = 0; at < high; at++) {
            if (at + length > low && occurs_at(l, i, text, n, at)) {
                return SPECIAL_TOUCHES;
            }
            if (at + length > n && memcmp(text + at, l->bytes + l->offsets[i], n - at) == 0) {
                answer = SPECIAL_UNDECIDED;
            }
        }
    }
    return answer;
}

/* Successive answers of one reader must be correct, and the same as if each question had a new reader. */
static int wrong_answers(const string_list *l, const pybpe_specials *s, const uint8_t *text, size_t n) {
    int wrong = 0;
    size_t until = 0;
    uint8_t unread[400];
    memcpy(unread, text, n);
    special_reader walker = special_reader_start(s, unread, n, 1);
    int walking = 1;
    for (size_t low = 1; low < n; low++) {
        size_t high = low + random_below(3);
        high = high > n ? n : high;
        int want = naive_touches(l, text, n, low, high);
        size_t end = 0;
        special_reader alone = special_reader_start(s, text, n, low);
        int got = special_reader_ask(&alone, low, high, &end);
        wrong += got != want && !(want == SPECIAL_TOUCHES && got == SPECIAL_UNDECIDED);
        wrong += got == SPECIAL_TOUCHES && end <= low;
        if (walking && low >= until) {
            memset(unread, 'z', walker.at); /* it reads a text once */
            got = special_reader_ask(&walker, low, high, &until);
            wrong += got != want && !(want == SPECIAL_TOUCHES && got == SPECIAL_UNDECIDED);
            walking = got == SPECIAL_TOUCHES; /* otherwise no more questions */
        }
    }
    return wrong;
}

/* All specials by a scan, and in calls of up to `cap`. */
static int wrong_scans(const string_list *l, const pybpe_specials *s, const uint8_t *text, size_t n, size_t from) {
    enum { CAP = 3 };
    size_t spans[2 * CAP], start = 0, end = from, count = 0, next = 0;
    uint32_t ids[CAP], id = 0;
    int wrong = 0;
    special_match match;
    special_scan scan;
    special_scan_start(&scan, s, text, n, from);
    while (naive_find(l, text, n, end, &start, &end, &id)) {
        wrong += !special_scan_next(&scan, &match) || match.start != start || match.end != end || match.id != id;
        if (next == count) {
            count = pybpe_specials_find_all(s, text, n, next > 0 ? spans[2 * next - 1] : from, spans, ids, CAP);
            next = 0;
        }
        wrong += next >= count || spans[2 * next] != start || spans[2 * next + 1] != end || ids[next] != id;
        next++;
    }
    wrong += special_scan_next(&scan, &match) || special_scan_next(&scan, &match);
    special_scan_end(&scan);
    return wrong + (next != count);
}

static int ends_with_match(const string_list *l, const uint8_t *text, size_t n) {
    for (size_t i = 0; i < l->strings.count; i++) {
        const size_t length = (size_t)(l->offsets[i + 1] - l->offsets[i]);
        if (length <= n && occurs_at(l, i, text, n, n - length)) {
            return 1;
        }
    }
    return 0;
}

/* The most bytes that are read after a match: of each string, what follows its shortest start that ends with a match. */
static size_t naive_look_ahead(const string_list *l) {
    size_t most = 0;
    for (size_t i = 0; i < l->strings.count; i++) {
        const size_t length = (size_t)(l->offsets[i + 1] - l->offsets[i]);
        size_t n = 1;
        while (!ends_with_match(l, l->bytes + l->offsets[i], n)) {
            n++;
        }
        most = length - n > most ? length - n : most;
    }
    return most;
}

/* There is an automaton of the reversed strings if and only if more than a few bytes are read after a match. */
static int wrong_look_ahead(const string_list *l) {
    string_set set;
    CHECK_EQ(string_set_init(&set, &l->strings, l->ids, NULL, NULL), PYBPE_OK);
    const size_t want = naive_look_ahead(l);
    int wrong = set.forward.look_ahead != want || (set.backward.states != NULL) != (want > 32);
    string_set_free(&set);
    return wrong;
}

static void random_list(string_list *l, uint32_t letters) {
    list_start(l);
    uint32_t count = 1 + random_below(6);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t string[8];
        size_t n = 1 + random_below(7);
        for (size_t j = 0; j < n; j++) {
            string[j] = (uint8_t)('a' + random_below(letters));
        }
        int known = 0;
        for (size_t k = 0; k < l->strings.count; k++) {
            known |= l->offsets[k + 1] - l->offsets[k] == n && occurs_at(l, k, string, n, 0);
        }
        if (!known) {
            list_add(l, string, n);
        }
    }
}

static void test_random(void) {
    static string_list l;
    int wrong = 0;
    for (int round = 0; round < 8000; round++) {
        uint32_t letters = 1 + random_below(3);
        random_list(&l, letters);
        pybpe_specials *s = specials_of(&l);
        size_t n = random_below(40);
        uint8_t *text = malloc(n + (n == 0)); /* exactly: a sanitizer sees one byte too many */
        for (size_t i = 0; i < n; i++) {
            text[i] = (uint8_t)('a' + random_below(letters + 1));
        }
        for (size_t from = 0; from <= n; from++) {
            size_t start = 0, end = 0, want_start = 0, want_end = 0;
            uint32_t id = 0, want_id = 0;
            int found = pybpe_specials_find(s, text, n, from, &start, &end, &id);
            int want = naive_find(&l, text, n, from, &want_start, &want_end, &want_id);
            wrong += found != want || start != want_start || end != want_end || id != want_id;
        }
        wrong += wrong_scans(&l, s, text, n, random_below((uint32_t)n + 1));
        wrong += wrong_answers(&l, s, text, n);
        wrong += wrong_look_ahead(&l);
        pybpe_specials_free(s);
        free(text);
    }
    CHECK_EQ(wrong, 0);
}

/* ---------------------------------------------------------------------------------------------------
Flags
*/

static size_t random_characters(uint8_t *to, size_t count) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const char *character = characters[random_below(3) ? random_below(CHARACTERS) : FIRST_SPACE];
        memcpy(to + n, character, strlen(character));
        n += strlen(character);
    }
    return n;
}

static int wrong_flags(const string_list *l, const uint8_t *flags, const pybpe_specials *s, const uint8_t *text,
                       size_t n, size_t from) {
    special_match want[128];
    size_t spans[256];
    uint32_t ids[128];
    size_t count = naive_flags(l, flags, text + from, n - from, want);
    int wrong = pybpe_specials_find_all(s, text, n, from, spans, ids, 128) != count;
    for (size_t i = 0; i < count && !wrong; i++) {
        wrong = spans[2 * i] != want[i].start + from || spans[2 * i + 1] != want[i].end + from || ids[i] != want[i].id;
    }
    size_t start, end;
    uint32_t id;
    int found = pybpe_specials_find(s, text, n, from, &start, &end, &id);
    return wrong || found != (count > 0) || (found && (start != spans[0] || end != spans[1] || id != ids[0]));
}

static void test_random_flags(void) {
    static string_list l;
    int wrong = 0, refused = 0;
    for (int round = 0; round < 10000; round++) {
        uint8_t flags[64], text[160];
        list_start(&l);
        for (uint32_t i = 0, count = 1 + random_below(5); i < count; i++) {
            uint8_t string[16];
            size_t n = random_characters(string, 1 + random_below(3));
            int known = 0;
            for (size_t k = 0; k < l.strings.count; k++) {
                known |= l.offsets[k + 1] - l.offsets[k] == n && occurs_at(&l, k, string, n, 0);
            }
            if (!known) {
                flags[l.strings.count] = (uint8_t)(random_below(2) ? random_below(16) : 0);
                list_add(&l, string, n);
            }
        }
        pybpe_specials *s = NULL;
        int code = pybpe_specials_new(&s, &l.strings, l.ids, flags, NULL, NULL);
        if (code != PYBPE_OK) { /* RSTRIP, and white space at the start of a special */
            refused += code == PYBPE_ERR_VALUE;
            CHECK(s == NULL);
            continue;
        }
        for (int k = 0; k < 4; k++) {
            size_t n = random_characters(text, random_below(40));
            wrong += wrong_flags(&l, flags, s, text, n, random_below(2) ? 0 : random_below((uint32_t)n + 1));
        }
        pybpe_specials_free(s);
    }
    CHECK_EQ(wrong, 0);
    CHECK(refused > 100 && refused < 5000);
}

/* Much white space before and after many specials: each byte of it is read a few times. */
static void test_long_space(void) {
    enum { TEXT = 4000000 };
    const uint64_t offsets[] = {0, 3, 6, 9};
    const uint32_t ids[] = {0, 1, 2};
    const uint8_t flags[] = {PYBPE_SPECIAL_LSTRIP, PYBPE_SPECIAL_RSTRIP,
                             PYBPE_SPECIAL_LSTRIP | PYBPE_SPECIAL_SINGLE_WORD | PYBPE_SPECIAL_LATE};
    const pybpe_strings strings = {(const uint8_t *)"<l><r><s>", offsets, 3};
    pybpe_specials *s = NULL;
    CHECK_EQ(pybpe_specials_new(&s, &strings, ids, flags, NULL, NULL), PYBPE_OK);
    uint8_t *text = malloc(TEXT);
    memset(text, ' ', TEXT);
    for (size_t i = 100; i + 100 < TEXT; i += i % 1000 == 100 ? 200000 : 5) {
        memcpy(text + i, "<s>a", 4); /* refused, and the white space before it is long */
    }
    memcpy(text + TEXT - 3, "<l>", 3);
    size_t count = 0;
    special_match match;
    special_scan scan;
    special_scan_start(&scan, s, text, TEXT, 0);
    while (special_scan_next(&scan, &match)) {
        count++;
    }
    special_scan_end(&scan);
    CHECK_EQ(count, 1);
    pybpe_specials_free(s);
    free(text);
}

/* Fills with a short period, except for some letters. */
static void fill_periodic(uint8_t *to, size_t n, const uint8_t *period, size_t length, uint32_t faults) {
    for (size_t i = 0; i < n; i++) {
        to[i] = period[i % length];
    }
    for (uint32_t i = 0; i < faults && n > 0; i++) {
        to[random_below((uint32_t)n)] = (uint8_t)('a' + random_below(3));
    }
}

/* Long strings that a text nearly repeats, and short ones inside them, so that a scan reads far without a match. */
static void test_random_long(void) {
    static string_list l;
    int wrong = 0;
    for (int round = 0; round < 400; round++) {
        uint8_t period[4], text[400], string[90];
        size_t length = 1 + random_below(4);
        for (size_t i = 0; i < length; i++) {
            period[i] = (uint8_t)('a' + random_below(2));
        }
        random_list(&l, 2);
        for (uint32_t i = 0; i < 1 + random_below(3); i++) {
            size_t n = 40 + 16 * i + random_below(16); /* no two are equal */
            fill_periodic(string, n - 1, period, length, random_below(3));
            string[n - 1] = (uint8_t)('a' + random_below(3));
            list_add(&l, string, n);
        }
        size_t n = random_below(sizeof text);
        fill_periodic(text, n, period, length, random_below(12));
        pybpe_specials *s = specials_of(&l);
        wrong += wrong_scans(&l, s, text, n, random_below((uint32_t)n + 1));
        wrong += wrong_answers(&l, s, text, n);
        wrong += wrong_look_ahead(&l);
        pybpe_specials_free(s);
    }
    CHECK_EQ(wrong, 0);
}

/* ---------------------------------------------------------------------------------------------------
Hostile
*/

/* 100,000 strings, and one of 10 kB whose prefixes the text repeats over and over. */
static void test_large(void) {
    enum { COUNT = 100000, LONG = 10000, TEXT = 1000000 };
    uint8_t *bytes = malloc(COUNT * 16 + LONG);
    uint64_t *offsets = malloc((COUNT + 2) * sizeof *offsets);
    uint32_t *ids = malloc((COUNT + 1) * sizeof *ids);
    offsets[0] = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        int n = snprintf((char *)bytes + offsets[i], 16, "<|%u|>", i);
        offsets[i + 1] = offsets[i] + (uint64_t)n;
        ids[i] = i;
    }
    memset(bytes + offsets[COUNT], 'a', LONG - 1);
    bytes[offsets[COUNT] + LONG - 1] = 'b';
    offsets[COUNT + 1] = offsets[COUNT] + LONG;
    ids[COUNT] = COUNT;
    const pybpe_strings strings = {bytes, offsets, COUNT + 1};
    pybpe_specials *s = NULL;
    CHECK_EQ(pybpe_specials_new(&s, &strings, ids, NULL, NULL, NULL), PYBPE_OK);

    uint8_t *text = malloc(TEXT);
    memset(text, 'a', TEXT);
    size_t start, end;
    uint32_t id = 0;
    CHECK_EQ(pybpe_specials_find(s, text, TEXT, 0, &start, &end, &id), 0);
    text[TEXT - 1] = 'b';
    CHECK_EQ(pybpe_specials_find(s, text, TEXT, 0, &start, &end, &id), 1);
    CHECK(start == TEXT - LONG && end == TEXT && id == COUNT);
    size_t until = 0;
    special_reader reader = special_reader_start(s, text, TEXT, TEXT - LONG);
    CHECK_EQ(special_reader_ask(&reader, TEXT - LONG, TEXT - LONG, &until), SPECIAL_NONE);
    CHECK_EQ(special_reader_ask(&reader, TEXT - 1, TEXT - 1, &until), SPECIAL_TOUCHES);
    CHECK_EQ(until, TEXT);
    expect_find(s, "a<|99999|>", 0, 1, 10, 99999);
    pybpe_specials_free(s);
    free(text);
    free(bytes);
    free(offsets);
    free(ids);
}

/* x and xaxa...xab in a text of xa: after each x, 4 kB are read without a match. If what was read is kept, 2 MB take no
   time; without it, minutes. Memory for the window may be missing: then a shorter text gives the same. */
static void test_look_ahead(void) {
    enum { LONG = 4001, TEXT = 2000000, SHORT_TEXT = 8000 };
    uint8_t *bytes = malloc(1 + LONG);
    uint8_t *text = malloc(TEXT);
    const uint64_t offsets[] = {0, 1, 1 + LONG};
    const uint32_t ids[] = {7, 8};
    for (size_t i = 0; i < TEXT; i++) {
        text[i] = i % 2 ? 'a' : 'x';
    }
    bytes[0] = 'x';
    memcpy(bytes + 1, text, LONG);
    bytes[LONG] = 'b';
    const pybpe_strings strings = {bytes, offsets, 2};
    for (int fails = 0; fails < 2; fails++) {
        size_t n = fails ? SHORT_TEXT : TEXT, count = 0;
        failing_memory m = {.left = -1};
        const pybpe_allocator mem = {failing_resize, &m};
        pybpe_specials *s = NULL;
        CHECK_EQ(pybpe_specials_new(&s, &strings, ids, NULL, &mem, NULL), PYBPE_OK);
        m.left = fails ? 0 : -1;
        special_match match;
        special_scan scan;
        special_scan_start(&scan, s, text, n, 0);
        while (special_scan_next(&scan, &match)) {
            count += match.start == 2 * count && match.end == match.start + 1 && match.id == 7;
        }
        special_scan_end(&scan);
        CHECK_EQ(count, n / 2);
        pybpe_specials_free(s);
        CHECK_EQ(m.blocks, 0);
    }
    free(bytes);
    free(text);
}

static void test_failing_memory(void) {
    string_list l;
    list_start(&l);
    list_string(&l, "<|a|>");
    list_string(&l, "<|a|>, and so long that there must be two automata");
    int passed = 0, failures = 0;
    const uint8_t flags[] = {PYBPE_SPECIAL_LSTRIP, PYBPE_SPECIAL_LATE};
    for (long grant = 0; grant < 60; grant++) {
        failing_memory m = {.left = grant};
        pybpe_allocator mem = {failing_resize, &m};
        pybpe_specials *s = NULL;
        pybpe_error err;
        int code = pybpe_specials_new(&s, &l.strings, l.ids, flags, &mem, &err);
        passed += code == PYBPE_OK;
        failures += code != PYBPE_OK && (code != PYBPE_ERR_MEMORY || s != NULL);
        pybpe_specials_free(s);
        failures += m.blocks != 0;
    }
    CHECK_EQ(failures, 0);
    CHECK(passed > 0 && passed < 60);
}

int main(void) {
    test_by_hand();
    test_end_of_text();
    test_refused();
    test_refused_parts();
    test_last_code_point();
    test_random();
    test_random_long();
    test_random_flags();
    test_long_space();
    test_large();
    test_look_ahead();
    test_failing_memory();
    return check_report("special");
}
