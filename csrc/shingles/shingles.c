/*
Reads the words of documents, and hashes n words in a row: see shingles.h.
*/
#include "shingles/shingles.h"

/* ---------------------------------------------------------------------------------------------------
Words
*/

/* Reads a word of letters and digits from its start, and returns its hash. */
static inline uint64_t word_read(shingle_reader *r, uint32_t *length) {
    const pybpe_characters *tables = r->tables;
    uint64_t h = 0, digits = 0, chars = 0;
    size_t at = r->at;
    while (at < r->n) {
        size_t end = at;
        uint32_t c = shingle_code_point(r->text, r->n, &end);
        uint32_t class = shingle_class(tables, c);
        if (class != PYBPE_CHARACTER_LETTER && class != PYBPE_CHARACTER_DIGIT) {
            break;
        }
        h = shingle_hash_step(h, c < tables->lower_count ? tables->lower[c] : c);
        digits += class == PYBPE_CHARACTER_DIGIT;
        chars++;
        at = end;
    }
    r->at = at;
    r->chars += chars;
    r->classes[PYBPE_CHARACTER_DIGIT] += digits;
    r->classes[PYBPE_CHARACTER_LETTER] += chars - digits;
    r->alphabetic += digits < chars;
    *length = (uint32_t)chars;
    return shingle_scramble(h);
}

/* Counts one character that is not part of a word of letters and digits. An ellipsis of full stops has three. */
static inline void other_read(shingle_reader *r, uint32_t c, uint32_t class) {
    r->chars++;
    r->classes[class]++;
    r->dots = c == '.' ? r->dots + 1 : 0;
    if (r->dots == 3 || c == '#' || c == 0x2026) {
        r->marks++;
        r->dots = 0;
    }
}

void shingle_words_read(shingle_reader *r, shingle_words *w) {
    while (r->at < r->n && w->count < w->room) {
        size_t end = r->at;
        uint32_t length = 1;
        uint32_t c = shingle_code_point(r->text, r->n, &end);
        uint32_t class = shingle_class(r->tables, c);
        uint64_t hash;
        if (class == PYBPE_CHARACTER_LETTER || class == PYBPE_CHARACTER_DIGIT) {
            hash = word_read(r, &length);
            r->dots = 0;
        } else {
            other_read(r, c, class);
            r->at = end;
            if (class != PYBPE_CHARACTER_UNSPACED) {
                continue;
            }
            r->alphabetic++;
            hash = shingle_scramble(shingle_hash_step(0, c));
        }
        r->words++;
        r->word_chars += length;
        if (w->chars != NULL) {
            w->chars[w->count] = length;
        }
        w->hashes[w->count++] = hash;
    }
}

/* ---------------------------------------------------------------------------------------------------
Windows: the hash of n words is a polynomial of their hashes, modulo 2^64
*/

static uint64_t chars_at(const shingle_words *w, size_t i) { return w->chars != NULL ? w->chars[i] : 0; }

static void window_begin(shingle_window *v, size_t at) {
    v->at = at;
    v->sum = v->chars = 0;
    for (size_t i = at; i < at + v->n; i++) {
        v->sum = v->sum * SHINGLE_BASE + v->w->hashes[i];
        v->chars += chars_at(v->w, i);
    }
}

shingle_window shingle_window_new(const shingle_words *w, size_t n) {
    shingle_window v = {.w = w, .n = n, .first_power = 1};
    for (size_t i = 1; i < n; i++) {
        v.first_power *= SHINGLE_BASE;
    }
    window_begin(&v, 0);
    return v;
}

void shingle_window_move(shingle_window *v, size_t to) {
    if (to - v->at >= v->n) {
        window_begin(v, to);
        return;
    }
    const uint64_t *hashes = v->w->hashes;
    for (size_t i = v->at; i < to; i++) {
        v->sum = (v->sum - hashes[i] * v->first_power) * SHINGLE_BASE + hashes[i + v->n];
        v->chars += chars_at(v->w, i + v->n) - chars_at(v->w, i);
    }
    v->at = to;
}
