/*
Safe cuts: positions where dividing a text leaves its words unchanged.

A cut is safe if a word starts there regardless of the surrounding text, and if the words before it do not change when
the text ends there. For all patterns that is the case between two characters a and b when

    a is a letter or number,     b is of another class, but neither a mark nor an apostrophe: in o200k both
                                 may continue the word;
    a is of class "other",       b is whitespace other than a newline: in cl100k and its relatives a word of others
                                 absorbs the newlines after it.

Nothing else joins characters of two classes: the one blank, or other character, that begins a word precedes letters, so
it cannot be a. Patterns look ahead only for whitespace, or in o200k for a lowercase letter after capitals, and neither
crosses such a cut. Digits may be grouped, but not across it.

So the rule depends only on a and b. b must be well-formed, because the bytes of a character that the end of the text
truncates may become any class. a may be invalid: a well-formed b keeps it invalid.

For a compiled regular expression, its automaton determines between which classes a text can be cut (dfa_divides). The
classes are the automaton's own.

For splitters in sequence: if the first one has a safe cut between two characters, its pieces are the same as before, and
so are all words. If the first splitter is only sure to add that cut to its pieces and to change nothing else
(dfa_passes: the middle of a run), then the second one must have a safe cut there, and so on.

No occurrence of a special token may cross a cut, whether it is matched or not: which one is matched may depend on text
far before it. Nor may a special token that is not UTF-8 itself divide a or b, because then they would not be these
characters.

With flags (special_rules.c), a match also depends on the text next to the string:

    SINGLE_WORD   on the characters next to it: no such string may begin or end at a cut
    LSTRIP        on the white space before it: none may begin at a cut, and no cut is inside white space
    RSTRIP        on the white space after it: none may end at a cut, and no cut is inside white space

For simplicity this is asked of the strings of all specials if any one has the flag. Then white space that a match
includes is on one side of the cut, so the cut is between two texts that the second pass sees, or at the end of one.
*/
#include "pretok/pretok_splitter.h"
#include "special/special.h"

enum { CLASSES = UNICODE_LETTER | UNICODE_NUMBER | UNICODE_SPACE };

/* Letters are one class here, whatever their case. */
static inline unsigned class_of(unicode_char c) {
    return (c.class & UNICODE_LETTER) != 0 ? UNICODE_LETTER : c.class & CLASSES;
}

/* Whether a text can be cut between two characters, for a named pattern. b_lead is the first byte of `b`. */
static bool named_divides(unicode_char a, unicode_char b, uint8_t b_lead) {
    if (!b.valid || (class_of(a) & UNICODE_SPACE) != 0) {
        return false;
    }
    if (class_of(a) == 0) {
        return (b.class & UNICODE_SPACE) != 0 && (b.class & UNICODE_NEWLINE) == 0;
    }
    return class_of(a) != class_of(b) && (b.class & UNICODE_MARK) == 0 && b_lead != '\'';
}

/* The class of the character that ends before text[at], or of the one that begins there. */
static uint32_t class_before(const dfa *a, const uint8_t *text, size_t at, unicode_char c) {
    uint8_t length;
    bool valid;
    size_t start = dfa_reads_bytes(a) ? at - 1 : at - c.length;
    return dfa_class(a, text + start, at - start, &length, &valid);
}

static uint32_t class_after(const dfa *a, const uint8_t *text, size_t n, size_t at) {
    uint8_t length;
    bool valid;
    return dfa_class(a, text + at, n - at, &length, &valid);
}

/* Whether the words on both sides of text[at] are the same if the text is cut there. `a` and `b` are the characters
   before and after that place. */
static bool sequence_divides(const pretok_sequence *s, const uint8_t *text, size_t n, size_t at, unicode_char a,
                             unicode_char b) {
    if (!b.valid) {
        return false;
    }
    for (size_t k = 0; k < s->count; k++) {
        const dfa *own = s->steps[k]->own;
        if (own == NULL) {
            return named_divides(a, b, text[at]);
        }
        uint32_t before = class_before(own, text, at, a);
        uint32_t after = class_after(own, text, n, at);
        if (dfa_divides(own, before, after)) {
            return true;
        }
        if (!dfa_passes(own, before, after)) {
            return false;
        }
    }
    return false;
}

bool sequence_finds_cuts(const pretok_sequence *s) {
    for (unsigned both = 0; both < 128 * 128; both++) {
        const uint8_t text[4] = {(uint8_t)(both >> 7), (uint8_t)(both & 127)}; /* two, and room: gcc warns otherwise */
        if (sequence_divides(s, text, 2, 1, unicode_decode(text, 2, 0), unicode_decode(text, 2, 1))) {
            return true;
        }
    }
    return false;
}

/* The start of a character before pos, pos > 0. Decoding from there finds all characters that end at or after pos. A
   continuation byte that follows three others belongs to no character. */
static size_t start_before(const uint8_t *text, size_t pos) {
    size_t start = pos - 1;
    while (start > 0 && pos - start < 4 && byte_is_continuation(text[start])) {
        start--;
    }
    return start;
}

static unicode_char cut_decode(const dfa *own, const uint8_t *text, size_t n, size_t at) {
    unicode_char c;
    if (own == NULL || at >= n) {
        return unicode_decode(text, n, at);
    }
    c.class = (uint8_t)dfa_class(own, text + at, n - at, &c.length, &c.valid);
    return c;
}

/* A place between two words, unless a special is there. */
typedef struct cut_candidate {
    const dfa *own;
    const pretok_sequence *steps;
    size_t at;
    unicode_char before, after; /* the characters on its sides */
} cut_candidate;

static bool starts_word(const cut_candidate *c, const uint8_t *text, size_t n) {
    unicode_char a = c->before;
    unicode_char b = c->after;
    if (c->steps != NULL) {
        return sequence_divides(c->steps, text, n, c->at, a, b);
    }
    if (c->own == NULL) {
        return named_divides(a, b, text[c->at]);
    }
    return b.valid && dfa_divides(c->own, a.class, b.class);
}

/* Moves to the next candidate at `from` or later. Returns false if there is none. The first character is before `from`,
   so every candidate has one before it. */
static bool candidate_next(cut_candidate *c, const uint8_t *text, size_t n, size_t from) {
    while (c->at < n) {
        c->at += c->after.length;
        c->before = c->after;
        c->after = cut_decode(c->own, text, n, c->at);
        if (c->at >= from && c->at < n && starts_word(c, text, n)) {
            return true;
        }
    }
    return false;
}

/* What a special must not touch: the place, and the characters around it if they have several bytes, since only
   those can be divided. With flags, also the bytes around it. */
static int candidate_ask(const cut_candidate *c, special_reader *r, size_t *until) {
    const unsigned flags = special_flags(r->s);
    size_t low = c->before.length > 1 ? c->at - c->before.length : c->at;
    size_t high = c->after.length > 1 ? c->at + c->after.length : c->at;
    if ((flags & (PYBPE_SPECIAL_RSTRIP | PYBPE_SPECIAL_SINGLE_WORD)) != 0 && low == c->at) {
        low = c->at - 1;
    }
    if ((flags & (PYBPE_SPECIAL_LSTRIP | PYBPE_SPECIAL_SINGLE_WORD)) != 0 && high == c->at) {
        high = c->at + 1;
    }
    return low < *until ? SPECIAL_TOUCHES : special_reader_ask(r, low, high, until);
}

/* Whether a cut would divide white space that a special may take as a whole, or a character. (An automaton may read
   bytes, so a candidate may be inside a character.) */
static bool flags_forbid(unsigned flags, const uint8_t *text, size_t n, size_t at) {
    if (flags == 0 || byte_is_continuation(text[at])) {
        return flags != 0;
    }
    uint8_t length;
    uint32_t before = unicode_read_before(text, at, &length);
    return (flags & SPECIAL_STRIP) != 0 && before != UNICODE_INVALID &&
           (unicode_class(before) & unicode_decode(text, n, at).class & UNICODE_SPACE) != 0;
}

size_t pybpe_text_cut(const pybpe_pretok *p, const pybpe_specials *s, const uint8_t *text, size_t n, size_t from) {
    if (from == 0 || from >= n) {
        return from < n ? 0 : n;
    }
    cut_candidate c = {.at = start_before(text, from)};
    if (p != NULL) {
        c.own = p->own;
        c.steps = p->steps.count != 0 ? &p->steps : NULL;
    }
    special_reader reader = {0};
    if (s != NULL) {
        reader = special_reader_start(s, text, n, c.at);
    }
    size_t until = 0;
    const unsigned flags = special_flags(s);
    while (candidate_next(&c, text, n, from)) {
        if (flags_forbid(flags, text, n, c.at)) {
            continue;
        }
        int answer = s == NULL ? SPECIAL_NONE : candidate_ask(&c, &reader, &until);
        if (answer != SPECIAL_TOUCHES) {
            return answer == SPECIAL_NONE ? c.at : n;
        }
    }
    return n;
}
