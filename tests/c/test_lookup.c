/*
New words that are tokens (csrc/encode/encode_lookup.c) against merging by definition.
*/
#include "check.h"
#include "encode/encode.h"
#include "encode/encode_cache.h"
#include "naive_encode.h"
#include "random_state.h"
#include "small_encoder.h"

enum { TOKEN_MOST = WORD_INLINE_MAX };

/* Adds merges of any tokens of a few letters. Many of their tokens are not reached. */
static void random_vocab(small_vocab *v, unsigned letters, size_t merges) {
    uint32_t usable[SMALL_TOKENS];
    size_t count = 0;
    small_start(v);
    for (unsigned i = 0; i < letters; i++) {
        usable[count++] = 'a' + i;
    }
    for (size_t i = 0; i < merges; i++) {
        const uint32_t left = usable[random_below((uint32_t)count)];
        const uint32_t right = usable[random_below((uint32_t)count)];
        const size_t before = v->count;
        if (small_length(v, left) + small_length(v, right) > TOKEN_MOST) {
            continue;
        }
        usable[count] = small_add_merge(v, left, right);
        if (v->count > before) {
            count += 1;
        } else { /* the ids of merges must be consecutive */
            v->merges_count -= 1;
        }
    }
}

/* Every token, in random order and twice: the first answer must not change the second. */
static size_t check_tokens(const small_vocab *v, const small_encoder *s) {
    size_t reached = 0;
    for (size_t i = 0; i < 2 * v->count; i++) {
        const uint32_t id = i < v->count ? random_below((uint32_t)v->count) : (uint32_t)(i - v->count);
        uint32_t ids[TOKEN_MOST];
        const size_t n = small_length(v, id);
        const uint8_t *bytes = v->bytes + v->offsets[id];
        const bool want = merge_naive(v, bytes, n, ids) == 1 && ids[0] == id;
        const word_key key = word_key_careful(bytes, n);
        CHECK_EQ(token_lookup(s->e, key, word_key_hash(key, s->v->seed)), want ? id : PYBPE_NO_ID);
        CHECK_EQ(vocab_find_word(s->v, (word_key){~key.lo, key.hi}, word_key_hash(key, s->v->seed)), PYBPE_NO_ID);
        CHECK_EQ(s->e->reached[id], want ? REACHED : REACHED_NEVER);
        CHECK_EQ(token_is_reached(s->e, id), want);
        reached += i >= v->count && want && n > 1;
    }
    return reached;
}

static void test_random(void) {
    enum { VOCABULARIES = 2000 };
    static small_vocab v;
    size_t reached = 0;
    size_t others = 0;
    for (size_t i = 0; i < VOCABULARIES; i++) {
        random_vocab(&v, 1 + random_below(4), 1 + random_below(60));
        naive_prepare(&v);
        small_encoder s = small_encoder_new(&v);
        const size_t found = check_tokens(&v, &s);
        reached += found;
        others += v.merges_count > found;
        naive_forget(&v);
        small_encoder_free(&s);
    }
    CHECK(reached > VOCABULARIES * 2 && others > VOCABULARIES / 4);
}

/* A token with a part that no merge makes, and one that is no token of a merge. */
static void test_parts_that_no_merge_makes(void) {
    small_vocab v;
    small_start(&v);
    small_add_merge(&v, 'a', 'b');
    const uint32_t other = (uint32_t)v.count + 1; /* directly after the tokens of merges */
    small_add_token(&v, "qqr", 3);
    small_add_token(&v, "qq", 2);
    small_add_merge(&v, other, 'r');
    small_encoder s = small_encoder_new(&v);
    naive_prepare(&v);
    CHECK_EQ(check_tokens(&v, &s), 1); /* ab */
    naive_forget(&v);
    small_encoder_free(&s);
}

/* If merges are not in order, words are not looked up. */
static void test_order(void) {
    small_vocab v;
    small_start(&v);
    small_add_token(&v, "abc", 3);
    small_add_merge(&v, small_add_token(&v, "ab", 2), 'c');
    small_add_merge(&v, 'a', 'b');
    small_encoder s = small_encoder_new(&v);
    CHECK(s.e->reached == NULL && !encoder_looks_up(s.e));
    small_encoder_free(&s);
}

/* Words are looked up while texts have new tokens, and not after that. A new token begins it again. */
static void test_when(void) {
    small_vocab v;
    small_start(&v);
    small_add_merge(&v, 'a', 'b');
    small_add_merge(&v, 'c', 'd');
    small_add_merge(&v, 'e', 'f');
    small_encoder s = small_encoder_new(&v);
    pybpe_cache *c = NULL;
    uint32_t ids[4];
    size_t count = 0;
    CHECK_EQ(pybpe_cache_new(&c, s.e, NULL, NULL), PYBPE_OK);
    const struct {
        const char *word;
        bool looked_up, next;
    } steps[] = {{"ab", true, true}, {"ab", true, false}, {"cd", false, true}, {"ef", true, true}, {"ac", true, false}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const size_t n = strlen(steps[i].word);
        const uint32_t id = pybpe_vocab_find(s.v, (const uint8_t *)steps[i].word, n, 0);
        CHECK_EQ(pybpe_encode_words(s.e, c, (const uint8_t *)steps[i].word, &n, 1, ids, 4, 4, &count, NULL), PYBPE_OK);
        CHECK(id == PYBPE_NO_ID ? count == 2 : count == 1 && ids[0] == id);
        CHECK(id == PYBPE_NO_ID || s.e->reached[id] == (steps[i].looked_up ? REACHED : REACHED_UNKNOWN));
        CHECK_EQ(c->has_new_tokens, steps[i].next);
    }
    pybpe_cache_free(c);
    small_encoder_free(&s);
}

int main(void) {
    test_random();
    test_parts_that_no_merge_makes();
    test_order();
    test_when();
    return check_report("lookup");
}
