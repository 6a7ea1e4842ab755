/*
The full pipeline in C only: pipeline CORPUS VOCAB_SIZE TOKENIZER.bin SHARD.bin

Counts the words of a text, trains a vocabulary (bytes, then merged tokens, then one special), writes
tokenizer.bin, encodes the text and writes a shard. tests/py/test_determinism.py builds it with several compilers and
optimization levels, and compares the files byte by byte with each other and with Python's.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pybpe_train.h"

static const char *const SPECIAL = "<|endoftext|>";

static pybpe_error error;

/* Ends the program with the error's message unless `code` is PYBPE_OK. */
static void must(int code) {
    if (code != PYBPE_OK) {
        fprintf(stderr, "%s\n", error.msg);
        exit(1);
    }
}

static void *must_allocate(size_t size) {
    void *memory = malloc(size ? size : 1);
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

/* Trains on the words of a text and returns the trainer. */
static pybpe_trainer *train(const uint8_t *text, size_t n, uint32_t vocab_size) {
    pybpe_pretok *pretok;
    pybpe_counter *counter;
    must(pybpe_pretok_new(&pretok, PYBPE_PATTERN_GPT2, NULL, &error));
    must(pybpe_counter_new(&counter, pretok, NULL, NULL, &error));
    must(pybpe_counter_add(counter, text, n, &error));
    pybpe_counter_stats stats = pybpe_counter_get_stats(counter);
    size_t words_count = (size_t)stats.words;
    uint8_t *bytes = must_allocate((size_t)stats.bytes);
    uint64_t *offsets = must_allocate((words_count + 1) * sizeof *offsets);
    uint64_t *counts = must_allocate(words_count * sizeof *counts);
    pybpe_counter_export(counter, bytes, offsets, counts);

    pybpe_strings words = {bytes, offsets, words_count};
    pybpe_train_config config = {.vocab_size = vocab_size, .max_token_length = 255};
    pybpe_trainer *trainer;
    int done = 0;
    must(pybpe_trainer_new(&trainer, &words, counts, &config, NULL, &error));
    while (!done) {
        must(pybpe_trainer_step(trainer, 1 << 20, &done, &error));
    }
    free(bytes);
    free(offsets);
    free(counts);
    pybpe_counter_free(counter);
    pybpe_pretok_free(pretok);
    return trainer;
}

/* The trained vocabulary, with one special after all tokens. */
static pybpe_vocab *lay_out(const pybpe_trainer *trainer) {
    const uint64_t offsets[] = {0, strlen(SPECIAL)};
    const pybpe_vocab_layout layout = {.specials = {(const uint8_t *)SPECIAL, offsets, 1},
                                       .special_ids = PYBPE_SPECIALS_LAST,
                                       .eot = 0,
                                       .pattern = PYBPE_PATTERN_GPT2};
    pybpe_vocab *vocab;
    must(pybpe_trainer_vocab(&vocab, trainer, &layout, NULL, &error));
    return vocab;
}

static void write_shard(const pybpe_vocab *vocab, const uint8_t *text, size_t n, const char *path) {
    pybpe_encoder *encoder;
    pybpe_cache *cache;
    pybpe_shard_writer *writer;
    uint16_t *ids = must_allocate(n * sizeof *ids);
    size_t count;
    must(pybpe_encoder_new(&encoder, vocab, NULL, 0, NULL, &error));
    must(pybpe_cache_new(&cache, encoder, NULL, &error));
    must(pybpe_encode(encoder, cache, NULL, text, n, ids, 2, n, &count, &error));
    must(pybpe_shard_writer_new(&writer, path, PYBPE_SHARD_UINT16, NULL, &error));
    must(pybpe_shard_writer_write(writer, ids, 2, count, &error));
    must(pybpe_shard_writer_finish(writer, &error));
    pybpe_cache_free(cache);
    pybpe_encoder_free(encoder);
    free(ids);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: pipeline CORPUS VOCAB_SIZE TOKENIZER.bin SHARD.bin\n");
        return 1;
    }
    size_t n;
    uint8_t *text = read_file(argv[1], &n);
    pybpe_trainer *trainer = train(text, n, (uint32_t)strtoul(argv[2], NULL, 10) - 1);
    pybpe_vocab *vocab = lay_out(trainer);
    must(pybpe_vocab_save(vocab, argv[3], 2, &error));
    write_shard(vocab, text, n, argv[4]);
    pybpe_vocab_free(vocab);
    pybpe_trainer_free(trainer);
    free(text);
    return 0;
}
