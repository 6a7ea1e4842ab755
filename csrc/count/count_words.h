/*
Comparing words by their bytes, and blocks of words. Internal. See count_sort.c and count_merge.c.

A block holds words as a .counts file does, so that no word needs an object or a pointer:

    bytes      t h e a n   the words, end to end
    lengths    3     2
    counts     7     4
*/
#ifndef PYBPE_COUNT_WORDS_H
#define PYBPE_COUNT_WORDS_H

#include "base/base.h"

/* The first 8 bytes of a word, the first one in the high bits, with zeros after a shorter word. If the prefixes of two
   words differ, they order the words. */
static inline uint64_t word_prefix(const uint8_t *word, size_t length) {
    uint64_t prefix = 0;
    if (length >= 8) {
        return __builtin_bswap64(load_u64(word));
    }
    for (size_t i = 0; i < length; i++) {
        prefix |= (uint64_t)word[i] << (56 - 8 * i);
    }
    return prefix;
}

/* Less than, equal to or greater than 0, as the first word comes before the second, equals it, or comes after it. */
static inline int words_compare(const uint8_t *a, size_t n, const uint8_t *b, size_t m) {
    size_t shorter = n < m ? n : m;
    int order = shorter > 0 ? memcmp(a, b, shorter) : 0;
    return order != 0 ? order : (n > m) - (n < m);
}

static inline bool words_block_has_room(const pybpe_words_block *block, size_t length) {
    return block->bytes_cap - block->size >= length;
}

/* Adds a word. There must be room for it. */
static inline void words_block_append(pybpe_words_block *block, const uint8_t *word, uint32_t length, uint64_t count) {
    if (length > 0) {
        memcpy(block->bytes + block->size, word, length);
    }
    block->lengths[block->count] = length;
    block->counts[block->count++] = count;
    block->size += length;
}

#endif
