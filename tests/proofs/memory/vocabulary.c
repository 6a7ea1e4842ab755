/*
csrc/llmc/tokenizer_bin_read.c and csrc/vocab/: whole files tokenizer.bin, with a few tokens, that may be damaged.
*/
#include "any_entropy.h"

#include <base/base.c>
#include <llmc/tokenizer_bin_read.c>
#include <pretok/pattern.c>
#include <vocab/vocab.c>
#include <vocab/vocab_index.c>
#include <vocab/vocab_merges.c>

enum { TOKENS = 8, LONGEST = 3, MERGES = 4, SPECIALS = 2, CUSTOM = 2 };
enum { MOST_TRAILER = TRAILER_FIXED + 8 * MERGES + 4 * SPECIALS + CUSTOM + TRAILER_CHECKSUM };

/* This is in another file, and needs much of the encoder. Room for v->count merges is enough for it. */
int vocab_recover(const pybpe_vocab *v, uint32_t *merges, size_t *count, pybpe_error *err) {
    *count = (size_t)any_between(0, v->count);
    for (size_t i = 0; i < 2 * *count; i++) {
        merges[i] = (uint32_t)any_between(0, v->count);
    }
    return any_between(0, 15) == 0 ? error_set(err, PYBPE_ERR_MEMORY, 0, "no memory") : PYBPE_OK;
}

/* This reads another kind of file: see tokenizer_json.c. */
int tokenizer_json_read(pybpe_vocab **out, const uint8_t *text, size_t n, const pybpe_allocator *mem,
                        pybpe_error *err) {
    (void)mem;
    check_readable(text, n);
    *out = NULL;
    return error_set(err, PYBPE_ERR_FORMAT, 0, "a tokenizer.json");
}

static uint8_t *put_u32(uint8_t *to, uint64_t x) {
    store_u32(to, (uint32_t)x);
    return to + 4;
}

/* Tokens of few letters, so that merges fit, and some are repeated. Returns the place after them. */
static uint8_t *put_tokens(uint8_t *to, size_t count) {
    for (size_t id = 0; id < count; id++) {
        size_t length = (size_t)any_between(1, LONGEST);
        *to++ = (uint8_t)length;
        for (size_t i = 0; i < length; i++) {
            *to++ = (uint8_t)any_between('a', 'c');
        }
    }
    return to;
}

static uint8_t *put_trailer(uint8_t *to, size_t tokens) {
    size_t merges = (size_t)any_between(0, MERGES), specials = (size_t)any_between(0, SPECIALS);
    size_t custom = (size_t)any_between(0, CUSTOM);
    uint64_t pattern = custom > 0 ? (uint64_t)(uint32_t)PYBPE_PATTERN_CUSTOM : any_between(0, 5);
    memcpy(to, TRAILER_MAGIC, sizeof TRAILER_MAGIC);
    to = put_u32(to + sizeof TRAILER_MAGIC, TRAILER_LAYOUT);
    to = put_u32(put_u32(to, pattern), any_between(0, 2));
    to = put_u32(to, any_bool() ? PYBPE_NO_ID : any_between(0, tokens));
    to = put_u32(put_u32(put_u32(to, merges), specials), custom);
    to = put_u32(to, any_between(0, 1));
    for (size_t i = 0; i < 2 * merges + specials; i++) {
        to = put_u32(to, any_between(0, tokens));
    }
    for (size_t i = 0; i < custom; i++) {
        *to++ = (uint8_t)any_between(any_between(0, 15) > 0, 'z');
    }
    return to;
}

static void put_checksum(uint8_t *file, size_t n) {
    uint64_t sum = tokenizer_bin_checksum(file, n);
    put_u32(put_u32(file + n, sum & UINT32_MAX), sum >> 32);
}

/* A file of n tokens. Returns its length. */
static size_t put_file(uint8_t *file, size_t n) {
    uint8_t *end = put_tokens(file + FILE_HEADER, n);
    memset(file, 0, FILE_HEADER);
    put_u32(put_u32(put_u32(file, FILE_MAGIC), any_between(1, 2)), n);
    put_u32(file + HEADER_EOT, any_bool() ? PYBPE_NO_ID : any_between(0, n));
    if (any_bool()) {
        uint8_t *trailer = end;
        end = put_trailer(trailer, n);
        put_u32(put_u32(file + 16, TRAILER_MARK), (uint64_t)(end + TRAILER_CHECKSUM - trailer));
        put_checksum(file, (size_t)(end - file));
        end += TRAILER_CHECKSUM;
    }
    return (size_t)(end - file);
}

/* A vocabulary that is read has its parts in its memory. */
void prove_load(size_t n) {
    static uint8_t file[FILE_HEADER + TOKENS * (1 + LONGEST) + MOST_TRAILER];
    size_t length = put_file(file, n);
    if (any_between(0, 7) == 0) { /* damaged, or cut off */
        file[any_between(0, length - 1)] = (uint8_t)any_u64();
        length = (size_t)any_between(0, length);
    }
    uint8_t *data = any_bytes(length);
    memcpy(data, file, length);
    pybpe_vocab *v;
    int code = pybpe_vocab_load_mem(&v, data, length, NULL, NULL);
    CHECK((code == PYBPE_OK) == (v != NULL));
    free(data);
    if (v != NULL) {
        pybpe_vocab_spec spec = pybpe_vocab_get_spec(v);
        check_readable(spec.tokens.bytes, (size_t)strings_total(&spec.tokens) + VOCAB_PADDING);
        check_readable(spec.merges, 2 * spec.merges_count * sizeof *spec.merges);
        check_readable(spec.specials, spec.specials_count * sizeof *spec.specials);
        CHECK(spec.custom == NULL || strlen(spec.custom) <= CUSTOM);
        pybpe_vocab_free(v);
    }
}

PROOFS(DRAWN(load, 1, 8, 9))
