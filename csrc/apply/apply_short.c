/*
Merging short words.

A word starts as its bytes. As long as some adjacent pair of tokens is in the table, the pair with the lowest rank (the
leftmost, if there are several) becomes one token. apply_short keeps the tokens in a small array, the ranks of the pairs
of neighbors in another, and the positions that still start a token in a bit mask:

    position   0  1  2  3  4  5  6            0  1  2  3  4  5  6
    id         #  h  e  l  l  o  #            #  h  e  ll .  o  #
    rank       -  7  -  3  -  -  -     ->     -  7  5  -  -  -  -
    alive      1  1  1  1  1  1  1            1  1  1  1  0  1  1
                        ^ lowest: merge             ^  ^ only these two are looked up again

The #s at both ends belong to no pair, so the first and the last token are not special cases. Words differ, so any
branch on their contents is mispredicted often and costs as much as checking all positions. So the loop has no branch
except its end condition. Long words go to apply_long.c.

A word with characters of several bytes starts as characters instead of bytes where that gives the same tokens: see
apply_chars.h. This saves most merges of a Chinese word.
*/
#include "apply/apply.h"
#include "apply/apply_chars.h"

/* Positions run from 1 to n. 0 and n + 1 are outside. The masks have one bit per position. */
enum { POSITIONS = 64, GROUP = 4 };
_Static_assert(APPLY_SHORT_MAX + 2 <= POSITIONS, "a position of a short word is a bit of 64");

static inline unsigned position_after(uint64_t alive, unsigned i) {
    return i + 1 + (unsigned)__builtin_ctzll(alive >> (i + 1));
}

static inline unsigned position_before(uint64_t alive, unsigned i) {
    return 63 - (unsigned)__builtin_clzll(alive & ((UINT64_C(1) << i) - 1));
}

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): apply_short fills whole groups, which it cannot follow */
static inline uint64_t least_of_group(const uint64_t *x) { return min_u64(min_u64(x[0], x[1]), min_u64(x[2], x[3])); }

/* The minimum of the group that a position is in. */
static inline uint64_t least_beside(const uint64_t *pairs, size_t position) {
    return least_of_group(&pairs[position / GROUP * GROUP]);
}

static inline uint64_t pair_of(uint32_t rank, unsigned position) { return (uint64_t)rank << 32 | position; }

/* A word while it is merged. */
typedef struct short_word {
    uint32_t ids[POSITIONS];
    uint64_t pairs[POSITIONS];         /* rank << 32 | position, so that the minimum is the pair to merge */
    uint64_t least[POSITIONS / GROUP]; /* of a group of pairs */
    uint64_t alive;
    size_t groups; /* a multiple of GROUP */
} short_word;

/* ---------------------------------------------------------------------------------------------------
The start
*/

/* Lays out the bytes. Returns their number. */
INLINE_ALWAYS unsigned start_bytes(short_word *s, const merge_table *t, const uint8_t *w, size_t n) {
    unsigned two = w[0]; /* bytes, kept between rounds: for a loop that loads both, gcc generates slow vector code */
    s->ids[1] = t->byte_ids[two];
    for (unsigned i = 1; i < n; i++) {
        two = (two & 0xFF) << 8 | w[i];
        s->ids[i + 1] = t->byte_ids[two & 0xFF];
        s->pairs[i] = pair_of(t->byte_ranks[two], i);
    }
    return (unsigned)n;
}

/* Lays out the characters that are sure to become tokens, and the bytes of the others. Returns the number of both. */
INLINE_ALWAYS unsigned start_chars(short_word *s, const merge_table *t, const uint8_t *w, size_t n) {
    unsigned last = 0;
    for (size_t i = 0; i < n;) {
        apply_char c = apply_char_at(t, w, n, i);
        last += 1;
        s->ids[last] = c.id;
        i += c.length;
    }
    for (unsigned i = 1; i < last; i++) {
        s->pairs[i] = pair_of(merge_rank(t, s->ids[i], s->ids[i + 1]), i);
    }
    return last;
}

/* Completes a word of n tokens. */
INLINE_ALWAYS void start_finish(short_word *s, const merge_table *t, unsigned n) {
    s->ids[0] = t->outside;
    s->ids[n + 1] = t->outside;
    s->pairs[0] = UINT64_MAX;
    s->groups = (n / GROUP + GROUP) / GROUP * GROUP; /* at least n / GROUP + 1, and a multiple of GROUP too */
    for (size_t i = n; i < GROUP * s->groups; i++) {
        s->pairs[i] = UINT64_MAX;
    }
    for (size_t g = 0; g < s->groups; g++) {
        s->least[g] = least_of_group(s->pairs + GROUP * g);
    }
    s->alive = (UINT64_C(4) << n) - 1;
}

/* ---------------------------------------------------------------------------------------------------
The loop
*/

INLINE_ALWAYS uint64_t least_pair(const short_word *s) {
    uint64_t best = least_of_group(s->least);
    for (size_t g = GROUP; g < s->groups; g += GROUP) {
        best = min_u64(best, least_of_group(s->least + g));
    }
    return best;
}

INLINE_ALWAYS void pair_drop(short_word *s, unsigned position) { s->pairs[position] = UINT64_MAX; }

/* Enters the rank of a pair that had none. Returns the minimum of `best` and the pair. */
INLINE_ALWAYS uint64_t pair_enter(short_word *s, uint32_t rank, unsigned position, uint64_t best) {
    if (rank == MERGE_NONE) {
        return best;
    }
    uint64_t pair = pair_of(rank, position);
    s->pairs[position] = pair;
    s->least[position / GROUP] = min_u64(s->least[position / GROUP], pair);
    return min_u64(best, pair);
}

/* Merges the pair `best`, and returns the next one. */
INLINE_ALWAYS uint64_t pair_merge(short_word *s, const merge_table *t, uint64_t best) {
    unsigned at = (unsigned)best;
    unsigned gone = position_after(s->alive, at);
    s->alive &= ~(UINT64_C(1) << gone);
    unsigned after = position_after(s->alive, at);
    unsigned before = position_before(s->alive, at);
    s->ids[at] = merge_result(t, (uint32_t)(best >> 32));
    pair_drop(s, gone);
    pair_drop(s, at);
    pair_drop(s, before);
    s->least[gone / GROUP] = least_beside(s->pairs, gone);
    s->least[at / GROUP] = least_beside(s->pairs, at);
    s->least[before / GROUP] = least_beside(s->pairs, before);
    best = least_pair(s);
    best = pair_enter(s, merge_rank(t, s->ids[at], s->ids[after]), at, best);
    return pair_enter(s, merge_rank(t, s->ids[before], s->ids[at]), before, best);
}

/* Merges a word of n tokens. Writes the tokens that remain to `out`, and returns their number. */
INLINE_ALWAYS size_t word_merge_short(short_word *s, const merge_table *t, unsigned n, uint32_t *out) {
    start_finish(s, t, n);
    for (uint64_t best = least_pair(s); best >> 32 != MERGE_NONE;) {
        best = pair_merge(s, t, best);
    }
    size_t count = 0;
    for (uint64_t alive = s->alive & ((UINT64_C(2) << n) - 2); alive != 0; alive &= alive - 1) {
        out[count++] = s->ids[__builtin_ctzll(alive)];
    }
    return count;
}

static bool word_is_ascii(const uint8_t *w, size_t n) {
    unsigned all = 0;
    for (size_t i = 0; i < n; i++) {
        all |= w[i];
    }
    return byte_is_ascii((uint8_t)all);
}

size_t apply_short_bytes(const merge_table *t, const uint8_t *w, size_t n, uint32_t *ids) {
    short_word s;
    return word_merge_short(&s, t, start_bytes(&s, t, w, n), ids);
}

size_t apply_short(const merge_table *t, const uint8_t *w, size_t n, uint32_t *ids) {
    short_word s;
    if (t->char_ranks == NULL || word_is_ascii(w, n)) {
        return apply_short_bytes(t, w, n, ids);
    }
    return word_merge_short(&s, t, start_chars(&s, t, w, n), ids);
}
