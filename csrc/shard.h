/*
Token shards, for loader.c. Internal; the rest is public.
*/
#ifndef PYBPE_SHARD_H
#define PYBPE_SHARD_H

#include "base.h"

/* The file's name, owned by s. */
const char *shard_path(const pybpe_shard *s);

#endif
