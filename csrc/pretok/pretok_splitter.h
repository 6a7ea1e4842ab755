/*
The inside of a splitter, for the files pretok*.c. Internal to the splitters.
*/
#ifndef PYBPE_PRETOK_SPLITTER_H
#define PYBPE_PRETOK_SPLITTER_H

#include "pretok/pretok.h"
#include "unicode/unicode.h"

/* The differences between the patterns other than gpt2. */
typedef struct pretok_rules {
    unsigned numbers; /* how many numbers a word may have: 1 to 3 */
    bool cased;       /* o200k */
    bool end_is_one;  /* cl100k's \s++$: whitespace up to the end of the text is one word */
} pretok_rules;

/* The length of the contraction at text[pos], in upper or lower case, or 0 if there is none. As Unicode folds
   cases, the long s (U+017F: C5 BF) is an s. */
static inline unsigned contraction_length(const uint8_t *text, size_t n, size_t pos) {
    if (n - pos < 2 || text[pos] != '\'') {
        return 0;
    }
    int a = text[pos + 1] | 0x20;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') {
        return 2;
    }
    if (n - pos < 3) {
        return 0;
    }
    int b = text[pos + 2] | 0x20;
    bool found = (a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e') ||
                 (text[pos + 1] == 0xC5 && text[pos + 2] == 0xBF);
    return found ? 3 : 0;
}

/* The patterns that have a cutter, once. */
enum {
    CUT_GPT2,
    CUT_GPT2_DIGITS1,
    CUT_CL100K,
    CUT_CL100K_DIGITS1,
    CUT_O200K,
    CUT_O200K_DIGITS1,
    CUT_LLAMA3,
    CUT_QWEN2, /* llama3 and nanochat with DIGITS1 are the same */
    CUT_NANOCHAT,
    CUT_COUNT
};

/* The cutters for one instruction set. */
typedef struct pretok_kernel {
    const char *name;
    bool (*supported)(void); /* whether this processor has the instructions */
    pretok_cut_fn *cut[CUT_COUNT];
} pretok_kernel;

/* One per file. NULL if the library is compiled for another kind of processor. */
const pretok_kernel *pretok_avx512(void);
const pretok_kernel *pretok_avx2(void);
const pretok_kernel *pretok_neon(void);
const pretok_kernel *pretok_swar(void);

/* Several splitters. A splitter splits the pieces of the one before it. */
typedef struct pretok_sequence {
    const pybpe_pretok *steps[SEQUENCE_MAX];
    size_t count;
    bool has_cuts;
} pretok_sequence;

struct pybpe_pretok {
    const pretok_kernel *kernel;
    pretok_cut_fn *cut;    /* one of the kernel's, or one of pretok.c */
    pretok_cut_fn *singly; /* for PYBPE_PATTERN_DIGITS3 */
    dfa *own;              /* NULL: not a compiled regular expression */
    pretok_sequence steps; /* count 0: not splitters in sequence */
    bool owns_steps;
    hash_seed seed;
    pybpe_allocator mem;
};

/* As pretok_place_start, for a splitter that is not a sequence. */
static inline void pretok_place_start_single(pretok_place *place, const pybpe_pretok *p, size_t pos, size_t n) {
    size_t size = sizeof *place; /* hidden from gcc, which has an instruction for this that takes long to begin */
    __asm__("" : "+r"(size));
    memset(place, 0, size);
    if (p->own != NULL) {
        place->own = dfa_place_at(p->own, pos, n);
        return;
    }
    place->base = place->word = place->resume = pos;
    place->ends_none = place->carry.forced = 1;
    place->ended = pos == n;
    place->singly = p->singly;
}

/* ---------------------------------------------------------------------------------------------------
pretok_sequence.c
*/

/* Prepares the levels in `room` for text[pos..n). */
void sequence_start(const pretok_sequence *s, sequence_room *room, size_t pos, size_t n);

/* Frees the memory of the levels. */
void sequence_end(const pretok_sequence *s, sequence_room *room);

/* As a pretok_cut_fn, for all levels. */
size_t sequence_cut(const pretok_sequence *s, sequence_room *room, const boundary_table *t, const uint8_t *text,
                    size_t *ends, size_t cap);

/* ---------------------------------------------------------------------------------------------------
pretok_cut.c
*/

/* Whether a text can be cut between any two ASCII characters. */
bool sequence_finds_cuts(const pretok_sequence *s);

/* ---------------------------------------------------------------------------------------------------
pretok_scan.c: one word at a time, for the rare blocks that masks cannot split
*/

/* The starts of words in the block text[base..base + length), as bits. place->resume gets the first start after it. */
uint64_t pretok_scan_starts(pretok_place *place, const uint8_t *text, size_t n, size_t base, unsigned length,
                            pretok_rules r);

/* Finds the end of the whitespace from text[pos] on, and of its last newline: place->space_end and newline_end. */
void pretok_scan_spaces(pretok_place *place, const uint8_t *text, size_t n, size_t pos);

#endif
