/*
Encodes a file once, with an empty cache, in C alone: encode_file TOKENIZER.bin FILE. Prints bytes, tokens and CPU seconds.
benchmarks/pathology.py runs it under callgrind, which counts the instructions within pybpe_encode.
*/
#include "pybpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint8_t *read_file(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        return NULL;
    }
    *n = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*n + 1);
    if (data != NULL && fread(data, 1, *n, file) != *n) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

static int fail(const pybpe_error *err) {
    fprintf(stderr, "%s\n", err->msg);
    return 1;
}

int main(int argc, char **argv) {
    pybpe_error err;
    pybpe_vocab *v = NULL;
    pybpe_encoder *e = NULL;
    pybpe_cache *c = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: encode_file TOKENIZER.bin FILE\n");
        return 2;
    }
    if (pybpe_vocab_load(&v, argv[1], NULL, &err) < 0 || pybpe_encoder_new(&e, v, NULL, 0, NULL, &err) < 0 ||
        pybpe_cache_new(&c, e, NULL, &err) < 0) {
        return fail(&err);
    }
    size_t n = 0;
    size_t count = 0;
    uint8_t *text = read_file(argv[2], &n);
    uint32_t *ids = malloc(4 * n + 1);
    if (text == NULL || ids == NULL) {
        fprintf(stderr, "%s: cannot be read\n", argv[2]);
        return 1;
    }
    clock_t start = clock();
    if (pybpe_encode(e, c, NULL, text, n, ids, 4, n, &count, &err) < 0) {
        return fail(&err);
    }
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("%zu %zu %.6f\n", n, count, seconds);
    free(ids);
    free(text);
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(v);
    return 0;
}
