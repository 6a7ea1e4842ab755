/*
The argument of csrc/pretok/pretok_cut.c, checked on every small case: if a text is divided at a safe cut, the words of both
parts are the words of the whole, also if the text continues.

Takes every text of up to `length` characters of an alphabet that has one character for each role that a pattern or the
rule of cuts distinguishes, and for each way to end in the middle of a character.

    safe_cuts          texts of up to `length` characters
    safe_cuts quick    one character less
*/
#include "check.h"
#include "pybpe_train.h"
#include "split_text.h"

#include <stdbool.h>

enum { MOST_CHARACTERS = 8, MOST_BYTES = 4 * MOST_CHARACTERS, ENDS = 256 };

typedef struct alphabet {
    const char *what;
    const char *characters[24];
    size_t length;
} alphabet;

static const alphabet alphabets[] = {
    {"all roles",
     {"a",    "s",        "A",  "\xE4\xB8\xAD", "\xCA\xB0", "\xC7\x85", "\xCC\x81", "1", "\xE2\x85\xA7",     "\xC2\xBD",
      " ",    "\xC2\xA0", "\t", "\n",           "\r",       ".",        "'",        "/", "\xF0\x9F\x98\x80", "\xFF",
      "\xE4", "\xB8"},
     5},
    {"letters, contractions and space", {"s", "S", "l", "'", "\xCC\x81", "1", " ", "\n", "."}, 7},
    {"space, newlines and punctuation", {"a", " ", "\t", "\n", "\r", ".", "/", "1"}, 7},
    {"parts of characters", {"a", " ", "\xE3", "\x80", "\xC2", "\xA0", "1", "."}, 7},
};

static const struct {
    const char *name;
    int pattern;
} patterns[] = {
    {"gpt2", PYBPE_PATTERN_GPT2},     {"cl100k", PYBPE_PATTERN_CL100K}, {"o200k", PYBPE_PATTERN_O200K},
    {"llama3", PYBPE_PATTERN_LLAMA3}, {"qwen2", PYBPE_PATTERN_QWEN2},   {"nanochat", PYBPE_PATTERN_NANOCHAT},
};
static const int digits[] = {0, PYBPE_PATTERN_DIGITS1, PYBPE_PATTERN_DIGITS3};

static uint64_t texts, cuts;

/* The words of the whole, and of both parts if it is divided at `cut`. */
static bool words_agree(const pybpe_pretok *p, const uint8_t *text, size_t n, size_t cut, const size_t *ends,
                        size_t count) {
    size_t parts[2 * ENDS];
    size_t left = split_all(p, text, cut, ENDS, parts);
    size_t right = split_all(p, text + cut, n - cut, ENDS, parts + left);
    for (size_t i = left; i < left + right; i++) {
        parts[i] += cut;
    }
    return left + right == count && memcmp(parts, ends, count * sizeof *ends) == 0;
}

/* Checks the cuts in `known`, a bit for each place, and those that the text itself shows. Returns all of them. */
static uint32_t check_text(const pybpe_pretok *p, const uint8_t *text, size_t n, uint32_t known) {
    size_t ends[ENDS];
    size_t count = split_all(p, text, n, ENDS, ends);
    for (size_t cut = 0; (cut = pybpe_text_cut(p, NULL, text, n, cut + 1)) < n;) {
        known |= UINT32_C(1) << cut;
    }
    for (size_t cut = 1; cut < n; cut++) {
        if ((known >> cut & 1) == 0) {
            continue;
        }
        cuts++;
        if (!words_agree(p, text, n, cut, ends, count)) {
            CHECK(!"the words of the parts are those of the text");
        }
    }
    texts++;
    return known;
}

/* Checks all texts that begin with text[0..n) and have up to `more` further characters. What follows a text does not
   change its cuts, so `known` has the cuts of all texts that this one begins with. */
static void check_texts(const pybpe_pretok *p, const alphabet *a, uint8_t *text, size_t n, uint32_t known,
                        size_t more) {
    if (n > 0) {
        known = check_text(p, text, n, known);
    }
    for (size_t i = 0; more > 0 && a->characters[i] != NULL; i++) {
        size_t size = strlen(a->characters[i]);
        memcpy(text + n, a->characters[i], size);
        check_texts(p, a, text, n + size, known, more - 1);
    }
}

static void check_pattern(const char *name, int pattern, bool quick) {
    uint8_t text[MOST_BYTES];
    pybpe_pretok *p = NULL;
    CHECK_EQ(pybpe_pretok_new(&p, pattern, NULL, NULL), PYBPE_OK);
    for (size_t i = 0; i < sizeof alphabets / sizeof *alphabets; i++) {
        size_t length = alphabets[i].length - (quick ? 1 : 0);
        texts = cuts = 0;
        check_texts(p, &alphabets[i], text, 0, 0, length);
        const char *numbers = pattern & PYBPE_PATTERN_DIGITS1   ? ", digits=1"
                              : pattern & PYBPE_PATTERN_DIGITS3 ? ", digits=3"
                                                                : "";
        printf("%s%s, %s: %" PRIu64 " texts of up to %zu characters, %" PRIu64 " cuts\n", name, numbers,
               alphabets[i].what, texts, length, cuts);
        CHECK(cuts > 0);
    }
    pybpe_pretok_free(p);
}

int main(int argc, char **argv) {
    bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        for (size_t k = 0; k < sizeof digits / sizeof *digits; k++) {
            check_pattern(patterns[i].name, patterns[i].pattern | digits[k], quick);
        }
    }
    return check_report("safe_cuts");
}
