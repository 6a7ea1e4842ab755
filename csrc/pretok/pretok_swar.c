/*
The splitters on any machine: 8 bytes at a time in a 64-bit integer ("SIMD within a register").
*/
#include "pretok/pretok_kernel.h"

#define EACH_BYTE(x) (UINT64_C(0x0101010101010101) * (x))

/* The top bit of every byte that is in low..high; all bytes of x are below 0x80, and 1 <= low. */
static inline uint64_t swar_in(uint64_t x, unsigned low, unsigned high) {
    return (x + EACH_BYTE(0x80 - low)) & ~(x + EACH_BYTE(0x7F - high)) & EACH_BYTE(0x80);
}

/* The top bits of the 8 bytes as the bits at..at+7 of a mask. */
static inline uint64_t swar_mask(uint64_t top_bits, unsigned at) {
    return ((top_bits >> 7) * UINT64_C(0x0102040810204080)) >> 56 << at;
}

PRETOK_INLINE void swar_classify(block *b, const uint8_t *p) {
    for (unsigned i = 0; i < BLOCK; i += 8) {
        uint64_t x = load_u64(p + i);
        uint64_t low = x & EACH_BYTE(0x7F);
        uint64_t blank = swar_in(low, ' ', ' ');
        b->high |= swar_mask(x & EACH_BYTE(0x80), i);
        b->letter |= swar_mask(swar_in(low | EACH_BYTE(0x20), 'a', 'z') & ~x, i);
        b->upper |= swar_mask(swar_in(low, 'A', 'Z') & ~x, i);
        b->number |= swar_mask(swar_in(low, '0', '9') & ~x, i);
        b->space |= swar_mask((blank | swar_in(low, '\t', '\r')) & ~x, i);
        b->blank |= swar_mask(blank & ~x, i);
        b->newline |= swar_mask((swar_in(low, '\n', '\n') | swar_in(low, '\r', '\r')) & ~x, i);
        b->apostrophe |= swar_mask(swar_in(low, '\'', '\'') & ~x, i);
        b->slash |= swar_mask(swar_in(low, '/', '/') & ~x, i);
    }
}

static uint64_t swar_range(const uint8_t *p, int low, int high) { /* of bytes beyond ASCII */
    uint64_t mask = 0;
    for (unsigned i = 0; i < BLOCK; i += 8) {
        uint64_t x = load_u64(p + i);
        mask |= swar_mask(swar_in(x & EACH_BYTE(0x7F), (unsigned)low - 0x80, (unsigned)high - 0x80) & x, i);
    }
    return mask;
}

static bool swar_supported(void) { return true; }

PRETOK_KERNEL(swar, , common_few, emit_bits)

const pretok_kernel *pretok_swar(void) { return &swar_kernel; }
