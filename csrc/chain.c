/*
Merging a long word from left to right.

Two tokens *go together* if merging their bytes, joined, gives just these two. A row of tokens in which all
neighbours go together is what merging gives for their bytes: were it not so, some merge would be the first to
cross from one token into the next, and since until then all happens as in these two alone, it would happen there too.
And the tokens of a merged word do go together. So the word's tokens can be found one after the other:

    a b a b c c d ...        take the longest token that the rest of the word begins with
    [abab]                   if it goes together with the token before it, go on behind it
    [abab][cc]               else try the next shorter one; if none is left, give the token before back,
    [abab][c ][cd]...        and mark the position as dead

Only one row leads to a position, namely what merging gives for all before it. So a position that is dead
stays dead, and none is entered twice.

Whether two tokens go together is seen by undoing their merges, the latest first. Each time the two parts that
touch are a pair that would merge earlier than what was undone last, they do not:

    abab | cc    ab | cc    ab | c    b | c        (of equal ranks the left one merges first)

This needs merges that are in order: no merge makes a token that one before it joins to something. All that trainers
make are so, but files may say otherwise. Then, or if a word needs too many tries, merge_long.c does the work,
several times slower.
*/
#include "chain.h"

/* CHAIN_TRIES: how often a token may be tried or a byte looked at, per byte of the word, before merge_long takes over.
   CHAIN_NODES_MAX: what an edge's key has room for. */
enum { CHAIN_LOG2_KNOWN = 16, CHAIN_TRIES = 32, CHAIN_EDGES_MIN = 10, CHAIN_NODES_MAX = (1 << 24) - 1 };

/* ---------------------------------------------------------------------------------------------------
Which tokens go together
*/

/* Whether a, then b, stay two tokens through all merges of ranks below `limit`. Both must be makeable. */
static bool chain_together(const chain_table *c, const merge_table *t, uint32_t a, uint32_t b, uint32_t limit) {
    for (;;) {
        if (merge_rank(t, a, b) < limit) {
            return false;
        }
        const chain_token *x = &c->tokens[a];
        const chain_token *y = &c->tokens[b];
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

/* Finds which tokens the merges make, in rank order. False if the merges are not in order. */
static bool chain_find_tokens(chain_table *c, const pybpe_vocab *v, const merge_table *t, uint8_t *joined) {
    for (size_t id = 0; id < c->count; id++) {
        c->tokens[id] = (chain_token){.made = CHAIN_NEVER, .shorter = CHAIN_NONE};
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        c->tokens[t->byte_ids[byte]] = (chain_token){.made = 0, .length = 1, .shorter = CHAIN_NONE};
    }
    for (uint32_t rank = 0; rank < v->merges_count; rank++) {
        uint32_t left = v->merges[2 * (size_t)rank];
        uint32_t right = v->merges[2 * (size_t)rank + 1];
        uint32_t id = v->merged[rank];
        const chain_token *x = &c->tokens[left];
        const chain_token *y = &c->tokens[right];
        joined[left] = 1;
        joined[right] = 1;
        if (x->made == CHAIN_NEVER || y->made == CHAIN_NEVER || merge_rank(t, left, right) != rank ||
            !chain_together(c, t, left, right, rank)) {
            continue; /* the two never meet */
        }
        if (joined[id]) {
            return false;
        }
        c->tokens[id] = (chain_token){left, right, rank + 1, x->length + y->length, CHAIN_NONE};
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------
The tree of prefixes
*/

static inline uint64_t chain_edge_key(uint32_t node, uint8_t byte) { return ((uint64_t)node << 8 | byte) + 1; }

/* The slot of an edge, or the empty one where it belongs. */
static inline uint64_t *chain_edge(const chain_table *c, uint64_t key) {
    const uint64_t mask = UINT64_MAX >> c->edges_shift;
    uint64_t i = key * UINT64_C(0x9E3779B97F4A7C15) >> c->edges_shift;
    while (c->edges[i] != 0 && c->edges[i] >> 32 != key) {
        i = (i + 1) & mask;
    }
    return &c->edges[i];
}

static bool chain_edges_grow(chain_table *c, const pybpe_allocator *mem) {
    chain_table more = *c;
    more.edges_shift = c->edges == NULL ? 64 - CHAIN_EDGES_MIN : c->edges_shift - 1;
    more.edges = mem_alloc_zeroed(mem, (size_t)1 << (64 - more.edges_shift), sizeof *more.edges);
    if (more.edges == NULL) {
        return false;
    }
    for (size_t i = 0; c->edges != NULL && i < (size_t)1 << (64 - c->edges_shift); i++) {
        if (c->edges[i] != 0) {
            *chain_edge(&more, c->edges[i] >> 32) = c->edges[i];
        }
    }
    mem_free(mem, c->edges);
    c->edges = more.edges;
    c->edges_shift = more.edges_shift;
    return true;
}

/* The node behind an edge, added if it is new; CHAIN_NONE if memory is out. */
static uint32_t chain_add_edge(chain_table *c, uint32_t node, uint8_t byte, const pybpe_allocator *mem) {
    uint64_t key = chain_edge_key(node, byte);
    uint64_t *edge = chain_edge(c, key);
    if (*edge != 0) {
        return (uint32_t)*edge;
    }
    if (c->nodes == c->nodes_cap) {
        size_t cap = 2 * c->nodes_cap;
        uint32_t *more = cap > CHAIN_NODES_MAX ? NULL : mem_resize_array(mem, c->ends, cap, sizeof *more);
        if (more == NULL) {
            return CHAIN_NONE;
        }
        c->ends = more;
        c->nodes_cap = cap;
    }
    if (2 * c->nodes >= (size_t)1 << (64 - c->edges_shift)) {
        if (!chain_edges_grow(c, mem)) {
            return CHAIN_NONE;
        }
        edge = chain_edge(c, key);
    }
    uint32_t child = (uint32_t)c->nodes++;
    c->ends[child] = CHAIN_NONE;
    *edge = key << 32 | child;
    return child;
}

static bool chain_add_token(chain_table *c, const uint8_t *bytes, size_t n, uint32_t id, const pybpe_allocator *mem) {
    uint32_t node = bytes[0];
    for (size_t i = 1; i < n && node != CHAIN_NONE; i++) {
        node = chain_add_edge(c, node, bytes[i], mem);
    }
    if (node != CHAIN_NONE) {
        c->ends[node] = id;
    }
    return node != CHAIN_NONE;
}

/* The longest token at the start of w[0..n), n > 0; of the token itself, only what is shorter. */
static uint32_t chain_longest(const chain_table *c, const uint8_t *w, size_t n, size_t *looked_at) {
    uint32_t node = w[0];
    uint32_t best = c->ends[node];
    size_t i = 1;
    for (; i < n; i++) {
        uint64_t edge = *chain_edge(c, chain_edge_key(node, w[i]));
        if (edge == 0) {
            break;
        }
        node = (uint32_t)edge;
        best = c->ends[node] != CHAIN_NONE ? c->ends[node] : best;
    }
    *looked_at += i;
    return best;
}

static bool chain_fill_tree(chain_table *c, const pybpe_vocab *v, const merge_table *t, const pybpe_allocator *mem) {
    c->nodes_cap = 512;
    c->nodes = 256;
    c->ends = mem_alloc_array(mem, c->nodes_cap, sizeof *c->ends);
    if (c->ends == NULL || !chain_edges_grow(c, mem)) {
        return false;
    }
    memcpy(c->ends, t->byte_ids, sizeof t->byte_ids);
    for (uint32_t id = 0; id < c->count; id++) {
        size_t n = c->tokens[id].length;
        if (n > 1 && !chain_add_token(c, vocab_token(v, id), n, id, mem)) {
            return false;
        }
    }
    size_t looked_at = 0;
    for (uint32_t id = 0; id < c->count; id++) {
        if (c->tokens[id].length > 1) {
            c->tokens[id].shorter = chain_longest(c, vocab_token(v, id), c->tokens[id].length - 1, &looked_at);
        }
    }
    return true;
}

void chain_fill(chain_table *c, const pybpe_vocab *v, const merge_table *t, const pybpe_allocator *mem) {
    *c = (chain_table){.tried = true, .count = v->count};
    uint8_t *joined = mem_alloc_zeroed(mem, v->count, 1);
    c->tokens = mem_alloc_array(mem, v->count, sizeof *c->tokens);
    c->known = mem_alloc_zeroed(mem, (size_t)1 << CHAIN_LOG2_KNOWN, sizeof *c->known);
    c->usable = joined != NULL && c->tokens != NULL && c->known != NULL && chain_find_tokens(c, v, t, joined) &&
                chain_fill_tree(c, v, t, mem);
    mem_free(mem, joined);
    if (!c->usable) {
        chain_free(c, mem);
        c->tried = true;
    }
}

void chain_free(chain_table *c, const pybpe_allocator *mem) {
    mem_free(mem, c->tokens);
    mem_free(mem, c->ends);
    mem_free(mem, c->edges);
    mem_free(mem, c->known);
    mem_free(mem, c->ids);
    mem_free(mem, c->dead);
    *c = (chain_table){0};
}

/* ---------------------------------------------------------------------------------------------------
The word
*/

void chain_trim(chain_table *c, size_t most, const pybpe_allocator *mem) {
    if (c->room >= most) {
        mem_free(mem, c->ids);
        mem_free(mem, c->dead);
        c->ids = NULL;
        c->dead = NULL;
        c->room = 0;
    }
}

/* Room for a token and a dead position a byte. Pages that stay untouched cost nothing. */
static bool chain_make_room(chain_table *c, size_t n, const pybpe_allocator *mem) {
    if (n > c->room) {
        chain_trim(c, 0, mem);
        c->ids = mem_alloc_array(mem, n, sizeof *c->ids);
        c->dead = mem_alloc_array(mem, n / 64 + 1, sizeof *c->dead);
        c->room = c->ids != NULL && c->dead != NULL ? n : 0;
    }
    if (c->room > 0) {
        memset(c->dead, 0, (n / 64 + 1) * sizeof *c->dead);
    }
    return c->room > 0;
}

/* The row that is being built. */
typedef struct chain_row {
    chain_table *c;
    const merge_table *t;
    const uint8_t *w;
    size_t n;     /* bytes of the word */
    size_t count; /* of tokens, at c->ids */
    size_t pos;   /* where they end */
    size_t tries;
} chain_row;

/* Whether a, then b, stay two tokens through all merges. What is found is remembered. */
static inline bool chain_pair(chain_table *c, const merge_table *t, uint32_t a, uint32_t b) {
    uint64_t key = ((uint64_t)a << 32 | b) << 1 | UINT64_C(1) << 63;
    uint64_t *known = &c->known[key * UINT64_C(0x9E3779B97F4A7C15) >> (64 - CHAIN_LOG2_KNOWN)];
    if (*known >> 1 != key >> 1) {
        *known = key | chain_together(c, t, a, b, MERGE_NONE);
    }
    return (*known & 1) != 0;
}

static inline bool chain_can_follow(const chain_row *r, uint32_t id, size_t end) {
    chain_table *c = r->c;
    return (c->dead[end / 64] >> (end % 64) & 1) == 0 &&
           (r->count == 0 || chain_pair(c, r->t, c->ids[r->count - 1], id));
}

static inline void chain_push(chain_row *r, uint32_t id, size_t end) {
    r->c->ids[r->count++] = id;
    r->pos = end;
}

/* Adds one token: `id`, or the longest shorter one that can follow. False if none can. */
static bool chain_try(chain_row *r, uint32_t id) {
    for (; id != CHAIN_NONE; id = r->c->tokens[id].shorter) {
        size_t end = r->pos + r->c->tokens[id].length;
        r->tries += 1;
        if (chain_can_follow(r, id, end)) {
            chain_push(r, id, end);
            return true;
        }
    }
    return false;
}

/* Takes back the last token, which leads nowhere, until a shorter one can be put in its place. */
static bool chain_back(chain_row *r) {
    bool found = false;
    while (!found && r->count > 0) {
        r->c->dead[r->pos / 64] |= UINT64_C(1) << r->pos % 64;
        uint32_t id = r->c->ids[--r->count];
        r->pos -= r->c->tokens[id].length;
        found = chain_try(r, r->c->tokens[id].shorter);
    }
    return found;
}

bool chain_merge(chain_table *c, const merge_table *t, const uint8_t *w, size_t n, size_t *count,
                 const pybpe_allocator *mem) {
    if (!chain_make_room(c, n, mem)) {
        return false;
    }
    chain_row r = {.c = c, .t = t, .w = w, .n = n};
    bool found = true; /* as there always is one: no word is without tokens */
    while (found && r.pos < n && r.tries <= n * CHAIN_TRIES) {
        found = chain_try(&r, chain_longest(c, w + r.pos, n - r.pos, &r.tries)) || chain_back(&r);
    }
    *count = r.count;
    return r.pos == n;
}
