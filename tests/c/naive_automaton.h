/*
Automata with rows of a few classes, and the words that they cut, found one match at a time: slow and obvious.
*/
#ifndef NAIVE_AUTOMATON_H
#define NAIVE_AUTOMATON_H

#include "pybpe_train.h"

#include <stdbool.h>

enum {
    NAIVE_CLASSES = 6,
    NAIVE_COLUMNS = NAIVE_CLASSES + 2,
    NAIVE_STATES_MAX = 12,
    NAIVE_ACCEPT = 0x8000,
};

/* 0: a, 1: b, 2: newline, 3: all others below U+4E00, 4: U+4E00 and above, 5: bytes that are not UTF-8 */
static const uint32_t naive_first[] = {0, '\n', '\n' + 1, 'a', 'b', 'c', 0x4E00, 0xDC80, 0xDD00};
static const uint8_t naive_class_of[] = {3, 2, 3, 0, 1, 3, 4, 5, 4};

/* Makes a table valid whose entries are any: `next` has `states` rows. */
static inline pybpe_automaton naive_automaton(uint16_t *next, uint32_t states) {
    for (uint32_t i = 0; i < states * NAIVE_COLUMNS; i++) {
        unsigned state = i / NAIVE_COLUMNS;
        unsigned target = (next[i] & 0x7FFFu) % states;
        unsigned accept = next[i] & NAIVE_ACCEPT;
        if (target == 1 || i % NAIVE_COLUMNS == NAIVE_COLUMNS - 1) {
            target = 0;
        }
        next[i] = (uint16_t)(state == 0 ? 0 : state == 1 ? target : target | accept);
    }
    return (pybpe_automaton){naive_first, naive_class_of, sizeof naive_class_of, NAIVE_CLASSES, states, next, 0};
}

/* The length of the character at p: texts of these tests have none that is overlong, or a surrogate, but any bytes. */
static inline size_t naive_length(const uint8_t *p, size_t left) {
    size_t length = p[0] < 0xC2 ? 1 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 1;
    for (size_t i = 1; i < length; i++) {
        if (i >= left || (p[i] & 0xC0) != 0x80) {
            return 1;
        }
    }
    bool wrong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] >= 0xA0) || (p[0] == 0xF0 && p[1] < 0x90) ||
                 (p[0] == 0xF4 && p[1] >= 0x90);
    return length > 1 && wrong ? 1 : length;
}

static inline unsigned naive_class(const uint8_t *p, size_t length) {
    if (p[0] < 0x80) {
        return p[0] == 'a' ? 0 : p[0] == 'b' ? 1 : p[0] == '\n' ? 2 : 3;
    }
    return length == 1 ? 5 : length == 4 || (length == 3 && p[0] * 256u + p[1] >= 0xE4B8) ? 4 : 3;
}

/* The end of the match that begins at text[pos], or pos. */
static inline size_t naive_match(const uint16_t *next, const uint8_t *text, size_t n, size_t pos) {
    size_t end = pos;
    unsigned state = 1;
    for (size_t at = pos;;) {
        size_t length = at < n ? naive_length(text + at, n - at) : 0;
        unsigned column = at == n ? NAIVE_CLASSES + 1 : naive_class(text + at, length);
        if (at + 1 == n && text[at] == '\n') {
            column = NAIVE_CLASSES;
        }
        unsigned entry = next[state * NAIVE_COLUMNS + column];
        end = (entry & NAIVE_ACCEPT) != 0 ? at : end;
        state = entry & 0x7FFFu;
        if (state == 0) {
            return end;
        }
        at += length;
    }
}

/* All ends of words, each plus `add`: of matches, and of what is between them. */
static inline size_t naive_split(const uint16_t *next, const uint8_t *text, size_t n, size_t *ends, size_t add) {
    size_t count = 0;
    size_t done = 0;
    for (size_t pos = 0; pos < n;) {
        size_t end = naive_match(next, text, n, pos);
        if (end == pos) {
            pos += naive_length(text + pos, n - pos);
            continue;
        }
        if (pos > done) {
            ends[count++] = pos + add;
        }
        ends[count++] = end + add;
        done = pos = end;
    }
    if (done < n) {
        ends[count++] = n + add;
    }
    return count;
}

#endif
