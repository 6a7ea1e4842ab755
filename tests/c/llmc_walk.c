/*
A program such as llm.c has, but with only the drop-in headers, in C11 and C++17. It does not train, but walks all
batches in the order recorded from the real llm.c (tests/vectors), shuffles, resumes, encodes a prompt and decodes it.

    llmc_walk LOADER_LLMC.json

Run by `make llmc-test` in both languages and under sanitizers, and by tests/py/test_llmc_install.py against the headers
installed in llm.c.
*/
#define _DEFAULT_SOURCE /* mkdtemp */
#include "llmc/dataloader.h"
#include "llmc/rand.h"
#include "llmc/tokenizer.h"

#include "check.h"
#include "scratch.h"

/* ---------------------------------------------------------------------------------------------------
The batches of llm.c
*/

static const uint32_t SIZES[] = {1000, 777, 2049, 513, 1025};
enum { SHARDS = 5, MOST_TOKENS = 2049, FIRST = 48 };

/* The shards that tests/vectors/README.md describes. */
static void write_golden_shards(void) {
    static uint32_t tokens[MOST_TOKENS];
    static uint8_t data[SCRATCH_HEADER + 2 * MOST_TOKENS];
    for (uint32_t k = 0; k < SHARDS; k++) {
        char name[32];
        for (uint32_t i = 0; i < SIZES[k]; i++) {
            tokens[i] = (i * 2654435761u + k * 40503u) % 65536;
        }
        snprintf(name, sizeof name, "golden_%06u.bin", k);
        scratch_write(name, data, put_shard(data, tokens, SIZES[k], 2));
    }
}

/* One entry of the file: how a loader is made, and the batches that it then returns. */
typedef struct recorded {
    size_t B, T, num_tokens;
    int rank, world, shuffle, batches, reset_after;
    int first[FIRST];
    uint64_t fnv1a;
} recorded;

/* Reads the next entry. A C program printed the file, so its layout is fixed. Returns 0 at the end. */
static int read_recorded(FILE *file, recorded *r) {
    int fields =
        fscanf(file,
               " %*[[,] {\"B\": %zu, \"T\": %zu, \"rank\": %d, \"world\": %d, \"shuffle\": %d, \"batches\": %d, "
               "\"reset_after\": %d, \"num_tokens\": %zu, \"first\": [",
               &r->B, &r->T, &r->rank, &r->world, &r->shuffle, &r->batches, &r->reset_after, &r->num_tokens);
    char after = ',';
    for (int i = 0; fields == 8 && i < FIRST && i < r->batches && after == ','; i++) {
        if (fscanf(file, "%d%c", &r->first[i], &after) != 2) {
            return 0;
        }
    }
    return fields == 8 && after == ']' && fscanf(file, ", \"fnv1a\": \"%" SCNx64 "\"}", &r->fnv1a) == 1;
}

static uint64_t hash_int(uint64_t h, int x) {
    for (int i = 0; i < 4; i++) {
        h = (h ^ ((unsigned)x >> (8 * i) & 255)) * 1099511628211u;
    }
    return h;
}

static void walk_recorded(const recorded *r) {
    DataLoader loader;
    uint64_t h = 14695981039346656037u;
    int different = 0;
    dataloader_init(&loader, "golden_*.bin", r->B, r->T, r->rank, r->world, r->shuffle);
    CHECK_EQ(loader.num_tokens, r->num_tokens);
    for (int n = 0; n < r->batches; n++) {
        if (n == r->reset_after) {
            dataloader_reset(&loader);
        }
        dataloader_next_batch(&loader);
        different += n < FIRST && loader.inputs[0] != r->first[n];
        for (size_t i = 0; i < r->B * r->T; i++) {
            h = hash_int(hash_int(h, loader.inputs[i]), loader.targets[i]);
        }
    }
    dataloader_free(&loader);
    CHECK_EQ(different, 0);
    CHECK_EQ(h, r->fnv1a);
}

static void test_batches(FILE *vectors) {
    recorded r;
    int count = 0;
    memset(&r, 0, sizeof r);
    for (; read_recorded(vectors, &r); count++) {
        walk_recorded(&r);
    }
    CHECK_EQ(count, 20);
}

/* ---------------------------------------------------------------------------------------------------
Resuming
*/

/* Sums of the batches that follow, enough for more than an epoch. Other batches, or another order, give other sums. */
static uint64_t hash_batches(DataLoader *loader, int batches) {
    uint64_t h = 0;
    for (int n = 0; n < batches; n++) {
        dataloader_next_batch(loader);
        h = hash_int(h, loader->inputs[0]);
    }
    return h;
}

static void test_resuming(int shuffle) {
    for (int batches = 0; batches < 160; batches += 13) {
        DataLoader walker, resumed;
        dataloader_init(&walker, "golden_*.bin", 2, 16, 0, 1, shuffle);
        dataloader_init(&resumed, "golden_*.bin", 2, 16, 0, 1, shuffle);
        hash_batches(&walker, batches);
        dataloader_resume(&resumed, walker.current_shard_idx, walker.current_sample_idx);
        uint64_t expected = hash_batches(&walker, 400);
        CHECK_EQ(hash_batches(&resumed, 400), expected);
        dataloader_free(&walker);
        dataloader_free(&resumed);
    }
}

/* ---------------------------------------------------------------------------------------------------
A prompt
*/

static void test_prompt(void) {
    static const char prompt[] = "hello, hell! \xE4\xBD\xA0\xE5\xA5\xBD<|endoftext|>";
    static uint8_t data[SCRATCH_TOKENIZER_BYTES];
    Tokenizer tokenizer;
    int ids[64] = {0};
    char text[sizeof prompt] = "";
    scratch_write("gpt2_tokenizer.bin", data, put_tokenizer(data));
    tokenizer_init(&tokenizer, "gpt2_tokenizer.bin");
    CHECK_EQ(tokenizer.init_ok, 1);
    int count = tokenizer_encode(&tokenizer, prompt, ids, 64);
    CHECK_EQ(count, 13);
    CHECK_EQ(ids[0], 259);
    CHECK_EQ(ids[12], tokenizer.eot_token);
    for (int i = 0; i < count; i++) {
        const char *piece = tokenizer_decode(&tokenizer, (uint32_t)ids[i]);
        strncat(text, piece, sizeof text - 1 - strlen(text));
        safe_printf(piece);
    }
    safe_printf("\n");
    CHECK(strcmp(text, prompt) == 0);
    tokenizer_free(&tokenizer);
}

int main(int argc, char **argv) {
    FILE *vectors = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (vectors == NULL) {
        fprintf(stderr, "usage: llmc_walk tests/vectors/loader_llmc.json\n");
        return 2;
    }
    scratch_enter();
    write_golden_shards();
    test_batches(vectors);
    test_resuming(0);
    test_resuming(1);
    test_prompt();
    scratch_leave();
    fclose(vectors);
    return check_report("llmc_walk");
}
