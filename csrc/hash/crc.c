/*
CRC-32, 16 bytes at a time with 16 tables (Kounavis and Berry, "A Systematic Approach to Building High Performance
Software-Based CRC Generators", 2005).

Long texts are folded first, if the machine has the instruction (Gopal and others, "Fast CRC Computation for Generic
Polynomials Using PCLMULQDQ Instruction", 2009). The CRC of a text is that of any other one that differs from it by a
multiple of the polynomial P. So 16 bytes can be replaced by others that come later: as a polynomial, their first half is
multiplied by x^(d+32) mod P, their second half by x^(d-32) mod P, where d is the distance in bits.
*/
#include "hash/hash.h"

#define CRC_POLYNOMIAL UINT32_C(0xEDB88320) /* reflected */

void crc_tables_fill(crc_tables *t) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t c = byte;
        for (int bit = 0; bit < 8; bit++) {
            c = c >> 1 ^ (CRC_POLYNOMIAL & (0 - (c & 1)));
        }
        t->of[0][byte] = c;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        for (int i = 1; i < CRC_TABLES; i++) {
            uint32_t c = t->of[i - 1][byte];
            t->of[i][byte] = c >> 8 ^ t->of[0][c & 0xFF];
        }
    }
    t->folds = false;
#if defined(PYBPE_AVX)
    t->folds = __builtin_cpu_supports("pclmul");
#endif
}

/* The four bytes of x. `first` bytes of the block come after the first one. */
static uint32_t crc_word(const crc_tables *t, uint32_t x, int first) {
    return t->of[first][x & 0xFF] ^ t->of[first - 1][x >> 8 & 0xFF] ^ t->of[first - 2][x >> 16 & 0xFF] ^
           t->of[first - 3][x >> 24];
}

static uint32_t crc_block(const crc_tables *t, uint32_t c, const uint8_t *text) {
    return crc_word(t, c ^ load_u32(text), 15) ^ crc_word(t, load_u32(text + 4), 11) ^
           crc_word(t, load_u32(text + 8), 7) ^ crc_word(t, load_u32(text + 12), 3);
}

#if defined(PYBPE_AVX)
#include <immintrin.h>

#define CRC_FOLD __attribute__((target("pclmul")))
enum { CRC_LANES = 4 };

/* Moves 16 bytes by the distance that the powers are of, and adds the bytes that are there. */
CRC_FOLD static inline __m128i crc_fold(__m128i x, __m128i powers, __m128i there) {
    __m128i halves = _mm_xor_si128(_mm_clmulepi64_si128(x, powers, 0x00), _mm_clmulepi64_si128(x, powers, 0x11));
    return _mm_xor_si128(halves, there);
}

CRC_FOLD static inline __m128i crc_load(const uint8_t *text) {
    return _mm_loadu_si128((const __m128i *)(const void *)text);
}

/* Folds a text of `blocks` times 64 bytes, at least one, into the 16 bytes at `out`, which follow on a CRC of 0. */
CRC_FOLD static void crc_folded(uint32_t c, const uint8_t *text, size_t blocks, uint8_t *out) {
    /* x^(d-32) and x^(d+32) mod P, reflected */
    const __m128i by_512 = _mm_set_epi64x(0x1C6E41596, 0x154442BD4);
    const __m128i by_128 = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
    __m128i x[CRC_LANES];
    for (int i = 0; i < CRC_LANES; i++) {
        x[i] = crc_load(text + 16 * i);
    }
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)c));
    for (text += 64; --blocks > 0; text += 64) {
        for (int i = 0; i < CRC_LANES; i++) {
            x[i] = crc_fold(x[i], by_512, crc_load(text + 16 * i));
        }
    }
    for (int i = 1; i < CRC_LANES; i++) {
        x[i] = crc_fold(x[i - 1], by_128, x[i]);
    }
    _mm_storeu_si128((__m128i *)(void *)out, x[CRC_LANES - 1]);
}
#endif

uint32_t crc_of(const crc_tables *t, const uint8_t *text, size_t n) {
    uint32_t c = ~UINT32_C(0);
#if defined(PYBPE_AVX)
    if (t->folds && n >= 64) {
        uint8_t rest[16];
        crc_folded(c, text, n / 64, rest);
        c = crc_block(t, 0, rest);
        text += n / 64 * 64;
        n %= 64;
    }
#endif
    for (; n >= 16; n -= 16, text += 16) {
        c = crc_block(t, c, text);
    }
    for (; n >= 4; n -= 4, text += 4) {
        c = crc_word(t, c ^ load_u32(text), 3);
    }
    for (; n > 0; n -= 1) {
        c = c >> 8 ^ t->of[0][(c ^ *text++) & 0xFF];
    }
    return ~c;
}
