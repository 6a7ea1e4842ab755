/*
The words of documents, as the cleaning of a corpus counts and compares them. Internal.

A word is a run of letters and digits, or one letter of a script that is written without spaces, such as Chinese.
There, SHINGLE_UNITS such letters count as one word, if most words of a text are of this kind.

    The 2 boats, 港口      The | 2 | boats | 港 | 口

Words are compared by hashes of 64 bits of their lowercase: different words are mistaken for equal with a probability of
10^-19 per pair.
*/
#ifndef PYBPE_SHINGLES_H
#define PYBPE_SHINGLES_H

#include "hash/hash.h"
#include "unicode/unicode.h"

enum {
    SHINGLE_WORDS = 5, /* words in a shingle */
    SHINGLE_UNITS = 2, /* letters per word in scripts without spaces */
    SHINGLE_CLASSES = 8
};

/* The place in a text, and what has been read so far. */
typedef struct shingle_reader {
    const uint8_t *text;
    size_t n, at;
    const pybpe_characters *tables;
    uint64_t classes[SHINGLE_CLASSES]; /* characters by class */
    uint64_t chars, marks, words, word_chars, alphabetic;
    uint32_t dots; /* full stops in a row, outside a counted ellipsis */
} shingle_reader;

/* Words in a row: their hashes, and their lengths in characters if `chars` is not NULL. */
typedef struct shingle_words {
    uint64_t *hashes;
    uint32_t *chars;
    size_t count, room;
} shingle_words;

/* Bijection on 64 bits that spreads every bit over all others: the finalizer of MurmurHash3 (Austin Appleby). */
static inline uint64_t shingle_scramble(uint64_t x) {
    x = (x ^ x >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    x = (x ^ x >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

#define SHINGLE_BASE UINT64_C(0x9E3779B97F4A7C15)

/* One more item of a hash: x becomes part of h. For any x, this is a bijection of h. */
static inline uint64_t shingle_hash_step(uint64_t h, uint64_t x) {
    h ^= x;
    return (h << 29 | h >> 35) * SHINGLE_BASE;
}

/* A reader at the start of a text. */
static inline shingle_reader shingle_read(const uint8_t *text, size_t n, const pybpe_characters *tables) {
    return (shingle_reader){.text = text, .n = n, .tables = tables};
}

/* Returns how many units make a word in the text that r has read. */
static inline uint32_t shingle_units_per_word(const shingle_reader *r) {
    return 2 * r->classes[PYBPE_CHARACTER_UNSPACED] > r->words ? SHINGLE_UNITS : 1;
}

/* The code point at text[*at], which becomes the start of the next one. UNICODE_INVALID for a byte that is not UTF-8.
   *at < n. */
static inline uint32_t shingle_code_point(const uint8_t *text, size_t n, size_t *at) {
    uint32_t c = text[*at];
    uint8_t length = 1;
    if (PYBPE_UNLIKELY(c >= 0x80)) {
        c = unicode_read_multibyte(text + *at, n - *at, &length);
    }
    *at += length;
    return c;
}

/* The class of a code point. */
static inline uint32_t shingle_class(const pybpe_characters *tables, uint32_t c) {
    return c == UNICODE_INVALID ? PYBPE_CHARACTER_SYMBOL : tables->classes[c] & (SHINGLE_CLASSES - 1);
}

/* Appends words until w has `room`, or the text ends. */
void shingle_words_read(shingle_reader *r, shingle_words *w);

/* A window of n words that moves over w: its hash, and its number of characters. */
typedef struct shingle_window {
    const shingle_words *w;
    size_t n, at;
    uint64_t first_power; /* of SHINGLE_BASE, by which the first word is multiplied */
    uint64_t sum, chars;
} shingle_window;

/* A window at the first n words, 1 <= n <= w->count. */
shingle_window shingle_window_new(const shingle_words *w, size_t n);

/* Places the window at the n words from `at`. */
void shingle_window_begin(shingle_window *v, size_t at);

static inline uint64_t shingle_chars(const shingle_words *w, size_t i) { return w->chars != NULL ? w->chars[i] : 0; }

/* Moves the window to the n words from `to`, which is not before its place. Moving it over m words takes O(m) time in
   all, however many moves that takes. */
static inline void shingle_window_move(shingle_window *v, size_t to) {
    if (to - v->at >= v->n) {
        shingle_window_begin(v, to);
        return;
    }
    const uint64_t *hashes = v->w->hashes;
    for (size_t i = v->at; i < to; i++) {
        v->sum = (v->sum - hashes[i] * v->first_power) * SHINGLE_BASE + hashes[i + v->n];
        v->chars += shingle_chars(v->w, i + v->n) - shingle_chars(v->w, i);
    }
    v->at = to;
}

static inline uint64_t shingle_window_hash(const shingle_window *v) { return shingle_scramble(v->sum); }

/* The slot of an n-gram in a table of 2^64 slots. The hash of an n-gram is public. The seed is secret. */
static inline uint64_t shingle_ngram_place(hash_seed seed, uint64_t hash) {
    return hash_mix(hash ^ seed.a, seed.b | 1);
}

/* The hash of a line or paragraph, which is not 0. */
static inline uint64_t shingle_line_hash(hash_seed seed, const uint8_t *p, size_t n) {
    const uint64_t factor = seed.b | 1;
    uint64_t h = seed.a ^ n;
    for (; n >= 8; p += 8, n -= 8) {
        h = hash_mix(h ^ load_u64(p), factor);
    }
    for (; n > 0; p++, n--) {
        h = hash_mix(h ^ *p, factor);
    }
    return h != 0 ? h : 1; /* LCOV_EXCL_BR_LINE: one hash of 2^64 */
}

/* Memory for counting n-grams. It is reused from text to text, and grows. */
typedef struct shingle_repeats {
    pybpe_allocator mem;
    hash_seed seed;
    uint64_t *candidates, *next, *again; /* bits of words: see shingles_repeats.c */
    size_t blocks;                       /* room of either, in uint64_t */
    struct shingle_entry *table;
    size_t slots;
} shingle_repeats;

/* The findings about the n-grams of a text. */
typedef struct shingle_found {
    uint64_t distinct;       /* the number of different ones, if all n-grams were candidates */
    uint64_t top_count;      /* how often the most frequent one occurs, or 0 without any */
    uint64_t top_chars;      /* the characters in all of its occurrences, or 0 if none occurs twice */
    uint64_t repeated_chars; /* the characters in n-grams that occurred before, counted once */
} shingle_found;

void shingle_repeats_free(shingle_repeats *r);

/* Makes all n-grams of `words` words candidates. PYBPE_ERR_MEMORY if there is no memory. */
int shingle_repeats_begin(shingle_repeats *r, size_t words, pybpe_error *err);

/* Counts the candidates among the n-grams of w. Afterward the candidates are the places where an n-gram begins that
   occurs twice: only there can a longer n-gram begin that occurs twice. So call it with ascending n. */
int shingle_repeats_count(shingle_repeats *r, const shingle_words *w, size_t n, shingle_found *found, pybpe_error *err);

/* Measures the lines and paragraphs of a text: adds to out[PYBPE_MEASURE_LINES] and the measures after it. */
int shingle_lines_measure(const uint8_t *text, size_t n, const pybpe_characters *tables, uint64_t *out,
                          const pybpe_allocator *mem, pybpe_error *err);

#endif
