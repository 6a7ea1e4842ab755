/*
Special tokens: finding them in a text, and the places that none touches.

special_strings.c finds the strings. Without flags they are the matches, otherwise special_rules.c decides.
*/
#include "special/special.h"

struct pybpe_specials {
    pybpe_allocator mem;
    string_set all;
    special_pass passes[SPECIAL_PASSES]; /* the same strings, if any has flags */
    unsigned flags;                      /* that any of them has */
};

/* ---------------------------------------------------------------------------------------------------
Building
*/

static int specials_init(pybpe_specials *s, const pybpe_strings *strings, const uint32_t *ids, const uint8_t *flags,
                         const pybpe_allocator *mem, pybpe_error *err) {
    int code = string_set_init(&s->all, strings, ids, mem, err);
    for (size_t i = 0; code == PYBPE_OK && flags != NULL && i < strings->count; i++) {
        if ((flags[i] & ~(SPECIAL_STRIP | PYBPE_SPECIAL_SINGLE_WORD | PYBPE_SPECIAL_LATE)) != 0) {
            code = error_set(err, PYBPE_ERR_VALUE, i, "special token %zu has unknown flags, %u", i, flags[i]);
        }
        s->flags |= flags[i];
    }
    if (code == PYBPE_OK && s->flags != 0) {
        code = special_passes_init(s->passes, strings, ids, flags, mem, err);
    }
    return code;
}

int pybpe_specials_new(pybpe_specials **out, const pybpe_strings *strings, const uint32_t *ids, const uint8_t *flags,
                       const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    PYBPE_TRY(strings_check(strings, "special tokens", err));
    PYBPE_TRY(array_check(ids, strings->count, "the ids of special tokens", err));
    if (strings_total(strings) >= UINT32_MAX) {
        return error_set(err, PYBPE_ERR_LIMIT, 0,
                         "special tokens of %llu bytes in total are too long: the limit is 4 GiB",
                         (unsigned long long)strings_total(strings));
    }
    pybpe_specials *s = mem_alloc_zeroed(mem, 1, sizeof *s);
    PYBPE_TRY(memory_check(s, "special tokens", sizeof *s, err));
    s->mem = mem_of(mem);
    int code = specials_init(s, strings, ids, flags, mem, err);
    if (code != PYBPE_OK) {
        pybpe_specials_free(s);
        return code;
    }
    *out = s;
    return PYBPE_OK;
}

void pybpe_specials_free(pybpe_specials *s) {
    if (s != NULL) {
        pybpe_allocator mem = s->mem;
        string_set_free(&s->all);
        special_passes_free(s->passes, &mem);
        mem_free(&mem, s);
    }
}

unsigned special_flags(const pybpe_specials *s) { return s != NULL ? s->flags : 0; }

/* ---------------------------------------------------------------------------------------------------
Finding
*/

void special_scan_start(special_scan *scan, const pybpe_specials *s, const uint8_t *text, size_t n, size_t from) {
    scan->from = from;
    scan->has_rules = special_flags(s) != 0;
    if (scan->has_rules) {
        rules_scan_start(&scan->rules, s->passes, text + from, n - from);
    } else {
        string_scan_start(&scan->strings, s != NULL ? &s->all : NULL, text, n, from);
    }
}

int pybpe_specials_find(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, size_t *start, size_t *end,
                        uint32_t *id) {
    special_match match;
    bool found;
    if (s->flags == 0) {
        size_t read;
        found = string_set_first(&s->all, text, n, from, &match, &read);
    } else {
        special_scan scan;
        special_scan_start(&scan, s, text, n, from);
        found = special_scan_next(&scan, &match);
        special_scan_end(&scan);
    }
    if (found) {
        *start = match.start;
        *end = match.end;
        *id = match.id;
    }
    return found;
}

size_t pybpe_specials_find_all(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, size_t *spans,
                               uint32_t *ids, size_t cap) {
    special_scan scan;
    special_scan_start(&scan, s, text, n, from);
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
    size_t reach = r->s->all.forward.max_length;
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
    const special_automaton *a = &r->s->all.forward;
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
