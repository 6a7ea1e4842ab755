/*
The random bytes of the operating system, for proofs of code that draws the secret numbers of a hash table. Include this
before any other header.
*/
#ifndef ANY_ENTROPY_H
#define ANY_ENTROPY_H

#define getentropy any_entropy

#include "prove.h"

int getentropy(void *to, size_t n) {
    any_fill(to, n);
    return 0;
}

#endif
