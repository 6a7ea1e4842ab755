/*
Characters: the tables of unicode.h, which unicode_generate.py generates, and whether a text is UTF-8.
*/
#include "unicode/unicode.h"

#include "unicode/unicode_data.h"

const char *pybpe_unicode_version(void) { return UNICODE_VERSION; }

int pybpe_unicode_class(uint32_t code_point) { return code_point <= 0x10FFFF ? unicode_class(code_point) : 0; }

/* ASCII is passed 8 bytes at a time, and most characters of three bytes, such as Chinese ones, with one comparison. */
size_t pybpe_utf8_valid(const uint8_t *text, size_t n) {
    for (size_t at = 0; at < n;) {
        uint8_t length = 1;
        if (n - at >= 8 && (load_u64(text + at) & EACH_BYTE(0x80)) == 0) {
            length = 8;
        } else if (n - at >= 4 && (load_u32(text + at) & 0xC0C0F0) == 0x8080E0 && text[at] != 0xE0 &&
                   text[at] != 0xED) {
            length = 3;
        } else if (text[at] >= 0x80 && unicode_read_multibyte(text + at, n - at, &length) == UNICODE_INVALID) {
            return at;
        }
        at += length;
    }
    return n;
}

bool unicode_begins(const uint8_t *bytes, size_t n) {
    for (unsigned filler = 0x80; filler <= 0xBF; filler += 0x3F) {
        uint8_t full[UNICODE_MAX] = {(uint8_t)filler, (uint8_t)filler, (uint8_t)filler, (uint8_t)filler};
        memcpy(full, bytes, n);
        const unicode_char c = unicode_decode(full, UNICODE_MAX, 0);
        if (c.valid && c.length > n) {
            return true;
        }
    }
    return false;
}

/* Only a lead byte among the last three, followed by nothing but continuation bytes, can begin a character that is not
   complete. */
size_t pybpe_utf8_complete(const uint8_t *bytes, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        if (!byte_is_continuation(bytes[n - back])) {
            return unicode_begins(bytes + n - back, back) ? n - back : n;
        }
    }
    return n;
}
