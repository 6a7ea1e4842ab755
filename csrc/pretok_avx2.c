/*
The splitters with AVX2: 32 bytes at a time.
*/
#include "pretok_kernel.h"

#if defined(PYBPE_AVX)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))

/* 0xFF in each byte of x that is in low..high; the distance of a smaller byte from `low` wraps around. */
AVX2 static inline __m256i avx2_in(__m256i x, int low, int high) {
    __m256i distance = _mm256_sub_epi8(x, _mm256_set1_epi8((char)low));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(distance, _mm256_set1_epi8((char)(high - low))), distance);
}

AVX2 static inline uint64_t avx2_mask(__m256i a, __m256i b) {
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

AVX2 static inline uint64_t avx2_mask_in(__m256i a, __m256i b, int low, int high) {
    return avx2_mask(avx2_in(a, low, high), avx2_in(b, low, high));
}

AVX2 PRETOK_INLINE void avx2_classify(block *b, const uint8_t *p) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    __m256i to_lower = _mm256_set1_epi8(0x20);
    b->high = avx2_mask(x, y);
    b->letter = avx2_mask_in(_mm256_or_si256(x, to_lower), _mm256_or_si256(y, to_lower), 'a', 'z');
    b->upper = avx2_mask_in(x, y, 'A', 'Z');
    b->number = avx2_mask_in(x, y, '0', '9');
    b->blank = avx2_mask_in(x, y, ' ', ' ');
    b->space = avx2_mask_in(x, y, '\t', '\r') | b->blank;
    b->newline = avx2_mask_in(x, y, '\n', '\n') | avx2_mask_in(x, y, '\r', '\r');
    b->apostrophe = avx2_mask_in(x, y, '\'', '\'');
    b->slash = avx2_mask_in(x, y, '/', '/');
}

AVX2 static inline uint64_t avx2_range(const uint8_t *p, int low, int high) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    return avx2_mask_in(x, y, low, high);
}

PRETOK_KERNEL(avx2, AVX2, common_all, emit_bits)

const pretok_kernel *pretok_avx2(void) {
    bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                     __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    return supported ? &avx2_kernel : NULL;
}

#else

const pretok_kernel *pretok_avx2(void) { return NULL; }

#endif
