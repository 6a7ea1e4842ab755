/*
Encoding with superwords, in two stages.

With superwords, a "word" of the pattern is half a sentence or more (pybpe/training/superwords.py). It hardly ever
repeats, so the cache does not help. But most of what merging does in it is the same in all sentences, so it is done in
two stages:

    text      of the people , by the people         a word of the pattern
    units     [ of][ the][ people][,][ by][ the]... cut where no merge of stage 1 can cross; looked up in a cache
    tokens     of   the   people   ,   by   the     after stage 1
    phrases   [ of   the] [people] [,   by   the]   cut where no merge of stage 2 can cross
    tokens    [ of the]   [people] [,] [ by the]    after stage 2

Stage 1 has the first k merges, stage 2 has the others. Here k is the number of merges before the first one that joins a
space to another visible ASCII character before it.

Why the ids are exact. BPE applies the merge with the lowest rank, over and over.

1. Stage 1 comes first. As long as some merge of stage 1 can be applied, one of them has the lowest rank. Afterward, no
   merge of stage 1 can be applied until there is a new pair of tokens, and a merge of stage 2 must have made one of the
   two. stages_new checks that no merge of stage 1 uses a token that a merge of stage 2 makes.
2. Units. They end only at hard boundaries of the merges of stage 1 (encode_boundary.c has the proof), and at the ends
   of words. So stage 1 has the same result in each unit as in the whole word. Which of the hard boundaries are used
   does not matter. They are those where a word of gpt2's pattern ends.
3. Phrases. Consider the place between two tokens a and b that stage 1 has made, and the first merge that crosses it. It
   joins a token that ends with a to one that begins with b. By 1 it is a merge of stage 2, so the pair of the last
   token of its left part and the first token of its right part is (a, b). Those pairs are the *joints*. Where (a, b)
   is not a joint, no merge ever crosses, and the tokens of both sides do not interact, as at a hard boundary.

For 3, all tokens with the same id must begin with the same token of stage 1, and end with the same one. stages_new
computes these from the merges, and makes no stages if two merges differ in them. Then, or if 1 does not hold, the
encoder has one stage and is slower.

The joints are in a Bloom filter. A false positive only makes a phrase longer. encode_stages_make.c makes the tables,
and encode_phrase.c does stage 2.
*/
#include "encode/encode_stages.h"

enum { STAGE_BYTES = 1 << 16 }; /* of text in a block, unless a unit is longer */

/* ---------------------------------------------------------------------------------------------------
Stage 1
*/

void stages_start(stages_scan *scan, const pybpe_encoder *e, pybpe_cache *c, const uint8_t *text, size_t n,
                  const stages_ends *words, pybpe_error *err) {
    scan->e = e;
    scan->c = c;
    scan->text = text;
    scan->n = n;
    scan->err = err;
    scan->words = words != NULL ? *words : (stages_ends){NULL, 0, 0};
    scan->words_place = (pretok_place){0};
    if (words == NULL) {
        pretok_place_start(&scan->words_place, e->pretok, 0, n, &scan->room);
    }
    scan->splits = (stages_ends){NULL, 0, 0};
    pretok_place_start(&scan->splits_place, e->stages->splits, 0, n, NULL);
    scan->pos = 0;
    scan->held = 0;
}

void stages_end(stages_scan *scan) {
    pretok_place_end(&scan->words_place);
    pretok_place_end(&scan->splits_place);
}

/* The next end of a word after `pos`, which is not the end of the text: there, a word ends. */
static size_t next_word(stages_scan *scan, size_t pos) {
    stages_ends *w = &scan->words;
    for (;;) {
        while (w->used < w->count && w->ends[w->used] <= pos) {
            w->used += 1;
        }
        if (w->used < w->count) {
            return w->ends[w->used];
        }
        pretok_cut_fn *cut = pretok_cutter(scan->e->pretok);
        size_t count = cut(&scan->words_place, NULL, scan->text, scan->n, scan->words_found, STAGES_ENDS);
        *w = (stages_ends){scan->words_found, 0, count};
    }
}

/* Finds more places where a unit may end. Returns false at the end of the text. */
static bool more_splits(stages_scan *scan) {
    const encode_stages *s = scan->e->stages;
    size_t count = pretok_cutter(s->splits)(&scan->splits_place, &s->first->boundaries, scan->text, scan->n,
                                            scan->splits_found, STAGES_ENDS);
    scan->splits = (stages_ends){scan->splits_found, 0, count};
    return count > 0;
}

/* Adds the units that end after `end` and before `word`, the next end of a word. */
static size_t add_units(stages_scan *scan, size_t units, size_t end, size_t word) {
    const boundary_table *t = &scan->e->stages->first->boundaries;
    const uint8_t *text = scan->text;
    const size_t n = scan->n;
    const size_t pos = scan->pos;
    stages_ends *s = &scan->splits;
    while (units < STAGES_UNITS &&
           (s->used < s->count || more_splits(scan)) && /* LCOV_EXCL_BR_LINE: the last split is the end of the text */
           s->ends[s->used] < word) {
        const size_t room = STAGES_UNITS - units;
        const size_t until = s->count - s->used < room ? s->count : s->used + room;
        size_t i = s->used;
        for (; i < until && s->ends[i] < word; i++) {
            const size_t at = s->ends[i];
            scan->units.ends[units] = at - pos;
            units += at > end && boundary_is_hard(t, text, n, at);
        }
        s->used = i;
    }
    return units;
}

/* Finds the units of the next block. Returns where it ends. */
static size_t find_units(stages_scan *scan) {
    stages_units *u = &scan->units;
    size_t units = 0;
    size_t words = 0;
    size_t end = scan->pos;
    while (units < STAGES_UNITS && end - scan->pos < STAGE_BYTES && end < scan->n) {
        size_t word = next_word(scan, end);
        units = add_units(scan, units, end, word);
        if (units < STAGES_UNITS) {
            u->ends[units++] = word - scan->pos;
            u->words[words++] = units;
        }
        end = scan->pos + u->ends[units - 1];
    }
    u->count = units;
    u->words_count = words;
    return end;
}

/* Makes room for `need` ids between the stages and as many after them. Those that are held stay. */
static int ids_make_room(stages_scan *scan, size_t need) {
    pybpe_cache *c = scan->c;
    const size_t size = 2 * sizeof *c->stage_ids;
    uint32_t *ids = mem_reserve(&c->mem, c->stage_ids, &c->stage_ids_cap, need, size);
    PYBPE_TRY(memory_check(ids, "encoding in two stages", need * size, scan->err));
    c->stage_ids = ids;
    return PYBPE_OK;
}

/* ---------------------------------------------------------------------------------------------------
Both stages
*/

int stages_next(stages_scan *scan, const uint32_t **ids, size_t *count, bool *more) {
    pybpe_cache *c = scan->c;
    const stages_units *u = &scan->units;
    const size_t held = scan->held;
    size_t end = find_units(scan);
    if (held > 0 && scan->held_at > 0) {
        memmove(c->stage_ids, c->stage_ids + scan->held_at, held * sizeof *c->stage_ids);
    }
    size_t total = 0;
    int code = ids_make_room(scan, held + (end - scan->pos));
    if (code == PYBPE_OK) {
        code = stages_encode_units(scan, held, &total);
    }
    stages_block b = {.ids = c->stage_ids, .total = total, .known = held, .out = c->stage_ids + c->stage_ids_cap};
    if (code == PYBPE_OK) {
        b.closed = end == scan->n || (u->words_count > 0 && u->words[u->words_count - 1] == u->count);
        b.words = u->word_ids;
        b.words_end = u->word_ids + u->words_count;
        code = stages_merge(scan, &b);
    }
    scan->held_at = b.from;
    scan->held = b.total - b.from;
    *ids = b.out;
    *count = b.count;
    scan->pos = end;
    *more = end < scan->n;
    return code;
}
