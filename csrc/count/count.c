/*
Counting words: text -> distinct words and how often they occur.

Words are looked up in batches of 256. The first pass computes keys and prefetches the slots. The second pass compares
and counts. By then the slots are in the cache, so a word takes the time of a few instructions, not of a memory access.

count_table.c has the table; count_absorb.c adds tables; count_sort.c sorts their words, and count_merge.c adds sorted
lists that are too long for memory.
*/
#include "count/count_table.h"
#include "pretok/pretok.h"
#include "special/special.h"

enum { BATCH = 256 };

int pybpe_counter_new(pybpe_counter **out, const pybpe_pretok *p, const pybpe_specials *s, const pybpe_allocator *mem,
                      pybpe_error *err) {
    *out = NULL;
    pybpe_counter *c = mem_alloc(mem, sizeof *c);
    PYBPE_TRY(memory_check(c, "a counter", sizeof *c, err));
    *c = (pybpe_counter){.mem = mem_of(mem), .pretok = p, .specials = s, .weight = 1};
    c->seed = p != NULL ? pretok_seed(p) : hash_seed_draw();
    int code = count_table_init(c, err);
    if (code != PYBPE_OK) {
        mem_free(mem, c);
        return code;
    }
    *out = c;
    return PYBPE_OK;
}

void pybpe_counter_free(pybpe_counter *c) {
    if (c != NULL) {
        pybpe_allocator mem = c->mem;
        count_table_free(c);
        mem_free(&mem, c);
    }
}

/* Counts the words of text[pos..ends[count - 1]). */
static int batch_add(pybpe_counter *c, const uint8_t *text, size_t n, size_t pos, const size_t *ends, size_t count,
                     pybpe_error *err) {
    pending batch[BATCH];
    PYBPE_TRY(count_table_reserve(c, count, err));
    for (size_t i = 0; i < count; i++) {
        pending_set(&batch[i], c, text + pos, ends[i] - pos, text + n);
        pos = ends[i];
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t *word_count;
        PYBPE_TRY(count_table_add(c, &batch[i], &word_count, err));
        if (PYBPE_UNLIKELY(__builtin_add_overflow(*word_count, c->weight, word_count))) {
            return count_overflow(err);
        }
    }
    c->total += count * c->weight;
    return PYBPE_OK;
}

/* Counts the words of text without specials. */
static int segment_add(pybpe_counter *c, const uint8_t *text, size_t n, pybpe_error *err) {
    size_t ends[BATCH];
    pretok_cut_fn *cut = pretok_cutter(c->pretok);
    sequence_room room;
    pretok_place place;
    pretok_place_start(&place, c->pretok, 0, n, &room);
    size_t count;
    size_t pos = 0;
    int code = PYBPE_OK;
    while (code == PYBPE_OK && (count = cut(&place, NULL, text, n, ends, BATCH)) > 0) {
        code = batch_add(c, text, n, pos, ends, count, err);
        pos = ends[count - 1];
    }
    pretok_place_end(&place);
    return code;
}

static int counter_text_add(pybpe_counter *c, const uint8_t *text, size_t n, pybpe_error *err) {
    size_t pos = 0;
    special_scan scan;
    special_scan_start(&scan, c->specials, text, n, 0);
    special_match match;
    int code = PYBPE_OK;
    while (code == PYBPE_OK && special_scan_next(&scan, &match)) {
        code = segment_add(c, text + pos, match.start - pos, err);
        pos = match.end;
    }
    special_scan_end(&scan);
    return code == PYBPE_OK && pos < n ? segment_add(c, text + pos, n - pos, err) : code;
}

/* Begins a call that counts texts. */
static int texts_begin(const pybpe_counter *c, pybpe_error *err) {
    if (c->pretok == NULL) {
        return error_set(err, PYBPE_ERR_VALUE, 0,
                         "this counter was made without a pattern: use pybpe_counter_add_words");
    }
    return count_begin(c, err);
}

int pybpe_counter_add(pybpe_counter *c, const uint8_t *text, size_t n, pybpe_error *err) {
    PYBPE_TRY(texts_begin(c, err));
    return count_end(c, counter_text_add(c, text, n, err));
}

int pybpe_counter_add_texts(pybpe_counter *c, const pybpe_strings *texts, const uint64_t *counts, pybpe_error *err) {
    int code = strings_check(texts, "texts", err);
    const uint64_t total = code == PYBPE_OK ? strings_total(texts) : 0;
    if (total > 0) {
        code = texts_begin(c, err);
    }
    if (code != PYBPE_OK || total == 0) {
        return code;
    }
    for (size_t i = 0; i < texts->count && code == PYBPE_OK; i++) {
        size_t length = string_length(texts, i);
        uint64_t weight = counts == NULL ? 1 : counts[i];
        if (length > 0 && weight > 0) {
            c->weight = weight;
            code = counter_text_add(c, string_at(texts, i), length, err);
        }
    }
    c->weight = 1;
    return count_end(c, code);
}

static int word_add(pybpe_counter *c, const pending *p, uint64_t count, pybpe_error *err) {
    uint64_t *word_count = NULL;
    int code = count_table_add(c, p, &word_count, err);
    if (code == PYBPE_OK && __builtin_add_overflow(*word_count, count, word_count)) {
        return count_overflow(err);
    }
    c->total += count;
    return code;
}

int pybpe_counter_add_words(pybpe_counter *c, const pybpe_strings *words, const uint64_t *counts, pybpe_error *err) {
    int code = strings_check(words, "words", err);
    code = code == PYBPE_OK ? count_begin(c, err) : code;
    if (code != PYBPE_OK || strings_total(words) == 0) {
        return code; /* the bytes of empty words may be NULL */
    }
    /* All at once: words may come in the order of another table with the same seed (see count_absorb.c). */
    code = count_table_reserve(c, words->count, err);
    const uint8_t *end = words->bytes + words->offsets[words->count];
    for (size_t i = 0; i < words->count && code == PYBPE_OK; i++) {
        size_t length = string_length(words, i);
        if (length > 0) {
            pending p;
            pending_set(&p, c, words->bytes + words->offsets[i], length, end);
            code = word_add(c, &p, counts == NULL ? 1 : counts[i], err);
        }
    }
    return count_end(c, code);
}

int pybpe_counter_reserve(pybpe_counter *c, size_t words, pybpe_error *err) {
    PYBPE_TRY(count_begin(c, err));
    return count_table_reserve(c, words > c->words ? words - c->words : 0, err);
}

pybpe_counter_stats pybpe_counter_get_stats(const pybpe_counter *c) {
    return (pybpe_counter_stats){.words = c->words,
                                 .bytes = c->bytes,
                                 .total = c->total,
                                 .memory = c->memory,
                                 .room = count_table_room(c->mask + 1)};
}

/* Where the next word is copied to. */
typedef struct export_cursor {
    uint8_t *bytes;
    uint64_t *offsets, *counts;
    uint64_t at;
} export_cursor;

static void export_word(export_cursor *to, const uint8_t *word, size_t length, uint64_t count) {
    memcpy(to->bytes + to->at, word, length);
    *to->offsets++ = to->at;
    *to->counts++ = count;
    to->at += length;
}

/* Long words are copied in the arena's order, short ones in the slots' order, so both are read front to back. */
void pybpe_counter_export(const pybpe_counter *c, uint8_t *bytes, uint64_t *offsets, uint64_t *counts) {
    export_cursor to = {bytes, offsets, counts, 0};
    for (const count_block *block = c->blocks; block != NULL; block = block->next) {
        for (size_t at = 0; at < block->used;) {
            const count_record *record = (const count_record *)(block->records + at / 8);
            if (!record->moved) {
                export_word(&to, record->bytes, (size_t)record->length, record->count);
            }
            at += count_record_size((size_t)record->length);
        }
    }
    for (size_t i = 0; i <= c->mask; i++) {
        const count_slot *slot = &c->slots[i];
        if (slot->key.hi != 0 && !slot_is_long(slot)) {
            uint8_t inline_word[16];
            size_t length;
            const uint8_t *word = slot_word(slot, inline_word, &length);
            export_word(&to, word, length, slot->count);
        }
    }
    *to.offsets = to.at;
}
