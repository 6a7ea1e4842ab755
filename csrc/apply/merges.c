/*
The table of merges: see merges.h for its layout.
*/
#include "apply/merges.h"

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
    mem_free(mem, t->char_ranks);
    *t = (merge_table){0};
}

/* The bucket after i. After the last comes the first. */
static size_t merge_bucket_next(const merge_table *t, size_t i) { return (i + 1) & (size_t)(UINT64_MAX >> t->shift); }

void merge_table_add(merge_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t merged) {
    t->merged[rank] = merged;
    t->first_merged = rank == 0 ? merged : t->first_merged;
    t->consecutive = (rank == 0 || t->consecutive) && merged == t->first_merged + rank;
    if (merge_rank(t, left, right) != MERGE_NONE) {
        return;
    }
    uint64_t key = (uint64_t)left << t->id_bits | right;
    uint64_t hash = key * t->factor;
    size_t bucket = merge_bucket(t, hash);
    while (t->tags[bucket] >> (8 * MERGE_BUCKET_USED - 1) & 1) { /* the last slot is taken */
        t->tags[bucket] |= UINT64_C(1) << 56;
        bucket = merge_bucket_next(t, bucket);
    }
    size_t place = (size_t)__builtin_ctzll(~t->tags[bucket] & UINT64_C(0x80808080808080)) / 8; /* the first free slot */
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
