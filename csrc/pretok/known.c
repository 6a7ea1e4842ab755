/*
Regular expressions that the library knows besides the named patterns, for the models in docs/models.md. They are
automaton, which Python has compiled (known_data.h, from csrc/generate/known_generate.py).

A character has the class of its category, unless it is in one of the ranges that are listed.
*/
#include "pretok/pretok_splitter.h"

enum { KNOWN_CATEGORIES = 8, KNOWN_CODE_POINTS = 0x110000 };

typedef struct known_range {
    uint32_t first : 24, class : 8;
    uint32_t last;
} known_range;

typedef struct known_pattern {
    const char *regex; /* as pybpe spells it */
    uint8_t class_of[KNOWN_CATEGORIES];
    uint8_t classes, states;
    bool bytes;
    uint16_t ranges_count, ranges, rows; /* where they begin in the arrays of all */
} known_pattern;

#include "pretok/known_data.h"

/* 0 for no class, then the numbers of the classes of unicode.h. */
static unsigned known_category(uint32_t c) {
    unsigned class = unicode_class(c);
    return class == 0 ? 0 : class > UNICODE_NEWLINE ? KNOWN_CATEGORIES - 1 : (unsigned)__builtin_ctz(class) + 1;
}

/* Writes where the ranges of characters of one class begin, and returns how many there are. With `first` NULL they are
   only counted. A block of characters in the same categories as a block without a change has none either. */
static size_t known_ranges(const known_pattern *k, uint32_t *first, uint8_t *class_of) {
    const uint32_t block = 1U << UNICODE_BLOCK_BITS;
    const known_range *other = KNOWN_RANGES + k->ranges;
    const known_range *const others_end = other + k->ranges_count;
    size_t count = 0;
    unsigned last = UINT8_MAX + 1;
    uint32_t quiet = 0; /* no class changes from here to c, and no other range is there */
    for (uint32_t c = 0; c < KNOWN_CODE_POINTS;) {
        const uint32_t next_other = other < others_end ? other->first : KNOWN_CODE_POINTS;
        const uint8_t *index = &pybpe_unicode_index[c >> UNICODE_BLOCK_BITS];
        if (c % block == 0 && c - quiet > block && index[0] == index[-1] && next_other - c >= block) {
            c += block;
            continue;
        }
        const bool is_other = c == next_other;
        const unsigned class = is_other ? other->class : k->class_of[known_category(c)];
        if (class != last) {
            if (first != NULL) {
                first[count] = c;
                class_of[count] = (uint8_t)class;
            }
            count += 1;
            last = class;
            quiet = c;
        }
        c = is_other ? other->last + 1 : c + 1;
        quiet = is_other ? c : quiet;
        other += is_other;
    }
    return count;
}

static int known_new(pybpe_pretok **out, const known_pattern *k, const pybpe_allocator *mem, pybpe_error *err) {
    const size_t count = known_ranges(k, NULL, NULL);
    uint32_t *first = mem_alloc_array(mem, count, sizeof *first);
    uint8_t *class_of = mem_alloc(mem, count);
    int code = PYBPE_OK;
    if (first == NULL || class_of == NULL) {
        code = error_set_memory(err, "the classes of a regular expression", count * (sizeof *first + 1));
    } else {
        known_ranges(k, first, class_of);
        const pybpe_automaton tables = {.first = first,
                                        .class_of = class_of,
                                        .ranges = count,
                                        .classes = k->classes,
                                        .states = k->states,
                                        .next = KNOWN_ROWS + k->rows,
                                        .bytes = k->bytes};
        code = pybpe_pretok_new_automaton(out, &tables, mem, err);
    }
    mem_free(mem, first);
    mem_free(mem, class_of);
    return code;
}

static int known_step_new(pybpe_pretok **out, const char *regex, size_t n, const pybpe_allocator *mem,
                          pybpe_error *err) {
    const int pattern = pybpe_pattern_find_regex((const uint8_t *)regex, n);
    if (pattern >= 0) {
        return pybpe_pretok_new(out, pattern, mem, err);
    }
    for (size_t i = 0; i < sizeof KNOWN_PATTERNS / sizeof *KNOWN_PATTERNS; i++) {
        if (strlen(KNOWN_PATTERNS[i].regex) == n && memcmp(KNOWN_PATTERNS[i].regex, regex, n) == 0) {
            return known_new(out, &KNOWN_PATTERNS[i], mem, err);
        }
    }
    return error_set(
        err, PYBPE_ERR_VALUE, 0,
        "the C library does not know the regular expression %.*s: compile it in Python and pass its tables to "
        "pybpe_pretok_new_automaton, or split the text and call pybpe_encode_words",
        n < 80 ? (int)n : 80, regex);
}

int pybpe_pretok_new_regex(pybpe_pretok **out, const char *regex, const pybpe_allocator *mem, pybpe_error *err) {
    static const char then[] = "(?then)";
    pybpe_pretok *steps[SEQUENCE_MAX] = {NULL};
    size_t count = 0;
    int code = PYBPE_OK;
    *out = NULL;
    for (const char *at = regex; code == PYBPE_OK && at != NULL; count += code == PYBPE_OK) {
        const char *end = strstr(at, then);
        if (count == SEQUENCE_MAX) {
            code = error_set(err, PYBPE_ERR_VALUE, 0, "a pattern has more than %d steps", SEQUENCE_MAX);
            break;
        }
        code = known_step_new(&steps[count], at, end != NULL ? (size_t)(end - at) : strlen(at), mem, err);
        at = end != NULL ? end + sizeof then - 1 : NULL;
    }
    if (code == PYBPE_OK && count == 1) {
        *out = steps[0];
        return PYBPE_OK;
    }
    if (code == PYBPE_OK) {
        code = pybpe_pretok_new_sequence(out, (const pybpe_pretok *const *)steps, count, mem, err);
    }
    if (code == PYBPE_OK) {
        (*out)->owns_steps = true;
        return PYBPE_OK;
    }
    for (size_t i = 0; i < count; i++) {
        pybpe_pretok_free(steps[i]);
    }
    return code;
}
