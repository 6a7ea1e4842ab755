/*
csrc/special/special_rules.c and csrc/special/special.c: special tokens with flags, with any strings and any text. specials.c is about
the search for strings.
*/
#include "any_entropy.h"

#include <base/base.c>
#include <special/special.c>
#include <special/special_automaton.c>
#include <special/special_rules.c>
#include <special/special_strings.c>

#if defined(PROVE)
/* class.c shows that reading these tables is safe. Here they are zeros, and any_space replaces what reads them. */
const uint8_t pybpe_unicode_index[(0x10FFFF >> UNICODE_BLOCK_BITS) + 1];
const uint8_t pybpe_unicode_blocks[1 << UNICODE_BLOCK_BITS];
#else
#include <unicode/unicode.c>
#endif

enum { STRINGS = 2, LONGEST = 4 };

/* Any code point is looked up inside the table. */
void prove_word(size_t n) {
    (void)is_word((uint32_t)any_u64());
    (void)n;
}

bool any_word(uint32_t code_point) {
    CHECK(code_point != UNICODE_INVALID);
    return any_bool();
}

/* The characters next to any match are read inside the text. */
void prove_single(size_t n) {
    uint8_t *text = any_bytes(n);
    special_match match = {.start = (size_t)any_between(0, n)};
    match.end = (size_t)any_between(match.start, n);
    (void)is_single_word(text, n, &match);
    free(text);
}

bool any_single(const uint8_t *text, size_t n, const special_match *match) {
    CHECK(match->start <= match->end && match->end <= n);
    check_readable(text, n);
    return any_bool();
}

/* Any set of white space: two characters. */
static uint32_t spaces[2];

bool any_space(uint32_t code_point) {
    return code_point != UNICODE_INVALID && (code_point == spaces[0] || code_point == spaces[1]);
}

static void any_spaces(void) {
    for (size_t i = 0; i < 2; i++) {
        spaces[i] = (uint32_t)any_between(0, 0x10FFFF);
    }
}

/* White space around a place is in the text, and after the match before. */
void prove_space(size_t n) {
    uint8_t *text = any_bytes(n);
    size_t at = (size_t)any_between(0, n), low = (size_t)any_between(0, n);
    any_spaces();
    size_t start = space_start(text, low, at), end = space_end(text, n, at);
    CHECK(start <= at && (start >= low || start == at));
    CHECK(end >= at && end <= n);
    free(text);
}

/* What that shows. */
size_t any_start(const uint8_t *text, size_t low, size_t at) {
    check_readable(text, at);
    return low < at ? (size_t)any_between(low, at) : at;
}

size_t any_end(const uint8_t *text, size_t n, size_t at) {
    CHECK(at <= n);
    check_readable(text, n);
    return (size_t)any_between(at, n);
}

/* Any strings of n bytes together, none of them empty. */
typedef struct strings {
    uint64_t offsets[STRINGS + 1];
    uint32_t ids[STRINGS];
    uint8_t flags[STRINGS];
    pybpe_strings list;
} strings;

static uint8_t *any_strings(strings *s, size_t n) {
    uint8_t *bytes = any_bytes(n);
    s->offsets[0] = 0;
    s->offsets[1] = n > 1 ? any_between(1, n - 1) : n;
    s->offsets[2] = n;
    for (size_t i = 0; i < STRINGS; i++) {
        s->ids[i] = (uint32_t)any_u64();
        s->flags[i] = (uint8_t)any_between(0, 15);
    }
    s->list = (pybpe_strings){bytes, s->offsets, n > 1 ? 2 : n};
    return bytes;
}

/* No string of up to 4 bytes that is accepted next to an RSTRIP begins inside the white space after a match, or with it. */
void prove_apart(size_t n) {
    strings s;
    uint8_t *text = any_bytes(n), *string = any_strings(&s, LONGEST + 1);
    size_t at = (size_t)any_between(0, n), end;
    any_spaces();
    special_pass pass = {.ids = s.ids, .flags = s.flags, .count = s.list.count};
    s.flags[0] = PYBPE_SPECIAL_RSTRIP;
    if (pass_check(&pass, &s.list, NULL) == PYBPE_OK) {
        end = space_end(text, n, at);
        for (size_t i = at; i < end; i++) {
            CHECK(n - i < s.offsets[1] || memcmp(text + i, string, s.offsets[1]) != 0);
        }
    }
    free(text);
    free(string);
}

/* The strings of a pass fit in the memory for them. */
void prove_fill(size_t n) {
    const pybpe_allocator mem = mem_of(NULL);
    strings s;
    uint8_t *bytes = any_strings(&s, n);
    special_pass pass = {.count = 0};
    pass_strings own;
    if (pass_allocate(&pass, &own, &s.list, &mem)) {
        pass_fill(&pass, &own, &s.list, s.ids, s.flags, any_bool() ? PYBPE_SPECIAL_LATE : 0);
        CHECK(pass.count <= s.list.count && own.offsets[pass.count] <= n);
    }
    free(own.bytes);
    free(own.offsets);
    free(own.indices);
    free(pass.ids);
    free(pass.flags);
    free(bytes);
}

int any_set(string_set *set, const pybpe_strings *list, const uint32_t *ids, const pybpe_allocator *mem,
            pybpe_error *err) {
    (void)err;
    check_readable(list->bytes, (size_t)strings_total(list));
    check_readable(ids, list->count * sizeof *ids);
    *set = (string_set){.mem = mem_of(mem)};
    set->forward.states = any_bool() ? calloc(1, sizeof *set->forward.states) : NULL;
    return set->forward.states != NULL ? PYBPE_OK : PYBPE_ERR_MEMORY;
}

int any_check(const special_pass *pass, const pybpe_strings *list, pybpe_error *err) {
    (void)err;
    CHECK(pass->count == list->count);
    return any_bool() ? PYBPE_OK : PYBPE_ERR_VALUE;
}

/* Specials are made, or everything that was allocated for them is freed. */
void prove_make(size_t n) {
    strings s;
    pybpe_specials *made;
    uint8_t *bytes = any_strings(&s, n);
    int code = pybpe_specials_new(&made, &s.list, s.ids, any_bool() ? s.flags : NULL, NULL, NULL);
    CHECK((code == PYBPE_OK) == (made != NULL));
    pybpe_specials_free(made);
    free(bytes);
}

/* Any string in the rest of the text. prove_apart shows that it begins after the last match. */
static const pass_scan *scanned;

bool any_string(string_scan *scan, special_match *match) {
    if (scan->at >= scan->n || any_bool()) {
        return false;
    }
    match->start = (size_t)any_between(scan->at, scan->n - 1);
    match->end = (size_t)any_between(match->start + 1, scan->n);
    match->id = (uint32_t)any_between(0, STRINGS - 1);
    ASSUME(match->start >= scanned->done);
    scan->at = match->end;
    return true;
}

/* A pass: for CBMC one without strings, whose matches are any_string. */
static bool pass_make(special_pass *pass, const strings *s) {
    *pass = (special_pass){.count = 0};
#if defined(PROVE)
    *pass = (special_pass){.ids = (uint32_t *)s->ids, .flags = (uint8_t *)s->flags, .count = s->list.count};
    return true;
#else
    return pass_init(pass, &s->list, s->ids, s->flags, 0, NULL, NULL) == PYBPE_OK;
#endif
}

static void pass_drop(special_pass *pass) {
#if !defined(PROVE)
    string_set_free(&pass->strings);
    free(pass->ids);
    free(pass->flags);
#else
    (void)pass;
#endif
}

/* The next match of a pass is in the text, after the last one. */
void prove_pass(size_t n) {
    strings s;
    special_pass pass;
    pass_scan scan;
    special_match match;
    uint8_t *text = any_bytes(n), *bytes = any_strings(&s, STRINGS);
    if (pass_make(&pass, &s) && pass.count > 0) {
        pass_scan_start(&scan, &pass, text, n);
        size_t done = scan.done = (size_t)any_between(0, n);
        scan.strings.at = (size_t)any_between(done, n);
        scanned = &scan;
        if (pass_scan_next(&scan, &match)) {
            CHECK(match.start >= done && match.start < match.end && match.end <= n && scan.done == match.end);
            CHECK(match.id == s.ids[0] || match.id == s.ids[1]);
        }
        string_scan_end(&scan.strings);
    }
    pass_drop(&pass);
    free(text);
    free(bytes);
}

/* What that shows. */
bool any_match(pass_scan *scan, special_match *match) {
    CHECK(scan->done <= scan->n);
    check_readable(scan->text, scan->n);
    if (scan->done == scan->n || any_bool()) {
        return false;
    }
    match->start = (size_t)any_between(scan->done, scan->n - 1);
    match->end = (size_t)any_between(match->start + 1, scan->n);
    scan->done = match->end;
    return true;
}

static pybpe_specials *any_specials(const strings *s) {
    pybpe_specials *made = NULL;
#if defined(PROVE)
    static pybpe_specials both = {.flags = PYBPE_SPECIAL_LATE};
    (void)s;
    made = &both;
#else
    (void)pybpe_specials_new(&made, &s->list, s->ids, s->flags, NULL, NULL);
#endif
    return made;
}

/* The matches of both passes too. */
void prove_passes(size_t n) {
    strings s;
    uint8_t *text = any_bytes(n), *bytes = any_strings(&s, STRINGS);
    pybpe_specials *both = any_specials(&s);
    size_t spans[2 * 8], from = (size_t)any_between(0, n), last = from;
    uint32_t ids[8];
    size_t count = both != NULL ? pybpe_specials_find_all(both, text, n, from, spans, ids, 8) : 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(spans[2 * i] >= last && spans[2 * i] < spans[2 * i + 1] && spans[2 * i + 1] <= n);
        last = spans[2 * i + 1];
    }
#if !defined(PROVE)
    pybpe_specials_free(both);
#endif
    free(text);
    free(bytes);
}

PROOFS(PROOF(word, 0, 0, 12) PROOF(single, 0, 5, 5, "", "is_word:any_word")
           PROOF(space, 0, 5, 3, "", "is_space:any_space") PROOF(apart, 0, 4, 5, "", "is_space:any_space")
               PROOF(fill, 1, 4, 5) PROOF(make, 1, 3, 5, "", "string_set_init:any_set pass_check:any_check")
                   PROOF(pass, 0, 4, 3, "",
                         "string_scan_next:any_string is_single_word:any_single "
                         "space_start:any_start space_end:any_end")
                       PROOF(passes, 0, 2, 5, "", "pass_scan_next:any_match"))
