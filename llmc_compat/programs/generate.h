/*
Writes text with a model, one token at a time. Include it after train_gpt2.c.

llm.c's gpt2_forward computes all T positions of B sequences, which training needs. To write, you need only the newest
position: the keys and values of the earlier ones do not change, so they are kept. A token then costs one position
instead of B * T. Everything else is llm.c's own layers, called with B = 1 and T = 1.
*/

typedef struct {
    GPT2* model;
    float* keys;   // (L, maxT, C) of the tokens that were read
    float* values; // (L, maxT, C)
    float* x;      // (C) the residual stream
    float* y;      // (C) what a layer adds to it
    float* ln;     // (C) after a layernorm
    float* qkv;    // (3*C)
    float* fch;    // (4*C) inside the MLP
    float* att;    // (maxT) how much an earlier token counts
    float* logits; // (Vp) for the next token
    int* tokens;   // (maxT) the tokens that were read
    int length;    // how many there are
    uint64_t rng_state;
} Writer;

void writer_init(Writer* writer, GPT2* model, uint64_t seed) {
    size_t C = model->config.channels, L = model->config.num_layers, maxT = model->config.max_seq_len;
    size_t Vp = model->config.padded_vocab_size;
    float* block = (float*)mallocCheck((2 * L * maxT * C + 10 * C + maxT + Vp) * sizeof(float));
    *writer = (Writer){.model = model, .keys = block, .rng_state = seed * 2 + 1}; // xorshift needs a state other than 0
    writer->values = writer->keys + L * maxT * C;
    writer->x = writer->values + L * maxT * C;
    writer->y = writer->x + C;
    writer->ln = writer->y + C;
    writer->qkv = writer->ln + C;
    writer->fch = writer->qkv + 3 * C;
    writer->att = writer->fch + 4 * C;
    writer->logits = writer->att + maxT;
    writer->tokens = (int*)mallocCheck(maxT * sizeof(int));
}

void writer_free(Writer* writer) {
    free(writer->keys); // the block that all of them share
    free(writer->tokens);
}

// Attention of the newest token, at position t, to itself and to all earlier ones. The result goes into writer->ln.
void writer_attention(Writer* writer, int layer, int t) {
    int C = writer->model->config.channels, NH = writer->model->config.num_heads, hs = C / NH; // hs is the head size
    float* keys = writer->keys + (size_t)layer * writer->model->config.max_seq_len * C;
    float* values = writer->values + (size_t)layer * writer->model->config.max_seq_len * C;
    memcpy(keys + (size_t)t * C, writer->qkv + C, C * sizeof(float)); // qkv has the newest query, key and value
    memcpy(values + (size_t)t * C, writer->qkv + 2 * C, C * sizeof(float));
    for (int h = 0; h < NH; h++) {
        float *query = writer->qkv + h * hs, *out = writer->ln + h * hs, maxval = -INFINITY, sum = 0.0f;
        for (int t2 = 0; t2 <= t; t2++) {
            float val = 0.0f;
            for (int i = 0; i < hs; i++) { val += query[i] * keys[(size_t)t2 * C + h * hs + i]; }
            writer->att[t2] = val / sqrtf(hs);
            maxval = fmaxf(maxval, writer->att[t2]);
        }
        for (int t2 = 0; t2 <= t; t2++) { sum += writer->att[t2] = expf(writer->att[t2] - maxval); }
        memset(out, 0, hs * sizeof(float));
        for (int t2 = 0; t2 <= t; t2++) {
            for (int i = 0; i < hs; i++) { out[i] += writer->att[t2] / sum * values[(size_t)t2 * C + h * hs + i]; }
        }
    }
}

// Reads one token. Afterwards, writer->logits are for the token that follows.
void writer_read(Writer* writer, int token) {
    ParameterTensors p = writer->model->params;
    int C = writer->model->config.channels, maxT = writer->model->config.max_seq_len;
    float mean, rstd; // only training needs them
    if (writer->length == maxT) {
        // the model knows no more positions: go on with the newer half of the text, which now begins at position 0
        int kept = maxT / 2;
        memmove(writer->tokens, writer->tokens + (maxT - kept), kept * sizeof(int));
        writer->length = 0;
        for (int i = 0; i < kept; i++) { writer_read(writer, writer->tokens[i]); }
    }
    int t = writer->length++;
    writer->tokens[t] = token;
    encoder_forward(writer->x, &token, p.wte, p.wpe + (size_t)t * C, 1, 1, C);
    for (int l = 0; l < writer->model->config.num_layers; l++) {
        size_t c = (size_t)l * C, cc = c * C; // where this layer's vectors begin, and its matrices of (C, C)
        layernorm_forward(writer->ln, &mean, &rstd, writer->x, p.ln1w + c, p.ln1b + c, 1, 1, C);
        matmul_forward_naive(writer->qkv, writer->ln, p.qkvw + 3 * cc, p.qkvb + 3 * c, 1, 1, C, 3 * C);
        writer_attention(writer, l, t);
        matmul_forward_naive(writer->y, writer->ln, p.attprojw + cc, p.attprojb + c, 1, 1, C, C);
        residual_forward(writer->x, writer->x, writer->y, C);
        layernorm_forward(writer->ln, &mean, &rstd, writer->x, p.ln2w + c, p.ln2b + c, 1, 1, C);
        matmul_forward_naive(writer->fch, writer->ln, p.fcw + 4 * cc, p.fcb + 4 * c, 1, 1, C, 4 * C);
        gelu_forward(writer->fch, writer->fch, 4 * C);
        matmul_forward_naive(writer->y, writer->fch, p.fcprojw + 4 * cc, p.fcprojb + c, 1, 1, 4 * C, C);
        residual_forward(writer->x, writer->x, writer->y, C);
    }
    layernorm_forward(writer->ln, &mean, &rstd, writer->x, p.lnfw, p.lnfb, 1, 1, C);
    matmul_forward_naive(writer->logits, writer->ln, p.wte, NULL, 1, 1, C, writer->model->config.padded_vocab_size);
}

// Draws the next token from the top_k most probable ones. A temperature below 1 prefers the probable tokens, one above 1
// evens the probabilities out, and 0 always takes the most probable token. Overwrites writer->logits.
int writer_draw(Writer* writer, float temperature, int top_k) {
    int V = writer->model->config.vocab_size; // the rows from V to Vp are padding, not tokens
    float *logits = writer->logits, sum = 0.0f, coin;
    int best = 0;
    for (int i = 1; i < V; i++) { best = logits[i] > logits[best] ? i : best; }
    if (temperature <= 0.0f) { return best; }
    float highest = logits[best], lowest = highest; // after k - 1 steps down, the k-th largest
    for (int k = 1; k < top_k; k++) {
        float next = -INFINITY;
        for (int i = 0; i < V; i++) { next = logits[i] < lowest ? fmaxf(next, logits[i]) : next; }
        lowest = next;
    }
    for (int i = 0; i < V; i++) {
        logits[i] = top_k > 0 && logits[i] < lowest ? 0.0f : expf((logits[i] - highest) / temperature);
        sum += logits[i];
    }
    writer->rng_state ^= writer->rng_state >> 12; // xorshift*, as in llm.c
    writer->rng_state ^= writer->rng_state << 25;
    writer->rng_state ^= writer->rng_state >> 27;
    coin = ((writer->rng_state * 0x2545F4914F6CDD1Dull) >> 40) / 16777216.0f * sum;
    for (int i = 0; i < V; i++) {
        coin -= logits[i];
        if (coin < 0.0f) { return i; }
    }
    return best; // rounding has left a rest
}

// Prints up to n tokens that follow those that were read, and stops where the model ends the text.
void writer_print(Writer* writer, Tokenizer* tokenizer, int n, float temperature, int top_k) {
    for (int i = 0; i < n; i++) {
        int token = writer_draw(writer, temperature, top_k);
        if (token == tokenizer->eot_token) { break; }
        safe_printf(tokenizer_decode(tokenizer, token)); // prints a character when its last token is there
        fflush(stdout);
        writer_read(writer, token);
    }
    printf("\n");
}

// A model and a tokenizer of different sizes give nonsense, or worse, text that nearly makes sense.
void open_model(GPT2* model, Tokenizer* tokenizer, const char* model_path, const char* tokenizer_path) {
    gpt2_build_from_checkpoint(model, model_path);
    tokenizer_init(tokenizer, tokenizer_path);
    if (!tokenizer->init_ok || (int)tokenizer->vocab_size != model->config.vocab_size) {
        fprintf(stderr, "Error: %s is not the tokenizer of %s, whose vocabulary has %d tokens\n", tokenizer_path,
                model_path, model->config.vocab_size);
        fprintf(stderr, "---> HINT: use the tokenizer that was made together with the model\n");
        exit(EXIT_FAILURE);
    }
}

typedef struct {
    char flag;
    char type;   // 's' for char*, 'i' for int, 'f' for float
    void* value; // the default, and then what the user gave
    const char* help;
} Option;

// Reads "-x 100 -l 0.001 ..." into the options. The last option has the flag 0. -h lists them.
void parse_options(Option* options, int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
        Option* o = options;
        while (o->flag != 0 && (argv[i][0] != '-' || argv[i][1] != o->flag || argv[i][2] != 0)) { o++; }
        char* end = "";
        if (o->flag != 0 && i + 1 < argc) {
            if (o->type == 's') { *(char**)o->value = argv[i + 1]; }
            if (o->type == 'i') { *(int*)o->value = (int)strtol(argv[i + 1], &end, 10); }
            if (o->type == 'f') { *(float*)o->value = strtof(argv[i + 1], &end); }
            if (*end == 0) { continue; }
        }
        int is_help = strcmp(argv[i], "-h") == 0;
        FILE* out = is_help ? stdout : stderr;
        fprintf(out, "Usage: %s [options]\n", argv[0]);
        for (o = options; o->flag != 0; o++) { fprintf(out, "  -%c  %s\n", o->flag, o->help); }
        exit(is_help ? EXIT_SUCCESS : EXIT_FAILURE);
    }
}
