/*
Encoding in two stages, for vocabularies with superwords. Internal. See encode_stages.c.
*/
#ifndef PYBPE_ENCODE_STAGES_H
#define PYBPE_ENCODE_STAGES_H

#include "encode/encode.h"
#include "encode/encode_cache.h"
#include "pretok/pretok.h"

enum { PART_LEFT = 1, PART_RIGHT = 2 };

/* A pair that stage 2 merges, in 64 bits: left id, right id, and its *order*: the rank, from the first one of stage 2
   on, then the PART_s of the token that the merge makes. Ids have up to 21 bits: see merge_table_new. */
enum { STAGES_ID_BITS = 21, STAGES_ORDER_BITS = 22, STAGES_PARTS_BITS = 2 };

#define ORDER_NONE UINT32_MAX /* of a pair that stage 2 does not merge */

struct encode_stages {
    pybpe_vocab vocab;     /* the encoder's, with the merges of stage 1 only, borrowed */
    pybpe_encoder *first;  /* encodes with it; encoder_divide makes it */
    pybpe_pretok *splits;  /* where units may end. Any splitter gives the same ids */
    uint64_t *joints;      /* a Bloom filter: two bits in one word for each pair: see stages_joint_has */
    unsigned joints_shift; /* 64 - log2(words of joints) - 12 */
    uint64_t *pairs; /* in buckets of two, filled from the front. A pair that has no room is in a later bucket. All
    bits are set in an empty slot */
    uint64_t pairs_factor; /* secret and odd: hashes by multiplication */
    size_t pairs_mask;     /* buckets - 1 */
    unsigned pairs_shift;
    uint32_t first_rank; /* of stage 2 */
};

static inline uint64_t stages_joint_index(const encode_stages *s, uint32_t a, uint32_t b) {
    return ((uint64_t)a << 32 | b) * UINT64_C(0x9E3779B97F4A7C15) >> s->joints_shift; /* as in boundary.h */
}

/* Whether a merge of stage 2 may join two parts, if the left one ends with a, or is a, and the right one begins with b,
   or is b. At least one of a and b is a token of stage 1. */
static inline bool stages_joint_has(const encode_stages *s, uint32_t a, uint32_t b) {
    uint64_t index = stages_joint_index(s, a, b);
    uint64_t bits = s->joints[index >> 12];
    return (bits >> (index & 63) & bits >> (index >> 6 & 63) & 1) != 0;
}

static inline uint64_t stages_key(uint32_t left, uint32_t right) { return (uint64_t)left << STAGES_ID_BITS | right; }

static inline size_t stages_bucket(const encode_stages *s, uint64_t key) {
    return (size_t)(key * s->pairs_factor >> s->pairs_shift);
}

/* The slot of a pair, or an empty one. */
static inline uint64_t *stages_slot(const encode_stages *s, uint64_t key) {
    size_t i = 2 * stages_bucket(s, key);
    while (s->pairs[i] != UINT64_MAX && s->pairs[i] >> STAGES_ORDER_BITS != key) {
        i = (i + 1) & (2 * s->pairs_mask + 1);
    }
    return &s->pairs[i];
}

static inline uint32_t order_rank(uint32_t order) { return order >> STAGES_PARTS_BITS; }

static inline unsigned order_parts(uint32_t order) { return order & (PART_LEFT | PART_RIGHT); }

/* The token that the merge of this order makes. */
static inline uint32_t stages_result(const encode_stages *s, const merge_table *t, uint32_t order) {
    return merge_result(t, s->first_rank + order_rank(order));
}

/* The number of merges of stage 1. All of them if two stages would not help. */
size_t stages_first_merges(const pybpe_vocab *v);

/* Makes the stages of v, the first with `merges` merges. *out stays NULL if that would not be exact. Its encoder
   of stage 1 is left out. */
int stages_new(encode_stages **out, const pybpe_vocab *v, size_t merges, const pybpe_allocator *mem, pybpe_error *err);
void stages_free(encode_stages *s, const pybpe_allocator *mem);

/* encode_new.c: divides the merges of an encoder into stages, the first with `merges` merges, if that is exact, removes
   the stages. */
int encoder_divide(pybpe_encoder *e, size_t merges, pybpe_error *err);
void encoder_unite(pybpe_encoder *e);

/* Ends of words or of places where units may end, ascending. */
enum { STAGES_ENDS = 256, STAGES_UNITS = 1024 };
typedef struct stages_ends {
    const size_t *ends;
    size_t used, count;
} stages_ends;

/* The units of a block. */
typedef struct stages_units {
    size_t ends[STAGES_UNITS]; /* from the start of the block on */
    size_t count;
    size_t words[STAGES_UNITS];      /* how many units there are up to the end of each word */
    uint64_t word_ids[STAGES_UNITS]; /* and how many ids, with those that are held */
    size_t words_count;
} stages_units;

/* A text that is encoded in two stages, block by block. */
typedef struct stages_scan {
    const pybpe_encoder *e;
    pybpe_cache *c;
    const uint8_t *text;
    size_t n;
    pybpe_error *err;
    pretok_place words_place, splits_place;
    sequence_room room;
    stages_ends words, splits; /* words: of the vocabulary's pattern. No merge crosses their ends */
    size_t words_found[STAGES_ENDS], splits_found[STAGES_ENDS];
    size_t pos; /* up to here, stage 1 is done */
    stages_units units;
    size_t held_at, held; /* where the last phrase begins in c->stage_ids, which may continue, and its tokens */
} stages_scan;

/* Starts with text[0..n), whose words are given. With NULL, the encoder's splitter finds them. */
void stages_start(stages_scan *scan, const pybpe_encoder *e, pybpe_cache *c, const uint8_t *text, size_t n,
                  const stages_ends *words, pybpe_error *err);

/* Encodes the next block. Its ids stay valid until the next call. Sets *more to false at the end of the text. */
int stages_next(stages_scan *scan, const uint32_t **ids, size_t *count, bool *more);
void stages_end(stages_scan *scan);

/* encode_units.c: stage 1 of the units of a block. Writes their ids after those that are held, and sets the units' word_ids
   and *total, the number of all these ids. There is room. */
int stages_encode_units(stages_scan *scan, size_t held, size_t *total);

/* The ids of a block in stage 2 (encode_phrase.c). */
typedef struct stages_block {
    uint32_t *ids;                     /* of stage 1, overwritten */
    size_t total;                      /* of these */
    size_t from;                       /* where the next phrase begins in `ids` */
    size_t known;                      /* up to here, they continue that phrase */
    bool closed;                       /* no phrase continues after the block */
    const uint64_t *words, *words_end; /* where words end in `ids` */
    uint32_t *out;
    size_t count; /* of ids in `out` */
} stages_block;

/* Divides the ids into phrases and merges each. If the block is not closed, leaves the last phrase, from `from` on. */
int stages_merge(stages_scan *scan, stages_block *b);

#endif
