/*
BPE dropout: encoding with merges left out at random.
Source: Provilkov et al. 2020, BPE-Dropout: Simple and Effective Subword Regularization, arXiv 1910.13267, and the order
of events of Hugging Face's tokenizers (tokenizers/src/models/bpe/word.rs), whose distribution this has.

The queue holds the pairs that can merge, the lowest rank first and, within a rank, the leftmost. In each step its
entries are tried in this order. Each is passed over with the probability `rate`. The first one that is not leaves the
queue, and its pair becomes a token, which adds the pairs on both sides of it. All that were passed over are tried again
in the next step. If a step passes over all entries, the word is finished.

In the paper, a step tries only the pairs that exist. Here as in Hugging Face's library, the entry of a pair that has
changed stays in the queue until a step takes it, and such a step merges nothing. So the distributions differ slightly.

How many entries a step passes over has a geometric distribution: k of them with the probability rate^k (1 - rate). The
bits of such a number are independent: the one of value v is set with the probability rate^v / (1 + rate^v). So one
number takes a few draws, and no step has to look at the entries that it passes over: the queue is a treap (Seidel and
Aragon 1996) that removes its k-th entry in O(log n) time. That is O(n log n) for a word, for every rate.

The random numbers of a word depend only on the seed and on the word's place, so they are the same however a text is cut
into pieces. Nothing is cached.
*/
#include "encode/encode.h"
#include "pretok/pretok.h"

#define NO_NODE UINT32_MAX

enum { DROPOUT_BITS = 64, DROPOUT_ENDS = 256, DRAW_BITS = 53 };

/* An entry of the queue. Parents have a greater weight than their children, and weights are random. */
typedef struct dropout_node {
    uint64_t key; /* rank << 32 | position */
    uint64_t weight;
    uint32_t left, right;
    uint32_t size; /* of the subtree */
} dropout_node;

/* A token, at the position of its first byte. */
typedef struct dropout_symbol {
    uint32_t id;
    uint32_t rank; /* of the pair with the next one. Also MERGE_NONE if merged into the one before */
    uint32_t prev, next;
} dropout_symbol;

typedef struct dropout_work {
    const pybpe_encoder *e;
    uint64_t limits[DROPOUT_BITS]; /* bit j of a geometric number is set if a draw of 53 bits is below limits[j] */
    unsigned bits;
    uint64_t random, weights; /* the states of two generators. What the second one gives affects only the time */
    dropout_symbol *symbols;
    dropout_node *nodes;
    size_t room; /* of a word, in bytes */
    uint32_t used, root;
} dropout_work;

/* ---------------------------------------------------------------------------------------------------
Random numbers: SplitMix64 (Steele, Lea and Flood 2014), the same on every machine
*/

static uint64_t splitmix_mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static uint64_t splitmix_draw(uint64_t *state) {
    *state += UINT64_C(0x9E3779B97F4A7C15);
    return splitmix_mix(*state);
}

static void limits_fill(dropout_work *work, double rate) {
    const double whole = (double)(UINT64_C(1) << DRAW_BITS);
    for (double power = rate; power * whole >= 1 && work->bits < DROPOUT_BITS; power *= power) {
        work->limits[work->bits++] = (uint64_t)(power / (1 + power) * whole);
    }
}

/* The number of entries that a step passes over. */
static uint64_t draw_passed(dropout_work *work) {
    uint64_t passed = 0;
    for (unsigned j = 0; j < work->bits; j++) {
        uint64_t bit = splitmix_draw(&work->random) >> (64 - DRAW_BITS) < work->limits[j];
        passed |= bit << j;
    }
    return passed;
}

/* ---------------------------------------------------------------------------------------------------
The queue
*/

static uint32_t treap_size(const dropout_node *nodes, uint32_t t) { return t == NO_NODE ? 0 : nodes[t].size; }

static void treap_update(dropout_node *nodes, uint32_t t) {
    nodes[t].size = 1 + treap_size(nodes, nodes[t].left) + treap_size(nodes, nodes[t].right);
}

/* Divides a treap into the keys below `key` and the others. */
static void treap_split(dropout_node *nodes, uint32_t t, uint64_t key, uint32_t *below, uint32_t *others) {
    if (t == NO_NODE) {
        *below = *others = NO_NODE;
    } else if (nodes[t].key < key) {
        treap_split(nodes, nodes[t].right, key, &nodes[t].right, others);
        treap_update(nodes, t);
        *below = t;
    } else {
        treap_split(nodes, nodes[t].left, key, below, &nodes[t].left);
        treap_update(nodes, t);
        *others = t;
    }
}

/* Joins two treaps. All keys of `a` are below the keys of `b`. */
static uint32_t treap_join(dropout_node *nodes, uint32_t a, uint32_t b) {
    if (a == NO_NODE || b == NO_NODE) {
        return a == NO_NODE ? b : a;
    }
    uint32_t top = nodes[a].weight > nodes[b].weight ? a : b;
    if (top == a) {
        nodes[a].right = treap_join(nodes, nodes[a].right, b);
    } else {
        nodes[b].left = treap_join(nodes, a, nodes[b].left);
    }
    treap_update(nodes, top);
    return top;
}

static void drop_queue_add(dropout_work *work, uint32_t rank, uint32_t position) {
    dropout_node *nodes = work->nodes;
    uint64_t key = (uint64_t)rank << 32 | position;
    uint64_t weight = splitmix_draw(&work->weights);
    uint32_t *link = &work->root;
    while (*link != NO_NODE && nodes[*link].weight >= weight) {
        nodes[*link].size += 1;
        link = key < nodes[*link].key ? &nodes[*link].left : &nodes[*link].right;
    }
    uint32_t t = work->used++;
    uint32_t below = NO_NODE;
    uint32_t others = NO_NODE;
    treap_split(nodes, *link, key, &below, &others);
    nodes[t] = (dropout_node){key, weight, below, others, 0};
    treap_update(nodes, t);
    *link = t;
}

/* Removes the entry before which there are `k` others. */
static uint64_t drop_queue_take(dropout_work *work, uint32_t k) {
    dropout_node *nodes = work->nodes;
    uint32_t *link = &work->root;
    for (;;) {
        uint32_t t = *link;
        uint32_t before = treap_size(nodes, nodes[t].left);
        if (k == before) {
            *link = treap_join(nodes, nodes[t].left, nodes[t].right);
            return nodes[t].key;
        }
        nodes[t].size -= 1;
        link = k < before ? &nodes[t].left : &nodes[t].right;
        k = k < before ? k : k - before - 1;
    }
}

/* ---------------------------------------------------------------------------------------------------
One word
*/

static bool drop_make_room(dropout_work *work, size_t n) {
    if (n <= work->room) {
        return true;
    }
    const pybpe_allocator *mem = &work->e->mem;
    size_t want = n > 2 * work->room ? n : 2 * work->room;
    mem_free(mem, work->symbols);
    mem_free(mem, work->nodes);
    work->symbols = mem_alloc_array(mem, want, sizeof *work->symbols);
    work->nodes = mem_alloc_array(mem, want, 3 * sizeof *work->nodes); /* one per pair at first, and two per merge */
    work->room = work->symbols != NULL && work->nodes != NULL ? want : 0;
    return work->room > 0;
}

static void drop_pair_set(dropout_work *work, uint32_t a, uint32_t rank) {
    work->symbols[a].rank = rank;
    if (rank != MERGE_NONE) {
        drop_queue_add(work, rank, a);
    }
}

static void drop_start(dropout_work *work, const uint8_t *w, uint32_t n) {
    const merge_table *t = &work->e->table;
    work->root = NO_NODE;
    work->used = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool last = i + 1 == n;
        work->symbols[i] = (dropout_symbol){t->byte_ids[w[i]], MERGE_NONE, i - 1, last ? NO_NODE : i + 1};
        drop_pair_set(work, i, last ? MERGE_NONE : t->byte_ranks[w[i] << 8 | w[i + 1]]);
    }
}

/* Merges the symbol at position a with the next one. */
static void drop_pair_merge(dropout_work *work, uint32_t a) {
    const merge_table *t = &work->e->table;
    dropout_symbol *symbols = work->symbols;
    dropout_symbol *left = &symbols[a];
    dropout_symbol *right = &symbols[left->next];
    left->id = merge_result(t, left->rank);
    left->rank = MERGE_NONE;
    right->rank = MERGE_NONE;
    left->next = right->next;
    if (left->prev != NO_NODE) {
        drop_pair_set(work, left->prev, merge_rank(t, symbols[left->prev].id, left->id));
    }
    if (left->next != NO_NODE) {
        symbols[left->next].prev = a;
        drop_pair_set(work, a, merge_rank(t, left->id, symbols[left->next].id));
    }
}

/* Writes the tokens of the word at byte `place` to `ids`, and returns their number. */
static size_t drop_word(dropout_work *work, const pybpe_dropout *how, uint64_t place, const uint8_t *w, uint32_t n,
                        uint32_t *ids) {
    work->random = splitmix_mix(splitmix_mix(how->seed) + place);
    drop_start(work, w, n);
    while (how->rate < 1 && work->root != NO_NODE) {
        uint64_t passed = draw_passed(work);
        if (passed >= work->nodes[work->root].size) {
            break;
        }
        uint64_t key = drop_queue_take(work, (uint32_t)passed);
        if (work->symbols[(uint32_t)key].rank == key >> 32) {
            drop_pair_merge(work, (uint32_t)key);
        }
    }
    size_t count = 0;
    for (uint32_t i = 0; i != NO_NODE; i = work->symbols[i].next) {
        ids[count++] = work->symbols[i].id;
    }
    return count;
}

/* ---------------------------------------------------------------------------------------------------
Texts
*/

static int drop_range(dropout_work *work, const pybpe_dropout *how, const uint8_t *text, const size_t *range,
                      uint32_t *ids, size_t *count, pybpe_error *err) {
    size_t n = range[1] - range[0];
    if (n >= NO_NODE / 3) {
        return error_set(err, PYBPE_ERR_LIMIT, range[0], "a word of %zu bytes is too long for dropout", n);
    }
    if (!drop_make_room(work, n)) {
        return error_set_memory(err, "encoding with dropout", n * (sizeof *work->symbols + 3 * sizeof *work->nodes));
    }
    *count += drop_word(work, how, how->offset + range[0], text + range[0], (uint32_t)n, ids + *count);
    return PYBPE_OK;
}

static int drop_text(dropout_work *work, const pybpe_dropout *how, const uint8_t *text, size_t n, uint32_t *ids,
                     size_t *count, pybpe_error *err) {
    const pybpe_pretok *p = work->e->pretok;
    sequence_room room;
    size_t ends[DROPOUT_ENDS + 1] = {0}; /* after the end of the word before */
    if (p == NULL) {
        ends[1] = n;
        return n > 0 ? drop_range(work, how, text, ends, ids, count, err) : PYBPE_OK;
    }
    pretok_place place;
    pretok_place_start(&place, p, 0, n, &room);
    size_t words;
    int code = PYBPE_OK;
    while (code == PYBPE_OK && (words = pretok_cutter(p)(&place, NULL, text, n, ends + 1, DROPOUT_ENDS)) > 0) {
        for (size_t i = 0; i < words && code == PYBPE_OK; i++) {
            code = drop_range(work, how, text, ends + i, ids, count, err);
        }
        ends[0] = ends[words];
    }
    pretok_place_end(&place);
    return code;
}

int pybpe_encode_dropout(const pybpe_encoder *e, const pybpe_dropout *how, const uint8_t *text, size_t n, uint32_t *ids,
                         size_t *count, pybpe_error *err) {
    if (!(how->rate >= 0 && how->rate <= 1)) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "the dropout is %g; expected 0 to 1", how->rate);
    }
    PYBPE_TRY(encoder_check_unchanging(e, err));
    PYBPE_TRY(encoder_check_bytes(e, text, n, 0, err));
    size_t found = 0;
    dropout_work work = {.e = e, .weights = how->seed};
    limits_fill(&work, how->rate);
    const int code = drop_text(&work, how, text, n, ids, &found, err);
    mem_free(&e->mem, work.symbols);
    mem_free(&e->mem, work.nodes);
    if (code == PYBPE_OK) {
        *count = found;
    }
    return code;
}
