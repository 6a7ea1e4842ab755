/*
A set of the cache that is full lends slots from its neighbor. A full cache starts over and still gives the same ids, even when its generation, which counts the rounds, wraps after
2^32 of them.
*/
#include "check.h"
#include "encode/encode_cache.h"
#include "naive_encode.h"
#include "random_state.h"

enum { LONG_BYTES = 300, LONG_WORDS = 14000, SHORT_BYTES = 14, SHORT_WORDS = 9000 };

/* Each pair of binary digits occurs in a token, so that no word is cut before it is merged. */
static const pybpe_vocab_spec *spec_of(small_vocab *v) {
    static pybpe_vocab_spec spec;
    small_start(v);
    uint32_t zero_one = small_add_merge(v, '0', '1');
    small_add_merge(v, '1', '1');
    small_add_merge(v, '0', '0');
    small_add_merge(v, zero_one, zero_one);
    small_add_merge(v, '1', zero_one);
    spec = small_spec(v);
    return &spec;
}

static void random_word(uint8_t *word, size_t n) {
    for (size_t i = 0; i < n; i++) {
        word[i] = (uint8_t)('0' + random_below(2));
    }
}

/* Encodes `words` random words of n bytes, each twice, and the one before it; returns how many were wrong. */
static unsigned wrong_words(const small_vocab *v, const pybpe_encoder *e, pybpe_cache *c, size_t n, unsigned words) {
    uint8_t text[3][LONG_BYTES];
    uint32_t expected[LONG_BYTES];
    uint32_t ids[LONG_BYTES];
    unsigned wrong = 0;
    for (unsigned i = 0; i < words; i++) {
        const unsigned again[] = {i, i, i + 2}; /* a word, itself, and the one before it */
        random_word(text[i % 3], n);
        for (unsigned k = 0; k < (i > 0 ? 3 : 2); k++) {
            const uint8_t *word = text[again[k] % 3];
            size_t count = 0;
            wrong += pybpe_encode_words(e, c, word, &n, 1, ids, 4, LONG_BYTES, &count, NULL) != PYBPE_OK;
            if (i % 40 == 1) {
                wrong += count != merge_naive(v, word, n, expected) || memcmp(ids, expected, 4 * count) != 0;
            }
        }
    }
    return wrong;
}

/* Long words of any length are found again, in a cache that was enlarged before: once, not at each text. */
static void test_fitting(const pybpe_encoder *e) {
    enum { WORDS = CACHE_WORD_MAX - WORD_INLINE_MAX };
    static uint8_t word[CACHE_WORD_MAX];
    const uint32_t ids[] = {1, 2, 3};
    pybpe_cache *c = NULL;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    size_t sets = c->sets;
    cache_fit(c, 1 << 22);
    CHECK(c->sets > sets);
    const void *table = c->table.data;
    cache_fit(c, 1 << 22);
    CHECK(c->table.data == table);
    for (size_t i = 0; i < WORDS; i++) {
        const size_t n = WORD_INLINE_MAX + 1 + i;
        cache_long_add(c, i, word, n, ids, i % 4); /* the hash decides which slot is taken */
        CHECK(c->arena_used % sizeof(uint32_t) == 0);
    }
    for (size_t i = 0; i < WORDS; i++) {
        size_t count = 77;
        const uint32_t *found = cache_long_find(c, i, word, WORD_INLINE_MAX + 1 + i, &count);
        CHECK(found != NULL && count == i % 4 && memcmp(found, ids, 4 * count) == 0);
        CHECK(cache_long_find(c, i, word, WORD_INLINE_MAX + 2 + i, &count) == NULL);
    }
    memset(word, 1, sizeof word);
    size_t count;
    CHECK(cache_long_find(c, 0, word, WORD_INLINE_MAX + 1, &count) == NULL);
    pybpe_cache_free(c);
}

/* Two long words of one slot are remembered; of three, the last two. */
static void test_pairs_of_long_words(const pybpe_encoder *e) {
    enum { BYTES = 20 };
    pybpe_cache *c = NULL;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    for (uint64_t slot = 10; slot < 12; slot++) {
        uint8_t word[3][BYTES] = {"first", "second", "third"};
        for (uint32_t i = 0; i < 3; i++) {
            cache_long_add(c, slot + ((uint64_t)i << 40), word[i], BYTES, &(uint32_t){100 + i}, 1);
            for (uint32_t k = 0; k <= i; k++) {
                size_t count = 0;
                const uint32_t *found = cache_long_find(c, slot + ((uint64_t)k << 40), word[k], BYTES, &count);
                CHECK(k + 1 < i ? found == NULL : found != NULL && count == 1 && *found == 100 + k);
            }
        }
    }
    pybpe_cache_free(c);
}

/* The i-th of the keys that belong to the set. */
static word_key key_of_set(const pybpe_cache *c, const cache_slot *set, unsigned i) {
    word_key key = {0, UINT64_C(8) << 56};
    for (unsigned found = 0;; key.lo++) {
        if (cache_set(c, key) == set && found++ == i) {
            return key;
        }
    }
}

/* The first id of a word that the cache has, otherwise 0. */
static uint32_t first_id(const pybpe_cache *c, cache_slot *set, word_key key) {
    const cache_slot *slot = cache_find(c, set, key);
    CHECK(slot == NULL || (slot >= set && slot < set + CACHE_WAYS && cache_slot_holds(slot, key)));
    return slot == NULL ? 0 : c->narrow ? slot->ids.narrow[0] : slot->ids.wide[0];
}

/* A set remembers one more word than it has slots, and finds each in its own slots, any number of times. A fourth word
   takes the place of one of them. The words of the neighbor are found, too. */
static void test_neighbors(const pybpe_encoder *e) {
    pybpe_cache *c = NULL;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    cache_slot *set = c->table.data;
    cache_slot *neighbor = set + CACHE_WAYS;
    word_key theirs = key_of_set(c, neighbor, 0);
    cache_add(c, neighbor, theirs, &(uint32_t){50}, 1);
    for (uint32_t i = 0; i < 4; i++) {
        word_key key = key_of_set(c, set, i);
        CHECK_EQ(first_id(c, set, key), 0);
        cache_add(c, set, key, &(uint32_t){100 + i}, 1);
        for (uint32_t round = 0; i == 2 && round < 9; round++) {
            CHECK_EQ(first_id(c, set, key_of_set(c, set, round % 3)), 100 + round % 3);
        }
    }
    unsigned known = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t id = first_id(c, set, key_of_set(c, set, i));
        CHECK(id == 0 || id == 100 + i);
        known += id != 0;
    }
    CHECK_EQ(known, 3);
    CHECK_EQ(c->added, 5);
    CHECK_EQ(first_id(c, neighbor, theirs), 50);
    pybpe_cache_free(c);
}

/* A smaller table grows if it has many words, or if the text is long. */
static void test_growing_to_the_usual_size(const pybpe_encoder *e) {
    pybpe_cache *c = NULL;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    const size_t least = c->sets;
    c->added = least + 1;
    cache_fit(c, 64 * 16 * least); /* twice as large would be enough for the words */
    CHECK_EQ(c->sets, 16 * least);
    c->added = c->sets + 1;
    cache_fit(c, 1);
    CHECK_EQ(c->sets, 32 * least);
    cache_fit(c, 64 * 128 * least); /* half as large, because long texts have fewer words per byte */
    CHECK_EQ(c->sets, 64 * least);
    cache_fit(c, 160 * 256 * least);
    CHECK_EQ(c->sets, 256 * least);
    c->added = c->sets;
    cache_fit(c, 1);
    CHECK_EQ(c->sets, 512 * least);
    pybpe_cache_free(c);
}

/* Words of one set, of which some are in its neighbor, and then one of the neighbor's own: four slots hold four. */
static void test_room_of_neighbors(const pybpe_encoder *e) {
    pybpe_cache *c = NULL;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    cache_slot *set = c->table.data;
    cache_slot *neighbor = set + CACHE_WAYS;
    for (uint32_t i = 0; i < 4; i++) {
        cache_slot *own = i < 3 ? set : neighbor;
        cache_add(c, own, key_of_set(c, own, i), &(uint32_t){100 + i}, 1);
    }
    for (uint32_t i = 0; i < 4; i++) {
        cache_slot *own = i < 3 ? set : neighbor;
        CHECK_EQ(first_id(c, own, key_of_set(c, own, i)), 100 + i);
    }
    pybpe_cache_free(c);
}

/* Words are looked up, not merged again, also if they are in the neighboring set. */
static void test_encoding_neighbors(const pybpe_encoder *e, size_t n) {
    enum { WORDS = 3, ROUNDS = 4 };
    pybpe_cache *c = NULL;
    uint8_t words[WORDS][WORD_INLINE_MAX + 1];
    unsigned found = 0;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    for (unsigned number = 0; found < WORDS; number++) { /* words of digits, of the first set */
        snprintf((char *)words[found], sizeof words[found], "%0*u", (int)n, number);
        found += cache_set(c, word_key_careful(words[found], n)) == (cache_slot *)c->table.data;
    }
    for (size_t i = 0; i < WORDS * ROUNDS; i++) {
        size_t count = 0;
        CHECK_EQ(pybpe_encode_words(e, c, words[i % WORDS], &n, 1, NULL, 0, 0, &count, NULL), PYBPE_OK);
        CHECK_EQ(c->added, i < WORDS ? i + 1 : WORDS);
    }
    pybpe_cache_free(c);
}

/* A larger table has all words of a smaller one. */
static void test_resizing(const pybpe_encoder *e) {
    enum { WORDS = 2 * WORD_INLINE_MAX };
    failing_memory m = {.left = -1};
    const pybpe_allocator mem = {failing_resize, &m};
    pybpe_cache *c = NULL;
    word_key keys[WORDS];
    uint32_t ids[WORDS];
    CHECK_EQ(pybpe_cache_new(&c, e, &mem, NULL), PYBPE_OK);
    c->seed = (hash_seed){UINT64_C(0x9E3779B97F4A7C15), UINT64_C(0xBF58476D1CE4E5B9)}; /* no set is crowded */
    keys[0] = key_of_set(c, c->table.data, 0);                                         /* in the first slot */
    for (size_t i = 1; i < WORDS; i++) {                                               /* words of all lengths */
        uint8_t word[WORD_INLINE_MAX];
        random_word(word, sizeof word);
        keys[i] = word_key_careful(word, 1 + i % WORD_INLINE_MAX);
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        cache_slot *set = cache_set(c, keys[i]);
        if (cache_find(c, set, keys[i]) == NULL) { /* words of one or two letters are alike */
            cache_add(c, set, keys[i], &(uint32_t){100 + i}, 1);
        }
    }
    for (size_t i = 0; i < WORDS; i++) {
        ids[i] = first_id(c, cache_set(c, keys[i]), keys[i]);
        CHECK(ids[i] != 0);
    }
    const size_t added = c->added;
    const struct {
        size_t sets, text;
    } sizes[] = {{1 << 11, 1 << 17}, {1 << 12, 1 << 18}, {1 << 15, 1 << 21}, {1 << 18, 160 << 18}};
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++) { /* the last is a new table. The others grow */
        const size_t before = c->sets;
        for (m.left = 0; m.left < 2; m.left++) { /* no memory, or only for the long words: it stays as it is */
            const long left = m.left;
            cache_fit(c, sizes[size].text);
            CHECK_EQ(c->sets, before);
            m.left = left;
            for (size_t i = 0; i < WORDS; i++) {
                CHECK_EQ(first_id(c, cache_set(c, keys[i]), keys[i]), ids[i]);
            }
        }
        m.left = -1;
        cache_fit(c, sizes[size].text);
        CHECK_EQ(c->sets, sizes[size].sets);
        CHECK_EQ(c->added, added); /* all of them may need room soon */
        for (size_t i = 0; i < WORDS; i++) {
            CHECK_EQ(first_id(c, cache_set(c, keys[i]), keys[i]), ids[i]);
        }
    }
    pybpe_cache_free(c);
    CHECK_EQ(m.blocks, 0);
}

/* The arena starts small, is doubled when it is full, and has an end. Then it starts over. After 2^32 times, the cache
   is empty. */
static void test_generations(const pybpe_encoder *e) {
    enum { ARENA_MIN = 1 << 14, ARENA_MAX = 1 << 23, IDS = 100, BYTES = 20 };
    static const uint32_t ids[IDS];
    static const uint8_t word[BYTES];
    const size_t entry = sizeof(cache_entry) + sizeof ids + BYTES;
    pybpe_cache *c = NULL;
    size_t count = 0;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    cache_slot *set = c->table.data;
    const word_key key = key_of_set(c, set, 0);
    CHECK_EQ(c->generation, 1);
    cache_add(c, set, key, ids, IDS);
    cache_long_add(c, 1, word, BYTES, ids, IDS);
    c->generation = UINT32_MAX;
    for (size_t size = ARENA_MIN; c->generation == UINT32_MAX;) {
        CHECK_EQ(c->arena_size, size);
        size *= size < ARENA_MAX && c->arena_used + entry > size ? 2 : 1;
        cache_long_add(c, 0, word, BYTES, ids, IDS);
    }
    CHECK_EQ(c->arena_size, ARENA_MAX);
    CHECK_EQ(c->generation, 1);
    CHECK(cache_find(c, set, key) == NULL);
    CHECK(cache_long_find(c, 1, word, BYTES, &count) == NULL);
    for (size_t i = 1; i <= c->long_mask; i++) { /* all but the last word's */
        CHECK_EQ(c->long_slots[i].generation, 0);
    }
    pybpe_cache_free(c);
}

/* A small table grows for long texts, one set per 64 bytes, and after many words; one of the usual size grows once,
   when it has turned many words away. */
static void test_growing(const pybpe_encoder *e) {
    const size_t much = (size_t)1 << 40;
    pybpe_cache *c = NULL;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    for (size_t sets = c->sets; sets < 1 << 13; sets *= 2) {
        cache_fit(c, 64 * sets);
        CHECK_EQ(c->sets, sets);
        cache_fit(c, 64 * sets + 64);
        CHECK_EQ(c->sets, 2 * sets);
    }
    for (size_t sets = 1 << 13; sets < 1 << 18; sets *= 2) {
        c->added = sets < 1 << 17 ? sets : sets / 2;
        cache_fit(c, 0);
        CHECK_EQ(c->sets, sets);
        c->added += 1;
        cache_fit(c, 0);
        CHECK_EQ(c->sets, 2 * sets);
    }
    cache_fit(c, much);
    const size_t usual = c->sets;
    c->added = usual;
    cache_fit(c, much);
    CHECK_EQ(c->sets, usual);
    c->crowded = usual;
    cache_fit(c, 1);
    CHECK_EQ(c->sets, 2 * usual);
    CHECK_EQ(c->crowded, 0);
    c->added = 4 * usual;
    c->crowded = 4 * usual;
    cache_fit(c, much);
    CHECK_EQ(c->sets, 2 * usual);
    pybpe_cache_free(c);
}

/* Five words that keep occurring have four slots. Most of them are found all the same. */
static void test_crowding(const pybpe_encoder *e) {
    enum { WORDS = 5, ROUNDS = 1000 };
    pybpe_cache *c = NULL;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    cache_slot *set = c->table.data;
    unsigned found = 0;
    for (unsigned i = 0; i < WORDS * ROUNDS; i++) {
        const uint32_t word = i % WORDS;
        cache_slot *own = set + CACHE_WAYS * (word / 3); /* three words of the set, two of its neighbor */
        word_key key = key_of_set(c, own, word % 3);
        uint32_t id = first_id(c, own, key);
        CHECK(id == 0 || id == 100 + word);
        found += id != 0;
        if (id == 0) {
            cache_add(c, own, key, &(uint32_t){100 + word}, 1);
        }
    }
    CHECK(found > WORDS * ROUNDS / 10 * 7);     /* 3 of 5 if each new word replaced another one */
    CHECK(found < WORDS * ROUNDS - ROUNDS / 2); /* some are missed: this is the crowded case */
    pybpe_cache_free(c);
}

/* One exceptionally long word, merged in either way, leaves no large memory behind. */
static void test_trimming(const pybpe_encoder *e) {
    enum { BYTES = 5000000, MOST = 1 << 24 };
    uint8_t *word = malloc(BYTES);
    memset(word, '0', BYTES);
    for (int chain = 0; chain < 2; chain++) {
        const size_t n = BYTES;
        size_t count = 0;
        pybpe_cache *c = NULL;
        CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
        c->blocks.tried = chain == 0; /* and not usable */
        CHECK_EQ(pybpe_encode_words(e, c, word, &n, 1, NULL, 4, 0, &count, NULL), PYBPE_OK);
        CHECK_EQ(count, BYTES / 2);
        CHECK(c->blocks.usable == (chain == 1));
        CHECK(apply_scratch_memory(&c->scratch) <= MOST && c->blocks.room * sizeof(uint32_t) <= MOST);
        pybpe_cache_free(c);
    }
    free(word);
}

/* The words of one call enlarge the cache before it ends. Words of more than 15 bytes are cut into units, and a batch may
   end within one: its other units belong to the enlarged table. */
static void test_growing_within_a_text(const pybpe_encoder *e, const small_vocab *v) {
    enum { WORDS = 8000, MOST = 30 };
    static uint8_t text[WORDS * MOST];
    static uint32_t ids[WORDS * MOST], want[WORDS * MOST];
    static size_t ends[WORDS];
    size_t n = 0, wanted = 0, count = 0;
    for (size_t i = 0; i < WORDS; i++) {
        const size_t length = i % 2 == 0 ? MOST : SHORT_BYTES;
        random_word(text + n, length);
        for (size_t k = 0; length == MOST && k < MOST; k += MOST / 2) {
            text[n + k] = 'x'; /* in no merge: a hard boundary on both sides */
        }
        wanted += merge_naive(v, text + n, length, want + wanted);
        ends[i] = n += length;
    }
    pybpe_cache *c = NULL;
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encode_words(e, c, text, ends, WORDS, ids, 4, WORDS * MOST, &count, NULL), PYBPE_OK);
    CHECK(count == wanted && memcmp(ids, want, count * sizeof *ids) == 0);
    CHECK(c->sets > n / 32 && c->added <= c->sets);
    pybpe_cache_free(c);
}

int main(void) {
    static small_vocab v;
    pybpe_vocab *vocab = NULL;
    pybpe_encoder *e = NULL;
    pybpe_cache *c = NULL;
    CHECK_EQ(pybpe_vocab_new(&vocab, spec_of(&v), NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, vocab, NULL, 0, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
    test_fitting(e);
    test_growing(e);
    test_growing_to_the_usual_size(e);
    test_crowding(e);
    test_neighbors(e);
    test_room_of_neighbors(e);
    test_encoding_neighbors(e, 13); /* more ids than a slot has room for */
    test_encoding_neighbors(e, CACHE_NARROW_IDS);
    test_resizing(e);
    test_pairs_of_long_words(e);
    test_generations(e);
    test_trimming(e);
    naive_prepare(&v);
    test_growing_within_a_text(e, &v);
    CHECK_EQ(wrong_words(&v, e, c, LONG_BYTES, LONG_WORDS), 0);
    CHECK(c->generation > 1);
    c->generation = UINT32_MAX; /* the last before the number wraps */
    CHECK_EQ(wrong_words(&v, e, c, SHORT_BYTES, SHORT_WORDS), 0);
    CHECK_EQ(wrong_words(&v, e, c, LONG_BYTES, LONG_WORDS), 0);
    CHECK(c->generation > 0 && c->generation < 100);
    CHECK_EQ(wrong_words(&v, e, c, SHORT_BYTES, SHORT_WORDS), 0);
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return check_report("cache");
}
