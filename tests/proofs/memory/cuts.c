/*
csrc/pretok/dfa.c: cutting a text into words with a compiled regular expression, of few states and classes and any steps.
automaton.c shows that the tables that are derived from an expression are as this file assumes, and it draws whole cuts.
*/
#include "prove.h"
#include "unicode/unicode.h"

/* Only decoding matters here, so these tables are zeros. */
const uint8_t pybpe_unicode_index[(0x10FFFF >> UNICODE_BLOCK_BITS) + 1];
const uint8_t pybpe_unicode_blocks[1 << UNICODE_BLOCK_BITS];

#include <base/base.c>
#include <pretok/dfa.c>

enum { STATES = 4, CLASSES = 2, COLUMNS = CLASSES + 2, CELLS = STATES * COLUMNS, LONGEST = 8, UNSURE = 3 };

/* Each is an object of its own: CBMC takes long for an array that is part of a large structure. */
static dfa small;
static uint16_t next[CELLS];
static uint32_t steps[CELLS], undecided[STATES];
static uint8_t classes[CODE_POINTS];

/* Any steps that dfa_new accepts, and any states that are sure. */
static void any_dfa(void) {
    for (uint32_t i = 0; i < CELLS; i++) {
        uint32_t target = i % COLUMNS == COLUMNS - 1 ? DEAD : (uint32_t)any_between(0, STATES - 1);
        uint32_t accept = i / COLUMNS > START && any_bool() ? ACCEPT : 0;
        next[i] = (uint16_t)(i / COLUMNS == DEAD ? 0 : (target == START ? DEAD : target) | accept);
        steps[i] = target * COLUMNS << STEP_SHIFT | (uint32_t)any_between(0, STEP_END | STEP_SLOW);
    }
    for (uint32_t state = 0; state < STATES; state++) {
        undecided[state] = state > START && any_bool() ? SURE : (uint32_t)any_between(0, UNSURE - 1);
    }
    small = (dfa){.steps = steps, .undecided = undecided, .next = next, .classes = classes, .states = STATES};
    small.class_count = CLASSES;
    small.columns = COLUMNS;
    small.undecided_count = UNSURE;
    small.mem = mem_of(NULL);
}

/* A place in a text of n bytes, before its end, in any state but the dead one. */
static dfa_place any_place_in(size_t n) {
    dfa_place place = dfa_place_at(&small, (size_t)any_between(0, n - 1), n);
    place.row = COLUMNS * (uint32_t)any_between(START, STATES - 1);
    return place;
}

static bool row_is_sound(const dfa_place *place) { return place->row % COLUMNS == 0 && place->row / COLUMNS < STATES; }

/* The class of any character is looked up inside the table, and its column is in the row. */
void prove_class(size_t n) {
    uint8_t length, *text = any_bytes(n);
    size_t at = (size_t)any_between(0, n);
    any_dfa();
    small.bytes = any_bool();
    uint32_t column = column_at(&small, text, n, at, &length);
    CHECK(column < COLUMNS && length <= n - at && (length > 0 || at == n) && (column < COLUMNS - 1 || at == n));
    free(text);
}

/* What that shows; always the same at the same place. */
static uint32_t columns_at[LONGEST + 1];
static uint8_t lengths_at[LONGEST + 1];

static void any_columns(size_t n) {
    for (size_t at = 0; at <= n; at++) {
        columns_at[at] = at == n ? COLUMNS - 1 : (uint32_t)any_between(0, COLUMNS - 2);
        lengths_at[at] = at == n ? 0 : (uint8_t)any_between(1, n - at);
    }
}

uint32_t any_column(const dfa *a, const uint8_t *text, size_t n, size_t at, uint8_t *length) {
    (void)a;
    CHECK(at <= n);
    check_readable(text, n);
    *length = lengths_at[at];
    return columns_at[at];
}

uint32_t any_class(const dfa *a, const uint8_t *p, size_t left, uint8_t *length, bool *valid) {
    CHECK(left > 0);
    check_readable(p, left);
    *length = (uint8_t)any_between(1, left < 4 ? left : 4);
    *valid = any_bool();
    return (uint32_t)any_between(0, a->class_count - 1);
}

/* A run ends with the text at the latest. It has found the end of a match in it, or a later place in a sure state. */
void prove_run(size_t n) {
    uint8_t *text = any_bytes(n);
    any_dfa();
    any_columns(n);
    dfa_place place = any_place_in(n);
    size_t begin = place.at, end;
    bool begins = place.row == COLUMNS * START;
    if (run_is_over(&place, text, n, &end)) {
        CHECK(place.at == begin && (end == NO_END || (end >= begin + begins && end <= n)));
    } else {
        CHECK(place.at > begin && place.at <= n && row_is_sound(&place));
    }
    free(text);
}

/* What that shows. */
bool any_run(dfa_place *place, const uint8_t *text, size_t n, size_t *end) {
    CHECK(place->at <= n && row_is_sound(place));
    check_readable(text, n);
    bool begins = place->row == COLUMNS * START;
    if (place->at + begins <= n && any_bool()) {
        *end = any_bool() ? NO_END : (size_t)any_between(place->at + begins, n);
        return true;
    }
    *end = NO_END;
    if (place->at == n) {
        return true;
    }
    place->at = (size_t)any_between(place->at + 1, n);
    place->row = COLUMNS * (uint32_t)any_between(0, STATES - 1);
    return false;
}

/* Places that are marked, at multiples of 64 from the first one on, and room for more. */
static dfa_memo any_memo(size_t from, size_t places) {
    dfa_memo m = {.from = from, .until = from + places};
    m.bits = (uint64_t *)any_bytes(memo_words(&small, places) * sizeof *m.bits);
    return m;
}

/* There is room for the places that are asked for, and all that are after them stay. */
void prove_reserve(size_t n) {
    any_dfa();
    dfa_memo m = any_memo((size_t)any_between(0, 100), 64 * n + 7);
    size_t first = m.from, from = (size_t)any_between(m.from, m.from + 300);
    size_t until = (size_t)any_between(from, from + 300);
    if (any_bool()) {
        free(m.bits);
        m = (dfa_memo){.bits = NULL};
    }
    if (memo_reserve(&small, &m, from, until)) {
        CHECK(m.bits != NULL && m.from <= from && m.until >= until && (m.from == from || m.from >= first));
        check_readable(m.bits, memo_words(&small, m.until - m.from) * sizeof *m.bits);
    }
    free(m.bits);
}

bool any_reserve(const dfa *a, dfa_memo *m, size_t from, size_t until) {
    CHECK(from >= m->from && until >= from);
    if (until > m->until) {
        free(m->bits);
        *m = any_memo(from, LONGEST + 1);
    }
    (void)a;
    return any_bool();
}

/* The states of a run, of which none is sure, are marked inside the memory for them, and found there. */
void prove_mark(size_t n) {
    uint8_t *text = any_bytes(n);
    any_dfa();
    any_columns(n);
    dfa_memo m = any_memo(0, 3);
    size_t from = (size_t)any_between(0, n), until = from;
    uint32_t first = (uint32_t)any_between(START, STATES - 1), state = first;
    for (size_t turns = (size_t)any_between(0, n); turns > 0 && until < n; turns--) {
        uint8_t length;
        state = next[state * COLUMNS + column_at(&small, text, n, until, &length)] & ~(uint32_t)ACCEPT;
        until += length;
        ASSUME(undecided[state] != SURE);
    }
    memo_mark(&small, &m, text, n, from, until, first);
    ASSUME(undecided[state] != SURE);
    (void)(until >= m.from && memo_has(&small, &m, until, state));
    free(m.bits);
    free(text);
}

/* One or two ends, or a later place in a sure state. */
void prove_resolve(size_t n) {
    uint8_t *text = any_bytes(n);
    any_dfa();
    any_columns(n);
    dfa_place place = any_place_in(n);
    size_t begin = place.at, *ends = (size_t *)any_bytes(2 * sizeof *ends);
    size_t count = word_resolve(&place, text, n, ends);
    CHECK(count <= 2 && (count > 0 || place.at > begin) && place.at >= begin && place.at <= n && row_is_sound(&place));
    for (size_t i = 0; i < count; i++) {
        CHECK(ends[i] >= begin && ends[i] <= n);
    }
    free(ends);
    free(text);
}

/* What that shows. */
size_t any_resolve(dfa_place *place, const uint8_t *text, size_t n, size_t *ends) {
    CHECK(place->at < n && row_is_sound(place));
    check_readable(text, n);
    any_fill(ends, 2 * sizeof *ends);
    size_t count = (size_t)any_between(0, 2);
    place->at = (size_t)any_between(place->at + (count == 0), n);
    place->row = COLUMNS * (uint32_t)any_between(START, STATES - 1);
    return count;
}

/* The bytes around any place are in the text, and their windows in the table of boundaries. */
void prove_hard(size_t n) {
    static boundary_table t;
    uint8_t *text = any_bytes(n);
    t.windows = (uint64_t *)any_bytes(2 * sizeof *t.windows);
    t.windows_shift = 64 - 1 - 12;
    (void)boundary_is_hard(&t, text, n, (size_t)any_between(1, n - 1));
    free(t.windows);
    free(text);
}

bool any_hard(const boundary_table *t, const uint8_t *text, size_t n, size_t at) {
    (void)t;
    CHECK(at > 0 && at < n);
    check_readable(text, n);
    return any_bool();
}

/* Any classes of the ASCII characters of a text. The others are looked up by dfa_class. */
static void any_classes(const uint8_t *text, size_t n) {
#if defined(PROVE)
    small.classes = any_bytes(ASCII);
    for (size_t i = 0; i < n; i++) {
        ASSUME(text[i] >= ASCII || small.classes[text[i]] < CLASSES);
    }
#else
    for (size_t i = 0; i < n; i++) {
        classes[text[i]] = (uint8_t)any_between(0, CLASSES - 1);
    }
#endif
}

static void free_classes(void) {
#if defined(PROVE)
    free((void *)small.classes);
#endif
}

/* One end at most for each byte before `stop`. */
void prove_take(size_t n) {
    static uint64_t windows[2];
    static const boundary_table table = {.windows = windows, .windows_shift = 64 - 1 - 12};
    uint8_t *text = any_bytes(n);
    any_dfa();
    any_classes(text, n);
    dfa_place place = any_place_in(n);
    place.row = place.at == 0 ? COLUMNS * START : place.row; /* the row of another state comes after a character */
    size_t begin = place.at, stop = (size_t)any_between(begin + 1, n);
    size_t *ends = (size_t *)any_bytes((stop - begin) * sizeof *ends), *out = ends;
    bool sure = steps_take(&place, any_bool() ? &table : NULL, text, n, stop, &out);
    CHECK(place.at >= begin && place.at <= n && (place.at >= stop || !sure) && (sure || place.at < stop));
    CHECK(row_is_sound(&place) && (size_t)(out - ends) <= stop - begin);
    free(ends);
    free_classes();
    free(text);
}

/* What that shows. */
bool any_take(dfa_place *place, const boundary_table *t, const uint8_t *text, size_t n, size_t stop, size_t **ends) {
    bool sure = any_bool();
    size_t most = stop - place->at;
    (void)t;
    CHECK(place->at < stop && stop <= n && row_is_sound(place));
    check_readable(text, n);
    any_fill(*ends, most * sizeof **ends);
    *ends += any_between(0, most);
    place->at = sure ? (size_t)any_between(stop, n) : (size_t)any_between(place->at, stop - 1);
    place->row = COLUMNS * (uint32_t)any_between(START, STATES - 1);
    return sure;
}

/* The ends of words fit in the memory for them, and a call with room for more reads on. */
void prove_cut(size_t n) {
    enum { CAP = 6 };
    uint8_t *text = any_bytes(n);
    any_dfa();
    dfa_place place = any_place_in(n);
    size_t begin = place.at, *ends = (size_t *)any_bytes(CAP * sizeof *ends);
    size_t count = dfa_cut(&place, NULL, text, n, ends, CAP);
    CHECK(count <= CAP && (count > 0 || place.at > begin) && place.at <= n);
    free(ends);
    free(text);
}

PROOFS(PROOF(class, 0, 5, 3, "any_dfa.0:17,any_dfa.1:5")
           PROOF(run, 1, 5, 3, "any_dfa.0:17,any_dfa.1:5", "column_at:any_column")
               PROOF(reserve, 0, 2, 3, "any_dfa.0:17,any_dfa.1:5", "memcpy:any_copy")
                   PROOF(mark, 0, 4, 3, "any_dfa.0:17,any_dfa.1:5", "column_at:any_column memo_reserve:any_reserve")
                       PROOF(resolve, 1, 5, 3, "any_dfa.0:17,any_dfa.1:5", "run_is_over:any_run column_at:any_column")
                           PROOF(hard, 2, 9, 9) PROOF(take, 1, 3, 3, "any_dfa.0:17,any_dfa.1:5",
                                                      "dfa_class:any_class boundary_is_hard:any_hard")
                               PROOF(cut, 1, 3, 8, "any_dfa.0:17,any_dfa.1:5",
                                     "steps_take:any_take word_resolve:any_resolve"))
