/*
csrc/pretok/dfa.c: a compiled regular expression, with few states, few classes of characters and any steps.
*/
#include "prove.h"
#include "unicode/unicode.h"

/* Only decoding matters here, so these tables are zeros. */
const uint8_t pybpe_unicode_index[(0x10FFFF >> UNICODE_BLOCK_BITS) + 1];
const uint8_t pybpe_unicode_blocks[1 << UNICODE_BLOCK_BITS];

#include <base/base.c>
#include <pretok/dfa.c>

enum { MOST_STATES = 4, MOST_CLASSES = 2, CELLS = MOST_STATES * (MOST_CLASSES + 2), DRAWN_CLASSES = 256 };

/* Each is an object of its own: CBMC takes long for an array that is part of a large structure. */
static dfa small;
static uint16_t next[CELLS];
static uint32_t steps[CELLS], undecided[MOST_STATES];
static uint8_t divides[MOST_CLASSES * MOST_CLASSES];
#if defined(PROVE)
static uint8_t classes[DRAWN_CLASSES];
#else
static uint8_t classes[CODE_POINTS]; /* of the other code points: 0 */
#endif

/* Any tables that dfa_new accepts, and what it derives from them. */
static void any_dfa(uint32_t states, uint32_t class_count) {
    const uint32_t columns = class_count + 2;
    for (uint32_t i = 0; i < states * columns; i++) {
        uint32_t target = (uint32_t)any_between(0, states - 1);
        uint32_t entry = (target == START ? DEAD : target) | (any_bool() ? ACCEPT : 0);
        entry = i / columns == START ? entry & ~(uint32_t)ACCEPT : entry;
        next[i] = (uint16_t)(i / columns == DEAD ? 0 : i % columns == columns - 1 ? entry & ACCEPT : entry);
    }
    const pybpe_automaton t = {.classes = class_count, .states = states, .next = next};
    ASSUME(tables_check_states(&t, NULL) == PYBPE_OK);
    small = (dfa){.steps = steps, .undecided = undecided, .next = next, .classes = classes, .divides = divides};
    small.states = states;
    small.class_count = class_count;
    small.columns = columns;
    small.mem = mem_of(NULL);
    small.undecided_count = fill_undecided(undecided, &small);
    memset(steps, 0, columns * sizeof *steps);
    fill_steps(steps, &small);
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
    uint32_t states = (uint32_t)n;
    any_dfa(states, MOST_CLASSES);
    for (uint32_t i = 0; i < states * small.columns; i++) {
        CHECK((steps[i] & STEP_SLOW) != 0 || steps[i] >> STEP_SHIFT <= (states - 1) * small.columns);
        CHECK((steps[i] >> STEP_SHIFT) % small.columns == 0);
    }
    for (uint32_t state = 0; state < states; state++) {
        CHECK(undecided[state] == SURE || undecided[state] < small.undecided_count);
    }
    classes['\n'] = (uint8_t)any_between(0, MOST_CLASSES - 1);
    fill_divides(divides, &small);
}

/* Words end in ascending order, the last one where the text ends. */
void prove_cut(size_t n) {
    size_t ends[6];
    any_dfa((uint32_t)any_between(2, MOST_STATES), MOST_CLASSES);
    for (size_t byte = 0; byte < DRAWN_CLASSES; byte++) {
        classes[byte] = (uint8_t)any_between(0, MOST_CLASSES - 1);
    }
    uint8_t *text = any_bytes(n);
    dfa_place place = dfa_place_at(&small, 0, n);
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

PROOFS(PROOF(ranges, 0, 4, 2) PROOF(steps, 2, 3, 14) DRAWN(steps, 4, 4, 14) DRAWN(cut, 0, 4, 20))
