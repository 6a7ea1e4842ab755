/*
Special tokens with flags, matched exactly as Hugging Face's library matches its added tokens.

Two passes look for the leftmost longest strings. The second one, for the specials that are LATE, looks at the text
between two matches of the first one, as at a separate text. Within a pass, for every match in order:

    SINGLE_WORD   if a word character is next to the match, the match is dropped; the next one is sought after it
    LSTRIP        the match is extended over the white space before it, up to the end of the match before
    RSTRIP        the match is extended over the white space after it

    specials  "<m>" LSTRIP, "ab" SINGLE_WORD         x  <m> ab abc
                                                      |----|      "<m>", with the white space before it
                                                           |-|    "ab"; the second "ab" is part of a word

After RSTRIP, a special that begins with white space would overlap the match before it. Hugging Face's library then
encodes some characters twice. pybpe refuses such specials. The rest of this file relies on that.

Source: AddedVocabulary in tokenizers/src/tokenizer/added_vocabulary.rs. There, a word character is what the crate
`regex` matches with \w, and white space what it matches with \s.
*/
#include "special/special_rules.h"

#include "special/special_data.h"
#include "unicode/unicode.h"

/* ---------------------------------------------------------------------------------------------------
Characters
*/

static bool is_word(uint32_t code_point) {
    size_t low = 0;
    size_t high = sizeof word_ranges / sizeof *word_ranges;
    while (low < high) { /* the first range that ends at code_point or later */
        size_t middle = low + (high - low) / 2;
        if (word_ranges[middle][1] < code_point) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < sizeof word_ranges / sizeof *word_ranges && word_ranges[low][0] <= code_point;
}

static uint32_t read_after(const uint8_t *text, size_t n, size_t at, uint8_t *length) {
    *length = 1;
    if (at >= n) {
        return UNICODE_INVALID;
    }
    return text[at] < 0x80 ? text[at] : unicode_read_multibyte(text + at, n - at, length);
}

static bool is_single_word(const uint8_t *text, size_t n, const special_match *match) {
    uint8_t length;
    uint32_t before = unicode_read_before(text, match->start, &length);
    uint32_t after = read_after(text, n, match->end, &length);
    return !(before != UNICODE_INVALID && is_word(before)) && !(after != UNICODE_INVALID && is_word(after));
}

static bool is_space(uint32_t code_point) {
    return code_point != UNICODE_INVALID && (unicode_class(code_point) & UNICODE_SPACE) != 0;
}

/* Where the white space that ends at `at` begins, at `low` or later. */
static size_t space_start(const uint8_t *text, size_t low, size_t at) {
    uint8_t length;
    while (at > low && is_space(unicode_read_before(text + low, at - low, &length))) {
        at -= length;
    }
    return at;
}

/* Where the white space that begins at `at` ends. */
static size_t space_end(const uint8_t *text, size_t n, size_t at) {
    uint8_t length;
    while (at < n && is_space(read_after(text, n, at, &length))) {
        at += length;
    }
    return at;
}

/* ---------------------------------------------------------------------------------------------------
Building
*/

/* Refuses a special that begins with white space, or with part of a character, which may be white space, if another one
   of its pass is RSTRIP. */
static int pass_check(const special_pass *pass, const pybpe_strings *strings, pybpe_error *err) {
    size_t strips = pass->count;
    for (size_t i = 0; i < pass->count; i++) {
        strips = (pass->flags[i] & PYBPE_SPECIAL_RSTRIP) != 0 ? i : strips;
    }
    for (size_t i = 0; strips < pass->count && i < pass->count; i++) {
        size_t n = string_length(strings, i);
        const uint8_t *string = string_at(strings, i);
        uint8_t length;
        uint32_t first = read_after(string, n, 0, &length);
        if (first == UNICODE_INVALID || is_space(first)) {
            return error_set(err, PYBPE_ERR_VALUE, pass->ids[i],
                             "special token %u begins with white space, and special token %u has rstrip: both would "
                             "match the same white space",
                             pass->ids[i], pass->ids[strips]);
        }
    }
    return PYBPE_OK;
}

/* The strings of a pass, and room for their indices. */
typedef struct pass_strings {
    uint8_t *bytes;
    uint64_t *offsets;
    uint32_t *indices;
} pass_strings;

static bool pass_allocate(special_pass *pass, pass_strings *own, const pybpe_strings *all, const pybpe_allocator *mem) {
    own->bytes = mem_alloc(mem, (size_t)strings_total(all));
    own->offsets = mem_alloc_array(mem, all->count + 1, sizeof *own->offsets);
    own->indices = mem_alloc_array(mem, all->count, sizeof *own->indices);
    pass->ids = mem_alloc_array(mem, all->count, sizeof *pass->ids);
    pass->flags = mem_alloc(mem, all->count);
    return own->bytes != NULL && own->offsets != NULL && own->indices != NULL && pass->ids != NULL &&
           pass->flags != NULL;
}

/* Adds the strings whose LATE flag is `late`. */
static void pass_fill(special_pass *pass, pass_strings *own, const pybpe_strings *all, const uint32_t *ids,
                      const uint8_t *flags, uint8_t late) {
    own->offsets[0] = 0;
    for (size_t i = 0; i < all->count; i++) {
        if ((flags[i] & PYBPE_SPECIAL_LATE) == late) {
            size_t k = pass->count++;
            size_t n = (size_t)(all->offsets[i + 1] - all->offsets[i]);
            memcpy(own->bytes + own->offsets[k], all->bytes + all->offsets[i], n);
            own->offsets[k + 1] = own->offsets[k] + n;
            own->indices[k] = (uint32_t)k;
            pass->ids[k] = ids[i];
            pass->flags[k] = flags[i];
        }
    }
}

static int pass_init(special_pass *pass, const pybpe_strings *all, const uint32_t *ids, const uint8_t *flags,
                     uint8_t late, const pybpe_allocator *mem, pybpe_error *err) {
    pass_strings own;
    int code = PYBPE_OK;
    if (pass_allocate(pass, &own, all, mem)) {
        pass_fill(pass, &own, all, ids, flags, late);
        const pybpe_strings strings = {own.bytes, own.offsets, pass->count};
        code = pass_check(pass, &strings, err);
        if (code == PYBPE_OK && pass->count > 0) {
            code = string_set_init(&pass->strings, &strings, own.indices, mem, err);
        }
    } else {
        code = error_set_memory(err, "special tokens", (size_t)strings_total(all));
    }
    mem_free(mem, own.bytes);
    mem_free(mem, own.offsets);
    mem_free(mem, own.indices);
    return code;
}

int special_passes_init(special_pass *passes, const pybpe_strings *strings, const uint32_t *ids, const uint8_t *flags,
                        const pybpe_allocator *mem, pybpe_error *err) {
    PYBPE_TRY(pass_init(&passes[0], strings, ids, flags, 0, mem, err));
    return pass_init(&passes[1], strings, ids, flags, PYBPE_SPECIAL_LATE, mem, err);
}

void special_passes_free(special_pass *passes, const pybpe_allocator *mem) {
    for (size_t i = 0; i < SPECIAL_PASSES; i++) {
        string_set_free(&passes[i].strings);
        mem_free(mem, passes[i].ids);
        mem_free(mem, passes[i].flags);
    }
}

/* ---------------------------------------------------------------------------------------------------
Finding
*/

static void pass_scan_start(pass_scan *scan, const special_pass *pass, const uint8_t *text, size_t n) {
    scan->pass = pass;
    scan->text = text;
    scan->n = n;
    scan->done = 0;
    string_scan_start(&scan->strings, pass->count > 0 ? &pass->strings : NULL, text, n, 0);
}

static bool pass_scan_next(pass_scan *scan, special_match *match) {
    while (string_scan_next(&scan->strings, match)) {
        unsigned flags = scan->pass->flags[match->id];
        if ((flags & PYBPE_SPECIAL_SINGLE_WORD) != 0 && !is_single_word(scan->text, scan->n, match)) {
            continue;
        }
        if ((flags & PYBPE_SPECIAL_LSTRIP) != 0) {
            match->start = space_start(scan->text, scan->done, match->start);
        }
        if ((flags & PYBPE_SPECIAL_RSTRIP) != 0) {
            match->end = space_end(scan->text, scan->n, match->end);
        }
        match->id = scan->pass->ids[match->id];
        scan->done = match->end;
        return true;
    }
    return false;
}

void rules_scan_start(rules_scan *scan, const special_pass *passes, const uint8_t *text, size_t n) {
    *scan = (rules_scan){.passes = passes, .text = text, .n = n};
    pass_scan_start(&scan->early, &passes[0], text, n);
}

void rules_scan_end(rules_scan *scan) {
    string_scan_end(&scan->early.strings);
    string_scan_end(&scan->late.strings);
}

/* Opens the gap before the next match of the first pass. */
static void gap_open(rules_scan *scan) {
    scan->has_next = pass_scan_next(&scan->early, &scan->next);
    size_t end = scan->has_next ? scan->next.start : scan->n;
    string_scan_end(&scan->late.strings);
    pass_scan_start(&scan->late, &scan->passes[1], scan->text + scan->gap, end - scan->gap);
    scan->in_gap = true;
}

bool rules_scan_next(rules_scan *scan, special_match *match) {
    while (!scan->is_over) {
        if (!scan->in_gap) {
            gap_open(scan);
        }
        if (pass_scan_next(&scan->late, match)) {
            match->start += scan->gap;
            match->end += scan->gap;
            return true;
        }
        scan->in_gap = false;
        scan->is_over = !scan->has_next;
        if (scan->has_next) {
            *match = scan->next;
            scan->gap = match->end;
            return true;
        }
    }
    return false;
}
