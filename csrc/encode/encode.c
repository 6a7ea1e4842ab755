/*
Encoding: text -> ids.

    text --pretok--> words --> units --> slots of the cache --> ids
                                 |            | not there
                                 |            v
                                 |         apply_*.c, then into the cache
                                 v
                       words of more than 15 bytes, and words with non-ASCII letters, are cut
                       at hard boundaries (encode_boundary.c) into units that repeat more often

encode_units.c is about everything from words to ids. This file finds the special tokens and the words of a text.
*/
#include "encode/encode_stages.h"
#include "encode/encode_work.h"
#include "special/special.h"

/* Encodes text in two stages. The words are as for stages_start. */
static void text_add_stages(encode_work *work, const uint8_t *text, size_t n, const stages_ends *words) {
    stages_scan scan;
    const uint32_t *ids;
    size_t count;
    bool more = n > 0 && (!work->e->lacks_bytes || text_is_known(work, text, n));
    units_flush(work); /* these are only specials, and texts may have ended */
    stages_start(&scan, work->e, work->c, text, n, words, work->err);
    while (more && work->code == PYBPE_OK) {
        work->code = stages_next(&scan, &ids, &count, &more);
        if (work->code == PYBPE_OK) {
            sink_put_many(&work->sink, ids, count);
        }
    }
    stages_end(&scan);
}

/* Adds ordinary text. Words that may be whole tokens are looked up before they are cut at hard boundaries. */
static void text_add(encode_work *work, const uint8_t *text, size_t n) {
    if (PYBPE_UNLIKELY(work->e->stages != NULL)) {
        text_add_stages(work, text, n, NULL);
        return;
    }
    const boundary_table *boundaries = work->e->whole.bits == NULL ? &work->e->boundaries : NULL;
    pretok_cut_fn *cut = pretok_cutter(work->e->pretok);
    size_t ends[BATCH_WORDS];
    size_t pos = 0;
    size_t count;
    if (PYBPE_UNLIKELY(work->e->lacks_bytes) && boundaries != NULL && !text_is_known(work, text, n)) {
        return;
    }
    sequence_room room;
    pretok_place place;
    pretok_place_start(&place, work->e->pretok, 0, n, &room);
    place.readable = (size_t)(work->end - text);
    while (pos < n && work->code == PYBPE_OK && (count = cut(&place, boundaries, text, n, ends, BATCH_WORDS)) > 0) {
        if (boundaries != NULL) {
            words_add_cut(work, text, pos, ends, count);
        } else {
            words_add_whole_tokens(work, text, pos, ends, count);
        }
        pos = ends[count - 1];
    }
    pretok_place_end(&place);
}

/* Normalizes a text between specials, and adds the space before it. *out is a new text, or NULL if nothing changes. */
static int ordinary_prepare(const pybpe_encoder *e, const uint8_t *text, size_t n, uint8_t **out, size_t *length,
                            pybpe_error *err) {
    *out = NULL;
    *length = n;
    int code = PYBPE_OK;
    if (e->vocab->normalizer != PYBPE_NORMALIZER_NONE) {
        code = pybpe_normalize(out, length, e->vocab->normalizer, text, n, &e->mem, err);
    }
    const uint8_t *made = *out != NULL ? *out : text;
    if (code != PYBPE_OK || !e->vocab->prefix_space || *length == 0 || *made == ' ') {
        return code;
    }
    uint8_t *spaced = mem_alloc(&e->mem, *length + 1);
    if (spaced == NULL) {
        code = error_set_memory(err, "the space before a text", *length + 1);
    } else {
        *spaced = ' ';
        memcpy(spaced + 1, made, *length);
        *length += 1;
    }
    mem_free(&e->mem, *out);
    *out = spaced;
    return code;
}

/* Adds a text in place of another one of n bytes, and writes its ids: the caller frees it then. */
static void ordinary_replace(encode_work *work, const uint8_t *made, size_t length, const uint8_t *text, size_t n) {
    const uint8_t *const outer = work->text;
    const size_t outer_n = (size_t)(work->end - outer);
    const size_t before = work->before;
    const size_t at = before + (size_t)(text - outer);
    units_flush(work);
    const size_t later = work->size - at - n; /* each of these bytes may become an id, or a longer text */
    if (work->code == PYBPE_OK && work->sink.ids != NULL && length > n &&
        work->cap - later - work->sink.count < length) {
        work->code = error_set(work->err, PYBPE_ERR_LIMIT, at,
                               "the buffer has room for %zu ids, but the text is longer once it is normalized or has "
                               "spaces added: pass room for 12 ids per byte",
                               work->cap);
    }
    if (work->code == PYBPE_OK) {
        work->text = made;
        work->end = made + length;
        work->before = at;
        text_add(work, made, length);
        units_flush(work);
        work->text = outer;
        work->end = outer + outer_n;
        work->before = before;
    }
}

/* Adds a text between specials. */
static void ordinary_add(encode_work *work, const uint8_t *text, size_t n) {
    uint8_t *made = NULL;
    size_t length;
    if (PYBPE_UNLIKELY(work->e->prepares)) {
        work->code = ordinary_prepare(work->e, text, n, &made, &length, work->err);
    }
    if (made != NULL) {
        ordinary_replace(work, made, length, text, n);
        mem_free(&work->e->mem, made);
    } else if (work->code == PYBPE_OK) {
        text_add(work, text, n);
    }
}

/* Adds text with specials. */
static void text_add_all(encode_work *work, const pybpe_specials *s, const uint8_t *text, size_t n) {
    size_t pos = 0;
    special_scan scan;
    special_scan_start(&scan, s, text, n, 0);
    special_match match;
    while (work->code == PYBPE_OK && special_scan_next(&scan, &match)) {
        ordinary_add(work, text + pos, match.start - pos);
        id_add(work, match.id);
        pos = match.end;
    }
    special_scan_end(&scan);
    if (work->code == PYBPE_OK) {
        ordinary_add(work, text + pos, n - pos);
    }
}

/* Checks what the caller gave, and begins. */
static int work_start(encode_work *work, const pybpe_encoder *e, pybpe_cache *c, size_t n, id_buffer to,
                      pybpe_error *err) {
    if (to.ids != NULL && to.id_bytes != 2 && to.id_bytes != 4) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "ids of %d bytes; expected 2 or 4", to.id_bytes);
    }
    if (to.ids != NULL && to.cap < n) {
        return error_set(err, PYBPE_ERR_VALUE, 0,
                         "the buffer has room for %zu ids; a text of %zu bytes may need as many", to.cap, n);
    }
    if (c->encoder != e) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "the cache belongs to another encoder; create one for this encoder");
    }
    work_begin(work, e, c, n, to, err);
    return PYBPE_OK;
}

int encoder_check_unchanging(const pybpe_encoder *e, pybpe_error *err) {
    if (e->prepares) {
        return error_set(
            err, PYBPE_ERR_VALUE, 0,
            "this encoder changes texts (normalizer or prefix_space) only in pybpe_encode: change the text, "
            "and make the encoder with PYBPE_ENCODER_NORMALIZED");
    }
    return PYBPE_OK;
}

static int check_named(const pybpe_encoder *e, pybpe_error *err) {
    if (e->pretok == NULL) {
        return error_set(err, PYBPE_ERR_VALUE, 0,
                         "the vocabulary has a custom pattern: split the text with it, and encode the words");
    }
    return PYBPE_OK;
}

int pybpe_encode(const pybpe_encoder *e, pybpe_cache *c, const pybpe_specials *s, const uint8_t *text, size_t n,
                 void *ids, int id_bytes, size_t cap, size_t *count, pybpe_error *err) {
    encode_work work;
    PYBPE_TRY(check_named(e, err));
    PYBPE_TRY(work_start(&work, e, c, n, (id_buffer){ids, id_bytes, cap}, err));
    text_begin(&work, text, n);
    text_add_all(&work, s, work.text, n);
    units_flush(&work);
    return work_finish(&work, count);
}

/* Sets the total length of texts. */
static int texts_total(const pybpe_texts *texts, size_t *total, pybpe_error *err) {
    *total = 0;
    for (size_t i = 0; i < texts->count; i++) {
        if (!size_add(*total, texts->lengths[i], total)) {
            return error_set(err, PYBPE_ERR_VALUE, i, "the texts up to text %zu have more bytes than memory can", i);
        }
    }
    return PYBPE_OK;
}

int pybpe_encode_batch(const pybpe_encoder *e, pybpe_cache *c, const pybpe_specials *s, const pybpe_texts *texts,
                       void *ids, int id_bytes, size_t cap, uint64_t *ends, pybpe_error *err) {
    encode_work work;
    size_t n = 0;
    PYBPE_TRY(check_named(e, err));
    PYBPE_TRY(texts_total(texts, &n, err));
    PYBPE_TRY(work_start(&work, e, c, n, (id_buffer){ids, id_bytes, cap}, err));
    work.ends = ends;
    for (size_t i = 0; i < texts->count && work.code == PYBPE_OK; i++) {
        text_begin(&work, texts->starts[i], texts->lengths[i]);
        text_add_all(&work, s, work.text, texts->lengths[i]);
        text_end(&work);
    }
    units_flush(&work);
    size_t count;
    return work_finish(&work, &count);
}

int pybpe_encode_words(const pybpe_encoder *e, pybpe_cache *c, const uint8_t *text, const size_t *ends, size_t words,
                       void *ids, int id_bytes, size_t cap, size_t *count, pybpe_error *err) {
    for (size_t i = 1; i < words; i++) {
        if (ends[i] < ends[i - 1]) {
            return error_set(err, PYBPE_ERR_VALUE, i, "word %zu ends at %zu, before the end of the previous word", i,
                             ends[i]);
        }
    }
    encode_work work;
    size_t n = words > 0 ? ends[words - 1] : 0;
    PYBPE_TRY(encoder_check_unchanging(e, err));
    PYBPE_TRY(work_start(&work, e, c, n, (id_buffer){ids, id_bytes, cap}, err));
    text_begin(&work, text, n);
    if (PYBPE_UNLIKELY(e->stages != NULL)) {
        text_add_stages(&work, work.text, n, &(stages_ends){ends, 0, words});
        return work_finish(&work, count);
    }
    words_add_all(&work, work.text, 0, ends, words);
    units_flush(&work);
    return work_finish(&work, count);
}
