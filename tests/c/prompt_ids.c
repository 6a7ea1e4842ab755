/*
Prints the ids of each prompt through llm.c's drop-in tokenizer.h, on one line with special tokens recognized and on the
next as ordinary text: prompt_ids TOKENIZER.bin PROMPT... tests/py/test_llmc_headers.py compares them with Python's.
*/
#include "llmc/tokenizer.h"

enum { MOST = 1 << 16 };

static void print_ids(int count, const int *ids) {
    for (int k = 0; k < count; k++) {
        printf("%d ", ids[k]);
    }
    printf(count < 0 ? "refused\n" : "\n");
}

int main(int argc, char **argv) {
    static int ids[MOST];
    Tokenizer tokenizer;
    if (argc < 2) {
        fprintf(stderr, "usage: prompt_ids TOKENIZER.bin PROMPT...\n");
        return 1;
    }
    tokenizer_init(&tokenizer, argv[1]);
    for (int i = 2; i < argc; i++) {
        print_ids(tokenizer_encode(&tokenizer, argv[i], ids, MOST), ids);
        print_ids(tokenizer_encode_ordinary(&tokenizer, argv[i], ids, MOST), ids);
    }
    tokenizer_free(&tokenizer);
    return 0;
}
