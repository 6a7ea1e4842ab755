/*
csrc/json/json.c: the parts of a tokenizer.json.
*/
#include "prove.h"

#include <json/json.c>

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

/* The same for a value that is checked. */
void prove_check(size_t n) {
    uint8_t *text = any_bytes(n);
    json j = {text, text + n};
    bool read = json_check_value(&j);
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

/* A name is in the text, between two quotes. */
void prove_name(size_t n) {
    uint8_t *text = any_bytes(n);
    const uint8_t *name;
    size_t length;
    json j = {text, text + n};
    bool read = json_name(&j, &name, &length);
    CHECK(inside(&j, text, n));
    CHECK(!read || (name > text && length < (size_t)(j.at - name) && length + 2 <= n));
    free(text);
}

/* A member is found by its name, or is NULL. */
void prove_member(size_t n) {
    uint8_t *name = any_bytes(n);
    json_member members[] = {{.name = "u"}, {.name = "10"}};
    json_member *member = member_named(members, 2, name, n);
    CHECK(member == NULL || (member == &members[0] && n == 1) || (member == &members[1] && n == 2));
    free(name);
}

/* The space before a character ends inside the text. */
void prove_peek(size_t n) {
    uint8_t *text = any_bytes(n);
    json j = {text, text + n};
    uint8_t next = json_peek(&j);
    CHECK(inside(&j, text, n));
    CHECK(next == (j.at < j.end ? *j.at : 0));
    free(text);
}

/* What the proofs above show, without loops. */
uint8_t any_peek(json *j) {
    CHECK(j->at <= j->end);
    j->at += any_between(0, (size_t)(j->end - j->at));
    return j->at < j->end ? *j->at : 0;
}

bool any_value(json *j) {
    CHECK(j->at <= j->end);
    size_t left = (size_t)(j->end - j->at);
    bool read = left > 0 && any_bool();
    j->at += any_between(read, left);
    return read;
}

bool any_name(json *j, const uint8_t **name, size_t *n) {
    CHECK(j->at <= j->end);
    size_t left = (size_t)(j->end - j->at);
    size_t moved = (size_t)any_between(0, left);
    *name = j->at;
    j->at += moved;
    *n = moved >= 2 ? (size_t)any_between(0, moved - 2) : 0;
    *name += moved >= 2 ? any_between(1, moved - 1 - *n) : 0;
    return moved >= 2 && any_bool();
}

json_member *any_member(json_member *members, size_t count, const uint8_t *name, size_t n) {
    CHECK(count == 1 || count == 2);
    check_readable(name, n);
    return any_bool() ? NULL : count == 1 || any_bool() ? &members[0] : &members[1];
}

static bool is_found_in(const json_member *member, const uint8_t *text, const uint8_t *end) {
    return member->begin == NULL || (member->begin > text && member->begin < member->end && member->end <= end);
}

/* The members that json_find finds are in the text, and not empty. */
void prove_find(size_t n) {
    uint8_t *text = any_bytes(n);
    json_member members[2] = {{.name = "u"}, {.name = "10"}};
    json j = {text, text + n};
    (void)json_find(&j, members, 2);
    CHECK(inside(&j, text, n));
    CHECK(is_found_in(&members[0], text, j.at) && is_found_in(&members[1], text, j.at));
    free(text);
}

/* The same with members of members. */
void prove_find_inner(size_t n) {
    uint8_t *text = any_bytes(n);
    json_member inner[2] = {{.name = "u"}, {.name = "10"}};
    json_member member = {.name = "a", .inner = inner, .inner_count = 2};
    json j = {text, text + n};
    bool read = json_find(&j, &member, 1);
    CHECK(inside(&j, text, n));
    CHECK(is_found_in(&inner[0], text, j.at) && is_found_in(&inner[1], text, j.at));
    CHECK(!read || is_found_in(&member, text, j.at));
    free(text);
}

PROOFS(PROOF(skip, 0, 8, 2) PROOF(string, 0, 9, 4) PROOF(id, 0, 12, 2) PROOF(name, 0, 6, 2) PROOF(member, 0, 4, 4)
           PROOF(peek, 0, 8, 2)
               PROOF(find, 0, 8, 3, "json_find:1,json_find.0:2",
                     "json_check_value:any_value json_peek:any_peek json_name:any_name member_named:any_member")
                   PROOF(find_inner, 0, 8, 3, "json_find:2,json_find.0:2",
                         "json_check_value:any_value json_peek:any_peek json_name:any_name member_named:any_member")
                       DRAWN(check, 0, 16, 3) DRAWN(find, 9, 16, 3) DRAWN(find_inner, 9, 16, 3))
