/*
The source of a vocabulary, which determines the code and the offsets of errors: in a spec an offset is an id or an
index, in a file it is a position in the file. Internal.
*/
#ifndef PYBPE_VOCAB_SOURCE_H
#define PYBPE_VOCAB_SOURCE_H

#include "tokenizer_bin.h"
#include "vocab.h"

typedef struct vocab_source {
    bool is_file;
    uint64_t trailer; /* offset in the file; 0 if it has none */
} vocab_source;

static inline int source_code(const vocab_source *from) { return from->is_file ? PYBPE_ERR_FORMAT : PYBPE_ERR_VALUE; }

static inline uint64_t source_token(const vocab_source *from, const pybpe_vocab *v, size_t id) {
    /* Every token before it also has a length byte. */
    return from->is_file ? FILE_HEADER + v->offsets[id] + id : id;
}

static inline uint64_t source_merge(const vocab_source *from, size_t i) {
    return from->is_file ? from->trailer + TRAILER_FIXED + 8 * (uint64_t)i : i;
}

static inline uint64_t source_special(const vocab_source *from, const pybpe_vocab *v, size_t i) {
    return from->is_file && from->trailer > 0
               ? from->trailer + TRAILER_FIXED + 8 * (uint64_t)v->merges_count + 4 * (uint64_t)i
               : (from->is_file ? 12 : i);
}

static inline uint64_t source_setting(const vocab_source *from, unsigned place) {
    return from->is_file ? from->trailer + place : 0;
}

#endif
