/*
The cutters for one instruction set. Internal to the splitters.

A file such as pretok_avx2.c defines the functions that differ between machines, prefixed with the name of its
instruction set:

    avx2_mask        the top bits of some bytes, as a mask
    avx2_in          which of them are in a range
    avx2_classify    the masks of a block, from avx2_in (block_ops)
    avx2_range       avx2_in of a block in memory (range_fn)
    avx2_supported   whether this machine has the instructions

PRETOK_KERNEL makes a copy of everything else, so that the compiler uses these instructions there too.
*/
#ifndef PYBPE_PRETOK_KERNEL_H
#define PYBPE_PRETOK_KERNEL_H

#include "pretok/pretok_cl100k.h"
#include "pretok/pretok_gpt2.h"

/* The features that a kernel needs: as names for the compiler, and to ask whether this processor has them. */
#define FEATURE_NAME(name) name
#define AVX2_FEATURES(each, join) each("avx2") join each("bmi") join each("bmi2") join each("popcnt")
#define AVX512_FEATURES(each, join)                                                                                    \
    AVX2_FEATURES(each, join) join each("avx512f") join each("avx512bw") join each("avx512vbmi2")

/* A cutter: its instructions, and its pattern: gpt2, or another one, which `rules` describes. */
typedef struct cut_kind {
    block_ops ops;
    bool gpt2;
    pretok_rules rules;
} cut_kind;

/* Splits into words, and if t is not NULL, also at hard boundaries. `kind` is a constant where this is inlined. */
PRETOK_INLINE size_t cut_masked(pretok_place *place, const boundary_table *t, const uint8_t *text, size_t n,
                                size_t *ends, size_t cap, cut_kind kind) {
    size_t count = 0;
    while (place->base < n && cap - count >= BLOCK) {
        PYBPE_PREFETCH((uintptr_t)text + place->base + BLOCK_AHEAD);
        block b = block_load(text, n, place->base, place->readable, kind.ops, !kind.gpt2 && kind.rules.cased);
        uint64_t starts = kind.gpt2 ? block_starts_gpt2(place, &b, text, n, kind.rules.numbers == 1)
                                    : block_starts_cl100k(place, &b, text, n, kind.rules);
        if (b.high != 0 && t != NULL) {
            starts |= kind.ops.hard(block_places(&b, text, place->base, starts), t, text, n, place->base);
        }
        count += kind.ops.emit(ends + count, place->base, starts & ~place->ends_none);
        place->ends_none = 0;
        place->base += b.length;
    }
    if (place->base == n && !place->ended && count < cap) {
        place->ended = true;
        ends[count++] = n;
    }
    return count;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): an attribute cannot be in parentheses */
#define PRETOK_CUTTER(simd, attribute, emit, pattern, ...)                                                             \
    attribute static size_t simd##_cut_##pattern(pretok_place *place, const boundary_table *t, const uint8_t *text,    \
                                                 size_t n, size_t *ends, size_t cap) {                                 \
        const block_ops ops = {simd##_classify, simd##_common, simd##_common_cased, simd##_hard, emit};                \
        return cut_masked(place, t, text, n, ends, cap, (cut_kind){ops, __VA_ARGS__});                                 \
    }

/* Defines simd##_kernel. `find` is common_all or common_few. `emit` is emit_bits or a faster one. simd##_hard is not
   inlined into a larger function: there its loop would have to keep values in
   memory. */
#define PRETOK_KERNEL(simd, attribute, find, emit)                                                                     \
    attribute static common_chars simd##_common(const uint8_t *p) { return find(p, false, simd##_range); }             \
    attribute static common_chars simd##_common_cased(const uint8_t *p) { return find(p, true, simd##_range); }        \
    attribute __attribute__((noinline)) static uint64_t simd##_hard(uint64_t places, const boundary_table *t,          \
                                                                    const uint8_t *text, size_t n, size_t base) {      \
        return places_hard(places, t, text, n, base);                                                                  \
    }                                                                                                                  \
    PRETOK_CUTTER(simd, attribute, emit, gpt2, true, {.numbers = 3})                                                   \
    PRETOK_CUTTER(simd, attribute, emit, gpt2_digits1, true, {.numbers = 1})                                           \
    PRETOK_CUTTER(simd, attribute, emit, cl100k, false, {.numbers = 3, .end_is_one = true})                            \
    PRETOK_CUTTER(simd, attribute, emit, cl100k_digits1, false, {.numbers = 1, .end_is_one = true})                    \
    PRETOK_CUTTER(simd, attribute, emit, o200k, false, {.numbers = 3, .cased = true})                                  \
    PRETOK_CUTTER(simd, attribute, emit, o200k_digits1, false, {.numbers = 1, .cased = true})                          \
    PRETOK_CUTTER(simd, attribute, emit, llama3, false, {.numbers = 3})                                                \
    PRETOK_CUTTER(simd, attribute, emit, qwen2, false, {.numbers = 1})                                                 \
    PRETOK_CUTTER(simd, attribute, emit, nanochat, false, {.numbers = 2})                                              \
    static const pretok_kernel simd##_kernel = {                                                                       \
        #simd,                                                                                                         \
        simd##_supported,                                                                                              \
        {simd##_cut_gpt2, simd##_cut_gpt2_digits1, simd##_cut_cl100k, simd##_cut_cl100k_digits1, simd##_cut_o200k,     \
         simd##_cut_o200k_digits1, simd##_cut_llama3, simd##_cut_qwen2, simd##_cut_nanochat}};
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
