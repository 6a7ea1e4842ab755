/*
A drop-in replacement for llm.c's llmc/dataloader.h that uses the pybpe library: DataLoader for token shards, and
EvalLoader for multiple-choice files such as HellaSwag's.

It has the same functions and struct fields (except FILE *tokens_file, which is `shard` here, and the type of buffer),
and returns the same batches. The differences:
- Any file is safe: if a file is faulty, the program prints one line that says what is wrong, and exits. This does not
  depend on assert, which NDEBUG turns off.
- Shards may be larger than 2 GiB, or have uint32 tokens, as for Llama 3.
- dataloader_resume can restore the permutations itself. llm.c's version needs a caller that restores them, as
  load_state in train_gpt2.cu does. If load_state is the caller, both versions return the same batches as an
  uninterrupted run, and both need shards with equal numbers of samples, which load_state asserts.
- Files are read at offsets, not mapped into memory, because truncating a mapped shard would kill the program with
  SIGBUS.
- If there are no examples left for a process, its EvalLoader has an empty range. llm.c's version reads past the end of
  the file.
- All functions are static inline, so several C or C++ files of a program can include this header.

Link with libpybpe.a, and add the folder of pybpe.h to the include path.
*/
#ifndef DATALOADER_H
#define DATALOADER_H

#include "fault.h"
#include "pybpe.h"
#include "rand.h"

#include <assert.h> /* llm.c's sources expect this header to include it */
#include <glob.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HEADER_SIZE 256

/* ---------------------------------------------------------------------------------------------------
DataLoader. csrc/llmc/loader.c explains how shards are divided into samples.
*/

typedef struct {
    int process_rank;
    int num_processes;
    size_t B;
    size_t T;
    size_t num_tokens;        /* in all shards */
    size_t shard_num_samples; /* in the current shard, per process. The length of intra_shard_indices */
    glob_t glob_result;
    size_t current_shard_idx;
    size_t current_sample_idx;
    pybpe_shard *shard; /* the current one */
    uint32_t *buffer;   /* B * T + 1 tokens */
    int *inputs;
    int *targets;
    mt19937_state shuffle_rng;
    int should_shuffle;
    int *shard_indices;
    int *intra_shard_indices;
    size_t total_batch_size_bytes;
    size_t local_batch_offset_bytes;
    size_t header_bytes;
    int64_t file_size_bytes;
    mt19937_state left_rng_;  /* shuffle_rng as this loader left it. If it is different now, the caller restored it */
    mt19937_state epoch_rng_; /* shuffle_rng before the permutations within this epoch's shards were drawn */
    int epoch_known_;         /* whether epoch_rng_ is known: not after a restore in the middle of an epoch */
} DataLoader;

static inline const char *dataloader_shard_name_(const DataLoader *loader, size_t shard_index) {
    return loader->glob_result.gl_pathv[shard_index];
}

/* The number of tokens of one sample, for all processes. dataloader_init has checked that it is at most INT_MAX. */
static inline size_t dataloader_sample_tokens_(const DataLoader *loader) {
    return (size_t)loader->num_processes * loader->B * loader->T;
}

/* Opens the shard at a position in the order and returns its number of tokens. */
static inline int64_t dataloader_load_shard_(DataLoader *loader, int shard_index) {
    pybpe_error err;
    pybpe_shard *shard;
    size_t count = loader->glob_result.gl_pathc;
    if (loader->should_shuffle && shard_index >= 0 && (size_t)shard_index < count) {
        shard_index = loader->shard_indices[shard_index];
    }
    if (shard_index < 0 || (size_t)shard_index >= count) {
        llmc_fail("dataloader", "the shard index is not below the number of shards");
    }
    const char *filename = dataloader_shard_name_(loader, (size_t)shard_index);
    if (pybpe_shard_open(&shard, filename, NULL, &err) != PYBPE_OK) {
        llmc_fail_message(err.msg);
    }
    pybpe_shard_free(loader->shard);
    loader->shard = shard;
    size_t id_bytes = (size_t)pybpe_shard_id_bytes(shard);
    uint64_t tokens = pybpe_shard_count(shard);
    if (tokens < dataloader_sample_tokens_(loader) + 1) {
        llmc_fail(filename, "needs at least num_processes * B * T + 1 tokens; lower B or T, or write larger shards");
    }
    loader->shard_num_samples = (size_t)(tokens - 1) / dataloader_sample_tokens_(loader);
    loader->total_batch_size_bytes = dataloader_sample_tokens_(loader) * id_bytes;
    loader->local_batch_offset_bytes = (size_t)loader->process_rank * loader->B * loader->T * id_bytes;
    loader->file_size_bytes = (int64_t)(loader->header_bytes + tokens * id_bytes);
    return (int64_t)tokens;
}

static inline void prepare_intra_shard_indices_(DataLoader *loader) {
    free(loader->intra_shard_indices);
    loader->intra_shard_indices = (int *)llmc_alloc(loader->shard_num_samples, sizeof(int));
    init_identity_permutation(loader->intra_shard_indices, (int)loader->shard_num_samples);
    random_permutation(loader->intra_shard_indices, (int)loader->shard_num_samples, &loader->shuffle_rng);
    loader->left_rng_ = loader->shuffle_rng;
}

static inline void dataloader_enter_shard_(DataLoader *loader, size_t shard_index) {
    loader->current_shard_idx = shard_index;
    loader->current_sample_idx = 0;
    dataloader_load_shard_(loader, (int)shard_index);
    if (loader->should_shuffle) {
        prepare_intra_shard_indices_(loader);
    }
}

static inline void dataloader_reset(DataLoader *loader) {
    if (loader->should_shuffle) {
        random_permutation(loader->shard_indices, (int)loader->glob_result.gl_pathc, &loader->shuffle_rng);
        loader->epoch_rng_ = loader->shuffle_rng;
        loader->epoch_known_ = 1;
    }
    dataloader_enter_shard_(loader, 0);
}

static inline void dataloader_advance_(DataLoader *loader) {
    if (loader->current_shard_idx + 1 >= loader->glob_result.gl_pathc) {
        dataloader_reset(loader);
    } else {
        dataloader_enter_shard_(loader, loader->current_shard_idx + 1);
    }
}

static inline int dataloader_compare_names_(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Finds the shards, and sorts their names by bytes, regardless of the program's locale. */
static inline void dataloader_find_shards_(DataLoader *loader, const char *filename_pattern) {
    if (glob(filename_pattern, GLOB_NOSORT, NULL, &loader->glob_result) != 0) {
        llmc_fail(filename_pattern, "no shard matches this pattern");
    }
    if (loader->glob_result.gl_pathc > INT_MAX) {
        llmc_fail(filename_pattern, "the pattern matches too many shards");
    }
    qsort(loader->glob_result.gl_pathv, loader->glob_result.gl_pathc, sizeof(char *), dataloader_compare_names_);
}

static inline void dataloader_check_arguments_(size_t B, size_t T, int process_rank, int num_processes) {
    const size_t most = INT_MAX;
    if (process_rank < 0 || process_rank >= num_processes) {
        llmc_fail("dataloader", "process_rank must be from 0 to below num_processes");
    }
    if (B < 1 || T < 1 || B > most / T || B * T > most / (size_t)num_processes) {
        llmc_fail("dataloader", "B and T must be at least 1, and num_processes * B * T below 2^31");
    }
}

static inline void dataloader_init(DataLoader *loader, const char *filename_pattern, size_t B, size_t T,
                                   int process_rank, int num_processes, int should_shuffle) {
    dataloader_check_arguments_(B, T, process_rank, num_processes);
    memset(loader, 0, sizeof *loader);
    loader->process_rank = process_rank;
    loader->num_processes = num_processes;
    loader->B = B;
    loader->T = T;
    loader->should_shuffle = should_shuffle;
    loader->header_bytes = PYBPE_SHARD_HEADER_BYTES;
    dataloader_find_shards_(loader, filename_pattern);
    loader->shard_indices = (int *)llmc_alloc(loader->glob_result.gl_pathc, sizeof(int));
    init_identity_permutation(loader->shard_indices, (int)loader->glob_result.gl_pathc);
    manual_seed(&loader->shuffle_rng, 42u + (unsigned int)process_rank);
    for (int i = 0; i < (int)loader->glob_result.gl_pathc; i++) {
        loader->num_tokens += (size_t)dataloader_load_shard_(loader, i);
    }
    loader->buffer = (uint32_t *)llmc_alloc(B * T + 1, sizeof(uint32_t));
    loader->inputs = (int *)llmc_alloc(B * T, sizeof(int));
    loader->targets = (int *)llmc_alloc(B * T, sizeof(int));
    dataloader_reset(loader);
}

static inline void dataloader_load_batch(DataLoader *loader) {
    pybpe_error err;
    size_t tokens = loader->B * loader->T;
    size_t index = loader->current_sample_idx;
    if (index >= loader->shard_num_samples) {
        llmc_fail("dataloader_load_batch", "the shard has no more samples");
    }
    if (loader->should_shuffle) {
        index = (size_t)loader->intra_shard_indices[index];
    }
    uint64_t start = (uint64_t)index * dataloader_sample_tokens_(loader) + (uint64_t)loader->process_rank * tokens;
    if (pybpe_shard_read(loader->shard, start, tokens + 1, loader->buffer, &err) != PYBPE_OK) {
        llmc_fail_message(err.msg);
    }
    for (size_t i = 0; i <= tokens; i++) {
        if (loader->buffer[i] > INT_MAX) {
            llmc_fail("dataloader", "a token of the shard does not fit in an int");
        }
    }
    llmc_state.batches += 1;
    for (size_t i = 0; i < tokens; i++) {
        loader->inputs[i] = (int)loader->buffer[i];
        loader->targets[i] = (int)loader->buffer[i + 1];
    }
}

static inline void dataloader_next_batch(DataLoader *loader) {
    if (loader->current_sample_idx >= loader->shard_num_samples) {
        dataloader_advance_(loader);
    }
    dataloader_load_batch(loader);
    loader->current_sample_idx += 1;
}

static inline void dataloader_check_order_(const int *indices, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (indices == NULL || indices[i] < 0 || (size_t)indices[i] >= n) {
            llmc_fail("dataloader_resume", "the restored permutation does not belong to these shards");
        }
    }
}

/* Checks the permutations that the caller has restored, and continues with them. */
static inline void dataloader_use_restored_(DataLoader *loader, size_t shard_index) {
    size_t samples = loader->shard_num_samples;
    dataloader_check_order_(loader->shard_indices, loader->glob_result.gl_pathc);
    dataloader_check_order_(loader->intra_shard_indices, samples);
    dataloader_load_shard_(loader, (int)shard_index);
    if (loader->shard_num_samples != samples) {
        llmc_fail("dataloader_resume",
                  "the restored permutation belongs to a shard with a different number of samples");
    }
    loader->left_rng_ = loader->shuffle_rng;
    loader->epoch_known_ = 0;
}

/* Continues from a position in a shard. With shuffling there are two cases:
   - The caller has restored shuffle_rng and both permutations, as load_state of train_gpt2.cu does. This function uses
     them; intra_shard_indices must have shard_num_samples entries.
   - The caller has restored nothing, or the loader's own state. The position is then in the loader's current epoch,
     which is the first one after dataloader_init. This function draws the permutations of this epoch's shards again, up
     to the shard of the position. */
static inline void dataloader_resume(DataLoader *loader, size_t current_shard_idx, size_t current_sample_idx) {
    if (current_shard_idx >= loader->glob_result.gl_pathc) {
        llmc_fail("dataloader_resume", "the shard index is not below the number of shards");
    }
    if (!loader->should_shuffle) {
        dataloader_load_shard_(loader, (int)current_shard_idx);
    } else if (memcmp(&loader->shuffle_rng, &loader->left_rng_, sizeof loader->left_rng_) != 0 ||
               !loader->epoch_known_) {
        dataloader_use_restored_(loader, current_shard_idx);
    } else {
        dataloader_check_order_(loader->shard_indices, loader->glob_result.gl_pathc);
        loader->shuffle_rng = loader->epoch_rng_;
        for (size_t i = 0; i <= current_shard_idx; i++) {
            dataloader_enter_shard_(loader, i);
        }
    }
    loader->current_shard_idx = current_shard_idx;
    loader->current_sample_idx = current_sample_idx;
}

static inline void dataloader_free(DataLoader *loader) {
    free(loader->buffer);
    free(loader->inputs);
    free(loader->targets);
    free(loader->shard_indices);
    free(loader->intra_shard_indices);
    pybpe_shard_free(loader->shard);
    globfree(&loader->glob_result);
}

/* ---------------------------------------------------------------------------------------------------
EvalLoader. A file has a header of 256 int32 (20240522, 1, the number of examples, the bytes of the longest one) and
then the examples as uint16:

    65535, bytes of the example, its index, label 0-3, 4, n, the n tokens of the context,
    and for each of the 4 completions: n, its n tokens

In a batch, an example takes 4 rows, one per completion. A row contains the context and the completion. `mask` is 1
at every position whose target is a token of the completion.
*/

#define ASSUMED_NUM_COMPLETIONS 4
/* Spaced exactly as in llm.c's cuda_common.h, which defines it again. */
/* clang-format off */
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
/* clang-format on */

typedef struct {
    int process_rank;
    int num_processes;
    size_t B;
    size_t T;
    FILE *eval_file;
    uint16_t *buffer; /* an example without its first 3 fields. Large enough for the longest possible example */
    int num_examples;
    int num_batches;
    int start_example_index; /* the first example of this process */
    int end_example_index;   /* one past the last example of this process */
    int current_example_index;
    int *inputs;
    int *targets;
    char *mask;
    int *label;
    int num_completions;
    char *filename_; /* for messages */
} EvalLoader;

static inline void evalloader_fail_(const EvalLoader *loader, const char *message) {
    char where[512];
    snprintf(where, sizeof where, "%s: example %d", loader->filename_, loader->current_example_index);
    llmc_fail(where, message);
}

static inline void evalloader_read_(EvalLoader *loader, void *to, size_t bytes) {
    if (fread(to, 1, bytes, loader->eval_file) != bytes) {
        evalloader_fail_(loader, "the file ends too early or cannot be read");
    }
}

/* Reads little-endian numbers on any machine. */
static inline void evalloader_read_u16_(EvalLoader *loader, uint16_t *to, size_t count) {
    evalloader_read_(loader, to, count * sizeof *to);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes = (const uint8_t *)(to + i);
        to[i] = (uint16_t)(bytes[0] | bytes[1] << 8);
    }
}

/* Reads the first fields of the current example and returns how many bytes follow them. */
static inline size_t evalloader_begin_example_(EvalLoader *loader) {
    uint16_t fields[3];
    evalloader_read_u16_(loader, fields, 3);
    if (fields[0] != 65535) {
        evalloader_fail_(loader, "does not start with 65535");
    }
    if (fields[1] <= sizeof fields || fields[1] % 2 != 0) {
        evalloader_fail_(loader, "has an impossible length");
    }
    if (fields[2] != loader->current_example_index) {
        evalloader_fail_(loader, "has a wrong index");
    }
    return fields[1] - sizeof fields;
}

static inline int evalloader_examples_per_batch_(const EvalLoader *loader) {
    return (int)(loader->B / ASSUMED_NUM_COMPLETIONS);
}

static inline void evalloader_reset(EvalLoader *loader) {
    if (evalloader_examples_per_batch_(loader) == 0) {
        llmc_fail("evalloader",
                  "the batch size must be at least 4; disable HellaSwag eval with -h 0, or raise it with -b");
    }
    int64_t examples = loader->num_examples;
    int64_t each = CEIL_DIV(examples, loader->num_processes);
    int64_t start = each * loader->process_rank;
    int64_t end = start + each;
    loader->num_batches = (int)CEIL_DIV(each, evalloader_examples_per_batch_(loader));
    loader->start_example_index = (int)(start < examples ? start : examples);
    loader->end_example_index = (int)(end < examples ? end : examples);
    loader->current_example_index = 0;
    int failed = fseek(loader->eval_file, (long)(HEADER_SIZE * sizeof(int32_t)), SEEK_SET);
    while (!failed && loader->current_example_index < loader->start_example_index) {
        failed = fseek(loader->eval_file, (long)evalloader_begin_example_(loader), SEEK_CUR);
        loader->current_example_index += 1;
    }
    if (failed) {
        evalloader_fail_(loader, "cannot seek in this file");
    }
}

static inline void evalloader_check_header_(EvalLoader *loader) {
    uint16_t halves[2 * HEADER_SIZE];
    int32_t header[4];
    evalloader_read_u16_(loader, halves, 2 * HEADER_SIZE);
    for (size_t i = 0; i < 4; i++) {
        header[i] = (int32_t)(halves[2 * i] | (uint32_t)halves[2 * i + 1] << 16);
    }
    if (header[0] != 20240522) {
        llmc_fail(loader->filename_, "not an eval file: the magic is not 20240522");
    }
    if (header[1] != 1) {
        llmc_fail(loader->filename_, "the version is not 1");
    }
    if (header[2] < loader->num_processes) {
        llmc_fail(loader->filename_, "the file has fewer examples than there are processes");
    }
    if (header[3] <= 0 || (size_t)header[3] >= (1 + ASSUMED_NUM_COMPLETIONS) * loader->T * sizeof(uint16_t)) {
        llmc_fail(loader->filename_, "the longest example does not fit in the sequence length T");
    }
    loader->num_examples = header[2];
}

static inline void evalloader_init(EvalLoader *loader, const char *filename, size_t B, size_t T, int process_rank,
                                   int num_processes) {
    dataloader_check_arguments_(B, T, process_rank, num_processes);
    memset(loader, 0, sizeof *loader);
    loader->process_rank = process_rank;
    loader->num_processes = num_processes;
    loader->B = B;
    loader->T = T;
    size_t room = strlen(filename) + 1;
    loader->filename_ = (char *)llmc_alloc(room, 1);
    memcpy(loader->filename_, filename, room);
    loader->eval_file = fopen(filename, "rb");
    if (loader->eval_file == NULL) {
        llmc_fail(filename, "cannot be opened");
    }
    evalloader_check_header_(loader);
    loader->buffer = (uint16_t *)llmc_alloc(32768, sizeof(uint16_t));
    loader->inputs = (int *)llmc_alloc(B * T, sizeof(int));
    loader->targets = (int *)llmc_alloc(B * T, sizeof(int));
    loader->mask = (char *)llmc_alloc(B * T, 1);
    loader->label = (int *)llmc_alloc(B / ASSUMED_NUM_COMPLETIONS, sizeof(int));
    evalloader_reset(loader);
}

/* Reads a count, and that many tokens, from buffer[*at..n). Returns a pointer to the tokens. */
static inline const uint16_t *evalloader_take_(EvalLoader *loader, size_t *at, size_t n, size_t *count) {
    *count = *at < n ? loader->buffer[*at] : 0;
    if (*count < 1 || *count > n - *at - 1) {
        evalloader_fail_(loader, "a context or completion is empty or extends past the end of the example");
    }
    const uint16_t *tokens = loader->buffer + *at + 1;
    *at += 1 + *count;
    return tokens;
}

/* Loads the current example into the example_batch_index-th group of rows. */
static inline void evalloader_next_example_(EvalLoader *loader, int example_batch_index) {
    size_t T = loader->T;
    size_t bytes = evalloader_begin_example_(loader);
    size_t n = bytes / sizeof(uint16_t);
    size_t at = 2;
    size_t context_length;
    evalloader_read_u16_(loader, loader->buffer, n);
    if (n < 2 || loader->buffer[0] >= ASSUMED_NUM_COMPLETIONS || loader->buffer[1] != ASSUMED_NUM_COMPLETIONS) {
        evalloader_fail_(loader, "must have a label from 0 to 3 and exactly 4 completions");
    }
    loader->label[example_batch_index] = loader->buffer[0];
    loader->num_completions = ASSUMED_NUM_COMPLETIONS;
    const uint16_t *context = evalloader_take_(loader, &at, n, &context_length);
    for (int c = 0; c < ASSUMED_NUM_COMPLETIONS; c++) {
        size_t length;
        const uint16_t *completion = evalloader_take_(loader, &at, n, &length);
        size_t row = ((size_t)example_batch_index * ASSUMED_NUM_COMPLETIONS + (size_t)c) * T;
        if (context_length + length >= T) {
            evalloader_fail_(loader, "a context and its completion do not fit in the sequence length T");
        }
        for (size_t i = 0; i < context_length; i++) {
            loader->inputs[row + i] = context[i];
        }
        for (size_t i = 0; i < length; i++) {
            loader->inputs[row + context_length + i] = completion[i];
            loader->targets[row + context_length + i - 1] = completion[i];
            loader->mask[row + context_length + i - 1] = 1;
        }
    }
    loader->current_example_index += 1;
}

static inline void evalloader_next_batch(EvalLoader *loader) {
    memset(loader->mask, 0, loader->B * loader->T);
    for (int i = 0; i < evalloader_examples_per_batch_(loader); i++) {
        if (loader->current_example_index >= loader->end_example_index) {
            break;
        }
        evalloader_next_example_(loader, i);
    }
}

/* Returns the mean loss of a row's completion and sets *active, or returns 0 if the row does not have a completion. */
static inline float evalloader_row_loss_(const EvalLoader *loader, const float *losses, size_t row, int *active) {
    float sum = 0.0f;
    int count = 0;
    for (size_t t = 0; t < loader->T; t++) {
        if (loader->mask[row * loader->T + t] == 1) {
            sum += losses[row * loader->T + t];
            count++;
        }
    }
    *active |= count > 0;
    return count > 0 ? sum / (float)count : 0.0f;
}

/* Returns for how many examples of this batch the correct completion has the lowest mean loss. The losses are (B, T). */
static inline int evalloader_stat_losses(EvalLoader *loader, float *losses) {
    int correct = 0;
    for (int i = 0; i < evalloader_examples_per_batch_(loader); i++) {
        float lowest = 0.0f;
        int best = -1, active = 0;
        for (int c = 0; c < ASSUMED_NUM_COMPLETIONS; c++) {
            size_t row = (size_t)i * ASSUMED_NUM_COMPLETIONS + (size_t)c;
            float loss = evalloader_row_loss_(loader, losses, row, &active);
            if (c == 0 || loss < lowest) {
                lowest = loss;
                best = c;
            }
        }
        correct += active && best == loader->label[i];
    }
    return correct;
}

static inline void evalloader_free(EvalLoader *loader) {
    free(loader->buffer);
    free(loader->inputs);
    free(loader->targets);
    free(loader->mask);
    free(loader->label);
    free(loader->filename_);
    fclose(loader->eval_file);
}

#endif
