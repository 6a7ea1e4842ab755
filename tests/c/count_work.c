/*
Counts what the library does, without a clock: tests/py/test_operations.py compiles the library with
-fsanitize-coverage=trace-pc, so that it calls a function at each branch, and with other names for the functions that
work on blocks of memory, in which 16 bytes count as much as one branch, and for the source of random numbers, so that
each run counts the same.

    count_work load TOKENIZER.bin       count_work specials STRINGS FLAG TEXT
    count_work json TOKENIZER.json      count_work encode TOKENIZER.bin TEXT
    count_work recover STRINGS

The hashes of the library are seeded with the number in the environment variable COUNT_SEED. STRINGS is a file of byte strings, each after its length in four bytes. FLAG is a pybpe_special_flag, or 0. Prints the
error code of the work and its count.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pybpe_corpus.h"
#include "random_state.h"

static uint64_t work;
static pybpe_error error;

void __sanitizer_cov_trace_pc(void);
void *counted_memcpy(void *to, const void *from, size_t n);
void *counted_memmove(void *to, const void *from, size_t n);
void *counted_memset(void *to, int byte, size_t n);
int counted_memcmp(const void *a, const void *b, size_t n);
void *counted_memchr(const void *in, int byte, size_t n);
int fixed_getentropy(void *to, size_t n);

void __sanitizer_cov_trace_pc(void) { work += 1; }

void *counted_memcpy(void *to, const void *from, size_t n) {
    work += n / 16;
    return memcpy(to, from, n);
}

void *counted_memmove(void *to, const void *from, size_t n) {
    work += n / 16;
    return memmove(to, from, n);
}

void *counted_memset(void *to, int byte, size_t n) {
    work += n / 16;
    return memset(to, byte, n);
}

/* Counts only the bytes that are read. */
int counted_memcmp(const void *a, const void *b, size_t n) {
    const uint8_t *x = a, *y = b;
    size_t same = 0;
    while (same < n && x[same] == y[same]) {
        same += 1;
    }
    work += same / 16;
    return same < n ? x[same] - y[same] : 0;
}

void *counted_memchr(const void *in, int byte, size_t n) {
    const uint8_t *found = memchr(in, byte, n);
    work += (found ? (size_t)(found - (const uint8_t *)in) : n) / 16;
    return (void *)found;
}

int fixed_getentropy(void *to, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ((uint8_t *)to)[i] = (uint8_t)random_below(256);
    }
    return 0;
}

/* realloc may copy the whole block, so all of it counts. */
static void *counted_resize(void *context, void *ptr, size_t size) {
    (void)context;
    work += size / 16;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, size);
}

static const pybpe_allocator MEMORY = {counted_resize, NULL};

/* Ends the program with the error's message unless `code` is PYBPE_OK. */
static void must(int code) {
    if (code != PYBPE_OK) {
        fprintf(stderr, "%s\n", error.msg);
        exit(1);
    }
}

static void *must_allocate(size_t size) {
    void *memory = malloc(size + 1);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

static uint8_t *read_file(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    *n = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = must_allocate(*n);
    if (fread(data, 1, *n, file) != *n) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return data;
}

/* Reads a file of strings. The offsets and bytes stay allocated until the program ends. */
static pybpe_strings read_strings(const char *path) {
    size_t n, end = 0, count = 0;
    uint8_t *data = read_file(path, &n);
    uint64_t *offsets = must_allocate((n / 4 + 1) * sizeof *offsets);
    offsets[0] = 0;
    for (size_t at = 0; at + 4 <= n;) {
        size_t length = data[at] + 256u * data[at + 1] + 65536u * data[at + 2] + 16777216u * data[at + 3];
        memmove(data + end, data + at + 4, length);
        end += length;
        at += 4 + length;
        offsets[++count] = end;
    }
    return (pybpe_strings){data, offsets, count};
}

static int load(const char *path) {
    size_t n;
    const uint8_t *data = read_file(path, &n);
    pybpe_vocab *vocab;
    work = 0;
    return pybpe_vocab_load_mem(&vocab, data, n, &MEMORY, &error);
}

static int json(const char *path) {
    size_t n, spans[4];
    const uint8_t *text = read_file(path, &n);
    pybpe_strings none = {NULL, NULL, 0};
    pybpe_vocab_spec spec = {.eot_id = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
    pybpe_vocab *vocab;
    work = 0;
    if (!pybpe_tokenizer_json_find(text, n, spans)) {
        return PYBPE_ERR_FORMAT;
    }
    return pybpe_vocab_new_json(&vocab, text + spans[0], spans[1] - spans[0], text + spans[2], spans[3] - spans[2],
                                &none, &spec, &MEMORY, &error);
}

static int recover(const char *path) {
    pybpe_vocab_spec spec = {.tokens = read_strings(path), .eot_id = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
    uint32_t *merges = must_allocate(2 * spec.tokens.count * sizeof *merges);
    size_t count;
    work = 0;
    return pybpe_vocab_recover_merges(&spec, merges, &count, &MEMORY, &error);
}

static int specials(const char *path, const char *flag, const char *text_path) {
    size_t n;
    pybpe_strings strings = read_strings(path);
    const uint8_t *text = read_file(text_path, &n);
    uint32_t *ids = must_allocate(strings.count * sizeof *ids);
    uint8_t *flags = must_allocate(strings.count);
    uint32_t *found = must_allocate((n + 1) * sizeof *found);
    size_t *spans = must_allocate(2 * (n + 1) * sizeof *spans);
    for (size_t i = 0; i < strings.count; i++) {
        ids[i] = (uint32_t)i;
    }
    memset(flags, atoi(flag), strings.count);
    pybpe_specials *matcher;
    work = 0;
    int code = pybpe_specials_new(&matcher, &strings, ids, flags, &MEMORY, &error);
    if (code == PYBPE_OK) {
        pybpe_specials_find_all(matcher, text, n, 0, spans, found, n + 1);
    }
    return code;
}

static int encode(const char *path, const char *text_path) {
    size_t n, count;
    const uint8_t *text = read_file(text_path, &n);
    uint32_t *ids = must_allocate(n * sizeof *ids);
    pybpe_vocab *vocab;
    pybpe_encoder *encoder;
    pybpe_cache *cache;
    must(pybpe_vocab_load(&vocab, path, &MEMORY, &error));
    must(pybpe_encoder_new(&encoder, vocab, NULL, 0, &MEMORY, &error));
    must(pybpe_cache_new(&cache, encoder, &MEMORY, &error));
    work = 0;
    return pybpe_encode(encoder, cache, pybpe_encoder_specials(encoder), text, n, ids, 4, n, &count, &error);
}

int main(int argc, char **argv) {
    const char *what = argc > 2 ? argv[1] : "", *seed = getenv("COUNT_SEED");
    random_state += seed ? (uint64_t)atoi(seed) : 0;
    int code;
    if (!strcmp(what, "load")) {
        code = load(argv[2]);
    } else if (!strcmp(what, "json")) {
        code = json(argv[2]);
    } else if (!strcmp(what, "recover")) {
        code = recover(argv[2]);
    } else if (!strcmp(what, "specials") && argc == 5) {
        code = specials(argv[2], argv[3], argv[4]);
    } else if (!strcmp(what, "encode") && argc == 4) {
        code = encode(argv[2], argv[3]);
    } else {
        fprintf(stderr, "see the start of tests/c/count_work.c\n");
        return 2;
    }
    printf("%d %llu\n", code, (unsigned long long)work);
    return 0;
}
