/*
The units of words: their keys, their slots of the cache, and their ids. encode.c has the drawing.

Units are processed in batches of a few hundred. The first stage cuts words into units, makes their keys, hashes them,
and prefetches their slots. The second stage compares keys and emits ids. By then the slots have arrived, so a table
much larger than the processor's caches costs hardly more than a small one.
*/
#include "encode/encode_stages.h"
#include "encode/encode_work.h"

/* MANY_UNITS: if fewer than one of so many is a new token, it costs more to look for such ones than that saves. */
enum { MANY_BYTES = 1 << 18, MANY_UNITS = 32 };
static const uint64_t ID_UNIT = UINT64_C(1) << 55;

/* ---------------------------------------------------------------------------------------------------
The second stage: from units to ids
*/

/* Whether there is a table for merging units too long for apply_short, if n more bytes of them follow. Filling the
   table takes a few milliseconds and makes merging several times faster, so it is filled when there are many such
   bytes. */
static bool work_has_blocks(encode_work *work, size_t n) {
    pybpe_cache *c = work->c;
    if (c->long_bytes + n >= MANY_BYTES && !c->blocks.tried) {
        const pybpe_vocab_spec spec = pybpe_vocab_get_spec(work->e->vocab);
        apply_blocks_fill(&c->blocks, &spec, &work->e->table, &c->mem);
    }
    return c->blocks.usable;
}

/* Merges a unit: block by block if it is long and there is a table for that. */
static int unit_merge(encode_work *work, apply_word *unit) {
    const merge_table *table = &work->e->table;
    pybpe_cache *c = work->c;
    if (unit->n > APPLY_SHORT_MAX) {
        c->long_bytes += unit->n;
        if (work_has_blocks(work, 0) && apply_blocks(&c->blocks, table, unit->bytes, unit->n, &unit->count, &c->mem)) {
            unit->ids = c->blocks.ids;
            return PYBPE_OK;
        }
    }
    return apply_merges(table, &c->scratch, unit, &c->mem, work->err);
}

static void unit_encode_long(encode_work *work, const uint8_t *w, size_t n) {
    pybpe_cache *c = work->c;
    apply_word unit = {.bytes = w, .n = n};
    uint64_t hash = 0;
    if (n <= CACHE_WORD_MAX) {
        hash = word_hash_long(w, n, c->seed);
        const uint32_t *known = cache_long_find(c, hash, w, n, &unit.count);
        if (known != NULL) {
            sink_put(&work->sink, known, unit.count);
            return;
        }
    }
    work->code = unit_merge(work, &unit);
    if (work->code != PYBPE_OK) {
        return;
    }
    sink_put(&work->sink, unit.ids, unit.count);
    if (n <= CACHE_WORD_MAX) {
        cache_long_add(c, hash, w, n, unit.ids, unit.count);
    }
}

static bool key_is_ascii(word_key key) {
    const uint64_t high_bits = UINT64_C(0x8080808080808080);
    return ((key.lo | key.hi) & high_bits) == 0; /* the length, up to 15, has no high bit */
}

/* Whether a unit may be a token that it is worth looking for: words of ASCII characters. Other words start as characters,
   so merging them is fast. */
static bool unit_is_likely(word_key key) { return key_is_ascii(key) && key.hi >> 56 > 1; }

/* Adds a word of up to 15 bytes to the cache. `token` is the token that it is, if that is known. Sets its ids, and returns
   their number. */
static size_t word_insert(encode_work *work, cache_slot *set, word_key key, uint32_t token,
                          uint32_t ids[WORD_INLINE_MAX]) {
    size_t count = 1;
    ids[0] = token;
    if (token == PYBPE_NO_ID) {
        uint8_t bytes[16];
        const size_t n = word_key_unpack(key, bytes);
        count = apply_short(&work->e->table, bytes, n, ids);
    }
    work->new_tokens += count == 1 && unit_is_likely(key);
    cache_add(work->c, set, key, ids, count);
    return count;
}

/* Sets units[0..count) to the likely units of the batch that are not in their sets, and returns their number. */
static size_t units_missing(const encode_work *work, uint16_t units[BATCH_UNITS]) {
    size_t missing = 0;
    for (size_t i = 0; i < work->count; i++) {
        const cache_slot *set = work->sets[i];
        PYBPE_PREFETCH(work->sets[i + UNITS_AHEAD]);
        units[missing] = (uint16_t)i; /* no branch, which would be hard to predict */
        missing += (size_t)((work->los[i] != set[0].key.lo) & (work->los[i] != set[1].key.lo));
    }
    size_t count = 0;
    for (size_t k = 0; k < missing; k++) {
        const size_t i = units[k];
        units[count] = (uint16_t)i;
        count += unit_is_likely((word_key){work->los[i], work->his[i]});
    }
    return count;
}

/* Adds to the cache the likely words of the batch that it lacks. Most are tokens, which the vocabulary's index finds. In
   rounds, so that all loads of one are on their way before the next one needs what they load. */
static __attribute__((noinline)) void units_sift(encode_work *work) {
    const pybpe_vocab *v = work->e->vocab;
    uint16_t units[BATCH_UNITS];
    uint64_t hashes[BATCH_UNITS];
    const size_t count = units_missing(work, units);
    for (size_t k = 0; k < count; k++) {
        hashes[k] = word_key_hash((word_key){work->los[units[k]], work->his[units[k]]}, v->seed);
        vocab_prefetch(v, hashes[k]);
    }
    for (size_t k = 0; k < count; k++) {
        vocab_prefetch_token(v, hashes[k]);
    }
    for (size_t k = 0; k < count; k++) {
        const word_key key = {work->los[units[k]], work->his[units[k]]};
        cache_slot *set = work->sets[units[k]];
        uint32_t ids[WORD_INLINE_MAX];
        if (cache_find(work->c, set, key) == NULL) { /* a word may be in the batch twice */
            word_insert(work, set, key, token_lookup(work->e, key, hashes[k]), ids);
        }
    }
}

/* Encodes a unit that is not in its set, or whose ids are not in its slot. */
static __attribute__((noinline)) void unit_encode(encode_work *work, word_key key, cache_slot *set) {
    size_t n = (size_t)(key.hi >> 56);
    if (key.hi == ID_UNIT) {
        const uint32_t id = (uint32_t)key.lo;
        sink_put(&work->sink, &id, 1);
        return;
    }
    if (n == 0) {
        unit_encode_long(work, (const uint8_t *)(uintptr_t)key.lo, (size_t)key.hi);
        return;
    }
    size_t count;
    const cache_slot *slot = cache_find(work->c, set, key);
    if (slot != NULL && cache_slot_count(slot) > 0) {
        const int id_bytes = work->sink.ids == NULL ? 0 : work->sink.id_bytes;
        sink_put_slot(&work->sink, slot, cache_slot_count(slot), work->c->narrow, id_bytes);
        return;
    }
    const uint32_t *known = slot != NULL ? cache_far_ids(work->c, slot, &count) : NULL;
    if (known != NULL) {
        sink_put(&work->sink, known, count);
        return;
    }
    uint32_t ids[WORD_INLINE_MAX];
    const bool looks_up = work->c->has_new_tokens && unit_is_likely(key) && encoder_looks_up(work->e);
    const uint64_t hash = word_key_hash(key, work->e->vocab->seed);
    count = word_insert(work, set, key, looks_up ? token_lookup(work->e, key, hash) : PYBPE_NO_ID, ids);
    sink_put(&work->sink, ids, count);
}

/* The second stage for some units of the batch. The sink is a local copy, which can stay in registers: through `work`
   the compiler would have to reload it after every store of ids. */
INLINE_ALWAYS void units_emit(encode_work *work, size_t from, size_t to, bool narrow, int id_bytes) {
    id_sink sink = work->sink;
    for (size_t i = from; i < to; i++) {
        word_key key = {work->los[i], work->his[i]};
        cache_slot *set = work->sets[i];
        PYBPE_PREFETCH(work->sets[i + UNITS_AHEAD]); /* the batch's slots do not all stay in the fastest cache */
        const cache_slot *slot = &set[cache_slot_holds(&set[1], key)]; /* arithmetic: no branch to mispredict */
        unsigned count = cache_slot_count(slot);
        if (PYBPE_LIKELY(cache_slot_holds(slot, key) && count > 0)) {
            sink_put_slot(&sink, slot, count, narrow, id_bytes);
            continue;
        }
        work->sink = sink;
        unit_encode(work, key, set);
        sink = work->sink;
        if (PYBPE_UNLIKELY(work->code != PYBPE_OK)) {
            break;
        }
    }
    work->sink = sink;
}

static __attribute__((noinline)) void units_emit_any(encode_work *work, size_t from, size_t to) {
    if (work->code != PYBPE_OK) {
        return;
    }
    switch ((work->c->narrow ? 8 : 0) + (work->sink.ids == NULL ? 0 : work->sink.id_bytes)) {
    case 8 + 2:
        units_emit(work, from, to, true, 2);
        break;
    case 8 + 4:
        units_emit(work, from, to, true, 4);
        break;
    case 8 + 0:
        units_emit(work, from, to, true, 0);
        break;
    case 0 + 2:
        units_emit(work, from, to, false, 2);
        break;
    case 0 + 4:
        units_emit(work, from, to, false, 4);
        break;
    default:
        units_emit(work, from, to, false, 0);
        break;
    }
}

void units_flush(encode_work *work) {
    size_t from = 0;
    for (size_t i = 0; i < UNITS_AHEAD; i++) {
        work->sets[work->count + i] = work->c->table.data; /* units_emit prefetches beyond the last unit */
    }
    work->new_tokens = 0;
    if (work->c->has_new_tokens && encoder_looks_up(work->e)) {
        units_sift(work);
    }
    for (size_t i = 0; i < work->ended; i++) {
        units_emit_any(work, from, work->ended_at[i]);
        from = work->ended_at[i];
        *work->ends++ = work->sink.count;
    }
    units_emit_any(work, from, work->count);
    if (work->count > 0) {
        work->c->has_new_tokens = MANY_UNITS * work->new_tokens > work->count;
    }
    work->count = 0;
    work->ended = 0;
    cache_fit(work->c, 0); /* a long text must not wait for its end to get room for its words */
}

/* ---------------------------------------------------------------------------------------------------
The first stage: from words to units

    words_add_all           any number of words: in batches, each by one of these two
    words_add_whole_tokens  looks for words that are tokens which merges do not reach. The words between them go to
    words_add_checked       words whose bytes must have tokens
    words_add_cut           words that the splitter has cut at hard boundaries
    words_to_units          what both use: up to BATCH_WORDS words
*/

/* The batch must have room. */
INLINE_ALWAYS void unit_put(encode_work *work, size_t at, word_key key, const pybpe_cache *c) {
    cache_slot *set = cache_set(c, key);
    PYBPE_PREFETCH(set);
    work->los[at] = key.lo;
    work->his[at] = key.hi;
    work->sets[at] = set;
}

/* Adds a unit of any length. */
static void unit_add(encode_work *work, const uint8_t *w, size_t n) {
    if (work->count == BATCH_UNITS) {
        units_flush(work);
    }
    const pybpe_cache *c = work->c;
    if (n <= WORD_INLINE_MAX) {
        const bool late = work->end - w < 16;
        unit_put(work, work->count, late ? word_key_late(w, n, work->text, work->end) : word_key_fast(w, n), c);
    } else {
        work->los[work->count] = (uintptr_t)w;
        work->his[work->count] = n;
        work->sets[work->count] = c->table.data; /* some set: none holds the unit */
        if (n <= CACHE_WORD_MAX) {
            PYBPE_PREFETCH(cache_long_slot_of(c, word_hash_long(w, n, c->seed)));
        }
    }
    work->count += 1;
}

void id_add(encode_work *work, uint32_t id) {
    if (work->count == BATCH_UNITS) {
        units_flush(work);
    }
    work->los[work->count] = id;
    work->his[work->count] = ID_UNIT;
    work->sets[work->count] = work->c->table.data; /* some set: none holds the unit */
    work->count += 1;
}

int encoder_check_bytes(const pybpe_encoder *e, const uint8_t *text, size_t n, size_t at, pybpe_error *err) {
    for (size_t i = 0; e->lacks_bytes && i < n; i++) { /* merging would give an invalid id for a byte without a token */
        if (e->vocab->byte_ids[text[i]] == PYBPE_NO_ID) {
            return error_set(err, PYBPE_ERR_VALUE, (uint64_t)(at + i),
                             "the text has the byte 0x%02X, for which this vocabulary has no token: it was trained "
                             "without all 256 bytes (initial_alphabet); remove such text, or train a new vocabulary",
                             text[i]);
        }
    }
    return PYBPE_OK;
}

bool text_is_known(encode_work *work, const uint8_t *text, size_t n) {
    work->code = encoder_check_bytes(work->e, text, n, work->before + (size_t)(text - work->text), work->err);
    return work->code == PYBPE_OK;
}

/* Cuts a word into units at its hard boundaries. A very long word is not natural text, so its pieces are unlikely to be
   in the cache, and merging it whole, if that is fast, costs less than looking them up. Such a word is cut only to limit
   memory. */
static void word_cut(encode_work *work, const uint8_t *w, size_t n) {
    const bool is_fast = n >= MANY_BYTES && work_has_blocks(work, n);
    const size_t least = is_fast ? MANY_BYTES / 4 : 1;
    size_t start = 0;
    if (n == 0) {
        return;
    }
    for (size_t i = least; i < n; i++) {
        if (boundary_is_hard(&work->e->boundaries, w, n, i)) {
            unit_add(work, w + start, i - start);
            start = i;
            i += least - 1;
        }
    }
    unit_add(work, w + start, n - start);
}

/* Adds up to BATCH_WORDS words, from text + from to the ends. `cut` says that they are already cut at hard boundaries,
   except at those between ASCII characters. */
INLINE_ALWAYS void words_to_units(encode_work *work, const uint8_t *text, size_t from, const size_t *ends, size_t words,
                                  bool cut) {
    const size_t readable = (size_t)(work->end - text);
    const size_t fast = readable >= 16 ? readable - 15 : 0; /* words that start before it are read 16 bytes at a time */
    if (work->count + words > BATCH_UNITS) {
        units_flush(work);
    }
    pybpe_cache c = *work->c; /* copies of what the loop reads, as in units_emit */
    size_t count = work->count;
    for (size_t i = 0; i < words; i++) {
        const uint8_t *w = text + from;
        size_t n = ends[i] - from;
        if (PYBPE_LIKELY(n - 1 < WORD_INLINE_MAX)) {
            word_key key = PYBPE_LIKELY(from < fast) ? word_key_fast(w, n) : word_key_late(w, n, work->text, work->end);
            if (cut || PYBPE_LIKELY(key_is_ascii(key))) {
                unit_put(work, count, key, &c);
                count += 1;
                from = ends[i];
                continue;
            }
        }
        from = ends[i];
        work->count = count;
        word_cut(work, w, n);
        if (work->count + (words - i) > BATCH_UNITS) {
            units_flush(work);
        }
        c = *work->c; /* a flush may enlarge it */
        count = work->count;
    }
    work->count = count;
}

void words_add_cut(encode_work *work, const uint8_t *text, size_t from, const size_t *ends, size_t words) {
    words_to_units(work, text, from, ends, words, true);
}

static void words_add_checked(encode_work *work, const uint8_t *text, size_t from, const size_t *ends, size_t words) {
    if (PYBPE_UNLIKELY(work->e->lacks_bytes) && words > 0 &&
        !text_is_known(work, text + from, ends[words - 1] - from)) {
        return;
    }
    words_to_units(work, text, from, ends, words, false);
}

/* Such words are rare, so the units before each one are simply flushed, and the cache, which also holds parts of words,
   does not have to handle them. */
void words_add_whole_tokens(encode_work *work, const uint8_t *text, size_t from, const size_t *ends, size_t words) {
    size_t done = 0;
    size_t done_end = from;
    for (size_t i = 0; i < words; i++) {
        size_t start = i > 0 ? ends[i - 1] : from;
        uint32_t id = whole_table_find(&work->e->whole, work->e->vocab, text + start, ends[i] - start);
        if (id == PYBPE_NO_ID) {
            continue;
        }
        words_add_checked(work, text, done_end, ends + done, i - done);
        units_flush(work);
        if (work->code != PYBPE_OK) {
            return;
        }
        sink_put(&work->sink, &id, 1);
        done = i + 1;
        done_end = ends[i];
    }
    words_add_checked(work, text, done_end, ends + done, words - done);
}

void words_add_all(encode_work *work, const uint8_t *text, size_t from, const size_t *ends, size_t words) {
    for (size_t i = 0; i < words && work->code == PYBPE_OK; i += BATCH_WORDS) {
        size_t batch = words - i < BATCH_WORDS ? words - i : BATCH_WORDS;
        if (PYBPE_UNLIKELY(work->e->whole.bits != NULL)) {
            words_add_whole_tokens(work, text, from, ends + i, batch);
        } else {
            words_add_checked(work, text, from, ends + i, batch);
        }
        from = ends[i + batch - 1];
    }
}

/* ---------------------------------------------------------------------------------------------------
Texts
*/

static const uint8_t NO_TEXT[1]; /* instead of NULL: adding even 0 to NULL is undefined */

void work_begin(encode_work *work, const pybpe_encoder *e, pybpe_cache *c, size_t n, id_buffer to, pybpe_error *err) {
    work->e = e;
    work->c = c;
    work->end = work->text = NO_TEXT;
    work->before = 0;
    work->size = n;
    work->cap = to.cap;
    work->err = err;
    work->code = PYBPE_OK;
    const size_t most = CACHE_NARROW_IDS;
    work->sink = (id_sink){.ids = to.ids, .id_bytes = to.id_bytes, .roomy = to.cap >= most ? to.cap - most + 1 : 0};
    work->count = 0;
    work->ended = 0;
    cache_fit(c, n);
}

void text_begin(encode_work *work, const uint8_t *text, size_t n) {
    work->before += (size_t)(work->end - work->text);
    work->text = n > 0 ? text : NO_TEXT;
    work->end = work->text + n;
}

void text_end(encode_work *work) {
    work->ended_at[work->ended] = work->count;
    work->ended += 1;
    if (work->ended == BATCH_UNITS) {
        units_flush(work);
    }
}

int work_finish(encode_work *work, size_t *count) {
    cache_trim(work->c);
    if (work->code == PYBPE_OK && work->sink.too_large != 0) {
        return error_set(work->err, PYBPE_ERR_LIMIT, 0, "id %u does not fit 16 bits; use 32-bit ids",
                         work->sink.too_large);
    }
    if (work->code == PYBPE_OK) {
        *count = work->sink.count;
    }
    return work->code;
}

int stages_encode_units(stages_scan *scan, size_t held, size_t *total) {
    pybpe_cache *c = scan->c;
    stages_units *u = &scan->units;
    const size_t n = u->ends[u->count - 1];
    encode_work work;
    work_begin(&work, scan->e->stages->first, c->first, n,
               (id_buffer){c->stage_ids, sizeof *c->stage_ids, c->stage_ids_cap}, scan->err);
    text_begin(&work, scan->text + scan->pos, n);
    work.sink.count = held;
    work.ends = u->word_ids;
    size_t from = 0;
    for (size_t i = 0; i <= u->words_count; i++) {
        size_t to = i < u->words_count ? u->words[i] : u->count;
        words_add_all(&work, work.text, from > 0 ? u->ends[from - 1] : 0, u->ends + from, to - from);
        if (i < u->words_count) {
            text_end(&work);
        }
        from = to;
    }
    units_flush(&work);
    return work_finish(&work, total);
}
