/*
The drop-in headers for llm.c, used as in llm.c's programs and without any other part of pybpe: batches, shuffling,
resuming, evals, decoding, printing, a prompt. Errors must end the program with one line; child processes test that.
*/
#define _DEFAULT_SOURCE /* mkdtemp */
#include "llmc/dataloader.h"
#include "llmc/tokenizer.h"

#include "check.h"
#include "scratch.h"

#include <sys/wait.h>

/* The output of a child that runs `function`; sets its exit code. */
static char output[4096];

static int run_child(void (*function)(void), int fd) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(fopen("output.txt", "w")), fd);
        function();
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    FILE *f = fopen("output.txt", "r");
    size_t n = f == NULL ? 0 : fread(output, 1, sizeof output - 1, f);
    output[n] = '\0';
    if (f != NULL) {
        fclose(f);
    }
    remove("output.txt");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Whether `function` exits as llm.c does, after one line on stderr that contains `message`. */
static int ends_with(void (*function)(void), const char *message) {
    int code = run_child(function, STDERR_FILENO);
    const char *newline = strchr(output, '\n');
    int fine = code == EXIT_FAILURE && strstr(output, message) != NULL && newline != NULL && newline[1] == '\0';
    if (!fine) {
        printf("exit code %d, expected \"%s\", got: %s\n", code, message, output);
    }
    return fine;
}

/* ---------------------------------------------------------------------------------------------------
rand.h
*/

static int is_near(float a, float b) { return a - b < 1e-6f && b - a < 1e-6f; }

/* PyTorch's numbers for the same calls, as given in the comment in llm.c's rand.h. */
static void test_random(void) {
    static const unsigned int first[5] = {4053805790u, 2173880614u, 380293709u, 1237255315u, 2986595568u};
    static const float few[8] = {0.7947664f,  1.4369317f,  -0.2292192f, 0.4755633f,
                                 -0.6334411f, -0.5791954f, -0.0925705f, -0.8659197f};
    static const float many[16] = {-1.2813879f, -2.6463957f, -0.0656950f, 0.2180830f, -0.4653617f, -0.3310841f,
                                   2.5485482f,  0.1042538f,  0.8460660f,  0.9462448f, -0.2913765f, 0.3431381f,
                                   -1.1186705f, -0.1830533f, -2.3153160f, 0.3961988f};
    mt19937_state state;
    float data[20];
    int wrong = 0;
    manual_seed(&state, 137);
    for (int i = 0; i < 5; i++) {
        wrong += randint32(&state) != first[i];
    }
    normal_(data, 8, 0, 1, &state);
    for (int i = 0; i < 8; i++) {
        wrong += !is_near(data[i], few[i]);
    }
    wrong += randint32(&state) != 2186503452u;
    normal_(data, 16, 0, 1, &state);
    for (int i = 0; i < 16; i++) {
        wrong += !is_near(data[i], many[i]);
    }
    wrong += randint32(&state) != 2756748748u;
    CHECK_EQ(wrong, 0);
    memset(&state, 0xFF, sizeof state); /* a damaged state reads nothing outside of it */
    state.MATRIX_A[0] = 0;
    state.MATRIX_A[1] = 0x9908b0dfu;
    state.left_ = 100;
    randint32(&state);
    CHECK_EQ(state.next_, 1);
    normal_fill(data, 3, 0, 1, &state);
    CHECK_EQ(randint32(NULL), 0);
}

/* ---------------------------------------------------------------------------------------------------
DataLoader
*/

enum { SAMPLES = 4 + 2 + 7 };

/* Three shards of different sizes: 4, 2 and 7 samples of 1 x 2, the last as uint32. */
static void write_shards(void) {
    scratch_shard("s0.bin", 0, 9, 2);
    scratch_shard("s1.bin", 100, 6, 2);
    scratch_shard("s2.bin", 200, 15, 4);
}

/* The first token of the next batch, or -1 if the batch is not three tokens in a row. */
static int next_first(DataLoader *loader) {
    dataloader_next_batch(loader);
    const int *x = loader->inputs, *y = loader->targets;
    return x[1] == x[0] + 1 && y[0] == x[1] && y[1] == x[0] + 2 ? x[0] : -1;
}

static void test_in_order(void) {
    static const int expected[SAMPLES] = {0, 2, 4, 6, 100, 102, 200, 202, 204, 206, 208, 210, 212};
    DataLoader loader;
    dataloader_init(&loader, "s?.bin", 1, 2, 0, 1, 0);
    CHECK_EQ(loader.num_tokens, 30);
    CHECK_EQ(loader.glob_result.gl_pathc, 3);
    for (int i = 0; i < 3 * SAMPLES; i++) {
        CHECK_EQ(next_first(&loader), expected[i % SAMPLES]);
    }
    dataloader_resume(&loader, 2, 3);
    CHECK_EQ(next_first(&loader), 206);
    dataloader_resume(&loader, 1, 2); /* at the end of a shard */
    CHECK_EQ(next_first(&loader), 200);
    dataloader_reset(&loader);
    CHECK_EQ(next_first(&loader), 0);
    dataloader_free(&loader);
    dataloader_init(&loader, "s?.bin", 1, 2, 1, 2, 0);
    CHECK_EQ(next_first(&loader), 2);
    dataloader_free(&loader);
}

/* The header draws the same numbers as the library's loader, which tests/py/test_llmc_shards.py compares with llm.c. */
static void test_shuffled(void) {
    for (int rank = 0; rank < 2; rank++) {
        DataLoader loader;
        pybpe_loader *core;
        int32_t x[2], y[2];
        int different = 0;
        dataloader_init(&loader, "s?.bin", 1, 2, rank, 2, 1);
        CHECK_EQ(pybpe_loader_new(&core, "s?.bin", 1, 2, rank, 2, 1, NULL, NULL), PYBPE_OK);
        for (int i = 0; i < 60; i++) {
            if (i == 20) {
                dataloader_reset(&loader);
                pybpe_loader_reset(core, NULL);
            }
            different += pybpe_loader_next(core, x, y, NULL) != PYBPE_OK || next_first(&loader) != x[0];
        }
        CHECK_EQ(different, 0);
        pybpe_loader_free(core);
        dataloader_free(&loader);
    }
}

/* A new loader that gets only the position finds the permutations of the first epoch. */
static void test_resume_by_place(void) {
    DataLoader walker, resumed;
    dataloader_init(&walker, "s?.bin", 1, 2, 0, 1, 1);
    for (int i = 0; i < SAMPLES; i++) {
        dataloader_init(&resumed, "s?.bin", 1, 2, 0, 1, 1);
        dataloader_resume(&resumed, walker.current_shard_idx, walker.current_sample_idx);
        int expected = next_first(&walker);
        CHECK_EQ(next_first(&resumed), expected);
        if (i == SAMPLES - 1) { /* and draws on as the other does */
            for (int k = 0; k < 2 * SAMPLES; k++) {
                expected = next_first(&walker);
                CHECK_EQ(next_first(&resumed), expected);
            }
        }
        dataloader_free(&resumed);
    }
    dataloader_free(&walker);
}

/* Restores exactly what save_state and load_state in train_gpt2.cu save and restore. */
static void restore_state(DataLoader *loader, const DataLoader *saved) {
    size_t shards = saved->glob_result.gl_pathc, samples = saved->shard_num_samples;
    free(loader->shard_indices);
    free(loader->intra_shard_indices);
    loader->shard_indices = (int *)malloc(shards * sizeof(int));
    loader->intra_shard_indices = (int *)malloc(samples * sizeof(int));
    memcpy(loader->shard_indices, saved->shard_indices, shards * sizeof(int));
    memcpy(loader->intra_shard_indices, saved->intra_shard_indices, samples * sizeof(int));
    loader->shard_num_samples = samples;
    loader->shuffle_rng = saved->shuffle_rng;
    dataloader_resume(loader, saved->current_shard_idx, saved->current_sample_idx);
}

/* Initializes a loader and takes this many batches. */
static void init_after(DataLoader *loader, int batches) {
    dataloader_init(loader, "s?.bin", 1, 2, 0, 1, 1);
    for (int i = 0; i < batches; i++) {
        next_first(loader);
    }
}

/* In any epoch, and into any loader: a new one, or one that has advanced, within the same shard or beyond it. */
static void test_resume_by_state(void) {
    for (int saved_at = 0; saved_at <= 3 * SAMPLES; saved_at++) {
        for (int further = 0; further < 2 * SAMPLES; further += 3) {
            DataLoader saved, twin, resumed;
            int different = 0;
            init_after(&saved, saved_at);
            init_after(&twin, saved_at);
            init_after(&resumed, further == 0 ? 0 : saved_at + further);
            restore_state(&resumed, &saved);
            for (int k = 0; k < 2 * SAMPLES; k++) {
                different += next_first(&twin) != next_first(&resumed);
            }
            CHECK_EQ(different, 0);
            dataloader_free(&saved);
            dataloader_free(&twin);
            dataloader_free(&resumed);
        }
    }
}

/* One token at each end of a sparse shard slightly larger than 2 GiB, where llm.c's (int) seek fails. */
static void test_beyond_2_gib(void) {
    const uint32_t count = (1u << 30) + 5000;
    uint8_t header[SCRATCH_HEADER];
    DataLoader loader;
    put_shard(header, NULL, 0, 2);
    put_le(header + 8, count, 4);
    scratch_write("large.bin", header, sizeof header);
    CHECK_EQ(truncate("large.bin", SCRATCH_HEADER + 2 * (off_t)count), 0);
    FILE *f = fopen("large.bin", "r+b");
    CHECK(f != NULL && fseeko(f, SCRATCH_HEADER + 2 * ((off_t)count - 2), SEEK_SET) == 0 && fputc(77, f) == 77);
    fclose(f);
    dataloader_init(&loader, "large.bin", 1, 1, 0, 1, 0);
    dataloader_resume(&loader, 0, count - 2);
    dataloader_next_batch(&loader);
    CHECK_EQ(loader.inputs[0], 77);
    dataloader_free(&loader);
    remove("large.bin");
}

static void init_no_match(void) {
    DataLoader loader;
    dataloader_init(&loader, "none*.bin", 1, 2, 0, 1, 0);
}
static void init_bad_magic(void) {
    DataLoader loader;
    scratch_write("x.bin", "not a shard", 11);
    dataloader_init(&loader, "x.bin", 1, 2, 0, 1, 0);
}
static void init_too_few(void) {
    DataLoader loader;
    dataloader_init(&loader, "s?.bin", 2, 3, 0, 1, 0);
}
static void init_overflow(void) {
    const size_t half = 4 * sizeof(size_t); /* of the bits: B * T wraps around to 0 */
    DataLoader loader;
    dataloader_init(&loader, "s?.bin", (size_t)1 << (half + 1), (size_t)1 << (half - 1), 0, 1, 0);
}
static void init_bad_rank(void) {
    DataLoader loader;
    dataloader_init(&loader, "s?.bin", 1, 2, 2, 2, 0);
}
static void resume_too_far(void) {
    DataLoader loader;
    dataloader_init(&loader, "s?.bin", 1, 2, 0, 1, 1);
    dataloader_resume(&loader, 3, 0);
}
static void resume_bad_order(void) {
    DataLoader loader;
    dataloader_init(&loader, "s?.bin", 1, 2, 0, 1, 1);
    randint32(&loader.shuffle_rng);
    loader.intra_shard_indices[1] = 1000000;
    dataloader_resume(&loader, 0, 0);
}
static void resume_other_shard(void) {
    DataLoader loader;
    dataloader_init(&loader, "s?.bin", 1, 2, 0, 1, 1);
    randint32(&loader.shuffle_rng);
    dataloader_resume(&loader, 1, 0); /* with the permutation of shard 0, which has another length */
}
static void next_after_truncation(void) {
    DataLoader loader;
    scratch_shard("t.bin", 0, 9, 2);
    dataloader_init(&loader, "t.bin", 1, 2, 0, 1, 0);
    if (truncate("t.bin", 1026) == 0) {
        dataloader_next_batch(&loader);
    }
}
static void next_large_id(void) {
    DataLoader loader;
    scratch_shard("t.bin", (uint32_t)INT_MAX, 3, 4);
    dataloader_init(&loader, "t.bin", 1, 2, 0, 1, 0);
    dataloader_next_batch(&loader);
}

static void test_faults_of_the_loader(void) {
    CHECK(ends_with(init_no_match, "no shard matches"));
    CHECK(ends_with(init_bad_magic, "x.bin: 11 bytes"));
    CHECK(ends_with(init_too_few, "s1.bin: needs at least"));
    CHECK(ends_with(init_overflow, "below 2^31"));
    CHECK(ends_with(init_bad_rank, "process_rank"));
    CHECK(ends_with(resume_too_far, "the shard index is not below the number of shards"));
    CHECK(ends_with(resume_bad_order, "restored permutation"));
    CHECK(ends_with(resume_other_shard, "restored permutation"));
    CHECK(ends_with(next_after_truncation, "t.bin: the file ends"));
    CHECK(ends_with(next_large_id, "does not fit in an int"));
}

/* ---------------------------------------------------------------------------------------------------
EvalLoader
*/

enum { EVALS = 3, EVAL_BYTES = 2 * (3 + 2 + 1 + 2 + 4 * 2 + 1) };

/* Three examples: context {10 i + 1, 10 i + 2}, completions of one token 10 i + 3 ... 10 i + 6, but example i has a
   second one, 10 i + 9, in completion i; the label is i. */
static size_t put_evals(uint8_t *to) {
    size_t at = SCRATCH_HEADER;
    memset(to, 0, SCRATCH_HEADER);
    put_le(to, 20240522, 4);
    put_le(to + 4, 1, 4);
    put_le(to + 8, EVALS, 4);
    put_le(to + 12, EVAL_BYTES, 4);
    for (uint32_t i = 0; i < EVALS; i++) {
        uint32_t fields[32] = {65535, EVAL_BYTES, i, i, 4, 2, 10 * i + 1, 10 * i + 2};
        size_t n = 8;
        for (uint32_t c = 0; c < 4; c++) {
            fields[n++] = c == i ? 2 : 1;
            fields[n++] = 10 * i + 3 + c;
            if (c == i) {
                fields[n++] = 10 * i + 9;
            }
        }
        for (size_t k = 0; k < n; k++, at += 2) {
            put_le(to + at, fields[k], 2);
        }
    }
    return at;
}

static void test_evals(void) {
    uint8_t data[SCRATCH_HEADER + EVALS * EVAL_BYTES];
    float losses[8 * 8];
    EvalLoader loader;
    size_t n = put_evals(data);
    CHECK_EQ(n, sizeof data);
    scratch_write("evals.bin", data, n);
    evalloader_init(&loader, "evals.bin", 8, 8, 0, 1);
    CHECK_EQ(loader.num_examples, 3);
    CHECK_EQ(loader.num_batches, 2);
    evalloader_next_batch(&loader);
    static const int row5[4] = {11, 12, 14, 19}; /* example 1, completion 1 */
    CHECK(memcmp(loader.inputs + 5 * 8, row5, sizeof row5) == 0);
    CHECK_EQ(loader.targets[5 * 8 + 1], 14);
    CHECK_EQ(loader.targets[5 * 8 + 2], 19);
    static const char mask5[8] = {0, 1, 1, 0, 0, 0, 0, 0}, mask6[8] = {0, 1, 0, 0, 0, 0, 0, 0};
    CHECK(memcmp(loader.mask + 5 * 8, mask5, 8) == 0);
    CHECK(memcmp(loader.mask + 6 * 8, mask6, 8) == 0);
    for (int i = 0; i < 64; i++) {
        losses[i] = 2.0f;
    }
    losses[0 * 8 + 2] = 1.0f;                           /* example 0: completion 0 has mean 1.5 and is the label */
    losses[5 * 8 + 1] = 1.5f, losses[6 * 8 + 1] = 1.0f; /* example 1: completion 2 is better than the label 1 */
    CHECK_EQ(evalloader_stat_losses(&loader, losses), 1);
    evalloader_next_batch(&loader); /* one example is left: the other rows are empty */
    CHECK_EQ(loader.current_example_index, 3);
    CHECK_EQ(loader.inputs[2 * 8 + 3], 29);
    losses[2 * 8 + 2] = 0.0f;
    CHECK_EQ(evalloader_stat_losses(&loader, losses), 1);
    evalloader_reset(&loader);
    evalloader_next_batch(&loader);
    CHECK_EQ(loader.inputs[0], 1);
    evalloader_free(&loader);
    evalloader_init(&loader, "evals.bin", 8, 8, 1, 2);
    CHECK_EQ(loader.start_example_index, 2);
    evalloader_next_batch(&loader);
    CHECK_EQ(loader.inputs[0], 21);
    memset(losses, 0, sizeof losses);
    CHECK_EQ(evalloader_stat_losses(&loader, losses), 0); /* the first of equals is not the label; no rows, no point */
    evalloader_free(&loader);
}

static void walk_evals(void) {
    EvalLoader loader;
    evalloader_init(&loader, "damaged.bin", 4, 8, 0, 1);
    for (int i = 0; i < loader.num_batches; i++) {
        evalloader_next_batch(&loader);
    }
    evalloader_free(&loader);
}

static void few_rows(void) {
    EvalLoader loader;
    evalloader_init(&loader, "evals.bin", 3, 8, 0, 1);
}
static void short_rows(void) {
    EvalLoader loader;
    evalloader_init(&loader, "evals.bin", 4, 3, 0, 1);
}
static void narrow_rows(void) {
    EvalLoader loader;
    evalloader_init(&loader, "evals.bin", 4, 4, 0, 1);
    evalloader_next_batch(&loader);
}

static void test_faults_of_evals(void) {
    uint8_t data[SCRATCH_HEADER + EVALS * EVAL_BYTES];
    size_t n = put_evals(data);
    int survived = 0, crashed = 0;
    for (size_t cut = 0; cut < n; cut += cut < SCRATCH_HEADER ? 128 : 1) {
        scratch_write("damaged.bin", data, cut);
        crashed += run_child(walk_evals, STDERR_FILENO) != EXIT_FAILURE;
    }
    CHECK_EQ(crashed, 0);
    for (size_t i = 0; i < n; i += i == 15 ? SCRATCH_HEADER - 15 : 1) { /* fields that are not tokens are checked */
        uint8_t kept = data[i];
        data[i] = 0xFF;
        scratch_write("damaged.bin", data, n);
        int code = run_child(walk_evals, STDERR_FILENO);
        survived += code == 0;
        crashed += code != 0 && code != EXIT_FAILURE;
        data[i] = kept;
    }
    CHECK_EQ(crashed, 0);
    /* Those that are tokens are not; nor is the upper half of 65535, which is 0xFF already. */
    CHECK_EQ(survived, EVALS * (2 * (2 + 5) + 2));
    data[n - 4] = 2; /* the last completion claims a token more than there is */
    scratch_write("damaged.bin", data, n);
    CHECK(ends_with(walk_evals,
                    "damaged.bin: example 2: a context or completion is empty or extends past the end of the example"));
    put_evals(data);
    data[n - EVAL_BYTES + 2] += 1; /* half a token more */
    scratch_write("damaged.bin", data, n);
    CHECK(ends_with(walk_evals, "damaged.bin: example 2: has an impossible length"));
    CHECK(ends_with(few_rows, "at least 4"));
    CHECK(ends_with(short_rows, "longest example"));
    CHECK(ends_with(narrow_rows, "evals.bin: example 0: a context and its completion do not fit"));
}

/* ---------------------------------------------------------------------------------------------------
Tokenizer
*/

static void test_tokenizer(void) {
    uint8_t data[SCRATCH_TOKENIZER_BYTES];
    scratch_write("tok.bin", data, put_tokenizer(data));
    Tokenizer tokenizer;
    size_t length;
    tokenizer_init(&tokenizer, "tok.bin");
    CHECK_EQ(tokenizer.init_ok, 1);
    CHECK_EQ(tokenizer.vocab_size, 261);
    CHECK_EQ(tokenizer.eot_token, 260);
    CHECK(strcmp(tokenizer_decode(&tokenizer, 259), "hello") == 0);
    CHECK(strcmp(tokenizer.token_table[256], "he") == 0);
    CHECK(tokenizer_decode_bytes(&tokenizer, 259, &length)[4] == 'o' && length == 5);
    CHECK(tokenizer_decode_bytes(&tokenizer, 0, &length)[0] == '\0' && length == 1); /* a NUL, not an empty token */
    int ids[16];
    static const int expected[8] = {259, ' ', 259, 'o', 260, 0xE4, 0xBD, 0xA0};
    CHECK_EQ(tokenizer_encode(&tokenizer, "hello helloo<|endoftext|>\xE4\xBD\xA0", ids, 16), 8);
    CHECK(memcmp(ids, expected, sizeof expected) == 0);
    CHECK_EQ(tokenizer_encode(&tokenizer, "", ids, 16), 0);
    CHECK_EQ(tokenizer_encode_ordinary(&tokenizer, "hello<|endoftext|>", ids, 16), 1 + 13);
    CHECK_EQ(ids[1], '<');
    CHECK_EQ(tokenizer_encode(&tokenizer, "hello", ids, 1), 1);
    tokenizer_free(&tokenizer);
    CHECK_EQ(tokenizer.init_ok, 0);
    tokenizer_free(&tokenizer);
    CHECK_EQ(tokenizer_encode(&tokenizer, "hello", ids, 16), -1);
    CHECK(tokenizer_decode(&tokenizer, 1) == NULL);
}

/* llm.c leaves eot_token unset, and its trainers start generation from it anyway: possibly from an id outside the
   embedding. Here it is 0, which every model has. */
static void missing_file(void) {
    Tokenizer tokenizer;
    memset(&tokenizer, 0xEE, sizeof tokenizer);
    tokenizer_init(&tokenizer, "no/tokenizer.bin");
    int eot = tokenizer.eot_token;
    tokenizer_free(&tokenizer);
    _exit(tokenizer.init_ok == 0 && eot == 0 ? 7 : 1);
}
static void damaged_file(void) {
    Tokenizer tokenizer;
    tokenizer_init(&tokenizer, "s0.bin");
}
static void too_little_room(void) {
    Tokenizer tokenizer;
    int ids[1];
    tokenizer_init(&tokenizer, "tok.bin");
    exit(tokenizer_encode(&tokenizer, "ab", ids, 1) == -1 ? EXIT_FAILURE : 0);
}
static void unknown_id(void) {
    Tokenizer tokenizer;
    tokenizer_init(&tokenizer, "tok.bin");
    _exit(tokenizer_decode(&tokenizer, 261) == NULL && fflush(stdout) == 0 ? 7 : 1);
}

static void test_faults_of_the_tokenizer(void) {
    CHECK_EQ(run_child(missing_file, STDERR_FILENO), 7);
    CHECK(ends_with(damaged_file, "s0.bin"));
    CHECK(ends_with(too_little_room, "the text has 2 ids, but there is room for only 1"));
    CHECK_EQ(run_child(unknown_id, STDOUT_FILENO), 7);
    CHECK(strcmp(output, "invalid token id 261!\n") == 0);
}

/* ---------------------------------------------------------------------------------------------------
Printing
*/

static const char TEXT[] = "caf\xC3\xA9 \xE4\xBD\xA0\xE5\xA5\xBD\xE4\xB8\x96\xE7\x95\x8C \xF0\x9F\x98\x80!\n";
static size_t piece_length;

/* Prints TEXT in pieces of piece_length bytes. */
static void print_pieces(void) {
    for (size_t at = 0; at < strlen(TEXT); at += piece_length) {
        char piece[64] = {0};
        memcpy(piece, TEXT + at, strlen(TEXT + at) < piece_length ? strlen(TEXT + at) : piece_length);
        safe_printf(piece);
    }
}
static void print_broken(void) {
    static const char *const pieces[] = {"a",    "\xE4",         "\xBD",  "b",        "\xE4\xBD", "\xE4", "\xBD\xA0",
                                         "\x80", "\xFF",         "c\xC3", "\xF0\x9F", "\x98\x80", "\b",   "\x1B[2J",
                                         "",     "\xED\xA0\x80", "d\xE4"};
    safe_printf(NULL);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        safe_printf(pieces[i]);
    }
}

/* The first half of a character, then a sample that begins with the second half of another. */
static void print_two_samples(void) {
    DataLoader loader;
    dataloader_init(&loader, "s0.bin", 1, 8, 0, 1, 0);
    safe_printf("a\xE4\xBD");
    dataloader_next_batch(&loader);
    safe_printf("\xA0"
                "b\xE4\xBD");
    safe_printf(NULL);
    safe_printf("\xA0"
                "c");
    dataloader_free(&loader);
}

static void test_printing(void) {
    for (piece_length = 1; piece_length < 12; piece_length++) {
        CHECK_EQ(run_child(print_pieces, STDOUT_FILENO), 0);
        CHECK(strcmp(output, TEXT) == 0);
    }
    CHECK_EQ(run_child(print_broken, STDOUT_FILENO), 0);
    CHECK(strcmp(output, "ab\xE4\xBD\xA0"
                         "c\xF0\x9F\x98\x80[2Jd") == 0);
    CHECK_EQ(run_child(print_two_samples, STDOUT_FILENO), 0);
    CHECK(strcmp(output, "abc") == 0);
}

int main(void) {
    scratch_enter();
    write_shards();
    test_random();
    test_in_order();
    test_shuffled();
    test_resume_by_place();
    test_resume_by_state();
    test_beyond_2_gib();
    test_faults_of_the_loader();
    test_evals();
    test_faults_of_evals();
    test_tokenizer();
    test_faults_of_the_tokenizer();
    test_printing();
    scratch_leave();
    return check_report("test_llmc_headers");
}
