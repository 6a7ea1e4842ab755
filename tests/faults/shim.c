/*
Makes system calls and allocations fail on demand. Preloaded (LD_PRELOAD) into a Python process, whose test then
arms it through ctypes (shim.py). Linux with glibc.

Files: only calls that concern paths below one watched folder count, so that Python's own imports are not disturbed.
The n-th call of the chosen kinds fails once, or it and all after it; or it is short; or the process dies before or
after it. Every counted call is noted in a log, in which a test finds the order of write, fsync and rename.

Memory: the n-th allocation that _core.so asks for fails, once or for good. And all allocations are measured, for the
peak of a call.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum kind {
    OPEN = 1,
    READ = 2,
    WRITE = 4,
    SYNC = 8,
    CLOSE = 16,
    RENAME = 32,
    UNLINK = 64,
    TRUNCATE = 128,
    OPEN_READ = 256
};
enum action { FAIL_ONCE, FAIL_ON, SHORT, DIE_BEFORE, DIE_AFTER };
enum { FDS = 4096, LOG_BYTES = 1 << 22 };

static char watched[4096];
static char names[FDS][512]; /* of open watched files, by descriptor */
static bool is_written[FDS]; /* open for writing */
static char log_text[LOG_BYTES];
static atomic_size_t log_used;
static int armed_kinds, armed_action, armed_errno;
static long armed_at, calls, fired;

#define REAL(name, ...)                                                                                                \
    static __typeof__(name) *real;                                                                                     \
    if (real == NULL) {                                                                                                \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);                                                            \
    }

/* ---------------------------------------------------------------------------------------------------
What the test calls
*/

void fault_watch(const char *folder) { snprintf(watched, sizeof watched, "%s", folder); }

void fault_arm(int kinds, long at, int action, int error) {
    armed_kinds = kinds;
    armed_at = at;
    armed_action = action;
    armed_errno = error;
    calls = fired = 0;
}

long fault_fired(void) { return fired; }

const char *fault_log(void) { return log_text; }
void fault_log_clear(void) {
    memset(log_text, 0, sizeof log_text);
    log_used = 0;
}

/* ---------------------------------------------------------------------------------------------------
Files
*/

static bool is_watched(const char *path) {
    return watched[0] != '\0' && path != NULL && strncmp(path, watched, strlen(watched)) == 0;
}

static const char *name_of(int fd) { return fd >= 0 && fd < FDS && names[fd][0] != '\0' ? names[fd] : NULL; }

/* Several threads may do this at the same time, so each reserves its place first. */
static void note(const char *what, const char *path, const char *other) {
    char line[1 << 14];
    int n = snprintf(line, sizeof line, "%s\t%s\t%s\n", what, path, other);
    size_t at = n > 0 && (size_t)n < sizeof line ? atomic_fetch_add(&log_used, (size_t)n) : LOG_BYTES;
    if (at < LOG_BYTES && (size_t)n < LOG_BYTES - at) {
        memcpy(log_text + at, line, (size_t)n);
    }
}

/* Counts a call. Returns whether it is to fail (errno is set then); *is_short if it is to do half. */
static bool fails(int kind, bool *is_short) {
    if ((armed_kinds & kind) == 0) {
        return false;
    }
    calls += 1;
    if (calls < armed_at || (calls > armed_at && armed_action != FAIL_ON)) {
        return false;
    }
    fired += 1;
    if (armed_action == DIE_BEFORE) {
        kill(getpid(), SIGKILL);
    }
    if (armed_action == SHORT) {
        *is_short = true;
    }
    if (armed_action == SHORT || armed_action == DIE_AFTER) {
        return false;
    }
    errno = armed_errno;
    return true;
}

static void after(int kind) {
    if (armed_action == DIE_AFTER && (armed_kinds & kind) != 0 && calls == armed_at) {
        kill(getpid(), SIGKILL);
    }
}

static int open_kind(int flags) { return flags & (O_WRONLY | O_RDWR) ? OPEN : OPEN_READ; }

static int opened(int fd, const char *path, int flags) {
    if (fd >= 0 && fd < FDS) {
        snprintf(names[fd], sizeof names[fd], "%s", path);
        is_written[fd] = open_kind(flags) == OPEN;
        note(is_written[fd] ? "open-write" : "open-read", path, "");
    }
    after(open_kind(flags));
    return fd;
}

#define OPEN_BODY(function, ...)                                                                                       \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                                             \
        va_list args;                                                                                                  \
        va_start(args, flags);                                                                                         \
        mode = va_arg(args, mode_t);                                                                                   \
        va_end(args);                                                                                                  \
    }                                                                                                                  \
    REAL(function)                                                                                                     \
    if (!is_watched(path)) {                                                                                           \
        return real(__VA_ARGS__, mode);                                                                                \
    }                                                                                                                  \
    bool half = false;                                                                                                 \
    return fails(open_kind(flags), &half) ? -1 : opened(real(__VA_ARGS__, mode), path, flags);

int open(const char *path, int flags, ...) { OPEN_BODY(open, path, flags) }
int open64(const char *path, int flags, ...) { OPEN_BODY(open64, path, flags) }
int openat(int at, const char *path, int flags, ...) { OPEN_BODY(openat, at, path, flags) }
int openat64(int at, const char *path, int flags, ...){OPEN_BODY(openat64, at, path, flags)}

/* A call on an open file that moves n bytes: all, half of them, or none. */
#define TRANSFER(kind, what, function, n, ...)                                                                         \
    REAL(function)                                                                                                     \
    const char *name = name_of(fd);                                                                                    \
    bool half = false;                                                                                                 \
    if (name == NULL) {                                                                                                \
        return real(__VA_ARGS__);                                                                                      \
    }                                                                                                                  \
    if (fails(kind, &half)) {                                                                                          \
        return -1;                                                                                                     \
    }                                                                                                                  \
    if (half && n > 1) {                                                                                               \
        n /= 2;                                                                                                        \
    }                                                                                                                  \
    ssize_t moved = real(__VA_ARGS__);                                                                                 \
    note(what, name, "");                                                                                              \
    after(kind);                                                                                                       \
    return moved;

ssize_t read(int fd, void *data, size_t n){TRANSFER(READ, "read", read, n, fd, data, n)} ssize_t
    pread(int fd, void *data, size_t n, off_t at){TRANSFER(READ, "read", pread, n, fd, data, n, at)} ssize_t
    pread64(int fd, void *data, size_t n, off64_t at){TRANSFER(READ, "read", pread64, n, fd, data, n, at)} ssize_t
    write(int fd, const void *data, size_t n){TRANSFER(WRITE, "write", write, n, fd, data, n)} ssize_t
    pwrite(int fd, const void *data, size_t n, off_t at){TRANSFER(WRITE, "write", pwrite, n, fd, data, n, at)} ssize_t
    pwrite64(int fd, const void *data, size_t n, off64_t at){TRANSFER(WRITE, "write", pwrite64, n, fd, data, n, at)}

/* A call that happens or does not. */
#define SIMPLE(kind, what, function, name, other, ...)                                                                 \
    REAL(function)                                                                                                     \
    bool half = false;                                                                                                 \
    if (name == NULL) {                                                                                                \
        return real(__VA_ARGS__);                                                                                      \
    }                                                                                                                  \
    if (fails(kind, &half)) {                                                                                          \
        return -1;                                                                                                     \
    }                                                                                                                  \
    int result = real(__VA_ARGS__);                                                                                    \
    if (result == 0) {                                                                                                 \
        note(what, name, other);                                                                                       \
    }                                                                                                                  \
    after(kind);                                                                                                       \
    return result;

int fsync(int fd) {
    const char *name = name_of(fd);
    SIMPLE(SYNC, "fsync", fsync, name, "", fd)
}
int fdatasync(int fd) {
    const char *name = name_of(fd);
    SIMPLE(SYNC, "fsync", fdatasync, name, "", fd)
}
int ftruncate(int fd, off_t size) {
    const char *name = name_of(fd);
    SIMPLE(TRUNCATE, "write", ftruncate, name, "", fd, size)
}
int ftruncate64(int fd, off64_t size) {
    const char *name = name_of(fd);
    SIMPLE(TRUNCATE, "write", ftruncate64, name, "", fd, size)
}
int truncate(const char *path, off_t size) {
    const char *name = is_watched(path) ? path : NULL;
    SIMPLE(TRUNCATE, "write", truncate, name, "", path, size)
}
int truncate64(const char *path, off64_t size) {
    const char *name = is_watched(path) ? path : NULL;
    SIMPLE(TRUNCATE, "write", truncate64, name, "", path, size)
}
int rename(const char *from, const char *to) {
    const char *name = is_watched(to) ? from : NULL;
    SIMPLE(RENAME, "rename", rename, name, to, from, to)
}
int unlink(const char *path) {
    const char *name = is_watched(path) ? path : NULL;
    SIMPLE(UNLINK, "unlink", unlink, name, "", path)
}

/* A close that fails has closed the descriptor all the same: so it is on Linux. It does only after writing. */
int close(int fd) {
    REAL(close)
    bool half = false;
    if (name_of(fd) == NULL) {
        return real(fd);
    }
    bool failing = is_written[fd] && fails(CLOSE, &half);
    int error = errno;
    names[fd][0] = '\0';
    int result = real(fd);
    if (is_written[fd]) {
        after(CLOSE);
    }
    if (failing) {
        errno = error;
        return -1;
    }
    return result;
}

/* ---------------------------------------------------------------------------------------------------
Memory
*/

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static atomic_long memory_now, memory_peak;
static uintptr_t core_start, core_end; /* where _core.so's code is */
static atomic_long grants = -1;        /* allocations of _core.so that are still granted; -1: all */
static bool for_good;
static atomic_long refused;

void fault_core(uintptr_t start, uintptr_t end) {
    core_start = start;
    core_end = end;
}
void fault_memory(long granted, int good) {
    refused = 0;
    for_good = good;
    grants = granted;
}
long fault_refused(void) { return refused; }
long fault_memory_now(void) { return memory_now; }
long fault_memory_peak(void) { return memory_peak; }
void fault_memory_reset_peak(void) { memory_peak = atomic_load(&memory_now); }

static bool refuses(const void *caller) {
    uintptr_t at = (uintptr_t)caller;
    if (grants < 0 || at < core_start || at >= core_end) {
        return false;
    }
    if (atomic_fetch_sub(&grants, 1) > 0) {
        return false;
    }
    grants = for_good ? 0 : -1;
    refused += 1;
    return true;
}

static void *gained(void *ptr) {
    if (ptr != NULL) {
        long now = atomic_fetch_add(&memory_now, (long)malloc_usable_size(ptr)) + (long)malloc_usable_size(ptr);
        long peak = memory_peak;
        while (now > peak && !atomic_compare_exchange_weak(&memory_peak, &peak, now)) {
        }
    }
    return ptr;
}

static void lost(size_t size) { memory_now -= (long)size; }

void *malloc(size_t n) { return refuses(__builtin_return_address(0)) ? NULL : gained(__libc_malloc(n)); }

void *calloc(size_t count, size_t n) {
    return refuses(__builtin_return_address(0)) ? NULL : gained(__libc_calloc(count, n));
}

void *realloc(void *ptr, size_t n) {
    if (n > 0 && refuses(__builtin_return_address(0))) {
        return NULL;
    }
    size_t before = ptr != NULL ? malloc_usable_size(ptr) : 0;
    void *moved = __libc_realloc(ptr, n);
    if (moved != NULL || n == 0) {
        lost(before);
        gained(moved);
    }
    return moved;
}

void free(void *ptr) {
    if (ptr != NULL) {
        lost(malloc_usable_size(ptr));
        __libc_free(ptr);
    }
}
