/*
csrc/documents/divide.c: dividing any text into documents. csrc/hash/crc.c: its checksum, without the instruction that
multiplies polynomials, which CBMC does not know.
*/
#include "any_entropy.h"

#include <base/base.c>
#include <documents/divide.c>
#include <documents/record.c>
#include <hash/crc.c>
#include <json/json.c>
#include <special/special.c>
#include <special/special_automaton.c>
#include <special/special_rules.c>
#include <special/special_strings.c>

#if defined(PROVE)
#include "unicode/unicode.h"
/* The proofs that CBMC takes do not read these tables. */
const uint8_t pybpe_unicode_index[(0x10FFFF >> UNICODE_BLOCK_BITS) + 1];
const uint8_t pybpe_unicode_blocks[1 << UNICODE_BLOCK_BITS];
size_t pybpe_utf8_valid(const uint8_t *text, size_t n) { return *text + n; } /* replaced by its stub */
#else
#include <unicode/unicode.c>
#endif

/* What other proofs show, or the rest of this file. */
int any_document(pybpe_divider *d, const uint8_t *begin, const uint8_t *end, pybpe_error *err) {
    (void)d;
    (void)err;
    CHECK(begin <= end);
    check_readable(begin, (size_t)(end - begin));
    return any_bool() ? PYBPE_OK : PYBPE_ERR_MEMORY;
}

bool any_match(special_scan *scan, special_match *match) {
    string_scan *at = &scan->strings;
    if (at->at >= at->n || any_bool()) {
        return false;
    }
    match->start = (size_t)any_between(at->at, at->n - 1);
    match->end = (size_t)any_between(match->start + 1, at->n);
    at->at = match->end;
    return true;
}

bool any_record(json *lines, const uint8_t *key, size_t key_n, json_record *found) {
    CHECK(lines->at < lines->end && key == NULL && key_n == 0);
    const bool read = any_bool();
    lines->at += read ? any_between(1, (size_t)(lines->end - lines->at)) : 0;
    found->blank = any_bool();
    return read;
}

int any_addition(pybpe_divider *d, const json_record *found, const uint8_t *text, bool *ok, pybpe_error *err) {
    (void)d;
    (void)found;
    (void)text;
    (void)err;
    *ok = any_bool();
    return any_bool() ? PYBPE_OK : PYBPE_ERR_MEMORY;
}

size_t any_valid(const uint8_t *text, size_t n) {
    check_readable(text, n);
    return (size_t)any_between(0, n);
}

static pybpe_divider divider; /* one for all: CBMC takes long for its tables */

static void divide(int kind, size_t n) {
    static pybpe_specials marks;
    uint8_t *text = any_bytes(n);
    divider.marks = &marks; /* their matches come from any_match */
    int code = pybpe_divider_divide(&divider, kind, text, n, NULL);
    CHECK(code == PYBPE_OK || code == PYBPE_ERR_MEMORY || code == PYBPE_ERR_FORMAT);
    CHECK(divider.line_ends <= n);
    free(text);
}

/* A split with any documents, in memory that may have room for another. */
enum { ROOM = 4, DOCUMENTS = 2 };

static void any_part(split_part *part) {
    *part = (split_part){.bytes = NULL};
    if (any_bool()) {
        part->bytes = any_bytes(ROOM);
        part->room = ROOM;
        part->n = (size_t)any_between(0, ROOM);
        part->offsets = (uint64_t *)any_bytes((DOCUMENTS + 1) * sizeof *part->offsets);
        part->offsets_room = DOCUMENTS + 1;
        part->count = (size_t)any_between(0, DOCUMENTS);
    }
}

uint32_t any_crc(const crc_tables *t, const uint8_t *text, size_t n) {
    (void)t;
    check_readable(text, n);
    return (uint32_t)any_u64();
}

/* A document of n bytes, and the separator after it, are copied into the memory of a split. */
void prove_copy(size_t n) {
    split_part part;
    uint8_t *text = any_bytes(n), separator[2] = {0};
    divider = (pybpe_divider){.mem = mem_of(NULL), .parts = &part, .splits = 1, .separator = separator};
    divider.separator_n = (size_t)any_between(0, 2);
    any_part(&part);
    if (document_text_add(&divider, text, text + n, NULL) == PYBPE_OK && n > 0) {
        CHECK(part.count > 0 && part.n <= part.room && part.count < part.offsets_room);
        CHECK(part.offsets[0] == 0 && part.offsets[part.count] == part.n);
        check_readable(part.bytes, part.n);
    }
    free(part.bytes);
    free(part.offsets);
    free(text);
}

size_t any_split(const pybpe_divider *d, const uint8_t *name, size_t n) {
    check_readable(name, n);
    return (size_t)any_between(0, d->splits - 1);
}

/* Any name of n bytes decides for one of up to three splits. */
void prove_split(size_t n) {
    uint64_t last[3] = {any_u64(), any_u64(), any_u64()};
    uint8_t *name = any_bytes(n);
    divider = (pybpe_divider){.last = last, .splits = (size_t)any_between(1, 3)};
    CHECK(split_of(&divider, name, n) < divider.splits);
    free(name);
}

uint32_t any_crc_word(const crc_tables *t, uint32_t x, int first) {
    (void)t;
    CHECK(first >= 3 && first < CRC_TABLES);
    return (uint32_t)any_u64() ^ x;
}

void any_tables(crc_tables *t) {
    any_fill(t->of, sizeof t->of);
    t->folds = false;
}

/* A divider is made of a separator of n bytes, or everything that was allocated for it is freed. */
void prove_make(size_t n) {
    static const uint64_t last[3];
    uint8_t *separator = any_bytes(n);
    pybpe_division how = {.separator = separator, .separator_n = n, .last = last};
    pybpe_divider *d;
    how.splits = (size_t)any_between(0, 3);
    int code = pybpe_divider_new(&d, &how, NULL, NULL);
    CHECK((code == PYBPE_OK) == (d != NULL));
    pybpe_divider_free(d);
    free(separator);
}

/* What records.c shows of unescaping. */
bool any_unescaped(const json_spelling *string, uint8_t *to, size_t *n) {
    check_readable(string->at, string->n);
    any_fill(to, string->n);
    *n = (size_t)any_between(0, string->n);
    return any_bool();
}

int any_added(pybpe_divider *d, found_document found, pybpe_error *err) {
    (void)d;
    (void)err;
    check_readable(found.text, found.n);
    check_readable(found.name, found.name_n);
    return any_bool() ? PYBPE_OK : PYBPE_ERR_MEMORY;
}

/* The text of a record of n bytes, and its cluster, fit in the memory in which they are unescaped. */
void prove_addition(size_t n) {
    uint8_t *line = any_bytes(n);
    size_t text = (size_t)any_between(0, n);
    bool ok = true;
    json_record found = {.text = {.at = line, .n = text, .escaped = any_bool()}};
    if (any_bool()) {
        found.cluster = (json_spelling){.at = line + text, .n = n - text, .escaped = any_bool()};
    }
    divider = (pybpe_divider){.mem = mem_of(NULL)};
#if !defined(PROVE)
    ASSUME(false); /* only whole records have complete escapes */
#endif
    (void)record_add(&divider, &found, line, &ok, NULL);
    free(divider.scratch);
    free(line);
}

/* Each document of a text is in the text. */
#if defined(PROVE)
void prove_lines(size_t n) { divide(PYBPE_DOCUMENTS_LINE, n); }
void prove_blank(size_t n) { divide(PYBPE_DOCUMENTS_BLANK, n); }
void prove_marks(size_t n) { divide(PYBPE_DOCUMENTS_MARK, n); }
void prove_records(size_t n) { divide(PYBPE_DOCUMENTS_RECORD, n); }

/* The checksum reads n bytes, and no more. */
void prove_checksum(size_t n) {
    uint8_t *text = any_bytes(n);
    (void)crc_of(&divider.crc, text, n);
    free(text);
}
#else
/* Any number of splits, any separator, and memory that may be out. */
static void *any_memory(void *context, void *old, size_t n) {
    (void)context;
    if (n > 0 && any_between(0, 63) == 0) {
        return NULL;
    }
    return n > 0 ? realloc(old, n) : (free(old), NULL);
}

static void draw_division(int kind, size_t n) {
    static const uint8_t letters[] = "\n\n\r\"\"{}:,t \\u0a<x\xC2\xA0";
    static const uint64_t last[] = {UINT64_MAX / 3, UINT64_MAX / 2, UINT64_MAX};
    const uint64_t offsets[] = {0, 1, 3};
    const pybpe_strings marks = {(const uint8_t *)"<<x", offsets, 2};
    const uint32_t ids[] = {5, 6};
    const pybpe_allocator mem = {any_memory, NULL};
    pybpe_division how = {.key = (const uint8_t *)"t", .key_n = 1, .separator = (const uint8_t *)"\n", .last = last};
    how.separator_n = any_bool();
    how.splits = (size_t)any_between(1, 3);
    how.has_origins = any_bool();
    if (how.has_origins && any_bool()) {
        how.id = (const uint8_t *)"a";
        how.id_n = 1;
    }
    pybpe_specials *specials = NULL;
    if (any_bool() && pybpe_specials_new(&specials, &marks, ids, NULL, &mem, NULL) == PYBPE_OK) {
        how.marks = specials;
    }
    uint8_t *text = any_bytes(n);
    for (size_t i = 0; i < n; i++) {
        text[i] = letters[any_between(0, sizeof letters - 2)];
    }
    if (n > 9 && any_bool()) { /* a record */
        memcpy(text, "{\"t\":\"", 6);
        memcpy(text + n - 2, "\"}", 2);
    }
    pybpe_divider *d = NULL;
    if (pybpe_divider_new(&d, &how, &mem, NULL) == PYBPE_OK) {
        for (int round = 0; round < 2 && pybpe_divider_divide(d, kind, text, n, NULL) == PYBPE_OK; round++) {
        }
        for (size_t split = 0; split < how.splits; split++) {
            pybpe_strings documents = pybpe_divider_documents(d, split);
            const pybpe_origin *origins = pybpe_divider_origins(d, split);
            CHECK(how.has_origins || origins == NULL);
            for (size_t i = 0; i < documents.count; i++) {
                CHECK(documents.offsets[i + 1] > documents.offsets[i]);
                CHECK(origins == NULL || (origins[i].id <= origins[i].id_end && origins[i].id_end <= n));
            }
            check_readable(documents.bytes, (size_t)strings_total(&documents));
        }
    }
    pybpe_divider_free(d);
    pybpe_specials_free(specials);
    free(text);
}

void prove_lines(size_t n) { draw_division(PYBPE_DOCUMENTS_LINE, n); }
void prove_blank(size_t n) { draw_division(PYBPE_DOCUMENTS_BLANK, n); }
void prove_marks(size_t n) { draw_division(PYBPE_DOCUMENTS_MARK, n); }
void prove_records(size_t n) { draw_division(PYBPE_DOCUMENTS_RECORD, n); }
void prove_checksum(size_t n) { draw_division(PYBPE_DOCUMENTS_LINE, n); }
#endif

PROOFS(PROOF(marks, 0, 4, 2, "", "document_text_add:any_document special_scan_next:any_match")
           PROOF(records, 0, 4, 2, "", "record_read:any_record record_add:any_addition pybpe_utf8_valid:any_valid")
               PROOF(lines, 0, 4, 2, "", "document_text_add:any_document")
                   PROOF(blank, 0, 4, 2, "", "document_text_add:any_document")
                       PROOF(checksum, 0, 18, 2, "", "crc_word:any_crc_word")
                           PROOF(copy, 0, 2, 4, "", "split_of:any_split") PROOF(split, 0, 2, 4, "", "crc_of:any_crc")
                               PROOF(make, 0, 2, 4, "", "crc_tables_fill:any_tables")
                                   PROOF(addition, 0, 5, 4, "", "json_unescape:any_unescaped document_add:any_added")
                                       DRAWN(lines, 5, 20, 2) DRAWN(blank, 5, 20, 2) DRAWN(marks, 5, 20, 2)
                                           DRAWN(records, 5, 40, 2))
