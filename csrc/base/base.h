/*
The basis of every module: errors, the allocator, checked sizes, files. Internal.
*/
#ifndef PYBPE_BASE_H
#define PYBPE_BASE_H

/* getentropy, glob, madvise, O_CLOEXEC, strerror_r. It takes effect only before the first system header. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#if defined(_WIN32)
#define _CRT_RAND_S
#if !defined(__USE_MINGW_ANSI_STDIO)
#define __USE_MINGW_ANSI_STDIO 1 /* printf of the C standard, %zu included, with the older C library too */
#endif
#endif
/* Where `long` has 32 bits, offsets in files have 64 all the same. */
#if !defined(__LP64__) && !defined(_FILE_OFFSET_BITS)
#define _FILE_OFFSET_BITS 64
#endif

#include "pybpe_corpus.h"

#include <stdbool.h>
#include <string.h>

#if defined(__GNUC__)
#if defined(__MINGW32__) && !defined(__clang__)
#define PYBPE_PRINTF(string, first) __attribute__((format(gnu_printf, string, first)))
#else
#define PYBPE_PRINTF(string, first) __attribute__((format(printf, string, first)))
#endif
#define PYBPE_LIKELY(x) __builtin_expect(!!(x), 1)
#define PYBPE_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define INLINE_ALWAYS static inline __attribute__((always_inline))
#define PYBPE_PREFETCH(address) __builtin_prefetch((const void *)(address)) /* any address is allowed */
#else
#error "pybpe needs gcc or clang"
#endif

/* gcc for Windows does not align the stack for the vectors of AVX (gcc bug 54412), so there only clang may use them. */
#if defined(__x86_64__) && (!defined(_WIN32) || defined(__clang__)) && !defined(PYBPE_NO_AVX)
#define PYBPE_AVX 1
#endif

/* Fills *err, unless err is NULL. Pass strings from outside only through %s. */
void error_fill(pybpe_error *err, int code, uint64_t offset, const char *format, ...) PYBPE_PRINTF(4, 5);
void error_fill_errno(pybpe_error *err, int sys_errno, const char *format, ...) PYBPE_PRINTF(3, 4);
void error_fill_memory(pybpe_error *err, const char *what, size_t n);

/* error_set(err, code, offset, format, ...) fills *err and returns `code`, so that a function can end with it.
   These are macros and inline functions, so that compilers and static analyzers see at every call that the result is an
   error. */
#define error_set(err, code, ...) (error_fill((err), (code), __VA_ARGS__), (code))

/* The same for a failed system call, (err, errno, format, ...): PYBPE_ERR_IO, errno kept and appended in words. */
#define error_set_errno(err, ...) (error_fill_errno((err), __VA_ARGS__), PYBPE_ERR_IO)

/* "out of memory: n bytes for WHAT could not be allocated". */
static inline int error_set_memory(pybpe_error *err, const char *what, size_t n) {
    error_fill_memory(err, what, n);
    return PYBPE_ERR_MEMORY;
}

/* The same unless p, the allocation, is there. */
static inline int memory_check(const void *p, const char *what, size_t n, pybpe_error *err) {
    return p != NULL ? PYBPE_OK : error_set_memory(err, what, n);
}

/* The error of a call after one that left a handle half changed. `failed` is the code of that one. */
static inline int error_set_failed(pybpe_error *err, int failed, const char *handle) {
    error_fill(err, failed, 0, "%s failed in an earlier call and can only be freed", handle);
    return failed;
}

/* Ends a function with the code of a call that fails. */
#define PYBPE_TRY(call)                                                                                                \
    do {                                                                                                               \
        const int code_of_call = (call);                                                                               \
        if (code_of_call != PYBPE_OK) {                                                                                \
            return code_of_call;                                                                                       \
        }                                                                                                              \
    } while (0)

/* Checks an array from outside: it is NULL only if it has no items. `what` names the items in the message. */
int array_check(const void *items, size_t count, const char *what, pybpe_error *err);

/* Checks a list of strings from outside: its offsets start at 0 and never decrease, and `bytes` is not NULL if there
   are any. Every public function that takes such a list calls this before it reads a string. `what` names the strings
   in the message. An error's offset is the index of the first wrong string. */
int strings_check(const pybpe_strings *strings, const char *what, pybpe_error *err);

/* String i of a list that was checked. If all strings are empty, their bytes may be NULL, which must not be added to. */
static inline const uint8_t *string_at(const pybpe_strings *strings, size_t i) {
    return strings->bytes != NULL ? strings->bytes + strings->offsets[i] : (const uint8_t *)"";
}
static inline size_t string_length(const pybpe_strings *strings, size_t i) {
    return (size_t)(strings->offsets[i + 1] - strings->offsets[i]);
}

/* The length of all strings together. */
static inline uint64_t strings_total(const pybpe_strings *strings) {
    return strings->count > 0 ? strings->offsets[strings->count] : 0;
}

/* Allocate memory from `mem` (NULL: malloc). They return NULL on failure and for a size of 0. */
void *mem_alloc(const pybpe_allocator *mem, size_t n);
void *mem_alloc_zeroed(const pybpe_allocator *mem, size_t count, size_t size);
void *mem_alloc_array(const pybpe_allocator *mem, size_t count, size_t size); /* NULL too if count * size overflows */
void *mem_resize_array(const pybpe_allocator *mem, void *ptr, size_t count, size_t size); /* ptr stays valid on NULL */
void mem_free(const pybpe_allocator *mem, void *ptr);

/* Makes room for `need` items in an array that has room for *room items of `size` bytes. It may be NULL at first.
   Returns the array, which may have moved, and updates *room. Returns NULL if there is no memory: then the array and
   *room stay as they are. An array grows by half or more, so that appending takes linear time. */
void *mem_grow(const pybpe_allocator *mem, void *items, size_t *room, size_t need, size_t size);
static inline void *mem_reserve(const pybpe_allocator *mem, void *items, size_t *room, size_t need, size_t size) {
    return PYBPE_LIKELY(need <= *room && items != NULL) ? items : mem_grow(mem, items, room, need, size);
}

/* A copy of the allocator for a handle to keep. NULL becomes malloc's. */
pybpe_allocator mem_of(const pybpe_allocator *mem);

/* Like mem_alloc_array, but aligned to 64 bytes and, from 16 MiB on, backed by huge pages where the system has them, not
   zeroed. For large tables that are accessed at random. Free with mem_table_free. */
typedef struct mem_table {
    void *data;    /* aligned */
    void *block;   /* the allocation */
    size_t mapped; /* its bytes if the system gave them, 0 if the allocator did */
} mem_table;
bool mem_table_alloc(mem_table *t, const pybpe_allocator *mem, size_t count, size_t size);
bool mem_table_alloc_zeroed(mem_table *t, const pybpe_allocator *mem, size_t count, size_t size);

/* Makes a table of `from` bytes larger, mostly in place, so that less new memory is needed than for another table. The
   new part is not zeroed. Returns false, with nothing changed, if memory ran out or if the table must be a new one, of
   huge pages. */
bool mem_table_grow(mem_table *t, const pybpe_allocator *mem, size_t from, size_t to);
void mem_table_free(mem_table *t, const pybpe_allocator *mem);

/* Secret numbers for hash tables, from the operating system's random source. No result of pybpe depends on them. */
typedef struct hash_seed {
    uint64_t a, b;
} hash_seed;
hash_seed hash_seed_draw(void);

/* r = a + b or a * b. False if that overflows. */
static inline bool size_add(size_t a, size_t b, size_t *r) { return !__builtin_add_overflow(a, b, r); }
static inline bool size_mul(size_t a, size_t b, size_t *r) { return !__builtin_mul_overflow(a, b, r); }

/* Little-endian integers at any alignment. */
static inline uint16_t load_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t load_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
/* 8 bytes at once, the first in the low bits. */
static inline uint64_t load_u64(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}
#define EACH_BYTE(x) (UINT64_C(0x0101010101010101) * (x))
/* The high bit of the first byte of x that is c, and perhaps of bytes after it. */
static inline uint64_t bytes_equal(uint64_t x, uint8_t c) {
    uint64_t differ = x ^ EACH_BYTE(c);
    return (differ - EACH_BYTE(1)) & ~differ & EACH_BYTE(0x80);
}
/* The high bit of every byte of x that is in low..high. All are below 0x80, and 1 <= low. */
static inline uint64_t bytes_between(uint64_t x, unsigned low, unsigned high) {
    return (x + EACH_BYTE(0x80 - low)) & ~(x + EACH_BYTE(0x7F - high)) & EACH_BYTE(0x80);
}
static inline void store_u32(uint8_t *p, uint32_t x) {
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(x >> (8 * i));
    }
}
static inline void store_u64(uint8_t *p, uint64_t x) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    memcpy(p, &x, 8);
}

/* Bytes of UTF-8. */
static inline bool byte_is_ascii(uint8_t byte) { return byte < 0x80; }
static inline bool byte_is_continuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* Token i of a buffer of id_bytes. */
static inline uint32_t id_at(const void *ids, int id_bytes, size_t i) {
    return id_bytes == 2 ? ((const uint16_t *)ids)[i] : ((const uint32_t *)ids)[i];
}

static inline void id_store(void *ids, int id_bytes, size_t i, uint32_t id) {
    if (id_bytes == 2) {
        ((uint16_t *)ids)[i] = (uint16_t)id;
    } else {
        ((uint32_t *)ids)[i] = id;
    }
}

/* Reads a whole file with plain reads (with a mapping, truncating the file would kill the process with SIGBUS). *data
   is NULL for an empty file. Free it with mem_free. Refuses anything but a regular file, and a file that was
   written to meanwhile. */
int file_read_all(const char *path, uint8_t **data, size_t *n, const pybpe_allocator *mem, pybpe_error *err);

/* An open regular file for reading at offsets. Safe to share between threads. fd is -1 when closed. */
typedef struct file_in {
    int fd;
    uint64_t size;
    int64_t modified; /* the time of the last write, in nanoseconds */
} file_in;
int file_in_open(file_in *f, const char *path, pybpe_error *err);
/* Reads exactly n bytes. Returns PYBPE_ERR_FORMAT if the file ends before that. */
int file_in_read(const file_in *f, const char *path, uint64_t offset, void *data, size_t n, pybpe_error *err);
/* Returns an error if somebody has written to the file since it was opened: then what was read may be neither the old
   content nor the new one. */
int file_in_check(const file_in *f, const char *path, pybpe_error *err);
void file_in_close(file_in *f);

#endif
