/*
Splitters in sequence: random automata and named patterns against pieces split one after the other; safe cuts; sequences
that are refused; no memory.
*/
#include "check.h"
#include "naive_automaton.h"
#include "pybpe_train.h"
#include "random_state.h"
#include "small_vocab.h"
#include "split_text.h"

#include <stdlib.h>
#include <string.h>

enum {
    CAP_LEAST = 64,
    CAP = 256,
    TEXT = 200,
    SEQUENCES = 400,
    STEPS_MAX = 4,
    CELLS = NAIVE_STATES_MAX * NAIVE_COLUMNS
};

/* A few splitters in sequence. */
typedef struct chain {
    uint16_t next[STEPS_MAX][CELLS]; /* of automata */
    bool named[STEPS_MAX], bytes[STEPS_MAX];
    pybpe_pretok *steps[STEPS_MAX];
    pybpe_pretok *all;
    size_t count;
} chain;

/* The last states of a run of one class, or of all others: what most first steps are. */
static uint32_t run_automaton(uint16_t *next) {
    const unsigned class = random_below(NAIVE_CLASSES);
    const unsigned most = random_below(3); /* 0: no limit */
    memset(next, 0, CELLS * sizeof *next);
    for (unsigned i = 0; i < NAIVE_CLASSES; i++) {
        next[NAIVE_COLUMNS + i] = i == class ? 2 : 4;
        for (unsigned state = 2; state <= 3; state++) {
            next[state * NAIVE_COLUMNS + i] = NAIVE_ACCEPT | (i == class && most == 0 ? 2 : 0);
        }
        next[4 * NAIVE_COLUMNS + i] = NAIVE_ACCEPT | (i == class ? 0 : 4);
    }
    next[2 * NAIVE_COLUMNS + class] = NAIVE_ACCEPT | (most == 0 ? 2 : most == 1 ? 0 : 3);
    for (unsigned state = 1; state <= 4; state++) {
        next[state * NAIVE_COLUMNS + NAIVE_CLASSES] = next[state * NAIVE_COLUMNS + 2]; /* a newline */
        next[state * NAIVE_COLUMNS + NAIVE_CLASSES + 1] = state == 1 ? 0 : NAIVE_ACCEPT;
    }
    return 5;
}

static uint32_t random_automaton(uint16_t *next) {
    uint32_t states = 2 + random_below(NAIVE_STATES_MAX - 1);
    for (uint32_t k = 0; k < states * NAIVE_COLUMNS; k++) {
        uint32_t target = random_below(8) < 6 ? 0 : random_below(states);
        next[k] = (uint16_t)(target | NAIVE_ACCEPT);
    }
    for (uint32_t i = 0; i < NAIVE_CLASSES + 1; i++) {
        next[NAIVE_COLUMNS + i] = (uint16_t)(2 + random_below(states));
    }
    return states;
}

static void chain_make(chain *c) {
    c->count = 2 + random_below(STEPS_MAX - 1);
    for (size_t i = 0; i < c->count; i++) {
        c->bytes[i] = (i > 0 && c->bytes[i - 1]) || random_below(8) == 0;
        c->named[i] = !c->bytes[i] && random_below(5) == 0;
        if (c->named[i]) {
            const int pattern = PYBPE_PATTERN_GPT2 + (int)random_below(PYBPE_PATTERN_QWEN2 - PYBPE_PATTERN_GPT2 + 1);
            const int digits = random_below(3) == 0 ? PYBPE_PATTERN_DIGITS3 : 0;
            CHECK_EQ(pybpe_pretok_new(&c->steps[i], pattern + digits, NULL, NULL), PYBPE_OK);
            continue;
        }
        uint32_t states =
            i + 1 < c->count && random_below(2) == 0 ? run_automaton(c->next[i]) : random_automaton(c->next[i]);
        pybpe_automaton a = naive_automaton(c->next[i], states);
        a.bytes = c->bytes[i];
        CHECK_EQ(pybpe_pretok_new_automaton(&c->steps[i], &a, NULL, NULL), PYBPE_OK);
    }
    CHECK_EQ(pybpe_pretok_new_sequence(&c->all, (const pybpe_pretok *const *)c->steps, c->count, NULL, NULL), PYBPE_OK);
}

static void chain_free(chain *c) {
    pybpe_pretok_free(c->all);
    for (size_t i = 0; i < c->count; i++) {
        pybpe_pretok_free(c->steps[i]);
    }
}

/* All ends of words of a text that is a piece, each plus `start`. */
static size_t split_piece(const chain *c, size_t step, const uint8_t *piece, size_t n, size_t *ends, size_t start) {
    static size_t room[TEXT + CAP];
    uint8_t copy[TEXT];
    if (c->bytes[step]) { /* all bytes but those of ASCII are of the class of "!" */
        for (size_t i = 0; i < n; i++) {
            copy[i] = piece[i] < 0x80 ? piece[i] : '!';
        }
        piece = copy;
    }
    if (!c->named[step]) {
        return naive_split(c->next[step], piece, n, ends, start);
    }
    const size_t count = split_all(c->steps[step], piece, n, CAP, room);
    for (size_t i = 0; i < count; i++) {
        ends[i] = room[i] + start;
    }
    return count;
}

static size_t naive_chain(const chain *c, const uint8_t *text, size_t n, size_t *ends) {
    static size_t pieces[TEXT];
    size_t count = n > 0;
    ends[0] = n;
    for (size_t i = 0; i < c->count; i++) {
        size_t before = count;
        memcpy(pieces, ends, before * sizeof *ends);
        count = 0;
        for (size_t k = 0; k < before; k++) {
            size_t start = k > 0 ? pieces[k - 1] : 0;
            count += split_piece(c, i, text + start, pieces[k] - start, ends + count, start);
        }
    }
    return count;
}

static size_t random_text(uint8_t *text) {
    static const char *const pieces[] = {
        "a", "aaaa", "b", "bb", "\n", "!", "\xE4\xBD\xA0", "\xC3\xA9", "!!", "\xFF", "\xE4\xBD\xA0\xE4\xBD\xA0",
        " ", "123"};
    const uint32_t kinds = 2 + random_below(12);
    const size_t most = random_below(TEXT - 8);
    return random_pieces(pieces, kinds, most, text);
}

static void test_random_sequences(void) {
    static uint8_t text[TEXT];
    static size_t want[TEXT], got[TEXT + CAP];
    size_t cuts = 0;
    for (int i = 0; i < SEQUENCES; i++) {
        chain c;
        chain_make(&c);
        for (int k = 0; k < 20; k++) {
            size_t n = random_text(text);
            size_t count = naive_chain(&c, text, n, want);
            CHECK_EQ(split_all(c.all, text, n, k == 0 ? CAP_LEAST : CAP, got), count); /* the least is slow */
            CHECK(memcmp(got, want, count * sizeof *want) == 0);
            size_t cut = n > 1 ? pybpe_text_cut(c.all, NULL, text, n, 1 + random_below((uint32_t)n - 1)) : n;
            if (cut < n) {
                cuts++;
                CHECK(pybpe_pretok_has_cuts(c.all) || text[cut] >= 0x80 || text[cut - 1] >= 0x80);
                size_t first = split_all(c.all, text, cut, CAP, got);
                size_t second = split_all(c.all, text + cut, n - cut, CAP, got + first);
                for (size_t j = 0; j < second; j++) {
                    got[first + j] += cut;
                }
                CHECK_EQ(first + second, count);
                CHECK(memcmp(got, want, count * sizeof *want) == 0);
            }
        }
        chain_free(&c);
    }
    CHECK(cuts > 500);
}

static void test_what_is_refused(void) {
    pybpe_pretok *named = NULL;
    pybpe_pretok *bytes = NULL;
    pybpe_pretok *both = NULL;
    pybpe_pretok *out = NULL;
    uint16_t next[CELLS];
    pybpe_automaton a = naive_automaton(next, run_automaton(next));
    a.bytes = 1;
    CHECK_EQ(pybpe_pretok_new(&named, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_pretok_new_automaton(&bytes, &a, NULL, NULL), PYBPE_OK);
    const pybpe_pretok *many[17];
    for (size_t i = 0; i < 17; i++) {
        many[i] = named;
    }
    CHECK_EQ(pybpe_pretok_new_sequence(&out, many, 0, NULL, NULL), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_pretok_new_sequence(&out, many, 1, NULL, NULL), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_pretok_new_sequence(&out, many, 17, NULL, NULL), PYBPE_ERR_VALUE);
    many[0] = bytes;
    CHECK_EQ(pybpe_pretok_new_sequence(&out, many, 2, NULL, NULL), PYBPE_ERR_VALUE);
    many[0] = named;
    many[1] = bytes;
    CHECK_EQ(pybpe_pretok_new_sequence(&both, many, 2, NULL, NULL), PYBPE_OK);
    many[1] = both;
    CHECK_EQ(pybpe_pretok_new_sequence(&out, many, 2, NULL, NULL), PYBPE_ERR_VALUE);
    CHECK(out == NULL);
    failing_memory memory = {.left = 0};
    const pybpe_allocator mem = {failing_resize, &memory};
    CHECK_EQ(pybpe_pretok_new_sequence(&out, many, 1 + 1, &mem, NULL), PYBPE_ERR_VALUE);
    many[1] = bytes;
    CHECK_EQ(pybpe_pretok_new_sequence(&out, many, 2, &mem, NULL), PYBPE_ERR_MEMORY);
    CHECK(out == NULL);
    pybpe_pretok_free(both);
    pybpe_pretok_free(bytes);
    pybpe_pretok_free(named);
}

int main(void) {
    test_random_sequences();
    test_what_is_refused();
    return check_report("sequence");
}
