/*
Encoding in two stages, for vocabularies with superwords: random vocabularies, divided at any merge, give the ids of the
definition, cold and from the cache.
*/
#include "encode_stages.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "naive_encode.h"

enum { MOST_TEXT = 1024, MOST_WORDS = 8 }; /* words of up to 127 tokens: phrases in one group, and longer ones */

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

/* Text, and the ends of the words that it is cut into. Returns its length. */
static size_t read_words(fuzz_input *in, uint8_t *text, size_t *ends) {
    size_t n = 0;
    for (size_t i = 0; i < MOST_WORDS; i++) {
        size_t length = fuzz_below(in, MOST_TEXT / MOST_WORDS), period = 1 + fuzz_byte(in);
        for (size_t k = 0; k < length; k++, n++) {
            text[n] = k < period ? letter(in) : text[n - period];
        }
        ends[i] = n;
    }
    return n;
}

static size_t naive_ids(const small_vocab *v, const uint8_t *text, const size_t *ends, uint32_t *ids) {
    size_t count = 0;
    naive_prepare(v);
    for (size_t i = 0, start = 0; i < MOST_WORDS; start = ends[i++]) {
        count += merge_naive(v, text + start, ends[i] - start, ids + count);
    }
    naive_forget(v);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static small_vocab v;
    static uint32_t ids[MOST_TEXT], want[MOST_TEXT];
    static uint8_t text[MOST_TEXT];
    fuzz_input in = {data, size};
    size_t ends[MOST_WORDS], first = fuzz_byte(&in);
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
    REQUIRE(pybpe_encoder_new(&e, vocab, &fuzz_memory, &err) == PYBPE_OK);
    stages_free(e->stages, &fuzz_memory);
    REQUIRE(stages_new(&e->stages, vocab, first % v.merges_count, &fuzz_memory, &err) == PYBPE_OK);
    REQUIRE(pybpe_cache_new(&c, e, &fuzz_memory, &err) == PYBPE_OK);
    size_t n = read_words(&in, text, ends), count = naive_ids(&v, text, ends, want);
    for (int round = 0; round < 2; round++) {
        size_t got = 0;
        REQUIRE(pybpe_encode_words(e, c, text, ends, MOST_WORDS, ids, 4, n, &got, &err) == PYBPE_OK);
        REQUIRE(got == count && memcmp(ids, want, 4 * count) == 0);
    }
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return 0;
}
