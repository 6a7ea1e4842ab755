/*
Stage 2 of encode_stages.c for one phrase.

Most phrases have two or three tokens, and hardly any has more than 15. For these, the array `keys` has the rank of
the pair that begins at each token, with the token's place in the low bits, so that the minimum is the pair to merge;
`alive` has a bit for each token that remains:

    ids      of  the  same  time          of the   .   same  time
    keys     12  905   77     -     ->       -     -    77     -
    alive     1    1    1     1              1     0     1     1

Most superwords are not part of another merge, so the pairs of a new token are seldom looked up.
*/
#include "encode_stages.h"

enum { FEW = 8, MANY = 16, PLACE_BITS = 4 };

static const uint32_t NO_PAIR = UINT32_MAX;

static inline uint32_t key_of(const encode_stages *s, uint32_t left, uint32_t right, unsigned at) {
    uint32_t rank = stages_rank(s, left, right);
    return rank != MERGE_NONE ? rank << PLACE_BITS | at : NO_PAIR;
}

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

static inline uint32_t least_of_four(const uint32_t *keys) {
    return min_u32(min_u32(keys[0], keys[1]), min_u32(keys[2], keys[3]));
}

static inline uint32_t least_key(const uint32_t keys[MANY], size_t room) {
    uint32_t least = min_u32(least_of_four(keys), least_of_four(keys + 4));
    if (room > FEW) {
        least = min_u32(least, min_u32(least_of_four(keys + 8), least_of_four(keys + 12)));
    }
    return least;
}

/* Merges n tokens, 2 <= n < room, and returns the number that remain. `room` is FEW or MANY, a constant. */
static inline __attribute__((always_inline)) size_t merge_few(const stages_scan *scan, uint32_t *ids, size_t n,
                                                              size_t room) {
    const encode_stages *s = scan->e->stages;
    uint32_t keys[MANY];
    for (size_t i = 0; i < room; i++) {
        keys[i] = NO_PAIR;
    }
    for (unsigned i = 0; i + 1 < n; i++) {
        keys[i] = key_of(s, ids[i], ids[i + 1], i);
    }
    unsigned alive = (1U << n) - 1;
    for (uint32_t least; (least = least_key(keys, room)) != NO_PAIR;) {
        unsigned at = least & (MANY - 1);
        unsigned after = alive & (UINT32_MAX << at << 1); /* the lowest bit is the token that is merged */
        unsigned gone = (unsigned)__builtin_ctz(after);
        unsigned before = alive & ((1U << at) - 1);
        uint32_t made = merge_result(&scan->e->table, least >> PLACE_BITS);
        alive &= ~(1U << gone);
        after &= after - 1;
        ids[at] = made;
        keys[gone] = NO_PAIR;
        keys[at] = NO_PAIR;
        if (after != 0 && (s->parts[made] & PART_LEFT) != 0) {
            keys[at] = key_of(s, made, ids[__builtin_ctz(after)], at);
        }
        if (before != 0) {
            unsigned last = 31 - (unsigned)__builtin_clz(before);
            keys[last] = (s->parts[made] & PART_RIGHT) != 0 ? key_of(s, ids[last], made, last) : NO_PAIR;
        }
    }
    size_t count = 0;
    for (; alive != 0; alive &= alive - 1) {
        ids[count++] = ids[__builtin_ctz(alive)];
    }
    return count;
}

int phrase_merge(stages_scan *scan, uint32_t *ids, size_t *count) {
    if (*count == 2) {
        uint32_t rank = stages_rank(scan->e->stages, ids[0], ids[1]);
        ids[0] = rank != MERGE_NONE ? merge_result(&scan->e->table, rank) : ids[0];
        *count -= rank != MERGE_NONE;
    } else if (*count < FEW) {
        *count = merge_few(scan, ids, *count, FEW);
    } else if (*count < MANY) {
        *count = merge_few(scan, ids, *count, MANY);
    } else {
        apply_scratch *scratch = &scan->c->scratch;
        int code = apply_long_ids(&scan->e->table, scratch, ids, *count, count, &scan->c->mem, scan->err);
        if (code != PYBPE_OK) {
            return code;
        }
        memcpy(ids, scratch->ids, *count * sizeof *ids);
    }
    return PYBPE_OK;
}
