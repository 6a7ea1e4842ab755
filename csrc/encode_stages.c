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

Stage 1 has the first k merges, stage 2 has the others. Here k is the number of merges before the first one whose token
has a space after another visible ASCII character.

Why the ids are exact. BPE applies the merge with the lowest rank, over and over.

1. Stage 1 comes first. As long as some merge of stage 1 can be applied, one of them has the lowest rank. Afterward, no
   merge of stage 1 can be applied until there is a new pair of tokens, and a merge of stage 2 must have made one of the
   two. stages_new checks that no merge of stage 1 uses a token that a merge of stage 2 makes.
2. Units. They end only at hard boundaries of the merges of stage 1 (encode_boundary.c has the proof), and at the ends
   of words. So stage 1 has the same result in each unit as in the whole word. Which of the hard boundaries are used
   does not matter; they are those where a word of gpt2's pattern ends.
3. Phrases. Consider the place between two tokens a and b that stage 1 has made, and the first merge that crosses it. It
   joins a token that ends with a to one that begins with b. By 1 it is a merge of stage 2, so the pair of the last
   token of its left part and the first token of its right part is (a, b). Those pairs are the *joints*. Where (a, b)
   is not a joint, no merge ever crosses, and the tokens of both sides do not interact, as at a hard boundary.

For 3, all tokens with the same id must begin with the same token of stage 1, and end with the same one. stages_new
computes these from the merges, and makes no stages if two merges differ in them. Then, or if 1 does not hold, the
encoder has one stage and is slower.

The joints are in a Bloom filter. A false positive only makes a phrase longer.
*/
#include "encode_stages.h"

enum {
    STAGE_BYTES = 1 << 16,    /* of text in a block, unless a unit is longer */
    STAGE_IDS_KEPT = 1 << 20, /* the buffer of a longer block is freed */
    JOINT_BITS = 16,          /* per joint */
    JOINTS_LOG2_MIN = 12,     /* bits */
    PAIRS_LOG2_MIN = 6,
    PAIRS_SPREAD = 2,    /* slots per pair, at least */
    JOINTS_LOG2_MAX = 22 /* more would not stay in a level 2 cache */
};

/* ---------------------------------------------------------------------------------------------------
Making the stages
*/

/* Whether a merge joins a space to another visible ASCII character before it, anywhere in its token. */
static bool token_has_words(const uint8_t *token, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (token[i] == ' ' && token[i - 1] > ' ' && token[i - 1] < 0x7F) {
            return true;
        }
    }
    return false;
}

size_t stages_first_merges(const pybpe_vocab *v) {
    size_t k = 0;
    while (k < v->merges_count && !token_has_words(vocab_token(v, v->merged[k]), vocab_token_length(v, v->merged[k]))) {
        k += 1;
    }
    const size_t least = v->merges_count / 4; /* with fewer, most of the work is in stage 2 */
    return k >= least ? k : v->merges_count;
}

/* The tokens of stage 1 that a token begins and ends with; PYBPE_NO_ID for a token that no merge makes. */
typedef struct stage_ends {
    uint32_t first, last;
    bool used; /* by a merge of stage 1 */
} stage_ends;

static void find_first_stage(stage_ends *tokens, const pybpe_vocab *v, size_t k) {
    for (size_t id = 0; id < v->count; id++) {
        tokens[id] = (stage_ends){PYBPE_NO_ID, PYBPE_NO_ID, false};
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t id = v->byte_ids[byte];
        if (id != PYBPE_NO_ID) {
            tokens[id].first = tokens[id].last = id;
        }
    }
    for (size_t m = 0; m < k; m++) {
        uint32_t id = v->merged[m];
        tokens[id].first = tokens[id].last = id;
        tokens[v->merges[2 * m]].used = tokens[v->merges[2 * m + 1]].used = true;
    }
}

/* Finds what the tokens of stage 2 begin and end with. Returns false if two stages would not be exact. */
static bool find_second_stage(stage_ends *tokens, const pybpe_vocab *v, size_t k) {
    for (size_t m = k; m < v->merges_count; m++) {
        const stage_ends *left = &tokens[v->merges[2 * m]];
        const stage_ends *right = &tokens[v->merges[2 * m + 1]];
        stage_ends *made = &tokens[v->merged[m]];
        if (left->first == PYBPE_NO_ID || right->first == PYBPE_NO_ID || made->used) {
            return false; /* the merges are not in order */
        }
        if (made->first == PYBPE_NO_ID) {
            made->first = left->first;
            made->last = right->last;
        }
        if (made->first != left->first || made->last != right->last) {
            return false;
        }
    }
    return true;
}

static inline uint64_t joint_index(const encode_stages *s, uint32_t a, uint32_t b) {
    return ((uint64_t)a << 32 | b) * UINT64_C(0x9E3779B97F4A7C15) >> s->joints_shift; /* as in boundary.h */
}

static inline bool joint_has(const encode_stages *s, uint32_t a, uint32_t b) {
    uint64_t index = joint_index(s, a, b);
    uint64_t bits = s->joints[index >> 12];
    return (bits >> (index & 63) & bits >> (index >> 6 & 63) & 1) != 0;
}

static int joints_make(encode_stages *s, const stage_ends *tokens, const pybpe_vocab *v, size_t k,
                       const pybpe_allocator *mem, pybpe_error *err) {
    unsigned log2_bits = JOINTS_LOG2_MIN;
    while (log2_bits < JOINTS_LOG2_MAX && (size_t)1 << log2_bits < JOINT_BITS * (v->merges_count - k)) {
        log2_bits += 1;
    }
    size_t words = (size_t)1 << (log2_bits - 6);
    s->joints_shift = 64 - (log2_bits - 6) - 12;
    s->joints = mem_alloc_zeroed(mem, words, sizeof *s->joints);
    if (s->joints == NULL) {
        return error_set_memory(err, "the second stage of an encoder", words * sizeof *s->joints);
    }
    for (size_t m = k; m < v->merges_count; m++) {
        uint64_t index = joint_index(s, tokens[v->merges[2 * m]].last, tokens[v->merges[2 * m + 1]].first);
        s->joints[index >> 12] |= UINT64_C(1) << (index & 63) | UINT64_C(1) << (index >> 6 & 63);
    }
    return PYBPE_OK;
}

/* Makes the table of the pairs that stage 2 merges. A pair that is there twice keeps its first rank. */
static int pairs_make(encode_stages *s, const pybpe_vocab *v, size_t k, const pybpe_allocator *mem, pybpe_error *err) {
    unsigned log2_slots = PAIRS_LOG2_MIN;
    while ((size_t)1 << log2_slots < PAIRS_SPREAD * (v->merges_count - k)) {
        log2_slots += 1;
    }
    size_t slots = (size_t)1 << log2_slots;
    s->pairs_mask = slots - 1;
    s->pairs_shift = 64 - log2_slots;
    s->pairs_factor = hash_seed_draw().a | 1;
    s->pairs = mem_alloc_array(mem, slots, sizeof *s->pairs);
    if (s->pairs == NULL) {
        return error_set_memory(err, "the second stage of an encoder", slots * sizeof *s->pairs);
    }
    memset(s->pairs, 0xFF, slots * sizeof *s->pairs);
    for (size_t m = k; m < v->merges_count; m++) {
        uint32_t left = v->merges[2 * m];
        uint32_t right = v->merges[2 * m + 1];
        s->parts[left] |= PART_LEFT;
        s->parts[right] |= PART_RIGHT;
        if (stages_rank(s, left, right) == MERGE_NONE) {
            size_t i = stages_slot(s, left, right);
            while (s->pairs[i] != UINT64_MAX) {
                i = (i + 1) & s->pairs_mask;
            }
            s->pairs[i] = stages_key(left, right) << STAGES_RANK_BITS | m;
        }
    }
    return PYBPE_OK;
}

static int lengths_make(encode_stages *s, const pybpe_vocab *v, const pybpe_allocator *mem, pybpe_error *err) {
    s->lengths = mem_alloc_zeroed(mem, v->count, 1);
    s->parts = mem_alloc_zeroed(mem, v->count, 1);
    if (s->lengths == NULL || s->parts == NULL) {
        return error_set_memory(err, "the second stage of an encoder", 2 * v->count);
    }
    for (size_t id = 0; id < v->count; id++) {
        size_t length = vocab_token_length(v, id);
        s->lengths[id] = length <= UINT8_MAX ? (uint8_t)length : 0;
    }
    return PYBPE_OK;
}

static int stages_fill(encode_stages *s, const stage_ends *tokens, const pybpe_vocab *v, size_t k,
                       const pybpe_allocator *mem, pybpe_error *err) {
    s->vocab = *v;
    s->vocab.merges_count = k;
    s->vocab.specials_count = 0;
    s->vocab.whole_words = 0;
    s->vocab.pattern = PYBPE_PATTERN_CUSTOM; /* the encoder is given words */
    int code = lengths_make(s, v, mem, err);
    if (code == PYBPE_OK) {
        code = joints_make(s, tokens, v, k, mem, err);
    }
    if (code == PYBPE_OK) {
        code = pairs_make(s, v, k, mem, err);
    }
    if (code == PYBPE_OK) {
        code = pybpe_pretok_new(&s->splits, PYBPE_PATTERN_GPT2, mem, err);
    }
    if (code == PYBPE_OK) {
        code = pybpe_encoder_new(&s->first, &s->vocab, mem, err);
    }
    return code;
}

int stages_new(encode_stages **out, const pybpe_vocab *v, size_t merges, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    if (merges >= v->merges_count) {
        return PYBPE_OK;
    }
    stage_ends *tokens = mem_alloc_array(mem, v->count, sizeof *tokens);
    encode_stages *s = mem_alloc_zeroed(mem, 1, sizeof *s);
    int code = tokens == NULL || s == NULL
                   ? error_set_memory(err, "the stages of an encoder", v->count * sizeof *tokens)
                   : PYBPE_OK;
    if (code == PYBPE_OK) {
        find_first_stage(tokens, v, merges);
        if (find_second_stage(tokens, v, merges)) {
            code = stages_fill(s, tokens, v, merges, mem, err);
            *out = code == PYBPE_OK ? s : NULL;
        }
    }
    mem_free(mem, tokens);
    if (*out == NULL) {
        stages_free(s, mem);
    }
    return code;
}

void stages_free(encode_stages *s, const pybpe_allocator *mem) {
    if (s == NULL) {
        return;
    }
    pybpe_encoder_free(s->first);
    pybpe_pretok_free(s->splits);
    mem_free(mem, s->pairs);
    mem_free(mem, s->joints);
    mem_free(mem, s->parts);
    mem_free(mem, s->lengths);
    mem_free(mem, s);
}

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
    scan->has_words = words != NULL;
    scan->words = words != NULL ? *words : (stages_ends){NULL, 0, 0};
    scan->words_place = words != NULL ? (pretok_place){0} : pretok_place_at(e->pretok, 0, n, &scan->room);
    scan->splits = (stages_ends){NULL, 0, 0};
    scan->splits_place = pretok_place_at(e->stages->splits, 0, n, NULL);
    scan->pos = 0;
    scan->held = 0;
}

void stages_end(stages_scan *scan) {
    pretok_place_end(&scan->words_place);
    pretok_place_end(&scan->splits_place);
}

/* The next end of a word after `pos`; SIZE_MAX if there is none. */
static size_t next_word(stages_scan *scan, size_t pos) {
    stages_ends *w = &scan->words;
    for (;;) {
        while (w->used < w->count && w->ends[w->used] <= pos) {
            w->used += 1;
        }
        if (w->used < w->count) {
            return w->ends[w->used];
        }
        if (scan->has_words) {
            return SIZE_MAX;
        }
        pretok_cut_fn *cut = pretok_cutter(scan->e->pretok);
        size_t count = cut(&scan->words_place, NULL, scan->text, scan->n, scan->words_found, STAGES_ENDS);
        *w = (stages_ends){scan->words_found, 0, count};
        if (count == 0) {
            return SIZE_MAX;
        }
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

static inline bool unit_may_end(const boundary_table *t, const uint8_t *text, size_t n, size_t at) {
    bool roomy = at >= 4 && n - at >= 4;
    uint64_t around = roomy ? boundary_around(text + at) : boundary_around_careful(text, n, at);
    if (byte_is_ascii(text[at - 1]) && byte_is_ascii(text[at])) {
        return !boundary_has_pair(t, around);
    }
    return !byte_is_continuation(text[at]) && !boundary_is_soft(t, around);
}

/* Adds the units that end after `end` and before `word`, the next end of a word. */
static size_t add_units(stages_scan *scan, size_t units, size_t end, size_t word) {
    const boundary_table *t = &scan->e->stages->first->boundaries;
    stages_ends *s = &scan->splits;
    while (units < STAGES_UNITS && (s->used < s->count || more_splits(scan)) && s->ends[s->used] < word) {
        size_t at = s->ends[s->used++];
        scan->units[units] = at - scan->pos;
        units += at > end && unit_may_end(t, scan->text, scan->n, at);
    }
    return units;
}

/* Finds the units of the next block. Returns where it ends. */
static size_t find_units(stages_scan *scan) {
    size_t units = 0;
    size_t words = 0;
    size_t end = scan->pos;
    while (units < STAGES_UNITS && end - scan->pos < STAGE_BYTES && end < scan->n) {
        size_t word = next_word(scan, end);
        units = add_units(scan, units, end, word);
        if (units < STAGES_UNITS) {
            scan->word_ends[words++] = word;
            scan->units[units++] = word - scan->pos;
        }
        end = scan->pos + scan->units[units - 1];
    }
    scan->units_count = units;
    scan->word_ends_count = words;
    return end;
}

/* Makes room for `need` ids between the stages and as many after them. Those that are held stay. */
static int ids_make_room(stages_scan *scan, size_t need) {
    pybpe_cache *c = scan->c;
    if (need > c->stage_ids_cap) {
        size_t want = need > 2 * c->stage_ids_cap ? need : 2 * c->stage_ids_cap;
        uint32_t *more = want <= SIZE_MAX / 2 ? mem_resize_array(&c->mem, c->stage_ids, 2 * want, sizeof *more) : NULL;
        if (more == NULL) {
            return error_set_memory(scan->err, "encoding in two stages", 2 * want * sizeof *more);
        }
        c->stage_ids = more;
        c->stage_ids_cap = want;
    }
    return PYBPE_OK;
}

void stages_trim(pybpe_cache *c) {
    if (c->stage_ids_cap > STAGE_IDS_KEPT) {
        mem_free(&c->mem, c->stage_ids);
        c->stage_ids = NULL;
        c->stage_ids_cap = 0;
    }
}

/* ---------------------------------------------------------------------------------------------------
Stage 2
*/

/* The ids of a block while they are divided into phrases. */
typedef struct stages_block {
    const encode_stages *s;
    uint32_t *ids; /* of stage 1 */
    uint32_t *out; /* of stage 2 */
    size_t count;  /* of these */
    size_t from;   /* where the last phrase begins in `ids` */
    uint32_t before;
    size_t at;                     /* the next place, in bytes */
    const size_t *ends, *ends_end; /* of the next words */
} stages_block;

/* Merges the last phrase, which ends at ids[until]. */
static inline int phrase_put(stages_scan *scan, stages_block *b, size_t until) {
    uint32_t *ids = b->ids + b->from;
    size_t count = until - b->from;
    int code = PYBPE_OK;
    if (count > 1) {
        code = phrase_merge(scan, ids, &count);
    }
    for (size_t i = 0; i < count; i++) {
        b->out[b->count + i] = ids[i];
    }
    b->count += count;
    b->from = until;
    return code;
}

/* Returns which of the ids[i..i + count), up to 64, continue the phrase of the id before. */
static inline uint64_t find_joints(stages_scan *scan, stages_block *b, size_t i, size_t count) {
    const encode_stages *s = b->s;
    uint32_t before = b->before;
    size_t at = b->at;
    size_t end = b->ends < b->ends_end ? *b->ends : SIZE_MAX;
    uint64_t joints = 0;
    for (size_t j = 0; j < count; j++) {
        uint32_t id = b->ids[i + j];
        uint64_t joint = joint_has(s, before, id);
        if (PYBPE_UNLIKELY(at == end)) {
            joint = 0;
            b->ends += 1;
            end = b->ends < b->ends_end ? *b->ends : SIZE_MAX;
        }
        joints |= joint << j;
        at += PYBPE_LIKELY(s->lengths[id] != 0) ? s->lengths[id] : vocab_token_length(scan->e->vocab, id);
        before = id;
    }
    b->before = before;
    b->at = at;
    return joints;
}

/* Merges the phrases that end before or at ids[i..i + count). `joints` is what find_joints returns for these. */
static int put_phrases(stages_scan *scan, stages_block *b, size_t i, size_t count, uint64_t joints) {
    int code = PYBPE_OK;
    uint64_t begins = ~joints & UINT64_MAX >> (64 - count); /* a bit for each id that begins a phrase */
    while (begins != 0 && code == PYBPE_OK) {
        unsigned next = (unsigned)__builtin_ctzll(begins);
        code = phrase_put(scan, b, i + next);
        uint64_t run = ~(begins >> next); /* the lowest bit is the first of the next ids that does not */
        unsigned alone = run != 0 ? (unsigned)__builtin_ctzll(run) - 1 : 63 - next;
        for (unsigned k = 0; k < alone; k++) {
            b->out[b->count + k] = b->ids[b->from + k];
        }
        b->count += alone;
        b->from += alone;
        begins &= UINT64_MAX << next << alone << 1;
    }
    return code;
}

/* Divides the ids of the block into phrases and merges them. The first `held` ids begin a phrase. Sets *count to the number of ids that are done. */
static int merge_phrases(stages_scan *scan, size_t held, size_t total, bool last, size_t *count) {
    pybpe_cache *c = scan->c;
    uint32_t *ids = c->stage_ids;
    stages_block b = {.s = scan->e->stages,
                      .ids = ids,
                      .out = ids + c->stage_ids_cap,
                      .before = held > 0 ? ids[held - 1] : 0,
                      .at = scan->pos,
                      .ends = scan->word_ends,
                      .ends_end = scan->word_ends + scan->word_ends_count};
    int code = PYBPE_OK;
    for (size_t i = held; i < total && code == PYBPE_OK; i += 64) {
        size_t n = total - i < 64 ? total - i : 64;
        uint64_t joints = find_joints(scan, &b, i, n);
        code = put_phrases(scan, &b, i, n, joints);
    }
    if (code == PYBPE_OK && (last || b.ends < b.ends_end)) { /* the block ends with a word */
        code = phrase_put(scan, &b, total);
    }
    scan->held_at = b.from;
    scan->held = total - b.from;
    *count = b.count;
    return code;
}

int stages_next(stages_scan *scan, const uint32_t **ids, size_t *count, bool *more) {
    pybpe_cache *c = scan->c;
    const size_t held = scan->held;
    size_t end = find_units(scan);
    if (held > 0) {
        memmove(c->stage_ids, c->stage_ids + scan->held_at, held * sizeof *c->stage_ids);
    }
    size_t fresh = 0;
    int code = ids_make_room(scan, held + (end - scan->pos));
    if (code == PYBPE_OK) {
        code =
            pybpe_encode_words(scan->e->stages->first, c->first, scan->text + scan->pos, scan->units, scan->units_count,
                               c->stage_ids + held, sizeof *c->stage_ids, c->stage_ids_cap - held, &fresh, scan->err);
    }
    if (code == PYBPE_OK) {
        code = merge_phrases(scan, held, held + fresh, end == scan->n, count);
    }
    *ids = c->stage_ids + c->stage_ids_cap;
    scan->pos = end;
    *more = end < scan->n;
    return code;
}
