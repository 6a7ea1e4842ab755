/*
The splitters with NEON, which every AArch64 processor has: 64 bytes at a time, in four vectors.

NEON cannot turn a vector into a mask of bits in one instruction. So the bytes are loaded in turn: the first into vector
0, the second into vector 1, the fifth into vector 0 again. Then the four bits of four neighboring bytes come together
by shifts with insertion, and the 64 bits of a block by five of them (Langdale's way, in Validark, "Use interleaved
vectors for parsing on ARM", 2024):

    vector       0         1         2         3           top bits: a b c d, of bytes 4i to 4i+3
    shifted      ba.......           dc......              by 1
                 dcba....                                  by 2
                 dcbadcba                                  by 4; then 4 bits of both neighbors

To add another instruction set, write a file like this one: NAME_classify and NAME_range, PRETOK_KERNEL, and
pretok_NAME(), which returns the kernel, or NULL if this processor lacks the instructions. The attribute is the
compiler's target(...), so no flag is needed. Declare it in pretok_splitter.h, and add it to `kernel_choose` in pretok.c,
the widest first, and its name to `simd_names` there. Add the name to the lists in tests/c/test_pretok.c and test_encode.c, tests/fuzz/fuzz_pretok.c,
tests/py/test_pretok.py and test_determinism.py, which compare it with `swar`. For a processor that you do not have, add
a target to tests/cross.mk. Keep the code only if it is faster.
*/
#include "pretok/pretok_kernel.h"

#if defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>

/* The top bits of the bytes. */
static inline uint64_t neon_mask(uint8x16x4_t x) {
    uint8x16_t two = vsriq_n_u8(x.val[1], x.val[0], 1);
    uint8x16_t four = vsriq_n_u8(vsriq_n_u8(x.val[3], x.val[2], 1), two, 2);
    uint16x8_t both = vreinterpretq_u16_u8(vsriq_n_u8(four, four, 4));
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(both, 4)), 0);
}

/* A bit for every byte of x that is in low..high. The distance of a smaller byte from `low` wraps around. */
static inline uint64_t neon_in(uint8x16x4_t x, int low, int high) {
    uint8x16x4_t found;
    for (int i = 0; i < 4; i++) {
        uint8x16_t distance = vsubq_u8(x.val[i], vdupq_n_u8((uint8_t)low));
        found.val[i] = low == high ? vceqq_u8(x.val[i], vdupq_n_u8((uint8_t)low))
                                   : vcleq_u8(distance, vdupq_n_u8((uint8_t)(high - low)));
    }
    return neon_mask(found);
}

PRETOK_INLINE void neon_classify(block *b, const uint8_t *p) {
    uint8x16x4_t x = vld4q_u8(p);
    uint8x16x4_t lower;
    for (int i = 0; i < 4; i++) {
        lower.val[i] = vorrq_u8(x.val[i], vdupq_n_u8(0x20));
    }
    b->high = neon_mask(x);
    b->letter = neon_in(lower, 'a', 'z');
    b->upper = neon_in(x, 'A', 'Z');
    b->number = neon_in(x, '0', '9');
    b->blank = neon_in(x, ' ', ' ');
    b->space = neon_in(x, '\t', '\r') | b->blank;
    b->newline = neon_in(x, '\n', '\n') | neon_in(x, '\r', '\r');
    b->apostrophe = neon_in(x, '\'', '\'');
    b->slash = neon_in(x, '/', '/');
}

PRETOK_INLINE uint64_t neon_range(const uint8_t *p, int low, int high) { return neon_in(vld4q_u8(p), low, high); }

static bool neon_supported(void) { return true; }

PRETOK_KERNEL(neon, , common_all, emit_bits)

const pretok_kernel *pretok_neon(void) { return &neon_kernel; }

#else

const pretok_kernel *pretok_neon(void) { return NULL; }

#endif
