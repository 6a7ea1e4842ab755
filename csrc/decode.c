/*
Decoding: ids -> bytes.

A token is looked up in the offsets and copied. Most tokens are short, so where the output has room a
token is copied as 16 bytes, whatever its length, and the next one overwrites the excess: one load and
one store instead of a call to memcpy. (Behind the last token of the vocabulary there are readable zeros.)
*/
#include "vocab.h"

static int bad_id(const pybpe_vocab *v, uint32_t id, size_t i, pybpe_error *err) {
    return error_set(err, PYBPE_ERR_VALUE, i, "id %u at position %zu is not in the vocabulary, %s", id, i,
                     id < v->count ? "which leaves it unused" : "which ends before it");
}

static int decode_length(const pybpe_vocab *v, const void *ids, int id_bytes, size_t n, size_t *length,
                         pybpe_error *err) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = id_at(ids, id_bytes, i);
        size_t len = id < v->count ? vocab_token_length(v, id) : 0;
        if (PYBPE_UNLIKELY(len == 0)) {
            return bad_id(v, id, i, err);
        }
        if (PYBPE_UNLIKELY(!size_add(total, len, &total))) {
            return error_set(err, PYBPE_ERR_LIMIT, i, "the decoded bytes are more than a size can count");
        }
    }
    *length = total;
    return PYBPE_OK;
}

/* Inlined once for each id_bytes, so that the loop has no branch on it. */
static inline __attribute__((always_inline)) int decode_into(const pybpe_vocab *v, const void *ids, int id_bytes,
                                                             size_t n, uint8_t *out, size_t cap, size_t *length,
                                                             pybpe_error *err) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = id_at(ids, id_bytes, i);
        size_t len = id < v->count ? vocab_token_length(v, id) : 0;
        if (PYBPE_UNLIKELY(len == 0)) {
            return bad_id(v, id, i, err);
        }
        const uint8_t *token = vocab_token(v, id);
        if (PYBPE_LIKELY(len <= VOCAB_PADDING && cap - at >= VOCAB_PADDING)) {
            memcpy(out + at, token, VOCAB_PADDING);
        } else if (len <= cap - at) {
            memcpy(out + at, token, len);
        } else {
            return error_set(err, PYBPE_ERR_LIMIT, i, "the decoded bytes are more than the %zu that there is room for",
                             cap);
        }
        at += len;
    }
    *length = at;
    return PYBPE_OK;
}

int pybpe_decode(const pybpe_vocab *v, const void *ids, int id_bytes, size_t n, uint8_t *out, size_t cap,
                 size_t *length, pybpe_error *err) {
    if (id_bytes != 2 && id_bytes != 4) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "ids of %d bytes; expected 2 or 4", id_bytes);
    }
    if (out == NULL) {
        return decode_length(v, ids, id_bytes, n, length, err);
    }
    return id_bytes == 2 ? decode_into(v, ids, 2, n, out, cap, length, err)
                         : decode_into(v, ids, 4, n, out, cap, length, err);
}

/* How many bytes the UTF-8 character that starts with these two may have; 0 if none starts so.
   The second byte's range depends on the first (Unicode 16, table 3-7); -1 if there is none yet. */
static size_t character_length(uint8_t first, int second) {
    if (first >= 0xC2 && first <= 0xDF) {
        return 2;
    }
    if (first >= 0xE0 && first <= 0xEF) {
        bool fits = second < 0 || (second >= (first == 0xE0 ? 0xA0 : 0x80) && second <= (first == 0xED ? 0x9F : 0xBF));
        return fits ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        bool fits = second < 0 || (second >= (first == 0xF0 ? 0x90 : 0x80) && second <= (first == 0xF4 ? 0x8F : 0xBF));
        return fits ? 4 : 0;
    }
    return 0;
}

size_t pybpe_utf8_complete(const uint8_t *bytes, size_t n) {
    /* Only a lead byte among the last three, followed by nothing but continuation bytes, can start a
       character that is not complete. */
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        uint8_t byte = bytes[n - back];
        if ((byte & 0xC0) != 0x80) {
            size_t length = character_length(byte, back > 1 ? bytes[n - back + 1] : -1);
            return length > back ? n - back : n;
        }
    }
    return n;
}
