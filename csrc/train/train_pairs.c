/*
The pairs that a trainer may merge: a hash table (left, right) -> pair, and a lazy heap over it.

A pair's count only falls while it is in the heap, so the count that a heap entry was pushed with is an upper bound. An
entry that reaches the top with an outdated count is pushed down again with the current count. The first entry with a
current count is the most frequent pair. So changing a count costs nothing here.
*/
#include "train/train_pairs.h"

static const size_t SLOTS_START = 1 << 12;

static size_t heaps_count(const pair_table *t) { return t->columns > 0 ? t->columns : 1; }

int pair_table_init(pair_table *t, const pybpe_allocator *mem, pair_order *order, const void *context, size_t columns,
                    pybpe_error *err) {
    *t = (pair_table){
        .mem = mem_of(mem), .seed = hash_seed_draw(), .columns = columns, .order = order, .order_context = context};
    t->slots = mem_alloc_zeroed(&t->mem, SLOTS_START, sizeof *t->slots);
    t->heaps = mem_alloc_zeroed(&t->mem, heaps_count(t), sizeof *t->heaps);
    if (t->slots == NULL || t->heaps == NULL) {
        return error_set_memory(err, "the table of pairs", SLOTS_START * sizeof *t->slots);
    }
    t->mask = SLOTS_START - 1;
    return PYBPE_OK;
}

void pair_table_free(pair_table *t) {
    for (size_t i = 0; i < t->count; i++) {
        mem_free(&t->mem, t->pairs[i].places);
    }
    mem_free(&t->mem, t->pairs);
    mem_free(&t->mem, t->slots);
    mem_free(&t->mem, t->counts);
    for (size_t i = 0; t->heaps != NULL && i < heaps_count(t); i++) {
        mem_free(&t->mem, t->heaps[i].entries);
    }
    mem_free(&t->mem, t->heaps);
}

void pair_table_clear(pair_table *t) {
    for (size_t i = 0; i < t->count; i++) {
        mem_free(&t->mem, t->pairs[i].places);
    }
    t->count = 0;
    for (size_t i = 0; i < heaps_count(t); i++) {
        t->heaps[i].count = 0;
    }
    memset(t->slots, 0, (t->mask + 1) * sizeof *t->slots);
}

/* ---------------------------------------------------------------------------------------------------
The hash table
*/

static void slots_insert(pair_table *t, uint32_t index) {
    size_t i = pair_table_slot(t, t->pairs[index].left, t->pairs[index].right);
    while (t->slots[i] != 0) {
        i = (i + 1) & t->mask;
    }
    t->slots[i] = index + 1;
}

static int slots_grow(pair_table *t, pybpe_error *err) {
    size_t slots = 2 * (t->mask + 1);
    uint32_t *fresh = mem_alloc_zeroed(&t->mem, slots, sizeof *fresh);
    PYBPE_TRY(memory_check(fresh, "the table of pairs", slots * sizeof *fresh, err));
    mem_free(&t->mem, t->slots);
    t->slots = fresh;
    t->mask = slots - 1;
    for (size_t i = 0; i < t->count; i++) {
        slots_insert(t, (uint32_t)i);
    }
    return PYBPE_OK;
}

static int pairs_missing(size_t n, pybpe_error *err) { return error_set_memory(err, "the pairs of a training", n); }

int pair_table_add(pair_table *t, uint32_t left, uint32_t right, uint32_t *index, pybpe_error *err) {
    *index = pair_table_find(t, left, right);
    if (*index != PAIR_NONE) {
        return PYBPE_OK;
    }
    const size_t need = t->count + 1;
    pair *pairs = mem_reserve(&t->mem, t->pairs, &t->cap, need, sizeof *pairs);
    if (pairs == NULL) {
        return pairs_missing(need * sizeof *pairs, err);
    }
    t->pairs = pairs;
    if (t->columns > 0) {
        const size_t size = t->columns * sizeof *t->counts;
        uint64_t *counts = mem_reserve(&t->mem, t->counts, &t->counts_cap, need, size);
        if (counts == NULL) {
            return pairs_missing(need * size, err);
        }
        t->counts = counts;
        memset(&counts[t->count * t->columns], 0, size);
    }
    if (2 * need > t->mask) {
        PYBPE_TRY(slots_grow(t, err));
    }
    *index = (uint32_t)t->count;
    t->pairs[t->count] = (pair){.left = left, .right = right};
    t->count += 1;
    slots_insert(t, *index);
    return PYBPE_OK;
}

int pair_places_alloc(pair_table *t, uint32_t index, uint32_t n, pybpe_error *err) {
    pair *p = &t->pairs[index];
    p->places_count = 0;
    p->places = mem_alloc_array(&t->mem, n, sizeof *p->places);
    return memory_check(p->places, "the places of a pair", (size_t)n * 4, err);
}

void pair_places_free(pair_table *t, uint32_t index) {
    mem_free(&t->mem, t->pairs[index].places);
    t->pairs[index].places = NULL;
    t->pairs[index].places_count = 0;
}

/* ---------------------------------------------------------------------------------------------------
The heap
*/

static inline bool entry_before(const pair_table *t, const pair_entry *x, const pair_entry *y) {
    if (x->count != y->count) {
        return x->count > y->count;
    }
    return t->order(t->order_context, &t->pairs[x->index], &t->pairs[y->index]);
}

/* The current count of a pair, which orders the heap of a column. */
static inline uint64_t pair_count_in(const pair_table *t, size_t column, uint32_t index) {
    return t->columns == 0 ? t->pairs[index].count : pair_counts(t, index)[column];
}

static void pair_heap_sift_down(const pair_table *t, pair_heap *heap, size_t at) {
    pair_entry *entries = heap->entries;
    pair_entry moving = entries[at];
    for (size_t child = 2 * at + 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && entry_before(t, &entries[child + 1], &entries[child])) {
            child += 1;
        }
        if (!entry_before(t, &entries[child], &moving)) {
            break;
        }
        entries[at] = entries[child];
        at = child;
    }
    entries[at] = moving;
}

int pair_heap_push(pair_table *t, size_t column, uint32_t index, pybpe_error *err) {
    pair_heap *heap = &t->heaps[column];
    pair_entry *entries = mem_reserve(&t->mem, heap->entries, &heap->cap, heap->count + 1, sizeof *entries);
    if (entries == NULL) {
        return pairs_missing((heap->count + 1) * sizeof *entries, err);
    }
    heap->entries = entries;
    pair_entry moving = {pair_count_in(t, column, index), index};
    size_t at = heap->count++;
    while (at > 0 && entry_before(t, &moving, &entries[(at - 1) / 2])) {
        entries[at] = entries[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    entries[at] = moving;
    return PYBPE_OK;
}

uint32_t pair_heap_pop(pair_table *t, size_t column, uint64_t threshold) {
    pair_heap *heap = &t->heaps[column];
    while (heap->count > 0) {
        pair_entry top = heap->entries[0];
        uint64_t count = pair_count_in(t, column, top.index);
        if (count >= threshold && count < top.count) {
            heap->entries[0].count = count;
            pair_heap_sift_down(t, heap, 0);
            continue;
        }
        heap->entries[0] = heap->entries[--heap->count];
        pair_heap_sift_down(t, heap, 0);
        if (count >= threshold) {
            return top.index;
        }
        if (t->columns == 0) { /* it may still be frequent in another language */
            pair_places_free(t, top.index);
        }
    }
    return PAIR_NONE;
}
