/*
pybpe: byte-level BPE tokenizers and llm.c token files, in C11.

The three public headers are the documentation of the C library:

    pybpe.h         errors, tokenizers, vocabularies, encoding, decoding, token shards, the DataLoader
    pybpe_train.h   patterns, special tokens, normalization, counting, training
    pybpe_corpus.h  documents in a corpus and in a stream, rows, measures, output files

The Python binding is generated from the region between two marker comments in these headers
(csrc/cffi_build.py), so it holds plain declarations only: no macros beyond integer constants and PYBPE_API, no inline
code.

Conventions, for every function:
- Names are pybpe_noun_verb, the object first. Handles are opaque.
- A fallible function returns PYBPE_OK (0) or a negative pybpe_code and, if `err` is not NULL, fills it. On an error
  outputs are NULL or untouched, unless the function's comment names one that is set, and inputs are unchanged. The
  contents of output buffers are then undefined.
- A handle that an error leaves half changed refuses all later calls, with the code of that error: a trainer, a
  counter (which is then empty), an output, a shard writer, and a divider until it is cleared. Free it and begin again.
  Any other handle is as before, and the call may be repeated.
- `_new`, `_load` and `_open` create a handle. `_free` accepts NULL. "Borrowed" arguments are not copied and must
  outlive the handle.
- `mem` is the allocator for the handle and for everything it allocates. NULL means malloc and free.
- Threads may share immutable handles without a lock. Any other handle may be used by only one thread at a time.
- Where a function that creates a handle takes an array with a count, NULL with a count above 0 is PYBPE_ERR_VALUE. Any
  other pointer must not be NULL, unless its comment allows it or its count is 0.
- Text is any sequence of bytes. No function requires valid UTF-8 or a terminating NUL.
- ids are uint32_t, byte sizes size_t, occurrence counts uint64_t. A buffer "of id_bytes" holds uint16_t (id_bytes 2) or
  uint32_t (id_bytes 4) tokens in the machine's byte order.
- No function prints, exits, aborts, or keeps state outside its handles.

A program that turns a text into ids and back, with any tokenizer.json or tokenizer.bin. Compile it with
`cc program.c $(pkg-config --cflags --libs pybpe)`, or if pybpe.c is in the same folder, `cc -I. program.c pybpe.c`:

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

/* The version of this header. pybpe_version() is the library's. The number is 10000 * major + 100 * minor +
   patch. */
#define PYBPE_VERSION "0.1.0"
#define PYBPE_VERSION_NUMBER 100

/* Stands before all functions. To include pybpe.c in your own source file, define it as `static`. For a
   shared library, define it as your compiler requires. */
#if !defined(PYBPE_API)
#if defined(__GNUC__) && !defined(_WIN32)
#define PYBPE_API __attribute__((visibility("default")))
#else
#define PYBPE_API
#endif
#endif

/* The most ids of a text of n bytes, whatever the tokenizer: a normalizer may make a text longer. Most tokenizers give
   about n / 4, so for a large text count the ids first, and allocate that many. */
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
    uint64_t offset;   /* byte offset in the file or input, or index in an array, or 0 if neither applies */
    char msg[496];     /* always NUL-terminated */
} pybpe_error;

/* A memory allocator. `resize` behaves like realloc: with ptr NULL it allocates. With size 0 it frees and returns
   NULL. On failure it returns NULL and ptr stays valid. If several threads use handles made with it, they may call it
   concurrently. */
typedef struct pybpe_allocator {
    void *(*resize)(void *context, void *ptr, size_t size);
    void *context;
} pybpe_allocator;

/* A list of byte strings stored end to end. String i occupies bytes[offsets[i]] up to but not including
   bytes[offsets[i + 1]], so offsets has count + 1 entries, starts at 0, and never decreases. Functions that take such
   a list check this first and return PYBPE_ERR_VALUE (offset = index) if it does not hold. With count 0 neither
   pointer is read. */
typedef struct pybpe_strings {
    const uint8_t *bytes;
    const uint64_t *offsets;
    size_t count;
} pybpe_strings;

/* The version of this library, such as "0.1.0". Static. */
PYBPE_API const char *pybpe_version(void);

/* The version of the Unicode tables that the patterns use, such as "18.0.0". Static. */
PYBPE_API const char *pybpe_unicode_version(void);

/* The handles that more than one section below uses. */
typedef struct pybpe_vocab pybpe_vocab;       /* immutable */
typedef struct pybpe_pretok pybpe_pretok;     /* splits text by a pattern, immutable */
typedef struct pybpe_specials pybpe_specials; /* finds special tokens, immutable */

/* ---------------------------------------------------------------------------------------------------
Tokenizers: text -> ids -> text. This is all that most programs need
*/

/* A vocabulary and an encoder for it. It never changes, so threads may share it. */
typedef struct pybpe_tokenizer pybpe_tokenizer;

/* Reads a tokenizer.json or a tokenizer.bin: see pybpe_vocab_load. */
PYBPE_API int pybpe_tokenizer_load(pybpe_tokenizer **out, const char *path, const pybpe_allocator *mem,
                                   pybpe_error *err);
PYBPE_API int pybpe_tokenizer_load_mem(pybpe_tokenizer **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                                       pybpe_error *err);
PYBPE_API void pybpe_tokenizer_free(pybpe_tokenizer *t);

/* Encodes text[0..n), and sets *count to the number of ids. Special tokens in the text become their ids. `ids` has
   room for cap of them. PYBPE_IDS_ROOM(n) is always enough. With ids NULL, cap is not read, and the ids are only
   counted. Returns PYBPE_ERR_LIMIT if there are more than cap: *count is then their number, although this is an error.
   Returns PYBPE_ERR_VALUE for a tokenizer whose pattern the library does not know, and for a byte without a token
   (offset = its position). If cap is below n, or below PYBPE_IDS_ROOM(n) for a tokenizer with a normalizer or
   prefix_space, the call allocates memory for the most ids that n bytes can give: 4 bytes or 52 bytes times n. */
PYBPE_API int pybpe_tokenizer_encode(const pybpe_tokenizer *t, const void *text, size_t n, uint32_t *ids, size_t cap,
                                     size_t *count, pybpe_error *err);

/* Does the same for text that you did not write yourself: all of it is ordinary text, so that nobody can forge a
   special token. */
PYBPE_API int pybpe_tokenizer_encode_ordinary(const pybpe_tokenizer *t, const void *text, size_t n, uint32_t *ids,
                                              size_t cap, size_t *count, pybpe_error *err);

/* Decodes n ids to bytes, and sets *length to their number. `out` has room for cap bytes. With out NULL, cap is not
   read, and the bytes are only counted: do this first, because n does not bound their number. No NUL is written after
   the bytes. Errors are as in pybpe_decode. */
PYBPE_API int pybpe_tokenizer_decode(const pybpe_tokenizer *t, const uint32_t *ids, size_t n, void *out, size_t cap,
                                     size_t *length, pybpe_error *err);

/* The vocabulary, owned by t. */
PYBPE_API const pybpe_vocab *pybpe_tokenizer_vocab(const pybpe_tokenizer *t);

/* ---------------------------------------------------------------------------------------------------
Vocabularies and tokenizer.bin
*/

#define PYBPE_NO_ID 0xFFFFFFFF

/* Reads a tokenizer.json or a tokenizer.bin. The first character decides. Of a tokenizer.json it reads all that
   decides the ids of a text: vocabulary, merges, added tokens with their flags, normalizer and pre_tokenizer. The
   models of docs/models.md, and other combinations of their steps. Anything else is PYBPE_ERR_FORMAT, at the offset
   of the part: Python reads some more, for it compiles any regular expression. truncation, padding and post_processor
   are ignored, so the caller adds the tokens of a template.

   A tokenizer.bin has version 1 or 2, and was written by llm.c or by pybpe. pybpe stores merges, pattern and specials
   after the tokens, where llm.c ignores them (layout: csrc/llmc/tokenizer_bin.h). If a file lacks them, its merges
   are recovered from the order of its ids, as for tiktoken ranks, and eot is its only special. */
PYBPE_API int pybpe_vocab_load(pybpe_vocab **out, const char *path, const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API int pybpe_vocab_load_mem(pybpe_vocab **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                                   pybpe_error *err);
PYBPE_API void pybpe_vocab_free(pybpe_vocab *v);

/* Writes a tokenizer.bin. `version` is 2 or 1. llm.c reads version 1 only if V is 50257 and eot is 50256. Returns
   PYBPE_ERR_LIMIT if the format cannot hold the vocabulary: if an id is unused, a token is longer than 255 bytes, or a
   single byte has no token, or if there are special_flags or a prefix_space. */
PYBPE_API int pybpe_vocab_save(const pybpe_vocab *v, const char *path, int version, pybpe_error *err);

/* Returns the id of the ordinary token (special 0) or the special (special 1) with these bytes, or PYBPE_NO_ID. */
PYBPE_API uint32_t pybpe_vocab_find(const pybpe_vocab *v, const uint8_t *bytes, size_t n, int special);

/* How text is split into words before BPE. A merge never crosses the end of a word. pybpe_train.h has their
   functions. */
enum pybpe_pattern {
    PYBPE_PATTERN_CUSTOM = 0, /* the caller splits the text and passes words: see pybpe_encode_words */
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

/* The Unicode forms. */
enum pybpe_normalizer { PYBPE_NORMALIZER_NONE = 0, PYBPE_NORMALIZER_NFC = 1, PYBPE_NORMALIZER_NFKC = 2 };

/* How a special is matched: the properties of added tokens in Hugging Face's library, with exactly its results. */
enum pybpe_special_flag {
    PYBPE_SPECIAL_LSTRIP = 1,      /* a match includes the white space before it, up to the match before */
    PYBPE_SPECIAL_RSTRIP = 2,      /* a match includes the white space after it */
    PYBPE_SPECIAL_SINGLE_WORD = 4, /* a word character next to the string prevents a match */
    PYBPE_SPECIAL_LATE = 8         /* looked for only between the matches of the others, as if that were a separate
                                      text ("normalized" there) */
};

/* A complete vocabulary, laid out by the caller. Everything is copied. */
typedef struct pybpe_vocab_spec {
    pybpe_strings tokens;     /* the bytes of id 0, 1, ... An empty string is an unused id */
    const uint32_t *merges;   /* (left, right) ids in rank order. The concatenation of a pair is a token */
    size_t merges_count;      /* pairs */
    const uint32_t *specials; /* ids whose tokens are specials, ascending */
    size_t specials_count;
    uint32_t eot_id;      /* the id of the end-of-text token, or PYBPE_NO_ID */
    int32_t pattern;      /* a pybpe_pattern, with or without PYBPE_PATTERN_DIGITS1 or PYBPE_PATTERN_DIGITS3 */
    int32_t normalizer;   /* a pybpe_normalizer */
    const char *custom;   /* the regular expression if pattern is PYBPE_PATTERN_CUSTOM, otherwise NULL */
    int32_t whole_words;  /* 1: a word that is an ordinary token becomes that token, even if merging gives other
    tokens */
    int32_t prefix_space; /* 1: every text between specials, once normalized, gets a space before it, unless it is empty
    or begins with one (add_prefix_space in Hugging Face's library) */
    const uint8_t *special_flags; /* an OR of pybpe_special_flag per special. NULL: no special has flags */
} pybpe_vocab_spec;

/* Returns the vocabulary as it was laid out. All pointers belong to v and are valid as long as v is. */
PYBPE_API pybpe_vocab_spec pybpe_vocab_get_spec(const pybpe_vocab *v);

/* Makes a vocabulary. Returns PYBPE_ERR_VALUE (offset = id or index) if two ordinary tokens or two specials have the
   same bytes, if a merge names anything but two ordinary tokens, or if their concatenation is not an ordinary token.
   Some single bytes, but not all, may lack a token. Encoding a text that needs such a byte is an error. */
PYBPE_API int pybpe_vocab_new(pybpe_vocab **out, const pybpe_vocab_spec *spec, const pybpe_allocator *mem,
                              pybpe_error *err);

/* Recovers merges from the order of ids, lowest first, as tiktoken's rank files imply them. The merge of a token
   joins the two parts that remain after BPE with all lower tokens. A token with more than two parts left can't be
   reached and gets no merge. Writes at most spec->tokens.count pairs (2 ids each) to `merges` and the number of pairs
   to `count`. Ignores spec->merges. */
PYBPE_API int pybpe_vocab_recover_merges(const pybpe_vocab_spec *spec, uint32_t *merges, size_t *count,
                                         const pybpe_allocator *mem, pybpe_error *err);

/* Makes a vocabulary from the content of a .tiktoken file: lines of a token in base64, a space and its id. The spec
   has all but tokens and merges, and special_texts is as above. The merges are those that pybpe_vocab_recover_merges
   finds. Returns PYBPE_ERR_FORMAT for anything unusual, even if it is valid, such as a token that merging does not
   make: the caller must then use a slower reader. */
PYBPE_API int pybpe_vocab_new_ranks(pybpe_vocab **out, const uint8_t *text, size_t n,
                                    const pybpe_strings *special_texts, const pybpe_vocab_spec *spec,
                                    const pybpe_allocator *mem, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Encoding: text -> ids
*/

typedef struct pybpe_encoder pybpe_encoder; /* immutable */
typedef struct pybpe_cache pybpe_cache;     /* one thread at a time */

enum pybpe_encoder_flags { PYBPE_ENCODER_NORMALIZED = 1 }; /* the encoder changes no text */

/* Prepares a vocabulary for encoding. `v` is borrowed. `p`, borrowed, cuts the texts: for a CUSTOM pattern. With NULL
   the library does that, but if it does not know the regular expression (pybpe_pretok_new_regex), the encoder takes
   only words. With a normalizer or prefix_space, the encoder changes the texts between specials accordingly, unless
   `flags` are PYBPE_ENCODER_NORMALIZED: then pass only text that has been changed. pybpe_encode_words and
   pybpe_encode_dropout need such an encoder. */
PYBPE_API int pybpe_encoder_new(pybpe_encoder **out, const pybpe_vocab *v, const pybpe_pretok *p, int flags,
                                const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_encoder_free(pybpe_encoder *e);

/* The specials of the encoder's vocabulary, owned by e. NULL if it has none. */
PYBPE_API const pybpe_specials *pybpe_encoder_specials(const pybpe_encoder *e);

/* The splitter that the encoder uses, owned by e unless it was borrowed. NULL if it has none. */
PYBPE_API const pybpe_pretok *pybpe_encoder_pretok(const pybpe_encoder *e);

/* A cache of the words that one thread has encoded, and its scratch space. Its size is bounded. It belongs to one
   encoder, which is borrowed. Results never depend on the contents of a cache. */
PYBPE_API int pybpe_cache_new(pybpe_cache **out, const pybpe_encoder *e, const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_cache_free(pybpe_cache *c);

/* Encodes text[0..n) and sets *count to the number of tokens. Specials in `s` become their ids. If `s` is NULL, all
   text is ordinary: use this for text that users write, because they could otherwise forge control tokens. `ids` (of
   id_bytes) must have room for cap >= n tokens. With ids NULL the tokens are only counted. Merges are applied in rank
   order within each word. Returns PYBPE_ERR_VALUE if cap < n, if the cache belongs to another encoder, if the pattern
   is CUSTOM, or if the text has a byte without a token (offset = its position). Returns PYBPE_ERR_LIMIT if an id does
   not fit id_bytes. An encoder that normalizes or adds spaces may make a text longer, and returns PYBPE_ERR_LIMIT if
   it could then have more than cap tokens. cap = 12 n is always enough. The offset of a byte without a token is then
   its position in the changed text between two specials, plus the position where that text begins. */
PYBPE_API int pybpe_encode(const pybpe_encoder *e, pybpe_cache *c, const pybpe_specials *s, const uint8_t *text,
                           size_t n, void *ids, int id_bytes, size_t cap, size_t *count, pybpe_error *err);

/* Encodes like pybpe_encode, but the caller has split the text into words: word i is ends[i - 1]..ends[i], the first
   word starts at 0, and n is the last end. Also returns PYBPE_ERR_VALUE (offset = index) if the ends decrease. */
PYBPE_API int pybpe_encode_words(const pybpe_encoder *e, pybpe_cache *c, const uint8_t *text, const size_t *ends,
                                 size_t words, void *ids, int id_bytes, size_t cap, size_t *count, pybpe_error *err);

/* BPE dropout: merges are left out at random. */
typedef struct pybpe_dropout {
    double rate;     /* the probability that a possible merge is passed over, at every step. From 0 to 1 */
    uint64_t seed;   /* the same seed gives the same ids */
    uint64_t offset; /* where `text` begins in the whole text, in bytes */
} pybpe_dropout;

/* Encodes ordinary text with dropout, as Hugging Face's tokenizers do: see csrc/encode/encode_dropout.c. `ids` must
   have room for n tokens. The random numbers of a word depend on the seed and on the word's place in the whole text,
   so a text may be divided at safe cuts. If the pattern is CUSTOM and the encoder has no splitter, the text is one
   word. Whole words (pybpe_vocab_spec.whole_words) are not looked up. Returns PYBPE_ERR_VALUE for a rate that is not
   from 0 to 1, or for a byte without a token (offset = its position). PYBPE_ERR_LIMIT for a word of more than 1.4 GB.
   */
PYBPE_API int pybpe_encode_dropout(const pybpe_encoder *e, const pybpe_dropout *how, const uint8_t *text, size_t n,
                                   uint32_t *ids, size_t *count, pybpe_error *err);

/* Texts anywhere in memory: text i has lengths[i] bytes at starts[i], which may be NULL if there are none. */
typedef struct pybpe_texts {
    const uint8_t *const *starts;
    const size_t *lengths;
    size_t count;
} pybpe_texts;

/* Encodes all of `texts` as pybpe_encode does. `ids` gets the ids of all texts in order. The ids of text i end at
   ends[i], so `ends` must have room for texts->count entries. `cap` must be at least the total number of bytes. The
   offset of an error counts the bytes of all texts. For short texts this is faster than one call per text. After an
   error `ids` and `ends` are undefined. */
PYBPE_API int pybpe_encode_batch(const pybpe_encoder *e, pybpe_cache *c, const pybpe_specials *s,
                                 const pybpe_texts *texts, void *ids, int id_bytes, size_t cap, uint64_t *ends,
                                 pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Decoding: ids -> bytes
*/

/* Decodes n ids (of id_bytes) to bytes and sets *length to the number of bytes. `out` has room for cap bytes. With out
   NULL, cap is not read, and only *length is computed: n times the length of the longest token is its bound. Returns
   PYBPE_ERR_LIMIT if cap is too small (*length is then untouched), and PYBPE_ERR_VALUE (offset = index in ids) for an
   id that is not in the vocabulary. */
PYBPE_API int pybpe_decode(const pybpe_vocab *v, const void *ids, int id_bytes, size_t n, uint8_t *out, size_t cap,
                           size_t *length, pybpe_error *err);

/* Returns the length of the longest prefix of bytes[0..n) that does not end inside a UTF-8 character. While tokens
   stream in, this is the part that can be displayed. n - result is at most 3. */
PYBPE_API size_t pybpe_utf8_complete(const uint8_t *bytes, size_t n);

/* Returns how many bytes at the start of text[0..n) are valid UTF-8 (Unicode 15, Table 3-7): n if all are, otherwise
   the byte offset of the first invalid character. All other functions accept any bytes. Use this one to detect text in
   another encoding. */
PYBPE_API size_t pybpe_utf8_valid(const uint8_t *text, size_t n);

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

/* Opens a shard with a header and checks that its magic, version, count and size are consistent. The file stays open
   until _free. A file without a header (the RAW formats) is PYBPE_ERR_FORMAT. */
PYBPE_API int pybpe_shard_open(pybpe_shard **out, const char *path, const pybpe_allocator *mem, pybpe_error *err);
/* The same for a shard in memory. `data` is borrowed. */
PYBPE_API int pybpe_shard_open_mem(pybpe_shard **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                                   pybpe_error *err);
PYBPE_API void pybpe_shard_free(pybpe_shard *s);

PYBPE_API uint64_t pybpe_shard_count(const pybpe_shard *s); /* tokens */
PYBPE_API int pybpe_shard_id_bytes(const pybpe_shard *s);   /* 2 or 4 */

/* Reads tokens [start, start + n) to ids[0..n). Threads may do so at the same time. Returns PYBPE_ERR_VALUE (offset =
   start) if the range exceeds the shard, and PYBPE_ERR_IO or PYBPE_ERR_FORMAT if the file cannot be read any more, or
   has become shorter. The ids are not compared with a vocabulary: they are any values of the format's type. */
PYBPE_API int pybpe_shard_read(const pybpe_shard *s, uint64_t start, size_t n, uint32_t *ids, pybpe_error *err);

typedef struct pybpe_shard_writer pybpe_shard_writer;

/* Starts a shard. The complete file appears at `path` when _finish is called. */
PYBPE_API int pybpe_shard_writer_new(pybpe_shard_writer **out, const char *path, int format, const pybpe_allocator *mem,
                                     pybpe_error *err);

/* Appends n tokens (of id_bytes). Returns PYBPE_ERR_LIMIT (offset = index in ids) for an id that the format's type
   cannot hold, or if the file would exceed PYBPE_SHARD_MAX_BYTES. In both cases it writes nothing. */
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
   of `world`. If shuffle is not 0, it permutes the shards, and the samples within every shard, exactly as llm.c does
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
   returns PYBPE_ERR_VALUE for more than 10^9 batches. That many take several seconds. */
PYBPE_API int pybpe_loader_seek(pybpe_loader *l, uint64_t batches, pybpe_error *err);

PYBPE_API uint64_t pybpe_loader_tokens(const pybpe_loader *l);  /* in all shards */
PYBPE_API uint64_t pybpe_loader_batches(const pybpe_loader *l); /* per epoch and process */
PYBPE_API size_t pybpe_loader_shards(const pybpe_loader *l);

/* pybpe: end cdef */

#ifdef __cplusplus
}
#endif
#endif
