/*
csrc/llmc/tokenizer_bin.h, csrc/llmc/tokenizer_bin_read.c and csrc/vocab/vocab.c: reading a tokenizer.bin. vocab_index.c is about making a
vocabulary of it.
*/
#include "any_entropy.h"

#include <base/base.c>
#include <llmc/tokenizer_bin_read.c>
#include <vocab/vocab.c>

/* These are in other files, whose proofs are in vocab_index.c, or which need much of the encoder. */
int vocab_index(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    return any_bool() ? PYBPE_OK : error_set(err, PYBPE_ERR_FORMAT, source_at(from->merges, v->count), "any error");
}
int vocab_resolve_merges(pybpe_vocab *v, const vocab_source *from, pybpe_error *err) {
    check_readable(v->merges, 2 * v->merges_count * sizeof *v->merges);
    any_fill(v->merged, v->merges_count * sizeof *v->merged);
    return vocab_index(v, from, err);
}
int vocab_recover(const pybpe_vocab *v, uint32_t *merges, size_t *count, pybpe_error *err) {
    any_fill(merges, 2 * v->count * sizeof *merges);
    *count = (size_t)any_between(0, v->count);
    return any_bool() ? PYBPE_OK : error_set(err, PYBPE_ERR_MEMORY, 0, "no memory");
}

/* This reads another kind of file: see tokenizer_json.c. */
int tokenizer_json_read(pybpe_vocab **out, const uint8_t *text, size_t n, const pybpe_allocator *mem,
                        pybpe_error *err) {
    (void)mem;
    check_readable(text, n);
    *out = NULL;
    return error_set(err, PYBPE_ERR_FORMAT, 0, "a tokenizer.json");
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

static size_t any_size(void) {
#if defined(PROVE)
    return (size_t)any_u64();
#else
    return (size_t)any_between(0, 100);
#endif
}

static void check_parts(const pybpe_vocab *v, const vocab_sizes *sizes) {
    any_fill(v->bytes, sizes->bytes + VOCAB_PADDING);
    any_fill(v->offsets, (sizes->tokens + 1) * sizeof *v->offsets);
    any_fill(v->records, (sizes->tokens + 1) * sizeof *v->records);
    any_fill(v->merges, (sizes->merges + 1) * 2 * sizeof *v->merges);
    any_fill(v->merged, (sizes->merges + 1) * sizeof *v->merged);
    any_fill(v->specials, (sizes->specials + 1) * sizeof *v->specials);
    if (sizes->has_custom) {
        any_fill(v->custom, sizes->custom + 1);
    }
    if (sizes->has_flags) {
        any_fill(v->special_flags, sizes->specials + 1);
    }
}

/* A vocabulary of any sizes has memory for its parts. */
void prove_alloc(size_t n) {
    const vocab_sizes sizes = {any_size(), any_size(), any_size(), any_size(), any_size(), any_bool(), any_bool()};
    pybpe_vocab *v;
    if (vocab_alloc(&v, &sizes, NULL, NULL) == PYBPE_OK) {
        check_parts(v, &sizes);
        CHECK(v->offsets != NULL && v->count == sizes.tokens);
        pybpe_vocab_free(v);
    }
    (void)n;
}

/* Two tokens of 20 bytes together, before the last n bytes of a file, are copied into memory for just as many. */
void prove_copy(size_t n) {
    enum { TOKENS = 2, BYTES = 20 };
    uint8_t *data = any_bytes(FILE_HEADER + TOKENS + BYTES + n);
    uint64_t offsets[TOKENS + 1] = {0};
    size_t first = (size_t)any_between(1, BYTES - 1);
    data[FILE_HEADER] = (uint8_t)first;
    data[FILE_HEADER + 1 + first] = (uint8_t)(BYTES - first);
    const vocab_file f = {.data = data, .n = FILE_HEADER + TOKENS + BYTES + n, .count = TOKENS};
    pybpe_vocab v = {.bytes = any_bytes(BYTES + VOCAB_PADDING), .offsets = offsets};
    vocab_copy_tokens(&v, &f);
    CHECK(offsets[1] == first && offsets[TOKENS] == BYTES);
    free(v.bytes);
    free(data);
}

/* The n merges, and 0 to 2 specials and bytes of a pattern, of a trailer that fills its place are copied. */
void prove_copy_trailer(size_t n) {
    size_t specials = n % 3, custom = (n + 1) % 3;
    size_t length = TRAILER_FIXED + 8 * n + 4 * specials + custom + TRAILER_CHECKSUM;
    uint8_t *data = any_bytes(length);
    const vocab_file f = {.data = data, .n = length};
    pybpe_vocab v = {.merges_count = n, .specials_count = specials};
    v.merges = (uint32_t *)any_bytes(8 * n);
    v.specials = (uint32_t *)any_bytes(4 * specials);
    v.custom = custom > 0 ? (char *)any_bytes(custom + 1) : NULL;
    vocab_copy_trailer(&v, &f);
    CHECK(custom == 0 || v.custom[custom] == '\0');
    free(v.merges);
    free(v.specials);
    free(v.custom);
    free(data);
}

/* What the proofs above show of the sizes of a file, and of copying its parts. */
int any_measure(vocab_file *f, vocab_sizes *sizes, pybpe_error *err) {
    (void)err;
    if (any_bool()) {
        return PYBPE_ERR_FORMAT;
    }
    f->count = (uint32_t)any_between(1, 2);
    f->has_trailer = any_bool();
    f->trailer = (size_t)any_between(FILE_HEADER, f->n);
    f->version = (uint32_t)any_between(1, 2);
    *sizes = (vocab_sizes){.tokens = f->count, .bytes = (size_t)any_between(1, 4), .merges = f->count, .specials = 1};
    if (f->has_trailer) {
        sizes->merges = (size_t)any_between(0, 2);
        sizes->specials = (size_t)any_between(0, 2);
        sizes->custom = (size_t)any_between(0, 2);
        sizes->has_custom = sizes->custom > 0;
    }
    return PYBPE_OK;
}

void any_tokens(pybpe_vocab *v, const vocab_file *f) {
    CHECK(v->count == f->count);
    any_fill(v->bytes, VOCAB_PADDING);
    any_fill(v->offsets, (v->count + 1) * sizeof *v->offsets);
}

void any_trailer(pybpe_vocab *v, const vocab_file *f) {
    CHECK(f->has_trailer);
    any_fill(v->merges, 2 * v->merges_count * sizeof *v->merges);
    any_fill(v->specials, v->specials_count * sizeof *v->specials);
}

/* A file of n bytes after its header becomes a vocabulary, or everything that was allocated for it is freed. */
void prove_load(size_t n) {
    uint8_t *data = any_file(n);
    pybpe_vocab *v;
    int code = pybpe_vocab_load_mem(&v, data, FILE_HEADER + n, NULL, NULL);
    CHECK((code == PYBPE_OK) == (v != NULL));
    pybpe_vocab_free(v);
    free(data);
}

PROOFS(PROOF(checksum, 0, 17, 2) PROOF(tokens, 4, 4, 4, "store_u32.0:5,memcmp.0:9")
           PROOF(trailer, 46, 50, 4, "store_u32.0:5,memcmp.0:9", "tokenizer_bin_checksum:any_checksum memchr:any_place")
               PROOF(alloc, 0, 0, 17) PROOF(copy, 0, 17, 8) PROOF(copy_trailer, 0, 3, 5)
                   PROOF(load, 0, 2, 5, "",
                         "file_measure:any_measure vocab_copy_tokens:any_tokens vocab_copy_trailer:any_trailer"))
