/*
Dividing a corpus into documents: lines and marks against their definition, the split of each document against a bitwise
CRC-32, and JSON lines from hostile bytes, which are refused or give UTF-8.
*/
#include "fuzz.h"
#include "fuzz_memory.h"
#include "pybpe_corpus.h"

enum { SPLITS = 3 };

static const uint64_t all[] = {UINT64_MAX};
static const uint64_t thirds[SPLITS] = {UINT64_MAX / 3, UINT64_MAX / 3 * 2, UINT64_MAX - 5};
static const uint8_t mark[] = "<|x|>";

static pybpe_divider *divider_of(const uint64_t *last, size_t splits, const pybpe_specials *marks) {
    pybpe_division how = {.marks = marks, .key = (const uint8_t *)"text", .key_n = 4, .last = last, .splits = splits};
    pybpe_divider *d;
    pybpe_error err;
    REQUIRE(pybpe_divider_new(&d, &how, &fuzz_memory, &err) == PYBPE_OK);
    return d;
}

static uint32_t naive_crc(const uint8_t *text, size_t n) {
    uint32_t c = ~UINT32_C(0);
    for (size_t i = 0; i < 8 * n; i++) {
        c ^= i % 8 == 0 ? text[i / 8] : 0;
        c = c >> 1 ^ (c & 1 ? UINT32_C(0xEDB88320) : 0);
    }
    return ~c;
}

static size_t naive_split(const uint8_t *text, size_t n) {
    uint64_t hash = naive_crc(text, n) * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t split = 0; split < SPLITS; split++) {
        if (hash <= thirds[split]) {
            return split;
        }
    }
    return 0;
}

/* The splits have the documents of `whole`, in order; each document is in the split of its hash, if `hashed`. */
static void require_splits(const pybpe_divider *whole, const pybpe_divider *divided, int hashed) {
    pybpe_strings documents = pybpe_divider_documents(whole, 0), parts[SPLITS];
    size_t at[SPLITS] = {0}, total = 0;
    for (size_t split = 0; split < SPLITS; split++) {
        parts[split] = pybpe_divider_documents(divided, split);
        total += parts[split].count;
    }
    REQUIRE(total == documents.count);
    for (size_t i = 0; hashed && i < documents.count; i++) {
        const uint8_t *text = documents.bytes + documents.offsets[i];
        size_t n = (size_t)(documents.offsets[i + 1] - documents.offsets[i]), split = naive_split(text, n);
        size_t k = at[split]++;
        REQUIRE(k < parts[split].count && parts[split].offsets[k + 1] - parts[split].offsets[k] == n);
        REQUIRE(memcmp(parts[split].bytes + parts[split].offsets[k], text, n) == 0);
    }
}

/* Requires text[begin..end) to be document number *count, unless it is empty. */
static void require_document(const pybpe_strings *documents, size_t *count, const uint8_t *text, size_t begin,
                             size_t end) {
    if (begin < end) {
        size_t i = (*count)++;
        REQUIRE(i < documents->count && documents->offsets[i + 1] - documents->offsets[i] == end - begin);
        REQUIRE(memcmp(documents->bytes + documents->offsets[i], text + begin, end - begin) == 0);
    }
}

static void require_lines(const pybpe_strings *documents, const uint8_t *text, size_t n) {
    size_t count = 0;
    for (size_t begin = 0, end = 0; begin < n; begin = end + 1) {
        for (end = begin; end < n && text[end] != '\n'; end++) {
        }
        require_document(documents, &count, text, begin, end - (end > begin && text[end - 1] == '\r'));
    }
    REQUIRE(count == documents->count);
}

static void require_marks(const pybpe_strings *documents, const uint8_t *text, size_t n) {
    const size_t length = sizeof mark - 1;
    size_t count = 0, begin = 0;
    for (size_t at = 0; at + length <= n;) {
        if (memcmp(text + at, mark, length) == 0) {
            require_document(documents, &count, text, begin, at);
            begin = at += length;
        } else {
            at++;
        }
    }
    require_document(documents, &count, text, begin, n);
    REQUIRE(count == documents->count);
}

static void require_documents(int kind, const pybpe_strings *documents, const uint8_t *text, size_t n) {
    size_t bytes = documents->count > 0 ? (size_t)documents->offsets[documents->count] : 0;
    REQUIRE(bytes <= n);
    if (kind == PYBPE_DOCUMENTS_LINE) {
        require_lines(documents, text, n);
    } else if (kind == PYBPE_DOCUMENTS_MARK) {
        require_marks(documents, text, n);
    }
    for (size_t i = 0; kind == PYBPE_DOCUMENTS_RECORD && i < documents->count; i++) {
        size_t size = (size_t)(documents->offsets[i + 1] - documents->offsets[i]);
        REQUIRE(pybpe_utf8_valid(documents->bytes + documents->offsets[i], size) == size);
    }
}

/* Reading the records for cleaning gives the same texts, unless it refuses a repeated name. Its memory has the size that
   the header promises. */
static void require_records(const pybpe_divider *whole, int code, const uint8_t *text, size_t n) {
    const size_t numbers = (n / 8 + 2) * sizeof(uint64_t);
    pybpe_records r = {.texts = malloc(n + (n == 0)), .lines = malloc(2 * n + (n == 0))};
    r.text_offsets = malloc(numbers);
    r.line_offsets = malloc(numbers);
    REQUIRE(r.texts != NULL && r.lines != NULL && r.text_offsets != NULL && r.line_offsets != NULL);
    int read = pybpe_records_read(&r, text, n, (const uint8_t *)"text", 4, 0, NULL);
    REQUIRE(read == code || (code == PYBPE_OK && read == PYBPE_ERR_FORMAT));
    if (read == PYBPE_OK) {
        pybpe_strings documents = pybpe_divider_documents(whole, 0);
        size_t records, line_ends, bytes = (size_t)r.text_offsets[r.count];
        pybpe_divider_records(whole, &records, &line_ends);
        REQUIRE(r.count == documents.count && r.records == records && r.line_ends == line_ends);
        REQUIRE(r.count == 0 || memcmp(r.text_offsets, documents.offsets, (r.count + 1) * sizeof(uint64_t)) == 0);
        REQUIRE(r.count == 0 || memcmp(r.texts, documents.bytes, bytes) == 0);
    }
    free(r.texts);
    free(r.lines);
    free(r.text_offsets);
    free(r.line_offsets);
}

/* A text, once or up to 64 times, so that documents need more room than there is at first. */
static uint8_t *read_copies(fuzz_input *in, size_t *n) {
    const unsigned x = fuzz_byte(in);
    const size_t copies = x < 240 ? 1 : 4 * (x - 239), once = in->size;
    uint8_t *text = malloc(once * copies + (once == 0));
    REQUIRE(text != NULL);
    for (size_t i = 0; i < copies && once > 0; i++) {
        memcpy(text + i * once, in->data, once);
    }
    *n = once * copies;
    return text;
}

/* The first byte chooses the kind of documents. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint64_t offsets[] = {0, sizeof mark - 1};
    static const uint32_t id = 0;
    const pybpe_strings strings = {mark, offsets, 1};
    fuzz_input in = {data, size};
    pybpe_specials *marks;
    pybpe_error err;
    size_t n;
    int kind = (int)fuzz_below(&in, 4);
    uint8_t *text = read_copies(&in, &n);
    REQUIRE(pybpe_specials_new(&marks, &strings, &id, NULL, &fuzz_memory, &err) == PYBPE_OK);
    pybpe_divider *whole = divider_of(all, 1, marks), *divided = divider_of(thirds, SPLITS, marks);
    int code = pybpe_divider_divide(whole, kind, text, n, &err);
    if (code != PYBPE_OK) {
        fuzz_expect_error(code, &err);
        REQUIRE(kind == PYBPE_DOCUMENTS_RECORD && code == PYBPE_ERR_FORMAT);
    }
    REQUIRE(pybpe_divider_divide(divided, kind, text, n, NULL) == code);
    if (kind == PYBPE_DOCUMENTS_RECORD) {
        require_records(whole, code, text, n);
    }
    if (code == PYBPE_OK) {
        pybpe_strings documents = pybpe_divider_documents(whole, 0);
        require_documents(kind, &documents, text, n);
        require_splits(whole, divided, kind != PYBPE_DOCUMENTS_RECORD); /* a record may be hashed by its cluster */
    }
    pybpe_divider_free(whole);
    pybpe_divider_free(divided);
    pybpe_specials_free(marks);
    free(text);
    return 0;
}
