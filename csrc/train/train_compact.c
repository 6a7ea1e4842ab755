/*
Compacting the symbols before a scan, so that a token has one slot again.

A token that was merged since the last scan spans the slots of its parts. A walk from token to token copies them to the
next free slot, so that a token takes one slot regardless of its length. Words that have become a single token have no
pairs anymore and are left out. For a large Chinese corpus, two thirds of the slots remain after 127 merges. For an
English one, half, and a third after 2,000 more. All later work touches less memory.
*/
#include "train/train.h"

/* Ends a word of the copy at `to`. The next one starts at the position that it returns. */
static inline uint32_t compact_word_end(symbol_slots ids, uint32_t to) {
    if (slot_get(ids, to - 2) == TRAIN_SEP) {
        return to - 1;
    }
    slot_set(ids, to, TRAIN_SEP);
    return to + 1;
}

/* Moves the starts of all runs that begin at `at` to `to`. */
static void runs_move(pybpe_trainer *t, uint32_t at, uint32_t to) {
    while (t->scan.run < t->runs_count && t->runs[t->scan.run + 1].start == at) {
        t->scan.run += 1;
        t->runs[t->scan.run].start = to;
    }
}

INLINE_ALWAYS bool compact(symbol_slots ids, pybpe_trainer *t, size_t *budget) {
    const uint32_t *spans = t->spans;
    const uint32_t alias = t->alias;
    uint32_t at = t->scan.at, to = t->scan.to;
    size_t left = *budget;
    runs_move(t, at, to); /* at the start, there may be empty runs */
    for (; at < t->slots && left > 0; left--) {
        uint32_t id = slot_get(ids, at);
        if (id == TRAIN_SEP) {
            at += 1;
            to = compact_word_end(ids, to);
            runs_move(t, at, to);
        } else {
            at += spans[id];
            slot_set(ids, to++, id == alias ? t->alias_of : id);
        }
    }
    *budget = left;
    t->scan.at = at;
    t->scan.to = to;
    if (at < t->slots) {
        return false;
    }
    t->slots = to;
    t->alias = UINT32_MAX;
    for (uint32_t i = 0; i < t->tokens_count; i++) {
        t->spans[i] = 1;
    }
    return true;
}

bool train_compact(pybpe_trainer *t, size_t *budget) { return SLOTS_CALL(compact, t, budget); }
