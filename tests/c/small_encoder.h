/*
A vocabulary laid out by hand, with its encoder.
*/
#ifndef SMALL_ENCODER_H
#define SMALL_ENCODER_H

#include "check.h"
#include "small_vocab.h"

typedef struct small_encoder {
    pybpe_vocab *v;
    pybpe_encoder *e;
} small_encoder;

static inline small_encoder small_encoder_new(const small_vocab *v) {
    small_encoder s = {NULL, NULL};
    const pybpe_vocab_spec spec = small_spec(v);
    CHECK_EQ(pybpe_vocab_new(&s.v, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&s.e, s.v, NULL, 0, NULL, NULL), PYBPE_OK);
    return s;
}

static inline void small_encoder_free(small_encoder *s) {
    pybpe_encoder_free(s->e);
    pybpe_vocab_free(s->v);
}

#endif
