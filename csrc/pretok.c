/*
The patterns: their names, their regular expressions, and which splitter cuts with them.

The splitters are pretok_gpt2.c, which works on 64 bytes at once because most tokenizers are of its kind,
and pretok_scan.c for the others. Both give exactly the words that the regular expression finds.
*/
#include "pretok.h"

#include <stdlib.h>

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define OTHERS " ?[^\\s\\p{L}\\p{N}]+"
#define SPACES "\\s+(?!\\S)|\\s+"

/* As the models' authors published them, except that gpt2's and cl100k's possessive quantifiers, which only
   make a backtracking engine faster, are plain here: tokenizers' engine takes some of them differently. */
#define GPT2(number) "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+|" number "|" OTHERS "|" SPACES
#define CL100K(number) "'(?i:[sdmt]|ll|ve|re)|" LETTERS "|" number "|" OTHERS "[\\r\\n]*|\\s++$|\\s*[\\r\\n]+|" SPACES
#define LLAMA3(number) CONTRACTION "|" LETTERS "|" number "|" OTHERS "[\\r\\n]*|\\s*[\\r\\n]+|" SPACES
#define O200K_START "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K_END "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K(number)                                                                                                  \
    O200K_START "*" O200K_END "+" CONTRACTION "?|" O200K_START "+" O200K_END "*" CONTRACTION "?|" number "|" OTHERS    \
                "[\\r\\n/]*|\\s*[\\r\\n]+|" SPACES

static const char *const simd_names[] = {
    [PRETOK_SWAR] = "swar",
    [PRETOK_AVX2] = "avx2",
    [PRETOK_AVX512] = "avx512",
};

struct pybpe_pretok {
    pretok_cut_fn *cut; /* one of these, the other is NULL */
    pretok_split_fn *split;
    enum pretok_simd simd;
    hash_seed seed;
    pybpe_allocator mem;
};

int pybpe_pattern_find(const char *name) {
    static const struct {
        const char *name;
        int pattern;
    } names[] = {
        {"gpt2", PYBPE_PATTERN_GPT2},   {"r50k", PYBPE_PATTERN_GPT2},   {"cl100k", PYBPE_PATTERN_CL100K},
        {"gpt4", PYBPE_PATTERN_CL100K}, {"o200k", PYBPE_PATTERN_O200K}, {"llama3", PYBPE_PATTERN_LLAMA3},
        {"qwen2", PYBPE_PATTERN_QWEN2},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i].name) == 0) {
            return names[i].pattern;
        }
    }
    return PYBPE_ERR_VALUE;
}

const char *pybpe_pattern_regex(int pattern) {
    switch (pattern) {
    case PYBPE_PATTERN_GPT2:
        return GPT2(" ?\\p{N}+");
    case PYBPE_PATTERN_GPT2 + PYBPE_PATTERN_DIGITS1:
        return GPT2("\\p{N}");
    case PYBPE_PATTERN_CL100K:
        return CL100K("\\p{N}{1,3}");
    case PYBPE_PATTERN_CL100K + PYBPE_PATTERN_DIGITS1:
        return CL100K("\\p{N}");
    case PYBPE_PATTERN_O200K:
        return O200K("\\p{N}{1,3}");
    case PYBPE_PATTERN_O200K + PYBPE_PATTERN_DIGITS1:
        return O200K("\\p{N}");
    case PYBPE_PATTERN_LLAMA3:
        return LLAMA3("\\p{N}{1,3}");
    case PYBPE_PATTERN_LLAMA3 + PYBPE_PATTERN_DIGITS1: /* the same as qwen2 */
    case PYBPE_PATTERN_QWEN2:
    case PYBPE_PATTERN_QWEN2 + PYBPE_PATTERN_DIGITS1:
        return LLAMA3("\\p{N}");
    default:
        return NULL;
    }
}

/* The widest instructions of this machine, or narrower ones if the environment asks for them. Each
   variant's needs are those of its __attribute__((target)) in pretok_gpt2.c. */
static enum pretok_simd simd_choose(void) {
    enum pretok_simd best = PRETOK_SWAR;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("popcnt")) {
        best = PRETOK_AVX2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vbmi2")) {
            best = PRETOK_AVX512;
        }
    }
#endif
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): getenv is safe while no thread changes the environment */
    const char *wanted = getenv("PYBPE_SIMD");
    for (enum pretok_simd simd = PRETOK_SWAR; wanted != NULL && simd < best; simd++) {
        if (strcmp(wanted, simd_names[simd]) == 0) {
            return simd;
        }
    }
    return best;
}

int pybpe_pretok_new(pybpe_pretok **out, int pattern, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    if (pybpe_pattern_regex(pattern) == NULL) {
        return error_set(err, PYBPE_ERR_VALUE, 0,
                         "pattern %d has no splitter: use one that pybpe_pattern_find returns, "
                         "with PYBPE_PATTERN_DIGITS1 added or not",
                         pattern);
    }
    pybpe_pretok *p = mem_alloc(mem, sizeof *p);
    if (p == NULL) {
        return error_set_memory(err, "a splitter", sizeof *p);
    }
    *p = (pybpe_pretok){.mem = mem_of(mem), .seed = hash_seed_draw()};
    if ((pattern & ~PYBPE_PATTERN_DIGITS1) == PYBPE_PATTERN_GPT2) {
        p->simd = simd_choose();
        p->cut = pretok_gpt2_cutter(p->simd, (pattern & PYBPE_PATTERN_DIGITS1) != 0);
    } else {
        p->simd = PRETOK_SWAR; /* there is one splitter for all machines */
        p->split = pretok_scan_splitter(pattern);
    }
    *out = p;
    return PYBPE_OK;
}

void pybpe_pretok_free(pybpe_pretok *p) {
    if (p != NULL) {
        pybpe_allocator mem = p->mem;
        mem_free(&mem, p);
    }
}

hash_seed pretok_seed(const pybpe_pretok *p) { return p->seed; }

const char *pybpe_pretok_simd(const pybpe_pretok *p) { return simd_names[p->simd]; }

size_t pybpe_pretok_split(const pybpe_pretok *p, const uint8_t *text, size_t n, size_t pos, size_t *ends, size_t cap) {
    if (p->split != NULL) {
        return p->split(text, n, pos, ends, cap);
    }
    pretok_place place = pretok_place_at(pos, n);
    return p->cut(&place, NULL, text, n, ends, cap);
}

pretok_cut_fn *pretok_cutter(const pybpe_pretok *p) { return p->cut; }
