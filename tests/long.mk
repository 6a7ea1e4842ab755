# Checks that take long, or that need large packages or a checkout of llm.c.

### Long checks, and those that need a large install

.PHONY: faults soak soak-hours interrupts determinism threads exhaustive test-extras parity parity-all llmc-verdicts

# `make test-all` runs the quick part.
## every case of a failing system call, a kill, or a wrong order of flushes
faults: all
	$(VENV)/python tests/faults/run.py faults

## kills at random moments, thousands of damaged files (an hour); and the next three
soak: all interrupts determinism threads
	$(VENV)/python tests/faults/run.py soak

## interrupt each operation count=100 times
interrupts: all
	$(VENV)/python tests/faults/interrupts.py $(or $(count),100)

## compare the files of runs=20 runs
determinism: all
	$(VENV)/python tests/faults/determinism.py $(or $(runs),20)

## share objects among threads for seconds=60, under ThreadSanitizer
threads: build/tsan/tests/test_threads
	TSAN_OPTIONS=halt_on_error=1 $< $(or $(seconds),60)

## one process that does everything for hours=8: memory and results stay the same
soak-hours: all
	$(VENV)/python tests/faults/run.py hours $(or $(hours),8)

# ---------------------------------------------------------------------------------------------------
# The Python package

## the patterns on every code point in every context, and 100,000 random texts
exhaustive: all
	PYBPE_EXHAUSTIVE=1 $(VENV)/python -m pytest tests/py/test_pretok.py

## optional features: PyTorch, transformers, pyarrow, Dask and others (a large install)
test-extras: all .venv/extras-stamp .venv/tokenizers-1.stamp
	$(VENV)/python -m pytest --numprocesses=2 --dist=loadfile tests/py/extras

.venv/extras-stamp: tests/requirements-extras.txt .venv/test-stamp
	$(PIP_INSTALL) -r $<
	touch $@

# The next version, in a folder of its own: transformers needs the one before it.
.venv/tokenizers-1.stamp: .venv/stamp
	$(PIP_INSTALL) --no-deps --upgrade --target .venv/tokenizers-1 tokenizers==1.0.0rc3
	touch $@

## compare with tiktoken, Hugging Face's trainer: CORPUS=file vocab=32000 only=encoding|training
parity: build/extension.stamp .venv/parity-stamp
	$(VENV)/python tests/parity.py $(or $(CORPUS),out/corpus.txt) $(if $(vocab),--vocab-size $(vocab)) \
	    $(if $(only),--only $(only))

## compare with tiktoken on 10^9 bytes of this machine's texts, for five tokenizers (half an hour)
parity-all: build/extension.stamp .venv/parity-stamp
	$(VENV)/python tests/parity_all.py $(if $(bytes),--bytes $(bytes)) $(if $(folders),--folders $(folders))

.venv/parity-stamp: tests/requirements-parity.txt .venv/test-stamp
	$(PIP_INSTALL) --no-deps -r $<
	touch $@

## check what `pybpe llmc check` says: run llm.c on faulty files; LLMC=path
llmc-verdicts: all
	LLMC='$(LLMC)' $(VENV)/python tests/llmc_verdicts.py
