/*
The splitters with AVX-512: 64 bytes at a time, and the positions of bits without a loop over them.
*/
#include "pretok/pretok_kernel.h"

#if defined(PYBPE_AVX) && !defined(PYBPE_NO_AVX512)
#include <immintrin.h>

#define AVX512 __attribute__((target(AVX512_FEATURES(FEATURE_NAME, ","))))

/* The top bits of the bytes. */
AVX512 static inline uint64_t avx512_mask(__m512i x) { return _mm512_movepi8_mask(x); }

/* A bit for every byte of x that is in low..high. The distance of a smaller byte from `low` wraps around. */
AVX512 static inline uint64_t avx512_in(__m512i x, int low, int high) {
    if (low == high) {
        return _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8((char)low));
    }
    __m512i distance = _mm512_sub_epi8(x, _mm512_set1_epi8((char)low));
    return _mm512_cmple_epu8_mask(distance, _mm512_set1_epi8((char)(high - low)));
}

AVX512 PRETOK_INLINE void avx512_classify(block *b, const uint8_t *p) {
    __m512i x = _mm512_loadu_si512(p);
    b->high = avx512_mask(x);
    b->letter = avx512_in(_mm512_or_si512(x, _mm512_set1_epi8(0x20)), 'a', 'z');
    b->upper = avx512_in(x, 'A', 'Z');
    b->number = avx512_in(x, '0', '9');
    b->blank = avx512_in(x, ' ', ' ');
    b->space = avx512_in(x, '\t', '\r') | b->blank;
    b->newline = avx512_in(x, '\n', '\n') | avx512_in(x, '\r', '\r');
    b->apostrophe = avx512_in(x, '\'', '\'');
    b->slash = avx512_in(x, '/', '/');
}

AVX512 static inline uint64_t avx512_range(const uint8_t *p, int low, int high) {
    return avx512_in(_mm512_loadu_si512(p), low, high);
}

AVX512 static inline void avx512_widen(size_t *ends, const uint8_t *indices, __m512i bases) {
    __m512i eight = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)indices));
    _mm512_storeu_si512(ends, _mm512_add_epi64(bases, eight));
}

/* The indices of the set bits are compressed, then widened eight at a time: always 24 of them, because most blocks of
   natural text have fewer, and a loop that ends where they do would often be mispredicted. */
AVX512 static size_t avx512_emit(size_t *ends, size_t base, uint64_t starts) {
    static const uint8_t numbers[BLOCK] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    };
    size_t count = (size_t)__builtin_popcountll(starts);
    uint8_t set[BLOCK];
    _mm512_storeu_si512(set, _mm512_maskz_compress_epi8(starts, _mm512_loadu_si512(numbers)));
    __m512i bases = _mm512_set1_epi64((long long)base);
    avx512_widen(ends, set, bases);
    avx512_widen(ends + 8, set + 8, bases);
    avx512_widen(ends + 16, set + 16, bases);
    for (size_t i = 24; i < count; i += 8) {
        avx512_widen(ends + i, set + i, bases);
    }
    return count;
}

static bool avx512_supported(void) { return AVX512_FEATURES(__builtin_cpu_supports, &&); }

PRETOK_KERNEL(avx512, AVX512, common_all, avx512_emit)

const pretok_kernel *pretok_avx512(void) { return &avx512_kernel; }

#else

const pretok_kernel *pretok_avx512(void) { return NULL; }

#endif
