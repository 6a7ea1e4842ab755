/*
pybpe: byte-level BPE tokenizers and llm.c token files, in C11.

This is the only public header, and it is the documentation of the C library. The region between the
two marker comments below is also what the Python binding is generated from (csrc/cffi_build.py), so
it holds plain declarations only: no macros beyond integer constants, no attributes, no inline code.

Conventions, for every function:
- Names are pybpe_noun_verb, the object first. Handles are opaque.
- A fallible function returns PYBPE_OK (0) or a negative pybpe_code and, if `err` is not NULL, fills it.
  On an error outputs are NULL or untouched, and inputs are unchanged; a buffer that was to be filled may hold anything.
- `_new`, `_load` and `_open` make a handle; `_free` takes NULL too. "Borrowed" arguments are used, not
  copied, and must outlive the handle.
- `mem` is the allocator of the handle and of everything it makes; NULL means malloc and free.
- Handles documented as immutable may be shared by threads without a lock. All others belong to one
  thread at a time.
- Text is bytes: any bytes. Nothing here requires valid UTF-8 or a terminating NUL.
- ids are uint32_t, byte sizes size_t, occurrence counts uint64_t. A buffer "of id_bytes" holds uint16_t
  (id_bytes 2) or uint32_t (id_bytes 4) tokens in the machine's byte order.
- No function prints, exits, aborts, or keeps state outside its handles.
*/
#ifndef PYBPE_H
#define PYBPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
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
    PYBPE_ERR_FORMAT = -3, /* a file's content is not what its format demands: see offset */
    PYBPE_ERR_VALUE = -4,  /* an argument is outside what the function accepts */
    PYBPE_ERR_LIMIT = -5   /* valid, but more than the target or this library can hold */
};

/* One error. `msg` is one line of UTF-8 that says what was wrong, where, and what to do. */
typedef struct pybpe_error {
    int32_t code;      /* a pybpe_code */
    int32_t sys_errno; /* errno of the failed system call, or 0 */
    uint64_t offset;   /* byte offset in the file or input, or index in an array; 0 if neither applies */
    char msg[496];     /* always terminated */
} pybpe_error;

/* Where memory comes from. `resize` acts as realloc does: ptr NULL allocates; size 0 frees and returns
   NULL; on failure it returns NULL and ptr stays valid. It may be called by several threads at once if
   handles made with it are used so. */
typedef struct pybpe_allocator {
    void *(*resize)(void *context, void *ptr, size_t size);
    void *context;
} pybpe_allocator;

/* A list of byte strings laid end to end: string i is bytes[offsets[i]] up to bytes[offsets[i + 1]],
   so offsets has count + 1 entries, never descends, and starts at 0. Functions that take such a list check this
   first: PYBPE_ERR_VALUE, offset = index. With count 0 neither pointer is read. */
typedef struct pybpe_strings {
    const uint8_t *bytes;
    const uint64_t *offsets;
    size_t count;
} pybpe_strings;

/* "0.1.0": the version of this library. Static. */
const char *pybpe_version(void);

/* "18.0.0": the version of the Unicode tables that the patterns use. Static. */
const char *pybpe_unicode_version(void);

/* What the patterns know of a code point, as a sum of: 1 Lu or Lt, 2 Ll, 4 Lm or Lo, 8 M, 16 N, 32 white space,
   64 CR or LF. 0 is any other, also what is no code point. */
int pybpe_unicode_class(uint32_t code_point);

/* ---------------------------------------------------------------------------------------------------
Output files: the complete old file or the complete new one, never a torn one
*/

typedef struct pybpe_output pybpe_output;

/* Opens a temporary file beside `path` for writing. Nothing named `path` changes before _commit. If `path` is a link,
   the file that it points to is what is written. Refused: folders, devices, and streams such as /dev/stdout. */
int pybpe_output_open(pybpe_output **out, const char *path, const pybpe_allocator *mem, pybpe_error *err);

/* Appends n bytes. After an error only _discard is left to call. */
int pybpe_output_write(pybpe_output *o, const void *data, size_t n, pybpe_error *err);

/* Overwrites n bytes at `offset`, all of which must have been written before (headers). */
int pybpe_output_patch(pybpe_output *o, uint64_t offset, const void *data, size_t n, pybpe_error *err);

/* Flushes to the disk, renames the temporary file to `path`, flushes the folder, and frees `o`. On an
   error the temporary file is removed, `path` is as it was, and `o` is freed too; but if only the folder
   could not be flushed, `path` is the complete new file, which a power loss may turn into the old one. */
int pybpe_output_commit(pybpe_output *o, pybpe_error *err);

/* Removes the temporary file and frees `o`. `path` is as it was. */
void pybpe_output_discard(pybpe_output *o);

/* ---------------------------------------------------------------------------------------------------
Normalization: Unicode's forms NFC and NFKC, as Hugging Face's tokenizers has them
*/

enum pybpe_normalizer { PYBPE_NORMALIZER_NONE = 0, PYBPE_NORMALIZER_NFC = 1, PYBPE_NORMALIZER_NFKC = 2 };

/* "9.0.0": the version of the Unicode tables that the normalizers use. It is Hugging Face's, not that of the patterns,
   because the same normalizer must give the same ids there. Static. */
const char *pybpe_normalizer_unicode_version(void);

/* Normalizes text[0..n) to NFC or NFKC. If that changes nothing for certain, *out is NULL and *length is n: use the text
   itself. Else *out is a new text of *length bytes, which _free frees. Bytes that are not valid UTF-8 stay as they are;
   marks neither compose nor change places across them. NFC makes a text at most 3 times as long, NFKC 11 times. Costs
   O(n) on every text. In a text with specials, normalize what is between them. */
int pybpe_normalize(uint8_t **out, size_t *length, int normalizer, const uint8_t *text, size_t n,
                    const pybpe_allocator *mem, pybpe_error *err);
void pybpe_normalize_free(uint8_t *out, const pybpe_allocator *mem);

/* ---------------------------------------------------------------------------------------------------
Patterns: how text is cut into words before BPE. A merge never crosses the end of a word.
*/

enum pybpe_pattern {
    PYBPE_PATTERN_CUSTOM = 0, /* cut by the caller, who passes words; see pybpe_encode_words */
    PYBPE_PATTERN_GPT2 = 1,   /* GPT-2, also known as r50k */
    PYBPE_PATTERN_CL100K = 2, /* GPT-4 */
    PYBPE_PATTERN_O200K = 3,  /* GPT-4o */
    PYBPE_PATTERN_LLAMA3 = 4,
    PYBPE_PATTERN_QWEN2 = 5,
    PYBPE_PATTERN_DIGITS1 = 256 /* added to one of the above: every digit is a word of its own */
};

/* The pattern of a name ("gpt2", "r50k", "cl100k", "gpt4", "o200k", "llama3", "qwen2"; lower case), or
   PYBPE_ERR_VALUE. */
int pybpe_pattern_find(const char *name);

/* The regular expression that `pattern` stands for, as the Python package `regex` takes it, or NULL for
   CUSTOM and unknown values. Static. Splitting with it gives exactly the words of pybpe_pretok_split. */
const char *pybpe_pattern_regex(int pattern);

typedef struct pybpe_pretok pybpe_pretok; /* immutable */

/* A splitter for one pattern (not CUSTOM), using the widest vector instructions of this machine. The
   environment variable PYBPE_SIMD (avx512, avx2, swar) forces a narrower choice; all give equal words. */
int pybpe_pretok_new(pybpe_pretok **out, int pattern, const pybpe_allocator *mem, pybpe_error *err);
void pybpe_pretok_free(pybpe_pretok *p);

/* The vector instructions in use: "avx512", "avx2" or "swar". Static. */
const char *pybpe_pretok_simd(const pybpe_pretok *p);

/* Cuts text[pos..n) into words; `pos` must be 0 or the end of a word. Writes the ends of the next words
   (offsets from `text`, ascending) to ends[0..cap), and returns how many: the words are ends[i-1]..ends[i],
   the first starts at pos. Returns 0 only if pos == n. `cap` must be at least 64; fewer than cap may be
   written though text is left: call again from the last end. Bytes that are not valid UTF-8 count as
   characters of class "other", one per byte. */
size_t pybpe_pretok_split(const pybpe_pretok *p, const uint8_t *text, size_t n, size_t pos, size_t *ends, size_t cap);

/* How many bytes at the start of text[0..n) are valid UTF-8 (Unicode 15, Table 3-7): n if all are, else the place of the
   first character that is not. Every other function takes any bytes; this one is for telling that a text is in another
   encoding. */
size_t pybpe_utf8_valid(const uint8_t *text, size_t n);

/* ---------------------------------------------------------------------------------------------------
Special tokens: strings that are found before the pattern is applied, and are never split
*/

typedef struct pybpe_specials pybpe_specials; /* immutable */

/* A matcher for strings[i] -> ids[i]. Strings must be distinct and not empty (PYBPE_ERR_VALUE, offset =
   index). Costs O(total length). */
int pybpe_specials_new(pybpe_specials **out, const pybpe_strings *strings, const uint32_t *ids,
                       const pybpe_allocator *mem, pybpe_error *err);
void pybpe_specials_free(pybpe_specials *s);

/* Finds the first special in text[from..n): the leftmost, and of those that start there the longest.
   Returns 1 and sets start, end and id, or returns 0 and leaves them. Costs O(1) per byte that is read: up to the end of
   the special, and after it as long as a longer one may follow. To find all specials of a text call _find_all. */
int pybpe_specials_find(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, size_t *start, size_t *end,
                        uint32_t *id);

/* Finds all specials in text[from..n): what _find finds from `from`, then from the end of that one, and so on. Writes
   start and end of each to `spans` and its id to `ids`, up to `cap` of them, and returns how many. If that is cap, call
   again from the last end. Costs O(1) per byte of text whatever the strings are, plus O(longest string) per call. It
   may take memory, as much as 4 times the longest string; without that memory it returns the same, more slowly. */
size_t pybpe_specials_find_all(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, size_t *spans,
                               uint32_t *ids, size_t cap);

/* The smallest cut c, from <= c < n, at which text can be cut in two parts that are then worked on
   separately with the same result as the whole, whatever follows text[n); or n if it has none. 0 counts
   as a cut. text must itself begin at a cut or at the start of the input. `s` may be NULL. Costs O(1) per byte
   from `from` minus the longest special to the cut. */
size_t pybpe_text_cut(const pybpe_pretok *p, const pybpe_specials *s, const uint8_t *text, size_t n, size_t from);

/* ---------------------------------------------------------------------------------------------------
Counting: text -> distinct words and how often each occurs
*/

typedef struct pybpe_counter pybpe_counter;

/* An empty table. `p` may be NULL if only _add_words and _merge are used; `s` may be NULL. Both borrowed. */
int pybpe_counter_new(pybpe_counter **out, const pybpe_pretok *p, const pybpe_specials *s, const pybpe_allocator *mem,
                      pybpe_error *err);
void pybpe_counter_free(pybpe_counter *c);

/* Counts the words of one piece of text: a whole text, or what lies between two cuts of one (see
   pybpe_text_cut). Specials inside it separate words and are not counted. After an error the table holds
   an unspecified part of the piece and may only be freed. */
int pybpe_counter_add(pybpe_counter *c, const uint8_t *text, size_t n, pybpe_error *err);

/* Counts words that were cut elsewhere. counts[i] is added for words string i; counts NULL adds 1 each.
   Empty words are ignored. PYBPE_ERR_LIMIT if the count of a word passes 2^64 - 1; after an error as in _add. */
int pybpe_counter_add_words(pybpe_counter *c, const pybpe_strings *words, const uint64_t *counts, pybpe_error *err);

/* Adds all counts of src to dst. After an error dst may only be freed. */
int pybpe_counter_merge(pybpe_counter *dst, const pybpe_counter *src, pybpe_error *err);

/* The same, but moves: src, another counter, is empty afterwards. Much faster between counters of the same
   pybpe_pretok. Both must have the same allocator. After an error both may only be freed. */
int pybpe_counter_absorb(pybpe_counter *dst, pybpe_counter *src, pybpe_error *err);

/* Makes room for `words` distinct words in all: the table need not grow on the way there. */
int pybpe_counter_reserve(pybpe_counter *c, size_t words, pybpe_error *err);

typedef struct pybpe_counter_stats {
    uint64_t words;  /* distinct words */
    uint64_t bytes;  /* their total length */
    uint64_t total;  /* occurrences: the sum of the counts, modulo 2^64 */
    uint64_t memory; /* bytes that the table holds now */
} pybpe_counter_stats;

pybpe_counter_stats pybpe_counter_get_stats(const pybpe_counter *c);

/* Copies the table out: bytes has room for stats.bytes, offsets for stats.words + 1, counts for
   stats.words. The order is unspecified. */
void pybpe_counter_export(const pybpe_counter *c, uint8_t *bytes, uint64_t *offsets, uint64_t *counts);

/* ---------------------------------------------------------------------------------------------------
Training: words and counts -> merges
*/

enum pybpe_tie_break {
    PYBPE_TIE_LEXICOGRAPHIC = 0, /* of equally frequent pairs, the greatest (left bytes, right bytes) */
    PYBPE_TIE_HUGGINGFACE = 1    /* of equally frequent pairs, the lowest (left id, right id) of HF's numbering */
};

/* Tokens are numbered 0-255 for the bytes, then in the order of their creation. */
typedef struct pybpe_train_config {
    uint32_t vocab_size;         /* stop at this many tokens: 256 bytes and the merged ones, without specials */
    uint32_t max_token_length;   /* in bytes; longer tokens are never made; at least 1 */
    uint64_t min_frequency;      /* pairs that occur less often are never merged; 0 and 1 are the same */
    int32_t tie_break;           /* a pybpe_tie_break */
    const uint32_t *base_merges; /* (left, right) ids, applied first in this order; may be NULL. Borrowed. */
    size_t base_merges_count;
} pybpe_train_config;

typedef struct pybpe_trainer pybpe_trainer;

/* Takes words with their counts. The words are copied; the caller may free them afterwards.
   PYBPE_ERR_LIMIT if the words are more than 4 GiB - 1 in total. */
int pybpe_trainer_new(pybpe_trainer **out, const pybpe_strings *words, const uint64_t *counts,
                      const pybpe_train_config *config, const pybpe_allocator *mem, pybpe_error *err);
void pybpe_trainer_free(pybpe_trainer *t);

/* Merges until about `budget` occurrences have been rewritten (2^20 take a few ms), or training is done,
   which sets *done to 1. The steps' sizes do not influence the result. */
int pybpe_trainer_step(pybpe_trainer *t, size_t budget, int *done, pybpe_error *err);

/* The merges so far: *merges points to count triples (left, right, merged id), owned by t and valid until
   the next step. The merged id is that of an earlier token if one has the same bytes. */
size_t pybpe_trainer_merges(const pybpe_trainer *t, const uint32_t **merges);

/* The number of tokens so far, 256 bytes included. For a vocabulary of them see pybpe_trainer_vocab. */
uint32_t pybpe_trainer_tokens(const pybpe_trainer *t);

/* ---------------------------------------------------------------------------------------------------
Vocabularies and tokenizer.bin
*/

#define PYBPE_NO_ID 0xFFFFFFFF

/* Everything a vocabulary is, as the caller lays it out. All of it is copied. */
typedef struct pybpe_vocab_spec {
    pybpe_strings tokens;     /* the bytes of id 0, 1, ...; an empty string is an unused id */
    const uint32_t *merges;   /* (left, right) ids in rank order; their concatenation is a token */
    size_t merges_count;      /* pairs */
    const uint32_t *specials; /* ids whose tokens are specials, ascending */
    size_t specials_count;
    uint32_t eot_id;     /* the end-of-text token, or PYBPE_NO_ID */
    int32_t pattern;     /* a pybpe_pattern, with or without PYBPE_PATTERN_DIGITS1 */
    int32_t normalizer;  /* a pybpe_normalizer */
    const char *custom;  /* the regular expression if pattern is PYBPE_PATTERN_CUSTOM, else NULL */
    int32_t whole_words; /* 1: a word that is an ordinary token becomes that token, even if merges give others */
} pybpe_vocab_spec;

typedef struct pybpe_vocab pybpe_vocab; /* immutable */

/* Which ids the special tokens of a trained vocabulary get. */
enum pybpe_special_ids {
    PYBPE_SPECIALS_FIRST = 0,       /* specials, bytes, merged tokens: specials keep their ids whatever is trained */
    PYBPE_SPECIALS_AFTER_BYTES = 1, /* bytes, specials, merged tokens */
    PYBPE_SPECIALS_LAST = 2         /* bytes, merged tokens, specials, as in GPT-2 */
};

/* What a trained vocabulary has besides the trainer's tokens. All of it is copied. */
typedef struct pybpe_vocab_layout {
    pybpe_strings specials; /* the special tokens in the order of their ids; none if count is 0 */
    int32_t special_ids;    /* a pybpe_special_ids */
    uint32_t eot;           /* which of the specials ends a text: its index; PYBPE_NO_ID: none */
    int32_t pattern;        /* as in pybpe_vocab_spec: that of the counter which gave the words */
    int32_t normalizer;     /* as in pybpe_vocab_spec: what was applied before counting */
    const char *custom;     /* as in pybpe_vocab_spec */
} pybpe_vocab_layout;

/* The vocabulary of what `t` has merged so far, as Python's pybpe.train lays it out. With PYBPE_TIE_HUGGINGFACE the bytes
   are in Hugging Face's order, else in that of their values. The trainer may go on afterwards. PYBPE_ERR_VALUE (offset
   = index) for an empty or repeated special, and for what pybpe_vocab_new refuses. */
int pybpe_trainer_vocab(pybpe_vocab **out, const pybpe_trainer *t, const pybpe_vocab_layout *layout,
                        const pybpe_allocator *mem, pybpe_error *err);

/* PYBPE_ERR_VALUE (offset = id or index) if two ordinary tokens or two specials have the same bytes, or a merge
   names other than ordinary tokens, whose concatenation is one. Single bytes, but not all, may have no token; a
   text that needs one of them cannot be encoded. */
int pybpe_vocab_new(pybpe_vocab **out, const pybpe_vocab_spec *spec, const pybpe_allocator *mem, pybpe_error *err);
void pybpe_vocab_free(pybpe_vocab *v);

/* Reads a tokenizer.bin, version 1 or 2, of llm.c or ours. Ours carries merges, pattern and specials
   behind the tokens, where llm.c ignores them (layout: csrc/tokenizer_bin.h). A file without them decodes, and
   has its merges recovered from the order of its ids, as tiktoken ranks are, with eot as its special. */
int pybpe_vocab_load(pybpe_vocab **out, const char *path, const pybpe_allocator *mem, pybpe_error *err);
int pybpe_vocab_load_mem(pybpe_vocab **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                         pybpe_error *err);

/* Writes a tokenizer.bin of `version` 2, or 1, which llm.c only reads if V is 50257 and eot 50256.
   PYBPE_ERR_LIMIT for an unused id, a token longer than 255 bytes, or a single byte that is no token, which the
   format cannot hold. */
int pybpe_vocab_save(const pybpe_vocab *v, const char *path, int version, pybpe_error *err);

/* The vocabulary as it was laid out; all pointers belong to v and live as long as it. */
pybpe_vocab_spec pybpe_vocab_get_spec(const pybpe_vocab *v);

/* The id of an ordinary token (special 0) or a special (1) with these bytes, or PYBPE_NO_ID. */
uint32_t pybpe_vocab_find(const pybpe_vocab *v, const uint8_t *bytes, size_t n, int special);

/* Recovers merges from the order of ids, lowest first, as tiktoken's rank files imply them: the two
   parts into which BPE with all lower tokens leaves each token. Tokens that stay in more than two parts
   can't be reached and get no merge. Writes at most spec->tokens.count pairs (2 ids each) to `merges`, and
   their number to `count`. spec->merges is ignored. */
int pybpe_vocab_recover_merges(const pybpe_vocab_spec *spec, uint32_t *merges, size_t *count,
                               const pybpe_allocator *mem, pybpe_error *err);

/* Finds in the text of a tokenizer.json its two large parts: the object model.vocab is text[spans[0]..spans[1]), the
   array model.merges text[spans[2]..spans[3]). Returns 1, or 0 if they are not both there, once, in what seems to
   be a JSON object; the rest of the text is not checked. */
int pybpe_tokenizer_json_find(const uint8_t *text, size_t n, size_t spans[4]);

/* The vocabulary of a spec whose tokens and merges are not in it, but in those two texts. The specials, which may be in
   the vocabulary or not, have special_texts, in the order of spec->specials, all of them tokens that are not empty.
   PYBPE_ERR_FORMAT for anything unusual, although it may be right: a slower reader must look at it then. */
int pybpe_vocab_new_json(pybpe_vocab **out, const uint8_t *vocab, size_t vocab_n, const uint8_t *merges,
                         size_t merges_n, const pybpe_strings *special_texts, const pybpe_vocab_spec *spec,
                         const pybpe_allocator *mem, pybpe_error *err);

/* Decodes n ids (of id_bytes) to bytes. *length is set to the number of bytes; out NULL only sizes. out
   has room for cap bytes; PYBPE_ERR_LIMIT if that is too few. An id that is not in the vocabulary gives
   PYBPE_ERR_VALUE, with its position in err->offset. */
int pybpe_decode(const pybpe_vocab *v, const void *ids, int id_bytes, size_t n, uint8_t *out, size_t cap,
                 size_t *length, pybpe_error *err);

/* The length of the longest prefix of bytes[0..n) that does not end inside a UTF-8 character: what can be
   shown now while tokens stream in. n - result is at most 3. */
size_t pybpe_utf8_complete(const uint8_t *bytes, size_t n);

/* ---------------------------------------------------------------------------------------------------
Encoding: text -> ids
*/

typedef struct pybpe_encoder pybpe_encoder; /* immutable */
typedef struct pybpe_cache pybpe_cache;     /* one thread at a time */

/* Prepares a vocabulary for encoding. `v` is borrowed. */
int pybpe_encoder_new(pybpe_encoder **out, const pybpe_vocab *v, const pybpe_allocator *mem, pybpe_error *err);
void pybpe_encoder_free(pybpe_encoder *e);

/* The specials of the encoder's vocabulary, owned by e; NULL if it has none. */
const pybpe_specials *pybpe_encoder_specials(const pybpe_encoder *e);

/* The splitter of the encoder's pattern, owned by e; NULL if it is CUSTOM. */
const pybpe_pretok *pybpe_encoder_pretok(const pybpe_encoder *e);

/* What one thread remembers of the words it has seen, and its scratch space. Bounded in size. Of one
   encoder, which is borrowed. Results never depend on what a cache holds. */
int pybpe_cache_new(pybpe_cache **out, const pybpe_encoder *e, const pybpe_allocator *mem, pybpe_error *err);
void pybpe_cache_free(pybpe_cache *c);

/* Encodes text[0..n). Specials in `s` become their ids. With s NULL all text is ordinary: right for what a user wrote,
   who could forge control tokens otherwise. ids (of id_bytes) must have room for cap >= n tokens, or be NULL, which only
   counts; *count is set. Merges are applied in rank order within each word. PYBPE_ERR_VALUE if cap < n, if the cache is
   of another encoder, if the pattern is CUSTOM, or if the text has a byte without a token (offset = its place);
   PYBPE_ERR_LIMIT if an id does not fit id_bytes. The normalizer is not applied: if pybpe_vocab_get_spec(v).normalizer is not NONE, the ids are right only for text in that form, which
   pybpe_normalize gives (ASCII always is). */
int pybpe_encode(const pybpe_encoder *e, pybpe_cache *c, const pybpe_specials *s, const uint8_t *text, size_t n,
                 void *ids, int id_bytes, size_t cap, size_t *count, pybpe_error *err);

/* The same for words that were cut by the caller: word i is ends[i - 1]..ends[i], the first starts at 0,
   and n is the last end. PYBPE_ERR_VALUE, offset = index, too if the ends descend. */
int pybpe_encode_words(const pybpe_encoder *e, pybpe_cache *c, const uint8_t *text, const size_t *ends, size_t words,
                       void *ids, int id_bytes, size_t cap, size_t *count, pybpe_error *err);

/* Encodes each of `texts` as pybpe_encode does. The ids of all go to `ids`, one text after the other; text i ends at
   ends[i], so `ends` has room for texts->count. `cap` is at least the bytes of all texts. Faster than a call for each,
   if they are short. After an error `ids` and `ends` are undefined. */
int pybpe_encode_batch(const pybpe_encoder *e, pybpe_cache *c, const pybpe_specials *s, const pybpe_strings *texts,
                       void *ids, int id_bytes, size_t cap, uint64_t *ends, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Documents in a stream of tokens
*/

/* Where the mark, the end-of-text id, stands around each document. */
enum pybpe_marks { PYBPE_MARKS_NONE = 0, PYBPE_MARKS_PREPEND = 1, PYBPE_MARKS_APPEND = 2 };

/* How many of ids[0..n) (of id_bytes) are `id`. */
size_t pybpe_ids_count(const void *ids, int id_bytes, size_t n, uint32_t id);

/* Copies a piece of a stream in which marks separate documents, and leaves one mark a document, or none, as `mode`
   (a pybpe_marks) says. *is_open is whether a document goes on at the start of the piece, and then at its end; one
   that is open when the stream ends lacks its appended mark. `out` has room for n + 1 ids, and is not `ids`;
   `starts` for one more than there are marks in ids. starts[0..*documents) is set to where in `out` documents
   begin, their mark included. Returns the number of ids. */
size_t pybpe_marks_place(const void *ids, int id_bytes, size_t n, uint32_t mark, int mode, int *is_open, void *out,
                         uint64_t *starts, size_t *documents);

/* ---------------------------------------------------------------------------------------------------
Token shards: llm.c's .bin files of tokens
*/

enum pybpe_shard_format {
    PYBPE_SHARD_UINT16 = 1,     /* llm.c, GPT-2: magic 20240520, version 1, uint16 */
    PYBPE_SHARD_UINT32 = 2,     /* llm.c, Llama 3: magic 20240801, version 7, uint32 */
    PYBPE_SHARD_RAW_UINT16 = 3, /* nanoGPT: no header, uint16 */
    PYBPE_SHARD_RAW_UINT32 = 4  /* no header, uint32 */
};

#define PYBPE_SHARD_HEADER_BYTES 1024
/* llm.c seeks with a 32-bit int, so a file of 2 GiB or more is out of its reach. */
#define PYBPE_SHARD_MAX_BYTES 2147483647

typedef struct pybpe_shard pybpe_shard; /* immutable */

/* Opens a shard with a header and checks magic, version, count and size against each other. */
int pybpe_shard_open(pybpe_shard **out, const char *path, const pybpe_allocator *mem, pybpe_error *err);
/* The same for a shard in memory, which is borrowed. */
int pybpe_shard_open_mem(pybpe_shard **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                         pybpe_error *err);
void pybpe_shard_free(pybpe_shard *s);

uint64_t pybpe_shard_count(const pybpe_shard *s); /* tokens */
int pybpe_shard_id_bytes(const pybpe_shard *s);   /* 2 or 4 */

/* Reads tokens start .. start + n as uint32_t. PYBPE_ERR_VALUE if they are not all inside. */
int pybpe_shard_read(const pybpe_shard *s, uint64_t start, size_t n, uint32_t *ids, pybpe_error *err);

typedef struct pybpe_shard_writer pybpe_shard_writer;

/* Starts a shard at `path`, which appears, complete, at _finish. */
int pybpe_shard_writer_new(pybpe_shard_writer **out, const char *path, int format, const pybpe_allocator *mem,
                           pybpe_error *err);

/* Appends n tokens (of id_bytes). PYBPE_ERR_LIMIT (offset = index in ids) for an id that the format's
   type cannot hold, or when the file would pass PYBPE_SHARD_MAX_BYTES; nothing of this call is written. */
int pybpe_shard_writer_write(pybpe_shard_writer *w, const void *ids, int id_bytes, size_t n, pybpe_error *err);

/* Completes the file and frees w, also on an error, which leaves `path` as it was. */
int pybpe_shard_writer_finish(pybpe_shard_writer *w, pybpe_error *err);
void pybpe_shard_writer_discard(pybpe_shard_writer *w);

/* ---------------------------------------------------------------------------------------------------
DataLoader: batches from shards, in the order of llm.c's llmc/dataloader.h
*/

typedef struct pybpe_loader pybpe_loader;

/* Serves the shards that match the glob pattern, in glob order, to process `rank` of `world`, in batches
   of (B, T) tokens. shuffle != 0 permutes shards, and samples within a shard, exactly as llm.c does
   (mt19937 seeded with 42 + rank). PYBPE_ERR_LIMIT if a shard has fewer than world*B*T + 1 tokens. */
int pybpe_loader_new(pybpe_loader **out, const char *pattern, size_t B, size_t T, int rank, int world, int shuffle,
                     const pybpe_allocator *mem, pybpe_error *err);
void pybpe_loader_free(pybpe_loader *l);

/* The next batch: inputs (B, T) and targets (B, T), the latter shifted by one token. Never ends: after
   the last shard the next epoch begins. */
int pybpe_loader_next(pybpe_loader *l, int32_t *inputs, int32_t *targets, pybpe_error *err);

/* Back to the start, as llm.c's dataloader_reset: with shuffle, a new permutation is drawn. */
int pybpe_loader_reset(pybpe_loader *l, pybpe_error *err);

/* To the state in which a new loader is after `batches` calls of _next, permutations included. With
   shuffle, PYBPE_ERR_VALUE beyond 10^9 batches, which take some seconds. */
int pybpe_loader_seek(pybpe_loader *l, uint64_t batches, pybpe_error *err);

uint64_t pybpe_loader_tokens(const pybpe_loader *l);  /* in all shards */
uint64_t pybpe_loader_batches(const pybpe_loader *l); /* per epoch and process */
size_t pybpe_loader_shards(const pybpe_loader *l);

/* pybpe: end cdef */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
