/*
Encoding: worked examples, then random words and vocabularies against the obvious quadratic algorithm.
*/
#include "base/base.h" /* before any system header: setenv */
#include "check.h"
#include "encode/encode.h"
#include "encode/encode_cache.h"
#include "naive_encode.h"
#include "small_vocab.h"

/* ---------------------------------------------------------------------------------------------------
The subject of the test: one encoder with its vocabulary and cache
*/

enum { MERGED_LONG = 80 }; /* more than apply_short takes */

typedef struct subject {
    pybpe_vocab *v;
    pybpe_encoder *e;
    pybpe_cache *c;
} subject;

static subject subject_new(const pybpe_vocab_spec *spec) {
    subject s = {NULL, NULL, NULL};
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_new(&s.v, spec, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&s.e, s.v, NULL, 0, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_cache_new(&s.c, s.e, NULL, &err), PYBPE_OK);
    return s;
}

static void subject_free(subject *s) {
    pybpe_cache_free(s->c);
    pybpe_encoder_free(s->e);
    pybpe_vocab_free(s->v);
}

/* Encodes text with the pattern and checks the ids, at both widths, twice (cold and from the cache), in
   memory of the exact sizes. */
static void expect_ids(subject *s, const char *text, const uint32_t *want, size_t count, int line) {
    size_t n = strlen(text);
    uint8_t *copy = malloc(n + (n == 0));
    uint32_t *ids = malloc(4 * n + (n == 0));
    uint16_t *narrow = malloc(2 * n + (n == 0));
    memcpy(copy, text, n);
    const pybpe_specials *specials = pybpe_encoder_specials(s->e);
    for (int round = 0; round < 2; round++) {
        size_t got = 0;
        CHECK_EQ(pybpe_encode(s->e, s->c, specials, copy, n, ids, 4, n, &got, NULL), PYBPE_OK);
        int equal = got == count && (count == 0 || memcmp(ids, want, 4 * count) == 0);
        CHECK_EQ(pybpe_encode(s->e, s->c, specials, copy, n, narrow, 2, n, &got, NULL), PYBPE_OK);
        for (size_t i = 0; i < count && equal && got == count; i++) {
            equal = narrow[i] == want[i];
        }
        size_t counted = 0;
        CHECK_EQ(pybpe_encode(s->e, s->c, specials, copy, n, NULL, 0, 0, &counted, NULL), PYBPE_OK);
        if (!equal || got != count || counted != count) {
            printf("line %d, round %d: %zu, %zu ids\n", line, round, got, counted);
        }
        CHECK(equal && got == count && counted == count);
    }
    free(copy);
    free(ids);
    free(narrow);
}

#define EXPECT_IDS(s, text, ...)                                                                                       \
    do {                                                                                                               \
        const uint32_t want[] = {__VA_ARGS__};                                                                         \
        expect_ids((s), (text), want, sizeof want / sizeof *want, __LINE__);                                           \
    } while (0)

static void test_worked(void) {
    small_vocab v;
    small_start(&v);
    uint32_t bc = small_add_merge(&v, 'b', 'c');
    uint32_t ab = small_add_merge(&v, 'a', 'b');
    uint32_t abc = small_add_merge(&v, ab, 'c'); /* never made: in "abc" b + c comes first */
    uint32_t aa = small_add_merge(&v, 'a', 'a');
    uint32_t aaaa = small_add_merge(&v, aa, aa);
    uint32_t eot = small_add_special(&v, "<|e|>");
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    (void)abc;
    expect_ids(&s, "", NULL, 0, __LINE__);
    EXPECT_IDS(&s, "a", 'a');
    EXPECT_IDS(&s, "ab", ab);
    EXPECT_IDS(&s, "abc", 'a', bc);
    EXPECT_IDS(&s, "abab", ab, ab);
    EXPECT_IDS(&s, "aaa", aa, 'a'); /* leftmost first */
    EXPECT_IDS(&s, "aaaaaaa", aaaa, aa, 'a');
    EXPECT_IDS(&s, "aab", 'a', ab); /* a + b has the lower rank */
    EXPECT_IDS(&s, "ab ab", ab, ' ', ab);
    EXPECT_IDS(&s, "x<|e|>ab<|e|><|e|>", 'x', eot, ab, eot, eot);
    EXPECT_IDS(&s, "a<|e|", 'a', '<', '|', 'e', '|');
    EXPECT_IDS(&s, "aaaaaaaaaaaaaaa", aaaa, aaaa, aaaa, aa, 'a'); /* 15: inline */
    EXPECT_IDS(&s, "aaaaaaaaaaaaaaaa", aaaa, aaaa, aaaa, aaaa);   /* 16: not */
    EXPECT_IDS(&s, "zyxwvutsrqponm", 'z', 'y', 'x', 'w', 'v', 'u', 't', 's', 'r', 'q', 'p', 'o', 'n', 'm');
    subject_free(&s);
}

/* Tokens that merges do not make, of all lengths that are treated differently. */
static pybpe_vocab_spec whole_words_spec(small_vocab *v, uint32_t ids[5]) {
    char text[MERGED_LONG];
    memset(text, 'x', sizeof text);
    small_start(v);
    ids[0] = small_add_merge(v, 'a', 'b');
    ids[1] = small_add_token(v, "bcd", 3);
    ids[2] = small_add_token(v, "\xC3\xA9\xC3\xA8", 4); /* letters, between which there is a hard boundary */
    ids[3] = small_add_token(v, text, sizeof text);
    ids[4] = small_add_token(v, "bd", 2);
    pybpe_vocab_spec spec = small_spec(v);
    spec.whole_words = 1;
    return spec;
}

static void test_whole_words(void) {
    small_vocab v;
    uint32_t id[5];
    pybpe_vocab_spec spec = whole_words_spec(&v, id);
    subject s = subject_new(&spec);
    EXPECT_IDS(&s, "bcd", id[1]);
    EXPECT_IDS(&s, "ab\nbcd", id[0], '\n', id[1]);
    EXPECT_IDS(&s, "abcd", id[0], 'c', 'd'); /* no whole word */
    EXPECT_IDS(&s, "bcd bcd", id[1], ' ', 'b', 'c', 'd');
    EXPECT_IDS(&s, "\xC3\xA9\xC3\xA8", id[2]);
    EXPECT_IDS(&s, "a\xC3\xA9\xC3\xA8", 'a', 0xC3, 0xA9, 0xC3, 0xA8);
    EXPECT_IDS(&s, "ab.bcd.ab", id[0], '.', id[1], '.', id[0]);
    EXPECT_IDS(&s, "..bd..", '.', '.', id[4], '.', '.');
    char text[MERGED_LONG + 8];
    memset(text, 'x', MERGED_LONG);
    memcpy(text + MERGED_LONG, "\nab", 4);
    EXPECT_IDS(&s, text, id[3], '\n', id[0]);
    const size_t ends[] = {0, 2, 5, 5, 8}; /* words of the caller's, empty ones too */
    uint32_t ids[8];
    size_t count = 0;
    CHECK_EQ(pybpe_encode_words(s.e, s.c, (const uint8_t *)"abbcdbcd", ends, 5, ids, 4, 8, &count, NULL), PYBPE_OK);
    CHECK(count == 3 && ids[0] == id[0] && ids[1] == id[1] && ids[2] == id[1]);
    CHECK_EQ(pybpe_vocab_get_spec(s.v).whole_words, 1);
    subject_free(&s);

    spec.whole_words = 0;
    s = subject_new(&spec);
    EXPECT_IDS(&s, "bcd", 'b', 'c', 'd');
    subject_free(&s);

    small_start(&v); /* merges make every ordinary token, so none has to be looked up whole */
    id[0] = small_add_merge(&v, 'a', 'b');
    small_add_token(&v, "", 0); /* an id that is not used */
    small_add_special(&v, "<|e|>");
    spec = small_spec(&v);
    spec.whole_words = 1;
    s = subject_new(&spec);
    CHECK(s.e->whole.bits == NULL);
    EXPECT_IDS(&s, "ab abc", id[0], ' ', id[0], 'c');
    subject_free(&s);

    pybpe_vocab *none;
    spec.whole_words = 2;
    CHECK_EQ(pybpe_vocab_new(&none, &spec, NULL, NULL), PYBPE_ERR_VALUE);
}

static void test_arguments(void) {
    small_vocab v;
    small_start(&v);
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    subject other = subject_new(&spec);
    CHECK(pybpe_encoder_specials(s.e) == NULL);
    CHECK(pybpe_encoder_pretok(s.e) != NULL);
    const uint8_t *text = (const uint8_t *)"abc";
    uint32_t ids[4];
    size_t count = 77;
    pybpe_error err;
    CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, 3, ids, 4, 2, &count, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, 3, ids, 3, 4, &count, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_encode(s.e, other.c, NULL, text, 3, ids, 4, 4, &count, &err), PYBPE_ERR_VALUE);
    const size_t ends[] = {2, 2, 1};
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, 3, ids, 4, 4, &count, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 2);
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, 2, ids, 4, 1, &count, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(count, 77);
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, 2, ids, 4, 4, &count, &err), PYBPE_OK); /* one is empty */
    CHECK_EQ(count, 2);
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, NULL, 0, ids, 4, 0, &count, &err), PYBPE_OK);
    CHECK_EQ(count, 0);
    subject_free(&s);
    subject_free(&other);

    merge_table table; /* 63 bits for two ids of 21 and a rank of 21 */
    failing_memory m = {.left = 0};
    const pybpe_allocator mem = {failing_resize, &m};
    const uint32_t byte_ids[256] = {0};
    CHECK_EQ(merge_table_new(&table, 2097151, 2097151, byte_ids, &mem, &err), PYBPE_ERR_MEMORY);
    CHECK_EQ(merge_table_new(&table, 2097151, 2097152, byte_ids, &mem, &err), PYBPE_ERR_LIMIT);

    spec.pattern = PYBPE_PATTERN_CUSTOM;
    spec.custom = ".";
    s = subject_new(&spec);
    CHECK(pybpe_encoder_pretok(s.e) == NULL);
    CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, 3, ids, 4, 4, &count, &err), PYBPE_ERR_VALUE);
    const size_t three = 3;
    const pybpe_texts texts = {&text, &three, 1};
    uint64_t text_end;
    CHECK_EQ(pybpe_encode_batch(s.e, s.c, NULL, &texts, ids, 4, 4, &text_end, &err), PYBPE_ERR_VALUE);
    pybpe_pretok *p = NULL; /* of the caller's */
    pybpe_encoder *e = NULL;
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, s.v, p, 0, NULL, NULL), PYBPE_OK);
    CHECK(pybpe_encoder_pretok(e) == p);
    CHECK_EQ(pybpe_encode(e, s.c, NULL, text, 3, ids, 4, 4, &count, &err), PYBPE_ERR_VALUE); /* another's cache */
    pybpe_encoder_free(e);
    pybpe_pretok_free(p);
    subject_free(&s);
    pybpe_encoder_free(NULL);
    pybpe_cache_free(NULL);
}

/* Bytes whose ids are in another order. */
static void test_order_of_bytes(void) {
    small_vocab v;
    memset(&v, 0, sizeof v);
    for (unsigned id = 0; id < 256; id++) {
        small_add_token(&v, &(uint8_t){(uint8_t)(255 - id)}, 1);
    }
    const uint32_t ab = small_add_merge(&v, 255 - 'a', 255 - 'b');
    const pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    uint8_t text[258];
    uint32_t ids[sizeof text];
    const size_t n = sizeof text;
    size_t count = 0;
    for (size_t i = 0; i < 256; i++) {
        text[i] = (uint8_t)i;
    }
    memcpy(text + 256, "ab", 2);
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, &n, 1, ids, 4, n, &count, NULL), PYBPE_OK);
    CHECK_EQ(count, 256); /* twice a and b are one token */
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(ids[i], i < 'a' ? 255 - i : i == 'a' || i == 255 ? ab : 254 - i);
    }
    subject_free(&s);
}

/* Many texts in one call give the same ids as one call per text. */
static void test_batch(void) {
    small_vocab v;
    small_start(&v);
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    const uint8_t *starts[] = {(const uint8_t *)"abbc", NULL, (const uint8_t *)"abcd", (const uint8_t *)"ab"};
    const size_t lengths[] = {4, 0, 4, 2};
    const pybpe_texts texts = {starts, lengths, 4};
    uint32_t ids[10];
    uint64_t ends[4] = {0};
    pybpe_error err;
    CHECK_EQ(pybpe_encode_batch(s.e, s.c, NULL, &texts, ids, 4, 10, ends, &err), PYBPE_OK);
    for (size_t i = 0; i < 4; i++) {
        uint32_t alone[10];
        size_t count;
        size_t before = i > 0 ? (size_t)ends[i - 1] : 0;
        CHECK_EQ(pybpe_encode(s.e, s.c, NULL, starts[i], lengths[i], alone, 4, 10, &count, &err), PYBPE_OK);
        CHECK_EQ(ends[i] - before, count);
        CHECK(memcmp(ids + before, alone, count * sizeof *alone) == 0);
    }
    const pybpe_texts none = {NULL, NULL, 0};
    CHECK_EQ(pybpe_encode_batch(s.e, s.c, NULL, &none, ids, 4, 0, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_encode_batch(s.e, s.c, NULL, &texts, ids, 4, 9, ends, &err), PYBPE_ERR_VALUE);
    const size_t huge[] = {1, SIZE_MAX, 1, 1};
    const pybpe_texts wrong = {starts, huge, 4};
    CHECK_EQ(pybpe_encode_batch(s.e, s.c, NULL, &wrong, ids, 4, 10, ends, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 1);
    subject_free(&s);
}

/* More texts in a call than are kept until their words are looked up, most of them empty. */
static void test_many_small_texts(void) {
    enum { TEXTS = 3000 };
    static const uint8_t *starts[TEXTS];
    static size_t lengths[TEXTS];
    static uint32_t ids[2 * TEXTS];
    static uint64_t ends[TEXTS];
    small_vocab v;
    small_start(&v);
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    for (size_t period = 1; period <= 1000; period *= 10) { /* 1: no empty texts */
        size_t n = 0;
        for (size_t i = 0; i < TEXTS; i++) {
            starts[i] = (const uint8_t *)"a";
            lengths[i] = i % period == 0;
        }
        CHECK_EQ(
            pybpe_encode_batch(s.e, s.c, NULL, &(pybpe_texts){starts, lengths, TEXTS}, ids, 4, 2 * TEXTS, ends, NULL),
            PYBPE_OK);
        for (size_t i = 0; i < TEXTS; i++) {
            n += lengths[i];
            CHECK_EQ(ends[i], n);
        }
        CHECK(ids[0] == 'a' && ids[n - 1] == 'a');
    }
    subject_free(&s);
}

/* The last words of a text are read without the bytes after it: each text is in memory of its exact size. */
static void test_ends_of_texts(void) {
    enum { TEXTS = 60 };
    small_vocab v;
    small_start(&v);
    small_add_merge(&v, small_add_merge(&v, 'a', 'b'), 'c');
    small_add_merge(&v, 0xC3, 0xA9);
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    const uint8_t *starts[TEXTS];
    size_t lengths[TEXTS];
    uint32_t ids[TEXTS * TEXTS];
    uint64_t ends[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) {
        uint8_t *text = malloc(i + (i == 0));
        for (size_t k = 0; k < i; k++) {
            text[k] = (uint8_t)"abc \xC3\xA9 abcab."[(i * i + k) % 14];
        }
        starts[i] = text;
        lengths[i] = i;
    }
    const pybpe_texts texts = {starts, lengths, TEXTS};
    CHECK_EQ(pybpe_encode_batch(s.e, s.c, NULL, &texts, ids, 4, TEXTS * TEXTS, ends, NULL), PYBPE_OK);
    for (size_t i = 0; i < TEXTS; i++) {
        uint8_t padded[TEXTS + 16] = {0};
        uint32_t alone[TEXTS];
        const size_t before = i > 0 ? (size_t)ends[i - 1] : 0;
        size_t count;
        memcpy(padded, starts[i], i);
        CHECK_EQ(pybpe_encode(s.e, s.c, NULL, padded, i, alone, 4, TEXTS, &count, NULL), PYBPE_OK);
        CHECK(ends[i] - before == count && memcmp(ids + before, alone, count * sizeof *alone) == 0);
        free((void *)(uintptr_t)starts[i]);
    }
    subject_free(&s);
}

/* All words of up to 15 bytes in all texts of up to 33. */
static void test_late_keys(void) {
    enum { MOST = 33 };
    uint8_t text[MOST];
    for (size_t i = 0; i < MOST; i++) {
        text[i] = (uint8_t)(0xF0 + 7 * i);
    }
    for (size_t n = 1; n <= MOST; n++) {
        for (size_t at = n < 15 ? 0 : n - 15; at < n; at++) {
            for (size_t length = 1; length <= WORD_INLINE_MAX && at + length <= n; length++) {
                word_key late = word_key_late(text + at, length, text, text + n);
                CHECK(word_key_equal(late, word_key_careful(text + at, length)));
            }
        }
    }
}

/* More than 65,536 ids: other slots, and ids that 16 bits can't hold. */
static void test_large_vocabulary(void) {
    const size_t count = 70000;
    uint8_t *bytes = calloc(count, 4);
    uint64_t *offsets = calloc(count + 1, 8);
    for (size_t id = 0; id < count; id++) {
        size_t n = id < 256 ? 1 : 4;
        bytes[offsets[id]] = (uint8_t)id;
        if (n == 4) {
            memcpy(bytes + offsets[id], (const uint8_t[]){'#', (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id},
                   4);
        }
        offsets[id + 1] = offsets[id] + n;
    }
    const uint32_t last = (uint32_t)count - 1; /* becomes the token xy */
    memcpy(bytes + offsets[last], "xy", 2);
    offsets[count] = offsets[last] + 2;
    const uint32_t merge[] = {'x', 'y'};
    pybpe_vocab_spec spec = {.tokens = {bytes, offsets, count},
                             .merges = merge,
                             .merges_count = 1,
                             .eot_id = PYBPE_NO_ID,
                             .pattern = PYBPE_PATTERN_GPT2};
    subject s = subject_new(&spec);
    const uint8_t text[] = "a xyab axyb bxyxyab a b";
    const uint32_t want[] = {'a', ' ',  last, 'a', 'b', ' ', 'a', last, 'b', ' ',
                             'b', last, last, 'a', 'b', ' ', 'a', ' ',  'b'};
    const size_t n = sizeof text - 1;
    for (int round = 0; round < 2; round++) {
        uint32_t ids[sizeof text];
        uint16_t narrow[sizeof text] = {0};
        size_t got = 0;
        pybpe_error err;
        CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, n, ids, 4, n, &got, &err), PYBPE_OK);
        CHECK_EQ(got, sizeof want / 4);
        CHECK(memcmp(ids, want, sizeof want) == 0);
        CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, n, NULL, 0, 0, &got, &err), PYBPE_OK);
        CHECK_EQ(got, sizeof want / 4);
        CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, n, narrow, 2, n, &got, &err), PYBPE_ERR_LIMIT);
        CHECK_EQ(err.offset, 0);
        memset(narrow, 0, sizeof narrow);
        CHECK_EQ(pybpe_encode(s.e, s.c, NULL, (const uint8_t *)"a b ab", 6, narrow, 2, 6, &got, &err), PYBPE_OK);
        CHECK_EQ(got, 6);
        for (size_t i = 0; i < got; i++) {
            CHECK_EQ(narrow[i], "a b ab"[i]);
        }
    }
    subject_free(&s);
    free(bytes);
    free(offsets);
}

/* A merge joins two characters in the first four bytes of the vocabulary. */
static void test_first_token_of_two_characters(void) {
    static small_vocab v;
    memset(&v, 0, sizeof v);
    const uint32_t pair = small_add_token(&v, "a\xC3\xA9", 3);
    for (unsigned byte = 0; byte < 256; byte++) {
        small_add_token(&v, &(uint8_t){(uint8_t)byte}, 1);
    }
    const uint32_t a = 1 + 'a', e = small_add_merge(&v, 1 + 0xC3, 1 + 0xA9);
    CHECK_EQ(small_add_merge(&v, a, e), pair);
    const pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    EXPECT_IDS(&s, "a\xC3\xA9", pair);
    EXPECT_IDS(&s,
               "\xC3\xA9"
               "a\xC3\xA9.",
               e, pair, 1 + '.');
    subject_free(&s);
}

/* So many merges of a letter with the end of a character that the set of windows has its largest size: the byte before
   these can be any, so each merge adds 256. */
static void test_many_windows(void) {
    enum { ENDS = 34, LETTERS = 34, COUNT = 256 + ENDS + ENDS * LETTERS };
    static uint8_t bytes[256 + 2 * ENDS + 3 * ENDS * LETTERS];
    static uint64_t offsets[COUNT + 1];
    static uint32_t merges[2 * (COUNT - 256)];
    uint8_t *to = bytes;
    for (uint32_t id = 0; id < COUNT; id++) {
        const uint32_t pair = id - 256 - ENDS;
        const uint8_t last = (uint8_t)(0x80 + (id < 256 + ENDS ? id - 256 : pair / LETTERS));
        if (id < 256) {
            *to++ = (uint8_t)id;
        } else {
            *to++ = 0x80;
            *to++ = last;
        }
        if (id >= 256 + ENDS) {
            *to++ = (uint8_t)('A' + pair % LETTERS);
        }
        if (id >= 256) {
            merges[2 * (id - 256)] = id < 256 + ENDS ? 0x80 : 256 + pair / LETTERS;
            merges[2 * (id - 256) + 1] = id < 256 + ENDS ? last : 'A' + pair % LETTERS;
        }
        offsets[id + 1] = (uint64_t)(to - bytes);
    }
    const pybpe_vocab_spec spec = {.tokens = {bytes, offsets, COUNT},
                                   .merges = merges,
                                   .merges_count = COUNT - 256,
                                   .eot_id = PYBPE_NO_ID,
                                   .pattern = PYBPE_PATTERN_GPT2};
    subject s = subject_new(&spec);
    const size_t end = 6;
    uint32_t ids[6];
    size_t count = 0;
    CHECK_EQ(pybpe_encode_words(s.e, s.c,
                                (const uint8_t *)"\x80\x83"
                                                 "D\x80\x81z",
                                &end, 1, ids, 4, 6, &count, NULL),
             PYBPE_OK);
    CHECK(count == 3 && ids[0] == 256 + ENDS + 3 * LETTERS + 3 && ids[1] == 256 + 1 && ids[2] == 'z');
    subject_free(&s);
}

/* The same in two stages: a merge joins words, and makes the token 65,536. */
static void test_large_vocabulary_of_superwords(void) {
    enum { COUNT = 65537 };
    static uint8_t bytes[256 + 2];
    static uint64_t offsets[COUNT + 1];
    const uint32_t merge[] = {'x', ' '};
    for (uint32_t id = 0; id < COUNT; id++) { /* most ids are not tokens */
        offsets[id + 1] = offsets[id] + (id < 256 ? 1 : id == COUNT - 1 ? 2 : 0);
        bytes[id % 256] = (uint8_t)(id % 256);
    }
    memcpy(bytes + 256, "x ", 2);
    const pybpe_vocab_spec spec = {.tokens = {bytes, offsets, COUNT},
                                   .merges = merge,
                                   .merges_count = 1,
                                   .eot_id = PYBPE_NO_ID,
                                   .pattern = PYBPE_PATTERN_GPT2};
    subject s = subject_new(&spec);
    CHECK(s.e->stages != NULL);
    const uint8_t *text = (const uint8_t *)"x x";
    const size_t end = 3;
    uint32_t ids[3];
    uint16_t narrow[3];
    size_t count = 0;
    pybpe_error err;
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, &end, 1, ids, 4, 3, &count, &err), PYBPE_OK);
    CHECK(count == 2 && ids[0] == COUNT - 1 && ids[1] == 'x');
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, &end, 1, narrow, 2, 3, &count, &err), PYBPE_ERR_LIMIT);
    CHECK(strstr(err.msg, "65536") != NULL);
    subject_free(&s);
}

/* More words of 15 bytes than a table of this size has slots: some are in the set next to their own. */
static void test_crowded_cache(void) {
    enum { WORDS = 1 << 15, LENGTH = 15 };
    static uint8_t text[WORDS * LENGTH];
    static size_t ends[WORDS];
    small_vocab v;
    small_start(&v);
    small_add_merge(&v, '0', '1');
    uint32_t chain = 'z'; /* as below: no word is cut */
    for (size_t i = 0; i < 5; i++) {
        chain = small_add_merge(&v, chain, (uint8_t)"00110"[i]);
    }
    size_t want = 0;
    for (size_t i = 0; i < WORDS * LENGTH; i++) {
        text[i] = (uint8_t)('0' + (i / LENGTH >> i % LENGTH & 1));
        want += i % LENGTH == 0 || text[i - 1] == '1' || text[i] == '0';
        ends[i / LENGTH] = i + 1;
    }
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    for (int round = 0; round < 3; round++) {
        size_t count = 0;
        CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, WORDS, NULL, 0, 0, &count, NULL), PYBPE_OK);
        CHECK_EQ(count, want);
    }
    subject_free(&s);
}

/* ---------------------------------------------------------------------------------------------------
Random words against the definition
*/

/* xorshift64*: Vigna, An experimental exploration of Marsaglia's xorshift generators, scrambled. */
static uint64_t random_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

static size_t random_below(uint64_t *state, size_t n) { return (size_t)(random_next(state) >> 33) % n; }

static void swap_u32(uint32_t *a, uint32_t *b) {
    uint32_t x = *a;
    *a = *b;
    *b = x;
}

static void swap_merges(small_vocab *v, size_t i, size_t j) {
    swap_u32(&v->merges[2 * i], &v->merges[2 * j]);
    swap_u32(&v->merges[2 * i + 1], &v->merges[2 * j + 1]);
    swap_u32(&v->merged[i], &v->merged[j]);
}

/* Encodes a text between specials, changed as the vocabulary says. Returns the number of ids. */
static size_t add_piece(const subject *plain, int normalizer, bool prefix, const uint8_t *text, size_t n,
                        uint32_t *ids) {
    uint8_t *made = NULL;
    uint8_t spaced[8192] = " ";
    size_t length = n, count = 0;
    if (normalizer != PYBPE_NORMALIZER_NONE) {
        CHECK_EQ(pybpe_normalize(&made, &length, normalizer, text, n, NULL, NULL), PYBPE_OK);
    }
    const uint8_t *const changed = made != NULL ? made : text;
    const size_t space = prefix && length > 0 && *changed != ' ';
    memcpy(spaced + space, changed, length);
    pybpe_normalize_free(made, NULL);
    length += space;
    CHECK_EQ(pybpe_encode(plain->e, plain->c, NULL, spaced, length, ids, 4, length, &count, NULL), PYBPE_OK);
    return count;
}

/* Texts of random pieces, with specials among them, against the same pieces changed one by one. */
static void expect_changes(const subject *s, const subject *plain, int normalizer, bool prefix, uint32_t special) {
    static const char *const pieces[] = {
        "e\xCC\x81",    "ab ",          " ",    "\xEF\xB7\xBA", "x\xCC\xA3\xCC\x81", "\xC3\xA9", "abababababababababab",
        "\xEF\xAC\x81", "\xE2\x84\xAB", "\xFF", "<|e|>"};
    uint64_t state = 7;
    for (int round = 0; round < 300; round++) {
        uint8_t text[1024];
        uint32_t want[8192], got[24 * 1024 + 2];
        size_t n = 0, from = 0, wanted = 0, count = 0, counted = 0;
        for (size_t left = random_below(&state, 40); left > 0; left--) {
            const size_t which = random_below(&state, 11);
            if (which == 10) {
                wanted += add_piece(plain, normalizer, prefix, text + from, n - from, want + wanted);
                want[wanted++] = special;
                from = n + 5;
            }
            memcpy(text + n, pieces[which], strlen(pieces[which]));
            n += strlen(pieces[which]);
        }
        wanted += add_piece(plain, normalizer, prefix, text + from, n - from, want + wanted);
        const pybpe_specials *specials = pybpe_encoder_specials(s->e);
        CHECK_EQ(pybpe_encode(s->e, s->c, specials, text, n, got, 4, 12 * n, &count, NULL), PYBPE_OK);
        CHECK(count == wanted && (count == 0 || memcmp(got, want, 4 * count) == 0));
        CHECK_EQ(pybpe_encode(s->e, s->c, specials, text, n, NULL, 4, 0, &counted, NULL), PYBPE_OK);
        CHECK_EQ(counted, wanted);
        /* With just enough room, or less, an error is possible, but nothing is written beyond. */
        const size_t cap = n + random_below(&state, n + 1);
        memset(got, 0xFF, sizeof got);
        int code = pybpe_encode(s->e, s->c, specials, text, n, got, 4, cap, &count, NULL);
        CHECK(code == PYBPE_OK ? count == wanted : code == PYBPE_ERR_LIMIT);
        CHECK(got[cap] == UINT32_MAX && got[cap + 1] == UINT32_MAX);
        const uint8_t *starts[] = {text, text, text};
        const size_t lengths[] = {n, 0, n};
        const pybpe_texts texts = {starts, lengths, 3};
        uint64_t ends[3];
        CHECK_EQ(pybpe_encode_batch(s->e, s->c, specials, &texts, got, 4, 24 * n, ends, NULL), PYBPE_OK);
        CHECK(ends[0] == wanted && ends[1] == wanted && ends[2] == 2 * wanted);
        CHECK(wanted == 0 || (memcmp(got, want, 4 * wanted) == 0 && memcmp(got + wanted, want, 4 * wanted) == 0));
    }
}

/* With a normalizer or prefix_space the encoder changes texts, unless the caller says that this is done. */
static void test_changed_texts(void) {
    small_vocab v;
    small_start(&v);
    const uint32_t acute = small_add_merge(&v, 0xC3, 0xA9); /* e with an acute accent, as NFC writes it */
    small_add_merge(&v, 'a', 'b');
    const uint32_t special = small_add_special(&v, "<|e|>");
    pybpe_vocab_spec spec = small_spec(&v);
    for (int kind = 1; kind < 6; kind++) {
        spec.normalizer = kind % 3;
        spec.prefix_space = kind / 3;
        subject s = subject_new(&spec);
        subject plain = {.v = s.v};
        CHECK_EQ(pybpe_encoder_new(&plain.e, s.v, NULL, PYBPE_ENCODER_NORMALIZED, NULL, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_cache_new(&plain.c, plain.e, NULL, NULL), PYBPE_OK);
        expect_ids(&plain, "\xC3\xA9", &acute, 1, __LINE__);
        expect_changes(&s, &plain, spec.normalizer, spec.prefix_space, special);
        pybpe_error err;
        uint32_t ids[40];
        size_t count, ends[] = {1};
        const pybpe_dropout how = {0.5, 1, 0};
        CHECK_EQ(pybpe_encode_words(s.e, s.c, (const uint8_t *)"a", ends, 1, ids, 4, 1, &count, &err), PYBPE_ERR_VALUE);
        CHECK(strstr(err.msg, "PYBPE_ENCODER_NORMALIZED") != NULL);
        CHECK_EQ(pybpe_encode_dropout(s.e, &how, (const uint8_t *)"a", 1, ids, &count, NULL), PYBPE_ERR_VALUE);
        plain.v = NULL;
        subject_free(&plain);
        subject_free(&s);
    }
    spec.prefix_space = 2;
    CHECK_EQ(pybpe_vocab_new(&(pybpe_vocab *){NULL}, &spec, NULL, NULL), PYBPE_ERR_VALUE);
}

/* A text that grows does not fit where it fitted before. */
static void test_growing_text(void) {
    small_vocab v;
    small_start(&v);
    pybpe_vocab_spec spec = small_spec(&v);
    spec.normalizer = PYBPE_NORMALIZER_NFKC;
    subject s = subject_new(&spec);
    const uint8_t text[] = "xx\xEF\xB7\xBA"; /* the longest: 33 bytes */
    uint32_t ids[60];
    size_t count;
    pybpe_error err;
    CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, 5, ids, 4, 34, &count, &err), PYBPE_ERR_LIMIT);
    CHECK(err.offset == 0 && strstr(err.msg, "12 ids per byte") != NULL);
    CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, 5, ids, 4, 35, &count, &err), PYBPE_OK);
    CHECK_EQ(count, 35);
    subject_free(&s);
}

/* Random merges over the bytes of an alphabet, including several that make the same token, as Hugging Face's trainer
   may. With `shuffled` their ranks are unrelated to the order in which they can apply; no trainer does that, but a file
   may. */
static void random_vocab(small_vocab *v, uint64_t *state, const char *alphabet, size_t merges, int shuffled) {
    uint32_t usable[SMALL_TOKENS];
    size_t count = strlen(alphabet);
    for (size_t i = 0; i < count; i++) {
        usable[i] = (uint8_t)alphabet[i];
    }
    small_start(v);
    for (size_t attempt = 0; attempt < 20 * merges && v->merges_count < merges; attempt++) {
        uint32_t left = usable[random_below(state, count)];
        uint32_t right = usable[random_below(state, count)];
        size_t before = v->count;
        if (small_length(v, left) + small_length(v, right) <= 12) {
            uint32_t id = small_add_merge(v, left, right);
            if (id == before) {
                usable[count++] = id;
            }
        }
    }
    for (size_t i = v->merges_count; shuffled && i > 1; i--) {
        swap_merges(v, i - 1, random_below(state, i));
    }
}

static size_t joined = 0; /* words that were merged in more than one block */

/* Encodes words of lengths on both sides of every limit (15 inline, 62 short, 1024 remembered), each twice; and
   merges them block by block, in one block and in small ones. Returns how many of one block gave up. */
static size_t compare_words(subject *s, const small_vocab *v, const apply_blocks_table *ready, uint64_t *state,
                            const char *alphabet, size_t words) {
    apply_blocks_table blocks = *ready;
    size_t gave_up = 0;
    static uint32_t want[1600];
    static uint32_t ids[1600];
    const size_t limits[] = {4, 15, 20, 62, 70, 300, 1500};
    size_t letters = strlen(alphabet);
    naive_prepare(v);
    for (size_t i = 0; i < words; i++) {
        size_t longest = limits[random_below(state, i % 20 == 0 ? 7 : 6)];
        size_t n = 1 + random_below(state, longest);
        uint8_t *w = malloc(n);
        size_t run = 0;
        for (size_t k = 0; k < n; k++) { /* runs, so that equal pairs overlap */
            run = run > 0 ? run - 1 : random_below(state, 8) == 0 ? random_below(state, 40) : 0;
            w[k] = run > 0 && k > 0 ? w[k - 1] : (uint8_t)alphabet[random_below(state, letters)];
        }
        size_t count = merge_naive(v, w, n, want);
        for (int round = 0; round < 2; round++) {
            size_t got = 0;
            CHECK_EQ(pybpe_encode_words(s->e, s->c, w, &n, 1, ids, 4, n, &got, NULL), PYBPE_OK);
            CHECK(got == count && memcmp(ids, want, 4 * count) == 0);
        }
        for (int small = 0; small < 2; small++) {
            size_t got = 0;
            blocks.block_bytes = small ? 1 + random_below(state, 60) : APPLY_BLOCK;
            bool done = blocks.usable && apply_blocks(&blocks, &s->e->table, w, n, &got, NULL);
            CHECK(!done || (got == count && memcmp(blocks.ids, want, 4 * count) == 0));
            gave_up += blocks.usable && !done && !small;
            joined += done && small && n > blocks.block_bytes;
        }
        free(w);
    }
    naive_forget(v);
    apply_blocks_free(&blocks, NULL);
    return gave_up;
}

static void test_random_words(void) {
    /* ASCII; characters of two, three and four bytes; bytes that neither begin nor continue a character. */
    const char *alphabets[] = {"ab",
                               "abc ",
                               "abcdefgh",
                               "a\xC3\xA9\xC3\xB6",
                               "\xE4\xB8\xAD\xE6\x96\x87",
                               "a \xE4\xB8\xAD\x80",
                               "\xF0\x9F\x98\x80"
                               "a",
                               "\x80\xFF\xC0"
                               "a"};
    uint64_t state = 0x9E3779B97F4A7C15;
    size_t usable[2] = {0, 0}; /* for merges in order, and in any order */
    size_t gave_up = 0;
    for (size_t round = 0; round < 96; round++) {
        const char *alphabet = alphabets[round % 8];
        static small_vocab v;
        size_t merges = round % 8 == 2 ? 64 : 4 + random_below(&state, 60); /* 64: a word of bits, and one more */
        random_vocab(&v, &state, alphabet, merges, round % 3 == 0);
        pybpe_vocab_spec spec = small_spec(&v);
        subject s = subject_new(&spec);
        apply_blocks_table blocks = {0};
        const pybpe_vocab_spec filled = pybpe_vocab_get_spec(s.v);
        apply_blocks_fill(&blocks, &filled, &s.e->table, NULL);
        usable[round % 3 == 0] += blocks.usable;
        gave_up += compare_words(&s, &v, &blocks, &state, alphabet, 60);
        subject_free(&s);
    }
    CHECK(usable[0] > 30 && usable[1] > 0 && usable[1] < 16);
    CHECK_EQ(gave_up, 0);
    CHECK(joined > 1000);
}

/* Merges with a token that no merge makes: they never happen, although others make the same token. Blocks are small, so
   that tokens often meet at their ends. */
static void test_unreachable_parts(void) {
    static small_vocab v;
    uint64_t state = 5;
    uint8_t w[100];
    uint32_t want[sizeof w];
    small_start(&v);
    small_add_merge(&v, 'c', 'd');
    const uint32_t dd = small_add_merge(&v, 'd', 'd');
    small_add_merge(&v, small_add_merge(&v, 'a', 'b'), 'c');
    small_add_merge(&v, 'a', small_add_token(&v, "bc", 2));
    small_add_merge(&v, dd, 'b');
    small_add_merge(&v, small_add_token(&v, "da", 2), 'b');
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    apply_blocks_table blocks = {0};
    const pybpe_vocab_spec filled = pybpe_vocab_get_spec(s.v);
    apply_blocks_fill(&blocks, &filled, &s.e->table, NULL);
    CHECK(blocks.usable);
    naive_prepare(&v);
    for (size_t i = 0; i < 2000; i++) {
        size_t n = 1 + random_below(&state, sizeof w);
        size_t got = 0;
        for (size_t k = 0; k < n; k++) {
            w[k] = (uint8_t)("abcd"[random_below(&state, 4)]);
        }
        blocks.block_bytes = 1 + i % 20;
        if (apply_blocks(&blocks, &s.e->table, w, n, &got, NULL)) {
            CHECK(got == merge_naive(&v, w, n, want) && memcmp(blocks.ids, want, 4 * got) == 0);
        }
    }
    naive_forget(&v);
    apply_blocks_free(&blocks, NULL);
    subject_free(&s);
}

/* More ranks than a word of bits has, in random order; and words whose merges they are. */
static void test_many_ranks(void) {
    enum { LETTERS = 18 };
    static small_vocab v;
    uint64_t state = 11;
    uint8_t w[100];
    uint32_t want[sizeof w];
    small_start(&v);
    for (uint32_t i = 0; i < LETTERS * LETTERS; i++) { /* every pair once: 7, 5 and 18 have no common divisor */
        small_add_merge(&v, 'a' + i * 7 % LETTERS, 'a' + (i * 7 + i / LETTERS * 5) % LETTERS);
    }
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    apply_blocks_table blocks = {0};
    const pybpe_vocab_spec filled = pybpe_vocab_get_spec(s.v);
    apply_blocks_fill(&blocks, &filled, &s.e->table, NULL);
    CHECK(blocks.usable);
    naive_prepare(&v);
    for (size_t i = 0; i < 500; i++) {
        size_t got = 0;
        for (size_t k = 0; k < sizeof w; k++) {
            w[k] = (uint8_t)('a' + random_below(&state, LETTERS));
        }
        CHECK(apply_blocks(&blocks, &s.e->table, w, sizeof w, &got, NULL));
        CHECK(got == merge_naive(&v, w, sizeof w, want) && memcmp(blocks.ids, want, 4 * got) == 0);
    }
    naive_forget(&v);
    apply_blocks_free(&blocks, NULL);
    subject_free(&s);
}

/* Rows of letters that merge from their end: cd, then bc, then ab. If a block ends within a row, all tokens of the row
   may be wrong. They are dropped, and the word is merged all the same. */
static void test_dropped_tokens(void) {
    enum { ROW = 16, BLOCK = 100 };
    static small_vocab v;
    uint64_t state = 3;
    uint8_t w[1000 + 3 * ROW];
    uint32_t want[sizeof w];
    small_start(&v);
    for (uint32_t last = 'a' + ROW - 1; last > 'a'; last--) {
        small_add_merge(&v, last - 1, last);
    }
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    apply_blocks_table blocks = {0};
    const pybpe_vocab_spec filled = pybpe_vocab_get_spec(s.v);
    apply_blocks_fill(&blocks, &filled, &s.e->table, NULL);
    CHECK(blocks.usable);
    blocks.block_bytes = BLOCK;
    naive_prepare(&v);
    for (size_t i = 0; i < 100; i++) {
        size_t n = 0;
        size_t got = 0;
        while (n < 1000) {
            const size_t row = random_below(&state, ROW + 1);
            for (size_t k = 0; k < row; k++) {
                w[n++] = (uint8_t)('a' + k);
            }
            const size_t others = 1 + random_below(&state, 2 * ROW);
            memset(w + n, 'z', others);
            n += others;
        }
        CHECK(apply_blocks(&blocks, &s.e->table, w, n, &got, NULL));
        CHECK(got == merge_naive(&v, w, n, want) && memcmp(blocks.ids, want, 4 * got) == 0);
    }
    /* A word that is one row and one byte longer than a block: all tokens of the block are wrong, so apply_blocks gives
       up, and apply_long takes over. */
    const size_t n = ROW - 3;
    for (size_t k = 0; k < n; k++) {
        w[k] = (uint8_t)('a' + k);
    }
    for (size_t block = n - 1; block <= n; block++) {
        size_t got = 0;
        blocks.block_bytes = block;
        CHECK_EQ(apply_blocks(&blocks, &s.e->table, w, n, &got, NULL), block == n);
        CHECK(block < n || (got == merge_naive(&v, w, n, want) && memcmp(blocks.ids, want, 4 * got) == 0));
    }
    naive_forget(&v);
    apply_blocks_free(&blocks, NULL);
    subject_free(&s);
}

/* Words of many blocks, against apply_long. */
static void test_long_blocks(void) {
    const char *alphabets[] = {"a", "ab", "abc", "abcdefgh", "\xE4\xB8\xAD\xE6\x96\x87"};
    enum { LONGEST = 40000 };
    uint64_t state = 7;
    uint8_t *w = malloc(LONGEST);
    size_t tried[2] = {0, 0};
    size_t done[2] = {0, 0};
    for (size_t round = 0; round < 60; round++) {
        const char *alphabet = alphabets[round % 5];
        static small_vocab v;
        random_vocab(&v, &state, alphabet, 4 + random_below(&state, 60), round % 3 == 0);
        pybpe_vocab_spec spec = small_spec(&v);
        subject s = subject_new(&spec);
        apply_blocks_table blocks = {0};
        apply_scratch scratch = {0};
        const pybpe_vocab_spec filled = pybpe_vocab_get_spec(s.v);
        apply_blocks_fill(&blocks, &filled, &s.e->table, NULL);
        size_t n = LONGEST - random_below(&state, 2 * APPLY_BLOCK);
        size_t period = round % 2 ? n : 1 + random_below(&state, 200);
        for (size_t i = 0; i < n; i++) {
            w[i] = i < period ? (uint8_t)alphabet[random_below(&state, strlen(alphabet))] : w[i - period];
        }
        size_t want;
        size_t got;
        CHECK_EQ(apply_long(&s.e->table, &scratch, w, n, &want, NULL, NULL), PYBPE_OK);
        for (int small = 0; small < 2 && blocks.usable; small++) {
            blocks.block_bytes = small ? 50 + random_below(&state, 1000) : APPLY_BLOCK;
            tried[small] += 1;
            if (apply_blocks(&blocks, &s.e->table, w, n, &got, NULL)) {
                CHECK(got == want && memcmp(blocks.ids, scratch.ids, 4 * want) == 0);
                done[small] += 1;
            }
        }
        apply_scratch_free(&scratch, NULL);
        apply_blocks_free(&blocks, NULL);
        subject_free(&s);
    }
    CHECK(tried[0] > 35 && done[0] == tried[0] && done[1] > 30);
    free(w);
}

/* ---------------------------------------------------------------------------------------------------
Texts: words that are cut further where no merge can cross
*/

/* Random characters, whole and broken ones, one to four bytes long. Returns how many bytes were written, at most n. */
static size_t random_text(uint64_t *state, uint8_t *text, size_t n) {
    const char *pieces[] = {"a",
                            "b",
                            "'s",
                            " ",
                            "1",
                            "\xC3\xA9",
                            "\xD0\xB0",
                            "\xD0\xB1",
                            "\xE4\xB8\xAD",
                            "\xE4\xB8\x80",
                            "\xE6\x96\x87",
                            "\xE3\x80\x82",
                            "\xE3\x80\x80",
                            "\xEF\xBC\x8C",
                            "\xF0\x9F\x98\x80",
                            "\xF0\x9F",
                            "\xE4\xB8",
                            "\xE4",
                            "\xAD",
                            "\xFF"};
    const size_t whole = 15;
    size_t used = random_below(state, 4) == 0 ? sizeof pieces / sizeof pieces[0] : whole;
    size_t length = 0;
    for (;;) {
        const char *piece = pieces[random_below(state, used)];
        if (length + strlen(piece) > n) {
            return length;
        }
        memcpy(text + length, piece, strlen(piece));
        length += strlen(piece);
    }
}

/* Merges of tokens that are adjacent in random texts, so that many cross from one character to another. */
static void grown_vocab(small_vocab *v, uint64_t *state, size_t merges) {
    small_start(v);
    while (v->merges_count < merges) {
        uint8_t text[16];
        uint32_t ids[16];
        size_t n = random_text(state, text, sizeof text);
        naive_prepare(v);
        size_t count = merge_naive(v, text, n, ids);
        naive_forget(v);
        if (count > 1) {
            size_t at = random_below(state, count - 1);
            small_add_merge(v, ids[at], ids[at + 1]);
        }
    }
}

/* The ids of a text by definition: those of its words. */
static size_t text_naive(const small_vocab *v, const pybpe_pretok *p, const uint8_t *text, size_t n, uint32_t *ids) {
    size_t count = 0;
    size_t ends[64];
    for (size_t pos = 0; pos < n;) {
        size_t words = pybpe_pretok_split(p, text, n, pos, ends, 64);
        for (size_t i = 0; i < words; i++) {
            count += merge_naive(v, text + pos, ends[i] - pos, ids + count);
            pos = ends[i];
        }
    }
    return count;
}

static size_t compare_texts(subject *s, const small_vocab *v, uint64_t *state, size_t texts) {
    static uint32_t want[800];
    static uint32_t ids[800];
    size_t cut = 0;
    naive_prepare(v);
    for (size_t i = 0; i < texts; i++) {
        size_t room = random_below(state, i % 2 == 0 ? 20 : 800);
        uint8_t *text = malloc(room + 1); /* a separate allocation, so that a sanitizer sees reads outside it */
        size_t n = random_text(state, text, room);
        uint8_t *exact = malloc(n + (n == 0));
        memcpy(exact, text, n);
        size_t count = text_naive(v, pybpe_encoder_pretok(s->e), exact, n, want);
        size_t got = 0;
        CHECK_EQ(pybpe_encode(s->e, s->c, NULL, exact, n, ids, 4, n, &got, NULL), PYBPE_OK);
        CHECK(got == count && memcmp(ids, want, 4 * count) == 0);
        cut += count;
        free(text);
        free(exact);
    }
    naive_forget(v);
    return cut;
}

static void test_random_texts(void) {
    const char *simd_names[] = {"swar", "avx2", "avx512", "neon"};
    uint64_t state = 0xD1B54A32D192ED03;
    size_t tokens = 0;
    for (size_t round = 0; round < 30; round++) {
        static small_vocab v;
        setenv("PYBPE_SIMD", simd_names[round % 4], 1);
        grown_vocab(&v, &state, 10 + 10 * (round % 5));
        pybpe_vocab_spec spec = small_spec(&v);
        subject s = subject_new(&spec);
        tokens += compare_texts(&s, &v, &state, 60);
        subject_free(&s);
    }
    unsetenv("PYBPE_SIMD");
    CHECK(tokens > 100000);
}

/* Words that the caller gives are cut at hard boundaries, except between ASCII characters. Every unit is merged once. */
static void test_units(void) {
    static const char *const words[] = {
        "xyz", "xyz", "\xE4\xB8\xADx", "x\xE6\x96\x87", "\xE6\x96\x87\xE4\xB8\xAD", "\xE4\xB8\xAD\xE6\x96\x87"};
    enum { WORDS = sizeof words / sizeof *words, UNITS = 4, LETTERS = 100 }; /* xyz, two characters, x */
    uint8_t text[WORDS * 8 + LETTERS];
    size_t ends[WORDS + 1];
    size_t n = 0;
    small_vocab v;
    small_start(&v);
    small_add_merge(&v, 'a', 'a');
    const pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    for (size_t i = 0; i < WORDS; i++) {
        memcpy(text + n, words[i], strlen(words[i]));
        n += strlen(words[i]);
        ends[i] = n;
    }
    memset(text + n, 'a', LETTERS);
    n += LETTERS;
    ends[WORDS] = n;
    for (int round = 0; round < 2; round++) {
        uint32_t ids[sizeof text];
        size_t count = 0;
        CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, WORDS + 1, ids, 4, sizeof text, &count, NULL), PYBPE_OK);
        CHECK_EQ(count, n - LETTERS / 2);
        CHECK_EQ(s.c->added, UNITS);
        CHECK_EQ(s.c->long_bytes, LETTERS); /* the word of 100 letters */
    }
    subject_free(&s);
}

/* A word of many units, and then more words than its batch has room for. */
static void test_many_units(void) {
    enum { CHARS = 270, WORDS = 256 };
    static uint8_t text[3 * CHARS + WORDS];
    static uint32_t ids[sizeof text];
    size_t ends[WORDS];
    small_vocab v;
    small_start(&v);
    const pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    for (size_t chars = CHARS - 20; chars <= CHARS; chars++) {
        size_t count = 0;
        size_t n = 3 * chars;
        for (size_t i = 0; i < n; i++) {
            text[i] = (uint8_t)"\xE4\xB8\xAD"[i % 3];
        }
        ends[0] = n;
        for (size_t i = 1; i < WORDS; i++) {
            text[n++] = (uint8_t)('a' + i % 26);
            ends[i] = n;
        }
        CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, WORDS, ids, 4, n, &count, NULL), PYBPE_OK);
        size_t equal = 0;
        for (size_t i = 0; i < n; i++) {
            equal += ids[i] == text[i];
        }
        CHECK(count == n && equal == n);
    }
    subject_free(&s);
}

/* Long words of one letter, whose tokens are known: a ladder of doublings. */
static void test_long_words(void) {
    small_vocab v;
    small_start(&v);
    uint32_t top = 'a';
    for (int i = 0; i < 6; i++) {
        top = small_add_merge(&v, top, top); /* up to 64 letters */
    }
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    const size_t n = 64 * 5000 + 21; /* 16 + 4 + 1 remain */
    uint8_t *text = malloc(n);
    uint16_t *ids = malloc(2 * n);
    memset(text, 'a', n);
    size_t count = 0;
    CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, n, ids, 2, n, &count, NULL), PYBPE_OK);
    CHECK_EQ(count, 5003);
    CHECK(ids[0] == top && ids[4999] == top && ids[5000] == top - 2 && ids[5001] == top - 4 && ids[5002] == 'a');
    free(text);
    free(ids);
    subject_free(&s);
}

/* Merging a long word uses memory again that earlier merges no longer need, and has room for its tokens only. */
static void test_scratch_of_long_words(void) {
    enum { LETTERS = 15000, LADDER = 6 };
    static uint8_t text[LETTERS];
    apply_scratch scratch[2] = {{.symbols_cap = 0}, {.symbols_cap = 0}}; /* for one merge, and for all of a ladder */
    memset(text, 'a', sizeof text);
    for (size_t k = 0; k < 2; k++) {
        small_vocab v;
        uint32_t top = 'a';
        size_t count;
        small_start(&v);
        for (size_t i = 0; i < (k == 0 ? 1 : LADDER); i++) {
            top = small_add_merge(&v, top, top);
        }
        const pybpe_vocab_spec spec = small_spec(&v);
        subject s = subject_new(&spec);
        CHECK_EQ(apply_long(&s.e->table, &scratch[k], text, sizeof text, &count, NULL, NULL), PYBPE_OK);
        CHECK_EQ(scratch[k].ids_cap, count);
        subject_free(&s);
    }
    CHECK_EQ(scratch[1].heap_cap, scratch[0].heap_cap);
    apply_scratch_free(&scratch[0], NULL);
    apply_scratch_free(&scratch[1], NULL);
}

/* More distinct words than a cache holds, words with more ids than a slot holds, and an arena that starts over. */
static void test_full_cache(void) {
    small_vocab v;
    small_start(&v);
    small_add_merge(&v, '0', '1');
    uint32_t chain = 'z'; /* holds all pairs of digits, so no word is cut; but no word has a z */
    for (size_t i = 0; i < 5; i++) {
        chain = small_add_merge(&v, chain, (uint8_t)"00110"[i]);
    }
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    const size_t words = 40000;
    const size_t lengths[] = {3, 13, 30, 500};
    uint8_t *text = malloc(words * 500);
    size_t *ends = malloc(words * sizeof *ends);
    uint64_t state = 3;
    size_t n = 0;
    size_t want = 0;
    for (size_t i = 0; i < words; i++) {
        size_t length = lengths[i % 4];
        uint64_t bits = 0;
        for (size_t k = 0; k < length; k++) {
            bits = k % 32 == 0 ? random_next(&state) : bits >> 1;
            text[n + k] = (uint8_t)('0' + bits % 2);
            want += k == 0 || text[n + k - 1] == '1' || text[n + k] == '0';
        }
        n += length;
        ends[i] = n;
    }
    uint16_t *ids = malloc(2 * n);
    uint16_t *again = malloc(2 * n);
    size_t count = 0;
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, words, ids, 2, n, &count, NULL), PYBPE_OK);
    CHECK_EQ(count, want);
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, words, again, 2, n, &count, NULL), PYBPE_OK);
    CHECK_EQ(count, want);
    CHECK(memcmp(ids, again, 2 * want) == 0);
    CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, words, NULL, 0, 0, &count, NULL), PYBPE_OK);
    CHECK_EQ(count, want);
    uint8_t *back = malloc(n);
    size_t length = 0;
    CHECK_EQ(pybpe_decode(s.v, ids, 2, count, back, n, &length, NULL), PYBPE_OK);
    CHECK(length == n && memcmp(back, text, n) == 0);
    free(back);
    free(text);
    free(ends);
    free(ids);
    free(again);
    subject_free(&s);
}

/* ---------------------------------------------------------------------------------------------------
Memory
*/

/* The number of bytes in the message of an error: those that could not be allocated. */
static size_t bytes_missing(const pybpe_error *err) {
    size_t bytes = 0;
    return sscanf(err->msg, "out of memory: %zu bytes", &bytes) == 1 ? bytes : 0;
}

static int encode_with(const pybpe_vocab_spec *spec, const pybpe_allocator *mem, const uint8_t *text, size_t n) {
    static uint32_t ids[4096];
    pybpe_vocab *v = NULL;
    pybpe_encoder *e = NULL;
    pybpe_cache *c = NULL;
    size_t count = 0;
    pybpe_error err;
    int code = pybpe_vocab_new(&v, spec, NULL, NULL);
    if (code == PYBPE_OK) {
        code = pybpe_encoder_new(&e, v, NULL, 0, mem, &err);
        CHECK(code == PYBPE_OK || e == NULL);
    }
    if (code == PYBPE_OK) {
        code = pybpe_cache_new(&c, e, mem, &err);
        CHECK(code == PYBPE_OK || c == NULL);
    }
    if (code == PYBPE_OK) {
        code = pybpe_encode(e, c, pybpe_encoder_specials(e), text, n, ids, 4, 4096, &count, &err);
        CHECK_EQ(count > 0, code == PYBPE_OK);
    }
    if (code != PYBPE_OK) {
        const failing_memory *m = mem->context;
        CHECK(bytes_missing(&err) > 0);
        CHECK(strstr(err.msg, "taken whole") == NULL || bytes_missing(&err) == m->refused);
    }
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(v);
    return code;
}

/* Every allocation fails in turn: no memory is leaked, no ids are written, and in the end encoding succeeds. */
static void expect_memory_errors(const pybpe_vocab_spec *spec, const uint8_t *text, size_t n) {
    int passed = 0;
    int wrong = 0;
    for (long grant = 0; grant < 200; grant++) {
        failing_memory m = {.left = grant / 2, .once = grant % 2 != 0};
        pybpe_allocator mem = {failing_resize, &m};
        int code = encode_with(spec, &mem, text, n);
        passed += code == PYBPE_OK;
        wrong += (code != PYBPE_OK && code != PYBPE_ERR_MEMORY) || m.blocks != 0;
    }
    CHECK_EQ(wrong, 0);
    CHECK(passed > 0 && passed < 180);
}

static void test_failing_memory(void) {
    static small_vocab v;
    uint64_t state = 7;
    random_vocab(&v, &state, "abc", 40, 0);
    small_add_special(&v, "<|e|>");
    pybpe_vocab_spec spec = small_spec(&v);
    uint8_t text[4096];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (uint8_t)"abc"[random_below(&state, 3)];
    }
    memcpy(text + 100, "<|e|> abc ", 10);
    expect_memory_errors(&spec, text, sizeof text);
    uint32_t id[5];
    spec = whole_words_spec(&v, id);
    expect_memory_errors(&spec, text, sizeof text);
}

/* Memory that fails at one allocation only. */
typedef struct interrupted_memory {
    long until; /* allocations */
} interrupted_memory;

static void *interrupted_resize(void *context, void *ptr, size_t size) {
    interrupted_memory *m = context;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return m->until-- == 0 ? NULL : realloc(ptr, size);
}

/* Memory is missing once, for one of many long words: there is an error, or all ids. All short words are cached, so
   nothing else could notice. */
static void test_memory_that_returns(void) {
    enum { WORDS = 3000, SHORT = 5, LONG = 100 };
    static small_vocab v;
    static uint8_t text[WORDS * (SHORT + 1) + WORDS / LONG * 2 * LONG];
    static uint32_t ids[sizeof text];
    small_start(&v);
    small_add_merge(&v, 'a', 'a');
    const pybpe_vocab_spec spec = small_spec(&v);
    size_t n = 0;
    for (size_t word = 0; word < WORDS; word++) {
        const size_t length = word % LONG == 0 ? LONG + word / LONG : 1 + word % SHORT;
        memset(text + n, 'a', length);
        text[n + length] = ' ';
        n += length + 1;
    }
    subject s = subject_new(&spec);
    size_t want = 0;
    CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, n, ids, 4, n, &want, NULL), PYBPE_OK);
    int failed = 0;
    for (long until = 0; until < 40; until++) {
        interrupted_memory m = {-1};
        const pybpe_allocator mem = {interrupted_resize, &m};
        pybpe_cache *c = NULL;
        size_t count = 0;
        CHECK_EQ(pybpe_cache_new(&c, s.e, &mem, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_encode(s.e, c, NULL, text + LONG, LONG * SHORT / 2, ids, 4, n, &count, NULL), PYBPE_OK);
        m.until = until;
        int code = pybpe_encode(s.e, c, NULL, text, n, ids, 4, n, &count, NULL);
        CHECK(code == PYBPE_OK ? count == want : code == PYBPE_ERR_MEMORY);
        failed += code != PYBPE_OK;
        pybpe_cache_free(c);
    }
    CHECK(failed > 2 && failed < 40);
    subject_free(&s);
}

/* A text is refused at the first byte without a token, wherever it is. */
static void test_bytes_without_tokens(void) {
    static small_vocab v;
    small_add_token(&v, "a", 1);
    small_add_token(&v, "b", 1);
    small_add_special(&v, "<|e|>");
    const pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    EXPECT_IDS(&s, "ab<|e|>b", 0, 1, 2, 1);
    const char *texts[] = {"?ab", "ab?", "ab?<|e|>ab", "<|e|>ab?<|e|>ab<|e|>", "ab<|e|>?ab"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const uint8_t *text = (const uint8_t *)texts[i];
        uint32_t ids[32];
        size_t n = strlen(texts[i]);
        size_t count = 99;
        pybpe_error err;
        int code = pybpe_encode(s.e, s.c, pybpe_encoder_specials(s.e), text, n, ids, 4, 32, &count, &err);
        CHECK(code == PYBPE_ERR_VALUE && count == 99);
        CHECK_EQ(err.offset, strchr(texts[i], '?') - texts[i]);
    }
    subject_free(&s);
}

/* The same for words that are tokens, and for texts of a batch. */
static void test_bytes_without_tokens_in_words(void) {
    static small_vocab v;
    small_add_token(&v, "a", 1);
    small_add_token(&v, "b", 1);
    const uint32_t long_one = small_add_token(&v, "bbb", 3);
    const uint32_t short_one = small_add_token(&v, "ab", 2);
    small_add_special(&v, "<|e|>");
    pybpe_vocab_spec spec = small_spec(&v);
    spec.whole_words = 1;
    subject s = subject_new(&spec);
    const size_t ends[] = {2, 3, 6};
    uint32_t ids[8];
    size_t count = 0;
    CHECK_EQ(pybpe_encode_words(s.e, s.c, (const uint8_t *)"abbbbb", ends, 3, ids, 4, 8, &count, NULL), PYBPE_OK);
    CHECK(count == 3 && ids[0] == short_one && ids[1] == 1 && ids[2] == long_one);
    pybpe_error err;
    CHECK_EQ(pybpe_encode(s.e, s.c, NULL, (const uint8_t *)"ab?", 3, ids, 4, 8, &count, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 2);
    const uint8_t *starts[] = {(const uint8_t *)"a?", (const uint8_t *)"b?b"};
    const size_t lengths[] = {2, 3};
    uint64_t id_ends[2];
    const pybpe_texts texts = {starts, lengths, 2};
    CHECK_EQ(pybpe_encode_batch(s.e, s.c, NULL, &texts, ids, 4, 8, id_ends, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 1); /* the first error, not that of the second text */
    subject_free(&s);
}

/* A table that could not be filled is unusable, and holds nothing. Words are merged as far as memory lasts. */
static void expect_failing_memory(const small_vocab *v, const uint8_t *text, size_t n, size_t block_bytes) {
    const pybpe_vocab_spec spec = small_spec(v);
    subject s = subject_new(&spec);
    int merged = 0;
    int wrong = 0;
    for (long grant = 0; grant < 40; grant++) {
        failing_memory m = {.left = grant};
        pybpe_allocator mem = {failing_resize, &m};
        apply_blocks_table blocks = {0};
        size_t count = 0;
        const pybpe_vocab_spec filled = pybpe_vocab_get_spec(s.v);
        apply_blocks_fill(&blocks, &filled, &s.e->table, &mem);
        wrong += !blocks.tried || (!blocks.usable && m.blocks != 0);
        blocks.block_bytes = block_bytes;
        merged += blocks.usable && apply_blocks(&blocks, &s.e->table, text, n, &count, &mem);
        apply_blocks_free(&blocks, &mem);
        wrong += m.blocks != 0 || blocks.tried;
    }
    CHECK_EQ(wrong, 0);
    CHECK(merged > 0 && merged < 35);
    subject_free(&s);
}

static void test_failing_memory_of_blocks(void) {
    static small_vocab v;
    uint64_t state = 7;
    uint8_t text[300];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (uint8_t)"abc"[random_below(&state, 3)];
    }
    random_vocab(&v, &state, "abc", 40, false);
    expect_failing_memory(&v, text, sizeof text, APPLY_BLOCK);
}

/* XabX for 48 letters X: each ab that is made joins the letter before it or the one after it, so that the heap grows
   for both. */
static void test_failing_memory_of_the_heap(void) {
    enum { LETTERS = 48 };
    static small_vocab v;
    uint8_t w[4 * LETTERS];
    uint32_t want[sizeof w];
    small_start(&v);
    const uint32_t ab = small_add_merge(&v, 'a', 'b');
    for (size_t i = 0; i < LETTERS; i++) {
        const uint8_t x = (uint8_t)(i < 26 ? 'A' + i : 'e' + i - 26);
        small_add_merge(&v, ab, x);
        small_add_merge(&v, x, ab);
        memcpy(w + 4 * i, (const uint8_t[]){x, 'a', 'b', x}, 4);
    }
    const pybpe_vocab_spec spec = small_spec(&v);
    subject s = subject_new(&spec);
    naive_prepare(&v);
    const size_t count = merge_naive(&v, w, sizeof w, want);
    naive_forget(&v);
    int passed = 0, wrong = 0;
    for (long grant = 0; grant < 40; grant++) {
        failing_memory m = {.left = grant};
        const pybpe_allocator mem = {failing_resize, &m};
        apply_scratch scratch = {0};
        size_t got = 0;
        int code = apply_long(&s.e->table, &scratch, w, sizeof w, &got, &mem, NULL);
        passed += code == PYBPE_OK;
        wrong += code != PYBPE_OK && code != PYBPE_ERR_MEMORY;
        wrong += code == PYBPE_OK && (got != count || memcmp(scratch.ids, want, 4 * count) != 0);
        apply_scratch_free(&scratch, &mem);
        wrong += m.blocks != 0;
    }
    CHECK_EQ(wrong, 0);
    CHECK(passed > 0 && passed < 38);
    subject_free(&s);
}

int main(void) {
    test_worked();
    test_whole_words();
    test_arguments();
    test_changed_texts();
    test_growing_text();
    test_order_of_bytes();
    test_batch();
    test_many_small_texts();
    test_ends_of_texts();
    test_late_keys();
    test_large_vocabulary();
    test_random_words();
    test_random_texts();
    test_units();
    test_many_units();
    test_long_words();
    test_unreachable_parts();
    test_many_ranks();
    test_dropped_tokens();
    test_scratch_of_long_words();
    test_long_blocks();
    test_full_cache();
    test_failing_memory();
    test_failing_memory_of_blocks();
    test_failing_memory_of_the_heap();
    test_memory_that_returns();
    test_bytes_without_tokens();
    test_bytes_without_tokens_in_words();
    test_first_token_of_two_characters();
    test_many_windows();
    test_large_vocabulary_of_superwords();
    test_crowded_cache();
    return check_report("encode");
}
