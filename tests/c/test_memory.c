/*
Every allocation of counting, training, encoding and of vocabularies fails in turn, over texts that make all tables grow
and words long enough for every algorithm: a typed error, nothing leaked, and with memory again the same result.
*/
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "random_state.h"
#include "scratch.h"
#include "small_vocab.h"

enum { TEXT_BYTES = 60000, LONG_BYTES = 3000, WORDS = 3000, NEW_TOKENS = 200 };

static uint8_t text[TEXT_BYTES];
static uint64_t counts[WORDS];
static uint64_t offsets[WORDS + 1];

/* An operation from nothing to a result, of which it returns a number; an error is returned in *code. */
typedef uint64_t operation(const pybpe_allocator *mem, int *code);

/* With n allocations for n = 0, 1, 2, ... until they are enough. */
static void check_failures_of(const char *name, operation *run) {
    failing_memory memory = {.left = -1};
    const pybpe_allocator mem = {failing_resize, &memory};
    int code = PYBPE_OK;
    uint64_t expected = run(&mem, &code);
    CHECK_EQ(code, PYBPE_OK);
    CHECK_EQ(memory.blocks, 0);
    long n = 0;
    do {
        memory.left = n++;
        code = PYBPE_OK;
        uint64_t result = run(&mem, &code);
        CHECK(code == PYBPE_ERR_MEMORY || (code == PYBPE_OK && result == expected));
        CHECK_EQ(memory.blocks, 0);
    } while (memory.left == 0); /* all that were granted were used up */
    CHECK(n > 2);
    CHECK_EQ(code, PYBPE_OK);
    if (code != PYBPE_OK || check_failures > 0) {
        printf("%s, with %ld allocations\n", name, n);
    }
}

/* Random words of letters, the first ones long. */
static void fill(void) {
    size_t at = 0;
    for (size_t i = 0; i < WORDS; i++) {
        size_t n = i < 5 ? LONG_BYTES : 2 + random_below(24);
        for (size_t k = 0; k < n && at < TEXT_BYTES; k++) {
            text[at++] = k == 0 ? ' ' : (uint8_t)('a' + random_below(26));
        }
        offsets[i + 1] = at;
        counts[i] = 1 + random_below(9);
    }
}

static uint64_t count_words(const pybpe_allocator *mem, int *code) {
    pybpe_pretok *p = NULL;
    pybpe_counter *c = NULL;
    pybpe_counter *sum = NULL;
    uint64_t words = 0;
    *code = pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, mem, NULL);
    *code = *code == PYBPE_OK ? pybpe_counter_new(&c, p, NULL, mem, NULL) : *code;
    *code = *code == PYBPE_OK ? pybpe_counter_add(c, text, TEXT_BYTES, NULL) : *code;
    *code = *code == PYBPE_OK ? pybpe_counter_new(&sum, p, NULL, mem, NULL) : *code;
    *code = *code == PYBPE_OK ? pybpe_counter_merge(sum, c, NULL) : *code;
    if (*code == PYBPE_OK) {
        const pybpe_strings list = {text, offsets, WORDS};
        *code = pybpe_counter_add_words(sum, &list, counts, NULL);
        words = pybpe_counter_get_stats(sum).words;
    }
    pybpe_counter_free(sum);
    pybpe_counter_free(c);
    pybpe_pretok_free(p);
    return words;
}

/* With merges to begin with, so that long words are merged at once. */
static uint64_t train(const pybpe_allocator *mem, int *code) {
    static const uint32_t base[] = {'a', 'b', 'c', 'd', 256, 257, ' ', 'e'};
    const pybpe_strings words = {text, offsets, WORDS};
    const pybpe_train_config config = {
        .vocab_size = 260 + NEW_TOKENS, .max_token_length = 16, .base_merges = base, .base_merges_count = 4};
    pybpe_trainer *t = NULL;
    uint64_t sum = 0;
    int done = 0;
    *code = pybpe_trainer_new(&t, &words, counts, &config, mem, NULL);
    while (*code == PYBPE_OK && !done) {
        *code = pybpe_trainer_step(t, 1 << 20, &done, NULL);
    }
    if (*code == PYBPE_OK) {
        const uint32_t *merges;
        size_t n = pybpe_trainer_merges(t, &merges);
        for (size_t i = 0; i < 3 * n; i++) {
            sum = sum * 31 + merges[i];
        }
    }
    pybpe_trainer_free(t);
    return sum;
}

static pybpe_vocab_spec vocab_spec(small_vocab *v) {
    small_start(v);
    uint32_t previous = small_add_merge(v, 'a', 'a');
    for (int i = 0; i < 7; i++) { /* the longest token is 256 bytes, which is more than a short word */
        previous = small_add_merge(v, previous, previous);
    }
    small_add_merge(v, 'a', 'b');
    small_add_special(v, "<|endoftext|>");
    return small_spec(v);
}

static uint64_t encode(const pybpe_allocator *mem, int *code) {
    static small_vocab v;
    static uint32_t ids[TEXT_BYTES];
    pybpe_vocab_spec spec = vocab_spec(&v);
    pybpe_vocab *vocab = NULL;
    pybpe_encoder *e = NULL;
    pybpe_cache *c = NULL;
    size_t count = 0;
    *code = pybpe_vocab_new(&vocab, &spec, mem, NULL);
    *code = *code == PYBPE_OK ? pybpe_encoder_new(&e, vocab, mem, NULL) : *code;
    *code = *code == PYBPE_OK ? pybpe_cache_new(&c, e, mem, NULL) : *code;
    if (*code == PYBPE_OK) {
        *code = pybpe_encode(e, c, pybpe_encoder_specials(e), text, TEXT_BYTES, ids, 4, TEXT_BYTES, &count, NULL);
    }
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return count;
}

/* A tokenizer.bin, and one without our trailer, whose merges are recovered. */
static uint64_t files(const pybpe_allocator *mem, int *code) {
    static small_vocab v;
    pybpe_vocab_spec spec = vocab_spec(&v);
    pybpe_vocab *loaded = NULL;
    pybpe_vocab *bare = NULL;
    uint32_t merges[2 * SMALL_TOKENS];
    size_t recovered = 0;
    uint8_t data[SCRATCH_TOKENIZER_BYTES];
    size_t n = put_tokenizer(data);
    spec.tokens.count -= 1; /* tokens longer than 255 bytes are for the recovery only */
    spec.specials_count = 0;
    spec.eot_id = PYBPE_NO_ID;
    *code = pybpe_vocab_recover_merges(&spec, merges, &recovered, mem, NULL);
    *code = *code == PYBPE_OK ? pybpe_vocab_load_mem(&bare, data, n, mem, NULL) : *code;
    *code = *code == PYBPE_OK ? pybpe_vocab_save(bare, "tokenizer.bin", 2, NULL) : *code;
    *code = *code == PYBPE_OK ? pybpe_vocab_load(&loaded, "tokenizer.bin", mem, NULL) : *code;
    uint64_t result = *code == PYBPE_OK ? recovered + 1000 * pybpe_vocab_get_spec(loaded).merges_count : 0;
    pybpe_vocab_free(loaded);
    pybpe_vocab_free(bare);
    return result;
}

int main(void) {
    scratch_enter();
    fill();
    check_failures_of("counting", count_words);
    check_failures_of("training", train);
    memset(text + TEXT_BYTES / 2, 'a', TEXT_BYTES / 2); /* a word that is one chain of tokens */
    check_failures_of("encoding", encode);
    check_failures_of("files", files);
    CHECK_EQ(scratch_clear(), 1);
    scratch_leave();
    return check_report("memory");
}
