/*
CRC-32, 16 bytes at a time with 16 tables (Kounavis and Berry, "A Systematic Approach to Building High Performance
Software-Based CRC Generators", 2005).
*/
#include "hash/hash.h"

#define CRC_POLYNOMIAL UINT32_C(0xEDB88320) /* reflected */

void crc_tables_fill(crc_tables *t) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t c = byte;
        for (int bit = 0; bit < 8; bit++) {
            c = c >> 1 ^ (CRC_POLYNOMIAL & (0 - (c & 1)));
        }
        t->of[0][byte] = c;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        for (int i = 1; i < CRC_TABLES; i++) {
            uint32_t c = t->of[i - 1][byte];
            t->of[i][byte] = c >> 8 ^ t->of[0][c & 0xFF];
        }
    }
}

/* The four bytes of x. `first` bytes of the block come after the first one. */
static uint32_t crc_word(const crc_tables *t, uint32_t x, int first) {
    return t->of[first][x & 0xFF] ^ t->of[first - 1][x >> 8 & 0xFF] ^ t->of[first - 2][x >> 16 & 0xFF] ^
           t->of[first - 3][x >> 24];
}

static uint32_t crc_block(const crc_tables *t, uint32_t c, const uint8_t *text) {
    return crc_word(t, c ^ load_u32(text), 15) ^ crc_word(t, load_u32(text + 4), 11) ^
           crc_word(t, load_u32(text + 8), 7) ^ crc_word(t, load_u32(text + 12), 3);
}

uint32_t crc_of(const crc_tables *t, const uint8_t *text, size_t n) {
    uint32_t c = ~UINT32_C(0);
    for (; n >= 16; n -= 16, text += 16) {
        c = crc_block(t, c, text);
    }
    for (; n >= 4; n -= 4, text += 4) {
        c = crc_word(t, c ^ load_u32(text), 3);
    }
    for (; n > 0; n -= 1) {
        c = c >> 8 ^ t->of[0][(c ^ *text++) & 0xFF];
    }
    return ~c;
}
