/*
Prints tests/vectors/loader_llmc.json: what llm.c's own DataLoader serves. How to run it: README.md here.
It is compiled against llm.c's sources, never against ours, and needs an empty current folder for the shards.
*/
#include "llmc/dataloader.h"

static const size_t SIZES[] = {1000, 777, 2049, 513, 1025};
enum { SHARDS = 5, FIRST = 48 };

static void write_shards(void) {
    for (size_t k = 0; k < SHARDS; k++) {
        char name[32];
        snprintf(name, sizeof name, "golden_%06zu.bin", k);
        FILE *f = fopenCheck(name, "wb");
        int header[HEADER_SIZE] = {20240520, 1, (int)SIZES[k]};
        fwriteCheck(header, sizeof(int), HEADER_SIZE, f);
        for (size_t i = 0; i < SIZES[k]; i++) {
            uint16_t token = (uint16_t)(i * 2654435761u + k * 40503u);
            fwriteCheck(&token, sizeof token, 1, f);
        }
        fcloseCheck(f);
    }
}

/* FNV-1a, 64 bits, of an int as 4 bytes, the lowest first. */
static uint64_t hash_int(uint64_t h, int x) {
    for (int i = 0; i < 4; i++) {
        h = (h ^ ((unsigned)x >> (8 * i) & 255)) * 1099511628211u;
    }
    return h;
}

static void print_case(size_t B, size_t T, int rank, int world, int shuffle, int batches, int reset_after) {
    DataLoader loader;
    uint64_t h = 14695981039346656037u;
    dataloader_init(&loader, "golden_*.bin", B, T, rank, world, shuffle);
    printf("  {\"B\": %zu, \"T\": %zu, \"rank\": %d, \"world\": %d, \"shuffle\": %d, \"batches\": %d, "
           "\"reset_after\": %d, \"num_tokens\": %zu,\n   \"first\": [",
           B, T, rank, world, shuffle, batches, reset_after, loader.num_tokens);
    for (int n = 0; n < batches; n++) {
        if (n == reset_after) {
            dataloader_reset(&loader);
        }
        dataloader_next_batch(&loader);
        if (n < FIRST) {
            printf(n > 0 ? ", %d" : "%d", loader.inputs[0]);
        }
        for (size_t i = 0; i < B * T; i++) {
            h = hash_int(hash_int(h, loader.inputs[i]), loader.targets[i]);
        }
    }
    printf("],\n   \"fnv1a\": \"%016llx\"}", (unsigned long long)h);
    dataloader_free(&loader);
}

/* Enough for three epochs and a half of every setting: 5364 tokens at most in an epoch. */
static void print_setting(size_t B, size_t T, int world, int shuffle, int reset_after) {
    int batches = (int)(3.5 * 5364 / ((double)(B * T) * world));
    for (int rank = 0; rank < world; rank++) {
        print_case(B, T, rank, world, shuffle, batches, reset_after);
        printf(rank + 1 < world ? ",\n" : "");
    }
}

int main(void) {
    write_shards();
    printf("[\n");
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        print_setting(4, 16, 1, shuffle, -1);
        printf(",\n");
        print_setting(2, 32, 2, shuffle, -1);
        printf(",\n");
        print_setting(3, 5, 3, shuffle, -1);
        printf(",\n");
        print_setting(1, 1, 1, shuffle, -1);
        printf(",\n");
        print_setting(8, 64, 1, shuffle, -1);
        printf(",\n");
        print_setting(4, 8, 2, shuffle, 100);
        printf(shuffle == 0 ? ",\n" : "\n");
    }
    printf("]\n");
    return 0;
}
