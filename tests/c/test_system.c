/*
System calls that fail, without root and without a special disk: this program defines its own open, fsync and so on, and
the library is linked with them. (tests/faults does the same to the Python package, with every call in turn.) 64-bit
Linux only, since it makes system calls directly.
*/
#if defined(__linux__) && defined(__LP64__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef _FORTIFY_SOURCE /* with it, the headers of libc define pread themselves, as an inline function */
#include "check.h"
#include "pybpe_corpus.h"
#include "scratch.h"
#include "small_vocab.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---------------------------------------------------------------------------------------------------
The calls
*/

/* MemorySanitizer knows what the system writes only from the calls of libc. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define WRITTEN(data, n) __msan_unpoison((data), (n))
#endif
#endif
#ifndef WRITTEN
#define WRITTEN(data, n) (void)(data), (void)(n)
#endif

enum { OPEN, FSTAT, PREAD, PWRITE, FSYNC, CLOSE, RENAME, ENTROPY, CALLS };

static struct {
    int left; /* calls until the one that fails, or 0 */
    int sys_errno;
} faults[CALLS];

/* For an errno: a call that reads or writes does not fail, but does less than all; and another program writes to the file
   just before the call, the first byte again or one more at the end. */
enum { SHORT = 0, OVERWRITTEN = -1, APPENDED = -2 };

/* From now on the n-th call fails; all calls if n is negative. */
static void fail(int call, int n, int sys_errno) {
    faults[call].left = n;
    faults[call].sys_errno = sys_errno;
}

static int fails(int call) {
    if (faults[call].left == 0 || --faults[call].left > 0) {
        return 0;
    }
    errno = faults[call].sys_errno;
    return 1;
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fstat(int fd, struct stat *st) { return fails(FSTAT) ? -1 : fstatat(fd, "", st, AT_EMPTY_PATH); }

/* Another program writes a byte to "file". */
static void write_byte(off_t offset) {
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, "file", O_RDWR, 0);
    uint8_t byte = 0;
    syscall(SYS_pread64, fd, &byte, 1, 0);
    CHECK_EQ(syscall(SYS_pwrite64, fd, &byte, 1, offset), 1);
    syscall(SYS_close, fd);
}

/* How much of n bytes a call reads or writes; -1 if it fails. */
static ssize_t part(int call, size_t n) {
    if (faults[call].left == 1 && faults[call].sys_errno < 0) {
        faults[call].left = 0;
        write_byte(faults[call].sys_errno == OVERWRITTEN ? 0 : (off_t)n);
        return (ssize_t)n;
    }
    return !fails(call) ? (ssize_t)n : errno == SHORT ? (ssize_t)(n + 1) / 2 : -1;
}

ssize_t pread(int fd, void *data, size_t n, off_t offset) {
    ssize_t want = part(PREAD, n);
    ssize_t got = want < 0 ? -1 : syscall(SYS_pread64, fd, data, want, offset);
    WRITTEN(data, got > 0 ? (size_t)got : 0);
    return got;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset) {
    ssize_t want = part(PWRITE, n);
    return want < 0 ? -1 : syscall(SYS_pwrite64, fd, data, want, offset);
}

int fsync(int fd) { return fails(FSYNC) ? -1 : (int)syscall(SYS_fsync, fd); }

int close(int fd) {
    int result = (int)syscall(SYS_close, fd); /* Linux closes the descriptor, even if it returns an error */
    return fails(CLOSE) ? -1 : result;
}

int rename(const char *from, const char *to) {
    return fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int getentropy(void *data, size_t n) {
    int failed = fails(ENTROPY) || syscall(SYS_getrandom, data, n, 0) < 0;
    WRITTEN(data, n);
    return failed ? -1 : 0;
}

int glob(const char *pattern, int flags, int (*on_error)(const char *, int), glob_t *found) {
    (void)pattern, (void)flags, (void)on_error, (void)found;
    return GLOB_NOSPACE;
}

/* ---------------------------------------------------------------------------------------------------
Writing
*/

static int write_new(pybpe_error *err) {
    pybpe_output *o = NULL;
    int code = pybpe_output_open(&o, "file", NULL, err);
    if (code == PYBPE_OK) {
        code = pybpe_output_write(o, "new", 3, err);
        if (code != PYBPE_OK) {
            pybpe_output_discard(o);
        } else {
            code = pybpe_output_commit(o, err);
        }
    }
    return code;
}

/* Whether `file` holds this, and nothing else is in the folder. */
static int only_file_is(const char *expected) {
    char got[16] = "";
    FILE *f = fopen("file", "rb");
    size_t n = f == NULL ? 0 : fread(got, 1, sizeof got - 1, f);
    if (f != NULL) {
        fclose(f);
    }
    return n == strlen(expected) && strcmp(got, expected) == 0 && scratch_clear() == 1;
}

static void test_writing(void) {
    static const struct {
        int call, n, sys_errno;
        const char *message; /* NULL: it succeeds */
        const char *left;    /* in the file */
    } cases[] = {
        {OPEN, 1, EACCES, "no file can be created", "old"},
        {OPEN, 1, EINTR, NULL, "new"},
        {PWRITE, 1, ENOSPC, "cannot be written at offset 0, 3 bytes are missing", "old"},
        {PWRITE, 1, EINTR, NULL, "new"},
        {PWRITE, 1, SHORT, NULL, "new"},
        {FSYNC, 1, EIO, "cannot be flushed to the disk", "old"},
        {FSYNC, 1, EINTR, NULL, "new"},
        {CLOSE, 1, EIO, "cannot be closed", "old"},
        {CLOSE, 1, EINTR, NULL, "new"},
        {RENAME, 1, EACCES, "cannot be given its name", "old"},
        {OPEN, 2, EMFILE, "its folder cannot be opened to be flushed", "new"},
        {OPEN, 2, EINTR, NULL, "new"},
        {FSYNC, 2, EIO, "its folder cannot be flushed", "new"},
        {FSYNC, 2, EINVAL, NULL, "new"}, /* some file systems cannot flush folders */
        {FSYNC, 2, ENOTSUP, NULL, "new"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pybpe_error err;
        scratch_write("file", "old", 3);
        fail(cases[i].call, cases[i].n, cases[i].sys_errno);
        int code = write_new(&err);
        CHECK_EQ(faults[cases[i].call].left, 0);
        CHECK_EQ(code, cases[i].message == NULL ? PYBPE_OK : PYBPE_ERR_IO);
        if (cases[i].message != NULL) {
            CHECK(strstr(err.msg, cases[i].message) != NULL && strstr(err.msg, "file: ") == err.msg);
            CHECK_EQ(err.sys_errno, cases[i].sys_errno);
        }
        CHECK(only_file_is(cases[i].left));
    }
}

/* All names of temporary files are taken. */
static void test_no_free_name(void) {
    pybpe_error err;
    scratch_write("file", "old", 3);
    fail(OPEN, -1, EEXIST); /* every call */
    CHECK_EQ(write_new(&err), PYBPE_ERR_IO);
    CHECK(faults[OPEN].left < -1000 && err.sys_errno == EEXIST);
    faults[OPEN].left = 0;
    CHECK(strstr(err.msg, "no file can be created") != NULL);
    CHECK(only_file_is("old"));
}

static void test_saving(void) {
    uint8_t data[SCRATCH_TOKENIZER_BYTES];
    pybpe_vocab *v = NULL;
    pybpe_error err;
    CHECK_EQ(pybpe_vocab_load_mem(&v, data, put_tokenizer(data), NULL, NULL), PYBPE_OK);
    scratch_write("file", "old", 3);
    fail(PWRITE, 1, ENOSPC);
    CHECK_EQ(pybpe_vocab_save(v, "file", 2, &err), PYBPE_ERR_IO);
    CHECK(only_file_is("old"));
    pybpe_vocab_free(v);
}

/* ---------------------------------------------------------------------------------------------------
Reading, and the rest
*/

static void test_reading(void) {
    uint8_t data[SCRATCH_TOKENIZER_BYTES];
    pybpe_vocab *v = NULL;
    pybpe_error err;
    scratch_write("file", data, put_tokenizer(data));
    fail(FSTAT, 1, EIO);
    CHECK_EQ(pybpe_vocab_load(&v, "file", NULL, &err), PYBPE_ERR_IO);
    CHECK(strstr(err.msg, "file: cannot be examined") != NULL);
    fail(PREAD, 1, EIO);
    CHECK_EQ(pybpe_vocab_load(&v, "file", NULL, &err), PYBPE_ERR_IO);
    CHECK(strstr(err.msg, "file: cannot be read at offset 0") != NULL);
    CHECK_EQ(err.sys_errno, EIO);
    fail(PREAD, 1, EINTR);
    CHECK_EQ(pybpe_vocab_load(&v, "file", NULL, &err), PYBPE_OK);
    pybpe_vocab_free(v);
    fail(PREAD, 1, SHORT);
    CHECK_EQ(pybpe_vocab_load(&v, "file", NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_vocab_find(v, (const uint8_t *)"hello", 5, 0), 259);
    pybpe_vocab_free(v);
    scratch_clear();
}

/* What was read may be neither the old content nor the new one. */
static void test_reading_what_is_being_written(void) {
    static const struct timespec old[2] = {{1, 0}, {1, 0}}; /* the times of two writes may be equal otherwise */
    static const int how[] = {OVERWRITTEN, APPENDED};
    uint8_t data[SCRATCH_TOKENIZER_BYTES];
    pybpe_error err;
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        pybpe_vocab *v = NULL;
        scratch_write("file", data, put_tokenizer(data));
        CHECK_EQ(utimensat(AT_FDCWD, "file", old, 0), 0);
        CHECK_EQ(pybpe_vocab_load(&v, "file", NULL, &err), PYBPE_OK);
        pybpe_vocab_free(v);
        v = NULL;
        fail(PREAD, 1, how[i]);
        CHECK_EQ(pybpe_vocab_load(&v, "file", NULL, &err), PYBPE_ERR_IO);
        CHECK(v == NULL && strstr(err.msg, "file: somebody wrote to this file while it was read") != NULL);
        CHECK(err.sys_errno == ESTALE && err.offset == 0);
        fail(PREAD, 1, how[i]);
        CHECK_EQ(utimensat(AT_FDCWD, "file", old, 0), 0);
        CHECK_EQ(pybpe_vocab_load(&v, "file", NULL, NULL), PYBPE_ERR_IO);
    }
    scratch_write("file", data, put_tokenizer(data));
    uint64_t offsets[2], size;
    int64_t modified;
    pybpe_file_starts starts = {data, sizeof data, offsets, &size, &modified};
    pybpe_file_starts_read(&starts, "file", 1, 8, 0);
    CHECK(size == put_tokenizer(data) && offsets[1] == 8);
    fail(PREAD, 1, APPENDED);
    pybpe_file_starts_read(&starts, "file", 1, 8, 0);
    CHECK(size == UINT64_MAX && offsets[1] == 0);
    scratch_write("file", data, put_tokenizer(data));
    fail(FSTAT, 2, EIO);
    pybpe_vocab *v = NULL;
    CHECK_EQ(pybpe_vocab_load(&v, "file", NULL, &err), PYBPE_ERR_IO);
    CHECK(v == NULL && strstr(err.msg, "file: cannot be examined") != NULL);
    scratch_clear();
}

static void test_listing(void) {
    pybpe_loader *l = NULL;
    pybpe_error err;
    CHECK_EQ(pybpe_loader_new(&l, "*.bin", 1, 2, 0, 1, 0, NULL, &err), PYBPE_ERR_MEMORY);
    CHECK(l == NULL && strstr(err.msg, "*.bin") != NULL);
}

/* Without a random source the tables of words get another seed, which does not change any result. */
static void test_no_random_source(void) {
    pybpe_pretok *p = NULL;
    pybpe_counter *c = NULL;
    fail(ENTROPY, 1, ENOSYS);
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK); /* its counters share its seed */
    CHECK_EQ(faults[ENTROPY].left, 0);
    CHECK_EQ(pybpe_counter_new(&c, p, NULL, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add(c, (const uint8_t *)"a b a b a", 9, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_get_stats(c).words, 3);
    pybpe_counter_free(c);
    pybpe_pretok_free(p);
}

int main(void) {
    scratch_enter();
    const int next_file = scratch_next_file();
    test_writing();
    test_no_free_name();
    test_saving();
    test_reading();
    test_reading_what_is_being_written();
    test_listing();
    test_no_random_source();
    CHECK_EQ(scratch_next_file(), next_file); /* all are closed */
    scratch_leave();
    return check_report("test_system");
}

#else
int main(void) { return 0; }
#endif
