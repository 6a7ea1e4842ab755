/*
The memory of the library in the fuzz targets. A handle has tables of a quarter of a megabyte and more, even for a small
vocabulary. With malloc, each would be mapped, faulted in and unmapped again for every input, which took half of the
time; so large blocks are kept. The sanitizer reports every access to a free block, and every access beyond the size of
a block in use:

    |<------------------ capacity ----------------->|
    |<---------- size --------->|<---- poisoned --->|    taken
    |<----------------- poisoned ------------------>|    free
*/
#ifndef FUZZ_MEMORY_H
#define FUZZ_MEMORY_H

#include <malloc.h>
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pybpe.h"

enum { FUZZ_LARGE = 1 << 16, FUZZ_BLOCKS = 64 };

/* capacity 0: there is no block yet; size 0: it is free. */
typedef struct fuzz_block {
    uint8_t *bytes;
    size_t capacity, size;
} fuzz_block;

static fuzz_block fuzz_blocks[FUZZ_BLOCKS];

static inline fuzz_block *fuzz_block_of(const void *ptr) {
    for (size_t i = 0; i < FUZZ_BLOCKS && fuzz_blocks[i].capacity > 0; i++) {
        if (fuzz_blocks[i].bytes == ptr) {
            return &fuzz_blocks[i];
        }
    }
    return NULL;
}

/* A free block with room for `size` and not much more, or a new one, or NULL if no more are allowed. */
static inline fuzz_block *fuzz_block_find(size_t size) {
    size_t i = 0;
    for (; i < FUZZ_BLOCKS && fuzz_blocks[i].capacity > 0; i++) {
        if (fuzz_blocks[i].size == 0 && fuzz_blocks[i].capacity >= size && fuzz_blocks[i].capacity / 4 < size) {
            return &fuzz_blocks[i];
        }
    }
    if (i == FUZZ_BLOCKS || (fuzz_blocks[i].bytes = malloc(size)) == NULL) {
        return NULL;
    }
    fuzz_blocks[i].capacity = size;
    return &fuzz_blocks[i];
}

static inline void *fuzz_take(size_t size) {
    fuzz_block *block = size < FUZZ_LARGE ? NULL : fuzz_block_find(size);
    if (block == NULL) {
        return malloc(size);
    }
    block->size = size;
    ASAN_UNPOISON_MEMORY_REGION(block->bytes, size);
    ASAN_POISON_MEMORY_REGION(block->bytes + size, block->capacity - size);
    return block->bytes;
}

static inline void fuzz_give(void *ptr) {
    fuzz_block *block = fuzz_block_of(ptr);
    if (block == NULL) {
        free(ptr);
        return;
    }
    block->size = 0;
    ASAN_POISON_MEMORY_REGION(block->bytes, block->capacity);
}

static inline void *fuzz_resize(void *context, void *ptr, size_t size) {
    (void)context;
    if (size == 0) {
        fuzz_give(ptr);
        return NULL;
    }
    void *moved = fuzz_take(size);
    if (moved != NULL && ptr != NULL) {
        fuzz_block *block = fuzz_block_of(ptr);
        size_t had = block == NULL ? malloc_usable_size(ptr) : block->size;
        memcpy(moved, ptr, had < size ? had : size);
        fuzz_give(ptr);
    }
    return moved;
}

static const pybpe_allocator fuzz_memory = {fuzz_resize, NULL};

#endif
