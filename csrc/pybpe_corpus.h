/*
The third header of pybpe: corpora and streams of tokens. pybpe.h has the conventions.

    corpus          dividing a text into documents, and the documents among splits
    streams         end-of-text tokens between documents, and rows for training
    measures        of documents, and signatures of similar ones
    output files    the complete old file or the complete new one
    Python          functions that exist for the Python package only
*/
#ifndef PYBPE_CORPUS_H
#define PYBPE_CORPUS_H

#include "pybpe_train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* pybpe: begin cdef */

/* ---------------------------------------------------------------------------------------------------
Documents in a corpus
*/

/* What separates documents. */
enum pybpe_documents {
    PYBPE_DOCUMENTS_LINE = 0,  /* a document per line. \n or \r\n ends it and does not belong to it */
    PYBPE_DOCUMENTS_BLANK = 1, /* blank lines. No line end around a document belongs to it */
    PYBPE_DOCUMENTS_MARK = 2,  /* the specials in `marks` */
    PYBPE_DOCUMENTS_RECORD = 3 /* JSON lines: the string at `key` of the object on a line is a document */
};

/* How a corpus is divided into documents, and the documents among splits. The hash of a document is its CRC-32 times
   0x9E3779B97F4A7C15, modulo 2^64. It belongs to the first split whose `last` is not below its hash, or if there is
   none, to split 0. A record with a string "pybpe_cluster" is hashed by that instead. */
typedef struct pybpe_division {
    const pybpe_specials *marks; /* borrowed. NULL if there are none */
    const uint8_t *key;          /* UTF-8. Only for records */
    size_t key_n;
    const uint8_t *separator; /* written after every document */
    size_t separator_n;
    const uint64_t *last; /* one per split */
    size_t splits;        /* at least 1. If 1, nothing is hashed */
    int has_origins;      /* not 0: pybpe_divider_origins says where documents came from */
    const uint8_t *id;    /* then, in records, the key of their ids, UTF-8. NULL if there is none */
    size_t id_n;
} pybpe_division;

/* Where a document came from. */
typedef struct pybpe_origin {
    uint64_t record;     /* the number of records before it, as pybpe_divider_records counts them */
    uint64_t id, id_end; /* where the value of its id is in the text, as it is spelled. Both 0 if it has none */
} pybpe_origin;

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

/* The documents of a split, in order, with the separator after every one. None if there is no such split. Valid until
   something is added. */
PYBPE_API pybpe_strings pybpe_divider_documents(const pybpe_divider *d, size_t split);

/* Where these documents came from, or NULL unless the division has origins. Valid as long as they are. */
PYBPE_API const pybpe_origin *pybpe_divider_origins(const pybpe_divider *d, size_t split);

/* The number of records that were divided or added: JSON lines, and other lines, and documents that were separate, with
   empty ones; documents between marks or blank lines, without. And the number of line ends in JSON lines. */
PYBPE_API void pybpe_divider_records(const pybpe_divider *d, size_t *records, size_t *line_ends);

/* Removes all documents, and keeps the memory. */
PYBPE_API void pybpe_divider_clear(pybpe_divider *d);

/* ---------------------------------------------------------------------------------------------------
Documents in a stream of tokens
*/

/* Where the mark (the end-of-text id) goes: nowhere, before every document, or after every document. */
enum pybpe_marks { PYBPE_MARKS_NONE = 0, PYBPE_MARKS_PREPEND = 1, PYBPE_MARKS_APPEND = 2 };

/* Copies one piece of a stream whose documents are separated by marks. Writes one mark per document, or none, according
   to `mode` (a pybpe_marks). On entry, *is_open says whether a document continues from the previous piece, and on
   return whether one continues into the next. A document that is still open when the stream ends lacks its appended
   mark. `out` must have room for n + 1 ids and must not overlap `ids`. `starts` must have room for one more entry
   than there are marks in ids. Sets starts[0..*documents) to the positions in `out` where documents begin, including
   their marks. Returns the number of ids written. */
PYBPE_API size_t pybpe_marks_place(const void *ids, int id_bytes, size_t n, uint32_t mark, int mode, int *is_open,
                                   void *out, uint64_t *starts, size_t *documents);

/* Documents among ids of id_bytes: document i has lengths[i] of them from ids[starts[i]] on. The first is the
   mark. */
typedef struct pybpe_marked {
    const void *ids;
    int id_bytes; /* 2 or 4 */
    const uint64_t *starts, *lengths;
    size_t count;
} pybpe_marked;

/* Packs documents into rows of `width` ids (at least 2), without padding. A row has whole documents, the longest that
   fit, and where none fits, the beginning of a document whose rest is in another row, after a mark of its own. So is
   the rest of one that is longer than a row. Of documents that are equally long, the first is taken. The ids that are
   left at the end, fewer than a row, are in no row. `rows` must have room for t / (width - 1) rows, if all documents
   together have t ids. Sets *count to the number of rows. Returns PYBPE_ERR_VALUE (offset = index) for a document
   without a mark. */
PYBPE_API int pybpe_rows_fill(const pybpe_marked *from, size_t width, void *rows, size_t *count,
                              const pybpe_allocator *mem, pybpe_error *err);

/* Puts whole texts, text i of lengths[i] ids, into rows of `width` ids. Sets rows[i] to the row of text i, from 0. No
   row is empty. A row begins with the longest text that is left. One, two or three texts that fill it exactly are
   preferred to the longest that fits. Of texts that are equally long, the last is taken.
   PYBPE_ERR_VALUE: a text is empty, or longer than a row. err->offset is its number. */
PYBPE_API int pybpe_rows_fit(const uint64_t *lengths, size_t count, size_t width, uint64_t *rows,
                             const pybpe_allocator *mem, pybpe_error *err);

/* Rows of tokens: `count` rows of `width` ids, and columns that say more of the tokens. All columns but the ids may be
   NULL, together, and are then not written. */
typedef struct pybpe_rows {
    size_t width, count;
    uint32_t mark; /* becomes the first id of every part, unless it is PYBPE_NO_ID */
    uint32_t pad;  /* the id of padding */
    void *ids;
    int32_t *documents; /* the number of the token's part in its row, from 0, or -1 for padding */
    int32_t *positions; /* in its part, from 0. Padding counts from 0 too */
    uint8_t *loss_mask; /* 0: padding, the first token of a row, the first of a part after one that does not end its
                           document */
} pybpe_rows;

/* Copies parts of documents into rows. Part i is lengths[i] of the n ids from->ids, at least 1, from starts[i] on. It
   goes into row[i] < to->count, after the parts before it, which are in this row or in those above. The rest of a
   row is padding. ends[i] says whether a document ends with part i. It may be NULL if there are only ids. `from` and
   `to` must not overlap. Returns PYBPE_ERR_VALUE (offset = index of the part) for another start, length or row. Then
   the rows have undefined contents. */
PYBPE_API int pybpe_rows_gather(const pybpe_marked *from, size_t n, const uint64_t *row, const uint8_t *ends,
                                const pybpe_rows *to, pybpe_error *err);

/* ---------------------------------------------------------------------------------------------------
Documents: measures of their text, and signatures that tell how similar two of them are
*/

/* The class of a character. A word is a run of letters and digits, or one UNSPACED character: a letter of a script
   that is written without spaces, such as Chinese. If most words of a text are of that kind, two of them count as a
   word. */
enum pybpe_character {
    PYBPE_CHARACTER_SPACE = 0,
    PYBPE_CHARACTER_LETTER = 1, /* marks too */
    PYBPE_CHARACTER_DIGIT = 2,
    PYBPE_CHARACTER_PUNCTUATION = 3,
    PYBPE_CHARACTER_SYMBOL = 4, /* everything else, also a byte that is not valid UTF-8 */
    PYBPE_CHARACTER_UNSPACED = 5
};

/* Tables of characters, which the caller makes. They must have the usual classes for ASCII letters and digits, because
   some code does not look them up. */
typedef struct pybpe_characters {
    const uint8_t *classes; /* of every code point, 0x110000 in all */
    const uint32_t *lower;  /* the lowercase of code points below lower_count. The others have none */
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
    PYBPE_MEASURE_WORDS = 6, /* every UNSPACED character is one */
    PYBPE_MEASURE_WORD_CHARS = 7,
    PYBPE_MEASURE_ALPHABETIC = 8, /* words that contain a letter */
    /* With `repeated_words`, otherwise 0: */
    PYBPE_MEASURE_DISTINCT = 9,   /* different words, ignoring case */
    PYBPE_MEASURE_TOP_COUNT = 10, /* how often the most frequent word occurs */
    /* With `lines`, otherwise 0. Lines and paragraphs lose the white space around them. Empty ones do not
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
    PYBPE_MEASURE_SHORT_LINES = 21,    /* lines under 30 columns. A character from U+1100 has two */
    PYBPE_MEASURE_TERMINAL_LINES = 22, /* lines that end with a full stop or another mark that ends a sentence */
    PYBPE_MEASURES = 23
};

/* What to measure besides words and characters. */
typedef struct pybpe_measuring {
    const uint32_t *ngrams; /* lengths in words, ascending. May be NULL if count is 0 */
    size_t count;
    int repeated_words; /* not 0: PYBPE_MEASURE_DISTINCT and PYBPE_MEASURE_TOP_COUNT */
    int lines;          /* not 0: the measures of lines and paragraphs */
    int no_words;       /* not 0: measures that need words may be 0: all above except PYBPE_MEASURE_CHARS */
} pybpe_measuring;

/* Measures all of `texts`: writes PYBPE_MEASURES + 2 * what->count numbers per text to `out`. The last ones are, for
   every n in what->ngrams: the characters of words in all occurrences of the most frequent n consecutive words (of
   equally frequent ones, the longest; 0 if none occurs twice), then those in n consecutive words that occurred before,
   counted once. Words, n-grams and lines are compared by hashes of 64 bits. Takes linear time, and about 14 bytes
   of memory per word of the longest text. Returns PYBPE_ERR_LIMIT (offset = index) for a text of 4 GiB or more. */
PYBPE_API int pybpe_texts_measure(uint64_t *out, const pybpe_strings *texts, const pybpe_characters *tables,
                                  const pybpe_measuring *what, const pybpe_allocator *mem, pybpe_error *err);

enum { PYBPE_MINHASH_SIZE = 128, PYBPE_DIGEST_SIZE = 16 };

/* Writes the BLAKE2b digest of PYBPE_DIGEST_SIZE bytes of every text to `out`. */
PYBPE_API int pybpe_texts_digest(uint8_t *out, const pybpe_strings *texts, pybpe_error *err);

/* Writes a MinHash signature of PYBPE_MINHASH_SIZE numbers per text to `out`. A shingle of a text is five consecutive
   words, ignoring case. A text with fewer words is one shingle. The share of positions in which two signatures agree
   estimates the Jaccard similarity of the two sets of shingles. Memory does not grow with the texts.

   If `only` is not NULL, a text with fewer words than a shingle has no signature, as it is like those with the same
   words and no others: only[i] is the hash of its one shingle, not 0. It is 0 for a text that has a signature. */
PYBPE_API int pybpe_texts_minhash(uint32_t *out, uint64_t *only, const pybpe_strings *texts,
                                  const pybpe_characters *tables, const pybpe_allocator *mem, pybpe_error *err);

/* Cuts `count` signatures into `bands` of `width` numbers, and writes the hashes of the bands: out[b * count +
   i] is of band b of signature i. Signatures that agree in a band have the same. */
PYBPE_API int pybpe_signatures_cut(uint64_t *out, const uint32_t *signatures, size_t count, size_t bands, size_t width,
                                   pybpe_error *err);

/* Writes the hashes of these shingles to `out` and their number to *count: at least 1, and at most n + 1. `out`
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

/* Appends n bytes. After an error, call _discard. All other calls fail, and _commit discards. */
PYBPE_API int pybpe_output_write(pybpe_output *o, const void *data, size_t n, pybpe_error *err);

/* Overwrites n bytes at `offset`, for example in a header. All of them must have been written already. */
PYBPE_API int pybpe_output_patch(pybpe_output *o, uint64_t offset, const void *data, size_t n, pybpe_error *err);

/* Flushes the temporary file to disk, renames it to `path`, flushes the folder, and frees `o`. On an error it removes
   the temporary file, leaves `path` unchanged, and still frees `o`. The exception: if only flushing the folder failed,
   `path` is the complete new file, but a power loss may bring back the old one. */
PYBPE_API int pybpe_output_commit(pybpe_output *o, pybpe_error *err);

/* Removes the temporary file and frees `o`. `path` is unchanged. */
PYBPE_API void pybpe_output_discard(pybpe_output *o);

/* ---------------------------------------------------------------------------------------------------
For the Python package only, which decides what they do
*/

/* The class of a code point, as the patterns see it. The bits are: 1 Lu or Lt, 2 Ll, 4 Lm or Lo, 8 M, 16 N, 32
   whitespace, 64 CR or LF. Any other code point has class 0, including invalid code points. */
PYBPE_API int pybpe_unicode_class(uint32_t code_point);

/* Finds the two large parts of a tokenizer.json: the object model.vocab at text[spans[0]..spans[1]) and the array
   model.merges at text[spans[2]..spans[3]). Returns 1, or 0 unless the text looks like a JSON object that has both of
   them exactly once. The rest of the text is not checked. */
PYBPE_API int pybpe_tokenizer_json_find(const uint8_t *text, size_t n, size_t spans[4]);

/* Makes a vocabulary from a spec whose tokens and merges are in those two texts instead. special_texts has the texts of
   the specials, in the order of spec->specials. None may be empty. The vocabulary text need not contain the specials.
   Returns PYBPE_ERR_FORMAT for anything unusual, even if it is valid: the caller must then use a slower reader. */
PYBPE_API int pybpe_vocab_new_json(pybpe_vocab **out, const uint8_t *vocab, size_t vocab_n, const uint8_t *merges,
                                   size_t merges_n, const pybpe_strings *special_texts, const pybpe_vocab_spec *spec,
                                   const pybpe_allocator *mem, pybpe_error *err);

/* Sorts words by their bytes: sets order[0..words->count) to their indices, in this order. The words of a counter are
   distinct. Equal ones stay in the order of their indices. Takes 4 bytes per word for `order`, and usually about as
   much during the call. Returns PYBPE_ERR_LIMIT for more than 2^32 - 2 words. */
PYBPE_API int pybpe_words_sort(const pybpe_strings *words, uint32_t *order, const pybpe_allocator *mem,
                               pybpe_error *err);

/* A list of words with their counts that the functions below extend. The caller allocates the arrays. */
typedef struct pybpe_words_block {
    uint8_t *bytes; /* the words, end to end */
    size_t bytes_cap;
    uint32_t *lengths; /* of every word */
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
    PYBPE_MERGE_DONE = 0, /* all parts had ended before the call. The block is complete */
    PYBPE_MERGE_PART = 1, /* a part has ended (at == count): replace it by the next part of its list, if there is one */
    PYBPE_MERGE_FULL = 2, /* the block has `cap` words, and the next word is a different one: empty the block */
    PYBPE_MERGE_ROOM = 3  /* bytes_cap is too small for the next word: enlarge `bytes` */
};

/* Adds sorted lists, which may be longer than memory: appends their words to the block, in ascending order, once,
   with the sum of its counts. Call it until *state, a pybpe_merge_state, is DONE, and do every time what the state
   says. A part that has ended is the end of its list. After PART the count of the last word in the block may still
   rise. Returns PYBPE_ERR_VALUE (offset = index of the part) if the words of a part are not in strictly ascending
   order or have more than `size` bytes, and PYBPE_ERR_LIMIT if a count would exceed 2^64 - 1. */
PYBPE_API int pybpe_words_merge(pybpe_words_part *parts, size_t count, pybpe_words_block *block, int *state,
                                const pybpe_allocator *mem, pybpe_error *err);

/* The starts of files, one after another. The caller provides the memory. */
typedef struct pybpe_file_starts {
    uint8_t *bytes;
    size_t room;       /* of `bytes` */
    uint64_t *offsets; /* room for count + 1: start i is bytes[offsets[i]] up to but not including
                          bytes[offsets[i + 1]] */
    uint64_t *sizes;   /* of the whole files. UINT64_MAX for one that was not read */
    int64_t *modified; /* when they were last written to, in nanoseconds since 1970 */
} pybpe_file_starts;

/* Reads the first `most` bytes of `count` files, or all if a file is shorter. `paths` are strings, one after another.
   A file is not read if it cannot be, changes meanwhile, does not fit into the rest of the room, or is a pipe, a
   device or another file that does not say its size. Checks the kind of a file before it opens it, unless the caller
   has looked: then all are `known` to be regular files or links. */
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
   in one form: as Python's json.dumps writes them with ensure_ascii=False, but all values except the text stay as
   they are spelled. Returns PYBPE_ERR_FORMAT as pybpe_divider_divide does, and for a record that repeats a name, or
   has more than 64. Then the output means nothing. With `no_cluster`, the output has no field "pybpe_cluster". */
PYBPE_API int pybpe_records_read(pybpe_records *out, const uint8_t *lines, size_t n, const uint8_t *key, size_t key_n,
                                 int no_cluster, pybpe_error *err);

/* Writes the lines of records for which `keeps` is not 0. If `clusters` is not NULL, it has PYBPE_DIGEST_SIZE bytes per
   record, which are added to it in hexadecimal as its field "pybpe_cluster". `out` has room for the lines, and for
   56 bytes more per line. *n is set to the bytes written. A line ends with } and a newline. */
PYBPE_API int pybpe_records_keep(uint8_t *out, size_t *n, const pybpe_strings *lines, const uint8_t *keeps,
                                 const uint8_t *clusters, pybpe_error *err);

/* Writes one record per text, with nothing but the text: {NAME: "TEXT"}, where `name` is spelled as JSON. Line i
   is lines[offsets[i]] up to but not including lines[offsets[i + 1]]. The caller provides the memory: 6 bytes for
   every byte of the texts, and name_n + 7 for every text. Returns PYBPE_ERR_FORMAT if a text is not UTF-8. The offset
   of the error is its number. Then the output means nothing. */
PYBPE_API int pybpe_records_write(uint8_t *lines, uint64_t *offsets, const pybpe_strings *texts, const uint8_t *name,
                                  size_t name_n, pybpe_error *err);

/* Returns how many of ids[0..n) (of id_bytes) equal `id`. */
PYBPE_API size_t pybpe_ids_count(const void *ids, int id_bytes, size_t n, uint32_t id);

/* Sets shifted[i] to first + starts[i] for all i < n: where documents begin in a stream if `first` ids came
   before. */
PYBPE_API void pybpe_starts_shift(const uint64_t *starts, size_t n, uint64_t first, uint64_t *shifted);

/* pybpe: end cdef */

#ifdef __cplusplus
}
#endif
#endif
