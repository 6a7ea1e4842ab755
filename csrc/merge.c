/*
The merge table, and the merging of short words.

A word starts as its bytes. As long as some adjacent pair of tokens is in the table, the pair with the
lowest rank, and of several the leftmost, becomes one token. merge_short keeps the tokens and the ranks
of their pairs in two small arrays:

    ids      h   e   l   l   o            ids      h   e   ll  o
    ranks    7   -   3   -        ->      ranks    7   5   -
                     ^ lowest: merge                   ^   ^ only these two are looked up again

Each merge costs one pass over arrays that fit a few cache lines, which for words of natural length is
faster than any heap. Long words go to merge_long.c.
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
    if (2 * t->id_bits + t->rank_bits > 63) {
        return error_set(err, PYBPE_ERR_LIMIT, 0,
                         "a vocabulary of %zu tokens with %zu merges is too large to encode with; both may be up to "
                         "2,097,151",
                         ids, capacity);
    }
    unsigned log2_slots = bits_needed(capacity) + 1;
    size_t slots = (size_t)1 << log2_slots;
    t->shift = 64 - log2_slots;
    t->factor = hash_seed_draw().a | 1;
    t->slots = mem_alloc_array(mem, slots, sizeof *t->slots);
    t->merged = mem_alloc_array(mem, capacity + 1, sizeof *t->merged);
    t->byte_ranks = mem_alloc_array(mem, 65536, sizeof *t->byte_ranks);
    if (t->slots == NULL || t->merged == NULL || t->byte_ranks == NULL) {
        merge_table_free(t, mem);
        return error_set_memory(err, "the table of merges", slots * sizeof *t->slots);
    }
    memset(t->slots, 0xFF, slots * sizeof *t->slots);
    memset(t->byte_ranks, 0xFF, 65536 * sizeof *t->byte_ranks);
    memcpy(t->byte_ids, byte_ids, sizeof t->byte_ids);
    return PYBPE_OK;
}

void merge_table_free(merge_table *t, const pybpe_allocator *mem) {
    mem_free(mem, t->slots);
    mem_free(mem, t->merged);
    mem_free(mem, t->byte_ranks);
    *t = (merge_table){0};
}

void merge_table_add(merge_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t merged) {
    uint64_t key = (uint64_t)left << t->id_bits | right;
    size_t mask = (size_t)(UINT64_MAX >> t->shift);
    size_t i = merge_slot(t, key);
    while (t->slots[i] != UINT64_MAX && t->slots[i] >> t->rank_bits != key) {
        i = (i + 1) & mask;
    }
    t->merged[rank] = merged;
    if (t->slots[i] == UINT64_MAX) {
        t->slots[i] = key << t->rank_bits | rank;
    }
}

/* ---------------------------------------------------------------------------------------------------
Short words
*/

size_t merge_short(const merge_table *t, const uint8_t *w, size_t n, uint32_t *ids) {
    uint32_t ranks[MERGE_SHORT_MAX + 1]; /* ranks[i]: of the pair ids[i], ids[i + 1] */
    for (size_t i = 0; i + 1 < n; i++) {
        ids[i] = t->byte_ids[w[i]];
        ranks[i] = t->byte_ranks[w[i] << 8 | w[i + 1]];
    }
    ids[n - 1] = t->byte_ids[w[n - 1]];
    while (n > 1) {
        size_t at = 0;
        uint32_t best = ranks[0];
        for (size_t i = 1; i < n - 1; i++) {
            at = ranks[i] < best ? i : at;
            best = ranks[i] < best ? ranks[i] : best;
        }
        if (best == MERGE_NONE) {
            break;
        }
        n -= 1;
        ids[at] = t->merged[best];
        for (size_t i = at + 1; i < n; i++) {
            ids[i] = ids[i + 1];
            ranks[i - 1] = ranks[i];
        }
        if (at + 1 < n) {
            ranks[at] = merge_rank(t, ids[at], ids[at + 1]);
        }
        if (at > 0) {
            ranks[at - 1] = merge_rank(t, ids[at - 1], ids[at]);
        }
    }
    return n;
}
