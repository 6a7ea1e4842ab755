/*
csrc/documents/record.c: the records of JSON lines.
*/
#include "prove.h"

#include <documents/record.c>

/* What a reader returns: NULL, or a place after `at` and not after `end`. */
static bool is_after(const uint8_t *after, const uint8_t *at, const uint8_t *end) {
    return after == NULL || (after > at && after <= end);
}

static const uint8_t *any_after(const uint8_t *at, const uint8_t *end) {
    CHECK(at <= end);
    size_t left = (size_t)(end - at);
    return left > 0 && any_bool() ? at + any_between(1, left) : NULL;
}

/* A number ends inside the text, and is not empty. */
void prove_number(size_t n) {
    uint8_t *text = any_bytes(n);
    const uint8_t *after = number_read(text, text + n);
    CHECK(is_after(after, text, text + n));
    free(text);
}

/* A word or a number. */
void prove_scalar(size_t n) {
    uint8_t *text = any_bytes(n);
    const uint8_t *after = n > 0 ? scalar_read(text, text + n) : NULL;
    CHECK(is_after(after, text, text + n));
    free(text);
}

/* Whether each backslash begins an escape that is complete: what string_read shows to record_unescape. */
static bool escapes_are_complete(const uint8_t *at, const uint8_t *end) {
    while (at < end) {
        if (*at != '\\') {
            at += 1;
        } else if (end - at < 2 || (at[1] == 'u' && json_unit(at + 2, end) < 0)) {
            return false;
        } else {
            at += at[1] == 'u' ? 6 : 2;
        }
    }
    return true;
}

/* A string ends before its quote, and its escapes are complete. */
void prove_string(size_t n) {
    uint8_t *text = any_bytes(n);
    record_string string;
    const uint8_t *after = string_read(text, text + n, &string);
    CHECK(is_after(after, text, text + n));
    if (after != NULL) {
        CHECK(string.at == text && string.n == (size_t)(after - text) - 1);
        CHECK(escapes_are_complete(text, text + string.n));
    }
    free(text);
}

/* Unescaped, such a string is not longer than before. */
void prove_unescape(size_t n) {
    uint8_t *text = any_bytes(n);
    uint8_t *out = any_bytes(n);
    size_t length;
    ASSUME(escapes_are_complete(text, text + n));
    bool read = record_unescape(&(record_string){text, n, true}, out, &length);
    CHECK(!read || length <= n);
    free(text);
    free(out);
}

/* Two escapes of a surrogate pair take 12 bytes. */
void prove_pair(size_t n) { prove_unescape(n); }

/* What these proofs show, without loops. */
const uint8_t *any_string(const uint8_t *at, const uint8_t *end, record_string *string) {
    const uint8_t *after = any_after(at, end);
    string->at = at;
    string->n = after != NULL ? (size_t)(after - at) - 1 : 0;
    string->escaped = any_bool();
    return after;
}

const uint8_t *any_space(const uint8_t *at, const uint8_t *end) {
    CHECK(at <= end);
    return at + any_between(0, (size_t)(end - at));
}

/* Space ends inside the text. */
void prove_space(size_t n) {
    uint8_t *text = any_bytes(n);
    const uint8_t *after = skip_space(text, text + n);
    CHECK(after >= text && after <= text + n);
    free(text);
}

/* A name and its colon end inside the text, perhaps at its end. */
void prove_name(size_t n) {
    uint8_t *text = any_bytes(n);
    record_string name;
    const uint8_t *after = name_read(text, text + n, &name);
    CHECK(is_after(after, text, text + n));
    CHECK(after == NULL || (name.at > text && name.n < (size_t)(after - name.at)));
    free(text);
}

const uint8_t *any_name(const uint8_t *at, const uint8_t *end, record_string *name) {
    const uint8_t *after = any_after(at, end);
    size_t moved = after != NULL ? (size_t)(after - at) : 0;
    ASSUME(after == NULL || moved >= 3); /* two quotes and a colon */
    name->n = after != NULL ? (size_t)any_between(0, moved - 3) : 0;
    name->at = after != NULL ? at + any_between(1, moved - 2 - name->n) : at;
    name->escaped = any_bool();
    return after;
}

/* Any value, in brackets or not. */
void prove_value(size_t n) {
    uint8_t *text = any_bytes(n);
    const uint8_t *after = value_read(text, text + n);
    CHECK(is_after(after, text, text + n));
    free(text);
}

const uint8_t *any_value(const uint8_t *at, const uint8_t *end) { return any_after(at, end); }

/* The strings of a record are in its line. */
void prove_record(size_t n) {
    static const uint8_t key[] = {'t', 'e'};
    uint8_t *text = any_bytes(n);
    json_record found;
    if (record_read(text, text + n, key, (size_t)any_between(0, sizeof key), &found)) {
        CHECK(found.end >= text && found.end <= text + n && (n == 0 || found.end > text));
        CHECK(found.blank || (found.text.at > text && found.text.n < (size_t)(found.end - found.text.at)));
        CHECK(found.cluster.at == NULL || found.cluster.n < (size_t)(found.end - found.cluster.at));
    }
    free(text);
}

PROOFS(PROOF(number, 0, 8, 2) PROOF(value, 0, 2, 2, "scalar_read.0:7,strlen.0:10,memcmp.0:10")
           PROOF(name, 0, 4, 2, "", "string_read:any_string skip_space:any_space") PROOF(space, 4, 4, 2)
               PROOF(string, 4, 4, 4) PROOF(unescape, 0, 6, 4, "", "memcpy:any_copy")
                   PROOF(pair, 12, 12, 4, "", "memcpy:any_copy")
                       PROOF(scalar, 0, 9, 2, "scalar_read.0:7,strlen.0:10", "memcmp:any_comparison")
                           PROOF(record, 0, 8, 2, "members_read.0:3",
                                 "value_read:any_value string_read:any_string name_read:any_name skip_space:any_space "
                                 "memcmp:any_comparison") DRAWN(unescape, 7, 13, 4) DRAWN(record, 9, 16, 2))
