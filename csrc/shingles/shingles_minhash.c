/*
MinHash signatures (Broder, On the resemblance and containment of documents, 1997), and the shingles that they describe.

A shingle is SHINGLE_WORDS words in a row, hashed to x. Number i of a signature is the minimum of a[i] x + b[i] modulo
2^32 over all shingles. Two texts agree in it with a probability that is the Jaccard similarity of their sets of
shingles. a[i] is odd, so that these functions are permutations, and x is a hash, so that it does not matter
that the functions are linear. (tests/py/test_corpus_duplicates.py measures the error against theory.)

128 products per shingle are most of the work, so they are computed 8 at a time where the processor has AVX2.
*/
#include "shingles/shingles.h"

#if defined(PYBPE_AVX)
#include <immintrin.h>
#endif

enum {
    BLOCK_WORDS = 1 << 14,   /* words that are held in memory */
    BLOCK_SHINGLES = 1 << 10 /* shingles that are hashed before they are minimized */
};

/* The functions, and the minima so far. */
typedef struct minhash {
    uint32_t a[PYBPE_MINHASH_SIZE], b[PYBPE_MINHASH_SIZE];
    void (*minimize)(const struct minhash *m, const uint32_t *x, size_t n, uint32_t *row);
} minhash;

/* LCOV_EXCL_START: coverage is measured on a processor with AVX2. `make cross` tests this on others */
static void minimize_portable(const minhash *m, const uint32_t *x, size_t n, uint32_t *row) {
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < PYBPE_MINHASH_SIZE; i++) {
            uint32_t y = m->a[i] * x[k] + m->b[i];
            row[i] = y < row[i] ? y : row[i];
        }
    }
} /* LCOV_EXCL_STOP */

#if defined(PYBPE_AVX)

/* 32 numbers of the signature at a time, whose minima stay in registers. */
__attribute__((target("avx2"))) static void minimize_avx2(const minhash *m, const uint32_t *x, size_t n,
                                                          uint32_t *row) {
    enum { VECTORS = 4 };
    for (size_t i = 0; i < PYBPE_MINHASH_SIZE; i += VECTORS * 8) {
        __m256i a[VECTORS], b[VECTORS], least[VECTORS];
        for (size_t v = 0; v < VECTORS; v++) {
            a[v] = _mm256_loadu_si256((const __m256i *)(const void *)(m->a + i + 8 * v));
            b[v] = _mm256_loadu_si256((const __m256i *)(const void *)(m->b + i + 8 * v));
            least[v] = _mm256_loadu_si256((const __m256i *)(const void *)(row + i + 8 * v));
        }
        for (size_t k = 0; k < n; k++) {
            __m256i one = _mm256_set1_epi32((int)x[k]);
            for (size_t v = 0; v < VECTORS; v++) {
                __m256i y = _mm256_add_epi32(_mm256_mullo_epi32(a[v], one), b[v]);
                least[v] = _mm256_min_epu32(least[v], y);
            }
        }
        for (size_t v = 0; v < VECTORS; v++) {
            _mm256_storeu_si256((__m256i *)(void *)(row + i + 8 * v), least[v]);
        }
    }
}

#endif

/* The functions are the same everywhere and in every version: their numbers are scrambled integers. */
static minhash minhash_new(void) {
    minhash m = {.minimize = minimize_portable};
#if defined(PYBPE_AVX)
    const bool avx2 = __builtin_cpu_supports("avx2");
    m.minimize = avx2 ? minimize_avx2 : minimize_portable; /* LCOV_EXCL_BR_LINE: as for minimize_portable */
#endif
    for (uint32_t i = 0; i < PYBPE_MINHASH_SIZE; i++) {
        uint64_t x = shingle_scramble((i + 1) * SHINGLE_BASE);
        m.a[i] = (uint32_t)(x >> 32) | 1;
        m.b[i] = (uint32_t)x;
    }
    return m;
}

/* ---------------------------------------------------------------------------------------------------
Shingles
*/

/* Takes the hashes of some shingles. */
typedef struct shingle_sink {
    const minhash *m; /* for a signature */
    uint32_t *row;
    uint64_t *only;   /* where the hash of an only shingle goes instead, if not NULL */
    uint64_t *hashes; /* otherwise for a list. NULL only counts them */
    uint64_t count;
} shingle_sink;

static void sink_add(shingle_sink *sink, const uint64_t *hashes, size_t n) {
    if (sink->hashes != NULL) {
        memcpy(sink->hashes + sink->count, hashes, n * sizeof *hashes);
    }
    if (sink->m != NULL) {
        uint32_t x[BLOCK_SHINGLES];
        for (size_t i = 0; i < n; i++) {
            x[i] = (uint32_t)(hashes[i] >> 32);
        }
        sink->m->minimize(sink->m, x, n, sink->row);
    }
    sink->count += n;
}

/* All shingles of n words in w. */
static void shingles_add(shingle_sink *sink, const shingle_words *w, size_t n) {
    uint64_t hashes[BLOCK_SHINGLES];
    size_t held = 0;
    if (w->count < n) {
        return;
    }
    shingle_window v = shingle_window_new(w, n);
    for (size_t at = 0;; at++) {
        hashes[held++] = shingle_window_hash(&v);
        if (held == BLOCK_SHINGLES || at + n == w->count) {
            sink_add(sink, hashes, held);
            held = 0;
        }
        if (at + n == w->count) {
            return;
        }
        shingle_window_move(&v, at + 1);
    }
}

/* Reads all words. Returns how many make a shingle. Afterward w has the last words read: all, if they fit. */
static size_t shingle_size(shingle_reader *r, shingle_words *w) {
    do {
        w->count = 0;
        shingle_words_read(r, w);
    } while (r->at < r->n);
    return SHINGLE_WORDS * (size_t)shingle_units_per_word(r);
}

/* The only shingle of a text without as many words: its words, or its bytes if it has no words. */
static uint64_t short_hash(const shingle_words *w, const uint8_t *text, size_t n) {
    uint64_t h = w->count > 0;
    for (size_t i = 0; i < w->count; i++) {
        h = shingle_hash_step(h, w->hashes[i]);
    }
    for (size_t i = 0; w->count == 0 && i < n; i++) {
        h = shingle_hash_step(h, text[i] + 1U);
    }
    return shingle_scramble(h);
}

/* The shingles of a text, in blocks of words. A block begins with the last words of the block before it, since
   shingles begin there. A text of several blocks is read twice: its kind of words is known at its end. */
static void text_shingles(shingle_sink *sink, const uint8_t *text, size_t n, const pybpe_characters *tables,
                          shingle_words *w) {
    shingle_reader r = shingle_read(text, n, tables);
    size_t size = shingle_size(&r, w);
    if (r.words < size) {
        uint64_t hash = short_hash(w, text, n);
        if (sink->only != NULL) {
            *sink->only = hash != 0 ? hash : 1; /* 0 of a text without bytes */
        } else {
            sink_add(sink, &hash, 1);
        }
        return;
    }
    if (r.words <= w->count) {
        shingles_add(sink, w, size);
        return;
    }
    r = shingle_read(text, n, tables);
    w->count = 0;
    while (r.at < n) {
        shingle_words_read(&r, w);
        shingles_add(sink, w, size);
        const size_t kept = size - 1; /* the first block is full */
        memmove(w->hashes, w->hashes + (w->count - kept), kept * sizeof *w->hashes);
        w->count = kept;
    }
}

static int words_new(shingle_words *w, const pybpe_allocator *mem, pybpe_error *err) {
    *w = (shingle_words){.hashes = mem_alloc_array(mem, BLOCK_WORDS, sizeof *w->hashes), .room = BLOCK_WORDS};
    return memory_check(w->hashes, "words", BLOCK_WORDS * sizeof *w->hashes, err);
}

int pybpe_texts_minhash(uint32_t *out, uint64_t *only, const pybpe_strings *texts, const pybpe_characters *tables,
                        const pybpe_allocator *mem, pybpe_error *err) {
    const minhash m = minhash_new();
    shingle_words w = {0};
    int code = strings_check(texts, "texts", err);
    code = code == PYBPE_OK ? words_new(&w, mem, err) : code;
    for (size_t i = 0; code == PYBPE_OK && i < texts->count; i++) {
        uint64_t hash = 0;
        shingle_sink sink = {.m = &m, .row = out, .only = only != NULL ? &hash : NULL};
        memset(out, 0xFF, PYBPE_MINHASH_SIZE * sizeof *out);
        text_shingles(&sink, string_at(texts, i), string_length(texts, i), tables, &w);
        out += hash == 0 ? PYBPE_MINHASH_SIZE : 0;
        if (only != NULL) {
            only[i] = hash;
        }
    }
    mem_free(mem, w.hashes);
    return code;
}

int pybpe_signatures_cut(uint64_t *out, const uint32_t *signatures, size_t count, size_t bands, size_t width,
                         pybpe_error *err) {
    if (bands == 0 || width == 0 || bands > PYBPE_MINHASH_SIZE / width) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "%zu bands of %zu numbers; a signature has %d", bands, width,
                         PYBPE_MINHASH_SIZE);
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t *number = signatures + i * PYBPE_MINHASH_SIZE;
        for (size_t band = 0; band < bands; band++) {
            uint64_t h = 0;
            for (size_t k = 0; k < width; k++) {
                h = shingle_hash_step(h, *number++);
            }
            out[band * count + i] = shingle_scramble(h);
        }
    }
    return PYBPE_OK;
}

int pybpe_text_shingles(uint64_t *out, size_t *count, const uint8_t *text, size_t n, const pybpe_characters *tables,
                        const pybpe_allocator *mem, pybpe_error *err) {
    shingle_words w;
    int code = words_new(&w, mem, err);
    if (code == PYBPE_OK) {
        shingle_sink sink = {.hashes = out};
        text_shingles(&sink, text, n, tables, &w);
        *count = (size_t)sink.count;
        mem_free(mem, w.hashes);
    }
    return code;
}
