/*
csrc/vocab/vocab_recover.c: recovering the merges of any vocabulary. The encoder, which applies merges to the tokens, is left
out by CBMC.
*/
#include "any_entropy.h"

#include <apply/apply_short.c>
#include <apply/merges.c>
#include <base/base.c>
#include <pretok/pattern.c>
#include <vocab/vocab.c>
#include <vocab/vocab_index.c>
#include <vocab/vocab_merges.c>
#include <vocab/vocab_recover.c>

enum { TOKENS = 4, LONGEST = 3 };

/* Tokens here are short, so these are not called. */
int apply_long(const merge_table *t, apply_scratch *s, const uint8_t *w, size_t n, size_t *count,
               const pybpe_allocator *mem, pybpe_error *err) {
    (void)t;
    (void)s;
    (void)mem;
    CHECK(false);
    *count = n;
    return error_set(err, PYBPE_ERR_MEMORY, *w, "not here");
}
void apply_scratch_free(apply_scratch *s, const pybpe_allocator *mem) { mem_free(mem, s->ids); }

size_t any_applied(const merge_table *t, const uint8_t *w, size_t n, uint32_t *ids) {
    CHECK(n > 0 && n <= APPLY_SHORT_MAX);
    check_readable(w, n);
    any_fill(ids, n * sizeof *ids);
    ids[0] = (uint32_t)any_between(0, t->outside);
    ids[1] = (uint32_t)any_between(0, t->outside);
    return (size_t)any_between(1, n);
}

void any_merge(merge_table *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t merged) {
    CHECK(left < t->outside && right < t->outside && merged < t->outside && rank < t->capacity);
}

void any_bytes_merge(merge_table *t, uint8_t left, uint8_t right, uint32_t rank) {
    (void)left;
    (void)right;
    CHECK(rank < t->capacity);
}

/* The merges of n tokens fit in the memory for as many. */
void prove_recover(size_t n) {
    static uint64_t offsets[TOKENS + 1];
    static uint32_t specials[1];
    static pybpe_vocab v;
    static merge_table table;
    static apply_scratch scratch;
    for (size_t id = 0; id < n; id++) {
        offsets[id + 1] = offsets[id] + any_between(0, LONGEST);
    }
    uint8_t *bytes = any_bytes(TOKENS * LONGEST);
    uint32_t *merges = (uint32_t *)any_bytes(2 * n * sizeof *merges);
    size_t count = 0;
    v = (pybpe_vocab){.mem = mem_of(NULL), .bytes = bytes, .offsets = offsets, .specials = specials, .count = n};
    v.specials_count = (size_t)any_between(0, 1);
    specials[0] = (uint32_t)any_between(0, n);
#if defined(PROVE)
    table = (merge_table){.outside = (uint32_t)n, .capacity = n};
    int code = recover_with(&v, &table, &scratch, merges, &count, NULL);
#else
    memset(v.byte_ids, 0xFF, sizeof v.byte_ids);
    for (size_t id = 0; id < n; id++) {
        v.byte_ids[bytes[offsets[id]]] = offsets[id + 1] == offsets[id] + 1 ? (uint32_t)id : PYBPE_NO_ID;
    }
    (void)table;
    (void)scratch;
    int code = vocab_recover(&v, merges, &count, NULL);
#endif
    CHECK(code != PYBPE_OK || count <= n);
    for (size_t i = 0; code == PYBPE_OK && i < 2 * count; i++) {
        CHECK(merges[i] < n);
    }
    free(merges);
    free(bytes);
}

PROOFS(PROOF(recover, 0, 4, 6, "",
             "apply_short:any_applied merge_table_add:any_merge merge_table_add_bytes:any_bytes_merge"))
