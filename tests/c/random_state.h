/*
Repeatable random numbers for the C tests: xorshift64 (Marsaglia, Xorshift RNGs, 2003).
*/
#ifndef RANDOM_STATE_H
#define RANDOM_STATE_H

#include <stdint.h>

static uint64_t random_state = 88172645463325252u;

static inline uint32_t random_below(uint32_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state % n);
}

#endif
