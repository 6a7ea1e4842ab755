/*
The merging of long words, in O(n log n) for every text and every vocabulary.

A heap has the pairs that merge, the lowest rank first and, within a rank, the leftmost. When a merge changes a pair, its
entry stays, and is recognized when it is removed: the symbol at its position no longer has its rank. (No pair of ids
returns to a position, since the left token only grows.) Pairs are entered from left to right, so that most are put at
the end of the heap at once.
*/
#include "apply/apply.h"

#define NOWHERE UINT32_MAX

/* A token of the word, at the position of its first byte. */
typedef struct apply_symbol {
    uint32_t id;
    uint32_t rank; /* of the pair with the next symbol. Also MERGE_NONE if merged into its left neighbor */
    uint32_t prev; /* position, or NOWHERE */
    uint32_t next;
} apply_symbol;

/* The state of merging one word. */
typedef struct apply_work {
    const merge_table *table;
    apply_scratch *s;
    apply_symbol *symbols;
    const pybpe_allocator *mem;
    size_t waiting; /* entries of the heap */
    size_t missing; /* bytes that could not be allocated */
} apply_work;

void apply_scratch_free(apply_scratch *s, const pybpe_allocator *mem) {
    mem_table_free(&s->symbols, mem);
    mem_free(mem, s->heap);
    mem_free(mem, s->ids);
    *s = (apply_scratch){0};
}

size_t apply_scratch_memory(const apply_scratch *s) {
    return s->symbols_cap * sizeof(apply_symbol) + s->heap_cap * sizeof *s->heap + s->ids_cap * sizeof *s->ids;
}

/* ---------------------------------------------------------------------------------------------------
The heap: an entry is rank << 32 | position
*/

static bool heap_push(apply_work *work, uint32_t rank, uint32_t position) {
    const uint64_t key = (uint64_t)rank << 32 | position;
    uint64_t *heap = mem_reserve(work->mem, work->s->heap, &work->s->heap_cap, work->waiting + 1, sizeof *heap);
    if (PYBPE_UNLIKELY(heap == NULL)) {
        work->missing = (work->waiting + 1) * sizeof *heap;
        return false;
    }
    work->s->heap = heap;
    size_t i = work->waiting++;
    while (i > 0 && key < heap[(i - 1) / 2]) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = key;
    return true;
}

/* Removes the first entry. */
static uint64_t heap_pop(apply_work *work) {
    uint64_t *heap = work->s->heap;
    const uint64_t top = heap[0];
    const size_t n = --work->waiting;
    const uint64_t last = heap[n];
    size_t i = 0;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (last <= heap[child]) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* ---------------------------------------------------------------------------------------------------
The word
*/

/* Sets the rank of the pair of symbol a and the next one, b, and enters it into the heap if it merges. */
static bool pair_update(apply_work *work, uint32_t a, uint32_t b) {
    apply_symbol *symbols = work->symbols;
    symbols[a].rank = merge_rank(work->table, symbols[a].id, symbols[b].id);
    return symbols[a].rank == MERGE_NONE || heap_push(work, symbols[a].rank, a);
}

static bool symbols_make_room(apply_work *work, size_t n) {
    apply_scratch *s = work->s;
    if (n > s->symbols_cap) {
        size_t want = s->symbols_cap + s->symbols_cap / 2;
        want = want > n ? want : n;
        mem_table_free(&s->symbols, work->mem);
        s->symbols_cap = 0;
        if (!mem_table_alloc(&s->symbols, work->mem, want, sizeof(apply_symbol))) {
            work->missing = want * sizeof(apply_symbol);
            return false;
        }
        s->symbols_cap = want;
    }
    work->symbols = s->symbols.data;
    return true;
}

/* Lays out n tokens: bytes, or ids if there are any. */
static bool word_start(apply_work *work, const uint8_t *w, const uint32_t *ids, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = ids != NULL ? ids[i] : work->table->byte_ids[w[i]];
        work->symbols[i] = (apply_symbol){id, MERGE_NONE, i - 1, i + 1 < n ? i + 1 : NOWHERE};
        if (i > 0 && !pair_update(work, i - 1, i)) {
            return false;
        }
    }
    return true;
}

/* Merges the symbol at position a with the next one. */
static bool symbols_merge(apply_work *work, uint32_t a) {
    apply_symbol *symbols = work->symbols;
    apply_symbol *left = &symbols[a];
    apply_symbol *right = &symbols[left->next];
    left->id = merge_result(work->table, left->rank);
    left->next = right->next;
    left->rank = MERGE_NONE;
    right->rank = MERGE_NONE;
    if (left->next != NOWHERE) {
        symbols[left->next].prev = a;
        if (!pair_update(work, a, left->next)) {
            return false;
        }
    }
    return left->prev == NOWHERE || pair_update(work, left->prev, a);
}

/* Merges the n symbols that have been laid out. */
static bool word_merge(apply_work *work, size_t n, size_t *count) {
    size_t tokens = n;
    uint64_t steps = 0;
    for (; work->waiting > 0; steps++) {
        uint64_t key = heap_pop(work);
        uint32_t position = (uint32_t)key;
        if (work->symbols[position].rank == key >> 32) {
            tokens -= 1;
            if (!symbols_merge(work, position)) {
                return false;
            }
        }
    }
    work->s->steps += steps;
    uint32_t *ids = mem_reserve(work->mem, work->s->ids, &work->s->ids_cap, tokens, sizeof *ids);
    if (ids == NULL) {
        work->missing = tokens * sizeof *ids;
        return false;
    }
    work->s->ids = ids;
    size_t k = 0;
    for (uint32_t i = 0; i != NOWHERE; i = work->symbols[i].next) {
        ids[k++] = work->symbols[i].id;
    }
    *count = k;
    return true;
}

static int long_merge(apply_work work, const uint8_t *w, const uint32_t *ids, size_t n, size_t *count,
                      pybpe_error *err) {
    if (n >= NOWHERE) {
        return error_set(err, PYBPE_ERR_LIMIT, 0, "a word of %zu %s is too long: words may have up to 4,294,967,294", n,
                         ids != NULL ? "tokens" : "bytes");
    }
    if (!symbols_make_room(&work, n) || !word_start(&work, w, ids, (uint32_t)n) || !word_merge(&work, n, count)) {
        return error_set_memory(err, "merging a long word", work.missing);
    }
    return PYBPE_OK;
}

int apply_long(const merge_table *t, apply_scratch *s, const uint8_t *w, size_t n, size_t *count,
               const pybpe_allocator *mem, pybpe_error *err) {
    return long_merge((apply_work){.table = t, .s = s, .mem = mem}, w, NULL, n, count, err);
}

int apply_long_ids(const merge_table *t, apply_scratch *s, const uint32_t *ids, size_t n, size_t *count,
                   const pybpe_allocator *mem, pybpe_error *err) {
    return long_merge((apply_work){.table = t, .s = s, .mem = mem}, NULL, ids, n, count, err);
}
