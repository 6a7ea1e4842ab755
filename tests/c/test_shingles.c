/*
Measures and signatures of documents, against the definitions, on random texts with bytes that are not UTF-8; arguments
that are refused; and every allocation failing. (tests/py/test_corpus_filters.py and test_corpus_duplicates.py compare
texts in many scripts with references in Python.)
*/
#include "base/base.h"
#include "check.h"
#include "naive_measures.h"
#include "naive_shingles.h"
#include "random_state.h"
#include "shingles/shingles.h"
#include "small_vocab.h"

enum {
    CODE_POINTS = 0x110000,
    TEXT_BYTES = 1500,
    WORDS = TEXT_BYTES,
    NGRAMS = 5,
    COLUMNS = PYBPE_MEASURES + 2 * NGRAMS
};

static uint8_t classes[CODE_POINTS];
static uint32_t lower[128];
static const pybpe_characters tables = {classes, lower, 128};
static const uint32_t ngrams[NGRAMS] = {1, 2, 3, 7, 40};
static const pybpe_measuring everything = {.ngrams = ngrams, .count = NGRAMS, .repeated_words = 1, .lines = 1};

/* ASCII, and Chinese characters. */
static void tables_fill(void) {
    memset(classes, PYBPE_CHARACTER_SYMBOL, sizeof classes);
    for (uint32_t c = 0; c < 128; c++) {
        bool upper = c >= 'A' && c <= 'Z';
        lower[c] = upper ? c + 32 : c;
        if (upper || (c >= 'a' && c <= 'z')) {
            classes[c] = PYBPE_CHARACTER_LETTER;
        } else if (c >= '0' && c <= '9') {
            classes[c] = PYBPE_CHARACTER_DIGIT;
        } else if (c == ' ' || (c >= 9 && c <= 13)) {
            classes[c] = PYBPE_CHARACTER_SPACE;
        } else if (c > 32 && c < 127) {
            classes[c] = PYBPE_CHARACTER_PUNCTUATION;
        }
    }
    memset(classes + 0x4E00, PYBPE_CHARACTER_UNSPACED, 0x5200);
}

/* ---------------------------------------------------------------------------------------------------
By definition
*/

typedef struct naive_word {
    const uint8_t *bytes;
    size_t n;
    uint64_t chars;
} naive_word;

static bool is_word_byte(uint8_t byte) {
    return byte < 128 && (classes[byte] == PYBPE_CHARACTER_LETTER || classes[byte] == PYBPE_CHARACTER_DIGIT);
}

/* The Chinese character of these texts. */
static bool is_unspaced(const uint8_t *text, size_t left) { return left >= 3 && memcmp(text, "\xE4\xB8\xAD", 3) == 0; }

static size_t naive_words(const uint8_t *text, size_t n, naive_word *words) {
    size_t count = 0;
    for (size_t i = 0; i < n;) {
        size_t length = 0;
        while (i + length < n && is_word_byte(text[i + length])) {
            length++;
        }
        bool unspaced = length == 0 && is_unspaced(text + i, n - i);
        size_t bytes = unspaced ? 3 : length;
        if (bytes > 0) {
            words[count++] = (naive_word){text + i, bytes, unspaced ? 1 : length};
        }
        i += bytes > 0 ? bytes : 1;
    }
    return count;
}

static bool same_word(const naive_word *a, const naive_word *b) {
    for (size_t i = 0; a->n == b->n && i < a->n; i++) {
        uint8_t x = a->bytes[i], y = b->bytes[i];
        if ((x < 128 ? lower[x] : x) != (y < 128 ? lower[y] : y)) {
            return false;
        }
    }
    return a->n == b->n;
}

static bool same_ngram(const naive_word *a, const naive_word *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!same_word(a + i, b + i)) {
            return false;
        }
    }
    return true;
}

static void naive_ngrams(const naive_word *words, size_t count, size_t n, uint64_t *top, uint64_t *repeated) {
    uint64_t most = 1;
    size_t done = 0;
    *top = *repeated = 0;
    for (size_t i = 0; i + n <= count; i++) {
        uint64_t times = 0, chars = 0;
        bool before = false;
        for (size_t k = 0; k + n <= count; k++) {
            bool same = same_ngram(words + i, words + k, n);
            times += same;
            before = before || (same && k < i);
        }
        for (size_t k = i; k < i + n; k++) {
            chars += words[k].chars;
            *repeated += before && k >= done ? words[k].chars : 0;
        }
        done = before ? i + n : done;
        if (times > 1 && (times > most || (times == most && times * chars > *top))) {
            most = times;
            *top = times * chars;
        }
    }
}

static void expect_definition(const uint8_t *text, size_t n) {
    static naive_word words[WORDS];
    uint8_t *exact = malloc(n + (n == 0)); /* so that sanitizers see reads beyond it */
    const uint64_t offsets[2] = {0, n};
    const pybpe_strings texts = {exact, offsets, 1};
    uint64_t found[COLUMNS];
    memcpy(exact, text, n);
    CHECK_EQ(pybpe_texts_measure(found, &texts, &tables, &everything, NULL, NULL), PYBPE_OK);
    size_t count = naive_words(text, n, words);
    uint64_t unspaced = 0;
    for (size_t i = 0; i < count; i++) {
        unspaced += words[i].n == 3 && words[i].chars == 1;
    }
    uint64_t want[PYBPE_MEASURES];
    naive_measure(text, n, &tables, want);
    for (size_t i = 0; i < PYBPE_MEASURES; i++) {
        CHECK_EQ(found[i], want[i]);
    }
    for (size_t i = 0; i < NGRAMS; i++) {
        uint64_t top, repeated;
        naive_ngrams(words, count, ngrams[i] * (2 * unspaced > count ? 2 : 1), &top, &repeated);
        CHECK_EQ(found[PYBPE_MEASURES + 2 * i], top);
        CHECK_EQ(found[PYBPE_MEASURES + 2 * i + 1], repeated);
    }
    free(exact);
}

static size_t random_text(uint8_t *text, size_t n, bool chinese) {
    static const char *const pieces[] = {
        "\xE4\xB8\xAD", "a ",           "B ",           "b ",           "the ",     "A",   "12", "7a", "\n", "\n\n",
        " \n ",         "\x1C",         "- ",           "\xE2\x80\xA2", "...",      "..",  "!",  "# ", "*",  ":",
        "? ",           "\xE2\x80\xA6", "\xEF\xBC\x9F", "\xE1\x84\x80", "\xE4\xB8", "\xFF"};
    const uint32_t count = random_below(3) > 0 ? sizeof pieces / sizeof *pieces : 12; /* fewer short lines */
    size_t at = 0;
    while (at + 4 < n) {
        const char *piece = pieces[chinese && random_below(3) > 0 ? 0 : random_below(count)];
        memcpy(text + at, piece, strlen(piece));
        at += strlen(piece);
    }
    return at;
}

static void check_random_texts(void) {
    uint8_t text[TEXT_BYTES] = {0};
    expect_definition(text, 0);
    for (int i = 0; i < 300; i++) {
        size_t n = random_text(text, 5 + random_below(i % 20 == 0 ? TEXT_BYTES - 5 : 150), i % 3 == 0);
        expect_definition(text, n);
    }
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        text[i] = i % 2 == 0 ? 'a' : ' ';
    }
    expect_definition(text, 400); /* one word, again and again */
}

/* Measures that are asked for alone are the same as with all others. */
static void expect_parts(const pybpe_strings *text, const uint64_t *all) {
    const pybpe_measuring words = {.repeated_words = 1}, lines = {.lines = 1},
                          only_ngrams = {.ngrams = ngrams, .count = NGRAMS};
    const pybpe_measuring chars = {.lines = 1, .no_words = 1};
    uint64_t found[COLUMNS];
    CHECK_EQ(pybpe_texts_measure(found, text, &tables, &words, NULL, NULL), PYBPE_OK);
    CHECK_EQ(found[PYBPE_MEASURE_DISTINCT], all[PYBPE_MEASURE_DISTINCT]);
    CHECK_EQ(found[PYBPE_MEASURE_TOP_COUNT], all[PYBPE_MEASURE_TOP_COUNT]);
    CHECK_EQ(found[PYBPE_MEASURE_LINES], 0);
    CHECK_EQ(pybpe_texts_measure(found, text, &tables, &lines, NULL, NULL), PYBPE_OK);
    CHECK_EQ(found[PYBPE_MEASURE_LINES], all[PYBPE_MEASURE_LINES]);
    CHECK_EQ(found[PYBPE_MEASURE_DISTINCT], 0);
    CHECK_EQ(pybpe_texts_measure(found, text, &tables, &chars, NULL, NULL), PYBPE_OK);
    CHECK_EQ(found[PYBPE_MEASURE_CHARS], all[PYBPE_MEASURE_CHARS]);
    CHECK_EQ(found[PYBPE_MEASURE_LINES], all[PYBPE_MEASURE_LINES]);
    CHECK_EQ(pybpe_texts_measure(found, text, &tables, &only_ngrams, NULL, NULL), PYBPE_OK);
    CHECK(memcmp(found + PYBPE_MEASURES, all + PYBPE_MEASURES, 2 * NGRAMS * sizeof *found) == 0);
    CHECK_EQ(found[PYBPE_MEASURE_DISTINCT], 0);
    CHECK_EQ(found[PYBPE_MEASURE_LINES], 0);
}

/* Texts in one call have the measures and signatures that each has alone; what is not asked for is 0. */
static void check_many_texts(void) {
    enum { TEXTS = 30, BYTES = 3000 };
    static uint8_t text[TEXTS * BYTES];
    static uint64_t rows[TEXTS * COLUMNS], counts[TEXTS * PYBPE_MEASURES];
    const pybpe_measuring nothing = {0},
                          more = {.ngrams = ngrams, .count = NGRAMS, .repeated_words = 2, .lines = 2}; /* "not 0" */
    uint32_t signatures[TEXTS * PYBPE_MINHASH_SIZE], signature[PYBPE_MINHASH_SIZE];
    uint64_t offsets[TEXTS + 1] = {0}, alone[COLUMNS];
    for (size_t i = 0; i < TEXTS; i++) {
        offsets[i + 1] =
            offsets[i] + random_text(text + offsets[i], 5 + random_below(i % 9 == 0 ? BYTES - 5 : 90), false);
    }
    const pybpe_strings texts = {text, offsets, TEXTS};
    CHECK_EQ(pybpe_texts_measure(rows, &texts, &tables, &more, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_texts_measure(counts, &texts, &tables, &nothing, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_texts_minhash(signatures, NULL, &texts, &tables, NULL, NULL), PYBPE_OK);
    for (size_t i = 0; i < TEXTS; i++) {
        const uint64_t ends[] = {0, offsets[i + 1] - offsets[i]};
        const pybpe_strings one = {text + offsets[i], ends, 1};
        CHECK_EQ(pybpe_texts_measure(alone, &one, &tables, &everything, NULL, NULL), PYBPE_OK);
        CHECK(memcmp(alone, rows + i * COLUMNS, sizeof alone) == 0);
        CHECK_EQ(pybpe_texts_minhash(signature, NULL, &one, &tables, NULL, NULL), PYBPE_OK);
        CHECK(memcmp(signature, signatures + i * PYBPE_MINHASH_SIZE, sizeof signature) == 0);
        expect_parts(&one, alone);
        memset(alone + PYBPE_MEASURE_DISTINCT, 0, (PYBPE_MEASURES - PYBPE_MEASURE_DISTINCT) * sizeof *alone);
        CHECK(memcmp(alone, counts + i * PYBPE_MEASURES, PYBPE_MEASURES * sizeof *alone) == 0);
    }
}

/* Lines that differ in one byte are different, wherever it is. */
static void check_similar_lines(void) {
    enum { LONGEST = 40 };
    static uint8_t text[LONGEST * (LONGEST + 1)];
    for (size_t length = 1; length <= LONGEST; length++) {
        const uint64_t offsets[] = {0, length * (length + 1)};
        const pybpe_strings texts = {text, offsets, 1};
        uint64_t found[COLUMNS];
        memset(text, 'x', sizeof text);
        for (size_t i = 0; i < length; i++) {
            text[i * (length + 1) + i] = 'y';
            text[i * (length + 1) + length] = '\n';
        }
        CHECK_EQ(pybpe_texts_measure(found, &texts, &tables, &everything, NULL, NULL), PYBPE_OK);
        CHECK_EQ(found[PYBPE_MEASURE_LINES], length);
        CHECK_EQ(found[PYBPE_MEASURE_REPEATED_LINES], 0);
    }
}

/* ---------------------------------------------------------------------------------------------------
Counting n-grams
*/

static bool bit_at(const uint64_t *bits, size_t i) { return (bits[i / 64] >> i % 64 & 1) != 0; }

/* Returns whether the n words from i occur elsewhere too. */
static bool naive_repeats(const shingle_words *w, size_t i, size_t n) {
    bool repeats = false;
    for (size_t k = 0; k + n <= w->count; k++) {
        repeats = repeats || (k != i && memcmp(w->hashes + i, w->hashes + k, n * sizeof *w->hashes) == 0);
    }
    return repeats;
}

/* After n-grams are counted, the candidates are the places of those that occur twice. */
static void check_candidates(void) {
    uint64_t hashes[300];
    uint32_t chars[300];
    shingle_repeats r = {.mem = mem_of(NULL), .seed = {1, 2}};
    for (size_t count = 1; count <= 300; count += count < 4 ? 1 : 31) {
        const shingle_words w = {hashes, chars, count, count};
        for (size_t i = 0; i < count; i++) {
            hashes[i] = naive_scramble(random_below(8));
            chars[i] = 1;
        }
        CHECK_EQ(shingle_repeats_begin(&r, count, NULL), PYBPE_OK);
        for (size_t n = 1; n <= 5; n++) {
            shingle_found found;
            int wrong = 0;
            CHECK_EQ(shingle_repeats_count(&r, &w, n, &found, NULL), PYBPE_OK);
            for (size_t i = 0; i < count; i++) {
                wrong += bit_at(r.candidates, i) != (i + n <= count && naive_repeats(&w, i, n));
            }
            CHECK_EQ(wrong, 0);
        }
    }
    shingle_repeats_free(&r);
}

/* So many different words that they are counted in parts; the first ones once again. The secret numbers are even: if
   words then met in a few places of the table, this would take hours. */
static void check_parts(void) {
    enum { MOST = 1 << 20, AGAIN = 100, PARTED = MOST + AGAIN };
    static uint64_t hashes[PARTED];
    static uint32_t chars[PARTED];
    shingle_repeats r = {.mem = mem_of(NULL), .seed = {UINT64_C(0xD1B54A32D192ED02), NAIVE_BASE - 1}};
    const shingle_words w = {hashes, chars, PARTED, PARTED};
    for (size_t i = 0; i < PARTED; i++) {
        hashes[i] = naive_scramble(i % MOST + 1);
        chars[i] = 3;
    }
    shingle_found found;
    CHECK_EQ(shingle_repeats_begin(&r, PARTED, NULL), PYBPE_OK);
    CHECK_EQ(shingle_repeats_count(&r, &w, 1, &found, NULL), PYBPE_OK);
    CHECK(found.distinct == MOST && found.top_count == 2);
    CHECK(found.top_chars == 6 && found.repeated_chars == 3 * AGAIN);
    shingle_repeats_free(&r);
}

/* Parts are not always of the same size: here the first of two has all n-grams, which do not fit in its table, so that
   they are divided again. */
static void check_unequal_parts(void) {
    enum { MOST = 1600000, AGAIN = 100, PARTED = MOST + AGAIN };
    uint64_t *hashes = malloc(PARTED * sizeof *hashes);
    uint32_t *chars = malloc(PARTED * sizeof *chars);
    shingle_repeats r = {.mem = mem_of(NULL), .seed = {UINT64_C(0xD1B54A32D192ED03), NAIVE_BASE}};
    const shingle_words w = {hashes, chars, PARTED, PARTED};
    uint64_t word = 0;
    for (size_t i = 0; i < MOST;) {
        hashes[i] = ++word;
        i += (hash_mix(naive_scramble(word) ^ r.seed.b, r.seed.a | 1) & 1) == 0; /* it belongs to the first part */
    }
    memcpy(hashes + MOST, hashes, AGAIN * sizeof *hashes);
    for (size_t i = 0; i < PARTED; i++) {
        chars[i] = 3;
    }
    shingle_found found;
    CHECK_EQ(shingle_repeats_begin(&r, PARTED, NULL), PYBPE_OK);
    CHECK_EQ(shingle_repeats_count(&r, &w, 1, &found, NULL), PYBPE_OK);
    CHECK(found.distinct == MOST && found.top_count == 2);
    CHECK(found.top_chars == 6 && found.repeated_chars == 3 * AGAIN);
    shingle_repeats_free(&r);
    free(hashes);
    free(chars);
}

/* A window that moves by one word at a time takes the same time for any size. */
static void check_windows(void) {
    enum { MOVED = 1 << 18, SIZE = MOVED / 2 };
    static uint64_t hashes[MOVED];
    const shingle_words w = {.hashes = hashes, .count = MOVED, .room = MOVED};
    for (size_t i = 0; i < MOVED; i++) {
        hashes[i] = naive_scramble(i);
    }
    shingle_window moved = shingle_window_new(&w, SIZE);
    for (size_t to = 1; to <= MOVED - SIZE; to++) {
        shingle_window_move(&moved, to);
    }
    const shingle_words last = {.hashes = hashes + MOVED - SIZE, .count = SIZE, .room = SIZE};
    const shingle_window expected = shingle_window_new(&last, SIZE);
    CHECK_EQ(shingle_window_hash(&moved), shingle_window_hash(&expected));
}

/* ---------------------------------------------------------------------------------------------------
Signatures
*/

static uint64_t hash_of(const naive_word *w) {
    uint8_t *bytes = malloc(w->n);
    for (size_t i = 0; i < w->n; i++) {
        bytes[i] = w->bytes[i] < 0x80 ? (uint8_t)lower[w->bytes[i]] : w->bytes[i];
    }
    const uint64_t hash = naive_word_hash(bytes, w->n);
    free(bytes);
    return hash;
}

/* The shingles of a text. Returns their number. */
static size_t text_shingles(const uint8_t *text, size_t n, uint64_t *shingles) {
    naive_word *words = malloc((n + 1) * sizeof *words);
    uint64_t *hashes = malloc((n + 1) * sizeof *hashes);
    size_t count = naive_words(text, n, words), unspaced = 0;
    for (size_t i = 0; i < count; i++) {
        unspaced += words[i].bytes[0] >= 0x80;
        hashes[i] = hash_of(&words[i]);
    }
    size_t found = naive_shingles(hashes, count, 2 * unspaced > count ? 10 : 5, text, n, shingles);
    free(words);
    free(hashes);
    return found;
}

static void expect_shingles(const uint8_t *text, size_t n) {
    uint64_t *found = malloc((n + 1) * sizeof *found);
    uint64_t *want = malloc((n + 1) * sizeof *want);
    size_t count = 0;
    CHECK_EQ(pybpe_text_shingles(found, &count, text, n, &tables, NULL, NULL), PYBPE_OK);
    CHECK_EQ(count, text_shingles(text, n, want));
    CHECK(memcmp(found, want, count * sizeof *want) == 0);
    free(found);
    free(want);
}

/* Texts without words, with about as many as a shingle has, and with about as many as are hashed or held at a time. */
static void check_shingles(void) {
    enum { MOST = 3 * (1 << 14) };
    static const char *const units[] = {"Ab ", "\xE4\xB8\xAD"};
    const size_t edges[] = {6, 12, 1 << 10, 1 << 11, 1 << 14, 1 << 15};
    uint8_t *text = malloc(3 * MOST);
    expect_shingles((const uint8_t *)"", 0);
    expect_shingles((const uint8_t *)".", 1);
    expect_shingles((const uint8_t *)"\x80 ...", 5);
    for (size_t unit = 0; unit < 2; unit++) {
        for (size_t i = 0; i < MOST; i++) {
            memcpy(text + 3 * i, units[i % 7 == 0 ? 1 - unit : unit], 3);
        }
        for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
            for (size_t words = edges[i] < 16 ? 0 : edges[i] - 2; words <= edges[i] + 12; words++) {
                expect_shingles(text, 3 * words);
            }
        }
    }
    free(text);
    /* Words of all lengths, with characters beyond ASCII anywhere: these tables have no letters there. */
    const char *const words = "abcdefgh ABCDEFGHIJKLMNOP0 0123456789 a1b2c3d4e5f6 x\xC3\xA9yzabcdefgh \xE4\xB8\xAD"
                              "abcdefgh12345678";
    for (size_t n = 0; n <= strlen(words); n++) {
        for (size_t at = 0; at <= n; at++) {
            expect_shingles((const uint8_t *)words + at, n - at);
        }
    }
}

/* Texts with few words have a hash instead of a signature, if the caller wants it. */
static void check_only_shingles(void) {
    static const uint8_t text[] = "a b c d e f, A B c d, a b c, a b c d E, !";
    const uint64_t offsets[] = {0, 11, 20, 20, 27, 38, 41};
    enum { TEXTS = sizeof offsets / sizeof *offsets - 1, BAND = 6, BANDS = PYBPE_MINHASH_SIZE / BAND };
    const pybpe_strings texts = {text, offsets, TEXTS};
    uint32_t all[TEXTS * PYBPE_MINHASH_SIZE], rows[TEXTS * PYBPE_MINHASH_SIZE], *row = rows;
    uint64_t only[TEXTS], hashes[64], keys[BANDS * TEXTS];
    CHECK_EQ(pybpe_texts_minhash(all, NULL, &texts, &tables, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_texts_minhash(rows, only, &texts, &tables, NULL, NULL), PYBPE_OK);
    for (size_t i = 0; i < TEXTS; i++) {
        size_t n = (size_t)(offsets[i + 1] - offsets[i]), count;
        CHECK_EQ(pybpe_text_shingles(hashes, &count, text + offsets[i], n, &tables, NULL, NULL), PYBPE_OK);
        const bool is_long = i == 0 || i == 4;
        CHECK_EQ(only[i], is_long ? 0 : n == 0 ? 1 : hashes[0]);
        CHECK(!is_long || memcmp(row, all + i * PYBPE_MINHASH_SIZE, PYBPE_MINHASH_SIZE * sizeof *row) == 0);
        row += is_long ? PYBPE_MINHASH_SIZE : 0;
    }
    CHECK_EQ(pybpe_signatures_cut(keys, all, TEXTS, BANDS, BAND, NULL), PYBPE_OK);
    for (size_t i = 0; i < BANDS * TEXTS; i++) {
        uint64_t h = 0;
        for (size_t k = 0; k < BAND; k++) {
            h = naive_hash_step(h, all[i % TEXTS * PYBPE_MINHASH_SIZE + i / TEXTS * BAND + k]);
        }
        CHECK_EQ(keys[i], naive_scramble(h));
    }
    CHECK_EQ(pybpe_signatures_cut(keys, all, 0, PYBPE_MINHASH_SIZE, 1, NULL), PYBPE_OK);
}

/* Python's hashlib gives the same digest of the digests of texts of each length. */
static void check_digests(void) {
    enum { TEXTS = 300 };
    static const uint8_t expected[PYBPE_DIGEST_SIZE] = {0xB0, 0xCC, 0x90, 0x37, 0x16, 0x93, 0x13, 0xCE,
                                                        0xF0, 0xF8, 0x7F, 0xFA, 0x5F, 0xBE, 0x5C, 0xF5};
    uint8_t text[TEXTS], digests[(TEXTS + 1) * PYBPE_DIGEST_SIZE], *const last = digests + TEXTS * PYBPE_DIGEST_SIZE;
    for (size_t n = 0; n < TEXTS; n++) {
        const pybpe_strings one = {text, (const uint64_t[]){0, n}, 1};
        CHECK_EQ(pybpe_texts_digest(digests + n * PYBPE_DIGEST_SIZE, &one, NULL), PYBPE_OK);
        text[n] = (uint8_t)(7 * n % 251);
    }
    /* The bytes of texts that are all empty may be NULL. */
    const pybpe_strings empty = {NULL, (const uint64_t[]){0, 0}, 1};
    uint8_t of_nothing[PYBPE_DIGEST_SIZE];
    CHECK_EQ(pybpe_texts_digest(of_nothing, &empty, NULL), PYBPE_OK);
    CHECK(memcmp(of_nothing, digests, sizeof of_nothing) == 0);
    const pybpe_strings all = {digests, (const uint64_t[]){0, TEXTS * PYBPE_DIGEST_SIZE}, 1};
    CHECK_EQ(pybpe_texts_digest(last, &all, NULL), PYBPE_OK);
    CHECK(memcmp(last, expected, sizeof expected) == 0);
}

static void check_signatures(void) {
    enum { TEXTS = 3, BYTES = 200000 };
    uint8_t *text = malloc(TEXTS * BYTES);
    const uint64_t offsets[TEXTS + 1] = {0, 30, BYTES, 2 * BYTES};
    const pybpe_strings texts = {text, offsets, TEXTS};
    uint32_t rows[TEXTS * PYBPE_MINHASH_SIZE];
    uint64_t *hashes = malloc((BYTES + 1) * sizeof *hashes);
    memset(text, ' ', TEXTS * BYTES);
    random_text(text, 2 * BYTES, false);
    CHECK_EQ(pybpe_texts_minhash(rows, NULL, &texts, &tables, NULL, NULL), PYBPE_OK);
    for (size_t i = 0; i < TEXTS; i++) {
        size_t count = 0, counted = 0, n = (size_t)(offsets[i + 1] - offsets[i]);
        CHECK_EQ(pybpe_text_shingles(hashes, &count, text + offsets[i], n, &tables, NULL, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_text_shingles(NULL, &counted, text + offsets[i], n, &tables, NULL, NULL), PYBPE_OK);
        CHECK(count >= 1 && count <= n + 1 && counted == count);
        for (uint64_t k = 0; k < PYBPE_MINHASH_SIZE; k++) {
            uint64_t z = naive_scramble((k + 1) * NAIVE_BASE);
            uint32_t least = UINT32_MAX;
            for (size_t s = 0; s < count; s++) {
                uint32_t y = ((uint32_t)(z >> 32) | 1) * (uint32_t)(hashes[s] >> 32) + (uint32_t)z;
                least = y < least ? y : least;
            }
            CHECK_EQ(rows[i * PYBPE_MINHASH_SIZE + k], least);
        }
    }
    free(hashes);
    free(text);
}

/* ---------------------------------------------------------------------------------------------------
Refusals and failures
*/

static void check_refusals(void) {
    const uint64_t descending[3] = {0, 2, 1};
    const uint64_t good[2] = {0, 1};
    const uint64_t huge[2] = {0, UINT64_C(1) << 32};
    const uint32_t wrong[2][2] = {{2, 2}, {0, 1}};
    const pybpe_measuring nothing = {0};
    pybpe_strings texts = {(const uint8_t *)"ab", descending, 2};
    uint64_t out[2 * (PYBPE_MEASURES + 4)];
    uint32_t rows[2 * PYBPE_MINHASH_SIZE];
    uint8_t digests[2 * PYBPE_DIGEST_SIZE];
    pybpe_error err;
    CHECK_EQ(pybpe_texts_measure(out, &texts, &tables, &nothing, NULL, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 1);
    CHECK_EQ(pybpe_texts_minhash(rows, NULL, &texts, &tables, NULL, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_texts_digest(digests, &texts, &err), PYBPE_ERR_VALUE);
    const size_t cuts[][2] = {
        {0, 1}, {1, 0}, {1, PYBPE_MINHASH_SIZE + 1}, {PYBPE_MINHASH_SIZE, 2}, {SIZE_MAX, SIZE_MAX}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        CHECK_EQ(pybpe_signatures_cut(out, rows, 1, cuts[i][0], cuts[i][1], &err), PYBPE_ERR_VALUE);
    }
    texts = (pybpe_strings){(const uint8_t *)"a", good, 1};
    for (size_t i = 0; i < 2; i++) {
        const pybpe_measuring what = {.ngrams = wrong[i], .count = 2};
        CHECK_EQ(pybpe_texts_measure(out, &texts, &tables, &what, NULL, &err), PYBPE_ERR_VALUE);
        CHECK_EQ(err.offset, 1 - i);
    }
    if (sizeof(size_t) > 4) {
        texts.offsets = huge;
        CHECK_EQ(pybpe_texts_measure(out, &texts, &tables, &nothing, NULL, &err), PYBPE_ERR_LIMIT);
    }
    texts.count = 0;
    CHECK_EQ(pybpe_texts_measure(out, &texts, &tables, &everything, NULL, &err), PYBPE_OK);
}

/* All functions, with the n-th allocation failing. */
static int measure_all(const uint8_t *text, size_t n, const pybpe_allocator *mem, uint64_t *found) {
    const uint64_t offsets[2] = {0, n};
    const pybpe_strings texts = {text, offsets, 1};
    uint32_t row[PYBPE_MINHASH_SIZE];
    size_t count;
    int code = pybpe_texts_measure(found, &texts, &tables, &everything, mem, NULL);
    code = code == PYBPE_OK ? pybpe_texts_minhash(row, NULL, &texts, &tables, mem, NULL) : code;
    return code == PYBPE_OK ? pybpe_text_shingles(NULL, &count, text, n, &tables, mem, NULL) : code;
}

static void check_failing_memory(void) {
    enum { BYTES = 20000 };
    static uint8_t text[BYTES];
    uint64_t expected[COLUMNS], found[COLUMNS];
    size_t n = random_text(text, BYTES, false);
    CHECK_EQ(measure_all(text, n, NULL, expected), PYBPE_OK);
    int code = PYBPE_ERR_MEMORY;
    for (long left = 0; code != PYBPE_OK && left < 1000; left++) {
        failing_memory memory = {.left = left};
        const pybpe_allocator mem = {failing_resize, &memory};
        code = measure_all(text, n, &mem, found);
        CHECK(code == PYBPE_OK || code == PYBPE_ERR_MEMORY);
        CHECK_EQ(memory.blocks, 0);
    }
    CHECK_EQ(code, PYBPE_OK);
    CHECK(memcmp(expected, found, sizeof found) == 0);
}

int main(void) {
    tables_fill();
    check_random_texts();
    check_many_texts();
    check_similar_lines();
    check_candidates();
    check_windows();
    check_shingles();
    check_signatures();
    check_only_shingles();
    check_digests();
    check_refusals();
    check_failing_memory();
    check_parts();
    check_unequal_parts();
    return check_report("test_shingles");
}
