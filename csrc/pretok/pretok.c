/*
The splitters of the patterns.

The splitters give exactly the words that the pattern's regular expression (pattern.c) finds. They work on blocks of 64
bytes (pretok_block.h), with rules for gpt2 (pretok_gpt2.h) and for the others (pretok_cl100k.h), and there is a copy
for every set of instructions (pretok_kernel.h).
*/
#include "pretok/pretok_splitter.h"

#include <stdlib.h>

/* The values of PYBPE_SIMD, in the order of the kernels below. */
static const char *const simd_names[] = {"avx512", "avx2", "neon", "swar"};

/* The widest instructions of this machine, or narrower ones if the environment asks for them. */
static int kernel_choose(const pretok_kernel **out, pybpe_error *err) {
    const pretok_kernel *const kernels[] = {pretok_avx512(), pretok_avx2(), pretok_neon(), pretok_swar()};
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): getenv is safe while no thread changes the environment */
    const char *wanted = getenv("PYBPE_SIMD");
    bool known = wanted == NULL || *wanted == '\0';
    const pretok_kernel *widest = NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        const bool is_wanted = wanted != NULL && strcmp(wanted, simd_names[i]) == 0;
        known = known || is_wanted;
        if (kernels[i] == NULL || !kernels[i]->supported()) { /* LCOV_EXCL_BR_LINE: this machine may have them all */
            continue;
        }
        if (widest == NULL || is_wanted) {
            widest = kernels[i];
        }
    }
    *out = widest;
    return known ? PYBPE_OK
                 : error_set(err, PYBPE_ERR_VALUE, 0,
                             "PYBPE_SIMD is '%.20s': use avx512, avx2, neon or swar, or unset it", wanted);
}

enum { DIGITS = PYBPE_PATTERN_DIGITS1 | PYBPE_PATTERN_DIGITS3 };

/* The index of a kernel's cutter for a pattern that has a regular expression. For DIGITS3 it is the one for DIGITS1,
   whose words cut_groups joins. */
static int cutter_of(int pattern) {
    bool digits1 = (pattern & DIGITS) != 0;
    switch (pattern & ~DIGITS) {
    case PYBPE_PATTERN_GPT2:
        return digits1 ? CUT_GPT2_DIGITS1 : CUT_GPT2;
    case PYBPE_PATTERN_CL100K:
        return digits1 ? CUT_CL100K_DIGITS1 : CUT_CL100K;
    case PYBPE_PATTERN_O200K:
        return digits1 ? CUT_O200K_DIGITS1 : CUT_O200K;
    case PYBPE_PATTERN_LLAMA3:
        return digits1 ? CUT_QWEN2 : CUT_LLAMA3;
    case PYBPE_PATTERN_NANOCHAT:
        return digits1 ? CUT_QWEN2 : CUT_NANOCHAT;
    default:
        return CUT_QWEN2;
    }
}

static bool is_number(const uint8_t *text, size_t n, size_t pos) {
    return (unicode_decode(text, n, pos).class & UNICODE_NUMBER) != 0;
}

/* Begins a group if there is a number at text[pos], the start of a word. The first group of a run of numbers has 1 to 3
   of them, so that the others have 3. The run is read once to count them. */
static void group_begin(number_groups *g, const uint8_t *text, size_t n, size_t pos) {
    size_t numbers = 3;
    if (pos >= g->run_end) {
        g->run_end = pos;
        for (numbers = 0; is_number(text, n, g->run_end); numbers++) {
            g->run_end += unicode_decode(text, n, g->run_end).length;
        }
        numbers = numbers > 0 ? (numbers - 1) % 3 + 1 : 0;
    }
    for (g->end = pos; numbers > 0; numbers--) {
        g->end += unicode_decode(text, n, g->end).length;
    }
}

/* The cutter for DIGITS3. Leaves out the ends of words that are inside a group of numbers. */
static size_t cut_groups(pretok_place *place, const boundary_table *t, const uint8_t *text, size_t n, size_t *ends,
                         size_t cap) {
    if (place->ends_none != 0) {
        group_begin(&place->groups, text, n, place->base);
    }
    size_t kept = 0;
    size_t count;
    while (kept == 0 && (count = place->singly(place, t, text, n, ends, cap)) > 0) {
        for (size_t i = 0; i < count; i++) {
            if (ends[i] >= place->groups.end) {
                group_begin(&place->groups, text, n, ends[i]);
                ends[kept++] = ends[i];
            }
        }
    }
    return kept;
}

static int pretok_make(pybpe_pretok **out, const pybpe_allocator *mem, pybpe_error *err) {
    const pretok_kernel *kernel;
    PYBPE_TRY(kernel_choose(&kernel, err));
    pybpe_pretok *p = mem_alloc(mem, sizeof *p);
    if (p == NULL) {
        return error_set_memory(err, "a splitter", sizeof *p);
    }
    *p = (pybpe_pretok){.mem = mem_of(mem), .seed = hash_seed_draw(), .kernel = kernel};
    *out = p;
    return PYBPE_OK;
}

int pybpe_pretok_new(pybpe_pretok **out, int pattern, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    if (pybpe_pattern_regex(pattern) == NULL) {
        return error_set(err, PYBPE_ERR_VALUE, 0,
                         "pattern %d has no splitter: use one that pybpe_pattern_find returns, "
                         "with PYBPE_PATTERN_DIGITS1, PYBPE_PATTERN_DIGITS3 or nothing added",
                         pattern);
    }
    pybpe_pretok *p;
    PYBPE_TRY(pretok_make(&p, mem, err));
    p->singly = p->kernel->cut[cutter_of(pattern)];
    p->cut = (pattern & PYBPE_PATTERN_DIGITS3) != 0 ? cut_groups : p->singly;
    *out = p;
    return PYBPE_OK;
}

static size_t cut_own(pretok_place *place, const boundary_table *t, const uint8_t *text, size_t n, size_t *ends,
                      size_t cap) {
    return dfa_cut(&place->own, t, text, n, ends, cap);
}

int pybpe_pretok_new_automaton(pybpe_pretok **out, const pybpe_automaton *tables, const pybpe_allocator *mem,
                               pybpe_error *err) {
    *out = NULL;
    pybpe_pretok *p;
    PYBPE_TRY(pretok_make(&p, mem, err));
    p->cut = cut_own;
    int code = dfa_new(&p->own, tables, mem, err);
    if (code != PYBPE_OK) {
        pybpe_pretok_free(p);
        return code;
    }
    *out = p;
    return PYBPE_OK;
}

static bool reads_bytes(const pybpe_pretok *p) { return p->own != NULL && dfa_reads_bytes(p->own); }

static size_t cut_steps(pretok_place *place, const boundary_table *t, const uint8_t *text, size_t n, size_t *ends,
                        size_t cap) {
    (void)n; /* the first level knows it */
    return sequence_cut(place->sequence, place->room, t, text, ends, cap);
}

int pybpe_pretok_new_sequence(pybpe_pretok **out, const pybpe_pretok *const *steps, size_t count,
                              const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    if (count < 2 || count > SEQUENCE_MAX) {
        return error_set(err, PYBPE_ERR_VALUE, count, "%zu splitters in sequence; expected 2 to %d", count,
                         SEQUENCE_MAX);
    }
    PYBPE_TRY(array_check(steps, count, "the splitters of a sequence", err));
    for (size_t i = 0; i < count; i++) {
        if (steps[i]->steps.count != 0) {
            return error_set(err, PYBPE_ERR_VALUE, i, "splitter %zu of a sequence is a sequence itself", i);
        }
        if (i > 0 && reads_bytes(steps[i - 1]) && !reads_bytes(steps[i])) {
            return error_set(err, PYBPE_ERR_VALUE, i, "splitter %zu of a sequence reads characters, after one of bytes",
                             i);
        }
    }
    pybpe_pretok *p;
    PYBPE_TRY(pretok_make(&p, mem, err));
    p->cut = cut_steps;
    memcpy(p->steps.steps, steps, count * sizeof(const pybpe_pretok *));
    p->steps.count = count;
    p->steps.has_cuts = sequence_finds_cuts(&p->steps);
    *out = p;
    return PYBPE_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): the steps of a sequence have none */
void pybpe_pretok_free(pybpe_pretok *p) {
    if (p != NULL) {
        pybpe_allocator mem = p->mem;
        for (size_t i = 0; p->owns_steps && i < p->steps.count; i++) {
            pybpe_pretok_free((pybpe_pretok *)p->steps.steps[i]);
        }
        dfa_free(p->own, &mem);
        mem_free(&mem, p);
    }
}

void pretok_place_start(pretok_place *place, const pybpe_pretok *p, size_t pos, size_t n, sequence_room *room) {
    if (p->steps.count == 0) {
        pretok_place_start_single(place, p, pos, n);
    } else {
        sequence_start(&p->steps, room, pos, n);
        *place = (pretok_place){.sequence = &p->steps, .room = room};
    }
}

void pretok_place_end(pretok_place *place) {
    dfa_place_end(&place->own);
    if (place->sequence != NULL) {
        sequence_end(place->sequence, place->room);
    }
}

hash_seed pretok_seed(const pybpe_pretok *p) { return p->seed; }

const char *pybpe_pretok_simd(const pybpe_pretok *p) { return p->kernel->name; }

/* Leaves out the ends up to `pos`. */
static size_t ends_after(size_t *ends, size_t count, size_t pos) {
    size_t first = 0;
    while (first < count && ends[first] <= pos) {
        first++;
    }
    memmove(ends, ends + first, (count - first) * sizeof *ends);
    return count - first;
}

size_t pybpe_pretok_split(const pybpe_pretok *p, const uint8_t *text, size_t n, size_t pos, size_t *ends, size_t cap) {
    sequence_room room;
    const size_t start = p->steps.count == 0 ? pos : 0; /* a word of a later step may depend on any text before it */
    pretok_place place;
    pretok_place_start(&place, p, start, n, &room);
    size_t count;
    size_t later = 0;
    while (later == 0 && (count = p->cut(&place, NULL, text, n, ends, cap)) > 0) {
        later = ends_after(ends, count, pos);
    }
    pretok_place_end(&place);
    return later;
}

pretok_cut_fn *pretok_cutter(const pybpe_pretok *p) { return p->cut; }

int pybpe_pretok_has_cuts(const pybpe_pretok *p) {
    return p->steps.count != 0 ? p->steps.has_cuts : p->own == NULL || dfa_has_cuts(p->own);
}
