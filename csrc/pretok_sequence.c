/*
Splitters in sequence: the first one splits the text into pieces, the second one splits each piece as a separate text,
and so on. The words of the last one are the words. This is what a Sequence of pre-tokenizers does in Hugging Face's
library.

    text     "pi is 3.14"                              first \p{N}{1,3}, then gpt2
    level 0  "pi is " | "3" | "." | "14"
    level 1  "pi" | " is" | " " | "3" | "." | "14"     the piece ends after " ", so no word begins with that blank

Each level keeps the place of its splitter in one piece, and the words that it has found and the next level has not
taken. A level takes a new piece only after it has cut the last one. So the memory does not depend on the text, and each
level takes linear time because its splitter does.

Safe cuts. Let a text be cut between two characters. If the first splitter has a safe cut there, its pieces are the same
as before, and so are all words. If the first splitter is only sure to add that cut to its pieces and to change nothing
else (dfa_passes: the middle of a run), then what matters is whether the second one has a safe cut there, and so on.
*/
#include "pretok_sequence.h"

#include "dfa.h"

static void level_open(sequence_level *level, const pybpe_pretok *step, size_t start, size_t end) {
    const dfa *own = pretok_dfa(step);
    if (own != NULL) {
        level->place.own = dfa_place_at(own, start, end); /* all that an automaton uses, and short pieces are many */
    } else {
        level->place = pretok_place_at(step, start, end, NULL);
    }
    level->piece_end = end;
    level->start = start;
    level->used = level->count = 0;
}

void sequence_start(const pretok_sequence *s, sequence_room *room, size_t pos, size_t n) {
    for (size_t k = 0; k < s->count; k++) {
        room->levels[k].place = (pretok_place){0};
        level_open(&room->levels[k], s->steps[k], pos,
                   k == 0 ? n : pos); /* an empty piece, so it takes the first one */
    }
}

void sequence_end(const pretok_sequence *s, sequence_room *room) {
    for (size_t k = 0; k < s->count; k++) {
        pretok_place_end(&room->levels[k].place);
    }
}

/* Makes the level's next word known, if its piece has one. */
static bool level_fill(sequence_level *level, const pybpe_pretok *step, const uint8_t *text) {
    if (level->used == level->count) {
        level->used = 0;
        level->count = pretok_cutter(step)(&level->place, NULL, text, level->piece_end, level->ends, SEQUENCE_ENDS);
    }
    return level->used < level->count;
}

/* Gives level `k` its next piece, a word of the level before. Levels that have cut their piece get one first, from the
   first of them on. Returns false at the end of the text. */
static bool piece_next(const pretok_sequence *s, sequence_room *room, size_t k, const uint8_t *text) {
    size_t from = k;
    while (from > 0 && !level_fill(&room->levels[from - 1], s->steps[from - 1], text)) {
        from--;
    }
    if (from == 0) {
        return false;
    }
    for (; from <= k; from++) {
        sequence_level *source = &room->levels[from - 1];
        if (!level_fill(source, s->steps[from - 1], text)) { /* LCOV_EXCL_START: a piece has at least one word */
            return false;
        } /* LCOV_EXCL_STOP */
        size_t start = source->start;
        source->start = source->ends[source->used++];
        pretok_place_end(&room->levels[from].place);
        level_open(&room->levels[from], s->steps[from], start, source->start);
    }
    return true;
}

size_t sequence_cut(const pretok_sequence *s, sequence_room *room, const boundary_table *t, const uint8_t *text,
                    size_t *ends, size_t cap) {
    const size_t last = s->count - 1;
    const pybpe_pretok *step = s->steps[last];
    sequence_level *level = &room->levels[last];
    size_t count = 0;
    while (cap - count >= SEQUENCE_ENDS) {
        size_t found = pretok_cutter(step)(&level->place, t, text, level->piece_end, ends + count, cap - count);
        if (found == 0 && !piece_next(s, room, last, text)) {
            break;
        }
        count += found;
    }
    return count;
}

/* The class of the character that ends before text[at], or of the one that begins there. */
static uint32_t class_before(const dfa *a, const uint8_t *text, size_t at, unicode_char c) {
    uint8_t length;
    bool valid;
    size_t start = dfa_reads_bytes(a) ? at - 1 : at - c.length;
    return dfa_class(a, text + start, at - start, &length, &valid);
}

static uint32_t class_after(const dfa *a, const uint8_t *text, size_t n, size_t at) {
    uint8_t length;
    bool valid;
    return dfa_class(a, text + at, n - at, &length, &valid);
}

bool sequence_divides(const pretok_sequence *s, const uint8_t *text, size_t n, size_t at, unicode_char a,
                      unicode_char b) {
    if (!b.valid) {
        return false;
    }
    for (size_t k = 0; k < s->count; k++) {
        const dfa *own = pretok_dfa(s->steps[k]);
        if (own == NULL) {
            return pretok_named_divides(a, b, text[at]);
        }
        uint32_t before = class_before(own, text, at, a);
        uint32_t after = class_after(own, text, n, at);
        if (dfa_divides(own, before, after)) {
            return true;
        }
        if (!dfa_passes(own, before, after)) {
            return false;
        }
    }
    return false;
}

bool sequence_finds_cuts(const pretok_sequence *s) {
    for (unsigned both = 0; both < 128 * 128; both++) {
        const uint8_t text[2] = {(uint8_t)(both >> 7), (uint8_t)(both & 127)};
        if (sequence_divides(s, text, 2, 1, unicode_decode(text, 2, 0), unicode_decode(text, 2, 1))) {
            return true;
        }
    }
    return false;
}
