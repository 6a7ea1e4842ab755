/*
Eight threads share one vocabulary, encoder, tokenizer, splitter, specials, shard and table of counts, start at once, and get the
same results as a single thread: test_threads [SECONDS], at least three rounds each. `make tsan` watches for data races.
*/
#define _DEFAULT_SOURCE /* mkdtemp, clock_gettime */
#include "check.h"
#include "pybpe_train.h"
#include "random_state.h"
#include "scratch.h"
#include "small_vocab.h"

#include <pthread.h>
#include <time.h>

enum { THREADS = 8, ROUNDS = 3, TEXT_BYTES = 100000, SHARD_TOKENS = 5000 };

/* What all threads use, and none changes. */
typedef struct subject {
    pybpe_vocab *v;
    pybpe_encoder *e;
    pybpe_tokenizer *t;
    pybpe_shard *shard;
    pybpe_counter *counts; /* of the text, by one thread */
    uint8_t *text;
    uint32_t *ids;
    size_t ids_count;
    uint32_t *tokens; /* of the shard */
    size_t cut;
} subject;

typedef struct worker {
    const subject *s;
    pybpe_cache *c;
    uint32_t *ids;
    uint8_t *back;
    pthread_mutex_t *gate; /* locked until all threads exist; macOS has no pthread_barrier_t */
    double until;
    unsigned long rounds;
    unsigned long wrong;
} worker;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---------------------------------------------------------------------------------------------------
What they share
*/

/* Repeated words, numbers, specials, Chinese, bytes that are not UTF-8, and words too long for the cache. */
static void fill_text(uint8_t *text, size_t n) {
    static const char *const pieces[] = {"hello", " he",           " hell",        "shell",
                                         " 1234", "\n\n",          "\xE4\xBD\xA0", "\xFF",
                                         "'ll",   "<|endoftext|>", "!?",           "ehehehehehehehehehehehehehe"};
    for (size_t at = 0; at < n;) {
        const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
        size_t repeat = random_below(16) == 0 ? 90 : 1;
        for (size_t i = 0; i < repeat * strlen(piece) && at < n; i++) {
            text[at++] = (uint8_t)piece[i % strlen(piece)];
        }
    }
}

static void subject_vocab(subject *s) {
    static small_vocab v;
    small_start(&v);
    uint32_t he = small_add_merge(&v, 'h', 'e');
    uint32_t ll = small_add_merge(&v, 'l', 'l');
    uint32_t hell = small_add_merge(&v, he, ll);
    small_add_merge(&v, hell, 'o');
    small_add_merge(&v, ' ', he);
    uint32_t hehe = small_add_merge(&v, he, he);
    small_add_merge(&v, hehe, hehe);
    small_add_merge(&v, 0xE4, 0xBD);
    small_add_special(&v, "<|endoftext|>");
    pybpe_vocab_spec spec = small_spec(&v);
    CHECK_EQ(pybpe_vocab_new(&s->v, &spec, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encoder_new(&s->e, s->v, NULL, 0, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_vocab_save(s->v, "tokenizer.bin", 2, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_tokenizer_load(&s->t, "tokenizer.bin", NULL, NULL), PYBPE_OK);
}

static void subject_results(subject *s) {
    const pybpe_specials *specials = pybpe_encoder_specials(s->e);
    const pybpe_pretok *pretok = pybpe_encoder_pretok(s->e);
    pybpe_cache *c;
    CHECK_EQ(pybpe_cache_new(&c, s->e, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_encode(s->e, c, specials, s->text, TEXT_BYTES, s->ids, 4, TEXT_BYTES, &s->ids_count, NULL),
             PYBPE_OK);
    CHECK(s->ids_count > 1000 && s->ids_count < TEXT_BYTES);
    pybpe_cache_free(c);
    CHECK_EQ(pybpe_counter_new(&s->counts, pretok, specials, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_counter_add(s->counts, s->text, TEXT_BYTES, NULL), PYBPE_OK);
    s->cut = pybpe_text_cut(pretok, specials, s->text, TEXT_BYTES, TEXT_BYTES / 2);
    CHECK(s->cut < TEXT_BYTES);
}

static void subject_shard(subject *s) {
    scratch_shard("shard.bin", 7, SHARD_TOKENS, 2);
    for (uint32_t i = 0; i < SHARD_TOKENS; i++) {
        s->tokens[i] = 7 + i;
    }
    CHECK_EQ(pybpe_shard_open(&s->shard, "shard.bin", NULL, NULL), PYBPE_OK);
}

/* ---------------------------------------------------------------------------------------------------
What each thread does
*/

/* Encodes and decodes, with the thread's cache cold and warm. Returns what went wrong. */
static unsigned long wrong_ids(worker *w) {
    const subject *s = w->s;
    size_t count = 0;
    size_t length = 0;
    if (pybpe_encode(s->e, w->c, pybpe_encoder_specials(s->e), s->text, TEXT_BYTES, w->ids, 4, TEXT_BYTES, &count,
                     NULL) != PYBPE_OK ||
        count != s->ids_count || memcmp(w->ids, s->ids, 4 * count) != 0) {
        return 1;
    }
    if (pybpe_tokenizer_encode(s->t, s->text, TEXT_BYTES, w->ids, TEXT_BYTES, &count, NULL) != PYBPE_OK ||
        count != s->ids_count || memcmp(w->ids, s->ids, 4 * count) != 0) {
        return 1;
    }
    return pybpe_decode(s->v, w->ids, 4, count, w->back, TEXT_BYTES, &length, NULL) != PYBPE_OK ||
           length != TEXT_BYTES || memcmp(w->back, s->text, length) != 0;
}

/* Counts two halves separately and adds the shared table of the whole: twice the counts of the whole. */
static unsigned long wrong_counts(const worker *w) {
    const subject *s = w->s;
    const pybpe_counter_stats whole = pybpe_counter_get_stats(s->counts);
    pybpe_counter *mine;
    if (pybpe_counter_new(&mine, pybpe_encoder_pretok(s->e), pybpe_encoder_specials(s->e), NULL, NULL) != PYBPE_OK) {
        return 1;
    }
    int failed = pybpe_counter_add(mine, s->text, s->cut, NULL) != PYBPE_OK ||
                 pybpe_counter_add(mine, s->text + s->cut, TEXT_BYTES - s->cut, NULL) != PYBPE_OK ||
                 pybpe_counter_merge(mine, s->counts, NULL) != PYBPE_OK;
    const pybpe_counter_stats stats = pybpe_counter_get_stats(mine);
    pybpe_counter_free(mine);
    return failed || stats.words != whole.words || stats.bytes != whole.bytes || stats.total != 2 * whole.total;
}

static unsigned long wrong_reads(worker *w) {
    const subject *s = w->s;
    return pybpe_shard_read(s->shard, 0, SHARD_TOKENS, w->ids, NULL) != PYBPE_OK ||
           memcmp(w->ids, s->tokens, 4 * SHARD_TOKENS) != 0 ||
           pybpe_vocab_find(s->v, (const uint8_t *)"hello", 5, 0) != 259 ||
           pybpe_text_cut(pybpe_encoder_pretok(s->e), pybpe_encoder_specials(s->e), s->text, TEXT_BYTES,
                          TEXT_BYTES / 2) != s->cut;
}

static void *work(void *context) {
    worker *w = context;
    pthread_mutex_lock(w->gate);
    pthread_mutex_unlock(w->gate);
    do {
        w->wrong += wrong_ids(w) + wrong_counts(w) + wrong_reads(w);
        w->rounds += 1;
    } while (w->rounds < ROUNDS || now() < w->until);
    return NULL;
}

static unsigned long run_threads(const subject *s, double seconds) {
    pthread_t threads[THREADS];
    static worker workers[THREADS];
    pthread_mutex_t gate;
    unsigned long rounds = 0;
    CHECK_EQ(pthread_mutex_init(&gate, NULL), 0);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.s = s, .gate = &gate, .until = now() + seconds};
        workers[i].ids = malloc(4 * TEXT_BYTES);
        workers[i].back = malloc(TEXT_BYTES);
        CHECK_EQ(pybpe_cache_new(&workers[i].c, s->e, NULL, NULL), PYBPE_OK);
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(workers[i].wrong, 0);
        rounds += workers[i].rounds;
        pybpe_cache_free(workers[i].c);
        free(workers[i].ids);
        free(workers[i].back);
    }
    pthread_mutex_destroy(&gate);
    return rounds;
}

int main(int argc, char **argv) {
    subject s = {.text = malloc(TEXT_BYTES), .ids = malloc(4 * TEXT_BYTES), .tokens = malloc(4 * SHARD_TOKENS)};
    scratch_enter();
    fill_text(s.text, TEXT_BYTES);
    subject_vocab(&s);
    subject_results(&s);
    subject_shard(&s);
    unsigned long rounds = run_threads(&s, argc > 1 ? atof(argv[1]) : 0);
    if (argc > 1) {
        printf("%d threads, %lu rounds\n", THREADS, rounds);
    }
    pybpe_shard_free(s.shard);
    pybpe_counter_free(s.counts);
    pybpe_tokenizer_free(s.t);
    pybpe_encoder_free(s.e);
    pybpe_vocab_free(s.v);
    free(s.text);
    free(s.ids);
    free(s.tokens);
    scratch_leave();
    return check_report("threads");
}
