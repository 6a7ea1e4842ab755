/*
Encoding in two stages, for vocabularies with superwords: random vocabularies, divided at any merge, give the ids of the
definition, cold and from the cache, for words and for texts. The words are repeated up to 255 times, which takes several
blocks of units; repeated words have repeated ids. Or they are one long word, whose phrases continue from block to block.
*/
#include "encode/encode_stages.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "naive_encode.h"

/* Words of up to 127 tokens: phrases in one group, and longer ones. */
enum {
    MOST_BASE = 1024,
    BASE_WORDS = 8,
    COPIES = 255,
    MOST_TEXT = COPIES * MOST_BASE,
    MOST_SPLIT = 1200,
    MOST_WORD = 3500
};

/* Words end to end, and the ids of each by the definition. */
typedef struct word_text {
    uint8_t bytes[MOST_TEXT];
    size_t ends[COPIES * BASE_WORDS], n, words;
    uint32_t ids[MOST_TEXT];
    size_t count;
} word_text;

/* Bytes of which texts and merges are made: letters, spaces, and the bytes of a character. */
static uint8_t letter(fuzz_input *in) { return (uint8_t)"ab  c,\xE4\xB8\xAD\xC3\xA9"[fuzz_below(in, 11)]; }

static void make_vocab(small_vocab *v, fuzz_input *in) {
    small_start(v);
    for (unsigned left = 1 + fuzz_below(in, 60); left > 0; left--) {
        uint32_t pair[2];
        for (int side = 0; side < 2; side++) {
            unsigned x = fuzz_byte(in);
            pair[side] = x < 64 || v->count == 256 ? letter(in) : 256 + x % (uint32_t)(v->count - 256);
        }
        if (small_length(v, pair[0]) + small_length(v, pair[1]) <= 40) {
            small_add_merge(v, pair[0], pair[1]);
        }
    }
}

static void read_words(fuzz_input *in, word_text *t) {
    t->n = 0;
    for (t->words = 0; t->words < BASE_WORDS; t->words++) {
        size_t length = fuzz_below(in, MOST_BASE / BASE_WORDS), period = 1 + fuzz_byte(in);
        for (size_t k = 0; k < length; k++, t->n++) {
            t->bytes[t->n] = k < period ? letter(in) : t->bytes[t->n - period];
        }
        t->ends[t->words] = t->n;
    }
}

/* After naive_prepare. */
static void find_ids(const small_vocab *v, word_text *t) {
    t->count = 0;
    for (size_t i = 0, start = 0; i < t->words; start = t->ends[i++]) {
        t->count += merge_naive(v, t->bytes + start, t->ends[i] - start, t->ids + t->count);
    }
}

static void repeat(word_text *t, size_t copies) {
    const size_t n = t->n, words = t->words, count = t->count;
    for (; copies > 1; copies--) {
        memcpy(t->bytes + t->n, t->bytes, n);
        memcpy(t->ids + t->count, t->ids, count * sizeof *t->ids);
        for (size_t i = 0; i < words; i++) {
            t->ends[t->words++] = t->n + t->ends[i];
        }
        t->n += n;
        t->count += count;
    }
}

/* Makes the text one word. After naive_prepare. */
static void join(const small_vocab *v, word_text *t) {
    t->n = t->n < MOST_WORD ? t->n : MOST_WORD;
    t->ends[0] = t->n;
    t->words = 1;
    find_ids(v, t);
}

static void check_words(const pybpe_encoder *e, pybpe_cache *c, const word_text *t) {
    static uint32_t ids[MOST_TEXT];
    pybpe_error err;
    for (int round = 0; round < 2; round++) {
        size_t got = 0;
        REQUIRE(pybpe_encode_words(e, c, t->bytes, t->ends, t->words, ids, 4, t->n, &got, &err) == PYBPE_OK);
        REQUIRE(got == t->count && memcmp(ids, t->ids, 4 * got) == 0);
    }
}

/* The same bytes as a text, in the words of the splitter. After naive_prepare. */
static void check_text(const small_vocab *v, const pybpe_encoder *e, pybpe_cache *c, word_text *t) {
    static uint32_t ids[MOST_SPLIT];
    static size_t ends[MOST_SPLIT];
    size_t got = 0;
    pybpe_error err;
    t->n = t->n < MOST_SPLIT ? t->n : MOST_SPLIT;
    t->words = 0;
    for (size_t pos = 0; pos < t->n; pos = t->ends[t->words - 1]) {
        size_t words = pybpe_pretok_split(pybpe_encoder_pretok(e), t->bytes, t->n, pos, ends, MOST_SPLIT);
        memcpy(t->ends + t->words, ends, words * sizeof *ends);
        t->words += words;
    }
    find_ids(v, t);
    REQUIRE(pybpe_encode(e, c, NULL, t->bytes, t->n, ids, 4, t->n, &got, &err) == PYBPE_OK);
    REQUIRE(got == t->count && memcmp(ids, t->ids, 4 * got) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static small_vocab v;
    static word_text t;
    fuzz_input in = {data, size};
    size_t first = fuzz_byte(&in);
    pybpe_vocab *vocab;
    pybpe_encoder *e;
    pybpe_cache *c;
    pybpe_error err;
    make_vocab(&v, &in);
    if (v.merges_count == 0) {
        return 0;
    }
    const pybpe_vocab_spec spec = small_spec(&v);
    REQUIRE(pybpe_vocab_new(&vocab, &spec, &fuzz_memory, &err) == PYBPE_OK);
    REQUIRE(pybpe_encoder_new(&e, vocab, NULL, 0, &fuzz_memory, &err) == PYBPE_OK);
    encoder_unite(e);
    REQUIRE(encoder_divide(e, first % v.merges_count, &err) == PYBPE_OK);
    REQUIRE(pybpe_cache_new(&c, e, &fuzz_memory, &err) == PYBPE_OK);
    read_words(&in, &t);
    const size_t copies = fuzz_byte(&in);
    naive_prepare(&v);
    find_ids(&v, &t);
    repeat(&t, copies < 192 ? 1 + copies % 4 : copies);
    if (fuzz_below(&in, 4) == 1) {
        join(&v, &t);
    }
    check_words(e, c, &t);
    check_text(&v, e, c, &t);
    naive_forget(&v);
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return 0;
}
