/*
csrc/record.c: the records of JSON lines.
*/
#include "prove.h"

#include <record.c>

/* A number ends inside the text, and is not empty. */
void prove_number(size_t n) {
    uint8_t *text = any_bytes(n);
    const uint8_t *after = number_read(text, text + n);
    CHECK(after == NULL || (after > text && after <= text + n));
    free(text);
}

/* Any value, in brackets or not. */
void prove_value(size_t n) {
    uint8_t *text = any_bytes(n);
    const uint8_t *after = value_read(text, text + n);
    CHECK(after == NULL || (after > text && after <= text + n));
    free(text);
}

PROOFS(PROOF(number, 0, 8, 2) PROOF(value, 0, 2, 2, "scalar_read.0:7,strlen.0:10,memcmp.0:10"))
