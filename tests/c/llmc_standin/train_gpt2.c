/*
Stands in for llm.c's train_gpt2.c in the tests of llmc_compat/programs, so that they run without llm.c. The names and
types are llm.c's; tests/py/test_llmc_programs.py compares them with the real file if it is told where that is.

The layers do what llm.c's do, one position at a time. gpt2_forward is a simpler model, which predicts a token from the
token before it alone: `wte` of the one times `wte` of the other. It is enough to see whether training goes on right.
*/
#include "llmc/utils.h"
#include "llmc/tokenizer.h"
#include "llmc/dataloader.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    int max_seq_len, vocab_size, padded_vocab_size, num_layers, num_heads, channels;
} GPT2Config;

typedef struct {
    float *wte, *wpe, *ln1w, *ln1b, *qkvw, *qkvb, *attprojw, *attprojb;
    float *ln2w, *ln2b, *fcw, *fcb, *fcprojw, *fcprojb, *lnfw, *lnfb;
} ParameterTensors;

typedef struct {
    GPT2Config config;
    ParameterTensors params;
    size_t num_parameters;
    float *params_memory, *grads_memory, *m_memory, *v_memory;
    int *inputs, *targets;
    int batch_size, seq_len;
    float mean_loss;
} GPT2;

void encoder_forward(float *out, int *inp, float *wte, float *wpe, int B, int T, int C) {
    for (int i = 0; i < B * T * C; i++) {
        out[i] = wte[inp[i / C] * C + i % C] + wpe[i / C % T * C + i % C];
    }
}

void layernorm_forward(float *out, float *mean, float *rstd, float *inp, float *weight, float *bias, int B, int T,
                       int C) {
    for (int at = 0; at < B * T * C; at += C, mean++, rstd++) {
        float variance = 0.0f;
        *mean = 0.0f;
        for (int i = 0; i < C; i++) {
            *mean += inp[at + i] / (float)C;
        }
        for (int i = 0; i < C; i++) {
            variance += (inp[at + i] - *mean) * (inp[at + i] - *mean) / (float)C;
        }
        *rstd = 1.0f / sqrtf(variance + 1e-5f);
        for (int i = 0; i < C; i++) {
            out[at + i] = (inp[at + i] - *mean) * *rstd * weight[i] + bias[i];
        }
    }
}

void matmul_forward_naive(float *out, const float *inp, const float *weight, const float *bias, int B, int T, int C,
                          int OC) {
    for (int at = 0; at < B * T * OC; at++) {
        out[at] = bias != NULL ? bias[at % OC] : 0.0f;
        for (int i = 0; i < C; i++) {
            out[at] += inp[at / OC * C + i] * weight[at % OC * C + i];
        }
    }
}

void gelu_forward(float *out, float *inp, int N) {
    for (int i = 0; i < N; i++) {
        float x = inp[i];
        out[i] = 0.5f * x * (1.0f + tanhf(sqrtf(2.0f / 3.14159265f) * (x + 0.044715f * x * x * x)));
    }
}

void residual_forward(float *out, float *inp1, float *inp2, int N) {
    for (int i = 0; i < N; i++) {
        out[i] = inp1[i] + inp2[i];
    }
}

void gpt2_build_from_checkpoint(GPT2 *model, const char *checkpoint_path) {
    int h[256];
    FILE *file = fopenCheck(checkpoint_path, "rb");
    freadCheck(h, sizeof(int), 256, file);
    if (h[0] != 20240326 || h[1] != 3) {
        standin_fail("Bad model file", __FILE__, __LINE__);
    }
    *model = (GPT2){.config = {h[2], h[3], h[7], h[4], h[5], h[6]}, .mean_loss = -1.0f};
    size_t maxT = (size_t)h[2], L = (size_t)h[4], C = (size_t)h[6], Vp = (size_t)h[7];
    size_t sizes[16] = {Vp * C, maxT * C, L * C,     L * C, L * 3 * C * C, L * 3 * C,     L * C * C, L * C,
                        L * C,  L * C,    4 * L * C * C, 4 * L * C, 4 * L * C * C, L * C, C,         C};
    ParameterTensors *p = &model->params;
    float **tensors[16] = {&p->wte,  &p->wpe,  &p->ln1w, &p->ln1b, &p->qkvw,    &p->qkvb,    &p->attprojw, &p->attprojb,
                           &p->ln2w, &p->ln2b, &p->fcw,  &p->fcb,  &p->fcprojw, &p->fcprojb, &p->lnfw,     &p->lnfb};
    for (int i = 0; i < 16; i++) {
        model->num_parameters += sizes[i];
    }
    float *at = model->params_memory = (float *)mallocCheck(model->num_parameters * sizeof(float));
    freadCheck(at, sizeof(float), model->num_parameters, file);
    fcloseCheck(file);
    for (int i = 0; i < 16; i++) {
        *tensors[i] = at;
        at += sizes[i];
    }
}

/* The probability of each token after a token. */
static void standin_probs(GPT2 *model, int token, float *probs) {
    int V = model->config.vocab_size, C = model->config.channels;
    float sum = 0.0f;
    for (int v = 0; v < V; v++) {
        float logit = 0.0f;
        for (int i = 0; i < C; i++) {
            logit += model->params.wte[v * C + i] * model->params.wte[token * C + i];
        }
        sum += probs[v] = expf(logit);
    }
    for (int v = 0; v < V; v++) {
        probs[v] /= sum;
    }
}

void gpt2_forward(GPT2 *model, int *inputs, int *targets, size_t B, size_t T) {
    float *probs = (float *)mallocCheck((size_t)model->config.vocab_size * sizeof(float));
    if (model->inputs != NULL && (model->batch_size != (int)B || model->seq_len != (int)T)) {
        standin_fail("B and T must stay as they are", __FILE__, __LINE__);
    }
    model->batch_size = (int)B;
    model->seq_len = (int)T;
    model->inputs = inputs;
    model->targets = targets;
    model->mean_loss = 0.0f;
    for (size_t i = 0; i < B * T; i++) {
        standin_probs(model, inputs[i], probs);
        model->mean_loss -= logf(probs[targets[i]]) / (float)(B * T);
    }
    free(probs);
}

void gpt2_zero_grad(GPT2 *model) {
    if (model->grads_memory != NULL) {
        memset(model->grads_memory, 0, model->num_parameters * sizeof(float));
    }
}

void gpt2_backward(GPT2 *model) {
    int V = model->config.vocab_size, C = model->config.channels, n = model->batch_size * model->seq_len;
    float *probs = (float *)mallocCheck((size_t)V * sizeof(float));
    static int calls = 0;
    const char *last = getenv("STANDIN_LAST_STEP"); /* dies in the step after this one */
    if (last != NULL && calls++ == atoi(last)) {
        _exit(9);
    }
    if (model->grads_memory == NULL) {
        model->grads_memory = (float *)calloc(model->num_parameters, sizeof(float));
    }
    for (int at = 0; at < n; at++) {
        standin_probs(model, model->inputs[at], probs);
        probs[model->targets[at]] -= 1.0f;
        for (int v = 0; v < V; v++) {
            for (int i = 0; i < C; i++) { /* wte is first in the memory of the gradients, too */
                model->grads_memory[v * C + i] += probs[v] / (float)n * model->params.wte[model->inputs[at] * C + i];
            }
        }
    }
    free(probs);
}

void gpt2_update(GPT2 *model, float learning_rate, float beta1, float beta2, float eps, float weight_decay, int t) {
    for (size_t i = 0; i < model->num_parameters; i++) {
        float g = model->grads_memory[i], *m = &model->m_memory[i], *v = &model->v_memory[i];
        *m = beta1 * *m + (1.0f - beta1) * g;
        *v = beta2 * *v + (1.0f - beta2) * g * g;
        float step = *m / (1.0f - powf(beta1, (float)t)) / (sqrtf(*v / (1.0f - powf(beta2, (float)t))) + eps);
        model->params_memory[i] -= learning_rate * (step + weight_decay * model->params_memory[i]);
    }
}

void gpt2_free(GPT2 *model) {
    free(model->params_memory);
    free(model->grads_memory);
    free(model->m_memory);
    free(model->v_memory);
}
