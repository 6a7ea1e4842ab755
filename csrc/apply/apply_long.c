/*
The merging of long words, in O(n log n) for every text and every vocabulary.

Merging needs a queue of (rank, position) that returns the lowest rank first and, within a rank, the leftmost position.
A binary heap over millions of pairs would have a cache miss at every level. But pairs are added in long ascending
sequences: the first scan goes from left to right, and so does the merging of each rank, which creates the next pairs.
So the queue holds *runs*, which are ascending lists of positions of one rank, and the heap holds only the head of each
run:

    heap of heads:  (7, 0)  (7, 12)  (31, 4) ...        smallest (rank, position) first
                      |        |        |
    runs:             0        12       4
                      2        19       44
                      6                                 in blocks of 15 positions

A new pair is appended to the last run of its rank if its position is after the run's end; otherwise it starts a new
run. For ten million `a` all pairs are in one run, and the heap has one entry. In the worst case every run has one
position, and this is a plain heap.

An entry whose pair has changed stays in its run and is recognized when it is removed: the symbol at its position no
longer has its rank. (No pair of ids returns to a position, since the left token only grows.)
*/
#include "apply/apply.h"

#define NOWHERE UINT32_MAX

/* A token of the word, at the position of its first byte. */
typedef struct apply_symbol {
    uint32_t id;
    uint32_t rank; /* of the pair with the next symbol; also MERGE_NONE if merged into its left neighbor */
    uint32_t prev; /* position, or NOWHERE */
    uint32_t next;
} apply_symbol;

enum { BLOCK_POSITIONS = 15 };

typedef struct apply_run_block { /* one cache line */
    uint32_t next;               /* of the same run, or of the free list */
    uint32_t positions[BLOCK_POSITIONS];
} apply_run_block;

typedef struct apply_run {
    uint32_t rank;                   /* MERGE_NONE if the run is on the free list */
    uint32_t last;                   /* its greatest position */
    uint32_t head_block, head_index; /* head_block links the free list */
    uint32_t tail_block, tail_count;
} apply_run;

typedef struct apply_head {
    uint64_t key; /* rank << 32 | position */
    uint32_t run;
} apply_head;

/* The state of merging one word: the scratch space and how much of it is used. */
typedef struct apply_work {
    const merge_table *table;
    apply_scratch *s;
    apply_symbol *symbols;
    const pybpe_allocator *mem;
    uint32_t blocks_used, free_block;
    uint32_t runs_used, free_run;
    size_t heads;
    void *grown;    /* for GROW */
    size_t missing; /* bytes that could not be allocated */
} apply_work;

void apply_scratch_free(apply_scratch *s, const pybpe_allocator *mem) {
    mem_table_free(&s->symbols, mem);
    mem_free(mem, s->blocks);
    mem_free(mem, s->runs);
    mem_free(mem, s->heap);
    mem_free(mem, s->open_runs);
    mem_free(mem, s->ids);
    *s = (apply_scratch){0};
}

size_t apply_scratch_memory(const apply_scratch *s) {
    return s->symbols_cap * sizeof(apply_symbol) + s->blocks_cap * sizeof *s->blocks + s->runs_cap * sizeof *s->runs +
           s->heap_cap * sizeof *s->heap + (s->open_runs_cap + s->ids_cap) * sizeof *s->ids;
}

static inline void *array_grow(apply_work *work, void *data, size_t *cap, size_t need, size_t size) {
    void *more = mem_reserve(work->mem, data, cap, need, size);
    if (PYBPE_UNLIKELY(more == NULL)) {
        work->missing = need * size;
    }
    return more;
}

/* Grows work->s->array; returns false if memory is out. */
#define GROW(work, array, need)                                                                                        \
    (((work)->grown =                                                                                                  \
          array_grow((work), (work)->s->array, &(work)->s->array##_cap, (need), sizeof *(work)->s->array)) != NULL &&  \
     ((work)->s->array = (work)->grown, true))

/* ---------------------------------------------------------------------------------------------------
The heap of heads
*/

static void apply_heap_sift_down(apply_head *heap, size_t n, size_t i, apply_head x) {
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) {
            break;
        }
        child += child + 1 < n && heap[child + 1].key < heap[child].key;
        if (x.key <= heap[child].key) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = x;
}

static bool apply_heap_push(apply_work *work, apply_head x) {
    if (!GROW(work, heap, work->heads + 1)) {
        return false;
    }
    apply_head *heap = work->s->heap;
    size_t i = work->heads++;
    while (i > 0 && x.key < heap[(i - 1) / 2].key) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = x;
    return true;
}

/* ---------------------------------------------------------------------------------------------------
Runs
*/

/* Takes a block from the free list or from the end of the array; returns NOWHERE if memory is out. */
static uint32_t block_take(apply_work *work) {
    uint32_t b = work->free_block;
    if (b != NOWHERE) {
        work->free_block = work->s->blocks[b].next;
        return b;
    }
    return GROW(work, blocks, (size_t)work->blocks_used + 1) ? work->blocks_used++ : NOWHERE;
}

static void block_give(apply_work *work, uint32_t b) {
    work->s->blocks[b].next = work->free_block;
    work->free_block = b;
}

static bool run_append(apply_work *work, apply_run *run, uint32_t position) {
    if (run->tail_count == BLOCK_POSITIONS) {
        uint32_t b = block_take(work);
        if (b == NOWHERE) {
            return false;
        }
        work->s->blocks[run->tail_block].next = b;
        run->tail_block = b;
        run->tail_count = 0;
    }
    work->s->blocks[run->tail_block].positions[run->tail_count++] = position;
    run->last = position;
    return true;
}

static bool run_start(apply_work *work, uint32_t rank, uint32_t position) {
    uint32_t r = work->free_run;
    if (r != NOWHERE) {
        work->free_run = work->s->runs[r].head_block;
    } else if (GROW(work, runs, (size_t)work->runs_used + 1)) {
        r = work->runs_used++;
    } else {
        return false;
    }
    uint32_t b = block_take(work);
    if (b == NOWHERE) {
        return false;
    }
    work->s->runs[r] = (apply_run){rank, position, b, 0, b, 1}; /* the heap has its first position */
    work->s->open_runs[rank] = r;
    return apply_heap_push(work, (apply_head){(uint64_t)rank << 32 | position, r});
}

/* Queues the pair at `position`. open_runs does not have to be cleared between words: an old entry names a run that is
   not in use, or has another rank, or happens to be right. */
static bool queue_push(apply_work *work, uint32_t rank, uint32_t position) {
    uint32_t r = work->s->open_runs[rank];
    if (r < work->runs_used && work->s->runs[r].rank == rank && work->s->runs[r].last < position) {
        return run_append(work, &work->s->runs[r], position);
    }
    return run_start(work, rank, position);
}

/* Removes the first entry of the queue, which must not be empty. */
static uint64_t queue_pop(apply_work *work) {
    apply_scratch *s = work->s;
    apply_head top = s->heap[0];
    apply_run *run = &s->runs[top.run];
    apply_run_block *block = &s->blocks[run->head_block];
    uint64_t key = top.key;
    run->head_index += 1;
    if (run->head_block == run->tail_block && run->head_index == run->tail_count) {
        block_give(work, run->head_block);
        run->rank = MERGE_NONE;
        run->head_block = work->free_run;
        work->free_run = top.run;
        work->heads -= 1;
        apply_heap_sift_down(s->heap, work->heads, 0, s->heap[work->heads]);
        return key;
    }
    if (run->head_index == BLOCK_POSITIONS) {
        uint32_t used = run->head_block;
        run->head_block = block->next;
        run->head_index = 0;
        block_give(work, used);
        block = &s->blocks[run->head_block];
        size_t filled = run->head_block == run->tail_block ? run->tail_count : BLOCK_POSITIONS;
        for (size_t i = 0; i < filled; i++) {
            PYBPE_PREFETCH(&work->symbols[block->positions[i]]);
        }
    }
    top.key = (uint64_t)run->rank << 32 | block->positions[run->head_index];
    apply_heap_sift_down(s->heap, work->heads, 0, top);
    return key;
}

/* ---------------------------------------------------------------------------------------------------
The word
*/

/* Sets the rank of the pair of symbol a and the next one, b, and queues it if it merges. */
static bool pair_update(apply_work *work, uint32_t a, uint32_t b) {
    apply_symbol *symbols = work->symbols;
    symbols[a].rank = merge_rank(work->table, symbols[a].id, symbols[b].id);
    return symbols[a].rank == MERGE_NONE || queue_push(work, symbols[a].rank, a);
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

/* Lays out a symbol, and queues its pair with the next one. */
static inline bool symbol_start(apply_work *work, uint32_t i, uint32_t n, uint32_t id, uint32_t rank) {
    work->symbols[i] = (apply_symbol){id, rank, i - 1, i + 1 < n ? i + 1 : NOWHERE};
    return rank == MERGE_NONE || queue_push(work, rank, i);
}

static bool word_start(apply_work *work, const uint8_t *w, uint32_t n) {
    const merge_table *t = work->table;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = i + 1 < n ? t->byte_ranks[w[i] << 8 | w[i + 1]] : MERGE_NONE;
        if (!symbol_start(work, i, n, t->byte_ids[w[i]], rank)) {
            return false;
        }
    }
    return true;
}

static bool ids_start(apply_work *work, const uint32_t *ids, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = i + 1 < n ? merge_rank(work->table, ids[i], ids[i + 1]) : MERGE_NONE;
        if (!symbol_start(work, i, n, ids[i], rank)) {
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

/* Makes room for n symbols. */
static bool word_make_room(apply_work *work, size_t n) {
    size_t known_ranks = work->s->open_runs_cap;
    if (!symbols_make_room(work, n) || !GROW(work, open_runs, work->table->capacity + 1)) {
        return false;
    }
    memset(work->s->open_runs + known_ranks, 0, (work->s->open_runs_cap - known_ranks) * sizeof(uint32_t));
    return true;
}

/* Merges the n symbols that have been laid out. */
static bool word_merge(apply_work *work, size_t n, size_t *count) {
    size_t tokens = n;
    uint64_t steps = 0;
    for (; work->heads > 0; steps++) {
        uint64_t key = queue_pop(work);
        uint32_t position = (uint32_t)key;
        if (work->symbols[position].rank == key >> 32) {
            tokens -= 1;
            if (!symbols_merge(work, position)) {
                return false;
            }
        }
    }
    work->s->steps += steps;
    if (!GROW(work, ids, tokens)) {
        return false;
    }
    size_t k = 0;
    for (uint32_t i = 0; i != NOWHERE; i = work->symbols[i].next) {
        work->s->ids[k++] = work->symbols[i].id;
    }
    *count = k;
    return true;
}

static apply_work work_of(const merge_table *t, apply_scratch *s, const pybpe_allocator *mem) {
    return (apply_work){.table = t, .s = s, .mem = mem, .free_block = NOWHERE, .free_run = NOWHERE};
}

static int too_long(size_t n, const char *what, pybpe_error *err) {
    return error_set(err, PYBPE_ERR_LIMIT, 0, "a word of %zu %s is too long: words may have up to 4,294,967,294", n,
                     what);
}

int apply_long(const merge_table *t, apply_scratch *s, const uint8_t *w, size_t n, size_t *count,
               const pybpe_allocator *mem, pybpe_error *err) {
    if (n >= NOWHERE) {
        return too_long(n, "bytes", err);
    }
    apply_work work = work_of(t, s, mem);
    if (!word_make_room(&work, n) || !word_start(&work, w, (uint32_t)n) || !word_merge(&work, n, count)) {
        return error_set_memory(err, "merging a long word", work.missing);
    }
    return PYBPE_OK;
}

int apply_long_ids(const merge_table *t, apply_scratch *s, const uint32_t *ids, size_t n, size_t *count,
                   const pybpe_allocator *mem, pybpe_error *err) {
    if (n >= NOWHERE) {
        return too_long(n, "tokens", err);
    }
    apply_work work = work_of(t, s, mem);
    if (!word_make_room(&work, n) || !ids_start(&work, ids, (uint32_t)n) || !word_merge(&work, n, count)) {
        return error_set_memory(err, "merging a long word", work.missing);
    }
    return PYBPE_OK;
}
