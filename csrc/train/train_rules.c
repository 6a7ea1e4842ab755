/*
Rules that forbid merges.

Whole characters. A token is whole (a sequence of whole UTF-8 characters), a part (some of the bytes of one character),
or neither. Two whole tokens may be merged, and two parts if together they are still a part of one character, or all of
it. So single characters are built up from their bytes, and everything longer from characters. A byte that is not UTF-8
is neither, and so is a token that contains one.

Superwords. Liu et al. (2025) merge across spaces, but make no token of more than four words, and none that contains a
colon and then a space, so that a prompt that ends with "Answer:" is encoded as the same text is in the middle of a
document. Words are separated by spaces (0x20). Other white space belongs to them.
*/
#include "train/train.h"
#include "unicode/unicode.h"

enum { SUPERWORD_WORDS = 4 };

/* Whether all bytes belong to well-formed characters. */
static bool is_whole(const uint8_t *bytes, size_t n) {
    size_t at = 0;
    unicode_char c;
    while ((c = unicode_decode(bytes, n, at)).valid) {
        at += c.length;
    }
    return at == n;
}

/* Whether n > 0 bytes are some, not all, of the bytes of one character. */
static bool is_part(const uint8_t *bytes, size_t n) {
    if (n >= UNICODE_MAX) {
        return false;
    }
    size_t continuing = 0;
    while (continuing < n && byte_is_continuation(bytes[continuing])) {
        continuing += 1;
    }
    return continuing == n || (continuing == 0 && unicode_begins(bytes, n));
}

/* Whether two tokens that are not whole may be merged. */
static bool parts_allow(const pybpe_trainer *t, uint32_t left, uint32_t right) {
    const token *x = &t->tokens[left], *y = &t->tokens[right];
    uint8_t both[UNICODE_MAX];
    size_t n = (size_t)x->length + y->length;
    if (n > UNICODE_MAX) {
        return false;
    }
    memcpy(both, t->token_bytes + x->offset, x->length);
    memcpy(both + x->length, t->token_bytes + y->offset, y->length);
    return is_part(both, n) || unicode_decode(both, n, 0).length == n;
}

static bool words_allow(const token_shape *x, const token_shape *y) {
    bool colon_space = x->colon_space || y->colon_space || (x->ends_colon && !y->starts_word);
    uint64_t words = (uint64_t)x->words + y->words - (x->ends_word && y->starts_word ? 1 : 0);
    return !colon_space && words <= SUPERWORD_WORDS;
}

bool train_rules_allow(const pybpe_trainer *t, uint32_t left, uint32_t right) {
    const token_shape *x = &t->shapes[left], *y = &t->shapes[right];
    if ((t->rules & PYBPE_RULE_SUPERWORDS) != 0 && !words_allow(x, y)) {
        return false;
    }
    return (t->rules & PYBPE_RULE_WHOLE_CHARACTERS) == 0 || (x->whole && y->whole) ||
           (!x->whole && !y->whole && parts_allow(t, left, right));
}

void train_shape_set(pybpe_trainer *t, uint32_t id) {
    const uint8_t *bytes = t->token_bytes + t->tokens[id].offset;
    size_t n = t->tokens[id].length;
    token_shape shape = {.starts_word = bytes[0] != ' ',
                         .ends_word = bytes[n - 1] != ' ',
                         .ends_colon = bytes[n - 1] == ':',
                         .whole = is_whole(bytes, n)};
    for (size_t i = 0; i < n; i++) {
        shape.words += bytes[i] != ' ' && (i == 0 || bytes[i - 1] == ' ');
        shape.colon_space |= i > 0 && bytes[i - 1] == ':' && bytes[i] == ' ';
    }
    t->shapes[id] = shape;
}
