/*
Merging short words.

A word starts as its bytes. As long as some adjacent pair of tokens is in the table, the pair with the lowest rank (the
leftmost, if there are several) becomes one token. apply_short keeps the tokens in a small array, the rank of the pair
of each with the next one in another, and the positions that still start a token in a bit mask:

    position   0  1  2  3  4  5  6            0  1  2  3  4  5  6
    id         #  h  e  l  l  o  #            #  h  e  ll .  o  #
    rank       -  7  -  3  -  -  -     ->     -  7  5  -  -  -  -
    alive      1  1  1  1  1  1  1            1  1  1  1  0  1  1
                        ^ lowest: merge             ^  ^ only these two are looked up again

The #s at both ends belong to no pair, so the first and the last token are not special cases. Words differ, so any
branch on their contents is mispredicted often and costs as much as checking all positions. So the loop has no branch
except its end condition. Long words go to apply_long.c.
*/
#include "apply.h"

/* Positions run from 1 to n; 0 and n + 1 are outside. The masks have one bit per position. */
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

size_t apply_short(const merge_table *t, const uint8_t *w, size_t n, uint32_t *out) {
    uint32_t ids[POSITIONS];
    uint64_t pairs[POSITIONS];         /* rank << 32 | position, so that the minimum is the pair to merge */
    uint64_t least[POSITIONS / GROUP]; /* of each group of pairs */
    ids[0] = t->outside;
    ids[n + 1] = t->outside;
    pairs[0] = UINT64_MAX;
    unsigned two = w[0]; /* bytes, kept between rounds: for a loop that loads both, gcc generates slow vector code */
    ids[1] = t->byte_ids[two];
    for (unsigned i = 1; i < n; i++) {
        two = (two & 0xFF) << 8 | w[i];
        ids[i + 1] = t->byte_ids[two & 0xFF];
        pairs[i] = pair_of(t->byte_ranks[two], i);
    }
    size_t groups = (n / GROUP + GROUP) / GROUP * GROUP; /* at least n / GROUP + 1, and a multiple of GROUP too */
    for (size_t i = n; i < GROUP * groups; i++) {
        pairs[i] = UINT64_MAX;
    }
    for (size_t g = 0; g < groups; g++) {
        least[g] = least_of_group(pairs + GROUP * g);
    }
    uint64_t alive = (UINT64_C(4) << n) - 1;
    uint64_t best = least_of_group(least);
    for (size_t g = GROUP; g < groups; g += GROUP) {
        best = min_u64(best, least_of_group(least + g));
    }
    for (;;) {
        uint32_t rank = (uint32_t)(best >> 32);
        if (rank == MERGE_NONE) {
            break;
        }
        unsigned at = (unsigned)best;
        unsigned gone = position_after(alive, at);
        alive &= ~(UINT64_C(1) << gone);
        unsigned after = position_after(alive, at);
        unsigned before = position_before(alive, at);
        ids[at] = merge_result(t, rank);
        pairs[gone] = UINT64_MAX;
        pairs[at] = UINT64_MAX;
        pairs[before] = UINT64_MAX;
        least[gone / GROUP] = least_beside(pairs, gone);
        least[at / GROUP] = least_beside(pairs, at);
        least[before / GROUP] = least_beside(pairs, before);
        best = least_of_group(least);
        for (size_t g = GROUP; g < groups; g += GROUP) {
            best = min_u64(best, least_of_group(least + g));
        }
        uint32_t right = merge_rank(t, ids[at], ids[after]);
        if (right != MERGE_NONE) {
            pairs[at] = pair_of(right, at);
            least[at / GROUP] = min_u64(least[at / GROUP], pairs[at]);
            best = min_u64(best, pairs[at]);
        }
        uint32_t left = merge_rank(t, ids[before], ids[at]);
        if (left != MERGE_NONE) {
            pairs[before] = pair_of(left, before);
            least[before / GROUP] = min_u64(least[before / GROUP], pairs[before]);
            best = min_u64(best, pairs[before]);
        }
    }
    size_t count = 0;
    for (alive &= (UINT64_C(2) << n) - 2; alive != 0; alive &= alive - 1) {
        out[count++] = ids[__builtin_ctzll(alive)];
    }
    return count;
}
