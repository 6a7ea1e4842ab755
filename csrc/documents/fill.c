/*
Rows of exactly `width` ids that documents fill without padding, for training. An id is in at most one row:

    documents   | 1 2 3 4 5 6    | 8 9    | 10    | 11 12 13      (| is the mark that begins a document)
    rows of 6   | 1 2 3 4 5    | 11 12 13 | 6                     the rest, | 8 9 | 10, does not fill a row

Of a document that is longer than a row, full rows are cut first. The rest of it, and all other documents, wait in
lists by length, the first of a list for the longest time. A row takes the longest that fits into its space, again and
again, as in best-fit decreasing. When none fits, the shortest is cut: its beginning fills the row, and the rest waits
with a mark of its own.

A bit per length says whether any document of that length waits. Within a row, the longest that fits becomes only
shorter, so a row looks at the words of these bits once or twice, and takes O(width) time, as copying it does.

And rows with as little padding as possible, for texts that are not cut: see the second half.
*/
#include "base/base.h"

typedef struct waiting_text {
    const uint8_t *text; /* the ids after the mark */
    size_t length;       /* with the mark: at least 2 */
    size_t next;         /* 1 + the index of the next one of this length, or 0 */
} waiting_text;

typedef struct row_filler {
    size_t id_bytes, width;
    uint8_t mark[4];
    waiting_text *documents;
    size_t *first, *last; /* by length: 1 + an index, or 0 */
    uint64_t *lengths;    /* bits */
    size_t left;          /* ids that wait, with their marks */
    uint8_t *out;
} row_filler;

static void filler_put(row_filler *f, size_t number) {
    size_t length = f->documents[number - 1].length;
    f->documents[number - 1].next = 0;
    if (f->first[length] == 0) {
        f->first[length] = number;
        f->lengths[length / 64] |= UINT64_C(1) << length % 64;
    } else {
        f->documents[f->last[length] - 1].next = number;
    }
    f->last[length] = number;
    f->left += length;
}

/* Returns 1 + the index of a document of this length. There must be one. */
static size_t filler_take(row_filler *f, size_t length) {
    size_t number = f->first[length];
    f->first[length] = f->documents[number - 1].next;
    if (f->first[length] == 0) {
        f->lengths[length / 64] &= ~(UINT64_C(1) << length % 64);
    }
    f->left -= length;
    return number;
}

/* Returns the largest length up to `most` that waits, or 0 if there is none. */
static size_t longest_up_to(const uint64_t *lengths, size_t most) {
    size_t word = most / 64;
    uint64_t bits = lengths[word] & UINT64_MAX >> (63 - most % 64);
    while (bits == 0 && word > 0) {
        bits = lengths[--word];
    }
    return bits == 0 ? 0 : word * 64 + 63 - (size_t)__builtin_clzll(bits);
}

/* Returns the smallest length from `least` that waits. There is one. */
static size_t shortest_from(const uint64_t *lengths, size_t least) {
    size_t word = least / 64;
    uint64_t bits = lengths[word] & UINT64_MAX << least % 64;
    while (bits == 0) {
        bits = lengths[++word];
    }
    return word * 64 + (size_t)__builtin_ctzll(bits);
}

/* Writes a mark and the beginning of a document, `length` ids together. */
static void filler_write(row_filler *f, const uint8_t *text, size_t length) {
    memcpy(f->out, f->mark, f->id_bytes);
    memcpy(f->out + f->id_bytes, text, (length - 1) * f->id_bytes);
    f->out += length * f->id_bytes;
}

/* Cuts full rows of a document, and lets the rest wait. */
static void filler_add(row_filler *f, size_t number, const uint8_t *text, size_t text_n) {
    while (text_n >= f->width - 1) {
        filler_write(f, text, f->width);
        text += (f->width - 1) * f->id_bytes;
        text_n -= f->width - 1;
    }
    if (text_n > 0) {
        f->documents[number - 1] = (waiting_text){.text = text, .length = text_n + 1};
        filler_put(f, number);
    }
}

/* Fills one row. Enough ids must wait. */
static void filler_fill_row(row_filler *f) {
    size_t space = f->width;
    size_t length = f->width - 1; /* of the longest that can wait */
    while (space > 0) {
        length = longest_up_to(f->lengths, length < space ? length : space);
        if (length == 0) {
            size_t number = filler_take(f, shortest_from(f->lengths, space + 1));
            waiting_text *document = &f->documents[number - 1];
            filler_write(f, document->text, space);
            document->text += (space - 1) * f->id_bytes;
            document->length -= space - 1;
            filler_put(f, number);
            return;
        }
        filler_write(f, f->documents[filler_take(f, length) - 1].text, length);
        space -= length;
    }
}

int pybpe_rows_fill(const pybpe_marked *from, size_t width, void *rows, size_t *count, const pybpe_allocator *mem,
                    pybpe_error *err) {
    if (width < 2 || (from->id_bytes != 2 && from->id_bytes != 4)) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "a row has at least 2 ids, of 2 or 4 bytes each");
    }
    for (size_t i = 0; i < from->count; i++) {
        if (from->lengths[i] < 1) {
            return error_set(err, PYBPE_ERR_VALUE, i, "document %zu lacks its mark", i);
        }
    }
    row_filler f = {.id_bytes = (size_t)from->id_bytes, .width = width, .out = rows};
    f.documents = mem_alloc_array(mem, from->count + 1, sizeof *f.documents);
    f.first = mem_alloc_zeroed(mem, width, sizeof *f.first);
    f.last = mem_alloc_array(mem, width, sizeof *f.last);
    f.lengths = mem_alloc_zeroed(mem, width / 64 + 1, sizeof *f.lengths);
    bool ok = f.documents != NULL && f.first != NULL && f.last != NULL && f.lengths != NULL;
    if (ok) {
        const uint8_t *ids = from->ids;
        for (size_t i = 0; i < from->count; i++) {
            const uint8_t *document = ids + from->starts[i] * f.id_bytes;
            memcpy(f.mark, document, f.id_bytes);
            filler_add(&f, i + 1, document + f.id_bytes, (size_t)from->lengths[i] - 1);
        }
        while (f.left >= width) {
            filler_fill_row(&f);
        }
        *count = (size_t)(f.out - (uint8_t *)rows) / (width * f.id_bytes);
    }
    mem_free(mem, f.documents);
    mem_free(mem, f.first);
    mem_free(mem, f.last);
    mem_free(mem, f.lengths);
    return ok ? PYBPE_OK : error_set_memory(err, "the lengths of documents", width * sizeof *f.first);
}

/* ---------------------------------------------------------------------------------------------------
Rows of whole texts

A row begins with the longest text that is left, and takes one, two or three texts that fill it exactly, if there are
such, otherwise the longest that fits, and then the same for the rest of the row. With the bits of the lengths in
reverse order, a shift and an "and" find all pairs with a given sum, 64 at a time.
*/

enum { FIT_TRIES = 16 }; /* first texts of three that are tried */

typedef struct row_fitter {
    size_t width;
    uint64_t *lengths, *reversed; /* bit L, and bit width - L: whether a text of length L is left */
    size_t *left, *last;          /* by length: how many are left; 1 + the index of the last of them */
    size_t *before;               /* by text: 1 + the index of the one before it of this length, or 0 */
    uint64_t *rows;
} row_fitter;

static void fitter_flip(row_fitter *f, size_t length) {
    f->lengths[length / 64] ^= UINT64_C(1) << length % 64;
    f->reversed[(f->width - length) / 64] ^= UINT64_C(1) << (f->width - length) % 64;
}

static void fitter_add(row_fitter *f, size_t length) {
    if (f->left[length]++ == 0) {
        fitter_flip(f, length);
    }
}

static void fitter_remove(row_fitter *f, size_t length) {
    if (--f->left[length] == 0) {
        fitter_flip(f, length);
    }
}

/* Puts the last text of this length into a row. */
static void fitter_take(row_fitter *f, size_t length, uint64_t row) {
    size_t number = f->last[length] - 1;
    f->last[length] = f->before[number];
    f->rows[number] = row;
    fitter_remove(f, length);
}

/* Returns the larger of the two nearest lengths with this total, or 0 if there are none. */
static size_t fitter_pair(const row_fitter *f, size_t total) {
    const size_t half = (total + 1) / 2, shift = f->width - total;
    uint64_t mask = UINT64_MAX << half % 64;
    if (total % 2 == 0 && f->left[half] < 2) {
        mask &= ~(UINT64_C(1) << half % 64);
    }
    for (size_t word = half / 64; word <= total / 64; word++) {
        const uint64_t *from = &f->reversed[word + shift / 64];
        uint64_t rest = shift % 64 == 0 ? from[0] : from[0] >> shift % 64 | from[1] << (64 - shift % 64);
        uint64_t both = f->lengths[word] & rest & mask; /* bit L: L and total - L are left */
        if (both != 0) {
            return word * 64 + (size_t)__builtin_ctzll(both);
        }
        mask = UINT64_MAX;
    }
    return 0;
}

/* Fills the rest of a row, `space` ids, with one, two or three texts. Returns false if none do. */
static bool fitter_fill(row_fitter *f, size_t space, uint64_t row) {
    if (f->left[space] > 0) {
        fitter_take(f, space, row);
        return true;
    }
    size_t first = 0, pair = fitter_pair(f, space);
    for (int i = 0; pair == 0 && i < FIT_TRIES; i++) {
        first = longest_up_to(f->lengths, (first == 0 ? space : first) - 1);
        if (first == 0) {
            return false;
        }
        fitter_remove(f, first);
        pair = fitter_pair(f, space - first);
        fitter_add(f, first);
    }
    if (pair == 0) {
        return false;
    }
    if (first > 0) {
        fitter_take(f, first, row);
    }
    fitter_take(f, pair, row);
    fitter_take(f, space - first - pair, row);
    return true;
}

int pybpe_rows_fit(const uint64_t *lengths, size_t count, size_t width, uint64_t *rows, const pybpe_allocator *mem,
                   pybpe_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (lengths[i] < 1 || lengths[i] > width) {
            return error_set(err, PYBPE_ERR_VALUE, i, "text %zu is empty, or too long for a row", i);
        }
    }
    row_fitter f = {.width = width, .rows = rows};
    f.lengths = mem_alloc_zeroed(mem, width / 64 + 2, sizeof *f.lengths);
    f.reversed = mem_alloc_zeroed(mem, width / 64 + 2, sizeof *f.reversed);
    f.left = mem_alloc_zeroed(mem, width + 1, sizeof *f.left);
    f.last = mem_alloc_zeroed(mem, width + 1, sizeof *f.last);
    f.before = mem_alloc_array(mem, count + 1, sizeof *f.before);
    bool ok = f.lengths != NULL && f.reversed != NULL && f.left != NULL && f.last != NULL && f.before != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        f.before[i] = f.last[lengths[i]];
        f.last[lengths[i]] = i + 1;
        fitter_add(&f, (size_t)lengths[i]);
    }
    size_t length;
    for (uint64_t row = 0; ok && (length = longest_up_to(f.lengths, width)) > 0; row++) {
        size_t space = width;
        do {
            fitter_take(&f, length, row);
            space -= length;
        } while (space > 0 && !fitter_fill(&f, space, row) && (length = longest_up_to(f.lengths, space)) > 0);
    }
    mem_free(mem, f.lengths);
    mem_free(mem, f.reversed);
    mem_free(mem, f.left);
    mem_free(mem, f.last);
    mem_free(mem, f.before);
    return ok ? PYBPE_OK : error_set_memory(err, "the lengths of texts", (count + width) * sizeof *f.last);
}
