/*
The whole framework of the C tests: count checks, print those that fail, print a summary.
Each test program is one translation unit, so the counters may be static.
*/
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(_WIN32) /* MinGW has most of POSIX, but not these */
#define setenv(name, value, replace) _putenv_s(name, value)
#define unsetenv(name) _putenv_s(name, "")
#endif

enum { CHECK_SHOWN = 50 }; /* a program that enumerates cases could fail millions of times */

static int check_count = 0;
static int check_failures = 0;

static inline void check_that(int holds, const char *what, const char *file, int line) {
    check_count += 1;
    if (!holds) {
        check_failures += 1;
        if (check_failures <= CHECK_SHOWN) {
            printf("%s:%d: failed: %s\n", file, line, what);
        }
#if defined(CHECK_STOPS) /* tests/mutation needs no more than the first failure */
        _Exit(1);
#endif
    }
}

static inline void check_equal(uint64_t a, uint64_t b, const char *what, const char *file, int line) {
    check_that(a == b, what, file, line);
    if (a != b && check_failures <= CHECK_SHOWN) {
        printf("    %" PRIu64 " != %" PRIu64 "\n", a, b);
    }
}

#define CHECK(condition) check_that(!!(condition), #condition, __FILE__, __LINE__)
#define CHECK_EQ(a, b) check_equal((uint64_t)(a), (uint64_t)(b), #a " == " #b, __FILE__, __LINE__)

/* Prints the summary; returns the exit code for main. */
static inline int check_report(const char *name) {
    printf("%s: %d checks, %d failed\n", name, check_count, check_failures);
    return check_failures != 0 || check_count == 0;
}

#endif
