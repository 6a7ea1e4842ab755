/*
Normalization forms NFC and NFKC of Unicode (UAX #15), with the tables of Hugging Face's `tokenizers`.

A text is already normalized unless one of its characters changes, or may compose with the text before it, or a mark
follows a mark of a higher class. Nearly all text is normalized, so that is checked first, without writing anything
(quick_scan). Otherwise the text between two characters that start something new is processed:

    text         ... x  e  U+0301  U+0323  y ...
                        |               |
                        from            until: y does not change, is not a mark, and does not compose

    decompose    e  U+0301  U+0323                  marks are collected up to the next character that is not one
    order        e  U+0323  U+0301                  by class; stable, so that equal classes keep their order
    compose      U+1EB9  U+0301                     a mark with the character before all marks, unless a kept mark
                                                    of its class is between

Hangul is composed by arithmetic and never decomposed. Decomposing would matter only for a syllable followed by a final
consonant, and that composes with the same result as after decomposing.

A few marks are sorted by insertion, more by counting, so that a run of any length costs O(1) per mark. Memory grows
with the longest run of marks and with the output.

The tables (normalize_data.h) have two stages, like the tables of unicode.h:

    code point -> normal_index: block -> normal_blocks: number of a record -> normal_records -> places in the two others

    normal_sequences     number of characters, then these with their classes in the top bytes
    normal_compositions  number of pairs, then pairs: the second character, and the result with the first

A byte that is not UTF-8 is unchanged. It starts something new, and nothing composes with it.
*/
#include "unicode/unicode.h"

/* One kind of character. A place is 0 if there is no entry. */
typedef struct normal_record {
    uint8_t class; /* of a mark: higher ones come later. 0: no mark */
    uint8_t flags;
    uint16_t canonical;    /* decomposition */
    uint16_t compatible;   /* the same for NFKC, where it differs from `canonical` */
    uint16_t compositions; /* with this character as the first */
} normal_record;

#include "unicode/normalize_data.h"

enum { NORMAL_BLOCK_BITS = 7 };
enum { NFC_CHANGES = 1, NFKC_CHANGES = 2, JOINS = 4 }; /* flags */
enum { FEW_MARKS = 16 };
enum { HANGUL_L = 0x1100, HANGUL_V = 0x1161, HANGUL_T = 0x11A7, HANGUL_S = 0xAC00 };
enum { HANGUL_LS = 19, HANGUL_VS = 21, HANGUL_TS = 28, HANGUL_SS = HANGUL_LS * HANGUL_VS * HANGUL_TS };
#define NO_CHARACTER UINT32_MAX
#define CODE_POINT_MASK UINT32_C(0xFFFFFF)

const char *pybpe_normalizer_unicode_version(void) { return NORMAL_UNICODE_VERSION; }

static const normal_record *record_of(uint32_t code_point) {
    if (code_point >= NORMAL_LIMIT) {
        return &normal_records[0];
    }
    uint32_t start = (uint32_t)normal_index[code_point >> NORMAL_BLOCK_BITS] << NORMAL_BLOCK_BITS;
    uint32_t place = code_point & ((1U << NORMAL_BLOCK_BITS) - 1);
    return &normal_records[normal_blocks[start | place]];
}

/* ---------------------------------------------------------------------------------------------------
Text that is already normalized
*/

/* Skips ASCII, which never changes. Returns the position of the first other byte. */
static size_t ascii_skip(const uint8_t *text, size_t n, size_t at) {
    while (n - at >= 8 && (load_u64(text + at) & UINT64_C(0x8080808080808080)) == 0) {
        at += 8;
    }
    while (at < n && text[at] < 0x80) {
        at++;
    }
    return at;
}

/* The position at or after `at` (the start of something new) where processing must begin. `n` if there is none. */
static size_t quick_scan(const uint8_t *text, size_t n, size_t at, uint8_t not_flags) {
    size_t start = at; /* of the last character that starts something new */
    uint8_t class = 0;
    while (at < n) {
        if (text[at] < 0x80) {
            at = ascii_skip(text, n, at);
            start = at - 1;
            class = 0;
            continue;
        }
        uint8_t length;
        uint32_t code_point = unicode_read_multibyte(text + at, n - at, &length);
        const normal_record *record = record_of(code_point);
        if ((record->flags & not_flags) != 0 || (record->class != 0 && record->class < class)) {
            return start;
        }
        class = record->class;
        start = class == 0 ? at : start;
        at += length;
    }
    return n;
}

/* ---------------------------------------------------------------------------------------------------
Work
*/

typedef struct normal_work {
    const pybpe_allocator *mem;
    bool compatible;
    uint8_t not_flags; /* of characters that do not start something new, or change */
    uint8_t *out;
    size_t length, room;
    uint32_t starter; /* the character that marks compose with. NO_CHARACTER at the start and after a byte that is not
    UTF-8 */
    uint32_t *marks;  /* the marks after it, with their classes in the top bytes. As much room again is used for
    sorting */
    size_t marks_count, marks_room;
} normal_work;

static bool out_room(normal_work *w, size_t more) {
    size_t need;
    const bool fits = size_add(w->length, more, &need);
    uint8_t *out = fits ? mem_reserve(w->mem, w->out, &w->room, need, 1) : NULL; /* LCOV_EXCL_BR_LINE: in 64 bits */
    w->out = out != NULL ? out : w->out;
    return out != NULL;
}

static bool out_bytes(normal_work *w, const uint8_t *bytes, size_t n) {
    if (!out_room(w, n)) {
        return false;
    }
    if (n > 0) {
        memcpy(w->out + w->length, bytes, n);
        w->length += n;
    }
    return true;
}

static bool out_character(normal_work *w, uint32_t c) {
    if (!out_room(w, 4)) {
        return false;
    }
    w->length += unicode_write(w->out + w->length, c);
    return true;
}

/* The composition of two characters, or NO_CHARACTER. */
static uint32_t compose(uint32_t first, uint32_t second) {
    if (first - HANGUL_L < HANGUL_LS && second - HANGUL_V < HANGUL_VS) {
        return HANGUL_S + ((first - HANGUL_L) * HANGUL_VS + second - HANGUL_V) * HANGUL_TS;
    }
    if (first - HANGUL_S < HANGUL_SS && (first - HANGUL_S) % HANGUL_TS == 0 && second - HANGUL_T - 1 < HANGUL_TS - 1) {
        return first + second - HANGUL_T;
    }
    if (first == NO_CHARACTER) {
        return NO_CHARACTER;
    }
    const uint32_t *pairs = &normal_compositions[record_of(first)->compositions];
    for (uint32_t i = 0; i < pairs[0]; i++) {
        if (pairs[1 + 2 * i] == second) {
            return pairs[2 + 2 * i];
        }
    }
    return NO_CHARACTER;
}

static void marks_insert(uint32_t *marks, size_t count) {
    for (size_t i = 1; i < count; i++) {
        uint32_t mark = marks[i];
        size_t k = i;
        for (; k > 0 && marks[k - 1] >> 24 > mark >> 24; k--) {
            marks[k] = marks[k - 1];
        }
        marks[k] = mark;
    }
}

static void marks_count_sort(uint32_t *marks, size_t count, uint32_t *sorted) {
    size_t starts[257] = {0};
    for (size_t i = 0; i < count; i++) {
        starts[(marks[i] >> 24) + 1] += 1;
    }
    for (size_t class = 0; class < 256; class++) {
        starts[class + 1] += starts[class];
    }
    for (size_t i = 0; i < count; i++) {
        sorted[starts[marks[i] >> 24]++] = marks[i];
    }
    memcpy(marks, sorted, count * sizeof *marks);
}

/* Sorts the marks and composes the starter with those that it combines with. */
static void marks_compose(normal_work *w) {
    if (w->marks_count <= FEW_MARKS) {
        marks_insert(w->marks, w->marks_count);
    } else {
        marks_count_sort(w->marks, w->marks_count, w->marks + w->marks_room);
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->marks_count; i++) {
        uint32_t mark = w->marks[i];
        bool blocked = kept > 0 && w->marks[kept - 1] >> 24 == mark >> 24;
        uint32_t whole = blocked ? NO_CHARACTER : compose(w->starter, mark & CODE_POINT_MASK);
        if (whole != NO_CHARACTER) {
            w->starter = whole;
        } else {
            w->marks[kept++] = mark;
        }
    }
    w->marks_count = kept;
}

/* Writes the starter and the marks that it did not combine with. */
static bool gathered_write(normal_work *w) {
    bool written = w->starter == NO_CHARACTER || out_character(w, w->starter);
    for (size_t i = 0; i < w->marks_count && written; i++) {
        written = out_character(w, w->marks[i] & CODE_POINT_MASK);
    }
    w->starter = NO_CHARACTER;
    w->marks_count = 0;
    return written;
}

static bool mark_add(normal_work *w, uint32_t mark) {
    uint32_t *marks = mem_reserve(w->mem, w->marks, &w->marks_room, w->marks_count + 1, 2 * sizeof *marks);
    if (marks == NULL) {
        return false;
    }
    w->marks = marks;
    marks[w->marks_count++] = mark;
    return true;
}

/* Takes the next character of the decomposed text, with its class in the top byte. */
static bool character_add(normal_work *w, uint32_t character) {
    if (character >> 24 != 0) {
        return mark_add(w, character);
    }
    if (w->marks_count > 0) {
        marks_compose(w);
    }
    uint32_t whole = w->marks_count == 0 ? compose(w->starter, character) : NO_CHARACTER;
    if (whole == NO_CHARACTER) {
        if (!gathered_write(w)) {
            return false;
        }
        whole = character;
    }
    w->starter = whole;
    return true;
}

static bool decomposed_add(normal_work *w, uint32_t code_point, const normal_record *record) {
    size_t place = w->compatible && record->compatible != 0 ? record->compatible : record->canonical;
    if (place == 0) {
        return character_add(w, (uint32_t)record->class << 24 | code_point);
    }
    const uint32_t *parts = &normal_sequences[place];
    bool added = true;
    for (uint32_t i = 1; i <= parts[0] && added; i++) {
        added = character_add(w, parts[i]);
    }
    return added;
}

/* Processes the text from `at` to the next character that starts something new, and sets *end to its position. */
static bool stretch_work(normal_work *w, const uint8_t *text, size_t n, size_t at, size_t *end) {
    size_t start = at;
    bool done = true;
    while (at < n && done) {
        uint8_t length = 1;
        uint32_t code_point = text[at] < 0x80 ? text[at] : unicode_read_multibyte(text + at, n - at, &length);
        const normal_record *record = record_of(code_point);
        if (at > start && record->class == 0 && (record->flags & w->not_flags) == 0) {
            break;
        }
        if (code_point == UNICODE_INVALID) {
            done = out_bytes(w, text + at, 1);
        } else {
            done = decomposed_add(w, code_point, record);
        }
        at += length;
    }
    *end = at;
    marks_compose(w);
    return done && gathered_write(w);
}

static bool text_work(normal_work *w, const uint8_t *text, size_t n, size_t first) {
    size_t copied = 0;
    for (size_t at = first; at < n; at = quick_scan(text, n, copied, w->not_flags)) {
        if (!out_bytes(w, text + copied, at - copied) || !stretch_work(w, text, n, at, &copied)) {
            return false;
        }
    }
    return out_bytes(w, text + copied, n - copied);
}

int pybpe_normalize(uint8_t **out, size_t *length, int normalizer, const uint8_t *text, size_t n,
                    const pybpe_allocator *mem, pybpe_error *err) {
    if (normalizer != PYBPE_NORMALIZER_NFC && normalizer != PYBPE_NORMALIZER_NFKC) {
        *out = NULL;
        return error_set(err, PYBPE_ERR_VALUE, 0, "normalizer %d is unknown; expected 1 (NFC) or 2 (NFKC)", normalizer);
    }
    *out = NULL;
    const bool compatible = normalizer == PYBPE_NORMALIZER_NFKC;
    normal_work w = {.mem = mem,
                     .compatible = compatible,
                     .not_flags = JOINS | (compatible ? NFKC_CHANGES : NFC_CHANGES),
                     .starter = NO_CHARACTER};
    size_t first = quick_scan(text, n, 0, w.not_flags);
    if (first == n) {
        *length = n;
        return PYBPE_OK;
    }
    bool done = out_room(&w, n) && text_work(&w, text, n, first);
    mem_free(mem, w.marks);
    if (!done) {
        mem_free(mem, w.out);
        return error_set_memory(err, "a normalized text", n);
    }
    *out = w.out;
    *length = w.length;
    return PYBPE_OK;
}

void pybpe_normalize_free(uint8_t *out, const pybpe_allocator *mem) { mem_free(mem, out); }
