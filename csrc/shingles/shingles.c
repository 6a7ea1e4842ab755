/*
Reads the words of documents, and hashes n words in a row: see shingles.h.
*/
#include "shingles/shingles.h"

/* ---------------------------------------------------------------------------------------------------
Words
*/

/* The hash of a word so far: of its lowercase in UTF-8, 8 bytes at a time. The last ones are followed by zeros. */
typedef struct word_hash {
    uint64_t sum, held;
    unsigned count; /* of the bytes in `held`, the first in the low bits */
} word_hash;

static inline void word_hash_add(word_hash *h, uint32_t c) {
    uint8_t bytes[8] = {0};
    const unsigned n = (unsigned)unicode_write(bytes, c);
    const uint64_t more = load_u64(bytes);
    h->held |= more << 8 * h->count;
    h->count += n;
    if (h->count >= 8) {
        h->count -= 8;
        h->sum = shingle_hash_step(h->sum, h->held);
        h->held = more >> 8 * (n - h->count);
    }
}

static inline uint64_t word_hash_end(const word_hash *h) {
    return shingle_scramble(h->count > 0 ? shingle_hash_step(h->sum, h->held) : h->sum);
}

/* The 8 bytes at text[at], at < n. Zeros follow the text. */
static inline uint64_t bytes_load(const uint8_t *text, size_t n, size_t at) {
    uint8_t bytes[8] = {0};
    if (PYBPE_LIKELY(n - at >= 8)) {
        return load_u64(text + at);
    }
    if (n >= 8) {
        return load_u64(text + n - 8) >> 8 * (8 - (n - at));
    }
    memcpy(bytes, text, n);
    return load_u64(bytes) >> 8 * at;
}

/* Reads the ASCII that a word begins with. Returns whether the word ends there. */
static inline bool ascii_read(shingle_reader *r, word_hash *h, uint64_t *digits) {
    size_t length = 8;
    while (length == 8 && r->at < r->n) {
        const uint64_t bytes = bytes_load(r->text, r->n, r->at);
        const uint64_t low = bytes & EACH_BYTE(0x7F);
        const uint64_t lower = low | EACH_BYTE(0x20); /* digits have this bit */
        const uint64_t in_digits = bytes_between(low, '0', '9') & ~bytes;
        const uint64_t ends = ~((bytes_between(lower, 'a', 'z') & ~bytes) | in_digits) & EACH_BYTE(0x80);
        const uint64_t mask = ends != 0 ? (ends & -ends) - 1 : UINT64_MAX; /* its top bit is of the byte that ends it */
        length = ends != 0 ? (size_t)__builtin_ctzll(ends) / 8 : 8;
        *digits += EACH_BYTE((in_digits & mask) >> 7) >> 56; /* the sum of its bytes */
        r->at += length;
        h->held = lower & (length < 8 ? (UINT64_C(1) << 8 * length) - 1 : UINT64_MAX);
        h->count = (unsigned)length;
        if (length == 8) {
            h->sum = shingle_hash_step(h->sum, h->held);
            h->held = h->count = 0;
        }
    }
    return r->at == r->n || r->text[r->at] < 0x80;
}

/* Reads a word of letters and digits from its start, and returns its hash. */
static inline uint64_t word_read(shingle_reader *r, uint32_t *length) {
    const pybpe_characters *tables = r->tables;
    word_hash h = {0};
    uint64_t digits = 0;
    size_t at = r->at;
    const bool is_ascii = ascii_read(r, &h, &digits);
    uint64_t chars = r->at - at;
    for (at = r->at; !is_ascii && at < r->n; chars++) {
        size_t end = at;
        uint32_t c = shingle_code_point(r->text, r->n, &end);
        uint32_t class = shingle_class(tables, c);
        if (class != PYBPE_CHARACTER_LETTER && class != PYBPE_CHARACTER_DIGIT) {
            break;
        }
        word_hash_add(&h, c < tables->lower_count ? tables->lower[c] : c);
        digits += class == PYBPE_CHARACTER_DIGIT;
        at = end;
    }
    r->at = at;
    r->chars += chars;
    r->classes[PYBPE_CHARACTER_DIGIT] += digits;
    r->classes[PYBPE_CHARACTER_LETTER] += chars - digits;
    r->alphabetic += digits < chars;
    *length = (uint32_t)chars;
    return word_hash_end(&h);
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
            if (class != PYBPE_CHARACTER_UNSPACED) {
                r->at = end;
                continue;
            }
            r->alphabetic++;
            const uint64_t mask = (UINT64_C(1) << 8 * (end - r->at)) - 1;
            hash = shingle_scramble(shingle_hash_step(0, bytes_load(r->text, r->n, r->at) & mask));
            r->at = end;
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

void shingle_window_begin(shingle_window *v, size_t at) {
    v->at = at;
    v->sum = v->chars = 0;
    for (size_t i = at; i < at + v->n; i++) {
        v->sum = v->sum * SHINGLE_BASE + v->w->hashes[i];
        v->chars += shingle_chars(v->w, i);
    }
}

shingle_window shingle_window_new(const shingle_words *w, size_t n) {
    shingle_window v = {.w = w, .n = n, .first_power = 1};
    for (size_t i = 1; i < n; i++) {
        v.first_power *= SHINGLE_BASE;
    }
    shingle_window_begin(&v, 0);
    return v;
}
