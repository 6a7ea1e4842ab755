/*
The splitter for gpt2, which cuts 64 bytes at a time:

    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

A scanner that looks for the end of one word after the other pays for a mispredicted branch at almost every
end. Here a block of text becomes bit masks, one bit a byte, and the starts of all its words come out of a
few operations on whole masks (the idea is that of simdjson: Langdale and Lemire 2019):

    text       I t ' s   1 9 9 9 . _ _ O h !      _ is a blank
    letter     1 1 . 1 . . . . . . . . 1 1 .
    number     . . . . . 1 1 1 1 . . . . . .
    space      . . . . 1 . . . . . 1 1 . . .      all the others are "other": ' . !
    starts     1 . 1 . 1 . . . . 1 1 1 . . 1

A word starts
 1. where the class changes, except behind a blank (U+0020), which belongs to the word behind it;
 2. at the last whitespace character of a run that something else follows: \s+(?!\S) leaves it over, and
    it is a word of its own or, if it is a blank, begins the next one;
 3. behind a contraction, but not between its apostrophe and its letters. An apostrophe begins a
    contraction only if it begins a word, so candidates are few and looked at one by one;
 4. with digits1, at every number.

Characters beyond ASCII are looked up and then fill the bits of all their bytes, so that the same
operations serve them; the mask `inner` tells which bytes do not begin a character. A block ends between
two characters, so it may be some bytes shorter than 64.

A block depends on the text before it through one character and a contraction, and rule 2 looks one
character ahead. So nothing is scanned twice but the block in which a call stopped, whatever the text is.

The encoder wants long words cut further, where no merge can cross (encode_boundary.c). Between ASCII characters that is
rare. Elsewhere it is most places, and the masks tell which places to ask about, so they are found here too.
*/
#include "pretok.h"
#include "unicode.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { BLOCK = 64 };

/* One bit a byte of the block, the first byte's lowest. */
typedef struct block {
    uint64_t letter, number, space; /* the classes */
    uint64_t blank;                 /* U+0020 */
    uint64_t apostrophe;            /* U+0027 */
    uint64_t high;                  /* bytes >= 0x80 */
    uint64_t inner;                 /* bytes of a character but its first */
    uint64_t known;                 /* bytes >= 0x80 whose class is found */
    unsigned length;                /* in bytes, 1 to 64 */
} block;

/* The first bytes of common characters of two and three bytes. */
typedef struct common_chars {
    uint64_t letters2;
    uint64_t letters3;
    uint64_t others3; /* punctuation */
} common_chars;

/* What differs between the kinds of machines. */
typedef void classify_fn(block *b, const uint8_t *p);           /* masks but `inner` of p[0..64), ASCII only */
typedef uint64_t range_fn(const uint8_t *p, int low, int high); /* those of p[0..64) that lie in low..high */
typedef common_chars common_fn(const uint8_t *p);               /* those that lie in p[0..64) */
typedef uint64_t hard_fn(uint64_t places, const boundary_table *t, const uint8_t *text, size_t n, size_t base);
typedef size_t emit_fn(size_t *ends, size_t base, uint64_t starts); /* may overwrite ends[0..64) */

/* ---------------------------------------------------------------------------------------------------
From masks to starts of words
*/

/* The bits below `count`, which is 1 to 64. */
static inline uint64_t bits_below(unsigned count) { return ~UINT64_C(0) >> (BLOCK - count); }

/* Most Han letters: U+4E00 to U+9FFF are E4 B8 80 to E9 BF BF. */
__attribute__((always_inline)) static inline uint64_t common_han(const uint8_t *p, range_fn *in) {
    uint64_t continuation = in(p, 0x80, 0xBF);
    uint64_t lead = in(p, 0xE4, 0xE9) & ~(in(p, 0xE4, 0xE4) & ~(in(p, 0xB8, 0xBF) >> 1));
    return lead & continuation >> 1 & continuation >> 2;
}

/* Latin letters with accents, U+00C0 to U+00FF but for two signs (C3 97, C3 B7) and U+0100 to U+027F; Greek ones,
   U+03A3 to U+03FF but for a sign (CF B6); Cyrillic ones, U+0400 to U+047F. */
__attribute__((always_inline)) static inline uint64_t common_letters2(const uint8_t *p, range_fn *in) {
    uint64_t continuation = in(p, 0x80, 0xBF) >> 1;
    uint64_t signs = (in(p, 0x97, 0x97) | in(p, 0xB7, 0xB7)) >> 1;
    uint64_t latin = (in(p, 0xC3, 0xC3) & ~signs) | in(p, 0xC4, 0xC9);
    uint64_t greek = (in(p, 0xCE, 0xCE) & in(p, 0xA3, 0xBF) >> 1) | (in(p, 0xCF, 0xCF) & ~(in(p, 0xB6, 0xB6) >> 1));
    return (latin | greek | in(p, 0xD0, 0xD1)) & continuation;
}

/* Dashes and quotation marks, U+2010 to U+2027; Chinese punctuation, U+3001 to U+3004 and U+3008 to U+3020; wide forms
   of ASCII's, U+FF01 to U+FF0F and U+FF1A to U+FF20. */
__attribute__((always_inline)) static inline uint64_t common_others3(const uint8_t *p, range_fn *in) {
    uint64_t second_80 = in(p, 0x80, 0x80) >> 1;
    uint64_t second_bc = in(p, 0xBC, 0xBC) >> 1;
    uint64_t third = in(p, 0x81, 0xA0) >> 2;
    uint64_t third_e2 = in(p, 0x90, 0xA7) >> 2;
    uint64_t third_e3 = third & ~(in(p, 0x85, 0x87) >> 2);
    uint64_t third_ef = third & ~(in(p, 0x90, 0x99) >> 2);
    return (in(p, 0xE2, 0xE2) & second_80 & third_e2) | (in(p, 0xE3, 0xE3) & second_80 & third_e3) |
           (in(p, 0xEF, 0xEF) & second_bc & third_ef);
}

/* Common characters beyond ASCII, all at once. */
static inline void block_add_common(block *b, common_chars c) {
    uint64_t inner2 = c.letters2 << 1;
    uint64_t inner3 = c.letters3 << 1 | c.letters3 << 2;
    uint64_t others = c.others3 << 1 | c.others3 << 2;
    b->inner = inner2 | inner3 | others;
    b->letter |= c.letters2 | inner2 | c.letters3 | inner3;
    b->known = b->letter | b->inner | c.others3;
}

/* Ends a full block before its last character if that does not fit. A byte of 0xC0 or more begins a character. */
static inline void block_fit(block *b, const uint8_t *p) {
    b->length -= p[BLOCK - 1] >= 0xC0 ? 1 : p[BLOCK - 2] >= 0xE0 ? 2 : p[BLOCK - 3] >= 0xF0 ? 3 : 0;
}

/* Then the other characters beyond ASCII, one by one. */
static inline void block_add_multibyte(block *b, const uint8_t *text, size_t n, size_t base) {
    uint64_t rest = b->high & ~b->known & bits_below(b->length);
    while (rest != 0) {
        unsigned at = (unsigned)__builtin_ctzll(rest);
        unicode_char c = unicode_decode_multibyte(text + base + at, n - base - at);
        uint64_t bits = bits_below(c.length) << at;
        rest &= ~bits;
        b->inner |= bits & bits << 1;
        b->letter |= (c.class & UNICODE_LETTER) != 0 ? bits : 0;
        b->number |= (c.class & UNICODE_NUMBER) != 0 ? bits : 0;
        b->space |= (c.class & UNICODE_SPACE) != 0 ? bits : 0;
    }
}

/* The first bytes of the characters whose last bytes are given; they are at most 3 bytes long. */
static inline uint64_t first_bytes(uint64_t last, uint64_t inner) {
    uint64_t second = (last & inner) >> 1;
    uint64_t third = (second & inner) >> 1;
    return (last | second | third) & ~inner;
}

/* The length of the contraction at text[pos], an apostrophe; 0 if there is none. */
static inline unsigned contraction_length_gpt2(const uint8_t *text, size_t n, size_t pos) {
    uint8_t a = n - pos > 1 ? text[pos + 1] : 0;
    uint8_t b = n - pos > 2 ? text[pos + 2] : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') {
        return 2;
    }
    return (a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e') ? 3 : 0;
}

/* Rule 3. A contraction may reach into the next block. */
static void starts_add_contractions(uint64_t *starts, const block *b, pretok_carry *next, const uint8_t *text, size_t n,
                                    size_t base) {
    uint64_t candidates = *starts & b->apostrophe;
    while (candidates != 0) {
        unsigned at = (unsigned)__builtin_ctzll(candidates);
        candidates &= candidates - 1;
        unsigned length = contraction_length_gpt2(text, n, base + at);
        if (length == 0) {
            continue;
        }
        if (at + 1 < b->length) {
            *starts &= ~(UINT64_C(1) << (at + 1));
        } else {
            next->joined |= 1;
        }
        if (at + length < b->length) {
            *starts |= UINT64_C(1) << (at + length);
        } else {
            next->forced |= UINT64_C(1) << (at + length - b->length);
        }
    }
}

/* Rules 1, 2 and 4, and what earlier contractions left. `space_follows` tells of the character behind the
   block; the end of the text counts as whitespace, as for \s+(?!\S). */
static inline uint64_t block_starts(const block *b, const pretok_carry *c, bool space_follows, bool digits1) {
    unsigned last = b->length - 1;
    uint64_t changes = (b->letter ^ (b->letter << 1 | c->letter)) | (b->number ^ (b->number << 1 | c->number)) |
                       (b->space ^ (b->space << 1 | c->space));
    uint64_t starts = changes & ~(b->blank << 1 | c->blank);
    uint64_t before_space = b->space >> 1 | (uint64_t)space_follows << last;
    starts |= first_bytes(b->space & ~before_space, b->inner);
    if (digits1) {
        starts |= b->number & ~b->inner;
    }
    return ((starts & ~c->joined) | c->forced) & bits_below(b->length);
}

static inline pretok_carry block_carry(const block *b) {
    unsigned last = b->length - 1;
    return (pretok_carry){
        .letter = b->letter >> last & 1,
        .number = b->number >> last & 1,
        .space = b->space >> last & 1,
        .blank = b->blank >> last & 1,
    };
}

/* Whether whitespace, or the end, is at text[pos], behind the block. That matters only if the block ends with
   whitespace, so a character that takes long to look up is not looked up without need. */
static inline bool whitespace_follows(const block *b, const uint8_t *text, size_t n, size_t pos) {
    if (pos < n && !byte_is_ascii(text[pos]) && (b->space >> (b->length - 1) & 1) == 0) {
        return false;
    }
    unicode_char c = unicode_decode(text, n, pos);
    return c.length == 0 || (c.class & UNICODE_SPACE) != 0;
}

/* The masks of the block at text[base]. Behind the end of the text it sees zeros. */
__attribute__((always_inline)) static inline block block_load(const uint8_t *text, size_t n, size_t base,
                                                              classify_fn *classify, common_fn *find) {
    uint8_t rest[BLOCK] = {0};
    const uint8_t *p = text + base;
    block b = {.length = BLOCK};
    if (PYBPE_UNLIKELY(n - base < BLOCK)) {
        b.length = (unsigned)(n - base);
        p = memcpy(rest, p, b.length);
    }
    classify(&b, p);
    if (b.high != 0) {
        if (PYBPE_LIKELY(b.length == BLOCK)) {
            block_fit(&b, p);
        }
        block_add_common(&b, find(p));
        block_add_multibyte(&b, text, n, base);
    }
    return b;
}

/* The places of a block, other than starts of words, that are asked about: those between characters of which at least
   one is beyond ASCII. */
static inline uint64_t block_places(const block *b, const uint8_t *text, size_t base, uint64_t starts) {
    uint64_t high_before = base > 0 && !byte_is_ascii(text[base - 1]);
    return (b->high | b->high << 1 | high_before) & ~b->inner & ~starts & bits_below(b->length);
}

/* Of the `places` of the block at text[base], those where no merge can cross. */
__attribute__((always_inline)) static inline uint64_t places_hard(uint64_t places, const boundary_table *t,
                                                                  const uint8_t *text, size_t n, size_t base) {
    bool at_edge = base < 4 || n - base < BLOCK + 4;
    uint64_t soft = 0;
    for (uint64_t rest = places; rest != 0; rest &= rest - 1) {
        unsigned at = (unsigned)__builtin_ctzll(rest);
        uint64_t around =
            PYBPE_UNLIKELY(at_edge) ? boundary_around_careful(text, n, base + at) : boundary_around(text + base + at);
        soft |= (uint64_t)boundary_is_soft(t, around) << at;
    }
    return places & ~soft;
}

/* Cuts into words, or if t is not NULL, further. */
__attribute__((always_inline)) static inline size_t cut_masked(pretok_place *place, const boundary_table *t,
                                                               const uint8_t *text, size_t n, size_t *ends, size_t cap,
                                                               classify_fn *classify, common_fn *find, hard_fn *hard,
                                                               emit_fn *emit, bool digits1) {
    pretok_carry c = place->carry;
    size_t base = place->base;
    size_t count = 0;
    while (base < n && cap - count >= BLOCK) {
        block b = block_load(text, n, base, classify, find);
        uint64_t starts = block_starts(&b, &c, whitespace_follows(&b, text, n, base + b.length), digits1);
        c = block_carry(&b);
        if ((starts & b.apostrophe) != 0) {
            starts_add_contractions(&starts, &b, &c, text, n, base);
        }
        if (b.high != 0 && t != NULL) {
            starts |= hard(block_places(&b, text, base, starts), t, text, n, base);
        }
        count += emit(ends + count, base, starts & ~place->ends_none);
        place->ends_none = 0;
        base += b.length;
    }
    place->carry = c;
    place->base = base;
    if (base == n && !place->ended && count < cap) {
        place->ended = true;
        ends[count++] = n;
    }
    return count;
}

/* ---------------------------------------------------------------------------------------------------
Any machine: 8 bytes at a time in a 64-bit integer ("SIMD within a register")
*/

#define EACH_BYTE(x) (UINT64_C(0x0101010101010101) * (x))

/* The top bit of every byte that lies in low..high; all bytes of x are below 0x80, and 1 <= low. */
static inline uint64_t bytes_in(uint64_t x, unsigned low, unsigned high) {
    return (x + EACH_BYTE(0x80 - low)) & ~(x + EACH_BYTE(0x7F - high)) & EACH_BYTE(0x80);
}

/* The top bits of the 8 bytes as the bits at..at+7 of a mask. */
static inline uint64_t gather(uint64_t top_bits, unsigned at) {
    return ((top_bits >> 7) * UINT64_C(0x0102040810204080)) >> 56 << at;
}

static void swar_classify(block *b, const uint8_t *p) {
    for (unsigned i = 0; i < BLOCK; i += 8) {
        uint64_t x = load_u64(p + i);
        uint64_t low = x & EACH_BYTE(0x7F);
        uint64_t blank = bytes_in(low, ' ', ' ');
        b->high |= gather(x & EACH_BYTE(0x80), i);
        b->letter |= gather(bytes_in(low | EACH_BYTE(0x20), 'a', 'z') & ~x, i);
        b->number |= gather(bytes_in(low, '0', '9') & ~x, i);
        b->space |= gather((blank | bytes_in(low, '\t', '\r')) & ~x, i);
        b->blank |= gather(blank & ~x, i);
        b->apostrophe |= gather(bytes_in(low, '\'', '\'') & ~x, i);
    }
}

static uint64_t swar_in(const uint8_t *p, int low, int high) { /* of bytes beyond ASCII */
    uint64_t mask = 0;
    for (unsigned i = 0; i < BLOCK; i += 8) {
        uint64_t x = load_u64(p + i);
        mask |= gather(bytes_in(x & EACH_BYTE(0x7F), (unsigned)low - 0x80, (unsigned)high - 0x80) & x, i);
    }
    return mask;
}

/* Only Han letters: the others are faster one by one. */
static common_chars swar_common(const uint8_t *p) { return (common_chars){.letters3 = common_han(p, swar_in)}; }

static size_t swar_emit(size_t *ends, size_t base, uint64_t starts) {
    size_t count = 0;
    for (; starts != 0; starts &= starts - 1) {
        ends[count++] = base + (unsigned)__builtin_ctzll(starts);
    }
    return count;
}

/* ---------------------------------------------------------------------------------------------------
AVX2: 32 bytes at a time
*/

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))

/* 0xFF in each byte of x that lies in low..high; a byte's distance from `low` wraps around below it. */
AVX2 static inline __m256i avx2_in(__m256i x, int low, int high) {
    __m256i distance = _mm256_sub_epi8(x, _mm256_set1_epi8((char)low));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(distance, _mm256_set1_epi8((char)(high - low))), distance);
}

AVX2 static inline uint64_t avx2_mask(__m256i a, __m256i b) {
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

AVX2 static inline uint64_t avx2_mask_in(__m256i a, __m256i b, int low, int high) {
    return avx2_mask(avx2_in(a, low, high), avx2_in(b, low, high));
}

AVX2 static void avx2_classify(block *b, const uint8_t *p) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    __m256i to_lower = _mm256_set1_epi8(0x20);
    b->high = avx2_mask(x, y);
    b->letter = avx2_mask_in(_mm256_or_si256(x, to_lower), _mm256_or_si256(y, to_lower), 'a', 'z');
    b->number = avx2_mask_in(x, y, '0', '9');
    b->blank = avx2_mask_in(x, y, ' ', ' ');
    b->space = avx2_mask_in(x, y, '\t', '\r') | b->blank;
    b->apostrophe = avx2_mask_in(x, y, '\'', '\'');
}

AVX2 static inline uint64_t avx2_range(const uint8_t *p, int low, int high) {
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    return avx2_mask_in(x, y, low, high);
}

AVX2 static common_chars avx2_common(const uint8_t *p) {
    return (common_chars){common_letters2(p, avx2_range), common_han(p, avx2_range), common_others3(p, avx2_range)};
}

AVX2 static size_t avx2_emit(size_t *ends, size_t base, uint64_t starts) { return swar_emit(ends, base, starts); }

/* ---------------------------------------------------------------------------------------------------
AVX-512: 64 bytes at a time, and the positions without a loop over bits
*/

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi2,bmi,bmi2,popcnt")))

AVX512 static inline uint64_t avx512_in(__m512i x, int low, int high) {
    __m512i distance = _mm512_sub_epi8(x, _mm512_set1_epi8((char)low));
    return _mm512_cmple_epu8_mask(distance, _mm512_set1_epi8((char)(high - low)));
}

AVX512 static void avx512_classify(block *b, const uint8_t *p) {
    __m512i x = _mm512_loadu_si512(p);
    b->high = _mm512_movepi8_mask(x);
    b->letter = avx512_in(_mm512_or_si512(x, _mm512_set1_epi8(0x20)), 'a', 'z');
    b->number = avx512_in(x, '0', '9');
    b->blank = _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(' '));
    b->space = avx512_in(x, '\t', '\r') | b->blank;
    b->apostrophe = _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8('\''));
}

AVX512 static inline uint64_t avx512_range(const uint8_t *p, int low, int high) {
    return avx512_in(_mm512_loadu_si512(p), low, high);
}

AVX512 static common_chars avx512_common(const uint8_t *p) {
    return (common_chars){common_letters2(p, avx512_range), common_han(p, avx512_range),
                          common_others3(p, avx512_range)};
}

/* The numbers of the set bits are moved together, then widened eight by eight. */
AVX512 static size_t avx512_emit(size_t *ends, size_t base, uint64_t starts) {
    static const uint8_t numbers[BLOCK] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    };
    size_t count = (size_t)__builtin_popcountll(starts);
    uint8_t set[BLOCK];
    _mm512_storeu_si512(set, _mm512_maskz_compress_epi8(starts, _mm512_loadu_si512(numbers)));
    __m512i bases = _mm512_set1_epi64((long long)base);
    for (size_t i = 0; i < count; i += 8) {
        __m512i eight = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(set + i)));
        _mm512_storeu_si512(ends + i, _mm512_add_epi64(bases, eight));
    }
    return count;
}

#endif

/* ---------------------------------------------------------------------------------------------------
Choice
*/

/* Those functions that each kind of machine gets its own copy of. simd_hard stays a function of its own: as part of a
   larger one its loop would have to keep values in memory. */
/* NOLINTBEGIN(bugprone-macro-parentheses): an attribute cannot stand in parentheses */
#define CUTTERS(simd, attribute)                                                                                       \
    attribute __attribute__((noinline)) static uint64_t simd##_hard(uint64_t places, const boundary_table *t,          \
                                                                    const uint8_t *text, size_t n, size_t base) {      \
        return places_hard(places, t, text, n, base);                                                                  \
    }                                                                                                                  \
    attribute static size_t simd##_cut(pretok_place *place, const boundary_table *t, const uint8_t *text, size_t n,    \
                                       size_t *ends, size_t cap) {                                                     \
        return cut_masked(place, t, text, n, ends, cap, simd##_classify, simd##_common, simd##_hard, simd##_emit,      \
                          false);                                                                                      \
    }                                                                                                                  \
    attribute static size_t simd##_cut_digits1(pretok_place *place, const boundary_table *t, const uint8_t *text,      \
                                               size_t n, size_t *ends, size_t cap) {                                   \
        return cut_masked(place, t, text, n, ends, cap, simd##_classify, simd##_common, simd##_hard, simd##_emit,      \
                          true);                                                                                       \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

CUTTERS(swar, )
#if defined(__x86_64__)
CUTTERS(avx2, AVX2)
CUTTERS(avx512, AVX512)
#endif

pretok_cut_fn *pretok_gpt2_cutter(enum pretok_simd simd, bool digits1) {
#if defined(__x86_64__)
    if (simd == PRETOK_AVX512) {
        return digits1 ? avx512_cut_digits1 : avx512_cut;
    }
    if (simd == PRETOK_AVX2) {
        return digits1 ? avx2_cut_digits1 : avx2_cut;
    }
#endif
    (void)simd;
    return digits1 ? swar_cut_digits1 : swar_cut;
}
