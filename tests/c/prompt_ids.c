/*
Prints the ids of each prompt, a line each, through llm.c's drop-in tokenizer.h: prompt_ids TOKENIZER.bin PROMPT...
tests/py/test_llmc_headers.py compares them with Python's.
*/
#include "llmc/tokenizer.h"

enum { MOST = 1 << 16 };

int main(int argc, char **argv) {
    static int ids[MOST];
    Tokenizer tokenizer;
    if (argc < 2) {
        fprintf(stderr, "usage: prompt_ids TOKENIZER.bin PROMPT...\n");
        return 1;
    }
    tokenizer_init(&tokenizer, argv[1]);
    for (int i = 2; i < argc; i++) {
        int count = tokenizer_encode(&tokenizer, argv[i], ids, MOST);
        for (int k = 0; k < count; k++) {
            printf("%d ", ids[k]);
        }
        printf(count < 0 ? "refused\n" : "\n");
    }
    tokenizer_free(&tokenizer);
    return 0;
}
