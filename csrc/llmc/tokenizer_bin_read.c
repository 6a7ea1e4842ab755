/*
Reading tokenizer.bin. tokenizer_bin.h has the layout.

The whole file is checked before any memory is allocated according to its contents.
*/
#include "llmc/tokenizer_bin.h"
#include "vocab/vocab.h"

enum {
    GPT2_TOKENS = 50257, /* the only vocabulary size for version 1 of the file */
    GPT2_EOT = 50256
};

/* A file in memory, and the contents of its header and trailer. */
typedef struct vocab_file {
    const uint8_t *data;
    size_t n;
    uint32_t version;
    uint32_t count;
    size_t trailer; /* where the tokens end */
    bool has_trailer;
} vocab_file;

static int file_check_header(vocab_file *f, pybpe_error *err) {
    if (f->n < FILE_HEADER) {
        return error_set(err, PYBPE_ERR_FORMAT, f->n, "tokenizer.bin ends at offset %zu; its header has 1024 bytes",
                         f->n);
    }
    uint32_t magic = load_u32(f->data);
    if (magic != FILE_MAGIC) {
        return error_set(err, PYBPE_ERR_FORMAT, 0,
                         "not a tokenizer.bin: it starts with %u; expected 20240328 (0x0134D7C8)", magic);
    }
    f->version = load_u32(f->data + 4);
    if (f->version != 1 && f->version != 2) {
        return error_set(err, PYBPE_ERR_FORMAT, 4, "tokenizer.bin has version %u at offset 4; expected 1 or 2",
                         f->version);
    }
    f->count = load_u32(f->data + 8);
    if (f->count == 0 || f->count > (f->n - FILE_HEADER) / 2) { /* a token takes at least two bytes */
        return error_set(err, PYBPE_ERR_FORMAT, 8,
                         "tokenizer.bin claims %u tokens at offset 8; its %zu bytes hold 1 to %zu", f->count, f->n,
                         (f->n - FILE_HEADER) / 2);
    }
    return PYBPE_OK;
}

/* Finds the end of the tokens and the sum of their lengths. */
static int file_check_tokens(vocab_file *f, size_t *bytes, pybpe_error *err) {
    size_t at = FILE_HEADER;
    for (uint32_t id = 0; id < f->count; id++) {
        if (at >= f->n || f->n - at - 1 < f->data[at]) {
            return error_set(err, PYBPE_ERR_FORMAT, at,
                             "tokenizer.bin ends inside token %u of %u, which starts at offset %zu", id, f->count, at);
        }
        if (f->data[at] == 0) {
            return error_set(err, PYBPE_ERR_FORMAT, at, "token %u at offset %zu has length 0; expected 1 to 255", id,
                             at);
        }
        at += (size_t)1 + f->data[at];
    }
    f->trailer = at;
    *bytes = at - FILE_HEADER - f->count;
    return PYBPE_OK;
}

static bool file_find_trailer(const vocab_file *f) {
    return load_u32(f->data + 16) == TRAILER_MARK ||
           (f->n - f->trailer >= sizeof TRAILER_MAGIC &&
            memcmp(f->data + f->trailer, TRAILER_MAGIC, sizeof TRAILER_MAGIC) == 0);
}

/* Checks that the trailer is complete and undamaged. */
static int file_check_trailer(const vocab_file *f, pybpe_error *err) {
    const uint8_t *t = f->data + f->trailer;
    uint64_t length = load_u64(f->data + 20);
    uint64_t have = f->n - f->trailer;
    if (length != have || length < TRAILER_FIXED + TRAILER_CHECKSUM) {
        return error_set(err, PYBPE_ERR_FORMAT, f->trailer,
                         "tokenizer.bin has %llu bytes after its tokens at offset %zu; its header says %llu",
                         (unsigned long long)have, f->trailer, (unsigned long long)length);
    }
    if (memcmp(t, TRAILER_MAGIC, sizeof TRAILER_MAGIC) != 0 || load_u32(t + 8) != TRAILER_LAYOUT) {
        return error_set(
            err, PYBPE_ERR_FORMAT, f->trailer,
            "the trailer at offset %zu is not \"PYBPETRL\" of layout 1; it is damaged, or a newer pybpe wrote it",
            f->trailer);
    }
    if (tokenizer_bin_checksum(f->data, f->n - TRAILER_CHECKSUM) != load_u64(f->data + f->n - TRAILER_CHECKSUM)) {
        return error_set(err, PYBPE_ERR_FORMAT, f->n - TRAILER_CHECKSUM,
                         "the checksum at offset %zu does not match: tokenizer.bin was damaged or edited",
                         f->n - TRAILER_CHECKSUM);
    }
    return PYBPE_OK;
}

/* Reads the sizes of the trailer's parts and checks that they fill it. */
static int file_measure_trailer(const vocab_file *f, vocab_sizes *sizes, pybpe_error *err) {
    const uint8_t *t = f->data + f->trailer;
    uint64_t length = f->n - f->trailer;
    uint32_t merges = load_u32(t + 24);
    uint32_t specials = load_u32(t + 28);
    uint32_t custom = load_u32(t + 32);
    uint64_t want = TRAILER_FIXED + 8 * (uint64_t)merges + 4 * (uint64_t)specials + custom + TRAILER_CHECKSUM;
    if (want != length) {
        return error_set(err, PYBPE_ERR_FORMAT, f->trailer + 24,
                         "%u merges, %u specials and %u bytes of pattern make a trailer of %llu bytes; it has %llu",
                         merges, specials, custom, (unsigned long long)want, (unsigned long long)length);
    }
    if (memchr(f->data + f->n - TRAILER_CHECKSUM - custom, '\0', custom) != NULL) {
        return error_set(err, PYBPE_ERR_FORMAT, f->n - TRAILER_CHECKSUM - custom,
                         "the regular expression at offset %zu contains a NUL byte", f->n - TRAILER_CHECKSUM - custom);
    }
    sizes->merges = merges;
    sizes->specials = specials;
    sizes->custom = custom;
    sizes->has_custom = custom > 0;
    return PYBPE_OK;
}

/* Checks the structure of the file and reads the sizes of its parts. */
static int file_measure(vocab_file *f, vocab_sizes *sizes, pybpe_error *err) {
    int code = file_check_header(f, err);
    if (code == PYBPE_OK) {
        sizes->tokens = f->count;
        code = file_check_tokens(f, &sizes->bytes, err);
    }
    if (code != PYBPE_OK) {
        return code;
    }
    f->has_trailer = file_find_trailer(f);
    if (!f->has_trailer) { /* room for the merges that will be recovered */
        sizes->merges = f->count;
        sizes->specials = 1;
        return PYBPE_OK;
    }
    code = file_check_trailer(f, err);
    return code == PYBPE_OK ? file_measure_trailer(f, sizes, err) : code;
}

static void vocab_copy_tokens(pybpe_vocab *v, const vocab_file *f) {
    const uint8_t *at = f->data + FILE_HEADER;
    const uint8_t *end = f->data + f->n;
    for (size_t id = 0; id < f->count; id++) {
        size_t n = *at++;
        uint8_t *to = v->bytes + v->offsets[id];
        if (PYBPE_LIKELY(n <= VOCAB_PADDING && end - at >= VOCAB_PADDING)) {
            memcpy(to, at, VOCAB_PADDING); /* the next token, or the zeros, overwrite the excess */
        } else {
            memcpy(to, at, n);
        }
        v->offsets[id + 1] = v->offsets[id] + n;
        at += n;
    }
    memset(v->bytes + v->offsets[f->count], 0, VOCAB_PADDING);
}

static void vocab_copy_trailer(pybpe_vocab *v, const vocab_file *f) {
    const uint8_t *t = f->data + f->trailer;
    v->pattern = (int32_t)load_u32(t + TRAILER_PATTERN);
    v->normalizer = (int32_t)load_u32(t + TRAILER_NORMALIZER);
    v->eot_id = load_u32(t + TRAILER_EOT);
    v->whole_words = (int32_t)load_u32(t + TRAILER_WHOLE_WORDS);
    t += TRAILER_FIXED;
    for (size_t i = 0; i < 2 * v->merges_count; i++) {
        v->merges[i] = load_u32(t + 4 * i);
    }
    t += 8 * v->merges_count;
    for (size_t i = 0; i < v->specials_count; i++) {
        v->specials[i] = load_u32(t + 4 * i);
    }
    t += 4 * v->specials_count;
    if (v->custom != NULL) {
        size_t n = f->n - TRAILER_CHECKSUM - (size_t)(t - f->data);
        memcpy(v->custom, t, n);
        v->custom[n] = '\0';
    }
}

/* Fills in the settings that a file without a trailer lacks. */
static void vocab_assume_defaults(pybpe_vocab *v, const vocab_file *f) {
    v->pattern = PYBPE_PATTERN_GPT2;
    v->normalizer = PYBPE_NORMALIZER_NONE;
    v->eot_id = f->version == 2 ? load_u32(f->data + HEADER_EOT) : f->count == GPT2_TOKENS ? GPT2_EOT : PYBPE_NO_ID;
    v->merges_count = 0;
    v->specials_count = v->eot_id != PYBPE_NO_ID;
    v->specials[0] = v->eot_id;
}

/* Where the parts of a vocabulary are in its file. Without a trailer the header's eot id is the only setting. */
static vocab_source file_source(const pybpe_vocab *v, const vocab_file *f) {
    vocab_source from = {.is_file = true, .tokens = {FILE_HEADER, 1}, .specials.first = HEADER_EOT, .eot = HEADER_EOT};
    if (f->has_trailer) {
        from.pattern = f->trailer + TRAILER_PATTERN;
        from.normalizer = f->trailer + TRAILER_NORMALIZER;
        from.eot = f->trailer + TRAILER_EOT;
        from.whole_words = f->trailer + TRAILER_WHOLE_WORDS;
        from.merges = (source_part){f->trailer + TRAILER_FIXED, 8};
        from.specials = (source_part){from.merges.first + 8 * (uint64_t)v->merges_count, 4};
    }
    return from;
}

static int vocab_fill(pybpe_vocab *v, const vocab_file *f, pybpe_error *err) {
    vocab_copy_tokens(v, f);
    if (f->has_trailer) {
        vocab_copy_trailer(v, f);
    } else {
        vocab_assume_defaults(v, f);
    }
    const vocab_source from = file_source(v, f);
    int code = vocab_index(v, &from, err);
    if (code == PYBPE_OK && !f->has_trailer) {
        code = vocab_recover(v, v->merges, &v->merges_count, err);
    }
    return code == PYBPE_OK ? vocab_resolve_merges(v, &from, err) : code;
}

int pybpe_vocab_load_mem(pybpe_vocab **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                         pybpe_error *err) {
    *out = NULL;
    PYBPE_TRY(array_check(data, n, "the bytes of a tokenizer", err));
    if (n > 0 && memchr("{ \t\r\n", data[0], 5) != NULL) { /* a tokenizer.bin begins with 0xC8 */
        return tokenizer_json_read(out, data, n, mem, err);
    }
    vocab_file f = {.data = data, .n = n};
    vocab_sizes sizes = {0};
    PYBPE_TRY(file_measure(&f, &sizes, err));
    pybpe_vocab *v;
    PYBPE_TRY(vocab_alloc(&v, &sizes, mem, err));
    int code = vocab_fill(v, &f, err);
    if (code != PYBPE_OK) {
        pybpe_vocab_free(v);
        return code;
    }
    *out = v;
    return PYBPE_OK;
}

int pybpe_vocab_load(pybpe_vocab **out, const char *path, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    uint8_t *data;
    size_t n;
    PYBPE_TRY(file_read_all(path, &data, &n, mem, err));
    pybpe_error inner;
    int code = pybpe_vocab_load_mem(out, data, n, mem, &inner);
    mem_free(mem, data);
    return code == PYBPE_OK ? PYBPE_OK : error_set(err, code, inner.offset, "%s: %s", path, inner.msg);
}
