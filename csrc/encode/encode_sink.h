/*
Where an encoder writes ids. Internal.

To emit a unit's ids, the code stores as many ids as a slot of the cache can hold and advances by their actual number.
The next unit overwrites the excess. Since each byte gives at most one token, there is room for the excess except at the
very end.
*/
#ifndef PYBPE_ENCODE_SINK_H
#define PYBPE_ENCODE_SINK_H

#include "encode/encode_cache.h"

/* Where ids are written, and how many have been written. */
typedef struct id_sink {
    void *ids; /* NULL: only count */
    int id_bytes;
    size_t roomy; /* while `count` is below this, there is room for all ids that a slot can hold */
    size_t count;
    uint32_t too_large; /* an id that did not fit 16 bits, or 0 */
} id_sink;

INLINE_ALWAYS void sink_put_one(id_sink *sink, size_t at, uint32_t id, int id_bytes) {
    if (id_bytes == 4) {
        ((uint32_t *)sink->ids)[at] = id;
    } else {
        sink->too_large = id > UINT16_MAX ? id : sink->too_large;
        ((uint16_t *)sink->ids)[at] = (uint16_t)id;
    }
}

/* Emits any ids, one at a time. */
static inline void sink_put(id_sink *sink, const uint32_t *ids, size_t count) {
    for (size_t i = 0; sink->ids != NULL && i < count; i++) {
        sink_put_one(sink, sink->count + i, ids[i], sink->id_bytes);
    }
    sink->count += count;
}

/* Emits many ids. */
static inline void sink_put_many(id_sink *sink, const uint32_t *ids, size_t count) {
    uint32_t any = 0; /* the bits of all ids */
    if (sink->ids != NULL && sink->id_bytes == 4) {
        memcpy((uint32_t *)sink->ids + sink->count, ids, count * sizeof *ids);
    } else if (sink->ids != NULL) {
        uint16_t *to = (uint16_t *)sink->ids + sink->count;
        for (size_t i = 0; i < count; i++) {
            any |= ids[i];
            to[i] = (uint16_t)ids[i];
        }
    }
    if (any > UINT16_MAX) {
        sink_put(sink, ids, count); /* finds one that is too large */
    } else {
        sink->count += count;
    }
}

/* Emits the ids of a slot. There are `count` of them. `narrow` and `id_bytes` are constants in the loops over units. */
INLINE_ALWAYS void sink_put_slot(id_sink *sink, const cache_slot *s, size_t count, bool narrow, int id_bytes) {
    const bool roomy = PYBPE_LIKELY(sink->count < sink->roomy);
    if (id_bytes == 2 && narrow && roomy) {
        memcpy((uint16_t *)sink->ids + sink->count, s->ids.narrow, sizeof s->ids.narrow);
    } else if (id_bytes == 4 && !narrow && roomy) {
        memcpy((uint32_t *)sink->ids + sink->count, s->ids.wide, sizeof s->ids.wide);
    } else if (id_bytes == 4 && narrow && roomy) {
        uint32_t *to = (uint32_t *)sink->ids + sink->count;
        for (size_t i = 0; i < CACHE_NARROW_IDS; i++) {
            to[i] = s->ids.narrow[i];
        }
    } else if (id_bytes != 0) {
        for (size_t i = 0; i < count; i++) {
            sink_put_one(sink, sink->count + i, narrow ? s->ids.narrow[i] : s->ids.wide[i], id_bytes);
        }
    }
    sink->count += count;
}

#endif
