/*
Functions that base.c and loader.c, written for POSIX, use on Windows. Internal.

- Paths are UTF-8, as everywhere in pybpe: they become UTF-16 here, whatever the code page of the process is.
- Files are read and written as they are, without conversion of line ends, and not inherited by child processes.
- rename replaces a file, and returns when the change is on the disk. So a folder need not be flushed, and cannot be.
- glob takes * and ? in the last part of a pattern only.
*/
#ifndef PYBPE_WIN32_H
#define PYBPE_WIN32_H

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#undef near /* its compilers once needed these */
#undef far

#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { WINDOWS_PATH = 4096 }; /* the longest path, in UTF-16 units or bytes */

#undef PATH_MAX
#define PATH_MAX WINDOWS_PATH
#define PYBPE_IS_SEPARATOR(c) ((c) == '/' || (c) == '\\' || (c) == ':')
#undef NAME_MAX
#define NAME_MAX 255
#define O_CLOEXEC _O_NOINHERIT
#define O_NONBLOCK 0
#define O_NOFOLLOW 0
#ifndef ESTALE
#define ESTALE 10070 /* WSAESTALE, as in Python */
#endif

/* The errno of the error that Windows just reported. */
static inline int windows_errno(void) {
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
        return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
        return EACCES;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
        return ENOSPC;
    case ERROR_NOT_ENOUGH_MEMORY:
        return ENOMEM;
    default:
        return EIO;
    }
}

static inline bool windows_path(const char *path, wchar_t wide[WINDOWS_PATH]) {
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, WINDOWS_PATH) == 0) {
        errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EINVAL;
        return false;
    }
    return true;
}

static inline bool windows_utf8(const wchar_t *wide, char path[WINDOWS_PATH]) {
    return WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, path, WINDOWS_PATH, NULL, NULL) > 0;
}

struct windows_stat {
    unsigned short st_mode;
    int64_t st_size;
    int64_t st_modified; /* in nanoseconds since 1970. Only windows_fstat knows it */
};

static inline int windows_stat(const char *path, struct windows_stat *st) {
    wchar_t wide[WINDOWS_PATH];
    struct _stat64 found;
    int result = windows_path(path, wide) ? _wstat64(wide, &found) : -1;
    *st = result == 0 ? (struct windows_stat){found.st_mode, found.st_size, 0} : (struct windows_stat){0, 0, 0};
    return result;
}

static inline int windows_fstat(int fd, struct windows_stat *st) {
    struct _stat64 found;
    FILETIME written; /* in units of 100 ns since 1601 */
    int result = _fstat64(fd, &found);
    if (result != 0 || !GetFileTime((HANDLE)_get_osfhandle(fd), NULL, NULL, &written)) {
        *st = (struct windows_stat){0, 0, 0};
        return -1;
    }
    int64_t units = (int64_t)((uint64_t)written.dwHighDateTime << 32 | written.dwLowDateTime);
    *st = (struct windows_stat){found.st_mode, found.st_size, (units - INT64_C(116444736000000000)) * 100};
    return 0;
}

/* Windows cannot open folders, and reports that access is denied. */
static inline int windows_open(const char *path, int flags, int mode, ...) {
    wchar_t wide[WINDOWS_PATH];
    struct windows_stat st;
    int fd = windows_path(path, wide) ? _wopen(wide, flags | _O_BINARY, mode & (_S_IREAD | _S_IWRITE)) : -1;
    if (fd < 0 && errno == EACCES && windows_stat(path, &st) == 0 && (st.st_mode & _S_IFDIR) != 0) {
        errno = EISDIR;
    }
    return fd;
}

static inline OVERLAPPED windows_place(uint64_t offset) {
    return (OVERLAPPED){.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
}

static inline ssize_t windows_pread(int fd, void *data, size_t n, uint64_t offset) {
    OVERLAPPED place = windows_place(offset);
    DWORD got;
    if (ReadFile((HANDLE)_get_osfhandle(fd), data, (DWORD)n, &got, &place)) {
        return (ssize_t)got;
    }
    if (GetLastError() == ERROR_HANDLE_EOF) {
        return 0;
    }
    errno = windows_errno();
    return -1;
}

static inline ssize_t windows_pwrite(int fd, const void *data, size_t n, uint64_t offset) {
    OVERLAPPED place = windows_place(offset);
    DWORD put;
    if (WriteFile((HANDLE)_get_osfhandle(fd), data, (DWORD)n, &put, &place)) {
        return (ssize_t)put;
    }
    errno = windows_errno();
    return -1;
}

/* Windows refuses to replace a file while any program has it open. Programs that examine new files have them open for
   an instant, so this tries again for half a second. */
static inline int windows_rename(const char *from, const char *to) {
    wchar_t wide_from[WINDOWS_PATH], wide_to[WINDOWS_PATH];
    if (!windows_path(from, wide_from) || !windows_path(to, wide_to)) {
        return -1;
    }
    for (DWORD pause = 16; pause <= 512; pause *= 2) {
        if (MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)) {
            return 0;
        }
        errno = windows_errno();
        if (errno != EACCES) {
            break;
        }
        if (pause < 512) {
            Sleep(pause);
        }
    }
    return -1;
}

static inline void windows_strerror(int number, char *text, size_t n) {
    (void)strerror_s(text, n, number);
    if (number == EACCES && n > 0) {
        (void)snprintf(text, n, "Permission denied; perhaps the file is open in a program");
    }
}

static inline int windows_unlink(const char *path) {
    wchar_t wide[WINDOWS_PATH];
    return windows_path(path, wide) ? _wunlink(wide) : -1;
}

/* Only whether it is a link: base.c asks realpath where it leads. */
static inline ssize_t windows_readlink(const char *path, char *link, size_t n) {
    wchar_t wide[WINDOWS_PATH];
    DWORD attributes = windows_path(path, wide) ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    if (n == 0 || attributes == INVALID_FILE_ATTRIBUTES || (attributes & FILE_ATTRIBUTE_REPARSE_POINT) == 0) {
        return -1;
    }
    link[0] = '?';
    return 1;
}

static inline char *windows_realpath(const char *path, char resolved[WINDOWS_PATH]) {
    wchar_t wide[WINDOWS_PATH];
    const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    HANDLE file = windows_path(path, wide)
                      ? CreateFileW(wide, 0, share, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL)
                      : INVALID_HANDLE_VALUE;
    if (file == INVALID_HANDLE_VALUE) {
        return NULL;
    }
    DWORD length = GetFinalPathNameByHandleW(file, wide, WINDOWS_PATH, FILE_NAME_NORMALIZED);
    CloseHandle(file);
    return length > 0 && length < WINDOWS_PATH && windows_utf8(wide, resolved) ? resolved : NULL;
}

static inline int windows_entropy(void *data, size_t n) {
    for (size_t i = 0; i < n; i += sizeof(unsigned)) {
        unsigned random;
        if (rand_s(&random) != 0) {
            return -1;
        }
        memcpy((uint8_t *)data + i, &random, n - i < sizeof random ? n - i : sizeof random);
    }
    return 0;
}

#undef stat
#undef fstat
#define stat windows_stat /* the function and the structure */
#define fstat windows_fstat
#define open(...) windows_open(__VA_ARGS__, 0)
#define close(fd) _close(fd)
#define pread(fd, data, n, offset) windows_pread(fd, data, n, (uint64_t)(offset))
#define pwrite(fd, data, n, offset) windows_pwrite(fd, data, n, (uint64_t)(offset))
#define fsync(fd) _commit(fd)
#define fchmod(fd, mode) 0 /* Windows has other permissions, which a new file inherits from its folder */
#define rename(from, to) windows_rename(from, to)
#define unlink(path) windows_unlink(path)
#define readlink(path, link, n) windows_readlink(path, link, n)
#define realpath(path, resolved) windows_realpath(path, resolved)
#define getpid() _getpid()
#define getentropy(data, n) windows_entropy(data, n)
#define strerror_r(number, text, n) windows_strerror(number, text, n)

/* ---------------------------------------------------------------------------------------------------
glob
*/

enum { GLOB_NOSORT = 0, GLOB_NOSPACE = 1, GLOB_NOMATCH = 3 };

typedef struct glob_t {
    size_t gl_pathc;
    char **gl_pathv;
} glob_t;

static inline void globfree(glob_t *found) {
    for (size_t i = 0; i < found->gl_pathc; i++) {
        free(found->gl_pathv[i]);
    }
    free(found->gl_pathv);
    *found = (glob_t){0, NULL};
}

/* Adds a name in the folder that the first n bytes of the pattern are. */
static inline int windows_glob_add(glob_t *found, const char *pattern, size_t n, const char *name) {
    char **names = (char **)realloc(found->gl_pathv, (found->gl_pathc + 1) * sizeof *names);
    if (names == NULL) {
        return GLOB_NOSPACE;
    }
    found->gl_pathv = names;
    size_t length = strlen(name) + 1;
    char *path = (char *)malloc(n + length);
    if (path == NULL) {
        return GLOB_NOSPACE;
    }
    memcpy(path, pattern, n);
    memcpy(path + n, name, length);
    names[found->gl_pathc++] = path;
    return 0;
}

/* Whether a name matches a pattern of * and ?, where ? is one character. Windows itself also compares short names, and
   ignores case. */
static inline bool windows_matches(const wchar_t *name, const wchar_t *pattern) {
    const wchar_t *star = NULL, *retry = NULL;
    while (*name != 0) {
        if (*pattern == L'*') {
            star = ++pattern;
            retry = name;
        } else if (*pattern == L'?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == L'*') {
        pattern++;
    }
    return *pattern == 0;
}

static inline int windows_glob_found(glob_t *found, const char *pattern, size_t folder, const wchar_t *last,
                                     const WIN32_FIND_DATAW *data) {
    char name[WINDOWS_PATH];
    bool hidden = data->cFileName[0] == L'.' && last[0] != L'.';
    bool taken = !hidden && windows_matches(data->cFileName, last) && windows_utf8(data->cFileName, name);
    return taken ? windows_glob_add(found, pattern, folder, name) : 0;
}

static inline int windows_glob(const char *pattern, glob_t *found) {
    wchar_t wide[WINDOWS_PATH], last[WINDOWS_PATH];
    size_t folder = 0;
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        folder = pattern[i] == '/' || pattern[i] == '\\' || pattern[i] == ':' ? i + 1 : folder;
    }
    *found = (glob_t){0, NULL};
    if (!windows_path(pattern, wide) || !windows_path(pattern + folder, last)) {
        return GLOB_NOMATCH;
    }
    WIN32_FIND_DATAW data;
    HANDLE search = FindFirstFileW(wide, &data);
    if (search == INVALID_HANDLE_VALUE) {
        return GLOB_NOMATCH;
    }
    int status = 0;
    do {
        status = windows_glob_found(found, pattern, folder, last, &data);
    } while (status == 0 && FindNextFileW(search, &data));
    FindClose(search);
    if (status != 0) {
        globfree(found);
    }
    return status != 0 ? status : found->gl_pathc == 0 ? GLOB_NOMATCH : 0;
}

#define glob(pattern, flags, error, found) ((void)(flags), windows_glob(pattern, found))

#endif
