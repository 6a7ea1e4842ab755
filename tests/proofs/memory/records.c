/*
csrc/documents/record.c: the records of JSON lines.
*/
#include "prove.h"

#include <documents/record.c>
#include <json/json.c>

static bool is_inside(const json_spelling *string, const uint8_t *text, const uint8_t *end) {
    return string->at == NULL || (string->at > text && string->n < (size_t)(end - string->at));
}

/* The strings of a record are in its line, and so are its fields. */
void prove_record(size_t n) {
    static const uint8_t key[] = {'t', 'e'};
    static record_field fields[RECORD_FIELDS];
    uint8_t *text = any_bytes(n);
    json lines = {text, text + n};
    json_record found = {.fields = any_bool() ? fields : NULL};
    const bool read = record_read(&lines, key, (size_t)any_between(0, sizeof key), &found);
    CHECK(read ? lines.at >= text && lines.at <= lines.end && (n == 0 || lines.at > text) : lines.at == text);
    if (read) {
        CHECK(found.blank == (found.text.at == NULL));
        CHECK(is_inside(&found.text, text, lines.at) && is_inside(&found.cluster, text, lines.at));
        for (size_t i = 0; i < found.count; i++) {
            CHECK(is_inside(&fields[i].name, text, lines.at));
            CHECK(fields[i].value > text && fields[i].value < fields[i].end && fields[i].end < lines.at);
        }
    }
    free(text);
}

PROOFS(DRAWN(record, 0, 24, 2))
