/*
The basis of every module: errors, the allocator, files.

Files are read with plain reads, not mapped: if someone truncates a mapped file, SIGBUS kills the process, and no error
code can report that. Files are written under a temporary name and renamed at the end, so that neither a crash nor a
full disk leaves half a file, and no reader sees one:

    open   NAME.pid-n.tmp   (O_EXCL, in the same folder, so that rename stays on one file system)
    write  ...
    fsync  the file         (the data is on the disk before the name points to it)
    rename to NAME          (atomic: POSIX)
    fsync  the folder       (the new name is on the disk)

If NAME is a symbolic link, all of this happens to the file that it points to, and the link stays.
*/
#include "base/base.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(_WIN32)
#include "win32/win32.h"
#else
#include <fcntl.h>
#if defined(__linux__)
#include <sys/mman.h> /* madvise */
#endif
#if defined(__APPLE__)
#include <sys/random.h> /* getentropy */
#endif
#include <sys/stat.h>
#include <unistd.h>
#define PYBPE_IS_SEPARATOR(c) ((c) == '/')
#if defined(__wasi__)
#define getpid() 0 /* WebAssembly has no processes */
#endif
#endif

const char *pybpe_version(void) { return PYBPE_VERSION; }

/* ---------------------------------------------------------------------------------------------------
Errors
*/

static void error_start(pybpe_error *err, int code, int sys_errno, uint64_t offset) {
    err->code = code;
    err->sys_errno = sys_errno;
    err->offset = offset;
    err->msg[0] = '\0';
}

/* The length of the printable character of UTF-8 at the start of a string that ends with NUL, or 0 if there is none. */
static size_t printable_length(const uint8_t *s) {
    if (byte_is_ascii(s[0])) {
        return s[0] >= ' ' && s[0] != 0x7F;
    }
    const size_t n = s[0] < 0xC2 || s[0] > 0xF4 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    const uint8_t least = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : s[0] == 0xC2 ? 0xA0 : 0x80;
    const uint8_t most = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    for (size_t i = 1; i < n; i++) {
        if (i == 1 ? s[1] < least || s[1] > most : !byte_is_continuation(s[i])) {
            return 0;
        }
    }
    return n;
}

/* Makes one line of UTF-8 of a message: parts of file names and of texts may be anything, and may be cut anywhere. Line
   ends and tabs become spaces. Any other byte that is no part of a printable character becomes \\xNN. */
static void error_end(pybpe_error *err) {
    char msg[sizeof err->msg];
    size_t at = 0;
    memcpy(msg, err->msg, sizeof msg);
    for (char *from = msg; *from != '\0';) {
        *from = strchr("\t\n\r", *from) != NULL ? ' ' : *from;
        const size_t n = printable_length((const uint8_t *)from);
        const size_t room = sizeof msg - 1 - at;
        if (n > room || (n == 0 && room < 4)) {
            break;
        }
        if (n == 0) {
            (void)snprintf(err->msg + at, 5, "\\x%02x", (unsigned)(uint8_t)*from);
        }
        memcpy(err->msg + at, from, n);
        at += n > 0 ? n : 4;
        from += n > 0 ? n : 1;
    }
    err->msg[at] = '\0';
}

void error_fill(pybpe_error *err, int code, uint64_t offset, const char *format, ...) {
    if (err != NULL) {
        error_start(err, code, 0, offset);
        va_list args;
        va_start(args, format);
        (void)vsnprintf(err->msg, sizeof err->msg, format, args);
        va_end(args);
        error_end(err);
    }
}

void error_fill_errno(pybpe_error *err, int sys_errno, const char *format, ...) {
    if (err != NULL) {
        error_start(err, PYBPE_ERR_IO, sys_errno, 0);
        va_list args;
        va_start(args, format);
        (void)vsnprintf(err->msg, sizeof err->msg, format, args);
        va_end(args);
        /* strerror is not thread-safe. strerror_r is, but it has two forms: glibc's (with _GNU_SOURCE) returns the text,
           and the POSIX form fills the buffer. */
        char text[128] = "unknown error";
#if defined(__GLIBC__)
        const char *reason = strerror_r(sys_errno, text, sizeof text);
#else
        strerror_r(sys_errno, text, sizeof text);
        const char *reason = text;
#endif
        const size_t used = strlen(err->msg);
        (void)snprintf(err->msg + used, sizeof err->msg - used, ": %s", reason);
        error_end(err);
    }
}

void error_fill_memory(pybpe_error *err, const char *what, size_t n) {
    error_fill(err, PYBPE_ERR_MEMORY, 0, "out of memory: %zu bytes for %s could not be allocated", n, what);
}

int array_check(const void *items, size_t count, const char *what, pybpe_error *err) {
    if (items == NULL && count > 0) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "%s are NULL, but there are %zu", what, count);
    }
    return PYBPE_OK;
}

int strings_check(const pybpe_strings *strings, const char *what, pybpe_error *err) {
    if (strings->count == 0) {
        return PYBPE_OK;
    }
    if (strings->offsets == NULL) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "the offsets of %s are NULL, but there are %zu", what,
                         strings->count);
    }
    if (strings->offsets[0] != 0) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "the offsets of %s start at %llu; expected 0", what,
                         (unsigned long long)strings->offsets[0]);
    }
    for (size_t i = 0; i < strings->count; i++) {
        if (strings->offsets[i + 1] < strings->offsets[i]) {
            return error_set(err, PYBPE_ERR_VALUE, i, "the offsets of %s decrease after index %zu; they must ascend",
                             what, i);
        }
    }
    if (strings->offsets[strings->count] > SIZE_MAX) { /* LCOV_EXCL_START: only where size_t has 32 bits */
        return error_set(err, PYBPE_ERR_LIMIT, strings->count - 1, "%s have %llu bytes; this machine can address %zu",
                         what, (unsigned long long)strings->offsets[strings->count], (size_t)SIZE_MAX);
    } /* LCOV_EXCL_STOP */
    if (strings->bytes == NULL && strings->offsets[strings->count] > 0) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "the bytes of %s are NULL, but the offsets say there are some", what);
    }
    return PYBPE_OK;
}

/* ---------------------------------------------------------------------------------------------------
Memory
*/

static void *malloc_resize(void *context, void *ptr, size_t size) {
    (void)context;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return ptr == NULL ? malloc(size) : realloc(ptr, size); /* realloc would be enough, but gcc's analyzer does not
    accept NULL */
}

pybpe_allocator mem_of(const pybpe_allocator *mem) {
    return mem != NULL ? *mem : (pybpe_allocator){malloc_resize, NULL};
}

static void *mem_resize(const pybpe_allocator *mem, void *ptr, size_t n) {
    return mem != NULL ? mem->resize(mem->context, ptr, n) : malloc_resize(NULL, ptr, n);
}

void *mem_alloc(const pybpe_allocator *mem, size_t n) { return n == 0 ? NULL : mem_resize(mem, NULL, n); }

void *mem_alloc_array(const pybpe_allocator *mem, size_t count, size_t size) {
    size_t n;
    return size_mul(count, size, &n) ? mem_alloc(mem, n) : NULL;
}

void *mem_alloc_zeroed(const pybpe_allocator *mem, size_t count, size_t size) {
    if (mem == NULL || mem->resize == malloc_resize) { /* calloc knows which pages are zero already */
        size_t n;
        return size_mul(count, size, &n) && n > 0 ? calloc(count, size) : NULL;
    }
    void *ptr = mem_alloc_array(mem, count, size);
    if (ptr != NULL) {
        memset(ptr, 0, count * size);
    }
    return ptr;
}

void *mem_resize_array(const pybpe_allocator *mem, void *ptr, size_t count, size_t size) {
    size_t n;
    return size_mul(count, size, &n) && n > 0 ? mem_resize(mem, ptr, n) : NULL;
}

void *mem_grow(const pybpe_allocator *mem, void *items, size_t *room, size_t need, size_t size) {
    size_t more = *room + *room / 2;
    more = more > need ? more : need;
    more = more > 64 ? more : 64;
    void *grown = mem_resize_array(mem, items, more, size);
    if (grown != NULL) {
        *room = more;
    }
    return grown;
}

void mem_free(const pybpe_allocator *mem, void *ptr) {
    if (ptr != NULL) {
        mem_resize(mem, ptr, 0);
    }
}

enum { TABLE_ALIGN = 64, TABLE_HUGE_PAGE = 2 << 20, TABLE_LARGE = 16 << 20, TABLE_POPULATED = 256 << 10 };

/* Asks the system for all pages of a part of a table at once, which takes half as long as one at a time. Without this,
   the first accesses are slower, not wrong. */
static void mem_table_populate(void *part, size_t n) {
#if defined(MADV_HUGEPAGE)
    const int populate_write = 23; /* MADV_POPULATE_WRITE of Linux 5.14. Headers may be older */
    const uintptr_t page = 4096, start = ((uintptr_t)part + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)part + n) & ~(page - 1);
    if (n >= TABLE_POPULATED) {
        madvise((uint8_t *)part + (start - (uintptr_t)part), end - start, populate_write);
    }
#else
    (void)part;
    (void)n;
#endif
}

/* Sets t->data to the first aligned byte of the block. */
static void mem_table_align(mem_table *t, size_t align) {
    uintptr_t address = ((uintptr_t)t->block + align - 1) & ~(uintptr_t)(align - 1);
    t->data = (uint8_t *)t->block + (address - (uintptr_t)t->block);
}

/* Makes a table of n bytes of huge pages: on pages of 4 KiB, a lookup in a table much larger than the TLB reaches costs a
   TLB miss. They must be requested before the first access, so the pages are new ones from the system. Smaller tables do
   not have them, because they are a risk: where a virtual machine returns free memory to its host, the first access to
   one can take 18 ms. Returns false if the table has to come from the allocator. */
static bool mem_table_map(mem_table *t, const pybpe_allocator *mem, size_t n) {
#if defined(MADV_HUGEPAGE)
    if (n >= TABLE_LARGE && (mem == NULL || mem->resize == malloc_resize)) {
        void *pages = mmap(NULL, n + TABLE_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages != MAP_FAILED) { /* mem_table_free must not unmap NULL: where a program begins low, that unmaps it */
            t->block = pages;
            t->mapped = n + TABLE_HUGE_PAGE;
            mem_table_align(t, TABLE_HUGE_PAGE);
            madvise(t->data, n, MADV_HUGEPAGE);
        }
        return true;
    }
#endif
    (void)t;
    (void)mem;
    (void)n;
    return false;
}

static bool mem_table_make(mem_table *t, const pybpe_allocator *mem, size_t count, size_t size, bool zeroed) {
    size_t n;
    *t = (mem_table){0};
    if (!size_mul(count, size, &n) || n == 0 || n > SIZE_MAX - TABLE_HUGE_PAGE) {
        return false;
    }
    if (!mem_table_map(t, mem, n)) {
        t->block = zeroed ? mem_alloc_zeroed(mem, n + TABLE_ALIGN, 1) : mem_alloc(mem, n + TABLE_ALIGN);
        if (t->block != NULL) {
            mem_table_align(t, TABLE_ALIGN);
            mem_table_populate(t->data, n);
        }
    }
    return t->block != NULL;
}

bool mem_table_alloc(mem_table *t, const pybpe_allocator *mem, size_t count, size_t size) {
    return mem_table_make(t, mem, count, size, false);
}

bool mem_table_alloc_zeroed(mem_table *t, const pybpe_allocator *mem, size_t count, size_t size) {
    return mem_table_make(t, mem, count, size, true);
}

bool mem_table_grow(mem_table *t, const pybpe_allocator *mem, size_t from, size_t to) {
    if (t->mapped > 0 || to >= TABLE_LARGE) {
        return false;
    }
    const size_t before = (size_t)((uint8_t *)t->data - (uint8_t *)t->block);
    void *block = mem_resize(mem, t->block, to + TABLE_ALIGN);
    if (block == NULL) {
        return false;
    }
    t->block = block;
    mem_table_align(t, TABLE_ALIGN);
    if ((uint8_t *)t->data != (uint8_t *)block + before) {
        memmove(t->data, (uint8_t *)block + before, from);
    }
    mem_table_populate((uint8_t *)t->data + from, to - from);
    return true;
}

void mem_table_free(mem_table *t, const pybpe_allocator *mem) {
#if defined(MADV_HUGEPAGE)
    if (t->mapped > 0) {
        munmap(t->block, t->mapped);
        t->block = NULL;
    }
#endif
    mem_free(mem, t->block);
    *t = (mem_table){0};
}

hash_seed hash_seed_draw(void) {
    hash_seed seed = {0, 0};
    if (getentropy(&seed, sizeof seed) != 0) { /* no random source: use the clock and an address, which are hard to
    guess */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed.a = (uint64_t)now.tv_nsec * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)now.tv_sec;
        seed.b = (uint64_t)(uintptr_t)&seed * UINT64_C(0xD1B54A32D192ED03) ^ seed.a;
    }
    return seed;
}

/* ---------------------------------------------------------------------------------------------------
Reading
*/

/* A signal may interrupt an open on a network file system. */
static int retry_open(const char *path, int flags) {
    int fd;
    do {
        fd = open(path, flags);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static int64_t modified_ns(const struct stat *st) {
#if defined(_WIN32)
    return st->st_modified;
#elif defined(__APPLE__)
    return (int64_t)st->st_mtimespec.tv_sec * INT64_C(1000000000) + (int64_t)st->st_mtimespec.tv_nsec;
#else
    return (int64_t)st->st_mtim.tv_sec * INT64_C(1000000000) + (int64_t)st->st_mtim.tv_nsec;
#endif
}

int file_in_open(file_in *f, const char *path, pybpe_error *err) {
    /* O_NONBLOCK: opening a FIFO without a writer would block forever. The flag has no effect on regular files. */
    *f = (file_in){-1, 0, 0};
    int fd = retry_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return error_set_errno(err, errno, "%s: cannot be opened", path);
    }
    struct stat st;
    int code = PYBPE_OK;
    if (fstat(fd, &st) != 0) {
        code = error_set_errno(err, errno, "%s: cannot be examined", path);
    } else if (S_ISDIR(st.st_mode)) {
        code = error_set_errno(err, EISDIR, "%s: expected a file", path);
    } else if (!S_ISREG(st.st_mode)) {
        code = error_set_errno(err, EINVAL, "%s: expected a regular file, not a pipe or device", path);
    }
    if (code != PYBPE_OK) {
        close(fd);
        return code;
    }
    *f = (file_in){fd, (uint64_t)st.st_size, modified_ns(&st)};
    return PYBPE_OK;
}

int file_in_read(const file_in *f, const char *path, uint64_t offset, void *data, size_t n, pybpe_error *err) {
    uint8_t *to = data;
    while (n > 0) {
        const size_t most = (size_t)1 << 30; /* systems limit a call, Linux to 2^31 - 4096 bytes */
        size_t want = n < most ? n : most;   /* LCOV_EXCL_BR_LINE: a test would write or read more than 1 GiB at once */
        ssize_t got = pread(f->fd, to, want, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return error_set_errno(err, errno, "%s: cannot be read at offset %llu", path, (unsigned long long)offset);
        }
        if (got == 0) {
            return error_set(
                err, PYBPE_ERR_FORMAT, offset,
                "%s: the file ends at offset %llu, %zu bytes too early; it was cut off or is being written", path,
                (unsigned long long)offset, n);
        }
        to += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return PYBPE_OK;
}

void file_in_close(file_in *f) {
    if (f->fd >= 0) {
        close(f->fd);
        f->fd = -1;
    }
}

int file_in_check(const file_in *f, const char *path, pybpe_error *err) {
    struct stat st;
    if (fstat(f->fd, &st) != 0) {
        return error_set_errno(err, errno, "%s: cannot be examined", path);
    }
    if ((uint64_t)st.st_size != f->size || modified_ns(&st) != f->modified) {
        error_fill(err, PYBPE_ERR_IO, 0, "%s: somebody wrote to this file while it was read", path);
        if (err != NULL) {
            err->sys_errno = ESTALE;
        }
        return PYBPE_ERR_IO;
    }
    return PYBPE_OK;
}

int file_read_all(const char *path, uint8_t **data, size_t *n, const pybpe_allocator *mem, pybpe_error *err) {
    file_in f;
    PYBPE_TRY(file_in_open(&f, path, err));
    uint8_t *bytes = NULL;
    int code = PYBPE_OK;
    if (f.size > SIZE_MAX) { /* LCOV_EXCL_BR_LINE: 32 bits only */
        code = error_set(err, PYBPE_ERR_LIMIT, 0, "%s: too large for memory", path); /* LCOV_EXCL_LINE: 32 bits only */
    } else if (f.size > 0) {
        bytes = mem_alloc(mem, (size_t)f.size);
        code = bytes == NULL ? error_set_memory(err, path, (size_t)f.size)
                             : file_in_read(&f, path, 0, bytes, (size_t)f.size, err);
    }
    code = code == PYBPE_OK ? file_in_check(&f, path, err) : code;
    file_in_close(&f);
    if (code != PYBPE_OK) {
        mem_free(mem, bytes);
        return code;
    }
    *data = bytes;
    *n = (size_t)f.size;
    return PYBPE_OK;
}

/* Opens a regular file. Opening a pipe wakes the program that waits to write to it, whose bytes are lost when the pipe
   is closed. So unless the file is `known` to be regular, or if it is a link now, this looks first. Returns -1 for any
   other file. */
static int open_regular(const char *path, bool known) {
    struct stat st;
    int fd = known ? retry_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW) : -1;
    if (fd < 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        fd = retry_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    return fd;
}

/* Reads the start of a file, `most` bytes, if these fit into the room. Returns its length, and the file's size and time
   of the last write, or 0, and a size of UINT64_MAX. */
static size_t start_read(int fd, uint8_t *bytes, size_t room, size_t most, uint64_t *size, int64_t *modified) {
    struct stat st;
    *size = UINT64_MAX;
    *modified = 0;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return 0;
    }
    const file_in f = {fd, (uint64_t)st.st_size, modified_ns(&st)};
    uint8_t unexpected;
    const size_t want = f.size < most ? (size_t)f.size : most;
    /* In /proc, files that have no size have content. */
    const bool is_right = f.size > 0 ? want <= room && file_in_read(&f, "", 0, bytes, want, NULL) == PYBPE_OK
                                     : file_in_read(&f, "", 0, &unexpected, 1, NULL) == PYBPE_ERR_FORMAT;
    if (!is_right || file_in_check(&f, "", NULL) != PYBPE_OK) {
        return 0;
    }
    *size = f.size;
    *modified = f.modified;
    return want;
}

void pybpe_file_starts_read(pybpe_file_starts *out, const char *paths, size_t count, size_t most, int known) {
    out->offsets[0] = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t at = (size_t)out->offsets[i];
        const int fd = open_regular(paths, known != 0);
        out->offsets[i + 1] =
            at + start_read(fd, out->bytes + at, out->room - at, most, &out->sizes[i], &out->modified[i]);
        if (fd >= 0) {
            close(fd);
        }
        paths += strlen(paths) + 1;
    }
}

/* ---------------------------------------------------------------------------------------------------
Writing
*/

struct pybpe_output {
    pybpe_allocator mem;
    int fd;
    int failed;    /* the code of an error after which the file is not what the caller wrote, or PYBPE_OK */
    uint64_t size; /* bytes written so far */
    char *path;    /* as the caller named the file */
    char *target;  /* the name that the file gets: the path, or what it is a link to */
    char *temp;    /* its name until then */
};

static char *string_copy(const pybpe_allocator *mem, const char *s, size_t room) {
    size_t n = strlen(s) + 1;
    char *copy = mem_alloc(mem, n + room);
    if (copy != NULL) {
        memcpy(copy, s, n);
    }
    return copy;
}

/* The name that a symbolic link leads to where nothing is, through other links if there are some. Windows does not say. */
static bool link_follow(const char *path, char resolved[PATH_MAX]) {
    enum { LINKS_MAX = 40 };
    char link[PATH_MAX];
    errno = ENAMETOOLONG;
    if (strlen(path) >= PATH_MAX) {
        return false;
    }
    memcpy(resolved, path, strlen(path) + 1);
    for (int i = 0; i < LINKS_MAX; i++) {
        const ssize_t n = readlink(resolved, link, sizeof link);
        if (n < 0) {
            return true;
        }
        char *slash = strrchr(resolved, '/');
        char *to = link[0] == '/' || slash == NULL ? resolved : slash + 1;
        if ((size_t)(to - resolved) + (size_t)n >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(to, link, (size_t)n);
        to[n] = '\0';
    }
    errno = ELOOP;
    return false;
}

/* The final name of a file that is written to `path`. Renaming onto a link would replace the link. /dev/stdout is a
   link to the stream's entry in /proc, and a file cannot replace a stream. */
static int output_target(const char *path, char resolved[PATH_MAX], const char **target, pybpe_error *err) {
    char link[PATH_MAX];
    ssize_t n = readlink(path, link, sizeof link);
    *target = path;
    if (n < 0) {
        return PYBPE_OK; /* not a link, or nothing is there */
    }
    if ((n > 6 && memcmp(link, "/proc/", 6) == 0) || strncmp(path, "/proc/", 6) == 0 ||
        strncmp(path, "/dev/fd/", 8) == 0) {
        return error_set_errno(err, EINVAL, "%s: cannot be written: it is an open stream, not a file", path);
    }
    if (realpath(path, resolved) != NULL || link_follow(path, resolved)) {
        *target = resolved;
        return PYBPE_OK;
    }
    return error_set_errno(err, errno, "%s: cannot be written: the symbolic link leads to no name", path);
}

/* Where the suffix of a temporary name, of `room` bytes, goes: after the target's name, or after as many whole
   characters of it as the file system's limit on names allows. */
static size_t temp_base(const char *target, size_t room) {
    const char *name = target;
    for (const char *at = target; *at != '\0'; at++) {
        name = PYBPE_IS_SEPARATOR(*at) ? at + 1 : name;
    }
    size_t length = strlen(name), most = NAME_MAX - room;
    if (length > most && length <= NAME_MAX) { /* refuse a longer one now, not when the file is complete */
        for (length = most; length > 0 && byte_is_continuation((uint8_t)name[length]); length--) {
        }
    }
    return (size_t)(name - target) + length;
}

/* Opens a file with a new name in the folder of o->target. It tries several names, since another thread or process
   may be writing the same path: the last to commit wins, and neither damages the other's file. The file gets the
   mode of the file that it will replace, if there is one, so that users who cannot read the old file cannot read the
   new one. */
static int output_open_temp(pybpe_output *o, size_t room, const struct stat *replaced, pybpe_error *err) {
    size_t base = temp_base(o->target, room);
    int sys_errno = 0;
    for (unsigned attempt = 0; attempt < 10000; attempt++) {
        (void)snprintf(o->temp + base, room, ".%ld-%u.tmp", (long)getpid(), attempt);
        o->fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaced == NULL ? 0666 : 0600);
        if (o->fd >= 0) {
            if (replaced != NULL) {
                (void)fchmod(o->fd, replaced->st_mode & 0777); /* some file systems have no modes */
            }
            return PYBPE_OK;
        }
        sys_errno = errno;
        if (sys_errno != EEXIST && sys_errno != EINTR) {
            break;
        }
    }
    o->temp[base] = '\0'; /* there is no temporary file of this output: _discard must not remove another one's */
    return error_set_errno(err, sys_errno, "%s: cannot be written: no file can be created in its folder", o->path);
}

int pybpe_output_open(pybpe_output **out, const char *path, const pybpe_allocator *mem, pybpe_error *err) {
    const size_t room = 40; /* ".pid-attempt.tmp" */
    *out = NULL;
    if (path[0] == '\0') { /* a temporary file next to it could be opened, but never renamed to it */
        return error_set_errno(err, ENOENT, "the name of a file to be written is empty");
    }
    struct stat st;
    const bool replaces = stat(path, &st) == 0;
    if (replaces && !S_ISREG(st.st_mode)) {
        /* rename would replace a device or a pipe, such as /dev/null, with a file. */
        return error_set_errno(err, S_ISDIR(st.st_mode) ? EISDIR : EINVAL, "%s: cannot be written: not a regular file",
                               path);
    }
    char resolved[PATH_MAX];
    const char *target;
    PYBPE_TRY(output_target(path, resolved, &target, err));
    pybpe_output *o = mem_alloc(mem, sizeof *o);
    PYBPE_TRY(memory_check(o, "an output file", sizeof *o, err));
    *o = (pybpe_output){.mem = mem_of(mem), .fd = -1};
    o->path = string_copy(mem, path, 0);
    o->target = string_copy(mem, target, 0);
    o->temp = string_copy(mem, target, room);
    int code = o->path == NULL || o->target == NULL || o->temp == NULL
                   ? error_set_memory(err, "a file name", strlen(target) + room)
                   : output_open_temp(o, room, replaces ? &st : NULL, err);
    if (code != PYBPE_OK) {
        pybpe_output_discard(o);
        return code;
    }
    *out = o;
    return PYBPE_OK;
}

static int output_check(const pybpe_output *o, pybpe_error *err) {
    if (o->failed != PYBPE_OK) {
        return error_set(err, o->failed, 0, "%s: an earlier write failed: discard this file", o->path);
    }
    return PYBPE_OK;
}

static int output_write_at(pybpe_output *o, uint64_t offset, const void *data, size_t n, pybpe_error *err) {
    const uint8_t *from = data;
    PYBPE_TRY(output_check(o, err));
    while (n > 0) {
        const size_t most = (size_t)1 << 30; /* systems limit a call, Linux to 2^31 - 4096 bytes */
        size_t want = n < most ? n : most;   /* LCOV_EXCL_BR_LINE: a test would write or read more than 1 GiB at once */
        ssize_t put = pwrite(o->fd, from, want, (off_t)offset);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            o->failed = error_set_errno(err, errno, "%s: cannot be written at offset %llu, %zu bytes are missing",
                                        o->path, (unsigned long long)offset, n);
            return o->failed;
        }
        from += put;
        offset += (uint64_t)put;
        n -= (size_t)put;
    }
    return PYBPE_OK;
}

int pybpe_output_write(pybpe_output *o, const void *data, size_t n, pybpe_error *err) {
    int code = output_write_at(o, o->size, data, n, err);
    if (code == PYBPE_OK) {
        o->size += n;
    }
    return code;
}

int pybpe_output_patch(pybpe_output *o, uint64_t offset, const void *data, size_t n, pybpe_error *err) {
    if (offset > o->size || n > o->size - offset) {
        return error_set(err, PYBPE_ERR_VALUE, offset,
                         "%s: a patch of %zu bytes at offset %llu extends past what was written", o->path, n,
                         (unsigned long long)offset);
    }
    return output_write_at(o, offset, data, n, err);
}

static int retry_fsync(int fd) {
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

#if defined(_WIN32)
static int folder_sync(pybpe_output *o, pybpe_error *err) { /* rename did */
    (void)o;
    (void)err;
    return PYBPE_OK;
}
#else
/* Flushes the folder of `path`, so that the rename in it survives a power loss. */
static int folder_sync(pybpe_output *o, pybpe_error *err) {
    char *slash = strrchr(o->temp, '/'); /* temp is no longer needed: it becomes the folder's name */
    if (slash == NULL) {
        memcpy(o->temp, ".", 2);
    } else {
        slash[slash == o->temp] = '\0';
    }
    int fd = retry_open(o->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return error_set_errno(err, errno, "%s: its folder cannot be opened to be flushed", o->path);
    }
    int result = retry_fsync(fd);
    int sync_errno = errno;
    close(fd);
    /* Some file systems cannot flush a folder and report that. There the rename is as durable as possible. */
    if (result != 0 && sync_errno != EINVAL && sync_errno != ENOTSUP) {
        return error_set_errno(err, sync_errno, "%s: its folder cannot be flushed", o->path);
    }
    return PYBPE_OK;
}
#endif

static void output_free(pybpe_output *o) {
    pybpe_allocator mem = o->mem;
    mem_free(&mem, o->path);
    mem_free(&mem, o->target);
    mem_free(&mem, o->temp);
    mem_free(&mem, o);
}

int pybpe_output_commit(pybpe_output *o, pybpe_error *err) {
    int code = output_check(o, err);
    if (code == PYBPE_OK && retry_fsync(o->fd) != 0) {
        code = error_set_errno(err, errno, "%s: cannot be flushed to the disk", o->path);
    }
    int closed = close(o->fd);
    o->fd = -1;
    if (code == PYBPE_OK && closed != 0 && errno != EINTR) {
        code = error_set_errno(err, errno, "%s: cannot be closed", o->path);
    }
    if (code == PYBPE_OK && rename(o->temp, o->target) != 0) {
        code = error_set_errno(err, errno, "%s: the finished file cannot be given its name", o->path);
    }
    if (code != PYBPE_OK) {
        pybpe_output_discard(o);
        return code;
    }
    code = folder_sync(o, err);
    output_free(o);
    return code;
}

void pybpe_output_discard(pybpe_output *o) {
    if (o == NULL) {
        return;
    }
    if (o->fd >= 0) {
        close(o->fd);
    }
    if (o->temp != NULL && o->target != NULL && strlen(o->temp) > strlen(o->target)) {
        unlink(o->temp);
    }
    output_free(o);
}
