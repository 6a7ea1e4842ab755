/*
The cache of words and their ids. encode_cache.h has the drawing.

A cache starts small, so that a short text costs little. It grows, up to a fixed size, when a call passes a lot of text
or when many words have been added, and once more when that size has turned many words away. A new word takes the first
slot of its set. The word that was there moves to the second slot, and the word in the second one to a free slot of the
neighboring set: see set_push.
*/
#include "encode/encode_cache.h"
#include "encode/encode_stages.h"

enum {
    CACHE_LOG2_SETS_MIN = 9,
    CACHE_LOG2_SETS_USUAL = 18, /* 16 MiB: half of this loses 4 % on English and 11 % on code */
    CACHE_LOG2_SETS_MAX = 19,   /* for texts with more words than the usual size has room for */
    CACHE_LONG_SHARE = 2,       /* long slots per 2 sets: 1 */
    CACHE_ARENA_MIN = 1 << 14,
    CACHE_ARENA_MAX = 1 << 23,
    CACHE_SCRATCH_MAX = 1 << 24,
    CACHE_STAGE_IDS_MAX = 1 << 20
};

/* ---------------------------------------------------------------------------------------------------
The tables
*/

static bool slot_is_empty(const cache_slot *s) { return s->key.hi == 0; }

static cache_slot *set_neighbor(const pybpe_cache *c, const cache_slot *set) {
    cache_slot *slots = c->table.data;
    return slots + ((size_t)(set - slots) ^ CACHE_WAYS);
}

/* Adds a word to a set, and moves another one to a free slot of the neighboring set. If there is none, one of the five
   words has to be forgotten: mostly the new one, because if each new word replaced an old one, five words that keep
   occurring would all be merged again and again. */
static void set_push(pybpe_cache *c, cache_slot *set, const cache_slot *word) {
    const size_t refused = 7; /* of 8 words */
    if (!slot_is_empty(&set[0]) && !slot_is_empty(&set[1])) {
        cache_slot *neighbor = set_neighbor(c, set);
        cache_slot *room = &neighbor[!slot_is_empty(&neighbor[1]) && slot_is_empty(&neighbor[0]) ? 0 : 1];
        if (!slot_is_empty(room) && c->crowded++ % (refused + 1) != 0) {
            return;
        }
        *room = set[1];
    }
    if (!slot_is_empty(&set[0])) {
        set[1] = set[0];
    }
    set[0] = *word;
}

/* Moves the short words to a table of `ratio` times as many sets. `from` may be the start of that table: the words of a
   group, which is a set and its neighbor, go to `ratio` groups, and none of these begins before it, so the last group
   goes first. */
static void cache_spread(pybpe_cache *c, const cache_slot *from, size_t groups, size_t ratio) {
    enum { GROUP_SLOTS = 2 * CACHE_WAYS };
    for (size_t group = groups; group-- > 0;) {
        cache_slot words[GROUP_SLOTS];
        memcpy(words, from + GROUP_SLOTS * group, sizeof words);
        memset((cache_slot *)c->table.data + GROUP_SLOTS * ratio * group, 0, ratio * sizeof words);
        for (size_t i = 0; i < GROUP_SLOTS; i++) {
            word_key key = {words[i].key.lo, words[i].key.hi & (UINT64_MAX >> 4)};
            if (key.hi >> 56 != 0) {
                set_push(c, cache_set(c, key), &words[i]);
                c->added += 1;
            }
        }
    }
}

/* Enlarges the tables, or makes the first ones. Short words are moved. Long ones are forgotten. */
static bool cache_resize(pybpe_cache *c, unsigned log2_sets) {
    const size_t sets = (size_t)1 << log2_sets, set_size = CACHE_WAYS * sizeof(cache_slot);
    cache_long_slot *long_slots = mem_alloc_zeroed(&c->mem, sets / CACHE_LONG_SHARE, sizeof *long_slots);
    if (long_slots == NULL) {
        return false;
    }
    mem_table old = {0};
    if (c->sets == 0 || !mem_table_grow(&c->table, &c->mem, c->sets * set_size, sets * set_size)) {
        mem_table table;
        if (!mem_table_alloc_zeroed(&table, &c->mem, sets, set_size)) {
            mem_free(&c->mem, long_slots);
            return false;
        }
        old = c->table;
        c->table = table;
    }
    const size_t groups = c->sets / 2, ratio = c->sets > 0 ? sets / c->sets : 0;
    c->sets = sets;
    c->shift = 64 - log2_sets;
    c->added = 0;
    c->crowded = 0;
    cache_spread(c, old.data != NULL ? old.data : c->table.data, groups, ratio);
    mem_table_free(&old, &c->mem);
    mem_free(&c->mem, c->long_slots);
    c->long_slots = long_slots;
    c->long_mask = sets / CACHE_LONG_SHARE - 1;
    return true;
}

static void cache_unmake(pybpe_cache *c) {
    if (c == NULL) {
        return;
    }
    pybpe_allocator mem = c->mem;
    mem_table_free(&c->table, &mem);
    mem_free(&mem, c->long_slots);
    mem_free(&mem, c->arena);
    apply_scratch_free(&c->scratch, &mem);
    apply_blocks_free(&c->blocks, &mem);
    mem_free(&mem, c->stage_ids);
    mem_free(&mem, c);
}

/* Makes a cache for the words of an encoder, as if it had one stage. */
static int cache_make(pybpe_cache **out, const pybpe_encoder *e, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    pybpe_cache *c = mem_alloc(mem, sizeof *c);
    PYBPE_TRY(memory_check(c, "a cache", sizeof *c, err));
    *c = (pybpe_cache){.mem = mem_of(mem),
                       .encoder = e,
                       .narrow = encoder_is_narrow(e),
                       .seed = hash_seed_draw(),
                       .generation = 1,
                       .has_new_tokens = true};
    c->seed.a |= 1;
    c->seed.b |= 1;
    c->arena = mem_alloc(mem, CACHE_ARENA_MIN);
    c->arena_size = CACHE_ARENA_MIN;
    if (c->arena == NULL || !cache_resize(c, CACHE_LOG2_SETS_MIN)) {
        cache_unmake(c);
        return error_set_memory(err, "a cache", CACHE_ARENA_MIN);
    }
    *out = c;
    return PYBPE_OK;
}

int pybpe_cache_new(pybpe_cache **out, const pybpe_encoder *e, const pybpe_allocator *mem, pybpe_error *err) {
    int code = cache_make(out, e, mem, err);
    if (code == PYBPE_OK && e->stages != NULL) {
        code = cache_make(&(*out)->first, e->stages->first, mem, err);
    }
    if (code != PYBPE_OK) {
        pybpe_cache_free(*out);
        *out = NULL;
    }
    return code;
}

void pybpe_cache_free(pybpe_cache *c) {
    if (c != NULL) {
        cache_unmake(c->first);
        cache_unmake(c);
    }
}

/* Returns log2 of the number of sets that the table should have for n more bytes of text. */
static unsigned sets_wanted(const pybpe_cache *c, size_t n) {
    const size_t usual = (size_t)1 << CACHE_LOG2_SETS_USUAL;
    const size_t few = (size_t)1 << 15;
    if (c->sets >= usual) { /* twice the memory must be worth it */
        return c->crowded > c->sets / 4 ? CACHE_LOG2_SETS_MAX : CACHE_LOG2_SETS_USUAL;
    }
    /* The first megabyte of natural text has a new word in about 60 bytes. The first 10 MB have one in about 150. So the
       table gets a set for each word, and half of its slots stay free. Later there are few new words, and text enough to
       pay for a larger table: new memory is slow. */
    size_t want = n / 64 < few ? n / 64 : few;
    want = want > n / 160 ? want : n / 160;
    if (c->added > (c->sets < usual / 2 ? c->sets : c->sets / 2)) {
        want = want > 2 * c->sets ? want : 2 * c->sets;
    }
    unsigned log2_sets = CACHE_LOG2_SETS_MIN;
    while (log2_sets < CACHE_LOG2_SETS_USUAL && (size_t)1 << log2_sets < want) {
        log2_sets += 1;
    }
    return log2_sets;
}

void cache_fit(pybpe_cache *c, size_t n) {
    if (c->first != NULL) { /* this one has no words */
        cache_fit(c->first, n);
        return;
    }
    const unsigned log2_sets = sets_wanted(c, n);
    if ((size_t)1 << log2_sets > c->sets) {
        cache_resize(c, log2_sets);
    }
}

void cache_trim(pybpe_cache *c) {
    if (apply_scratch_memory(&c->scratch) > CACHE_SCRATCH_MAX) {
        apply_scratch_free(&c->scratch, &c->mem);
    }
    apply_blocks_trim(&c->blocks, CACHE_SCRATCH_MAX / sizeof(uint32_t), &c->mem);
    if (c->stage_ids_cap > CACHE_STAGE_IDS_MAX) {
        mem_free(&c->mem, c->stage_ids);
        c->stage_ids = NULL;
        c->stage_ids_cap = 0;
    }
}

/* ---------------------------------------------------------------------------------------------------
The arena
*/

/* Makes room for one entry. Doubles the arena up to its limit and starts over when it is full. */
static cache_entry *arena_take(pybpe_cache *c, size_t bytes, size_t count, uint32_t *offset) {
    size_t need = sizeof(cache_entry) + count * sizeof(uint32_t) + ((bytes + 3) & ~(size_t)3);
    if (need > c->arena_size - c->arena_used && c->arena_size < CACHE_ARENA_MAX) {
        uint8_t *more = mem_resize_array(&c->mem, c->arena, 2 * c->arena_size, 1);
        if (more != NULL) {
            c->arena = more;
            c->arena_size *= 2;
        }
    }
    if (need > c->arena_size - c->arena_used) {
        c->arena_used = 0;
        c->generation += 1;
        if (c->generation == 0) { /* after 2^32 rounds old references could look new: forget them all */
            c->generation = 1;
            memset(c->table.data, 0, c->sets * CACHE_WAYS * sizeof(cache_slot));
            memset(c->long_slots, 0, (c->long_mask + 1) * sizeof *c->long_slots);
        }
    }
    *offset = (uint32_t)c->arena_used;
    c->arena_used += need;
    return (cache_entry *)(void *)(c->arena + *offset);
}

/* Writes the word's ids, and its bytes if n > 0, to the arena. */
static uint32_t arena_add_ids(pybpe_cache *c, const uint8_t *w, size_t n, const uint32_t *ids, size_t count) {
    uint32_t offset;
    cache_entry *entry = arena_take(c, n, count, &offset);
    *entry = (cache_entry){(uint32_t)n, (uint32_t)count};
    uint32_t *to = (uint32_t *)(void *)(entry + 1);
    memcpy(to, ids, count * sizeof *ids);
    if (n > 0) {
        memcpy(to + count, w, n);
    }
    return offset;
}

static const uint32_t *arena_ids(const pybpe_cache *c, uint32_t offset, cache_entry *entry) {
    memcpy(entry, c->arena + offset, sizeof *entry);
    return (const uint32_t *)(const void *)(c->arena + offset + sizeof *entry);
}

/* ---------------------------------------------------------------------------------------------------
Words
*/

const uint32_t *cache_far_ids(const pybpe_cache *c, const cache_slot *s, size_t *count) {
    if (s->ids.far.generation != c->generation) {
        return NULL;
    }
    cache_entry entry;
    const uint32_t *ids = arena_ids(c, s->ids.far.offset, &entry);
    *count = entry.count;
    return ids;
}

const cache_slot *cache_find(const pybpe_cache *c, cache_slot *set, word_key key) {
    for (int way = 0; way < CACHE_WAYS; way++) {
        if (cache_slot_holds(&set[way], key)) {
            return &set[way];
        }
    }
    if (slot_is_empty(&set[1])) { /* the set was never full, so none of its words has moved */
        return NULL;
    }
    cache_slot *neighbor = set_neighbor(c, set);
    cache_slot *slot = &neighbor[cache_slot_holds(&neighbor[1], key)];
    if (!cache_slot_holds(slot, key)) {
        return NULL;
    }
    cache_slot word = *slot;
    *slot = set[1];
    set[1] = word;
    return &set[1];
}

void cache_add(pybpe_cache *c, cache_slot *set, word_key key, const uint32_t *ids, size_t count) {
    cache_slot slot = {.key = key};
    if (count <= (c->narrow ? CACHE_NARROW_IDS : CACHE_WIDE_IDS)) {
        slot.key.hi |= (uint64_t)count << 60;
        for (size_t i = 0; i < count; i++) {
            if (c->narrow) {
                slot.ids.narrow[i] = (uint16_t)ids[i];
            } else {
                slot.ids.wide[i] = ids[i];
            }
        }
    } else {
        slot.ids.far.offset = arena_add_ids(c, NULL, 0, ids, count);
        slot.ids.far.generation = c->generation;
    }
    cache_slot *known = &set[cache_slot_holds(&set[1], key)];
    if (cache_slot_holds(known, key)) { /* its ids are gone from the arena */
        *known = slot;
    } else {
        set_push(c, set, &slot);
    }
    c->added += 1;
}

const uint32_t *cache_long_find(const pybpe_cache *c, uint64_t hash, const uint8_t *w, size_t n, size_t *count) {
    for (size_t way = 0; way < 2; way++) {
        const cache_long_slot *slot = cache_long_slot_of(c, hash ^ way);
        if (slot->hash == hash && slot->generation == c->generation) {
            cache_entry entry;
            const uint32_t *ids = arena_ids(c, slot->offset, &entry);
            if (entry.length == n && memcmp(ids + entry.count, w, n) == 0) {
                *count = entry.count;
                return ids;
            }
        }
    }
    return NULL;
}

void cache_long_add(pybpe_cache *c, uint64_t hash, const uint8_t *w, size_t n, const uint32_t *ids, size_t count) {
    uint32_t offset = arena_add_ids(c, w, n, ids, count);
    cache_long_slot *slot = cache_long_slot_of(c, hash);
    if (slot->generation == c->generation) { /* otherwise it is free */
        *cache_long_slot_of(c, hash ^ 1) = *slot;
    }
    *slot = (cache_long_slot){hash, offset, c->generation};
}
