/*
Hard boundaries: places inside a word that no merge can ever cross.

A Chinese "word" is a whole clause, and clauses rarely repeat, so a cache of words does not help. But hardly any
vocabulary has tokens for all pairs of adjacent characters. Where no token reaches across, the word can be cut, and the
pieces (single characters and common phrases) repeat all the time.

Why a cut is exact: consider a place in a word, and the first merge that crosses it. Nothing crossed the place before,
so this merge joins a token that ends at the place with one that begins there. If no merge of the vocabulary joins two
such tokens, with these bytes before and after the place, there is no first merge, so no merge ever crosses. The pairs
on the left and those on the right then never interact: however the merges of both sides interleave by rank, each side
takes the same steps in the same order as it would alone. So the tokens of the word are the tokens of the left part
followed by the tokens of the right part. (This does not depend on any property of the vocabulary or on valid UTF-8.)

Finding such places: a place between bytes l and r is never cut if r continues a character. Elsewhere we look at the
window: the two characters that meet there, at most the three nearest bytes of each. A merge whose tokens are long
enough to cover the window adds it to the set of windows. A merge that lacks one byte of it adds the 256 windows that it
may be part of. Any other merge adds (l, r) to the set of pairs, and so does any merge between two ASCII bytes, for
which the window is (l, r). If a place is in neither set, no merge joins there.

The set of windows is a Bloom filter with two bits of one word per window, so it can give false positives. They only
make a piece longer.
*/
#include "encode/encode.h"

/* Which of the bytes around a place form its window: at most the three nearest bytes of each of the two characters that
   meet there. `shape`, from its top bit: three bits of the byte after the place, two of the one before it, two of the
   one before that. */
static uint64_t window_of_shape(unsigned shape) {
    const unsigned continuation = 2; /* top bits 10 */
    uint64_t left = UINT64_C(0xFF000000);
    if ((shape >> 2 & 3) == continuation) {
        left = (shape & 3) == continuation ? UINT64_C(0xFFFFFF00) : UINT64_C(0xFFFF0000);
    }
    unsigned lead = shape >> 4; /* 110: of two bytes; 111: of three or four */
    uint64_t right = lead == 7 ? 0xFFFFFF : lead == 6 ? 0xFFFF : 0xFF;
    return left | right << 32;
}

/* Which of the bytes around place i, 1 <= i < n, belong to the token, if it has n bytes. */
static uint64_t bytes_inside(size_t n, size_t i) {
    const size_t before = i < 4 ? i : 4;
    const size_t after = n - i < 4 ? n - i : 4;
    return UINT64_MAX << (8 * (4 - before)) & UINT64_MAX >> (8 * (4 - after));
}

static size_t enter_pair(boundary_table *t, uint8_t left, uint8_t right) {
    t->pairs[right * 4 + left / 64] |= UINT64_C(1) << left % 64;
    return 0;
}

static void enter_window(boundary_table *t, uint64_t around) {
    uint64_t index = boundary_window_index(t, around);
    t->windows[index >> 12] |= UINT64_C(1) << (index & 63) | UINT64_C(1) << (index >> 6 & 63);
}

/* The bytes around place i of a token, with zeros for bytes outside of it. */
static uint64_t token_around(const pybpe_vocab *v, const uint8_t *token, size_t n, size_t i) {
    if (token + i - v->bytes < 4) {
        return boundary_around_careful(token, n, i);
    }
    return boundary_around(token + i) & bytes_inside(n, i); /* zeros follow the last token */
}

/* Adds the place where merge m joins. Returns the number of windows that it adds. Before the set is allocated, windows
   are only counted. */
static size_t enter_merge(boundary_table *t, const pybpe_vocab *v, size_t m) {
    const uint8_t *token = vocab_token(v, v->merged[m]);
    size_t n = vocab_token_length(v, v->merged[m]);
    size_t i = vocab_token_length(v, v->merges[2 * m]);
    uint8_t left = token[i - 1];
    uint8_t right = token[i];
    if (byte_is_continuation(right)) {
        return 0;
    }
    if (byte_is_ascii(left) && byte_is_ascii(right)) { /* most merges of most vocabularies */
        return enter_pair(t, left, right);
    }
    uint64_t around = token_around(v, token, n, i);
    uint64_t missing = t->window_masks[boundary_shape(around)] & ~bytes_inside(n, i);
    uint64_t unit = missing & EACH_BYTE(1);             /* the lowest bit of each missing byte */
    bool unsure = i == 1 && byte_is_continuation(left); /* how long the window is depends on the byte before */
    if (unsure || (unit & (unit - 1)) != 0) {
        return enter_pair(t, left, right);
    }
    const unsigned windows = missing == 0 ? 1 : 256;
    for (unsigned byte = 0; byte < windows && t->windows != NULL; byte++) {
        enter_window(t, around | unit * byte);
    }
    return windows;
}

/* There are no cuts inside characters: adds all pairs with a continuation byte on the right. */
static void enter_continuations(boundary_table *t) {
    memset(t->pairs + 0x80 * 256 / 64, 0xFF, (0xC0 - 0x80) * 256 / 8);
}

int boundary_table_new(boundary_table *t, const pybpe_vocab *v, const pybpe_allocator *mem, pybpe_error *err) {
    /* 16 bits per window keep false positives rare, about one place in 100. More than 2^22 bits would not stay in a
       level 2 cache. */
    const unsigned log2_min = 12;
    const unsigned log2_max = 22;
    *t = (boundary_table){.windows = NULL};
    for (unsigned shape = 0; shape < 128; shape++) {
        t->window_masks[shape] = window_of_shape(shape);
    }
    enter_continuations(t);
    uint32_t *with_windows = mem_alloc_array(mem, v->merges_count + 1, sizeof *with_windows); /* such merges: few */
    PYBPE_TRY(memory_check(with_windows, "the boundaries of an encoder", v->merges_count * sizeof *with_windows, err));
    size_t windows = 0;
    size_t count = 0;
    for (size_t m = 0; m < v->merges_count; m++) {
        const size_t added = enter_merge(t, v, m);
        windows += added;
        with_windows[count] = (uint32_t)m;
        count += added > 0;
    }
    unsigned log2_bits = log2_min;
    while (log2_bits < log2_max && (size_t)1 << log2_bits < 16 * windows) {
        log2_bits += 1;
    }
    unsigned log2_words = log2_bits - 6;
    size_t words = (size_t)1 << log2_words;
    t->windows_shift = 64 - log2_words - 12;
    t->windows = mem_alloc_zeroed(mem, words, sizeof *t->windows);
    for (size_t i = 0; t->windows != NULL && i < count; i++) {
        enter_merge(t, v, with_windows[i]);
    }
    mem_free(mem, with_windows);
    return memory_check(t->windows, "the boundaries of an encoder", words * sizeof *t->windows, err);
}

void boundary_table_free(boundary_table *t, const pybpe_allocator *mem) {
    mem_free(mem, t->windows);
    t->windows = NULL;
}
