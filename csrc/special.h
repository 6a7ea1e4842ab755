/*
Special tokens, for pretok.c's cuts. Internal; the rest is public.
*/
#ifndef PYBPE_SPECIAL_H
#define PYBPE_SPECIAL_H

#include "base.h"

/* The length in bytes of the longest special; 0 for NULL. */
size_t special_max_length(const pybpe_specials *s);

/* Whether any special, chosen by _find or not, occurs at text[a..b) with a < cut < b. No for NULL. */
bool special_covers(const pybpe_specials *s, const uint8_t *text, size_t n, size_t cut);

#endif
