/*
A drop-in replacement for llm.c's llmc/rand.h: the random generator mt19937, and uniform and normal numbers as PyTorch
draws them.

Names, states and numbers are the same as llm.c's. The differences: all functions are static inline, so that several
files of a program can include this header; no damaged state makes it read outside its array; and normal_ accepts fewer
than 16 numbers.

Sources: Matsumoto and Nishimura, Mersenne Twister (1998); PyTorch, aten/src/ATen/core/MT19937RNGEngine.h and
aten/src/ATen/native/cpu/DistributionTemplates.h (the order in which normal_ draws); Box and Muller (1958).
*/
#ifndef RAND_H
#define RAND_H

#include <math.h>

#define MERSENNE_STATE_M 397u
#define MERSENNE_STATE_N 624u

/* llm.c writes this struct into its checkpoints, so its layout is part of a file format. */
typedef struct {
    unsigned long long seed_;
    int left_;          /* how many numbers are left before the state must be renewed, plus one */
    unsigned int next_; /* index of the next number */
    unsigned int state_[MERSENNE_STATE_N];
    unsigned int MATRIX_A[2];
} mt19937_state;

static inline void manual_seed(mt19937_state *state, unsigned int seed) {
    state->seed_ = seed;
    state->left_ = 1;
    state->next_ = 0;
    state->MATRIX_A[0] = 0;
    state->MATRIX_A[1] = 0x9908b0dfu;
    state->state_[0] = seed;
    for (unsigned int i = 1; i < MERSENNE_STATE_N; i++) {
        state->state_[i] = 1812433253u * (state->state_[i - 1] ^ (state->state_[i - 1] >> 30)) + i;
    }
}

static inline void next_state(mt19937_state *state) {
    unsigned int *s = state->state_;
    for (unsigned int i = 0; i < MERSENNE_STATE_N; i++) {
        unsigned int y = (s[i] & 0x80000000u) | (s[(i + 1) % MERSENNE_STATE_N] & 0x7fffffffu);
        s[i] = s[(i + MERSENNE_STATE_M) % MERSENNE_STATE_N] ^ (y >> 1) ^ ((y & 1u) != 0 ? 0x9908b0dfu : 0u);
    }
    state->left_ = (int)MERSENNE_STATE_N;
    state->next_ = 0;
}

static inline unsigned int randint32(mt19937_state *state) {
    if (state == 0) {
        return 0;
    }
    if (state->MATRIX_A[0] != 0 || state->MATRIX_A[1] != 0x9908b0dfu) {
        manual_seed(state, 5489); /* the state was never seeded */
    }
    if (state->left_ <= 1 || state->next_ >= MERSENNE_STATE_N) {
        next_state(state);
    } else {
        state->left_ -= 1;
    }
    unsigned int y = state->state_[state->next_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static inline unsigned long long randint64(mt19937_state *state) {
    unsigned long long high = randint32(state);
    return (high << 32) | randint32(state);
}

/* Returns a number from 0 to just below 1, made from 24 random bits (randfloat32) or 53 (randfloat64). */
static inline float randfloat32(mt19937_state *state) {
    return (float)(randint32(state) & 0xffffffu) * (1.0f / 16777216.0f);
}

static inline double randfloat64(mt19937_state *state) {
    return (double)(randint64(state) & 0x1fffffffffffffull) * (1.0 / 9007199254740992.0);
}

static inline void uniform_(float *data, unsigned int numel, float from, float to, mt19937_state *state) {
    for (unsigned int i = 0; i < numel; i++) {
        data[i] = randfloat32(state) * (to - from) + from;
    }
}

/* The radius and angle of the Box-Muller transform: two uniform numbers become two normal ones. */
static inline float normal_radius_(float u) { return sqrtf(-2 * logf(u + 1e-12f)); }

static inline float normal_angle_(float u) { return (float)(2.0 * 3.14159265358979323846 * u); }

/* Turns 16 uniform numbers into normal ones, in place. Number i is paired with number i + 8. */
static inline void normal_fill_16(float *data, float mean, float std) {
    for (unsigned int i = 0; i < 8; i++) {
        float radius = normal_radius_(1 - data[i]);
        float angle = normal_angle_(data[i + 8]);
        data[i] = radius * cosf(angle) * std + mean;
        data[i + 8] = radius * sinf(angle) * std + mean;
    }
}

static inline void normal_few_(float *data, unsigned int numel, float mean, float std, mt19937_state *state) {
    for (unsigned int i = 0; i < numel; i += 2) {
        float angle = normal_angle_((float)randfloat64(state));
        float radius = normal_radius_(1 - (float)randfloat64(state));
        data[i] = radius * cosf(angle) * std + mean;
        if (i + 1 < numel) {
            data[i + 1] = (float)((double)(radius * sinf(angle)) * std + mean);
        }
    }
}

static inline void normal_fill(float *data, unsigned int numel, float mean, float std, mt19937_state *state) {
    if (numel < 16) {
        normal_few_(data, numel, mean, std, state);
        return;
    }
    for (unsigned int i = 0; i < numel; i++) {
        data[i] = randfloat32(state);
    }
    for (unsigned int i = 0; i + 16 <= numel; i += 16) {
        normal_fill_16(data + i, mean, std);
    }
    if (numel % 16 != 0) { /* the last 16 are drawn again */
        data += numel - 16;
        for (unsigned int i = 0; i < 16; i++) {
            data[i] = randfloat32(state);
        }
        normal_fill_16(data, mean, std);
    }
}

static inline void normal_(float *data, unsigned int numel, float mean, float std, mt19937_state *state) {
    normal_fill(data, numel, mean, std, state);
}

static inline void init_identity_permutation(int *data, int numel) {
    for (int i = 0; i < numel; i++) {
        data[i] = i;
    }
}

static inline void random_permutation(int *data, int numel, mt19937_state *state) {
    for (int i = numel - 1; i > 0; i--) {
        int j = (int)(randint32(state) % ((unsigned int)i + 1));
        int kept = data[i];
        data[i] = data[j];
        data[j] = kept;
    }
}

#endif
