/*
The words of cl100k, llama3, qwen2, nanochat and o200k, one at a time: for the rare blocks that the masks of pretok_cl100k.h
cannot split.

Of the alternatives in the regular expressions (pattern.c), the first that matches wins, so the first
characters of a word decide which one it is. The functions below find its end:

    '(s|t|re|ve|m|ll|d)          contraction_length
    [^\r\n\p{L}\p{N}]?\p{L}+     letters, after one character that is not a newline, letter or number
    \p{N}{1,3}                   numbers_end
     ?[^\s\p{L}\p{N}]+[\r\n]*    others_end
    \s++$|\s*[\r\n]+|\s+(?!\S)|\s+    spaces_end

o200k differs in its letters, where uppercase comes first and a contraction may follow (cased_end), and in that slashes
may also follow others.

No character is read for more than three words: the text that spaces_end and cased_end read without including it in the
word is so uniform that the next one or two words take all of it. So every text takes linear time.
*/
#include "pretok/pretok_splitter.h"

enum { NOT_OTHER = UNICODE_LETTER | UNICODE_NUMBER | UNICODE_SPACE };

static inline bool is_other(unicode_char c) { return c.length != 0 && (c.class & NOT_OTHER) == 0; }

/* The end of the run of characters from pos on that have any of these bits. */
static inline size_t skip(const uint8_t *text, size_t n, size_t pos, unsigned bits) {
    for (;;) {
        unicode_char c = unicode_decode(text, n, pos);
        if ((c.class & bits) == 0) {
            return pos;
        }
        pos += c.length;
    }
}

static inline size_t numbers_end(const uint8_t *text, size_t n, size_t pos, unsigned most) {
    for (unsigned i = 0; i < most; i++) {
        unicode_char c = unicode_decode(text, n, pos);
        if ((c.class & UNICODE_NUMBER) == 0) {
            break;
        }
        pos += c.length;
    }
    return pos;
}

static inline size_t others_end(const uint8_t *text, size_t n, size_t pos, bool slashes) {
    for (unicode_char c = unicode_decode(text, n, pos); is_other(c); c = unicode_decode(text, n, pos)) {
        pos += c.length;
    }
    while (pos < n && (text[pos] == '\r' || text[pos] == '\n' || (slashes && text[pos] == '/'))) {
        pos++;
    }
    return pos;
}

/* The end of a word of whitespace at pos. It includes everything up to the last newline. Without a newline it leaves
   the last character to the next word, unless there is only one or the text ends. */
static inline size_t spaces_end(const uint8_t *text, size_t n, size_t pos, bool end_is_one) {
    size_t newline_end = pos;
    size_t last = pos;
    size_t end = pos;
    for (;;) {
        unicode_char c = unicode_decode(text, n, end);
        if ((c.class & UNICODE_SPACE) == 0) {
            break;
        }
        last = end;
        end += c.length;
        newline_end = (c.class & UNICODE_NEWLINE) != 0 ? end : newline_end;
    }
    if (newline_end > pos && !(end_is_one && end == n)) {
        return newline_end;
    }
    return end == n || last == pos ? end : last;
}

/* The end of o200k's [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ at pos. If the first part leaves
   nothing for the second, it gives back everything after the last character that fits both. If there is none, all are
   capitals: *capitals is set, and o200k's second alternative takes all of them. */
static inline size_t cased_end(const uint8_t *text, size_t n, size_t pos, bool *capitals) {
    enum { BOTH = UNICODE_CASELESS | UNICODE_MARK };
    size_t both_end = pos;
    size_t end = pos;
    unicode_char c = unicode_decode(text, n, end);
    for (; (c.class & (UNICODE_UPPER | BOTH)) != 0; c = unicode_decode(text, n, end)) {
        end += c.length;
        both_end = (c.class & BOTH) != 0 ? end : both_end;
    }
    *capitals = false;
    if ((c.class & UNICODE_LOWER) != 0) {
        return skip(text, n, end + c.length, UNICODE_LOWER | BOTH);
    }
    if (both_end > pos) {
        return both_end;
    }
    *capitals = true;
    return end;
}

/* The end of a word of letters for o200k, where c is the character at pos and d the next one. `pos` if there is no such
   word. A mark may be the character before the letters, but if only capitals follow, the mark is itself the word. */
static inline size_t cased_word_end(const uint8_t *text, size_t n, size_t pos, unicode_char c, unicode_char d) {
    bool capitals;
    size_t end;
    if ((c.class & UNICODE_LETTER) != 0) {
        end = cased_end(text, n, pos, &capitals);
    } else if ((c.class & UNICODE_MARK) != 0) {
        end = cased_end(text, n, pos + c.length, &capitals);
        end = capitals ? pos + c.length : end;
    } else if ((d.class & (UNICODE_LETTER | UNICODE_MARK)) != 0 && (c.class & UNICODE_NEWLINE) == 0) {
        end = cased_end(text, n, pos + c.length, &capitals);
    } else {
        return pos;
    }
    return end + contraction_length(text, n, end);
}

/* The same for the other patterns. */
static inline size_t plain_word_end(const uint8_t *text, size_t n, size_t pos, unicode_char c, unicode_char d) {
    if ((c.class & UNICODE_LETTER) != 0) {
        return skip(text, n, pos + c.length, UNICODE_LETTER);
    }
    size_t contraction = contraction_length(text, n, pos);
    if (contraction != 0) {
        return pos + contraction;
    }
    if ((d.class & UNICODE_LETTER) != 0 && (c.class & UNICODE_NEWLINE) == 0) {
        return skip(text, n, pos + c.length + d.length, UNICODE_LETTER);
    }
    return pos;
}

static inline size_t word_end(const uint8_t *text, size_t n, size_t pos, pretok_rules r) {
    unicode_char c = unicode_decode(text, n, pos);
    if ((c.class & UNICODE_NUMBER) != 0) {
        return numbers_end(text, n, pos, r.numbers);
    }
    unicode_char d = unicode_decode(text, n, pos + c.length);
    size_t end = r.cased ? cased_word_end(text, n, pos, c, d) : plain_word_end(text, n, pos, c, d);
    if (end > pos) {
        return end;
    }
    if (is_other(c) || (text[pos] == ' ' && is_other(d))) {
        return others_end(text, n, pos + c.length, r.cased);
    }
    return spaces_end(text, n, pos, r.end_is_one);
}

uint64_t pretok_scan_starts(pretok_place *place, const uint8_t *text, size_t n, size_t base, unsigned length,
                            pretok_rules r) {
    size_t pos = place->resume >= base ? place->resume : place->word;
    uint64_t starts = 0;
    while (pos < base + length) {
        starts |= pos >= base ? UINT64_C(1) << (pos - base) : 0;
        pos = word_end(text, n, pos, r);
    }
    place->resume = pos;
    return starts;
}

void pretok_scan_spaces(pretok_place *place, const uint8_t *text, size_t n, size_t pos) {
    place->newline_end = pos;
    unicode_char c = unicode_decode(text, n, pos);
    for (; (c.class & UNICODE_SPACE) != 0; c = unicode_decode(text, n, pos)) {
        pos += c.length;
        place->newline_end = (c.class & UNICODE_NEWLINE) != 0 ? pos : place->newline_end;
    }
    place->space_end = pos;
}
