/*
The random numbers of llm.c and PyTorch: mt19937. Internal.
*/
#ifndef PYBPE_MT19937_H
#define PYBPE_MT19937_H

#include <stddef.h>
#include <stdint.h>

enum { MT19937_N = 624 };

typedef struct mt19937 {
    uint32_t state[MT19937_N];
    uint32_t next; /* index of the next number. MT19937_N: the state must be renewed */
} mt19937;

void mt19937_seed(mt19937 *rng, uint32_t seed);
uint32_t mt19937_next(mt19937 *rng);

/* Skips n numbers, like n calls of mt19937_next. */
void mt19937_skip(mt19937 *rng, uint64_t n);

/* Shuffles data[0..n) like llm.c's random_permutation: one number per item, from the last to the second. */
void mt19937_shuffle(mt19937 *rng, uint32_t *data, size_t n);

#endif
