/*
tokenizer.json: its large parts, and whole files: both forms of merges, what is refused, every cut, failing memory.
*/
#include "check.h"
#include "pybpe_corpus.h"
#include "small_vocab.h"

#include <stdbool.h>
#include <stdio.h>

/* The vocabulary of the 256 bytes and some entries more, as "vocab" has it; ids ascend from 0. */
static size_t write_vocab(char *out, size_t room, const char *more) {
    size_t n = (size_t)snprintf(out, room, "{");
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
        n += (size_t)snprintf(out + n, room - n, "%s\"\\u%04X\": %u", byte > 0 ? ",\n " : "", printable ? byte : next++,
                              byte);
    }
    return n + (size_t)snprintf(out + n, room - n, "%s}", more);
}

/* <|e|> is special 300. */
static const uint64_t SPECIAL_OFFSETS[] = {0, 5};
static const pybpe_strings SPECIAL_TEXTS = {(const uint8_t *)"<|e|>", SPECIAL_OFFSETS, 1};
static const uint32_t SPECIAL_IDS[] = {300};
static const pybpe_vocab_spec SPEC = {
    .specials = SPECIAL_IDS, .specials_count = 1, .eot_id = 300, .pattern = PYBPE_PATTERN_GPT2};

/* From memory of exactly the size of the texts, so that sanitizers see reads beyond them. */
static int make(pybpe_vocab **out, const char *vocab, size_t n, const char *merges, const pybpe_allocator *mem,
                pybpe_error *err) {
    size_t m = strlen(merges);
    uint8_t *exact_vocab = malloc(n + (n == 0));
    uint8_t *exact_merges = malloc(m + (m == 0));
    memcpy(exact_vocab, vocab, n);
    memcpy(exact_merges, merges, m);
    int code = pybpe_vocab_new_json(out, exact_vocab, n, exact_merges, m, &SPECIAL_TEXTS, &SPEC, mem, err);
    free(exact_vocab);
    free(exact_merges);
    return code;
}

static const char *const MORE = ",\"\\u0120t\":256, \"th\":258,\"\xC4\xA0th\" : 257,\"<|e|>\":300";
static const char *const MERGES = "[\"\xC4\xA0 t\", [\"t\", \"h\"], \"\\u0120t h\", [ \"\xC4\xA0\" , \"th\" ]]";

static void test_both_forms(void) {
    char text[8192];
    size_t n = write_vocab(text, sizeof text, MORE);
    pybpe_vocab *v;
    pybpe_error err;
    CHECK_EQ(make(&v, text, n, MERGES, NULL, &err), PYBPE_OK);
    pybpe_vocab_spec spec = pybpe_vocab_get_spec(v);
    CHECK_EQ(spec.tokens.count, 301);
    CHECK_EQ(spec.merges_count, 4);
    const uint32_t want[] = {32, 't', 't', 'h', 256, 'h', 32, 258};
    CHECK(memcmp(spec.merges, want, sizeof want) == 0);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)" th", 3, 0), 257);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"<|e|>", 5, 1), 300);
    CHECK_EQ(spec.tokens.offsets[300] - spec.tokens.offsets[259], 0);
    for (uint32_t byte = 0; byte < 256; byte++) {
        const uint8_t b = (uint8_t)byte;
        CHECK_EQ(pybpe_vocab_find(v, &b, 1, 0), byte);
    }
    pybpe_vocab_free(v);
}

/* Characters by their numbers, in either case; of two and three bytes, in a special. */
static void test_escapes(void) {
    const uint64_t offsets[] = {0, 8};
    const pybpe_strings texts = {(const uint8_t *)"<\xC3\xA9\xE4\xBD\xA0|>", offsets, 1};
    char text[8192];
    size_t n = write_vocab(text, sizeof text, ",\"<\\u00e9\\u4F60|>\":300,\"\\u00ef\\u00cD\\u00aB\\u00FA\":256");
    pybpe_vocab *v;
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_new_json(&v, (const uint8_t *)text, n, (const uint8_t *)"[]", 2, &texts, &SPEC, NULL, &err),
             PYBPE_OK);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"\xEF\xCD\xAB\xFA", 4, 0), 256);
    pybpe_vocab_free(v);
}

/* The escapes that have names, a custom pattern, and the other settings. */
static void test_named_escapes(void) {
    const uint64_t offsets[] = {0, 8};
    const pybpe_strings texts = {(const uint8_t *)"\"\\/\b\f\n\r\t", offsets, 1};
    pybpe_vocab_spec spec = SPEC;
    spec.pattern = PYBPE_PATTERN_CUSTOM;
    spec.custom = "[a-z]+|.";
    spec.normalizer = PYBPE_NORMALIZER_NFKC;
    spec.whole_words = 1;
    char text[8192];
    size_t n = write_vocab(text, sizeof text, ",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":300");
    pybpe_vocab *v;
    CHECK_EQ(pybpe_vocab_new_json(&v, (const uint8_t *)text, n, (const uint8_t *)"[]", 2, &texts, &spec, NULL, NULL),
             PYBPE_OK);
    CHECK_EQ(pybpe_vocab_find(v, texts.bytes, 8, 1), 300);
    const pybpe_vocab_spec got = pybpe_vocab_get_spec(v);
    CHECK(strcmp(got.custom, spec.custom) == 0 && got.pattern == PYBPE_PATTERN_CUSTOM);
    CHECK_EQ(got.normalizer, PYBPE_NORMALIZER_NFKC);
    CHECK_EQ(got.whole_words, 1);
    CHECK_EQ(got.eot_id, 300);
    pybpe_vocab_free(v);
    static const char *const wrong[] = {",\"\\a\":256", ",\"\\", ",\"\\B\":256"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        n = write_vocab(text, sizeof text, wrong[i]);
        CHECK_EQ(
            pybpe_vocab_new_json(&v, (const uint8_t *)text, n, (const uint8_t *)"[]", 2, &texts, &spec, NULL, NULL),
            PYBPE_ERR_FORMAT);
    }
}

/* Half of a surrogate pair is not a character, even if a special has the bytes that it would have. */
static void test_surrogates(void) {
    static const struct {
        const char *escaped, *text;
        int expected;
    } cases[] = {{"\\uD7FF", "\xED\x9F\xBF", PYBPE_OK},         {"\\uD800", "\xED\xA0\x80", PYBPE_ERR_FORMAT},
                 {"\\uDBFF", "\xED\xAF\xBF", PYBPE_ERR_FORMAT}, {"\\uDFFF", "\xED\xBF\xBF", PYBPE_ERR_FORMAT},
                 {"\\uE000", "\xEE\x80\x80", PYBPE_OK},         {"\\uFFFF", "\xEF\xBF\xBF", PYBPE_OK}};
    const uint64_t offsets[] = {0, 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pybpe_strings texts = {(const uint8_t *)cases[i].text, offsets, 1};
        char more[64], text[8192];
        snprintf(more, sizeof more, ",\"%s\":300", cases[i].escaped);
        size_t n = write_vocab(text, sizeof text, more);
        pybpe_vocab *v = NULL;
        CHECK_EQ(
            pybpe_vocab_new_json(&v, (const uint8_t *)text, n, (const uint8_t *)"[]", 2, &texts, &SPEC, NULL, NULL),
            cases[i].expected);
        pybpe_vocab_free(v);
    }
}

static void expect_refused(const char *more, const char *merges, int line) {
    char text[8192];
    size_t n = write_vocab(text, sizeof text, more);
    pybpe_vocab *v = (pybpe_vocab *)1;
    pybpe_error err = {0};
    int code = make(&v, text, n, merges, NULL, &err);
    check_that(code < 0 && code == err.code && v == NULL && err.msg[0] != '\0', "it is refused", __FILE__, line);
    pybpe_vocab_free(code == PYBPE_OK ? v : NULL);
}

static void test_refused(void) {
    static const char *const vocabs[] = {
        ",\"aa\":5",                 /* an id twice */
        ",\"a\":256",                /* a token twice */
        ",\"\":256",                 /* no bytes */
        ",\" a\":256",               /* a space represents no byte */
        ",\"\xE4\xBD\xA0\":256",     /* neither does a Chinese character */
        ",\"\xC1\xA1\xC1\xA1\":256", /* aa, but not in UTF-8 */
        ",\"a\xC4\":256",            /* half a character */
        ",\"\xC4z\":256",            /* and another one */
        ",\"aa\":-1",
        ",\"aa\":1.0",
        ",\"aa\":1e2",
        ",\"aa\":0256",
        ",\"aa\":99999999999",
        ",\"aa\":",
        ",\"aa\":16777215", /* far beyond the others */
        ",\"aa\":\"256\"",
        ",\"aa\" 256",
        ",aa:256",
        ",:256",
        ",",
        ",\"aa\":256}",
        ",\"aa\":256 \"ab\":257",
        ",\"\\ud83d\":256", /* half a pair */
        ",\"\\x61\":256",
        ",\"\\u00\":256",
        ",\"a\nb\":256",
    };
    char more[256];
    for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
        snprintf(more, sizeof more, ",\"<|e|>\":300%s", vocabs[i]);
        expect_refused(more, "[]", (int)i);
    }
    static const char *const specials[] = {
        ",\"<|e|>\":256", /* another id than the special's */
        ",\"th\":300",    /* the special's id */
        ",\"<|f|>\":300", /* and length */
        ",\"<|e|>>\":300",
    };
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        expect_refused(specials[i], "[]", (int)i);
    }
    static const char *const merges[] = {
        "",
        "[",
        "{}",
        "[\"t h\"",
        "[\"t h\"]]",
        "[\"th\"]",
        "[\"t  h\"]",
        "[\" h\"]",
        "[\"t h x\"]",
        "[\"t \"]",
        "[\"h t\"]",
        "[[\"t\",\"h\",\"x\"]]",
        "[[\"t\"]]",
        "[[]]",
        "[1]",
        "[\"t h\",]",
        "[\"t h\", \"t h\"]", /* twice */
        "[\"t h\", \"\xC4\xA0 t\", \"\xC4\xA0 th\", \"\xC4\xA0t h\", \"\xC4\xA0t h\"]",
        "[\"<|e| >\"]",
        "[[\"t\" \"h\"]]",
        "[\"t h\" \"t h\"]",
    };
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        expect_refused(MORE, merges[i], (int)i);
    }
}

/* The last of the specials does not say how many ids there are. */
static void test_specials_out_of_order(void) {
    const uint64_t offsets[] = {0, 5, 8};
    const pybpe_strings texts = {(const uint8_t *)"<|e|><f>", offsets, 2};
    const uint32_t ids[] = {500, 300};
    pybpe_vocab_spec spec = SPEC;
    spec.specials = ids;
    spec.specials_count = 2;
    char text[8192];
    size_t n = write_vocab(text, sizeof text, "");
    pybpe_vocab *v;
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_new_json(&v, (const uint8_t *)text, n, (const uint8_t *)"[]", 2, &texts, &spec, NULL, &err),
             PYBPE_ERR_VALUE);
    CHECK(v == NULL && strstr(err.msg, "special 1 has id 300") != NULL);
}

/* Specials that the vocabulary lacks must have the ids after it; otherwise another reader must read the file. */
static void test_specials_after_the_vocabulary(void) {
    const uint64_t offsets[] = {0, 5, 8};
    const pybpe_strings texts = {(const uint8_t *)"<|e|><f>", offsets, 2};
    static const struct {
        const char *more;
        uint32_t ids[2];
        int expected;
    } cases[] = {
        {"", {256, 257}, PYBPE_OK},
        {"", {256, 258}, PYBPE_ERR_FORMAT},
        {"", {257, 258}, PYBPE_ERR_FORMAT},
        {",\"<|e|>\":256", {256, 257}, PYBPE_OK},
        {",\"<|e|>\":300", {300, 301}, PYBPE_ERR_FORMAT},
        {",\"<f>\":300", {257, 300}, PYBPE_OK},
        {",\"<|e|>\":300,\"<f>\":515", {300, 515}, PYBPE_OK},         /* 516 ids for 258 tokens */
        {",\"<|e|>\":300,\"<f>\":516", {300, 516}, PYBPE_ERR_FORMAT}, /* more unused ids than tokens */
        {",\"aa\":300", {257, 258}, PYBPE_OK},
        {",\"aa\":300", {256, 257}, PYBPE_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pybpe_vocab_spec spec = SPEC;
        spec.eot_id = PYBPE_NO_ID;
        spec.specials = cases[i].ids;
        spec.specials_count = 2;
        char text[8192];
        size_t n = write_vocab(text, sizeof text, cases[i].more);
        pybpe_vocab *v = NULL;
        CHECK_EQ(
            pybpe_vocab_new_json(&v, (const uint8_t *)text, n, (const uint8_t *)"[]", 2, &texts, &spec, NULL, NULL),
            cases[i].expected);
        pybpe_vocab_free(v);
    }
}

/* Many specials with unused ids between them. Their ids are in memory of exactly their size, so that sanitizers see a
   search beyond them. */
static void test_many_specials(void) {
    enum { MANY = 40 };
    char texts[4 * MANY + 1], more[16 * MANY], text[8192];
    uint64_t offsets[MANY + 1] = {0};
    uint32_t *ids = malloc(MANY * sizeof *ids);
    size_t length = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        ids[i] = 256 + 3 * i;
        offsets[i + 1] = 4 * (uint64_t)(i + 1);
        snprintf(texts + 4 * i, 5, "<%02u>", i);
        length += (size_t)snprintf(more + length, sizeof more - length, ",\"<%02u>\":%u", i, ids[i]);
    }
    size_t n = write_vocab(text, sizeof text, more);
    const pybpe_strings strings = {(const uint8_t *)texts, offsets, MANY};
    pybpe_vocab_spec spec = SPEC;
    spec.eot_id = PYBPE_NO_ID;
    spec.specials = ids;
    spec.specials_count = MANY;
    pybpe_vocab *v = NULL;
    CHECK_EQ(pybpe_vocab_new_json(&v, (const uint8_t *)text, n, (const uint8_t *)"[]", 2, &strings, &spec, NULL, NULL),
             PYBPE_OK);
    for (size_t i = 0; i < MANY; i++) {
        CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)texts + 4 * i, 4, 1), ids[i]);
    }
    pybpe_vocab_free(v);
    free(ids);
}

/* As many tokens and merges as a text of this length can contain: there is just enough room for them. */
static void test_dense(void) {
    enum { MANY = 200 };
    char vocab[6 * MANY + 2] = "{";
    char merges[6 * MANY + 2] = "[";
    for (size_t i = 0; i < MANY; i++) {
        memcpy(vocab + 1 + 6 * i, i + 1 < MANY ? "\"a\":1," : "\"a\":1}", 6);
        memcpy(merges + 1 + 6 * i, i + 1 < MANY ? "\"t h\"," : "\"t h\"]", 6);
    }
    pybpe_vocab *v;
    pybpe_error err;
    CHECK_EQ(make(&v, vocab, 6 * MANY + 1, "[]", NULL, &err), PYBPE_ERR_FORMAT);
    expect_refused(MORE, merges, __LINE__);
}

static void test_cuts(void) {
    char text[8192];
    size_t n = write_vocab(text, sizeof text, MORE);
    int taken = 0;
    for (size_t cut = 0; cut < n; cut++) {
        pybpe_vocab *v;
        taken += make(&v, text, cut, MERGES, NULL, NULL) == PYBPE_OK;
    }
    for (size_t cut = 0; cut < strlen(MERGES); cut++) {
        char cut_merges[128];
        snprintf(cut_merges, sizeof cut_merges, "%.*s", (int)cut, MERGES);
        pybpe_vocab *v;
        taken += make(&v, text, n, cut_merges, NULL, NULL) == PYBPE_OK;
    }
    CHECK_EQ(taken, 0);
}

static int find(const char *text, size_t spans[4]) {
    size_t n = strlen(text);
    uint8_t *exact = malloc(n + (n == 0));
    memcpy(exact, text, n);
    int found = pybpe_tokenizer_json_find(exact, n, spans);
    free(exact);
    return found;
}

static void test_find(void) {
    size_t spans[4];
    const char *text =
        " {\"a\": [\"model\", {\"vocab\": {}}], \"b\": \"\\\"}\", \"model\" : {\"x\": -1.5e3, \"merges\": [\"]\"] ,"
        "\"n\": null, \"o\": 0,\"e\":100E-9,\"f\":false , \"vocab\": {\"}\": {\"a\\\\\": 1}} }, \"c\": {}} \n";
    CHECK_EQ(find(text, spans), 1);
    CHECK(strncmp(text + spans[0], "{\"}\": {\"a\\\\\": 1}}", spans[1] - spans[0]) == 0 && spans[1] - spans[0] == 17);
    CHECK(strncmp(text + spans[2], "[\"]\"]", spans[3] - spans[2]) == 0 && spans[3] - spans[2] == 5);
    for (size_t cut = 0; cut < strlen(text) - 2; cut++) {
        char part[256];
        snprintf(part, sizeof part, "%.*s", (int)cut, text);
        CHECK_EQ(find(part, spans), 0);
    }
    static const char *const others[] = {
        "",
        "1",
        "[]",
        "{}",
        "{\"model\": {}}",
        "{\"model\": []}",
        "{\"model\": {\"vocab\": {}}}",
        "{\"model\": {\"vocab\": {}, \"merges\": [], \"vocab\": {}}}",
        "{\"model\": {\"vocab\": {}, \"merges\": []}, \"model\": 1}",
        "{\"model\": {\"vocab\": {}, \"m\\u0065rges\": []}}",
        "{\"model\": {\"vocab\": {}, \"merges\": []}} x",
        "{\"a\": \"\\",
        "{\"a\": , \"model\": {\"vocab\": {}, \"merges\": []}}",
        "{\"model\": {\"vocab\": {}, \"merges\": []}, \"a\": }",
        "{: 1, \"model\": {\"vocab\": {}, \"merges\": []}}",
        "{\"other\": {\"vocab\": {}, \"merges\": []}}",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_EQ(find(others[i], spans), 0);
    }
    CHECK_EQ(pybpe_tokenizer_json_find(NULL, 0, spans), 0);
    static const char spaced[] = "{\"a\":\r\t1E+5,\"model\":{\"vocab\":{},\r\"merges\":[]}}\t\0";
    CHECK_EQ(find(spaced, spans), 1);
    CHECK_EQ(pybpe_tokenizer_json_find((const uint8_t *)spaced, sizeof spaced - 1, spans),
             0); /* a zero byte after it */
}

static void test_failing_memory(void) {
    char text[8192];
    size_t n = write_vocab(text, sizeof text, MORE);
    int failures = 0;
    long grant = 0;
    for (int code = PYBPE_ERR_MEMORY; code != PYBPE_OK && grant < 1000; grant++) {
        failing_memory m = {.left = grant};
        pybpe_allocator mem = {failing_resize, &m};
        pybpe_vocab *v = NULL;
        pybpe_error err;
        code = make(&v, text, n, MERGES, &mem, &err);
        failures += code != PYBPE_OK && (code != PYBPE_ERR_MEMORY || v != NULL);
        pybpe_vocab_free(v);
        failures += m.blocks != 0;
    }
    CHECK_EQ(failures, 0);
    CHECK(grant > 8 && grant < 1000);
}

/* A vocabulary without merges; texts of specials so long that no memory could hold them. */
static void test_extremes(void) {
    char text[8192];
    size_t n = write_vocab(text, sizeof text, MORE);
    const uint64_t offsets[] = {0, SIZE_MAX - 1};
    const pybpe_strings endless = {(const uint8_t *)"<|e|>", offsets, 1};
    pybpe_vocab *v;
    pybpe_error err;
    CHECK_EQ(make(&v, text, n, "[ ]", NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_vocab_get_spec(v).merges_count, 0);
    CHECK_EQ(pybpe_vocab_get_spec(v).tokens.count, 301);
    pybpe_vocab_free(v);
    CHECK_EQ(pybpe_vocab_new_json(&v, (const uint8_t *)text, n, (const uint8_t *)"[]", 2, &endless, &SPEC, NULL, &err),
             PYBPE_ERR_MEMORY);
    CHECK(v == NULL);
}

/* ---------------------------------------------------------------------------------------------------
Whole files
*/

/* What differs between the files: all but `added` and `pre` may be empty. */
typedef struct file_parts {
    const char *added, *pre; /* values */
    const char *top, *model; /* members, each with a comma after it */
} file_parts;

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"trim_offsets\":true}"
#define SPLIT(regex, behavior)                                                                                         \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"" behavior "\"}"
#define SEQUENCE(steps) "{\"type\":\"Sequence\",\"pretokenizers\":[" steps "]}"
#define SECOND "\"version\":\"2.0\","
#define IN_BYTES "\"byte_level\":true,"
#define DIGITS "{\"type\":\"Digits\",\"individual_digits\":true}"
#define ADDED(members) "[{\"id\":259,\"content\":\"<|e|>\"" members "}]"

static const file_parts PLAIN = {"[]", BYTE_LEVEL, "", ""};

static size_t write_file(char *out, size_t room, file_parts parts) {
    char vocab[8192];
    write_vocab(vocab, sizeof vocab, ",\"\\u0120t\":256,\"th\":257,\"12\":258");
    return (size_t)snprintf(
        out, room,
        " {%s\"added_tokens\":%s,\"pre_tokenizer\":%s,\n\"model\":{%s\"vocab\":%s,"
        "\"merges\":[\"\\u0120 t\",[\"t\",\"h\"],\"1 2\"]},\"other\":[{},[1.5e-3,\"\\u00e9\\n\",null]]}",
        parts.top, parts.added, parts.pre, parts.model, vocab);
}

static int load(pybpe_vocab **out, const char *text, size_t n, const pybpe_allocator *mem, pybpe_error *err) {
    uint8_t *exact = malloc(n + (n == 0));
    memcpy(exact, text, n);
    int code = pybpe_vocab_load_mem(out, exact, n, mem, err);
    free(exact);
    return code;
}

static pybpe_vocab *loaded(file_parts parts) {
    char text[16384];
    pybpe_vocab *v = NULL;
    pybpe_error err = {0};
    if (load(&v, text, write_file(text, sizeof text, parts), NULL, &err) != PYBPE_OK) {
        printf("%s\n", err.msg);
    }
    CHECK(v != NULL);
    return v;
}

static void expect_ids(const pybpe_vocab *v, const char *text, const uint32_t *want, size_t wanted, int line) {
    pybpe_encoder *e;
    pybpe_cache *c;
    uint32_t ids[256];
    size_t count = 0;
    const size_t n = strlen(text);
    CHECK_EQ(pybpe_encoder_new(&e, v, NULL, 0, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encode(e, c, pybpe_encoder_specials(e), (const uint8_t *)text, n, ids, 4, 256, &count, NULL),
             PYBPE_OK);
    check_that(count == wanted && memcmp(ids, want, 4 * count) == 0, text, __FILE__, line);
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
}

#define EXPECT_IDS(v, text, ...)                                                                                       \
    do {                                                                                                               \
        const uint32_t want[] = {__VA_ARGS__};                                                                         \
        expect_ids((v), (text), want, sizeof want / sizeof *want, __LINE__);                                           \
    } while (0)

/* With a space before it, a text has more ids than bytes. */
static void test_a_tokenizer_that_lengthens_texts(void) {
    char text[16384];
    const file_parts parts = {"[]", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "", ""};
    const size_t n = write_file(text, sizeof text, parts);
    uint32_t ids[PYBPE_IDS_ROOM(1)];
    size_t count = 0;
    pybpe_tokenizer *t = NULL;
    pybpe_error err;
    CHECK_EQ(pybpe_tokenizer_load_mem(&t, (const uint8_t *)text, n, NULL, NULL), PYBPE_OK);
    for (size_t cap = 0; cap <= PYBPE_IDS_ROOM(1); cap++) {
        ids[1] = 0;
        CHECK_EQ(pybpe_tokenizer_encode(t, "7", 1, ids, cap, &count, &err), cap < 2 ? PYBPE_ERR_LIMIT : PYBPE_OK);
        CHECK(count == 2 && (cap < 2 ? ids[1] == 0 : ids[0] == ' ' && ids[1] == '7'));
    }
    CHECK_EQ(pybpe_tokenizer_encode(t, NULL, 0, ids, 0, &count, NULL), PYBPE_OK);
    CHECK_EQ(count, 0);
    CHECK_EQ(pybpe_tokenizer_encode(t, "7", SIZE_MAX / 2, ids, 1, &count, &err), PYBPE_ERR_MEMORY);
    pybpe_tokenizer_free(t);
}

static void test_whole_files(void) {
    pybpe_vocab *v = loaded(PLAIN);
    EXPECT_IDS(v, "th th 12", 257, 256, 'h', ' ', 258);
    CHECK_EQ(pybpe_vocab_get_spec(v).pattern, PYBPE_PATTERN_GPT2);
    CHECK_EQ(pybpe_vocab_get_spec(v).eot_id, PYBPE_NO_ID);
    pybpe_vocab_free(v);

    /* Flags, a normalizer in a list, a space before texts. */
    v = loaded(
        (file_parts){"[{\"id\":259,\"content\":\"<m>\",\"lstrip\":true},{\"content\":\"\",\"id\":3},"
                     "{\"id\":260,\"content\":\"<|endoftext|>\",\"special\":true}]",
                     "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}",
                     "\"version\":\"1.0\",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]},"
                     "\"decoder\":{\"type\":\"ByteLevel\"},",
                     "\"type\":\"BPE\",\"dropout\":null,\"ignore_merges\":true,\"unk_token\":null,"});
    EXPECT_IDS(v, "th  <m>the\xCC\x81<|endoftext|>", 256, 'h', 259, 256, 'h', 0xC3, 0xA9, 260);
    const pybpe_vocab_spec spec = pybpe_vocab_get_spec(v);
    CHECK(spec.prefix_space == 1 && spec.whole_words == 1 && spec.normalizer == PYBPE_NORMALIZER_NFC);
    CHECK(spec.special_flags[0] == PYBPE_SPECIAL_LSTRIP && spec.special_flags[1] == 0 && spec.eot_id == 260);
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_save(v, "never-written.bin", 2, &err), PYBPE_ERR_LIMIT);
    CHECK(strstr(err.msg, "prefix_space") != NULL);
    pybpe_vocab_free(v);

    /* The end of a text has a name of its own; specials that are all alike need no flags. */
    v = loaded((file_parts){ADDED(",\"normalized\":true"), SEQUENCE(DIGITS "," BYTE_LEVEL), "",
                            "\"pybpe\":{\"version\":1,\"eos\":\"<|e|>\",\"x\":[]},"});
    EXPECT_IDS(v, "12<|e|>th", '1', '2', 259, 257);
    CHECK(pybpe_vocab_get_spec(v).eot_id == 259 && pybpe_vocab_get_spec(v).special_flags == NULL);
    CHECK(strncmp(pybpe_vocab_get_spec(v).custom, "\\p{N}(?then)'s|'t", 17) == 0);
    pybpe_vocab_free(v);

    /* A pattern that is built in; steps that read bytes: the second byte of o with a grave accent stands for a number. */
    v = loaded((file_parts){"null",
                            SEQUENCE(SPLIT("'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+"
                                           "|\\\\s+(?!\\\\S)|\\\\s+",
                                           "Isolated") ",{\"type\":\"ByteLevel\",\"use_regex\":false}," DIGITS),
                            "", ""});
    EXPECT_IDS(v, "12", '1', '2');
    pybpe_vocab_free(v);

    /* Version 2.0: a role says what ends a document, and a Split has a usual behavior. */
    v = loaded((file_parts){ADDED(""),
                            SEQUENCE(DIGITS ",{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\s?\\\\p{L}+\"}}"),
                            SECOND "\"role_to_token\":{\"bos_token\":1,\"eos_token\":\"<|e|>\"},", IN_BYTES});
    EXPECT_IDS(v, "12 th<|e|>th", '1', '2', 257 - 1, 'h', 259, 257);
    CHECK_EQ(pybpe_vocab_get_spec(v).eot_id, 259);
    pybpe_vocab_free(v);
    v = loaded((file_parts){"[{\"id\":259,\"content\":\"<|endoftext|>\"}]", DIGITS,
                            SECOND "\"role_to_token\":{\"eos_token\":\"<|e|>\"},", IN_BYTES});
    CHECK_EQ(pybpe_vocab_get_spec(v).eot_id, 259);
    pybpe_vocab_free(v);
}

static void test_refused_parts(void) {
    static const struct {
        file_parts parts;
        const char *message;
    } cases[] = {
        {{"[]", BYTE_LEVEL, "\"version\":\"3.0\",", ""}, "version \"3.0\""},
        {{"[]", BYTE_LEVEL, SECOND, IN_BYTES}, "the pre_tokenizer has ByteLevel, for which version 2.0 has"},
        {{"[]", DIGITS, SECOND, ""}, "model.byte_level is not true"},
        {{"[]", DIGITS, SECOND, "\"byte_level\":null,"}, "byte_level is null"},
        {{"[]", DIGITS, "", IN_BYTES}, "must have one ByteLevel"},
        {{"[]", "null", SECOND, IN_BYTES}, "must have one ByteLevel, and a step"},
        {{"[]", SPLIT("\\\\s+$", "Isolated"), SECOND, IN_BYTES}, "the pre_tokenizer has the step"},
        {{"[]", SEQUENCE("{\"type\":\"Punctuation\",\"behavior\":\"x\"}," BYTE_LEVEL), "", ""}, "has the step"},
        {{"[]", DIGITS, SECOND "\"role_to_token\":[],", IN_BYTES}, "role_to_token is not a JSON object"},
        {{"[]", DIGITS, SECOND "\"role_to_token\":{\"eos_token\":1},", IN_BYTES}, "eos_token is missing"},
        {{"[]", BYTE_LEVEL, "\"normalizer\":{\"type\":\"Lowercase\"},", ""},
         "the normalizer is {\"type\":\"Lowercase\"}"},
        {{"[]", BYTE_LEVEL, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[null,null]},", ""},
         "the normalizer"},
        {{"[]", BYTE_LEVEL, "\"decoder\":{\"type\":\"Metaspace\"},", ""}, "the decoder is"},
        {{"[]", BYTE_LEVEL, "\"truncation\":[tru],", ""}, "not a JSON object"},
        {{"[]", BYTE_LEVEL, "\"truncation\":01,", ""}, "not a JSON object"},
        {{"[]", BYTE_LEVEL, "\"model\":null,", ""}, "not a JSON object"},
        {{"[]", BYTE_LEVEL, "", "\"type\":\"Unigram\","}, "model.type is \"Unigram\""},
        {{"[]", BYTE_LEVEL, "", "\"byte_fallback\":true,"}, "model.byte_fallback"},
        {{"[]", BYTE_LEVEL, "", "\"ignore_merges\":1,"}, "ignore_merges is 1"},
        {{"[]", BYTE_LEVEL, "", "\"unk_token\":1,"}, "model.unk_token is 1"},
        {{"[]", BYTE_LEVEL, "\"version\":null,", ""}, "version null"},
        {{"[]", BYTE_LEVEL, "", "\"dropout\":0.1,"}, "model.dropout is 0.1"},
        {{"[]", BYTE_LEVEL, "", "\"end_of_word_suffix\":\"</w>\","}, "model.end_of_word_suffix is \"</w>\""},
        {{"[]", BYTE_LEVEL, "", "\"pybpe\":{\"version\":2},"}, "a newer pybpe"},
        {{"{}", BYTE_LEVEL, "", ""}, "added_tokens is not an array"},
        {{"[1]", BYTE_LEVEL, "", ""}, "an added token is not a JSON object"},
        {{"[{\"id\":259}]", BYTE_LEVEL, "", ""}, "content is missing"},
        {{"[{\"content\":\"<|e|>\"}]", BYTE_LEVEL, "", ""}, "the id of the added token <|e|>"},
        {{"[{\"id\":16777216,\"content\":\"<|e|>\"}]", BYTE_LEVEL, "", ""}, "a number from 0 to 16777215"},
        {{"[{\"id\":260,\"content\":\"<a>\"},{\"id\":259,\"content\":\"<b>\"}]", BYTE_LEVEL, "", ""},
         "not above the id"},
        {{"[{\"same_id_as\":\"<|e|>\",\"content\":\"<a>\"}]", BYTE_LEVEL, "", ""}, "shares the id"},
        {{ADDED(",\"rstrip\":null"), BYTE_LEVEL, "", ""}, "rstrip is null"},
        {{ADDED("},{\"id\":260,\"content\":\" x\",\"rstrip\":true"), BYTE_LEVEL, "", ""}, "white space"},
        {{ADDED(",\"normalized\":true"), BYTE_LEVEL, "\"normalizer\":{\"type\":\"NFKC\"},", ""}, "has normalized on"},
        {{"[{\"id\":259,\"content\":\"\\u0120\"}]", BYTE_LEVEL, "", ""}, "the same spelling"},
        {{"[{\"id\":300,\"content\":\"<|e|>\"}]", BYTE_LEVEL, "", ""}, "put each with its id in model.vocab"},
        {{"[]", "null", "", ""}, "must have one ByteLevel"},
        {{"[]", SEQUENCE(BYTE_LEVEL "," BYTE_LEVEL), "", ""}, "ByteLevel twice"},
        {{"[]", SEQUENCE(DIGITS ",{\"type\":\"ByteLevel\",\"add_prefix_space\":true}"), "", ""}, "after another step"},
        {{"[]", SEQUENCE(SPLIT("[a-q]", "Isolated") "," BYTE_LEVEL), "", ""}, "in none of the models that C reads"},
        {{"[]", SEQUENCE(SPLIT("\\\\p{N}", "Removed") "," BYTE_LEVEL), "", ""}, "in none of the models that C reads"},
        {{"[]", SEQUENCE("{\"type\":\"Whitespace\"}," BYTE_LEVEL), "", ""}, "in none of the models that C reads"},
        {{"[]", "{\"type\":\"Sequence\",\"pretokenizers\":{}}", "", ""}, "not an array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[16384];
        const size_t n = write_file(text, sizeof text, cases[i].parts);
        pybpe_vocab *v = (pybpe_vocab *)1;
        pybpe_error err = {0};
        CHECK_EQ(load(&v, text, n, NULL, &err), PYBPE_ERR_FORMAT);
        if (v != NULL || err.offset >= n || strstr(err.msg, cases[i].message) == NULL) {
            printf("case %zu: %s\n", i, err.msg);
        }
        CHECK(v == NULL && err.offset < n && strstr(err.msg, cases[i].message) != NULL);
    }
}

/* Many nested or successive steps. */
static void test_many_steps(void) {
    char pre[4096], text[16384];
    for (int nested = 0; nested < 2; nested++) {
        for (size_t count = 1; count < 20; count++) {
            size_t at = 0;
            for (size_t i = 0; i < (nested ? count : 1); i++) {
                at += (size_t)snprintf(pre + at, sizeof pre - at, "{\"type\":\"Sequence\",\"pretokenizers\":[");
            }
            for (size_t i = 1; i < (nested ? 1 : count); i++) {
                at += (size_t)snprintf(pre + at, sizeof pre - at, DIGITS ",");
            }
            at += (size_t)snprintf(pre + at, sizeof pre - at, BYTE_LEVEL);
            for (size_t i = 0; i < (nested ? count : 1); i++) {
                at += (size_t)snprintf(pre + at, sizeof pre - at, "]}");
            }
            pybpe_vocab *v = NULL;
            const size_t n = write_file(text, sizeof text, (file_parts){"[]", pre, "", ""});
            CHECK_EQ(load(&v, text, n, NULL, NULL) == PYBPE_OK, count <= (nested ? 8 : 16));
            pybpe_vocab_free(v);
        }
    }
}

static const file_parts RICH = {ADDED(",\"lstrip\":true"), SEQUENCE(DIGITS "," BYTE_LEVEL),
                                "\"normalizer\":{\"type\":\"NFC\"},", "\"ignore_merges\":true,"};

static void test_whole_cuts(void) {
    char text[16384];
    const size_t n = write_file(text, sizeof text, RICH);
    int taken = 0;
    for (size_t cut = 1; cut < n; cut++) {
        pybpe_vocab *v = NULL;
        taken += load(&v, text, cut, NULL, NULL) == PYBPE_OK;
    }
    CHECK_EQ(taken, 0);
    text[n / 2] = (char)0xFF;
    pybpe_vocab *v;
    pybpe_error err;
    CHECK_EQ(load(&v, text, n, NULL, &err), PYBPE_ERR_FORMAT);
    CHECK(err.offset == n / 2 && strstr(err.msg, "not UTF-8") != NULL);
}

static void test_whole_failing_memory(void) {
    char text[16384];
    const size_t n = write_file(text, sizeof text, RICH);
    int failures = 0;
    long grant = 0;
    for (int code = PYBPE_ERR_MEMORY; code != PYBPE_OK && grant < 1000; grant++) {
        failing_memory m = {.left = grant};
        pybpe_allocator mem = {failing_resize, &m};
        pybpe_vocab *v = NULL;
        pybpe_encoder *e = NULL;
        pybpe_error err;
        code = load(&v, text, n, &mem, &err);
        code = code == PYBPE_OK ? pybpe_encoder_new(&e, v, NULL, 0, &mem, &err) : code;
        failures += code != PYBPE_OK && (code != PYBPE_ERR_MEMORY || e != NULL);
        pybpe_encoder_free(e);
        pybpe_vocab_free(v);
        failures += m.blocks != 0;
    }
    CHECK_EQ(failures, 0);
    CHECK(grant > 30 && grant < 1000);
}

/* Regular expressions that the library knows. */
static void test_known_regexes(void) {
    char many[256] = "\\p{N}";
    pybpe_pretok *p;
    pybpe_error err;
    for (int pattern = PYBPE_PATTERN_GPT2; pattern <= PYBPE_PATTERN_NANOCHAT; pattern++) {
        const char *regex = pybpe_pattern_regex(pattern);
        CHECK_EQ(pybpe_pattern_find_regex((const uint8_t *)regex, strlen(regex)), pattern);
        CHECK_EQ(pybpe_pattern_find_regex((const uint8_t *)regex, strlen(regex) - 1), PYBPE_ERR_VALUE);
    }
    static const char *const unknown[] = {"", "[a-q]", "\\p{N}(?then)", "\\p{N}(?then)[a-q]"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        CHECK_EQ(pybpe_pretok_new_regex(&p, unknown[i], NULL, &err), PYBPE_ERR_VALUE);
        CHECK(p == NULL && strstr(err.msg, "does not know the regular expression") != NULL);
    }
    for (size_t steps = 1; steps <= 17; steps++) {
        CHECK_EQ(pybpe_pretok_new_regex(&p, many, NULL, &err), steps <= 16 ? PYBPE_OK : PYBPE_ERR_VALUE);
        if (steps <= 16) {
            size_t ends[64];
            size_t end = 0;
            for (size_t want = 1; want <= 3; want++) {
                CHECK(pybpe_pretok_split(p, (const uint8_t *)"a12", 3, end, ends, 64) > 0 && ends[0] == want);
                end = ends[0];
            }
        }
        pybpe_pretok_free(p);
        snprintf(many + strlen(many), sizeof many - strlen(many), "(?then)\\p{N}");
    }
    CHECK(strstr(err.msg, "more than 16 steps") != NULL);
}

int main(void) {
    test_both_forms();
    test_escapes();
    test_named_escapes();
    test_surrogates();
    test_extremes();
    test_refused();
    test_specials_out_of_order();
    test_specials_after_the_vocabulary();
    test_many_specials();
    test_dense();
    test_cuts();
    test_find();
    test_failing_memory();
    test_whole_files();
    test_a_tokenizer_that_lengthens_texts();
    test_refused_parts();
    test_many_steps();
    test_whole_cuts();
    test_whole_failing_memory();
    test_known_regexes();
    return check_report("tokenizer_json");
}
