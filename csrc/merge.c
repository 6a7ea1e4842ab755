/*
The merge table, and the merging of short words.

A word starts as its bytes. As long as some adjacent pair of tokens is in the table, the pair with the lowest rank (the
leftmost, if there are several) becomes one token. merge_short keeps the tokens in a small array, the rank of the pair
of each with the next one in another, and the positions that still start a token in a bit mask:

    position   0  1  2  3  4  5  6            0  1  2  3  4  5  6
    id         #  h  e  l  l  o  #            #  h  e  ll .  o  #
    rank       -  7  -  3  -  -  -     ->     -  7  5  -  -  -  -
    alive      1  1  1  1  1  1  1            1  1  1  1  0  1  1
                        ^ lowest: merge             ^  ^ only these two are looked up again

The #s at both ends belong to no pair, so the first and the last token are not special cases. Words differ, so any
branch on their contents is mispredicted often and costs as much as checking all positions. So the loop has no branch
except its end condition. Long words go to merge_long.c.
*/
#include "merge.h"

/* ---------------------------------------------------------------------------------------------------
The table
*/

static unsigned bits_needed(size_t x) {
    unsigned bits = 0;
    while (x > 0) {
        bits += 1;
        x >>= 1;
    }
    return bits;
}

int merge_table_new(merge_table *t, size_t ids, size_t capacity, const uint32_t byte_ids[256],
                    const pybpe_allocator *mem, pybpe_error *err) {
    *t = (merge_table){.id_bits = bits_needed(ids), .rank_bits = bits_needed(capacity), .capacity = capacity};
    t->rank_mask = (UINT64_C(1) << t->rank_bits) - 1;
    t->outside = (uint32_t)ids; /* it fits id_bits */
    if (2 * t->id_bits + t->rank_bits > 63) {
        return error_set(err, PYBPE_ERR_LIMIT, 0,
                         "a vocabulary of %zu tokens with %zu merges is too large to encode with; both may be up to "
                         "2,097,151",
                         ids, capacity);
    }
    unsigned log2_buckets = 1 + bits_needed(capacity / 8);
    size_t buckets = (size_t)1 << log2_buckets;
    size_t slots = buckets * MERGE_BUCKET;
    t->shift = 64 - log2_buckets;
    t->factor = hash_seed_draw().a | 1;
    if (mem_table_alloc(&t->block, mem, slots + buckets, sizeof *t->slots)) {
        t->slots = t->block.data;
        t->tags = t->slots + slots;
    }
    t->merged = mem_alloc_array(mem, capacity + 1, sizeof *t->merged);
    t->byte_ranks = mem_alloc_array(mem, 65536, sizeof *t->byte_ranks);
    if (t->slots == NULL || t->merged == NULL || t->byte_ranks == NULL) {
        merge_table_free(t, mem);
        return error_set_memory(err, "the table of merges", slots * sizeof *t->slots);
    }
    memset(t->slots, 0xFF, slots * sizeof *t->slots);
    memset(t->tags, 0, buckets * sizeof *t->tags);
    memset(t->byte_ranks, 0xFF, 65536 * sizeof *t->byte_ranks);
    for (unsigned byte = 0; byte < 256; byte++) {
        t->byte_ids[byte] = byte_ids[byte] == PYBPE_NO_ID ? t->outside : byte_ids[byte];
    }
    return PYBPE_OK;
}

void merge_table_free(merge_table *t, const pybpe_allocator *mem) {
    mem_table_free(&t->block, mem);
    mem_free(mem, t->merged);
    mem_free(mem, t->byte_ranks);
    *t = (merge_table){0};
}

/* The bucket after i; after the last comes the first. */
static size_t merge_bucket_next(const merge_table *t, size_t i) { return (i + 1) & (size_t)(UINT64_MAX >> t->shift); }

void merge_table_add(merge_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t merged) {
    t->merged[rank] = merged;
    t->first_merged = rank == 0 ? merged : t->first_merged;
    t->consecutive = rank == t->added && (rank == 0 || t->consecutive) && merged == t->first_merged + rank;
    t->added += 1;
    if (merge_rank(t, left, right) != MERGE_NONE) {
        return;
    }
    uint64_t key = (uint64_t)left << t->id_bits | right;
    uint64_t hash = key * t->factor;
    size_t bucket = merge_bucket(t, hash);
    while (t->slots[MERGE_BUCKET * bucket + MERGE_BUCKET_USED - 1] != UINT64_MAX) {
        t->tags[bucket] |= UINT64_C(1) << 56;
        bucket = merge_bucket_next(t, bucket);
    }
    size_t place = 0;
    while (t->slots[MERGE_BUCKET * bucket + place] != UINT64_MAX) {
        place += 1;
    }
    t->slots[MERGE_BUCKET * bucket + place] = key << t->rank_bits | rank;
    t->tags[bucket] |= merge_tag(t, hash) << (8 * place);
}

uint32_t merge_rank_search(const merge_table *t, uint64_t key) {
    for (size_t bucket = merge_bucket(t, key * t->factor);; bucket = merge_bucket_next(t, bucket)) {
        for (size_t place = 0; place < MERGE_BUCKET_USED; place++) {
            uint64_t slot = t->slots[MERGE_BUCKET * bucket + place];
            if (slot >> t->rank_bits == key) {
                return (uint32_t)(slot & t->rank_mask);
            }
        }
        if (t->tags[bucket] >> 56 == 0) {
            return MERGE_NONE;
        }
    }
}

/* ---------------------------------------------------------------------------------------------------
Short words
*/

/* Positions run from 1 to n; 0 and n + 1 are outside. The masks have one bit per position. */
enum { POSITIONS = 64, GROUP = 4 };
_Static_assert(MERGE_SHORT_MAX + 2 <= POSITIONS, "a position of a short word is a bit of 64");

static inline unsigned position_after(uint64_t alive, unsigned i) {
    return i + 1 + (unsigned)__builtin_ctzll(alive >> (i + 1));
}

static inline unsigned position_before(uint64_t alive, unsigned i) {
    return 63 - (unsigned)__builtin_clzll(alive & ((UINT64_C(1) << i) - 1));
}

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): merge_short fills whole groups, which the analyzer cannot follow */
static inline uint64_t least_of_group(const uint64_t *x) { return min_u64(min_u64(x[0], x[1]), min_u64(x[2], x[3])); }

/* The minimum of the group that a position is in. */
static inline uint64_t least_beside(const uint64_t *pairs, size_t position) {
    return least_of_group(&pairs[position / GROUP * GROUP]);
}

static inline uint64_t pair_of(uint32_t rank, unsigned position) { return (uint64_t)rank << 32 | position; }

size_t merge_short(const merge_table *t, const uint8_t *w, size_t n, uint32_t *out) {
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
