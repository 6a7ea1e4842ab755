/*
Trains a GPT-2 on token files with llm.c's CPU code, which is included as it is. llm.c's own main() is a demonstration
of 41 steps that saves nothing. This one trains until the text is learned:

- it reads all shards that a pattern matches, shuffled;
- the learning rate warms up and then falls along a cosine, and gradients are clipped;
- it keeps the model with the lowest validation loss, in llm.c's format (version 3), which write.c and
  `pybpe llmc checkpoint convert` read;
- you can stop it at any time: the same command continues from the last validation.

Compile it with -DTESTING, which leaves out llm.c's main(). The Makefile next to the data does so.
*/
#include "train_gpt2.c"
#include "generate.h"

// A file is written under another name, then renamed, so a kill leaves the complete old file or the complete new one.
FILE* begin_file(const char* path, char temporary[4096]) {
    snprintf(temporary, 4096, "%.4000s.tmp", path);
    return fopenCheck(temporary, "wb");
}

void end_file(FILE* file, const char* temporary, const char* path) {
    int failed = fflush(file) != 0 || fsync(fileno(file)) != 0;
    fcloseCheck(file);
    if (failed || rename(temporary, path) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

void save_model(GPT2* model, const char* path) {
    char temporary[4096];
    GPT2Config c = model->config;
    int header[256] = {20240326,     3,           c.max_seq_len, c.vocab_size,
                       c.num_layers, c.num_heads, c.channels,    c.padded_vocab_size};
    FILE* file = begin_file(path, temporary);
    fwriteCheck(header, sizeof(int), 256, file);
    fwriteCheck(model->params_memory, sizeof(float), model->num_parameters, file);
    end_file(file, temporary, path);
}

// Writes or reads everything that the next step depends on, except the place in the data, which main() finds again by
// counting batches. `io` is fwrite_check or fread_check, so both directions agree on the order.
typedef void (*io_fn)(void* ptr, size_t size, size_t count, FILE* file, const char* source, int line);

void state_io(io_fn io, FILE* file, GPT2* model, DataLoader* data, int* step, float* best) {
    size_t n = model->num_parameters, kind[5] = {20261128, n, data->num_tokens, data->B, data->T}, expected[5];
    memcpy(expected, kind, sizeof(kind));
    io(kind, sizeof(size_t), 5, file, __FILE__, __LINE__);
    if (memcmp(kind, expected, sizeof(kind)) != 0) {
        fprintf(stderr, "Error: the saved state belongs to another model, batch or data\n");
        fprintf(stderr, "---> HINT: use the same -b, -t, -e and -i, or remove the .state file to begin again\n");
        exit(EXIT_FAILURE);
    }
    io(step, sizeof(int), 1, file, __FILE__, __LINE__);
    io(best, sizeof(float), 1, file, __FILE__, __LINE__);
    io(model->params_memory, sizeof(float), n, file, __FILE__, __LINE__);
    io(model->m_memory, sizeof(float), n, file, __FILE__, __LINE__);
    io(model->v_memory, sizeof(float), n, file, __FILE__, __LINE__);
}

// Warms up in a twentieth of the steps, then falls along half a cosine to a tenth.
float learning_rate(float highest, int step, int steps) {
    int warmup = steps / 20;
    if (step < warmup) { return highest * (step + 1) / warmup; }
    return highest * (0.55f + 0.45f * cosf(3.14159265f * (step - warmup) / (steps - warmup)));
}

// Scales the gradients so that all together have a norm of at most 1: one odd batch cannot spoil the model.
void clip_gradients(GPT2* model) {
    double sum = 0.0;
    for (size_t i = 0; i < model->num_parameters; i++) { sum += model->grads_memory[i] * model->grads_memory[i]; }
    float scale = sum > 1.0 ? 1.0 / sqrt(sum) : 1.0f;
    for (size_t i = 0; i < model->num_parameters && scale < 1.0f; i++) { model->grads_memory[i] *= scale; }
}

float validate(GPT2* model, DataLoader* data, int batches) {
    float loss = 0.0f;
    dataloader_reset(data);
    for (int i = 0; i < batches; i++) {
        dataloader_next_batch(data);
        gpt2_forward(model, data->inputs, data->targets, data->B, data->T);
        loss += model->mean_loss;
    }
    return loss / batches;
}

int main(int argc, char** argv) {
    char *train_pattern = "data/corpus_train_*.bin", *val_pattern = "data/corpus_val_*.bin", *out = "trained.bin";
    char *model_path = "gpt2_124M.bin", *tokenizer_path = "gpt2_tokenizer.bin", state[4096], temporary[4096];
    int B = 0, T = 0, steps = 1000, every = 100, sample_every = 200, val_batches = 20;
    float highest_rate = 1e-3f, weight_decay = 0.1f;
    Option options[] = {{'i', 's', &train_pattern, "the shards to train on (data/corpus_train_*.bin)"},
                        {'j', 's', &val_pattern, "the shards to validate on (data/corpus_val_*.bin)"},
                        {'k', 's', &tokenizer_path, "the tokenizer (gpt2_tokenizer.bin)"},
                        {'e', 's', &model_path, "the model to start from (gpt2_124M.bin)"},
                        {'o', 's', &out, "where the trained model goes; OUT.state is for going on (trained.bin)"},
                        {'b', 'i', &B, "batch size (as many as give 1024 tokens a step)"},
                        {'t', 'i', &T, "sequence length (the model's, since it learns only the positions that it sees)"},
                        {'x', 'i', &steps, "steps (1000; make train sets them by STEPS)"},
                        {'l', 'f', &highest_rate, "highest learning rate (0.001)"},
                        {'c', 'f', &weight_decay, "weight decay (0.1)"},
                        {'v', 'i', &every, "validate and save each time after this many steps (100)"},
                        {'m', 'i', &val_batches, "batches of a validation (20)"},
                        {'s', 'i', &sample_every, "write a sample each time after this many steps; 0 for none (200)"},
                        {0}};
    parse_options(options, argc, argv);
    GPT2 model;
    Tokenizer tokenizer;
    open_model(&model, &tokenizer, model_path, tokenizer_path);
    T = T == 0 ? model.config.max_seq_len : T;
    B = B == 0 ? (T < 1024 ? 1024 / T : 1) : B;
    if (B < 1 || T < 1 || T > model.config.max_seq_len || steps < 1 || every < 1) {
        fprintf(stderr, "Error: -b, -x and -v must be at least 1, and -t at most %d\n", model.config.max_seq_len);
        exit(EXIT_FAILURE);
    }
    DataLoader train, val;
    dataloader_init(&train, train_pattern, B, T, 0, 1, 1);
    dataloader_init(&val, val_pattern, B, T, 0, 1, 0);
    int epoch = train.num_tokens / (B * T), most = val.num_tokens / (B * T); // in batches
    val_batches = val_batches < 1 ? 1 : val_batches < most ? val_batches : most;
    printf("train tokens: %zu, or %d steps an epoch; val tokens: %zu\n", train.num_tokens, epoch, val.num_tokens);

    int step = 0;
    float best = INFINITY; // the lowest validation loss so far
    snprintf(state, sizeof(state), "%.4000s.state", out);
    model.m_memory = (float*)calloc(model.num_parameters, sizeof(float)); // gpt2_update would do it at the first step
    model.v_memory = (float*)calloc(model.num_parameters, sizeof(float));
    if (access(state, F_OK) == 0) {
        FILE* file = fopenCheck(state, "rb");
        state_io(fread_check, file, &model, &train, &step, &best);
        fcloseCheck(file);
        for (int i = 0; i < step; i++) { dataloader_next_batch(&train); }
        printf("going on after step %d", step);
        printf(step > 0 ? "; the lowest val loss was %.4f\n" : "\n", best);
    } else if (access(out, F_OK) == 0) {
        fprintf(stderr, "Error: %s exists, but training cannot go on without %s\n", out, state);
        fprintf(stderr, "---> HINT: name another file with -o; to start from %s, name it with -e, too\n", out);
        exit(EXIT_FAILURE);
    }

    for (;; step++) {
        if (step % every == 0 || step == steps) {
            float loss = validate(&model, &val, val_batches);
            printf("step %d/%d | val loss %.4f%s\n", step, steps, loss, loss < best ? " (the lowest so far)" : "");
            if (loss < best && step > 0) { // the random model is not worth keeping
                best = loss;
                save_model(&model, out);
            }
            FILE* file = begin_file(state, temporary);
            state_io(fwrite_check, file, &model, &train, &step, &best);
            end_file(file, temporary, state);
        }
        if (sample_every > 0 && step > 0 && (step % sample_every == 0 || step == steps)) {
            Writer writer;
            writer_init(&writer, &model, step);
            writer_read(&writer, tokenizer.eot_token); // a text begins where another one ends
            writer_print(&writer, &tokenizer, 80, 0.8f, 40);
            writer_free(&writer);
        }
        if (step >= steps) { break; }

        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        dataloader_next_batch(&train);
        gpt2_forward(&model, train.inputs, train.targets, B, T);
        gpt2_zero_grad(&model);
        gpt2_backward(&model);
        clip_gradients(&model);
        gpt2_update(&model, learning_rate(highest_rate, step, steps), 0.9f, 0.95f, 1e-8f, weight_decay, step + 1);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double seconds = (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) / 1e9;
        if (step % 10 == 0) {
            printf("step %d/%d | train loss %.4f | %.0f tokens/s | %.0f minutes left\n", step, steps, model.mean_loss,
                   B * T / seconds, (steps - step) * seconds / 60);
            fflush(stdout);
        }
    }
    dataloader_free(&train);
    dataloader_free(&val);
    tokenizer_free(&tokenizer);
    gpt2_free(&model);
    return 0;
}
