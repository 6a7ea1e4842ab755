/*
Special tokens, for counting, encoding and cuts. Internal. The rest is public.
*/
#ifndef PYBPE_SPECIAL_H
#define PYBPE_SPECIAL_H

#include "special/special_rules.h"

/* A walk over all specials in a text, in O(1) per byte for any set of specials. Start it, call _next until it returns
   false, and always end it. */
typedef struct special_scan {
    string_scan strings; /* used if no special has flags */
    rules_scan rules;    /* used otherwise. Not initialized if unused, because texts can be short */
    size_t from;         /* where the text of `rules` begins */
    bool has_rules;
} special_scan;

/* `s` may be NULL: a text without specials. */
void special_scan_start(special_scan *scan, const pybpe_specials *s, const uint8_t *text, size_t n, size_t from);

static inline bool special_scan_next(special_scan *scan, special_match *match) {
    if (!scan->has_rules) {
        return string_scan_next(&scan->strings, match);
    }
    if (!rules_scan_next(&scan->rules, match)) {
        return false;
    }
    match->start += scan->from;
    match->end += scan->from;
    return true;
}

static inline void special_scan_end(special_scan *scan) {
    if (scan->has_rules) {
        rules_scan_end(&scan->rules);
    } else {
        string_scan_end(&scan->strings);
    }
}

/* The flags that any of the specials has, or 0 if `s` is NULL. */
unsigned special_flags(const pybpe_specials *s);

/* Reads a text once, from left to right, to find the places that no special touches. */
typedef struct special_reader {
    const pybpe_specials *s;
    const uint8_t *text;
    size_t n;
    size_t at; /* the end of the text read so far */
    uint32_t state;
} special_reader;

enum special_answer {
    SPECIAL_NONE,     /* no special touches the place */
    SPECIAL_TOUCHES,  /* one does */
    SPECIAL_UNDECIDED /* one that begins in the text and ends after it might touch it */
};

/* For places at `from` and later. */
special_reader special_reader_start(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from);

/* Whether the string of any special, matched by _find or not, occurs at text[a..b) with a < high and low < b, low <=
   high. If one does, sets *until to b. The next call must then have a low of at least *until. */
int special_reader_ask(special_reader *r, size_t low, size_t high, size_t *until);

#endif
