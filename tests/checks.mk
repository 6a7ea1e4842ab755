# The checks of every day. tests/check.txt names the Python tests of `make check`; those marked "slow" run only in
# `make test-all`. .ci/run, which CI runs, does that and more.

### Checks

.PHONY: check test test-c test-all ctest pytest pytest-all pytest-check lint lint-quick lint-c format

# Two steps at a time, unless make has been told how many. The steps write little, and a fault of one stops the other.
TWO = --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j2)

## after each change, under a minute: linters, C tests, and the Python tests that find the most
check: .venv/stamp
	$(MAKE) $(TWO) lint-quick ctest pytest-check

## before each commit: everything except what takes long, and mypy once instead of twice
test: .venv/stamp
	$(MAKE) $(TWO) all lint-quick lint-c ctest
	$(MAKE) $(TWO) pytest

## linters, and the C tests, also with sanitizers; proofs, and the kept inputs of fuzzing
test-c: .venv/stamp
	$(MAKE) $(TWO) all lint ctest sanitize prove-quick llmc-test replay

## the same, and all Python tests
test-all: test-c
	$(MAKE) $(TWO) pytest-all

# Runs programs. Shows the output of one that fails. $(1) the programs, $(2) their arguments, $(3) what precedes them
RUN_EACH = for program in $(1); do \
        $(3) $$program $(2) > build/$@.log 2>&1 || { cat build/$@.log; echo "$@: $$program failed"; exit 1; }; \
    done; echo "$@: $(words $(1)) programs passed"

## the C tests
ctest: $(C_TESTS)
	$(call RUN_EACH,$^)

# Two processes, because many tests wait; each runs whole files, whose tests share what they set up.
PYTEST = $(VENV)/python -m pytest -q -rfE --numprocesses=2 --dist=loadfile --no-loadscope-reorder
## the Python tests that do not take long; make test-extras has those of optional features
pytest: all .venv/texts/stamp
	$(PYTEST) -m "not slow" --ignore=tests/py/extras

pytest-all: all .venv/texts/stamp
	$(PYTEST)

pytest-check: all
	$(VENV)/python -m pytest -q -rfE -m "not slow" @tests/check.txt

## ruff, mypy, import-linter, clang-format and all warnings of the compiler
lint: lint-quick lint-c
	$(VENV)/mypy --no-error-summary --platform win32 --cache-dir .mypy_cache/win32
	echo "$@: passed"

lint-c: .venv/test-stamp amalgamation
	$(VENV)/clang-format --dry-run --Werror $(C_STYLED)
	$(CC) $(STRICT) -fsyntax-only build/amalgamation/pybpe.c
	echo "$@: passed"

lint-quick: .venv/test-stamp
	@mkdir -p build
	$(VENV)/ruff check --quiet
	$(VENV)/ruff format --check --quiet || { $(VENV)/ruff format --check; exit 1; }
	$(VENV)/mypy --no-error-summary
	$(VENV)/lint-imports > build/imports.log || { cat build/imports.log; exit 1; }
	echo "$@: passed"

## format Python and C
format: .venv/test-stamp
	$(VENV)/ruff check --fix-only
	$(VENV)/ruff format
	$(VENV)/clang-format -i $(C_STYLED)
