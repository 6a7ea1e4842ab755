/*
csrc/json/json.c: the parts of a tokenizer.json, and of a line of JSON.
*/
#include "prove.h"

#include <json/json.c>

static bool inside(const json *j, const uint8_t *text, size_t n) {
    return j->at >= text && j->at <= text + n && j->end == text + n;
}

/* A value ends inside the text, and is not empty. */
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

/* Whether each backslash begins an escape that is complete: what json_read shows to json_unescape. */
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

/* A string is in the text, between two quotes, and its escapes are complete. */
void prove_read(size_t n) {
    uint8_t *text = any_bytes(n);
    json_spelling string;
    json j = {text, text + n};
    bool read = json_read(&j, &string);
    CHECK(inside(&j, text, n));
    if (read) {
        CHECK(string.at > text && string.n < (size_t)(j.at - string.at) && string.n + 2 <= n);
        CHECK(escapes_are_complete(string.at, string.at + string.n));
    }
    free(text);
}

/* Unescaped, such a string is not longer than before. */
void prove_unescape(size_t n) {
    uint8_t *text = any_bytes(n);
    uint8_t *out = any_bytes(n);
    size_t length;
    ASSUME(escapes_are_complete(text, text + n));
    bool read = json_unescape(&(json_spelling){text, n, true}, out, &length);
    CHECK(!read || length <= n);
    free(text);
    free(out);
}

/* Two escapes of a surrogate pair take 12 bytes. */
void prove_pair(size_t n) { prove_unescape(n); }

/* A member is found by its name, or is NULL. */
void prove_member(size_t n) {
    uint8_t *name = any_bytes(n);
    json_member members[] = {{.name = "u"}, {.name = "10"}};
    json_member *member = member_named(members, 2, &(json_spelling){name, n, false});
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

bool any_string(json *j, json_spelling *string) {
    CHECK(j->at <= j->end);
    size_t left = (size_t)(j->end - j->at);
    size_t moved = (size_t)any_between(0, left);
    *string = (json_spelling){.at = j->at, .escaped = any_bool()};
    string->n = moved >= 2 ? (size_t)any_between(0, moved - 2) : 0;
    string->at += moved >= 2 ? any_between(1, moved - 1 - string->n) : 0;
    j->at += moved;
    return moved >= 2 && any_bool();
}

json_member *any_member(json_member *members, size_t count, const json_spelling *name) {
    CHECK(count == 1 || count == 2);
    check_readable(name->at, name->n);
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

PROOFS(DRAWN(string, 0, 16, 4) PROOF(id, 0, 12, 2) DRAWN(read, 0, 16, 4) PROOF(unescape, 0, 6, 4, "", "memcpy:any_copy")
           PROOF(pair, 12, 12, 4, "", "memcpy:any_copy") DRAWN(unescape, 7, 13, 4) PROOF(member, 0, 4, 4)
               PROOF(peek, 0, 8, 2)
                   PROOF(find, 0, 8, 3, "json_find:1,json_find.0:2",
                         "json_check_value:any_value json_peek:any_peek json_read:any_string member_named:any_member")
                       PROOF(find_inner, 0, 8, 3, "json_find:2,json_find.0:2",
                             "json_check_value:any_value json_peek:any_peek json_read:any_string "
                             "member_named:any_member") DRAWN(check, 0, 16, 4) DRAWN(find, 9, 16, 3)
                           DRAWN(find_inner, 9, 16, 3))
