/*
Token shards: the .bin files that llm.c trains on.

    byte    0          4          8        12 ....... 1024
            magic      version    count    zeros        tokens, uint16 or uint32, to the end of the file
            int32 each, little-endian

    GPT-2   20240520   1                                uint16
    Llama 3 20240801   7                                uint32

Source: llm.c, llmc/dataloader.h and dev/data/data_common.py (write_datafile). llm.c requires the file's size to match
the count exactly, so nothing can follow the tokens. nanoGPT's files contain only the tokens.
*/
#include "base/base.h"

static const uint32_t MAGIC_UINT16 = PYBPE_MAGIC_SHARD_UINT16, MAGIC_UINT32 = PYBPE_MAGIC_SHARD_UINT32;
static const uint32_t VERSION_UINT16 = 1, VERSION_UINT32 = 7;

enum { BUFFER_BYTES = 1 << 16 };

struct pybpe_shard {
    pybpe_allocator mem;
    char *path;          /* what errors call it */
    file_in file;        /* closed for a shard in memory */
    const uint8_t *data; /* NULL for a file */
    uint64_t count;
    int id_bytes;
};

static char *path_copy(const char *path, const pybpe_allocator *mem) {
    size_t n = strlen(path) + 1;
    char *copy = mem_alloc(mem, n);
    return copy == NULL ? NULL : memcpy(copy, path, n);
}

/* ---------------------------------------------------------------------------------------------------
Reading
*/

/* Sets count and id_bytes from the header, which must match the size of the file. */
static int header_parse(pybpe_shard *s, const uint8_t *header, uint64_t size, pybpe_error *err) {
    uint32_t magic = load_u32(header), version = load_u32(header + 4), count = load_u32(header + 8);
    if (magic != MAGIC_UINT16 && magic != MAGIC_UINT32) {
        return error_set(err, PYBPE_ERR_FORMAT, 0,
                         "%s: magic %u at offset 0, expected %u (uint16) or %u (uint32): not a token shard, or one "
                         "without a header; llm.c aborts with 'Bad magic'",
                         s->path, magic, MAGIC_UINT16, MAGIC_UINT32);
    }
    uint32_t expected_version = magic == MAGIC_UINT16 ? VERSION_UINT16 : VERSION_UINT32;
    if (version != expected_version) {
        return error_set(err, PYBPE_ERR_FORMAT, 4, "%s: version %u at offset 4, expected %u; llm.c aborts", s->path,
                         version, expected_version);
    }
    if (count > INT32_MAX) {
        return error_set(err, PYBPE_ERR_FORMAT, 8, "%s: token count %d at offset 8 is negative; llm.c aborts", s->path,
                         (int32_t)count);
    }
    s->count = count;
    s->id_bytes = magic == MAGIC_UINT16 ? 2 : 4;
    uint64_t expected = PYBPE_SHARD_HEADER_BYTES + s->count * (uint64_t)s->id_bytes;
    if (size != expected) {
        return error_set(err, PYBPE_ERR_FORMAT, size < expected ? size : expected,
                         "%s: %llu bytes, expected %llu for the %u tokens of its header: it was cut off or appended "
                         "to; llm.c aborts",
                         s->path, (unsigned long long)size, (unsigned long long)expected, count);
    }
    return PYBPE_OK;
}

static int header_check_size(const char *path, uint64_t size, pybpe_error *err) {
    if (size < PYBPE_SHARD_HEADER_BYTES) {
        return error_set(err, PYBPE_ERR_FORMAT, size, "%s: %llu bytes are not a token shard: the header alone has %d",
                         path, (unsigned long long)size, PYBPE_SHARD_HEADER_BYTES);
    }
    return PYBPE_OK;
}

static pybpe_shard *shard_alloc(const char *path, const pybpe_allocator *mem, pybpe_error *err) {
    pybpe_shard *s = mem_alloc(mem, sizeof *s);
    char *name = path_copy(path, mem);
    if (s == NULL || name == NULL) {
        mem_free(mem, s);
        mem_free(mem, name);
        error_set_memory(err, "a shard", sizeof *s + strlen(path) + 1);
        return NULL;
    }
    *s = (pybpe_shard){.mem = mem_of(mem), .path = name, .file = {.fd = -1}};
    return s;
}

int pybpe_shard_open(pybpe_shard **out, const char *path, const pybpe_allocator *mem, pybpe_error *err) {
    *out = NULL;
    pybpe_shard *s = shard_alloc(path, mem, err);
    if (s == NULL) {
        return PYBPE_ERR_MEMORY;
    }
    uint8_t header[PYBPE_SHARD_HEADER_BYTES];
    int code = file_in_open(&s->file, path, err);
    code = code == PYBPE_OK ? header_check_size(path, s->file.size, err) : code;
    code = code == PYBPE_OK ? file_in_read(&s->file, path, 0, header, sizeof header, err) : code;
    code = code == PYBPE_OK ? header_parse(s, header, s->file.size, err) : code;
    if (code != PYBPE_OK) {
        pybpe_shard_free(s);
        return code;
    }
    *out = s;
    return PYBPE_OK;
}

int pybpe_shard_open_mem(pybpe_shard **out, const uint8_t *data, size_t n, const pybpe_allocator *mem,
                         pybpe_error *err) {
    *out = NULL;
    PYBPE_TRY(array_check(data, n, "the bytes of a shard", err));
    pybpe_shard *s = shard_alloc("shard in memory", mem, err);
    if (s == NULL) {
        return PYBPE_ERR_MEMORY;
    }
    s->data = data;
    int code = header_check_size(s->path, n, err);
    code = code == PYBPE_OK ? header_parse(s, data, n, err) : code;
    if (code != PYBPE_OK) {
        pybpe_shard_free(s);
        return code;
    }
    *out = s;
    return PYBPE_OK;
}

void pybpe_shard_free(pybpe_shard *s) {
    if (s != NULL) {
        pybpe_allocator mem = s->mem;
        file_in_close(&s->file);
        mem_free(&mem, s->path);
        mem_free(&mem, s);
    }
}

uint64_t pybpe_shard_count(const pybpe_shard *s) { return s->count; }

int pybpe_shard_id_bytes(const pybpe_shard *s) { return s->id_bytes; }

static void ids_widen(const uint8_t *raw, int id_bytes, size_t n, uint32_t *ids) {
    for (size_t i = 0; i < n; i++) {
        ids[i] = id_bytes == 2 ? load_u16(raw + 2 * i) : load_u32(raw + 4 * i);
    }
}

int pybpe_shard_read(const pybpe_shard *s, uint64_t start, size_t n, uint32_t *ids, pybpe_error *err) {
    if (start > s->count || n > s->count - start) {
        return error_set(err, PYBPE_ERR_VALUE, start, "%s: tokens %llu to %llu were requested, but it has %llu",
                         s->path, (unsigned long long)start, (unsigned long long)start + n,
                         (unsigned long long)s->count);
    }
    uint8_t buffer[BUFFER_BYTES];
    const size_t id_bytes = (size_t)s->id_bytes;
    uint64_t offset = PYBPE_SHARD_HEADER_BYTES + start * id_bytes;
    if (s->data != NULL) {
        ids_widen(s->data + offset, s->id_bytes, n, ids);
        return PYBPE_OK;
    }
    while (n > 0) {
        size_t now = n < sizeof buffer / id_bytes ? n : sizeof buffer / id_bytes;
        PYBPE_TRY(file_in_read(&s->file, s->path, offset, buffer, now * id_bytes, err));
        ids_widen(buffer, s->id_bytes, now, ids);
        ids += now;
        n -= now;
        offset += now * id_bytes;
    }
    return PYBPE_OK;
}

/* ---------------------------------------------------------------------------------------------------
Writing
*/

struct pybpe_shard_writer {
    pybpe_allocator mem;
    pybpe_output *output;
    char *path; /* what errors call it */
    uint64_t count;
    int format;
    int id_bytes;
    size_t buffered;
    uint8_t buffer[BUFFER_BYTES];
};

static bool format_has_header(int format) { return format == PYBPE_SHARD_UINT16 || format == PYBPE_SHARD_UINT32; }

static void header_fill(const pybpe_shard_writer *w, uint8_t header[PYBPE_SHARD_HEADER_BYTES]) {
    bool narrow = w->format == PYBPE_SHARD_UINT16;
    memset(header, 0, PYBPE_SHARD_HEADER_BYTES);
    store_u32(header, narrow ? MAGIC_UINT16 : MAGIC_UINT32);
    store_u32(header + 4, narrow ? VERSION_UINT16 : VERSION_UINT32);
    store_u32(header + 8, (uint32_t)w->count);
}

int pybpe_shard_writer_new(pybpe_shard_writer **out, const char *path, int format, const pybpe_allocator *mem,
                           pybpe_error *err) {
    *out = NULL;
    if (format < PYBPE_SHARD_UINT16 || format > PYBPE_SHARD_RAW_UINT32) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "%s: %d is not a pybpe_shard_format", path, format);
    }
    pybpe_shard_writer *w = mem_alloc(mem, sizeof *w);
    PYBPE_TRY(memory_check(w, "a shard", sizeof *w, err));
    w->mem = mem_of(mem);
    w->output = NULL;
    w->path = path_copy(path, mem);
    w->count = 0;
    w->format = format;
    w->id_bytes = format == PYBPE_SHARD_UINT16 || format == PYBPE_SHARD_RAW_UINT16 ? 2 : 4;
    w->buffered = 0;
    int code = w->path == NULL ? error_set_memory(err, "a file name", strlen(path) + 1)
                               : pybpe_output_open(&w->output, path, mem, err);
    if (code == PYBPE_OK && format_has_header(format)) {
        header_fill(w, w->buffer); /* reserves its place. The count is filled in at the end */
        code = pybpe_output_write(w->output, w->buffer, PYBPE_SHARD_HEADER_BYTES, err);
    }
    if (code != PYBPE_OK) {
        pybpe_shard_writer_discard(w);
        return code;
    }
    *out = w;
    return PYBPE_OK;
}

/* A call writes either all of its tokens or none. */
static int writer_check(const pybpe_shard_writer *w, const void *ids, int id_bytes, size_t n, pybpe_error *err) {
    if (id_bytes != 2 && id_bytes != 4) {
        return error_set(err, PYBPE_ERR_VALUE, 0, "%s: id_bytes must be 2 or 4, not %d", w->path, id_bytes);
    }
    uint64_t room = (PYBPE_SHARD_MAX_BYTES - PYBPE_SHARD_HEADER_BYTES) / (unsigned)w->id_bytes;
    if (format_has_header(w->format) && n > room - w->count) { /* no call writes more than there is room for */
        return error_set(
            err, PYBPE_ERR_LIMIT, n,
            "%s: %llu tokens would exceed 2 GiB, beyond which llm.c cannot seek: write more, smaller shards", w->path,
            (unsigned long long)w->count + n);
    }
    for (size_t i = 0; w->id_bytes < id_bytes && i < n; i++) {
        uint32_t id = id_at(ids, id_bytes, i);
        if (id > UINT16_MAX) {
            return error_set(err, PYBPE_ERR_LIMIT, i, "%s: id %u at index %zu does not fit uint16: write uint32 tokens",
                             w->path, id, i);
        }
    }
    return PYBPE_OK;
}

static int writer_flush(pybpe_shard_writer *w, pybpe_error *err) {
    int code = pybpe_output_write(w->output, w->buffer, w->buffered, err); /* after an error, all of them fail */
    w->buffered = 0;
    return code;
}

int pybpe_shard_writer_write(pybpe_shard_writer *w, const void *ids, int id_bytes, size_t n, pybpe_error *err) {
    int code = writer_check(w, ids, id_bytes, n, err);
    for (size_t i = 0; i < n && code == PYBPE_OK;) {
        size_t room = (sizeof w->buffer - w->buffered) / (size_t)w->id_bytes;
        size_t now = n - i < room ? n - i : room;
        for (size_t k = 0; k < now; k++) {
            uint32_t id = id_at(ids, id_bytes, i + k);
            uint8_t *to = w->buffer + w->buffered + k * (size_t)w->id_bytes;
            if (w->id_bytes == 2) {
                to[0] = (uint8_t)id;
                to[1] = (uint8_t)(id >> 8);
            } else {
                store_u32(to, id);
            }
        }
        w->buffered += now * (size_t)w->id_bytes;
        w->count += now;
        i += now;
        if (w->buffered == sizeof w->buffer) {
            code = writer_flush(w, err);
        }
    }
    return code;
}

int pybpe_shard_writer_finish(pybpe_shard_writer *w, pybpe_error *err) {
    int code = writer_flush(w, err);
    if (code == PYBPE_OK && format_has_header(w->format)) {
        uint8_t header[PYBPE_SHARD_HEADER_BYTES];
        header_fill(w, header);
        code = pybpe_output_patch(w->output, 0, header, sizeof header, err);
    }
    if (code == PYBPE_OK) {
        code = pybpe_output_commit(w->output, err);
        w->output = NULL;
    }
    pybpe_shard_writer_discard(w);
    return code;
}

void pybpe_shard_writer_discard(pybpe_shard_writer *w) {
    if (w != NULL) {
        pybpe_allocator mem = w->mem;
        pybpe_output_discard(w->output);
        mem_free(&mem, w->path);
        mem_free(&mem, w);
    }
}
