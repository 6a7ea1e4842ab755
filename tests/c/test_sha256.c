/*
sha256.h against the examples of FIPS 180-4 and RFC 6234, and pieces against the whole.
*/
#include "check.h"
#include "sha256.h"

static int hashes_to(const char *text, size_t n, size_t piece, const char *expected) {
    sha256 h;
    char hex[65];
    sha256_start(&h);
    for (size_t at = 0; at < n; at += piece) {
        sha256_add(&h, (const uint8_t *)text + at, n - at < piece ? n - at : piece);
    }
    sha256_finish(&h, hex);
    return strcmp(hex, expected) == 0;
}

int main(void) {
    static char a[1000000];
    const char *two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    memset(a, 'a', sizeof a);
    CHECK(hashes_to("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    CHECK(hashes_to("abc", 3, 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    CHECK(hashes_to(two_blocks, 56, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
    for (size_t piece = 1; piece < 200; piece += 9) {
        CHECK(hashes_to(a, sizeof a, piece, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
    }
    return check_report("test_sha256");
}
