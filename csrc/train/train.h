/*
The inside of a trainer, for the modules train*.c. Internal. train.c explains how they work together.
*/
#ifndef PYBPE_TRAIN_H
#define PYBPE_TRAIN_H

#include "train/train_pairs.h"

#define TRAIN_SEP UINT32_C(0xFFFFFFFF)  /* a slot between words */
#define TRAIN_HOLE UINT32_C(0xFFFFFFFE) /* a slot inside a token */

/* The slots of all words. A slot holds its id plus 2, so that TRAIN_HOLE is 0 and TRAIN_SEP is 1 at any width. It has 2
   bytes if all ids fit, since slots take most of the memory of a training, and 4 bytes otherwise. */
typedef struct symbol_slots {
    void *data;
    int bytes;
} symbol_slots;

static inline uint32_t slot_get(symbol_slots s, size_t at) { return id_at(s.data, s.bytes, at) - 2; }

static inline void slot_set(symbol_slots s, size_t at, uint32_t id) {
    if (s.bytes == 2) {
        ((uint16_t *)s.data)[at] = (uint16_t)(id + 2);
    } else {
        ((uint32_t *)s.data)[at] = id + 2;
    }
}

static inline void slot_prefetch(symbol_slots s, size_t at) {
    PYBPE_PREFETCH((const uint8_t *)s.data + (s.bytes == 2 ? 2 : 4) * at);
}

/* One token. `order` is its position in the order that breaks ties by id. */
typedef struct token {
    uint64_t prefix; /* its first 8 bytes, the first one in the high bits, so that it compares as the bytes do */
    size_t offset;   /* in token_bytes */
    uint32_t length;
    uint32_t order;
} token;

/* Calls an inline function that takes the slots of t, t and other arguments. The compiler makes a copy per width,
   without a branch at every slot. */
#define SLOTS_CALL(function, t, ...)                                                                                   \
    ((t)->ids.bytes == 2 ? function((symbol_slots){(t)->ids.data, 2}, (t), __VA_ARGS__)                                \
                         : function((symbol_slots){(t)->ids.data, 4}, (t), __VA_ARGS__))

/* The facts about a token that the rules need (train_rules.c). */
typedef struct token_shape {
    uint32_t words; /* between spaces */
    bool starts_word : 1, ends_word : 1, ends_colon : 1;
    bool colon_space : 1; /* it contains ": " */
    bool whole : 1;       /* it is a sequence of whole characters */
} token_shape;

/* The neighbors on one side in the current merge, by token. */
typedef struct neighbor {
    uint64_t weight;
    uint32_t places_count;
    uint32_t slot;    /* in `touched`, if places_count > 0 */
    uint32_t *places; /* where the list of the new pair is written. NULL if it is not kept */
} neighbor;

typedef struct side {
    neighbor *by_token; /* all zero between merges */
    uint32_t *touched;  /* the tokens whose entries are not zero */
    uint64_t *counts;   /* of every touched token in every language, if there are languages: see train_parity.c */
    size_t touched_count;
} side;

/* The words of one text and one count are from `start` up to the next run's start. */
typedef struct run {
    uint32_t start;
    uint32_t text;   /* 0 if there is only one: see train_parity.c */
    uint64_t count;  /* of the words */
    uint64_t weight; /* the same. In parity-aware training, its share in the weight of a pair */
} run;

/* The words of a text, with their counts. */
typedef struct word_text {
    const pybpe_strings *words;
    const uint64_t *counts;
} word_text;

/* A language in parity-aware training. */
typedef struct parity_language {
    uint64_t tokens, size; /* of its development text. It costs tokens / size */
    uint64_t threshold;    /* all pairs that occur this often in its training text are in its heap */
    bool exhausted;        /* it has no such pair */
} parity_language;

/* A scan goes through COMPACT, then the two EXACT or the three FILTER stages, and can be interrupted anywhere. Then
   pairs are merged. */
typedef enum train_stage {
    STAGE_COMPACT,
    STAGE_EXACT_COUNT,
    STAGE_EXACT_PLACES,
    STAGE_FILTER,
    STAGE_FILTER_COUNT,
    STAGE_FILTER_PLACES,
    STAGE_MERGE
} train_stage;

/* The position of a scan, and its results. */
typedef struct train_scan {
    uint32_t at;             /* the slot where it continues */
    uint32_t to;             /* where STAGE_COMPACT writes */
    size_t run;              /* of `at` */
    bool lower;              /* whether it chooses a lower threshold */
    union exact_cell *cells; /* see train_scan_exact.c */
    uint32_t nowhere;        /* where unneeded places are written */
    uint32_t *filter;        /* hash of a pair -> the weight of all pairs with that hash, or UINT32_MAX */
    size_t filter_mask;
} train_scan;

struct pybpe_trainer {
    pybpe_allocator mem;
    uint32_t vocab_size, max_token_length;
    uint64_t min_frequency;
    uint32_t rules;
    bool huggingface_bytes; /* the bytes are numbered as in Hugging Face, otherwise by value */
    bool done;
    int failed; /* the code of an error in a step, or PYBPE_OK */

    mem_table ids_table;
    symbol_slots ids;
    uint32_t slots; /* in ids */
    run *runs;      /* a last one starts at `slots` */
    size_t runs_count;
    parity_language *languages; /* NULL in ordinary training */
    size_t languages_count;

    token *tokens;
    token_shape *shapes;
    uint32_t *spans; /* of tokens in slots. A separate array, because every step from token to token reads one */
    uint32_t tokens_count, tokens_cap;
    uint8_t *token_bytes;
    size_t token_bytes_count, token_bytes_cap;
    uint32_t *index_slots; /* bytes -> token + 1 */
    size_t index_mask;
    hash_seed seed;

    train_stage stage;
    train_scan scan;
    uint64_t threshold; /* of the weight of pairs, or 0 before the first scan */
    pair_table pairs;
    side left, right;
    uint32_t alias, alias_of; /* see train_merge.c. UINT32_MAX if there is none */
    uint32_t *merges;         /* (left, right, merged) */
    size_t merges_count, merges_cap;
};

/* train_rules.c: finds the facts about a token that the rules need. Whether the rules allow a merge. */
void train_shape_set(pybpe_trainer *t, uint32_t id);
bool train_rules_allow(const pybpe_trainer *t, uint32_t left, uint32_t right);

/* Whether a pair may be merged. */
static inline bool pair_is_allowed(const pybpe_trainer *t, uint32_t left, uint32_t right) {
    return (uint64_t)t->tokens[left].length + t->tokens[right].length <= t->max_token_length &&
           (t->rules == 0 || train_rules_allow(t, left, right));
}

/* train_tokens.c: adds the 256 bytes as tokens. Finds the token of left + right, a new one or one with the same
   bytes. */
int train_tokens_init(pybpe_trainer *t, pybpe_error *err);
int train_token_concat(pybpe_trainer *t, uint32_t left, uint32_t right, uint32_t *merged, pybpe_error *err);
void train_tokens_free(pybpe_trainer *t);

/* Which of two equally frequent pairs comes first. `context` is the trainer. */
bool order_lexicographic(const void *context, const pair *x, const pair *y);
bool order_ids(const void *context, const pair *x, const pair *y);

/* The numbers of the 256 bytes. */
void train_byte_order(const pybpe_trainer *t, uint32_t order[256]);

/* train_words.c: repeats the merges of the base. */
int train_base_apply(pybpe_trainer *t, const pybpe_train_config *config, pybpe_error *err);

/* Lays out the words of all texts as symbols, after the merges of the base, which train_base_apply has repeated. */
int train_words_lay_out(pybpe_trainer *t, const word_text *texts, size_t texts_count, const pybpe_train_config *config,
                        pybpe_error *err);

/* train_compact.c: compacts the symbols to one slot per token, about `*budget` of them per call. Returns true when that
   is done. */
bool train_compact(pybpe_trainer *t, size_t *budget);

/* train_scan.c: starts a scan for all pairs above the threshold, or, with `lower`, above a new one. Continues it for
   about `*budget` symbols. */
int train_scan_start(pybpe_trainer *t, bool lower, pybpe_error *err);
int train_scan_step(pybpe_trainer *t, size_t *budget, pybpe_error *err);
void train_scan_free(pybpe_trainer *t);

/* The two ways to scan. Both process sequences of symbols: the pairs (ids[at], ids[at + 1]) for from <= at < to, all of
   one weight. A pair with a separator does not count. */
typedef struct symbol_range {
    uint32_t from, to;
    uint64_t weight;
    const run *in;
} symbol_range;

/* train_scan_exact.c: a cell per pair of tokens, if they are few. */
bool exact_fits(const pybpe_trainer *t);
int exact_alloc(pybpe_trainer *t, pybpe_error *err);
void exact_count(pybpe_trainer *t, symbol_range s);
uint64_t exact_largest(const pybpe_trainer *t);
int exact_keep(pybpe_trainer *t, pybpe_error *err); /* the frequent pairs: lists for exact_note */
void exact_note(pybpe_trainer *t, symbol_range s);

/* train_scan_filter.c: cells that many pairs share, then a table of the pairs that may be frequent. */
int filter_alloc(pybpe_trainer *t, pybpe_error *err);
void filter_add(pybpe_trainer *t, symbol_range s);
uint64_t filter_largest(const pybpe_trainer *t); /* at least the count of the most frequent pair */

/* A count, as large as possible, that at least `cells` cells reach: about as many pairs do. 0 if there are less. */
uint64_t filter_reached_by(const pybpe_trainer *t, uint64_t cells);
int filter_count(pybpe_trainer *t, symbol_range s, pybpe_error *err);
int filter_keep(pybpe_trainer *t, pybpe_error *err);
void filter_note(pybpe_trainer *t, symbol_range s);

/* train_merge.c: adds a merge to the list of merges, and its token, or neither. */
int train_merge_add(pybpe_trainer *t, uint32_t left, uint32_t right, uint32_t *merged, pybpe_error *err);

/* Merges one pair everywhere. Sets *rescan if the merge spells an existing token: counts may have risen, so the caller
   must start a scan with the same threshold. */
int train_merge_pair(pybpe_trainer *t, uint32_t index, bool *rescan, pybpe_error *err);

#endif
