/*
Training against its definition: random words and counts; the same merges in the same order for any sizes of steps.
*/
#include "fuzz.h"
#include "fuzz_memory.h"
#include "naive_train.h"
#include "pybpe_train.h"

static void make_corpus(corpus *c, fuzz_input *in) {
    corpus_start(c);
    unsigned words = 1 + fuzz_below(in, 12);
    unsigned letters = 1 + fuzz_below(in, 6);
    for (unsigned i = 0; i < words; i++) {
        uint8_t word[NAIVE_WORD];
        size_t n = fuzz_below(in, NAIVE_WORD);
        for (size_t j = 0; j < n; j++) {
            word[j] = (uint8_t)('a' + fuzz_below(in, letters));
        }
        uint64_t count = fuzz_byte(in);
        corpus_add(c, word, n, count < 200 ? count : count << (count - 200) % 40);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static naive n;
    static corpus c;
    fuzz_input in = {data, size};
    pybpe_train_config config = {.vocab_size = 256 + fuzz_below(&in, MAX_MERGES),
                                 .max_token_length = 1 + fuzz_byte(&in),
                                 .min_frequency = fuzz_below(&in, 8)};
    size_t budget = 1 + fuzz_byte(&in);
    make_corpus(&c, &in);
    pybpe_trainer *t;
    pybpe_error err;
    const uint32_t *merges;
    int done = 0;
    REQUIRE(pybpe_trainer_new(&t, &c.strings, c.counts, &config, &fuzz_memory, &err) == PYBPE_OK);
    while (!done) {
        REQUIRE(pybpe_trainer_step(t, budget, &done, &err) == PYBPE_OK);
    }
    size_t count = pybpe_trainer_merges(t, &merges);

    naive_start(&n, &c);
    size_t made = 0;
    uint32_t pair[2] = {0, 0};
    while (n.tokens < config.vocab_size && naive_best(&n, &c, &config, pair)) {
        uint32_t merged = naive_merge(&n, &c, pair);
        REQUIRE(made < count && merges[3 * made] == pair[0] && merges[3 * made + 1] == pair[1] &&
                merges[3 * made + 2] == merged);
        made += 1;
        REQUIRE(made < 4 * MAX_MERGES); /* merges that spell existing tokens do not make new ones */
    }
    REQUIRE(made == count && n.tokens == pybpe_trainer_tokens(t));
    pybpe_trainer_free(t);
    return 0;
}
