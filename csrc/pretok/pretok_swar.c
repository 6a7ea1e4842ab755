/*
The splitters on any machine: 8 bytes at a time in a 64-bit integer ("SIMD within a register").
*/
#include "pretok/pretok_kernel.h"

/* The top bits of the 8 bytes as the bits at..at+7 of a mask. */
static inline uint64_t swar_mask(uint64_t top_bits, unsigned at) {
    return ((top_bits >> 7) * UINT64_C(0x0102040810204080)) >> 56 << at;
}

PRETOK_INLINE void swar_classify(block *b, const uint8_t *p) {
    for (unsigned i = 0; i < BLOCK; i += 8) {
        uint64_t x = load_u64(p + i);
        uint64_t low = x & EACH_BYTE(0x7F);
        uint64_t blank = bytes_between(low, ' ', ' ');
        b->high |= swar_mask(x & EACH_BYTE(0x80), i);
        b->letter |= swar_mask(bytes_between(low | EACH_BYTE(0x20), 'a', 'z') & ~x, i);
        b->upper |= swar_mask(bytes_between(low, 'A', 'Z') & ~x, i);
        b->number |= swar_mask(bytes_between(low, '0', '9') & ~x, i);
        b->space |= swar_mask((blank | bytes_between(low, '\t', '\r')) & ~x, i);
        b->blank |= swar_mask(blank & ~x, i);
        b->newline |= swar_mask((bytes_between(low, '\n', '\n') | bytes_between(low, '\r', '\r')) & ~x, i);
        b->apostrophe |= swar_mask(bytes_between(low, '\'', '\'') & ~x, i);
        b->slash |= swar_mask(bytes_between(low, '/', '/') & ~x, i);
    }
}

static uint64_t swar_range(const uint8_t *p, int low, int high) { /* of bytes beyond ASCII */
    uint64_t mask = 0;
    for (unsigned i = 0; i < BLOCK; i += 8) {
        uint64_t x = load_u64(p + i);
        mask |= swar_mask(bytes_between(x & EACH_BYTE(0x7F), (unsigned)low - 0x80, (unsigned)high - 0x80) & x, i);
    }
    return mask;
}

static bool swar_supported(void) { return true; }

PRETOK_KERNEL(swar, , common_few, emit_bits)

const pretok_kernel *pretok_swar(void) { return &swar_kernel; }
