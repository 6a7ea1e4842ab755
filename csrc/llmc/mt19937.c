/*
The Mersenne Twister mt19937 of Matsumoto and Nishimura (1998), seeded and read as in PyTorch and llm.c (llmc/rand.h),
so that a shuffle gives the same order.
*/
#include "llmc/mt19937.h"

enum { MT19937_M = 397 };

void mt19937_seed(mt19937 *rng, uint32_t seed) {
    rng->state[0] = seed;
    for (uint32_t i = 1; i < MT19937_N; i++) {
        rng->state[i] = UINT32_C(1812433253) * (rng->state[i - 1] ^ rng->state[i - 1] >> 30) + i;
    }
    rng->next = MT19937_N;
}

static void mt19937_renew(mt19937 *rng) {
    uint32_t *s = rng->state;
    for (size_t i = 0; i < MT19937_N; i++) {
        uint32_t y = (s[i] & UINT32_C(0x80000000)) | (s[(i + 1) % MT19937_N] & UINT32_C(0x7FFFFFFF));
        s[i] = s[(i + MT19937_M) % MT19937_N] ^ y >> 1 ^ ((y & 1) != 0 ? UINT32_C(0x9908B0DF) : 0);
    }
    rng->next = 0;
}

uint32_t mt19937_next(mt19937 *rng) {
    if (rng->next == MT19937_N) {
        mt19937_renew(rng);
    }
    uint32_t y = rng->state[rng->next++];
    y ^= y >> 11;
    y ^= y << 7 & UINT32_C(0x9D2C5680);
    y ^= y << 15 & UINT32_C(0xEFC60000);
    return y ^ y >> 18;
}

void mt19937_skip(mt19937 *rng, uint64_t n) {
    while (n > 0) {
        if (rng->next == MT19937_N) {
            mt19937_renew(rng);
        }
        uint32_t left = MT19937_N - rng->next;
        uint32_t now = n < left ? (uint32_t)n : left;
        rng->next += now;
        n -= now;
    }
}

void mt19937_shuffle(mt19937 *rng, uint32_t *data, size_t n) {
    for (size_t i = n; i-- > 1;) {
        size_t j = mt19937_next(rng) % (uint32_t)(i + 1);
        uint32_t kept = data[i];
        data[i] = data[j];
        data[j] = kept;
    }
}
