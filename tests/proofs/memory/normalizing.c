/*
csrc/unicode/normalize.c: looking up any character, and normalizing any text with any kinds of characters.
*/
#include "prove.h"

#include <base/base.c>
#include <unicode/normalize.c>

enum { MARKS = 4, ROOM = 8 };

static normal_work work;

static uint32_t any_code_point(void) { return (uint32_t)any_between(0, any_bool() ? NORMAL_LIMIT : UINT32_MAX); }

/* The record of any code point, and what it says the character is decomposed to, are in the tables. */
void prove_record(size_t n) {
    const normal_record *record = record_of(any_code_point());
    size_t place = any_bool() ? record->canonical : record->compatible;
    check_readable(record, sizeof *record);
    CHECK(place < sizeof normal_sequences / sizeof *normal_sequences);
    CHECK(normal_sequences[place] <= 18);
    check_readable(normal_sequences + place, (1 + normal_sequences[place]) * sizeof *normal_sequences);
    (void)n;
}

/* Any two characters are composed, or not, with pairs that are in the tables. */
void prove_compose(size_t n) {
    (void)compose(any_code_point(), any_code_point());
    (void)n;
}

/* Any kind of character: class.c and utf8.c are about reading it. */
static normal_record kinds[3];

const normal_record *any_record(uint32_t code_point) {
    return &kinds[code_point == UNICODE_INVALID ? 0 : any_between(0, 2)];
}

static void any_kinds(void) {
    for (size_t i = 1; i < 3; i++) {
        kinds[i] = (normal_record){.class = (uint8_t)any_between(0, 3), .flags = (uint8_t)any_between(0, 7)};
    }
}

/* Processing begins in the text, or is not needed. */
void prove_scan(size_t n) {
    uint8_t *text = any_bytes(n);
    any_kinds();
    size_t from = (size_t)any_between(0, n), at = quick_scan(text, n, from, JOINS | NFC_CHANGES);
    CHECK(at >= from && at <= n);
    free(text);
}

static void sort(size_t n, bool by_counting) {
    uint32_t *marks = (uint32_t *)any_bytes(n * sizeof *marks), *sorted = (uint32_t *)any_bytes(n * sizeof *marks);
    if (by_counting) {
        marks_count_sort(marks, n, sorted);
    } else {
        marks_insert(marks, n);
    }
    for (size_t i = 1; i < n; i++) {
        CHECK(marks[i - 1] >> 24 <= marks[i] >> 24);
    }
    free(marks);
    free(sorted);
}

/* n marks are sorted by class. */
void prove_insert(size_t n) { sort(n, false); }
void prove_count(size_t n) { sort(n, true); }

/* A starter and n marks after it, and some bytes that have been written. */
static void any_work(size_t n) {
    work = (normal_work){.compatible = any_bool(), .starter = (uint32_t)any_between(0, 0x10FFFF)};
    work.not_flags = JOINS | (work.compatible ? NFKC_CHANGES : NFC_CHANGES);
    work.starter = any_bool() ? NO_CHARACTER : work.starter;
    work.out = any_bytes(ROOM);
    work.room = ROOM;
    work.length = (size_t)any_between(0, ROOM);
    work.marks = (uint32_t *)any_bytes(2 * MARKS * sizeof *work.marks);
    work.marks_room = MARKS;
    work.marks_count = n;
    for (size_t i = 0; i < n; i++) {
        work.marks[i] = (uint32_t)any_between(1, 3) << 24 | (uint32_t)any_between(0, 0x10FFFF);
    }
}

static void check_work(void) {
    CHECK(work.length <= work.room && work.marks_count <= work.marks_room);
    check_readable(work.out, work.length);
    check_readable(work.marks, 2 * work.marks_room * sizeof *work.marks);
}

static void drop_work(void) {
    free(work.out);
    free(work.marks);
}

uint32_t any_composed(uint32_t first, uint32_t second) {
    (void)second;
    return any_bool() && first != NO_CHARACTER ? (uint32_t)any_between(0, 0x10FFFF) : NO_CHARACTER;
}

/* The n marks that are left are among those that there were, and what is written fits. */
void prove_gather(size_t n) {
    any_work(n);
    marks_compose(&work);
    CHECK(work.marks_count <= n);
    (void)gathered_write(&work);
    check_work();
    drop_work();
}

/* Any character is added after n marks. */
void prove_add(size_t n) {
    any_work(n);
    (void)character_add(&work, (uint32_t)any_between(0, 3) << 24 | (uint32_t)any_between(0, 0x10FFFF));
    check_work();
    drop_work();
}

void any_composing(normal_work *w) { w->marks_count = (size_t)any_between(0, w->marks_count); }

bool any_writing(normal_work *w) {
    w->starter = NO_CHARACTER;
    w->marks_count = 0;
    return any_bool();
}

bool any_added(normal_work *w, uint32_t code_point, const normal_record *record) {
    (void)w;
    CHECK(code_point <= 0x10FFFF);
    check_readable(record, sizeof *record);
    return any_bool();
}

bool any_out(normal_work *w, const uint8_t *bytes, size_t n) {
    (void)w;
    check_readable(bytes, n);
    return any_bool();
}

/* A stretch is in the text, and ends after its start. */
void prove_stretch(size_t n) {
    uint8_t *text = any_bytes(n);
    any_kinds();
    any_work(0);
    size_t at = (size_t)any_between(0, n - 1), end;
    if (stretch_work(&work, text, n, at, &end)) {
        CHECK(end > at && end <= n);
    }
    drop_work();
    free(text);
}

/* What that shows, and of scanning. */
bool any_stretch(normal_work *w, const uint8_t *text, size_t n, size_t at, size_t *end) {
    (void)w;
    CHECK(at < n);
    check_readable(text, n);
    *end = (size_t)any_between(at + 1, n);
    return any_bool();
}

size_t any_scan(const uint8_t *text, size_t n, size_t at, uint8_t not_flags) {
    (void)not_flags;
    check_readable(text, n);
    return (size_t)any_between(at, n);
}

/* Any text is normalized, or everything that was allocated is freed. */
void prove_text(size_t n) {
    uint8_t *text = any_bytes(n), *out;
    size_t length;
    int code = pybpe_normalize(&out, &length, (int)any_between(0, 3), text, n, NULL, NULL);
    if (code == PYBPE_OK && out != NULL) {
        check_readable(out, length);
    }
    CHECK(code == PYBPE_OK || out == NULL);
    pybpe_normalize_free(out, NULL);
    free(text);
}

PROOFS(DRAWN(record, 0, 0, 3) DRAWN(compose, 0, 0, 3) PROOF(scan, 0, 5, 3, "", "record_of:any_record")
           PROOF(insert, 0, 4, 3) DRAWN(count, 0, 40, 3) PROOF(gather, 0, 3, 4, "", "compose:any_composed")
               PROOF(add, 0, 4, 4, "", "marks_compose:any_composing gathered_write:any_writing compose:any_composed")
                   PROOF(stretch, 1, 5, 3, "",
                         "record_of:any_record decomposed_add:any_added out_bytes:any_out marks_compose:any_composing "
                         "gathered_write:any_writing")
                       PROOF(text, 0, 4, 3, "", "stretch_work:any_stretch quick_scan:any_scan"))
