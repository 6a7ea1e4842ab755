/*
Safe cuts: where a text may be divided so that its parts have exactly the words of the whole.

A cut is safe if a word starts there whatever surrounds it, and if the words before it do not change when the
text ends there. For all patterns alike that is so between two characters a and b when

    a is a letter or number,     b is of another class, but neither a mark nor an apostrophe: in o200k both
                                 may continue the word;
    a is of class "other",       b is whitespace but no newline: in cl100k and its kin a word of others
                                 takes the newlines behind it.

Nothing else joins characters of two classes: the one blank, or other character, that begins a word comes
before letters, and a is none. What a pattern looks ahead for is whitespace, or in o200k a lower case letter
behind capitals, and neither can hang over such a cut. Digits may be grouped, but not across it.

So the rule asks only what a and b are, and b must be well-formed, because bytes of a character that the end
of the text has cut may become any class. a may be invalid: a well-formed b keeps it so.

A special token must not lie across a cut, chosen or not: which one is chosen may depend on what is far
before it. Nor may one, if it is not UTF-8 itself, divide a or b, as then they would not be these characters.
*/
#include "pretok.h"
#include "special.h"
#include "unicode.h"

enum { CLASSES = UNICODE_LETTER | UNICODE_NUMBER | UNICODE_SPACE };

/* Letters are one class here, whatever their case. */
static inline unsigned class_of(unicode_char c) {
    return (c.class & UNICODE_LETTER) != 0 ? UNICODE_LETTER : c.class & CLASSES;
}

static inline bool starts_word(unicode_char a, unicode_char b, uint8_t b_lead) {
    if (!b.valid || (class_of(a) & UNICODE_SPACE) != 0) {
        return false;
    }
    if (class_of(a) == 0) {
        return (b.class & UNICODE_SPACE) != 0 && (b.class & UNICODE_NEWLINE) == 0;
    }
    return class_of(a) != class_of(b) && (b.class & UNICODE_MARK) == 0 && b_lead != '\'';
}

/* Whether a special occurs inside the character at text[pos] or across one of its ends. */
static bool specials_touch(const pybpe_specials *s, const uint8_t *text, size_t n, size_t pos, size_t length) {
    size_t start;
    size_t end;
    uint32_t id;
    return special_covers(s, text, n, pos) || special_covers(s, text, n, pos + length) ||
           pybpe_specials_find(s, text + pos, length, 0, &start, &end, &id) != 0;
}

/* Whether specials leave text[cut] alone, a and b being the characters on its sides. A special can divide
   only a character of several bytes. */
static bool specials_allow(const pybpe_specials *s, const uint8_t *text, size_t n, size_t cut, unicode_char a,
                           unicode_char b) {
    if (s == NULL) {
        return true;
    }
    return !special_covers(s, text, n, cut) &&
           (a.length == 1 || !specials_touch(s, text, n, cut - a.length, a.length)) &&
           (b.length == 1 || !specials_touch(s, text, n, cut, b.length));
}

/* A character's start from which decoding finds all that end at or behind pos, pos > 0. A byte that follows
   three continuation bytes and is one itself belongs to no character. */
static size_t start_before(const uint8_t *text, size_t pos) {
    size_t start = pos - 1;
    while (start > 0 && pos - start < 4 && unicode_is_continuation(text[start])) {
        start--;
    }
    return start;
}

size_t pybpe_text_cut(const pybpe_pretok *p, const pybpe_specials *s, const uint8_t *text, size_t n, size_t from) {
    (void)p; /* the rule is the same for all patterns */
    size_t special_length = special_max_length(s);
    if (from == 0 || from >= n) {
        return from < n ? 0 : n;
    }
    size_t cut = start_before(text, from);
    unicode_char a = {.class = UNICODE_SPACE}; /* nothing is cut before the first character */
    while (cut < n) {
        unicode_char b = unicode_decode(text, n, cut);
        if (n - cut - b.length < special_length) {
            break;
        }
        if (cut >= from && starts_word(a, b, text[cut]) && specials_allow(s, text, n, cut, a, b)) {
            return cut;
        }
        a = b;
        cut += b.length;
    }
    return n;
}
