/*
Reading a .tiktoken file. A line has a token: its bytes in base64, a space, and its id, which is also its rank.

    IQ== 0
    IHQ= 256

The file has no merges, which follow from the ranks (vocab_recover.c), and no special tokens, which the caller adds.

Like tokenizer_json.c, this reader accepts typical files, whose ids ascend and whose tokens are all made by merging, and
refuses everything else with a short error: the caller then uses a slower reader. If it accepts a file, it must find
exactly the same as that one.
*/
#include "vocab/vocab.h"
#include "json/json.h"

enum { NO_DIGIT = 0xFF, SHORTEST_LINE = 7 }; /* the line of one byte, as above */

typedef struct rank_reader {
    const pybpe_vocab_spec *spec;
    const pybpe_strings *special_texts; /* in the order of spec->specials */
    size_t specials;                    /* those that are among the tokens */
    uint8_t *bytes;                     /* of the tokens, in the order of ids. Room for all */
    uint64_t *offsets;                  /* where they begin and the last one ends */
    size_t ids, most_ids;
    uint8_t digit_of[256]; /* base64's digits */
} rank_reader;

static void base64_fill(uint8_t digit_of[256]) {
    static const char SIGNS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    memset(digit_of, NO_DIGIT, 256);
    for (uint8_t i = 0; i < 64; i++) {
        digit_of[(uint8_t)SIGNS[i]] = i;
    }
}

/* Reads base64 with its padding, and the space after it, to `out`, which has room for as many bytes as the text. Returns
   the number of bytes, or 0. */
static size_t base64_read(const uint8_t digit_of[256], json *text, uint8_t *out) {
    size_t n = 0;
    for (; text->end - text->at > 4; text->at += 4) {
        const uint8_t a = digit_of[text->at[0]], b = digit_of[text->at[1]];
        const uint8_t c = digit_of[text->at[2]], d = digit_of[text->at[3]];
        out[n] = (uint8_t)(a << 2 | b >> 4);
        out[n + 1] = (uint8_t)(b << 4 | c >> 2);
        out[n + 2] = (uint8_t)(c << 6 | d);
        if ((a | b | c | d) < 64) {
            n += 3;
            continue;
        }
        const bool two = c < 64 && (c & 3) == 0;                        /* xxx= */
        const bool one = text->at[2] == '=' && b < 64 && (b & 15) == 0; /* xx== */
        if ((a | b) < 64 && text->at[3] == '=' && (one || two)) {
            n += one ? 1 : 2;
            text->at += 4;
        }
        break;
    }
    return text->at < text->end && *text->at++ == ' ' ? n : 0;
}

/* Enters ids without a rank, unused ones or specials, so that `id` is the next one. Returns false if it came before. */
static bool ranks_reach(rank_reader *r, size_t id) {
    if (id < r->ids || id >= r->most_ids) {
        return false;
    }
    uint64_t used = r->offsets[r->ids];
    while (r->ids < id) {
        if (r->specials < r->spec->specials_count && r->spec->specials[r->specials] == r->ids) {
            const uint64_t begin = r->special_texts->offsets[r->specials];
            const uint64_t length = r->special_texts->offsets[++r->specials] - begin;
            memcpy(r->bytes + used, r->special_texts->bytes + begin, (size_t)length);
            used += length;
        }
        r->offsets[++r->ids] = used;
    }
    return true;
}

static bool read_rank_line(rank_reader *r, json *text) {
    uint8_t found[256]; /* a longer one is unusual. Its id is known only after it */
    const uint8_t *begin = text->at;
    const uint8_t *space = memchr(begin, ' ', (size_t)(text->end - begin));
    if (space == NULL || space - begin > (ptrdiff_t)sizeof found) {
        return false;
    }
    const size_t n = base64_read(r->digit_of, text, found);
    uint32_t id;
    if (n == 0 || text->at == text->end || *text->at < '0' || *text->at > '9' ||
        !json_id(text, UINT32_C(1) << 24, &id) || !ranks_reach(r, id)) {
        return false;
    }
    memcpy(r->bytes + r->offsets[id], found, n);
    r->offsets[id + 1] = r->offsets[id] + n;
    r->ids += 1;
    return text->at == text->end || *text->at++ == '\n';
}

/* Reads all lines, and enters the specials after the last rank. */
static bool read_rank_lines(rank_reader *r, json *text) {
    while (text->at < text->end) {
        if (!read_rank_line(r, text)) {
            return false;
        }
    }
    const size_t left = r->spec->specials_count - r->specials;
    return (left == 0 || ranks_reach(r, (size_t)r->spec->specials[r->spec->specials_count - 1] + 1)) &&
           r->specials == r->spec->specials_count;
}

/* Adds the merges that the ranks imply, in the order of their results. Returns false in *all if some token has none, or
   some byte has no token. */
static int add_implied_merges(pybpe_vocab *v, bool *all, pybpe_error *err) {
    unsigned byte;
    size_t merged = 0;
    mem_free(&v->mem, v->merges);
    mem_free(&v->mem, v->merged);
    v->merges = mem_alloc_array(&v->mem, v->count + 1, 2 * sizeof *v->merges);
    v->merged = mem_alloc_array(&v->mem, v->count + 1, sizeof *v->merged);
    if (v->merges == NULL || v->merged == NULL) {
        return error_set_memory(err, "the merges of a vocabulary", v->count * 2 * sizeof *v->merges);
    }
    for (uint32_t id = 0; id < v->count; id++) {
        if (vocab_token_length(v, id) > 1 && token_is_ordinary(v, id)) {
            v->merged[merged++] = id;
        }
    }
    const int code = vocab_recover(v, v->merges, &v->merges_count, err);
    v->all_own = true; /* that is how merges are found. If some token had none, the vocabulary would be refused */
    *all = code != PYBPE_OK || (v->merges_count == merged && !vocab_lacks_byte(v, &byte));
    return code;
}

static int make_ranked(rank_reader *r, json *text, pybpe_vocab **out, const pybpe_allocator *mem, pybpe_error *err) {
    bool fits = read_rank_lines(r, text);
    int code = PYBPE_OK;
    if (fits) {
        pybpe_vocab_spec spec = *r->spec;
        spec.tokens = (pybpe_strings){r->bytes, r->offsets, r->ids};
        spec.merges_count = 0;
        code = pybpe_vocab_new(out, &spec, mem, err);
    }
    if (fits && code == PYBPE_OK) {
        code = add_implied_merges(*out, &fits, err);
    }
    return fits ? code : error_set(err, PYBPE_ERR_FORMAT, 0, "this .tiktoken file must be read by other means");
}

int pybpe_vocab_new_ranks(pybpe_vocab **out, const uint8_t *text, size_t n, const pybpe_strings *special_texts,
                          const pybpe_vocab_spec *spec, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    PYBPE_TRY(array_check(text, n, "the bytes of a .tiktoken file", err));
    PYBPE_TRY(special_texts_check(special_texts, spec, err));
    /* As many ids may be unused as there are tokens. */
    rank_reader r = {
        .spec = spec, .special_texts = special_texts, .most_ids = 2 * (n / SHORTEST_LINE + 1 + spec->specials_count)};
    size_t room;
    base64_fill(r.digit_of);
    if (size_add(n + 1, (size_t)strings_total(special_texts), &room)) {
        r.bytes = mem_alloc(mem, room);
        r.offsets = mem_alloc_array(mem, r.most_ids + 1, sizeof *r.offsets);
    }
    pybpe_vocab *v = NULL;
    int code;
    if (r.bytes == NULL || r.offsets == NULL) {
        code = error_set_memory(err, "the tokens of a .tiktoken file", n);
    } else {
        r.offsets[0] = 0;
        json rest = {text, n > 0 ? text + n : text}; /* adding even 0 to NULL is undefined */
        code = make_ranked(&r, &rest, &v, mem, err);
    }
    mem_free(mem, r.bytes);
    mem_free(mem, r.offsets);
    if (code != PYBPE_OK) {
        pybpe_vocab_free(v);
        return code;
    }
    *out = v;
    return PYBPE_OK;
}
