/*
csrc/special/: two strings of up to 3 bytes, with any flags, in any text.
*/
#include "any_entropy.h"

#include <base/base.c>
#include <special/special.c>
#include <special/special_automaton.c>
#include <special/special_rules.c>
#include <special/special_strings.c>

#if defined(PROVE)
#include "unicode/unicode.h"
/* The proofs that CBMC takes do not read these tables. */
const uint8_t pybpe_unicode_index[(0x10FFFF >> UNICODE_BLOCK_BITS) + 1];
const uint8_t pybpe_unicode_blocks[1 << UNICODE_BLOCK_BITS];
#else
#include <unicode/unicode.c>
#endif

enum { STRINGS = 2, LONGEST = 3 };

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
    if (pybpe_specials_new(&made, &s.list, s.ids, NULL, NULL, NULL) == PYBPE_OK) {
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
    if (pybpe_specials_new(&made, &s.list, s.ids, s.flags, NULL, NULL) == PYBPE_OK) {
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
    if (pybpe_specials_new(&made, &s.list, s.ids, NULL, NULL, NULL) == PYBPE_OK) {
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

/* Any automaton: CBMC takes long for the hash table of a real one. What has been read of a string grows by at most one
   byte with each step, and a string that ends is not longer than that. */
#if defined(PROVE)
enum { STATES = 3 };
static special_state any_states[STATES];

static bool any_automaton(special_automaton *a, bool backward) {
    (void)backward;
    for (size_t i = 1; i < STATES; i++) {
        any_states[i].depth = (uint32_t)any_between(1, LONGEST);
        any_states[i].match_length = (uint32_t)any_between(0, any_states[i].depth);
    }
    *a = (special_automaton){.states = any_states, .states_count = STATES, .max_length = LONGEST};
    return true;
}

uint32_t any_step(const special_automaton *a, uint32_t state, uint8_t byte) {
    uint32_t next = (uint32_t)any_between(0, STATES - 1);
    (void)byte;
    CHECK(state < STATES);
    ASSUME(a->states[next].depth <= a->states[state].depth + 1);
    return next;
}
#else
static bool any_automaton(special_automaton *a, bool backward) {
    strings s;
    any_strings(&s);
    return s.list.count > 0 && automaton_init(a, &s.list, s.ids, backward, NULL, NULL) == PYBPE_OK;
}
#endif

static void automaton_drop(special_automaton *a) {
#if !defined(PROVE)
    automaton_free(a, NULL);
#else
    (void)a;
#endif
}

/* A string can begin only in the text. */
void prove_candidate(size_t n) {
    static string_set s;
    uint8_t *text = any_bytes(n);
    size_t from = (size_t)any_between(0, n);
    s.only_first = (int)any_between(0, 256) - 1;
    for (size_t i = 0; i < n; i++) {
        s.first[text[i]] = any_bool();
        s.second[text[i]] = any_bool();
    }
    size_t at = candidate_find(&s, text, n, from);
    CHECK(at >= from && at <= n);
    free(text);
}

/* What that shows. */
size_t any_candidate(const string_set *s, const uint8_t *text, size_t n, size_t at) {
    (void)s;
    check_readable(text, n);
    return (size_t)any_between(at, n);
}

/* The first string is in the text, and begins where the search does, or later. */
void prove_first(size_t n) {
    static string_set s;
    uint8_t *text = any_bytes(n);
    size_t from = (size_t)any_between(0, n), read;
    special_match match;
    s = (string_set){.only_first = -1};
    memset(s.first, true, sizeof s.first);
    memset(s.second, true, sizeof s.second);
    if (any_automaton(&s.forward, false)) {
        bool found = string_set_first(&s, text, n, from, &match, &read);
        CHECK(read <= n && read >= from);
        CHECK(!found || (match.start >= from && match.start < match.end && match.end <= read));
        automaton_drop(&s.forward);
    }
    free(text);
}

/* The same for strings that are found backward. */
void prove_backward(size_t n) {
    static string_set s;
    uint8_t *text = any_bytes(n);
    special_match match;
    s.mem = mem_of(NULL);
    string_scan scan = {.s = &s, .text = text, .n = n, .at = (size_t)any_between(0, n)};
    size_t from = scan.at;
    if (any_automaton(&s.backward, true)) {
        window_fill(&scan);
        for (size_t i = 0; i <= n && scan.longest != NULL && window_next(&scan, &match); i++) {
            CHECK(match.start >= from && match.start < match.end && match.end <= n);
            from = match.end;
        }
        string_scan_end(&scan);
        automaton_drop(&s.backward);
    }
    free(text);
}

/* A string that touches a place ends in the text. */
void prove_touching(size_t n) {
    static pybpe_specials s;
    uint8_t *text = any_bytes(n);
    if (any_automaton(&s.all.forward, false)) {
        size_t low = (size_t)any_between(0, n), high = (size_t)any_between(low, n), until;
        special_reader reader = special_reader_start(&s, text, n, low);
        if (special_reader_ask(&reader, low, high, &until) == SPECIAL_TOUCHES) {
            CHECK(until > low && until <= n);
        }
        automaton_drop(&s.all.forward);
    }
    free(text);
}

/* The first two bytes of strings that are not empty are noted. */
void prove_starts(size_t n) {
    static string_set set;
    strings s;
    any_strings(&s);
    s.list.count = n;
    set = (string_set){.only_first = -1};
    for (size_t i = 0; i < n; i++) {
        ASSUME(s.offsets[i + 1] > s.offsets[i]);
    }
    uint8_t *bytes = any_bytes((size_t)s.offsets[n]);
    s.list.bytes = bytes;
    starts_note(&set, &s.list);
    CHECK(set.only_first >= -1 && set.only_first < 256);
    free(bytes);
}

/* What special_automaton.c shows. */
int any_init(special_automaton *a, const pybpe_strings *list, const uint32_t *ids, bool backward,
             const pybpe_allocator *mem, pybpe_error *err) {
    (void)backward;
    (void)err;
    check_readable(ids, list->count * sizeof *ids);
    *a = (special_automaton){.states = any_bool() ? mem_alloc(mem, sizeof *a->states) : NULL};
    a->look_ahead = (size_t)any_u64();
    return a->states != NULL ? PYBPE_OK : PYBPE_ERR_MEMORY;
}

void any_note(string_set *set, const pybpe_strings *list) {
    CHECK(set->forward.states != NULL);
    check_readable(list->bytes, (size_t)strings_total(list));
}

/* A set of strings is made, or everything that was allocated for it is freed. */
void prove_set(size_t n) {
    static string_set set;
    strings s;
    any_strings(&s);
    s.list.count = n;
    if (string_set_init(&set, &s.list, s.ids, NULL, NULL) == PYBPE_OK) {
        CHECK(set.forward.states != NULL);
        string_set_free(&set);
    }
    CHECK(set.forward.states == NULL && set.backward.states == NULL);
}

/* What the proofs above show of the two searches. */
bool any_first(const string_set *s, const uint8_t *text, size_t n, size_t from, special_match *match, size_t *read) {
    (void)s;
    CHECK(from < n);
    check_readable(text, n);
    *read = (size_t)any_between(from, n);
    match->start = (size_t)any_between(from, n - 1);
    match->end = (size_t)any_between(match->start + 1, n);
    return *read >= match->end && any_bool();
}

void any_window(string_scan *scan) {
    CHECK(scan->at <= scan->n);
    scan->window_end = (size_t)any_between(scan->at, scan->n);
}

bool any_next(string_scan *scan, special_match *match) {
    if (scan->at >= scan->window_end || any_bool()) {
        scan->at = scan->window_end > scan->at ? scan->window_end : scan->at;
        return false;
    }
    match->start = (size_t)any_between(scan->at, scan->window_end - 1);
    match->end = scan->at = (size_t)any_between(match->start + 1, scan->n);
    return true;
}

/* The next string is in the rest of the text. */
void prove_next(size_t n) {
    static string_set set;
    uint8_t *text = any_bytes(n);
    special_match match;
    size_t from = (size_t)any_between(0, n);
#if defined(PROVE)
    set.backward.states = any_bool() ? any_states : NULL;
#else
    strings s;
    any_strings(&s);
    ASSUME(string_set_init(&set, &s.list, s.ids, NULL, NULL) == PYBPE_OK);
#endif
    string_scan scan;
    string_scan_start(&scan, &set, text, n, from);
#if defined(PROVE)
    scan.window_end = (size_t)any_between(0, n);
#endif
    if (string_scan_next(&scan, &match)) {
        CHECK(match.start >= from && match.start < match.end && match.end <= n && scan.at == match.end);
    }
#if !defined(PROVE)
    string_scan_end(&scan);
    string_set_free(&set);
#endif
    free(text);
}

PROOFS(DRAWN(find, 0, 6, 20) DRAWN(rules, 0, 6, 20) DRAWN(window, 0, 6, 20) DRAWN(reader, 0, 6, 20)
           PROOF(candidate, 0, 4, 3) PROOF(first, 0, 5, 3, "", "state_next:any_step candidate_find:any_candidate")
               PROOF(backward, 0, 3, 5, "", "state_next:any_step") PROOF(touching, 0, 4, 3, "", "state_next:any_step")
                   DRAWN(candidate, 5, 12, 3) DRAWN(first, 6, 12, 3) DRAWN(backward, 4, 12, 3) DRAWN(touching, 5, 12, 3)
                       PROOF(starts, 0, 2, 7) PROOF(set, 0, 2, 7, "", "automaton_init:any_init starts_note:any_note")
                           PROOF(next, 0, 8, 5, "",
                                 "window_next:any_next string_set_first:any_first window_fill:any_window"))
