/*
The table of a counter: open addressing, with the words held in the slots.

A slot is 24 bytes. A word of up to 15 bytes, like nearly all words of natural text, is stored in the slot itself
(hash.h). For a longer word the slot holds the hash and a pointer to a record in the arena:

    bytes    0 ........ 7    8 ........ 14    15     16 ..... 23
    short    the word, padded with zeros      len    count
    long     hash            pointer          0xFF   -
    empty                                     0

    arena    blocks of records, never moved:  count (8 bytes), length (8 bytes), the word's bytes

The count of a long word is in its record, because a lookup has to compare the bytes there anyway. So all long words can
be read in the order of the arena. In the order of slots, accesses would be scattered over it.
*/
#include "count/count_table.h"

enum { SLOTS_LOG2_START = 14, BLOCK_BYTES = 1 << 20 };

static int table_alloc(pybpe_counter *c, mem_table *table, size_t slots, pybpe_error *err) {
    if (!mem_table_alloc_zeroed(table, &c->mem, slots, sizeof(count_slot))) {
        return error_set_memory(err, "counting words", slots * sizeof(count_slot));
    }
    c->memory += slots * sizeof(count_slot);
    return PYBPE_OK;
}

int count_table_init(pybpe_counter *c, pybpe_error *err) {
    size_t slots = (size_t)1 << SLOTS_LOG2_START;
    int code = table_alloc(c, &c->table, slots, err);
    c->slots = c->table.data;
    c->mask = slots - 1;
    return code;
}

static void arena_free(pybpe_counter *c) {
    for (count_block *block = c->blocks; block != NULL;) {
        count_block *next = block->next;
        mem_free(&c->mem, block);
        block = next;
    }
    c->blocks = NULL;
}

void count_table_free(pybpe_counter *c) {
    arena_free(c);
    mem_table_free(&c->table, &c->mem);
}

int count_end(pybpe_counter *c, int code) {
    if (code != PYBPE_OK) {
        arena_free(c);
        memset(c->slots, 0, (c->mask + 1) * sizeof *c->slots);
        c->memory = (c->mask + 1) * sizeof *c->slots;
        c->words = 0;
        c->bytes = c->total = 0;
        c->failed = code;
    }
    return code;
}

int count_table_reserve(pybpe_counter *c, size_t more, pybpe_error *err) {
    size_t slots = c->mask + 1, words, bytes;
    if (!size_add(c->words, more, &words) || !size_mul(words, 4 * sizeof(count_slot), &bytes)) {
        return error_set_memory(err, "counting words", SIZE_MAX);
    }
    while (count_table_room(slots) < words) {
        slots *= 2;
    }
    if (slots == c->mask + 1) {
        return PYBPE_OK;
    }
    mem_table fresh;
    PYBPE_TRY(table_alloc(c, &fresh, slots, err));
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
static int arena_add_word(pybpe_counter *c, const uint8_t *word, size_t length, count_record **record,
                          pybpe_error *err) {
    size_t needed = count_record_size(length);
    count_block *block = c->blocks;
    if (block == NULL || block->cap - block->used < needed) {
        size_t cap = needed > BLOCK_BYTES ? needed : BLOCK_BYTES;
        block = mem_alloc(&c->mem, sizeof *block + cap);
        PYBPE_TRY(memory_check(block, "words", cap, err));
        *block = (count_block){.next = c->blocks, .cap = cap};
        c->blocks = block;
        c->memory += sizeof *block + cap;
    }
    *record = (count_record *)(block->records + block->used / 8);
    **record = (count_record){.length = (uint64_t)length & UINT64_MAX >> 1};
    memcpy((*record)->bytes, word, length);
    block->used += needed;
    return PYBPE_OK;
}

int count_table_insert(pybpe_counter *c, count_slot *slot, const pending *p, pybpe_error *err) {
    word_key key = p->key;
    if (p->length > WORD_INLINE_MAX) {
        count_record *record = NULL;
        PYBPE_TRY(arena_add_word(c, p->word, p->length, &record, err));
        key.hi |= (uint64_t)(uintptr_t)record;
    }
    *slot = (count_slot){key, 0};
    c->words += 1;
    c->bytes += p->length;
    return PYBPE_OK;
}
