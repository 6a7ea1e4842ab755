/*
Ties: which of two equally frequent pairs is merged first.

Lexicographic: the pair whose (left bytes, right bytes) is the greatest. Hugging Face: the pair with the lowest ids,
where bytes are numbered by the characters that represent them, and merged tokens in the order of their creation.
*/
#include "train.h"

static int token_compare(const pybpe_trainer *t, uint32_t x, uint32_t y) {
    const token *a = &t->tokens[x], *b = &t->tokens[y];
    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix ? -1 : 1;
    }
    uint32_t n = a->length, m = b->length;
    int order = memcmp(t->token_bytes + a->offset, t->token_bytes + b->offset, n < m ? n : m);
    return order != 0 ? order : (n > m) - (n < m);
}

bool order_lexicographic(const void *context, const pair *x, const pair *y) {
    const pybpe_trainer *t = context;
    int order = x->left == y->left ? 0 : token_compare(t, x->left, y->left);
    return order != 0 ? order > 0 : token_compare(t, x->right, y->right) > 0;
}

bool order_huggingface(const void *context, const pair *x, const pair *y) {
    const pybpe_trainer *t = context;
    return x->left != y->left ? t->tokens[x->left].order < t->tokens[y->left].order
                              : t->tokens[x->right].order < t->tokens[y->right].order;
}

/* Hugging Face numbers the bytes by the character that represents each: those that are printable in Latin-1 come first,
   in order, then the other 68 (GPT-2's bytes_to_unicode). */
static bool byte_is_printable(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

void huggingface_byte_order(uint32_t order[256]) {
    uint32_t printable = 0, other = 188; /* 188 bytes are printable */
    for (unsigned byte = 0; byte < 256; byte++) {
        order[byte] = byte_is_printable(byte) ? printable++ : other++;
    }
}
