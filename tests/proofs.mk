# Checks of the promises in docs/reliability.md that go beyond `make test`. They need these Debian packages: clang,
# clang-tidy, cppcheck, valgrind, llvm, and libclang-rt-14-dev (or the one for your version of clang).
#
# make analyze    gcc -fanalyzer, clang-tidy, cppcheck: no findings
# make sanitize-all   the C tests under AddressSanitizer, MemorySanitizer, ThreadSanitizer and valgrind
# make msan | tsan | memcheck        one of them; without clang, gcc builds the programs of `make tsan`
# make prove      the arguments in csrc/encode_boundary.c, csrc/apply_chars.h and csrc/pretok_cut.c, checked on every small
#                 case (three minutes); then proofs with the model checker cbmc, if it is installed, that no input up to a
#                 bound makes a reader of files err (tests/proofs/memory). prove-quick, part of `make test`,
#                 takes smaller cases, and random inputs instead of the model checker
# make mutants    small faults in the C library, count=50 of them: do the C tests notice? (tests/mutation)
# make mutants-python    the same in modules of the Python package; for both, known=1: only faults that have been judged
# make coverage   lines and branches that the tests reach: llvm-cov for csrc, coverage.py for Python; it installs the
#                 packages of `make test-extras`
# make interrupts | determinism | threads    parts of `make soak`: interrupts each operation count=100 times; compares
#                                            the files of runs=20 runs; shares objects among threads for seconds=60

.PHONY: analyze analyze-gcc analyze-tidy analyze-cppcheck sanitize-all msan tsan memcheck

# ---------------------------------------------------------------------------------------------------
# Static analysis of the library, and of the drop-in headers as a program would include them

ANALYZED_FLAGS := -D_GNU_SOURCE -DPYBPE_VERSION='"$(VERSION)"' -Icsrc -Illmc_compat/include
LLMC_HEADERS := $(wildcard llmc_compat/include/llmc/*.h)
# The headers keep llm.c's interface, which prints and exits, and llm.c's programs have one thread.
LLMC_CHECKS := -cert-err33-c,-concurrency-mt-unsafe

analyze: analyze-gcc analyze-tidy analyze-cppcheck

build/analyze/llmc.c: $(LLMC_HEADERS)
	@mkdir -p $(@D)
	for header in $(notdir $(LLMC_HEADERS)); do echo "#include \"llmc/$$header\""; done > $@

analyze-gcc: $(SOURCES:csrc/%.c=build/analyze/%.o) build/analyze/llmc.o

build/analyze/%.o: csrc/%.c $(HEADERS)
	@mkdir -p $(@D)
	gcc -std=c11 $(ANALYZED_FLAGS) -Wall -Wextra -Werror -O2 -fanalyzer -c -o $@ $<

build/analyze/llmc.o: build/analyze/llmc.c $(LLMC_HEADERS) $(HEADERS)
	gcc -std=c11 $(ANALYZED_FLAGS) -Wall -Wextra -Wno-unused-function -Werror -O2 -fanalyzer -c -o $@ $<

analyze-tidy: build/analyze/llmc.c
	clang-tidy --quiet $(SOURCES) -- -std=c11 $(ANALYZED_FLAGS)
	clang-tidy --quiet --config-file=.clang-tidy --header-filter=llmc/ --checks=$(LLMC_CHECKS) $< -- -std=c11 $(ANALYZED_FLAGS)

# Defines the macros of gcc that the sources test: otherwise, cppcheck tries every combination of them.
analyze-cppcheck: build/analyze/llmc.c
	cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c11 \
	    -D__GNUC__=12 -D__x86_64__=1 -D__GLIBC__=2 $(ANALYZED_FLAGS) $(SOURCES) $<

# ---------------------------------------------------------------------------------------------------
# The C tests under other sanitizers: $(1) name, $(2) compiler, $(3) flags, $(4) prefix of the command that runs a program

define SANITIZER
build/$(1)/libpybpe.a: $$(SOURCES:csrc/%.c=build/$(1)/obj/%.o)

build/$(1)/obj/%.o: csrc/%.c $$(HEADERS)
	@mkdir -p $$(@D)
	$$(COMPILE:$$(CC)%=$(2)%) $(3) -c -o $$@ $$<

build/$(1)/tests/%: tests/c/%.c $$(wildcard tests/c/*.h) $$(LLMC_HEADERS) build/$(1)/libpybpe.a
	@mkdir -p $$(@D)
	$$(COMPILE:$$(CC)%=$(2)%) $(3) -o $$@ $$< build/$(1)/libpybpe.a $$(LDLIBS)

$(1): $$(C_TESTS:build/%=build/$(1)/%)
	$$(call RUN_EACH,$$^,,$(4))
endef

$(eval $(call SANITIZER,msan,clang,-O1 -g -fsanitize=memory -fsanitize-memory-track-origins -fno-omit-frame-pointer,))
$(eval $(call SANITIZER,tsan,$(or $(shell command -v clang),gcc),-O1 -g -fsanitize=thread,TSAN_OPTIONS=halt_on_error=1))
$(eval $(call SANITIZER,memcheck,gcc,-O1 -g,valgrind --quiet --error-exitcode=1 --leak-check=full))

sanitize-all: sanitize msan tsan memcheck

# ---------------------------------------------------------------------------------------------------
# Arguments on which exactness rests: each program of tests/proofs enumerates all cases up to a size. And proofs that
# readers of files access only their memory

PROOFS := $(patsubst tests/proofs/%.c,build/proofs/%,$(wildcard tests/proofs/*.c))

.PHONY: prove prove-quick
prove prove-quick: $(PROOFS)
	$(call RUN_EACH,$(PROOFS),$(@:prove-%=%))
	CC="$(CC)" $(PYTHON) tests/proofs/memory/run.py $(if $(filter prove-quick,$@),--draw)

build/proofs/%: tests/proofs/%.c $(wildcard tests/proofs/*.h tests/c/*.h) build/libpybpe.a | build/proofs
	$(COMPILE) $(CFLAGS) -o $@ $< build/libpybpe.a $(LDFLAGS) $(LDLIBS)

# Draws the same faults again on the same commit.
.PHONY: mutants mutants-python
DRAWN = --count $(or $(count),50) --seed $(or $(seed),$(shell git rev-parse HEAD))
mutants:
	$(PYTHON) tests/mutation/run.py $(DRAWN) $(if $(known),--known) $(files)

mutants-python: all
	PYTHONPATH=$(CURDIR) $(VENV)/python tests/mutation/run_python.py $(DRAWN) $(if $(known),--known) $(modules)

# ---------------------------------------------------------------------------------------------------
# Coverage. For C, builds a copy of the tree with clang and counters, and runs there the C tests and the inputs kept from
# fuzzing. The Python tests, including those of optional features, run with the ordinary build: with counters, which
# threads share, they would take hours.

COVERAGE_TREE := $(CURDIR)/build/coverage/tree
# Counts of threads add up only if they are atomic.
COVERAGE_FLAGS := -O1 -g -fprofile-instr-generate -fprofile-update=atomic -fcoverage-mapping
COVERED := $(addprefix $(COVERAGE_TREE)/csrc/,$(notdir $(filter-out csrc/%_data.h csrc/pybpe.h,$(SOURCES) $(HEADERS))))

.PHONY: coverage coverage-c coverage-python
coverage: coverage-c coverage-python

coverage-c: export LLVM_PROFILE_FILE = $(CURDIR)/build/coverage/raw/%8m.profraw
coverage-c: .venv/stamp
	rm -rf build/coverage/tree build/coverage/raw
	mkdir -p $(COVERAGE_TREE)
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp -p --parents -t $(COVERAGE_TREE)
	ln -s $(CURDIR)/.venv $(COVERAGE_TREE)/.venv
	$(MAKE) -C $(COVERAGE_TREE) CC=clang CFLAGS="$(COVERAGE_FLAGS)" SANITIZE="$(COVERAGE_FLAGS)" \
	    LDFLAGS=-fprofile-instr-generate all ctest replay
	llvm-profdata merge -o build/coverage/csrc.profdata build/coverage/raw/*.profraw
	$(VENV)/python tests/coverage.py build/coverage/csrc.profdata $(COVERAGE_TREE)/pybpe/_core.abi3.so $(COVERED)

# Reports what was reached even if a test failed.
coverage-python: export COVERAGE_FILE = $(CURDIR)/build/coverage/python/data
coverage-python: all .venv/extras-stamp .venv/texts/stamp
	$(VENV)/python -m pip install --quiet coverage==7.16.1
	rm -rf build/coverage/python
	mkdir -p build/coverage/python
	@status=0; $(VENV)/coverage run -m pytest -q --numprocesses=2 --dist=loadfile || status=$$?; \
	$(VENV)/coverage combine --quiet && \
	$(VENV)/coverage json --quiet --include='pybpe/*,llmc_compat/*' -o build/coverage/python/report.json && \
	$(VENV)/python tests/coverage_python.py build/coverage/python/report.json && exit $$status

# ---------------------------------------------------------------------------------------------------
# Long runs

.PHONY: interrupts determinism threads
soak: interrupts determinism threads

interrupts: all
	$(VENV)/python tests/faults/interrupts.py $(or $(count),100)

determinism: all
	$(VENV)/python tests/faults/determinism.py $(or $(runs),20)

threads: build/tsan/tests/test_threads
	TSAN_OPTIONS=halt_on_error=1 $< $(or $(seconds),60)
