/*
tokenizer.bin from hostile bytes: an explained error, or a vocabulary that decodes, encodes, and can be laid out again.
Each file is tried unchanged, and with its correct checksum, which no fuzzer would find.
*/
#include "check_vocab.h"

static void load(const uint8_t *data, size_t size) {
    pybpe_vocab *v = NULL;
    pybpe_error err;
    int code = pybpe_vocab_load_mem(&v, data, size, &fuzz_memory, &err);
    if (code != PYBPE_OK) {
        REQUIRE(v == NULL);
        fuzz_expect_error(code, &err);
        return;
    }
    check_vocab(v, data, size < 2048 ? size : 2048);
    pybpe_vocab_free(v);
}

static uint64_t word_at(const uint8_t *at, size_t n) {
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++) {
        word |= (uint64_t)at[i] << 8 * i;
    }
    return word;
}

/* As csrc/llmc/tokenizer_bin.h describes: FNV-1a over words of 8 bytes, of everything before it. */
static void mend_checksum(uint8_t *file, size_t n) {
    uint64_t hash = 14695981039346656037u;
    for (size_t at = 0; at < n - 8; at += 8) {
        hash = (hash ^ word_at(file + at, n - 8 - at < 8 ? n - 8 - at : 8)) * 1099511628211u;
    }
    for (size_t i = 0; i < 8; i++) {
        file[n - 8 + i] = (uint8_t)(hash >> 8 * i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    load(data, size);
    if (size > 1024 && memcmp(data + 16, "PYBP", 4) == 0) {
        fuzz_input in = {data, size};
        uint8_t *copy = fuzz_bytes(&in, size, &size);
        mend_checksum(copy, size);
        if (memcmp(copy + size - 8, data + size - 8, 8) != 0) {
            load(copy, size);
        }
        free(copy);
    }
    return 0;
}
