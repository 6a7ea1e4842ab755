/*
Counting words: a hash table word -> count, with open addressing and the words held in the slots.

A slot is 24 bytes. A word of up to 15 bytes, as nearly all words of natural text are, lies in it whole
(wordkey.h); of a longer one the slot holds the hash and a pointer to a record in the arena:

    bytes    0 ........ 7    8 ........ 14    15     16 ..... 23
    short    the word, padded with zeros      len    count
    long     hash            pointer          0xFF   count
    empty                                     0

    arena    blocks of records, never moved:  length (8 bytes), the word's bytes

Words are looked up in batches of 256: the first pass computes keys and asks the processor to fetch the slots,
the second one compares and counts. By then the slots are there, and the time of a word is that of a few
instructions, not of a trip to memory.
*/
#include "special.h"
#include "wordkey.h"

enum {
    BATCH = 256,
    LONG_TAG = 0xFF,
    SLOTS_LOG2_START = 14,
    BLOCK_BYTES = 1 << 20,
    MERGE_BATCH = 64,
    EXPORT_AHEAD = 32
};

typedef struct count_slot {
    word_key key; /* key.hi is 0 in an empty slot */
    uint64_t count;
} count_slot;

/* A block of the arena; its records follow. */
typedef struct count_block {
    struct count_block *next;
    size_t used, cap;
    uint8_t bytes[];
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
    uint64_t memory;
    count_block *blocks;
    hash_seed seed;
};

/* A word between the two passes. */
typedef struct pending {
    word_key key; /* of a long word: its hash, and the tag with a NULL pointer */
    uint64_t hash;
    const uint8_t *word;
    size_t length;
} pending;

/* ---------------------------------------------------------------------------------------------------
The table
*/

static bool slot_is_long(const count_slot *slot) { return slot->key.hi >> 56 == LONG_TAG; }

static const uint8_t *slot_record(const count_slot *slot) {
    return (const uint8_t *)(uintptr_t)(slot->key.hi & ~((uint64_t)LONG_TAG << 56));
}

/* Asks the processor to fetch the record of a slot that comes up soon: tables are walked in the order of hashes,
   so that records lie all over the arena. */
static inline void slot_prefetch(const pybpe_counter *c, size_t i) {
    if (i <= c->mask && slot_is_long(&c->slots[i])) {
        PYBPE_PREFETCH(slot_record(&c->slots[i]));
    }
}

/* The word in the record of a slot that is long. */
static const uint8_t *slot_long_word(const count_slot *slot, size_t *length) {
    uint64_t n;
    memcpy(&n, slot_record(slot), sizeof n);
    *length = (size_t)n;
    return slot_record(slot) + sizeof n;
}

/* The word in any slot. A short one is written to `inline_word`. */
static const uint8_t *slot_word(const count_slot *slot, uint8_t inline_word[16], size_t *length) {
    if (slot_is_long(slot)) {
        return slot_long_word(slot, length);
    }
    *length = (size_t)(slot->key.hi >> 56);
    for (size_t i = 0; i < 8; i++) {
        inline_word[i] = (uint8_t)(slot->key.lo >> (8 * i));
        inline_word[8 + i] = (uint8_t)(slot->key.hi >> (8 * i));
    }
    return inline_word;
}

static bool slot_equals(const count_slot *slot, const pending *p) {
    if (p->length <= WORD_INLINE_MAX) {
        return word_key_equal(slot->key, p->key);
    }
    if (slot->key.lo != p->key.lo || !slot_is_long(slot)) {
        return false;
    }
    size_t length;
    const uint8_t *word = slot_long_word(slot, &length);
    return length == p->length && memcmp(word, p->word, length) == 0;
}

static int table_alloc(pybpe_counter *c, mem_table *table, size_t slots, pybpe_error *err) {
    if (!mem_table_alloc(table, &c->mem, slots, sizeof(count_slot))) {
        return error_set_memory(err, "counting words", slots * sizeof(count_slot));
    }
    memset(table->data, 0, slots * sizeof(count_slot));
    c->memory += slots * sizeof(count_slot);
    return PYBPE_OK;
}

/* Makes the table so large that `more` words fit; three quarters of the slots are the most that are taken. */
static int table_reserve(pybpe_counter *c, size_t more, pybpe_error *err) {
    size_t slots = c->mask + 1;
    while (slots - slots / 4 < c->words + more) {
        slots *= 2;
    }
    if (slots == c->mask + 1) {
        return PYBPE_OK;
    }
    mem_table fresh;
    int code = table_alloc(c, &fresh, slots, err);
    if (code != PYBPE_OK) {
        return code;
    }
    count_slot *to = fresh.data;
    for (size_t i = 0; i <= c->mask; i++) {
        if (c->slots[i].key.hi != 0) {
            /* A long word's key holds its hash, so the arena is not read. */
            uint64_t hash = slot_is_long(&c->slots[i]) ? c->slots[i].key.lo : word_key_hash(c->slots[i].key, c->seed);
            size_t at = (size_t)hash & (slots - 1);
            while (to[at].key.hi != 0) {
                at = (at + 1) & (slots - 1);
            }
            to[at] = c->slots[i];
        }
    }
    c->memory -= (c->mask + 1) * sizeof(count_slot);
    mem_table_free(&c->table, &c->mem);
    c->table = fresh;
    c->slots = to;
    c->mask = slots - 1;
    return PYBPE_OK;
}

/* Copies a long word into the arena. */
static int arena_add_word(pybpe_counter *c, const uint8_t *word, size_t length, const uint8_t **record,
                          pybpe_error *err) {
    uint64_t n = length;
    size_t needed = sizeof n + length; /* these sums fit: a word lies in memory, and so is far from SIZE_MAX bytes */
    count_block *block = c->blocks;
    if (block == NULL || block->cap - block->used < needed) {
        size_t cap = needed > BLOCK_BYTES ? needed : BLOCK_BYTES;
        block = mem_alloc(&c->mem, sizeof *block + cap);
        if (block == NULL) {
            return error_set_memory(err, "words", cap);
        }
        *block = (count_block){.next = c->blocks, .cap = cap};
        c->blocks = block;
        c->memory += sizeof *block + cap;
    }
    uint8_t *to = block->bytes + block->used;
    memcpy(to, &n, sizeof n);
    memcpy(to + sizeof n, word, length);
    block->used += needed;
    *record = to;
    return PYBPE_OK;
}

/* The slot of a word, added with count 0 if it is new. There must be room for it. */
static int slot_find(pybpe_counter *c, const pending *p, count_slot **found, pybpe_error *err) {
    size_t i = (size_t)p->hash & c->mask;
    for (; c->slots[i].key.hi != 0; i = (i + 1) & c->mask) {
        if (slot_equals(&c->slots[i], p)) {
            *found = &c->slots[i];
            return PYBPE_OK;
        }
    }
    word_key key = p->key;
    if (p->length > WORD_INLINE_MAX) {
        const uint8_t *record = NULL;
        int code = arena_add_word(c, p->word, p->length, &record, err);
        if (code != PYBPE_OK) {
            return code;
        }
        key.hi |= (uint64_t)(uintptr_t)record;
    }
    c->slots[i] = (count_slot){key, 0};
    c->words += 1;
    c->bytes += p->length;
    *found = &c->slots[i];
    return PYBPE_OK;
}

/* The first pass for one word; `end` is the end of what may be read. */
static inline void pending_set(pending *p, const pybpe_counter *c, const uint8_t *word, size_t length,
                               const uint8_t *end) {
    p->word = word;
    p->length = length;
    if (PYBPE_LIKELY(length <= WORD_INLINE_MAX)) {
        p->key = word_key_load(word, length, end);
        p->hash = word_key_hash(p->key, c->seed);
    } else {
        p->hash = word_hash_long(word, length, c->seed);
        p->key = (word_key){p->hash, (uint64_t)LONG_TAG << 56};
    }
    PYBPE_PREFETCH(&c->slots[(size_t)p->hash & c->mask]);
}

static int overflow_error(pybpe_error *err) {
    return error_set(err, PYBPE_ERR_LIMIT, 0, "the count of a word passes 2^64 - 1");
}

/* ---------------------------------------------------------------------------------------------------
Public
*/

int pybpe_counter_new(pybpe_counter **out, const pybpe_pretok *p, const pybpe_specials *s, const pybpe_allocator *mem,
                      pybpe_error *err) {
    *out = NULL;
    pybpe_counter *c = mem_alloc(mem, sizeof *c);
    if (c == NULL) {
        return error_set_memory(err, "a counter", sizeof *c);
    }
    *c = (pybpe_counter){.mem = mem_of(mem), .pretok = p, .specials = s, .seed = hash_seed_draw()};
    size_t slots = (size_t)1 << SLOTS_LOG2_START;
    int code = table_alloc(c, &c->table, slots, err);
    if (code != PYBPE_OK) {
        mem_free(mem, c);
        return code;
    }
    c->slots = c->table.data;
    c->mask = slots - 1;
    *out = c;
    return PYBPE_OK;
}

void pybpe_counter_free(pybpe_counter *c) {
    if (c == NULL) {
        return;
    }
    pybpe_allocator mem = c->mem;
    for (count_block *block = c->blocks; block != NULL;) {
        count_block *next = block->next;
        mem_free(&mem, block);
        block = next;
    }
    mem_table_free(&c->table, &mem);
    mem_free(&mem, c);
}

/* Counts the words of text without specials. */
static int segment_add(pybpe_counter *c, const uint8_t *text, size_t n, pybpe_error *err) {
    size_t ends[BATCH];
    pending batch[BATCH];
    for (size_t pos = 0; pos < n;) {
        size_t count = pybpe_pretok_split(c->pretok, text, n, pos, ends, BATCH);
        int code = table_reserve(c, count, err);
        if (code != PYBPE_OK) {
            return code;
        }
        for (size_t i = 0; i < count; i++) {
            pending_set(&batch[i], c, text + pos, ends[i] - pos, text + n);
            pos = ends[i];
        }
        for (size_t i = 0; i < count; i++) {
            count_slot *slot;
            code = slot_find(c, &batch[i], &slot, err);
            if (code != PYBPE_OK) {
                return code;
            }
            slot->count += 1; /* one a byte at most: 2^64 is out of reach */
        }
    }
    return PYBPE_OK;
}

int pybpe_counter_add(pybpe_counter *c, const uint8_t *text, size_t n, pybpe_error *err) {
    if (c->pretok == NULL) {
        return error_set(err, PYBPE_ERR_VALUE, 0,
                         "this counter was made without a pattern: use pybpe_counter_add_words");
    }
    size_t pos = 0, start, end;
    uint32_t id;
    int code = PYBPE_OK;
    while (code == PYBPE_OK && c->specials != NULL &&
           pybpe_specials_find(c->specials, text, n, pos, &start, &end, &id)) {
        code = segment_add(c, text + pos, start - pos, err);
        pos = end;
    }
    return code == PYBPE_OK ? segment_add(c, text + pos, n - pos, err) : code;
}

int pybpe_counter_add_words(pybpe_counter *c, const pybpe_strings *words, const uint64_t *counts, pybpe_error *err) {
    if (words->count == 0) {
        return PYBPE_OK;
    }
    const uint8_t *end = words->bytes + words->offsets[words->count];
    for (size_t i = 0; i < words->count; i++) {
        size_t length = (size_t)(words->offsets[i + 1] - words->offsets[i]);
        if (length == 0) {
            continue;
        }
        pending p;
        count_slot *slot = NULL;
        int code = table_reserve(c, 1, err);
        if (code == PYBPE_OK) {
            pending_set(&p, c, words->bytes + words->offsets[i], length, end);
            code = slot_find(c, &p, &slot, err);
        }
        if (code == PYBPE_OK && __builtin_add_overflow(slot->count, counts == NULL ? 1 : counts[i], &slot->count)) {
            code = overflow_error(err);
        }
        if (code != PYBPE_OK) {
            return code;
        }
    }
    return PYBPE_OK;
}

/* Adds the occupied ones of `count` slots of another counter. */
static int slots_merge(pybpe_counter *dst, const count_slot *slots, size_t count, pybpe_error *err) {
    pending batch[MERGE_BATCH];
    uint8_t inline_words[MERGE_BATCH][16];
    const count_slot *from[MERGE_BATCH];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (slots[i].key.hi != 0) {
            size_t length;
            const uint8_t *word = slot_word(&slots[i], inline_words[used], &length);
            const uint8_t *end = length <= WORD_INLINE_MAX ? word + 16 : word + length;
            pending_set(&batch[used], dst, word, length, end);
            from[used++] = &slots[i];
        }
    }
    for (size_t i = 0; i < used; i++) {
        count_slot *slot;
        int code = slot_find(dst, &batch[i], &slot, err);
        if (code == PYBPE_OK && __builtin_add_overflow(slot->count, from[i]->count, &slot->count)) {
            code = overflow_error(err);
        }
        if (code != PYBPE_OK) {
            return code;
        }
    }
    return PYBPE_OK;
}

int pybpe_counter_merge(pybpe_counter *dst, const pybpe_counter *src, pybpe_error *err) {
    int code = table_reserve(dst, src->words > dst->words ? src->words - dst->words : 0, err);
    for (size_t i = 0; i <= src->mask && code == PYBPE_OK; i += MERGE_BATCH) {
        code = table_reserve(dst, MERGE_BATCH, err);
        for (size_t ahead = i + MERGE_BATCH; ahead < i + (size_t)2 * MERGE_BATCH; ahead++) {
            slot_prefetch(src, ahead);
        }
        if (code == PYBPE_OK) {
            code = slots_merge(dst, src->slots + i, MERGE_BATCH, err);
        }
    }
    return code;
}

pybpe_counter_stats pybpe_counter_get_stats(const pybpe_counter *c) {
    pybpe_counter_stats stats = {.words = c->words, .bytes = c->bytes, .memory = c->memory};
    for (size_t i = 0; i <= c->mask; i++) {
        stats.total += c->slots[i].count;
    }
    return stats;
}

void pybpe_counter_export(const pybpe_counter *c, uint8_t *bytes, uint64_t *offsets, uint64_t *counts) {
    uint64_t at = 0;
    size_t word_index = 0;
    for (size_t i = 0; i <= c->mask; i++) {
        slot_prefetch(c, i + EXPORT_AHEAD);
        if (c->slots[i].key.hi != 0) {
            uint8_t inline_word[16];
            size_t length;
            const uint8_t *word = slot_word(&c->slots[i], inline_word, &length);
            memcpy(bytes + at, word, length);
            offsets[word_index] = at;
            counts[word_index] = c->slots[i].count;
            at += length;
            word_index += 1;
        }
    }
    offsets[word_index] = at;
}
