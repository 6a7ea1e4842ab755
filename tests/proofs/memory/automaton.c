/*
csrc/dfa.c: a compiled regular expression, with few states, few classes of characters and any steps.
*/
#include "prove.h"

#include <base.c>
#include <dfa.c>
#include <unicode.c>

enum { MOST_STATES = 4, MOST_CLASSES = 2, CELLS = MOST_STATES * (MOST_CLASSES + 2), DRAWN_CLASSES = 256 };

typedef struct small_dfa {
    dfa a;
    uint16_t next[CELLS];
    uint32_t steps[CELLS], unsures[MOST_STATES];
    uint8_t divides[MOST_CLASSES * MOST_CLASSES];
} small_dfa;

static uint8_t classes[CODE_POINTS]; /* of the other code points: 0 */

/* Any tables that dfa_new accepts, and what it derives from them. */
static void any_dfa(small_dfa *d, uint32_t states, uint32_t class_count) {
    const uint32_t columns = class_count + 2;
    for (uint32_t i = 0; i < states * columns; i++) {
        uint32_t target = (uint32_t)any_between(0, states - 1);
        d->next[i] = (uint16_t)((target == START ? DEAD : target) | (any_bool() ? ACCEPT : 0));
        d->next[i] = (uint16_t)(i / columns == START ? d->next[i] & ~ACCEPT : d->next[i]);
        d->next[i] = (uint16_t)(i / columns == DEAD          ? 0
                                : i % columns == columns - 1 ? d->next[i] & ACCEPT
                                                             : d->next[i]);
    }
    const pybpe_automaton t = {.classes = class_count, .states = states, .next = d->next};
    ASSUME(tables_check_states(&t, NULL) == PYBPE_OK);
    d->a = (dfa){.steps = d->steps, .unsures = d->unsures, .next = d->next, .classes = classes, .divides = d->divides};
    d->a.states = states;
    d->a.class_count = class_count;
    d->a.columns = columns;
    d->a.mem = mem_of(NULL);
    d->a.unsure_count = fill_unsures(d->unsures, &d->a);
    memset(d->steps, 0, columns * sizeof *d->steps);
    fill_steps(d->steps, &d->a);
}

/* Any ranges of code points: those that are accepted fill the table. */
void prove_ranges(size_t n) {
    uint32_t first[4];
    uint8_t class_of[4];
    for (size_t i = 0; i < n; i++) {
        first[i] = i == 0 ? 0 : (uint32_t)any_between(0, any_bool() ? 3 : UINT32_MAX);
        class_of[i] = (uint8_t)any_between(0, MOST_CLASSES);
    }
    const pybpe_automaton t = {first, class_of, n, (uint32_t)any_between(0, MOST_CLASSES), 2, NULL, 0};
    if (tables_check_classes(&t, NULL) == PYBPE_OK) {
        for (size_t i = 0; i < n; i++) {
            CHECK(class_of[i] < t.classes && first[i] < CODE_POINTS && (i == 0 || first[i] > first[i - 1]));
        }
        CHECK(n > 0 && first[0] == 0);
    }
}

/* The steps from each state are inside the tables, as are the places where a text can be cut. */
void prove_steps(size_t n) {
    small_dfa d;
    uint32_t states = (uint32_t)n;
    any_dfa(&d, states, MOST_CLASSES);
    for (uint32_t i = 0; i < states * d.a.columns; i++) {
        CHECK((d.steps[i] & STEP_SLOW) != 0 || d.steps[i] >> STEP_SHIFT <= (states - 1) * d.a.columns);
        CHECK((d.steps[i] >> STEP_SHIFT) % d.a.columns == 0);
    }
    for (uint32_t state = 0; state < states; state++) {
        CHECK(d.unsures[state] == SURE || d.unsures[state] < d.a.unsure_count);
    }
    classes['\n'] = (uint8_t)any_between(0, MOST_CLASSES - 1);
    fill_divides(d.divides, &d.a);
}

/* Words end in ascending order, the last one where the text ends. */
void prove_cut(size_t n) {
    small_dfa d = {0};
    size_t ends[6];
    any_dfa(&d, (uint32_t)any_between(2, MOST_STATES), MOST_CLASSES);
    for (size_t byte = 0; byte < DRAWN_CLASSES; byte++) {
        classes[byte] = (uint8_t)any_between(0, MOST_CLASSES - 1);
    }
    if (any_between(0, 15) == 0) { /* slow */
        fill_barren(&d.a);
    }
    uint8_t *text = any_bytes(n);
    dfa_place place = dfa_place_at(&d.a, 0, n);
    size_t last = 0;
    for (size_t turn = 0; turn <= n && last < n; turn++) {
        size_t count = dfa_cut(&place, NULL, text, n, ends, sizeof ends / sizeof *ends);
        CHECK(count > 0 && count <= sizeof ends / sizeof *ends);
        for (size_t i = 0; i < count; i++) {
            CHECK(ends[i] > last && ends[i] <= n);
            last = ends[i];
        }
    }
    CHECK(last == n);
    dfa_place_end(&place);
    free(text);
}

PROOFS(DRAWN(ranges, 0, 4, 2) DRAWN(steps, 2, 4, 14) DRAWN(cut, 0, 4, 20))
