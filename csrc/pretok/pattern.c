/*
The named patterns: their names and their regular expressions. pretok.c has their splitters.
*/
#include "base/base.h"

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CONTRACTION_OF_CL100K "'(?i:[sdmt]|ll|ve|re)"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define OTHERS " ?[^\\s\\p{L}\\p{N}]+"
#define SPACES "\\s+(?!\\S)|\\s+"

/* As the models' authors published them, except that gpt2's and cl100k's possessive quantifiers, which only
   make a backtracking engine faster, are plain here: tokenizers' engine takes some of them differently. */
#define GPT2(number) "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+|" number "|" OTHERS "|" SPACES
#define CL100K(number) CONTRACTION_OF_CL100K "|" LETTERS "|" number "|" OTHERS "[\\r\\n]*|\\s++$|\\s*[\\r\\n]+|" SPACES
#define LLAMA3(number) CONTRACTION "|" LETTERS "|" number "|" OTHERS "[\\r\\n]*|\\s*[\\r\\n]+|" SPACES
#define O200K_START "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K_END "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K(number)                                                                                                  \
    O200K_START "*" O200K_END "+" CONTRACTION "?|" O200K_START "+" O200K_END "*" CONTRACTION "?|" number "|" OTHERS    \
                "[\\r\\n/]*|\\s*[\\r\\n]+|" SPACES

/* For DIGITS3: as many numbers, up to three, as leave a multiple of three before the end of the numbers. */
#define FROM_RIGHT "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))"

int pybpe_pattern_find(const char *name) {
    static const struct {
        const char *name;
        int pattern;
    } names[] = {
        {"gpt2", PYBPE_PATTERN_GPT2},   {"r50k", PYBPE_PATTERN_GPT2},         {"cl100k", PYBPE_PATTERN_CL100K},
        {"gpt4", PYBPE_PATTERN_CL100K}, {"o200k", PYBPE_PATTERN_O200K},       {"llama3", PYBPE_PATTERN_LLAMA3},
        {"qwen2", PYBPE_PATTERN_QWEN2}, {"nanochat", PYBPE_PATTERN_NANOCHAT},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i].name) == 0) {
            return names[i].pattern;
        }
    }
    return PYBPE_ERR_VALUE;
}

const char *pybpe_pattern_regex(int pattern) {
    static const struct {
        int pattern;
        const char *own, *digits1, *digits3; /* for numbers as the pattern has them, and for the two flags */
    } regexes[] = {
        {PYBPE_PATTERN_GPT2, GPT2(" ?\\p{N}+"), GPT2("\\p{N}"), GPT2(FROM_RIGHT)},
        {PYBPE_PATTERN_CL100K, CL100K("\\p{N}{1,3}"), CL100K("\\p{N}"), CL100K(FROM_RIGHT)},
        {PYBPE_PATTERN_O200K, O200K("\\p{N}{1,3}"), O200K("\\p{N}"), O200K(FROM_RIGHT)},
        {PYBPE_PATTERN_LLAMA3, LLAMA3("\\p{N}{1,3}"), LLAMA3("\\p{N}"), LLAMA3(FROM_RIGHT)},
        {PYBPE_PATTERN_QWEN2, LLAMA3("\\p{N}"), LLAMA3("\\p{N}"), LLAMA3(FROM_RIGHT)},
        {PYBPE_PATTERN_NANOCHAT, LLAMA3("\\p{N}{1,2}"), LLAMA3("\\p{N}"), LLAMA3(FROM_RIGHT)},
    };
    for (size_t i = 0; i < sizeof regexes / sizeof regexes[0]; i++) {
        if (pattern == regexes[i].pattern) {
            return regexes[i].own;
        }
        if (pattern == regexes[i].pattern + PYBPE_PATTERN_DIGITS1) {
            return regexes[i].digits1;
        }
        if (pattern == regexes[i].pattern + PYBPE_PATTERN_DIGITS3) {
            return regexes[i].digits3;
        }
    }
    return NULL;
}

/* Whether a text is the regular expression, also as `portable` in pybpe/pattern writes parts of it. */
static bool is_regex(const char *regex, const uint8_t *text, size_t n) {
    static const char *const parts[][2] = {
        {"\\s++$", "\\s+(?![\\s\\S])"}, {CONTRACTION_OF_CL100K, CONTRACTION}, {"\\p{N}{1,2}", "\\p{N}\\p{N}?"}};
    size_t at = 0;
    while (*regex != '\0' && at < n) {
        size_t own = 1, written = text[at] == (uint8_t)*regex ? 1 : 0;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            const size_t length = strlen(parts[i][1]);
            if (strncmp(regex, parts[i][0], strlen(parts[i][0])) == 0 && n - at >= length &&
                memcmp(text + at, parts[i][1], length) == 0) {
                own = strlen(parts[i][0]);
                written = length;
            }
        }
        if (written == 0) {
            return false;
        }
        regex += own;
        at += written;
    }
    return *regex == '\0' && at == n;
}

int pybpe_pattern_find_regex(const uint8_t *regex, size_t n) {
    static const int digits[] = {0, PYBPE_PATTERN_DIGITS1, PYBPE_PATTERN_DIGITS3};
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        for (int pattern = PYBPE_PATTERN_GPT2; pattern <= PYBPE_PATTERN_NANOCHAT; pattern++) {
            if (is_regex(pybpe_pattern_regex(pattern + digits[i]), regex, n)) {
                return pattern + digits[i];
            }
        }
    }
    return PYBPE_ERR_VALUE;
}
