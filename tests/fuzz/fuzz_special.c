/*
Special tokens: found one at a time, and all at once, against a search at each place for each string; and cuts, which no
special may cross. Strings and text consist of few different letters, so that strings overlap and repeat.
*/
#include "fuzz.h"
#include "fuzz_memory.h"
#include "pybpe_train.h"

enum { STRINGS = 6, MOST_STRING = 80, MOST_TEXT = 600 };

typedef struct special_set {
    uint8_t bytes[STRINGS * MOST_STRING];
    uint64_t offsets[STRINGS + 1];
    uint32_t ids[STRINGS];
    size_t count;
} special_set;

static uint8_t letter(fuzz_input *in) { return (uint8_t)"xa <1\xE4\xB8\xAD"[fuzz_below(in, 8)]; }

/* Strings that repeat a short part, with an arbitrary end. */
static void read_strings(fuzz_input *in, special_set *set) {
    set->offsets[0] = 0;
    set->count = 1 + fuzz_below(in, STRINGS);
    for (size_t i = 0; i < set->count; i++) {
        uint8_t *to = set->bytes + set->offsets[i];
        size_t period = 1 + fuzz_below(in, 4);
        size_t n = 1 + fuzz_below(in, MOST_STRING);
        for (size_t k = 0; k < n; k++) {
            to[k] = k < period || k + 1 == n ? letter(in) : to[k - period];
        }
        set->offsets[i + 1] = set->offsets[i] + n;
        set->ids[i] = (uint32_t)i;
    }
}

/* The longest string at a place; STRINGS if there is none. */
static size_t longest_at(const special_set *set, const uint8_t *text, size_t n, size_t at) {
    size_t best = STRINGS, length = 0;
    for (size_t i = 0; i < set->count; i++) {
        size_t size = (size_t)(set->offsets[i + 1] - set->offsets[i]);
        if (size > length && size <= n - at && memcmp(text + at, set->bytes + set->offsets[i], size) == 0) {
            best = i;
            length = size;
        }
    }
    return best;
}

static void require_all(const special_set *set, const pybpe_specials *s, const uint8_t *text, size_t n, size_t cap) {
    size_t spans[2 * MOST_TEXT], known = 0, next = 0, last = 0;
    uint32_t ids[MOST_TEXT];
    for (size_t at = 0; at < n;) {
        size_t i = longest_at(set, text, n, at);
        if (i == STRINGS) {
            at++;
            continue;
        }
        size_t start = 0, end = 0, size = (size_t)(set->offsets[i + 1] - set->offsets[i]);
        uint32_t id = 0;
        REQUIRE(pybpe_specials_find(s, text, n, last, &start, &end, &id) == 1);
        REQUIRE(start == at && end == at + size && id == set->ids[i]);
        if (next == known) {
            known = pybpe_specials_find_all(s, text, n, last, spans, ids, cap);
            next = 0;
        }
        REQUIRE(next < known && spans[2 * next] == start && spans[2 * next + 1] == end && ids[next] == id);
        next++;
        at = last = end;
    }
    REQUIRE(next == known && pybpe_specials_find_all(s, text, n, last, spans, ids, cap) == 0);
}

static void require_cuts(const special_set *set, const pybpe_specials *s, const uint8_t *text, size_t n) {
    for (size_t cut = 0; cut < n && (cut = pybpe_text_cut(NULL, s, text, n, cut + 1)) < n;) {
        for (size_t i = 0; i < set->count; i++) {
            size_t size = (size_t)(set->offsets[i + 1] - set->offsets[i]);
            for (size_t at = cut > size ? cut - size + 1 : 0; at < cut; at++) {
                size_t there = size < n - at ? size : n - at; /* the text may continue with the rest */
                REQUIRE(at + size <= cut || memcmp(text + at, set->bytes + set->offsets[i], there) != 0);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static special_set set;
    fuzz_input in = {data, size};
    pybpe_error err;
    pybpe_specials *s;
    read_strings(&in, &set);
    const pybpe_strings strings = {set.bytes, set.offsets, set.count};
    int code = pybpe_specials_new(&s, &strings, set.ids, NULL, &fuzz_memory, &err);
    REQUIRE(code == PYBPE_OK || code == PYBPE_ERR_VALUE); /* one is given twice */
    if (code == PYBPE_OK) {
        size_t period = 1 + fuzz_below(&in, 8), n = 3 * fuzz_below(&in, MOST_TEXT / 3), cap = 1 + fuzz_below(&in, 3);
        uint8_t *text = malloc(n + 1);
        REQUIRE(text != NULL);
        for (size_t i = 0; i < n; i++) {
            text[i] = i < period || in.size > n - i ? letter(&in) : text[i - period];
        }
        require_all(&set, s, text, n, cap);
        require_cuts(&set, s, text, n);
        free(text);
        pybpe_specials_free(s);
    }
    return 0;
}
