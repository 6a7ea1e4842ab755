/*
csrc/count/count_merge.c: merging sorted lists of words, whose lengths may not fit their bytes and which may be in any order.
*/
#include "prove.h"

#include <base/base.c>
#include <count/count_merge.c>

enum { PARTS = 3, WORDS = 2, BYTES = 4 };

static pybpe_words_part parts[PARTS];
static uint32_t lengths[PARTS][WORDS];
static uint64_t counts[PARTS][WORDS];
static merge_entry entries[PARTS];

/* Parts of up to two words, before any of them, with any place of its bytes. */
static void any_parts(void) {
    for (size_t i = 0; i < PARTS; i++) {
        parts[i] = (pybpe_words_part){.bytes = any_bytes(BYTES), .size = any_between(0, BYTES)};
        parts[i].lengths = lengths[i];
        parts[i].counts = counts[i];
        parts[i].count = (size_t)any_between(0, WORDS);
        parts[i].at = (size_t)any_between(0, parts[i].count);
        parts[i].offset = any_between(0, any_bool() ? BYTES : UINT64_MAX);
        for (size_t k = 0; k < WORDS; k++) {
            lengths[i][k] = (uint32_t)any_between(0, any_bool() ? 2 : UINT32_MAX);
            counts[i][k] = any_u64();
        }
    }
}

static void drop_parts(void) {
    for (size_t i = 0; i < PARTS; i++) {
        free((void *)parts[i].bytes);
    }
}

static void check_entry(const merge_entry *entry) {
    CHECK(entry->part < PARTS);
    const pybpe_words_part *part = &parts[entry->part];
    CHECK(part->at < part->count && entry->length == part->lengths[part->at]);
    check_readable(entry->word, entry->length);
}

/* Words of n bytes, and of up to 3, are compared without reading after them. */
void prove_words(size_t n) {
    uint8_t *a = any_bytes(n), *b = any_bytes(3);
    size_t m = (size_t)any_between(0, 3);
    (void)word_prefix(a, n);
    int order = words_compare(a, n, b, m);
    CHECK(order != 0 || n == m);
    free(a);
    free(b);
}

uint64_t any_prefix(const uint8_t *word, size_t length) {
    check_readable(word, length);
    return any_u64();
}

/* An entry is a word in the bytes of its part. */
void prove_entry(size_t n) {
    any_parts();
    size_t number = (size_t)any_between(0, n - 1);
    ASSUME(parts[number].at < parts[number].count);
    if (entry_set(&entries[0], parts, number, NULL) == PYBPE_OK) {
        check_entry(&entries[0]);
    }
    drop_parts();
}

int any_order(const merge_entry *x, const merge_entry *y) {
    CHECK(x->part < PARTS && y->part < PARTS);
    return (int)any_between(0, 2) - 1;
}

/* Entries are moved inside the heap. */
void prove_sift(size_t n) {
    merge_heap heap = {(merge_entry *)any_bytes(n * sizeof *heap.entries), n};
    for (size_t i = 0; i < n; i++) {
        heap.entries[i] = (merge_entry){.prefix = any_between(0, 2), .part = (uint32_t)any_between(0, PARTS - 1)};
    }
    heap_sift(&heap, (size_t)any_between(0, n - 1));
    for (size_t i = 0; i < n; i++) {
        CHECK(heap.entries[i].part < PARTS);
    }
    free(heap.entries);
}

static pybpe_words_block any_block(size_t cap) {
    pybpe_words_block block = {.bytes_cap = BYTES, .cap = cap};
    block.bytes = any_bytes(BYTES);
    block.lengths = (uint32_t *)any_bytes(cap * sizeof *block.lengths);
    block.counts = (uint64_t *)any_bytes(cap * sizeof *block.counts);
    block.count = (size_t)any_between(0, cap);
    for (size_t i = 0; i < block.count; i++) {
        block.lengths[i] = (uint32_t)any_between(0, BYTES - block.size);
        block.size += block.lengths[i];
    }
    return block;
}

static void drop_block(pybpe_words_block *block) {
    free(block->bytes);
    free(block->lengths);
    free(block->counts);
}

/* A word is added to a block of n words only if there is room for it. */
void prove_add(size_t n) {
    pybpe_words_block block = any_block(n);
    uint8_t *word = any_bytes(2);
    merge_entry entry = {.word = word, .length = (uint32_t)any_between(0, 2)};
    int state = -1;
    int code = words_block_add(&block, &entry, any_u64(), &state, NULL);
    CHECK(code == PYBPE_OK || code == PYBPE_ERR_LIMIT);
    CHECK(block.count <= n && block.size <= BYTES);
    drop_block(&block);
    free(word);
}

int any_addition(pybpe_words_block *block, const merge_entry *entry, uint64_t count, int *state, pybpe_error *err) {
    (void)block;
    (void)count;
    (void)err;
    check_entry(entry);
    *state = any_bool() ? -1 : PYBPE_MERGE_FULL;
    return any_bool() ? PYBPE_OK : PYBPE_ERR_LIMIT;
}

/* A heap of valid entries of different parts, which is not sorted. */
void any_sifting(merge_heap *heap, size_t at) {
    CHECK(at < heap->count);
    for (size_t i = 0; i < heap->count; i++) {
        check_entry(&heap->entries[i]);
    }
}

/* n lists are merged until one of them ends, or the block is full. */
void prove_merge(size_t n) {
    int state;
    any_parts();
    pybpe_words_block block = any_block(2);
    int code = pybpe_words_merge(parts, n, &block, &state, NULL, NULL);
    CHECK(code != PYBPE_OK || (state >= PYBPE_MERGE_DONE && state <= PYBPE_MERGE_ROOM));
    for (size_t i = 0; i < n; i++) {
        CHECK(parts[i].at <= parts[i].count);
    }
    drop_block(&block);
    drop_parts();
}

PROOFS(PROOF(words, 0, 9, 9) PROOF(entry, 1, 3, 9) PROOF(sift, 1, 5, 4, "",
                                                         "entry_compare:any_order") PROOF(add, 0, 3, 4, "",
                                                                                          "memcmp:any_comparison")
           PROOF(merge, 0, 2, 4, "",
                 "words_block_add:any_addition heap_sift:any_sifting entry_compare:any_order word_prefix:any_prefix"))
