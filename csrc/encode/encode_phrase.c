/*
Stage 2 of encode_stages.c: divides tokens into phrases and merges these.

Up to 64 tokens are a group, which begins and ends with a phrase. In its masks, the place between two
tokens has the bit of the second one:

    tokens    of   the   people   ,    by   the   way
    joints     .    1      .      .     1    1     1      where phrases continue
    pairs      .    1      .      .     1    1     .      where stage 2 merges these two tokens
    merged     .    1      .      .     .    1     .      where it does so in the end

Most phrases have no merge whose token another merge can use there. Then all merges are between tokens of stage 1, and a
pair is merged unless the pair on one of its sides goes first: one with a lower rank, or the one on the left if their
ranks are equal. So in each round all pairs that go before both of their neighbors are merged, and then their neighbors
cannot be. This takes a few operations on masks for all phrases of the group, without a branch for each.

A merge makes a token that may be used again if, on one of its sides, the phrase continues with a token of stage 1 that
can meet it in a merge (stages_joint_has). The phrase is then *chained*, and it is merged by itself, pair after pair.
Half of the chained phrases have three tokens and a quarter have four. For these there is code without branches. For
others of fewer than 16 tokens, the array `keys` has the rank of the pair that begins at each token and, in the low
bits, the token's place, so that the least one is the pair to merge. `alive` has a bit for each token that remains:

    ids      of  the  same  time          of the   .   same  time
    keys     12  905   77     -     ->       -     -    77     -
    alive     1    1    1     1              1     0     1     1

Looking up pairs takes most of the time, and so do branches that the processor mispredicts. Both are avoided where
possible: even which slot has a pair is computed.
*/
#include "encode/encode_stages.h"

enum { FEW = 8, MANY = 16, PLACE_BITS = 4, GROUP_TOKENS = 64 };

/* The order of a pair in any bucket. For the few that stages_order does not find at once. */
static __attribute__((noinline)) uint32_t stages_order_search(const encode_stages *s, uint64_t key) {
    uint64_t slot = *stages_slot(s, key);
    return slot != UINT64_MAX ? (uint32_t)slot & ((1U << STAGES_ORDER_BITS) - 1) : ORDER_NONE;
}

/* The order of a pair. There is no branch on which slot it is in. */
static inline uint32_t stages_order(const encode_stages *s, uint32_t left, uint32_t right) {
    const uint64_t key = stages_key(left, right);
    const uint64_t *bucket = s->pairs + 2 * stages_bucket(s, key);
    const uint64_t slot = bucket[bucket[0] >> STAGES_ORDER_BITS != key];
    const bool found = slot >> STAGES_ORDER_BITS == key;
    if (PYBPE_UNLIKELY(!found && bucket[1] != UINT64_MAX)) {
        return stages_order_search(s, key);
    }
    return found ? (uint32_t)slot & ((1U << STAGES_ORDER_BITS) - 1) : ORDER_NONE;
}

static inline uint32_t key_of(uint32_t order, unsigned at) {
    uint32_t rank_place = order_rank(order) << PLACE_BITS | at;
    return order != ORDER_NONE ? rank_place << STAGES_PARTS_BITS | order_parts(order) : ORDER_NONE;
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

/* A chained phrase of fewer than MANY tokens. The key of a pair is at the place of its first token. */
typedef struct chain {
    uint32_t keys[MANY + 1]; /* of the pairs; chain_step writes the last one if no token is before a pair */
    uint32_t *ids;
    unsigned count, alive;
} chain;

/* Starts with ids[0..count). orders[i] is the order of the pair ids[i], ids[i + 1]. */
static void chain_start(chain *c, uint32_t *ids, const uint32_t *orders, unsigned count) {
    for (unsigned i = 0; i < MANY; i++) {
        c->keys[i] = ORDER_NONE;
    }
    for (unsigned i = 0; i + 1 < count; i++) {
        c->keys[i] = key_of(orders[i], i);
    }
    c->ids = ids;
    c->count = count;
    c->alive = (1U << count) - 1;
}

/* Merges the pair with the least key. Returns the next key, or ORDER_NONE. */
static inline uint32_t chain_step(const encode_stages *s, const merge_table *t, chain *c, uint32_t key) {
    const unsigned at = key >> STAGES_PARTS_BITS & (MANY - 1);
    const unsigned after = c->alive & (UINT32_MAX << at << 1); /* the lowest bit is the token that is merged */
    const unsigned later = after & (after - 1);
    const unsigned before = c->alive & ((1U << at) - 1);
    const unsigned gone = (unsigned)__builtin_ctz(after);
    const unsigned next = (unsigned)__builtin_ctz(later | 1U << MANY) & (MANY - 1);
    const unsigned last = before != 0 ? 31 - (unsigned)__builtin_clz(before) : MANY;
    const unsigned parts = order_parts(key);
    const uint32_t made = stages_result(s, t, key >> PLACE_BITS);
    c->alive &= ~(1U << gone);
    c->ids[at] = made;
    c->keys[gone] = ORDER_NONE;
    c->keys[at] = ORDER_NONE;
    c->keys[last] = ORDER_NONE;
    if ((parts & PART_LEFT) != 0 && later != 0) {
        c->keys[at] = key_of(stages_order(s, made, c->ids[next]), at);
    }
    if ((parts & PART_RIGHT) != 0 && before != 0) {
        c->keys[last] = key_of(stages_order(s, c->ids[last], made), last);
    }
    return least_key(c->keys, c->count < FEW ? FEW : MANY);
}

/* Merges a phrase of any length, as one word. *count is the number of its tokens, and then of the remaining ones. */
static int merge_any(stages_scan *scan, uint32_t *ids, size_t *count) {
    apply_scratch *scratch = &scan->c->scratch;
    PYBPE_TRY(apply_long_ids(&scan->e->table, scratch, ids, *count, count, &scan->c->mem, scan->err));
    memcpy(ids, scratch->ids, *count * sizeof *ids);
    return PYBPE_OK;
}

/* ---------------------------------------------------------------------------------------------------
Groups
*/

typedef struct token_group {
    uint32_t *ids;
    unsigned count; /* 1 to GROUP_TOKENS */
    uint64_t joints, pairs;
    uint64_t first;                /* the pairs that go before the pair at the next place, if there is one */
    uint64_t lefts, rights;        /* the pairs whose token is the left or right part of some merge */
    uint64_t alive;                /* the tokens that remain */
    uint32_t orders[GROUP_TOKENS]; /* of the pairs */
} token_group;

/* 1 <= count <= 64 */
static inline uint64_t low_bits(unsigned count) { return UINT64_MAX >> (64 - count); }

static inline void group_find_pairs(const encode_stages *s, token_group *group) {
    token_group g = *group;                            /* a copy that the compiler can keep in registers */
    memset(group->orders, 0xFF, sizeof group->orders); /* ORDER_NONE */
    for (uint64_t rest = g.joints; rest != 0; rest &= rest - 1) {
        unsigned k = (unsigned)__builtin_ctzll(rest);
        uint32_t order = stages_order(s, g.ids[k - 1], g.ids[k]);
        uint64_t found = order != ORDER_NONE;
        group->orders[k] = order;
        g.pairs |= found << k;
        g.first |= (uint64_t)(group->orders[k - 1] <= order) << k >> 1;
        g.lefts |= (found & order) << k; /* PART_LEFT is the lowest bit */
        g.rights |= (found & order >> 1) << k;
    }
    group->pairs = g.pairs;
    group->first = g.first;
    group->lefts = g.lefts;
    group->rights = g.rights;
}

/* Returns the pairs whose token may be used again, and limits the parts in their `orders` to those that the token may
   be here. */
static inline uint64_t group_chained(const stages_scan *scan, token_group *g) {
    const encode_stages *s = scan->e->stages;
    const uint64_t lefts = g->lefts & g->joints >> 1;
    const uint64_t rights = g->rights & g->joints << 1;
    uint64_t chained = 0;
    for (uint64_t rest = lefts | rights; rest != 0; rest &= rest - 1) {
        unsigned k = (unsigned)__builtin_ctzll(rest);
        uint32_t order = g->orders[k];
        uint32_t made = stages_result(s, &scan->e->table, order);
        uint32_t left = lefts >> k & 1;
        uint32_t right = rights >> k & 1;
        left &= stages_joint_has(s, made, g->ids[k + left]);
        right &= stages_joint_has(s, g->ids[k - 1 - right], made);
        g->orders[k] = (order_rank(order) << STAGES_PARTS_BITS) | left | right << 1;
        chained |= (uint64_t)(left | right) << k;
    }
    return chained;
}

/* Removes a phrase from the group. The tokens `alive` remain. */
static inline void group_remove(token_group *g, unsigned start, unsigned count, uint64_t alive) {
    uint64_t phrase = low_bits(count) << start;
    g->pairs &= ~phrase;
    g->alive = (g->alive & ~phrase) | alive << start;
}

/* Merges three tokens without a branch, given the orders of their pairs. At least one pair can be merged. Returns
   how many tokens remain. */
static inline unsigned merge_three(const encode_stages *s, const merge_table *t, uint32_t *ids,
                                   const uint32_t orders[2]) {
    const bool right = order_rank(orders[1]) < order_rank(orders[0]); /* the right two are merged first */
    const uint32_t made = stages_result(s, t, orders[right]);
    const uint32_t parts[2][2] = {{made, ids[2]}, {ids[0], made}};
    const uint32_t order = stages_order(s, parts[right][0], parts[right][1]);
    const bool again = order != ORDER_NONE;
    const uint32_t left[2] = {parts[right][0], stages_result(s, t, again ? order : orders[right])};
    ids[0] = left[again];
    ids[1] = parts[right][1];
    return 2 - again;
}

/* The same for four tokens. */
static inline unsigned merge_four(const encode_stages *s, const merge_table *t, uint32_t *ids,
                                  const uint32_t orders[3]) {
    unsigned k = order_rank(orders[1]) < order_rank(orders[0]);
    k = order_rank(orders[2]) < order_rank(orders[k]) ? 2 : k; /* the pair that goes first */
    ids[k] = stages_result(s, t, orders[k]);
    ids[1] = k == 0 ? ids[2] : ids[1];
    ids[2] = k < 2 ? ids[3] : ids[2];
    const uint32_t rest[2] = {stages_order(s, ids[0], ids[1]), stages_order(s, ids[1], ids[2])};
    return (rest[0] & rest[1]) != ORDER_NONE ? merge_three(s, t, ids, rest) : 3;
}

/* Merges a chained phrase of `count` tokens. */
static int group_merge_phrase(stages_scan *scan, token_group *g, unsigned start, unsigned count) {
    const encode_stages *s = scan->e->stages;
    const merge_table *t = &scan->e->table;
    uint32_t *ids = g->ids + start;
    const uint32_t *orders = g->orders + start + 1;
    if (count == 3) {
        group_remove(g, start, 3, low_bits(merge_three(s, t, ids, orders)));
    } else if (count == 4) {
        group_remove(g, start, 4, low_bits(merge_four(s, t, ids, orders)));
    } else if (count < MANY) {
        chain c;
        chain_start(&c, ids, orders, count);
        uint32_t key = least_key(c.keys, MANY);
        while (key != ORDER_NONE) {
            key = chain_step(s, t, &c, key);
        }
        group_remove(g, start, count, c.alive);
    } else {
        size_t left = count;
        PYBPE_TRY(merge_any(scan, ids, &left));
        group_remove(g, start, count, low_bits((unsigned)left));
    }
    return PYBPE_OK;
}

/* Merges the chained phrases, and removes them. */
static int group_merge_chained(stages_scan *scan, token_group *g, uint64_t chained) {
    int code = PYBPE_OK;
    while (chained != 0 && code == PYBPE_OK) {
        unsigned k = (unsigned)__builtin_ctzll(chained);
        unsigned start = 63 - (unsigned)__builtin_clzll(~g->joints & low_bits(k));
        uint64_t after = ~g->joints & ~low_bits(k) & low_bits(g->count);
        unsigned end = after != 0 ? (unsigned)__builtin_ctzll(after) : g->count;
        code = group_merge_phrase(scan, g, start, end - start);
        chained &= ~low_bits(end);
    }
    return code;
}

/* Merges the pairs of the other phrases. */
static inline void group_merge_pairs(const stages_scan *scan, token_group *g) {
    uint64_t merged = 0;
    for (uint64_t pairs = g->pairs; pairs != 0;) {
        uint64_t before_next = g->first | ~(pairs >> 1);
        uint64_t before_last = ~(g->first << 1 & pairs << 1);
        uint64_t now = pairs & before_next & before_last;
        merged |= now;
        pairs &= ~(now | now << 1 | now >> 1);
    }
    g->alive &= ~merged;
    for (; merged != 0; merged &= merged - 1) {
        unsigned k = (unsigned)__builtin_ctzll(merged);
        g->ids[k - 1] = stages_result(scan->e->stages, &scan->e->table, g->orders[k]);
    }
}

/* Merges the phrases of the next `count` tokens, whose joints are given. */
static int group_put(stages_scan *scan, stages_block *b, unsigned count, uint64_t joints) {
    token_group g = {
        .ids = b->ids + b->from, .count = count, .joints = joints & low_bits(count), .alive = low_bits(count)};
    group_find_pairs(scan->e->stages, &g);
    uint64_t chained = group_chained(scan, &g);
    int code = group_merge_chained(scan, &g, chained);
    group_merge_pairs(scan, &g);
    uint32_t *out = b->out + b->count;
    for (unsigned k = 0; k < count; k++) { /* no branch, which would be hard to predict */
        *out = g.ids[k];
        out += g.alive >> k & 1;
    }
    b->count = (size_t)(out - b->out);
    b->from += count;
    return code;
}

/* ---------------------------------------------------------------------------------------------------
Blocks
*/

/* Finds where the phrases of ids[at..at + count), count <= GROUP_TOKENS, continue. Bit k is for the place before
   ids[at + k]. Bit 0 is never set. Ends of words before ids[at] are not needed again. Those after it may be, if fewer
   tokens than `count` are merged now. */
static inline uint64_t find_joints(const encode_stages *s, stages_block *b, size_t at, unsigned count) {
    const uint32_t *ids = b->ids + at;
    uint64_t joints = 0;
    for (unsigned k = 1; k < count; k++) {
        joints |= (uint64_t)stages_joint_has(s, ids[k - 1], ids[k]) << k;
    }
    while (b->words < b->words_end && *b->words < at) {
        b->words++;
    }
    for (const uint64_t *word = b->words; word < b->words_end && *word < at + count; word++) {
        joints &= ~(UINT64_C(1) << (*word - at));
    }
    return joints;
}

/* Merges the phrase that begins at b->from and has at least GROUP_TOKENS tokens, if it ends in the block. Sets *held
   otherwise. */
static int long_phrase_put(stages_scan *scan, stages_block *b, bool *held) {
    size_t end = b->known > b->from + GROUP_TOKENS ? b->known : b->from + GROUP_TOKENS;
    uint64_t ends = 0;
    while (ends == 0 && end < b->total) {
        unsigned count = b->total - end < GROUP_TOKENS - 1 ? (unsigned)(b->total - end) + 1 : GROUP_TOKENS;
        ends = ~find_joints(scan->e->stages, b, end - 1, count) & low_bits(count) & ~UINT64_C(1);
        end += ends != 0 ? (unsigned)__builtin_ctzll(ends) - 1 : count - 1;
    }
    *held = ends == 0 && !b->closed;
    if (*held) {
        return PYBPE_OK;
    }
    size_t count = end - b->from;
    PYBPE_TRY(merge_any(scan, b->ids + b->from, &count));
    memcpy(b->out + b->count, b->ids + b->from, count * sizeof *b->ids);
    b->count += count;
    b->from = end;
    return PYBPE_OK;
}

int stages_merge(stages_scan *scan, stages_block *b) {
    int code = PYBPE_OK;
    bool held = false;
    while (code == PYBPE_OK && b->from < b->total && !held) {
        unsigned count = b->total - b->from < GROUP_TOKENS ? (unsigned)(b->total - b->from) : GROUP_TOKENS;
        uint64_t joints = find_joints(scan->e->stages, b, b->from, count);
        unsigned begun = 63 - (unsigned)__builtin_clzll(~joints & low_bits(count)); /* the last phrase */
        if (b->closed && b->from + count == b->total) {
            code = group_put(scan, b, count, joints);
        } else if (begun > 0) {
            code = group_put(scan, b, begun, joints);
        } else if (count == GROUP_TOKENS) {
            code = long_phrase_put(scan, b, &held);
        } else {
            held = true;
        }
    }
    return code;
}
