/*
Splitters in sequence: the first one splits the text into pieces, the second one splits every piece as a separate text,
and so on. The words of the last one are the words. This is what a Sequence of pre-tokenizers does in Hugging Face's
library.

    text     "pi is 3.14"                              first \p{N}{1,3}, then gpt2
    level 0  "pi is " | "3" | "." | "14"
    level 1  "pi" | " is" | " " | "3" | "." | "14"     the piece ends after " ", so no word begins with that blank

A level keeps the place of its splitter in one piece, and the words that it has found and the next level has not
taken. A level takes a new piece only after it has cut the last one. So the memory does not depend on the text, and a
level takes linear time because its splitter does.
*/
#include "pretok/pretok_splitter.h"

static void level_open(sequence_level *level, const pybpe_pretok *step, size_t start, size_t end) {
    if (step->own != NULL) {
        level->place.own =
            dfa_place_at(step->own, start, end); /* all that an automaton uses, and short pieces are many */
    } else {
        pretok_place_start_single(&level->place, step, start, end);
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
        dfa_place_end(&room->levels[k].place.own);
    }
}

/* Makes the level's next word known, if its piece has one. */
static bool level_fill(sequence_level *level, const pybpe_pretok *step, const uint8_t *text) {
    if (level->used == level->count) {
        level->used = 0;
        level->count = step->cut(&level->place, NULL, text, level->piece_end, level->ends, SEQUENCE_ENDS);
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
        dfa_place_end(&room->levels[from].place.own);
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
        size_t found = step->cut(&level->place, t, text, level->piece_end, ends + count, cap - count);
        if (found == 0 && !piece_next(s, room, last, text)) {
            break;
        }
        count += found;
    }
    return count;
}
