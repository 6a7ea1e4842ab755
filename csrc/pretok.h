/*
Splitters: what pretok.c chooses from. Internal.
*/
#ifndef PYBPE_PRETOK_H
#define PYBPE_PRETOK_H

#include "base.h"

/* The instructions that a splitter may use, narrowest first. */
enum pretok_simd { PRETOK_SWAR, PRETOK_AVX2, PRETOK_AVX512 };

/* The contract of pybpe_pretok_split, for one pattern. */
typedef size_t pretok_split_fn(const uint8_t *text, size_t n, size_t pos, size_t *ends, size_t cap);

/* pretok_gpt2.c: 64 bytes at a time, as bit masks. */
pretok_split_fn *pretok_gpt2_splitter(enum pretok_simd simd, bool digits1);

/* pretok_scan.c: character by character. */
pretok_split_fn *pretok_scan_splitter(int pattern);

#endif
