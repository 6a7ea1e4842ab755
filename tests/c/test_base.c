/*
The basis of every module: errors, the allocator, checked sizes, files. The test writes files in its own folder;
tests/faults injects failing system calls.
*/
#include "base/base.h"
#include "check.h"
#include "scratch.h"
#include "small_vocab.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---------------------------------------------------------------------------------------------------
Errors
*/

static void test_errors(void) {
    CHECK(strcmp(pybpe_version(), PYBPE_VERSION) == 0);
    pybpe_error err;
    memset(&err, 0xEE, sizeof err);
    CHECK_EQ(error_set(&err, PYBPE_ERR_FORMAT, 7, "%s: byte %d", "x.bin", 3), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.code, PYBPE_ERR_FORMAT);
    CHECK_EQ(err.sys_errno, 0);
    CHECK_EQ(err.offset, 7);
    CHECK(strcmp(err.msg, "x.bin: byte 3") == 0);
    CHECK_EQ(error_set_errno(&err, ENOENT, "%s", "x.bin"), PYBPE_ERR_IO);
    CHECK_EQ(err.sys_errno, ENOENT);
    CHECK_EQ(err.offset, 0);
    CHECK(strcmp(err.msg, "x.bin: No such file or directory") == 0);
    CHECK_EQ(error_set_memory(&err, "words", 12), PYBPE_ERR_MEMORY);
    CHECK(strstr(err.msg, "12 bytes for words") != NULL);
    CHECK_EQ(error_set(NULL, PYBPE_ERR_VALUE, 0, "nobody listens"), PYBPE_ERR_VALUE);
    CHECK_EQ(error_set_errno(NULL, EIO, "nobody listens"), PYBPE_ERR_IO);
}

/* A message that does not fit is truncated, and still terminated. */
static void test_long_messages(void) {
    char name[2000];
    memset(name, 'n', sizeof name);
    for (size_t n = sizeof((pybpe_error *)0)->msg - 40; n < sizeof((pybpe_error *)0)->msg + 8; n++) {
        pybpe_error err;
        memset(&err, 0xEE, sizeof err);
        CHECK_EQ(error_set_errno(&err, ENOENT, "%.*s", (int)n, name), PYBPE_ERR_IO);
        CHECK(memchr(err.msg, '\0', sizeof err.msg) != NULL && strlen(err.msg) >= sizeof err.msg - 41);
        memset(&err, 0xEE, sizeof err);
        CHECK_EQ(error_set(&err, PYBPE_ERR_VALUE, 0, "%.*s", (int)n, name), PYBPE_ERR_VALUE);
        CHECK(memchr(err.msg, '\0', sizeof err.msg) != NULL);
    }
}

/* A message is one line of UTF-8, whatever the names in it are and wherever they are cut. */
static void test_lines(void) {
    static const struct {
        const char *given, *want;
    } cases[] = {
        {"a\nb\r\t\x7F\v", "a b  \\x7f\\x0b"},
        {"\xE4\xBD\xA0 \xF0\x9F\x98\x80 \xC3\xA9", "\xE4\xBD\xA0 \xF0\x9F\x98\x80 \xC3\xA9"},
        {"\xE4\xBD", "\\xe4\\xbd"},
        {"\xC0\xAF\xED\xA0\x80\xF4\x90\x80\x80", "\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80"},
        {"\xC2\x85\xE0\x9F\xBF\xF0\x8F\xBF\xBF", "\\xc2\\x85\\xe0\\x9f\\xbf\\xf0\\x8f\\xbf\\xbf"},
        {"\xFF\x80", "\\xff\\x80"},
    };
    pybpe_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(error_set(&err, PYBPE_ERR_VALUE, 0, "%s", cases[i].given), PYBPE_ERR_VALUE);
        CHECK(strcmp(err.msg, cases[i].want) == 0);
    }
    char name[600]; /* characters of two bytes and of one that is spelled in four, cut at each place */
    for (size_t start = 0; start < 8; start++) {
        for (size_t i = 0; i + 1 < sizeof name; i++) {
            name[i] = i < start ? 'x' : "\xC3\xA9\xFF"[(i - start) % 3];
        }
        name[sizeof name - 1] = '\0';
        CHECK_EQ(error_set_errno(&err, ENOENT, "%s", name), PYBPE_ERR_IO);
        const size_t n = strlen(err.msg);
        CHECK(n < sizeof err.msg && n > sizeof err.msg - 8 && pybpe_utf8_valid((const uint8_t *)err.msg, n) == n);
    }
}

/* ---------------------------------------------------------------------------------------------------
Memory
*/

static void test_sizes(void) {
    size_t r;
    CHECK(size_add(SIZE_MAX - 1, 1, &r) && r == SIZE_MAX);
    CHECK(!size_add(SIZE_MAX, 1, &r));
    CHECK(size_mul(SIZE_MAX / 2, 2, &r) && r == SIZE_MAX - 1);
    CHECK(!size_mul(SIZE_MAX / 2 + 1, 2, &r));
    CHECK(size_mul(0, SIZE_MAX, &r) && r == 0);
    uint8_t bytes[4] = {0x01, 0x80, 0xFF, 0xFE};
    CHECK_EQ(load_u16(bytes), 0x8001);
    CHECK_EQ(load_u32(bytes), 0xFEFF8001);
    store_u32(bytes, 0x80FF0102);
    CHECK(memcmp(bytes, "\x02\x01\xFF\x80", 4) == 0);
}

static void test_allocator(void) {
    for (int own = 0; own < 2; own++) {
        failing_memory counted = {.left = 1000};
        pybpe_allocator allocator = {failing_resize, &counted};
        const pybpe_allocator *mem = own ? &allocator : NULL;
        CHECK(mem_alloc(mem, 0) == NULL);
        CHECK(mem_alloc_array(mem, SIZE_MAX / 4 + 1, 4) == NULL); /* 4 (SIZE_MAX / 4 + 1) wraps to 0 */
        CHECK(mem_alloc_array(mem, SIZE_MAX, SIZE_MAX) == NULL);
        CHECK(mem_alloc_zeroed(mem, SIZE_MAX / 4 + 1, 4) == NULL);
        CHECK(mem_alloc_zeroed(mem, 0, 4) == NULL);
        CHECK(mem_resize_array(mem, NULL, SIZE_MAX / 4 + 1, 4) == NULL);
        uint8_t *one = mem_resize_array(mem, NULL, 1, 1);
        CHECK(one != NULL && mem_resize_array(mem, one, 0, 1) == NULL);
        *one = 1; /* it is still there */
        mem_free(mem, one);
        uint8_t *zeroed = mem_alloc_zeroed(mem, 100, 3);
        int sum = 0;
        for (int i = 0; i < 300; i++) {
            sum += zeroed[i];
        }
        CHECK_EQ(sum, 0);
        mem_free(mem, zeroed);
        mem_free(mem, NULL);
        mem_table table;
        CHECK(!mem_table_alloc(&table, mem, SIZE_MAX / 8, 16) && table.data == NULL && table.block == NULL);
        CHECK(!mem_table_alloc(&table, mem, SIZE_MAX - 8, 1)); /* the room to align it overflows */
        CHECK(!mem_table_alloc(&table, mem, 0, 16));
        if (!own) { /* more than a machine has: the system refuses to map it, and nothing is unmapped later */
            CHECK(!mem_table_alloc(&table, NULL, SIZE_MAX / 4, 1) && table.block == NULL && table.mapped == 0);
            mem_table_free(&table, NULL);
        }
        const size_t large = (size_t)16 << 20;
        for (size_t n = 1; n <= 2 * large; n = 3 * n + 1) {
            CHECK(mem_table_alloc(&table, mem, n, 1));
            CHECK_EQ((uintptr_t)table.data % (n >= large && table.mapped > 0 ? (size_t)2 << 20 : 64), 0);
            memset(table.data, 1, n);
            const bool grows = mem_table_grow(&table, mem, n, 3 * n);
            CHECK_EQ(grows, 3 * n < large);
            const uint8_t *grown = table.data;
            CHECK(grown[0] == 1 && memcmp(grown, grown + 1, n - 1) == 0); /* all are as before */
            CHECK_EQ((uintptr_t)table.data % 64, 0);
            memset(table.data, 2, grows ? 3 * n : n);
            mem_table_free(&table, mem);
            CHECK(mem_table_alloc_zeroed(&table, mem, n, 1));
            const uint8_t *bytes = table.data;
            CHECK(bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0); /* all are equal */
            mem_table_free(&table, mem);
            CHECK(table.data == NULL && table.block == NULL && table.mapped == 0);
        }
        CHECK_EQ(counted.blocks, 0);
    }
}

/* An array keeps its items as it grows, in few steps, and survives when there is no memory for more. */
static void test_growing_arrays(void) {
    uint32_t *items = NULL;
    size_t room = 0, moves = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        size_t before = room;
        items = mem_reserve(NULL, items, &room, (size_t)i + 1, sizeof *items);
        CHECK(items != NULL && room > i);
        moves += room != before;
        items[i] = i;
    }
    CHECK(moves < 25); /* 64 * 1.5^20 > 100000 */
    for (uint32_t i = 0; i < 100000; i++) {
        CHECK_EQ(items[i], i);
    }
    const size_t full = room;
    CHECK(mem_reserve(NULL, items, &room, 0, sizeof *items) == items && room == full);
    CHECK(mem_reserve(NULL, items, &room, full, sizeof *items) == items && room == full);
    CHECK(mem_reserve(NULL, items, &room, SIZE_MAX / 4 + 1, sizeof *items) == NULL); /* its bytes wrap to 0 */
    CHECK_EQ(room, full);
    items = mem_reserve(NULL, items, &room, 3 * full, sizeof *items);
    CHECK(items != NULL && items[99999] == 99999 && room == 3 * full);
    mem_free(NULL, items);
    uint8_t *none = NULL;
    room = 0;
    none = mem_reserve(NULL, none, &room, 0, 1);
    CHECK(none != NULL); /* NULL means that there is no memory */
    mem_free(NULL, none);
}

static void test_seeds_differ(void) {
    hash_seed a = hash_seed_draw();
    hash_seed b = hash_seed_draw();
    CHECK(a.a != b.a && a.b != b.b && a.a != a.b);
}

/* ---------------------------------------------------------------------------------------------------
Reading
*/

static void expect_unreadable(const char *path, int sys_errno) {
    uint8_t *data = (uint8_t *)1;
    size_t n = 77;
    pybpe_error err;
    CHECK_EQ(file_read_all(path, &data, &n, NULL, &err), PYBPE_ERR_IO);
    CHECK_EQ(err.sys_errno, sys_errno);
    CHECK(strncmp(err.msg, path, strlen(path)) == 0);
    CHECK(data == (uint8_t *)1 && n == 77); /* untouched */
}

/* Of what test_reading has made; "pipe" is missing, and so is a file that does not fit after the others. Two files after
   another in one folder are read by their last names, and a link after a look at where it leads. */
static void test_starts(void) {
    static const char paths[] = "x\0empty\0none\0.\0pipe\0/dev/null\0./x\0./link\0./pipe\0./empty\0../none\0x\0empty";
    static const uint64_t no = UINT64_MAX;
    const uint64_t expected[][2] = {{10, 7}, {0, 0},  {no, 0}, {no, 0}, {no, 0}, {no, 0}, {10, 7},
                                    {10, 7}, {no, 0}, {0, 0},  {no, 0}, {no, 0}, {0, 0}};
    enum { COUNT = sizeof expected / sizeof *expected };
    uint8_t bytes[26];
    uint64_t offsets[COUNT + 1], sizes[COUNT];
    int64_t modified[COUNT];
    struct stat st;
    pybpe_file_starts starts = {bytes, sizeof bytes, offsets, sizes, modified};
    CHECK(symlink("x", "link") == 0 && stat("x", &st) == 0);
    for (int known = 0; known < 2; known++) {
        memset(bytes, 0, sizeof bytes);
        pybpe_file_starts_read(&starts, paths, COUNT, 7, known);
        CHECK(memcmp(bytes, "some bysome bysome by", 21) == 0 && offsets[0] == 0);
        for (size_t i = 0; i < COUNT; i++) {
            CHECK_EQ(sizes[i], expected[i][0]);
            CHECK_EQ(offsets[i + 1] - offsets[i], expected[i][1]);
        }
        CHECK(modified[0] / 1000000000 == (int64_t)st.st_mtime && modified[2] == 0 && modified[7] == modified[0]);
        pybpe_file_starts_read(&starts, "/proc/self/status", 1, 7, known);
        CHECK(sizes[0] == UINT64_MAX && offsets[1] == 0); /* it has text, but no size */
    }
}

static void test_reading(void) {
    uint8_t *data = NULL;
    size_t n = 0;
    pybpe_error err;
    scratch_write("x", "some bytes", 10);
    CHECK_EQ(file_read_all("x", &data, &n, NULL, &err), PYBPE_OK);
    CHECK(n == 10 && memcmp(data, "some bytes", 10) == 0);
    mem_free(NULL, data);
    scratch_write("empty", "", 0);
    CHECK_EQ(file_read_all("empty", &data, &n, NULL, &err), PYBPE_OK);
    CHECK(n == 0 && data == NULL);
    expect_unreadable("none", ENOENT);
    expect_unreadable(".", EISDIR);
    expect_unreadable("/dev/null", EINVAL);
    CHECK(mkfifo("pipe", 0600) == 0);
    expect_unreadable("pipe", EINVAL); /* and does not wait for a writer */
    test_starts();
    failing_memory none = {.left = 0};
    pybpe_allocator mem = {failing_resize, &none};
    CHECK_EQ(file_read_all("x", &data, &n, &mem, &err), PYBPE_ERR_MEMORY);
    scratch_clear();
}

/* A file that is truncated between open and read, and one that grows. */
static void test_reading_what_changes(void) {
    char to[64];
    file_in f;
    pybpe_error err;
    scratch_write("x", "some bytes", 10);
    CHECK_EQ(file_in_open(&f, "x", &err), PYBPE_OK);
    CHECK_EQ(f.size, 10);
    CHECK(truncate("x", 4) == 0);
    CHECK_EQ(file_in_read(&f, "x", 2, to, 8, &err), PYBPE_ERR_FORMAT);
    CHECK_EQ(err.offset, 4);
    CHECK_EQ(file_in_read(&f, "x", 0, to, 4, &err), PYBPE_OK);
    CHECK_EQ(file_in_read(&f, "x", 99, to, 0, &err), PYBPE_OK);
    file_in_close(&f);
    CHECK_EQ(f.fd, -1);
    file_in_close(&f); /* once more does nothing */
    scratch_clear();
}

/* ---------------------------------------------------------------------------------------------------
Writing
*/

static int file_is(const char *path, const char *content) {
    uint8_t *data = NULL;
    size_t n = 0;
    int code = file_read_all(path, &data, &n, NULL, NULL);
    int equal = code == PYBPE_OK && n == strlen(content) && (n == 0 || memcmp(data, content, n) == 0);
    mem_free(NULL, data);
    return equal;
}

/* In a program without standard input, files and folders get descriptor 0. */
static void test_descriptor_0(void) {
    pybpe_output *o;
    pybpe_error err;
    int kept = dup(0);
    close(0);
    CHECK_EQ(pybpe_output_open(&o, "zero", NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_write(o, "body", 4, &err), PYBPE_OK);
    errno = EINTR; /* of an earlier call: the folder and the file are opened only once */
    CHECK_EQ(pybpe_output_commit(o, &err), PYBPE_OK);
    CHECK(file_is("zero", "body"));
    CHECK_EQ(pybpe_output_open(&o, "zero", NULL, &err), PYBPE_OK);
    pybpe_output_discard(o);
    CHECK_EQ(scratch_next_file(), 0); /* all are closed */
    CHECK_EQ(remove("zero"), 0);
    if (kept >= 0) {
        CHECK_EQ(dup2(kept, 0), 0);
        close(kept);
    }
}

static void test_writing(void) {
    pybpe_output *o;
    pybpe_error err;
    scratch_write("x", "old", 3);
    CHECK_EQ(pybpe_output_open(&o, "x", NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_write(o, "header--", 8, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_write(o, "body", 4, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_write(o, NULL, 0, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_patch(o, 6, "++", 2, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_patch(o, 12, "", 0, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_patch(o, 11, "ab", 2, &err), PYBPE_ERR_VALUE);
    CHECK_EQ(pybpe_output_patch(o, UINT64_MAX, "ab", 2, &err), PYBPE_ERR_VALUE);
    CHECK(file_is("x", "old")); /* nothing is visible before the commit */
    CHECK_EQ(pybpe_output_commit(o, &err), PYBPE_OK);
    CHECK(file_is("x", "header++body"));
    struct stat st;
    mode_t mask = umask(022);
    umask(mask);
    CHECK(stat("x", &st) == 0 && (st.st_mode & 0777) == (0666 & ~mask)); /* as any program makes files */
    CHECK(chmod("x", 0640) == 0);
    CHECK_EQ(pybpe_output_open(&o, "x", NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_write(o, "header++body", 12, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_commit(o, &err), PYBPE_OK);
    CHECK(stat("x", &st) == 0 && (st.st_mode & 0777) == 0640); /* of the file that was replaced */
    CHECK_EQ(pybpe_output_open(&o, "x", NULL, &err), PYBPE_OK);
    CHECK_EQ(pybpe_output_write(o, "never", 5, &err), PYBPE_OK);
    pybpe_output_discard(o);
    pybpe_output_discard(NULL);
    CHECK(file_is("x", "header++body"));
    CHECK_EQ(scratch_clear(), 1); /* no temporary file is left */
}

/* Several writers of one path: each has its own temporary file, and the last to commit wins. */
static void test_writers_at_once(void) {
    pybpe_output *o[3];
    char own[3] = "ab";
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pybpe_output_open(&o[i], "x", NULL, NULL), PYBPE_OK);
        own[0] = (char)('0' + i);
        CHECK_EQ(pybpe_output_write(o[i], own, 2, NULL), PYBPE_OK);
    }
    CHECK_EQ(pybpe_output_commit(o[2], NULL), PYBPE_OK);
    pybpe_output_discard(o[1]);
    CHECK(file_is("x", "2b"));
    CHECK_EQ(pybpe_output_commit(o[0], NULL), PYBPE_OK);
    CHECK(file_is("x", "0b"));
    CHECK_EQ(scratch_clear(), 1);
}

/* A link stays a link, and the file that it points to is written, in the folder of that file. */
static void test_writing_through_links(void) {
    pybpe_output *o;
    CHECK(mkdir("folder", 0700) == 0);
    scratch_write("folder/x", "old", 3);
    CHECK(symlink("folder/x", "link") == 0 && symlink("link", "second") == 0);
    CHECK_EQ(pybpe_output_open(&o, "second", NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_output_write(o, "new", 3, NULL), PYBPE_OK);
    CHECK(file_is("folder/x", "old"));
    CHECK_EQ(pybpe_output_commit(o, NULL), PYBPE_OK);
    struct stat st;
    CHECK(lstat("second", &st) == 0 && S_ISLNK(st.st_mode) && file_is("folder/x", "new"));
    CHECK_EQ(pybpe_output_open(&o, "link", NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_output_write(o, "newer", 5, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_output_commit(o, NULL), PYBPE_OK);
    CHECK(lstat("link", &st) == 0 && S_ISLNK(st.st_mode) && file_is("folder/x", "newer"));
    /* A link to nothing stays a link, too: the file that it names is made. */
    CHECK(symlink("folder/none", "nowhere") == 0 && symlink("nowhere", "folder/here") == 0);
    CHECK(symlink("../nowhere", "folder/up") == 0 && symlink("loop", "loop") == 0);
    CHECK_EQ(pybpe_output_open(&o, "folder/up", NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_output_write(o, "made", 4, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_output_commit(o, NULL), PYBPE_OK);
    CHECK(lstat("folder/up", &st) == 0 && S_ISLNK(st.st_mode) && lstat("nowhere", &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(file_is("folder/none", "made") && remove("folder/none") == 0);
    pybpe_error err;
    CHECK_EQ(pybpe_output_open(&o, "loop", NULL, &err), PYBPE_ERR_IO);
    CHECK_EQ(err.sys_errno, ELOOP);
    char name[PATH_MAX];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK(symlink(name, "folder/long") == 0); /* with the folder before it, it is too long */
    CHECK_EQ(pybpe_output_open(&o, "folder/long", NULL, &err), PYBPE_ERR_IO);
    CHECK(err.sys_errno == ENAMETOOLONG && remove("folder/long") == 0);
    CHECK(remove("folder/here") == 0 && remove("folder/up") == 0);
    CHECK(remove("folder/x") == 0 && rmdir("folder") == 0); /* which is empty: no temporary file is left */
    CHECK_EQ(scratch_clear(), 4);
}

/* Returns whether there is a file that this process is writing, with a temporary name that begins with `n` bytes of
   `target`. */
static int temporary_is(const char *target, size_t n) {
    char path[600];
    snprintf(path, sizeof path, "%.*s.%ld-0.tmp", (int)n, target, (long)getpid());
    return access(path, F_OK) == 0;
}

/* The temporary name of a file must not be too long where the file's own is not. It keeps whole characters. */
static void test_writing_long_names(void) {
    static const struct {
        const char *character;
        size_t kept; /* bytes of 255 - 40, in whole characters */
    } cases[] = {{"n", 215}, {"\xc3\xa9", 214}, {"\xe5\x90\x8d", 213}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[300] = "";
        while (strlen(name) + strlen(cases[i].character) <= 255) {
            strcat(name, cases[i].character);
        }
        pybpe_output *o;
        CHECK_EQ(pybpe_output_open(&o, name, NULL, NULL), PYBPE_OK);
        CHECK(temporary_is(name, cases[i].kept));
        CHECK_EQ(pybpe_output_write(o, "new", 3, NULL), PYBPE_OK);
        CHECK_EQ(pybpe_output_commit(o, NULL), PYBPE_OK);
        CHECK(file_is(name, "new"));
        CHECK_EQ(scratch_clear(), 1);
    }
}

/* A name of bytes that all continue a character: it has none that could be kept whole. */
static void test_writing_without_characters(void) {
    char name[256] = "";
    memset(name, 0x80, 255);
    pybpe_output *o;
    CHECK_EQ(pybpe_output_open(&o, name, NULL, NULL), PYBPE_OK);
    CHECK_EQ(pybpe_output_commit(o, NULL), PYBPE_OK);
    CHECK(file_is(name, ""));
    CHECK_EQ(scratch_clear(), 1);
}

/* The length of a folder's name does not matter: the temporary file is in that folder, with the whole name. */
static void test_writing_in_folders_with_long_names(void) {
    char path[300];
    memset(path, 'f', 240);
    memcpy(path + 240, "/x", 3);
    pybpe_output *o;
    path[240] = '\0';
    CHECK(mkdir(path, 0700) == 0);
    path[240] = '/';
    CHECK_EQ(pybpe_output_open(&o, path, NULL, NULL), PYBPE_OK);
    CHECK(temporary_is(path, 242));
    CHECK_EQ(pybpe_output_commit(o, NULL), PYBPE_OK);
    CHECK(file_is(path, "") && remove(path) == 0);
    CHECK_EQ(scratch_clear(), 1);
}

static void expect_unwritable(const char *path, int sys_errno) {
    pybpe_output *o = (pybpe_output *)1;
    pybpe_error err;
    CHECK_EQ(pybpe_output_open(&o, path, NULL, &err), PYBPE_ERR_IO);
    CHECK_EQ(err.sys_errno, sys_errno);
    CHECK(strncmp(err.msg, path, strlen(path)) == 0 && o == NULL);
}

static void test_unwritable(void) {
    expect_unwritable("", ENOENT);
    expect_unwritable("none/x", ENOENT);
    expect_unwritable(".", EISDIR);
    expect_unwritable("/dev/null", EINVAL); /* a rename would replace the device */
    scratch_write("file", "", 0);
    expect_unwritable("file/x", ENOTDIR);
#if defined(__linux__)
    int fd = open("file", O_RDONLY); /* a stream that is a file, such as /dev/stdout after "> file" */
    char stream[64];
    snprintf(stream, sizeof stream, "/proc/self/fd/%d", fd);
    expect_unwritable(stream, EINVAL);
    snprintf(stream, sizeof stream, "/dev/fd/%d", fd);
    expect_unwritable(stream, EINVAL);
    snprintf(stream, sizeof stream, "/proc/self/fd/%d", fd);
    CHECK(symlink(stream, "stdout") == 0);
    expect_unwritable("stdout", EINVAL);
    CHECK(remove("stdout") == 0 && close(fd) == 0);
#endif
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    expect_unwritable(name, ENAMETOOLONG);
    if (geteuid() != 0) {
        CHECK(mkdir("locked", 0500) == 0);
        expect_unwritable("locked/x", EACCES);
        CHECK(rmdir("locked") == 0);
    }
    CHECK_EQ(scratch_clear(), 1);
}

/* A file size limit simulates a full disk: writes fail after some bytes, or are short. */
static void test_no_room(void) {
    struct rlimit before;
    scratch_write("x", "old", 3);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    for (rlim_t room = 0; room <= 300; room += 100) {
        struct rlimit limit = {room, before.rlim_max};
        static const uint8_t block[150];
        pybpe_output *o;
        pybpe_error err = {0};
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK_EQ(pybpe_output_open(&o, "x", NULL, &err), PYBPE_OK);
        int code = pybpe_output_write(o, block, sizeof block, &err);
        code = code == PYBPE_OK ? pybpe_output_write(o, block, sizeof block, &err) : code;
        CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
        CHECK_EQ(code, room < 300 ? PYBPE_ERR_IO : PYBPE_OK);
        CHECK(room == 300 || (err.sys_errno == EFBIG && strstr(err.msg, "x: cannot be written at offset") != NULL));
        if (room < 300) { /* there is room again, but some bytes are missing */
            CHECK_EQ(pybpe_output_write(o, block, 1, &err), PYBPE_ERR_IO);
            CHECK_EQ(pybpe_output_patch(o, 0, block, 0, &err), PYBPE_ERR_IO);
            CHECK(strstr(err.msg, "x: an earlier write failed") != NULL);
            CHECK_EQ(pybpe_output_commit(o, &err), PYBPE_ERR_IO);
        } else {
            pybpe_output_discard(o);
        }
        CHECK(file_is("x", "old"));
    }
    CHECK_EQ(scratch_clear(), 1);
}

/* What happens to the folder, or the temporary file, before the commit. */
static void test_commit_fails(void) {
    pybpe_output *o;
    pybpe_error err;
    CHECK(mkdir("folder", 0700) == 0);
    CHECK_EQ(pybpe_output_open(&o, "folder/x", NULL, &err), PYBPE_OK);
    char temporary[64];
    snprintf(temporary, sizeof temporary, "folder/x.%ld-0.tmp", (long)getpid());
    CHECK(remove(temporary) == 0 && rmdir("folder") == 0); /* someone deleted it */
    CHECK_EQ(pybpe_output_commit(o, &err), PYBPE_ERR_IO);
    CHECK_EQ(err.sys_errno, ENOENT);
    CHECK(strstr(err.msg, "folder/x: the finished file cannot be given its name") != NULL);

    CHECK_EQ(pybpe_output_open(&o, "x", NULL, &err), PYBPE_OK);
    CHECK(mkdir("x", 0700) == 0); /* a folder took the name meanwhile */
    CHECK_EQ(pybpe_output_commit(o, &err), PYBPE_ERR_IO);
    CHECK_EQ(err.sys_errno, EISDIR);
    CHECK(rmdir("x") == 0);
    CHECK_EQ(scratch_clear(), 0);
}

static void test_failing_memory(void) {
    int refusals = 0;
    for (long grant = 0; grant < 10; grant++) {
        failing_memory m = {.left = grant};
        pybpe_allocator mem = {failing_resize, &m};
        pybpe_output *o = (pybpe_output *)1;
        pybpe_error err = {0};
        int code = pybpe_output_open(&o, "x", &mem, &err);
        CHECK(code == PYBPE_OK || (code == PYBPE_ERR_MEMORY && err.code == code && o == NULL));
        refusals += code != PYBPE_OK;
        if (code == PYBPE_OK) {
            CHECK_EQ(pybpe_output_write(o, "abc", 3, &err), PYBPE_OK);
            CHECK_EQ(pybpe_output_commit(o, &err), PYBPE_OK);
            CHECK(file_is("x", "abc"));
        }
        CHECK_EQ(m.blocks, 0);
        CHECK_EQ(scratch_clear(), code == PYBPE_OK);
    }
    CHECK_EQ(refusals, 4);
}

/* Refuses the block number `left`, and no other. */
static void *resize_except_one(void *context, void *ptr, size_t size) {
    failing_memory *m = context;
    if (size > 0 && m->left-- == 0) {
        return NULL;
    }
    m->blocks += (size > 0 && ptr == NULL) - (size == 0 && ptr != NULL);
    if (size > 0) {
        return realloc(ptr, size);
    }
    free(ptr);
    return NULL;
}

static void test_one_failure(void) {
    for (long which = 0; which < 4; which++) {
        failing_memory m = {.left = which};
        pybpe_allocator mem = {resize_except_one, &m};
        pybpe_output *o = (pybpe_output *)1;
        CHECK_EQ(pybpe_output_open(&o, "x", &mem, NULL), PYBPE_ERR_MEMORY);
        CHECK(o == NULL && m.blocks == 0 && scratch_clear() == 0);
    }
}

int main(void) {
    test_errors();
    test_long_messages();
    test_lines();
    test_sizes();
    test_allocator();
    test_growing_arrays();
    test_seeds_differ();
    scratch_enter();
    const int next_file = scratch_next_file();
    test_reading();
    test_reading_what_changes();
    test_writing();
    test_descriptor_0();
    test_writers_at_once();
    test_writing_through_links();
    test_writing_long_names();
    test_writing_without_characters();
    test_writing_in_folders_with_long_names();
    test_unwritable();
    test_no_room();
    test_commit_fails();
    test_failing_memory();
    test_one_failure();
    CHECK_EQ(scratch_next_file(), next_file); /* all are closed */
    scratch_leave();
    return check_report("test_base");
}
