/*
The inside of a vocabulary, for decode.c and encode.c. Internal.
*/
#ifndef PYBPE_VOCAB_H
#define PYBPE_VOCAB_H

#include "base/base.h"
#include "hash/hash.h"
#include "json/json.h"

/* This many readable zeros follow the last token, so that a token can be copied as 16 bytes at once. */
enum { VOCAB_PADDING = 16 };

/* bytes -> id, open addressing. The low bits of a slot hold id + 1. The others are bits of the token's hash, in which
   most other tokens differ. 0 is empty. At most half of the slots are taken. */
typedef struct token_index {
    uint32_t *slots;
    size_t mask;      /* slots - 1 */
    uint32_t id_mask; /* the low bits */
} token_index;

/* A token as decoding copies it: 16 bytes at once. The first `length` count, and zeros follow, as in a word_key. */
enum { RECORD_MAX = WORD_INLINE_MAX, RECORD_NONE = 128 };
typedef struct token_record {
    uint8_t bytes[RECORD_MAX];
    uint8_t length; /* RECORD_NONE: the id is unused, or its token is longer */
} token_record;

static inline bool record_is(const token_record *r, word_key word) {
    return word_key_equal((word_key){load_u64(r->bytes), load_u64((const uint8_t *)r + 8)}, word);
}

struct pybpe_vocab {
    pybpe_allocator mem;
    uint8_t *bytes;        /* all tokens end to end, then VOCAB_PADDING zeros */
    uint64_t *offsets;     /* count + 1: token id is bytes[offsets[id]..offsets[id + 1]) */
    token_record *records; /* count + 1: the last one represents all ids outside the vocabulary */
    uint8_t *lengths;      /* of the records: all together fit into a processor's cache */
    size_t count;
    uint32_t *merges; /* (left, right) in rank order */
    uint32_t *merged; /* the id that merge i makes */
    size_t merges_count;
    uint32_t *specials; /* ascending */
    size_t specials_count;
    char *custom;
    uint32_t eot_id;
    int32_t pattern;
    int32_t normalizer;
    int32_t whole_words;    /* 0 or 1 */
    int32_t prefix_space;   /* 0 or 1 */
    bool all_own;           /* merging the bytes of an ordinary token gives that token. false: not known */
    uint8_t *special_flags; /* of the specials. NULL if none has any */
    hash_seed seed;         /* of both indexes */
    token_index ordinary_index;
    token_index special_index;
    uint32_t byte_ids[256]; /* the ordinary tokens of single bytes, or PYBPE_NO_ID */
};

/* Whether some byte has no token, and which byte is the first. */
bool vocab_lacks_byte(const pybpe_vocab *v, unsigned *byte);

static inline const uint8_t *vocab_token(const pybpe_vocab *v, size_t id) { return v->bytes + v->offsets[id]; }
static inline size_t vocab_token_length(const pybpe_vocab *v, size_t id) {
    return (size_t)(v->offsets[id + 1] - v->offsets[id]);
}

/* ---------------------------------------------------------------------------------------------------
Making a vocabulary: allocate it, fill in its content, then check and index it
*/

/* A part of a vocabulary's source: item i is at offset first + i * step. */
typedef struct source_part {
    uint64_t first, step;
} source_part;

/* The source of a vocabulary, which determines the code and the offsets of errors: in a spec an offset is an id or an
   index, in a file it is a position in the file. */
typedef struct vocab_source {
    bool is_file;
    source_part tokens; /* without their bytes, which in a file also count */
    source_part merges, specials;
    uint64_t pattern, normalizer, eot, whole_words; /* offsets */
} vocab_source;

/* The source of a vocabulary that is made from a spec. */
static inline vocab_source source_spec(void) {
    return (vocab_source){.tokens.step = 1, .merges.step = 1, .specials.step = 1};
}

static inline int source_code(const vocab_source *from) { return from->is_file ? PYBPE_ERR_FORMAT : PYBPE_ERR_VALUE; }

static inline uint64_t source_at(source_part part, size_t i) { return part.first + part.step * i; }

static inline uint64_t source_token(const vocab_source *from, const pybpe_vocab *v, size_t id) {
    return source_at(from->tokens, id) + (from->is_file ? v->offsets[id] : 0);
}

/* How large the parts of a vocabulary are. */
typedef struct vocab_sizes {
    size_t tokens;
    size_t bytes;
    size_t merges;
    size_t specials;
    size_t custom; /* without the terminating NUL */
    bool has_custom, has_flags;
} vocab_sizes;

/* A vocabulary with memory for its parts, which the caller fills. */
int vocab_alloc(pybpe_vocab **out, const vocab_sizes *sizes, const pybpe_allocator *mem, pybpe_error *err);

/* Copies the settings of a spec: all except tokens, merges and the ids of specials. */
void vocab_copy_settings(pybpe_vocab *v, const pybpe_vocab_spec *spec);

/* Checks that there is a text for every special of a spec. */
int special_texts_check(const pybpe_strings *texts, const pybpe_vocab_spec *spec, pybpe_error *err);

/* Checks everything except the merges, and fills the indexes. */
int vocab_index(pybpe_vocab *v, const vocab_source *from, pybpe_error *err);

/* Bytes to look for in an index. */
typedef struct token_key {
    const uint8_t *bytes;
    size_t n;
    word_key word; /* if n <= WORD_INLINE_MAX */
    uint64_t hash;
} token_key;

/* `end` is the end of the readable bytes. */
static inline token_key vocab_key(const pybpe_vocab *v, const uint8_t *bytes, size_t n, const uint8_t *end) {
    token_key key = {.bytes = bytes, .n = n};
    if (n > WORD_INLINE_MAX) {
        key.hash = word_hash_long(bytes, n, v->seed);
    } else if (n > 0) {
        key.word = word_key_load(bytes, n, end);
        key.hash = word_key_hash(key.word, v->seed);
    }
    return key;
}

/* Prefetches the first slot of ordinary_index in which a token may be. */
static inline void vocab_prefetch(const pybpe_vocab *v, uint64_t hash) {
    PYBPE_PREFETCH(&v->ordinary_index.slots[hash & v->ordinary_index.mask]);
}

/* Prefetches the record of the token that is in that slot. */
static inline void vocab_prefetch_token(const pybpe_vocab *v, uint64_t hash) {
    const token_index *index = &v->ordinary_index;
    const uint32_t next = index->slots[hash & index->mask] & index->id_mask; /* id + 1, or 0 */
    PYBPE_PREFETCH(&v->records[next > 0 ? next - 1 : 0]);
}

/* The bits of a hash that are in a slot of an index. */
static inline uint32_t slot_tag(const token_index *index, uint64_t hash) {
    return (uint32_t)(hash >> 32) & ~index->id_mask;
}

/* The ordinary token that is a word of up to 15 bytes with a hash, or PYBPE_NO_ID. */
static inline uint32_t vocab_find_word(const pybpe_vocab *v, word_key word, uint64_t hash) {
    const token_index *index = &v->ordinary_index;
    const uint32_t tag = slot_tag(index, hash);
    for (size_t i = (size_t)hash & index->mask;; i = (i + 1) & index->mask) {
        const uint32_t id = (index->slots[i] & index->id_mask) - 1;
        if (id == PYBPE_NO_ID || ((index->slots[i] & ~index->id_mask) == tag && record_is(&v->records[id], word))) {
            return id;
        }
    }
}

/* The token with these bytes, or PYBPE_NO_ID. */
uint32_t vocab_find(const pybpe_vocab *v, const token_index *index, const token_key *key);

/* Checks the merges and finds what they make. */
int vocab_resolve_merges(pybpe_vocab *v, const vocab_source *from, pybpe_error *err);

/* Recovers the merges of an indexed vocabulary from the order of its ids. Room for v->count merges is enough. */
int vocab_recover(const pybpe_vocab *v, uint32_t *merges, size_t *count, pybpe_error *err);

/* tokenizer_json_read.c: reads a whole tokenizer.json. */
int tokenizer_json_read(pybpe_vocab **out, const uint8_t *text, size_t n, const pybpe_allocator *mem, pybpe_error *err);

/* The two large parts of a tokenizer.json. */
typedef struct tokenizer_parts {
    const uint8_t *file; /* offsets of errors count from here. NULL: they are 0 */
    json vocab, merges;
} tokenizer_parts;

/* tokenizer_json.c: pybpe_vocab_new_json. */
int tokenizer_json_parts(pybpe_vocab **out, tokenizer_parts parts, const pybpe_strings *special_texts,
                         const pybpe_vocab_spec *spec, const pybpe_allocator *mem, pybpe_error *err);

/* Converts printable UTF-8 to the bytes that it represents, in place. Returns false if a character represents no
   byte. */
bool byte_level_decode(uint8_t *text, size_t *n);

/* The index of an id among specials, which ascend. `count` if it is not one. */
static inline size_t special_find(const uint32_t *specials, size_t count, uint32_t id) {
    size_t low = 0;
    size_t high = count;
    if (high > 0 && (id < specials[0] || id > specials[high - 1])) { /* nearly all ids of most vocabularies */
        return count;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (specials[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && specials[low] == id ? low : count;
}

/* Whether an id is an ordinary token. Needs only the tokens and the specials. */
bool token_is_ordinary(const pybpe_vocab *v, uint32_t id);

#endif
