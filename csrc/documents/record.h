/*
One record of JSON lines: an object on a line. Only its text and its cluster are wanted. Internal.
*/
#ifndef PYBPE_RECORD_H
#define PYBPE_RECORD_H

#include "base/base.h"

/* The field with the name of a record's cluster of near duplicates, which pybpe.corpus adds. */
#define RECORD_CLUSTER "pybpe_cluster"

/* A string in a record, as JSON spells it. */
typedef struct record_string {
    const uint8_t *at; /* its first character, after the quote; NULL if the record does not have it */
    size_t n;
    bool escaped; /* whether there is a backslash in it */
} record_string;

typedef struct json_record {
    record_string text, cluster;
    const uint8_t *end; /* of the line, with its newline */
    bool blank;         /* there is only white space in the line */
} json_record;

/* Reads the line at `at`. Returns false if the line is not a JSON object with a string at `key`, or has anything that
   parsers of JSON treat differently, or that is rare: then the caller must use a complete parser. The line must be
   valid UTF-8. If a name is repeated, the last one counts. */
bool record_read(const uint8_t *at, const uint8_t *end, const uint8_t *key, size_t key_n, json_record *found);

/* The first byte that a JSON string must escape: a quote, a backslash or a control character; `end` if there is none. */
const uint8_t *record_special(const uint8_t *at, const uint8_t *end);

/* Writes the UTF-8 of a string, whose n bytes `out` must have room for. Returns false for a surrogate without its other
   half. */
bool record_unescape(const record_string *string, uint8_t *out, size_t *n);

#endif
