/*
A text while it is encoded, for encode.c and encode_units.c. Internal.
*/
#ifndef PYBPE_ENCODE_WORK_H
#define PYBPE_ENCODE_WORK_H

#include "encode/encode.h"
#include "encode/encode_sink.h"

enum { BATCH_WORDS = 256, BATCH_UNITS = 512, UNITS_AHEAD = 16 };

/* The state of encoding a text, or several. A unit of up to 15 bytes is represented by its key. A longer one is
   {address, length}. It never equals a key, because its length is below 2^55 and a key has its own length in the bits
   above. The id of a special is {id, ID_UNIT}, which is a longer length. */
typedef struct encode_work {
    const pybpe_encoder *e;
    pybpe_cache *c;
    const uint8_t *text;
    const uint8_t *end; /* of the text */
    size_t before;      /* bytes of earlier texts */
    size_t size;        /* bytes of all texts */
    size_t cap;         /* the number of ids for which there is room */
    pybpe_error *err;
    int code; /* the first error. Later units are dropped */
    id_sink sink;
    size_t count;                                /* of units */
    size_t new_tokens;                           /* words of this batch that were not in the cache and are one token */
    uint64_t los[BATCH_UNITS], his[BATCH_UNITS]; /* the keys. Separate arrays, because gcc would join the halves
    inefficiently */
    cache_slot *sets[BATCH_UNITS + UNITS_AHEAD]; /* those after the last unit are only prefetched */
    uint64_t *ends;               /* where to store how many ids the next text of pybpe_encode_batch ends at */
    size_t ended;                 /* texts that end in this batch of units */
    size_t ended_at[BATCH_UNITS]; /* the number of units up to the end of each */
} encode_work;

/* The caller's buffer for ids, of id_bytes. `ids` is NULL if they are only counted. */
typedef struct id_buffer {
    void *ids;
    int id_bytes;
    size_t cap;
} id_buffer;

/* Begins with texts of n bytes. There must be room for as many ids. */
void work_begin(encode_work *work, const pybpe_encoder *e, pybpe_cache *c, size_t n, id_buffer to, pybpe_error *err);

/* Returns the first error, or sets *count to the number of ids. */
int work_finish(encode_work *work, size_t *count);

/* Begins a text. Units of the batch may still refer to earlier ones. */
void text_begin(encode_work *work, const uint8_t *text, size_t n);

/* Ends a text. A batch of units may contain several short texts, so that their slots, too, have time to arrive. */
void text_end(encode_work *work);

/* Whether every byte has a token, otherwise sets the error. */
bool text_is_known(encode_work *work, const uint8_t *text, size_t n);

/* Adds any number of words, from text + from to the ends. */
void words_add_all(encode_work *work, const uint8_t *text, size_t from, const size_t *ends, size_t words);

/* The same for up to BATCH_WORDS words that are already cut at hard boundaries, except at those between ASCII
   characters. */
void words_add_cut(encode_work *work, const uint8_t *text, size_t from, const size_t *ends, size_t words);

/* The same for up to BATCH_WORDS words and a vocabulary with tokens that only match a whole word. */
void words_add_whole_tokens(encode_work *work, const uint8_t *text, size_t from, const size_t *ends, size_t words);

/* Adds an id as it is, for a special. */
void id_add(encode_work *work, uint32_t id);

/* Writes the ids of all units of the batch. */
void units_flush(encode_work *work);

#endif
