/*
llmc_compat/include/llmc/tokenizer.h: the table of tokens, and printing pieces of a text that are cut anywhere.
*/
#define fwrite any_write

#include "prove.h"

#include <stdio.h>

#include "llmc/tokenizer.h"

#include <base.c>
#include <decode.c>

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

PROOFS(DRAWN(print, 0, 12, 4) DRAWN(table, 1, 4, 2))
