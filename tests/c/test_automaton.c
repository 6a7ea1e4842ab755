/*
Splitters of automata: tables made by hand and random ones, against matches found one at a time; wrong tables; texts that
take quadratic time if nothing is remembered; no memory.
*/
#include "check.h"
#include "naive_automaton.h"
#include "random_state.h"
#include "small_vocab.h"
#include "split_text.h"

#include <stdlib.h>
#include <string.h>

enum { CAP = 64, TEXT = 400, AUTOMATA = 4000, LONG_TEXT = 300000 };

static pybpe_pretok *splitter_of(const pybpe_automaton *a, const pybpe_allocator *mem) {
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new_automaton(&p, a, mem, NULL), PYBPE_OK);
    return p;
}

static size_t random_text(uint8_t *text) {
    static const char *const pieces[] = {
        "a",        "aaaa", "b",           "bb", "\n", "!", "\xE4\xBD\xA0", "\xC3\xA9", "\xF0\x9F\x98\x80",
        "\xE4\xBD", "\xFF", "\xED\xA0\x80"};
    const uint32_t kinds = 2 + random_below(11); /* of the pieces, so that some texts have long runs */
    const size_t most = random_below(TEXT - 4);
    return random_pieces(pieces, kinds, most, text);
}

/* Both halves at a safe cut have the words of the whole. Returns whether there was one. */
static bool check_cut(const pybpe_pretok *p, const uint8_t *text, size_t n, const size_t *want, size_t count) {
    static size_t got[2 * TEXT];
    size_t from = 1 + random_below((uint32_t)n);
    size_t cut = pybpe_text_cut(p, NULL, text, n, from);
    CHECK(cut >= from && cut <= n);
    if (cut == n) {
        return false;
    }
    size_t first = split_all(p, text, cut, CAP, got);
    size_t second = split_all(p, text + cut, n - cut, CAP, got + first);
    for (size_t i = 0; i < second; i++) {
        got[first + i] += cut;
    }
    CHECK_EQ(first + second, count);
    CHECK(memcmp(got, want, count * sizeof *want) == 0);
    return true;
}

static void test_random_automata(void) {
    static uint8_t room[TEXT];
    static size_t want[2 * TEXT], got[2 * TEXT + CAP];
    size_t cuts = 0;
    for (int i = 0; i < AUTOMATA; i++) {
        uint16_t next[NAIVE_STATES_MAX * NAIVE_COLUMNS];
        uint32_t states = 2 + random_below(NAIVE_STATES_MAX - 1);
        const bool sure = i % 2 == 0; /* every character begins a match, and most end one: such texts have cuts */
        uint32_t dead =
            sure ? 7 : random_below(8); /* how often, in eighths, a step leads nowhere, and a match may end */
        uint32_t accept = sure ? 8 : 1 + random_below(8);
        for (uint32_t k = 0; k < states * NAIVE_COLUMNS; k++) {
            uint32_t target = random_below(8) < dead ? 0 : random_below(states);
            target = sure && k / NAIVE_COLUMNS == 1 ? states - 1 - random_below(states / 2) : target;
            next[k] = (uint16_t)(target | (random_below(8) < accept ? NAIVE_ACCEPT : 0));
        }
        pybpe_automaton a = naive_automaton(next, states);
        pybpe_pretok *p = splitter_of(&a, NULL);
        for (int k = 0; k < 8; k++) {
            size_t n = random_text(room);
            uint8_t *text = malloc(n + (n == 0)); /* of just this size, for sanitizers */
            memcpy(text, room, n);
            size_t count = naive_split(next, text, n, want, 0);
            CHECK_EQ(split_all(p, text, n, CAP + random_below(9), got), count);
            CHECK(memcmp(got, want, count * sizeof *want) == 0);
            cuts += n > 0 && check_cut(p, text, n, want, count);
            free(text);
        }
        pybpe_pretok_free(p);
    }
    CHECK(cuts > 1000);
}

/* a*b|a: state 2 after an a, 3 after more of them, 4 after the b */
static pybpe_automaton far_automaton(uint16_t *next) {
    memset(next, 0, 5 * NAIVE_COLUMNS * sizeof *next);
    for (unsigned i = 0; i < NAIVE_COLUMNS; i++) {
        next[2 * NAIVE_COLUMNS + i] = NAIVE_ACCEPT;
        next[4 * NAIVE_COLUMNS + i] = NAIVE_ACCEPT;
    }
    next[NAIVE_COLUMNS] = 2;
    next[2 * NAIVE_COLUMNS] = NAIVE_ACCEPT | 3;
    next[3 * NAIVE_COLUMNS] = 3;
    for (unsigned state = 1; state < 4; state++) {
        next[state * NAIVE_COLUMNS + 1] = 4;
    }
    return naive_automaton(next, 5);
}

/* The words of a text, as a counter finds them. */
static uint64_t count_words(const pybpe_automaton *a, const uint8_t *text, size_t n, const pybpe_allocator *mem,
                            int *code) {
    pybpe_pretok *p = NULL;
    pybpe_counter *c = NULL;
    uint64_t total = 0;
    *code = pybpe_pretok_new_automaton(&p, a, mem, NULL);
    *code = *code == PYBPE_OK ? pybpe_counter_new(&c, p, NULL, mem, NULL) : *code;
    *code = *code == PYBPE_OK ? pybpe_counter_add(c, text, n, NULL) : *code;
    if (*code == PYBPE_OK) {
        total = pybpe_counter_get_stats(c).total;
    }
    pybpe_counter_free(c);
    pybpe_pretok_free(p);
    return total;
}

/* In quadratic time this would take more than a minute. */
static void test_runs_in_vain(void) {
    uint16_t next[5 * NAIVE_COLUMNS];
    pybpe_automaton a = far_automaton(next);
    uint8_t *text = malloc(LONG_TEXT);
    int code;
    memset(text, 'a', LONG_TEXT);
    CHECK_EQ(count_words(&a, text, LONG_TEXT, NULL, &code), LONG_TEXT);
    text[LONG_TEXT - 1] = 'b';
    CHECK_EQ(count_words(&a, text, LONG_TEXT, NULL, &code), 1);
    next[2 * NAIVE_COLUMNS] = 3; /* (a{3,}|a?)b: nothing matches */
    for (unsigned i = 0; i < NAIVE_COLUMNS; i++) {
        next[2 * NAIVE_COLUMNS + i] &= 0x7FFF;
    }
    text[LONG_TEXT - 1] = 'a';
    CHECK_EQ(count_words(&a, text, LONG_TEXT, NULL, &code), 1);
    free(text);
}

static void test_allocation_failures(void) {
    enum { SHORT = 3000 };
    static uint8_t text[SHORT];
    uint16_t next[5 * NAIVE_COLUMNS];
    pybpe_automaton a = far_automaton(next);
    memset(text, 'a', SHORT);
    text[SHORT / 2] = '!';
    failing_memory memory = {.left = -1};
    const pybpe_allocator mem = {failing_resize, &memory};
    long n = 0;
    int code;
    do {
        memory.left = n++;
        uint64_t words = count_words(&a, text, SHORT, &mem, &code);
        CHECK(code == PYBPE_ERR_MEMORY || words == SHORT); /* without memory for what leads nowhere: only slower */
        CHECK_EQ(memory.blocks, 0);
    } while (memory.left == 0);
    CHECK_EQ(code, PYBPE_OK);
    CHECK(n > 4);
}

static void check_refused(const pybpe_automaton *a) {
    pybpe_pretok *p = NULL;
    pybpe_error err;
    CHECK_EQ(pybpe_pretok_new_automaton(&p, a, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(p == NULL);
}

static void test_wrong_tables(void) {
    uint16_t next[5 * NAIVE_COLUMNS];
    const pybpe_automaton good = far_automaton(next);
    static const uint16_t wrong[][2] = {/* place, entry */
                                        {0, 1},
                                        {3, NAIVE_ACCEPT},
                                        {NAIVE_COLUMNS, NAIVE_ACCEPT | 2},
                                        {NAIVE_COLUMNS, 5},
                                        {2 * NAIVE_COLUMNS, 1},
                                        {2 * NAIVE_COLUMNS, 0x7FFF},
                                        {2 * NAIVE_COLUMNS - 1, 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint16_t before = next[wrong[i][0]];
        next[wrong[i][0]] = wrong[i][1];
        check_refused(&good);
        next[wrong[i][0]] = before;
    }
    static const uint32_t firsts[][3] = {{1, 5, 9}, {0, 5, 5}, {0, 7, 6}, {0, 5, 0x110000}};
    static const uint8_t classes[] = {0, 1, NAIVE_CLASSES};
    for (size_t i = 0; i < 4; i++) {
        check_refused(&(pybpe_automaton){firsts[i], naive_class_of, 3, NAIVE_CLASSES, 5, next, 0});
    }
    check_refused(&(pybpe_automaton){naive_first, classes, 3, NAIVE_CLASSES, 5, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 0, NAIVE_CLASSES, 5, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 1, 0, 5, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 1, 251, 5, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 1, NAIVE_CLASSES, 1, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 1, NAIVE_CLASSES, 4097, next, 0});
}

int main(void) {
    test_random_automata();
    test_runs_in_vain();
    test_allocation_failures();
    test_wrong_tables();
    return check_report("automaton");
}
