/*
llmc_compat/include/llmc/tokenizer.h: the table of tokens, and printing pieces of a text that are cut anywhere.
*/
#define fwrite any_write

#include "prove.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>

#undef isprint
#undef isspace
#define isprint any_kind
#define isspace any_kind

/* The tables of ctype.h have these values, and EOF. */
static int any_kind(int c) {
    CHECK(c >= 0 && c <= UCHAR_MAX);
    return any_bool();
}

#include "llmc/tokenizer.h"

#include <base/base.c>
#include <unicode/unicode.c>
#include <vocab/decode.c>

size_t any_write(const void *data, size_t size, size_t n, FILE *file) {
    (void)file;
    CHECK(size == 1 && n > 0);
    check_readable(data, n);
    return n;
}

/* A piece of n bytes without NULs, and the NUL that ends it. */
static char *any_piece(size_t n) {
    uint8_t *piece = any_bytes(n + 1);
    for (size_t i = 0; i < n; i++) {
        piece[i] = piece[i] != 0 ? piece[i] : 1;
    }
    piece[n] = 0;
    return (char *)piece;
}

/* A character is in the text. */
void prove_character(size_t n) {
    uint8_t *text = any_bytes(n);
    CHECK(llmc_character_length(text, n) <= n);
    free(text);
}

size_t any_character(const unsigned char *s, size_t n) {
    CHECK(n > 0);
    check_readable(s, n);
    return (size_t)any_between(0, n < 4 ? n : 4);
}

/* Only bytes of the text are written. */
void prove_characters(size_t n) {
    uint8_t *text = any_bytes(n);
    llmc_print_characters(text, n);
    free(text);
}

void any_print(const unsigned char *s, size_t n) { check_readable(s, n); }

/* What utf8.c shows. */
size_t any_complete(const uint8_t *bytes, size_t n) {
    check_readable(bytes, n);
    return (size_t)any_between(n > 3 ? n - 3 : 0, n);
}

/* The start of a character that is kept for the next piece fits in its buffer. */
void prove_print(size_t n) {
    for (int i = 0; i < 2; i++) {
        char *piece = any_piece(n);
        safe_printf(piece);
        free(piece);
    }
}

/* The tokens of a vocabulary of n tokens fit in the table, each with its NUL. */
void prove_table(size_t n) {
    enum { LONGEST = 3, TOKENS = 4 };
    uint64_t offsets[TOKENS + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        offsets[i + 1] = offsets[i] + any_between(0, LONGEST);
    }
    uint8_t *bytes = any_bytes((size_t)offsets[n]);
    Tokenizer tokenizer = {.vocab_size = (uint32_t)n};
    const pybpe_strings tokens = {bytes, offsets, n};
    tokenizer_fill_table_(&tokenizer, &tokens);
    for (size_t i = 0; i < n; i++) {
        CHECK(tokenizer.token_table[i][offsets[i + 1] - offsets[i]] == '\0');
    }
    free(tokenizer.token_table[0]);
    free(tokenizer.token_table);
    free(bytes);
}

PROOFS(PROOF(character, 1, 5, 4) PROOF(characters, 0, 6, 2, "", "llmc_character_length:any_character")
           PROOF(print, 0, 5, 4, "", "llmc_print_characters:any_print pybpe_utf8_complete:any_complete")
               PROOF(table, 1, 3, 2) DRAWN(print, 6, 12, 4) DRAWN(table, 4, 4, 2))
