/*
Splitters of automata: tables made by hand and random ones, against matches found one at a time; where a text can be cut;
encoding, where words are also cut at hard boundaries; texts that take quadratic time if nothing is remembered; wrong
tables; no memory.
*/
#include "check.h"
#include "naive_automaton.h"
#include "naive_encode.h"
#include "pybpe_train.h"
#include "random_state.h"
#include "small_vocab.h"
#include "split_text.h"

#include <stdlib.h>
#include <string.h>

enum { CAP = 64, TEXT = 400, AUTOMATA = 1600, LONG_TEXT = 70000, FAR_TEXT = 3000 };

static pybpe_pretok *splitter_of(const pybpe_automaton *a, const pybpe_allocator *mem) {
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new_automaton(&p, a, mem, NULL), PYBPE_OK);
    return p;
}

static size_t random_text(uint8_t *text) {
    static const char *const pieces[] = {
        "a",        "aaaa", "b",           "bb", "\n", "!", "\xE4\xBD\xA0", "\xC3\xA9", "\xF0\x9F\x98\x80",
        "\xE4\xBD", "\xFF", "\xED\xA0\x80"};
    const uint32_t kinds = 2 + random_below(11); /* of the pieces, so that some texts have long runs */
    const size_t most = random_below(TEXT - 4);
    return random_pieces(pieces, kinds, most, text);
}

/* Both halves at a safe cut have the words of the whole. Returns whether there was one. */
static bool check_cut(const pybpe_pretok *p, const uint8_t *text, size_t n, const size_t *want, size_t count) {
    static size_t got[2 * TEXT];
    size_t from = 1 + random_below((uint32_t)n);
    size_t cut = pybpe_text_cut(p, NULL, text, n, from);
    CHECK(cut >= from && cut <= n);
    if (cut == n) {
        return false;
    }
    size_t first = split_all(p, text, cut, CAP, got);
    size_t second = split_all(p, text + cut, n - cut, CAP, got + first);
    for (size_t i = 0; i < second; i++) {
        got[first + i] += cut;
    }
    CHECK_EQ(first + second, count);
    CHECK(memcmp(got, want, count * sizeof *want) == 0);
    return true;
}

static void test_random_automata(void) {
    static uint8_t room[TEXT];
    static size_t want[2 * TEXT], got[2 * TEXT + CAP];
    size_t cuts = 0, has_cuts[2] = {0};
    for (int i = 0; i < AUTOMATA; i++) {
        uint16_t next[NAIVE_STATES_MAX * NAIVE_COLUMNS];
        uint32_t states = 2 + random_below(NAIVE_STATES_MAX - 1);
        const bool sure = i % 2 == 0; /* every character begins a match, and most end one: such texts have cuts */
        uint32_t dead =
            sure ? 7 : random_below(8); /* how often, in eighths, a step leads nowhere, and a match may end */
        uint32_t accept = sure ? 8 : 1 + random_below(8);
        for (uint32_t k = 0; k < states * NAIVE_COLUMNS; k++) {
            uint32_t target = random_below(8) < dead ? 0 : random_below(states);
            target = sure && k / NAIVE_COLUMNS == 1 ? states - 1 - random_below(states / 2) : target;
            next[k] = (uint16_t)(target | (random_below(8) < accept ? NAIVE_ACCEPT : 0));
        }
        pybpe_automaton a = naive_automaton(next, states);
        pybpe_pretok *p = splitter_of(&a, NULL);
        has_cuts[pybpe_pretok_has_cuts(p)] += 1;
        for (int k = 0; k < 8; k++) {
            size_t n = random_text(room);
            uint8_t *text = malloc(n + (n == 0)); /* of just this size, for sanitizers */
            memcpy(text, room, n);
            size_t count = naive_split(next, text, n, want, 0);
            CHECK_EQ(split_all(p, text, n, CAP + random_below(9), got), count);
            CHECK(memcmp(got, want, count * sizeof *want) == 0);
            const size_t before = cuts;
            cuts += n > 0 && check_cut(p, text, n, want, count);
            CHECK(cuts == before || pybpe_pretok_has_cuts(p));
            free(text);
        }
        pybpe_pretok_free(p);
    }
    CHECK(cuts > 1000);
    CHECK(has_cuts[0] > 0 && has_cuts[1] > 0);
}

/* x|y+ for two classes: state 2 after x, 3 after y. */
static pybpe_automaton runs_automaton(uint16_t *next, unsigned x, unsigned y) {
    memset(next, 0, 4 * NAIVE_COLUMNS * sizeof *next);
    next[NAIVE_COLUMNS + x] = 2;
    next[NAIVE_COLUMNS + y] = 3;
    for (unsigned i = 0; i < NAIVE_COLUMNS; i++) {
        next[2 * NAIVE_COLUMNS + i] = NAIVE_ACCEPT;
        next[3 * NAIVE_COLUMNS + i] = NAIVE_ACCEPT | (i == y ? 3 : 0);
    }
    return naive_automaton(next, 4);
}

/* Checks for each pair of characters whether a text can be cut between them: next to x, and where a run of y begins or
   ends; after a newline only if it means the same at the end of the text. */
static void check_where_cuts_are(const pybpe_automaton *a, unsigned x, unsigned y, bool newline_is_plain) {
    static const char *const chars[] = {"a", "b", "\n", "!", "\xE4\xBD\xA0"}; /* of each class */
    enum { CHARS = sizeof chars / sizeof *chars };
    pybpe_pretok *p = splitter_of(a, NULL);
    CHECK_EQ(pybpe_pretok_has_cuts(p), 1);
    for (unsigned i = 0; i < CHARS; i++) {
        for (unsigned k = 0; k < CHARS; k++) {
            uint8_t text[9];
            const size_t before = strlen(chars[i]), after = strlen(chars[k]);
            memcpy(text, chars[i], before);
            memcpy(text + before, chars[k], after);
            const bool divides = i == x || k == x || (i == y) != (k == y);
            const bool allowed = newline_is_plain || *chars[i] != '\n';
            CHECK_EQ(pybpe_text_cut(p, NULL, text, before + after, 1), divides && allowed ? before : before + after);
        }
    }
    pybpe_pretok_free(p);
}

static void test_where_cuts_are(void) {
    static const unsigned classes[] = {0, 1, 3, 4};
    uint16_t next[4 * NAIVE_COLUMNS];
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++) {
            const pybpe_automaton a = runs_automaton(next, classes[i], classes[k]);
            if (i != k) {
                check_where_cuts_are(&a, classes[i], classes[k], true);
            }
        }
    }
    const pybpe_automaton a = runs_automaton(next, 0, 1);
    next[NAIVE_COLUMNS + NAIVE_CLASSES] = 2; /* a|b+|\n$ */
    check_where_cuts_are(&a, 0, 1, false);
    for (unsigned i = 0; i < NAIVE_COLUMNS - 1; i++) { /* .+: a word of everything */
        next[NAIVE_COLUMNS + i] = 2;
        next[2 * NAIVE_COLUMNS + i] = NAIVE_ACCEPT | 2;
    }
    pybpe_pretok *p = splitter_of(&a, NULL);
    CHECK_EQ(pybpe_pretok_has_cuts(p), 0);
    CHECK_EQ(pybpe_text_cut(p, NULL, (const uint8_t *)"ab!a", 4, 1), 4);
    pybpe_pretok_free(p);
}

/* " [A-Za-z]": no match begins with a letter, but one begins with a blank before a letter. Gaps are words too. */
static void test_blank_before_letters(void) {
    static const uint32_t first[] = {0, ' ', '!', 'A', '[', 'a', '{'};
    static const uint8_t class_of[] = {0, 1, 0, 2, 0, 2, 0};
    enum { CLASSES = 3, COLUMNS = CLASSES + 2, STATES = 4, LONGEST = 300 };
    uint16_t next[STATES * COLUMNS] = {0};
    next[COLUMNS + 1] = 2;
    next[2 * COLUMNS + 2] = 3;
    for (unsigned i = 0; i < COLUMNS; i++) {
        next[3 * COLUMNS + i] = NAIVE_ACCEPT;
    }
    const pybpe_automaton a = {first, class_of, sizeof class_of, CLASSES, STATES, next, 0};
    pybpe_pretok *p = splitter_of(&a, NULL);
    for (size_t n = 1; n <= LONGEST; n++) {
        uint8_t text[LONGEST];
        size_t want[2 * LONGEST], got[2 * LONGEST + CAP], count = 0, done = 0;
        for (size_t i = 0; i < n; i++) {
            text[i] = (uint8_t)"abYz "[random_below(i % 100 < 80 ? 4 : 5)];
        }
        for (size_t i = 0; i + 1 < n; i++) {
            if (text[i] == ' ' && text[i + 1] != ' ') {
                want[count] = i;
                count += i > done;
                want[count++] = done = i + 2;
            }
        }
        want[count] = n;
        count += done < n;
        CHECK_EQ(split_all(p, text, n, CAP, got), count);
        CHECK(memcmp(got, want, count * sizeof *want) == 0);
    }
    pybpe_pretok_free(p);
}

/* Words of one character, after which runs over a and b continue far and in vain. Other characters end most of them, so
   later runs continue beyond the ends of earlier ones, or lead to states in which a match is sure, and long. */
static void far_tables(uint16_t *next, uint32_t states) {
    const uint32_t first_sure = states - 1 - random_below(3);
    memset(next, 0, states * NAIVE_COLUMNS * sizeof *next);
    for (uint32_t state = 1; state < states; state++) {
        const bool sure = state >= first_sure;
        for (uint32_t i = 0; i < NAIVE_COLUMNS; i++) {
            const bool letter = i < 2;
            uint32_t target = 3 + random_below((letter ? first_sure : states) - 3);
            target = state == 1 ? 2 : target;
            target = sure ? first_sure + random_below(states - first_sure) : target;
            target = letter || (!sure && i < NAIVE_CLASSES && random_below(4) == 0) ? target : 0;
            const bool accept = state == 2 || (sure ? !letter : random_below(200) == 0);
            next[state * NAIVE_COLUMNS + i] = (uint16_t)(target | (accept ? NAIVE_ACCEPT : 0));
        }
    }
}

static void test_far_runs(void) {
    static const char *const pieces[] = {"a", "b", "!", "\n", "\xE4\xBD\xA0", "\xFF"};
    static uint8_t text[FAR_TEXT + 4];
    static size_t want[FAR_TEXT + 4], got[2 * FAR_TEXT + 8];
    for (int i = 0; i < 12; i++) {
        uint16_t next[NAIVE_STATES_MAX * NAIVE_COLUMNS];
        const uint32_t states = 8 + random_below(NAIVE_STATES_MAX - 7);
        far_tables(next, states);
        const pybpe_automaton a = naive_automaton(next, states);
        pybpe_pretok *p = splitter_of(&a, NULL);
        size_t n = random_below(FAR_TEXT / 4); /* the first run does not begin with the text */
        memset(text, '!', n);
        while (n < FAR_TEXT) {
            const char *piece = pieces[random_below(300) > 0 ? random_below(2) : 2 + random_below(4)];
            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
        }
        const size_t count = naive_split(next, text, n, want, 0);
        CHECK_EQ(split_all(p, text, n, FAR_TEXT + 4, got), count);
        CHECK(memcmp(got, want, count * sizeof *want) == 0);
        pybpe_pretok_free(p);
    }
}

/* A few merges of the bytes of random_text, some of which cross characters or make parts of them. */
static void random_vocab(small_vocab *v) {
    static const uint8_t bytes[] = {'a', 'b', '\n', '!', 0xE4, 0xBD, 0xA0, 0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80, 0xFF};
    small_start(v);
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t pair[2];
        for (size_t k = 0; k < 2; k++) {
            pair[k] = i > 0 && random_below(3) == 0 ? 256 + random_below((uint32_t)v->count - 256)
                                                    : bytes[random_below(sizeof bytes)];
        }
        small_add_merge(v, pair[0], pair[1]);
    }
}

static void random_tables(uint16_t *next, uint32_t states) {
    const uint32_t dead = 3 + random_below(5), accept = 1 + random_below(8);
    for (uint32_t k = 0; k < states * NAIVE_COLUMNS; k++) {
        const uint32_t target = random_below(8) < dead ? 0 : random_below(states);
        next[k] = (uint16_t)(target | (random_below(8) < accept ? NAIVE_ACCEPT : 0));
    }
}

/* The ids are those of the words, one at a time. */
static void check_encoding(const pybpe_encoder *e, pybpe_cache *c, const small_vocab *v, const uint16_t *next,
                           const uint8_t *text, size_t n) {
    static size_t ends[2 * TEXT];
    static uint32_t want[TEXT], got[TEXT];
    const size_t words = naive_split(next, text, n, ends, 0);
    size_t count = 0, found = 0;
    for (size_t i = 0, start = 0; i < words; start = ends[i++]) {
        count += merge_naive(v, text + start, ends[i] - start, want + count);
    }
    CHECK_EQ(pybpe_encode(e, c, NULL, text, n, got, 4, n, &found, NULL), PYBPE_OK);
    CHECK_EQ(found, count);
    CHECK(memcmp(got, want, count * sizeof *want) == 0);
}

static void test_encoding(void) {
    static uint8_t room[TEXT];
    static small_vocab v;
    for (int i = 0; i < 300; i++) {
        uint16_t next[NAIVE_STATES_MAX * NAIVE_COLUMNS];
        const uint32_t states = 2 + random_below(NAIVE_STATES_MAX - 1);
        random_tables(next, states);
        const pybpe_automaton a = naive_automaton(next, states);
        pybpe_pretok *p = splitter_of(&a, NULL);
        pybpe_vocab *vocab = NULL;
        pybpe_encoder *e = NULL;
        pybpe_cache *c = NULL;
        random_vocab(&v);
        pybpe_vocab_spec spec = small_spec(&v);
        spec.pattern = PYBPE_PATTERN_CUSTOM;
        spec.custom = "of the automaton";
        CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_encoder_new(&e, vocab, p, 0, NULL, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_cache_new(&c, e, NULL, NULL), PYBPE_OK);
        naive_prepare(&v);
        for (int k = 0; k < 12; k++) {
            size_t n = random_text(room);
            n = k % 2 ? n % 12 : n;               /* the ends of a text are near */
            uint8_t *text = malloc(n + (n == 0)); /* of just this size, for sanitizers */
            memcpy(text, room, n);
            check_encoding(e, c, &v, next, text, n);
            free(text);
        }
        naive_forget(&v);
        pybpe_cache_free(c);
        pybpe_encoder_free(e);
        pybpe_vocab_free(vocab);
        pybpe_pretok_free(p);
    }
}

/* a*b|a: state 2 after an a, 3 after more of them, 4 after the b */
static pybpe_automaton far_automaton(uint16_t *next) {
    memset(next, 0, 5 * NAIVE_COLUMNS * sizeof *next);
    for (unsigned i = 0; i < NAIVE_COLUMNS; i++) {
        next[2 * NAIVE_COLUMNS + i] = NAIVE_ACCEPT;
        next[4 * NAIVE_COLUMNS + i] = NAIVE_ACCEPT;
    }
    next[NAIVE_COLUMNS] = 2;
    next[2 * NAIVE_COLUMNS] = NAIVE_ACCEPT | 3;
    next[3 * NAIVE_COLUMNS] = 3;
    for (unsigned state = 1; state < 4; state++) {
        next[state * NAIVE_COLUMNS + 1] = 4;
    }
    return naive_automaton(next, 5);
}

/* The words of a text, as a counter finds them. */
static uint64_t count_words(const pybpe_automaton *a, const uint8_t *text, size_t n, const pybpe_allocator *mem,
                            int *code) {
    pybpe_pretok *p = NULL;
    pybpe_counter *c = NULL;
    uint64_t total = 0;
    *code = pybpe_pretok_new_automaton(&p, a, mem, NULL);
    *code = *code == PYBPE_OK ? pybpe_counter_new(&c, p, NULL, mem, NULL) : *code;
    *code = *code == PYBPE_OK ? pybpe_counter_add(c, text, n, NULL) : *code;
    if (*code == PYBPE_OK) {
        total = pybpe_counter_get_stats(c).total;
    }
    pybpe_counter_free(c);
    pybpe_pretok_free(p);
    return total;
}

/* In quadratic time this would take twenty times as long. */
static void test_runs_in_vain(void) {
    uint16_t next[5 * NAIVE_COLUMNS];
    pybpe_automaton a = far_automaton(next);
    uint8_t *text = malloc(LONG_TEXT);
    int code;
    memset(text, 'a', LONG_TEXT);
    CHECK_EQ(count_words(&a, text, LONG_TEXT, NULL, &code), LONG_TEXT);
    text[LONG_TEXT - 1] = 'b';
    CHECK_EQ(count_words(&a, text, LONG_TEXT, NULL, &code), 1);
    next[2 * NAIVE_COLUMNS] = 3; /* (a{3,}|a?)b: nothing matches */
    for (unsigned i = 0; i < NAIVE_COLUMNS; i++) {
        next[2 * NAIVE_COLUMNS + i] &= 0x7FFF;
    }
    text[LONG_TEXT - 1] = 'a';
    CHECK_EQ(count_words(&a, text, LONG_TEXT, NULL, &code), 1);
    free(text);
}

static void *measured_resize(void *context, void *ptr, size_t size) {
    size_t *largest = context;
    *largest = size > *largest ? size : *largest;
    return size == 0 ? (free(ptr), NULL) : realloc(ptr, size);
}

/* What is remembered of runs in vain takes memory in proportion to their length, wherever in the text they are. */
static void test_memory_of_runs_in_vain(void) {
    enum { RUN = 1000 };
    static size_t ends[RUN + CAP + 8];
    uint16_t next[5 * NAIVE_COLUMNS];
    pybpe_automaton a = far_automaton(next);
    uint8_t *text = malloc(LONG_TEXT);
    size_t largest = 0;
    const pybpe_allocator mem = {measured_resize, &largest};
    pybpe_pretok *p = splitter_of(&a, &mem);
    memset(text, '!', LONG_TEXT);
    memset(text + LONG_TEXT - RUN, 'a', RUN);
    largest = 0;
    size_t count = pybpe_pretok_split(p, text, LONG_TEXT, 0, ends, RUN + CAP);
    CHECK_EQ(count, RUN + 1);
    CHECK(largest > 0 && largest < 4096);
    pybpe_pretok_free(p);
    free(text);
}

/* The same in the pieces of a sequence: what is remembered of each is freed. */
static void test_runs_in_vain_in_pieces(void) {
    enum { RUN = 600, PIECES = 6 };
    static uint8_t text[PIECES / 2 * (RUN + 1)];
    static size_t ends[sizeof text + CAP];
    uint16_t runs[4 * NAIVE_COLUMNS], far[5 * NAIVE_COLUMNS];
    const pybpe_automaton first = runs_automaton(runs, 3, 0), second = far_automaton(far);
    failing_memory memory = {.left = -1};
    const pybpe_allocator mem = {failing_resize, &memory};
    pybpe_pretok *steps[] = {splitter_of(&first, &mem), splitter_of(&second, &mem)};
    const long blocks = memory.blocks;
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new_sequence(&p, (const pybpe_pretok *const *)steps, 2, NULL, NULL), PYBPE_OK);
    memset(text, 'a', sizeof text);
    for (size_t i = RUN; i < sizeof text; i += RUN + 1) {
        text[i] = '!';
    }
    CHECK_EQ(split_all(p, text, sizeof text, sizeof text + CAP, ends), sizeof text); /* each a, and each ! */
    CHECK_EQ(memory.blocks, blocks);
    pybpe_pretok_free(p);
    pybpe_pretok_free(steps[0]);
    pybpe_pretok_free(steps[1]);
}

static void test_allocation_failures(void) {
    enum { SHORT = 3000 };
    static uint8_t text[SHORT];
    uint16_t next[5 * NAIVE_COLUMNS];
    pybpe_automaton a = far_automaton(next);
    memset(text, 'a', SHORT);
    text[SHORT / 2] = '!';
    failing_memory memory = {.left = -1};
    const pybpe_allocator mem = {failing_resize, &memory};
    long n = 0;
    int code;
    do {
        memory.left = n++;
        uint64_t words = count_words(&a, text, SHORT, &mem, &code);
        CHECK(code == PYBPE_ERR_MEMORY || words == SHORT); /* without memory for what leads nowhere: only slower */
        CHECK_EQ(memory.blocks, 0);
    } while (memory.left == 0);
    CHECK_EQ(code, PYBPE_OK);
    CHECK(n > 4);
}

static void check_refused(const pybpe_automaton *a) {
    pybpe_pretok *p = NULL;
    pybpe_error err;
    CHECK_EQ(pybpe_pretok_new_automaton(&p, a, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(p == NULL);
}

static void test_wrong_tables(void) {
    uint16_t next[5 * NAIVE_COLUMNS];
    const pybpe_automaton good = far_automaton(next);
    static const uint16_t wrong[][2] = {/* place, entry */
                                        {0, 1},
                                        {3, NAIVE_ACCEPT},
                                        {NAIVE_COLUMNS, NAIVE_ACCEPT | 2},
                                        {NAIVE_COLUMNS, 5},
                                        {2 * NAIVE_COLUMNS, 1},
                                        {2 * NAIVE_COLUMNS, 0x7FFF},
                                        {2 * NAIVE_COLUMNS - 1, 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint16_t before = next[wrong[i][0]];
        next[wrong[i][0]] = wrong[i][1];
        check_refused(&good);
        next[wrong[i][0]] = before;
    }
    static const uint32_t firsts[][3] = {{1, 5, 9}, {0, 0, 9}, {0, 5, 5}, {0, 7, 6}, {0, 5, 0x110000}};
    static const uint8_t classes[] = {0, 1, NAIVE_CLASSES};
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        check_refused(&(pybpe_automaton){firsts[i], naive_class_of, 3, NAIVE_CLASSES, 5, next, 0});
    }
    check_refused(&(pybpe_automaton){naive_first, classes, 3, NAIVE_CLASSES, 5, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 0, NAIVE_CLASSES, 5, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 1, 0, 5, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 1, 251, 5, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 1, NAIVE_CLASSES, 1, next, 0});
    check_refused(&(pybpe_automaton){naive_first, classes, 1, NAIVE_CLASSES, 4097, next, 0});
}

int main(void) {
    test_random_automata();
    test_where_cuts_are();
    test_blank_before_letters();
    test_far_runs();
    test_encoding();
    test_runs_in_vain();
    test_memory_of_runs_in_vain();
    test_runs_in_vain_in_pieces();
    test_allocation_failures();
    test_wrong_tables();
    return check_report("automaton");
}
