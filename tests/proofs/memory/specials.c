/*
csrc/special*.c: two strings of up to 3 bytes, with any flags, in any text.
*/
#define getentropy any_entropy

#include "prove.h"

#include <base.c>
#include <special.c>
#include <special_automaton.c>
#include <special_rules.c>
#include <special_strings.c>
#include <unicode.c>

enum { STRINGS = 2, LONGEST = 3 };

int getentropy(void *to, size_t n) {
    any_fill(to, n);
    return 0;
}

typedef struct strings {
    uint8_t bytes[STRINGS * LONGEST];
    uint64_t offsets[STRINGS + 1];
    uint32_t ids[STRINGS];
    uint8_t flags[STRINGS];
    pybpe_strings list;
} strings;

/* Few kinds of bytes, so that strings have common prefixes, and texts contain them: letters, white space, a byte that
   no character has, and the bytes of U+00A0 and U+2003, which are white space. */
static void any_letters(uint8_t *to, size_t n) {
    static const uint8_t letters[] = {'a', 'a', 'b', ' ', 0xFF, 0xC2, 0xA0, 0xE2, 0x80, 0x83};
    for (size_t i = 0; i < n; i++) {
        to[i] = letters[any_between(0, sizeof letters - 1)];
    }
}

static void any_strings(strings *s) {
    any_letters(s->bytes, sizeof s->bytes);
    s->offsets[0] = 0;
    for (size_t i = 0; i < STRINGS; i++) {
        s->offsets[i + 1] = s->offsets[i] + any_between(0, LONGEST);
        s->ids[i] = (uint32_t)i + 5;
        s->flags[i] = (uint8_t)any_between(0, any_bool() ? 15 : 255);
    }
    s->list = (pybpe_strings){s->bytes, s->offsets, (size_t)any_between(0, STRINGS)};
}

static uint8_t *any_text(size_t n) {
    uint8_t *text = any_bytes(n);
    any_letters(text, n);
    return text;
}

/* All matches are in the text, in ascending order, and do not overlap. */
static void find_all(const pybpe_specials *s, const uint8_t *text, size_t n) {
    size_t spans[2 * 8];
    uint32_t ids[8];
    size_t from = (size_t)any_between(0, n), last = from;
    size_t count = pybpe_specials_find_all(s, text, n, from, spans, ids, 8);
    for (size_t i = 0; i < count; i++) {
        CHECK(spans[2 * i] >= last && spans[2 * i] < spans[2 * i + 1] && spans[2 * i + 1] <= n);
        CHECK(ids[i] >= 5 && ids[i] < 5 + STRINGS);
        last = spans[2 * i + 1];
    }
}

void prove_find(size_t n) {
    strings s;
    any_strings(&s);
    uint8_t *text = any_text(n);
    pybpe_specials *made = NULL;
    if (pybpe_specials_new(&made, &s.list, s.ids, NULL, NULL) == PYBPE_OK) {
        find_all(made, text, n);
    }
    pybpe_specials_free(made);
    free(text);
}

/* The same with flags. */
void prove_rules(size_t n) {
    strings s;
    any_strings(&s);
    uint8_t *text = any_text(n);
    pybpe_specials *made = NULL;
    if (pybpe_specials_new_flags(&made, &s.list, s.ids, s.flags, NULL, NULL) == PYBPE_OK) {
        find_all(made, text, n);
    }
    pybpe_specials_free(made);
    free(text);
}

/* The window that the automaton of the reversed strings fills has what begins in it. */
void prove_window(size_t n) {
    strings s;
    string_set set = {.mem = mem_of(NULL)};
    special_match match;
    any_strings(&s);
    uint8_t *text = any_text(n);
    if (s.list.count > 0 && automaton_init(&set.backward, &s.list, s.ids, true, NULL, NULL) == PYBPE_OK) {
        string_scan scan = {.s = &set, .text = text, .n = n};
        while (scan.at < n) {
            size_t from = scan.at;
            window_fill(&scan);
            while (window_next(&scan, &match)) {
                CHECK(match.start >= from && match.start < match.end && match.end <= n);
                from = match.end;
            }
            CHECK(scan.longest == NULL || scan.at >= scan.window_end);
            scan.at = scan.longest == NULL ? n : scan.at;
        }
        string_scan_end(&scan);
        automaton_free(&set.backward, NULL);
    }
    free(text);
}

/* A special that touches a place is in the text, and ends after the place. */
void prove_reader(size_t n) {
    strings s;
    any_strings(&s);
    uint8_t *text = any_text(n);
    pybpe_specials *made = NULL;
    if (pybpe_specials_new(&made, &s.list, s.ids, NULL, NULL) == PYBPE_OK) {
        special_reader reader = special_reader_start(made, text, n, (size_t)any_between(0, n));
        size_t low = reader.at, until = low;
        for (int answer = SPECIAL_TOUCHES; answer == SPECIAL_TOUCHES;) {
            answer = special_reader_ask(&reader, low, low + (size_t)any_between(0, 1), &until);
            CHECK(answer != SPECIAL_TOUCHES || (until > low && until <= n));
            low = until;
        }
    }
    pybpe_specials_free(made);
    free(text);
}

PROOFS(DRAWN(find, 0, 6, 20) DRAWN(rules, 0, 6, 20) DRAWN(window, 0, 6, 20) DRAWN(reader, 0, 6, 20))
