/*
Measures the lines and paragraphs of a text, without the white space around them. Empty ones do not count.

A newline separates lines. White space with at least two newlines separates paragraphs.
*/
#include "shingles/shingles.h"

/* The hashes of the lines, or of the paragraphs, that have been seen. An empty slot is 0. */
typedef struct line_set {
    uint64_t *slots;
    size_t count, size; /* size: a power of two, or 0 */
} line_set;

/* A line or a paragraph as far as it has been read: text[start..end). */
typedef struct line_span {
    size_t start, end;
    uint64_t first_char, last_char; /* its characters are numbered from first_char to before last_char */
    bool open;
    line_set seen;
    uint64_t *out; /* the number of lines, the characters in them, then the same of those that were seen before */
} line_span;

typedef struct line_scan {
    const uint8_t *text;
    size_t n;
    const pybpe_characters *tables;
    hash_seed seed;
    uint64_t *out;
    line_span line, paragraph;
    pybpe_allocator mem;
} line_scan;

static inline bool is_white(const pybpe_characters *tables, uint32_t c) {
    return shingle_class(tables, c) == PYBPE_CHARACTER_SPACE || (c >= 0x1C && c <= 0x1F); /* as in Python's str.strip */
}

/* ---------------------------------------------------------------------------------------------------
Repeated lines
*/

static uint64_t *line_slot(const line_set *set, uint64_t hash) {
    size_t slot = (size_t)hash & (set->size - 1);
    while (set->slots[slot] != 0 && set->slots[slot] != hash) {
        slot = (slot + 1) & (set->size - 1);
    }
    return &set->slots[slot];
}

static bool line_set_grow(line_set *set, const pybpe_allocator *mem) {
    line_set larger = {.count = set->count, .size = set->size == 0 ? 64 : 2 * set->size};
    larger.slots = mem_alloc_zeroed(mem, larger.size, sizeof *larger.slots);
    if (larger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < set->size; i++) {
        if (set->slots[i] != 0) {
            *line_slot(&larger, set->slots[i]) = set->slots[i];
        }
    }
    mem_free(mem, set->slots);
    *set = larger;
    return true;
}

/* Counts a complete line or paragraph. Returns false without memory. */
static bool span_count(line_scan *s, line_span *span) {
    line_set *set = &span->seen;
    uint64_t chars = span->last_char - span->first_char;
    if (2 * set->count >= set->size && !line_set_grow(set, &s->mem)) {
        return false;
    }
    uint64_t hash = shingle_line_hash(s->seed, s->text + span->start, span->end - span->start);
    uint64_t *slot = line_slot(set, hash);
    bool repeated = *slot != 0;
    set->count += !repeated;
    *slot = hash;
    span->out[0]++;
    span->out[1] += chars;
    span->out[2] += repeated;
    span->out[3] += repeated ? chars : 0;
    span->open = false;
    return true;
}

/* ---------------------------------------------------------------------------------------------------
Kinds of lines
*/

static uint32_t first_code_point(const line_scan *s, const line_span *span) {
    size_t at = span->start;
    return shingle_code_point(s->text, span->end, &at);
}

static uint32_t last_code_point(const line_scan *s, const line_span *span) {
    uint8_t length;
    return unicode_read_before(s->text + span->start, span->end - span->start, &length);
}

static bool is_one_of(uint32_t c, const uint32_t *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (list[i] == c) {
            return true;
        }
    }
    return false;
}

static bool is_bullet(uint32_t c) {
    static const uint32_t bullets[] = {0x2022, 0x2023, 0x25B6, 0x25C0, 0x25E6, 0x25A0,
                                       0x25A1, 0x25AA, 0x25AB, 0x2013, '-',    '*'};
    return is_one_of(c, bullets, sizeof bullets / sizeof *bullets);
}

static bool is_terminal(uint32_t c) {
    static const uint32_t marks[] = {'.',    '!',    '?',    '"',    '\'',   0x201D, 0x2019, 0x2026, ';',   ':',
                                     0x3002, 0xFF01, 0xFF1F, 0x300D, 0x300F, 0xFF1B, 0xFF1A, 0x964,  0x61F, 0x6D4};
    return is_one_of(c, marks, sizeof marks / sizeof *marks);
}

static bool is_ellipsis(const line_scan *s, const line_span *span) {
    size_t n = span->end - span->start;
    return last_code_point(s, span) == 0x2026 || (n >= 3 && memcmp(s->text + span->end - 3, "...", 3) == 0);
}

/* Returns whether a line has few columns. East Asian characters have two. All of them are from U+1100. */
static bool is_short(const line_scan *s, const line_span *span) {
    enum { COLUMNS = 30 }; /* FineWeb's definition of a short line */
    uint64_t columns = span->last_char - span->first_char;
    for (size_t at = span->start; columns < COLUMNS && at < span->end;) {
        uint32_t c = shingle_code_point(s->text, span->end, &at);
        columns += c >= 0x1100 && c != UNICODE_INVALID;
    }
    return columns < COLUMNS;
}

static bool line_count(line_scan *s) {
    uint32_t last = last_code_point(s, &s->line);
    s->out[PYBPE_MEASURE_BULLET_LINES] += is_bullet(first_code_point(s, &s->line));
    s->out[PYBPE_MEASURE_ELLIPSIS_LINES] += is_ellipsis(s, &s->line);
    s->out[PYBPE_MEASURE_SHORT_LINES] += is_short(s, &s->line);
    s->out[PYBPE_MEASURE_TERMINAL_LINES] += is_terminal(last);
    return span_count(s, &s->line);
}

/* ---------------------------------------------------------------------------------------------------
Finding lines and paragraphs
*/

/* Ends a line, and perhaps a paragraph, at the newlines before a visible character, or at the end of the text. */
static bool spans_end(line_scan *s, size_t newlines) {
    if (s->line.open && !line_count(s)) {
        return false;
    }
    return newlines < 2 || !s->paragraph.open || span_count(s, &s->paragraph);
}

static inline void span_extend(line_span *span, size_t start, size_t end, uint64_t number) {
    if (!span->open) {
        span->open = true;
        span->start = start;
        span->first_char = number;
    }
    span->end = end;
    span->last_char = number + 1;
}

static bool lines_scan(line_scan *s) {
    uint64_t number = 0; /* of the character */
    size_t newlines = 0; /* since the last visible character */
    for (size_t at = 0; at < s->n; number++) {
        size_t start = at;
        uint32_t c = shingle_code_point(s->text, s->n, &at);
        if (is_white(s->tables, c)) {
            newlines += c == '\n';
            continue;
        }
        if (newlines > 0 && !spans_end(s, newlines)) {
            return false;
        }
        newlines = 0;
        span_extend(&s->line, start, at, number);
        span_extend(&s->paragraph, start, at, number);
    }
    return spans_end(s, 2);
}

int shingle_lines_measure(const uint8_t *text, size_t n, const pybpe_characters *tables, uint64_t *out,
                          const pybpe_allocator *mem, pybpe_error *err) {
    line_scan s = {.text = text, .n = n, .tables = tables, .seed = hash_seed_draw(), .out = out, .mem = mem_of(mem)};
    s.line.out = out + PYBPE_MEASURE_LINES;
    s.paragraph.out = out + PYBPE_MEASURE_PARAGRAPHS;
    bool done = lines_scan(&s);
    mem_free(&s.mem, s.line.seen.slots);
    mem_free(&s.mem, s.paragraph.seen.slots);
    return done ? PYBPE_OK : error_set_memory(err, "lines", n);
}
