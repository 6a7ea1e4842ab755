/*
The splitters with AVX2: 32 bytes at a time.
*/
#include "pretok/pretok_kernel.h"

#if defined(PYBPE_AVX)
#include <immintrin.h>

#define AVX2 __attribute__((target(AVX2_FEATURES(FEATURE_NAME, ","))))

/* 64 bytes. */
typedef struct avx2_bytes {
    __m256i half[2];
} avx2_bytes;

AVX2 static inline avx2_bytes avx2_load(const uint8_t *p) {
    const __m256i *halves = (const __m256i *)(const void *)p;
    return (avx2_bytes){{_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)}};
}

/* The top bits of the bytes. */
AVX2 static inline uint64_t avx2_mask(avx2_bytes x) {
    return (uint32_t)_mm256_movemask_epi8(x.half[0]) | (uint64_t)(uint32_t)_mm256_movemask_epi8(x.half[1]) << 32;
}

/* A bit for every byte of x that is in low..high. The distance of a smaller byte from `low` wraps around. */
AVX2 static inline uint64_t avx2_in(avx2_bytes x, int low, int high) {
    for (int i = 0; i < 2; i++) {
        __m256i distance = _mm256_sub_epi8(x.half[i], _mm256_set1_epi8((char)low));
        x.half[i] = _mm256_cmpeq_epi8(_mm256_min_epu8(distance, _mm256_set1_epi8((char)(high - low))), distance);
    }
    return avx2_mask(x);
}

AVX2 PRETOK_INLINE void avx2_classify(block *b, const uint8_t *p) {
    avx2_bytes x = avx2_load(p);
    avx2_bytes lower;
    for (int i = 0; i < 2; i++) {
        lower.half[i] = _mm256_or_si256(x.half[i], _mm256_set1_epi8(0x20));
    }
    b->high = avx2_mask(x);
    b->letter = avx2_in(lower, 'a', 'z');
    b->upper = avx2_in(x, 'A', 'Z');
    b->number = avx2_in(x, '0', '9');
    b->blank = avx2_in(x, ' ', ' ');
    b->space = avx2_in(x, '\t', '\r') | b->blank;
    b->newline = avx2_in(x, '\n', '\n') | avx2_in(x, '\r', '\r');
    b->apostrophe = avx2_in(x, '\'', '\'');
    b->slash = avx2_in(x, '/', '/');
}

AVX2 static inline uint64_t avx2_range(const uint8_t *p, int low, int high) { return avx2_in(avx2_load(p), low, high); }

/* Eight bits at a time, whether there are as many or not: a loop that ends where they do would often be mispredicted. */
AVX2 static size_t avx2_emit(size_t *ends, size_t base, uint64_t starts) {
    const size_t count = (size_t)__builtin_popcountll(starts);
    for (size_t i = 0; i < count; i += 8) {
        for (size_t k = i; k < i + 8; k++) {
            ends[k] = base + _tzcnt_u64(starts);
            starts = _blsr_u64(starts);
        }
    }
    return count;
}

static bool avx2_supported(void) { return AVX2_FEATURES(__builtin_cpu_supports, &&); }

PRETOK_KERNEL(avx2, AVX2, common_all, avx2_emit)

const pretok_kernel *pretok_avx2(void) { return &avx2_kernel; }

#else

const pretok_kernel *pretok_avx2(void) { return NULL; }

#endif
