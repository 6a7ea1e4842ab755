/*
Splitting with a compiled regular expression.

pybpe/pattern/automata has compiled the expression to a deterministic automaton. It reads classes of characters, and
at any character it may report that a match ends before it. When the automaton reaches the dead state, the match ends at
the last such place. The automaton looks ahead one character at a time, so (?!\S) and $ are part of its states.

    text     t  h  e     c  a  t        columns of a row: the classes of characters, then
    state   1  3  3  3  4  3  3  3      "the text ends with a newline, and here it is", then "the text ends here"
    ends               |          |

There are two tables. `next` is the caller's. `steps` is derived from it, for speed. A state is *sure* if a match will
end at this place or later, whatever follows, otherwise it is undecided. In a sure state, an end that a later end is certain to replace is
forgotten. Where a match ends and nothing can extend it, the step leads to the state after the next word's first
character. So a character takes one lookup, and no branch depends on where words end. Steps to a state that is not
sure are left to word_resolve, which remembers the last end and may have to return to it.

Text between the matches, such as most text with \d+, is words too.

Returning could take quadratic time: a*b|a reads all of aaaa... for every a. So when a run has gone far past the last
end without a new one, its states are marked, with their places (dfa_memo), and no later run follows them again. Far
runs then take at most one step per state and place, and near ones fewer than FAR steps, so the time is linear.
Source: T. Reps, "Maximal-munch" tokenization in linear time, 1998.
*/
#include "pretok/dfa.h"
#include "unicode/unicode.h"

enum {
    CODE_POINTS = 0x110000,
    CLASSES_MAX = 250,
    STATES_MAX = 4096,
    DEAD = 0,
    START = 1,
    ACCEPT = 0x8000, /* in `next`: a match ends before the character */
    STEP_END = 1,    /* in `steps`: a word ends before the character */
    STEP_SLOW = 2,   /* in `steps`: ask word_resolve */
    STEP_SHIFT = 2,
    DIVIDES = 1, /* in `divides`: see dfa_divides */
    PASSES = 2,  /* in `divides`: see dfa_passes */
    FAR = 256,   /* bytes */
    INVALID_LIKE = 0xDC80
};

#define SURE UINT32_MAX
#define NO_END SIZE_MAX

struct dfa {
    const uint32_t *steps;     /* row + column -> the row of the next state << STEP_SHIFT | flags */
    const uint32_t *undecided; /* by state: its number among the undecided ones (not sure), or SURE */
    const uint16_t *next;
    const uint8_t *classes; /* by code point */
    const uint8_t *divides; /* class * class_count + class: DIVIDES, PASSES */
    uint32_t states, class_count, columns, undecided_count;
    uint8_t invalid; /* the class of bytes that are not UTF-8 */
    bool bytes;      /* it reads bytes, not characters */
    pybpe_allocator mem;
};

/* ---------------------------------------------------------------------------------------------------
Making one
*/

static int tables_refuse(pybpe_error *err, size_t offset, const char *what) {
    return error_set(err, PYBPE_ERR_VALUE, offset, "the automaton has %s (item %zu)", what, offset);
}

static int tables_check_classes(const pybpe_automaton *t, pybpe_error *err) {
    if (t->classes == 0 || t->classes > CLASSES_MAX || t->states <= START || t->states > STATES_MAX) {
        return tables_refuse(err, 0, "no classes or states, or too many");
    }
    if (t->ranges == 0 || t->first[0] != 0) {
        return tables_refuse(err, 0, "no class for the first code point");
    }
    for (size_t i = 0; i < t->ranges; i++) {
        if (t->first[i] >= CODE_POINTS || (i > 0 && t->first[i] <= t->first[i - 1])) {
            return tables_refuse(err, i, "ranges of code points that do not ascend");
        }
        if (t->class_of[i] >= t->classes) {
            return tables_refuse(err, i, "a class out of range");
        }
    }
    return PYBPE_OK;
}

static int tables_check_states(const pybpe_automaton *t, pybpe_error *err) {
    const size_t columns = t->classes + 2;
    for (size_t i = 0; i < t->states * columns; i++) {
        size_t state = i / columns;
        unsigned target = t->next[i] & ~(unsigned)ACCEPT;
        if (target >= t->states) {
            return tables_refuse(err, i, "a state out of range");
        }
        if ((state == DEAD && t->next[i] != 0) || (i % columns == columns - 1 && target != DEAD)) {
            return tables_refuse(err, i, "a step from the dead state, or after the end of the text");
        }
        if (target == START || (state == START && (t->next[i] & ACCEPT) != 0)) {
            return tables_refuse(err, i, "a step to the first state, or a match of nothing");
        }
    }
    return PYBPE_OK;
}

static void fill_classes(uint8_t *classes, const pybpe_automaton *t) {
    for (size_t i = 0; i < t->ranges; i++) {
        uint32_t end = i + 1 < t->ranges ? t->first[i + 1] : CODE_POINTS;
        memset(classes + t->first[i], t->class_of[i], end - t->first[i]);
    }
}

/* Whether all columns of a state say that a match ends, or lead to a state that is sure. */
static bool state_is_sure(const dfa *a, const uint32_t *undecided, uint32_t state) {
    const uint16_t *row = a->next + (size_t)state * a->columns;
    for (uint32_t i = 0; i < a->columns; i++) {
        if ((row[i] & ACCEPT) == 0 && undecided[row[i]] != SURE) {
            return false;
        }
    }
    return true;
}

/* Assumes that all states but the dead one and the first are sure, then removes those that are not. Goes from the last
   to the first, since most steps lead to states with higher numbers. */
static uint32_t fill_undecided(uint32_t *undecided, const dfa *a) {
    memset(undecided, 0xFF, a->states * sizeof *undecided);
    undecided[DEAD] = undecided[START] = 0;
    uint32_t count =
        1; /* these two may share a number: no step leads to the first, and the dead one is not looked up */
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t state = a->states - 1; state > START; state--) {
            if (undecided[state] == SURE && !state_is_sure(a, undecided, state)) {
                undecided[state] = count++;
                changed = true;
            }
        }
    }
    return count;
}

static uint32_t step_to(const dfa *a, uint32_t target, uint32_t flags) {
    if (a->undecided[target] != SURE) {
        return flags | STEP_SLOW; /* word_resolve starts from the row of this state */
    }
    return target * a->columns << STEP_SHIFT | flags;
}

static void fill_steps(uint32_t *steps, const dfa *a) {
    for (uint32_t state = START; state < a->states; state++) {
        for (uint32_t i = 0; i < a->columns; i++) {
            uint32_t entry = a->next[state * a->columns + i];
            bool ends = entry == (ACCEPT | DEAD);
            uint32_t target = ends ? a->next[START * a->columns + i] : entry & ~(uint32_t)ACCEPT;
            steps[state * a->columns + i] = step_to(a, target, ends ? STEP_END : 0);
        }
    }
}

/* Whether a state does the same for the characters of a column as at the end of the text: it stops, and the match is
   the same. */
static bool ends_alike(const dfa *a, uint32_t state, uint32_t column) {
    const uint16_t *row = a->next + (size_t)state * a->columns;
    return row[column] == row[a->columns - 1];
}

/* Whether a match may end in a state at the end of the text, and with the character of a column the match continues as
   one that begins with it does. Its end is sure, so it does not matter that the former match might have ended
   before. */
static bool continues_alike(const dfa *a, uint32_t state, uint32_t column) {
    const uint16_t *row = a->next + (size_t)state * a->columns;
    uint32_t target = row[column] & ~(unsigned)ACCEPT;
    return (row[a->columns - 1] & ACCEPT) != 0 && a->undecided[target] == SURE &&
           target == (a->next[START * a->columns + column] & ~(unsigned)ACCEPT);
}

static unsigned flags_of(const dfa *a, uint32_t state, uint32_t column) {
    unsigned divides = ends_alike(a, state, column) ? DIVIDES | PASSES : 0;
    return divides | (continues_alike(a, state, column) ? PASSES : 0);
}

/* Clears the flags of the classes that may not follow `before`, for the state that `before` leads to. */
static void bar_after(uint8_t *divides, const dfa *a, uint32_t before, uint32_t state, uint32_t newline) {
    for (uint32_t after = 0; after < a->class_count; after++) {
        unsigned flags = flags_of(a, state, after) & (after != newline ? ~0U : flags_of(a, state, a->class_count));
        divides[before * a->class_count + after] &= (uint8_t)flags;
    }
}

/* Whether a match begins with every character of a class, whatever follows. A newline may be the last character. */
static bool begins_surely(const dfa *a, uint32_t class, uint32_t newline) {
    const uint16_t *row = a->next + (size_t)START * a->columns;
    return a->undecided[row[class] & ~(unsigned)ACCEPT] == SURE &&
           (class != newline || a->undecided[row[a->class_count] & ~(unsigned)ACCEPT] == SURE);
}

/* Sets the flags of some classes, if every character of class `before` is in a match: the classes that always end a
   match whose last character has class `before`. */
static void mark_after(uint8_t *divides, const dfa *a, uint32_t before, uint32_t newline) {
    const unsigned ends = ACCEPT | DEAD;
    if ((a->next[START * a->columns + before] & ~(unsigned)ACCEPT) == DEAD) {
        return;
    }
    for (uint32_t after = 0; after < a->class_count; after++) {
        bool always = true;
        for (uint32_t state = START; state < a->states && always; state++) {
            uint32_t target = a->next[state * a->columns + before] & ~(unsigned)ACCEPT;
            const uint16_t *row = a->next + (size_t)target * a->columns;
            always = target == DEAD || (row[after] == ends && (after != newline || row[a->class_count] == ends));
        }
        divides[before * a->class_count + after] |= always ? DIVIDES | PASSES : 0;
    }
}

/* Whether a newline is read the same at the end of a text as elsewhere. */
static bool newline_is_plain(const dfa *a, uint32_t newline) {
    for (uint32_t state = START; state < a->states; state++) {
        const uint16_t *row = a->next + (size_t)state * a->columns;
        if (row[newline] != row[a->class_count]) {
            return false;
        }
    }
    return true;
}

/* Finds between which classes a text can be cut. No state after the first character reads the second one as part of a
   match, and all of them do the same there as at the end of a text. So the words before the cut are the same, whether
   the text ends there or not. And a word begins there in any case: either the second character always begins a match, or
   the first one is always in a match, which then ends. The text after the cut is read from its first character on, as
   in the whole text. */
static void fill_divides(uint8_t *divides, const dfa *a) {
    const uint32_t newline = a->classes['\n'];
    for (uint32_t before = 0; before < a->class_count; before++) {
        for (uint32_t after = 0; after < a->class_count; after++) {
            bool begins = begins_surely(a, after, newline);
            divides[before * a->class_count + after] = begins ? DIVIDES | PASSES : 0;
        }
        mark_after(divides, a, before, newline);
        for (uint32_t state = START; state < a->states; state++) {
            uint32_t target = a->next[state * a->columns + before] & ~(unsigned)ACCEPT;
            if (target != DEAD) {
                bar_after(divides, a, before, target, newline);
            }
        }
    }
    if (!newline_is_plain(a, newline)) {
        memset(divides + (size_t)newline * a->class_count, 0, a->class_count);
    }
}

int dfa_new(dfa **out, const pybpe_automaton *t, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    PYBPE_TRY(array_check(t->first, t->ranges, "the first code points of ranges", err));
    PYBPE_TRY(array_check(t->class_of, t->ranges, "the classes of ranges", err));
    PYBPE_TRY(array_check(t->next, t->states, "the rows of states", err));
    PYBPE_TRY(tables_check_classes(t, err));
    PYBPE_TRY(tables_check_states(t, err));
    const size_t cells = (size_t)t->states * (t->classes + 2);
    const size_t square = (size_t)t->classes * t->classes;
    const size_t size =
        sizeof(dfa) + (cells + t->states) * sizeof(uint32_t) + cells * sizeof *t->next + CODE_POINTS + square;
    dfa *a = mem_alloc(mem, size);
    PYBPE_TRY(memory_check(a, "an automaton", size, err));
    uint32_t *steps = (uint32_t *)(a + 1);
    uint32_t *undecided = steps + cells;
    uint16_t *next = (uint16_t *)(undecided + t->states);
    uint8_t *classes = (uint8_t *)(next + cells);
    uint8_t *divides = classes + CODE_POINTS;
    *a = (dfa){steps, undecided, next, classes, divides, t->states, t->classes, t->classes + 2, .mem = mem_of(mem)};
    memcpy(next, t->next, cells * sizeof *next);
    fill_classes(classes, t);
    a->invalid = classes[INVALID_LIKE];
    a->bytes = t->bytes != 0;
    a->undecided_count = fill_undecided(undecided, a);
    memset(steps, 0, a->columns * sizeof *steps);
    fill_steps(steps, a);
    fill_divides(divides, a);
    *out = a;
    return PYBPE_OK;
}

void dfa_free(dfa *a, const pybpe_allocator *mem) { mem_free(mem, a); }

bool dfa_has_cuts(const dfa *a) {
    return memchr(a->divides, DIVIDES | PASSES, (size_t)a->class_count * a->class_count) != NULL;
}

bool dfa_divides(const dfa *a, uint32_t before, uint32_t after) {
    return (a->divides[before * a->class_count + after] & DIVIDES) != 0;
}

bool dfa_passes(const dfa *a, uint32_t before, uint32_t after) {
    return (a->divides[before * a->class_count + after] & PASSES) != 0;
}

bool dfa_reads_bytes(const dfa *a) { return a->bytes; }

uint32_t dfa_class(const dfa *a, const uint8_t *p, size_t left, uint8_t *length, bool *valid) {
    *valid = true;
    if (p[0] < 0x80 || a->bytes) {
        *length = 1;
        return a->classes[p[0]];
    }
    uint32_t code_point = unicode_read_multibyte(p, left, length);
    *valid = code_point != UNICODE_INVALID;
    return *valid ? a->classes[code_point] : a->invalid;
}

/* ---------------------------------------------------------------------------------------------------
Runs that lead nowhere
*/

static size_t memo_bit(const dfa *a, const dfa_memo *m, size_t at, uint32_t state) {
    return (at - m->from) * a->undecided_count + a->undecided[state];
}

/* Every run begins at m->from or after it, so no place is before it. */
static bool memo_has(const dfa *a, const dfa_memo *m, size_t at, uint32_t state) {
    if (at >= m->until) {
        return false;
    }
    size_t bit = memo_bit(a, m, at, state);
    return m->bits[bit / 64] >> bit % 64 & 1;
}

static size_t memo_words(const dfa *a, size_t places) { return places * a->undecided_count / 64 + 1; }

/* Makes room for the places from..until. Earlier ones are not needed again. Doubles the room, so that growing takes
   linear time. Places are moved by multiples of 64, and their bits by whole words. */
static bool memo_reserve(const dfa *a, dfa_memo *m, size_t from, size_t until) {
    if (m->bits != NULL && until <= m->until) {
        return true;
    }
    from = m->bits != NULL ? from - (from - m->from) % 64 : from;
    size_t room = 2 * (until - from) + 64;
    uint64_t *bits = NULL;
    if (room <= SIZE_MAX / 16 / a->undecided_count) { /* LCOV_EXCL_BR_LINE: a text of more than 2^40 bytes */
        bits = mem_alloc_zeroed(&a->mem, memo_words(a, room), sizeof *bits);
    }
    if (bits == NULL) {
        return false;
    }
    if (m->bits != NULL && from < m->until) {
        size_t skipped = (from - m->from) / 64 * a->undecided_count;
        memcpy(bits, m->bits + skipped, (memo_words(a, m->until - m->from) - skipped) * sizeof *bits);
    }
    mem_free(&a->mem, m->bits);
    *m = (dfa_memo){bits, from, from + room};
    return true;
}

/* The column for the character or end at text[at], and its length in bytes. */
static uint32_t column_at(const dfa *a, const uint8_t *text, size_t n, size_t at, uint8_t *length) {
    bool valid;
    if (at == n) {
        *length = 0;
        return a->class_count + 1;
    }
    if (text[at] == '\n' && at == n - 1) {
        *length = 1;
        return a->class_count;
    }
    return dfa_class(a, text + at, n - at, length, &valid);
}

/* Marks the states of a run from `state` at `from` to `until`. If memory is out, it marks nothing: the words are the
   same, but finding them may take quadratic time. */
static void memo_mark(const dfa *a, dfa_memo *m, const uint8_t *text, size_t n, size_t from, size_t until,
                      uint32_t state) {
    uint8_t length;
    if (!memo_reserve(a, m, from, until + 1)) {
        return;
    }
    for (size_t at = from; at < until;) {
        state = a->next[state * a->columns + column_at(a, text, n, at, &length)] & ~(unsigned)ACCEPT;
        at += length;
        size_t bit = memo_bit(a, m, at, state);
        m->bits[bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

/* ---------------------------------------------------------------------------------------------------
Cutting
*/

dfa_place dfa_place_at(const dfa *a, size_t pos, size_t n) {
    return (dfa_place){.dfa = a, .at = pos, .row = a->columns * START, .ended = pos == n};
}

void dfa_place_end(dfa_place *place) {
    if (place->memo.bits != NULL) {
        mem_free(&place->dfa->mem, place->memo.bits);
        place->memo.bits = NULL;
    }
}

static void place_restart(dfa_place *place, size_t at) {
    place->at = at;
    place->row = place->dfa->columns * START;
}

/* Runs from the state at place->at until a state is sure: then it moves the place there and returns false. If the dead
   state comes first, it returns true and sets *end to the last end of a match, or to NO_END. */
static bool run_is_over(dfa_place *place, const uint8_t *text, size_t n, size_t *end) {
    const dfa *a = place->dfa;
    size_t at = place->at;
    size_t known = at; /* where the last match ended, or where the run began, and the state there */
    uint32_t state = place->row / a->columns;
    uint32_t known_state = state;
    *end = NO_END;
    for (;;) {
        uint8_t length;
        uint32_t entry = a->next[state * a->columns + column_at(a, text, n, at, &length)];
        if ((entry & ACCEPT) != 0) {
            *end = known = at;
            known_state = state;
        }
        if ((entry & ~(uint32_t)ACCEPT) == DEAD) {
            break;
        }
        state = entry & ~(uint32_t)ACCEPT;
        at += length;
        if (a->undecided[state] == SURE) {
            place->at = at;
            place->row = state * a->columns;
            return false;
        }
        if (at - known >= FAR && memo_has(a, &place->memo, at, state)) {
            break;
        }
    }
    if (at - known >= FAR) {
        memo_mark(a, &place->memo, text, n, known, at, known_state);
    }
    return true;
}

/* Finds the end of a word in a state that is not sure. If no match begins here, the text before the next match is a
   word too. Writes up to two ends, moves the place, and returns how many it wrote. */
static size_t word_resolve(dfa_place *place, const uint8_t *text, size_t n, size_t *ends) {
    const size_t begin = place->at;
    size_t start = begin;
    for (;;) {
        size_t count = 0;
        size_t end;
        bool over = run_is_over(place, text, n, &end);
        if (!over || end != NO_END) {
            if (start > begin) {
                ends[count++] = start;
            }
            if (over) {
                ends[count++] = end;
                place_restart(place, end);
            }
            return count;
        }
        uint8_t length;
        column_at(place->dfa, text, n, start, &length);
        start += length;
        place_restart(place, start);
        if (start == n) {
            ends[0] = n;
            return 1;
        }
    }
}

/* Takes a step to a sure state, or one that ends a word. Returns false, with the place before the step, if word_resolve
   must take it. */
static inline bool step_take(dfa_place *place, uint32_t step, size_t length) {
    if (PYBPE_UNLIKELY((step & STEP_SLOW) != 0)) {
        place->row = (step & STEP_END) != 0 ? place->dfa->columns * START : place->row;
        return false;
    }
    place->row = step >> STEP_SHIFT;
    place->at += length;
    return true;
}

/* Reads the characters that begin before `stop`, while all steps are sure. Writes at most one end per character.
   Returns false if word_resolve must take the next step. */
static bool steps_take(dfa_place *shared, const boundary_table *t, const uint8_t *text, size_t n, size_t stop,
                       size_t **ends) {
    dfa_place place = *shared; /* a copy that the compiler can keep in registers */
    const uint32_t *steps = place.dfa->steps;
    const uint8_t *classes = place.dfa->classes;
    const uint32_t start = place.dfa->columns * START;
    size_t *out = *ends;
    bool sure = true;
    while (sure && place.at < stop) {
        while (place.at < stop && text[place.at] < 0x80) {
            uint32_t step = steps[place.row + classes[text[place.at]]];
            *out = place.at;
            out += step & STEP_END;
            sure = step_take(&place, step, 1);
            if (PYBPE_UNLIKELY(!sure)) {
                break;
            }
        }
        if (sure && place.at < stop) {
            uint8_t length;
            bool valid;
            uint32_t step = steps[place.row + dfa_class(place.dfa, text + place.at, n - place.at, &length, &valid)];
            bool inside = (step & (STEP_END | STEP_SLOW)) == 0 && place.row != start;
            *out = place.at;
            out += (step & STEP_END) != 0 || (inside && t != NULL && boundary_is_hard(t, text, n, place.at));
            sure = step_take(&place, step, length);
        }
    }
    *shared = place;
    *ends = out;
    return sure;
}

/* Reads the newline at the end of the text. */
static bool last_newline_take(dfa_place *place, size_t **ends) {
    uint32_t step = place->dfa->steps[place->row + place->dfa->class_count];
    **ends = place->at;
    *ends += step & STEP_END;
    return step_take(place, step, 1);
}

size_t dfa_cut(dfa_place *place, const boundary_table *t, const uint8_t *text, size_t n, size_t *ends, size_t cap) {
    enum { ROOM = 4 }; /* an end, two of word_resolve, and the last */
    size_t *out = ends;
    t = place->dfa->bytes ? NULL : t; /* hard boundaries are between characters */
    const size_t limit = n > 0 && text[n - 1] == '\n' ? n - 1 : n;
    while (place->at < n && cap - (size_t)(out - ends) >= ROOM) {
        size_t most = cap - (size_t)(out - ends) - (ROOM - 1);
        bool sure = place->at < limit
                        ? steps_take(place, t, text, n, limit - place->at < most ? limit : place->at + most, &out)
                        : last_newline_take(place, &out);
        if (!sure) {
            out += word_resolve(place, text, n, out);
        }
    }
    if (place->at == n && !place->ended) {
        place->ended = true;
        *out = n;
        out += place->row != place->dfa->columns * START; /* otherwise a word has just ended there */
    }
    return (size_t)(out - ends);
}
