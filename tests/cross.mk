# Other machines, and another C library: runs the C tests and the recorded batches of llm.c, and compares the files of a
# whole run in C with those of this machine.
#
# make cross-aarch64 | cross-s390x | cross-armv7     under qemu: 64-bit ARM with NEON; big-endian; 32 bits
# make cross-musl                                    this machine, with musl
# make wasm                                          WebAssembly, in node, without the tests of tests/c
# make cross-windows                                 Windows on x86-64, under Wine, without the tests that need fork or glob.h
#
# If the compiler or emulator of a target is not installed, make skips the target and names its Debian packages.

### Other machines

CROSS := aarch64 s390x armv7 musl windows
.PHONY: cross $(CROSS:%=cross-%) $(CROSS:%=cross-run-%)
## the C tests on aarch64, s390x, armv7, musl and windows (qemu, Wine); cross-NAME is one of them
cross: $(CROSS:%=cross-%) cross-macos wasm

build/cross/corpus.txt: README.md $(wildcard docs/*.md)
	@mkdir -p $(@D)
	cat $^ > $@

# $(1) name, $(2) compiler, $(3) its flags, $(4) prefix of the command that runs a program, $(5) the Debian packages of
# compiler and emulator, $(6) flags for the tests only, $(7) tests that need POSIX. build/tests/pipeline runs on this
# machine, for comparison.
define CROSS_TARGET
build/cross/$(1)/libpybpe.a: $$(SOURCES:csrc/%.c=build/cross/$(1)/obj/%.o)

build/cross/$(1)/obj/%.o: csrc/%.c $$(HEADERS)
	@mkdir -p $$(@D)
	$$(COMPILE:$$(CC)%=$(2)%) $$(CFLAGS) $(3) -c -o $$@ $$<

build/cross/$(1)/tests/%: tests/c/%.c $$(wildcard tests/c/*.h) $$(LLMC_HEADERS) build/cross/$(1)/libpybpe.a
	@mkdir -p $$(@D)
	$$(COMPILE:$$(CC)%=$(2)%) $$(CFLAGS) $(3) $(6) -o $$@ $$< build/cross/$(1)/libpybpe.a $$(LDLIBS)
	@test ! -e $$@.exe || mv $$@.exe $$@

cross-run-$(1): $$(patsubst %,build/cross/$(1)/tests/%,$$(filter-out $(7),$$(notdir $$(C_TESTS)) llmc_walk pipeline)) \
    build/tests/pipeline build/cross/corpus.txt
	@for program in $$(filter build/cross/$(1)/tests/test_%,$$^); do echo "$$$$program"; $(4) $$$$program || exit 1; done
	$(if $(filter llmc_walk,$(7)),,$(4) build/cross/$(1)/tests/llmc_walk tests/vectors/loader_llmc.json)
	build/tests/pipeline build/cross/corpus.txt 1000 build/cross/$(1)/here.bin build/cross/$(1)/here_shard.bin
	$(4) build/cross/$(1)/tests/pipeline build/cross/corpus.txt 1000 build/cross/$(1)/there.bin build/cross/$(1)/there_shard.bin
	cmp build/cross/$(1)/here.bin build/cross/$(1)/there.bin
	cmp build/cross/$(1)/here_shard.bin build/cross/$(1)/there_shard.bin
	@echo "cross-$(1): passed"

cross-$(1):
	@for tool in $(2) $(4); do \
	    command -v $$$$tool > /dev/null || { echo "cross-$(1): skipped: no $$$$tool; apt-get install $(5)"; exit 0; }; \
	done; $$(MAKE) cross-run-$(1)
endef

# Programs for qemu are linked statically, so that they need no files of the other system.
$(eval $(call CROSS_TARGET,aarch64,aarch64-linux-gnu-gcc,-static,qemu-aarch64,gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user))
$(eval $(call CROSS_TARGET,s390x,s390x-linux-gnu-gcc,-static,qemu-s390x,gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user))
$(eval $(call CROSS_TARGET,armv7,arm-linux-gnueabihf-gcc,-static,qemu-arm,gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user,-D_FILE_OFFSET_BITS=64))
$(eval $(call CROSS_TARGET,musl,musl-gcc,,,musl-tools))
# Debian does not install Wine's program in a folder of PATH.
$(eval $(call CROSS_TARGET,windows,x86_64-w64-mingw32-gcc-posix,-static -D__USE_MINGW_ANSI_STDIO=1,$(or $(shell command -v wine),/usr/lib/wine/wine64),gcc-mingw-w64-x86-64-posix wine64,,test_base test_llmc_headers llmc_walk))

# Nothing here runs programs for macOS. zig brings its headers and those of other systems: pip install ziglang
ZIG := $(VENV)/python -m ziglang
.PHONY: cross-macos cross-run-macos
## the two files of make amalgamation compile for macOS on arm64 and x86-64
cross-macos:
	@if $(ZIG) version > /dev/null 2>&1; then $(MAKE) cross-run-macos; \
	else echo "cross-macos: skipped: no zig; $(VENV)/python -m pip install ziglang"; fi

cross-run-macos: build/cross/macos/aarch64.o build/cross/macos/x86_64.o
	@echo "cross-macos: compiled"

build/cross/macos/%.o: build/amalgamation/pybpe.c
	@mkdir -p $(@D)
	$(ZIG) cc -target $*-macos $(STRICT) -O3 -c -o $@ $<

# WebAssembly: build/wasm/pybpe.wasm has the functions of pybpe.h, malloc and free, and needs WASI's functions for files.
ZIG_WASM := $(ZIG) cc -target wasm32-wasi
.PHONY: wasm wasm-run
## compiles the library to WebAssembly, and tests it in node
wasm:
	@if ! $(ZIG) version > /dev/null 2>&1; then echo "wasm: skipped: no zig; $(VENV)/python -m pip install ziglang"; \
	elif ! command -v node > /dev/null; then echo "wasm: skipped: no node; apt-get install nodejs"; \
	else $(MAKE) wasm-run; fi

wasm-run: build/wasm/pybpe.wasm build/wasm/llmc_walk.wasm
	node --no-warnings tests/wasm.mjs $^
	@echo "wasm: passed"

build/wasm/pybpe.o: build/amalgamation/pybpe.c
	@mkdir -p $(@D)
	$(ZIG_WASM) $(STRICT) -Wno-unused-function -O2 -fvisibility=hidden -c -o $@ $<

build/wasm/pybpe.wasm: build/wasm/pybpe.o
	$(ZIG_WASM) -mexec-model=reactor -s -Wl,--export-dynamic,--export=malloc,--export=free -o $@ $<

build/wasm/llmc_walk.wasm: tests/c/llmc_walk.c build/wasm/pybpe.o
	$(ZIG_WASM) $(STRICT) -O1 -s -Icsrc -Itests/c -Illmc_compat/include -o $@ $^

# ---------------------------------------------------------------------------------------------------
# The wheel for another machine, with a Python for that machine. Not a part of `make cross`, because qemu is slow.

.PHONY: cross-wheel-aarch64
## the wheel for Linux on ARM and the Python tests, in qemu (two hours): tests="..."
cross-wheel-aarch64: .venv/test-stamp
	@for tool in aarch64-linux-gnu-gcc qemu-aarch64 apt-get dpkg-deb; do \
	    command -v $$tool > /dev/null || { echo "$@: skipped: no $$tool; on Debian, apt-get install \
	        gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"; exit 0; }; \
	done; $(VENV)/python tests/cross_wheel.py build/cross/wheel-aarch64 $(tests)
