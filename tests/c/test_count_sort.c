/*
Sorting words and adding sorted lists, against qsort: random and similar words, lists in parts of any size, lists that
are not sorted, sums that overflow, failing memory.
*/
#include "check.h"
#include "pybpe_corpus.h"
#include "random_state.h"
#include "small_vocab.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4000, LONGEST = 40, LISTS = 7 };

typedef struct word {
    uint8_t bytes[LONGEST];
    uint32_t length;
    uint64_t count;
} word;

/* Words in one buffer, as all functions take them. */
typedef struct list {
    uint8_t bytes[MOST * LONGEST];
    uint64_t offsets[MOST + 1], counts[MOST];
    uint32_t lengths[MOST];
    size_t count;
} list;

static int word_compare(const void *x, const void *y) {
    const word *a = x, *b = y;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, shorter);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static void list_set(list *to, const word *words, size_t count) {
    *to = (list){.count = count};
    for (size_t i = 0; i < count; i++) {
        memcpy(to->bytes + to->offsets[i], words[i].bytes, words[i].length);
        to->offsets[i + 1] = to->offsets[i] + words[i].length;
        to->lengths[i] = words[i].length;
        to->counts[i] = words[i].count;
    }
}

/* Words of few different bytes, NULs among them, which often begin alike. */
static size_t words_random(word *words, size_t count, uint32_t bytes, uint32_t common) {
    for (size_t i = 0; i < count; i++) {
        words[i].length = common + random_below(LONGEST - common);
        words[i].count = random_below(1000) + 1;
        for (uint32_t k = 0; k < words[i].length; k++) {
            words[i].bytes[k] = k < common ? 'x' : (uint8_t)random_below(bytes);
        }
    }
    return count;
}

/* Removes equal neighbors from sorted words, and adds their counts. */
static size_t words_unique(word *words, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && word_compare(&words[kept - 1], &words[i]) == 0) {
            words[kept - 1].count += words[i].count;
        } else {
            words[kept++] = words[i];
        }
    }
    return kept;
}

static pybpe_words_block block_of(size_t words, size_t bytes) {
    pybpe_words_block block = {.bytes_cap = bytes, .cap = words};
    block.bytes = malloc(bytes + 1);
    block.lengths = malloc(words * sizeof *block.lengths);
    block.counts = malloc(words * sizeof *block.counts);
    return block;
}

static void block_free(pybpe_words_block *block) {
    free(block->bytes);
    free(block->lengths);
    free(block->counts);
}

static bool block_equals(const pybpe_words_block *block, const word *words, size_t count) {
    size_t at = 0;
    bool equal = block->count == count;
    for (size_t i = 0; i < count && equal; i++) {
        equal = block->lengths[i] == words[i].length && block->counts[i] == words[i].count &&
                memcmp(block->bytes + at, words[i].bytes, words[i].length) == 0;
        at += words[i].length;
    }
    return equal && at == block->size;
}

/* ---------------------------------------------------------------------------------------------------
Sorting
*/

static bool sorts_as_qsort(word *words, size_t count) {
    static list all;
    uint32_t *order = malloc((count + 1) * sizeof *order);
    list_set(&all, words, count);
    qsort(words, count, sizeof *words, word_compare);
    const pybpe_strings strings = {all.bytes, all.offsets, count};
    bool good = pybpe_words_sort(&strings, order, NULL, NULL) == PYBPE_OK;
    bool *seen = calloc(count + 1, 1);
    for (size_t i = 0; i < count && good; i++) {
        uint32_t at = order[i];
        good = at < count && !seen[at] && all.lengths[at] == words[i].length &&
               memcmp(all.bytes + all.offsets[at], words[i].bytes, words[i].length) == 0;
        seen[at < count ? at : 0] = true;
        good = good && (i == 0 || word_compare(&words[i - 1], &words[i]) != 0 || order[i - 1] < at);
    }
    free(seen);
    free(order);
    return good;
}

static void test_sort(void) {
    static word words[MOST];
    int wrong = 0;
    for (int round = 0; round < 200; round++) {
        size_t count = words_random(words, random_below(round % 10 == 0 ? MOST : 60), 1 + random_below(256),
                                    random_below(round % 3 == 0 ? LONGEST - 1 : 3));
        wrong += !sorts_as_qsort(words, count);
    }
    CHECK_EQ(wrong, 0);
    CHECK(sorts_as_qsort(words, 0));
    uint64_t bad[] = {0, 5, 2};
    const pybpe_strings strings = {(const uint8_t *)"abcde", bad, 2};
    uint32_t order[2];
    CHECK_EQ(pybpe_words_sort(&strings, order, NULL, NULL), PYBPE_ERR_VALUE);
}

/* More words than have numbers, and a word of 4 GiB. Both are refused before they are read. */
static void test_limits(void) {
    const uint64_t offsets[] = {0, UINT64_C(1) << 32}, counts[] = {1};
    uint32_t order[] = {0};
    pybpe_strings strings = {(const uint8_t *)"a", offsets, UINT32_MAX};
    pybpe_error err;
    CHECK_EQ(pybpe_words_sort(&strings, order, NULL, &err), PYBPE_ERR_LIMIT);
    CHECK_EQ(err.offset, 0);
    strings.count = 1;
    pybpe_words_block block = block_of(1, 1);
    size_t taken;
    CHECK_EQ(pybpe_words_take(&strings, counts, order, 1, &taken, &block, NULL), PYBPE_ERR_LIMIT);
    CHECK_EQ(block.count, 0);
    block_free(&block);
}

static void test_take(void) {
    static word words[MOST];
    static list all;
    size_t count = words_random(words, 500, 256, 0);
    list_set(&all, words, count);
    const pybpe_strings strings = {all.bytes, all.offsets, count};
    uint32_t order[500];
    CHECK_EQ(pybpe_words_sort(&strings, order, NULL, NULL), PYBPE_OK);
    qsort(words, count, sizeof *words, word_compare);
    for (size_t bytes = LONGEST; bytes < 300; bytes += 37) {
        pybpe_words_block block = block_of(7, bytes);
        size_t taken, done = 0;
        for (int rounds = 0; done < count && rounds < 500; rounds++) {
            CHECK_EQ(pybpe_words_take(&strings, all.counts, order + done, count - done, &taken, &block, NULL),
                     PYBPE_OK);
            CHECK_EQ(taken, block.count);
            CHECK(block_equals(&block, words + done, taken));
            done += taken;
            block.count = block.size = 0;
        }
        CHECK_EQ(done, count);
        block_free(&block);
    }
}

/* ---------------------------------------------------------------------------------------------------
Merging
*/

/* A list that is read part by part. */
typedef struct reader {
    list words;
    size_t next;
} reader;

static pybpe_words_part part_next(reader *r, size_t most) {
    size_t left = r->words.count - r->next, count = left < most ? left : most;
    const list *w = &r->words;
    pybpe_words_part part = {.bytes = w->bytes + w->offsets[r->next],
                             .size = w->offsets[r->next + count] - w->offsets[r->next],
                             .lengths = w->lengths + r->next,
                             .counts = w->counts + r->next,
                             .count = count};
    r->next += count;
    return part;
}

/* Does what `state` says. Returns false if the result is complete. */
static bool merge_continue(int state, reader *readers, pybpe_words_part *parts, pybpe_words_block *block,
                           pybpe_words_block *result, size_t most) {
    if (state == PYBPE_MERGE_PART) {
        int ended = 0;
        for (size_t i = 0; i < LISTS; i++) {
            if (parts[i].count > 0 && parts[i].at == parts[i].count) {
                ended += 1;
                parts[i] = part_next(&readers[i], most);
            }
        }
        CHECK_EQ(ended, 1);
        return true;
    }
    if (state == PYBPE_MERGE_ROOM) {
        block->bytes_cap += 1;
        block->bytes = realloc(block->bytes, block->bytes_cap);
        return true;
    }
    memcpy(result->bytes + result->size, block->bytes, block->size);
    memcpy(result->lengths + result->count, block->lengths, block->count * sizeof *block->lengths);
    memcpy(result->counts + result->count, block->counts, block->count * sizeof *block->counts);
    result->size += block->size;
    result->count += block->count;
    CHECK(state == PYBPE_MERGE_DONE || block->count == block->cap);
    block->count = block->size = 0;
    return state == PYBPE_MERGE_FULL;
}

/* Distributes sorted words over lists, in each of which a word is at most once. Returns the number of different words. */
static size_t lists_fill(reader *readers, word *words, size_t count) {
    static word some[LISTS][MOST];
    size_t counts[LISTS] = {0};
    for (size_t i = 0; i < count; i++) {
        size_t to = random_below(LISTS);
        if (counts[to] == 0 || word_compare(&some[to][counts[to] - 1], &words[i]) != 0) {
            some[to][counts[to]++] = words[i];
        } else {
            some[to][counts[to] - 1].count += words[i].count;
        }
    }
    for (size_t i = 0; i < LISTS; i++) {
        list_set(&readers[i].words, some[i], counts[i]);
        readers[i].next = 0;
    }
    return words_unique(words, count);
}

static void test_merge(void) {
    static word words[MOST];
    static reader readers[LISTS];
    for (int round = 0; round < 60; round++) {
        size_t count = words_random(words, random_below(round % 8 == 0 ? MOST : 100), 1 + random_below(4), 0);
        qsort(words, count, sizeof *words, word_compare);
        size_t unique = lists_fill(readers, words, count);
        size_t most = 1 + random_below(round % 2 == 0 ? 4 : 200);
        pybpe_words_part parts[LISTS];
        for (size_t i = 0; i < LISTS; i++) {
            parts[i] = part_next(&readers[i], most);
        }
        pybpe_words_block block = block_of(1 + random_below(50), 0), result = block_of(MOST, MOST * LONGEST);
        int state, code;
        do {
            code = pybpe_words_merge(parts, LISTS, &block, &state, NULL, NULL);
            CHECK_EQ(code, PYBPE_OK);
        } while (code == PYBPE_OK && merge_continue(state, readers, parts, &block, &result, most));
        CHECK(block_equals(&result, words, unique));
        block_free(&block);
        block_free(&result);
    }
    pybpe_words_block none = block_of(1, 0);
    int state;
    CHECK_EQ(pybpe_words_merge(NULL, 0, &none, &state, NULL, NULL), PYBPE_OK);
    CHECK_EQ(state, PYBPE_MERGE_DONE);
    block_free(&none);
}

/* Returns the code of merging a list with these words and "b", and the offset of the error. */
static int merge_two(const char *bytes, const uint32_t *lengths, size_t count, uint64_t weight, uint64_t *offset) {
    const uint64_t counts[] = {weight, weight, weight};
    const uint32_t one = 1;
    pybpe_words_part parts[] = {
        {.bytes = (const uint8_t *)"b", .size = 1, .lengths = &one, .counts = counts, .count = 1},
        {.bytes = (const uint8_t *)bytes, .size = strlen(bytes), .lengths = lengths, .counts = counts, .count = count},
    };
    pybpe_words_block block = block_of(8, 80);
    pybpe_error err = {.offset = 99};
    int state = PYBPE_MERGE_PART, code;
    do {
        code = pybpe_words_merge(parts, 2, &block, &state, NULL, &err);
    } while (code == PYBPE_OK && state != PYBPE_MERGE_DONE);
    *offset = err.offset;
    block_free(&block);
    return code;
}

/* Different words of one byte stay different, and equal ones add up: "" + a + b + c, and a + b. */
static void test_merge_short_words(void) {
    const uint32_t lengths[] = {0, 1, 1, 1};
    const uint64_t counts[] = {1, 2, 3, 4};
    pybpe_words_part parts[] = {
        {.bytes = (const uint8_t *)"abc", .size = 3, .lengths = lengths, .counts = counts, .count = 4},
        {.bytes = (const uint8_t *)"ab", .size = 2, .lengths = lengths + 1, .counts = counts, .count = 2},
    };
    const uint64_t sums[] = {1, 2 + 1, 3 + 2, 4};
    pybpe_words_block block = block_of(8, 8);
    int state = PYBPE_MERGE_PART;
    while (state == PYBPE_MERGE_PART) {
        CHECK_EQ(pybpe_words_merge(parts, 2, &block, &state, NULL, NULL), PYBPE_OK);
        for (size_t i = 0; i < 2; i++) { /* a list has one part */
            parts[i].count = parts[i].at < parts[i].count ? parts[i].count : 0;
            parts[i].at = parts[i].count > 0 ? parts[i].at : 0;
        }
    }
    CHECK_EQ(state, PYBPE_MERGE_DONE);
    CHECK(block.count == 4 && memcmp(block.bytes, "abc", 3) == 0 &&
          memcmp(block.lengths, lengths, sizeof lengths) == 0);
    CHECK(memcmp(block.counts, sums, sizeof sums) == 0);
    block_free(&block);
}

static void test_refused(void) {
    uint64_t offset;
    CHECK_EQ(merge_two("abcb", (const uint32_t[]){1, 1, 2}, 3, 1, &offset), PYBPE_OK);
    CHECK_EQ(merge_two("acb", (const uint32_t[]){1, 1, 1}, 3, 1, &offset), PYBPE_ERR_VALUE);
    CHECK_EQ(offset, 1);
    CHECK_EQ(merge_two("aa", (const uint32_t[]){1, 1}, 2, 1, &offset), PYBPE_ERR_VALUE);  /* twice */
    CHECK_EQ(merge_two("aba", (const uint32_t[]){2, 1}, 2, 1, &offset), PYBPE_ERR_VALUE); /* ab, a */
    CHECK_EQ(merge_two("ac", (const uint32_t[]){1, 2}, 2, 1, &offset), PYBPE_ERR_VALUE);  /* fewer bytes */
    CHECK_EQ(offset, 1);
    CHECK_EQ(merge_two("c", (const uint32_t[]){2}, 1, 1, &offset), PYBPE_ERR_VALUE);
    pybpe_words_part after = {.bytes = (const uint8_t *)"b", .offset = 2, .size = 1, .count = 1};
    after.lengths = (const uint32_t[]){0};
    after.counts = (const uint64_t[]){1};
    pybpe_words_block block = block_of(8, 80);
    int state = PYBPE_MERGE_PART;
    CHECK_EQ(pybpe_words_merge(&after, 1, &block, &state, NULL, NULL), PYBPE_ERR_VALUE);
    block_free(&block);
    CHECK_EQ(merge_two("b", (const uint32_t[]){1}, 1, UINT64_MAX / 2, &offset), PYBPE_OK);
    CHECK_EQ(merge_two("b", (const uint32_t[]){1}, 1, UINT64_MAX / 2 + 1, &offset), PYBPE_ERR_LIMIT);
}

static void test_failing_memory(void) {
    static list all;
    static word words[100];
    list_set(&all, words, words_random(words, 100, 3, 0));
    const pybpe_strings strings = {all.bytes, all.offsets, all.count};
    uint32_t order[100];
    int code = PYBPE_ERR_MEMORY, state;
    for (int left = 0; left < 3; left++) {
        failing_memory memory = {.left = left};
        const pybpe_allocator mem = {failing_resize, &memory};
        code = pybpe_words_sort(&strings, order, &mem, NULL);
        CHECK_EQ(code, left < 2 ? PYBPE_ERR_MEMORY : PYBPE_OK);
        CHECK_EQ(memory.blocks, 0);
    }
    failing_memory memory = {.left = 0};
    const pybpe_allocator mem = {failing_resize, &memory};
    pybpe_words_part part = {.bytes = all.bytes, .size = 1, .lengths = all.lengths, .counts = all.counts, .count = 1};
    pybpe_words_block block = block_of(1, 1);
    CHECK_EQ(pybpe_words_merge(&part, 1, &block, &state, &mem, NULL), PYBPE_ERR_MEMORY);
    CHECK_EQ(block.count, 0);
    block_free(&block);
}

int main(void) {
    test_sort();
    test_take();
    test_limits();
    test_merge();
    test_merge_short_words();
    test_refused();
    test_failing_memory();
    return check_report("count_sort");
}
