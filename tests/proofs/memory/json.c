/*
csrc/json.c: the parts of a tokenizer.json.
*/
#include "prove.h"

#include <json.c>

static bool inside(const json *j, const uint8_t *text, size_t n) {
    return j->at >= text && j->at <= text + n && j->end == text + n;
}

/* A value is skipped inside the text, and is not empty. */
void prove_skip(size_t n) {
    uint8_t *text = any_bytes(n);
    json j = {text, text + n};
    bool read = json_skip_value(&j);
    CHECK(inside(&j, text, n));
    CHECK(!read || j.at > text);
    free(text);
}

/* A string is shorter than its text, so a buffer of the length of the text is enough. */
void prove_string(size_t n) {
    uint8_t *text = any_bytes(n);
    uint8_t *out = any_bytes(n);
    size_t length;
    json j = {text, text + n};
    bool read = json_string(&j, out, &length);
    CHECK(inside(&j, text, n));
    CHECK(!read || length + 2 <= n);
    free(text);
    free(out);
}

/* A number is below its limit, and is what its digits say. */
void prove_id(size_t n) {
    uint8_t *text = any_bytes(n);
    uint32_t limit = (uint32_t)any_u64();
    uint32_t id;
    json j = {text, text + n};
    bool read = json_id(&j, limit, &id);
    CHECK(inside(&j, text, n));
    CHECK(!read || id < limit);
    free(text);
}

PROOFS(PROOF(skip, 0, 8, 2) PROOF(string, 0, 9, 4) PROOF(id, 0, 12, 2))
