/*
Tests of the splitters and of safe cuts: words computed by hand, small values of cap, and agreement of all instruction
sets on pseudo-random hostile bytes. tests/py/test_pretok.py compares with `regex`.
*/
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "check.h"
#include "pybpe_train.h"

#include <stdlib.h>
#include <string.h>

enum { CAP = 64, MAX_TEXT = 1024 };

enum { KINDS = 4 };

/* The first is the one that runs anywhere. A name that this machine lacks gives its widest. */
static const char *const simd_names[KINDS] = {"swar", "avx2", "avx512", "neon"};

/* Fills `joined` with the words of text[0..n), a '|' between them, asking for at most cap at once. */
static void join_words(const pybpe_pretok *p, const uint8_t *text, size_t n, size_t cap, char *joined) {
    size_t ends[MAX_TEXT];
    size_t pos = 0;
    size_t length = 0;
    size_t count;
    while ((count = pybpe_pretok_split(p, text, n, pos, ends, cap)) > 0) {
        CHECK(count <= cap);
        for (size_t i = 0; i < count; i++) {
            CHECK(pos < ends[i] && ends[i] <= n);
            memcpy(joined + length, text + pos, ends[i] - pos);
            length += ends[i] - pos;
            pos = ends[i];
            joined[length++] = '|';
        }
    }
    CHECK_EQ(pos, n);
    joined[length] = '\0';
}

static pybpe_pretok *new_pretok(int pattern, const char *simd) {
    setenv("PYBPE_SIMD", simd, 1);
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new(&p, pattern, NULL, NULL), PYBPE_OK);
    return p;
}

/* Checks the words of a text after runs of blanks of all lengths, so that they meet the ends of blocks. */
static void check_words(int pattern, const char *text, const char *expected) {
    for (size_t i = 0; i < KINDS; i++) {
        pybpe_pretok *p = new_pretok(pattern, simd_names[i]);
        for (size_t before = 0; before < 70; before++) {
            char padded[MAX_TEXT];
            char joined[2 * MAX_TEXT];
            memset(padded, '\n', before);
            memcpy(padded + before, text, strlen(text) + 1);
            join_words(p, (const uint8_t *)padded, before + strlen(text), CAP, joined);
            const char *found = joined;
            for (size_t skip = 0; skip < before; skip += *found++ != '|') {
            }
            found += before > 0 && *found == '|';
            CHECK(strcmp(found, expected) == 0);
        }
        pybpe_pretok_free(p);
    }
}

static void test_gpt2(void) {
    int digits1 = PYBPE_PATTERN_GPT2 + PYBPE_PATTERN_DIGITS1;
    check_words(PYBPE_PATTERN_GPT2, "It's 1999.  Oh!", "It|'s| 1999|.| | Oh|!|");
    check_words(PYBPE_PATTERN_GPT2, "x'llama 'll ''s'S", "x|'ll|ama| '|ll| ''|s|'|S|");
    check_words(PYBPE_PATTERN_GPT2, "a\t\tb \n c \t", "a|\t|\t|b| \n| c| \t|");
    check_words(PYBPE_PATTERN_GPT2, "a12 34", "a|12| 34|");
    check_words(digits1, "a12 34", "a|1|2| |3|4|");
    check_words(PYBPE_PATTERN_GPT2 + PYBPE_PATTERN_DIGITS3, "a12 3456 789", "a|12| |3|456| |789|");
    check_words(digits1, "It's 12!\n\n3", "It|'s| |1|2|!|\n|\n|3|");
    check_words(PYBPE_PATTERN_GPT2 + PYBPE_PATTERN_DIGITS3, "It's 1234!\n\n5", "It|'s| |1|234|!|\n|\n|5|");
    check_words(PYBPE_PATTERN_GPT2, "\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x8C x",
                "\xE4\xBD\xA0\xE5\xA5\xBD|\xEF\xBC\x8C| x|");
    check_words(PYBPE_PATTERN_GPT2,
                "a\xE3\x80\x80\xE3\x80\x80"
                "b",
                "a|\xE3\x80\x80|\xE3\x80\x80|b|");
    check_words(PYBPE_PATTERN_GPT2,
                "a\xE4\xBD"
                "b\xFF\x80!",
                "a|\xE4\xBD|b|\xFF\x80!|");
}

static void test_others(void) {
    check_words(PYBPE_PATTERN_CL100K, "It'S 12345!\n\n x\n  ", "It|'S| |123|45|!\n\n| x|\n  |");
    check_words(PYBPE_PATTERN_LLAMA3, "It'S 12345!\n\n x\n  ", "It|'S| |123|45|!\n\n| x|\n|  |");
    check_words(PYBPE_PATTERN_QWEN2, "a 12 .b", "a| |1|2| .|b|");
    check_words(PYBPE_PATTERN_NANOCHAT, "It'S 12345!\n\n x\n  ", "It|'S| |12|34|5|!\n\n| x|\n|  |");
    check_words(PYBPE_PATTERN_CL100K, "x'\xC5\xBFy", "x|'\xC5\xBF|y|");
    check_words(PYBPE_PATTERN_O200K, "HelloWorld's HTTPServer", "Hello|World's| HTTPServer|");
    check_words(PYBPE_PATTERN_CL100K + PYBPE_PATTERN_DIGITS3, "It'S 12345!\n\n x\n  ", "It|'S| |12|345|!\n\n| x|\n  |");
    check_words(PYBPE_PATTERN_LLAMA3 + PYBPE_PATTERN_DIGITS3, "It'S 12345!\n\n x\n  ",
                "It|'S| |12|345|!\n\n| x|\n|  |");
    check_words(PYBPE_PATTERN_O200K + PYBPE_PATTERN_DIGITS3, "HelloWorld1234567.5", "Hello|World|1|234|567|.|5|");
    check_words(PYBPE_PATTERN_O200K,
                "!/\n/\xCC\x81"
                "AB",
                "!/\n/|\xCC\x81|AB|");
    check_words(PYBPE_PATTERN_O200K,
                "ABC\xE4\xBD\xA0"
                "DE",
                "ABC\xE4\xBD\xA0|DE|");
}

/* Groups of numbers in a text that is split in several calls. */
static void test_many_groups(void) {
    enum { ROUNDS = 2000 };
    static char text[7 * ROUNDS];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = "a12345 "[i % 7];
    }
    pybpe_pretok *p = new_pretok(PYBPE_PATTERN_GPT2 + PYBPE_PATTERN_DIGITS3, "");
    pybpe_counter *c = NULL;
    CHECK_EQ(pybpe_counter_new(&c, p, NULL, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add(c, (const uint8_t *)text, sizeof text, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_get_stats(c).words, 5); /* a, " a", 12, 345, and the last blank */
    CHECK_EQ(pybpe_counter_get_stats(c).total, 3 * ROUNDS + 1);
    pybpe_counter_free(c);
    pybpe_pretok_free(p);
}

static void test_arguments(void) {
    pybpe_pretok *p = new_pretok(PYBPE_PATTERN_GPT2, "swar");
    size_t ends[CAP];
    CHECK(strcmp(pybpe_pretok_simd(p), "swar") == 0);
    CHECK_EQ(pybpe_pretok_split(p, (const uint8_t *)"", 0, 0, ends, CAP), 0);
    CHECK_EQ(pybpe_pretok_split(p, (const uint8_t *)"a b", 3, 3, ends, CAP), 0);
    CHECK_EQ(pybpe_pretok_split(p, (const uint8_t *)"a b", 3, 1, ends, CAP), 1);
    CHECK_EQ(pybpe_pretok_has_cuts(p), 1);
    pybpe_pretok_free(p);
    pybpe_pretok_free(NULL);
    pybpe_error err;
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_CUSTOM, NULL, &err), PYBPE_ERR_VALUE);
    CHECK(p == NULL && err.offset == 0);
    CHECK(pybpe_pattern_regex(PYBPE_PATTERN_CUSTOM) == NULL);
}

static void test_names(void) {
    static const struct {
        const char *name;
        int pattern;
    } names[] = {{"gpt2", PYBPE_PATTERN_GPT2},   {"r50k", PYBPE_PATTERN_GPT2},         {"cl100k", PYBPE_PATTERN_CL100K},
                 {"gpt4", PYBPE_PATTERN_CL100K}, {"o200k", PYBPE_PATTERN_O200K},       {"llama3", PYBPE_PATTERN_LLAMA3},
                 {"qwen2", PYBPE_PATTERN_QWEN2}, {"nanochat", PYBPE_PATTERN_NANOCHAT}, {"GPT2", PYBPE_ERR_VALUE},
                 {"", PYBPE_ERR_VALUE}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK_EQ(pybpe_pattern_find(names[i].name), names[i].pattern);
    }
}

/* NEON is a part of AArch64, so there is no other choice to fall back to. */
static void test_the_widest_is_taken(void) {
#if defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const char *expected = "neon";
#elif defined(__x86_64__) && !defined(_WIN32)
    const char *expected = __builtin_cpu_supports("avx2") ? "avx" : "swar";
#else
    const char *expected = "swar";
#endif
    pybpe_pretok *p = new_pretok(PYBPE_PATTERN_GPT2, "");
    CHECK(strncmp(pybpe_pretok_simd(p), expected, strlen(expected)) == 0);
    pybpe_pretok_free(p);
    setenv("PYBPE_SIMD", "avx", 1);
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_ERR_VALUE);
    CHECK(p == NULL);
    unsetenv("PYBPE_SIMD");
    p = NULL;
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, NULL, NULL), PYBPE_OK);
    pybpe_pretok_free(p);
}

static void *no_memory(void *context, void *ptr, size_t size) {
    (void)context;
    (void)ptr;
    (void)size;
    return NULL;
}

static void test_allocation_failure(void) {
    pybpe_allocator none = {.resize = no_memory};
    pybpe_error err = {0};
    pybpe_pretok *p;
    CHECK_EQ(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, &none, &err), PYBPE_ERR_MEMORY);
    CHECK(p == NULL && err.code == PYBPE_ERR_MEMORY);
}

/* xorshift64 (Marsaglia 2003). */
static uint32_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

/* A text of up to 500 bytes, made of pieces that meet in all ways, in an allocation of exactly its size. */
static uint8_t *random_text(uint64_t *state, size_t *n) {
    static const char *const pieces[] = {
        "a",
        "Z",
        "s",
        "'",
        "'s",
        "'ll",
        " ",
        "  ",
        "\n",
        "\t",
        "1",
        "23",
        ".",
        "/",
        "\xC3\xA9",
        "\xC2\xA0",
        "\xE3\x80\x80",
        "\xE4",
        "\x80",
        "\xFF",
        "\xED\xA0\x80",
        "\r",
        "\xCC\x81",
        "\xF0\x9F\x98\x80",
        "\xE4\xB8\xAD\xE6\x96\x87",
        "\xE4\x80\x80",
        "\xE4\xB7\xBF",
        "\xEF\xBC\x8C",
        "\xC5\xBF",
    };
    char text[MAX_TEXT];
    size_t most = next_random(state) % 500;
    *n = 0;
    while (*n < most) {
        const char *piece = pieces[next_random(state) % (sizeof pieces / sizeof pieces[0])];
        memcpy(text + *n, piece, strlen(piece));
        *n += strlen(piece);
    }
    uint8_t *copy = malloc(*n > 0 ? *n : 1);
    if (copy == NULL) {
        abort();
    }
    return memcpy(copy, text, *n);
}

/* The words of the parts between cuts, in order, in the form of join_words. */
static void join_cut_words(const pybpe_pretok *p, const uint8_t *text, size_t n, char *joined) {
    size_t pos = 0;
    while (pos < n) {
        size_t cut = pybpe_text_cut(p, NULL, text, n, pos + 1);
        CHECK(cut > pos && cut <= n);
        join_words(p, text + pos, cut - pos, CAP, joined);
        joined += strlen(joined);
        pos = cut;
    }
    *joined = '\0';
}

/* Copies a text with each digit 2 as a superscript two. Returns its length. */
static size_t raise_twos(const uint8_t *text, size_t n, uint8_t *raised) {
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '2') {
            raised[length++] = 0xC2;
        }
        raised[length++] = text[i] == '2' ? 0xB2 : text[i];
    }
    return length;
}

/* The reverse, for a string. */
static void lower_twos(char *joined) {
    char *to = joined;
    for (const char *from = joined; *from != '\0'; from++) {
        const int is_two = memcmp(from, "\xC2\xB2", 2) == 0;
        *to++ = is_two ? '2' : *from;
        from += is_two;
    }
    *to = '\0';
}

/* Numbers of several bytes have the same words as digits, but most patterns split their blocks one word at a time. */
static void check_raised(const pybpe_pretok *p, const uint8_t *text, size_t n, const char *expected) {
    uint8_t raised[MAX_TEXT];
    char found[2 * MAX_TEXT];
    join_words(p, raised, raise_twos(text, n, raised), CAP, found);
    lower_twos(found);
    CHECK(strcmp(found, expected) == 0);
}

static void test_random_texts(void) {
    uint64_t state = 88172645463325252U;
    for (int pattern = PYBPE_PATTERN_GPT2; pattern <= PYBPE_PATTERN_QWEN2; pattern++) {
        pybpe_pretok *kinds[KINDS];
        for (size_t k = 0; k < KINDS; k++) {
            kinds[k] = new_pretok(pattern, simd_names[k]);
        }
        for (int i = 0; i < 2500; i++) {
            char expected[2 * MAX_TEXT];
            char found[2 * MAX_TEXT];
            size_t n;
            uint8_t *text = random_text(&state, &n);
            join_words(kinds[0], text, n, MAX_TEXT, expected);
            for (size_t k = 0; k < KINDS; k++) {
                join_words(kinds[k], text, n, CAP, found);
                CHECK(strcmp(found, expected) == 0);
            }
            join_cut_words(kinds[0], text, n, found);
            CHECK(strcmp(found, expected) == 0);
            check_raised(kinds[0], text, n, expected);
            free(text);
        }
        for (size_t k = 0; k < KINDS; k++) {
            pybpe_pretok_free(kinds[k]);
        }
    }
}

/* If each call began at the start of the text, this would take many seconds. */
static void test_many_calls(void) {
    enum { LONG_TEXT = 1000000 };
    uint8_t *text = malloc(LONG_TEXT);
    size_t ends[CAP];
    pybpe_pretok *p = new_pretok(PYBPE_PATTERN_GPT2, "avx2");
    for (size_t i = 0; i < LONG_TEXT; i++) {
        text[i] = i % 2 ? '1' : 'a';
    }
    size_t pos = 0;
    for (size_t count; (count = pybpe_pretok_split(p, text, LONG_TEXT, pos, ends, CAP)) > 0; pos += count) {
        CHECK_EQ(ends[count - 1], pos + count);
    }
    CHECK_EQ(pos, LONG_TEXT);
    pybpe_pretok_free(p);
    free(text);
}

static void test_cuts(void) {
    pybpe_pretok *p = new_pretok(PYBPE_PATTERN_CL100K, "avx512");
    const uint8_t *text = (const uint8_t *)"Don't!\n stop";
    CHECK_EQ(pybpe_text_cut(p, NULL, text, 12, 0), 0);
    CHECK_EQ(pybpe_text_cut(p, NULL, text, 12, 1), 5); /* t! but neither n' nor !\n */
    CHECK_EQ(pybpe_text_cut(p, NULL, text, 12, 6), 12);
    CHECK_EQ(pybpe_text_cut(p, NULL, text, 5, 1), 5);
    CHECK_EQ(pybpe_text_cut(p, NULL, text, 0, 0), 0);
    CHECK_EQ(pybpe_text_cut(p, NULL, text, 3, 7), 3);
    pybpe_pretok_free(p);
}

int main(void) {
    test_gpt2();
    test_others();
    test_many_groups();
    test_arguments();
    test_names();
    test_the_widest_is_taken();
    test_allocation_failure();
    test_random_texts();
    test_many_calls();
    test_cuts();
    return check_report("pretok");
}
