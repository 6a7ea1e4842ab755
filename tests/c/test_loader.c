/*
The DataLoader: batches computed by hand, the generator's published numbers, damage, failing memory.
tests/py/test_llmc_shards.py compares the order with llm.c itself.
*/
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "llmc/mt19937.h"
#include "pybpe.h"
#include "scratch.h"
#include "small_vocab.h"

static pybpe_loader *open_loader(const char *pattern, size_t B, size_t T, int rank, int world, int shuffle) {
    pybpe_loader *l;
    pybpe_error err;
    CHECK_EQ(pybpe_loader_new(&l, pattern, B, T, rank, world, shuffle, NULL, &err), PYBPE_OK);
    return l;
}

/* The first token of the next batch of 1 x 2, or -1 if the batch is not three tokens in a row. */
static int next_first(pybpe_loader *l) {
    int32_t x[2], y[2];
    if (pybpe_loader_next(l, x, y, NULL) != PYBPE_OK || x[1] != x[0] + 1 || y[0] != x[1] || y[1] != x[0] + 2) {
        return -1;
    }
    return x[0];
}

/* ---------------------------------------------------------------------------------------------------
The generator
*/

static void test_random(void) {
    static const uint32_t torch_137[5] = {4053805790, 2173880614, 380293709, 1237255315, 2986595568};
    static mt19937 rng, other;
    mt19937_seed(&rng, 137); /* torch.manual_seed(137), as printed in llm.c's rand.h */
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(mt19937_next(&rng), torch_137[i]);
    }
    mt19937_seed(&rng, 5489); /* the C++ standard, [rand.predef] */
    mt19937_skip(&rng, 9999);
    CHECK_EQ(mt19937_next(&rng), UINT32_C(4123659995));
    for (uint64_t n = 0; n < 2000; n += n < 10 ? 1 : 103) {
        mt19937_seed(&rng, 1);
        mt19937_seed(&other, 1);
        mt19937_skip(&rng, n);
        for (uint64_t i = 0; i < n; i++) {
            mt19937_next(&other);
        }
        CHECK_EQ(mt19937_next(&rng), mt19937_next(&other));
    }
}

/* ---------------------------------------------------------------------------------------------------
Order
*/

/* a.bin holds 0..8 (4 samples of 2, token 8 only a target), b.bin 100..105 (2 samples; 105 is never seen). */
static void test_in_order(int id_bytes) {
    static const int expected[6] = {0, 2, 4, 6, 100, 102};
    scratch_shard("a.bin", 0, 9, id_bytes);
    scratch_shard("b.bin", 100, 6, id_bytes);
    pybpe_loader *l = open_loader("?.bin", 1, 2, 0, 1, 0);
    CHECK_EQ(pybpe_loader_tokens(l), 15);
    CHECK_EQ(pybpe_loader_batches(l), 6);
    CHECK_EQ(pybpe_loader_shards(l), 2);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(next_first(l), expected[i % 6]);
    }
    CHECK_EQ(pybpe_loader_reset(l, NULL), PYBPE_OK);
    CHECK_EQ(next_first(l), 0);
    for (uint64_t place = 0; place < 20; place++) {
        CHECK_EQ(pybpe_loader_seek(l, place, NULL), PYBPE_OK);
        CHECK_EQ(next_first(l), expected[place % 6]);
    }
    pybpe_loader_free(l);
    pybpe_loader_free(NULL);
}

/* Two processes: each sample is 4 tokens, of which each takes 2. b.bin has one sample: 100..103. */
static void test_two_processes(void) {
    static const int expected[2][3] = {{0, 4, 100}, {2, 6, 102}};
    for (int rank = 0; rank < 2; rank++) {
        pybpe_loader *l = open_loader("?.bin", 1, 2, rank, 2, 0);
        CHECK_EQ(pybpe_loader_batches(l), 3);
        for (int i = 0; i < 9; i++) {
            CHECK_EQ(next_first(l), expected[rank][i % 3]);
        }
        pybpe_loader_free(l);
    }
}

/* Each epoch returns each batch once, and seeking to any position gives the same as walking there. */
static void test_shuffled(void) {
    enum { EPOCH = 6, WALK = 30 };
    int walked[WALK + 1];
    pybpe_loader *l = open_loader("?.bin", 1, 2, 0, 1, 1);
    for (int i = 0; i <= WALK; i++) {
        walked[i] = next_first(l);
    }
    for (int epoch = 0; epoch < WALK / EPOCH; epoch++) {
        int seen = 0, sum = 0;
        for (int i = epoch * EPOCH; i < (epoch + 1) * EPOCH; i++) {
            seen |= walked[i] < 0 ? 64 : 1 << (walked[i] < 100 ? walked[i] / 2 : (walked[i] - 92) / 2);
            sum += walked[i];
        }
        CHECK_EQ(seen, 63);
        CHECK_EQ(sum, 0 + 2 + 4 + 6 + 100 + 102);
    }
    for (int place = WALK; place >= 0; place--) {
        CHECK_EQ(pybpe_loader_seek(l, (uint64_t)place, NULL), PYBPE_OK);
        CHECK_EQ(next_first(l), walked[place]);
    }
    pybpe_error err;
    CHECK_EQ(pybpe_loader_seek(l, UINT64_MAX, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(next_first(l), walked[1]); /* unchanged by the refused call */
    pybpe_loader_free(l);
}

/* One epoch after the other by definition: the shards are shuffled, then the samples of each when it is opened. */
static void test_shuffled_order(int rank, int world) {
    enum { SHARDS = 3, SAMPLES_MAX = 20, EPOCHS = 5 };
    static const size_t tokens[SHARDS] = {5, 41, 9}; /* the largest is not the first */
    static const char *const names[SHARDS] = {"1.bin", "2.bin", "3.bin"};
    static mt19937 rng;
    uint32_t shards[SHARDS], samples[SAMPLES_MAX];
    for (uint32_t i = 0; i < SHARDS; i++) {
        scratch_shard(names[i], 100 * i, tokens[i], 2);
        shards[i] = i;
    }
    mt19937_seed(&rng, 42 + (uint32_t)rank);
    pybpe_loader *l = open_loader("[1-3].bin", 1, 2, rank, world, 1);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        mt19937_shuffle(&rng, shards, SHARDS);
        for (size_t k = 0; k < SHARDS; k++) {
            const uint32_t count = (uint32_t)(tokens[shards[k]] - 1) / (2 * (uint32_t)world);
            for (uint32_t i = 0; i < count; i++) {
                samples[i] = i;
            }
            mt19937_shuffle(&rng, samples, count);
            for (uint32_t i = 0; i < count; i++) {
                CHECK_EQ(next_first(l), 100 * shards[k] + 2 * (samples[i] * (uint32_t)world + (uint32_t)rank));
            }
        }
    }
    pybpe_loader_free(l);
    for (size_t i = 0; i < SHARDS; i++) {
        remove(names[i]);
    }
}

/* ---------------------------------------------------------------------------------------------------
Faults
*/

static int new_code(const char *pattern, size_t B, size_t T, int rank, int world) {
    pybpe_loader *l;
    pybpe_error err = {0};
    int code = pybpe_loader_new(&l, pattern, B, T, rank, world, 1, NULL, &err);
    CHECK(code == PYBPE_OK || (l == NULL && err.code == code && err.msg[0] != '\0'));
    CHECK(code != PYBPE_ERR_VALUE || err.offset == 0);
    pybpe_loader_free(l);
    return code;
}

static void test_arguments(void) {
    CHECK_EQ(new_code("?.bin", 0, 2, 0, 1), PYBPE_ERR_VALUE);
    CHECK_EQ(new_code("?.bin", 1, 0, 0, 1), PYBPE_ERR_VALUE);
    CHECK_EQ(new_code("?.bin", 1, 2, -1, 1), PYBPE_ERR_VALUE);
    CHECK_EQ(new_code("?.bin", 1, 2, 2, 2), PYBPE_ERR_VALUE);
    CHECK_EQ(new_code("?.bin", 1, 2, 0, 0), PYBPE_ERR_VALUE);
    CHECK_EQ(new_code("?.bin", SIZE_MAX, 2, 0, 1), PYBPE_ERR_VALUE);
    CHECK_EQ(new_code("?.bin", SIZE_MAX / 2, 1, 0, 3), PYBPE_ERR_VALUE);
    CHECK_EQ(new_code("?.bin", 1 << 15, 1 << 16, 0, 1), PYBPE_ERR_VALUE);    /* 2^31 tokens */
    CHECK_EQ(new_code("?.bin", SIZE_MAX / 2 + 1, 2, 0, 1), PYBPE_ERR_VALUE); /* these products wrap to 0 */
    CHECK_EQ(new_code("?.bin", SIZE_MAX / 4 + 1, 1, 0, 4), PYBPE_ERR_VALUE);
    CHECK_EQ(new_code("?.bin", 1, 6, 0, 1), PYBPE_ERR_LIMIT); /* b.bin has 6 tokens, and 7 are needed */
    CHECK_EQ(new_code("?.bin", 1, 5, 0, 1), PYBPE_OK);
    CHECK_EQ(new_code("none*.bin", 1, 2, 0, 1), PYBPE_ERR_IO);
    scratch_write("c.bin", "damaged", 7);
    CHECK_EQ(new_code("?.bin", 1, 2, 0, 1), PYBPE_ERR_FORMAT);
    remove("c.bin");
}

static void test_changes_under_way(void) {
#if !defined(_WIN32) /* which keeps files from being removed while they are open */
    int32_t x[2], y[2];
    pybpe_error err;
    pybpe_loader *l = open_loader("?.bin", 1, 2, 0, 1, 0);
    CHECK_EQ(pybpe_loader_seek(l, 4, &err), PYBPE_OK);
    remove("b.bin");
    CHECK_EQ(pybpe_loader_seek(l, 3, &err), PYBPE_OK);
    CHECK_EQ(next_first(l), 6);
    CHECK_EQ(pybpe_loader_next(l, x, y, &err), PYBPE_ERR_IO);
    scratch_shard("b.bin", 100, 6, 2);
    CHECK_EQ(next_first(l), 100); /* it can be tried again */
    CHECK_EQ(pybpe_loader_seek(l, 3, &err), PYBPE_OK);
    CHECK_EQ(next_first(l), 6);
    scratch_shard("b.bin", 100, 5, 2);
    CHECK_EQ(pybpe_loader_next(l, x, y, &err), PYBPE_ERR_FORMAT);
    pybpe_loader_free(l);
    scratch_shard("b.bin", INT32_MAX, 3, 4);
    l = open_loader("b.bin", 1, 1, 0, 1, 0);
    CHECK_EQ(pybpe_loader_next(l, x, y, &err), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.offset, SCRATCH_HEADER + 4);
    pybpe_loader_free(l);
#endif
}

static void test_memory(void) {
    int failures = 0, passed = 0;
    scratch_shard("b.bin", 100, 6, 2);
    for (long grant = 0; grant < 20; grant++) {
        failing_memory m = {.left = grant};
        pybpe_allocator mem = {failing_resize, &m};
        pybpe_loader *l;
        int32_t x[2], y[2];
        int code = pybpe_loader_new(&l, "?.bin", 1, 2, 0, 1, 1, &mem, NULL);
        passed += code == PYBPE_OK;
        failures += code != PYBPE_OK && (code != PYBPE_ERR_MEMORY || l != NULL);
        for (int i = 0; code == PYBPE_OK && i < 12; i++) { /* a shard that cannot be opened now can be later */
            long left = m.left;
            m.left = 0;
            int starved = pybpe_loader_next(l, x, y, NULL);
            failures += starved != PYBPE_OK && starved != PYBPE_ERR_MEMORY;
            m.left = left + 2;
            failures += starved == PYBPE_ERR_MEMORY && pybpe_loader_next(l, x, y, NULL) != PYBPE_OK;
        }
        pybpe_loader_free(l);
        failures += m.blocks != 0;
    }
    CHECK(passed > 0 && passed < 20);
    CHECK_EQ(failures, 0);
}

int main(void) {
    scratch_enter();
    const int next_file = scratch_next_file();
    test_random();
    test_in_order(4);
    test_in_order(2);
    test_two_processes();
    test_shuffled();
    test_shuffled_order(0, 1);
    test_shuffled_order(1, 2);
    test_arguments();
    test_changes_under_way();
    test_memory();
    CHECK_EQ(scratch_next_file(), next_file); /* all are closed */
    scratch_leave();
    return check_report("test_loader");
}
