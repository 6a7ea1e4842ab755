# Fuzzing: the targets of tests/fuzz, their kept inputs, and random regular expressions.

### Fuzzing

.PHONY: fuzz fuzz-python oss-fuzz replay fuzz-patterns

# Each target starts from its seeds and its findings; replay runs only those. The settings of a target, including its
# dictionary, are in fuzz_NAME.options, in OSS-Fuzz's format.
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
.PHONY: $(FUZZ_TARGETS:%=fuzz-%)
FUZZ_COMPILE = -std=c11 -Wall -Wextra -O2 -g -fno-omit-frame-pointer -fno-sanitize-recover=all -D_GNU_SOURCE \
               -Icsrc -Itests/c -Illmc_compat/include
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

# make -j2 fuzz runs two at a time.
## each fuzz target for seconds=60, with clang's libFuzzer; make fuzz-vocab runs one of them
fuzz: $(FUZZ_TARGETS:%=fuzz-%)
$(FUZZ_TARGETS:%=fuzz-%): fuzz-%: build/fuzz/fuzz_% build/fuzz/seeds.stamp
	$(call FUZZ_RUN,$*,build/fuzz/fuzz_$*)

## the same for the readers in Python, with atheris
fuzz-python: build/fuzz/seeds.stamp .venv/atheris-stamp
	$(call FUZZ_RUN,python,$(VENV)/python tests/fuzz/fuzz_python.py)

.venv/atheris-stamp: .venv/stamp
	$(PIP_INSTALL) atheris==3.0.0
	touch $@

## the seeds and findings of the fuzz targets, once, with gcc's sanitizers
replay: $(FUZZ_TARGETS:%=build/fuzz/replay_%) build/fuzz/seeds.stamp
	for target in $(FUZZ_TARGETS); do \
	    build/fuzz/replay_$$target $$(find build/fuzz/seeds/$$target tests/fuzz/findings/$$target -type f 2>/dev/null) \
	        > build/$@.log 2>&1 || { cat build/$@.log; echo "$@: $$target failed"; exit 1; }; \
	done; echo "$@: $(words $(FUZZ_TARGETS)) fuzz targets passed"

.PHONY: fuzz-keep $(FUZZ_TARGETS:%=fuzz-keep-%)
## keep the smallest inputs that reach all that was reached, as tests/fuzz/corpus/NAME.zip
fuzz-keep: $(FUZZ_TARGETS:%=fuzz-keep-%)
$(FUZZ_TARGETS:%=fuzz-keep-%): fuzz-keep-%: build/fuzz/fuzz_% build/fuzz/seeds.stamp
	@rm -rf build/fuzz/kept/$*
	@mkdir -p build/fuzz/kept/$* build/fuzz/corpus/$*
	@$< -merge=1 -set_cover_merge=1 -use_counters=0 build/fuzz/kept/$* build/fuzz/corpus/$* build/fuzz/seeds/$* \
	    $(wildcard tests/fuzz/findings/$*) > build/fuzz/kept-$*.log 2>&1 || { tail -30 build/fuzz/kept-$*.log; exit 1; }
	@$(VENV)/python tests/fuzz/corpus.py build/fuzz/kept/$* tests/fuzz/corpus/$*.zip

## the targets as OSS-Fuzz builds them, with each sanitizer, on their seeds and for a second
oss-fuzz:
	$(PYTHON) tests/fuzz/oss_fuzz.py

## random regular expressions on random texts, compiled and in regex: pairs=1000000 seed=77
fuzz-patterns: all
	PYBPE_AUTOMATA_PAIRS=$(or $(pairs),1000000) PYBPE_AUTOMATA_SEED=$(or $(seed),77) $(VENV)/python -m pytest -s \
	    tests/py/test_automata.py -k random
