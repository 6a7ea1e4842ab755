/*
A text to ids in one call, for programs that encode once and want no handles.
*/
#include "pybpe.h"

int pybpe_encode_once(const char *path, int specials, const uint8_t *text, size_t n, uint32_t *ids, size_t *count,
                      const pybpe_allocator *mem, pybpe_error *err) {
    pybpe_vocab *vocab = NULL;
    pybpe_encoder *encoder = NULL;
    pybpe_cache *cache = NULL;
    int code = pybpe_vocab_load(&vocab, path, mem, err);
    if (code == PYBPE_OK) {
        code = pybpe_encoder_new(&encoder, vocab, mem, err);
    }
    if (code == PYBPE_OK) {
        code = pybpe_cache_new(&cache, encoder, mem, err);
    }
    if (code == PYBPE_OK) {
        const pybpe_specials *found = specials ? pybpe_encoder_specials(encoder) : NULL;
        code = pybpe_encode(encoder, cache, found, text, n, ids, 4, n, count, err);
    }
    pybpe_cache_free(cache);
    pybpe_encoder_free(encoder);
    pybpe_vocab_free(vocab);
    return code;
}
