/*
Splitting: every instruction set gives the same words, and so do calls of any size and both halves at a safe cut. Two
splitters in sequence give the words of the second one in each word of the first one.
(tests/py/test_pretok.py and fuzz_python.py compare the words with Python's `regex`.)
*/
#include "fuzz_split.h"
#include "pybpe_train.h"

enum { MOST_TEXT = SPLIT_MOST_TEXT, PATTERNS = 10, SIMD = 4 };

static pybpe_pretok *splitters[PATTERNS][SIMD];

static void make_splitters(void) {
    static const char *const simd[] = {"avx512", "avx2", "neon", "swar"};
    pybpe_error err;
    for (int i = 0; i < PATTERNS && splitters[PATTERNS - 1][SIMD - 1] == NULL; i++) {
        int pattern = (1 + i % 5) | (i < 5 ? 0 : PYBPE_PATTERN_DIGITS1);
        for (int k = 0; k < SIMD; k++) {
            REQUIRE(setenv("PYBPE_SIMD", simd[k], 1) == 0);
            REQUIRE(pybpe_pretok_new(&splitters[i][k], pattern, NULL, &err) == PYBPE_OK);
        }
    }
}

static void check_sequence(const pybpe_pretok *first, const pybpe_pretok *second, const uint8_t *text, size_t n,
                           const size_t *pieces, size_t count) {
    static size_t want[MOST_TEXT], got[MOST_TEXT];
    const pybpe_pretok *steps[] = {first, second};
    pybpe_pretok *both;
    size_t wanted = 0;
    REQUIRE(pybpe_pretok_new_sequence(&both, steps, 2, NULL, NULL) == PYBPE_OK);
    for (size_t i = 0, start = 0; i < count; start = pieces[i++]) {
        wanted += split(second, text + start, pieces[i] - start, MOST_TEXT + 64, want + wanted, start);
    }
    REQUIRE(split(both, text, n, MOST_TEXT + 64, got, 0) == wanted);
    REQUIRE(memcmp(want, got, wanted * sizeof *want) == 0);
    pybpe_pretok_free(both);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static size_t want[MOST_TEXT], got[2 * MOST_TEXT];
    fuzz_input in = {data, size};
    make_splitters();
    pybpe_pretok *const *kinds = splitters[fuzz_below(&in, PATTERNS)];
    size_t cap = 64 + fuzz_byte(&in);
    size_t n;
    uint8_t *text = fuzz_bytes(&in, MOST_TEXT, &n);
    size_t count = split(kinds[SIMD - 1], text, n, MOST_TEXT + 64, want, 0);
    for (int k = 0; k < SIMD; k++) {
        REQUIRE(split(kinds[k], text, n, cap, got, 0) == count);
        REQUIRE(memcmp(want, got, count * sizeof *want) == 0);
    }
    for (size_t i = 0; i < 8 && n > 0; i++) { /* all cuts would take ten times as long as everything else */
        size_t place = 1 + (size_t)text[i % n] * (i + 1) % n;
        size_t cut = pybpe_text_cut(kinds[0], NULL, text, n, place);
        REQUIRE(cut >= place && cut <= n);
        size_t first = split(kinds[0], text, cut, cap, got, 0);
        size_t second = split(kinds[0], text + cut, n - cut, cap, got + first, cut);
        REQUIRE(first + second == count && memcmp(want, got, count * sizeof *want) == 0);
    }
    check_sequence(kinds[0], splitters[cap % PATTERNS][0], text, n, want, count);
    free(text);
    return 0;
}
