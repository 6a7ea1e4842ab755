/*
Characters: the tables of unicode.h, which unicode_generate.py generates, and whether a text is UTF-8.
*/
#include "unicode/unicode.h"

#include "unicode/unicode_data.h"

const char *pybpe_unicode_version(void) { return UNICODE_VERSION; }

int pybpe_unicode_class(uint32_t code_point) { return code_point <= 0x10FFFF ? unicode_class(code_point) : 0; }

/* ---------------------------------------------------------------------------------------------------
Finding the first byte of a text that is not valid UTF-8, at memory speed, because every input text is checked.

With AVX2, 32 bytes at a time, as in John Keiser and Daniel Lemire, "Validating UTF-8 In Less Than One Instruction Per
Byte" (2020): three lookups, by the high and the low half of the first byte and by the high half of the second, give the
errors that two neighboring bytes can be part of. There is an error if all three agree on it. It remains to check that
bytes are continuations exactly where a lead byte two or three places before requires them.

    text ...  e4 b8 | 80 41 ...     a block may begin inside a character: the three bytes before it are checked too
              before  block

The exact position and the last bytes, and everything on other machines, are checked character by character.
*/

/* From a character's start at `at`, the start of the first character that is not valid, or n. ASCII is passed up to 8
   bytes at a time, and most characters of two and three bytes with one comparison. */
static size_t valid_by_char(const uint8_t *text, size_t at, size_t n) {
    const uint64_t unknown = 0xFF00; /* no second byte of a character */
    uint8_t length;
    for (; at < n; at += length) {
        const uint64_t next = n - at >= 8 ? load_u64(text + at) : unknown | text[at];
        const uint64_t high = next & EACH_BYTE(0x80);
        if ((next & 0x80) == 0) {
            length = high != 0 ? (uint8_t)(__builtin_ctzll(high) / 8) : 8;
        } else if ((next & 0xC0C0F0) == 0x8080E0 && text[at] != 0xE0 && text[at] != 0xED) {
            length = 3;
        } else if ((next & 0xC0E0) == 0x80C0 && text[at] >= 0xC2) {
            length = 2;
        } else if (unicode_read_multibyte(text + at, n - at, &length) == UNICODE_INVALID) {
            return at;
        }
    }
    return n;
}

#if defined(PYBPE_AVX)

#include <immintrin.h>

#define UTF8_AVX2 __attribute__((target("avx2")))

/* Errors of two bytes in a row. */
enum {
    TOO_SHORT = 1,      /* a lead byte, then no continuation */
    TOO_LONG = 2,       /* ASCII, then a continuation */
    OVERLONG_3 = 4,     /* e0, then below a0 */
    TOO_LARGE = 8,      /* f4, then above 8f, or f5 and more */
    SURROGATE = 16,     /* ed, then above 9f */
    OVERLONG_2 = 32,    /* c0 or c1 */
    TOO_LARGE_80 = 64,  /* f5 and more, then 8x */
    OVERLONG_4 = 64,    /* f0, then 8x: shares a bit with the above, whose low halves differ */
    CONTINUATIONS = 128 /* two continuations: valid if a lead byte two or three places before requires it */
};
#define ANY_LOW (TOO_SHORT | TOO_LONG | CONTINUATIONS) /* errors for any low half of the first byte */

/* A table of 16 entries, in both lanes. */
#define LOOKUP(...) _mm256_broadcastsi128_si256(_mm_setr_epi8(__VA_ARGS__))
#define C(x) ((char)(x))

UTF8_AVX2 static inline __m256i first_high(__m256i half) {
    const char lead = C(TOO_SHORT);
    return _mm256_shuffle_epi8(LOOKUP(TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
                                      C(CONTINUATIONS), C(CONTINUATIONS), C(CONTINUATIONS), C(CONTINUATIONS),
                                      C(TOO_SHORT | OVERLONG_2), lead, C(TOO_SHORT | OVERLONG_3 | SURROGATE),
                                      C(TOO_SHORT | TOO_LARGE | TOO_LARGE_80 | OVERLONG_4)),
                               half);
}

UTF8_AVX2 static inline __m256i first_low(__m256i half) {
    const char any = C(ANY_LOW), large = C(ANY_LOW | TOO_LARGE | TOO_LARGE_80);
    return _mm256_shuffle_epi8(LOOKUP(C(ANY_LOW | OVERLONG_2 | OVERLONG_3 | OVERLONG_4), C(ANY_LOW | OVERLONG_2), any,
                                      any, C(ANY_LOW | TOO_LARGE), large, large, large, large, large, large, large,
                                      large, C(ANY_LOW | TOO_LARGE | TOO_LARGE_80 | SURROGATE), large, large),
                               half);
}

UTF8_AVX2 static inline __m256i second_high(__m256i half) {
    const char none = C(TOO_SHORT), upper = C(TOO_LONG | OVERLONG_2 | CONTINUATIONS | SURROGATE | TOO_LARGE);
    return _mm256_shuffle_epi8(LOOKUP(none, none, none, none, none, none, none, none,
                                      C(TOO_LONG | OVERLONG_2 | CONTINUATIONS | OVERLONG_3 | TOO_LARGE_80 | OVERLONG_4),
                                      C(TOO_LONG | OVERLONG_2 | CONTINUATIONS | OVERLONG_3 | TOO_LARGE), upper, upper,
                                      none, none, none, none),
                               half);
}

/* The bytes shifted by `count`, preceded by the last `count` bytes of the previous vector. */
#define SHIFTED(bytes, before, count)                                                                                  \
    _mm256_alignr_epi8(bytes, _mm256_permute2x128_si256(before, bytes, 0x21), 16 - (count))

/* Nonzero where there is an error in `bytes`, or between it and `before`. */
UTF8_AVX2 static inline __m256i errors_of(__m256i bytes, __m256i before) {
    const __m256i low = _mm256_set1_epi8(0x0F);
    __m256i first = SHIFTED(bytes, before, 1);
    __m256i pairs = _mm256_and_si256(first_high(_mm256_and_si256(_mm256_srli_epi16(first, 4), low)),
                                     first_low(_mm256_and_si256(first, low)));
    pairs = _mm256_and_si256(pairs, second_high(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), low)));
    __m256i third = _mm256_subs_epu8(SHIFTED(bytes, before, 2), _mm256_set1_epi8(0xE0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(SHIFTED(bytes, before, 3), _mm256_set1_epi8((char)(0xF0 - 0x80)));
    __m256i wanted = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)0x80));
    return _mm256_xor_si256(wanted, pairs);
}

/* A position up to which all complete characters are valid: near the end of the text, or at the block with the first
   error. */
UTF8_AVX2 static size_t valid_blocks(const uint8_t *text, size_t n) {
    __m256i before = _mm256_setzero_si256();
    size_t at = 0;
    for (; n - at >= 32; at += 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(text + at));
        __m256i errors = errors_of(bytes, before);
        if (!_mm256_testz_si256(errors, errors)) {
            break;
        }
        before = bytes;
    }
    return at;
}

#undef LOOKUP
#undef C
#undef SHIFTED
#undef ANY_LOW
#undef UTF8_AVX2

/* The start of the character that text[at - 1] is part of, or `at` if that character ends there. */
static size_t last_char(const uint8_t *text, size_t at) {
    for (size_t back = 1; back <= 3 && back <= at; back++) {
        uint8_t byte = text[at - back];
        if (!byte_is_continuation(byte)) {
            return byte < 0x80 ? at : at - back;
        }
    }
    return at;
}

#endif

size_t pybpe_utf8_valid(const uint8_t *text, size_t n) {
    size_t at = 0;
#if defined(PYBPE_AVX)
    if (__builtin_cpu_supports("avx2")) { /* LCOV_EXCL_BR_LINE: make cross runs machines without it */
        at = last_char(text, valid_blocks(text, n));
    }
#endif
    return valid_by_char(text, at, n);
}

/* ---------------------------------------------------------------------------------------------------
Characters that are not complete
*/

bool unicode_begins(const uint8_t *bytes, size_t n) {
    for (unsigned filler = 0x80; filler <= 0xBF; filler += 0x3F) {
        uint8_t full[UNICODE_MAX] = {(uint8_t)filler, (uint8_t)filler, (uint8_t)filler, (uint8_t)filler};
        memcpy(full, bytes, n);
        const unicode_char c = unicode_decode(full, UNICODE_MAX, 0);
        if (c.valid && c.length > n) {
            return true;
        }
    }
    return false;
}

/* Only a lead byte among the last three, followed by nothing but continuation bytes, can begin a character that is not
   complete. */
size_t pybpe_utf8_complete(const uint8_t *bytes, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        if (!byte_is_continuation(bytes[n - back])) {
            return unicode_begins(bytes + n - back, back) ? n - back : n;
        }
    }
    return n;
}
