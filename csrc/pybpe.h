/*
pybpe: byte-level BPE tokenizers and llm.c token files, in C11.

This is the only public header, and it is the documentation of the C library. The region between the
two marker comments below is also what the Python binding is generated from (csrc/cffi_build.py), so
it holds plain declarations only: no macros beyond integer constants and PYBPE_API, no inline code.

Conventions, for every function:
- Names are pybpe_noun_verb, the object first. Handles are opaque.
- A fallible function returns PYBPE_OK (0) or a negative pybpe_code and, if `err` is not NULL, fills it. On an error
  outputs are NULL or untouched and inputs are unchanged, but the contents of output buffers are undefined.
- A handle that an error leaves half changed refuses all later calls, with the code of that error: a trainer, a counter
  (which is then empty), an output, a shard writer, and a divider until it is cleared. Free it and begin again. Any other
  handle is as before, and the call may be repeated.
- `_new`, `_load` and `_open` create a handle; `_free` accepts NULL. "Borrowed" arguments are not copied and must
  outlive the handle.
- `mem` is the allocator for the handle and for everything it allocates; NULL means malloc and free.
- Threads may share immutable handles without a lock. Any other handle may be used by only one thread at a time.
- Where a function that creates a handle takes an array with a count, NULL with a count above 0 is PYBPE_ERR_VALUE. Any
  other pointer must not be NULL, unless its comment allows it or the count of what it points to is 0.
- Text is any sequence of bytes. No function requires valid UTF-8 or a terminating NUL.
- ids are uint32_t, byte sizes size_t, occurrence counts uint64_t. A buffer "of id_bytes" holds uint16_t (id_bytes 2) or
  uint32_t (id_bytes 4) tokens in the machine's byte order.
- No function prints, exits, aborts, or keeps state outside its handles.

A program that turns a text into ids and back, with any tokenizer.json or tokenizer.bin:

    #include <pybpe.h>
    #include <stdio.h>
    int main(void) {
        pybpe_tokenizer *t;
        pybpe_error err;
        uint32_t ids[PYBPE_IDS_ROOM(16)];
        char text[64];
        size_t count, n;
        if (pybpe_tokenizer_load(&t, "tokenizer.json", NULL, &err) ||
            pybpe_tokenizer_encode(t, "Once upon a time", 16, ids, PYBPE_IDS_ROOM(16), &count, &err) ||
            pybpe_tokenizer_decode(t, ids, count, text, sizeof text, &n, &err)) return puts(err.msg), 1;
        printf("%zu tokens: %.*s\n", count, (int)n, text);
        pybpe_tokenizer_free(t);
    }
*/
#ifndef PYBPE_H
#define PYBPE_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header; pybpe_version() is that of the library. The number is 10000 * major + 100 * minor + patch. */
#define PYBPE_VERSION "0.1.0"
#define PYBPE_VERSION_NUMBER 100

/* Before each function. Define it as `static` to include pybpe.c in a source file of your own, or as what your compiler
   wants for a shared library. */
#if !defined(PYBPE_API)
#if defined(__GNUC__) && !defined(_WIN32)
#define PYBPE_API __attribute__((visibility("default")))
#else
#define PYBPE_API
#endif
#endif

/* The most ids of a text of n bytes, whatever the tokenizer: a normalizer may make a text longer. */
#define PYBPE_IDS_ROOM(n) (12 * (n) + 1)

#ifdef __cplusplus
extern "C" {
#endif

/* pybpe: begin cdef */

/* ---------------------------------------------------------------------------------------------------
Errors and memory
*/

/* What went wrong. The values are pinned: they never change and are never reused. */
enum pybpe_code {
    PYBPE_OK = 0,
    PYBPE_ERR_MEMORY = -1, /* an allocation failed, or a size does not fit size_t */
    PYBPE_ERR_IO = -2,     /* the operating system refused: see sys_errno */
    PYBPE_ERR_FORMAT = -3, /* a file does not conform to its format: see offset */
    PYBPE_ERR_VALUE = -4,  /* an argument is not valid for this function */
    PYBPE_ERR_LIMIT = -5   /* valid, but exceeds a limit of the target or of this library */
};

/* One error. `msg` is one line of UTF-8 that says what was wrong, where, and what to do about it. */
typedef struct pybpe_error {
    int32_t code;      /* a pybpe_code */
    int32_t sys_errno; /* errno of the failed system call, or 0 */
    uint64_t offset;   /* byte offset in the file or input, or index in an array; 0 if neither applies */
    char msg[496];     /* always NUL-terminated */
} pybpe_error;

/* A memory allocator. `resize` behaves like realloc: with ptr NULL it allocates; with size 0 it frees and returns NULL;
   on failure it returns NULL and ptr stays valid. If several threads use handles made with it, they may call it
   concurrently. */
typedef struct pybpe_allocator {
    void *(*resize)(void *context, void *ptr, size_t size);
    void *context;
} pybpe_allocator;

/* A list of byte strings stored end to end. String i occupies bytes[offsets[i]] up to but not including bytes[offsets[i
   + 1]], so offsets has count + 1 entries, starts at 0, and never decreases. Functions that take such a list check this
   first and return PYBPE_ERR_VALUE (offset = index) if it does not hold. With count 0 neither pointer is read. */
typedef struct pybpe_strings {
    const uint8_t *bytes;
    const uint64_t *offsets;
    size_t count;
} pybpe_strings;

/* The version of this library, such as "0.1.0". Static. */
PYBPE_API const char *pybpe_version(void);

/* The version of the Unicode tables that the patterns use, such as "18.0.0". Static. */
PYBPE_API const char *pybpe_unicode_version(void);

/* The class of a code point, as the patterns see it. The bits are: 1 Lu or Lt, 2 Ll, 4 Lm or Lo, 8 M, 16 N, 32
   whitespace, 64 CR or LF. Any other code point has class 0, including invalid code points. */
PYBPE_API int pybpe_unicode_class(uint32_t code_point);

/* The handles that more than one section below uses. */
typedef struct pybpe_vocab pybpe_vocab;       /* immutable */
typedef struct pybpe_pretok pybpe_pretok;     /* splits text by a pattern; immutable */
typedef struct pybpe_specials pybpe_specials; /* finds special tokens; immutable */

/* ---------------------------------------------------------------------------------------------------
Tokenizers: text -> ids -> text. This is all that most programs need
*/

/* A vocabulary with what encodes text. It never changes, so threads may share it. */
typedef struct pybpe_tokenizer pybpe_tokenizer;

/* Reads a tokenizer.json or a tokenizer.bin: see pybpe_vocab_load. */
PYBPE_API int pybpe_tokenizer_load(pybpe_tokenizer **out, const char *path, const pybpe_allocator *mem,
                                   pybpe_error *err);
PYBPE_API int pybpe_tokenizer_load_mem(pybpe_tokenizer **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                                       pybpe_error *err);
PYBPE_API void pybpe_tokenizer_free(pybpe_tokenizer *t);

/* Encodes text[0..n), and sets *count to the number of ids. Special tokens in the text become their ids. `ids` has room
   for cap of them; PYBPE_IDS_ROOM(n) is always enough. With ids NULL the tokens are only counted. Returns PYBPE_ERR_LIMIT
   if there are more than cap; *count then says how many. Returns PYBPE_ERR_VALUE for a tokenizer whose pattern the
   library does not know, and for a byte without a token (offset = its position). */
PYBPE_API int pybpe_tokenizer_encode(const pybpe_tokenizer *t, const void *text, size_t n, uint32_t *ids, size_t cap,
                                     size_t *count, pybpe_error *err);

/* Does the same for text that you did not write yourself: all of it is ordinary text, so that nobody can forge a special
   token. */
PYBPE_API int pybpe_tokenizer_encode_ordinary(const pybpe_tokenizer *t, const void *text, size_t n, uint32_t *ids,
                                              size_t cap, size_t *count, pybpe_error *err);

/* Decodes n ids to bytes, and sets *length to their number: see pybpe_decode. */
PYBPE_API int pybpe_tokenizer_decode(const pybpe_tokenizer *t, const uint32_t *ids, size_t n, void *out, size_t cap,
                                     size_t *length, pybpe_error *err);

/* The vocabulary, owned by t. */
PYBPE_API const pybpe_vocab *pybpe_tokenizer_vocab(const pybpe_tokenizer *t);

/* ---------------------------------------------------------------------------------------------------
Vocabularies and tokenizer.bin
*/

#define PYBPE_NO_ID 0xFFFFFFFF

/* Reads a tokenizer.json or a tokenizer.bin; the first character decides. Of a tokenizer.json it reads all that decides
   the ids of a text: vocabulary, merges, added tokens with their flags, normalizer and pre_tokenizer; the models of
   docs/models.md, and other combinations of their steps. Anything else is PYBPE_ERR_FORMAT, at the offset of the part:
   Python reads some more, for it compiles any regular expression. truncation, padding and post_processor are ignored, so
   the caller adds the tokens of a template.

   A tokenizer.bin has version 1 or 2, and was written by llm.c or by pybpe. pybpe stores merges, pattern and specials after
   the tokens, where llm.c ignores them (layout: csrc/llmc/tokenizer_bin.h). If a file lacks them, its merges are recovered
   from the order of its ids, as for tiktoken ranks, and eot is its only special. */
PYBPE_API int pybpe_vocab_load(pybpe_vocab **out, const char *path, const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API int pybpe_vocab_load_mem(pybpe_vocab **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                                   pybpe_error *err);
PYBPE_API void pybpe_vocab_free(pybpe_vocab *v);

/* Writes a tokenizer.bin. `version` is 2 or 1; llm.c reads version 1 only if V is 50257 and eot is 50256. Returns
   PYBPE_ERR_LIMIT for what the format cannot hold: an unused id, a token longer than 255 bytes, a vocabulary in which
   a single byte has no token, special_flags, or prefix_space. */
PYBPE_API int pybpe_vocab_save(const pybpe_vocab *v, const char *path, int version, pybpe_error *err);

/* Returns the id of the ordinary token (special 0) or the special (special 1) with these bytes, or PYBPE_NO_ID. */
PYBPE_API uint32_t pybpe_vocab_find(const pybpe_vocab *v, const uint8_t *bytes, size_t n, int special);

/* A complete vocabulary, laid out by the caller. Everything is copied. */
typedef struct pybpe_vocab_spec {
    pybpe_strings tokens;     /* the bytes of id 0, 1, ...; an empty string is an unused id */
    const uint32_t *merges;   /* (left, right) ids in rank order; the concatenation of each pair is a token */
    size_t merges_count;      /* pairs */
    const uint32_t *specials; /* ids whose tokens are specials, ascending */
    size_t specials_count;
    uint32_t eot_id;      /* the id of the end-of-text token, or PYBPE_NO_ID */
    int32_t pattern;      /* a pybpe_pattern, with or without PYBPE_PATTERN_DIGITS1 or PYBPE_PATTERN_DIGITS3 */
    int32_t normalizer;   /* a pybpe_normalizer */
    const char *custom;   /* the regular expression if pattern is PYBPE_PATTERN_CUSTOM, otherwise NULL */
    int32_t whole_words;  /* 1: a word that is an ordinary token becomes that token, even if merging gives other
    tokens */
    int32_t prefix_space; /* 1: each text between specials, once normalized, gets a space before it, unless it is empty
    or begins with one (add_prefix_space in Hugging Face's library) */
    const uint8_t *special_flags; /* an OR of pybpe_special_flag for each special; NULL: no special has flags */
} pybpe_vocab_spec;

/* Returns the vocabulary as it was laid out. All pointers belong to v and are valid as long as v is. */
PYBPE_API pybpe_vocab_spec pybpe_vocab_get_spec(const pybpe_vocab *v);

/* Makes a vocabulary. Returns PYBPE_ERR_VALUE (offset = id or index) if two ordinary tokens or two specials have the
   same bytes, if a merge names anything but two ordinary tokens, or if their concatenation is not an ordinary token.
   Some single bytes, but not all, may lack a token; encoding a text that needs such a byte is an error. */
PYBPE_API int pybpe_vocab_new(pybpe_vocab **out, const pybpe_vocab_spec *spec, const pybpe_allocator *mem,
                              pybpe_error *err);

/* Recovers merges from the order of ids, lowest first, as tiktoken's rank files imply them. The merge of a token joins
   the two parts that remain after BPE with all lower tokens. A token with more than two parts left can't be reached and
   gets no merge. Writes at most spec->tokens.count pairs (2 ids each) to `merges` and the number of pairs to `count`.
   Ignores spec->merges. */
PYBPE_API int pybpe_vocab_recover_merges(const pybpe_vocab_spec *spec, uint32_t *merges, size_t *count,
                                         const pybpe_allocator *mem, pybpe_error *err);

/* Finds the two large parts of a tokenizer.json: the object model.vocab at text[spans[0]..spans[1]) and the array
   model.merges at text[spans[2]..spans[3]). Returns 1, or 0 unless the text looks like a JSON object that has each of
   them exactly once. The rest of the text is not checked. */
PYBPE_API int pybpe_tokenizer_json_find(const uint8_t *text, size_t n, size_t spans[4]);

/* Makes a vocabulary from a spec whose tokens and merges are in those two texts instead. special_texts has the text of
   each special, in the order of spec->specials; none may be empty. The vocabulary text need not contain the specials.
   Returns PYBPE_ERR_FORMAT for anything unusual, even if it is valid: the caller must then use a slower reader. */
PYBPE_API int pybpe_vocab_new_json(pybpe_vocab **out, const uint8_t *vocab, size_t vocab_n, const uint8_t *merges,
                                   size_t merges_n, const pybpe_strings *special_texts, const pybpe_vocab_spec *spec,
                                   const pybpe_allocator *mem, pybpe_error *err);

/* Makes a vocabulary from the content of a .tiktoken file: lines of a token in base64, a space and its id. The spec has
   all but tokens and merges, and special_texts is as above. The merges are those that pybpe_vocab_recover_merges finds.
   Returns PYBPE_ERR_FORMAT for anything unusual, even if it is valid, such as a token that merging does not make: the
   caller must then use a slower reader. */
PYBPE_API int pybpe_vocab_new_ranks(pybpe_vocab **out, const uint8_t *text, size_t n,
                                    const pybpe_strings *special_texts, const pybpe_vocab_spec *spec,
                                    const pybpe_allocator *mem, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Encoding: text -> ids
*/

typedef struct pybpe_encoder pybpe_encoder; /* immutable */
typedef struct pybpe_cache pybpe_cache;     /* one thread at a time */

/* Prepares a vocabulary for encoding. `v` is borrowed. If its pattern is CUSTOM, and the library does not know the
   regular expression (pybpe_pretok_new_regex), the encoder takes only words. With a normalizer or prefix_space, the encoder changes the texts
   between specials accordingly. */
PYBPE_API int pybpe_encoder_new(pybpe_encoder **out, const pybpe_vocab *v, const pybpe_allocator *mem,
                                pybpe_error *err);

/* The same, but `p`, borrowed, cuts the texts: for a CUSTOM pattern that the library does not know. `p` may be NULL. */
PYBPE_API int pybpe_encoder_new_pretok(pybpe_encoder **out, const pybpe_vocab *v, const pybpe_pretok *p,
                                       const pybpe_allocator *mem, pybpe_error *err);

/* The same, but the encoder changes no text: for a vocabulary with a normalizer or prefix_space, pass only text that has
   been changed accordingly. pybpe_encode_words and pybpe_encode_dropout need such an encoder. */
PYBPE_API int pybpe_encoder_new_normalized(pybpe_encoder **out, const pybpe_vocab *v, const pybpe_pretok *p,
                                           const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_encoder_free(pybpe_encoder *e);

/* The specials of the encoder's vocabulary, owned by e; NULL if it has none. */
PYBPE_API const pybpe_specials *pybpe_encoder_specials(const pybpe_encoder *e);

/* The splitter that the encoder uses, owned by e unless it was borrowed; NULL if it has none. */
PYBPE_API const pybpe_pretok *pybpe_encoder_pretok(const pybpe_encoder *e);

/* A cache of the words that one thread has encoded, and its scratch space. Its size is bounded. It belongs to one
   encoder, which is borrowed. Results never depend on the contents of a cache. */
PYBPE_API int pybpe_cache_new(pybpe_cache **out, const pybpe_encoder *e, const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_cache_free(pybpe_cache *c);

/* Encodes text[0..n) and sets *count to the number of tokens. Specials in `s` become their ids. If `s` is NULL, all
   text is ordinary: use this for text that users write, because they could otherwise forge control tokens. `ids` (of
   id_bytes) must have room for cap >= n tokens; with ids NULL the tokens are only counted. Merges are applied in rank
   order within each word. Returns PYBPE_ERR_VALUE if cap < n, if the cache belongs to another encoder, if the pattern
   is CUSTOM, or if the text has a byte without a token (offset = its position); returns PYBPE_ERR_LIMIT if an id does
   not fit id_bytes. An encoder that normalizes or adds spaces may make a text longer, and returns PYBPE_ERR_LIMIT if it
   could then have more than cap tokens; cap = 12 n is always enough. The offset of a byte without a token is then its
   position in the changed text between two specials, plus the position at which that text begins. */
PYBPE_API int pybpe_encode(const pybpe_encoder *e, pybpe_cache *c, const pybpe_specials *s, const uint8_t *text,
                           size_t n, void *ids, int id_bytes, size_t cap, size_t *count, pybpe_error *err);

/* Does what pybpe_encode does for text that the caller has split into words: word i is ends[i - 1]..ends[i], the first word starts at 0,
   and n is the last end. Also returns PYBPE_ERR_VALUE (offset = index) if the ends decrease. */
PYBPE_API int pybpe_encode_words(const pybpe_encoder *e, pybpe_cache *c, const uint8_t *text, const size_t *ends,
                                 size_t words, void *ids, int id_bytes, size_t cap, size_t *count, pybpe_error *err);

/* BPE dropout: merges are left out at random. */
typedef struct pybpe_dropout {
    double rate;     /* the probability that a possible merge is passed over, each time; from 0 to 1 */
    uint64_t seed;   /* the same seed gives the same ids */
    uint64_t offset; /* where `text` begins in the whole text, in bytes */
} pybpe_dropout;

/* Encodes ordinary text with dropout, as Hugging Face's tokenizers do: see csrc/encode/encode_dropout.c. `ids` must have room
   for n tokens. The random numbers of a word depend on the seed and on the word's place in the whole text, so a text
   may be divided at safe cuts. If the pattern is CUSTOM and the encoder has no splitter, the text is one word. Whole
   words (pybpe_vocab_spec.whole_words) are not looked up. Returns PYBPE_ERR_VALUE for a rate that is not from 0 to 1,
   or for a byte without a token (offset = its position); PYBPE_ERR_LIMIT for a word of more than 1.4 GB. */
PYBPE_API int pybpe_encode_dropout(const pybpe_encoder *e, const pybpe_dropout *how, const uint8_t *text, size_t n,
                                   uint32_t *ids, size_t *count, pybpe_error *err);

/* Texts anywhere in memory: text i has lengths[i] bytes at starts[i], which may be NULL if there are none. */
typedef struct pybpe_texts {
    const uint8_t *const *starts;
    const size_t *lengths;
    size_t count;
} pybpe_texts;

/* Encodes each of `texts` as pybpe_encode does. `ids` gets the ids of all texts in order; the ids of text i end at
   ends[i], so `ends` must have room for texts->count entries. `cap` must be at least the total number of bytes. The
   offset of an error counts the bytes of all texts. For short texts this is faster than one call per text. After an
   error `ids` and `ends` are undefined. */
PYBPE_API int pybpe_encode_batch(const pybpe_encoder *e, pybpe_cache *c, const pybpe_specials *s,
                                 const pybpe_texts *texts, void *ids, int id_bytes, size_t cap, uint64_t *ends,
                                 pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Decoding: ids -> bytes
*/

/* Decodes n ids (of id_bytes) to bytes and sets *length to the number of bytes. `out` has room for cap bytes; with out
   NULL only *length is computed. Returns PYBPE_ERR_LIMIT if cap is too small, and PYBPE_ERR_VALUE (offset = index in
   ids) for an id that is not in the vocabulary. */
PYBPE_API int pybpe_decode(const pybpe_vocab *v, const void *ids, int id_bytes, size_t n, uint8_t *out, size_t cap,
                           size_t *length, pybpe_error *err);

/* Returns the length of the longest prefix of bytes[0..n) that does not end inside a UTF-8 character. While tokens
   stream in, this is the part that can be displayed. n - result is at most 3. */
PYBPE_API size_t pybpe_utf8_complete(const uint8_t *bytes, size_t n);

/* ---------------------------------------------------------------------------------------------------
Token shards: llm.c's .bin files of tokens
*/

enum pybpe_shard_format {
    PYBPE_SHARD_UINT16 = 1,     /* llm.c, GPT-2: PYBPE_MAGIC_SHARD_UINT16, version 1 */
    PYBPE_SHARD_UINT32 = 2,     /* llm.c, Llama 3: PYBPE_MAGIC_SHARD_UINT32, version 7 */
    PYBPE_SHARD_RAW_UINT16 = 3, /* nanoGPT: no header, uint16 */
    PYBPE_SHARD_RAW_UINT32 = 4  /* no header, uint32 */
};

/* The first number of llm.c's files. */
#define PYBPE_MAGIC_SHARD_UINT16 20240520
#define PYBPE_MAGIC_SHARD_UINT32 20240801
#define PYBPE_MAGIC_TOKENIZER 20240328

#define PYBPE_SHARD_HEADER_BYTES 1024
/* llm.c seeks with a 32-bit int, so it cannot read files of 2 GiB or more. */
#define PYBPE_SHARD_MAX_BYTES 2147483647

typedef struct pybpe_shard pybpe_shard; /* immutable */

/* Opens a shard with a header and checks that its magic, version, count and size are consistent. */
PYBPE_API int pybpe_shard_open(pybpe_shard **out, const char *path, const pybpe_allocator *mem, pybpe_error *err);
/* The same for a shard in memory; `data` is borrowed. */
PYBPE_API int pybpe_shard_open_mem(pybpe_shard **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                                   pybpe_error *err);
PYBPE_API void pybpe_shard_free(pybpe_shard *s);

PYBPE_API uint64_t pybpe_shard_count(const pybpe_shard *s); /* tokens */
PYBPE_API int pybpe_shard_id_bytes(const pybpe_shard *s);   /* 2 or 4 */

/* Reads tokens [start, start + n) as uint32_t. Returns PYBPE_ERR_VALUE if that range exceeds the shard. */
PYBPE_API int pybpe_shard_read(const pybpe_shard *s, uint64_t start, size_t n, uint32_t *ids, pybpe_error *err);

typedef struct pybpe_shard_writer pybpe_shard_writer;

/* Starts a shard. The complete file appears at `path` when _finish is called. */
PYBPE_API int pybpe_shard_writer_new(pybpe_shard_writer **out, const char *path, int format, const pybpe_allocator *mem,
                                     pybpe_error *err);

/* Appends n tokens (of id_bytes). Returns PYBPE_ERR_LIMIT (offset = index in ids) for an id that the format's type
   cannot hold, or if the file would exceed PYBPE_SHARD_MAX_BYTES; in both cases it writes nothing. */
PYBPE_API int pybpe_shard_writer_write(pybpe_shard_writer *w, const void *ids, int id_bytes, size_t n,
                                       pybpe_error *err);

/* Completes the file and frees w. On an error it also frees w, and leaves `path` unchanged. */
PYBPE_API int pybpe_shard_writer_finish(pybpe_shard_writer *w, pybpe_error *err);
PYBPE_API void pybpe_shard_writer_discard(pybpe_shard_writer *w);

/* ---------------------------------------------------------------------------------------------------
DataLoader: batches from shards, in the same order as llm.c's llmc/dataloader.h
*/

typedef struct pybpe_loader pybpe_loader;

/* Reads the shards that match the glob pattern, in glob order, and returns batches of (B, T) tokens for process `rank`
   of `world`. If shuffle is not 0, it permutes the shards, and the samples within each shard, exactly as llm.c does
   (mt19937 seeded with 42 + rank). Returns PYBPE_ERR_LIMIT if a shard has fewer than world*B*T + 1 tokens. */
PYBPE_API int pybpe_loader_new(pybpe_loader **out, const char *pattern, size_t B, size_t T, int rank, int world,
                               int shuffle, const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_loader_free(pybpe_loader *l);

/* Reads the next batch: inputs (B, T) and targets (B, T), the latter shifted by one token. There is no last batch:
   after the last shard the next epoch begins. */
PYBPE_API int pybpe_loader_next(pybpe_loader *l, int32_t *inputs, int32_t *targets, pybpe_error *err);

/* Goes back to the start, like llm.c's dataloader_reset. With shuffle, it draws a new permutation. */
PYBPE_API int pybpe_loader_reset(pybpe_loader *l, pybpe_error *err);

/* Puts the loader in the state of a new loader after `batches` calls of _next, including permutations. With shuffle,
   returns PYBPE_ERR_VALUE for more than 10^9 batches; that many take several seconds. */
PYBPE_API int pybpe_loader_seek(pybpe_loader *l, uint64_t batches, pybpe_error *err);

PYBPE_API uint64_t pybpe_loader_tokens(const pybpe_loader *l);  /* in all shards */
PYBPE_API uint64_t pybpe_loader_batches(const pybpe_loader *l); /* per epoch and process */
PYBPE_API size_t pybpe_loader_shards(const pybpe_loader *l);

/* ---------------------------------------------------------------------------------------------------
Counting: text -> distinct words and the number of occurrences of each
*/

typedef struct pybpe_counter pybpe_counter;

/* Creates an empty table. `p` may be NULL if only _add_words and _merge are used; `s` may be NULL. Both are
   borrowed. */
PYBPE_API int pybpe_counter_new(pybpe_counter **out, const pybpe_pretok *p, const pybpe_specials *s,
                                const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_counter_free(pybpe_counter *c);

/* Counts the words in one piece of text: a whole text, or the part between two safe cuts (see pybpe_text_cut). Specials
   in it separate words and are not counted. */
PYBPE_API int pybpe_counter_add(pybpe_counter *c, const uint8_t *text, size_t n, pybpe_error *err);

/* Counts words that the caller has split. Adds counts[i] for string i of `words`, or 1 for each if counts is NULL.
   Ignores empty words. Returns PYBPE_ERR_LIMIT if the count of a word would exceed 2^64 - 1. */
PYBPE_API int pybpe_counter_add_words(pybpe_counter *c, const pybpe_strings *words, const uint64_t *counts,
                                      pybpe_error *err);

/* Counts the words in texts: text i of `texts` as if it occurred counts[i] times, or once if counts is NULL. Specials
   are as in pybpe_counter_add. Returns PYBPE_ERR_LIMIT if the count of a word would exceed 2^64 - 1. */
PYBPE_API int pybpe_counter_add_texts(pybpe_counter *c, const pybpe_strings *texts, const uint64_t *counts,
                                      pybpe_error *err);

/* Adds all counts of src to dst, a different counter. */
PYBPE_API int pybpe_counter_merge(pybpe_counter *dst, const pybpe_counter *src, pybpe_error *err);

/* Moves all counts of src to dst and leaves src empty. src must be a different counter with the same allocator. Much
   faster between counters that use the same pybpe_pretok. An error may leave both half changed. */
PYBPE_API int pybpe_counter_absorb(pybpe_counter *dst, pybpe_counter *src, pybpe_error *err);

/* Makes room for `words` distinct words in total, so that the table does not have to grow before it holds that many. */
PYBPE_API int pybpe_counter_reserve(pybpe_counter *c, size_t words, pybpe_error *err);

typedef struct pybpe_counter_stats {
    uint64_t words;  /* distinct words */
    uint64_t bytes;  /* their total length */
    uint64_t total;  /* occurrences: the sum of the counts, modulo 2^64 */
    uint64_t memory; /* bytes currently allocated for the table */
    uint64_t room;   /* distinct words that fit before the table doubles its size */
} pybpe_counter_stats;

PYBPE_API pybpe_counter_stats pybpe_counter_get_stats(const pybpe_counter *c);

/* Copies the table. `bytes` must have room for stats.bytes bytes, `offsets` for stats.words + 1 entries, and `counts`
   for stats.words. The order is unspecified. */
PYBPE_API void pybpe_counter_export(const pybpe_counter *c, uint8_t *bytes, uint64_t *offsets, uint64_t *counts);

/* Sorts words by their bytes: sets order[0..words->count) to their indices, in this order. The words of a counter are
   distinct; equal ones stay in the order of their indices. Takes 4 bytes per word for `order`, and usually about as
   much during the call. Returns PYBPE_ERR_LIMIT for more than 2^32 - 2 words. */
PYBPE_API int pybpe_words_sort(const pybpe_strings *words, uint32_t *order, const pybpe_allocator *mem,
                               pybpe_error *err);

/* A list of words with their counts that the functions below extend. The caller allocates the arrays. */
typedef struct pybpe_words_block {
    uint8_t *bytes; /* the words, end to end */
    size_t bytes_cap;
    uint32_t *lengths; /* of each word */
    uint64_t *counts;
    size_t cap;         /* the number of words for which there is room */
    size_t count, size; /* the number of words, and of their bytes, so far */
} pybpe_words_block;

/* Appends the words order[0], order[1], ... to a block, at most `n`, while there is room for the word and its bytes.
   Sets *taken to the number of words appended. Returns PYBPE_ERR_LIMIT (offset = index) for a word longer than
   4 GiB - 1. `words` and `order` must come from pybpe_words_sort. */
PYBPE_API int pybpe_words_take(const pybpe_strings *words, const uint64_t *counts, const uint32_t *order, size_t n,
                               size_t *taken, pybpe_words_block *block, pybpe_error *err);

/* The part of a sorted list of words that is in memory. */
typedef struct pybpe_words_part {
    const uint8_t *bytes; /* the words, end to end */
    uint64_t size;        /* the number of these bytes */
    const uint32_t *lengths;
    const uint64_t *counts;
    size_t count;
    size_t at;       /* the next word to merge: 0 at first */
    uint64_t offset; /* the start of its bytes: 0 at first */
} pybpe_words_part;

/* Why pybpe_words_merge returned. */
enum pybpe_merge_state {
    PYBPE_MERGE_DONE = 0, /* all parts had ended before the call; the block is complete */
    PYBPE_MERGE_PART = 1, /* a part has ended (at == count): replace it by the next part of its list, if there is one */
    PYBPE_MERGE_FULL = 2, /* the block has `cap` words, and the next word is a different one: empty the block */
    PYBPE_MERGE_ROOM = 3  /* bytes_cap is too small for the next word: enlarge `bytes` */
};

/* Adds sorted lists, which may be longer than memory: appends their words to the block, in ascending order, each once
   with the sum of its counts. Call it until *state, a pybpe_merge_state, is DONE, and do each time what the state says.
   A part that has ended is the end of its list. After PART the count of the last word in the block may still rise.
   Returns PYBPE_ERR_VALUE (offset = index of the part) if the words of a part are not in strictly ascending order or
   have more than `size` bytes, and PYBPE_ERR_LIMIT if a count would exceed 2^64 - 1. */
PYBPE_API int pybpe_words_merge(pybpe_words_part *parts, size_t count, pybpe_words_block *block, int *state,
                                const pybpe_allocator *mem, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Training: words and counts -> merges
*/

typedef struct pybpe_trainer pybpe_trainer;

enum pybpe_tie_break {
    PYBPE_TIE_LEXICOGRAPHIC = 0, /* the greatest (left bytes, right bytes) of equally frequent pairs */
    PYBPE_TIE_HUGGINGFACE = 1,   /* the lowest (left id, right id) in HF's numbering */
    PYBPE_TIE_RUSTBPE = 2        /* the lowest (left id, right id), as rustbpe does, which numbers bytes by value */
};

/* Rules that forbid merges. They apply to the merges that the trainer makes, not to the merges of a base. */
enum pybpe_train_rule {
    PYBPE_RULE_WHOLE_CHARACTERS = 1, /* a merged token is a sequence of whole UTF-8 characters, or part of one */
    PYBPE_RULE_SUPERWORDS = 2        /* a merged token has at most four words between spaces, and no ": " */
};

/* Tokens 0-255 are the bytes; merged tokens follow in the order of their creation. */
typedef struct pybpe_train_config {
    uint32_t vocab_size;         /* stop at this many tokens: 256 bytes and merged tokens, excluding specials */
    uint32_t max_token_length;   /* in bytes; longer tokens are never made; at least 1 */
    uint64_t min_frequency;      /* pairs that occur less often are never merged; 0 and 1 are the same */
    int32_t tie_break;           /* a pybpe_tie_break */
    const uint32_t *base_merges; /* (left, right) ids, applied first in this order; may be NULL. Borrowed. */
    size_t base_merges_count;
    uint32_t rules; /* any of pybpe_train_rule, added up; usually 0 */
} pybpe_train_config;

/* Creates a trainer for words with their counts. The words are copied; the caller may free them afterward. Returns
   PYBPE_ERR_LIMIT if the words have more than 4 GiB - 1 bytes in total. */
PYBPE_API int pybpe_trainer_new(pybpe_trainer **out, const pybpe_strings *words, const uint64_t *counts,
                                const pybpe_train_config *config, const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_trainer_free(pybpe_trainer *t);

/* A language in parity-aware training. */
typedef struct pybpe_language {
    pybpe_strings words; /* to learn from */
    const uint64_t *counts;
    pybpe_strings measured; /* the words of a development text, which shows what the language costs */
    const uint64_t *measured_counts;
    uint64_t size; /* the cost is the number of tokens of the development text divided by this: at least 1 */
} pybpe_language;

/* Creates a trainer whose every merge helps the language that costs the most at this point (of several the first): it
   merges the pair that is most frequent in the words of this language, in all languages. If no pair of this language
   occurs min_frequency times, it helps the next. The result is a trainer like others. Everything is copied. Returns
   PYBPE_ERR_LIMIT if all words have more than 4 GiB - 1 bytes in total, if the sum of word counts over all bytes
   reaches 2^43, or if the tokens of a development text or its size exceed 2^32 - 1. */
PYBPE_API int pybpe_trainer_new_parity(pybpe_trainer **out, const pybpe_language *languages, size_t count,
                                       const pybpe_train_config *config, const pybpe_allocator *mem, pybpe_error *err);

/* Merges until about `budget` occurrences have been rewritten (2^20 take a few ms) or training is done, in which case
   it sets *done to 1. The budget does not influence the result. After an error, pybpe_trainer_merges has the merges
   until then. */
PYBPE_API int pybpe_trainer_step(pybpe_trainer *t, size_t budget, int *done, pybpe_error *err);

/* Sets *merges to the merges so far, as triples (left, right, merged id), and returns how many there are. They belong
   to t and stay valid until the next step. If an earlier token has the same bytes, the merged id is the id of that
   token. */
PYBPE_API size_t pybpe_trainer_merges(const pybpe_trainer *t, const uint32_t **merges);

/* The number of tokens so far, including the 256 bytes. */
PYBPE_API uint32_t pybpe_trainer_tokens(const pybpe_trainer *t);

/* Where the special tokens of a trained vocabulary are placed. */
enum pybpe_special_ids {
    PYBPE_SPECIALS_FIRST = 0,       /* specials, bytes, merged tokens: the ids of specials do not depend on the
    training */
    PYBPE_SPECIALS_AFTER_BYTES = 1, /* bytes, specials, merged tokens */
    PYBPE_SPECIALS_LAST = 2         /* bytes, merged tokens, specials, as in GPT-2 */
};

/* The parts of a trained vocabulary other than the trainer's tokens. Everything is copied. */
typedef struct pybpe_vocab_layout {
    pybpe_strings specials; /* the special tokens in the order of their ids; none if count is 0 */
    int32_t special_ids;    /* a pybpe_special_ids */
    uint32_t eot;           /* the index of the special that ends a text, or PYBPE_NO_ID */
    int32_t pattern;        /* as in pybpe_vocab_spec: the pattern that the words were split with */
    int32_t normalizer;     /* as in pybpe_vocab_spec: the normalizer that was applied before counting */
    const char *custom;     /* as in pybpe_vocab_spec */
} pybpe_vocab_layout;

/* Makes a vocabulary from the tokens that `t` has so far, laid out as by Python's pybpe.train. With
   PYBPE_TIE_HUGGINGFACE the bytes are in Hugging Face's order, otherwise in ascending order. The trainer can continue
   afterward. Returns PYBPE_ERR_VALUE (offset = index) for an empty or repeated special, and refuses whatever
   pybpe_vocab_new refuses. */
PYBPE_API int pybpe_trainer_vocab(pybpe_vocab **out, const pybpe_trainer *t, const pybpe_vocab_layout *layout,
                                  const pybpe_allocator *mem, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Patterns: how text is split into words before BPE. A merge never crosses a word boundary.
*/

enum pybpe_pattern {
    PYBPE_PATTERN_CUSTOM = 0, /* the caller splits the text and passes words; see pybpe_encode_words */
    PYBPE_PATTERN_GPT2 = 1,   /* GPT-2, also known as r50k */
    PYBPE_PATTERN_CL100K = 2, /* GPT-4 */
    PYBPE_PATTERN_O200K = 3,  /* GPT-4o */
    PYBPE_PATTERN_LLAMA3 = 4,
    PYBPE_PATTERN_QWEN2 = 5,
    PYBPE_PATTERN_NANOCHAT = 6, /* llama3 with numbers of two digits */
    /* One of these may be added to one of the above, except CUSTOM: */
    PYBPE_PATTERN_DIGITS1 = 256, /* every digit is a separate word */
    PYBPE_PATTERN_DIGITS3 = 512  /* numbers are words of three digits, counted from the right: 12|345|678 */
};

/* Returns the pattern with this name ("gpt2", "r50k", "cl100k", "gpt4", "o200k", "llama3", "qwen2", "nanochat";
   lowercase), or PYBPE_ERR_VALUE. */
PYBPE_API int pybpe_pattern_find(const char *name);

/* The regular expression for `pattern`, in the syntax of the Python package `regex`, or NULL for CUSTOM and unknown
   values. Static. Splitting with it gives exactly the same words as pybpe_pretok_split. */
PYBPE_API const char *pybpe_pattern_regex(int pattern);

/* Returns the pattern whose regular expression this is, also with `\s+(?![\s\S])` in place of `\s++$`, or
   PYBPE_ERR_VALUE. Of several patterns with one expression, the first without a flag, in the order above. */
PYBPE_API int pybpe_pattern_find_regex(const uint8_t *regex, size_t n);

/* Creates a splitter for one pattern (not CUSTOM). It uses the widest vector instructions that this machine supports:
   avx512, avx2, neon (on AArch64) or swar (8 bytes at a time, on any machine). The environment variable PYBPE_SIMD with
   one of these names forces a narrower set; a set that the machine lacks is ignored. All sets give the same words. */
PYBPE_API int pybpe_pretok_new(pybpe_pretok **out, int pattern, const pybpe_allocator *mem, pybpe_error *err);

/* A regular expression, compiled to a deterministic automaton that reads classes of characters. Each state has a row of
   classes + 2 entries: one for each class, one for a newline (U+000A) that is the last character of the text, and one
   for the end of the text. An entry is the next state, plus 0x8000 if a match may end before the character; the match
   ends at the last such place. State 0 is dead: all its entries are 0. A match begins in state 1, and is never empty;
   no entry leads to state 1. After the end of the text only state 0 follows. There may be at most 250 classes and 4096
   states. */
typedef struct pybpe_automaton {
    const uint32_t *first;   /* ascending code points, from 0: where a range of one class begins */
    const uint8_t *class_of; /* the class of each range; a byte that is not valid UTF-8 has the class of U+DC80 */
    size_t ranges;
    uint32_t classes, states;
    const uint16_t *next; /* the rows of all states */
    int bytes;            /* not 0: it reads bytes, not characters; byte i has the class of code point i */
} pybpe_automaton;

/* Creates a splitter for an automaton. Copies the tables. Text between two matches is a word too. Returns
   PYBPE_ERR_VALUE if a table is wrong. Encoding and counting with it take linear time on every text. While it looks
   far ahead without finding a match, splitting takes memory in proportion to that distance. If this memory is not
   available, the words are the same, but finding them may take longer. */
PYBPE_API int pybpe_pretok_new_automaton(pybpe_pretok **out, const pybpe_automaton *tables, const pybpe_allocator *mem,
                                         pybpe_error *err);

/* Creates a splitter from `count` others (2 to 16), which are borrowed. The first one splits the text into pieces, the
   second one splits each piece as a separate text, and so on. Returns PYBPE_ERR_VALUE for another count,
   if one of them is itself such a sequence, or if one that reads characters follows one that reads bytes. */
PYBPE_API int pybpe_pretok_new_sequence(pybpe_pretok **out, const pybpe_pretok *const *steps, size_t count,
                                        const pybpe_allocator *mem, pybpe_error *err);

/* Creates a splitter for a regular expression that the library knows, in the syntax of the Python package `regex`: that
   of a pattern above, or one of those that the models in docs/models.md use (csrc/pretok/known_data.h). With (?then)
   between several it splits with one after the other; (?bytes) before one makes it read bytes. Returns PYBPE_ERR_VALUE
   for any other: the library has no compiler of regular expressions. */
PYBPE_API int pybpe_pretok_new_regex(pybpe_pretok **out, const char *regex, const pybpe_allocator *mem,
                                     pybpe_error *err);
PYBPE_API void pybpe_pretok_free(pybpe_pretok *p);

/* Returns 1 if pybpe_text_cut can find cuts, 0 for a splitter that allows none. */
PYBPE_API int pybpe_pretok_has_cuts(const pybpe_pretok *p);

/* The vector instructions in use: "avx512", "avx2", "neon" or "swar". Static. */
PYBPE_API const char *pybpe_pretok_simd(const pybpe_pretok *p);

/* Splits text[pos..n) into words; `pos` must be 0 or the end of a word. Writes the ends of the next words (offsets from
   `text`, ascending) to ends[0..cap) and returns how many it wrote. Word i is ends[i-1]..ends[i]; the first word starts
   at pos. Returns 0 only if pos == n. `cap` must be at least 64. The function may write fewer than cap ends even if
   text remains: call it again from the last end. Each byte that is not valid UTF-8 counts as one character of class
   "other". A splitter from pybpe_pretok_new_sequence begins at text[0] in each call: double `cap` from call to
   call, so that splitting a text takes linear time. */
PYBPE_API size_t pybpe_pretok_split(const pybpe_pretok *p, const uint8_t *text, size_t n, size_t pos, size_t *ends,
                                    size_t cap);

/* Returns how many bytes at the start of text[0..n) are valid UTF-8 (Unicode 15, Table 3-7): n if all are, otherwise
   the byte offset of the first invalid character. All other functions accept any bytes; use this one to detect text in
   another encoding. */
PYBPE_API size_t pybpe_utf8_valid(const uint8_t *text, size_t n);

/* ---------------------------------------------------------------------------------------------------
Special tokens: strings that are matched before the pattern is applied and are never split
*/

/* Creates a matcher for strings[i] -> ids[i]. Strings must be distinct and not empty (PYBPE_ERR_VALUE, offset = index).
   Takes O(total length) time. */
PYBPE_API int pybpe_specials_new(pybpe_specials **out, const pybpe_strings *strings, const uint32_t *ids,
                                 const pybpe_allocator *mem, pybpe_error *err);

/* How a special is matched: the properties of added tokens in Hugging Face's library, with exactly its results. */
enum pybpe_special_flag {
    PYBPE_SPECIAL_LSTRIP = 1,      /* a match includes the white space before it, up to the match before */
    PYBPE_SPECIAL_RSTRIP = 2,      /* a match includes the white space after it */
    PYBPE_SPECIAL_SINGLE_WORD = 4, /* a word character next to the string prevents a match */
    PYBPE_SPECIAL_LATE = 8         /* looked for only between the matches of the others, each such part of the text as
                                      a separate text ("normalized" there) */
};

/* The same for specials with flags, an OR of the above for each; `flags` may be NULL. Also returns PYBPE_ERR_VALUE
   (offset = id) if a special with RSTRIP and another one that begins with white space, or not with UTF-8, are looked for
   together. With flags, _find and _find_all match text[from..n) as a separate text. So if _find_all returns `cap`, call
   it again with the same `from` and a larger cap. */
PYBPE_API int pybpe_specials_new_flags(pybpe_specials **out, const pybpe_strings *strings, const uint32_t *ids,
                                       const uint8_t *flags, const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_specials_free(pybpe_specials *s);

/* Finds the first special in text[from..n): the leftmost one, and the longest one that starts there. Returns 1
   and sets start, end and id, or returns 0 and leaves them unchanged. Takes O(1) time per byte read. It reads to the
   end of the special, and further only while a longer one is still possible. To find all specials in a text, call
   _find_all. */
PYBPE_API int pybpe_specials_find(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, size_t *start,
                                  size_t *end, uint32_t *id);

/* Finds all specials in text[from..n): the one that _find finds from `from`, then the one that it finds from the end of
   the first, and so on. Writes the start and end of each to `spans` and its id to `ids`, at most `cap` of them, and
   returns how many. If that is cap, call again from the last end. Takes O(1) time per byte of text for any set of
   strings, plus O(longest string) per call. It may allocate up to 4 times the length of the longest string; if that
   allocation fails, it returns the same result more slowly. */
PYBPE_API size_t pybpe_specials_find_all(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from,
                                         size_t *spans, uint32_t *ids, size_t cap);

/* Returns the smallest safe cut c, from <= c < n, or n if there is none. If text is divided at a safe cut, processing
   the two parts separately gives the same result as processing the whole, regardless of what follows text[n). That does
   not hold for an encoder that normalizes or adds spaces: cut its texts at specials. 0 counts as a safe cut. text must begin at a safe cut or at the start of the input. `s` may be NULL. Takes O(1) time per byte
   from `from`, minus the length of the longest special, to the cut. */
PYBPE_API size_t pybpe_text_cut(const pybpe_pretok *p, const pybpe_specials *s, const uint8_t *text, size_t n,
                                size_t from);

/* ---------------------------------------------------------------------------------------------------
Normalization: the Unicode forms NFC and NFKC, as Hugging Face's tokenizers implements them
*/

enum pybpe_normalizer { PYBPE_NORMALIZER_NONE = 0, PYBPE_NORMALIZER_NFC = 1, PYBPE_NORMALIZER_NFKC = 2 };

/* The version of the Unicode tables that the normalizers use, such as "9.0.0". It is the version that Hugging Face
   uses, not the version of the patterns, because a normalizer must give the same ids in both libraries. Static. */
PYBPE_API const char *pybpe_normalizer_unicode_version(void);

/* Normalizes text[0..n) to NFC or NFKC. If normalization certainly changes nothing, sets *out to NULL and *length to n:
   use the text itself. Otherwise *out is a new text of *length bytes; free it with pybpe_normalize_free. Bytes that are
   not valid UTF-8 are copied unchanged, and marks are neither composed nor reordered across them. The result is at most
   3 times as long as the text for NFC, and 11 times for NFKC. Takes O(n) time on every text. If a text contains
   specials, normalize only the text between them. */
PYBPE_API int pybpe_normalize(uint8_t **out, size_t *length, int normalizer, const uint8_t *text, size_t n,
                              const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_normalize_free(uint8_t *out, const pybpe_allocator *mem);

/* ---------------------------------------------------------------------------------------------------
Documents in a corpus
*/

/* What separates documents. */
enum pybpe_documents {
    PYBPE_DOCUMENTS_LINE = 0,  /* a document per line; \n or \r\n ends it and does not belong to it */
    PYBPE_DOCUMENTS_BLANK = 1, /* blank lines; no line end around a document belongs to it */
    PYBPE_DOCUMENTS_MARK = 2,  /* the specials in `marks` */
    PYBPE_DOCUMENTS_RECORD = 3 /* JSON lines: the string at `key` of the object on each line is a document */
};

/* How a corpus is divided into documents, and the documents among splits. The hash of a document is its CRC-32 times
   0x9E3779B97F4A7C15, modulo 2^64; it belongs to the first split whose `last` is not below its hash, or if there is
   none, to split 0. A record with a string "pybpe_cluster" is hashed by that instead. */
typedef struct pybpe_division {
    const pybpe_specials *marks; /* borrowed; NULL if there are none */
    const uint8_t *key;          /* UTF-8; only for records */
    size_t key_n;
    const uint8_t *separator; /* written after each document */
    size_t separator_n;
    const uint64_t *last; /* one per split */
    size_t splits;        /* at least 1; if 1, nothing is hashed */
} pybpe_division;

/* A divider gathers the documents of one or more texts. */
typedef struct pybpe_divider pybpe_divider;

/* `how` is copied, except the marks. */
PYBPE_API int pybpe_divider_new(pybpe_divider **out, const pybpe_division *how, const pybpe_allocator *mem,
                                pybpe_error *err);
PYBPE_API void pybpe_divider_free(pybpe_divider *d);

/* Adds the documents of a text that begins and ends between two documents. Empty documents are left out. Returns
   PYBPE_ERR_FORMAT if a line is not a record, or may be one but needs a complete parser of JSON: invalid UTF-8, a lone
   surrogate, an escape in a name, brackets more than 64 deep, a number of more than 300 bytes, a byte order mark. The
   offset of the error is the line's. After an error there are no documents, and the divider must be cleared. */
PYBPE_API int pybpe_divider_divide(pybpe_divider *d, int kind, const uint8_t *text, size_t n, pybpe_error *err);

/* Adds documents that are separate already: document i is bytes[offsets[i]] up to but not including
   bytes[offsets[i + 1]]. The first offset need not be 0. Returns PYBPE_ERR_VALUE if the offsets decrease. */
PYBPE_API int pybpe_divider_add(pybpe_divider *d, const uint8_t *bytes, const uint64_t *offsets, size_t count,
                                pybpe_error *err);

/* The documents of a split, in order, each with the separator after it; none if there is no such split. Valid until
   something is added. */
PYBPE_API pybpe_strings pybpe_divider_documents(const pybpe_divider *d, size_t split);

/* The number of records among the JSON lines that were divided, empty texts included; and the number of line
   ends. */
PYBPE_API void pybpe_divider_records(const pybpe_divider *d, size_t *records, size_t *line_ends);

/* Removes all documents, and keeps the memory. */
PYBPE_API void pybpe_divider_clear(pybpe_divider *d);

/* The starts of files, one after another. The caller provides the memory. */
typedef struct pybpe_file_starts {
    uint8_t *bytes;
    size_t room;       /* of `bytes` */
    uint64_t *offsets; /* room for count + 1: start i is bytes[offsets[i]] up to but not including
                          bytes[offsets[i + 1]] */
    uint64_t *sizes;   /* of the whole files; UINT64_MAX for one that was not read */
    int64_t *modified; /* when they were last written to, in nanoseconds since 1970 */
} pybpe_file_starts;

/* Reads the first `most` bytes of `count` files, or all if a file is shorter. `paths` are strings, one after another. A
   file is not read if it cannot be, changes meanwhile, does not fit into the rest of the room, or is a pipe, a device or
   another file that does not say its size. Looks what each file is before it opens it, unless the caller has looked:
   then all are `known` to be regular files or links. */
PYBPE_API void pybpe_file_starts_read(pybpe_file_starts *out, const char *paths, size_t count, size_t most, int known);

/* The records of JSON lines whose text is not empty: text i is texts[text_offsets[i]] up to but not including
   texts[text_offsets[i + 1]], and so are the lines. The caller provides the memory. */
typedef struct pybpe_records {
    uint8_t *texts;         /* room for n bytes, of JSON lines of n bytes */
    uint8_t *lines;         /* room for 2 n bytes */
    uint64_t *text_offsets; /* room for n / 8 + 2 numbers */
    uint64_t *line_offsets; /* the same */
    size_t count;
    size_t records, line_ends; /* of the input, as in pybpe_divider_records */
} pybpe_records;

/* Reads JSON lines, whose texts are the strings at `key`. A line of the output has the names and values of the record
   in one form: as Python's json.dumps writes them with ensure_ascii=False, but all values except the text stay as they
   are spelled. Returns PYBPE_ERR_FORMAT as pybpe_divider_divide does, and for a record that repeats a name, or has more
   than 64. Then the output means nothing. With `no_cluster`, the output has no field "pybpe_cluster". */
PYBPE_API int pybpe_records_read(pybpe_records *out, const uint8_t *lines, size_t n, const uint8_t *key, size_t key_n,
                                 int no_cluster, pybpe_error *err);

/* Writes the lines of records for which `keeps` is not 0. If `clusters` is not NULL, it has PYBPE_DIGEST_SIZE bytes for
   each record, which are added to it in hexadecimal as its field "pybpe_cluster". `out` has room for the lines, and for
   56 bytes more for each; *n is set to what is written. A line ends with } and a newline. */
PYBPE_API int pybpe_records_keep(uint8_t *out, size_t *n, const pybpe_strings *lines, const uint8_t *keeps,
                                 const uint8_t *clusters, pybpe_error *err);

/* Writes a record for each text, with nothing but the text: {NAME: "TEXT"}, where `name` is spelled as JSON. Line i is
   lines[offsets[i]] up to but not including lines[offsets[i + 1]]. The caller provides the memory: 6 bytes for each byte
   of the texts, and name_n + 7 for each text. Returns PYBPE_ERR_FORMAT if a text is not UTF-8; the offset of the error
   is its number. Then the output means nothing. */
PYBPE_API int pybpe_records_write(uint8_t *lines, uint64_t *offsets, const pybpe_strings *texts, const uint8_t *name,
                                  size_t name_n, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Documents in a stream of tokens
*/

/* Where the mark (the end-of-text id) goes: nowhere, before each document, or after each document. */
enum pybpe_marks { PYBPE_MARKS_NONE = 0, PYBPE_MARKS_PREPEND = 1, PYBPE_MARKS_APPEND = 2 };

/* Returns how many of ids[0..n) (of id_bytes) equal `id`. */
PYBPE_API size_t pybpe_ids_count(const void *ids, int id_bytes, size_t n, uint32_t id);

/* Copies one piece of a stream in which marks separate documents, and writes one mark per document, or none, according
   to `mode` (a pybpe_marks). On entry *is_open says whether a document continues from the previous piece; on return,
   whether one continues into the next. A document that is still open when the stream ends lacks its appended mark.
   `out` must have room for n + 1 ids and must not overlap `ids`; `starts` must have room for one more entry than there
   are marks in ids. Sets starts[0..*documents) to the positions in `out` where documents begin, including their marks.
   Returns the number of ids written. */
PYBPE_API size_t pybpe_marks_place(const void *ids, int id_bytes, size_t n, uint32_t mark, int mode, int *is_open,
                                   void *out, uint64_t *starts, size_t *documents);

/* Sets shifted[i] to first + starts[i] for each i < n: where documents begin in a stream if `first` ids came
   before. */
PYBPE_API void pybpe_starts_shift(const uint64_t *starts, size_t n, uint64_t first, uint64_t *shifted);

/* Documents among ids of id_bytes: document i has lengths[i] of them from ids[starts[i]] on; the first is the
   mark. */
typedef struct pybpe_marked {
    const void *ids;
    int id_bytes; /* 2 or 4 */
    const uint64_t *starts, *lengths;
    size_t count;
} pybpe_marked;

/* Packs documents into rows of `width` ids (at least 2), without padding. A row has whole documents, the longest that
   fit, and where none fits, the beginning of a document whose rest is in another row, after a mark of its own; so is
   the rest of one that is longer than a row. Of documents that are equally long, the first is taken. The ids that are
   left at the end, fewer than a row, are in no row. `rows` must have room for t / (width - 1) rows, if all documents
   together have t ids; sets *count to the number of rows. Returns PYBPE_ERR_VALUE (offset = index) for a document
   without a mark. */
PYBPE_API int pybpe_rows_fill(const pybpe_marked *from, size_t width, void *rows, size_t *count,
                              const pybpe_allocator *mem, pybpe_error *err);

/* Puts whole texts, text i of lengths[i] ids, into rows of `width` ids. Sets rows[i] to the row of text i, from 0; no
   row is empty. Each row begins with the longest text that is left; one, two or three texts that fill it exactly are
   preferred to the longest that fits. Of texts that are equally long, the last is taken.
   PYBPE_ERR_VALUE: a text is empty, or longer than a row; err->offset is its number. */
PYBPE_API int pybpe_rows_fit(const uint64_t *lengths, size_t count, size_t width, uint64_t *rows,
                             const pybpe_allocator *mem, pybpe_error *err);

/* Rows of tokens: `count` rows of `width` ids, and columns that say more of each token. All columns but the ids may be
   NULL, together, and are then not written. */
typedef struct pybpe_rows {
    size_t width, count;
    uint32_t mark; /* becomes the first id of each part, unless it is PYBPE_NO_ID */
    uint32_t pad;  /* the id of padding */
    void *ids;
    int32_t *documents; /* the number of the token's part in its row, from 0; -1 for padding */
    int32_t *positions; /* in its part, from 0; padding counts from 0 too */
    uint8_t *loss_mask; /* 0: padding, the first token of a row, the first of a part after one that does not end its
                           document */
} pybpe_rows;

/* Copies parts of documents into rows. Part i is lengths[i] of the n ids from->ids, at least 1, from starts[i] on. It
   goes into row[i] < to->count, after the parts before it, which are in this row or in those above; what is left of a
   row is padding. ends[i] says whether a document ends with part i; it may be NULL if there are only ids. `from` and
   `to` must not overlap. Returns PYBPE_ERR_VALUE (offset = index of the part) for another start, length or row; then
   the rows have undefined contents. */
PYBPE_API int pybpe_rows_gather(const pybpe_marked *from, size_t n, const uint64_t *row, const uint8_t *ends,
                                const pybpe_rows *to, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Documents: measures of their text, and signatures that tell how similar two of them are
*/

/* The class of a character. A word is a run of letters and digits, or one UNSPACED character: a letter of a script that
   is written without spaces, such as Chinese. If most words of a text are of that kind, two of them count as a word. */
enum pybpe_character {
    PYBPE_CHARACTER_SPACE = 0,
    PYBPE_CHARACTER_LETTER = 1, /* marks too */
    PYBPE_CHARACTER_DIGIT = 2,
    PYBPE_CHARACTER_PUNCTUATION = 3,
    PYBPE_CHARACTER_SYMBOL = 4, /* everything else; each byte that is not valid UTF-8 is one of these */
    PYBPE_CHARACTER_UNSPACED = 5
};

/* Tables of characters, which the caller makes. Those of ASCII letters and digits say so, as some code does not ask. */
typedef struct pybpe_characters {
    const uint8_t *classes; /* of each code point, 0x110000 in all */
    const uint32_t *lower;  /* the lowercase of each code point below lower_count; those from there have none */
    size_t lower_count;
} pybpe_characters;

/* The measures of a text: counts. */
enum pybpe_measure {
    PYBPE_MEASURE_CHARS = 0,
    PYBPE_MEASURE_VISIBLE = 1, /* characters that are not SPACE */
    PYBPE_MEASURE_DIGITS = 2,
    PYBPE_MEASURE_SYMBOLS = 3, /* and punctuation */
    PYBPE_MEASURE_UNSPACED = 4,
    PYBPE_MEASURE_MARKS = 5, /* "#" and ellipses: U+2026, or three full stops */
    PYBPE_MEASURE_WORDS = 6, /* each UNSPACED character is one */
    PYBPE_MEASURE_WORD_CHARS = 7,
    PYBPE_MEASURE_ALPHABETIC = 8, /* words that contain a letter */
    /* With `repeated_words`, otherwise 0: */
    PYBPE_MEASURE_DISTINCT = 9,   /* different words, ignoring case */
    PYBPE_MEASURE_TOP_COUNT = 10, /* how often the most frequent word occurs */
    /* With `lines`, otherwise 0. Lines and paragraphs lose the white space around them; empty ones do not
       count. White space with two or more newlines separates paragraphs. */
    PYBPE_MEASURE_LINES = 11,
    PYBPE_MEASURE_LINE_CHARS = 12,
    PYBPE_MEASURE_REPEATED_LINES = 13, /* lines that occurred before */
    PYBPE_MEASURE_REPEATED_LINE_CHARS = 14,
    PYBPE_MEASURE_PARAGRAPHS = 15,
    PYBPE_MEASURE_PARAGRAPH_CHARS = 16,
    PYBPE_MEASURE_REPEATED_PARAGRAPHS = 17,
    PYBPE_MEASURE_REPEATED_PARAGRAPH_CHARS = 18,
    PYBPE_MEASURE_BULLET_LINES = 19,   /* lines that begin with a bullet */
    PYBPE_MEASURE_ELLIPSIS_LINES = 20, /* lines that end with an ellipsis */
    PYBPE_MEASURE_SHORT_LINES = 21,    /* lines under 30 columns; a character from U+1100 has two */
    PYBPE_MEASURE_TERMINAL_LINES = 22, /* lines that end with a full stop or another mark that ends a sentence */
    PYBPE_MEASURES = 23
};

/* What to measure besides words and characters. */
typedef struct pybpe_measuring {
    const uint32_t *ngrams; /* lengths in words, ascending; may be NULL if count is 0 */
    size_t count;
    int repeated_words; /* not 0: PYBPE_MEASURE_DISTINCT and PYBPE_MEASURE_TOP_COUNT */
    int lines;          /* not 0: the measures of lines and paragraphs */
    int no_words;       /* not 0: what only words show may be 0: of the measures above, only PYBPE_MEASURE_CHARS */
} pybpe_measuring;

/* Measures each of `texts`: writes PYBPE_MEASURES + 2 * what->count numbers per text to `out`. The last ones are, for
   each n in what->ngrams: the characters of words in all occurrences of the most frequent n consecutive words (of
   equally frequent ones, the longest; 0 if none occurs twice), then those in n consecutive words that occurred before,
   each counted once. Words, n-grams and lines are compared by hashes of 64 bits. Takes linear time, and about 14 bytes
   of memory per word of the longest text. Returns PYBPE_ERR_LIMIT (offset = index) for a text of 4 GiB or more. */
PYBPE_API int pybpe_texts_measure(uint64_t *out, const pybpe_strings *texts, const pybpe_characters *tables,
                                  const pybpe_measuring *what, const pybpe_allocator *mem, pybpe_error *err);

enum { PYBPE_MINHASH_SIZE = 128, PYBPE_DIGEST_SIZE = 16 };

/* Writes the BLAKE2b digest of PYBPE_DIGEST_SIZE bytes of each text to `out`. */
PYBPE_API int pybpe_texts_digest(uint8_t *out, const pybpe_strings *texts, pybpe_error *err);

/* Writes a MinHash signature of PYBPE_MINHASH_SIZE numbers per text to `out`. A shingle of a text is five consecutive
   words, ignoring case; a text with fewer words is one shingle. The share of positions in which two signatures agree
   estimates the Jaccard similarity of the two sets of shingles. Memory does not grow with the texts.

   If `only` is not NULL, a text with fewer words than a shingle has no signature, as it is like those with the same
   words and no others: only[i] is the hash of its one shingle, not 0. It is 0 for a text that has a signature. */
PYBPE_API int pybpe_texts_minhash(uint32_t *out, uint64_t *only, const pybpe_strings *texts,
                                  const pybpe_characters *tables, const pybpe_allocator *mem, pybpe_error *err);

/* Cuts each of `count` signatures into `bands` of `width` numbers, and writes the hash of each band: out[b * count + i]
   is of band b of signature i. Signatures that agree in a band have the same. */
PYBPE_API int pybpe_signatures_cut(uint64_t *out, const uint32_t *signatures, size_t count, size_t bands, size_t width,
                                   pybpe_error *err);

/* Writes the hash of each of these shingles to `out` and their number to *count: at least 1, and at most n + 1. `out`
   may be NULL. */
PYBPE_API int pybpe_text_shingles(uint64_t *out, size_t *count, const uint8_t *text, size_t n,
                                  const pybpe_characters *tables, const pybpe_allocator *mem, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Output files: the complete old file or the complete new one, never a partial one
*/

typedef struct pybpe_output pybpe_output;

/* Opens a temporary file next to `path` for writing. `path` itself does not change until _commit. If `path` is a
   symbolic link, the file that it points to is replaced. Refuses folders, devices, and streams such as /dev/stdout. */
PYBPE_API int pybpe_output_open(pybpe_output **out, const char *path, const pybpe_allocator *mem, pybpe_error *err);

/* Appends n bytes. After an error, call _discard; all other calls fail, and _commit discards. */
PYBPE_API int pybpe_output_write(pybpe_output *o, const void *data, size_t n, pybpe_error *err);

/* Overwrites n bytes at `offset`, for example in a header. All of them must have been written already. */
PYBPE_API int pybpe_output_patch(pybpe_output *o, uint64_t offset, const void *data, size_t n, pybpe_error *err);

/* Flushes the temporary file to disk, renames it to `path`, flushes the folder, and frees `o`. On an error it removes
   the temporary file, leaves `path` unchanged, and still frees `o`. The exception: if only flushing the folder failed,
   `path` is the complete new file, but a power loss may bring back the old one. */
PYBPE_API int pybpe_output_commit(pybpe_output *o, pybpe_error *err);

/* Removes the temporary file and frees `o`. `path` is unchanged. */
PYBPE_API void pybpe_output_discard(pybpe_output *o);

/* pybpe: end cdef */

#ifdef __cplusplus
}
#endif
#endif
