/*
Vocabularies made to slow the merging of long words. The test counts steps, not time: the bytes of blocks that
apply_blocks merges, and the pairs that apply_long takes from its queue. Natural text takes about one step per byte, and
whoever makes the vocabulary and the text can raise that by a small factor only, for a word of any length.
*/
#include "apply/apply.h" /* before any system header */
#include "check.h"
#include "encode/encode.h"
#include "random_state.h"

enum { TOKENS = 4000, BYTES = 6 << 20, WORD = 1 << 17 };

/* A vocabulary whose merges are added one by one. */
typedef struct vocabulary {
    uint8_t *bytes;
    uint64_t offsets[TOKENS + 1];
    size_t count;
    uint32_t merges[2 * TOKENS];
    size_t merges_count;
} vocabulary;

static size_t token_length(const vocabulary *v, uint32_t id) { return (size_t)(v->offsets[id + 1] - v->offsets[id]); }

static void vocabulary_start(vocabulary *v) {
    v->merges_count = 0;
    v->offsets[0] = 0;
    for (v->count = 0; v->count < 256; v->count++) {
        v->bytes[v->count] = (uint8_t)v->count;
        v->offsets[v->count + 1] = v->count + 1;
    }
}

/* Adds a merge, unless there is a token with the bytes that it makes. Returns the id of this token. */
static uint32_t merge(vocabulary *v, uint32_t left, uint32_t right) {
    size_t n = token_length(v, left);
    size_t m = token_length(v, right);
    uint8_t *end = v->bytes + v->offsets[v->count];
    memcpy(end, v->bytes + v->offsets[left], n);
    memcpy(end + n, v->bytes + v->offsets[right], m);
    for (uint32_t id = 256; id < v->count; id++) {
        if (token_length(v, id) == n + m && memcmp(v->bytes + v->offsets[id], end, n + m) == 0) {
            return id;
        }
    }
    v->merges[2 * v->merges_count] = left;
    v->merges[2 * v->merges_count + 1] = right;
    v->merges_count += 1;
    v->offsets[v->count + 1] = v->offsets[v->count] + n + m;
    return (uint32_t)v->count++;
}

/* Fills a word with copies of a token. */
static void word_repeat(const vocabulary *v, uint32_t id, uint8_t *w, size_t n) {
    for (size_t i = 0; i < n; i++) {
        w[i] = v->bytes[v->offsets[id] + i % token_length(v, id)];
    }
}

/* Fills a word with tokens drawn from those that merges make. */
static void word_of_tokens(const vocabulary *v, uint8_t *w, size_t n) {
    for (size_t i = 0; i < n;) {
        uint32_t id = 256 + random_below((uint32_t)(v->count - 256));
        for (size_t k = 0; k < token_length(v, id) && i < n; k++) {
            w[i++] = v->bytes[v->offsets[id] + k];
        }
    }
}

/* ---------------------------------------------------------------------------------------------------
The families: each fills a vocabulary, and a word of n bytes
*/

/* abaababa...: each token is the two before it. */
static void fibonacci(vocabulary *v, uint8_t *w, size_t n) {
    uint32_t older = 'b';
    uint32_t last = 'a';
    while (token_length(v, last) < WORD) {
        uint32_t next = merge(v, last, older);
        older = last;
        last = next;
    }
    word_repeat(v, last, w, n);
}

/* a, aa, aaaa, ... */
static void powers(vocabulary *v, uint8_t *w, size_t n) {
    uint32_t last = 'a';
    while (token_length(v, last) < WORD) {
        last = merge(v, last, last);
    }
    word_repeat(v, last, w, n);
}

/* a, aa, aaa, aaaa, ... */
static void counting(vocabulary *v, uint8_t *w, size_t n) {
    uint32_t last = 'a';
    for (size_t i = 0; i < 3000; i++) {
        last = merge(v, last, 'a');
    }
    word_repeat(v, last, w, n);
}

/* abbabaab...: each token, and its mirror image. */
static void thue_morse(vocabulary *v, uint8_t *w, size_t n) {
    uint32_t x = 'a';
    uint32_t y = 'b';
    while (token_length(v, x) < WORD) {
        uint32_t next = merge(v, x, y);
        y = merge(v, y, x);
        x = next;
    }
    word_repeat(v, x, w, n);
}

/* c, (c, (c), ((c), ((c)), ... */
static void brackets(vocabulary *v, uint8_t *w, size_t n) {
    uint32_t last = 'c';
    for (size_t i = 0; i < 1200; i++) {
        last = merge(v, merge(v, 'a', last), 'b');
    }
    word_repeat(v, last, w, n);
}

/* Each token is the one before it and a letter. */
static void chain_to_the_right(vocabulary *v, uint8_t *w, size_t n) {
    uint32_t last = 'a';
    for (size_t i = 0; i < 3000; i++) {
        last = merge(v, last, 'a' + random_below(2));
    }
    word_repeat(v, last, w, n);
}

static void chain_to_the_left(vocabulary *v, uint8_t *w, size_t n) {
    uint32_t last = 'a';
    for (size_t i = 0; i < 3000; i++) {
        last = merge(v, 'a' + random_below(2), last);
    }
    word_repeat(v, last, w, n);
}

/* Thousands of merges of one token with another. */
static void shared_prefix(vocabulary *v, uint8_t *w, size_t n) {
    uint32_t prefix = 'a';
    for (size_t i = 0; i < 6; i++) {
        prefix = merge(v, prefix, prefix);
    }
    uint32_t first = (uint32_t)v->count;
    for (uint32_t i = 0; i < 25 * 25; i++) {
        merge(v, 'b' + i / 25, 'b' + i % 25);
    }
    for (uint32_t i = 0; i < 25 * 25; i++) {
        merge(v, prefix, first + i);
    }
    word_of_tokens(v, w, n);
}

/* Random merges over two letters. */
static void random_merges(vocabulary *v, uint8_t *w, size_t n) {
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t left = i < 8 || random_below(4) == 0 ? 'a' + random_below(2) : 256 + random_below(i);
        uint32_t right = i < 8 || random_below(4) == 0 ? 'a' + random_below(2) : 256 + random_below(i);
        left = left < v->count ? left : 'a';
        right = right < v->count ? right : 'b';
        if (token_length(v, left) + token_length(v, right) < 2000) {
            merge(v, left, right);
        }
    }
    word_of_tokens(v, w, n);
}

/* The order of merges is reversed: those that make the parts of a token come after the one that joins the parts. */
static void in_reverse(vocabulary *v, uint8_t *w, size_t n) {
    random_merges(v, w, n);
    for (size_t i = 0, k = v->merges_count - 1; i < k; i++, k--) {
        for (size_t side = 0; side < 2; side++) {
            uint32_t first = v->merges[2 * i + side];
            v->merges[2 * i + side] = v->merges[2 * k + side];
            v->merges[2 * k + side] = first;
        }
    }
}

/* ---------------------------------------------------------------------------------------------------
Steps
*/

/* Merges a word as pybpe_encode does, and returns the steps that it takes. *blocks_steps becomes those of blocks. */
static uint64_t steps_of(const pybpe_encoder *e, const uint8_t *w, size_t n, uint64_t *blocks_steps) {
    apply_blocks_table blocks = {0};
    apply_scratch scratch = {0};
    size_t count = 0;
    size_t want = 0;
    const pybpe_vocab_spec spec = pybpe_vocab_get_spec(e->vocab);
    apply_blocks_fill(&blocks, &spec, &e->table, NULL);
    bool done = blocks.usable && apply_blocks(&blocks, &e->table, w, n, &count, NULL);
    CHECK_EQ(apply_long(&e->table, &scratch, w, n, &want, NULL, NULL), PYBPE_OK);
    CHECK(!done || (count == want && memcmp(blocks.ids, scratch.ids, 4 * count) == 0));
    *blocks_steps = blocks.steps;
    uint64_t steps = blocks.steps + (done ? 0 : scratch.steps);
    if (blocks.usable) {
        apply_blocks(&blocks, &e->table, w, n, &count, NULL);
        CHECK_EQ(blocks.steps, 2 * *blocks_steps); /* of all words so far */
    }
    apply_blocks_free(&blocks, NULL);
    apply_scratch_free(&scratch, NULL);
    return steps;
}

typedef struct family {
    const char *name;
    void (*fill)(vocabulary *v, uint8_t *w, size_t n);
} family;

static const family FAMILIES[] = {
    {"fibonacci", fibonacci},
    {"powers", powers},
    {"counting", counting},
    {"thue_morse", thue_morse},
    {"brackets", brackets},
    {"chain_to_the_right", chain_to_the_right},
    {"chain_to_the_left", chain_to_the_left},
    {"shared_prefix", shared_prefix},
    {"random_merges", random_merges},
    {"in_reverse", in_reverse},
};

static void check_family(const family *f, vocabulary *v, uint8_t *w) {
    vocabulary_start(v);
    f->fill(v, w, WORD);
    const pybpe_vocab_spec spec = {.tokens = {v->bytes, v->offsets, v->count},
                                   .merges = v->merges,
                                   .merges_count = v->merges_count,
                                   .eot_id = PYBPE_NO_ID,
                                   .pattern = PYBPE_PATTERN_GPT2};
    pybpe_vocab *vocab = NULL;
    pybpe_encoder *e = NULL;
    CHECK_EQ(pybpe_vocab_new(&vocab, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&e, vocab, NULL, 0, NULL, NULL), PYBPE_OK);
    uint64_t blocks_steps;
    uint64_t blocks_half;
    uint64_t steps = steps_of(e, w, WORD, &blocks_steps);
    uint64_t half = steps_of(e, w, WORD / 2, &blocks_half);
    if (getenv("PYBPE_SHOW_STEPS") != NULL) {
        printf("%-20s %.2f steps per byte, %.2f of blocks; %.2f times those of half the word\n", f->name,
               (double)steps / WORD, (double)blocks_steps / WORD, (double)steps / (double)half);
    }
    CHECK(steps > 0 && steps <= 4 * WORD);
    CHECK(blocks_steps <= 2 * (uint64_t)(WORD + 2 * APPLY_BLOCK));
    CHECK(10 * steps <= 25 * half);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
}

int main(void) {
    static vocabulary v;
    v.bytes = malloc(BYTES);
    uint8_t *w = malloc(WORD);
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++) {
        check_family(&FAMILIES[i], &v, w);
    }
    free(w);
    free(v.bytes);
    return check_report("adversary");
}
