/*
tokenizer.bin, llm.c's file for a vocabulary. Internal.

llm.c reads a header and the tokens, and ignores unused header fields and everything after the last token. pybpe stores
parts for which llm.c has no field there: merges, pattern, specials. All integers are little-endian.

    0     int32 x 256   header: [0] 20240328  [1] version 1 or 2  [2] V  [3] eot id (version 2)
                                [4] "PYBP" if a trailer follows the tokens  [5], [6] its length, low, high
    1024  V times       u8 length 1..255, bytes
    ...   trailer:
      0   8 bytes       "PYBPETRL"
      8   u32           layout of the trailer: 1
      12  u32           pattern (enum pybpe_pattern)
      16  u32           normalizer (enum pybpe_normalizer)
      20  u32           eot id, or 0xFFFFFFFF
      24  u32           number of merges      M
      28  u32           number of specials    S
      32  u32           length of the custom regular expression   C
      36  u32           1 if a word that is a token becomes that token, otherwise 0
      40  M x (u32, u32)  left id, right id, in rank order
          S x u32       ids of the specials, ascending
          C bytes       the custom regular expression
          u64           checksum of everything before it

The trailer is at the end of the file, so a truncated file or an appended tail is detected. The checksum is FNV-1a over
8-byte words (the last one padded with zeros): every step is a bijection, so damage to any single word is always
detected.
http://www.isthe.com/chongo/tech/comp/fnv/

Without a trailer (files of llm.c) the merges are recovered from the order of the ids: see
vocab_recover.c.
*/
#ifndef PYBPE_TOKENIZER_BIN_H
#define PYBPE_TOKENIZER_BIN_H

#include "base/base.h"

#define FILE_MAGIC ((uint32_t)PYBPE_MAGIC_TOKENIZER)
#define TRAILER_MARK 0x50425950u /* "PYBP" */
static const uint8_t TRAILER_MAGIC[8] = {'P', 'Y', 'B', 'P', 'E', 'T', 'R', 'L'};
enum {
    FILE_HEADER = 1024,
    HEADER_EOT = 12, /* bytes from the start of the file */
    FILE_TOKEN_MAX = 255,
    TRAILER_LAYOUT = 1,
    TRAILER_PATTERN = 12, /* bytes from the start of the trailer */
    TRAILER_NORMALIZER = 16,
    TRAILER_EOT = 20,
    TRAILER_WHOLE_WORDS = 36,
    TRAILER_FIXED = 40, /* the merges */
    TRAILER_CHECKSUM = 8
};

/* FNV-1a over 8-byte words. */
static inline uint64_t tokenizer_bin_checksum(const uint8_t *data, size_t n) {
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        h = (h ^ load_u64(data + i)) * UINT64_C(0x100000001B3);
    }
    if (i < n) {
        uint8_t last[8] = {0};
        memcpy(last, data + i, n - i);
        h = (h ^ load_u64(last)) * UINT64_C(0x100000001B3);
    }
    return h;
}

#endif
