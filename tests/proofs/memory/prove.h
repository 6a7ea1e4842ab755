/*
Proofs about memory, for every input up to a bound. A proof is a function that takes a size, draws its input with any_*,
and calls the code. run.py runs each proof in one of two ways:

- The model checker CBMC takes all possible draws at once. It shows that no draw leads to an access out of bounds, to
  an overflow, to an undefined shift, to a failed CHECK, or to a loop that turns more often than its bound.
- A compiler with sanitizers takes random draws, so that the proofs themselves are tested where there is no CBMC.

A proof includes the C file that it is about, so that it can call static functions.

The loops of a function that calls others would multiply. So CBMC may replace each of these by a stub any_*, which returns
any result that the proof of the replaced function allows, and checks what that proof assumes of the arguments:

    PROOF(find, 0, 6, 3, "json_find.0:4", "json_check_value:any_value")   sizes 0 to 6; loops turn up to size + 3 times,
                                                                          the first one of json_find up to 4 times

Random draws call the functions themselves. DRAWN instead of PROOF lists a proof that CBMC has not finished: only random
draws run it, unless run.py is given its name. A proof may be listed as both: as PROOF for the sizes that CBMC finishes,
and as DRAWN for larger ones.
*/
#ifndef PROVE_H
#define PROVE_H

#include "base/base.h"

#include <stdlib.h>

#if defined(PROVE) /* the name of the proof that CBMC takes */

#define ASSUME(condition) __CPROVER_assume(condition)
#define CHECK(condition) __CPROVER_assert(condition, #condition)
#define PROOFS(...)

uint64_t nondet_u64(void);
static inline uint64_t any_u64(void) { return nondet_u64(); }

/* An object of exactly n bytes with any content. For 0 bytes it is still an object, of which nothing may be read. */
static inline uint8_t *any_bytes(size_t n) {
    uint8_t *bytes = malloc(n);
    __CPROVER_assume(bytes != NULL);
    return bytes;
}

/* CBMC knows most functions of string.h, but not this one. */
void *memchr(const void *s, int c, size_t n) {
    const uint8_t *bytes = s;
    CHECK(__CPROVER_r_ok(s, n));
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == (uint8_t)c) {
            return (void *)(bytes + i);
        }
    }
    return NULL;
}

/* What the operating system writes to memory that has not been written yet: CBMC lets such memory contain anything. */
static inline void any_fill(void *data, size_t n) { CHECK(__CPROVER_w_ok(data, n)); }

static inline void check_readable(const void *data, size_t n) { CHECK(__CPROVER_r_ok(data, n)); }

void PROVE(size_t n);
int main(void) {
    PROVE(PROVE_SIZE);
    return 0;
}

#else

#include <setjmp.h>
#include <stdio.h>

static jmp_buf drawn_badly; /* where a draw goes that the proof does not allow */

#define ASSUME(condition) ((condition) ? (void)0 : longjmp(drawn_badly, 1))
#define CHECK(condition) ((condition) ? (void)0 : check_fail(__FILE__, __LINE__, #condition))
#define PROOF(name, least, most, ...) {#name, prove_##name, least, most},
#define DRAWN PROOF
#define PROOFS(...)                                                                                                    \
    int main(void) {                                                                                                   \
        static const proof all[] = {__VA_ARGS__};                                                                      \
        return proofs_try(all, sizeof all / sizeof *all);                                                              \
    }

typedef struct proof {
    const char *name;
    void (*prove)(size_t n);
    size_t least, most;
} proof;

static void check_fail(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: %s\n", file, line, condition);
    abort();
}

/* Random numbers: splitmix64, always the same ones. */
static inline uint64_t any_u64(void) {
    static uint64_t state = 1;
    uint64_t x = state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* Bytes that readers distinguish are drawn more often than others. */
static inline uint8_t *any_bytes(size_t n) {
    static const uint8_t telling[] = "\"\"\\\\{}[],:u0019afDd \n\r\t\x80\xBF\xC2\xE0\xED\xF0\xF4 ";
    uint8_t *bytes = malloc(n);
    ASSUME(bytes != NULL);
    for (size_t i = 0; i < n; i++) {
        uint64_t draw = any_u64();
        bytes[i] = draw % 4 == 0 ? (uint8_t)(draw >> 8) : telling[(draw >> 8) % (sizeof telling - 1)];
    }
    return bytes;
}

static inline void any_fill(void *data, size_t n) {
    uint8_t *bytes = any_bytes(n);
    memcpy(data, bytes, n);
    free(bytes);
}

static inline void check_readable(const void *data, size_t n) {
    const volatile uint8_t *bytes = data;
    for (size_t i = 0; i < n; i++) {
        (void)bytes[i];
    }
}

static inline int proofs_try(const proof *all, size_t count) {
    enum { DRAWS = 20000 };
    static size_t i;
    static int draw; /* longjmp keeps static variables */
    for (i = 0; i < count; i++) {
        for (draw = 0; draw < DRAWS; draw++) {
            if (setjmp(drawn_badly) == 0) {
                all[i].prove(all[i].least + (size_t)(any_u64() % (all[i].most - all[i].least + 1)));
            }
        }
    }
    return 0;
}

#endif

static inline bool any_bool(void) { return (any_u64() & 1) != 0; }

/* A number from least to most. */
static inline uint64_t any_between(uint64_t least, uint64_t most) {
#if defined(PROVE) /* the name of the proof that CBMC takes */
    uint64_t x = any_u64();
    ASSUME(x >= least && x <= most);
    return x;
#else
    uint64_t span = most - least + 1;
    return least + (span == 0 ? any_u64() : any_u64() % span);
#endif
}

/* Stubs of memcmp, memchr and memcpy for CBMC, where it does not matter which bytes they find or copy. */
int any_comparison(const void *a, const void *b, size_t n) {
    check_readable(a, n);
    check_readable(b, n);
    return any_bool() ? 0 : 1;
}

void *any_place(const void *data, int c, size_t n) {
    check_readable(data, n);
    (void)c;
    return n > 0 && any_bool() ? (uint8_t *)data + any_between(0, n - 1) : NULL;
}

void *any_copy(void *to, const void *from, size_t n) {
    check_readable(from, n);
    any_fill(to, n);
    return to;
}

#endif
