/*
Counting words: tables that grow and are added to each other, sorting, and adding sorted lists that are read part by
part, against qsort and a loop over the words. Lists whose words are damaged are refused.
*/
#include <stdbool.h>

#include "fuzz.h"
#include "fuzz_memory.h"
#include "pybpe_corpus.h"

enum { MOST_WORDS = 2048, MOST_BYTES = 1 << 22, TABLES = 3, LISTS = 5, MOST_TEXT = 4096, NUMBERED = 64 };

typedef struct word {
    const uint8_t *bytes;
    size_t length;
    uint64_t count;
} word;

typedef struct word_list {
    word words[MOST_WORDS];
    size_t count;
} word_list;

/* A list as the library takes it. */
typedef struct flat_list {
    uint8_t *bytes;
    size_t size;
    uint64_t offsets[MOST_WORDS + 1], counts[MOST_WORDS];
    uint32_t lengths[MOST_WORDS];
    size_t count;
} flat_list;

static pybpe_pretok *splitter; /* counters that share it have the same seed */

static int word_compare(const void *x, const void *y) {
    const word *a = x, *b = y;
    int order = memcmp(a->bytes, b->bytes, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

/* The words end to end, in memory of exactly their size. */
static void list_flatten(flat_list *to, const word_list *l) {
    to->count = l->count;
    to->size = 0;
    for (size_t i = 0; i < l->count; i++) {
        to->size += l->words[i].length;
    }
    to->bytes = malloc(to->size + (to->size == 0));
    REQUIRE(to->bytes != NULL);
    to->offsets[0] = 0;
    for (size_t i = 0; i < l->count; i++) {
        memcpy(to->bytes + to->offsets[i], l->words[i].bytes, l->words[i].length);
        to->offsets[i + 1] = to->offsets[i] + l->words[i].length;
        to->lengths[i] = (uint32_t)l->words[i].length;
        to->counts[i] = l->words[i].count;
    }
}

/* Sorts words and adds the counts of equal ones. Returns false if a sum does not fit. */
static bool list_reduce(word_list *l) {
    size_t kept = 0;
    bool fits = true;
    qsort(l->words, l->count, sizeof *l->words, word_compare);
    for (size_t i = 0; i < l->count; i++) {
        if (kept > 0 && word_compare(&l->words[kept - 1], &l->words[i]) == 0) {
            uint64_t *sum = &l->words[kept - 1].count;
            fits = !__builtin_add_overflow(*sum, l->words[i].count, sum) && fits;
        } else {
            l->words[kept++] = l->words[i];
        }
    }
    l->count = kept;
    return fits;
}

/* ---------------------------------------------------------------------------------------------------
Words from the fuzzer's bytes
*/

static uint64_t read_count(fuzz_input *in) {
    unsigned x = fuzz_byte(in);
    return x < 240 ? x : UINT64_MAX >> (x - 240) % 4;
}

/* A word that begins as the one before it. A few are long enough that two or three fill a block of a table. */
static size_t read_word(fuzz_input *in, const word *before, uint8_t *to) {
    unsigned shared = fuzz_byte(in), more = fuzz_byte(in), filled = 0;
    size_t n = shared < before->length ? shared : before->length;
    memcpy(to, before->bytes, n);
    if (more >= 250) {
        filled = more < 255 ? 1000 * (more - 249) : 350000;
        more = 1;
    }
    for (more %= 20; more > 0; more--) {
        to[n++] = (uint8_t)fuzz_byte(in);
    }
    memset(to + n, 'x', filled);
    return n + filled;
}

/* Words, and words followed by numbers, which make large buckets and batches from a few bytes. */
static void read_words(fuzz_input *in, word_list *l) {
    static uint8_t bytes[MOST_BYTES];
    word last = {bytes, 0, 0};
    uint8_t *at = bytes;
    l->count = 0;
    while (in->size > 0 && l->count + NUMBERED < MOST_WORDS && at < bytes + MOST_BYTES / 2) {
        bool numbered = fuzz_byte(in) >= 240;
        last.length = read_word(in, &last, at);
        last.count = read_count(in);
        last.bytes = at;
        at += last.length;
        l->words[l->count++] = last;
        for (uint8_t i = 1; numbered && last.length < 100 && i < NUMBERED; i++) {
            memcpy(at, last.bytes, last.length);
            at[last.length] = (uint8_t)(37 * i);
            l->words[l->count++] = (word){at, last.length + 1, last.count};
            at += last.length + 1;
        }
    }
}

/* ---------------------------------------------------------------------------------------------------
Sorting
*/

static void require_sorted(const word_list *given) {
    static flat_list flat;
    static uint32_t order[MOST_WORDS];
    static bool seen[MOST_WORDS];
    list_flatten(&flat, given);
    const pybpe_strings strings = {flat.bytes, flat.offsets, flat.count};
    REQUIRE(pybpe_words_sort(&strings, order, &fuzz_memory, NULL) == PYBPE_OK);
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < flat.count; i++) {
        REQUIRE(order[i] < flat.count && !seen[order[i]]);
        seen[order[i]] = true;
        int step = i == 0 ? -1 : word_compare(&given->words[order[i - 1]], &given->words[order[i]]);
        REQUIRE(step < 0 || (step == 0 && order[i - 1] < order[i]));
    }
    free(flat.bytes);
}

/* ---------------------------------------------------------------------------------------------------
Tables
*/

/* Appends the words of a block, which are in memory only for now, and empties it. */
static void block_take(pybpe_words_block *block, flat_list *to) {
    REQUIRE(to->count + block->count <= MOST_WORDS && block->size <= MOST_BYTES - to->size);
    memcpy(to->bytes + to->size, block->bytes, block->size);
    memcpy(to->lengths + to->count, block->lengths, block->count * sizeof *block->lengths);
    memcpy(to->counts + to->count, block->counts, block->count * sizeof *block->counts);
    to->size += block->size;
    to->count += block->count;
    block->count = block->size = 0;
}

static void require_equal(const flat_list *got, const word_list *want) {
    size_t at = 0;
    REQUIRE(got->count == want->count);
    for (size_t i = 0; i < want->count; i++) {
        const word *w = &want->words[i];
        REQUIRE(got->lengths[i] == w->length && got->counts[i] == w->count);
        REQUIRE(memcmp(got->bytes + at, w->bytes, w->length) == 0);
        at += w->length;
    }
    REQUIRE(at == got->size);
}

static pybpe_words_block block_of(size_t cap, size_t bytes_cap) {
    pybpe_words_block block = {.cap = cap, .bytes_cap = bytes_cap};
    block.bytes = malloc(bytes_cap + 1);
    block.lengths = malloc(cap * sizeof *block.lengths);
    block.counts = malloc(cap * sizeof *block.counts);
    REQUIRE(block.bytes != NULL && block.lengths != NULL && block.counts != NULL);
    return block;
}

static void block_free(pybpe_words_block *block) {
    free(block->bytes);
    free(block->lengths);
    free(block->counts);
}

static flat_list *flat_empty(void) {
    static uint8_t bytes[MOST_BYTES];
    static flat_list list;
    list.bytes = bytes;
    list.count = list.size = 0;
    return &list;
}

/* The words of a table in order, taken from it block by block, are those of `want`. */
static void require_table(const pybpe_counter *c, const word_list *want, size_t cap) {
    static uint64_t offsets[MOST_WORDS + 1], counts[MOST_WORDS];
    static uint32_t order[MOST_WORDS];
    const pybpe_counter_stats stats = pybpe_counter_get_stats(c);
    REQUIRE(stats.words == want->count);
    uint8_t *bytes = malloc((size_t)stats.bytes + (stats.bytes == 0));
    size_t taken, done = 0, longest = 0;
    uint64_t total = 0;
    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < want->count; i++) {
        longest = want->words[i].length > longest ? want->words[i].length : longest;
        total += want->words[i].count;
    }
    REQUIRE(stats.total == total);
    pybpe_counter_export(c, bytes, offsets, counts);
    const pybpe_strings strings = {bytes, offsets, want->count};
    REQUIRE(pybpe_words_sort(&strings, order, &fuzz_memory, NULL) == PYBPE_OK);
    pybpe_words_block block = block_of(cap, longest + cap);
    for (flat_list *got = flat_empty(); done < want->count; done += taken) {
        REQUIRE(pybpe_words_take(&strings, counts, order + done, want->count - done, &taken, &block, NULL) == PYBPE_OK);
        REQUIRE(taken > 0);
        block_take(&block, got);
        if (done + taken == want->count) {
            require_equal(got, want);
        }
    }
    block_free(&block);
    free(bytes);
}

static pybpe_counter *counter_of(bool shares) {
    pybpe_counter *c;
    pybpe_error err;
    REQUIRE(pybpe_counter_new(&c, shares ? splitter : NULL, NULL, &fuzz_memory, &err) == PYBPE_OK);
    return c;
}

/* Counts words[i] for each i of the same remainder modulo TABLES. Returns false if a count does not fit. */
static bool counter_fill(pybpe_counter *c, const word_list *given, size_t remainder) {
    static word_list some;
    static flat_list flat;
    pybpe_error err;
    some.count = 0;
    for (size_t i = remainder; i < given->count; i += TABLES) {
        some.words[some.count++] = given->words[i];
    }
    list_flatten(&flat, &some);
    const pybpe_strings strings = {flat.bytes, flat.offsets, flat.count};
    int code = pybpe_counter_add_words(c, &strings, flat.counts, &err);
    REQUIRE(code == PYBPE_OK || code == PYBPE_ERR_LIMIT);
    free(flat.bytes);
    return code == PYBPE_OK;
}

/* Adds the counts of `next`, which `moves` leaves empty. Returns false if a count does not fit. */
static bool counter_add(pybpe_counter *sum, pybpe_counter *next, bool moves) {
    int code = moves ? pybpe_counter_absorb(sum, next, NULL) : pybpe_counter_merge(sum, next, NULL);
    REQUIRE(code == PYBPE_OK || code == PYBPE_ERR_LIMIT);
    REQUIRE(code != PYBPE_OK || !moves || pybpe_counter_get_stats(next).words == 0);
    return code == PYBPE_OK;
}

/* Adds up several tables, in ways that `how` chooses. Tables have no empty words. */
static void check_tables(const word_list *given, unsigned how, size_t room) {
    static word_list want;
    want.count = 0;
    for (size_t i = 0; i < given->count; i++) {
        if (given->words[i].length > 0) {
            want.words[want.count++] = given->words[i];
        }
    }
    bool fits = list_reduce(&want);
    pybpe_counter *sum = counter_of(true);
    bool good = counter_fill(sum, given, 0);
    REQUIRE(pybpe_counter_reserve(sum, room, NULL) == PYBPE_OK);
    for (size_t i = 1; good && i < TABLES; i++, how >>= 2) {
        pybpe_counter *next = counter_of((how & 1) != 0);
        good = counter_fill(next, given, i) && counter_add(sum, next, (how & 2) != 0);
        pybpe_counter_free(next);
    }
    REQUIRE(good == fits);
    if (good) {
        require_table(sum, &want, 1 + room / 256);
    }
    pybpe_counter_free(sum);
}

/* The words of a text, as the splitter finds them, counted `times` times. With 0 there are no words. */
static void check_text(const word_list *given, uint64_t times) {
    static word_list want;
    static flat_list flat;
    static size_t ends[MOST_TEXT];
    list_flatten(&flat, given);
    const uint64_t n = flat.size < MOST_TEXT ? flat.size : MOST_TEXT;
    const uint64_t offsets[] = {0, n};
    const pybpe_strings texts = {flat.bytes, offsets, 1};
    pybpe_counter *c = counter_of(true);
    want.count = 0;
    for (size_t at = 0; times > 0 && at < n && want.count < MOST_WORDS;) {
        size_t words = pybpe_pretok_split(splitter, flat.bytes, n, at, ends, MOST_TEXT);
        for (size_t i = 0; i < words && want.count < MOST_WORDS; at = ends[i++]) {
            want.words[want.count++] = (word){flat.bytes + at, ends[i] - at, times};
        }
    }
    if (want.count < MOST_WORDS) {
        bool fits = list_reduce(&want);
        int code = pybpe_counter_add_texts(c, &texts, &times, NULL);
        REQUIRE(code == (fits ? PYBPE_OK : PYBPE_ERR_LIMIT));
        if (fits) {
            require_table(c, &want, 100);
        }
    }
    pybpe_counter_free(c);
    free(flat.bytes);
}

/* ---------------------------------------------------------------------------------------------------
Adding sorted lists
*/

/* A list, and how much of it the merge has been given. */
typedef struct list_reader {
    flat_list list;
    size_t next;
} list_reader;

static pybpe_words_part part_next(list_reader *r, size_t most) {
    size_t left = r->list.count - r->next, count = left < most ? left : most;
    pybpe_words_part part = {.bytes = r->list.bytes + r->list.offsets[r->next],
                             .size = r->list.offsets[r->next + count] - r->list.offsets[r->next],
                             .lengths = r->list.lengths + r->next,
                             .counts = r->list.counts + r->next,
                             .count = count};
    r->next += count;
    return part;
}

/* Distributes words over lists, each sorted and with each word once. */
static bool readers_fill(list_reader *readers, const word_list *given) {
    static word_list some;
    bool fits = true;
    for (size_t i = 0; i < LISTS; i++) {
        some.count = 0;
        for (size_t k = 0; k < given->count; k++) {
            if ((k * 7 + given->words[k].length) % LISTS == i) {
                some.words[some.count++] = given->words[k];
            }
        }
        fits = list_reduce(&some) && fits;
        list_flatten(&readers[i].list, &some);
        readers[i].next = 0;
    }
    return fits;
}

/* Adds the lists, `most` words of each in memory. Returns the code of the library. */
static int lists_add(list_reader *readers, size_t most, pybpe_words_block *block, flat_list *sum, pybpe_error *err) {
    pybpe_words_part parts[LISTS];
    int state = PYBPE_MERGE_PART, code = PYBPE_OK;
    for (size_t i = 0; i < LISTS; i++) {
        parts[i] = part_next(&readers[i], most);
    }
    while (state != PYBPE_MERGE_DONE) {
        code = pybpe_words_merge(parts, LISTS, block, &state, &fuzz_memory, err);
        if (code != PYBPE_OK) {
            return code;
        }
        if (state == PYBPE_MERGE_ROOM) {
            block->bytes_cap += 1 + block->bytes_cap / 2;
            block->bytes = realloc(block->bytes, block->bytes_cap);
            REQUIRE(block->bytes != NULL);
        } else if (state != PYBPE_MERGE_PART) {
            REQUIRE(state == PYBPE_MERGE_DONE || block->count == block->cap);
            block_take(block, sum);
        }
        for (size_t i = 0; state == PYBPE_MERGE_PART && i < LISTS; i++) {
            if (parts[i].count > 0 && parts[i].at == parts[i].count) {
                parts[i] = part_next(&readers[i], most);
            }
        }
    }
    return code;
}

/* Returns whether the words of a list fit its bytes and ascend. */
static bool list_is_valid(const flat_list *l) {
    word before = {0};
    for (size_t i = 0, at = 0; i < l->count; at += l->lengths[i++]) {
        const word next = {l->bytes + at, l->lengths[i], 0};
        if (next.length > l->size - at || (i > 0 && word_compare(&before, &next) >= 0)) {
            return false;
        }
        before = next;
    }
    return true;
}

/* Changes a length or a byte of a list. */
static void list_damage(flat_list *l, size_t place, unsigned change) {
    if (l->count > 0 && (change & 1) != 0) {
        l->lengths[place % l->count] += (change & 2) != 0 ? change / 4 : 0 - change / 4;
    } else if (l->size > 0) {
        l->bytes[place % l->size] ^= (uint8_t)change;
    }
}

static void check_lists(const word_list *given, const word_list *want, bool fits, size_t most, size_t cap) {
    static list_reader readers[LISTS];
    pybpe_words_block block = block_of(cap, 0);
    pybpe_error err;
    flat_list *sum = flat_empty();
    if (readers_fill(readers, given)) {
        int code = lists_add(readers, most, &block, sum, &err);
        REQUIRE(code == (fits ? PYBPE_OK : PYBPE_ERR_LIMIT));
        if (fits) {
            require_equal(sum, want);
        } else {
            fuzz_expect_error(code, &err);
        }
    }
    for (size_t i = 0; i < LISTS; i++) {
        free(readers[i].list.bytes);
    }
    block_free(&block);
}

static void check_damaged(const word_list *given, size_t place, unsigned change, size_t cap) {
    static list_reader readers[LISTS];
    pybpe_words_block block = block_of(cap, 0);
    pybpe_error err;
    if (readers_fill(readers, given)) {
        flat_list *damaged = &readers[place % LISTS].list;
        list_damage(damaged, place, change);
        int code = lists_add(readers, MOST_WORDS, &block, flat_empty(), &err);
        REQUIRE(code != PYBPE_OK || list_is_valid(damaged));
        REQUIRE(code != PYBPE_ERR_VALUE || (!list_is_valid(damaged) && err.offset == place % LISTS));
        REQUIRE(code == PYBPE_OK || code == PYBPE_ERR_VALUE || code == PYBPE_ERR_LIMIT);
    }
    for (size_t i = 0; i < LISTS; i++) {
        free(readers[i].list.bytes);
    }
    block_free(&block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static word_list given, want;
    fuzz_input in = {data, size};
    pybpe_error err;
    if (splitter == NULL) {
        REQUIRE(pybpe_pretok_new(&splitter, PYBPE_PATTERN_GPT2, NULL, &err) == PYBPE_OK);
    }
    unsigned how = fuzz_byte(&in), change = fuzz_byte(&in);
    size_t room = (size_t)256 * fuzz_byte(&in), place = (size_t)fuzz_byte(&in) << 8 | fuzz_byte(&in);
    size_t most = 1 + fuzz_byte(&in), cap = 1 + fuzz_byte(&in);
    read_words(&in, &given);
    want = given;
    bool fits = list_reduce(&want);
    check_lists(&given, &want, fits, most, cap);
    check_damaged(&given, place, change, cap);
    switch (how % 3) { /* these have tables of 65,536 buckets and more, so each input is for one of them */
    case 0:
        require_sorted(&given);
        break;
    case 1:
        check_text(&given, how < 250 ? how : UINT64_MAX >> (how - 250));
        break;
    default:
        check_tables(&given, how / 3, room);
    }
    return 0;
}
