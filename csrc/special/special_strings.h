/*
Many strings, and finding the leftmost longest of them one after another in a text. Internal to special*.c.
*/
#ifndef PYBPE_SPECIAL_STRINGS_H
#define PYBPE_SPECIAL_STRINGS_H

#include "special/special_automaton.h"

/* One special in a text. */
typedef struct special_match {
    size_t start, end;
    uint32_t id;
} special_match;

typedef struct string_set {
    pybpe_allocator mem;
    special_automaton forward;
    special_automaton backward; /* of the reversed strings. Has no states if `forward` never looks far ahead */
    int only_first;             /* the byte that all strings begin with, or -1 */
    bool first[256];            /* whether a string begins with this byte */
    bool second[256];           /* whether a string has this second byte. All true if some string has only one byte */
} string_set;

/* Makes a set of strings[i] -> ids[i]. Returns PYBPE_ERR_VALUE for an empty or repeated string. Then the set need not
   be freed. */
int string_set_init(string_set *s, const pybpe_strings *strings, const uint32_t *ids, const pybpe_allocator *mem,
                    pybpe_error *err);
void string_set_free(string_set *s);

/* The first match at or after `from`. *read is where reading ended. */
bool string_set_first(const string_set *s, const uint8_t *text, size_t n, size_t from, special_match *match,
                      size_t *read);

/* A walk over all matches in a text, in O(1) per byte for any set of strings. */
typedef struct string_scan {
    const string_set *s;
    const uint8_t *text;
    size_t n;
    size_t at;          /* the next match begins here or later */
    special_match last; /* empty if there is none yet */
    uint32_t *longest;  /* by place of a window, the state that gives the longest string that begins there */
    size_t window;      /* where the window begins */
    size_t window_end;  /* where it ends. At most `at` if there is none */
} string_scan;

/* `s` may be NULL: no strings. */
static inline void string_scan_start(string_scan *scan, const string_set *s, const uint8_t *text, size_t n,
                                     size_t from) {
    *scan = (string_scan){.s = s, .text = text, .n = n, .at = s == NULL ? n : from};
}

bool string_scan_next(string_scan *scan, special_match *match);

static inline void string_scan_end(string_scan *scan) {
    if (scan->longest != NULL) {
        mem_free(&scan->s->mem, scan->longest);
        scan->longest = NULL;
    }
}

#endif
