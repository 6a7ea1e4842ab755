/*
Runs a fuzz target on files instead of a fuzzer: replay FILE... Returns 0 if no file ended the process.
*/
#include "fuzz.h"

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
            perror(argv[i]);
            return 1;
        }
        long size = ftell(file);
        rewind(file);
        uint8_t *data = malloc((size_t)size + (size == 0));
        REQUIRE(data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size);
        fclose(file);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        free(data);
    }
    printf("%d inputs\n", argc - 1);
    return 0;
}
