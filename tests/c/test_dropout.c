/*
Encoding with dropout: against its definition, what it refuses, its memory, and words of all lengths.
tests/py/test_dropout.py has the distribution.
*/
#include "base/base.h" /* before any system header */
#include "check.h"
#include "encode/encode.h"
#include "naive_encode.h"
#include "random_state.h"

#include <math.h>

enum { LONGEST = 3000 };

static void fill(small_vocab *v) {
    small_start(v);
    uint32_t ab = small_add_merge(v, 'a', 'b');
    uint32_t aa = small_add_merge(v, 'a', 'a');
    small_add_merge(v, ab, ab);
    small_add_merge(v, aa, ab);
    small_add_merge(v, ab, 'a');
    small_add_merge(v, aa, aa);
}

/* Whether the tokens have the bytes of the text. */
static bool spells(const small_vocab *v, const uint32_t *ids, size_t count, const uint8_t *text, size_t n) {
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = small_length(v, ids[i]);
        if (n - at < length || memcmp(text + at, v->bytes + v->offsets[ids[i]], length) != 0) {
            return false;
        }
        at += length;
    }
    return at == n;
}

/* ---------------------------------------------------------------------------------------------------
The definition: the queue is a sorted list, and SplitMix64 gives the random numbers
*/

static uint64_t mix_by_definition(uint64_t x) {
    x ^= x >> 30;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 27;
    x *= UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static uint64_t draw_by_definition(uint64_t *state) {
    *state += UINT64_C(0x9E3779B97F4A7C15);
    return mix_by_definition(*state);
}

/* A geometric number: the bit of value v is set with the probability rate^v / (1 + rate^v). */
static uint64_t passed_by_definition(uint64_t *state, double rate) {
    const double whole = (double)(UINT64_C(1) << 53);
    uint64_t passed = 0;
    for (unsigned bit = 0; bit < 64 && rate * whole >= 1; bit++) {
        const uint64_t limit = (uint64_t)(rate / (1 + rate) * whole);
        passed |= (uint64_t)(draw_by_definition(state) >> 11 < limit) << bit;
        rate *= rate;
    }
    return passed;
}

enum { DEFINED = 64 }; /* the longest word */

typedef struct defined_word {
    uint32_t ids[DEFINED + 1]; /* at the first byte of each token; 0 elsewhere: no word has a byte 0 */
    size_t n;
    uint64_t queue[3 * DEFINED]; /* rank << 32 | position, sorted */
    size_t queued;
} defined_word;

/* The rank of the token at a position and the next one, + 1; 0 if they do not merge. */
static unsigned defined_rank(const defined_word *word, size_t at, size_t *next) {
    for (*next = at + 1; *next < word->n && word->ids[*next] == 0;) {
        *next += 1;
    }
    return *next < word->n ? naive_ranks[word->ids[at]][word->ids[*next]] : 0;
}

static void defined_add(defined_word *word, size_t at) {
    size_t next;
    const unsigned rank = defined_rank(word, at, &next);
    if (rank > 0) {
        const uint64_t entry = (uint64_t)(rank - 1) << 32 | at;
        size_t i = word->queued++;
        for (; i > 0 && word->queue[i - 1] > entry; i--) {
            word->queue[i] = word->queue[i - 1];
        }
        word->queue[i] = entry;
    }
}

/* Takes an entry from the queue, and merges its pair unless that has changed. */
static void defined_take(const small_vocab *v, defined_word *word, size_t k) {
    const uint64_t entry = word->queue[k];
    const size_t at = (uint32_t)entry;
    const unsigned rank = (unsigned)(entry >> 32);
    size_t next;
    word->queued -= 1;
    memmove(word->queue + k, word->queue + k + 1, (word->queued - k) * sizeof *word->queue);
    if (word->ids[at] == 0 || defined_rank(word, at, &next) != rank + 1) {
        return;
    }
    word->ids[at] = v->merged[rank];
    word->ids[next] = 0;
    defined_add(word, at);
    for (size_t before = at; before-- > 0;) {
        if (word->ids[before] != 0) {
            defined_add(word, before);
            break;
        }
    }
}

static size_t dropout_by_definition(const small_vocab *v, const pybpe_dropout *how, uint64_t place, const uint8_t *w,
                                    size_t n, uint32_t *ids) {
    uint64_t state = mix_by_definition(mix_by_definition(how->seed) + place);
    defined_word word = {.n = n};
    for (size_t i = 0; i < n; i++) {
        word.ids[i] = w[i];
    }
    for (size_t i = 0; i < n; i++) {
        defined_add(&word, i);
    }
    while (word.queued > 0) {
        const uint64_t passed = passed_by_definition(&state, how->rate);
        if (passed >= word.queued) {
            break;
        }
        defined_take(v, &word, (size_t)passed);
    }
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        ids[count] = word.ids[i];
        count += word.ids[i] != 0;
    }
    return count;
}

/* Two words: the random numbers of the second one depend on its place. */
static void test_definition(const small_vocab *v, const pybpe_encoder *e) {
    const double rates[] = {0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.9999999999999999};
    uint64_t state = 1234567;
    CHECK_EQ(draw_by_definition(&state), UINT64_C(6457827717110365317)); /* as published */
    CHECK_EQ(draw_by_definition(&state), UINT64_C(3203168211198807973));
    naive_prepare(v);
    for (size_t round = 0; round < 2000; round++) {
        const size_t n = 2 + random_below(DEFINED - 1);
        const size_t other = 1 + random_below(9);
        const pybpe_dropout how = {rates[round % 7], round, UINT64_C(1000000007) * round};
        uint8_t text[DEFINED + 9];
        uint32_t ids[sizeof text];
        uint32_t want[sizeof text];
        size_t got = 0;
        memset(text, 'x', other); /* no merges */
        text[other] = ' ';
        for (size_t i = 1; i < n; i++) {
            text[other + i] = (uint8_t)"ab"[random_below(2)];
        }
        CHECK_EQ(pybpe_encode_dropout(e, &how, text, other + n, ids, &got, NULL), PYBPE_OK);
        const size_t count = dropout_by_definition(v, &how, how.offset + other, text + other, n, want);
        CHECK(got == other + count && memcmp(ids + other, want, 4 * count) == 0);
    }
    naive_forget(v);
}

static void test_words_of_all_lengths(const small_vocab *v, const pybpe_encoder *e) {
    const double rates[] = {0, 0.1, 0.5, 0.99, 0.9999999999999999, 1};
    static uint32_t ids[LONGEST];
    static uint32_t want[LONGEST];
    naive_prepare(v);
    for (size_t round = 0; round < 300; round++) {
        size_t n = random_below(round % 10 == 0 ? LONGEST : 20);
        uint8_t *text = malloc(n + (n == 0)); /* of the exact size, so that a sanitizer sees reads outside it */
        for (size_t i = 0; i < n; i++) {
            text[i] = (uint8_t)"ab"[random_below(2)];
        }
        size_t least = merge_naive(v, text, n, want);
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
            const pybpe_dropout how = {rates[r], round, 0};
            size_t count = 0;
            CHECK_EQ(pybpe_encode_dropout(e, &how, text, n, ids, &count, NULL), PYBPE_OK);
            CHECK(spells(v, ids, count, text, n));
            CHECK(r > 0 || (count == least && memcmp(ids, want, 4 * count) == 0));
            CHECK(rates[r] < 1 || count == n);
        }
        free(text);
    }
    naive_forget(v);
}

/* A word that one merge completes stays in two parts as often as the rate says: within five standard deviations. */
static void test_rates(const pybpe_encoder *e) {
    enum { WORDS = 10000 };
    static uint8_t text[3 * WORDS];
    static uint32_t ids[3 * WORDS];
    for (size_t i = 0; i < WORDS; i++) {
        memcpy(text + 3 * i, " ab", 3); /* no merge takes the space */
    }
    for (int tenths = 1; tenths < 10; tenths++) {
        const double rate = tenths / 10.0;
        const pybpe_dropout how = {rate, 7, 0};
        size_t count = 0;
        CHECK_EQ(pybpe_encode_dropout(e, &how, text, sizeof text, ids, &count, NULL), PYBPE_OK);
        CHECK(fabs((double)count - WORDS * (2 + rate)) < 5 * sqrt(WORDS * rate * (1 - rate)));
    }
}

static void test_refusals(const pybpe_encoder *e) {
    const double wrong[] = {-0.1, 1.1, (double)NAN, (double)INFINITY};
    uint32_t ids[4] = {7, 7, 7, 7};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const pybpe_dropout how = {wrong[i], 1, 0};
        size_t count = 5;
        pybpe_error err;
        CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)"abab", 4, ids, &count, &err), PYBPE_ERR_VALUE);
        CHECK(count == 5 && ids[0] == 7);
    }
}

/* A word whose pairs have no numbers of 32 bits. It is refused before it is read. */
static void test_too_long(const small_vocab *v) {
    const pybpe_dropout how = {0.5, 1, 0};
    pybpe_vocab_spec spec = small_spec(v);
    spec.pattern = PYBPE_PATTERN_CUSTOM;
    spec.custom = ".";
    pybpe_vocab *vocab;
    pybpe_encoder *e;
    pybpe_error err;
    uint32_t ids[1];
    size_t count = 5;
    CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, vocab, NULL, 0, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)"a", UINT32_MAX / 3, ids, &count, &err), PYBPE_ERR_LIMIT);
    CHECK(count == 5 && err.offset == 0);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
}

static void test_bytes_without_tokens(void) {
    const uint8_t bytes[] = "ab";
    const uint64_t offsets[] = {0, 1, 2};
    const pybpe_vocab_spec spec = {.tokens = {bytes, offsets, 2}, .eot_id = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
    const pybpe_dropout how = {0.5, 1, 100};
    pybpe_vocab *v;
    pybpe_encoder *e;
    pybpe_error err;
    uint32_t ids[4];
    size_t count = 0;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, v, NULL, 0, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)"abba", 4, ids, &count, &err), PYBPE_OK);
    CHECK_EQ(count, 4);
    CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)"abca", 4, ids, &count, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 2);
    pybpe_encoder_free(e);
    pybpe_vocab_free(v);
}

/* With a custom pattern, the text is one word. */
static void test_custom_pattern(const small_vocab *v) {
    const char *texts[] = {"", "ab", "ab ab a"};
    pybpe_vocab_spec spec = small_spec(v);
    spec.pattern = PYBPE_PATTERN_CUSTOM;
    spec.custom = ".";
    const pybpe_dropout how = {0, 1, 0};
    pybpe_vocab *vocab;
    pybpe_encoder *e;
    CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, vocab, NULL, 0, NULL, NULL), PYBPE_OK);
    naive_prepare(v);
    for (size_t i = 0; i < 3; i++) {
        uint32_t ids[8], want[8];
        size_t n = strlen(texts[i]), count = 9;
        CHECK_EQ(pybpe_encode_dropout(e, &how, (const uint8_t *)texts[i], n, ids, &count, NULL), PYBPE_OK);
        CHECK_EQ(count, n > 0 ? merge_naive(v, (const uint8_t *)texts[i], n, want) : 0);
        CHECK(memcmp(ids, want, 4 * count) == 0);
    }
    naive_forget(v);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
}

/* Every allocation fails in turn. */
static void test_failing_memory(const pybpe_vocab *v) {
    const pybpe_dropout how = {0.5, 1, 0};
    const uint8_t text[] = "a aa aab abab abababababababababab b";
    int passed = 0;
    int wrong = 0;
    for (long grant = 0; grant < 40; grant++) {
        failing_memory m = {.left = grant};
        pybpe_allocator mem = {failing_resize, &m};
        pybpe_encoder *e;
        pybpe_error err;
        uint32_t ids[sizeof text];
        size_t count;
        int code = pybpe_encoder_new(&e, v, NULL, 0, &mem, &err);
        code = code == PYBPE_OK ? pybpe_encode_dropout(e, &how, text, sizeof text - 1, ids, &count, &err) : code;
        pybpe_encoder_free(e);
        passed += code == PYBPE_OK;
        wrong += (code != PYBPE_OK && code != PYBPE_ERR_MEMORY) || m.blocks != 0;
    }
    CHECK_EQ(wrong, 0);
    CHECK(passed > 0 && passed < 35);
}

int main(void) {
    static small_vocab v;
    fill(&v);
    const pybpe_vocab_spec spec = small_spec(&v);
    pybpe_vocab *vocab;
    pybpe_encoder *e;
    CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, vocab, NULL, 0, NULL, NULL), PYBPE_OK);
    test_definition(&v, e);
    test_words_of_all_lengths(&v, e);
    test_rates(e);
    test_refusals(e);
    test_too_long(&v);
    test_bytes_without_tokens();
    test_custom_pattern(&v);
    test_failing_memory(vocab);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return check_report("dropout");
}
