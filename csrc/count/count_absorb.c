/*
Adding the table of one counter to the table of another.

All counters of one pybpe_pretok have the same seed, and tables with the same seed hold their words in the same order,
except for collisions. So reading one table from front to back accesses the other from front to back too, and the hashes
in the slots distinguish long words. There must be room for all words before the start: after half of the slots, all
words so far are in one half of the other table, which must not overflow.
*/
#include "count/count_table.h"

enum { MOVE_AHEAD = 16 };

static bool seeds_equal(const pybpe_counter *x, const pybpe_counter *y) {
    return memcmp(&x->seed, &y->seed, sizeof x->seed) == 0;
}

/* Adds a copy of all words. */
static int table_merge(pybpe_counter *dst, const pybpe_counter *src, pybpe_error *err) {
    size_t known = seeds_equal(dst, src) ? 0 : dst->words; /* words that may be in both tables */
    PYBPE_TRY(count_table_reserve(dst, src->words > known ? src->words - known : 0, err));
    for (size_t i = 0; i <= src->mask; i++) {
        count_slot *slot = &src->slots[i];
        if (slot->key.hi == 0) {
            continue;
        }
        uint8_t inline_word[16];
        size_t length;
        const uint8_t *word = slot_word(slot, inline_word, &length);
        pending p;
        uint64_t *count = NULL;
        PYBPE_TRY(count_table_reserve(dst, 1, err));
        pending_set(&p, dst, word, length, length <= WORD_INLINE_MAX ? word + 16 : word + length);
        PYBPE_TRY(count_table_add(dst, &p, &count, err));
        if (__builtin_add_overflow(*count, *slot_count(slot), count)) {
            return count_overflow(err);
        }
    }
    dst->total += src->total;
    return PYBPE_OK;
}

static int both_begin(const pybpe_counter *dst, const pybpe_counter *src, pybpe_error *err) {
    PYBPE_TRY(count_begin(dst, err));
    return count_begin(src, err);
}

int pybpe_counter_merge(pybpe_counter *dst, const pybpe_counter *src, pybpe_error *err) {
    PYBPE_TRY(both_begin(dst, src, err));
    return count_end(dst, table_merge(dst, src, err));
}

/* ---------------------------------------------------------------------------------------------------
Moving
*/

static bool slots_equal(const count_slot *x, const count_slot *y) {
    if (!slot_is_long(x) || !slot_is_long(y)) {
        return word_key_equal(x->key, y->key);
    }
    if (x->key.lo != y->key.lo) {
        return false;
    }
    const count_record *a = slot_record(x), *b = slot_record(y);
    return a->length == b->length && memcmp(a->bytes, b->bytes, (size_t)a->length) == 0;
}

/* Where the search for a word of a table with the same seed starts. */
static inline size_t slot_start(const pybpe_counter *dst, const count_slot *from) {
    uint64_t hash = slot_is_long(from) ? from->key.lo : word_key_hash(from->key, dst->seed);
    return (size_t)hash & dst->mask;
}

/* Moves a word to dst, which has room for it. */
static int slot_move(pybpe_counter *dst, count_slot *from, pybpe_error *err) {
    size_t i = slot_start(dst, from);
    while (dst->slots[i].key.hi != 0 && !slots_equal(&dst->slots[i], from)) {
        i = (i + 1) & dst->mask;
    }
    count_slot *to = &dst->slots[i];
    if (to->key.hi == 0) {
        *to = *from;
        dst->words += 1;
        return PYBPE_OK;
    }
    uint64_t *count = slot_count(to);
    if (__builtin_add_overflow(*count, *slot_count(from), count)) {
        return count_overflow(err);
    }
    if (slot_is_long(from)) {
        slot_record(from)->moved = 1;
        dst->bytes -= slot_record(from)->length;
    } else {
        dst->bytes -= from->key.hi >> 56;
    }
    return PYBPE_OK;
}

/* Links the blocks of src before the blocks of dst. */
static void arena_move(pybpe_counter *dst, pybpe_counter *src) {
    count_block **end = &src->blocks;
    while (*end != NULL) {
        dst->memory += sizeof **end + (*end)->cap;
        end = &(*end)->next;
    }
    *end = dst->blocks;
    dst->blocks = src->blocks;
    src->blocks = NULL;
}

/* Moves all words of a counter with the same seed. */
static int table_move(pybpe_counter *dst, pybpe_counter *src, pybpe_error *err) {
    PYBPE_TRY(count_table_reserve(dst, src->words, err));
    dst->bytes += src->bytes;
    dst->total += src->total;
    arena_move(dst, src);
    for (size_t i = 0; i <= src->mask; i++) {
        PYBPE_PREFETCH(&dst->slots[slot_start(dst, &src->slots[i + MOVE_AHEAD <= src->mask ? i + MOVE_AHEAD : i])]);
        PYBPE_TRY(src->slots[i].key.hi != 0 ? slot_move(dst, &src->slots[i], err) : PYBPE_OK);
    }
    return PYBPE_OK;
}

int pybpe_counter_absorb(pybpe_counter *dst, pybpe_counter *src, pybpe_error *err) {
    pybpe_counter *empty = NULL;
    PYBPE_TRY(both_begin(dst, src, err));
    PYBPE_TRY(pybpe_counter_new(&empty, src->pretok, src->specials, &src->mem, err));
    int code = seeds_equal(dst, src) ? table_move(dst, src, err) : table_merge(dst, src, err);
    pybpe_counter old = *src;
    *src = *empty;
    *empty = old;
    pybpe_counter_free(empty);
    (void)count_end(src, code);
    return count_end(dst, code);
}
