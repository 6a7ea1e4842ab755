/*
Merging a long word block by block.

Two tokens *go together* if merging their concatenated bytes gives exactly these two tokens. If all neighbors in a row
of tokens go together, the row is the result of merging their bytes. Otherwise some merge would be the first to cross
from one token into the next. Until then everything happens as in these two alone, so that merge would happen there too.
So a long word is merged in blocks. A block starts where the row found so far ends:

    [abab][cc][d ][a..              a block, merged separately; its last tokens are not certain and left out
    [abab][cc] [dab][ab][c..        the next one starts after the tokens that were kept
              ^ do [cc] and [dab] go together? Then the row continues. Otherwise some of its last tokens are dropped

That holds for every list of merges. The rest is only for merges that are *in order*: no merge makes a token that an
earlier merge uses. The merges of all trainers are in order. For those in a file that are not, there is no table.

Undoing the merges of two tokens, the latest first, shows whether they go together. They do not if at any step the two
parts that touch are a pair that would merge earlier than the merge that was undone last:

    abab | cc    ab | cc    ab | c    b | c        (of equal ranks the left one merges first)

Within a block, all places of the pair with the lowest rank are merged, then all of the next rank, and so on. A new pair
has a higher rank than the merge that made one of its tokens. So one pass over the ranks, in a bit set, is enough, and
the places of a rank are a list that is complete before its turn comes. The order in a list matters only for pairs of
two equal tokens, as in aaa: other pairs cannot overlap. A token's id is stored at its first and its last byte, so its
neighbors can be found without links.

apply_long takes over if too many tokens have to be dropped.
*/
#include "apply/apply.h"

/* APPLY_UNSURE: the number of tokens at the end of a block that may change when more bytes follow. APPLY_TRIES: how
   often the bytes up to the end of the next block may be merged, on average, before apply_long takes over. */
enum { APPLY_UNSURE = 4, APPLY_TRIES = 2 };

/* ---------------------------------------------------------------------------------------------------
Which tokens go together
*/

/* Whether a followed by b stay two tokens through all merges of ranks below `limit`. Merges must be able to make
   both. */
static bool tokens_go_together(const apply_blocks_table *c, const merge_table *t, uint32_t a, uint32_t b,
                               uint32_t limit) {
    for (;;) {
        if (merge_rank(t, a, b) < limit) {
            return false;
        }
        const apply_token *x = &c->tokens[a];
        const apply_token *y = &c->tokens[b];
        if (x->made > y->made) {
            limit = x->made - 1;
            a = x->right;
        } else if (y->made > 0) {
            limit = y->made;
            b = y->left;
        } else {
            return true;
        }
    }
}

/* Finds the tokens that the merges make, in rank order. Returns false if the merges are not in order. */
static bool find_tokens(apply_blocks_table *c, const pybpe_vocab_spec *v, const merge_table *t, uint8_t *joined) {
    for (size_t id = 0; id < c->count; id++) {
        c->tokens[id] =
            (apply_token){.made = APPLY_NEVER, .length = (uint32_t)(v->tokens.offsets[id + 1] - v->tokens.offsets[id])};
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        c->tokens[t->byte_ids[byte]] = (apply_token){.made = 0, .length = 1};
    }
    c->tokens[t->outside] = (apply_token){.made = APPLY_NEVER}; /* also the id of bytes without a token */
    for (uint32_t rank = 0; rank < v->merges_count; rank++) {
        uint32_t left = v->merges[2 * (size_t)rank];
        uint32_t right = v->merges[2 * (size_t)rank + 1];
        uint32_t id = t->merged[rank];
        const apply_token *x = &c->tokens[left];
        const apply_token *y = &c->tokens[right];
        joined[left] = 1;
        joined[right] = 1;
        if (x->made == APPLY_NEVER || y->made == APPLY_NEVER || merge_rank(t, left, right) != rank ||
            !tokens_go_together(c, t, left, right, rank)) {
            continue; /* the two never meet */
        }
        if (joined[id]) {
            return false;
        }
        c->tokens[id] = (apply_token){left, right, rank + 1, x->length + y->length};
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------
The table
*/

static bool apply_block_new(apply_block *b, size_t ranks, const pybpe_allocator *mem) {
    b->ranks = ranks;
    b->ids = mem_alloc_array(mem, APPLY_BLOCK + 2, sizeof *b->ids);
    b->places = mem_alloc_array(mem, APPLY_PLACES + 1, sizeof *b->places);
    b->starts = mem_alloc_array(mem, APPLY_BLOCK / 64 + 1, sizeof *b->starts);
    b->joined = mem_alloc_array(mem, APPLY_BLOCK + 1, sizeof *b->joined);
    b->lists = mem_alloc_zeroed(mem, ranks + 1, sizeof *b->lists);
    b->waiting = mem_alloc_zeroed(mem, ranks / 64 + 1, sizeof *b->waiting);
    return b->ids != NULL && b->places != NULL && b->starts != NULL && b->joined != NULL && b->lists != NULL &&
           b->waiting != NULL;
}

void apply_blocks_fill(apply_blocks_table *c, const pybpe_vocab_spec *v, const merge_table *t,
                       const pybpe_allocator *mem) {
    *c = (apply_blocks_table){.tried = true, .count = v->tokens.count, .merges = v->merges, .block_bytes = APPLY_BLOCK};
    uint8_t *joined = mem_alloc_zeroed(mem, v->tokens.count, 1);
    c->tokens = mem_alloc_array(mem, v->tokens.count + 1, sizeof *c->tokens);
    if (joined != NULL && c->tokens != NULL) {
        c->usable = find_tokens(c, v, t, joined) && apply_block_new(&c->block, v->merges_count, mem);
    }
    mem_free(mem, joined);
    if (!c->usable) {
        apply_blocks_free(c, mem);
        c->tried = true;
    }
}

void apply_blocks_free(apply_blocks_table *c, const pybpe_allocator *mem) {
    mem_free(mem, c->tokens);
    mem_free(mem, c->block.ids);
    mem_free(mem, c->block.places);
    mem_free(mem, c->block.starts);
    mem_free(mem, c->block.joined);
    mem_free(mem, c->block.lists);
    mem_free(mem, c->block.waiting);
    mem_free(mem, c->ids);
    *c = (apply_blocks_table){0};
}

void apply_blocks_trim(apply_blocks_table *c, size_t most, const pybpe_allocator *mem) {
    if (c->room >= most) {
        mem_free(mem, c->ids);
        c->ids = NULL;
        c->room = 0;
    }
}

/* Room for one token per byte. Untouched pages cost nothing. */
static bool apply_blocks_make_room(apply_blocks_table *c, size_t n, const pybpe_allocator *mem) {
    if (n > c->room) {
        apply_blocks_trim(c, 0, mem);
        c->ids = mem_alloc_array(mem, n, sizeof *c->ids);
        c->room = c->ids != NULL ? n : 0;
    }
    return c->room > 0;
}

/* ---------------------------------------------------------------------------------------------------
One block

The result of a lookup differs from place to place, and a branch on it would often be mispredicted. So a pair that does
not merge also goes on a list, one that is never read, and an outdated place is overwritten by the next.
*/

/* Puts the place of a pair on the list of its rank. */
static inline void block_add(apply_block *b, uint32_t rank, size_t at) {
    size_t place = b->places_used;
    size_t list = rank < b->ranks ? rank : b->ranks;
    b->places[place] = (apply_place){(uint16_t)at, b->lists[list]};
    b->places_used = place + (rank < b->ranks);
    b->lists[list] = (uint16_t)place;
    b->waiting[list / 64] |= UINT64_C(1) << (list % 64);
}

/* Lays out the bytes, at positions from 1 on. */
static void block_start(apply_block *block, const merge_table *t, const uint8_t *w, size_t n) {
    apply_block b = *block; /* a copy, so that the compiler sees what its stores cannot change */
    memset(b.starts, 0xFF, (n / 64 + 1) * sizeof *b.starts);
    b.starts[0] &= ~UINT64_C(1);
    b.starts[n / 64] &= (UINT64_C(2) << (n % 64)) - 1;
    b.ids[0] = t->outside;
    b.ids[n + 1] = t->outside;
    b.ids[1] = t->byte_ids[w[0]];
    b.places_used = 1;
    for (size_t i = 1; i < n; i++) {
        b.ids[i + 1] = t->byte_ids[w[i]];
        block_add(&b, t->byte_ranks[w[i - 1] << 8 | w[i]], i);
    }
    block->places_used = b.places_used;
}

/* The pair of one rank, and the token that it becomes. */
typedef struct apply_step {
    uint32_t left, right, merged;
    size_t left_length, length;
} apply_step;

static inline bool block_has(const apply_block *b, const apply_step *s, size_t at) {
    return ((b->ids[at] ^ s->left) | (b->ids[at + s->left_length] ^ s->right)) == 0;
}

static inline void block_join(apply_block *b, const apply_step *s, size_t at, uint32_t outside) {
    size_t gone = at + s->left_length; /* no token starts here anymore */
    b->starts[gone / 64] &= ~(UINT64_C(1) << (gone % 64));
    b->ids[gone] = outside;
    b->ids[at] = s->merged;
    b->ids[at + s->length - 1] = s->merged;
}

/* Merges the places of a list of pairs that cannot overlap. Returns how many it wrote to b->joined. */
static size_t block_join_list(apply_block *b, const apply_step *s, uint16_t list, uint32_t outside) {
    size_t count = 0;
    for (; list != 0; list = b->places[list].next) {
        b->joined[count] = b->places[list].at;
        count += block_has(b, s, b->places[list].at);
    }
    for (size_t i = 0; i < count; i++) {
        block_join(b, s, b->joined[i], outside);
    }
    return count;
}

/* The same for pairs of two equal tokens, from left to right. */
static size_t block_join_ascending(apply_block *b, const apply_step *s, uint16_t list, uint32_t outside) {
    uint64_t places[APPLY_BLOCK / 64 + 1] = {0};
    size_t count = 0;
    for (; list != 0; list = b->places[list].next) {
        places[b->places[list].at / 64] |= UINT64_C(1) << (b->places[list].at % 64);
    }
    for (size_t i = 0; i < APPLY_BLOCK / 64 + 1; i++) {
        for (; places[i] != 0; places[i] &= places[i] - 1) {
            size_t at = 64 * i + (size_t)__builtin_ctzll(places[i]);
            if (block_has(b, s, at)) {
                block_join(b, s, at, outside);
                b->joined[count++] = (uint16_t)at;
            }
        }
    }
    return count;
}

/* Merges the pairs of one rank, and lists the pairs that the new tokens are in. */
static void block_merge_rank(apply_blocks_table *c, const merge_table *t, uint32_t rank) {
    apply_block b = c->block; /* a copy, as above */
    uint32_t left = c->merges[2 * (size_t)rank];
    uint32_t right = c->merges[2 * (size_t)rank + 1];
    const apply_step s = {left, right, t->merged[rank], c->tokens[left].length,
                          c->tokens[left].length + c->tokens[right].length};
    uint16_t list = b.lists[rank];
    b.lists[rank] = 0;
    size_t count =
        left == right ? block_join_ascending(&b, &s, list, t->outside) : block_join_list(&b, &s, list, t->outside);
    for (size_t i = 0; i < count; i++) {
        size_t at = b.joined[i];
        uint32_t before = b.ids[at - 1];
        block_add(&b, merge_rank(t, before, s.merged), at - c->tokens[before].length);
        block_add(&b, merge_rank(t, s.merged, b.ids[at + s.length]), at);
    }
    c->block.places_used = b.places_used;
}

static void block_merge(apply_blocks_table *c, const merge_table *t, const uint8_t *w, size_t n) {
    const apply_block *b = &c->block;
    block_start(&c->block, t, w, n);
    for (size_t i = 0; i <= b->ranks / 64; i++) {
        while (b->waiting[i] != 0) {
            uint32_t rank = (uint32_t)(64 * i) + (uint32_t)__builtin_ctzll(b->waiting[i]);
            b->waiting[i] &= b->waiting[i] - 1;
            if (rank < b->ranks) {
                block_merge_rank(c, t, rank);
            }
        }
    }
}

/* Writes the tokens of the block of n bytes to `to`, and returns their number. */
static size_t block_read(const apply_block *b, size_t n, uint32_t *to) {
    size_t count = 0;
    for (size_t i = 0; i <= n / 64; i++) {
        for (uint64_t starts = b->starts[i]; starts != 0; starts &= starts - 1) {
            to[count++] = b->ids[64 * i + (size_t)__builtin_ctzll(starts)];
        }
    }
    return count;
}

/* ---------------------------------------------------------------------------------------------------
The word
*/

/* Drops the last `tokens` tokens of the row and returns how many bytes they had. */
static size_t row_shorten(const apply_blocks_table *c, size_t *count, size_t tokens) {
    size_t bytes = 0;
    for (; tokens > 0 && *count > 0; tokens--) {
        bytes += c->tokens[c->ids[--*count]].length;
    }
    return bytes;
}

bool apply_blocks(apply_blocks_table *c, const merge_table *t, const uint8_t *w, size_t n, size_t *count,
                  const pybpe_allocator *mem) {
    if (!apply_blocks_make_room(c, n, mem)) {
        return false;
    }
    size_t row = 0;
    size_t pos = 0;  /* where the row ends */
    size_t back = 1; /* how many tokens to drop next */
    size_t work = 0;
    size_t reached = 0;        /* the greatest pos so far */
    const uint8_t *merged = w; /* the block that was merged last, and its size */
    size_t merged_bytes = 0;
    while (pos < n && work / APPLY_TRIES <= reached + c->block_bytes) {
        size_t bytes = n - pos < c->block_bytes ? n - pos : c->block_bytes;
        work += bytes;
        if (bytes != merged_bytes || memcmp(w + pos, merged, bytes) != 0) { /* they are often equal in such texts */
            block_merge(c, t, w + pos, bytes);
            merged = w + pos;
            merged_bytes = bytes;
        }
        if (row > 0 && !tokens_go_together(c, t, c->ids[row - 1], c->block.ids[1], MERGE_NONE)) {
            pos -= row_shorten(c, &row, back);
            back *= 2;
            continue;
        }
        back = 1;
        size_t added = block_read(&c->block, bytes, c->ids + row);
        row += added;
        pos += bytes;
        reached = pos > reached ? pos : reached;
        if (pos < n) {
            pos -= row_shorten(c, &row, added <= APPLY_UNSURE ? added - 1 : APPLY_UNSURE);
        }
    }
    c->steps += work;
    *count = row;
    return pos == n;
}
