/*
Hashes of words of any length, and words of up to 15 bytes as 128-bit keys. Internal.

Most words of natural text are short. Stored inline with its length, such a word is compared in two instructions,
without following a pointer:

    byte   0 1 2 ... len-1 | len ... 14 |  15
           the word        | zeros      | len

The counting table (count_table.c) and the encoder's cache (encode.c) both use these keys. Other tables use hash_mix.
*/
#ifndef PYBPE_HASH_H
#define PYBPE_HASH_H

#include "base/base.h"

enum { WORD_INLINE_MAX = 15 };

typedef struct word_key {
    uint64_t lo; /* bytes 0-7, the first in the low bits */
    uint64_t hi; /* bytes 8-14, and the length in the top byte */
} word_key;

/* The key of w[0..len), 1 <= len <= 15, byte by byte: for the last bytes of a buffer. */
static inline word_key word_key_careful(const uint8_t *w, size_t len) {
    uint8_t bytes[16] = {0};
    memcpy(bytes, w, len);
    bytes[15] = (uint8_t)len;
    return (word_key){load_u64(bytes), load_u64(bytes + 8)};
}

/* The key of w[0..len), 1 <= len <= 15, where w[0..16) may be read. A window of a small table gives the mask of the
   word's bytes: that takes fewer instructions than shifts, which must treat len <= 8 separately. */
static inline word_key word_key_fast(const uint8_t *w, size_t len) {
    static const _Alignas(32) uint8_t window[] = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                                                 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const uint8_t *mask = window + WORD_INLINE_MAX - len; /* len times 0xFF, then zeros */
    uint64_t lo = load_u64(w) & load_u64(mask);
    uint64_t hi = load_u64(w + 8) & load_u64(mask + 8);
    return (word_key){lo, hi | (uint64_t)len << 56};
}

/* The key of w[0..len), 1 <= len <= 15, in the last 15 bytes of a text that is at `begin` to `end`. Reads the last 16
   bytes of the text, if it has as many. */
static inline word_key word_key_late(const uint8_t *w, size_t len, const uint8_t *begin, const uint8_t *end) {
    if (end - begin < 16) {
        return word_key_careful(w, len);
    }
    const unsigned bits = 8 * (unsigned)(16 - (end - w)); /* before the word */
    const uint64_t lo = load_u64(end - 16);
    const uint64_t hi = load_u64(end - 8);
    const unsigned rest = bits % 64;
    uint64_t bytes[2] = {lo >> rest | hi << 1 << (63 - rest), hi >> rest};
    bytes[0] = bits < 64 ? bytes[0] : bytes[1];
    bytes[1] = bits < 64 ? bytes[1] : 0;
    const uint64_t all = UINT64_MAX;
    const uint64_t lo_mask = len < 8 ? ~(all << 8 * len) : all;
    const uint64_t hi_mask = len < 8 ? 0 : ~(all << 8 * (len - 8));
    return (word_key){bytes[0] & lo_mask, (bytes[1] & hi_mask) | (uint64_t)len << 56};
}

static inline word_key word_key_load(const uint8_t *w, size_t len, const uint8_t *end) {
    return PYBPE_LIKELY((size_t)(end - w) >= 16) ? word_key_fast(w, len) : word_key_careful(w, len);
}

/* The length of the word, and its bytes: the inverse of the functions above. The bytes after the
   word are not meaningful. */
static inline size_t word_key_unpack(word_key key, uint8_t bytes[16]) {
    store_u64(bytes, key.lo);
    store_u64(bytes + 8, key.hi);
    return (size_t)(key.hi >> 56);
}

static inline bool word_key_equal(word_key a, word_key b) { return ((a.lo ^ b.lo) | (a.hi ^ b.hi)) == 0; }

/* The upper half of a 64 x 64 bit product from products of halves, for 32-bit machines. No sum exceeds 2^64. */
/* LCOV_EXCL_START: on machines with __int128 only test_count.c uses this, and tests do not count */
__attribute__((unused)) static inline uint64_t product_high(uint64_t a, uint64_t b) {
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
    uint64_t cross = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
    uint64_t other = (a & UINT32_MAX) * (b >> 32) + (cross & UINT32_MAX);
    return (a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32);
} /* LCOV_EXCL_STOP */

/* Folds a 64 x 64 bit product: every input bit affects every output bit. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 uint128;
    uint128 product = (uint128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    return a * b ^ product_high(a, b);
#endif
}

/* Two secret numbers, drawn per table by hash_seed_draw (base.c): without them, someone could construct a text
   whose words all fall into one slot, which would take quadratic time. */
static inline uint64_t word_key_hash(word_key k, hash_seed seed) { return hash_mix(k.lo ^ seed.a, k.hi ^ seed.b); }

/* The hash of a word of any length >= 16, 16 bytes at a time. */
static inline uint64_t word_hash_long(const uint8_t *w, size_t len, hash_seed seed) {
    uint64_t h = seed.a ^ (uint64_t)len;
    for (size_t i = 0; i + 16 <= len; i += 16) {
        h = hash_mix(load_u64(w + i) ^ h, load_u64(w + i + 8) ^ seed.b);
    }
    return hash_mix(load_u64(w + len - 16) ^ h, load_u64(w + len - 8) ^ seed.b);
}

/* CRC-32, as in zlib and PNG (crc.c). */

enum { CRC_TABLES = 16 };

typedef struct crc_tables {
    uint32_t of[CRC_TABLES][256];
    bool folds; /* whether this machine multiplies polynomials */
} crc_tables;

void crc_tables_fill(crc_tables *t);
uint32_t crc_of(const crc_tables *t, const uint8_t *text, size_t n);

#endif
