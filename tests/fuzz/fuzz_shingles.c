/*
Measures and signatures of documents against their definitions: the text is decoded to characters, words and lines, and
each word, each run of words and each line is compared with all others. Long texts of many words, whose runs would take
too long to compare, are checked for their characters, words, lines and signatures.
*/
#include <stdbool.h>

#include "fuzz.h"
#include "fuzz_memory.h"
#include "naive_shingles.h"
#include "pybpe_corpus.h"

enum {
    CODE_POINTS = 0x110000,
    LOWER = 0x250,
    COMPARED = 160, /* at most so many words, or lines, are compared with each other */
    MOST_TEXT = 1 << 16,
    NGRAMS = 4,
    COLUMNS = PYBPE_MEASURES + 2 * NGRAMS
};

/* What a byte that is not UTF-8 is. */
#define NO_CHARACTER UINT32_MAX

typedef struct span {
    size_t start, end; /* of characters */
} span;

/* A text by its definition. */
typedef struct document {
    uint32_t characters[MOST_TEXT];
    size_t places[MOST_TEXT + 1]; /* where each character begins */
    size_t count;
    span words[MOST_TEXT];
    uint64_t hashes[MOST_TEXT]; /* of the words */
    size_t words_count, unspaced;
} document;

static uint8_t classes[CODE_POINTS];
static uint32_t lower[LOWER];
static const pybpe_characters tables = {classes, lower, LOWER};

static void classify(uint32_t first, uint32_t last, uint8_t class) { memset(classes + first, class, last - first + 1); }

/* Latin and Greek letters, digits, spaces, punctuation and Chinese; everything else is a symbol. */
static void tables_fill(void) {
    memset(classes, PYBPE_CHARACTER_SYMBOL, sizeof classes);
    classify('!', '~', PYBPE_CHARACTER_PUNCTUATION);
    classify('0', '9', PYBPE_CHARACTER_DIGIT);
    classify('A', 'Z', PYBPE_CHARACTER_LETTER);
    classify('a', 'z', PYBPE_CHARACTER_LETTER);
    classify(0xC0, 0x3FF, PYBPE_CHARACTER_LETTER);
    classify('\t', '\r', PYBPE_CHARACTER_SPACE);
    classify(' ', ' ', PYBPE_CHARACTER_SPACE);
    classify(0x3000, 0x3000, PYBPE_CHARACTER_SPACE);
    classify(0x3001, 0x3003, PYBPE_CHARACTER_PUNCTUATION);
    classify(0x4E00, 0x9FFF, PYBPE_CHARACTER_UNSPACED);
    classify(0x20000, 0x2A6DF, PYBPE_CHARACTER_UNSPACED);
    for (uint32_t c = 0; c < LOWER; c++) {
        lower[c] = (c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE) ? c + 32 : c;
    }
}

/* ---------------------------------------------------------------------------------------------------
Characters and words
*/

/* Reads a character of UTF-8, as RFC 3629 defines it, or one byte that is not part of any. Returns its length. */
static size_t character_read(const uint8_t *text, size_t left, uint32_t *c) {
    const uint8_t b = text[0];
    const size_t n = b < 0x80 ? 1 : b < 0xC2 ? 0 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : b < 0xF5 ? 4 : 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool valid = n > 0 && n <= left;
    uint32_t value = n < 2 ? b : b & (0x7FU >> n);
    for (size_t i = 1; valid && i < n; i++) {
        valid = (text[i] & 0xC0) == 0x80;
        value = value << 6 | (text[i] & 0x3F);
    }
    valid = valid && value >= least[n] && value < CODE_POINTS && (value < 0xD800 || value > 0xDFFF);
    *c = valid ? value : NO_CHARACTER;
    return valid ? n : 1;
}

/* Writes a character as UTF-8. Returns its length. */
static size_t character_write(uint8_t *out, uint32_t c) {
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = 0; i < n; i++) {
        out[i] = (uint8_t)(0x80 | (c >> 6 * (n - 1 - i) & 0x3F));
    }
    out[0] = (uint8_t)(out[0] | 0xF00U >> n);
    return n;
}

static uint8_t class_at(const document *d, size_t i) {
    return d->characters[i] == NO_CHARACTER ? PYBPE_CHARACTER_SYMBOL : classes[d->characters[i]];
}

static bool in_word(const document *d, size_t i) {
    return i < d->count && (class_at(d, i) == PYBPE_CHARACTER_LETTER || class_at(d, i) == PYBPE_CHARACTER_DIGIT);
}

static uint32_t folded(const document *d, size_t i) {
    return d->characters[i] < LOWER ? lower[d->characters[i]] : d->characters[i];
}

static void document_read(document *d, const uint8_t *text, size_t n) {
    d->count = d->words_count = d->unspaced = 0;
    for (size_t at = 0; at < n; d->count++) {
        d->places[d->count] = at;
        at += character_read(text + at, n - at, &d->characters[d->count]);
    }
    d->places[d->count] = n;
    for (size_t i = 0; i < d->count;) {
        size_t end = i;
        while (in_word(d, end)) {
            end++;
        }
        bool unspaced = class_at(d, i) == PYBPE_CHARACTER_UNSPACED;
        d->unspaced += unspaced;
        end += unspaced;
        if (end > i) {
            static uint8_t word[4 * MOST_TEXT];
            size_t size = 0;
            for (size_t k = i; k < end; k++) {
                size += character_write(word + size, folded(d, k));
            }
            d->hashes[d->words_count] = naive_word_hash(word, size);
            d->words[d->words_count++] = (span){i, end};
        }
        i = end > i ? end : i + 1;
    }
}

static void require_counts(const document *d, const uint64_t *found) {
    uint64_t of_class[8] = {0}, marks = 0, dots = 0, chars = 0, alphabetic = 0;
    for (size_t i = 0; i < d->count; i++) {
        of_class[class_at(d, i)]++;
        dots = d->characters[i] == '.' ? dots + 1 : 0;
        marks += d->characters[i] == '#' || d->characters[i] == 0x2026 || (dots > 0 && dots % 3 == 0);
    }
    for (size_t i = 0; i < d->words_count; i++) {
        bool letters = false;
        for (size_t k = d->words[i].start; k < d->words[i].end; k++) {
            letters = letters || class_at(d, k) != PYBPE_CHARACTER_DIGIT;
        }
        alphabetic += letters;
        chars += d->words[i].end - d->words[i].start;
    }
    REQUIRE(found[PYBPE_MEASURE_CHARS] == d->count);
    REQUIRE(found[PYBPE_MEASURE_VISIBLE] == d->count - of_class[PYBPE_CHARACTER_SPACE]);
    REQUIRE(found[PYBPE_MEASURE_DIGITS] == of_class[PYBPE_CHARACTER_DIGIT]);
    REQUIRE(found[PYBPE_MEASURE_SYMBOLS] == of_class[PYBPE_CHARACTER_SYMBOL] + of_class[PYBPE_CHARACTER_PUNCTUATION]);
    REQUIRE(found[PYBPE_MEASURE_UNSPACED] == d->unspaced && found[PYBPE_MEASURE_MARKS] == marks);
    REQUIRE(found[PYBPE_MEASURE_WORDS] == d->words_count && found[PYBPE_MEASURE_WORD_CHARS] == chars);
    REQUIRE(found[PYBPE_MEASURE_ALPHABETIC] == alphabetic);
}

/* ---------------------------------------------------------------------------------------------------
Runs of words
*/

static bool same_word(const document *d, size_t a, size_t b) {
    size_t n = d->words[a].end - d->words[a].start;
    bool same = d->words[b].end - d->words[b].start == n;
    for (size_t i = 0; same && i < n; i++) {
        same = folded(d, d->words[a].start + i) == folded(d, d->words[b].start + i);
    }
    return same;
}

static bool same_run(const document *d, size_t a, size_t b, size_t n) {
    bool same = true;
    for (size_t i = 0; same && i < n; i++) {
        same = same_word(d, a + i, b + i);
    }
    return same;
}

/* What the library says of runs of n words. */
typedef struct runs {
    uint64_t distinct, top_count, top_chars, repeated_chars;
} runs;

static runs compare_runs(const document *d, size_t n) {
    runs r = {0};
    uint64_t longest = 0;
    size_t done = 0; /* words before it have been counted as repeated, or are not */
    for (size_t i = 0; i + n <= d->words_count; i++) {
        uint64_t times = 0, chars = 0;
        bool before = false;
        for (size_t k = 0; k + n <= d->words_count; k++) {
            bool same = same_run(d, i, k, n);
            times += same;
            before = before || (same && k < i);
        }
        for (size_t k = i; k < i + n; k++) {
            uint64_t length = d->words[k].end - d->words[k].start;
            chars += length;
            r.repeated_chars += before && k >= done ? length : 0;
        }
        done = before ? i + n : done;
        r.distinct += !before;
        if (times > r.top_count || (times == r.top_count && chars > longest)) {
            r.top_count = times;
            longest = chars;
        }
    }
    r.top_chars = r.top_count > 1 ? r.top_count * longest : 0;
    return r;
}

static size_t units_of(const document *d) { return 2 * d->unspaced > d->words_count ? 2 : 1; }

static void require_runs(const document *d, const uint32_t *ngrams, const uint64_t *found) {
    runs r = compare_runs(d, 1);
    REQUIRE(found[PYBPE_MEASURE_DISTINCT] == r.distinct && found[PYBPE_MEASURE_TOP_COUNT] == r.top_count);
    for (size_t i = 0; i < NGRAMS; i++) {
        r = compare_runs(d, ngrams[i] * units_of(d));
        REQUIRE(found[PYBPE_MEASURES + 2 * i] == r.top_chars);
        REQUIRE(found[PYBPE_MEASURES + 2 * i + 1] == r.repeated_chars);
    }
}

/* ---------------------------------------------------------------------------------------------------
Lines and paragraphs
*/

static bool is_white(const document *d, size_t i) {
    uint32_t c = d->characters[i];
    return class_at(d, i) == PYBPE_CHARACTER_SPACE || (c >= 0x1C && c <= 0x1F);
}

/* Cuts a text at white space that contains `newlines` newlines or more. Returns the number of visible parts. */
static size_t parts_find(const document *d, size_t newlines, span *parts) {
    size_t count = 0, seen = newlines;
    for (size_t i = 0; i < d->count; i++) {
        if (is_white(d, i)) {
            seen += d->characters[i] == '\n';
            continue;
        }
        if (seen >= newlines) {
            parts[count++].start = i;
        }
        parts[count - 1].end = i + 1;
        seen = 0;
    }
    return count;
}

static bool same_part(const document *d, const uint8_t *text, const span *a, const span *b) {
    size_t n = d->places[a->end] - d->places[a->start];
    return n == d->places[b->end] - d->places[b->start] &&
           memcmp(text + d->places[a->start], text + d->places[b->start], n) == 0;
}

/* The number of parts, and of their characters; if `compares`, the same of those that occurred before. */
static void require_parts(const document *d, const uint8_t *text, const span *parts, size_t count, bool compares,
                          const uint64_t *found) {
    uint64_t chars = 0, repeated = 0, repeated_chars = 0;
    for (size_t i = 0; i < count; i++) {
        bool before = false;
        for (size_t k = 0; compares && k < i && !before; k++) {
            before = same_part(d, text, &parts[i], &parts[k]);
        }
        chars += parts[i].end - parts[i].start;
        repeated += before;
        repeated_chars += before ? parts[i].end - parts[i].start : 0;
    }
    REQUIRE(found[0] == count && found[1] == chars);
    REQUIRE(!compares || (found[2] == repeated && found[3] == repeated_chars));
}

static bool is_one_of(uint32_t c, const char *list) {
    for (uint32_t one; *list != '\0';) {
        list += character_read((const uint8_t *)list, strlen(list), &one);
        if (one == c) {
            return true;
        }
    }
    return false;
}

static void require_lines(const document *d, const uint8_t *text, const uint64_t *found) {
    static span parts[MOST_TEXT];
    size_t count = parts_find(d, 2, parts);
    require_parts(d, text, parts, count, count <= COMPARED, found + PYBPE_MEASURE_PARAGRAPHS);
    count = parts_find(d, 1, parts);
    require_parts(d, text, parts, count, count <= COMPARED, found + PYBPE_MEASURE_LINES);
    uint64_t bullets = 0, ellipses = 0, shorts = 0, terminals = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t first = d->characters[parts[i].start], last = d->characters[parts[i].end - 1];
        size_t bytes = d->places[parts[i].end] - d->places[parts[i].start], columns = 0;
        for (size_t k = parts[i].start; k < parts[i].end; k++) {
            columns += d->characters[k] >= 0x1100 && d->characters[k] != NO_CHARACTER ? 2 : 1;
        }
        bullets += is_one_of(first, "•‣▶◀◦■□▪▫–-*");
        terminals += is_one_of(last, ".!?\"'”’…;:。！？」』；：।؟۔");
        ellipses += last == 0x2026 || (bytes >= 3 && memcmp(text + d->places[parts[i].end] - 3, "...", 3) == 0);
        shorts += columns < 30;
    }
    REQUIRE(found[PYBPE_MEASURE_BULLET_LINES] == bullets && found[PYBPE_MEASURE_ELLIPSIS_LINES] == ellipses);
    REQUIRE(found[PYBPE_MEASURE_SHORT_LINES] == shorts && found[PYBPE_MEASURE_TERMINAL_LINES] == terminals);
}

/* ---------------------------------------------------------------------------------------------------
Shingles
*/

static void require_signature(const uint64_t *shingles, size_t count, const uint32_t *row) {
    for (uint64_t i = 0; i < PYBPE_MINHASH_SIZE; i++) {
        const uint64_t x = naive_scramble((i + 1) * NAIVE_BASE);
        const uint32_t a = (uint32_t)(x >> 32) | 1, b = (uint32_t)x;
        uint32_t least = UINT32_MAX;
        for (size_t k = 0; k < count; k++) {
            uint32_t y = a * (uint32_t)(shingles[k] >> 32) + b;
            least = y < least ? y : least;
        }
        REQUIRE(row[i] == least);
    }
}

static void require_shingles(const document *d, const uint8_t *text, size_t n, const pybpe_strings *texts) {
    static uint64_t want[MOST_TEXT + 1], got[MOST_TEXT + 1];
    uint32_t row[PYBPE_MINHASH_SIZE];
    size_t count = naive_shingles(d->hashes, d->words_count, 5 * units_of(d), text, n, want), found = 0;
    REQUIRE(pybpe_text_shingles(got, &found, text, n, &tables, &fuzz_memory, NULL) == PYBPE_OK);
    REQUIRE(found == count && memcmp(got, want, count * sizeof *got) == 0);
    REQUIRE(pybpe_texts_minhash(row, NULL, texts, &tables, &fuzz_memory, NULL) == PYBPE_OK);
    require_signature(want, count, row);
}

/* ---------------------------------------------------------------------------------------------------
Texts
*/

/* Pieces, bytes as they are, and parts of the text so far again: a few words again, or so often that the words are more
   than are held in memory. The caller frees the text. */
static uint8_t *read_text(fuzz_input *in, size_t *n) {
    static const char *const pieces[] = {"a ", "B",        " b",  "the ", "12",   "\n", "\n\n", "...",  "…",
                                         "中", "\xE4\xB8", "É",   "é",    "\xFF", "#",  "-",    "\x1C", "\xE3\x80\x80",
                                         "𠀀", "Ω ",       ".\n", "• "};
    enum { PIECES = sizeof pieces / sizeof *pieces };
    static uint8_t text[MOST_TEXT];
    size_t at = 0;
    while (in->size > 0 && at < MOST_TEXT - 4) {
        unsigned x = fuzz_byte(in);
        if (x < 8 * PIECES) {
            at = (size_t)(stpcpy((char *)text + at, pieces[x % PIECES]) - (char *)text);
        } else if (x < 240 || at == 0) {
            text[at++] = (uint8_t)fuzz_byte(in);
        } else {
            size_t back = 1 + fuzz_byte(in) % at, more = x < 254 ? 8 * (x - 239) : x == 254 ? 2000 : 40000;
            for (size_t end = at + more < MOST_TEXT ? at + more : MOST_TEXT; at < end; at++) {
                text[at] = text[at - back];
            }
        }
    }
    fuzz_input made = {text, at};
    return fuzz_bytes(&made, at, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static document d;
    fuzz_input in = {data, size};
    pybpe_error err;
    uint64_t found[COLUMNS];
    uint32_t ngrams[NGRAMS];
    size_t n;
    if (lower['a'] == 0) {
        tables_fill();
    }
    for (size_t i = 0; i < NGRAMS; i++) {
        ngrams[i] = 1 + fuzz_below(&in, 12) + (i > 0 ? ngrams[i - 1] : 0);
    }
    uint8_t *text = read_text(&in, &n);
    const uint64_t offsets[] = {0, n};
    const pybpe_strings texts = {text, offsets, 1};
    document_read(&d, text, n);
    const bool compares = d.words_count <= COMPARED;
    const pybpe_measuring what = {
        .ngrams = ngrams, .count = compares ? NGRAMS : 0, .repeated_words = compares, .lines = 1};
    REQUIRE(pybpe_texts_measure(found, &texts, &tables, &what, &fuzz_memory, &err) == PYBPE_OK);
    require_counts(&d, found);
    require_lines(&d, text, found);
    if (compares) {
        require_runs(&d, ngrams, found);
    }
    require_shingles(&d, text, n, &texts);
    free(text);
    return 0;
}
