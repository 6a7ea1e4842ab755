/*
Words that start as characters (csrc/apply/apply_chars.h) against the definition, which starts with bytes.
*/
#include "apply/apply.h"
#include "apply/apply_chars.h"
#include "check.h"
#include "encode/encode.h"
#include "naive_encode.h"
#include "random_state.h"
#include "small_encoder.h"

enum { MOST_BYTES = APPLY_SHORT_MAX };

/* Characters of one to four bytes that share their first or last bytes, and bytes that are not characters. */
static const char *const PARTS[] = {"a",
                                    "b",
                                    "\xC3\xA9",
                                    "\xC3\xA8",
                                    "\xD0\xA9",
                                    "\xE4\xBD\xA0",
                                    "\xE4\xBD\xA9",
                                    "\xE4\xA9\xA0",
                                    "\xE5\xA5\xBD",
                                    "\xEF\xBC\x8C",
                                    "\xE0\xA9\xA0",
                                    "\xE0\x83\xA9" /* a wrong spelling of U+00E9 */,
                                    "\xF0\x9F\x98\x80",
                                    "\xA9",
                                    "\xC3",
                                    "\xE4",
                                    "\xE4\xBD"};
enum { CHARS = 11, ALL_PARTS = sizeof PARTS / sizeof *PARTS };

/* Checks the tokens of a word. Returns the number of characters that it starts with. */
static size_t check_word(const small_encoder *s, const small_vocab *v, const void *word, size_t n) {
    const merge_table *t = &s->e->table;
    uint32_t want[MOST_BYTES];
    uint32_t ids[MOST_BYTES];
    const size_t count = merge_naive(v, word, n, want);
    const size_t got = apply_short(t, word, n, ids);
    CHECK(got == count && memcmp(ids, want, count * sizeof *ids) == 0);
    size_t chars = 0;
    for (size_t i = 0; t->char_ranks != NULL && i < n;) {
        const size_t length = apply_char_at(t, word, n, i).length;
        chars += length > 1;
        i += length;
    }
    return chars;
}

#define CHECK_CHARS(s, v, word, chars) CHECK_EQ(check_word((s), (v), (word), strlen(word)), (chars))

/* A merge takes the first or the last byte of a character before the character is complete. */
static void test_guards(void) {
    small_vocab v;
    small_start(&v);
    small_add_merge(&v, 'a', 0xC3);
    small_add_merge(&v, 0xA9, 'b');
    const uint32_t e = small_add_merge(&v, 0xC3, 0xA9);
    small_add_merge(&v, 'b', 0xC3); /* too late to matter */
    small_add_merge(&v, e, e);
    naive_prepare(&v);
    small_encoder s = small_encoder_new(&v);
    CHECK_CHARS(&s, &v, "\xC3\xA9", 1);
    CHECK_CHARS(&s, &v, "\xC3\xA9\xC3\xA9", 2);
    CHECK_CHARS(&s, &v, "a\xC3\xA9", 0);
    CHECK_CHARS(&s, &v, "b\xC3\xA9", 1);
    CHECK_CHARS(&s, &v,
                "\xC3\xA9"
                "b",
                0);
    CHECK_CHARS(&s, &v,
                "\xC3\xA9"
                "a",
                1);
    CHECK_CHARS(&s, &v,
                "\xC3\xA9\xC3\xA9"
                "b\xC3\xA9\xC3\xA9",
                3);
    CHECK_CHARS(&s, &v, "\xC3\xA8", 0); /* not a token */
    naive_forget(&v);
    small_encoder_free(&s);
}

/* Does the same for two bytes of a character of three. */
static void test_guards_of_three(void) {
    small_vocab v;
    small_start(&v);
    const uint32_t left = small_add_merge(&v, 0xE4, 0xBD);
    const uint32_t right = small_add_merge(&v, 0xA5, 0xBD);
    small_add_merge(&v, 'a', left);
    small_add_merge(&v, right, 'b');
    small_add_merge(&v, left, 0xA0);
    small_add_merge(&v, 0xE5, right);
    naive_prepare(&v);
    small_encoder s = small_encoder_new(&v);
    CHECK_CHARS(&s, &v, "\xE4\xBD\xA0\xE5\xA5\xBD", 2);
    CHECK_CHARS(&s, &v,
                "a\xE4\xBD\xA0\xE5\xA5\xBD"
                "a",
                1);
    CHECK_CHARS(&s, &v,
                "b\xE4\xBD\xA0\xE5\xA5\xBD"
                "b",
                1);
    naive_forget(&v);
    small_encoder_free(&s);
}

/* The tables are only filled if the merges make consecutive ids, and the parts of a token before the token. */
static void test_order(void) {
    for (int reversed = 0; reversed < 2; reversed++) {
        small_vocab v;
        small_start(&v);
        small_add_token(&v, reversed ? "\xC3\xA9" : "\xC3\xA9\x62", reversed ? 2 : 3);
        const uint32_t e = reversed ? 256 : small_add_token(&v, "\xC3\xA9", 2);
        small_add_merge(&v, e, 'b');
        small_add_merge(&v, 0xC3, 0xA9);
        naive_prepare(&v);
        small_encoder s = small_encoder_new(&v);
        CHECK_EQ(s.e->table.consecutive, !reversed);
        CHECK(s.e->table.char_ranks == NULL);
        CHECK_CHARS(&s, &v, "\xC3\xA9\x62", 0);
        naive_forget(&v);
        small_encoder_free(&s);
    }
}

/* A character's last merge has a lower rank than the merge that makes its left or its right part. Between these two, a
   byte outside takes one of the character, so the character must not be complete from the start. */
static void test_order_of_parts(void) {
    enum { OTHERS = 3 };
    static const uint8_t c[] = {0xE4, 0xBD, 0xA0};
    for (size_t others = 0; others < OTHERS * OTHERS; others++) {
        for (int right = 0; right < 2; right++) {
            small_vocab v;
            small_start(&v);
            for (size_t i = 0; i < others % OTHERS; i++) {
                small_add_merge(&v, 'x', (uint8_t)('x' + i));
            }
            small_add_token(&v, c, 3);
            small_add_token(&v, right ? "\xA0z" : "z\xE4", 2);
            const uint32_t part = small_add_token(&v, c + right, 2);
            small_add_merge(&v, right ? c[0] : part, right ? part : c[2]);
            small_add_merge(&v, right ? c[2] : 'z', right ? 'z' : c[0]);
            small_add_merge(&v, c[right], c[right + 1]);
            for (size_t i = 0; i < others / OTHERS; i++) {
                small_add_merge(&v, 'y', (uint8_t)('x' + i));
            }
            naive_prepare(&v);
            small_encoder s = small_encoder_new(&v);
            CHECK(s.e->table.consecutive);
            CHECK_CHARS(&s, &v, "z\xE4\xBD\xA0z", 0);
            naive_forget(&v);
            small_encoder_free(&s);
        }
    }
}

/* Merges with complete characters do not keep others from starting as tokens, and neither do tokens that no merge makes. */
static void test_no_needless_guards(void) {
    small_vocab v;
    small_start(&v);
    const uint32_t end = small_add_merge(&v, 0xA9, 'a');
    const uint32_t e = small_add_merge(&v, 0xC3, 0xA9);
    small_add_merge(&v, end, e);
    small_add_merge(&v, 'z', e);
    small_add_merge(&v, 0xC3, 0xA8);
    const uint32_t other = (uint32_t)v.count + 1; /* directly after the tokens of merges */
    small_add_token(&v, "qqr", 3);
    small_add_token(&v, "qq", 2);
    small_add_merge(&v, other, 'r');
    naive_prepare(&v);
    small_encoder s = small_encoder_new(&v);
    CHECK(s.e->table.consecutive && s.e->table.char_ranks != NULL);
    CHECK_CHARS(&s, &v, "a\xC3\xA8", 1);
    CHECK_CHARS(&s, &v, "z\xC3\xA8", 1);
    naive_forget(&v);
    small_encoder_free(&s);
}

/* The tables are made from merges in memory of the exact size, so that sanitizers see reads beyond it. */
static void test_no_read_after_the_merges(void) {
    small_vocab v;
    small_start(&v);
    small_add_merge(&v, 0xC3, 0xA9);
    small_encoder s = small_encoder_new(&v);
    pybpe_vocab_spec spec = pybpe_vocab_get_spec(s.v);
    uint32_t *merges = malloc(2 * sizeof *merges);
    merge_table t = s.e->table;
    memcpy(merges, spec.merges, 2 * sizeof *merges);
    spec.merges = merges;
    CHECK_EQ(apply_chars_fill(&t, &spec, &s.e->mem, NULL), PYBPE_OK);
    CHECK(memcmp(t.char_ranks, s.e->table.char_ranks, APPLY_CHARS * sizeof *t.char_ranks) == 0);
    mem_free(&s.e->mem, (void *)(uintptr_t)t.char_ranks);
    free(merges);
    small_encoder_free(&s);
}

static void random_merge(small_vocab *v, const uint32_t *usable, size_t *count, uint32_t *made) {
    const uint32_t left = usable[random_below((uint32_t)*count)];
    const uint32_t right = usable[random_below((uint32_t)*count)];
    if (small_length(v, left) + small_length(v, right) > 9) {
        return;
    }
    const size_t before = v->count;
    const size_t merges = v->merges_count;
    *made = small_add_merge(v, left, right);
    *count += *made == before;
    if (*made != before) { /* the ids would not be consecutive */
        v->merges_count = merges;
    }
}

/* Merges the bytes of a character from the left or from the right, as far as they are not merged yet. */
static void char_merge(small_vocab *v, const char *c, uint32_t *usable, size_t *count) {
    const uint8_t *w = (const uint8_t *)c;
    const size_t n = strlen(c);
    const size_t tokens = v->count;
    const size_t merges = v->merges_count;
    uint32_t id = random_below(2) == 0 || n < 3 ? small_add_merge(v, w[0], w[1]) : small_add_merge(v, w[1], w[2]);
    if (n == 3) {
        const bool left = v->bytes[v->offsets[id]] == w[0] && id >= 256;
        id = left ? small_add_merge(v, id, w[2]) : small_add_merge(v, w[0], id);
    }
    if (v->count - tokens != v->merges_count - merges) { /* some token was there before */
        v->count = tokens;
        v->merges_count = merges;
        return;
    }
    for (size_t i = tokens; i < v->count; i++) {
        usable[(*count)++] = (uint32_t)i;
    }
}

/* Merges that complete characters, among others that join any tokens. */
static void random_vocab(small_vocab *v, size_t merges) {
    uint32_t usable[SMALL_TOKENS];
    size_t count = 0;
    small_start(v);
    for (size_t i = 0; i < CHARS; i++) {
        for (const char *p = PARTS[i]; *p != 0; p++) {
            usable[count++] = (uint8_t)*p;
        }
    }
    for (size_t i = 0; i < merges; i++) {
        if (random_below(3) > 0) {
            const char *c = PARTS[2 + random_below(CHARS - 2)];
            char_merge(v, c, usable, &count);
        } else {
            uint32_t made = 0;
            const size_t before = count;
            random_merge(v, usable, &count, &made);
            if (count > before) {
                usable[before] = made;
            }
        }
    }
}

static size_t random_word(uint8_t word[MOST_BYTES]) {
    const size_t longest = 1 + random_below(MOST_BYTES);
    size_t n = 0;
    for (;;) {
        const char *part = PARTS[random_below(random_below(8) == 0 ? ALL_PARTS : CHARS)];
        if (n + strlen(part) > longest) {
            break;
        }
        memcpy(word + n, part, strlen(part));
        n += strlen(part);
    }
    word[n] = n == 0 ? 'a' : word[n]; /* there is room: strlen(part) >= 1 did not fit otherwise */
    return n > 0 ? n : 1;
}

static void test_random(void) {
    enum { VOCABULARIES = 300, WORDS = 400 };
    static small_vocab v;
    uint8_t word[MOST_BYTES + 1];
    size_t chars = 0;
    size_t filled = 0;
    for (size_t i = 0; i < VOCABULARIES; i++) {
        random_vocab(&v, 2 + random_below(60));
        naive_prepare(&v);
        small_encoder s = small_encoder_new(&v);
        filled += s.e->table.char_ranks != NULL;
        for (size_t k = 0; k < WORDS; k++) {
            const size_t n = random_word(word);
            chars += check_word(&s, &v, word, n);
        }
        naive_forget(&v);
        small_encoder_free(&s);
    }
    CHECK(filled > VOCABULARIES / 10 * 9);
    CHECK(chars > VOCABULARIES * WORDS);
}

/* Tokens instead of bytes: a pair is found before one of the same rank that is to the left of it. */
static void test_ids(void) {
    static small_vocab v;
    small_start(&v);
    const uint32_t ab = small_add_merge(&v, 'a', 'b'), both = small_add_merge(&v, ab, ab);
    const uint32_t ids[] = {ab, 'a', 'b', ab}, want[] = {both, ab};
    small_encoder s = small_encoder_new(&v);
    apply_scratch scratch = {0};
    size_t count = 0;
    CHECK_EQ(apply_long_ids(&s.e->table, &scratch, ids, 4, &count, NULL, NULL), PYBPE_OK);
    CHECK(count == 2 && memcmp(scratch.ids, want, sizeof want) == 0);
    CHECK_EQ(apply_long_ids(&s.e->table, &scratch, ids, UINT32_MAX, &count, NULL, NULL), PYBPE_ERR_LIMIT);
    apply_scratch_free(&scratch, NULL);
    small_encoder_free(&s);
}

int main(void) {
    test_ids();
    test_guards();
    test_guards_of_three();
    test_order();
    test_order_of_parts();
    test_no_needless_guards();
    test_no_read_after_the_merges();
    test_random();
    return check_report("chars");
}
