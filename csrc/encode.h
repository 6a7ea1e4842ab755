/*
The inside of an encoder. Internal.
*/
#ifndef PYBPE_ENCODE_H
#define PYBPE_ENCODE_H

#include "encode_boundary.h"
#include "encode_whole.h"
#include "merge.h"

struct pybpe_encoder {
    pybpe_allocator mem;
    const pybpe_vocab *vocab; /* borrowed */
    pybpe_pretok *named; /* the splitter of the vocabulary's pattern; NULL if that is CUSTOM, or for a borrowed one */
    const pybpe_pretok *pretok; /* the one that is used; NULL: none, words come from the caller */
    pybpe_specials *specials;   /* NULL if there are none */
    bool narrow;                /* every id fits 16 bits */
    bool lacks_bytes;           /* some byte has no token: see text_is_known */
    merge_table table;
    boundary_table boundaries;
    whole_table whole;
};

static inline bool encoder_is_narrow(const pybpe_encoder *e) { return e->narrow; }

#endif
