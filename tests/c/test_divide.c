/*
Documents: each kind by hand, the hash, JSON lines that are accepted and that are not, damaged records at the exact end of
their memory, and memory that runs out. tests/py/test_division.py compares random inputs with Python's parser.
*/
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "hash/hash.h"
#include "random_state.h"
#include "small_vocab.h"

#include <stdlib.h>

enum { SPLITS = 3 };

static const uint64_t thirds[SPLITS] = {UINT64_MAX / 3, UINT64_MAX / 3 * 2, UINT64_MAX - 5};
static const uint64_t all[1] = {UINT64_MAX};

static pybpe_divider *divider_of(const uint64_t *last, size_t splits, const char *separator,
                                 const pybpe_specials *marks) {
    pybpe_division how = {.marks = marks, .key = (const uint8_t *)"text", .key_n = 4, .last = last, .splits = splits};
    how.separator = (const uint8_t *)separator;
    how.separator_n = strlen(separator);
    pybpe_divider *d = NULL;
    CHECK_EQ(pybpe_divider_new(&d, &how, NULL, NULL), PYBPE_OK);
    return d;
}

/* Divides a copy of the exact size, so that sanitizers see reads beyond it. */
static int divide(pybpe_divider *d, int kind, const char *text, size_t n) {
    uint8_t *copy = malloc(n + (n == 0));
    memcpy(copy, text, n);
    pybpe_divider_clear(d);
    int code = pybpe_divider_divide(d, kind, copy, n, NULL);
    free(copy);
    return code;
}

static void check_documents(const pybpe_divider *d, const char *joined, size_t count) {
    pybpe_strings found = pybpe_divider_documents(d, 0);
    CHECK_EQ(found.count, count);
    size_t n = found.count > 0 ? (size_t)found.offsets[found.count] : 0;
    CHECK_EQ(n, strlen(joined));
    CHECK(n == 0 || memcmp(found.bytes, joined, n) == 0);
    if (n != strlen(joined)) {
        printf("    expected %s\n", joined);
    }
}

/* The records of documents count empty ones, and say where ids are, as they are spelled. */
static void test_origins(void) {
    pybpe_division how = {.key = (const uint8_t *)"text", .key_n = 4, .last = all, .splits = 1, .has_origins = 1};
    how.id = (const uint8_t *)"id";
    how.id_n = 2;
    pybpe_divider *d = NULL;
    CHECK_EQ(pybpe_divider_new(&d, &how, NULL, NULL), PYBPE_OK);
    CHECK(pybpe_divider_origins(d, 1) == NULL);
    const char *lines = "{\"text\":\"\",\"id\":1}\n\n{\"id\":0, \"text\":\"a\", \"id\":\"x\"}\n{\"text\":\"b\"}";
    CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, lines, strlen(lines)), PYBPE_OK);
    const pybpe_origin *found = pybpe_divider_origins(d, 0);
    CHECK(found[0].record == 1 && found[1].record == 2 && found[1].id_end == 0);
    CHECK(strncmp(lines + found[0].id, "\"x\"", 3) == 0 && found[0].id_end == found[0].id + 3);
    size_t records = 0, line_ends = 0;
    pybpe_divider_records(d, &records, &line_ends);
    CHECK_EQ(records, 3);
    CHECK_EQ(divide(d, PYBPE_DOCUMENTS_LINE, "a\n\nb\n", 5), PYBPE_OK);
    CHECK_EQ(pybpe_divider_origins(d, 0)[1].record, 2);
    CHECK_EQ(divide(d, PYBPE_DOCUMENTS_BLANK, "\n\na\n\n\n\nb", 8), PYBPE_OK);
    CHECK_EQ(pybpe_divider_origins(d, 0)[1].record, 1);
    pybpe_divider_free(d);
    how.id = (const uint8_t *)"a.b"; /* of an object: for a complete parser */
    how.id_n = 3;
    CHECK_EQ(pybpe_divider_new(&d, &how, NULL, NULL), PYBPE_OK);
    CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, lines, strlen(lines)), PYBPE_ERR_FORMAT);
    pybpe_divider_free(d);
}

static void test_kinds(void) {
    uint8_t mark[] = "<|x|>";
    uint64_t offsets[] = {0, 5};
    uint32_t ids[] = {0};
    pybpe_strings marks = {mark, offsets, 1};
    pybpe_specials *specials = NULL;
    CHECK_EQ(pybpe_specials_new(&specials, &marks, ids, NULL, NULL, NULL), PYBPE_OK);
    pybpe_divider *d = divider_of(all, 1, "|", specials);
    struct {
        int kind;
        const char *text, *joined;
        size_t count;
    } cases[] = {
        {PYBPE_DOCUMENTS_LINE, "", "", 0},
        {PYBPE_DOCUMENTS_LINE, "\n\r\n\n", "", 0},
        {PYBPE_DOCUMENTS_LINE, "a\nb\r\n\nc\r\r\nd", "a|b|c\r|d|", 4},
        {PYBPE_DOCUMENTS_LINE, "\r", "", 0},
        {PYBPE_DOCUMENTS_BLANK, "a\nb\n\nc\r\n\r\nd\n\n\n", "a\nb|c|d|", 3},
        {PYBPE_DOCUMENTS_BLANK, "\n\n\na\n\r\n\r\n\nb", "a|b|", 2},
        {PYBPE_DOCUMENTS_BLANK, "\r\n", "", 0},
        {PYBPE_DOCUMENTS_BLANK, "a\n\rb\n \nc", "a\n\rb\n \nc|", 1},
        {PYBPE_DOCUMENTS_MARK, "<|x|>a<|x|><|x|>b\n<|x", "a|b\n<|x|", 2},
        {PYBPE_DOCUMENTS_RECORD, "{\"text\":\"a\"}\n \t\r\n\n{\"n\": [1, {}], \"text\" : \"\\u00e9\\n\"} \r\n",
         "a|\xC3\xA9\n|", 2},
        {PYBPE_DOCUMENTS_RECORD, "{\"text\":\"a\",\"text\":\"b\"}\n{\"text\":\"\"}", "b|", 1},
        {PYBPE_DOCUMENTS_RECORD, "{\"text\":\"a\",\"tent\":\"b\",\"texts\":\"c\",\"tex\":\"d\"}", "a|", 1},
        {PYBPE_DOCUMENTS_RECORD, "{\"text\":\"a\\nb\\\\c\\u0041\\\"d\"}", "a\nb\\cA\"d|", 1},
        {PYBPE_DOCUMENTS_RECORD, "{\"text\":\"\\ud83d\\ude00\\/\"}", "\xF0\x9F\x98\x80/|", 1},
        {PYBPE_DOCUMENTS_RECORD, "{\"text\":\"\\ud800\\udc00\\udbff\\udfff\"}", "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF|", 1},
        {PYBPE_DOCUMENTS_RECORD, "{\"text\":\"\\ud7ff\\ue000\\uffff\"}", "\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF|", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(divide(d, cases[i].kind, cases[i].text, strlen(cases[i].text)), PYBPE_OK);
        check_documents(d, cases[i].joined, cases[i].count);
    }
    CHECK_EQ(divide(d, 9, "a", 1), PYBPE_ERR_VALUE);
    pybpe_divider_free(d);
    pybpe_specials_free(specials);
}

static void test_records(void) {
    pybpe_divider *d = divider_of(all, 1, "", NULL);
    const char *good[] = {
        "null", "-0.5e+3", "1E-5", "NaN", "-Infinity", "[[], {}, [{\"a\": [0]}]]", "{\"b\":\"\\\"\"}", "\"]}\""};
    const char *bad[] = {"nul",  "01", "1.", "-",    "+1",  "[1,]",  "{,}",     "[}",          "{\"a\"}",    "{\"a\":}",
                         "\"\t", "",   "]",  "[1 2", "1 2", "{1:2}", "\"\\x\"", "\"\\u12g4\"", "{\"a\":1,}", "\""};
    char line[256];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        (void)snprintf(line, sizeof line, "{\"x\": %s, \"text\": \"a\"}", good[i]);
        CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, line, strlen(line)), PYBPE_OK);
        check_documents(d, "a", 1);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(line, sizeof line, "{\"x\": %s, \"text\": \"a\"}", bad[i]);
        CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, line, strlen(line)), PYBPE_ERR_FORMAT);
    }
    char digits[1500] = "{\"x\": ";
    memset(digits + strlen(digits), '1', 1400);
    strcat(digits, ", \"text\": \"a\"}");
    CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, digits, strlen(digits)), PYBPE_ERR_FORMAT); /* too many */
    const char *lines[] = {"{\"x\":-",
                           "{}",
                           "[]",
                           "{\"text\":1}",
                           "{\"text\":\"\\ud800\"}",
                           "{\"text\":\"\\udbff\"}",
                           "{\"text\":\"\\udc00\"}",
                           "{\"text\":\"\\udfff\"}",
                           "{\"text\":\"\\ud800\\ud800\"}",
                           "{\"text\":\"\\udbff\\ue000\"}",
                           "{\"text\":\"\\udbff\\udbff\"}",
                           "{\"text\":\"\\ud83d\\nde00.\"}",
                           "{\"text\":\"\\ud83d\",\"pybpe_cluster\":\"\\u0078\"}",
                           "{\"text\":\"\\u0078\",\"pybpe_cluster\":\"\\ud83d\"}",
                           "{\"te\\u0078t\":\"a\"}",
                           "{\"text\":\"\xFF\"}",
                           "{\"text\":\"a\"} x",
                           "{\"text\":\"a\"",
                           "\xEF\xBB\xBF{\"text\":\"a\"}",
                           "\f"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, lines[i], strlen(lines[i])), PYBPE_ERR_FORMAT);
    }
    pybpe_divider_free(d);
}

/* Records with an empty text count, blank lines do not, and neither does the line end that the last line lacks. */
static void test_counts_of_records(void) {
    pybpe_divider *d = divider_of(thirds, SPLITS, "", NULL);
    const struct {
        const char *text;
        size_t records, line_ends;
    } cases[] = {{"", 0, 0},
                 {"\n", 0, 1},
                 {" ", 0, 0},
                 {"{\"text\":\"a\"}", 1, 0},
                 {"{\"text\":\"a\"}\n", 1, 1},
                 {"\n\r\n{\"text\":\"\"}\n \n{\"text\":\"\\n\"} \r\n\t", 2, 5}};
    size_t records, line_ends;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, cases[i].text, strlen(cases[i].text)), PYBPE_OK);
        pybpe_divider_records(d, &records, &line_ends);
        CHECK_EQ(records, cases[i].records);
        CHECK_EQ(line_ends, cases[i].line_ends);
    }
    CHECK_EQ(pybpe_divider_divide(d, PYBPE_DOCUMENTS_RECORD, (const uint8_t *)"\n", 1, NULL), PYBPE_OK);
    pybpe_divider_records(d, &records, &line_ends);
    CHECK_EQ(records, 2);
    CHECK_EQ(line_ends, 6);
    pybpe_divider_free(d);
}

static void test_depth(void) {
    pybpe_divider *d = divider_of(all, 1, "", NULL);
    for (size_t depth = 60; depth < 70; depth++) {
        char line[256] = "{\"x\":";
        size_t n = strlen(line);
        memset(line + n, '[', depth);
        memset(line + n + depth, ']', depth);
        strcpy(line + n + 2 * depth, ",\"text\":\"a\"}");
        CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, line, strlen(line)), depth <= 64 ? PYBPE_OK : PYBPE_ERR_FORMAT);
    }
    pybpe_divider_free(d);
}

/* Python refuses some longer numbers. */
static void test_long_numbers(void) {
    pybpe_divider *d = divider_of(all, 1, "", NULL);
    for (int digits = 297; digits < 304; digits++) {
        char line[512];
        (void)snprintf(line, sizeof line, "{\"x\":%0*d,\"text\":\"a\"}", digits, 0);
        memset(line + strlen("{\"x\":"), '7', (size_t)digits);
        CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, line, strlen(line)), digits <= 300 ? PYBPE_OK : PYBPE_ERR_FORMAT);
    }
    pybpe_divider_free(d);
}

/* The check values of CRC-32, times the golden ratio, decide the split. */
static void test_hash(void) {
    const struct {
        const char *text;
        uint32_t crc;
    } known[] = {{"123456789", 0xCBF43926},
                 {"a", 0xE8B7BE43},
                 {"The quick brown fox jumps over the lazy dog", 0x414FA339},
                 {"0123456789abcdef", 0x68C4F033}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint64_t hash = known[i].crc * UINT64_C(0x9E3779B97F4A7C15);
        const uint64_t at[2] = {hash - 1, hash};
        pybpe_divider *d = divider_of(at, 2, "", NULL);
        CHECK_EQ(divide(d, PYBPE_DOCUMENTS_LINE, known[i].text, strlen(known[i].text)), PYBPE_OK);
        CHECK_EQ(pybpe_divider_documents(d, 0).count, 0);
        CHECK_EQ(pybpe_divider_documents(d, 1).count, 1);
        pybpe_divider_free(d);
        const uint64_t below[2] = {hash - 2, hash - 1}; /* after the last: split 0 */
        d = divider_of(below, 2, "", NULL);
        CHECK_EQ(divide(d, PYBPE_DOCUMENTS_LINE, known[i].text, strlen(known[i].text)), PYBPE_OK);
        CHECK_EQ(pybpe_divider_documents(d, 0).count, 1);
        pybpe_divider_free(d);
    }
}

/* By the definition, bit by bit; with and without the instruction that multiplies polynomials, if there is one. */
static void test_hashes_of_all_lengths(void) {
    crc_tables tables;
    crc_tables_fill(&tables);
    for (size_t n = 0; n < 300; n++) {
        uint8_t *text = malloc(n + (n == 0));
        uint32_t want = ~UINT32_C(0);
        for (size_t i = 0; i < n; i++) {
            text[i] = (uint8_t)random_below(256);
            want ^= text[i];
            for (int bit = 0; bit < 8; bit++) {
                want = want >> 1 ^ (UINT32_C(0xEDB88320) & (0 - (want & 1)));
            }
        }
        CHECK_EQ(crc_of(&tables, text, n), ~want);
        crc_tables plain = tables;
        plain.folds = false;
        CHECK_EQ(crc_of(&plain, text, n), ~want);
        free(text);
    }
}

static void test_cluster(void) {
    pybpe_divider *d = divider_of(thirds, SPLITS, "", NULL);
    const char *text =
        "{\"text\":\"a\",\"pybpe_cluster\":\"x\"}\n{\"pybpe_cluster\":\"\\u0078\",\"text\":\"b\"}\n{\"text\":\"c\","
        "\"pybpe_cluster\":\"x\"}";
    CHECK_EQ(divide(d, PYBPE_DOCUMENTS_RECORD, text, strlen(text)), PYBPE_OK);
    size_t most = 0;
    for (size_t split = 0; split < SPLITS; split++) {
        size_t count = pybpe_divider_documents(d, split).count;
        most = count > most ? count : most;
    }
    CHECK_EQ(most, 3);
    pybpe_divider_free(d);
}

static void test_offsets(void) {
    pybpe_divider *d = divider_of(all, 1, ".", NULL);
    const uint64_t some[] = {1, 3, 3, 4};
    CHECK_EQ(pybpe_divider_add(d, (const uint8_t *)"xabcd", some, 3, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_divider_add(d, (const uint8_t *)"e", (const uint64_t[]){0, 1}, 1, NULL), PYBPE_OK);
    check_documents(d, "ab.c.e.", 3);
    CHECK_EQ(pybpe_divider_add(d, (const uint8_t *)"ab", (const uint64_t[]){0, 2, 1}, 2, NULL), PYBPE_ERR_VALUE);
    pybpe_divider_free(d);
    CHECK_EQ(pybpe_divider_new(&d, &(pybpe_division){.splits = 0}, NULL, NULL), PYBPE_ERR_VALUE);
    CHECK(d == NULL);
}

/* Reads a copy of JSON lines into memory of the promised size. If `lines` is given, requires them. */
static int read_records(const char *text, size_t n, const char *lines, size_t count) {
    const size_t numbers = (n / 8 + 2) * sizeof(uint64_t);
    uint8_t *copy = malloc(n + (n == 0));
    memcpy(copy, text, n);
    pybpe_records r = {.texts = malloc(n + 1), .lines = malloc(2 * n + 1)};
    r.text_offsets = malloc(numbers);
    r.line_offsets = malloc(numbers);
    int code = pybpe_records_read(&r, copy, n, (const uint8_t *)"text", 4, 0, NULL);
    if (code == PYBPE_OK) {
        CHECK(r.count <= r.records && r.text_offsets[r.count] <= n && r.line_offsets[r.count] <= 2 * n);
    }
    if (lines != NULL) {
        CHECK_EQ(code, PYBPE_OK);
        CHECK_EQ(r.count, count);
        CHECK_EQ(r.line_offsets[r.count], strlen(lines));
        CHECK(memcmp(r.lines, lines, strlen(lines)) == 0);
    }
    free(copy);
    free(r.texts);
    free(r.lines);
    free(r.text_offsets);
    free(r.line_offsets);
    return code;
}

/* Records in one form. tests/py/test_division.py compares random ones with Python's. */
static void test_records_in_one_form(void) {
    const struct {
        const char *text, *lines;
        size_t count;
    } cases[] = {
        {"", "", 0},
        {" \n{\"text\":\"\"}\n\t", "", 0},
        {"{\"text\":\"a\"}", "{\"text\": \"a\"}\n", 1},
        {"\r{ \"i\" :\t-1.50e3 ,\"text\": \"a\\nb\\\"\\\\\" , \"m\":{ \"}\":[1 , \"\\\"]\"]},\"z\":[ ]\t} \r\n",
         "{\"i\": -1.50e3, \"text\": \"a\\nb\\\"\\\\\", \"m\": { \"}\":[1 , \"\\\"]\"]}, \"z\": [ ]}\n", 1},
        {"{\"x\":\"\\u0041\",\"text\":\"\\u0041\\/"
         "\\u001F\\u0008\\u0022\\u005c\\ud83d\\ude00\\u007f\"}\n{\"text\":\"b\"}",
         "{\"x\": \"\\u0041\", \"text\": \"A/\\u001f\\b\\\"\\\\\xF0\x9F\x98\x80\x7F\"}\n{\"text\": \"b\"}\n", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)read_records(cases[i].text, strlen(cases[i].text), cases[i].lines, cases[i].count);
    }
    const char *refused[] = {"{\"text\":\"a\",\"text\":\"b\"}", "{\"a\":1,\"text\":\"a\",\"a\":1}",
                             "{\"text\":\"\\ud800\"}", "{}", "{\"text\":\"\xFF\"}"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CHECK_EQ(read_records(refused[i], strlen(refused[i]), NULL, 0), PYBPE_ERR_FORMAT);
    }
    for (int names = 60; names < 70; names++) {
        char line[1024] = "{\"text\":\"a\"";
        for (int i = 1; i < names; i++) {
            (void)snprintf(line + strlen(line), 24, ",\"%d\":0", i);
        }
        strcat(line, "}");
        CHECK_EQ(read_records(line, strlen(line), NULL, 0), names <= 64 ? PYBPE_OK : PYBPE_ERR_FORMAT);
    }
}

/* Records without their field "cluster". */
static void test_records_without_cluster(void) {
    const char *const
        text = "{\"pybpe_cluster\":[{}],\"text\":\"a\",\"pybpe_clusters\":1}\n{\"text\":\"b\",\"pybpe_cluster\":\"c\"}",
        *const lines = "{\"text\": \"a\", \"pybpe_clusters\": 1}\n{\"text\": \"b\"}\n";
    uint8_t texts[128], found[256];
    uint64_t text_offsets[16], line_offsets[16];
    pybpe_records r = {.texts = texts, .lines = found, .text_offsets = text_offsets, .line_offsets = line_offsets};
    const uint8_t *const from = (const uint8_t *)text;
    CHECK_EQ(pybpe_records_read(&r, from, strlen(text), (const uint8_t *)"text", 4, 1, NULL), PYBPE_OK);
    CHECK(r.count == 2 && line_offsets[2] == strlen(lines) && memcmp(found, lines, strlen(lines)) == 0);
}

/* Records of nothing but texts, in memory of the promised size. */
static void test_written_records(void) {
    const uint8_t texts[] = "\x01\x1f\n\"\\/abcdefgh\"\x7F\xC3\xA9";
    const char lines[] =
        "{\"t\": \"\\u0001\\u001f\\n\\\"\\\\/abcdefgh\"}\n{\"t\": \"\"}\n{\"t\": \"\\\"\x7F\xC3\xA9\"}\n";
    const uint64_t offsets[] = {0, 14, 14, sizeof texts - 1};
    const size_t room = 6 * (sizeof texts - 1) + 3 * (3 + 7);
    uint8_t *to = malloc(room);
    uint64_t ends[4];
    const pybpe_strings strings = {.bytes = texts, .offsets = offsets, .count = 3};
    CHECK_EQ(pybpe_records_write(to, ends, &strings, (const uint8_t *)"\"t\"", 3, NULL), PYBPE_OK);
    CHECK_EQ(ends[3], sizeof lines - 1);
    CHECK(ends[0] == 0 && ends[1] == 37 && ends[2] == 47 && memcmp(to, lines, sizeof lines - 1) == 0);
    /* The worst case: each byte needs six. */
    const pybpe_strings worst = {
        .bytes = (const uint8_t *)"\x01\x02\x03", .offsets = (const uint64_t[]){0, 3}, .count = 1};
    CHECK_EQ(pybpe_records_write(to, ends, &worst, (const uint8_t *)"\"t\"", 3, NULL), PYBPE_OK);
    CHECK_EQ(ends[1], 6 * 3 + 3 + 7);
    /* Two halves of a character are two texts that are not UTF-8. */
    const pybpe_strings halves = {
        .bytes = (const uint8_t *)"a\xC3\xA9", .offsets = (const uint64_t[]){0, 1, 2, 3}, .count = 3};
    pybpe_error err;
    CHECK_EQ(pybpe_records_write(to, ends, &halves, (const uint8_t *)"\"t\"", 3, &err), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.offset, 1);
    const pybpe_strings back = {.bytes = texts, .offsets = (const uint64_t[]){0, 5, 2}, .count = 2};
    CHECK_EQ(pybpe_records_write(to, ends, &back, (const uint8_t *)"\"t\"", 3, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 1);
    /* Some of the lines, in memory of the promised size; and a line that is no record. */
    size_t n;
    const pybpe_strings some = {(const uint8_t *)"{}\n{\"a\": 1}\n{}\n", (const uint64_t[]){0, 3, 12, 15}, 3};
    uint8_t *kept = malloc(15 + 3 * 56);
    CHECK_EQ(pybpe_records_keep(kept, &n, &some, (const uint8_t[]){1, 0, 2}, NULL, NULL), PYBPE_OK);
    CHECK(n == 6 && memcmp(kept, "{}\n{}\n", n) == 0);
    uint8_t clusters[3 * PYBPE_DIGEST_SIZE] = {0};
    memset(clusters + PYBPE_DIGEST_SIZE, 0xA9, PYBPE_DIGEST_SIZE);
    CHECK_EQ(pybpe_records_keep(kept, &n, &some, (const uint8_t[]){0, 1, 0}, clusters, NULL), PYBPE_OK);
    const char named[] = "{\"a\": 1, \"pybpe_cluster\": \"a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9a9\"}\n";
    CHECK(n == sizeof named - 1 && memcmp(kept, named, n) == 0);
    free(kept);
    CHECK_EQ(pybpe_records_keep(to, &n, &halves, (const uint8_t[]){0, 0, 0}, NULL, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 0);
    free(to);
}

/* Random changes to records must not read outside them. Whatever is accepted has as many documents as lines. */
static void test_damage(void) {
    static const char start[] = "{\"id\":12,\"text\":\"a\\n\\ud83d\\ude00b\\\\\",\"m\":{\"k\":[1,2.5e3,null]}}\n";
    static const char letters[] = "\"\\{}[]:,u0dnt \n\r\x80\xC3";
    pybpe_divider *d = divider_of(thirds, SPLITS, "<>", NULL);
    size_t accepted = 0;
    for (int i = 0; i < 40000; i++) {
        char line[sizeof start];
        memcpy(line, start, sizeof start);
        for (uint32_t changes = 1 + random_below(3); changes > 0; changes--) {
            line[random_below(sizeof start - 1)] = letters[random_below(sizeof letters - 1)];
        }
        const size_t n = random_below(sizeof start);
        const int code = divide(d, PYBPE_DOCUMENTS_RECORD, line, n);
        accepted += code == PYBPE_OK;
        const int read = read_records(line, n, NULL, 0);
        CHECK(read == code || (code == PYBPE_OK && read == PYBPE_ERR_FORMAT)); /* it repeats a name */
        CHECK_EQ(divide(d, PYBPE_DOCUMENTS_BLANK, line, random_below(sizeof start)), PYBPE_OK);
    }
    CHECK(accepted > 100);
    pybpe_divider_free(d);
}

/* NULL with a size, and a split that does not exist. */
static void test_missing(void) {
    pybpe_divider *d = NULL;
    const uint8_t *none = NULL;
    const pybpe_division wrong[] = {{.key = none, .key_n = 1, .last = thirds, .splits = SPLITS},
                                    {.separator = none, .separator_n = 1, .last = thirds, .splits = SPLITS},
                                    {.last = NULL, .splits = SPLITS}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_EQ(pybpe_divider_new(&d, &wrong[i], NULL, NULL), PYBPE_ERR_VALUE);
        CHECK(d == NULL);
    }
    const pybpe_division how = {.last = thirds, .splits = SPLITS};
    CHECK_EQ(pybpe_divider_new(&d, &how, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_divider_divide(d, PYBPE_DOCUMENTS_RECORD, (const uint8_t *)"{\"\":\"a\"}\n", 9, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_divider_documents(d, SPLITS).count, 0);
    CHECK_EQ(pybpe_divider_documents(d, SIZE_MAX).count, 0);
    pybpe_divider_free(d);
}

static void test_memory(void) {
    failing_memory memory = {.left = -1};
    const pybpe_allocator mem = {failing_resize, &memory};
    const char *text = "{\"text\":\"a\\n\"}\n{\"text\":\"b\",\"pybpe_cluster\":\"c\"}\n";
    pybpe_division how = {.key = (const uint8_t *)"text", .key_n = 4, .last = thirds, .splits = SPLITS};
    int code = PYBPE_ERR_MEMORY;
    for (long n = 0; code == PYBPE_ERR_MEMORY && n < 100; n++) {
        memory.left = n;
        pybpe_divider *d = NULL;
        code = pybpe_divider_new(&d, &how, &mem, NULL);
        CHECK(code == PYBPE_OK || d == NULL);
        if (code == PYBPE_OK) {
            code = pybpe_divider_divide(d, PYBPE_DOCUMENTS_RECORD, (const uint8_t *)text, strlen(text), NULL);
        }
        pybpe_divider_free(d);
        CHECK_EQ(memory.blocks, 0);
        CHECK(code == PYBPE_OK || code == PYBPE_ERR_MEMORY);
    }
    CHECK_EQ(code, PYBPE_OK);
    CHECK(memory.left < 100);
}

/* Memory ends at any of many documents, in each form. */
static void test_memory_of_kinds(void) {
    enum { DOCUMENTS = 400, KINDS = 4, LISTED = 3 };
    static const char *const one[KINDS] = {"one more document\n", "one more document\n\n", "one more document<|x|>",
                                           "one more document"};
    const uint64_t mark_offsets[] = {0, 5};
    const uint32_t id = 0;
    const pybpe_strings marks = {(const uint8_t *)"<|x|>", mark_offsets, 1};
    pybpe_specials *specials = NULL;
    CHECK_EQ(pybpe_specials_new(&specials, &marks, &id, NULL, NULL, NULL), PYBPE_OK);
    const pybpe_division how = {.marks = specials, .last = all, .splits = 1};
    static uint8_t text[DOCUMENTS * 32];
    static uint64_t offsets[DOCUMENTS + 1];
    for (int kind = 0; kind < KINDS; kind++) {
        const size_t n = strlen(one[kind]);
        for (size_t i = 0; i < DOCUMENTS; i++) {
            memcpy(text + i * n, one[kind], n);
            offsets[i + 1] = (i + 1) * n;
        }
        int code = PYBPE_ERR_MEMORY;
        for (long grant = 0; code != PYBPE_OK && grant < 100; grant++) {
            failing_memory memory = {.left = grant};
            const pybpe_allocator mem = {failing_resize, &memory};
            pybpe_divider *d = NULL;
            code = pybpe_divider_new(&d, &how, &mem, NULL);
            if (code == PYBPE_OK) {
                code = kind == LISTED ? pybpe_divider_add(d, text, offsets, DOCUMENTS, NULL)
                                      : pybpe_divider_divide(d, kind, text, DOCUMENTS * n, NULL);
            }
            CHECK(code == PYBPE_ERR_MEMORY ||
                  (code == PYBPE_OK && grant > 3 && pybpe_divider_documents(d, 0).count >= DOCUMENTS));
            pybpe_divider_free(d);
            CHECK_EQ(memory.blocks, 0);
        }
        CHECK_EQ(code, PYBPE_OK);
    }
    pybpe_specials_free(specials);
}

int main(void) {
    test_kinds();
    test_origins();
    test_memory_of_kinds();
    test_records();
    test_counts_of_records();
    test_depth();
    test_long_numbers();
    test_hash();
    test_hashes_of_all_lengths();
    test_cluster();
    test_offsets();
    test_missing();
    test_records_in_one_form();
    test_records_without_cluster();
    test_written_records();
    test_damage();
    test_memory();
    return check_report("test_divide");
}
