/*
Token shards: files laid out by hand, every damage to a small one, failing memory, and the files that the writer leaves.
*/
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "pybpe.h"
#include "scratch.h"
#include "small_vocab.h"

#if !defined(_WIN32)
#include <signal.h>
#include <sys/resource.h>
#endif

/* The shards of this test, byte by byte: 3 tokens, uint16 and uint32. */
static const uint32_t TOKENS[3] = {1, 0x1234, 0xFFFF};
static const uint8_t BODY16[6] = {1, 0, 0x34, 0x12, 0xFF, 0xFF};
static const uint8_t BODY32[12] = {1, 0, 0, 0, 0x34, 0x12, 0, 0, 0xFF, 0xFF, 0, 0};
static const uint8_t HEADER16[12] = {0x88, 0xD8, 0x34, 0x01, 1, 0, 0, 0, 3, 0, 0, 0};
static const uint8_t HEADER32[12] = {0xA1, 0xD9, 0x34, 0x01, 7, 0, 0, 0, 3, 0, 0, 0};

static size_t lay_out(uint8_t *to, int id_bytes) {
    memset(to, 0, SCRATCH_HEADER);
    memcpy(to, id_bytes == 2 ? HEADER16 : HEADER32, 12);
    memcpy(to + SCRATCH_HEADER, id_bytes == 2 ? BODY16 : BODY32, 3 * (size_t)id_bytes);
    return SCRATCH_HEADER + 3 * (size_t)id_bytes;
}

static int is_expected(const pybpe_shard *s, int id_bytes) {
    uint32_t ids[3] = {0};
    return pybpe_shard_count(s) == 3 && pybpe_shard_id_bytes(s) == id_bytes &&
           pybpe_shard_read(s, 0, 3, ids, NULL) == PYBPE_OK && memcmp(ids, TOKENS, sizeof ids) == 0;
}

static void test_reading(int id_bytes) {
    uint8_t data[SCRATCH_HEADER + 16];
    size_t n = lay_out(data, id_bytes);
    pybpe_shard *s;
    pybpe_error err;
    scratch_write("s.bin", data, n);
    CHECK_EQ(pybpe_shard_open(&s, "s.bin", NULL, &err), PYBPE_OK);
    CHECK(is_expected(s, id_bytes));
    uint32_t id = 9;
    CHECK_EQ(pybpe_shard_read(s, 2, 1, &id, &err), PYBPE_OK);
    CHECK_EQ(id, 0xFFFF);
    CHECK_EQ(pybpe_shard_read(s, 3, 0, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_shard_read(s, 3, 1, &id, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_shard_read(s, UINT64_MAX, 2, &id, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(id, 0xFFFF);
    pybpe_shard_free(s);
    CHECK_EQ(pybpe_shard_open_mem(&s, data, n, NULL, &err), PYBPE_OK);
    CHECK(is_expected(s, id_bytes));
    pybpe_shard_free(s);
    pybpe_shard_free(NULL);
}

/* In allocations of exactly their size, so that a sanitizer sees reads beyond the end. */
static void test_truncation(int id_bytes) {
    uint8_t data[SCRATCH_HEADER + 24] = {0};
    size_t whole = lay_out(data, id_bytes);
    int opened = 0, untyped = 0;
    for (size_t n = 0; n <= whole + 8; n++) {
        uint8_t *part = malloc(n + (n == 0));
        pybpe_shard *s;
        pybpe_error err = {0};
        memcpy(part, data, n);
        int code = pybpe_shard_open_mem(&s, part, n, NULL, &err);
        opened += code == PYBPE_OK && n == whole && is_expected(s, id_bytes);
        untyped += n != whole && (code != PYBPE_ERR_FORMAT || err.code != code || s != NULL || err.msg[0] == '\0' ||
                                  err.offset != (n < whole ? n : whole));
        pybpe_shard_free(s);
        free(part);
    }
    CHECK_EQ(opened, 1);
    CHECK_EQ(untyped, 0);
}

/* The same for files, of which the smallest have no complete header. */
static void test_truncated_files(int id_bytes) {
    uint8_t data[SCRATCH_HEADER + 24] = {0};
    const size_t whole = lay_out(data, id_bytes);
    const size_t sizes[] = {0, 1, 12, SCRATCH_HEADER - 1, SCRATCH_HEADER, whole - 1, whole + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pybpe_shard *s;
        pybpe_error err = {0};
        scratch_write("s.bin", data, sizes[i]);
        CHECK_EQ(pybpe_shard_open(&s, "s.bin", NULL, &err), PYBPE_ERR_FORMAT);
        CHECK_EQ(err.offset, sizes[i] < whole ? sizes[i] : whole);
        CHECK(s == NULL && strncmp(err.msg, "s.bin: ", 7) == 0);
        const char *where = strchr(err.msg, ' ');
        CHECK_EQ(strtoul(where + 1, NULL, 10), sizes[i]); /* the message begins with the size */
    }
}

/* llm.c looks at 12 bytes of the header: each bit of them matters, and no other. */
static void test_header_bits(int id_bytes) {
    uint8_t data[SCRATCH_HEADER + 16];
    size_t n = lay_out(data, id_bytes);
    int wrong = 0;
    pybpe_error err;
    for (size_t bit = 0; bit < 8 * SCRATCH_HEADER; bit++) {
        pybpe_shard *s;
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int code = pybpe_shard_open_mem(&s, data, n, NULL, &err);
        wrong += bit < 96 ? code != PYBPE_ERR_FORMAT : code != PYBPE_OK || !is_expected(s, id_bytes);
        wrong += (bit < 64 || bit == 95) && err.offset != bit / 32 * 4; /* other counts: where the file should end */
        pybpe_shard_free(s);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CHECK_EQ(wrong, 0);
}

/* ---------------------------------------------------------------------------------------------------
Writing
*/

static int write_shard(const char *path, int format, const void *ids, int id_bytes, size_t n,
                       const pybpe_allocator *mem) {
    pybpe_shard_writer *w;
    pybpe_error err;
    int code = pybpe_shard_writer_new(&w, path, format, mem, &err);
    if (code != PYBPE_OK) {
        return w == NULL ? code : 1;
    }
    code = pybpe_shard_writer_write(w, ids, id_bytes, n, &err);
    if (code != PYBPE_OK) {
        pybpe_shard_writer_discard(w);
        return code;
    }
    return pybpe_shard_writer_finish(w, &err);
}

static int file_equals(const char *path, const uint8_t *data, size_t n) {
    uint8_t *found = malloc(n + 1);
    FILE *f = fopen(path, "rb");
    int equal = f != NULL && fread(found, 1, n + 1, f) == n && memcmp(found, data, n) == 0;
    if (f != NULL) {
        fclose(f);
    }
    free(found);
    return equal;
}

static void test_writing(void) {
    static const uint16_t narrow[3] = {1, 0x1234, 0xFFFF};
    uint8_t data[SCRATCH_HEADER + 16];
    for (int id_bytes = 2; id_bytes <= 4; id_bytes += 2) {
        const void *ids = id_bytes == 2 ? (const void *)narrow : (const void *)TOKENS;
        size_t n = lay_out(data, 2);
        CHECK_EQ(write_shard("w.bin", PYBPE_SHARD_UINT16, ids, id_bytes, 3, NULL), PYBPE_OK);
        CHECK(file_equals("w.bin", data, n));
        CHECK_EQ(write_shard("w.bin", PYBPE_SHARD_RAW_UINT16, ids, id_bytes, 3, NULL), PYBPE_OK);
        CHECK(file_equals("w.bin", BODY16, sizeof BODY16));
        n = lay_out(data, 4);
        CHECK_EQ(write_shard("w.bin", PYBPE_SHARD_UINT32, ids, id_bytes, 3, NULL), PYBPE_OK);
        CHECK(file_equals("w.bin", data, n));
        CHECK_EQ(write_shard("w.bin", PYBPE_SHARD_RAW_UINT32, ids, id_bytes, 3, NULL), PYBPE_OK);
        CHECK(file_equals("w.bin", BODY32, sizeof BODY32));
    }
}

/* More than the writer's buffer holds, in one call. */
static void test_long_writes(void) {
    enum { MANY = 100000 };
    static uint16_t ids[MANY];
    uint32_t got[3];
    pybpe_shard *s = NULL;
    for (size_t i = 0; i < MANY; i++) {
        ids[i] = (uint16_t)(i * 7);
    }
    CHECK_EQ(write_shard("w.bin", PYBPE_SHARD_UINT16, ids, 2, MANY, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_shard_open(&s, "w.bin", NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_shard_count(s), MANY);
    for (uint64_t at = 0; at + 3 <= MANY; at += 1000) {
        CHECK_EQ(pybpe_shard_read(s, at, 3, got, NULL), PYBPE_OK);
        CHECK(got[0] == ids[at] && got[1] == ids[at + 1] && got[2] == ids[at + 2]);
    }
    uint32_t *all = malloc(MANY * sizeof *all);
    int wrong = 0;
    CHECK_EQ(pybpe_shard_read(s, 0, MANY, all, NULL), PYBPE_OK);
    for (size_t i = 0; i < MANY; i++) {
        wrong += all[i] != ids[i];
    }
    CHECK_EQ(wrong, 0);
    free(all);
    pybpe_shard_free(s);
}

#if !defined(_WIN32)
/* A file size limit simulates a full disk. After a write that failed, tokens are missing, so the file is never
   finished. */
static void test_no_room(void) {
    enum { MANY = 100000 };
    static const uint16_t ids[MANY];
    struct rlimit before;
    scratch_clear();
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    const struct rlimit limit = {MANY, before.rlim_max};
    for (int format = PYBPE_SHARD_UINT16; format <= PYBPE_SHARD_UINT32; format++) {
        pybpe_shard_writer *w;
        pybpe_error err = {0};
        CHECK_EQ(pybpe_shard_writer_new(&w, "w.bin", format, NULL, NULL), PYBPE_OK);
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK_EQ(pybpe_shard_writer_write(w, ids, 2, MANY, NULL), PYBPE_ERR_IO);
        CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
        CHECK_EQ(pybpe_shard_writer_finish(w, &err), PYBPE_ERR_IO);
        CHECK(strstr(err.msg, "w.bin: an earlier write failed") != NULL);
        CHECK_EQ(scratch_clear(), 0);
    }
}
#endif

static void test_refused_writes(void) {
    static const uint32_t large[2] = {7, 65536};
    uint8_t data[SCRATCH_HEADER + 16];
    pybpe_shard_writer *w;
    pybpe_error err;
    scratch_clear();
    CHECK_EQ(pybpe_shard_writer_new(&w, "w.bin", PYBPE_SHARD_UINT16 - 1, NULL, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_shard_writer_new(&w, "w.bin", 9, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(w == NULL);
    CHECK_EQ(pybpe_shard_writer_new(&w, "no/such/folder.bin", PYBPE_SHARD_UINT16, NULL, &err), PYBPE_ERR_IO);
    CHECK(w == NULL);
#if defined(__linux__)
    CHECK_EQ(pybpe_shard_writer_new(&w, "/dev/full", PYBPE_SHARD_UINT16, NULL, &err), PYBPE_ERR_IO);
#endif
    CHECK_EQ(pybpe_shard_writer_new(&w, "w.bin", PYBPE_SHARD_UINT16, NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_shard_writer_write(w, TOKENS, 4, 1, &err), PYBPE_OK);
    CHECK_EQ(pybpe_shard_writer_write(w, large, 4, 2, &err), PYBPE_ERR_LIMIT);
    CHECK_EQ(err.offset, 1);
    CHECK_EQ(pybpe_shard_writer_write(w, NULL, 2, SIZE_MAX, &err), PYBPE_ERR_LIMIT);
    const size_t room = (PYBPE_SHARD_MAX_BYTES - SCRATCH_HEADER) / 2 - 1; /* one token is there */
    CHECK_EQ(pybpe_shard_writer_write(w, NULL, 2, room + 1, &err), PYBPE_ERR_LIMIT);
    CHECK_EQ(err.offset, room + 1);
    CHECK_EQ(pybpe_shard_writer_write(w, large + 1, 4, room, &err), PYBPE_ERR_LIMIT);
    CHECK_EQ(err.offset, 0); /* so many tokens fit, but the first one is too large */
    CHECK_EQ(pybpe_shard_writer_write(w, TOKENS, 3, 1, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 0);
    CHECK_EQ(pybpe_shard_writer_write(w, TOKENS + 1, 4, 2, &err), PYBPE_OK);
    CHECK_EQ(access("w.bin", F_OK), -1); /* not before it is complete */
    CHECK_EQ(pybpe_shard_writer_finish(w, &err), PYBPE_OK);
    CHECK(file_equals("w.bin", data, lay_out(data, 2))); /* nothing of the refused calls is in it */
    CHECK_EQ(pybpe_shard_writer_new(&w, "w.bin", PYBPE_SHARD_UINT16, NULL, &err), PYBPE_OK);
    pybpe_shard_writer_discard(w);
    pybpe_shard_writer_discard(NULL);
    CHECK_EQ(scratch_clear(), 1); /* the old file, and no temporary one */
}

static void test_memory(void) {
    uint8_t data[SCRATCH_HEADER + 16];
    size_t n = lay_out(data, 2);
    int failures = 0, passed[3] = {0};
    for (int kind = 0; kind < 3; kind++) {
        for (long grant = 0; grant < 10; grant++) {
            failing_memory m = {.left = grant};
            pybpe_allocator mem = {failing_resize, &m};
            pybpe_shard *s = NULL;
            int code;
            scratch_write("s.bin", data, n);
            if (kind == 0) {
                code = pybpe_shard_open(&s, "s.bin", &mem, NULL);
            } else if (kind == 1) {
                code = pybpe_shard_open_mem(&s, data, n, &mem, NULL);
            } else {
                code = write_shard("s.bin", PYBPE_SHARD_UINT16, TOKENS, 4, 3, &mem);
            }
            passed[kind] += code == PYBPE_OK;
            failures += code != PYBPE_OK && (code != PYBPE_ERR_MEMORY || s != NULL);
            pybpe_shard_free(s);
            failures += m.blocks != 0 || !file_equals("s.bin", data, n) || scratch_clear() != 1;
        }
        CHECK(passed[kind] > 0 && passed[kind] <= 8); /* at least the handle and its path are needed */
    }
    CHECK_EQ(failures, 0);
}

int main(void) {
    scratch_enter();
    const int next_file = scratch_next_file();
    for (int id_bytes = 2; id_bytes <= 4; id_bytes += 2) {
        test_reading(id_bytes);
        test_truncation(id_bytes);
        test_truncated_files(id_bytes);
        test_header_bits(id_bytes);
    }
    test_writing();
    test_long_writes();
#if !defined(_WIN32)
    test_no_room();
#endif
    test_refused_writes();
    test_memory();
    CHECK_EQ(scratch_next_file(), next_file); /* all are closed */
    scratch_leave();
    return check_report("test_shard");
}
