/*
Special tokens with flags: all matches against their definition, from any place of a text; and cuts, which must not change
the matches on either side.
*/
#include "fuzz.h"
#include "fuzz_memory.h"
#include "naive_special.h"
#include "pybpe_train.h"

enum { STRINGS = 6, MOST_CHARACTERS = 60, MOST_TEXT = 3 * MOST_CHARACTERS, MATCHES = MOST_TEXT };

static size_t read_characters(fuzz_input *in, size_t count, uint8_t *to) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const char *character = characters[fuzz_below(in, CHARACTERS)];
        memcpy(to + n, character, strlen(character));
        n += strlen(character);
    }
    return n;
}

/* Distinct strings, and flags for each. */
static void read_specials(fuzz_input *in, string_list *l, uint8_t *flags) {
    list_start(l);
    for (size_t left = 1 + fuzz_below(in, STRINGS); left > 0; left--) {
        uint8_t string[16];
        size_t n = read_characters(in, 1 + fuzz_below(in, 4), string);
        int known = 0;
        for (size_t k = 0; k < l->strings.count; k++) {
            known |= l->offsets[k + 1] - l->offsets[k] == n && occurs_at(l, k, string, n, 0);
        }
        flags[l->strings.count] = (uint8_t)fuzz_below(in, 16);
        if (!known) {
            list_add(l, string, n);
        }
    }
}

/* All matches in text[from..n), with places in the text. */
static size_t find_all(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, special_match *found) {
    size_t spans[2 * MATCHES], start = 0, end = 0;
    uint32_t ids[MATCHES], id = 0;
    size_t count = pybpe_specials_find_all(s, text, n, from, spans, ids, MATCHES);
    REQUIRE(count < MATCHES);
    for (size_t i = 0; i < count; i++) {
        found[i] = (special_match){spans[2 * i], spans[2 * i + 1], ids[i]};
    }
    REQUIRE(pybpe_specials_find(s, text, n, from, &start, &end, &id) == (count > 0));
    REQUIRE(count == 0 || (start == found[0].start && end == found[0].end && id == found[0].id));
    return count;
}

static void require_equal(const special_match *a, const special_match *b, size_t count, size_t moved) {
    for (size_t i = 0; i < count; i++) {
        REQUIRE(a[i].start == b[i].start + moved && a[i].end == b[i].end + moved && a[i].id == b[i].id);
    }
}

/* At each safe cut of text[0..n), which continues up to `whole`, the matches of both parts are those of the whole. */
static void require_cuts(const pybpe_specials *s, const pybpe_pretok *p, const uint8_t *text, size_t n, size_t whole) {
    special_match want[MATCHES], found[2 * MATCHES];
    size_t count = find_all(s, text, whole, 0, want);
    for (size_t cut = 0; cut < n && (cut = pybpe_text_cut(p, s, text, n, cut + 1)) < n;) {
        size_t left = find_all(s, text, cut, 0, found);
        size_t right = find_all(s, text, whole, cut, found + left);
        REQUIRE(left + right == count);
        require_equal(want, found, count, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static string_list l;
    uint8_t flags[STRINGS], text[MOST_TEXT];
    special_match want[MATCHES], found[MATCHES];
    fuzz_input in = {data, size};
    pybpe_error err;
    pybpe_specials *s;
    pybpe_pretok *p;
    read_specials(&in, &l, flags);
    int code = pybpe_specials_new(&s, &l.strings, l.ids, flags, &fuzz_memory, &err);
    if (code != PYBPE_OK) { /* RSTRIP, and white space at the start of a special */
        fuzz_expect_error(code, &err);
        REQUIRE(code == PYBPE_ERR_VALUE && s == NULL);
        return 0;
    }
    size_t n = read_characters(&in, fuzz_below(&in, MOST_CHARACTERS), text);
    size_t from = fuzz_byte(&in) % (n + 1);
    size_t count = find_all(s, text, n, from, found);
    REQUIRE(count == naive_flags(&l, flags, text + from, n - from, want));
    require_equal(found, want, count, from);
    REQUIRE(pybpe_pretok_new(&p, PYBPE_PATTERN_O200K, &fuzz_memory, &err) == PYBPE_OK);
    require_cuts(s, p, text, n - fuzz_byte(&in) % (n + 1), n);
    pybpe_pretok_free(p);
    pybpe_specials_free(s);
    return 0;
}
