/*
Reads JSON lines: json.c checks everything in a line, and only the text of the record and its cluster are kept.
*/
#include "documents/record.h"

static bool spelling_is(const json_spelling *name, const uint8_t *text, size_t n) {
    return name->n == n && memcmp(name->at, text, n) == 0;
}

/* Reads the members of an object after its opening brace, and moves past its closing brace. */
static bool members_read(json *line, const uint8_t *key, size_t key_n, json_record *found) {
    do {
        json_spelling name;
        json_spelling other;
        if (!json_read(line, &name) || name.escaped || !json_take(line, ':')) {
            return false;
        }
        const bool is_cluster = spelling_is(&name, (const uint8_t *)RECORD_CLUSTER, sizeof RECORD_CLUSTER - 1);
        json_spelling *to = spelling_is(&name, key, key_n) ? &found->text : is_cluster ? &found->cluster : &other;
        *to = (json_spelling){.at = NULL};
        const bool is_string = json_peek(line) == '"';
        const uint8_t *const value = line->at;
        if (!(is_string ? json_read(line, to) : json_check_value(line))) {
            return false;
        }
        if (found->fields != NULL) {
            if (found->count == RECORD_FIELDS) {
                return false;
            }
            found->fields[found->count++] = (record_field){name, value, line->at};
        }
    } while (json_take(line, ','));
    return json_take(line, '}');
}

bool record_read(json *lines, const uint8_t *key, size_t key_n, json_record *found) {
    const uint8_t *newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at)); /* no string has one */
    json line = {lines->at, newline != NULL ? newline : lines->end};
    *found = (json_record){.fields = found->fields};
    (void)json_peek(&line);
    found->blank = line.at == line.end;
    if (!found->blank &&
        (!json_take(&line, '{') || !members_read(&line, key, key_n, found) || found->text.at == NULL)) {
        return false;
    }
    (void)json_peek(&line);
    if (line.at != line.end) {
        return false;
    }
    lines->at = line.end + (newline != NULL);
    return true;
}
