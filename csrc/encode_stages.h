/*
Encoding in two stages, for vocabularies with superwords. Internal. See encode_stages.c.
*/
#ifndef PYBPE_ENCODE_STAGES_H
#define PYBPE_ENCODE_STAGES_H

#include "encode.h"
#include "encode_cache.h"
#include "pretok_sequence.h"

enum { PART_LEFT = 1, PART_RIGHT = 2 };

/* Ids and ranks have up to 21 bits: see merge_table_new. */
enum { STAGES_ID_BITS = 21, STAGES_RANK_BITS = 22 };

struct encode_stages {
    pybpe_vocab vocab;     /* the encoder's, with the merges of stage 1 only; borrowed */
    pybpe_encoder *first;  /* encodes with it */
    pybpe_pretok *splits;  /* where units may end; any splitter gives the same ids */
    uint64_t *joints;      /* a Bloom filter: two bits in one word for each pair of tokens that stage 2 may join */
    unsigned joints_shift; /* 64 - log2(words of joints) - 12 */
    uint64_t *pairs;       /* of stage 2: left id, right id, rank; open addressing; all bits set in an empty slot */
    uint64_t pairs_factor; /* secret and odd: hashes by multiplication */
    size_t pairs_mask;     /* slots - 1 */
    unsigned pairs_shift;
    uint8_t *parts;   /* of each token: the PART_s that it can be in a merge of stage 2 */
    uint8_t *lengths; /* of each token, in bytes; 0 for more than 255 */
};

static inline uint64_t stages_key(uint32_t left, uint32_t right) { return (uint64_t)left << STAGES_ID_BITS | right; }

static inline size_t stages_slot(const encode_stages *s, uint32_t left, uint32_t right) {
    return (size_t)(stages_key(left, right) * s->pairs_factor >> s->pairs_shift);
}

/* The rank of a pair that stage 2 merges, or MERGE_NONE. */
static inline uint32_t stages_rank(const encode_stages *s, uint32_t left, uint32_t right) {
    const uint64_t key = stages_key(left, right);
    for (size_t i = stages_slot(s, left, right);; i = (i + 1) & s->pairs_mask) {
        uint64_t slot = s->pairs[i];
        if (slot >> STAGES_RANK_BITS == key) {
            return (uint32_t)slot & ((1U << STAGES_RANK_BITS) - 1);
        }
        if (slot == UINT64_MAX) {
            return MERGE_NONE;
        }
    }
}

/* The number of merges of stage 1; all of them if two stages would not help. */
size_t stages_first_merges(const pybpe_vocab *v);

/* Makes the stages of v, the first with `merges` merges. *out stays NULL if that would not be exact. */
int stages_new(encode_stages **out, const pybpe_vocab *v, size_t merges, const pybpe_allocator *mem, pybpe_error *err);
void stages_free(encode_stages *s, const pybpe_allocator *mem);

/* Ends of words or units, ascending. */
enum { STAGES_ENDS = 256, STAGES_UNITS = 1024 };
typedef struct stages_ends {
    const size_t *ends;
    size_t used, count;
} stages_ends;

/* A text that is encoded in two stages, block by block. */
typedef struct stages_scan {
    const pybpe_encoder *e;
    pybpe_cache *c;
    const uint8_t *text;
    size_t n;
    pybpe_error *err;
    bool has_words; /* from the caller */
    pretok_place words_place, splits_place;
    sequence_room room;
    stages_ends words, splits; /* words: of the vocabulary's pattern; no merge crosses their ends */
    size_t words_found[STAGES_ENDS], splits_found[STAGES_ENDS];
    size_t pos;                     /* up to here, stage 1 is done */
    size_t units[STAGES_UNITS];     /* their ends, from `pos` on */
    size_t word_ends[STAGES_UNITS]; /* those that end a word */
    size_t units_count, word_ends_count;
    size_t held_at, held; /* where the last phrase begins in c->stage_ids, which may continue; its tokens */
} stages_scan;

/* Starts with text[0..n), whose words are given; with NULL, the encoder's splitter finds them. */
void stages_start(stages_scan *scan, const pybpe_encoder *e, pybpe_cache *c, const uint8_t *text, size_t n,
                  const stages_ends *words, pybpe_error *err);

/* Encodes the next block. Its ids stay valid until the next call. Sets *more to false at the end of the text. */
int stages_next(stages_scan *scan, const uint32_t **ids, size_t *count, bool *more);
void stages_end(stages_scan *scan);

/* encode_phrase.c: merges a phrase of *count >= 2 tokens where it is, and sets *count to the number that remain. */
int phrase_merge(stages_scan *scan, uint32_t *ids, size_t *count);

/* Frees the buffer if only an exceptionally long word needed it. */
void stages_trim(pybpe_cache *c);

#endif
