/*
Shingles by their definition: each from the hashes of its words alone. Slow and obvious: the library must give the same.
*/
#ifndef NAIVE_SHINGLES_H
#define NAIVE_SHINGLES_H

#include <stddef.h>
#include <stdint.h>

#define NAIVE_BASE UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t naive_scramble(uint64_t z) {
    z = (z ^ z >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    z = (z ^ z >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return z ^ z >> 33;
}

static inline uint64_t naive_hash_step(uint64_t h, uint64_t x) {
    h ^= x;
    return (h << 29 | h >> 35) * NAIVE_BASE;
}

/* The hash of a word, given its lowercase in UTF-8. */
static inline uint64_t naive_word_hash(const uint8_t *word, size_t n) {
    uint64_t h = 0;
    for (size_t start = 0; start < n; start += 8) {
        uint64_t x = 0;
        for (size_t i = start; i < n && i < start + 8; i++) {
            x |= (uint64_t)word[i] << 8 * (i - start);
        }
        h = naive_hash_step(h, x);
    }
    return naive_scramble(h);
}

/* The hash of the only shingle of a text with fewer words than a shingle. */
static inline uint64_t naive_only_shingle(const uint64_t *words, size_t count, const uint8_t *text, size_t n) {
    uint64_t h = count > 0;
    for (size_t i = 0; i < count; i++) {
        h = naive_hash_step(h, words[i]);
    }
    for (size_t i = 0; count == 0 && i < n; i++) {
        h = naive_hash_step(h, text[i] + 1U);
    }
    return naive_scramble(h);
}

/* All shingles of `size` words of text[0..n), given the hashes of its words. Returns their number. */
static inline size_t naive_shingles(const uint64_t *words, size_t count, size_t size, const uint8_t *text, size_t n,
                                    uint64_t *shingles) {
    if (count < size) {
        shingles[0] = naive_only_shingle(words, count, text, n);
        return 1;
    }
    for (size_t i = 0; i + size <= count; i++) {
        uint64_t sum = 0;
        for (size_t k = i; k < i + size; k++) {
            sum = sum * NAIVE_BASE + words[k];
        }
        shingles[i] = naive_scramble(sum);
    }
    return count - size + 1;
}

#endif
