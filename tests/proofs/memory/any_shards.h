/*
Shards of any lengths with any tokens, for the DataLoaders that read them; shard.c is about the reading itself. A shard
may fail to open, or have become longer or shorter.
*/
#ifndef ANY_SHARDS_H
#define ANY_SHARDS_H

#include "prove.h"

#include <glob.h>

#if defined(PROVE)
enum { SHARDS = 3, MOST_CHANGED = 16 };

void any_error(pybpe_error *err, int code, uint64_t offset, const char *format, ...) {
    (void)format;
    err->code = code;
    err->offset = offset;
}
#else
enum { SHARDS = 3, MOST_CHANGED = 100 };
#endif

struct pybpe_shard {
    uint64_t count;
};

static uint64_t shard_counts[SHARDS];
static char shard_paths[SHARDS][2] = {"a", "b", "c"};

/* Shards that have at least one batch of `least` tokens, and one more token. Some are too short. */
static inline void any_shards(uint64_t least) {
    for (size_t i = 0; i < SHARDS; i++) {
        shard_counts[i] = any_between(least + (any_between(0, 31) > 0), 3 * least + 2);
    }
}

static inline int any_glob(glob_t *found) {
    size_t count = (size_t)any_between(1, SHARDS);
    if (any_between(0, 31) == 0) {
        return GLOB_NOMATCH;
    }
    found->gl_pathv = malloc(count * sizeof *found->gl_pathv);
    ASSUME(found->gl_pathv != NULL);
    for (size_t i = 0; i < count; i++) {
        found->gl_pathv[i] = shard_paths[count - 1 - i];
    }
    found->gl_pathc = count;
    return 0;
}

int pybpe_shard_open(pybpe_shard **out, const char *path, const pybpe_allocator *mem, pybpe_error *err) {
    (void)mem;
    if (any_between(0, 31) == 0) {
        return error_set(err, PYBPE_ERR_IO, 0, "%s: cannot be read", path);
    }
    *out = malloc(sizeof **out);
    ASSUME(*out != NULL);
    (*out)->count = any_between(0, 31) == 0 ? any_between(0, MOST_CHANGED) : shard_counts[*path - 'a'];
    return PYBPE_OK;
}

void pybpe_shard_free(pybpe_shard *s) { free(s); }
uint64_t pybpe_shard_count(const pybpe_shard *s) { return s->count; }
int pybpe_shard_id_bytes(const pybpe_shard *s) { return s->count % 2 == 0 ? 2 : 4; }

int pybpe_shard_read(const pybpe_shard *s, uint64_t start, size_t n, uint32_t *ids, pybpe_error *err) {
    CHECK(start <= s->count && n <= s->count - start);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (uint32_t)any_between(0, any_between(0, 63) == 0 ? UINT32_MAX : INT32_MAX);
    }
    return any_between(0, 31) == 0 ? error_set(err, PYBPE_ERR_IO, start, "cannot be read") : PYBPE_OK;
}

#endif
