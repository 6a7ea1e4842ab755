/*
Writing tokenizer.bin. tokenizer_bin.h has the layout.
*/
#include "llmc/tokenizer_bin.h"
#include "vocab/vocab.h"

static int check_savable(const pybpe_vocab *v, const char *path, int version, pybpe_error *err) {
    if (version != 1 && version != 2) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "%s: tokenizer.bin has no version %d; choose 2, or 1 for old readers",
                         path, version);
    }
    for (size_t id = 0; id < v->count; id++) {
        size_t n = vocab_token_length(v, id);
        if (n == 0) {
            return error_set(err, PYBPE_ERR_LIMIT, id, "%s: id %zu is unused, which tokenizer.bin cannot express", path,
                             id);
        }
        if (n > FILE_TOKEN_MAX) {
            return error_set(err, PYBPE_ERR_LIMIT, id,
                             "%s: token %zu has %zu bytes; tokenizer.bin holds tokens of up to 255", path, id, n);
        }
    }
    if (v->prefix_space || v->special_flags != NULL) {
        return error_set(err, PYBPE_ERR_LIMIT, 0, "%s: tokenizer.bin cannot hold %s: keep the tokenizer.json", path,
                         v->prefix_space ? "prefix_space" : "flags of specials");
    }
    unsigned byte;
    if (vocab_lacks_byte(v, &byte)) {
        return error_set(err, PYBPE_ERR_LIMIT, byte,
                         "%s: no token is the single byte 0x%02X; tokenizer.bin is for vocabularies that have all 256",
                         path, byte);
    }
    return PYBPE_OK;
}

static uint8_t *put_u32s(uint8_t *at, const uint32_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        store_u32(at + 4 * i, values[i]);
    }
    return at + 4 * n;
}

static uint8_t *put_tokens(uint8_t *at, const pybpe_vocab *v) {
    for (size_t id = 0; id < v->count; id++) {
        size_t n = vocab_token_length(v, id);
        *at = (uint8_t)n;
        memcpy(at + 1, vocab_token(v, id), n);
        at += 1 + n;
    }
    return at;
}

/* Lays the whole file out in data[0..n). */
static void put_file(uint8_t *data, size_t n, size_t trailer, const pybpe_vocab *v, int version) {
    size_t custom = v->custom != NULL ? strlen(v->custom) : 0;
    memset(data, 0, FILE_HEADER);
    uint64_t length = n - trailer;
    const uint32_t header[7] = {FILE_MAGIC,   (uint32_t)version, (uint32_t)v->count,      version == 2 ? v->eot_id : 0,
                                TRAILER_MARK, (uint32_t)length,  (uint32_t)(length >> 32)};
    put_u32s(data, header, 7);
    uint8_t *at = put_tokens(data + FILE_HEADER, v);
    memcpy(at, TRAILER_MAGIC, sizeof TRAILER_MAGIC);
    const uint32_t fixed[8] = {TRAILER_LAYOUT,   (uint32_t)v->pattern,      (uint32_t)v->normalizer,
                               v->eot_id,        (uint32_t)v->merges_count, (uint32_t)v->specials_count,
                               (uint32_t)custom, (uint32_t)v->whole_words};
    at = put_u32s(at + sizeof TRAILER_MAGIC, fixed, 8);
    at = put_u32s(at, v->merges, 2 * v->merges_count);
    at = put_u32s(at, v->specials, v->specials_count);
    if (custom > 0) {
        memcpy(at, v->custom, custom);
    }
    store_u64(at + custom, tokenizer_bin_checksum(data, n - TRAILER_CHECKSUM));
}

int pybpe_vocab_save(const pybpe_vocab *v, const char *path, int version, pybpe_error *err) {
    PYBPE_TRY(check_savable(v, path, version, err));
    /* No sum here can overflow: all parts are already in memory, several times larger. */
    size_t trailer = FILE_HEADER + (size_t)v->offsets[v->count] + v->count;
    size_t custom = v->custom != NULL ? strlen(v->custom) : 0;
    size_t n = trailer + TRAILER_FIXED + 8 * v->merges_count + 4 * v->specials_count + custom + TRAILER_CHECKSUM;
    uint8_t *data = mem_alloc(&v->mem, n);
    PYBPE_TRY(memory_check(data, path, n, err));
    put_file(data, n, trailer, v, version);
    pybpe_output *o;
    int code = pybpe_output_open(&o, path, &v->mem, err);
    if (code == PYBPE_OK) {
        code = pybpe_output_write(o, data, n, err);
        if (code == PYBPE_OK) {
            code = pybpe_output_commit(o, err);
        } else {
            pybpe_output_discard(o);
        }
    }
    mem_free(&v->mem, data);
    return code;
}
