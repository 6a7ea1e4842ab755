/*
An empty folder to write files in, and token shards and a tokenizer.bin made by hand, for the tests in C (and C++).
*/
#ifndef SCRATCH_H
#define SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(_WIN32) /* MinGW has most of POSIX, but not this */
#include <direct.h>
#include <process.h>
static inline char *mkdtemp(char *path) {
    (void)snprintf(path + strlen(path) - 6, 7, "%06u", (unsigned)_getpid() % 1000000);
    _mkdir("/tmp");
    return _mkdir(path) == 0 ? path : NULL;
}
#elif defined(__wasi__)
#include <sys/stat.h>
static inline char *mkdtemp(char *path) { return mkdir(path, 0700) == 0 ? path : NULL; }
#endif

enum { SCRATCH_HEADER = 1024 };

#ifndef SCRATCH_IN
#define SCRATCH_IN "/tmp"
#endif

static char scratch_path[] = SCRATCH_IN "/pybpe-test-XXXXXX";

/* Makes the folder and goes there. */
static inline void scratch_enter(void) {
    if (mkdtemp(scratch_path) == NULL || chdir(scratch_path) != 0) {
        perror(scratch_path);
        exit(2);
    }
}

/* Removes all files, and returns how many there were. */
static inline int scratch_clear(void) {
    int count = 0;
    DIR *folder = opendir(".");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        count += entry->d_name[0] != '.' && remove(entry->d_name) == 0;
    }
    closedir(folder);
    return count;
}

/* The descriptor that the next open returns: the same as before if all files have been closed. */
static inline int scratch_next_file(void) {
    int fd = open(".", O_RDONLY);
    close(fd);
    return fd;
}

static inline void scratch_leave(void) {
    scratch_clear();
    if (chdir("/") != 0 || rmdir(scratch_path) != 0) {
        perror(scratch_path);
    }
}

static inline void scratch_write(const char *name, const void *data, size_t n) {
    FILE *f = fopen(name, "wb");
    if (f == NULL || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
        perror(name);
        exit(2);
    }
}

/* Writes n bytes of x to `to`, the lowest first. */
static inline void put_le(uint8_t *to, uint32_t x, int n) {
    for (int i = 0; i < n; i++) {
        to[i] = (uint8_t)(x >> (8 * i));
    }
}

/* Lays out a shard of `count` tokens at `to`, and returns its size. */
static inline size_t put_shard(uint8_t *to, const uint32_t *tokens, size_t count, int id_bytes) {
    memset(to, 0, SCRATCH_HEADER);
    put_le(to, id_bytes == 2 ? 20240520 : 20240801, 4);
    put_le(to + 4, id_bytes == 2 ? 1 : 7, 4);
    put_le(to + 8, (uint32_t)count, 4);
    for (size_t i = 0; i < count; i++) {
        put_le(to + SCRATCH_HEADER + i * (size_t)id_bytes, tokens[i], id_bytes);
    }
    return SCRATCH_HEADER + count * (size_t)id_bytes;
}

/* Writes a shard of the tokens first, first + 1, ... */
static inline void scratch_shard(const char *name, uint32_t first, size_t count, int id_bytes) {
    uint32_t *tokens = (uint32_t *)malloc((count + 1) * sizeof *tokens);
    uint8_t *data = (uint8_t *)malloc(SCRATCH_HEADER + 4 * count);
    for (size_t i = 0; i < count; i++) {
        tokens[i] = first + (uint32_t)i;
    }
    scratch_write(name, data, put_shard(data, tokens, count, id_bytes));
    free(tokens);
    free(data);
}

enum { SCRATCH_TOKENIZER_BYTES = SCRATCH_HEADER + 2 * 256 + 64 };

/* Lays out a tokenizer.bin as llm.c's scripts would, with nothing after the tokens: the 256 bytes, four merges (ids
   256 to 259: he, ll, hell, hello) and end-of-text. Returns its size. */
static inline size_t put_tokenizer(uint8_t *to) {
    static const char *const others[] = {"he", "ll", "hell", "hello", "<|endoftext|>"};
    size_t at = SCRATCH_HEADER;
    memset(to, 0, SCRATCH_HEADER);
    put_le(to, 20240328, 4);
    put_le(to + 4, 2, 4);
    put_le(to + 8, 261, 4);
    put_le(to + 12, 260, 4);
    for (uint32_t i = 0; i < 261; i++) {
        size_t length = i < 256 ? 1 : strlen(others[i - 256]);
        to[at] = (uint8_t)length;
        to[at + 1] = (uint8_t)i;
        if (i >= 256) {
            memcpy(to + at + 1, others[i - 256], length);
        }
        at += 1 + length;
    }
    return at;
}

#endif
