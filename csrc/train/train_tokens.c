/*
The trainer's tokens: their bytes, their lengths, an index that finds a token by its bytes, and the order of equally
frequent pairs.

The index is needed because two merges may spell the same bytes, as (ab, c) and (a, bc) do. The second merge does not
make a new token. It gives the token of the first, as in Hugging Face.
*/
#include "hash/hash.h"
#include "train/train.h"

static uint64_t bytes_prefix(const uint8_t *bytes, size_t n) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < 8; i++) {
        prefix = prefix << 8 | (i < n ? bytes[i] : 0);
    }
    return prefix;
}

static uint64_t bytes_hash(const uint8_t *bytes, size_t n, hash_seed seed) {
    return n <= WORD_INLINE_MAX ? word_key_hash(word_key_careful(bytes, n), seed) : word_hash_long(bytes, n, seed);
}

/* The slot of the index where a token with these bytes is, or would be. */
static size_t index_find(const pybpe_trainer *t, const uint8_t *bytes, size_t n) {
    size_t i = (size_t)bytes_hash(bytes, n, t->seed) & t->index_mask;
    for (; t->index_slots[i] != 0; i = (i + 1) & t->index_mask) {
        uint32_t known = t->index_slots[i] - 1;
        if (t->tokens[known].length == n && memcmp(t->token_bytes + t->tokens[known].offset, bytes, n) == 0) {
            break;
        }
    }
    return i;
}

static int items_room(pybpe_trainer *t, size_t cap) {
    token *tokens = mem_resize_array(&t->mem, t->tokens, cap, sizeof *tokens);
    if (tokens == NULL) {
        return PYBPE_ERR_MEMORY;
    }
    t->tokens = tokens;
    uint32_t *spans = mem_resize_array(&t->mem, t->spans, cap, sizeof *spans);
    if (spans == NULL) {
        return PYBPE_ERR_MEMORY;
    }
    t->spans = spans;
    token_shape *shapes = mem_resize_array(&t->mem, t->shapes, cap, sizeof *shapes);
    if (shapes == NULL) {
        return PYBPE_ERR_MEMORY;
    }
    t->shapes = shapes;
    return PYBPE_OK;
}

/* Enlarges a side. All its counts are zero now, so none are copied. */
static int side_room(pybpe_trainer *t, side *s, size_t cap) {
    neighbor *by_token = mem_alloc_zeroed(&t->mem, cap, sizeof *by_token);
    uint32_t *touched = mem_alloc_array(&t->mem, cap, sizeof *touched);
    uint64_t *counts = NULL;
    if (t->languages_count > 0) {
        counts = mem_alloc_array(&t->mem, cap, t->languages_count * sizeof *counts);
    }
    if (by_token == NULL || touched == NULL || (counts == NULL && t->languages_count > 0)) {
        mem_free(&t->mem, by_token);
        mem_free(&t->mem, touched);
        mem_free(&t->mem, counts);
        return PYBPE_ERR_MEMORY;
    }
    mem_free(&t->mem, s->by_token);
    mem_free(&t->mem, s->touched);
    mem_free(&t->mem, s->counts);
    s->by_token = by_token;
    s->touched = touched;
    s->counts = counts;
    return PYBPE_OK;
}

static int index_room(pybpe_trainer *t, size_t cap) {
    uint32_t *slots = mem_alloc_zeroed(&t->mem, 2 * cap, sizeof *slots);
    if (slots == NULL) {
        return PYBPE_ERR_MEMORY;
    }
    mem_free(&t->mem, t->index_slots);
    t->index_slots = slots;
    t->index_mask = 2 * cap - 1;
    for (uint32_t i = 0; i < t->tokens_count; i++) {
        slots[index_find(t, t->token_bytes + t->tokens[i].offset, t->tokens[i].length)] = i + 1;
    }
    return PYBPE_OK;
}

/* Makes room for one more token in all arrays that are indexed by tokens. */
static int tokens_room(pybpe_trainer *t, pybpe_error *err) {
    if (t->tokens_count < t->tokens_cap) {
        return PYBPE_OK;
    }
    size_t cap = t->tokens_cap == 0 ? 1024 : 2 * (size_t)t->tokens_cap;
    if (items_room(t, cap) != PYBPE_OK || side_room(t, &t->left, cap) != PYBPE_OK ||
        side_room(t, &t->right, cap) != PYBPE_OK || index_room(t, cap) != PYBPE_OK) {
        return error_set_memory(
            err, "the tokens of a training",
            cap * (sizeof *t->tokens + sizeof *t->shapes + 2 * sizeof(neighbor) + 5 * sizeof(uint32_t)));
    }
    t->tokens_cap = (uint32_t)cap;
    return PYBPE_OK;
}

static int token_bytes_room(pybpe_trainer *t, size_t n, pybpe_error *err) {
    size_t need = t->token_bytes_count + n;
    uint8_t *bytes = mem_reserve(&t->mem, t->token_bytes, &t->token_bytes_cap, need, 1);
    PYBPE_TRY(memory_check(bytes, "the bytes of tokens", need, err));
    t->token_bytes = bytes;
    return PYBPE_OK;
}

/* The token whose n bytes are at the end of token_bytes, not yet counted: an existing one with the same bytes, or a new
   one. There must be room for it. */
static uint32_t token_intern(pybpe_trainer *t, size_t n) {
    const uint8_t *bytes = t->token_bytes + t->token_bytes_count;
    size_t slot = index_find(t, bytes, n);
    if (t->index_slots[slot] != 0) {
        return t->index_slots[slot] - 1;
    }
    uint32_t id = t->tokens_count++;
    t->tokens[id] = (token){bytes_prefix(bytes, n), t->token_bytes_count, (uint32_t)n, id};
    t->spans[id] = 1;
    t->token_bytes_count += n;
    t->index_slots[slot] = id + 1;
    train_shape_set(t, id);
    return id;
}

/* The token of left + right. */
int train_token_concat(pybpe_trainer *t, uint32_t left, uint32_t right, uint32_t *merged, pybpe_error *err) {
    size_t n = (size_t)t->tokens[left].length + t->tokens[right].length;
    PYBPE_TRY(token_bytes_room(t, n, err));
    PYBPE_TRY(tokens_room(t, err));
    uint8_t *to = t->token_bytes + t->token_bytes_count;
    const token *x = &t->tokens[left], *y = &t->tokens[right];
    memcpy(to, t->token_bytes + x->offset, x->length);
    memcpy(to + x->length, t->token_bytes + y->offset, y->length);
    *merged = token_intern(t, n);
    return PYBPE_OK;
}

int train_tokens_init(pybpe_trainer *t, pybpe_error *err) {
    PYBPE_TRY(tokens_room(t, err));
    PYBPE_TRY(token_bytes_room(t, 256, err));
    uint32_t order[256];
    train_byte_order(t, order);
    for (unsigned byte = 0; byte < 256; byte++) {
        t->token_bytes[t->token_bytes_count] = (uint8_t)byte;
        t->tokens[token_intern(t, 1)].order = order[byte];
    }
    return PYBPE_OK;
}

void train_tokens_free(pybpe_trainer *t) {
    mem_free(&t->mem, t->tokens);
    mem_free(&t->mem, t->spans);
    mem_free(&t->mem, t->shapes);
    mem_free(&t->mem, t->token_bytes);
    mem_free(&t->mem, t->index_slots);
    mem_free(&t->mem, t->left.by_token);
    mem_free(&t->mem, t->left.touched);
    mem_free(&t->mem, t->left.counts);
    mem_free(&t->mem, t->right.by_token);
    mem_free(&t->mem, t->right.touched);
    mem_free(&t->mem, t->right.counts);
}

/* ---------------------------------------------------------------------------------------------------
Ties: which of two equally frequent pairs is merged first.

Lexicographic: the pair whose (left bytes, right bytes) is the greatest. Hugging Face and rustbpe: the pair with the
lowest ids, where merged tokens are numbered in the order of their creation. Hugging Face numbers bytes by the characters
that represent them, rustbpe by value.
*/

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

bool order_ids(const void *context, const pair *x, const pair *y) {
    const pybpe_trainer *t = context;
    return x->left != y->left ? t->tokens[x->left].order < t->tokens[y->left].order
                              : t->tokens[x->right].order < t->tokens[y->right].order;
}

/* Hugging Face numbers the bytes by the characters that represent them: printable ones in Latin-1 come first,
   in order, then the other 68 (GPT-2's bytes_to_unicode). */
static bool byte_is_printable(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

void train_byte_order(const pybpe_trainer *t, uint32_t order[256]) {
    uint32_t printable = 0, other = 188; /* 188 bytes are printable */
    for (unsigned byte = 0; byte < 256; byte++) {
        order[byte] = !t->huggingface_bytes ? byte : byte_is_printable(byte) ? printable++ : other++;
    }
}
