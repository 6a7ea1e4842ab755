/*
Writes text with a trained model: a prompt in, and the prompt with its continuation out.

    write -e trained.bin -p "In the beginning" -n 200

Compile it as train.c says, with pybpe's tokenizer.h, which also encodes. llm.c's own only decodes.
*/
#include "train_gpt2.c"
#include "generate.h"

int main(int argc, char** argv) {
    char *prompt = "", *model_path = "trained.bin", *tokenizer_path = "gpt2_tokenizer.bin";
    int n = 256, top_k = 40, seed = (int)time(NULL);
    float temperature = 0.8f;
    Option options[] = {{'p', 's', &prompt, "the prompt (none: the model begins a text)"},
                        {'e', 's', &model_path, "the model (trained.bin)"},
                        {'k', 's', &tokenizer_path, "its tokenizer (gpt2_tokenizer.bin)"},
                        {'n', 'i', &n, "how many tokens to write at most (256)"},
                        {'t', 'f', &temperature, "temperature; 0 always takes the most probable token (0.8)"},
                        {'g', 'i', &top_k, "draw from this many of the most probable tokens; 0 for all (40)"},
                        {'s', 'i', &seed, "random seed; the same seed gives the same text (the time)"},
                        {0}};
    parse_options(options, argc, argv);
    if (access(model_path, F_OK) != 0) {
        fprintf(stderr, "Error: there is no %s: run make train first, or name a model with -e\n", model_path);
        exit(EXIT_FAILURE);
    }
    GPT2 model;
    Tokenizer tokenizer;
    open_model(&model, &tokenizer, model_path, tokenizer_path);
    int room = 16 * strlen(prompt) + 1, *ids = (int*)mallocCheck(room * sizeof(int));
    int count = tokenizer_encode(&tokenizer, prompt, ids, room);
    if (count < 0) { exit(EXIT_FAILURE); } // tokenizer_encode has said why
    Writer writer;
    writer_init(&writer, &model, seed);
    writer_read(&writer, tokenizer.eot_token); // a text begins where another one ends
    for (int i = 0; i < count; i++) { writer_read(&writer, ids[i]); }
    printf("\n%s", prompt);
    writer_print(&writer, &tokenizer, n, temperature, top_k);
    writer_free(&writer);
    free(ids);
    tokenizer_free(&tokenizer);
    gpt2_free(&model);
    return 0;
}
