/*
Adding sorted lists of words that are too long for memory.

The caller reads the lists part by part. A heap holds the next word of every part, with its first eight bytes, which
decide most comparisons. A word that several lists have comes out of the heap as many times in sequence.

    lists      part in memory          heap           block
    1   ...  | the 7  then 2 ...  |    the 7
    2   ...  | that 1  they 5 ... |    they 5   ->    ... that 1  the (7 + ...)
    3   ...  | the 3 |                 the 3

When a part ends, the merge must stop, since the next word of its list may be the smallest of all. A block may end only
before a word that differs from its last one.
*/
#include "count/count_words.h"

typedef struct merge_entry {
    uint64_t prefix;
    const uint8_t *word;
    uint32_t length;
    uint32_t part;
} merge_entry;

typedef struct merge_heap {
    merge_entry *entries;
    size_t count;
} merge_heap;

static int entry_compare(const merge_entry *x, const merge_entry *y) {
    if (x->prefix != y->prefix) {
        return x->prefix < y->prefix ? -1 : 1;
    }
    return words_compare(x->word, x->length, y->word, y->length);
}

/* Puts the entry at `at` where it belongs among those below it. */
static void heap_sift(merge_heap *heap, size_t at) {
    merge_entry moved = heap->entries[at];
    for (size_t child = 2 * at + 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && entry_compare(&heap->entries[child + 1], &heap->entries[child]) < 0) {
            child += 1;
        }
        if (entry_compare(&moved, &heap->entries[child]) <= 0) {
            break;
        }
        heap->entries[at] = heap->entries[child];
        at = child;
    }
    heap->entries[at] = moved;
}

/* Sets an entry to the next word of a part. */
static int entry_set(merge_entry *entry, const pybpe_words_part *parts, size_t number, pybpe_error *err) {
    const pybpe_words_part *part = &parts[number];
    uint32_t length = part->lengths[part->at];
    if (part->offset > part->size || length > part->size - part->offset) {
        return error_set(err, PYBPE_ERR_VALUE, number, "the lengths of words exceed the number of their bytes");
    }
    const uint8_t *word = part->bytes + part->offset;
    *entry = (merge_entry){word_prefix(word, length), word, length, (uint32_t)number};
    return PYBPE_OK;
}

static int heap_fill(merge_heap *heap, const pybpe_words_part *parts, size_t count, pybpe_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (parts[i].at < parts[i].count) {
            PYBPE_TRY(entry_set(&heap->entries[heap->count], parts, i, err));
            heap->count += 1;
        }
    }
    for (size_t i = heap->count / 2; i > 0; i--) {
        heap_sift(heap, i - 1);
    }
    return PYBPE_OK;
}

static bool words_block_ends_with(const pybpe_words_block *block, const merge_entry *entry) {
    if (block->count == 0 || block->lengths[block->count - 1] != entry->length) {
        return false;
    }
    return entry->length == 0 || memcmp(block->bytes + block->size - entry->length, entry->word, entry->length) == 0;
}

/* Adds the word of an entry to the block. Sets *state, and adds nothing, if there is no room. */
static int words_block_add(pybpe_words_block *block, const merge_entry *entry, uint64_t count, int *state,
                           pybpe_error *err) {
    if (words_block_ends_with(block, entry)) {
        uint64_t *sum = &block->counts[block->count - 1];
        if (__builtin_add_overflow(*sum, count, sum)) {
            return error_set(err, PYBPE_ERR_LIMIT, entry->part, "the count of a word exceeds 2^64 - 1");
        }
    } else if (block->count == block->cap) {
        *state = PYBPE_MERGE_FULL;
    } else if (!words_block_has_room(block, entry->length)) {
        *state = PYBPE_MERGE_ROOM;
    } else {
        words_block_append(block, entry->word, entry->length, count);
    }
    return PYBPE_OK;
}

/* Moves the part of the first entry to its next word. Sets *state if it has none. */
static int heap_advance(merge_heap *heap, pybpe_words_part *parts, int *state, pybpe_error *err) {
    merge_entry *first = &heap->entries[0], last = *first;
    pybpe_words_part *part = &parts[first->part];
    part->offset += first->length;
    part->at += 1;
    if (part->at == part->count) {
        *state = PYBPE_MERGE_PART;
        return PYBPE_OK;
    }
    int code = entry_set(first, parts, last.part, err);
    if (code == PYBPE_OK && entry_compare(&last, first) >= 0) {
        code = error_set(err, PYBPE_ERR_VALUE, last.part, "words are not in ascending order");
    }
    if (code == PYBPE_OK) {
        heap_sift(heap, 0);
    }
    return code;
}

int pybpe_words_merge(pybpe_words_part *parts, size_t count, pybpe_words_block *block, int *state,
                      const pybpe_allocator *mem, pybpe_error *err) {
    merge_heap heap = {mem_alloc_array(mem, count, sizeof *heap.entries), 0};
    if (heap.entries == NULL && count > 0) {
        return error_set_memory(err, "merging words", count * sizeof *heap.entries);
    }
    int code = heap_fill(&heap, parts, count, err);
    *state = heap.count > 0 ? -1 : PYBPE_MERGE_DONE;
    while (code == PYBPE_OK && *state < 0) {
        const merge_entry *first = &heap.entries[0];
        code = words_block_add(block, first, parts[first->part].counts[parts[first->part].at], state, err);
        if (code == PYBPE_OK && *state < 0) {
            code = heap_advance(&heap, parts, state, err);
        }
    }
    mem_free(mem, heap.entries);
    return code;
}
