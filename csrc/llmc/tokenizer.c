/*
A tokenizer in one object that threads share: a vocabulary, its encoder, and a cache per running call.

A call takes an idle cache, or makes one, and puts it back. The idle ones are in a few places that are changed atomically,
so that no call waits for another. If no place is free, the cache is freed.
*/
#include "encode/encode.h"

#include <stdatomic.h>

enum { IDLE_CACHES = 16 };

struct pybpe_tokenizer {
    pybpe_allocator mem;
    pybpe_vocab *vocab;
    pybpe_encoder *encoder;
    _Atomic(pybpe_cache *) idle[IDLE_CACHES]; /* NULL: a free place */
};

/* Makes a tokenizer of a vocabulary, which it owns. Frees the vocabulary on an error. */
static int tokenizer_of(pybpe_tokenizer **out, pybpe_vocab *vocab, const pybpe_allocator *mem, pybpe_error *err) {
    pybpe_encoder *encoder = NULL;
    int code = pybpe_encoder_new(&encoder, vocab, NULL, 0, mem, err);
    pybpe_tokenizer *t = code == PYBPE_OK ? mem_alloc_zeroed(mem, 1, sizeof *t) : NULL;
    if (t == NULL) {
        pybpe_encoder_free(encoder);
        pybpe_vocab_free(vocab);
        return code != PYBPE_OK ? code : error_set_memory(err, "a tokenizer", sizeof *t);
    }
    t->mem = mem_of(mem);
    t->vocab = vocab;
    t->encoder = encoder;
    for (size_t i = 0; i < IDLE_CACHES; i++) {
        atomic_init(&t->idle[i], NULL);
    }
    *out = t;
    return PYBPE_OK;
}

int pybpe_tokenizer_load(pybpe_tokenizer **out, const char *path, const pybpe_allocator *mem, pybpe_error *err) {
    pybpe_vocab *vocab;
    *out = NULL;
    PYBPE_TRY(pybpe_vocab_load(&vocab, path, mem, err));
    return tokenizer_of(out, vocab, mem, err);
}

int pybpe_tokenizer_load_mem(pybpe_tokenizer **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                             pybpe_error *err) {
    pybpe_vocab *vocab;
    *out = NULL;
    PYBPE_TRY(pybpe_vocab_load_mem(&vocab, data, n, mem, err));
    return tokenizer_of(out, vocab, mem, err);
}

void pybpe_tokenizer_free(pybpe_tokenizer *t) {
    if (t == NULL) {
        return;
    }
    const pybpe_allocator mem = t->mem;
    for (size_t i = 0; i < IDLE_CACHES; i++) {
        pybpe_cache_free(atomic_load_explicit(&t->idle[i], memory_order_relaxed));
    }
    pybpe_encoder_free(t->encoder);
    pybpe_vocab_free(t->vocab);
    mem_free(&mem, t);
}

const pybpe_vocab *pybpe_tokenizer_vocab(const pybpe_tokenizer *t) { return t->vocab; }

static int cache_take(pybpe_tokenizer *t, pybpe_cache **c, pybpe_error *err) {
    for (size_t i = 0; i < IDLE_CACHES; i++) {
        *c = atomic_exchange_explicit(&t->idle[i], NULL, memory_order_acquire);
        if (*c != NULL) {
            return PYBPE_OK;
        }
    }
    return pybpe_cache_new(c, t->encoder, &t->mem, err);
}

static void cache_return(pybpe_tokenizer *t, pybpe_cache *c) {
    for (size_t i = 0; i < IDLE_CACHES; i++) {
        pybpe_cache *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&t->idle[i], &none, c, memory_order_release,
                                                    memory_order_relaxed)) {
            return;
        }
    }
    pybpe_cache_free(c);
}

/* A call of pybpe_tokenizer_encode. */
typedef struct tokenizer_call {
    const pybpe_specials *specials;
    const uint8_t *text;
    size_t n;
    uint32_t *ids;
    size_t cap;
} tokenizer_call;

/* Encodes to memory of its own, since the text may have more than `cap` ids, and copies these if they fit. */
static int encode_aside(const pybpe_tokenizer *t, pybpe_cache *c, const tokenizer_call *call, size_t room,
                        size_t *count, pybpe_error *err) {
    uint32_t *ids = mem_alloc_array(&t->mem, room, sizeof *ids);
    PYBPE_TRY(memory_check(ids, "the ids of a text", room, err));
    int code = pybpe_encode(t->encoder, c, call->specials, call->text, call->n, ids, 4, room, count, err);
    if (code == PYBPE_OK && *count > call->cap) {
        code = error_set(err, PYBPE_ERR_LIMIT, 0, "the text has %zu ids, but there is room for only %zu", *count,
                         call->cap);
    } else if (code == PYBPE_OK && *count > 0) {
        memcpy(call->ids, ids, *count * sizeof *ids);
    }
    mem_free(&t->mem, ids);
    return code;
}

static int tokenizer_encode(const pybpe_tokenizer *t, tokenizer_call call, size_t *count, pybpe_error *err) {
    const size_t most = t->encoder->prepares ? PYBPE_IDS_ROOM((size_t)1) : 1; /* ids of a byte */
    pybpe_tokenizer *shared = (pybpe_tokenizer *)(uintptr_t)t; /* only its caches change, which no result shows */
    pybpe_cache *c;
    size_t room;
    if (!size_mul(call.n, most, &room)) {
        return error_set_memory(err, "the ids of a text", SIZE_MAX);
    }
    PYBPE_TRY(cache_take(shared, &c, err));
    int code = call.ids == NULL || call.cap >= room
                   ? pybpe_encode(t->encoder, c, call.specials, call.text, call.n, call.ids, 4, call.cap, count, err)
                   : encode_aside(t, c, &call, room, count, err);
    cache_return(shared, c);
    return code;
}

int pybpe_tokenizer_encode(const pybpe_tokenizer *t, const void *text, size_t n, uint32_t *ids, size_t cap,
                           size_t *count, pybpe_error *err) {
    const tokenizer_call call = {pybpe_encoder_specials(t->encoder), text, n, ids, cap};
    return tokenizer_encode(t, call, count, err);
}

int pybpe_tokenizer_encode_ordinary(const pybpe_tokenizer *t, const void *text, size_t n, uint32_t *ids, size_t cap,
                                    size_t *count, pybpe_error *err) {
    const tokenizer_call call = {NULL, text, n, ids, cap};
    return tokenizer_encode(t, call, count, err);
}

int pybpe_tokenizer_decode(const pybpe_tokenizer *t, const uint32_t *ids, size_t n, void *out, size_t cap,
                           size_t *length, pybpe_error *err) {
    return pybpe_decode(t->vocab, ids, 4, n, out, cap, length, err);
}
