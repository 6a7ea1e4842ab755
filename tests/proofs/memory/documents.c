/*
csrc/divide.c: dividing any text into documents.
*/
#define getentropy any_entropy

#include "prove.h"

#include <base.c>
#include <divide.c>
#include <record.c>
#include <special.c>
#include <special_automaton.c>
#include <special_rules.c>
#include <special_strings.c>

#if defined(PROVE)
#include "unicode.h"
/* The proofs that CBMC takes do not read these tables. */
const uint8_t pybpe_unicode_index[(0x10FFFF >> UNICODE_BLOCK_BITS) + 1];
const uint8_t pybpe_unicode_blocks[1 << UNICODE_BLOCK_BITS];
size_t pybpe_utf8_valid(const uint8_t *text, size_t n) { return *text + n; } /* replaced by its stub */
#else
#include <unicode.c>
#endif

int getentropy(void *to, size_t n) {
    any_fill(to, n);
    return 0;
}

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

bool any_record(const uint8_t *at, const uint8_t *end, const uint8_t *key, size_t key_n, json_record *found) {
    CHECK(at < end && key == NULL && key_n == 0);
    found->end = at + any_between(1, (size_t)(end - at));
    found->blank = any_bool();
    return any_bool();
}

int any_addition(pybpe_divider *d, const json_record *found, bool *ok, pybpe_error *err) {
    (void)d;
    (void)found;
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

/* Each document of a text is in the text. */
#if defined(PROVE)
void prove_lines(size_t n) { divide(PYBPE_DOCUMENTS_LINE, n); }
void prove_blank(size_t n) { divide(PYBPE_DOCUMENTS_BLANK, n); }
void prove_marks(size_t n) { divide(PYBPE_DOCUMENTS_MARK, n); }
void prove_records(size_t n) { divide(PYBPE_DOCUMENTS_RECORD, n); }

/* The checksum reads n bytes, and no more. */
void prove_checksum(size_t n) {
    uint8_t *text = any_bytes(n);
    (void)crc_of(&divider, text, n);
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
    pybpe_specials *specials = NULL;
    if (any_bool() && pybpe_specials_new(&specials, &marks, ids, &mem, NULL) == PYBPE_OK) {
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
            for (size_t i = 0; i < documents.count; i++) {
                CHECK(documents.offsets[i + 1] > documents.offsets[i]);
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
                   PROOF(blank, 0, 4, 2, "", "document_text_add:any_document") DRAWN(checksum, 0, 40, 2)
                       DRAWN(lines, 5, 20, 2) DRAWN(blank, 5, 20, 2) DRAWN(marks, 5, 20, 2) DRAWN(records, 5, 40, 2))
