/*
The argument of csrc/encode_boundary.c, checked on every small case: where a place is a hard boundary, the tokens of a
word are those of its left part followed by those of its right part.

Takes every list of up to `merges` merges over an alphabet of few bytes, and every word of up to `length` of these bytes.
Merges a word and its parts by definition (naive_encode.h), and asks the table about each place between two bytes. A
list may contain any pair of tokens that exist at this point, also pairs that no trainer would choose, and two merges
that make the same token.

    hard_boundaries          all alphabets of `alphabets`
    hard_boundaries quick    the same with fewer merges
*/
#include "check.h"
#include "encode.h"
#include "naive_encode.h"

enum { MOST_LETTERS = 4, MOST_LENGTH = 8, MOST_WORDS = 6000 };

typedef struct alphabet {
    const char *what;
    uint8_t letters[MOST_LETTERS];
    size_t count;
    size_t merges;
    size_t length;
} alphabet;

/* The words of an alphabet are numbered by length, and among those of one length as numbers in base `count`. */
static const alphabet alphabets[] = {
    {"two ASCII letters", {'a', 'b'}, 2, 5, 7},
    {"an ASCII letter and a character of two bytes", {'a', 0xC3, 0xA9}, 3, 4, 6},
    {"two characters of two bytes with the same second byte", {0xC3, 0xC5, 0xA9}, 3, 4, 6},
    {"an ASCII letter and the bytes of a character of three", {'a', 0xE4, 0xB8, 0xAD}, 4, 3, 6},
    {"the bytes of a character of four", {0xF0, 0x9F, 0x98, 0x80}, 4, 3, 6},
};

typedef struct word {
    uint8_t bytes[MOST_LENGTH];
    size_t n;
    uint32_t ids[MOST_LENGTH];
    size_t count;
} word;

static word words[MOST_WORDS];
static uint64_t lists, hard_places, soft_places;

/* The number of words that are shorter than n. */
static size_t words_before(const alphabet *a, size_t n) {
    size_t before = 0;
    for (size_t k = 1, power = a->count; k < n; k++, power *= a->count) {
        before += power;
    }
    return before;
}

/* Writes all words; returns their number. */
static size_t words_write(const alphabet *a) {
    size_t total = 0;
    for (size_t n = 1, power = a->count; n <= a->length; n++, power *= a->count) {
        for (size_t number = 0; number < power; number++) {
            word *w = &words[total++];
            w->n = n;
            for (size_t k = n, rest = number; k-- > 0; rest /= a->count) {
                w->bytes[k] = a->letters[rest % a->count];
            }
        }
    }
    return total;
}

/* Whether the tokens of w are those of its parts, which have the numbers `left` and `right`. */
static bool parts_agree(const word *w, const word *left, const word *right) {
    return w->count == left->count + right->count && memcmp(w->ids, left->ids, left->count * sizeof *w->ids) == 0 &&
           memcmp(w->ids + left->count, right->ids, right->count * sizeof *w->ids) == 0;
}

static void check_word(const alphabet *a, const boundary_table *t, const word *w) {
    size_t number = (size_t)(w - words) - words_before(a, w->n); /* in base a->count */
    size_t power = 1;
    for (size_t i = w->n - 1; i > 0; i--) {
        power *= a->count; /* count^(n - i) */
        if (boundary_is_soft(t, boundary_around_careful(w->bytes, w->n, i))) {
            soft_places++;
            continue;
        }
        hard_places++;
        const word *left = &words[words_before(a, i) + number / power];
        const word *right = &words[words_before(a, w->n - i) + number % power];
        if (!parts_agree(w, left, right)) {
            CHECK(!"the tokens of the parts are those of the word");
        }
    }
}

static void check_list(const alphabet *a, const small_vocab *small, size_t total) {
    pybpe_vocab_spec spec = small_spec(small);
    pybpe_vocab *v = NULL;
    boundary_table t;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    const pybpe_allocator mem = mem_of(NULL);
    CHECK_EQ(boundary_table_new(&t, v, &mem, NULL), PYBPE_OK);
    naive_prepare(small);
    for (size_t i = 0; i < total; i++) {
        words[i].count = merge_naive(small, words[i].bytes, words[i].n, words[i].ids);
    }
    naive_forget(small);
    for (size_t i = 0; i < total; i++) {
        check_word(a, &t, &words[i]);
    }
    boundary_table_free(&t, &mem);
    pybpe_vocab_free(v);
    lists++;
}

/* The id of token number k: first the letters, then the tokens that merges made. */
static uint32_t token_of(const alphabet *a, size_t k) {
    return k < a->count ? a->letters[k] : (uint32_t)(256 + k - a->count);
}

/* Checks the list in `small` and all its continuations by up to `more` merges. */
static void check_lists(const alphabet *a, const small_vocab *small, size_t more, size_t total) {
    check_list(a, small, total);
    size_t tokens = a->count + small->count - 256;
    for (size_t pair = 0; more > 0 && pair < tokens * tokens; pair++) {
        uint32_t left = token_of(a, pair / tokens);
        uint32_t right = token_of(a, pair % tokens);
        bool known = false;
        for (size_t m = 0; m < small->merges_count; m++) {
            known |= small->merges[2 * m] == left && small->merges[2 * m + 1] == right;
        }
        if (!known) {
            small_vocab next = *small;
            small_add_merge(&next, left, right);
            check_lists(a, &next, more - 1, total);
        }
    }
}

int main(int argc, char **argv) {
    bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    for (size_t i = 0; i < sizeof alphabets / sizeof *alphabets; i++) {
        const alphabet *a = &alphabets[i];
        small_vocab small;
        small_start(&small);
        lists = hard_places = soft_places = 0;
        size_t merges = a->merges - (quick ? 2 : 0), total = words_write(a);
        check_lists(a, &small, merges, total);
        printf("%s: %" PRIu64 " lists of up to %zu merges, %zu words of up to %zu bytes: %" PRIu64
               " hard boundaries, %" PRIu64 " other places\n",
               a->what, lists, merges, total, a->length, hard_places, soft_places);
        CHECK(hard_places > 0 && soft_places > 0);
    }
    return check_report("hard_boundaries");
}
