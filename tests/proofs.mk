# Checks of the promises in docs/reliability.md that go beyond `make test-all`. They need these Debian packages: clang,
# clang-tidy, cppcheck, llvm, and libclang-rt-14-dev (or the one for your version of clang).

### Static analysis, proofs, mutation and coverage

.PHONY: analyze analyze-gcc analyze-tidy analyze-cppcheck

# ---------------------------------------------------------------------------------------------------
# Static analysis of the library, and of the drop-in headers as a program would include them

ANALYZED_FLAGS := -D_GNU_SOURCE -Icsrc -Illmc_compat/include
# The headers keep llm.c's interface, which prints and exits, and llm.c's programs have one thread.
LLMC_CHECKS := -cert-err33-c,-concurrency-mt-unsafe

## gcc -fanalyzer, clang-tidy and cppcheck: no findings
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
# The arguments in csrc/encode/encode_boundary.c, csrc/apply/apply_chars.h and csrc/pretok/pretok_cut.c: each program of tests/proofs checks
# all cases up to a size (three minutes). Then proofs with the model checker cbmc, if it is installed, that no input up to
# a bound makes a reader of files err (tests/proofs/memory). prove-quick, part of `make test-all`, takes smaller cases, and
# random inputs instead of the model checker.

PROOFS := $(patsubst tests/proofs/%.c,build/proofs/%,$(wildcard tests/proofs/*.c))

.PHONY: prove prove-quick
## the arguments on which exactness rests, on every small case; proofs for readers of files
prove prove-quick: $(PROOFS)
	$(call RUN_EACH,$(PROOFS),$(@:prove-%=%))
	CC="$(CC)" $(PYTHON) tests/proofs/memory/run.py $(if $(filter prove-quick,$@),--draw)

build/proofs/%: tests/proofs/%.c $(wildcard tests/proofs/*.h tests/c/*.h) build/obj/libpybpe.a | build/proofs
	$(COMPILE) $(CFLAGS) -o $@ $< build/obj/libpybpe.a $(LDFLAGS) $(LDLIBS)

.PHONY: mutants mutants-python
DRAWN = $(if $(count),--count $(count)) $(if $(seed),--seed $(seed)) $(if $(known),--known)
## small faults in the C library, count=50: do the C tests notice? known=1: only judged faults
mutants: build/sanitize/libpybpe.a
	$(PYTHON) tests/mutation/run.py $(DRAWN) $(files)

## the same in modules of the Python package
mutants-python: all
	PYTHONPATH=$(CURDIR) $(VENV)/python tests/mutation/run_python.py $(DRAWN) $(modules)

# ---------------------------------------------------------------------------------------------------
# Coverage. For C, builds a copy of the tree with clang and counters, and runs there the C tests and the inputs kept from
# fuzzing. The Python tests, including those of optional features, run with the ordinary build: with counters, which
# threads share, they would take hours.

COVERAGE_TREE := $(CURDIR)/build/coverage/tree
# Counts of threads add up only if they are atomic.
COVERAGE_FLAGS := -O1 -g -fprofile-instr-generate -fprofile-update=atomic -fcoverage-mapping
COVERED := $(addprefix $(COVERAGE_TREE)/,$(filter-out %_data.h csrc/pybpe%.h csrc/python/%,$(SOURCES) $(HEADERS)))

.PHONY: coverage coverage-c coverage-python
## what the tests reach: coverage-c with llvm-cov, coverage-python with a large install
coverage: coverage-c coverage-python

coverage-c: export LLVM_PROFILE_FILE = $(CURDIR)/build/coverage/raw/%8m.profraw
coverage-c: .venv/test-stamp
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
	$(PIP_INSTALL) coverage==7.16.1
	rm -rf build/coverage/python
	mkdir -p build/coverage/python
	@status=0; $(VENV)/coverage run -m pytest -q --numprocesses=2 --dist=loadfile || status=$$?; \
	$(VENV)/coverage combine --quiet && \
	$(VENV)/coverage json --quiet --include='pybpe/*,llmc_compat/*' -o build/coverage/python/report.json && \
	$(VENV)/python tests/coverage_python.py build/coverage/python/report.json && exit $$status
