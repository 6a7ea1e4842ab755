/*
csrc/loader.c: batches of any shards, and any order of calls.
*/
#include "any_shards.h"

#define glob(pattern, flags, failed, found) any_glob(found)
#define globfree(found) free((found)->gl_pathv)

#include <base.c>
#include <loader.c>
#include <mt19937.c>

static void any_call(pybpe_loader *l, int32_t *inputs, int32_t *targets) {
    switch (any_between(0, 3)) {
    case 0:
        (void)pybpe_loader_reset(l, NULL);
        break;
    case 1:
        (void)pybpe_loader_seek(l, any_between(0, 40), NULL);
        break;
    default:
        (void)pybpe_loader_next(l, inputs, targets, NULL);
    }
}

/* The tokens of each batch are in its shard, and fit in its rows. */
void prove_batches(size_t n) {
    pybpe_loader *l;
    size_t B = (size_t)any_between(0, 3), T = (size_t)any_between(0, 3);
    int world = (int)any_between(0, 2), rank = (int)any_between(0, 2);
    int32_t *inputs = malloc(B * T * sizeof *inputs), *targets = malloc(B * T * sizeof *targets);
    ASSUME(inputs != NULL && targets != NULL);
    any_shards((uint64_t)world * B * T);
    if (pybpe_loader_new(&l, "", B, T, rank, world, any_bool(), NULL, NULL) == PYBPE_OK) {
        for (size_t i = 0; i < n; i++) {
            any_call(l, inputs, targets);
        }
        CHECK(pybpe_loader_shards(l) > 0 && pybpe_loader_tokens(l) > pybpe_loader_batches(l));
        pybpe_loader_free(l);
    }
    free(inputs);
    free(targets);
}

PROOFS(DRAWN(batches, 0, 20, 4))
