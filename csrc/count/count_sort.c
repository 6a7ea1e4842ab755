/*
Sorting words by their bytes.

A first pass distributes the words over 65,536 buckets by their first two bytes, in one array of indices. Then every
bucket is sorted by merging, and its words are compared by the next eight bytes, which lie next to the index. Only words
that agree in ten bytes are compared in memory elsewhere. A merge sort compares a word at most log2(n) times, so no set
of words takes more than O(n log n) in the sum of lengths.

Besides the indices, this takes 32 bytes per word of the largest bucket: in natural text, a bucket is a space and a
letter, and has at most a tenth of the words.
*/
#include "count/count_words.h"

enum { SORT_BUCKETS = 1 << 16, BUCKET_BYTES = 2, INSERTION_MOST = 8, TAKE_AHEAD = 12 };

typedef struct sort_entry {
    uint64_t prefix; /* bytes 2 to 9 */
    uint32_t word;
} sort_entry;

static size_t bucket_of(const pybpe_strings *words, size_t i) {
    const size_t length = string_length(words, i);
    const uint8_t *const word = string_at(words, i);
    return (size_t)(length > 0 ? word[0] : 0) << 8 | (length > 1 ? word[1] : 0);
}

/* Returns whether the word of x comes before the word of y. */
static bool entry_less(const pybpe_strings *words, const sort_entry *x, const sort_entry *y) {
    if (x->prefix != y->prefix) {
        return x->prefix < y->prefix;
    }
    return words_compare(string_at(words, x->word), string_length(words, x->word), string_at(words, y->word),
                         string_length(words, y->word)) < 0;
}

static void insertion_sort(const pybpe_strings *words, sort_entry *entries, size_t n) {
    for (size_t i = 1; i < n; i++) {
        sort_entry moved = entries[i];
        size_t at = i;
        for (; at > 0 && entry_less(words, &moved, &entries[at - 1]); at--) {
            entries[at] = entries[at - 1];
        }
        entries[at] = moved;
    }
}

/* Merges from[0..middle) and from[middle..n) into to. */
static void halves_merge(const pybpe_strings *words, const sort_entry *from, size_t middle, size_t n, sort_entry *to) {
    size_t i = 0, j = middle;
    while (i < middle && j < n) {
        bool second = entry_less(words, &from[j], &from[i]);
        *to++ = second ? from[j] : from[i];
        j += second;
        i += !second;
    }
    memcpy(to, from + i, (middle - i) * sizeof *to);
    memcpy(to + (middle - i), from + j, (n - j) * sizeof *to);
}

/* Sorts n entries. `room` has place for as many. */
static void bucket_sort(const pybpe_strings *words, sort_entry *entries, sort_entry *room, size_t n) {
    for (size_t i = 0; i < n; i += INSERTION_MOST) {
        insertion_sort(words, entries + i, n - i < INSERTION_MOST ? n - i : INSERTION_MOST);
    }
    sort_entry *from = entries, *to = room;
    for (size_t width = INSERTION_MOST; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t left = n - i < 2 * width ? n - i : 2 * width;
            halves_merge(words, from + i, left < width ? left : width, left, to + i);
        }
        sort_entry *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != entries) {
        memcpy(entries, from, n * sizeof *entries);
    }
}

/* Sorts the indices of one bucket. */
static void indices_sort(const pybpe_strings *words, uint32_t *order, size_t n, sort_entry *room) {
    for (size_t i = 0; i < n; i++) {
        if (i + TAKE_AHEAD < n) {
            PYBPE_PREFETCH(string_at(words, order[i + TAKE_AHEAD]));
        }
        const size_t length = string_length(words, order[i]);
        const uint8_t *const word = string_at(words, order[i]);
        size_t skipped = length < BUCKET_BYTES ? length : BUCKET_BYTES;
        room[i] = (sort_entry){word_prefix(word + skipped, length - skipped), order[i]};
    }
    bucket_sort(words, room, room + n, n);
    for (size_t i = 0; i < n; i++) {
        order[i] = room[i].word;
    }
}

/* Writes the indices of all words, by bucket. Sets ends[b] to the end of bucket b, and returns the size of the largest
   bucket. */
static size_t buckets_fill(const pybpe_strings *words, uint32_t *order, uint32_t *ends) {
    for (size_t i = 0; i < words->count; i++) {
        ends[bucket_of(words, i)] += 1;
    }
    uint32_t start = 0, largest = 0;
    for (size_t b = 0; b < SORT_BUCKETS; b++) {
        uint32_t size = ends[b];
        largest = size > largest ? size : largest;
        ends[b] = start;
        start += size;
    }
    for (size_t i = 0; i < words->count; i++) {
        order[ends[bucket_of(words, i)]++] = (uint32_t)i;
    }
    return largest;
}

int pybpe_words_sort(const pybpe_strings *words, uint32_t *order, const pybpe_allocator *mem, pybpe_error *err) {
    if (words->count >= UINT32_MAX) { /* checked first: a test of it needs no words */
        return error_set(err, PYBPE_ERR_LIMIT, 0, "%zu words are too many to sort; the limit is 2^32 - 2",
                         words->count);
    }
    int code = strings_check(words, "words", err);
    if (code != PYBPE_OK || words->count == 0) {
        return code;
    }
    uint32_t *ends = mem_alloc_zeroed(mem, SORT_BUCKETS, sizeof *ends);
    PYBPE_TRY(memory_check(ends, "sorting words", SORT_BUCKETS * sizeof *ends, err));
    size_t largest = buckets_fill(words, order, ends);
    sort_entry *room = mem_alloc_array(mem, largest, 2 * sizeof *room);
    if (room == NULL) {
        mem_free(mem, ends);
        return error_set_memory(err, "sorting words", 2 * largest * sizeof *room);
    }
    for (size_t b = 0, start = 0; b < SORT_BUCKETS; start = ends[b++]) {
        indices_sort(words, order + start, ends[b] - start, room);
    }
    mem_free(mem, room);
    mem_free(mem, ends);
    return PYBPE_OK;
}

int pybpe_words_take(const pybpe_strings *words, const uint64_t *counts, const uint32_t *order, size_t n, size_t *taken,
                     pybpe_words_block *block, pybpe_error *err) {
    size_t i = 0;
    for (; i < n && block->count < block->cap; i++) {
        if (i + 2 * TAKE_AHEAD < n) {
            PYBPE_PREFETCH(&words->offsets[order[i + 2 * TAKE_AHEAD]]);
            PYBPE_PREFETCH(&counts[order[i + TAKE_AHEAD]]);
            PYBPE_PREFETCH(string_at(words, order[i + TAKE_AHEAD]));
        }
        uint64_t length = words->offsets[order[i] + 1] - words->offsets[order[i]];
        if (length > UINT32_MAX) {
            return error_set(err, PYBPE_ERR_LIMIT, order[i], "a word is longer than 4 GiB");
        }
        if (!words_block_has_room(block, (size_t)length)) {
            break;
        }
        words_block_append(block, string_at(words, order[i]), (uint32_t)length, counts[order[i]]);
    }
    *taken = i;
    return PYBPE_OK;
}
