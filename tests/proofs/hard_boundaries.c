/*
The argument of csrc/encode/encode_boundary.c, checked on every small case: where a place is a hard boundary, a word has
the tokens of its left part, and then the tokens of its right part.

For each list of merges and each word (small_lists.h), merges the word and its parts by definition (naive_encode.h), and
asks the table about each place between two bytes.

    hard_boundaries          all alphabets of `alphabets`
    hard_boundaries quick    the same with fewer merges
*/
#include "check.h"
#include "encode/encode.h"
#include "naive_encode.h"
#include "small_lists.h"

static const alphabet alphabets[] = {
    {"two ASCII letters", {'a', 'b'}, 2, 5, 7},
    {"an ASCII letter and a character of two bytes", {'a', 0xC3, 0xA9}, 3, 4, 6},
    {"two characters of two bytes with the same second byte", {0xC3, 0xC5, 0xA9}, 3, 4, 6},
    {"an ASCII letter and the bytes of a character of three", {'a', 0xE4, 0xB8, 0xAD}, 4, 3, 6},
    {"the bytes of a character of four", {0xF0, 0x9F, 0x98, 0x80}, 4, 3, 6},
};

static word words[MOST_WORDS];
static size_t words_count;
static uint64_t lists, hard_places, soft_places;

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

static void check_list(const alphabet *a, const small_vocab *list) {
    pybpe_vocab_spec spec = small_spec(list);
    pybpe_vocab *v = NULL;
    boundary_table t;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    const pybpe_allocator mem = mem_of(NULL);
    CHECK_EQ(boundary_table_new(&t, v, &mem, NULL), PYBPE_OK);
    naive_prepare(list);
    for (size_t i = 0; i < words_count; i++) {
        words[i].count = merge_naive(list, words[i].bytes, words[i].n, words[i].ids);
    }
    naive_forget(list);
    for (size_t i = 0; i < words_count; i++) {
        check_word(a, &t, &words[i]);
    }
    boundary_table_free(&t, &mem);
    pybpe_vocab_free(v);
    lists++;
}

int main(int argc, char **argv) {
    bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    for (size_t i = 0; i < sizeof alphabets / sizeof *alphabets; i++) {
        const alphabet *a = &alphabets[i];
        small_vocab small;
        small_start(&small);
        lists = hard_places = soft_places = 0;
        size_t merges = a->merges - (quick ? 2 : 0);
        words_count = words_write(a, words);
        lists_visit(a, &small, merges, check_list);
        printf("%s: %" PRIu64 " lists of up to %zu merges, %zu words of up to %zu bytes: %" PRIu64
               " hard boundaries, %" PRIu64 " other places\n",
               a->what, lists, merges, words_count, a->length, hard_places, soft_places);
        CHECK(hard_places > 0 && soft_places > 0);
    }
    return check_report("hard_boundaries");
}
