/*
Reads a tokenizer.bin and token shards using only the C library, decodes them, and prints the contents of the headers,
the first sentences, and the SHA-256 of all decoded bytes, which the corpus should have as well.

    decode_test TOKENIZER.bin SHARD.bin... [--sentences N] [--skip-id ID]

    --sentences N   how many sentences to print from the beginning (default 3, at most 400 bytes)
    --skip-id ID    skips a token, such as end-of-text, that is not in the corpus

On any error it prints one line on stderr and exits with 1. Run by `make demo` and by tests/py/test_roundtrip.py.
*/
#include "pybpe.h"
#include "sha256.h"

#include <stdlib.h>

enum { CHUNK = 1 << 16, SHOWN_BYTES = 400 };

typedef struct decoder {
    pybpe_vocab *vocab;
    uint32_t skip_id; /* PYBPE_NO_ID: none */
    long sentences;
    uint32_t ids[CHUNK];
    uint8_t *bytes; /* the decoded bytes */
    size_t capacity;
    uint8_t shown[SHOWN_BYTES]; /* the beginning of all text */
    size_t shown_length;
    sha256 shard_hash, total_hash;
    uint64_t tokens, length; /* of all shards */
} decoder;

/* Prints one line and returns the exit code. `path` is the faulty file, if the message does not name it. */
static int fail(const char *path, const char *message) {
    if (strstr(message, path) != NULL) {
        fprintf(stderr, "decode_test: %s\n", message);
    } else {
        fprintf(stderr, "decode_test: %s: %s\n", path, message);
    }
    return 1;
}

static int fail_usage(void) {
    fprintf(stderr, "usage: decode_test TOKENIZER.bin SHARD.bin... [--sentences N] [--skip-id ID]\n");
    return 1;
}

/* ---------------------------------------------------------------------------------------------------
Text
*/

/* The number of bytes of the first `sentences` sentences of text, or of all of it. */
static size_t sentences_end(const uint8_t *text, size_t n, long sentences) {
    static const char *const ends[] = {".", "!", "?", "\xE3\x80\x82", "\xEF\xBC\x81", "\xEF\xBC\x9F"}; /* 。！？ */
    for (size_t at = 0; at < n; at++) {
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
            size_t length = strlen(ends[k]);
            if (n - at >= length && memcmp(text + at, ends[k], length) == 0 && --sentences <= 0) {
                return at + length;
            }
        }
    }
    return n;
}

static void print_sentences(const decoder *d) {
    size_t n = d->sentences < 1 ? 0 : sentences_end(d->shown, d->shown_length, d->sentences);
    n = pybpe_utf8_complete(d->shown, n);
    printf("text:\n");
    fwrite(d->shown, 1, n, stdout);
    printf("\n");
}

/* ---------------------------------------------------------------------------------------------------
Decoding
*/

static int decode_chunk(decoder *d, size_t n, pybpe_error *err) {
    size_t length;
    int code = pybpe_decode(d->vocab, d->ids, 4, n, NULL, 0, &length, err);
    if (code != PYBPE_OK) {
        return code;
    }
    if (length > d->capacity) {
        uint8_t *grown = realloc(d->bytes, length);
        if (grown == NULL) {
            snprintf(err->msg, sizeof err->msg, "out of memory");
            return PYBPE_ERR_MEMORY;
        }
        d->bytes = grown;
        d->capacity = length;
    }
    code = pybpe_decode(d->vocab, d->ids, 4, n, d->bytes, d->capacity, &length, err);
    if (code == PYBPE_OK && length > 0) {
        size_t room = SHOWN_BYTES - d->shown_length;
        size_t kept = length < room ? length : room;
        memcpy(d->shown + d->shown_length, d->bytes, kept);
        d->shown_length += kept;
        d->length += length;
        sha256_add(&d->shard_hash, d->bytes, length);
        sha256_add(&d->total_hash, d->bytes, length);
    }
    return code;
}

static size_t drop_id(uint32_t *ids, size_t n, uint32_t dropped) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] != dropped) {
            ids[kept++] = ids[i];
        }
    }
    return kept;
}

static int decode_shard(decoder *d, const pybpe_shard *shard, pybpe_error *err) {
    uint64_t count = pybpe_shard_count(shard);
    for (uint64_t at = 0; at < count;) {
        size_t n = count - at < CHUNK ? (size_t)(count - at) : CHUNK;
        int code = pybpe_shard_read(shard, at, n, d->ids, err);
        if (code == PYBPE_OK) {
            size_t kept = d->skip_id == PYBPE_NO_ID ? n : drop_id(d->ids, n, d->skip_id);
            code = decode_chunk(d, kept, err);
        }
        if (code != PYBPE_OK) {
            return code;
        }
        at += n;
    }
    d->tokens += count;
    return PYBPE_OK;
}

static int decode_file(decoder *d, const char *path) {
    pybpe_error err;
    pybpe_shard *shard;
    if (pybpe_shard_open(&shard, path, NULL, &err) != PYBPE_OK) {
        return fail(path, err.msg);
    }
    sha256_start(&d->shard_hash);
    int code = decode_shard(d, shard, &err);
    if (code == PYBPE_OK) {
        char hex[65];
        sha256_finish(&d->shard_hash, hex);
        printf("shard: %s: %llu tokens of uint%d, sha256 %s\n", path, (unsigned long long)pybpe_shard_count(shard),
               8 * pybpe_shard_id_bytes(shard), hex);
    }
    pybpe_shard_free(shard);
    return code == PYBPE_OK ? 0 : fail(path, err.msg);
}

/* ---------------------------------------------------------------------------------------------------
The program
*/

static void print_vocab(const char *path, const pybpe_vocab *vocab) {
    pybpe_vocab_spec spec = pybpe_vocab_get_spec(vocab);
    printf("tokenizer: %s: %zu tokens, %zu merges, %zu specials, end-of-text ", path, spec.tokens.count,
           spec.merges_count, spec.specials_count);
    if (spec.eot_id == PYBPE_NO_ID) {
        printf("none\n");
    } else {
        printf("%u\n", spec.eot_id);
    }
}

/* The number after an option, or -1. */
static long parse_number(const char *text) {
    char *end;
    if (text == NULL || *text < '0' || *text > '9') {
        return -1;
    }
    long value = strtol(text, &end, 10);
    return *end == '\0' && value < (long)INT32_MAX ? value : -1;
}

/* Removes the options from argv, so that the files remain. Returns the number of files, or -1. */
static int parse_options(decoder *d, int argc, char **argv) {
    int files = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            argv[files++] = argv[i];
            continue;
        }
        const char *option = argv[i];
        long value = i + 1 < argc ? parse_number(argv[++i]) : -1;
        if (value < 0) {
            return -1;
        } else if (strcmp(option, "--sentences") == 0) {
            d->sentences = value;
        } else if (strcmp(option, "--skip-id") == 0) {
            d->skip_id = (uint32_t)value;
        } else {
            return -1;
        }
    }
    return files;
}

static int run(decoder *d, char **files, int count) {
    pybpe_error err;
    if (pybpe_vocab_load(&d->vocab, files[0], NULL, &err) != PYBPE_OK) {
        return fail(files[0], err.msg);
    }
    print_vocab(files[0], d->vocab);
    sha256_start(&d->total_hash);
    for (int i = 1; i < count; i++) {
        if (decode_file(d, files[i]) != 0) {
            return 1;
        }
    }
    char hex[65];
    sha256_finish(&d->total_hash, hex);
    print_sentences(d);
    printf("total: %llu tokens, %llu bytes, sha256 %s\n", (unsigned long long)d->tokens, (unsigned long long)d->length,
           hex);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return fail("stdout", "cannot be written");
    }
    return 0;
}

int main(int argc, char **argv) {
    decoder *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return fail("memory", "not enough for a buffer");
    }
    d->sentences = 3;
    d->skip_id = PYBPE_NO_ID;
    int files = parse_options(d, argc, argv);
    int result = files < 2 ? fail_usage() : run(d, argv, files);
    pybpe_vocab_free(d->vocab);
    free(d->bytes);
    free(d);
    return result;
}
