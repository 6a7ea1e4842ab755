/*
Training: words and counts -> merges.

The textbook loop recounts all pairs for every merge. Here each pair has its count and a list of the places
where it occurs, and a merge touches only those places and their neighbours.

Symbols live by byte position. All words lie end to end in one array of ids, a slot a byte, with a separator
before, between and after them. A token that covers the bytes p .. p + len - 1 has its id in its first and in
its last slot, so that both neighbours of a token are found without links, however long the word is:

    bytes        t    h    e         t    h    e    n
    ids     SEP 260 HOLE  260  SEP  260 HOLE  260   n   SEP       260 is "the"
                 p         |         p         |    |
                           last slot           |    next token: p + 3
                                               last slot, seen from n as the slot before it

A place in a list may be outdated, since its tokens may have become part of longer ones. It is live exactly
if ids[p] is still the left token and ids[p + length] the right one: a token never shrinks, so slot p holds
either the id that it had when the place was noted, or that of a longer token, or HOLE.

Words are laid out by descending count, so that the weight of a place is found from a short table of runs
(first position, count). The places of a list ascend, and the run with them.

Only pairs that occur at least `threshold` times are kept. After it is made the count of a pair only falls
(what is new contains the newest token), so a rarer one cannot be the best before the best kept one has
fallen below the threshold too. Then the threshold is lowered and the array is scanned anew. Of the millions
of pairs of a large corpus most never come near being merged, and cost nothing but a part in these scans.
The exception is a merge that spells an existing token, whose pairs may rise; it is followed by a scan.

A merge (a, b) -> c goes through its places from left to right, rewrites the slots of the live ones, and sums
up the weights of the left and the right neighbours by token. Then, once for each neighbour and not for each
place, the counts of (l, a) and (b, r) fall, and the frequent ones of (l, c) and (c, r) get lists of their
exact size. In runs, c may become its own left neighbour:

    a b a b          (b, a) falls once, seen from the left place
    c . a b          the right neighbour of the first place is a: (c, a) rises
    c . c .          the left neighbour of the second place is c: (c, a) falls again and (c, c) rises
*/
#include "base.h"
#include "merge.h"
#include "pairs.h"
#include "wordkey.h"

#include <stdlib.h>

static const uint32_t SEP = 0xFFFFFFFF;  /* between words */
static const uint32_t HOLE = 0xFFFFFFFE; /* inside a token */

enum { PREFETCH_PLACES = 12, FILTER_LOG2_MAX = 22, THRESHOLD_STEP = 32, SCAN_BATCH = 128 };

/* What is known of one token. `order` is its place in the order of ties by id. */
typedef struct token {
    uint64_t prefix; /* its first 8 bytes, the first in the high bits: compares like the bytes do */
    size_t offset;   /* in token_bytes */
    uint32_t order;
} token;

/* The neighbours of one side in the merge under way, by token. */
typedef struct neighbour {
    uint64_t weight;
    uint32_t places_count;
    uint32_t *places; /* where the list of the new pair is being written; NULL if it is not kept */
} neighbour;

typedef struct side {
    neighbour *by_token; /* all zero between merges */
    uint32_t *touched;   /* the tokens that are not zero */
    size_t touched_count;
} side;

/* The words of one count lie from `start` up to the next run's start. */
typedef struct run {
    uint32_t start;
    uint64_t weight;
} run;

/* A scan of all pairs goes through three stages, interruptible between any two tokens; then pairs are merged. */
typedef enum train_stage { STAGE_FILTER, STAGE_COUNT, STAGE_PLACES, STAGE_MERGE } train_stage;

struct pybpe_trainer {
    pybpe_allocator mem;
    uint32_t vocab_size, max_token_length;
    uint64_t min_frequency;
    bool done;

    mem_table ids_table;
    uint32_t *ids;
    uint32_t slots; /* in ids */
    run *runs;      /* a last one starts at `slots` */
    size_t runs_count;

    token *tokens;
    uint32_t *lengths; /* of the tokens in bytes; apart, because every step from token to token reads one */
    uint32_t tokens_count, tokens_cap;
    uint8_t *token_bytes;
    size_t token_bytes_count, token_bytes_cap;
    uint32_t *index_slots; /* bytes -> token + 1 */
    size_t index_mask;
    hash_seed seed;

    pair_table pairs;
    uint64_t threshold;   /* 0 before the first scan */
    bool lower_threshold; /* after this scan's first stage */
    side left, right;
    uint32_t *merges; /* (left, right, merged) */
    size_t merges_count, merges_cap;

    train_stage stage;
    uint32_t scan_at; /* the position where the scan goes on: the start of a token */
    size_t scan_run;
    uint32_t *filter; /* hash of a pair -> its weight, with those of all pairs of that hash, or UINT32_MAX */
    size_t filter_mask;
};

/* ---------------------------------------------------------------------------------------------------
Tokens
*/

static uint64_t bytes_prefix(const uint8_t *bytes, size_t n) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; i++) {
        prefix = prefix << 8 | (i < n ? bytes[i] : 0);
    }
    return prefix;
}

static uint64_t bytes_hash(const uint8_t *bytes, size_t n, hash_seed seed) {
    return n <= WORD_INLINE_MAX ? word_key_hash(word_key_careful(bytes, n), seed) : word_hash_long(bytes, n, seed);
}

/* The slot of the index where a token with these bytes is, or would be. */
static size_t index_find(const pybpe_trainer *t, const uint8_t *bytes, size_t n) {
    size_t i = (size_t)bytes_hash(bytes, n, t->seed) & t->index_mask;
    for (; t->index_slots[i] != 0; i = (i + 1) & t->index_mask) {
        uint32_t known = t->index_slots[i] - 1;
        if (t->lengths[known] == n && memcmp(t->token_bytes + t->tokens[known].offset, bytes, n) == 0) {
            break;
        }
    }
    return i;
}

/* Room for one more token in everything that is indexed by tokens. */
static int tokens_room(pybpe_trainer *t, pybpe_error *err) {
    if (t->tokens_count < t->tokens_cap) {
        return PYBPE_OK;
    }
    size_t cap = t->tokens_cap == 0 ? 1024 : 2 * (size_t)t->tokens_cap;
    size_t needed = cap * (sizeof *t->tokens + 2 * sizeof(neighbour) + 5 * sizeof(uint32_t));
    token *tokens = mem_resize_array(&t->mem, t->tokens, cap, sizeof *tokens);
    if (tokens == NULL) {
        return error_set_memory(err, "the tokens of a training", needed);
    }
    t->tokens = tokens;
    uint32_t *lengths = mem_resize_array(&t->mem, t->lengths, cap, sizeof *lengths);
    if (lengths == NULL) {
        return error_set_memory(err, "the tokens of a training", needed);
    }
    t->lengths = lengths;
    side *sides[] = {&t->left, &t->right};
    for (size_t i = 0; i < 2; i++) {
        neighbour *by_token = mem_alloc_zeroed(&t->mem, cap, sizeof *by_token); /* all zero now, so none to copy */
        uint32_t *touched = mem_alloc_array(&t->mem, cap, sizeof *touched);
        if (by_token == NULL || touched == NULL) {
            mem_free(&t->mem, by_token);
            mem_free(&t->mem, touched);
            return error_set_memory(err, "the tokens of a training", needed);
        }
        mem_free(&t->mem, sides[i]->by_token);
        mem_free(&t->mem, sides[i]->touched);
        sides[i]->by_token = by_token;
        sides[i]->touched = touched;
    }
    uint32_t *slots = mem_alloc_zeroed(&t->mem, 2 * cap, sizeof *slots);
    if (slots == NULL) {
        return error_set_memory(err, "the tokens of a training", needed);
    }
    mem_free(&t->mem, t->index_slots);
    t->index_slots = slots;
    t->index_mask = 2 * cap - 1;
    t->tokens_cap = (uint32_t)cap;
    for (uint32_t i = 0; i < t->tokens_count; i++) {
        slots[index_find(t, t->token_bytes + t->tokens[i].offset, t->lengths[i])] = i + 1;
    }
    return PYBPE_OK;
}

static int token_bytes_room(pybpe_trainer *t, size_t n, pybpe_error *err) {
    if (n <= t->token_bytes_cap - t->token_bytes_count) {
        return PYBPE_OK;
    }
    size_t cap = 2 * (t->token_bytes_count + n) + 4096;
    uint8_t *bytes = mem_resize_array(&t->mem, t->token_bytes, cap, 1);
    if (bytes == NULL) {
        return error_set_memory(err, "the bytes of tokens", cap);
    }
    t->token_bytes = bytes;
    t->token_bytes_cap = cap;
    return PYBPE_OK;
}

/* The token whose n bytes stand, not yet counted, at the end of token_bytes: an existing one with the same
   bytes, or a new one. There must be room for it. */
static uint32_t token_intern(pybpe_trainer *t, size_t n) {
    const uint8_t *bytes = t->token_bytes + t->token_bytes_count;
    size_t slot = index_find(t, bytes, n);
    if (t->index_slots[slot] != 0) {
        return t->index_slots[slot] - 1;
    }
    uint32_t id = t->tokens_count++;
    t->tokens[id] = (token){bytes_prefix(bytes, n), t->token_bytes_count, id};
    t->lengths[id] = (uint32_t)n;
    t->token_bytes_count += n;
    t->index_slots[slot] = id + 1;
    return id;
}

/* The token of left + right. */
static int token_concat(pybpe_trainer *t, uint32_t left, uint32_t right, uint32_t *merged, pybpe_error *err) {
    size_t n = (size_t)t->lengths[left] + t->lengths[right];
    int code = token_bytes_room(t, n, err);
    if (code == PYBPE_OK) {
        code = tokens_room(t, err);
    }
    if (code != PYBPE_OK) {
        return code;
    }
    uint8_t *to = t->token_bytes + t->token_bytes_count;
    memcpy(to, t->token_bytes + t->tokens[left].offset, t->lengths[left]);
    memcpy(to + t->lengths[left], t->token_bytes + t->tokens[right].offset, t->lengths[right]);
    *merged = token_intern(t, n);
    return PYBPE_OK;
}

/* Hugging Face numbers the bytes by the character that stands for each: those that are printable in Latin-1
   come first, in their order, then the other 68 (GPT-2's bytes_to_unicode). */
static bool byte_is_printable(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

static int tokens_init(pybpe_trainer *t, pybpe_error *err) {
    int code = tokens_room(t, err);
    if (code == PYBPE_OK) {
        code = token_bytes_room(t, 256, err);
    }
    if (code != PYBPE_OK) {
        return code;
    }
    uint32_t printable = 0, other = 188; /* 188 bytes are printable */
    for (unsigned byte = 0; byte < 256; byte++) {
        t->token_bytes[t->token_bytes_count] = (uint8_t)byte;
        uint32_t id = token_intern(t, 1);
        t->tokens[id].order = byte_is_printable(byte) ? printable++ : other++;
    }
    return PYBPE_OK;
}

/* ---------------------------------------------------------------------------------------------------
Ties
*/

static int token_compare(const pybpe_trainer *t, uint32_t x, uint32_t y) {
    const token *a = &t->tokens[x], *b = &t->tokens[y];
    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix ? -1 : 1;
    }
    uint32_t n = t->lengths[x], m = t->lengths[y];
    int order = memcmp(t->token_bytes + a->offset, t->token_bytes + b->offset, n < m ? n : m);
    return order != 0 ? order : (n > m) - (n < m);
}

static bool order_lexicographic(const void *context, const pair *x, const pair *y) {
    const pybpe_trainer *t = context;
    int order = x->left == y->left ? 0 : token_compare(t, x->left, y->left);
    return order != 0 ? order > 0 : token_compare(t, x->right, y->right) > 0;
}

static bool order_huggingface(const void *context, const pair *x, const pair *y) {
    const pybpe_trainer *t = context;
    return x->left != y->left ? t->tokens[x->left].order < t->tokens[y->left].order
                              : t->tokens[x->right].order < t->tokens[y->right].order;
}

/* ---------------------------------------------------------------------------------------------------
Laying out the words
*/

enum { SMALL_COUNTS = 1 << 16 };

typedef struct counted_word {
    uint64_t count;
    uint32_t word;
} counted_word;

static int counted_word_compare(const void *x, const void *y) {
    const counted_word *a = x, *b = y;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : (a->word > b->word) - (a->word < b->word);
}

static uint64_t word_length(const pybpe_strings *words, size_t i) { return words->offsets[i + 1] - words->offsets[i]; }

/* A word of one byte has no pair, one that never occurs no weight: neither is laid out. */
static bool word_matters(const pybpe_strings *words, const uint64_t *counts, size_t i) {
    return counts[i] > 0 && word_length(words, i) > 1;
}

/* What the words need, checked: slots, and that no sum of counts can overflow. */
static int words_measure(const pybpe_strings *words, const uint64_t *counts, uint64_t *slots, size_t *used,
                         pybpe_error *err) {
    uint64_t weight = 0;
    *slots = 1;
    *used = 0;
    for (size_t i = 0; i < words->count; i++) {
        if (!word_matters(words, counts, i)) {
            continue;
        }
        uint64_t pairs;
        if (__builtin_mul_overflow(counts[i], word_length(words, i), &pairs) ||
            __builtin_add_overflow(weight, pairs, &weight)) {
            return error_set(err, PYBPE_ERR_LIMIT, i, "word counts are too large: their sum by bytes passes 2^64");
        }
        *slots += word_length(words, i) + 1;
        *used += 1;
    }
    if (*slots >= HOLE || words->count >= HOLE) {
        return error_set(err, PYBPE_ERR_LIMIT, 0,
                         "%llu bytes of distinct words are too many to train on, 4 GiB the most: train on a sample of "
                         "the corpus, or drop the words that occur once",
                         (unsigned long long)*slots);
    }
    return PYBPE_OK;
}

/* The words that matter, by descending count: counting sort for small counts, which nearly all are. */
static int words_sort(const pybpe_strings *words, const uint64_t *counts, counted_word *sorted, size_t used,
                      const pybpe_allocator *mem, pybpe_error *err) {
    uint32_t *starts = mem_alloc_zeroed(mem, SMALL_COUNTS + 1, sizeof *starts);
    if (starts == NULL) {
        return error_set_memory(err, "the sorting of words", (SMALL_COUNTS + 1) * sizeof *starts);
    }
    for (size_t i = 0; i < words->count; i++) {
        if (word_matters(words, counts, i) && counts[i] < SMALL_COUNTS) {
            starts[counts[i]] += 1;
        }
    }
    uint32_t end = (uint32_t)used;
    for (size_t count = 1; count < SMALL_COUNTS; count++) { /* the rarest words end the list */
        end -= starts[count];
        starts[count] = end;
    }
    size_t large = 0;
    for (size_t i = 0; i < words->count; i++) {
        if (word_matters(words, counts, i)) {
            size_t at = counts[i] < SMALL_COUNTS ? starts[counts[i]]++ : large++;
            sorted[at] = (counted_word){counts[i], (uint32_t)i};
        }
    }
    mem_free(mem, starts);
    qsort(sorted, large, sizeof *sorted, counted_word_compare);
    return PYBPE_OK;
}

/* Writes one token of the layout. */
static void slots_write(uint32_t *ids, uint32_t id, uint32_t length) {
    ids[0] = id;
    for (uint32_t i = 1; i + 1 < length; i++) {
        ids[i] = HOLE;
    }
    ids[length - 1] = id;
}

/* Lays out one word as the base merges leave it, or as bytes if there are none. */
static int word_lay_out(pybpe_trainer *t, const uint8_t *word, size_t n, uint32_t *to, const merge_table *base,
                        merge_scratch *scratch, pybpe_error *err) {
    if (base == NULL) {
        for (size_t i = 0; i < n; i++) {
            to[i] = word[i];
        }
        return PYBPE_OK;
    }
    uint32_t short_ids[MERGE_SHORT_MAX];
    const uint32_t *merged = short_ids;
    size_t count;
    if (n <= MERGE_SHORT_MAX) {
        count = merge_short(base, word, n, short_ids);
    } else {
        int code = merge_long(base, scratch, word, n, &count, &t->mem, err);
        if (code != PYBPE_OK) {
            return code;
        }
        merged = scratch->ids;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t length = t->lengths[merged[i]];
        slots_write(to, merged[i], length);
        to += length;
    }
    return PYBPE_OK;
}

static int runs_fill(pybpe_trainer *t, const counted_word *sorted, size_t used, const pybpe_strings *words,
                     pybpe_error *err) {
    size_t runs = 1;
    for (size_t i = 0; i < used; i++) {
        runs += i == 0 || sorted[i].count != sorted[i - 1].count;
    }
    t->runs = mem_alloc_array(&t->mem, runs, sizeof *t->runs);
    if (t->runs == NULL) {
        return error_set_memory(err, "the counts of words", runs * sizeof *t->runs);
    }
    uint32_t at = 1;
    for (size_t i = 0; i < used; i++) {
        if (i == 0 || sorted[i].count != sorted[i - 1].count) {
            t->runs[t->runs_count++] = (run){at, sorted[i].count};
        }
        at += (uint32_t)word_length(words, sorted[i].word) + 1;
    }
    t->runs[t->runs_count] = (run){at, 0};
    return PYBPE_OK;
}

static int layout_fill(pybpe_trainer *t, const counted_word *sorted, size_t used, const pybpe_strings *words,
                       const merge_table *base, pybpe_error *err) {
    merge_scratch scratch = {0};
    uint32_t *to = t->ids;
    *to++ = SEP;
    int code = PYBPE_OK;
    for (size_t i = 0; i < used && code == PYBPE_OK; i++) {
        size_t n = (size_t)word_length(words, sorted[i].word);
        code = word_lay_out(t, words->bytes + words->offsets[sorted[i].word], n, to, base, &scratch, err);
        to += n;
        *to++ = SEP;
    }
    merge_scratch_free(&scratch, &t->mem);
    return code;
}

static int words_lay_out(pybpe_trainer *t, const pybpe_strings *words, const uint64_t *counts, const merge_table *base,
                         pybpe_error *err) {
    uint64_t slots;
    size_t used;
    int code = words_measure(words, counts, &slots, &used, err);
    if (code != PYBPE_OK) {
        return code;
    }
    counted_word *sorted = mem_alloc_array(&t->mem, used + 1, sizeof *sorted);
    if (sorted == NULL || !mem_table_alloc(&t->ids_table, &t->mem, (size_t)slots, sizeof *t->ids)) {
        mem_free(&t->mem, sorted);
        return error_set_memory(err, "the words of a training", (size_t)slots * sizeof *t->ids);
    }
    t->ids = t->ids_table.data;
    t->slots = (uint32_t)slots;
    code = words_sort(words, counts, sorted, used, &t->mem, err);
    if (code == PYBPE_OK) {
        code = runs_fill(t, sorted, used, words, err);
    }
    if (code == PYBPE_OK) {
        code = layout_fill(t, sorted, used, words, base, err);
    }
    mem_free(&t->mem, sorted);
    return code;
}

/* ---------------------------------------------------------------------------------------------------
Scanning: all pairs that occur at least `threshold` times, with their places
*/

static bool pair_is_short(const pybpe_trainer *t, uint32_t left, uint32_t right) {
    return (uint64_t)t->lengths[left] + t->lengths[right] <= t->max_token_length;
}

static inline uint32_t *filter_cell(const pybpe_trainer *t, uint32_t left, uint32_t right) {
    uint64_t product = ((uint64_t)left << 32 | right) * (t->seed.a | 1);
    return &t->filter[(size_t)(product >> 40) & t->filter_mask];
}

static inline uint32_t saturate(uint64_t x) { return x < UINT32_MAX ? (uint32_t)x : UINT32_MAX; }

/* Two neighbouring tokens, met by the scan. */
typedef struct adjacency {
    uint32_t at, left, right;
    uint32_t *cell;
    uint64_t weight;
} adjacency;

/* Collects the next adjacencies and asks the processor to fetch their cells, which lie all over the filter. */
static size_t scan_gather(pybpe_trainer *t, adjacency batch[SCAN_BATCH]) {
    const uint32_t *ids = t->ids;
    const uint32_t *lengths = t->lengths;
    uint32_t at = t->scan_at;
    size_t count = 0;
    while (at < t->slots && count < SCAN_BATCH) {
        uint32_t left = ids[at], next = at + lengths[left], right = ids[next];
        if (right != SEP) {
            uint32_t *cell = filter_cell(t, left, right);
            PYBPE_PREFETCH(cell);
            batch[count++] = (adjacency){at, left, right, cell, t->runs[t->scan_run].weight};
            at = next;
        } else {
            at = next + 1;
            t->scan_run += at >= t->runs[t->scan_run + 1].start && t->scan_run + 1 < t->runs_count;
        }
    }
    t->scan_at = at;
    return count;
}

static void scan_filter(const adjacency *batch, size_t count) {
    for (size_t i = 0; i < count; i++) {
        *batch[i].cell = saturate(*batch[i].cell + (uint64_t)saturate(batch[i].weight));
    }
}

/* Keeps the adjacencies whose cells reach the threshold, and fetches the slots of their pairs. */
static size_t scan_select(pybpe_trainer *t, adjacency *batch, size_t count) {
    const uint32_t threshold = saturate(t->threshold);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (*batch[i].cell >= threshold) {
            batch[kept++] = batch[i];
            pair_table_prefetch(&t->pairs, batch[i].left, batch[i].right);
        }
    }
    return kept;
}

static int scan_count(pybpe_trainer *t, const adjacency *batch, size_t count, pybpe_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (!pair_is_short(t, batch[i].left, batch[i].right)) {
            continue;
        }
        uint32_t index;
        int code = pair_table_add(&t->pairs, batch[i].left, batch[i].right, &index, err);
        if (code != PYBPE_OK) {
            return code;
        }
        t->pairs.pairs[index].count += batch[i].weight;
        t->pairs.pairs[index].places_count += 1;
    }
    return PYBPE_OK;
}

static void scan_note_places(pybpe_trainer *t, const adjacency *batch, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t index = pair_table_find(&t->pairs, batch[i].left, batch[i].right);
        if (index != PAIR_NONE && t->pairs.pairs[index].places != NULL) {
            pair *p = &t->pairs.pairs[index];
            p->places[p->places_count++] = batch[i].at;
        }
    }
}

/* Goes on with the scan of the current stage, about `*budget` adjacencies far. */
static int scan_walk(pybpe_trainer *t, size_t *budget, pybpe_error *err) {
    adjacency batch[SCAN_BATCH];
    int code = PYBPE_OK;
    while (t->scan_at < t->slots && *budget > 0 && code == PYBPE_OK) {
        size_t count = scan_gather(t, batch);
        *budget -= count < *budget ? count : *budget;
        if (t->stage == STAGE_FILTER) {
            scan_filter(batch, count);
            continue;
        }
        count = scan_select(t, batch, count);
        if (t->stage == STAGE_COUNT) {
            code = scan_count(t, batch, count, err);
        } else {
            scan_note_places(t, batch, count);
        }
    }
    return code;
}

static void scan_rewind(pybpe_trainer *t, train_stage stage) {
    t->stage = stage;
    t->scan_at = 1;
    t->scan_run = 0;
}

/* Starts a scan for the pairs above the threshold, or, with `lower`, above a new one. */
static int scan_start(pybpe_trainer *t, bool lower, pybpe_error *err) {
    pair_table_clear(&t->pairs);
    t->lower_threshold = lower;
    /* Pairs of bytes are few: a filter of their number stays in the near caches. */
    const unsigned most = t->tokens_count == 256 ? 16 : FILTER_LOG2_MAX;
    unsigned log2_cells = 12;
    while (log2_cells < most && (size_t)1 << log2_cells < 2 * (size_t)t->slots) {
        log2_cells += 1;
    }
    t->filter_mask = ((size_t)1 << log2_cells) - 1;
    t->filter = mem_alloc_zeroed(&t->mem, t->filter_mask + 1, sizeof *t->filter);
    if (t->filter == NULL) {
        return error_set_memory(err, "the counting of pairs", (t->filter_mask + 1) * sizeof *t->filter);
    }
    scan_rewind(t, STAGE_FILTER);
    return PYBPE_OK;
}

/* The threshold after the filter has seen all pairs: a fraction of the largest cell, which is at least the
   count of the best pair. */
static void threshold_choose(pybpe_trainer *t) {
    uint32_t largest = 0;
    for (size_t i = 0; i <= t->filter_mask; i++) {
        largest = t->filter[i] > largest ? t->filter[i] : largest;
    }
    uint64_t lower = largest / THRESHOLD_STEP;
    if (t->threshold > 0 && t->threshold / THRESHOLD_STEP < lower) {
        lower = t->threshold / THRESHOLD_STEP;
    }
    t->threshold = lower > t->min_frequency ? lower : t->min_frequency;
}

/* Gives each pair that was counted its list, and puts it into the heap. */
static int scan_allocate(pybpe_trainer *t, pybpe_error *err) {
    for (size_t i = 0; i < t->pairs.count; i++) {
        pair *p = &t->pairs.pairs[i];
        uint32_t n = p->places_count;
        p->places_count = 0;
        if (p->count < t->threshold) {
            continue;
        }
        int code = pair_places_alloc(&t->pairs, (uint32_t)i, n, err);
        if (code == PYBPE_OK) {
            code = pair_heap_push(&t->pairs, (uint32_t)i, err);
        }
        if (code != PYBPE_OK) {
            return code;
        }
    }
    return PYBPE_OK;
}

/* Works on the scan; goes to the next stage when one is complete. */
static int scan_step(pybpe_trainer *t, size_t *budget, pybpe_error *err) {
    int code = scan_walk(t, budget, err);
    if (code != PYBPE_OK || t->scan_at < t->slots) {
        return code;
    }
    if (t->stage == STAGE_FILTER) {
        if (t->lower_threshold) {
            threshold_choose(t);
        }
        scan_rewind(t, STAGE_COUNT);
    } else if (t->stage == STAGE_COUNT) {
        code = scan_allocate(t, err);
        scan_rewind(t, STAGE_PLACES);
    } else {
        mem_free(&t->mem, t->filter);
        t->filter = NULL;
        t->stage = STAGE_MERGE;
    }
    return code;
}

/* ---------------------------------------------------------------------------------------------------
Merging
*/

static inline void side_add(side *s, uint32_t id, uint64_t weight) {
    neighbour *n = &s->by_token[id];
    if (n->places_count == 0) {
        s->touched[s->touched_count++] = id;
    }
    n->weight += weight;
    n->places_count += 1;
}

static void side_clear(side *s) {
    for (size_t i = 0; i < s->touched_count; i++) {
        s->by_token[s->touched[i]] = (neighbour){0};
    }
    s->touched_count = 0;
}

/* The run of a position, at or after run `from`: the same one mostly, else found by halving. */
static size_t run_seek(const pybpe_trainer *t, size_t from, uint32_t at) {
    if (at < t->runs[from + 1].start) {
        return from;
    }
    size_t low = from + 1, high = t->runs_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (t->runs[middle].start <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Rewrites the live places of a pair and sums up their neighbours. Outdated places are dropped from the
   list. */
static void merge_rewrite(pybpe_trainer *t, pair *p, uint32_t merged) {
    uint32_t *ids = t->ids;
    const uint32_t left_length = t->lengths[p->left], right_length = t->lengths[p->right];
    uint32_t live = 0;
    size_t in_run = 0;
    for (uint32_t i = 0; i < p->places_count; i++) {
        if (i + PREFETCH_PLACES < p->places_count) {
            PYBPE_PREFETCH(&ids[p->places[i + PREFETCH_PLACES]]);
        }
        uint32_t at = p->places[i], middle = at + left_length, end = middle + right_length;
        if (ids[at] != p->left || ids[middle] != p->right) {
            continue;
        }
        p->places[live++] = at;
        in_run = run_seek(t, in_run, at);
        uint64_t weight = t->runs[in_run].weight;
        ids[middle - 1] = HOLE;
        ids[middle] = HOLE;
        ids[at] = merged;
        ids[end - 1] = merged;
        if (ids[at - 1] != SEP) {
            side_add(&t->left, ids[at - 1], weight);
        }
        if (ids[end] != SEP) {
            side_add(&t->right, ids[end], weight);
        }
    }
    p->places_count = live;
}

static void pair_lower(pybpe_trainer *t, uint32_t left, uint32_t right, uint64_t weight) {
    uint32_t index = pair_table_find(&t->pairs, left, right);
    if (index != PAIR_NONE) {
        t->pairs.pairs[index].count -= weight;
    }
}

/* Adds a new pair with a list of its size if it is frequent enough; *places is where to write the list. */
static int pair_raise(pybpe_trainer *t, uint32_t left, uint32_t right, neighbour *n, uint32_t *kept, pybpe_error *err) {
    if (n->weight < t->threshold || !pair_is_short(t, left, right)) {
        return PYBPE_OK;
    }
    uint32_t index;
    int code = pair_table_add(&t->pairs, left, right, &index, err);
    if (code == PYBPE_OK) {
        code = pair_places_alloc(&t->pairs, index, n->places_count, err);
    }
    if (code == PYBPE_OK) {
        pair *p = &t->pairs.pairs[index];
        p->count = n->weight;
        p->places_count = n->places_count;
        n->places = p->places;
        *kept += 1;
        code = pair_heap_push(&t->pairs, index, err);
    }
    return code;
}

/* Changes the counts of the pairs around a merge (a, b) -> c, and makes those of c. */
static int merge_recount(pybpe_trainer *t, uint32_t a, uint32_t b, uint32_t c, uint32_t *kept, pybpe_error *err) {
    int code = PYBPE_OK;
    /* Where c follows c, the right neighbour of the first was still a. */
    neighbour *twice = &t->left.by_token[c];
    for (size_t i = 0; i < t->right.touched_count && code == PYBPE_OK; i++) {
        uint32_t r = t->right.touched[i];
        neighbour *n = &t->right.by_token[r];
        pair_lower(t, b, r, n->weight);
        if (r == a) {
            n->weight -= twice->weight;
            n->places_count -= twice->places_count;
        }
        if (n->places_count > 0) {
            code = pair_raise(t, c, r, n, kept, err);
        }
    }
    for (size_t i = 0; i < t->left.touched_count && code == PYBPE_OK; i++) {
        uint32_t l = t->left.touched[i];
        if (l != c) {
            pair_lower(t, l, a, t->left.by_token[l].weight);
        }
        code = pair_raise(t, l, c, &t->left.by_token[l], kept, err);
    }
    return code;
}

/* Writes the lists of the new pairs: the neighbours are read again, now that all places are rewritten. */
static void merge_note_places(pybpe_trainer *t, const uint32_t *places, uint32_t count, uint32_t c) {
    const uint32_t *ids = t->ids;
    const uint32_t length = t->lengths[c];
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_PLACES < count) {
            PYBPE_PREFETCH(&ids[places[i + PREFETCH_PLACES]]);
        }
        uint32_t at = places[i], l = ids[at - 1], r = ids[at + length];
        if (l != SEP && t->left.by_token[l].places != NULL) {
            *t->left.by_token[l].places++ = at - t->lengths[l];
        }
        if (r != SEP && r != c && t->right.by_token[r].places != NULL) { /* (c, c) is noted from its right */
            *t->right.by_token[r].places++ = at;
        }
    }
}

static int merges_append(pybpe_trainer *t, uint32_t left, uint32_t right, uint32_t merged, pybpe_error *err) {
    if (t->merges_count == t->merges_cap) {
        size_t cap = t->merges_cap == 0 ? 1024 : 2 * t->merges_cap;
        uint32_t *merges = mem_resize_array(&t->mem, t->merges, cap, 3 * sizeof *merges);
        if (merges == NULL) {
            return error_set_memory(err, "the merges", cap * 3 * sizeof *merges);
        }
        t->merges = merges;
        t->merges_cap = cap;
    }
    uint32_t *to = t->merges + 3 * t->merges_count++;
    to[0] = left;
    to[1] = right;
    to[2] = merged;
    return PYBPE_OK;
}

/* Merges one pair everywhere. */
static int merge_pair(pybpe_trainer *t, uint32_t index, pybpe_error *err) {
    uint32_t a = t->pairs.pairs[index].left, b = t->pairs.pairs[index].right, c;
    uint32_t tokens_before = t->tokens_count;
    int code = token_concat(t, a, b, &c, err);
    if (code == PYBPE_OK) {
        code = merges_append(t, a, b, c, err);
    }
    if (code != PYBPE_OK) {
        return code;
    }
    merge_rewrite(t, &t->pairs.pairs[index], c);
    if (t->tokens_count == tokens_before) { /* an existing token: its pairs may have risen */
        side_clear(&t->left);
        side_clear(&t->right);
        return scan_start(t, false, err);
    }
    uint32_t kept = 0;
    code = merge_recount(t, a, b, c, &kept, err);
    if (code == PYBPE_OK && kept > 0) {
        const pair *p = &t->pairs.pairs[index];
        merge_note_places(t, p->places, p->places_count, c);
    }
    side_clear(&t->left);
    side_clear(&t->right);
    t->pairs.pairs[index].count = 0;
    pair_places_free(&t->pairs, index);
    return code;
}

/* ---------------------------------------------------------------------------------------------------
Public
*/

static int base_apply(pybpe_trainer *t, const pybpe_train_config *config, merge_table *base, pybpe_error *err) {
    uint32_t byte_ids[256];
    for (uint32_t i = 0; i < 256; i++) {
        byte_ids[i] = i;
    }
    size_t count = config->base_merges_count;
    int code = merge_table_new(base, 256 + count, count, byte_ids, &t->mem, err);
    for (size_t i = 0; i < count && code == PYBPE_OK; i++) {
        uint32_t left = config->base_merges[2 * i], right = config->base_merges[2 * i + 1], merged;
        if (left >= t->tokens_count || right >= t->tokens_count) {
            return error_set(err, PYBPE_ERR_VALUE, i, "base merge %zu: tokens %u and %u must both exist before it", i,
                             left, right);
        }
        code = token_concat(t, left, right, &merged, err);
        if (code == PYBPE_OK) {
            code = merges_append(t, left, right, merged, err);
            merge_table_add(base, left, right, (uint32_t)i, merged);
            if (left < 256 && right < 256) {
                merge_table_add_bytes(base, (uint8_t)left, (uint8_t)right, (uint32_t)i);
            }
        }
    }
    return code;
}

static int config_check(const pybpe_train_config *config, pybpe_error *err) {
    if (config->vocab_size < 256) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "vocab_size %u is too small: the 256 bytes are always tokens",
                         config->vocab_size);
    }
    if (config->vocab_size >= HOLE / 2) {
        return error_set(err, PYBPE_ERR_LIMIT, 0, "vocab_size %u is too large", config->vocab_size);
    }
    if (config->max_token_length < 1) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "max_token_length must be at least 1");
    }
    if (config->tie_break != PYBPE_TIE_LEXICOGRAPHIC && config->tie_break != PYBPE_TIE_HUGGINGFACE) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "tie_break %d is not a pybpe_tie_break", config->tie_break);
    }
    return PYBPE_OK;
}

static int trainer_init(pybpe_trainer *t, const pybpe_strings *words, const uint64_t *counts,
                        const pybpe_train_config *config, pybpe_error *err) {
    pair_order *order = config->tie_break == PYBPE_TIE_HUGGINGFACE ? order_huggingface : order_lexicographic;
    int code = pair_table_init(&t->pairs, &t->mem, order, t, err);
    if (code == PYBPE_OK) {
        code = tokens_init(t, err);
    }
    merge_table base = {0};
    bool has_base = config->base_merges_count > 0;
    if (code == PYBPE_OK && has_base) {
        code = base_apply(t, config, &base, err);
    }
    if (code == PYBPE_OK) {
        code = words_lay_out(t, words, counts, has_base ? &base : NULL, err);
    }
    merge_table_free(&base, &t->mem);
    return code == PYBPE_OK ? scan_start(t, true, err) : code;
}

int pybpe_trainer_new(pybpe_trainer **out, const pybpe_strings *words, const uint64_t *counts,
                      const pybpe_train_config *config, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    int code = config_check(config, err);
    if (code != PYBPE_OK) {
        return code;
    }
    pybpe_trainer *t = mem_alloc_zeroed(mem, 1, sizeof *t);
    if (t == NULL) {
        return error_set_memory(err, "a trainer", sizeof *t);
    }
    t->mem = mem_of(mem);
    t->vocab_size = config->vocab_size;
    t->max_token_length = config->max_token_length;
    t->min_frequency = config->min_frequency > 0 ? config->min_frequency : 1;
    t->seed = hash_seed_draw();
    code = trainer_init(t, words, counts, config, err);
    if (code != PYBPE_OK) {
        pybpe_trainer_free(t);
        return code;
    }
    *out = t;
    return PYBPE_OK;
}

void pybpe_trainer_free(pybpe_trainer *t) {
    if (t == NULL) {
        return;
    }
    pybpe_allocator mem = t->mem;
    mem_table_free(&t->ids_table, &mem);
    mem_free(&mem, t->runs);
    mem_free(&mem, t->tokens);
    mem_free(&mem, t->lengths);
    mem_free(&mem, t->token_bytes);
    mem_free(&mem, t->index_slots);
    mem_free(&mem, t->left.by_token);
    mem_free(&mem, t->left.touched);
    mem_free(&mem, t->right.by_token);
    mem_free(&mem, t->right.touched);
    mem_free(&mem, t->merges);
    mem_free(&mem, t->filter);
    pair_table_free(&t->pairs);
    mem_free(&mem, t);
}

/* Merges the best pair, or lowers the threshold, or finds that nothing is left to do. */
static int merge_step(pybpe_trainer *t, size_t *budget, pybpe_error *err) {
    uint32_t index = pair_heap_pop(&t->pairs, t->threshold);
    if (index != PAIR_NONE) {
        size_t places = t->pairs.pairs[index].places_count;
        *budget -= places < *budget ? places : *budget;
        return merge_pair(t, index, err);
    }
    if (t->threshold <= t->min_frequency) {
        t->done = true;
        return PYBPE_OK;
    }
    return scan_start(t, true, err);
}

int pybpe_trainer_step(pybpe_trainer *t, size_t budget, int *done, pybpe_error *err) {
    int code = PYBPE_OK;
    budget = budget > 0 ? budget : 1;
    while (!t->done && budget > 0 && code == PYBPE_OK) {
        if (t->tokens_count >= t->vocab_size) {
            t->done = true;
        } else if (t->stage == STAGE_MERGE) {
            code = merge_step(t, &budget, err);
        } else {
            code = scan_step(t, &budget, err);
        }
    }
    if (code == PYBPE_OK) {
        *done = t->done;
    }
    return code;
}

size_t pybpe_trainer_merges(const pybpe_trainer *t, const uint32_t **merges) {
    *merges = t->merges;
    return t->merges_count;
}

uint32_t pybpe_trainer_tokens(const pybpe_trainer *t) { return t->tokens_count; }
