/*
The table of a counter: word -> count. Internal. See count_table.c.
*/
#ifndef PYBPE_COUNT_TABLE_H
#define PYBPE_COUNT_TABLE_H

#include "hash/hash.h"

enum { COUNT_LONG_TAG = 0xFF };

/* A long word in the arena. `moved` is 1 if it has gone to another table's record of the same word. */
typedef struct count_record {
    uint64_t count;
    uint64_t length : 63;
    uint64_t moved : 1;
    uint8_t bytes[];
} count_record;

typedef struct count_slot {
    word_key key;   /* key.hi is 0 in an empty slot */
    uint64_t count; /* of a short word */
} count_slot;

/* A block of the arena. Its records follow. */
typedef struct count_block {
    struct count_block *next;
    size_t used, cap;
    uint64_t records[]; /* of struct count_record, in multiples of 8 bytes */
} count_block;

struct pybpe_counter {
    pybpe_allocator mem;
    const pybpe_pretok *pretok;
    const pybpe_specials *specials;
    mem_table table;
    count_slot *slots;
    size_t mask; /* slots - 1 */
    size_t words;
    uint64_t bytes;
    uint64_t total;
    uint64_t weight; /* how often an occurrence counts: 1, except in pybpe_counter_add_texts */
    uint64_t memory;
    int failed; /* the code of an error that left it half changed, or PYBPE_OK. Then it is empty */
    count_block *blocks;
    hash_seed seed;
};

/* A word that is being looked up. */
typedef struct pending {
    word_key key; /* of a long word: its hash, and the tag with a NULL pointer */
    uint64_t hash;
    const uint8_t *word;
    size_t length;
} pending;

static inline bool slot_is_long(const count_slot *slot) { return slot->key.hi >> 56 == COUNT_LONG_TAG; }

static inline count_record *slot_record(const count_slot *slot) {
    return (count_record *)(uintptr_t)(slot->key.hi & ~((uint64_t)COUNT_LONG_TAG << 56));
}

static inline uint64_t *slot_count(count_slot *slot) {
    return slot_is_long(slot) ? &slot_record(slot)->count : &slot->count;
}

/* The word in any slot. A short one is written to `inline_word`. */
static inline const uint8_t *slot_word(const count_slot *slot, uint8_t inline_word[16], size_t *length) {
    if (slot_is_long(slot)) {
        *length = (size_t)slot_record(slot)->length;
        return slot_record(slot)->bytes;
    }
    *length = word_key_unpack(slot->key, inline_word);
    return inline_word;
}

/* The bytes of the arena that a long word takes. The sum cannot overflow, since the word itself is in memory. */
static inline size_t count_record_size(size_t length) { return (sizeof(count_record) + length + 7) / 8 * 8; }

static inline int count_overflow(pybpe_error *err) {
    return error_set(err, PYBPE_ERR_LIMIT, 0, "the count of a word exceeds 2^64 - 1");
}

/* Prepares a lookup and prefetches the slot. `end` is the end of the readable bytes. */
static inline void pending_set(pending *p, const pybpe_counter *c, const uint8_t *word, size_t length,
                               const uint8_t *end) {
    p->word = word;
    p->length = length;
    if (PYBPE_LIKELY(length <= WORD_INLINE_MAX)) {
        p->key = word_key_load(word, length, end);
        p->hash = word_key_hash(p->key, c->seed);
    } else {
        p->hash = word_hash_long(word, length, c->seed);
        p->key = (word_key){p->hash, (uint64_t)COUNT_LONG_TAG << 56};
    }
    PYBPE_PREFETCH(&c->slots[(size_t)p->hash & c->mask]);
}

/* Makes an empty table, or returns an error. */
int count_table_init(pybpe_counter *c, pybpe_error *err);

/* Begin and end a call that changes a counter. After an error, it is empty and refuses all further calls. */
static inline int count_begin(const pybpe_counter *c, pybpe_error *err) {
    return c->failed == PYBPE_OK ? PYBPE_OK : error_set_failed(err, c->failed, "this counter");
}
int count_end(pybpe_counter *c, int code);

void count_table_free(pybpe_counter *c);

/* The number of words that fit into a table: at most three quarters of the slots are used. */
static inline size_t count_table_room(size_t slots) { return slots - slots / 4; }

/* Makes the table so large that `more` words fit. */
int count_table_reserve(pybpe_counter *c, size_t more, pybpe_error *err);

static inline bool slot_equals(const count_slot *slot, const pending *p) {
    if (p->length <= WORD_INLINE_MAX) {
        return word_key_equal(slot->key, p->key);
    }
    if (slot->key.lo != p->key.lo || !slot_is_long(slot)) {
        return false;
    }
    const count_record *record = slot_record(slot);
    return record->length == p->length && memcmp(record->bytes, p->word, p->length) == 0;
}

/* Puts a new word with count 0 into an empty slot. */
int count_table_insert(pybpe_counter *c, count_slot *slot, const pending *p, pybpe_error *err);

/* The count of a word. A new word is added with count 0. There must be room for it. */
static inline int count_table_add(pybpe_counter *c, const pending *p, uint64_t **count, pybpe_error *err) {
    size_t i = (size_t)p->hash & c->mask;
    while (c->slots[i].key.hi != 0 && !slot_equals(&c->slots[i], p)) {
        i = (i + 1) & c->mask;
    }
    count_slot *slot = &c->slots[i];
    int code = PYBPE_OK;
    if (PYBPE_UNLIKELY(slot->key.hi == 0)) {
        code = count_table_insert(c, slot, p, err);
    }
    *count = slot_count(slot);
    return code;
}

#endif
