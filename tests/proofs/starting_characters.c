/*
The argument of csrc/apply/apply_chars.h, checked on every small case: a word that starts as characters, where the tables allow
it, has the tokens of the word that starts as bytes.

For each list of merges for which there are tables, and each word (small_lists.h), merges the word by definition
(naive_encode.h) twice: from its bytes, and from the characters and bytes that apply_char_at gives.

    starting_characters          all alphabets of `alphabets`
    starting_characters quick    the same with fewer merges
*/
#include "apply/apply_chars.h"
#include "check.h"
#include "encode/encode.h"
#include "naive_encode.h"
#include "small_lists.h"

static const alphabet alphabets[] = {
    {"a character of two bytes", {0xC3, 0xA9}, 2, 5, 8},
    {"a character of three bytes, two of which are equal", {0xE4, 0xB8}, 2, 5, 8},
    {"an ASCII letter and a character of two bytes", {'a', 0xC3, 0xA9}, 3, 4, 6},
    {"two characters of two bytes with the same second byte", {0xC3, 0xC5, 0xA9}, 3, 4, 6},
    {"four characters of three bytes that share their bytes", {0xE4, 0xB8, 0xAD}, 3, 4, 7},
    {"an ASCII letter and the bytes of a character of three", {'a', 0xE4, 0xB8, 0xAD}, 4, 3, 6},
};

static word words[MOST_WORDS];
static size_t words_count;
static uint64_t lists, lists_with_tables, begun;

/* Lays out the tokens that a word starts with. Returns how many of them are characters. */
static size_t word_start(const merge_table *t, word *w) {
    size_t chars = 0;
    w->count = 0;
    for (size_t i = 0; i < w->n;) {
        apply_char c = apply_char_at(t, w->bytes, w->n, i);
        w->ids[w->count++] = c.id;
        chars += c.length > 1;
        i += c.length;
    }
    return chars;
}

static void check_word(const small_vocab *list, const merge_table *t, word *w) {
    uint32_t want[MOST_LENGTH];
    if (word_start(t, w) > 0) {
        begun++;
        w->count = merge_naive_ids(list, w->ids, w->count);
        size_t count = merge_naive(list, w->bytes, w->n, want);
        if (w->count != count || memcmp(w->ids, want, count * sizeof *want) != 0) {
            CHECK(!"characters become the tokens that bytes become");
        }
    }
}

static void check_list(const alphabet *a, const small_vocab *list) {
    (void)a;
    const pybpe_vocab_spec spec = small_spec(list);
    pybpe_vocab *v = NULL;
    pybpe_encoder *e = NULL;
    CHECK_EQ(pybpe_vocab_new(&v, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, v, NULL, 0, NULL, NULL), PYBPE_OK);
    const bool has_tables = e->table.char_ranks != NULL;
    lists++;
    lists_with_tables += has_tables;
    naive_prepare(list);
    for (size_t i = 0; i < words_count && has_tables; i++) {
        check_word(list, &e->table, &words[i]);
    }
    naive_forget(list);
    pybpe_encoder_free(e);
    pybpe_vocab_free(v);
}

int main(int argc, char **argv) {
    bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    for (size_t i = 0; i < sizeof alphabets / sizeof *alphabets; i++) {
        const alphabet *a = &alphabets[i];
        small_vocab none;
        small_start(&none);
        lists = lists_with_tables = begun = 0;
        size_t merges = a->merges - (quick ? 1 : 0);
        words_count = words_write(a, words);
        lists_visit(a, &none, merges, check_list);
        printf("%s: %" PRIu64 " lists of up to %zu merges, %" PRIu64 " of them with tables; %" PRIu64
               " words of up to %zu bytes started with a character\n",
               a->what, lists, merges, lists_with_tables, begun, a->length);
        CHECK(begun > 0);
    }
    return check_report("starting_characters");
}
