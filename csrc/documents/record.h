/*
One record of JSON lines: an object on a line. Internal.
*/
#ifndef PYBPE_RECORD_H
#define PYBPE_RECORD_H

#include "json/json.h"

/* The field with the name of a record's cluster of near duplicates, which pybpe.corpus adds. */
#define RECORD_CLUSTER "pybpe_cluster"

enum { RECORD_FIELDS = 64 };

/* A field of a record: its name, and where its value is. */
typedef struct record_field {
    json_spelling name;
    const uint8_t *value, *end;
} record_field;

typedef struct json_record {
    json_spelling text, cluster; /* `at` is NULL if the record does not have it */
    bool blank;                  /* there is only white space in the line */
    record_field *fields;        /* all of them, if not NULL: room for RECORD_FIELDS. The caller sets it */
    size_t count;
} json_record;

/* Reads the line at lines->at, and moves past it and its newline. Returns false, without moving, if the line is not a
   JSON object with a string at `key`, or has anything that parsers of JSON treat differently, or that is rare, or more
   fields than there is room for: then the caller must use a complete parser. The lines must be valid UTF-8. If a name is
   repeated, the last one counts. */
bool record_read(json *lines, const uint8_t *key, size_t key_n, json_record *found);

#endif
