/*
Measures of documents. Measures of n-grams are in shingles_repeats.c, measures of lines in shingles_lines.c.
*/
#include "shingles/shingles.h"

/* Memory for the texts of a call. */
typedef struct measuring {
    const pybpe_characters *tables;
    pybpe_measuring what;
    pybpe_allocator mem;
    shingle_words words;
    shingle_repeats repeats;
} measuring;

static int words_grow(measuring *m, pybpe_error *err) {
    size_t room = m->words.room < 1024 ? 1024 : m->words.room + m->words.room / 2;
    uint64_t *hashes = mem_resize_array(&m->mem, m->words.hashes, room, sizeof *hashes);
    PYBPE_TRY(memory_check(hashes, "words", room * sizeof *hashes, err));
    m->words.hashes = hashes;
    uint32_t *chars = mem_resize_array(&m->mem, m->words.chars, room, sizeof *chars);
    PYBPE_TRY(memory_check(chars, "words", room * sizeof *chars, err));
    m->words.chars = chars;
    m->words.room = room;
    return PYBPE_OK;
}

/* Reads all words of a text. If only counts are needed, a block of words overwrites the one before it. */
static int words_read_all(measuring *m, shingle_reader *r, bool keep, pybpe_error *err) {
    m->words.count = 0;
    while (r->at < r->n) {
        if (m->words.count == m->words.room && (keep || m->words.room == 0)) {
            PYBPE_TRY(words_grow(m, err));
        }
        m->words.count = keep ? m->words.count : 0;
        shingle_words_read(r, &m->words);
    }
    return PYBPE_OK;
}

static void counts_store(const shingle_reader *r, uint64_t *out) {
    out[PYBPE_MEASURE_CHARS] = r->chars;
    out[PYBPE_MEASURE_VISIBLE] = r->chars - r->classes[PYBPE_CHARACTER_SPACE];
    out[PYBPE_MEASURE_DIGITS] = r->classes[PYBPE_CHARACTER_DIGIT];
    out[PYBPE_MEASURE_SYMBOLS] = r->classes[PYBPE_CHARACTER_SYMBOL] + r->classes[PYBPE_CHARACTER_PUNCTUATION];
    out[PYBPE_MEASURE_UNSPACED] = r->classes[PYBPE_CHARACTER_UNSPACED];
    out[PYBPE_MEASURE_MARKS] = r->marks;
    out[PYBPE_MEASURE_WORDS] = r->words;
    out[PYBPE_MEASURE_WORD_CHARS] = r->word_chars;
    out[PYBPE_MEASURE_ALPHABETIC] = r->alphabetic;
}

/* Counts the n-grams of the words that were read. Single words are counted first: they have no units. */
static int ngrams_measure(measuring *m, uint32_t units, uint64_t *out, pybpe_error *err) {
    shingle_found found = {0};
    int code = shingle_repeats_begin(&m->repeats, m->words.count, err);
    if (code == PYBPE_OK && m->what.repeated_words != 0) {
        code = shingle_repeats_count(&m->repeats, &m->words, 1, &found, err);
        out[PYBPE_MEASURE_DISTINCT] = found.distinct;
        out[PYBPE_MEASURE_TOP_COUNT] = found.top_count;
    }
    for (size_t i = 0; code == PYBPE_OK && i < m->what.count; i++) {
        code = shingle_repeats_count(&m->repeats, &m->words, (size_t)m->what.ngrams[i] * units, &found, err);
        out[PYBPE_MEASURES + 2 * i] = found.top_chars;
        out[PYBPE_MEASURES + 2 * i + 1] = found.repeated_chars;
    }
    return code;
}

/* The number of characters in valid UTF-8: a character has one byte that is no continuation. */
static uint64_t chars_count(const uint8_t *text, size_t n) {
    uint64_t chars = 0;
    for (size_t i = 0; i < n; i++) {
        chars += !byte_is_continuation(text[i]);
    }
    return chars;
}

static int text_measure(measuring *m, const uint8_t *text, size_t n, uint64_t *out, pybpe_error *err) {
    const bool repeats = m->what.count > 0 || m->what.repeated_words != 0;
    shingle_reader r = shingle_read(text, n, m->tables);
    int code = PYBPE_OK;
    if (m->what.no_words != 0 && !repeats && pybpe_utf8_valid(text, n) == n) {
        r.chars = chars_count(text, n);
    } else {
        code = words_read_all(m, &r, repeats, err);
    }
    memset(out, 0, (PYBPE_MEASURES + 2 * m->what.count) * sizeof *out);
    counts_store(&r, out);
    if (code == PYBPE_OK && repeats) {
        code = ngrams_measure(m, shingle_units_per_word(&r), out, err);
    }
    if (code == PYBPE_OK && m->what.lines != 0) {
        code = shingle_lines_measure(text, n, m->tables, out, &m->mem, err);
    }
    return code;
}

static int ngrams_check(const uint32_t *ngrams, size_t count, pybpe_error *err) {
    const int code = array_check(ngrams, count, "the lengths of n-grams", err);
    for (size_t i = 0; i < count && code == PYBPE_OK; i++) {
        if (ngrams[i] < 1 || (i > 0 && ngrams[i] <= ngrams[i - 1])) {
            return error_set(err, PYBPE_ERR_VALUE, i, "the lengths of n-grams must be at least 1 and ascend");
        }
    }
    return code;
}

int pybpe_texts_measure(uint64_t *out, const pybpe_strings *texts, const pybpe_characters *tables,
                        const pybpe_measuring *what, const pybpe_allocator *mem, pybpe_error *err) {
    measuring m = {.tables = tables, .what = *what, .mem = mem_of(mem)};
    m.repeats = (shingle_repeats){.mem = mem_of(mem), .seed = hash_seed_draw()};
    int code = strings_check(texts, "texts", err);
    code = code == PYBPE_OK ? ngrams_check(what->ngrams, what->count, err) : code;
    for (size_t i = 0; code == PYBPE_OK && i < texts->count; i++) {
        uint64_t n = texts->offsets[i + 1] - texts->offsets[i];
        if (n > UINT32_MAX) {
            code = error_set(err, PYBPE_ERR_LIMIT, i, "a text of %llu bytes is too long to measure: the limit is 4 GiB",
                             (unsigned long long)n);
            break;
        }
        uint64_t *row = out + i * (PYBPE_MEASURES + 2 * what->count);
        code = text_measure(&m, string_at(texts, i), (size_t)n, row, err);
    }
    shingle_repeats_free(&m.repeats);
    mem_free(&m.mem, m.words.hashes);
    mem_free(&m.mem, m.words.chars);
    return code;
}
