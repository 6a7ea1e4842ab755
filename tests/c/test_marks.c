/*
Marks between documents: by hand, and against the definition, on buffers of exactly the promised size. Rows that
documents fill: the example of csrc/documents/fill.c, buffers of exactly the promised size, and no memory. Rows of
parts of documents: the example of csrc/documents/gather.c, random rows token by token, and parts that are refused.
*/
#include "base/base.h"
#include "check.h"
#include "random_state.h"
#include "small_vocab.h"

#include <stdlib.h>

enum { MARK = 7, LONGEST = 12, STREAM = 300 };

/* Documents one by one, each a nonempty run without marks. `open`: the first continues from before. */
static size_t by_definition(const uint16_t *ids, size_t n, int mode, int *open, uint16_t *out, uint64_t *starts,
                            size_t *documents) {
    size_t at = 0;
    *documents = 0;
    for (size_t i = 0; i < n; i++) {
        bool begins = ids[i] != MARK && (i > 0 ? ids[i - 1] == MARK : !*open);
        bool ends = ids[i] == MARK && (i > 0 ? ids[i - 1] != MARK : *open);
        if (begins) {
            starts[(*documents)++] = at;
        }
        if ((begins && mode == PYBPE_MARKS_PREPEND) || (ends && mode == PYBPE_MARKS_APPEND)) {
            out[at++] = MARK;
        }
        if (ids[i] != MARK) {
            out[at++] = ids[i];
        }
    }
    *open = n > 0 ? ids[n - 1] != MARK : *open;
    return at;
}

/* Copies to memory of exactly this size, so that sanitizers see reads beyond it. */
static void *exactly(size_t count, size_t size) { return malloc(count * size + (count == 0)); }

static void expect_definition(const uint16_t *ids, size_t n, int mode, int open) {
    uint16_t want[STREAM + 1];
    uint64_t want_starts[STREAM + 1];
    size_t want_documents;
    int want_open = open;
    size_t want_n = by_definition(ids, n, mode, &want_open, want, want_starts, &want_documents);
    for (int id_bytes = 2; id_bytes <= 4; id_bytes += 2) {
        uint8_t *given = exactly(n, (size_t)id_bytes);
        uint8_t *out = exactly(n + 1, (size_t)id_bytes);
        for (size_t i = 0; i < n; i++) {
            const uint32_t wide = ids[i];
            memcpy(given + i * (size_t)id_bytes, id_bytes == 2 ? (const void *)&ids[i] : &wide, (size_t)id_bytes);
        }
        size_t marks = pybpe_ids_count(given, id_bytes, n, MARK);
        uint64_t *starts = exactly(marks + 1, sizeof *starts);
        size_t documents = 99;
        int got_open = open;
        CHECK_EQ(pybpe_marks_place(given, id_bytes, n, MARK, mode, &got_open, out, starts, &documents), want_n);
        CHECK_EQ(got_open, want_open);
        CHECK_EQ(documents, want_documents);
        CHECK(memcmp(starts, want_starts, documents * sizeof *starts) == 0);
        for (size_t i = 0; i < want_n; i++) {
            CHECK_EQ(id_at(out, id_bytes, i), want[i]);
        }
        free(given);
        free(out);
        free(starts);
    }
}

static void test_the_example(void) {
    const uint16_t ids[] = {MARK, MARK, 5, 6, MARK, 3, MARK};
    uint16_t out[8];
    uint64_t starts[5];
    size_t documents;
    int open = 0;
    CHECK_EQ(pybpe_ids_count(ids, 2, 7, MARK), 4);
    CHECK_EQ(pybpe_marks_place(ids, 2, 7, MARK, PYBPE_MARKS_PREPEND, &open, out, starts, &documents), 5);
    CHECK(memcmp(out, (const uint16_t[]){MARK, 5, 6, MARK, 3}, 10) == 0);
    CHECK_EQ(documents, 2);
    CHECK_EQ(starts[0], 0);
    CHECK_EQ(starts[1], 3);
    CHECK_EQ(open, 0);
}

static void test_random_streams(void) {
    for (int round = 0; round < 3000; round++) {
        uint16_t ids[STREAM];
        size_t n = random_below(round % 2 ? STREAM + 1 : LONGEST + 1);
        uint32_t rarity = 1 + random_below(round % 4 == 3 ? STREAM : 6);
        for (size_t i = 0; i < n; i++) {
            ids[i] = random_below(rarity) == 0 ? MARK : (uint16_t)random_below(MARK);
        }
        expect_definition(ids, n, round % 3, (int)random_below(2));
    }
}

static void test_shifted_starts(void) {
    const uint64_t starts[] = {0, 3, UINT64_C(1) << 40};
    uint64_t shifted[3];
    pybpe_starts_shift(starts, 3, 10, shifted);
    CHECK(memcmp(shifted, (const uint64_t[]){10, 13, (UINT64_C(1) << 40) + 10}, sizeof shifted) == 0);
    pybpe_starts_shift(starts, 0, 1, shifted);
    CHECK_EQ(shifted[0], 10);
}

static void test_the_example_of_rows(void) {
    const uint16_t ids[] = {7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 10, 7, 11, 12, 13};
    const uint64_t starts[] = {0, 7, 10, 12}, lengths[] = {7, 3, 2, 4};
    const uint16_t want[] = {7, 1, 2, 3, 4, 5, 7, 11, 12, 13, 7, 6};
    uint16_t rows[18];
    size_t count;
    const pybpe_marked documents = {.ids = ids, .id_bytes = 2, .starts = starts, .lengths = lengths, .count = 4};
    CHECK_EQ(pybpe_rows_fill(&documents, 6, rows, &count, NULL, NULL), PYBPE_OK);
    CHECK_EQ(count, 2);
    CHECK(memcmp(rows, want, sizeof want) == 0);
    pybpe_error err;
    CHECK_EQ(pybpe_rows_fill(&documents, 1, rows, &count, NULL, &err), PYBPE_ERR_VALUE);
    const uint64_t none[] = {3, 0, 1, 1};
    const pybpe_marked unmarked = {.ids = ids, .id_bytes = 2, .starts = starts, .lengths = none, .count = 4};
    CHECK_EQ(pybpe_rows_fill(&unmarked, 6, rows, &count, NULL, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(err.offset, 1);
    for (long granted = 0; granted < 4; granted++) {
        failing_memory memory = {.left = granted};
        const pybpe_allocator mem = {failing_resize, &memory};
        CHECK_EQ(pybpe_rows_fill(&documents, 6, rows, &count, &mem, &err), PYBPE_ERR_MEMORY);
        CHECK_EQ(memory.blocks, 0);
    }
}

static void test_the_rows_of_whole_texts(void) {
    const uint64_t lengths[] = {6, 4, 4, 3, 3}, want[] = {0, 1, 0, 1, 1};
    uint64_t rows[5];
    CHECK_EQ(pybpe_rows_fit(lengths, 5, 10, rows, NULL, NULL), PYBPE_OK);
    CHECK(memcmp(rows, want, sizeof want) == 0);
    pybpe_error err;
    CHECK_EQ(pybpe_rows_fit(lengths, 5, 5, rows, NULL, &err), PYBPE_ERR_VALUE);
    for (long granted = 0; granted < 5; granted++) {
        failing_memory memory = {.left = granted};
        const pybpe_allocator mem = {failing_resize, &memory};
        CHECK_EQ(pybpe_rows_fit(lengths, 5, 10, rows, &mem, &err), PYBPE_ERR_MEMORY);
        CHECK_EQ(memory.blocks, 0);
    }
}

static void test_rows_are_full(void) {
    for (int round = 0; round < 2000; round++) {
        uint32_t ids[LONGEST * LONGEST];
        uint64_t starts[LONGEST], lengths[LONGEST];
        size_t n = 0, count = random_below(LONGEST), width = 2 + random_below(LONGEST), got;
        for (size_t i = 0; i < count; i++) {
            starts[i] = n;
            lengths[i] = 1 + random_below(LONGEST);
            for (size_t k = 0; k < lengths[i]; k++, n++) {
                ids[n] = k == 0 ? 0 : (uint32_t)n;
            }
        }
        uint32_t *rows = exactly(n / (width - 1) * width, sizeof *rows);
        pybpe_marked documents = {.ids = ids, .id_bytes = 4, .starts = starts, .lengths = lengths, .count = count};
        CHECK_EQ(pybpe_rows_fill(&documents, width, rows, &got, NULL, NULL), PYBPE_OK);
        bool seen[LONGEST * LONGEST] = {false};
        size_t kept = 0;
        for (size_t i = 0; i < got * width; i++) {
            CHECK(i % width != 0 || rows[i] == 0);
            CHECK(rows[i] == 0 || !seen[rows[i]]);
            seen[rows[i]] = true;
            kept += rows[i] != 0;
        }
        CHECK(n - count - kept < width);
        free(rows);
    }
}

static void test_the_example_of_gathered_rows(void) {
    const uint16_t ids[] = {9, 1, 2, 5, 6, 9, 7, 8};
    const uint64_t starts[] = {0, 2, 5}, lengths[] = {3, 3, 3}, row[] = {0, 0, 1};
    const uint8_t ends[] = {1, 0, 1};
    uint16_t found[12];
    int32_t documents[12], positions[12];
    uint8_t loss_mask[12];
    const pybpe_marked from = {.ids = ids, .id_bytes = 2, .starts = starts, .lengths = lengths, .count = 3};
    const pybpe_rows to = {6, 2, 9, 4, found, documents, positions, loss_mask};
    CHECK_EQ(pybpe_rows_gather(&from, 8, row, ends, &to, NULL), PYBPE_OK);
    CHECK(memcmp(found, (const uint16_t[]){9, 1, 2, 9, 5, 6, 9, 7, 8, 4, 4, 4}, sizeof found) == 0);
    CHECK(memcmp(documents, (const int32_t[]){0, 0, 0, 1, 1, 1, 0, 0, 0, -1, -1, -1}, sizeof documents) == 0);
    CHECK(memcmp(positions, (const int32_t[]){0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}, sizeof positions) == 0);
    CHECK(memcmp(loss_mask, (const uint8_t[]){0, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0}, sizeof loss_mask) == 0);
}

static void test_gathered_rows_token_by_token(void) {
    for (int round = 0; round < 2000; round++) {
        size_t n = 1 + random_below(30), width = 1 + random_below(LONGEST), rows = 1 + random_below(4), count = 0;
        uint32_t mark = random_below(2) ? 1000 : PYBPE_NO_ID;
        uint64_t starts[4 * LONGEST], lengths[4 * LONGEST], row[4 * LONGEST];
        uint32_t *ids = exactly(n, sizeof *ids), *found = exactly(rows * width, sizeof *found);
        uint32_t want[4 * LONGEST];
        for (size_t i = 0; i < n; i++) {
            ids[i] = (uint32_t)i;
        }
        for (size_t i = 0; i < rows; i++) {
            size_t at = 0;
            while (at < width && random_below(4) > 0) {
                size_t most = width - at < n ? width - at : n;
                lengths[count] = 1 + random_below((uint32_t)most);
                starts[count] = random_below((uint32_t)(n - lengths[count] + 1));
                row[count] = i;
                for (size_t k = 0; k < lengths[count]; k++) {
                    want[i * width + at++] = k == 0 && mark != PYBPE_NO_ID ? mark : ids[starts[count] + k];
                }
                count++;
            }
            while (at < width) {
                want[i * width + at++] = 2000;
            }
        }
        const pybpe_marked from = {.ids = ids, .id_bytes = 4, .starts = starts, .lengths = lengths, .count = count};
        const pybpe_rows to = {.width = width, .count = rows, .mark = mark, .pad = 2000, .ids = found};
        CHECK_EQ(pybpe_rows_gather(&from, n, row, NULL, &to, NULL), PYBPE_OK);
        CHECK(memcmp(found, want, rows * width * sizeof *found) == 0);
        free(ids);
        free(found);
    }
}

static void test_parts_that_are_refused(void) {
    const uint16_t ids[4] = {0};
    const struct {
        uint64_t start, length, first_row, row;
    } wrong[] = {{3, 2, 0, 1}, {5, 1, 0, 1}, {UINT64_MAX, 2, 0, 1}, {1, UINT64_MAX, 0, 1}, {0, 0, 0, 1},
                 {0, 4, 0, 1}, {0, 3, 0, 0}, {0, 1, 0, 2},          {0, 1, 1, 0},          {0, 1, 0, UINT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint16_t found[6];
        const uint64_t starts[] = {0, wrong[i].start}, lengths[] = {1, wrong[i].length};
        const uint64_t row[] = {wrong[i].first_row, wrong[i].row};
        pybpe_marked from = {.ids = ids, .id_bytes = 2, .starts = starts, .lengths = lengths, .count = 2};
        const pybpe_rows to = {.width = 3, .count = 2, .ids = found};
        pybpe_error err;
        CHECK_EQ(pybpe_rows_gather(&from, 4, row, NULL, &to, &err), PYBPE_ERR_VALUE);
        CHECK_EQ(err.offset, 1);
        from.id_bytes = 3;
        CHECK_EQ(pybpe_rows_gather(&from, 4, row, NULL, &to, &err), PYBPE_ERR_VALUE);
    }
}

int main(void) {
    test_the_example_of_gathered_rows();
    test_gathered_rows_token_by_token();
    test_parts_that_are_refused();
    test_the_example_of_rows();
    test_the_rows_of_whole_texts();
    test_rows_are_full();
    test_the_example();
    test_random_streams();
    test_shifted_starts();
    return check_report("documents");
}
