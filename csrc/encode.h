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
    pybpe_pretok *pretok;     /* NULL if the pattern is CUSTOM */
    pybpe_specials *specials; /* NULL if there are none */
    bool narrow;              /* every id fits 16 bits */
    bool lacks_bytes;         /* some byte has no token: see text_is_known */
    merge_table table;
    boundary_table boundaries;
    whole_table whole;
};

static inline bool encoder_is_narrow(const pybpe_encoder *e) { return e->narrow; }

#endif
