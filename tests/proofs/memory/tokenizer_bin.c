/*
csrc/tokenizer_bin.h and csrc/tokenizer_bin_read.c: reading a tokenizer.bin. Making a vocabulary of it is left out.
*/
#include "prove.h"

#include <base.c>
#include <tokenizer_bin_read.c>
#include <vocab.c>

/* These are in other files, and no proof calls them. */
int vocab_index(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    return error_set(err, PYBPE_ERR_FORMAT, source_at(from->merges, v->count), "not here");
}
int vocab_resolve_merges(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    return vocab_index(v, from, err);
}
int vocab_recover(const pybpe_vocab *v, uint32_t *merges, size_t *count, pybpe_error *err) {
    *count = v->count;
    return error_set(err, PYBPE_ERR_FORMAT, *merges, "not here");
}

/* The checksum reads n bytes, and no more. */
void prove_checksum(size_t n) {
    uint8_t *data = any_bytes(n);
    (void)tokenizer_bin_checksum(data, n);
    free(data);
}

uint64_t any_checksum(const uint8_t *data, size_t n) {
    check_readable(data, n);
    return any_u64();
}

/* A file of the size of its header and n more bytes. Random draws find the fields that it must have. */
static uint8_t *any_file(size_t n) {
    uint8_t *data = any_bytes(FILE_HEADER + n);
    store_u32(data, FILE_MAGIC);
    store_u32(data + 4, (uint32_t)any_between(1, 2));
    store_u32(data + 8, (uint32_t)any_between(0, 2));
    return data;
}

/* The tokens fill the place between the header and the trailer. */
void prove_tokens(size_t n) {
    uint8_t *data = any_file(n);
    vocab_file f = {.data = data, .n = FILE_HEADER + n};
    size_t bytes;
    if (file_check_header(&f, NULL) == PYBPE_OK && file_check_tokens(&f, &bytes, NULL) == PYBPE_OK) {
        CHECK(f.count > 0 && f.trailer <= f.n && f.trailer == FILE_HEADER + f.count + bytes);
        CHECK(bytes >= f.count);
        (void)file_find_trailer(&f);
    }
    free(data);
}

/* The parts of a trailer of n bytes fill it. */
void prove_trailer(size_t n) {
    uint8_t *data = any_file(n);
    vocab_file f = {.data = data, .n = FILE_HEADER + n, .trailer = FILE_HEADER};
    vocab_sizes sizes = {0};
    store_u32(data + 20, (uint32_t)any_between(0, n));
    store_u32(data + 24, 0);
    if (any_bool() && n >= TRAILER_FIXED + TRAILER_CHECKSUM) {
        memcpy(data + FILE_HEADER, TRAILER_MAGIC, sizeof TRAILER_MAGIC);
        store_u32(data + FILE_HEADER + 8, TRAILER_LAYOUT);
    }
    if (file_check_trailer(&f, NULL) == PYBPE_OK && file_measure_trailer(&f, &sizes, NULL) == PYBPE_OK) {
        CHECK(TRAILER_FIXED + 8 * sizes.merges + 4 * sizes.specials + sizes.custom + TRAILER_CHECKSUM == n);
    }
    free(data);
}

PROOFS(PROOF(checksum, 0, 17, 2) PROOF(tokens, 4, 4, 4, "store_u32.0:5,memcmp.0:9")
           PROOF(trailer, 46, 50, 4, "store_u32.0:5,memcmp.0:9",
                 "tokenizer_bin_checksum:any_checksum memchr:any_place"))
