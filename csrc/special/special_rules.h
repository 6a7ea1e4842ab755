/*
Special tokens with flags (enum pybpe_special_flag). Internal to special*.c.
*/
#ifndef PYBPE_SPECIAL_RULES_H
#define PYBPE_SPECIAL_RULES_H

#include "special/special_strings.h"

enum { SPECIAL_PASSES = 2, SPECIAL_STRIP = PYBPE_SPECIAL_LSTRIP | PYBPE_SPECIAL_RSTRIP };

/* The specials of one pass. The matches of `strings` have indices instead of ids. */
typedef struct special_pass {
    string_set strings;
    uint32_t *ids;
    uint8_t *flags;
    size_t count; /* 0: the pass does not exist */
} special_pass;

/* Makes the passes of strings with flags. Returns PYBPE_ERR_VALUE for a combination that has no meaning. */
int special_passes_init(special_pass *passes, const pybpe_strings *strings, const uint32_t *ids, const uint8_t *flags,
                        const pybpe_allocator *mem, pybpe_error *err);
void special_passes_free(special_pass *passes, const pybpe_allocator *mem);

/* A walk over the matches of one pass in a text. */
typedef struct pass_scan {
    const special_pass *pass;
    const uint8_t *text;
    size_t n;
    size_t done; /* where the last match ends */
    string_scan strings;
} pass_scan;

/* A walk over the matches of both passes. */
typedef struct rules_scan {
    const special_pass *passes;
    const uint8_t *text;
    size_t n;
    size_t gap; /* where the text between two matches of the first pass begins, in which the second pass looks */
    pass_scan early, late;
    special_match next; /* the match of the first pass after the gap */
    bool in_gap, has_next, is_over;
} rules_scan;

void rules_scan_start(rules_scan *scan, const special_pass *passes, const uint8_t *text, size_t n);
bool rules_scan_next(rules_scan *scan, special_match *match);
void rules_scan_end(rules_scan *scan);

#endif
