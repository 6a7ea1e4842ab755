/*
Merging one pair everywhere.

A merge (a, b) -> c goes through its places from left to right, rewrites the slots of the live ones, and sums the
weights of the left and right neighbors by token. Then, once per neighbor instead of once per place, the counts of (l,
a) and (b, r) fall, and the frequent ones of (l, c) and (c, r) get lists of their exact size. In repetitions, c may
become its own left neighbor:

    a b a b          (b, a) falls once, seen from the left place
    c . a b          the right neighbor of the first place is a: (c, a) rises
    c . c .          the left neighbor of the second place is c: (c, a) falls again and (c, c) rises
*/
#include "train/train_parity.h"

enum { PREFETCH_PLACES = 12 };

static inline void side_add(pybpe_trainer *t, side *s, uint32_t id, const run *r) {
    neighbor *n = &s->by_token[id];
    if (n->places_count == 0) {
        n->slot = (uint32_t)s->touched_count;
        s->touched[s->touched_count++] = id;
    }
    n->weight += r->weight;
    n->places_count += 1;
    if (t->languages != NULL) {
        train_parity_neighbor(t, s, n, r);
    }
}

static void side_clear(side *s) {
    for (size_t i = 0; i < s->touched_count; i++) {
        s->by_token[s->touched[i]] = (neighbor){0};
    }
    s->touched_count = 0;
}

/* The run of a position, at or after run `from`: usually the same one, otherwise found by binary search. */
static size_t run_seek(const pybpe_trainer *t, size_t from, uint32_t at) {
    if (at < t->runs[from + 1].start) {
        return from;
    }
    size_t low = from + 1, high = t->runs_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (t->runs[middle].start <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Rewrites the live places of a pair and sums up their neighbors. Drops outdated places from the list. */
INLINE_ALWAYS void rewrite(symbol_slots ids, pybpe_trainer *t, pair *p, uint32_t merged) {
    const uint32_t left_span = t->spans[p->left], right_span = t->spans[p->right];
    uint32_t live = 0;
    size_t in_run = 0;
    for (uint32_t i = 0; i < p->places_count; i++) {
        if (i + PREFETCH_PLACES < p->places_count) {
            slot_prefetch(ids, p->places[i + PREFETCH_PLACES]);
        }
        uint32_t at = p->places[i], middle = at + left_span, end = middle + right_span;
        if (slot_get(ids, at) != p->left || slot_get(ids, middle) != p->right) {
            continue;
        }
        p->places[live++] = at;
        in_run = run_seek(t, in_run, at);
        const run *r = &t->runs[in_run];
        slot_set(ids, middle - 1, TRAIN_HOLE);
        slot_set(ids, middle, TRAIN_HOLE);
        slot_set(ids, at, merged);
        slot_set(ids, end - 1, merged);
        const uint32_t before = slot_get(ids, at - 1), after = slot_get(ids, end);
        if (before != TRAIN_SEP) {
            side_add(t, &t->left, before, r);
        }
        if (after != TRAIN_SEP) {
            side_add(t, &t->right, after, r);
        }
        if (t->languages != NULL) {
            train_parity_merged(t, r);
        }
    }
    p->places_count = live;
}

static void merge_rewrite(pybpe_trainer *t, pair *p, uint32_t merged) { SLOTS_CALL(rewrite, t, p, merged); }

/* Lowers the counts of a pair by the counts of neighbor n on side s. */
static void pair_lower(pybpe_trainer *t, uint32_t left, uint32_t right, const side *s, const neighbor *n) {
    uint32_t index = pair_table_find(&t->pairs, left, right);
    if (index == PAIR_NONE) {
        return;
    }
    t->pairs.pairs[index].count -= n->weight;
    if (t->languages != NULL) {
        train_parity_subtract(t, pair_counts(&t->pairs, index), side_counts(t, s, n));
    }
}

/* Keeps a pair of the new token if it is frequent enough, with room for its list of places. */
static int pair_keep(pybpe_trainer *t, uint32_t left, uint32_t right, const side *s, neighbor *n, uint32_t *kept,
                     pybpe_error *err) {
    if (n->weight < t->threshold || !pair_is_allowed(t, left, right)) {
        return PYBPE_OK;
    }
    uint32_t index;
    int code = pair_table_add(&t->pairs, left, right, &index, err);
    code = code == PYBPE_OK ? pair_places_alloc(&t->pairs, index, n->places_count, err) : code;
    if (code == PYBPE_OK) {
        pair *p = &t->pairs.pairs[index];
        p->count = n->weight;
        p->places_count = n->places_count;
        n->places = p->places;
        *kept += 1;
        if (t->languages != NULL) {
            memcpy(pair_counts(&t->pairs, index), side_counts(t, s, n), t->languages_count * sizeof(uint64_t));
        }
        code = train_pair_push(t, index, err);
    }
    return code;
}

/* Updates the counts of the pairs around a merge (a, b) -> c, and adds the pairs of c. */
static int merge_recount(pybpe_trainer *t, uint32_t a, uint32_t b, uint32_t c, uint32_t *kept, pybpe_error *err) {
    int code = PYBPE_OK;
    /* Where c follows c, the right neighbor of the first was still a. */
    neighbor *twice = &t->left.by_token[c];
    for (size_t i = 0; i < t->right.touched_count && code == PYBPE_OK; i++) {
        uint32_t r = t->right.touched[i];
        neighbor *n = &t->right.by_token[r];
        pair_lower(t, b, r, &t->right, n);
        if (r == a && twice->places_count > 0) {
            n->weight -= twice->weight;
            n->places_count -= twice->places_count;
            if (t->languages != NULL) {
                train_parity_subtract(t, side_counts(t, &t->right, n), side_counts(t, &t->left, twice));
            }
        }
        if (n->places_count > 0) {
            code = pair_keep(t, c, r, &t->right, n, kept, err);
        }
    }
    for (size_t i = 0; i < t->left.touched_count && code == PYBPE_OK; i++) {
        uint32_t l = t->left.touched[i];
        neighbor *n = &t->left.by_token[l];
        if (l != c) {
            pair_lower(t, l, a, &t->left, n);
        }
        code = pair_keep(t, l, c, &t->left, n, kept, err);
    }
    return code;
}

/* Writes the lists of the new pairs: reads the neighbors again, now that all places are rewritten. */
INLINE_ALWAYS void note_places(symbol_slots ids, pybpe_trainer *t, const uint32_t *places, uint32_t count, uint32_t c) {
    const uint32_t span = t->spans[c];
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_PLACES < count) {
            slot_prefetch(ids, places[i + PREFETCH_PLACES]);
        }
        uint32_t at = places[i], l = slot_get(ids, at - 1), r = slot_get(ids, at + span);
        if (l != TRAIN_SEP && t->left.by_token[l].places != NULL) {
            *t->left.by_token[l].places++ = at - t->spans[l];
        }
        if (r != TRAIN_SEP && r != c && t->right.by_token[r].places != NULL) { /* (c, c) is written from its right
        token */
            *t->right.by_token[r].places++ = at;
        }
    }
}

static void merge_note_places(pybpe_trainer *t, const uint32_t *places, uint32_t count, uint32_t c) {
    SLOTS_CALL(note_places, t, places, count, c);
}

int train_merge_add(pybpe_trainer *t, uint32_t left, uint32_t right, uint32_t *merged, pybpe_error *err) {
    const size_t need = t->merges_count + 1, size = 3 * sizeof *t->merges;
    uint32_t *merges = mem_reserve(&t->mem, t->merges, &t->merges_cap, need, size);
    PYBPE_TRY(memory_check(merges, "the merges", need * size, err));
    t->merges = merges;
    uint32_t *to = t->merges + 3 * t->merges_count;
    int code = train_token_concat(t, left, right, merged, err);
    if (code == PYBPE_OK) {
        to[0] = left;
        to[1] = right;
        to[2] = *merged;
        t->merges_count += 1;
    }
    return code;
}

/* A merge that spells the existing token c. The counts of its pairs may have risen, which only a new scan can
   determine. Other places of c may span more slots or fewer. Until the scan has compacted the symbols, the merged
   places are written as a token with an unused number. */
static void merge_into_existing(pybpe_trainer *t, uint32_t index, uint32_t c, uint32_t span) {
    t->alias = t->tokens_count;
    t->alias_of = c;
    t->spans[t->alias] = span;
    merge_rewrite(t, &t->pairs.pairs[index], t->alias);
    side_clear(&t->left);
    side_clear(&t->right);
}

/* Merges one pair everywhere. */
int train_merge_pair(pybpe_trainer *t, uint32_t index, bool *rescan, pybpe_error *err) {
    uint32_t a = t->pairs.pairs[index].left, b = t->pairs.pairs[index].right, c;
    uint32_t tokens_before = t->tokens_count;
    PYBPE_TRY(train_merge_add(t, a, b, &c, err));
    uint32_t span = t->spans[a] + t->spans[b];
    *rescan = t->tokens_count == tokens_before;
    if (*rescan) {
        merge_into_existing(t, index, c, span);
        return PYBPE_OK;
    }
    t->spans[c] = span;
    merge_rewrite(t, &t->pairs.pairs[index], c);
    uint32_t kept = 0;
    int code = merge_recount(t, a, b, c, &kept, err);
    if (code == PYBPE_OK && kept > 0) {
        const pair *p = &t->pairs.pairs[index];
        merge_note_places(t, p->places, p->places_count, c);
    }
    side_clear(&t->left);
    side_clear(&t->right);
    if (t->languages != NULL) { /* their heaps may still have this pair */
        memset(pair_counts(&t->pairs, index), 0, t->languages_count * sizeof(uint64_t));
    }
    pair_places_free(&t->pairs, index);
    return code;
}
