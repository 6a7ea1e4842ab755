/*
Scanning while tokens are few: a table has a cell per pair of tokens, so that counts are exact at once.

    count    cell of (left, right): its weight, the number of its places
    keep     cells of frequent pairs get lists; all others point to one place that is never read
    note     a place is written to where its cell points, and the cell advances by one, or by zero

Neither walk has a branch. Which pairs are frequent is as hard to predict as text, so a branch would cost more than
everything else. Here the separator is a token with the number 0, and token i has the number i + 1.
*/
#include "train/train_parity.h"

/* Above these limits the filter is faster: the table must fit in the processor's caches, and clearing it must not take
   longer than the walks. */
enum { EXACT_TOKENS_MAX = 1024, EXACT_CELLS_A_SLOT = 4 };

typedef union exact_cell {
    struct {
        uint64_t weight;
        uint32_t places_count;
    } seen;
    struct {
        uint32_t *to;
        size_t step;
    } list;
} exact_cell;

static size_t exact_columns(const pybpe_trainer *t) { return (size_t)t->tokens_count + 1; }

/* The number of a token, 0 of a separator. */
static inline size_t exact_number(uint32_t id) { return (uint32_t)(id + 1); }

bool exact_fits(const pybpe_trainer *t) {
    if (t->languages != NULL) { /* cells have no counts of languages */
        return false;
    }
    return t->tokens_count == 256 || (t->tokens_count <= EXACT_TOKENS_MAX &&
                                      exact_columns(t) * exact_columns(t) <= EXACT_CELLS_A_SLOT * (size_t)t->slots);
}

int exact_alloc(pybpe_trainer *t, pybpe_error *err) {
    size_t cells = exact_columns(t) * exact_columns(t);
    t->scan.cells = mem_alloc_zeroed(&t->mem, cells, sizeof *t->scan.cells);
    return memory_check(t->scan.cells, "the counting of pairs", cells * sizeof *t->scan.cells, err);
}

INLINE_ALWAYS void cells_count(symbol_slots ids, pybpe_trainer *t, symbol_range s) {
    exact_cell *cells = t->scan.cells;
    const size_t columns = exact_columns(t);
    size_t left = exact_number(slot_get(ids, s.from));
    for (uint32_t at = s.from; at < s.to; at++) {
        size_t right = exact_number(slot_get(ids, at + 1));
        exact_cell *cell = &cells[left * columns + right];
        cell->seen.weight += s.weight;
        cell->seen.places_count += 1;
        left = right;
    }
}

void exact_count(pybpe_trainer *t, symbol_range s) { SLOTS_CALL(cells_count, t, s); }

INLINE_ALWAYS void cells_note(symbol_slots ids, pybpe_trainer *t, symbol_range s) {
    exact_cell *cells = t->scan.cells;
    const size_t columns = exact_columns(t);
    size_t left = exact_number(slot_get(ids, s.from));
    for (uint32_t at = s.from; at < s.to; at++) {
        size_t right = exact_number(slot_get(ids, at + 1));
        exact_cell *cell = &cells[left * columns + right];
        uint32_t *to = cell->list.to;
        *to = at;
        cell->list.to = to + cell->list.step;
        left = right;
    }
}

void exact_note(pybpe_trainer *t, symbol_range s) { SLOTS_CALL(cells_note, t, s); }

static exact_cell *exact_cell_of(const pybpe_trainer *t, uint32_t left, uint32_t right) {
    return &t->scan.cells[exact_number(left) * exact_columns(t) + exact_number(right)];
}

uint64_t exact_largest(const pybpe_trainer *t) {
    uint64_t largest = 0;
    for (uint32_t left = 0; left < t->tokens_count; left++) {
        for (uint32_t right = 0; right < t->tokens_count; right++) {
            uint64_t weight = exact_cell_of(t, left, right)->seen.weight;
            largest = weight > largest && pair_is_allowed(t, left, right) ? weight : largest;
        }
    }
    return largest;
}

static int exact_keep_pair(pybpe_trainer *t, uint32_t left, uint32_t right, exact_cell *cell, pybpe_error *err) {
    uint32_t index;
    PYBPE_TRY(pair_table_add(&t->pairs, left, right, &index, err));
    PYBPE_TRY(pair_places_alloc(&t->pairs, index, cell->seen.places_count, err));
    pair *p = &t->pairs.pairs[index];
    p->count = cell->seen.weight;
    p->places_count = cell->seen.places_count;
    cell->list.to = p->places;
    cell->list.step = 1;
    return train_pair_push(t, index, err);
}

int exact_keep(pybpe_trainer *t, pybpe_error *err) {
    const size_t columns = exact_columns(t);
    int code = PYBPE_OK;
    for (size_t i = 0; i < columns * columns && code == PYBPE_OK; i++) {
        exact_cell *cell = &t->scan.cells[i];
        uint32_t left = (uint32_t)(i / columns) - 1, right = (uint32_t)(i % columns) - 1;
        if (i / columns > 0 && i % columns > 0 && cell->seen.weight >= t->threshold &&
            pair_is_allowed(t, left, right)) {
            code = exact_keep_pair(t, left, right, cell, err);
        } else {
            cell->list.to = &t->scan.nowhere;
            cell->list.step = 0;
        }
    }
    return code;
}
