/*
BLAKE2b (RFC 7693) with digests of 16 bytes and without a key. They name documents, and find equal ones.
*/
#include "hash/hash.h"

enum { DIGEST_BLOCK = 128 };

static const uint64_t digest_initial[8] = {
    UINT64_C(0x6A09E667F3BCC908), UINT64_C(0xBB67AE8584CAA73B), UINT64_C(0x3C6EF372FE94F82B),
    UINT64_C(0xA54FF53A5F1D36F1), UINT64_C(0x510E527FADE682D1), UINT64_C(0x9B05688C2B3E6C1F),
    UINT64_C(0x1F83D9ABFB41BD6B), UINT64_C(0x5BE0CD19137E2179),
};

/* The order of the words of a block in 12 rounds. The last two equal the first two. */
static const uint8_t digest_orders[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static inline uint64_t digest_turned(uint64_t x, int bits) { return x >> bits | x << (64 - bits); }

/* The function G of the RFC. */
static inline void digest_mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x, uint64_t y) {
    *a += *b + x;
    *d = digest_turned(*d ^ *a, 32);
    *c += *d;
    *b = digest_turned(*b ^ *c, 24);
    *a += *b + y;
    *d = digest_turned(*d ^ *a, 16);
    *c += *d;
    *b = digest_turned(*b ^ *c, 63);
}

/* A round with its order: a constant, so that the compiler knows where everything is. */
INLINE_ALWAYS void digest_round(uint64_t *v, const uint64_t *m, const uint8_t *o) {
    digest_mix(v + 0, v + 4, v + 8, v + 12, m[o[0]], m[o[1]]);
    digest_mix(v + 1, v + 5, v + 9, v + 13, m[o[2]], m[o[3]]);
    digest_mix(v + 2, v + 6, v + 10, v + 14, m[o[4]], m[o[5]]);
    digest_mix(v + 3, v + 7, v + 11, v + 15, m[o[6]], m[o[7]]);
    digest_mix(v + 0, v + 5, v + 10, v + 15, m[o[8]], m[o[9]]);
    digest_mix(v + 1, v + 6, v + 11, v + 12, m[o[10]], m[o[11]]);
    digest_mix(v + 2, v + 7, v + 8, v + 13, m[o[12]], m[o[13]]);
    digest_mix(v + 3, v + 4, v + 9, v + 14, m[o[14]], m[o[15]]);
}

/* Adds a block to the state. `end` is the number of bytes of the text up to its end. */
static void digest_add(uint64_t state[8], const uint8_t *block, uint64_t end, bool is_last) {
    uint64_t m[16], v[16];
    for (size_t i = 0; i < 16; i++) {
        m[i] = load_u64(block + 8 * i);
        v[i] = i < 8 ? state[i] : digest_initial[i - 8];
    }
    v[12] ^= end;
    v[14] = is_last ? ~v[14] : v[14];
    digest_round(v, m, digest_orders[0]);
    digest_round(v, m, digest_orders[1]);
    digest_round(v, m, digest_orders[2]);
    digest_round(v, m, digest_orders[3]);
    digest_round(v, m, digest_orders[4]);
    digest_round(v, m, digest_orders[5]);
    digest_round(v, m, digest_orders[6]);
    digest_round(v, m, digest_orders[7]);
    digest_round(v, m, digest_orders[8]);
    digest_round(v, m, digest_orders[9]);
    digest_round(v, m, digest_orders[0]);
    digest_round(v, m, digest_orders[1]);
    for (size_t i = 0; i < 8; i++) {
        state[i] ^= v[i] ^ v[i + 8];
    }
}

int pybpe_texts_digest(uint8_t *out, const pybpe_strings *texts, pybpe_error *err) {
    const int code = strings_check(texts, "texts", err);
    for (size_t i = 0; code == PYBPE_OK && i < texts->count; i++) {
        const uint8_t *const text = string_at(texts, i);
        const size_t n = string_length(texts, i);
        uint64_t state[8];
        uint8_t last[DIGEST_BLOCK] = {0};
        size_t at = 0;
        memcpy(state, digest_initial, sizeof state);
        state[0] ^= 0x01010000 ^ PYBPE_DIGEST_SIZE;
        for (; n - at > DIGEST_BLOCK; at += DIGEST_BLOCK) {
            digest_add(state, text + at, at + DIGEST_BLOCK, false);
        }
        memcpy(last, text + at, n - at);
        digest_add(state, last, n, true);
        for (size_t k = 0; k < PYBPE_DIGEST_SIZE; k++) {
            *out++ = (uint8_t)(state[k / 8] >> 8 * (k % 8));
        }
    }
    return code;
}
