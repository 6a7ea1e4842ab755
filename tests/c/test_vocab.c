/*
Vocabularies: what is accepted and refused, tokenizer.bin there and back, damaged files, decoding.
*/
#include "check.h"
#include "random_state.h"
#include "small_vocab.h"
#include "vocab/vocab.h"

#include <unistd.h>

/* Ids 256 ab, 257 abc, 258 aa, 259 <|e|>. */
static void fill(small_vocab *s) {
    small_start(s);
    uint32_t ab = small_add_merge(s, 'a', 'b');
    small_add_merge(s, ab, 'c');
    small_add_merge(s, 'a', 'a');
    small_add_special(s, "<|e|>");
}

static void expect_refused(const pybpe_vocab_spec *spec, int code, uint64_t offset, int line) {
    pybpe_vocab *v = (pybpe_vocab *)1;
    pybpe_error err;
    int got = pybpe_vocab_new(&v, spec, NULL, &err);
    if (got != code || err.code != code || err.offset != offset || v != NULL || err.msg[0] == '\0') {
        printf("line %d: code %d, offset %llu: %s\n", line, got, (unsigned long long)err.offset, err.msg);
    }
    CHECK(got == code && err.code == code && err.offset == offset && v == NULL && err.msg[0] != '\0');
}

/* An allocator whose memory is not zero. */
static void *filling_resize(void *context, void *ptr, size_t n) {
    (void)context;
    if (n == 0) {
        free(ptr);
        return NULL;
    }
    void *fresh = realloc(ptr, n);
    return fresh != NULL && ptr == NULL ? memset(fresh, 0xEE, n) : fresh;
}

/* Zeros follow the last token. */
static void test_padding(void) {
    static const uint8_t zeros[VOCAB_PADDING];
    const pybpe_allocator filling = {filling_resize, NULL};
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    pybpe_vocab *v;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, &filling, NULL), PYBPE_OK);
    CHECK(memcmp(v->bytes + v->offsets[v->count], zeros, sizeof zeros) == 0);
    pybpe_vocab_free(v);
}

static void test_new(void) {
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    pybpe_vocab *v;
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, &err), PYBPE_OK);
    memset(&s, 0xEE, sizeof s); /* everything was copied */
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"abc", 3, 0), 257);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"c", 1, 0), 'c');
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"bc", 2, 0), PYBPE_NO_ID);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"", 0, 0), PYBPE_NO_ID);
    CHECK_EQ(pybpe_vocab_find(v, NULL, 0, 0), PYBPE_NO_ID);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"<|e|>", 5, 0), PYBPE_NO_ID);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"<|e|>", 5, 1), 259);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"abc", 3, 1), PYBPE_NO_ID);
    pybpe_vocab_spec got = pybpe_vocab_get_spec(v);
    CHECK_EQ(got.tokens.count, 260);
    CHECK_EQ(got.merges_count, 3);
    CHECK_EQ(got.merges[2], 256);
    CHECK_EQ(got.merges[3], 'c');
    CHECK_EQ(got.specials_count, 1);
    CHECK_EQ(got.specials[0], 259);
    CHECK_EQ(got.eot_id, 259);
    CHECK(got.custom == NULL);
    pybpe_vocab_free(v);
    pybpe_vocab_free(NULL);
}

static void test_new_refuses(void) {
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    spec.merges_count = spec.specials_count = 0;
    spec.eot_id = PYBPE_NO_ID;
    spec.tokens = (pybpe_strings){NULL, NULL, 0};
    expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);

    fill(&s);
    spec = small_spec(&s);
    spec.pattern = PYBPE_PATTERN_CUSTOM;
    spec.custom = "";
    expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);
    pybpe_vocab *none;
    pybpe_error reason;
    CHECK_EQ(pybpe_vocab_new(&none, &spec, NULL, &reason), PYBPE_ERR_VALUE);
    CHECK(strstr(reason.msg, "has no regular expression") != NULL);
    const uint32_t unused = small_add_token(&s, "", 0);
    spec = small_spec(&s);
    spec.eot_id = unused;
    expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);
    spec.eot_id = PYBPE_NO_ID;
    spec.specials = &unused;
    expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);
    fill(&s);

    small_add_token(&s, "abc", 3); /* id 260, as 257 */
    spec = small_spec(&s);
    expect_refused(&spec, PYBPE_ERR_VALUE, 260, __LINE__);
    fill(&s);
    small_add_special(&s, "<|e|>");
    spec = small_spec(&s);
    expect_refused(&spec, PYBPE_ERR_VALUE, 1, __LINE__); /* the second special */
    fill(&s);
    s.merges[2] = 'b'; /* b + c is not a token */
    spec = small_spec(&s);
    expect_refused(&spec, PYBPE_ERR_VALUE, 1, __LINE__);
    s.merges[2] = s.merges[3] = 257; /* longer than every token */
    expect_refused(&spec, PYBPE_ERR_VALUE, 1, __LINE__);
    s.merges[3] = 'c';
    s.merges[2] = 259; /* a special */
    expect_refused(&spec, PYBPE_ERR_VALUE, 1, __LINE__);
    s.merges[2] = 260; /* nothing */
    expect_refused(&spec, PYBPE_ERR_VALUE, 1, __LINE__);
    fill(&s);
    spec = small_spec(&s);
    s.specials[0] = 260;
    spec.eot_id = PYBPE_NO_ID;
    expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);
    fill(&s);
    s.specials[1] = 258;
    s.specials_count = 2;
    spec = small_spec(&s);
    expect_refused(&spec, PYBPE_ERR_VALUE, 1, __LINE__); /* not ascending */
    pybpe_vocab *v;
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(strstr(err.msg, "special 1 has id 258, ") != NULL && strstr(err.msg, "before it, 259") != NULL);
    s.specials[1] = 259;
    expect_refused(&spec, PYBPE_ERR_VALUE, 1, __LINE__); /* twice */
    fill(&s);
    small_add_token(&s, "", 0);
    for (uint32_t eot = 260; eot < 262; eot++) { /* an unused id, and none */
        spec = small_spec(&s);
        spec.eot_id = eot;
        expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);
    }
    fill(&s);
    spec = small_spec(&s);
    spec.pattern = 99;
    expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);
    spec.pattern = PYBPE_PATTERN_CUSTOM; /* without a regular expression */
    expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);
    spec.pattern = PYBPE_PATTERN_GPT2;
    spec.custom = "a+"; /* with one too many */
    expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);
    spec.custom = NULL;
    spec.normalizer = 3;
    expect_refused(&spec, PYBPE_ERR_VALUE, 0, __LINE__);
    spec = small_spec(&s);
#if SIZE_MAX > UINT32_MAX
    spec.merges_count = (size_t)UINT32_MAX + 1; /* refused before any is read */
    expect_refused(&spec, PYBPE_ERR_LIMIT, 0, __LINE__);
    spec = small_spec(&s);
#endif
    s.offsets[5] = 3;
    expect_refused(&spec, PYBPE_ERR_VALUE, 4, __LINE__);
}

/* A byte may lack a token. Encoding refuses a text that needs it and gives the position; saving refuses such a
   vocabulary, because the file format cannot represent it. */
static void test_a_byte_without_a_token(void) {
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    spec.tokens.count = 255;
    spec.merges_count = spec.specials_count = 0;
    spec.eot_id = PYBPE_NO_ID;
    pybpe_vocab *v;
    pybpe_encoder *e;
    pybpe_cache *c;
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_vocab_save(v, "never-written.bin", 2, &err), PYBPE_ERR_LIMIT);
    CHECK(strstr(err.msg, "0xFF") != NULL);
    CHECK_EQ(pybpe_encoder_new(&e, v, NULL, 0, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    uint32_t ids[16];
    size_t count;
    const uint8_t text[] = "ab c\xFF"
                           "d";
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(pybpe_encode(e, c, NULL, text, 6, ids, 4, 16, &count, &err), PYBPE_ERR_VALUE);
        CHECK_EQ(err.offset, 4);
        CHECK_EQ(pybpe_encode(e, c, NULL, text, 4, ids, 4, 16, &count, &err), PYBPE_OK);
        CHECK(count == 4 && ids[0] == 'a' && ids[3] == 'c');
        const size_t ends[] = {2, 6};
        CHECK_EQ(pybpe_encode_words(e, c, text, ends, 2, NULL, 4, 0, &count, &err), PYBPE_ERR_VALUE);
        CHECK_EQ(err.offset, 4);
        CHECK_EQ(pybpe_encode_words(e, c, text, ends, 1, NULL, 4, 0, &count, &err), PYBPE_OK);
        CHECK_EQ(count, 2);
    }
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(v);
}

/* Only one byte lacks a token, the first or the last one. Tokens that contain it cannot be merged from bytes. */
static void test_which_byte_lacks_a_token(void) {
    for (unsigned lacking = 0; lacking < 256; lacking += 255) {
        const uint8_t tokens[][2] = {{(uint8_t)lacking, 'a'}, {'a', (uint8_t)lacking}, {'a', 'b'}};
        uint32_t merges[2 * SMALL_TOKENS];
        size_t count = 77;
        small_vocab s;
        memset(&s, 0, sizeof s);
        for (unsigned byte = 0; byte < 256; byte++) {
            const uint8_t b = (uint8_t)byte;
            small_add_token(&s, &b, byte != lacking); /* otherwise the id is unused */
        }
        for (size_t i = 0; i < 3; i++) {
            small_add_token(&s, tokens[i], 2);
        }
        pybpe_vocab_spec spec = small_spec(&s);
        pybpe_vocab *v;
        unsigned byte = 77;
        CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
        CHECK(vocab_lacks_byte(v, &byte) && byte == lacking);
        pybpe_vocab_free(v);
        CHECK_EQ(pybpe_vocab_recover_merges(&spec, merges, &count, NULL, NULL), PYBPE_OK);
        CHECK(count == 1 && merges[0] == 'a' && merges[1] == 'b');
    }
}

/* Merges in an order that has nothing to do with the ids of the tokens that they make: all words of two and three
   letters, in a random order. */
static void test_merges_in_any_order(void) {
    enum { WORDS = 9 + 27 };
    for (int round = 0; round < 200; round++) {
        uint8_t words[WORDS][4];
        uint32_t lengths[WORDS];
        small_vocab s;
        small_start(&s);
        for (uint32_t i = 0; i < WORDS; i++) {
            const uint32_t k = random_below(i + 1); /* insert it here */
            memcpy(words[i], words[k], 4);
            lengths[i] = lengths[k];
            lengths[k] = i < 9 ? 2 : 3;
            for (uint32_t j = 0, rest = i < 9 ? i : i - 9; j < 3; j++, rest /= 3) {
                words[k][j] = (uint8_t)('a' + rest % 3);
            }
        }
        for (size_t i = 0; i < WORDS; i++) {
            small_add_token(&s, words[i], lengths[i]);
        }
        for (int i = 0; i < 40; i++) {
            const uint32_t left = random_below(2) ? 'a' + random_below(3) : 256 + random_below(WORDS);
            small_add_merge(&s, left, 'a' + random_below(3));
        }
        pybpe_vocab_spec spec = small_spec(&s);
        pybpe_vocab *v;
        CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
        CHECK(memcmp(v->merged, s.merged, s.merges_count * sizeof *s.merged) == 0);
        pybpe_vocab_free(v);
    }
}

/* A special may have the bytes of an ordinary token, and an id may be unused. */
static void test_new_accepts(void) {
    small_vocab s;
    fill(&s);
    uint32_t special = small_add_special(&s, "abc");
    small_add_token(&s, "", 0);
    pybpe_vocab_spec spec = small_spec(&s);
    spec.eot_id = 'a'; /* need not be a special */
    pybpe_vocab *v;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"abc", 3, 0), 257);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"abc", 3, 1), special);
    pybpe_vocab_free(v);
}

/* ---------------------------------------------------------------------------------------------------
tokenizer.bin
*/

typedef struct bytes {
    uint8_t data[16384];
    size_t n;
} bytes;

static void temp_name(char *path, size_t room) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, room, "%s/pybpe_test_vocab_%ld.bin", folder != NULL ? folder : "/tmp", (long)getpid());
}

static int save(const pybpe_vocab_spec *spec, int version, bytes *out) {
    char path[512];
    temp_name(path, sizeof path);
    pybpe_vocab *v;
    pybpe_error err;
    int code = pybpe_vocab_new(&v, spec, NULL, &err);
    CHECK_EQ(code, PYBPE_OK);
    code = pybpe_vocab_save(v, path, version, &err);
    pybpe_vocab_free(v);
    out->n = 0;
    FILE *f = fopen(path, "rb");
    if (f != NULL) {
        out->n = fread(out->data, 1, sizeof out->data, f);
        fclose(f);
        pybpe_vocab *loaded = NULL;
        CHECK_EQ(pybpe_vocab_load(&loaded, path, NULL, &err), PYBPE_OK);
        pybpe_vocab_free(loaded);
        remove(path);
    }
    return code;
}

static void expect_equal(const pybpe_vocab_spec *a, const pybpe_vocab_spec *b) {
    CHECK_EQ(a->tokens.count, b->tokens.count);
    CHECK(memcmp(a->tokens.offsets, b->tokens.offsets, (a->tokens.count + 1) * 8) == 0);
    CHECK(memcmp(a->tokens.bytes, b->tokens.bytes, (size_t)a->tokens.offsets[a->tokens.count]) == 0);
    CHECK_EQ(a->merges_count, b->merges_count);
    CHECK(a->merges_count == 0 || memcmp(a->merges, b->merges, a->merges_count * 8) == 0);
    CHECK_EQ(a->specials_count, b->specials_count);
    CHECK(a->specials_count == 0 || memcmp(a->specials, b->specials, a->specials_count * 4) == 0);
    CHECK_EQ(a->eot_id, b->eot_id);
    CHECK_EQ(a->pattern, b->pattern);
    CHECK_EQ(a->normalizer, b->normalizer);
    CHECK((a->custom == NULL) == (b->custom == NULL));
    CHECK(a->custom == NULL || strcmp(a->custom, b->custom) == 0);
}

static void test_round_trip(void) {
    static const char *const customs[] = {NULL, "\\w+|\\W", NULL, NULL, "."};
    uint8_t many[40];
    small_vocab s;
    fill(&s);
    for (size_t n = 14; n <= sizeof many; n++) { /* reading copies short tokens differently */
        for (size_t i = 0; i < n; i++) {
            many[i] = (uint8_t)(n + i);
        }
        small_add_token(&s, many, n);
    }
    small_add_special(&s, "<|f|>");
    pybpe_vocab_spec spec = small_spec(&s);
    for (int round = 0; round < 5; round++) {
        static bytes file;
        spec.custom = customs[round];
        spec.pattern = customs[round] != NULL ? PYBPE_PATTERN_CUSTOM : PYBPE_PATTERN_O200K | PYBPE_PATTERN_DIGITS1;
        spec.normalizer = round == 2 ? PYBPE_NORMALIZER_NFKC : PYBPE_NORMALIZER_NONE;
        spec.eot_id = round == 3 ? PYBPE_NO_ID : 259;
        CHECK_EQ(save(&spec, round == 3 ? 1 : 2, &file), PYBPE_OK);
        CHECK(round != 3 || memcmp(file.data + 12, "\0\0\0\0", 4) == 0); /* version 1 has no end of text */
        pybpe_vocab *v;
        pybpe_error err;
        CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_OK);
        pybpe_vocab_spec got = pybpe_vocab_get_spec(v);
        expect_equal(&spec, &got);
        pybpe_vocab_free(v);
    }
}

static void test_save_refuses(void) {
    static bytes file;
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    CHECK_EQ(save(&spec, 3, &file), PYBPE_ERR_VALUE);
    uint8_t many[300] = {0};
    small_add_token(&s, many, 255); /* the longest that the file can hold */
    spec = small_spec(&s);
    CHECK_EQ(save(&spec, 2, &file), PYBPE_OK);
    small_add_token(&s, many, 256);
    spec = small_spec(&s);
    CHECK_EQ(save(&spec, 2, &file), PYBPE_ERR_LIMIT);
    fill(&s);
    small_add_token(&s, "", 0);
    spec = small_spec(&s);
    CHECK_EQ(save(&spec, 2, &file), PYBPE_ERR_LIMIT);
    CHECK_EQ(file.n, 0); /* no file appeared */
}

/* Every truncation and every damaged byte is detected. The file is in memory of exactly its size, so that a sanitizer
   sees reads beyond it. */
static void test_damage(void) {
    static bytes file;
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    CHECK_EQ(save(&spec, 2, &file), PYBPE_OK);
    CHECK_EQ(file.data[0], 0xC8);
    CHECK_EQ(file.data[3], 0x01);
    CHECK_EQ(file.data[4], 2);
    CHECK_EQ(file.data[8] + 256 * file.data[9], 260);
    CHECK_EQ(file.data[12] + 256 * file.data[13], 259);
    CHECK_EQ(file.data[1024], 1);
    int loaded = 0;
    int silent = 0;
    for (size_t n = 0; n <= file.n + 1; n++) {
        uint8_t *part = malloc(n + (n == 0));
        memcpy(part, file.data, n < file.n ? n : file.n);
        pybpe_vocab *v = NULL;
        pybpe_error err = {0};
        int code = pybpe_vocab_load_mem(&v, part, n, NULL, &err);
        loaded += code == PYBPE_OK;
        silent += code != PYBPE_OK && (code != PYBPE_ERR_FORMAT || v != NULL || err.offset > n || err.msg[0] == '\0');
        pybpe_vocab_free(v);
        free(part);
    }
    CHECK_EQ(loaded, 1);
    CHECK_EQ(silent, 0);
    loaded = 0;
    uint8_t *copy = malloc(file.n);
    memcpy(copy, file.data, file.n);
    for (size_t i = 0; i < file.n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            copy[i] ^= (uint8_t)(1 << bit);
            pybpe_vocab *v = NULL;
            int code = pybpe_vocab_load_mem(&v, copy, file.n, NULL, NULL);
            loaded += code != PYBPE_ERR_FORMAT;
            pybpe_vocab_free(v);
            copy[i] ^= (uint8_t)(1 << bit);
        }
    }
    free(copy);
    CHECK_EQ(loaded, 0);
}

/* The checksum of csrc/llmc/tokenizer_bin.h, byte by byte. */
static void forge_checksum(uint8_t *file, size_t n) {
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < n - 8; i += 8) {
        uint64_t x = 0;
        for (size_t k = 0; k < 8 && i + k < n - 8; k++) {
            x |= (uint64_t)file[i + k] << (8 * k);
        }
        h = (h ^ x) * UINT64_C(0x100000001B3);
    }
    for (size_t k = 0; k < 8; k++) {
        file[n - 8 + k] = (uint8_t)(h >> (8 * k));
    }
}

/* Files that were damaged deliberately: every byte changed, with a correct checksum. They may load if their contents
   make sense, but must never do harm. */
static void test_forged(void) {
    static bytes file;
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    spec.pattern = PYBPE_PATTERN_CUSTOM;
    spec.custom = "a+|b";
    CHECK_EQ(save(&spec, 2, &file), PYBPE_OK);
    const uint8_t values[] = {0, 1, 2, 7, 0x61, 0x7F, 0x80, 0xFF};
    int wrong = 0;
    int loaded = 0;
    uint8_t *copy = malloc(file.n);
    for (size_t i = 0; i < file.n - 8; i++) {
        for (size_t k = 0; k < sizeof values; k++) {
            memcpy(copy, file.data, file.n);
            copy[i] = values[k];
            forge_checksum(copy, file.n);
            pybpe_vocab *v = NULL;
            pybpe_error err = {0};
            int code = pybpe_vocab_load_mem(&v, copy, file.n, NULL, &err);
            wrong += code == PYBPE_OK ? v == NULL : (code != PYBPE_ERR_FORMAT || v != NULL || err.offset > file.n);
            loaded += code == PYBPE_OK;
            pybpe_vocab_free(v);
        }
    }
    free(copy);
    CHECK_EQ(wrong, 0);
    CHECK(loaded > 0);
}

static void put_i32(uint8_t *at, uint32_t x) {
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(x >> (8 * i));
    }
}

/* What is wrong in a trailer, and where the error says it is. */
static void test_where(void) {
    static const struct {
        size_t at; /* from the trailer's start */
        uint32_t value;
        size_t offset;
    } cases[] = {
        {0, 0, 0},     {8, 2, 0},    /* what it is, its layout */
        {12, 99, 12},                /* pattern */
        {12, 0, 12},                 /* one without its regular expression */
        {16, 3, 16},                 /* normalizer */
        {20, 260, 20},               /* end of text */
        {24, 4, 24},   {28, 2, 24},  /* sizes that do not fill it */
        {36, 2, 36},                 /* whole words */
        {40, 259, 40},               /* merge 0: a special */
        {48, 'b', 48},               /* merge 1: no token is bc */
        {64, 260, 64}, {64, 258, 0}, /* the special: no token; one that a merge makes, and names */
    };
    static bytes file;
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    spec.eot_id = PYBPE_NO_ID;
    CHECK_EQ(save(&spec, 2, &file), PYBPE_OK);
    const size_t trailer = file.n - 76; /* 40, three merges, a special, the checksum */
    CHECK(memcmp(file.data + trailer, "PYBPETRL", 8) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static bytes copy;
        pybpe_vocab *v = NULL;
        pybpe_error err = {0};
        copy = file;
        put_i32(copy.data + trailer + cases[i].at, cases[i].value);
        forge_checksum(copy.data, copy.n);
        int code = pybpe_vocab_load_mem(&v, copy.data, copy.n, NULL, &err);
        int right = code == PYBPE_ERR_FORMAT && v == NULL;
        if (cases[i].offset != 0 || cases[i].at < 12) {
            right = right && err.offset == trailer + cases[i].offset;
        }
        if (!right) {
            printf("case %zu: code %d, offset %" PRIu64 ": %s\n", i, code, err.offset - trailer, err.msg);
        }
        CHECK(right);
    }
}

/* A trailer that is too short to have all fields, though its length and its checksum are right. Nothing is read after
   the end of the file. */
static void test_short_trailers(void) {
    static bytes file;
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    CHECK_EQ(save(&spec, 2, &file), PYBPE_OK);
    const size_t trailer = file.n - 76; /* as above */
    for (size_t length = 0; length < 48; length++) {
        uint8_t *part = malloc(trailer + length);
        pybpe_vocab *v = NULL;
        pybpe_error err = {0};
        memcpy(part, file.data, trailer + length);
        put_i32(part + 20, (uint32_t)length);
        if (length >= 8) {
            forge_checksum(part, trailer + length);
        }
        CHECK_EQ(pybpe_vocab_load_mem(&v, part, trailer + length, NULL, &err), PYBPE_ERR_FORMAT);
        CHECK_EQ(err.offset, trailer);
        pybpe_vocab_free(v);
        free(part);
    }
}

/* Lays out a file as llm.c's scripts do. */
static void foreign(const small_vocab *s, uint32_t version, uint32_t eot, bytes *out) {
    memset(out, 0, sizeof *out);
    put_i32(out->data, 20240328);
    put_i32(out->data + 4, version);
    put_i32(out->data + 8, (uint32_t)s->count);
    put_i32(out->data + 12, eot);
    out->n = 1024;
    for (size_t id = 0; id < s->count; id++) {
        size_t n = (size_t)(s->offsets[id + 1] - s->offsets[id]);
        out->data[out->n] = (uint8_t)n;
        memcpy(out->data + out->n + 1, s->bytes + s->offsets[id], n);
        out->n += 1 + n;
    }
}

static void test_foreign(void) {
    static bytes file;
    small_vocab s;
    fill(&s);
    foreign(&s, 2, 259, &file);
    pybpe_vocab *v;
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_OK);
    pybpe_vocab_spec want = small_spec(&s);
    pybpe_vocab_spec got = pybpe_vocab_get_spec(v);
    expect_equal(&want, &got); /* the merges are recovered */
    pybpe_vocab_free(v);

    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n + 100, NULL, &err), PYBPE_OK); /* like llm.c, which stops
    there */
    pybpe_vocab_free(v);

    foreign(&s, 1, 0, &file); /* version 1 says no eot, and this is not GPT-2's vocabulary */
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_OK);
    got = pybpe_vocab_get_spec(v);
    CHECK_EQ(got.eot_id, PYBPE_NO_ID);
    CHECK_EQ(got.specials_count, 0);
    CHECK_EQ(got.merges_count, 3); /* <|e|> can't be reached by merges */
    pybpe_vocab_free(v);

    foreign(&s, 2, 259, &file);
    file.data[0] ^= 1; /* another magic number */
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_ERR_FORMAT);
    CHECK(err.offset == 0 && strstr(err.msg, "20240329") != NULL);
    foreign(&s, 2, 260, &file);
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.offset, 12);
    foreign(&s, 3, 259, &file);
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.offset, 4);
    foreign(&s, 2, 'a', &file); /* then the byte a is a special and not an ordinary token */
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_ERR_FORMAT);
    foreign(&s, 2, 259, &file);
    put_i32(file.data + 8, 0xFFFFFFFF);
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.offset, 8);
    foreign(&s, 2, 259, &file);
    file.data[1024 + 2 * 7] = 0; /* the length of token 7 */
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.offset, 1024 + 2 * 7);
    foreign(&s, 2, 259, &file);
    file.data[1024 + 2 * 7 + 1] = 8; /* as token 8 */
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.offset, 1024 + 2 * 8);
    small_start(&s);
    foreign(&s, 1, 0, &file);
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_OK);
    pybpe_vocab_free(v);
    put_i32(file.data + 8, 257); /* more than fit */
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, file.n, NULL, &err), PYBPE_ERR_FORMAT);
    CHECK(err.offset == 8 && strstr(err.msg, "1 to 256") != NULL);
    v = (pybpe_vocab *)1;
    CHECK(pybpe_vocab_load(&v, "/nonexistent/tokenizer.bin", NULL, &err) == PYBPE_ERR_IO && v == NULL);
}

/* GPT-2's vocabulary is recognized by its size: files of version 1 have no end-of-text id. */
static void test_foreign_gpt2(void) {
    enum { TOKENS = 50257 };
    uint8_t *file = calloc(1024 + 5 * (size_t)TOKENS, 1);
    size_t n = 1024;
    put_i32(file, 20240328);
    put_i32(file + 4, 1);
    put_i32(file + 8, TOKENS);
    for (uint32_t id = 0; id < TOKENS; id++) {
        const uint8_t token[] = {(uint8_t)id, (uint8_t)(id >> 8), '#', '#'};
        const uint8_t length = id < 256 ? 1 : 4;
        file[n] = length;
        memcpy(file + n + 1, token, length);
        n += (size_t)1 + length;
    }
    pybpe_vocab *v = NULL;
    CHECK_EQ(pybpe_vocab_load_mem(&v, file, n, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_vocab_get_spec(v).eot_id, TOKENS - 1);
    CHECK_EQ(pybpe_vocab_get_spec(v).specials_count, 1);
    pybpe_vocab_free(v);
    free(file);
}

/* A trailer whose length is right, but which is shorter than any trailer. */
static void test_short_trailer(void) {
    static bytes file;
    small_vocab s;
    fill(&s);
    foreign(&s, 2, 259, &file);
    const size_t tokens_end = file.n;
    const pybpe_vocab_spec spec = small_spec(&s);
    CHECK_EQ(save(&spec, 2, &file), PYBPE_OK);
    put_i32(file.data + 20, 12);
    pybpe_vocab *v = NULL;
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_load_mem(&v, file.data, tokens_end + 12, NULL, &err), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.offset, tokens_end);
}

/* The parts that lower tokens leave of each token, even where ids are not in the order of lengths. */
static void test_recover(void) {
    small_vocab s;
    small_start(&s);
    small_add_token(&s, "abcd", 4); /* 256: nothing lower reaches it */
    small_add_token(&s, "bc", 2);   /* 257 = b + c */
    small_add_token(&s, "abc", 3);  /* 258 = a + bc */
    small_add_token(&s, "ab", 2);   /* 259 = a + b */
    uint8_t many[120];
    memset(many, 'x', sizeof many);
    for (size_t n = 2; n <= 64; n *= 2) {
        small_add_token(&s, many, n); /* 260.. = doublings */
    }
    small_add_token(&s, many, 96); /* 266 = 64 + 32, longer than a short word */
    pybpe_vocab_spec spec = small_spec(&s);
    uint32_t merges[2 * SMALL_TOKENS];
    size_t count = 0;
    failing_memory counted = {.left = -1};
    const pybpe_allocator mem = {failing_resize, &counted};
    CHECK_EQ(pybpe_vocab_recover_merges(&spec, merges, &count, &mem, NULL), PYBPE_OK);
    CHECK_EQ(counted.blocks, 0);
    const uint32_t want[] = {'b', 'c', 'a', 257, 'a', 'b', 'x', 'x', 260, 260,
                             261, 261, 262, 262, 263, 263, 264, 264, 265, 264};
    CHECK_EQ(count, sizeof want / 8);
    CHECK(memcmp(merges, want, sizeof want) == 0);
}

/* ---------------------------------------------------------------------------------------------------
Decoding
*/

static void test_decode(void) {
    small_vocab s;
    fill(&s);
    uint32_t unused = small_add_token(&s, "", 0);
    uint32_t longer = small_add_token(&s, "a token of more than sixteen bytes", 34);
    pybpe_vocab_spec spec = small_spec(&s);
    pybpe_vocab *v;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    const uint32_t ids[] = {'x', 257, longer, 259, 258, 0};
    const uint16_t narrow[] = {'x', 257, (uint16_t)longer, 259, 258, 0};
    const char want[] = "xabca token of more than sixteen bytes<|e|>aa"; /* and its NUL, token 0 */
    size_t length = 0;
    CHECK_EQ(pybpe_decode(v, ids, 4, 6, NULL, 0, &length, NULL), PYBPE_OK);
    CHECK_EQ(length, sizeof want);
    for (size_t room = 0; room < sizeof want + 20; room++) { /* exact memory: a sanitizer sees one byte too many */
        uint8_t *out = malloc(room + (room == 0));
        size_t got = 77;
        pybpe_error err;
        int code = room % 2 ? pybpe_decode(v, ids, 4, 6, out, room, &got, &err)
                            : pybpe_decode(v, narrow, 2, 6, out, room, &got, &err);
        CHECK_EQ(code, room < sizeof want ? PYBPE_ERR_LIMIT : PYBPE_OK);
        CHECK_EQ(got, room < sizeof want ? 77 : sizeof want);
        CHECK(room < sizeof want || memcmp(out, want, sizeof want) == 0);
        free(out);
    }
    const uint32_t bad[] = {'x', 263};
    const uint32_t hole[] = {'x', 'x', unused};
    uint8_t out[64];
    pybpe_error err;
    CHECK_EQ(pybpe_decode(v, bad, 4, 2, out, 64, &length, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 1);
    CHECK_EQ(pybpe_decode(v, hole, 4, 3, NULL, 0, &length, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 2);
    CHECK_EQ(pybpe_decode(v, ids, 3, 1, out, 64, &length, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_decode(v, ids, 4, 0, out, 64, &length, &err), PYBPE_OK);
    CHECK_EQ(length, 0);
    pybpe_vocab_free(v);
}

/* Only tokens of 256 bytes, a length that does not fit a byte. */
static void test_decode_long(void) {
    uint8_t token[256], out[8 * sizeof token];
    small_vocab s;
    fill(&s);
    memset(token, 'x', sizeof token);
    const uint32_t id = small_add_token(&s, token, sizeof token);
    const uint32_t ids[8] = {id, id, id, id, id, id, id, id};
    pybpe_vocab_spec spec = small_spec(&s);
    pybpe_vocab *v;
    size_t length = 0;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_decode(v, ids, 4, 8, NULL, 0, &length, NULL), PYBPE_OK);
    CHECK_EQ(length, sizeof out);
    CHECK_EQ(pybpe_decode(v, ids, 4, 8, out, sizeof out, &length, NULL), PYBPE_OK);
    CHECK(length == sizeof out && memcmp(out, token, sizeof token) == 0 && out[sizeof out - 1] == 'x');
    pybpe_vocab_free(v);
}

/* Only ids without a token, with every amount of room: several ids are copied at once, and no byte may be written
   outside. */
static void test_decode_unused(void) {
    small_vocab s;
    fill(&s);
    uint32_t unused = small_add_token(&s, "", 0);
    const uint32_t ids[8] = {unused, unused, unused, unused, unused, unused, unused, unused};
    pybpe_vocab_spec spec = small_spec(&s);
    pybpe_vocab *v;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    for (size_t room = 1; room < 2000; room++) {
        uint8_t *out = malloc(room);
        size_t length = 77;
        pybpe_error err;
        CHECK_EQ(pybpe_decode(v, ids, 4, 8, out, room, &length, &err), PYBPE_ERR_VALUE);
        CHECK(err.offset == 0 && length == 77);
        free(out);
    }
    pybpe_vocab_free(v);
}

/* Tokens of all lengths in exactly the room that they need, in slightly less and in more; and with one bad id among
   them. */
static void decode_row(const pybpe_vocab *v, const small_vocab *s, uint32_t first, uint32_t tokens, uint32_t unused) {
    uint32_t ids[64];
    uint16_t narrow[64];
    uint8_t want[64 * 40];
    size_t n = random_below(64);
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        ids[i] = random_below(8) > 0 ? random_below(256) : first + random_below(tokens);
        narrow[i] = (uint16_t)ids[i];
        memcpy(want + size, s->bytes + s->offsets[ids[i]], small_length(s, ids[i]));
        size += small_length(s, ids[i]);
    }
    size_t length = 0;
    CHECK(pybpe_decode(v, ids, 4, n, NULL, 0, &length, NULL) == PYBPE_OK && length == size);
    CHECK(pybpe_decode(v, narrow, 2, n, NULL, 0, &length, NULL) == PYBPE_OK && length == size);
    size_t room = size + (random_below(2) ? random_below(2000) : 0);
    uint8_t *out = malloc(room + (room == 0));
    CHECK(pybpe_decode(v, ids, 4, n, out, room, &length, NULL) == PYBPE_OK && length == size);
    CHECK(memcmp(out, want, size) == 0);
    CHECK(pybpe_decode(v, narrow, 2, n, out, room, &length, NULL) == PYBPE_OK && length == size);
    CHECK(memcmp(out, want, size) == 0);
    free(out);
    if (n > 0) {
        pybpe_error err;
        size_t bad = random_below((uint32_t)n);
        uint8_t *less = malloc(size);
        CHECK_EQ(pybpe_decode(v, ids, 4, n, less, size - 1, &length, &err), PYBPE_ERR_LIMIT);
        ids[bad] = random_below(2) ? unused : (uint32_t)s->count + random_below(70000);
        CHECK(pybpe_decode(v, ids, 4, n, NULL, 0, &length, &err) == PYBPE_ERR_VALUE && err.offset == bad);
        CHECK(pybpe_decode(v, ids, 4, n, less, size, &length, &err) != PYBPE_OK && length == size);
        free(less);
    }
}

static void test_decode_rows(void) {
    small_vocab s;
    fill(&s);
    uint32_t unused = small_add_token(&s, "", 0);
    uint32_t first = (uint32_t)s.count;
    for (uint32_t n = 2; n <= 40; n++) {
        uint8_t token[40];
        memset(token, (int)n, sizeof token);
        small_add_token(&s, token, n);
    }
    pybpe_vocab_spec spec = small_spec(&s);
    pybpe_vocab *v;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    for (int row = 0; row < 2000; row++) {
        decode_row(v, &s, first, random_below(4) > 0 ? 14 : 39, unused);
    }
    pybpe_vocab_free(v);
}

static void expect_complete(const char *s, size_t want) {
    CHECK_EQ(pybpe_utf8_complete((const uint8_t *)s, strlen(s)), want);
}

static void test_utf8_complete(void) {
    expect_complete("", 0);
    expect_complete("a", 1);
    expect_complete("a\xC3", 1);
    expect_complete("a\xC3\xA9", 3);
    expect_complete("\xE4", 0);
    expect_complete("\xE4\xB8", 0);
    expect_complete("\xE4\xB8\xAD", 3);
    expect_complete("x\xF0\x9F\x98", 1);
    expect_complete("x\xF0\x9F\x98\x80", 5);
    expect_complete("\x80\x80\x80\x80", 4); /* no character begins here: nothing to wait for */
    expect_complete("\xE0\x80", 2);         /* E0 80 begins no character */
    expect_complete("\xED\xA0", 2);         /* neither does a surrogate */
    expect_complete("\xF4\x90", 2);
    expect_complete("\xF0\x8F", 2);
    expect_complete("\xC1", 1);
    expect_complete("\xF5", 1);
    expect_complete("\xC3\xC3", 1);
}

/* Every character, and every beginning of one. */
static void test_utf8_complete_everywhere(void) {
    int wrong = 0;
    for (uint32_t c = 0x80; c < 0x110000; c++) {
        uint8_t text[5] = "x";
        const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        for (size_t i = 0; i < n; i++) {
            const uint32_t lead = i > 0 ? 0x80 : n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0;
            text[1 + i] = (uint8_t)(lead | (c >> (6 * (n - 1 - i)) & (i > 0 ? 0x3F : 0x1F)));
        }
        for (size_t part = 1; part <= n && (c < 0xD800 || c > 0xDFFF); part++) {
            wrong += pybpe_utf8_complete(text, 1 + part) != (part == n ? 1 + n : 1);
        }
    }
    CHECK_EQ(wrong, 0);
}

/* ---------------------------------------------------------------------------------------------------
Memory
*/

/* Tokens of a byte that is not a token, on either side, have no merge. */
static void test_recover_without_bytes(void) {
    static small_vocab s;
    memset(&s, 0, sizeof s);
    const char *const tokens[] = {"a", "b", "ab", "a?", "?b", "aba"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        small_add_token(&s, tokens[i], strlen(tokens[i]));
    }
    const pybpe_vocab_spec spec = small_spec(&s);
    uint32_t merges[12];
    const uint32_t want[] = {0, 1, 2, 0};
    size_t count = 0;
    CHECK_EQ(pybpe_vocab_recover_merges(&spec, merges, &count, NULL, NULL), PYBPE_OK);
    CHECK(count == 2 && memcmp(merges, want, sizeof want) == 0);
}

/* With a regular expression there is one more part to allocate. */
static void test_custom_without_memory(void) {
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    spec.pattern = PYBPE_PATTERN_CUSTOM;
    spec.custom = "a+";
    int code = PYBPE_ERR_MEMORY;
    for (long grant = 0; grant < 40 && code != PYBPE_OK; grant++) {
        failing_memory m = {.left = grant};
        const pybpe_allocator mem = {failing_resize, &m};
        pybpe_vocab *v = NULL;
        code = pybpe_vocab_new(&v, &spec, &mem, NULL);
        CHECK((code == PYBPE_ERR_MEMORY && v == NULL) || (code == PYBPE_OK && grant > 8));
        pybpe_vocab_free(v);
        CHECK_EQ(m.blocks, 0);
    }
    CHECK_EQ(code, PYBPE_OK);
}

static void test_failing_memory(void) {
    static bytes file;
    static bytes foreign_file;
    small_vocab s;
    fill(&s);
    pybpe_vocab_spec spec = small_spec(&s);
    CHECK_EQ(save(&spec, 2, &file), PYBPE_OK);
    foreign(&s, 2, 259, &foreign_file);
    int failures = 0;
    int passed[3] = {0};
    for (int kind = 0; kind < 3; kind++) {
        for (long grant = 0; grant < 40; grant++) {
            failing_memory m = {.left = grant};
            pybpe_allocator mem = {failing_resize, &m};
            pybpe_vocab *v = NULL;
            pybpe_error err;
            int code = kind == 0   ? pybpe_vocab_new(&v, &spec, &mem, &err)
                       : kind == 1 ? pybpe_vocab_load_mem(&v, file.data, file.n, &mem, &err)
                                   : pybpe_vocab_load_mem(&v, foreign_file.data, foreign_file.n, &mem, &err);
            passed[kind] += code == PYBPE_OK;
            failures += code != PYBPE_OK && (code != PYBPE_ERR_MEMORY || v != NULL);
            pybpe_vocab_free(v);
            failures += m.blocks != 0;
        }
    }
    CHECK_EQ(failures, 0);
    CHECK(passed[0] > 0 && passed[0] < 40);
    CHECK(passed[1] > 0 && passed[1] < 40);
    CHECK(passed[2] > 0 && passed[2] < 40);
}

int main(void) {
    test_padding();
    test_new();
    test_new_refuses();
    test_new_accepts();
    test_a_byte_without_a_token();
    test_which_byte_lacks_a_token();
    test_merges_in_any_order();
    test_round_trip();
    test_save_refuses();
    test_damage();
    test_forged();
    test_where();
    test_short_trailers();
    test_foreign();
    test_foreign_gpt2();
    test_short_trailer();
    test_recover_without_bytes();
    test_custom_without_memory();
    test_recover();
    test_decode();
    test_decode_long();
    test_decode_unused();
    test_decode_rows();
    test_utf8_complete();
    test_utf8_complete_everywhere();
    test_failing_memory();
    return check_report("vocab");
}
