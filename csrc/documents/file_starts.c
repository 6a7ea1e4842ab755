/*
Reads many small files, or the starts of larger ones, in one call: in Python, opening and reading a file of 100 bytes
takes several times as long as encoding it.
*/
#include "base/base.h"

/* Reads the start of a file, `most` bytes, if these fit into the room. Returns its length, and the file's size and time
   of the last write; or 0, and a size of UINT64_MAX. */
static size_t start_read(const char *path, uint8_t *bytes, size_t room, size_t most, uint64_t *size,
                         int64_t *modified) {
    file_in f;
    size_t n = 0;
    *size = UINT64_MAX;
    *modified = 0;
    if (file_in_open(&f, path, NULL) != PYBPE_OK) {
        return 0;
    }
    uint8_t unexpected;
    const size_t want = f.size < most ? (size_t)f.size : most;
    /* In /proc, files that have no size have content. */
    const bool is_right = f.size > 0 ? want <= room && file_in_read(&f, path, 0, bytes, want, NULL) == PYBPE_OK
                                     : file_in_read(&f, path, 0, &unexpected, 1, NULL) == PYBPE_ERR_FORMAT;
    if (is_right && file_in_check(&f, path, NULL) == PYBPE_OK) {
        n = want;
        *size = f.size;
        *modified = f.modified;
    }
    file_in_close(&f);
    return n;
}

void pybpe_file_starts_read(pybpe_file_starts *out, const char *paths, size_t count, size_t most) {
    out->offsets[0] = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t at = out->offsets[i];
        out->offsets[i + 1] =
            at + start_read(paths, out->bytes + at, out->room - at, most, &out->sizes[i], &out->modified[i]);
        paths += strlen(paths) + 1;
    }
}
