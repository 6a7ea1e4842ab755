/*
JSON, as far as a tokenizer.json needs it: finding members of an object, strings, and small integers. Internal.
*/
#ifndef PYBPE_JSON_H
#define PYBPE_JSON_H

#include "base.h"

/* The rest of a text. */
typedef struct json {
    const uint8_t *at;
    const uint8_t *end;
} json;

/* The next character that is not white space, or 0 at the end. */
static inline uint8_t json_peek(json *j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t')) {
        j->at += 1;
    }
    return j->at < j->end ? *j->at : 0;
}

static inline bool json_take(json *j, uint8_t wanted) {
    if (json_peek(j) != wanted) {
        return false;
    }
    j->at += 1;
    return true;
}

/* A member of an object: where its value is in the text. */
typedef struct json_member {
    const char *name;
    const uint8_t *begin; /* NULL if it is not there */
    const uint8_t *end;
    struct json_member *inner; /* what to find in the value, which must then be an object */
    size_t inner_count;
} json_member;

/* Finds members of a nonempty object, each of which may occur only once, and moves past the object. Other members are
   skipped: their brackets are counted, not checked. */
bool json_find(json *j, json_member *members, size_t count);

/* Reads a string as UTF-8. The result is never longer than the string in the text. */
bool json_string(json *j, uint8_t *out, size_t *n);

/* Reads an integer from 0 to limit - 1 that is the whole value. */
bool json_id(json *j, uint32_t limit, uint32_t *id);

#endif
