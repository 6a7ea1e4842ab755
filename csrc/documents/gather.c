/*
Rows of exactly `width` tokens, from parts of documents that are anywhere among the ids:

    rows of 6   | 1 2 | 5 6    | 7 8 . . .      (| is the mark that begins a part, . is padding)
    documents   0 0 0 1 1 1    0 0 0 - - -      (- is -1)
    positions   0 1 2 0 1 2    0 1 2 0 1 2
    loss_mask   0 1 1 e 1 1    0 1 1 0 0 0      (e: whether 1 2 ends its document)

Only the columns that the caller wants are written. One long row without padding is a concatenation.
*/
#include "base/base.h"

/* Where the next token goes, counted from the first row. */
typedef struct row_place {
    const pybpe_rows *to;
    int id_bytes;
    size_t at;
} row_place;

/* Writes padding up to a token. */
static void row_pad(row_place *place, size_t end) {
    const pybpe_rows *to = place->to;
    for (size_t i = place->at; i < end; i++) {
        id_store(to->ids, place->id_bytes, i, to->pad);
    }
    for (size_t i = place->at; to->documents != NULL && i < end; i++) {
        to->documents[i] = -1;
        to->positions[i] = (int32_t)(i - place->at);
        to->loss_mask[i] = 0;
    }
    place->at = end;
}

/* Writes the columns of a part of `length` tokens, number `number` in its row. */
static void row_describe(const row_place *place, size_t length, int32_t number, uint8_t first_mask) {
    const pybpe_rows *to = place->to;
    for (size_t i = 0; i < length; i++) {
        to->documents[place->at + i] = number;
        to->positions[place->at + i] = (int32_t)i;
        to->loss_mask[place->at + i] = 1;
    }
    to->loss_mask[place->at] = first_mask;
}

int pybpe_rows_gather(const pybpe_marked *from, size_t n, const uint64_t *row, const uint8_t *ends,
                      const pybpe_rows *to, pybpe_error *err) {
    if (from->id_bytes != 2 && from->id_bytes != 4) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "ids of %d bytes; expected 2 or 4", from->id_bytes);
    }
    row_place place = {.to = to, .id_bytes = from->id_bytes};
    const size_t id_bytes = (size_t)from->id_bytes;
    size_t end = 0; /* of the row of the part before */
    int32_t number = 0;
    for (size_t i = 0; i < from->count; i++) {
        if (row[i] >= to->count || ((size_t)row[i] + 1) * to->width < end) {
            return error_set(err, PYBPE_ERR_VALUE, i, "part %zu is in a row that is not there, or not the next", i);
        }
        const size_t row_start = (size_t)row[i] * to->width;
        if (row_start + to->width != end) {
            row_pad(&place, row_start);
            end = row_start + to->width;
            number = 0;
        }
        if (from->starts[i] > n || from->lengths[i] > n - from->starts[i] || from->lengths[i] == 0 ||
            from->lengths[i] > end - place.at) {
            return error_set(err, PYBPE_ERR_VALUE, i, "part %zu is empty, beyond the ids, or too long for its row", i);
        }
        const size_t start = (size_t)from->starts[i], length = (size_t)from->lengths[i];
        memcpy((uint8_t *)to->ids + place.at * id_bytes, (const uint8_t *)from->ids + start * id_bytes,
               length * id_bytes);
        if (to->mark != PYBPE_NO_ID) {
            id_store(to->ids, from->id_bytes, place.at, to->mark);
        }
        if (to->documents != NULL) {
            row_describe(&place, length, number, number > 0 && ends[i - 1]);
        }
        place.at += length;
        number++;
    }
    row_pad(&place, to->count * to->width);
    return PYBPE_OK;
}
