/*
Special tokens: finding many strings in a text at once, with the automaton of special_automaton.h.

It finds the leftmost longest match, as Hugging Face does for added tokens. So it keeps a match while the state begins
no later than the match, since a longer string from there is still possible, and returns the match as soon as the state
begins after it. For nearly all of a text the automaton is at the root, where only the first two bytes of each string
matter. If all strings have the same first byte, usually "<", memchr skips to it.

The bytes that were read after the match are then read again, and again after the next match, which may begin right
after it:

    strings  "x" and "xaxa...xab"            xaxaxaxaxaxaxaxa...xaxac
                                             |------ read ---------->|  "x" at 0
                                               |---- read again ---->|  "x" at 2, and so on

With strings of several kilobytes that takes quadratic time. So once more than a few bytes were read without result, a scan
reads the following text backward, with an automaton of the reversed strings. Its state at a place gives the longest
string that *begins* there, in O(1). The states of one window are kept; a window is as long as the longest string, so
that each byte is read at most twice.
*/
#include "special.h"

#include "special_automaton.h"

enum { SHORT_LOOK = 32 }; /* rereading this many bytes after each match costs less than avoiding it */

struct pybpe_specials {
    pybpe_allocator mem;
    special_automaton forward;
    special_automaton backward; /* of the reversed strings; has no states if `forward` never looks far ahead */
    int only_first;             /* the byte that all strings begin with, or -1 */
    bool first[256];            /* whether a string begins with this byte */
    bool second[256];           /* whether a string has this second byte; all true if some string has only one byte */
};

/* ---------------------------------------------------------------------------------------------------
Building
*/

static void starts_note(pybpe_specials *s, const pybpe_strings *strings) {
    int firsts = 0;
    for (size_t i = 0; i < strings->count; i++) {
        const uint8_t *bytes = strings->bytes + strings->offsets[i];
        firsts += !s->first[bytes[0]];
        s->first[bytes[0]] = true;
        s->only_first = firsts == 1 ? bytes[0] : -1;
        if (strings->offsets[i + 1] - strings->offsets[i] > 1) {
            s->second[bytes[1]] = true;
        } else {
            memset(s->second, true, sizeof s->second);
        }
    }
}

int pybpe_specials_new(pybpe_specials **out, const pybpe_strings *strings, const uint32_t *ids,
                       const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    int code = strings_check(strings, "special tokens", err);
    if (code != PYBPE_OK) {
        return code;
    }
    if (strings_total(strings) >= UINT32_MAX) {
        return error_set(err, PYBPE_ERR_LIMIT, 0,
                         "special tokens of %llu bytes in total are too long: the limit is 4 GiB",
                         (unsigned long long)strings_total(strings));
    }
    pybpe_specials *s = mem_alloc_zeroed(mem, 1, sizeof *s);
    if (s == NULL) {
        return error_set_memory(err, "special tokens", sizeof *s);
    }
    s->mem = mem_of(mem);
    s->only_first = -1;
    code = automaton_init(&s->forward, strings, ids, false, mem, err);
    if (code == PYBPE_OK && s->forward.look_ahead > SHORT_LOOK) {
        code = automaton_init(&s->backward, strings, ids, true, mem, err);
    }
    if (code != PYBPE_OK) {
        pybpe_specials_free(s);
        return code;
    }
    starts_note(s, strings);
    *out = s;
    return PYBPE_OK;
}

void pybpe_specials_free(pybpe_specials *s) {
    if (s != NULL) {
        pybpe_allocator mem = s->mem;
        automaton_free(&s->forward, &mem);
        automaton_free(&s->backward, &mem);
        mem_free(&mem, s);
    }
}

/* ---------------------------------------------------------------------------------------------------
Finding
*/

/* The first place at or after `at` where a special can begin according to its first two bytes; n if there is none. */
static size_t candidate_find(const pybpe_specials *s, const uint8_t *text, size_t n, size_t at) {
    for (; at < n; at++) {
        if (s->only_first >= 0) {
            const uint8_t *found = memchr(text + at, s->only_first, n - at);
            if (found == NULL) {
                return n;
            }
            at = (size_t)(found - text);
        } else if (!s->first[text[at]]) {
            continue;
        }
        if (at + 1 == n || s->second[text[at + 1]]) {
            return at;
        }
    }
    return n;
}

/* The first special at or after `from`. *read is where reading ended. */
static bool first_find(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, special_match *match,
                       size_t *read) {
    const special_automaton *a = &s->forward;
    uint32_t state = ROOT;
    bool found = false;
    size_t at = from;
    for (; at < n; at++) {
        if (state == ROOT) {
            at = found ? at : candidate_find(s, text, n, at);
            if (at == n) {
                break;
            }
        }
        state = state_next(a, state, text[at]);
        const special_state *now = &a->states[state];
        if (found && at + 1 - now->depth > match->start) {
            break;
        }
        size_t start = at + 1 - now->match_length;
        if (now->match_length > 0 && (!found || start <= match->start)) {
            *match = (special_match){start, at + 1, now->match_id};
            found = true;
        }
    }
    *read = at;
    return found;
}

int pybpe_specials_find(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, size_t *start, size_t *end,
                        uint32_t *id) {
    special_match match;
    size_t read;
    if (!first_find(s, text, n, from, &match, &read)) {
        return 0;
    }
    *start = match.start;
    *end = match.end;
    *id = match.id;
    return 1;
}

special_scan special_scan_start(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from) {
    return (special_scan){.s = s, .text = text, .n = n, .at = s == NULL ? n : from};
}

void special_scan_end(special_scan *scan) {
    if (scan->longest != NULL) {
        mem_free(&scan->s->mem, scan->longest);
        scan->longest = NULL;
    }
}

/* Fills a window that begins at scan->at. If memory is out there is no window: then the scan is correct, but slower. */
static void window_fill(special_scan *scan) {
    const special_automaton *a = &scan->s->backward;
    const size_t most = a->max_length;
    if (scan->longest == NULL) {
        scan->longest = mem_alloc_array(&scan->s->mem, most, sizeof *scan->longest);
        if (scan->longest == NULL) {
            return;
        }
    }
    const size_t left = scan->n - scan->at;
    scan->window = scan->at;
    scan->window_end = scan->at + (left < most ? left : most);
    const size_t after = scan->n - scan->window_end;
    uint32_t state = ROOT;
    for (size_t at = scan->window_end + (after < most ? after : most); at-- > scan->window;) {
        state = state_next(a, state, scan->text[at]);
        if (at < scan->window_end) {
            scan->longest[at - scan->window] = state;
        }
    }
}

/* The next special that begins in the window. */
static bool window_next(special_scan *scan, special_match *match) {
    for (; scan->at < scan->window_end; scan->at++) {
        const special_state *state = &scan->s->backward.states[scan->longest[scan->at - scan->window]];
        if (state->match_length > 0) {
            *match = (special_match){scan->at, scan->at + state->match_length, state->match_id};
            scan->at = match->end;
            return true;
        }
    }
    return false;
}

bool special_scan_next(special_scan *scan, special_match *match) {
    if (window_next(scan, match)) {
        return true;
    }
    size_t read;
    if (scan->at >= scan->n || !first_find(scan->s, scan->text, scan->n, scan->at, match, &read)) {
        scan->at = scan->n;
        return false;
    }
    scan->at = match->end;
    if (scan->s->backward.states != NULL && read - match->end > SHORT_LOOK) {
        window_fill(scan);
    }
    return true;
}

size_t pybpe_specials_find_all(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, size_t *spans,
                               uint32_t *ids, size_t cap) {
    special_scan scan = special_scan_start(s, text, n, from);
    special_match match;
    size_t count = 0;
    for (; count < cap && special_scan_next(&scan, &match); count++) {
        spans[2 * count] = match.start;
        spans[2 * count + 1] = match.end;
        ids[count] = match.id;
    }
    special_scan_end(&scan);
    return count;
}

/* ---------------------------------------------------------------------------------------------------
Places that no special touches
*/

/* Skips text in which no special that touches `low` can begin. */
static void reader_skip(special_reader *r, size_t low) {
    size_t reach = r->s->forward.max_length;
    if (low > reach && r->at < low - reach) {
        r->at = low - reach;
        r->state = ROOT;
    }
}

special_reader special_reader_start(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from) {
    special_reader r = {s, text, n, 0, ROOT};
    reader_skip(&r, from);
    return r;
}

int special_reader_ask(special_reader *r, size_t low, size_t high, size_t *until) {
    const special_automaton *a = &r->s->forward;
    reader_skip(r, low);
    while (r->at < high || r->at - a->states[r->state].depth < high) {
        if (r->at >= r->n) {
            return SPECIAL_UNDECIDED;
        }
        r->state = state_next(a, r->state, r->text[r->at]);
        r->at++;
        const special_state *now = &a->states[r->state];
        if (now->match_length > 0 && r->at > low && r->at - now->match_length < high) {
            *until = r->at;
            return SPECIAL_TOUCHES;
        }
    }
    return SPECIAL_NONE;
}
