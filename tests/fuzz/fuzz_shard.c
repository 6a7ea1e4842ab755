/*
A shard from hostile bytes: an explained error, or exactly the tokens in the file.
*/
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pybpe_shard *s = NULL;
    pybpe_error err;
    int code = pybpe_shard_open_mem(&s, data, size, NULL, &err);
    if (code != PYBPE_OK) {
        REQUIRE(s == NULL);
        fuzz_expect_error(code, &err);
        return 0;
    }
    uint64_t count = pybpe_shard_count(s);
    size_t id_bytes = (size_t)pybpe_shard_id_bytes(s);
    REQUIRE(count * id_bytes + PYBPE_SHARD_HEADER_BYTES == size);
    uint32_t ids[64];
    for (uint64_t start = 0; start < count; start += 64) {
        size_t n = count - start < 64 ? (size_t)(count - start) : 64;
        REQUIRE(pybpe_shard_read(s, start, n, ids, &err) == PYBPE_OK);
        for (size_t i = 0; i < n; i++) {
            const uint8_t *at = data + PYBPE_SHARD_HEADER_BYTES + (start + i) * id_bytes;
            uint32_t want = at[0] | (uint32_t)at[1] << 8;
            want |= id_bytes == 4 ? (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24 : 0;
            REQUIRE(ids[i] == want);
        }
    }
    REQUIRE(pybpe_shard_read(s, count, 1, ids, &err) == PYBPE_ERR_VALUE);
    REQUIRE(pybpe_shard_read(s, UINT64_MAX, 1, ids, &err) == PYBPE_ERR_VALUE);
    REQUIRE(pybpe_shard_read(s, count, 0, ids, &err) == PYBPE_OK);
    pybpe_shard_free(s);
    return 0;
}
