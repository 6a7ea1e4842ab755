/*
Encoding in two stages gives the ids of the definition: for all small vocabularies, all places to divide their merges and
all short words; then for random ones, and for texts that are longer than a block.
*/
#include "base/base.h" /* before any system header */
#include "check.h"
#include "encode/encode_stages.h"
#include "naive_encode.h"
#include "random_state.h"

enum { WORD_MAX = 12, WORDS_MAX = 4096, LONG_WORD = 3000 };

/* All words over an alphabet up to a length, end to end. */
typedef struct all_words {
    uint8_t bytes[WORDS_MAX * WORD_MAX];
    size_t ends[WORDS_MAX];
    size_t count;
} all_words;

static void words_fill(all_words *all, const char *alphabet, size_t longest) {
    const size_t letters = strlen(alphabet);
    size_t end = 0;
    size_t count = 0;
    size_t words = 1;
    for (size_t n = 1; n <= longest; n++) {
        words *= letters;
        for (size_t i = 0; i < words; i++) {
            size_t rest = i;
            for (size_t k = 0; k < n; k++) {
                all->bytes[end++] = (uint8_t)alphabet[rest % letters];
                rest /= letters;
            }
            all->ends[count++] = end;
        }
    }
    all->count = count;
}

/* An encoder with the stages that the test chooses. */
typedef struct subject {
    pybpe_vocab *v;
    pybpe_encoder *e;
    pybpe_cache *c;
} subject;

/* Divides the merges at another place. */
static void subject_divide(subject *s, size_t first_merges) {
    pybpe_cache_free(s->c);
    encoder_unite(s->e);
    CHECK_EQ(encoder_divide(s->e, first_merges, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_cache_new(&s->c, s->e, NULL, NULL), PYBPE_OK);
}

static subject subject_new(const small_vocab *v, size_t first_merges) {
    subject s = {NULL, NULL, NULL};
    const pybpe_vocab_spec spec = small_spec(v);
    CHECK_EQ(pybpe_vocab_new(&s.v, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&s.e, s.v, NULL, 0, NULL, NULL), PYBPE_OK);
    subject_divide(&s, first_merges);
    return s;
}

static void subject_free(subject *s) {
    pybpe_cache_free(s->c);
    pybpe_encoder_free(s->e);
    pybpe_vocab_free(s->v);
}

/* Whether all words get the ids of the definition. Encodes them twice: cold, and from the cache. */
static bool words_are_right(subject *s, const small_vocab *v, const all_words *all) {
    static uint32_t want[WORDS_MAX * WORD_MAX];
    static uint32_t ids[WORDS_MAX * WORD_MAX];
    const size_t n = all->ends[all->count - 1];
    size_t count = 0;
    naive_prepare(v);
    for (size_t i = 0; i < all->count; i++) {
        size_t start = i > 0 ? all->ends[i - 1] : 0;
        count += merge_naive(v, all->bytes + start, all->ends[i] - start, want + count);
    }
    naive_forget(v);
    bool right = true;
    for (int round = 0; round < 2; round++) {
        size_t got = 0;
        int code = pybpe_encode_words(s->e, s->c, all->bytes, all->ends, all->count, ids, 4, n, &got, NULL);
        right = right && code == PYBPE_OK && got == count && memcmp(ids, want, 4 * count) == 0;
    }
    return right;
}

/* Adds all combinations of merges, up to `left` more, and compares each vocabulary at each place to divide it. */
static void compare_all(const small_vocab *v, const char *alphabet, const all_words *all, size_t left, size_t done[2]) {
    uint32_t usable[SMALL_TOKENS];
    size_t count = 0;
    for (; alphabet[count] != '\0'; count++) {
        usable[count] = (uint8_t)alphabet[count];
    }
    for (uint32_t id = 256; id < v->count; id++) {
        usable[count++] = id;
    }
    if (left == 0) {
        subject s = subject_new(v, 0);
        for (size_t k = 0; k < v->merges_count; k++) {
            subject_divide(&s, k);
            done[s.e->stages != NULL] += 1;
            CHECK(words_are_right(&s, v, all));
        }
        subject_free(&s);
    }
    for (size_t both = 0; both < count * count && left > 0; both++) {
        small_vocab more = *v;
        small_add_merge(&more, usable[both / count], usable[both % count]);
        compare_all(&more, alphabet, all, left - 1, done);
    }
}

static void test_all_small_vocabularies(void) {
    static all_words all;
    static small_vocab v;
    size_t done[2] = {0, 0}; /* without stages, and with them */
    small_start(&v);
    words_fill(&all, "a ", 8);
    compare_all(&v, "a ", &all, 3, done);
    words_fill(&all, "ab ", 5);
    compare_all(&v, "ab ", &all, 2, done);
    CHECK(done[0] > 10 && done[1] > 1000);
}

/* Random merges over an alphabet; with `shuffled`, their ranks are unrelated to the order in which they can apply. */
static void random_vocab(small_vocab *v, const char *alphabet, size_t merges, bool shuffled) {
    const uint32_t letters = (uint32_t)strlen(alphabet);
    small_start(v);
    while (v->merges_count < merges) {
        uint32_t made = (uint32_t)v->count - 256;
        uint32_t part[2];
        for (int side = 0; side < 2; side++) {
            uint32_t i = random_below(letters + made);
            part[side] = i < letters ? (uint8_t)alphabet[i] : 256 + i - letters;
        }
        if (small_length(v, part[0]) + small_length(v, part[1]) > 10) {
            part[0] = part[1] = (uint8_t)alphabet[random_below(letters)];
        }
        small_add_merge(v, part[0], part[1]);
    }
    for (uint32_t i = (uint32_t)merges; shuffled && i > 1; i--) {
        uint32_t j = random_below(i);
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t pair = v->merges[2 * (i - 1) + side];
            v->merges[2 * (i - 1) + side] = v->merges[2 * j + side];
            v->merges[2 * j + side] = pair;
        }
        uint32_t merged = v->merged[i - 1];
        v->merged[i - 1] = v->merged[j];
        v->merged[j] = merged;
    }
}

static void random_word(uint8_t *w, size_t n, const char *alphabet) {
    const uint32_t letters = (uint32_t)strlen(alphabet);
    size_t period = random_below(4) == 0 ? 1 + random_below(20) : n;
    for (size_t i = 0; i < n; i++) {
        w[i] = i < period ? (uint8_t)alphabet[random_below(letters)] : w[i - period];
    }
}

/* Words of up to LONG_WORD bytes: more units than fit a block, and phrases of all lengths. */
static void test_random_vocabularies(void) {
    const char *alphabets[] = {"a ", "ab ", "abcdefgh  ", "a \xC3\xA9", "\xE4\xB8\xAD\xE6\x96\x87 "};
    static small_vocab v;
    static uint32_t want[LONG_WORD];
    static uint32_t ids[LONG_WORD];
    size_t done[2] = {0, 0};
    for (size_t round = 0; round < 150; round++) {
        const char *alphabet = alphabets[round % 5];
        random_vocab(&v, alphabet, 2 + random_below(60), round % 7 == 6);
        subject s = subject_new(&v, random_below((uint32_t)v.merges_count));
        done[s.e->stages != NULL] += 1;
        naive_prepare(&v);
        for (size_t i = 0; i < 12; i++) {
            size_t n = 1 + random_below(i == 0 ? LONG_WORD : i % 2 ? 30 : 300);
            uint8_t *w = malloc(n); /* of the exact size, so that a sanitizer sees reads outside it */
            random_word(w, n, alphabet);
            size_t count = merge_naive(&v, w, n, want);
            size_t got = 0;
            CHECK_EQ(pybpe_encode_words(s.e, s.c, w, &n, 1, ids, 4, n, &got, NULL), PYBPE_OK);
            CHECK(got == count && memcmp(ids, want, 4 * count) == 0);
            free(w);
        }
        naive_forget(&v);
        subject_free(&s);
    }
    CHECK(done[0] > 20 && done[1] > 50);
}

/* A vocabulary with superwords, which an encoder divides by itself. */
static size_t superword_vocab(small_vocab *v) {
    small_start(v);
    uint32_t in = small_add_merge(v, 'i', 'n');
    uint32_t the = small_add_merge(v, small_add_merge(v, 't', 'h'), 'e');
    uint32_t in_ = small_add_merge(v, ' ', in);
    uint32_t the_ = small_add_merge(v, ' ', the);
    size_t first = v->merges_count;
    uint32_t in_the = small_add_merge(v, in_, the_);
    small_add_merge(v, the_, in_);
    small_add_merge(v, in_the, in_the);
    small_add_merge(v, ',', in_);
    return first;
}

/* Texts of given words: empty ones, many short ones, and one that is longer than a block. */
static void test_texts_of_words(void) {
    enum { WORDS = 20000 };
    const char *parts[] = {" in", " the", ",", "in", "x", " ", "the", " in the"};
    static small_vocab v;
    static size_t ends[2 * WORDS + 1];
    static uint8_t text[WORDS * 8];
    static uint32_t want[sizeof text];
    static uint32_t ids[sizeof text];
    static uint16_t narrow[sizeof text];
    size_t first = superword_vocab(&v);
    subject s = subject_new(&v, first);
    CHECK_EQ(stages_first_merges(s.v), first);
    CHECK(s.e->stages != NULL);
    for (uint32_t period = 1; period <= WORDS; period *= 10) { /* of parts in a word */
        size_t n = 0;
        size_t words = 0;
        size_t count = 0;
        naive_prepare(&v);
        for (size_t i = 0; i < WORDS; i++) {
            const char *part = parts[random_below(8)];
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
            if (random_below(period) == 0 || i == WORDS - 1) {
                size_t start = words > 0 ? ends[words - 1] : 0;
                ends[words++] = n;
                if (period <= 1000) { /* the definition takes quadratic time */
                    count += merge_naive(&v, text + start, n - start, want + count);
                }
                ends[words] = n;
                words += random_below(3) == 0; /* an empty word */
            }
        }
        naive_forget(&v);
        size_t got = 0;
        CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, words, ids, 4, n, &got, NULL), PYBPE_OK);
        CHECK(period > 10 || s.c->stage_ids_cap < 1 << 14); /* room for a block, not for the text */
        CHECK(period > 1000 || (got == count && memcmp(ids, want, 4 * count) == 0));
        encode_stages *stages = s.e->stages;
        s.e->stages = NULL; /* one stage */
        CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, words, want, 4, n, &count, NULL), PYBPE_OK);
        s.e->stages = stages;
        CHECK(got == count && memcmp(ids, want, 4 * count) == 0);
        CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, words, narrow, 2, n, &got, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_encode_words(s.e, s.c, text, ends, words, NULL, 0, 0, &got, NULL), PYBPE_OK);
        CHECK_EQ(got, count);
        size_t equal = 0;
        for (size_t i = 0; i < count; i++) {
            equal += narrow[i] == ids[i];
        }
        CHECK_EQ(equal, count);
    }
    subject_free(&s);
}

/* Texts whose words the encoder finds: more than it finds at once. */
static void test_texts(void) {
    enum { WORDS = 3000 };
    const char *parts[] = {" in", " the", ",", "in", "x", "  ", "the", "\n"};
    static small_vocab v;
    static uint8_t text[WORDS * 4];
    static uint32_t want[sizeof text];
    static uint32_t ids[sizeof text];
    superword_vocab(&v);
    small_add_merge(&v, ' ', ' ');
    for (size_t merges = 0; merges < v.merges_count; merges++) {
        subject s = subject_new(&v, merges);
        size_t n = 0;
        size_t count = 0;
        size_t got = 0;
        for (size_t i = 0; i < WORDS; i++) {
            const char *part = parts[random_below(8)];
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
        }
        CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, n, ids, 4, n, &got, NULL), PYBPE_OK);
        encode_stages *stages = s.e->stages;
        s.e->stages = NULL; /* one stage */
        CHECK_EQ(pybpe_encode(s.e, s.c, NULL, text, n, want, 4, n, &count, NULL), PYBPE_OK);
        s.e->stages = stages;
        CHECK(stages != NULL && got == count && memcmp(ids, want, 4 * count) == 0);
        subject_free(&s);
    }
}

/* Short words after a phrase that is too long for a group. Stage 2 merges across their ends where no word ends. */
static void test_words_after_a_long_phrase(void) {
    static small_vocab v;
    static all_words all;
    small_start(&v);
    small_add_merge(&v, 'e', ' ');
    small_add_merge(&v, '-', '-');
    subject s = subject_new(&v, 0);
    CHECK(s.e->stages != NULL);
    for (size_t phrase = 56; phrase < 200; phrase++) {
        const char *words = "e mate";
        memset(all.bytes, '-', phrase);
        memcpy(all.bytes + phrase, words, 7);
        all.count = 0;
        const size_t lengths[] = {phrase, 1, 4, 1};
        for (size_t end = 0; all.count < 4; all.count++) {
            end += lengths[all.count];
            all.ends[all.count] = end;
        }
        CHECK(words_are_right(&s, &v, &all));
    }
    subject_free(&s);
}

/* One phrase of any number of tokens, which groups and blocks must not divide: merges cross all of its odd places. */
static void test_long_phrases(void) {
    static const size_t near[] = {64, 128, 192, 2048, 4096}; /* tokens of groups, and of blocks of 1024 units */
    static small_vocab v;
    static all_words all;
    small_start(&v);
    small_add_merge(&v, '-', ' ');
    small_add_merge(&v, ' ', '-');
    small_add_merge(&v, 'a', 'b'); /* the next phrase */
    subject s = subject_new(&v, 0);
    CHECK(s.e->stages != NULL);
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        for (size_t n = near[i] - 4; n <= near[i] + 4; n++) {
            for (size_t before = 0; before < 3; before++) { /* tokens of other phrases */
                memset(all.bytes, 'x', before);
                for (size_t k = 0; k < n; k++) {
                    all.bytes[before + k] = k % 2 == 0 ? ' ' : '-';
                }
                memcpy(all.bytes + before + n, "ab", 2);
                all.ends[0] = before + n + 2;
                all.count = 1;
                CHECK(words_are_right(&s, &v, &all));
            }
        }
    }
    subject_free(&s);
}

/* More merges of stage 2 than the smallest tables have room for. */
static void test_many_superwords(void) {
    static const char letters[] = "abcdefghijklmnopq";
    enum { LETTERS = sizeof letters - 1 };
    static small_vocab v;
    static all_words all;
    uint32_t tokens[LETTERS];
    small_start(&v);
    for (size_t i = 0; i < LETTERS; i++) {
        tokens[i] = small_add_merge(&v, ' ', (uint8_t)letters[i]);
    }
    for (size_t i = 0; i < LETTERS * LETTERS; i++) {
        small_add_merge(&v, tokens[i * 5 % LETTERS], tokens[i / LETTERS]);
    }
    for (size_t i = 0; i < sizeof all.bytes; i++) {
        all.bytes[i] = i % 2 == 0 ? ' ' : (uint8_t)letters[random_below(LETTERS)];
    }
    for (all.count = 0; all.count < 500; all.count++) {
        all.ends[all.count] = (all.count > 0 ? all.ends[all.count - 1] : 0) + 2 + 2 * random_below(40);
    }
    subject s = subject_new(&v, LETTERS);
    CHECK(s.e->stages != NULL);
    CHECK(words_are_right(&s, &v, &all));
    subject_free(&s);
}

/* A block has as many words as units. */
static void test_words_of_one_unit(void) {
    static small_vocab v;
    static all_words all;
    subject s = subject_new(&v, superword_vocab(&v));
    for (all.count = 0; all.count < WORDS_MAX; all.count++) {
        memcpy(all.bytes + 3 * all.count, " in", 3);
        all.ends[all.count] = 3 * (all.count + 1);
    }
    CHECK(words_are_right(&s, &v, &all));
    subject_free(&s);
}

/* A normalizer does not stop the encoder of the first stage. */
static void test_normalized(void) {
    static small_vocab v;
    superword_vocab(&v);
    pybpe_vocab_spec spec = small_spec(&v);
    subject s = {NULL, NULL, NULL};
    spec.normalizer = PYBPE_NORMALIZER_NFC;
    CHECK_EQ(pybpe_vocab_new(&s.v, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&s.e, s.v, NULL, PYBPE_ENCODER_NORMALIZED, NULL, NULL), PYBPE_OK);
    CHECK(s.e->stages != NULL);
    subject_free(&s);
}

/* The room for the ids of a long unit is kept up to a million of them. */
static void test_long_units_are_freed(void) {
    enum { KEPT = 1 << 20 };
    static small_vocab v;
    failing_memory m = {.left = -1};
    const pybpe_allocator mem = {failing_resize, &m};
    subject s = subject_new(&v, superword_vocab(&v));
    pybpe_cache_free(s.c);
    CHECK_EQ(pybpe_cache_new(&s.c, s.e, &mem, NULL), PYBPE_OK);
    uint8_t *text = malloc(KEPT + 1);
    size_t count;
    memset(text, 'x', KEPT + 1);
    for (size_t end = KEPT; end <= KEPT + 1; end++) {
        CHECK_EQ(pybpe_encode_words(s.e, s.c, text, &end, 1, NULL, 0, 0, &count, NULL), PYBPE_OK);
        CHECK_EQ(count, end);
        CHECK_EQ(s.c->stage_ids_cap, end == KEPT ? KEPT : 0);
    }
    free(text);
    subject_free(&s);
    CHECK_EQ(m.blocks, 0);
}

/* Which vocabularies are divided, and where. */
static void test_where_merges_are_divided(void) {
    static small_vocab v;
    size_t first = superword_vocab(&v);
    subject s = subject_new(&v, first);
    CHECK_EQ(stages_first_merges(s.v), first);
    subject_free(&s);
    small_start(&v); /* no superwords */
    small_add_merge(&v, 'a', 'b');
    small_add_merge(&v, ' ', ' ');
    s = subject_new(&v, 0);
    CHECK_EQ(stages_first_merges(s.v), 2);
    subject_free(&s);
    small_start(&v); /* nearly all merges cross spaces */
    uint32_t token = small_add_merge(&v, 'a', ' ');
    for (int i = 0; i < 3; i++) {
        token = small_add_merge(&v, token, 'b');
    }
    s = subject_new(&v, 0);
    CHECK_EQ(stages_first_merges(s.v), 4);
    subject_free(&s);
    small_start(&v); /* a letter after a space, before another space */
    token = small_add_merge(&v, ' ', 'a');
    small_add_merge(&v, token, token);
    s = subject_new(&v, 0);
    CHECK_EQ(stages_first_merges(s.v), 1);
    subject_free(&s);
    for (int side = 0; side < 2; side++) {
        small_start(&v); /* a merge of stage 1 uses what one of stage 2 makes */
        uint32_t ab = small_add_token(&v, "ab", 2);
        small_add_merge(&v, side == 0 ? ab : 'c', side == 0 ? 'c' : ab);
        small_add_merge(&v, 'a', 'b');
        s = subject_new(&v, 1);
        CHECK(s.e->stages == NULL);
        subject_free(&s);
    }
    const char *forms[] = {"ab", "bc"}; /* abc begins with ab or a; or it ends with c or bc */
    for (int form = 0; form < 2; form++) {
        small_start(&v);
        uint32_t first_pair = small_add_merge(&v, (uint8_t)forms[form][0], (uint8_t)forms[form][1]);
        uint32_t other = form == 0 ? small_add_merge(&v, 'b', 'c') : small_add_merge(&v, 'a', 'b');
        small_add_merge(&v, form == 0 ? first_pair : 'a', form == 0 ? 'c' : first_pair);
        small_add_merge(&v, form == 0 ? 'a' : other, form == 0 ? other : 'c');
        s = subject_new(&v, 1);
        CHECK(s.e->stages == NULL);
        subject_free(&s);
    }
}

/* Stages of a vocabulary that lacks bytes. */
static void test_bytes_without_tokens(void) {
    static small_vocab v;
    small_add_token(&v, "a", 1);
    small_add_token(&v, " ", 1);
    small_add_merge(&v, 0, 1);
    subject s = subject_new(&v, 0);
    CHECK(s.e->stages != NULL);
    const size_t ends[] = {0, 3};
    uint32_t ids[3];
    size_t count = 9;
    pybpe_error err;
    CHECK_EQ(pybpe_encode_words(s.e, s.c, (const uint8_t *)"a a", ends, 2, ids, 4, 3, &count, &err), PYBPE_OK);
    CHECK(count == 2 && ids[0] == 2 && ids[1] == 0);
    CHECK_EQ(pybpe_encode_words(s.e, s.c, (const uint8_t *)"a b", ends, 2, ids, 4, 3, &count, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 2);
    CHECK_EQ(pybpe_encode_words(s.e, s.c, (const uint8_t *)"", ends, 1, ids, 4, 0, &count, &err), PYBPE_OK);
    CHECK_EQ(count, 0);
    subject_free(&s);
}

/* Every allocation fails in turn: no memory is leaked, and in the end encoding succeeds. */
static void test_failing_memory(void) {
    static small_vocab v;
    static uint8_t text[20000];
    static uint32_t ids[sizeof text];
    superword_vocab(&v);
    for (size_t i = 0; i + 7 <= sizeof text; i += 7) {
        memcpy(text + i, " in the", 7);
    }
    const pybpe_vocab_spec spec = small_spec(&v);
    /* a phrase of many blocks, one that is shorter than a group, and one with another one after it in the group */
    const size_t ends[3][2] = {{sizeof text}, {7 * 20}, {7 * 20, 7 * 24}};
    const size_t words[] = {1, 1, 2};
    for (size_t i = 0; i < 3; i++) {
        const size_t end = ends[i][words[i] - 1];
        int passed = 0, wrong = 0;
        for (long grant = 0; grant < 240; grant++) {
            failing_memory m = {.left = grant / 2, .once = grant % 2 != 0};
            pybpe_allocator mem = {failing_resize, &m};
            subject s = {NULL, NULL, NULL};
            pybpe_error err;
            size_t got;
            int code = pybpe_vocab_new(&s.v, &spec, &mem, &err);
            code = code == PYBPE_OK ? pybpe_encoder_new(&s.e, s.v, NULL, 0, &mem, &err) : code;
            code = code == PYBPE_OK ? pybpe_cache_new(&s.c, s.e, &mem, &err) : code;
            code = code == PYBPE_OK ? pybpe_encode_words(s.e, s.c, text, ends[i], words[i], ids, 4, end, &got, &err)
                                    : code;
            passed += code == PYBPE_OK;
            wrong += (code != PYBPE_OK && code != PYBPE_ERR_MEMORY) || (s.e != NULL && s.e->stages == NULL);
            subject_free(&s);
            wrong += m.blocks != 0;
        }
        CHECK_EQ(wrong, 0);
        CHECK(passed > 0 && passed < 220);
    }
}

int main(void) {
    test_random_vocabularies();
    test_texts_of_words();
    test_texts();
    test_words_after_a_long_phrase();
    test_long_phrases();
    test_many_superwords();
    test_words_of_one_unit();
    test_normalized();
    test_long_units_are_freed();
    test_where_merges_are_divided();
    test_bytes_without_tokens();
    test_failing_memory();
    test_all_small_vocabularies();
    return check_report("stages");
}
