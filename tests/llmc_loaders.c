/*
llm.c's own loaders (llmc/dataloader.h), as its CUDA trainer uses them: for llmc_verdicts.py, which compiles this file
with -I path/to/llm.c.

    llmc_loaders shards PATTERN B T PROCESSES    each process goes through all shards once
    llmc_loaders evals FILE B T PROCESSES        each process goes through its examples
*/
#include "llmc/dataloader.h"

static void go_through(DataLoader *loader) {
    size_t last = loader->glob_result.gl_pathc - 1;
    dataloader_next_batch(loader);
    while (loader->current_shard_idx < last || loader->current_sample_idx < loader->shard_num_samples) {
        dataloader_next_batch(loader);
    }
}

static void shards(const char *pattern, size_t B, size_t T, int processes) {
    for (int rank = 0; rank < processes; rank++) {
        DataLoader loader;
        dataloader_init(&loader, pattern, B, T, rank, processes, 0);
        go_through(&loader);
        dataloader_free(&loader);
    }
}

static void evals(const char *path, size_t B, size_t T, int processes) {
    for (int rank = 0; rank < processes; rank++) {
        EvalLoader loader;
        evalloader_init(&loader, path, B, T, rank, processes);
        for (int i = 0; i < loader.num_batches; i++) {
            evalloader_next_batch(&loader);
        }
        evalloader_free(&loader);
    }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        return 2;
    }
    size_t B = (size_t)atoi(argv[3]), T = (size_t)atoi(argv[4]);
    if (strcmp(argv[1], "evals") == 0) {
        evals(argv[2], B, T, atoi(argv[5]));
    } else {
        shards(argv[2], B, T, atoi(argv[5]));
    }
    return 0;
}
