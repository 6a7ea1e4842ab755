/*
The second header of pybpe: how text becomes words, and words become a vocabulary. pybpe.h has the conventions.

    patterns        how text is split into words, and where it can be cut
    specials        strings that are found before that
    normalization   the Unicode forms NFC and NFKC
    counting        text -> distinct words and their numbers
    training        words and their numbers -> merges -> a vocabulary
*/
#ifndef PYBPE_TRAIN_LIBRARY_H
#define PYBPE_TRAIN_LIBRARY_H

#include "pybpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* pybpe: begin cdef */

/* ---------------------------------------------------------------------------------------------------
Patterns: how text is split into words before BPE. A merge never crosses a word boundary.
*/

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
   avx512, avx2, neon (on AArch64) or swar (8 bytes at a time, on any machine). The environment variable PYBPE_SIMD
   with one of these names forces a narrower set. A set that the machine lacks is ignored. Another value is
   PYBPE_ERR_VALUE, here and wherever a splitter is made. All sets give the same words. A library that is compiled with
   -DPYBPE_NO_AVX512 has no code for avx512, and one that is compiled with -DPYBPE_NO_AVX has none for avx2 either. */
PYBPE_API int pybpe_pretok_new(pybpe_pretok **out, int pattern, const pybpe_allocator *mem, pybpe_error *err);

/* A regular expression, compiled to a deterministic automaton that reads classes of characters. A state has a row
   of classes + 2 entries: one per class, one for a newline (U+000A) that is the last character of the text, and
   one for the end of the text. An entry is the next state, plus 0x8000 if a match may end before the character. The
   match ends at the last such place. State 0 is dead: all its entries are 0. A match begins in state 1, and is never
   empty. No entry leads to state 1. After the end of the text only state 0 follows. There may be at most 250 classes
   and 4096 states. */
typedef struct pybpe_automaton {
    const uint32_t *first;   /* ascending code points, from 0: where a range of one class begins */
    const uint8_t *class_of; /* the class of every range. A byte that is not valid UTF-8 has the class of U+DC80 */
    size_t ranges;
    uint32_t classes, states;
    const uint16_t *next; /* the rows of all states */
    int bytes;            /* not 0: it reads bytes, not characters. Byte i has the class of code point i */
} pybpe_automaton;

/* Creates a splitter for an automaton. Copies the tables. Text between two matches is a word too. Returns
   PYBPE_ERR_VALUE if a table is wrong. Encoding and counting with it take linear time on every text. While it looks
   far ahead without finding a match, splitting takes memory in proportion to that distance. If this memory is not
   available, the words are the same, but finding them may take longer. */
PYBPE_API int pybpe_pretok_new_automaton(pybpe_pretok **out, const pybpe_automaton *tables, const pybpe_allocator *mem,
                                         pybpe_error *err);

/* Creates a splitter from `count` others (2 to 16), which are borrowed. The first one splits the text into pieces, the
   second one splits every piece as a separate text, and so on. Returns PYBPE_ERR_VALUE for another count,
   if one of them is itself such a sequence, or if one that reads characters follows one that reads bytes. */
PYBPE_API int pybpe_pretok_new_sequence(pybpe_pretok **out, const pybpe_pretok *const *steps, size_t count,
                                        const pybpe_allocator *mem, pybpe_error *err);

/* Creates a splitter for a regular expression that the library knows, in the syntax of the Python package `regex`:
   that of a pattern above, or one of those that the models in docs/models.md use (csrc/pretok/known_data.h). With
   (?then) between several it splits with one after the other; (?bytes) before one makes it read bytes. Returns
   PYBPE_ERR_VALUE for any other: the library has no compiler of regular expressions. */
PYBPE_API int pybpe_pretok_new_regex(pybpe_pretok **out, const char *regex, const pybpe_allocator *mem,
                                     pybpe_error *err);
PYBPE_API void pybpe_pretok_free(pybpe_pretok *p);

/* Returns 1 if pybpe_text_cut can find cuts, 0 for a splitter that allows none. */
PYBPE_API int pybpe_pretok_has_cuts(const pybpe_pretok *p);

/* The vector instructions in use: "avx512", "avx2", "neon" or "swar". Static. */
PYBPE_API const char *pybpe_pretok_simd(const pybpe_pretok *p);

/* Splits text[pos..n) into words. `pos` must be 0 or the end of a word. Writes the ends of the next words (offsets
   from `text`, ascending) to ends[0..cap) and returns how many it wrote. Word i is ends[i-1]..ends[i]. The first word
   starts at pos. Returns 0 only if pos == n. `cap` must be at least 64. The function may write fewer than cap ends
   even if text remains: call it again from the last end. A byte that is not valid UTF-8 counts as one character of
   class "other". A splitter from pybpe_pretok_new_sequence begins at text[0] in every call: double `cap` from call to
   call, so that splitting a text takes linear time. */
PYBPE_API size_t pybpe_pretok_split(const pybpe_pretok *p, const uint8_t *text, size_t n, size_t pos, size_t *ends,
                                    size_t cap);

/* ---------------------------------------------------------------------------------------------------
Special tokens: strings that are matched before the pattern is applied and are never split
*/

/* Creates a matcher for strings[i] -> ids[i]. Strings must be distinct and not empty (PYBPE_ERR_VALUE, offset =
   index). `flags` has an OR of the PYBPE_SPECIAL_ flags per item, or is NULL. Takes O(total length) time. Also returns
   PYBPE_ERR_VALUE (offset = id) if a special with RSTRIP and another one that begins with white space, or not with
   UTF-8, are looked for together. With flags, _find and _find_all match text[from..n) as a separate text. So if
   _find_all returns `cap`, call it again with the same `from` and a larger cap. */
PYBPE_API int pybpe_specials_new(pybpe_specials **out, const pybpe_strings *strings, const uint32_t *ids,
                                 const uint8_t *flags, const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_specials_free(pybpe_specials *s);

/* Finds the first special in text[from..n): the leftmost one, and the longest one that starts there. Returns 1
   and sets start, end and id, or returns 0 and leaves them unchanged. Takes O(1) time per byte read. It reads to the
   end of the special, and further only while a longer one is still possible. To find all specials in a text, call
   _find_all. */
PYBPE_API int pybpe_specials_find(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from, size_t *start,
                                  size_t *end, uint32_t *id);

/* Finds all specials in text[from..n): the one that _find finds from `from`, then the one that it finds from the end
   of the first, and so on. Writes their starts and ends to `spans` and their ids to `ids`, at most `cap` of them,
   and returns how many. If that is cap, call again from the last end. Takes O(1) time per byte of text for any set of
   strings, plus O(longest string) per call. It may allocate up to 4 times the length of the longest string. If that
   allocation fails, it returns the same result more slowly. */
PYBPE_API size_t pybpe_specials_find_all(const pybpe_specials *s, const uint8_t *text, size_t n, size_t from,
                                         size_t *spans, uint32_t *ids, size_t cap);

/* Returns the smallest safe cut c, from <= c < n, or n if there is none. If text is divided at a safe cut, processing
   the two parts separately gives the same result as processing the whole, regardless of what follows text[n). That
   does not hold for an encoder that normalizes or adds spaces: cut its texts at specials. 0 counts as a safe cut.
   text must begin at a safe cut or at the start of the input. `s` may be NULL. Takes O(1) time per byte from `from`,
   minus the length of the longest special, to the cut. */
PYBPE_API size_t pybpe_text_cut(const pybpe_pretok *p, const pybpe_specials *s, const uint8_t *text, size_t n,
                                size_t from);

/* ---------------------------------------------------------------------------------------------------
Normalization: the Unicode forms NFC and NFKC, as Hugging Face's tokenizers implements them
*/

/* The version of the Unicode tables that the normalizers use, such as "9.0.0". It is the version that Hugging Face
   uses, not the version of the patterns, because a normalizer must give the same ids in both libraries. Static. */
PYBPE_API const char *pybpe_normalizer_unicode_version(void);

/* Normalizes text[0..n) to NFC or NFKC. If normalization certainly changes nothing, sets *out to NULL and *length to
   n: use the text itself. Otherwise *out is a new text of *length bytes. Free it with pybpe_normalize_free. Bytes
   that are not valid UTF-8 are copied unchanged, and marks are neither composed nor reordered across them. The result
   is at most 3 times as long as the text for NFC, and 11 times for NFKC. Takes O(n) time on every text. If a text
   contains specials, normalize only the text between them. */
PYBPE_API int pybpe_normalize(uint8_t **out, size_t *length, int normalizer, const uint8_t *text, size_t n,
                              const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_normalize_free(uint8_t *out, const pybpe_allocator *mem);

/* ---------------------------------------------------------------------------------------------------
Counting: text -> distinct words and the number of their occurrences
*/

typedef struct pybpe_counter pybpe_counter;

/* Creates an empty table. `p` may be NULL if only _add_words and _merge are used. `s` may be NULL. Both are
   borrowed. */
PYBPE_API int pybpe_counter_new(pybpe_counter **out, const pybpe_pretok *p, const pybpe_specials *s,
                                const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_counter_free(pybpe_counter *c);

/* Counts the words in one piece of text: a whole text, or the part between two safe cuts (see pybpe_text_cut).
   Specials in it separate words and are not counted. */
PYBPE_API int pybpe_counter_add(pybpe_counter *c, const uint8_t *text, size_t n, pybpe_error *err);

/* Counts words that the caller has split. Adds counts[i] for string i of `words`, or 1 per string if counts is NULL.
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

/* Makes room for `words` distinct words in total, so that the table does not have to grow before it holds that many.
   */
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

/* Tokens 0-255 are the bytes. Merged tokens follow in the order of their creation. */
typedef struct pybpe_train_config {
    uint32_t vocab_size;         /* stop at this many tokens: 256 bytes and merged tokens, excluding specials */
    uint32_t max_token_length;   /* in bytes. Longer tokens are never made. At least 1 */
    uint64_t min_frequency;      /* pairs that occur less often are never merged. 0 and 1 are the same */
    int32_t tie_break;           /* a pybpe_tie_break */
    const uint32_t *base_merges; /* (left, right) ids, applied first in this order, may be NULL. Borrowed. */
    size_t base_merges_count;
    uint32_t rules; /* any of pybpe_train_rule, added up, usually 0 */
} pybpe_train_config;

/* Creates a trainer for words with their counts. The words are copied. The caller may free them afterward. Returns
   PYBPE_ERR_LIMIT if the words have more than 4 GiB - 1 bytes in total. */
PYBPE_API int pybpe_trainer_new(pybpe_trainer **out, const pybpe_strings *words, const uint64_t *counts,
                                const pybpe_train_config *config, const pybpe_allocator *mem, pybpe_error *err);
PYBPE_API void pybpe_trainer_free(pybpe_trainer *t);

/* A language in parity-aware training. */
typedef struct pybpe_language {
    pybpe_strings words; /* to learn from */
    const uint64_t *counts;
    pybpe_strings measured; /* the words of a development text, which shows the cost of the language */
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
    pybpe_strings specials; /* the special tokens in the order of their ids. None if count is 0 */
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

/* pybpe: end cdef */

#ifdef __cplusplus
}
#endif
#endif
