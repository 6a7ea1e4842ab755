/*
Counts repeated n-grams: in linear time, and in memory of a few bytes per word.

Candidates are the places where an n-gram begins that may occur twice. At first these are all places. An n-gram that
occurs twice begins with a shorter one that occurs twice, so that few candidates remain for longer n-grams:

    words              a b c a b d a b c      n = 2: ab at 0, 3, 6; bc at 1, 7
    candidates n = 3   * *   *     * *        n = 3: abc at 0, 6; abd at 3 occurs once

n-grams are counted in a hash table. If they are too many for a table of a reasonable size, they are divided by their
hashes into parts, which are counted one after another in the same table.
*/
#include "shingles/shingles.h"

/* A different n-gram. An entry without a count is empty. */
typedef struct shingle_entry {
    uint64_t hash;
    uint32_t count;
    uint32_t first; /* where it begins */
} shingle_entry;

enum { PART_ENTRIES = 1 << 20 }; /* the number of n-grams in a part, about. More for texts of more than 2^24 words */

void shingle_repeats_free(shingle_repeats *r) {
    mem_free(&r->mem, r->candidates);
    mem_free(&r->mem, r->next);
    mem_free(&r->mem, r->again);
    mem_free(&r->mem, r->table);
}

static int bits_grow(shingle_repeats *r, size_t blocks, pybpe_error *err) {
    uint64_t **all[] = {&r->candidates, &r->next, &r->again};
    if (blocks <= r->blocks) {
        return PYBPE_OK;
    }
    for (size_t i = 0; i < 3; i++) {
        uint64_t *bits = mem_resize_array(&r->mem, *all[i], blocks, sizeof *bits);
        PYBPE_TRY(memory_check(bits, "n-grams", blocks * sizeof *bits, err));
        *all[i] = bits;
    }
    r->blocks = blocks;
    return PYBPE_OK;
}

int shingle_repeats_begin(shingle_repeats *r, size_t words, pybpe_error *err) {
    size_t blocks = words / 64 + 1;
    int code = bits_grow(r, blocks, err);
    if (code == PYBPE_OK) {
        memset(r->candidates, 0xFF, blocks * sizeof *r->candidates);
    }
    return code;
}

static int table_grow(shingle_repeats *r, size_t slots, pybpe_error *err) {
    if (slots <= r->slots) {
        return PYBPE_OK;
    }
    mem_free(&r->mem, r->table);
    r->slots = 0;
    r->table = mem_alloc_array(&r->mem, slots, sizeof *r->table);
    PYBPE_TRY(memory_check(r->table, "n-grams", slots * sizeof *r->table, err));
    r->slots = slots;
    return PYBPE_OK;
}

/* A pass that counts the candidates of one part. */
typedef struct counting {
    shingle_repeats *r;
    const shingle_words *w;
    size_t n;      /* words of an n-gram */
    size_t places; /* where one can begin */
    size_t slots;  /* a power of two */
    size_t used;
    uint64_t part, parts; /* parts: a power of two */
    uint64_t top_length;
    shingle_found found;
} counting;

static inline void bit_set(uint64_t *bits, size_t i) { bits[i / 64] |= UINT64_C(1) << (i % 64); }

/* Counts one n-gram. */
static inline void ngram_count(counting *c, shingle_entry *e, const shingle_window *v, uint64_t hash) {
    if (e->count == 0) {
        *e = (shingle_entry){hash, 1, (uint32_t)v->at};
        c->used++;
        c->found.distinct++;
    } else {
        bit_set(c->r->next, e->first);
        bit_set(c->r->next, v->at);
        bit_set(c->r->again, v->at);
        e->count++;
    }
    if (e->count > c->found.top_count || (e->count == c->found.top_count && v->chars > c->top_length)) {
        c->found.top_count = e->count;
        c->top_length = v->chars;
    }
}

/* Counts the n-gram in the window if it belongs to the part. The secret numbers prevent texts whose n-grams all belong
   to one part, or to one place of the table. */
static inline void window_count(counting *c, const shingle_window *v) {
    const hash_seed *seed = &c->r->seed;
    uint64_t hash = shingle_window_hash(v);
    if (c->parts > 1 && (hash_mix(hash ^ seed->b, seed->a | 1) & (c->parts - 1)) != c->part) {
        return;
    }
    size_t slot = (size_t)shingle_ngram_place(*seed, hash) & (c->slots - 1);
    while (c->r->table[slot].count != 0 && c->r->table[slot].hash != hash) {
        slot = (slot + 1) & (c->slots - 1);
    }
    ngram_count(c, &c->r->table[slot], v, hash);
}

/* Returns false if the table became too full. */
static bool part_count(counting *c) {
    shingle_window v = shingle_window_new(c->w, c->n);
    memset(c->r->table, 0, c->slots * sizeof *c->r->table);
    c->used = 0;
    for (size_t group = 0; group * 64 < c->places; group++) {
        for (uint64_t left = c->r->candidates[group]; left != 0; left &= left - 1) {
            size_t place = group * 64 + (size_t)__builtin_ctzll(left);
            if (place >= c->places) {
                break;
            }
            shingle_window_move(&v, place);
            window_count(c, &v);
        }
        if (c->used > c->slots / 4 * 3) { /* a group adds at most 64 */
            return false;
        }
    }
    return true;
}

static size_t candidates_count(const counting *c) {
    size_t count = 0;
    for (size_t group = 0; group * 64 < c->places; group++) {
        count += (size_t)__builtin_popcountll(c->r->candidates[group]);
    }
    return count < c->places ? count : c->places;
}

/* The characters of all words in n-grams that occurred before. */
static uint64_t covered_chars(const counting *c) {
    uint64_t sum = 0;
    size_t done = 0; /* words before it have been counted, or are not covered */
    for (size_t group = 0; group * 64 < c->places; group++) {
        for (uint64_t left = c->r->again[group]; left != 0; left &= left - 1) {
            size_t place = group * 64 + (size_t)__builtin_ctzll(left);
            for (size_t i = place > done ? place : done; i < place + c->n; i++) {
                sum += c->w->chars[i];
            }
            done = place + c->n;
        }
    }
    return sum;
}

static void pass_begin(counting *c, size_t blocks) {
    memset(c->r->next, 0, blocks * sizeof *c->r->next);
    memset(c->r->again, 0, blocks * sizeof *c->r->again);
    c->found = (shingle_found){0};
    c->top_length = 0;
}

/* Counts all parts: more and smaller ones until they fit in the table. */
static void all_parts_count(counting *c, size_t blocks) {
    bool fits = false;
    for (; !fits; c->parts *= 2) {
        pass_begin(c, blocks);
        fits = true;
        for (c->part = 0; fits && c->part < c->parts; c->part++) {
            fits = part_count(c);
        }
    }
}

int shingle_repeats_count(shingle_repeats *r, const shingle_words *w, size_t n, shingle_found *found,
                          pybpe_error *err) {
    counting c = {.r = r, .w = w, .n = n, .slots = 512, .parts = 1};
    const size_t blocks = w->count / 64 + 1;
    const size_t most = w->count / 16 > PART_ENTRIES ? w->count / 16 : PART_ENTRIES; /* LCOV_EXCL_BR_LINE: 2^24 words */
    *found = (shingle_found){0};
    if (w->count < n) {
        memset(r->candidates, 0, blocks * sizeof *r->candidates);
        return PYBPE_OK;
    }
    c.places = w->count - n + 1;
    size_t candidates = candidates_count(&c);
    for (; candidates / c.parts > most; c.parts *= 2) {
    }
    for (; c.slots < 2 * (candidates / c.parts); c.slots *= 2) {
    }
    PYBPE_TRY(table_grow(r, c.slots, err));
    all_parts_count(&c, blocks);
    *found = c.found;
    found->top_chars = c.found.top_count > 1 ? c.found.top_count * c.top_length : 0;
    found->repeated_chars = covered_chars(&c);
    uint64_t *swapped = r->candidates;
    r->candidates = r->next;
    r->next = swapped;
    return PYBPE_OK;
}
