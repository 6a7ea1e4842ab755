/*
Splitters of automata: any tables are refused or cut as matches found one at a time do, in calls of any size, and both
halves at a safe cut have the words of the whole.
*/
#include "fuzz_split.h"
#include "naive_automaton.h"
#include "pybpe_train.h"

enum { MOST_TEXT = 512 };

static void check(const pybpe_pretok *p, const uint16_t *next, const uint8_t *text, size_t n, size_t cap) {
    static size_t want[MOST_TEXT], got[2 * MOST_TEXT];
    size_t count = naive_split(next, text, n, want, 0);
    REQUIRE(split(p, text, n, cap, got, 0) == count);
    REQUIRE(memcmp(want, got, count * sizeof *want) == 0);
    for (size_t i = 0; i < 4 && n > 0; i++) {
        size_t place = 1 + (size_t)text[i % n] * (i + 1) % n;
        size_t cut = pybpe_text_cut(p, NULL, text, n, place);
        REQUIRE(cut >= place && cut <= n);
        size_t first = split(p, text, cut, cap, got, 0);
        size_t second = split(p, text + cut, n - cut, cap, got + first, cut);
        REQUIRE(first + second == count && memcmp(want, got, count * sizeof *want) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    uint16_t next[NAIVE_STATES_MAX * NAIVE_COLUMNS];
    uint32_t states = 1 + fuzz_below(&in, NAIVE_STATES_MAX);
    for (size_t i = 0; i < states * (size_t)NAIVE_COLUMNS; i++) {
        unsigned byte = fuzz_byte(&in);
        next[i] = (uint16_t)((byte & 0x7F) | (byte & 0x80) << 8);
    }
    /* As it is, the table may be refused. */
    const pybpe_automaton given = {naive_first, naive_class_of, sizeof naive_class_of, NAIVE_CLASSES, states, next, 0};
    pybpe_pretok *p = NULL;
    pybpe_error err;
    int code = pybpe_pretok_new_automaton(&p, &given, NULL, &err);
    REQUIRE((code == PYBPE_OK) == (p != NULL));
    pybpe_pretok_free(p);
    if (states < 2) {
        return 0;
    }
    const pybpe_automaton valid = naive_automaton(next, states);
    REQUIRE(pybpe_pretok_new_automaton(&p, &valid, NULL, &err) == PYBPE_OK);
    size_t cap = 64 + fuzz_byte(&in);
    size_t n;
    uint8_t *text = fuzz_bytes(&in, MOST_TEXT, &n);
    check(p, next, text, n, cap);
    free(text);
    pybpe_pretok_free(p);
    return 0;
}
