/*
Normalizing: a second time changes nothing, NFKC leaves nothing for NFC, the two sides of a byte that is not UTF-8 can
be normalized separately, and no text grows by more than is promised. (tests/py/test_normalization.py compares the
results with Hugging Face's.)
*/
#include "fuzz.h"
#include "fuzz_memory.h"
#include "pybpe_train.h"

enum { MOST_TEXT = 1024 };

/* The new text, or the original if nothing changed. */
typedef struct normal_text {
    uint8_t *made;
    const uint8_t *bytes;
    size_t n;
} normal_text;

static normal_text normalized(int form, const uint8_t *text, size_t n) {
    normal_text t = {NULL, text, n};
    pybpe_error err;
    REQUIRE(pybpe_normalize(&t.made, &t.n, form, text, n, &fuzz_memory, &err) == PYBPE_OK);
    t.bytes = t.made == NULL ? text : t.made;
    REQUIRE(t.made != NULL || t.n == n);
    REQUIRE(t.n <= (form == PYBPE_NORMALIZER_NFC ? 3 : 11) * n);
    return t;
}

static void require_same(int form, const uint8_t *text, size_t n, const uint8_t *want, size_t want_n) {
    normal_text again = normalized(form, text, n);
    REQUIRE(again.n == want_n && (want_n == 0 || memcmp(again.bytes, want, want_n) == 0));
    pybpe_normalize_free(again.made, &fuzz_memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    int form = 1 + (int)fuzz_below(&in, 2);
    size_t n;
    uint8_t *text = fuzz_bytes(&in, MOST_TEXT, &n);
    normal_text whole = normalized(form, text, n);
    require_same(form, whole.bytes, whole.n, whole.bytes, whole.n);
    require_same(PYBPE_NORMALIZER_NFC, whole.bytes, whole.n, whole.bytes, whole.n);
    for (size_t i = 0; i < n; i++) {
        if (text[i] >= 0xF8) { /* in no character */
            normal_text left = normalized(form, text, i);
            REQUIRE(memcmp(left.bytes, whole.bytes, left.n) == 0 && whole.bytes[left.n] == text[i]);
            require_same(form, text + i, n - i, whole.bytes + left.n, whole.n - left.n);
            pybpe_normalize_free(left.made, &fuzz_memory);
            break;
        }
    }
    pybpe_normalize_free(whole.made, &fuzz_memory);
    free(text);
    return 0;
}
