/*
A drop-in replacement for llm.c's llmc/tokenizer.h that uses the pybpe library.

It has the same struct fields, functions and results. The differences:
- Any file is safe: if a file is faulty, the program prints one line that says what is wrong, and exits. A missing file
  gives a warning and init_ok 0, as in llm.c.
- It reads versions 1 and 2 of tokenizer.bin, from llm.c or pybpe. The vocabulary must have a token for every byte,
  as GPT-2's does.
- tokenizer_decode_bytes returns a token with its length, since a token may contain NULs.
- safe_printf keeps the first bytes of a UTF-8 character until a later piece completes it. llm.c drops these bytes, and
  with them most Chinese characters. If a new text begins first, safe_printf discards what it has kept. It prints no
  control characters. llm.c prints the ones that are part of a longer token.
- tokenizer_encode turns a prompt into ids. tokenizer_encode_ordinary does the same for text that you did not write
  yourself. They give the same ids as encode and encode_ordinary in Python.
- The header has an include guard, and all its functions are static inline, so several C or C++ files of a program can
  include it.

Link with libpybpe.a, and add the folder of pybpe.h to the include path.
*/
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include "fault.h"
#include "pybpe.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint32_t vocab_size;
    char **token_table; /* a token is followed by a NUL, which is not part of it */
    int init_ok;
    int eot_token; /* -1 if the file does not have one */
    pybpe_tokenizer *shared;
} Tokenizer;

/* ---------------------------------------------------------------------------------------------------
Printing
*/

/* The length of the valid UTF-8 character at the start of s[0..n), or 0. (The Unicode Standard, table 3-7.) */
static inline size_t llmc_character_length(const unsigned char *s, size_t n) {
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    if (length > n) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        unsigned char lowest = i > 1 ? 0x80 : s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
        unsigned char highest = i > 1 ? 0xBF : s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
        if (s[i] < lowest || s[i] > highest) {
            return 0;
        }
    }
    return length;
}

/* Prints the characters of s[0..n), except control characters and bytes that do not belong to a character. */
static inline void llmc_print_characters(const unsigned char *s, size_t n) {
    for (size_t at = 0; at < n;) {
        size_t length = llmc_character_length(s + at, n - at);
        if (length > 1 || (length == 1 && (isprint(s[at]) || isspace(s[at])))) {
            fwrite(s + at, 1, length, stdout);
        }
        at += length > 0 ? length : 1;
    }
}

/* Prints one piece of a text that arrives in pieces. A new text begins after safe_printf(NULL), and after a batch from
   a DataLoader. */
static inline void safe_printf(const char *piece) {
    LlmcState *state = &llmc_state;
    if (piece == NULL || state->kept_batches != state->batches) { /* llm.c's trainers load a batch between two texts */
        state->kept_length = 0;
        state->kept_batches = state->batches;
    }
    if (piece == NULL) {
        return;
    }
    const unsigned char *rest = (const unsigned char *)piece;
    size_t n = strlen(piece);
    while (state->kept_length > 0 && n > 0) {
        state->kept[state->kept_length++] = *rest++;
        n--;
        /* How many bytes can be printed now: 0 until the character is complete, or until a byte arrives that cannot be
           part of it. */
        size_t complete = pybpe_utf8_complete(state->kept, state->kept_length);
        llmc_print_characters(state->kept, complete);
        state->kept_length -= complete;
        memmove(state->kept, state->kept + complete, state->kept_length);
    }
    if (n > 0) {
        size_t complete = pybpe_utf8_complete(rest, n);
        llmc_print_characters(rest, complete);
        state->kept_length = n - complete;
        memcpy(state->kept, rest + complete, state->kept_length);
    }
}

/* ---------------------------------------------------------------------------------------------------
Decoding
*/

/* Copies the tokens as C strings into one block of memory, and fills the table of pointers to them. */
static inline void tokenizer_fill_table_(Tokenizer *tokenizer, const pybpe_strings *tokens) {
    size_t bytes = (size_t)tokens->offsets[tokens->count] + tokens->count;
    char *at = (char *)llmc_alloc(bytes, 1);
    tokenizer->token_table = (char **)llmc_alloc(tokens->count, sizeof(char *));
    for (size_t id = 0; id < tokens->count; id++) {
        size_t length = (size_t)(tokens->offsets[id + 1] - tokens->offsets[id]);
        memcpy(at, tokens->bytes + tokens->offsets[id], length);
        tokenizer->token_table[id] = at;
        at += length + 1;
    }
}

static inline void tokenizer_init(Tokenizer *tokenizer, const char *filename) {
    memset(tokenizer, 0, sizeof *tokenizer);
    FILE *file = fopen(filename, "rb");
    if (file == NULL) {
        printf("---\nWARNING: Failed to open the tokenizer file %s\n---\n", filename);
        return;
    }
    fclose(file);
    pybpe_error err;
    if (pybpe_tokenizer_load(&tokenizer->shared, filename, NULL, &err) != PYBPE_OK) {
        llmc_fail_message(err.msg);
    }
    pybpe_vocab_spec spec = pybpe_vocab_get_spec(pybpe_tokenizer_vocab(tokenizer->shared));
    tokenizer_fill_table_(tokenizer, &spec.tokens);
    tokenizer->vocab_size = (uint32_t)spec.tokens.count;
    tokenizer->eot_token = spec.eot_id == PYBPE_NO_ID ? -1 : (int)spec.eot_id;
    tokenizer->init_ok = 1;
}

static inline const char *tokenizer_decode(Tokenizer *tokenizer, uint32_t token_id) {
    if (tokenizer->init_ok == 0) {
        return NULL;
    }
    if (token_id >= tokenizer->vocab_size) {
        printf("invalid token id %u!\n", token_id);
        return NULL;
    }
    return tokenizer->token_table[token_id];
}

/* Does the same, and also returns the number of bytes in *length, since a token may contain NULs. */
static inline const char *tokenizer_decode_bytes(Tokenizer *tokenizer, uint32_t token_id, size_t *length) {
    const char *bytes = tokenizer_decode(tokenizer, token_id);
    *length = 0;
    if (bytes != NULL) {
        pybpe_vocab_spec spec = pybpe_vocab_get_spec(pybpe_tokenizer_vocab(tokenizer->shared));
        *length = (size_t)(spec.tokens.offsets[token_id + 1] - spec.tokens.offsets[token_id]);
    }
    return bytes;
}

static inline void tokenizer_free(Tokenizer *tokenizer) {
    if (tokenizer->init_ok) {
        pybpe_tokenizer_free(tokenizer->shared);
        free(tokenizer->token_table[0]);
        free(tokenizer->token_table);
        memset(tokenizer, 0, sizeof *tokenizer);
    }
}

/* ---------------------------------------------------------------------------------------------------
Encoding
*/

static inline int tokenizer_encode_(Tokenizer *tokenizer, const char *text, int with_specials, int *ids,
                                    size_t max_ids) {
    pybpe_error err;
    size_t count = 0, n = strlen(text);
    if (tokenizer->init_ok == 0) {
        return -1;
    }
    uint32_t *found = (uint32_t *)ids; /* ids of a tokenizer are far below INT_MAX */
    int code = with_specials
                   ? pybpe_tokenizer_encode(tokenizer->shared, text, n, found, max_ids, &count, &err)
                   : pybpe_tokenizer_encode_ordinary(tokenizer->shared, text, n, found, max_ids, &count, &err);
    if (code != PYBPE_OK) {
        fprintf(stderr, "tokenizer_encode: %s\n", err.msg);
        return -1;
    }
    return (int)count;
}

/* Encodes a text that you wrote yourself, such as the control tokens of a chat. A special token in the text becomes its
   id. Writes the ids to ids[0..max_ids) and returns their number. If there are more than max_ids, or if the tokenizer's
   pattern needs Python, prints a line on stderr and returns -1. */
static inline int tokenizer_encode(Tokenizer *tokenizer, const char *text, int *ids, size_t max_ids) {
    return tokenizer_encode_(tokenizer, text, 1, ids, max_ids);
}

/* Does the same for text from anywhere else, such as user input. A special token in this text is encoded as ordinary
   text, so the text cannot end its turn in a chat and forge another turn. */
static inline int tokenizer_encode_ordinary(Tokenizer *tokenizer, const char *text, int *ids, size_t max_ids) {
    return tokenizer_encode_(tokenizer, text, 0, ids, max_ids);
}

#endif
