/*
csrc/unicode/unicode.c: the tables of classes.
*/
#include "prove.h"

#include <unicode/unicode.c>

/* unicode_class reads inside its tables for each code point. */
void prove_class(size_t n) {
    uint32_t code_point = (uint32_t)any_u64();
    int class = pybpe_unicode_class(code_point);
    CHECK(class >= 0 && class < 128);
    CHECK(code_point <= 0x10FFFF || class == 0);
    (void)n;
}

PROOFS(PROOF(class, 0, 0, 1))
