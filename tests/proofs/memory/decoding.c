/*
csrc/vocab/decode.c: any ids, and a vocabulary with few tokens, some of them too long for a record.
*/
#include "prove.h"

#include <base/base.c>
#include <vocab/decode.c>

enum { TOKENS = 3, LONGEST = 20 };

static token_record records[TOKENS + 1];
static uint64_t offsets[TOKENS + 1];
static uint8_t bytes[TOKENS * LONGEST + VOCAB_PADDING];

/* Any lengths of tokens, and their records as vocab_index fills them. A token of length 0 is unused. */
static pybpe_vocab any_vocab(void) {
    for (size_t id = 0; id < TOKENS; id++) {
        size_t length = (size_t)any_between(0, LONGEST);
        offsets[id + 1] = offsets[id] + length;
        records[id].length = length > 0 && length <= RECORD_MAX ? (uint8_t)length : RECORD_NONE;
    }
    records[TOKENS].length = RECORD_NONE;
    return (pybpe_vocab){.bytes = bytes, .offsets = offsets, .records = records, .count = TOKENS};
}

/* Any ids; half of them are in the vocabulary. */
static void *any_ids(size_t n, int id_bytes) {
    uint8_t *ids = any_bytes(n * (size_t)id_bytes);
#if !defined(PROVE)
    for (size_t i = 0; i < n; i++) {
        if (any_bool()) {
            uint8_t id = (uint8_t)any_between(0, TOKENS);
            memset(ids + i * (size_t)id_bytes, 0, (size_t)id_bytes);
            ids[i * (size_t)id_bytes] = id; /* little-endian; on other machines, another id */
        }
    }
#endif
    return ids;
}

/* Eight tokens, of which some may be missing, fit in the room that is required for them. */
void prove_step(size_t n) {
    const pybpe_vocab v = any_vocab();
    void *ids = any_bytes(n * 4);
    uint8_t *out = malloc(STEP_ROOM);
    ASSUME(out != NULL);
    CHECK(step_copy(v.records, v.count, ids, 4, n - STEP, out) <= STEP * (size_t)RECORD_NONE);
    free(ids);
    free(out);
}

/* What that proof shows. */
size_t any_step(const token_record *all, size_t count, const void *ids, int id_bytes, size_t i, uint8_t *out) {
    (void)count;
    check_readable(all, sizeof *all);
    check_readable((const uint8_t *)ids + i * (size_t)id_bytes, STEP * (size_t)id_bytes);
    any_fill(out, STEP_ROOM);
    return (size_t)any_between(0, STEP * RECORD_NONE);
}

/* What is decoded fits in the buffer. */
static void decode(size_t n, int id_bytes, size_t cap) {
    const pybpe_vocab v = any_vocab();
    void *ids = any_ids(n, id_bytes);
    uint8_t *out = malloc(cap);
    size_t length = 0;
    ASSUME(out != NULL);
    int code = pybpe_decode(&v, ids, id_bytes, n, out, cap, &length, NULL);
    CHECK(code == PYBPE_OK || code == PYBPE_ERR_VALUE || code == PYBPE_ERR_LIMIT);
    CHECK(length <= cap);
    free(ids);
    free(out);
}

void prove_narrow(size_t n) { decode(n, 2, 2 * LONGEST); }
void prove_wide(size_t n) { decode(n, 4, 2 * LONGEST); }

/* Longer lists of ids, and buffers in which eight tokens fit. */
void prove_many(size_t n) { decode(n, any_bool() ? 2 : 4, (size_t)any_between(1, 2 * STEP_ROOM)); }

/* Ids are measured without reading after them. */
void prove_measure(size_t n) {
    const pybpe_vocab v = any_vocab();
    void *ids = any_ids(n, 4);
    size_t length;
    if (pybpe_decode(&v, ids, 4, n, NULL, 0, &length, NULL) == PYBPE_OK) {
        CHECK(length >= n && length <= n * LONGEST);
    }
    free(ids);
}

PROOFS(PROOF(step, 8, 9, 9, "", "memcpy:any_copy") PROOF(narrow, 0, 3, 4, "", "memcpy:any_copy step_copy:any_step")
           PROOF(wide, 0, 3, 4, "", "memcpy:any_copy step_copy:any_step") PROOF(measure, 0, 3, 9) DRAWN(many, 0, 30, 4))
