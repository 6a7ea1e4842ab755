/*
Finding many strings in a text at once, with the automaton of special_automaton.h.

It finds the leftmost longest match, as Hugging Face does for added tokens. So it keeps a match while the state begins
no later than the match, since a longer string from there is still possible, and returns the match as soon as the state
begins after it. For nearly all of a text the automaton is at the root, where only the first two bytes of a string
matter. If all strings have the same first byte, usually "<", memchr skips to it.

The bytes that were read after the match are then read again, and again after the next match, which may begin right
after it:

    strings  "x" and "xaxa...xab"            xaxaxaxaxaxaxaxa...xaxac
                                             |------ read ---------->|  "x" at 0
                                               |---- read again ---->|  "x" at 2, and so on

With strings of several kilobytes that takes quadratic time. So once more than a few bytes were read without result, a
scan reads the following text backward, with an automaton of the reversed strings. Its state at a place gives the
longest string that *begins* there, in O(1). The states of one window are kept. A window is as long as the longest
string, so that no byte is read more than twice.
*/
#include "special/special_strings.h"

enum { SHORT_LOOK = 32 }; /* rereading this many bytes after a match costs less than avoiding it */

/* ---------------------------------------------------------------------------------------------------
Building
*/

static void starts_note(string_set *s, const pybpe_strings *strings) {
    int firsts = 0;
    for (size_t i = 0; i < strings->count; i++) {
        const uint8_t *bytes = string_at(strings, i);
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

int string_set_init(string_set *s, const pybpe_strings *strings, const uint32_t *ids, const pybpe_allocator *mem,
                    pybpe_error *err) {
    *s = (string_set){.mem = mem_of(mem), .only_first = -1};
    int code = automaton_init(&s->forward, strings, ids, false, mem, err);
    if (code == PYBPE_OK && s->forward.look_ahead > SHORT_LOOK) {
        code = automaton_init(&s->backward, strings, ids, true, mem, err);
    }
    if (code != PYBPE_OK) {
        string_set_free(s);
        return code;
    }
    starts_note(s, strings);
    return PYBPE_OK;
}

void string_set_free(string_set *s) {
    automaton_free(&s->forward, &s->mem);
    automaton_free(&s->backward, &s->mem);
}

/* ---------------------------------------------------------------------------------------------------
Finding
*/

/* The first place at or after `at` where a special can begin according to its first two bytes. `n` if there is none. */
static size_t candidate_find(const string_set *s, const uint8_t *text, size_t n, size_t at) {
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
bool string_set_first(const string_set *s, const uint8_t *text, size_t n, size_t from, special_match *match,
                      size_t *read) {
    const special_automaton *a = &s->forward;
    uint32_t state = ROOT;
    bool found = false;
    size_t at = from;
    for (; at < n; at++) {
        if (state == ROOT) {
            at = candidate_find(s, text, n, at); /* nothing is found: in this state the search would have ended */
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

/* Fills a window that begins at scan->at. If memory is out there is no window: then the scan is correct, but slower. */
static void window_fill(string_scan *scan) {
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
static bool window_next(string_scan *scan, special_match *match) {
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

/* Whether the next special is the one that was found last, as it nearly always is between documents. Otherwise moves to
   the next candidate. It needs a set without look-ahead: no other string then begins with this one. */
static bool again_next(string_scan *scan, special_match *match) {
    const size_t length = scan->last.end - scan->last.start;
    if (length == 0 || scan->s->forward.look_ahead > 0) {
        return false;
    }
    scan->at = candidate_find(scan->s, scan->text, scan->n, scan->at);
    if (scan->n - scan->at < length || memcmp(scan->text + scan->at, scan->text + scan->last.start, length) != 0) {
        return false;
    }
    *match = (special_match){scan->at, scan->at + length, scan->last.id};
    return true;
}

bool string_scan_next(string_scan *scan, special_match *match) {
    if (window_next(scan, match)) {
        return true;
    }
    if (scan->at >= scan->n) {
        return false;
    }
    if (again_next(scan, match)) {
        scan->at = match->end;
        return true;
    }
    size_t read;
    if (!string_set_first(scan->s, scan->text, scan->n, scan->at, match, &read)) {
        return false;
    }
    scan->at = match->end;
    scan->last = *match;
    if (scan->s->backward.states != NULL && read - match->end > SHORT_LOOK) {
        window_fill(scan);
    }
    return true;
}
