/*
Encoding against its definition: random vocabularies and texts. Each word has the ids of the naive encoder; the ids
decode to the text; a text cut in two at any safe cut has the ids of the whole; a warm cache changes nothing.
*/
#include "encode/encode.h"
#include "encode/encode_cache.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "fuzz_merges.h"
#include "naive_encode.h"
#include "vocab/vocab.h"

enum { MOST_TEXT = 1280 }; /* more words, and more pieces of words, than are looked up at once */

static size_t encode(const pybpe_encoder *e, pybpe_cache *c, const uint8_t *text, size_t n, uint32_t *ids) {
    size_t count = 0;
    pybpe_error err;
    REQUIRE(pybpe_encode(e, c, NULL, text, n, ids, 4, MOST_TEXT, &count, &err) == PYBPE_OK);
    return count;
}

static void check_words(const small_vocab *v, const pybpe_encoder *e, const uint8_t *text, size_t n,
                        const uint32_t *ids, size_t count) {
    static uint32_t want[MOST_TEXT];
    size_t ends[64];
    size_t at = 0;
    for (size_t pos = 0; pos < n;) {
        size_t words = pybpe_pretok_split(pybpe_encoder_pretok(e), text, n, pos, ends, 64);
        REQUIRE(words > 0);
        for (size_t i = 0; i < words; i++) {
            REQUIRE(ends[i] > pos && ends[i] <= n);
            size_t wanted = merge_naive(v, text + pos, ends[i] - pos, want);
            REQUIRE(at + wanted <= count && memcmp(want, ids + at, 4 * wanted) == 0);
            at += wanted;
            pos = ends[i];
        }
    }
    REQUIRE(at == count);
}

/* The whole text as one word that is merged in blocks of any size, if the vocabulary allows it. */
static void check_blocks(const small_vocab *v, const pybpe_encoder *e, const uint8_t *text, size_t n, size_t block) {
    static uint32_t want[MOST_TEXT];
    apply_blocks_table blocks = {0};
    const pybpe_vocab_spec spec = pybpe_vocab_get_spec(e->vocab);
    apply_blocks_fill(&blocks, &spec, &e->table, &fuzz_memory);
    if (blocks.usable && n > 0) {
        size_t count = 0;
        blocks.block_bytes = block;
        if (apply_blocks(&blocks, &e->table, text, n, &count, &fuzz_memory)) {
            size_t wanted = merge_naive(v, text, n, want);
            REQUIRE(count == wanted && memcmp(want, blocks.ids, 4 * count) == 0);
        } else {
            REQUIRE(block < n);
        }
    }
    apply_blocks_free(&blocks, &fuzz_memory);
}

/* At the first safe cut after a position. (All of them would take ten times as long as everything else.) */
static void check_cut(const pybpe_encoder *e, pybpe_cache *c, const uint8_t *text, size_t n, size_t place,
                      const uint32_t *ids, size_t count) {
    static uint32_t parts[2 * MOST_TEXT];
    size_t cut = pybpe_text_cut(pybpe_encoder_pretok(e), NULL, text, n, place);
    REQUIRE(cut >= place && cut <= n);
    size_t first = encode(e, c, text, cut, parts);
    size_t second = encode(e, c, text + cut, n - cut, parts + first);
    REQUIRE(first + second == count && memcmp(parts, ids, 4 * count) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static small_vocab v;
    static uint32_t ids[MOST_TEXT], again[MOST_TEXT];
    static uint8_t back[MOST_TEXT];
    static const int patterns[] = {PYBPE_PATTERN_GPT2,   PYBPE_PATTERN_CL100K, PYBPE_PATTERN_O200K,
                                   PYBPE_PATTERN_LLAMA3, PYBPE_PATTERN_QWEN2,  PYBPE_PATTERN_NANOCHAT};
    fuzz_input in = {data, size};
    pybpe_vocab *vocab;
    pybpe_encoder *e;
    pybpe_cache *c;
    pybpe_error err;
    unsigned choice = fuzz_byte(&in);
    read_vocab(&v, &in);
    pybpe_vocab_spec spec = small_spec(&v);
    spec.pattern = patterns[choice % 6] | (choice & 128 ? PYBPE_PATTERN_DIGITS1 : 0);
    REQUIRE(pybpe_vocab_new(&vocab, &spec, &fuzz_memory, &err) == PYBPE_OK);
    REQUIRE(pybpe_encoder_new(&e, vocab, NULL, 0, &fuzz_memory, &err) == PYBPE_OK);
    REQUIRE(pybpe_cache_new(&c, e, &fuzz_memory, &err) == PYBPE_OK);

    size_t n, length = 0;
    uint8_t *text = read_text(&in, MOST_TEXT, &n);
    size_t count = encode(e, c, text, n, ids);
    naive_prepare(&v);
    check_words(&v, e, text, n, ids, count);
    check_blocks(&v, e, text, n, 1 + choice % 128 * 5);
    naive_forget(&v);
    REQUIRE(encode(e, c, text, n, again) == count && memcmp(ids, again, 4 * count) == 0);
    REQUIRE(pybpe_decode(vocab, ids, 4, count, back, MOST_TEXT, &length, &err) == PYBPE_OK);
    REQUIRE(length == n && memcmp(back, text, n) == 0);
    for (size_t i = 0; i < 4 && n > 0; i++) {
        check_cut(e, c, text, n, 1 + (size_t)data[i % size] * (i + 1) % n, ids, count);
    }
    free(text);
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return 0;
}
