/*
Encoding with dropout: without it, the ids of the definition; with it, the ids of a simulation, which has a sorted list
instead of a treap, and the same random numbers. The ids decode to the text, and a text cut in two at any safe cut has
the ids of the whole.
*/
#include "fuzz.h"
#include "fuzz_memory.h"
#include "fuzz_merges.h"
#include "naive_encode.h"
#include "pybpe_train.h"

enum { MOST_TEXT = 1024, PATTERNS = 7 };

/* An entry of the queue: the pair that begins at byte `at` of the word. */
typedef struct drop_entry {
    unsigned rank;
    size_t at;
} drop_entry;

/* The tokens of a word: token i begins at byte starts[i]. */
typedef struct drop_word {
    uint32_t ids[MOST_TEXT];
    size_t starts[MOST_TEXT], count, entries;
    drop_entry queue[3 * MOST_TEXT]; /* in the order in which a step tries them */
    uint64_t random;
} drop_word;

/* ---------------------------------------------------------------------------------------------------
Random numbers, as csrc/encode/encode_dropout.c describes them
*/

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* How many entries a step passes over: bit j, of value v = 2^j, is set with the probability rate^v / (1 + rate^v). */
static uint64_t passed_over(drop_word *w, double rate) {
    const double whole = 9007199254740992.0; /* 2^53 */
    uint64_t passed = 0;
    for (unsigned j = 0; j < 64 && rate * whole >= 1; j++, rate *= rate) {
        w->random += UINT64_C(0x9E3779B97F4A7C15);
        if (mix(w->random) >> 11 < (uint64_t)(rate / (1 + rate) * whole)) {
            passed |= UINT64_C(1) << j;
        }
    }
    return passed;
}

/* ---------------------------------------------------------------------------------------------------
The simulation
*/

/* Rank + 1 of the pair that begins with token i, or 0. */
static unsigned pair_rank(const drop_word *w, size_t i) {
    return i + 1 < w->count ? naive_ranks[w->ids[i]][w->ids[i + 1]] : 0;
}

static void queue_add(drop_word *w, size_t i) {
    const drop_entry entry = {pair_rank(w, i), w->starts[i]};
    size_t to = w->entries;
    if (entry.rank == 0) {
        return;
    }
    while (to > 0 && (w->queue[to - 1].rank > entry.rank ||
                      (w->queue[to - 1].rank == entry.rank && w->queue[to - 1].at > entry.at))) {
        w->queue[to] = w->queue[to - 1];
        to--;
    }
    w->queue[to] = entry;
    w->entries++;
}

/* Merges the pair of an entry, unless the pair has changed. */
static void entry_merge(drop_word *w, const small_vocab *v, drop_entry entry) {
    size_t i = 0;
    while (i < w->count && w->starts[i] != entry.at) {
        i++;
    }
    if (i == w->count || pair_rank(w, i) != entry.rank) {
        return;
    }
    w->ids[i] = v->merged[entry.rank - 1];
    w->count--;
    memmove(w->ids + i + 1, w->ids + i + 2, (w->count - i - 1) * sizeof *w->ids);
    memmove(w->starts + i + 1, w->starts + i + 2, (w->count - i - 1) * sizeof *w->starts);
    if (i > 0) {
        queue_add(w, i - 1);
    }
    queue_add(w, i);
}

/* Writes the ids of text[0..n), one word, and returns their number. */
static size_t simulate(const small_vocab *v, const pybpe_dropout *how, const uint8_t *text, size_t n, uint64_t place,
                       uint32_t *ids) {
    static drop_word w;
    w.count = n;
    w.entries = 0;
    w.random = mix(mix(how->seed) + place);
    for (size_t i = 0; i < n; i++) {
        w.ids[i] = text[i];
        w.starts[i] = i;
    }
    for (size_t i = 0; i < n; i++) {
        queue_add(&w, i);
    }
    while (how->rate < 1 && w.entries > 0) {
        uint64_t passed = passed_over(&w, how->rate);
        if (passed >= w.entries) {
            break;
        }
        drop_entry taken = w.queue[passed];
        w.entries--;
        memmove(w.queue + passed, w.queue + passed + 1, (w.entries - passed) * sizeof *w.queue);
        entry_merge(&w, v, taken);
    }
    memcpy(ids, w.ids, w.count * sizeof *ids);
    return w.count;
}

/* ---------------------------------------------------------------------------------------------------
Texts
*/

static size_t encode(const pybpe_encoder *e, pybpe_dropout how, const uint8_t *text, size_t n, size_t skip,
                     uint32_t *ids) {
    size_t count = 0;
    pybpe_error err;
    how.offset += skip;
    REQUIRE(pybpe_encode_dropout(e, &how, text, n, ids, &count, &err) == PYBPE_OK);
    REQUIRE(count <= n);
    return count;
}

/* Word by word; without a splitter the text is one word. */
static void check_words(const small_vocab *v, const pybpe_encoder *e, const pybpe_dropout *how, const uint8_t *text,
                        size_t n, const uint32_t *ids, size_t count) {
    static uint32_t want[MOST_TEXT];
    size_t ends[64] = {n}, at = 0;
    const pybpe_pretok *p = pybpe_encoder_pretok(e);
    for (size_t pos = 0; pos < n;) {
        size_t words = p != NULL ? pybpe_pretok_split(p, text, n, pos, ends, 64) : 1;
        for (size_t i = 0; i < words; pos = ends[i++]) {
            size_t wanted = simulate(v, how, text + pos, ends[i] - pos, how->offset + pos, want);
            REQUIRE(at + wanted <= count && memcmp(want, ids + at, 4 * wanted) == 0);
            wanted = how->rate > 0 ? wanted : merge_naive(v, text + pos, ends[i] - pos, want);
            REQUIRE(at + wanted <= count && memcmp(want, ids + at, 4 * wanted) == 0);
            at += wanted;
        }
    }
    REQUIRE(at == count);
}

static void check_text(const small_vocab *v, const pybpe_encoder *e, const pybpe_vocab *vocab, pybpe_dropout how,
                       const uint8_t *text, size_t n, size_t place) {
    static uint32_t ids[MOST_TEXT], parts[2 * MOST_TEXT];
    static uint8_t back[MOST_TEXT];
    size_t count = encode(e, how, text, n, 0, ids), length = 0;
    naive_prepare(v);
    check_words(v, e, &how, text, n, ids, count);
    naive_forget(v);
    REQUIRE(pybpe_decode(vocab, ids, 4, count, back, MOST_TEXT, &length, NULL) == PYBPE_OK);
    REQUIRE(length == n && memcmp(back, text, n) == 0);
    if (pybpe_encoder_pretok(e) != NULL) {
        size_t cut = pybpe_text_cut(pybpe_encoder_pretok(e), NULL, text, n, place % (n + 1));
        size_t first = encode(e, how, text, cut, 0, parts);
        size_t second = encode(e, how, text + cut, n - cut, cut, parts + first);
        REQUIRE(first + second == count && memcmp(parts, ids, 4 * count) == 0);
    }
}

/* Rates near 0, near 1, and evenly between. */
static double read_rate(fuzz_input *in) {
    unsigned kind = fuzz_below(in, 3), x = fuzz_byte(in);
    double power = 1;
    for (unsigned i = 0; kind > 0 && i < x % 60; i++) {
        power /= 2;
    }
    return kind == 0 ? x / 255.0 : kind == 1 ? power : 1 - power;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static small_vocab v;
    static const int patterns[PATTERNS] = {PYBPE_PATTERN_CUSTOM,  PYBPE_PATTERN_GPT2,   PYBPE_PATTERN_CL100K,
                                           PYBPE_PATTERN_O200K,   PYBPE_PATTERN_LLAMA3, PYBPE_PATTERN_QWEN2,
                                           PYBPE_PATTERN_NANOCHAT};
    fuzz_input in = {data, size};
    pybpe_vocab *vocab;
    pybpe_encoder *e;
    pybpe_error err;
    size_t n;
    const int pattern = patterns[fuzz_below(&in, PATTERNS)];
    pybpe_dropout how = {.rate = read_rate(&in), .seed = fuzz_byte(&in), .offset = fuzz_byte(&in)};
    size_t place = (size_t)4 * fuzz_byte(&in);
    read_vocab(&v, &in);
    pybpe_vocab_spec spec = small_spec(&v);
    spec.pattern = pattern;
    spec.custom = pattern == PYBPE_PATTERN_CUSTOM ? "x" : NULL; /* nothing splits with it */
    REQUIRE(pybpe_vocab_new(&vocab, &spec, &fuzz_memory, &err) == PYBPE_OK);
    REQUIRE(pybpe_encoder_new(&e, vocab, NULL, 0, &fuzz_memory, &err) == PYBPE_OK);
    uint8_t *text = read_text(&in, MOST_TEXT, &n);
    check_text(&v, e, vocab, how, text, n, place);
    how.rate = 0;
    check_text(&v, e, vocab, how, text, n, place);
    free(text);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return 0;
}
