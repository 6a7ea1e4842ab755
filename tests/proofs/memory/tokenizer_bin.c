/*
csrc/tokenizer_bin.h: the checksum of a tokenizer.bin.
*/
#include "prove.h"

#include "tokenizer_bin.h"

/* The checksum reads n bytes, and no more. */
void prove_checksum(size_t n) {
    uint8_t *data = any_bytes(n);
    (void)tokenizer_bin_checksum(data, n);
    free(data);
}

PROOFS(PROOF(checksum, 0, 17, 2))
