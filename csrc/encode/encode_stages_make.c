/*
Makes the stages of encode_stages.c, where the ids are proved exact: finds where merges are divided into two stages,
checks that this is exact, and fills the tables of stage 2.
*/
#include "encode/encode_stages.h"

enum {
    JOINT_BITS = 16,      /* per joint */
    JOINTS_LOG2_MIN = 12, /* bits */
    JOINTS_LOG2_MAX = 22, /* more would not stay in a level 2 cache */
    PAIRS_LOG2_MIN = 5,   /* buckets */
    PAIRS_SPREAD = 1      /* buckets per pair, at least */
};

/* Whether merge m joins a space to another visible ASCII character before it. */
static bool merge_joins_words(const pybpe_vocab *v, size_t m) {
    const uint32_t left = v->merges[2 * m];
    const uint8_t before = vocab_token(v, left)[vocab_token_length(v, left) - 1];
    return *vocab_token(v, v->merges[2 * m + 1]) == ' ' && before > ' ' && before < 0x7F;
}

size_t stages_first_merges(const pybpe_vocab *v) {
    size_t k = 0;
    while (k < v->merges_count && !merge_joins_words(v, k)) {
        k += 1;
    }
    const size_t least = v->merges_count / 4; /* with fewer, most of the work is in stage 2 */
    return k >= least ? k : v->merges_count;
}

/* The tokens of stage 1 that a token begins and ends with. PYBPE_NO_ID for a token that no merge makes. */
typedef struct stage_ends {
    uint32_t first, last;
    bool used;     /* by a merge of stage 1 */
    uint8_t parts; /* the PART_s that it can be in a merge of stage 2 */
} stage_ends;

static void find_first_stage(stage_ends *tokens, const pybpe_vocab *v, size_t k) {
    for (size_t id = 0; id < v->count; id++) {
        tokens[id] = (stage_ends){PYBPE_NO_ID, PYBPE_NO_ID, false, 0};
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t id = v->byte_ids[byte];
        if (id != PYBPE_NO_ID) {
            tokens[id].first = tokens[id].last = id;
        }
    }
    for (size_t m = 0; m < k; m++) {
        uint32_t id = v->merged[m];
        tokens[id].first = tokens[id].last = id;
        tokens[v->merges[2 * m]].used = tokens[v->merges[2 * m + 1]].used = true;
    }
}

/* Finds what the tokens of stage 2 begin and end with. Returns false if two stages would not be exact. */
static bool find_second_stage(stage_ends *tokens, const pybpe_vocab *v, size_t k) {
    for (size_t m = k; m < v->merges_count; m++) {
        stage_ends *left = &tokens[v->merges[2 * m]];
        stage_ends *right = &tokens[v->merges[2 * m + 1]];
        stage_ends *made = &tokens[v->merged[m]];
        if (left->first == PYBPE_NO_ID || right->first == PYBPE_NO_ID || made->used) {
            return false; /* the merges are not in order */
        }
        if (made->first == PYBPE_NO_ID) {
            made->first = left->first;
            made->last = right->last;
        }
        if (made->first != left->first || made->last != right->last) {
            return false;
        }
        left->parts |= PART_LEFT;
        right->parts |= PART_RIGHT;
    }
    return true;
}

static void joint_enter(encode_stages *s, uint32_t a, uint32_t b) {
    uint64_t index = stages_joint_index(s, a, b);
    s->joints[index >> 12] |= UINT64_C(1) << (index & 63) | UINT64_C(1) << (index >> 6 & 63);
}

/* Enters, for each merge of stage 2, the pair of tokens of stage 1 that meet in it. If its left part is a token of
   stage 2, also that token and what meets it, and likewise for the right part: see stages_joint_has. */
static int joints_make(encode_stages *s, const stage_ends *tokens, const pybpe_vocab *v, size_t k,
                       const pybpe_allocator *mem, pybpe_error *err) {
    unsigned log2_bits = JOINTS_LOG2_MIN;
    const size_t bits = JOINT_BITS * (v->merges_count - k);
    while (log2_bits < JOINTS_LOG2_MAX && (size_t)1 << log2_bits < bits) { /* LCOV_EXCL_BR_LINE: 2^18 superwords */
        log2_bits += 1;
    }
    size_t words = (size_t)1 << (log2_bits - 6);
    s->joints_shift = 64 - (log2_bits - 6) - 12;
    s->joints = mem_alloc_zeroed(mem, words, sizeof *s->joints);
    PYBPE_TRY(memory_check(s->joints, "the second stage of an encoder", words * sizeof *s->joints, err));
    for (size_t m = k; m < v->merges_count; m++) {
        const uint32_t left = v->merges[2 * m];
        const uint32_t right = v->merges[2 * m + 1];
        joint_enter(s, tokens[left].last, tokens[right].first);
        joint_enter(s, left, tokens[right].first);
        joint_enter(s, tokens[left].last, right);
    }
    return PYBPE_OK;
}

/* Makes the table of the pairs that stage 2 merges. A pair that is there twice keeps its first rank. */
static int pairs_make(encode_stages *s, const stage_ends *tokens, const pybpe_vocab *v, size_t k,
                      const pybpe_allocator *mem, pybpe_error *err) {
    unsigned log2_buckets = PAIRS_LOG2_MIN;
    while ((size_t)1 << log2_buckets < PAIRS_SPREAD * (v->merges_count - k)) {
        log2_buckets += 1;
    }
    size_t slots = (size_t)2 << log2_buckets;
    s->pairs_mask = slots / 2 - 1;
    s->pairs_shift = 64 - log2_buckets;
    s->pairs_factor = hash_seed_draw().a | 1;
    s->first_rank = (uint32_t)k;
    s->pairs = mem_alloc_array(mem, slots, sizeof *s->pairs);
    PYBPE_TRY(memory_check(s->pairs, "the second stage of an encoder", slots * sizeof *s->pairs, err));
    memset(s->pairs, 0xFF, slots * sizeof *s->pairs);
    for (size_t m = k; m < v->merges_count; m++) {
        uint64_t key = stages_key(v->merges[2 * m], v->merges[2 * m + 1]);
        uint64_t order = (m - k) << STAGES_PARTS_BITS | tokens[v->merged[m]].parts;
        uint64_t *slot = stages_slot(s, key);
        *slot = *slot == UINT64_MAX ? key << STAGES_ORDER_BITS | order : *slot;
    }
    return PYBPE_OK;
}

static int stages_fill(encode_stages *s, const stage_ends *tokens, const pybpe_vocab *v, size_t k,
                       const pybpe_allocator *mem, pybpe_error *err) {
    s->vocab = *v;
    s->vocab.merges_count = k;
    s->vocab.all_own = false; /* later merges are missing */
    s->vocab.specials_count = 0;
    s->vocab.whole_words = 0;
    s->vocab.pattern = PYBPE_PATTERN_CUSTOM; /* the encoder is given words */
    s->vocab.custom = NULL;
    PYBPE_TRY(joints_make(s, tokens, v, k, mem, err));
    PYBPE_TRY(pairs_make(s, tokens, v, k, mem, err));
    return pybpe_pretok_new(&s->splits, PYBPE_PATTERN_GPT2, mem, err);
}

int stages_new(encode_stages **out, const pybpe_vocab *v, size_t merges, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    const size_t most = (size_t)1 << (STAGES_ORDER_BITS - STAGES_PARTS_BITS);
    if (merges >= v->merges_count || v->merges_count - merges > most) { /* LCOV_EXCL_BR_LINE: 2^20 superwords */
        return PYBPE_OK;
    }
    stage_ends *tokens = mem_alloc_array(mem, v->count, sizeof *tokens);
    encode_stages *s = mem_alloc_zeroed(mem, 1, sizeof *s);
    int code = tokens == NULL || s == NULL
                   ? error_set_memory(err, "the stages of an encoder", v->count * sizeof *tokens)
                   : PYBPE_OK;
    if (code == PYBPE_OK) {
        find_first_stage(tokens, v, merges);
        if (find_second_stage(tokens, v, merges)) {
            code = stages_fill(s, tokens, v, merges, mem, err);
            *out = code == PYBPE_OK ? s : NULL;
        }
    }
    mem_free(mem, tokens);
    if (*out == NULL) {
        stages_free(s, mem);
    }
    return code;
}

void stages_free(encode_stages *s, const pybpe_allocator *mem) {
    if (s == NULL) {
        return;
    }
    pybpe_pretok_free(s->splits);
    mem_free(mem, s->pairs);
    mem_free(mem, s->joints);
    mem_free(mem, s);
}
