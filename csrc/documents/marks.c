/*
Documents in a stream of tokens: where they begin, and where the marks between them go.

Streams separate documents in many ways: with a mark between them, before them, after them, twice, at both ends of a file.
A document is a nonempty sequence of ids between two marks. A document gets one mark before it, one after it, or
none:

    given      E E 5 6 E 7 E
    prepend    E 5 6 E 7            documents begin at 0 and 3
    append     5 6 E 7 E            ... at 0 and 3
    none       5 6 7                ... at 0 and 2
*/
#include "base/base.h"

/* Like all functions below, inlined once per id_bytes, so that the loops have no branch on it. */
static inline __attribute__((always_inline)) size_t count_of(const void *ids, int id_bytes, size_t n, uint32_t id) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        count += id_at(ids, id_bytes, i) == id;
    }
    return count;
}

size_t pybpe_ids_count(const void *ids, int id_bytes, size_t n, uint32_t id) {
    return id_bytes == 2 ? count_of(ids, 2, n, id) : count_of(ids, 4, n, id);
}

enum { ID_BLOCK = 64 }; /* ids */

/* Whether a block of ids has one of them. Compilers compare several at a time. */
static inline __attribute__((always_inline)) bool id_block_has(const void *ids, int id_bytes, size_t first,
                                                               uint32_t id) {
    uint32_t found = 0;
    for (size_t i = first; i < first + ID_BLOCK; i++) {
        found |= id_at(ids, id_bytes, i) == id;
    }
    return found != 0;
}

/* The output of marked_fill, and what it found. */
typedef struct marked_ids {
    void *ids;
    size_t n;
    uint64_t *starts; /* of documents */
    size_t documents;
    bool open; /* whether the last document may continue */
} marked_ids;

static inline __attribute__((always_inline)) void marked_fill(marked_ids *to, const void *ids, int id_bytes, size_t n,
                                                              uint32_t mark, int mode) {
    void *out = to->ids; /* copies, which the loop keeps in registers */
    uint64_t *starts = to->starts;
    const size_t width = (size_t)id_bytes;
    size_t at = 0;
    size_t begun = 0;
    bool open = to->open;
    for (size_t i = 0; i < n;) {
        const size_t stop = n - i < ID_BLOCK ? n : i + ID_BLOCK;
        if (open && stop - i == ID_BLOCK && !id_block_has(ids, id_bytes, i, mark)) {
            memcpy((uint8_t *)out + at * width, (const uint8_t *)ids + i * width, ID_BLOCK * width);
            at += ID_BLOCK;
            i = stop;
        }
        for (; i < stop; i++) {
            uint32_t id = id_at(ids, id_bytes, i);
            if (PYBPE_UNLIKELY(id == mark)) {
                if (open && mode == PYBPE_MARKS_APPEND) {
                    id_store(out, id_bytes, at++, mark);
                }
                open = false;
                continue;
            }
            if (PYBPE_UNLIKELY(!open)) {
                starts[begun++] = at;
                if (mode == PYBPE_MARKS_PREPEND) {
                    id_store(out, id_bytes, at++, mark);
                }
                open = true;
            }
            id_store(out, id_bytes, at++, id);
        }
    }
    to->open = open;
    to->documents = begun;
    to->n = at;
}

size_t pybpe_marks_place(const void *ids, int id_bytes, size_t n, uint32_t mark, int mode, int *is_open, void *out,
                         uint64_t *starts, size_t *documents) {
    marked_ids to = {.ids = out, .starts = starts, .open = *is_open != 0};
    if (id_bytes == 2) {
        marked_fill(&to, ids, 2, n, mark, mode);
    } else {
        marked_fill(&to, ids, 4, n, mark, mode);
    }
    *is_open = to.open;
    *documents = to.documents;
    return to.n;
}

void pybpe_starts_shift(const uint64_t *starts, size_t n, uint64_t first, uint64_t *shifted) {
    for (size_t i = 0; i < n; i++) {
        shifted[i] = first + starts[i];
    }
}
