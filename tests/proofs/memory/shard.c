/*
csrc/llmc/shard.c: shards of tokens, in memory and in a file.
*/
#define pread system_pread

#include "prove.h"

#include <base/base.c>
#include <llmc/shard.c>

/* Any file: it may be cut off, or unreadable, or give its bytes in pieces. */
ssize_t system_pread(int fd, void *data, size_t n, off_t offset) {
    (void)fd;
    (void)offset;
    ssize_t got = (ssize_t)any_between(0, n);
    any_fill(data, (size_t)got);
    errno = EIO;
    return any_bool() ? got : -1;
}

/* A shard with any content is refused, or has as many tokens as its bytes. */
void prove_memory(size_t n) {
    n += PYBPE_SHARD_HEADER_BYTES - 2;
    uint8_t *data = any_bytes(n);
    pybpe_shard *s;
    if (pybpe_shard_open_mem(&s, data, n, NULL, NULL) == PYBPE_OK) {
        CHECK(PYBPE_SHARD_HEADER_BYTES + s->count * (uint64_t)s->id_bytes == n);
        pybpe_shard_free(s);
    } else {
        CHECK(s == NULL);
    }
    free(data);
}

/* The same for any header of a file of any size. */
void prove_header(size_t n) {
    uint8_t *header = any_bytes(PYBPE_SHARD_HEADER_BYTES);
    pybpe_shard s = {.path = (char *)""};
    uint64_t size = any_u64();
    if (header_parse(&s, header, size, NULL) == PYBPE_OK) {
        CHECK(PYBPE_SHARD_HEADER_BYTES + s.count * (uint64_t)s.id_bytes == size);
        CHECK(s.count <= INT32_MAX && (s.id_bytes == 2 || s.id_bytes == 4));
    }
    free(header);
    (void)n;
}

/* Reading n tokens of a file that has any number of them. */
void prove_file(size_t n) {
    pybpe_shard s = {.path = (char *)"", .count = any_between(0, INT32_MAX), .id_bytes = any_bool() ? 2 : 4};
    uint32_t *ids = (uint32_t *)any_bytes(n * sizeof *ids);
    (void)pybpe_shard_read(&s, any_u64(), n, ids, NULL);
    free(ids);
}

PROOFS(PROOF(memory, 0, 11, 5, "strlen.0:20") PROOF(header, 0, 0, 5) PROOF(file, 0, 2, 4, "file_in_read.0:10"))
