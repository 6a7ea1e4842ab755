/*
Decoding: ids -> bytes.

Most tokens are short and stored with their length in records of 16 bytes. If the output has room, the whole record is
copied and the next token overwrites the excess: one load and one store instead of a call to memcpy.

Ids are not checked individually. All ids outside the vocabulary share one extra record. Its length, like the length of unused
ids and of tokens that do not fit in a record, is larger than the total length of several short tokens can be. So
checking the sum of the lengths of several tokens shows whether all are valid and short. If not, they are decoded one by
one.
*/
#include "vocab/vocab.h"

static int bad_id(const pybpe_vocab *v, uint32_t id, size_t i, pybpe_error *err) {
    return error_set(err, PYBPE_ERR_VALUE, i, "id %u at position %zu is not in the vocabulary, %s", id, i,
                     id < v->count ? "which leaves it unused" : "which ends before it");
}

/* The length of any token, or 0 if there is none. */
static size_t length_of(const pybpe_vocab *v, uint32_t id) { return id < v->count ? vocab_token_length(v, id) : 0; }

/* The loops process STEP ids at once. The sum of their lengths shows whether the tokens of all are in records. */
enum { STEP = 8, STEP_MAX = 8 * RECORD_MAX };
_Static_assert(STEP_MAX < (int)RECORD_NONE, "one token that is missing shows in the sum");

INLINE_ALWAYS const token_record *record_at(const token_record *records, size_t count, const void *ids, int id_bytes,
                                            size_t i) {
    size_t id = id_at(ids, id_bytes, i);
    return &records[id < count ? id : count];
}

/* The sum of the lengths of the STEP ids from i on. */
INLINE_ALWAYS size_t step_length(const uint8_t *lengths, size_t count, const void *ids, int id_bytes, size_t i) {
    size_t total = 0;
    for (size_t k = i; k < i + STEP; k++) {
        size_t id = id_at(ids, id_bytes, k);
        total += lengths[id < count ? id : count];
    }
    return total;
}

/* Also copies them to `out`. If the sum is more than STEP_MAX, the contents of `out` are undefined. */
INLINE_ALWAYS size_t step_copy(const token_record *records, size_t count, const void *ids, int id_bytes, size_t i,
                               uint8_t *out) {
    size_t total = 0;
    for (size_t k = i; k < i + STEP; k++) {
        const token_record *record = record_at(records, count, ids, id_bytes, k);
        memcpy(out + total, record, sizeof *record);
        total += record->length;
    }
    return total;
}

/* What step_copy may write: a missing token moves the next one by RECORD_NONE. */
enum { STEP_ROOM = (STEP - 1) * (size_t)RECORD_NONE + sizeof(token_record) };

/* This and decode_copy are compiled once per id_bytes, so that their loops have no branch on it. */
INLINE_ALWAYS int decode_length(const pybpe_vocab *v, const void *ids, int id_bytes, size_t n, size_t *length,
                                pybpe_error *err) {
    const uint8_t *lengths = v->lengths; /* copies, which the loops keep in registers */
    const size_t count = v->count;
    size_t total = 0;
    for (size_t i = 0; i < n;) {
        size_t step = n - i >= STEP ? step_length(lengths, count, ids, id_bytes, i) : RECORD_NONE;
        size_t taken = STEP;
        if (PYBPE_UNLIKELY(step > STEP_MAX)) {
            uint32_t id = id_at(ids, id_bytes, i);
            step = length_of(v, id);
            taken = 1;
            if (step == 0) {
                return bad_id(v, id, i, err);
            }
        }
        if (PYBPE_UNLIKELY(!size_add(total, step, &total))) { /* LCOV_EXCL_START: ids for 2^64 bytes fit no memory */
            return error_set(err, PYBPE_ERR_LIMIT, i, "the number of decoded bytes does not fit size_t");
        } /* LCOV_EXCL_STOP */
        i += taken;
    }
    *length = total;
    return PYBPE_OK;
}

/* The caller's buffer for the decoded bytes. */
typedef struct byte_buffer {
    uint8_t *bytes;
    size_t cap, length;
} byte_buffer;

INLINE_ALWAYS int decode_into(const pybpe_vocab *v, const void *ids, int id_bytes, size_t n, byte_buffer *to,
                              pybpe_error *err) {
    uint8_t *out = to->bytes; /* copies, as above */
    const size_t cap = to->cap;
    const token_record *records = v->records;
    const size_t count = v->count;
    size_t at = 0;
    for (size_t i = 0; i < n;) {
        bool room = n - i >= STEP && cap - at >= STEP_ROOM;
        size_t step = room ? step_copy(records, count, ids, id_bytes, i, out + at) : RECORD_NONE;
        if (PYBPE_LIKELY(step <= STEP_MAX)) {
            at += step;
            i += STEP;
            continue;
        }
        uint32_t id = id_at(ids, id_bytes, i);
        step = length_of(v, id);
        if (step == 0) {
            return bad_id(v, id, i, err);
        }
        if (step > cap - at) {
            return error_set(err, PYBPE_ERR_LIMIT, i, "the decoded bytes need more than the %zu bytes of the buffer",
                             cap);
        }
        memcpy(out + at, vocab_token(v, id), step);
        at += step;
        i += 1;
    }
    to->length = at;
    return PYBPE_OK;
}

int pybpe_decode(const pybpe_vocab *v, const void *ids, int id_bytes, size_t n, uint8_t *out, size_t cap,
                 size_t *length, pybpe_error *err) {
    if (id_bytes != 2 && id_bytes != 4) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "ids of %d bytes; expected 2 or 4", id_bytes);
    }
    if (out == NULL) {
        return id_bytes == 2 ? decode_length(v, ids, 2, n, length, err) : decode_length(v, ids, 4, n, length, err);
    }
    byte_buffer to = {.bytes = out, .cap = cap};
    int code = id_bytes == 2 ? decode_into(v, ids, 2, n, &to, err) : decode_into(v, ids, 4, n, &to, err);
    if (code == PYBPE_OK) {
        *length = to.length;
    }
    return code;
}
