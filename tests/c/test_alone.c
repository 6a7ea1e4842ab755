/*
From tokenizer.bin only, on a stack of 256 KiB: trains a vocabulary, writes it and reads it back; then encodes texts
that break tokenizers, decodes them, and decodes them as a stream that never splits a character. (Recursion would
overflow the stack here.)
*/
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "pybpe_train.h"
#include "scratch.h"
#include "small_vocab.h"

#include <stdbool.h>

#include <limits.h>
#include <pthread.h>

enum { STACK_BYTES = 256 * 1024, TEXT_BYTES = 300000 };

typedef struct subject {
    pybpe_vocab *v;
    pybpe_encoder *e;
    pybpe_cache *c;
    uint8_t *text;
    uint32_t *ids;
    uint8_t *back;
} subject;

/* ---------------------------------------------------------------------------------------------------
A vocabulary in a file
*/

/* Words of one letter, of two alternating letters, of random letters and of bytes that are not text: some short ones
   and a long one of each kind. */
static void fill_words(uint8_t *bytes, uint64_t *offsets, size_t words) {
    uint64_t state = 5;
    size_t at = 0;
    for (size_t i = 0; i < words; i++) {
        offsets[i] = at;
        size_t n = i < 6 ? 20000 : 12;
        for (size_t k = 0; k < n; k++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            const uint8_t of_kind[] = {'a',
                                       (uint8_t)"ab"[k & 1],
                                       (uint8_t)('a' + (state >> 60)),
                                       ' ',
                                       (uint8_t)(0x80 + (state >> 57)),
                                       (uint8_t)"\xE4\xBD\xA0"[k % 3]};
            bytes[at++] = of_kind[i % 6];
        }
    }
    offsets[words] = at;
}

static void train(small_vocab *v) {
    enum { WORDS = 60 };
    static uint8_t bytes[6 * 20000 + WORDS * 12];
    static uint64_t offsets[WORDS + 1];
    uint64_t counts[WORDS];
    fill_words(bytes, offsets, WORDS);
    for (size_t i = 0; i < WORDS; i++) {
        counts[i] = i + 1;
    }
    pybpe_strings words = {bytes, offsets, WORDS};
    pybpe_train_config config = {.vocab_size = 400, .max_token_length = 16};
    pybpe_trainer *trainer;
    int done = 0;
    CHECK_EQ(pybpe_trainer_new(&trainer, &words, counts, &config, NULL, NULL), PYBPE_OK);
    while (!done) {
        CHECK_EQ(pybpe_trainer_step(trainer, 1 << 12, &done, NULL), PYBPE_OK);
    }
    const uint32_t *merges;
    size_t count = pybpe_trainer_merges(trainer, &merges);
    small_start(v);
    for (size_t i = 0; i < count; i++) {
        if (merges[3 * i + 2] == v->count) {
            small_add_merge(v, merges[3 * i], merges[3 * i + 1]);
        }
    }
    CHECK_EQ(v->count, 400);
    pybpe_trainer_free(trainer);
}

static void write_vocabulary(void) {
    static small_vocab v;
    train(&v);
    small_add_special(&v, "<|endoftext|>");
    pybpe_vocab_spec spec = small_spec(&v);
    pybpe_vocab *vocab;
    CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_vocab_save(vocab, "tokenizer.bin", 2, NULL), PYBPE_OK);
    pybpe_vocab_free(vocab);
}

/* ---------------------------------------------------------------------------------------------------
Texts
*/

typedef void fill_fn(uint8_t *text, size_t n);

static void fill_repeated(uint8_t *text, size_t n, const char *unit) {
    size_t length = strlen(unit);
    for (size_t i = 0; i < n; i++) {
        text[i] = (uint8_t)unit[i % length];
    }
}

static void fill_random(uint8_t *text, size_t n, unsigned lowest, unsigned count) {
    uint64_t state = 9;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        text[i] = (uint8_t)(lowest + (unsigned)(state >> 33) % count);
    }
}

static void fill_chinese(uint8_t *text, size_t n) {
    fill_random(text, n, 0x80, 0x40);
    for (size_t i = 0; i < n; i += 3) {
        text[i] = (uint8_t)(0xE5 + i % 4);
    }
}

static void fill_letters(uint8_t *text, size_t n) { fill_random(text, n, 'a', 26); }
static void fill_digits(uint8_t *text, size_t n) { fill_random(text, n, '0', 10); }
static void fill_invalid(uint8_t *text, size_t n) { fill_random(text, n, 0x80, 0x80); }
static void fill_bytes(uint8_t *text, size_t n) { fill_random(text, n, 0, 256); }

/* ---------------------------------------------------------------------------------------------------
Encoding, decoding, and streaming
*/

/* Decodes one id at a time, like a program that displays a model's output: it holds back the at most three bytes of an
   incomplete character. Checks that the pieces are the text, and, if it is UTF-8, that none ends inside one. */
static void check_stream(const subject *s, size_t count, size_t n, int is_utf8) {
    uint8_t held[3 + 255];
    size_t held_count = 0;
    size_t shown = 0;
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        wrong += pybpe_decode(s->v, s->ids + i, 4, 1, held + held_count, 255, &length, NULL) != PYBPE_OK;
        held_count += length;
        size_t complete = pybpe_utf8_complete(held, held_count);
        wrong += held_count - complete > 3 || shown + complete > n || memcmp(s->text + shown, held, complete) != 0;
        shown += complete;
        wrong += is_utf8 && shown < n && (s->text[shown] & 0xC0) == 0x80;
        held_count -= complete;
        memmove(held, held + complete, held_count);
    }
    wrong += shown + held_count != n || memcmp(s->text + shown, held, held_count) != 0;
    CHECK_EQ(wrong, 0);
}

static void check_text(const subject *s, const char *name, size_t n, int is_utf8) {
    size_t count = 0;
    size_t length = 0;
    const pybpe_specials *specials = pybpe_encoder_specials(s->e);
    CHECK_EQ(pybpe_encode(s->e, s->c, specials, s->text, n, s->ids, 4, n, &count, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_decode(s->v, s->ids, 4, count, s->back, n, &length, NULL), PYBPE_OK);
    int equal = length == n && memcmp(s->text, s->back, n) == 0;
    if (!equal) {
        printf("%s does not come back\n", name);
    }
    CHECK(equal);
    check_stream(s, count, n, is_utf8);
}

static void test_texts(const subject *s) {
    const char *const units[] = {"a", " ", "\n", "ab", "7", "!", "\xE4\xBD\xA0", "a \n", "<|endoftext|>", "<|end"};
    fill_fn *const fills[] = {fill_letters, fill_digits, fill_chinese, fill_invalid,
                              fill_bytes}; /* the last two are not UTF-8 */
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        fill_repeated(s->text, TEXT_BYTES, units[i]);
        check_text(s, units[i], TEXT_BYTES, 1);
    }
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        fills[i](s->text, TEXT_BYTES);
        check_text(s, "a random text", TEXT_BYTES, i < 3);
    }
}

typedef int tokenizer_encode_fn(const pybpe_tokenizer *t, const void *text, size_t n, uint32_t *ids, size_t cap,
                                size_t *count, pybpe_error *err);

/* A tokenizer gives the same ids as the handles, with any room that is enough, and says what is not. */
static void test_tokenizer(const subject *s, const char *text, size_t n, bool specials, size_t count) {
    tokenizer_encode_fn *encode = specials ? pybpe_tokenizer_encode : pybpe_tokenizer_encode_ordinary;
    uint32_t ids[PYBPE_IDS_ROOM(64)];
    char back[64];
    size_t found = 0;
    pybpe_tokenizer *t;
    pybpe_error err;
    CHECK(n <= 64);
    CHECK_EQ(pybpe_tokenizer_load(&t, "tokenizer.bin", NULL, NULL), PYBPE_OK);
    for (size_t cap = 0; cap <= n + 1; cap++) {
        memset(ids, 0xEE, sizeof ids);
        CHECK_EQ(encode(t, text, n, ids, cap, &found, &err), cap < count ? PYBPE_ERR_LIMIT : PYBPE_OK);
        CHECK_EQ(found, count);
        CHECK(cap < count ? ids[0] == 0xEEEEEEEE : memcmp(ids, s->ids, count * 4) == 0);
        CHECK(cap > 0 || strstr(err.msg, "ids, but there is room for only 0") != NULL);
    }
    CHECK_EQ(encode(t, text, n, NULL, 0, &found, NULL), PYBPE_OK);
    CHECK_EQ(found, count);
    CHECK_EQ(pybpe_tokenizer_decode(t, s->ids, count, back, n, &found, NULL), PYBPE_OK);
    CHECK(found == n && memcmp(back, text, n) == 0);
    CHECK_EQ(pybpe_tokenizer_decode(t, s->ids, count, back, n - 1, &found, NULL), PYBPE_ERR_LIMIT);
    CHECK_EQ(pybpe_vocab_get_spec(pybpe_tokenizer_vocab(t)).tokens.count, pybpe_vocab_get_spec(s->v).tokens.count);
    pybpe_tokenizer_free(t);
}

static void test_known(const subject *s) {
    const char *text = "aaaa<|endoftext|>ab";
    size_t count = 0;
    size_t n = strlen(text);
    memcpy(s->text, text, n);
    CHECK_EQ(pybpe_encode(s->e, s->c, pybpe_encoder_specials(s->e), s->text, n, s->ids, 4, n, &count, NULL), PYBPE_OK);
    CHECK_EQ(count, 3);
    CHECK_EQ(s->ids[1], 400);
    test_tokenizer(s, text, n, true, count);
    CHECK_EQ(pybpe_encode(s->e, s->c, NULL, s->text, n, s->ids, 4, n, &count, NULL), PYBPE_OK);
    test_tokenizer(s, text, n, false, count);
    pybpe_error err;
    pybpe_tokenizer *t = (pybpe_tokenizer *)1;
    CHECK_EQ(pybpe_tokenizer_load(&t, "none.bin", NULL, &err), PYBPE_ERR_IO);
    CHECK(t == NULL);
    pybpe_tokenizer_free(t);
    CHECK(strstr(err.msg, "none.bin") != NULL);
    check_text(s, text, n, 1);
}

static void *on_small_stack(void *unused) {
    subject s = {.text = malloc(TEXT_BYTES), .ids = malloc(4 * TEXT_BYTES), .back = malloc(TEXT_BYTES)};
    write_vocabulary();
    CHECK_EQ(pybpe_vocab_load(&s.v, "tokenizer.bin", NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&s.e, s.v, NULL, 0, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_cache_new(&s.c, s.e, NULL, NULL), PYBPE_OK);
    test_known(&s);
    test_texts(&s);
    pybpe_cache_free(s.c);
    pybpe_encoder_free(s.e);
    pybpe_vocab_free(s.v);
    free(s.text);
    free(s.ids);
    free(s.back);
    return unused;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    scratch_enter();
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    int created = pthread_create(&thread, &attributes, on_small_stack, NULL);
    CHECK(created == 0 && pthread_join(thread, NULL) == 0); /* one check: two threads must not count at a time */
    pthread_attr_destroy(&attributes);
    scratch_leave();
    return check_report("alone");
}
