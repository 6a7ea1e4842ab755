/*
The measures of a text by their definitions in pybpe.h. Slow and obvious: the library must give the same.
*/
#ifndef NAIVE_MEASURES_H
#define NAIVE_MEASURES_H

#include <stdbool.h>
#include <string.h>

#include "naive_utf8.h"
#include "pybpe_corpus.h"

enum { MEASURED_MOST = 2000, NO_CHARACTER = 0x110000 };

/* A text as characters; a byte that is not UTF-8 is one too. */
typedef struct measured {
    const uint8_t *bytes;
    size_t starts[MEASURED_MOST + 1];
    uint32_t chars[MEASURED_MOST];
    uint8_t classes[MEASURED_MOST];
    size_t count;
} measured;

/* Characters from `from` to before `to`. */
typedef struct naive_span {
    size_t from, to;
} naive_span;

typedef struct naive_spans {
    naive_span of[MEASURED_MOST];
    size_t count;
} naive_spans;

static inline void measured_set(measured *m, const uint8_t *text, size_t n, const pybpe_characters *tables) {
    m->bytes = text;
    m->count = 0;
    for (size_t at = 0; at < n; m->count++) {
        uint32_t *c = &m->chars[m->count];
        size_t length = naive_character(text + at, n - at, c);
        *c = length > 0 ? *c : NO_CHARACTER;
        m->classes[m->count] = length > 0 ? tables->classes[*c] : PYBPE_CHARACTER_SYMBOL;
        m->starts[m->count] = at;
        at += length > 0 ? length : 1;
    }
    m->starts[m->count] = n;
}

static inline bool naive_in_word(const measured *m, size_t i) {
    return i < m->count && (m->classes[i] == PYBPE_CHARACTER_LETTER || m->classes[i] == PYBPE_CHARACTER_DIGIT);
}

static inline void naive_words_find(const measured *m, naive_spans *words) {
    words->count = 0;
    for (size_t i = 0, end; i < m->count; i = end) {
        for (end = i; naive_in_word(m, end); end++) {
        }
        if (end > i || m->classes[i] == PYBPE_CHARACTER_UNSPACED) {
            words->of[words->count++] = (naive_span){i, end > i ? end : i + 1};
        }
        end = end > i ? end : i + 1;
    }
}

/* Returns whether two spans have the same characters, after `lower` if that is not NULL. */
static inline bool naive_same(const measured *m, naive_span a, naive_span b, const pybpe_characters *lower) {
    bool same = a.to - a.from == b.to - b.from;
    for (size_t i = 0; same && i < a.to - a.from; i++) {
        uint32_t x = m->chars[a.from + i], y = m->chars[b.from + i];
        bool bytes = x != NO_CHARACTER || m->bytes[m->starts[a.from + i]] == m->bytes[m->starts[b.from + i]];
        if (lower != NULL) {
            x = x < lower->lower_count ? lower->lower[x] : x;
            y = y < lower->lower_count ? lower->lower[y] : y;
        }
        same = x == y && bytes;
    }
    return same;
}

static inline void naive_count_chars(const measured *m, uint64_t *out) {
    size_t dots = 0;
    out[PYBPE_MEASURE_CHARS] = m->count;
    for (size_t i = 0; i < m->count; i++) {
        const uint8_t class = m->classes[i];
        out[PYBPE_MEASURE_VISIBLE] += class != PYBPE_CHARACTER_SPACE;
        out[PYBPE_MEASURE_DIGITS] += class == PYBPE_CHARACTER_DIGIT;
        out[PYBPE_MEASURE_SYMBOLS] += class == PYBPE_CHARACTER_SYMBOL || class == PYBPE_CHARACTER_PUNCTUATION;
        out[PYBPE_MEASURE_UNSPACED] += class == PYBPE_CHARACTER_UNSPACED;
        dots = m->chars[i] == '.' ? dots + 1 : 0;
        out[PYBPE_MEASURE_MARKS] += m->chars[i] == '#' || m->chars[i] == 0x2026 || (dots > 0 && dots % 3 == 0);
    }
}

static inline void naive_count_words(const measured *m, const pybpe_characters *tables, uint64_t *out) {
    static naive_spans words;
    naive_words_find(m, &words);
    out[PYBPE_MEASURE_WORDS] = words.count;
    for (size_t i = 0; i < words.count; i++) {
        naive_span word = words.of[i];
        bool alphabetic = false;
        uint64_t before = 0, times = 0;
        out[PYBPE_MEASURE_WORD_CHARS] += word.to - word.from;
        for (size_t k = word.from; k < word.to; k++) {
            alphabetic = alphabetic || m->classes[k] != PYBPE_CHARACTER_DIGIT;
        }
        out[PYBPE_MEASURE_ALPHABETIC] += alphabetic;
        for (size_t k = 0; k < words.count; k++) {
            bool same = naive_same(m, word, words.of[k], tables);
            times += same;
            before += same && k < i;
        }
        out[PYBPE_MEASURE_DISTINCT] += before == 0;
        uint64_t *top = &out[PYBPE_MEASURE_TOP_COUNT];
        *top = times > *top ? times : *top;
    }
}

static inline bool naive_is_white(const measured *m, size_t i) {
    return m->classes[i] == PYBPE_CHARACTER_SPACE || (m->chars[i] >= 0x1C && m->chars[i] <= 0x1F);
}

/* Adds characters without the white space around them, unless nothing is left. */
static inline void naive_span_add(const measured *m, naive_spans *spans, size_t from, size_t to) {
    while (from < to && naive_is_white(m, from)) {
        from += 1;
    }
    while (from < to && naive_is_white(m, to - 1)) {
        to -= 1;
    }
    if (from < to) {
        spans->of[spans->count++] = (naive_span){from, to};
    }
}

/* Finds the lines, or the paragraphs: what is between white space with at least `newlines`. */
static inline void naive_lines_find(const measured *m, size_t newlines, naive_spans *spans) {
    size_t start = 0;
    spans->count = 0;
    for (size_t i = 0, end; i < m->count; i = end) {
        size_t found = 0;
        for (end = i; end < m->count && naive_is_white(m, end); end++) {
            found += m->chars[end] == '\n';
        }
        if (found >= newlines) {
            naive_span_add(m, spans, start, i);
            start = end;
        }
        end = end > i ? end : i + 1;
    }
    naive_span_add(m, spans, start, m->count);
}

/* Counts spans, their characters, and those that occurred before. */
static inline void naive_count_spans(const measured *m, const naive_spans *spans, uint64_t out[4]) {
    for (size_t i = 0; i < spans->count; i++) {
        uint64_t chars = spans->of[i].to - spans->of[i].from;
        bool before = false;
        for (size_t k = 0; k < i; k++) {
            before = before || naive_same(m, spans->of[i], spans->of[k], NULL);
        }
        out[0] += 1;
        out[1] += chars;
        out[2] += before;
        out[3] += before ? chars : 0;
    }
}

static inline bool naive_is_one_of(uint32_t c, const uint32_t *list, size_t count) {
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        found = found || list[i] == c;
    }
    return found;
}

/* Bullets and marks that end sentences: those that the tests write. */
static inline void naive_count_kinds(const measured *m, const naive_spans *lines, uint64_t *out) {
    static const uint32_t bullets[] = {'-', '*', 0x2022};
    static const uint32_t ends[] = {'.', '!', '?', '"', '\'', ';', ':', 0x2026, 0xFF1F};
    for (size_t i = 0; i < lines->count; i++) {
        const size_t from = lines->of[i].from, to = lines->of[i].to;
        uint64_t columns = to - from;
        for (size_t k = from; k < to; k++) {
            columns += m->chars[k] >= 0x1100 && m->chars[k] != NO_CHARACTER;
        }
        out[PYBPE_MEASURE_SHORT_LINES] += columns < 30;
        out[PYBPE_MEASURE_BULLET_LINES] += naive_is_one_of(m->chars[from], bullets, 3);
        out[PYBPE_MEASURE_TERMINAL_LINES] += naive_is_one_of(m->chars[to - 1], ends, 9);
        out[PYBPE_MEASURE_ELLIPSIS_LINES] +=
            m->chars[to - 1] == 0x2026 || (to - from >= 3 && memcmp(m->bytes + m->starts[to] - 3, "...", 3) == 0);
    }
}

/* Writes all of pybpe_measure. n is at most MEASURED_MOST. */
static inline void naive_measure(const uint8_t *text, size_t n, const pybpe_characters *tables, uint64_t *out) {
    static measured m;
    static naive_spans spans;
    memset(out, 0, PYBPE_MEASURES * sizeof *out);
    measured_set(&m, text, n, tables);
    naive_count_chars(&m, out);
    naive_count_words(&m, tables, out);
    naive_lines_find(&m, 2, &spans);
    naive_count_spans(&m, &spans, out + PYBPE_MEASURE_PARAGRAPHS);
    naive_lines_find(&m, 1, &spans);
    naive_count_spans(&m, &spans, out + PYBPE_MEASURE_LINES);
    naive_count_kinds(&m, &spans, out);
}

#endif
