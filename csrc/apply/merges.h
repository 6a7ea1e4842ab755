/*
The merges of a vocabulary as a table: a pair of ids -> its rank, and the id that the merge makes. Internal.
*/
#ifndef PYBPE_MERGES_H
#define PYBPE_MERGES_H

#include "base/base.h"

#define MERGE_NONE UINT32_MAX /* the rank of a pair that does not merge */

/* (left id, right id) -> rank. One slot is 8 bytes:

       bit 63                                             0
           | left id | right id |          rank           |
             id_bits   id_bits           rank_bits          (2 * id_bits + rank_bits <= 63)

   Slots are in buckets of seven (and one that stays empty), filled from the front. The tags of a bucket are one number:
   byte i is 0 if slot i is empty, otherwise seven bits of its pair's hash and the top bit. Byte 7 is 1 if the bucket
   was full when another pair was added. That pair is then in the next bucket that was not full. Most pairs that are
   looked up do not merge, and the tags alone show that. For 50,000 merges the tags take 128 KiB, which fit in a level 2
   cache. */
enum { MERGE_BUCKET = 8, MERGE_BUCKET_USED = 7 };

typedef struct merge_table {
    uint64_t *slots; /* block.data */
    uint64_t *tags;  /* after the slots */
    mem_table block;
    unsigned shift; /* 64 - log2(number of buckets) */
    unsigned id_bits;
    unsigned rank_bits;
    uint64_t rank_mask;
    uint32_t outside;       /* an id that is in no pair */
    uint64_t factor;        /* secret and odd: hashes by multiplication */
    uint32_t *merged;       /* rank -> the id that the merge makes */
    bool consecutive;       /* for all merges so far, merged[rank] is merged[0] + rank */
    uint32_t first_merged;  /* merged[0] */
    uint32_t *byte_ranks;   /* 65,536: first byte * 256 + second byte -> rank. Every word starts with these */
    uint32_t byte_ids[256]; /* byte -> id. `outside` for a byte without a token */
    size_t capacity;        /* the number of merges that fit */
    uint32_t *char_ranks;   /* apply_chars.c fills these two. NULL: all words start as bytes */
    uint32_t *char_guards;
} merge_table;

/* Makes room for `capacity` merges of ids below `ids`. A byte id may be PYBPE_NO_ID. Returns PYBPE_ERR_LIMIT if they do
   not fit the slots. */
int merge_table_new(merge_table *t, size_t ids, size_t capacity, const uint32_t byte_ids[256],
                    const pybpe_allocator *mem, pybpe_error *err);
void merge_table_free(merge_table *t, const pybpe_allocator *mem);

static inline size_t merge_bucket(const merge_table *t, uint64_t hash) { return (size_t)(hash >> t->shift); }

/* Prefetches what merge_table_add will access. */
static inline void merge_table_prefetch(const merge_table *t, uint32_t left, uint32_t right) {
    size_t bucket = merge_bucket(t, ((uint64_t)left << t->id_bits | right) * t->factor);
    PYBPE_PREFETCH(&t->tags[bucket]);
    PYBPE_PREFETCH(&t->slots[MERGE_BUCKET * bucket]);
}

/* Adds left + right -> merged with the given rank < capacity: 0, then 1, and so on. A pair that is already there keeps
   its rank. */
void merge_table_add(merge_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t merged);

/* The id that a merge makes. In most cases it needs no lookup, which the next merge would have to wait for. */
static inline uint32_t merge_result(const merge_table *t, uint32_t rank) {
    return PYBPE_LIKELY(t->consecutive) ? t->first_merged + rank : t->merged[rank];
}

/* Call this for merges of two single bytes, after merge_table_add. */
static inline void merge_table_add_bytes(merge_table *t, uint8_t left, uint8_t right, uint32_t rank) {
    uint32_t *known = &t->byte_ranks[left << 8 | right];
    *known = rank < *known ? rank : *known;
}

static inline uint64_t merge_tag(const merge_table *t, uint64_t hash) { return (hash >> (t->shift - 7) & 0x7F) | 0x80; }

/* The rank of a pair in any bucket. For the few that merge_rank does not find at once. */
uint32_t merge_rank_search(const merge_table *t, uint64_t key);

/* The rank of a pair of ids, or MERGE_NONE. There is no branch on the result, because it could be mispredicted. */
static inline uint32_t merge_rank(const merge_table *t, uint32_t left, uint32_t right) {
    uint64_t key = (uint64_t)left << t->id_bits | right;
    uint64_t hash = key * t->factor;
    size_t bucket = merge_bucket(t, hash);
    PYBPE_PREFETCH(&t->slots[MERGE_BUCKET * bucket]); /* now: the tags, too, are often not in a fast cache */
    uint64_t tags = t->tags[bucket];
    uint64_t equal = bytes_equal(tags, (uint8_t)merge_tag(t, hash)); /* its lowest bit marks the first equal tag */
    if (PYBPE_LIKELY((equal | tags >> 56) == 0)) {
        return MERGE_NONE;
    }
    uint64_t slot = t->slots[MERGE_BUCKET * bucket + (size_t)__builtin_ctzll(equal | UINT64_C(1) << 63) / 8];
    return PYBPE_LIKELY(slot >> t->rank_bits == key) ? (uint32_t)(slot & t->rank_mask) : merge_rank_search(t, key);
}

#endif
