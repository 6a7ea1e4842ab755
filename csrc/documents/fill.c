/*
Rows of exactly `width` ids that documents fill without padding, for training. Each id is in at most one row:

    documents   | 1 2 3 4 5 6    | 8 9    | 10    | 11 12 13      (| is the mark that begins each document)
    rows of 6   | 1 2 3 4 5    | 11 12 13 | 6                     what is left, | 8 9 | 10, does not fill a row

Of a document that is longer than a row, full rows are cut first. What is left of it, and all other documents, wait in
lists by length, the first of a list for the longest time. A row takes the longest that fits into its space, again and
again, as in best-fit decreasing. When none fits, the shortest is cut: its beginning fills the row, and the rest waits
with a mark of its own.

A bit for each length says whether any document of that length waits. Within a row, the longest that fits becomes only
shorter, so a row looks at each word of these bits once or twice, and takes O(width) time, as copying it does.
*/
#include "base/base.h"

typedef struct waiting_text {
    const uint8_t *text; /* the ids after the mark */
    size_t length;       /* with the mark: at least 2 */
    size_t next;         /* 1 + the index of the next one of this length; 0 is none */
} waiting_text;

typedef struct row_filler {
    size_t id_bytes, width;
    uint8_t mark[4];
    waiting_text *documents;
    size_t *first, *last; /* of each length: 1 + an index, or 0 */
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

/* Returns the largest length up to `most` that waits; 0 if there is none. */
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

/* Fills one row, for which enough ids wait. */
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
