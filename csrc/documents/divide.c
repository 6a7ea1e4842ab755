/*
Divides a piece of a corpus into documents, and the documents among splits.

The bytes of a document decide its split, so a document keeps its split in any corpus: a CRC-32, which costs little,
times the golden ratio, because similar texts have similar checksums. The documents of a split are copied end to end.
*/
#include "documents/record.h"
#include "hash/hash.h"
#include "special/special.h"

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15) /* 2^64 divided by the golden ratio, made odd */

/* The documents of a split. */
typedef struct split_part {
    uint8_t *bytes;
    size_t n, room;
    uint64_t *offsets; /* one more than there are documents */
    size_t count, offsets_room;
    pybpe_origin *origins;
    size_t origins_room;
} split_part;

struct pybpe_divider {
    pybpe_allocator mem;
    const pybpe_specials *marks;
    uint8_t *key, *separator, *id; /* `id` is NULL if there is none */
    size_t key_n, separator_n, id_n;
    split_part *parts;
    uint64_t *last; /* the last hashes of the splits */
    size_t splits;
    uint8_t *scratch; /* for the text and the cluster of a record without escapes */
    size_t scratch_room;
    bool has_origins;
    size_t records, line_ends; /* as pybpe_divider_records says */
    bool counts_empty;         /* whether empty documents are records */
    int failed;                /* the code of an error since it was cleared, or PYBPE_OK. Then it is empty */
    crc_tables crc;
};

static size_t split_of(const pybpe_divider *d, const uint8_t *name, size_t n) {
    if (d->splits == 1) {
        return 0;
    }
    uint64_t hash = crc_of(&d->crc, name, n) * GOLDEN;
    for (size_t split = 0; split < d->splits; split++) {
        if (hash <= d->last[split]) {
            return split;
        }
    }
    return 0;
}

/* Makes room in a split for one more document of n bytes. */
static bool part_grow(const pybpe_divider *d, split_part *part, size_t n) {
    const size_t need = part->n + n + d->separator_n; /* all of them are in memory, so the sum fits */
    uint8_t *bytes = mem_reserve(&d->mem, part->bytes, &part->room, need, 1);
    if (bytes == NULL) {
        return false;
    }
    part->bytes = bytes;
    uint64_t *offsets = mem_reserve(&d->mem, part->offsets, &part->offsets_room, part->count + 2, sizeof *offsets);
    if (offsets == NULL) {
        return false;
    }
    part->offsets = offsets;
    if (d->has_origins) {
        pybpe_origin *origins =
            mem_reserve(&d->mem, part->origins, &part->origins_room, part->count + 1, sizeof *origins);
        if (origins == NULL) {
            return false;
        }
        part->origins = origins;
    }
    return true;
}

/* A document, and the hash that decides its split. */
typedef struct found_document {
    const uint8_t *text;
    size_t n;
    const uint8_t *name;
    size_t name_n;
    uint64_t id, id_end; /* as in pybpe_origin */
} found_document;

static int document_add(pybpe_divider *d, found_document found, pybpe_error *err) {
    const size_t record = d->records;
    d->records += found.n > 0 || d->counts_empty;
    if (found.n == 0) {
        return PYBPE_OK;
    }
    split_part *part = &d->parts[split_of(d, found.name, found.name_n)];
    if (!part_grow(d, part, found.n)) {
        return error_set_memory(err, "documents", found.n);
    }
    memcpy(part->bytes + part->n, found.text, found.n);
    if (d->separator_n > 0) {
        memcpy(part->bytes + part->n + found.n, d->separator, d->separator_n);
    }
    part->n += found.n + d->separator_n;
    if (d->has_origins) {
        part->origins[part->count] = (pybpe_origin){record, found.id, found.id_end};
    }
    part->offsets[0] = 0;
    part->offsets[++part->count] = part->n;
    return PYBPE_OK;
}

static int document_text_add(pybpe_divider *d, const uint8_t *begin, const uint8_t *end, pybpe_error *err) {
    const size_t n = (size_t)(end - begin);
    return document_add(d, (found_document){.text = begin, .n = n, .name = begin, .name_n = n}, err);
}

static int lines_divide(pybpe_divider *d, const uint8_t *text, size_t n, pybpe_error *err) {
    const uint8_t *const end = text + n;
    int code = PYBPE_OK;
    while (text < end && code == PYBPE_OK) {
        const uint8_t *newline = memchr(text, '\n', (size_t)(end - text));
        const uint8_t *stop = newline == NULL ? end : newline;
        code = document_text_add(d, text, stop - (stop > text && stop[-1] == '\r'), err);
        text = newline == NULL ? end : newline + 1;
    }
    return code;
}

/* Adds a text without the line ends around it. */
static int stripped_add(pybpe_divider *d, const uint8_t *begin, const uint8_t *end, pybpe_error *err) {
    while (begin < end && (*begin == '\r' || *begin == '\n')) {
        begin += 1;
    }
    while (begin < end && (end[-1] == '\r' || end[-1] == '\n')) {
        end -= 1;
    }
    return document_text_add(d, begin, end, err);
}

/* Two line ends in a row end a document. Since the line ends around a document do not belong to it, any more of them
   do not matter. */
static int blank_divide(pybpe_divider *d, const uint8_t *text, size_t n, pybpe_error *err) {
    const uint8_t *const end = text + n;
    const uint8_t *at = text;
    int code = PYBPE_OK;
    while (code == PYBPE_OK && at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at += 1;
        const uint8_t *next = at + (at < end && *at == '\r');
        if (next < end && *next == '\n') {
            code = stripped_add(d, text, at, err);
            text = at;
        }
    }
    return code == PYBPE_OK ? stripped_add(d, text, end, err) : code;
}

static int marks_divide(pybpe_divider *d, const uint8_t *text, size_t n, pybpe_error *err) {
    size_t begin = 0;
    special_scan scan;
    special_scan_start(&scan, d->marks, text, n, 0);
    special_match match;
    int code = PYBPE_OK;
    while (code == PYBPE_OK && special_scan_next(&scan, &match)) {
        code = document_text_add(d, text + begin, text + match.start, err);
        begin = match.end;
    }
    special_scan_end(&scan);
    return code == PYBPE_OK ? document_text_add(d, text + begin, text + n, err) : code;
}

/* The bytes of a string: in the record, or unescaped at `to`. *ok is false for half of a surrogate pair. */
static const uint8_t *plain_string(const json_spelling *string, uint8_t *to, size_t *n, bool *ok) {
    *n = string->n;
    if (!string->escaped) {
        return string->at;
    }
    *ok = json_unescape(string, to, n) && *ok;
    return to;
}

/* Sets where the id of a record is in the text. Returns false if only a complete parser can find it: it may be a part
   of an object. */
static bool id_find(const pybpe_divider *d, const json_record *found, const uint8_t *text, found_document *document) {
    for (size_t i = found->count; i > 0; i--) { /* if a name is repeated, the last one counts */
        const record_field *field = &found->fields[i - 1];
        if (field->name.n == d->id_n && memcmp(field->name.at, d->id, d->id_n) == 0) {
            document->id = (uint64_t)(field->value - text);
            document->id_end = (uint64_t)(field->end - text);
            return true;
        }
    }
    return memchr(d->id, '.', d->id_n) == NULL;
}

static int record_add(pybpe_divider *d, const json_record *found, const uint8_t *text, bool *ok, pybpe_error *err) {
    size_t need = found->text.n + found->cluster.n; /* both are in one line */
    uint8_t *scratch = mem_reserve(&d->mem, d->scratch, &d->scratch_room, need, 1);
    PYBPE_TRY(memory_check(scratch, "a record", need, err));
    d->scratch = scratch;
    found_document document = {.id = 0};
    document.text = plain_string(&found->text, d->scratch, &document.n, ok);
    document.name = document.text;
    document.name_n = document.n;
    if (found->cluster.at != NULL) {
        document.name = plain_string(&found->cluster, d->scratch + found->text.n, &document.name_n, ok);
    }
    *ok = *ok && (d->id == NULL || id_find(d, found, text, &document));
    return *ok ? document_add(d, document, err) : PYBPE_OK;
}

static int records_divide(pybpe_divider *d, const uint8_t *text, size_t n, pybpe_error *err) {
    json lines = {text, text + n};
    record_field fields[RECORD_FIELDS];
    bool ok = pybpe_utf8_valid(text, n) == n;
    int code = PYBPE_OK;
    while (lines.at < lines.end && ok && code == PYBPE_OK) {
        const uint8_t *const line = lines.at;
        json_record found = {.fields = d->id != NULL ? fields : NULL};
        ok = record_read(&lines, d->key, d->key_n, &found);
        if (ok && !found.blank) {
            code = record_add(d, &found, text, &ok, err);
        }
        lines.at = ok ? lines.at : line;
        d->line_ends += ok && lines.at[-1] == '\n'; /* only the last line may lack one */
    }
    if (code == PYBPE_OK && !ok) {
        return error_set(err, PYBPE_ERR_FORMAT, (uint64_t)(lines.at - text),
                         "this line needs a complete parser of JSON");
    }
    return code;
}

void pybpe_divider_clear(pybpe_divider *d) {
    for (size_t split = 0; split < d->splits; split++) {
        d->parts[split].n = d->parts[split].count = 0;
    }
    d->records = d->line_ends = 0;
    d->failed = PYBPE_OK;
}

/* Ends a call that adds documents. After an error there are none, and no more can be added. */
static int divider_end(pybpe_divider *d, int code) {
    if (code != PYBPE_OK) {
        pybpe_divider_clear(d);
        d->failed = code;
    }
    return code;
}

static int divider_begin(const pybpe_divider *d, pybpe_error *err) {
    if (d->failed != PYBPE_OK) {
        return error_set(err, d->failed, 0, "this divider failed in an earlier call and must be cleared");
    }
    return PYBPE_OK;
}

void pybpe_divider_records(const pybpe_divider *d, size_t *records, size_t *line_ends) {
    *records = d->records;
    *line_ends = d->line_ends;
}

int pybpe_divider_divide(pybpe_divider *d, int kind, const uint8_t *text, size_t n, pybpe_error *err) {
    typedef int divide_fn(pybpe_divider *, const uint8_t *, size_t, pybpe_error *);
    static divide_fn *const divide[] = {[PYBPE_DOCUMENTS_LINE] = lines_divide,
                                        [PYBPE_DOCUMENTS_BLANK] = blank_divide,
                                        [PYBPE_DOCUMENTS_MARK] = marks_divide,
                                        [PYBPE_DOCUMENTS_RECORD] = records_divide};
    if (kind < PYBPE_DOCUMENTS_LINE || kind > PYBPE_DOCUMENTS_RECORD) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "%d is not a kind of documents", kind);
    }
    int code = divider_begin(d, err);
    d->counts_empty = kind == PYBPE_DOCUMENTS_LINE || kind == PYBPE_DOCUMENTS_RECORD;
    return code == PYBPE_OK && n > 0 ? divider_end(d, divide[kind](d, text, n, err)) : code;
}

int pybpe_divider_add(pybpe_divider *d, const uint8_t *bytes, const uint64_t *offsets, size_t count, pybpe_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (offsets[i] > offsets[i + 1]) {
            return error_set(err, PYBPE_ERR_VALUE, i, "the offsets of documents decrease");
        }
    }
    PYBPE_TRY(divider_begin(d, err));
    int code = PYBPE_OK;
    d->counts_empty = true;
    for (size_t i = 0; i < count && code == PYBPE_OK; i++) {
        code = document_text_add(d, bytes + offsets[i], bytes + offsets[i + 1], err);
    }
    return divider_end(d, code);
}

pybpe_strings pybpe_divider_documents(const pybpe_divider *d, size_t split) {
    if (split >= d->splits) {
        return (pybpe_strings){.bytes = NULL, .offsets = NULL, .count = 0};
    }
    const split_part *part = &d->parts[split];
    return (pybpe_strings){.bytes = part->bytes, .offsets = part->offsets, .count = part->count};
}

const pybpe_origin *pybpe_divider_origins(const pybpe_divider *d, size_t split) {
    return split < d->splits ? d->parts[split].origins : NULL;
}

void pybpe_divider_free(pybpe_divider *d) {
    if (d == NULL) {
        return;
    }
    pybpe_allocator mem = d->mem;
    for (size_t split = 0; d->parts != NULL && split < d->splits; split++) {
        mem_free(&mem, d->parts[split].bytes);
        mem_free(&mem, d->parts[split].offsets);
        mem_free(&mem, d->parts[split].origins);
    }
    mem_free(&mem, d->parts);
    mem_free(&mem, d->last);
    mem_free(&mem, d->key);
    mem_free(&mem, d->separator);
    mem_free(&mem, d->id);
    mem_free(&mem, d->scratch);
    mem_free(&mem, d);
}

static bool bytes_copy(const pybpe_allocator *mem, uint8_t **to, const uint8_t *from, size_t n) {
    *to = mem_alloc(mem, n + 1); /* never 0 */
    if (*to != NULL && n > 0) {
        memcpy(*to, from, n);
    }
    return *to != NULL;
}

int pybpe_divider_new(pybpe_divider **out, const pybpe_division *how, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    if (how->splits == 0) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "there must be at least one split");
    }
    PYBPE_TRY(array_check(how->key, how->key_n, "the bytes of the key", err));
    PYBPE_TRY(array_check(how->separator, how->separator_n, "the bytes of the separator", err));
    PYBPE_TRY(array_check(how->id, how->id_n, "the bytes of the key of ids", err));
    PYBPE_TRY(array_check(how->last, how->splits, "the last hashes of splits", err));
    pybpe_divider *d = mem_alloc_zeroed(mem, 1, sizeof *d);
    PYBPE_TRY(memory_check(d, "a divider", sizeof *d, err));
    d->mem = mem_of(mem);
    d->marks = how->marks;
    d->splits = how->splits;
    d->key_n = how->key_n;
    d->separator_n = how->separator_n;
    d->id_n = how->id_n;
    d->has_origins = how->has_origins != 0;
    d->parts = mem_alloc_zeroed(mem, how->splits, sizeof *d->parts);
    d->last = mem_alloc_array(mem, how->splits, sizeof *d->last);
    if (d->parts == NULL || d->last == NULL || !bytes_copy(mem, &d->key, how->key, how->key_n) ||
        !bytes_copy(mem, &d->separator, how->separator, how->separator_n) ||
        (how->id != NULL && !bytes_copy(mem, &d->id, how->id, how->id_n))) {
        pybpe_divider_free(d);
        return error_set_memory(err, "a divider", how->splits);
    }
    memcpy(d->last, how->last, how->splits * sizeof *d->last);
    crc_tables_fill(&d->crc);
    *out = d;
    return PYBPE_OK;
}
