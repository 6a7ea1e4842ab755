#!/bin/bash -eu
# Builds all fuzz targets, as OSS-Fuzz calls it: the checkout is in $SRC/pybpe; $CC, $CXX, $CFLAGS, $CXXFLAGS and
# $LIB_FUZZING_ENGINE say how to compile and link; objects go to $WORK, and programs, seeds, options and dictionaries to
# $OUT. `make oss-fuzz` runs it with the values of OSS-Fuzz for libFuzzer, and then each program.
cd "$SRC/pybpe"
flags="-std=c11 -D_GNU_SOURCE -Icsrc -Itests/c -Illmc_compat/include"

for source in csrc/*/*.c; do
    # shellcheck disable=SC2086  # the flags are several words
    $CC $CFLAGS $flags -c -o "$WORK/$(basename "$source" .c).o" "$source"
done
rm -f "$WORK/libpybpe.a"
ar rcs "$WORK/libpybpe.a" "$WORK"/*.o

for source in tests/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    # shellcheck disable=SC2086
    $CC $CFLAGS $flags -c -o "$WORK/$target.target" "$source"
    # shellcheck disable=SC2086
    $CXX $CXXFLAGS -o "$OUT/$target" "$WORK/$target.target" $LIB_FUZZING_ENGINE "$WORK/libpybpe.a" -lm -lpthread
    cp "tests/fuzz/$target.options" "$OUT"
    cp "tests/fuzz/corpus/${target#fuzz_}.zip" "$OUT/${target}_seed_corpus.zip"
done
cp tests/fuzz/*.dict "$OUT"
