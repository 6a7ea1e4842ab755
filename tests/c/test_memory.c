/*
Every allocation of counting, training, encoding, vocabularies, documents, shards and DataLoaders fails in turn, over texts
that make all tables grow and words long enough for every algorithm: it and all later ones, or it alone, after which every
object is used on. A typed error or the right result, never a wrong one; no leaks; and the same result once memory is
available. The allocations are made by an allocator of the caller and, where the linker can replace them, by the system:
malloc, calloc, realloc and mmap.
*/
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "pybpe_corpus.h"
#include "random_state.h"
#include "scratch.h"
#include "small_vocab.h"

#include <stdbool.h>

enum { TEXT_BYTES = 60000, LONG_BYTES = 3000, WORDS = 3000, NEW_TOKENS = 50, LARGE = 4096, LONG_WORD = 1200000 };

static uint8_t text[TEXT_BYTES];
static uint64_t counts[WORDS];
static uint64_t offsets[WORDS + 1];
static uint32_t new_tokens = NEW_TOKENS;

/* ---------------------------------------------------------------------------------------------------
The system's memory
*/

#if defined(FAILING_SYSTEM) /* the linker calls __wrap_malloc for malloc, and malloc for __real_malloc */
#include <errno.h>
#include <sys/mman.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t n);
void *__real_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t n);
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t n);

static failing_memory *failing_system; /* NULL: nothing fails */

static bool system_refuses(size_t n) {
    failing_memory *m = failing_system;
    if (m == NULL || n < m->least) {
        return false;
    }
    const bool refuses = m->left == 0;
    m->refused = refuses ? n : m->refused;
    m->left -= !refuses || m->once;
    return refuses;
}

void *__wrap_malloc(size_t n) { return system_refuses(n) ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t count, size_t size) {
    return system_refuses(count * size) ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *ptr, size_t n) { return system_refuses(n) ? NULL : __real_realloc(ptr, n); }
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    if (system_refuses(n)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, n, protection, flags, fd, offset);
}
int __wrap_munmap(void *at, size_t n) {
    CHECK(at != NULL); /* where the program itself is at a low address, that would unmap it */
    return at != NULL ? __real_munmap(at, n) : -1;
}
#endif

/* ---------------------------------------------------------------------------------------------------
Failures
*/

/* An operation from nothing to a result, of which it returns a number; an error is returned in *code. */
typedef uint64_t operation(const pybpe_allocator *mem, int *code);

static bool goes_on; /* a step that lacked memory is done again */

/* A step of an operation, unless one before it has failed. */
#define STEP(call)                                                                                                     \
    do {                                                                                                               \
        if (*code == PYBPE_OK) {                                                                                       \
            *code = (call);                                                                                            \
            *code = *code == PYBPE_ERR_MEMORY && goes_on ? (call) : *code;                                             \
        }                                                                                                              \
    } while (0)

/* With n allocations of `least` bytes or more for n = 0, 1, 2, ... until they are enough. */
static void check_failing(const char *name, operation *run, failing_memory *memory, const pybpe_allocator *mem) {
    int code = PYBPE_OK;
    memory->left = -1;
    uint64_t expected = run(mem, &code);
    CHECK_EQ(code, PYBPE_OK);
    CHECK_EQ(memory->blocks, 0);
    goes_on = memory->once != 0;
    long n = 0;
    do {
        memory->left = n++;
        memory->refused = 0;
        code = PYBPE_OK;
        uint64_t result = run(mem, &code);
        CHECK(code == PYBPE_ERR_MEMORY || (code == PYBPE_OK && result == expected));
        CHECK_EQ(memory->blocks, 0);
    } while (memory->refused > 0);
    CHECK(n > 2);
    CHECK_EQ(code, PYBPE_OK);
    if (code != PYBPE_OK || check_failures > 0) {
        printf("%s, with %ld allocations\n", name, n);
    }
    goes_on = false;
}

/* All allocations from one on fail, of an allocator of the caller; then only one fails, of the system's if possible. */
static void check_failures_of(const char *name, operation *run, size_t least) {
    failing_memory memory = {.least = least};
    const pybpe_allocator mem = {failing_resize, &memory};
    check_failing(name, run, &memory, &mem);
    memory = (failing_memory){.least = least, .once = 1};
#if defined(FAILING_SYSTEM)
    failing_system = &memory;
    check_failing(name, run, &memory, NULL);
    failing_system = NULL;
#else
    check_failing(name, run, &memory, &mem);
#endif
}

/* Random words of letters, the first ones long. */
static void fill(void) {
    size_t at = 0;
    for (size_t i = 0; i < WORDS; i++) {
        size_t n = i < 5 ? LONG_BYTES : 2 + random_below(24);
        for (size_t k = 0; k < n && at < TEXT_BYTES; k++) {
            text[at++] = k == 0 ? ' ' : (uint8_t)('a' + random_below(26));
        }
        offsets[i + 1] = at;
        counts[i] = 1 + random_below(9);
    }
}

static uint64_t count_words(const pybpe_allocator *mem, int *code) {
    pybpe_pretok *p = NULL;
    pybpe_counter *c = NULL;
    pybpe_counter *sum = NULL;
    uint64_t words = 0;
    STEP(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, mem, NULL));
    STEP(pybpe_counter_new(&c, p, NULL, mem, NULL));
    STEP(pybpe_counter_add(c, text, TEXT_BYTES, NULL));
    STEP(pybpe_counter_new(&sum, p, NULL, mem, NULL));
    STEP(pybpe_counter_merge(sum, c, NULL));
    if (*code == PYBPE_OK) {
        const pybpe_strings list = {text, offsets, WORDS};
        STEP(pybpe_counter_add_words(sum, &list, counts, NULL));
        STEP(pybpe_counter_absorb(sum, c, NULL));
        words = pybpe_counter_get_stats(sum).words * 1000 + pybpe_counter_get_stats(c).words;
    }
    pybpe_counter_free(sum);
    pybpe_counter_free(c);
    pybpe_pretok_free(p);
    return words;
}

/* With merges to begin with, so that long words are merged at once. */
static pybpe_train_config train_config(void) {
    static const uint32_t base[] = {'a', 'b', 'c', 'd', 256, 257, ' ', 'e'};
    return (pybpe_train_config){
        .vocab_size = 260 + new_tokens, .max_token_length = 16, .base_merges = base, .base_merges_count = 4};
}

/* Trains to the end and frees the trainer. Returns a sum of its merges. */
static uint64_t train_on(pybpe_trainer *t, int *code) {
    static const pybpe_vocab_layout layout = {.eot = PYBPE_NO_ID, .pattern = PYBPE_PATTERN_GPT2};
    uint64_t sum = 0;
    int done = 0;
    while (*code == PYBPE_OK && !done) {
        STEP(pybpe_trainer_step(t, 1 << 20, &done, NULL));
    }
    if (t != NULL) {
        const uint32_t *merges;
        size_t n = pybpe_trainer_merges(t, &merges);
        for (size_t i = 0; i < 3 * n; i++) {
            sum = sum * 31 + merges[i];
        }
        CHECK_EQ(pybpe_trainer_tokens(t), n > 0 ? merges[3 * n - 1] + 1 : 256); /* after an error, too */
        pybpe_vocab *vocab = NULL;
        if (*code != PYBPE_OK) {
            CHECK_EQ(pybpe_trainer_vocab(&vocab, t, &layout, NULL, NULL), *code);
        }
    }
    pybpe_trainer_free(t);
    return sum;
}

static uint64_t train(const pybpe_allocator *mem, int *code) {
    const pybpe_strings words = {text, offsets, WORDS};
    const pybpe_train_config config = train_config();
    pybpe_trainer *t = NULL;
    STEP(pybpe_trainer_new(&t, &words, counts, &config, mem, NULL));
    return train_on(t, code);
}

/* One language has all words, and half of them as its development text; another one the opposite. */
static uint64_t train_parity(const pybpe_allocator *mem, int *code) {
    const pybpe_strings all = {text, offsets, WORDS}, half = {text, offsets, WORDS / 2};
    const pybpe_language languages[2] = {{all, counts, half, counts, 1}, {half, counts, all, counts, 2}};
    const pybpe_train_config config = train_config();
    pybpe_trainer *t = NULL;
    STEP(pybpe_trainer_new_parity(&t, languages, 2, &config, mem, NULL));
    return train_on(t, code);
}

/* Two languages of one word each. */
static uint64_t train_small_parity(const pybpe_allocator *mem, int *code) {
    static const uint64_t ends[] = {0, 4};
    const pybpe_strings ab = {(const uint8_t *)"abab", ends, 1}, cd = {(const uint8_t *)"cdcd", ends, 1};
    const pybpe_language languages[2] = {{ab, counts, ab, counts, 1}, {cd, counts, cd, counts, 1}};
    const pybpe_train_config config = {.vocab_size = 259, .max_token_length = 16};
    pybpe_trainer *t = NULL;
    STEP(pybpe_trainer_new_parity(&t, languages, 2, &config, mem, NULL));
    return train_on(t, code);
}

/* A long word and a short one, which start as the tokens of base merges. */
static uint64_t train_long_base(const pybpe_allocator *mem, int *code) {
    static const uint32_t base[] = {'a', 'b', 'a', 256, 257, 257};
    static const uint64_t word_counts[] = {9, 7};
    static uint8_t bytes[LONG_BYTES + 3];
    const uint64_t ends[] = {0, LONG_BYTES, LONG_BYTES + 3};
    const pybpe_strings words = {bytes, ends, 2};
    const pybpe_train_config config = {
        .vocab_size = 262, .max_token_length = 100, .base_merges = base, .base_merges_count = 3};
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)"aab"[i % 3];
    }
    pybpe_trainer *t = NULL;
    STEP(pybpe_trainer_new(&t, &words, word_counts, &config, mem, NULL));
    return train_on(t, code);
}

static pybpe_vocab_spec vocab_spec(small_vocab *v) {
    small_start(v);
    uint32_t previous = small_add_merge(v, 'a', 'a');
    for (int i = 0; i < 7; i++) { /* the longest token is 256 bytes, which is more than a short word */
        previous = small_add_merge(v, previous, previous);
    }
    small_add_merge(v, 'a', 'b');
    small_add_special(v, "<|endoftext|>");
    return small_spec(v);
}

static uint64_t encode(const pybpe_allocator *mem, int *code) {
    static small_vocab v;
    static uint32_t ids[TEXT_BYTES];
    pybpe_vocab_spec spec = vocab_spec(&v);
    pybpe_vocab *vocab = NULL;
    pybpe_encoder *e = NULL;
    pybpe_cache *c = NULL;
    size_t count = 0;
    STEP(pybpe_vocab_new(&vocab, &spec, mem, NULL));
    STEP(pybpe_encoder_new(&e, vocab, NULL, 0, mem, NULL));
    STEP(pybpe_cache_new(&c, e, mem, NULL));
    STEP(pybpe_encode(e, c, pybpe_encoder_specials(e), text, TEXT_BYTES, ids, 4, TEXT_BYTES, &count, NULL));
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return count;
}

/* A tokenizer.bin, and one without pybpe's trailer, whose merges are recovered. */
static uint64_t files(const pybpe_allocator *mem, int *code) {
    static small_vocab v;
    pybpe_vocab_spec spec = vocab_spec(&v);
    pybpe_vocab *loaded = NULL;
    pybpe_vocab *bare = NULL;
    uint32_t merges[2 * SMALL_TOKENS];
    size_t recovered = 0;
    uint8_t data[SCRATCH_TOKENIZER_BYTES];
    size_t n = put_tokenizer(data);
    spec.tokens.count -= 1; /* tokens longer than 255 bytes are for the recovery only */
    spec.specials_count = 0;
    spec.eot_id = PYBPE_NO_ID;
    STEP(pybpe_vocab_recover_merges(&spec, merges, &recovered, mem, NULL));
    STEP(pybpe_vocab_load_mem(&bare, data, n, mem, NULL));
    STEP(pybpe_vocab_save(bare, "tokenizer.bin", 2, NULL));
    STEP(pybpe_vocab_load(&loaded, "tokenizer.bin", mem, NULL));
    uint32_t ids[2];
    size_t count = 0;
    pybpe_tokenizer *t = NULL;
    STEP(pybpe_tokenizer_load(&t, "tokenizer.bin", mem, NULL));
    STEP(pybpe_tokenizer_encode(t, "<|endoftext|>", 13, ids, 2, &count, NULL)); /* by way of other memory */
    pybpe_tokenizer_free(t);
    uint64_t result =
        *code == PYBPE_OK ? recovered + 1000 * (pybpe_vocab_get_spec(loaded).merges_count + 1000 * count) : 0;
    pybpe_vocab_free(loaded);
    pybpe_vocab_free(bare);
    return result;
}

/* A vocabulary that is loaded from memory, with a normalizer and a prefix space: the encoder changes the text, and the
   caller encodes on after an error. */
static uint64_t prepare(const pybpe_allocator *mem, int *code) {
    static small_vocab v;
    static const uint8_t changes[] = "aae\xCC\x81 aa b <|endoftext|>e\xCC\x81";
    uint32_t ids[12 * sizeof changes], again[12 * sizeof changes];
    pybpe_vocab_spec spec = vocab_spec(&v);
    spec.normalizer = PYBPE_NORMALIZER_NFC;
    spec.prefix_space = 1;
    spec.whole_words = 1;
    spec.special_flags = (const uint8_t[]){PYBPE_SPECIAL_LSTRIP | PYBPE_SPECIAL_RSTRIP};
    pybpe_vocab *vocab = NULL;
    pybpe_encoder *e = NULL;
    pybpe_cache *c = NULL;
    size_t count = 0, more = 0;
    STEP(pybpe_vocab_new(&vocab, &spec, mem, NULL));
    STEP(pybpe_encoder_new(&e, vocab, NULL, 0, mem, NULL));
    STEP(pybpe_cache_new(&c, e, mem, NULL));
    const size_t n = sizeof changes - 1, room = sizeof ids / sizeof *ids;
    STEP(pybpe_encode(e, c, pybpe_encoder_specials(e), changes, n, ids, 4, room, &count, NULL));
    STEP(pybpe_encode(e, c, pybpe_encoder_specials(e), changes, n, again, 4, room, &more, NULL));
    CHECK(*code != PYBPE_OK || (count == more && memcmp(ids, again, count * sizeof *ids) == 0));
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return count;
}

/* Two splitters in sequence, one of them a regular expression that the library knows, and special tokens. */
static uint64_t split(const pybpe_allocator *mem, int *code) {
    static const uint8_t strings[] = "<|a|><|b|>";
    static const uint64_t ends[] = {0, 5, 10};
    static const uint32_t ids[] = {1, 2};
    const pybpe_strings list = {strings, ends, 2};
    pybpe_pretok *steps[2] = {NULL, NULL}, *p = NULL;
    pybpe_specials *s = NULL;
    pybpe_counter *c = NULL;
    STEP(pybpe_pretok_new_regex(&steps[0], pybpe_pattern_regex(PYBPE_PATTERN_GPT2), mem, NULL));
    STEP(pybpe_pretok_new(&steps[1], PYBPE_PATTERN_O200K, mem, NULL));
    STEP(pybpe_pretok_new_sequence(&p, (const pybpe_pretok *const *)steps, 2, mem, NULL));
    STEP(pybpe_specials_new(&s, &list, ids, NULL, mem, NULL));
    STEP(pybpe_counter_new(&c, p, s, mem, NULL));
    STEP(pybpe_counter_add(c, text, TEXT_BYTES, NULL));
    uint64_t words = *code == PYBPE_OK ? pybpe_counter_get_stats(c).words : 0;
    pybpe_counter_free(c);
    pybpe_specials_free(s);
    pybpe_pretok_free(p);
    pybpe_pretok_free(steps[0]);
    pybpe_pretok_free(steps[1]);
    return words;
}

/* Documents of two splits, which become rows, and their measures and signatures. */
static uint64_t documents(const pybpe_allocator *mem, int *code) {
    static const char lines[] = "{\"text\": \"one two \\n three\"}\n{\"text\": \"a b c d e f g\"}\n";
    static const uint64_t last[] = {UINT64_MAX / 2, UINT64_MAX}, lengths[] = {5, 7, 3, 9, 2};
    static const uint16_t ids[5 * 9] = {1};
    static const uint64_t starts[] = {0, 9, 18, 27, 36};
    uint64_t placed[5], sum = 0;
    uint16_t rows[64];
    uint32_t signatures[2 * PYBPE_MINHASH_SIZE];
    const pybpe_division how = {.key = (const uint8_t *)"text",
                                .key_n = 4,
                                .separator = (const uint8_t *)"\n",
                                .separator_n = 1,
                                .last = last,
                                .splits = 2,
                                .has_origins = 1,
                                .id = (const uint8_t *)"text",
                                .id_n = 4};
    const pybpe_marked marked = {ids, 2, starts, lengths, 5};
    pybpe_divider *d = NULL;
    size_t row_count = 0;
    STEP(pybpe_divider_new(&d, &how, mem, NULL));
    const int before = *code;
    STEP(pybpe_divider_divide(d, PYBPE_DOCUMENTS_RECORD, (const uint8_t *)lines, sizeof lines - 1, NULL));
    if (before == PYBPE_OK && *code != PYBPE_OK) {
        CHECK(pybpe_divider_documents(d, 0).count == 0 && pybpe_divider_documents(d, 1).count == 0);
    }
    for (size_t i = 0; i < 2 && *code == PYBPE_OK; i++) {
        const pybpe_strings found = pybpe_divider_documents(d, i);
        sum = sum * 31 + found.count;
        sum = sum * 31 + (found.count > 0 ? found.offsets[found.count] : 0);
    }
    STEP(pybpe_rows_fill(&marked, 8, rows, &row_count, mem, NULL));
    STEP(pybpe_rows_fit(lengths, 5, 9, placed, mem, NULL));
    static uint8_t classes[0x110000];
    static uint32_t lower[1];
    memset(classes, PYBPE_CHARACTER_LETTER, sizeof classes);
    classes[' '] = classes['\n'] = PYBPE_CHARACTER_SPACE;
    const pybpe_characters tables = {classes, lower, 0};
    const pybpe_strings texts = {text, offsets, 2};
    static const uint32_t ngrams[] = {2, 3};
    const pybpe_measuring what = {ngrams, 2, 1, 1, 0};
    uint64_t measures[2 * (PYBPE_MEASURES + 4)] = {0};
    STEP(pybpe_texts_measure(measures, &texts, &tables, &what, mem, NULL));
    STEP(pybpe_texts_minhash(signatures, NULL, &texts, &tables, mem, NULL));
    for (size_t i = 0; i < sizeof measures / sizeof *measures && *code == PYBPE_OK; i++) {
        sum = sum * 31 + measures[i] + signatures[i];
    }
    pybpe_divider_free(d);
    return sum + row_count + placed[4] * (*code == PYBPE_OK);
}

/* Two shards, and a DataLoader over them. */
static uint64_t load(const pybpe_allocator *mem, int *code) {
    enum { TOKENS = 100, B = 2, T = 5 };
    uint16_t ids[TOKENS];
    int32_t inputs[B * T], targets[B * T];
    uint64_t sum = 0;
    pybpe_loader *l = NULL;
    for (int shard = 0; shard < 2; shard++) {
        pybpe_shard_writer *w = NULL;
        for (size_t i = 0; i < TOKENS; i++) {
            ids[i] = (uint16_t)(1000 * shard + (int)i);
        }
        STEP(pybpe_shard_writer_new(&w, shard == 0 ? "a.bin" : "b.bin", PYBPE_SHARD_UINT16, mem, NULL));
        STEP(pybpe_shard_writer_write(w, ids, 2, TOKENS, NULL));
        *code = w != NULL ? pybpe_shard_writer_finish(w, NULL) : *code;
    }
    STEP(pybpe_loader_new(&l, "[ab].bin", B, T, 0, 1, 1, mem, NULL));
    for (int i = 0; i < 25 && *code == PYBPE_OK; i++) {
        STEP(pybpe_loader_next(l, inputs, targets, NULL));
        sum = sum * 31 + (uint64_t)inputs[0] + (uint64_t)targets[B * T - 1];
    }
    pybpe_loader_free(l);
    (void)remove("a.bin");
    (void)remove("b.bin");
    return sum;
}

/* ---------------------------------------------------------------------------------------------------
Tables that grow far beyond their first size: only what is large fails, since there are thousands of small allocations
*/

/* More words than the first table of a counter holds. */
static uint64_t count_many(const pybpe_allocator *mem, int *code) {
    static uint8_t many[4 * 26 * 26 * 26];
    pybpe_counter *c = NULL;
    pybpe_pretok *p = NULL;
    for (size_t i = 0; i < sizeof many; i += 4) {
        size_t number = i / 4;
        many[i] = ' ';
        for (size_t k = 1; k < 4; k++, number /= 26) {
            many[i + k] = (uint8_t)('a' + number % 26);
        }
    }
    STEP(pybpe_pretok_new(&p, PYBPE_PATTERN_GPT2, mem, NULL));
    STEP(pybpe_counter_new(&c, p, NULL, mem, NULL));
    STEP(pybpe_counter_add(c, many, sizeof many, NULL));
    uint64_t words = *code == PYBPE_OK ? pybpe_counter_get_stats(c).words : 0;
    pybpe_counter_free(c);
    pybpe_pretok_free(p);
    return words;
}

/* More tokens, merges and pairs than the first tables of a trainer hold. */
static uint64_t train_many(const pybpe_allocator *mem, int *code) {
    new_tokens = 1100;
    uint64_t result = train(mem, code);
    new_tokens = NEW_TOKENS;
    return result;
}

static uint64_t encode_word(const pybpe_vocab_spec *spec, const uint8_t *word, size_t n, const pybpe_allocator *mem,
                            int *code) {
    static uint32_t ids[LONG_WORD];
    pybpe_vocab *vocab = NULL;
    pybpe_encoder *e = NULL;
    pybpe_cache *c = NULL;
    size_t count = 0;
    STEP(pybpe_vocab_new(&vocab, spec, mem, NULL));
    STEP(pybpe_encoder_new(&e, vocab, NULL, 0, mem, NULL));
    STEP(pybpe_cache_new(&c, e, mem, NULL));
    STEP(pybpe_encode(e, c, NULL, word, n, ids, 4, n, &count, NULL));
    uint64_t sum = count;
    for (size_t i = 0; i < count && *code == PYBPE_OK; i++) {
        sum = sum * 31 + ids[i];
    }
    pybpe_cache_free(c);
    pybpe_encoder_free(e);
    pybpe_vocab_free(vocab);
    return *code == PYBPE_OK ? sum : 0;
}

/* A word long enough to be merged from left to right, with more tokens than the first table of them holds. Tokens have
   only three different letters, so that merges cross every place. */
static uint64_t encode_from_left(const pybpe_allocator *mem, int *code) {
    static small_vocab v;
    static uint8_t word[LONG_WORD];
    random_state = 1;
    small_start(&v);
    while (v.count < SMALL_TOKENS - 1) {
        uint32_t pair[2];
        for (int side = 0; side < 2; side++) {
            uint32_t x = random_below(3 + (uint32_t)v.count - 256);
            pair[side] = x < 3 ? 'a' + x : 256 + x - 3;
        }
        size_t before = v.count;
        if (small_length(&v, pair[0]) + small_length(&v, pair[1]) <= 12) {
            small_add_merge(&v, pair[0], pair[1]);
            v.merges_count -= v.count == before; /* no merge makes an existing token */
        }
    }
    for (size_t i = 0; i < LONG_WORD; i++) {
        word[i] = (uint8_t)('a' + random_below(3));
    }
    pybpe_vocab_spec spec = small_spec(&v);
    return encode_word(&spec, word, LONG_WORD, mem, code);
}

/* abX cdX for 48 letters X, where at first only ab and cd merge, then 96 different pairs at once: the queue of merges
   grows while they are made. */
static uint64_t encode_many_ranks(const pybpe_allocator *mem, int *code) {
    static small_vocab v;
    uint8_t word[6 * 48];
    small_start(&v);
    uint32_t ab = small_add_merge(&v, 'a', 'b'), cd = small_add_merge(&v, 'c', 'd'), abx[48], cdx[48];
    for (uint32_t i = 0; i < 48; i++) {
        uint8_t x = (uint8_t)(i < 26 ? 'A' + i : 'e' + i - 26);
        abx[i] = small_add_merge(&v, ab, x);
        cdx[i] = small_add_merge(&v, cd, x);
        memcpy(word + 6 * i, (uint8_t[]){'a', 'b', x, 'c', 'd', x}, 6);
    }
    for (uint32_t i = 0; i < 48; i++) { /* so that the word is not cut */
        small_add_merge(&v, abx[i], cd);
        small_add_merge(&v, cdx[i], ab);
    }
    pybpe_vocab_spec spec = small_spec(&v);
    return encode_word(&spec, word, sizeof word, mem, code);
}

/* abX cdX for 48 letters X: each token abX or cdX that is made joins the one before it, of which there are 95 kinds. */
static uint64_t encode_many_ranks_before(const pybpe_allocator *mem, int *code) {
    static small_vocab v;
    uint8_t word[6 * 48];
    uint32_t tokens[96];
    small_start(&v);
    const uint32_t starts[] = {small_add_merge(&v, 'a', 'b'), small_add_merge(&v, 'c', 'd')};
    for (uint32_t i = 0; i < 96; i++) {
        const uint8_t x = (uint8_t)(i / 2 < 26 ? 'A' + i / 2 : 'e' + i / 2 - 26);
        tokens[i] = small_add_merge(&v, starts[i % 2], x);
        memcpy(word + 3 * i, (const uint8_t[]){(uint8_t)"ac"[i % 2], (uint8_t)"bd"[i % 2], x}, 3);
    }
    for (uint32_t i = 1; i < 96; i++) {
        small_add_merge(&v, tokens[i - 1], tokens[i]);
    }
    pybpe_vocab_spec spec = small_spec(&v);
    return encode_word(&spec, word, sizeof word, mem, code);
}

/* A word whose scratch space is so large that the cache does not keep it. Its merges are out of order, so that it is not
   merged from left to right: aab is joined to aab by a merge before those that make it. */
static uint64_t encode_huge(const pybpe_allocator *mem, int *code) {
    static small_vocab v;
    static uint8_t word[LONG_WORD];
    small_start(&v);
    uint32_t aab = small_add_token(&v, "aab", 3);
    small_add_merge(&v, aab, aab);
    small_add_merge(&v, 'a', small_add_merge(&v, 'a', 'b'));
    for (size_t i = 0; i < LONG_WORD; i++) {
        word[i] = (uint8_t)"aab"[i % 3];
    }
    pybpe_vocab_spec spec = small_spec(&v);
    return encode_word(&spec, word, LONG_WORD, mem, code);
}

int main(void) {
    scratch_enter();
    fill();
    check_failures_of("counting", count_words, 0);
    check_failures_of("training", train, 0);
    check_failures_of("small parity-aware training", train_small_parity, 0);
    check_failures_of("training that continues", train_long_base, 0);
    memset(text + TEXT_BYTES / 2, 'a', TEXT_BYTES / 2); /* a word that is one chain of tokens */
    check_failures_of("encoding", encode, 0);
    check_failures_of("files", files, 0);
    check_failures_of("texts that an encoder changes", prepare, 0);
    check_failures_of("splitters", split, 0);
    check_failures_of("documents", documents, 0);
    check_failures_of("shards", load, 0);
    check_failures_of("counting many words", count_many, LARGE);
    check_failures_of("training with many pairs", train_many, LARGE);
    check_failures_of("parity-aware training", train_parity, LARGE / 4);
    check_failures_of("a word merged from left to right", encode_from_left, 512);
    check_failures_of("a word with many merges at once", encode_many_ranks, 512);
    check_failures_of("a word whose tokens join those before them", encode_many_ranks_before, 512);
    check_failures_of("a huge word", encode_huge, 1 << 20);
    CHECK_EQ(scratch_clear(), 1);
    scratch_leave();
    return check_report("memory");
}
