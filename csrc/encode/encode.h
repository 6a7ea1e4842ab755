/*
The inside of an encoder. Internal.
*/
#ifndef PYBPE_ENCODE_H
#define PYBPE_ENCODE_H

#include "apply/apply.h"
#include "pretok/pretok.h"
#include "vocab/vocab.h"

/* encode_boundary.c: makes a table from the merges of v. */
int boundary_table_new(boundary_table *t, const pybpe_vocab *v, const pybpe_allocator *mem, pybpe_error *err);
void boundary_table_free(boundary_table *t, const pybpe_allocator *mem);

/* encode_whole.c: tokens that merges do not reach, for vocabularies in which a word that is a token becomes that token.
   A zeroed table has no such tokens. */
typedef struct whole_table {
    uint8_t *bits;  /* bit `id` is set if merges do not give that token. NULL if they give all tokens */
    size_t longest; /* the length of the longest one */
} whole_table;

/* Merges the bytes of every ordinary token of v, and marks those that do not become one id. */
int whole_table_new(whole_table *w, const pybpe_vocab *v, const merge_table *merges, const pybpe_allocator *mem,
                    pybpe_error *err);
void whole_table_free(whole_table *w, const pybpe_allocator *mem);

/* The id of a word that is such a token, or PYBPE_NO_ID. */
uint32_t whole_table_find(const whole_table *w, const pybpe_vocab *v, const uint8_t *word, size_t n);

/* encode_lookup.c: makes encoder.reached, if it is of use. */
int reached_new(pybpe_encoder *e, pybpe_error *err);

/* Whether merging the bytes of an ordinary token of up to 15 bytes gives that token. Needs encoder.reached. */
bool token_is_reached(const pybpe_encoder *e, uint32_t id);

/* encode_units.c: checks that every byte of a text has a token. `at` is where the text begins in the caller's text. */
int encoder_check_bytes(const pybpe_encoder *e, const uint8_t *text, size_t n, size_t at, pybpe_error *err);

/* encode.c: refuses an encoder that changes texts, for functions that take a text as it is. */
int encoder_check_unchanging(const pybpe_encoder *e, pybpe_error *err);

/* encode_stages.c: for vocabularies with superwords. */
typedef struct encode_stages encode_stages;

struct pybpe_encoder {
    pybpe_allocator mem;
    const pybpe_vocab *vocab; /* borrowed */
    pybpe_pretok *named; /* the splitter of the vocabulary's pattern. NULL if that is unknown, or for a borrowed one */
    const pybpe_pretok *pretok; /* the one that is used. NULL: none, words come from the caller */
    pybpe_specials *specials;   /* NULL if there are none */
    bool narrow;                /* every id fits 16 bits */
    bool lacks_bytes;           /* some byte has no token: see text_is_known */
    bool prepares;              /* it normalizes texts, or adds spaces before them */
    merge_table table;
    boundary_table boundaries;
    whole_table whole;
    uint8_t *reached; /* what is known of each token: one of the below. NULL: there is no need to know, or no way */
    encode_stages *stages; /* NULL: all merges are applied at once */
};

enum { REACHED_UNKNOWN, REACHED_NEVER, REACHED };

/* Whether new words may be looked up among the tokens. */
static inline bool encoder_looks_up(const pybpe_encoder *e) { return e->vocab->all_own || e->reached != NULL; }

/* The token that merging a word of up to 15 bytes gives, or PYBPE_NO_ID if it gives several. `hash` is that of the
   vocabulary's index. */
static inline uint32_t token_lookup(const pybpe_encoder *e, word_key word, uint64_t hash) {
    const uint32_t id = vocab_find_word(e->vocab, word, hash);
    if (id == PYBPE_NO_ID || e->vocab->all_own || __atomic_load_n(&e->reached[id], __ATOMIC_RELAXED) == REACHED) {
        return id;
    }
    return token_is_reached(e, id) ? id : PYBPE_NO_ID;
}

static inline bool encoder_is_narrow(const pybpe_encoder *e) { return e->narrow; }

#endif
