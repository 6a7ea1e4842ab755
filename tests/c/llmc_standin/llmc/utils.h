/* Stands in for llm.c's llmc/utils.h: the functions that the programs and the drop-in headers use. */
#ifndef UTILS_H
#define UTILS_H
#include <stdio.h>
#include <stdlib.h>

static inline void standin_fail(const char *what, const char *file, int line) {
    fprintf(stderr, "Error: %s at %s:%d\n", what, file, line);
    exit(EXIT_FAILURE);
}

static inline FILE *fopen_check(const char *path, const char *mode, const char *file, int line) {
    FILE *fp = fopen(path, mode);
    if (fp == NULL) {
        standin_fail(path, file, line);
    }
    return fp;
}

static inline void fread_check(void *ptr, size_t size, size_t nmemb, FILE *stream, const char *file, int line) {
    if (fread(ptr, size, nmemb, stream) != nmemb) {
        standin_fail("Unexpected end of file", file, line);
    }
}

static inline void fwrite_check(void *ptr, size_t size, size_t nmemb, FILE *stream, const char *file, int line) {
    if (fwrite(ptr, size, nmemb, stream) != nmemb) {
        standin_fail("File write error", file, line);
    }
}

static inline void fclose_check(FILE *fp, const char *file, int line) {
    if (fclose(fp) != 0) {
        standin_fail("Failed to close file", file, line);
    }
}

static inline void *malloc_check(size_t size, const char *file, int line) {
    void *ptr = malloc(size);
    if (ptr == NULL) {
        standin_fail("Memory allocation failed", file, line);
    }
    return ptr;
}

#define fopenCheck(path, mode) fopen_check(path, mode, __FILE__, __LINE__)
#define freadCheck(ptr, size, nmemb, stream) fread_check(ptr, size, nmemb, stream, __FILE__, __LINE__)
#define fwriteCheck(ptr, size, nmemb, stream) fwrite_check(ptr, size, nmemb, stream, __FILE__, __LINE__)
#define fcloseCheck(fp) fclose_check(fp, __FILE__, __LINE__)
#define mallocCheck(size) malloc_check(size, __FILE__, __LINE__)
#endif
