/*
The words that a thread remembers: the implementation of pybpe_cache. Internal.

Words of up to 15 bytes are in a table of 32-byte slots. The two slots of a cache line are a set. A word is in the set
that its hash selects. If that one has no room, a word moves to the set's neighbor, the other half of an aligned 128
bytes. When it is looked up again, it returns. A slot:

    byte  0        8              15 16                          31
          | bytes of the word, zeros |n| up to 8 ids of 16 bits    |   vocabularies of up to 65,536 ids
          | bytes of the word, zeros |n| up to 4 ids of 32 bits    |   larger ones
          | bytes of the word, zeros |0| offset, generation        |   more ids than fit: they are in the arena

    n: the length in the low 4 bits, the number of ids in the high 4. A length of 0 marks an empty slot

Longer words are in the arena, with their bytes, and are found through a second table by their hash. When the arena is
full, it starts over with a new generation: references to an older generation are no longer valid.
*/
#ifndef PYBPE_ENCODE_CACHE_H
#define PYBPE_ENCODE_CACHE_H

#include "apply/apply.h"
#include "hash/hash.h"

enum {
    CACHE_WAYS = 2,
    CACHE_NARROW_IDS = 8,
    CACHE_WIDE_IDS = 4,
    CACHE_WORD_MAX = 1024 /* longer words are not remembered */
};

typedef struct cache_slot {
    word_key key; /* with the number of ids in the top 4 bits of hi */
    union {
        uint16_t narrow[CACHE_NARROW_IDS];
        uint32_t wide[CACHE_WIDE_IDS];
        struct {
            uint32_t offset, generation;
        } far;
    } ids;
} cache_slot;

typedef struct cache_long_slot {
    uint64_t hash;
    uint32_t offset, generation; /* generation 0 marks an empty slot */
} cache_long_slot;

/* One word in the arena. Its ids follow, then its bytes (not for words of up to 15 bytes). */
typedef struct cache_entry {
    uint32_t length; /* of the word */
    uint32_t count;  /* of ids */
} cache_entry;

struct pybpe_cache {
    pybpe_allocator mem;
    const pybpe_encoder *encoder;
    bool narrow;     /* all ids fit 16 bits */
    hash_seed seed;  /* odd numbers */
    mem_table table; /* of cache_slot */
    size_t sets;     /* pairs of slots: a power of two */
    unsigned shift;  /* 64 - log2(sets) */
    size_t added;    /* words; some of them more than once */
    size_t crowded;  /* words for which there was no room */
    cache_long_slot *long_slots;
    size_t long_mask;
    uint8_t *arena;
    size_t arena_size, arena_used;
    uint32_t generation; /* from 1 */
    bool has_new_tokens; /* many words of the last text were not in the table, and are tokens: see units_sift */
    apply_scratch scratch;
    size_t long_bytes;         /* total length of the words of more than APPLY_SHORT_MAX bytes that had to be merged */
    apply_blocks_table blocks; /* filled when that is large */
    pybpe_cache *first;        /* of the encoder of stage 1, if there are stages */
    uint32_t *stage_ids;       /* of a block: the ids of stage 1, then, from stage_ids_cap on, of stage 2 */
    size_t stage_ids_cap;
};

/* Resizes the tables for n more bytes of text. Never fails: the tables may stay as they are. */
void cache_fit(pybpe_cache *c, size_t n);

/* Frees scratch space that only an exceptionally long word needed. */
void cache_trim(pybpe_cache *c);

/* The set of a key. Only the top bits of the hash are used, so a sum of products is good enough. */
static inline cache_slot *cache_set(const pybpe_cache *c, word_key key) {
    uint64_t hash = key.lo * c->seed.a + key.hi * c->seed.b;
    return (cache_slot *)c->table.data + CACHE_WAYS * (size_t)(hash >> c->shift);
}

static inline bool cache_slot_holds(const cache_slot *s, word_key key) {
    return ((s->key.lo ^ key.lo) | (s->key.hi ^ key.hi) << 4) == 0; /* the shift drops the number of ids */
}

static inline unsigned cache_slot_count(const cache_slot *s) { return (unsigned)(s->key.hi >> 60); }

/* The slot of a word in its set, NULL if there is none. A word in the neighboring set is first moved into its own. */
const cache_slot *cache_find(const pybpe_cache *c, cache_slot *set, word_key key);

/* The ids of a slot that holds them in the arena, or NULL if they are gone. */
const uint32_t *cache_far_ids(const pybpe_cache *c, const cache_slot *s, size_t *count);

/* Remembers the ids of a word of up to 15 bytes in its set. */
void cache_add(pybpe_cache *c, cache_slot *set, word_key key, const uint32_t *ids, size_t count);

/* The slot of a longer word. The word is there or in the other slot of an aligned pair. */
static inline cache_long_slot *cache_long_slot_of(const pybpe_cache *c, uint64_t hash) {
    return &c->long_slots[hash & c->long_mask];
}

/* The ids of a longer word of up to CACHE_WORD_MAX bytes, or NULL, and how to remember them. */
const uint32_t *cache_long_find(const pybpe_cache *c, uint64_t hash, const uint8_t *w, size_t n, size_t *count);
void cache_long_add(pybpe_cache *c, uint64_t hash, const uint8_t *w, size_t n, const uint32_t *ids, size_t count);

#endif
